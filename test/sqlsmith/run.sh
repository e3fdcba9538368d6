#!/usr/bin/env bash
#
# sqlsmith's random queries on an assertion-enabled server, against
# PostgreSQL's regression database, with every join that can be one as a
# HashGraphJoin:
#
#   test/sqlsmith/run.sh [--seed N] [--round SECONDS] [--keep] [--installed] [SECONDS]
#
# SECONDS (120) is the time that sqlsmith gets, in rounds of 10 s with settings
# of their own (below), which begin at the one that the seed says.  --installed: the
# assertion-enabled server has the extension already.  --keep leaves the
# queries, the log and the data in build/sqlsmith.
#
# A finding, each a failed test: a failed assertion, a crash, a leak, an
# internal error that is ours, a query that does not end long after its
# statement_timeout, and a query that returns other rows than stock (judge.pl).
#
# What is random is sqlsmith's, from the seed that is printed; what its timeouts
# hit is not, so that a run is repeated only roughly.  A finding comes with its
# statement.
set -euo pipefail

# shellcheck source=test/lib/server.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/server.sh"
here=$HGJ_TOP/test/sqlsmith
out=$HGJ_TOP/build/sqlsmith

seed=$((RANDOM % 10000))
round=10
keep=
installed=
seconds=120
while (($#)); do
	case $1 in
		--seed) seed=$2 && shift ;;
		--round) round=$2 && shift ;;
		--keep) keep=yes ;;
		--installed) installed=yes ;;
		[0-9]*) seconds=$1 ;;
		*)
			echo "usage: $0 [--seed N] [--round SECONDS] [--keep] [--installed] [SECONDS]" >&2
			exit 2
			;;
	esac
	shift
done

if ! command -v sqlsmith >/dev/null; then
	echo "sqlsmith: installing it"
	hgj_as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 update >/dev/null 2>&1 || true
	hgj_as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends sqlsmith >/dev/null
fi

# HGJ_CASSERT_CONFIG is for those who have such a server of their own.
config=${HGJ_CASSERT_CONFIG:-$(bash "$HGJ_TOP/test/cassert/build.sh")}
source=$(bash "$HGJ_TOP/test/cassert/build.sh" --source)/src/test/regress
export PG_CONFIG=$config
[[ -n $installed ]] || hgj_install_copy "$config" "$HGJ_TOP/build/sqlsmith_copy" with_cuda=no

# What puts a whole plan into a worker has another name from 16 on.
in_a_worker=debug_parallel_query
(($(hgj_pg_major) >= 16)) || in_a_worker=force_parallel_mode

# A round's settings; half of them with little memory.
rounds=(
	"work_mem=64kB hashgraph_join.chunk_rows=3 hash_mem_multiplier=1"
	"enable_nestloop=off enable_mergejoin=off"
	"work_mem=64kB hashgraph_join.chunk_rows=2 hashgraph_join.spill=partitions"
	"hashgraph_join.chunk_rows=2 hashgraph_join.spill=passes hashgraph_join.chunk_outer_rows=1"
	"work_mem=64kB hashgraph_join.chunk_rows=20 min_parallel_table_scan_size=0 min_parallel_index_scan_size=0 parallel_setup_cost=0 parallel_tuple_cost=0"
	"hashgraph_join.filter=on hashgraph_join.segments=sliced hashgraph_join.build=v1 hashgraph_join.probe=binned"
	"work_mem=64kB hashgraph_join.chunk_rows=1 hashgraph_join.source=tuples hashgraph_join.filter=on"
	"enable_memoize=off enable_material=off hashgraph_join.segments=ellpack hashgraph_join.build=v2"
	"work_mem=64kB hashgraph_join.chunk_rows=5 enable_partitionwise_join=on enable_partitionwise_aggregate=on enable_nestloop=off"
	"$in_a_worker=on hashgraph_join.chunk_rows=7 hashgraph_join.build=direct"
)

