# Columns that are kept in memory go to a device as they are stored, and stay there
# (src/pipeline/device_kept.c): right answers beside rows that are staged, through the GPU
# process and without it, after every kind of write, under writers, and where the device
# fails or takes none.  test/fake stands in for the GPU: it compares each array with what
# it was when it came.
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
	"hashgraph_join.column_memory = '64MB'", 'synchronous_commit = on');
$node->safe_psql(
	'postgres', q{
	CREATE TABLE f (k int, v bigint, g smallint, n numeric(10,2), x float8, y float4, b bool, c "char", d date, t text, z int);
	INSERT INTO f SELECT i % 1000, i * 1000000007::bigint, CASE WHEN i % 11 > 0 THEN i % 7 - 3 END, ((i % 5000) / 4.0 - 300)::numeric(10,2),
		CASE WHEN i % 5 > 0 THEN i / 3.0 WHEN i % 10 = 0 THEN 'NaN' END, i / 7.0, CASE WHEN i % 13 > 0 THEN i % 3 = 0 END,
		chr(1 + i % 127)::"char", date '2000-01-01' + i % 3000, CASE WHEN i % 19 > 0 THEN 'text ' || i % 17 END, NULL
		FROM generate_series(1, 150000) i;
	CREATE TABLE d AS SELECT i AS k, i % 10 AS h, 'name ' || i % 10 AS t FROM generate_series(1, 800) i;
	CREATE TABLE e AS SELECT i AS g, i * 100 AS w FROM generate_series(-3, 2) i;
	VACUUM ANALYZE f, d, e;
});

my $device = "$FORCED SET hashgraph_join.require = off; SET hashgraph_join.engine = cuda; SET extra_float_digits = 0;";
my $stock = 'SET hashgraph_join.enabled = off; SET extra_float_digits = 0;';
my %queries = (
	'one join' => 'SELECT h, count(*), sum(v), min(g), max(x), sum(n), avg(n), count(b), sum(z), min(d) FROM f JOIN d USING (k) GROUP BY h ORDER BY h',
	'few rows pass' => q{SELECT d.t, count(*), sum(v), max(y) FROM f JOIN d USING (k) WHERE v BETWEEN 40000000000000 AND 44000000000000 AND d > date '2002-12-31' + interval '1 day' AND b AND n > 1.25 GROUP BY d.t ORDER BY 1},
	'two joins' => 'SELECT h, w, count(*), sum(n * 2 + 1), count(*) FILTER (WHERE b) FROM f LEFT JOIN d USING (k) JOIN e USING (g) GROUP BY h, w ORDER BY h, w',
	'keys of the table' => 'SELECT f.k, f.g, count(*), sum(h) FROM f JOIN d USING (k) GROUP BY f.k, f.g ORDER BY 1, 2',
	'no join' => 'SELECT g, b, count(*), sum(v), sum(n), min(k), max(d) FROM f GROUP BY g, b ORDER BY g, b',
	'no group' => q{SELECT count(*), sum(v), sum(n), max(x), min(y) FROM f WHERE k < 500 AND g IS NOT NULL},
	'anti' => 'SELECT g, count(*), sum(v) FROM f WHERE NOT EXISTS (SELECT FROM d WHERE d.k = f.k) GROUP BY g ORDER BY g');

# Ok where each query's answer is PostgreSQL's, and so many percent (a pattern) of the
# rows were the device's own.
sub all_right
{
	my ($what, $percent, @names) = @_;
	for my $name (@names ? @names : sort keys %queries)
	{
		my $q = $queries{$name};
		is($node->safe_psql('postgres', "$device $q"), $node->safe_psql('postgres', "$stock $q"), "$what: $name");
		my $plan = $node->safe_psql('postgres', "$device EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $q");
		my $kept = $plan =~ /Device Pipeline: yes/ ? ($plan =~ /Device Columns: (\d+)% \(\d+kB on the device\)/ ? $1 : 'none') : 'no pipeline';
		like($kept, qr/^(?:$percent)$/, "... with $kept") or diag($plan);
	}
	return;
}

sub begin_psql { my ($out, $err, @sql) = @_; return IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), map { ('-c', $_) } @sql ], '>', $out, '2>', $err); }
sub load { $node->safe_psql('postgres', "SELECT hashgraph_join_load('f'), hashgraph_join_load('d'), hashgraph_join_load('e')"); return; }

