# Aggregates over chains of joins that run as a pipeline of a device, and rows of
# such chains, made up at random: types of joins, NULLs, duplicates, clauses, group
# keys; then what ends a pipeline early.  test/fake stands in for the device and
# interprets the pipelines; the answers are PostgreSQL's.
#
#   HGJ_PIPELINES=500 HGJ_SEED=7    how many chains, and which
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $library = "$FindBin::Bin/../fake/fake.so";
my $node = new_server('main', 'max_parallel_workers_per_gather = 0', "work_mem = '64MB'", 'join_collapse_limit = 1', 'log_error_verbosity = terse');
$node->safe_psql(
	'postgres', q{
	CREATE TABLE f AS SELECT i AS id, CASE WHEN i % 17 > 0 THEN i % 1000 END AS a1, (i % 77)::int8 AS b1, (i % 13)::int2 AS c1,
		CASE WHEN i % 11 > 0 THEN i % 1000 - 500 END AS v, (i::int8 * 300719925474) * (1 - 2 * (i % 2)) AS w, CASE WHEN i % 5 > 0 THEN (i % 64) / 4.0 - 3 END::float8 AS x,
		((i % 32) / 2.0)::float4 AS y, CASE WHEN i % 7 > 0 THEN i % 3 = 0 END AS b, CASE WHEN i % 6 > 0 THEN 'name ' || i % 8 END AS t, date '2020-01-01' + (i % 500)::int AS d FROM generate_series(1, 6000) i;
	CREATE TABLE a AS SELECT i AS k, i % 7 AS g, CASE WHEN i % 4 > 0 THEN i % 3 END AS h, i % 50 - 10 AS p, CASE WHEN i % 9 > 0 THEN i % 2 = 0 END AS z, 'name ' || i % 5 AS n
		FROM generate_series(1, 900) i;
	INSERT INTO a SELECT i, NULL, 5, i, NULL, NULL FROM generate_series(1, 60) i;
	INSERT INTO a VALUES (NULL, 1, 1, 1, true, 'null');
	CREATE TABLE b AS SELECT i::int8 AS k, (i % 5)::int2 AS g, CASE WHEN i % 6 > 0 THEN i % 40 - 10 END AS h, i % 30 AS p, i % 3 = 1 AS z, 'b' || i % 3 AS n FROM generate_series(0, 59) i;
	CREATE TABLE c AS SELECT i::int2 AS k, i % 4 AS g, i AS h, i * 3 AS p, i > 5 AS z, 'c' || i AS n FROM generate_series(0, 11) i;
	ALTER TABLE c ADD PRIMARY KEY (k);
	CREATE TABLE hot AS SELECT CASE WHEN i % 10 = 0 THEN i % 50 ELSE 7 END AS k, i % 3 AS g, i AS h, i % 20 AS p, i % 2 = 0 AS z, 'h' AS n FROM generate_series(1, 90) i;
	CREATE TABLE none AS SELECT * FROM a WHERE false;
	CREATE TABLE many AS SELECT i AS id, i % 900 AS a1 FROM generate_series(1, 90000) i;
	ANALYZE f, a, b, c, hot, none;
});
sub faults { fake_faults($node, @_); return; }
faults();
my $device = "$FORCED SET hashgraph_join.require = off; SET hashgraph_join.engine = cuda; SET hashgraph_join.cuda_library = '$library';";
my $agg = "$device SET hashgraph_join.require = 'aggregate';";
my $digest = sub { return "SELECT count(*), md5(string_agg(x::text, ';' ORDER BY x::text COLLATE \"C\")) FROM ($_[0]) x" };
my $explain = 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)';

