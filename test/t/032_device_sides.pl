# Build sides that are made on the device, of columns kept in memory (src/pipeline/
# device_sides.c): right answers whatever the columns and keys are, beside rows that are
# staged, after writes, under writers, and where the device fails or has no room; the
# joins make them themselves where it is not for that.  test/fake stands in for the GPU.
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
	'max_parallel_workers_per_gather = 0', "work_mem = '64MB'", 'log_error_verbosity = terse', 'hashgraph_join.column_loading = off',
	"hashgraph_join.column_memory = '64MB'", 'synchronous_commit = on');
$node->safe_psql(
	'postgres', q{
	CREATE TABLE f (k int, k8 bigint, m smallint, v bigint, g int);
	INSERT INTO f SELECT CASE WHEN i % 50 > 0 THEN (i * 7919) % 40000 END, (i * 31) % 70000, i % 9, i, i % 5 FROM generate_series(1, 120000) i;
	CREATE TABLE d (k int, m smallint, name text, region char(10), price numeric(10,2), day date, score float8, flag bool, nothing int, many text, sign "char");
	INSERT INTO d SELECT CASE WHEN i % 40 > 0 THEN i END, i % 9, CASE WHEN i % 7 > 0 THEN 'name ' || i % 30 END, 'R' || i % 5, CASE WHEN i % 11 > 0 THEN i / 8.0 END,
		date '2020-01-01' + i % 700, i / 3.0, CASE WHEN i % 13 > 0 THEN i % 2 = 0 END, NULL, md5(i::text), (i % 250 - 125)::"char" FROM generate_series(1, 30000) i;
	INSERT INTO d SELECT k, m, name, region, price, day, score, flag, nothing, many, sign FROM d WHERE k % 10 = 3;
	CREATE TABLE e (k8 bigint PRIMARY KEY, w int, t varchar(20));
	INSERT INTO e SELECT i, i % 100 - 50, 'e' || i % 12 FROM generate_series(1, 50000) i;
	CREATE TABLE small AS SELECT i AS g, i * 10 AS h FROM generate_series(0, 3) i;
	CREATE VIEW twice WITH (security_barrier) AS SELECT k, name AS a, name AS b FROM d;
	VACUUM ANALYZE f, d, e, small;
});

my $device = "$FORCED SET join_collapse_limit = 1; SET hashgraph_join.build_tuple_cost = 0.1; SET hashgraph_join.require = off; SET hashgraph_join.engine = cuda; SET extra_float_digits = 0;";
my $stock = 'SET join_collapse_limit = 1; SET hashgraph_join.enabled = off; SET extra_float_digits = 0;';

