#!/usr/bin/perl
# Generated expressions over numeric columns, as HashGraphAgg and HashGraphJoin
# compute them and as PostgreSQL does: digits and display scales must be the same.
#
#   perl test/decimals/run.pl [--comparisons N] [--seed S] [--verbose]
#                             [--engine cuda [--library FILE]]
#
# A batch is a table of numeric(p,s) columns (p and s of every kind, values at the
# edges of what fits 64 bits and what does not, NaN, NULL) and some expressions over
# them.  Each is summed up, averaged, and compared with another one in groups of one
# row, where a sum is the value itself, and in larger ones; some are quals.  Batches
# are run until so many values have been compared (300000).  With --engine, joins and
# aggregates are asked of a device (FILE is the engine's library, if it is not the
# installed one), few values are such as only the host can compute with, and some
# queries must have run as pipelines.  PGHOST and so on say which server (as a
# superuser).  A test is a batch: the last line is `N passed, N failed`.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../random/lib";
use Getopt::Long;
use HGJ::Rng;

my %opt = (comparisons => 300_000, seed => 1);
GetOptions(\%opt, 'comparisons=i', 'seed=i', 'verbose', 'engine=s', 'library=s')
  and !@ARGV
  or die "usage: run.pl [--comparisons N] [--seed S] [--verbose] [--engine NAME [--library FILE]]\n";
$| = 1;
my ($ROWS, $COLUMNS, $EXPRESSIONS) = (1500, 6, 14);
my $db = "hgj_decimals_$$";
my $bin = $ENV{HGJ_BIN} ? "$ENV{HGJ_BIN}/psql" : 'psql';
my $rng;

# Runs SQL in one session and returns what it prints; dies if that fails.
sub sql
{
	my ($database, $text) = @_;
	my $file = "/tmp/hgj_decimals.$$.sql";
	open my $out, '>', $file or die "$file: $!";
	print $out $text;
	close $out;
	my $said = `$bin -X -q -At -v ON_ERROR_STOP=1 -d $database -f $file 2>&1`;
	my $rc = $?;
	unlink $file;
	return ($rc == 0, $said);
}

sub must
{
	my ($good, $said) = sql(@_);
	die "$0: $said" unless $good;
	return $said;
}

# An integer of so many digits at most, and often at the edge of them.
sub digits
{
	my ($p) = @_;
	my $n = $rng->chance(40) ? $p : $rng->between(1, $p);
	my $kind = $rng->weighted(random => 10, nines => 3, power => 2, small => 3, zeros => 4);
	return '9' x $n if $kind eq 'nines';
	return '1' . '0' x ($n - 1) if $kind eq 'power';
	return $rng->between(0, 12) if $kind eq 'small' && $p > 1;
	my $text = join '', $rng->between(1, 9), map { $rng->between(0, 9) } 2 .. $n;
	substr($text, -int($n / 2)) =~ tr/0-9/0/ if $kind eq 'zeros' && $n > 1;
	# what 64 bits just hold, and what they just do not
	return $rng->pick('9223372036854775807', '9223372036854775808', '922337203685477580') if $p >= 19 && $rng->chance(20);
	return $text;
}

sub value
{
	my ($c) = @_;
	return '\N' if $rng->chance(4);
	return 'NaN' if $c->{nan} && $rng->chance(3);
	return $rng->pick('Infinity', '-Infinity') if $c->{free} && $rng->chance(2);
	return '0' if $rng->chance(4);
	my $s = $c->{free} ? $rng->between(0, 20) : $c->{s};
	return ($rng->chance(40) ? '-' : '') . digits($c->{p}) . ($s ? 'e' . -$s : '');
}

sub column
{
	my ($n) = @_;
	return { name => "c$n", p => $n + 2, s => $n % 3, type => 'numeric(' . ($n + 2) . ',' . $n % 3 . ')' } if $opt{engine} && $rng->chance(95);
	my $kind = $rng->weighted(usual => 6, whole => 2, all => 2, wide => 2, beyond => 1, negative => 1, free => 1);
	my $p = $rng->between(1, 18);
	my $s = $rng->between(0, $p);
	$s = 0 if $kind eq 'whole';
	$s = $p if $kind eq 'all';
	($p, $s) = ($rng->between(19, $rng->pick(20, 22, 40)), $rng->pick(0, 0, $rng->between(0, 19))) if $kind eq 'wide';
	$s = $p + $rng->between(1, 6) if $kind eq 'beyond';
	$s = -$rng->between(1, 6) if $kind eq 'negative';
	return { name => "c$n", free => 1, p => 22, nan => 1, type => 'numeric' } if $kind eq 'free';
	return { name => "c$n", p => $p, s => $s, nan => $rng->chance(25), type => "numeric($p,$s)" };
}

