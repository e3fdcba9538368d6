# Figures of the benches, for people.
#
#   perl bench/figures.pl json build/bench/ssb.tsv TITLE [KEY=VALUE ...]
#                      makes build/bench/ssb.json of what bench/real.pl or bench/run.sh
#                      have written there, with the machine's name
#   perl bench/figures.pl text FILE.json ...     prints a chart
#   perl bench/figures.pl readme                 writes table and charts of bench/figures/*.json
#                                                into README.md, between its two marks
#   perl bench/figures.pl check                  says what README.md has that these do not
#   perl bench/figures.pl bars                   a chart of lines "name<TAB>stock ms<TAB>ours ms"
#                                                on standard input
#
# Figures to be shown are copied from build/bench to bench/figures by whoever measured, with
# NOTE=... in the environment of the bench if there is more to say of the machine; "chart" : "yes"
# in such a file has README.md show the bars of its first number of processes, too.
# Ratios are stock ÷ ours: times as fast; their mean is the geometric one.
use strict;
use warnings;
use JSON::PP;

my ($what, @args) = @ARGV;
my $width = 40;    # of the longest bar
my $json = JSON::PP->new->canonical->pretty->indent_length(1);

sub slurp
{
	my ($file) = @_;
	open my $fh, '<', $file or die "figures: $file: $!\n";
	local $/;
	return scalar <$fh>;
}

sub spew
{
	my ($file, $text) = @_;
	open my $fh, '>', $file or die "figures: $file: $!\n";
	print $fh $text;
	close $fh or die "figures: $file: $!\n";
}

# ---- from a bench's output

