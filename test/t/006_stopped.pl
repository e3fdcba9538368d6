# Queries that read pages, pass batches and aggregate, stopped in the middle:
# soon, without pins, memory or files left behind, and the session lives.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('main', "work_mem = '256MB'", "max_parallel_workers_per_gather = 0", "shared_buffers = '256MB'",
	"temp_file_limit = '2GB'");

$node->safe_psql(
	'postgres', q{
	CREATE TABLE fact AS SELECT i % 100000 AS k, i AS v, i % 7 AS w, i * 0.25::float8 AS f FROM generate_series(0, 999999) i;
	CREATE TABLE dim AS SELECT i AS k, i AS w, i % 5 AS sub FROM generate_series(0, 99999) i;
	CREATE TABLE sub AS SELECT i AS sub, 'sub ' || i AS name FROM generate_series(0, 4) i;
	CREATE TABLE hot AS SELECT 1 AS k, i AS v FROM generate_series(1, 40000) i;
	CREATE TABLE big AS SELECT 1 AS k, i * 1000003::int8 AS v, 2147483647 AS top FROM generate_series(1, 40000) i;
	-- all its rows are dead to us, and nobody has removed them
	CREATE TABLE dead AS SELECT i AS k FROM generate_series(1, 300000) i;
	DELETE FROM dead;
	VACUUM ANALYZE fact, dim, sub, hot, big;
	CREATE VIEW star AS SELECT f.v, f.w, f.f, d.w AS dw, s.name FROM fact f JOIN dim d USING (k) JOIN sub s USING (sub);
});
my $good = 'SELECT name, count(*), sum(v), sum(f), max(dw) FROM star GROUP BY 1 ORDER BY 1';
my $answer = $node->safe_psql('postgres', $good);

# A rescan per row of the series, of a join that finds nothing.
my $often = 'SELECT sum(n) FROM generate_series(1, 10000) j, generate_series(1, 1000000) i, LATERAL';
my %long = (
	'an aggregate' => 'SELECT count(*), sum(a.v + b.v), min(a.v) FROM hot a JOIN hot b USING (k)',
	'groups' => 'SELECT a.v, count(*), sum(b.v) FROM hot a JOIN hot b USING (k) GROUP BY 1',
	'groups by two' => 'SELECT a.v % 10, b.v, sum(b.v) FROM hot a JOIN hot b USING (k) GROUP BY 1, 2',
	'spilled groups' => "SET work_mem = '64kB'; SELECT a.v, b.v, count(*) FROM hot a JOIN hot b USING (k) GROUP BY 1, 2",
	'a numeric sum' => 'SELECT sum(a.v::numeric * b.v) FROM hot a JOIN hot b USING (k)',
	'a FILTER that keeps nothing' => 'SELECT count(*) FILTER (WHERE a.v + b.v < 0) FROM hot a JOIN hot b USING (k)',
	'a join of joins' => 'SELECT count(*), sum(c.v) FROM hot a JOIN hot b USING (k) JOIN hot c USING (k)',
	'a filter of pages that keeps nothing' => "$often (SELECT count(*) AS n FROM fact f JOIN dim d USING (k) WHERE f.v + i < 0) x",
	'a filter row by row' => "$often (SELECT count(*) AS n FROM fact f JOIN dim d USING (k) WHERE (f.v + i) % 10 = 11) x",
	'dead rows' => "$often (SELECT count(*) AS n FROM dim d LEFT JOIN dead x ON d.k = x.k + i WHERE d.w < 0) x",
	'rows of pages' => 'SELECT count(a.v::text || b.v) FROM hot a JOIN hot b USING (k)');

# ---- pg_cancel_backend
for my $what (sort keys %long)
{
	cancels($node, $what, sql => $long{$what}, wait => 0.6, good => "RESET work_mem; $good", answer => $answer);
}

# ---- no pin is left: what waits for one gets through
is($node->safe_psql('postgres', "SET statement_timeout = '300s'; VACUUM (FREEZE) fact; VACUUM (FREEZE) hot; VACUUM (FREEZE) dim; SELECT 1"),
	1, 'nobody holds a page');
