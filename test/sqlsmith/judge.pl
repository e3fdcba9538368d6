#!/usr/bin/perl
#
# What a run of sqlsmith (run.sh) has shown.
#
#	judge.pl --dir DIR --sources DIR --compare SECONDS
#
# --dir holds server.log, the queries (queries.N), sqlsmith's progress
# (progress.N) and the queries that were late (late); the server still runs
# (PGHOST and so on).
#
# 1. The log: failed assertions, crashes, leaks, errors raised by our sources,
#    and internal errors that stock PostgreSQL does not raise for the same query.
# 2. Plans that auto_explain sampled: enough of them must have a HashGraphJoin.
# 3. For some seconds, a sample of the queries, without their limits and samples
#    of tables, is counted and digested: with
#    stock PostgreSQL's hash joins, with its other joins, and with ours.  Where
#    the first two agree (in each of two runs), ours must agree as well.
#
# The last line is `N passed, N failed`.
use strict;
use warnings;
use Getopt::Long;
use Time::HiRes qw(time);

my %opt = (compare => 30);
GetOptions(\%opt, 'dir=s', 'sources=s', 'compare=f') && $opt{dir} && $opt{sources}
  or die "usage: judge.pl --dir DIR --sources DIR --compare SECONDS\n";
my ($passed, $failed) = (0, 0);

sub verdict
{
	my ($ok, $what, @lines) = @_;
	print $ok ? 'ok' : 'not ok', " - $what\n";
	print "    $_\n" foreach @lines;
	$ok ? $passed++ : $failed++;
}

sub slurp
{
	my ($path) = @_;
	open(my $file, '<', $path) or return '';
	local $/;
	return scalar <$file>;
}

# Runs statements in a session of their own; their output, errors included.
sub psql
{
	my (@statements) = @_;
	my $path = "$opt{dir}/statements";
	open(my $file, '>', $path) or die "judge.pl: $path: $!\n";
	print $file "\\set VERBOSITY sqlstate\nset statement_timeout = '10s';\n", map { "$_;\n" } @statements;
	close $file;
	my $result = `psql -X -q -At -U sqlsmith -f '$path' 2>&1`;
	$result =~ s/^psql:\S+: //mg;
	return $result;
}

# Statements of a session that answers as stock PostgreSQL, or as we do.
my @stock = ('set hashgraph_join.enabled = off');
my @other = (@stock, 'set enable_hashjoin = off');
my @ours = ('set hashgraph_join.force = on');

# ---- the log --------------------------------------------------------------

# An entry is a line with a time and the lines that belong to it.
my (@entries, $plans, $with_node, %shown);
{
	open(my $log, '<', "$opt{dir}/server.log") or die "judge.pl: no server.log\n";
	my $plan;
	($plans, $with_node) = (0, 0);
	my $end_plan = sub { $with_node++ if $plan && $plan =~ /HashGraph(Join|Agg)\)/; $plan = undef };
	while (<$log>)
	{
		if (/^\d{4}-\d\d-\d\d \S+ \S+ \[(\d+)\] (?:([0-9A-Z]{5}) )?.*?(LOG|WARNING|ERROR|FATAL|PANIC|DETAIL|HINT|CONTEXT|LOCATION|STATEMENT|NOTICE|INFO|QUERY):  (.*)/)
		{
			$end_plan->() if $plan;
			my ($pid, $state, $level, $text) = ($1, $2, $3, $4);
			if ($level eq 'LOG' && $text =~ /duration: .* plan:/)
			{
				$plans++;
				$plan = '';
				next;
			}
			if ($level =~ /^(DETAIL|HINT|CONTEXT|LOCATION|STATEMENT|QUERY)$/)
			{
				next unless @entries && $entries[-1]{pid} eq $pid;
				$entries[-1]{$level} = $text;
				$entries[-1]{last} = \$entries[-1]{$level};
				next;
			}
			push @entries, { pid => $pid, state => $state || '', level => $level, text => $text };
			$entries[-1]{last} = \$entries[-1]{text};
		}
		elsif (defined $plan)
		{
			$plan .= $_ if length $plan < 200000;
			$shown{$1}++ if /(HashGraph(?:Join|Agg)|Join Type: \w+|Partitions|Passes|Spilled Rows|Spilled Inner)\b/;
		}
		elsif (/^TRAP:/) { push @entries, { pid => 0, state => '', level => 'TRAP', text => $_ }; $entries[-1]{last} = \$entries[-1]{text} }
		elsif (@entries) { ${ $entries[-1]{last} } .= "\n$_" }
	}
	$end_plan->() if $plan;
}

sub shown
{
	my ($e) = @_;
	return map { split /\n+/, substr($_, 0, 6000) } "$e->{level} $e->{state}: $e->{text}", grep { $_ } @$e{qw(LOCATION DETAIL CONTEXT STATEMENT)};
}

my $leak = qr/leak|problem in alloc set|detected write past chunk end|still referenced|invalid page/;
my @bad = grep { $_->{level} =~ /TRAP|PANIC/ || $_->{text} =~ /was terminated by signal/ } @entries;
verdict(!@bad, 'no failed assertion, no crash', map { shown($_) } @bad);
@bad = grep { $_->{level} eq 'WARNING' && $_->{text} =~ $leak } @entries;
verdict(!@bad, 'no leak', map { shown($_) } @bad);

