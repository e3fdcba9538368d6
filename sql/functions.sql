-- Functions over vectors: parts of dates and times, CASE and its relatives, LIKE, and
-- what is called row by row, against PostgreSQL's own answers and errors, as group
-- keys, arguments and quals.
set timezone = 'UTC';
create table moments (id int, k int, d date, ts timestamp, tz timestamptz, i2 int2, i4 int4, i8 int8, f4 float4, f8 float8,
	n2 numeric(9,2), free numeric, t text, c char(12), b bytea) with (autovacuum_enabled = off);
-- leap years, ends of years, before Christ, the first and the last day, infinity, NULL; values of all sizes
create function hgj_day(n int) returns date language sql immutable as $$
	select case n % 13 when 0 then null when 1 then date 'infinity' when 2 then date '-infinity' when 3 then date '2000-02-29' when 4 then date '1900-03-01'
		when 5 then date '0044-03-15 BC' when 6 then date '0001-12-31 BC' when 7 then date '0001-01-01' when 8 then date '4713-01-01 BC'
		when 9 then date '5874897-12-31' when 10 then date '2024-12-30' else date '1992-01-01' + n % 2557 end
$$;
create function hgj_moment(n int) returns timestamp language sql immutable as $$
	select case n % 12 when 0 then null when 1 then timestamp 'infinity' when 2 then timestamp '-infinity' when 3 then timestamp '4713-01-01 00:00:00 BC'
		when 4 then timestamp '294276-12-31 23:59:59.999999' when 5 then timestamp '1999-12-31 23:59:59.999999' when 6 then timestamp '0001-01-01 00:00:00 BC'
		when 7 then timestamp '2023-03-12 02:30:00' when 8 then timestamp '2000-01-01'
		else timestamp '1970-01-01' + n * interval '1 day 7:13:29.123457' - (n % 3) * interval '500 years' end
$$;
insert into moments select i, i % 37, hgj_day(i), hgj_moment(i), case when i % 12 not in (3, 4) then hgj_moment(i) at time zone 'UTC' end,
	case i % 7 when 0 then null else i % 100 - 50 end, case i % 11 when 0 then null else hashint4(i) end, case i % 9 when 0 then null else hashint4(i)::int8 * i end,
	case i % 17 when 0 then 'NaN' when 1 then '-0' when 2 then null else hashint4(i) / 7.0 end, case i % 19 when 0 then 'NaN' when 1 then 'infinity' when 2 then null when 3 then '-0' else hashint4(i) / 1e5 end,
	case i % 23 when 0 then null when 1 then 'NaN' else hashint4(i) % 100000 / 100.0 end, (array[1, 1.0, 1.00, -2.5, 'NaN', 1e30, 1e-30, 0.000, null, 'Infinity', 7.10])[1 + i % 11],
	case i % 13 when 0 then null when 1 then '' when 2 then 'special requests' when 3 then 'äöü special ß requests' when 4 then repeat('x', i) || 'special' || repeat('€', i) || 'requests'
		when 5 then 'speciall' when 6 then '100%_\' else chr(97 + i % 26) || 'blue ' || i % 19 end,
	case when i % 5 = 0 then 'x%' else chr(97 + i % 26) || repeat('y', i % 10) end, decode(lpad(to_hex(i), 8, '0'), 'hex')
	from generate_series(1, 2600) i;
-- the ends of days, hours and minutes
insert into moments (id, k, ts, tz) select 10000 + id * 10 + n, k, date_trunc('day', ts) + x, date_trunc('day', tz) + x from moments,
	unnest('{-1 us,0,1 us,59.999999 s,1 min,3599.999999 s,1 h,12 h,86399.999999 s}'::interval[]) with ordinality u(x, n) where id % 7 = 1 and id % 12 > 4 and isfinite(ts);
-- compressed, and stored out of line
update moments set t = repeat('special requests are blue ', 2000) || id where id % 650 = 100;
alter table moments alter t set storage external;
update moments set t = repeat('special ', 900) || id || ' requests' where id % 650 = 200;
create table partners (k int, g int);
insert into partners select i, i % 5 from generate_series(0, 34) i;
analyze moments;
analyze partners;

-- The same answer, or the same error; the forced plan must have a HashGraphAgg.
create function hgj_check_answers(queries text[]) returns text language plpgsql
	set hashgraph_join.enabled = on set hashgraph_join.force = off
as $$
declare
	q text;
	stock text;
	ours text;
	bad text := '';
	errors int := 0;
	planned bool;
