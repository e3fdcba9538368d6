# Faults at every place where one can come (src/base/faults.c): of the events of a
# kind that a query has, each in turn (or many of them, evenly spread) fails.  The
# query then ends with the error that this kind has, or has the right answer;
# nothing is left behind, the session goes on, and others notice nothing.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../t";
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Events of a query and kind that fail, at most.
my $most = $ENV{HGJ_FAULTS} || 24;

my $fake = "$FindBin::Bin/../fake/fake.so";
my $node = new_server('main', "work_mem = '64kB'", 'hash_mem_multiplier = 1', 'max_parallel_workers_per_gather = 0',
	'restart_after_crash = on', "shared_preload_libraries = 'hashgraph_join'", 'log_min_messages = warning', 'log_error_verbosity = terse');

$node->safe_psql(
	'postgres', q{
	CREATE TABLE fact AS SELECT i % 3500 AS k, i AS v, 'text ' || i % 3500 AS t, i % 5 AS g FROM generate_series(0, 4999) i;
	CREATE TABLE dim AS SELECT i AS k, i * 3 AS w, 'text ' || i AS t, i % 7 AS g FROM generate_series(0, 2999) i;
	INSERT INTO fact SELECT NULL, -i, NULL, 1 FROM generate_series(1, 20) i;
	INSERT INTO dim SELECT NULL, -i, NULL, 1 FROM generate_series(1, 20) i;
	CREATE TABLE hot AS SELECT CASE WHEN i % 10 = 0 THEN i ELSE 1 END AS k, i AS v FROM generate_series(1, 3000) i;
	CREATE TABLE few AS SELECT i AS k, i AS v FROM generate_series(1, 40) i;
	VACUUM ANALYZE fact, dim, hot, few;
	-- the answer, even if it takes a second try in the same transaction
	CREATE FUNCTION in_spite_of(sql text) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE answer text;
	BEGIN
		BEGIN
			EXECUTE sql INTO answer;
		EXCEPTION WHEN query_canceled OR OTHERS THEN
			EXECUTE sql INTO answer;
		END;
		RETURN answer;
	END $$;
	CREATE FUNCTION explained(sql text) RETURNS boolean LANGUAGE plpgsql AS $$
	DECLARE plan json;
	BEGIN
		EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || sql INTO plan;
		RETURN json_array_length(plan) = 1;
	END $$;
	-- half of the rows of a cursor, whose subtransaction may go, then all of another's
	CREATE FUNCTION by_cursor(sql text) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE c refcursor; r record; n bigint := 0;
	BEGIN
		BEGIN
			OPEN c FOR EXECUTE sql;
			MOVE FORWARD 100 IN c;
			RAISE EXCEPTION 'enough';
		EXCEPTION WHEN raise_exception THEN NULL;
		END;
		OPEN c FOR EXECUTE sql;
		LOOP
			FETCH c INTO r;
			EXIT WHEN NOT FOUND;
			n := n + 1;
			BEGIN
				PERFORM 1 / (n - 150);
			EXCEPTION WHEN division_by_zero THEN NULL;
			END;
		END LOOP;
		CLOSE c;
		RETURN n;
	END $$;
});

