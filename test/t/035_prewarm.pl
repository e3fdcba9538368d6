# Columns that are kept in memory go to the device before a query asks for them
# (src/server/prewarm.c): after a load, in a new GPU process, and not where it is off.  The chunks
# are held until the GPU process has read them, whoever wants them gone; a device that fails
# meanwhile, or never answers, is nobody's trouble.  test/fake stands in for the GPU, and
# compares each array with what it was when it came.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_server(
	'main', "shared_preload_libraries = 'hashgraph_join'", 'hashgraph_join.gpu_server = auto', "hashgraph_join.cuda_library = '$FindBin::Bin/../fake/fake.so'",
	'max_parallel_workers_per_gather = 0', "work_mem = '64MB'", 'log_error_verbosity = terse', 'hashgraph_join.column_loading = off',
	"hashgraph_join.column_memory = '64MB'");
$node->safe_psql(
	'postgres', q{
	CREATE TABLE f (k int, v bigint, n numeric(10,2), t text, u text, z int);
	INSERT INTO f SELECT i % 1000, CASE WHEN i % 7 > 0 THEN i * 1000000007::bigint END, (i % 5000) / 4.0, 'text ' || i % 17, 'all different ' || i, NULL
		FROM generate_series(1, 120000) i;
	CREATE TABLE d AS SELECT i AS k, i % 10 AS h FROM generate_series(1, 800) i;
	CREATE TABLE other AS SELECT i % 911 AS a, -i * 7 AS b, i * 1000000009::bigint AS c, 'other ' || i % 23 AS t FROM generate_series(1, 120000) i;
	VACUUM ANALYZE f, d, other;
});
my $device = "$FORCED SET hashgraph_join.require = off; SET hashgraph_join.engine = cuda; SET hashgraph_join.device_side_rows = 0;";
my $query = 'SELECT h, count(*), sum(v), sum(n), count(z) FROM f JOIN d USING (k) GROUP BY h ORDER BY h';
my $answer = $node->safe_psql('postgres', "SET hashgraph_join.enabled = off; $query");
my $load = "SELECT hashgraph_join_unload('f'), hashgraph_join_unload('d'), hashgraph_join_load('f'), hashgraph_join_load('d')";
my $file = $node->data_dir . '/hgj_fake_prewarm';

# What the device does with what it is asked for ahead; nothing: as a device should.
sub prewarms
{
	my ($what) = @_;
	unlink $file;
	append_to_file($file, "$what\n") if $what;
	return;
}

# Until something of each column that a device can use is there.
sub until_all_there
{
	my ($what, $columns) = @_;
	$columns //= 7;
	my $missing = q{SELECT string_agg(tab::text || '.' || "column", ' ' ORDER BY tab::text, "column") FROM hashgraph_join_columns WHERE coalesce(device_bytes, 0) = 0 AND NOT (tab::text, "column") = ('f', 'u')};
	$node->poll_query_until('postgres', "SELECT ($missing) IS NULL AND (SELECT count(*) > $columns FROM hashgraph_join_columns)");
	is($node->safe_psql('postgres', $missing), '', "$what: all columns are on the device");
	return;
}

# A figure once it has not changed for longer than the second in which it is told anew.
sub stands_still
{
	my ($figure) = @_;
	my ($last, $same) = ('', 0);
	wait_until('a figure stands still', sub {
		my $now = $figure->();
		$same = $now eq $last ? $same + 1 : 0;
		$last = $now;
		usleep(500_000);
		return $same > 5;
	});
	return $last;
}

sub uploads { return $node->safe_psql('postgres', 'SELECT column_uploads FROM hashgraph_join_devices()'); }

# Ok when the query's answer is right, and it finds all that it reads on the device.  The
# process says what was asked for each second.
sub finds_all
{
	my ($what) = @_;
	my $before = stands_still(\&uploads);
	my $hits = $node->safe_psql('postgres', 'SELECT column_hits FROM hashgraph_join_devices()');
	is($node->safe_psql('postgres', "$device $query"), $answer, "$what: the answer");
	my $plan = $node->safe_psql('postgres', "$device EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query");
	like($plan, qr/Device Columns: 100%/, '... from columns that are kept');
	$node->poll_query_until('postgres', "SELECT column_hits > $hits FROM hashgraph_join_devices()");
	is(uploads(), $before, '... which were there') or diag($plan);
	return;
}

