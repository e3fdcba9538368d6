# Columns kept in memory, and what must not come of it: who sees what is kept, what is
# loaded again and again for nothing, what becomes of it when tables and columns go, and
# that no setting and no chunk is too large.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('limits', "shared_preload_libraries = 'hashgraph_join'", 'hashgraph_join.threads = 0', "hashgraph_join.column_memory = '32MB'",
	'hashgraph_join.column_loading = off', 'hashgraph_join.min_rows = 0', 'hashgraph_join.force = on', 'max_parallel_workers_per_gather = 0');

sub sql { return $node->safe_psql($_[1] // 'postgres', $_[0]) }
sub kept { return sql("SELECT count(*) FROM hashgraph_join_columns WHERE tab = '$_[0]'::regclass") }

# ---- who sees what is kept
sql(q{
	CREATE TABLE secret (a int, b int, c text);
	INSERT INTO secret SELECT i, i % 10, 'text ' || i FROM generate_series(1, 20000) i;
	CREATE TABLE rows_of_others (a int, owner name);
	INSERT INTO rows_of_others SELECT i, 'nobody' FROM generate_series(1, 20000) i;
	ALTER TABLE rows_of_others ENABLE ROW LEVEL SECURITY;
	CREATE POLICY own ON rows_of_others USING (owner = current_user);
	CREATE ROLE nosy;
	CREATE ROLE reader;
	CREATE ROLE watcher IN ROLE pg_monitor;
	GRANT SELECT (a) ON secret TO reader;
	GRANT SELECT ON rows_of_others TO reader;
});
sql($_) for 'VACUUM (ANALYZE) secret', 'VACUUM (ANALYZE) rows_of_others';
sql("SELECT hashgraph_join_load('secret'), hashgraph_join_load('rows_of_others')");
my $seen = q{SELECT coalesce(string_agg(tab || '.' || "column", ' ' ORDER BY tab::text, "column"), 'nothing') FROM hashgraph_join_columns};
my $all = 'rows_of_others.a rows_of_others.owner secret.a secret.b secret.c';
is(sql($seen), $all, 'a superuser sees all columns that are kept');
is(sql("SET ROLE watcher; $seen"), $all, 'and so do those who may see all statistics');
is(sql("SET ROLE nosy; $seen"), 'nothing', 'who may read nothing sees nothing');
is(sql("SET ROLE reader; $seen"), 'secret.a', 'others see columns that they may read, unless rows are hidden from them');
is(sql("ALTER TABLE rows_of_others DISABLE ROW LEVEL SECURITY; SET ROLE reader; $seen"), 'rows_of_others.a rows_of_others.owner secret.a', 'which ends with row security');

# ---- what is not loaded again and again
my $load = sub { my ($table) = @_; return sql("SELECT hashgraph_join_load('$table')") };
sub answers
{
	my ($query, $name) = @_;
	is(sql($query), sql("SET hashgraph_join.enabled = off; SET hashgraph_join.aggregate = off; $query"), $name);
}
sql(q{
	CREATE TABLE some_long (id int, t text);
	ALTER TABLE some_long ALTER t SET STORAGE EXTERNAL;
	INSERT INTO some_long SELECT i, CASE WHEN i % 1000 = 7 THEN repeat(i::text, 2000) ELSE 'short ' || i % 10 END FROM generate_series(1, 20000) i;
});
sql('VACUUM some_long');
is($load->('some_long'), 2, 'two columns are loaded, one of which has values out of line');
is($load->('some_long'), 0, 'of which nobody tries to load more');
is(sql(q{SELECT bool_and(pages > 0) AND count(DISTINCT pages) = 2 FROM hashgraph_join_columns WHERE tab = 'some_long'::regclass}), 't', 'pages without such values are there');
answers('SELECT count(*), sum(id), max(length(t)) FROM some_long', 'a scan reads both kinds');
sql("UPDATE some_long SET t = 'short' WHERE length(t) > 20");
sql('VACUUM some_long');
is($load->('some_long'), 2, 'when these have become short, they are loaded');
is($load->('some_long'), 0, 'once');
answers('SELECT count(*), sum(id), max(length(t)) FROM some_long', 'and read');

sql('ALTER TABLE some_long ADD later int DEFAULT 5, ADD missing text');
is($load->('some_long'), 2, 'columns that no tuple has are tried');
is($load->('some_long'), 0, 'once');
is(sql(q{SELECT string_agg("column" || ':' || (pages > 0), ' ' ORDER BY "column") FROM hashgraph_join_columns WHERE tab = 'some_long'::regclass}),
	'id:true later:false missing:false t:true', 'for nothing');
sql('UPDATE some_long SET id = id + 1 WHERE id % 500 < 100');
sql('VACUUM some_long');
is($load->('some_long'), 4, 'with tuples that have them and others that do not, all are loaded');
is($load->('some_long'), 0, 'once');
is(sql(q{SELECT bool_and(pages > 0) FROM hashgraph_join_columns WHERE tab = 'some_long'::regclass}), 't', 'as far as they can be');
answers('SELECT count(*), sum(id), max(length(t)), sum(later), count(missing) FROM some_long', 'a scan reads both kinds');

sql(q{CREATE TABLE half (id int, pad char(400)); INSERT INTO half SELECT i, '' FROM generate_series(1, 60000) i});
sql('VACUUM half');
sql('DELETE FROM half WHERE id > 36000');
is(sql("SELECT hashgraph_join_load('half', '{id}')"), 1, 'of pages none of which is all-visible nothing is put into the store');
answers('SELECT count(*), sum(id) FROM half', 'they are read');

# ---- which pages are not even looked at
sql(q{
	CREATE TABLE days (id int, big bigint, day date, at timestamp, price numeric(10,2), nothing int);
	INSERT INTO days SELECT i, i * 1000000000::bigint, DATE '2020-01-01' + i / 100, TIMESTAMP '2020-01-01' + i * interval '1 minute', i / 8.0, NULL FROM generate_series(1, 100000) i;
});
sql('VACUUM days');
$load->('days');
# All but some of a thousand: those that are read before constants are evaluated, with the
# first rows, and those that have such values.
sub skips
{
	my ($condition, $most, $name) = @_;
	my $query = "SELECT count(*), sum(id), max(big) FROM days WHERE $condition";
	my ($pages, $skipped) = sql("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query") =~ /Source: columns \(100% of (\d+) pages, (\d+) skipped\)/;
	cmp_ok(($pages // 1000) - ($skipped // 0), '<=', $most, "$name: other pages are skipped");
	answers($query, "$name: rightly");
}
skips('id BETWEEN 50000 AND 50100', 40, 'a range');
skips('id = 77', 40, 'an equality');
skips('big > 99990 * 1000000000::bigint', 40, 'an open range');
skips("day = DATE '2021-01-01'", 40, 'a day');
skips("at >= TIMESTAMP '2020-02-01' AND at < TIMESTAMP '2020-02-01 01:00'", 40, 'an hour');
skips('price BETWEEN 700 AND 710', 40, 'decimals');
skips('id IN (5, 99990)', 40, 'the ends of the table');
skips('big IN (7000000000, 50007000000000, 99999000000000)', 40, 'a few values in between');
skips("day IN (DATE '2020-03-01', NULL, DATE '2022-03-01', DATE '1999-01-01')", 40, 'days');
skips('id IN (SELECT 7 WHERE false) OR id = 4711', 1000, 'either of two');
skips('nothing = 3', 40, 'a column that is NULL');
skips('id < 5 AND id > 6', 40, 'a contradiction');
skips('id = NULL::int', 1000, 'nothing at all');
is(sql(q{SET plan_cache_mode = force_generic_plan; PREPARE p(int[]) AS SELECT count(*), sum(id) FROM days WHERE id = ANY ($1);
	EXECUTE p('{1,2}'); EXECUTE p('{50000}'); EXECUTE p('{}'); EXECUTE p(NULL); EXECUTE p('{99999,NULL}')}), "2|3\n1|50000\n0|\n0|\n1|99999", 'lists that change');
my $counts = q{SELECT seq_scan, seq_tup_read FROM pg_stat_user_tables WHERE relname = 'days'};
my $counted = sub {
	my ($set) = @_;
	sessions_ended($node);
	sql('SELECT pg_stat_reset()');
	sql("$set SELECT count(*) FROM days WHERE id IN (5, 99990) AND price > 0");
	$node->poll_query_until('postgres', q{SELECT seq_scan > 0 FROM pg_stat_user_tables WHERE relname = 'days'}) or die 'nothing is counted';
	return sql($counts);
};
is($counted->(''), $counted->('SET hashgraph_join.enabled = off; SET hashgraph_join.aggregate = off;'), 'scans and rows are counted as ever');

# ---- what becomes of it when databases, tables and columns go
sub all_kept { return sql('SELECT count(*) FROM hashgraph_join_kept()', $_[0]) }
sql("SELECT hashgraph_join_unload(tab) FROM (SELECT DISTINCT tab FROM hashgraph_join_columns) t");
is(all_kept(), 0, 'nothing is kept');
sql(q{CREATE TABLE goes AS SELECT i AS a, i AS b, i::text AS c FROM generate_series(1, 20000) i});
sql('VACUUM goes');
is($load->('goes'), 3, 'three columns are');
sql('BEGIN; DROP TABLE goes; ROLLBACK');
is($load->('goes'), 3, 'a DROP that is rolled back costs what was kept');
sql('ALTER TABLE goes DROP b');
is(sql(q{SELECT string_agg("column", ' ' ORDER BY "column") FROM hashgraph_join_columns}), 'a c', 'a column that is dropped takes its own along');
sql('ALTER TABLE goes ALTER c TYPE varchar');
sql('CREATE TABLE other AS SELECT 1 AS a');
sql('VACUUM other');
is($load->('other'), 1, 'who loads another table');
is(sql(q{SELECT string_agg("column", ' ' ORDER BY tab::text, "column") FROM hashgraph_join_columns}), 'a a', 'finds chunks of another type');
sql('VACUUM FULL goes');
$load->('other');
is(all_kept(), 1, 'or of an earlier file');
sql('VACUUM goes');
is($load->('goes'), 2, 'what is there is loaded');
sql('BEGIN; SAVEPOINT a; DROP TABLE goes; ROLLBACK TO a; COMMIT');
answers('SELECT count(*), sum(a), max(c) FROM goes', 'or read');
is($load->('goes'), 2, 'and loaded');
sql('DROP TABLE goes');
is(all_kept(), 1, 'a table that is dropped takes its own along');
sql('CREATE DATABASE goes');
sql($_, 'goes') for 'CREATE EXTENSION hashgraph_join', 'CREATE TABLE goes AS SELECT i AS a, i::text AS b FROM generate_series(1, 20000) i', 'VACUUM goes';
is(sql("SELECT hashgraph_join_load('goes')", 'goes'), 2, 'columns of another database are loaded');
is(all_kept('goes'), 2, 'which sees them');
is(all_kept(), 1, 'and no other');
is($load->('other'), 0, 'who loads there');
is(all_kept('goes'), 2, 'leaves them alone');
sql('DROP DATABASE goes');

# ---- how much may be kept, and what loading takes
fails_with($node, "ALTER SYSTEM SET hashgraph_join.column_memory = '1025GB'", qr/outside the valid range/, 'more than a terabyte');
# Values that take no room in a row take eight bytes each before they are packed.
sql('CREATE TABLE many (' . join(', ', map { "c$_ bool" } 1 .. 200) . '); INSERT INTO many (c1) SELECT true FROM generate_series(1, 72000)');
sql('VACUUM (ANALYZE) many');
my $peak = q{SELECT substring(pg_read_file('/proc/self/status') FROM 'VmHWM:\s+(\d+)')::int};
my ($before, $chunks, $after) = split /\n/, sql("SET maintenance_work_mem = '4MB'; $peak; SELECT hashgraph_join_load('many'); $peak");
is($chunks, 200, 'many columns are loaded');
# the chunks themselves are 30 MB of that, and the table's pages
cmp_ok($after - $before, '<', 80 * 1024, 'with little memory at a time');
answers('SELECT ' . join(', ', map { "count(c$_)" } 1 .. 20) . ' FROM many', 'and read');

# ---- what is loaded by itself, but changes before anybody reads it
sql($_) for 'ALTER SYSTEM SET hashgraph_join.column_loading = auto', 'ALTER SYSTEM SET log_min_messages = debug1';
$node->restart;
sql('CREATE TABLE restless AS SELECT i AS a FROM generate_series(1, 20000) i');
sql('VACUUM restless');
for my $round (1 .. 9)
{
	column_loading($node, sub { sql('SELECT sum(a) FROM restless') for 1 .. 2 });
	sql($_) for 'UPDATE restless SET a = a + 1', 'VACUUM restless';
}
my $loads = () = slurp_file($node->logfile) =~ /column loader: [1-9]\d* chunks/g;
cmp_ok($loads, '>=', 2, 'what was never read is loaded again');
cmp_ok($loads, '<=', 5, 'later and later');

# ---- a store that is smaller than what is to be kept
sql($_) for 'ALTER SYSTEM RESET log_min_messages', 'ALTER SYSTEM SET hashgraph_join.column_loading = off', "ALTER SYSTEM SET hashgraph_join.column_memory = '1MB'";
$node->restart;
sql('CREATE TABLE long AS SELECT i AS a, md5(i::text) AS t FROM generate_series(1, 60000) i');
sql('VACUUM long');
is($load->('secret'), 3, 'a small table is loaded');
is(sql("SELECT hashgraph_join_load('long', '{t}')"), 1, 'a column too large for the store is tried');
is(kept('secret'), 3, 'for which nothing has to make room');
is(sql("SELECT hashgraph_join_load('long', '{t}')"), 0, 'once');
is(sql(q{SELECT "column" || pages || rows FROM hashgraph_join_columns WHERE tab = 'long'::regclass}), 't00', 'for nothing');
answers('SELECT count(*), min(t), max(t) FROM long', 'it is read from the table');

unlike(slurp_file($node->logfile), qr/TRAP|PANIC|was terminated by signal|leak/, "the server's log");
$node->stop;
done_testing();
