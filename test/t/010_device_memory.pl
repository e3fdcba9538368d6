# Build sides that do not fit into device memory, on the fake device (test/fake):
# partitions that do, in the host's memory while there is room and on files when
# there is none; and a device that has less memory than it said.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $lib = "$FindBin::Bin/../fake/fake.so";
my $node = new_server('main', 'max_parallel_workers_per_gather = 0', "work_mem = '64MB'", 'hash_mem_multiplier = 1');
$node->safe_psql(
	'postgres', q{
	CREATE TABLE f AS SELECT i % 90000 AS k, i AS v, 'k' || i % 90000 AS t FROM generate_series(1, 120000) i;
	CREATE TABLE d AS SELECT i AS k, i % 10 AS g, i % 3 AS s, 'k' || i AS t, repeat('w', i % 50) AS w FROM generate_series(1, 60000) i;
	INSERT INTO f SELECT NULL, -i, NULL FROM generate_series(1, 100) i;
	INSERT INTO d SELECT NULL, -i, 1, NULL, 'x' FROM generate_series(1, 100) i;
	CREATE TABLE hot AS SELECT 7 AS k, i AS v FROM generate_series(1, 30000) i;
	INSERT INTO hot SELECT i, i FROM generate_series(1, 30000) i;
	CREATE SEQUENCE s;
	ANALYZE f, d, hot;
});
my $faults = $node->data_dir . '/hgj_fake_engine';
sub faults { fake_faults($node, @_); return; }
faults();

my $fake = "$FORCED SET hashgraph_join.engine = cuda; SET hashgraph_join.cuda_library = '$lib';";
my $small = "SET hashgraph_join.device_memory_limit = '700kB';";
my $digest = sub { "SELECT count(*), md5(string_agg(x::text, ';' ORDER BY x::text)) FROM ($_[0]) x" };
my %query = (
	inner => 'SELECT f.v, d.g FROM f JOIN d USING (k)',
	residual => 'SELECT f.v, d.g FROM f JOIN d ON f.k = d.k AND f.v % 3 = d.s',
	text => 'SELECT f.v, d.g, d.w FROM f JOIN d USING (t)',
	left => 'SELECT f.v, d.g, d.w FROM f LEFT JOIN d USING (k)',
	right => 'SELECT f.v, d.k FROM f RIGHT JOIN d ON f.k = d.k AND f.v > 50000',
	full => 'SELECT f.v, d.k, d.w FROM f FULL JOIN d ON f.k = d.k AND f.v > 30000',
	semi => 'SELECT f.v FROM f WHERE EXISTS (SELECT 1 FROM d WHERE d.k = f.k)',
	'semi, residual' => 'SELECT f.v FROM f WHERE EXISTS (SELECT 1 FROM hot WHERE hot.k = f.k AND hot.v % 7 = f.v % 5)',
	anti => 'SELECT f.v FROM f WHERE NOT EXISTS (SELECT 1 FROM d WHERE d.k = f.k)',
	'one hot key' => 'SELECT hot.v, f.v AS w FROM f JOIN hot USING (k) WHERE f.v < 60000',
	star => 'SELECT f.v, a.g, b.s FROM f JOIN d a ON f.k = a.k JOIN d b ON f.v = b.k',
	groups => 'SELECT d.g, d.w, count(*), sum(f.v) FROM f JOIN d USING (k) GROUP BY d.g, d.w',
	count => 'SELECT count(*), sum(v), sum(g) FROM f JOIN d USING (k)',
	rescans => 'SELECT x.i, (SELECT count(f.v) FROM f RIGHT JOIN d USING (k) WHERE d.g > x.i) FROM generate_series(1, 2) AS x(i)');
my %stock = map { $_ => $node->safe_psql('postgres', $digest->($query{$_})) } keys %query;

# ---- every kind of join, with room on the host and without, and in passes
for my $memory ('', "SET work_mem = '4MB';", "SET work_mem = '1MB';", "SET hashgraph_join.spill = passes;", "SET hashgraph_join.spill = partitions;")
{
	for my $q (sort keys %query)
	{
		my $name = "$q" . ($memory ? ", $memory" : '');
		is($node->safe_psql('postgres', "$fake $small $memory " . $digest->($query{$q})), $stock{$q}, "$name: the answer");
		next if $memory && $q !~ /^(left|full|groups)$/;
		like($node->safe_psql('postgres', "$fake $small $memory EXPLAIN (ANALYZE, COSTS OFF) $query{$q}"),
			qr/Engine: cuda.*Fallback: (partitions|several passes) \(the build side does not fit into (device )?memory\)/s, "$name: on the device");
	}
}

