-- Values of HashGraphAgg: every aggregate and type, every way of grouping, in
-- little memory and in parts, against PostgreSQL's own.

-- Compares in several ways: in one piece, with so little memory that groups spill, as
-- partial aggregation by workers, and, where there are group columns, by workers that
-- divide the groups among themselves, in little memory.
create function hgj_check_aggs(q text, parallel bool default true) returns text language plpgsql
	set hashgraph_join.enabled = on set hashgraph_join.force = off set hashgraph_join.require = off
	set work_mem = '4MB' set max_parallel_workers_per_gather = 0 set parallel_setup_cost = 0 set parallel_tuple_cost = 0
	set hashgraph_join.agg_tuple_cost = 0.0003 set hashgraph_join.parallel_aggregate = partial set min_parallel_table_scan_size = 0 set parallel_leader_participation = on
as $$
declare
	stock text;
	ours text;
	way int;
	bad text := '';
begin
	perform set_config('hashgraph_join.enabled', 'off', true);
	if hgj_lines(q, 'Custom Scan \(HashGraphAgg\)') > 0 then
		return 'HashGraphAgg though it is not enabled: ' || q;
	end if;
	stock := hgj_answer(q);
	perform set_config('hashgraph_join.enabled', 'on', true), set_config('hashgraph_join.force', 'on', true),
		set_config('hashgraph_join.require', 'aggregate', true);
	for way in 1 .. 2 + 2 * parallel::int loop
		perform set_config('work_mem', case when way in (2, 4) then '64kB' else '4MB' end, true),
			set_config('max_parallel_workers_per_gather', case when way >= 3 then '1' else '0' end, true),
			set_config('hashgraph_join.parallel_aggregate', case way when 4 then 'exchange' else 'partial' end, true),
			set_config('hashgraph_join.agg_tuple_cost', case when way >= 3 then '1' else '0.0003' end, true);
		if hgj_lines(q, 'Custom Scan \(HashGraphAgg\)') = 0 or (hgj_lines(q, 'Parallel Custom Scan \(HashGraphAgg\)') > 0) <> (way >= 3) or
			(way = 4 and q ~ 'group by' and hgj_lines(q, 'Exchange: groups, by hash') = 0) then
			bad := bad || format(E'\nway %s: wrong plan: %s', way, q);
		end if;
		ours := hgj_answer(q);
		if ours is distinct from stock then
			bad := bad || format(E'\nway %s: DIFFERENT, %s stock and %s ours: %s', way, stock, ours, q);
		end if;
	end loop;
	return case when bad <> '' then bad when stock ~ '^\d+ rows' then 'ok' else 'ok: ' || stock end;
end $$;

create type mood as enum ('sad', 'so so', 'happy');
create collation loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
create domain small as int check (value < 1000000);
create table f (id int, k int, g int, h int8, s int2, i int, b int8, r float4, x float8, n numeric, m numeric(12,2), t text, v varchar(20), c char(8),
	o bool, d date, tm time, tz timetz, ts timestamp, tsz timestamptz, iv interval, oi oid, mo money, e mood, a int[], ip inet, u uuid, nm name, by bytea,
	lt text collate loose, sm small, cc "char", mc macaddr, l pg_lsn, x8 xid8);
insert into f
select p, p % 700, p % 13, (p % 1000) * 4000000000, p % 300 - 150, p * 7919 % 100003 - 50000, (p - 2500) * 3000000000000000,
	(p % 64) / 4.0, (p % 512) / 8.0 - 20, (p * 7919 % 100003)::numeric / 1000, (p % 9999) / 100.0, 'text ' || p % 211, 'v' || p % 37, 'c' || p % 29,
	p % 3 > 0, date '2020-01-01' + p % 400, time '00:00' + p * interval '1 second', (time '00:00' + p % 97 * interval '1 minute')::timetz,
	timestamp '2000-01-01' + p * interval '1 hour', timestamptz '2000-01-01 UTC' + p % 777 * interval '1 minute', p % 50 * interval '11 hours',
	(p::int8 * 900001 % 4294967296)::oid, (p % 1000)::numeric::money, (enum_range(null::mood))[1 + p % 3], array[p % 5, p % 3], ('10.0.' || p % 7 || '.' || p % 250)::inet,
	md5((p % 101)::text)::uuid, 'name' || p % 19, decode(md5((p % 23)::text), 'hex'), (array['a', 'A', 'b', 'B'])[1 + p % 4], p % 17,
	chr(97 + p % 20)::"char", ('08:00:2b:01:02:0' || p % 9)::macaddr, ('0/' || p % 31)::pg_lsn, (p % 41)::text::xid8
