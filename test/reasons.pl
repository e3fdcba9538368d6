#!/usr/bin/perl
#
# The catalogue of reasons (src/base/reasons.c, and the notes of tables in
# src/engine/engine_names.c) against the tests: the words of each reason stand, as a whole,
# in an expected output or in a test.  Prints those that do not; exits with 1 if there are any.
#
#   perl test/reasons.pl          from the top of the tree
#   perl test/reasons.pl --where  each reason, and the files that have it
#
# 1. Take the strings of the catalogue.  One of the tables that begins with "not ours" or
#    says that there is no reason stands for nothing: those are the exceptions below.
# 2. Read expected outputs and tests.  A backslash in front of a character is a regular
#    expression's, and taken away.
# 3. A reason is there if no word goes on before or after it: "not a heap table" is not
#    shown by "the table is not a heap table".
use strict;
use warnings;

# What nothing can show, and why.
my %exceptions = (
	'not declined' => 'the value of what has not been declined',
	'nothing is faster' => 'the value of what is read in the fastest way',
	'none' => 'the value of what has a pipeline',
	'' => 'the value of what has not fallen back',
	'unknown' => 'of a number that is none',
	# The extension's tables never change, and a build has always had more memory than a filter
	# takes; test/engine/test_join.c and test_filter.c bring these about.
	'a table that changes has no filter' => 'of tables that the extension does not make',
	'there was no memory for a filter' => 'where memory fails the engine at that very moment',
	# The executor's state in which EvalPlanQual rechecks a row is neither explained nor logged;
	# test/isolation/specs/hgj_for_update.spec has joins that are rechecked.
	'rows are being rechecked' => 'nobody asks a recheck how it reads',
);

sub slurp
{
	my ($file) = @_;
	open my $fh, '<', $file or die "$file: $!\n";
	local $/;
	return <$fh>;
}

# Step 1.
my @reasons;
my $catalogue = slurp('src/base/reasons.c');
push @reasons, $catalogue =~ /^\s*\[HGJ_\w+\] = "([^"]*)"/mg;
my ($notes) = slurp('src/engine/engine_names.c') =~ /^hgj_note_text\(.*?\)\n(.*?)^\}/ms;
push @reasons, ($notes // '') =~ /return "([^"]*)"/g;
die "reasons: no reasons found in src/base/reasons.c\n" if @reasons < 80;

# Step 2.
my %tests = map { my $text = slurp($_); $text =~ s/\\(?=[^\w\s])//g; $_ => $text }
  sort(glob('expected/*.out test/isolation/expected/*.out test/t/*.pl test/cassert/*.pl'));

# Step 3.
my %seen;
my $missing = 0;
for my $reason (grep { !$seen{$_}++ } @reasons)
{
	my @where = grep { $tests{$_} =~ /(?:^|[^\w ]|[^\w] )\Q$reason\E(?: *(?:$|[^\w ]))/m } sort keys %tests;
	if (@ARGV && $ARGV[0] eq '--where')
	{
		print "$reason: @where\n";
	}
	elsif (exists $exceptions{$reason})
	{
		next unless @where && length $reason && $reason !~ /^(none|unknown)$/;
		print "$reason: stands among the exceptions of test/reasons.pl, and in @where\n";
		$missing++;
	}
	elsif (!@where)
	{
		print "$reason: no test shows it\n";
		$missing++;
	}
}
exit($missing ? 1 : 0);