# ---- what EXPLAIN says
my $explain = "EXPLAIN (ANALYZE, COSTS OFF)";
my $plan = $node->safe_psql('postgres', "$fake $small $explain $query{left}");
like($plan, qr/Passes: \d+  Partitions: \d+\n.*Spilled Inner: 0kB  Spilled Outer: 0kB.*Partitions in Memory: [1-9]\d+kB/, 'the host has room: no file');
like($plan, qr/Fallback: partitions \(the build side does not fit into device memory\)/, 'and why');
my ($device) = $plan =~ /Device Memory: (\d+)kB/;
cmp_ok($device, '<=', 700, 'device memory stays within its limit');
is($node->safe_psql('postgres', "$fake $small SET temp_file_limit = 0; " . $digest->($query{$_})), $stock{$_}, "$_: without a temporary file")
  for qw(left full text groups);
$plan = $node->safe_psql('postgres', "$fake $small SET work_mem = '4MB'; $explain $query{text}");
like($plan, qr/Spilled Outer: [1-9]\d+kB.*Partitions in Memory: [1-9]\d+kB/, 'little room: some of it on files');
my ($host) = $plan =~ /Memory Usage: (\d+)kB/;
cmp_ok($host, '<=', 4096 + 256, 'the host\'s memory stays within its limit');
like($node->safe_psql('postgres', "$fake $small $explain $query{count}"), qr/Device Pipeline: no \(build side does not fit into memory\).*Engine: cuda/s,
	'no pipeline, but the device');
like($node->safe_psql('postgres', "$fake SET hashgraph_join.device_memory_limit = '64kB'; $explain $query{left}"),
	qr/Engine: cpu.*Fallback: cpu engine \(not enough device memory: the build side is too large\)/s, 'where hardly anything fits the CPU does it all');
my $cheap = 'SET hashgraph_join.engine = auto; SET hashgraph_join.device_startup_cost = 0; SET hashgraph_join.device_launch_cost = 0; SET hashgraph_join.device_transfer_cost = 0; SET hashgraph_join.build_tuple_cost = 1;';
faults('free 700000');
like($node->safe_psql('postgres', "$fake $cheap $explain $query{left}"),
	qr/Engine: cpu.*Fallback: cpu engine \(not enough device memory: the build side is too large\)/s, 'nobody asked for the device, and memory suffices: the CPU');
like($node->safe_psql('postgres', "$fake $explain $query{left}"), qr/Engine: cuda.*partitions \(the build side does not fit into device memory\)/s, 'little free memory');
faults();
is($node->safe_psql('postgres', "$fake $small SELECT count(*) FROM f JOIN (SELECT k, nextval('s') AS n FROM d OFFSET 0) d USING (k)"),
	$node->safe_psql('postgres', 'SELECT count(*) FROM f JOIN d USING (k)'), 'a side that calls nextval() is read once');
is($node->safe_psql('postgres', 'SELECT last_value FROM s'), 60100, 'indeed');

# ---- the device has less memory than it said, or fails, while units are joined
my %unit = map { $_ => 1 } qw(left full semi text);
my $refused = qr/the device of a HashGraphJoin failed|ERROR:  out of memory|passed a limit of its cuda engine/;
my ($wrong, $right, $refusals) = (0, 0, 0);
for my $what ('memory', 'limit', 'lost')
{
	# tables are built one after the other, and calls are counted anew for each
	for my $fault ('table_create 1', 'append 12', 'build 1', 'probe_create 1', 'probe_begin 1', 'probe_next 2')
	{
		faults("$fault $what");
		for my $q (sort keys %unit)
		{
			for my $memory ("SET work_mem = '2MB';", "SET hashgraph_join.spill = passes;")
			{
				my ($rc, $out, $err) = $node->psql('postgres', "$fake $small $memory " . $digest->($query{$q}), on_error_stop => 1);
				if ($rc == 0 && $out eq $stock{$q}) { $right++; }
				elsif ($rc != 0 && $err =~ $refused && $err =~ /HINT|DETAIL/ && $fault =~ /^probe_|^append/) { $refusals++; }
				else { $wrong++; diag("$q, $fault $what $memory: $rc $out $err"); }
			}
		}
	}
}
is($wrong, 0, "faults in every call: the right answer or a clear error ($right answers, $refusals errors)");
cmp_ok($right, '>', $refusals * 2, 'mostly the answer');

# in the middle of the units: rows have left already
for my $what ('memory', 'lost')
{
	for my $nth (2, 3)
	{
		for my $call ('build', 'probe_create', 'table_create')
		{
			faults("unit $nth $call $what");
			is($node->safe_psql('postgres', "$fake $small " . $digest->($query{$_})), $stock{$_}, "$_, table $nth, $call, $what: the answer")
			  for qw(left full text);
		}
		faults("unit $nth build $what");
		$plan = $node->safe_psql('postgres', "$fake $small $explain $query{full}");
		like($plan, $what eq 'lost' ? qr/Engine: cpu.*Fallback: cpu engine \(the device failed: .*partitions/s : qr/Engine: cuda.*Fallback: half of the device memory \(the device is out of memory\); partitions/s,
			"table $nth, build, $what: EXPLAIN says so");
	}
}
faults();
$node->stop;
done_testing();
