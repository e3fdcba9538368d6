-- Partial paths: each worker joins its share of the outer side with all of the
-- inner one.
create table f (id int, k int, t text, v int) with (autovacuum_enabled = off);
insert into f select g, case when g % 19 <> 0 then g % 900 end, 'text ' || g % 500, g % 37 from generate_series(1, 8000) g;
create table d (k int, t text, w int) with (autovacuum_enabled = off);
insert into d select case when g % 23 <> 0 then g % 1200 end, 'text ' || g % 700, g % 11 from generate_series(1, 2000) g;
create table e (id int primary key, v int, w int) with (autovacuum_enabled = off);
insert into e select g, g % 40, g % 5 from generate_series(1, 1000) g;
analyze f, d, e;

-- How each side is read is for others to test.
create function hgj_plan(q text) returns setof text language plpgsql as $$
declare
	line text;
begin
	for line in execute 'explain (costs off) ' || q loop
		continue when line ~ '(Outer|Inner) Source: ';
		return next line;
	end loop;
end $$;

-- hgj_check() where the forced plan must have a join below a Gather
create function hgj_check_parallel(q text, nodes int default 1) returns text language sql
as $$ select hgj_check_lines(q, nodes, 'Parallel Custom Scan \(HashGraphJoin\)', 'partial HashGraphJoins') $$;

create temp table queries (q text, nodes int);
insert into queries values
	('select f.id, d.w from f join d using (k)', 1),
	('select f.id, d.w from f left join d on f.k = d.k and f.v > d.w', 1),
	('select f.id, d.w from f left join d on f.k = d.k where d.w is null or d.w > 3', 1),
	('select f.id from f where exists (select from d where f.k = d.k)', 1),
	('select f.id from f where exists (select from d where f.k = d.k and f.v < d.w)', 1),
	('select f.id from f where not exists (select from d where f.k = d.k)', 1),
	('select f.id from f where not exists (select from d where f.k = d.k and f.v < d.w)', 1),
	('select f.id, d.w from f join d using (t)', 1),
	('select f.id, d.w, e.v from f join d using (k) join e on e.id = f.v', 2),
	('select f.id, d.w, e.v from f left join d using (k) left join e on e.id = f.v', 2),
	('select f.id, e.v from f join e on e.id = f.v where exists (select from d where f.k = d.k)', 2),
	('select f.id, f.t, d.t, d from f join d using (k) where f.v < 9', 1),
	('select e.v, count(*), sum(f.v), max(d.w) from f join d using (k) join e on e.id = f.v group by e.v', 2),
	('select f.id, e.w from f join e on e.id = f.v where f.k > (select min(k) from d)', 1),
	('select f.id, e.w from f join e on e.id + (select min(w) from d) = f.v and e.w < (select max(w) from d)', 1),
	('select * from (select f.id, d.w from f join d using (k) where f.v = 3 union all select f.id, e.v from f join e on e.id = f.v) u', 2);

set parallel_setup_cost = 0;
-- what workers share is to outweigh what each of them does
set hashgraph_join.agg_tuple_cost = 1;
set hashgraph_join.build_tuple_cost = 0;
set parallel_tuple_cost = 0;
set hashgraph_join.parallel_aggregate = partial;
set min_parallel_table_scan_size = 0;
set max_parallel_workers_per_gather = 2;
set hashgraph_join.parallel_build = private;
set hashgraph_join.force = on;
select hgj_plan('select f.id, d.w from f join d using (k)');
select hgj_plan('select f.id, d.w from f left join d on f.k = d.k and f.v > d.w');
select hgj_plan('select f.id from f where exists (select from d where f.k = d.k)');
select hgj_plan('select f.id from f where not exists (select from d where f.k = d.k)');
select hgj_plan('select f.id, d.w, e.v from f join d using (k) join e on e.id = f.v');
-- no worker knows which inner rows have no match
set hashgraph_join.source = tuples;
select hgj_plan('select f.id, d.w from f full join d using (k)');
reset hashgraph_join.source;
-- force alone does not make a plan parallel
reset parallel_setup_cost;
select hgj_plan('select f.id, d.w from f join d using (k)');
set parallel_setup_cost = 0;
reset hashgraph_join.force;

