-- What joins and aggregations have done, counted per database.  (TAP test
-- 010_stats is about several sessions; here one counts.)
create table st_a as select g as k, g % 10 as g, g as v, 'text ' || g as t from generate_series(1, 3000) g;
create table st_b as select g * 2 as k, g as v from generate_series(1, 1000) g;
insert into st_b values (null, 0);
create table st_g as select generate_series(0, 9) as k;
analyze st_a, st_b, st_g;
set hashgraph_join.force = on;
set hashgraph_join.engine = cpu;

-- Counters after statements, since a reset; some sizes are not the same everywhere.
create function st_counts() returns table (counter text, n text) language sql as $$
	select key, case when key ~ 'bytes' then case when value::bigint > 0 then 'some' end else value end
	from hashgraph_join_stats() s, jsonb_each_text(to_jsonb(s) - '{datid,datname,shared,stats_reset}'::text[])
	where datname = current_database() and value <> '0' order by key collate "C";
$$;

select hashgraph_join_stats_reset();
select datname = current_database() as here, joins, aggregates, now() - stats_reset < interval '1 minute' as just_now
from hashgraph_join_stats() where datid = (select oid from pg_database where datname = current_database());
select * from st_counts();

-- a join: rows of both sides, NULL keys among them
select count(*) from (select a.t, b.v from st_a a join st_b b using (k) offset 0) q;
select * from st_counts();

-- an aggregation, and a chain of joins that is taken in batches
select hashgraph_join_stats_reset();
select count(*), sum(a.v) from (select a.g, count(*), sum(a.v) as v from st_a a join st_b b using (k) join st_b c using (k) group by a.g) a;
select * from st_counts();

-- memory: partitions, passes, groups that are put aside; rescans add up
set work_mem = '64kB';
select hashgraph_join_stats_reset();
select count(*), count(y.t) from st_a x left join st_a y using (k);
select counter, case when counter in ('builds', 'spill_partitions', 'outer_rows_filtered') then (n::int > 0)::text else n end as n from st_counts()
where counter <> 'spill_passes';
select kind, reason, count from hashgraph_join_fallbacks() where datname = current_database() and reason ~ '^partitions' order by 1, 2;
select hashgraph_join_stats_reset();
reset work_mem;
set hashgraph_join.spill = passes;
set hashgraph_join.chunk_rows = 1000;
select count(*), count(y.t) from st_a x join st_a y using (k);
select * from st_counts() where counter <> 'outer_rows';
select kind, reason, count from hashgraph_join_fallbacks() where datname = current_database() order by 1, 2;
reset hashgraph_join.spill;
reset hashgraph_join.chunk_rows;
set work_mem = '64kB';
select hashgraph_join_stats_reset();
select count(*), count(t) from (select x.t, count(*) from st_a x join st_g y on x.g = y.k group by 1) q;
select aggregates, aggregates_spilled, spilled_aggregate_bytes > 0 as bytes, groups from hashgraph_join_stats() where datname = current_database();
select kind, reason, count from hashgraph_join_fallbacks() where datname = current_database() and reason ~ 'groups' order by 1, 2;
reset work_mem;
select hashgraph_join_stats_reset();
select count(s) from (select (select count(*) from st_b x join st_b y using (k) where x.v <> g.g) as s from generate_series(1, 3) g) q;
select * from st_counts() where counter in ('joins', 'builds', 'aggregates', 'groups', 'rows_returned');

-- a table that is not the one that was asked for
select hashgraph_join_stats_reset();
set hashgraph_join.build = direct;
select count(*) from st_a x join st_b y on x.k = y.k * 1000000::int8;
reset hashgraph_join.build;
select kind, reason, count from hashgraph_join_fallbacks() where datname = current_database() order by 1, 2;

-- an error, also one in a subtransaction: what was done is counted; a cursor counts when it is closed
select hashgraph_join_stats_reset();
select sum(1 / (a.v - 2000)) from st_a a join st_b b using (k);
do $$ begin perform sum(1 / (a.v - 2000)) from st_a a join st_b b using (k); exception when division_by_zero then null; end $$;
select joins, builds, inner_rows > 0 and outer_rows > 0 as rows, aggregates from hashgraph_join_stats() where datname = current_database();
begin;
declare c cursor for select a.t from st_a a join st_b b using (k);
fetch 2 from c;
select joins from hashgraph_join_stats() where datname = current_database();
close c;
select joins, rows_returned from hashgraph_join_stats() where datname = current_database();
commit;

-- not counted: EXPLAIN without ANALYZE and a join that is never asked for a row
select hashgraph_join_stats_reset();
explain (costs off) select a.t from st_a a join st_b b using (k);
select a.t from st_a a join st_b b using (k) limit 0;
select * from st_counts();

-- everybody may look, but not reset
create role st_nobody;
set role st_nobody;
select count(*) from hashgraph_join_stats() where datname = current_database();
select count(*) from hashgraph_join_fallbacks() where datname = current_database();
select hashgraph_join_stats_reset();
reset role;
grant execute on function hashgraph_join_stats_reset() to st_nobody;
set role st_nobody;
select hashgraph_join_stats_reset();
reset role;
revoke execute on function hashgraph_join_stats_reset() from st_nobody;
drop role st_nobody;
drop function st_counts;
drop table st_a, st_b, st_g;
