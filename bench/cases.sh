# shellcheck shell=bash disable=SC2034
#
# The benchmark's cases, in order.  Each is
#
#   case_NAME() { title=...; tables=...; query=...; [check=...;] [options] }
#
# tables   SQL that makes the tables; made once for neighbours with the same text
# query    what is timed
# check    a query whose answer stands for the result of `query`, where that
#          gives none (COPY TO '/dev/null'); without one, query's own answer
# small    yes: too small for our node, which should not be chosen
#
# N is the number of fact rows.  A key is a counter times an odd number, so
# that keys are sparse and distinct; SPARSE4 wraps into int4.

SPARSE8='2654435761'

sparse4()
{
	echo "(($1) * 2654435761 % 4294967296 - 2147483648)::int4"
}

# A fact table over a dimension: star FACT_ROWS DIM_ROWS KEY_OF(i) TYPE [SPAN]
# SPAN: fact keys come from 1..SPAN; above DIM_ROWS they have no match.
star()
{
	local fact=$1 dim=$2 dim_key=$3 fact_key=$4 type=$5 span=${6:-$2}
	cat <<-SQL
		CREATE UNLOGGED TABLE dim (k $type NOT NULL, g int NOT NULL, w int NOT NULL);
		INSERT INTO dim SELECT $dim_key, i % 1000, i % 77 FROM generate_series(1::bigint, $dim) i;
		CREATE UNLOGGED TABLE fact (k $type NOT NULL, v int NOT NULL);
		INSERT INTO fact SELECT $fact_key, n % 1000
			FROM (SELECT 1 + floor(random() * $span)::bigint AS i, n
				FROM generate_series(1::bigint, $fact) n) s;
	SQL
}

Q1="SELECT count(*), sum(f.v) FROM fact f JOIN dim d USING (k)"

CASES_ALL=()
define()
{
	CASES_ALL+=("$1")
}

define q1_10m_sparse8
case_q1_10m_sparse8()
{
	title="Q1, int8 sparse, dim $((N / 2))"
	tables=$(star "$N" $((N / 2)) "i * $SPARSE8" "i * $SPARSE8" bigint)
	query=$Q1
}

define q1_10m_sparse4
case_q1_10m_sparse4()
{
	title="Q1, int4 sparse, dim $((N / 2))"
	tables=$(star "$N" $((N / 2)) "$(sparse4 i)" "$(sparse4 i)" int)
	query=$Q1
}

define q1_10m_dense
case_q1_10m_dense()
{
	title="Q1, int8 dense, dim $((N / 2))"
	tables=$(star "$N" $((N / 2)) i i bigint)
	query=$Q1
}

define q1_1m_sparse8
case_q1_1m_sparse8()
{
	title="Q1, int8 sparse, dim $((N / 20))"
	tables=$(star "$N" $((N / 20)) "i * $SPARSE8" "i * $SPARSE8" bigint)
	query=$Q1
}

define q1_1m_sparse4
case_q1_1m_sparse4()
{
	title="Q1, int4 sparse, dim $((N / 20))"
	tables=$(star "$N" $((N / 20)) "$(sparse4 i)" "$(sparse4 i)" int)
	query=$Q1
}

define q1_1m_dense
case_q1_1m_dense()
{
	title="Q1, int4 dense, dim $((N / 20))"
	tables=$(star "$N" $((N / 20)) i i int)
	query=$Q1
}

define q2_group
case_q2_group()
{
	title="Q2, group by d.g"
	tables=$(star "$N" $((N / 20)) "i * $SPARSE8" "i * $SPARSE8" bigint)
	query="SELECT count(*), sum(c), sum(s), sum(g) FROM (SELECT d.g, count(*) c, sum(f.v) s FROM fact f JOIN dim d USING (k) GROUP BY d.g OFFSET 0) q"
}

# Half of the fact rows have no match, a third of the dimension neither.
half()
{
	star $((N / 4)) $((N / 8)) "i * $SPARSE8" "i * $SPARSE8" bigint $((N / 4))
}

define left
case_left()
{
	title="left join, half match"
	tables=$(half)
	query="SELECT count(*), count(d.k), sum(f.v), sum(d.w) FROM fact f LEFT JOIN dim d USING (k)"
}

define right
case_right()
{
	title="right join, half match"
	tables=$(half)
	query="SELECT count(*), count(f.k), sum(f.v), sum(d.w) FROM fact f RIGHT JOIN dim d USING (k)"
}

define full
case_full()
{
	title="full join, half match"
	tables=$(half)
	query="SELECT count(*), count(f.k), count(d.k), sum(f.v), sum(d.w) FROM fact f FULL JOIN dim d USING (k)"
}

define semi
case_semi()
{
	title="semi join, half match"
	tables=$(half)
	query="SELECT count(*), sum(v) FROM fact f WHERE EXISTS (SELECT 1 FROM dim d WHERE d.k = f.k)"
}

define anti
case_anti()
{
	title="anti join, half match"
	tables=$(half)
	query="SELECT count(*), sum(v) FROM fact f WHERE NOT EXISTS (SELECT 1 FROM dim d WHERE d.k = f.k)"
}

define text_key
case_text_key()
{
	title="text keys"
	tables=$(star $((N / 4)) $((N / 20)) "'customer-' || i * 7919" "'customer-' || i * 7919" text)
	query=$Q1
}

define two_keys
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

define wide
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

define many
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

define residual
case_residual()
{
	title="with a join filter"
	tables=$(half)
	query="SELECT count(*), sum(f.v) FROM fact f JOIN dim d ON f.k = d.k AND f.v > d.w * 10"
}

define small_10k
case_small_10k()
{
	title="10,000 x 10,000"
	tables=$(star 10000 10000 "i * $SPARSE8" "i * $SPARSE8" bigint)
	query=$Q1
}

define small_100k
case_small_100k()
{
	title="100,000 x 10,000"
	tables=$(star 100000 10000 "i * $SPARSE8" "i * $SPARSE8" bigint)
	query=$Q1
}

define small_1k
case_small_1k()
{
	title="1,000 x 1,000 (left to PostgreSQL)"
	tables=$(star 1000 1000 "i * $SPARSE8" "i * $SPARSE8" bigint)
	query=$Q1
	small=yes
}
