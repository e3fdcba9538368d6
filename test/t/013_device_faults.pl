# A device that is lost, or has no memory, at any call: in the second partition,
# between passes, in rescans, below aggregates, with a cursor open.  (test/fake
# stands in for it; 008_engines.pl has the faults of single calls.)
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Which of the engine's calls fail; HGJ_FAULTS=500: each up to that one.
my @at = $ENV{HGJ_FAULTS} ? 1 .. $ENV{HGJ_FAULTS} : (1 .. 8, map { int(11 * 1.6**$_) } 0 .. 9);

my $library = "$FindBin::Bin/../fake/fake.so";
my $node = new_server('main', 'max_parallel_workers_per_gather = 0', "work_mem = '64kB'", 'hash_mem_multiplier = 1', 'log_error_verbosity = terse');
$node->safe_psql(
	'postgres', q{
	CREATE TABLE fact AS SELECT i % 7000 AS k, i AS v, 'text ' || i % 7000 AS t FROM generate_series(0, 9999) i;
	CREATE TABLE dim AS SELECT i AS k, i * 3 AS w, 'text ' || i AS t, i % 7 AS g FROM generate_series(0, 5999) i;
	INSERT INTO fact SELECT NULL, -i, NULL FROM generate_series(1, 20) i;
	CREATE TABLE hot AS SELECT CASE WHEN i % 10 = 0 THEN i ELSE 1 END AS k, i AS v FROM generate_series(1, 5000) i;
	VACUUM ANALYZE fact, dim, hot;
});
my $faults = $node->data_dir . '/hgj_fake_engine';
sub faults { fake_faults($node, @_); return; }
faults();

my $device = "$FORCED SET hashgraph_join.require = off; SET hashgraph_join.engine = cuda; SET hashgraph_join.cuda_library = '$library';";
my $rows = 'SET hashgraph_join.aggregate = off;';
my $digest = sub { return "SELECT count(*), sum(hashtext(x::text)::bigint) FROM ($_[0]) x" };
# [ settings, query, what its EXPLAIN ANALYZE must say ]
my %query = (
	'partitions' => [ $rows, $digest->('SELECT f.v, d.w, d.t FROM fact f LEFT JOIN dim d USING (k)'), qr/Partitions: \d/ ],
	'partitions, text' => [ $rows, $digest->('SELECT f.v, d.w, d.t FROM fact f FULL JOIN dim d USING (t)'), qr/Partitions: \d/ ],
	'partitions of partitions' => [ "$rows SET hashgraph_join.chunk_rows = 300; SET hashgraph_join.spill = partitions;",
		$digest->('SELECT f.v, d.w FROM fact f RIGHT JOIN dim d ON f.k = d.k AND f.v % 5 <> d.g'), qr/Partitions: \d\d/ ],
	'passes' => [ "$rows SET hashgraph_join.chunk_rows = 1500; SET hashgraph_join.spill = passes;", $digest->('SELECT f.v, d.w FROM fact f LEFT JOIN dim d USING (k)'), qr/Passes: \d/ ],
	'passes, anti' => [ "$rows SET hashgraph_join.chunk_rows = 1500; SET hashgraph_join.spill = passes;",
		$digest->('SELECT f.v FROM fact f WHERE NOT EXISTS (SELECT 1 FROM dim d WHERE d.k = f.k AND d.w % 7 <> 3)'), qr/Passes: \d/ ],
	'a hot key' => [ 'SET hashgraph_join.chunk_rows = 800;', 'SELECT count(*), sum(f.v), sum(h.v) FROM fact f LEFT JOIN hot h USING (k)', qr/Partitions: \d/ ],
	'groups' => [ '', $digest->('SELECT f.k, d.t, count(*), sum(f.v) FROM fact f JOIN dim d USING (k) GROUP BY 1, 2'), qr/HashGraphAgg.*Partitions: \d/s ],
	'a star' => [ '', 'SELECT d.g, count(*), sum(e.w) FROM fact f JOIN dim d ON f.k = d.k LEFT JOIN dim e ON f.t = e.t GROUP BY 1 ORDER BY 1', qr/Partitions: \d/ ],
	'rescans' => [ $rows, 'SELECT x.i, (SELECT count(f.v) FROM fact f FULL JOIN dim d USING (k) WHERE f.v IS NULL OR d.w > x.i) FROM generate_series(1, 3) AS x(i)', undef ],
	'a cursor' => [ '', 'SELECT by_cursor()', undef ]);
