-- Filters and expressions over column vectors: whatever PostgreSQL's own
-- expression code says of a row, a program says as well, or raises the same
-- error.  EXPLAIN's "Filter by Row" names what is no program.
create schema filters;
set search_path = filters, public;
set hashgraph_join.source = pages;

create type color as enum ('red', 'green', 'blue');
create domain small as int4 check (value is null or value > -1000000);

-- a: columns of every type, with NULLs and all special values in all
-- combinations that matter; every column has a period of its own.
create table a (id int not null, j int, s int2, i int4, l int8, s2 int2, i2 int4, l2 int8, f float4, d float8, f2 float4, d2 float8, dt date, dt2 date,
	ts timestamp, ts2 timestamp, tz timestamptz, tm time, o oid, o2 oid, c "char", c2 "char", e color, e2 color, b bool, b2 bool, b3 bool, dm small, t text, n numeric)
	with (autovacuum_enabled = off);
create function pick(anyarray, int) returns anyelement language sql immutable as 'select $1[1 + $2 % array_length($1, 1)]';
insert into a select g, g % 9,
	pick('{null,-3,-1,0,1,2,32767,-32768,5,3,7}'::int2[], g), pick('{1,null,-3,2147483647,0,5,-2147483648,7,40000,2,3,-1,4}'::int4[], g),
	pick('{null,3,9223372036854775807,-9223372036854775808,0,1,-1,4294967296,2147483648,5,32768,2,7,-3,4,6,8}'::int8[], g),
	pick('{2,null,1,3,-4,0,5}'::int2[], g), pick('{3,0,null,-2,1,7,2,4}'::int4[], g), pick('{null,2,1,5,0,-3,3,4,7,6}'::int8[], g / 2),
	pick('{nan,null,inf,-inf,0,-0,1,1.5,-2,1e30,1e-30,0.1,3}'::float4[], g), pick('{null,1,nan,-inf,0.1,inf,-0,0,1e300,1e-300,1.5,-2,1e30,3,2,5,4}'::float8[], g),
	pick('{0.5,-0.5,nan,2,null,3,0}'::float4[], g / 3), pick('{nan,0,2,-1.5,null,inf,3,1,4}'::float8[], g / 2),
	pick('{null,infinity,-infinity,2000-01-01,2000-01-02,1999-12-31,4713-01-01 BC,5874897-12-31,294276-12-31,294277-01-01,1970-01-01}'::date[], g),
	pick('{2000-01-01,null,infinity,2001-03-04,-infinity}'::date[], g),
	pick('{null,infinity,-infinity,2000-01-01,2000-01-01 00:00:00.000001,1999-12-31 23:59:59.999999,4713-01-01 BC,294276-12-31 23:59:59.999999,1970-01-01}'::timestamp[], g / 3),
	pick('{2000-01-01,null,2000-01-02 12:00,-infinity,infinity,1999-12-31}'::timestamp[], g / 2),
	pick('{null,infinity,-infinity,2000-01-01,2000-01-01 00:00:00.000001,1999-12-31}'::timestamptz[], g), pick('{00:00,null,12:34:56.789,24:00,03:00}'::time[], g),
	pick('{0,null,1,4294967295,2147483648,2,2147483647}'::oid[], g), pick('{0,1,null,4294967295,2}'::oid[], g / 2),
	pick(array[null, 'a', 'b', E'\x7f', E'\\377', '']::"char"[], g), pick(array['a', null, E'\\200', 'b']::"char"[], g / 2),
	pick('{red,null,green,blue}'::color[], g), pick('{blue,red,null}'::color[], g / 4),
	pick('{true,false,null}'::bool[], g), pick('{true,false,null}'::bool[], g / 3), pick('{true,false,null}'::bool[], g / 9),
	pick('{0,1,null,5,-7}'::int4[], g), pick('{x,null,xy,xyz,y}'::text[], g), pick('{1,null,2.5,NaN}'::numeric[], g)
	from generate_series(1, 1400) g;
create table p (j int, k int, v int4, w int8, x float8) with (autovacuum_enabled = off);
insert into p select g, g % 4, pick('{1,null,5,2147483647,3}'::int4[], g), pick('{null,2,3,9223372036854775807}'::int8[], g), pick('{0,null,nan,1}'::float8[], g) from generate_series(0, 7) g;
analyze a, p;

-- What a query returns, or the error that it raises.
create function outcome(q text) returns text language plpgsql as $$
declare
	r record;
begin
	execute 'select x::text from (' || q || ') x' into r;
	return r.x;
exception when others then
	return sqlstate || ' ' || sqlerrm;
end $$;

-- Compares PostgreSQL and us; says so, too, when a row at a time was needed.
create function check_query(q text) returns text language plpgsql
	set hashgraph_join.enabled = off set hashgraph_join.force = off set hashgraph_join.require = off
as $$
declare
	stock text;
	ours text;
	line text;
	by_row bool := false;
