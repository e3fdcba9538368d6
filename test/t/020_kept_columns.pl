# Columns kept in memory: who may load them, what is never kept, that no answer
# differs from PostgreSQL's own on the same snapshot while everything is done to the
# tables, and that nothing stays held.  HGJ_KEPT_SECONDS=1800 makes the last part long.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seconds = $ENV{HGJ_KEPT_SECONDS} // 20;
my @conf = ("shared_preload_libraries = 'hashgraph_join'", 'max_parallel_workers_per_gather = 0', 'hashgraph_join.min_rows = 0');

my $node = PostgreSQL::Test::Cluster->new('kept');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', join("\n", 'jit = off', 'autovacuum = off', @conf, "hashgraph_join.column_memory = '64MB'"));
$node->start;

# A few queries with PostgreSQL's nodes and with ours, on the snapshot of the caller:
# an error unless they agree.
my $tables = q{
	CREATE EXTENSION hashgraph_join;
	CREATE FUNCTION compare(workers int DEFAULT 0) RETURNS text LANGUAGE plpgsql STABLE AS $$
	DECLARE q text; stock text; ours text;
	BEGIN
		PERFORM set_config('hashgraph_join.force', 'on', true), set_config('max_parallel_workers_per_gather', workers::text, true),
			set_config('parallel_setup_cost', '0', true), set_config('parallel_tuple_cost', '0', true),
			set_config('min_parallel_table_scan_size', '0', true);
		FOREACH q IN ARRAY ARRAY[
			'SELECT d.g, count(*), sum(f.v), sum(f.n), min(f.t), max(f.t), sum(f.id) FROM fact f JOIN dim d USING (k) GROUP BY 1',
			'SELECT f.id, f.t, f.n, d.g FROM fact f JOIN dim d USING (k) WHERE f.v > 95',
			'SELECT f.k, f.t, d.g FROM fact f LEFT JOIN dim d USING (k) WHERE f.id % 37 = 0 OR f.t IS NULL',
			'SELECT d.g, f.t FROM dim d JOIN fact f USING (k) WHERE d.g = 3 AND f.v < 5',
			'SELECT v, count(*), sum(n) FROM fact GROUP BY v'] LOOP
			q := 'SELECT md5(string_agg(q::text, E''\n'' ORDER BY q::text COLLATE "C")) FROM (' || q || ') q';
			PERFORM set_config('hashgraph_join.enabled', 'off', true), set_config('hashgraph_join.aggregate', 'off', true);
			EXECUTE q INTO stock;
			PERFORM set_config('hashgraph_join.enabled', 'on', true), set_config('hashgraph_join.aggregate', 'on', true);
			EXECUTE q INTO ours;
			IF stock IS DISTINCT FROM ours THEN
				RAISE EXCEPTION 'WRONG: %', q;
			END IF;
		END LOOP;
		RETURN 'ok';
	END $$;
	CREATE TABLE fact (id int, k int, v smallint, t text, n numeric(12,2), pad char(400));
	INSERT INTO fact SELECT i, i % 1000, i % 100, CASE WHEN i % 50 > 0 THEN 'text ' || i % 70 END, i / 7.0, '' FROM generate_series(1, 45000) i;
	CREATE TABLE dim (k int, g int);
	INSERT INTO dim SELECT i, i % 10 FROM generate_series(0, 799) i;
};
$node->safe_psql('postgres', $tables);

