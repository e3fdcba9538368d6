# Cancelled, timed-out and failing queries: they stop soon, the session lives,
# and it keeps no memory.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('main', "work_mem = '256MB'", "max_parallel_workers_per_gather = 0",
	"temp_file_limit = '2GB'");

$node->safe_psql(
	'postgres', q{
	CREATE TABLE fact AS SELECT i % 100000 * 2654435761 AS k, i AS v FROM generate_series(0, 1999999) i;
	CREATE TABLE dim AS SELECT i * 2654435761 AS k, i AS w FROM generate_series(0, 99999) i;
	CREATE TABLE hot AS SELECT 1 AS k, i AS v FROM generate_series(1, 30000) i;
	CREATE TABLE zero AS SELECT i AS k, CASE WHEN i = 15000 THEN 0 ELSE i END AS d FROM generate_series(1, 30000) i;
	VACUUM ANALYZE fact, dim, hot, zero;
	CREATE FUNCTION slow(x bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS
	$$ BEGIN PERFORM pg_sleep(0.0005); RETURN x; END $$;
	CREATE FUNCTION many() RETURNS SETOF numeric LANGUAGE plpgsql AS
	$$ BEGIN RETURN QUERY SELECT generate_series(1, 100000.0); END $$;
});
my $good = 'SELECT count(*), sum(f.v), sum(d.w) FROM fact f JOIN dim d USING (k)';
my $answer = $node->safe_psql('postgres', $good);

# What each of these does is long: what it does when it is stopped is the test.
# The inner side of a semi join is built, the outer side of it probes.
my %long = (
	# of a function that nothing is known about, which are taken for a thousand
	'a build of slow rows' => 'SELECT count(*) FROM dim d WHERE d.k IN (SELECT slow(i::bigint) FROM many() i OFFSET 0)',
	'a build of many rows' =>
	  'SELECT count(*) FROM (SELECT i AS k FROM generate_series(1, 100000000) i) a JOIN (SELECT i AS k FROM generate_series(1, 100000000) i) b USING (k)',
	'a probe with slow rows' => 'SELECT count(*) FROM (SELECT slow(k) AS k FROM fact OFFSET 0) f WHERE f.k IN (SELECT k FROM dim)',
	# 900 million pairs from two times 30,000 rows
	'an emit' => 'SELECT count(a.v + b.v) FROM hot a JOIN hot b USING (k)',
	'an emit that is all filtered' => 'SELECT count(*) FROM hot a JOIN hot b ON a.k = b.k AND a.v + b.v < 0',
	'a semi join that is all filtered' => 'SELECT count(*) FROM hot a WHERE EXISTS (SELECT 1 FROM hot b WHERE a.k = b.k AND a.v + b.v < 0)',
	'a full join' => 'SELECT count(*) FROM hot a FULL JOIN hot b ON a.k = b.k AND a.v + b.v < 0');

like(joined_plan($node, $FORCED, $long{'a build of slow rows'}, 'a slow build: planned'),
	qr/on dim.*on many/s, 'a slow build: the slow side is the inner one');
like(joined_plan($node, $FORCED, $long{'a probe with slow rows'}, 'a slow probe: planned'),
	qr/on fact.*on dim/s, 'a slow probe: the slow side is the outer one');

# ---- pg_cancel_backend
for my $what (sort keys %long)
{
	cancels($node, $what, sql => $long{$what}, wait => 0.7, good => $good, answer => $answer);
}

# ---- statement_timeout
for my $what (sort keys %long)
{
	my ($rc, $out, $err) = $node->psql('postgres',
		"$FORCED SET statement_timeout = '400ms'; $long{$what};\nSET statement_timeout = 0; $good", on_error_stop => 0);
	like($err, qr/canceling statement due to statement timeout/, "$what: timed out");
	like($out, qr/\Q$answer\E/, "$what: the session goes on after a timeout");
}

# ---- errors from inside
my %failing = (
	'a build key' => 'SELECT count(*) FROM fact f JOIN zero z ON f.k = 1000 / z.d',
	'a probe key' => 'SELECT count(*) FROM zero z LEFT JOIN dim d ON d.k = 1000 / z.d',
	'a join filter' => 'SELECT count(*) FROM zero y JOIN zero z ON y.k = z.k AND 1000 / z.d + y.d > 0',
	'a join filter of a full join' => 'SELECT count(*) FROM zero y FULL JOIN zero z ON y.k = z.k AND 1000 / (z.d * y.d) > 0',
	'the output' => 'SELECT sum(1000 / z.d) FROM zero y JOIN zero z USING (k)',
	'a child' => 'SELECT count(*) FROM (SELECT k, 1000 / d AS e FROM zero OFFSET 0) y JOIN zero z USING (k) WHERE y.e >= 0');
for my $what (sort keys %failing)
{
	lives_on($node, "error in $what", sql => $failing{$what}, pattern => qr/division by zero/, good => $good, answer => $answer);
}

# ---- caught by a savepoint and by PL/pgSQL
is( $node->safe_psql(
		'postgres', "$FORCED
		CREATE FUNCTION caught() RETURNS int LANGUAGE plpgsql AS \$\$
		DECLARE n int := 0; x bigint;
		BEGIN
			FOR i IN 1 .. 20 LOOP
				BEGIN
					SELECT count(*) INTO x FROM zero y JOIN zero z ON y.k = z.k AND 1000 / z.d + y.d > 0;
				EXCEPTION WHEN division_by_zero THEN n := n + 1;
				END;
			END LOOP;
			RETURN n;
		END \$\$;
		SELECT caught();
		BEGIN; SAVEPOINT s; SELECT count(*) FROM dim; ROLLBACK TO s; $good; COMMIT;"),
	"20\n100000\n$answer", 'errors caught inside a transaction');

# ---- nothing stays after many failures
#
# A table of any of these queries is 2 MB and more: fifty leaks are 100 MB.
my %stopped = (
	'cancel in an emit' => "SET statement_timeout = '60ms'; SELECT count(*) FROM hot a JOIN hot b USING (k);",
	# without a slow row now and then these would be over too soon
	'cancel in a build' => "SET statement_timeout = '60ms'; SELECT count(*) FROM hot h WHERE h.v IN (SELECT v FROM fact WHERE v % 500 <> 7 OR slow(v) > 0 OFFSET 0);",
	'cancel in a probe' => "SET statement_timeout = '60ms'; $good WHERE f.v % 500 <> 7 OR slow(f.v) > 0;",
	'error in a join filter' => "$failing{'a join filter'};",
	'error in a build key' => "$failing{'a build key'};",
	'error in a probe key' => "$failing{'a probe key'};",
	'error in the output' => "$failing{'the output'};",
	'a LIMIT that stops early' => 'SELECT f.v FROM fact f JOIN dim d USING (k) LIMIT 1;',
	'a cursor left open' => "BEGIN; DECLARE c CURSOR FOR SELECT f.v FROM fact f JOIN dim d USING (k); FETCH 5 FROM c; ROLLBACK;",
	'partitions stopped' => "SET work_mem = '1MB'; SELECT f.v FROM fact f LEFT JOIN dim d USING (k) LIMIT 1;");
for my $what (sort keys %stopped)
{
	keeps_nothing($node, $what, sql => $stopped{$what}, reset => 'RESET statement_timeout; RESET work_mem;',
		warm => 12, rounds => 50, stops => $what =~ /^(cancel|error)/ ? qr/statement timeout|division by zero/ : undef,
		good => $good, answer => $answer);
}

# ---- temp_file_limit and work_mem
my ($rc, $out, $err) = $node->psql('postgres',
	"$FORCED SET work_mem = '64kB'; SET temp_file_limit = '1MB';
	SELECT count(*), sum(f.v), sum(d.w) FROM fact f LEFT JOIN dim d USING (k);
	RESET temp_file_limit; RESET work_mem; $good", on_error_stop => 0);
like($err, qr/temporary file size exceeds "?temp_file_limit"?/, 'temp_file_limit holds for partitions');
like($out, qr/\Q$answer\E/, 'and the session goes on');
is( $node->safe_psql('postgres',
		"$FORCED SET work_mem = '1MB'; SELECT count(*), sum(f.v), sum(d.w) FROM fact f LEFT JOIN dim d USING (k)"),
	$answer, 'partitions give the right answer');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), 0, 'no temporary file is left');

unlike(slurp_file($node->logfile), qr/PANIC|TRAP|was terminated by signal|leak/,
	'the server log knows no crash and no leak');
$node->stop;
done_testing();
