# Pipelines on the threads of one process (hashgraph_join.threads): PostgreSQL's own answers,
# for what is kept and for what has been written since, and errors where it has errors; cancels;
# sessions that go on when the process is killed.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server(
	'main', "shared_preload_libraries = 'hashgraph_join'", 'hashgraph_join.gpu_server = off', 'hashgraph_join.threads = 2',
	"hashgraph_join.column_memory = '128MB'", 'hashgraph_join.column_loading = off', 'synchronous_commit = on',
	'max_parallel_workers_per_gather = 0', 'hashgraph_join.device_side_rows = 0', "work_mem = '64MB'", 'log_min_messages = debug1');
wait_for_device($node);
is($node->safe_psql('postgres', 'SELECT name, state FROM hashgraph_join_devices()'), '2 threads|open', 'the device are threads');
is($node->safe_psql('postgres', "SELECT engine, available, devices FROM hashgraph_join_info() WHERE engine <> 'cpu'"), 'threads|t|{"2 threads"}', '... and their engine is theirs');

$node->safe_psql(
	'postgres', q{
	CREATE TABLE f (id int, a int, b int, d date, q smallint, big bigint, m numeric(12,2), x float8, r float4, flag text, z int);
	INSERT INTO f SELECT g, nullif(g % 97, 13), (hashint4(g) % 3000) + 3000, date '1992-01-01' + g % 2500, (g % 50)::smallint,
		CASE WHEN g % 3 = 0 THEN 9000000000000000000 - g ELSE -9000000000000000000 + g END, (g % 100000) / 100.0,
		CASE WHEN g % 1009 = 0 THEN 'NaN' ELSE g / 7.0 END, g % 11, (ARRAY['A', 'N', 'R'])[g % 3 + 1], CASE WHEN g % 500 = 77 THEN 0 ELSE g % 9 + 1 END
		FROM generate_series(1, 400000) g;
	CREATE TABLE one (id int, grp int, name text, w int);
	INSERT INTO one SELECT g, nullif(g % 40, 7), 'name ' || g % 40, g % 5 FROM generate_series(0, 6000, 2) g;
	CREATE TABLE many (id int, v int);
	INSERT INTO many SELECT g % 400, g FROM generate_series(1, 3000) g;
	INSERT INTO many SELECT 5, g FROM generate_series(1, 3000) g;
	CREATE TABLE none (id int, v int);
	CREATE TABLE accounts (k int, money bigint);
	INSERT INTO accounts SELECT g, 100 FROM generate_series(1, 40000) g;
	VACUUM ANALYZE f, one, many, none, accounts;
	SELECT hashgraph_join_load(t) FROM unnest('{f,one,many,none,accounts}'::regclass[]) t;
});

