#!/usr/bin/perl
# Random differential test of subqueries that become joins (src/rewrite): makes tables and
# queries with correlated scalar subqueries, EXISTS, IN, NOT IN, ANY and ALL from a seed, runs every query as it is written,
# by PostgreSQL's own nodes, and rewritten by force, and compares the results, or the errors.
#
#   perl test/random/hidden.pl [--seeds N] [--queries N] [--seed S] [--only Q] [--early PERCENT] [--verbose]
#
# --early: the percentage of queries whose groups may be made before a join (10).
#
# Tables have NULLs, duplicates, skew and types whose equality is not that of bits; now and
# then one is empty.  Most subqueries can be rewritten: a share that is too small means that
# the test no longer tests it.  PGHOST, PGPORT and PGUSER say which server (as a superuser).
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Getopt::Long;
use HGJ::Rng;
use HGJ::Session;

my %opt = (seeds => 2, queries => 400, seed => 1, early => 10);
GetOptions(\%opt, 'seeds=i', 'queries=i', 'seed=i', 'only=i', 'early=i', 'verbose') and !@ARGV
  or die "usage: hidden.pl [--seeds N] [--queries N] [--seed S] [--only Q] [--early PERCENT] [--verbose]\n";
if ($opt{only})
{
	$opt{seeds} = 1;
	$opt{queries} = $opt{only};
}
$| = 1;

# The share of subqueries that are to become joins, and that are to stay what they are.
my ($least_joins, $least_others) = (0.35, 0.03);

# The share of groups that are to be made before a join, of those that early() has made for that.
my $least_early = 0.07;

# The share of queries whose groups are to be restricted.
my $least_restricted = 0.02;

my $db = "hgj_hidden_$$";
my $admin = HGJ::Session->new(dbname => 'postgres', bare => 1);
sub admin
{
	my ($sql) = @_;
	my $r = $admin->run($sql);
	die "$0: ", defined $r ? join("\n", @$r) : 'no connection', "\n" if !defined $r || grep { /ERROR/ } @$r;
}
admin("create database $db template template0 encoding 'UTF8' lc_collate 'C' lc_ctype 'C';");
END { if ($admin && !$admin->{dead}) { my $s = $?; $admin->run("drop database if exists $db with (force);"); $admin->disconnect; $? = $s } }

my $session = HGJ::Session->new(dbname => $db, bare => 1);
my $rng;

sub chance { return $rng->chance($_[0]) }
sub pick { return $rng->pick(@_) }

# ---- tables: the same columns in each, of types that are compared with each other

my @tables = qw(o p i j);
my %types = (
	o => [ qw(int bigint text), 'numeric(10,2)', 'float8', 'char(4)', 'date', 'varchar(9)', 'interval', 'mood', 'numeric(10,2)', 'uuid' ],
	p => [ 'bigint', 'int', 'varchar(12)', 'numeric', 'float4', 'char(6)', 'timestamp', 'text', 'interval', 'mood', 'numeric(8,1)', 'uuid' ],
	i => [ qw(int smallint text), 'numeric(12,4)', 'float8', 'char(4)', 'date', 'text', 'interval', 'mood', 'numeric(10,2)', 'uuid' ],
	j => [ qw(bigint bigint text), 'numeric(10,2)', 'float4', 'char(5)', 'date', 'varchar(7)', 'interval', 'mood', 'numeric(6,3)', 'uuid' ]);
my @keys = map { "k$_" } 1 .. 10;

# An expression of g, of values that occur in all tables.
sub values_of
{
	my ($column) = @_;
	my $n = pick(3, 11, 40, 200);
	my $x = chance(20) ? "(case when g % 3 = 0 then 1 else g % $n end)" : "(g * 7 % $n)";
	return (
		"$x", "$x - 2", "repeat('t' || $x, 1 + ($x) % 3)", "($x) / 2.0",
		"case ($x) % 9 when 0 then '-0'::float8 when 1 then 'nan' when 2 then 0 else ($x) / 4.0 end",
		"left('c' || ($x), 4)", "date '2024-02-01' + ($x)", "'v' || ($x)",
		"case when ($x) % 2 = 0 then interval '1 day' else interval '24 hours' end * (($x) % 5)",
		"(array['sad','ok','glad'])[1 + ($x) % 3]::mood", "($x) / 8.0", "md5(($x)::text)::uuid")[$column];
}

