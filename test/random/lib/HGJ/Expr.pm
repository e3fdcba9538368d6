# Random filters, expressions and aggregates over a list of columns, each
# { sql, kind, type }: kind is one of int, float, numeric, date, ts, bool, text.
#
# Whatever order rows are taken in, the results are the same to the last bit:
# floats are small multiples of 0.25, and what may print in two ways (-0, 1.0
# and 1.00) is brought into one form before it leaves.
package HGJ::Expr;

use strict;
use warnings;

sub new
{
	my ($class, $rng, %opt) = @_;
	return bless { rng => $rng, params => [ @{ $opt{params} || [] } ] }, $class;
}

sub of
{
	my ($self, $cols, @kinds) = @_;
	my %want = map { $_ => 1 } @kinds;
	my @c = grep { $want{ $_->{kind} } } @$cols;
	return @c ? $self->{rng}->pick(@c) : undef;
}

# ---------------------------------------------------------------- constants

sub int_constant
{
	my ($self) = @_;
	my $rng = $self->{rng};
	return $rng->pick(@{ $self->{params} }) if @{ $self->{params} } && $rng->chance(30);
	return $rng->chance(60) ? $rng->between(-60, 60) : $rng->between(-1000, 1000);
}

# A constant to compare the column with, often of another type of its kind.
sub constant
{
	my ($self, $c) = @_;
	my $rng = $self->{rng};
	my $kind = $c->{kind};
	my $i = $rng->between(-60, 60);
	return "null::$c->{type}" if $rng->chance(2) && $kind ne 'text';
	if ($kind eq 'int')
	{
		my $k = $self->int_constant;
		return $k . $rng->pick('', '', '', '', '::int8', '::int2', $k =~ /^-?\d/ ? '.5' : '', '::float8');
	}
	return $rng->pick($i * 0.25, $i * 0.25, "'" . $i * 0.25 . "'::$c->{type}", $i, $self->int_constant, "'NaN'", "'Infinity'", "'-Infinity'", "'0.5'::float4", "'-0.75'::float8",
		"'-0'::float8") if $kind eq 'float';
	return $rng->pick($i / 10, "$i.00", $i, $self->int_constant, "'NaN'", "$i.5::float8", "$i.123456789012345678901234567890") if $kind eq 'numeric';
	return $rng->pick("date '2020-06-01' + $i", "'2020-0" . $rng->between(1, 9) . "-15'", "'infinity'", "'-infinity'",
		"timestamp '2020-05-05 12:00'") if $kind eq 'date';
	return $rng->pick("timestamp '2020-06-01' + $i * interval '1 day'", "'2020-0" . $rng->between(1, 9) . "-15 06:00'",
		"'infinity'", "date '2020-06-01' + $i")
	  if $kind eq 'ts';
	return $rng->pick(qw(true false)) if $kind eq 'bool';
	return "'" . $rng->pick(map { sprintf '%08x-0000-0000-0000-000000000000', $_ * 0x11111111 } 1 .. 14) . "'" if $kind eq 'uuid';
	return $rng->pick("'k$i'", "'k" . abs($i) . "'", "'K1'", "''", "'k1' || '2'");
}

# ---------------------------------------------------------------- filters

# x op y for two columns of one kind, or a column and a constant
sub comparison
{
	my ($self, $cols) = @_;
	my $rng = $self->{rng};
	my $c = $rng->pick(@$cols);
	my $op = $rng->pick('=', '<>', '<', '<=', '>', '>=');
	$op = $rng->pick('<', '<=', '>', '>=') if $op eq '=' && $rng->chance(70);
	if ($rng->chance(25))
	{
		my @kinds = $c->{kind} =~ /^(int|float|numeric)$/ && $rng->chance(30) ? qw(int float numeric) : $c->{kind};
		@kinds = qw(date ts) if $c->{kind} =~ /^(date|ts)$/ && $c->{type} ne 'timestamptz' && $rng->chance(30);
		my $d = $self->of([ grep { $_->{type} ne 'timestamptz' || $c->{type} eq 'timestamptz' } @$cols ], @kinds);
		return "$c->{sql} $op $d->{sql}" if $d;
	}
	my $k = $self->constant($c);
	return $rng->chance(15) ? "$k $op $c->{sql}" : "$c->{sql} $op $k";
}

sub list
{
	my ($self, $c) = @_;
	my $rng = $self->{rng};
	my @k = map { $self->constant($c) } 1 .. $rng->pick(1, 2, 3, 3, 5, 12, 25);
	push @k, 'null' if $rng->chance(20);
	# The elements' common type is the column's own where one is of it.
	push @k, "null::$c->{type}" if $rng->chance(5);
	return join ', ', $rng->shuffle(@k);
}