sub constant
{
	return $rng->pick("'NaN'::numeric", '1e30', '-1e-25', 'null::numeric') if $rng->chance(3);
	my $text = digits($rng->between(1, $rng->chance(70) ? 4 : 18));
	my $s = $rng->between(0, 6);
	$text = '0' x ($s + 1 - length $text) . $text if length $text <= $s;
	substr($text, -$s, 0) = '.' if $s;
	return $rng->chance(25) ? "(-$text)" : $text;
}

# An expression of type numeric over these columns.
sub expression
{
	my ($cols, $depth) = @_;
	my $kind = $depth > 0 ? $rng->weighted(binary => 10, minus => 1, abs => 1, case => 2, coalesce => 1, integer => 1, column => 2, call => $opt{engine} ? 0 : 2, extreme => 1) : 'column';
	return $rng->pick(@$cols)->{name} if $kind eq 'column';
	return '(' . expression($cols, $depth - 1) . $rng->pick(' + ', ' + ', ' - ', ' - ', ' * ', ' * ', ' * ') . ($rng->chance(30) ? constant() : expression($cols, $depth - 1)) . ')'
	  if $kind eq 'binary';
	return '(- ' . expression($cols, $depth - 1) . ')' if $kind eq 'minus';
	return 'abs(' . expression($cols, $depth - 1) . ')' if $kind eq 'abs';
	# what PostgreSQL's own functions make of numerics
	if ($kind eq 'call')
	{
		my $x = expression($cols, $depth - 1);
		return $rng->pick(map { "$_($x)" } qw(ceil floor round trunc sign)) if $rng->chance(40);
		return $rng->pick('round', 'trunc') . "($x, " . $rng->pick(0, 1, 2, 5, 18, -1, 'i2 % 4') . ')' if $rng->chance(50);
		return "($x / nullif(" . expression($cols, 0) . ', 0))' if $rng->chance(50);
		return "mod($x, " . $rng->pick('7', '0.25', '-1000000007') . ')';
	}
	if ($kind eq 'extreme')
	{
		my ($x, $y) = (expression($cols, $depth - 1), $rng->chance(40) ? constant() : expression($cols, 0));
		return $rng->pick('greatest', 'least', 'nullif') . "($x, $y)";
	}
	return '(' . constant() . $rng->pick(' - ', ' * ', ' + ') . $rng->pick('i2', 'i4', 'i8') . '::numeric * ' . expression($cols, $depth - 1) . ')' if $kind eq 'integer';
	return '(case when ' . condition($cols, $depth - 1) . ' then ' . expression($cols, $depth - 1) . ' else ' . $rng->pick('0', '1.00', 'null', expression($cols, $depth - 1)) . ' end)'
	  if $kind eq 'case';
	return 'coalesce(' . expression($cols, $depth - 1) . ', ' . $rng->pick(constant(), expression($cols, 0)) . ')';
}

sub condition
{
	my ($cols, $depth) = @_;
	return expression($cols, $depth) . $rng->pick(' in (', ' not in (') . join(', ', map { constant() } 1 .. $rng->between(1, 6)) . ')' if $rng->chance(10);
	return expression($cols, $depth) . $rng->pick(' < ', ' <= ', ' > ', ' >= ', ' = ', ' <> ') . ($rng->chance(50) ? constant() : expression($cols, $depth));
}

# An aggregate as text.  Which of several equal values is the least, 0 or 0.00, depends on
# the order of rows, which workers and devices change: in groups of more than one row
# that is left out.
sub aggregate
{
	my ($alone, $function, $expression, $n) = @_;
	my $call = "$function($expression)";
	$call = "trim_scale($call)" if !$alone && $function =~ /^m/;
	return "${call}::text as m$n";
}