my $sums = 'count(*), sum(f.v), sum(d.w), count(d.t)';
my $cuda = "SET hashgraph_join.engine = cuda; SET hashgraph_join.cuda_library = '$fake';";
my $workers = 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;';
# what workers share is to outweigh what each of them does
my $shared = 'SET hashgraph_join.parallel_build = shared; SET hashgraph_join.probe_tuple_cost = 1; SET hashgraph_join.build_tuple_cost = 0;';
my $exchange = 'SET hashgraph_join.parallel_aggregate = exchange; SET hashgraph_join.agg_tuple_cost = 1; SET hashgraph_join.build_tuple_cost = 0;';
my $rows = 'SET hashgraph_join.aggregate = off;';
my $digest = sub { return "SELECT count(*), sum(hashtext(x::text)::bigint) FROM ($_[0] OFFSET 0) x" };
# name => [ settings, query, what its EXPLAIN ANALYZE must say, the same query for PostgreSQL ]
my %query = (
	'inner' => [ '', "SELECT $sums FROM fact f JOIN dim d USING (k)", qr/Partitions: \d/ ],
	'inner, rows' => [ $rows, "SELECT $sums FROM fact f JOIN dim d USING (k)", qr/Partitions: \d/ ],
	'in memory' => [ "SET work_mem = '8MB';", "SELECT $sums FROM fact f JOIN dim d USING (k)", qr/Build: / ],
	'text keys' => [ $rows, $digest->('SELECT f.v, d.w, d.t FROM fact f JOIN dim d USING (t)'), qr/Partitions: \d/ ],
	'left, residual' => [ $rows, $digest->('SELECT f.v, d.w FROM fact f LEFT JOIN dim d ON f.k = d.k AND f.v % 3 <> d.g'), qr/Partitions: \d/ ],
	'right' => [ $rows, $digest->('SELECT f.v, d.w, d.t FROM fact f RIGHT JOIN dim d ON f.k = d.k AND f.v > 4000'), qr/Partitions: \d/ ],
	'full' => [ $rows, $digest->('SELECT f.v, f.t, d.w, d.t AS u FROM fact f FULL JOIN dim d USING (k)'), qr/Partitions: \d/ ],
	'semi' => [ $rows, $digest->('SELECT f.v FROM fact f WHERE EXISTS (SELECT 1 FROM dim d WHERE d.t = f.t AND d.w <> f.v)'), qr/Partitions: \d/ ],
	'anti' => [ $rows, $digest->('SELECT f.v FROM fact f WHERE NOT EXISTS (SELECT 1 FROM dim d WHERE d.t = f.t AND d.w <> f.v)'), qr/Partitions: \d/ ],
	'passes' => [ "$rows SET hashgraph_join.spill = passes;", $digest->('SELECT f.v, d.w FROM fact f FULL JOIN dim d USING (k)'), qr/Passes: \d/ ],
	'match bits on file' => [ "$rows SET hashgraph_join.spill = passes; SET hashgraph_join.chunk_outer_rows = 500;",
		$digest->('SELECT f.v, d.w FROM fact f LEFT JOIN dim d USING (k)'), qr/Spilled Match Bits: [1-9]/ ],
	'a hot key' => [ '', 'SELECT count(*), sum(a.v), sum(b.v) FROM fact a LEFT JOIN hot b USING (k)', qr/(Passes|Partitions): \d/ ],
	'partitions of partitions' => [ 'SET hashgraph_join.chunk_rows = 40; SET hashgraph_join.spill = partitions;', "SELECT $sums FROM fact f LEFT JOIN dim d USING (k)", qr/Partitions: \d\d/ ],
	'a star' => [ '', "SELECT d.g, e.g, $sums FROM fact f JOIN dim d ON f.k = d.k LEFT JOIN dim e ON f.t = e.t GROUP BY 1, 2 ORDER BY 1, 2", qr/Partitions: \d/ ],
	'groups' => [ '', $digest->('SELECT f.v, d.t, count(*), sum(f.v::numeric), avg(d.w), max(d.t) FROM fact f JOIN dim d USING (k) GROUP BY 1, 2'), qr/HashGraphAgg.*Spilled Rows/s ],
	'encoded groups' => [ "SET work_mem = '8MB'; SET hashgraph_join.require = 'aggregate';", $digest->('SELECT d.t, count(*), sum(f.v) FROM fact f JOIN dim d USING (k) GROUP BY 1'), qr/HashGraphAgg/ ],
	'a table, groups' => [ '', $digest->('SELECT v, t || g AS u, count(*), sum(v::numeric), max(t) FROM fact GROUP BY 1, 2'), qr/HashGraphAgg.*Source: pages.*Spilled Rows/s ],
	'a table, keys by row' => [ "SET work_mem = '8MB';", $digest->("SELECT format('%s', t) AS u, k % 7 AS m, count(*), min(t), sum(v) FROM fact WHERE format('%s', v) <> '17' GROUP BY 1, 2"), qr/HashGraphAgg.*Filter by Row/s ],
	'a table, by tuples' => [ 'SET hashgraph_join.source = tuples;', $digest->('SELECT t, count(*), sum(v) FROM fact GROUP BY 1'), qr/HashGraphAgg.*Source: tuples/s ],
	'tables' => [ '', $digest->('SELECT t, count(*), sum(v) FROM (SELECT t, v FROM fact UNION ALL SELECT t, w FROM dim) x GROUP BY 1'), qr/HashGraphAgg.*Inputs by Batches: 2.*Spilled Rows/s ],
	'rescans of a table' => [ '', 'SELECT x.i, y.* FROM generate_series(1, 2) AS x(i), LATERAL (SELECT count(*), sum(n) FROM (SELECT t, count(*) AS n FROM fact WHERE v > x.i GROUP BY 1 HAVING count(*) > 0 OFFSET 0) z) y', qr/HashGraphAgg.*Source: pages/s ],
	'workers, a table' => [ "$workers SET hashgraph_join.agg_tuple_cost = 1;", $digest->('SELECT t, count(*), sum(v) FROM fact GROUP BY 1'), qr/Gather.*HashGraphAgg.*Source: pages/s ],
	'tuples' => [ "SET hashgraph_join.source = tuples;", "SELECT $sums FROM fact f FULL JOIN dim d USING (t)", qr/Partitions: \d/ ],
	'rescans' => [ '', 'SELECT x.i, (SELECT count(f.v) FROM fact f RIGHT JOIN dim d USING (k) WHERE d.w > x.i) FROM generate_series(1, 3) AS x(i)', qr/HashGraphJoin/ ],
	'rescans of partitions' => [ $rows, 'SELECT x.i, (SELECT count(*) FROM (SELECT * FROM fact WHERE v <> x.i OFFSET 0) f FULL JOIN dim d USING (k)) FROM generate_series(1, 3) AS x(i)',
		qr/Spilled Inner: [1-9].*Scan on dim d \(actual rows=[\d.]+ loops=1\)/s ],
	'rescans stopped early' => [ $rows, 'SELECT x.i, (SELECT f.v + d.k * 0 FROM fact f JOIN dim d ON f.k = d.k AND f.v = x.i * 900 LIMIT 1) FROM generate_series(0, 4) AS x(i)',
		qr/Spilled Inner: [1-9].*loops=1\)/s ],
	'rescans of groups' => [ '', 'SELECT x.i, y.* FROM generate_series(1, 2) AS x(i), LATERAL (SELECT count(*), sum(n) FROM (SELECT f.v, count(*) + x.i * 0 AS n FROM fact f JOIN dim d USING (k) GROUP BY 1 HAVING count(*) > 0 OFFSET 0) z) y', qr/HashGraphAgg/ ],
	'caught' => [ '', "SELECT in_spite_of('SELECT count(*) || '' '' || sum(f.v) || '' '' || sum(d.w) FROM fact f LEFT JOIN dim d USING (k)')", undef ],
	'cursors' => [ $rows, "SELECT by_cursor('SELECT f.v, d.t FROM fact f FULL JOIN dim d USING (k)')", undef ],
	'a limit' => [ $rows, 'SELECT count(*) FROM (SELECT f.v, d.t FROM fact f LEFT JOIN dim d USING (k) LIMIT 700) x', qr/HashGraphJoin/ ],
	'explained' => [ '', "SELECT explained('SELECT d.t, count(*) FROM fact f LEFT JOIN dim d USING (k) GROUP BY 1')", undef ],
	'prepared' => [ "SET plan_cache_mode = force_generic_plan; PREPARE p(int) AS SELECT $sums FROM fact f LEFT JOIN dim d ON f.k = d.k AND d.w <> \$1;",
		'EXECUTE p(300)', qr/Partitions: \d/, "SELECT $sums FROM fact f LEFT JOIN dim d ON f.k = d.k AND d.w <> 300" ],
	'workers' => [ "$workers SET work_mem = '8MB';", "SELECT $sums FROM fact f JOIN dim d USING (k)", qr/Gather/ ],
	'workers, rows' => [ "$workers $rows", "SELECT $sums FROM fact f LEFT JOIN dim d USING (k)", qr/Gather/ ],
	'workers, a shared build' => [ "$workers $shared $rows SET work_mem = '8MB';", "SELECT $sums, max(d.t) FROM fact f FULL JOIN dim d USING (k)", qr/Build Side: shared/ ],
	'workers, shared codes' => [ "$workers $shared SET work_mem = '8MB';", $digest->('SELECT d.t, count(*), sum(f.v) FROM fact f JOIN dim d USING (k) GROUP BY 1'), qr/HashGraphAgg.*Build Side: shared/s ],
	'workers, shared and spilled' => [ "$workers $shared $rows", "SELECT $sums, max(d.t) FROM fact f LEFT JOIN dim d USING (k)", qr/private builds/ ],
	'workers, one for all' => [ "$workers $shared $rows", "SELECT $sums, max(d.t) FROM fact f FULL JOIN dim d USING (k)", qr/private builds/ ],
	'workers, groups exchanged' => [ "$workers $exchange SET work_mem = '8MB';", $digest->('SELECT f.v, d.t, count(*), sum(f.v::numeric), max(d.t) FROM fact f JOIN dim d USING (k) GROUP BY 1, 2'), qr/Exchange: groups/ ],
	'workers, groups exchanged on file' => [ "$workers $exchange", $digest->('SELECT f.v, d.t, count(*), sum(f.v::numeric), max(d.t) FROM fact f JOIN dim d USING (k) GROUP BY 1, 2'), qr/Exchanged Groups: \d+  Memory: \d+kB  Disk: [1-9]/ ],
	'device' => [ $cuda, "SELECT $sums FROM fact f LEFT JOIN dim d USING (k)", qr/Engine: cuda/ ],
	'device, what the host makes' => [ "$cuda SET work_mem = '8MB';",
		$digest->("SELECT d.t, f.t, coalesce(length(d.t), -1), count(*), sum(f.v) FROM fact f LEFT JOIN dim d ON f.k = d.k AND d.t LIKE '%1%' GROUP BY 1, 2, 3"), qr/Device Pipeline: yes\n\s+Columns by Host: [1-9]/ ],
	'device, a table' => [ "$cuda SET work_mem = '8MB';", $digest->('SELECT t, length(t), count(*), sum(v) FROM fact WHERE v > 10 GROUP BY 1, 2'), qr/Device Pipeline: yes.*Columns by Host: [1-9]/s ]);