sub atom
{
	my ($self, $cols) = @_;
	my $rng = $self->{rng};
	my $c = $rng->pick(@$cols);
	my $s = $c->{sql};
	my $kind = $rng->weighted(compare => 12, null => 2, between => 3, in => 3, bool => 2, arith => 3, distinct => 1,
		slow => 1, guard => 1, any => 1, func => 1, string => 3, like => 1, field => 1);
	return $self->comparison($cols) if $kind eq 'compare';
	return "$s is " . $rng->pick('', 'not ', 'not ') . 'null' if $kind eq 'null';
	if ($kind eq 'between')
	{
		my ($lo, $hi) = ($self->constant($c), $self->constant($c));
		$hi = $self->constant($c) . ($c->{kind} eq 'int' && !@{ $self->{params} } ? ' + 40' : '') if $c->{kind} eq 'int';
		return "$s " . $rng->pick('', '', 'not ') . 'between ' . $rng->pick('', '', 'symmetric ') . "$lo and $hi" if $c->{kind} ne 'bool';
	}
	return "$s " . $rng->pick('', '', 'not ') . 'in (' . $self->list($c) . ')' if $kind eq 'in' && $c->{kind} ne 'bool';
	return "$s " . $rng->pick('= any', '<> all', '< any', '>= all') . " (array[" . $self->list($c) . "]::$c->{type}\[])"
	  if $kind eq 'any' && $c->{kind} =~ /^(int|date|text)$/;
	if ($kind eq 'bool' && (my $b = $self->of($cols, 'bool')))
	{
		return $rng->pick($b->{sql}, "not $b->{sql}", "$b->{sql} is true", "$b->{sql} is not true", "$b->{sql} is false",
			"$b->{sql} is not false", "$b->{sql} is unknown", "$b->{sql} is not unknown", "$b->{sql} = true");
	}
	if ($kind eq 'arith')
	{
		my $x = $self->arith($cols, 1);
		return "$x->{sql} " . $rng->pick('<', '<=', '>', '>=', '<>', '=') . ' ' . $rng->pick($self->constant($x), $self->arith($cols, 0)->{sql})
		  if $x && $x->{kind} eq 'int';
		return "$x->{sql} " . $rng->pick('<', '>=', '<>') . ' ' . $self->constant($x) if $x;
	}
	return $self->string($cols) if $kind eq 'string';
	if ($kind eq 'like' && (my $t = $self->of($cols, 'text')))
	{
		return "$t->{sql} " . $rng->pick('like', 'like', 'not like') . " '" . $rng->pick('%1%', 't%', '%a', '%', 't%1%', '_%1', '%e%x%', '%\\_%', '') . "'";
	}
	if ($kind eq 'field' && (my $f = $self->field($cols)))
	{
		return "$f->{sql} " . $rng->pick('<', '>=', '=', '<>') . ' ' . $rng->pick(1, 2, 3.5, 12, 2000, 2001);
	}
	return "$s is " . $rng->pick('', 'not ') . 'distinct from ' . $self->constant($c) if $kind eq 'distinct';
	my $i = $self->of($cols, 'int');
	return $self->comparison($cols) unless $i;
	# What a program of ours does not know goes to ExecQual.
	return $rng->pick("$i->{sql} % 3 <> 0", "coalesce($i->{sql}, 1) > 0", "abs($i->{sql}) < 50", "case when $i->{sql} > 5 then $i->{sql} < 60 else $i->{sql} < -5 end",
		"$s\::text like '%1%'") if $kind eq 'slow';
	return "f_lt($i->{sql}, " . $rng->between(-50, 200) . ')' if $kind eq 'func';
	return "($i->{sql} <> 0 and 1000 / $i->{sql} < " . $rng->between(1, 100) . ')' if $kind eq 'guard';
	return $self->comparison($cols);
}

# What is evaluated once for each value of a column of strings: of one column, and with
# errors only where nothing guards them.
sub string
{
	my ($self, $cols) = @_;
	my $rng = $self->{rng};
	my $t = $self->of($cols, 'text');
	return $self->comparison($cols) unless $t;
	my $s = $t->{sql};
	my $k = $rng->below(10);
	my $param = @{ $self->{params} } ? $rng->pick(@{ $self->{params} }) : $k;
	return $rng->pick("$s like '%$k%'", "$s not like 'k_$k'", "$s ~ '[$k-9]\$'", "upper($s) < 'K$k'", "substring($s from 2 for 1) in ('$k', '7')",
		"case $s when 'k$k' then true when 'k1$k' then null else length($s) > 2 end", "coalesce($s, 'k$k') >= 'k5'", "md5($s) < '$k'",
		"($s is null or right($s, 1) = '$k')", "nullif($s, 'k$k') is null", "length($s) + $k > 7", "'k' || $param = left($s, 3)",
		"case when length($s) <> 2 then 1000 / (length($s) - 2) > $k end", "($s like 'k$k%') is not true", "greatest($s, 'k4') > 'k$k'",
		"strpos($s, ($param)::text) > 0");
}