# Each with how many of its joins' sides are made on the device.
my %queries = (
	'an integer' => [1, 'SELECT m2, count(*), sum(v) FROM f JOIN (SELECT k, m AS m2 FROM d) d USING (k) GROUP BY m2 ORDER BY 1'],
	'codes of a text' => [1, 'SELECT name, count(*), sum(v) FROM f JOIN d USING (k) GROUP BY name ORDER BY 1'],
	'filters' => [1, q{SELECT name, region, count(*), sum(v) FROM f JOIN d USING (k) WHERE region IN ('R1', 'R4') AND day >= '2020-06-01' AND flag GROUP BY name, region ORDER BY 1, 2}],
	'LIKE, and NULLs' => [1, q{SELECT count(*), sum(v), count(price) FROM f JOIN d USING (k) WHERE name LIKE '%2%' OR name IS NULL}],
	'numerics' => [1, 'SELECT f.g, sum(price), sum(price * v), max(price), avg(price) FROM f JOIN d USING (k) WHERE price > 20.5 GROUP BY f.g ORDER BY 1'],
	'floats' => [1, 'SELECT count(*), max(score), min(score) FROM f JOIN d USING (k) WHERE score < 5000'],
	'what the host makes' => [1, q{SELECT extract(year from day)::int, sum(CASE WHEN name LIKE '%1%' THEN v ELSE 0 END) FROM f JOIN d USING (k) GROUP BY 1 ORDER BY 1}],
	'two keys' => [1, 'SELECT count(*), sum(v), sum(price) FROM f JOIN d USING (k, m)'],
	'two sides' => [2, 'SELECT t, name, count(*), sum(w) FROM f JOIN d USING (k) JOIN e USING (k8) WHERE w > 0 GROUP BY t, name ORDER BY 1, 2'],
	'a small one, too' => [1, 'SELECT h, count(*), sum(v) FROM f JOIN d USING (k) JOIN small USING (g) GROUP BY h ORDER BY 1'],
	'left' => [1, 'SELECT count(*), count(w), sum(w), sum(v) FROM f LEFT JOIN e USING (k8)'],
	'semi' => [1, 'SELECT g, count(*) FROM f WHERE k IN (SELECT k FROM d WHERE flag) GROUP BY g ORDER BY 1'],
	'anti' => [1, 'SELECT g, count(*), sum(v) FROM f WHERE NOT EXISTS (SELECT FROM d WHERE d.k = f.k AND d.flag) GROUP BY g ORDER BY 1'],
	'a residual clause' => [1, 'SELECT count(*), sum(v) FROM f JOIN d ON f.k = d.k AND f.v > d.price * 100'],
	'int4 and int8' => [1, 'SELECT count(*), sum(v), sum(e.w) FROM f JOIN e ON f.k = e.k8'],
	'none passes' => [1, q{SELECT count(*), sum(v) FROM f JOIN d USING (k) WHERE region = 'R1' AND name = 'name 0' AND score < 0}],
	'all NULL' => [1, 'SELECT d.nothing, count(*) FROM f JOIN d USING (k) GROUP BY 1'],
	# a column that a subquery returns twice has two dictionaries
	'a column twice' => [0, 'SELECT a, b, count(*), sum(v) FROM f JOIN twice USING (k) GROUP BY a, b ORDER BY 1, 2'],
	'"char" of both signs' => [1, 'SELECT sign, count(*), sum(v) FROM f JOIN d USING (k) GROUP BY sign ORDER BY sign::int'],
	# sides that are joins themselves
	'a join' => [2, 'SELECT t, count(*), sum(v), sum(w) FROM f JOIN (d JOIN e ON d.k = e.k8) ON f.k = d.k GROUP BY t ORDER BY 1'],
	'a join, filtered' => [2, q{SELECT name, t, count(*), sum(v) FROM f JOIN (d JOIN e ON d.k = e.k8 AND e.w > 0) ON f.k = d.k WHERE region <> 'R2' AND f.g < 4 GROUP BY name, t ORDER BY 1, 2}],
	'a join, by row' => [0, 'SELECT h, name, count(*), sum(v) FROM f JOIN (d LEFT JOIN small ON d.m = small.g) ON f.k = d.k GROUP BY h, name ORDER BY 1, 2'],
	# behind a left join the row's number says whether there is one
	'a left join, and what the host makes' => [1, q{SELECT sum(CASE WHEN t LIKE '%1%' THEN v ELSE 1 END), count(w), count(*) FROM f JOIN (d LEFT JOIN e ON d.k = e.k8 AND e.w > 40) ON f.k = d.k WHERE d.m < 5}],
	'a semi join' => [2, 'SELECT g, count(*), sum(v) FROM f WHERE k IN (SELECT d.k FROM d JOIN e ON d.k = e.k8 WHERE e.w < 0) GROUP BY g ORDER BY 1'],
	'joins of joins' => [4, 'SELECT e.t, count(*), sum(f.v), sum(d2.price) FROM f JOIN (d JOIN (e JOIN d d2 ON e.k8 = d2.k) ON d.k = e.k8) ON f.k = d.k JOIN e e2 ON f.k8 = e2.k8 GROUP BY e.t ORDER BY 1'],
	'a join, none passes' => [2, 'SELECT g, count(*), sum(v) FROM f WHERE NOT EXISTS (SELECT FROM d JOIN e ON d.k = e.k8 AND e.w > 1000 WHERE d.k = f.k) GROUP BY g ORDER BY 1'],
	# values are too many for tables: the host looks at all rows, and sends those that pass
	'many values' => [0, 'SELECT many, count(*) FROM f JOIN d USING (k) GROUP BY many ORDER BY 1 LIMIT 50'],
	'LIKE of many values' => [0, q{SELECT g, count(*), sum(v) FROM f WHERE k IN (SELECT k FROM d WHERE many LIKE 'a%') GROUP BY g ORDER BY 1}],
	# these are the joins' own: rows of the side are told apart by their number, or values
	# are made of two columns
	'by row' => [0, 'SELECT e.k8, t, count(*) FROM f JOIN e USING (k8) GROUP BY e.k8, t ORDER BY 1 LIMIT 50'],
	'of two columns' => [0, q{SELECT count(*) FILTER (WHERE date_part('day', day + d.m::int) = 3) FROM f JOIN d USING (k)}]);

