-- Aggregates that PostgreSQL's functions compute, row by row: every answer is compared
-- with PostgreSQL's own, and a HashGraphAgg is required.  Where the order of rows shows,
-- and no ORDER BY settles it, what is compared does not depend on it.
create type tr_mood as enum ('sad', 'ok', 'happy');
create domain tr_small as int check (value < 1000000);
create table tr (id int, k int, g int, s text, i int, b int8, n numeric(9,2), x float8, o bool, t text, d date, iv interval, j jsonb, a int[], e tr_mood, u tr_small, by bytea, wide text) with (autovacuum_enabled = off);
insert into tr select i, i % 41, nullif(i % 13, 0), 'group ' || i % 7, case when i % 9 > 0 then (i * 7919) % 1000 - 500 end, (i % 97)::int8 * 90000000000000, case when i % 11 > 0 then (i % 530) / 4.0 end,
	case when i % 8 > 0 then (i % 64) / 4.0 end, case when i % 10 > 0 then i % 3 = 0 end, case when i % 12 > 0 then 'text ' || i % 29 end, case when i % 19 > 0 then date '2000-01-01' + i % 23 end,
	make_interval(days => i % 40, hours => i % 30), case when i % 14 > 0 then jsonb_build_object('a', i % 5) end, case when i % 15 > 0 then array[i % 3, null, i % 2] end, (array['sad', 'ok', 'happy'])[1 + i % 3]::tr_mood, i % 100,
	decode(md5((i % 31)::text), 'hex'), case i % 100 when 0 then repeat('w' || i, 900) when 1 then (select string_agg(md5((i + p)::text), '') from generate_series(1, 150) p) else 'w' || i % 17 end
	from generate_series(1, 3000) i;
create table tr_dim with (autovacuum_enabled = off) as select i as k, i % 4 as r, 'dim ' || i as w from generate_series(0, 38) i;
analyze tr;
analyze tr_dim;
-- the same over a join and over the table; with groups, without, and without rows
create function tr_check(list text) returns text language sql as $$
	select hgj_check_each(array['select ' || list || ' from tr', 'select g, ' || list || ' from tr group by g', 'select ' || list || ' from tr join tr_dim using (k)', 'select r, s, ' || list || ' from tr join tr_dim using (k) group by r, s',
		'select ' || list || ' from tr where id < 0', 'select s, ' || list || ' from tr join tr_dim using (k) where id < 0 group by s', 'select id, ' || list || ' from tr where id % 7 = 0 group by id'], 0)
$$;
-- the elements of a list, sorted
create function tr_sorted(list text) returns text language sql immutable parallel safe as $$ select string_agg(x, ',' order by x) from unnest(string_to_array(list, ',', '<null>')) x $$;
create function tr_sorted(list anyarray) returns text language sql immutable parallel safe as $$ select string_agg(coalesce(x::text, '<null>'), ',' order by x::text) from unnest(list) x $$;
create function tr_sorted(list jsonb) returns text language sql immutable parallel safe as $$ select string_agg(x::text, ',' order by x::text) from jsonb_array_elements(list) x $$;

create function tr_same(q text) returns text language plpgsql as $$
declare
	stock text;
	ours text;
begin
	perform set_config('hashgraph_join.enabled', 'off', true);
	stock := hgj_answer(q);
	perform set_config('hashgraph_join.enabled', 'on', true), set_config('hashgraph_join.force', 'on', true);
	if hgj_lines(q, 'Custom Scan \(HashGraphAgg\)') = 0 then
		return 'no HashGraphAgg: ' || q;
	end if;
	ours := hgj_answer(q);
	perform set_config('hashgraph_join.force', 'off', true);
	return case when ours = stock then regexp_replace(stock, ' rows, .*', ' rows') else format('DIFFERENT: %s, %s', stock, ours) end;
end $$;

