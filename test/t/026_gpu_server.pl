# One GPU process for all sessions (hashgraph_join.gpu_server): right answers through it,
# more sessions than have much memory for rows there, sessions that are cancelled, terminated or killed,
# and a GPU process that is killed, hangs, is lost, or finds no device.  test/fake stands
# in for the GPU.
#
#   HGJ_SERVER_SECONDS=60    for how long the GPU process is killed under load
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $library = "$FindBin::Bin/../fake/fake.so";
my $node = new_server(
	'main', "shared_preload_libraries = 'hashgraph_join'", 'hashgraph_join.gpu_server = auto', "hashgraph_join.cuda_library = '$library'",
	'max_parallel_workers_per_gather = 0', "work_mem = '64MB'", 'max_connections = 60', 'restart_after_crash = on');
$node->safe_psql(
	'postgres', q{
	CREATE TABLE f AS SELECT i % 1000 AS k, i AS v, i % 7 AS g, 'text ' || i % 1000 AS t FROM generate_series(1, 60000) i;
	CREATE TABLE d AS SELECT i AS k, i % 10 AS h, 'text ' || i AS t FROM generate_series(1, 800) i;
	CREATE TABLE big AS SELECT i % 1000 AS k, i AS v FROM generate_series(1, 1500000) i;
	ANALYZE f, d, big;
});
sub faults { fake_faults($node, @_); return; }

my $device = "$FORCED SET hashgraph_join.require = off; SET hashgraph_join.engine = cuda;";
my $required = "$device SET hashgraph_join.require = cuda;";
my $groups = 'SELECT h, count(*), sum(v) FROM f JOIN d USING (k) GROUP BY h ORDER BY h';
my $rows = 'SELECT count(*), sum(v), sum(h) FROM (SELECT f.v, d.h FROM f LEFT JOIN d USING (t) OFFSET 0) x';
my $full = 'SELECT count(*), count(v), sum(h) FROM (SELECT f.v, d.h FROM f FULL JOIN d ON f.k = d.k + 500 OFFSET 0) x';
my $long = 'SELECT h, count(*), sum(v) FROM big JOIN d USING (k) GROUP BY h ORDER BY h';
my %stock = map { $_ => $node->safe_psql('postgres', "SET hashgraph_join.enabled = off; $_") } ($groups, $rows, $full, $long);

# Wait until queries run there again.
sub server_is_back
{
	my ($what) = @_;
	my ($rc, $out, $err);
	wait_until("$what: the GPU is used again", sub { ($rc, $out, $err) = $node->psql('postgres', "$required $groups"); $rc == 0 });
	is($out, $stock{$groups}, "$what: the GPU is used again");
	return;
}

# ---- right answers
faults();
server_is_back('the start');
my $process = gpu_process($node);
like($process, qr/^\d+$/, 'there is one GPU process');
like($node->safe_psql('postgres', 'SELECT state || tables FROM hashgraph_join_devices()'), qr/^open0$/, 'a session sees its device open');
for my $q ($groups, $rows, $full)
{
	is($node->safe_psql('postgres', "$required $q"), $stock{$q}, "through the GPU process: $q");
	like($node->safe_psql('postgres', "$device EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $q"), qr/Engine: cuda\n\s+Device: Fake GPU/, '... on its device');
}
like($node->safe_psql('postgres', "$device EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $groups"), qr/Device Pipeline: yes/, 'in a pipeline');
is(gpu_process($node), $process, 'by the same process');

