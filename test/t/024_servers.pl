# With other servers and programs: logical replication, pg_dump, postgres_fdw over three
# servers, pgbouncer, JIT, and what reads EXPLAIN's JSON.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my @conf = ("shared_preload_libraries = 'hashgraph_join'", 'hashgraph_join.force = on', 'max_parallel_workers_per_gather = 0');
my $main = PostgreSQL::Test::Cluster->new('main');
$main->init(allows_streaming => 'logical');
$main->append_conf('postgresql.conf', join("\n", 'jit = off', 'autovacuum = off', @conf));
$main->start;
$main->safe_psql('postgres', q{
	CREATE EXTENSION hashgraph_join;
	CREATE TABLE fact AS SELECT i AS id, i % 5000 AS k, i % 1000 AS v FROM generate_series(1, 50000) i;
	ALTER TABLE fact ADD PRIMARY KEY (id);
	CREATE TABLE dim AS SELECT i AS k, i % 7 AS g FROM generate_series(0, 4999) i;
	ALTER TABLE dim ADD PRIMARY KEY (k);
	ANALYZE fact, dim;
});
my $query = 'SELECT d.g, count(*), sum(f.v) FROM fact f JOIN dim d USING (k) GROUP BY d.g ORDER BY d.g';

sub stock { return $_[0]->safe_psql($_[1] // 'postgres', "SET hashgraph_join.enabled = off; " . ($_[2] // $query)); }

# How many joins the server's database has had.
sub joins { return $_[0]->safe_psql('postgres', 'SELECT joins FROM hashgraph_join_stats() WHERE datname = current_database()'); }

my $answer = stock($main);

# ---- logical replication: an apply worker copies tables, and fires a trigger that joins
{
	my $subscriber = new_server('subscriber', 'wal_level = logical', @conf);
	$subscriber->safe_psql('postgres', q{
		CREATE TABLE fact (id int PRIMARY KEY, k int, v int);
		CREATE TABLE dim (k int PRIMARY KEY, g int);
		CREATE TABLE seen (n bigint, total bigint);
		CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql SET search_path = public AS $$
		BEGIN
			INSERT INTO seen SELECT count(*), sum(f.v) FROM fact f JOIN dim d USING (k);
			RETURN NULL;
		END $$;
		CREATE TRIGGER look AFTER UPDATE ON fact FOR EACH ROW EXECUTE FUNCTION look();
		ALTER TABLE fact ENABLE REPLICA TRIGGER look});
	$main->safe_psql('postgres', 'CREATE PUBLICATION tables FOR TABLE fact, dim');
	$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION tables CONNECTION '" . $main->connstr . " dbname=postgres' PUBLICATION tables");
	$subscriber->wait_for_subscription_sync($main, 'tables');
	is($subscriber->safe_psql('postgres', $query), $answer, 'logical replication: the copied tables join');
	my $before = joins($subscriber);
	$main->safe_psql('postgres', 'UPDATE fact SET v = v + 1 WHERE id = 7');
	$main->wait_for_catchup('tables');
	is($subscriber->safe_psql('postgres', 'SELECT * FROM seen'), $main->safe_psql('postgres', 'SELECT count(*), sum(v) FROM fact'), 'a trigger joins in the apply worker, and sees the change');
	cmp_ok(joins($subscriber), '>', $before, 'by a node of ours');
	$main->safe_psql('postgres', 'UPDATE fact SET v = v - 1 WHERE id = 7');
	$main->wait_for_catchup('tables');
	is($subscriber->safe_psql('postgres', $query), $answer, 'changes that are applied are joined');
	$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION tables');
	$main->safe_psql('postgres', 'DROP PUBLICATION tables');
	$subscriber->stop;
}

# ---- pg_dump and restore
{
	my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump';
	$main->safe_psql('postgres', 'CREATE ROLE watcher; GRANT EXECUTE ON FUNCTION hashgraph_join_stats_reset() TO watcher; CREATE VIEW kept AS SELECT * FROM hashgraph_join_columns; CREATE DATABASE restored');
	$main->command_ok([ 'pg_dump', '-Fc', '-f', $dump, '-d', $main->connstr('postgres') ], 'pg_dump');
	$main->command_ok([ 'pg_restore', '--exit-on-error', '-d', $main->connstr('restored'), $dump ], 'pg_restore');
	is($main->safe_psql('restored', "ANALYZE; $query"), $answer, 'the restored tables join');
	is($main->safe_psql('restored', 'SELECT count(*) FROM kept'), 0, 'a view on a view of the extension is there');
	is($main->safe_psql('restored', "SELECT has_function_privilege('watcher', 'hashgraph_join_stats_reset()', 'EXECUTE'), has_function_privilege('public', 'hashgraph_join_stats_reset()', 'EXECUTE')"),
		't|f', 'and so are privileges on its functions');
	my ($rc, $out) = (0, '');
	IPC::Run::run([ 'pg_dump', '--schema-only', '-d', $main->connstr('restored') ], '>', \$out);
	unlike($out, qr/CREATE FUNCTION public\.hashgraph_join/, "a dump leaves the extension's objects to CREATE EXTENSION");
	$main->safe_psql('postgres', 'DROP VIEW kept; DROP DATABASE restored');
}

# ---- EXPLAIN (FORMAT JSON) parses, and has what programs look for
{
	my $json = decode_json($main->safe_psql('postgres', "EXPLAIN (ANALYZE, FORMAT JSON) $query"));
	my @nodes = ($json->[0]{Plan});
	my %seen;
	while (my $node = shift @nodes)
	{
		$seen{ $node->{'Custom Plan Provider'} // '' } //= $node;
		push @nodes, @{ $node->{Plans} // [] };
	}
	is($seen{HashGraphJoin}{'Join Type'}, 'Inner', 'JSON: the join');
	is($seen{HashGraphJoin}{'Build Rows'}, 5000, 'JSON: a number of what it did');
	is($seen{HashGraphAgg}{Groups}, 7, 'JSON: the aggregation');
	for my $sql ("SELECT count(*) FROM fact f FULL JOIN dim d USING (k)", "SELECT f.v FROM fact f JOIN dim d USING (k) WHERE f.v + d.g > 3")
	{
		for my $with ('', "SET work_mem = '64kB';")
		{
			ok(decode_json($main->safe_psql('postgres', "$with EXPLAIN (ANALYZE, BUFFERS, VERBOSE, FORMAT JSON) $sql")), "JSON parses: $with $sql");
		}
	}
	is($main->safe_psql('postgres', "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_format = json; SET auto_explain.log_analyze = on; SET client_min_messages = warning; $query"), $answer, 'auto_explain in JSON');
	my ($logged) = slurp_file($main->logfile) =~ /plan:\n(\t\{.*?^\t\})$/ms;
	is(decode_json($logged)->{Plan}{'Node Type'} // '', 'Sort', 'what it logs parses');
}

# ---- JIT compiles our expressions like any other's
{
	my $jit = 'SET jit = on; SET jit_above_cost = 0; SET jit_optimize_above_cost = 0; SET jit_inline_above_cost = 0; SET jit_expressions = on; SET jit_tuple_deforming = on;';
	my $sql = "SELECT f.id, substr(d.g::text, 1, 1) || f.v AS s FROM fact f LEFT JOIN dim d ON f.k = d.k AND abs(f.v - d.g) > 3 WHERE f.v % 3 = 1 ORDER BY 1 LIMIT 100";
	like($main->safe_psql('postgres', "$jit EXPLAIN (ANALYZE) $sql"), qr/HashGraphJoin.*JIT:\n +Functions: [1-9]/s, 'JIT: functions are compiled');
	is($main->safe_psql('postgres', "$jit $sql"), stock($main, 'postgres', $sql), 'JIT: the right rows');
	is($main->safe_psql('postgres', "$jit $query"), $answer, 'JIT: the right groups');
}

# ---- hints
{
	my $pkglib = `pg_config --pkglibdir` =~ s/\s+$//r;
	my $hinted = sub { return $main->safe_psql('postgres', "LOAD 'pg_hint_plan'; EXPLAIN (COSTS OFF) /*+ $_[0] */ $query") };
	if (-e "$pkglib/pg_hint_plan.so")
	{
		like($hinted->('SeqScan(f)'), qr/HashGraphJoin/, 'pg_hint_plan: a hint that has nothing against us');
		unlike($hinted->('MergeJoin(f d)'), qr/HashGraphJoin/, 'pg_hint_plan: another join');
		unlike($hinted->('NoHashJoin(f d)'), qr/HashGraphJoin/, 'pg_hint_plan: no hash join');
		unlike($hinted->('Set(hashgraph_join.enabled off)'), qr/HashGraph/, 'pg_hint_plan: a setting of ours');
		is($main->safe_psql('postgres', "LOAD 'pg_hint_plan'; /*+ Leading((d f)) */ $query"), $answer, 'pg_hint_plan: the order of the join');
	}
	else
	{
		note("no pg_hint_plan: Debian has a package of it from 13 on, for PostgreSQL 17 and later (and none of citus)");
	}
}

# ---- three servers: partitions that are foreign tables of two of them
{
	my @shards = map { new_server("shard$_", @conf) } 0, 1;
	$main->safe_psql('postgres', 'CREATE EXTENSION postgres_fdw;
		CREATE TABLE sharded (id int, k int, v int) PARTITION BY RANGE (k);
		CREATE TABLE sharded_dim (k int, g int) PARTITION BY RANGE (k)');
	for my $n (0, 1)
	{
		my $range = 'FROM (' . $n * 2500 . ') TO (' . ($n + 1) * 2500 . ')';
		my ($host, $port) = ($shards[$n]->host, $shards[$n]->port);
		$shards[$n]->safe_psql('postgres', "CREATE TABLE fact AS SELECT i AS id, i % 5000 AS k, i % 1000 AS v FROM generate_series(1, 50000) i WHERE (i % 5000) / 2500 = $n;
			CREATE TABLE dim AS SELECT i AS k, i % 7 AS g FROM generate_series($n * 2500, $n * 2500 + 2499) i; ANALYZE fact, dim");
		$main->safe_psql('postgres', "CREATE SERVER shard$n FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres', async_capable 'true', use_remote_estimate 'true');
			CREATE USER MAPPING FOR CURRENT_USER SERVER shard$n;
			CREATE FOREIGN TABLE sharded$n PARTITION OF sharded FOR VALUES $range SERVER shard$n OPTIONS (table_name 'fact');
			CREATE FOREIGN TABLE sharded_dim$n PARTITION OF sharded_dim FOR VALUES $range SERVER shard$n OPTIONS (table_name 'dim')");
	}
	$main->safe_psql('postgres', 'ANALYZE sharded, sharded_dim');

	# foreign rows with a table of our own
	my $mixed = $query =~ s/FROM fact/FROM sharded/r;
	like($main->safe_psql('postgres', "EXPLAIN (COSTS OFF) $mixed"), qr/HashGraphJoin.*Append.*Async Foreign Scan.*Async Foreign Scan/s, 'foreign partitions below the node are asked at the same time');
	is($main->safe_psql('postgres', $mixed), $answer, 'with a table of the server: the right answer');

	# both sides are foreign, and joined by whoever has them
	my $both = $mixed =~ s/JOIN dim/JOIN sharded_dim/r;
	my $wise = 'SET enable_partitionwise_join = on; SET enable_partitionwise_aggregate = on;';
	for my $set ('', $wise)
	{
		is($main->safe_psql('postgres', "$set $both"), $answer, "both sides foreign: the right answer $set");
		is($main->safe_psql('postgres', "$set SET work_mem = '64kB'; SELECT count(*), sum(d.g) FROM sharded f FULL JOIN sharded_dim d USING (k)"),
			$main->safe_psql('postgres', 'SET hashgraph_join.enabled = off; SELECT count(*), sum(d.g) FROM fact f FULL JOIN dim d USING (k)'), "a full join of them $set");
	}
	my $rows = 'SELECT f.id, d.g FROM sharded f JOIN sharded_dim d USING (k)';
	my @before = map { joins($_) } @shards;
	like($main->safe_psql('postgres', "$wise SET hashgraph_join.force = off; EXPLAIN (COSTS OFF) $rows"), qr/Append\n +->  Async Foreign Scan\n +Relations: \(sharded0 f_1\) INNER JOIN.*Async Foreign Scan\n +Relations: \(sharded1 f_2\) INNER JOIN/s, 'a partitionwise join over foreign partitions, asked at the same time');
	is($main->safe_psql('postgres', "$wise SET hashgraph_join.force = off; SELECT md5(string_agg(q::text, ';' ORDER BY q)) FROM ($rows) q"),
		stock($main, 'postgres', "SELECT md5(string_agg(q::text, ';' ORDER BY q)) FROM (SELECT f.id, d.g FROM fact f JOIN dim d USING (k)) q"), 'its rows');
	is($main->safe_psql('postgres', "$wise SET hashgraph_join.force = off; $both"), $answer, 'each server joins what it has: the right answer');
	cmp_ok(joins($shards[$_]), '>', $before[$_], "server $_ has joined by a node of ours") for 0, 1;
	$shards[0]->stop('immediate');
	fails_with($main, $mixed, qr/could not connect to server|server closed the connection/, 'a server that is gone');
	is($main->safe_psql('postgres', 'SELECT count(*) FROM hashgraph_join_progress()'), 0, 'leaves no node behind');
	$shards[1]->stop;
}

# ---- pgbouncer, which lends a server's session for a transaction
{
	my $dir = PostgreSQL::Test::Utils::tempdir_short();
	my $port = PostgreSQL::Test::Cluster::get_free_port();
	my ($user) = $main->safe_psql('postgres', 'SELECT current_user');
	append_to_file("$dir/users", "\"$user\" \"\"\n");
	append_to_file("$dir/ini", join("\n", '[databases]', 'postgres = host=' . $main->host . ' port=' . $main->port . " user=$user",
		'[pgbouncer]', "listen_port = $port", "unix_socket_dir = $dir", 'listen_addr =', 'pool_mode = transaction', 'default_pool_size = 1',
		'auth_type = trust', "auth_file = $dir/users", "logfile = $dir/log", "pidfile = $dir/pid", ''));
	system_or_bail('pgbouncer', '-d', '-q', "$dir/ini");
	my $one = sub { my ($rc, $out) = (0, ''); IPC::Run::run([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-h', $dir, '-p', $port, '-U', $user, '-d', 'postgres' ], '<', \$_[0], '>', \$out, '2>&1'); chomp $out; return $out };
	ok(wait_until('pgbouncer answers', sub { $one->('SELECT 1;') eq '1' }), 'pgbouncer answers');
	my $open = IPC::Run::start([ 'psql', '-XAtq', '-h', $dir, '-p', $port, '-U', $user, '-d', 'postgres' ], '<', \my $in, '>', \my $out, '2>&1');
	my $said = sub {
		my ($sql, $pattern) = @_;
		($in, $out) = ("$sql\n", '');
		$open->pump until $out =~ $pattern;
		return $out;
	};
	$said->('BEGIN; SET LOCAL hashgraph_join.force = off; DECLARE c CURSOR FOR SELECT f.id FROM fact f JOIN dim d USING (k); FETCH 1 FROM c; COMMIT; SELECT pg_backend_pid();', qr/\d+\n\d+\n/);
	my ($pid) = $out =~ /(\d+)\n$/;
	is($one->('SELECT pg_backend_pid();'), $pid, 'pgbouncer: two clients have the same session in turn');
	is($one->('SHOW hashgraph_join.force;'), 'on', 'what one has set for its transaction is gone');
	is($one->("$query;"), $answer, 'the right answer for one');
	like($said->("BEGIN; $query; COMMIT;\n", qr/^6\|.*\n/m), qr/\Q$answer\E/, 'and for the other');
	like($one->('SELECT 1 / (count(*) - 50000) FROM fact f JOIN dim d USING (k);'), qr/division by zero/, 'an error of one');
	like($said->("$query;\n", qr/^6\|.*\n/m), qr/\Q$answer\E/, 'does the other no harm');
	is($one->('SELECT count(*) FROM hashgraph_join_progress();'), 0, 'no node is left in the session');
	$open->finish;
	kill 'INT', slurp_file("$dir/pid") =~ /(\d+)/;
}

$main->stop;
done_testing();
