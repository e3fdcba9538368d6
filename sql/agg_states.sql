-- Groups of wide strings, and states that keep all values: what they take of memory, what
-- the planner charges for it, and that every answer is PostgreSQL's.
set hash_mem_multiplier = 1;
set max_parallel_workers_per_gather = 0;
create table wide (id int, a text, few text, x int) with (autovacuum_enabled = off);
insert into wide select g, case when g % 50 > 0 then repeat(md5(g::text), 25) end, 'few ' || g % 5, case when g % 9 > 0 then g % 1000 end from generate_series(1, 12000) g;
vacuum analyze wide;
create aggregate st_list(int) (sfunc = array_append, stype = int[], initcond = '{}');
create aggregate st_text(text) (sfunc = textcat, stype = text);
create aggregate st_text_from(text) (sfunc = textcat, stype = text, initcond = '');
create function st_checked(int[], int) returns int[] language plpgsql immutable as $$
begin
	if $2 = 11990 then
		raise exception 'this one is not added';
	end if;
	return $1 || $2;
end $$;
create aggregate st_checked(int) (sfunc = st_checked, stype = int[], initcond = '{}');
-- the elements of a list, sorted
create function st_sorted(list text) returns text language sql immutable parallel safe as $$ select string_agg(x, ',' order by x) from unnest(string_to_array(list, ',', '<null>')) x $$;
create function st_sorted(list anyarray) returns text language sql immutable parallel safe as $$ select string_agg(coalesce(x::text, '<null>'), ',' order by x::text) from unnest(list) x $$;
create function st_sorted(list json) returns text language sql immutable parallel safe as $$ select string_agg(x::text, ',' order by x::text) from json_array_elements(list) x $$;

-- Of a query whose groups fit: the highest Memory Usage of its HashGraphAggs, as a multiple
-- of the memory that there is, whether rows waited for states, others were spilled, and
-- partial groups were returned early.
create function st_run(q text, out memories numeric, out waited bool, out spilled bool, out emptied bool) language plpgsql
	set hashgraph_join.force = on set hashgraph_join.require = aggregate
as $$
declare
	line text;
begin
	memories := 0;
	waited := false;
	spilled := false;
	emptied := false;
	for line in execute 'explain (analyze, costs off, timing off, summary off) ' || q loop
		if line ~ 'Groups: ' then
			memories := greatest(memories, substring(line from 'Memory Usage: (\d+)kB')::numeric / (select setting::numeric from pg_settings where name = 'work_mem'));
		end if;
		waited := waited or line ~ 'Rows Waiting for States: ';
		spilled := spilled or line ~ 'Spilled Rows: ';
		emptied := emptied or line ~ 'Times Emptied: ';
	end loop;
end $$;

-- states of 9 MB in all, which may take four times the memory
set work_mem = '1MB';
create function st_check(queries text[]) returns table (q text, says text, bounded bool, waited bool) language sql as $$
	select regexp_replace(q, 'st_sorted', 'sorted', 'g'), hgj_check_agg(q, 0), memories < 4, waited from unnest(queries) q, st_run(q)
$$;
select * from st_check(array[
	'select id % 60 as k, st_sorted(array_agg(a)) from wide group by 1',
	'select id % 100 as k, st_sorted(string_agg(a, '','')), count(*), max(a) from wide group by 1',
	'select id % 300 as k, st_sorted(array_agg(a)), st_sorted(string_agg(a, '','')), sum(x), stddev(x) from wide group by 1',
	'select id % 100 as k, length(st_text(a)), length(st_text_from(few)) from wide group by 1',
	'select id % 40 as k, st_sorted(json_agg(a)), count(a) from wide group by 1',
	'select id % 40 as k, st_sorted(array_agg(a) filter (where x > 500)), count(*) filter (where x > 500) from wide group by 1',
	'select id % 40 as k, array_agg(x order by a, id), count(distinct a), st_sorted(array_agg(left(a, 700))) from wide group by 1',
	'select id % 40 as k, length(string_agg(a, few)) from wide group by 1 having count(*) > 0 and min(x) < 20']);
