# Whatever a join is doing, a cancel ends it after little more work, and a LIMIT or
# a cursor gets its rows without the rest: measured in processor time of the
# backend, because the clock on the wall counts what else the machine does, and
# against what PostgreSQL itself takes for a million rows in the same minute, because
# no machine is as fast as another one.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Work between a cancel and the end, in rows of PostgreSQL's (million).  The figures
# are about 100,000; some of the pauses that there used to be were of 30 million.
use constant MOST => 4e6;

# When to cancel: after the work of as many rows.
my @moments = map { $_ * 1e6 } (0.1, 0.6, 2.5, 10);

if (!-r "/proc/$$/schedstat")
{
	plan skip_all => 'needs /proc/PID/schedstat';
}

my $node = new_server('main', "work_mem = '256MB'", "max_parallel_workers_per_gather = 0", "shared_buffers = '256MB'");
$node->safe_psql(
	'postgres', q{
	CREATE TABLE big AS SELECT i * 2654435761 AS k, i AS v FROM generate_series(1, 1500000) i;
	CREATE TABLE hot AS SELECT 1 AS k, i AS v, i % 100 AS g FROM generate_series(1, 200000) i;
	CREATE TABLE large AS SELECT i AS id, repeat('abcdefgh', 500000) AS k FROM generate_series(1, 120) i;
	CREATE TABLE few AS SELECT 1 AS one, id, k FROM large;
	CREATE FUNCTION negative(x int) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT x::text LIKE '-%' $$;
	VACUUM ANALYZE big, hot, large, few;
});

# Milliseconds that the process has been running.
sub worked
{
	my ($pid) = @_;
	return (split ' ', slurp_file("/proc/$pid/schedstat"))[0] / 1e6;
}

# Milliseconds that PostgreSQL's own scan and sum take for a million rows, now.
my $yardstick = $node->background_psql('postgres');
my $yardstick_pid = $yardstick->query_safe('SET hashgraph_join.enabled = off; SELECT pg_backend_pid()');
sub million
{
	my $begun = worked($yardstick_pid);
	$yardstick->query_safe('SELECT sum(v) FROM big');
	return (worked($yardstick_pid) - $begun) / 1.5;
}

my $sums = 'count(*), sum(a.v + b.v)';
my $join = "SELECT $sums FROM big a JOIN big b USING (k)";
my %queries = (
	'build v1' => [ "SET hashgraph_join.build = v1", $join ],
	'build v2' => [ "SET hashgraph_join.build = v2; SET hashgraph_join.probe = binned", $join ],
	'slots' => [ "SET hashgraph_join.source = tuples; SET hashgraph_join.filter = on", $join ],
	'partitions' => [ "SET work_mem = '1MB'", "SELECT $sums FROM big a FULL JOIN big b USING (k)" ],
	'passes' => [ "SET work_mem = '2MB'; SET hashgraph_join.spill = passes", "SELECT $sums FROM big a LEFT JOIN big b USING (k)" ],
	'groups' => [ '', 'SELECT a.k, min(a.v), sum(b.v) FROM big a JOIN big b USING (k) GROUP BY a.k OFFSET 10000000' ],
	'groups on files' => [ "SET work_mem = '4MB'", 'SELECT a.k, min(a.v), sum(b.v) FROM big a JOIN big b USING (k) GROUP BY a.k OFFSET 10000000' ],
	'matches counted' => [ '', 'SELECT count(*), sum(a.v + b.v) FROM hot a JOIN hot b USING (k)' ],
	'matches returned' => [ 'SET hashgraph_join.aggregate = off', 'SELECT count(a.v + b.v) FROM hot a JOIN hot b USING (k)' ],
	'matches grouped' => [ '', 'SELECT b.g, count(*), sum(a.v) FROM hot a JOIN hot b USING (k) GROUP BY b.g' ],
	'matches rejected' => [ '', 'SELECT count(*) FROM hot a JOIN hot b ON a.k = b.k AND a.v + b.v < 0' ],
	'matches rejected by row' => [ '', 'SELECT count(*) FROM hot a JOIN hot b ON a.k = b.k AND negative(a.v + b.v)' ],
	'semi join' => [ '', 'SELECT count(*) FROM hot a WHERE EXISTS (SELECT FROM hot b WHERE a.k = b.k AND a.v + b.v < 0)' ],
	'anti join' => [ '', 'SELECT count(*) FROM hot a WHERE NOT EXISTS (SELECT FROM hot b WHERE a.k = b.k AND a.v + b.v < 0)' ],
	'full join' => [ "SET work_mem = '1MB'", 'SELECT count(*) FROM hot a FULL JOIN hot b ON a.k = b.k AND a.v + b.v < 0' ],
	'large keys' => [ '', 'SELECT count(*) FROM large a JOIN large b USING (k)' ],
	'large filter' => [ '', 'SELECT count(*) FROM large a JOIN large b USING (id) WHERE '
		. join(' OR ', map { "a.k = (SELECT repeat('abcdefgh', 499999) || 'abcdefg$_')" } 0 .. 9) ],
	'large groups' => [ '', 'SELECT count(*), b.k FROM few a JOIN few b USING (one) GROUP BY b.k' ]);

