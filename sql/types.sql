-- Key classes x join types x shapes of data x residual quals, each compared
-- with stock PostgreSQL.
\set VERBOSITY terse

create collation ignore_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
create domain dint as int4 check (value > -1000);
create domain dint_of as dint check (value < 100000);
create domain dtext as text;
create type mood as enum ('sad', 'ok', 'happy', 'glad', 'angry');
create type pair as (n int, s text);
create type nested as (p pair, d date);
create type padded9 as (s char(9) collate ignore_case, i int);
create type padded12 as (s char(12) collate ignore_case, i int);
create type pair2 as (x int, y int);

-- An equality of one's own: the last digit, with a 32-bit hash function only.
create function digit_eq(int, int) returns bool language plpgsql immutable strict as $$ begin return $1 % 10 = $2 % 10; end $$;
create function digit_hash(int) returns int language plpgsql immutable strict as $$ begin return $1 % 10; end $$;
create operator === (leftarg = int, rightarg = int, procedure = digit_eq, commutator = ===, hashes);
create operator class digit_ops for type int4 using hash as operator 1 ===, function 1 digit_hash(int);
-- The same with both hash functions, the 64-bit one of the worst kind.
create operator ==== (leftarg = int, rightarg = int, procedure = digit_eq, commutator = ====, hashes);
create function digit_hash64(int, int8) returns int8 language sql immutable strict as 'select 1::int8';
create operator class digit64_ops for type int4 using hash as operator 1 ====, function 1 digit_hash(int), function 2 digit_hash64(int, int8);

-- lval and rval: an integer expression "i" (from -20 on) to a value.
create table class (
	name text primary key, ltype text, rtype text, lval text, rval text,
	condition text default 'l.k = r.k');
insert into class (name, ltype, rtype, lval, rval)
select x || '=' || y, x, y, 'i', 'i' from unnest('{int2,int4,int8}'::text[]) x, unnest('{int2,int4,int8}'::text[]) y;
insert into class (name, ltype, rtype, lval, rval)
select x || '=' || y, x, y, v, w
from (values ('float4', $$case i % 9 when 0 then '-0'::float8 when 1 then 'NaN' when 2 then 'Infinity' when 3 then '-Infinity' when 4 then 0.1 else i / 4.0 end$$),
	('float8', $$case i % 9 when 0 then '0' when 1 then 'NaN' when 2 then 'Infinity' when 3 then '-Infinity' when 4 then 0.1 else i / 4.0 end$$)) p(x, v),
	(values ('float4', $$case i % 9 when 0 then '0' when 1 then - 'NaN'::float8 when 2 then 'Infinity' when 3 then '-Infinity' when 4 then 0.1 else i / 4.0 end$$),
	('float8', $$case i % 9 when 0 then '-0'::float8 when 1 then 'NaN' when 2 then 'Infinity' when 3 then '-Infinity' when 4 then 0.1 else i / 4.0 end$$)) q(y, w);
