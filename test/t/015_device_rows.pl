# Rows of chains of joins that a device has joined (src/pipeline/device_rows.c): every
# kind of join, duplicates, NULLs, long lists, rescans, cursors, and a device that
# fails on the way; and filters of scans that it runs (src/agg/agg_device_plan.c).  test/fake stands in for one; the answers are PostgreSQL's.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $library = "$FindBin::Bin/../fake/fake.so";
my $node = new_server('main', 'max_parallel_workers_per_gather = 0', "work_mem = '64MB'", 'join_collapse_limit = 1', 'from_collapse_limit = 1',
	'log_error_verbosity = terse');
$node->safe_psql(
	'postgres', q{
	CREATE TABLE f AS SELECT i % 9000 AS k, i % 700 AS m, i AS v, 'text ' || i % 5000 AS t, md5((i % 4000)::text)::uuid AS u,
		CASE WHEN i % 11 = 0 THEN NULL ELSE (i % 13)::int2 END AS n FROM generate_series(0, 19999) i;
	INSERT INTO f SELECT NULL, i % 2, -i, NULL, NULL, NULL FROM generate_series(1, 50) i;
	CREATE TABLE a AS SELECT i AS k, i % 40 AS g, i::int8 * 3 AS x, 'a ' || i AS t, md5(i::text)::uuid AS u FROM generate_series(0, 5999) i;
	CREATE TABLE b AS SELECT i % 650 AS k, i AS x, CASE WHEN i % 5 > 0 THEN 'b ' || i END AS t, (i % 13)::int2 AS n FROM generate_series(0, 1299) i;
	CREATE TABLE c AS SELECT i AS g, 'c ' || i AS t, i % 3 = 0 AS ok FROM generate_series(0, 29) i;
	CREATE TABLE hot AS SELECT CASE WHEN i % 10 = 0 THEN i ELSE 7 END AS k, i AS v FROM generate_series(1, 3000) i;
	CREATE TABLE warm AS SELECT CASE WHEN i % 10 = 0 THEN i ELSE 7 END AS k, i AS v FROM generate_series(1, 300) i;
	CREATE TABLE e AS SELECT 'text ' || i AS t, i AS k FROM generate_series(1, 6000, 3) i;
	CREATE TABLE none AS SELECT * FROM a WHERE false;
	INSERT INTO a VALUES (NULL, 3, 4, 'no key', NULL);
	ANALYZE f, a, b, c, hot, warm, e, none;
});
sub faults { fake_faults($node, @_); return; }
faults();

my $device = "$FORCED SET hashgraph_join.require = off; SET hashgraph_join.engine = cuda; SET hashgraph_join.cuda_library = '$library';";
my %way = (
	'slots' => 'SET hashgraph_join.aggregate = off; SET enable_hashagg = off;',
	'batches' => '');
my $digest = sub { return "SELECT count(*), sum(hashtext(x::text)::bigint) FROM ($_[0]) x" };
my $yes = qr/HashGraphJoin.*Device Pipeline: yes/s;

