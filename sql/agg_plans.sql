-- Which aggregations become a HashGraphAgg, and why others do not.  Their
-- values are for aggregates.sql to test.
-- (without JIT, which has messages of its own at debug1)
set jit = off;
create table f (id int, k int, t text, v int) with (autovacuum_enabled = off);
insert into f select g, g % 900, 'text ' || g % 500, g % 37 from generate_series(1, 20000) g;
create table d (k int, t text, w int) with (autovacuum_enabled = off);
insert into d select g % 1200, 'text ' || g % 700, g % 11 from generate_series(1, 3000) g;
create table p (id int primary key, t text, j json, n numeric) with (autovacuum_enabled = off);
insert into p select g, 'text ' || g, '{}', g from generate_series(1, 1000) g;
analyze f, d, p;

-- what the nodes of a plan return that end on one of ours
create function hgj_output(q text) returns setof text language plpgsql as $$
declare
	line text;
	agg bool := false;
begin
	for line in execute 'explain (verbose, costs off) ' || q loop
		if line ~ 'HashGraphAgg' then
			agg := true;
		elsif agg and line ~ '->' then
			agg := false;
		elsif agg and line ~ 'Output: |Group Key: ' then
			-- from PostgreSQL 16 on, a constant is nothing to group by
			return next regexp_replace(trim(line), '(Group Key: .*), ''constant''::text', '\1');
		end if;
	end loop;
end $$;

set hashgraph_join.force = on;
set hashgraph_join.require = aggregate;
set client_min_messages = debug1;
-- without and with groups, expressions above and below, HAVING
select hgj_shape('select count(*), sum(f.v) from f join d using (k)');
select hgj_shape('select d.w, count(*), sum(f.v) from f join d using (k) group by d.w having count(*) > 4 order by 2');
select hgj_output('select d.w, count(*), sum(f.v + d.w) + d.w, avg(f.v) filter (where f.id > 3) from f join d using (k) group by d.w having max(f.id) > d.w');
select hgj_output('select f.v % 3, sum(f.v % 3), max(f.v), (f.v % 3) * 2 from f join d using (k) group by f.v % 3');
select hgj_output('select sum(f.v) + sum(f.v), sum(f.v), count(f.v), count(*) + count(*) from f join d using (k)');
select hgj_output('select f.v, d.w from f join d using (k) group by f.v, d.w');
select hgj_output('select f.t, ''constant''::text as c, count(*) from f join d using (k) group by 1, 2');
select hgj_output('select coalesce(x.w, 0), count(*) from f left join (select k, coalesce(w, -1) as w from d) x using (k) group by 1');
select hgj_output('select x.w, count(x.w) from f left join (select k, coalesce(w, -1) as w from d) x using (k) group by 1');
-- every join type, stars, subqueries, set operations, above and below
select hgj_shape('select count(*) from f full join d using (k)');
select hgj_shape('select count(*) from f where exists (select from d where d.k = f.k)');
select hgj_shape('select count(*) from f where not exists (select from d where d.k = f.k)');
select hgj_shape('select p.t, d.w, count(*) from f join d using (k) join p on p.id = f.v group by 1, 2');
select hgj_shape('select x.n, count(*) from (select k, count(*) as n from f join d using (k) group by k) x join d using (k) group by 1');
select hgj_shape('select count(*) from f join d using (k) union all select max(d.w) from f join d using (k)');
select hgj_shape('select d.w, sum(count(*)) over (order by d.w) from f join d using (k) group by d.w');
select hgj_shape('select distinct count(*) from f join d using (k) group by d.w');
select hgj_shape('select count(*), generate_series(1, count(*)) from f join d using (k) group by f.v');
select hgj_shape('select id, (select count(*) from f join d using (k) where f.v > p.id) from p where id < 3');
select hgj_shape('select sum(f.v * (select max(p.n) from p where p.id = f.id)), sum(f.v * (select max(p.id) from p)) from f join d using (k)');
select hgj_shape('insert into d select count(*), f.t, sum(f.v) from f join d using (k) group by f.t');

-- columns that depend on a grouped primary key
select hgj_output('select p.id, p.t, count(*) from f join p on f.k = p.id group by p.id');
select hgj_output('select p.id, count(*) from f join p on f.k = p.id group by p.id, p.t having max(f.t) > p.t');
select hgj_output('select f.v, p.n + 1, count(*) from f left join p on f.k = p.id group by p.id, f.v');
select hgj_output('select f.v, count(*) from f left join p on f.k = p.id group by p.id, f.v order by p.t || f.v');

