# Beside other libraries, however it is loaded, and with parallel query on.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $tables = q{
	CREATE TABLE fact AS SELECT i % 50000 * 2654435761 AS k, i AS v FROM generate_series(0, 299999) i;
	CREATE TABLE dim AS SELECT i * 2654435761 AS k, i AS w FROM generate_series(0, 49999) i;
	VACUUM ANALYZE fact, dim;
};
my $query = 'SELECT count(*), sum(f.v), sum(d.w) FROM fact f JOIN dim d USING (k)';
my $answer = '300000|44999850000|7499850000';
my $force = 'SET hashgraph_join.force = on; SET hashgraph_join.require = \'join\';';

# ---- pg_stat_statements and auto_explain, before us and after us
for my $order ('pg_stat_statements,auto_explain,hashgraph_join',
	'hashgraph_join,auto_explain,pg_stat_statements')
{
	my $node = new_server('n' . length($order) . ($order =~ /^h/ ? 'first' : 'last'),
		"shared_preload_libraries = '$order'", "compute_query_id = on",
		"auto_explain.log_min_duration = 0", "auto_explain.log_analyze = on",
		"auto_explain.log_nested_statements = on", "auto_explain.log_timing = off");
	$node->safe_psql('postgres', "CREATE EXTENSION pg_stat_statements; $tables");
	my $offset = -s $node->logfile;
	is($node->safe_psql('postgres', "$force $query"), $answer, "$order: the right answer");
	my $log = slurp_file($node->logfile, $offset);
	like($log, qr/Custom Scan \(HashGraphJoin\)/, "$order: auto_explain logs the node");
	like($log, qr/Build Rows: 50000/, "$order: auto_explain logs what it did");
	is($node->safe_psql('postgres',
		"SELECT calls, rows FROM pg_stat_statements WHERE query LIKE 'SELECT count(*), sum(f.v)%' AND calls > 0"),
		'1|1', "$order: pg_stat_statements counts the query");
	is($node->safe_psql('postgres',
		"$force SET work_mem = '64kB'; SET auto_explain.log_min_duration = -1; SELECT count(*) FROM fact f FULL JOIN dim d USING (k);"),
		300000, "$order: several passes");
	cmp_ok($node->safe_psql('postgres',
		"SELECT temp_blks_written FROM pg_stat_statements WHERE query LIKE 'SELECT count(*) FROM fact f FULL JOIN%'"),
		'>', 0, "$order: pg_stat_statements sees temporary files");

	# preloaded by the server: sessions have it without a word
	joined_plan($node, $force, $query, "$order: shared_preload_libraries");
	$node->stop;
}