select q, hgj_check_parallel(q, nodes) as says from queries;
-- keys that are expressions: rows come one by one
set hashgraph_join.probe_tuple_cost = 1;
select hgj_check_parallel('select f.id, d.w from f join d on f.k + 1 = d.k - 1 and f.t = d.t') as says;
reset hashgraph_join.probe_tuple_cost;
-- the helper can fail
select hgj_check_parallel('select f.id, d.w from f full join d using (k)') as says;
set parallel_leader_participation = off;
select q, hgj_check_parallel(q, nodes) as says from queries;
-- several passes in each worker
set work_mem = '64kB';
select q, hgj_check_parallel(q, nodes) as says from queries;
reset work_mem;
reset parallel_leader_participation;
-- not partial, or not all of it: still the same rows
create temp table mine as select * from d;
analyze mine;
select hgj_check(q) as says from (values
	('select f.id, d.w from f full join d using (k)'),
	('select f.id, d.w from f right join d on f.k = d.k and f.v > d.w'),
	('select f.id, mine.w from f join mine using (k)'),
	('select f.id, d.w from f join d using (k) where f.v < pg_backend_pid()'),
	('select f.id, x.n from f join (select k, count(*) as n from d join e on e.id = d.k group by k) x using (k)'),
	('select e.id, x.n from e left join lateral (select count(*) as n from f join d using (k) where f.v = e.v) x on true where e.id < 30')) q (q);

-- transition states from workers, finished by PostgreSQL
create temp table aggregates (q text);
insert into aggregates values
	('select count(*), count(f.k), sum(f.v), avg(f.v), min(f.t), max(d.t) from f join d using (k)'),
	('select d.w, count(*), sum(f.v::int8), avg(f.v::numeric), bool_or(f.v > 30), max(f.t) from f join d using (k) group by d.w'),
	('select f.t, f.v % 5, sum(f.id), count(*) filter (where d.w > 4) from f left join d on f.k = d.k and f.v > d.w group by 1, 2 having count(*) > 3'),
	('select e.id, e.v, count(*), min(f.id), max(e.w) from f join e on e.id = f.v group by e.id'),
	('select count(*), max(f.v) from f join d using (k) where f.id < 0'),
	('select d.w, count(*) from f join d using (k) where f.id < 0 group by d.w'),
	('select d.t from f join d using (k) group by d.t'),
	('select avg(f.v + e.w * (select max(w) from d)) from f join d using (k) join e on e.id = f.v');
select q, hgj_check_parallel(q), hgj_check_agg(q) as says from aggregates;
set parallel_leader_participation = off;
select q, hgj_check_agg(q) as says from aggregates;
set work_mem = '64kB';
select q, hgj_check_agg(q) as says from aggregates;
reset work_mem;
reset parallel_leader_participation;

-- what EXPLAIN ANALYZE shows of workers: groups of all processes make the rows
-- of the partial aggregation, and each has memory of its own; when that is full,
-- the groups are returned, and nothing goes to files
create function hgj_agg_processes(q text, out nodes int, out workers int, out leader bool, out rows_agree bool, out emptied bool, out worker_emptied bool, out spilled bool, out within_limit bool) language plpgsql as $$
declare
	line text;
	aggregation bool := false;
	node_rows numeric := -1;
	groups numeric := 0;
	loops numeric;
begin
	nodes := 0;
	workers := 0;
	leader := false;
	emptied := false;
	worker_emptied := false;
	spilled := false;
	within_limit := true;
	for line in execute 'explain (analyze, buffers off, costs off, timing off, summary off) ' || q loop
		if line ~ '->' or nodes = 0 then
			aggregation := line ~ 'Parallel Custom Scan \(HashGraphAgg\)';
			nodes := nodes + aggregation::int;
			if aggregation then
				loops := substring(line from 'loops=(\d+)');
				node_rows := substring(line from 'rows=(\d+)')::numeric * loops;
			end if;
		end if;
		if aggregation and line ~ 'Groups: ' then
			groups := groups + substring(line from 'Groups: (\d+)')::numeric;
			if line ~ 'Worker \d+:  Groups' then
				workers := workers + 1;
				worker_emptied := worker_emptied or line ~ 'Times Emptied: [1-9]';
			else
				leader := true;
				emptied := line ~ 'Times Emptied: [1-9]';
			end if;
			spilled := spilled or line ~ 'Spilled Rows';
			within_limit := within_limit and substring(line from 'Memory Usage: (\d+)kB')::int < 1.2 * (select setting::int from pg_settings where name = 'work_mem') * current_setting('hash_mem_multiplier')::float8;
		end if;
	end loop;
	-- EXPLAIN rounds the average
	rows_agree := abs(node_rows - groups) <= loops;
