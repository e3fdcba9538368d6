-- The node runs again: with nothing changed, with a changed outer side, with
-- a changed build side, with both, with changed residual quals, and after it
-- was left half-way.
-- Subqueries are to stay what they are.
set hashgraph_join.rewrite = off;
set enable_material = off;
set enable_memoize = off;
-- the side that changes is to be the build side
set effective_cache_size = '8kB';

-- How often the join of a plan was run.
create function join_loops(q text) returns setof text language plpgsql
	set hashgraph_join.force = on
as $$
declare
	line text;
begin
	for line in execute 'explain (analyze, buffers off, costs off, timing off, summary off) ' || q loop
		if line ~ 'Custom Scan' then
			return next regexp_replace(line, '^.*(Custom Scan.*) \(actual .*(loops=\d+).*$', '\1 \2');
		elsif line ~ 'Build Rows' then
			return next regexp_replace(line, '^.*(Build Rows: \d+).*$', '\1');
		end if;
	end loop;
end $$;

create temp table queries (what text, q text);
insert into queries values
	('nothing changes', 'select c.id, j.n from c left join (select a.id as n from a join b on a.k = b.k and a.w = b.w) j on c.id * 3 > j.n + 500'),
	('nothing changes, full', 'select c.id, j.n, j.m from c left join (select a.id as n, b.id as m from a full join b on a.k = b.k and a.w < b.w) j on c.id * 3 > j.n + 500'),
	('nothing changes, semi', 'select c.id, j.n from c left join (select a.id as n from a where exists (select from b where a.k = b.k)) j on c.id * 3 > j.n + 500'),
	('nothing changes, anti', 'select c.id, j.n from c left join (select a.id as n from a where not exists (select from b where a.k = b.k)) j on c.id * 3 > j.n + 500'),
	('the outer side changes', 'select c.id, j.* from c, lateral (select count(*), sum(a.id), count(b.id) from (select * from a where a.v > c.v offset 0) a left join b on a.k = b.k) j'),
	('the build side changes', 'select c.id, j.* from c, lateral (select count(*), sum(a.id), count(b.id) from a left join (select * from b where b.v > c.v offset 0) b on a.k = b.k) j'),
	('both change', 'select c.id, j.* from c, lateral (select count(*), count(a.id), count(b.id) from (select * from a where a.v > c.v offset 0) a full join (select * from b where b.v < c.v offset 0) b on a.k = b.k) j'),
	('the residual qual changes', 'select c.id, j.* from c, lateral (select count(*), count(a.id), count(b.id) from a left join b on a.k = b.k and a.v + b.v > c.v) j'),
	('the residual qual of a full join changes', 'select c.id, j.* from c, lateral (select count(*), count(a.id), count(b.id) from a full join b on a.k = b.k and a.v + b.v > c.v) j'),
	('the key changes', 'select c.id, j.* from c, lateral (select count(*), count(a.id), count(b.id) from a left join b on a.k + c.id = b.k) j'),
	('the build key changes', 'select c.id, j.* from c, lateral (select count(*), count(a.id), count(b.id) from a left join b on a.k = b.k - c.w) j'),
	('the target list changes', 'select c.id, j.* from c, lateral (select sum(a.v + b.v * c.w) from a join b on a.k = b.k) j'),
	('semi', 'select c.id, j.* from c, lateral (select count(*) from a where exists (select from b where a.k = b.k and b.v > c.v)) j'),
	('anti', 'select c.id, j.* from c, lateral (select count(*) from a where not exists (select from b where a.k = b.k and b.v > c.v)) j'),
	('half-way', 'select c.id, (select count(*) from (select a.id from a join b on a.k = b.k and a.v > c.v limit 3) s) from c'),
	('half-way, full', 'select c.id, (select count(*) from (select a.id from a full join b on a.k = b.k and a.v > c.v limit 400 + c.id) s) from c'),
	('exists', 'select c.id from c where exists (select from a join b on a.k = b.k and a.v = c.v) is true'),
	('correlated', 'select c.id, (select max(a.id) from a join b on a.k = b.k where a.w = c.w and b.w = c.w) from c'),
	('empty at times', 'select c.id, j.* from c, lateral (select count(*) from (select * from a where a.v > c.v + 20 offset 0) a left join (select * from b where c.w > 2 offset 0) b on a.k = b.k) j'),
	('in the outer side of another', 'select c.id, j.* from c, lateral (select count(*) from a join b on a.k = b.k join c d on d.k8 = b.k8 and d.v > c.v) j'),
	('in a union', 'select c.id, j.* from c, lateral (select count(*) from (select a.id from a join b using (k) where a.v = c.v union all select b.id from a right join b using (k) where b.v = c.v) s) j');