my $open = $node->background_psql('postgres', on_error_stop => 0);
$open->query_safe($FORCED);
$open->query_safe('BEGIN; DECLARE c CURSOR FOR SELECT f.v FROM fact f JOIN dim d USING (k); FETCH 5 FROM c; CLOSE c;
	DECLARE d CURSOR FOR SELECT v FROM star; MOVE 3000 IN d; CLOSE d; SELECT count(*) FROM fact WHERE v < 0;
	SAVEPOINT s; DECLARE e CURSOR FOR SELECT v FROM star; MOVE 3000 IN e; ROLLBACK TO s;');
is($node->safe_psql('postgres', "SET statement_timeout = '300s'; UPDATE fact SET w = w WHERE v < 5; VACUUM (FREEZE) fact; VACUUM (FREEZE) dim; SELECT 1"),
	1, 'a closed cursor holds no page');
$open->query_safe('COMMIT');
$open->quit;

# ---- statement_timeout, and errors from inside
my %failing = (
	'an overflow in an argument' => [ 'SELECT sum(a.top + b.top) FROM big a JOIN big b ON a.v = b.v', qr/integer out of range/ ],
	'an overflow in a product' => [ 'SELECT a.k, sum(a.v * b.v * 1000) FROM big a JOIN big b ON a.v = b.v GROUP BY 1', qr/bigint out of range/ ],
	'an overflow in a filter' => [ 'SELECT count(*) FROM big a JOIN big b ON a.v = b.v WHERE a.top + 1 > 0', qr/integer out of range/ ],
	'a division in a filter' => [ 'SELECT count(*) FROM fact a JOIN dim b USING (k) WHERE 100 / a.v > 0', qr/division by zero/ ],
	'a division in a FILTER' => [ 'SELECT count(*) FILTER (WHERE 100 / a.v > 0) FROM fact a JOIN dim b USING (k)', qr/division by zero/ ],
	'HAVING' => [ 'SELECT b.sub FROM fact a JOIN dim b USING (k) GROUP BY 1 HAVING count(*) / b.sub > 0', qr/division by zero/ ],
	'a division above' => [ 'SELECT 1 / (count(*) - 1000000) FROM fact a JOIN dim b USING (k)', qr/division by zero/ ],
	'statement_timeout' => [ "SET statement_timeout = '300ms'; $long{groups}", qr/statement timeout/ ],
	'temp_file_limit, spilled groups' => [ "SET work_mem = '64kB'; SET temp_file_limit = '1MB'; SELECT f.v, count(*), sum(d.w) FROM fact f JOIN dim d USING (k) GROUP BY 1",
		qr/temporary file size exceeds "?temp_file_limit"?/ ],
	'temp_file_limit, a build in partitions' => [ "SET work_mem = '64kB'; SET temp_file_limit = '1MB'; SELECT count(*), sum(d.w) FROM fact f LEFT JOIN dim d USING (k)",
		qr/temporary file size exceeds "?temp_file_limit"?/ ]);
for my $what (sort keys %failing)
{
	my ($sql, $pattern) = @{ $failing{$what} };
	lives_on($node, $what, sql => $sql, pattern => $pattern, good => "RESET ALL; $FORCED $good", answer => $answer);
	if ($what !~ /temp_file|timeout/)
	{
		my ($rc, $out, $err) = $node->psql('postgres', $sql, on_error_stop => 0);
		like($err, $pattern, "$what: PostgreSQL says the same");
	}
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), 0, 'no temporary file is left');

# ---- spilled groups: the answer of enough memory
my $many = 'SELECT count(*), sum(v::numeric), sum(n), sum(s), min(m) FROM (SELECT f.v, count(*) AS n, sum(d.w) AS s, min(f.f) AS m FROM fact f JOIN dim d USING (k) GROUP BY 1 OFFSET 0) x';
my $want = $node->safe_psql('postgres', $many);
for my $memory ('64kB', '1MB', '16MB')
{
	is($node->safe_psql('postgres', "$FORCED SET work_mem = '$memory'; $many"), $want, "a million groups in $memory");
}
like($node->safe_psql('postgres', "$FORCED SET work_mem = '1MB'; EXPLAIN (ANALYZE, COSTS OFF) SELECT f.v, count(*) FROM fact f JOIN dim d USING (k) GROUP BY 1"),
	qr/HashGraphAgg.*(Spilled Rows|HashAggregate|Batches)/s, 'and they are spilled');

# ---- nothing stays after many stops
my %stopped = (
	'a timeout in groups' => "SET statement_timeout = '50ms'; $long{groups};",
	'a timeout in spilled groups' => "SET statement_timeout = '50ms'; $long{'spilled groups'};",
	'a timeout in a join of joins' => "SET statement_timeout = '50ms'; $long{'a join of joins'};",
	'a timeout in rescans' => "SET statement_timeout = '50ms'; $long{'a filter of pages that keeps nothing'};",
	'an error in a filter' => "$failing{'a division in a filter'}[0];",
	'an error in an argument' => "$failing{'an overflow in an argument'}[0];",
	'a full disk for groups' => "$failing{'temp_file_limit, spilled groups'}[0];",
	'a LIMIT that stops early' => 'SELECT name FROM star LIMIT 1;',
	'a cursor left open' => 'BEGIN; DECLARE c CURSOR FOR SELECT v, name FROM star; FETCH 5 FROM c; ROLLBACK;');
for my $what (sort keys %stopped)
{
	keeps_nothing($node, $what, sql => $stopped{$what},
		reset => 'RESET statement_timeout; RESET work_mem; RESET temp_file_limit;',
		warm => 6, rounds => 20, stops => $what =~ /timeout|error|disk/ ? qr/ERROR/ : undef,
		good => $good, answer => $answer);
}

unlike(slurp_file($node->logfile), qr/PANIC|TRAP|was terminated by signal|leak/, 'the server log knows no crash and no leak');
$node->stop;
done_testing();