my %kind = (memory => qr/^(00000|53200)$/, palloc => qr/^(00000|53200)$/, file => qr/^(00000|53100)$/, cancel => qr/^(00000|57014)$/);
my $forced = "$FORCED SET hashgraph_join.require = off;";
my $good = 'SELECT count(*), sum(f.v), sum(d.w) FROM fact f LEFT JOIN dim d USING (k)';
my $answer = $node->safe_psql('postgres', $good);
my %stock = map { $_ => $node->safe_psql('postgres', $query{$_}[3] // $query{$_}[1]) } keys %query;

my $beside = neighbour($node, "$forced SET work_mem = '8MB';", "SELECT count(*) || ' ' || sum(v) || ' ' || sum(w) FROM fact JOIN dim USING (k)");

# Which events fail.
sub points
{
	my ($events) = @_;
	return 1 .. $events if $events <= $most;
	my %at = map { (1 + int($_ * ($events - 1) / ($most - 1))) => 1 } 0 .. $most - 1;
	return sort { $a <=> $b } keys %at;
}

# psql's output for events of a kind, in one session: for each
# [ SQLSTATE, answer, bytes left, files left ].
sub sweep
{
	my ($q, $kind, @at) = @_;
	my ($settings, $sql) = @{ $query{$q} };
	my $script = "$forced $settings $sql;\n\\echo @@@ 0\nSET hashgraph_join.debug_fault = $kind;\n";
	for my $at (@at)
	{
		$script .= "SET hashgraph_join.debug_fault_at = $at;\n$sql;\n\\echo @ :SQLSTATE\n"
		  . "SHOW hashgraph_join.debug_fault_events; SET hashgraph_join.debug_fault_at = 0;\n"
		  . "SHOW hashgraph_join.debug_memory; SELECT count(*) FROM pg_ls_tmpdir();\n"
		  . "SELECT sum(total_bytes) FROM pg_backend_memory_contexts;\n\\echo @@@ $at\n";
	}
	my ($rc, $out, $err) = $node->psql('postgres', "$script $good;", on_error_stop => 0, timeout => $PostgreSQL::Test::Utils::timeout_default);
	my @parts = split /^@@@ \d+\n/m, $out;
	my $last = pop @parts;
	shift @parts;
	return ([ map { [ /^(.*?)\n?@ (\w+)\n(\d+)\n(\d+)\n(\d+)\n(\d+)\n$/s ] } @parts ], $last, $err);
}

for my $q (sort keys %query)
{
	my ($settings, $sql, $plan) = @{ $query{$q} };
	like($node->safe_psql('postgres', "$forced $settings EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $sql"), $plan, "$q: the plan") if $plan;
	for my $kind (sort keys %kind)
	{
		my ($counted) = sweep($q, $kind, 0);
		my $events = $counted->[0][2];
		is($counted->[0][0], $stock{$q}, "$q, $kind: the answer without a fault");
		next unless $events;
		my @at = points($events);
		my ($results, $last, $err) = sweep($q, $kind, @at);
		my ($bad, $errors, $most_bytes) = (0, 0, 0);
		is(scalar @$results, scalar @at, "$q, $kind: the session lives through all of it") or diag($err);
		for my $i (0 .. $#$results)
		{
			my ($out, $state, undef, $bytes, $files) = @{ $results->[$i] };
			my $failed = ($state // '') ne '00000';
			next if defined $state && $state =~ $kind{$kind} && ($failed ? $out eq '' : $out eq $stock{$q})
			  && $bytes == 0 && $files == 0 && ++$errors >= 0 && ($errors -= !$failed) >= 0;
			diag("$q, $kind $at[$i] of $events: " . join(' / ', map { $_ // 'undef' } @{ $results->[$i] }));
			$bad++;
		}
		is($bad, 0, "$q, $kind: an error of its own or the answer, and nothing left ($errors errors at " . @at . " of $events events)");
		is($last, $answer, "$q, $kind: the session then joins rightly");
		unlike($err, qr/WARNING|server closed/, "$q, $kind: no warning");
		my ($early, $late) = map { $results->[$_][5] } int($#$results / 2), $#$results;
		cmp_ok($late, '<=', $early + 512 * 1024, "$q, $kind: contexts do not grow") if @at >= 10;
	}
}

# ---- the end of the session
for my $q ('left, residual', 'full', 'groups', 'a star', 'workers, rows', 'workers, a shared build', 'workers, shared codes', 'workers, shared and spilled', 'workers, one for all')
{
	my ($counted) = sweep($q, 'cancel', 0);
	my $events = $counted->[0][2];
	for my $at (map { 1 + int($_ * $events / 7) } 0 .. 6)
	{
		my ($rc, $out, $err) = $node->psql('postgres',
			"$forced $query{$q}[0] SET hashgraph_join.debug_fault = terminate; SET hashgraph_join.debug_fault_at = $at; $query{$q}[1]", on_error_stop => 0);
		my $ended = $err =~ /terminating (connection|background worker)|connection to client lost|parallel worker/;
		# how many events a process has that shares the work is another number each time
		ok($ended || ($q =~ /^workers/ && $err eq '' && $out eq $stock{$q}), "$q, terminated at $at of $events") or diag("$out / $err");
	}
	$node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_ls_tmpdir()');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), 0, "$q, terminated: no file is left");
}

# ---- nobody has noticed
neighbour_ends($beside);
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|was terminated by signal|leak|WARNING|problem in alloc|write past/, 'the server log knows no crash, leak or warning');

# ---- superusers only may ask for faults: a crash is everybody's
$node->safe_psql('postgres', 'CREATE ROLE other LOGIN');
fails_with($node, "SET hashgraph_join.$_", qr/permission denied to set parameter "hashgraph_join\.debug_fault/, "$_ by others", extra_params => [ '-U', 'other' ])
  for 'debug_fault = crash', 'debug_fault_at = 1';

# ---- a crash with files open
for my $q ('full', 'groups', 'workers, shared and spilled', 'workers, groups exchanged on file')
{
	my ($counted) = sweep($q, 'file', 0);
	my $events = $counted->[0][2];
	# how many there are differs a little: it depends on hashes, whose seeds are random
	my @at = $q =~ /^workers/ ? (1, 10, 100) : (2, int($events / 2), int($events * 0.9));
	for my $at (@at)
	{
		my $log = -s $node->logfile;
		my $rc = 0;
		# Of processes that share the work one may get so little of it that it has no such
		# event, and the others have finished by then: the query is asked again.
		for (1 .. ($q =~ /^workers/ ? 20 : 1))
		{
			($rc, my $out, my $err) = $node->psql('postgres',
				"$forced $query{$q}[0] SET hashgraph_join.debug_fault = crash; SET hashgraph_join.debug_fault_at = $at; $query{$q}[1]", on_error_stop => 0);
			last if $rc;
			is($out, $stock{$q}, "$q, no crash at $at: the answer");
		}
		isnt($rc, 0, "$q, a crash at $at of $events");
		$node->wait_for_log(qr/ready to accept connections/, $log);
		is($node->safe_psql('postgres', "SELECT count(*) FROM pg_ls_tmpdir(); $forced $query{$q}[0] $query{$q}[1]"),
			"0\n$stock{$q}", "$q, a crash at $at of $events: no file, and the answer after the restart");
	}
}
$node->stop;
done_testing();
