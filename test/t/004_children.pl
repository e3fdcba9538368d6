# What stands below and around the node: foreign tables, cursors, prepared
# statements, PL/pgSQL, row security, partitions.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('main');
my $csv = PostgreSQL::Test::Utils::tempdir() . '/cities.csv';
append_to_file($csv, join('', map { "$_,city $_\n" } 1 .. 3000));

my $host = $node->host;
my $port = $node->port;
$node->safe_psql(
	'postgres', qq{
	CREATE TABLE fact AS SELECT i AS id, i % 4000 AS city, i % 13 AS v FROM generate_series(1, 20000) i;
	CREATE TABLE dim AS SELECT i AS k, 'name ' || i AS name FROM generate_series(1, 500) i;
	CREATE EXTENSION file_fdw;
	CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
	CREATE FOREIGN TABLE cities (id int, name text) SERVER files OPTIONS (filename '$csv', format 'csv');
	CREATE DATABASE far;
	CREATE EXTENSION postgres_fdw;
	CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'far');
	CREATE USER MAPPING FOR CURRENT_USER SERVER far;
	CREATE FOREIGN TABLE far_dim (k int, name text) SERVER far OPTIONS (table_name 'dim');
	CREATE TABLE parts (id int, v int) PARTITION BY HASH (id);
	CREATE TABLE parts0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
	CREATE TABLE parts1 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
	INSERT INTO parts SELECT i, i % 5 FROM generate_series(1, 5000) i;
	ANALYZE fact; ANALYZE dim; ANALYZE cities; ANALYZE parts;
});
$node->safe_psql('far',
	"CREATE TABLE dim AS SELECT i AS k, 'far ' || i AS name FROM generate_series(1, 700) i");

my $stock = 'SET enable_nestloop = off; SET enable_mergejoin = off;';
my $ours = "$FORCED $stock";

# Ok when the node is planned, and both ways give the same rows.
sub same
{
	my ($query, $name) = @_;
	joined_plan($node, $ours, $query, "$name: planned");
	my $want = $node->safe_psql('postgres', "$stock $query");
	isnt($want, '', "$name: has an answer");
	is($node->safe_psql('postgres', "$ours $query"), $want, $name);
}

# ---- foreign tables
same('SELECT count(*), sum(f.v), min(c.name), max(c.name) FROM fact f JOIN cities c ON f.city = c.id',
	'file_fdw, inner');
same('SELECT count(*), count(c.id), sum(f.v) FROM fact f LEFT JOIN cities c ON f.city = c.id', 'file_fdw, outer side kept');
same('SELECT count(*), count(f.id), count(c.id) FROM cities c FULL JOIN fact f ON f.city = c.id', 'file_fdw, full');
same('SELECT count(*), sum(f.v), min(d.name) FROM fact f JOIN far_dim d ON f.city = d.k', 'postgres_fdw');
same('SELECT count(*) FROM cities c JOIN far_dim d ON c.id = d.k', 'file_fdw with postgres_fdw');
same('SELECT count(*) FROM fact f WHERE NOT EXISTS (SELECT 1 FROM far_dim d WHERE d.k = f.city)', 'postgres_fdw, anti');
# A row lock on a foreign table is a copy of the row.
same('SELECT f.id, d.name FROM fact f JOIN far_dim d ON f.city = d.k WHERE f.id < 20 ORDER BY 1 FOR UPDATE OF f',
	'postgres_fdw under FOR UPDATE');

# ---- partitions
same('SELECT count(*), sum(a.v) FROM parts a JOIN parts b USING (id)', 'partitions');
$ours .= ' SET enable_partitionwise_join = on;';
my $plan = joined_plan($node, $ours, 'SELECT count(*), sum(a.v) FROM parts a JOIN parts b USING (id)', 'partitionwise');
is(scalar(() = $plan =~ /HashGraphJoin/g), 2, 'partitionwise: one node per pair');
same('SELECT count(*), sum(a.v) FROM parts a JOIN parts b USING (id)', 'partitionwise join');