insert into class (name, ltype, rtype, lval, rval) values
	('bool', 'bool', 'bool', 'i % 2 = 0', 'i % 2 = 0'),
	('char', '"char"', '"char"', 'chr(65 + (i + 20) % 26)', 'chr(65 + (i + 20) % 26)'),
	('oid', 'oid', 'oid', 'i::int4::oid', 'i::int4::oid'),
	('oid=int4', 'oid', 'int4', 'i::int4::oid', 'i'),
	('int4=oid', 'int4', 'oid', 'i', 'i::int4::oid'),
	('regclass=oid', 'regclass', 'oid', '(i + 20)::oid::regclass', '(i + 20)::oid'),
	('xid', 'xid', 'xid', '(i + 20)::text::xid', '(i + 20)::text::xid'),
	('cid', 'cid', 'cid', '(i + 20)::text::cid', '(i + 20)::text::cid'),
	('xid8', 'xid8', 'xid8', '(i + 20)::text::xid8', '(i + 20)::text::xid8'),
	('tid', 'tid', 'tid', $$('(' || i + 20 || ',1)')::tid$$, $$('(' || i + 20 || ',1)')::tid$$),
	('pg_lsn', 'pg_lsn', 'pg_lsn', $$'0/0'::pg_lsn + (i + 20)$$, $$'0/0'::pg_lsn + (i + 20)$$),
	('date', 'date', 'date', $$case i when 3 then 'infinity' when 4 then '-infinity' else date '2000-01-01' + i end$$, $$case i when 3 then 'infinity' when 4 then '-infinity' else date '2000-01-01' + i end$$),
	('time', 'time', 'time', $$time '12:00' + i * interval '1 min'$$, $$time '12:00' + i * interval '1 min'$$),
	('timetz', 'timetz', 'timetz', $$timetz '12:00+02' + i * interval '1 min'$$, $$timetz '12:00+02' + i * interval '1 min'$$),
	('timestamp', 'timestamp', 'timestamp', $$timestamp '2000-01-01' + i * interval '1 hour'$$, $$timestamp '2000-01-01' + i * interval '1 hour'$$),
	('timestamptz', 'timestamptz', 'timestamptz', $$timestamptz '2000-01-01 00:00+03' + i * interval '1 hour'$$, $$timestamptz '1999-12-31 21:00+00' + i * interval '1 hour'$$),
	('interval', 'interval', 'interval', $$i * interval '1 day'$$, $$i * interval '24 hours'$$),
	('interval months', 'interval', 'interval', $$i * interval '1 month'$$, $$i * interval '30 days'$$),
	('uuid', 'uuid', 'uuid', 'md5(i::text)::uuid', 'md5(i::text)::uuid'),
	('enum', 'mood', 'mood', '(enum_range(null::mood))[1 + (i + 20) % 5]', '(enum_range(null::mood))[1 + (i + 20) % 5]'),
	('numeric', 'numeric', 'numeric', $$(i || '.0')::numeric$$, $$(i || '.00')::numeric$$),
	('numeric specials', 'numeric', 'numeric', $$case i % 5 when 0 then 'NaN' when 1 then 'Infinity' when 2 then '-Infinity' else (i || '.10')::numeric end$$, $$case i % 5 when 0 then 'NaN' when 1 then 'Infinity' when 2 then '-Infinity' else (i || '.1')::numeric end$$),
	('numeric=int4', 'numeric', 'int4', $$(i || '.00')::numeric$$, 'i'),
	('float8=int4', 'float8', 'int4', 'i', 'i'),
	('text', 'text', 'text', $$'key ' || i$$, $$'key ' || i$$),
	('text padded', 'text', 'text', $$'key' || repeat(' ', (i + 20) % 3) || i % 7$$, $$'key' || repeat(' ', (i + 20) % 3) || i % 7$$),
	('varchar', 'varchar(20)', 'varchar', $$'key ' || i$$, $$'key ' || i$$),
	('varchar=text', 'varchar(20)', 'text', $$'key ' || i$$, $$'key ' || i$$),
	('name=text', 'name', 'text', $$'key ' || i$$, $$'key ' || i$$),
	('text=name', 'text', 'name', $$'key ' || i$$, $$'key ' || i$$),
	('name', 'name', 'name', $$'key ' || i$$, $$'key ' || i$$),
	('bpchar', 'char(10)', 'char(20)', $$'key ' || i$$, $$'key ' || i || '  '$$),
	('bpchar=text', 'char(10)', 'text', $$'key ' || i$$, $$'key ' || i$$),
	('bpchar=varchar', 'char(10)', 'varchar(12)', $$'key ' || i$$, $$'key ' || i$$),
	('text collate C', 'text collate "C"', 'text collate "C"', $$'key ' || i$$, $$'key ' || i$$),
	('text ignore case', 'text collate ignore_case', 'text collate ignore_case', $$case when i % 2 = 0 then 'KEY ' else 'key ' end || i$$, $$case when i % 3 = 0 then 'KEY ' else 'Key ' end || i$$),
	('bpchar ignore case', 'char(9) collate ignore_case', 'char(12) collate ignore_case', $$case when i % 2 = 0 then 'KEY ' else 'key ' end || i$$, $$case when i % 3 = 0 then 'KEY ' else 'Key ' end || i$$),
	('bpchar array ignore case', 'char(9)[] collate ignore_case', 'char(12)[] collate ignore_case', $$array['KEY ' || i]$$, $$array['Key ' || i]$$),
	('row with bpchar ignore case', 'padded9', 'padded12', $$row('KEY ' || i, 1)::padded9$$, $$row('Key ' || i, 1)::padded12$$),
	('long text', 'text', 'text', $$repeat('long ' || i, 400)$$, $$repeat('long ' || i, 400)$$),
	('bytea', 'bytea', 'bytea', $$decode(md5(i::text), 'hex')$$, $$decode(md5(i::text), 'hex')$$),
	('inet', 'inet', 'inet', $$('10.0.0.' || i + 20)::inet$$, $$('10.0.0.' || i + 20)::inet$$),
	('cidr=inet', 'cidr', 'inet', $$('10.0.' || i + 20 || '.0/24')::cidr$$, $$('10.0.' || i + 20 || '.0/24')::inet$$),
	('macaddr', 'macaddr', 'macaddr', $$('08:00:2b:01:02:' || lpad(to_hex(i + 20), 2, '0'))::macaddr$$, $$('08:00:2b:01:02:' || lpad(to_hex(i + 20), 2, '0'))::macaddr$$),
	('macaddr8', 'macaddr8', 'macaddr8', $$('08:00:2b:01:02:03:04:' || lpad(to_hex(i + 20), 2, '0'))::macaddr8$$, $$('08:00:2b:01:02:03:04:' || lpad(to_hex(i + 20), 2, '0'))::macaddr8$$),
	('int array', 'int4[]', 'int4[]', 'array[i, null, i / 2]', 'array[i, null, i / 2]'),
	('numeric array', 'numeric[]', 'numeric[]', $$array[(i || '.0')::numeric, 1]$$, $$array[(i || '.00')::numeric, 1.0]$$),
	('array ignore case', 'text[] collate ignore_case', 'text[] collate ignore_case', $$array['A' || i]$$, $$array['a' || i]$$),
	('oidvector', 'oidvector', 'oidvector', $$(i + 20 || ' 7')::oidvector$$, $$(i + 20 || ' 7')::oidvector$$),
	('jsonb', 'jsonb', 'jsonb', $$jsonb_build_object('a', i, 'b', (i || '.0')::numeric)$$, $$jsonb_build_object('b', i, 'a', (i || '.00')::numeric)$$),
	('row', 'pair', 'pair', $$row(i, nullif('s' || i % 5, 's1'))::pair$$, $$row(i, nullif('s' || i % 5, 's1'))::pair$$),
	('nested row', 'nested', 'nested', $$row(row(i, null)::pair, date '2000-01-01' + i)::nested$$, $$row(row(i, null)::pair, date '2000-01-01' + i)::nested$$),
	('int4range', 'int4range', 'int4range', $$case when i % 7 = 0 then 'empty' else int4range(i, i + 3) end$$, $$case when i % 7 = 0 then 'empty' else int4range(i, i + 2, '[]') end$$),
	('numrange', 'numrange', 'numrange', $$numrange(i, i + 3.0)$$, $$numrange((i || '.00')::numeric, i + 3)$$),
	('multirange', 'int4multirange', 'int4multirange', $$int4multirange(int4range(i, i + 3), int4range(i + 10, i + 11))$$, $$int4multirange(int4range(i, i + 3), int4range(i + 10, i + 11))$$),
	('domain=int4', 'dint', 'int4', 'i', 'i'),
	('domain=int8', 'dint', 'int8', 'i', 'i'),
	('domain=domain', 'dint_of', 'dint', 'i', 'i'),
	('domain over text', 'dtext', 'text', $$'key ' || i$$, $$'key ' || i$$);