for my $server ('auto', 'off')
{
	$node->append_conf('postgresql.conf', "hashgraph_join.gpu_server = $server");
	$node->restart;
	wait_for_device($node) if $server eq 'auto';
	fake_faults($node);
	my $how = $server eq 'auto' ? 'through the GPU process' : 'in the session';

	# ---- what is kept, and what is not
	all_right("$how, nothing kept", 'none');
	load();
	all_right("$how, all kept", '100');

	# what SQL says of the copies; the GPU process looks every second
	if ($server eq 'auto')
	{
		my $copies = q{(SELECT sum(device_bytes) FROM hashgraph_join_columns)};
		is($node->safe_psql('postgres', q{SELECT bool_and(coalesce(device_bytes, -1) BETWEEN 0 AND bytes) AND count(*) FILTER (WHERE device_bytes > 0) > 7 FROM hashgraph_join_columns}), 't', 'columns are on the device, each once');
		ok($node->poll_query_until('postgres', "SELECT column_memory = $copies FROM hashgraph_join_devices()"), 'the device has as much of them in all');
		my ($hits, $uploads) = split ' ', $node->safe_psql('postgres', q{SELECT column_hits || ' ' || column_uploads FROM hashgraph_join_devices()});
		$node->safe_psql('postgres', "$device $queries{'one join'}");
		ok($node->poll_query_until('postgres', "SELECT column_hits > $hits AND column_uploads = $uploads FROM hashgraph_join_devices()"), 'a query that finds them there');
		sessions_ended($node);
		is($node->safe_psql('postgres', 'SELECT sessions || $$ $$ || calls FROM hashgraph_join_devices()'), '0 0', 'nobody is on the device');
		# the next rows may still be on their way
		my $idle = 'DO $$ BEGIN FOR i IN 1 .. 6000 LOOP EXIT WHEN (SELECT calls = 0 FROM hashgraph_join_devices()); PERFORM pg_sleep(0.1); END LOOP; END $$;';
		is($node->safe_psql('postgres', "$device BEGIN; DECLARE c CURSOR FOR SELECT v, h FROM f JOIN d USING (k) WHERE v > 7; FETCH 1 FROM c; $idle SELECT sessions || ' ' || calls FROM hashgraph_join_devices()") =~ s/.*\n//sr,
			'1 0', 'an open cursor is, and waits for nothing');
	}
	else
	{
		is($node->safe_psql('postgres', q{SELECT count(device_bytes), count(*) > 12, (SELECT count(sessions) FROM hashgraph_join_devices()) FROM hashgraph_join_columns}), '0|t|0', 'a session without a device knows of none');
		like($node->safe_psql('postgres', "$device $queries{'one join'}; SELECT count(*) FROM hashgraph_join_columns WHERE device_bytes IS NOT NULL"), qr/\n\d\d$/, 'and with one, of its own');
	}

	# The rows of a session that has a snapshot from before, and of one that comes later.
	my $old = $node->background_psql('postgres');
	$old->query_safe("$device BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
	my $before = $old->query_safe($queries{'one join'});
	$node->safe_psql('postgres', 'UPDATE f SET v = v + 1, n = n + 1 WHERE k = 17; DELETE FROM f WHERE k = 40 AND g = 1; INSERT INTO f SELECT k, v, g, n, x, y, b, c, d, t, z FROM f WHERE k = 300');
	all_right("$how, some written", '[1-9]\d');
	is($old->query_safe($queries{'one join'}), $before, "$how: an old snapshot sees what it saw");
	$old->query_safe('COMMIT');
	$old->quit;
	$node->safe_psql('postgres', 'BEGIN; UPDATE f SET g = 2; ROLLBACK');
	all_right("$how, all written, rolled back", 'none', 'one join', 'no join');
	$node->safe_psql('postgres', 'VACUUM f');
	load();
	all_right("$how, vacuumed, and loaded again", '\d\d|100', 'one join', 'two joins', 'no join');
	for my $change ('VACUUM FULL f', 'ALTER TABLE f ALTER z TYPE bigint USING k', 'ALTER TABLE f ALTER z TYPE int', 'CREATE INDEX f_k ON f (k); CLUSTER f USING f_k; DROP INDEX f_k')
	{
		$node->safe_psql('postgres', $change);
		all_right("$how, $change", 'none', 'one join');
		$node->safe_psql('postgres', 'VACUUM f');
		load();
		all_right("$how, $change, loaded again", '\d\d|100', 'one join');
	}

	# A rescan, and groups of which there are more than expected: rows are pushed again.
	my $again = 'SELECT g.i, (SELECT sum(v) FROM f JOIN d USING (k) WHERE f.k < g.i * 100) FROM generate_series(1, 4) g(i) ORDER BY 1';
	is($node->safe_psql('postgres', "$device $again"), $node->safe_psql('postgres', "$stock $again"), "$how: rescans");
	$queries{many} = 'SELECT count(*), sum(c), sum(s) FROM (SELECT v, count(*) c, sum(h) s FROM f JOIN d USING (k) GROUP BY v OFFSET 0) x';
	all_right("$how", '\d\d|100', 'many');
	delete $queries{many};

	# What the host makes of single columns of few values goes as tables; of others, rows do.
	my %made = (
		'many tables' => 'SELECT ' . join(', ', map { "count(*) FILTER (WHERE f.t = 'text $_')" } 1 .. 12) . ', max(length(f.t)) FROM f',
		'years' => q{SELECT h, extract(year from f.d)::int, count(*), sum(CASE date_part('month', f.d) WHEN 3 THEN 1 END) FROM f JOIN d USING (k) GROUP BY 1, 2 ORDER BY 1, 2},
		'keys of text' => q{SELECT h, f.t, count(*), sum(v) FROM f JOIN d USING (k) GROUP BY h, f.t ORDER BY 1, 2},
		'LIKE' => q{SELECT h, count(*), sum(CASE WHEN f.t LIKE '%1%' THEN v ELSE 0 END), count(*) FILTER (WHERE f.t IS NULL) FROM f JOIN d USING (k) WHERE f.t <> 'text 3' AND coalesce(f.t, 'text 11') < 'text 9' GROUP BY h ORDER BY 1},
		'no join, text' => q{SELECT f.t, g, count(*), min(v) FROM f WHERE f.t IN ('text 1', 'text 16', 'text 5') OR f.t IS NULL GROUP BY f.t, g ORDER BY 1, 2});
	$queries{$_} = $made{$_} for keys %made;
	all_right("$how", '\d\d|100', sort keys %made);
	delete $queries{$_} for keys %made;
	$queries{'tableoid'} = 'SELECT f.tableoid::regclass, h, count(*), sum(v) FROM f JOIN d USING (k) GROUP BY f.tableoid, h ORDER BY 2';
	all_right("$how", 'none', 'tableoid');
	delete $queries{'tableoid'};
	$queries{'of rows'} = q{SELECT h, count(*) FILTER (WHERE date_part('day', f.d + f.k) = 3) FROM f JOIN d USING (k) GROUP BY h ORDER BY h};
	all_right("$how", 'none', 'of rows');
	delete $queries{'of rows'};

	# ---- devices that fail, or take no such rows
	for my $fault ('pipe_kept 1 lost', 'pipe_kept 1 memory', 'pipe_start 1 memory', 'pipe_finish 1 lost', 'pipe_kept 1 row')
	{
		fake_faults($node, $fault);
		is($node->safe_psql('postgres', "$device $queries{'one join'}"), $node->safe_psql('postgres', "$stock $queries{'one join'}"), "$how: $fault");
		fake_faults($node);
		wait_for_device($node);
	}
	fake_faults($node, 'pipe_kept 1 unsupported');
	is($node->safe_psql('postgres', "$device $queries{'one join'}"), $node->safe_psql('postgres', "$stock $queries{'one join'}"), "$how: a push that is not taken");
	# what the GPU process reads is not given back before that has ended
	$node->safe_psql('postgres', "ALTER SYSTEM SET hashgraph_join.gpu_server_timeout = '500ms'");
	$node->reload;
	fake_faults($node, 'pipe_kept 1 hang');
	is($node->safe_psql('postgres', "$device SET hashgraph_join.device_timeout = '300ms'; $queries{'one join'}"), $node->safe_psql('postgres', "$stock $queries{'one join'}"), "$how: one that hangs");
	fake_faults($node);
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET hashgraph_join.gpu_server_timeout');
	$node->reload;
	wait_for_device($node);
	fake_faults($node, 'pipe_kept 1 hang');
	fails_with($node, "$device SET statement_timeout = '200ms'; $queries{'one join'}", qr/canceling statement due to statement timeout/, "$how: a push that is cancelled");
	fake_faults($node);
	wait_for_device($node);
	all_right("$how, after all that", '\d\d|100', 'one join');

	# ---- writers: sums of an invariant, under whatever snapshot
	$node->safe_psql('postgres', 'DROP TABLE IF EXISTS accounts; CREATE TABLE accounts AS SELECT i AS id, i % 100 AS k, 1000::bigint AS money, 7 AS seven FROM generate_series(1, 40000) i; CREATE INDEX ON accounts (id); VACUUM ANALYZE accounts');
	$node->safe_psql('postgres', "SELECT hashgraph_join_load('accounts')");
	# keys of both are in d
	my $sum = $node->safe_psql('postgres', 'SELECT sum(money) FROM accounts JOIN d USING (k)');
	money_moves($node, $device, 'id', 'SELECT sum(money) || $$ $$ || sum(seven) / count(*) FROM accounts JOIN d USING (k)', "$sum 7", "$how: writers");
}

# ---- by cost: where columns are on the device, one process needs no workers
my $auto = "LOAD 'hashgraph_join'; SET hashgraph_join.engine = auto; SET hashgraph_join.device_launch_cost = 0.1; SET max_parallel_workers_per_gather = 2; SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 10;";
sub planned { return $node->safe_psql('postgres', "$auto EXPLAIN (COSTS OFF) $queries{$_[0]}"); }
$node->append_conf('postgresql.conf', 'hashgraph_join.gpu_server = auto');
$node->restart;
wait_for_device($node);
unlike(planned('one join'), qr/Device Pipeline: yes/, 'by cost, nothing kept: no pipeline');
load();
like(planned('one join'), qr/Device Pipeline: yes/, 'by cost, all kept: a pipeline');
unlike(planned('one join'), qr/Gather/, 'without workers');
like(planned('no join'), qr/Device Pipeline: yes/, 'by cost, all kept: a pipeline over a scan');
is($node->safe_psql('postgres', "$auto SET extra_float_digits = 0; $queries{$_}"), $node->safe_psql('postgres', "$stock $queries{$_}"), "by cost: $_") for sort keys %queries;

# ... unless the host would have to do it, all by itself
for my $q ('SELECT count(*), sum(v) FROM f WHERE k + g > 300', 'SELECT count(*), sum(v) FROM f WHERE n * n > 300', q{SELECT h, count(*) FILTER (WHERE date_part('day', f.d + f.k) = 3) FROM f JOIN d USING (k) GROUP BY h}, 'SELECT x, count(*) FROM f GROUP BY x', 'SELECT f.t || h, count(*) FROM f JOIN d USING (k) GROUP BY 1')
{
	unlike($node->safe_psql('postgres', "$auto EXPLAIN (COSTS OFF) $q"), qr/Device Pipeline/, "by cost, not for a device: $q");
}

# ---- a session that ends while a push is under way: what that reads is nobody else's before it is through
$node->safe_psql('postgres', q{CREATE TABLE other AS SELECT i % 911 AS a, -i * 7 AS b, i * 1000000009::bigint AS c, i % 89 AS d, i % 2 = 0 AS e, 'other ' || i % 23 AS t FROM generate_series(1, 150000) i; VACUUM ANALYZE other});
for my $case (map { [ $_, 'late' ], [ $_, 'reads_on' ] } 'pg_cancel_backend', 'pg_terminate_backend')
{
	my ($how, $what) = @$case;
	load();
	my $process = gpu_process($node);
	fake_faults($node, "pipe_kept 1 $what");
	my ($out, $err) = ('', '');
	my $psql = begin_psql(\$out, \$err, "SET application_name = 'victim'", "$device $queries{'one join'}");
	$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'victim' AND wait_event IN ('HashGraphDevice', 'Extension')}) or die 'nothing is under way';
	$node->safe_psql('postgres', "SELECT $how(pid) FROM pg_stat_activity WHERE application_name = 'victim'");
	for (1 .. 3)
	{
		$node->safe_psql('postgres', "SELECT hashgraph_join_unload('f'), hashgraph_join_unload('d'), hashgraph_join_unload('e'), hashgraph_join_load('other'), hashgraph_join_unload('other')");
		usleep(300_000);
	}
	$psql->finish;
	like($err, $how =~ /cancel/ ? qr/ERROR:  canceling statement/ : qr/FATAL:  terminating connection/, "$how while a push is $what");
	fake_faults($node);
	is(gpu_process($node), $process, '... which nobody disturbs');
	load();
	all_right("after $how, $what", '\d\d|100', 'one join');
}

