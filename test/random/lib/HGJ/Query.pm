# Makes one random join query over a seed's schema.  The result says how it is
# to be run (mode), and whether every plan of it has a hashable join (sure).
package HGJ::Query;

use strict;
use warnings;
use HGJ::Rng;
use HGJ::Types;

sub new
{
	my ($class, $schema, $n) = @_;
	my $rng = HGJ::Rng->new("query:$schema->{seed}:$n");
	my $self = bless { schema => $schema, rng => $rng, alias => 0, rels => 0, hashed => 0,
		limit_work => 0, params => [], rough => 0 }, $class;
	$self->make;
	return $self;
}

# ---------------------------------------------------------------- relations

# A relation is { cols => [ column ], sql => from item }; a column is
# { sql => 'a.k', family, type, own, out, exact }.

sub columns_of
{
	my ($self, $alias, $table) = @_;
	return [ map { { %$_, sql => "$alias.$_->{name}", alias => $alias } } @{ $table->{cols} } ];
}

sub any_table
{
	my ($self) = @_;
	my @t = @{ $self->{schema}{tables} };
	return $self->{rng}->pick(@t);
}

sub new_alias
{
	my ($self) = @_;
	return 'r' . $self->{alias}++;
}

sub base
{
	my ($self, $outer) = @_;
	my $rng = $self->{rng};
	my $a = $self->new_alias;
	my $t = $self->any_table;
	$self->{rels}++;
	my $kind = $rng->weighted(table => 30, filtered => 4, distinct => 1, grouped => 2, values => 1, union => 1,
		series => 1, only => $t->{layout} eq 'inherited' ? 4 : 0, empty => 1);
	my $cols = $self->columns_of($a, $t);
	my $item = "$t->{name} $a";
	if ($kind eq 'filtered')
	{
		my $inner = $self->columns_of('s', $t);
		$item = "(select * from $t->{name} s where " . $self->simple_qual($inner) . ") $a";
	}
	elsif ($kind eq 'empty')
	{
		$item = "(select * from $t->{name} s where s.w < -100) $a";
	}
	elsif ($kind eq 'only' && !$t->{view})
	{
		$item = "only $t->{name} $a";
	}
	elsif ($kind eq 'distinct')
	{
		my @keep = grep { $_->{exact} } @$cols;
		my %ok = map { $_->{name} => 1 } @keep;
		my $list = join ', ', map { $_->{name} } @keep;
		$item = "(select distinct $list from $t->{name}) $a";
		$cols = \@keep;
	}
	elsif ($kind eq 'grouped')
	{
		my @keep = grep { $_->{exact} } @$cols;
		my $list = join ', ', map { $_->{name} } grep { $_->{name} ne 'v' } @keep;
		my $v = (grep { $_->{name} eq 'v' } @keep) ? ', max(v) as v' : '';
		my $having = $rng->pick('', '', ' having count(*) < 3', ' having max(w) > 4');
		$item = "(select $list$v from $t->{name} group by $list$having) $a";
		$cols = \@keep;
	}
	elsif ($kind eq 'union')
	{
		my $list = join ', ', map { $_->{name} } @$cols;
		$item = "(select $list from $t->{name} where w < 50 union all select $list from $t->{name} where w >= 30) $a";
	}
	elsif ($kind eq 'series' || $kind eq 'values')
	{
		my %t = (family => 'num', type => 'int4', alias => $a, exact => 1);
		$cols = [ map { { %t, name => $_, sql => "$a.$_" } } qw(id k v w) ];
		$item =
		  $kind eq 'series'
		  ? "(select g as id, nullif(g % 40, 3) as k, g / 2 as v, g % 10 as w from generate_series(-5, "
		  . $rng->between(10, 400) . ") g) $a"
		  : "(values " . join(', ', map { "($_, " . ($rng->chance(10) ? 'null' : $rng->between(-20, 60)) . ', '
			  . $rng->between(0, 50) . ', ' . $rng->between(0, 9) . ')' } 1 .. $rng->between(2, 12))
		  . ") $a(id, k, v, w)";
	}
	return { sql => $item, cols => $cols, aliases => [$a],
		plain => $kind eq 'table' && !$t->{view} ? $t : undef };
}

