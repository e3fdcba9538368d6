#!/usr/bin/env bash
#
# Beside TimescaleDB, whose hypertables are tables with children that it reads through nodes of
# its own: every answer is that with hashgraph_join.enabled = off, as planned by costs, forced,
# in workers, and from columns that are kept in memory.
#
#   test/timescaledb/run.sh
#
# PGHOST and so on name a throw-away server (as a superuser) that preloads both libraries, and
# keeps no columns but those that it is asked for (hashgraph_join.column_loading); PG_CONFIG is
# its PostgreSQL's.
#
# A test is a query in one way.  That a node of ours stands above TimescaleDB's, and where a
# table of ours is not to be read, is looked at in plans.  Debian's package has no compression,
# which is not free software: test/t/036_other_extensions.pl has an extension that replaces a
# table's paths as compressed chunks do.  A TimescaleDB that has it is tested with compressed
# chunks as well.  The last line is `N passed, N failed`.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
config=$(bash test/pg_config.sh)
bin=$("$config" --bindir)
out=$PWD/build/timescaledb
rm -rf "$out"
mkdir -p "$out"

declare -A settings=(
	[stock]="hashgraph_join.enabled=off max_parallel_workers_per_gather=0"
	[planned]="max_parallel_workers_per_gather=0"
	[forced]="max_parallel_workers_per_gather=0 hashgraph_join.force=on"
	[workers]="max_parallel_workers_per_gather=2 parallel_setup_cost=0 parallel_tuple_cost=0 min_parallel_table_scan_size=0 min_parallel_index_scan_size=0 hashgraph_join.force=on hashgraph_join.processors=64"
	[partitions]="max_parallel_workers_per_gather=0 enable_partitionwise_join=on enable_partitionwise_aggregate=on hashgraph_join.force=on"
)

# shellcheck source=test/lib/results.sh
. test/lib/results.sh

# check NAME STATUS
check()
{
	if (($2 == 0)); then ok "$1"; else not_ok "$1"; fi
}

psql()
{
	"$bin/psql" -X -q -At -d timescale "$@"
}

# by WAY PSQL-ARGUMENT ...
by()
{
	local pair options=
	for pair in ${settings[$1]}; do
		options+=" -c $pair"
	done
	shift
	PGOPTIONS="$options -c jit=off -c hashgraph_join.min_rows=1000" psql "$@"
}