# Ok once the device has what is in memory, and nothing else.
sub holds_no_more
{
	my ($what) = @_;
	my $same = '(SELECT column_memory FROM hashgraph_join_devices()) = (SELECT sum(device_bytes) FROM hashgraph_join_columns)';
	ok($node->poll_query_until('postgres', "SELECT $same"), "$what: no copies but of what is in memory");
	return;
}

# Until there is another GPU process than this one; whether one has come.
sub another_process
{
	my ($process) = @_;
	return $node->poll_query_until('postgres', "SELECT count(*) = 1 FROM hashgraph_join_devices() WHERE detail LIKE 'process % has it open%' AND detail NOT LIKE 'process $process %'");
}

sub set_prewarm
{
	my ($how) = @_;
	$node->safe_psql('postgres', $how eq 'off' ? 'ALTER SYSTEM SET hashgraph_join.device_column_prewarm = off' : 'ALTER SYSTEM RESET hashgraph_join.device_column_prewarm');
	$node->reload;
	return;
}

# ---- off, and on by a reload
wait_for_device($node);
set_prewarm('off');
$node->restart;
wait_for_device($node);
$node->safe_psql('postgres', $load);
usleep(2_500_000);
is($node->safe_psql('postgres', 'SELECT column_memory FROM hashgraph_join_devices()'), 0, 'off: nothing goes ahead');
set_prewarm('on');
until_all_there('on');
is($node->safe_psql('postgres', q{SELECT coalesce(sum(device_bytes), 0) FROM hashgraph_join_columns WHERE "column" = 'u'}), 0, 'but for what no device can use');
finds_all('on');

# ---- another GPU process; columns that are loaded again, and new ones
for my $what ('a new process', 'loaded again', 'another table')
{
	if ($what eq 'a new process')
	{
		my $process = gpu_process($node);
		kill 'KILL', $process;
		another_process($process) or die 'there is no other process';
	}
	$node->safe_psql('postgres', 'UPDATE f SET z = 3 WHERE k = 17; VACUUM f') if $what eq 'loaded again';
	$answer = $node->safe_psql('postgres', "SET hashgraph_join.enabled = off; $query");
	$node->safe_psql('postgres', $load) if $what eq 'loaded again';
	$node->safe_psql('postgres', "SELECT hashgraph_join_load('other')") if $what eq 'another table';
	until_all_there($what);
	holds_no_more($what);
	finds_all($what);
}
$node->safe_psql('postgres', "SELECT hashgraph_join_unload('other')");
holds_no_more('unloaded');

# ---- a session in whose way it is not: what is not ready is asked for again
prewarms('later');
$node->safe_psql('postgres', $load);
usleep(1_500_000);
is($node->safe_psql('postgres', q{SELECT coalesce(sum(device_bytes), 0) FROM hashgraph_join_columns}), 0, 'memory that is not ready: nothing has come');
is($node->safe_psql('postgres', "$device $query"), $answer, 'memory that is not ready: the answer');
prewarms();
until_all_there('ready at last');

# ---- more chunks than are asked for at once, or looked at; off in the middle of it, and on again
for my $i (1 .. 14)
{
	$node->safe_psql('postgres', "CREATE TABLE wide$i AS SELECT " . join(', ', map { "i % $_ AS c$_" } 1 .. 80) . ' FROM generate_series(1, 100) i');
	$node->safe_psql('postgres', "VACUUM wide$i");
}
prewarms('late');
$node->safe_psql('postgres', 'SELECT ' . join(', ', map { "hashgraph_join_load('wide$_')" } 1 .. 14));
my $wide = q{SELECT count(*) FROM hashgraph_join_columns WHERE tab::regclass::text LIKE 'wide%' AND device_bytes > 0};
$node->poll_query_until('postgres', "SELECT ($wide) > 0") or die 'none has come';
set_prewarm('off');
stands_still(sub { $node->safe_psql('postgres', $wide) });
prewarms();
my $first = $node->safe_psql('postgres', $wide);
ok($first > 0 && $first < 14 * 80, "off in the middle of 1120 columns: $first have come");
set_prewarm('on');
until_all_there('on again', 1100);
finds_all('beside many others');
$node->safe_psql('postgres', 'SELECT ' . join(', ', map { "hashgraph_join_unload('wide$_')" } 1 .. 14));
holds_no_more('and without them');

