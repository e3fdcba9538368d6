# A seed's star: a fact table, dimensions with keys of several types, and their
# own dimensions; and the changes that keep these tables moving: rows that are
# dead, updated in place (HOT) and elsewhere, rolled back, in progress in
# another session, frozen, all-visible and not.
#
# { tables, sql, temp_sql }: temp_sql makes the temporary tables, which live in
# the session that runs the queries.
package HGJ::Star;

use strict;
use warnings;
use HGJ::Rng;

# A key's value from an integer expression, for the dimension and for the fact
# table (whose type may be another one that compares with it).
my %KEY = (
	int4   => [ 'int4',    sub { "($_[0])::int4" } ],
	sparse => [ 'int4',    sub { "(($_[0])::int8 * 1654435 % 2147483647)::int4" } ],
	int8   => [ 'int8',    sub { "($_[0])::int8 * 2654435761" } ],
	cross  => [ 'int8',    sub { "($_[0])::int8" }, 'int4', sub { "($_[0])::int4" } ],
	int2   => [ 'int2',    sub { "(($_[0]) % 30000)::int2" } ],
	cross2 => [ 'int2',    sub { "(($_[0]) % 30000)::int2" }, 'int8', sub { "($_[0])::int8" } ],
	date   => [ 'date',    sub { "date '2020-01-01' + ($_[0])::int4" } ],
	ts     => [ 'timestamp', sub { "timestamp '2020-01-01' + ($_[0]) * interval '1 hour'" } ],
	float8 => [ 'float8',  sub { "($_[0]) * 0.25::float8" } ],
	text   => [ 'text',    sub { "'k' || ($_[0])" } ],
	long   => [ 'text',    sub { "'customer number ' || ($_[0])::int8 * 7919" } ],
	numeric => [ 'numeric', sub { "(($_[0]) || '.50')::numeric" }, 'numeric', sub { "(($_[0]) || '.5')::numeric" } ],
	uuid   => [ 'uuid',    sub { "md5(($_[0])::text)::uuid" } ],
);

# name => [ type, kind, value of h = a random number from 0 on, more ]
my %COLUMN = (
	i2  => [ 'int2',  'int',   sub { "($_[0] % 200 - 100)::int2" } ],
	i4  => [ 'int4',  'int',   sub { "($_[0] % 2000 - 1000)::int4" } ],
	j4  => [ 'int4',  'int',   sub { "($_[0] % 120 - 20)::int4" } ],
	g4  => [ 'int4',  'int',   sub { "($_[0] % 8)::int4" } ],
	i8  => [ 'int8',  'int',   sub { "($_[0] % 2000 - 1000)::int8 * 1000003" } ],
	f4  => [ 'float4', 'float', sub { "(($_[0] % 81 - 40) * 0.25)::float4" } ],
	f8  => [ 'float8', 'float', sub { "(($_[0] % 4001 - 2000) * 0.25)::float8" } ],
	s8  => [ 'float8', 'float', sub { "case $_[0] % 50 when 0 then 'NaN' when 1 then 'Infinity' when 2 then '-Infinity' when 3 then '-0' else (($_[0] % 41 - 20) * 0.25) end::float8" } ],
	n   => [ 'numeric(12,2)', 'numeric', sub { "(($_[0] % 20001 - 10000) / 100.0)::numeric(12,2)" }, scaled => 1 ],
	m   => [ 'numeric', 'numeric', sub { "case $_[0] % 40 when 0 then 'NaN' when 1 then '1e30' when 2 then '-123456789012345678901234567890.123456789' else ((($_[0] % 300 - 150)::text) || (array['', '.0', '.50', '.1250'])[1 + $_[0] % 4]) end::numeric" } ],
	n9  => [ 'numeric(18,9)', 'numeric', sub { "(case $_[0] % 30 when 0 then 999999999.999999999 when 1 then -999999999.999999999 when 2 then 0.000000001 when 3 then 'NaN' else ($_[0] % 2000003 - 1000000) / (array[1, 8, 1000, 1000000])[1 + $_[0] % 4]::numeric end)::numeric(18,9)" }, scaled => 1 ],
	n4  => [ 'numeric(5,4)', 'numeric', sub { "(($_[0] % 199 - 99) / 10.0)::numeric(5,4)" }, scaled => 1 ],
	dt  => [ 'date',  'date',  sub { "date '2020-01-01' + ($_[0] % 400)::int4" } ],
	ts  => [ 'timestamp', 'ts', sub { "case $_[0] % 60 when 0 then 'infinity' when 1 then '-infinity' else timestamp '2020-01-01' + ($_[0] % 9000) * interval '1 hour' end" } ],
	tz  => [ 'timestamptz', 'ts', sub { "timestamptz '2020-01-01 00:00+00' + ($_[0] % 9000) * interval '1 hour'" } ],
	b   => [ 'bool',  'bool',  sub { "($_[0] % 3 = 0)" } ],
	t   => [ 'text',  'text',  sub { "'k' || $_[0] % 90" } ],
	pad => [ 'text',  'text',  sub { "case $_[0] % 25 when 0 then repeat(md5($_[0]::text), 100) when 1 then (select string_agg(md5(($_[0] + j)::text), '') from generate_series(1, 80) j) else repeat('x', $_[0] % 60) end" }, long => 1 ],
	u   => [ 'uuid',  'uuid',  sub { "(lpad(to_hex(($_[0] % 14 + 1) * 286331153::int8), 8, '0') || '-0000-0000-0000-000000000000')::uuid" } ],
);