# ---- chains at random
srand($ENV{HGJ_SEED} // 1);
sub any { return $_[ rand @_ ]; }

# What the host computes for a device, of a column of strings.
sub of_text
{
	my $t = any(@_);
	return any("length($t)", "substring($t, 1, 5)", "coalesce($t, 'name 2')", "left($t, 3)", "extract(year FROM d)", "$t IS NULL", "coalesce(length($t), 7)");
}

# A clause over integer and boolean columns, and one of strings, where there are any.
my @texts;
sub clause
{
	my ($ints, $bools, $depth) = @_;
	my $i = sub { any(@$ints, @$ints, int(rand 60) - 15) };
	if (@texts && rand > 0.8)
	{
		my $t = any(@texts);
		return any("$t LIKE '%" . int(rand 5) . "'", "$t IS NULL", "$t IN ('name 1', 'b2', 'c5', 'name 4')", "coalesce($t, 'none') <> 'name 3'", "$t > 'name 2'",
			"coalesce(length($t), 6) > " . int(rand 8), "length($t) < " . $i->());
	}
	my $n = int rand($depth > 0 ? 12 : 8);
	return $i->() . any(' < ', ' <= ', ' > ', ' >= ', ' <> ', ' = ') . $i->() if $n < 3;
	return $i->() . any(' IS NULL', ' IS NOT NULL') if $n == 3;
	return any(@$bools) . any('', ' IS TRUE', ' IS NOT TRUE', ' IS FALSE', ' IS NOT FALSE', ' IS UNKNOWN') if $n == 4;
	return $i->() . any(' IN', ' NOT IN') . ' (1, 4, ' . int(rand 30) . any('', ', NULL') . ')' if $n == 5;
	return $i->() . ' IS DISTINCT FROM ' . $i->() if $n == 6;
	return 'coalesce(' . $i->() . ', ' . $i->() . ', 3) > ' . $i->() if $n == 7;
	return 'CASE WHEN ' . clause($ints, $bools, $depth - 1) . ' THEN ' . clause($ints, $bools, $depth - 1) . ' ELSE ' . any(@$bools) . ' END' if $n == 8;
	return 'NOT (' . clause($ints, $bools, $depth - 1) . ')' if $n == 9;
	return '(' . clause($ints, $bools, $depth - 1) . any(' AND ', ' OR ') . clause($ints, $bools, $depth - 1) . ')';
}

# A chain of joins as a subquery, and what columns it has.
sub chain
{
	my ($joins, $with_texts) = @_;
	@texts = $with_texts ? ('t') : ();
	my $sql = 'SELECT * FROM f' . (rand > 0.5 ? ' WHERE ' . clause([qw(v a1 c1)], ['b'], 1) : '');
	my @ints = qw(a1 b1 c1 v);
	my @bools = ('b');
	my @names;
	my %type;
	for my $j (1 .. $joins)
	{
		my $dim = any(qw(a a b c hot), rand > 0.9 ? 'none' : 'b');
		my $type = any(qw(inner inner left left semi anti));
		$type{$type}++;
		@texts = (map({ "s.$_" } 't', @names), 'd.n') if $with_texts;
		my $on = 's.' . any(@ints) . ' = d.k';
		$on .= ' AND s.' . any(@ints) . ' = d.g' if rand > 0.8;
		$on .= ' AND ' . clause([ (map { "s.$_" } @ints), 'd.p', 'd.h' ], [ 'd.z', map { "s.$_" } @bools ], 2) if rand > 0.5;
		@texts = ('t', @names) if $with_texts;
		if ($type eq 'semi' || $type eq 'anti')
		{
			$sql = "SELECT * FROM ($sql) s WHERE " . ($type eq 'anti' ? 'NOT ' : '') . "EXISTS (SELECT FROM $dim d WHERE $on)";
			next;
		}
		my $columns = join ', ', map { "d.$_ AS $_$j" } qw(k g h p z n);
		$sql = "SELECT s.*, $columns FROM ($sql) s " . ($type eq 'left' ? 'LEFT ' : '') . "JOIN $dim d ON $on";
		push @ints, map { "$_$j" } qw(k g h p);
		push @bools, "z$j";
		push @names, "n$j";
		@texts = ('t', @names) if $with_texts;
		$sql = "SELECT * FROM ($sql) s WHERE " . clause(\@ints, \@bools, 2) if $type eq 'left' && rand > 0.6;
	}
	return ($sql, \@ints, \@bools, \@names, \%type);
}

# An aggregation over one.
sub aggregation
{
	my ($sql, $ints, $bools, $names) = @_;
	my $i = sub { any(@$ints) };
	my $filter = sub { rand > 0.7 ? ' FILTER (WHERE ' . clause($ints, $bools, 1) . ')' : '' };
	my @keys = map { rand > 0.5 ? any(@$ints, @$names, @$bools, 'd', 'w', 't', of_text('t', @$names)) : () } 1 .. 3;
	my @list = map {
		any('count(*)', 'count(' . $i->() . ')', 'sum(' . $i->() . ')', 'sum(w)', 'avg(' . $i->() . ')', 'min(' . $i->() . ')', 'max(' . $i->() . ')', 'sum(x)', 'avg(x)',
			'max(x)', 'min(y)', 'max(d)', 'bool_or(' . any(@$bools) . ')', 'bool_and(' . any(@$bools) . ')', 'sum(' . $i->() . '::int8 * 3 + ' . $i->() . ')',
			'sum(CASE WHEN ' . clause($ints, $bools, 1) . ' THEN ' . $i->() . ' ELSE 2 END)', 'avg(w - ' . $i->() . ')', 'max(abs(' . $i->() . '::int4))') . $filter->()
	} 1 .. 1 + rand 4;
	my %seen;
	@keys = grep { !$seen{$_}++ } @keys;
	return 'SELECT ' . join(', ', @keys, map { "$list[$_] AS agg$_" } 0 .. $#list) . " FROM ($sql) s" . (@keys ? ' GROUP BY ' . join(', ', @keys) : '');
}

my (@query, @kind, %types);
for my $n (1 .. $ENV{HGJ_PIPELINES} // 150)
{
	my ($sql, $ints, $bools, $names, $type) = chain(int rand 5, $n % 2 == 0);
	# rows of one join are returned as ever
	($sql, $ints, $bools, $names, $type) = chain(2 + int rand 3) if $n % 3 == 0;
	push @kind, $n % 3 == 0 ? 'rows' : 'groups';
	push @query, $digest->($n % 3 == 0 ? $sql : aggregation($sql, $ints, $bools, $names));
	$types{$_}++ for keys %$type;
}
my $run = sub {
	my ($begin, $what) = @_;
	my (undef, $out, $err) = $node->psql('postgres', "$begin\n" . join('', map { "\\echo == $_\n$what$query[$_];\n" } 0 .. $#query), on_error_stop => 0);
	my (undef, @answers) = split /^== \d+\n/m, "$out\n";
	return ($err, @answers);
};
my ($stock_errors, @stock) = $run->('', '');
my ($errors, @ours) = $run->($device, '');
my (undef, @plans) = $run->($device, "$explain ");
is($stock_errors, '', 'chains at random: they are queries');
is($errors, '', 'chains at random: no error');
my ($wrong, %yes, %all, %why) = (0);
for my $n (0 .. $#query)
{
	$all{ $kind[$n] }++;
	$yes{ $kind[$n] }++ if $plans[$n] =~ /Device Pipeline: yes/;
	$why{$1}++ if $plans[$n] =~ /Device Pipeline: (no .*)/;
	next if ($stock[$n] // 'stock') eq ($ours[$n] // 'ours');
	$wrong++;
	diag("query $n: $query[$n];\nstock $stock[$n]ours $ours[$n]$plans[$n]");
}
is($wrong, 0, "chains at random: the answers of $#query queries");
note("$_: $why{$_}") for sort keys %why;
cmp_ok($yes{$_} // 0, '>', ($all{$_} // 1) * 0.6, "chains at random: most of $all{$_} with $_ run as pipelines") for qw(groups rows);
cmp_ok(scalar(grep { $kind[$_] eq 'rows' && $stock[$_] !~ /^0\|/ } 0 .. $#query), '>', $all{rows} * 0.4, 'chains at random: and many return rows');
cmp_ok($types{$_} // 0, '>', 5, "chains at random: $_ joins") for qw(inner left semi anti);

# ---- faults in every call
my $groups = 'SELECT a.n, b.g, count(*), sum(v), sum(b.h), avg(x) FROM f JOIN a ON f.a1 = a.k LEFT JOIN b ON f.b1 = b.k AND b.p < f.v GROUP BY a.n, b.g ORDER BY 1, 2';
my $answer = $node->safe_psql('postgres', $groups);
my %reason = (
	lost => 'the device failed',
	memory => 'not enough device memory',
	row => 'value that the host must look at',
	unsupported => 'table that it cannot probe');
like($node->safe_psql('postgres', "$agg $explain $groups"), qr/Device Pipeline: yes.*Seq Scan on f \(actual rows=6000(?:\.00)? loops=1\)/s, 'without a fault: a pipeline');
for my $call ('pipe_create 1', 'pipe_payload 1', 'pipe_payload 4', 'pipe_start 1', 'pipe_stage 1', 'pipe_stage 3', 'pipe_push 1', 'pipe_push 3', 'pipe_finish 1', 'pipe_groups 1')
{
	for my $what (qw(lost memory limit row unsupported))
	{
		faults("$call $what");
		is($node->safe_psql('postgres', "$agg $groups; $groups"), "$answer\n$answer", "$call, $what: the answer, and again");
		# no room while rows are pushed is no room for groups: more of it is asked for
		my $said = $what ne 'limit' ? "no \\($reason{$what}\\)" : $call =~ /create|payload|start/ ? "no \\($reason{memory}\\)" : 'yes';
		like($node->safe_psql('postgres', "$agg $explain $groups"), qr/Device Pipeline: $said\n.*Seq Scan on f \(actual rows=6000(?:\.00)? loops=1\)/s, "$call, $what: $said");
	}
}
my $alone = 'SELECT extract(month FROM d), c1, count(*), sum(v), avg(x) FROM f WHERE b IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2';
my $alone_answer = $node->safe_psql('postgres', $alone);
faults();
like($node->safe_psql('postgres', "$agg $explain $alone"), qr/Device Pipeline: yes.*Columns by Host: 1.*Seq Scan on f \(actual rows=5143(?:\.00)? loops=1\)/s, 'a table alone: a pipeline');
for my $call ('pipe_create 1', 'pipe_start 1', 'pipe_stage 3', 'pipe_push 3', 'pipe_finish 1', 'pipe_groups 1')
{
	for my $what (qw(lost memory limit row unsupported))
	{
		faults("$call $what");
		is($node->safe_psql('postgres', "$agg $alone; $alone"), "$alone_answer\n$alone_answer", "a table alone, $call, $what: the answer, and again");
		my $said = $what ne 'limit' ? "no \\($reason{$what}\\)" : $call =~ /create|start/ ? "no \\($reason{memory}\\)" : 'yes';
		like($node->safe_psql('postgres', "$agg $explain $alone"), qr/Device Pipeline: $said\n.*Seq Scan on f \(actual rows=5143(?:\.00)? loops=1\)/s, "a table alone, $call, $what: $said");
	}
}
for my $call ('pipe_create 1', 'pipe_payload 2', 'pipe_start 1', 'pipe_stage 2', 'pipe_push 2', 'pipe_finish 1', 'pipe_groups 1')
{
	faults("$call hang");
	my (undef, $out, $err) = $node->psql('postgres', "$agg SET statement_timeout = '300ms'; $groups;\n\\! rm " . $node->data_dir . "/hgj_fake_engine\nRESET statement_timeout; SELECT tables FROM hashgraph_join_devices(); $groups", on_error_stop => 0);
	like($err, qr/^psql:<stdin>:1: ERROR:  canceling statement due to statement timeout$/m, "$call hangs: cancelled");
	is($out, "0\n$answer", "$call hangs: nothing stays on the device, and the session goes on");
}
faults('pipe_finish 1 hang');
like($node->safe_psql('postgres', "$agg SET hashgraph_join.device_timeout = '200ms'; $explain $groups"),
	qr/Device Pipeline: no \(the device failed\).*Fallback: cpu engine/s, 'a device that hangs for too long counts as lost');
faults('no_rows');
like($node->safe_psql('postgres', "$agg $explain $groups"), qr/Device Pipeline: yes/, 'an engine that returns no rows: groups');
my $rows = $digest->('SELECT f.id, a.n, b.g FROM f JOIN a ON f.a1 = a.k LEFT JOIN b ON f.b1 = b.k');
is($node->safe_psql('postgres', "$device $rows"), $node->safe_psql('postgres', $rows), 'and rows: the answer');
unlike($node->safe_psql('postgres', "$device $explain $rows"), qr/Device Pipeline: yes/, 'one join after the other');
faults();

# ---- groups
my $many = $digest->('SELECT m.id, count(*), sum(a.p) FROM many m JOIN a ON m.a1 = a.k GROUP BY m.id');
my $many_answer = $node->safe_psql('postgres', $many);
is($node->safe_psql('postgres', "$agg $many"), $many_answer, 'more groups than there was room for: the answer');
like($node->safe_psql('postgres', "$agg $explain $many"), qr/Device Pipeline: yes/, 'on the device');
faults('pipe_create 2 unsupported');
like($node->safe_psql('postgres', "$agg $explain $many"), qr/Device Pipeline: no \(table that it cannot probe\)/, 'with more room, the second time');
faults();
my $less = "SET hashgraph_join.device_memory_limit = '4MB';";
is($node->safe_psql('postgres', "$agg $less $many"), $many_answer, 'more groups than device memory: the answer');
like($node->safe_psql('postgres', "$agg $less $explain $many"), qr/Device Pipeline: no \(not enough device memory\).*Engine: cuda/s, 'the host groups what the device joins');

# ---- errors are PostgreSQL's, and only PostgreSQL's
my $join = 'FROM f JOIN a ON f.a1 = a.k LEFT JOIN b ON f.b1 = b.k';
for my $q (
	"sum(v / (a.p - 5)) $join", "sum(v * 100000000) $join", "max((v * a.k)::int2) $join", "sum(x * 1e308::float8 * 10) $join", "sum(c1 % (b.g - 1)) $join",
	"sum(v) $join AND 10 / (b.g - 2) > b.h", "sum(v) $join WHERE 10 / (coalesce(b.g, 2) - 2) > a.p", "count(*) FILTER (WHERE 1 / b.g > 0) $join",
	"sum(id) FROM f WHERE EXISTS (SELECT FROM a WHERE f.a1 = a.k AND 7 / a.g > 100)", "max(abs((id - 2147483647 - 2)::int4)) $join")
{
	my (undef, undef, $theirs) = $node->psql('postgres', "SELECT $q", on_error_stop => 0);
	my (undef, $out, $ours) = $node->psql('postgres', "$agg SELECT $q; SELECT tables FROM hashgraph_join_devices(); $groups", on_error_stop => 0);
	my ($error) = $theirs =~ /(ERROR:  .*)/ or die "no error: $q";
	is(($ours =~ /(ERROR:  .*)/)[0], $error, "$q: $error");
	is($out, "0\n$answer", 'and the session goes on');
}
my %fine = (
	"sum(CASE WHEN a.p <> 5 THEN v / (a.p - 5) END) $join" => 'yes',
	"sum(v / (a.p - 5)) FILTER (WHERE a.p <> 5) $join" => 'yes',
	"sum(v) $join AND b.g <> 2 WHERE coalesce(10 / (b.g - 2), 3) > a.p" => 'yes',
	"sum(v) $join WHERE a.p = 5 OR 10 / (a.p - 5) < b.g" => 'yes',
	"min(-(x - x)), max(x) $join" => 'no \(value that the host must look at\)',
	"sum(CASE WHEN x > 0 THEN 'infinity' ELSE x END), min(CASE WHEN x > 3 THEN 'nan' ELSE x END) $join" => 'no \(value that the host must look at\)',
	"min(CASE WHEN x > 3 THEN 'nan' ELSE x END), max(CASE WHEN x > 3 THEN '-infinity' ELSE x END), max(CASE WHEN x > 3 THEN 'nan' ELSE x END) $join" => 'yes');
for my $q (sort keys %fine)
{
	is($node->safe_psql('postgres', "$agg SELECT $q"), $node->safe_psql('postgres', "SELECT $q"), "$q: the answer");
	like($node->safe_psql('postgres', "$agg $explain SELECT $q"), qr/Device Pipeline: $fine{$q}\n/, "$q: $fine{$q}");
}

# ---- again and again
my $again = "SELECT i, (SELECT count(*) || ' ' || sum(v + b.p) $join WHERE f.v > i) FROM generate_series(0, 400, 100) i";
my $again_answer = $node->safe_psql('postgres', $again);
is($node->safe_psql('postgres', "$agg $again"), $again_answer, 'rescans: the answer');
like($node->safe_psql('postgres', "$agg $explain $again"), qr/loops=5\).*Device Pipeline: yes/s, 'rescans: on the device');
for my $fault ('pipe_create 2 memory', 'pipe_push 8 lost', 'pipe_finish 3 row', 'pipe_start 5 unsupported', 'pipe_stage 9 lost', 'pipe_finish 2 limit')
{
	faults($fault);
	is($node->safe_psql('postgres', "$agg $again"), $again_answer, "rescans, $fault: the answer");
}
faults();
my $prepared = "SET plan_cache_mode = force_generic_plan; PREPARE p(int, int8[]) AS SELECT count(*), sum(v + \$1), sum(b.h) FILTER (WHERE a.p > \$1) $join AND b.p <> \$1 WHERE a.g < \$1 OR b.k = ANY (\$2);"
  . "EXECUTE p(3, '{1,2,50}'); EXECUTE p(6, NULL); EXECUTE p(NULL, '{NULL,7}'); EXECUTE p(0, '{}')";
is($node->safe_psql('postgres', "$agg $prepared"), $node->safe_psql('postgres', $prepared), 'parameters');
my $cursor = "BEGIN; DECLARE c CURSOR FOR $groups; FETCH 3 FROM c; DELETE FROM f WHERE id > 10; FETCH ALL FROM c; ROLLBACK";
is($node->safe_psql('postgres', "$agg $cursor"), $answer, 'a cursor');
is($node->safe_psql('postgres', "$agg BEGIN; DECLARE c CURSOR FOR $groups; FETCH 1 FROM c; SELECT tables FROM hashgraph_join_devices(); ROLLBACK; SELECT tables FROM hashgraph_join_devices()"),
	(split /\n/, $answer)[0] . "\n2\n0", 'a cursor over groups has no pipeline, only tables');

# ---- much work can be left
$node->safe_psql('postgres', 'CREATE TABLE one AS SELECT 1 AS k, i AS v FROM generate_series(1, 3000) i; ANALYZE one');
for my $q ('SELECT count(*) FROM f JOIN one a ON f.c1 = a.k JOIN one b ON f.c1 = b.k', 'SELECT count(*) FROM f JOIN one a ON f.c1 = a.k JOIN one b ON f.c1 = b.k AND b.v < 0 - f.id',
	'SELECT a.v + b.v FROM f JOIN one a ON f.c1 = a.k JOIN one b ON f.c1 = b.k AND b.v < f.v AND f.v < a.v AND a.v < b.v')
{
	my (undef, $out, $err) = $node->psql('postgres', "$device SET statement_timeout = '300ms'; $q; RESET statement_timeout; SELECT tables FROM hashgraph_join_devices(); $groups", on_error_stop => 0);
	like($err, qr/canceling statement due to statement timeout/, "$q: cancelled");
	is($out, "0\n$answer", 'nothing stays on the device, and the session goes on');
}

# ---- nothing stays behind
faults('pipe_finish 1 row');
keeps_nothing($node, 'a pipeline that gives up', sql => "SET hashgraph_join.require = off; SET hashgraph_join.engine = cuda; SET hashgraph_join.cuda_library = '$library'; $groups;",
	reset => '', warm => 20, rounds => 60, stops => undef, good => $groups, answer => $answer);
faults();
keeps_nothing($node, 'a pipeline', sql => "SET hashgraph_join.require = off; SET hashgraph_join.engine = cuda; SET hashgraph_join.cuda_library = '$library'; $groups; $rows;",
	reset => '', warm => 20, rounds => 60, stops => undef, good => $groups, answer => $answer);
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|was terminated by signal|leak|WARNING|before its pipeline/, 'the server log knows no crash, leak or warning');
$node->stop;
done_testing();
