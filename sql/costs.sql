-- Costs are consistent: a join that keeps every row adds to a plan's cost, and
-- never takes more off the one below than that had charged.
create table cost_d1 (k int primary key, a int, t text);
create table cost_d2 (k int primary key, a int, t text);
create table cost_d3 (k int primary key, a int, t text);
create table cost_d4 (k int primary key, a int, t text);
insert into cost_d1 select g, g % 10, 'a ' || g from generate_series(1, 20000) g;
insert into cost_d2 select g, g % 100, 'b ' || g from generate_series(1, 5000) g;
insert into cost_d3 select g, g % 5, 'c ' || g from generate_series(1, 300) g;
insert into cost_d4 select g, g % 2, 'd ' || g from generate_series(1, 25) g;
create table cost_f (id int, note text, n numeric, k1 int, k2 int, k3 int, k4 int, v int);
insert into cost_f select g, 'note ' || g, g, 1 + g * 7 % 20000, 1 + g * 11 % 5000, 1 + g % 300, 1 + g % 25, g % 1000 from generate_series(1, 60000) g;
alter table cost_f add foreign key (k1) references cost_d1, add foreign key (k2) references cost_d2,
	add foreign key (k3) references cost_d3, add foreign key (k4) references cost_d4;
set default_statistics_target = 1000;
vacuum analyze cost_f, cost_d1, cost_d2, cost_d3, cost_d4;

-- The total cost of a plan, which has to have so many of our joins.
create function hgj_cost(q text, joins int, aggregates int default 0) returns numeric language plpgsql as $$
declare
	plan json;
begin
	execute 'explain (format json) ' || q into plan;
	if (select count(*) from regexp_matches(plan::text, '"HashGraphJoin"', 'g')) <> joins
		or (select count(*) from regexp_matches(plan::text, '"HashGraphAgg"', 'g')) <> aggregates then
		raise 'not the plan that was to be costed: % %', q, plan;
	end if;
	return (plan -> 0 -> 'Plan' ->> 'Total Cost')::numeric;
end $$;

set work_mem = '4MB';
set hash_mem_multiplier = 1;
set max_parallel_workers_per_gather = 0;
set enable_mergejoin = off;
set enable_nestloop = off;
set enable_material = off;
set hashgraph_join.engine = cpu;
set hashgraph_join.min_rows = 0;
set hashgraph_join.startup_cost = 0;

-- chains of one to four joins, none of which loses a row
create function hgj_chain(head text, tail text, dims text[], aggregates int) returns table (joins int, cost_grows bool, order_written bool) language plpgsql as $$
declare
	q text := 'from cost_f f';
	last numeric := 0;
	cost numeric;
begin
	for i in 1 .. cardinality(dims) loop
		joins := i;
		q := q || format(' join cost_d%s d%s on d%s.k = f.k%s', dims[i], dims[i], dims[i], dims[i]);
		perform set_config('join_collapse_limit', '8', true);
		cost := hgj_cost(format('select %s %s %s', head, q, tail), i, aggregates);
		cost_grows := cost > last;
		last := cost;
		-- the planner's own order is not dearer than the written one
		perform set_config('join_collapse_limit', '1', true);
		order_written := cost <= hgj_cost(format('select %s %s %s', head, q, tail), i, aggregates);
		return next;
	end loop;
end $$;
select * from hgj_chain('f.id, f.v', '', '{1,2,3,4}', 0);
select * from hgj_chain('count(*), sum(f.v)', '', '{1,2,3,4}', 1);
select * from hgj_chain('count(*), sum(f.v)', '', '{4,3,2,1}', 1);
select * from hgj_chain('f.v % 10, count(*)', 'group by 1', '{2,4,1,3}', 1);
-- an aggregate that HashGraphAgg does not take: rows are returned
select * from hgj_chain('percentile_disc(0.5) within group (order by f.v)', '', '{1,2,3,4}', 0);
set hashgraph_join.source = tuples;
set hashgraph_join.probe_tuple_cost = 0;
select * from hgj_chain('f.id, f.v', '', '{1,2,3,4}', 0);
reset hashgraph_join.source;
reset hashgraph_join.probe_tuple_cost;