-- not so where the table has children, with keys of their own
set client_min_messages = notice;
create table family (id int primary key, t text);
create table child (primary key (id)) inherits (family);
insert into family values (1, 'mother');
insert into child values (1, 'child'), (2, 'another');
analyze family, child;
set client_min_messages = debug1;
select hgj_shape('select x.id, x.t, count(*) from f join family x on f.v = x.id group by x.id');
select hgj_shape('select x.id, x.t, count(*) from f join child x on f.v = x.id group by x.id');

-- declined
select hgj_shape('select d.w, count(*) from f join d using (k) group by rollup (d.w)');
select hgj_shape('select d.w, grouping(d.w), count(*) from f join d using (k) group by d.w');
select hgj_shape('select d.w, count(*) from f join d using (k) group by d.w having grouping(d.w) = 0');
select hgj_shape('select percentile_disc(0.5) within group (order by f.v) from f join d using (k)');
select hgj_shape('select rank(3) within group (order by f.v) from f join d using (k)');
select hgj_shape('select sum(random() * f.v) from f join d using (k)');
select hgj_shape('select count(*) filter (where random() < f.v) from f join d using (k)');
select hgj_shape('select count(*) from f join d using (k) group by row(f.v, d.w)');
select hgj_shape('select count(*) from f join d using (k) group by f.id::text::bit(8)::bit varying');
select hgj_shape('select p.id, p.j::text, count(*) from f join p on f.k = p.id group by p.id');
set enable_hashagg = off;
select hgj_shape('select f.v, count(*) from f join d using (k) group by f.v');
select hgj_shape('select count(*) from f join d using (k)');
reset enable_hashagg;
-- by PostgreSQL's functions (transitions.sql): no word, either
select hgj_shape('select count(distinct f.v + 0) from f join d using (k)');
select hgj_shape('select sum(f.v order by f.id) from f join d using (k)');
select hgj_shape('select array_agg(f.v), sum(f.v) from f join d using (k)');
create function hgj_last(int, variadic int[]) returns int language sql immutable as 'select $2[1]';
create aggregate hgj_variadic(variadic int[]) (sfunc = hgj_last, stype = int);
select hgj_shape('select hgj_variadic(f.v, d.w) from f join d using (k)');
create aggregate hgj_own_sum(int) (sfunc = int4pl, stype = int);
select hgj_shape('select hgj_own_sum(f.v) from f join d using (k)');
-- no aggregation of a join, or of a table
select hgj_shape('select count(*) from generate_series(1, 3)');
select hgj_shape('select distinct d.w from f join d using (k)');
select hgj_shape('select count(*) from (select f.id from f join d using (k) limit 7) x');
select hgj_shape('select count(*) from f join d using (k) group by generate_series(1, f.v)');
-- not wanted
set hashgraph_join.aggregate = off;
select hgj_shape('select count(*) from f join d using (k)');
reset hashgraph_join.aggregate;

set hashgraph_join.require = off;
set hashgraph_join.force = off;
set hashgraph_join.min_rows = 0;
set hashgraph_join.startup_cost = 0;
set enable_mergejoin = off;
-- by cost
set hashgraph_join.emit_tuple_cost = 0.001;
select hgj_shape('select d.w, sum(f.v) from f join d using (k) group by d.w');
-- so dear that somebody would ask for a GPU
set hashgraph_join.engine = cpu;
set hashgraph_join.agg_tuple_cost = 1;
select hgj_shape('select d.w, sum(f.v) from f join d using (k) group by d.w');
-- which a test may not want; a declined aggregation beside it is no matter
set hashgraph_join.require = aggregate;
explain select d.w, sum(f.v) from f join d using (k) group by d.w;
explain select f.v, d.w, count(*) from f join d using (k) group by f.v, d.w;
set hashgraph_join.force = on;
select hgj_shape('select count(*) from f join d using (k) union all select percentile_disc(0.5) within group (order by d.w) from f join d using (k)');
set hashgraph_join.aggregate = off;
select hgj_shape('select count(*) from f join d using (k)');
reset client_min_messages;
reset all;

