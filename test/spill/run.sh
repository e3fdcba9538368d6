#!/usr/bin/env bash
#
# The files of sql/ with little memory and every way to join a build side that
# does not fit: the answers must be those in expected/.
#
#   test/spill/run.sh [FORCING ...]
#
# PGHOST and so on name a throw-away server (as a superuser) that preloads the
# library; PG_CONFIG is its PostgreSQL's.  The forcings stand below.
#
# What says how a join ran (passes, memory, sizes of tables) is left out of the
# comparison by filter(), and so are files that are about just that.
# hashgraph_join_stats() must have counted enough joins that
# spilled, in partitions or passes as they were forced, or nothing was tested.
#
# The last line is `N passed, N failed`: one test per file and forcing, and one
# per forcing for its counts.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=test/lib/same_output.sh
. test/lib/same_output.sh
config=$(bash test/pg_config.sh)
bin=$("$config" --bindir)
pg_regress=$(dirname "$("$config" --pgxs)")/../test/regress/pg_regress
base=build/spill

declare -A settings=(
	# what 64 kB does by itself
	[memory]="work_mem=64kB hash_mem_multiplier=1"
	# partitions wherever there is more than one hash, more of them than the planner expects
	[partitions]="work_mem=64kB hashgraph_join.spill=partitions hashgraph_join.chunk_rows=100"
	# chunks of the build side, each with all outer rows, whose match bits go to a file
	[passes]="work_mem=64kB hashgraph_join.spill=passes hashgraph_join.chunk_rows=150 hashgraph_join.chunk_outer_rows=64"
	# partitions of partitions down to a few rows, and passes where that is cheaper
	[tiny]="work_mem=64kB hash_mem_multiplier=1 hashgraph_join.chunk_rows=4 hashgraph_join.chunk_outer_rows=1"
)
# Files that take long are read where they find most: those about groups where memory is
# little, those of few rows a table where few rows are too many.
declare -A without=(
	# few rows, or little memory of their own
	[memory]="filters join_types pages parallel_build rescan types wide"
	[partitions]="agg_scans aggregates device_having group_types large types wide"
	# the first two: too many rows; the next ones show that passes are read and costed otherwise
	[passes]="large parallel pages settings agg_scans aggregates device_having filters group_types join_types parallel_build wide"
	# tables of thousands of rows; effects shows the order of matches
	[tiny]="effects large group_types parallel parallel_build pages agg_scans aggregates batches device_having filters residual rescan types wide"
)
# joins that have spilled, partitions or passes that they had, and joins whose match bits went to a file, at least
declare -A demand=([memory]="500 5000 0" [partitions]="700 9000 0" [passes]="600 4000 100" [tiny]="1500 100000 100")
forcings=("$@")
((${#forcings[@]})) || forcings=(memory partitions passes tiny)

# Files about how joins ran; hgj_check() compares such joins' answers elsewhere.  So are
# those about how often something was evaluated, which memory decides, and one that shows
# which of several numerics that are equal stands for a group: the first, in the order of rows;
# transitions wants partial plans, and has little memory of its own; hidden_extremes is about what
# the planner expects.
about="agg_divided agg_exchange agg_parallel agg_plans agg_subqueries all_found costs device dictionaries explain explain_spills filter functions hidden_extremes keys_only lookups messages probe_order stats transitions why"

# And these, where few build rows count as too many: what memory decides, and
# when errors of outer rows come (rows that wait in a file have been evaluated,
# as in PostgreSQL's own join when that is in batches).
about_memory="agg_memory demand partition_join partitions passes"

# And those about queries that are rewritten, most of whose time goes into what they are compared with.
about_rewriting="either estimates hidden_groups hidden_guards hidden_joins hidden_lateral hidden_quantified hidden_restrictions null_keys"

# filter NAME FILE: what may differ in the others: how a join ran, how many groups were made
# below it (a join in passes has no key filter for them), one line that says that groups have
# not spilled, and whether a dictionary of parallel_build was full, which memory decides.
filter()
{
	grep -vE 'Passes|Partitions|Spilled|Taken Singly|Memory Usage|Vertices|Build Rows|Fallback|Probe Filter|Key Filters|Build: |^ *Groups: |Settings: |^ +15000 \| [ft] |^-+(\+-+)*$|QUERY PLAN|^\([0-9]+ rows?\)$|^ *hgj_(analyze|explain|plan|worker_lines)[a-z_]* *$' "$2" |
		sed -E 's/ +\|/|/g; s/\| +/|/g; s/^ +//; s/ +$//; s/^((unknown|many)\|ok\|)[ft]$/\1/'
}

run()
{
	local forcing=$1 dir=$base/$1 tests= name options= pair ok=0 bad=0 count spilled parts bits least
	for pair in ${settings[$forcing]}; do
		options+=" -c $pair"
	done
	for name in sql/*.sql; do
		name=$(basename "$name" .sql)
		[[ $name == *--* || $name == setup || " $about ${without[$forcing]} " == *" $name "* ]] && continue
		[[ $forcing != memory && " $about_memory $about_rewriting " == *" $name "* ]] && continue
		[[ -n ${HGJ_SPILL_FILES:-} && " $HGJ_SPILL_FILES " != *" $name "* ]] && continue
		tests+=" $name"
	done
	rm -rf "$dir"
	mkdir -p "$dir"
	# shellcheck disable=SC2086
	PGOPTIONS="$options" "$pg_regress" --inputdir="$PWD" --outputdir="$dir" --bindir="$bin" --host="$PGHOST" --port="${PGPORT:-5432}" \
		--user="${PGUSER:-postgres}" --dbname="regress_spill" --load-extension=hashgraph_join setup $tests >"$dir/log" 2>&1
	for name in setup $tests; do
		if same_output "$name" "$dir" filter "$name, $forcing (${settings[$forcing]})"; then
			ok=$((ok + 1))
		else
			bad=$((bad + 1))
		fi
	done
	count=$("$bin/psql" -X -q -At -F ' ' -d regress_spill \
		-c "select joins_spilled, spill_partitions + spill_passes from hashgraph_join_stats() where datname = current_database()")
	bits=$("$bin/psql" -X -q -At -d regress_spill \
		-c "select coalesce(sum(count), 0) from hashgraph_join_fallbacks() where datname = current_database() and reason like 'match bits%'")
	read -r spilled parts <<<"$count"
	read -r name pair least <<<"${demand[$forcing]}"
	if [[ -n ${HGJ_SPILL_FILES:-} ]] || ((${spilled:-0} >= name && ${parts:-0} >= pair && ${bits:-0} >= least)); then
		ok=$((ok + 1))
		echo "ok - $forcing: $spilled joins have spilled, $parts partitions and passes, $bits with match bits on file"
	else
		bad=$((bad + 1))
		echo "not ok - $forcing: ${spilled:-0} joins have spilled (of $name wanted), ${parts:-0} partitions and passes (of $pair wanted), ${bits:-0} with match bits on file (of $least wanted)"
	fi
	passed=$((passed + ok))
	failed=$((failed + bad))
}

passed=0
failed=0
for forcing in "${forcings[@]}"; do
	begun=$SECONDS
	if [[ -z ${settings[$forcing]:-} ]]; then
		echo "spill: no forcing $forcing" >&2
		exit 2
	fi
	run "$forcing"
	echo "# $forcing: $((SECONDS - begun)) s"
done
echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
