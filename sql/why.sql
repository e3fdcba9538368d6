-- hashgraph_join_why(): every reason that can be brought about by planning, for the query
-- that has it; nodes are named as EXPLAIN names them; nothing is run.  (Those that a GPU, a
-- run or another extension brings about are in test/t/028_reasons.pl; test/reasons.pl looks
-- for each of the catalogue.)
create schema why;
set search_path = why, public;
set jit = off;

-- What is not ours, and why.  Before that: are the nodes those of EXPLAIN?
create function why_not(q text) returns setof text language plpgsql as $$
declare
	line text;
	wanted text[] := '{}';
	named text[];
begin
	for line in execute 'explain (costs off) ' || q loop
		if line ~ '^\w|->' and line ~ '(Join|Nested Loop|Aggregate|Group|Scan)' and line !~ '(Bitmap Index|Group Key|Grouping)' then
			wanted := wanted || regexp_replace(line, '^[ ]*(-> *)?', '');
		end if;
	end loop;
	select array_agg(node) into named from (select node from hashgraph_join_why(q) where node not in ('Subquery', 'GROUP BY')) x;
	if named is distinct from wanted then
		return next format('EXPLAIN has %s, and not %s', wanted, named);
	end if;
	return query select distinct case when w.node ~ 'Join|Nested' then 'join' when w.node ~ 'Agg|Group' then 'aggregation' else 'scan' end || ': ' || w.reason
		from hashgraph_join_why(q) w where not w.taken and (w.source is not null or w.node !~ 'Scan|Subquery|GROUP BY') order by 1;
end $$;

create table f (id int, k int, t text, v int) with (autovacuum_enabled = off);
insert into f select g, g % 900, 'text ' || g % 500, g % 37 from generate_series(1, 20000) g;
create table d (k int, t text, w int) with (autovacuum_enabled = off);
insert into d select g % 1200, 'text ' || g % 700, g % 11 from generate_series(1, 12000) g;
create table few (k int, w int) with (autovacuum_enabled = off);
insert into few select g, g % 11 from generate_series(1, 300) g;
create table p (id int primary key, t text, j json, n numeric) with (autovacuum_enabled = off);
insert into p select g, 'text ' || g, '{}', g from generate_series(1, 11000) g;
create table parted (k int, v text) partition by range (k);
create table parted_low partition of parted for values from (0) to (50);
create table parted_high partition of parted for values from (50) to (20000);
insert into parted select g % 100, 'a' from generate_series(1, 20000) g;
vacuum analyze f, d, few, p, parted;

-- what is ours
select * from hashgraph_join_why('select d.w, count(*), sum(f.v) from f join d using (k) group by d.w');
select * from hashgraph_join_why('select count(*) from f x');
select * from hashgraph_join_why('select f.t from f join d using (k) join p on p.id = f.k');
select why_not('select d.w, count(*), sum(f.v) from f join d using (k) group by d.w');

-- joins
select why_not('select few.w from few join few y using (k)');
select why_not('select f.v from few, f where few.k < f.k');
-- lookups that cost less than any join of ours would before its first row: reasons are
-- looked for only because somebody asks
select why_not('select p.t from few join p on p.id = few.k where few.w = 3');
select why_not('select p.t from few join p on p.id between few.k and few.k + 1 where few.k = 3');
set client_min_messages = debug1;
explain (costs off) select p.t from few join p on p.id between few.k and few.k + 1 where few.k = 3;
reset client_min_messages;
set hashgraph_join.startup_cost = 1e9;
select why_not('select f.v from f join d using (k)');
reset hashgraph_join.startup_cost;
set hashgraph_join.enabled = off;
select why_not('select f.v, count(*) from f join d using (k) group by 1');
reset hashgraph_join.enabled;
set enable_hashjoin = off;
select why_not('select f.v from f join d using (k)');
reset enable_hashjoin;
set hashgraph_join.force = on;
select why_not('select f.v from f join d using (k) where (select true)');
select why_not('update parted set v = ''x'' from f where f.k = parted.k');
select why_not('select (s.r).f1 from (select row(id, k) r, k from f offset 0) s join d on (s.r).f1 = d.k');
select why_not('select s.w from f, lateral (select d.k, d.w + f.v as w from d offset 0) s where s.k = f.k');
reset hashgraph_join.force;
-- a few values, made unique, and then joined as any table is
create table pairs (a int, b int) with (autovacuum_enabled = off);
insert into pairs select 1 + g % 2, 1 + g % 3 from generate_series(1, 30000) g;
analyze pairs;
select * from why_not('select count(*) from f join p on f.v = p.id where (f.k, p.n) in (select a, b from pairs)') x where x ~ 'join type';

