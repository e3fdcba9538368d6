-- What EXPLAIN ANALYZE says of joins and aggregations beyond memory, in one
-- execution, in several, and in several processes: bytes and rows add up, the
-- rest is the highest.
create table es_a as select g as k, g % 10 as g, g as v, 'text ' || g as t from generate_series(1, 20000) g;
create table es_b as select g * 3 as k, g as v, 'text ' || g as t from generate_series(1, 10000) g;
create table es_g as select generate_series(0, 9) as g;
analyze es_a, es_b, es_g;
set hashgraph_join.force = on;
set hashgraph_join.engine = cpu;

-- all nodes of a plan in JSON, and what text has in the same words
create function es_nodes(plan jsonb) returns setof jsonb language sql as $$
	with recursive n as (select plan as p union all select jsonb_array_elements(p -> 'Plans') from n) select p - 'Plans' from n;
$$;
create function es_json(s text) returns table (node text, loops int, passes int, partitions int, inner_kb int, outer_kb int, filtered int, memory int, groups int, spilled_rows int, disk int, built int, worker_emptied int)
language plpgsql as $$
declare
	j json;
begin
	execute 'explain (analyze, buffers off, costs off, timing off, summary off, format json) ' || s into j;
	return query select p ->> 'Custom Plan Provider', (p ->> 'Actual Loops')::int, (p ->> 'Passes')::int, (p ->> 'Partitions')::int,
		(p ->> 'Spilled Inner')::int, (p ->> 'Spilled Outer')::int, (p ->> 'Outer Rows Filtered')::int, (p ->> 'Memory Usage')::int, (p ->> 'Groups')::int,
		(p ->> 'Spilled Rows')::int, (p ->> 'Disk Usage')::int, (p ->> 'Workers Built')::int,
		(select sum((w ->> 'Times Emptied')::int)::int from jsonb_array_elements(p -> 'Worker Aggregations') w)
	from es_nodes(j::jsonb -> 0 -> 'Plan') p where p ? 'Custom Plan Provider';
end $$;
create function es_text(s text) returns setof text language plpgsql as $$
declare
	line text;
begin
	for line in execute 'explain (analyze, buffers off, costs off, timing off, summary off) ' || s loop
		if line ~ 'Memory Usage|Spilled' then
			return next regexp_replace(trim(line), '\d+', 'N', 'g');
		end if;
	end loop;
end $$;

-- one execution
set work_mem = '128kB';
select es_text('select a.v, b.t from es_a a join es_b b using (k)');
create temp table once as select * from es_json('select a.v, b.t from es_a a join es_b b using (k)');
select node, loops, passes > 1 and partitions > 1 as many, inner_kb > 100 as inner_kb, outer_kb > 30 as outer_kb, filtered between 5000 and 20000 as filtered,
	memory between 100 and 1024 as memory from once;
-- three, of three build sides: the sums are three times as much, the highest is what it was
create temp table thrice as select * from es_json('select g, x.n from generate_series(1, 3) g, lateral (select count(a.v + length(b.t)) as n from es_a a join (select * from es_b where v <> -g.g offset 0) b on a.k = b.k offset 0) x') where node = 'HashGraphJoin';
select t.loops, t.partitions < 2 * o.partitions as partitions, t.passes < 2 * o.passes as passes, t.memory < 2 * o.memory as memory,
	t.inner_kb::numeric / o.inner_kb between 2.5 and 3.5 as inner_kb, t.outer_kb::numeric / o.outer_kb between 2 and 4 as outer_kb,
	t.filtered::numeric / o.filtered between 2 and 4 as filtered from once o, thrice t;
-- three, of one: the build side goes to files once, with what memory had room for
create temp table kept as select * from es_json('select g, x.n from generate_series(1, 3) g, lateral (select count(a.v + length(b.t)) as n from es_a a join es_b b on a.k = b.k and a.v <> g.g offset 0) x') where node = 'HashGraphJoin';
select k.loops, k.partitions < 2 * o.partitions as partitions, k.passes < 2 * o.passes as passes, k.memory < 2 * o.memory as memory,
	k.inner_kb::numeric / o.inner_kb between 1 and 1.5 as inner_kb, k.outer_kb::numeric / o.outer_kb between 2 and 4 as outer_kb,
	k.filtered::numeric / o.filtered between 2 and 4 as filtered from once o, kept k;

-- a Gather: workers only, then the leader with them; each of them splits its copy
set hashgraph_join.parallel_build = private;
set max_parallel_workers_per_gather = 2;
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
set parallel_leader_participation = off;
create temp table workers as select * from es_json('select a.v, b.t from es_a a join es_b b using (k)');
select w.built > 0 as built, w.partitions < 2 * o.partitions as partitions, w.passes < 2 * o.passes as passes, w.memory < 2 * o.memory as memory,
	w.inner_kb::numeric / o.inner_kb / w.built between 0.8 and 1.2 as inner_kb, w.outer_kb::numeric / o.outer_kb between 0.6 and 1.6 as outer_kb,
	w.filtered > 5000 as filtered from once o, workers w;
-- a Gather that is rescanned
set enable_material = off;
select w.loops % 3 = 0 as loops, w.inner_kb::numeric / o.inner_kb > 2.5 as inner_kb, w.memory < 2 * o.memory as memory, w.partitions < 2 * o.partitions as partitions
from once o, es_json('select * from generate_series(1, 3) g left join (select count(a.v + length(b.t)) from es_a a join es_b b using (k)) x on true') w where w.node = 'HashGraphJoin';
reset enable_material;
reset max_parallel_workers_per_gather;

-- groups
create temp table agg_once as select * from es_json('select a.t, count(*) from es_a a join es_g b using (g) group by 1') where node = 'HashGraphAgg';
select es_text('select a.t, count(*) from es_a a join es_g b using (g) group by 1');
select loops, groups, spilled_rows > 10000 as rows, partitions is null as "none of a join", memory between 100 and 1024 as memory, disk > 200 as disk from agg_once;
select t.loops, t.groups, t.spilled_rows::numeric / o.spilled_rows between 2.5 and 3.5 as rows, t.disk::numeric / o.disk between 2.5 and 3.5 as disk, t.memory < 2 * o.memory as memory
from agg_once o, es_json('select g, x.n from generate_series(1, 3) g, lateral (select count(*) as n from (select a.t, count(*) from es_a a join es_g b using (g) where a.v > g.g - 4 group by 1 offset 0) y) x') t where t.node = 'HashGraphAgg';
set max_parallel_workers_per_gather = 2;
set hashgraph_join.agg_tuple_cost = 1;
-- partial ones return what they have
select worker_emptied > 0 as workers, coalesce(spilled_rows, 0) as leader
from es_json('select a.t, count(*) from es_a a join es_g b using (g) group by 1') where node = 'HashGraphAgg';
reset all;
drop function es_json, es_text, es_nodes;
drop table es_a, es_b, es_g;
