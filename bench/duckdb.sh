#!/usr/bin/env bash
#
# make bench-duckdb NAME=tpch|ssb: the queries of TPC-H or of the Star Schema Benchmark
# in stock PostgreSQL, in ours, and in DuckDB, on the same rows.
#
# 1. bench/real.sh's measurement: stock and chosen, without workers, or with as many as there
#    are threads.
# 2. The tables are written out as PostgreSQL has them, and DuckDB reads them into its
#    memory (char(n) without the blanks at its end, as DuckDB has none; without keys).
# 3. bench/duckdb.js runs the queries there, with as many threads as PostgreSQL had
#    processes, compares each answer with stock's, and prints times and ratios.
#
# DuckDB comes from npm (@duckdb/node-api), into a folder outside the tree; it needs
# node, npm and, the first time, a network.
#
#   THREADS="1 2"          processes of PostgreSQL, and threads of DuckDB
#   SF, RUNS, QUERIES, WORK_MEM, TIMEOUT, JOBS, EXTRA, SERVER, LOADED   as for bench/real.sh
#   DUCKDB_VERSION=1.5.6-r.1
#
# All figures stand in build/bench/tpch-duckdb.tsv or ssb-duckdb.tsv.  A wrong answer or
# an error makes the exit status non-zero.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
name=${1:-}
[[ -f bench/$name/generate.c ]] || {
	echo "usage: $0 tpch|ssb" >&2
	exit 2
}
export SF=${SF:-1} RUNS=${RUNS:-3} THREADS=${THREADS:-1 2} MODES="stock chosen"
version=${DUCKDB_VERSION:-1.5.6-r.1}
for program in node npm; do
	command -v "$program" >/dev/null || {
		echo "bench: there is no $program, which DuckDB's package needs" >&2
		exit 1
	}
done
WORKERS=
for threads in $THREADS; do
	WORKERS+="$((threads == 1 ? 0 : threads)) "
done
export WORKERS

# ---- DuckDB

# shellcheck source=test/lib/cache.sh
. test/lib/cache.sh
duckdb=$HGJ_CACHE/duckdb-$version
if [[ ! -d $duckdb/node_modules/@duckdb/node-api ]]; then
	mkdir -p "$duckdb"
	echo '{"private": true}' >"$duckdb/package.json"
	npm install --prefix "$duckdb" --no-audit --no-fund --loglevel=error "@duckdb/node-api@$version"
fi

# ---- PostgreSQL

# shellcheck source=test/lib/server.sh
. test/lib/server.sh
if [[ ${SERVER:-} != running ]]; then
	# shellcheck source=bench/server.sh
	. bench/server.sh
	bench_real_server
	export PSQL=$HGJ_BIN/psql SERVER=running
fi
export PSQL=${PSQL:-psql} PGDATABASE=${PGDATABASE:-$name}
if [[ $PGDATABASE == postgres ]]; then
	PGDATABASE=$name
fi
status=0
bash bench/real.sh "$name" || status=1
echo

# ---- the same rows for DuckDB

read -r -a psql <<<"$PSQL"
psql+=(-X -q -At -v ON_ERROR_STOP=1)
rows=$(mktemp -d "${TMPDIR:-/tmp}/hgj-duckdb.XXXXXX")
hgj_at_exit "rm -rf '$rows'"
for table in $(sed -n 's/^CREATE TABLE \([a-z_]*\) (.*/\1/p' "bench/$name/tables.sql"); do
	columns=$("${psql[@]}" -c "SELECT string_agg(CASE WHEN atttypid = 'bpchar'::regtype THEN format('rtrim(%I) AS %1\$I', attname)
		ELSE quote_ident(attname) END, ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = '$table'::regclass AND attnum > 0")
	"${psql[@]}" -c "\\copy (SELECT $columns FROM $table) TO '$rows/$table.csv' (FORMAT csv, HEADER)"
done
NODE_PATH=$duckdb/node_modules node bench/duckdb.js "$name" "$rows" || status=1
exit "$status"
