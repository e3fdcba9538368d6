# Engines in libraries of their own, without a GPU: libraries that are missing or
# of another version, and a fake device (test/fake) that fails wherever it can.
# Answers are PostgreSQL's or there is a clear error; sessions go on.  Joins go
# through tables and probes here; 016_pipelines.pl is about pipelines.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $lib = "$FindBin::Bin/../fake";
ok(-r "$lib/$_", "test/fake/build/$_ has been made") for qw(fake.so old_abi.so no_entry.so);

my $node = new_server('main', 'max_parallel_workers_per_gather = 0', "work_mem = '64MB'");
$node->safe_psql(
	'postgres', q{
	CREATE TABLE f AS SELECT i % 30000 AS k, i AS v, 'k' || i % 3000 AS t FROM generate_series(1, 60000) i;
	CREATE TABLE d AS SELECT i AS k, i % 10 AS g, i % 3 AS s, 'k' || i AS t FROM generate_series(1, 20000) i;
	INSERT INTO f SELECT NULL, -i, NULL FROM generate_series(1, 100) i;
	CREATE TABLE dup AS SELECT i % 500 AS k, i AS v FROM generate_series(1, 20000) i;
	CREATE SEQUENCE s;
	ANALYZE f, d, dup;
});
my $faults = $node->data_dir . '/hgj_fake_engine';

# What sessions begin with; the faults of the fake engine.
sub cuda
{
	my ($library) = @_;
	return "$FORCED SET hashgraph_join.engine = cuda; SET hashgraph_join.cuda_library = '$library';";
}
my $fake = cuda("$lib/fake.so");
sub faults { fake_faults($node, 'no_pipelines', @_); return; }
faults();

my $sum = 'SELECT count(*), sum(v) FROM f JOIN d USING (k)';
my $answer = $node->safe_psql('postgres', $sum);

# ---- libraries that are no engine of ours
my %broken = (
	'nothing' => qr/could not load "[^"]*nothing\.so": file not found/,
	'/nowhere/at_all.so' => qr{could not load "/nowhere/at_all\.so": file not found},
	"$lib/old_abi.so" => qr/library "[^"]*" has engine ABI version 1, expected \d+/,
	"$lib/no_entry.so" => qr/library "[^"]*" has no function "hgj_engine_entry"/);