begin
	stock := outcome(q);
	perform set_config('hashgraph_join.enabled', 'on', true), set_config('hashgraph_join.force', 'on', true), set_config('hashgraph_join.require', 'join', true);
	for line in execute 'explain (costs off) ' || q loop
		by_row := by_row or line ~ 'Filter by Row';
	end loop;
	ours := outcome(q);
	if ours is distinct from stock then
		return format('DIFFERENT: %s, stock %s', ours, stock);
	end if;
	return case when stock ~ '^\(' then 'ok' else 'error' end || case when by_row then ', by row' else '' end;
end $$;

-- The rows of a for which an expression is true.
create function check_filter(e text, rel text default 'a') returns text language sql as
	$$ select check_query('select count(*), sum(id), sum(id::int8 * id * id) from ' || rel || ' join p using (j) where ' || e) $$;
-- The values of an expression.
create function check_value(e text, rel text default 'a') returns text language sql as
	$$ select check_query('select count(x), min(x), max(x), count(x) filter (where x = y) from (select ' || e || ' as x, i2 as y from ' || rel || ' join p using (j)) q') $$;

-- Comparisons: every operator of every pair of types, between columns ...
create view operators(op) as select unnest('{=,<>,<,<=,>,>=,is distinct from,is not distinct from}'::text[]);
select says, count(*), min(e) as example from (
	select check_filter(e) as says, e from (
		select format('%s %s %s', l, op, r) as e
		from (values ('{s,i,l,s2,i2,l2,dm}'::text[]), ('{f,d,f2,d2}'), ('{dt,dt2,ts,ts2}'), ('{tz}'), ('{tm}'), ('{o,o2}'), ('{c,c2}'), ('{b,b2}')) g(g), unnest(g) l, unnest(g) r, operators
		union all select 'e ' || op || ' e2' from unnest('{=,<>,is distinct from,is not distinct from}'::text[]) op) q) q
	group by 1 order by 2 desc, 1;
-- ... and with constants on either side, and with what a subquery returns.
create view constants(columns, constants) as values
	('{s,i,l,dm}'::text[], '{3, 3::int2, 5::int8, 2147483647, ''-2147483648''::int4, 9223372036854775807, ''-9223372036854775808''::int8, 32767, -32768::int4, 40000, null::int4, null::int8}'::text[]),
	('{f,d}', '{nan::float8, nan::float4, inf::float8, -inf::float4, 0::float8, -0::float8, 1.5::float8, null::float8, 1e30::float4, 0.1::float4, 0.1::float8}'),
	('{dt,ts}', '{2000-01-01::date, 2000-01-01::timestamp, 2000-01-01 00:00:00.000001::timestamp, infinity::date, -infinity::date, infinity::timestamp, -infinity::timestamp, 294277-01-01::date, 294276-12-31 23:59:59.999999::timestamp, 4713-01-01 BC::date, null::date, null::timestamp, 1999-12-31 12:00::timestamp}'),
	('{tz}', '{2000-01-01::timestamptz, infinity::timestamptz, null::timestamptz}'), ('{tm}', '{03:00::time, null::time}'), ('{o}', '{2::oid, 4294967295::oid, 0::oid, null::oid}'),
	('{c}', '{"a::\"char\"", "\\377::\"char\"", "null::\"char\""}'), ('{b}', '{true, false, null::bool}');