$node->safe_psql('postgres', q{
	CREATE FUNCTION by_cursor() RETURNS text LANGUAGE plpgsql AS $$
	DECLARE c CURSOR FOR SELECT f.v, d.t FROM fact f LEFT JOIN dim d USING (k); r record; n bigint := 0; s bigint := 0;
	BEGIN
		OPEN c;
		LOOP FETCH c INTO r; EXIT WHEN NOT FOUND; n := n + 1; s := s + r.v + coalesce(hashtext(r.t), 0); END LOOP;
		CLOSE c; RETURN n || ' ' || s;
	END $$});
my %stock = map { $_ => $node->safe_psql('postgres', $query{$_}[1]) } keys %query;
my $good = 'SELECT count(*), sum(f.v), sum(d.w) FROM fact f LEFT JOIN dim d USING (k)';
my $answer = $node->safe_psql('postgres', $good);
my $refused = qr/ERROR:  (the device of a HashGraphJoin failed|out of memory|a HashGraphJoin passed a limit of its cuda engine)\n/;
my $beside = neighbour($node, "$FORCED SET hashgraph_join.require = off; SET work_mem = '8MB';", "SELECT count(*) || ' ' || sum(v) || ' ' || sum(w) FROM fact JOIN dim USING (k)");

for my $q (sort keys %query)
{
	my ($settings, $sql, $plan) = @{ $query{$q} };
	faults();
	if ($plan)
	{
		my $text = $node->safe_psql('postgres', "$device $settings EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $sql");
		like($text, $plan, "$q: the plan");
		like($text, qr/Engine: cuda/, "$q: on the device");
	}
	for my $what ('lost', 'memory')
	{
		my ($right, $errors, $wrong) = (0, 0, 0);
		for my $nth (@at)
		{
			faults("any $nth $what");
			my ($rc, $out, $err) = $node->psql('postgres', "$device $settings $sql;\n\\echo @\n\\! rm $faults\nRESET hashgraph_join.chunk_rows; $good; SELECT count(*) FROM pg_ls_tmpdir() WHERE name LIKE '%.' || pg_backend_pid() || '.%';", on_error_stop => 0);
			my ($first, $second) = split /^@\n/m, $out;
			my $failed = $err =~ /ERROR/;
			if (!$failed && $first eq "$stock{$q}\n") { $right++; }
			elsif ($failed && $first eq '' && $err =~ $refused && $err !~ /WARNING|closed/) { $errors++; }
			else { $wrong++; diag("$q, $what at $nth: $out $err"); }
			next if $second eq "$answer\n0";
			$wrong++;
			diag("$q, $what at $nth, the next query: $out $err");
		}
		is($wrong, 0, "$q, $what: the answer or a clear error, and the session goes on ($right answers, $errors errors)");
		cmp_ok($right, '>', 5, "$q, $what: the answer where it can be had");
	}
	# a device that hangs can be left
	for my $nth (3, 40)
	{
		faults("any $nth hang");
		my ($rc, $out, $err) = $node->psql('postgres', "$device $settings SET statement_timeout = '300ms'; $sql;\n\\! rm $faults\nRESET statement_timeout; $good", on_error_stop => 0);
		like($err, qr/^psql:<stdin>:1: ERROR:  canceling statement due to statement timeout$/m, "$q, hangs at $nth: cancelled");
		like($out, qr/\Q$answer\E/, "$q, hangs at $nth: the session goes on");
	}
}
faults();
neighbour_ends($beside);
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), 0, 'no file is left');
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|was terminated by signal|leak|WARNING/, 'the server log knows no crash, leak or warning');
$node->stop;
done_testing();
