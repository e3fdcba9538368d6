#!/usr/bin/env bash
#
# make bench: HashGraphJoin against PostgreSQL's own plan, in the same server
# and session, one process, warm cache, 4 kB pages: the medians of RUNS runs
# that take turns, and their ratio.  Every run's answer is compared.
#
#   ROWS=20000000   fact rows of the large cases; the others follow
#   RUNS=3
#   CASES="q1_sparse left"     some cases only
#   OLTP=no         leave bench/oltp.sh out
#   ENGINE=no       leave bench/engine_bench.c out
#
#   ROWS=2000000 ENGINE=no     a few minutes; bars are meant for 20,000,000
#
# "chosen" says whether the planner took our node by cost alone; where it did
# not, the times are those of the forced node.  "how" is what our plan shows:
# Pages, Batches, Aggregate, Gather.  A wrong answer, a missed bar or a plan
# without what it should have makes the exit status non-zero.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=test/lib/server.sh
. test/lib/server.sh
N=${ROWS:-20000000}
RUNS=${RUNS:-3}
# shellcheck source=bench/server.sh
. bench/server.sh
# shellcheck source=bench/cases.sh
. bench/cases.sh

read -r -a cases <<<"${CASES:-}"
((${#cases[@]})) || cases=("${CASES_ALL[@]}")
for name in "${cases[@]}"; do
	declare -F "case_$name" >/dev/null || {
		echo "bench: there is no case $name; there are: ${CASES_ALL[*]}" >&2
		exit 2
	}
done

work_mem=${WORK_MEM:-$((memory_mb / 16 < 1024 ? memory_mb / 16 : 1024))MB}
bench_server 4 6144 "maintenance_work_mem = '1GB'"
hgj_psql -c "ALTER DATABASE postgres SET search_path = bench, public"

settings="LOAD 'hashgraph_join'; SET work_mem = '$work_mem'; SET max_parallel_workers_per_gather = 0;"
tsv=build/bench/results.tsv
printf 'case\tchosen\thow\tstock_ms\tours_ms\tratio\tbar\n' >"$tsv"
echo "PostgreSQL $("$HGJ_BIN/pg_config" --version | sed 's/^PostgreSQL //'), $(grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //')"
echo "$N fact rows, medians of $RUNS runs, work_mem $work_mem, one process"
echo
printf '%-42s %-6s %-4s %9s %9s %7s %5s  %s\n' case chosen how 'stock ms' 'ours ms' ratio bar verdict

median()
{
	sort -n | awk '{v[NR] = $1} END {print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'
}

# less A B: is A less than B?
less()
{
	awk -v a="$1" -v b="$2" 'BEGIN {exit !(a < b)}'
}

make_tables()
{
	{
		echo "DROP SCHEMA IF EXISTS bench CASCADE; CREATE SCHEMA bench;"
		echo "SELECT setseed(0.25) \\g /dev/null"
		echo "$tables"
		echo "VACUUM ANALYZE;"
	} | hgj_psql 2>"build/bench/$name.tables" || {
		cat "build/bench/$name.tables"
		exit 1
	}
}

# Does our plan, with these settings, have what it should have?
plan_of()
{
	hgj_psql -At -c "$settings" -c "$1" -c "EXPLAIN $explained"
}

has_wanted()
{
	tr '\n' ' ' <<<"$plan" | grep -qE "${wants:-HashGraphJoin}"
}

status=0
made=
for name in "${cases[@]}"; do
	title='' tables='' query='' check='' small='' wants='' ours=''
	base="SET hashgraph_join.enabled = off;"
	"case_$name"
	[[ $tables == "$made" ]] || make_tables
	made=$tables

	# Only a plan that can be explained tells whether our node is in it.
	explained=${query#COPY (}
	explained=${explained%) TO \'/dev/null\'}
	chosen=yes
	mode="SET hashgraph_join.enabled = on; $ours"
	plan=$(plan_of "$mode")
	if ! has_wanted; then
		chosen=forced
		mode+=" SET hashgraph_join.force = on; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;"
		plan=$(plan_of "$mode")
		if ! has_wanted; then
			printf '%-42s %s\n' "$title" "FAILED: the forced plan has no ${wants:-HashGraphJoin}"
			status=1
			continue
		fi
	fi
	how=
	for what in 'Source: pages' 'Source: batches' HashGraphAgg Gather; do
		if grep -q "$what" <<<"$plan"; then
			letter=${what#Source: }
			letter=${letter#HashGraph}
			how+=${letter:0:1}
		fi
	done

	run="build/bench/$name"
	{
		echo "$settings"
		# once each for warmth, and for the answers
		for way in stock ours; do
			[[ $way == stock ]] && echo "RESET ALL; $settings $base" || echo "RESET ALL; $settings $mode"
			echo "\\echo answer $way"
			[[ -z $check ]] || echo "$check;"
			echo "$query;"
		done
		for ((i = 0; i < RUNS; i++)); do
			for way in stock ours; do
				[[ $way == stock ]] && echo "RESET ALL; $settings $base" || echo "RESET ALL; $settings $mode"
				echo "\\echo answer $way"
				echo "\\timing on"
				echo "$query;"
				echo "\\timing off"
			done
		done
	} >"$run.sql"
	if ! hgj_psql -At -f "$run.sql" >"$run.out" 2>"$run.err"; then
		cat "$run.err"
		printf '%-42s %s\n' "$title" "FAILED: error"
		status=1
		continue
	fi
	stock=$(awk '/^answer/ {w = $2} /^Time: / && w == "stock" {print $2}' "$run.out" | median)
	mine=$(awk '/^answer/ {w = $2} /^Time: / && w == "ours" {print $2}' "$run.out" | median)
	# All lines but times: every answer must have come from both ways alike.
	answers_stock=$(awk '/^answer/ {w = $2; next} !/^Time: / && w == "stock"' "$run.out")
	answers_ours=$(awk '/^answer/ {w = $2; next} !/^Time: / && w == "ours"' "$run.out")
	ratio=$(awk -v a="$stock" -v b="$mine" 'BEGIN {printf "%.2f", a / b}')
	bar=${BAR[$name]}

	verdict=ok
	if [[ -z $answers_stock || $answers_stock != "$answers_ours" ]]; then
		verdict="WRONG ANSWER: see $run.out"
	elif [[ $chosen == yes && $small == yes ]]; then
		verdict="MISSED: chosen, and too small for it"
	elif less "$ratio" "$bar"; then
		verdict="MISSED"
		((N >= 20000000)) || verdict="below the bar, which is meant for 20000000 rows"
	elif [[ $chosen == yes ]] && less "$ratio" 0.9; then
		verdict="MISSED: chosen, and more than 10% slower"
	elif [[ $chosen == forced && $small != yes ]] && less 1.1 "$ratio"; then
		verdict="ok, but not chosen"
	fi
	case $verdict in MISSED* | WRONG*) status=1 ;; esac
	[[ $bar != 0 ]] || bar=-
	printf '%-42s %-6s %-4s %9.1f %9.1f %7s %5s  %s\n' "$title" "$chosen" "${how^^}" "$stock" "$mine" "$ratio" "$bar" "$verdict"
	printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "$chosen" "${how^^}" "$stock" "$mine" "$ratio" "$bar" >>"$tsv"
done
hgj_psql -c "DROP SCHEMA IF EXISTS bench CASCADE" 2>/dev/null
perl bench/figures.pl json "$tsv" "Joins of bench/cases.sh" "data=$N fact rows" "runs=$RUNS" "work_mem=$work_mem" \
	"postgresql=$("$HGJ_BIN/pg_config" --version | sed 's/^PostgreSQL \([^ ]*\).*/\1/')"

hgj_server_stop

if [[ ${OLTP:-yes} != no ]]; then
	printf '\nSmall and selective statements, planning and execution, with progress and counters on:\n\n'
	bash bench/oltp.sh || status=1
fi

if [[ ${ENGINE:-yes} != no ]]; then
	printf '\nThe engine alone:\n\n'
	make -s -C test/engine bench
	test/engine/build/engine_bench
fi
exit "$status"