sub pair_of
{
	my ($self, $left, $right, %opt) = @_;
	my $rng = $self->{rng};
	my @pairs;
	my %by;
	push @{ $by{ $_->{family} } }, $_ for @$right;
	for my $l (@$left)
	{
		push @pairs, map { [ $l, $_ ] } @{ $by{ $l->{family} } || [] };
	}
	die "no pair" unless @pairs;
	# Columns with few values make too many matches when they are the only key.
	my $fits = sub {
		my ($p) = @_;
		return 0 if $opt{first} && $p->[0]{family} =~ /^(bool|enum|char)$/ && !$rng->chance(15);
		# columns of one name have values in common more often
		return 0 if $p->[0]{family} eq 'num' && $p->[0]{name} ne $p->[1]{name} && $rng->chance(65);
		# favour families other than "num", which has most of the pairs
		return 0 if $p->[0]{family} eq 'num' && $rng->chance(60);
		return 1;
	};
	for (1 .. 20)
	{
		my $p = $rng->pick(@pairs);
		return $p if $fits->($p);
	}
	return $rng->pick(@pairs);
}

# "x = y", sometimes in disguise
sub equality
{
	my ($self, $p) = @_;
	my $rng = $self->{rng};
	my ($x, $y) = @$p;
	if ($x->{family} eq 'num' && $rng->chance(10))
	{
		my $d = $rng->between(-3, 3);
		return $rng->pick("$x->{sql} = $y->{sql} + $d", "$x->{sql} + $d = $y->{sql} * 2",
			"$x->{sql}::numeric = $y->{sql}::numeric", "$x->{sql}::float8 = $y->{sql}");
	}
	return '(' . "$x->{sql}, $x->{alias}.v) = ($y->{sql}, $y->{alias}.v)"
	  if $x->{type} eq $y->{type} && $self->has($x, 'v') && $self->has($y, 'v') && $rng->chance(4);
	return HGJ::Types::equal($y, $x) if $rng->chance(50);
	return HGJ::Types::equal($x, $y);
}

sub has { return $_[1]{alias} && $_[1]{name} && $_[1]{name} ne 'late' }

sub col
{
	my ($self, $cols, $family) = @_;
	my @c = $family ? grep { $_->{family} eq $family && $_->{type} =~ /^int[248]$/ } @$cols : @$cols;
	return $self->{rng}->pick(@c);
}

sub int_col { return $_[0]->col($_[1], 'num') }

# a qual over one relation
sub simple_qual
{
	my ($self, $cols) = @_;
	my $rng = $self->{rng};
	my $c = $self->int_col($cols);
	my $n = $rng->between(-20, 200);
	return $rng->pick(
		"$c->{sql} > $n",
		"$c->{sql} < $n",
		"($c->{sql} % 3 <> 0 or $c->{sql} is null)",
		$self->col($cols)->{sql} . ' is not null',
		"$c->{sql} between $n - 40 and $n + 200",
		"f_lt($c->{sql}, $n)",
		"$c->{sql} in (" . join(', ', map { $rng->between(-20, 60) } 1 .. 12) . ')',
		"coalesce($c->{sql}, 1) <> $n");
}

# a qual over both sides that is no hash clause
sub residual
{
	my ($self, $left, $right) = @_;
	my $rng = $self->{rng};
	my ($x, $y) = ($self->int_col($left)->{sql}, $self->int_col($right)->{sql});
	my $n = $rng->between(0, 80);
	my $t = $self->any_table->{name};
	my $a = 's' . $self->{alias}++;
	my $kind = $rng->weighted(map({ $_ => 3 } qw(lt ne sum or mod func sqlfunc)), notdist => 2, one => 3,
		exists => 1, scalar => 1, in => 1, key => 1, case => 1, null => 1, subplan => 1);
	return "$x < $y" if $kind eq 'lt';
	return "$x <> $y" if $kind eq 'ne';
	return "$x + $y > $n" if $kind eq 'sum';
	return "($x > $n or $y < $n)" if $kind eq 'or';
	return "($x + $y) % 3 = 0" if $kind eq 'mod';
	return "f_lt($x, $y)" if $kind eq 'func';
	return "f_sql($x, $y)" if $kind eq 'sqlfunc';
	return "$x is not distinct from $y" if $kind eq 'notdist';
	return $self->simple_qual($rng->chance(50) ? $left : $right) if $kind eq 'one';
	return "exists (select 1 from $t $a where $a.id = $x and $a.w < $y)" if $kind eq 'exists';
	return "$x <= (select max($a.v) from $t $a where $a.w < $n)" if $kind eq 'scalar';
	return "$x + $y in (select $a.v from $t $a)" if $kind eq 'in';
	return "case when $x > $n then $y > $n else $y <= $n end" if $kind eq 'case';
	return "($x is null or $y is null or $x > $y)" if $kind eq 'null';
	return "$y > (select count(*) from $t $a where $a.k = $x)" if $kind eq 'subplan';
	my $p = $self->pair_of($left, $right);
	return HGJ::Types::equal(@$p);
}