from generate_series(1, 5000) p;
-- a NULL in every column, at different rows, and a group of nothing else
do $$
declare
	col name;
	i int := 0;
begin
	for col in select attname from pg_attribute where attrelid = 'f'::regclass and attnum > 2 loop
		i := i + 1;
		execute format('update f set %I = null where id %% 43 = %s or g = 11', col, i);
	end loop;
end $$;
update f set k = id % 700;
create table d (k int, w int, t text, n numeric, c char(12), q float8);
insert into d select p % 650, p % 11, 'dim ' || p % 90, p % 30, 'c' || p % 31, nullif(p % 6, 0) from generate_series(1, 900) p;
update d set w = null, t = null where k % 50 = 3;
analyze f, d;

-- every aggregate of every type, ungrouped, by a small key, by one with NULLs: by workers some
-- of them, as starting these takes longer than all other ways do, and then all at once
create table aggs (agg text, col text, n serial);
insert into aggs select a, c from unnest('{count,sum,avg,min,max}'::text[]) a, unnest('{s,i,b,r,x,n,m}'::text[]) c;
insert into aggs select a, c from unnest('{count,min,max}'::text[]) a, unnest('{t,v,c,d,tm,tz,ts,tsz,iv,oi,mo,e,a,ip,lt,sm,l,x8}'::text[]) c;
insert into aggs values ('sum', 'mo'), ('sum', 'iv'), ('bool_and', 'o'), ('bool_or', 'o'), ('every', 'o'), ('count', 'o');
delete from aggs where col in ('lt') and agg in ('min', 'max');
select agg, col, hgj_check_aggs(format('select %s(f.%s) as a from f join d using (k)', agg, col), n % 6 = 0) as alone,
	hgj_check_aggs(format('select f.g, %s(f.%s) as a from f join d using (k) group by 1', agg, col), false) as by_outer,
	hgj_check_aggs(format('select d.w, %s(f.%s) as a, count(*) from f join d using (k) group by 1', agg, col), n % 6 = 3) as by_inner
