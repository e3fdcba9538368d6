# hashgraph_join_progress(): what other sessions see of a query that runs, who may see it,
# and that nothing is left of one that has ended, however it has.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Rows of the outer side stop at v = 100000 and v = 250000, each until nobody has a lock;
# those of the build side at w = 25000.  Half of the groups is behind the first stop.
my $tables = q{
	CREATE TABLE fact AS SELECT i % 50000 AS k, i AS v, repeat('x', 20) AS filler FROM generate_series(0, 299999) i;
	CREATE TABLE dim AS SELECT i AS k, i AS w FROM generate_series(0, 49999) i;
	CREATE TABLE part (k int, v int) PARTITION BY RANGE (v);
	CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (0) TO (150000);
	CREATE TABLE part2 PARTITION OF part FOR VALUES FROM (150000) TO (300000);
	INSERT INTO part SELECT k, v FROM fact;
	CREATE FUNCTION passes(v int) RETURNS bool LANGUAGE plpgsql AS $$
	BEGIN
		IF v IN (25000, 100000, 250000) THEN
			PERFORM pg_advisory_lock_shared(v);
			PERFORM pg_advisory_unlock_shared(v);
		END IF;
		RETURN true;
	END $$;
	CREATE FUNCTION fails(v int) RETURNS bool LANGUAGE plpgsql AS $$
	BEGIN
		IF v = 250000 THEN
			RAISE EXCEPTION 'no %', v;
		END IF;
		RETURN true;
	END $$;
	VACUUM ANALYZE fact, dim, part;
};
my $one = "LOAD 'hashgraph_join'; SET hashgraph_join.force = on; SET max_parallel_workers_per_gather = 0;";
my $join = 'SELECT f.v, d.w FROM fact f JOIN dim d USING (k) WHERE passes(f.v)';

my $node = new_server('progress', "shared_preload_libraries = 'hashgraph_join'", 'max_parallel_workers = 4');
$node->safe_psql('postgres', $tables);
my $lock = $node->background_psql('postgres');