-- aggregations of joins
set hashgraph_join.force = on;
select why_not('select d.w, count(*) from f join d using (k) group by rollup (d.w)');
select why_not('select d.w, grouping(d.w), count(*) from f join d using (k) group by d.w');
select why_not('select string_agg(f.t, '','' order by f.id) from f join d using (k)');
select why_not('select percentile_disc(0.5) within group (order by f.v) from f join d using (k)');
select why_not('select array_agg(f.v), sum(f.v) from f join d using (k)');
select why_not('select sum(random() * f.v) from f join d using (k)');
select why_not('select count(*) from f join d using (k) group by row(f.v, d.w)');
select why_not('select count(*) from f join d using (k) group by f.id::text::bit(8)::bit varying');
select why_not('select p.id, p.j::text, count(*) from f join p on f.k = p.id group by p.id');
select why_not('select count(*) from f join d using (k) group by generate_series(1, f.v)');
set enable_hashagg = off;
select why_not('select f.v, count(*) from f join d using (k) group by f.v');
reset enable_hashagg;
set hashgraph_join.aggregate = off;
select why_not('select count(*) from f join d using (k)');
reset hashgraph_join.aggregate;
select why_not('select count(*) from generate_series(1, 3)');
select why_not('select distinct d.w from f join d using (k)');
select why_not('select count(*) from (select distinct d.w from f join d using (k) offset 0) x');
create table family (id int primary key, t text);
create table child (primary key (id)) inherits (family);
insert into family values (1, 'mother');
insert into child values (1, 'child'), (2, 'another');
analyze family, child;
select why_not('select x.id, x.t, count(*) from f join family x on f.v = x.id group by x.id');
-- of tables
select why_not('select count(*) from few tablesample system (100)');
select why_not('select count(*) from f where current_user = ''nobody''');
select why_not('select count(f.*) from f');
create sequence counted;
select why_not('select count(last_value) from counted');
select why_not('select count(*) from parted tablesample system (100)');
select why_not('select count(r) from (select row(k, 1) r from f union all select row(k, 2) from d) x');
set enable_seqscan = off;
select why_not('select count(t) from p where id > 20');
reset enable_seqscan;
reset hashgraph_join.force;
select why_not('select sum(n) from p where id between 20 and 30');
select why_not('select count(*) from few');
set hashgraph_join.aggregate_scans = off;
select why_not('select count(*) from f');
reset hashgraph_join.aggregate_scans;
set hashgraph_join.agg_tuple_cost = 1000;
select why_not('select count(*) from f');
reset hashgraph_join.agg_tuple_cost;
-- in workers
set max_parallel_workers_per_gather = 2;
set min_parallel_table_scan_size = 0;
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set hashgraph_join.parallel_aggregate = partial;
set hashgraph_join.agg_tuple_cost = 1000;
select why_not('select v, count(*) from f group by v');
create function restricted(int) returns int language sql parallel restricted as 'select $1 + 1';
select why_not('select w, sum(restricted(v)) from f join d using (k) group by w');
reset hashgraph_join.agg_tuple_cost;
reset max_parallel_workers_per_gather;

-- sources
set hashgraph_join.source = tuples;
select * from hashgraph_join_why('select f.t from f join d using (k)');
reset hashgraph_join.source;
select node, taken, source, reason from hashgraph_join_why('select f.xmin from f join d using (k)') where node ~ 'Scan on';
select node, taken, source, reason from hashgraph_join_why('select f.t from f join d on f.k + 1 = d.k') where node ~ 'Scan on';
select node, taken, source, reason from hashgraph_join_why('select f.t from f join (select k from d offset 0) d using (k)') where node ~ 'Scan on';
select node, taken, source, reason from hashgraph_join_why('select f.t from f join generate_series(1, 3) d(k) using (k)') where node ~ 'Scan on';
select node, taken, source, reason from hashgraph_join_why('select f.t, d.e from f join (select k, w + 1 as e from d offset 0) d using (k)') where node ~ 'Scan on';
select node, taken, source, reason from hashgraph_join_why('select f.t from f join counted on f.k = last_value') where node ~ 'Scan on';
select node, taken, source, reason from hashgraph_join_why('select f.t, x.e from f left join (select k, coalesce(w, 1) as e from d) x using (k)') where node ~ 'Scan on';
-- an engine that is not there
set hashgraph_join.cuda_library = '/nowhere/at_all.so';
set hashgraph_join.engine = cuda;
select node, taken, engine, source, reason ~ '^engine not available: ' as unavailable from hashgraph_join_why('select f.t from f join d using (k)');
reset hashgraph_join.engine;
reset hashgraph_join.cuda_library;

