# Reasons of the catalogue (src/base/reasons.c) that sql/why.sql cannot bring about: those of
# a device (test/fake stands in for it), of what another extension does (test/other), and
# those that only a run has, in hashgraph_join_fallbacks().  test/reasons.pl holds the
# catalogue against this file and the expected outputs.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $fake = "$FindBin::Bin/../fake/fake.so";
my $other = "$FindBin::Bin/../other/other.so";
my $node = new_server('main', "shared_preload_libraries = '$other, hashgraph_join'", 'max_parallel_workers_per_gather = 0',
	'hashgraph_join.force = on', "hashgraph_join.cuda_library = '$fake'", 'hashgraph_join.processors = 64', 'hash_mem_multiplier = 1');
$node->safe_psql('postgres', qq{
	CREATE TABLE f AS SELECT i AS id, i % 1000 AS k, i % 60 AS l, i % 37 AS v, (i % 32) / 2.0::float8 AS x, (i % 32)::float4 AS y, 'text ' || i % 4000 AS t FROM generate_series(1, 20000) i;
	CREATE TABLE a AS SELECT i AS k, i % 7 AS g, i % 50 AS p, 'name ' || i % 5 AS n FROM generate_series(1, 900) i;
	CREATE TABLE b AS SELECT i AS k, i % 5 AS g FROM generate_series(0, 59) i;
	CREATE TABLE many AS SELECT i AS k, i * 7 AS v, 'text ' || i AS t FROM generate_series(1, 20000) i;
	CREATE TABLE plenty AS SELECT i AS k, i * 7 AS v FROM generate_series(1, 60000) i;
	CREATE TABLE skewed AS SELECT 7 AS k, i AS v FROM generate_series(1, 10000) i;
	CREATE TABLE mixed AS SELECT CASE WHEN i < 3000 THEN 7 ELSE i END AS k, i AS v FROM generate_series(1, 6000) i;
	CREATE TABLE dict (k int, t text) WITH (autovacuum_enabled = off);
	INSERT INTO dict SELECT i, 'few ' || i % 3 FROM generate_series(1, 12000) i;
	CREATE FUNCTION other_heap(internal) RETURNS table_am_handler LANGUAGE c AS '$other';
	CREATE FUNCTION other_snapshot(text) RETURNS text LANGUAGE c AS '$other';
	CREATE ACCESS METHOD other_heap TYPE TABLE HANDLER other_heap;
	CREATE TABLE elsewhere (k int, w int) USING other_heap;
	INSERT INTO elsewhere SELECT i, i % 11 FROM generate_series(1, 12000) i;
	ANALYZE;
	UPDATE dict SET t = 'many texts ' || k || repeat('y', k % 70);
});

# The reasons of a query's nodes, in the order of its plan.
sub why
{
	my ($before, $query) = @_;
	return $node->safe_psql('postgres', "$before SELECT reason FROM hashgraph_join_why(\$\$$query\$\$) WHERE reason IS NOT NULL");
}

# The same rows as without us?
sub same_rows
{
	my ($before, $query, $name) = @_;
	is($node->safe_psql('postgres', "$before $query"), $node->safe_psql('postgres', "SET hashgraph_join.enabled = off; $query"), "$name: the answer");
}

# ---- what others do
is(why('', 'SELECT count(*), sum(w) FROM elsewhere'), "the table is not a heap table\nneither a HashGraphJoin nor a HashGraphAgg reads it", 'an aggregation of a table of another access method');
is(why('', 'SELECT f.v, e.w FROM f JOIN elsewhere e USING (k)'), 'not a heap table', 'a join of one');
same_rows('', 'SELECT count(*), sum(f.v), sum(e.w) FROM f JOIN elsewhere e USING (k)', 'a table of another access method');

my $any = 'SELECT other_snapshot($$%s$$)';
my $asks = q{SELECT string_agg(DISTINCT source || '; ' || reason, '') FROM hashgraph_join_why('%s') WHERE source <> 'batches'};
$node->safe_psql('postgres', 'BEGIN; UPDATE a SET g = g + 1 WHERE k < 100; ROLLBACK');
for my $query ('SELECT f.v, a.g FROM f JOIN a USING (k)', 'SELECT count(*), sum(g) FROM a')
{
	is($node->safe_psql('postgres', sprintf($any, sprintf($asks, $query))), 'tuples (not an MVCC snapshot); not an MVCC snapshot', "a snapshot that sees dead rows: $query");
}
same_rows('', sprintf($any, $_), "a snapshot that sees dead rows: $_") for 'SELECT count(a.g) FROM f JOIN a USING (k)', 'SELECT count(*) FROM a';

is(why('SET other.planner = on;', 'SELECT f.v FROM f JOIN a USING (k) WHERE a.g > 1'),
	"it was not planned by PostgreSQL's own planner\n" . join("\n", ('neither a HashGraphJoin nor a HashGraphAgg reads it') x 2), 'a plan that another planner has taken from elsewhere');