sub new
{
	my ($class, $seed) = @_;
	my $rng = HGJ::Rng->new("star:$seed");
	my $self = bless { rng => $rng, seed => $seed, salt => 0, sql => [], temp_sql => [], tables => {} }, $class;
	my $ndims = $rng->between(3, 4);
	# Every fourth star is larger than a few batches.
	my $large = $self->{large} = $seed % 4 == 0;
	my $temp = $rng->chance(50) ? $rng->pick('fact', 'fact', map { "dim$_" } 1 .. $ndims) : '';
	my (@links, @dims);
	for my $i (1 .. $ndims)
	{
		# dim4 has several rows per key, sometimes
		my $d = $self->dim("dim$i", $i == $ndims && $rng->chance(60) ? $rng->between(2, 4) : 1, $temp eq "dim$i",
			$rng->chance(60) ? "sub$i" : undef);
		push @dims, $d;
		push @links, { to => $d, name => "d$i", miss => $rng->pick(0, 10, 30, 90), nulls => $rng->pick(0, 0, 5, 20) };
	}
	$self->{fact} = $self->table('fact', rows => $large ? $rng->between(15000, 30000) : $rng->between(1500, 4000), links => \@links, temp => $temp eq 'fact', columns => 12);
	$self->{dims} = \@dims;
	return $self;
}

sub dim
{
	my ($self, $name, $copies, $temp, $sub) = @_;
	my $rng = $self->{rng};
	my @links;
	if ($sub)
	{
		my $s = $self->dim($sub, 1, 0, undef);
		@links = { to => $s, name => 'sk', miss => 10, nulls => $rng->pick(0, 15) };
	}
	return $self->table($name, rows => $rng->pick(8, 60, 200, 500, $self->{large} ? 9000 : 800), key => $rng->pick(sort keys %KEY), copies => $copies,
		links => \@links, temp => $temp, columns => 5);
}

# The n-th hash of a row.
sub h
{
	my ($self) = @_;
	return sprintf 'h(g, %d)', 1000 * $self->{seed} + ++$self->{salt};
}

