# How long workers take to begin and to end is measured: by a background worker when the
# server starts, by queries that have some, and by a session for itself where the library is
# not preloaded.  How long that is says nothing here.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $time = "SELECT detail FROM hashgraph_join_info() WHERE engine = 'cpu'";
my $measured = qr/^2 parallel workers: [0-9.]+ ms to begin and to end \(measured\)$/;
my $guessed = qr/^2 parallel workers: 10\.0 ms to begin and to end \(not measured yet\)$/;
my $parallel = "LOAD 'hashgraph_join'; SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;"
  . 'SET min_parallel_table_scan_size = 0; SET hashgraph_join.min_rows = 0; SET hashgraph_join.startup_cost = 0; SET hashgraph_join.processors = 64;';
my $query = 'SELECT count(*) FROM a JOIN b USING (k)';
my $tables = 'CREATE TABLE a AS SELECT g AS k FROM generate_series(1, 60000) g; CREATE TABLE b AS SELECT g AS k FROM generate_series(1, 5000) g; VACUUM ANALYZE a, b;';

# ---- preloaded: by itself
my $node = new_server('main', "shared_preload_libraries = 'hashgraph_join'");
ok($node->poll_query_until('postgres', "SELECT detail LIKE '%(measured)' FROM hashgraph_join_info() WHERE engine = 'cpu'"), 'measured when the server has started');
like($node->safe_psql('postgres', $time), $measured, 'and shown');
ok( $node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type LIKE 'hashgraph_join%prob%'"),
	'the background workers have gone');
$node->safe_psql('postgres', $tables);
my $plan = $node->safe_psql('postgres', "$parallel EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query");
like($plan, qr/Workers Launched: [12]/, 'a query has workers');
like($plan, qr/Custom Scan \(HashGraph/, 'below nodes of ours');
like($node->safe_psql('postgres', $time), $measured, 'and its time is still known');
$node->restart;
ok($node->poll_query_until('postgres', "SELECT detail LIKE '%(measured)' FROM hashgraph_join_info() WHERE engine = 'cpu'"), 'measured again when it has started again');
unlike(slurp_file($node->logfile), qr/ERROR|FATAL|"hashgraph_join[^"]*prob[^"]*" \(PID \d+\) exited/, 'nothing of it fails');
$node->stop;

# ---- without room for background workers there is nothing to measure by
$node->append_conf('postgresql.conf', 'max_worker_processes = 0');
$node->start;
like($node->safe_psql('postgres', $time), $guessed, 'no room for workers: it is guessed');
$node->stop;

# ---- not preloaded: a session by its own queries
my $plain = new_server('plain');
$plain->safe_psql('postgres', $tables);
my @seen = split /\n/, $plain->safe_psql('postgres', "$parallel $time; $query; $time;");
like($seen[0], $guessed, 'not preloaded: it is guessed');
is($seen[1], 5000, 'until a query has workers');
like($seen[2], $measured, 'which the session looks at');
like($plain->safe_psql('postgres', "LOAD 'hashgraph_join'; $time"), $guessed, 'another session has not seen them');
$plain->stop;

done_testing();