my %chain = (
	'inner joins' => 'SELECT f.v, f.t, a.g, a.t AS at, b.x, b.t AS bt FROM f JOIN a ON f.k = a.k JOIN b ON f.m = b.k',
	'left joins' => 'SELECT f.v, f.n, a.t, a.x, b.t AS bt FROM f LEFT JOIN a ON f.k = a.k LEFT JOIN b ON f.m = b.k',
	'inner, then left' => 'SELECT f.v, a.t, b.x FROM f JOIN a ON f.k = a.k LEFT JOIN b ON f.m = b.k AND b.x > 600',
	'left, then inner' => 'SELECT f.v, a.t, b.x FROM f LEFT JOIN a ON f.k = a.k AND a.g > 20 JOIN b ON f.m = b.k',
	'a key of a build side' => 'SELECT f.v, a.t, c.t AS ct FROM f JOIN a ON f.k = a.k JOIN c ON a.g = c.g',
	'a key that is NULL where nothing matched' => 'SELECT f.v, a.t, c.t AS ct FROM f LEFT JOIN a ON f.k = a.k LEFT JOIN c ON a.g = c.g',
	'many matches of both' => 'SELECT f.v, h.v AS hv, b.x FROM f JOIN b ON f.m = b.k JOIN hot h ON f.k = h.k',
	'one row, very many' => 'SELECT f.v, h.v AS hv, w.v AS wv FROM f JOIN hot h ON f.k = h.k JOIN warm w ON f.k = w.k',
	'semi' => 'SELECT f.v, a.t FROM f JOIN a ON f.k = a.k WHERE EXISTS (SELECT 1 FROM b WHERE b.k = f.m)',
	'semi below' => 'SELECT s.v, a.t FROM (SELECT * FROM f WHERE EXISTS (SELECT 1 FROM b WHERE b.k = f.m AND b.x <> f.v)) s JOIN a ON s.k = a.k',
	'anti' => 'SELECT f.v, a.t FROM f JOIN a ON f.k = a.k WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = f.m)',
	'anti, of candidates' => 'SELECT f.v, a.t FROM f LEFT JOIN a ON f.k = a.k WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = f.m AND b.x < f.v)',
	'anti below' => 'SELECT s.v, c.t FROM (SELECT * FROM f WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = f.m)) s LEFT JOIN c ON s.n = c.g',
	'residual clauses' => 'SELECT f.v, a.x, b.x AS bx FROM f JOIN a ON f.k = a.k AND a.x <> f.v JOIN b ON f.m = b.k AND b.n = f.n AND b.x < a.x',
	'a residual clause of a left join' => 'SELECT f.v, a.x, b.x AS bx FROM f LEFT JOIN a ON f.k = a.k AND a.g < f.m LEFT JOIN b ON f.m = b.k AND (b.n > f.n OR a.x IS NULL)',
	'clauses after outer joins' => 'SELECT f.v, a.x, b.t FROM f LEFT JOIN a ON f.k = a.k LEFT JOIN b ON f.m = b.k WHERE (a.k IS NULL OR a.g > 5) AND (b.x IS NULL OR b.x > 300)',
	'clauses after outer joins that read texts' => 'SELECT f.v, a.x, b.t FROM f LEFT JOIN a ON f.k = a.k LEFT JOIN b ON f.m = b.k WHERE b.t IS NULL OR b.t > a.t',
	'texts' => 'SELECT f.v, d.k, b.x FROM f JOIN e d ON f.t = d.t LEFT JOIN b ON f.m = b.k',
	'uuids' => 'SELECT f.v, a.k, b.x FROM f JOIN a ON f.u = a.u JOIN b ON f.m = b.k',
	'two columns' => 'SELECT f.v, b.t, c.t AS ct FROM f JOIN b ON f.m = b.k AND f.n = b.n LEFT JOIN c ON c.g = f.n AND c.g = b.n',
	'an expression' => 'SELECT f.v, a.t, b.x FROM f JOIN a ON f.k - 5 = a.k JOIN b ON f.m = b.k',
	'computed columns' => 'SELECT s.v, s.z, b.t FROM (SELECT f.v, f.m, coalesce(a.t, \'none\') AS z FROM f LEFT JOIN a ON f.k = a.k) s JOIN b ON s.m = b.k',
	'five joins' => 'SELECT f.v, a.t, b.t AS bt, c.t AS ct, d.x, o.x AS ox FROM f JOIN a ON f.k = a.k LEFT JOIN b ON f.m = b.k LEFT JOIN c ON a.g = c.g JOIN a d ON d.k = f.m LEFT JOIN a o ON o.k = b.x AND c.ok',
	'no column of a build side' => 'SELECT f.v FROM f JOIN a ON f.k = a.k JOIN b ON f.m = b.k',
	'no column at all' => 'SELECT 1 FROM f JOIN a ON f.k = a.k LEFT JOIN b ON f.m = b.k',
	'beside an empty build side' => 'SELECT f.v, a.t, n.t AS nt FROM f JOIN a ON f.k = a.k LEFT JOIN none n ON f.m = n.k',
	'tuples below' => 'SELECT s.v, a.t, b.x FROM (SELECT DISTINCT ON (k, m) k, m, v FROM f ORDER BY k, m, v) s JOIN a ON s.k = a.k LEFT JOIN b ON s.m = b.k');
