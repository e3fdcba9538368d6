# The rooms of src/, read from the object files and the includes:
#
#   perl test/rooms.pl              prints the arrows, and each room's largest circle
#   perl test/rooms.pl --circles    only what is wrong: circles between rooms, and within
#                                   one of more than three files; private headers that
#                                   another room includes
#
# A room is a folder of src/; what stands in src/ itself is the entrance, which may
# use all of them.  An arrow is a symbol that one room's object needs and another's
# defines (nm), or a header of another room that is included.  Circles of files within
# a room are counted by symbols alone.  A header is private whose head says that it is
# "private to src/ROOM".
use strict;
use warnings;

my $only_circles = (shift // '') eq '--circles';
my (%defined_in, %needs, %arrows);

sub room
{
	my ($file) = @_;
	return $file =~ m{^src/([^/]+)/} ? $1 : 'entrance';
}

# The headers that a room keeps to itself.
my %private;
for my $header (glob('src/*/*.h'))
{
	open my $fh, '<', $header or die "rooms: $header: $!\n";
	local $/;
	$private{$header} = 1 if (split m{\*/}, <$fh>)[0] =~ m{private to src/};
}

my @objects = sort(glob('src/*.o'), glob('src/*/*.o'));
# pipeline_check.c is compiled with other engines only (see the Makefile).
my @sources = grep { $_ ne 'src/engine/pipeline_check.c' } sort(glob('src/*.c'), glob('src/*/*.c'));
my %object = map { $_ => 1 } @objects;
for my $source (@sources)
{
	(my $o = $source) =~ s/\.c$/.o/;
	die "rooms: $o is not there: build first\n" unless $object{$o};
}
for my $o (@objects)
{
	(my $source = $o) =~ s/\.o$/.c/;
	next unless -f $source;
	open my $nm, '-|', 'nm', '-g', '--format=posix', $o or die "rooms: nm: $!\n";
	while (<$nm>)
	{
		my ($symbol, $kind) = split;
		if ($kind eq 'U') { $needs{$o}{$symbol} = 1; }
		else { $defined_in{$symbol} = $o; }
	}
	close $nm or die "rooms: nm failed for $o\n";
}
my %uses;
for my $o (keys %needs)
{
	for my $symbol (keys %{ $needs{$o} })
	{
		my $other = $defined_in{$symbol};
		next if !defined $other || $other eq $o;
		$uses{$o}{$other} = 1;
		$arrows{ room($o) }{ room($other) }{"$o needs $symbol of $other"} = 1 if room($o) ne room($other);
	}
}
for my $file (@sources, sort(glob('src/*.h'), glob('src/*/*.h')))
{
	open my $fh, '<', $file or die "rooms: $file: $!\n";
	while (<$fh>)
	{
		next unless m{^\s*#\s*include\s*"([^"/]+/[^"]+)"} && -f "src/$1" && room("src/$1") ne room($file);
		$arrows{ room($file) }{ room("src/$1") }{"$file includes $1"} = 1;
		print "$file includes $1, which is another room's own\n" if $private{"src/$1"};
	}
}

# Tarjan's strongly connected components, of at least two.
sub circles
{
	my ($graph) = @_;
	my (%index, %low, %on, @stack, @found);
	my $next = 0;
	my $visit;
	$visit = sub {
		my ($v) = @_;
		$index{$v} = $low{$v} = $next++;
		push @stack, $v;
		$on{$v} = 1;
		for my $w (sort keys %{ $graph->{$v} // {} })
		{
			if (!defined $index{$w})
			{
				$visit->($w);
				$low{$v} = $low{$w} if $low{$w} < $low{$v};
			}
			elsif ($on{$w} && $index{$w} < $low{$v}) { $low{$v} = $index{$w}; }
		}
		return if $low{$v} != $index{$v};
		my @component;
		while (1)
		{
			my $w = pop @stack;
			delete $on{$w};
			push @component, $w;
			last if $w eq $v;
		}
		push @found, [ sort @component ] if @component > 1;
	};
	$visit->($_) for grep { !defined $index{$_} } sort keys %$graph;
	return @found;
}

for my $circle (circles(\%arrows))
{
	my %in = map { $_ => 1 } @$circle;
	print "a circle of rooms: @$circle\n";
	for my $from (@$circle)
	{
		for my $to (grep { $in{$_} } sort keys %{ $arrows{$from} })
		{
			my @why = sort keys %{ $arrows{$from}{$to} };
			print "    $from -> $to, ", scalar @why, " times: $why[0]\n";
		}
	}
}
for my $from ($only_circles ? () : sort keys %arrows)
{
	print "$from -> ", join(', ', map { "$_ (" . scalar(keys %{ $arrows{$from}{$_} }) . ')' } sort keys %{ $arrows{$from} }), "\n";
}
my %largest;
for my $circle (circles(\%uses))
{
	my $room = room($circle->[0]);
	$largest{$room} = $circle if @$circle > @{ $largest{$room} // [] };
}
for my $room (sort keys %largest)
{
	my $n = @{ $largest{$room} };
	next if $only_circles && $n <= 3;
	print "$room: a circle of $n files: ", join(' ', map { s{.*/(.*)\.o}{$1}r } @{ $largest{$room} }), "\n";
}
