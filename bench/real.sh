#!/usr/bin/env bash
#
# make bench-tpch, make bench-ssb, make bench-users: the 22 queries of TPC-H, the 13 of the
# Star Schema Benchmark, and 82 with subqueries (a kind each, and as people write them), on data of
# bench/tpch, bench/ssb and bench/users, in one session in turn:
#
#   stock     PostgreSQL's own plan: hashgraph_join.enabled = off
#   chosen    what the planner takes with us
#   forced    hashgraph_join.force = on
#   single    the same without parallel workers
#
# Medians; after one run of each for warmth.  Every run's answer is compared.
#
#   SF=1               scale factor
#   WORKERS="0 2"      max_parallel_workers_per_gather (0, 2 and one less than cores)
#   RUNS=3
#   QUERIES="03 05"    some queries only
#   MODES="stock chosen"   some of the four only
#   WORK_MEM=256MB
#   TIMEOUT=120        seconds after which a run is given up, and shown as such
#   PARALLEL_COSTS_0=yes   parallel_setup_cost and parallel_tuple_cost are 0
#   EXTRA="hashgraph_join.engine = cpu; ..."   settings of the modes that are ours
#   JOBS=12            processes that load
#
#   SERVER=running     not a throw-away server, but the one that PGHOST, PGUSER and
#                      so on name (as a superuser); PSQL is its psql, if not that in
#                      PATH.  Tables are loaded into the database PGDATABASE, or one
#                      named tpch or ssb, into its schema public
#   LOADED=yes         where they are already
#
# A plan is shown by its nodes: how many HashGraphJoin, HashGraphAgg, hash joins of
# PostgreSQL's own, other joins, Gather.  All figures stand in build/bench/tpch.tsv
# or ssb.tsv, and in .json of that name with the machine.  A wrong answer or an error makes the exit status non-zero.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
name=${1:-}
[[ -f bench/$name/tables.sql ]] || {
	echo "usage: $0 tpch|ssb|users" >&2
	exit 2
}
export SF=${SF:-1}

if [[ ${SERVER:-} == running ]]; then
	export PSQL=${PSQL:-psql} PGDATABASE=${PGDATABASE:-$name}
	mkdir -p build/bench
else
	[[ -z ${SERVER:-} && -z ${LOADED:-} ]] || {
		echo "bench: SERVER can only be \"running\", and a throw-away server has nothing loaded" >&2
		exit 2
	}
	# shellcheck source=test/lib/server.sh
	. test/lib/server.sh
	# shellcheck source=bench/server.sh
	. bench/server.sh
	bench_real_server
	export PSQL=$HGJ_BIN/psql PGDATABASE=$name
fi

if [[ ${LOADED:-} != yes ]]; then
	read -r -a psql <<<"$PSQL"
	if [[ $("${psql[@]}" -X -At -d postgres -c "SELECT count(*) FROM pg_database WHERE datname = '$PGDATABASE'") == 0 ]]; then
		"${psql[@]}" -X -q -d postgres -c "CREATE DATABASE \"$PGDATABASE\""
	fi
	bash bench/load.sh "$name" "$SF"
	echo
fi
status=0
perl bench/real.pl "$name" || status=1
if [[ ${SERVER:-} != running ]]; then
	hgj_server_stop
fi
exit "$status"
