-- HashGraphAgg over a sequential scan: every aggregate and type, what is grouped by,
-- quals, rescans and errors, in little memory, by slots and by workers, against
-- PostgreSQL's own answer.
create schema agg_scans;
set search_path = agg_scans, public;

-- Compares in four ways: by pages, with so little memory that groups spill, by slots,
-- and as partial aggregation by workers.  Each plan must have as many nodes over scans,
-- and must read as it is told.
create function check_scan(q text, parallel bool default true, nodes int default 1) returns text language plpgsql
	set hashgraph_join.enabled = on set hashgraph_join.force = off set hashgraph_join.require = off set hashgraph_join.source = auto
	set work_mem = '4MB' set max_parallel_workers_per_gather = 0 set parallel_setup_cost = 0 set parallel_tuple_cost = 0
	set hashgraph_join.agg_tuple_cost = 0.0003 set min_parallel_table_scan_size = 0 set hashgraph_join.rewrite = off
as $$
declare
	stock text;
	ours text;
	way text;
	bad text := '';
begin
	perform set_config('hashgraph_join.enabled', 'off', true);
	stock := hgj_answer(q);
	perform set_config('hashgraph_join.enabled', 'on', true), set_config('hashgraph_join.force', 'on', true),
		set_config('hashgraph_join.require', 'aggregate', true);
	foreach way in array '{pages,spill,tuples}'::text[] || case when parallel then array['workers'] end loop
		perform set_config('work_mem', case way when 'spill' then '64kB' else '4MB' end, true),
			set_config('hashgraph_join.source', case way when 'tuples' then 'tuples' else 'auto' end, true),
			set_config('max_parallel_workers_per_gather', case way when 'workers' then '1' else '0' end, true),
			set_config('hashgraph_join.agg_tuple_cost', case way when 'workers' then '1' else '0.0003' end, true);
		if hgj_lines(q, case way when 'tuples' then '^ *(Source: tuples \(hashgraph_join.source is tuples\)|Inputs by Tuples: \d+)' else '^ *(Source: pages|Inputs by Batches: [1-9])' end) < nodes then
			bad := bad || format(E'\n%s: no HashGraphAgg that reads so: %s', way, q);
		end if;
		if (hgj_lines(q, 'Parallel Custom Scan \(HashGraphAgg\)') > 0) <> (way = 'workers') then
			bad := bad || format(E'\n%s: wrong about workers: %s', way, q);
		end if;
		ours := hgj_answer(q);
		if ours is distinct from stock then
			bad := bad || format(E'\n%s: DIFFERENT, %s stock and %s ours: %s', way, stock, ours, q);
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
create table few as select g as k, g % 3 as w, 'few ' || g as t from generate_series(1, 12) g;
create table empty (k int, t text, n numeric);
analyze f, few, empty;

-- every aggregate of every type, ungrouped and by a key with NULLs: by workers some of them, as
-- starting these takes longer than all other ways do, and then all at once
create table aggs (agg text, col text, n serial);
insert into aggs select a, c from unnest('{count,sum,avg,min,max}'::text[]) a, unnest('{s,i,b,r,x,n,m}'::text[]) c;
insert into aggs select a, c from unnest('{count,min,max}'::text[]) a, unnest('{t,v,c,d,tm,tz,ts,tsz,iv,oi,mo,e,a,ip,sm,l,x8}'::text[]) c;
insert into aggs select a, c from unnest('{bit_and,bit_or,bit_xor}'::text[]) a, unnest('{s,i,b,"i::bit(32)"}'::text[]) c;
insert into aggs values ('sum', 'mo'), ('sum', 'iv'), ('bool_and', 'o'), ('bool_or', 'o'), ('every', 'o'), ('count', 'o'), ('count', 'lt');
select agg, col, check_scan(format('select %s(%s) as a from f', agg, col), n % 6 = 0) as alone,
	check_scan(format('select g, %s(%s) as a, count(*) from f group by 1', agg, col), n % 6 = 3) as by_key
