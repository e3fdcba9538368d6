# A small reproducible random number source: the same on every machine, and a
# stream of its own for every purpose, so that query 17 of a seed can be made
# without making the sixteen before it.
package HGJ::Rng;

use strict;
use warnings;
use Digest::MD5 qw(md5);

sub new
{
	my ($class, $key) = @_;
	return bless { key => $key, n => 0, pool => [] }, $class;
}

sub u32
{
	my ($self) = @_;
	$self->{pool} = [ unpack 'N4', md5("$self->{key}:" . $self->{n}++) ]
	  unless @{ $self->{pool} };
	return shift @{ $self->{pool} };
}

# 0 .. n-1
sub below
{
	my ($self, $n) = @_;
	return $self->u32 % $n;
}

# lo .. hi
sub between
{
	my ($self, $lo, $hi) = @_;
	return $lo + $self->below($hi - $lo + 1);
}

sub chance
{
	my ($self, $percent) = @_;
	return $self->below(100) < $percent;
}

sub pick
{
	my ($self, @of) = @_;
	return $of[ $self->below(scalar @of) ];
}

# weighted(a => 3, b => 1): 'a' three times as often as 'b'
sub weighted
{
	my ($self, @pairs) = @_;
	my $sum = 0;
	for (my $i = 1; $i < @pairs; $i += 2) { $sum += $pairs[$i] }
	my $x = $self->below($sum);
	while (@pairs)
	{
		my ($what, $weight) = splice @pairs, 0, 2;
		return $what if $x < $weight;
		$x -= $weight;
	}
	die;
}

sub shuffle
{
	my ($self, @list) = @_;
	for (my $i = @list - 1; $i > 0; $i--)
	{
		my $j = $self->below($i + 1);
		@list[ $i, $j ] = @list[ $j, $i ];
	}
	return @list;
}

1;
