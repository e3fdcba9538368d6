# Columns kept in memory: who may load them, what is never kept, that no answer
# differs from PostgreSQL's own on the same snapshot while everything is done to the
# tables, and that nothing stays held.  HGJ_KEPT_SECONDS=600 makes each of the last parts,
# three, as long.
use strict;
use warnings;

use FindBin;
# Who runs a copy of test/t alone says where the tree is.
use lib $FindBin::Bin, "$FindBin::Bin/../lib";
use HgjTest;
use KeptStress;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seconds = $ENV{HGJ_KEPT_SECONDS} // 10;
# what sessions read by themselves: threads have a file of their own
my @conf = ("shared_preload_libraries = 'hashgraph_join'", 'hashgraph_join.threads = 0', 'hashgraph_join.column_loading = off', 'max_parallel_workers_per_gather = 0', 'hashgraph_join.min_rows = 0');

my $node = PostgreSQL::Test::Cluster->new('kept');
$node->init(allows_streaming => 1, extra => ['--data-checksums']);
$node->append_conf('postgresql.conf', join("\n", 'jit = off', 'autovacuum = off', @conf, "hashgraph_join.column_memory = '64MB'"));
$node->start;

$node->safe_psql('postgres', $KEPT_TABLES);

sub sql { return $node->safe_psql('postgres', $_[0]) }
sub compare { my ($what, $workers) = @_; is(sql('SELECT compare(' . ($workers // 0) . ')'), 'ok', $what) }
sub load { return sql("SELECT hashgraph_join_load('fact'), hashgraph_join_load('dim')") }
my $join = 'SELECT count(*), sum(f.v) FROM fact f JOIN dim d USING (k)';
my $parallel = 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;';
sub source { my ($set) = @_; return sql("SET hashgraph_join.force = on; " . ($set // '') . "EXPLAIN (ANALYZE, COSTS OFF) $join") =~ /Outer Source: (.*)/ ? $1 : 'none' }
# As PostgreSQL answers them by itself.
sub answers { my ($what, $set, @queries) = @_; is(sql("SET hashgraph_join.force = on; $set $_"), sql("SET hashgraph_join.enabled = off; $_"), "$what: $_") for @queries; return; }
sub cost { return sql("EXPLAIN SELECT $_[0] FROM fact") =~ /HashGraphAgg.*?cost=[\d.]+\.\.([\d.]+)/ ? $1 : 'none' }

# ---- what is kept, and by whom
load();
is(source(), 'pages', 'nothing is kept of pages that nobody has found all-visible');
# without FREEZE a page that the checkpointer has pinned is left as it is
sql($_) for 'VACUUM (FREEZE, ANALYZE) fact', 'VACUUM (FREEZE, ANALYZE) dim';
my @costs = map { cost($_) } 'sum(v)', 'sum(v), max(ctid)';
is(load(), '12|2', 'columns are loaded: two runs of pages of one table, one of the other');
is(load(), '0|0', 'once');
like(source(), qr/^columns \(100% of \d+ pages\)/, 'and read');
my $pages = sql("SELECT pg_relation_size('fact') / 8192");
like(source($parallel),
	qr/^columns \(100% of $pages pages\)/, 'in a parallel plan the pages of all processes are shown');
cmp_ok(cost('sum(v)'), '<', 0.5 * $costs[0], 'the planner knows');
is(cost('sum(v), max(ctid)'), $costs[1], 'and that pages are read for what is in no column');
is(sql("SELECT hashgraph_join_unload('fact')"), 12, 'unloaded');
is(cost('sum(v)'), $costs[0], 'the planner knows that, too');
is(load(), '12|0', 'and loaded again');
compare('all of them kept');
compare('in a parallel plan', 2);
my $few = 'SELECT count(*), sum(k) FROM fact WHERE id BETWEEN 30000 AND 31000 AND n >= 4300';
like(sql("SET hashgraph_join.force = on; EXPLAIN (ANALYZE, COSTS OFF) $few"), qr/Source: columns \(100% of \d+ pages, \d{4} skipped\)\n.*Rows Removed by Filter: 14700\n/s, 'pages that have no such values are skipped');
is(sql("SET hashgraph_join.force = on; $few"), sql("SET hashgraph_join.enabled = off; $few"), 'rightly');
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

# ---- batches that point into chunks: values that need all bytes of their type, and keys of them
sql(<<'Q');
CREATE TABLE wide (k int, b bigint, f float8, t timestamp, below int, nk int);
INSERT INTO wide SELECT i::bigint * 7919 % 400000009, i * 10000000000, i * 1.5, timestamp '2020-01-01' + i * interval '1 min',
	i::bigint * 7919 % 400000009 - 200000000, CASE WHEN i % 97 > 0 THEN i::bigint * 7919 % 400000009 END FROM generate_series(1, 60000) i;
CREATE TABLE wide_dim AS SELECT k, k % 100 AS g FROM wide WHERE k % 3 > 0;
VACUUM (ANALYZE) wide; VACUUM (ANALYZE) wide_dim;
SELECT hashgraph_join_load('wide'), hashgraph_join_load('wide_dim');
Q
my @wide = ('SELECT count(*), sum(w.b), sum(w.f), max(w.t), sum(w.below), sum(w.k) FROM wide w JOIN wide_dim d USING (k)',
	'SELECT d.g, count(*), sum(w.b), min(w.t), sum(w.below) FROM wide w JOIN wide_dim d USING (k) GROUP BY 1 ORDER BY 1',
	'SELECT count(*), sum(w.b), sum(w.k), max(w.t) FROM wide w JOIN wide_dim d ON w.nk = d.k',
	'SELECT md5(string_agg(x::text, $$;$$ ORDER BY x.b)) FROM (SELECT w.b, w.f, w.t, w.k, d.g FROM wide w LEFT JOIN wide_dim d ON w.nk = d.k) x',
	'SELECT count(*), sum(w.b), sum(w.f) FROM wide w JOIN wide_dim d USING (k) WHERE w.b > 123450000000 AND w.below < 100000000',
	'SELECT count(*), sum(b), sum(x.n) FROM (SELECT b, k, count(*) OVER (PARTITION BY k) AS n FROM wide) x JOIN wide_dim d USING (k)',
	'SELECT sum(c) FROM generate_series(1, 3) g, LATERAL (SELECT count(*) AS c FROM wide w JOIN wide_dim d USING (k) WHERE w.b > g * 10000000000) x');
like(sql("SET hashgraph_join.force = on; EXPLAIN (ANALYZE, COSTS OFF) SELECT count(*), sum(w.b) FROM wide w JOIN wide_dim d USING (k)"), qr/Outer Source: columns \(100%/, 'of wide values all are kept');
answers('wide values', '', @wide);
answers('wide values, parallel plan', $parallel, @wide);
answers('wide values, spilled', "SET work_mem = '64kB'; SET hash_mem_multiplier = 1;", @wide);
sql('UPDATE wide SET b = b + 1 WHERE k % 4001 = 0');
answers('wide values, some pages read', '', @wide);

# ---- numbers of three bytes: of values, of strings, of decimals
sql(<<'Q');
CREATE TABLE mid (k int, m int, b bigint, n numeric(10,2), t text);
INSERT INTO mid SELECT i % 70000, CASE WHEN i % 89 > 0 THEN i::bigint * 7919 % 16000057 - 300000 END, i::bigint * 104729 % 16000057,
	CASE WHEN i % 97 > 0 THEN (i::bigint * 7919 % 9000011 - 1000000) / 100.0 END, CASE WHEN i % 83 > 0 THEN 't' || i % 90001 END FROM generate_series(1, 140000) i;
CREATE TABLE mid_dim AS SELECT DISTINCT b AS k, b::int % 50 AS g FROM mid WHERE b % 3 > 0;
VACUUM (ANALYZE) mid; VACUUM (ANALYZE) mid_dim;
SELECT hashgraph_join_load('mid'), hashgraph_join_load('mid_dim');
Q
is(sql(q{SELECT string_agg("column" || ' ' || encoding, ', ' ORDER BY "column") FROM hashgraph_join_columns WHERE tab = 'mid'::regclass}),
	'b offsets, 3 bytes, k offsets, 3 bytes, m offsets, 3 bytes, n dictionary, 3 bytes, t dictionary, 3 bytes', 'they take three bytes each');
my @mid = ('SELECT count(*), sum(m.m), sum(m.n), sum(hashtext(m.t)), sum(m.b) FROM mid m JOIN mid_dim d ON m.b = d.k',
	'SELECT d.g, count(*), sum(m.m), min(m.n), max(m.n), min(m.t) FROM mid m JOIN mid_dim d ON m.b = d.k GROUP BY 1 ORDER BY 1',
	'SELECT md5(string_agg(x::text, $$;$$ ORDER BY x.b)) FROM (SELECT m.*, d.g FROM mid m LEFT JOIN mid_dim d ON m.b = d.k) x',
	'SELECT count(*), sum(m.m), sum(m.n), sum(hashtext(m.t)) FROM mid m JOIN mid_dim d ON m.b = d.k WHERE m.m BETWEEN 100000 AND 500000',
	'SELECT count(*), sum(m.m), sum(m.n), sum(hashtext(m.t)) FROM mid m JOIN mid_dim d ON m.b = d.k WHERE m.n > 40000 AND m.k < 60000',
	'SELECT m.b, m.m, m.n, m.t, d.g FROM mid m JOIN mid_dim d ON m.b = d.k WHERE m.m IN (99999, 100001, 107919, 1283900, 77) OR m.b < 900 ORDER BY 1');
answers('three bytes', $_, @mid) for '', $parallel;
like(sql("SET hashgraph_join.force = on; EXPLAIN (ANALYZE, COSTS OFF) SELECT count(*), sum(m.n) FROM mid m JOIN mid_dim d ON m.b = d.k WHERE m.m < 0"), qr/Outer Source: columns \(100%/, 'all of them are kept');
sql('DROP TABLE mid, mid_dim');

# ---- changes
sub changed
{
	my ($what, @changes) = @_;
	load();
	sql($_) for @changes;
	compare("$what: before it is loaded again");
	# a second each: where there are minutes
	compare("$what: in a parallel plan", 2) if $seconds > 3;
	load();
	compare("$what: after that");
}
changed('an update', 'UPDATE fact SET v = 99 WHERE id % 500 = 0');
like(source(), qr/^columns \(9\d% of/, 'only pages that were written are read');
sql($_) for 'VACUUM fact', 'VACUUM dim';
load();
sql($_) for 'UPDATE fact SET v = 12 WHERE id = 20000', 'VACUUM fact';
like(source(), qr/^columns \(99% of/, 'a vacuum costs the pages that it was about');
compare('after it');
is(source(), source(), 'and not the others, afterwards');
sql("UPDATE fact SET v = v + 1, k = 5 WHERE id BETWEEN $_ * 100 AND $_ * 100 + 30"), sql('VACUUM fact'), compare("changes and vacuums in turn, $_") for 1 .. 4;
changed('a delete, and vacuum', 'DELETE FROM fact WHERE id BETWEEN 100 AND 900', 'VACUUM fact');
changed('inserts into what is free', "INSERT INTO fact SELECT i, i % 1000, 7, 'new', 1 FROM generate_series(1, 500) i");
changed('a value that is NULL now', 'UPDATE fact SET t = NULL, n = NULL WHERE id % 900 = 1', 'VACUUM FREEZE fact');
changed('nothing but rollbacks', 'BEGIN; DELETE FROM fact; ROLLBACK', 'BEGIN; SAVEPOINT a; UPDATE fact SET v = 1 WHERE id < 50; ROLLBACK TO a; COMMIT', 'VACUUM fact');
changed('row locks', 'BEGIN; SELECT count(*) FROM (SELECT FROM fact WHERE id < 300 FOR UPDATE) q; COMMIT');
is(sql("SET work_mem = '64kB'; SELECT compare()"), 'ok', 'groups that spill');
changed('values that are no decimals', "UPDATE fact SET n = 'NaN' WHERE id = 44000", 'VACUUM fact');
is(sql("SET work_mem = '64kB'; SELECT compare()"), 'ok', 'groups that spill, some decimals');
changed('more digits', 'ALTER TABLE fact ALTER n TYPE numeric(14,2)');
changed('any digits', 'ALTER TABLE fact ALTER n TYPE numeric', 'UPDATE fact SET n = id / 3.0 WHERE id % 99 = 1');
changed('other digits', 'ALTER TABLE fact ALTER n TYPE numeric(16,4)', 'VACUUM fact');
changed('more strings than a dictionary of groups takes', "UPDATE fact SET t = md5((id % 20000)::text) WHERE id % 3 > 0", 'VACUUM fact');
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

# A cursor that has looked at the map before a page changed for the second time, and comes to
# that page when somebody else has looked behind it.
sql($_)
  for q{CREATE TABLE looked WITH (fillfactor = 50) AS SELECT i AS id, i % 10 AS k, 0 AS v, repeat('x', 40) AS pad FROM generate_series(1, 60000) i},
  'CREATE TABLE few AS SELECT i AS k FROM generate_series(0, 9) i', 'VACUUM (FREEZE, ANALYZE) looked', 'VACUUM (FREEZE, ANALYZE) few',
  'VACUUM looked', "SELECT hashgraph_join_load('looked')", 'UPDATE looked SET v = 1 WHERE id = 60000', 'VACUUM looked';
my $slow = $node->background_psql('postgres', on_error_stop => 0);
$slow->query_safe('SET hashgraph_join.force = on; BEGIN; DECLARE c CURSOR FOR SELECT l.v FROM looked l JOIN few USING (k)');
$slow->query_safe('FETCH 1 c');
sql('UPDATE looked SET v = 2 WHERE id = 60000');
my $sum = 'SELECT sum(l.v) FROM looked l JOIN few USING (k)';
is(sql("SET hashgraph_join.force = on; $sum"), '2', 'a page changes while a cursor is open');
like(sql("SET hashgraph_join.force = on; EXPLAIN (ANALYZE, COSTS OFF) $sum"), qr/Outer Source: columns \(99% of/, '... and all others are kept');
is(join(' ', grep { /^[12]$/ } split /\n/, $slow->query_safe('FETCH ALL c')), '1', '... which sees what it saw');
$slow->query_safe('COMMIT');
$slow->quit;
sql('DROP TABLE looked, few');

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

# Nothing is loaded again from here on: what is not changed stays valid.
$standby->safe_psql('postgres', "SELECT hashgraph_join_load('fact'), hashgraph_join_load('dim')");
for my $round (1 .. 3)
{
	sql($_) for "UPDATE fact SET v = 13, k = k / 2 WHERE id % 4000 = $round * 10", 'VACUUM fact';
	$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
	is($standby->safe_psql('postgres', 'SELECT compare()'), 'ok', "standby, round $round");
}
my $explain = "SET hashgraph_join.force = on; EXPLAIN (ANALYZE, COSTS OFF) $join";
like($standby->safe_psql('postgres', $explain), qr/Outer Source: columns \([89]\d% of/, 'most is valid there after that');

# ---- tables whose first pages have no WAL
my $minimal = PostgreSQL::Test::Cluster->new('minimal');
$minimal->init;
$minimal->append_conf('postgresql.conf', join("\n", 'jit = off', 'autovacuum = off', @conf, "hashgraph_join.column_memory = '64MB'",
	'wal_level = minimal', 'max_wal_senders = 0', 'wal_skip_threshold = 0'));
$minimal->start;
$minimal->safe_psql('postgres', "BEGIN; $KEPT_TABLES COMMIT");
$minimal->safe_psql('postgres', $_) for 'VACUUM fact', 'VACUUM dim', "SELECT hashgraph_join_load('fact'), hashgraph_join_load('dim')";
is($minimal->safe_psql('postgres', 'SELECT compare()'), 'ok', 'no WAL of what was loaded');
for my $round (1 .. 3)
{
	$minimal->safe_psql('postgres', $_) for "UPDATE fact SET v = 15, k = k / 3 WHERE id % 3000 = $round", 'VACUUM fact';
	is($minimal->safe_psql('postgres', 'SELECT compare()'), 'ok', "WAL of what changes then, round $round");
}
like($minimal->safe_psql('postgres', $explain), qr/Outer Source: columns \([89]\d% of/, 'most is valid there after that');
$minimal->stop;

# ---- everything at once, and a store that always evicts

# pgbench with some of them.  Deadlocks, serialization failures and conflicts with
# recovery are tried again.
sub pgbench
{
	my ($clients, $time, @names) = @_;
	return ('pgbench', '-n', '-c', $clients, '-j', 2, '-T', $time, '--max-tries=1000', kept_script_files($node->basedir, @names), 'postgres');
}
my $works = [qr/number of transactions actually processed: [1-9]/];
my $well = [qr/^(?!.*(WRONG|aborted|ERROR))/s];
my $log_is_clean = qr/ERROR:  WRONG|TRAP|PANIC|was terminated by signal (?!9)|leak|could not (read|write) block/;

sub stress
{
	my ($what, $time, @more) = @_;
	$node->append_conf('postgresql.conf', join "\n", 'hashgraph_join.column_loading = auto', @more, '');
	$node->stop('immediate');
	$node->start;
	is(sql('SELECT count(*) FROM hashgraph_join_columns'), 0, "$what: nothing is kept after a crash");
	$node->command_checks_all([ pgbench(6, $time, keys %KEPT_SCRIPTS) ], 0, $works, $well, "$what: no answer differs");
	compare("$what: at the end");
	unlike(slurp_file($node->logfile), $log_is_clean, "$what: the server's log");
}
# ---- the same while the primary is written to, queries are cancelled, and the standby becomes a primary
$standby->append_conf('postgresql.conf', "hashgraph_join.column_loading = auto\nmax_standby_streaming_delay = '10ms'\nlog_min_messages = debug1");
$standby->restart;
my @writers = grep { !/^(reader|parallel|repeatable|twice|load|unload|some)$/ } keys %KEPT_SCRIPTS;
my ($out, $err, $out2, $err2) = ('', '', '', '');
my $writing = IPC::Run::start([ pgbench(3, int($seconds / 2) + 1, @writers) ], '>', \$out, '2>', \$err, init => sub { @ENV{qw(PGHOST PGPORT)} = ($node->host, $node->port) });
# A session that is idle in its transaction when a conflict comes, or whose statement is
# just at its end, is not cancelled but loses its connection: pgbench goes on without it,
# and ends when none is left.  So there are rounds, the last of them when nothing more comes.
my $read = sub {
	return IPC::Run::start([ pgbench(6, shift, qw(reader twice load unload)) ], '>>', \$out2, '2>>', \$err2, init => sub { @ENV{qw(PGHOST PGPORT)} = ($standby->host, $standby->port) });
};
do
{
	$read->(1)->finish;
	$writing->pump_nb;
} while ($writing->pumpable);
$writing->finish;
like($out, $works->[0], 'the primary was written to');
like($err, $well->[0], 'without errors');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
$read->(1)->finish;
like($out2, $works->[0], 'and the standby read');
# One at least is in the way for certain.
my $idle = $standby->background_psql('postgres', on_error_stop => 0);
$idle->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM fact');
sql($_) for 'DELETE FROM fact WHERE id % 1000 = 77', 'VACUUM fact';
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
eval { $idle->quit };
$out2 = '';
my $reading = $read->(int($seconds / 2) + 2);
$standby->promote;
$standby->command_checks_all([ pgbench(3, int($seconds / 2) + 1, @writers, 'reader') ], 0, $works, $well, 'a standby that was promoted: no answer differs');
$reading->finish;
like($out2, $works->[0], 'and before, and meanwhile');
unlike($err2, qr/WRONG|(ERROR|FATAL|PANIC):  (?!.*conflict with recovery)/, 'without errors');
# whatever was unloaded last
$standby->safe_psql('postgres', 'VACUUM fact');
is($standby->safe_psql('postgres', "SELECT hashgraph_join_load('fact') \\g /dev/null\nSELECT compare()"), 'ok', 'a standby that was promoted: at the end');
unlike(slurp_file($standby->logfile), $log_is_clean, "the standby's log");
like(slurp_file($standby->logfile), qr/conflict with recovery/, 'queries were cancelled');
cmp_ok($standby->safe_psql('postgres', 'SELECT sum(uses) FROM hashgraph_join_columns'), '>', 0, 'and columns read');
$standby->stop;

stress('all at once', $seconds, 'log_min_messages = debug1');
# It may not have come to its turn: then what is read now is loaded.
my $loader = qr/column loader: [1-9]\d* chunks/;
sql("SELECT hashgraph_join_unload('fact'), hashgraph_join_unload('dim')");
ok(wait_until('a loading worker loads', sub { sql('SELECT compare()'); slurp_file($node->logfile) =~ $loader }), 'the loading worker has had a part in it');
load();
compare('after that, loaded');
cmp_ok(sql('SELECT sum(uses) FROM hashgraph_join_columns'), '>', 0, 'what is kept is read');
stress('a small store, few buffers', $seconds, "hashgraph_join.column_memory = '1MB'", "shared_buffers = '2MB'", 'log_min_messages = warning');
cmp_ok(sql('SELECT coalesce(sum(bytes), 0) FROM hashgraph_join_columns'), '<=', 1024 * 1024, 'no more is kept than there is memory');

# The loading worker is killed, and the server restarts by itself.
$node->append_conf('postgresql.conf', "restart_after_crash = on\nhashgraph_join.column_memory = '64MB'\nshared_buffers = '128MB'");
$node->restart;
for my $round (1 .. 2)
{
	sql($_) for 'VACUUM fact', 'VACUUM dim';
	my ($out, $err) = ('', '');
	my $start = sub {
		return IPC::Run::start([ pgbench(3, 60, qw(reader update vacuum)) ], '>', \$out, '2>', \$err, init => sub { @ENV{qw(PGHOST PGPORT)} = ($node->host, $node->port) });
	};
	my $busy = $start->();
	# It may live for some milliseconds only: one session looks, until one is hit, however long
	# that takes on a busy machine.
	my $watch = $node->background_psql('postgres', on_error_stop => 0);
	my $killed = 0;
	my $more = 20;
	until ($killed || ($more == 0 && !$busy->pumpable))
	{
		if (!$busy->pumpable)
		{
			$busy->finish;
			$busy = $start->();
			$more--;
		}
		my $pid = $watch->query_safe("SELECT pid FROM pg_stat_activity WHERE backend_type = 'hashgraph_join column loader' AND pid > 0");
		$killed = $pid && kill('KILL', $pid);
		$busy->pump_nb;
	}
	eval { $watch->quit };
	ok($killed, "a loading worker is killed, round $round");
	$busy->finish;
	ok(comes_back($node), "the server is back, round $round");
	compare("after a loading worker was killed, round $round");
}

# A session that is ended in the middle of a scan holds nothing afterwards.
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe("SET hashgraph_join.force = on; SELECT hashgraph_join_load('dim'); BEGIN; DECLARE c CURSOR FOR SELECT d.g FROM dim d JOIN fact f USING (k)");
$session->query_safe('MOVE 5 c');
my $pid = $session->query_safe('SELECT pg_backend_pid()');
terminated($node, $pid);
eval { $session->quit };
sql("SELECT hashgraph_join_unload('dim'), hashgraph_join_unload('fact')");
sql($_) for 'VACUUM fact', 'VACUUM dim';
sql("SELECT hashgraph_join_load('fact', '{$_}'), hashgraph_join_unload('fact')") for (qw(id k v t n)) x 4;
sql("SELECT hashgraph_join_load('dim')");
cmp_ok(sql("SELECT count(*) FROM hashgraph_join_columns WHERE tab = 'dim'::regclass"), '>', 0, 'there is room for others');
compare('in the end');
$node->stop;
done_testing();
