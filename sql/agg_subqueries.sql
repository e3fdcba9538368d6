-- Groups of a subquery that the workers of the outer query make together, without a Gather
-- of their own: each group is made once, whether a join builds with them or probes with them.
create table sub_rows (k int, v int, t text) with (autovacuum_enabled = off);
insert into sub_rows select nullif(g * 7919 % 3000, 17), g % 41, case when g % 5 > 0 then 'text ' || g % 700 end from generate_series(1, 20000) g;
create table sub_keys (k int, c int) with (autovacuum_enabled = off);
insert into sub_keys select g % 3500, g % 13 from generate_series(1, 6000) g;
create table sub_none (k int, v int) with (autovacuum_enabled = off);
insert into sub_none select g, g from generate_series(1, 3000) g;
analyze sub_rows, sub_keys, sub_none;
delete from sub_none;

set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
set max_parallel_workers_per_gather = 2;
set hashgraph_join.min_rows = 100;
set hashgraph_join.startup_cost = 0;
set hashgraph_join.parallel_aggregate = exchange;
set hashgraph_join.parallel_build = shared;
-- what workers share is to outweigh what each of them does
set hashgraph_join.agg_tuple_cost = 1;

-- The answer is PostgreSQL's, and there is one Gather, above a join that has the groups of
-- all workers below it.
create function hgj_check_subquery(q text, nodes int default 1) returns text language plpgsql as $$
declare
	line text;
	gathers int := 0;
	joined bool := false;
	shared bool := false;
begin
	perform set_config('hashgraph_join.force', 'on', true);
	for line in execute 'explain (costs off) ' || q loop
		gathers := gathers + (line ~ 'Gather')::int;
		joined := joined or line ~ 'HashGraphJoin';
		shared := shared or (joined and line ~ 'Exchange: groups, by hash');
	end loop;
	perform set_config('hashgraph_join.force', 'off', true);
	if gathers <> 1 or not shared then
		return format('%s Gathers, shared: %s', gathers, shared);
	end if;
	return hgj_check(q, nodes);
end $$;

set hashgraph_join.force = on;
explain (costs off) select c, count(*) from sub_keys where k in (select k from sub_rows group by k having sum(v) > 100) group by c;
reset hashgraph_join.force;
create temp table queries (q text);
insert into queries values
	('select c, count(*) from sub_keys where k in (select k from sub_rows group by k having sum(v) > 100) group by c'),
	('select k, c from sub_keys where k in (select k from sub_rows group by k having sum(v) > 100)'),
	('select sub_keys.k, c, s from sub_keys join (select k, sum(v) as s from sub_rows group by k) x using (k)'),
	('select sub_keys.k, c, s, n, m from sub_keys left join (select k, sum(v) as s, count(*) as n, min(t) as m from sub_rows group by k) x using (k)'),
	('select x.k, c, s from sub_keys right join (select k, sum(v) as s from sub_rows group by k) x using (k)'),
	('select x.k, c, s from sub_keys full join (select k, sum(v) as s from sub_rows group by k) x using (k)'),
	('select c, t, n from sub_keys join (select k % 700 as k, t, count(*) as n from sub_rows group by k % 700, t) x using (k)'),
	('select k, c from sub_keys where exists (select 1 from (select k, sum(v) as s from sub_rows group by k) x where x.k = sub_keys.k and s > c * 10)'),
	('select k, c from sub_keys where not exists (select 1 from (select k, sum(v) as s from sub_rows group by k) x where x.k = sub_keys.k)'),
	('select a.k, s, z from (select k, sum(v) as s from sub_rows group by k) a join (select k, sum(c) as z from sub_keys group by k) b using (k)'),
	('select c, s from sub_keys join (select r.k, sum(v) as s from sub_rows r join sub_keys using (k) group by r.k) x using (k)'),
	('select sub_keys.k, c, s from sub_keys join (select k, sum(v) as s from sub_none group by k) x using (k)'),
	('select sub_keys.k, c, s from sub_keys left join (select k, sum(v) as s from sub_none group by k) x using (k)'),
	('select distinct c, s from sub_keys join (select distinct on (k) k, sum(v) as s from sub_rows group by k order by k) x using (k)'),
	('select c, s from sub_keys join (select k, sum(v) as s from sub_rows group by k union all select k, sum(c) from sub_keys group by k) x using (k)');
select q, hgj_check_subquery(q) as says from queries;
create function check_all() returns setof text language sql
as $$ select q || ': ' || s from queries, hgj_check_subquery(q) s where s <> 'ok' and q !~ 'distinct on|union all' $$;
set parallel_leader_participation = off;
select check_all();
reset parallel_leader_participation;
set max_parallel_workers_per_gather = 1;
set max_parallel_workers = 0;
select check_all();
reset max_parallel_workers;
set max_parallel_workers_per_gather = 2;
set work_mem = '64kB';
set hash_mem_multiplier = 1;
select check_all();
reset work_mem;
reset hash_mem_multiplier;