# Queries whose answers are the same at any time: now() only where all rows are new enough.
queries=(
	"SELECT count(*), sum(val) FROM metrics"
	"SELECT count(*), sum(val) FROM metrics WHERE time >= '2024-01-03' AND time < '2024-01-15 12:00'"
	"SELECT count(*) FROM metrics m JOIN devices d USING (device_id) WHERE m.time > now() - interval '3650 days'"
	"SELECT count(*), sum(m.val), sum(d.weight) FROM metrics m JOIN devices d USING (device_id)"
	"SELECT d.site, count(*), sum(m.val), max(m.time) FROM metrics m JOIN devices d USING (device_id) GROUP BY 1 ORDER BY 1"
	"SELECT time_bucket('2 days', time), count(*), sum(val), first(val, time) FROM metrics WHERE device_id = 7919 GROUP BY 1 ORDER BY 1"
	"SELECT time_bucket('5 days', m.time), d.site, count(*), sum(m.val) FROM metrics m JOIN devices d USING (device_id) GROUP BY 1, 2 ORDER BY 1, 2"
	"SELECT device_id, count(*) FROM metrics GROUP BY 1 HAVING count(*) > 2 ORDER BY 1 LIMIT 50"
	"SELECT m.time, m.device_id, m.val FROM metrics m JOIN devices d USING (device_id) WHERE d.site = 3 ORDER BY 1, 2, 3 LIMIT 40"
	"SELECT count(*), sum(weight) FROM devices d WHERE EXISTS (SELECT 1 FROM metrics m WHERE m.device_id = d.device_id AND m.time < '2024-01-08')"
	"SELECT count(*), sum(weight) FROM devices d WHERE NOT EXISTS (SELECT 1 FROM metrics m WHERE m.device_id = d.device_id AND m.time < '2024-01-08')"
	"SELECT count(*), sum(m.val), count(d.device_id) FROM devices d LEFT JOIN metrics m ON m.device_id = d.device_id AND m.val < 300"
	"SELECT count(*), sum(m.val), sum(d.weight) FROM devices d FULL JOIN metrics m ON m.device_id = d.device_id + 100"
	"SELECT count(*), sum(a.val), sum(b.val) FROM metrics a JOIN metrics b ON a.device_id = b.device_id AND a.time = b.time + interval '1 day'"
	"SELECT count(*), sum(m.val), sum(s.val) FROM metrics m JOIN spaces s USING (device_id) JOIN devices d USING (device_id) WHERE d.site < 5"
	"SELECT count(*), sum(val), count(DISTINCT device_id) FROM spaces"
	"SELECT count(*), sum(m.val) FROM metrics m JOIN (SELECT min(time) AS t FROM metrics) x ON m.time >= x.t + interval '15 days' JOIN devices d USING (device_id)"
	"WITH sites AS MATERIALIZED (SELECT site, min(device_id) AS device_id FROM devices GROUP BY 1) SELECT count(*), sum(m.val) FROM sites JOIN metrics m USING (device_id)"
	"PREPARE recent(timestamptz) AS SELECT count(*), sum(m.val) FROM metrics m JOIN devices d USING (device_id) WHERE m.time > \$1; EXECUTE recent('2024-01-10'); SET plan_cache_mode = force_generic_plan; EXECUTE recent('2024-01-05'); EXECUTE recent('2024-01-18')"
	"BEGIN; UPDATE metrics m SET val = val + 1 FROM devices d WHERE d.device_id = m.device_id AND d.site = 2; DELETE FROM metrics m USING devices d WHERE d.device_id = m.device_id AND d.site = 4; INSERT INTO metrics SELECT m.time, d.device_id, 7 FROM metrics m JOIN devices d ON d.device_id = m.device_id + 1 WHERE d.site = 6; SELECT count(*), sum(val) FROM metrics; SELECT count(*), sum(m.val) FROM metrics m JOIN devices d USING (device_id); ROLLBACK"
)

# In one session.
answers()
{
	local way=$1 to=$2 i
	mkdir -p "$to"
	for i in "${!queries[@]}"; do
		printf '%s\n' "\\o $to/$i" "${queries[i]};" "\\o"
	done >"$to.sql"
	by "$way" -f "$to.sql" >"$to.log" 2>&1 || true
}

# all_ways WHAT: every query in every way, against stock at the same time.
all_ways()
{
	local what=$1 way i name
	answers stock "$out/$what.stock"
	for i in "${!queries[@]}"; do
		[[ -s $out/$what.stock/$i ]] || not_ok "$what: stock has no answer: ${queries[i]}"
	done
	check "$what: stock's answers are no errors" "$(grep -c 'ERROR\|FATAL\|server closed' "$out/$what.stock.log")"
	sed 's/^/# /' "$out/$what.stock.log" | head -n 5
	for way in planned forced workers partitions; do
		answers "$way" "$out/$what.$way"
		for i in "${!queries[@]}"; do
			name="$what, $way: ${queries[i]}"
			if cmp -s "$out/$what.stock/$i" "$out/$what.$way/$i"; then
				ok "$name"
			else
				not_ok "$name"
				diff "$out/$what.stock/$i" "$out/$what.$way/$i" 2>&1 | head -n 10
			fi
		done
		sed 's/^/# /' "$out/$what.$way.log" | head -n 10
	done
}

# plan WAY QUERY: its plan, on one line.
plan()
{
	by "$1" -c "EXPLAIN (COSTS OFF) $2" 2>&1 | tr '\n' ' '
}

# has TEXT PATTERN NAME
has()
{
	if [[ $1 =~ $2 ]]; then
		ok "$3"
	else
		not_ok "$3"
		echo "# $1" | cut -c1-600
	fi
}