sub make_tables
{
	my $sql = "drop table if exists " . join(', ', @tables) . ";\n";
	for my $table (@tables)
	{
		my $rows = chance(5) ? 0 : pick(20, 60, 150);
		my $nulls = pick(5, 13, 1000);
		my $large = pick(60, 1000, 1000);
		my @types = @{ $types{$table} };
		my @columns = map { "k" . ($_ + 1) . " $types[$_]" } 0 .. 9;
		my @values = map { my $m = $nulls + $_; "case when g % $m <> 1 then " . values_of($_) . " end" } 0 .. 11;
		$sql .= "create table $table (id int @{[ pick('', 'primary key', 'unique', 'not null unique') ]}, @{[ join ', ', @columns ]}, n $types[10], u $types[11], v int, w bigint @{[ pick('', 'not null') ]}, s text, d date, b bool, x int, y bigint, z date);\n";
		$sql .= "insert into $table select g, @{[ join ', ', @values ]}, case when g % 7 <> 2 then g * 13 % 101 end, g * 5 % 37, "
		  . "'s' || g % 23, date '2024-01-01' + g % 90, g % 3 = 0, "
		  . "case g % $large when 1 then 2147483647 when 2 then -2147483648 when 3 then null else g % 12 - 4 end, "
		  . "case g % $large when 4 then 9223372036854775807 when 5 then 1::bigint << 50 else g * 1001 % 997 end, "
		  . "case g % $large when 6 then 'infinity' when 7 then '9000-01-01' else date '2024-05-01' - g % 40 end from generate_series(1, $rows) g;\n";
	}
	$sql .= "create index on i (k1);\ncreate index on j (k3);\n" if chance(50);
	return $sql . "analyze;\n";
}

# ---- queries

my $serial;

# A clause about one table's row.
sub filter
{
	my ($t) = @_;
	return pick("$t.v > " . pick(10, 40, 90), "$t.s < 's" . pick(1, 2) . "'", "$t.b", "$t.d <> date '2024-01-09'",
		"$t.w in (1, 5, 9, 20)", "$t.k1 is not null", "$t.n <= " . pick(2, 9), "not $t.b or $t.v is null");
}

# One inside of a subquery, which may raise an error now and then.
sub inner_filter
{
	my ($t) = @_;
	return chance(12) ? pick("$t.x + 1 > 3", "$t.v / nullif($t.x, 0) < 4", "$t.z - 3 > $t.d", "$t.d < current_date") : filter($t);
}

# An aggregate over rows of t, and its type's class.
sub aggregate
{
	my ($t) = @_;
	my $filter = chance(15) ? ' filter (where ' . inner_filter($t) . ')' : '';
	my ($agg, $class) = @{ pick(
		[ 'count(*)', 'number' ], [ "count($t.v)", 'number' ], [ "sum($t.v)", 'number' ], [ "avg($t.v)", 'number' ],
		[ "max($t.v)", 'number' ], [ "min($t.w)", 'number' ], [ "sum($t.w)", 'number' ], [ "sum($t.n)", 'number' ],
		[ "avg($t.n)", 'number' ], [ "max($t.n)", 'number' ], [ "sum($t.n * $t.n)", 'number' ], [ "min($t.n - 1)", 'number' ],
		[ "sum(case when $t.b then $t.n else 0 end)", 'number' ], [ "sum($t.v::numeric * $t.n)", 'number' ],
		# these raise errors now and then, or might
		chance(60) ? pick([ "sum($t.x * $t.v)", 'number' ], [ "sum($t.y + $t.x)", 'number' ], [ "max($t.y * ($t.x - 1))", 'number' ], [ "min(-$t.x)", 'number' ],
			[ "sum($t.w / ($t.x + 5))", 'number' ], [ "sum($t.v % nullif($t.x, 0))", 'number' ], [ "max($t.z + 7)", 'date' ], [ "max($t.z - $t.d)", 'number' ],
			[ "sum(case when $t.x > 0 then $t.v / $t.x end)", 'number' ], [ "sum($t.x * $t.x * $t.n)", 'number' ], [ "count(distinct $t.x + $t.x)", 'number' ],
			[ "min(coalesce($t.x + 1, $t.v))", 'number' ]) : [ "sum($t.v)", 'number' ],
		[ "max($t.s)", 'text' ], [ "min($t.d)", 'date' ], [ "bool_or($t.b)", 'bool' ],
		# these stay subqueries
		chance(20) ? [ "sum($t.w + 0.5::float8)", 'number' ] : [ "count(*)", 'number' ],
		chance(20) ? [ "count(distinct $t.v)", 'number' ] : [ "avg($t.w)", 'number' ]) };
	return ($agg . $filter, $class);
}

