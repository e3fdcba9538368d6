-- Groups that processes divide among themselves by the values of their key, and in short
-- records, against PostgreSQL's own; EXPLAIN ANALYZE says how many were.
set jit = off;
create type divided_mood as enum ('sad', 'so so', 'happy');
create table lo (id int, a int, b int8, s int2, o oid, d date, t timestamp, k bool, e divided_mood, far int8, wide int, late int8, ends int8, v int, x float8, n numeric) with (autovacuum_enabled = off);
-- every 577th row makes its reader wait, and leaves others to the other processes
insert into lo select g, case when g % 19 > 0 then g % 4000 - 2000 end, -9223372036854775808 + g % 3000, g % 700 - 350, (4294967295 - g % 2000)::oid,
	date '2000-01-01' + g % 5000 - 2500, timestamp '2000-01-01' + g % 900 * interval '1 microsecond', case g % 3 when 0 then true when 1 then false end, (enum_range(null::divided_mood))[1 + g % 3],
	(g % 2500)::int8 * 1000000007, g % 40 * 100, case when g < 12000 then g % 2000 else g::int8 * 3000000000 end, case when g % 3000 = 7 then 9223372036854775807 when g % 3000 = 8 then -9223372036854775808 else g % 3000 end,
	g % 37 - 18, g / 4.0, g / 7.0 from generate_series(1, 20000) g;
analyze lo;
create view slow as select * from lo where id % 577 <> 0 or pg_sleep(0.004) is not null;
create table dim (a int, w text, u int) with (autovacuum_enabled = off);
insert into dim select g - 2100, 'w' || g % 7, g % 5 from generate_series(1, 4200) g;
analyze dim;

set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
set max_parallel_workers_per_gather = 2;
set hashgraph_join.min_rows = 100;
set hashgraph_join.startup_cost = 0;
set hashgraph_join.parallel_aggregate = exchange;
-- what workers share is to outweigh what each of them does
set hashgraph_join.agg_tuple_cost = 1;
set hashgraph_join.build_tuple_cost = 0;

-- What has become of the groups that were exchanged: all, some or none of them.
create function share(bigint, bigint) returns text language sql as $$ select case when $2 = 0 then 'none exchanged' when $1 = $2 then 'all' when $1 = 0 then 'none' else 'some' end $$;
create function hgj_divided(q text) returns table (by_value text, short text) language sql
	set hashgraph_join.force = on set hashgraph_join.require = aggregate
as $$
	select share(sum((p ->> 'Groups Divided by Value')::int), sum((p ->> 'Exchanged Groups')::int)),
		share(sum((p ->> 'Groups in Short Records')::int), sum((p ->> 'Exchanged Groups')::int))
	from hgj_process_reports(jsonb_path_query_first(hgj_plan_json(q), 'strict $.** ? (@."Custom Plan Provider" == "HashGraphAgg" && exists (@."Exchange"))')) p
$$;

-- keys of every type that may be in a map: negative ones, NULL, those beyond 32 bits
select k, hgj_check_exchange(format('select %s, count(*), count(v), sum(v) from slow group by 1', k), 0) as says, d.*
	from unnest('{a,b,s,o,d,t,k,e,wide,"a % 7","id / 100"}'::text[]) k, hgj_divided(format('select %s, count(*), count(v), sum(v) from slow group by 1', k)) d;
-- ranges that no map has: far apart, or so late; these are divided by hash
select k, hgj_check_exchange(format('select %s, count(*), sum(v) from slow group by 1', k), 0) as says, d.by_value
	from unnest('{far,late,ends}'::text[]) k, hgj_divided(format('select %s, count(*), sum(v) from slow group by 1', k)) d;