# ... one that waits for the device for less time than it reads; a busy machine may have taken
# longer for a call before that, and the query goes on on the CPU then
for my $what ('late', 'reads_on')
{
	load();
	my $process = gpu_process($node);
	fake_faults($node, "pipe_kept 1 $what");
	my ($out, $err) = ('', '');
	my $psql = begin_psql(\$out, \$err, "SET application_name = 'victim'", "$device SET hashgraph_join.device_timeout = '100ms'", $queries{'one join'});
	my $state = q{SELECT count(*) FILTER (WHERE wait_event IN ('HashGraphDevice', 'Extension')) FROM pg_stat_activity WHERE application_name = 'victim'};
	wait_until('it begins', sub { $psql->pump_nb; $node->safe_psql('postgres', $state) =~ /^1/ || !$psql->pumpable });
	for (1 .. 3)
	{
		$node->safe_psql('postgres', "SELECT hashgraph_join_unload('f'), hashgraph_join_unload('d'), hashgraph_join_unload('e'), hashgraph_join_load('other'), hashgraph_join_unload('other')");
		usleep(300_000);
	}
	$psql->finish;
	is($out . $err, $node->safe_psql('postgres', "$stock $queries{'one join'}") . "\n", "device_timeout while a push is $what: the answer");
	fake_faults($node);
	is(gpu_process($node), $process, '... which nobody disturbs');
	load();
	all_right("after device_timeout, $what", '\d\d|100', 'one join');
}