sub condition
{
	my ($self, $left, $right, $type) = @_;
	my $rng = $self->{rng};
	my $nkeys = $rng->weighted(1 => 12, 2 => 5, 3 => 2, 5 => 1);
	my @quals = map { $self->equality($self->pair_of($left, $right, first => $_ == 1)) } 1 .. $nkeys;
	my $nres = $rng->weighted(0 => 6, 1 => 4, 2 => 1);
	push @quals, $self->residual($left, $right) for 1 .. $nres;
	$self->{hashed}++;
	return join ' and ', $rng->shuffle(@quals);
}

# a join tree of n relations
sub tree
{
	my ($self, $n) = @_;
	my $rng = $self->{rng};
	return $self->base if $n == 1;
	my $k = $rng->chance(70) ? $n - 1 : $rng->between(1, $n - 1);
	my $left = $self->tree($k);
	if ($n - $k == 1 && $rng->chance(6))
	{
		return $self->lateral($left);
	}
	my $right = $self->tree($n - $k);
	my $type = $rng->weighted(inner => 5, left => 5, right => 3, full => 3);
	my @cols = (@{ $left->{cols} }, @{ $right->{cols} });
	my @aliases = (@{ $left->{aliases} }, @{ $right->{aliases} });
	my $rsql = @{ $right->{aliases} } > 1 ? "($right->{sql})" : $right->{sql};
	if ($n == 2 && $rng->chance(8))
	{
		$self->{hashed}++;
		return { sql => "$left->{sql} $type join $rsql using (k)", cols => \@cols, aliases => \@aliases,
			merged => 1, type => $type };
	}
	my $on = $self->condition($left->{cols}, $right->{cols}, $type);
	return { sql => "$left->{sql} $type join $rsql on $on", cols => \@cols, aliases => \@aliases, type => $type };
}

sub lateral
{
	my ($self, $left) = @_;
	my $rng = $self->{rng};
	my $t = $self->any_table;
	my $u = $self->any_table;
	my $a = $self->new_alias;
	my $x = $self->columns_of('x', $t);
	my $y = $self->columns_of('y', $u);
	my $p = $self->pair_of($left->{cols}, $x);
	my $on = $self->condition($x, $y);
	my $type = $rng->pick('cross join', 'left join');
	my $tail = $type eq 'left join' ? ' on true' : '';
	# The outer side runs the inner one once per row: keep it short.
	my ($first) = @{ $left->{aliases} };
	$self->{lateral} = 1;
	my %t = (family => 'num', type => 'int4', alias => $a, exact => 1);
	my $body = $rng->pick(
		"select x.id, x.k::int4 as k, y.v, y.w from $t->{name} x join $u->{name} y on $on where " . HGJ::Types::equal(@$p),
		"select count(*)::int4 as id, min(x.k)::int4 as k, max(y.v) as v, min(y.w) as w from $t->{name} x left join $u->{name} y on $on and "
		  . "y.w > $left->{aliases}[0].w where " . HGJ::Types::equal(@$p));
	my @cols = map { { %t, name => $_, sql => "$a.$_" } } qw(id k v w);
	return { sql => "$left->{sql} $type lateral ($body) $a$tail",
		cols => [ @{ $left->{cols} }, @cols ], aliases => [ @{ $left->{aliases} }, $a ], type => 'lateral' };
}

