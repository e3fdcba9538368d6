-- Joins that return inner rows for having a match, or for having none, read no further
-- once all of them have one.
create schema all_found;
set search_path = all_found, public;
set enable_nestloop = off;
create table few (id int, k int, t text) with (autovacuum_enabled = off);
insert into few select g, g, 'k' || g from generate_series(0, 19) g;
create table many (id int, k int, t text, v int) with (autovacuum_enabled = off);
-- (every key of few has thirty rows among many others)
insert into many select g, g * 7 % 2000, 'k' || g * 7 % 2000, g from generate_series(1, 60000) g;
create table sorted (id int, k int) with (autovacuum_enabled = off);
insert into sorted select id, k from many order by k desc, id;
create table nulls (k int, t text) with (autovacuum_enabled = off);
insert into nulls select case when g % 3 > 0 then g % 20 end, 't' || g from generate_series(1, 30) g;
analyze few, many, sorted, nulls;

-- Has a forced right semi or anti join read all rows of the outer table, or (how many
-- depends on how large batches become) less, and does it say that it has stopped?  Behind that,
-- whether the answer is PostgreSQL's own.
create function rows_read(q text, outer_table text default 'many') returns text language plpgsql
	set hashgraph_join.force = on
as $$
declare
	line text;
	kind text := 'no right join';
	n bigint;
	total bigint;
	stopped text := 'to the end';
begin
	for line in execute 'explain (analyze, costs off, timing off, summary off, buffers off) ' || q loop
		line := hgj_plain(line);
		if line ~ 'Join Type: Right (Semi|Anti)' then
			kind := substring(line from 'Right \w+');
		elsif line ~ ('Scan on ' || outer_table || ' ') then
			n := substring(line from 'rows=(\d+)')::bigint;
		elsif line ~ 'Stopped Early: all inner rows are found' then
			stopped := 'stopped';
		end if;
	end loop;
	execute 'select count(*) from ' || outer_table into total;
	return format('%s, %s, %s, %s', kind, case when n < total then 'not all rows' when n = total then 'all rows' end, stopped, hgj_check(q));
end $$;

select rows_read('select * from few where exists (select from many where many.k = few.k)');
select rows_read('select * from few where k in (select k from many)');
select rows_read('select * from few where not exists (select from many where many.k = few.k)');
select rows_read('select * from few where exists (select from many where many.t = few.t)');
select rows_read('select * from few where exists (select from many where many.k = few.k and many.t = few.t)');
select rows_read('select * from few where not exists (select from many where many.t = few.t)');
select rows_read('select count(*), sum(id) from few where exists (select from many where many.k = few.k)');
-- where the last keys come last
select rows_read('select * from few where exists (select from sorted where sorted.k = few.k)', 'sorted');

-- one without a match: everything is read
insert into few values (20, 2000, 'k2000');
select rows_read('select * from few where exists (select from many where many.k = few.k)');
select rows_read('select * from few where not exists (select from many where many.k = few.k)');
-- but by a join that does not see it
select rows_read('select * from few where id < 20 and not exists (select from many where many.k = few.k)');

-- rows without a key: an anti join returns them, and does not wait for them
update few set k = null where id = 20;
select rows_read('select * from few where exists (select from many where many.k = few.k)');
select rows_read('select * from few where not exists (select from many where many.k = few.k)');
select rows_read('select * from nulls where exists (select from many where many.k = nulls.k)');
select rows_read('select * from nulls where not exists (select from many where many.k = nulls.k)');
delete from few where id = 20;

-- a match is one that passes the join's clauses, in vectors or one by one
select rows_read('select * from few where exists (select from many where many.k = few.k and many.v + few.id > 30000)');
select rows_read('select * from few where not exists (select from many where many.k = few.k and many.v + few.id > 30000)');
select rows_read('select * from few where exists (select from many where many.k = few.k and many.t || few.t = few.t || many.t)');
select rows_read('select * from few where exists (select from many where many.k = few.k and many.v > few.id * 3000)');
select rows_read('select * from few where not exists (select from many where many.k = few.k and many.v > few.id * 3000)');

