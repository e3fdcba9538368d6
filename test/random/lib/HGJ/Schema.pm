# The tables of one seed: SQL that makes them, and what the query generator
# needs to know about them.
package HGJ::Schema;

use strict;
use warnings;
use HGJ::Rng;
use HGJ::Star;
use HGJ::Types;

sub new
{
	my ($class, $seed) = @_;
	my $rng = HGJ::Rng->new("schema:$seed");
	my $self = bless {
		seed => $seed, name => "seed_$seed", rng => $rng, salt => 0, tables => [], sql => []
	}, $class;
	$self->sql("create schema $self->{name}", "set search_path = $self->{name}");
	$self->sql(@HGJ::Types::PRELUDE);

	# "num" is in every schema: it has the cross-type pairs.
	my %weight = map { $_ => $HGJ::Types::FAMILY{$_}{weight} } sort keys %HGJ::Types::FAMILY;
	delete $weight{num};
	$self->{families} = ['num'];
	for (1 .. $rng->between(3, 5))
	{
		my $f = $rng->weighted(map { $_ => $weight{$_} } sort keys %weight);
		delete $weight{$f};
		push @{ $self->{families} }, $f;
	}

	my $ntables = $rng->between(4, 6);
	my $large = $rng->below($ntables);
	# Two tables that are partitioned alike can be joined partition by partition.
	my $alike = $rng->chance(70) ? $rng->pick(qw(hash range list)) : '';
	for my $i (1 .. $ntables)
	{
		my $rows =
			$i - 1 == $large ? $rng->between(1500, 3000)
		  : $i % 2 ? $rng->pick(250, 400, 700, 1300)
		  : $rng->weighted(0 => 2, 1 => 1, 9 => 4, 60 => 6, 250 => 10, 700 => 8, 1300 => 2);
		my $layout =
			$alike && $i <= 2 ? $alike
		  : $rng->weighted(plain => 7, inherited => 1, range => 1, altered => 2);
		$self->table("t$i", $rows, $layout);
	}
	for my $i (1 .. 2)
	{
		my $of = $rng->pick(@{ $self->{tables} });
		my $barrier = $rng->chance(50) ? ' with (security_barrier)' : '';
		$self->sql("create view v$i$barrier as select * from $of->{name} where v is null or v % "
			  . $rng->between(2, 5) . ' <> 0');
		push @{ $self->{tables} }, { %$of, name => "v$i", view => 1 };
	}
	$self->{star} = HGJ::Star->new($seed);
	$self->sql(@{ $self->{star}{sql} });
	return $self;
}

sub sql
{
	my ($self, @statements) = @_;
	push @{ $self->{sql} }, @statements;
}

sub salt { return ++$_[0]{salt} + 1000 * $_[0]{seed} }

# An SQL expression over g: an integer from 0 on, or NULL.
sub distribution
{
	my ($self, $rows, $small) = @_;
	my $rng = $self->{rng};
	my $d = $rng->pick(30, 90, 270, 810, 810);
	$d = 10 if $rows <= 100 && $rng->chance(50);
	$d = $small if $small && $small < $d;
	# Most columns follow one number of the row, so that rows of two tables
	# that match in one column are likely to match in others too: 10, 30, 90
	# ... divide one another.
	my $e = sprintf 'h(g, %d) %% %d', $rng->chance(70) ? $self->{row_salt} : $self->salt, $d;
	$e = sprintf 'case when h(g, %d) %% 100 < %d then %d else %s end',
	  $self->salt, $rng->pick(5, 20), $rng->below($d), $e
	  if $rng->chance(25);
	$e = 'g % ' . $d if $rng->chance(10);
	my $nulls = $rng->weighted(0 => 25, 3 => 15, 15 => 15, 60 => 5, 100 => $rows > 100 ? 1 : 0);
	$e = sprintf 'case when h(g, %d) %% 100 >= %d then %s end', $self->salt, $nulls, $e if $nulls;
	return $e;
}