# A scalar subquery that depends on rows of the tables @outer: (sql, class).
sub subquery
{
	my ($depth, @outer) = @_;
	my $t = pick(qw(i i j o)) . '';
	my $a = 'q' . ++$serial;
	my $from = "$t $a";
	my @clauses;
	if (chance(30))
	{
		my ($t2, $b) = (pick(qw(i j)), 'q' . ++$serial);
		my $on = "$a.k1 = $b.k1" . (chance(40) ? ' and ' . filter($b) : '');
		$from = chance(60) ? "$from " . pick('join', 'left join', 'full join') . " $t2 $b on $on" : "$from, $t2 $b";
		push @clauses, $on if $from =~ /, /;
	}
	elsif (chance(15))
	{
		$from = "(select * from $t where id % 3 <> 1) $a";
	}
	for my $n (1 .. pick(1, 1, 1, 2, 2, 3))
	{
		my $k = pick(@keys);
		my $o = pick(@outer);
		my ($inner, $outer) = ("$a.$k", "$o.$k");
		$outer = "coalesce($o.$k, $o.$k)" if chance(10);
		$outer = "case when $o.b then $o.$k end" if chance(10);
		$outer = "$o.id" if $k eq 'k1' && chance(20);
		push @clauses, chance(3) ? "$inner <> $outer" : chance(50) ? "$inner = $outer" : "$outer = $inner";
	}
	push @clauses, inner_filter($a) for 1 .. pick(0, 0, 1, 2);
	if ($depth < 2 && chance(6))
	{
		my ($inside, $class) = subquery($depth + 1, $a);
		push @clauses, $class eq 'number' ? "$inside > 2" : "$inside is not null";
	}
	my ($value, $class) = aggregate($a);
	my $o = pick(@outer);
	if ($class eq 'number')
	{
		$value = pick($value, $value, "0.5 * $value", "$value + $o.v", "coalesce($value, -1)", "$value + count(*)",
			"case when $o.b then $value else -$value end", "case when $value is null then 3 else $value end");
	}
	my $where = join ' and ', @clauses;
	return ("(select $value from $from where $where)", $class);
}

# FROM and WHERE of a subquery that depends on rows of the tables @outer by equalities, and on none
# of them now and then: (table's name, sql).
sub rows_of
{
	my ($share, @outer) = @_;
	my $a = 'q' . ++$serial;
	my $t = pick(qw(i i j o)) . '';
	my @clauses;
	for my $n (1 .. chance($share) ? pick(1, 1, 2) : 0)
	{
		my ($k, $o) = (pick(@keys), pick(@outer));
		push @clauses, chance(50) ? "$a.$k = $o.$k" : "$o.$k = $a.$k";
	}
	my ($k1, $k2, $o2) = (pick(@keys), pick(@keys), pick(@outer));
	@clauses = ("($a.$k1 = $o2.$k1 or ($o2.$k2 = $a.$k2 and " . filter($a) . '))') if @clauses && chance(15);
	push @clauses, filter($a) for 1 .. pick(0, 0, 1);
	push @clauses, "$a.v is not null" if chance(30);
	return ($a, "from $t $a" . (@clauses ? ' where ' . join(' and ', @clauses) : ''));
}

# A condition: EXISTS, IN, NOT IN, ANY, ALL.
sub quantified
{
	my (@outer) = @_;
	my $o = pick(@outer);
	my $kind = pick(1 .. 7);
	if ($kind <= 2)
	{
		my ($a, $rows) = rows_of(100, @outer);
		my $and = $rows =~ / where / ? ' and ' : ' where ';
		$rows .= $and . pick("$a.v <> $o.v", "$o.v < $a.v", "$a.n >= $o.n", "$a.d < $o.d", "$a.s > $o.s", "$a.w <> $o.v") if chance(40);
		$rows .= pick(" group by $a.w having count(*) > 1", ' having count(*) > 2', ' having max(' . $a . '.v) is null', " group by $a.k1", " having count(*) = 0") if chance(30);
		return pick('', '', 'not ') . "exists (select " . pick(1, "$a.v") . " $rows)" if $rows !~ /group|having/;
		return pick('', 'not ') . "exists (select 1 $rows)";
	}
	my ($a, $rows) = rows_of(50, @outer);
	my $distinct = pick('', '', '', 'distinct ');
	my ($x, $y) = @{ pick([ "$o.v", "$a.v" ], [ "$o.w", "$a.v" ], [ "$o.id", "$a.w" ], [ "$o.s", "$a.s" ], [ "$o.k1", "$a.k1" ], [ "$o.k4", "$a.k4" ],
		[ "$o.k8", "$a.k8" ], [ "$o.d", "$a.d" ], [ "$o.v % 7", "$a.w / 3" ], [ "$o.k6", "$a.k6" ], [ "$o.k5", "$a.k5" ]) };
	return "$x " . pick('in', 'not in') . " (select $distinct$y $rows)" if $kind <= 4;
	return "($x, $o.b) " . pick('in', 'not in') . " (select $y, $a.b $rows)" if $kind == 5 && chance(40);
	return "$x " . pick('in', 'not in') . " (select $y from (select $y, count(*) c $rows group by $y) $a where c > 1)" if $kind == 5 && $rows !~ / r\d| e\./ && $y =~ /^\w+\.\w+$/;
	($x, $y) = @{ pick([ "$o.v", "$a.v" ], [ "$o.w", "$a.v" ], [ "$o.s", "$a.s" ], [ "$o.d", "$a.d" ], [ "$o.n", "$a.n" ]) };
	return "$x " . pick('<', '>', '<=', '>=', '<>', '=') . ' ' . pick('any', 'all') . " (select $y $rows)";
}