my $forced = "$FORCED SET hashgraph_join.require = 'off'; SET hashgraph_join.min_rows = 0; SET hashgraph_join.startup_cost = 0;";
my $stock = 'SET hashgraph_join.enabled = off; SET hashgraph_join.aggregate = off; SET extra_float_digits = 0;';
my %queries = (
	'no group' => 'SELECT count(*), count(a), sum(q), min(d), max(b), sum(big), min(big) FROM f WHERE d >= \'1993-05-01\' AND q BETWEEN 5 AND 40',
	'sums of 128 bits and decimals' => 'SELECT flag, q, sum(big), avg(big), sum(m), avg(m), sum(m * (1 - m)), count(*) FROM f WHERE d < \'1997-01-01\' GROUP BY 1, 2',
	'groups that are NULL' => 'SELECT a, count(*), sum(q), count(a) FROM f WHERE b < 4000 GROUP BY a',
	'as many groups as rows' => 'SELECT id, sum(q), max(b) FROM f GROUP BY id HAVING sum(q) > 47',
	'conditions of aggregates' => 'SELECT q, sum(CASE WHEN a > 50 THEN b WHEN a IS NULL THEN -1 ELSE 0 END), count(*) FILTER (WHERE flag = \'R\'), sum(q) FILTER (WHERE a IS NOT NULL) FROM f GROUP BY q',
	'floats' => 'SELECT q, count(*), min(x), max(x), max(r) FROM f WHERE x > 3 GROUP BY q',
	'codes of texts' => q{SELECT flag, count(*) FROM f WHERE flag <> 'A' AND (q = 3 OR b IN (17, 18, 3000, 4077) OR a IS NULL) GROUP BY flag},
	'one row for a key' => 'SELECT one.grp, one.w, count(*), sum(f.q), min(f.d) FROM f JOIN one ON f.b = one.id AND one.w < 4 WHERE f.q > 10 GROUP BY 1, 2',
	'a left join' => 'SELECT one.w, count(*), count(one.grp), sum(f.b) FROM f LEFT JOIN one ON f.b = one.id AND one.w > 1 GROUP BY 1',
	'a semi join' => 'SELECT f.q, count(*), sum(f.b) FROM f WHERE EXISTS (SELECT FROM many WHERE many.id = f.a) GROUP BY 1',
	'an anti join' => 'SELECT f.q, count(*), sum(f.b) FROM f WHERE NOT EXISTS (SELECT FROM one WHERE one.id = f.b AND one.grp < 20) GROUP BY 1',
	'many rows for a key' => 'SELECT many.id, count(*), sum(f.q), sum(many.v) FROM f JOIN many ON f.a = many.id WHERE f.q = 7 GROUP BY 1',
	'many rows, then one, then many' => 'SELECT one.w, count(*), sum(m1.v), max(m2.v), sum(f.b) FROM f JOIN many m1 ON f.a = m1.id JOIN one ON f.b = one.id JOIN many m2 ON f.q = m2.id
		WHERE f.d < \'1992-03-01\' AND m1.v < 900 AND m2.v > 2000 GROUP BY 1',
	'a clause beside the key' => 'SELECT f.q, count(*), sum(many.v) FROM f JOIN many ON f.a = many.id AND many.v > f.b WHERE f.flag = \'N\' GROUP BY 1',
	'an empty side' => 'SELECT f.q, count(*), count(none.v) FROM f LEFT JOIN none ON f.b = none.id GROUP BY 1',
	'errors of rows that are left out' => 'SELECT count(*), sum(100 / z) FROM f WHERE z <> 0');
# As PostgreSQL answers it by itself.
sub agrees
{
	my ($query, $what) = @_;
	my $q = "SELECT q::text FROM ($query) q ORDER BY 1";
	is($node->safe_psql('postgres', "$forced SET extra_float_digits = 0; $q"), $node->safe_psql('postgres', "$stock $q"), "$what: the right answer");
	return;
}
for my $name (sort keys %queries)
{
	my $plan = $node->safe_psql('postgres', "$forced EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $queries{$name}");
	like($plan, qr/Device Pipeline: yes/, "$name: a pipeline") or diag($plan);
	like($plan, qr/Engine: threads/, "$name: of threads") or diag($plan) if $plan =~ /HashGraphJoin/;
	agrees($queries{$name}, $name);
}

# rows that threads choose, for joins that return them
my %rows = (
	'an inner join' => 'SELECT f.id, f.flag, f.m, one.name, one.w FROM f JOIN one ON f.b = one.id AND one.w = 3 WHERE f.q = 10',
	'a chain' => 'SELECT f.id, f.x, one.name, many.v FROM f JOIN one ON f.b = one.id JOIN many ON f.a = many.id WHERE f.q = 11 AND one.w = 1 AND many.v < 300',
	'a left join' => 'SELECT f.id, f.d, one.name FROM f LEFT JOIN one ON f.b = one.id AND one.w = 2 WHERE f.q = 12 AND f.d < \'1993-01-01\'',
	'a semi join' => 'SELECT f.id, f.big, f.flag FROM f WHERE f.q = 13 AND EXISTS (SELECT FROM one WHERE one.id = f.b AND one.w = 3)',
	'an anti join' => 'SELECT f.id, f.r FROM f WHERE f.q = 14 AND f.b < 3100 AND NOT EXISTS (SELECT FROM one WHERE one.id = f.b AND one.w > 0)',
	'under a window' => 'SELECT f.id, rank() OVER (PARTITION BY one.grp ORDER BY f.id) FROM f JOIN one ON f.b = one.id WHERE f.q = 15 AND one.w = 4');
