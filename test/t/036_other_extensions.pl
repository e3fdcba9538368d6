# Beside extensions that have paths and nodes of their own (test/other/nodes.c): no answer
# differs from that with PostgreSQL's own joins and aggregations, whichever of the two is
# loaded first, and a table is read by us only where its sequential scan is still wanted.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $other = "$FindBin::Bin/../other/other.so";

# Of the tables that have a companion, the rows stand there: those here are to be seen by nobody,
# as the few that a compressed chunk may still have.
my $tables = q{
	CREATE TABLE chunk (id int PRIMARY KEY, k int, val int);
	INSERT INTO chunk SELECT i, 1, 1 FROM generate_series(1, 12000) i;
	CREATE TABLE chunk_elsewhere AS SELECT i AS id, i % 1000 AS k, i % 1000 AS val FROM generate_series(1, 20000) i;
	CREATE TABLE dim AS SELECT i AS id, i % 1000 AS k, i AS w FROM generate_series(1, 5000) i;
	CREATE TABLE part (id int, k int, val int) PARTITION BY RANGE (id);
	CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (10000);
	CREATE TABLE part_2 PARTITION OF part FOR VALUES FROM (10000) TO (30000);
	INSERT INTO part SELECT i, i % 1000, i FROM generate_series(0, 29999) i WHERE i < 10000 OR i % 100 = 0;
	CREATE TABLE part_2_elsewhere AS SELECT i AS id, i % 1000 AS k, i AS val FROM generate_series(10000, 29999) i;
	CREATE INDEX ON part (id);
	CREATE TABLE other_part (LIKE part) PARTITION BY RANGE (id);
	CREATE TABLE other_part_1 PARTITION OF other_part FOR VALUES FROM (0) TO (10000);
	CREATE TABLE other_part_2 PARTITION OF other_part FOR VALUES FROM (10000) TO (30000);
	INSERT INTO other_part SELECT i, i % 1000, i FROM generate_series(0, 29999, 2) i;
	CREATE TABLE parent (id int, k int, val int);
	CREATE TABLE child_1 () INHERITS (parent);
	CREATE TABLE child_2 () INHERITS (parent);
	INSERT INTO child_1 SELECT i, i % 1000, i FROM generate_series(1, 12000) i;
	INSERT INTO child_2 SELECT i, 2, i FROM generate_series(1, 12000) i;
	CREATE TABLE child_2_elsewhere AS SELECT i AS id, i % 1000 AS k, i + 1 AS val FROM generate_series(1, 12000) i;
	VACUUM ANALYZE;
};
my @queries = (
	'SELECT count(*), sum(val) FROM chunk',
	'SELECT count(*), sum(val) FROM chunk WHERE id BETWEEN 1000 AND 15000 AND val < 900',
	'SELECT k % 7, count(*), sum(val), min(id) FROM chunk GROUP BY 1 ORDER BY 1',
	'SELECT count(DISTINCT k), sum(val) FROM chunk',
	'SELECT count(*), sum(val), sum(w) FROM chunk JOIN dim USING (k)',
	'SELECT d.id % 5, count(*), sum(val) FROM dim d LEFT JOIN chunk c ON c.id = d.id * 3 GROUP BY 1 ORDER BY 1',
	'SELECT count(*), sum(c.id), sum(d.id) FROM dim d FULL JOIN chunk c ON c.id = d.id * 3',
	'SELECT count(*) FROM dim WHERE EXISTS (SELECT 1 FROM chunk WHERE chunk.id = dim.id * 3)',
	'SELECT count(*), sum(id) FROM chunk WHERE NOT EXISTS (SELECT 1 FROM dim WHERE dim.id = chunk.id)',
	'SELECT c.id, val, w FROM chunk c JOIN dim d USING (k) WHERE d.id < 4 ORDER BY 1, 3',
	'SELECT count(*), sum(a.val), sum(b.w) FROM chunk a JOIN dim b USING (k) JOIN dim d ON d.id = a.id',
	'SELECT count(*), sum(val) FROM part',
	'SELECT k % 7, count(*), sum(val) FROM part GROUP BY 1 ORDER BY 1',
	'SELECT count(*), sum(n), sum(w) FROM (SELECT k, count(*) n FROM chunk GROUP BY k) g JOIN dim USING (k)',
	'SELECT id, count(*) FROM part WHERE id % 5000 = 0 GROUP BY 1 ORDER BY 1',
	'SELECT count(*), sum(val), sum(w) FROM part JOIN dim USING (k)',
	'SELECT count(*), sum(a.val), sum(b.val) FROM part a JOIN other_part b ON a.id = b.id',
	'SELECT count(*), sum(val) FROM parent',
	'SELECT count(*), sum(val), sum(w) FROM parent JOIN dim USING (k)');