like(why('SET other.planner = on;', 'SELECT count(*) FROM f'), qr/^it was not planned by PostgreSQL's own planner\n/, 'and its aggregation');

# ---- group columns that the planner leaves out, because they are constant, from 16 on
like(why('', 'SELECT count(*) FROM f JOIN a USING (k) WHERE f.v + 1 = 3 GROUP BY f.v + 1'),
	$node->pg_version >= 16 ? qr/^the input does not return a group column$/m : qr/^$/, 'a group column that is constant');
same_rows('', 'SELECT count(*) FROM f JOIN a USING (k) WHERE f.v + 1 = 3 GROUP BY f.v + 1', 'a group column that is constant');

# ---- what is not for a device: the plan
my $device = 'SET hashgraph_join.engine = cuda; SET join_collapse_limit = 1;';
my $wide = join ', ', map { "sum(v + $_)" } 1 .. 200;
my %not_for_device = (
	'join type' => 'SELECT count(*) FROM f FULL JOIN a USING (k)',
	'join key of another kind' => 'SELECT count(*) FROM f JOIN a ON f.t = a.n',
	'join clause that runs row by row' => q{SELECT count(*) FROM f LEFT JOIN a USING (k) WHERE f.t LIKE '%' || coalesce(a.g, 3)},
	'outer side not read by pages' => 'SELECT count(*) FROM (SELECT * FROM f ORDER BY id LIMIT 5000) f JOIN a USING (k)',
	'volatile function below' => 'SELECT count(*) FROM f JOIN a USING (k) WHERE random() < f.x',
	'build side that may raise an error' => 'SELECT count(*), sum(b.g) FROM f LEFT JOIN a ON f.k = a.k LEFT JOIN b ON f.l = b.k AND 10 / (b.g + 1) > 1',
	'column that does not pass by value' => 'SELECT max(n) FROM f JOIN a USING (k)',
	'expression of another kind' => 'SELECT sum(length(f.t || a.n)) FROM f JOIN a USING (k)',
	'aggregate of another kind' => 'SELECT sum(y) FROM f JOIN a USING (k)',
	'group key of another kind' => 'SELECT x, count(*) FROM f JOIN a USING (k) GROUP BY x',
	'too many columns or steps' => "SELECT $wide FROM f JOIN a USING (k)");
is(why($device, 'SELECT count(*), sum(f.v) FROM f JOIN a USING (k)'), '', 'what is for a device has no reason');
for my $reason (sort keys %not_for_device)
{
	like(why($device, $not_for_device{$reason}), qr/^no device pipeline: \Q$reason\E$/m, "not for a device: $reason");
}
my $parallel = 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;';
like(why("$device $parallel", 'SELECT count(*), sum(f.v) FROM f JOIN a USING (k)'), qr/^no device pipeline: parallel plan$/m, 'not for a device: parallel plan');

# ---- what comes up in a run
# The reasons that a query has in hashgraph_join_fallbacks(), among others; its answer is stock's.
sub falls_back
{
	my ($wanted, $before, $query) = @_;
	$node->safe_psql('postgres', 'SELECT hashgraph_join_stats_reset()');
	same_rows($before, $query, $wanted);
	my $said = $node->safe_psql('postgres', "SELECT kind || ', ' || reason FROM hashgraph_join_fallbacks() WHERE count > 0");
	like($said, qr/^\Q$wanted\E$/m, $wanted);
	return;
}
my $partly = 'SELECT count(*), sum(x.v), sum(y.v) FROM many x %s JOIN many y USING (k)';
falls_back('memory, groups by value: the dictionary of their codes is full', "SET work_mem = '1MB';", 'SELECT count(*), sum(n) FROM (SELECT dict.t, count(*) AS n FROM f JOIN dict ON f.id = dict.k WHERE dict.k % 2 >= 0 AND dict.k + 1 > 0 AND dict.k + 2 > 0 GROUP BY dict.t) q');
falls_back('memory, match bits on file: those of the outer rows do not fit into memory', "SET work_mem = '64kB'; SET hashgraph_join.spill = passes; SET hashgraph_join.chunk_outer_rows = 64;", sprintf($partly, 'LEFT'));
falls_back('memory, partial groups returned early: they do not fit into memory', "$parallel SET work_mem = '64kB'; SET hashgraph_join.parallel_aggregate = partial; SET hashgraph_join.agg_tuple_cost = 0.1;",
	'SELECT k, count(*) AS n FROM many GROUP BY k ORDER BY n DESC, k LIMIT 50');
falls_back('memory, partitions: the build side does not fit into device memory', "$device SET hashgraph_join.device_memory_limit = '700kB'; SET hashgraph_join.aggregate = off;", 'SELECT count(*), sum(x.v), sum(y.v) FROM plenty x JOIN plenty y USING (k)');
falls_back('pipeline, too many groups', "$device SET work_mem = '64kB';", 'SELECT count(*), sum(n) FROM (SELECT id, count(*) AS n FROM f JOIN b ON f.l = b.k GROUP BY id) q');
my $lopsided = 'SELECT count(*), sum(m.v) FROM many m JOIN skewed s USING (k)';
my %table = (
	'Ellpack padding would take too much memory, used CSR' => [ 'segments = ellpack', 'SELECT count(*), sum(f.v) FROM f JOIN mixed USING (k)' ],
	'Sliced Ellpack padding would take too much memory, used CSR' => [ 'segments = sliced', $lopsided ],
	'this engine builds by binning (v2) where a sort is asked for' => [ 'build = sort', sprintf($partly, '') ],
	'the table is too small or not hashed, probed without binning' => [ 'probe = binned', 'SELECT count(*), sum(f.v) FROM f JOIN b ON f.l = b.k' ]);
for my $reason (sort keys %table)
{
	my ($setting, $query) = @{ $table{$reason} };
	falls_back("table, $reason", "SET hashgraph_join.$setting;", $query);
}
fake_faults($node, 'no_filter');
falls_back('table, this engine has no filter', "$device SET hashgraph_join.filter = on; SET hashgraph_join.aggregate = off;", 'SELECT count(*), sum(f.v) FROM f JOIN a USING (k)');

$node->stop;
done_testing();