-- of many groups, some wait on file as a whole
select hgj_check_agg(q, 0) as says, memories < 4 as bounded, waited, spilled from st_run('select id % 3000 as k, st_sorted(array_agg(a)), count(*) from wide group by 1') r,
	(values ('select id % 3000 as k, st_sorted(array_agg(a)), count(*) from wide group by 1')) v (q);
-- one group's state is in memory as a whole, and what is read once more makes its states again
select hgj_check_agg('select length(string_agg(a, '','')) from wide', 0) as says;
select hgj_check_agg('select few = '''' as k, length(string_agg(a, '','')) from wide group by 1', 0) as says;
set enable_material = off;
set hashgraph_join.force = on;
select hgj_check_agg('select v, k, s from (values (1), (2)) v (v), (select id % 10 as k, length(string_agg(a, '','')) as s from wide group by 1 offset 0) q', 0) as says;
-- some groups are all that is asked for, and a function raises an error
begin;
declare c cursor for select id % 10 as k, length(string_agg(a, ',')) > 0 as s from wide group by 1;
fetch 2 from c;
close c;
commit;
select count(*) from (select id % 10 as k, string_agg(a, ',') from wide group by 1 limit 3) q;
set work_mem = '256kB';
select id % 10 as k, st_checked(id), string_agg(a, ',') from wide group by 1;
-- numbers
select * from st_check(array['select id % 20 as k, st_sorted(array_agg(id)), st_sorted(st_list(x)) from wide group by 1', 'select id % 4000 as k, st_sorted(array_agg(id)), st_sorted(st_list(x)) from wide group by 1']);
reset hashgraph_join.force;
reset enable_material;

-- workers return what they have
create aggregate st_part(text) (sfunc = array_append, stype = text[], combinefunc = array_cat, initcond = '{}', parallel = safe);
set work_mem = '1MB';
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
set max_parallel_workers_per_gather = 2;
set hashgraph_join.parallel_aggregate = partial;
select hgj_check_agg(q, 0, 'Partial Mode: Partial', 'partial HashGraphAgg') as says, memories < 4 as bounded, emptied from st_run('select few, st_sorted(st_part(a)) from wide group by few') r,
	(values ('select few, st_sorted(st_part(a)) from wide group by few')) v (q);
reset hashgraph_join.parallel_aggregate;
set max_parallel_workers_per_gather = 0;

-- what the planner makes of it: PostgreSQL's sorts where groups of wide values are too many ...
set work_mem = '1MB';
set hashgraph_join.startup_cost = 0;
select hgj_shape('select count(distinct a) from wide');
select hgj_shape('select count(distinct few) from wide');
create function st_cost(q text) returns numeric language plpgsql set hashgraph_join.force = on as $$
declare
	plan json;
begin
	execute 'explain (format json) ' || q into plan;
	return plan -> 0 -> 'Plan' ->> 'Total Cost';
end $$;
select st_cost('select a from wide group by a') > 1.5 * st_cost('select id from wide group by id') as wide_is_charged,
	st_cost('select id % 40 as k, array_agg(a) from wide group by 1') > 1.5 * st_cost('select id % 40 as k, array_agg(x) from wide group by 1') as states_are;
reset hashgraph_join.startup_cost;
select hgj_shape('select id % 40 as k, array_agg(a) from wide group by 1');
-- ... or states would outgrow memory by far
set work_mem = '64kB';
select hgj_shape('select id % 40 as k, array_agg(a) from wide group by 1');
select * from hashgraph_join_why('select id % 40 as k, array_agg(a) from wide group by 1');
select hgj_shape('select few, array_agg(x order by id) from wide group by few');
select hgj_shape('select few, max(a), stddev(x) from wide group by few');