begin
	foreach q in array queries loop
		perform set_config('hashgraph_join.enabled', 'off', true), set_config('hashgraph_join.force', 'off', true);
		stock := hgj_answer(q);
		perform set_config('hashgraph_join.enabled', 'on', true), set_config('hashgraph_join.force', 'on', true);
		ours := hgj_answer(q);
		errors := errors + (ours !~ ' rows, ')::int;
		-- planning may raise the error
		planned := hgj_answer(format('select * from (%s) s limit 0', q)) ~ '^0 rows';
		if stock <> ours or planned and hgj_lines(q, 'HashGraphAgg') = 0 then
			bad := bad || format(E'\n%s: %s, %s', q, stock, ours);
		end if;
	end loop;
	return case when bad = '' then format('ok (%s queries, %s errors)', cardinality(queries), errors) else bad end;
end $$;
-- each expression as a group key, which needs no order of rows
create function hgj_check_keys(expressions text[]) returns text language sql as $$
	select hgj_check_answers(array_agg(format('select %s as x, count(*), sum(m.id) from moments m join partners p using (k) group by 1', e) order by n))
		from unnest(expressions) with ordinality u(e, n)
$$;
-- each condition as a qual of the scan, as a FILTER and in CASE; how many quals are looked at by row
create function hgj_check_conditions(conditions text[]) returns table (says text, by_row bigint) language sql
	set hashgraph_join.enabled = on set hashgraph_join.force = on
as $$
	select hgj_check_answers(array_agg(format(q, e) order by n, q)),
		sum(hgj_lines(format('select count(*) from moments m join partners p using (k) where %s', e), 'by Row')) filter (where q like '% where %')
		from unnest(conditions) with ordinality u(e, n), unnest(array['select g, count(*), sum(m.id) from moments m join partners p using (k) where %s group by 1',
			'select g, count(*) filter (where %s) as n, sum(m.id) from moments m join partners p using (k) group by 1',
			'select g, sum(case when %s then m.id else - m.id end) from moments m join partners p using (k) group by 1']) q
$$;

-- fields of dates and times, by EXTRACT and date_part()
select hgj_check_keys(array_agg(format('extract(%s from %s)', field, c) order by field, c))
	from unnest('{century,day,decade,dow,doy,epoch,isodow,isoyear,millennium,month,quarter,week,year}'::text[]) field, unnest('{d,ts,tz}'::text[]) c;
select hgj_check_keys(array_agg(format('extract(%s from %s)', field, c) order by field, c))
	from unnest('{hour,minute,second,milliseconds,microseconds,julian}'::text[]) field, unnest('{ts,tz}'::text[]) c;
-- what no timestamp can be
update moments set d = null where d > '200000-01-01' and d < 'infinity';
select hgj_check_keys(array_agg(format('date_part(%L, %s)', field, c) order by field, c))
	from unnest('{century,day,DOW,doy,epoch,isodow,isoyear,month,quarter,week,year,Year}'::text[]) field, unnest('{d,ts,tz}'::text[]) c;
select hgj_check_keys(string_to_array($$extract(julian from d);
	extract(timezone_hour from tz);
	extract(timezone from tz);
	extract(day from case when isfinite(ts) then ts - timestamp '2000-01-01' end)$$, E';\n\t'));
-- where one value has several display scales
select hgj_check_keys(string_to_array($$round(free, 1);
	trunc(n2, 0);
	free / 3;
	round(n2 * 1.5, i2 % 3);
	ceil(free);
	floor(n2);
	mod(n2, 7);
	- extract(year from d);
	abs(extract(month from d) - 6);
	sign(n2)$$, E';\n\t'));
-- truncation, arithmetic, casts, and text of them
select hgj_check_keys(array_agg(format('date_trunc(%L, %s)', field, c) order by field, c))
	from unnest('{microseconds,second,minute,hour,day,week,month,quarter,year,decade,century,millennium}'::text[]) field, unnest('{d,ts,tz}'::text[]) c where c <> 'd' or field in ('day', 'month', 'week');
select hgj_check_keys(string_to_array($$d::timestamp;
	ts::date;
	tz::date;
	tz::timestamp;
	ts::time;
	date_trunc('month', tz, 'Asia/Tokyo');
	to_char(ts, 'YYYY-MM');
	to_char(tz, 'IYYY-IW HH24');
	to_char(d, 'YYYY"q"Q');
	i4::float8 / 3;
	f8::numeric;
	f4::numeric + 1;
	i8::numeric;
	d + 7;
	d - i2::int;
	d + interval '1 month';
	ts - interval '1 year 3 hours';
	tz + interval '1 day';
	case when isfinite(d) then d - date '2000-01-01' end;
	d - date '2000-01-01'$$, E';\n\t'));
create temp table of_zones as select string_to_array($$date_trunc('day', tz);
	date_trunc('month', d);
	extract(hour from tz);
	extract(timezone from tz);
	tz::date;
	extract(minute from tz);
	extract(dow from tz);
	to_char(tz, 'YYYY-MM-DD HH24');
	tz + interval '1 day'$$, E';\n\t') as keys;
