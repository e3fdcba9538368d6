# The private memory of a backend stays near the limit of a join, however its
# build side is spread over keys and whatever the planner thinks of its size.
# bench/memory.sh is the same at length; what is bounded here is bytes, not time.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use POSIX ();
use Time::HiRes qw(usleep);

# work_mem x hash_mem_multiplier, and 16 MB
my $most_kb = (1 * 2 + 16) * 1024;

my $node = new_server('main', "work_mem = '1MB'", 'hash_mem_multiplier = 2', 'max_parallel_workers_per_gather = 0', "shared_buffers = '256MB'");
$node->safe_psql(
	'postgres', q{
	SELECT setseed(0.5);
	CREATE TABLE fact AS SELECT CASE WHEN i <= 10 THEN 5 ELSE i::bigint * 7919 % 450000 END AS k, i AS v FROM generate_series(1, 450000) i;
	CREATE TABLE uniform AS SELECT i AS k, i % 77 AS w, 'text of a row of the build side, longer than a key would be ' || i AS t FROM generate_series(1, 400000) i;
	CREATE TABLE zipf AS SELECT exp(ln(400000) * random())::int AS k, i % 77 AS w, 'text of a row of the build side, longer than a key would be ' || i AS t FROM generate_series(1, 400000) i;
	CREATE TABLE one_key AS SELECT 5 AS k, i % 77 AS w, 'text of a row of the build side, longer than a key would be ' || i AS t FROM generate_series(1, 400000) i;
	CREATE TABLE few AS SELECT * FROM uniform;
	CREATE TABLE countless AS SELECT * FROM uniform;
	CREATE TABLE more AS SELECT * FROM fact;
	ALTER TABLE uniform ALTER k SET STATISTICS 0;
	ALTER TABLE zipf ALTER k SET STATISTICS 0;
	ALTER TABLE one_key ALTER k SET STATISTICS 0;
	VACUUM ANALYZE;
	UPDATE pg_class SET reltuples = 100 WHERE relname = 'few';
	-- the one of fewer rows is built, whatever the join type, though it is the wider one
	UPDATE pg_class SET reltuples = 1e7 WHERE relname = 'fact';
	UPDATE pg_class SET reltuples = 1e9 WHERE relname = 'countless';
	UPDATE pg_class SET reltuples = 1e10 WHERE relname = 'more';
});

# The most private memory that the process has while $sql runs, above what it has
# before, in kB; and what $sql returns.
sub peak_of
{
	my ($before, $sql) = @_;
	my $session = $node->background_psql('postgres');
	$session->query_safe("$FORCED $before SELECT count(*) FROM (VALUES (1)) a(x) JOIN (VALUES (1)) b(x) USING (x);");
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	my $anon = sub { return slurp_file("/proc/$pid/status") =~ /^RssAnon:\s+(\d+) kB/m ? $1 : 0 };
	my $idle = $anon->();
	pipe my $read, my $write or die;
	my $sampler = fork // die;
	if ($sampler == 0)
	{
		my ($peak, $stop) = (0, 0);
		local $SIG{TERM} = sub { $stop = 1 };
		until ($stop)
		{
			my $now = $anon->();
			$peak = $now if $now > $peak;
			usleep(1000);
		}
		syswrite $write, "$peak\n";
		POSIX::_exit(0);
	}
	close $write;
	my $answer = $session->query_safe($sql);
	kill TERM => $sampler;
	my $peak = <$read>;
	waitpid $sampler, 0;
	$session->quit;
	return ($peak - $idle, $answer);
}

my $sums = 'count(*), sum(f.v), sum(b.w), min(b.t), max(b.t)';
my %statements = (
	'uniform' => "SELECT $sums FROM fact f FULL JOIN uniform b USING (k)",
	'uniform, row by row' => "SELECT $sums FROM (SELECT * FROM fact OFFSET 0) f LEFT JOIN (SELECT * FROM uniform OFFSET 0) b ON f.k = b.k AND f.v + b.w > 0",
	'Zipf' => "SELECT $sums FROM fact f LEFT JOIN zipf b USING (k)",
	'one key' => "SELECT $sums FROM fact f FULL JOIN one_key b ON f.k = b.k AND f.v < b.w",
	'one key, anti' => 'SELECT count(*), sum(v) FROM fact f WHERE NOT EXISTS (SELECT FROM one_key b WHERE f.k = b.k AND f.v = b.w + 2)',
	'an estimate of 100 rows' => "SELECT $sums FROM fact f LEFT JOIN few b USING (k)",
	'an estimate of 10^9 rows' => 'SELECT count(*), sum(v) FROM more f WHERE NOT EXISTS (SELECT FROM countless b WHERE f.k = b.k AND f.v < b.w)');

# what is measured is there to be seen
my ($peak) = peak_of("SET work_mem = '1GB';", $statements{'uniform'});
cmp_ok($peak, '>', $most_kb, "with enough memory a join takes much more ($peak kB)");

for my $what (sort keys %statements)
{
	($peak, my $plan) = peak_of('', "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $statements{$what}");
	like($plan, qr/Spilled Inner: [1-9]/, "$what: the build side is split");
	cmp_ok($peak, '<=', $most_kb, "$what: memory stays near the limit ($peak of $most_kb kB)");
}

# of a table that is read through, the pages to come tell how many rows they have
for my $what (grep { /estimate/ } sort keys %statements)
{
	$node->psql('postgres', "$FORCED SET client_min_messages = debug1; $statements{$what}", stderr => \my $notes);
	my ($kept, $rest) = ($notes // '') =~ /(\d+) build rows fill memory, the rest, about (\d+), goes to/;
	cmp_ok(abs(400000 - ($kept // 0) - ($rest // 0)), '<', 40000, "$what: the rest is known well enough (" . ($rest // 'not split') . ')');
}

$node->stop;
done_testing();