for my $library (sort keys %broken)
{
	my $name = $library =~ s{.*/}{}r;
	my $begin = cuda($library);
	is($node->safe_psql('postgres', "$begin $sum"), $answer, "$name: the CPU answers");
	like($node->safe_psql('postgres', "$begin EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $sum"),
		qr/Engine: cpu\n.*Fallback: cpu engine \($broken{$library}/s, "$name: EXPLAIN says why");
	like($node->safe_psql('postgres', "$begin SELECT device IS NULL, state, detail FROM hashgraph_join_devices()"),
		qr/^t\|off\|$broken{$library}/, "$name: so does hashgraph_join_devices()");
	is($node->safe_psql('postgres', "$begin SELECT hashgraph_join_release()"), 'f', "$name: there is nothing to give back");
	fails_with($node, "$begin SET hashgraph_join.require = 'cuda'; $sum", qr/could not run on the GPU.*DETAIL:  $broken{$library}/s,
		"$name: required");
}

# ---- auto: by cost, and asked for once where there is nothing
my $cheap = 'SET hashgraph_join.engine = auto; SET hashgraph_join.device_startup_cost = 0; SET hashgraph_join.device_launch_cost = 0; SET hashgraph_join.device_transfer_cost = 0;';
my ($rc, $out, $err) = $node->psql('postgres',
	cuda('nothing') . "$cheap SET client_min_messages = debug1; EXPLAIN $sum; EXPLAIN $sum; $sum");
my @said = $err =~ /left out of account/g;
is(scalar @said, 1, 'auto, no library: looked for once in a session');
unlike($out, qr/Planned Engine/, 'auto, no library: plans as ever');
like($out, qr/^\Q$answer\E$/m, 'auto, no library: the answer');
is($node->safe_psql('postgres', "$fake SET hashgraph_join.engine = auto; EXPLAIN $sum"),
	$node->safe_psql('postgres', "$FORCED SET hashgraph_join.engine = cpu; EXPLAIN $sum"), 'auto, dear device: costs as on the CPU');
like($node->safe_psql('postgres', "$fake $cheap EXPLAIN (COSTS OFF) $sum"), qr/Planned Engine: cuda/, 'auto, cheap device: planned for it');
like($node->safe_psql('postgres', "$fake $cheap EXPLAIN (ANALYZE, COSTS OFF) $sum"), qr/ Engine: cuda\n/, 'auto, cheap device: runs on it');
is($node->safe_psql('postgres', "$fake $cheap SET hashgraph_join.require = 'cuda'; $sum"), $answer, 'auto, required and cheap');
fails_with($node, "$fake SET hashgraph_join.engine = auto; SET hashgraph_join.require = 'cuda'; $sum", qr/was planned for the CPU/,
	'auto, required and dear');
fails_with($node, "$fake SET hashgraph_join.engine = cpu; SET hashgraph_join.require = 'cuda'; $sum", qr/was planned for the CPU/,
	'required, and the CPU asked for');
like($node->safe_psql('postgres', "$fake $cheap SET hashgraph_join.device_memory_limit = '64kB'; EXPLAIN (COSTS OFF) $sum"),
	qr/^(?!.*Planned Engine)/s, 'auto: not planned for a device that is too small');

# ---- auto: joins that do not pay by themselves may in a pipeline
my $pays = "$fake SET hashgraph_join.engine = auto; SET hashgraph_join.device_startup_cost = 0; SET hashgraph_join.device_launch_cost = 0; SET hashgraph_join.device_transfer_cost = 0.5;";
my $chain = 'FROM f LEFT JOIN (SELECT k FROM d WHERE k < 900) a USING (k) LEFT JOIN (SELECT g AS h, s FROM d WHERE k <= 10) b ON f.v = b.h';
like($node->safe_psql('postgres', "$pays EXPLAIN (COSTS OFF) SELECT count(*), sum(v) $chain"),
	qr/(?:Planned Engine: cuda.*){2}/s, 'pipeline: both joins are planned for the GPU');
unlike($node->safe_psql('postgres', "$pays EXPLAIN (COSTS OFF) SELECT v, s $chain"), qr/Planned Engine/,
	'pipeline: neither is where rows are returned');
unlike($node->safe_psql('postgres', "$pays EXPLAIN (COSTS OFF) SELECT min(f.t), count(*), sum(v) $chain"), qr/Planned Engine/,
	'pipeline: neither is where it does not fit');
unlike($node->safe_psql('postgres', "$pays SET hashgraph_join.device_startup_cost = 100000; EXPLAIN (COSTS OFF) SELECT count(*), sum(v) $chain"),
	qr/Planned Engine/, 'pipeline: neither is where the GPU takes too long to open');
is($node->safe_psql('postgres', "$pays SELECT count(*), sum(v) $chain"), $node->safe_psql('postgres', "SELECT count(*), sum(v) $chain"),
	'pipeline: the answer');
is($node->safe_psql('postgres', "$pays SELECT f.t, count(*), sum(v) $chain GROUP BY f.t ORDER BY 1"),
	$node->safe_psql('postgres', "SELECT f.t, count(*), sum(v) $chain GROUP BY f.t ORDER BY 1"), 'pipeline: the answer where it does not fit');
my $unforced = $node->safe_psql('postgres', "$pays RESET hashgraph_join.force; SET hashgraph_join.min_rows = 0; EXPLAIN (FORMAT JSON) SELECT count(*), sum(v) $chain");
my @below = decode_json($unforced)->[0]{Plan};
while (my $plan = shift @below)
{
	push @below, @{ $plan->{Plans} || [] };
	ok($plan->{'Total Cost'} >= $_->{'Total Cost'}, "pipeline: $plan->{'Node Type'} costs no less than what is below") for @{ $plan->{Plans} || [] };
}

fails_with($node, "LOAD 'hashgraph_join'; SET ROLE pg_monitor; SET hashgraph_join.cuda_library = 'mine'", qr/permission denied to set parameter/,
	'only superusers choose libraries');

# ---- EXPLAIN ANALYZE
my $plan = $node->safe_psql('postgres', "$fake EXPLAIN (ANALYZE, COSTS OFF) $sum");
like($plan, qr/Engine: cuda\n\s+Device: Fake GPU\n\s+Build: /, 'EXPLAIN: engine, device and algorithm');
like($plan, qr/Device Memory: [1-9]\d*kB  To Device: [1-9]\d*kB  From Device: [1-9]\d*kB\n\s+Kernel Time: \d+\.\d+ ms  Transfer Time: \d+\.\d+ ms/,
	'EXPLAIN: memory, transfers and times');
unlike($plan, qr/Fallback/, 'EXPLAIN: no fallback');
unlike($node->safe_psql('postgres', "$fake EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $sum"), qr/Kernel Time/, 'EXPLAIN: no times without TIMING');
my ($top) = @{ decode_json($node->safe_psql('postgres', "$fake EXPLAIN (ANALYZE, FORMAT JSON) $sum")) };
my $join = $top->{Plan};
$join = $join->{Plans}[0] while ($join->{'Custom Plan Provider'} || '') ne 'HashGraphJoin';
is($join->{Device}, 'Fake GPU', 'EXPLAIN, JSON: the device');
cmp_ok($join->{$_}, '>', 0, "EXPLAIN, JSON: $_") for 'Device Memory', 'To Device', 'From Device', 'Kernel Time', 'Transfer Time';

# ---- memory: the device's and the host's are counted apart
my $small = "SET work_mem = '1MB'; SET hash_mem_multiplier = 1;";
like($node->safe_psql('postgres', "$FORCED SET hashgraph_join.engine = cpu; SET hashgraph_join.build = v2; $small EXPLAIN (ANALYZE, COSTS OFF) SELECT count(*) FROM f a JOIN f b ON a.v = b.v"),
	qr/(Passes: \d|Partitions: \d|Batches: \d)/, 'the CPU needs more than work_mem for this table');
$plan = $node->safe_psql('postgres', "$fake SET hashgraph_join.build = v2; $small EXPLAIN (ANALYZE, COSTS OFF) SELECT count(*) FROM f a JOIN f b ON a.v = b.v");
like($plan, qr/Engine: cuda/, 'on the device it has nothing to do with work_mem');
unlike($plan, qr/(Passes|Partitions|Batches|Fallback): /, 'and fits');
for my $limit ("SET hashgraph_join.device_memory_limit = '64kB';", '')
{
	faults($limit ? () : 'free 65536');
	my $name = $limit ? 'a limit' : 'little free memory';
	like($node->safe_psql('postgres', "$fake $limit EXPLAIN (ANALYZE, COSTS OFF) $sum"),
		qr/Engine: cpu\n.*Fallback: cpu engine \(not enough device memory: /s, "$name: EXPLAIN says why");
	is($node->safe_psql('postgres', "$fake $limit $sum"), $answer, "$name: the answer");
}

# ---- faults in every call
my $digest = sub { "SELECT count(*), md5(string_agg(x::text, ';' ORDER BY x::text)) FROM ($_[0]) x" };
my %query = (
	inner => 'SELECT f.v, d.g FROM f JOIN d USING (k)',
	'inner, duplicates' => 'SELECT f.v, dup.v AS w FROM f JOIN dup USING (k) WHERE f.v < 20000',
	residual => 'SELECT f.v, d.g FROM f JOIN d ON f.k = d.k AND f.v % 3 = d.s',
	text => 'SELECT f.v, d.g FROM f JOIN d USING (t)',
	left => 'SELECT f.v, d.g FROM f LEFT JOIN d USING (k)',
	right => 'SELECT f.v, d.k FROM f RIGHT JOIN d ON f.k = d.k AND f.v > 50000',
	full => 'SELECT f.v, d.k FROM f FULL JOIN d ON f.k = d.k AND f.v > 30000',
	semi => 'SELECT f.v FROM f WHERE EXISTS (SELECT 1 FROM d WHERE d.k = f.k)',
	'semi, residual' => 'SELECT d.k FROM d WHERE EXISTS (SELECT 1 FROM dup WHERE dup.k = d.k AND dup.v % 7 = d.s)',
	anti => 'SELECT f.v FROM f WHERE NOT EXISTS (SELECT 1 FROM d WHERE d.k = f.k)',
	star => 'SELECT f.v, a.g, b.s FROM f JOIN d a ON f.k = a.k JOIN d b ON f.k + 0 = b.k',
	groups => 'SELECT d.g, count(*), sum(f.v) FROM f JOIN d USING (k) GROUP BY d.g',
	rescans => 'SELECT x.i, (SELECT count(f.v) FROM f RIGHT JOIN d USING (k) WHERE d.g > x.i) FROM generate_series(1, 3) AS x(i)');
my %fault = (
	'table_create 1' => 'begin', 'append 1' => 'begin', 'append 3' => 'begin', 'build 1' => 'begin', 'probe_create 1' => 'begin',
	'probe_begin 1' => 'begin', 'probe_next 1' => 'begin',
	'probe_begin 2' => 'later', 'probe_begin 4' => 'later', 'probe_next 2' => 'later', 'probe_next 5' => 'later', 'append 25' => 'later',
	'mark 1' => 'later', 'mark 2000' => 'later', 'unmatched 1' => 'later', 'unmatched 2' => 'later', 'clear_marks 1' => 'begin');
my $refused = qr/the device of a HashGraphJoin failed|ERROR:  out of memory|passed a limit of its cuda engine/;
my %stock = map { $_ => $node->safe_psql('postgres', $digest->($query{$_})) } keys %query;
my ($wrong, $right, $refusals) = (0, 0, 0);
for my $memory ('', "SET work_mem = '64kB'; SET hash_mem_multiplier = 1;")
{
	for my $what ('lost', 'memory')
	{
		for my $fault (sort keys %fault)
		{
			my @late;
			faults("$fault $what");
			for my $q (sort keys %query)
			{
				next if $memory && $q !~ /^(inner|left|full|semi, residual)$/;
				my ($rc, $out, $err) = $node->psql('postgres', "$fake $memory " . $digest->($query{$q}), on_error_stop => 1);
				if ($rc == 0 && $out eq $stock{$q}) { $right++; }
				elsif ($rc != 0 && $err =~ $refused && $err =~ /HINT|DETAIL/ && $fault{$fault} eq 'later') { $refusals++; }
				else { $wrong++; diag("$q, $fault $what $memory: $rc $out $err"); }
			}
		}
	}
}
is($wrong, 0, "faults in every call: the right answer or a clear error ($right answers, $refusals errors)");
cmp_ok($right, '>', $refusals * 4, 'mostly the answer');

# ---- rows have left: later batches go on on the CPU, and the session lives
faults('probe_begin 4 lost');
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe($fake);
is($session->query_safe("SELECT (x).count FROM (SELECT count(*) FROM ($query{left}) y) x"), 60100,
	'a device is lost between batches: all rows');
is($session->query_safe("SELECT state, detail FROM hashgraph_join_devices()"), 'off|the device was lost earlier in this session',
	'hashgraph_join_devices() says that it is off');
like($session->query("EXPLAIN (ANALYZE, COSTS OFF) $sum"), qr/Fallback: cpu engine \(the device was lost earlier in this session\)/,
	'so does the next query');
is($session->query_safe($sum), join('|', split /\|/, $answer), 'which has the right answer');
is($session->query_safe('SELECT hashgraph_join_release()'), 'f', 'a lost device cannot be given back');
faults();
like($node->safe_psql('postgres', "$fake EXPLAIN (ANALYZE, COSTS OFF) $sum"), qr/Engine: cuda/, 'another session notices nothing');
$session->quit;

# ---- EXPLAIN counts a side that is read again once, as if nothing had happened
my %scans = (
	'table_create 1' => 'nothing read', 'append 3' => 'the build side being read', 'build 1' => 'all of it read',
	'probe_next 1' => 'the outer side begun', 'probe_begin 3' => 'in the middle of it');
for my $fault (sort keys %scans)
{
	for my $q ('SELECT count(*) FROM f JOIN d USING (k) WHERE f.v > 10 AND d.g > 0', 'SELECT count(*) FROM f RIGHT JOIN d ON f.k = d.k AND f.v > 10 WHERE d.g > 0')
	{
		my $explain = "SET hashgraph_join.aggregate = off; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $q";
		my $rows = sub { join "\n", grep { /Scan on|Removed/ } split /\n/, $_[0] };
		faults();
		my $good = $rows->($node->safe_psql('postgres', "$fake $explain"));
		like($good, qr/Seq Scan on f \(actual rows=[\d.]+ loops=1\).*Seq Scan on d \(actual rows=18000(?:\.00)? loops=1\)/s, 'scans without a fault') if $fault eq 'append 3';
		faults("$fault lost");
		my ($rc, $out, $err) = $node->psql('postgres', "$fake $explain");
		if ($rc != 0) { like($err, $refused, "$scans{$fault}: refused"); next; }
		like($out, qr/Fallback: cpu engine/, "$scans{$fault}: falls back");
		is($rows->($out), $good, "$scans{$fault}: rows and loops of the scans");
	}
}

# ---- and hashgraph_join_stats() counts what ran, and why not as planned (here, a session's own)
my $counted = "SET hashgraph_join.aggregate = off; $sum; SELECT joins, joins_cpu, joins_cuda, to_device_bytes > 0, from_device_bytes > 0, peak_device_memory_bytes > 0 FROM hashgraph_join_stats(); SELECT kind, reason, count FROM hashgraph_join_fallbacks()";
faults();
is($node->safe_psql('postgres', "$fake $counted"), "$answer\n1|0|1|t|t|t", 'a join on the device is counted');
faults('build 1 lost');
like($node->safe_psql('postgres', "$fake $counted"), qr/^\Q$answer\E\n1\|1\|0\|.*\nengine\|the device failed\|1$/, 'one that falls back, too');
faults('build 1 memory');
like($node->safe_psql('postgres', "$fake $counted"), qr/\nengine\|not enough device memory\|1\nmemory\|half of the device memory: the other half was refused\|1$/, 'for each reason');
faults();
like($node->safe_psql('postgres', "$fake SET hashgraph_join.require = 'aggregate'; $sum; SELECT kind, reason, count FROM hashgraph_join_fallbacks()"),
	qr/\npipeline\|table that it cannot probe\|1$/, 'and pipelines');

# ---- what must not be read again
faults('append 3 lost');
my $volatile = "SELECT count(*) FROM f JOIN (SELECT k, nextval('s') AS n FROM d OFFSET 0) d USING (k)";
fails_with($node, "$fake $volatile", qr/the device of a HashGraphJoin failed.*HINT/s, 'a side that calls nextval() is not read twice');
faults('table_create 1 lost');
is($node->safe_psql('postgres', "$fake SELECT setval('s', 1) \\g /dev/null\n$volatile; SELECT last_value FROM s"),
	$node->safe_psql('postgres', $volatile) . "\n20001", 'but before it has been read, nothing is in the way');

faults('append 1 lost');
fails_with($node, "$fake SELECT count(*) FROM f JOIN (VALUES (nextval('s')), (nextval('s'))) d(k) USING (k)",
	qr/the device of a HashGraphJoin failed.*HINT/s, 'nor is a list of VALUES that calls it');

# ---- what comes before and after a pipeline
faults();
my $agg = "$fake SET hashgraph_join.require = 'aggregate';";
like($node->safe_psql('postgres', "$agg EXPLAIN (ANALYZE, COSTS OFF) $sum"), qr/Device Pipeline: no \(table that it cannot probe\)/,
	'a pipeline that is refused: EXPLAIN says why');
my $anti = 'SELECT count(*) FROM f WHERE %s NOT EXISTS (SELECT 1 FROM d WHERE d.k = f.k AND 10 / (d.g - %d) > 0)';
is($node->safe_psql('postgres', "$agg " . sprintf($anti, 'v = 0 AND', 7)), 0, 'beside an empty side no build side raises an error');
fails_with($node, "$agg " . sprintf($anti, '', 7), qr/division by zero/, 'beside another it does');
is($node->safe_psql('postgres', "$agg " . sprintf($anti, '', 17)), $node->safe_psql('postgres', sprintf($anti, '', 17)), 'or there is none');
like($node->safe_psql('postgres', "$agg EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) " . sprintf($anti, 'v > 0 AND', 17)),
	qr/Device Pipeline: no \(table.*Seq Scan on f \(actual rows=60000(?:\.00)? loops=1\)/s, 'and the outer side counts once');
like($node->safe_psql('postgres', "$agg SET join_collapse_limit = 1; EXPLAIN (COSTS OFF) SELECT count(*) FROM f LEFT JOIN d a ON f.k = a.k LEFT JOIN (SELECT k FROM d WHERE 10 / (g - 7) > 0) b ON f.v = b.k"),
	qr/Device Pipeline: no \(build side that may raise an error\)/, 'above the bottom join that is for the host');

# several passes make the join below give slots; the next execution needs one
my $passes = 'SELECT x.i, (SELECT sum(b.s) FROM f JOIN d a ON f.k = a.k JOIN d b ON f.v = b.k AND b.k < x.i) FROM (VALUES (20000), (10), (20000)) x(i)';
$plan = $node->safe_psql('postgres', my $generic = "LOAD 'hashgraph_join'; SET hashgraph_join.engine = cuda; SET hashgraph_join.cuda_library = '$lib/fake.so';
	SET hashgraph_join.min_rows = 0; SET hashgraph_join.emit_tuple_cost = 0; SET hashgraph_join.probe_tuple_cost = 0; SET hashgraph_join.spill = 'passes';
	SET enable_nestloop = off; SET enable_mergejoin = off; SET join_collapse_limit = 1; SET plan_cache_mode = force_generic_plan;
	PREPARE p AS $passes; EXPLAIN (COSTS OFF) EXECUTE p");
like($plan, qr/Device Pipeline: yes.*HashGraphJoin.*Filter: \(k < "\*VALUES\*"\.column1\)/s, 'passes, then none: planned as a pipeline');
is($node->safe_psql('postgres', "$generic \\g /dev/null\nSET work_mem = '64kB'; SET hash_mem_multiplier = 1; EXECUTE p"),
	$node->safe_psql('postgres', $passes), 'passes, then none: the answer');

# ---- a device that hangs
faults('probe_next 2 hang');
like($node->safe_psql('postgres', "$fake SET hashgraph_join.device_timeout = '300ms'; EXPLAIN (ANALYZE, COSTS OFF) $sum"),
	qr/Fallback: cpu engine \(the device failed: the device has not answered in time\)/, 'a device that hangs counts as lost');
for my $call ('append 2', 'build 1', 'probe_next 1')
{
	faults("$call hang");
	$session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query_safe($fake);
	$session->query("SET statement_timeout = '500ms'; $sum");
	like($session->{stderr}, qr/canceling statement due to statement timeout/, "$call hangs: the query can be cancelled");
	$session->{stderr} = '';
	faults();
	is($session->query_safe("RESET statement_timeout; $sum"), $answer, "$call hangs: the session goes on");
	like($session->query("EXPLAIN (ANALYZE, COSTS OFF) $sum"), qr/Engine: cuda/, "$call hangs: on the device");
	$session->quit;
}

# ---- tables on the device, and giving it back
faults();
$session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe($fake);
is($session->query_safe('SELECT state, memory_free IS NULL, tables FROM hashgraph_join_devices()'), 'available|t|0', 'listed without being opened');
$session->query_safe("$sum;");
is($session->query_safe('SELECT device, name, compute_capability, memory_total, memory_free, driver_version, runtime_version, state, tables, detail FROM hashgraph_join_devices()'),
	'0|Fake GPU|9.0|1073741824|536870912|13.0|12.8|open|0|', 'open after a query, without a table');
$session->query_safe("BEGIN; DECLARE c CURSOR FOR $query{inner}; FETCH 1 FROM c;");
is($session->query_safe('SELECT tables FROM hashgraph_join_devices()'), '1', 'a cursor holds a table');
$session->query('SELECT hashgraph_join_release();');
like($session->{stderr}, qr/cannot give the GPU back while 1 table is on it\nHINT/, 'and the device with it');
$session->{stderr} = '';
$session->query('ROLLBACK;');
is($session->query_safe('SELECT tables FROM hashgraph_join_devices()'), '0', 'until it ends');
is($session->query_safe('SELECT hashgraph_join_release()'), 't', 'then it is given back');
is($session->query_safe('SELECT state FROM hashgraph_join_devices()'), 'available', 'and closed');
is($session->query_safe('SELECT hashgraph_join_release()'), 'f', 'once');
is($session->query_safe($sum), $answer, 'and opened again when needed');
$session->quit;

faults('unusable');
is($node->safe_psql('postgres', "$fake SELECT state, detail FROM hashgraph_join_devices()"), 'off|the device is too old', 'a device that is too old is listed');
is($node->safe_psql('postgres', "$fake $sum"), $answer, 'and not used');
is($node->safe_psql('postgres', "$fake SELECT available, detail FROM hashgraph_join_info() WHERE engine = 'cuda'"), 'f|the device is too old',
	'hashgraph_join_info() says so, too');

# ---- parallel plans: every process has a context of its own
faults();
my $parallel = 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;';
$plan = $node->safe_psql('postgres', "$fake $parallel EXPLAIN (ANALYZE, COSTS OFF) $sum");
like($plan, qr/Gather.*Workers Built: [1-9].*Engine: cuda/s, 'workers use the device');
is($node->safe_psql('postgres', "$fake $parallel $sum"), $answer, 'rightly');
for my $fault ('append 3 lost', 'probe_begin 2 lost', 'probe_next 1 memory', 'open 1 lost')
{
	faults($fault);
	is($node->safe_psql('postgres', "$fake $parallel $sum"), $answer, "$fault: in every worker");
}
faults();

$node->stop;
done_testing();