insert into class values
	('expressions', 'int4', 'int4', 'i', 'i', 'l.k * 2 + 1 = r.k + r.k + 1'),
	('cast to text', 'int4', 'text', 'i', 'i::text', 'l.k::text = r.k'),
	('timestamp::date', 'timestamp', 'date', $$timestamp '2000-01-01' + i * interval '8 hours'$$, $$date '2000-01-01' + i$$, 'l.k::date = r.k'),
	('int8::int4', 'int8', 'int4', 'i', 'i', 'l.k::int4 = r.k'),
	('lower()', 'text', 'text', $$'KEY ' || i$$, $$'Key ' || i$$, 'lower(l.k) = lower(r.k)'),
	('collate in the clause', 'text', 'text', $$'KEY ' || i$$, $$'Key ' || i$$, 'l.k = r.k collate ignore_case'),
	('own operator, 32-bit hash', 'int4', 'int4', 'i', 'i', 'l.k === r.k'),
	('own operator, one hash', 'int4', 'int4', 'i', 'i', 'l.k ==== r.k'),
	('own operator and =', 'int4', 'int4', 'i', 'i', 'l.k === r.k and l.v % 3 = r.v % 3'),
	('two ints', 'int4', 'int4', 'i', 'i', 'l.k = r.k and l.v % 7 = r.v % 7'),
	('int and text', 'int4', 'int8', 'i', 'i', $$l.k = r.k and 'x' || l.w = 'x' || r.w$$),
	('uuid and date', 'uuid', 'uuid', 'md5(i::text)::uuid', 'md5(i::text)::uuid', $$l.k = r.k and date '2000-01-01' + l.w = date '2000-01-01' + r.w$$),
	('row of columns', 'int4', 'int4', 'i', 'i', '(l.k, l.w) = (r.k, r.w)'),
	('key twice', 'int4', 'int4', 'i', 'i', 'l.k = r.k and r.k = l.k and l.k + 1 = r.k + 1'),
	('null test beside', 'int4', 'int4', 'i', 'i', 'l.k = r.k and l.k is not distinct from r.k'),
	('row made here', 'int4', 'int4', 'i', 'i', 'row(l.k, l.w)::pair2 = row(r.k, r.w)::pair2');