# Several on one channel: cursors, and a join that is read row by row beside a pipeline.
is( $node->safe_psql(
		'postgres', "$device BEGIN;
	DECLARE a CURSOR FOR SELECT f.v FROM f JOIN d USING (k) ORDER BY 1; DECLARE b CURSOR FOR SELECT f.v FROM f JOIN d USING (t) ORDER BY 1;
	MOVE 3 IN a; MOVE 2 IN b; FETCH 1 FROM a; FETCH 1 FROM b; $groups; FETCH 1 FROM a; CLOSE b; $rows; FETCH 1 FROM a; COMMIT"),
	"4\n3\n$stock{$groups}\n5\n$stock{$rows}\n6", 'cursors and other queries share a channel');

# A letter has what several queries have written, what ends one of them, too: that another one
# cannot be made is nobody else's affair.
my $all = $node->safe_psql('postgres', 'SELECT count(*) FROM f JOIN d USING (t)');
for my $what ('table_create 1 memory', 'pipe_create 1 memory', 'pipe_create 1 unsupported', 'pipe_payload 1 memory', 'pipe_start 1 limit', 'probe_create 1 memory', 'build 1 memory')
{
	my $session = $node->background_psql('postgres');
	$session->query_safe("$device BEGIN; DECLARE a CURSOR FOR SELECT f.v FROM f JOIN d USING (k); DECLARE b CURSOR FOR SELECT f.v FROM f JOIN d USING (t); MOVE 3 IN a; MOVE 5 IN b");
	faults($what);
	is($session->query_safe("CLOSE a; $groups"), $stock{$groups}, "$what beside a cursor: the answer");
	faults();
	is(5 + split(/\n/, $session->query_safe('FETCH ALL FROM b')), $all, '... and the rest of the cursor');
	is($session->query_safe("COMMIT; $required $groups"), $stock{$groups}, '... and another one on the device');
	$session->quit;
}
is(gpu_process($node), $process, 'by the same process');

# A library of the session's own is opened in the session.
is($node->safe_psql('postgres', "$required SET hashgraph_join.cuda_library = '$FindBin::Bin/../fake/../fake/fake.so'; $groups"), $stock{$groups}, 'another library');

# ---- more sessions than channels with much memory

# A session of its own, which begins at once: IPC::Run would not feed it from a string before
# it is waited for.
sub begin
{
	my ($name, $sql) = @_;
	my $files = $node->basedir . "/session_$name";
	append_to_file("$files.sql", $sql);
	my $psql = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') ], '<', "$files.sql", '>', "$files.out", '2>', "$files.err");
	return { psql => $psql, files => $files };
}

sub end
{
	my ($run) = @_;
	$run->{psql}->finish;
	$run->{$_} = slurp_file("$run->{files}.$_") for qw(out err);
	unlink map { "$run->{files}.$_" } qw(sql out err);
	return $run;
}

sub run_all
{
	my ($n, $sql, %params) = @_;
	my @runs = map { begin($_, $sql) } 1 .. $n;
	$params{meanwhile}->() if $params{meanwhile};
	return map { end($_) } @runs;
}
my @many = run_all(24, join("\n", $device, map { ("$groups;", "$rows;") } 1 .. 4));
is(scalar(grep { $_->{out} ne "$stock{$groups}\n$stock{$rows}\n" x 4 } @many), 0, '24 sessions at once have right answers');
is(join('', map { $_->{err} } @many), '', 'and no message');
is(gpu_process($node), $process, 'by the same process still');

# ---- sessions that end in the middle, wherever they are: nothing stays taken, more often than
# there are channels.  The last ones wait for a device that hangs, so that they are hit for certain.
for my $how ('pg_cancel_backend', 'pg_terminate_backend')
{
	my $hit = 0;
	for my $i (1 .. 20)
	{
		faults('pipe_push 2 hang') if $i > 17;
		my $run = begin('victim', "SET application_name = 'victim';\n$required $long;\n");
		$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'victim' AND query LIKE '%big%' AND wait_event IN ('HashGraphDevice', 'Extension')")
		  or die 'nothing is under way' if $i > 17;
		usleep(50_000 + 10_000 * ($i % 8));
		$node->safe_psql('postgres', "SELECT $how(pid) FROM pg_stat_activity WHERE application_name = 'victim'");
		$hit++ if end($run)->{err} =~ /canceling statement|terminating connection/;
		faults();
	}
	cmp_ok($hit, '>=', 3, "$how came to $hit of 20 in time");
	is($node->safe_psql('postgres', "$required $groups"), $stock{$groups}, "after 20 times $how");
}
is(gpu_process($node), $process, 'by the same process still');

# ---- a GPU process that is killed under load
my $backend = $node->background_psql('postgres', on_error_stop => 0);
$backend->query_safe($device);
my $kills = 0;
my @load = run_all(
	6,
	join("\n", "$device \\set ON_ERROR_STOP off", map { ("$groups;", "$rows;", "$full;") } 1 .. 40),
	meanwhile => sub {
		my $until = time + ($ENV{HGJ_SERVER_SECONDS} // 5);
		while (time < $until || $kills < 2)
		{
			my $victim = gpu_process($node);
			usleep(300_000);
			$kills++ if $victim && kill('KILL', $victim);
			usleep(1_200_000);
		}
	});
cmp_ok($kills, '>', 1, "the GPU process was killed, $kills times");
my %right = map { $stock{$_} => 1 } keys %stock;
my ($wrong, $answers, $errors) = (0, 0, 0);
for my $run (@load)
{
	my $out = $run->{out};
	for my $q ($groups, $rows, $full)
	{
		$answers++ while $out =~ s/^\Q$stock{$q}\E\n//m;
	}
	$wrong++ if $out ne '';
	$errors++ while $run->{err} =~ /^.*ERROR:  the device of a HashGraphJoin failed$/mg;
	unlike($run->{err}, qr/(?<!the device of a HashGraphJoin failed)\n.*(server closed|FATAL|PANIC)/, 'no session ends');
}
is($wrong, 0, "no wrong answer among $answers");
is($answers + $errors, 6 * 40 * 3, "each query has an answer, or says that its device failed ($errors)");
is($backend->query_safe($groups), $stock{$groups}, 'a session that was there before has an answer');
$backend->quit;
server_is_back('killed under load');
like(slurp_file($node->logfile), qr/LOG:  the GPU process of hashgraph_join ended, and is started again/, 'the log says so');
like(slurp_file($node->logfile), qr/DETAIL:  It was ended by signal 9/, '... and how it ended');
unlike(slurp_file($node->logfile), qr/terminating any other active server processes/, 'no backend was ended for it');

# ---- a device that is lost, or hangs
for my $what ('pipe_push 1 lost', 'pipe_from 2 lost', 'build 1 lost', 'probe_next 1 lost', 'pipe_finish 1 memory', 'table_create 1 memory')
{
	faults($what);
	is($node->safe_psql('postgres', "$device $groups"), $stock{$groups}, "$what: $groups");
	faults($what);
	is($node->safe_psql('postgres', "$device $full"), $stock{$full}, "$what: $full");
	faults();
	server_is_back($what);
}
# Rows that the engine does not read where the session has put them.
faults('no_push_from');
is($node->safe_psql('postgres', "$required $_"), $stock{$_}, "rows are copied to the device's buffers: $_") for $groups, $rows;
like($node->safe_psql('postgres', "$required EXPLAIN (ANALYZE, COSTS OFF) $groups"), qr/Device Pipeline: yes/, '... in a pipeline');
$node->safe_psql('postgres', "ALTER SYSTEM SET hashgraph_join.gpu_server_timeout = '300ms'");
$node->reload;
faults('build 1 hang');
is($node->safe_psql('postgres', "$device $groups"), $stock{$groups}, 'a device that hangs');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET hashgraph_join.gpu_server_timeout');
$node->reload;
faults();
server_is_back('a device that hangs');
like(slurp_file($node->logfile), qr/DETAIL:  It had lost its device: \S.*\.\n/, 'the log says why the process ended');

# ---- crashes, restarts, and no device
my $victim = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $victim->query_safe('SELECT pg_backend_pid()');
$process = gpu_process($node);
kill 'KILL', $pid;
comes_back($node) or die 'the server did not come back';
eval { $victim->quit; };
server_is_back('a crash');
isnt(gpu_process($node), $process, 'with another GPU process');
for my $mode ('fast', 'immediate')
{
	$process = gpu_process($node);
	$node->stop($mode);
	ok(wait_until("shutdown, $mode: the GPU process goes", sub { !kill(0, $process) }), "shutdown, $mode: the GPU process has gone");
	$node->start;
	server_is_back("a restart after $mode");
}
# Of the postmaster's children, those that keep a GPU process running.  A process that ends
# meanwhile is none.
sub workers
{
	my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
	my $n = 0;
	for my $process (glob '/proc/[0-9]*')
	{
		my $stat = eval { slurp_file("$process/stat") } // '';
		my $args = eval { slurp_file("$process/cmdline") } // '';
		$n++ if $stat =~ /\) \S $postmaster / && $args =~ /hashgraph_join gpu server/;
	}
	return $n;
}
is(workers(), 1, 'a worker looks after the GPU process');
$node->append_conf('postgresql.conf', "hashgraph_join.cuda_library = '/nowhere/at/all.so'");
$node->restart;
is($node->safe_psql('postgres', "$device $groups"), $stock{$groups}, 'without a library');
$node->poll_query_until('postgres', q{SELECT detail LIKE '%/nowhere/at/all.so%' FROM hashgraph_join_devices()}) or die 'it does not say why';
like($node->safe_psql('postgres', "$device EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $rows"), qr/Engine: cpu\n.*Fallback: [^\n]*\/nowhere\/at\/all\.so/s, 'EXPLAIN says why');
ok(wait_until('the worker ends', sub { workers() == 0 }), 'and nothing looks after a process that cannot be');

done_testing();