create view compared as
	select col, op, case when c ~ '^(null|true|false|''|\d+$|-?\d+::int)' then c else regexp_replace(c, '(.*)::(.*)', '''\1''::\2') end as const
	from constants, unnest(columns) col, unnest(constants) c, operators;
select says, count(*), min(e) as example from (
	select check_filter(e) as says, e from (
		select format('%s %s %s', col, op, const) as e from compared
		union all select format('%s %s %s', const, op, col) from compared where op in ('<', '>=')
		union all select format('%s %s (select %s)', col, op, const) from compared where op in ('<', '=', '>=')
		union all select format('(%s %s %s) is not true', col, op, const) from compared where op in ('<>', '>')) q) q
	group by 1 order by 2 desc, 1;

-- Three-valued logic: truth tables, two and three deep.
create view truths(x) as select unnest('{b, b2, b3, i < 3, l > i, b is null, null::bool, f < d, "s in (1, 2)", e = e2}'::text[]);
select says, count(*), min(e) as example from (
	select check_filter(e) as says, e from (
		select format(f, x) as e from truths, unnest('{(%s) is true,(%s) is not true,(%s) is false,(%s) is not false,(%s) is unknown,(%s) is not unknown,not (%s),((%s)) is null,%s}'::text[]) f
		union all select format(f, x.x, y.x) from truths x, truths y, unnest('{(%s) and (%s),(%s) or (%s),not ((%s) and (%s)),not ((%s) or (%s)),((%s) and (%s)) is null,((%s) or (%s)) is null,b3 or ((%s) and (%s)),((%s) or (%s)) and not b3}'::text[]) f
		union all select format(f, x.x, y.x) from truths x, truths y, unnest('{(%s) and (%s) and i2 + l2 > 3,(%s) or (%s) or i2 + l2 > 3,not ((%s) and i2 + l2 > 3 or (%s))}'::text[]) f) q) q
	group by 1 order by 2 desc, 1;

-- BETWEEN and IN, with and without NULLs, short, long, dense and sparse lists.
select says, count(*), min(e) as example from (
	select check_filter(e) as says, e from (
		select format(f, x, lst) as e from unnest('{s,i,l,i2 + 1}'::text[]) x,
			unnest(array['1,2,3', '1', '1,null', '-5,null,5', '1,2,3,4,5,6,7,8,9,10', '1000000,2,-1000000000,5,6,7,-1,-2,-9', 'null::int4', '0,1,null,3,4,5,6,7,8,9,10,11,1000000000',
				'9223372036854775807,-9223372036854775808,0,1,2', (select string_agg((g * g * 7919)::text, ',') from generate_series(-400, 400) g), (select string_agg((g * 3)::text, ',') from generate_series(-400, 400) g)]) lst,
			unnest('{%s in (%s),%s not in (%s),(%s in (%s)) or b,(%s not in (%s)) and not b,(%s in (%s)) is null,not (%s in (%s)),%s = any((select array[%s])::int8[]),%s <> all((select array[%s])::int8[])}'::text[]) f
		union all select format(f, x) from unnest('{s,i,l}'::text[]) x, unnest('{%s between -2 and 5::int8,%s not between -2 and 5,%s between 5 and -2,%s between null and 5,%s between symmetric 5 and -2,%s > -5 and id > 7 and %1$s < 8::int8 and %1$s <> 2 and %1$s >= -3::int2,
			%s between 1 and 9223372036854775807,(%s between 2 and 5) is not true,%s > 9223372036854775807,%s < (-9223372036854775807 - 1),%s <> 9223372036854775807,%s >= 9223372036854775807}'::text[]) f
		union all select format(f, x) from unnest('{s,i,l}'::text[]) x,
			unnest(array['%s = any(''{}''::int4[])', '%s <> all(''{}''::int4[])', '%s = any(null::int4[])', '%s <> all(null::int4[])', 'not (%s = any(''{}''::int4[]))', '(%s = any(''{}''::int4[])) or b', '(%s <> all(''{}''::int4[])) and b',
				'(%s = any((select null::int4[])::int8[])) or b', '%s = any(''{{1,2},{3,null}}''::int4[])', '%s <> all(array[]::int8[])', '%s = any(array[i2, 3])', '%s <> any(''{1,2}''::int4[])']) f
		union all select format('%s %s (array[%s]::%s[])', x, o, lst, t) from unnest('{f,d}'::text[]) x, unnest(array['= any', '<> all']) o, unnest('{float4,float8}'::text[]) t,
			unnest(array['''nan''', '''nan'',0', '''-0'',1', '1,null', '0.1,1e30', '1,2,3,4,5,6,7,''inf'',''-inf'',10,''nan''']) lst
		union all select unnest(array['dt in (''2000-01-01'', ''infinity'')', 'dt not in (''2000-01-01'', null)', 'ts in (''2000-01-01'', ''infinity'')', 'tm in (''03:00'', ''24:00'')', 'o in (1, 4294967295)', 'c in (''a'', ''\377'')',
			'e in (''red'', ''blue'')', 'e not in (''red'', null)', 'b in (true)', 'b = any(array[true, null])', 'dm in (1, 5)', 'dt = any(array[''2000-01-01''::timestamp])'])) q) q
	group by 1 order by 2 desc, 1;

-- Arithmetic and casts that do not fail: their NULLs, and what is compared with them.
create view safe(e) as
	select format('%s %s %s', x, op, y) from unnest('{s2,i2,l2}'::text[]) x, unnest('{s2,i2,l2,3,3::int2,-1::int8,null::int4}'::text[]) y, unnest('{+,-,*}'::text[]) op
	union all select format('case when %2$s <> 0 then %1$s %3$s %2$s end', x, y, op) from unnest('{s2,i2,l2}'::text[]) x, unnest('{s2,i2,l2}'::text[]) y, unnest('{/,%}'::text[]) op where op = '/' or x = y
	union all select format('%s %s %s', x, op, y) from unnest('{f2,d2}'::text[]) x, unnest('{f2,d2,3::float4,-2::float8,''nan''::float8,''inf''::float4}'::text[]) y, unnest('{+,-,*}'::text[]) op
	union all select format('case when %2$s <> 0 then %1$s / %2$s end', x, y) from unnest('{f2,d2}'::text[]) x, unnest('{f2,d2,4::float8}'::text[]) y
	union all select format(f, x) from unnest('{s2,i2,l2,f2,d2}'::text[]) x, unnest('{-%s,abs(%s),%s::float4,%s::float8,case when %1$s between -5 and 5 then %1$s::int2 end,case when %1$s between -5 and 5 then %1$s::int4 end,case when %1$s between -5 and 5 then %1$s::int8 end,
		"coalesce(%s, 7)","case when %s > 2 then i2 when b then %1$s end",case %s when 1 then 10 when 2 then i2 else %1$s * 2 end}'::text[]) f
	union all select unnest('{i2::float8 + f2,s + i2 * 2::int8,"coalesce(s2, i2, l2)",case when isfinite(dt2) then dt2 - 3 end = dt,dt2 - 3,dt2 + i2,case when dt2 > ''-infinity'' and dt2 < ''infinity'' then dt2 - ''2000-01-01'' end,dt2::timestamp,b::int4,i::bool::int4,o::int8,-d2 * abs(f2)}'::text[]);
select says, count(*), min(e) as example from (
	select check_filter(f) as says, f as e from safe, lateral (values (format('(%s) is null', e)), (format('(%1$s) = (%1$s)', e))) v(f)
	union all select check_filter(f), f from safe, lateral (values (format('%s > 1', e)), (format('%s in (2, 4, -3)', e)), (format('%s <> i2', e)), (format('not (%s <= 3 and b)', e))) v(f) where e !~ 'dt'
	union all select check_filter('dt <> ' || e), 'dt <> ' || e from safe where e ~ '^dt') q
	group by 1 order by 2 desc, 1;
-- the same as arguments of aggregates
select says, count(*), min(e) as example from (
	select check_value(e) as says, e from safe where e !~ 'dt') q
	group by 1 order by 2 desc, 1;

-- Other forms.
select e, check_filter(e) from unnest(array['b', 'not b', 'b and not b2', 'b is true and b2 is not false', 't is null', 'n is not null and t is not null', 'o::int8 < 5', 'i2::oid = 5::oid', 's2::int4::oid > 4294967290::oid',
	'dt > date ''1999-01-01'' and dt <= date ''2001-01-01'' + interval ''90 days''', 'ts2 < now() and ts2 > now() - interval ''1000 years''', 'tz <= now()', 'dt < current_date', 'true', 'false', 'null::bool', 'i is null and i is not null',
	'i = i', 'f <> f', 'd = d', 'b = (i > 0)', '(i > 0) = (l > 0)', '(i > 0) is distinct from (l > 0)', '(case when b then e else ''red'' end) = ''red''', 'coalesce(b, b2, false)', 'coalesce(b, b2)', 'i > (select max(v) / 1000000000 from p)', 'i2 < all (select v from p where v is not null)']) e;