-- PostgreSQL's own: strings, arrays, JSON, statistics
select l, tr_check(l) as says from unnest(array[
	'tr_sorted(string_agg(t, '','')), length(string_agg(t, null)), string_agg(t, '''') is null, length(string_agg(by, ''\x00ff'')), length(string_agg(i::text, lpad(coalesce(t, id::text), 9)))',
	'tr_sorted(string_agg(t || i, '','') filter (where o)), tr_sorted(string_agg(t, '','') filter (where i > 1000)), length(string_agg(upper(wide), lpad(id::text, 9)))',
	'tr_sorted(array_agg(i)), tr_sorted(array_agg(n)), tr_sorted(array_agg(t)), tr_sorted(array_agg(e)), tr_sorted(array_agg(u)), tr_sorted(array_agg(o)), array_length(array_agg(wide), 1), pg_typeof(array_agg(d)), pg_typeof(array_agg(u))',
	'tr_sorted(array_agg(a) filter (where a is not null)), tr_sorted(array_agg(i * 2) filter (where i > 0 and not o)), tr_sorted(array_agg(length(wide)))',
	'tr_sorted(jsonb_agg(j)), tr_sorted(jsonb_agg(i)), tr_sorted(json_agg(n)::jsonb), jsonb_object_agg(id, t), (select count(*) from json_each(json_object_agg(id, i)))',
	'stddev(i), variance(b), stddev_pop(n), var_samp(i), var_pop(b), stddev_samp(n), var_pop(i::int2), round(stddev(x)::numeric, 6), round(var_pop(x::float4)::numeric, 3)',
	'round(corr(i, x)::numeric, 6), round(covar_pop(x, i)::numeric, 4), regr_count(i, x), regr_sxx(x, x / 2) is null, round(regr_avgy(x, i)::numeric, 6), round(regr_slope(i, x)::numeric, 5)',
	'avg(iv), sum(iv), max(a), min(e), range_agg(int4range(i, i + 3)), range_intersect_agg(int4range(-600, i)), bit_and(i), xmlagg(null::xml)']) l;
-- all arguments but one NULL, constants, parameters, subplans
select tr_check('string_agg(null::text, '',''), tr_sorted(array_agg(null::int)), array_agg(1), tr_sorted(array_agg((select max(r) from tr_dim where tr_dim.k = tr.k))) = ''''') as says;
select hgj_check_agg('select g, tr_sorted(array_agg(i + w.n)), tr_sorted(string_agg(t, w.n::text)) from tr, (select count(*)::int n from tr_dim) w group by g', 0) as says;

-- ORDER BY and DISTINCT inside
select l, tr_check(l) as says from unnest(array[
	'string_agg(t, '','' order by id), array_agg(i order by id desc), array_agg(n order by n nulls first, id), string_agg(t, s order by i desc nulls last, id)',
	'array_agg(t order by t collate "C" desc, id), array_agg(e order by e, id), array_agg(a order by a desc, id) filter (where a is not null), jsonb_agg(j order by id), array_agg(wide order by wide, id)',
	'string_agg(distinct t, '',''), array_agg(distinct i), array_agg(distinct i order by i desc), array_agg(distinct n), string_agg(distinct wide, '',''), array_agg(distinct j), array_agg(distinct a) filter (where a[3] >= 0)',
	'count(distinct i), count(distinct t), count(distinct n), sum(distinct i), sum(distinct b), avg(distinct n), count(distinct (i, t)), sum(distinct x), min(distinct i), count(distinct o)',
	'count(distinct i % 7), sum(distinct i + b), count(distinct lower(t)) filter (where o), count(distinct t) filter (where i > 0), sum(distinct n) filter (where i > 1000), avg(distinct x)',
	'count(*), sum(i), max(t), string_agg(distinct t, s order by t, s), array_agg(distinct e order by e desc), stddev(distinct i), sum(x order by x), array_agg(i order by id) filter (where o)',
	'array_agg(i order by i), array_agg(i order by i desc), array_agg(i order by i nulls first), array_agg(i order by i desc nulls last), array_agg(u order by u desc), array_agg(distinct i order by i nulls first)',
	'array_agg(i::int2 order by i::int2 desc), array_agg(distinct i::int2), array_agg(d order by d desc nulls first), array_agg(distinct d), array_agg((i + 600)::oid order by (i + 600)::oid desc), array_agg(distinct case when i % 2 = 0 then 2147483647 when i > 0 then -2147483648 end)']) l;

-- what users create: strict and not, with an initial value and without, by value and not
create function tr_last(int, int) returns int language sql immutable strict as 'select $2';
create aggregate tr_first_max(int) (sfunc = int4larger, stype = int);
create aggregate tr_strict_last(int) (sfunc = tr_last, stype = int, initcond = '-1');
create function tr_count_nulls(int, int, text) returns int language sql immutable as 'select coalesce($1, 0) + ($2 is null)::int + 10 * ($3 is null)::int';
create aggregate tr_nulls(int, text) (sfunc = tr_count_nulls, stype = int);
create function tr_longer(text, text) returns text language sql immutable strict as 'select case when length($1) > length($2) then $1 when length($1) < length($2) or $2 > $1 then $2 else $1 end';
create aggregate tr_longest(text) (sfunc = tr_longer, stype = text);
create aggregate tr_longest_of(text) (sfunc = tr_longer, stype = text, initcond = 'text 1');
-- one that turns to NULL stays NULL; one that is not strict goes on
create function tr_break(int, int) returns int language sql immutable strict as 'select case when $2 % 50 = 0 then null else $1 + $2 end';
create aggregate tr_breaks(int) (sfunc = tr_break, stype = int, initcond = '0');
create function tr_mend(int, int) returns int language sql immutable as 'select case when $2 % 50 = 0 then null else coalesce($1, 0) + 1 end';
create aggregate tr_mends(int) (sfunc = tr_mend, stype = int);
-- polymorphic ones, whose functions ask for types; expanded arrays; final functions with further arguments, and none
create aggregate tr_array(anycompatible) (sfunc = array_append, stype = anycompatiblearray, initcond = '{}');
create aggregate tr_collect(anynonarray) (sfunc = array_agg_transfn, stype = internal, finalfunc = array_agg_finalfn, finalfunc_extra);
create function tr_type_of(anyelement, anyelement) returns anyelement language plpgsql immutable as $$ begin return case when pg_typeof($2) = 'integer'::regtype then $2 else $1 end; end $$;
create aggregate tr_typed(anyelement) (sfunc = tr_type_of, stype = anyelement);
create function tr_final(int, anyelement, text) returns text language plpgsql immutable as $$ begin return $1 || ' of ' || pg_typeof($2) || coalesce($3, ' and nothing'); end $$;
create function tr_step(int, anyelement, text) returns int language sql immutable as 'select $1 + 1';
create aggregate tr_described(anyelement, text) (sfunc = tr_step, stype = int, initcond = '0', finalfunc = tr_final, finalfunc_extra);
create function tr_add_all(int, variadic int[]) returns int language sql immutable as 'select $1 + coalesce((select sum(v)::int from unnest($2) v), 0)';
create aggregate tr_variadic(variadic int[]) (sfunc = tr_add_all, stype = int, initcond = '0');
create function tr_tick(int8) returns int8 language sql immutable as 'select $1 + 1';
create aggregate tr_rows(*) (sfunc = tr_tick, stype = int8, initcond = '0');
create function tr_stretch(text, int) returns text language sql immutable as 'select case when length($1) > 200 then ''short again'' else $1 || coalesce($2, 0) % 2 end';
create aggregate tr_stretches(int) (sfunc = tr_stretch, stype = text, initcond = '');
create function tr_of_record(tr_dim, int, text) returns tr_dim language sql immutable as 'select row(coalesce($1.k, 0) + $2, $1.r, $3)::tr_dim';
create aggregate tr_composite(int, text) (sfunc = tr_of_record, stype = tr_dim);
select l, tr_check(l) as says from unnest(array[
	'tr_first_max(i), tr_strict_last(i) is null, tr_nulls(i, t), tr_nulls(null, t), tr_longest(t), tr_longest(wide), tr_longest_of(t) filter (where o), tr_strict_last(null)',
	'tr_breaks(i), tr_breaks(i) filter (where i % 50 <> 0)', 'tr_sorted(tr_array(i)), tr_sorted(tr_array(t)), tr_sorted(tr_array(n) filter (where o)), array_length(tr_array(wide), 1), tr_array(i order by id), tr_array(distinct t)',
	'tr_sorted(tr_collect(t)), tr_sorted(tr_collect(e)), pg_typeof(tr_collect(u))', 'tr_typed(i order by id), tr_typed(n order by id), tr_described(n, t), tr_described(e, null), tr_described(distinct i, t)',
	'tr_variadic(i, k), tr_variadic(variadic a), tr_variadic(1, i, k), tr_rows(*), tr_rows(*) filter (where i > 0)']) l;
-- the order of rows decides, and a GPU's matches come in none
set hashgraph_join.engine = cpu;
select l, tr_check(l) as says from unnest(array['tr_mends(i) is null', 'length(tr_stretches(i)), (tr_composite(i, t)) is null, (tr_composite(i, ''one'')).k']) l;
reset hashgraph_join.engine;
-- a strict function without an initial value whose argument is no state
create function tr_tick_two(int8, int) returns int8 language sql immutable as 'select $1 + $2';
create aggregate tr_wrong(int) (sfunc = tr_tick_two, stype = int8);
alter function tr_tick_two(int8, int) strict;
do $$ begin
	set local hashgraph_join.force = on;
	perform tr_wrong(i) from tr;
exception when invalid_function_definition then
	raise notice '%', regexp_replace(sqlerrm, '\d+', 'N');
end $$;
-- errors: of a row that is there, and of none that a filter drops or a join has not
create function tr_fail(int, int) returns int language plpgsql immutable as $$ begin if $2 = 37 then raise 'not %', $2; end if; return coalesce($1, 0) + 1; end $$;
create aggregate tr_fails(int) (sfunc = tr_fail, stype = int);
select tr_same(q) as says, q from unnest(array['select g, tr_fails(k) from tr group by g', 'select g, tr_fails(k) filter (where k <> 37) from tr group by g', 'select g, tr_fails(k) from tr where k < 37 group by g',
	'select r, tr_fails(k) from tr join tr_dim using (k) where r < 1 group by r', 'select r, tr_fails(k) from tr join tr_dim using (k) group by r', 'select g, tr_fails(i / (k - 5)) from tr group by g',
	'select g, tr_fails(i / (k - 5)) filter (where k <> 5 and k <> 37) from tr group by g', 'select g, jsonb_object_agg(t, i) from tr group by g']) q;

-- rescans; cursors; LIMIT; HAVING; used twice; below and above others
select hgj_check('select w.n, q.* from generate_series(1, 3) w(n), lateral (select g, string_agg(t, '','' order by id), count(distinct i), count(distinct t), stddev(i) from tr where id % 3 < w.n group by g offset 0) q', 0) as parameters,
	hgj_check('select w.n, q.* from (values (1), (2)) w(n) left join (select s, tr_array(i order by id) as l, tr_first_max(i) m from tr group by s) q on q.m > w.n', 0) as again;
select tr_check('case when count(distinct t) > 3 then string_agg(distinct t, '','') end, count(distinct t) + count(distinct i)') as twice,
	hgj_check_agg('select g, array_agg(i order by id) from tr group by g having stddev(i) > 280 and string_agg(t, '','' order by id) like ''text%'' order by g limit 5', 0) as having,
	hgj_check_agg('select max(l), count(*) from (select length(string_agg(t, '','')) l from tr group by k, g) q', 0) as below,
	hgj_check_agg('select s, rank() over (order by string_agg(distinct t, '''')), lag(array_agg(i order by id)) over (order by s) from tr group by s', 0) as window;
begin;
set local hashgraph_join.force = on;
declare c cursor for select k, string_agg(t, ',' order by id) from tr where id < 200 group by k;
move 20 in c;
close c;
commit;

-- little memory: rows of groups that have no room are put aside, and sorted later
create function tr_spills(q text) returns bool language plpgsql set hashgraph_join.force = on as $$
declare
	plan json;
begin
	execute 'explain (analyze, format json) ' || q into plan;
	return (plan -> 0 -> 'Plan' ->> 'Spilled Rows')::int > 0;
end $$;
set work_mem = '64kB';
set hash_mem_multiplier = 1;
select tr_spills('select id, ' || l || ' from tr group by id') as spills, tr_check(l) as says from unnest(array['tr_sorted(array_agg(wide)), stddev(i)', 'string_agg(wide, '','' order by id), count(distinct wide), count(distinct i)', 'tr_sorted(tr_array(t)), tr_longest(wide)']) l;
reset work_mem;
reset hash_mem_multiplier;

-- by workers: states are combined, and serialized, where there are functions for that
create function tr_combine_null(int, int) returns int language sql immutable parallel safe as 'select case when $1 is null then $2 else $1 + coalesce($2, 0) end';
create function tr_count_up(int, int) returns int language sql immutable parallel safe as 'select coalesce($1, 0) + ($2 is null)::int';
create aggregate tr_part(int) (sfunc = tr_count_up, stype = int, combinefunc = tr_combine_null, parallel = safe);
create aggregate tr_part_text(text) (sfunc = text_larger, stype = text, combinefunc = text_larger, parallel = safe);
create aggregate tr_part_array(anycompatible) (sfunc = array_append, stype = anycompatiblearray, combinefunc = array_cat, initcond = '{}', parallel = safe);
create aggregate tr_part_avg(int) (sfunc = int4_avg_accum, stype = int8[], combinefunc = int4_avg_combine, finalfunc = int8_avg, initcond = '{0,0}', parallel = safe);
create aggregate tr_part_numeric(numeric) (sfunc = numeric_avg_accum, stype = internal, combinefunc = numeric_avg_combine, serialfunc = numeric_avg_serialize, deserialfunc = numeric_avg_deserialize, finalfunc = numeric_avg, parallel = safe);
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
-- where what is read costs most, workers are worth it
set cpu_operator_cost = 1;
set min_parallel_table_scan_size = 0;
set max_parallel_workers_per_gather = 2;
-- more groups than statistics know of
create table tr_grown with (autovacuum_enabled = off) as select 1 as h, * from tr;
analyze tr_grown;
update tr_grown set h = id;
create function tr_check_workers(list text) returns text language sql set hashgraph_join.parallel_aggregate = partial as $$
	select hgj_check_each(array['select ' || list || ' from tr', 'select g, s, ' || list || ' from tr group by g, s', 'select r, ' || list || ' from tr join tr_dim using (k) group by r', 'select h, ' || list || ' from tr_grown group by h', 'select w, ' || list || ' from tr_grown tr join tr_dim using (k) group by w'], 0, 'Partial Mode: Partial', 'partial HashGraphAgg')
$$;
select l, tr_check_workers(l) as says from unnest(array['tr_part(i), tr_part_text(t), tr_part_avg(i), tr_part_numeric(n)', 'tr_sorted(tr_part_array(i)), tr_sorted(tr_part_array(t) filter (where o)), count(*), sum(n)',
	'stddev(i), var_pop(b), stddev(n), round(corr(i, x)::numeric, 6), round(stddev(x)::numeric, 6)', 'tr_part_text(t) filter (where i > 0), tr_part(i) filter (where null), max(t), avg(n)']) l;
set work_mem = '64kB';
set hash_mem_multiplier = 1;
select hgj_check_agg('select h, tr_part_text(wide), tr_part(i), stddev(n), length(tr_part_array(t)::text) > 0 from tr_grown group by h', 0, 'Partial Mode: Partial', 'partial HashGraphAgg') as says;
set hashgraph_join.force = on;
select count(*) > 0 as emptied from hgj_explain('(analyze, costs off, timing off) select h, tr_part_text(wide), tr_part(i), stddev(n) from tr_grown group by h') line where line ~ 'Times Emptied';
reset hashgraph_join.force;
reset work_mem;
reset hash_mem_multiplier;
-- processes do not exchange such states, whatever is asked for
set hashgraph_join.parallel_aggregate = exchange;
set hashgraph_join.force = on;
select hgj_lines('select g, tr_part(i), stddev(i) from tr group by g', 'Exchange: ') as exchanges;
reset hashgraph_join.parallel_aggregate;
reset hashgraph_join.force;
reset max_parallel_workers_per_gather;
reset min_parallel_table_scan_size;
reset parallel_setup_cost;
reset parallel_tuple_cost;
reset cpu_operator_cost;

-- declined: ordered sets, volatile arguments
set hashgraph_join.force = on;
select q, hgj_lines(q, 'HashGraphAgg') as ours from unnest(array['select percentile_cont(0.5) within group (order by i) from tr', 'select g, mode() within group (order by i) from tr group by g', 'select rank(5) within group (order by i) from tr',
	'select string_agg(t, random()::text) from tr', 'select g, s, string_agg(t, '','' order by id) from tr group by rollup (g, s)']) q;
reset hashgraph_join.force;
-- a function that looks for its aggregate finds it: this one wants an ordered set's
create aggregate tr_lost("any") (sfunc = ordered_set_transition, stype = internal, finalfunc = numeric_avg);
select tr_same('select tr_lost(i) is null from tr') as says;

-- permissions: the user's for the aggregate, its owner's for its functions
create role tr_user;
create role tr_owner;
grant select on tr, tr_dim to tr_user;
create aggregate tr_owned(int) (sfunc = tr_fail, stype = int);
alter aggregate tr_owned(int) owner to tr_owner;
revoke execute on function tr_fail(int, int) from public;
set hashgraph_join.force = on;
set role tr_user;
select tr_owned(k) from tr where k < 5;
reset role;
grant execute on function tr_fail(int, int) to tr_owner;
set role tr_user;
select tr_owned(k) from tr where k < 5;
reset role;
revoke execute on function tr_owned(int) from public;
set role tr_user;
select tr_owned(k) from tr where k < 5;
reset role;
explain (costs off) select g, string_agg(t, ',' order by id), count(distinct i), array_agg(i) from tr group by g;
reset hashgraph_join.force;
\set VERBOSITY terse
drop table tr, tr_dim, tr_grown cascade;
drop owned by tr_user, tr_owner;
drop role tr_user, tr_owner;
do $$
declare
	f regprocedure;
begin
	for f in select oid from pg_proc where proname like 'tr\_%' order by prokind loop
		execute format('drop routine %s', f);
	end loop;
end $$;
drop type tr_mood;
drop domain tr_small;
