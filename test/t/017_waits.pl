# What pg_stat_activity says of processes that wait: for those who build a table
# together with them, and for a device.  Until 16 every extension waits under one name.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('main', 'max_parallel_workers_per_gather = 2', 'min_parallel_table_scan_size = 0',
	'parallel_setup_cost = 0', 'parallel_tuple_cost = 0');
$node->safe_psql('postgres', q{
	CREATE TABLE f AS SELECT i % 20000 AS k, i AS v FROM generate_series(1, 40000) i;
	CREATE TABLE d AS SELECT i AS k, i % 10 AS w FROM generate_series(1, 20000) i;
	ANALYZE f, d;
});
my ($major) = $node->safe_psql('postgres', 'SHOW server_version_num') =~ /^(\d+)\d{4}$/;

# Ok when a process waits so while $sql runs, which waits until it is cancelled.
sub waits
{
	my ($what, $event, $before, $sql) = @_;
	$event = 'Extension' if $major < 17;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query_safe("$FORCED $before");
	$session->query_until(qr/running/, "\\echo running\n$sql;\n\\echo ended\n");
	ok($node->poll_query_until('postgres',
		"SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Extension' AND wait_event = '$event'"),
		"$what: $event");
	$node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%FROM f JOIN%' AND pid <> pg_backend_pid() AND backend_type = 'client backend'");
	ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE wait_event = '$event' OR state = 'active' AND pid <> pg_backend_pid()"),
		"$what: nobody waits any more");
	like($session->query('SELECT 1;'), qr/ended.*1/s, "$what: the session goes on");
	$session->quit;
}

# One process never ends its part of the build side.
my $together = "SELECT count(*) FROM f JOIN d ON f.k = d.k AND (d.k <> 7 OR pg_sleep(600)::text = 'x')";
my $shared = 'SET hashgraph_join.parallel_build = shared;';
like($node->safe_psql('postgres', "$FORCED $shared EXPLAIN (COSTS OFF) $together"), qr/Inner Filter by Row.*Build Side: shared/s, 'a shared build, which its side holds up');
waits('a shared build', 'HashGraphBuild', $shared, $together);

# A device that does not answer.
fake_faults($node, 'no_pipelines', 'build 1 hang');
waits('a device', 'HashGraphDevice',
	"SET max_parallel_workers_per_gather = 0; SET hashgraph_join.engine = cuda; SET hashgraph_join.cuda_library = '$FindBin::Bin/../fake/fake.so';",
	'SELECT count(*) FROM f JOIN d USING (k)');
$node->stop;
done_testing();