# The SQL of a batch, and how many values it compares.
sub batch
{
	my ($seed) = @_;
	$rng = HGJ::Rng->new("decimals:$seed");
	my @cols = map { column($_) } 1 .. $COLUMNS;
	my @usual = grep { !$_->{free} } @cols;
	my @queries;
	my @e = map { expression($rng->chance(40) || !@usual ? \@cols : \@usual, $rng->between(0, 3)) } 1 .. $EXPRESSIONS;
	my $n = 0;
	my $list = join ', ', map { 'sum(' . $_ . ')::text as s' . ++$n } @e[ 0 .. 7 ];
	my @more = map { [ $rng->pick('sum', 'avg', 'min', 'max', 'count'), $_, ++$n ] } @e;
	my $more = join ', ', map { aggregate(1, @$_) } @more;
	my $tests = join ', ', map { 'count(*) filter (where ' . condition(@usual ? \@usual : \@cols, 2) . ') as t' . ++$n } 1 .. 6;
	# a pipeline has room for a few
	for my $i (0 .. ($opt{engine} ? $EXPRESSIONS - 3 : -1))
	{
		my $g = $rng->pick('t.id', 'd.g');
		my $few = join ', ', map { aggregate($g eq 't.id', $rng->pick('sum', 'sum', 'avg', 'min', 'max', 'count'), $_, ++$n) } @e[ $i .. $i + 2 ];
		push @queries, "select $g as g, $few from t join d using (k) where " . condition(\@usual, 1) . ' group by 1';
	}
	push @queries, "select t.id, $list from t join d using (k) group by t.id",
	  "select t.id, $more, $tests from t join d using (k) group by t.id",
	  'select d.g, ' . join(', ', map { aggregate(0, @$_) } @more) . ", $list from t join d using (k) group by d.g";
	push @queries, "select d.k, count(*), sum(t.id) from t join d using (k) where " . condition(@usual ? \@usual : \@cols, 2) . ' group by d.k' for 1 .. 4;

	my $text = "set client_min_messages = warning; drop table if exists t, d; create table t (id int, k int, i2 int2, i4 int4, i8 int8, "
	  . join(', ', map { "$_->{name} $_->{type}" } @cols) . ");\ncopy t from stdin;\n";
	for my $row (1 .. $ROWS)
	{
		$text .= join("\t", $row, $row % 40, $rng->between(-30000, 30000), $rng->between(-2000000000, 2000000000), $rng->pick(0, 1, -1, '-9223372036854775808', digits(18)),
			map { value($_) } @cols) . "\n";
	}
	$text .= "\\.\ncreate table d as select k, k % 6 as g from generate_series(0, 39) k; analyze t; analyze d;\n"
	  . "load 'hashgraph_join'; set max_parallel_workers_per_gather = " . $rng->pick(0, 0, 0, 2)
	  . '; ' . ($opt{engine} ? "set hashgraph_join.engine = $opt{engine}; " : '') . ($opt{library} ? "set hashgraph_join.cuda_library = '$opt{library}'; " : '')
	  . "set parallel_setup_cost = 0; set parallel_tuple_cost = 0; set min_parallel_table_scan_size = 0; set hashgraph_join.processors = 64;\n";
	for my $n (0 .. $#queries)
	{
		$text .= "set hashgraph_join.enabled = on; set hashgraph_join.force = on; explain (analyze, buffers off, costs off, timing off, summary off) $queries[$n];\n" if $opt{engine};
		$text .= "set hashgraph_join.enabled = off; create temp table stock$n as $queries[$n];\n"
		  . "set hashgraph_join.enabled = on; set hashgraph_join.force = on; set hashgraph_join.require = 'aggregate'; create temp table ours$n as $queries[$n];\n"
		  . "set hashgraph_join.force = off; reset hashgraph_join.require; set hashgraph_join.enabled = off;\n"
		  . "select 'ours', * from (table ours$n except all table stock$n order by 1 limit 3) q; select 'stock', * from (table stock$n except all table ours$n order by 1 limit 3) q;\n"
		  . "select 'values ' || count(*) * (select count(*) - 1 from pg_attribute where attrelid = 'ours$n'::regclass and attnum > 0) from ours$n;\n";
	}
	return ($text, \@queries);
}

must('postgres', "create database $db template template0");
END { if ($db) { my $s = $?; sql('postgres', "drop database if exists $db with (force)"); $? = $s } }
$SIG{INT} = $SIG{TERM} = sub { exit 1 };
must($db, 'create extension hashgraph_join');

my ($passed, $failed, $compared, $seed) = (0, 0, 0, $opt{seed});
my %pipelines;
while ($compared < $opt{comparisons} && $failed < 5)
{
	my ($text, $queries) = batch($seed);
	my ($good, $said) = sql($db, $text);
	my $values = 0;
	$values += $1 while $said =~ /^values (\d+)$/mg;
	$said =~ s/^values \d+\n//mg;
	if ($opt{engine})
	{
		$pipelines{$1}++ while $said =~ /^ +Device Pipeline: (.*)$/mg;
		$said =~ s/^(Custom Scan| +|HashAggregate|Sort|Gather|Finalize|GroupAggregate).*\n//mg;
	}
	$compared += $values;
	if ($good && $said eq '' && $values > 0)
	{
		$passed++;
		print "ok - batch $seed: $values values\n" if $opt{verbose};
	}
	else
	{
		$failed++;
		print "not ok - batch $seed\n$said\n", map { "    $_\n" } @$queries;
	}
	$seed++;
}
if ($opt{engine})
{
	print "pipelines: ", join(', ', map { "$_ $pipelines{$_}" } sort keys %pipelines), "\n";
	if (($pipelines{yes} || 0) < 10)
	{
		print "not ok - hardly anything ran on the device\n";
		$failed++;
	}
}
print "$compared values compared\n$passed passed, $failed failed\n";
exit($failed > 0);
