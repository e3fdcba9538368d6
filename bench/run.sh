#!/usr/bin/env bash
#
# make bench: HashGraphJoin against PostgreSQL's own join, in the same server
# and session, one process, warm cache: the medians of RUNS runs that take
# turns, and their ratio.  Every run's answer is compared.
#
#   ROWS=20000000   fact rows of the large cases; the others follow
#   RUNS=5
#   CASES="q1_10m_sparse8 left"     some cases only
#   ENGINE=no       leave bench/engine_bench out
#
# "chosen" says whether the planner took our node by cost alone; where it did
# not, the times are those of the forced node.  A wrong answer, a missed bar
# or a forced node that is not there makes the exit status non-zero.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=test/lib/server.sh
. test/lib/server.sh
N=${ROWS:-20000000}
RUNS=${RUNS:-5}
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

bash test/setup.sh build
mkdir -p build/bench
hgj_install >build/bench/build.log 2>&1 || {
	tail -n 40 build/bench/build.log
	exit 1
}

memory_mb=$(awk '/^MemTotal/ {print int($2 / 1024)}' /proc/meminfo)
buffers=$((memory_mb / 4 < 6144 ? memory_mb / 4 : 6144))
work_mem=${WORK_MEM:-$((memory_mb / 16 < 1024 ? memory_mb / 16 : 1024))MB}
hgj_server_start "shared_buffers = '${buffers}MB'" "autovacuum = off" "jit = off" \
	"wal_level = minimal" "max_wal_senders = 0" "checkpoint_timeout = '1h'"
hgj_psql -c "CREATE EXTENSION hashgraph_join"

settings="LOAD 'hashgraph_join'; SET work_mem = '$work_mem'; SET max_parallel_workers_per_gather = 0;"
tsv=build/bench/results.tsv
printf 'case\tchosen\tstock_ms\tours_ms\tratio\n' >"$tsv"
echo "PostgreSQL $("$HGJ_BIN/pg_config" --version | sed 's/^PostgreSQL //'), $(grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //')"
echo "$N fact rows, medians of $RUNS runs, work_mem $work_mem, one process"
echo
printf '%-36s %-8s %10s %10s %7s  %s\n' case chosen 'stock ms' 'ours ms' ratio verdict

median()
{
	sort -n | awk '{v[NR] = $1} END {print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'
}

status=0
made=
for name in "${cases[@]}"; do
	title='' tables='' query='' check='' small=''
	"case_$name"
	if [[ $tables != "$made" ]]; then
		{
			echo "DROP TABLE IF EXISTS fact, dim;"
			echo "SELECT setseed(0.25) \\g /dev/null"
			echo "$tables"
			echo "VACUUM ANALYZE fact, dim;"
		} | hgj_psql 2>/dev/null
		made=$tables
	fi

	# Only a plan that can be explained tells whether our node is in it.
	explained=${query#COPY (}
	explained=${explained%) TO \'/dev/null\'}
	chosen=no
	mode="SET hashgraph_join.enabled = on; SET hashgraph_join.force = on;"
	if hgj_psql -At -c "$settings" -c "EXPLAIN $explained" | grep -q HashGraphJoin; then
		chosen=yes
		mode="SET hashgraph_join.enabled = on;"
	elif ! hgj_psql -At -c "$settings" -c "$mode" -c "EXPLAIN $explained" | grep -q HashGraphJoin; then
		printf '%-36s %s\n' "$title" "FAILED: the forced plan has no HashGraphJoin"
		status=1
		continue
	fi

	run="build/bench/$name"
	{
		echo "$settings"
		for way in stock ours; do
			if [[ $way == stock ]]; then
				echo "SET hashgraph_join.enabled = off;"
			else
				echo "$mode"
			fi
			echo "\\echo answer $way"
			echo "${check:-$query};"
			echo "$query;"
		done
		for ((i = 0; i < RUNS; i++)); do
			echo "SET hashgraph_join.enabled = off;"
			echo "\\echo answer stock"
			echo "\\timing on"
			echo "$query;"
			echo "\\timing off"
			echo "$mode"
			echo "\\echo answer ours"
			echo "\\timing on"
			echo "$query;"
			echo "\\timing off"
		done
	} >"$run.sql"
	if ! hgj_psql -At -f "$run.sql" >"$run.out" 2>"$run.err"; then
		cat "$run.err"
		printf '%-36s %s\n' "$title" "FAILED: error"
		status=1
		continue
	fi
	stock=$(awk '/^answer/ {w = $2} /^Time: / && w == "stock" {print $2}' "$run.out" | median)
	ours=$(awk '/^answer/ {w = $2} /^Time: / && w == "ours" {print $2}' "$run.out" | median)
	# All lines but times: every answer must have come from both ways alike.
	answers_stock=$(awk '/^answer/ {w = $2; next} !/^Time: / && w == "stock"' "$run.out")
	answers_ours=$(awk '/^answer/ {w = $2; next} !/^Time: / && w == "ours"' "$run.out")
	ratio=$(awk -v a="$stock" -v b="$ours" 'BEGIN {printf "%.2f", a / b}')

	verdict=ok
	if [[ -z $answers_stock || $answers_stock != "$answers_ours" ]]; then
		verdict="WRONG ANSWER: see $run.out"
		status=1
	elif [[ $chosen == yes && $small == yes ]]; then
		verdict="MISSED: chosen, and too small for it"
		status=1
	elif [[ $chosen == yes ]] && awk -v a="$stock" -v b="$ours" 'BEGIN {exit !(b > a * 1.1)}'; then
		verdict="MISSED: chosen, and more than 10% slower"
		status=1
	elif [[ $name == q1_10m_sparse8 ]] && ((N >= 20000000)); then
		if awk -v r="$ratio" 'BEGIN {exit !(r < 2)}'; then
			verdict="MISSED: the bar is 2.00"
			status=1
		else
			verdict="ok (the bar is 2.00)"
		fi
	fi
	printf '%-36s %-8s %10.1f %10.1f %7s  %s\n' "$title" \
		"$([[ $chosen == yes ]] && echo yes || echo forced)" "$stock" "$ours" "$ratio" "$verdict"
	printf '%s\t%s\t%s\t%s\t%s\n' "$name" "$chosen" "$stock" "$ours" "$ratio" >>"$tsv"
done
hgj_server_stop

if [[ ${ENGINE:-yes} != no ]]; then
	printf '\nThe engine alone:\n\n'
	make -s -C test/engine bench
	if [[ ! -x bench/engine_bench ]]; then
		echo "bench: make -C test/engine bench made no bench/engine_bench"
		exit 1
	fi
	bench/engine_bench
fi
exit "$status"
