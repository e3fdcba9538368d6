# The GPU process is everybody's: what one session does on the GPU, or with its settings, is
# no other session's trouble.  Who waits no longer gives up a call, and not the process, whose
# limit is the administrator's; cursors that are open and idle keep nobody from the GPU; and the
# process has no memory of PostgreSQL's that it could write to.  test/fake stands in for the GPU.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $library = "$FindBin::Bin/../fake/fake.so";
my $node = new_server(
	'main', "shared_preload_libraries = 'hashgraph_join'", 'hashgraph_join.gpu_server = auto', "hashgraph_join.cuda_library = '$library'",
	"hashgraph_join.gpu_server_timeout = '1h'", "hashgraph_join.column_memory = '8MB'", 'hashgraph_join.column_loading = off',
	'max_parallel_workers_per_gather = 0', "work_mem = '64MB'", 'max_connections = 40');
$node->safe_psql(
	'postgres', q{
	CREATE TABLE f AS SELECT i % 1000 AS k, i AS v FROM generate_series(1, 60000) i;
	CREATE TABLE d AS SELECT i AS k, i % 10 AS h FROM generate_series(1, 800) i;
	DO $$ BEGIN EXECUTE (SELECT 'CREATE TABLE wide AS SELECT i % 1000 AS k, ' || string_agg('i::bigint AS c' || c, ', ') || ' FROM generate_series(1, 20000) i' FROM generate_series(1, 20) c); END $$;
	CREATE TABLE kept AS SELECT i % 1000 AS k, i AS v FROM generate_series(1, 60000) i;
	VACUUM ANALYZE f, d, wide, kept;
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
my $wide = 'SELECT h, ' . join(', ', map { "min(c$_ + c" . ($_ + 10) . ')' } 1 .. 10) . ' FROM wide JOIN d USING (k) GROUP BY h ORDER BY h';
for my $query ($groups, $wide, 'SELECT count(*), sum(v), sum(h) FROM (SELECT f.v, d.h FROM f JOIN d USING (k) OFFSET 0) x', $of_kept)
{
	is($node->safe_psql('postgres', "$required $query"), $node->safe_psql('postgres', "SET hashgraph_join.enabled = off; $query"), "another one beside them, on the GPU: $query");
	like($node->safe_psql('postgres', "$required $explain $query"), $query =~ /OFFSET 0/ ? qr/Engine: cuda/ : qr/Device Pipeline: yes/, '... which says so');
}
ok($node->safe_psql('postgres', 'SELECT bool_and(device_bytes > 0) FROM hashgraph_join_columns') eq 't', 'who looks is told of the device');
is($node->safe_psql('postgres', 'SELECT count(*) FROM hashgraph_join_fallbacks()'), '0', 'nobody had to do without');
goes_on($_, 'then') for @idle[0, 19];
$_->quit for @idle;

# ---- PostgreSQL's memory
# Mappings of a process that it shares with others, and could write to if `can` says so.
sub mapped
{
	my ($pid, $can) = @_;
	return grep { $_->{access} =~ $can } map { /^([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ (\d+) *(.*)$/ ? { begin => hex $1, bytes => hex($2) - hex($1), access => $3, file => $4, name => $5 } : () }
	  split /\n/, slurp_file("/proc/$pid/maps");
}

$process = gpu_process($node);
my $postmaster = $node->safe_psql('postgres', q{SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)});
my @shared = mapped($postmaster, qr/^.w.s/);
cmp_ok(scalar @shared, '>', 2, 'the postmaster has shared memory: ' . join(', ', map { $_->{name} } @shared));
my @written = mapped($process, qr/^.w.s/);
my %channels = map { $_->{file} => 1 } @written;
is(scalar keys %channels, 1, 'the GPU process can write to one of these');
my ($main) = sort { $b->{bytes} <=> $a->{bytes} } grep { !$channels{ $_->{file} } } @shared;
# the kernel shows it in pieces, as huge pages are wanted for one of them
my @read = grep { $_->{file} == $main->{file} } mapped($process, qr/^r..s/);
is(join(' ', grep { $_->{access} ne 'r--s' } @read), '', 'of the largest other one it can read a part, and no more');
my ($kept, $bytes) = (8 * 1024 * 1024, 0);
$bytes += $_->{bytes} for @read;
ok($bytes >= $kept && $bytes <= $kept + 4 * 1024 * 1024, "which is the kept columns' ($bytes bytes)");
my ($begin) = sort { $a <=> $b } map { $_->{begin} } grep { $_->{file} == $main->{file} } @shared;
is(scalar(grep { $_->{begin} == $begin } mapped($process, qr/^---p/)), 1, 'nothing comes to be in front of it');
is(join(' ', map { $_->{name} } grep { $_->{name} =~ /SYSV|PostgreSQL/ } mapped($process, qr/^..../)), '', 'nor has it any of the other shared memory');
is(join(' ', grep { $_ > 2 && (readlink("/proc/$process/fd/$_") // '') =~ /socket|base|global/ } map { m{/(\d+)$} } glob("/proc/$process/fd/*")), '', 'nor files of PostgreSQL, or sockets');
is($node->safe_psql('postgres', "$required $of_kept"), $answer, 'it reads kept columns there');
like($node->safe_psql('postgres', "$required $explain $of_kept"), qr/Device Columns: 100%/, '... all of them');

# ---- a process that does not end with the server: one that hangs in a driver
fake_faults($node, 'outlives');
is($node->safe_psql('postgres', "$required $groups"), $answer, 'a process that does not end with its parent');
for my $how ('an immediate stop', 'a postmaster that is killed')
{
	my ($server) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
	my @children = grep { eval { slurp_file("/proc/$_/stat") } =~ /\) \S $server / } map { m{(\d+)$} } glob('/proc/[0-9]*');
	my ($worker) = slurp_file("/proc/$process/stat") =~ /\) \S (\d+) /;
	wait_until('the process is one that outlives its parent', sub { slurp_file("/proc/$process/stat") =~ /\) \S \d+ \d+ $process / });
	if ($how eq 'an immediate stop') { $node->stop('immediate'); }
	else
	{
		# or the worker would kill its process, which ends for that, or the postmaster begin anew
		kill 'STOP', $server;
		kill 'KILL', $worker;
		$node->kill9;
	}
	# the next postmaster does not start before they have gone, and does not wait for that
	for (1 .. 600) { last unless grep { kill 0, $_ } @children; usleep(100_000); }
	ok(kill(0, $process), "$how: it is there still");
	my $starts = $node->start(fail_ok => 1);
	kill 'KILL', $process;
	ok($starts, '... and the server starts beside it') or $node->start;
	wait_for_device($node);
	is($node->safe_psql('postgres', "$required $groups"), $answer, '... with another one');
	$process = gpu_process($node);
}
kill 'KILL', $process;
fake_faults($node);
wait_for_device($node);

# ---- columns in a System V segment, which a process must not keep
$node->append_conf('postgresql.conf', 'shared_memory_type = sysv');
$node->restart;
wait_for_device($node);
$node->safe_psql('postgres', "SELECT hashgraph_join_load('kept')");
is($node->safe_psql('postgres', "$required $of_kept"), $answer, 'System V shared memory: an answer from the GPU');
unlike($node->safe_psql('postgres', "$required $explain $of_kept"), qr/Device Columns/, '... not of kept columns');
is(join(' ', map { $_->{name} } grep { $_->{name} =~ /SYSV/ } mapped(gpu_process($node), qr/^..../)), '', '... of which its process has nothing');

done_testing();
