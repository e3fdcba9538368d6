# Tables that are not in shared buffers: a scan of a large one goes through the
# ring that PostgreSQL keeps for such scans, and leaves the other buffers alone;
# what was read, and how long that took, is counted.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# 512 buffers, so that a table of more than 128 blocks is a large one
my $node = new_server('main', "shared_buffers = '4MB'", "max_connections = 10", "work_mem = '64MB'", "track_io_timing = on",
	"min_parallel_table_scan_size = 0", "parallel_setup_cost = 0", "parallel_tuple_cost = 0");
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION pg_buffercache;
	CREATE TABLE large (k int, v int, t text);
	INSERT INTO large SELECT i % 100, i, 'text ' || i || repeat('x', 100) FROM generate_series(1, 60000) i;
	CREATE TABLE small (k int, g int);
	INSERT INTO small SELECT i, i % 10 FROM generate_series(0, 99) i;
	VACUUM (FREEZE, ANALYZE) large;
	VACUUM (FREEZE, ANALYZE) small;
});
my $blocks = $node->safe_psql('postgres', q{SELECT pg_relation_size('large') / current_setting('block_size')::int});
cmp_ok($blocks, '>', 1000, 'the table has many times as many blocks as the ring');

my $buffers = q{SELECT count(*) FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('large')};
my %query = (
	'a sum' => 'SELECT count(*), sum(l.v) FROM large l JOIN small s USING (k)',
	'rows with by-reference values' => q{SELECT l.t, s.g FROM large l JOIN small s USING (k) WHERE l.v % 3 = 0},
	'the build side' => 'SELECT count(l.t) FROM small s LEFT JOIN large l ON s.k = l.v');
my %way = (
	stock => 'SET hashgraph_join.enabled = off; SET enable_nestloop = off; SET enable_mergejoin = off;',
	ours => "$FORCED SET hashgraph_join.source = pages;");

# The scan of the large table in a plan.
sub scan_of
{
	my ($plan) = @_;
	return $plan if ($plan->{'Relation Name'} || '') eq 'large';
	for (@{ $plan->{Plans} || [] })
	{
		my $found = scan_of($_);
		return $found if $found;
	}
	return;
}

for my $what (sort keys %query)
{
	for my $way (sort keys %way)
	{
		for my $workers (0, 1)
		{
			# each process reads all of the build side
			next if $workers > 0 && $what eq 'the build side';
			my $name = "$what, $way, $workers workers";

			# nothing of it is in shared buffers after this
			$node->restart;
			my ($json, $kept) = split /^=$/m,
			  $node->safe_psql('postgres', "LOAD 'hashgraph_join'; $way{$way} SET max_parallel_workers_per_gather = $workers;
				EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) $query{$what};
				SELECT '=';
				SET hashgraph_join.require = off;
				$buffers");
			my $scan = scan_of(decode_json($json)->[0]{Plan});
			is($scan->{'Shared Hit Blocks'} + $scan->{'Shared Read Blocks'}, $blocks, "$name: every block was looked at once");
			is($scan->{'Shared Read Blocks'}, $blocks, "$name: and read");
			# from 17 on, with the name of what is read
			cmp_ok($scan->{'I/O Read Time'} // $scan->{'Shared I/O Read Time'}, '>', 0, "$name: the time is counted");

			# 32 buffers for each process, and what the planner looked at
			cmp_ok($kept, '<=', 32 * ($workers + 1) + 4, "$name: few of its blocks stay in shared buffers");
		}
	}
}

$node->stop;
done_testing();