-- whatever reads the outer side, its filters included
set hashgraph_join.source = tuples;
select rows_read('select * from few where exists (select from many where many.k = few.k)');
select rows_read('select * from few where not exists (select from many where many.k = few.k)');
reset hashgraph_join.source;
set hashgraph_join.filter = on;
select rows_read('select * from few where exists (select from many where many.k = few.k and v % 3 = 0)');
select rows_read('select * from few where not exists (select from many where many.k = few.k and v % 3 = 0)');
reset hashgraph_join.filter;
select rows_read('select * from few where exists (select from many join sorted s using (id) where many.k = few.k)');
select rows_read('select * from few where exists (select from (select k from many group by k, v) many where many.k = few.k)');

-- the outer side calls a volatile function: for all of its rows
create sequence called;
select rows_read('select * from few where exists (select from (select k from many where nextval(''called'') > v - 60000 offset 0) many where many.k = few.k)');
select last_value / 60000 as times from called;

-- run again, with other rows, and the same table of them
select hgj_check('select f.id, (select count(*) from few where few.id >= f.id * 0 and exists (select from many where many.k = few.k and many.v > f.id)) from few f', 1);
select hgj_check('select f.id, (select count(*) from few where few.id < f.id and not exists (select from many where many.k = few.k and many.v < f.id * 1000)) from few f', 1);

-- a build side in partitions, in passes, and with rows without a key
create table wide as select g as id, g as k, repeat('x', 50) || g as t from generate_series(1, 4000) g;
insert into wide select g, null, 'none' from generate_series(1, 500) g;
create table twice as select g % 40000 as k, g as v from generate_series(1, 120000) g;
analyze wide, twice;
set work_mem = '64kB';
select rows_read('select * from wide where exists (select from twice where twice.k = wide.k)', 'twice');
select rows_read('select * from wide where not exists (select from twice where twice.k = wide.k)', 'twice');
select rows_read('select * from wide where not exists (select from twice where twice.k = wide.k and twice.v > wide.id)', 'twice');
reset work_mem;
set hashgraph_join.chunk_rows = 1500;
set hashgraph_join.spill = passes;
select rows_read('select * from wide where exists (select from twice where twice.k = wide.k)', 'twice');
select rows_read('select * from wide where not exists (select from twice where twice.k = wide.k)', 'twice');
reset hashgraph_join.spill;
reset hashgraph_join.chunk_rows;
reset work_mem;

-- processes that share the table: one of them at least sees that all are found
set max_parallel_workers_per_gather = 2;
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
set hashgraph_join.parallel_build = shared;
-- which process is how far when all are found, nobody knows; that none stops where one is not, is certain
create function stops_in_workers(q text, one_is_not boolean default false) returns text language plpgsql
	set hashgraph_join.force = on
as $$
begin
	return format('%s %s %s', hgj_lines(q, '(Build|Inner) Side: shared') > 0, one_is_not and rows_read(q) ~ 'stopped', hgj_check(q));
end $$;
select stops_in_workers('select * from few where exists (select from many where many.k = few.k)');
select stops_in_workers('select * from few where not exists (select from many where many.k = few.k)');
select stops_in_workers('select * from nulls where not exists (select from many where many.k = nulls.k)');
insert into few values (20, 2000, 'k2000');
select stops_in_workers('select * from few where not exists (select from many where many.k = few.k)', true);
reset hashgraph_join.parallel_build;
delete from few where id = 20;
set max_parallel_workers_per_gather = 0;

-- What is saved is expected where every row seems to find a match, but for where rows are
-- in the key's order; and no more of it than half.
reset enable_nestloop;
create function part_of_costs(q text, than text) returns numeric language plpgsql as $$
declare
	line text;
	costs numeric[] := '{}';
	asked text;
begin
	foreach asked in array array[q, than] loop
		for line in execute 'explain ' || asked loop
			costs := costs || substring(line from '\.\.(\d+\.\d+) rows')::numeric;
			exit;
		end loop;
	end loop;
	return round(costs[1] / costs[2], 1);
end $$;
set hashgraph_join.startup_cost = 1;
select part_of_costs('select * from few where exists (select from many where many.k = few.k)', 'select * from few where exists (select from sorted where sorted.k = few.k)') as random,
	part_of_costs('select * from few where exists (select from many where many.k = few.k)', 'select * from few where exists (select from many where many.k = few.k + 1000)') as without;
explain (costs off) select * from few where exists (select from many where many.k = few.k);

reset all;
set client_min_messages = warning;
drop schema all_found cascade;