set timezone = 'America/New_York';
select hgj_check_keys(keys) from of_zones;
set timezone = '<+0530>-05:30';
select hgj_check_keys(keys) from of_zones;
set timezone = 'UTC';

-- NULLIF, GREATEST, LEAST, COALESCE, CASE, of every type that vectors know
select hgj_check_keys(array_agg(format(e, a, b) order by e, a, b))
	from unnest(array['nullif(%1$s, %2$s)', 'greatest(%1$s, %2$s)', 'least(%1$s, %2$s)', 'coalesce(%1$s, %2$s)', 'greatest(least(%1$s, %2$s), null, nullif(%2$s, %1$s))']) e,
	unnest('{i2,i4,i8,f8,n2}'::text[]) a, unnest('{i4,f4,n2,free,12}'::text[]) b where a <> b;
select hgj_check_keys(string_to_array($$nullif(d, ts);
	greatest(d, '2000-01-01');
	least(ts, tz);
	greatest(ts, d, '1999-12-31');
	nullif(f4, '-0');
	least(f4, '0');
	greatest(f8, 'NaN');
	nullif(n2, 0);
	n2 / nullif(i2, 0);
	least(n2, free, 5.500);
	greatest(n2, 1, i2, i4);
	nullif(t, '');
	greatest(t, 'm');
	nullif(i2 > 0, i4 > 0);
	case extract(month from d) when 1 then 'a' when 2 then 'b' end;
	case i2 % 3 when 0 then d when 1 then ts::date else date '2000-01-01' end$$, E';\n\t'));

-- LIKE
select said.* from (select array_agg(format('%s %s %L', c, op, pattern) order by c, op, pattern) as conditions
	from unnest('{t,c,t::varchar}'::text[]) c, unnest('{like,not like}'::text[]) op, unnest(array['%special%requests%', 'special%', '%requests', '%', '%%', '', 'special requests', '%ö%', '%€requests',
		'a%e%', '%blue%1', 'special%special', '%\%\_\\', 'x\%%', '%l%l', 'äöü%', '%x%x%x%', 'a%', '%y ']) pattern) q, hgj_check_conditions(conditions) said;
-- parts of strings, where they are vectors and where numbers are none that a part has; char(n) without the blanks at its end
select hgj_check_keys(array_agg(format(e, col, first, length)))
	from unnest('{t,c,t::varchar,c::varchar}'::text[]) col, unnest(array['substring(%s from %s for %s)', 'substr(%s, %s, %s)']) e,
		unnest('{1,2,0,-3,7,1000,-2147483648}'::text[]) first, unnest('{0,1,2,5,16,17,2000}'::text[]) length;
select hgj_check_keys(array_agg(format('left(%s, %s)', col, length))) from unnest(array['t', 'c', 'coalesce(t, c)', 'nullif(t, ''speciall'')']) col, unnest('{0,1,3,16,60,-1,-7}'::text[]) length;
select * from hgj_check_conditions(array(select format(q, e) from unnest(array['substring(t from 1 for 2)', 'substr(c, 2, 3)', 'left(t, 1)', 'substring(c from 1 for 1)', 'left(t::varchar, 4)']) e,
	unnest(array['%s = ''sp''', '%s <> ''ä''', '%s in (''sp'', ''yyy'', ''a'', ''x'', ''sp'', ''z'', ''ab'', ''q'', ''spec'')', '%s not in (''s'', ''yy'', null)', '%s like ''%%p%%''', '%s is null', '%s < ''f''']) q));
select hgj_check_answers(array['select count(*), min(substring(t, 1, 3)), max(left(c, 2)), sum(length(substr(t, 2, 5))) from moments m join partners p using (k)',
	'select substring(t, 1, -1), count(*) from moments m join partners p using (k) group by 1']);
select * from hgj_check_conditions(string_to_array($$t like '%spec_al%';
	t like '_blue%';
	t ilike '%SPECIAL%';
	t ~ '^.blue';
	b like '%\\001%'::bytea;
	starts_with(t, 'special');
	starts_with(t, '');
	upper(t) like '%BLUE%';
	substring(t from 1 for 2) in ('ab', 'bb', 'äö', '');
	left(t, 3) like '%b%';
	left(t, -3) = 'spec';
	substr(t, i2, 3) = 'spe';
	to_char(ts, 'YYYY-MM-DD') like '1970-0%';
	to_char(ts, 'YYYY') in ('1970', '1971', '1999');
	t like t;
	'special requests' like t$$, E';\n\t'));