rm -rf "$out"
mkdir -p "$out"
hgj_server_start "shared_buffers = '256MB'" "max_prepared_transactions = 10" "max_connections = 50" "autovacuum = off" "jit = off" \
	"session_preload_libraries = 'hashgraph_join'" "hashgraph_join.force = on" \
	"log_line_prefix = '%m [%p] %e %q%a '" "log_error_verbosity = verbose" "log_min_messages = warning"

# The expected results are about other settings: what counts is what the files
# leave, and the log.
"$("$config" --pkglibdir)/pgxs/src/test/regress/pg_regress" --inputdir="$source" --outputdir="$out" --bindir="$HGJ_BIN" \
	--dlpath="$("$config" --pkglibdir)" --host="$PGHOST" --user=postgres --dbname=regression --max-concurrent-tests=20 \
	--schedule=<(grep -v tablespace "$source/parallel_schedule") >"$out/pg_regress.out" 2>&1 || true
export PGDATABASE=regression
hgj_psql -f "$here/database.sql" 2>"$out/database.err" || {
	cat "$out/database.err"
	tail -n 20 "$out/pg_regress.out"
	echo "0 passed, 1 failed"
	exit 1
}
echo "sqlsmith: $(hgj_psql -At -c "select count(*) from information_schema.tables") tables, $(hgj_psql -At -c "select pg_size_pretty(pg_database_size('regression'))"), first seed $seed"

# What holds for all queries, and the settings of a round, which the running
# session takes over between two queries.
hgj_psql <<-END
	alter role sqlsmith set session_preload_libraries = hashgraph_join, auto_explain;
	alter role sqlsmith set auto_explain.log_min_duration = 0;
	alter role sqlsmith set auto_explain.log_analyze = on;
	alter role sqlsmith set auto_explain.log_timing = off;
	alter role sqlsmith set auto_explain.sample_rate = 0.2;
	alter role sqlsmith set statement_timeout = '5s';
	alter role sqlsmith set temp_file_limit = '2GB';
END
settings()
{
	local pair
	echo "alter system reset all;"
	for pair in $1; do
		echo "alter system set ${pair%%=*} = '${pair#*=}';"
	done
	echo "select pg_reload_conf();"
}

# Queries that go on long after they were to stop.
watch_late()
{
	while sleep 2; do
		hgj_psql -At -c "select 'LATE: ' || extract(epoch from now() - query_start)::int || ' s: ' || query from pg_stat_activity
			where usename = 'sqlsmith' and state = 'active' and now() - query_start > '35 s'" 2>/dev/null || true
	done >>"$out/late"
}
watch_late &
watcher=$!
hgj_at_exit "kill $watcher 2>/dev/null"

# A server that has crashed takes a while to come back, and ends sqlsmith.
smith()
{
	for ((n = seed;; n++)); do
		nice sqlsmith --target="host=$PGHOST user=sqlsmith dbname=regression" --seed="$n" \
			--dump-all-queries --verbose >"$out/queries.$n" 2>"$out/progress.$n" &
		child=$!
		trap 'kill $child; exit' TERM
		wait "$child" || true
		sleep 2
	done
}
smith &
smith=$!
hgj_at_exit "kill $smith 2>/dev/null"

# It first asks about every function there is.
until grep -q 'Generating indexes...done' "$out/progress.$seed" 2>/dev/null; do
	kill -0 "$smith"
	sleep 1
done
ended=$((SECONDS + seconds))
for ((n = seed; SECONDS < ended; n++)); do
	set=${rounds[n % ${#rounds[@]}]}
	hgj_psql -At <<<"$(settings "$set")" >/dev/null 2>"$out/settings.err" || true
	echo "$(date -u +%T) $set"
	sleep $((ended - SECONDS < round ? ended - SECONDS : round))
done
kill "$watcher" "$smith" 2>/dev/null || true
wait "$smith" 2>/dev/null || true
hgj_psql -At <<<"$(settings '')" >/dev/null

cp "$HGJ_SERVER_LOG" "$out/server.log"
perl "$here/judge.pl" --dir "$out" --sources "$HGJ_TOP/src" --compare "$((seconds < 600 ? 20 + seconds / 6 : 120))" && rc=0 || rc=$?
if [[ -z $keep ]]; then
	((rc)) || rm -rf "$out"
fi
exit "$rc"