for my $name (sort keys %chain)
{
	my $query = $digest->($chain{$name});
	my $answer = $node->safe_psql('postgres', $query);
	for my $way (sort keys %way)
	{
		my $begin = "$device $way{$way}";
		is($node->safe_psql('postgres', "$begin $query"), $answer, "$name, in $way: the answer");
		like($node->safe_psql('postgres', "$begin EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query"), $yes, "$name, in $way: on the device");
	}
}

# ---- what a pipeline does not take, and EXPLAIN says why
my %refused = (
	'a right join' => [ 'SELECT f.v, a.t, b.x FROM f JOIN a ON f.k = a.k RIGHT JOIN b ON f.m = b.k', qr/join type/ ],
	'a clause that divides' => [ 'SELECT f.v, a.t, b.x FROM f JOIN a ON f.k = a.k JOIN b ON f.m = b.k AND 100 / (b.x + 1) < f.v', qr/expression that may raise an error/ ],
	'a text key above' => [ 'SELECT f.v, a.t, b.x FROM f JOIN b ON f.m = b.k JOIN a ON f.t = a.t', qr/join key of another kind/ ],
	'a key that is an expression' => [ 'SELECT f.v, d.k, b.x FROM f JOIN (SELECT \'text \' || k AS t, k FROM a) d ON f.t = d.t LEFT JOIN b ON f.m = b.k', qr/join key of another kind/ ],
	'a long text' => [ 'SELECT f.v, d.k, b.x FROM f JOIN (SELECT CASE WHEN k = 4 THEN repeat(t, 9) ELSE t END AS t, k FROM e OFFSET 0) d ON f.t = d.t LEFT JOIN b ON f.m = b.k', qr/join key of another kind/ ],
	'a clause row by row' => [ 'SELECT f.v, a.t, b.x FROM f JOIN a ON f.k = a.k JOIN b ON f.m = b.k AND b.t || f.t <> a.t', qr/join clause that runs row by row/ ]);
for my $name (sort keys %refused)
{
	my ($query, $why) = @{ $refused{$name} };
	my $begin = "$device $way{slots}";
	is($node->safe_psql('postgres', "$begin " . $digest->($query)), $node->safe_psql('postgres', $digest->($query)), "$name: the answer");
	like($node->safe_psql('postgres', "$begin EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query"), qr/Device Pipeline: no \($why\)/, "$name: why not");
}

# ---- counts of rows, as without it
my $counted = 'SELECT f.v, a.x, b.x FROM f LEFT JOIN a ON f.k = a.k AND a.x <> f.v JOIN b ON f.m = b.k AND b.n <> f.n';
my $counts = sub {
	my $plan = $node->safe_psql('postgres', "$_[0] EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $counted");
	return join ' ', $plan =~ /(actual rows=[\d.]+|Rows Removed by Join Filter: \d+)/g;
};
my $cpu = "$FORCED $way{slots} SET hashgraph_join.engine = cpu;";
is($counts->("$device $way{slots}"), $counts->($cpu), 'EXPLAIN ANALYZE counts the rows of all nodes');

# ---- below an aggregation the scan's filter runs there, too, where most rows pass it
my %filter = (
	'f.v > 2000' => 'device',
	'f.v > 2000 AND f.n <> 3 AND f.k IS NOT NULL' => 'device',
	'(f.n IN (1, 2, 3, 4, 5, 6, 7, 8, 9) OR f.n IS NULL) AND NOT f.v BETWEEN 5 AND 10' => 'device',
	'f.v < 9000' => 'host',
	'f.v > 2000 AND coalesce(f.t, \'none\') <> \'text 7\'' => 'host',
	'f.t > \'text\'' => 'host',
	'f.v / (f.v - 100000) < 1' => 'host');