from aggs order by 1, 2;
-- all of them at once
select hgj_check_aggs('select f.g, d.w, count(*), ' || string_agg(format('%s(f.%s) as a%s', agg, col, n), ', ' order by n) || ' from f join d using (k) group by 1, 2') as says
from aggs;
-- with filters, shared and not
select hgj_check_aggs('select f.h, count(*) filter (where f.i > 0), sum(f.i) filter (where f.i > 0), avg(f.i) filter (where f.t < ''text 2''), sum(d.w) filter (where f.i > 0),
	min(f.n) filter (where f.o), count(f.n) filter (where f.o or d.w > 3), max(f.t) filter (where false), sum(f.b) filter (where null::bool), count(1) filter (where d.q > 2), count(1), count(null)
	from f join d using (k) group by 1') as says;
select hgj_check_aggs('select count(*) filter (where f.i > 0), sum(f.i) filter (where f.o), sum(f.n) filter (where f.id < 0), bool_and(f.o) filter (where f.x > 3) from f join d using (k)') as says;
-- expressions, those that programs know and others
select hgj_check_aggs('select f.g, sum(f.i + 1), sum(f.i * 2 - f.s), avg(f.i::int8 * f.s), sum(f.n * d.w), sum(f.m * (1 - f.n / 7)), max(f.t || d.t), count(nullif(f.v, ''v3'')), sum(length(f.t)),
	min(case when f.o then f.i else d.w end), sum(coalesce(f.i, 0)), avg(f.x * 2), sum(case f.g when 3 then f.i end), max(upper(f.t)), bool_or(f.i > d.w), bool_and(f.t ~ ''text'')
	from f join d using (k) group by 1') as says;
select hgj_check_aggs('select f.i % 7 as p, f.t || ''!'' as q, count(*), sum(f.i % 7) from f join d using (k) group by 1, 2') as says;
select hgj_check_aggs('select d.w, sum(f.i * (select max(x.w) from d x where x.k = f.k)) filter (where f.k < 20 and f.i in (select y.i from f y where y.k < 30)) from f join d using (k) group by 1', false) as says;

-- group columns of every type, alone and in company, of the outer, of the inner and of both sides
select c, hgj_check_aggs(format('select f.%s, count(*), sum(f.i), min(d.w) from f join d using (k) group by 1', c), i % 4 = 0) as outer_side,
	hgj_check_aggs(format('select f.%s, d.k, count(*), sum(f.i), min(d.w) from f join d using (k) group by 1, 2', c), false) as both,
	hgj_check_aggs(format('select x.%s, count(*), sum(d.w) from d join f x using (k) group by 1', c), false) as swapped
from unnest('{id,g,h,s,i,b,r,x,n,m,t,v,c,o,d,tm,tz,ts,tsz,iv,oi,e,a,ip,u,nm,by,sm,cc,mc,l,x8}'::text[]) with ordinality x(c, i);
select hgj_check_aggs('select lower(min(f.lt collate "C")), count(*) from f join d using (k) group by f.lt') as loose,
	hgj_check_aggs('select f.g, f.s, f.t, f.u, f.n, count(*) from f join d using (k) group by 1, 2, 3, 4, 5') as five,
	hgj_check_aggs('select f.g, f.o, f.e, d.w, f.t, f.d, f.n, f.r, f.x, f.iv, d.t, f.k, count(*), sum(f.s) from f join d using (k) group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12') as twelve,
	hgj_check_aggs('select d.t, d.c, d.n, d.q from f join d using (k) group by 1, 2, 3, 4') as no_aggregate,
	hgj_check_aggs('select count(*) from f join d using (k) group by d.t') as not_returned;
-- values that are equal and look different: one group
create table twins (k int, x float8, r float4, n numeric, c text collate loose, p char(5), iv interval);
insert into twins values (1, 0, 0, 1.0, 'a', 'x', '1 day'), (1, '-0', '-0', 1.00, 'A', 'x ', '24 hours'), (1, 'nan', 'nan', 'nan', 'b', '', '0'),
	(2, 'nan', 'nan', 'nan', 'B', ' ', '-0'), (2, 'inf', '-inf', '-inf', null, null, null), (2, null, null, null, null, null, null), (2, 5, 5, 0.000, 'c', 'c', '1 mon'), (1, 5, 5, 0, 'C', 'c', '30 days');
analyze twins;
select c, hgj_check_aggs(format('select count(*), sum(t.k), min(t.p) from twins t join d using (k) group by t.%s', c)) as outer_side,
	hgj_check_aggs(format('select count(*), sum(t.k), min(t.p) from d join twins t using (k) group by t.%s, d.q', c)) as inner_side
from unnest('{x,r,n,c,p,iv}'::text[]) c;
-- what is returned is what some row of the join has, and not one of the build side's others
create table looks (k int, n numeric, s numeric(8,2), c text collate loose, p bpchar, p5 char(5), iv interval, j jsonb, a numeric[], ci inet);
insert into looks values (1, 1.0, 1.0, 'a', 'x', 'x', '1 day', '1.0', '{1.0}', '10.0.0.1'), (2, 1.00, 1.00, 'A', 'x ', 'x ', '24 hours', '1.00', '{1.00}', '10.0.0.1/32');
analyze looks;
select c, hgj_check_aggs(format('select t.%1$s::text || ''.'', count(*) from f join looks t on t.k = f.g %% 3 + 2 group by t.%1$s', c)) as second,
	hgj_check_aggs(format('select t.%1$s::text || ''.'', count(*) from f join looks t on t.k = f.g %% 3 + 1 and t.k < 2 group by t.%1$s', c)) as first
from unnest('{n,s,c,p,p5,iv,j,a,ci}'::text[]) c;

-- both sides of every join type
select j, hgj_check_aggs(format('select d.w, f.g, count(*), count(f.i), sum(f.i), sum(d.w), min(d.t), max(f.n), sum(f.m) from f %s join d on f.k = d.k and f.i > d.w group by 1, 2', j), j in ('inner', 'left')) as groups,
	hgj_check_aggs(format('select count(*), count(f.i), sum(f.i), sum(d.w), min(d.t), max(f.n), sum(f.m) from f %s join d on f.k = d.k and f.i > d.w', j), j in ('inner', 'left')) as alone,
	hgj_check_aggs(format('select d.t, count(f.i), sum(f.b) from f %s join d using (k) group by 1', j), j in ('inner', 'left')) as text
from unnest('{inner,left,right,full}'::text[]) j;
select hgj_check_aggs('select f.g, count(*), sum(f.i) from f where exists (select from d where d.k = f.k and d.w > 3) group by 1') as semi,
	hgj_check_aggs('select f.g, count(*), sum(f.i) from f where not exists (select from d where d.k = f.k and d.w > 3) group by 1') as anti,
	hgj_check_aggs('select f.g, d.t, e.w, count(*), sum(f.i), avg(e.q) from f join d using (k) join d e on e.k = f.s group by 1, 2, 3') as star,
	hgj_check_aggs('select e.t, count(*), sum(e.w) from f left join d using (k) left join d e on e.k = d.w group by 1') as snowflake;

-- HAVING
select hgj_check_aggs('select f.g, sum(f.i) from f join d using (k) group by 1 having count(*) > 500 and min(f.i) < f.g') as some,
	hgj_check_aggs('select f.g from f join d using (k) group by 1 having sum(f.n) filter (where f.o) > 1000') as only_there,
	hgj_check_aggs('select sum(f.i) from f join d using (k) having count(*) < 5') as alone,
	hgj_check_aggs('select sum(f.i) from f join d using (k) having max(d.w) > (select min(k) from d)', false) as subquery;

-- no rows
select hgj_check_aggs('select ' || string_agg(format('%s(f.%s) as a%s', agg, col, n), ', ' order by n) || ', count(*) from f join d on f.k = d.k + 100000') as alone,
	hgj_check_aggs('select f.g, ' || string_agg(format('%s(f.%s) as a%s', agg, col, n), ', ' order by n) || ' from f join d on f.k = d.k + 100000 group by 1') as groups
from aggs;
create table empty (k int, n numeric);
select hgj_check_aggs('select count(*), sum(e.n), avg(f.i), max(f.t) from f join empty e using (k)') as no_inner,
	hgj_check_aggs('select count(*), sum(f.i) from f join empty e using (k) group by f.g') as no_inner_groups,
	hgj_check_aggs('select count(*), count(e.n), sum(e.n), avg(f.i), max(f.t) from f left join empty e using (k)') as no_matches;

-- sums beyond their argument's type, overflows, the ends of numeric
create table ends (id int, k int, i int, b int8, r float4, x float8, n numeric, m numeric);
insert into ends select p, p % 10, 2147483647, 9223372036854775807 - p % 3, 3e38, 1.5e308,
	(repeat('9', 120 + p % 50) || '.' || repeat('7', p % 60))::numeric * (case p % 4 when 0 then -1 else 1 end),
	case p % 20 when 7 then 'nan' when 8 then 'inf' when 9 then '-inf' else 10 ^ (p % 40 - 20)::numeric * (p % 3 - 1) end from generate_series(1, 1000) p;
insert into ends values (1001, 11, -2147483648, -9223372036854775808, '-inf', '-inf', 'nan', 1e-16383), (1002, 11, 0, -9223372036854775808, 1, 1, 1, (repeat('9', 131072))::numeric),
	(1003, 12, 0, -9223372036854775808, 0, 1e200, (repeat('9', 131072))::numeric, 0.00), (1004, 12, 0, 0, '-0', -1e200, (repeat('9', 131072))::numeric, 0.000);
create table ten as select p as k, p % 4 as g from generate_series(0, 20) p;
analyze ends, ten;
select e, hgj_check_aggs(format('select %s as a from ends e join ten t using (k)', e), i % 4 = 0) as alone, hgj_check_aggs(format('select t.g, %s as a from ends e join ten t using (k) where e.k <> 12 group by 1', e)) as groups
from unnest('{sum(e.i),sum(e.b),avg(e.b),sum(e.r),sum(e.x),avg(e.r),avg(e.x),sum(e.n),avg(e.n),sum(e.m),avg(e.m),min(e.m),max(e.m),min(e.x),max(e.x),min(e.r),max(e.r),sum(e.i+e.i),sum(e.b*2),avg(1/(e.id-500))}'::text[]) with ordinality x(e, i);
select k, hgj_check_aggs(format('select sum(e.n), avg(e.m), sum(e.m), count(*) from ends e join ten t using (k) where e.k + 0 = %s group by e.k', k), k > 8) as says from generate_series(0, 12) k;
select hgj_check_aggs('select avg(e.x) from ends e join ten t using (k) where e.k + 0 = 12', false) as squares_overflow,
	hgj_check_aggs('select sum(e.r), min(e.r), max(e.r), sum(e.x) from ends e join ten t using (k) where e.id = 1004', false) as minus_zero,
	hgj_check_aggs('select sum(e.m), avg(e.m) from ends e join ten t using (k) where e.id = 1004', false) as zeros,
	hgj_check_aggs('select sum(e.n * (case e.id % 2 when 0 then 1 else -1 end)) from ends e join ten t using (k) where e.k + 0 = 12', false) as there_and_back;
-- values that are stored out of line
create table elsewhere (k int, n numeric);
alter table elsewhere alter n set storage external;
insert into elsewhere select i, (select string_agg((hashint4(i * j) + 3e9)::text, '')::numeric from generate_series(1, case when i % 2 = 0 then 2500 else 1 end) j)
	from generate_series(1, 20) i;
analyze elsewhere;
select count(*) from elsewhere where pg_column_size(n) > 2100;
select hgj_check_aggs('select t.g, sum(e.n), avg(e.n), max(e.n) from elsewhere e join ten t using (k) group by 1');
drop table elsewhere;
-- units of 10^-12 that pass 128 bits
create table big as select p as id, p % 3 as k, (99999999999999999999::numeric - p) * (case when p % 5 = 0 then -1 else 1 end) as n, 99999999999999999999.123456789012 as m from generate_series(1, 20000) p;
analyze big;
select hgj_check_aggs('select sum(b.n), avg(b.n), sum(b.m), sum(-b.m) from (select * from big, generate_series(1, 1) offset 0) b join ten t using (k)', false) as alone,
	hgj_check_aggs('select t.g, sum(b.n), sum(b.m), sum(-b.m) from big b join ten t using (k) group by 1') as groups;

-- ranges that grow up and down, NULLs first, ends of int8, keys that leave the map late
create table edge as select p as id, p % 50 as k,
  case when p < 300 then null when p < 5000 then p % 7 when p < 9000 then -(p % 400) when p < 14000 then p % 30000 else (p::int8 * 2654435761 % 4294967296 - 2147483648)::int end as grow,
  case when p % 3 = 0 then 9223372036854775807 - p % 5 when p % 3 = 1 then 9223372036854775807 - p % 9 end as high,
  case when p % 3 = 0 then -9223372036854775808 + p % 5 end as low,
  case when p % 2 = 0 then 9223372036854775807 else -9223372036854775808 end as both,
  null::int as never, (p % 2 = 0) as b, (p % 40)::int2 as s
from generate_series(1, 20000) p;
create table fifty as select p as k, p % 3 as g, case when p % 4 > 0 then repeat('y', p % 20) end as t from generate_series(0, 49) p;
analyze edge, fifty;
select c, hgj_check_aggs(format('select %s, count(*), sum(e.id) from edge e join fifty t using (k) group by %1$s', c)) as says
from unnest(array['e.grow', 'e.high', 'e.low', 'e.both', 'e.never', 'e.b, e.s', 'e.s, t.t, t.g', 'e.grow, e.s', 'e.never, e.b, e.low', 'e.high, e.b', 't.t', 't.t, e.never']) c;
-- strings of every length around a word, that differ at one end only
create table strings as select p as id, p % 50 as k, case p % 3 when 0 then repeat('a', p % 40) || p % 4 when 1 then p % 4 || repeat('a', p % 40) else repeat(chr(0 + 97 + p % 2), p % 40) end as t,
	decode(repeat('00', p % 20) || case p % 3 when 0 then '01' else '' end, 'hex') as by, repeat(md5((p % 5)::text), 400) as long from generate_series(1, 6000) p;
analyze strings;
select c, hgj_check_aggs(format('select e.%s, count(*), sum(e.id) from strings e join fifty t using (k) group by 1', c)) as says from unnest('{t,by,long}'::text[]) c;

-- many groups, of one key and of several, in a range and over all of it
create table many as select p as id, p % 300 as k, (p::int8 * 2654435761 % 4294967296) as h, 'key ' || p % 9000 as t, p % 9000 * 1.5 as n from generate_series(1, 15000) p;
create table side as select p as k, p % 7 as g, repeat('long', p % 50) || p as t from generate_series(0, 299) p;
analyze many, side;
select c, hgj_check_aggs(format('select m.%s, count(*), sum(s.g), avg(m.id), max(s.t), sum(m.n) from many m join side s using (k) group by 1', c)) as says from unnest('{id,k,h,t,n}'::text[]) c;
select hgj_check_aggs('select s.t, count(*), sum(m.n) from many m join side s using (k) group by 1') as inner_text,
	hgj_check_aggs('select s.t, m.t, m.h, count(*), min(s.t) from many m join side s using (k) group by 1, 2, 3') as three,
	hgj_check_aggs('select m.id, count(*) from many m join side s using (k) group by 1 having count(*) > 1') as no_group_left;
-- what did not fit was put aside; memory stayed within its bounds
create function hgj_agg_run(q text) returns table (groups bigint, spilled bool, kilobytes_ok bool) language plpgsql as $$
declare
	plan json;
	node json;
begin
	execute 'explain (analyze, buffers off, format json) ' || q into plan;
	node := plan -> 0 -> 'Plan';
	return query select (node ->> 'Groups')::bigint, (node ->> 'Spilled Rows')::bigint > 0 and (node ->> 'Disk Usage')::bigint > 0, (node ->> 'Memory Usage')::bigint <= 140;
end $$;
set hashgraph_join.force = on;
select * from hgj_agg_run('select m.h, count(*), sum(s.g) from many m join side s using (k) group by 1');
set work_mem = '64kB';
select * from hgj_agg_run('select m.h, count(*), sum(s.g) from many m join side s using (k) group by 1');
select * from hgj_agg_run('select m.t, count(*), sum(s.g) from many m join side s using (k) group by 1');
select * from hgj_agg_run('select s.g, count(*), sum(m.n) from many m join side s using (k) group by 1');
-- temp_file_limit holds, and LIMIT may leave files behind
set temp_file_limit = '100kB';
do $$ begin
	perform count(*) from (select m.h, count(*) from many m join side s using (k) group by 1) x;
exception when configuration_limit_exceeded then
	raise notice 'it does';
end $$;
reset temp_file_limit;
select count(*) from (select m.h, count(*) from many m join side s using (k) group by 1 limit 3) x;
reset work_mem;
reset hashgraph_join.force;

-- rescans: with a parameter that changes what is aggregated, with one that does not, spilled and not
select hgj_check_aggs('select t.k, x.* from ten t, lateral (select f.g, count(*), sum(f.i + t.k) from f join d using (k) where f.s > t.k group by 1) x', false) as changes,
	hgj_check_aggs('select t.k, x.* from ten t, lateral (select count(*), sum(f.i) filter (where f.s > t.k) from f join d using (k)) x', false) as in_filter,
	hgj_check_aggs('select t.k, x.* from ten t, lateral (select f.g, sum(f.n) from f join d using (k) group by 1 having count(*) > t.k * 30) x', false) as in_having,
	hgj_check_aggs('select t.k, x.* from ten t left join (select f.g, count(*) from f join d using (k) group by 1) x on t.k + x.g > 5 and t.k < 3', false) as same,
	hgj_check_aggs('select t.k, x.* from (select * from ten limit 3) t, lateral (select m.t, count(*) + t.k from many m join side s using (k) where m.id % 7 = t.k group by 1) x', false) as spilled,
	hgj_check_aggs('select t.k, (select sum(f.i * t.k) from f join d using (k) where d.w = t.k) from ten t', false) as sublink;
-- prepared statements, generic and not, with parameters in arguments and filters
set hashgraph_join.force = on;
set hashgraph_join.require = aggregate;
prepare p (int, numeric) as select d.w, sum(f.i + $1), sum(f.n * $2), count(*) filter (where f.s > $1) from f join d using (k) where f.g < 3 group by 1 having count(*) > $1 order by 1 limit 2;
set plan_cache_mode = force_generic_plan;
execute p (1, 2.5);
execute p (-7, 0);
set plan_cache_mode = force_custom_plan;
execute p (-7, 0);
execute p (null, null);
deallocate p;
-- scrolling back and forth over it
begin;
declare c scroll cursor for select f.g, count(*), sum(f.i) from f join d using (k) group by 1 order by 1;
fetch 3 from c;
fetch backward 2 from c;
fetch absolute 5 from c;
rollback;
-- what EXPLAIN says
explain (costs off) select d.w, f.i % 7, count(*) filter (where f.o), sum(f.n) from f join d using (k) group by 1, 2 having max(f.i) > d.w and count(*) > 3;
explain (costs off, verbose) select d.w, count(*) filter (where f.o), sum(f.n) + 1 from f join d using (k) group by 1 having max(f.i) > d.w;
create function hgj_agg_explain(q text) returns setof text language plpgsql as $$
declare
	line text;
begin
	for line in execute 'explain (analyze, buffers off, costs off, timing off, summary off) ' || q loop
		exit when line ~ '->';
		return next regexp_replace(hgj_plain(line), '(Usage|Rows|Partitions): \d+', '\1: N', 'g');
	end loop;
end $$;
select hgj_agg_explain('select f.g, count(*) from f join d using (k) where f.id < 100 group by 1 having count(*) > 15');
set work_mem = '64kB';
select hgj_agg_explain('select m.h, count(*), sum(s.g) from many m join side s using (k) group by 1');
reset work_mem;
set max_parallel_workers_per_gather = 2;
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set hashgraph_join.parallel_aggregate = partial;
set min_parallel_table_scan_size = 0;
explain (costs off, verbose) select d.w, avg(f.n) from f join d using (k) group by 1;
reset max_parallel_workers_per_gather;
reset parallel_setup_cost;
reset parallel_tuple_cost;
reset hashgraph_join.parallel_aggregate;
reset min_parallel_table_scan_size;
-- a function that the user may not call
create role hgj_agg_nobody;
grant select on f, d to hgj_agg_nobody;
begin;
revoke execute on function sum(int) from public;
set local role hgj_agg_nobody;
select sum(f.i) from f join d using (k);
rollback;
begin;
revoke execute on function texteq(text, text) from public;
set local role hgj_agg_nobody;
select f.t, sum(f.i) from f join d using (k) group by f.t;
rollback;
reset all;
load 'hashgraph_join';
drop owned by hgj_agg_nobody;
drop role hgj_agg_nobody;
drop table looks, f, d, twins, ends, ten, big, many, side, empty, aggs, edge, fifty, strings;
drop function hgj_check_aggs, hgj_agg_run, hgj_agg_explain;
drop domain small;
drop type mood;
drop collation loose;
