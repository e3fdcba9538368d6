# The order of joins that a pipeline on a GPU takes is not the processor's (src/planner/pipeline_chains.c):
# from a large table whose columns are kept, whatever has to be built for that.  Right rows, whichever
# it is, and no such order where there is no GPU.  test/fake stands in for the GPU.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server(
	'main', "shared_preload_libraries = 'hashgraph_join'", 'hashgraph_join.gpu_server = auto', "hashgraph_join.cuda_library = '$FindBin::Bin/../fake/fake.so'",
	"hashgraph_join.column_memory = '64MB'", 'hashgraph_join.column_loading = off', 'synchronous_commit = on', 'max_parallel_workers_per_gather = 0',
	'hashgraph_join.min_rows = 0', 'hashgraph_join.startup_cost = 0', 'hashgraph_join.device_startup_cost = 0', 'hashgraph_join.device_launch_cost = 0.1',
	'hashgraph_join.device_side_rows = 0', 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0', 'hashgraph_join.worker_time = 0', 'jit = off');
wait_for_device($node);
# orders are not kept: the processor begins with them, as it builds the fewest rows then
$node->safe_psql(
	'postgres', q{
	CREATE TABLE f (o int, p int, s int, v int, w int);
	INSERT INTO f SELECT g / 4, hashint4(g) % 1000 + 1000, g % 50, g % 100, g FROM generate_series(1, 120000) g;
	CREATE TABLE o (id int, c int, day date);
	INSERT INTO o SELECT g, hashint4(g) % 500 + 500, date '2020-01-01' + g % 1000 FROM generate_series(1, 30000) g;
	CREATE TABLE c (id int, n int);
	INSERT INTO c SELECT g, g % 25 FROM generate_series(1, 1000) g;
	CREATE TABLE p (id int, kind int);
	INSERT INTO p SELECT g, g % 150 FROM generate_series(0, 2000) g;
	CREATE TABLE n (id int, r int, name text);
	INSERT INTO n SELECT g, g % 5, 'n' || g FROM generate_series(0, 24) g;
	VACUUM ANALYZE f, o, c, p, n;
	SELECT hashgraph_join_load(t) FROM unnest('{f,c,p,n}'::regclass[]) t;
});

my %queries = (
	'inner joins' => q{SELECT extract(year FROM day), sum(v), sum(CASE WHEN n2.name = 'n3' THEN v END) FROM f, o, c, p, n, n n2
		WHERE f.o = o.id AND f.p = p.id AND o.c = c.id AND c.n = n.id AND n.r = 1 AND f.s = n2.id AND p.kind = 7 AND day BETWEEN '2020-02-01' AND '2022-01-01' GROUP BY 1},
	'a left join' => q{SELECT n.name, count(*), count(o.id), sum(v) FROM f JOIN p ON f.p = p.id AND p.kind < 3 LEFT JOIN o ON f.o = o.id JOIN n ON n.id = f.s GROUP BY 1},
	'a semi join' => q{SELECT p.kind, count(*), max(o.day) FROM f, o, p WHERE f.o = o.id AND f.p = p.id AND p.kind BETWEEN 7 AND 9 AND EXISTS (SELECT FROM c WHERE c.id = o.c AND c.n = 3) GROUP BY 1},
	'a set for each row' => q{SELECT generate_series(1, p.kind - 5) x, count(*), sum(f.v) FROM f, o, p WHERE f.o = o.id AND f.p = p.id AND p.kind = 7 GROUP BY 1},
	'a set for each group' => q{SELECT p.kind, generate_series(1, 2), count(*), sum(f.v) FROM f, o, p WHERE f.o = o.id AND f.p = p.id AND p.kind < 9 GROUP BY 1},
	'no group column' => q{SELECT count(*), sum(f.v), max(o.day) FROM f, o, p WHERE f.o = o.id AND f.p = p.id AND p.kind = 7});
my $stock = 'SET hashgraph_join.enabled = off; SET hashgraph_join.aggregate = off;';
for my $name (sort keys %queries)
{
	my $q = "SELECT q::text FROM ($queries{$name}) q ORDER BY 1";
	for my $workers (0, 2)
	{
		is($node->safe_psql('postgres', "SET max_parallel_workers_per_gather = $workers; $q"), $node->safe_psql('postgres', "$stock $q"), "$name, $workers workers");
	}
	is($node->safe_psql('postgres', "SET geqo_threshold = 2; $q"), $node->safe_psql('postgres', "$stock $q"), "$name, by GEQO");
	is($node->safe_psql('postgres', "SET hashgraph_join.engine = cpu; $q"), $node->safe_psql('postgres', "$stock $q"), "$name, by the processor");
}
my $explain = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $queries{'inner joins'}";
for my $workers (0, 2)
{
	my $plan = $node->safe_psql('postgres', "SET max_parallel_workers_per_gather = $workers; $explain");
	like($plan, qr/Device Columns: 100%.*Outer Source: pages\s.*?-> +Seq Scan on f /s, "with $workers workers the pipeline begins with the table that is kept") or diag($plan);
}
unlike($node->safe_psql('postgres', "SET hashgraph_join.engine = cpu; $explain"), qr/Device/, 'nor is it the order of the processor');
# a function that is planned in the middle of it has chains of its own
$node->safe_psql('postgres', q{CREATE FUNCTION meanwhile(k int) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
	RETURN (SELECT count(*) FROM f JOIN o ON f.o = o.id JOIN p ON f.p = p.id WHERE p.kind = meanwhile.k) + 1; END $$});
my $nested = $queries{'inner joins'} =~ s/p\.kind = 7/p.kind = 7 AND f.v < meanwhile(7)/r;
is($node->safe_psql('postgres', "SELECT q::text FROM ($nested) q ORDER BY 1"), $node->safe_psql('postgres', "$stock SELECT q::text FROM ($nested) q ORDER BY 1"), 'a query that is planned while another one is');

done_testing();
