-- DISTINCT aggregates by grouping twice: answers are those of PostgreSQL, which sorts,
-- and two HashGraphAggs are required; for what cannot be done so, its functions are called.
create table sold (id int, k int, g int, s text, x4 int, x8 int8, x2 int2, xt text, xn numeric(6,2), xf numeric, f float8, d date, y numeric(9,2)) with (autovacuum_enabled = off);
insert into sold select i, i % 37, nullif(i % 13, 0), 'group ' || i % 7, nullif(i % 101 - 50, 7), (i % 97)::int8 * 90000000000000000, i % 5,
	case when i % 11 > 0 then 'text ' || i % 29 end, case i % 17 when 0 then null when 1 then 'NaN' else (i % 53) / 4.0 end, (array[1, 1.0, 1.00, 2.5])[1 + i % 4], (i % 10) / 3.0,
	case when i % 19 > 0 then date '2000-01-01' + i % 23 end, case when i % 23 > 0 then (i % 1000) / 8.0 end
	from generate_series(1, 4000) i;
create table sellers (k int primary key, r int, nk numeric(4,1));
insert into sellers select i, i % 4, i / 2.0 from generate_series(0, 34) i;
analyze sold;
analyze sellers;
select count(*), count(distinct x4), count(distinct x8), count(distinct xt), count(distinct xn) from sold;
create function hgj_forced_lines(q text, pattern text) returns int language sql
	set hashgraph_join.force = on as $$ select hgj_lines(q, pattern) $$;
create function hgj_check_distinct(q text) returns text language sql as $$
	select case when hgj_forced_lines(q, 'HashGraphAgg') < 2 then 'not grouped twice: ' || q else hgj_check_agg(q, 0) end
$$;
-- one aggregate, several, of every type; without groups, and without rows
select hgj_check_distinct(format('select %s, count(distinct %s) from sold join sellers using (k) group by %1$s', g, x))
	from unnest('{g,s,r,d,xn}'::text[]) g, unnest('{x4,x8,x2,xt,xn,xf,f,d,s,r}'::text[]) x where g <> x;
select hgj_check_distinct(format('select s, g, count(distinct %1$s), sum(distinct %1$s), avg(distinct %1$s) from sold join sellers using (k) group by 1, 2', x)) from unnest('{x4,x8,x2,xn}'::text[]) x;
select hgj_check_distinct(format('select count(distinct %1$s), sum(distinct %1$s), avg(distinct %1$s) from sold join sellers using (k) where id < %2$s', x, n)) from unnest('{x4,x8,x2,xn}'::text[]) x, unnest('{0,50,5000}'::int[]) n;
select hgj_check_distinct('select count(distinct x4), count(*), count(y), sum(x2), min(y) from sold join sellers using (k) where id < 0');
select hgj_check_distinct('select g, count(distinct x4), count(*) from sold join sellers using (k) where id < 0 group by g');
-- others beside it, with FILTER, and the same with FILTER and without
select hgj_check_distinct('select g, count(distinct x4), count(*), count(xt), sum(x2), sum(x4), sum(x8), sum(y), min(y), max(y), min(d), max(xt), bool_or(x4 > 48), sum(f) < 1e9, max(f), min(x8) from sold join sellers using (k) group by g');
select hgj_check_distinct('select s, count(distinct xt), count(*) filter (where x4 > 0), sum(y) filter (where x4 > 0), sum(y), sum(x4) filter (where false), sum(y * 2 + x2) from sold join sellers using (k) group by s');
select hgj_check_distinct('select g, count(distinct x4), avg(x2), avg(x4), avg(x8), avg(y), avg(xn), avg(xf), avg(x4) filter (where x4 > 48), sum(x4), count(x4), avg(x4 + 1) from sold join sellers using (k) group by g');
select hgj_check_distinct('select count(distinct xt), avg(x4), avg(y) from sold join sellers using (k) where id < 0');
select hgj_check_distinct('select s, avg(x4), avg(distinct x4), count(*), avg(x2) from sold join sellers using (k) group by s having avg(x4) > 0.5');
select hgj_check_distinct('select g, sum(y), count(distinct y), sum(distinct y), max(y) from sold join sellers using (k) group by g');
-- grouped by what is counted; primary keys; HAVING, ORDER BY, LIMIT, window functions above
select hgj_check_distinct('select x4, count(distinct x4), count(*) from sold join sellers using (k) group by x4');
select hgj_check_distinct('select sellers.k, nk, count(distinct x4) from sold join sellers using (k) group by sellers.k');
select hgj_check_distinct('select g, count(distinct x4) n from sold join sellers using (k) group by g having count(distinct x4) > 92 and sum(x2) > 0 order by n desc, g limit 5');
select hgj_check_distinct('select g + 1, count(distinct x4) * 2 + count(*), rank() over (order by count(distinct x4), g) from sold join sellers using (k) group by g');
select hgj_check_distinct('select g, s, count(distinct xt) from sold join sellers using (k) group by g, s order by s, g');
select hgj_check_distinct('select count(*) from (select distinct s, count(distinct x4) from sold join sellers using (k) group by s, g) q');
select hgj_check_distinct('select extract(year from d), count(distinct x4) from sold join sellers using (k) group by 1');
-- over a table, and over several joins
select hgj_check_distinct('select g, count(distinct xt), sum(y) from sold group by g');
select hgj_check_distinct('select count(distinct xt), sum(y) from sold where x4 > 10');
select hgj_check_distinct('select t.r, count(distinct sold.xt), count(*) from sold join sellers using (k) join sellers t on t.k = sold.x2 group by t.r');
select hgj_check_distinct('select s, count(distinct r), count(*) from sold left join sellers using (k) group by s');
-- run again, with other parameters
select hgj_check('select r.n, q.* from generate_series(1, 4) r(n), lateral (select g, count(distinct x4), sum(x2) from sold join sellers using (k) where id % 4 = r.n or g = r.n group by g offset 0) q', 1);
prepare counted(int) as select g, count(distinct x4) from sold join sellers using (k) where id < $1 group by g order by g limit 2;
set plan_cache_mode = force_generic_plan;
set hashgraph_join.force = on;
execute counted(100);
execute counted(4000);
reset plan_cache_mode;
deallocate counted;
-- with little memory, both groupings spill
set work_mem = '64kB';
set hash_mem_multiplier = 1;
select hgj_check_distinct('select id, count(distinct x4), sum(y), max(xt) from sold join sellers using (k) group by id');
select hgj_check_distinct('select g, count(distinct id), sum(y), max(xt) from sold join sellers using (k) group by g');
reset work_mem;
reset hash_mem_multiplier;
-- by workers that divide the groups, in one that they finish
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
set max_parallel_workers_per_gather = 2;
set hashgraph_join.parallel_aggregate = exchange;
select hgj_forced_lines('select count(distinct x2), sum(y) from sold join sellers using (k)', '-> +Gather|-> +Parallel Custom Scan .HashGraphAgg');
select hgj_check_distinct('select count(distinct x2), sum(y), count(*) from sold join sellers using (k)');
select hgj_check_distinct('select s, count(distinct xt), sum(y), count(*) from sold join sellers using (k) group by s');
select hgj_check_distinct('select count(distinct xt), sum(y), count(*) from sold join sellers using (k)');
set hashgraph_join.parallel_aggregate = partial;
select hgj_check_distinct('select s, count(distinct xt), sum(y), count(*) from sold join sellers using (k) group by s');
reset hashgraph_join.parallel_aggregate;
-- many groups: they divide them by the columns of the second grouping, and finish both
select hgj_shape('select id % 500, s, count(distinct x4) n, sum(x2) from sold join sellers using (k) group by 1, 2 order by n desc limit 5');
create function hgj_check_divided(q text) returns text language sql as $$
	select case when hgj_forced_lines(q, 'Exchange: groups, by hash of the first') < 1 then 'not divided: ' || q else hgj_check_distinct(q) end