# ---- cursors
my $join = 'SELECT f.id, d.name FROM fact f LEFT JOIN dim d ON f.city = d.k ORDER BY f.id';
my $unordered = 'SELECT f.id, d.name FROM fact f JOIN dim d ON f.city = d.k';
my %cursor = (
	'WITH HOLD' => "BEGIN; DECLARE c CURSOR WITH HOLD FOR $join; FETCH 3 FROM c; COMMIT; FETCH 3 FROM c; MOVE 19000 IN c; FETCH 2 FROM c; CLOSE c;",
	'SCROLL' => "BEGIN; DECLARE c SCROLL CURSOR FOR $join; FETCH 3 FROM c; FETCH BACKWARD 2 FROM c; FETCH LAST FROM c; FETCH ABSOLUTE 10 FROM c; FETCH RELATIVE -5 FROM c; COMMIT;",
	'SCROLL WITH HOLD' => "BEGIN; DECLARE c SCROLL CURSOR WITH HOLD FOR $join; FETCH 2 FROM c; COMMIT; FETCH LAST FROM c; FETCH FIRST FROM c; CLOSE c;",
	'two at once' => "BEGIN; DECLARE c CURSOR FOR $join; DECLARE d CURSOR FOR $join; FETCH 2 FROM c; FETCH 3 FROM d; FETCH 2 FROM c; CLOSE c; FETCH 2 FROM d; COMMIT;",
	'and a rolled-back savepoint' => "BEGIN; DECLARE c CURSOR FOR $join; FETCH 2 FROM c; SAVEPOINT s; FETCH 2 FROM c; ROLLBACK TO s; FETCH 2 FROM c; COMMIT;",
	'while its table changes' => "BEGIN; DECLARE c CURSOR FOR $join; FETCH 2 FROM c; UPDATE fact SET v = v + 1 WHERE id < 100; DELETE FROM dim WHERE k < 100; FETCH 4 FROM c; ROLLBACK;");
for my $what (sort keys %cursor)
{
	my $want = $node->safe_psql('postgres', "$stock $cursor{$what}");
	isnt($want, '', "cursor $what: has an answer");
	is($node->safe_psql('postgres', "$ours $cursor{$what}"), $want, "cursor $what");
}
is( $node->safe_psql('postgres', "$ours BEGIN; DECLARE c SCROLL CURSOR FOR $unordered; MOVE 40 IN c; MOVE BACKWARD 40 IN c; CREATE TEMP TABLE n AS SELECT 1; MOVE ALL IN c; COMMIT; SELECT count(*) FROM ($unordered) x"),
	$node->safe_psql('postgres', "SELECT count(*) FROM ($unordered) x"),
	'backwards through a join without an order');
fails_with($node, "$ours BEGIN; DECLARE c NO SCROLL CURSOR FOR $unordered; FETCH 2 FROM c; FETCH BACKWARD 1 FROM c;",
	qr/cursor can only scan forward/, 'a cursor without SCROLL backwards');

