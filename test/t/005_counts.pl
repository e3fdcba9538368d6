# What is counted must be what PostgreSQL counts for the same query: rows of
# every plan node in EXPLAIN ANALYZE, buffers, and the statistics views.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('main', "max_parallel_workers_per_gather = 0", "work_mem = '64MB'", "shared_buffers = '64MB'");
$node->safe_psql(
	'postgres', q{
	CREATE TABLE fact (id int, k int, s int, v int, f float8, t text);
	INSERT INTO fact SELECT i, i % 2000, i % 90, i % 37, i * 0.25, 'text ' || i % 11 FROM generate_series(1, 60000) i;
	CREATE TABLE dim (k int, g int, sub int);
	INSERT INTO dim SELECT i, i % 10, i % 50 FROM generate_series(0, 1499) i;
	CREATE TABLE store (s int, region int);
	INSERT INTO store SELECT i, i % 7 FROM generate_series(0, 79) i;
	CREATE TABLE none (k int);
	DELETE FROM fact WHERE id % 10 = 3;
	UPDATE dim SET g = g + 1 WHERE k % 3 = 0;
	VACUUM (ANALYZE) fact;
	UPDATE fact SET v = v + 1 WHERE id % 20 = 5;
	ANALYZE dim; ANALYZE store; ANALYZE none;
});

my $common = 'SET enable_nestloop = off; SET enable_mergejoin = off; SET hash_mem_multiplier = 4; SET join_collapse_limit = 1;';
my %way = (
	stock => $common,
	ours => "$FORCED $common",
	tuples => "$FORCED $common SET hashgraph_join.source = tuples;",
	'no aggregate' => "$FORCED $common SET hashgraph_join.aggregate = off;");

my %query = (
	'rows' => 'SELECT f.id, d.g FROM fact f JOIN dim d USING (k)',
	'a sum' => 'SELECT count(*), sum(f.v) FROM fact f JOIN dim d USING (k)',
	'groups' => 'SELECT d.g, count(*), sum(f.v) FROM fact f JOIN dim d USING (k) GROUP BY 1',
	'groups with HAVING' => 'SELECT d.g, count(*) FROM fact f JOIN dim d USING (k) GROUP BY 1 HAVING count(*) > 4000',
	'filters on both scans' => 'SELECT count(*) FROM fact f JOIN dim d USING (k) WHERE f.v < 20 AND d.g <> 3',
	'a filter with OR and IN' => 'SELECT f.id FROM fact f JOIN dim d USING (k) WHERE (f.v IN (1, 5, 30) OR f.f > 9000) AND d.g IS NOT NULL',
	'a filter that we do not know' => q{SELECT count(*) FROM fact f JOIN dim d USING (k) WHERE f.t LIKE '%1%' AND f.v % 3 = 1 AND d.g % 2 = 0},
	'some of both kinds' => q{SELECT count(*) FROM fact f JOIN dim d USING (k) WHERE f.t LIKE '%1%' AND f.v < 30 AND f.id > 100},
	'a join filter' => 'SELECT count(*) FROM fact f JOIN dim d ON f.k = d.k AND f.v > d.sub',
	'a left join' => 'SELECT count(*), count(d.k) FROM fact f LEFT JOIN dim d ON f.k = d.k AND d.g > 4',
	'a left join with a filter above' => 'SELECT count(*) FROM fact f LEFT JOIN dim d ON f.k = d.k WHERE d.k IS NULL OR f.v > 10',
	'a full join' => 'SELECT count(*), count(d.k), count(f.k) FROM fact f FULL JOIN dim d USING (k)',
	'a semi join' => 'SELECT count(*) FROM fact f WHERE EXISTS (SELECT 1 FROM dim d WHERE d.k = f.k AND d.g = 1)',
	'an anti join' => 'SELECT count(*) FROM fact f WHERE NOT EXISTS (SELECT 1 FROM dim d WHERE d.k = f.k)',
	'a star' => 'SELECT s.region, d.g, count(*), sum(f.v) FROM fact f JOIN dim d USING (k) JOIN store s ON f.s = s.s GROUP BY 1, 2',
	'a star with filters' => 'SELECT s.region, count(*) FROM fact f JOIN dim d USING (k) LEFT JOIN store s ON f.s = s.s AND s.region > 2 WHERE d.g < 5 AND f.v > 3 GROUP BY 1',
	'rows of a star' => 'SELECT f.id, d.g, s.region FROM fact f JOIN dim d USING (k) JOIN store s ON f.s = s.s',
	'a sample' => 'SELECT count(*) FROM fact f TABLESAMPLE SYSTEM (50) REPEATABLE (3) JOIN dim d USING (k)',
	'a rescan' => 'SELECT x.i, (SELECT count(*) FROM fact f JOIN dim d USING (k) WHERE f.v > x.i) FROM generate_series(1, 4) AS x(i)');