for my $name (sort keys %rows)
{
	my $plan = $node->safe_psql('postgres', "$forced EXPLAIN (ANALYZE, COSTS OFF) $rows{$name}");
	like($plan, qr/Outer Source: columns \(100% of \d+ pages(?:, \d+ skipped)?, on the device\)/, "rows of $name are chosen by threads") or diag($plan);
	like($plan, qr/Engine: threads.*Device Pipeline: yes.*Threads: \d+  Busy/s, '... in a pipeline') or diag($plan);
	agrees($rows{$name}, "rows of $name");
}
is($node->safe_psql('postgres', "$forced SELECT count(*) FROM (SELECT f.id FROM f JOIN one ON f.b = one.id AND one.w = 3 LIMIT 7) l"), 7, 'a limit of rows that threads choose');

# how long they were busy, and what the filter of a table that stays has rejected for this query
my $once = 'SELECT count(*), sum(f.q) FROM f JOIN one ON f.b = one.id AND one.w = 3';
my @rejected;
for (1 .. 3)
{
	my $plan = $node->safe_psql('postgres', "$forced EXPLAIN (ANALYZE, COSTS OFF) $once");
	like($plan, qr/Host Decode: \S+ ms  Threads: [1-3]  Busy: \d+\.\d+ ms  Most Rows of a Thread: \d+  Sent: 0kB  Device Memory: \d+kB\n/, 'how long threads were busy');
	push @rejected, $plan =~ /Rows Rejected: (\d+)/;
}
my $known = $node->safe_psql('postgres', 'SELECT count(*) FROM f WHERE b IS NOT NULL AND NOT EXISTS (SELECT FROM one WHERE f.b = one.id AND one.w = 3)');
ok(@rejected == 3 && $rejected[0] > 0.9 * $known && $rejected[0] <= $known && $rejected[0] == $rejected[1] && $rejected[1] == $rejected[2], "the filter rejects as many rows each time: @rejected");

# what a table takes is known, of a join that no pipeline takes, too
my $outer = 'SELECT f.id, count(*), sum(f.q) FROM f LEFT JOIN one ON f.b = one.id GROUP BY 1';
my @kilobytes = $node->safe_psql('postgres', "$forced SET work_mem = '1MB'; SET hash_mem_multiplier = 1; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $outer") =~ /Memory Usage: (\d+)kB/g;
ok(@kilobytes > 0 && !(grep { $_ > 1_000_000 } @kilobytes), "the memory of tables is what they take: @kilobytes kB");

# more groups than threads have memory for
my $groups = "SET work_mem = '1MB'; SELECT q::text FROM ($queries{'as many groups as rows'}) q ORDER BY 1";
like($node->safe_psql('postgres', "$forced SET work_mem = '1MB'; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $queries{'as many groups as rows'}"),
	qr/Device Pipeline: no \((too many groups|not enough device memory)\)/, 'groups that do not fit into the memory of threads');
is($node->safe_psql('postgres', "$forced $groups"), $node->safe_psql('postgres', "$stock $groups"), '... with the right answer');

# what PostgreSQL raises is raised
fails_with($node, "$forced SELECT sum(100 / z) FROM f", qr/division by zero/, 'a row that raises an error');
fails_with($node, "$forced SELECT sum((b * 1000000)::int) FROM f", qr/integer out of range/, 'a product that is out of range');

# by its own costs, and where a GPU is wanted
my $plain = 'SELECT q, count(*), sum(m), sum(b) FROM f WHERE d < \'1996-01-01\' GROUP BY q';
like($node->safe_psql('postgres', "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $plain"), qr/Device Pipeline: yes/, 'the planner takes threads by itself');
unlike($node->safe_psql('postgres', "SET hashgraph_join.engine = cpu; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $plain"), qr/Device Pipeline: yes/, '... not where the processor is asked for');
my $joined = 'SELECT one.w, count(*) FROM f JOIN one ON f.b = one.id GROUP BY 1';
like($node->safe_psql('postgres', "$forced SET hashgraph_join.engine = cuda; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $joined"),
	qr/Fallback: cpu engine \(.*the server has threads, and no GPU\)/, 'threads are no GPU');

