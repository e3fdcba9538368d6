# Statements of docs/limits.md and docs/compatibility.md that no other test shows: where a scan
# by pages begins and what it pins, how many joins are asked about a row, what counts as used
# in shared buffers, what is disabled, and which pipelines are not for a GPU (test/fake stands
# in for it).
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# 1024 buffers: a table of more than 256 blocks is scanned together with others
my $node = new_server('main', "shared_buffers = '8MB'", 'max_parallel_workers_per_gather = 0', "work_mem = '64MB'", 'bgwriter_lru_maxpages = 0');
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION pg_buffercache;
	CREATE TABLE large (id int, k int, t text);
	INSERT INTO large SELECT i, i % 100, 'text ' || i || repeat('x', 100) FROM generate_series(1, 40000) i;
	CREATE TABLE warm (id int, k int, t text);
	INSERT INTO warm SELECT * FROM large LIMIT 9000;
	CREATE TABLE dim (k int, g int);
	INSERT INTO dim SELECT i, i % 10 FROM generate_series(0, 99) i;
	VACUUM (FREEZE, ANALYZE) large;
	VACUUM (FREEZE, ANALYZE) warm;
	VACUUM (FREEZE, ANALYZE) dim;
});
my $ours = "LOAD 'hashgraph_join'; SET hashgraph_join.force = on; SET hashgraph_join.source = pages;";
my $blocks = sub { $node->safe_psql('postgres', "SELECT pg_relation_size('$_[0]') / current_setting('block_size')::int") };
cmp_ok($blocks->('large'), '>', 256, 'the table is large');

# ---- a scan by pages begins with the first page, whoever else is in the middle of the table
my $scan = $node->background_psql('postgres');
$scan->query_safe("BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT id FROM large; MOVE 20000 FROM c");
my $first = 'SELECT id FROM large JOIN dim USING (k) LIMIT 1';
cmp_ok($node->safe_psql('postgres', 'SELECT id FROM large LIMIT 1'), '>', 10000, "PostgreSQL's scan joins one that is in the middle");
is($node->safe_psql('postgres', "$ours SET hashgraph_join.require = 'join'; $first"), 1, 'a scan by pages does not');
$scan->quit;

# ---- by-reference values of up to 64 pages are pinned at a time
$scan = $node->background_psql('postgres');
$scan->query_safe("$ours SET hashgraph_join.require = 'join'; BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT t, g FROM large JOIN dim USING (k);");
my $most = 0;
for (1 .. 20)
{
	$scan->query_safe('MOVE 1900 FROM c');
	my $pinned = $node->safe_psql('postgres', q{SELECT count(*) FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('large') AND pinning_backends > 0});
	$most = $pinned if $pinned > $most;
}
cmp_ok($most, '>', 1, "pages are pinned while their values are on the way ($most)");
cmp_ok($most, '<=', 65, 'no more than 64 of them, and the one at hand');
$scan->quit;

