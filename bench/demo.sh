#!/usr/bin/env bash
#
# make demo: the same joins, with PostgreSQL's own hash join and through
# HashGraphJoin, on a throw-away server.  Nobody forces the planner: with the
# extension loaded it chooses by cost.  It ends with a chart, and with what ran where.
#
#   FACT_ROWS=5000000 DIM_ROWS=1000000 PGBENCH_SCALE=20
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=test/lib/server.sh
. test/lib/server.sh

fact_rows=${FACT_ROWS:-5000000}
dim_rows=${DIM_ROWS:-1000000}
scale=${PGBENCH_SCALE:-20}
begun=$SECONDS

say()
{
	printf '\n==== %s\n\n' "$*"
}

bash test/setup.sh build
mkdir -p build
echo "building and installing hashgraph_join ..."
if ! hgj_install with_cuda=no >build/demo-build.log 2>&1; then
	tail -n 40 build/demo-build.log
	echo "demo: the build failed: see build/demo-build.log" >&2
	exit 1
fi
echo "starting a throw-away PostgreSQL $("$(hgj_pg_config)" --version | sed 's/^PostgreSQL //') ..."
hgj_server_start "shared_buffers = '2GB'" "wal_level = minimal" "max_wal_senders = 0" \
	"autovacuum = off" "checkpoint_timeout = '1h'"

# The same for both ways of joining.
settings="SET work_mem = '512MB'; SET max_parallel_workers_per_gather = 0; SET jit = off;"

# Milliseconds and result of a query: the median of three after one for warmth.
timed()
{
	local enabled=$1 query=$2 out
	out=$(hgj_psql -At <<-SQL
		LOAD 'hashgraph_join';
		$settings
		SET hashgraph_join.enabled = $enabled;
		$query
		\\timing on
		$query
		$query
		$query
	SQL
	)
	answer=$(grep -v '^Time: ' <<<"$out" | sort -u)
	millis=$(sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' <<<"$out" | sort -n | sed -n 2p)
}

plan()
{
	hgj_psql -At <<-SQL
		LOAD 'hashgraph_join';
		$settings
		SET hashgraph_join.enabled = $1;
		EXPLAIN (ANALYZE, COSTS OFF) $2
	SQL
}

# Which nodes of ours a plan has, and what they ran on.
ran_where()
{
	local nodes engines
	nodes=$(grep -o 'HashGraph[A-Z][a-z]*' <<<"$1" | sort | uniq -c | awk '{print $1 " " $2}' | paste -sd, | sed 's/,/, /g')
	engines=$(sed -n 's/^ *Engine: //p' <<<"$1" | sort -u | paste -sd, | sed 's/,/ and /g')
	echo "$nodes, engine $engines, $(grep -c 'Source: pages' <<<"$1") sides read by pages"
}

# compare NAME QUERY
compare()
{
	local name=$1 query=$2 stock_plan our_plan stock_answer stock_millis
	echo "$query"
	say "PostgreSQL's own plan"
	stock_plan=$(plan off "$query")
	echo "$stock_plan"
	say "With hashgraph_join"
	our_plan=$(plan on "$query")
	echo "$our_plan"
	if ! grep -q 'Custom Scan (HashGraphJoin)' <<<"$our_plan"; then
		echo "demo: the planner did not choose HashGraphJoin" >&2
		exit 1
	fi
	timed off "$query"
	stock_answer=$answer stock_millis=$millis
	timed on "$query"
	if [[ $answer != "$stock_answer" || -z $answer ]]; then
		printf 'demo: the answers differ\nstock:\n%s\nhashgraph_join:\n%s\n' \
			"$stock_answer" "$answer" >&2
		exit 1
	fi
	printf '\nanswers agree: %s\n' "$answer"
	awk -v a="$stock_millis" -v b="$millis" 'BEGIN {
		printf "PostgreSQL %.0f ms, HashGraphJoin %.0f ms: %.2f times as fast\n", a, b, a / b }'
	figures+="$name"$'\t'"$stock_millis"$'\t'"$millis"$'\n'
	where+="  $name: $(ran_where "$our_plan")"$'\n'
}
figures='' where=''

say "A star: $fact_rows fact rows, $dim_rows dimension rows, sparse keys"
hgj_psql <<SQL
CREATE EXTENSION hashgraph_join;
CREATE UNLOGGED TABLE dim (k bigint NOT NULL, name text);
INSERT INTO dim SELECT i * 2654435761, 'name ' || i FROM generate_series(1, $dim_rows) i;
CREATE UNLOGGED TABLE fact (k bigint NOT NULL, v int NOT NULL);
SELECT setseed(0.5) \\g /dev/null
INSERT INTO fact
	SELECT (1 + floor(random() * $dim_rows))::bigint * 2654435761, i % 1000
	FROM generate_series(1, $fact_rows) i;
VACUUM ANALYZE dim, fact;
SQL
compare "a star" "SELECT count(*), sum(f.v) FROM fact f JOIN dim d USING (k);"

say "pgbench -i -s $scale, and a history with a row for every account"
"$HGJ_BIN/pgbench" -i -s "$scale" -q >build/demo-pgbench.log 2>&1 || {
	tail -n 20 build/demo-pgbench.log
	exit 1
}
hgj_psql <<SQL
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime)
	SELECT 1 + i % (10 * $scale), 1 + i % $scale, 1 + i * 7919::bigint % ($scale * 100000),
		i % 10000 - 5000, '2026-01-01'
	FROM generate_series(1, $scale * 100000) i;
VACUUM ANALYZE pgbench_history, pgbench_accounts;
SQL
compare "pgbench's tables" "SELECT count(*), sum(h.delta), sum(a.abalance) FROM pgbench_history h JOIN pgbench_accounts a USING (aid);"

say "How many times as fast, and what ran where"
printf '%s' "$figures" | perl bench/figures.pl bars
printf '\nIn one process of PostgreSQL %s, on %s:\n%s' "$("$(hgj_pg_config)" --version | sed 's/^PostgreSQL //')" \
	"$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$where"

printf '\ndemo done in %d s\n' $((SECONDS - begun))
