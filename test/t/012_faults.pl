# Faults as machines have them: a disk that is full or cannot be read, limits of
# temporary files and of memory, timeouts, killed processes; each in every phase
# of joins and aggregates that spill.  (test/cassert/001_faults.pl lets calls fail
# one by one.)  The query ends with a clear error or has the right answer, nothing
# stays behind, the session goes on, and a neighbour notices nothing.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $disk = "$FindBin::Bin/../fake/disk.so";
ok(-r $disk, 'test/fake/build/disk.so has been made');

my $node;
{
	local $ENV{LD_PRELOAD} = $disk;
	# what is freed goes back at once, so that a limit of memory is felt early
	local $ENV{MALLOC_MMAP_THRESHOLD_} = 8192;
	local $ENV{MALLOC_TRIM_THRESHOLD_} = 0;
	$node = new_server('main', "work_mem = '256kB'", 'hash_mem_multiplier = 1', 'max_parallel_workers_per_gather = 0',
		"shared_buffers = '64MB'", 'log_error_verbosity = terse', 'restart_after_crash = on', 'log_statement = none');
}
my $data = $node->data_dir;
$node->safe_psql(
	'postgres', q{
	CREATE TABLE fact AS SELECT i % 25000 AS k, i AS v, 'text ' || i % 25000 AS t FROM generate_series(0, 39999) i;
	CREATE TABLE dim AS SELECT i AS k, i * 3 AS w, 'text ' || i AS t, i % 7 AS g FROM generate_series(0, 19999) i;
	CREATE TABLE hot AS SELECT CASE WHEN i % 10 = 0 THEN i ELSE 1 END AS k, i AS v FROM generate_series(1, 20000) i;
	VACUUM ANALYZE fact, dim, hot;
});

my $sums = 'count(*), sum(f.v), sum(d.w), count(d.t)';
my $rows = 'SET hashgraph_join.aggregate = off;';
# [ settings, query, what its EXPLAIN ANALYZE must say ]
my %query = (
	'left join' => [ '', "SELECT $sums FROM fact f LEFT JOIN dim d USING (k)", qr/Partitions: \d/ ],
	'full join, rows' => [ $rows, "SELECT $sums, count(f.t) FROM fact f FULL JOIN dim d USING (t)", qr/Partitions: \d/ ],
	'anti join' => [ $rows, 'SELECT count(*), sum(f.v) FROM fact f WHERE NOT EXISTS (SELECT 1 FROM dim d WHERE d.t = f.t AND d.w <> f.v)', qr/Partitions: \d/ ],
	'a hot key' => [ '', 'SELECT count(*), sum(f.v), sum(h.v) FROM fact f LEFT JOIN hot h USING (k)', qr/Partitions: \d/ ],
	'partitions of partitions' => [ 'SET hashgraph_join.chunk_rows = 300; SET hashgraph_join.spill = partitions;', "SELECT $sums FROM fact f RIGHT JOIN dim d USING (k)", qr/Partitions: \d\d/ ],
	'passes' => [ "$rows SET hashgraph_join.spill = passes;", "SELECT $sums FROM (SELECT * FROM fact OFFSET 0) f LEFT JOIN dim d USING (k)", qr/Passes: \d/ ],
	'groups' => [ '', 'SELECT count(*), sum(n), sum(s), max(t) FROM (SELECT f.v, d.t, count(*) AS n, sum(d.w::numeric) AS s FROM fact f JOIN dim d USING (k) GROUP BY 1, 2 OFFSET 0) x', qr/HashGraphAgg.*Spilled Rows/s ],
	'in memory' => [ "SET work_mem = '16MB';", "SELECT g, $sums FROM fact f LEFT JOIN dim d USING (k) GROUP BY 1 ORDER BY 1", qr/HashGraphAgg/ ]);
my $forced = "$FORCED SET hashgraph_join.require = off;";
my %stock = map { $_ => $node->safe_psql('postgres', $query{$_}[1]) } keys %query;
like($node->safe_psql('postgres', "$forced $query{$_}[0] EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query{$_}[1]"), $query{$_}[2], "$_: the plan")
  for sort keys %query;

my $beside = neighbour($node, "$forced SET work_mem = '8MB';", "SELECT count(*) || ' ' || sum(v) || ' ' || sum(w) FROM fact JOIN dim USING (k)");