sub sql { return $node->safe_psql('postgres', $_[0]) }
sub compare { my ($what, $workers) = @_; is(sql('SELECT compare(' . ($workers // 0) . ')'), 'ok', $what) }
sub load { return sql("SELECT hashgraph_join_load('fact'), hashgraph_join_load('dim')") }
my $join = 'SELECT count(*), sum(f.v) FROM fact f JOIN dim d USING (k)';
sub source { return sql("SET hashgraph_join.force = on; EXPLAIN (ANALYZE, COSTS OFF) $join") =~ /Outer Source: (.*)/ ? $1 : 'none' }

# ---- what is kept, and by whom
load();
is(source(), 'pages', 'nothing is kept of pages that nobody has found all-visible');
sql($_) for 'VACUUM (ANALYZE) fact', 'VACUUM (ANALYZE) dim';
is(load(), '12|2', 'columns are loaded: two runs of pages of one table, one of the other');
is(load(), '0|0', 'once');
like(source(), qr/^columns \(100% of \d+ pages\)/, 'and read');
compare('all of them kept');
compare('in a parallel plan', 2);
is(sql("SELECT sum(pages) = 6 * pg_relation_size('fact') / 8192 AND sum(uses) > 0 FROM hashgraph_join_columns WHERE tab = 'fact'::regclass"), 't', 'the view says so');
sql('CREATE ROLE reader; GRANT SELECT (id, k) ON fact TO reader; CREATE TABLE bare (a int)');
fails_with($node, "SET ROLE reader; SELECT hashgraph_join_load('fact', '{v}')", qr/permission denied/, 'a column that one may not read');
fails_with($node, "SET ROLE reader; SELECT hashgraph_join_load('bare')", qr/permission denied/, 'a table that one may not read');
fails_with($node, "SET ROLE reader; SELECT hashgraph_join_unload('fact')", qr/must be owner/, 'unloading');
is(sql("SET ROLE reader; SELECT hashgraph_join_load('fact')"), '0', 'what one may read of a table');
fails_with($node, "SELECT hashgraph_join_load('fact', '{nobody}')", qr/does not exist/, 'no such column');
fails_with($node, "SELECT hashgraph_join_load('fact', '{ctid}')", qr/does not exist/, 'a system column');
fails_with($node, "SELECT hashgraph_join_load('pg_class')", qr/system catalog/, 'a catalog');
fails_with($node, "CREATE TEMP TABLE x (a int); SELECT hashgraph_join_load('x')", qr/not WAL-logged/, 'a temporary table');
fails_with($node, "CREATE UNLOGGED TABLE x (a int); SELECT hashgraph_join_load('x')", qr/not WAL-logged/, 'an unlogged table');
fails_with($node, "BEGIN; TRUNCATE fact; SELECT hashgraph_join_load('fact')", qr/created or rewritten/, 'a file of the same transaction');
compare('after the TRUNCATE was rolled back');

# ---- changes
sub changed
{
	my ($what, @changes) = @_;
	load();
	sql($_) for @changes;
	compare("$what: before it is loaded again");
	compare("$what: in a parallel plan", 2);
	load();
	compare("$what: after that");
}
changed('an update', 'UPDATE fact SET v = 99 WHERE id % 500 = 0');
like(source(), qr/^columns \(9\d% of/, 'only pages that were written are read');
changed('a delete, and vacuum', 'DELETE FROM fact WHERE id BETWEEN 100 AND 900', 'VACUUM fact');
changed('inserts into what is free', "INSERT INTO fact SELECT i, i % 1000, 7, 'new', 1 FROM generate_series(1, 500) i");
changed('a value that is NULL now', 'UPDATE fact SET t = NULL, n = NULL WHERE id % 900 = 1', 'VACUUM FREEZE fact');
changed('nothing but rollbacks', 'BEGIN; DELETE FROM fact; ROLLBACK', 'BEGIN; SAVEPOINT a; UPDATE fact SET v = 1 WHERE id < 50; ROLLBACK TO a; COMMIT', 'VACUUM fact');
changed('row locks', 'BEGIN; SELECT count(*) FROM (SELECT FROM fact WHERE id < 300 FOR UPDATE) q; COMMIT');
changed('VACUUM FULL', 'VACUUM FULL fact');
changed('a vacuum behind it', 'VACUUM fact');
changed('CLUSTER', 'CREATE INDEX fact_id ON fact (id DESC)', 'CLUSTER fact USING fact_id', 'VACUUM fact');
changed('a rewrite', 'ALTER TABLE fact ALTER v TYPE int', 'VACUUM fact');
changed('a rewrite that is rolled back', 'BEGIN; ALTER TABLE fact ALTER v TYPE bigint; UPDATE fact SET v = 0; ROLLBACK');
changed('the end of the table', 'DELETE FROM dim WHERE k > 700', 'VACUUM dim', 'INSERT INTO dim SELECT i, 5 FROM generate_series(701, 1200) i', 'VACUUM dim');
changed('out of line values', "UPDATE fact SET t = (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 300) i) WHERE id % 5000 = 3", 'VACUUM fact');

# A column's number that is used again, and what rows are taken to have that know nothing of it.
sql("BEGIN; ALTER TABLE fact ADD extra int DEFAULT 5; SELECT hashgraph_join_load('fact'); ROLLBACK");
sql('ALTER TABLE fact ADD other int DEFAULT 7');
load();
is(sql('SET hashgraph_join.force = on; SELECT min(f.other), max(f.other) FROM fact f JOIN dim d USING (k)'), '7|7', 'a column that was added twice, once for nothing');
changed('a column less', 'ALTER TABLE fact DROP other', 'VACUUM fact');

# COPY FREEZE adds rows to a page that is all-visible.
my $copy = sub { "COPY fact FROM PROGRAM 'for i in 1 2 3; do echo \"$_[0],5,5,copied,1,\"; done' (FORMAT csv, FREEZE)" };
sql('CREATE TABLE old AS SELECT * FROM fact');
is(sql(join ';', 'BEGIN', 'TRUNCATE fact', $copy->(1), 'SELECT compare()', $copy->(2), 'SELECT compare()', 'COMMIT'), "ok\nok", 'COPY FREEZE, twice');
changed('after COPY FREEZE', 'INSERT INTO fact SELECT * FROM old', 'VACUUM fact');

# ---- own writes, and statements that read what they write
is(sql('BEGIN; UPDATE fact SET v = 3 WHERE id % 100 = 7; SELECT compare(); DELETE FROM fact WHERE id % 100 = 8; SELECT compare(); ROLLBACK; SELECT compare()'),
	"ok\nok\nok", 'what the transaction has written itself');
my $n = sql('SELECT count(*) FROM fact');
my $m = sql('SELECT count(*) FROM fact JOIN dim USING (k)');
sql('SET hashgraph_join.force = on; INSERT INTO fact (id, k, v) SELECT f.id, f.k, f.v FROM fact f JOIN dim d USING (k)');
is(sql('SELECT count(*) FROM fact'), $n + $m, 'an insert that reads its own table');
is(sql("SET default_transaction_isolation = 'serializable'; SELECT compare()"), 'ok', 'a serializable transaction');

# ---- old snapshots and cursors
sql('VACUUM fact');
load();
my $old = $node->background_psql('postgres', on_error_stop => 0);
my $before = $old->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; SET hashgraph_join.force = on; $join");
my $cursor = $node->background_psql('postgres', on_error_stop => 0);
$cursor->query_safe("SET hashgraph_join.force = on; BEGIN; DECLARE c CURSOR FOR SELECT f.id FROM fact f JOIN dim d USING (k)");
$cursor->query_safe('MOVE 10 c');
my $rows = sql('SELECT count(*) FROM fact JOIN dim USING (k)');
for my $round (1 .. 3)
{
	sql($_) for "DELETE FROM fact WHERE id % 11 = $round", 'VACUUM fact';
	load();
	is($old->query_safe($join), $before, "an old snapshot, round $round");
	compare("a new one, round $round");
}
like($cursor->query_safe('MOVE ALL c'), qr/^(MOVE )?\d*$/, 'a cursor goes on');
$cursor->query_safe('COMMIT');
is($old->query_safe('SELECT compare()'), 'ok', 'the old snapshot sees what it saw');
$old->query_safe('COMMIT');
$_->quit for $old, $cursor;

# ---- a standby, which replays what happens to the pages of its chunks
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
for my $change ('SELECT', 'UPDATE fact SET v = 11 WHERE id % 70 = 1', 'VACUUM fact', 'DELETE FROM dim WHERE k % 9 = 1', 'VACUUM dim', 'TRUNCATE dim')
{
	sql($change);
	$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
	is($standby->safe_psql('postgres', 'SELECT compare()'), 'ok', "standby: $change");
	$standby->safe_psql('postgres', "SELECT hashgraph_join_load('fact'), hashgraph_join_load('dim')");
	is($standby->safe_psql('postgres', 'SELECT compare()'), 'ok', "standby, loaded: $change");
}
cmp_ok($standby->safe_psql('postgres', 'SELECT sum(uses) FROM hashgraph_join_columns'), '>', 0, 'the standby reads what it has loaded');
sql('INSERT INTO dim SELECT i, i % 10 FROM generate_series(0, 799) i');
sql('VACUUM dim');
$standby->stop;

# ---- everything at once, and a store that always evicts
sub stress
{
	my ($what, $time, @more) = @_;
	$node->append_conf('postgresql.conf', join "\n", @more, '');
	$node->stop('immediate');
	$node->start;
	is(sql('SELECT count(*) FROM hashgraph_join_columns'), 0, "$what: nothing is kept after a crash");
	my %script = (
		reader => [8, 'SELECT compare();'],
		parallel => [2, 'SELECT compare(2);'],
		repeatable => [3, "BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT compare();\nSELECT pg_sleep(0.05);\nSELECT compare();\nCOMMIT;"],
		load => [8, "SELECT hashgraph_join_load('fact');\nSELECT hashgraph_join_load('dim');"],
		unload => [1, "SELECT hashgraph_join_unload('dim');"],
		update => [3, "\\set r random(1, 40000)\nUPDATE fact SET v = v % 90 + 1, t = 'u' || v WHERE id BETWEEN :r AND :r + 20;"],
		hot => [2, "\\set r random(1, 40000)\nUPDATE fact SET n = n + 1 WHERE id = :r;"],
		remove => [2, "\\set r random(1, 40000)\nDELETE FROM fact WHERE id BETWEEN :r AND :r + 5;"],
		insert => [2, "\\set r random(1, 40000)\nINSERT INTO fact SELECT i, i % 1000, i % 100, 'i' || i, i FROM generate_series(:r, :r + 10) i;"],
		rollback => [2, "\\set r random(1, 40000)\nBEGIN;\nUPDATE fact SET v = 0 WHERE id BETWEEN :r AND :r + 50;\nSELECT compare();\nROLLBACK;"],
		savepoint => [1, "\\set r random(1, 40000)\nBEGIN;\nSAVEPOINT a;\nDELETE FROM fact WHERE id BETWEEN :r AND :r + 9;\nROLLBACK TO a;\nUPDATE dim SET g = g % 9 + 1 WHERE k = :r % 800;\nCOMMIT;"],
		lock => [1, "\\set r random(1, 40000)\nBEGIN;\nSELECT count(*) FROM (SELECT FROM fact WHERE id BETWEEN :r AND :r + 9 FOR UPDATE) q;\nCOMMIT;"],
		vacuum => [2, "VACUUM fact;\nVACUUM dim;"],
		freeze => [1, 'VACUUM FREEZE fact;'],
		full => [1, 'VACUUM FULL dim;'],
		truncate => [1, "BEGIN;\nTRUNCATE dim;\nSELECT compare();\nROLLBACK;"],
		alter => [1, "BEGIN;\nALTER TABLE dim ADD extra int DEFAULT 3;\nSELECT compare();\nROLLBACK;"],
		retype => [1, "ALTER TABLE dim ALTER g TYPE int USING g + 0;"]);
	my @files;
	for my $name (sort keys %script)
	{
		my $file = $node->basedir . "/$name.sql";
		open my $fh, '>', $file or die "$file: $!";
		print $fh "$script{$name}[1]\n";
		close $fh;
		push @files, '--file', "$file\@$script{$name}[0]";
	}
	# deadlocks and serialization failures are tried again
	$node->command_checks_all([ 'pgbench', '-n', '-c', 6, '-j', 2, '-T', $time, '--max-tries=1000', @files, 'postgres' ],
		0, [qr/number of transactions actually processed: [1-9]/], [qr/^(?!.*(WRONG|aborted|ERROR))/s], "$what: no answer differs");
	compare("$what: at the end");
	my $log = slurp_file($node->logfile);
	unlike($log, qr/ERROR:  WRONG|TRAP|PANIC|was terminated by signal (?!9)|leak/, "$what: the server's log");
}
stress('all at once', $seconds);
load();
compare('after that, loaded');
cmp_ok(sql('SELECT sum(uses) FROM hashgraph_join_columns'), '>', 0, 'what is kept is read');
stress('a small store, few buffers', $seconds, "hashgraph_join.column_memory = '1MB'", "shared_buffers = '2MB'");
cmp_ok(sql('SELECT coalesce(sum(bytes), 0) FROM hashgraph_join_columns'), '<=', 1024 * 1024, 'no more is kept than there is memory');

# A session that is ended in the middle of a scan holds nothing afterwards.
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe("SET hashgraph_join.force = on; SELECT hashgraph_join_load('dim'); BEGIN; DECLARE c CURSOR FOR SELECT d.g FROM dim d JOIN fact f USING (k)");
$session->query_safe('MOVE 5 c');
my $pid = $session->query_safe('SELECT pg_backend_pid()');
sql("SELECT pg_terminate_backend($pid, 10000)");
eval { $session->quit };
sql("SELECT hashgraph_join_unload('dim'), hashgraph_join_unload('fact')");
sql($_) for 'VACUUM fact', 'VACUUM dim';
sql("SELECT hashgraph_join_load('fact', '{$_}'), hashgraph_join_unload('fact')") for (qw(id k v t n)) x 4;
sql("SELECT hashgraph_join_load('dim')");
cmp_ok(sql("SELECT count(*) FROM hashgraph_join_columns WHERE tab = 'dim'::regclass"), '>', 0, 'there is room for others');
compare('in the end');
$node->stop;
done_testing();