select what, hgj_check(q) as says from queries order by what;
set work_mem = '64kB';
select what, hgj_check(q) as says from queries order by what;
reset work_mem;
set hashgraph_join.build = v2;
set hashgraph_join.probe = binned;
set hashgraph_join.segments = sliced;
select what, hgj_check(q) as says from queries order by what;
reset hashgraph_join.build;
reset hashgraph_join.probe;
reset hashgraph_join.segments;

-- They were run again: this is no test of one run.
select what, join_loops(q) from queries where what in ('nothing changes', 'both change', 'the residual qual changes', 'the build side changes') order by what;

-- A recursive term is run again for every step.
select hgj_check('with recursive r(id, d) as (select id, 0 from c where id < 5 union all select a.id, d + 1 from r join a on a.k = r.id % 90 where d < 3) select * from r');
select hgj_check('with recursive r(id, d) as (select id, 0 from c where id < 9 union select a.v, d + 1 from r join a on a.k = r.id left join b on b.k = a.k and b.v > r.d where d < 4) select * from r', 2);
select hgj_check('with recursive r(id) as (select 1 union select j.n from r, lateral (select a.id % 50 as n from a join b on a.k = b.k and a.v = r.id) j) select * from r');

-- A build side that memory does not hold is read once, too, but where it changes:
-- the table in memory is probed again, or made again of rows on file.
create function build_sides(q text, out executions text, out read text, out spilled text, out units text) language plpgsql
	set hashgraph_join.force = on set hashgraph_join.aggregate = off
as $$
declare
	plan jsonb;
begin
	execute 'explain (analyze, buffers off, costs off, timing off, summary off, format json) ' || q into plan;
	select string_agg(node ->> 'Actual Loops', ' '), string_agg(node -> 'Plans' -> 1 ->> 'Actual Loops', ' '),
		string_agg(case when (node ->> 'Spilled Inner')::int > 0 then 'yes' else 'no' end, ' '),
		string_agg(case when (node ->> 'Partitions')::int > 1 then 'many' else 'one' end, ' ')
		from jsonb_path_query(plan, 'strict $.** ? (@."Custom Plan Provider" == "HashGraphJoin")') node
		into executions, read, spilled, units;
end $$;
insert into queries values
	('keyless build rows', 'select c.id, j.* from c, lateral (select count(*), sum(a.id), sum(b.id) from (select * from a where a.v > c.v offset 0) a right join b on a.k = b.k and b.id > 3) j'),
	('wide build rows', 'select c.id, j.* from c, lateral (select count(*), sum(length(b.t)), max(b.t) from (select * from a where a.v > c.v offset 0) a left join b on a.k = b.k) j'),
	('none waits for what is on file', 'select c.id, j.* from c, lateral (select count(*), sum(a.id) from (select * from a where a.id < 20 + c.v % 20 offset 0) a where exists (select from b where a.id = b.id)) j'),
	('only keyless rows in memory', 'select c.id, j.* from c, lateral (select count(*), sum(a.id), sum(l.id) from (select * from a where a.v > c.v offset 0) a left join (late l join public.c d on l.c = d.id) on a.k = l.k) j'),
	('an initplan', 'select count(*), sum(a.id) from a join b on a.k = b.k and a.v > (select min(v) from c)'),
	('an initplan of a lateral', 'select c.id, j.* from c, lateral (select count(*), sum(b.id) from a left join b on a.k = b.k and a.v > (select min(v) from c d where d.w > c.w)) j');
