# Counters per database: several sessions, workers, databases, restarts and
# crashes; and what PostgreSQL itself counts and limits of our temporary files.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('main', "shared_preload_libraries = 'hashgraph_join, pg_stat_statements'", 'hashgraph_join.stats_databases = 3',
	'hashgraph_join.force = on', 'max_parallel_workers_per_gather = 0', "work_mem = '64MB'", 'max_connections = 30', 'log_temp_files = 0');
my $tables = q{
	CREATE TABLE a AS SELECT g AS k, g AS v, 'text ' || g AS t FROM generate_series(1, 20000) g;
	CREATE TABLE b AS SELECT g * 2 AS k, g AS v FROM generate_series(1, 5000) g;
	VACUUM ANALYZE a, b;
};
$node->safe_psql('postgres', $tables);
$node->safe_psql('postgres', 'CREATE EXTENSION pg_stat_statements');
my $join = 'SELECT a.t, b.v FROM a JOIN b USING (k)';

# Counters of a database, separated by bars.
sub counts
{
	my ($counters, $database, $on) = @_;
	$database //= 'postgres';
	return ($on // $node)->safe_psql('postgres', "SELECT $counters FROM hashgraph_join_stats() WHERE datname = '$database'");
}
sub reset_counts
{
	$node->safe_psql($_[0] // 'postgres', 'SELECT hashgraph_join_stats_reset()');
}

# ---- sessions count together
is(counts('shared, joins, stats_reset < now()'), 't|0|t', 'preloaded: shared, nothing counted yet');
$node->safe_psql('postgres', $join);
$node->safe_psql('postgres', "SELECT count(*), sum(v) FROM ($join) q");
my $all = 'joins, joins_cpu, joins_cuda, builds, inner_rows, outer_rows, rows_returned, aggregates, groups, joins_spilled';
is(counts($all), '2|2|0|2|10000|40000|10000|1|1|0', 'a third session sees what two others did');
my $before = counts('stats_reset');
reset_counts();
is(counts("$all, stats_reset > '$before', peak_memory_bytes"), '0|0|0|0|0|0|0|0|0|0|t|0', 'reset');

# ---- workers: each process counts its own part
my $parallel = 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;';
my $plan = $node->safe_psql('postgres', "$parallel EXPLAIN (ANALYZE, COSTS OFF) SELECT count(*) FROM a JOIN b USING (k)");
my ($launched) = $plan =~ /Workers Launched: (\d+)/;
my ($built) = $plan =~ /Workers Built: (\d+)/;
is($launched, 2, 'a parallel plan has its workers');
my ($joins, $workers, $inner, $outer, $returned) = split /\|/, counts('joins, joins_in_workers, inner_rows, outer_rows, rows_returned');
cmp_ok($workers, '>=', $built // 1, "workers have counted ($workers)");
cmp_ok($workers, '<=', 2, 'and no others');
cmp_ok($joins, '<=', 1 + $workers, 'each process once');
is("$inner|$outer|$returned", 5000 * $joins . '|20000|5000', 'outer rows and results once, inner rows in each process');

# ---- many at once add up
reset_counts();
my $script = $node->basedir . '/join.sql';
append_to_file($script, "SELECT count(*) FROM a JOIN b USING (k) WHERE a.v <= 1000;\n");
$node->command_ok([ 'pgbench', '-n', '-c', 8, '-j', 2, '-t', 40, '--file', $script, 'postgres' ], 'pgbench: eight sessions');
is(counts('joins, builds, inner_rows + outer_rows, rows_returned, aggregates, groups'),
	'320|320|' . 320 * 6000 . '|' . 320 * 500 . '|320|320', 'eight sessions with 40 queries each: every row is counted');
# and so do those that end with an error
reset_counts();
$node->psql('postgres', 'SELECT 1 / (sum(a.v) - sum(a.v)) FROM a JOIN b USING (k)') for 1 .. 3;
is(counts('joins, rows_returned, aggregates'), '3|15000|3', 'queries that fail count, too');

# ---- a session that is terminated
my $session = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $session->query_safe('SELECT pg_backend_pid()');
reset_counts();
$session->query_safe("BEGIN; DECLARE c CURSOR FOR $join; FETCH 10 FROM c;");
is(counts('joins'), 0, 'an open cursor has not counted yet');
terminated($node, $pid);
ok($node->poll_query_until('postgres', "SELECT joins = 1 AND inner_rows = 5000 FROM hashgraph_join_stats() WHERE datname = 'postgres'"),
	'a session that is terminated counts what it has done');
eval { $session->quit };

# ---- databases: apart, too many, dropped
for my $database (qw(one two three four))
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, "CREATE EXTENSION hashgraph_join; $tables");
}
reset_counts();
$node->safe_psql($_, "$join") for qw(one two two);
is($node->safe_psql('postgres', 'SELECT datname, joins FROM hashgraph_join_stats() ORDER BY 1'), "one|1\npostgres|0\ntwo|2", 'a row per database');
is($node->safe_psql('three', "$join LIMIT 0; SELECT datid IS NULL, datname, joins FROM hashgraph_join_stats() WHERE datname IS NULL"), '', 'databases beyond the third: nothing yet');
$node->safe_psql($_, $join) for qw(three four three);
is($node->safe_psql('postgres', 'SELECT datid, datname, joins FROM hashgraph_join_stats() WHERE datid IS NULL'), '||3', 'they share a row');
$node->safe_psql('two', 'SELECT hashgraph_join_stats_reset()');
is($node->safe_psql('postgres', 'SELECT datname, joins FROM hashgraph_join_stats() ORDER BY 1'), "one|1\npostgres|0\ntwo|0\n|3", 'a reset is of one database');
$node->safe_psql('postgres', 'DROP DATABASE one');
is($node->safe_psql('postgres', 'SELECT datname FROM hashgraph_join_stats() WHERE datname IS NOT NULL ORDER BY 1'), "postgres\ntwo", 'a dropped one is not shown');
$node->safe_psql('four', $join);
is(counts('joins, inner_rows', 'four'), '1|5000', 'its place is taken by another, from zero');

# ---- temporary files, of partitions and of groups, as PostgreSQL sees them
my $sums = 'count(*), sum(x.v), sum(y.v), count(y.t)';
my %spilling = (
	join => "SELECT $sums FROM a x LEFT JOIN a y ON x.k = y.k AND y.v > 0",
	groups => 'SELECT count(*), max(n) FROM (SELECT a.t, count(*) AS n FROM a JOIN (SELECT g AS m FROM generate_series(0, 9) g) b ON a.v % 10 = b.m GROUP BY 1) q');
my $space = PostgreSQL::Test::Utils::tempdir;
$node->safe_psql('postgres', "CREATE TABLESPACE elsewhere LOCATION '$space'");
for my $what (sort keys %spilling)
{
	my $sql = $spilling{$what};
	my $bytes = $what eq 'join' ? 'spilled_inner_bytes + spilled_outer_bytes' : 'spilled_aggregate_bytes';
	my $answer = $node->safe_psql('postgres', $sql);
	my $little = "SET work_mem = '256kB';";
	sessions_ended($node);
	$node->safe_psql('postgres', 'SELECT pg_stat_statements_reset(), pg_stat_reset(), hashgraph_join_stats_reset()');
	my $offset = -s $node->logfile;
	is($node->safe_psql('postgres', "$little $sql"), $answer, "$what: the answer");
	is(counts("$bytes > 100000"), 't', "$what: it spills");
	my $spilled = counts($bytes);
	like(slurp_file($node->logfile, $offset), qr/temporary file: path "base\/pgsql_tmp\/[^"]*", size [1-9]\d+/, "$what: log_temp_files");
	ok($node->poll_query_until('postgres', "SELECT temp_files > 0 AND temp_bytes BETWEEN 0.99 * $spilled AND 1.1 * $spilled + 100000 FROM pg_stat_database WHERE datname = 'postgres'"),
		"$what: pg_stat_database");
	is($node->safe_psql('postgres', "SELECT temp_blks_written * 8192 BETWEEN 0.9 * $spilled AND 1.3 * $spilled + 300000 AND temp_blks_read > 0 FROM pg_stat_statements WHERE query ~ '^SELECT count' AND query !~ 'pg_stat' ORDER BY temp_blks_written DESC LIMIT 1"),
		't', "$what: pg_stat_statements");
	like($node->safe_psql('postgres', "$little EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) $sql"), qr/Buffers: .*temp read=\d+ written=\d+/, "$what: EXPLAIN (BUFFERS)");
	fails_with($node, "$little SET temp_file_limit = '64kB'; $sql", qr/temporary file size exceeds "?temp_file_limit"? \(64kB\)/, "$what: temp_file_limit");
	$offset = -s $node->logfile;
	is($node->safe_psql('postgres', "$little SET temp_tablespaces = elsewhere; $sql"), $answer, "$what: temp_tablespaces");
	my $log = slurp_file($node->logfile, $offset);
	like($log, qr/temporary file: path "pg_tblspc\//, "$what: files are there");
	unlike($log, qr/temporary file: path "base\//, "$what: and nowhere else");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), 0, "$what: none is left");
}

# ---- restart and crash
$node->safe_psql('postgres', $join);
isnt(counts('joins'), 0, 'something is counted');
$node->restart;
is(counts('joins, inner_rows, shared'), '0|0|t', 'a restart begins at zero');
$node->safe_psql('postgres', $join);
is(counts('joins'), 1, 'and counts on');
$session = $node->background_psql('postgres', on_error_stop => 0);
$pid = $session->query_safe('SELECT pg_backend_pid()');
$session->query_safe("BEGIN; DECLARE c CURSOR FOR $join; FETCH 10 FROM c;");
$node->safe_psql('postgres', 'ALTER SYSTEM SET restart_after_crash = on; SELECT pg_reload_conf()');
kill 'KILL', $pid;
eval { $session->quit };
ok(comes_back($node, "SELECT joins = 0 AND shared FROM hashgraph_join_stats() WHERE datname = 'postgres'"), 'so does a crash');
$node->safe_psql('postgres', $join);
is(counts('joins, inner_rows'), '1|5000', 'and counts on');

# ---- without the postmaster a session counts for itself
$node->safe_psql('postgres', 'ALTER SYSTEM RESET restart_after_crash');
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
my ($rc, $out, $err) = $node->psql('postgres', "LOAD 'hashgraph_join'; $join LIMIT 3; SELECT shared, joins, datname FROM hashgraph_join_stats(); SHOW hashgraph_join.stats_databases");
like($out, qr/^f\|1\|postgres\n3$/m, 'not preloaded: its own');
is($err, '', 'not preloaded: the setting is no trouble');
is(counts('shared, joins'), 'f|0', 'not preloaded: not those of others');
fails_with($node, "LOAD 'hashgraph_join'; SET hashgraph_join.stats_databases = 5", qr/cannot be changed now/, 'not preloaded: the setting');

unlike(slurp_file($node->logfile), qr/PANIC|TRAP|leak/, 'the server log knows no failed assertion and no leak');
$node->stop;
done_testing();