sub table
{
	my ($self, $name, %of) = @_;
	my $rng = $self->{rng};
	my (@cols, %key);
	my $add = sub { my ($n, $type, $kind, $value, %more) = @_; push @cols, { name => $n, type => $type, kind => $kind, value => $value, %more } };
	$add->('id', 'int4', 'int', 'g', big => 1);
	if ($of{key})
	{
		my $k = $KEY{ $of{key} };
		$add->('k', $k->[0], 'key', $k->[1]->("g / $of{copies}"));
	}
	for my $l (@{ $of{links} })
	{
		my $k = $KEY{ $l->{to}{key} };
		my $n = $l->{to}{rows} / $l->{to}{copies} * (100 + $l->{miss}) / 100;
		my $v = ($k->[3] || $k->[1])->(sprintf '%s %% %d', $self->h, $n < 1 ? 1 : $n);
		$v = 'case when ' . $self->h . " % 100 >= $l->{nulls} then $v end" if $l->{nulls};
		$add->($l->{name}, $k->[2] || $k->[0], 'key', $v);
	}
	my @names = $rng->shuffle(sort keys %COLUMN);
	splice @names, $of{columns};
	push @names, 'i4' unless grep { $_ eq 'i4' } @names;
	push @names, 'g4' unless grep { $_ eq 'g4' } @names;
	for my $n (@names)
	{
		my ($type, $kind, $value, %more) = @{ $COLUMN{$n} };
		my $v = $value->($self->h);
		my $nulls = $rng->pick(0, 0, 0, 10, 40);
		$v = 'case when ' . $self->h . " % 100 >= $nulls then $v end" if $nulls;
		$add->($n, $type, $kind, $v, %more);
	}
	@cols = $rng->shuffle(@cols);

	my $sql = $of{temp} ? $self->{temp_sql} : $self->{sql};
	my $make = $of{temp} ? 'create temp table' : 'create table';
	my $fill = $rng->pick(100, 70, 40);
	my $options = $of{temp} ? '' : " with (autovacuum_enabled = off, fillfactor = $fill)";
	my $altered = $rng->chance(45);
	my @defs = map { "$_->{name} $_->{type}" } @cols;
	if ($altered)
	{
		splice @defs, $rng->below(1 + @defs), 0, $rng->pick('gone1 text', 'gone1 int8', "gone1 int2 default 7");
		splice @defs, $rng->below(1 + @defs), 0, "gone2 text default 'gone'";
	}
	push @$sql, "$make $name (" . join(', ', @defs) . ")$options";
	my $names = join ', ', map { $_->{name} } @cols;
	my $rows = "select $names from (select " . join(', ', map { "$_->{value} as $_->{name}" } @cols);
	my $table = { name => $name, cols => \@cols, rows => $of{rows}, key => $of{key}, copies => $of{copies}, links => $of{links}, temp => $of{temp},
		insert => sub { my ($from, $to) = @_; "insert into $name ($names) $rows from generate_series($from, $to) g offset 0) s" } };
	push @$sql, $table->{insert}->(1, $of{rows});
	if ($altered)
	{
		push @$sql, "alter table $name drop column gone1", "alter table $name drop column gone2",
		  "alter table $name add column late int4 default 7", "alter table $name add column later float8",
		  "alter table $name add column tag text default 'tag'";
		push @cols, { name => 'late', type => 'int4', kind => 'int' }, { name => 'later', type => 'float8', kind => 'float' },
		  { name => 'tag', type => 'text', kind => 'text' };
		push @$sql, "update $name set late = g4, later = g4 * 0.5 where id % 5 = 1";
		push @$sql, $table->{insert}->($of{rows} + 1, $of{rows} + 20) if !$of{key};
	}
	$table->{primary} = $of{key} && $of{copies} == 1 && $rng->chance(50);
	push @$sql, "alter table $name add primary key (k)" if $table->{primary};
	push @$sql, "create index on $name (id)" if $rng->chance(40);
	push @$sql, $rng->pick("analyze $name", "vacuum analyze $name", "vacuum (freeze, analyze) $name", "vacuum full $name; analyze $name");
	$self->{tables}{$name} = $table;
	return $table;
}

# ---------------------------------------------------------------- changes