create temp table c as select * from c where id % 8 = 0;
-- a joined build side, of which memory gets rows without a key only
create temp table late as select g as id, case when g > 200 then g % 150 end as k, (g + 2) / 3 as c from generate_series(1, 600) g;
analyze c, late;
set work_mem = '4MB';
set hashgraph_join.spill = auto;
set hashgraph_join.chunk_rows = 50;
select what, hgj_check(q) as says from queries order by what;
select what, b.* from queries, lateral build_sides(q) b where what <> 'only keyless rows in memory' order by what;
-- built with the joined side, though that could go on as a chain
set hashgraph_join.startup_cost = 0;
select what, b.* from queries, lateral build_sides(q) b where what = 'only keyless rows in memory';
reset hashgraph_join.startup_cost;
-- all of it is read again where the memory limit changes on the way
create function less_memory(i int) returns int language plpgsql volatile as $$
begin
	perform set_config('work_mem', (4096 - i)::text || 'kB', true);
	return i;
end $$;
create temp table less as select 'select c.id, j.* from c, lateral (select count(*), sum(b.id) from (select * from a where a.v + less_memory(c.id) > c.v offset 0) a left join b on a.k = b.k) j where c.id <= 80'::text as q;
select hgj_check(q), b.* from less, lateral build_sides(q) b;
-- and where the first pass of several has taken rows, before partitions were asked for
create function ask_for_partitions(i int) returns int language plpgsql volatile as $$
begin
	if current_setting('hashgraph_join.force') = 'on' then
		perform set_config('hashgraph_join.spill', 'auto', true);
	end if;
	return i;
end $$;
set hashgraph_join.spill = passes;
select hgj_check('select c.id, j.* from c, lateral (select count(*), sum(b.id) from (select * from a where ask_for_partitions(a.v) > c.v offset 0) a right join b on a.k = b.k) j where c.id <= 80');
set hashgraph_join.spill = auto;

-- Rows of the table in memory are not written where nobody will ask for them: a
-- parameter that is an initplan's does not make a rescan.
create function spilled(q text) returns int language plpgsql set hashgraph_join.force = on set hashgraph_join.chunk_rows = 400 as $$
declare
	plan jsonb;
begin
	execute 'explain (analyze, buffers off, costs off, timing off, summary off, format json) ' || q into plan;
	return jsonb_path_query_first(plan, 'strict $.**."Spilled Inner"')::int;
end $$;
select spilled('select sum(a.id + b.id) from a join b on a.k = b.k and a.v + b.v > (select min(v) from c)') = spilled('select sum(a.id + b.id) from a join b on a.k = b.k and a.v + b.v > 0') as same,
	spilled('select (select sum(a.id + b.id) from a left join b on a.k = b.k and a.v + b.v > d.id) from c d where d.id = 8') > spilled('select sum(a.id + b.id) from a left join b on a.k = b.k and a.v + b.v > 1') as kept;

-- Thousands of splits leave nothing behind before the query ends.
create function left_behind(q text) returns bigint language plpgsql set hashgraph_join.force = on as $$
declare
	executions refcursor;
	before bigint;
	after bigint;
begin
	open executions for execute q;
	move forward 100 from executions;
	select sum(total_bytes - free_bytes) into before from pg_backend_memory_contexts where name = 'ExecutorState';
	move forward 2000 from executions;
	select sum(total_bytes - free_bytes) into after from pg_backend_memory_contexts where name = 'ExecutorState';
	close executions;
	return after - before;
end $$;
set hashgraph_join.chunk_rows = 10;
select what, hgj_check(q), left_behind(q) < 20000 as little from (values
	('the build side changes', 'select i, j.* from generate_series(1, 2200) i, lateral (select count(*), sum(b.id) from (select * from a where id < 20) a left join (select * from b where id between 70 + i % 9 and 110 offset 0) b on a.id = b.k) j'),
	('an initplan', 'select i, j.* from generate_series(1, 2200) i, lateral (select count(*), sum(b.id) from (select * from a where id < 20) a left join (select * from b where id between 70 + i % 9 and 110 offset 0) b on a.id = b.k and a.v > (select min(v) - 1 from b)) j'),
	('the outer side changes', 'select i, j.* from generate_series(1, 2200) i, lateral (select count(*), sum(b.id) from (select * from a where id < 20 + i % 9 offset 0) a left join (select * from b where id between 70 and 110) b on a.id = b.k) j')) s (what, q);
reset work_mem;
reset hashgraph_join.spill;
reset hashgraph_join.chunk_rows;
drop table pg_temp.c;

reset enable_material;
reset enable_memoize;
select what, hgj_check(q) as says from queries order by what;
