-- What workers take to begin and to end is charged to plans of ours, once for each Gather,
-- whatever is below it, and in so far as parallel_setup_cost says that they cost anything.
-- The time itself is said here: test/t/042_worker_time.pl looks whether it is measured.
create schema worker_time;
set search_path = worker_time, public;
set jit = off;
set min_parallel_table_scan_size = 0;
set max_parallel_workers_per_gather = 2;
-- a thousandth of the default, and so a thousandth of the charge
set parallel_setup_cost = 1;
set parallel_tuple_cost = 0;
set work_mem = '64MB';
set hashgraph_join.processors = 64;
set hashgraph_join.startup_cost = 0;
set hashgraph_join.min_rows = 0;
create table f (id int, k int, s int, v int) with (autovacuum_enabled = off);
insert into f select g, g % 3000, g % 200, g % 37 from generate_series(1, 60000) g;
create table d (k int, g int) with (autovacuum_enabled = off);
insert into d select g, g % 50 from generate_series(1, 2500) g;
create table s (s int, r int) with (autovacuum_enabled = off);
insert into s select g, g % 7 from generate_series(1, 150) g;
create table fp (k int, v int) partition by hash (k);
create table fp1 partition of fp for values with (modulus 2, remainder 0) with (autovacuum_enabled = off);
create table fp2 partition of fp for values with (modulus 2, remainder 1) with (autovacuum_enabled = off);
insert into fp select g % 3000, g from generate_series(1, 30000) g;
create table dp (k int, g int) partition by hash (k);
create table dp1 partition of dp for values with (modulus 2, remainder 0) with (autovacuum_enabled = off);
create table dp2 partition of dp for values with (modulus 2, remainder 1) with (autovacuum_enabled = off);
insert into dp select g, g % 50 from generate_series(1, 2500) g;
vacuum analyze f, d, s, fp, dp;

-- what a plan has: Gathers, nodes of ours, hash joins of PostgreSQL's; and what it costs
create function plan_of(q text, out gathers int, out ours int, out stock int, out cost numeric) language plpgsql as $$
declare
	line text;
begin
	gathers := 0; ours := 0; stock := 0;
	for line in execute 'explain ' || q loop
		cost := coalesce(cost, substring(line from 'cost=[0-9.]+\.\.([0-9.]+)')::numeric);
		gathers := gathers + (line ~ 'Gather')::int;
		ours := ours + (line ~ 'HashGraph')::int;
		stock := stock + (line ~ 'Hash (\w+ )*Join')::int;
	end loop;
end $$;
create function at_time(t text, q text, out gathers int, out ours int, out stock int, out cost numeric) language plpgsql as $$
begin
	perform set_config('hashgraph_join.worker_time', t, true);
	select p.* into gathers, ours, stock, cost from plan_of(q) p;
end $$;
create table queries (n int, q text);
insert into queries values
	(1, 'select f.id, d.g from f join d using (k)'),
	(2, 'select f.id, d.g, s.r from f join d using (k) join s using (s)'),
	(3, 'select count(*), sum(f.v) from f join d using (k)'),
	(4, 'select d.g, s.r, count(*), sum(f.v) from f join d using (k) join s using (s) group by 1, 2'),
	(5, 'select d.g, count(*) from f join d using (k) group by 1 order by 1'),
	(6, 'select count(*), sum(v) from f where v > 3'),
	(7, 'select s, count(*) from f group by s'),
	(8, 'select d.g, count(distinct f.v) from f join d using (k) group by 1'),
	(9, 'select count(*) from f where k in (select k from d where g < 40)'),
	(10, 'select count(*), count(d.k) from f full join d using (k)'),
	(11, 'select f.id from f left join d using (k) where d.k is null'),
	(12, 'select f.id, d.g from f join d using (k) order by f.id'),
	(13, 'select f.id, d.g from f join d using (k) join s using (s) where s.r < 3 limit 5000');

-- for nothing, they are there; if they take long, they are not, unless they sort, nor is a plan of PostgreSQL's that has some
select n, free.gathers, free.ours, free.stock, dear.gathers as dear_gathers, dear.ours as dear_ours, dear.stock as dear_stock
	from queries, at_time('0', q) free, at_time('2000', q) dear order by n;
-- for nothing they are, whatever they take, where parallel_setup_cost says so
set parallel_setup_cost = 0;
select n, dear.gathers, dear.cost = free.cost as charged_nothing from queries, at_time('0', q) free, at_time('2000', q) dear order by n;
set parallel_setup_cost = 1;
-- so they are under force
set hashgraph_join.force = on;
select n, dear.gathers = free.gathers as no_matter from queries, at_time('0', q) free, at_time('2000', q) dear order by n;
reset hashgraph_join.force;

-- once a Gather: 500 a millisecond, less what parallel_setup_cost stands for, and that times a thousandth
select n, taken.gathers, round(taken.cost - free.cost, 1) as charged from queries, at_time('0', q) free, at_time('10', q) taken
	where free.gathers = 1 order by n;
