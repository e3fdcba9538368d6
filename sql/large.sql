-- Build sides that no second-level cache holds: here the binned probe has bins,
-- batches are long, and the outer side is read ahead.
set work_mem = '256MB';
create temp table l (id int, k int8, t text, v int) with (autovacuum_enabled = off);
create temp table r (id int, k int8, t text, v int) with (autovacuum_enabled = off);
insert into l select g, case when g % 97 <> 0 then (g * 7919::int8) % 1000003 end, 'key ' || g % 170000, g % 41 from generate_series(1, 260000) g;
insert into r select g, case when g % 89 <> 0 then (g * 104729::int8) % 1000003 end, 'key ' || g % 190000, g % 43 from generate_series(1, 250000) g;
-- some keys with long lists
insert into l select g, 5, 'key 5', g from generate_series(300001, 300300) g;
insert into r select g, 5, 'key 5', g from generate_series(300001, 300200) g;
analyze l, r;

create function large_join(j text, c text) returns text language sql as $$
	select case j
		when 'semi' then format('select count(*), sum(hashint4extended(l.id, 0)::numeric) from l where exists (select from r where %s)', c)
		when 'anti' then format('select count(*), sum(hashint4extended(l.id, 0)::numeric) from l where not exists (select from r where %s)', c)
		else format('select count(*), count(l.id), count(r.id), sum(hashint8extended(coalesce(l.id, 0) * 1000000::int8 + coalesce(r.id, 0), 0)::numeric) from l %s join r on %s', j, c) end
$$;
create function probe_of(q text) returns text language plpgsql set hashgraph_join.force = on as $$
declare
	line text;
	probe text;
begin
	for line in execute 'explain (analyze, buffers off, costs off, timing off, summary off) ' || q loop
		probe := coalesce((regexp_match(line, 'Probe: (\w+)'))[1], probe);
	end loop;
	return probe;
end $$;
set hashgraph_join.probe = binned;
set hashgraph_join.build = v2;
set hashgraph_join.segments = csr;
select j, c, hgj_check(large_join(j, c)) as says, probe_of(large_join(j, c)) as probe
from unnest('{inner,left,right,full,semi,anti}'::text[]) j, unnest('{l.k = r.k,l.t = r.t and l.v < r.v,l.k = r.k and l.t = r.t}'::text[]) c;
set hashgraph_join.build = v1;
set hashgraph_join.segments = sliced;
select j, c, hgj_check(large_join(j, c)) as says, probe_of(large_join(j, c)) as probe
from unnest('{inner,full,anti}'::text[]) j, unnest('{l.k = r.k and l.v <> r.v}'::text[]) c;
set hashgraph_join.build = sort;
set hashgraph_join.segments = ellpack;
select j, c, hgj_check(large_join(j, c)) as says, probe_of(large_join(j, c)) as probe
from unnest('{left,semi}'::text[]) j, unnest('{l.k = r.k}'::text[]) c;
set hashgraph_join.build = direct;
select j, c, hgj_check(large_join(j, c)) as says
from unnest('{inner,right,full}'::text[]) j, unnest('{l.id = r.id and l.v < r.v,l.id = r.id / 2}'::text[]) c;
-- the automatic way
set hashgraph_join.probe = auto;
set hashgraph_join.build = auto;
set hashgraph_join.segments = auto;
select j, c, hgj_check(large_join(j, c)) as says
from unnest('{inner,full,semi}'::text[]) j, unnest('{l.k = r.k,l.id = r.id}'::text[]) c;
-- and in passes
set work_mem = '1MB';
set hashgraph_join.probe = binned;
select j, c, hgj_check(large_join(j, c)) as says
from unnest('{inner,full,anti}'::text[]) j, unnest('{l.k = r.k}'::text[]) c;
-- stopped early, and left half-way by an error
set work_mem = '256MB';
set hashgraph_join.force = on;
set hashgraph_join.require = join;
select count(*) from (select l.id from l join r using (k) limit 100) s;
select count(*) from l join r using (k) where 1 / (l.id - 250001) >= 0;
begin;
declare c cursor for select 'row' as r from l full join r using (k);
fetch 1 from c;
move 300000 in c;
fetch 1 from c;
rollback;

-- Build rows with the same values share a record: where no join type asks which
-- row it was, and the values are few.
create temp table values_of (k int, v int, s int2, b bool, t text, unique_v int, few int) with (autovacuum_enabled = off);
insert into values_of select g * 1009, nullif(g % 300, 7), nullif(g % 11, 3), g % 5 = 0, 'text ' || nullif(g % 40, 13), g, g % 5 from generate_series(1, 200000) g;
-- few values at first, then many, and few again; and some keys twice
insert into values_of select g * 1009, case when g % 200000 < 100000 then g % 3 else g end, -1, null, 'text ' || g % 200000, g, g % 5 from generate_series(150000, 500000) g;
analyze values_of;
create function memory_of(q text) returns int language plpgsql set hashgraph_join.force = on as $$
declare
	line text;
	kb int;
begin
	for line in execute 'explain (analyze, buffers off, costs off, timing off, summary off) ' || q loop
		kb := coalesce(kb, (regexp_match(line, 'Build Rows.*Memory Usage: (\d+)kB'))[1]::int);
	end loop;
	return kb;
end $$;
set enable_mergejoin = off;
set hashgraph_join.force = on;
set max_parallel_workers_per_gather = 0;
create temp table probing as select g * 1009 as k, g % 9 as x from generate_series(1, 700000) g;
analyze probing;
select c, hgj_check('select ' || c || ', count(*), sum(p.x) from probing p left join values_of v using (k) group by ' || c) as says
from unnest('{"v.v","v.s","v.t, v.v","v.b, v.s, v.v, v.unique_v % 10"}'::text[]) c;
select hgj_check('select p.k, p.x, v.v, v.s, v.b from probing p join values_of v on p.k = v.k and p.x <> v.v and p.x = 3'),
	hgj_check('select v.v, count(p.k), count(*) from probing p full join values_of v using (k) group by 1'),
	hgj_check('select p.* from probing p where p.k % 11 = 0 and exists (select from values_of v where v.k = p.k and v.v > p.x)');
-- a chunk of 2 MB instead of three
select memory_of('select v.unique_v, count(*) from probing p join values_of v using (k) group by 1')
	- memory_of('select v.few, count(*) from probing p join values_of v using (k) group by 1') between 3000 and 4500 as shared;
set work_mem = '3MB';
set hash_mem_multiplier = 1;
select hgj_check('select v.v, count(*), sum(p.x) from probing p join values_of v using (k) group by 1');
reset all;
drop function memory_of;