# What happens before query n: { main => SQL for the session of the queries,
# other => SQL for a second session, whose transaction stays open for a while }.
# The two never touch the same row: the second one takes ids that are 3 modulo
# 7, and inserts.
sub change
{
	my ($self, $n) = @_;
	my $rng = HGJ::Rng->new("change:$self->{seed}:$n");
	my (@main, @other);
	if ($rng->chance(30))
	{
		my $t = $rng->pick(map { $self->{tables}{$_} } sort keys %{ $self->{tables} });
		push @main, $self->change_of($rng, $t, $n);
	}
	# The second session works in stretches of eight queries.
	my $stretch = HGJ::Rng->new("stretch:$self->{seed}:" . int($n / 8));
	my $at = $n % 8;
	if ($stretch->chance(60))
	{
		my $end = $stretch->pick('commit', 'rollback');
		push @other, 'begin' if $at == 1;
		push @other, $self->foreign_change($rng, $n) if $at >= 1 && $at <= 5 && $rng->chance(60);
		push @other, $end if $at == 7;
	}
	return { main => \@main, other => \@other };
}

sub rows_of
{
	my ($rng, $t) = @_;
	my $m = $rng->pick(2, 5, 11, 30, 100);
	return 'id % 7 <> 3 and id % ' . $m . ' = ' . $rng->below($m);
}

sub change_of
{
	my ($self, $rng, $t, $n) = @_;
	my $name = $t->{name};
	my $where = rows_of($rng, $t);
	my $set = $rng->pick('i4 = i4 + 1', 'g4 = (g4 + 1) % 8', 'i4 = null, g4 = 3', 'i4 = -i4', 'id = id');
	my $from = $t->{rows} + 1000 + 30 * $n;
	my $to = $from + $rng->between(0, 25);
	my $kind = $rng->weighted(update => 6, hot => 4, delete => 2, insert => 4, undone => 3, vacuum => 4, freeze => 3, page => 1, sub => 2, full => 1);
	return "update $name set $set where $where" if $kind eq 'update';
	# again and again the same few rows: chains, which pruning then shortens
	return map { "update $name set i4 = i4 + 1 where id % 7 <> 3 and id < 12" } 1 .. 4 if $kind eq 'hot';
	return "delete from $name where id % 7 <> 3 and id % 17 = " . $rng->below(17) if $kind eq 'delete';
	return $t->{insert}->($from, $to) if $kind eq 'insert' && !$t->{primary};
	# with a primary key, a row's key may be there already: then nothing
	return $t->{insert}->($from, $to) . ' on conflict do nothing' if $kind eq 'insert';
	return ('begin', "update $name set $set where $where", "delete from $name where id % 7 <> 3 and id % 5 = 2", 'rollback') if $kind eq 'undone';
	return ('begin', "update $name set $set where id % 7 <> 3 and id % 9 = 1", 'savepoint s', "update $name set i4 = 5 where id % 7 <> 3 and id % 4 = 1", 'rollback to s',
		"savepoint s2", "delete from $name where id % 7 <> 3 and id % 60 = 4", 'release s2', 'commit') if $kind eq 'sub';
	return "vacuum $name" if $kind eq 'vacuum';
	return "vacuum (freeze) $name" if $kind eq 'freeze';
	return ("vacuum $name", "update $name set i4 = i4 where id = 20") if $kind eq 'page';
	return "analyze $name";
}

sub foreign_change
{
	my ($self, $rng, $n) = @_;
	my @t = grep { !$_->{temp} } map { $self->{tables}{$_} } sort keys %{ $self->{tables} };
	my $t = $rng->pick(@t);
	my $m = 7 * $rng->pick(1, 2, 3);
	my $from = $t->{rows} + 500000 + 30 * $n;
	my $kind = $rng->weighted(update => 4, delete => 3, insert => 3, lock => 2, sub => 1);
	return "update $t->{name} set i4 = i4 + 100, g4 = 7 where id % $m = 3" if $kind eq 'update';
	return "delete from $t->{name} where id % $m = 3" if $kind eq 'delete';
	return $t->{insert}->($from, $from + 20) if $kind eq 'insert' && !$t->{primary};
	return "select count(*) from (select 1 from $t->{name} where id % $m = 3 for " . $rng->pick('update', 'share', 'key share', 'no key update') . ') s' if $kind eq 'lock';
	return ("savepoint s", "update $t->{name} set i4 = 1 where id % 7 = 3", "rollback to s", "update $t->{name} set i4 = 2 where id % $m = 3");
}

1;