if [[ ! -e $("$config" --pkglibdir)/timescaledb.so ]]; then
	not_ok "TimescaleDB is installed: Debian has a package of it for PostgreSQL 17 and 18"
	echo "$passed passed, $failed failed"
	exit 1
fi

"$bin/psql" -X -q -d postgres -c "CREATE DATABASE timescale TEMPLATE template0" || exit 1
psql -v ON_ERROR_STOP=1 <<'SQL' || { echo "0 passed, 1 failed"; exit 1; }
SET client_min_messages = warning;
CREATE EXTENSION timescaledb;
CREATE EXTENSION hashgraph_join;
CREATE TABLE metrics (time timestamptz NOT NULL, device_id int NOT NULL, val int NOT NULL);
SELECT FROM create_hypertable('metrics', 'time', chunk_time_interval => interval '1 day');
INSERT INTO metrics
SELECT timestamptz '2024-01-01 00:00:00+00' + i % 20 * interval '1 day' + i / 20 % 1440 * interval '1 minute', i * 7919 % 20000, i % 1000
FROM generate_series(0, 59999) i;
CREATE TABLE spaces (time timestamptz NOT NULL, device_id int NOT NULL, val int NOT NULL);
SELECT FROM create_hypertable('spaces', 'time', 'device_id', 3, chunk_time_interval => interval '10 days');
INSERT INTO spaces
SELECT timestamptz '2024-01-01 00:00:00+00' + i % 20 * interval '1 day', i % 20000, i % 1000
FROM generate_series(0, 29999) i;
CREATE TABLE devices AS SELECT i AS device_id, i % 10 AS site, i % 97 AS weight FROM generate_series(0, 19999) i;
CREATE INDEX ON devices (device_id);
SQL
psql -c "VACUUM ANALYZE"
chunks=$(psql -c "SELECT count(*) FROM show_chunks('metrics')")
echo "# TimescaleDB $(psql -c "SELECT extversion, current_setting('timescaledb.license') FROM pg_extension WHERE extname = 'timescaledb'"), $chunks chunks"
check "the hypertable has 20 chunks" $((chunks != 20))

join=${queries[3]} recent=${queries[2]}
has "$(plan planned "$recent")" 'HashGraphJoin.*Custom Scan \(ChunkAppend\) on metrics' "a join of ours reads a node of TimescaleDB's"
has "$(plan forced "$join")" 'HashGraphJoin' "a join of ours reads the chunks"
has "$(by forced -c "SELECT string_agg(node, ' ') FROM hashgraph_join_why(\$\$$recent\$\$)")" 'HashGraphJoin.*ChunkAppend' "hashgraph_join_why() of it"
all_ways rows

# Columns of every chunk.
psql -o /dev/null -c "SELECT hashgraph_join_load(c) FROM show_chunks('metrics') c UNION ALL SELECT hashgraph_join_load(c) FROM show_chunks('spaces') c UNION ALL SELECT hashgraph_join_load('devices')"
has "$(psql -c "SELECT count(DISTINCT tab) >= 21 FROM hashgraph_join_columns" 2>&1)" '^t$' "columns of the chunks are kept"
all_ways kept

# Compressed chunks, with some rows that have come later.
if compress=$(psql -v ON_ERROR_STOP=1 -c "ALTER TABLE metrics SET (timescaledb.compress, timescaledb.compress_segmentby = 'device_id')" 2>&1); then
	psql -v ON_ERROR_STOP=1 -o /dev/null -c "SELECT compress_chunk(c) FROM show_chunks('metrics') c" -c "INSERT INTO metrics SELECT timestamptz '2024-01-02 12:00+00', i, 5 FROM generate_series(0, 999) i"
	check "chunks are compressed" $?
	all_ways compressed
	psql -c "VACUUM ANALYZE"
	all_ways compressed_and_analyzed
else
	echo "# no compressed chunks are tested: $compress"
fi

check "the server is there to the end" "$(psql -c "SELECT 0" || echo 1)"
echo "$passed passed, $failed failed"
((failed == 0))