-- a Gather that is rescanned, with other groups each time
set enable_material = off;
set enable_memoize = off;
select hgj_check_subquery('select g, x.* from generate_series(1, 3) g left join (select sub_keys.k, c, s from sub_keys join (select k, sum(v) as s from sub_rows group by k) y using (k)) x on x.s = g * 7') as says;
reset enable_material;
reset enable_memoize;

-- what it says when a group fails, in a worker or the leader, while the others wait for it
set hashgraph_join.force = on;
select hgj_says('select count(*) from sub_keys where k in (select k from sub_rows group by k having sum(1 / (v - 40)) > 100)');
select hgj_says('select count(*) from sub_keys where k in (select k from sub_rows group by k having 1 / (sum(v) - sum(v)) > 100)');
-- where the outer query takes no more than it wants
select count(*) from (select k from sub_keys where k in (select k from sub_rows group by k having sum(v) > 100) limit 10) x;
reset all;

-- an aggregation over a join that stays in a subquery of its own: batches
set hashgraph_join.force = on;
explain (costs off) select c, sum(v) from (select c, coalesce(v, -1) as v, t from sub_keys left join sub_rows using (k) offset 0) x group by c;
reset hashgraph_join.force;
truncate queries;
insert into queries values
	('select c, sum(v), count(*) from (select c, coalesce(v, -1) as v from sub_keys left join sub_rows using (k) offset 0) x group by c'),
	('select t, count(*), min(v) from (select c, v, t from sub_keys join sub_rows using (k) offset 0) x group by t'),
	('select v, c, max(t), count(t) from (select c, v, t from sub_keys left join sub_rows using (k) offset 0) x group by v, c having count(*) > 3'),
	('select sum(v), count(t), avg(c) from (select t, v, c from sub_keys full join sub_rows using (k) offset 0) x'),
	('select n, count(*) from (select c, n from sub_keys left join (select k, count(*) as n from sub_rows group by k) y using (k) offset 0) x group by n'),
	('select c, sum(v) from (select c, v from sub_keys join sub_none using (k) offset 0) x group by c'),
	('select c, sum(v + length(t)) from (select v, t, c from sub_keys join sub_rows using (k) offset 0) x where v > 10 group by c'),
	('select c, count(*) from (select sub_keys, c from sub_keys join sub_rows using (k) offset 0) x group by c'),
	('select g, y.* from generate_series(1, 3) g left join lateral (select c, sum(v) as s from (select c, v from sub_keys join sub_rows using (k) where v > g * 10 offset 0) x group by c) y on y.c = g');
select q, hgj_check(q) as says from queries;
set max_parallel_workers_per_gather = 2;
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
select q, hgj_check(q) as says from queries where q !~ 'generate_series';
set hashgraph_join.force = on;
set max_parallel_workers_per_gather = 0;
-- a column that nobody reads is computed all the same where that has an effect
create sequence sub_calls;
create function calls_of(q text) returns bigint language plpgsql as $$
begin
	perform setval('sub_calls', 1, false);
	execute q;
	return (select last_value from sub_calls);
end $$;
select calls_of('select count(*) from (select nextval(''sub_calls'') from sub_keys join sub_rows using (k) offset 0) x') =
	(select count(*) from sub_keys join sub_rows using (k)) as of_pairs,
	calls_of('select count(*) from (select k, nextval(''sub_calls'') from sub_rows group by k offset 0) x') =
	(select count(*) from (select k from sub_rows group by k) x) as of_groups,
	calls_of('select sum(c) from sub_keys join (select k, nextval(''sub_calls'') from sub_rows group by k offset 0) x using (k)') =
	(select count(*) from (select k from sub_rows group by k) x) as of_groups_below_a_join,
	calls_of('select count(*) from sub_keys join (select k, nextval(''sub_calls'') from sub_keys join sub_rows using (k) offset 0) x using (k)') =
	(select count(*) from sub_keys join sub_rows using (k)) as of_pairs_below_a_join;
drop sequence sub_calls;
drop function calls_of;
-- what fails fails below: before, and behind, the groups
select hgj_says('select c, count(v) from (select c, 1 / (v - 40) as v from sub_keys join sub_rows using (k) offset 0) x group by c');
select hgj_says('select c, sum(1 / (v - 40)) from (select c, v from sub_keys join sub_rows using (k) offset 0) x group by c');
reset all;
truncate hgj_known;
drop table sub_rows, sub_keys, sub_none, queries;
drop function hgj_check_subquery, check_all;