for my $name (sort keys %filter)
{
	for my $query ("SELECT count(*), sum(a.x) FROM f JOIN a ON f.k = a.k WHERE $name",
		"SELECT b.x % 5, count(*), sum(a.x), min(f.v) FROM f LEFT JOIN a ON f.k = a.k JOIN b ON f.m = b.k WHERE $name GROUP BY 1 ORDER BY 1")
	{
		is($node->safe_psql('postgres', "$device $query"), $node->safe_psql('postgres', $query), "WHERE $name: the answer");
		my $plan = $node->safe_psql('postgres', "$device EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query");
		like($plan, qr/Device Pipeline: yes\n.*Scan Filter: $filter{$name}\n/s, "WHERE $name: on the $filter{$name}");
		my @scan = $plan =~ /Seq Scan on f \((actual rows=[\d.]+ loops=1)\)\n\s+Filter: [^\n]+\n\s+(Rows Removed by Filter: \d+)/;
		$plan = $node->safe_psql('postgres', "$device SET hashgraph_join.engine = cpu; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query");
		is("@scan", join(' ', $plan =~ /Seq Scan on f \((actual rows=[\d.]+ loops=1)\)\n\s+Filter: [^\n]+\n\s+(Rows Removed by Filter: \d+)/), "WHERE $name: EXPLAIN counts the same");
	}
}
my $parameter = 'PREPARE q(int) AS SELECT count(*), sum(a.x) FROM f JOIN a ON f.k = a.k WHERE f.v > $1 OR f.v IS NULL; EXECUTE q(700); EXECUTE q(-5); EXECUTE q(NULL); EXECUTE q(100000)';
is($node->safe_psql('postgres', "$device SET plan_cache_mode = force_generic_plan; $parameter"), $node->safe_psql('postgres', $parameter), 'a filter with a parameter');
my $groups = 'SELECT count(*), sum(n), sum(s) FROM (SELECT f.v, f.u, count(*) AS n, sum(a.x) AS s FROM f JOIN a ON f.k = a.k WHERE f.v <> 77 GROUP BY 1, 2) x';
is($node->safe_psql('postgres', "$device $groups"), $node->safe_psql('postgres', $groups), 'a filter below groups that are not for the device');

# ---- executions that end early, or come again
my $begin = "$device $way{slots}";
like($node->safe_psql('postgres', "$begin EXPLAIN (ANALYZE) $chain{'many matches of both'} LIMIT 1"), qr/\(HashGraphJoin\)  \([^)]*\) \(actual time.*Device Pipeline: yes/s,
	'the executor may end while rows of a push are on the device');
my $few = 'SELECT count(*) FROM (SELECT f.v, a.t FROM f JOIN a ON f.k = a.k JOIN b ON f.m = b.k LIMIT %d) x';
is($node->safe_psql('postgres', "$begin " . sprintf($few, $_)), $_, "LIMIT $_") for 1, 63, 5000;
my $again = 'SELECT i, (SELECT count(a.t || b.x) FROM f LEFT JOIN a ON f.k = a.k JOIN b ON f.m = b.k WHERE f.v > i) FROM generate_series(0, 900, 300) i';
is($node->safe_psql('postgres', "$begin $again"), $node->safe_psql('postgres', $again), 'rescans: the answer');
like($node->safe_psql('postgres', "$begin EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $again"), qr/loops=4\).*Device Pipeline: yes/s, 'rescans: on the device');
my $prepared = 'PREPARE p(int) AS ' . $digest->('SELECT f.v, a.t, b.x FROM f LEFT JOIN a ON f.k = a.k AND a.g > $1 JOIN b ON f.m = b.k AND b.x <> $1') . '; EXECUTE p(3); EXECUTE p(30); EXECUTE p(NULL)';
is($node->safe_psql('postgres', "$begin SET plan_cache_mode = force_generic_plan; $prepared"), $node->safe_psql('postgres', $prepared), 'parameters');
my $cursor = 'BEGIN; DECLARE c CURSOR FOR SELECT f.v FROM f JOIN a ON f.k = a.k JOIN b ON f.m = b.k; MOVE 10000 IN c; SELECT 1; MOVE 5 IN c; SAVEPOINT s; ROLLBACK TO s; CLOSE c; COMMIT; SELECT count(*) FROM f JOIN a USING (k)';
is($node->safe_psql('postgres', "$begin $cursor"), $node->safe_psql('postgres', $cursor), 'a cursor that is closed early');
is($node->safe_psql('postgres', "$begin SELECT * FROM (SELECT f.v, 10 / (f.v - 3) AS q FROM f JOIN a ON f.k = a.k JOIN b ON f.m = b.k) x WHERE v = 5"),
	$node->safe_psql('postgres', 'SELECT * FROM (SELECT f.v, 10 / (f.v - 3) AS q FROM f JOIN a ON f.k = a.k JOIN b ON f.m = b.k) x WHERE v = 5'), 'the upper join computes its own columns');