# Ok when a query, run in one session under each of the faults, ends with the
# error $state or the answer, and both happen.
#
#   begin, end    what brings a fault, with its number for %s, and takes it away: psql
#   all           the last of the faults is none any more
sub sweep
{
	my ($what, $q, $state, $begin, $end, @faults) = @_;
	my ($settings, $sql, undef) = @{ $query{$q} };
	my $script = "$forced $settings SELECT pg_backend_pid() AS pid \\gset\n\\setenv PID :pid\n$sql;\n\\echo @@@\n";
	my $n = 0;
	for my $fault (@faults)
	{
		$script .= sprintf("$begin\n$sql;\n\\echo @ :SQLSTATE\n$end\n", $fault, ++$n)
		  . "SELECT count(*) FROM pg_ls_tmpdir(); SELECT sum(total_bytes) FROM pg_backend_memory_contexts;\n"
		  . "\\! awk '/RssAnon/ {print \$2}' /proc/\$PID/status\n\\echo @@@\n";
	}
	$script .= "$sql;\n";
	my ($rc, $out, $err) = $node->psql('postgres', $script, on_error_stop => 0, timeout => $PostgreSQL::Test::Utils::timeout_default);
	my @parts = split /^@@@\n/m, $out;
	my ($bad, $errors, @bytes, @anon) = (0, 0);
	is(scalar @parts, @faults + 2, "$what, $q: the session lives through all of it") or diag($err);
	is($parts[0], "$stock{$q}\n", "$what, $q: the answer before");
	is($parts[-1], $stock{$q}, "$what, $q: the answer afterwards");
	for my $i (0 .. $#faults)
	{
		my ($answer, $got, $files, $contexts, $kb) = ($parts[ $i + 1 ] // '') =~ /^(.*?)\n?@ (\w+)\n(\d+)\n(\d+)\n(\d+)\n$/s;
		push @bytes, $contexts // 0;
		push @anon, $kb // 0;
		$errors++ if ($got // '') eq $state;
		next if defined $got && $files == 0 && ($got eq '00000' ? $answer eq $stock{$q} : $got eq $state && $answer eq '');
		diag("$what, $q, $faults[$i]: $parts[ $i + 1 ]");
		$bad++;
	}
	is($bad, 0, "$what, $q: its error or the answer, and no file left (" . $errors . ' errors at ' . @faults . ' faults)');
	ok($errors > 0, "$what, $q: it came") if $q ne 'in memory';
	my $half = int(@faults / 2);
	cmp_ok($bytes[-1], '<=', $bytes[$half] + 512 * 1024, "$what, $q: contexts do not grow");
	cmp_ok($anon[-1], '<=', $anon[$half] + 8 * 1024, "$what, $q: nor does the process");
	unlike($err, qr/WARNING|server closed/, "$what, $q: no warning");
	return $errors;
}

# Numbers from a geometric series.
sub series
{
	my ($from, $to, $n) = @_;
	return map { int($from * ($to / $from)**($_ / ($n - 1))) } 0 .. $n - 1;
}

my $well = "\\! rm $data/hgj_disk.\$PID";
for my $q (sort grep { $_ ne 'in memory' } keys %query)
{
	# ---- the disk is full, from the first byte on or later; it cannot be read
	sweep('disk full', $q, '53100', "\\! echo write %s %s > $data/hgj_disk.\$PID", $well, 0, 5000, 8192, series(16384, 4e6, 9), 1e9);
	sweep('disk cannot be read', $q, '58030', "\\! echo read %s %s > $data/hgj_disk.\$PID", $well, 0, 8192, series(10000, 4e6, 7), 1e9);

	# ---- temp_file_limit
	sweep('temp_file_limit', $q, '53400', "SET temp_file_limit = '%skB';", 'RESET temp_file_limit;', 0, 8, series(16, 8000, 8), 1e6);
}

for my $q (sort keys %query)
{
	# ---- timeouts; what takes one away may come too late itself
	sweep('statement_timeout', $q, '57014', "SET statement_timeout = '%sms';", 'RESET statement_timeout;' x 6, 1 .. 6, 8, 10, 13, 17, 22, 28, 36, 46, 60, 80, 110, 150, 200);

	# ---- no memory: the process cannot take more data than it has and so much
	sweep('no memory', $q, '53200', "\\! prlimit --pid \$PID --data=\$((\$(awk '/VmData/ {print \$2}' /proc/\$PID/status) * 1024 + %s)):",
		"\\! prlimit --pid \$PID --data=unlimited:", 0, series(20000, 3e7, 16));
}

# ---- subtransactions and cursors
my $cursor = 'SELECT f.v, d.t FROM fact f FULL JOIN dim d USING (k)';
my $held = $node->safe_psql('postgres', "SELECT count(*) FROM ($cursor) x");
my ($rc, $out, $err) = $node->psql('postgres', qq{
	$forced BEGIN;
	DECLARE outside CURSOR FOR $cursor; MOVE 10000 IN outside;
	SAVEPOINT a; DECLARE inside CURSOR FOR $cursor; MOVE 10000 IN inside; MOVE 5000 IN outside; SELECT 1 / (count(*) - 1) FROM (SELECT 1) x;
	ROLLBACK TO a; MOVE 5000 IN outside;
	SAVEPOINT b; SET LOCAL statement_timeout = '5ms'; SELECT count(*) FROM ($cursor OFFSET 0) x WHERE pg_sleep(0.0001) IS NOT NULL; ROLLBACK TO b;
	SAVEPOINT c; SET LOCAL temp_file_limit = '300kB'; DECLARE limited CURSOR FOR $cursor; MOVE 30000 IN limited; ROLLBACK TO c;
	DECLARE held CURSOR WITH HOLD FOR $cursor; MOVE 100 IN held;
	SELECT count(*) > 0 FROM pg_ls_tmpdir();
	MOVE ALL IN outside; CLOSE outside; COMMIT;
	MOVE ALL IN held; CLOSE held; SELECT count(*) FROM pg_ls_tmpdir();
	BEGIN; DECLARE failing CURSOR WITH HOLD FOR SELECT 1 / (v - 30000) FROM ($cursor OFFSET 0) x; FETCH 1 FROM failing; COMMIT;
	SELECT count(*) FROM pg_ls_tmpdir(); SELECT count(*) FROM ($cursor) x;}, on_error_stop => 0, extra_params => [ '-a' ]);
like($err, qr/division by zero.*statement timeout.*temp_file_limit.*division by zero/s, 'savepoints: the errors');
like($out, qr/^t\n.*^0\n.*^0\n.*^$held\b/ms, 'savepoints: files while cursors are open, and none afterwards');
unlike($err, qr/WARNING/, 'savepoints: no warning');
$rows = $node->safe_psql('postgres', qq{$forced BEGIN; DECLARE outside CURSOR FOR $cursor; MOVE 10000 IN outside;
	SAVEPOINT a; MOVE 5000 IN outside; ROLLBACK TO a; CREATE TEMP TABLE got (v int, t text);
	DO \$\$ DECLARE c refcursor := 'outside'; r record; BEGIN LOOP FETCH c INTO r; EXIT WHEN NOT FOUND; INSERT INTO got VALUES (r.v, r.t);
	END LOOP; END \$\$; SELECT count(*) FROM got; COMMIT;});
is($rows, $held - 15000, 'savepoints: a cursor from outside goes on where it was');
is($node->safe_psql('postgres', qq{$forced
	DO \$\$ DECLARE n int := 0; m bigint; BEGIN
		FOR i IN 1 .. 12 LOOP
			BEGIN
				PERFORM set_config('temp_file_limit', (i * 100)::text, true);
				SELECT count(*) INTO m FROM ($cursor) x;
			EXCEPTION WHEN configuration_limit_exceeded THEN n := n + 1;
			END;
		END LOOP;
		PERFORM set_config('temp_file_limit', '-1', true);
		SELECT count(*) INTO m FROM ($cursor) x;
		PERFORM set_config('hgj.caught', (n > 3 AND m = $held)::text, false);
	END \$\$; SELECT current_setting('hgj.caught'), count(*) FROM pg_ls_tmpdir();}),
	'true|0', 'PL/pgSQL: errors are caught, and the answer comes in the same transaction');

# ---- the session is ended from outside
my $slow = 'SELECT count(*) FROM (SELECT * FROM fact WHERE v < 30000 OR pg_sleep(0.002) IS NOT NULL) f LEFT JOIN dim d USING (k)';
my %ended = ('the join' => $slow, 'the groups' => 'SELECT f.v, count(*), sum(d.w::numeric) FROM fact f JOIN dim d USING (k) GROUP BY 1 HAVING pg_sleep(0.002) IS NOT NULL');
sub begin_query
{
	my ($sql) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query_safe($forced);
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	$session->query_until(qr/running/, "\\echo running\n$sql;\n");
	$node->poll_query_until('postgres', 'SELECT count(*) > 0 FROM pg_ls_tmpdir()') or die 'no file';
	return ($session, $pid);
}
for my $what (sort keys %ended)
{
	my ($session, $pid) = begin_query($ended{$what});
	terminated($node, $pid);
	is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), 0, "$what, terminated: no file is left");
	eval { $session->quit };
}
neighbour_ends($beside);
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|was terminated by signal|leak|WARNING/, 'the server log knows no crash, leak or warning');

# ---- the process is killed, the server is shut down at once
for my $what (sort keys %ended)
{
	my ($session, $pid) = begin_query($ended{$what});
	my $log = -s $node->logfile;
	kill 'KILL', $pid;
	$node->wait_for_log(qr/ready to accept connections/, $log);
	eval { $session->quit };
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_ls_tmpdir(); $forced $query{'full join, rows'}[1]"), "0\n$stock{'full join, rows'}",
		"$what, killed: no file, and the answer after the restart");
	($session, $pid) = begin_query($ended{$what});
	$node->stop('immediate');
	eval { $session->quit };
	$node->start;
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_ls_tmpdir(); $forced $query{'full join, rows'}[1]"), "0\n$stock{'full join, rows'}",
		"$what, shut down at once: no file, and the answer after the start");
}
$node->stop;
done_testing();