set hashgraph_join.parallel_build = shared;
select n, taken.gathers, round(taken.cost - free.cost, 1) as charged from queries, at_time('0', q) free, at_time('10', q) taken where n < 5 order by n;
set hashgraph_join.parallel_build = private;
select n, taken.gathers, round(taken.cost - free.cost, 1) as charged from queries, at_time('0', q) free, at_time('10', q) taken where n < 5 order by n;
reset hashgraph_join.parallel_build;
set hashgraph_join.parallel_aggregate = partial;
select n, taken.gathers, round(taken.cost - free.cost, 1) as charged from queries, at_time('0', q) free, at_time('10', q) taken where n in (4, 5, 7) order by n;
set hashgraph_join.parallel_aggregate = exchange;
select n, taken.gathers, round(taken.cost - free.cost, 1) as charged from queries, at_time('0', q) free, at_time('10', q) taken where n in (4, 5, 7) order by n;
reset hashgraph_join.parallel_aggregate;
-- PostgreSQL's aggregation over workers' joins of ours
set hashgraph_join.aggregate = off;
select n, taken.gathers, round(taken.cost - free.cost, 1) as charged from queries, at_time('0', q) free, at_time('10', q) taken where n in (3, 4) order by n;
reset hashgraph_join.aggregate;
-- partitions share it
set enable_partitionwise_join = on;
set enable_partitionwise_aggregate = on;
select taken.gathers, taken.ours, round(taken.cost - free.cost, 1) as charged from (values
	('select fp.v, dp.g from fp join dp using (k)'),
	('select count(*), sum(fp.v) from fp join dp using (k)'),
	('select g, count(*), sum(fp.v) from fp join dp using (k) group by g')) x (q), at_time('0', q) free, at_time('10', q) taken;
reset enable_partitionwise_join;
reset enable_partitionwise_aggregate;
-- more workers take longer, fewer processors too
set max_parallel_workers_per_gather = 4;
alter table f set (parallel_workers = 4);
select taken.gathers, round(taken.cost - free.cost, 1) as charged from queries, at_time('0', q) free, at_time('10', q) taken where n = 3;
set hashgraph_join.processors = 3;
select taken.gathers, round(taken.cost - free.cost, 1) as charged from queries, at_time('0', q) free, at_time('10', q) taken where n = 3;
set hashgraph_join.processors = 64;
alter table f reset (parallel_workers);
set max_parallel_workers_per_gather = 2;

-- PostgreSQL's own plans are as they were
set hashgraph_join.enabled = off;
select n, dear.gathers > 0 as gathers, dear.cost = free.cost as the_same from queries, at_time('0', q) free, at_time('2000', q) dear order by n;
reset hashgraph_join.enabled;

-- a table that workers of PostgreSQL's would read for a join of ours in one process
set hashgraph_join.worker_time = '2000';
explain (costs off) select count(*) from (select k, count(*) from f group by k) x join d using (k);
explain (costs off) select f.v from f join d using (k) where f.v % 37 = 5 and f.s % 20 = 5;

-- who asks is told
select level, node, taken, reason from hashgraph_join_why('select d.g, count(*), sum(f.v) from f join d using (k) group by d.g');
select level, node, taken, reason from hashgraph_join_why('select f.id, d.g from f join d using (k)');
select level, node, taken, reason from hashgraph_join_why('select count(*), sum(v) from f');
set hashgraph_join.worker_time = 0;
select level, node, taken, reason from hashgraph_join_why('select d.g, count(*), sum(f.v) from f join d using (k) group by d.g');
-- nor is it said where there would be none in any case
set max_parallel_workers_per_gather = 0;
select level, node, taken, reason from hashgraph_join_why('select d.g, count(*), sum(f.v) from f join d using (k) group by d.g');

reset all;
set client_min_messages = warning;
-- a table that processes build together is built by as many as the other side is planned for
create table large (k int, v int) with (autovacuum_enabled = off, parallel_workers = 6);
insert into large select g % 50000, g from generate_series(1, 400000) g;
create table small (k int) with (autovacuum_enabled = off, parallel_workers = 1);
insert into small select g from generate_series(1, 40000) g;
vacuum analyze large, small;
create function workers_of(q text) returns setof text language plpgsql as $$
declare
	line text;
begin
	for line in execute 'explain ' || q loop
		if line ~ 'Workers Planned|Build Side' then
			return next btrim(line);
		end if;
	end loop;
end $$;
set max_parallel_workers_per_gather = 8;
set parallel_setup_cost = 10;
set hashgraph_join.parallel_build = shared;
set hashgraph_join.build_tuple_cost = 0.0001;
set hashgraph_join.worker_time = 100;
select workers_of('select count(*) from large full join small using (k)');
drop schema worker_time cascade;
reset client_min_messages;
