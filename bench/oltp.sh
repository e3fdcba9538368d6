#!/usr/bin/env bash
#
# Statements that are none of our business: point joins, LIMIT 10, tables of a
# thousand rows.  With the library loaded they must not be slower.
#
#   bash bench/oltp.sh      with the extension's library installed
#   ROUNDS=15 COUNT=400 LIMIT=5
#   INSTRUCTIONS=yes        counts what the server process executes, under valgrind and without
#                           a client, and not its time: for machines on which others work
#
# Two throw-away servers with the same tables: one has the library in
# shared_preload_libraries, so that it keeps counters and progress in shared memory, and
# columns of all tables, which writers change under it; the other one knows nothing of it.
# Every statement runs COUNT times on each, ROUNDS times
# in turns; planning is part of every execution (the simple protocol).  What is
# taken is the server process's own CPU time: how long it had to wait for one is
# not ours to measure.  What counts is the median of the rounds' ratios.  More
# than LIMIT percent slower, in two tries, is a miss.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=test/lib/server.sh
. test/lib/server.sh
rounds=${ROUNDS:-15}
count=${COUNT:-400}
limit=${LIMIT:-5}
dir=$(mktemp -d)
hgj_at_exit "rm -rf '$dir'"

# Starts one, and makes the tables: prints nothing, and sets PGHOST.
start()
{
	hgj_server_start "shared_buffers = '256MB'" "autovacuum = off" "jit = off" "$@"
	hgj_psql <<'SQL'
CREATE SCHEMA bench; SET search_path = bench;
CREATE TABLE customer (id int PRIMARY KEY, name text, city int);
INSERT INTO customer SELECT i, 'name ' || i, i % 100 FROM generate_series(1, 20000) i;
CREATE TABLE orders (id int PRIMARY KEY, customer int REFERENCES customer, amount int);
INSERT INTO orders SELECT i, 1 + i * 7 % 20000, i % 1000 FROM generate_series(1, 100000) i;
CREATE INDEX ON orders (customer);
CREATE TABLE line (id int PRIMARY KEY, orders int REFERENCES orders, item int, n int);
INSERT INTO line SELECT i, 1 + i * 11 % 100000, i % 1000, i % 9 FROM generate_series(1, 300000) i;
CREATE INDEX ON line (orders);
CREATE TABLE city AS SELECT i AS id, 'city ' || i AS name, i % 10 AS region FROM generate_series(0, 999) i;
CREATE TABLE item AS SELECT i AS id, 'item ' || i AS name, i % 10 AS kind FROM generate_series(0, 999) i;
CREATE TABLE kind AS SELECT i AS id, 'kind ' || i AS name FROM generate_series(0, 999) i;
VACUUM ANALYZE;
SQL
}
start
stock=$PGHOST
start "shared_preload_libraries = 'hashgraph_join'" "hashgraph_join.column_memory = '64MB'"
ours=$PGHOST
# a page is all-visible once the commits of its rows are on disk, which no commit waits for here
hgj_psql -c "CHECKPOINT" -c "VACUUM" -c "CREATE EXTENSION hashgraph_join"
[[ $(hgj_psql -At -c "SELECT min(hashgraph_join_load(oid::regclass)) > 0 FROM pg_class WHERE relnamespace = 'bench'::regnamespace AND relkind = 'r'") == t ]] || {
	echo "bench: no columns are kept"
	exit 1
}
[[ $(hgj_psql -At -c "SELECT bool_and(shared) FROM hashgraph_join_stats()") == t ]] || {
	echo "bench: the library counts nothing in shared memory"
	exit 1
}

title=()
script()
{
	title+=("$1")
	cat >"$dir/${#title[@]}.sql"
}
script "point join of two by primary key" <<'SQL'
SELECT o.id, o.amount, c.name FROM bench.orders o JOIN bench.customer c ON o.customer = c.id WHERE o.id = :i;
SQL
script "point join of four" <<'SQL'
SELECT o.id, c.name, l.n, t.name FROM bench.orders o JOIN bench.customer c ON o.customer = c.id JOIN bench.line l ON l.orders = o.id JOIN bench.item t ON t.id = l.item WHERE o.id = :i;
SQL
script "LIMIT 10" <<'SQL'
SELECT o.id, o.amount, c.name FROM bench.orders o JOIN bench.customer c ON o.customer = c.id LIMIT 10;
SQL
script "ORDER BY a key LIMIT 10" <<'SQL'
SELECT o.id, o.amount, c.name FROM bench.orders o JOIN bench.customer c ON o.customer = c.id WHERE o.id > :i ORDER BY o.id LIMIT 10;
SQL
script "1,000 x 1,000, count" <<'SQL'
SELECT count(*) FROM bench.item i JOIN bench.kind k ON i.kind = k.id;
SQL
script "1,000 x 1,000, group by" <<'SQL'
SELECT k.name, count(*), sum(i.id) FROM bench.item i JOIN bench.kind k ON i.kind = k.id GROUP BY 1;
SQL
script "1,000 x 1,000, all rows" <<'SQL'
SELECT i.id, k.name FROM bench.item i JOIN bench.kind k ON i.kind = k.id;
SQL
script "six tables, a few rows" <<'SQL'
SELECT c.name, y.name, sum(l.n) FROM bench.customer c JOIN bench.city y ON c.city = y.id JOIN bench.orders o ON o.customer = c.id JOIN bench.line l ON l.orders = o.id JOIN bench.item t ON t.id = l.item JOIN bench.kind k ON k.id = t.kind WHERE c.id = :i GROUP BY 1, 2;
SQL
script "EXISTS by key" <<'SQL'
SELECT c.name FROM bench.customer c WHERE c.id BETWEEN :i AND :i + 5 AND NOT EXISTS (SELECT 1 FROM bench.orders o WHERE o.customer = c.id AND o.amount > 990);
SQL
script "UPDATE ... FROM by key" <<'SQL'
UPDATE bench.orders o SET amount = o.amount + 1 FROM bench.customer c WHERE o.customer = c.id AND o.id = :i;
SQL
script "UPDATE of a kept table" <<'SQL'
UPDATE bench.customer SET city = city + 1 WHERE id = :i;
SQL
script "INSERT into a kept table" <<'SQL'
INSERT INTO bench.city VALUES (:i, 'city', 1);
SQL
script "DELETE from a kept table" <<'SQL'
DELETE FROM bench.line WHERE id = :i;
SQL