my %ways = (
	'as planned' => '',
	'forced' => 'SET hashgraph_join.force = on;',
	'by partitions' => 'SET hashgraph_join.force = on; SET enable_partitionwise_join = on; SET enable_partitionwise_aggregate = on;',
	'in workers' => 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0; SET hashgraph_join.force = on;',
	'on a device' => "SET hashgraph_join.force = on; SET hashgraph_join.engine = cuda; SET hashgraph_join.cuda_library = '$FindBin::Bin/../fake/fake.so';");
my $node;
sub sql { return $node->safe_psql('postgres', "SET hashgraph_join.min_rows = 1000; $_[0]") }
sub plan_of { my ($set, $query) = @_; return sql("$set EXPLAIN (COSTS OFF) $query") }
sub why { my ($set, $query) = @_; return sql("$set SELECT node, reason FROM hashgraph_join_why(\$\$$query\$\$) WHERE NOT taken") }

# Ok when no answer to the queries differs from PostgreSQL's own in one process, which is asked once.
my %stock;
sub same
{
	my ($what, $set, $way) = @_;
	my $all = join('', map { "\\echo -- $_\n$_;\n" } @queries);
	$stock{$set} //= sql("SET hashgraph_join.enabled = off; $set\n$all");
	is(sql("$set $ways{$way}\n$all"), $stock{$set}, "$what, $way");
	return;
}

my ($join, $groups) = ($queries[4], $queries[2]);
my $replaced = 'SET other.scan = replace;';
for my $order ("hashgraph_join,$other", "$other,hashgraph_join")
{
	my $first = $order =~ /^hash/ ? 'loaded after us' : 'loaded before us';
	$node = new_server($order =~ /^hash/ ? 'we_first' : 'others_first', "shared_preload_libraries = '$order'",
		"hashgraph_join.column_memory = '64MB'", 'hashgraph_join.column_loading = off', 'hashgraph_join.gpu_server = off',
		'max_parallel_workers_per_gather = 0', 'max_worker_processes = 12');
	$node->safe_psql('postgres', $tables);
	%stock = ();

	# ---- a table's rows stand elsewhere
	same("$first, paths replaced", $replaced, $_) for sort keys %ways;
	is(sql("$replaced $queries[0]"), '20000|9990000', "$first: and these are the rows");
	like(plan_of("$replaced $ways{forced}", $join), qr/HashGraphAgg.*HashGraphJoin.*Custom Scan \(OtherNode\) on chunk.*Seq Scan on dim/s, "$first: a join of ours reads what replaced the table");
	like(plan_of("$replaced $ways{'in workers'}", $join), qr/Gather.*HashGraphJoin.*Parallel Custom Scan \(OtherNode\) on chunk/s, "$first: so it does in workers");
	unlike(sql("$replaced $ways{forced}" . join('', map { "EXPLAIN (COSTS OFF) $_;" } @queries)), qr/Seq Scan on (chunk|part_2|child_2)/, "$first: the table is scanned by nobody");
	is(why("$replaced $ways{forced}", $groups), "HashAggregate|another extension has replaced the sequential scan\nCustom Scan (OtherNode) on chunk|neither a HashGraphJoin nor a HashGraphAgg reads it", "$first: why the groups are not ours");
	is(why("$replaced $ways{forced}", $join), 'Custom Scan (OtherNode) on chunk|another extension has replaced the sequential scan', "$first: why the scan is not ours");
	same("$first, paths beside PostgreSQL's", 'SET other.scan = beside;', $_) for 'as planned', 'forced';
	sql(join('', map { "SELECT hashgraph_join_load('$_');" } qw(chunk dim part_1 part_2 child_1 child_2)));
	like(sql("$ways{forced} EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $join"), qr/Source: columns/, "$first: columns are kept");
	same("$first, paths replaced, columns kept", $replaced, $_) for sort keys %ways;

	# ---- nodes without names, or with ours
	for my $names (qw(none join agg))
	{
		my $set = "SET other.names = $names; $replaced";
		my $in_plans = "$set SET other.plan_names = on;";
		same("$first, nodes called $names", $set, $_) for 'forced', 'in workers';
		same("$first, nodes called $names in plans, too", $in_plans, 'forced');
		my $called = $names eq 'none' ? 'Custom Scan' : 'Custom Scan (HashGraph' . ucfirst($names) . ')';
		like(plan_of("$in_plans $ways{forced}", $join), qr/\Q$called\E on chunk/, "$first: EXPLAIN of a node called $names");
		like(why("$in_plans $ways{forced}", $join), qr/^\Q$called\E on chunk\|another extension/, "$first: why it is not ours");
	}

	# ---- joins and groups
	for my $names (qw(none join))
	{
		same("$first, nodes called $names above joins", "SET other.names = $names; SET other.joins = on;", $_) for 'as planned', 'forced';
		same("$first, nodes called $names above groups", "SET other.names = $names; SET other.groups = on;", $_) for 'as planned', 'forced', 'in workers';
	}
	same("$first, nodes above everything", "SET other.names = none; SET other.joins = on; SET other.groups = on; $replaced", 'in workers');
	my $grouped = plan_of("SET other.groups = on; $ways{forced}", $join);
	if ($order =~ /^hash/)
	{
		like($grouped, qr/OtherNode.*HashGraphAgg/s, "$first: its node stands above ours");
	}
	else
	{
		unlike($grouped, qr/HashGraphAgg/, "$first: no aggregation of ours goes around its node");
		like(why("SET other.groups = on; $ways{forced}", $join), qr/^Aggregate\|another extension has put a node of its own above the aggregation$/m, "$first: which is said");
	}

	# ---- a hint for an index, where PostgreSQL drops the sequential scan as well
	my $few = 'chunk.id <= 2400';
	for my $query ("SELECT count(*), sum(val), sum(w) FROM chunk JOIN dim USING (k) WHERE $few", "SELECT count(*), sum(val) FROM chunk WHERE $few")
	{
		like(plan_of('SET hashgraph_join.enabled = off;', $query), qr/Index Scan using chunk_pkey/, "$first: PostgreSQL's choice: $query");
		for my $way ('as planned', 'forced')
		{
			like(plan_of($ways{$way}, $query), qr/HashGraph.*Seq Scan on chunk/s, "$first, $way: ours is another");
			unlike(plan_of("SET enable_seqscan = off; $ways{$way}", $query), qr/Seq Scan on chunk/, "$first, $way: without sequential scans, it is not");
			unlike(plan_of("SET other.scan = index; $ways{$way}", $query), qr/Seq Scan on chunk/, "$first, $way: nor with a hint");
			like(why("SET other.scan = index; $ways{$way}", $query), qr/\|another extension has replaced the sequential scan$/m, "$first, $way: why");
		}
		unlike(plan_of("SET other.scan = index; $ways{'in workers'}", $query), qr/Seq Scan on chunk/, "$first: nor in workers");
	}
	same("$first, indexes asked for", 'SET other.scan = index;', $_) for 'as planned', 'in workers';
	unlike(slurp_file($node->logfile), qr/TRAP|terminated by signal|PANIC/, "$first: nothing crashed");
	$node->stop;
}