-- what is returned is charged for, by the rows that there are, but where the inner
-- side is unique: there PostgreSQL does not, either
create table cost_d5 as select * from cost_d1;
analyze cost_d5;
set hashgraph_join.emit_tuple_cost = 0;
create temp table free as select q, hgj_cost('select ' || q, joins, aggregates) as cost, joins, aggregates from (values
	('f.id from cost_f f join cost_d5 d on d.k = f.k1', 1, 0),
	('f.id from cost_f f join cost_d1 d on d.k = f.k1', 1, 0),
	('f.id from cost_f f left join cost_d5 d on d.k = f.k1 and d.a = 3', 1, 0),
	('f.id from cost_f f join cost_d5 d on d.k = f.k1 where d.a = 3', 1, 0),
	('f.id from cost_f f where f.k1 in (select k from cost_d5 where a = 3)', 1, 0),
	('f.id from cost_f f where not exists (select from cost_d5 d where d.k = f.k1 and d.a = 3)', 1, 0),
	('f.id from cost_f f join cost_d5 d5 on d5.k = f.k1 join cost_d3 d3 on d3.k = f.k3', 2, 0),
	('f.id from cost_f f join cost_d3 d3 on d3.k = f.k3 join cost_d5 d5 on d5.k = f.k1', 2, 0),
	('count(*) from cost_f f join cost_d5 d5 on d5.k = f.k1 join cost_d3 d3 on d3.k = f.k3', 2, 1)) q (q, joins, aggregates);
set hashgraph_join.emit_tuple_cost = 0.001;
select q, round(hgj_cost('select ' || q, joins, aggregates) - cost, 1) as charged from free;
reset hashgraph_join.emit_tuple_cost;

-- columns behind others of a varying width are walked to
set hashgraph_join.page_attribute_cost = 0;
create temp table narrow as select hgj_cost('select count(*), sum(f.id) from cost_f f join cost_d4 d on d.k = f.k4', 1, 1) as cost;
set hashgraph_join.page_attribute_cost = 0.001;
-- note is the second column, k4 the seventh: five attributes
select round(hgj_cost('select count(*), sum(f.id) from cost_f f join cost_d4 d on d.k = f.k4', 1, 1) - cost) as walked from narrow;
-- never dearer than the scan itself
set hashgraph_join.page_attribute_cost = 1;
select round(hgj_cost('select count(*), sum(f.id) from cost_f f join cost_d4 d on d.k = f.k4', 1, 1) - cost) as as_a_scan from narrow;
reset hashgraph_join.page_attribute_cost;

-- pages that the cache holds cost two fifths: those of both tables
set effective_cache_size = '8kB';
create temp table cold as select hgj_cost('select count(*), sum(f.id) from cost_f f join cost_d4 d on d.k = f.k4', 1, 1) as cost;
reset effective_cache_size;
select round(5 * (cost - hgj_cost('select count(*), sum(f.id) from cost_f f join cost_d4 d on d.k = f.k4', 1, 1)), 1) =
	3 * (select sum(relpages) from pg_class where relname in ('cost_f', 'cost_d4')) as two_fifths_left from cold;

-- pages that this session has read cost still less: 0.15 each, of which the query that
-- reads them first is charged half
create table cost_pages (id int, t text) with (autovacuum_enabled = off, fillfactor = 10);
insert into cost_pages select g, repeat('x', 500) from generate_series(1, 1100) g;
analyze cost_pages;
create temp table unread as select hgj_cost('select count(*) from cost_pages p join cost_d4 d on d.k = p.id', 1, 1) as cost;
select count(*) from cost_pages p join cost_d4 d on d.k = p.id;
select round((cost - hgj_cost('select count(*) from cost_pages p join cost_d4 d on d.k = p.id', 1, 1)) * 40) =
	3 * (select relpages from pg_class where relname = 'cost_pages') as read_before from unread;

-- of two processors each reads half of them, 0.85 each; one process that has read them
-- before 0.25: the difference is charged to workers below an aggregation
set max_parallel_workers_per_gather = 2;
set min_parallel_table_scan_size = 0;
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set hashgraph_join.processors = 2;
set cpu_operator_cost = 1;
create temp table in_workers as select hgj_cost('select id % 5, count(*) from cost_pages group by 1', 0, 1) as cost;
set effective_cache_size = '8kB';
select round((cost - hgj_cost('select id % 5, count(*) from cost_pages group by 1', 0, 1)) * 40) =
	7 * (select relpages from pg_class where relname = 'cost_pages') as page_faults from in_workers;
reset effective_cache_size;
reset hashgraph_join.processors;
reset cpu_operator_cost;
drop table cost_pages, unread, in_workers;

-- every worker builds its own table, and that is charged for
select * from hgj_chain('count(*), sum(f.v)', '', '{4,3,2,1}', 1);
explain (costs off) select count(*), sum(f.v) from cost_f f join cost_d3 d on d.k = f.k3;
set hashgraph_join.build_tuple_cost = 10;
explain (costs off) select count(*), sum(f.v) from cost_f f join cost_d3 d on d.k = f.k3;
drop table cost_f, cost_d1, cost_d2, cost_d3, cost_d4, cost_d5, free, narrow, cold;
drop function hgj_cost, hgj_chain;
