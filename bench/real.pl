# What bench/real.sh runs, on a server where the tables are: queries of
# bench/tpch, bench/ssb or bench/users, in up to four modes, with each number of workers.
# Settings of the environment, and what the modes are, stand in bench/real.sh.
#
# 1. A first session explains and runs the query once in each mode.  Modes that
#    meet the time limit there are out.
# 2. A second one runs it once in each mode that is left, explains it, and then times
#    them in turn: the first mode would have the page faults of all.  Answers go to
#    files, and are compared with stock's (with the first mode's that has one, where
#    stock has none).
# 3. "best" is the fastest mode; one whose plan is the chosen one in every line
#    is no better, whatever its times: that is how far times vary.
# 4. Ratios and sums are of the queries that ended in both stock and chosen.
use strict;
use warnings;

my ($name) = @ARGV;
my %title = (tpch => 'TPC-H', ssb => 'Star Schema Benchmark', users => 'subqueries');
my @psql = split ' ', $ENV{PSQL} // 'psql';
my $scale = $ENV{SF} // 1;
my $runs = $ENV{RUNS} || 3;
my $work_mem = $ENV{WORK_MEM} || '256MB';
my $timeout = $ENV{TIMEOUT} || 120;
my @extra = map { "SET $_;" } grep { /\S/ } split /;/, $ENV{EXTRA} // '';
my $cores = cores();
my @workers = split ' ', $ENV{WORKERS} // '';
@workers = sort { $a <=> $b } keys %{ { map { $_ => 1 } 0, 2, $cores - 1 } } unless @workers;
my @all_modes = qw(stock chosen forced single);
my @modes = split ' ', $ENV{MODES} || "@all_modes";
my $work = "build/bench/$name";
my $status = 0;

my %of_mode = (
	stock => 'SET hashgraph_join.enabled = off;',
	chosen => '',
	forced => 'SET hashgraph_join.force = on;',
	single => 'SET hashgraph_join.force = on; SET max_parallel_workers_per_gather = 0;');
for my $mode (@modes)
{
	die "bench: there is no mode $mode; there are: @all_modes\n" unless defined $of_mode{$mode};
}
my @queries = queries();
mkdir $work;

# ---- the environment

sub cores
{
	my $n = `nproc`;
	chomp $n;
	return $n || 1;
}

sub queries
{
	my @all = map { m{([^/]+)\.sql$} } sort glob "bench/$name/queries/*.sql";
	my %there = map { $_ => 1 } @all;
	my @wanted = split ' ', $ENV{QUERIES} // '';
	for my $query (@wanted)
	{
		die "bench: there is no query $query; there are: @all\n" unless $there{$query};
	}
	return @wanted ? @wanted : @all;
}

sub slurp
{
	my ($file) = @_;
	open my $fh, '<', $file or return undef;
	local $/;
	my $text = <$fh>;
	return $text // '';
}

# One statement's answer, or the end of everything.
sub ask
{
	my ($sql) = @_;
	open my $fh, '-|', @psql, '-X', '-q', '-At', '-v', 'ON_ERROR_STOP=1', '-c', $sql or die "bench: $psql[0]: $!\n";
	my $answer = do { local $/; <$fh> } // '';
	close $fh or die "bench: psql failed\n";
	chomp $answer;
	return $answer;
}

# ---- one query