# What is shown of a process, or of the whole server.
sub shown
{
	my ($columns, $where, @params) = @_;
	return $node->safe_psql('postgres', "SELECT $columns FROM (SELECT * FROM hashgraph_join_progress() ORDER BY node, pid) p WHERE " . ($where // 'true'), @params);
}

sub hold { $lock->query_safe("SELECT pg_advisory_lock($_)") for @_; }
sub let_go { $lock->query_safe("SELECT pg_advisory_unlock($_)") for @_; }

# A session that runs a query until it stops at a row; its number.
sub running
{
	my ($before, $query, %params) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0, %params);
	$session->query_safe($before);
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	$session->query_until(qr/running/, "\\echo running\n$query;\n\\echo ended\n");
	stops($pid, 1);
	return ($session, $pid);
}

# Waits until so many processes of the session wait for the lock.
sub stops
{
	my ($pid, $n) = @_;
	$node->poll_query_until('postgres',
		"SELECT count(*) = $n FROM pg_stat_activity WHERE $pid IN (pid, leader_pid) AND wait_event_type = 'Lock'")
	  or die "process $pid does not stop";
}

# Waits until it is idle, and then nothing may be shown of it.
sub nothing_left
{
	my ($pid, $name) = @_;
	$node->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM pg_stat_activity WHERE $pid IN (pid, leader_pid) AND state <> 'idle'")
	  or die "process $pid does not end";
	is(shown('count(*)'), 0, "$name: nothing is shown any more");
}

is(shown('count(*)'), 0, 'no node runs');

# ---- a join: its build side, then its outer side
hold(25000, 100000, 250000);
my ($session, $pid) = running($one, "SELECT count(*) FROM ($join AND passes(d.w)) q");
my ($aggregation, $reading) = split /\n/, shown('kind, phase, build_rows_done, build_rows_expected, groups IS NULL, leader_pid IS NULL, datname', "pid = $pid");
is($aggregation, 'aggregation|reading the input|||f|t|postgres', 'a count above the join: it waits for it');
like($reading, qr/^join\|reading the build side\|\d+\|\d+\|t\|t\|postgres$/, 'the join reads its build side');
my $rows = shown('build_rows_done', "pid = $pid AND kind = 'join'");
cmp_ok($rows, '>', 0, 'some of its rows have been read');
cmp_ok($rows, '<', 50000, 'and not all');

let_go(25000);
stops($pid, 1);
$node->poll_query_until('postgres', "SELECT phase = 'probing' FROM hashgraph_join_progress() WHERE pid = $pid AND kind = 'join'")
  or die 'it does not probe';
is(shown('build_rows_done', "pid = $pid AND kind = 'join'"), 50000, 'the build side has been read');
my ($blocks, $total, $memory, $device) = split /\|/, shown('outer_blocks_done, outer_blocks_total, memory_bytes, device', "pid = $pid AND kind = 'join'");
is($total, $node->safe_psql('postgres', "SELECT pg_relation_size('fact') / current_setting('block_size')::int"),
	'the outer side has as many blocks as its table');
cmp_ok($blocks, '>', 0, 'some of them have been read');
cmp_ok($blocks, '<', $total, 'and not all');
# a bit per key, at least
cmp_ok($memory, '>', 50000 / 8, 'the memory of the table');
is($device, 'cpu', 'it runs on the CPU');

let_go(100000);
$node->poll_query_until('postgres', "SELECT outer_blocks_done > $blocks + 100 FROM hashgraph_join_progress() WHERE pid = $pid AND kind = 'join'")
  or die 'it does not get on';
stops($pid, 1);
my $later = shown('outer_blocks_done', "pid = $pid AND kind = 'join'");
cmp_ok($later, '>', $blocks, 'it has got on');
cmp_ok($later, '<', $total, 'and not to the end');
let_go(250000);
nothing_left($pid, 'a query that has ended');
$session->quit;

# ---- an aggregation of a scan, and of partitions
hold(250000);
for my $table ('fact', 'part')
{
	($session, $pid) = running($one, "SELECT k, count(*) FROM $table WHERE passes(v) GROUP BY k ORDER BY k LIMIT 1");
	my ($phase, $groups, $done, $all) = split /\|/, shown('phase, groups, outer_blocks_done, outer_blocks_total', "pid = $pid");
	is($phase, 'reading the input', "$table: phase");
	cmp_ok($groups, '>', 0, "$table: groups");
	cmp_ok($done, '>', $all / 2, "$table: more than half of the blocks");
	cmp_ok($done, '<', $all, "$table: not all of them");
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
	nothing_left($pid, "$table: a cancelled aggregation");
	$session->{stderr} = '';
	$session->quit;
}

# ---- on a device: the joins as one, and with what is above them
my $fake = "$one SET hashgraph_join.engine = cuda; SET hashgraph_join.cuda_library = '$FindBin::Bin/../fake/fake.so';";
$node->safe_psql('postgres', 'ALTER FUNCTION passes STABLE');
for my $case ([ 'an aggregation', 'SELECT count(*), sum(f.v), sum(d.w) FROM fact f JOIN dim d USING (k) WHERE passes(f.v)' ],
	[ 'rows of a chain', 'SELECT f.v, d.w, e.w FROM fact f JOIN dim d USING (k) JOIN dim e ON e.k = d.w WHERE passes(f.v)' ])
{
	my ($what, $sql) = @$case;
	like($node->safe_psql('postgres', "$fake EXPLAIN (COSTS OFF) $sql"), qr/Device Pipeline: yes/, "$what on a device") if $what =~ /agg/;
	($session, $pid) = running($fake, $sql);
	my ($top) = split /\n/, shown('device, phase, outer_rows_done > 0 OR outer_blocks_done > 0', "pid = $pid");
	like($top, qr/^fake.*\|(reading the input|probing)\|t?$/i, "$what on a device: it has its name, and gets on");
	unlike(shown('device', "pid = $pid"), qr/cpu/, "$what on a device: nothing on the CPU");
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
	nothing_left($pid, "$what on a device");
	$session->{stderr} = '';
	$session->quit;
}

$node->safe_psql('postgres', 'ALTER FUNCTION passes VOLATILE');

# ---- partitions on file
($session, $pid) = running("$one SET work_mem = '64kB'; SET hash_mem_multiplier = 1; SET hashgraph_join.spill = partitions;", $join =~ s/f\.v, d\.w/count(*)/r);
cmp_ok(shown('spilled_bytes', "pid = $pid AND kind = 'join'"), '>', 0, 'bytes of partitions');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid") or die 'it does not end';
is(shown('count(*)'), 0, 'a session that was terminated: nothing is shown any more');
$session->{run}->finish;

# ---- an error
is(($node->psql('postgres', "$one SELECT count(*) FROM fact f JOIN dim d USING (k) WHERE fails(f.v)"))[0], 3, 'an error');
is(shown('count(*)'), 0, 'a query that has failed: nothing is shown any more');

# ---- workers
my $workers = "LOAD 'hashgraph_join'; SET hashgraph_join.force = on; SET max_parallel_workers_per_gather = 2; SET parallel_leader_participation = off;"
  . 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;';
$node->safe_psql('postgres', 'ALTER FUNCTION passes PARALLEL SAFE');
($session, $pid) = running($workers, "SELECT count(*) FROM fact f JOIN dim d USING (k) WHERE passes(f.v)");
cmp_ok(shown('count(*)', "leader_pid = $pid AND kind = 'join' AND phase = 'probing'"), '>=', 1, 'workers are shown with their leader');
is(shown('count(*)', "pid = $pid AND kind = 'join'"), 0, 'and not the leader, which does not take part');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
nothing_left($pid, 'a cancelled query with workers');
$session->{stderr} = '';
$session->quit;

# ---- who may see what
$node->safe_psql('postgres', 'CREATE ROLE runner LOGIN; CREATE ROLE other LOGIN; CREATE ROLE monitor LOGIN; GRANT pg_read_all_stats TO monitor;
	GRANT SELECT ON fact, dim TO runner');
($session, $pid) = running('SET max_parallel_workers_per_gather = 0; SET hashgraph_join.force = on', $join, extra_params => [ '-U', 'runner' ]);
for my $case ([ 'runner', 1 ], [ 'other', 0 ], [ 'monitor', 1 ])
{
	is(shown('count(*)', "pid = $pid", extra_params => [ '-U', $case->[0] ]), $case->[1], "role $case->[0] sees $case->[1]");
}
$node->safe_psql('postgres', 'GRANT runner TO other');
is(shown('count(*)', "pid = $pid", extra_params => [ '-U', 'other' ]), 1, 'who has the privileges of the role sees its nodes');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
nothing_left($pid, 'a query of a role');
$session->{stderr} = '';
$session->quit;
let_go(250000);

# ---- more nodes than a process has room for, which are cursors here
my $cursors = join '; ', map { "DECLARE c$_ CURSOR FOR SELECT v, w FROM fact JOIN dim USING (k); FETCH 1 FROM c$_" } 1 .. 18;
is($node->safe_psql('postgres', "$one BEGIN; \\o /dev/null\n$cursors; \\o\nSELECT count(*), count(DISTINCT pid) FROM hashgraph_join_progress(); CLOSE ALL; SELECT count(*) FROM hashgraph_join_progress()"),
	"16|1\n0", 'sixteen nodes of a process are shown, and none when their cursors are closed');
is($node->safe_psql('postgres', "$one BEGIN; DECLARE c CURSOR FOR SELECT v, w FROM fact JOIN dim USING (k); MOVE 1 FROM c; SAVEPOINT s; ROLLBACK; SELECT count(*) FROM hashgraph_join_progress()"),
	0, 'nor when a transaction is rolled back');

# ---- without preloading
$lock->quit;
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
$lock = $node->background_psql('postgres');
hold(250000);
($session, $pid) = running($one, $join);
my ($rc, $out, $err) = $node->psql('postgres', "SELECT count(*) FROM hashgraph_join_progress() WHERE pid = $pid");
if ($node->pg_version >= 17)
{
	is($out, 1, 'without preloading, another session sees the node from 17 on');
	is($err, '', 'and there is nothing to be said');
}
else
{
	is($out, 0, 'without preloading, another session sees nothing before 17');
	like($err, qr/NOTICE:  only nodes of this session are shown\n.*HINT:  Put hashgraph_join into shared_preload_libraries/s, 'and is told so');
}
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
$session->{stderr} = '';
$session->quit;
is($node->safe_psql('postgres', "$one SET client_min_messages = warning; BEGIN; DECLARE c CURSOR FOR SELECT v, w FROM fact JOIN dim USING (k); MOVE 1 FROM c; SELECT kind, phase FROM hashgraph_join_progress()"),
	'join|probing', 'a session sees its own node');

$lock->quit;
$node->stop;
done_testing();