# ---- chunks are held while they are read: the device is lost if one changes
my $process = gpu_process($node);
prewarms('late');
$node->safe_psql('postgres', "SELECT hashgraph_join_unload('other')");
$node->safe_psql('postgres', $load);
for (1 .. 6)
{
	usleep(400_000);
	$node->safe_psql('postgres', "SELECT hashgraph_join_unload('f'), hashgraph_join_unload('d'), hashgraph_join_load('other')");
	usleep(400_000);
	$node->safe_psql('postgres', "SELECT hashgraph_join_unload('other'), hashgraph_join_load('d'), hashgraph_join_load('f')");
}
is(gpu_process($node), $process, 'chunks that are replaced while they are read');
is($node->safe_psql('postgres', "$device $query"), $answer, '... and a query meanwhile');
prewarms();
until_all_there('in the end');
finds_all('in the end');

# ---- a device that is lost meanwhile: another process, and no session is told
prewarms('lost');
$process = gpu_process($node);
$node->safe_psql('postgres', $load);
$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM hashgraph_join_devices() WHERE detail LIKE 'process $process has it%'") or die 'it is there still';
is($node->safe_psql('postgres', "$device $query"), $answer, 'a device that is lost: the answer');
prewarms();
wait_for_device($node);
until_all_there('after that');

# ---- one that never answers: queries go on, and so do shutdowns
$node->safe_psql('postgres', "ALTER SYSTEM SET hashgraph_join.gpu_server_timeout = '1s'");
$node->reload;
prewarms('hang');
$node->safe_psql('postgres', $load);
usleep(1_500_000);
is($node->safe_psql('postgres', "$device $query"), $answer, 'a device that never answers: the answer');
$process = gpu_process($node);
ok(another_process($process), 'the worker kills its process, and starts another one');
is($node->safe_psql('postgres', "$device $query"), $answer, '... where the answer is right');
usleep(1_500_000);
$node->poll_query_until('postgres', q{SELECT detail LIKE 'process % has it open%' FROM hashgraph_join_devices()}) or die 'there is no process';
my ($worker) = slurp_file('/proc/' . gpu_process($node) . '/stat') =~ /\) \S (\d+)/;
kill 'TERM', $worker;
ok(wait_until('a worker that is terminated ends', sub { !kill 0, $worker }), 'a worker that is terminated meanwhile ends');
wait_for_device($node);
is($node->safe_psql('postgres', "$device $query"), $answer, '... and another one begins');
usleep(1_500_000);
$node->safe_psql('postgres', 'ALTER SYSTEM RESET hashgraph_join.gpu_server_timeout');
$node->restart;
prewarms();
$node->stop('immediate');
$node->start;
wait_for_device($node);
$node->safe_psql('postgres', $load);
until_all_there('after a restart');
finds_all('after a restart');

# ---- no room for all: what has gone makes room for what has not come
$node->safe_psql('postgres', "SELECT hashgraph_join_unload('d')");
my $bytes = $node->safe_psql('postgres', q{SELECT sum(device_bytes) FROM hashgraph_join_columns});
$node->append_conf('postgresql.conf', 'hashgraph_join.device_column_memory = ' . int($bytes * 1.3 / 1024));
$node->restart;
wait_for_device($node);
$node->safe_psql('postgres', "SELECT hashgraph_join_load('f')");
$node->poll_query_until('postgres', "SELECT column_memory = $bytes FROM hashgraph_join_devices()") or die 'f has not come';
$node->safe_psql('postgres', "SELECT hashgraph_join_load('other')");
usleep(2_500_000);
my $there = q{SELECT coalesce(sum(device_bytes), 0) FROM hashgraph_join_columns WHERE tab = 'TABLE'::regclass};
is($node->safe_psql('postgres', $there =~ s/TABLE/f/r), $bytes, 'no room: what was there stays');
ok($node->safe_psql('postgres', q{SELECT min(device_bytes) = 0 FROM hashgraph_join_columns WHERE tab = 'other'::regclass}) eq 't', '... and what does not fit does not come');
$node->safe_psql('postgres', "SELECT hashgraph_join_unload('f')");
until_all_there('room at last', 3);
$node->safe_psql('postgres', "SELECT hashgraph_join_unload('other'), hashgraph_join_load('f')");
ok($node->poll_query_until('postgres', ($there =~ s/TABLE/f/r) =~ s/SELECT coalesce\(sum\(device_bytes\), 0\)/SELECT sum(device_bytes) = $bytes/r), 'and of another table');
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|server process .* was terminated by signal|have changed while/, 'the log says nothing of a crash');

done_testing();