-- states that fit into 32 bits, and others
select s, hgj_check_exchange(format('select a, %s from slow group by 1', s), 0) as says, d.*
	from unnest(array['count(*)', 'min(v), max(v)', 'avg(v), sum(v::int8), avg(v::int8)', 'sum(v) filter (where v > 3), count(*) filter (where v < 0)', 'bool_or(v > 17), every(v < 18)', 'sum((v + 100)::int8 * 1000000000)',
		'min(v) filter (where id < 0)', 'max(far)', 'max(d), min(t)', 'sum(n), avg(n)', 'sum(x), count(x)', 'min(x)', 'max(n::text)', 'avg(n), count(*)']) s, hgj_divided(format('select a, %s from slow group by 1', s)) d;
-- sums of integers that do not fit: a page has many rows of each group, so however few pages a process reads, none of its sums fits
select hgj_check_exchange('select k, sum(2000000000 + v) from slow where id < 19900 group by 1', 0) as says, d.* from hgj_divided('select k, sum(2000000000 + v) from slow where id < 19900 group by 1') d;
-- several keys are divided by hash, in short records if they are such; above a join; and what depends on the key
select hgj_check_exchange('select a, s, count(*), sum(v) from slow group by 1, 2', 0) as two, d.* from hgj_divided('select a, s, count(*), sum(v) from slow group by 1, 2') d;
select hgj_check_exchange('select a, k, count(*) from slow group by 1, 2', 0) as two, d.* from hgj_divided('select a, k, count(*) from slow group by 1, 2') d;
select hgj_check_exchange('select a, count(*), sum(u), max(u) from slow join dim using (a) group by 1', 1) as joined, d.* from hgj_divided('select a, count(*), sum(u), max(u) from slow join dim using (a) group by 1') d;
select hgj_check_exchange('select a, w, count(*) from slow join dim using (a) group by 1, 2', 1) as text;
alter table dim add primary key (a);
select hgj_check_exchange('select dim.a, w, u, count(*) from slow join dim using (a) group by 1, 2, 3', 1) as dependent, d.* from hgj_divided('select dim.a, w, u, count(*) from slow join dim using (a) group by 1, 2, 3') d;
select hgj_check_exchange('select dim.a, u, count(*) from slow join dim using (a) group by 1, 2', 1) as dependent, d.* from hgj_divided('select dim.a, u, count(*) from slow join dim using (a) group by 1, 2') d;
-- groups of groups: the same process has all of a key
select hgj_check_exchange('select c, count(*), sum(a) from (select a, count(*) as c from slow group by 1) x group by 1', 0) as twice;
select hgj_check_exchange('select a, count(*), sum(c) from (select a, s, count(*) as c from slow group by 1, 2) x group by 1', 0) as by_first;
select hgj_check_agg('select count(distinct a), count(distinct s) from slow', 0) as distinct;
-- without a leader
set parallel_leader_participation = off;
select hgj_check_exchange('select a, count(*), sum(v) from slow group by 1', 0) as says, d.* from hgj_divided('select a, count(*), sum(v) from slow group by 1') d;
reset parallel_leader_participation;
-- a process that has emptied its table divides by hash, and so do all others; so little memory holds no map
set work_mem = '64kB';
set hash_mem_multiplier = 1;
select k, hgj_check_exchange(format('select %s, count(*), sum(v) from slow group by 1', k), 0) as says, d.by_value
	from unnest('{id,a,s,wide}'::text[]) k, hgj_divided(format('select %s, count(*), sum(v) from slow group by 1', k)) d;
reset work_mem;
reset hash_mem_multiplier;
-- a Gather that is rescanned divides anew
set enable_material = off;
set enable_memoize = off;
select hgj_check_exchange('select g, x.* from generate_series(1, 3) g left join (select a, sum(v) as s, max(d) from slow group by a) x on x.s > g * 20', 0) as rescanned;
set hashgraph_join.force = on;
select jsonb_path_query(hgj_plan_json('select g, x.* from generate_series(1, 3) g left join (select a, sum(v) as s, max(d) from slow group by a) x on x.s > g * 20'), 'strict $.** ? (@."Node Type" == "Gather")."Actual Loops"') as loops;
reset hashgraph_join.force;
reset enable_material;
reset enable_memoize;
drop view slow;
drop table lo, dim;
drop function hgj_divided, share;
drop type divided_mood;
