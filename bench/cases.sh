# shellcheck shell=bash disable=SC2034
#
# The benchmark's cases, in order.  Each is
#
#   define NAME BAR
#   case_NAME() { title=...; tables=...; query=...; [options] }
#
# BAR      what the ratio has to be at 20,000,000 rows; 0: no bar of its own
# tables   SQL that makes the tables; made once for neighbours with the same text
# query    what is timed
# check    a query whose answer stands for the result of `query`, where that
#          gives none (COPY TO '/dev/null'); without one, query's own answer
# ours     settings of our side
# base     settings of the other side, if that is not stock PostgreSQL
# wants    what our plan must show, a regular expression
# small    yes: too small for our node, which should not be chosen
#
# N is the number of fact rows.  A sparse key is a counter times an odd number,
# so that keys are far apart and distinct; sparse4 wraps into int4.

SPARSE8='2654435761'

sparse4()
{
	echo "(($1) * 2654435761 % 4294967296 - 2147483648)::int4"
}

# A fact table over a dimension: star FACT_ROWS DIM_ROWS KEY_OF(i) TYPE [SPAN]
# SPAN: fact keys come from 1..SPAN; above DIM_ROWS they have no match.
star()
{
	local fact=$1 dim=$2 key=$3 type=$4 span=${5:-$2}
	cat <<-SQL
		CREATE UNLOGGED TABLE dim (k $type NOT NULL, g int NOT NULL, w int NOT NULL);
		INSERT INTO dim SELECT $key, i % 1000, i % 77 FROM generate_series(1::bigint, $dim) i;
		CREATE UNLOGGED TABLE fact (k $type NOT NULL, v int NOT NULL);
		INSERT INTO fact SELECT $key, n % 1000
			FROM (SELECT 1 + floor(random() * $span)::bigint AS i, n
				FROM generate_series(1::bigint, $fact) n) s;
	SQL
}

# The same, and dimensions that have some of the fact table's keys only.
star_and_parts()
{
	star "$@"
	cat <<-SQL
		CREATE UNLOGGED TABLE dim_half AS SELECT * FROM dim LIMIT (SELECT count(*) / 2 FROM dim);
		CREATE UNLOGGED TABLE dim_tenth AS SELECT * FROM dim LIMIT (SELECT count(*) / 10 FROM dim);
	SQL
}

big_sparse() { star_and_parts "$N" $((N / 2)) "$(sparse4 i)" int; }
big_dense() { star "$N" $((N / 2)) i::int int; }
sparse() { star_and_parts "$N" $((N / 20)) "$(sparse4 i)" int; }
dense() { star "$N" $((N / 20)) i::int int; }

Q1="SELECT count(*), sum(f.v) FROM fact f JOIN dim d USING (k)"
Q2="SELECT d.g, count(*), sum(f.v) FROM fact f JOIN dim d USING (k) GROUP BY 1 ORDER BY 1"
Q3="SELECT count(*), sum(f.v) FROM fact f JOIN dim d USING (k) WHERE d.g < 10"
ONE_WORKER="SET max_parallel_workers_per_gather = 1; SET parallel_leader_participation = on;"

CASES_ALL=()
declare -A BAR
define()
{
	CASES_ALL+=("$1")
	BAR[$1]=$2
}

# ---- the table of issue 3

define q1_big_sparse 15
case_q1_big_sparse()
{
	title="Q1, sparse keys, dim $((N / 2))"
	tables=$(big_sparse)
	query=$Q1
}

define q2_big_sparse 15
case_q2_big_sparse()
{
	title="Q2 (group by d.g), sparse, dim $((N / 2))"
	tables=$(big_sparse)
	query=$Q2
}

define q1_hits 15
case_q1_hits()
{
	title="Q1, 10% hits, sparse, dim $((N / 20))"
	tables=$(big_sparse)
	query=${Q1/dim d/dim_tenth d}
}

