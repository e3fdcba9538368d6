# The stress of columns kept in memory: tables, a function that compares PostgreSQL's answers
# with ours, and what pgbench does to them all at once.  test/t/020_kept_columns.pl uses it,
# and test/gpu/sql.sh where there is nothing but Perl itself, by
#
#   perl test/lib/KeptStress.pm FOLDER
#
# which writes tables.sql and the scripts into a folder, and prints pgbench's arguments for
# these, one a line.
package KeptStress;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw($KEPT_TABLES %KEPT_SCRIPTS kept_script_files);

# A few queries with PostgreSQL's nodes and with ours, on the snapshot of the caller:
# an error unless they agree.
our $KEPT_TABLES = q{
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
			'SELECT v, count(*), sum(n) FROM fact GROUP BY v',
			'SELECT count(n), min(n), max(n), avg(n), sum(n * 2 - v), sum(n * n) FILTER (WHERE n > 10) FROM fact WHERE n BETWEEN 100 AND 4000.5 AND v < 90',
			'SELECT id, t, n, sum(n), sum(n * 3) FROM fact WHERE n < 3000 GROUP BY id, t, n',
			'SELECT id, sum(n), max(n + 0.125) FROM fact GROUP BY id',
			'SELECT t, count(*), sum(id) FROM fact WHERE id BETWEEN 30000 AND 31000 OR v IS NULL GROUP BY t',
			'SELECT count(*), sum(k), min(t) FROM fact WHERE id BETWEEN 30000 AND 31000 AND n >= 4300',
			'SELECT f.id, d.g FROM fact f JOIN dim d USING (k) WHERE f.id IN (7, 8000, 8010) AND f.n < 1200.5',
			'SELECT count(*), sum(id) FROM fact WHERE n = 700',
			'SELECT v, round(stddev(n), 6), (array_agg(n ORDER BY id, n))[1:3], md5(string_agg(n::text, '','' ORDER BY id, n)) FROM fact GROUP BY v',
			'SELECT v % 7, sum(n), round(var_pop(n + v), 6), count(DISTINCT n), sum(DISTINCT n) FILTER (WHERE id < 999), max(t || n) FROM fact GROUP BY 1',
			'SELECT d.g, sum(n), round(stddev(f.n), 6), count(*) FILTER (WHERE n < 5) FROM fact f JOIN dim d USING (k) GROUP BY 1'] LOOP
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
	-- two runs of pages, of as few rows as have all that is looked for
	CREATE TABLE fact (id int, k int, v smallint, t text, n numeric(12,2), pad char(1250));
	INSERT INTO fact SELECT i, i % 1000, i % 100, CASE WHEN i % 50 > 0 THEN 'text ' || i % 70 END, i / 7.0, '' FROM generate_series(2, 45000, 3) i;
	CREATE TABLE dim (k int, g int);
	INSERT INTO dim SELECT i, i % 10 FROM generate_series(0, 799) i;
};

# Each with its weight.
our %KEPT_SCRIPTS = (
	reader => [8, 'SELECT compare();'],
	parallel => [2, 'SELECT compare(2);'],
	repeatable => [3, "BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT compare();\nSELECT pg_sleep(0.05);\nSELECT compare();\nCOMMIT;"],
	twice => [3, 'SELECT compare(), pg_sleep(0.05), compare();'],
	load => [8, "SELECT hashgraph_join_load('fact');\nSELECT hashgraph_join_load('dim');"],
	unload => [1, "SELECT hashgraph_join_unload('dim');"],
	some => [1, "SELECT hashgraph_join_unload('fact');\nSELECT hashgraph_join_load('fact', '{id, k, v}');"],
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

sub write_file
{
	my ($file, $text) = @_;
	open my $fh, '>', $file or die "$file: $!";
	print $fh $text;
	close $fh or die "$file: $!";
	return;
}

# Writes scripts of these names into a folder.  Returns pgbench's arguments for them.
sub kept_script_files
{
	my ($folder, @names) = @_;
	my @arguments;
	for my $name (sort @names)
	{
		my ($weight, $sql) = @{ $KEPT_SCRIPTS{$name} };
		write_file("$folder/$name.sql", "$sql\n");
		push @arguments, '--file', "$folder/$name.sql\@$weight";
	}
	return @arguments;
}

sub main
{
	die "usage: KeptStress.pm FOLDER\n" if @ARGV != 1;
	write_file("$ARGV[0]/tables.sql", $KEPT_TABLES);
	print map { "$_\n" } kept_script_files($ARGV[0], keys %KEPT_SCRIPTS);
	return;
}
main() unless caller;

1;
