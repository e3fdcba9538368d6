# Rows that are returned by joins over columns kept in memory: the device looks at all of them,
# and the host at those that come out (src/pipeline/device_rows_kept.c, src/scan/chosen_rows.c).
# Right rows whatever is kept of what the joins want, after every kind of write, beside a
# snapshot that is older, where few or many come out, once or often, and where the device
# fails or takes none.  test/fake stands in for the GPU.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server(
	'main', "shared_preload_libraries = 'hashgraph_join'", 'hashgraph_join.gpu_server = auto', "hashgraph_join.cuda_library = '$FindBin::Bin/../fake/fake.so'",
	'max_parallel_workers_per_gather = 0', "work_mem = '64MB'", 'log_error_verbosity = terse', 'hashgraph_join.column_loading = off',
	"hashgraph_join.column_memory = '64MB'", 'synchronous_commit = on', 'hashgraph_join.aggregate = off', 'hashgraph_join.device_side_rows = 0');
$node->safe_psql(
	'postgres', q{
	CREATE TABLE f (k int, g smallint, v bigint, n numeric(10,2), t text, u text, w name, z int, pad char(160));
	INSERT INTO f SELECT i % 1000, CASE WHEN i % 11 > 0 THEN i % 7 - 3 END, i, ((i % 5000) / 4.0 - 300)::numeric(10,2),
		CASE WHEN i % 19 > 0 THEN 'text ' || i % 17 END, 'long ' || repeat(i::text, 1 + i % 9), 'name ' || i % 23, NULLIF(i % 29, 7), ''
		FROM generate_series(1, 60000) i;
	CREATE TABLE d AS SELECT i AS k, i % 10 AS h, 'name ' || i AS t FROM generate_series(1, 800) i;
	CREATE TABLE e AS SELECT i AS g, i * 100 AS w FROM generate_series(-3, 2) i;
	CREATE TABLE m AS SELECT i % 7 - 3 AS g, i AS o FROM generate_series(1, 30) i;
	CREATE FUNCTION held(v bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
		IF current_setting('hgj_test.held', true) IS NULL THEN
			PERFORM set_config('hgj_test.held', 'yes', false), pg_advisory_lock_shared(7), pg_advisory_unlock_shared(7);
		END IF;
		RETURN v;
	END $$;
	VACUUM ANALYZE f, d, e, m;
});

my $device = "$FORCED SET hashgraph_join.require = off; SET hashgraph_join.engine = cuda;";
my $stock = 'SET hashgraph_join.enabled = off;';
my %queries = (
	'one join' => 'SELECT f.v, f.n, f.t, f.u, d.t FROM f JOIN d USING (k) WHERE f.v BETWEEN 900 AND 2300 OR f.z = 28',
	'two joins' => 'SELECT f.v, f.w, d.h, e.w, f.tableoid::regclass FROM f JOIN d USING (k) JOIN e USING (g) WHERE f.n BETWEEN 100 AND 120.5',
	'all rows' => 'SELECT f.v, f.g, d.h, e.w FROM f LEFT JOIN d USING (k) LEFT JOIN e USING (g)',
	'left' => q{SELECT f.v, f.u, d.t FROM f LEFT JOIN d USING (k) WHERE f.z < 9},
	'several or none' => q{SELECT f.v, m.o FROM f LEFT JOIN m ON m.g = f.g AND m.o > f.z WHERE f.v BETWEEN 7000 AND 9000},
	'several each' => q{SELECT f.v, f.u, m.o, d.t FROM f JOIN m USING (g) JOIN d USING (k) WHERE f.t = 'text 5' AND m.o > f.z},
	'semi' => 'SELECT f.v, f.t, e.w FROM f JOIN e USING (g) WHERE f.v < 9000 AND EXISTS (SELECT FROM d WHERE d.k = f.k AND d.h < 4)',
	'anti' => 'SELECT f.v, f.z, f.n * 2 FROM f WHERE NOT EXISTS (SELECT FROM d WHERE d.k = f.k) AND f.g > 0',
	# its inner rows may raise errors: the join looks for an outer row before it reads them
	'looked at before' => 'SELECT f.v, f.u, s.x FROM f JOIN (SELECT k, sum(h::numeric) AS x FROM d GROUP BY k HAVING sum(h::numeric) > 8) s USING (k) WHERE f.v < 9000',
	'nothing' => 'SELECT f.v, d.t FROM f JOIN d USING (k) WHERE f.v < -1 AND f.g = 1',
	'clauses' => q{SELECT f.v, f.n, d.h FROM f JOIN d ON f.k = d.k AND f.z <> d.h LEFT JOIN e ON e.g = f.g WHERE f.t LIKE '%1_' AND coalesce(e.w, 7) <> 100});

# Decimals of two scales are not compared in a pipeline that returns rows: this one's overflow when some have left.
$node->safe_psql('postgres', q{
	CREATE TABLE x (k int, a numeric(18,0), b numeric(18,6));
	INSERT INTO x SELECT i % 6, CASE WHEN i > 1280000 THEN 900000000000000000 ELSE i END, i + 0.5 FROM generate_series(1, 1300000) i;
	CREATE TABLE y AS SELECT i % 6 AS k, i AS o FROM generate_series(1, 60) i;
	VACUUM ANALYZE x, y;
	SELECT hashgraph_join_load('x');
});
my $two_scales = 'SELECT count(*), sum(o) FROM (SELECT x.a, y.o FROM x JOIN y USING (k) WHERE x.a <> x.b OFFSET 0) q';
is($node->safe_psql('postgres', "$device $two_scales"), $node->safe_psql('postgres', "$stock $two_scales"), 'decimals of two scales, where few fit');

# All rows of some pages, and then every third: a batch that points into chunks has to end there.  It
# begins with a page if the batches before (of 64, 128, 256, 512, and 1024 rows) have all that is in front of it.
$node->safe_psql('postgres', q{
	CREATE TABLE p AS SELECT i AS v, i * 3 AS w, i % 7 AS s FROM generate_series(1, 200000) i;
	-- from PostgreSQL 16 on, tables grow by several pages, of which the last ones may stay empty
	VACUUM FULL p;
	CREATE TABLE q AS SELECT v, v % 1000 AS x FROM (SELECT v, (ctid::text::point)[0] - (SELECT (ctid::text::point)[0] FROM p WHERE v = 65537) AS page FROM p) p
		WHERE v <= 1984 OR page BETWEEN 1 AND 11 OR page BETWEEN 12 AND 100 AND v % 3 = 0;
	VACUUM ANALYZE p, q;
});
my $points = 'SELECT count(*), sum(w), sum(s), sum(x), md5(string_agg(w::text, $$,$$ ORDER BY v)) FROM (SELECT p.v, p.w, p.s, q.x FROM p LEFT JOIN q USING (v) WHERE q.x IS NOT NULL OFFSET 0) y';
sub points
{
	my ($how) = @_;
	for my $q ($points, $points =~ s/LEFT JOIN/JOIN/r)
	{
		is($node->safe_psql('postgres', "$device $q"), $node->safe_psql('postgres', "$stock $q"), "$how: all rows of pages, then some of them");
		like($node->safe_psql('postgres', "$device EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $q"), qr/Outer Source: columns \(100% of \d+ pages, on the device\)/, '... from the device');
	}
	return;
}

# Ok where each query's rows are PostgreSQL's, and so many percent (a pattern) were the device's.
sub all_right
{
	my ($what, $percent, @names) = @_;
	for my $name (@names ? @names : sort keys %queries)
	{
		my $q = "SELECT count(*), md5(string_agg(q::text, E'\\n' ORDER BY q::text COLLATE \"C\")) FROM ($queries{$name}) q";
		is($node->safe_psql('postgres', "$device $q"), $node->safe_psql('postgres', "$stock $q"), "$what: $name");
		my $plan = $node->safe_psql('postgres', "$device EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $q");
		my $kept = $plan =~ /Device Pipeline: yes/ ? ($plan =~ /Device Columns: (\d+)% \(\d+kB on the device\)/ ? $1 : 'none') : 'no pipeline';
		like($kept, qr/^(?:$percent)$/, "... with $kept") or diag($plan);
	}
	return;
}

# What EXPLAIN counts of the scan and the joins is what PostgreSQL counts.
sub counts_of
{
	my ($before, $q) = @_;
	my $plan = $node->safe_psql('postgres', "$before EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $q");
	my %rows = $plan =~ /Seq Scan on ([a-z]+) \(actual rows=(\d+)/g;
	my ($top) = $plan =~ /^\S.*actual rows=(\d+)/;
	my @removed = $plan =~ /Rows Removed by Filter: (\d+)/g;
	return "$top of " . join(', ', map { "$_ $rows{$_}" } sort keys %rows) . ", removed @removed";
}

# After a fault: the device does what it does without.
sub works_again
{
	fake_faults($node);
	wait_until('the device is back', sub { $node->safe_psql('postgres', "$device EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $queries{'two joins'}") =~ /Device Columns: 100%/ });
	return;
}

# The query's fallback, of its plan.
sub fallback
{
	my ($q) = @_;
	my $plan = $node->safe_psql('postgres', "$device EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $q");
	return $plan =~ /Device Columns: 100%/ ? 'none' : 'some';
}

sub load { my ($columns) = @_; $node->safe_psql('postgres', "SELECT hashgraph_join_unload('f'); SELECT hashgraph_join_load('f'" . ($columns ? ", '{$columns}'" : '') . ')'); return; }

for my $server ('auto', 'off')
{
	$node->append_conf('postgresql.conf', "hashgraph_join.gpu_server = $server");
	$node->restart;
	wait_for_device($node) if $server eq 'auto';
	fake_faults($node);
	my $how = $server eq 'auto' ? 'through the GPU process' : 'in the session';
	my @names = $server eq 'auto' ? sort keys %queries : ('two joins', 'left', 'several each');

	$node->safe_psql('postgres', 'VACUUM f');
	$node->safe_psql('postgres', "SELECT hashgraph_join_unload('f')");
	all_right("$how, nothing kept", 'none|no pipeline', 'one join', 'two joins');
	load();
	all_right("$how, all kept", '100');
	for my $name ('two joins', 'one join', 'all rows')
	{
		is(counts_of($device, $queries{$name}), counts_of($stock, $queries{$name}), "$how: what is counted of $name");
	}

	$node->safe_psql('postgres', "SELECT hashgraph_join_load('p')");
	points($how);

	# ---- what the joins want and is not kept, is fetched; what they look at has to be kept
	load('k,g,v,n,t,z');
	all_right("$how, some kept", '100', @names);
	like($node->safe_psql('postgres', "$device EXPLAIN (ANALYZE, COSTS OFF) $queries{'one join'}"), qr/Outer Source: columns \(100% of \d+ pages, \d+ fetched, on the device\)/, "$how: which are fetched");
	load('v,n,t');
	all_right("$how, no key kept", 'none|no pipeline', 'one join', 'two joins');

	# ---- pages that have changed, seen by a snapshot before and by one after
	load();
	my $before = $node->background_psql('postgres', on_error_stop => 0);
	$before->query_safe($device);
	my $many = "SELECT count(*), md5(string_agg(q::text, E'\\n' ORDER BY q::text COLLATE \"C\")) FROM ($queries{'two joins'}) q";
	my $answer = $node->safe_psql('postgres', "$stock $many");
	my $rows = $node->safe_psql('postgres', "$stock $queries{'two joins'} ORDER BY 1");
	$before->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; DECLARE c CURSOR FOR $queries{'two joins'}");
	my $first = $before->query_safe('FETCH 1 FROM c');
	# one that waits at its first row, while pages of a run change that it has not come to
	my $whole = 'SELECT count(*), sum(held(q.v)) AS held, sum(hashtext(q::text)::bigint) FROM (SELECT f.v, f.u, d.t FROM f LEFT JOIN d USING (k)) q';
	my $digest = $node->safe_psql('postgres', "$stock $whole");
	my $lock = $node->background_psql('postgres', on_error_stop => 0);
	$lock->query_safe('SELECT pg_advisory_lock(7)');
	my $waits = $node->background_psql('postgres', on_error_stop => 0);
	$waits->query_safe($device);
	$waits->query_until(qr/begun/, "\\echo begun\nCREATE TABLE held_$server AS $whole;\n");
	$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'advisory'}) or die 'nobody waits';
	$node->safe_psql('postgres', "UPDATE f SET g = -g, u = 'changed' WHERE v % 1500 = 1; DELETE FROM f WHERE v % 5000 = 7; INSERT INTO f SELECT * FROM f WHERE v % 900 = 5");
	is($before->query_safe($many), $answer, "$how: what an older snapshot sees");
	my $rest = $before->query_safe('FETCH ALL FROM c');
	$lock->query_safe('SELECT pg_advisory_unlock(7)');
	$lock->quit;
	$waits->quit;
	is($node->safe_psql('postgres', "TABLE held_$server"), $digest, "$how: and a query that had begun before");
	is(join("\n", sort { (split /\|/, $a)[0] <=> (split /\|/, $b)[0] } split /\n/, "$first\n$rest"), $rows, "$how: and its cursor");
	$before->query_safe('COMMIT');
	$before->quit;
	all_right("$how, some pages changed", '[1-9]\d?|100', @names);
	$node->safe_psql('postgres', 'VACUUM f');
	load('k,g');
	$node->safe_psql('postgres', 'UPDATE f SET v = v + 1 WHERE v % 1700 = 9');
	$node->safe_psql('postgres', "SELECT hashgraph_join_load('f', '{v,n,t,u,w,z}')");
	all_right("$how, chunks of different ages", '[1-9]\d?|100|none|no pipeline', 'two joins', 'left', 'several each', 'all rows');
	$node->safe_psql('postgres', 'VACUUM f');
	load();

	# ---- rescans, a part of the rows only, and writes
	for my $q ('SELECT x.i, y.* FROM generate_series(1, 5) x(i), LATERAL (SELECT f.v, f.u, d.t FROM f JOIN d USING (k) JOIN e USING (g) WHERE f.z = x.i AND f.v < 20000) y',
		'SELECT x.i, (SELECT sum(s.v) FROM (SELECT f.v FROM f JOIN d USING (k) WHERE f.z = x.i LIMIT 40) s) > 0 FROM generate_series(1, 9) x(i)')
	{
		is($node->safe_psql('postgres', "$device SET enable_memoize = off; SELECT md5(string_agg(q::text, ',' ORDER BY q::text COLLATE \"C\")) FROM ($q) q"),
			$node->safe_psql('postgres', "$stock SELECT md5(string_agg(q::text, ',' ORDER BY q::text COLLATE \"C\")) FROM ($q) q"), "$how: $q");
	}
	is($node->safe_psql('postgres', "$device SELECT count(*) FROM (SELECT f.v, d.t FROM f JOIN d USING (k) LIMIT 77) q"), 77, "$how: a LIMIT");
	is($node->safe_psql('postgres', "$device BEGIN; CREATE TEMP TABLE c AS SELECT f.v, f.u, d.t FROM f JOIN d USING (k) WHERE f.z = 3; UPDATE f SET u = d.t FROM d WHERE d.k = f.k AND f.z = 3; SELECT count(*) FILTER (WHERE f.u = c.t) = count(*) FROM f JOIN c USING (v) WHERE f.z = 3; ROLLBACK"), 't', "$how: an UPDATE");

	# ---- a device that fails
	$node->safe_psql('postgres', 'VACUUM f');
	load();
	for my $fault ($server eq 'auto' ? ('pipe_kept 1 lost', 'pipe_fetch 1 memory') : ('pipe_kept 1 memory', 'pipe_kept 1 lost', 'pipe_kept 1 unsupported', 'pipe_create 1 memory', 'pipe_start 1 lost', 'pipe_fetch 1 lost', 'pipe_fetch 1 memory', 'pipe_create 2 lost'))
	{
		for my $name ($server eq 'auto' ? 'two joins' : ('one join', 'two joins'))
		{
			my $q = "SELECT count(*), md5(string_agg(q::text, E'\\n' ORDER BY q::text COLLATE \"C\")) FROM ($queries{$name}) q";
			fake_faults($node, $fault);
			is($node->safe_psql('postgres', "$device $q"), $node->safe_psql('postgres', "$stock $q"), "$how: $fault, $name");
			works_again();
			fake_faults($node, $fault);
			is(fallback($queries{$name}), 'some', "$how: ... with that") if $fault !~ /create 2/;
			works_again();
		}
	}
	fake_faults($node, 'pipe_fetch 4 lost');
	my ($rc, $out, $err) = $node->psql('postgres', "$device $queries{'all rows'}");
	like($err, qr/ERROR:  the device of a HashGraphJoin failed/, "$how: rows that have left cannot be taken back");
	works_again();
}
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|leak/, 'nothing in the log');
$node->stop;
done_testing();