define tuples_big_sparse 4
case_tuples_big_sparse()
{
	title="Q1 by the tuples source, dim $((N / 2))"
	tables=$(big_sparse)
	query=$Q1
	ours="SET hashgraph_join.source = tuples; SET hashgraph_join.aggregate = off;"
	wants='Outer Source: tuples'
}

define q1_big_dense 30
case_q1_big_dense()
{
	title="Q1, dense keys, dim $((N / 2))"
	tables=$(big_dense)
	query=$Q1
}

define q2_big_dense 30
case_q2_big_dense()
{
	title="Q2 (group by d.g), dense, dim $((N / 2))"
	tables=$(big_dense)
	query=$Q2
}

define q1_sparse 15
case_q1_sparse()
{
	title="Q1, sparse keys, dim $((N / 20))"
	tables=$(sparse)
	query=$Q1
}

define q2_sparse 15
case_q2_sparse()
{
	title="Q2 (group by d.g), sparse, dim $((N / 20))"
	tables=$(sparse)
	query=$Q2
}

define q3_sparse 6
case_q3_sparse()
{
	title="Q3 (where d.g < 10), sparse, dim $((N / 20))"
	tables=$(sparse)
	query=$Q3
}

define left_count 12
case_left_count()
{
	title="left join, counts, half match"
	tables=$(sparse)
	query="SELECT count(*), count(d.k) FROM fact f LEFT JOIN dim_half d USING (k)"
}

define anti_count 12
case_anti_count()
{
	title="anti join, count, half match"
	tables=$(sparse)
	query="SELECT count(*) FROM fact f WHERE NOT EXISTS (SELECT 1 FROM dim_half d WHERE d.k = f.k)"
}

define tuples_sparse 4
case_tuples_sparse()
{
	title="Q1 by the tuples source, dim $((N / 20))"
	tables=$(sparse)
	query=$Q1
	ours="SET hashgraph_join.source = tuples; SET hashgraph_join.aggregate = off;"
	wants='Outer Source: tuples'
}

define q1_worker 1.6
case_q1_worker()
{
	title="Q1, one worker against none, dim $((N / 20))"
	tables=$(sparse)
	query=$Q1
	base="SET hashgraph_join.enabled = on;"
	ours=$ONE_WORKER
	wants='Gather.*HashGraphJoin'
}

define q1_dense 30
case_q1_dense()
{
	title="Q1, dense keys, dim $((N / 20))"
	tables=$(dense)
	query=$Q1
}

define q2_dense 30
case_q2_dense()
{
	title="Q2 (group by d.g), dense, dim $((N / 20))"
	tables=$(dense)
	query=$Q2
}

define text_key 7
case_text_key()
{
	title="Q1, text keys, $((N / 2)) x $((N / 20))"
	tables=$(star $((N / 2)) $((N / 20)) "'customer-' || i * 7919" text)
	query=$Q1
}

define q4_rows 3.5
case_q4_rows()
{
	title="Q4, all rows (COPY), dim $((N / 20))"
	tables=$(
		cat <<-SQL
			CREATE UNLOGGED TABLE dim (k int NOT NULL, g int NOT NULL);
			INSERT INTO dim SELECT $(sparse4 i), i % 1000 FROM generate_series(1::bigint, $((N / 20))) i;
			CREATE UNLOGGED TABLE fact (id int NOT NULL, k int NOT NULL, v int NOT NULL);
			INSERT INTO fact SELECT n, $(sparse4 i), n % 1000
				FROM (SELECT 1 + floor(random() * $((N / 20)))::bigint AS i, n
					FROM generate_series(1::bigint, $N) n) s;
		SQL
	)
	query="COPY (SELECT f.id, f.v, d.g FROM fact f JOIN dim d USING (k)) TO '/dev/null'"
	check="SELECT count(*), sum(hashint8extended(f.id::int8 * 1000000 + f.v * 1000 + d.g, 0)::numeric) FROM fact f JOIN dim d USING (k)"
}

