# Joins that split their build side, stopped in the middle: no file, no memory
# and no pin is left, and the session joins rightly afterwards.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('main', "work_mem = '1MB'", "max_parallel_workers_per_gather = 0", "shared_buffers = '256MB'",
	"temp_file_limit = '2GB'", "log_temp_files = 0");

$node->safe_psql(
	'postgres', q{
	CREATE TABLE fact AS SELECT i % 300000 AS k, i AS v, 'text ' || i % 1000 AS t FROM generate_series(0, 599999) i;
	CREATE TABLE dim AS SELECT i AS k, i AS w, 'text of ' || i AS t FROM generate_series(0, 299999) i;
	CREATE TABLE hot AS SELECT 1 AS k, i AS v FROM generate_series(1, 100000) i;
	VACUUM ANALYZE fact, dim, hot;
	CREATE FUNCTION slow(i int) RETURNS int LANGUAGE plpgsql STABLE COST 1 AS $$ BEGIN PERFORM pg_sleep(0.0005); RETURN i; END $$;
});
my $sums = 'count(*), sum(f.v), sum(d.w), count(d.t)';
my $good = "SELECT $sums FROM fact f LEFT JOIN dim d USING (k)";
my $answer = $node->safe_psql('postgres', "SET work_mem = '256MB'; $good");
my $files = sub { return $node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()') };

# ---- it splits, and PostgreSQL counts and logs the files
my $plan = $node->safe_psql('postgres', "$FORCED EXPLAIN (ANALYZE, COSTS OFF) $good");
like($plan, qr/Partitions: \d+.*Spilled Inner: [1-9]\d+kB  Spilled Outer: [1-9]\d+kB/s, 'the build side is split');
is($node->safe_psql('postgres', "$FORCED $good"), $answer, 'the answer is the one of enough memory');
like(slurp_file($node->logfile), qr/temporary file: path "[^"]*", size \d{6,}/, 'log_temp_files shows the files');
ok($node->poll_query_until('postgres', "SELECT temp_files >= 4 AND temp_bytes > 10000000 FROM pg_stat_database WHERE datname = 'postgres'"),
	'pg_stat_database counts them');
is($files->(), 0, 'no temporary file is left');

# ---- they go where temp_tablespaces says
my $space = PostgreSQL::Test::Utils::tempdir;
$node->safe_psql('postgres', "CREATE TABLESPACE elsewhere LOCATION '$space'");
$node->safe_psql('postgres', "$FORCED SET temp_tablespaces = elsewhere; $good");
like(slurp_file($node->logfile), qr/temporary file: path "pg_tblspc\//, 'temp_tablespaces is heard');

# ---- errors, each in a phase of its own
my %failing = (
	'temp_file_limit, build side' => [ "SET temp_file_limit = '1MB'; $good", qr/temporary file size exceeds "?temp_file_limit"?/ ],
	'temp_file_limit, outer side' => [ "SET temp_file_limit = '16MB'; $good", qr/temporary file size exceeds "?temp_file_limit"?/ ],
	'a scan of the build side' => [ "SELECT $sums FROM fact f LEFT JOIN (SELECT * FROM dim WHERE 1 / (w - 290000) < 5) d USING (k)", qr/division by zero/ ],
	'a scan of the outer side' => [ "SELECT $sums FROM (SELECT * FROM fact WHERE 1 / (v - 500000) < 5) f LEFT JOIN dim d USING (k)", qr/division by zero/ ],
	'a join clause' => [ "SELECT $sums FROM fact f LEFT JOIN dim d ON f.k = d.k AND 1 / (f.v - 599990) + d.w > -5", qr/division by zero/ ],
	'the output' => [ 'SELECT sum(1 / (f.v - 599990 + d.w * 0)) FROM fact f LEFT JOIN dim d USING (k)', qr/division by zero/ ],
	'statement_timeout' => [ "SET statement_timeout = '150ms'; SELECT $sums FROM fact f FULL JOIN dim d ON f.k = d.k AND (d.w % 400 <> 3 OR slow(d.w) > 0)", qr/statement timeout/ ]);
for my $what (sort keys %failing)
{
	my ($sql, $pattern) = @{ $failing{$what} };
	lives_on($node, $what, sql => $sql, pattern => $pattern, good => "RESET temp_file_limit; RESET statement_timeout; $good", answer => $answer);
	is($files->(), 0, "$what: no temporary file is left");
}

# ---- pg_cancel_backend, while the build side or the outer side goes to files
my %long = (
	'writing the build side' => "SELECT $sums FROM fact f LEFT JOIN (SELECT * FROM dim WHERE w < 100000 OR slow(w) > 0) d USING (k)",
	'writing the outer side' => "SELECT $sums FROM (SELECT * FROM fact WHERE v < 100000 OR slow(v) > 0) f LEFT JOIN dim d USING (k)",
	'one hot key' => 'SELECT count(*), sum(a.v + b.v) FROM hot a JOIN hot b USING (k)',
	'rows of one hot key' => 'SELECT count(a.v::text || b.v) FROM hot a FULL JOIN hot b ON a.k = b.k AND a.v + b.v < 1');
for my $what (sort keys %long)
{
	cancels($node, $what, sql => $long{$what}, wait => 0.9, good => $good, answer => $answer,
		when => sub { $files->() > 0 });
}

# ---- kept for rescans: build rows that share records, some of them without a key
$node->safe_psql('postgres', q{
	CREATE TABLE ra AS SELECT CASE WHEN i % 50 <> 0 THEN i % 60000 END AS k, (i % 3)::int2 AS flag, i % 1000 AS z FROM generate_series(1, 300000) i;
	CREATE TABLE rc AS SELECT i AS z FROM generate_series(0, 999) i;
	CREATE TABLE ro AS SELECT i % 60000 AS k, i AS v FROM generate_series(1, 600000) i;
	ANALYZE ra, rc, ro;
});
my $again = 'SELECT g, (SELECT count(s.flag) FROM ro o JOIN (SELECT ra.k, ra.flag FROM ra JOIN rc c ON ra.z = c.z) s ON o.k = s.k AND o.v <> g) FROM generate_series(1, 3) g';
my $kept = "$FORCED SET work_mem = '4MB'; SET hash_mem_multiplier = 1; SET join_collapse_limit = 1; SET hashgraph_join.aggregate = off;";
is($node->safe_psql('postgres', "$kept $again"), $node->safe_psql('postgres', $again), 'kept, with shared records and NULL keys: the answer');
like($node->safe_psql('postgres', "$kept EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $again"), qr/Inner Source: batches\n.*Build Rows: 294000 .*Partitions: .*Seq Scan on ra \(actual rows=300000(?:\.00)? loops=1\)/s,
	'kept, with shared records and NULL keys: once');

# ---- a crash of the server in the middle
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe($FORCED);
$session->query_until(qr/running/, "\\echo running\n$long{'writing the outer side'};\n");
wait_until('a file is open when the server is shut down', sub { $files->() > 0 });
$node->stop('immediate');
eval { $session->quit };
$node->start;
is($files->(), 0, 'after a restart there is none');

# ---- nothing stays after many stops
for my $stop (
	[ 'a full disk for partitions', "$failing{'temp_file_limit, outer side'}[0];", qr/temp_file_limit/ ],
	[ 'an error while partitions are joined', "$failing{'the output'}[0];", qr/division by zero/ ],
	[ 'a LIMIT that stops early', 'SELECT f.v FROM fact f LEFT JOIN dim d USING (k) LIMIT 1;', undef ],
	[ 'a cursor left open', 'BEGIN; DECLARE c CURSOR FOR SELECT f.v, d.t FROM fact f JOIN dim d USING (k); MOVE 400000 IN c; ROLLBACK;', undef ])
{
	my ($what, $sql, $stops) = @$stop;
	keeps_nothing($node, $what, sql => $sql, reset => 'RESET temp_file_limit;', warm => 4, rounds => 8,
		stops => $stops, good => $good, answer => $answer);
}

unlike(slurp_file($node->logfile), qr/PANIC|TRAP|was terminated by signal|leak/, 'the server log knows no crash and no leak');
$node->stop;
done_testing();