# ---- the three ways to load it, and none
{
	my $node = new_server('ways');
	$node->safe_psql('postgres', $tables);
	my ($rc, $out, $err) = $node->psql('postgres', "EXPLAIN $query");
	unlike($out, qr/HashGraphJoin/, 'a session that has not loaded the library plans as ever');
	joined_plan($node, "LOAD 'hashgraph_join'; $force", $query, 'LOAD');
	my $plan = $node->safe_psql('postgres',
		"DROP EXTENSION hashgraph_join; CREATE EXTENSION hashgraph_join; $force EXPLAIN $query");
	like($plan, qr/HashGraphJoin/, 'CREATE EXTENSION loads it in its session');
	$node->safe_psql('postgres', "ALTER DATABASE postgres SET session_preload_libraries = 'hashgraph_join'");
	joined_plan($node, $force, $query, 'session_preload_libraries of a database');
	$node->safe_psql('postgres', "ALTER DATABASE postgres RESET session_preload_libraries;
		CREATE ROLE joiner SUPERUSER LOGIN; ALTER ROLE joiner SET session_preload_libraries = 'hashgraph_join'");
	$plan = $node->safe_psql('postgres', "$force EXPLAIN $query", extra_params => [ '-U', 'joiner' ]);
	like($plan, qr/HashGraphJoin/, 'session_preload_libraries of a role');
	is($node->safe_psql('postgres', "LOAD 'hashgraph_join'; LOAD 'hashgraph_join'; $force $query"),
		$answer, 'LOAD twice');

	# A setting in postgresql.conf before anything has loaded the library.
	$node->append_conf('postgresql.conf', "hashgraph_join.force = on");
	$node->restart;
	joined_plan($node, "LOAD 'hashgraph_join';", $query, 'a setting from postgresql.conf holds');
	$node->stop;
}

# ---- parallel query: workers have the library, and find the node
{
	my $node = new_server('parallel', "max_parallel_workers = 4", "max_worker_processes = 8",
		"max_parallel_workers_per_gather = 2", "min_parallel_table_scan_size = 0",
		"parallel_setup_cost = 0", "parallel_tuple_cost = 0");
	$node->safe_psql('postgres', $tables);
	is($node->safe_psql('postgres', "LOAD 'hashgraph_join'; $force $query"),
		$answer, 'parallel query on: the right answer');
	is($node->safe_psql('postgres', "LOAD 'hashgraph_join'; $query"), $answer,
		'parallel query on, planned by cost: the right answer');
	# called debug_parallel_query from 16 on
	my $in_a_worker = $node->safe_psql('postgres',
		"SELECT name FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')");
	for my $leader ('on', 'off')
	{
		# The join as a whole goes into a worker.
		my $before = "LOAD 'hashgraph_join'; $force SET $in_a_worker = on; SET min_parallel_table_scan_size = '1TB'; SET parallel_leader_participation = $leader;";
		my $plan = $node->safe_psql('postgres', "$before EXPLAIN (COSTS OFF) $query");
		like($plan, qr/Gather.*HashGraphJoin/s, "force_parallel_mode, leader $leader: the node below a Gather");
		is($node->safe_psql('postgres', "$before $query"), $answer,
			"force_parallel_mode, leader $leader: the right answer from a worker");
		is($node->safe_psql('postgres',
			"$before SET work_mem = '64kB'; SELECT count(*), count(d.k) FROM fact f FULL JOIN dim d ON f.k = d.k AND d.w < 100"),
			$node->safe_psql('postgres', 'SELECT count(*), count(d.k) FROM fact f FULL JOIN dim d ON f.k = d.k AND d.w < 100'),
			"force_parallel_mode, leader $leader: several passes in a worker");
	}
	# Gathers above the node, which aggregates its part; and below, where unmatched inner rows are wanted.
	like($node->safe_psql('postgres', "LOAD 'hashgraph_join'; $force EXPLAIN (COSTS OFF) $query"),
		qr/Gather.*HashGraphAgg.*HashGraphJoin/s, 'a Gather above the nodes');
	like($node->safe_psql('postgres', "LOAD 'hashgraph_join'; $force SET hashgraph_join.source = tuples; SET hashgraph_join.parallel_build = private; EXPLAIN (COSTS OFF) SELECT f.v, d.w FROM fact f FULL JOIN dim d USING (k)"),
		qr/HashGraphJoin.*Gather/s, 'Gathers below the node');
	my $below = "SELECT count(*), sum(v), sum(w) FROM (SELECT k, sum(v) AS v FROM fact GROUP BY k) f JOIN (SELECT k, sum(w) AS w FROM dim GROUP BY k) d USING (k)";
	is($node->safe_psql('postgres', "LOAD 'hashgraph_join'; $force $below"),
		$node->safe_psql('postgres', $below), 'parallel children');
	# Workers that a session without a superuser starts.
	$node->safe_psql('postgres', "CREATE ROLE analyst LOGIN; GRANT SELECT ON fact, dim TO analyst;
		ALTER ROLE analyst SET session_preload_libraries = 'hashgraph_join'");
	is($node->safe_psql('postgres', "$force SET $in_a_worker = on; SET min_parallel_table_scan_size = '1TB'; $query", extra_params => [ '-U', 'analyst' ]),
		$answer, 'a worker of a non-superuser');
	unlike(slurp_file($node->logfile), qr/TRAP|terminated by signal|PANIC/, 'no worker crashed');
	$node->stop;
}

done_testing();
