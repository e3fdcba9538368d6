# There is one device for all processes of a query (src/planner/stock_cost.c): groups that it
# would make for each worker anew are charged once for each, so that workers make them
# together.  test/fake stands in for the GPU.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server(
	'main', "shared_preload_libraries = 'hashgraph_join'", 'hashgraph_join.gpu_server = auto', "hashgraph_join.cuda_library = '$FindBin::Bin/../fake/fake.so'",
	"work_mem = '64MB'", 'hashgraph_join.column_loading = off', "hashgraph_join.column_memory = '64MB'", 'synchronous_commit = on',
	'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0', 'max_parallel_workers_per_gather = 4',
	'max_parallel_workers = 8', 'hashgraph_join.processors = 8', 'hashgraph_join.worker_time = 0', 'hashgraph_join.agg_tuple_cost = 0.01', 'jit = off');
wait_for_device($node);
$node->safe_psql(
	'postgres', q{
	CREATE TABLE rows_of (k int, q int, t text);
	INSERT INTO rows_of SELECT i % 60000, i % 50, 'text ' || i FROM generate_series(1, 600000) i;
	CREATE TABLE keys_of AS SELECT i AS k, i % 100 AS c, repeat('name ' || i, 30) AS t FROM generate_series(0, 299999) i;
	VACUUM ANALYZE rows_of, keys_of;
});
$node->safe_psql('postgres', "SELECT hashgraph_join_load('rows_of')");

my $q = 'SELECT c, count(*), max(t) FROM keys_of WHERE k IN (SELECT k FROM rows_of GROUP BY k HAVING sum(q) > 100) GROUP BY c ORDER BY c';
my $stock = $node->safe_psql('postgres', "SET hashgraph_join.enabled = off; $q");
my $plan = $node->safe_psql('postgres', "EXPLAIN (COSTS OFF) $q");

unlike($plan, qr/Device Pipeline/, 'five processes do not have the device make the groups five times') or diag($plan);
like($plan, qr/Gather.*HashGraphJoin.*Build Side: shared.*Exchange: groups, by hash/s, '... but make them together') or diag($plan);
is($node->safe_psql('postgres', $q), $stock, '... with the right answer');

# where few rows are wanted, paths with a low startup cost are kept, but not of workers
my $first = 'SELECT k, c, t FROM keys_of WHERE k IN (SELECT k FROM rows_of GROUP BY k HAVING sum(q) > 100) ORDER BY c, k LIMIT 10';
$plan = $node->safe_psql('postgres', "EXPLAIN (COSTS OFF) $first");
unlike($plan, qr/Device Pipeline/, '... nor where LIMIT wants the first of them') or diag($plan);

my $alone = 'SET max_parallel_workers_per_gather = 0;';
$plan = $node->safe_psql('postgres', "$alone EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $q");
like($plan, qr/Device Pipeline: yes/, 'one process does') or diag($plan);
is($node->safe_psql('postgres', "$alone $q"), $stock, '... with the right answer');
done_testing();