# A value of one row: by a unique column, or of the first row.
sub single
{
	my (@outer) = @_;
	my ($o, $a, $b) = (pick(@outer), 'q' . ++$serial, 'q' . ++$serial);
	my $t = pick(qw(i j)) . '';
	my ($value, $class) = @{ pick([ "$a.v", 'number' ], [ "$a.w", 'number' ], [ "$a.s", 'text' ], [ "$a.d", 'date' ], [ "coalesce($a.v, $o.v)", 'number' ],
		[ "case when $a.b then $a.w else $o.v end", 'number' ], [ "10 / ($a.v - $o.v)", 'number' ], [ 'true', 'bool' ], [ "$a.b", 'bool' ]) };
	my $and = chance(30) ? ' and (' . filter($a) . ')' : '';
	my $kind = pick(1 .. 5);
	return ("(select $value from $t $a where $a.id = " . pick("$o.id", "$o.v", "$o.k1", "$o.w") . "$and)", $class) if $kind <= 2;
	return ("(select $value from $t $a join $t $b on $b.id = $a.w where $a.id = $o.id$and)", $class) if $kind == 3;
	my $k = pick(@keys);
	my $first = pick(qw(v d s w));
	$and .= pick('', " and $a.$first is not null", " and $a.$first = $a.$first");
	return ("(select $value from $t $a where $a.$k = $o.$k$and order by $a.$first" . pick('', ' desc', ' desc nulls last') . ", $a.id" . pick('', ' desc') . ' limit 1)', $class) if $kind == 4;
	my $c = pick('v', 'w', 's', 'd');
	return ("(select $a.$c from $t $a where $a.$k = $o.$k$and order by $a.$c" . pick('', ' desc', ' desc nulls last', ' nulls first') . ' limit 1)',
		$c eq 's' ? 'text' : $c eq 'd' ? 'date' : 'number');
}

# A condition with a subquery.
sub condition
{
	my ($depth, @outer) = @_;
	if (chance(45))
	{
		my $q = quantified(@outer);
		my $o = pick(@outer);
		return pick($q, $q, "not ($q)", "($q or " . filter($o) . ')', "($q) is null", "case when $q then " . filter($o) . ' else ' . filter($o) . ' end');
	}
	my ($sql, $class) = chance(25) ? single(@outer) : subquery($depth, @outer);
	my $o = pick(@outer);
	my %other = (number => [ "$o.v", "$o.n", 3, "$o.w * 2" ], text => [ "$o.s", "'s3'" ], date => [ "$o.d" ], bool => [ "$o.b", 'true' ]);
	my $cmp = pick("$sql " . pick('<', '>', '=', '<>', '>=') . ' ' . pick(@{ $other{$class} }), "$sql is " . pick('null', 'not null'));
	return pick($cmp, $cmp, $cmp, "($cmp or " . filter($o) . ')', "not ($cmp)", "case when $o.b then $cmp else " . filter($o) . ' end');
}

# What else the rows around a subquery are restricted to, which may restrict its groups.
sub around
{
	my ($x) = @_;
	return () if chance(40);
	my $k = pick(@keys);
	my $keys = "$x.$k in (select y.$k from " . pick(qw(o p i j)) . ' y where ' . filter('y') . ')';
	return pick([ filter($x) ], [ filter($x) ], [$keys], [ filter($x), $keys ])->@*;
}

sub restricted_condition
{
	my ($x) = @_;
	return join(' and ', condition(0, $x), around($x));
}

# FROM, and the tables whose rows a subquery may depend on.
sub outer_from
{
	my ($x, $y) = map { 'r' . ++$serial } 1 .. 2;
	my $t = pick(qw(o o p));
	return ("$t $x", $x) if chance(50);
	my $u = pick(qw(o p i));
	my $k = pick(qw(k1 k3 k8));
	my $join = pick('join', 'left join', 'right join', 'full join');
	if ($join ne 'full join' && chance(35))
	{
		$k = pick(@keys);
		my $also = chance(60) ? '' : ' and ' . (chance(50) ? condition(1, $join eq 'right join' ? $x : $y) : condition(1, $x, $y));
		my $k2 = pick(@keys);
		my $either = "($x.$k = $y.$k or " . pick("$x.$k2 = $y.$k2", "($x.$k2 = $y.$k2 and $x.v < $y.w)", "$y.id = $x.v") . ')' . pick('', ' and ' . filter($y));
		my $on = pick($either, $either, "$x.$k is not distinct from $y.$k", "($x.$k = $y.$k or ($y.$k is null and $x.$k is null))", "$x.$k = $y.$k");
		return ("$t $x $join $u $y on $on$also", $x, $y);
	}
	return ("$t $x $join $u $y on $x.$k = $y.$k and $x.id < 300", $x, $y) if chance(60);
	return ("$t $x, $u $y", $x, $y, "($x.$k = $y.$k or $x.k2 = $y.k2)") if chance(20);
	return ("$t $x, $u $y", $x, $y, "$x.id = $y.id");
}