# Names of our files that PostgreSQL has, too, say nothing: our functions do.
sub is_ours
{
	my ($e) = @_;
	return 1 if ($e->{LOCATION} || '') =~ /^_?hgj_/i || $e->{text} =~ /hashgraph/i;
	my ($function) = ($e->{LOCATION} || '') =~ /^(\w+), / or return 0;
	my ($file) = $e->{LOCATION} =~ /, (\w+\.c):/;
	return 0 unless $file;
	my @paths = glob "$opt{sources}/*/$file $opt{sources}/$file";
	return grep { slurp($_) =~ /^$function\(/m } @paths;
}

# Errors that we raise on purpose have a code of their own.
@bad = grep { $_->{level} =~ /ERROR|FATAL/ && $_->{state} =~ /^XX/ && is_ours($_) } @entries;
verdict(!@bad, 'no internal error raised by our sources', map { shown($_) } @bad);
my @internal = grep { $_->{level} eq 'ERROR' && $_->{state} =~ /^XX/ && !is_ours($_) && $_->{STATEMENT} } @entries;
my @differ;
my %known;
foreach my $e (@internal)
{
	next if $known{ $e->{LOCATION} || '' }++ > 4;
	my $stock = psql(@stock, "begin", $e->{STATEMENT}, 'rollback');
	push @differ, $e if $stock !~ /ERROR:\s+$e->{state}/ && psql(@ours, 'begin', $e->{STATEMENT}, 'rollback') =~ /ERROR:\s+$e->{state}/;
}
verdict(!@differ, 'no internal error that stock does not raise (' . @internal . ' that it does)', map { shown($_) } @differ);
my $late = slurp("$opt{dir}/late");
verdict($late eq '', 'no query went on after its statement_timeout', split /\n/, $late);

# ---- what was tested ------------------------------------------------------

my %progress;
foreach my $path (glob "$opt{dir}/progress.*")
{
	$progress{$_}++ foreach map { split // } grep { /^[.etSC]+$/ } split /\n/, slurp($path);
}
my $all = 0;
$all += $_ foreach values %progress;
printf "# %d queries: %d ran, %d errors, %d timeouts, %d syntax errors, %d lost connections\n", $all, map { $_ || 0 } @progress{qw(. e t S C)};
printf "# %d plans sampled, %d of them with our nodes: %s\n", $plans, $with_node, join ', ', map { "$_ $shown{$_}" } sort keys %shown;
verdict(($progress{'.'} || 0) >= 20 && $plans >= 5, 'queries ran');
verdict($with_node >= 0.15 * $plans, 'plans have our nodes');
verdict($plans < 300 || $shown{Partitions} || $shown{Passes}, 'joins ran in partitions or passes');

# ---- the same rows --------------------------------------------------------

my %views = map { $_ => 1 } split /\n/, psql("select format('%s.%s', schemaname, viewname) from pg_views");

# May the query's rows depend on the order in which rows are read?  What changes
# by itself is found out by asking stock twice.
sub is_loose
{
	my ($query) = @_;
	return 1 if $query =~ /\bover \(|^\s*(insert|update|delete|merge)|for (update|share|no key|key)|pg_stat_|pg_locks|nextval/i;
	return 1 if $query =~ /\b(array_agg|string_agg|json\w*_agg|xmlagg|first|last)\w*\(/;
	# a row of a table is always the same one, of a view it may not be
	while ($query =~ /from ([\w.]+)\s+limit \d+ offset \d+/g) { return 1 if $views{$1} }
	return 0;
}

# Queries that ended with an error would do so again.
sub packed
{
	(my $query = $_[0]) =~ s/\s+//g;
	$query =~ s/;$//;
	return $query;
}
my %wrong = map { packed($_->{STATEMENT}) => 1 } grep { $_->{STATEMENT} } @entries;

my (@queries, %count);
foreach my $path (glob "$opt{dir}/queries.*")
{
	push @queries, grep { /^\s*(select|with)/ && !$wrong{ packed($_) } } split /;\n/, slurp($path);
}
foreach (@queries)
{
	s/\btablesample \w+ \([\d.]+\)//g;
	s/\blimit \d+(?!\d*\s+offset)//g;
}
@queries = grep { !is_loose($_) } @queries;
srand(1);
my @sample = sort { rand() <=> 0.5 } @queries;
my $begun = time;
my @different;
foreach my $query (@sample)
{
	last if time - $begun > $opt{compare};
	my $digest = "select count(*), sum(hashtext(hgj_s::text)::int8) from ($query) as hgj_s";
	my $run = sub { psql(@_, $digest) };
	my $plan = psql(@ours, "explain (costs off) $digest");
	if ($plan !~ /HashGraph/) { $count{'without our nodes or wrong'}++; next }
	my $stock = $run->(@stock);
	my $ours = $run->(@ours, 'set work_mem = \'64kB\'', 'set hashgraph_join.chunk_rows = 3');
	if ("$stock$ours" =~ /57014/) { $count{'too long'}++; next }
	if ($stock =~ /ERROR/ && $ours =~ /ERROR/) { $count{'errors in both'}++; next }
	if ($stock eq $ours) { $count{"the same"}++; $count{'of these with rows'}++ if $stock !~ /^0\|/; next }
	# An error that depends on the order of evaluation is one of stock's, too.
	if ($run->(@other) ne $stock || $run->(@stock) ne $stock || $run->(@ours) eq $stock && $run->(@ours, 'set work_mem = \'64kB\'', 'set hashgraph_join.chunk_rows = 3') eq $stock)
	{
		$count{'not one answer in stock'}++;
		next;
	}
	push @different, "stock: $stock", "ours: $ours", split(/\n/, $digest), split(/\n/, $plan);
}
printf "# compared, of %d queries that have one answer: %s\n", scalar @queries, join ', ', map { "$_ $count{$_}" } sort keys %count;
verdict(!@different, 'the same rows as stock', @different);
print "$passed passed, $failed failed\n";
exit($failed ? 1 : 0);