sub load { $node->safe_psql('postgres', "SELECT hashgraph_join_load(c::regclass) FROM unnest('{f,d,e,small}'::text[]) c"); return; }

# Rows that the plan's nodes have returned, and removed, without what only one of them says.
sub counts
{
	my ($plan) = @_;
	my @lines = grep { /Seq Scan|Rows Removed by Filter/ } split /\n/, $plan;
	s/^[\s>-]+//, s/\(cost.*?\) // for @lines;
	return join "\n", sort @lines;
}

# Ok where each query's answer is PostgreSQL's, and as many sides as it says, or none, were
# made on the device, from pages of which so many percent (a pattern) were kept.
sub all_right
{
	my ($what, $percent, @names) = @_;
	for my $name (@names ? @names : sort keys %queries)
	{
		my ($sides, $q) = @{ $queries{$name} };
		is($node->safe_psql('postgres', "$device $q"), $node->safe_psql('postgres', "$stock $q"), "$what: $name");
		my $plan = $node->safe_psql('postgres', "$device EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $q");
		my @made = $plan =~ /Inner Source: (?:columns \(|batches \()(?:(\d+)% of \d+ pages(?:, \d+ skipped)?, )?on the device\)/g;
		my $wanted = $percent eq 'none' ? 0 : $sides;
		my @kept = grep { defined } @made;
		ok($plan =~ /Device Pipeline: yes/ && @made == $wanted && !(grep { !/^(?:$percent)$/ } @kept), "... with @kept") or diag($plan);
		is(counts($plan), counts($node->safe_psql('postgres', "$stock EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $q")), '... and counts') if $name eq 'filters' || $name eq 'two sides';
	}
	return;
}

# How many of the query's sides are of an earlier query.
sub stays
{
	my ($name) = @_;
	my $plan = $node->safe_psql('postgres', "$device EXPLAIN (ANALYZE, COSTS OFF) $queries{$name}[1]");
	my @kept = $plan =~ /Kept Build Side: true/g;
	return scalar @kept;
}

# The same query with filters that drop nothing, as no other query has them: sides that stay on
# the device are none of its own.
my $filters = 0;
sub unlike_others
{
	my ($name) = @_;
	my $q = $queries{$name}[1];
	my $n = ++$filters;
	my $tables = $name eq 'two sides' ? 'd e' : 'd e d2 e2';
	my $all = join ' AND ', map { "$_." . (/^d/ ? 'm' : 'k8') . " > -$n" } split / /, $tables;
	$q =~ s/ WHERE | (?=GROUP BY)/ WHERE $all @{[ $q =~ m{ WHERE } ? 'AND ' : '' ]}/;
	return $q;
}

for my $server ('auto', 'off')
{
	$node->append_conf('postgresql.conf', "hashgraph_join.gpu_server = $server");
	$node->restart;
	wait_for_device($node) if $server eq 'auto';
	fake_faults($node);
	my $how = $server eq 'auto' ? 'through the GPU process' : 'in the session';

	all_right("$how, nothing kept", 'none', 'codes of a text', 'two sides');
	load();
	all_right("$how, all kept", '99|100');

	# Through the process sides stay for other sessions: the same ones, and none else.
	is(stays('two sides'), $server eq 'auto' ? 2 : 0, "$how: sides stay");
	is(stays('a join, filtered'), $server eq 'auto' ? 2 : 0, "$how: sides on sides, too");
	is($node->safe_psql('postgres', "$device EXPLAIN (ANALYZE) " . unlike_others('two sides')) =~ /Kept Build Side/, '', "$how: not with another filter");
	is($node->safe_psql('postgres', "$device EXPLAIN (ANALYZE) SELECT name, t, count(*), sum(v) FROM f JOIN (SELECT k8, w, t FROM e WHERE w > 0) e USING (k8) JOIN d USING (k) GROUP BY t, name") =~ /Kept Build Side/ ? 1 : 0,
		$server eq 'auto' ? 1 : 0, "$how: but in another query");

	# The rows of a session that has a snapshot from before, and of one that comes later.
	my $old = $node->background_psql('postgres');
	$old->query_safe("$device BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
	my $before = $old->query_safe($queries{'two sides'}[1]);
	$node->safe_psql('postgres', q{UPDATE d SET name = 'new', price = price + 1 WHERE k BETWEEN 100 AND 160; DELETE FROM d WHERE k BETWEEN 500 AND 510; INSERT INTO d SELECT k, m, 'x' || k % 3, region, price, day, score, flag, nothing, many, sign FROM d WHERE k < 50; UPDATE e SET w = w + 1000 WHERE k8 BETWEEN 300 AND 330});
	all_right("$how, some written", '\d\d');
	is(stays('two sides'), 0, "$how: what has been written is made again");
	is($old->query_safe($queries{'two sides'}[1]), $before, "$how: an old snapshot sees what it saw");
	$old->query_safe('COMMIT');
	$old->quit;
	$node->safe_psql('postgres', 'BEGIN; UPDATE d SET m = 2; ROLLBACK');
	all_right("$how, all written, rolled back", 'none', 'codes of a text');
	$node->safe_psql('postgres', 'VACUUM d, e');
	load();
	all_right("$how, vacuumed, and loaded again", '\d\d|100', 'filters', 'two sides');

	# Rescans: the first run makes the side, later ones have the join's.
	for my $again ('SELECT g.i, (SELECT sum(v) FROM f JOIN d USING (k) WHERE f.v < g.i * 1000) FROM generate_series(1, 4) g(i) ORDER BY 1',
		'SELECT g.i, (SELECT sum(v) FROM f JOIN d USING (k) WHERE d.m < g.i) FROM generate_series(1, 4) g(i) ORDER BY 1',
		'SELECT g.i, s FROM generate_series(1, 3) g(i), LATERAL (SELECT sum(v) + g.i - g.i AS s FROM f JOIN e USING (k8) GROUP BY f.g OFFSET 0) x ORDER BY 1, 2')
	{
		is($node->safe_psql('postgres', "$device $again"), $node->safe_psql('postgres', "$stock $again"), "$how: rescans");
	}

	# What a subplan raises where the joins return no row is PostgreSQL's to raise, or not.
	my $late = 'SELECT count(*), sum(v + (SELECT 1 / (count(*) - 4) FROM small)) FROM f JOIN d USING (k) WHERE d.m > 100';
	is($node->safe_psql('postgres', "$device $late"), $node->safe_psql('postgres', "$stock $late"), "$how: a subplan that need not be run");
	my $prepared = q{PREPARE p(int, text) AS SELECT name, count(*), sum(v + $1) FROM f JOIN d USING (k) WHERE region <> $2 AND d.m > $1 GROUP BY name ORDER BY 1; SET plan_cache_mode = force_generic_plan; EXECUTE p(1, 'R1'); EXECUTE p(3, 'R2'); EXECUTE p(NULL, 'R1')};
	is($node->safe_psql('postgres', "$device $prepared"), $node->safe_psql('postgres', "$stock $prepared"), "$how: parameters");
	# ... in what the host makes of a side's columns while that is made on the device
	for my $q (q{SELECT d.name LIKE $1 AS l, count(*) FROM f JOIN d ON f.k = d.k GROUP BY 1 ORDER BY 1}, q{SELECT g, count(*) FROM f JOIN d ON f.k = d.k AND (d.name LIKE $1 OR f.v < 1000) GROUP BY g ORDER BY 1})
	{
		my $executed = "PREPARE made(text) AS $q; SET plan_cache_mode = force_generic_plan; EXECUTE made('%1%'); EXECUTE made('%2'); EXECUTE made(NULL)";
		is($node->safe_psql('postgres', "$device $executed"), $node->safe_psql('postgres', "$stock $executed"), "$how: parameters of what the host makes: $q");
	}

	# A row that raises an error raises it as ever.
	fails_with($node, "$device SELECT sum(v * k8 * (1000000000000 + d.m)) FROM f JOIN d USING (k)", qr/bigint out of range/, "$how: a row's error");

	# ---- devices that fail, or have no room: the answer is the same
	my $right = $node->safe_psql('postgres', "$stock $queries{'two sides'}[1]");
	my $right_join = $node->safe_psql('postgres', "$stock $queries{'joins of joins'}[1]");
	for my $call (qw(table_create pipe_create pipe_start pipe_kept pipe_stage pipe_finish build))
	{
		for my $fault ("$call 1 memory", "$call 2 lost", map { "$call $_ limit" } 1 .. 4)
		{
			fake_faults($node, $fault);
			is($node->safe_psql('postgres', "$device " . unlike_others('two sides')), $right, "$how: $fault");
			fake_faults($node);
			wait_for_device($node) if $fault =~ /lost/;
		}
		# what fails in a call of the process fails alike in a session
		for my $nth ($server eq 'auto' ? 1 .. 6 : (2, 5))
		{
			fake_faults($node, "$call $nth limit");
			is($node->safe_psql('postgres', "$device " . unlike_others('joins of joins')), $right_join, "$how: joins of joins, $call $nth");
			fake_faults($node);
		}
	}
	for my $fault ('pipe_kept 1 row', 'pipe_kept 1 unsupported', 'pipe_finish 1 row')
	{
		fake_faults($node, $fault);
		is($node->safe_psql('postgres', "$device " . unlike_others('two sides')), $right, "$how: $fault");
	}
	fake_faults($node, 'pipe_finish 1 hang');
	fails_with($node, "$device SET statement_timeout = '200ms'; " . unlike_others('two sides'), qr/canceling statement due to statement timeout/, "$how: cancelled while it is made");
	fake_faults($node);
	wait_for_device($node);
	all_right("$how, after all that", '\d\d|100', 'two sides');

	# ---- writers: sums of an invariant, under whatever snapshot
	$node->safe_psql('postgres', 'DROP TABLE IF EXISTS accounts; CREATE TABLE accounts AS SELECT i AS k, 1000::bigint AS money, 7 AS seven FROM generate_series(1, 40000) i; CREATE INDEX ON accounts (k); VACUUM ANALYZE accounts');
	$node->safe_psql('postgres', "SELECT hashgraph_join_load('accounts')");
	my $invariant = 'SELECT sum(money) || $$ $$ || sum(seven) / count(*) FROM once JOIN accounts USING (k)';
	$node->safe_psql('postgres', 'DROP TABLE IF EXISTS once; CREATE TABLE once AS SELECT i AS k FROM generate_series(1, 40000) i; VACUUM ANALYZE once');
	$node->safe_psql('postgres', "SELECT hashgraph_join_load('once')");
	my $sum = $node->safe_psql('postgres', "$stock $invariant");
	like($node->safe_psql('postgres', "$device EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $invariant"), qr/Inner Source: columns \(100% of \d+ pages, on the device\)/, "$how: the invariant's side is made on the device");
	money_moves($node, $device, 'k', $invariant, $sum, "$how: writers");
}

$node->stop;

# ---- lookups that are cheaper than the join is for the host, and dearer than it is on the device
$node = new_server(
	'lookups', "shared_preload_libraries = 'hashgraph_join'", 'hashgraph_join.gpu_server = auto', "hashgraph_join.cuda_library = '$FindBin::Bin/../fake/fake.so'",
	'max_parallel_workers_per_gather = 0', "shared_buffers = '256MB'", 'hashgraph_join.column_loading = off', "hashgraph_join.column_memory = '64MB'", 'synchronous_commit = on');
$node->safe_psql(
	'postgres', q{
	CREATE TABLE lines (k int, v int);
	INSERT INTO lines SELECT i * 7919::bigint % 300000, i % 100 FROM generate_series(1, 300000) i;
	CREATE INDEX ON lines (k);
	CREATE TABLE heads AS SELECT i AS k, i % 1000 AS c FROM generate_series(0, 299999) i;
	CREATE INDEX ON heads (c);
	VACUUM ANALYZE lines, heads;
	SELECT hashgraph_join_load('lines'), hashgraph_join_load('heads');
});
wait_for_device($node);
my $lookups = 'SELECT sum(v) FROM lines JOIN heads USING (k) WHERE c BETWEEN 5 AND 6';
my $costs = 'SET hashgraph_join.min_rows = 0; SET hashgraph_join.startup_cost = 0; SET hashgraph_join.page_tuple_cost = 0.02; SET hashgraph_join.device_launch_cost = 1; SET hashgraph_join.device_side_rows = 1000;';
like($node->safe_psql('postgres', "$costs SET hashgraph_join.engine = cpu; EXPLAIN (COSTS OFF) $lookups"), qr/Nested Loop/, 'lookups are cheaper for the host');
like($node->safe_psql('postgres', "$costs EXPLAIN (COSTS OFF) $lookups"), qr/Device Pipeline: yes/, '... and dearer than a device');
is($node->safe_psql('postgres', "$costs $lookups"), $node->safe_psql('postgres', "SET hashgraph_join.enabled = off; $lookups"), '... with the same answer');

# ---- groups that workers make sooner than a device and one process: they sort them, too
my $sorted = 'SELECT k, count(*) AS n, sum(v) AS s FROM lines JOIN heads USING (k) GROUP BY k ORDER BY 3 DESC, 1';
my $some = "SELECT string_agg(k || ':' || n || ':' || s, ',') FROM ($sorted LIMIT 500) x";
my $workers = "$costs SET max_parallel_workers_per_gather = 3; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0.01; SET min_parallel_table_scan_size = 0; SET hashgraph_join.worker_time = 0; RESET hashgraph_join.page_tuple_cost;";
like($node->safe_psql('postgres', "$costs RESET hashgraph_join.page_tuple_cost; EXPLAIN (COSTS OFF) $sorted"), qr/^Sort.*Device Pipeline: yes/s, 'a device makes groups, and one process sorts them');
like($node->safe_psql('postgres', "$workers EXPLAIN (COSTS OFF) $sorted"), qr/^Gather Merge.*Sort.*Parallel Custom Scan \(HashGraphAgg\)/s, '... and workers do both sooner');
is($node->safe_psql('postgres', "$workers $some"), $node->safe_psql('postgres', "SET hashgraph_join.enabled = off; $some"), '... with the same answer');

done_testing();