# Four dimensions of 1,000 to N / 20 rows, the largest with sparse keys.
star4()
{
	cat <<-SQL
		CREATE UNLOGGED TABLE customer (k int NOT NULL, segment int NOT NULL);
		INSERT INTO customer SELECT $(sparse4 i), i % 10 FROM generate_series(1::bigint, $((N / 20))) i;
		CREATE UNLOGGED TABLE product (k int NOT NULL, category int NOT NULL);
		INSERT INTO product SELECT i, i % 25 FROM generate_series(1, $((N / 200))) i;
		CREATE UNLOGGED TABLE store (k int NOT NULL, region int NOT NULL);
		INSERT INTO store SELECT i, i % 7 FROM generate_series(1, 10000) i;
		CREATE UNLOGGED TABLE day (k int NOT NULL, month int NOT NULL);
		INSERT INTO day SELECT i, i / 30 FROM generate_series(1, 1000) i;
		CREATE UNLOGGED TABLE sales (customer int NOT NULL, product int NOT NULL, store int NOT NULL, day int NOT NULL, amount int NOT NULL);
		INSERT INTO sales SELECT $(sparse4 c), 1 + (r * $((N / 200)))::int % $((N / 200)), 1 + (r * 70000)::int % 10000, 1 + n % 1000, n % 500
			FROM (SELECT 1 + floor(random() * $((N / 20)))::bigint AS c, random() AS r, n::int
				FROM generate_series(1::bigint, $N) n) s;
	SQL
}
STAR="SELECT p.category, t.region, count(*), sum(s.amount) FROM sales s
	JOIN customer c ON s.customer = c.k JOIN product p ON s.product = p.k
	JOIN store t ON s.store = t.k JOIN day d ON s.day = d.k
	GROUP BY 1, 2 ORDER BY 1, 2"

define star_4 10
case_star_4()
{
	title="star, 4 dimensions, group by two"
	tables=$(star4)
	query=$STAR
}

define star_worker 1.6
case_star_worker()
{
	title="star, one worker against none"
	tables=$(star4)
	query=$STAR
	base="SET hashgraph_join.enabled = on;"
	ours=$ONE_WORKER
	wants='Gather.*HashGraphJoin'
}

define star_filters 0
case_star_filters()
{
	title="star, filters on three dimensions"
	tables=$(star4)
	query="SELECT d.month, count(*), sum(s.amount), min(s.amount), max(s.amount) FROM sales s
		JOIN customer c ON s.customer = c.k JOIN product p ON s.product = p.k
		JOIN store t ON s.store = t.k JOIN day d ON s.day = d.k
		WHERE c.segment IN (1, 4, 7) AND p.category < 12 AND t.region <> 3 GROUP BY 1 ORDER BY 1"
}

# Orders have four lines on average; prices are numeric(15,2), as in TPC-H.
tpch()
{
	cat <<-SQL
		CREATE UNLOGGED TABLE orders (o_orderkey int NOT NULL, o_custkey int NOT NULL, o_totalprice numeric(15,2) NOT NULL,
			o_orderdate date NOT NULL, o_orderpriority char(15) NOT NULL);
		INSERT INTO orders SELECT i * 8 + i % 7, i % 9973, (i % 500000) / 3.0, date '1992-01-01' + i % 2400,
			(ARRAY['1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW'])[1 + i * 7 % 5]
			FROM generate_series(1, $((N / 8))) i;
		CREATE UNLOGGED TABLE lineitem (l_orderkey int NOT NULL, l_linenumber int NOT NULL, l_quantity numeric(15,2) NOT NULL,
			l_extendedprice numeric(15,2) NOT NULL, l_discount numeric(15,2) NOT NULL, l_tax numeric(15,2) NOT NULL,
			l_shipdate date NOT NULL, l_commitdate date NOT NULL, l_receiptdate date NOT NULL, l_shipmode char(10) NOT NULL);
		INSERT INTO lineitem SELECT o * 8 + o % 7, n % 7, n % 50 + 1, (n % 100000) + (n % 97) / 100.0, (n % 11) / 100.0, (n % 9) / 100.0,
			date '1992-01-03' + o % 2400, date '1992-01-20' + o % 2400, date '1992-01-05' + o % 2400 + n % 30,
			(ARRAY['AIR', 'MAIL', 'RAIL', 'SHIP', 'TRUCK', 'FOB', 'REG AIR'])[1 + n % 7]
			FROM (SELECT 1 + floor(random() * $((N / 8)))::int AS o, n FROM generate_series(1, $((N / 2))) n) s;
	SQL
}