sub grouping
{
	my ($o) = @_;
	return ' group by ' . join(', ', map { "$o.$_" } @keys, qw(id n v w s d b x y z));
}

# A query, whose rows are compared in any order.  Values by which rows become one are
# taken as text: of 1.0 and 1.00 either may stay.
# One in FROM that depends on what is beside it, as l, with a number y and any x.
sub lateral
{
	my (@outer) = @_;
	my ($s) = chance(70) ? subquery(0, @outer) : single(@outer);
	my $rows = $s =~ / limit 1\b/ || $s !~ /^\(select .*?(count|sum|avg|max|min|bool_or)\(/;
	$s =~ s/^\(select /$rows ? '(select 5 as y, ' : '(select count(*) as y, '/e;
	my $join = pick('left join', 'left join', 'join', 'cross join', ',');
	return "$join lateral $s l(y, x)" . ($join =~ /^(left )?join/ ? ' on true' : '');
}

# A WITH query z of groups, by a key k and maybe another g, with a number y, any x, and a number c; read twice or more.
sub repeated
{
	my $k = pick(@keys);
	my $g = chance(40) ? pick(qw(b s d)) : '';
	my ($agg) = aggregate('e');
	my $where = chance(50) ? ' where ' . inner_filter('e') : '';
	my $z = "with z as (select e.$k as k, " . ($g ? "e.$g" : 'true') . " as g, count(*) as y, $agg as x, count(e.v) as c from o e$where group by e.$k"
	  . ($g ? ", e.$g" : '') . (chance(25) ? ' having count(*) > 1' : '') . ')';
	$z .= ', z2 as (select z.g, max(z.y) as y, sum(z.c) as x, count(*) as c, min(z.y) as k from z group by z.g)' if chance(25);
	my $two = $z =~ /z2/ ? pick('z2', 'z') : 'z';
	return pick("$z select z.k is null, z.y, z.c from z where z.y = (select max(y) from $two)",
		"$z select z.k is null, z.y, l.y from z join $two l on z.y = l.y" . pick('', ' and z.c < l.c', ' where 10 / (z.y - 1) > 2', " where z.y > 1 and l.c in (select c from $two)"),
		"$z select p.id, (select count(*) from z where z.k = p.$k), (select max(l.y) from $two l where l.c > p.id) from p",
		"$z select count(*) from z left join $two l on l.c = z.y where not exists (select from $two m where m.y = z.c) or z.y in (select y from $two)",
		"$z select z.y, z.c from z where z.c > (select avg(l.c) from $two l where l.y = z.y)") . pick('', '', ' order by 1 nulls first');
}

# Groups of the rows of a table, or of two, and what is joined to them: another one, or two.
sub early
{
	my $two = chance(30);
	my $many = chance(30);
	my ($key, $other) = (pick(@keys), pick(@keys));
	my @above = $two ? (pick('o', 'p') . ' e', 'p f', pick('f.id = e.v', 'f.id = e.id', 'f.id = e.w')) : (pick('o', 'p') . ' e');
	my @below = $many ? (pick('i', 'j') . ' g', 'j h', "h.$other = g.$other") : (pick('i', 'j') . ' g');
	my @inner = ($many ? 'g' : (), 'g', $many ? 'h' : ());
	my @on = ("g.$key = e.$key");
	push @on, pick("e.$other = g.$other", "g.v > e.v", $two ? "g.id = f.v" : "g.w = e.w", 'g.w = e.v + 1', 'g.w = e.w / nullif(e.x, 0)') if chance(25);
	push @on, inner_filter(pick(@inner)) if chance(40);
	my @where = chance(40) ? (chance(8) ? inner_filter('e') : filter($two && chance(40) ? 'f' : 'e')) : ();
	push @where, filter(pick(@inner)) if chance(5);
	my $group = $two ? pick('e.id, f.s', 'e.id', 'f.s, e.id, e.b', 'f.id, e.v, e.id') : pick('e.id', 'e.id', 'e.id, e.s', 'e.b, e.id', "e.$key, e.id", 'e.s');
	my @shown = grep { chance(70) } split /, /, $group;
	my @aggs = map { (aggregate(pick(@inner)))[0] } 1 .. pick(1, 1, 2, 3);
	$aggs[0] = pick("coalesce($aggs[0]::text, 'none')", "$aggs[0] is null", 'count(*) / 2', '10 / count(*)', 'max(e.v)', 'string_agg(g.s, \',\' order by g.id)') if chance(25);
	my $having = chance(25) ? ' having ' . pick('count(*) > 1', 'max(g.v) > 5', 'count(g.v) < 3', 'min(g.s) is not null', 'e.id > 3 and sum(g.w) > 20', '100 / (count(*) - 1) < 60') : '';
	$having =~ s/e\.id/max(g.id)/ unless $group =~ /e\.id/;
	my $from;
	if (chance(50))
	{
		my $above = $two ? "$above[0] join $above[1] on $above[2]" : $above[0];
		my $below = $many ? "($below[0] join $below[1] on $below[2])" : $below[0];
		push @on, "e.b" if chance(5);
		$from = "$above " . pick('left join', 'left join', 'join') . " $below on " . join(' and ', @on) . (@where ? ' where ' . join(' and ', @where) : '');
	}
	else
	{
		my @tables = ($above[0], $two ? $above[1] : (), $below[0], $many ? $below[1] : ());
		@tables = reverse @tables if chance(30);
		$from = join(', ', @tables) . ' where ' . join(' and ', @on, $two ? $above[2] : (), $many ? $below[2] : (), @where);
	}
	my $n = 0;
	my $q = 'select ' . join(', ', map { $n++; "($_)::text as c$n" } @shown, @aggs) . " from $from group by $group$having";
	my $order = join ', ', map { "$_ nulls first" } 1 .. $n;
	return $q . pick('', '', " order by $order limit " . pick(3, 40)) if chance(60) && $having !~ m{/} && $q !~ m{ / };
	return $q if chance(50);
	return "select z.c$n, count(*) from ($q) z group by z.c$n" . pick('', ' having count(*) > 1') if chance(60);
	return "select p.id, z.c$n from p left join ($q) z on z.c1 = p.id::text" . pick('', " where z.c$n is null", " where 10 / length(z.c$n) > 1");
}

sub query
{
	$serial = 0;
	return early() if chance($opt{early});
	return repeated() if chance(8);
	my ($from, @outer) = outer_from();
	my @where = grep { / = / } @outer;
	@outer = grep { !/ = / } @outer;
	my $o = $outer[0];
	push @where, around(pick(@outer));
	my $where = @where ? ' where ' . join(' and ', @where) : '';
	my @shapes = (
		# in WHERE
		sub { "select $o.id, $o.s from $from where " . join(' and ', @where, condition(0, @outer), chance(40) ? condition(0, @outer) : ()) },
		sub { "select count(*), sum($o.v) from $from where " . join(' and ', @where, condition(0, @outer)) },
		sub { "select $o.b, count(*), max($o.s) from $from where " . join(' and ', @where, condition(0, @outer), filter($o)) . " group by $o.b" },
		# in the target list
		sub { my ($s) = subquery(0, @outer); "select $o.id, $s as x from $from" . $where },
		sub { my ($s) = subquery(0, @outer); my ($u) = subquery(0, @outer); "select distinct ${s}::text, ${u}::text from $from" . $where },
		sub { my ($s) = subquery(0, @outer); "select $o.id, rank() over (order by $s, $o.id) from $from" . $where },
		sub { my ($s) = subquery(0, @outer); "select $o.b, count($s), min(${s}::text) from $from" . $where . " group by $o.b" },
		sub { my ($s) = subquery(0, @outer); "select $o.id, $s from $from" . $where . " order by 2, 1, $o.s limit 7" },
		sub { my ($s) = single(@outer); my $q = quantified(@outer); "select $o.id, $s, $q from $from" . $where },
		sub { my $q = quantified(@outer); "select $o.b, count(*) filter (where $q), bool_or($q) from $from" . $where . " group by $o.b" },
		sub { "select count(*), sum($o.v) from $from where " . join(' and ', @where, "$o.id > 0") },
		sub { my $k = pick(@keys); "select $o.id, $o.s from $from where " . join(' and ', @where, pick('', 'not ') . "exists (select from j z where z.$k is not distinct from $o.$k)") },
		# of groups; each column is one by which they are grouped, and each group has one id
		sub { my ($s) = subquery(0, $o); "select $o.id, count(*), $s from $from" . $where . grouping($o) },
		sub { "select $o.id, sum($o.v) from $from" . $where . grouping($o) . ' having ' . condition(0, $o) . pick('', " and count(*) > 1", ' and ' . condition(0, $o)) },
		sub { my ($s) = single($o); "select $o.id, rank() over (order by $o.id), $s from $from" . $where . grouping($o) . ' having ' . condition(0, $o) . ' order by 1 limit 9' },
		sub { my $k = pick(qw(k1 k2 k3 k4 k7 k8)); my ($agg) = aggregate('z'); "select $o.b, count(*), (select $agg from " . pick(qw(i j)) . " z where z.$k = max($o.$k)) from $from" . $where . " group by $o.b" . pick('', " having max($o.v) " . pick('in', 'not in') . " (select z.v from i z where z.w = min($o.v) or z.id = 3)", " having " . pick('', 'not ') . "exists (select from j z where z.$k = min($o.$k))") },
		# below other levels
		sub { "select id from p where exists (select 1 from o e where e.k1 = p.k1 and " . restricted_condition('e') . ')' },
		sub { "select id from p where k1 in (select e.k1 from o e where " . restricted_condition('e') . ')' },
		sub { my ($s) = subquery(0, 'e'); "select z.x, count(*) from (select e.id, ${s}::text as x from o e where " . restricted_condition('e') . ') z group by z.x' },
		sub { "with z as (select e.* from o e where " . restricted_condition('e') . ') select count(*), sum(z.v) from z join p on p.k1 = z.k1 where ' . restricted_condition('z') },
		sub { "select id from o e where " . restricted_condition('e') . ' union all select id from p f where ' . condition(0, 'f') },
		sub { my ($s) = subquery(0, 'e', 'l'); "select e.id, l.x, $s from o e, lateral (select max(i.v) x, count(*)::int id, true b, 1 v, 2::numeric n, e.s, e.d, 3 w, "
			  . join(', ', map { "e.$_" } @keys) . " from i where i.k1 = e.k1) l" },
		# in FROM
		(sub { my $l = lateral(@outer); "select $o.id, l.y, l.x from $from $l" . $where },
			sub { my $l = lateral(@outer); "select $o.id, l.x from $from $l" . ($where || ' where true') . pick(' and l.y > 2', ' and l.x is not null', ' and 100 / (l.y + 1) < 40', ' and 100 / (l.y - 1) < 40', " and l.y < $o.v", " and (l.y = 0 or $o.b)") },
			sub { my $l = lateral(@outer); my ($s) = single(@outer); "select l.x::text, count(*), sum(l.y), max($o.s) from $from $l" . $where . ' group by l.x' . pick('', " having sum(l.y) > 1") },
			sub { my $l = lateral(@outer); my ($m) = subquery(0, @outer); "select $o.id, l.y, $m, (select max(z.v) from i z where z.w = l.y) from $from $l " . pick('left join lateral % on true', ', lateral %') =~ s/%/(select count(*), min(z.v) from j z where z.k1 = $o.k1) m(n, v)/r . $where },
			sub { my @l = map { lateral(@outer) =~ s/ l\(y, x\)/ l$_(y, x)/r } 1 .. 2; "select count(*), sum(l1.y), sum(l2.y), max(l2.x::text) from $from @l" . ($where || ' where true') . pick('', ' and l1.y <= l2.y', " and l1.y in (select z.v from i z)") },
			sub { my $l = lateral('e'); "select z.y, z.x::text, p.id from (select e.k1, l.* from o e $l) z " . pick('join', 'left join', 'full join') . ' p on p.k1 = z.k1' }),
		# where none may become a join
		sub { my ($s) = subquery(0, $o); "select $o.b, count(*) from $from" . $where . " group by $o.b having count(*) > 1 or max($s) is null" });
	return pick(@shapes)->();
}

# ---- runs

my %sum = (passed => 0, failed => 0, errors => 0, spared => 0, slow => 0);
my %reasons;					# what became of correlated subqueries
my $restricted = 0;				# queries whose groups are restricted to what is around them

sub outcome
{
	my ($settings, $query) = @_;
	my $r = $session->run("$settings\n$query;");
	return undef unless defined $r;
	my @errors = grep { /^ERROR|ERROR:/ } @$r;
	return @errors ? join("\n", @errors) : join "\n", sort @$r;
}

sub settings
{
	my @rows = ("set hashgraph_join.rewrite = force; set hashgraph_join.enabled = on;");
	push @rows, chance(60) ? 'set hashgraph_join.force = on;' : 'set hashgraph_join.force = off;';
	push @rows, 'set max_parallel_workers_per_gather = ' . pick(0, 0, 2) . ';';
	push @rows, "set work_mem = '" . pick('64kB', '4MB') . "';";
	push @rows, "set enable_$_ = " . pick('on', 'on', 'off') . ';' for qw(nestloop indexscan hashagg);
	return "@rows";
}

sub reasons
{
	my ($query) = @_;
	(my $quoted = $query) =~ s/'/''/g;
	my $r = $session->run("select reason from hashgraph_join_why('$quoted') where node in ('Subquery', 'WITH', 'GROUP BY');");
	$reasons{$_}++ for @$r;
	$restricted++ if grep { /Restrictions: / } @{ $session->run("explain (costs off) $query;") };
}

for my $seed ($opt{seed} .. $opt{seed} + $opt{seeds} - 1)
{
	my $start = "load 'hashgraph_join';\nset client_min_messages = warning;\n\\set VERBOSITY sqlstate\n"
	  . "create extension if not exists hashgraph_join;\ndo \$\$ begin create type mood as enum ('sad', 'ok', 'glad'); exception when duplicate_object then null; end \$\$;\n"
	  . "set statement_timeout = '5s';\nset hashgraph_join.min_rows = 0;\nset parallel_setup_cost = 0;\nset parallel_tuple_cost = 0;\nset min_parallel_table_scan_size = 0;\n";
	for my $q (1 .. $opt{queries})
	{
		$rng = HGJ::Rng->new($seed * 1_000_003 + $q);
		if ($q % 50 == 1 || $session->{dead} || $opt{only})
		{
			my $own = HGJ::Rng->new($seed * 1_000_003 + 500_000 + int(($q - 1) / 50));
			($rng, $own) = ($own, $rng);
			my $tables = make_tables();
			my $r = $session->run($start . $tables);
			print $tables if $opt{verbose} && $opt{only};
			die "$0: tables of seed $seed: ", join("\n", @{ $r || ['no connection'] }), "\n" if !defined $r || grep { /ERROR/ } @$r;
			($rng, $own) = ($own, $rng);
		}
		next if $opt{only} && $q != $opt{only};
		my $query = query();
		my $settings = settings();
		print "$query;\n" if $opt{verbose};
		my $stock = outcome('set hashgraph_join.enabled = off; set max_parallel_workers_per_gather = 0; '
			  . "set work_mem = '4MB'; reset enable_nestloop; reset enable_indexscan; reset enable_hashagg;", $query);
		my $ours = outcome($settings, $query);
		# with subqueries in subqueries a query may take minutes: that is not what is tested
		if (grep { defined $_ && /57014/ } $stock, $ours)
		{
			$sum{slow}++;
			next;
		}
		# that no row came to what raises an error, because a join left fewer, is right
		my $raises = $query =~ m{100? / |\.[xyz]\b};
		my $spared = $raises && ($stock // '') =~ /^ERROR:  220/ && ($ours // 'ERROR') !~ /ERROR/;
		my $same = $spared || (defined $stock && defined $ours && $stock eq $ours);
		$sum{spared} += $spared;
		# the order of clauses is that of their costs, and force makes those of subqueries nothing
		if (!$same && $raises && ($ours // '') =~ /^ERROR:  220/)
		{
			my $as_written = outcome("$settings set hashgraph_join.rewrite = off;", $query);
			$same = defined $as_written && $as_written eq $ours;
		}
		reasons($query) if defined $ours;
		$sum{ $same ? 'passed' : 'failed' }++;
		$sum{errors}++ if ($stock // '') =~ /ERROR/;
		next if $same;
		print "not ok - seed $seed, query $q: perl test/random/hidden.pl --seed $seed --only $q --verbose\n  $settings\n  $query\n";
		print "  stock: ", defined $stock ? substr($stock, 0, 300) : 'no connection', "\n  ours: ", defined $ours ? substr($ours, 0, 300) : 'no connection', "\n";
		$session->revive unless defined $ours;
	}
}
my $all = 0;
$all += $reasons{$_} for grep { !/^(computed|grouped) / } keys %reasons;
my $joins = $reasons{'it is a join'} // 0;
print "$reasons{$_}: $_\n" for sort { $reasons{$b} <=> $reasons{$a} } keys %reasons;
if (!$opt{only})
{
	my $enough = $joins >= $least_joins * $all && $all - $joins >= $least_others * $all;
	print $enough ? 'ok' : 'not ok', " - $joins of $all correlated subqueries have become joins\n";
	$sum{ $enough ? 'passed' : 'failed' }++;
	$enough = ($reasons{'computed at each place that reads it'} // 0) > 0;
	print $enough ? 'ok' : 'not ok', " - WITH queries were computed at each place that reads them\n";
	$sum{ $enough ? 'passed' : 'failed' }++;
	my $early = $reasons{'grouped before a join'} // 0;
	$enough = $early >= $opt{early} / 100 * $least_early * $sum{passed};
	print $enough ? 'ok' : 'not ok', " - groups were made before a join $early times\n";
	$sum{ $enough ? 'passed' : 'failed' }++;
	$enough = $restricted >= $least_restricted * $sum{passed};
	print $enough ? 'ok' : 'not ok', " - groups of $restricted queries were restricted\n";
	$sum{ $enough ? 'passed' : 'failed' }++;
}
print "$sum{errors} queries raised an error as they were written, $sum{spared} of them not as joins; $sum{slow} were too slow\n";
print "$sum{passed} passed, $sum{failed} failed\n";
exit($sum{failed} > 0);