-- left: rows and integer of row g; right: the same.
create table shape (name text primary key, lrows int, li text, rrows int, ri text);
insert into shape values
	('mixed', 90, 'case when g % 11 <> 0 then g % 40 - 20 end', 70, 'case when g % 7 <> 0 then g % 30 - 15 end'),
	('small left', 12, 'case when g % 5 <> 0 then g end', 150, 'case when g % 7 <> 0 then g % 30 - 15 end'),
	('skewed', 50, 'case when g % 3 <> 0 then 3 else g end', 60, 'case when g % 4 <> 0 then 3 else g end'),
	('empty left', 0, 'g', 30, 'g'),
	('empty right', 30, 'g', 0, 'g'),
	('no match', 30, 'g % 20', 30, '100 + g % 20'),
	('all match', 40, 'g % 20', 40, 'g % 20'),
	('all null', 20, 'null::int', 20, 'null::int');

create function check_class(what class, out says text) language plpgsql as $$
declare
	s shape;
	j text;
	residual text;
	q text;
	said text;
	nth int := 0;
	cases int := 0;
	bad text := '';
begin
	execute format('create temp table l (k %s, v int, w int)', what.ltype);
	execute format('create temp table r (k %s, v int, w int)', what.rtype);
	for s in select * from shape order by name loop
		truncate l, r;
		execute format('insert into l select case when i is not null then %s end, g, g %% 3 from (select g, %s as i from generate_series(1, %s) g) s',
			what.lval, s.li, s.lrows);
		execute format('insert into r select case when i is not null then %s end, g, g %% 4 from (select g, %s as i from generate_series(1, %s) g) s',
			what.rval, s.ri, s.rrows);
		analyze l, r;
		foreach j in array '{inner,left,right,full,semi,anti}'::text[] loop
			foreach residual in array array['', ' and l.v <> r.v', ' and l.w < r.w'] loop
				-- where nothing, or all, is found one of them each, in turn
				nth := nth + 1;
				continue when s.name <> all ('{mixed,small left,skewed}') and nth % 3 <> ((nth - 1) / 3 + (nth - 1) / 18) % 3;
				q := case j
					when 'semi' then format('select l.k, l.v from l where exists (select from r where %s%s)', what.condition, residual)
					when 'anti' then format('select l.k, l.v from l where not exists (select from r where %s%s)', what.condition, residual)
					else format('select l.k, l.v, r.k as rk, r.v as rv from l %s join r on %s%s', j, what.condition, residual) end;
				said := hgj_check(q);
				cases := cases + 1;
				if said <> 'ok' then
					bad := bad || E'\n' || s.name || ': ' || said;
				end if;
			end loop;
		end loop;
	end loop;
	drop table l, r;
	says := case bad when '' then cases || ' cases ok' else bad end;
end $$;

select name, says from class, check_class(class) order by name collate "C";

-- Every join type was there, in the plan and not only in the query.
select string_agg(join_type, ', ' order by join_type) as seen from hgj_seen;