$$;
select hgj_check_divided('select id % 500 i, count(distinct x4), count(*), sum(y), avg(x8), max(xt) from sold join sellers using (k) group by 1');
select hgj_check_divided('select id % 900 i, s, count(distinct xt) n from sold join sellers using (k) group by 1, 2 having count(distinct xt) > 0 order by n desc, i, s limit 7');
select hgj_check_divided('select nullif(id % 500, 7) i, xn, sum(distinct x2), avg(x4) from sold join sellers using (k) group by 1, 2');
select hgj_check_divided('select xf, s, id % 300 i, count(distinct d) from sold join sellers using (k) group by 1, 2, 3');
-- ours divides them by one column of two that are grouped by, and the other one is counted
select hgj_check_distinct('select id % 500 i, g, count(distinct g) from sold join sellers using (k) group by 1, 2');
reset max_parallel_workers_per_gather;
reset min_parallel_table_scan_size;
reset parallel_setup_cost;
reset parallel_tuple_cost;
-- not by grouping twice, but by PostgreSQL's functions (transitions.sql): two columns, an expression, FILTER, ORDER BY, averages of floats beside it, values of several looks, orders that matter
select what, hgj_forced_lines(q, 'HashGraphAgg') as ours, hgj_check(q) from (values
	('two columns', 'select g, count(distinct x4), count(distinct x2) from sold join sellers using (k) group by g'),
	('an expression', 'select g, count(distinct x4 + 1) from sold join sellers using (k) group by g'),
	('FILTER', 'select g, count(distinct x4) filter (where x2 > 1) from sold join sellers using (k) group by g'),
	('an average', 'select g, count(distinct x4), avg(f) > 1 from sold join sellers using (k) group by g'),
	('display scales', 'select g, sum(distinct xf) = 3.5 from sold join sellers using (k) group by g'),
	('floats', 'select g, sum(distinct f) from sold join sellers using (k) group by g'),
	('another', 'select g, count(distinct x4), string_agg(xt, '','' order by id) from sold join sellers using (k) group by g'),
	('grouping sets', 'select g, s, count(distinct x4) from sold join sellers using (k) group by rollup (g, s)')) v(what, q);
-- equal under the collation
create collation hgj_caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
create table spelled (k int, t text collate hgj_caseless);
insert into spelled select i % 10, case i % 3 when 0 then 'A' when 1 then 'a' else 'b' end || i % 4 from generate_series(1, 300) i;
analyze spelled;
select hgj_check_distinct('select r, count(distinct t), count(*) from spelled join sellers using (k) group by r');
explain (costs off, verbose) select g, count(distinct x4), sum(y) from sold join sellers using (k) group by g;
reset hashgraph_join.force;
drop table sold, sellers, spelled;
drop collation hgj_caseless;
drop function hgj_check_distinct, hgj_forced_lines;