# ---- eight joins of a chain are asked at most
my $star = join '', map { " JOIN (SELECT k AS k$_, g AS g$_ FROM dim WHERE k < 90 OFFSET 0) d$_ ON large.k = d$_.k$_" } 1 .. 10;
my $plan = $node->safe_psql('postgres', "$ours SET join_collapse_limit = 1; SET hashgraph_join.filter = on; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT count(*) FROM large$star");
my ($filters) = $plan =~ /Key Filters: (.*)$/m;
my $asked = () = ($filters // '') =~ /%/g;
is($asked, 8, 'eight of ten joins of a chain are asked: ' . ($filters // 'none'));
is($node->safe_psql('postgres', "$ours SET join_collapse_limit = 1; SELECT count(*) FROM large$star"), 36000, 'the answer');

# ---- on 15 and 16, the use of few pages is counted again when they are read again
my $sum = 'SELECT count(*) FROM warm JOIN dim USING (k);';
for my $way ('SET hashgraph_join.enabled = off;', $ours)
{
	$node->restart;
	$node->safe_psql('postgres', "LOAD 'hashgraph_join'; $way $sum $sum $sum $sum");
	my $often = $node->safe_psql('postgres', q{SELECT count(*) FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('warm') AND relforknumber = 0 AND usagecount > 2});
	if ($way ne $ours || $node->pg_version >= 17)
	{
		cmp_ok($often, '>', $blocks->('warm') / 2, "$way pages that are read four times count as used often");
	}
	else
	{
		cmp_ok($often, '<', $blocks->('warm') / 8, 'a table that only we read counts as less used');
	}
}

# ---- a build side that processes share is the CPU's, and its memory that of all of them: three
# processes have a third each, and each one's chunks are filled to another degree
my $workers = "$ours RESET hashgraph_join.source; SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET hashgraph_join.parallel_build = shared;";
my $self = 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT count(a.t || b.t) FROM large a JOIN large b USING (id)';
my %memory;
for ([ one => $ours ], [ all => $workers ])
{
	$plan = $node->safe_psql('postgres', "$_->[1] $self");
	like($plan, qr/Build Side: shared/, 'processes build one table') if $_->[0] eq 'all';
	($memory{ $_->[0] }) = $plan =~ /Build Rows: 40000  Memory Usage: (\d+)kB/;
}
cmp_ok($memory{all}, '>', 0.5 * $memory{one}, "whose memory is shown as that of all of them ($memory{one} kB of one process)");
my $device = "SET hashgraph_join.cuda_library = '$FindBin::Bin/../fake/fake.so'; SET hashgraph_join.engine = cuda;";
unlike($node->safe_psql('postgres', "$workers $device $self"), qr/Build Side: shared/, 'not on a device');

# ---- what is disabled below a join of ours counts as it does below one of PostgreSQL's
$node->safe_psql('postgres', 'CREATE INDEX ON warm (k); ANALYZE warm');
my $unforced = "LOAD 'hashgraph_join'; SET hashgraph_join.min_rows = 0;";
my $join = 'EXPLAIN (COSTS OFF) SELECT count(t) FROM warm JOIN dim USING (k)';
like($node->safe_psql('postgres', "$unforced $join"), qr/HashGraphJoin.*Seq Scan on warm/s, 'a join of ours');
unlike($node->safe_psql('postgres', "$unforced SET enable_seqscan = off; $join"), qr/Seq Scan on warm/, 'not where its scans are disabled, and others are there');

# ---- pipelines in which a row has a thousand matches on average are not for a GPU
my $fake = "$ours SET hashgraph_join.cuda_library = '$FindBin::Bin/../fake/fake.so'; SET hashgraph_join.engine = auto; SET hashgraph_join.device_startup_cost = 0; SET hashgraph_join.device_launch_cost = 0; SET hashgraph_join.device_transfer_cost = 0;";
$node->safe_psql('postgres', 'CREATE TABLE many AS SELECT id % 20 AS often, id % 80 AS seldom FROM large; CREATE TABLE more AS SELECT * FROM many UNION ALL SELECT * FROM many; ANALYZE many, more');
my $pairs = 'EXPLAIN (COSTS OFF) SELECT count(*) FROM more JOIN many USING';
unlike($node->safe_psql('postgres', "$fake $pairs (often)"), qr/Planned Engine: cuda/, 'two thousand matches for a row: the CPU');
like($node->safe_psql('postgres', "$fake $pairs (seldom)"), qr/Planned Engine: cuda/, 'five hundred: the GPU');

# ---- nor are joins whose build side is the larger one, which costs of a GPU would make seem cheap
$node->safe_psql('postgres', 'CREATE TABLE lesser AS SELECT id FROM large WHERE id % 4 = 0; ANALYZE lesser');
my $explain = "$fake SET hashgraph_join.aggregate = off; EXPLAIN (COSTS OFF) SELECT * FROM";
like($node->safe_psql('postgres', "$explain large l WHERE EXISTS (SELECT FROM lesser WHERE id = l.id)"), qr/Join Type: Semi.*Planned Engine: cuda/s, 'a smaller build side: the GPU');
unlike($node->safe_psql('postgres', "$explain lesser l WHERE EXISTS (SELECT FROM large WHERE id = l.id)"), qr/Join Type: Semi.*Planned Engine: cuda/s, 'a larger one: not there');

$node->stop;
done_testing();