# ---- pg_hint_plan, which asks for such indexes, whichever is loaded first
for my $order (-e (`pg_config --pkglibdir` =~ s/\s+$//r) . '/pg_hint_plan.so' ? ('hashgraph_join,pg_hint_plan', 'pg_hint_plan,hashgraph_join') : ())
{
	$node = new_server($order =~ /^hash/ ? 'hints_above' : 'hints_below', "shared_preload_libraries = '$order'", 'max_parallel_workers_per_gather = 0');
	$node->safe_psql('postgres', $tables . 'CREATE INDEX chunk_k ON chunk (k); VACUUM ANALYZE chunk;');
	my $query = 'SELECT count(*), sum(w) FROM chunk JOIN dim USING (k)';
	my $few = 'SELECT count(*), sum(val) FROM chunk WHERE id <= 2400';
	for my $way ('as planned', 'forced', 'in workers')
	{
		my $hinted = sub { return plan_of($ways{$way}, "/*+ $_[0] */ $_[1]") };
		like(plan_of($ways{$way}, $_), qr/HashGraph.*Seq Scan on chunk/s, "$order, $way: without a hint: $_") for $query, $way eq 'as planned' ? () : $few;
		like($hinted->('IndexScan(chunk chunk_k)', $query), qr/Index Scan using chunk_k/, "$order, $way: IndexScan, in a join");
		like($hinted->('IndexOnlyScan(chunk chunk_k)', $query), qr/Index Only Scan using chunk_k/, "$order, $way: IndexOnlyScan, in a join");
		unlike($hinted->('NoSeqScan(chunk)', $query), qr/Seq Scan on chunk/, "$order, $way: NoSeqScan, in a join");
		like($hinted->('IndexScan(chunk)', $few), qr/Index Scan using chunk_pkey/, "$order, $way: IndexScan, in an aggregation");
		like($hinted->('BitmapScan(chunk)', $few), qr/Bitmap Heap Scan on chunk/, "$order, $way: BitmapScan, in an aggregation");
		unlike($hinted->('NoSeqScan(chunk)', $few), qr/Seq Scan on chunk/, "$order, $way: NoSeqScan, in an aggregation");
		like($hinted->('SeqScan(chunk)', $_), qr/HashGraph.*Seq Scan on chunk/s, "$order, $way: SeqScan: $_") for $query, $few;
	}
	is(why('', "/*+ IndexScan(chunk) */ $few"), "Aggregate|another extension has replaced the sequential scan\nIndex Scan using chunk_pkey on chunk|neither a HashGraphJoin nor a HashGraphAgg reads it", "$order: why");
	$node->stop;
}
note('no pg_hint_plan: Debian has a package of it from 13 on, for PostgreSQL 17 and later') if $node->name !~ /^hints/;

done_testing();