sub settings
{
	my ($mode, $workers) = @_;
	my @lines = (
		'RESET ALL;', "SET statement_timeout = '${timeout}s';", "SET work_mem = '$work_mem';", 'SET jit = off;',
		"SET max_parallel_workers_per_gather = $workers;", "SET max_parallel_workers = 1000;");
	push @lines, 'SET parallel_setup_cost = 0;', 'SET parallel_tuple_cost = 0;' if ($ENV{PARALLEL_COSTS_0} // '') eq 'yes';
	push @lines, @extra if $mode ne 'stock';
	return join "\n", @lines, $of_mode{$mode}, '';
}

# Runs a script of psql's; returns what it printed, and errors apart.
sub psql
{
	my ($script, $base) = @_;
	open my $fh, '>', "$base.psql" or die "bench: $base.psql: $!\n";
	print $fh $script;
	close $fh;
	my $fraction = sprintf '%.10f', 0.0001 / $scale;
	open my $old, '>&', \*STDERR;
	open STDERR, '>', "$base.err";
	open my $out, '-|', @psql, '-X', '-q', '-At', '-v', "fraction=$fraction", '-f', "$base.psql";
	my $text = do { local $/; <$out> } // '';
	close $out;
	open STDERR, '>&', $old;
	return $text;
}

sub explain
{
	my ($sql, $file) = @_;
	return "\\o $file\nEXPLAIN (COSTS OFF)\n$sql\\o\n";
}

# Runs of these modes, each in turn and so many times: times and states by mode.  warm:
# once before in the same session.
sub timed
{
	my ($sql, $base, $workers, $times, $warm, @modes) = @_;
	my $script = "LOAD 'hashgraph_join';\n";
	if ($warm)
	{
		$script .= settings($_, $workers) . "\\o /dev/null\n$sql\\o\n" for @modes;
	}
	$script .= settings($_, $workers) . explain($sql, "$base.$_.plan") for @modes;
	for my $run (1 .. $times)
	{
		for my $mode (@modes)
		{
			$script .= settings($mode, $workers);
			$script .= "\\echo run $mode\n\\o $base.$mode.$run\n\\timing on\n$sql\\timing off\n\\o\n\\echo state :SQLSTATE\n";
		}
	}
	unlink glob "$base.*";
	my (%result, $mode);
	for my $line (split /\n/, psql($script, $base))
	{
		if ($line =~ /^run (\w+)$/) { $mode = $1; }
		elsif ($line =~ /^Time: ([\d.]+) ms/) { push @{ $result{$mode}{ms} }, $1; }
		elsif ($line =~ /^state (\w+)$/)
		{
			push @{ $result{$mode}{states} }, $1;
		}
	}
	for my $m (@modes)
	{
		my $states = $result{$m}{states} // [];
		my ($bad) = grep { $_ ne '00000' } @$states;
		$result{$m}{state} = @$states < $times ? 'error' : !$bad ? 'ok' : $bad eq '57014' ? 'timeout' : 'error';
		$result{$m}{answers} = [ map { slurp("$base.$m.$_") } 1 .. $times ] if $result{$m}{state} eq 'ok';
		$result{$m}{plan} = slurp("$base.$m.plan") // '';
	}
	return \%result;
}

sub median
{
	my @sorted = sort { $a <=> $b } @_;
	my $half = int(@sorted / 2);
	return @sorted % 2 ? $sorted[$half] : ($sorted[$half - 1] + $sorted[$half]) / 2;
}

# How many nodes of each kind.
sub nodes
{
	my ($plan) = @_;
	my %count = map { $_ => 0 } qw(join agg hash other gather);
	for (split /\n/, $plan)
	{
		$count{join}++ if /\(HashGraphJoin\)/;
		$count{agg}++ if /\(HashGraphAgg\)/;
		$count{hash}++ if /^\s*(->\s+)?(Parallel )?Hash (\w+ ){0,2}Join/;
		$count{other}++ if /^\s*(->\s+)?(Nested Loop|Merge (\w+ ){0,2}Join)/;
		$count{gather}++ if /^\s*(->\s+)?Gather/;
	}
	return \%count;
}

# The modes of a query with their medians, and what is wrong with it.
sub measure
{
	my ($query, $workers) = @_;
	my $base = "$work/$query.$workers";
	my $sql = slurp("bench/$name/queries/$query.sql");
	my @wanted = grep { $_ ne 'single' || $workers > 0 || !grep { $_ eq 'forced' } @modes } @modes;
	my $first = timed($sql, "$base.first", $workers, 1, 0, @wanted);
	my @left = grep { $first->{$_}{state} eq 'ok' } @wanted;
	my $later = @left ? timed($sql, $base, $workers, $runs, 1, @left) : {};
	my (%result, @wrong, $reference);
	for my $mode (@wanted)
	{
		my $of = $later->{$mode} && $first->{$mode}{state} eq 'ok' ? $later->{$mode} : $first->{$mode};
		$of->{median} = median(@{ $of->{ms} }) if $of->{state} eq 'ok';
		$result{$mode} = $of;
		if ($of->{state} eq 'error')
		{
			push @wrong, "$mode failed: see $base*.err";
			next;
		}
		for my $answer (@{ $first->{$mode}{answers} // [] }, @{ $of->{answers} // [] })
		{
			$reference //= { mode => $mode, answer => $answer };
			next if defined $answer && $answer eq $reference->{answer};
			push @wrong, "WRONG ANSWER of $mode, not that of $reference->{mode}: see $base.*";
			last;
		}
	}
	# The same plan is as good, and times vary.
	my $chosen = $result{chosen};
	for my $mode (@wanted)
	{
		my $of = $result{$mode};
		next unless defined $of->{median};
		next if $mode ne 'chosen' && $chosen && defined $chosen->{median} && $of->{plan} eq $chosen->{plan};
		$result{best} = $of->{median} if !defined $result{best} || $of->{median} < $result{best};
	}
	$result{wrong} = \@wrong;
	return \%result;
}

# ---- the tables that come out

sub ratio
{
	my ($a, $b) = @_;
	return defined $a && defined $b ? $a / $b : undef;
}

sub shown
{
	my ($format, $value) = @_;
	return defined $value ? sprintf $format, $value : '-';
}

my $tsv;

sub to_tsv
{
	my ($query, $workers, $result) = @_;
	for my $mode (grep { $result->{$_} } @all_modes)
	{
		my $of = $result->{$mode};
		my $count = nodes($of->{plan});
		print $tsv join("\t", $query, $workers, $mode, $of->{state}, $of->{median} // '', join(' ', @{ $of->{ms} // [] }),
			map { $count->{$_} } qw(join agg hash other gather)), "\n";
	}
}

sub print_query
{
	my ($query, $result) = @_;
	my @times = map {
		my $of = $result->{$_};
		!$of ? '' : defined $of->{median} ? sprintf '%.1f', $of->{median} : $of->{state} eq 'timeout' ? "> ${timeout} s" : 'error';
	} @all_modes;
	my $plan = ($result->{chosen} // $result->{forced} // $result->{single} // $result->{stock})->{plan};
	my $count = nodes($plan);
	my $chosen = $result->{chosen} && $result->{chosen}{median};
	my $of_best = ratio($chosen, $result->{best});
	printf "%-6s%10s%10s%10s%10s%12s%12s   %4s%5s%5s%6s%7s%s\n", $query, @times,
		shown('%.2f', ratio($chosen, $result->{stock} && $result->{stock}{median})), shown('%.2f', $of_best),
		(map { $count->{$_} || '.' } qw(join agg hash other gather)), ($of_best // 0) > 1.15 ? '  *' : '';
	print "      $_\n" for @{ $result->{wrong} };
	$status = 1 if @{ $result->{wrong} };
}

# What a number of workers comes to.
sub summary
{
	my ($workers, $results) = @_;
	my %sum = (workers => $workers, logs => 0, n => 0, stock => 0, chosen => 0, best => 0, slow5 => 0, slow15 => 0, left => []);
	for my $query (@queries)
	{
		my $result = $results->{$query};
		my ($stock, $chosen) = map { $result->{$_} && $result->{$_}{median} } qw(stock chosen);
		my $of_best = ratio($chosen, $result->{best});
		# A chosen plan that did not end, where another did, is slower in any case.
		$of_best //= 2 if $result->{chosen} && defined $result->{best};
		if (defined $of_best)
		{
			$sum{slow5}++ if $of_best > 1.05;
			$sum{slow15}++ if $of_best > 1.15;
		}
		for my $state (qw(timeout error))
		{
			my @gone = grep { $result->{$_} && $result->{$_}{state} eq $state } @all_modes;
			push @{ $sum{left} }, "$query ($state of @gone)" if @gone;
		}
		next unless defined $stock && defined $chosen;
		my $ratio = $chosen / $stock;
		$sum{n}++;
		$sum{logs} += log $ratio;
		$sum{stock} += $stock / 1000;
		$sum{chosen} += $chosen / 1000;
		$sum{best} += $result->{best} / 1000;
		@sum{qw(worst worst_query)} = ($ratio, $query) if !defined $sum{worst} || $ratio > $sum{worst};
	}
	return \%sum;
}

sub print_summaries
{
	my @sums = @_;
	printf "\n%-9s%8s%10s%15s%10s%10s%10s%9s%9s\n", '', '', 'mean of', 'worst of', 'sum of', '', '', 'chosen ÷', 'best';
	printf "%-9s%8s%10s%15s%10s%10s%10s%8s%8s\n", 'workers', 'queries', 'ratios', 'ratios', 'stock s', 'chosen s', 'best s', '> 1.05', '> 1.15';
	for my $sum (@sums)
	{
		my $n = $sum->{n};
		printf "%-9s%8d%10s%15s%10.2f%10.2f%10.2f%8d%8d\n", $sum->{workers}, $n,
			$n ? sprintf('%.3f', exp($sum->{logs} / $n)) : '-', $n ? sprintf('%.2f (%s)', @$sum{qw(worst worst_query)}) : '-',
			@$sum{qw(stock chosen best slow5 slow15)};
	}
	for my $sum (grep { @{ $_->{left} } } @sums)
	{
		print "$sum->{workers} workers: not ended: ", join(', ', @{ $sum->{left} }), "\n";
	}
	print "\nratio: chosen ÷ stock, their geometric mean; best: the fastest mode of each query\n";
}

# ---- all of it

binmode STDOUT, ':bytes';
$| = 1;
my $processes = ask('SHOW max_worker_processes');
for my $workers (@workers)
{
	die "bench: WORKERS has \"$workers\"\n" unless $workers =~ /^\d+$/;
	print "max_worker_processes = $processes: plans will not get $workers workers\n" if $workers > $processes;
}
open $tsv, '>', "build/bench/$name.tsv" or die "bench: build/bench/$name.tsv: $!\n";
print $tsv join("\t", qw(query workers mode state median_ms runs_ms HashGraphJoin HashGraphAgg hash_join other_join gather)), "\n";
my ($model) = (slurp('/proc/cpuinfo') // '') =~ /^model name\s*: (.*)/m;
printf "%s, scale factor %s: medians of %d runs in ms, work_mem %s, shared_buffers %s\n", $title{$name}, $scale, $runs, $work_mem,
	ask('SHOW shared_buffers');
printf "PostgreSQL %s, %d cores, %s\n", ask('SHOW server_version'), $cores, $model // 'unknown processor';
print "ours with @extra\n" if @extra;

my @sums;
for my $workers (@workers)
{
	printf "\n%s\n\n", $workers == 0 ? 'No parallel workers' : "Up to $workers workers";
	printf "%-6s%10s%10s%10s%10s%12s%12s   %4s%5s%5s%6s%7s\n", '', @all_modes, 'chosen ÷', 'chosen ÷', 'HG', 'HG', 'hash', 'other', '';
	printf "%-6s%10s%10s%10s%10s%11s%11s   %4s%5s%5s%6s%7s\n", 'query', ('') x 4, 'stock', 'best', 'Join', 'Agg', 'join', 'join', 'Gather';
	my %results;
	for my $query (@queries)
	{
		my $result = $results{$query} = measure($query, $workers);
		print_query($query, $result);
		to_tsv($query, $workers, $result);
	}
	push @sums, summary($workers, \%results);
}
close $tsv;
print_summaries(@sums);
my @wrong = $status ? ' Wrong answers or errors: see above.' : '';
system($^X, 'bench/figures.pl', 'json', "build/bench/$name.tsv", $title{$name}, "data=scale factor $scale", "runs=$runs", "work_mem=$work_mem",
	'postgresql=' . (ask('SHOW server_version') =~ /^(\S+)/)[0]) == 0 or $status = 1;
print "All figures: build/bench/$name.tsv, and build/bench/$name.json (perl bench/figures.pl text makes a chart of it).@wrong\n";
exit $status;
