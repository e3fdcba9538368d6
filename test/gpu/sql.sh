#!/usr/bin/env bash
#
# SQL through the CUDA engine, on the GPU host, where ../shared/gpu-host/setup.sh
# has made a server (PGBIN, PGX, PGSU are set) and this tree is installed:
#
#   test/gpu/sql.sh regress [FILE ...]
#                                pg_regress with hashgraph_join.engine = cuda: only lines that
#                                name the engine and its memory may differ
#   test/gpu/sql.sh bench        Q1 and Q2 over fact and dim, and stock beside them
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
q="$PGX $PGBIN/psql -X -q"

regress()
{
	local tests dir=/pg/regress ok=0 bad=0
	tests=${*:-$(cd sql && ls *.sql | grep -v -- '--' | sed 's/\.sql$//' | grep -vx setup)}
	mkdir -p $dir && chown postgres $dir && chmod -R a+rX . && chmod a+rx "$PWD"
	$PGSU PGOPTIONS='-c hashgraph_join.engine=cuda' "$PGBIN/../lib/pgxs/src/test/regress/pg_regress" \
		--inputdir="$PWD" --outputdir=$dir --bindir="$PGBIN" --host=/pg --user=postgres \
		--dbname=regress_hgj --load-extension=hashgraph_join setup $tests 2>&1 | grep '^test '
	for t in setup $tests; do
		# What names an engine, its memory, or its choices is its own affair.
		if diff <(filter "expected/$t.out") <(filter "$dir/results/$t.out") >"$dir/$t.diff"; then
			ok=$((ok + 1))
		else
			bad=$((bad + 1))
			echo "not ok - $t"
			head -n "${HGJ_DIFF_LINES:-12}" "$dir/$t.diff"
		fi
	done
	echo "$ok passed, $bad failed"
}

filter()
{
	grep -vE 'Engine: |Build: .* Probe: |Vertices: |Memory Usage|Fallback|^-+(\+-+)*$|QUERY PLAN|^\(([0-9]+) rows?\)$|hashgraph_join\.engine' "$1" | sed 's/ *$//'
}

bench()
{
	local q1="select count(*), sum(f.v) from fact f join dim d using (k)"
	local q2="select d.g, count(*), sum(f.v) from fact f join dim d using (k) group by d.g"
	for sql in "$q1" "$q2"; do
		echo "== $sql"
		echo "stock, 15 workers"
		timed "set hashgraph_join.enabled = off; set max_parallel_workers_per_gather = 15; set min_parallel_table_scan_size = 0; set parallel_tuple_cost = 0; set parallel_setup_cost = 0;" "$sql"
		for engine in cpu cuda; do
			echo "hashgraph_join, one process, $engine"
			timed "set max_parallel_workers_per_gather = 0; set hashgraph_join.force = on; set hashgraph_join.engine = $engine;" "$sql"
		done
	done
	$q -c "load 'hashgraph_join'" -c "set max_parallel_workers_per_gather = 0; set hashgraph_join.force = on; set hashgraph_join.engine = cuda" \
		-c "$q1" -c "explain (analyze, costs off, timing off) $q1"
}

# Times of four runs in one session, the first one apart; then the answer's checksum.
timed()
{
	$q -At -c "load 'hashgraph_join'" -c "$1" -c '\timing on' -c "select md5(string_agg(x::text, ',' order by x::text)) from ($2) x" \
		-c "select md5(string_agg(x::text, ',' order by x::text)) from ($2) x" \
		-c "select md5(string_agg(x::text, ',' order by x::text)) from ($2) x" \
		-c "select md5(string_agg(x::text, ',' order by x::text)) from ($2) x" 2>&1 | paste -sd' '
}

"$@"
