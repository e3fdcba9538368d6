# What docs/gpu.md and docs/tuning.md tell the reader to run runs, and the plan that they
# show is the plan.  A fake device stands in for the GPU (test/fake).
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $library = "$FindBin::Bin/../fake/fake.so";
my $node = new_server('documents', "shared_preload_libraries = 'hashgraph_join'", "hashgraph_join.column_memory = '16MB'",
	'max_parallel_workers_per_gather = 0', "hashgraph_join.cuda_library = '$library'");
$node->safe_psql('postgres', q{
	CREATE TABLE fact AS SELECT i % 20000 AS k, i AS v FROM generate_series(1, 200000) i;
	CREATE TABLE dim AS SELECT i AS k, i % 7 AS g FROM generate_series(1, 20000) i;
	VACUUM ANALYZE fact, dim;
});

my %blocks;
for my $name ('gpu', 'tuning')
{
	my $text = slurp_file("$FindBin::Bin/../docs/$name.md");
	$blocks{$name} = [ $text =~ /^```sql\n(.*?)^```$/msg ];
	cmp_ok(scalar @{ $blocks{$name} }, '>', 1, "docs/$name.md has statements");
	for my $sql (@{ $blocks{$name} })
	{
		my ($rc, $out, $err) = $node->psql('postgres', $sql, on_error_stop => 1);
		is("$rc$err", 0, 'docs/' . "$name.md: " . ($sql =~ /^(.*)$/m)[0]);
	}
	next unless $name eq 'gpu';
	my ($shown) = $text =~ /^The plan is\n\n```\n(.*?)^```$/ms;
	my ($statement) = $text =~ /^(EXPLAIN \(COSTS OFF\) .*;)$/m;
	is($node->safe_psql('postgres', "SET hashgraph_join.engine = cuda; SET hashgraph_join.force = on; $statement") . "\n", $shown =~ s/^ //mgr, 'the plan of docs/gpu.md');
}
like($node->safe_psql('postgres', "SET hashgraph_join.engine = cuda; SET hashgraph_join.force = on; EXPLAIN (ANALYZE) SELECT d.g, count(*), sum(f.v) FROM fact f JOIN dim d USING (k) GROUP BY d.g"),
	qr/Device Pipeline: yes.*Host Decode: .*Transfer: .*Kernels: .*Sent: .*Device Memory: .*Engine: cuda/s, 'what EXPLAIN ANALYZE says of a pipeline');
like($node->safe_psql('postgres', "SET work_mem = '64kB'; SET hashgraph_join.force = on; EXPLAIN (ANALYZE) SELECT d.g, f.v FROM fact f JOIN dim d USING (k)"),
	qr/Spilled Inner: .*Spilled Outer: .*Fallback: .*partitions \(the build side does not fit into memory\)|Fallback: .*partitions \(the build side does not fit into memory\).*Spilled Inner: /s, 'and of partitions');
like($node->safe_psql('postgres', "SELECT hashgraph_join_load('fact', '{k, v}') > 0; SET hashgraph_join.force = on; EXPLAIN (ANALYZE) SELECT d.g, f.v FROM fact f JOIN dim d USING (k)"),
	qr/Outer Source: columns \(\d+% of \d+ pages\)/, 'and of columns that are kept');

$node->stop;
done_testing();