# ---------------------------------------------------------------- sublinks

sub sublink
{
	my ($self, $cols) = @_;
	my $rng = $self->{rng};
	my $a = 'q' . $self->{alias}++;
	my $t = $self->any_table;
	my $inner = $self->columns_of($a, $t);
	my $p = $self->pair_of($cols, $inner, first => 1);
	my $eq = $self->equality($p);
	my $more = $rng->chance(40) ? ' and ' . $self->residual($cols, $inner) : '';
	my $own = $rng->chance(40) ? ' and ' . $self->simple_qual($inner) : '';
	my $join = '';
	if ($rng->chance(20))
	{
		my $b = $a . 'j';
		my $u = $self->any_table;
		my $other = $self->columns_of($b, $u);
		$join = $rng->pick('', ' left') . " join $u->{name} $b on " . $self->condition($inner, $other);
	}
	my $kind = $rng->weighted(exists => 5, notexists => 5, in => 4, notin => 1, scalar => 1, any => 1, or => 1);
	my $from = "$t->{name} $a$join";
	$self->{hashed}++ if $kind =~ /^(exists|notexists|in|any)$/;
	$self->{semi} = $kind;
	return "exists (select 1 from $from where $eq$more$own)" if $kind eq 'exists';
	return "not exists (select * from $from where $eq$more$own)" if $kind eq 'notexists';
	my ($x, $y) = @$p;
	my $collate = $x->{own} || $y->{own} ? ($x->{family} eq 'ci' ? ' collate ci' : ' collate "C"') : '';
	my ($xs, $ys) = ($x->{sql}, $y->{sql} . $collate);
	return "$xs in (select $ys from $from where true$own$more)" if $kind eq 'in';
	return "$xs = any (select $ys from $from where true$own)" if $kind eq 'any';
	return "$xs not in (select $ys from $from where $y->{sql} is not null$own)" if $kind eq 'notin';
	return "(exists (select 1 from $from where $eq) or " . $self->simple_qual($cols) . ')' if $kind eq 'or';
	return $self->int_col($cols)->{sql} . " >= (select min($a.v) from $from where $eq)";
}

# ---------------------------------------------------------------- output

sub out
{
	my ($self, $c) = @_;
	return $c->{out} ? $c->{out}->($c->{sql}) : $c->{sql};
}

sub targets
{
	my ($self, $tree) = @_;
	my $rng = $self->{rng};
	my @cols = @{ $tree->{cols} };
	my @list;
	for (1 .. $rng->between(1, 5))
	{
		my $c = $rng->pick(@cols);
		my $kind = $rng->weighted(col => 16, coalesce => 2, expr => 2, case => 1, func => 1, len => 1, null => 1, sub => 1);
		my $i = $self->int_col(\@cols)->{sql};
		my $j = $self->int_col(\@cols)->{sql};
		push @list,
		    $kind eq 'col'      ? $self->out($c)
		  : $kind eq 'coalesce' ? "coalesce($i, $j, -1)"
		  : $kind eq 'expr'     ? "${i}::int8 + $j"
		  : $kind eq 'case'     ? "case when $i > $j then 'gt' when $i <= $j then 'le' end"
		  : $kind eq 'func'     ? "f_num(${i}::int4)"
		  : $kind eq 'len'      ? "octet_length($c->{sql}::text)"
		  : $kind eq 'sub'      ? '(select count(*) from ' . $self->any_table->{name} . " z where z.id = $i)"
		  :                       "$c->{sql} is null";
	}
	if ($rng->chance(6))
	{
		my $a = $rng->pick(@{ $tree->{aliases} });
		push @list, "md5($a\::text)";
	}
	push @list, 'k' if $tree->{merged};
	return @list;
}

sub exact_cols
{
	my ($self, $tree) = @_;
	return grep { $_->{exact} && $_->{family} ne 'bigtext' } @{ $tree->{cols} };
}