sub table
{
	my ($self, $name, $rows, $layout) = @_;
	my $rng = $self->{rng};
	my @cols;
	$self->{row_salt} = $self->salt;
	my $add = sub {
		my ($cname, $family, $type, $iexpr, %more) = @_;
		my $t = $HGJ::Types::FAMILY{$family}{types}{$type};
		push @cols, { name => $cname, family => $family, type => $type, iexpr => $iexpr, %$t, %more };
	};
	$add->('id', 'num', 'int4', 'g + 20');
	$add->('k', 'num', $layout =~ /^(hash|range|list)$/ ? 'int4' : $rng->pick(qw(int4 int4 int8)),
		$self->distribution($rows));
	$add->('v', 'num', 'int4', $self->distribution($rows));
	$add->('w', 'num', 'int4', 'h(g, ' . $self->salt . ') % 100');
	for my $family (@{ $self->{families} })
	{
		next if $rng->chance(12);
		my $f = $HGJ::Types::FAMILY{$family};
		my $n = $family eq 'num' ? 2 : 1;
		for (1 .. $n)
		{
			my $type = $rng->pick(sort keys %{ $f->{types} });
			(my $cname = "c_${family}" . ($n > 1 ? $_ : '')) =~ s/\W//g;
			$add->($cname, $family, $type, $self->distribution($rows, $f->{small}));
		}
	}
	$add->('pad', 'bigtext', 'text', $self->distribution($rows)) if $rng->chance(30);
	@cols = (@cols[ 0 .. 1 ], $rng->shuffle(@cols[ 2 .. $#cols ]));

	my $options = 'with (autovacuum_enabled = off)';
	my $defs = join ', ', map { "$_->{name} $_->{type}" } @cols;
	my $names = join ', ', map { $_->{name} } @cols;
	if ($layout eq 'altered')
	{
		my @defs = map { "$_->{name} $_->{type}" } @cols;
		splice @defs, $rng->below(scalar @defs), 0, 'gone1 text', 'gone2 int8 default 5';
		$self->sql("create table $name (" . join(', ', @defs) . ") $options",
			"alter table $name drop column gone1");
	}
	elsif ($layout =~ /^(hash|range|list)$/)
	{
		$self->sql("create table $name ($defs) partition by $layout (k)");
		if ($layout eq 'hash')
		{
			$self->sql("create table ${name}_p$_ partition of $name for values with (modulus 3, remainder $_) $options")
			  for 0 .. 2;
		}
		elsif ($layout eq 'range')
		{
			$self->sql("create table ${name}_p1 partition of $name for values from (minvalue) to (0) $options",
				"create table ${name}_p2 partition of $name for values from (0) to (90) $options",
				"create table ${name}_p3 partition of $name for values from (90) to (maxvalue) $options");
			$self->sql("create table ${name}_pd partition of $name default $options");
		}
		else
		{
			$self->sql("create table ${name}_p1 partition of $name for values in ("
				  . join(', ', -20 .. -1) . ", null) $options",
				"create table ${name}_p2 partition of $name for values in ("
				  . join(', ', 0 .. 60) . ") $options",
				"create table ${name}_pd partition of $name default $options");
		}
	}
	else
	{
		$self->sql("create table $name ($defs) $options");
	}

	my $fill = sub {
		my ($into, $from, $to) = @_;
		my @inner = map { "$cols[$_]{iexpr} as i$_" } 0 .. $#cols;
		my @outer = map { "case when i$_ is not null then " . $cols[$_]{value}->("i$_") . ' end' } 0 .. $#cols;
		$self->sql("insert into $into ($names) select " . join(', ', @outer) . ' from (select g, '
			  . join(', ', @inner) . " from generate_series($from, $to) g offset 0) s");
	};
	if ($layout eq 'inherited')
	{
		$self->sql("create table ${name}_c1 () inherits ($name) $options",
			"create table ${name}_c2 (extra text default 'extra') inherits ($name) $options");
		my $third = int($rows / 3);
		$fill->($name,        1,              $third);
		$fill->("${name}_c1", $third + 1,     2 * $third);
		$fill->("${name}_c2", 2 * $third + 1, $rows);
	}
	else
	{
		$fill->($name, 1, $rows) if $rows;
	}
	if ($layout eq 'altered')
	{
		# rows of before the column was added have no value of it on disk
		$self->sql("alter table $name drop column gone2", "alter table $name add column late int4 default 7");
		push @cols, { name => 'late', family => 'num', type => 'int4', iexpr => '7',
			%{ $HGJ::Types::FAMILY{num}{types}{int4} } };
		$self->sql("insert into $name ($names) select $names from $name where id % 10 = 0",
			"update $name set late = v where id % 4 = 0", "delete from $name where id % 50 = 7");
	}
	if ($rng->chance(25))
	{
		my $c = $rng->pick(@cols[ 0 .. 1 ]);
		$self->sql("create index on $name ($c->{name})");
	}
	if ($rng->chance(30) && $layout !~ /^(altered|inherited)$/)
	{
		$self->sql("create unique index on $name (id" . ($layout eq 'plain' ? '' : ', k') . ')');
	}
	$self->sql("analyze $name");
	push @{ $self->{tables} }, { name => $name, rows => $rows, cols => \@cols, layout => $layout };
}

1;