fails_with($node, "$begin SELECT 10 / (f.v - 3) FROM f JOIN a ON f.k = a.k JOIN b ON f.m = b.k", qr/division by zero/, 'and raises their errors');

# ---- a device that fails on the way: the joins go on one by one with the batch at
# hand, or, where rows of it have left, there is an error
my $two = $digest->($chain{'left joins'});
my $answer = $node->safe_psql('postgres', $two);
my $one = 'SELECT count(*), sum(v) FROM f JOIN a USING (k)';
my $after = $node->safe_psql('postgres', $one);
my (%right, %wrong);
for my $call (qw(pipe_create pipe_payload pipe_start pipe_stage pipe_push pipe_fetch))
{
	for my $what (qw(lost memory limit), $call eq 'pipe_create' ? 'unsupported' : ())
	{
		for my $nth ($call =~ /stage|push|fetch/ ? (1 .. 6, 9, 13, 17, 22, 30) : 1)
		{
			for my $way (sort keys %way)
			{
				faults("$call $nth $what");
				my ($rc, $out, $err) = $node->psql('postgres', "$device $way{$way} $two; $one", on_error_stop => 0);
				if ($err eq '' && $out eq "$answer\n$after") { $right{$call}++ }
				elsif ($call eq 'pipe_fetch' && $nth > 1 && $err =~ /^psql:<stdin>:1: ERROR:  (?:the device of a HashGraphJoin failed|out of memory|a HashGraphJoin passed a limit of its cuda engine)/ && $out eq $after) { $wrong{$call}++ }
				else { fail("$call $nth $what, in $way: '$out' '$err'") }
			}
		}
	}
}
cmp_ok($right{$_} // 0, '>', 0, "$_: joins have gone on without a pipeline") for qw(pipe_create pipe_payload pipe_start pipe_stage pipe_push pipe_fetch);
cmp_ok($wrong{pipe_fetch} // 0, '>', 0, 'pipe_fetch: some of its errors came too late for that');
faults('pipe_push 3 lost');
like($node->safe_psql('postgres', "$device $way{slots} EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $chain{'left joins'}"),
	qr/Device Pipeline: no \(the device failed\)\n.*Fallback: cpu engine.*Fallback: cpu engine.*Seq Scan on f \(actual rows=20050(?:\.00)? loops=1\)/s, 'EXPLAIN says what has happened');
like($node->safe_psql('postgres', "$device $way{slots} $chain{'left joins'} \\g /dev/null\nSELECT kind, reason, count FROM hashgraph_join_fallbacks() WHERE count > 0"),
	qr/^pipeline\|the device failed\|1$/m, 'so do the counters');
faults('pipe_create 1 unsupported');
like($node->safe_psql('postgres', "$device $way{slots} EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $chain{'left joins'}"),
	qr/Engine: cuda.*Device Pipeline: no \(table that it cannot probe\).*Engine: cuda.*Seq Scan on f \(actual rows=20050(?:\.00)? loops=1\)/s, 'or that there is another way');
faults('no_rows');
is($node->safe_psql('postgres', "$device $way{slots} $two"), $answer, 'an engine whose pipelines return no rows');
for my $call ('pipe_push 5', 'pipe_fetch 7')
{
	faults("$call hang");
	fails_with($node, "$device $way{slots} SET statement_timeout = '300ms'; $two", qr/canceling statement due to statement timeout/, "$call hangs: cancelled");
}
faults();
is($node->safe_psql('postgres', "$device $way{slots} $two"), $answer, 'afterwards, another session');

done_testing();