from aggs order by 1, 2;
select check_scan('select g, o, count(*), ' || string_agg(format('%s(%s) as a%s', agg, col, n), ', ' order by n) || ' from f group by 1, 2') as together,
	check_scan('select count(*), ' || string_agg(format('%s(%s) as a%s', agg, col, n), ', ' order by n) || ' from f where id < 0') as no_rows,
	check_scan('select g, ' || string_agg(format('%s(%s) as a%s', agg, col, n), ', ' order by n) || ' from f where id < 0 group by 1') as no_groups
from aggs;
select check_scan('select count(*), sum(k), min(t), avg(n) from empty', false) as empty, check_scan('select k, count(*), sum(n) from empty group by 1', false) as empty_groups;

-- group columns of every type, alone and in company; expressions, over vectors and row by row
select c, check_scan(format('select %s as v, count(*), sum(i), min(t) from f group by 1', c), n % 4 = 0) as alone,
	check_scan(format('select %s as v, s, count(*), sum(i) from f group by 1, 2', c), n % 4 = 2) as in_company
from unnest('{id,g,h,s,i,b,r,x,n,m,t,v,c,o,d,tm,tz,ts,tsz,iv,oi,e,a,ip,u,nm,by,sm,cc,mc,l,x8}'::text[]) with ordinality x(c, n);
select check_scan('select lower(min(lt collate "C")), count(*) from f group by lt') as loose,
	check_scan('select count(*) from f group by t') as not_returned,
	check_scan('select t, g from f group by 1, 2') as no_aggregate;
select e, check_scan(format('select %s as v, count(*), sum(i), max(t) from f group by 1', e)) as says
from unnest(array['i % 7', 'i % 7 + s', 't || v', 'length(t)', 'upper(t)', 'date_trunc(''month'', ts)', 'extract(year from d)', 'n * 2', 'm::int', 'case when o then g else s end', 'coalesce(t, v)',
	'a[1]', 'array[g, s]', 'e::text', 'o and i > 0', 'tableoid', 'md5(by)', 'x > 0', 'lt is null']) e;
select check_scan('select i % 5 as p, t || ''!'' as q, sum(i % 5), min(t || ''!'') from f group by 1, 2 having min(t || ''!'') > ''text 2''') as used_again,
	check_scan('select i % 5 + 1, count(*) from f group by i % 5', false) as part,
	check_scan('select sum(x.c) from (select i % 5 as p, count(*) as c from f group by 1) x') as below,
	check_scan('select repeat(t, g), count(*) from f group by 1') as wide;
-- what is read of a row by other means
set hashgraph_join.force = on;
select hgj_lines(q, 'Custom Scan \(HashGraphAgg\)') as nodes, q from unnest(array['select xmin is null, count(*) from f group by 1', 'select count(f.*) from f', 'select (select max(w) from few where few.k = f.g), count(*) from f group by 1',
	'select ctid is null, count(*) from f group by 1']) q;
reset hashgraph_join.force;
select check_scan('select count(ctid), min(ctid), max(ctid) from f') as ctid, check_scan('select ctid, count(*) from f group by 1') as by_ctid;