# { 'fact rows removed loops' ... } of the scans, and rows of the join and of
# the whole.
sub counts_of
{
	my ($json) = @_;
	my %count;
	my ($top) = @{ decode_json($json) };
	my $walk;
	$walk = sub {
		my ($plan) = @_;
		my $what = $plan->{'Node Type'};
		if ($what =~ /Scan$/ && $plan->{'Relation Name'})
		{
			push @{ $count{scans} }, sprintf '%s: %g rows, %g removed, %g loops', $plan->{'Alias'}, $plan->{'Actual Rows'},
			  $plan->{'Rows Removed by Filter'} || 0, $plan->{'Actual Loops'};
		}
		elsif ($what eq 'Hash Join' || ($plan->{'Custom Plan Provider'} || '') eq 'HashGraphJoin')
		{
			push @{ $count{joins} }, sprintf '%g rows, %g by join filter, %g by filter', $plan->{'Actual Rows'},
			  $plan->{'Rows Removed by Join Filter'} || 0, $plan->{'Rows Removed by Filter'} || 0;
		}
		elsif ($what eq 'Aggregate' || ($plan->{'Custom Plan Provider'} || '') eq 'HashGraphAgg')
		{
			push @{ $count{aggregates} }, sprintf '%g rows, %g removed', $plan->{'Actual Rows'}, $plan->{'Rows Removed by Filter'} || 0;
		}
		$walk->($_) for @{ $plan->{Plans} || [] };
	};
	$walk->($top->{Plan});
	$count{$_} = join '; ', sort @{ $count{$_} } for keys %count;
	$count{buffers} = $top->{Plan}{'Shared Hit Blocks'} + $top->{Plan}{'Shared Read Blocks'};
	$count{rows} = $top->{Plan}{'Actual Rows'};
	return \%count;
}

for my $what (sort keys %query)
{
	my $q = $query{$what};
	my %got;
	for my $way (sort keys %way)
	{
		# Rows that an upper join has no match for do not come to the lower one, but without filters.
		my $before = $way{$way} . ($what =~ /star/ ? ' SET hashgraph_join.filter = off;' : '');

		# twice: the first time may set hint bits, prune, and fill caches
		$node->safe_psql('postgres', "$before $q");
		$got{$way} = counts_of($node->safe_psql('postgres', "$before EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) $q"));
	}
	for my $way (grep { $_ ne 'stock' } sort keys %way)
	{
		is_deeply($got{$way}, $got{stock}, "$what, $way: EXPLAIN ANALYZE counts what PostgreSQL's counts")
		  or diag(explain([ $got{stock}, $got{$way} ]));
	}
}

# ---- the statistics views
my $views = q{
	SELECT relname, seq_scan, seq_tup_read, idx_scan, n_tup_ins, heap_blks_read + heap_blks_hit AS blocks
	  FROM pg_stat_user_tables JOIN pg_statio_user_tables USING (relid, relname) ORDER BY 1};
for my $what (sort keys %query)
{
	my %got;
	for my $way (sort keys %way)
	{
		my $plain = 'SET hashgraph_join.enabled = off; SET hashgraph_join.require = off;';
		$plain = '' if $way eq 'stock';
		sessions_ended($node);
		$got{$way} = $node->safe_psql('postgres', "$way{$way} SELECT pg_stat_reset() \\g /dev/null
			$query{$what} \\g /dev/null
			SELECT pg_stat_force_next_flush() \\g /dev/null
			$plain RESET enable_nestloop; RESET enable_mergejoin; $views");
	}
	like($got{stock}, qr/^dim\|[1-9]/m, "$what: the statistics have it");
	is($got{$_}, $got{stock}, "$what, $_: the statistics views have what PostgreSQL's query leaves there")
	  for grep { $_ ne 'stock' } sort keys %way;
}

# ---- a temporary table's blocks are local ones
for my $way ('ours')
{
	my $temp = 'CREATE TEMP TABLE tf AS SELECT * FROM fact; CREATE TEMP TABLE td AS SELECT * FROM dim; SELECT count(*) FROM tf \g /dev/null
		SELECT count(*) FROM td \g /dev/null
		EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) SELECT count(*), sum(v) FROM tf JOIN td USING (k)';
	my %got;
	for my $w ('stock', $way)
	{
		my ($top) = @{ decode_json($node->safe_psql('postgres', "$way{$w} $temp")) };
		$got{$w} = $top->{Plan}{'Local Hit Blocks'} + $top->{Plan}{'Local Read Blocks'};
	}
	cmp_ok($got{stock}, '>', 100, 'temporary tables: PostgreSQL reads local blocks');
	is($got{$way}, $got{stock}, 'temporary tables: so do we');
}

$node->stop;
done_testing();
