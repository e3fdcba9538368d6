-- The filter in front of the table: made from the first row on, or not at all.
-- (When "auto" makes one depends on the machine's cache: test/engine.)
set work_mem = '64MB';
create temp table few (id int, k int, k8 int8, t text, v int) with (autovacuum_enabled = off);
create temp table dim (id int, k int, k8 int8, t text, v int) with (autovacuum_enabled = off);
-- one row in ten of few has a partner; dim's keys are sparse, with duplicates
insert into few select g, case when g % 13 <> 0 then (g % 5000 * 7919::int8) % 1000003 end, g % 5000 * 2654435761, 'key ' || g % 5000, g % 17 from generate_series(1, 6000) g;
insert into dim select g, case when g % 11 <> 0 then (g % 500 * 7919::int8) % 1000003 end, g % 500 * 2654435761, 'key ' || g % 500, g % 19 from generate_series(1, 1000) g;
analyze few, dim;

create function filter_line(q text) returns text language plpgsql set hashgraph_join.force = on as $$
declare
	line text;
	found text := 'none';
begin
	for line in execute 'explain (analyze, buffers off, costs off, timing off, summary off) ' || q loop
		if line ~ 'Probe Filter:' then
			found := regexp_replace(trim(line), '\d+kB', 'NkB');
		end if;
	end loop;
	-- a Bloom filter lets some pass, and which ones differs from run to run
	return regexp_replace(found, '\d\d\d\d$', case
		when substring(found from '(\d+)$')::int between 4500 and 5600 then 'most'
		when substring(found from '(\d+)$')::int between 5800 and 5979 then 'nearly all'
		else 'FEW' end);
end $$;
create function filter_join(j text, c text) returns text language sql as $$
	select case j
		when 'semi' then format('select few.* from few where exists (select from dim where %s)', c)
		when 'anti' then format('select few.* from few where not exists (select from dim where %s)', c)
		else format('select few.id, few.v, dim.id as d, dim.t from few %s join dim on %s', j, c) end
$$;

set hashgraph_join.filter = on;
select j, c, hgj_check(filter_join(j, c))
from unnest('{inner,left,right,full,semi,anti}'::text[]) j, unnest(array['few.k = dim.k', 'few.k8 = dim.k8 and few.k = dim.k', 'few.t = dim.t and few.v <> dim.v', 'few.id = dim.id * 7']) c;
-- every way of building and storing
select b, s, hgj_check(filter_join('full', 'few.k = dim.k')), hgj_check(filter_join('semi', 'few.id = dim.id'))
from unnest('{v1,v2,direct}'::text[]) b, unnest('{csr,ellpack,sliced}'::text[]) s,
	lateral (select set_config('hashgraph_join.build', b, false), set_config('hashgraph_join.segments', s, false)) x where x is not null;
reset hashgraph_join.build;
reset hashgraph_join.segments;

-- what EXPLAIN ANALYZE says
set enable_mergejoin = off;
set hashgraph_join.filter = on;
select filter_line('select * from few join dim using (k8)') as line;
-- exact, for a direct table; what was read of a page before there was a filter is not tested
select filter_line('select * from few join (select * from dim where id <= 20 or id = 1000) dim using (id)') as line;
set hashgraph_join.filter = off;
select filter_line('select * from few join dim using (k8)') as line;
set hashgraph_join.filter = auto;
select filter_line('select * from few join dim using (k8)') as line;
set hashgraph_join.filter = on;

-- rows that the filter keeps from being read are rows that the scan returned
create function scanned(q text) returns setof text language plpgsql as $$
declare
	line text;
begin
	for line in execute 'explain (analyze, buffers off, costs off, timing off, summary off) ' || q loop
		if line ~ 'Seq Scan on few|Rows Removed' then
			return next hgj_plain(trim(line));
		end if;
	end loop;
end $$;
set hashgraph_join.force = on;
select scanned('select * from few join dim using (k8)');
select scanned('select * from few join dim using (k8) where few.v > 3');
select hgj_check('select few.ctid, few.tableoid::regclass::text, few.t, dim.id from few join dim using (k8) where few.v > 3 and dim.v = 3');
select hgj_check('select few.ctid, few.* from few where v % 3 = 1 and exists (select from dim where dim.k8 = few.k8 and dim.v = few.v)');
select hgj_check('select few.id, dim.id as d from few join dim on few.t = dim.t and few.k = dim.k and few.v = dim.v');
reset hashgraph_join.force;

-- rescans ask the same filter
set hashgraph_join.filter = on;
set hashgraph_join.force = on;
select x, (select count(*) from few join dim using (k8) where few.v = x) from generate_series(1, 4) x;
-- passes have one each
set work_mem = '64kB';
select hgj_check(filter_join('full', 'few.k8 = dim.k8')), hgj_check(filter_join('anti', 'few.t = dim.t'));
reset all;
drop function scanned;
drop function filter_line;
drop function filter_join;