# A condition in SQL's three-valued logic.
sub qual
{
	my ($self, $cols, $depth) = @_;
	my $rng = $self->{rng};
	$depth = 2 unless defined $depth;
	my $kind = $depth > 0 ? $rng->weighted(atom => 8, and => 2, or => 6, not => 2, is => 1) : 'atom';
	return $self->atom($cols) if $kind eq 'atom';
	return 'not (' . $self->qual($cols, $depth - 1) . ')' if $kind eq 'not';
	return '(' . $self->qual($cols, $depth - 1) . ') is ' . $rng->pick('true', 'not true', 'unknown', 'not false') if $kind eq 'is';
	my @q = map { $self->qual($cols, $depth - 1) } 1 .. $rng->between(2, 4);
	return '(' . join(" $kind ", @q) . ')';
}

# ---------------------------------------------------------------- expressions

my %WIDER = (int2 => 1, int4 => 2, int8 => 3);

# A part of a date or a timestamp, or undef.
sub field
{
	my ($self, $cols) = @_;
	my $rng = $self->{rng};
	my $d = $self->of($cols, 'date', 'ts') || return undef;
	return { sql => 'extract(' . $rng->pick(qw(year month day quarter dow doy week)) . " from $d->{sql})", kind => 'numeric', type => 'numeric' };
}

# One of the numeric kinds, or undef.  Values stay small: columns are below
# 1000 (int2: 100), and products are of two columns at most.
sub arith
{
	my ($self, $cols, $depth) = @_;
	my $rng = $self->{rng};
	my @n = grep { $_->{kind} =~ /^(int|float|numeric)$/ } @$cols;
	return undef unless @n;
	my $c = $rng->pick(@n);
	return $c if $depth <= 0;
	my $kind = $rng->weighted(column => 2, sum => 5, product => 4, minus => 1, constant => 4, cast => 2, deep => 3, branch => 2, field => 1, extreme => 1);
	return $c if $kind eq 'column';
	if ($kind eq 'minus') { return { %$c, sql => "(- $c->{sql})" } }
	return $self->field($cols) || $c if $kind eq 'field';
	if ($kind eq 'extreme')
	{
		return { %$c, sql => "nullif($c->{sql}, " . $self->constant($c) . ')' } if $rng->chance(40);
		return $c if $c->{kind} eq 'float';
		my $d = $rng->pick(grep { $_->{type} eq $c->{type} } @n);
		return { %$c, sql => $rng->pick('greatest', 'least') . "($c->{sql}, $d->{sql})" };
	}
	if ($kind eq 'branch')
	{
		# Numerics of several display scales, in branches of which not all are taken.
		return $c if $c->{kind} ne 'numeric';
		my $d = $self->of($cols, 'numeric');
		return { sql => $rng->chance(60) ? '(case when ' . $self->qual($cols, 0) . " then $c->{sql} else " . $rng->pick('0', 'null', '1.50', $d->{sql}) . ' end)'
			: $rng->chance(50) ? "coalesce($c->{sql}, $d->{sql}, 0.0)" : "abs($c->{sql})", kind => 'numeric', type => 'numeric' };
	}
	if ($kind eq 'cast')
	{
		my $to = $rng->pick($c->{kind} eq 'int' ? qw(int8 int8 int4 float8 numeric) : $c->{kind} eq 'float' ? 'float8' : qw(numeric float8));
		return $c if $c->{type} eq 'int8' && $to eq 'int4' || $c->{type} eq 'int8' && $to eq 'float8';
		return $c if $c->{kind} eq 'numeric' && $to eq 'float8';
		return { %$c, sql => "$c->{sql}::$to", type => $to, kind => $to =~ /^int/ ? 'int' : $to eq 'numeric' ? 'numeric' : 'float' };
	}
	if ($kind eq 'constant')
	{
		my $op = $rng->pick('+', '-', '*');
		my $k = $rng->between(1, 9);
		my $x = { %$c };
		$x->{type} = 'int4' if $c->{type} eq 'int2';
		if ($c->{kind} eq 'int' && $rng->chance(10)) { $k = "$k\::int8"; $x->{type} = 'int8' }
		if ($c->{kind} eq 'float') { $k = "$k.25::$c->{type}" }
		if ($c->{kind} eq 'numeric') { $k = $rng->pick($k, "$k.05") }
		$x->{sql} = $rng->chance(50) ? "($c->{sql} $op $k)" : "($k $op $c->{sql})";
		$x->{product} = 1 if $op eq '*';
		return $x;
	}
	my ($x, $y) = ($c, $rng->pick(@n));
	$y = $self->arith($cols, $depth - 1) if $kind eq 'deep';
	# What these two make, and whether it is exact and in range.
	my ($kx, $ky) = ($x->{kind}, $y->{kind});
	return $x if "$kx$ky" =~ /numericfloat|floatnumeric/ || ($kx ne $ky && ($x->{type} eq 'int8' || $y->{type} eq 'int8') && "$kx$ky" =~ /float/);
	my $op = $kind eq 'product' ? '*' : $rng->pick('+', '-');
	my $type =
	    $kx eq 'int' && $ky eq 'int' ? ($WIDER{ $x->{type} } > $WIDER{ $y->{type} } ? $x->{type} : $y->{type})
	  : "$kx$ky" =~ /numeric/ ? 'numeric'
	  : $x->{type} eq 'float4' && $y->{type} eq 'float4' ? 'float4' : 'float8';
	return { sql => "($x->{sql} $op $y->{sql})", kind => $type =~ /^int/ ? 'int' : $type eq 'numeric' ? 'numeric' : 'float', type => $type,
		free => 1, product => $op eq '*' || $x->{product} || $y->{product} };
}