sub where
{
	my ($self, $tree) = @_;
	my $rng = $self->{rng};
	my @quals;
	my @cols = @{ $tree->{cols} };
	if ($rng->chance(35))
	{
		my $c = $rng->pick(@cols);
		push @quals, $rng->pick($self->simple_qual(\@cols), "$c->{sql} is null",
			'(' . $self->simple_qual(\@cols) . " or $c->{sql} is null)",
			$self->residual(\@cols, \@cols));
	}
	# one relation is to be joined with something, unless it may be aggregated by itself
	push @quals, $self->sublink(\@cols) if $rng->chance($self->{rels} > 1 ? 25 : $self->{mode} =~ /^(agg|group)$/ ? 40 : 100);
	push @quals, $self->sublink(\@cols) if $rng->chance(5);
	return join ' and ', @quals;
}

# ---------------------------------------------------------------- statements

sub make
{
	my ($self) = @_;
	my $rng = $self->{rng};
	my $mode = $rng->weighted(plain => 34, agg => 9, group => 6, distinct => 4, ordered => 5, window => 2,
		sublimit => 5, prepared => 9, cursor => 8, early => 4, plpgsql => 5, cte => 4, ctas => 2, setop => 2,
		update => 4, delete => 4, insert => 2, merge => 2, rowlock => 2, serializable => 1, initplan => 1);
	$self->{mode} = $mode;
	if ($mode =~ /^(update|delete|insert|merge)$/)
	{
		$self->dml($mode);
	}
	else
	{
		my $n = $rng->weighted(1 => 12, 2 => 45, 3 => 25, 4 => 12, 5 => 6);
		my $tree = $self->tree($n);
		my $where = $self->where($tree);
		# An equality on top of everything may also come from a comma list.
		my $from = "from $tree->{sql}" . ($where ? " where $where" : '');
		$self->{from} = $from;
		$self->select($mode, $tree, $from, $where);
		# With two base tables and a hash clause between them there is one
		# join, and it can be ours.  (Subqueries, laterals and such may be
		# planned in several ways.)
		$self->{sure} = $n == 2 && $self->{rels} == 2 && !$self->{lateral} && !$self->{semi}
		  && $from !~ /\(select|\(values|f_sql/ && $mode ne 'setop' && !$self->{rough};
	}
	$self->settings;
	return;
}

sub select
{
	my ($self, $mode, $tree, $from, $where) = @_;
	my $rng = $self->{rng};
	my @t = $self->targets($tree);
	my $list = join ', ', @t;
	my @exact = $self->exact_cols($tree);
	my $plain = "select $list $from";
	my $md5 = sub { "select * from ($_[0]) q order by md5(q::text), q::text" };
	$self->{explain} = $self->{sql} = $plain;
	my $g = @exact ? $rng->pick(@exact)->{sql} : 'null::int';
	my $i = $self->int_col($tree->{cols})->{sql};
	my $j = $self->int_col($tree->{cols})->{sql};
	if ($mode eq 'agg')
	{
		my $agg = $rng->pick("count(*)", "count(*), sum(${i}::int8), min($j), max($i)",
			"count($i), count(distinct $j)", "sum(($i + $j)::numeric), bool_or($i > 5)",
			"count(*) filter (where $i > 10), count($j)", "max($i), min($i)",
			"md5(string_agg(${i}::text, ',' order by $i, $j)), count(*)");
		$self->{sql} = "select $agg $from";
	}
	elsif ($mode eq 'group')
	{
		my $having = $rng->chance(30) ? ' having count(*) > 1' : '';
		my $by = $rng->pick('group by', 'group by', 'group by rollup');
		$self->{sql} = "select $g, count(*), sum(${i}::int8) $from $by ($g)$having";
	}
	elsif ($mode eq 'distinct')
	{
		$self->{sql} = "select distinct $g, $i $from";
	}
	elsif ($mode eq 'ordered')
	{
		$self->{sql} = $md5->($plain) . ' limit ' . $rng->pick(1, 10, 100, 1000) . ' offset ' . $rng->pick(0, 0, 5, 50);
		$self->{ordered} = 1;
	}
	elsif ($mode eq 'window')
	{
		$self->{sql} = "select $g, $i, count(*) over (partition by $g), sum(${i}::int8) over (partition by $g) $from";
	}
	elsif ($mode eq 'sublimit')
	{
		$self->{limited} = $plain . $rng->pick(' limit ', ' offset 2 limit ') . $rng->pick(1, 5, 30, 300, 5000);
	}
	elsif ($mode eq 'setop')
	{
		my $op = $rng->pick('union all', 'union', 'intersect', 'except');
		$self->{sql} = "select $g $from $op select $g $from" . ($where ? ' and ' : ' where ') . "$i > 10";
	}
	elsif ($mode eq 'cte')
	{
		my $mat = $rng->pick('materialized', 'materialized', 'not materialized');
		my $t = $self->any_table->{name};
		$self->{sql} = $rng->pick(
			"with q as $mat (select $i as n, $list $from) select * from q",
			"with q as $mat (select $i as n, count(*) as c $from group by 1) select q.n, q.c, z.id from q left join $t z on z.id = q.n",
			"with recursive r(n, d) as (select 1, 0 union select x.v, r.d + 1 from r join $t x on x.id = r.n where r.d < 6), "
			  . "q as (select $i as n $from) select q.n, (select count(*) from r), r.d from q left join r using (n)");
		$self->{rough} = 1;
		$self->{explain} = $self->{sql};
	}
	elsif ($mode eq 'initplan')
	{
		$self->{sql} = "select (select count(*) $from), z.id from " . $self->any_table->{name} . " z where z.v > (select min($i) $from)";
	}
	elsif ($mode eq 'prepared')
	{
		my $p = $rng->pick("$i > \$1", "($i is null or $i <> \$1)", '$1 % 2 = 1', "$i + $j > \$1", "$i in (\$1, \$1 + 1, \$1 + 2) or $j < \$1");
		my $q = $plain . ($where ? ' and ' : ' where ') . "($p)";
		$self->{prepare} = "prepare p(int) as $q";
		$self->{args} = [ map { $rng->between(-20, 100) } 1 .. 2 ];
		$self->{explain} = "execute p($self->{args}[0])";
		$self->{plan_cache_mode} = $rng->pick(qw(force_generic_plan force_generic_plan auto force_custom_plan));
		$self->{rough} = 1 if $p =~ /^\$1/;
		$self->{sql} = $q;
	}
	elsif ($mode eq 'rowlock')
	{
		# only base tables that cannot be null-extended can be locked
		my $t = $self->any_table;
		my $cols = $self->columns_of('z', $t);
		$self->{alias} = 0;
		my $u = $self->any_table;
		my $y = $self->columns_of('y', $u);
		my $on = $self->condition($cols, $y);
		$self->{explain} = $self->{sql} = "select z.id, y.id, y.w from $t->{name} z join $u->{name} y on $on for " . $rng->pick('update', 'share') . ' of z';
		$self->{rels} = 3;
	}
	$self->{explain} = $self->{sql} if $mode =~ /^(agg|group|distinct|ordered|window|initplan|setop)$/;
	$self->{chunks} = [ map { $rng->pick(1, 2, 7, 50, 333, 1000) } 1 .. $rng->between(1, 4) ];
	$self->{scroll} = $rng->pick('', '', 'scroll ');
	$self->{hold} = $rng->pick('', '', ' with hold');
	return;
}

sub dml
{
	my ($self, $mode) = @_;
	my $rng = $self->{rng};
	my @tables = grep { !$_->{view} } @{ $self->{schema}{tables} };
	my $t = $rng->pick(@tables);
	my $cols = $self->columns_of('t', $t);
	$self->{rels} = 1;
	my $source = $self->tree($rng->weighted(1 => 6, 2 => 3));
	my $on = $self->condition($cols, $source->{cols});
	$self->{target} = $t->{name};
	my $i = $self->int_col($source->{cols})->{sql};
	my $insertable = join ', ', map { $_->{name} } @{ $t->{cols} };
	if ($mode eq 'update')
	{
		$self->{sql} = $rng->pick(
			"update $t->{name} t set v = t.v + 1, w = t.w * 2 from $source->{sql} where $on returning t.id, t.v, t.w",
			"update $t->{name} t set k = coalesce(t.k, 0) + 7 from $source->{sql} where $on returning t.id, t.k",
			"update $t->{name} t set v = -1 where exists (select 1 from $source->{sql} where $on)",
			"update $t->{name} t set v = s.m from (select max($i) as m, count(*) as n from $source->{sql}) s where t.id = s.m returning t.id, s.n");
	}
	elsif ($mode eq 'delete')
	{
		$self->{sql} = $rng->pick(
			"delete from $t->{name} t using $source->{sql} where $on returning t.id, t.v",
			"delete from $t->{name} t where exists (select 1 from $source->{sql} where $on) returning t.id",
			"delete from $t->{name} t where not exists (select 1 from $source->{sql} where $on) returning t.id",
			"with gone as (delete from $t->{name} t using $source->{sql} where $on returning t.id) select count(*), min(id) from gone");
	}
	elsif ($mode eq 'insert')
	{
		$self->{sql} = "insert into $t->{name} ($insertable) select " . join(', ', map { $_->{name} eq 'id' ? 'null::int' : "t.$_->{name}" } @{ $t->{cols} })
		  . " from $t->{name} t join $source->{sql}" . ' on ' . $on . ' returning k, v';
	}
	else
	{
		my $a = $source->{aliases}[0];
		$self->{sql} = "merge into $t->{name} t using " . (@{ $source->{aliases} } > 1 ? "($source->{sql})" : $source->{sql})
		  . " on $on when matched and t.w < 30 then "
		  . $rng->pick('update set v = t.v + 1', 'delete', 'do nothing')
		  . " when matched and t.w < 60 then " . $rng->pick('update set w = 0', 'do nothing')
		  . " when not matched and $a.w > 20 then insert (k, v, w) values ($a.k, $a.v, $a.w)";
	}
	$self->{explain} = $self->{sql};
	$self->{rough} = 1;
}

sub settings
{
	my ($self) = @_;
	my $rng = $self->{rng};
	$self->{force} = {
		'hashgraph_join.build'    => $rng->pick(qw(auto v1 v2 sort direct)),
		'hashgraph_join.probe'    => $rng->pick(qw(auto standard binned)),
		'hashgraph_join.segments' => $rng->pick(qw(auto csr ellpack sliced)),
		'hashgraph_join.filter' => $rng->pick(qw(auto on off)),
		'hashgraph_join.dictionaries' => $rng->pick(qw(on on on off)),
		'hashgraph_join.engine'   => $rng->pick(qw(auto auto cpu)),
		'hashgraph_join.source'   => $rng->pick(qw(auto auto auto auto auto tuples)),
		'hashgraph_join.aggregate' => $rng->pick(qw(on on on on on off)),
		'hashgraph_join.spill' => $rng->pick(qw(auto auto partitions passes)),
		'hashgraph_join.parallel_aggregate' => $rng->pick(qw(auto partial exchange)),
		'hashgraph_join.parallel_build' => $rng->pick(qw(auto auto shared shared private)),
		'hashgraph_join.chunk_rows' => $rng->pick(0, 0, 0, 3, 7, 40, 400),
		'hashgraph_join.chunk_outer_rows' => $rng->pick(0, 1, 1, 200),
	};
	my %s = (work_mem => $rng->pick(qw(64kB 4MB)), enable_partitionwise_join => $rng->pick(qw(on off)));
	$s{enable_partitionwise_aggregate} = 'on' if $rng->chance(20);
	$s{plan_cache_mode} = $self->{plan_cache_mode} if $self->{plan_cache_mode};
	if ($rng->chance(8))
	{
		@s{qw(parallel_setup_cost parallel_tuple_cost min_parallel_table_scan_size)} = (0, 0, 0);
		$s{max_parallel_workers_per_gather} = 2;
	}
	else { $s{max_parallel_workers_per_gather} = 0 }
	$s{enable_mergejoin} = 'off' if $rng->chance(15);
	$s{enable_material} = 'off' if $rng->chance(10);
	$s{join_collapse_limit} = 1 if $rng->chance(15);
	$s{hash_mem_multiplier} = 1 if $rng->chance(30);
	if ($rng->chance(1)) { @s{qw(jit_above_cost jit_inline_above_cost jit_optimize_above_cost)} = (0, -1, -1); $s{jit} = 'on' }
	$self->{common} = \%s;
	$self->{analyze} = $rng->chance(30);
}

1;