# statements STATEMENT COUNT, each with another key
statements()
{
	awk -v count="$2" '{text = text $0 " "}
		END {for (n = 1; n <= count; n++) {line = text; gsub(":i", 1 + n * 7919 % 19000, line); print line}}' "$dir/$1.sql"
}

# once STATEMENT HOST: CPU milliseconds per execution
once()
{
	# the first few fill the caches of the new process
	statements "$1" $((count + 10)) |
		awk -v clock="SELECT split_part(pg_read_file('/proc/self/schedstat'), ' ', 1);" '
			NR == 1 {print "\\o /dev/null"}
			NR == 11 {print "\\o\n" clock "\n\\o /dev/null"}
			{print}
			END {print "\\o\n" clock}' |
		PGHOST=$2 PGOPTIONS="-c max_parallel_workers_per_gather=0" hgj_psql -At |
		awk -v count="$count" '{t[NR] = $1} END {if (NR != 2) exit 1; printf "%.5f\n", (t[2] - t[1]) / 1e6 / count}'
}

# instructions STATEMENT HOST: millions per execution, of a server that has been stopped
instructions()
{
	local n
	for n in 15 65; do
		statements "$1" "$n" |
			hgj_as_server valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null \
				"$HGJ_BIN/postgres" --single -D "$2/data" -c max_parallel_workers_per_gather=0 postgres 2>&1 >/dev/null |
			awk '/ refs: / {gsub(",", "", $NF); print $NF}'
	done | awk '{t[NR] = $1} END {if (NR != 2) exit 1; printf "%.5f\n", (t[2] - t[1]) / 1e6 / 50}'
}

# Prints the medians of both latencies, and of their ratio.
rounds_of()
{
	local n=$1 i a b
	for ((i = 0; i < rounds; i++)); do
		if ((i % 2)); then
			a=$(once "$n" "$stock")
			b=$(once "$n" "$ours")
		else
			b=$(once "$n" "$ours")
			a=$(once "$n" "$stock")
		fi
		echo "$a $b"
	done | awk '{a[NR] = $1; b[NR] = $2; r[NR] = $2 / $1}
		function median(v, n,   i, j, t) {
			for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j] < v[j - 1]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
			return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2 }
		END {printf "%.4f %.4f %.4f\n", median(a, NR), median(b, NR), median(r, NR)}'
}

status=0
unit=ms
tries="1 2"
if [[ -n ${INSTRUCTIONS:-} ]]; then
	command -v valgrind >/dev/null || {
		echo "bench: INSTRUCTIONS needs valgrind"
		exit 1
	}
	unit=Minstr
	tries=1
	for host in "$stock" "$ours"; do
		hgj_as_server "$HGJ_BIN/pg_ctl" -D "$host/data" -m fast -w stop >/dev/null
	done
	rounds_of()
	{
		local a b
		a=$(instructions "$1" "$stock")
		b=$(instructions "$1" "$ours")
		awk -v a="$a" -v b="$b" 'BEGIN {print a, b, b / a}'
	}
fi
printf '%-36s %9s %9s %8s  %s\n' statement "stock $unit" "ours $unit" slower verdict
for n in $(seq ${#title[@]}); do
	for try in $tries; do
		read -r a b ratio < <(rounds_of "$n")
		verdict=ok
		awk -v r="$ratio" -v l="$limit" 'BEGIN {exit !(r > 1 + l / 100)}' || break
		verdict="MISSED: more than $limit% slower"
	done
	[[ $verdict == ok ]] || status=1
	printf '%-36s %9.3f %9.3f %7.1f%%  %s\n' "${title[n - 1]}" "$a" "$b" \
		"$(awk -v r="$ratio" 'BEGIN {print (r - 1) * 100}')" "$verdict"
done
exit "$status"
