# Columns that are read often are loaded by a background worker: which, by whom, and
# that it is in nobody's way.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('loading', "shared_preload_libraries = 'hashgraph_join'", "hashgraph_join.column_memory = '256MB'",
	'hashgraph_join.min_rows = 0', 'hashgraph_join.force = on', 'max_parallel_workers_per_gather = 0', 'max_worker_processes = 4', 'restart_after_crash = on', 'log_min_messages = debug1');
my $loaders = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'hashgraph_join column loader'";

sub sql { return $node->safe_psql($_[1] // 'postgres', $_[0]) }
sub kept { return sql("SELECT string_agg(\"column\", ' ' ORDER BY \"column\") FROM hashgraph_join_columns WHERE tab = '$_[0]'::regclass", $_[1]) }
sub idle { return $node->poll_query_until('postgres', "$loaders", '0') }
sub columns_are
{
	my ($table, $columns, $name) = @_;
	ok($node->poll_query_until('postgres', "SELECT COALESCE(string_agg(\"column\", ' ' ORDER BY \"column\"), '') = '$columns' FROM hashgraph_join_columns WHERE tab = '$table'::regclass"), $name);
}
# As far as a table has been read so often, and the worker has had its say.
sub scan { my ($query, $times) = @_; return column_loading($node, sub { sql($query) for 1 .. $times // 2 }) }

sql(q{
	CREATE TABLE big (a int, b int, c text, d numeric, pad char(60));
	INSERT INTO big SELECT i, i % 100, 'text ' || i % 1000, i, '' FROM generate_series(1, 300000) i;
	CREATE TABLE small AS SELECT i AS a FROM generate_series(1, 1000) i;
	CREATE TABLE never_vacuumed AS SELECT i AS a, i AS b FROM generate_series(1, 50000) i;
	CREATE UNLOGGED TABLE unlogged AS SELECT i AS a FROM generate_series(1, 50000) i;
	VACUUM (ANALYZE) big, small, unlogged;
});

# ---- what is loaded, and when
sql('SELECT sum(a) FROM big');
scan('SELECT sum(a) FROM big', 0);
is(kept('big'), '', 'what was read once is not loaded');
scan('SELECT sum(a) FROM big', 1);
columns_are('big', 'a', 'what was read twice is');
like(sql('EXPLAIN (ANALYZE, COSTS OFF) SELECT sum(a) FROM big'), qr/Source: columns \(100% of|Device Columns: 100%/, 'and used');
is(sql('SELECT sum(a) FROM big'), '45000150000', 'with the right answer');
is(sql("SELECT bool_and(uses > 0 AND time_saved > 0 AND last_use > now() - '1 hour'::interval) FROM hashgraph_join_columns"), 't', 'the view says what that has saved');
scan('SELECT count(*) FROM big WHERE b = 5 AND a < 1000');
columns_are('big', 'a b', 'columns of filters, too');
scan('SELECT sum(d) FROM big LIMIT 1', 2);
columns_are('big', 'a b d', 'one column more');
scan('SELECT sum(a) FROM small', 5);
is(kept('small'), '', 'a small table is not loaded');
scan('SELECT sum(a) FROM unlogged', 5);
is(kept('unlogged'), '', 'nor one whose changes are not WAL-logged');
scan('CREATE TEMP TABLE t AS SELECT i AS a FROM generate_series(1, 50000) i; SELECT sum(a) FROM t; SELECT sum(a) FROM t; SELECT sum(a) FROM t', 1);
is(sql('SELECT count(DISTINCT tab) FROM hashgraph_join_columns'), 1, 'nor a temporary one');
scan('SELECT sum(a) FROM never_vacuumed', 2);
is(kept('never_vacuumed'), '', 'nor pages that nobody has found all-visible');
sql('VACUUM never_vacuumed');
scan('SELECT sum(a) FROM never_vacuumed', 1);
is(kept('never_vacuumed'), '', 'which is not tried again at once');
scan('SELECT sum(a) FROM never_vacuumed', 3);
columns_are('never_vacuumed', 'a', 'but after some time');
sql('DELETE FROM big WHERE a % 100 = 3');
sql('VACUUM big');
is(sql('SELECT sum(a) FROM big'), '44550291000', 'what has changed is read from the table');
scan('SELECT sum(a) FROM big');
like(sql('EXPLAIN (ANALYZE, COSTS OFF) SELECT sum(a) FROM big'), qr/Source: columns \(100% of|Device Columns: 100%/, 'and loaded again');

# ---- no code of users' is run by the worker, which is a superuser
sql(q{
	CREATE ROLE villain LOGIN;
	GRANT CREATE ON SCHEMA public TO villain;
	SET ROLE villain;
	CREATE TABLE log (who name);
	GRANT ALL ON log TO PUBLIC;
	CREATE FUNCTION trap(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
		IF current_user <> 'villain' THEN RAISE EXCEPTION 'CAUGHT %', current_user; END IF;
		RETURN $1; END $$;
	CREATE DOMAIN domain AS int CHECK (trap(VALUE) IS NOT NULL);
	CREATE TYPE pair AS (x domain, y text);
	CREATE TABLE mine (a domain DEFAULT trap(5), p pair, g int GENERATED ALWAYS AS (trap(7)) STORED, r int4range);
	CREATE INDEX ON mine (trap(a));
	CREATE POLICY mine ON mine USING (trap(a) > 0);
	ALTER TABLE mine ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
	INSERT INTO mine (a, p, r) SELECT i, ROW(i, 'y')::pair, int4range(i, i + 1) FROM generate_series(1, 20000) i;
	RESET ROLE;
	SET ROLE villain;
	VACUUM mine;
});
scan('SELECT count(a), count(p), count(g), count(r) FROM mine');
columns_are('mine', 'a g p r', 'columns of types of users\' are loaded');
unlike(slurp_file($node->logfile), qr/(ERROR|FATAL): *CAUGHT/, 'and none of their functions is called for that');

# ---- it is in nobody's way
sql('CREATE DATABASE other');
sql('CREATE EXTENSION hashgraph_join; CREATE TABLE big AS SELECT i AS a, i AS b, i::text AS c, i::numeric AS d FROM generate_series(1, 1500000) i', 'other');
sql('VACUUM big', 'other');
# One may be asked for while the last one is about to end, and is not begun then.
sub loading
{
	my $first = 1;
	return wait_until('a worker loads', sub {
		sql("SELECT hashgraph_join_unload('big')", 'other') if $first;
		sql('SELECT sum(a), sum(b), max(c), sum(d) FROM big', 'other') for 1 .. ($first ? 2 : 1);
		$first = 0;
		return sql($loaders) > 0;
	});
}
ok(loading(), 'a worker is loading');
# it has a lock for a run of pages only: one is had before it is through
ok(wait_until('a lock of its table', sub {
	my $loaded = sql("SET lock_timeout = '300s'; BEGIN; LOCK TABLE big IN ACCESS EXCLUSIVE MODE; SELECT ($loaders) > 0; COMMIT", 'other');
	idle(), loading() if $loaded ne 't';
	return $loaded eq 't';
}), 'a lock of its table is had while it loads');
idle();
ok(loading(), 'a worker is loading again');
sql('CREATE TABLE second AS SELECT i AS a FROM generate_series(1, 20000) i');
sql('VACUUM second');
sql('SELECT sum(a) FROM second') for 1 .. 2;
is(sql("SELECT NOT EXISTS (SELECT FROM hashgraph_join_columns WHERE tab = 'second'::regclass) OR ($loaders) = 0"), 't', 'all databases together have a quarter of max_worker_processes for that');
sql($_, 'other') for 'CREATE INDEX CONCURRENTLY big_a ON big (a)', 'REINDEX TABLE CONCURRENTLY big', 'DROP INDEX CONCURRENTLY big_a';
idle();
ok(loading(), 'and again');
is(sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'hashgraph_join column loader'"), 't', 'it is terminated');
ok(idle(), 'and gone');
ok(loading(), 'another one is started');
is(sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE backend_type = 'hashgraph_join column loader'"), 't', 'what it does is cancelled');
idle();
sql("SELECT hashgraph_join_unload('big')", 'other');
is(column_loading($node, sub { sql('SELECT sum(a), sum(b), max(c), sum(d) FROM big', 'other') for 1 .. 2 }), 0, 'which is not begun again at once');
ok(loading(), 'but later');
sql('DROP TABLE big', 'other');
idle();
is(sql('SELECT count(*) FROM pg_class', 'other') > 0, 1, 'its table is dropped');
sql('CREATE TABLE big AS SELECT i AS a, i AS b, i::text AS c, i::numeric AS d FROM generate_series(1, 1500000) i', 'other');
sql('VACUUM big', 'other');
ok(loading(), 'a worker is loading before its database is renamed');
sql('ALTER DATABASE other RENAME TO another');
ok(1, 'it was renamed');
sql('ALTER DATABASE another RENAME TO other');
ok(loading(), 'a worker is loading before its database is copied');
sql('CREATE DATABASE copied TEMPLATE other');
ok(loading(), 'a worker is loading before its database is dropped');
sql('DROP DATABASE copied');
sql('DROP DATABASE other');
is(sql("SELECT count(*) FROM pg_database WHERE datname = 'other'"), 0, 'it was dropped');
idle();

# ---- settings
sql("ALTER SYSTEM SET hashgraph_join.column_loading = off");
$node->reload;
$node->poll_query_until('postgres', 'SHOW hashgraph_join.column_loading', 'off') or die 'the setting does not come';
scan('SELECT min(c) FROM big', 5);
is(kept('big'), 'a b d', 'nothing is loaded if nothing is to be');
sql("ALTER SYSTEM RESET hashgraph_join.column_loading");
sql("ALTER SYSTEM SET max_worker_processes = 1");
$node->restart;
# the logical replication launcher has the only place
sql('SELECT min(c) FROM big') for 1 .. 3;
is(kept('big'), '', 'without a place for a worker nothing is loaded');
like(slurp_file($node->logfile), qr/no column loader could be started: max_worker_processes are running/, 'and the log says so');
sql("ALTER SYSTEM RESET max_worker_processes");
$node->restart;

# ---- a store that what is read does not fit into
sql("ALTER SYSTEM SET hashgraph_join.column_memory = '4MB'");
$node->restart;
sql('CREATE TABLE wide AS SELECT i AS a, i * 7 AS b, md5(i::text) AS c, md5((i + 1)::text) AS d FROM generate_series(1, 300000) i');
sql('VACUUM wide');
my $before = () = slurp_file($node->logfile) =~ /column loader: \d+ chunks/g;
scan('SELECT count(a), count(b), max(c), max(d) FROM wide', 1) for 1 .. 15;
my $after = () = slurp_file($node->logfile) =~ /column loader: \d+ chunks/g;
cmp_ok($after - $before, '>=', 1, 'what does not fit is loaded as far as there is room');
cmp_ok($after - $before, '<=', 4, 'and tried again later and later');
cmp_ok(sql('SELECT sum(bytes) FROM hashgraph_join_columns'), '<=', 4 * 1024 * 1024, 'no more is kept than there is memory');
sql("ALTER SYSTEM RESET hashgraph_join.column_memory");
$node->restart;

# ---- the ends of servers
sql('CREATE TABLE huge AS SELECT i AS a, i AS b, i::text AS c, i::numeric AS d FROM generate_series(1, 1500000) i');
sql('VACUUM huge');
sub load_huge { return wait_until('a worker loads', sub { sql('SELECT sum(a), sum(b), max(c), sum(d) FROM huge'); sql($loaders) > 0 }) }
ok(load_huge(), 'a worker is loading at a fast shutdown');
$node->stop('fast');
$node->start;
ok(load_huge(), 'at an immediate one');
$node->stop('immediate');
$node->start;
ok(load_huge(), 'and when it is killed');
my $pid = sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'hashgraph_join column loader'");
my $log = -s $node->logfile;
kill 'KILL', $pid;
$node->wait_for_log(qr/ready to accept connections/, $log);
is(sql('SELECT count(*) FROM hashgraph_join_columns'), 0, 'with nothing kept');
ok(load_huge(), 'and a worker loads');
ok($node->poll_query_until('postgres', "$loaders", '0'), 'until it is done');
# from 16 on tables are extended by several pages at once, of which the last may be empty
like(sql('EXPLAIN (ANALYZE, COSTS OFF) SELECT sum(a), sum(b), max(c), sum(d) FROM huge'), qr/Source: columns \((?:99|100)% of/, 'all of it');

# ---- without a word in postgresql.conf
$node->adjust_conf('postgresql.conf', 'hashgraph_join.column_memory', undef);
$node->adjust_conf('postgresql.conf', 'shared_buffers', '48MB');
$node->restart;
is(sql('SHOW hashgraph_join.column_memory'), '12MB', 'there is a quarter of shared_buffers');
scan('SELECT sum(a) FROM big');
is(kept('big'), 'a', 'for what is read often');
$node->append_conf('postgresql.conf', 'hashgraph_join.column_memory = 0');
$node->restart;
scan('SELECT sum(a) FROM big', 3);
is(sql('SELECT count(*) FROM hashgraph_join_columns'), 0, 'and nothing where that is not wanted');
unlike(slurp_file($node->logfile), qr/TRAP|PANIC|was terminated by signal (?!9)|leak/, "the server's log");
$node->stop;
done_testing();
