# Columns that are not kept in memory, of rows whose other columns are: fetched for the rows
# that pass the filters, as PostgreSQL sees them, whatever is done to their pages meanwhile.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin, "$FindBin::Bin/../lib";
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('late');
$node->init;
$node->append_conf('postgresql.conf', join("\n", 'jit = off', 'autovacuum = off', "shared_preload_libraries = 'hashgraph_join'", 'hashgraph_join.column_loading = off',
	'max_parallel_workers_per_gather = 0', 'hashgraph_join.min_rows = 0', "hashgraph_join.column_memory = '64MB'", 'hashgraph_join.engine = cpu'));
$node->start;
sub sql { return $node->safe_psql('postgres', $_[0]) }

sql(<<'Q');
CREATE EXTENSION hashgraph_join;
CREATE TABLE fact (id int, k int, n int, t text, m numeric(12,2), u numeric, f float4, e text) WITH (fillfactor = 90);
INSERT INTO fact SELECT i, i % 1000, CASE WHEN i % 13 > 0 THEN i END, CASE WHEN i % 7 > 0 THEN 'text ' || i END, i / 3.0, CASE WHEN i % 5 > 0 THEN i / 7.0 END, i * 1.5, 'early'
	FROM generate_series(1, 60000) i;
UPDATE fact SET t = (SELECT string_agg(md5(i::text || fact.id), '') FROM generate_series(1, 200) i) WHERE id % 4999 = 0;
CREATE TABLE dim AS SELECT i AS k, i % 3 AS g FROM generate_series(0, 999, 250) i;
ALTER TABLE fact ADD COLUMN added int DEFAULT 42;
VACUUM (ANALYZE) fact; VACUUM (ANALYZE) dim; VACUUM fact;
SELECT hashgraph_join_load('fact', '{id, k, n}'), hashgraph_join_load('dim');
Q

my $force = 'SET hashgraph_join.force = on;';
my $scan = "f.id BETWEEN 20000 AND 20200";
my %queries = (
	filter => "SELECT f.*, d.g FROM fact f JOIN dim d USING (k) WHERE $scan",
	'a join that filters' => 'SELECT f.id, f.t, f.m, f.added, d.g FROM fact f JOIN dim d USING (k)',
	'strings grouped by' => "SELECT f.e, f.t, count(*), sum(f.m), sum(f.u), sum(f.f) FROM fact f JOIN dim d USING (k) WHERE $scan GROUP BY 1, 2",
	'keys that are NULL' => "SELECT f.id, f.t, f.u, d.g FROM fact f LEFT JOIN dim d ON f.n = d.k WHERE $scan",
	'keys that are NULL, dropped' => "SELECT f.id, f.t, f.u, d.g FROM fact f JOIN dim d ON f.n % 1000 = d.k WHERE f.id % 500 < 3",
	'no join' => "SELECT e, count(t), sum(m), sum(added), min(f) FROM fact f WHERE $scan GROUP BY 1",
	'the build side' => "SELECT d.k, f.t, f.m FROM dim d LEFT JOIN fact f ON f.k = d.k AND $scan",
	'again and again' => "SELECT g, x.* FROM generate_series(1, 3) g, LATERAL (SELECT f.id, f.t FROM fact f JOIN dim d USING (k) WHERE f.id BETWEEN g * 1000 AND g * 1000 + 99) x",
	'a few rows' => "SELECT count(*) FROM (SELECT f.t FROM fact f JOIN dim d USING (k) WHERE $scan LIMIT 2) x");
my %settings = ('' => '', ' (in parallel)' => 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;',
	' (spilled)' => "SET work_mem = '64kB'; SET hash_mem_multiplier = 1;");

sub compare
{
	my ($what) = @_;
	for my $name (sort keys %queries)
	{
		my $query = "SELECT count(*), md5(string_agg(x::text, ';' ORDER BY x::text)) FROM ($queries{$name}) x";
		is(sql("$force $settings{$_} $query"), sql("SET hashgraph_join.enabled = off; $query"), "$what: $name$_") for sort keys %settings;
	}
}
sub source { return sql("$force EXPLAIN (ANALYZE, COSTS OFF) $_[0]") =~ /(?:Outer )?Source: (.*)/ ? $1 : 'none' }

my $fetched = qr/^columns \(100% of \d+ pages(?:, \d+ skipped)?, \d+ fetched\)/;
like(source($queries{$_}), $fetched, "$_: columns that are not kept are fetched") for 'filter', 'strings grouped by', 'keys that are NULL', 'no join';
like(source("SELECT f.id, f.k FROM fact f JOIN dim d USING (k) WHERE $scan"), qr/^columns \(100% of \d+ pages(?:, \d+ skipped)?\)/, 'none is where all are kept');
like(source('SELECT f.id, f.t FROM fact f JOIN dim d ON f.k % 10 = d.k WHERE f.id > 0'), qr/^(?!columns \(100%)/, 'nor where many rows are taken');
like(source('SELECT sum(m) FROM fact f'), qr/^pages/, 'nor without a filter');
compare('at first');
sql("SELECT hashgraph_join_load('fact', '{m}')");
compare('with another column');
sql('UPDATE fact SET t = t || $$ again$$, m = m + 1 WHERE id % 3001 = 0');
compare('some pages changed');
sql($_) for 'VACUUM fact', "SELECT hashgraph_join_load('fact', '{id, k, n, m}')";
like(source($queries{filter}), $fetched, 'loaded again');

# A cursor has looked at the map; then its pages change.
my $open = "DECLARE c CURSOR FOR SELECT f.id, f.t, f.u, f.added FROM fact f JOIN dim d USING (k) WHERE f.id % 10 = 0";
my $session = $node->background_psql('postgres', on_error_stop => 0);
my $wanted = sql('SELECT md5(string_agg(x::text, $$;$$ ORDER BY x.id)) FROM (SELECT f.id, f.t, f.u, f.added FROM fact f JOIN dim d USING (k) WHERE f.id % 10 = 0) x');
$session->query_safe("$force CREATE TEMP TABLE got (id int, t text, u numeric, added int); BEGIN; $open");
$session->query_safe(q{CREATE FUNCTION pg_temp.take(n int) RETURNS void LANGUAGE plpgsql AS $$ DECLARE c refcursor := 'c'; r record; BEGIN FOR i IN 1 .. n LOOP FETCH c INTO r; EXIT WHEN NOT FOUND; INSERT INTO got VALUES (r.id, r.t, r.u, r.added); END LOOP; END $$});
$session->query_safe('SELECT pg_temp.take(3)');
sql('DELETE FROM fact WHERE id % 17 = 0; UPDATE fact SET t = $$changed$$, k = k + 1 WHERE id % 5 = 0; UPDATE fact SET added = 1 WHERE id % 3 = 0');
sql($_) for 'VACUUM fact', 'INSERT INTO fact SELECT i, i % 1000, i, $$inserted$$ FROM generate_series(1, 2000) i', 'UPDATE fact SET f = 0 WHERE id % 11 = 0';
$session->query_safe('UPDATE fact SET t = $$own$$ WHERE id % 50 = 0');
$session->query_safe('SELECT pg_temp.take(100000)');
is($session->query_safe('SELECT md5(string_agg(got::text, $$;$$ ORDER BY id)) FROM got'), $wanted, 'a cursor sees what it saw');
$session->query_safe('COMMIT');
$session->quit;
compare('after that');
sql($_) for 'VACUUM fact', "SELECT hashgraph_join_load('fact', '{id, k, n, m}')";
compare('loaded again');
done_testing();