-- subqueries and subplans, each known by its own joins
select why_not('select few.k, (select count(*) from few a join few b using (k) where a.w > few.w) from few');
select why_not('with x as materialized (select few.w from few join few y using (k)) select f.v from x join f on f.k < x.w');
select why_not('select few.w from few join few y using (k) union all select f.v from few, f where few.k < f.k');
-- (from 17 on by hashing)
select * from why_not('select few.w from few join few y using (k) union select f.v from few, f where few.k < f.k') x where x ~ 'join: ';
select why_not('select n, count(*) from (select p.id, count(*) n from p join d on d.k = p.id group by p.id limit 1000000) x where exists (select from f where f.id = n) group by 1');
select why_not('select a.k from parted a join parted b using (k)');
set enable_partitionwise_join = on;
select why_not('select a.k from parted a join parted b using (k) where a.v < b.v');
set enable_partitionwise_aggregate = on;
set hashgraph_join.min_rows = 30000;
select why_not('select k, count(*) from parted group by k');
select why_not('select v, count(*) from parted group by v');
reset hashgraph_join.min_rows;
reset enable_partitionwise_aggregate;
reset enable_partitionwise_join;
select why_not('with recursive r as (select 1 as n union all select r.n + few.k from r join few on few.k = r.n where r.n < 3) select count(*) from r');
select why_not('select few.w from few join few y using (k) except select f.v from few, f where few.k < f.k');
select why_not('select x.k from f x left join (few join few y using (k)) on x.k = few.k and y.w > 3');
-- many relations: planned by the genetic algorithm
set geqo_threshold = 2;
select why_not('select f.v from f, d, few, p where f.k < d.k and d.w < few.w and few.k < p.id');
reset geqo_threshold;

-- functions that plan queries of their own while this one is planned
create function plans() returns int language plpgsql immutable as $$
declare
	n int;
begin
	select count(*) into n from few a join few b using (k);
	return n;
end $$;
select why_not('select f.v from few, f where few.k < f.k and f.v < plans()');
-- what fails while it is planned leaves nothing behind
create function fails() returns int language plpgsql immutable as $$ begin return 1 / 0; end $$;
\set SHOW_CONTEXT never
select * from hashgraph_join_why('select f.v from few join f using (k) where f.v < fails()');
\set SHOW_CONTEXT errors
select why_not('select few.w from few join few y using (k)');

-- nothing is run
select count(*) > 0 as rows from hashgraph_join_why('select nextval(''counted'') from f');
select is_called from counted;
select count(*) > 0 as rows from hashgraph_join_why('delete from f using d where d.k = f.k');
select count(*) from f;
begin read only;
select count(*) > 0 as rows from hashgraph_join_why('delete from f using d where d.k = f.k');
rollback;
create rule nothing as on insert to few do instead nothing;
select count(*) from hashgraph_join_why('insert into few select k, w from d');
drop rule nothing on few;
create rule tell as on insert to few do also notify whoever;
select node from hashgraph_join_why('insert into few select few.k, few.w from few join f using (k)') where node ~ 'Join';
drop rule tell on few;

-- one statement that can be planned, without parameters
select * from hashgraph_join_why('');
select * from hashgraph_join_why('select 1; select 2');
select * from hashgraph_join_why('explain select 1');
select * from hashgraph_join_why('create table x as select 1');
select * from hashgraph_join_why('vacuum');
select * from hashgraph_join_why('select v from f where k = $1');
select * from hashgraph_join_why('select v frm f');
select * from hashgraph_join_why('select nothing from f');
select count(*) from hashgraph_join_why(null);

-- with the caller's privileges
create role hgj_why_reader;
grant usage on schema why to hgj_why_reader;
grant select on few to hgj_why_reader;
set role hgj_why_reader;
select count(*) > 0 as rows from hashgraph_join_why('select few.w from few join few y using (k)');
select * from hashgraph_join_why('select f.v from f join few using (k)');
reset role;

select count(*) > 0 as all_rows from hashgraph_join_why($$select * from hashgraph_join_why('select 1')$$);
set client_min_messages = warning;
drop schema why cascade;
drop role hgj_why_reader;
