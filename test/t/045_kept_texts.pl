# LIKE over strings of a kept column, which lie one behind the other in its chunk and are looked
# through together (src/expr/program_like.c, step 6), and parts of them (src/expr/program_part.c):
# PostgreSQL's rows, whatever is between them.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server(
	'main', "shared_preload_libraries = 'hashgraph_join'", 'max_parallel_workers_per_gather = 0', 'hashgraph_join.column_loading = off',
	"hashgraph_join.column_memory = '64MB'", 'synchronous_commit = on');

# Words at the ends of values and across them, headers that look like letters (of 56 bytes: an s), values
# of one header byte and of four, empty ones, compressed ones, few values and many, with NULLs and without.
# Of `most`, all but one of a hundred are different, so that runs of them lie one behind the other.
$node->safe_psql(
	'postgres', q{
	CREATE TABLE f (id int, many text, nulls text, mixed text, few text, padded char(30), bytes bytea, most text);
	INSERT INTO f SELECT i, w, CASE WHEN i % 11 > 0 THEN w END,
		CASE WHEN i % 997 = 0 THEN repeat('special requests ', 400) || i ELSE w END, 'few ' || i % 9, 'p' || i || (ARRAY['special', 'requests', ''])[1 + i % 3], convert_to(w, 'UTF8'),
		CASE WHEN i % 101 = 0 THEN 'special twice' WHEN i % 1009 = 0 THEN repeat('special requests ', 400) || i ELSE i || '#' || w END
	FROM (SELECT i, CASE i % 13 WHEN 0 THEN i || ' spec' WHEN 1 THEN 'ial ' || i || ' special' WHEN 2 THEN 'requests' || i WHEN 3 THEN ''
			WHEN 4 THEN 'x' || i || repeat('-', 55 - length(i::text)) WHEN 5 THEN 'pecial ' || i WHEN 6 THEN repeat('long ', 40) || i || ' special, then requests'
			WHEN 7 THEN i || ' requests, then special' WHEN 8 THEN 'sspecial' || i || 'é special rrequests' WHEN 9 THEN i || ' 100%_ \\ s' WHEN 10 THEN 's' || i ELSE md5(i::text) END AS w
		FROM generate_series(1, 20000) i) s;
	-- one row of each 50 of them
	CREATE TABLE sparse AS SELECT id, many, id % 50 AS part FROM f;
	CREATE TABLE d AS SELECT i AS id FROM generate_series(1, 20000) i;
	VACUUM ANALYZE f, d, sparse;
	SELECT hashgraph_join_load('f'), hashgraph_join_load('d'), hashgraph_join_load('sparse');
});

my $stock = 'SET hashgraph_join.enabled = off;';
for my $pattern ('%special%', '%special%requests%', '%s%', '%ss%', '%ial%', '%special', 'special%', '%, then %', '%é%', '%100\\%\\_ \\\\ s%', '%', '%%', '', '%e%e%e%', '%long long%', '%nowhere%', '%0%1%', '%special%special%', '%ls%', '%_special%', '%x1%', '%a%', '%---%')
{
	for my $column ('many', 'most', 'nulls', 'mixed', 'few', 'padded')
	{
		my $q = "SELECT count(*) FILTER (WHERE $column LIKE '$pattern'), count(*) FILTER (WHERE $column NOT LIKE '$pattern') FROM f;"
		  . " SELECT count(*), sum(id) FROM f WHERE $column NOT LIKE '$pattern'; SELECT count(*), sum(f.id) FROM f JOIN d USING (id) WHERE $column LIKE '$pattern' AND f.id % 3 > 0";
		is($node->safe_psql('postgres', "$FORCED SET hashgraph_join.require = off; $q"), $node->safe_psql('postgres', "$stock $q"), "$column LIKE '$pattern'");
	}
	my $q = "SELECT count(*), sum(id) FROM sparse WHERE part = 7 AND many LIKE '$pattern'; SELECT count(*), sum(id) FROM f WHERE bytes LIKE convert_to(\$p\$$pattern\$p\$, 'UTF8')";
	is($node->safe_psql('postgres', "$FORCED SET hashgraph_join.require = off; $q"), $node->safe_psql('postgres', "$stock $q"), "few of the rows, and bytes: '$pattern'");
}
for my $part ('substring(many from 1 for 2)', 'substring(nulls from 3 for 5)', 'left(mixed, 7)', 'substr(padded, 2, 16)', 'left(padded, 1)', 'left(few, 5)', 'substring(many from 0 for 16)')
{
	my $q = "SELECT $part, count(*), sum(id) FROM f GROUP BY 1 ORDER BY 3, 2, 1; SELECT count(*), sum(f.id) FROM f JOIN d USING (id) WHERE $part IN ('s', 'sp', 'few 3', 'special', 'p', 'x1', 'ecial') AND f.id % 3 > 0";
	is($node->safe_psql('postgres', "$FORCED SET hashgraph_join.require = off; $q"), $node->safe_psql('postgres', "$stock $q"), $part);
}
like($node->safe_psql('postgres', "$FORCED EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT count(*), sum(id) FROM f WHERE many LIKE '%special%requests%'"),
	qr/Source: columns \(100% of \d+ pages\)/, 'the strings are those that are kept');

done_testing();