-- arguments and FILTERs, shared and not
select check_scan('select h, count(*) filter (where i > 0), sum(i) filter (where i > 0), avg(i) filter (where t < ''text 2''), sum(s) filter (where i > 0), min(n) filter (where o), count(n) filter (where o or s > 3),
	max(t) filter (where false), sum(b) filter (where null::bool), count(1) filter (where x > 2), count(1), count(null) from f group by 1') as filters,
	check_scan('select count(*) filter (where i > 0), sum(i) filter (where o), sum(n) filter (where id < 0), bool_and(o) filter (where x > 3) from f') as alone;
select check_scan('select g, sum(i + 1), sum(i * 2 - s), avg(i::int8 * s), sum(n * s), sum(m * (1 - n / 7)), max(t || v), count(nullif(v, ''v3'')), sum(length(t)), min(case when o then i else s end),
	sum(coalesce(i, 0)), avg(x * 2), max(upper(t)), bool_or(i > s), bool_and(t ~ ''text'') from f group by 1') as says;
select check_scan('select g, sum(i * (select max(w) from few where k = g)) filter (where i in (select k from few)) from f where id < 200 group by 1', false) as subplans;

-- quals: over vectors, by row, by a subplan, of nothing and everything
select w, check_scan('select g, count(*), sum(n), max(t) from f where ' || w || ' group by 1', w !~ 'id <|4711') as groups,
	check_scan('select count(*), count(v), sum(m) from f where ' || w, w !~ 'id <|4711') as alone
from unnest(array['i > 0', 'i > 0 and s < 5', 't like ''%1%''', 't = ''text 7'' or g is null', 'i % 3 = 1 and n > 20', 'id < 0', 'id > 0', 'x is not null and not o', 'd between ''2020-02-01'' and ''2020-05-01''', 'i in (3, 17, -50000, 4711)',
	'c = ''c3''', 'upper(v) = ''V3''', 'a[2] = 1', 'sm > 4', 'iv > ''1 day''']) w;
select check_scan('select g, count(*) from f where k in (select few.k from few where w > 0) or k is null group by 1', false) as hashed,
	check_scan('select g, count(*) from f where i < (select max(k) * 100 from few) group by 1', false) as initplan;

-- HAVING, ORDER BY, LIMIT, DISTINCT and window functions above
select check_scan('select g, sum(i) from f group by 1 having count(*) > 300 and min(i) < g') as some, check_scan('select g from f group by 1 having sum(n) filter (where o) > 1000') as only_there,
	check_scan('select sum(i) from f having count(*) < 5') as alone, check_scan('select sum(i) from f having max(s) > (select min(k) from few)', false) as subquery,
	check_scan('select g, sum(i), rank() over (order by sum(i)) from f group by 1') as window, check_scan('select distinct count(*) from f group by g') as distinct,
	check_scan('select g, count(*) from f group by 1 order by 1 desc limit 4') as ordered;

-- many groups
create table many as select p as id, p % 300 as k, (p::int8 * 2654435761 % 4294967296) as h, 'key ' || p % 9000 as t, p % 9000 * 1.5 as n from generate_series(1, 15000) p;
analyze many;
select c, check_scan(format('select %s as v, count(*), avg(id), max(t), sum(n) from many group by 1', c)) as says from unnest('{id,k,h,t,n,"h % 5000","t || k"}'::text[]) c;
select check_scan('select t, h, id, count(*), min(t) from many group by 1, 2, 3') as three, check_scan('select id, count(*) from many group by 1 having count(*) > 1') as no_group_left;
create function node_of(q text) returns table (groups bigint, spilled bool, emptied bool, kilobytes_ok bool) language plpgsql as $$
declare
	plan json;
	node json;
begin
	execute 'explain (analyze, buffers off, format json) ' || q into plan;
	node := plan -> 0 -> 'Plan';
	return query select (node ->> 'Groups')::bigint, (node ->> 'Spilled Rows')::bigint > 0 and (node ->> 'Disk Usage')::bigint > 0, (node ->> 'Times Emptied')::bigint > 0, (node ->> 'Memory Usage')::bigint <= 140;
end $$;
set hashgraph_join.force = on;
select * from node_of('select h, count(*), sum(k) from many group by 1');
set work_mem = '64kB';
select * from node_of('select h, count(*), sum(k) from many group by 1');
select * from node_of('select t, count(*), sum(k) from many group by 1');
select count(*) from (select h, count(*) from many group by 1 limit 3) x;
-- states that grow, and groups of values that are made row by row
select check_scan('select k, max(repeat(t, 50)), count(*) from many group by 1') as states, check_scan('select repeat(t, 30), count(*) from many group by 1') as keys;
reset work_mem;
-- partial groups that do not fit go to the leader as they are
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
set max_parallel_workers_per_gather = 2;
set hashgraph_join.agg_tuple_cost = 1;
set work_mem = '64kB';
select count(*) > 0 as emptied from hgj_explain('(analyze, costs off, timing off, summary off) select h, count(*) from many group by 1') x where x ~ 'Times Emptied: [1-9]';
select count(*), sum(c) from (select h, count(*) as c from many group by 1) x;
reset max_parallel_workers_per_gather;
reset hashgraph_join.agg_tuple_cost;
reset work_mem;

-- EXPLAIN
select hgj_explain('(costs off) select g, count(*) from f where i > 0 and upper(t || v) = ''TEXT 7'' group by 1');
select hgj_explain('(analyze, costs off, timing off, summary off) select g % 2, count(*) from f where i > 0 and id < 100 and upper(t) <> ''TEXT 7'' and upper(t || v) <> ''TEXT 7'' group by 1 having count(*) > 1');
set hashgraph_join.source = tuples;
select hgj_explain('(costs off) select count(*) from f');
set hashgraph_join.source = pages;
select hgj_explain('(costs off) select count(*) from f');
reset hashgraph_join.source;

-- rescans, with parameters in quals, arguments, HAVING and what is grouped by
select check_scan('select w.k, x.* from few w, lateral (select g, count(*), sum(i + w.k) from f where s > w.k group by 1) x', false) as changes,
	check_scan('select w.k, x.* from few w, lateral (select count(*), sum(i) filter (where s > w.k) from f) x', false) as in_filter,
	check_scan('select w.k, x.* from few w, lateral (select g, sum(n) from f group by 1 having count(*) > w.k * 30) x', false) as in_having,
	check_scan('select w.k, x.* from few w, lateral (select (i + w.k) % 7 as p, upper(t || w.t) as q, count(*) from f where id < 50 group by 1, 2) x', false) as in_keys,
	check_scan('select w.k, x.* from few w left join (select g, count(*) from f group by 1) x on w.k + x.g > 5 and w.k < 3', false) as same,
	check_scan('select w.k, x.* from (select * from few limit 3) w, lateral (select t, count(*) + w.k from many where id % 7 = w.k group by 1) x', false) as spilled,
	check_scan('select k, (select sum(i * w.k) from f where f.g = w.k) from few w', false) as sublink,
	check_scan('select k, (select count(*) from f where f.g = w.k and f.id < w.k * 100) from few w', false) as two,
	check_scan('select k from few w where exists (select from f where f.g = w.k group by s having count(*) > 3)', false) as in_exists,
	check_scan('with x as (select g, count(*) as c from f group by 1) select a.g, b.c from x a join x b on a.g = b.g + 1', false) as cte;

-- prepared statements
set hashgraph_join.require = aggregate;
prepare p (int, numeric) as select g, sum(i + $1), sum(n * $2), count(*) filter (where s > $1) from f where g < 3 and k > $1 group by 1 having count(*) > $1 order by 1 limit 2;
set plan_cache_mode = force_generic_plan;
execute p (1, 2.5);
execute p (-7, 0);
set plan_cache_mode = force_custom_plan;
execute p (-7, 0);
execute p (null, null);
reset plan_cache_mode;
deallocate p;

-- cursors
begin;
declare c scroll cursor for select g, count(*), sum(i) from f group by 1 order by 1;
fetch 2 from c;
fetch last from c;
fetch backward 2 from c;
declare open_ended cursor with hold for select g, o, count(*) from f where g < 4 group by 1, 2 order by 1, 2;
fetch 1 from open_ended;
commit;
fetch 3 from open_ended;
close open_ended;

-- errors: of rows that PostgreSQL raises them for, and no others
create function bad(int) returns int language plpgsql immutable as $$ begin if $1 = 77 then raise exception 'bad %', $1; end if; return $1; end $$;
select q, check_scan(q, q !~ 'bad') as says from unnest(array['select count(*) from f where 100 / (id - 77) > 0', 'select count(*) from f where id <> 77 and 100 / (id - 77) > 0', 'select sum(100 / (id - 77)) from f where id > 77',
	'select sum(100 / (id - 77)) from f', 'select sum(100 / (id - 77)) filter (where id <> 77) from f', 'select 100 / (id - 77), count(*) from f group by 1', 'select 100 / (id - 77), count(*) from f where id < 77 group by 1',
	'select sum(bad(id)) from f', 'select bad(id), count(*) from f group by 1', 'select sum(bad(id)) from f where bad(id) > 3 and id < 77', 'select sum(bad(id)) from f where id < 77',
	'select g, sum(bad(id)) from f group by 1 having sum(bad(id)) > 3', 'select sum(case when id <> 77 then bad(id) end) from f', 'select sum(i + 2147483647) from f', 'select max(s * 300::int2) from f']) q;
reset hashgraph_join.require;
-- one that has been raised leaves nothing behind
do $$ begin
	perform t, sum(100 / (id - 4000)) from f group by 1;
exception when division_by_zero then
	raise notice 'as it should be';
end $$;
select count(*) from (select t, sum(100 / id) from f group by 1) x;

-- rows that the snapshot does not see, and those of the transaction itself
begin;
delete from f where g = 3;
insert into f (id, g, i) values (6001, 3, 1), (6002, 99, 2);
update f set i = i + 1 where g = 4;
select check_scan('select g, count(*), sum(i) from f group by 1', false) as own_changes;
rollback;
select check_scan('select g, count(*), sum(i) from f group by 1') as undone;
-- temporary tables, one without columns, one with columns that came later
create temp table temp as select id, g, t from f;
create table bare ();
insert into bare default values;
insert into bare default values;
create table late (id int);
insert into late select generate_series(1, 500);
alter table late add column d int default 7, add column n int, add column t text default 'later';
insert into late values (501, 1, 2, 'own');
analyze late;
select check_scan('select g, count(*), min(t) from temp group by 1', false) as temporary, check_scan('select count(*) from bare') as no_columns, check_scan('select d, n, t, count(*), sum(id) from late group by 1, 2, 3') as late;
alter table late drop column d;
select check_scan('select t, count(n), sum(id) from late group by 1') as dropped;
create materialized view mv as select g, i from f;
analyze mv;
select check_scan('select g, sum(i) from mv group by 1') as materialized, check_scan('select g, sum(i) from f where g = any (array[1, 2]) group by 1') as any_array;

-- who may see what: row security, views that hide rows, privileges on columns
create role regress_hgj_reader;
create table secret as select g as id, g % 2 as own, g % 5 as k, 'secret ' || g as t from generate_series(1, 300) g;
analyze secret;
alter table secret enable row level security;
create policy own_rows on secret using (own = 1);
create function leak(text) returns bool language plpgsql cost 0.0000001 as $$ begin if substr($1, 8)::int % 2 = 0 then raise notice 'leaked %', $1; end if; return true; end $$;
grant usage on schema agg_scans to regress_hgj_reader;
grant select on secret to regress_hgj_reader;
grant select (id, k) on many to regress_hgj_reader;
set session authorization regress_hgj_reader;
select hgj_explain('(costs off) select k, count(*) from secret where leak(t) group by 1');
select k, count(*), max(t) from secret where leak(t) group by 1 order by 1;
select count(*) from secret where leak(t) and length(t) > 8;
select sum(k), count(*) from many;
select max(t) from many;
reset session authorization;
set search_path = agg_scans, public;
set hashgraph_join.force = on;

-- declined, and why
set client_min_messages = debug1;
select hgj_shape('select count(*) from few tablesample system (100)');
select hgj_shape('select g, o, count(*) from f group by grouping sets ((g), (o))');
select hgj_shape('select count(*) from f where current_user = ''nobody''');
select hgj_shape('select count(f.*) from f');
select generate_series(1, w) as s, count(*) from few group by 1 order by 1;
select hgj_shape('select sum(i + random()) from f');
-- by PostgreSQL's functions (transitions.sql)
select hgj_shape('select count(distinct g + 0) from f');
select hgj_shape('select string_agg(t, '','') from f');
reset hashgraph_join.force;
set hashgraph_join.min_rows = 10000;
select hgj_shape('select count(*) from f');
set hashgraph_join.min_rows = 100;
select hgj_shape('select count(*) from f');
reset client_min_messages;
create table indexed as select p as id, p % 100 as k, p as v from generate_series(1, 30000) p;
create index on indexed (id);
vacuum analyze indexed;
set client_min_messages = debug1;
select hgj_shape('select sum(v) from indexed where id between 20 and 30');
select hgj_shape('select sum(v) from indexed where id > 20');
reset client_min_messages;
select hgj_shape('select min(id), max(id) from indexed');
set hashgraph_join.force = on;
select hgj_shape('select min(id), max(id) from indexed');
select hgj_shape('select sum(v) from indexed where id between 20 and 30');
-- who is told not to read all of a table does not
set enable_seqscan = off;
select hgj_shape('select sum(v) from indexed where id > 20');
reset enable_seqscan;
reset hashgraph_join.force;
select hgj_shape('select k, sum(v) from indexed group by k order by k');
set hashgraph_join.aggregate_scans = off;
select hgj_shape('select k, sum(v) from indexed group by k');
reset hashgraph_join.aggregate_scans;
set hashgraph_join.aggregate = off;
select hgj_shape('select k, sum(v) from indexed group by k');
reset hashgraph_join.aggregate;
-- required, and not there
set hashgraph_join.require = aggregate;
set hashgraph_join.min_rows = 1000000;
select count(*) from f;
set hashgraph_join.min_rows = 100;
set hashgraph_join.agg_tuple_cost = 1000;
select count(*) from f;
reset hashgraph_join.agg_tuple_cost;
reset hashgraph_join.min_rows;
reset hashgraph_join.require;

-- below and beside joins of ours, as a build side and as an outer one
select hgj_check_agg('select w.t, x.c from few w join (select g, count(*) as c from f group by 1) x on w.k = x.g') as build,
	hgj_check_agg('select g, count(*) from (select g, s, sum(i) as i from f group by 1, 2) x join few on few.k = x.g group by 1') as above,
	hgj_check_agg('select * from f where (g, i) in (select g, max(i) from f group by 1)') as semi;
-- EvalPlanQual runs it as any other
select hgj_check_dml('update few set w = x.c from (select g, count(*) as c from f group by 1) x where x.g = few.k', 'few') as target;

-- partitions, one of them with its columns elsewhere, one without rows
create table parted (k int, g int, v numeric, t text) partition by range (k);
create table parted_1 partition of parted for values from (0) to (100);
create table parted_2 (t text, gone int, v numeric, k int, g int);
alter table parted_2 drop column gone;
alter table parted attach partition parted_2 for values from (100) to (200);
create table parted_3 partition of parted for values from (200) to (300) partition by list (g);
create table parted_3_1 partition of parted_3 for values in (0, 1, 2, 3);
create table parted_3_2 partition of parted_3 default;
create table parted_4 partition of parted for values from (300) to (400);
create table parted_null partition of parted default;
insert into parted select p % 300, p % 7, p * 1.5, 'text ' || p % 40 from generate_series(1, 3000) p;
insert into parted values (null, null, null, null), (null, 3, 1, 'null');
analyze parted;
-- each by itself, and what is left to finish
set enable_partitionwise_aggregate = on;
set hashgraph_join.startup_cost = 0;
select check_scan('select k, count(*), sum(v), max(t) from parted where k < 200 group by 1', false) as by_key,
	check_scan('select g, count(*), sum(v), max(t) from parted group by 1', false) as in_parts,
	check_scan('select count(*), avg(v), min(t) from parted where k > 50', false) as alone, check_scan('select g, t, sum(v) from only parted_2 group by 1, 2') as one;
reset enable_partitionwise_aggregate;
reset hashgraph_join.startup_cost;
-- all at once
select check_scan('select k, count(*), sum(v), max(t) from parted group by 1') as by_key, check_scan('select g, count(*), sum(v), max(t) from parted group by 1') as by_other,
	check_scan('select count(*), avg(v), min(t) from parted where k > 50') as alone, check_scan('select g % 3, upper(t), sum(v) filter (where k < 150) from parted group by 1, 2 having count(*) > 2') as expressions,
	check_scan('select tableoid::regclass, count(*), sum(v) from parted group by tableoid') as tableoid, check_scan('select t, g, k, v, count(*) from parted group by 1, 2, 3, 4') as many_groups;
select check_scan('select w.k, x.* from few w, lateral (select g, count(*), sum(v) from parted where parted.k = w.k * 30 group by 1) x', false) as pruned_by_outer,
	check_scan('select g, count(*) from parted where k < (select max(k) * 10 from few) group by 1', false) as pruned_by_initplan,
	check_scan('select count(*), sum(v), min(t) from parted where k = (select max(k) + 380 from few)', false) as nothing_left,
	check_scan('select w.k, (select sum(v + w.k) from parted where g = w.k) from few w', false) as rescanned,
	check_scan('select sum(100 / (g - 3)) from parted') as error, check_scan('select sum(100 / (k - 150)) from parted where k < 100') as no_error;
set hashgraph_join.force = on;
set plan_cache_mode = force_generic_plan;
prepare q (int) as select g, count(*), sum(v) from parted where k between $1 and $1 + 20 group by 1 order by 1 limit 2;
select hgj_explain('(analyze, costs off, timing off, summary off) execute q (95)');
execute q (95);
execute q (220);
execute q (null);
reset plan_cache_mode;
deallocate q;
select hgj_explain('(costs off) select count(*) from parted where k < 250');
reset hashgraph_join.force;
-- where indexes are a little cheaper for PostgreSQL, and where they find what is wanted
create table keyed (k int, g int, v int) partition by range (k);
create table keyed_1 partition of keyed for values from (0) to (10000);
create table keyed_2 partition of keyed for values from (10000) to (20000) partition by list (g);
create table keyed_2_1 partition of keyed_2 for values in (0, 1, 2);
create table keyed_2_2 partition of keyed_2 default;
insert into keyed select p, p % 7, p % 100 from generate_series(0, 19999) p;
create index on keyed (v);
vacuum analyze keyed;
set random_page_cost = 0.9;
set hashgraph_join.enabled = off;
select bool_and(s !~ 'Seq Scan') as no_scan from hgj_shape('select g, count(*) from keyed where v < 40 group by g') s;
reset hashgraph_join.enabled;
select check_scan('select g, count(*), sum(v) from keyed where v < 40 group by g', false) as many;
set hashgraph_join.force = on;
select hgj_lines('select g, count(*) from keyed where v = 4 and g = 3 group by g', 'HashGraphAgg') as few;
reset hashgraph_join.force;
reset random_page_cost;
-- inheritance, UNION ALL
create table parent (id int, g int, t text);
create table child (extra int) inherits (parent);
insert into parent select p, p % 5, 'parent ' || p % 9 from generate_series(1, 500) p;
insert into child select p, p % 6, 'child ' || p % 7, p from generate_series(1, 700) p;
analyze parent, child;
select check_scan('select g, count(*), min(t) from parent group by 1') as children, check_scan('select g, count(*) from only parent group by 1') as parent,
	check_scan('select g, sum(i), count(*) from (select g, i from f union all select g, id from parent) x where i > 0 group by 1', false) as union_all,
	check_scan('select count(*), sum(i) from (select i from f union all select 7) x', false, 0) as no_table;
-- joins, partition by partition
create table sides (k int, w int, t text) partition by range (k);
create table sides_1 partition of sides for values from (0) to (100);
create table sides_2 partition of sides for values from (100) to (200);
create table sides_3 partition of sides for values from (200) to (300);
create table pairs (k int, g int, v int) partition by range (k);
create table pairs_1 partition of pairs for values from (0) to (100);
create table pairs_2 partition of pairs for values from (100) to (200);
create table pairs_3 partition of pairs for values from (200) to (300);
insert into sides select p % 300, p, 'side ' || p % 50 from generate_series(1, 600) p;
insert into pairs select p % 300, p % 9, p from generate_series(1, 2000) p;
analyze sides, pairs;
set enable_partitionwise_join = on;
select hgj_check_agg('select g, count(*), sum(v), min(t), sum(w) from pairs join sides using (k) group by 1', 3) as joins,
	hgj_check_agg('select t, count(*), sum(v) from pairs left join sides using (k) where v % 3 > 0 group by 1', 3) as outer_joins,
	hgj_check_agg('select count(*) from pairs join sides using (k)', 3) as alone,
	hgj_check_agg('select f.k, x.* from few f, lateral (select g, count(*), sum(v + w) from pairs join sides using (k) where v > f.k * 100 group by 1) x', 3) as rescanned;
set hashgraph_join.force = on;
select hgj_shape('select g, count(*), sum(w) from pairs join sides using (k) group by 1');
reset enable_partitionwise_join;
set client_min_messages = debug1;
select hgj_shape('select count(*) from parted tablesample system (100)');
set client_min_messages = warning;
drop schema agg_scans cascade;
drop role regress_hgj_reader;