sub machine
{
	my ($processor) = slurp('/proc/cpuinfo') =~ /^model name\s*: (.*)$/m;
	my ($kilobytes) = slurp('/proc/meminfo') =~ /^MemTotal:\s*(\d+)/m;
	my $cores = `nproc`;
	return { processor => $processor // 'unknown', cores => $cores + 0, memory_gb => int($kilobytes / 1024 / 1024 + 0.5) };
}

# Lines of a TSV with a header, as hashes.
sub lines
{
	my ($file) = @_;
	my ($head, @rows) = map { [ split /\t/, $_, -1 ] } split /\n/, slurp($file);
	return map { my %row; @row{@$head} = @$_; \%row } @rows;
}

# What has ended both in stock and as the planner chose, by number of workers.
sub groups
{
	my ($file) = @_;
	my (%ms, @groups);
	for my $row (lines($file))
	{
		if (defined $row->{mode})
		{
			$ms{ $row->{workers} }{ $row->{query} }{ $row->{mode} } = $row->{median_ms} if $row->{state} eq 'ok';
			next;
		}
		# bench/run.sh has its modes side by side, in one process
		$ms{0}{ $row->{case} } = { stock => $row->{stock_ms}, chosen => $row->{ours_ms} } if $row->{chosen} eq 'yes';
	}
	for my $workers (sort { $a <=> $b } keys %ms)
	{
		my $of = $ms{$workers};
		my @cases = map { { name => $_, stock_ms => $of->{$_}{stock} + 0, ours_ms => $of->{$_}{chosen} + 0 } }
		  grep { defined $of->{$_}{stock} && defined $of->{$_}{chosen} } sort keys %$of;
		push @groups, { workers => $workers + 0, cases => \@cases } if @cases;
	}
	return \@groups;
}

sub make_json
{
	my ($tsv, $title, @more) = @_;
	(my $file = $tsv) =~ s/\.tsv$/.json/ or die "figures: $tsv is no .tsv\n";
	my $revision = `git -c safe.directory='*' rev-parse --short HEAD 2>/dev/null`;
	chomp $revision;
	my @now = gmtime;
	spew($file, $json->encode({ title => $title, (map { /^(\w+)=(.*)$/s ? ($1 => $2) : die "figures: $_?\n" } @more), $ENV{NOTE} ? (note => $ENV{NOTE}) : (),
		machine => machine(), revision => $revision, date => sprintf('%04d-%02d-%02d', $now[5] + 1900, $now[4] + 1, $now[3]), groups => groups($tsv) }));
}

# ---- for people

# A bar per case, as long as it is times as fast.
sub bars
{
	my ($cases) = @_;
	my @ratios = map { $_->{stock_ms} / $_->{ours_ms} } @$cases;
	my ($most) = sort { $b <=> $a } @ratios, 1;
	my ($longest) = sort { $b <=> $a } map { length $_->{name} } @$cases;
	my $text = '';
	for my $i (0 .. $#$cases)
	{
		my $case = $cases->[$i];
		my $n = int($ratios[$i] / $most * $width + 0.5);
		$text .= sprintf "%-*s %8.0f ms %8.0f ms %6.1f  %s\n", $longest, $case->{name}, $case->{stock_ms}, $case->{ours_ms}, $ratios[$i], '#' x ($n || 1);
	}
	return sprintf("%-*s %11s %11s %6s\n", $longest, '', 'PostgreSQL', 'with us', 'times') . $text;
}

sub workers { return $_[0] ? "up to $_[0] workers" : 'one process' }

sub mean
{
	my ($cases) = @_;
	my $logs = 0;
	$logs += log($_->{stock_ms} / $_->{ours_ms}) for @$cases;
	return exp($logs / @$cases);
}

sub sum
{
	my ($cases, $key) = @_;
	my $sum = 0;
	$sum += $_->{$key} for @$cases;
	return $sum / 1000;
}

sub caption
{
	my ($of) = @_;
	return join ', ', $of->{title}, (map { $of->{$_} // () } 'data'), "PostgreSQL $of->{postgresql}";
}

sub chart
{
	my ($of, @groups) = @_;
	return join "\n", map { caption($of) . ', ' . workers($_->{workers}) . "\n\n" . bars($_->{cases}) } @groups;
}

sub machine_text
{
	my ($of) = @_;
	my $note = $of->{note} ? ", $of->{note}" : '';
	my $runs = $of->{runs} > 1 ? "medians of $of->{runs} runs in turn" : 'single runs after a warm one';
	return "$of->{machine}{processor}, $of->{machine}{cores} processors, $of->{machine}{memory_gb} GB$note ($of->{date}, revision $of->{revision}, $runs, work_mem $of->{work_mem})";
}

sub seconds { my ($s) = @_; return $s < 0.095 ? sprintf('%.0f ms', $s * 1000) : sprintf('%.1f s', $s) }

# The text between README.md's marks.
sub section
{
	my @all = map { decode_json(slurp($_)) } sort glob 'bench/figures/*.json';
	my $text = "| bench | processes | queries | PostgreSQL | with hashgraph_join | mean of ratios | least | most |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n";
	my %on;
	for my $of (@all)
	{
		$on{ machine_text($of) }{ $of->{title} } = 1;
		for my $group (@{ $of->{groups} })
		{
			my @ratios = sort { $a <=> $b } map { $_->{stock_ms} / $_->{ours_ms} } @{ $group->{cases} };
			$text .= sprintf "| %s | %s | %d | %s | %s | %.1f | %.1f | %.1f |\n", join(', ', $of->{title}, $of->{data} // ()), workers($group->{workers}),
			  scalar @ratios, seconds(sum($group->{cases}, 'stock_ms')), seconds(sum($group->{cases}, 'ours_ms')), mean($group->{cases}), @ratios[0, -1];
		}
	}
	$text .= "\nMeasured on\n\n" . join('', map { "* $_: " . join(', ', sort keys %{ $on{$_} }) . "\n" } sort keys %on);
	return $text . "\nHow many times as fast each query is, its plan chosen by the planner:\n\n" . join("\n", map { "```\n" . chart($_, $_->{groups}[0]) . "```\n" } grep { $_->{chart} } @all);
}

my $marks = qr/(<!-- written by bench\/figures\.pl -->\n)(.*)(<!-- end of what it writes -->\n)/s;
if (($what // '') eq 'json') { make_json(@args); }
elsif (($what // '') eq 'text') { print join "\n", map { my $of = decode_json(slurp($_)); chart($of, @{ $of->{groups} }) } @args; }
elsif (($what // '') eq 'bars')
{
	print bars([ map { chomp; my %case; @case{qw(name stock_ms ours_ms)} = split /\t/; \%case } <STDIN> ]);
}
elsif (($what // '') =~ /^(readme|check)$/)
{
	my $readme = slurp('README.md');
	my ($begin, $old, $end) = $readme =~ $marks or die "figures: README.md has no marks\n";
	my $new = section();
	if ($what eq 'check') { print "README.md's figures are not those of bench/figures: perl bench/figures.pl readme\n" if $old ne $new; }
	else { $readme =~ s/$marks/$begin$new$end/; spew('README.md', $readme); }
}
else { die "usage: perl bench/figures.pl json|text|readme|check|bars ...\n"; }
