#!/usr/bin/env bash
#
# The 22 queries of TPC-H and the 13 of the Star Schema Benchmark on a small
# scale, through our nodes, in six ways: in one process, with parallel
# workers, with memory for a fraction of the build sides, on a fake device
# (test/fake), which must do what `pipelines` says, from columns kept in memory, and on
# that device from these.
#
#   test/real/run.sh
#
# PGHOST and so on name a throw-away server (as a superuser) that preloads the
# library, so that workers' joins are counted, and keeps no columns but those that it is
# asked for (hashgraph_join.column_loading); PG_CONFIG is its PostgreSQL's.
#
# A test is a query in one way: its answer must be stock's, and a node of ours
# must have run, but for queries without a join.  For each way, enough queries
# must have done what the way is there for.  The last line is `N passed, N failed`.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=test/lib/fake_library.sh
. test/lib/fake_library.sh
config=$(bash test/pg_config.sh)
bin=$("$config" --bindir)
scale=0.05
out=$PWD/build/real

declare -A settings=(
	[stock]="hashgraph_join.enabled=off max_parallel_workers_per_gather=0"
	[single]="max_parallel_workers_per_gather=0"
	[workers]="max_parallel_workers_per_gather=2 parallel_leader_participation=off parallel_setup_cost=0 parallel_tuple_cost=0 min_parallel_table_scan_size=0 min_parallel_index_scan_size=0 hashgraph_join.processors=64 effective_cache_size=8kB"
	[memory]="max_parallel_workers_per_gather=0 work_mem=64kB hash_mem_multiplier=1"
	[device]="max_parallel_workers_per_gather=0 hashgraph_join.engine=cuda"
	[kept]="max_parallel_workers_per_gather=0"
	[device_kept]="max_parallel_workers_per_gather=0 hashgraph_join.engine=cuda hashgraph_join.device_side_rows=0"
)
# what is counted of a query, and in how many of all it must not be zero
declare -A counted=([single]="joins" [workers]="joins_in_workers" [memory]="joins_spilled" [device]="aggregates_on_device" [device_kept]="aggregates_on_device" [kept]="(SELECT sum(uses) FROM hashgraph_join_columns)")
declare -A demand=([single]=33 [workers]=22 [memory]=22 [device]=31 [kept]=35 [device_kept]=31)
# queries with an aggregation that is a pipeline of the device
declare -A pipelines=([tpch]="01 03 04 05 06 07 08 09 10 11 12 14 15 16 18 19 21 22" [ssb]="1.1 1.2 1.3 2.1 2.2 2.3 3.1 3.2 3.3 3.4 4.1 4.2 4.3")
# queries in which there is nothing to join
declare -A without=([tpch]="01 06" [ssb]="")

# shellcheck source=test/lib/results.sh
. test/lib/results.sh

psql()
{
	"$bin/psql" -X -q -At -v fraction=0.002 "$@"
}

# all_queries BENCHMARK WAY: answers and counts of all queries, in one session.
all_queries()
{
	local name=$1 way=$2 query pair options=
	for pair in ${settings[$way]}; do
		options+=" -c $pair"
	done
	[[ $way == stock ]] || options+=" -c hashgraph_join.force=on"
	mkdir -p "$out/$name/$way"
	for query in bench/"$name"/queries/*.sql; do
		query=$(basename "$query" .sql)
		printf '%s\n' "SELECT hashgraph_join_stats_reset() \\g /dev/null" \
			"\\o $out/$name/$way/$query" "\\i bench/$name/queries/$query.sql" "\\set state :SQLSTATE" \
			"\\o $out/$name/$way/$query.counts" \
			"SELECT :'state', joins, ${counted[$way]:-joins} FROM hashgraph_join_stats() WHERE datname = current_database();" "\\o"
	done >"$out/$name/$way.sql"
	PGOPTIONS="$options -c jit=off" psql -d "real_$name" -f "$out/$name/$way.sql" 2>&1
}

at_exit() { trap "$1" EXIT; }
hgj_fake_library at_exit || exit 1
settings[device]+=" hashgraph_join.cuda_library=$HGJ_FAKE_LIBRARY"
settings[device_kept]+=" hashgraph_join.cuda_library=$HGJ_FAKE_LIBRARY"

rm -rf "$out"
for name in tpch ssb; do
	mkdir -p "$out/$name"
	psql -d postgres -c "SET client_min_messages = warning" -c "DROP DATABASE IF EXISTS real_$name" -c "CREATE DATABASE real_$name" || exit 1
	PGDATABASE=real_$name PSQL=$bin/psql bash bench/load.sh "$name" "$scale" || exit 1
	psql -d "real_$name" -c "CREATE EXTENSION hashgraph_join" || exit 1
	all_queries "$name" stock
	queries=0 with_rows=0 by_us=0 states=
	for query in bench/"$name"/queries/*.sql; do
		query=$out/$name/stock/$(basename "$query" .sql)
		queries=$((queries + 1))
		state='' joins=0
		IFS='|' read -r state joins _ <"$query.counts"
		[[ ! -s $query ]] || with_rows=$((with_rows + 1))
		[[ $state == 00000 ]] || states+=" ${query##*/}"
		((joins == 0)) || by_us=$((by_us + 1))
	done
	if [[ -z $states ]] && ((by_us == 0 && with_rows * 5 >= queries * 4)); then
		ok "$name: stock has answers to compare with, $with_rows of $queries not empty"
	else
		not_ok "$name: of $queries answers of stock's own, $with_rows are not empty, $by_us by joins of ours, errors:${states:- none}"
	fi
done

for way in single workers memory device kept device_kept; do
	begun=$SECONDS
	with=0
	echo "# $way: hashgraph_join.force=on ${settings[$way]}"
	for name in tpch ssb; do
		# where commits do not wait for their WAL, the VACUUM after loading found pages not all-visible yet
		[[ $way != kept ]] || psql -d "real_$name" -o /dev/null -c "VACUUM" -c "SELECT hashgraph_join_load(oid) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
		all_queries "$name" "$way"
		before=0
		for query in bench/"$name"/queries/*.sql; do
			query=$(basename "$query" .sql)
			state='' joins=0 special=0
			IFS='|' read -r state joins special <"$out/$name/$way/$query.counts"
			# counted since the columns were loaded
			[[ $way != kept ]] || { uses=${special:-0} special=$((${special:-0} - before)) before=$uses; }
			if [[ $state != 00000 ]]; then
				not_ok "$name $query, $way: SQLSTATE ${state:-unknown}"
			elif ! cmp -s "$out/$name/stock/$query" "$out/$name/$way/$query"; then
				not_ok "$name $query, $way: another answer than stock's"
				diff "$out/$name/stock/$query" "$out/$name/$way/$query" | head -n 20
			elif ((${joins:-0} == 0)) && [[ " ${without[$name]} " != *" $query "* ]]; then
				not_ok "$name $query, $way: no node of ours ran"
			elif [[ $way == device* && " ${pipelines[$name]} " == *" $query "* ]] && ((${special:-0} == 0)); then
				not_ok "$name $query, $way: no aggregation was a pipeline"
			else
				ok "$name $query, $way: ${joins:-0} joins, $(wc -l <"$out/$name/$way/$query") rows"
			fi
			((${special:-0} == 0)) || with=$((with + 1))
		done
	done
	if ((with >= demand[$way])); then
		ok "$way: ${counted[$way]} in $with queries"
	else
		not_ok "$way: ${counted[$way]} in $with queries, of ${demand[$way]} wanted"
	fi
	echo "# $way: $((SECONDS - begun)) s"
done
echo "$passed passed, $failed failed"
((failed == 0))