define tpch_revenue 0
case_tpch_revenue()
{
	title="TPC-H: revenue by order priority"
	tables=$(tpch)
	query="SELECT o_orderpriority, sum(l_extendedprice * (1 - l_discount)), count(*) FROM orders JOIN lineitem ON l_orderkey = o_orderkey GROUP BY 1 ORDER BY 1"
}

define tpch_count 0
case_tpch_count()
{
	title="TPC-H: count of lines of some months"
	tables=$(tpch)
	query="SELECT count(*), min(o_orderdate), max(l_shipdate) FROM orders JOIN lineitem ON l_orderkey = o_orderkey WHERE o_orderdate >= date '1993-07-01' AND o_orderdate < date '1995-07-01'"
}

define tpch_q4 0
case_tpch_q4()
{
	title="TPC-H Q4: late orders by priority"
	tables=$(tpch)
	query="SELECT o_orderpriority, count(*) FROM orders WHERE o_orderdate >= date '1993-07-01' AND o_orderdate < date '1993-10-01'
		AND EXISTS (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate) GROUP BY 1 ORDER BY 1"
}

# ---- other shapes, on a quarter of the rows

half()
{
	star $((N / 4)) $((N / 8)) "i * $SPARSE8" bigint $((N / 4))
}

define q1_int8 0
case_q1_int8()
{
	title="Q1, int8 keys, half match"
	tables=$(half)
	query=$Q1
}

define left 0
case_left()
{
	title="left join, half match"
	tables=$(half)
	query="SELECT count(*), count(d.k), sum(f.v), sum(d.w) FROM fact f LEFT JOIN dim d USING (k)"
}

define right 0
case_right()
{
	title="right join, half match"
	tables=$(half)
	query="SELECT count(*), count(f.k), sum(f.v), sum(d.w) FROM fact f RIGHT JOIN dim d USING (k)"
}

define full 0
case_full()
{
	title="full join, half match"
	tables=$(half)
	query="SELECT count(*), count(f.k), count(d.k), sum(f.v), sum(d.w) FROM fact f FULL JOIN dim d USING (k)"
}

define semi 0
case_semi()
{
	title="semi join, half match"
	tables=$(half)
	query="SELECT count(*), sum(v) FROM fact f WHERE EXISTS (SELECT 1 FROM dim d WHERE d.k = f.k)"
}

define residual 0
case_residual()
{
	title="with a join filter"
	tables=$(half)
	query="SELECT count(*), sum(f.v) FROM fact f JOIN dim d ON f.k = d.k AND f.v > d.w * 10"
}

define two_keys 0
case_two_keys()
{
	title="two-column keys (int8, int4)"
	tables=$(
		cat <<-SQL
			CREATE UNLOGGED TABLE dim (a bigint NOT NULL, b int NOT NULL, w int NOT NULL);
			INSERT INTO dim SELECT i / 16 * $SPARSE8, i % 16, i % 77 FROM generate_series(1::bigint, $((N / 8))) i;
			CREATE UNLOGGED TABLE fact (a bigint NOT NULL, b int NOT NULL, v int NOT NULL);
			INSERT INTO fact SELECT i / 16 * $SPARSE8, i % 16, n % 1000
				FROM (SELECT 1 + floor(random() * $((N / 8)))::bigint AS i, n
					FROM generate_series(1::bigint, $((N / 4))) n) s;
		SQL
	)
	query="SELECT count(*), sum(f.v), sum(d.w) FROM fact f JOIN dim d USING (a, b)"
}