end $$;
set hashgraph_join.force = on;
-- enough for the groups of one process, which may happen to get all rows
set work_mem = '4MB';
select * from hgj_agg_processes('select f.t, count(*), sum(f.v) from f join d using (k) group by f.t');
set parallel_leader_participation = off;
select * from hgj_agg_processes('select f.t, count(*), sum(f.v) from f join d using (k) group by f.t');
select * from hgj_agg_processes('select count(*), sum(f.v) from f join d using (k)');
set work_mem = '64kB';
select * from hgj_agg_processes('select f.id, f.t, count(*), sum(f.v) from f join d using (k) group by f.id, f.t');
reset work_mem;
select jsonb_path_query_array(hgj_plan_json('select count(*), sum(f.v) from f join d using (k)'), 'strict $.**."Worker Aggregations"[*]."Groups"') as groups;
reset parallel_leader_participation;
reset hashgraph_join.force;

-- rescans of a Gather
set enable_material = off;
set enable_memoize = off;
create temp table rescans (q text);
insert into rescans values
	('select g, x.n, x.s from generate_series(1, 4) g, (select count(*) as n, sum(f.v * d.w) as s from f join d using (k)) x where x.n > g'),
	('select g, x.n from generate_series(1, 4) g left join (select count(*) as n from f left join d on f.k = d.k and f.v < d.w where d.k is null) x on x.n > g'),
	('select g, x.id from generate_series(1, 3) g left join (select f.id from f join d using (k) where f.v > 5 offset 0) x on x.id > g * 3000'),
	('select g, (select sum(f.v) from f where exists (select from d where f.k = d.k) and f.id > 0) from generate_series(1, 3) g');
select q, hgj_check_parallel(q) as says from rescans;
set parallel_leader_participation = off;
select q, hgj_check_parallel(q) as says from rescans;
-- the table that a worker had is gone, that of the leader may stay
set work_mem = '64kB';
select q, hgj_check_parallel(q) as says from rescans;
reset work_mem;
reset parallel_leader_participation;
reset enable_material;
reset enable_memoize;

-- LIMIT stops workers early
set hashgraph_join.force = on;
select count(*) from (select f.id, d.w from f join d using (k) order by d.w + f.id desc limit 7) x;
select count(*) from (select f.id from f join d using (k) limit 7) x;
-- a prepared statement, with parameters in workers
prepare params(int, int) as select count(*), sum(f.v) from f join d on f.k = d.k + $1 and f.v > $2;
set plan_cache_mode = force_generic_plan;
execute params(0, 3);
execute params(1, 10);
set hashgraph_join.enabled = off;
deallocate params;
prepare params(int, int) as select count(*), sum(f.v) from f join d on f.k = d.k + $1 and f.v > $2;
execute params(0, 3);
execute params(1, 10);
deallocate params;
reset plan_cache_mode;
reset hashgraph_join.enabled;
-- cursors never go to workers
begin;
declare cursed cursor for select f.id < 12 as low from f join d using (k) where f.id < 12;
fetch 3 from cursed;
move all in cursed;
close cursed;
commit;

-- what EXPLAIN ANALYZE knows about workers
create function hgj_worker_lines(q text) returns setof text language plpgsql as $$
declare
	line text;
begin
	for line in execute 'explain (analyze, buffers off, costs off, timing off, summary off) ' || q loop
		if line ~ 'Workers Built|Build Rows' then
			return next regexp_replace(regexp_replace(trim(line), 'Memory Usage: \d+kB', 'Memory Usage: NkB'), 'Built: [12]$', 'Built: some');
		end if;
	end loop;
end $$;
set hashgraph_join.segments = csr;
set hashgraph_join.build = v1;
select line from hgj_worker_lines('select f.id, d.w from f join d using (k)') line where line !~ 'Workers';
set parallel_leader_participation = off;
select hgj_worker_lines('select f.id, d.w from f join d using (k)');
select hgj_worker_lines('select g, x.n from generate_series(1, 4) g, (select count(*) as n from f join d using (k)) x where x.n > g');
set max_parallel_workers = 0;
select hgj_worker_lines('select f.id, d.w from f join d using (k)');
reset max_parallel_workers;
set hashgraph_join.engine = cuda;
create function hgj_worker_fallback(q text) returns setof text language plpgsql as $$
declare
	line text;
begin
	for line in execute 'explain (analyze, buffers off, costs off, timing off, summary off) ' || q loop
		return query select trim(regexp_replace(line, '\(.*\)', '(...)')) where line ~ 'Engine|Fallback';
	end loop;
end $$;
select hgj_worker_fallback('select f.id, d.w from f join d using (k)');
reset hashgraph_join.engine;
reset parallel_leader_participation;

-- all of a plan in one worker
reset all;
-- debug_parallel_query from PostgreSQL 16 on
select set_config(name, 'on', false) as parallel from pg_settings where name in ('force_parallel_mode', 'debug_parallel_query');
select q, hgj_check(q, nodes) as says from queries;
set hashgraph_join.force = on;
select count(*) from hgj_worker_lines('select f.id, d.w from f join d using (k)');
reset all;
drop table f, d, e;