-- partial aggregation
set hashgraph_join.require = aggregate;
set hashgraph_join.force = on;
set parallel_setup_cost = 0;
-- what workers share is to outweigh what each of them does
set hashgraph_join.agg_tuple_cost = 1;
set hashgraph_join.build_tuple_cost = 0;
set parallel_tuple_cost = 0;
set hashgraph_join.parallel_aggregate = partial;
set min_parallel_table_scan_size = 0;
set max_parallel_workers_per_gather = 2;
select hgj_shape('select count(*), sum(f.v) from f join d using (k)');
select hgj_shape('select d.w, count(*), avg(f.v) from f join d using (k) group by d.w having count(*) > 3 and max(f.v) > d.w order by d.w');
select hgj_output('select d.w, count(*), avg(f.v) + 1 from f join d using (k) group by d.w having count(*) > 3 and max(f.v) > d.w order by d.w');
-- (not grouped before the join)
set hashgraph_join.rewrite = off;
select hgj_output('select p.id, p.t, count(*) from f join p on f.v = p.id group by p.id');
reset hashgraph_join.rewrite;
select hgj_shape('select d.w from f join d using (k) group by d.w');
select hgj_shape('select p.t, d.w, count(*) from f join d using (k) join p on p.id = f.v group by 1, 2');
-- a function that only the leader may run
select hgj_shape('select sum(f.v + pg_backend_pid() * 0) from f join d using (k)');
reset hashgraph_join.agg_tuple_cost;
-- force alone does not make a plan parallel
reset parallel_setup_cost;
select hgj_shape('select count(*), sum(f.v) from f join d using (k)');
reset all;

-- a column that a join below returns twice, from a level that has been removed
set hashgraph_join.force = on;
select hgj_shape('select a, max(b) from (select d.t a, d.t b, f.v from f join d using (k) offset 0) s join p on p.id = s.v + 1 group by a');
reset hashgraph_join.force;
select hgj_check_agg('select a, max(b), count(*) from (select d.t a, d.t b, f.v from f join d using (k) offset 0) s join p on p.id = s.v group by a', 2);
select hgj_check_agg('select a, b, count(*) from (select d.t a, d.t b, f.v from f join d using (k) offset 0) s join p on p.id = s.v group by a, b', 2);

-- a dictionary with more values than memory has room for costs few passes; wd
-- is not analyzed: 200 values are expected
create table wd (k int, t text) with (autovacuum_enabled = off);
insert into wd select g, 'another text ' || g from generate_series(1, 9000) g;
create table wf (k int, v int) with (autovacuum_enabled = off);
insert into wf select g % 9000, g from generate_series(1, 30000) g;
analyze wf;
create function hgj_passes(q text) returns int language plpgsql as $$
declare
	line text;
begin
	for line in execute 'explain (analyze, buffers off, costs off, timing off) ' || q loop
		if line ~ 'Passes: ' then
			return substring(line from 'Passes: (\d+)');
		end if;
	end loop;
	return 1;
end $$;
set hashgraph_join.force = on;
set hashgraph_join.engine = cpu;
set work_mem = '192kB';
set hashgraph_join.spill = passes;
select hgj_shape('select t, count(*), sum(v) from wf join wd using (k) where wd.k % 2 >= 0 and wd.k + 1 > 0 and wd.k + 2 > 0 group by t');
select hgj_passes('select t, count(*), sum(v) from wf join wd using (k) where wd.k % 2 >= 0 and wd.k + 1 > 0 and wd.k + 2 > 0 group by t') between 2 and 4 as few;
reset hashgraph_join.force;
select hgj_check_agg('select t, count(*), sum(v) from wf join wd using (k) where wd.k % 2 >= 0 and wd.k + 1 > 0 and wd.k + 2 > 0 group by t');
analyze wd;
set hashgraph_join.spill = auto;
select hgj_check_agg('select t, count(*), sum(v) from wf join wd using (k) where wd.k % 2 >= 0 and wd.k + 1 > 0 and wd.k + 2 > 0 group by t');
reset all;
drop table wd, wf;
drop function hgj_passes;

-- partition by partition
create table pf (k int, v int) partition by hash (k);
create table pf1 partition of pf for values with (modulus 2, remainder 0);
create table pf2 partition of pf for values with (modulus 2, remainder 1);
create table pd (k int, w int) partition by hash (k);
create table pd1 partition of pd for values with (modulus 2, remainder 0);
create table pd2 partition of pd for values with (modulus 2, remainder 1);
insert into pf select g % 500, g % 7 from generate_series(1, 5000) g;
insert into pd select g % 600, g % 9 from generate_series(1, 2000) g;
analyze pf, pd;
set hashgraph_join.force = on;
select hgj_shape('select k, count(*), sum(v) from pf join pd using (k) group by k having min(w) < 3');
set enable_partitionwise_join = on;
set enable_partitionwise_aggregate = on;
select hgj_shape('select k, count(*), sum(v) from pf join pd using (k) group by k having min(w) < 3');
-- in parts, each with an aggregation of its own
select hgj_shape('select w, count(*) from pf join pd using (k) group by w');
-- above an Append of joins
set enable_partitionwise_aggregate = off;
select hgj_shape('select w, count(*) from pf join pd using (k) group by w');
reset all;
drop table f, d, p, pf, pd, child, family;
drop function hgj_last cascade;
drop aggregate hgj_own_sum(int);