define wide 0
case_wide()
{
	title="wide rows to the client"
	tables=$(
		cat <<-SQL
			CREATE UNLOGGED TABLE dim (k bigint NOT NULL, name text, city text, note text);
			INSERT INTO dim SELECT i * $SPARSE8, 'name ' || i, 'city ' || i % 1000, repeat(md5(i::text), 2)
				FROM generate_series(1::bigint, $((N / 20))) i;
			CREATE UNLOGGED TABLE fact (k bigint NOT NULL, v int NOT NULL, t1 text, t2 text);
			INSERT INTO fact SELECT i * $SPARSE8, n % 1000, 'item ' || n % 5000, md5(n::text)
				FROM (SELECT 1 + floor(random() * $((N / 20)))::bigint AS i, n
					FROM generate_series(1::bigint, $((N / 10))) n) s;
		SQL
	)
	query="COPY (SELECT f.k, f.v, f.t1, f.t2, d.name, d.city, d.note FROM fact f JOIN dim d USING (k)) TO '/dev/null'"
	check="SELECT count(*), sum(hashtextextended(concat_ws('|', f.k, f.v, f.t1, f.t2, d.name, d.city, d.note), 0)::numeric) FROM fact f JOIN dim d USING (k)"
}

define many 0
case_many()
{
	title="many matches (40 per row)"
	tables=$(
		cat <<-SQL
			CREATE UNLOGGED TABLE dim (k bigint NOT NULL, w int NOT NULL);
			INSERT INTO dim SELECT i % $((N / 400)) * $SPARSE8, i % 77 FROM generate_series(1::bigint, $((N / 10))) i;
			CREATE UNLOGGED TABLE fact (k bigint NOT NULL, v int NOT NULL);
			INSERT INTO fact SELECT floor(random() * $((N / 400)))::bigint * $SPARSE8, n % 1000
				FROM generate_series(1::bigint, $((N / 40))) n;
		SQL
	)
	query="SELECT count(*), sum(f.v), sum(d.w) FROM fact f JOIN dim d USING (k)"
}

# ---- build sides that memory does not hold (memory itself: make bench-memory)

# with_memory SIZE: both sides have so little
with_memory()
{
	ours="SET work_mem = '$1';"
	base+=" $ours"
}

define spill_64mb 3
case_spill_64mb()
{
	title="Q1, sparse keys, dim $((N / 2)), work_mem 64 MB"
	tables=$(big_sparse)
	query=$Q1
	with_memory 64MB
}

define spill_4mb 0
case_spill_4mb()
{
	title="the same at 4 MB"
	tables=$(big_sparse)
	query=$Q1
	with_memory 4MB
}

# Without statistics on its key both planners build from the side of one key.
define spill_one_key 3
case_spill_one_key()
{
	title="one key: dim $((N / 4)), asked 10 times; 4 MB"
	tables=$(
		cat <<-SQL
			CREATE UNLOGGED TABLE dim AS SELECT 5 AS k, i::int % 77 AS w FROM generate_series(1, $((N / 4))) i;
			CREATE UNLOGGED TABLE fact AS SELECT CASE WHEN i <= 10 THEN 5 ELSE -i END AS k, i % 1000 AS v
				FROM generate_series(1, $((N / 2))) i;
			ALTER TABLE dim ALTER k SET STATISTICS 0;
		SQL
	)
	query="SELECT count(*), sum(f.v), sum(d.w) FROM fact f JOIN dim d USING (k)"
	with_memory 4MB
}

# ---- where little is to be won

define small_100k 0
case_small_100k()
{
	title="100,000 x 10,000"
	tables=$(star 100000 10000 "i * $SPARSE8" bigint)
	query=$Q1
}

define small_10k 0
case_small_10k()
{
	title="10,000 x 10,000"
	tables=$(star 10000 10000 "i * $SPARSE8" bigint)
	query=$Q1
}

define small_1k 0
case_small_1k()
{
	title="1,000 x 1,000 (left to PostgreSQL)"
	tables=$(star 1000 1000 "i * $SPARSE8" bigint)
	query=$Q1
	small=yes
}