sub session
{
	my ($before) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query_safe("$FORCED $before");
	return ($session, $session->query_safe('SELECT pg_backend_pid()'));
}

# ---- cancels
for my $what (sort keys %queries)
{
	my ($before, $query) = @{ $queries{$what} };
	my ($session, $pid) = session($before);
	my ($cancels, $most, $ended) = (0, 0, 0);
	for my $moment (@moments)
	{
		my $row = million() / 1e6;
		my $begun = worked($pid);
		$session->query_until(qr/running/, "\\echo running\n$query;\n\\echo ended\n");
		my $last = $begun;
		wait_until("$what: works", sub {
			my $now = worked($pid);
			# it has begun, and stands still: perhaps it has ended
			$ended = $now > $begun && $now == $last && $node->safe_psql('postgres', "SELECT state FROM pg_stat_activity WHERE pid = $pid") eq 'idle';
			$last = $now;
			return $ended || $now >= $begun + $moment * $row;
		});
		my $cancelled = worked($pid);
		kill 'INT', $pid unless $ended;
		$session->query_until(qr/ended/, '');
		last if $session->{stderr} !~ /canceling statement due to user request/;
		my $took = (worked($pid) - $cancelled) / $row;
		$most = $took if $took > $most;
		$cancels++;
		$session->{stderr} = '';
	}
	cmp_ok($cancels, '>=', 1, "$what: cancelled");
	cmp_ok($most, '<', MOST, sprintf('%s: it ends after little work', $what));
	note(sprintf('%s: %d cancels, at most the work of %d rows', $what, $cancels, $most));
	$session->quit;
}

# ---- LIMIT and cursors over forty billion pairs
for my $what (
	[ 'LIMIT', 'SELECT a.v, b.v FROM hot a JOIN hot b USING (k) LIMIT 1' ],
	[ 'LIMIT of a full join', 'SELECT a.v, b.v FROM hot a FULL JOIN hot b USING (k) LIMIT 1' ],
	[ 'EXISTS', 'SELECT EXISTS (SELECT FROM hot a JOIN hot b USING (k))' ],
	[ 'a cursor', 'BEGIN; DECLARE c CURSOR FOR SELECT a.v, b.v FROM hot a JOIN hot b USING (k); FETCH 1 FROM c; FETCH 1000 FROM c; ROLLBACK' ],
	[ 'a cursor that goes back', 'BEGIN; DECLARE c SCROLL CURSOR FOR SELECT a.v, b.v FROM hot a JOIN hot b USING (k); FETCH 10 FROM c; FETCH BACKWARD 5 FROM c; ROLLBACK' ])
{
	my ($name, $sql) = @$what;
	my ($session, $pid) = session('');
	my $row = million() / 1e6;
	my $begun = worked($pid);
	$session->query("$sql;");
	is($session->{stderr}, '', "$name: no error");
	my $took = (worked($pid) - $begun) / $row;
	cmp_ok($took, '<', 20e6, "$name: without the other rows");
	note(sprintf('%s: the work of %d rows', $name, $took));
	$session->quit;
}

unlike(slurp_file($node->logfile), qr/PANIC|TRAP|was terminated by signal|leak/, 'the server log knows no crash and no leak');
$node->stop;
done_testing();