# In one form: equal values print alike.
sub out
{
	my ($self, $x, $sql) = @_;
	$sql = $x->{sql} unless defined $sql;
	return "$sql + 0" if $x->{kind} eq 'float';
	return "trim_scale($sql)" if $x->{kind} eq 'numeric' && !$x->{scaled};
	return "md5($sql)" if $x->{long};
	return $sql;
}

# ---------------------------------------------------------------- aggregates

sub aggregate
{
	my ($self, $cols) = @_;
	my $rng = $self->{rng};
	my $c = $rng->pick(@$cols);
	my $x = $rng->chance(45) ? $self->arith($cols, $rng->pick(1, 1, 2)) : undef;
	$x = $self->of($cols, qw(int float numeric)) || $c unless $x;
	my $number = $x->{kind} =~ /^(int|float|numeric)$/;
	my $kind = $rng->weighted(star => 4, count => 4, sum => 8, avg => 4, min => 3, max => 3, bool => 2, other => 1);
	my $filter = $rng->chance(20) ? ' filter (where ' . $self->qual($cols, 1) . ')' : '';
	my $distinct = $rng->chance(8) ? 'distinct ' : '';
	$kind = 'count' if !$number && $kind =~ /^(sum|avg)$/;
	return "count(*)$filter" if $kind eq 'star';
	return "count($distinct" . ($rng->chance(50) ? $c->{sql} : $x->{sql}) . ")$filter" if $kind eq 'count';
	if ($kind eq 'sum')
	{
		# A float4 sum has 24 bits.
		my $arg = $x->{type} eq 'float4' && ($x->{product} || $x->{free}) ? "$x->{sql}::float8" : $x->{sql};
		return $self->out({ %$x, scaled => 1 }, "sum($distinct$arg)$filter");
	}
	return $self->out({ %$x, scaled => 1, kind => $x->{kind} eq 'float' ? 'float' : 'numeric' }, "avg($distinct$x->{sql})$filter") if $kind eq 'avg';
	if ($kind =~ /^(min|max)$/)
	{
		my $y = $rng->chance(50) ? $x : $c;
		$y = $x if $y->{kind} eq 'bool' || $y->{type} eq 'uuid';
		return "count(*)$filter" if $y->{kind} eq 'bool' || $y->{type} eq 'uuid';
		my $s = $y->{sql};
		$s = $rng->pick("upper($s)", "left($s, 3)", "case when $s like 'k1%' then $s end", "nullif($s, 'k7')", "reverse($s)", "repeat($s, 40)")
		  if $y->{kind} eq 'text' && $rng->chance(40);
		return $self->out($y, "$kind($s)$filter");
	}
	my $b = $self->of($cols, 'bool');
	return $rng->pick('bool_and', 'bool_or', 'every') . '(' . ($b && $rng->chance(50) ? $b->{sql} : $self->qual($cols, 1)) . ")$filter"
	  if $kind eq 'bool';
	my $i = $self->of($cols, 'int') || return 'count(*)';
	return $rng->pick("bit_xor($i->{sql})", "variance($i->{sql})", "md5(string_agg($i->{sql}::text, ',' order by $i->{sql}))", "array_length(array_agg($i->{sql}), 1)");
}

1;
