# Families of key types: columns of one family can be compared with "=".
# Every family maps an integer to a value of each of its types, so that equal
# integers mean equal values, whatever the two types are.
package HGJ::Types;

use strict;
use warnings;

# What a seed's schema needs before its tables.
our @PRELUDE = (
	"create collation ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
	"create domain dom_int as int4 check (value > -1000000)",
	"create domain dom_text as text check (length(value) < 1000000)",
	"create type mood as enum ('a', 'b', 'c', 'd', 'e', 'f')",
	"create type pair as (n int4, s text)",
	"create function h(g int, s int8) returns int language sql immutable as "
	  . "'select (hashint8extended(g::int8, s) & 2147483647)::int'",
	"create function f_lt(a int8, b int8) returns bool language plpgsql immutable as "
	  . "'begin return a < b; end'",
	"create function f_sql(a int8, b int8) returns bool language sql stable as "
	  . "'select coalesce(a, 0) + coalesce(b, 0) > 20'",
	"create function f_num(a int) returns numeric language sql immutable strict as "
	  . "'select (a % 7)::numeric / 4'",
	"create function rows_of(q text, params int[]) returns setof text language plpgsql as "
	  . "'declare r record; begin for r in execute q loop return next r::text; end loop; end'",
);

# value:  integer expression -> SQL of the type
# exact:  equal values always print alike (they may be grouped, taken the
#         minimum of, made distinct ...)
our %FAMILY = (
	num => {
		weight => 6,
		types  => {
			int2    => { value => sub { "($_[0] - 20)::int2" },   exact => 1 },
			int4    => { value => sub { "($_[0] - 20)::int4" },   exact => 1 },
			int8    => { value => sub { "($_[0] - 20)::int8" },   exact => 1 },
			dom_int => { value => sub { "($_[0] - 20)::dom_int" }, exact => 1 },
			numeric => {
				value => sub {
					"((($_[0] - 20)::text) || (array['', '.0', '.00', '.0000'])[1 + $_[0] % 4])::numeric"
				} },
			float4 => { value => sub { "($_[0] - 20)::float4" } },
			float8 => { value => sub { "($_[0] - 20)::float8" } },
		} },
	oid => {
		weight => 1,
		types  => {
			oid  => { value => sub { "(($_[0] - 20)::int4)::oid" }, exact => 1 },
			int4 => { value => sub { "($_[0] - 20)::int4" },        exact => 1 },
			regtype => { value => sub { "(($_[0] - 20)::int4)::oid::regtype" },
				out => sub { "$_[0]::oid" } },
		} },
	float => {
		weight => 3,
		types  => {
			float4 => { value => sub { _float($_[0], 'float4') } },
			float8 => { value => sub { _float($_[0], 'float8') } },
		} },
	text => {
		weight => 4,
		types  => {
			text => { value => sub { "('k' || $_[0])" }, exact => 1 },
			'varchar(40)' => { value => sub { "('k' || $_[0])" }, exact => 1 },
			'char(12)'    => { value => sub { "('k' || $_[0])" } },
			name          => { value => sub { "('k' || $_[0])::name" }, exact => 1 },
			dom_text      => { value => sub { "('k' || $_[0])" }, exact => 1 },
			'text collate "C"' => { value => sub { "('k' || $_[0])" }, own => 1, exact => 1 },
		} },
	bigtext => {
		weight => 2,
		types  => {
			text => {
				value => sub {
					"case $_[0] % 9 when 0 then repeat(md5($_[0]::text), 200) "
					  . "when 1 then (select string_agg(md5(($_[0] * 1000 + j)::text), '') from generate_series(1, 100) j) "
					  . "when 2 then repeat('x', $_[0]) || repeat(' ', $_[0] % 3) "
					  # larger than work_mem, and no compression helps
					  . "when 3 then case when $_[0] % 81 = 3 then (select string_agg(md5(($_[0] * 9000 + j)::text), '') from generate_series(1, 2200) j) else '3' end "
					  . "else $_[0]::text end";
				},
				out => sub { "md5($_[0])" } },
		} },
	ci => {
		weight => 2,
		types  => {
			'text collate ci' => {
				value => sub {
					"case $_[0] % 3 when 0 then 'KEY' || $_[0] / 3 when 1 then 'key' || $_[0] / 3 else 'Key' || $_[0] / 3 end";
				},
				own => 1 },
			'varchar(30) collate ci' => {
				value => sub { "case $_[0] % 2 when 0 then 'KEY' || $_[0] / 3 else 'kEy' || $_[0] / 3 end" },
				own => 1 },
		} },
	date => {
		weight => 1,
		types  => {
			date => { value => sub {
					"case $_[0] when 5 then 'infinity' else date '2000-01-01' + $_[0] end" }, exact => 1 },
		} },
	ts => {
		weight => 1,
		types  => {
			timestamp => { value => sub { "timestamp '1999-12-31 23:00' + $_[0] * interval '1 hour'" }, exact => 1 },
		} },
	tstz => {
		weight => 1,
		types  => {
			timestamptz => { value => sub { "timestamptz '2000-03-25 23:00+00' + $_[0] * interval '30 min'" }, exact => 1 },
		} },
	time => {
		weight => 1,
		types  => {
			time   => { value => sub { "time '00:00' + $_[0] * interval '7 min'" }, exact => 1 },
		} },
	timetz => {
		weight => 1,
		types  => {
			timetz => { value => sub { "(time '00:00' + $_[0] / 2 * interval '7 min')::timetz" }, exact => 1 },
		} },
	interval => {
		weight => 2,
		types  => {
			interval => {
				value => sub {
					"case $_[0] % 3 when 0 then make_interval(days => $_[0] / 3) when 1 then make_interval(hours => 24 * ($_[0] / 3)) "
					  . "else make_interval(months => $_[0] / 90, days => $_[0] / 3 - 30 * ($_[0] / 90)) end";
				} },
		} },
	uuid => {
		weight => 1,
		types  => { uuid => { value => sub { "md5($_[0]::text)::uuid" }, exact => 1 } },
	},
	enum => {
		weight => 1,
		types  => {
			mood => { value => sub { "(enum_range(null::mood))[1 + $_[0] % 6]" }, exact => 1 } },
		small => 6 },
	bool => {
		weight => 1,
		types  => { bool => { value => sub { "($_[0] % 2 = 0)" }, exact => 1 } },
		small  => 2 },
	char => {
		weight => 1,
		types  => { '"char"' => { value => sub { "chr(65 + $_[0] % 26)::\"char\"" }, exact => 1 } },
		small  => 26 },
	bytea => {
		weight => 1,
		types  => { bytea => { value => sub { "decode(substr(md5($_[0]::text), 1, 4 * (1 + $_[0] % 8)), 'hex')" }, exact => 1 } },
	},
	inet => {
		weight => 1,
		types  => {
			inet => { value => sub { "('10.0.' || $_[0] / 200 || '.' || $_[0] % 200)::inet" }, exact => 1 },
			cidr => { value => sub { "('10.0.' || $_[0] / 200 || '.' || $_[0] % 200)::cidr" } },
		} },
	macaddr => {
		weight => 1,
		types  => {
			macaddr => { value => sub { "('08:00:2b:01:' || lpad(to_hex($_[0] / 256), 2, '0') || ':' || lpad(to_hex($_[0] % 256), 2, '0'))::macaddr" }, exact => 1 },
		} },
	macaddr8 => {
		weight => 1,
		types  => {
			macaddr8 => { value => sub { "('08:00:2b:01:' || lpad(to_hex($_[0] / 256), 2, '0') || ':' || lpad(to_hex($_[0] % 256), 2, '0'))::macaddr::macaddr8" }, exact => 1 },
		} },
	jsonb => {
		weight => 2,
		types  => {
			jsonb => {
				value => sub {
					"(case $_[0] % 3 when 0 then '{\"a\": ' || $_[0] / 3 || ', \"b\": [1, 2]}' "
					  . "when 1 then '{\"b\": [1.0, 2], \"a\": ' || $_[0] / 3 || '.00}' else $_[0]::text end)::jsonb";
				} },
		} },
	array => {
		weight => 1,
		types  => {
			'int4[]' => { value => sub { "array[$_[0] % 50, null, $_[0] / 50]" }, exact => 1 },
		} },
	numarray => {
		weight => 1,
		types  => {
			'numeric[]' => { value => sub { "case $_[0] % 2 when 0 then array[($_[0] / 2)::numeric, 1.0] else array[(($_[0] / 2) || '.0')::numeric, 1.00] end" } },
		} },
	row => {
		weight => 1,
		types  => { pair => { value => sub { "row($_[0] % 30, nullif('x' || $_[0] / 30, 'x1'))::pair" }, exact => 1 } },
	},
	range => {
		weight => 1,
		types  => { int4range => { value => sub { "case $_[0] % 4 when 0 then 'empty' else int4range($_[0], $_[0] + 5, case when $_[0] % 2 = 0 then '[]' else '[)' end) end" }, exact => 1 } },
	},
	lsn => {
		weight => 1,
		types  => { pg_lsn => { value => sub { "('0/0'::pg_lsn + $_[0])" }, exact => 1 } },
	},
);

sub _float
{
	my ($i, $type) = @_;
	return
	    "case $i % 13 when 0 then '-0'::$type when 1 then '0'::$type when 2 then 'NaN'::$type "
	  . "when 3 then 'Infinity'::$type when 4 then '-Infinity'::$type when 5 then 0.1::$type "
	  . "else (($i) * 0.5)::$type end";
}

# SQL of "x = y" for two columns of one family; some pairs need help.
sub equal
{
	my ($x, $y) = @_;
	my ($xs, $ys) = ($x->{sql}, $y->{sql});
	if (($x->{own} || $y->{own}) && $x->{type} ne $y->{type})
	{
		# two different implicit collations do not compare: name one
		return $x->{family} eq 'ci' ? "$xs = $ys collate ci" : "$xs = $ys collate \"C\"";
	}
	return "$xs = $ys";
}

1;