-- functions in conditions
select * from hgj_check_conditions(string_to_array($$extract(year from d) = 1995;
	extract(month from d) in (1, 2, 3);
	extract(dow from ts) not in (0, 6);
	date_part('year', ts) between 1970 and 1975;
	extract(epoch from ts) > 0;
	round(n2, 1) = 0.1;
	n2 / 7 > 3;
	date_trunc('year', ts) = '1970-01-01';
	mod(n2, 2) <> 1;
	nullif(i2, 3) is null;
	coalesce(nullif(i2, 3), 0) = 0;
	greatest(i2, i4, 0) > 10;
	length(t) > 10;
	octet_length(t) > 12;
	d + interval '1 month' > ts;
	extract(year from d) = extract(year from ts);
	extract(year from d) is null;
	abs(n2) > extract(day from d)$$, E';\n\t'));
-- errors: those of the first row that PostgreSQL would meet, and none of rows that nobody asks for
select hgj_check_answers(string_to_array($$select g, sum(extract(fortnight from d)) from moments join partners using (k) group by 1;
	select g, max(date_trunc('fortnight', ts)) from moments join partners using (k) group by 1;
	select g, sum(n2 / i2) from moments join partners using (k) group by 1;
	select g, sum(n2 / i2) from moments join partners using (k) where i2 <> 0 group by 1;
	select g, sum(case when i2 <> 0 then n2 / i2 end) from moments join partners using (k) group by 1;
	select g, sum(n2 / nullif(i2, 0)) from moments join partners using (k) group by 1;
	select g, sum(case when i2 = 0 then date_part('nothing', d) end) from moments join partners using (k) group by 1;
	select g, max(i4::int2) from moments join partners using (k) group by 1;
	select g, count(*) from moments join partners using (k) where t like '%a\\' group by 1;
	select g, count(*) from moments join partners using (k) where id < 0 and t like '%a\\' group by 1;
	select g, max(nullif(1 / i2, 3)) from moments join partners using (k) group by 1;
	select g, max(greatest(i4, 1 / i2)) from moments join partners using (k) where i4 > 0 group by 1;
	select g, max(ts + interval '300000 years') from moments join partners using (k) group by 1;
	select g, max(d + i4) from moments join partners using (k) group by 1$$, E';\n\t'));
-- functions that return a part of their argument
create table spans (k int, r numrange, a numeric[]);
insert into spans select i % 37, numrange(i / 8.0, i), array[i / 8.0] from generate_series(1, 2000) i;
analyze spans;
select hgj_check_answers(string_to_array($$select lower(r), count(*) from spans join partners using (k) group by 1;
	select g, sum(upper(r)), max(lower(r) + 1) from spans join partners using (k) group by 1;
	select g, count(*) from spans join partners using (k) where round(lower(r), 0) = 17 or upper(r) < lower(r) + 3 group by 1$$, E';\n\t'));
drop table spans;
-- not bytes: a nondeterministic collation, which LIKE knows from 18 on
create collation hgj_caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
select regexp_replace(hgj_check_answers(string_to_array($$select g, count(*) from moments join partners using (k) where t collate hgj_caseless like 'SPECIAL%' group by 1;
	select g, count(*) from moments join partners using (k) where nullif(t collate hgj_caseless, 'SPECIAL REQUESTS') is null group by 1;
	select g, count(*) from moments join partners using (k) where greatest(t collate hgj_caseless, 'SPECIAL REQUESTS') = 'special REQUESTS' group by 1$$, E';\n\t')), ', . errors', '') as says;
-- arguments that would be compiled two or three times for every level are not, for ever
select * from hgj_check_conditions(array[
	repeat('nullif(', 30) || 'i4' || (select string_agg(format(', %s)', g), '') from generate_series(1, 30) g) || ' > 0',
	repeat('greatest(', 20) || 'i4' || (select string_agg(format(', i2 + %s, %s)', g, g), '') from generate_series(1, 20) g) || ' > 0']);
-- what a function has returned is not used where its other arguments have changed
create function hgj_parts() returns table (field text, answer text) language sql as $$
	select f, (select string_agg(x || ' ' || n, ',' order by x) from (select extract(year from d) % 7 x, count(*) n from moments join partners using (k) where date_part(f, d) = 3 group by 1) q)
	from unnest('{month,dow,day}'::text[]) f
$$;
set hashgraph_join.force = on;
create temp table ours as select * from hgj_parts();
set hashgraph_join.enabled = off;
select count(*) from (select * from ours except select * from hgj_parts()) s;
reset hashgraph_join.enabled;
reset hashgraph_join.force;
reset timezone;
drop table moments, partners, of_zones;
drop function hgj_day, hgj_moment, hgj_check_keys, hgj_check_conditions, hgj_check_answers, hgj_parts;
drop collation hgj_caseless;