# while rows are written
$node->safe_psql('postgres', q{UPDATE f SET q = 99 WHERE id % 4000 = 3; DELETE FROM f WHERE id BETWEEN 200000 AND 200100; UPDATE one SET w = 77 WHERE id = 4});
for my $name ('no group', 'one row for a key', 'many rows for a key', 'a left join')
{
	my $q = "SELECT q::text FROM ($queries{$name}) q ORDER BY 1";
	is($node->safe_psql('postgres', "$forced $q"), $node->safe_psql('postgres', "$stock $q"), "$name: the right answer when some pages have been written");
}
{
	local $ENV{HGJ_KEPT_SECONDS} = 3;
	money_moves($node, $forced, 'k', 'SELECT sum(money) FROM accounts', 4000000, 'sums on threads');
}

# cancelled while rows are joined, of which there are very many, and its neighbours go on
my $long = 'SELECT count(*), sum(m1.v + m2.v) FROM f JOIN many m1 ON f.a = m1.id JOIN many m2 ON m1.id = m2.id JOIN many m3 ON m2.id = m3.id';
my $roomy = "$forced SET work_mem = '1GB';";
like($node->safe_psql('postgres', "$roomy EXPLAIN (COSTS OFF) $long"), qr/Planned Engine: threads/, 'a query that takes long, on threads');
fails_with($node, "$roomy SET statement_timeout = '300ms'; $long", qr/canceling statement due to statement timeout/, 'a query on threads that takes too long');
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe($roomy);
$session->query_until(qr/running/, "\\echo running\n$long;\n");
my $right = $node->safe_psql('postgres', "$stock SELECT q::text FROM ($queries{'one row for a key'}) q ORDER BY 1");
is($node->safe_psql('postgres', "$forced SELECT q::text FROM ($queries{'one row for a key'}) q ORDER BY 1"), $right, 'a short query beside it');

# killed under a query
my $process = gpu_process($node);
ok($process, 'a process has the threads');
kill 'KILL', $process;
wait_until('another process', sub { my $other = gpu_process($node); $other && $other != $process });
is($node->safe_psql('postgres', "$forced SELECT q::text FROM ($queries{'one row for a key'}) q ORDER BY 1"), $right, 'the right answer of its successor');
$node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%JOIN many m3%' AND pid <> pg_backend_pid()");
$session->quit;

# without threads, nothing is there
$node->append_conf('postgresql.conf', 'hashgraph_join.threads = 0');
$node->restart;
is(gpu_process($node), '', 'no process without threads and a GPU');
is($node->safe_psql('postgres', "$forced SELECT q::text FROM ($queries{'one row for a key'}) q ORDER BY 1"), $right, '... and the right answer');

# by default there is one for each of several processors, unless sessions open a GPU themselves, or nothing is kept
sub servers_with
{
	my (@conf) = @_;
	$node->append_conf('postgresql.conf', join("\n", 'hashgraph_join.threads = -1', @conf));
	$node->restart;
	return $node->safe_psql('postgres', "SELECT count(*) FROM hashgraph_join_devices() WHERE name ~ 'threads'");
}
servers_with('hashgraph_join.gpu_server = auto', 'hashgraph_join.threads_nice = 3');
chomp(my $cores = `nproc`);
SKIP: {
	skip 'there is one processor', 2 if $cores == 1;
	wait_for_device($node);
	my $process = gpu_process($node);
	my $nice = sub { my ($pid) = @_; my %nice = map { (split ' ', slurp_file("$_/stat") =~ s/.*\)//sr)[16] => 1 } glob "/proc/$pid/task/*"; return join(',', sort keys %nice) };
	is($nice->($process), $nice->($node->safe_psql('postgres', 'SELECT pg_backend_pid()')) + 3, '... as nice as is said');
	like($node->safe_psql('postgres', 'SELECT name FROM hashgraph_join_devices()'), qr/^\d+ threads$/, 'threads by default');
}
is(servers_with("hashgraph_join.cuda_library = '$FindBin::Bin/../fake/fake.so'", 'hashgraph_join.gpu_server = off'), 0, 'not where each session opens the GPU');
is(servers_with("hashgraph_join.cuda_library = '/nonexistent.so'", 'hashgraph_join.column_memory = 0'), 0, 'nor where nothing is kept');
done_testing();