# ---- prepared statements: custom and generic plans, with parameters
for my $mode ('force_custom_plan', 'force_generic_plan')
{
	my $statements = "SET plan_cache_mode = $mode;
		PREPARE p(int, text) AS SELECT count(*), sum(f.v), max(d.name) FROM fact f JOIN dim d ON f.city = d.k AND f.v > \$1 WHERE d.name <> \$2;
		EXECUTE p(3, 'name 7'); EXECUTE p(11, 'name 1'); EXECUTE p(100, ''); EXECUTE p(NULL, ''); EXECUTE p(3, 'name 7');
		PREPARE q(int) AS SELECT count(*), count(d.k) FROM fact f LEFT JOIN dim d ON f.city = d.k + \$1;
		EXECUTE q(0); EXECUTE q(1); EXECUTE q(NULL); EXECUTE q(100000);";
	is($node->safe_psql('postgres', "$ours $statements"),
		$node->safe_psql('postgres', "$stock $statements"), "prepared, $mode");
}
# An invalidated plan is made again.
is( $node->safe_psql('postgres', "$ours SET plan_cache_mode = force_generic_plan;
		CREATE TEMP TABLE t AS SELECT i AS k FROM generate_series(1, 100) i;
		PREPARE p AS SELECT count(*) FROM t JOIN dim USING (k); EXECUTE p;
		ALTER TABLE t ADD COLUMN x int DEFAULT 5; DELETE FROM t WHERE k > 50; EXECUTE p;
		CREATE INDEX ON t (k); ANALYZE t; EXECUTE p;"),
	"100\n50\n50", 'a prepared join after its table has changed');

# ---- rescans: correlated subqueries and LATERAL
same('SELECT sum(n) FROM (SELECT (SELECT count(*) FROM dim a JOIN dim b USING (k) WHERE a.k < f.id) AS n FROM fact f WHERE f.id <= 40) x',
	'a rescan whose parameter changes both sides or one');
same('SELECT sum(n) FROM fact f, LATERAL (SELECT count(*) AS n FROM dim a JOIN cities c ON a.k = c.id AND c.id > f.id) x WHERE f.id <= 30',
	'a parameter in the join filter');

# ---- PL/pgSQL, CTEs, views with row security
$node->safe_psql(
	'postgres', q{
	CREATE FUNCTION loop_sum() RETURNS bigint LANGUAGE plpgsql AS $$
	DECLARE r record; s bigint := 0;
	BEGIN
		FOR r IN SELECT f.v, d.k FROM fact f JOIN dim d ON f.city = d.k LOOP
			s := s + r.v;
			EXIT WHEN s > 1000;
		END LOOP;
		RETURN (SELECT sum(f.v) FROM fact f JOIN dim d ON f.city = d.k) + (s > 1000)::int;
	END $$;
	CREATE ROLE tenant LOGIN;
	CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM fact WHERE v < 5;
	ALTER TABLE dim ENABLE ROW LEVEL SECURITY;
	CREATE POLICY p ON dim FOR SELECT TO tenant USING (k % 2 = 0);
	GRANT SELECT ON fact, dim, barrier TO tenant;
	ALTER ROLE tenant SET session_preload_libraries = 'hashgraph_join';
	ALTER ROLE tenant SET hashgraph_join.force = on;
});
is($node->safe_psql('postgres', "$ours SELECT loop_sum()"),
	$node->safe_psql('postgres', 'SELECT loop_sum()'), 'PL/pgSQL loops');
same('WITH x AS MATERIALIZED (SELECT f.id, d.k FROM fact f JOIN dim d ON f.city = d.k) SELECT count(*), sum(a.k) FROM x a JOIN x b USING (id)',
	'CTEs');
same('SELECT count(*), sum(b.v) FROM barrier b JOIN dim d ON b.city = d.k', 'a security-barrier view');
my @tenant = (extra_params => [ '-U', 'tenant' ]);
my $rls = 'SELECT count(*), min(d.k), max(d.k), count(*) FILTER (WHERE d.k % 2 = 1) FROM fact f JOIN dim d ON f.city = d.k';
like($node->safe_psql('postgres', "EXPLAIN $rls", @tenant), qr/HashGraphJoin/, 'row security: planned');
is($node->safe_psql('postgres', $rls, @tenant),
	$node->safe_psql('postgres', "SET hashgraph_join.enabled = off; $rls", @tenant), 'row security: the same rows');
like($node->safe_psql('postgres', $rls, @tenant), qr/\|2\|500\|0$/, 'row security: no hidden row');
# A leaky function must not see what the policy hides.
$node->safe_psql('postgres', q{
	CREATE FUNCTION leak(t text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS
	$$ BEGIN RAISE NOTICE 'saw %', t; RETURN true; END $$;
});
my ($rc, $out, $err) = $node->psql('postgres',
	'SELECT count(*) FROM fact f JOIN dim d ON f.city = d.k AND leak(d.name) WHERE f.id < 100', @tenant);
is($rc, 0, 'row security: a leaky filter runs');
like($err, qr/saw name 2\b/, 'row security: a leaky filter sees what is shown');
unlike($err, qr/saw name \d*[13579]\b/, 'row security: a leaky filter sees nothing hidden');

# ---- data-modifying CTEs and temporary tables
my $temp = "CREATE TEMP TABLE t1 AS SELECT i AS k FROM generate_series(1, 3000) i; CREATE TEMP TABLE t2 AS SELECT i * 3 AS k FROM generate_series(1, 3000) i;
	UPDATE t2 SET k = k + 1 WHERE k % 2 = 0; SELECT count(*), sum(k) FROM t1 JOIN t2 USING (k);
	WITH gone AS (DELETE FROM t1 USING t2 WHERE t1.k = t2.k RETURNING t1.k) SELECT count(*), sum(k) FROM gone;
	SELECT count(*), sum(k) FROM t1;";
is($node->safe_psql('postgres', "$ours $temp"), $node->safe_psql('postgres', "$stock $temp"),
	'temporary tables and a data-modifying CTE');

unlike(slurp_file($node->logfile), qr/PANIC|TRAP|was terminated by signal|leak:/,
	'the server log knows no crash and no leak');
$node->stop;
done_testing();