-- A mixture of what can and cannot be a program.
select e, check_filter(e) from unnest(array['length(t) > 1', 'length(t) > 1 and i < 5', 'i < 5 and length(t) > 1 and l between 0 and 9', 'i < 5 or length(t) > 1', 'n > 1 and b', 't like ''x%'' and i2 + l2 > 3', 'i2 + l2 > 3 and t like ''x%''',
	'e < ''blue''', 'nullif(i2, 3) > 1', 'random() >= 0 and i < 5', 'a is null', 'a.ctid > ''(1,1)'' and b', 'a.tableoid = ''filters.a''::regclass and i > 2']) e;

-- Strings, and functions that are called row by row.
create collation insensitive (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
create table strings (id int, j int, t text, vc varchar(10), ch char(6), y bytea, nm name, u uuid, n numeric, n2 numeric(8,2), iv interval, c text collate "C", ci text collate insensitive, long text, far text, e color, tz timestamptz, ts timestamp, a int[], js jsonb)
	with (autovacuum_enabled = off);
alter table strings alter far set storage external;
insert into strings select g, g % 9, pick('{abc,null,"",ab,abcd,"abc ",ABC,x}'::text[], g), pick('{abc,null,x,"x ","",abcd}'::varchar[], g), pick('{abc,null,x,"x ","",abcd}'::bpchar[], g / 2),
	pick(array['abc', null, '\x00', '\x0000', '']::bytea[], g), pick('{abc,x,null,pg_class}'::name[], g), pick(array[null, md5('1')::uuid, md5('2')::uuid], g), pick('{1,null,2.50,2.5,NaN,-1e30,0,Infinity,1e-30,7}'::numeric[], g), g % 40 / 8.0,
	pick('{1 day,24 hours,null,1 month,30 days,-1 day}'::interval[], g), pick('{abc,null,ABC,b}'::text[], g), pick('{abc,null,ABC,b}'::text[], g),
	pick(array[null, repeat('x', 5000), repeat('x', 5001), repeat('y', 5000), 'x'], g), pick(array[repeat('far', 1000), null, repeat('raf', 1000), repeat('far', 1001)], g), pick('{red,null,green,blue}'::color[], g),
	pick('{null,infinity,2000-01-01,2000-01-02}'::timestamptz[], g), pick('{2000-01-01,null,-infinity,2000-01-01 12:00}'::timestamp[], g), case g % 4 when 0 then '{1,2}'::int[] when 1 then '{3}' when 2 then '{}' end, pick(array['{"a": 1}', null, '{"b": 2}']::jsonb[], g)
	from generate_series(1, 1300) g;
select says, count(*), min(e) as example from (
	select check_filter(e, 'strings') as says, e from (
		select format('%s %s %s', x, op, c) as e from unnest('{t,vc,ch,c,long,far}'::text[]) x, unnest('{=,<>}'::text[]) op,
			unnest(array['''abc''', '''x''', '''x   ''', '''''', 'null', '(select ''abc''::text)', '''abc''::bpchar::text', 'repeat(''far'', 1000)', 'repeat(''x'', 5000)']) c
		union all select format('y %s %s', op, c) from unnest('{=,<>}'::text[]) op, unnest(array['''abc''', '''\x00''', '''''', 'null']) c
		union all select format('%s in (%s)', x, c) from unnest('{t,vc,ch,c,y,long,far,b and ch,j > 3 or t,t not}'::text[]) x,
			unnest(array['''abc''', '''x'',''abc''', 'null,''x''', '''a'',''b'',''c'',''d'',''e'',''f'',''g'',''x'',''abc  '',''''', '''a'',''b'',''c'',''d'',''e'',''f'',''g'',''x'',null']) c where x !~ '^b'
		union all select format(f, x, c) from unnest('{t,vc,ch,c,y,long,far}'::text[]) x, unnest('{(%s in (%s)) is null,(%s in (%s)) is not true,%s not in (%s)}'::text[]) f,
			unnest(array['''abc''', '''x'',''abc''', 'null,''x''', '''a'',''b'',''c'',''d'',''e'',''f'',''g'',''x'',''abc  '',''''', '''a'',''b'',''c'',''d'',''e'',''f'',''g'',''x'',null']) c
		union all select format('%s = %s', x, y) from unnest('{t,vc,ch}'::text[]) x, unnest('{t,vc,ch}'::text[]) y
		union all select format('%s = any((select array_agg(distinct s.%1$s) from strings s where s.id < %s)::text[])', x, n) from unnest('{t,vc,long,far}'::text[]) x, unnest('{0,3,1000}'::text[]) n
		union all select format('%s %s %s', x, op, c) from (values ('t', '''abc'''), ('t', 'vc'), ('n', '2.5'), ('n', 'n2'), ('n2', '1.25'), ('iv', '''1 day''::interval'), ('u', 'md5(''1'')::uuid'), ('nm', '''x''::name'), ('e', '''green'''), ('tz', 'ts'), ('ts', '''2000-01-01 03:00''::timestamptz'),
			('y', '''\x01''::bytea'), ('c', '''b''')) v(x, c), operators where op !~ 'distinct') q) q
	group by 1 order by 2 desc, 1;
select e, check_filter(e, 'strings') from unnest(array['t like ''ab%''', 't not like ''%b%'' or vc is null', 't ilike ''AB_''', 't ~ ''^a.c$''', 'starts_with(t, ''ab'')', 'length(t) = 3 and length(long) > 5000', 'length(far) > 3000', 'ci = ''abc''', 'ci in (''ABC'', ''b'')', 'ci < ''b''', 'nm = ''pg_class''', 'nm = t',
	'ch like ''x%''', 'ch = t', 'ch = ''x''::text', 'vc = ''x''::text collate "C"', 'a @> array[1]', 'array_length(a, 1) = 2', 'js @> ''{"a": 1}''', 'js ? ''b''', 'n + n2 > 3', 'n > n2 and n2 between 0.5 and 3.25', 'n in (1, 2.5)', 'lower(t) = ''abc''', 'date_part(''day'', ts) = 1', 'ascii(t) = 97', 'strpos(t, ''c'') > 2',
	't is distinct from ''abc''', 'coalesce(t, vc) = ''abc''', 'case when length(t) > 3 then length(vc) else 3 end > 2', 'octet_length(y) = 1', 'concat(t, vc) = ''abcabc''', 'isfinite(tz) and not isfinite(ts)', 'hashtext(t) % 2 = 0']) e;
-- the first row that fails, of functions that are called
select e, outcome('select count(*) from strings where ' || e), check_filter(e, 'strings') from unnest(array['t like ''ab\''', 'length(t) > 5 and t like ''ab\''', 'n::int4 > 3', 'power(n2::float8, 1000) > 1 and 1 / (id - 3) > 0', '1 / (id - 3) > 0 and power(n2::float8, 1000) > 1', 'ln(id::float8 - 700) > 0 and sqrt(600 - id::float8) >= 0',
	'sqrt(600 - id::float8) >= 0 and ln(id::float8 - 700) > 0', 'id < 300 and ln(id::float8) * sqrt(600 - id::float8) > 5',
	'(n::int4 > 3 or id > 0) and 1 / (id - 1) < 5', '(ci like t or id > 0) and 1 / (id - 1) < 5', '(strpos(ci, t) > 0 or id > 0) and 1 / (id - 1) < 5']) e;

-- patterns and values about as long as the first bytes that are compared at once
create table heads (id int, j int, t text, y bytea, c char(9)) with (autovacuum_enabled = off);
insert into heads select row_number() over (), id % 7, v, v::bytea, left(v, 9) from generate_series(1, 40) id,
	unnest(array['', 'f', 'forest', 'forestg', 'forestgr', 'forestgre', 'forest green', 'Forestgreen', 'gforestgre', 'forestgrX', null, repeat('forestgreen', 300)]) v;
analyze heads;
select e, count(*) filter (where says = 'ok') as ok, min(says) filter (where says <> 'ok') as bad
from (select e, check_filter(format(e, left('forestgreen', n)), 'heads') as says
	from unnest(array['t like ''%s%%''', 't not like ''%s%%''', 't like ''%%%s''', 't like ''%s''', 'y like ''%s%%''', 'c like ''%s%%''', 'starts_with(t, ''%s'')', 't like ''%s%%e%%n''']) e,
		generate_series(0, 11) n) q
group by 1 order by 1;
drop table heads;

-- every function over values that a program may call: before and after another clause that fails
create table args (id int, j int, bool bool, "char" "char", int2 int2, int4 int4, int8 int8, float4 float4, float8 float8, numeric numeric, text text, bpchar bpchar, bytea bytea, date date, time time, timetz timetz, timestamp timestamp, timestamptz timestamptz, "interval" interval, uuid uuid) with (autovacuum_enabled = off);
insert into args select g, g % 9, pick('{true,null,false}'::bool[], g), pick(array['a', 'b', null]::"char"[], g), pick('{1,3,5,0,null,-2,32767}'::int2[], g), pick('{2,1,7,0,null,-3,2147483647}'::int4[], g / 2), pick('{3,1,2,0,null,-4,9223372036854775807}'::int8[], g / 3),
	pick('{0.5,1,2.5,null,-3,1e30,nan}'::float4[], g), pick('{0.25,1,0.75,null,-3,1e300,inf}'::float8[], g / 2), pick('{1,2.5,3,null,-4,1e20,NaN}'::numeric[], g), pick('{day,a.c,null,1 kB,abc,hour,UTC,NFC,(a}'::text[], g / 2), pick('{a%,abc,null,day}'::bpchar[], g), pick(array['a%', null, '\x6162', '\x5c']::bytea[], g),
	pick('{2000-01-01,2001-02-03,null,infinity,5874897-12-31}'::date[], g), pick('{03:04,null,24:00}'::time[], g), pick('{03:04+01,null,23:00-02}'::timetz[], g), pick('{2000-01-01 12:00,null,infinity,294276-12-30 23:00}'::timestamp[], g), pick('{2000-01-01 12:00,-infinity,null,294276-12-30 23:00}'::timestamptz[], g),
	pick('{1 day,null,2 hours,1 mon,178000000 years}'::interval[], g), pick(array[null, md5('1')::uuid], g)
	from generate_series(1, 60) g;
select says, count(*) > 300 as many, min(e) as example from (
	select check_filter(e, 'args') as says, e from pg_proc f, lateral (select format('%I(%s)', proname, string_agg(format('%I', typname), ', ' order by n)) as call, count(*) n from unnest(proargtypes) with ordinality a(a, n) join pg_type t on t.oid = a and typname in (select attname from pg_attribute where attrelid = 'args'::regclass)) c,
		lateral (values (call || ' is not null'), (call || ' is not null and 1 / (id - 30) <= 1'), ('1 / (id - 30) <= 1 and ' || call || ' is not null')) v(e)
	where prolang = 12 and prokind = 'f' and proisstrict and not proretset and provolatile = 'i' and provariadic = 0 and pronargs = n and n > 0 and proname !~ '^xml' and f.oid < 16384 and
		prorettype in (select atttypid from pg_attribute where attrelid = 'args'::regclass and attlen > 0 and attname not in ('uuid', 'interval', 'timetz', 'ctid'))) q
	group by 1 order by 2 desc, 1;
-- An error of a function that is called goes up as it is: nothing is run again in the state it left behind (array_eq() calls the elements' own operator here, and that a security definer).
create role regress_hgj_definer;
create type odd as (v int);
create function definer(int) returns bool language plpgsql security definer as 'begin return 1 / ($1 - 3) is not null; end';
alter function definer(int) owner to regress_hgj_definer;
grant usage on schema filters to regress_hgj_definer;
create function odd_eq(odd, odd) returns bool language plpgsql as $$ begin raise notice '% by the %', ($1).v, case when current_user = session_user then 'user' else 'definer' end; return filters.definer(($1).v); end $$;
create function odd_cmp(odd, odd) returns int language sql immutable as 'select ($1).v - ($2).v';
create operator = (leftarg = odd, rightarg = odd, function = odd_eq, commutator = =);
create operator class odd_ops default for type odd using btree as operator 3 =, function 1 odd_cmp(odd, odd);
create table odds (id int, j int, a odd[]) with (autovacuum_enabled = off);
insert into odds select g, 1, array[row(g)::odd] from generate_series(1, 4) g;
select count(*) from odds join p using (j) where a = array[row(1)::odd];
set hashgraph_join.force = on;
set hashgraph_join.require = join;
select count(*) from odds join p using (j) where a = array[row(1)::odd];
select count(*) from odds join p using (j) where a = array[row(1)::odd] and 1 / (id - 2) <= 1;
select sum(1 / (id - 2) + (a = array[row(1)::odd])::int4) from odds join p using (j);
select sum(6 / (id - 3) + (a = array[row(1)::odd])::int4), count(6 / (id - 3) + nullif(id, 1) + (a = array[row(1)::odd])::int4) from odds join p using (j) where id < 3;
reset hashgraph_join.force;
reset hashgraph_join.require;

-- Errors: the same as PostgreSQL's, for the first row that has one.
create table big (id int, j int, n int, s int2, i int4, i2 int4, l int8, s2 int2, f float4, d float8, dd float8, z int4, dt date, m float8) with (autovacuum_enabled = off);
insert into big select g, g % 8, nullif(g % 50, 0) * g, g % 100, 2147482000 + g, 3, 9223372036854774000 + g, 32000, 1e38, 1e300, 1e-300, 0, '5874897-12-30', case when g = 700 then 'nan'::float8 else g end from generate_series(1, 1500) g;
select says, count(*), string_agg(e, ', ' order by e collate "C") as expressions from (
	select check_value(e, 'big') as says, e from unnest(array['i + 1', 'i + s', 's2 + s', 'l + 1', 'l + s', 'l * 2', 'i * 2', 's2 * s2', 's2 - (-30000)::int2', 'i::int2', 'l::int4', 'l::int2', 'd * d', 'f * f', 'f * d * d', 'dd * dd', 'd * -d', 'd + d * 1e8::float8', 'd - -d * 1e8::float8',
		'd / dd', 'dd / d', 'f::float8 * d', 'd::float4', 'dd::float4', 'd::int4', 'd::int8', 'f::int2', '1 / z', 'id / z', '1.0::float8 / z', 'm / z', 'id % z', '0 / z', '-(-2147483648 - z)', '-i', 'abs((-2147483648)::int4 + z)', '(-32768)::int2 / (-1 + z)::int2', '(-32768)::int2 % (-1 + z)::int2',
		'n + i', 'm::int4', 'i + 148 - id', 'case when i < 2147483300 then i + 400 end', 'case when i > 2147483300 then i + 400 end', 'coalesce(n, i * 2)', 'coalesce(id, i * 2)', 'null::int + i * 2', 'n * 0 + null::int4 + 1 / z',
		'case when id < 0 then (select 1 / z from big limit 1) else 1 end', 'case when id > 1400 then 1 / z else i + 400 end', 'case when id > 1400 then i + 400 else l end']) e
	union all select check_filter(e, 'big'), e from unnest(array['dt + id > dt', 'dt - (-5) > dt', 'dt + 1 > dt', 'dt::timestamp > ''2000-01-01''', 'dt - date ''infinity'' > 3', 'l::oid > 3::oid', '(-id::int8)::oid > 3::oid',
		'i + 600 > 0 and l + 900 > 0', 'l + 900 > 0 and i + 600 > 0', 'l + 900 > 0 or i + 600 > 0', 'id > 10 and 1 / z > 0', 'i > (select 1 / z from big limit 1)', 'id = any(array[1, (select 1 / z from big limit 1)])']) e) q
	group by 1 order by 2 desc, 1;
-- ... and none where PostgreSQL does not look.
select e, check_filter(e, 'big') from unnest(array['id < 0 and 1 / z > 0', 'n < 0 and 1 / z > 0', 'n <> n and 1 / z > 0', '(n < 0 or null) and 1 / z > 0', '(n > 0 or 1 / z > 0)', '(id > 0 or 1 / z > 0)', '(id > 1 or 1 / z > 0)', '(id < 0 and 1 / z > 0) or id > 7', 'id > 10 and id < 5 and 1 / z > 0',
	'id > 5000 and i > (select 1 / z from big limit 1)', 'id < 0 and id = any(array[1, (select 1 / z from big limit 1)])', 'not (id > 0 or 1 / z > 0)', '(id < 0 and 1 / z > 0) is not true', 'case when id > 0 then true else 1 / z > 0 end', 'coalesce(id > 0, 1 / z > 0)',
	'n is null and (case when n is null then true else i + 2000 > 0 end)', '(null and 1 / z > 0) is null', 'null::int4 + i * 2 is null', 'n + i * 0 > 0 or n is null', 'id > 1000 and i < 2147484000 + (id - 1500) and i + id + id < 0']) e;

-- An AND looks at what follows a NULL, where a list of clauses does not; and what lies under a NULL is no operand.
select e, check_query('select count(*) filter (where ' || e || '), sum(id) from big join p using (j)') as filter, check_filter(e, 'big') as clause
	from unnest(array['n < 0 and 1 / z > 0', 'n <> n and 1 / z > 0', 'id < 0 and 1 / z > 0', 'n > 0 and id > 3', 'id > 3 and n > 0 and i + 600 - id > 0']) e;
create table under (id int, j int, i int, l int8, f float4, d float8, dt date) with (autovacuum_enabled = off);
insert into under select g, g % 8, case when g % 3 > 0 then 3 end, case when g % 4 > 0 then -3 end, case when g % 5 > 0 then 1e20 end, case when g % 7 > 0 then 1e-200 end, case when g % 2 > 0 then date '2000-01-01' end from generate_series(1, 700) g;
select e, check_filter('(' || e || ') is not null', 'under') from unnest(array['2 / i', '2 % i', '7 / l', '2::float8 / d', '2::float4 / f', '(1 / (i - 2)) * (1 / (l + 2))', '1::float8 / (f::float8 / 1e30::float8)', 'i::int2 * l::int4', 'd * 1e200::float8 / d', 'dt - 10000', 'dt - date ''2000-01-01''']) e;

-- Residual clauses of the join.
select e, check_query('select count(*), sum(a.id), sum(p.j * a.id) from a join p on a.j = p.k and ' || e) as inner_join, check_query('select count(*), sum(a.id), sum(p.j * a.id) from a left join p on a.j = p.k and ' || e) as left_join,
	check_query('select count(*), sum(a.id) from a where exists (select from p where a.j = p.k and ' || e || ')') as semi_join
	from unnest(array['a.i < p.v', 'a.i >= p.w and a.l <> p.v', 'a.d < p.x or a.b', 'a.f = p.x', 'a.i2 + p.j > 3', 'a.i2 in (1, 2, 3) and p.w is null', '(a.i2 = p.v) is not true', 'p.v - 1000 + a.i2 > 0', 'a.i + p.v > 0', 'length(a.t) > p.j', 'a.i < p.v and length(a.t) > p.j']) e;

-- Parameters: prepared statements with generic plans, PL/pgSQL's variables ...
set plan_cache_mode = force_generic_plan;
prepare stock(int4, int8, float8, int4[], date) as select count(*), sum(id) from a join p using (j) where i < $1 and l <> $2 or d > $3 or i2 = any($4) and dt < $5 + 1;
execute stock(3, 4, 5, '{1,2,null}', '2000-01-01');
execute stock(2147483647, null, 'nan', '{}', '294280-01-01');
execute stock(null, 5, null, null, null);
set hashgraph_join.force = on;
set hashgraph_join.require = join;
prepare ours(int4, int8, float8, int4[], date) as select count(*), sum(id) from a join p using (j) where i < $1 and l <> $2 or d > $3 or i2 = any($4) and dt < $5 + 1;
explain (costs off) execute ours(3, 4, 5, '{1,2,null}', '2000-01-01');
execute ours(3, 4, 5, '{1,2,null}', '2000-01-01');
execute ours(2147483647, null, 'nan', '{}', '294280-01-01');
execute ours(null, 5, null, null, null);
reset hashgraph_join.require;
reset hashgraph_join.force;
create function counted(v1 int4, v2 int8, v3 int4[]) returns bigint language plpgsql as $$ begin return (select count(*) from a join p using (j) where (i < v1 or l = v2) and i2 <> all(v3)); end $$;
select hgj_check('select x, y, counted(x, y, z) from (values (1, 2, ''{1}''::int4[]), (7, null, ''{3,4}''), (null, 7, ''{}''), (5, 5, null), (100, 0, ''{2,null}'')) v(x, y, z)', 0, false);
reset plan_cache_mode;
-- ... and those that change with each rescan.
select hgj_check('select v.*, q.* from (values (1, 2::int8, 1.5::float8), (null, 3, 0), (7, null, ''nan''), (2, 2, 2)) v(x, y, z), lateral (select count(*), sum(id) from a join p using (j) where (a.i < v.x and a.l <> v.y) or a.d > v.z) q');
select hgj_check('select v.*, q.* from (values (1, 2), (null, 3), (7, null), (2, 2)) v(x, y), lateral (select count(*), sum(id), sum(a.i2 + v.x) from a join p using (j) where a.i in (v.x, v.y) or a.i between v.x and v.y) q');
select hgj_check('select v.*, (select count(*) from a join p on a.j = p.j and a.i2 + v.x > p.v where a.s2 < v.y) from (values (1, 2), (null, 3), (7, null), (2, 2)) v(x, y)');

-- Row security and security barriers: a function that leaks sees only rows that the barrier lets through, whatever is a program.
create table seen (id int);
create function leak(id int) returns bool language plpgsql cost 0.0001 as $$ begin insert into seen values (id); return true; end $$;
create view barrier with (security_barrier) as select * from a where i2 > 0 and t like 'x%';
create table guarded (like a) with (autovacuum_enabled = off);
insert into guarded select * from a;
alter table guarded enable row level security;
create policy positive on guarded using (i2 > 0 and t like 'x%');
create role regress_hgj_filters;
grant usage on schema filters to regress_hgj_filters;
grant select on a, guarded, barrier, p to regress_hgj_filters;
grant all on seen to regress_hgj_filters;
set session authorization regress_hgj_filters;
set search_path = filters, public;
set hashgraph_join.force = on;
set hashgraph_join.require = join;
explain (costs off) select count(*) from barrier join p using (j) where leak(id) and l < 5 and 6 / i2 >= 0;
select count(*), sum(id) from barrier join p using (j) where leak(id) and l < 5 and 6 / i2 >= 0;
select count(*), sum(id) from guarded a join p using (j) where leak(id) and l < 5 and 6 / i2 >= 0;
select count(*) filter (where i2 > 0 and t like 'x%') as may_be_seen, count(*) filter (where (i2 > 0 and t like 'x%') is not true) as may_not from seen join a using (id);
set hashgraph_join.enabled = off;
reset hashgraph_join.require;
select count(*), sum(id) from barrier join p using (j) where leak(id) and l < 5 and 6 / i2 >= 0;
select count(*), sum(id) from guarded a join p using (j) where leak(id) and l < 5 and 6 / i2 >= 0;
reset session authorization;

-- Whoever may not call a function may not have it called by a program.
set search_path = filters, public;
begin;
revoke execute on function int4lt(int4, int4) from public;
set local session authorization regress_hgj_filters;
set local hashgraph_join.force = on;
select count(*) from a join p using (j) where i < 5;
rollback;
begin;
revoke execute on function int4eq(int4, int4) from public;
set local session authorization regress_hgj_filters;
set local hashgraph_join.force = on;
select count(*) from a join p using (j);
rollback;
set client_min_messages = warning;
drop schema filters cascade;
drop role regress_hgj_filters, regress_hgj_definer;
