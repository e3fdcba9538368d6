-- Joins and aggregations that read the groups of a HashGraphAgg by batches.
create schema agg_batches;
set search_path = agg_batches, public;
create table facts (id int, k int, g bigint, t text, n numeric(8,2), x numeric, f float8, d date, iv interval) with (autovacuum_enabled = off);
insert into facts select i, nullif(i * 7919 % 500, 17), i % 7, case when i % 11 > 0 then 'text ' || i % 60 end, nullif(i % 900, 3) / 4.0, (i % 77) / 3.0, i / 8.0,
	date '2024-01-01' + i % 300, i % 50 * interval '1 hour' from generate_series(1, 30000) i;
create table dims (k int, g int8, t varchar(12), n numeric) with (autovacuum_enabled = off);
insert into dims select nullif(i % 640, 5), i % 9, 'text ' || i % 70, (i % 300) / 4.0 from generate_series(1, 1500) i;
analyze facts, dims;
set hashgraph_join.min_rows = 0;
set enable_indexscan = off;

-- The answer is PostgreSQL's, and the groups come as they should: "batches", or why not.
create function groups_come(q text, how text default 'batches', nodes int default 1) returns text language plpgsql as $$
begin
	perform set_config('hashgraph_join.force', 'on', true);
	if hgj_lines(q, 'Source: ' || how) = 0 then
		return 'not by ' || how || ': ' || q;
	end if;
	return hgj_check(q, nodes, nodes > 0);
end $$;

create table queries (n int, q text);
insert into queries values
	-- every kind of value, and of key; NULL groups; on either side
	(1, 'select d.k, d.t, s, c, a, l, m, b from dims d join (select k, sum(n) s, count(*) c, avg(n) a, min(t) l, max(d) m, bool_or(g > 3) b from facts group by k) q on q.k = d.k'),
	(2, 'select d.k, d.t, s, c, a, l, m from dims d left join (select k, sum(x) s, count(n) c, avg(g) a, max(f) l, sum(iv) m from facts group by k) q on q.k = d.k'),
	(3, 'select d.k, q.t, s from dims d right join (select t, sum(g) s from facts group by t) q on q.t = d.t'),
	(4, 'select d.k, q.t, q.g, s from dims d full join (select t, g, min(n) s from facts group by t, g) q on q.t = d.t and q.g = d.g'),
	(5, 'select k, t from dims d where exists (select from (select k, sum(n) s from facts group by k having sum(n) > 5000) q where q.k = d.k and q.s > d.n)'),
	(6, 'select k, t from dims d where not exists (select from (select k, g, count(*) c from facts group by k, g) q where q.k = d.k and q.g = d.g)'),
	-- groups of groups, on both sides, in a chain of joins
	(7, 'select a.k, s, c from (select k, sum(n) s from facts group by k) a join (select k, count(*) c from dims group by k) b on a.k = b.k'),
	(8, 'select a.g, s, z, d.t from (select g, sum(n) s from facts group by g) a join dims d on d.g = a.g join (select t, count(*) z from facts group by t) b on b.t = d.t where d.k < 50'),
	(10, 'select d.t, count(*), sum(q.s), min(q.l) from dims d join (select k, sum(n) s, min(t) l from facts group by k) q on q.k = d.k group by d.t'),
	-- HAVING that few pass, that none passes; one group of all
	(11, 'select d.k, s from dims d join (select k, sum(n) s from facts where g = 1 group by k having count(*) > 8 and min(t) is not null) q on q.k = d.k'),
	(12, 'select d.k, s from dims d left join (select k, sum(n) s from facts group by k having count(*) > 80000) q on q.k = d.k'),
	(13, 'select d.k, q.* from dims d left join (select max(k) m, sum(x) s, avg(f) a from facts) q on q.m = d.k');
select n, groups_come(q) from queries order by n;
-- groups of groups alone
create table of_groups (n int, q text);
insert into of_groups values
	(1, 'select c, count(*), min(k), sum(s) from (select k, count(n) c, sum(n) s from facts group by k) q group by c'),
	(2, 'select count(*), sum(s), avg(s), max(t), count(t) from (select t, sum(n) s from facts group by t) q'),
	(3, 'select g, count(*), sum(c) from (select t, g, count(*) c from facts group by t, g) q group by g'),
	(4, 'select c, count(*) from (select m, count(*) c from (select k, max(g) m from facts group by k) q group by m) r group by c'),
	(5, 'select s, count(*) from (select k, sum(g) s from facts group by k having sum(g) % 3 = 1) q group by s');
select n, groups_come(q, nodes => 0) from of_groups order by n;
set work_mem = '64kB';
select n, groups_come(q, nodes => 0) from of_groups order by n;
reset work_mem;
-- groups that do not fit, and joins that take several passes over them
set work_mem = '64kB';
select n, groups_come(q) from queries where n in (1, 3, 4, 6, 8, 10) order by n;
reset work_mem;
-- by workers, who divide the groups among themselves or make them below a Gather
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
set max_parallel_workers_per_gather = 2;
select n, hgj_check(q) from queries order by n;
select n, hgj_check(q, 0, false) from of_groups order by n;
set max_parallel_workers_per_gather = 0;

-- what is computed from groups, and by PostgreSQL's functions, comes in slots
select groups_come('select d.k, s from dims d join (select k, sum(n) * 2 s from facts group by k) q on q.k = d.k', 'tuples \(values that are computed row by row\)');
select groups_come('select d.k, s from dims d join (select k, stddev(f)::numeric(20,6) s from facts group by k) q on q.k = d.k', 'tuples \(values that are computed row by row\)');

-- rescans: with other parameters, and with the same; a row at a time
select hgj_check('select d.k, l.s from (select distinct g from dims) h, lateral (select d.k, q.s from dims d join (select k, sum(n) s from facts where facts.g = h.g group by k) q on q.k = d.k limit 7000) d(k, s), lateral (select d.s) l');
select hgj_check('select a.g, (select sum(q.s) from dims d join (select k, sum(n) s from facts group by k) q on q.k = d.k where d.g = a.g) from (select distinct g from dims) a');
begin;
set local hashgraph_join.force = on;
declare c cursor for select d.k, q.s from dims d join (select k, sum(n) s from facts group by k having sum(n) > 1) q on q.k = d.k;
fetch 0 from c;
move 5 in c;
close c;
commit;
-- an error of a group that nobody asks for does not come
select hgj_says('select 1 from (select k, sum(g) s from facts group by k having 1 / (min(id) - 250) < 5) q left join (select k from dims limit 3) d on d.k = q.k limit 1');
set hashgraph_join.force = on;
select hgj_says('select 1 from (select k, sum(g) s from facts group by k having 1 / (min(id) - 250) < 5) q left join (select k from dims limit 3) d on d.k = q.k limit 1');
select hgj_says('select count(*) from (select k, sum(g) s from facts group by k having 1 / (min(id) - 250) < 5) q left join (select k from dims limit 3) d on d.k = q.k');
-- rows are counted
create function counted(q text) returns setof text language plpgsql as $$
declare
	line text;
begin
	for line in execute 'explain (analyze, buffers off, costs off, timing off, summary off) ' || q loop
		if line ~ 'actual rows' then
			return next regexp_replace(line, 'rows=(\d+)\.00', 'rows=\1');
		end if;
	end loop;
end $$;
select counted('select d.g, count(*) from dims d join (select k, count(*) c from facts group by k having count(*) > 3 and k > 400) q on q.k = d.k group by d.g');
reset hashgraph_join.force;

set client_min_messages = warning;
drop schema agg_batches cascade;
