# Scans of one table with the same conditions in one query (src/scan/seen_quals.c): what one has found
# out about kept columns is not found out again, and answers are PostgreSQL's, whatever the conditions
# are, beside writers, and where there is little memory.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('seen', "shared_preload_libraries = 'hashgraph_join'", "hashgraph_join.column_memory = '64MB'",
	'hashgraph_join.column_loading = off', 'hashgraph_join.min_rows = 0', 'hashgraph_join.force = on', 'max_parallel_workers_per_gather = 0');

sub sql { return $node->safe_psql('postgres', $_[0]) }
sub load { sql("VACUUM (ANALYZE) $_"), sql("SELECT hashgraph_join_load('$_')") foreach @_ }

# Pages that a query has not filtered again.
sub not_again
{
	my ($query, $set) = @_;
	my $plan = sql(($set // '') . "; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query");
	my $pages = 0;
	$pages += $1 while $plan =~ /, (\d+) filtered before/g;
	return $pages;
}

# The answer, and how many pages at least were not filtered again (0: none).
sub is_right
{
	my ($query, $pages, $name, $set) = @_;
	$set //= '';
	is(sql("$set; $query"), sql("$set; SET hashgraph_join.enabled = off; SET hashgraph_join.aggregate = off; SET hashgraph_join.rewrite = off; $query"), $name);
	my $found = not_again($query, $set);
	ok($pages == 0 ? $found == 0 : $found >= $pages, $pages == 0 ? '... all pages are filtered' : "... $pages pages are not filtered again") or diag("$found pages: $query");
}

sql(q{
	CREATE TABLE words (id int, k int, t text, c char(9), n name) WITH (autovacuum_enabled = off, fillfactor = 40);
	INSERT INTO words SELECT i, i % 5000, CASE WHEN i % 13 > 0 THEN md5(i::text) END, i % 100, 'n' || i FROM generate_series(1, 40000) i;
	CREATE TABLE other_words (LIKE words) WITH (autovacuum_enabled = off);
	INSERT INTO other_words SELECT * FROM words WHERE id % 3 > 0;
	CREATE TABLE numbers (k int, v int) WITH (autovacuum_enabled = off);
	INSERT INTO numbers SELECT i % 5000, i FROM generate_series(1, 20000) i;
	CREATE INDEX ON numbers (k);
	CREATE FUNCTION any_text(t text) RETURNS bool LANGUAGE plpgsql AS 'begin return true; end';
});
load('words', 'other_words', 'numbers');
# the first batches have few rows, whose pages may be looked at one by one
my $pages = sql("SELECT relpages * 9 / 10 FROM pg_class WHERE relname = 'words'");
# key filters may drop rows before the conditions see them
my $unfiltered = 'SET hashgraph_join.filter = off';

# ---- the same conditions
my $twice = 'SELECT count(*), sum(a.id), sum(b.id), min(a.t) FROM words a JOIN words b ON a.k = b.k AND a.id <> b.id WHERE %s AND %s';
my $both = sub { return sprintf($twice, $_[0], $_[0] =~ s/\ba\./b./gr) };
is_right($both->("a.t LIKE 'a1%'"), $pages, 'two scans by the same pattern', $unfiltered);
is_right($both->("a.t LIKE '%77%' AND a.id > 300 AND a.t NOT LIKE '%a%'"), $pages, 'by several conditions', $unfiltered);
is_right($both->("(a.t IS NULL OR a.t LIKE '5%')"), $pages, 'by NULLs', $unfiltered);
is_right($both->("a.c = '17'"), $pages, 'by strings that come often', $unfiltered);
is_right($both->("a.t LIKE 'none of these%'"), 0, 'nothing passes: the other side is not read');
is_right("SELECT count(*) FROM numbers WHERE k IN (SELECT k FROM words WHERE t LIKE 'a%') OR k IN (SELECT k FROM words WHERE t LIKE 'a%' AND id > 7)", 0, 'by other conditions');
is_right("SELECT count(*), sum(x.v) FROM numbers x JOIN words a ON a.k = x.k JOIN numbers y ON y.v = x.v + 1 JOIN words b ON b.k = y.k WHERE a.t LIKE 'ab%' AND b.t LIKE 'ab%'", $pages, 'two build sides');
is_right(sprintf($twice, "a.t LIKE 'a1%'", "b.t LIKE 'a2%'"), 0, 'other patterns have other rows');
is_right("SELECT count(*), sum(a.id) FROM words a JOIN other_words b USING (k) WHERE a.t LIKE 'a1%' AND b.t LIKE 'a1%'", 0, 'and so have other tables');
is_right($both->('a.id % 7 = 3'), 0, 'integers are compared again');
is_right("SELECT count(*), sum(v) FROM numbers x WHERE v > (SELECT avg(y.v) FROM numbers y WHERE y.k = x.k) AND k IN (SELECT k FROM words WHERE t LIKE 'a1%') AND k IN (SELECT k + 0 FROM words WHERE t LIKE 'a1%')", 1, 'groups that are restricted',
	'SET hashgraph_join.rewrite = force');

# ---- conditions that are not for others, or not for ever
is_right($both->('any_text(a.t)'), 0, 'a volatile function is called for every row');
is_right("SELECT count(*), sum(id) FROM words a WHERE a.t LIKE 'a%' AND EXISTS (SELECT FROM words b WHERE b.k = a.k AND b.t LIKE (SELECT min(left(n.v::text, 1)) || '%' FROM numbers n WHERE n.k = 1))", 0, 'what another part of the query says');
is_right("SELECT (SELECT count(*) FROM words a JOIN words b USING (k) WHERE a.t LIKE x || '%' AND b.t LIKE x || '%') FROM (VALUES ('a'), ('b1'), ('c')) v(x)", 0, 'what a row around it says',
	'SET hashgraph_join.rewrite = off');
my $prepared = 'PREPARE p(text) AS ' . $both->('a.t < $1');
is(sql("SET plan_cache_mode = force_generic_plan; $prepared; EXECUTE p('2'); EXECUTE p('17'); EXECUTE p('2')"),
	sql("SET plan_cache_mode = force_generic_plan; SET hashgraph_join.enabled = off; $prepared; EXECUTE p('2'); EXECUTE p('17'); EXECUTE p('2')"), 'each execution has its parameters');
like(sql("SET plan_cache_mode = force_generic_plan; $prepared; EXPLAIN (ANALYZE) EXECUTE p('2')"), qr/filtered before/, '... and sees its rows once');

# ---- little memory, many rows, workers
is_right($both->("a.t LIKE 'a1%'"), 0, 'no memory for all pages', "SET work_mem = '64kB'");
is_right("SELECT count(*), sum(a.id) FROM words a JOIN words b ON a.id = b.id WHERE a.t LIKE '%' AND b.t LIKE '%'", 1, 'memory for the rows of some pages', "SET work_mem = '256kB'");
is_right($both->("a.t LIKE 'a%'"), 1, 'in parallel', 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET hashgraph_join.worker_time = 0');

# ---- writers between the two scans
for my $kind ('committed', 'rolled back')
{
	my $reader = $node->background_psql('postgres');
	my $query = "SELECT count(*), sum(a), sum(b) FROM (SELECT a.id a, b.id b FROM words a JOIN words b ON a.k = b.k WHERE a.t LIKE 'a1%' AND b.t LIKE 'a1%') x";
	my $want = sql("SET hashgraph_join.enabled = off; $query");
	$reader->query_safe("BEGIN; DECLARE c CURSOR FOR SELECT a.id, b.id FROM words a JOIN words b ON a.k = b.k WHERE a.t LIKE 'a1%' AND b.t LIKE 'a1%'; CREATE TEMP TABLE got (a int, b int)");
	my $first = $reader->query_safe('FETCH 1 FROM c');
	sql('BEGIN; DELETE FROM words WHERE id % 4 = 0; UPDATE words SET t = reverse(t) WHERE id % 4 = 1; ' . ($kind eq 'committed' ? 'COMMIT' : 'ROLLBACK'));
	load('words');
	my @rows = map { [split /\|/] } split(/\n/, $first . "\n" . $reader->query_safe('FETCH ALL FROM c'));
	my ($count, $a, $b) = (0, 0, 0);
	($count, $a, $b) = ($count + 1, $a + $_->[0], $b + $_->[1]) for grep { @$_ == 2 } @rows;
	is("$count|$a|$b", $want, "rows of a cursor, when others have $kind changes of the table");
	$reader->query_safe('COMMIT');
	$reader->quit;
}
is_right($both->("a.t LIKE 'a1%'"), 1, 'a table of which not all pages are kept');
# a query's own rows come later than its snapshot
is(sql("WITH more AS (INSERT INTO words SELECT -id, k, t FROM words RETURNING 1) SELECT (SELECT count(*) FROM more) > 0, count(*) FROM words a JOIN words b USING (k) WHERE a.t LIKE 'a%' AND b.t LIKE 'a%'"),
	sql("SET hashgraph_join.enabled = off; SELECT true, count(*) FROM words a JOIN words b USING (k) WHERE a.id > 0 AND b.id > 0 AND a.t LIKE 'a%' AND b.t LIKE 'a%'"), 'a query that writes the table');

done_testing();