# ... and one that goes on to other pages, and so gives chunks back, before they have been read
{
	$node->safe_psql('postgres', q{CREATE TABLE runs AS SELECT i % 1000 AS k, i * 1000000007::bigint AS v, repeat('p', 900) AS pad FROM generate_series(1, 25000) i; VACUUM ANALYZE runs});
	$node->safe_psql('postgres', q{SELECT hashgraph_join_load('runs', '{k,v}')});
	$node->safe_psql('postgres', 'UPDATE runs SET v = v WHERE v = 1000000007::bigint * 24000');
	load();
	my $query = 'SELECT h, count(*), sum(v) FROM runs JOIN d USING (k) GROUP BY h ORDER BY h';
	my $answer = $node->safe_psql('postgres', "$stock $query");
	my $process = gpu_process($node);
	fake_faults($node, map { "pipe_kept $_ reads_on" } 1 .. 4);
	my ($out, $err) = ('', '');
	my $psql = begin_psql(\$out, \$err, "$device $query", "$device EXPLAIN (ANALYZE, COSTS OFF) $query");
	for (1 .. 12)
	{
		usleep(200_000);
		$node->safe_psql('postgres', "SELECT hashgraph_join_unload('runs'), hashgraph_join_load('other'), hashgraph_join_load('f'), hashgraph_join_unload('other'), hashgraph_join_unload('f')");
	}
	$psql->finish;
	is(substr($out, 0, length $answer) . $err, $answer, 'pages that are staged while kept ones are read: the answer');
	fake_faults($node);
	is(gpu_process($node), $process, '... and nobody disturbs that');
	load();
}

# ---- a channel that gets no thread, with rows that were posted for it
{
	$node->restart;
	wait_for_device($node);
	load();
	my $process = gpu_process($node);
	chomp(my $most = `prlimit --pid=$process --nproc --output=HARD --noheadings`);
	$most =~ s/ //g;
	is(system('prlimit', "--pid=$process", '--nproc=1:'), 0, 'the GPU process may have no more threads');
	is($node->safe_psql('postgres', "$device $queries{'no join'}"), $node->safe_psql('postgres', "$stock $queries{'no join'}"), '... a query goes on on the CPU');
	is(system('prlimit', "--pid=$process", "--nproc=$most:"), 0, 'it may have more again');
	all_right('after that', '\d\d|100', 'no join');
	is(gpu_process($node), $process, '... by the same process');
}

# ---- none at all, and how much
$node->append_conf('postgresql.conf', "hashgraph_join.gpu_server = auto\nhashgraph_join.device_column_memory = 0");
$node->restart;
wait_for_device($node);
load();
all_right('device_column_memory = 0', 'none', 'one join', 'no join');
fails_with($node, "SET hashgraph_join.device_column_memory = '1GB'", qr/cannot be changed without restarting the server/, 'device_column_memory');

done_testing();
