# The GPU process is everybody's: what one session does on the GPU, or with its settings, is
# no other session's trouble.  Who waits no longer gives up a call, and not the process, whose
# limit is the administrator's; and cursors that are open and idle keep nobody from the GPU.
# test/fake stands in for the GPU.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $library = "$FindBin::Bin/../fake/fake.so";
my $node = new_server(
	'main', "shared_preload_libraries = 'hashgraph_join'", 'hashgraph_join.gpu_server = auto', "hashgraph_join.cuda_library = '$library'",
	"hashgraph_join.gpu_server_timeout = '1h'", "hashgraph_join.column_memory = '8MB'", 'hashgraph_join.column_loading = off',
	'max_parallel_workers_per_gather = 0', "work_mem = '64MB'", 'max_connections = 40');
$node->safe_psql(
	'postgres', q{
	CREATE TABLE f AS SELECT i % 1000 AS k, i AS v FROM generate_series(1, 60000) i;
	CREATE TABLE d AS SELECT i AS k, i % 10 AS h FROM generate_series(1, 800) i;
	CREATE TABLE kept AS SELECT i % 1000 AS k, i AS v FROM generate_series(1, 60000) i;
	VACUUM ANALYZE f, d, kept;
	SELECT hashgraph_join_load('kept');
	CREATE FUNCTION rest(c refcursor) RETURNS int LANGUAGE plpgsql AS $$
	DECLARE
		n int := 0;
		r record;
	BEGIN
		LOOP
			FETCH c INTO r;
			EXIT WHEN NOT FOUND;
			n := n + 1;
		END LOOP;
		RETURN n;
	END $$;
});
my $device = "$FORCED SET hashgraph_join.require = off; SET hashgraph_join.engine = cuda;";
my $required = "$device SET hashgraph_join.require = cuda;";
my $groups = 'SELECT h, count(*), sum(v) FROM f JOIN d USING (k) GROUP BY h ORDER BY h';
my $of_kept = 'SELECT h, count(*), sum(v) FROM kept JOIN d USING (k) GROUP BY h ORDER BY h';
my $explain = 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF)';
my $answer = $node->safe_psql('postgres', "SET hashgraph_join.enabled = off; $groups");
my $matches = $node->safe_psql('postgres', 'SET hashgraph_join.enabled = off; SELECT count(*) FROM f JOIN d USING (k)');
my $busy = $node->data_dir . '/hgj_fake_busy';

# A session with a cursor that is open, and has something on the GPU.
sub cursor
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query_safe("$required BEGIN; DECLARE c CURSOR FOR SELECT f.v, d.h FROM f JOIN d USING (k)");
	is(scalar(split /\n/, $session->query_safe('FETCH 10 FROM c')), 10, 'a cursor is open');
	return $session;
}

# Ok when it then returns all of its other rows.
sub goes_on
{
	my ($session, $name) = @_;
	is($session->query("SELECT rest('c')"), $matches - 10, "$name: an open cursor goes on");
	is($session->{stderr}, '', '... without a message');
	return;
}

wait_for_device($node);
my $process = gpu_process($node);
like($process, qr/^\d+$/, 'there is a GPU process');

# ---- a session that waits no longer
my $other = cursor();
append_to_file($busy, '');
fake_faults($node, 'build 1 busy');
my $selfish = $node->background_psql('postgres', on_error_stop => 0);
$selfish->query_safe("$device SET hashgraph_join.device_timeout = '1ms'");
# on a slow machine it may have given up before
for (1 .. 600)
{
	is($selfish->query_safe($groups), $answer, 'a session that waits for 1 ms: the answer');
	last if -e "$busy.met";
}
ok(-e "$busy.met", '... though the GPU is at work for it still');
like($selfish->query_safe("$explain $groups"), qr/Engine: cpu\n.*Fallback: cpu engine \(the device failed: the GPU has not ended a call that this session has given up/s,
	'... has its next query on the CPU, too, while the GPU makes the call');
is($node->safe_psql('postgres', "$required $groups"), $answer, '... when another one uses the GPU');
goes_on($other, 'meanwhile');
is(gpu_process($node), $process, 'the process is there still');
unlink $busy;
ok($node->poll_query_until('postgres', 'SELECT sessions = 1 FROM hashgraph_join_devices()'), 'the cursor alone is on the GPU');
$other->quit;
my $plan = '';
for (1 .. 600)
{
	$plan = $selfish->query_safe("SET hashgraph_join.device_timeout = '1h'; $explain $groups");
	last if $plan =~ /Engine: cuda/;
	$selfish->query_safe('SELECT pg_sleep(0.05)');
}
like($plan, qr/Engine: cuda/, 'the call has ended: its session has the GPU again');
is(gpu_process($node), $process, '... in the same process');
$selfish->quit;

# ---- the process's limit, which no session lifts
$node->safe_psql('postgres', "ALTER SYSTEM SET hashgraph_join.gpu_server_timeout = '300ms'");
$node->reload;
for my $own ('0', '1h')
{
	$process = gpu_process($node);
	fake_faults($node, 'build 1 hang');
	is($node->safe_psql('postgres', "$device SET hashgraph_join.device_timeout = '$own'; $groups"), $answer, "a device that answers nobody, device_timeout = $own");
	fake_faults($node);
	$node->poll_query_until('postgres', "SELECT detail LIKE 'process %' AND detail NOT LIKE 'process $process %' FROM hashgraph_join_devices()") or die 'there is no other process';
}
is(() = slurp_file($node->logfile) =~ /DETAIL:  It had lost its device: the device has not answered in time\./g, 2, 'ends the process');
unlike(slurp_file($node->logfile), qr/GPU process of hashgraph_join is killed/, '... by itself');
fails_with($node, "SET hashgraph_join.gpu_server_timeout = '1h'", qr/cannot be changed now/, 'a session cannot set the limit');
$node->safe_psql('postgres', "ALTER SYSTEM SET hashgraph_join.gpu_server_timeout = '1h'");
$node->reload;

# ---- cursors that are idle, of more sessions than have much memory for rows
$node->safe_psql('postgres', 'SELECT hashgraph_join_stats_reset()');
my @idle = map { cursor() } 1 .. 20;
ok($node->poll_query_until('postgres', 'SELECT sessions = 20 AND calls = 0 FROM hashgraph_join_devices()'), '20 sessions have something on the GPU, and make no call');
for my $query ($groups, 'SELECT count(*), sum(v), sum(h) FROM (SELECT f.v, d.h FROM f JOIN d USING (k) OFFSET 0) x', $of_kept)
{
	is($node->safe_psql('postgres', "$required $query"), $node->safe_psql('postgres', "SET hashgraph_join.enabled = off; $query"), "another one beside them, on the GPU: $query");
	like($node->safe_psql('postgres', "$required $explain $query"), qr/Engine: cuda/, '... which says so');
}
ok($node->safe_psql('postgres', 'SELECT bool_and(device_bytes > 0) FROM hashgraph_join_columns') eq 't', 'who looks is told of the device');
is($node->safe_psql('postgres', 'SELECT count(*) FROM hashgraph_join_fallbacks()'), '0', 'nobody had to do without');
goes_on($_, 'then') for @idle[0, 19];
$_->quit for @idle;

done_testing();
