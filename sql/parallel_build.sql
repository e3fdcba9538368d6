-- Processes of a parallel plan build one table together, of what each has read of the
-- inner side.
create table f (id int, k int, t text, v int, n numeric) with (autovacuum_enabled = off);
insert into f select g, case when g % 19 <> 0 then g % 900 end, 'text ' || g % 500, g % 37, g / 7.0 from generate_series(1, 8000) g;
create table d (k int, t text, w int, n numeric, u uuid) with (autovacuum_enabled = off);
insert into d select case when g % 23 <> 0 then g % 1200 end, case when g % 31 <> 0 then repeat('text ' || g % 700, 1 + g % 12) end, g % 11, g % 1100 / 7.0, md5((g % 300)::text)::uuid from generate_series(1, 4000) g;
create table e (id int primary key, v int, w int) with (autovacuum_enabled = off);
insert into e select g, g % 40, g % 5 from generate_series(1, 3000) g;
create table nothing (k int, w int) with (autovacuum_enabled = off);
-- one key has most of the rows, in a few pages only
create table skewed (k int, w text) with (autovacuum_enabled = off);
insert into skewed select case when g < 3000 then 7 else g end, 'wide ' || g from generate_series(1, 6000) g;
-- the planner does not know that they will be gone
insert into nothing select g, g from generate_series(1, 3000) g;
analyze f, d, e, nothing, skewed;
delete from nothing;

-- hgj_check() where the forced plan has joins whose build side is shared
create function hgj_check_shared(q text, nodes int default 1) returns text language sql
as $$ select hgj_check_lines(q, nodes, 'Build Side: shared', 'shared builds') $$;

create temp table queries (q text, nodes int, n serial);
insert into queries values
	('select f.id, d.w from f join d using (k)', 1),
	('select f.id, d.w from f left join d on f.k = d.k and f.v > d.w', 1),
	('select f.id, d.w, d.t from f right join d on f.k = d.k and f.v > d.w', 1),
	('select f.id, d.t, d.n from f full join d using (k)', 1),
	('select f.id, d.t, d.n from f full join d on f.k = d.k and f.t = d.t', 1),
	('select f.id, d.w from f left join d on f.k = d.k where d.w is null or d.w > 3', 1),
	('select f.id from f where exists (select from d where f.k = d.k)', 1),
	('select f.id from f where exists (select from d where f.k = d.k and f.v < d.w)', 1),
	('select f.id from f where not exists (select from d where f.k = d.k)', 1),
	('select f.id from f where not exists (select from d where f.k = d.k and f.v < d.w)', 1),
	('select f.id, d.w from f join d using (t)', 1),
	('select f.id, d.w, d.t from f join d on d.t = repeat(f.t, 3)', 1),
	('select f.id, d.w, d.n, d.u from f join d using (n)', 1),
	('select f.id, d.u, d.t from f join d on f.k = d.k and f.n = d.n', 1),
	('select f.id, d from f join d using (k) where f.v < 9', 1),
	('select f.id, d.w, e.v from f join d using (k) join e on e.id = f.v', 2),
	('select f.id, d.w, e.v from f left join d using (k) left join e on e.id = f.v', 2),
	('select f.id, e.t, e.v from f join (select d.k, d.t, e.v from d join e on e.id = d.w) e using (k)', 2),
	('select f.id, d.k, e.v from f full join d using (k) full join e on e.id = f.id', 2),
	('select e.v, count(*), sum(f.v), max(d.w) from f join d using (k) join e on e.id = f.v group by e.v', 2),
	('select d.t, count(*), sum(f.n), max(d.n) from f join d using (k) group by d.t', 1),
	('select d.t, d.u, count(*), sum(f.v) from f join d using (k) group by d.t, d.u', 1),
	('select d.t, count(*), count(f.id), sum(f.v) from f full join d using (k) group by d.t', 1),
	('select d.t, s.w, count(*), sum(f.v) from f join d using (k) join skewed s on s.k = f.id group by d.t, s.w', 2),
	('select f.id, nothing.w from f left join nothing using (k)', 1),
	('select f.id, nothing.w from nothing right join f using (k)', 1),
	('select f.id, s.w from f join skewed s using (k)', 1),
	('select f.id, s.w from f full join skewed s using (k)', 1),
	('select s.k, s.w from skewed s where exists (select from f where f.k = s.k)', 1),
	('select count(*) from f join d using (k)', 1),
	('select f.id, e.w from f join e on e.id = f.v where f.k > (select min(k) from d)', 1);

do 'begin perform hgj_remember(q) from queries; end';
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
set max_parallel_workers_per_gather = 2;
set hashgraph_join.parallel_build = shared;
-- they are the CPU's
set hashgraph_join.engine = cpu;
-- what workers share is to outweigh what each of them does
set hashgraph_join.agg_tuple_cost = 1;
set hashgraph_join.build_tuple_cost = 0;
set hashgraph_join.probe_tuple_cost = 1;

set hashgraph_join.force = on;
explain (costs off) select f.id, d.w from f full join d using (k);
set hashgraph_join.parallel_build = private;
explain (costs off) select f.id, d.w from f join d using (k);
set hashgraph_join.parallel_build = shared;
reset hashgraph_join.force;

select q, hgj_check_shared(q, nodes) as says from queries;
-- the helper can fail
set hashgraph_join.parallel_build = private;
select hgj_check_shared('select f.id, d.w from f join d using (k)') as says;
set hashgraph_join.parallel_build = shared;
set parallel_leader_participation = off;
select q, hgj_check_shared(q, nodes) as says from queries;
reset parallel_leader_participation;
-- planned workers, none of which comes
set max_parallel_workers = 0;
select q, hgj_check_shared(q, nodes) as says from queries;
reset max_parallel_workers;

-- every kind of table, by all queries or by every other one
create function hgj_check_all(part int default null) returns setof text language sql
as $$ select q || ': ' || s from queries, hgj_check_shared(q, nodes) s where s <> 'ok' and (part is null or n % 2 = part) $$;
set max_parallel_workers_per_gather = 1;
set hashgraph_join.source = tuples;
select hgj_check_all();
reset hashgraph_join.source;
set hashgraph_join.build = v1;
select hgj_check_all(0);
set hashgraph_join.build = v2;
select hgj_check_all(1);
set hashgraph_join.build = sort;
select hgj_check_all(0);
set hashgraph_join.build = direct;
select hgj_check_all(1);
reset hashgraph_join.build;
set hashgraph_join.segments = ellpack;
select hgj_check_all(0);
set hashgraph_join.segments = sliced;
select hgj_check_all(1);
reset hashgraph_join.segments;
set hashgraph_join.filter = on;
select hgj_check_all(0);
reset hashgraph_join.filter;
set max_parallel_workers_per_gather = 2;

-- Memory that is not enough: each process builds for itself, or one for all.
set work_mem = '64kB';
set hash_mem_multiplier = 1;
select hgj_check_all();
set parallel_leader_participation = off;
select hgj_check_all();
reset parallel_leader_participation;
reset work_mem;
reset hash_mem_multiplier;

-- Groups by codes, which the processes have merged: where a dictionary of one process, or
-- the merged one, does not hold all values, some are no codes.  The planner expects fewer.
create table unknown (k int, t text) with (autovacuum_enabled = off);
insert into unknown select g % 2000, repeat(md5((g % 9000)::text), 6) from generate_series(1, 20000) g;
create table many (k int, t text) with (autovacuum_enabled = off);
insert into many select g % 2000, repeat(md5((g % 12000)::text), 6) from generate_series(1, 30000) g;
create function hgj_has_full(q text) returns bool language sql set hashgraph_join.force = on
as $$ select count(*) > 0 from hgj_explain('(analyze, costs off, timing off, summary off) ' || q) line where line ~ 'dictionary of their codes is full' $$;
set work_mem = '4MB';
set hash_mem_multiplier = 1;
select t, hgj_check_shared(q) as says, hgj_has_full(q) as full
from unnest('{unknown,many}'::text[]) t, format('select x.t, count(*), sum(f.v) from f join %I x using (k) group by x.t', t) q;
select t, hgj_check_shared(q) as says
from unnest('{unknown,many}'::text[]) t, format('select x.t, count(*), count(f.v) from f full join %I x using (k) group by x.t', t) q;
set work_mem = '24MB';
select t, hgj_check_shared(q) as says, hgj_has_full(q) as full
from unnest('{unknown,many}'::text[]) t, format('select x.t, count(*), sum(f.v) from f join %I x using (k) group by x.t', t) q;
reset work_mem;
reset hash_mem_multiplier;

-- The Gather is rescanned: other processes make another table.
set enable_material = off;
-- Whoever reads some of these rows leaves others to the other processes.
create function hgj_rescans(jointype text) returns text language sql as $$
	select hgj_check_shared(format('select v.*, s.* from (values (1), (2), (3)) v (v) left join lateral (select count(*), sum(f.v), max(d.t) from (select * from f where id %% 977 <> 0 or pg_sleep(0.003) is not null) f %s join (select * from d where w <> 5 or k %% 97 <> 0 or pg_sleep(0.003) is not null) d using (k)) s on true', jointype)) $$;
select j, hgj_rescans(j) as says from unnest('{inner,left,full}'::text[]) j;
select hgj_check_shared('select v.*, s.* from (values (1), (2), (3)) v (v) left join lateral (select d.t, count(*), sum(f.v) from (select * from f where id % 977 <> 0 or pg_sleep(0.003) is not null) f join (select * from d where w <> 5 or k % 97 <> 0 or pg_sleep(0.003) is not null) d using (k) group by d.t) s on true') as says;
set work_mem = '64kB';
set hash_mem_multiplier = 1;
select j, hgj_rescans(j) as says from unnest('{inner,left,full}'::text[]) j;
reset work_mem;
reset hash_mem_multiplier;
reset enable_material;

-- Rows that are alike share a record, so that they have the same row id.
create table likes (k int, w int) with (autovacuum_enabled = off);
insert into likes select case when g < 60000 then g else 60000 + 3 * (g / 2 - 30000) end, g / 2 % 7 from generate_series(0, 199999) g;
create table all_keys (k int, v int) with (autovacuum_enabled = off);
insert into all_keys select g, g % 11 from generate_series(0, 300000) g;
analyze likes, all_keys;
set hashgraph_join.build_tuple_cost = 1;
select hgj_check_shared('select count(*), sum(v), sum(w) from all_keys join likes using (k)');
set hashgraph_join.build_tuple_cost = 0;

-- A query that ends early.
set hashgraph_join.force = on;
select count(*) from (select f.id, d.t from f full join d using (k) limit 10) q;
begin;
declare c cursor for select f.id, d.t from f full join d using (k);
fetch 1 from c \g /dev/null
close c;
commit;
-- What EXPLAIN says of it.
create function hgj_explained(q text) returns setof text language plpgsql as $$
declare
	line text;
begin
	for line in execute 'explain (analyze, buffers off, costs off, timing off, summary off) ' || q loop
		-- what depends on who has come first
		continue when line ~ 'Probe Filter|Workers Built|Workers Launched|Rows Removed|Spilled|Build: |(Outer|Inner) Source: ';
		line := regexp_replace(line, 'Vertices: [0-9]+|Memory Usage: [0-9]+kB.*| \(actual rows.*', '', 'g');
		return next line;
	end loop;
end $$;
select hgj_explained('select f.id, d.w from f full join d using (k)');
set work_mem = '64kB';
set hash_mem_multiplier = 1;
-- (a process that finds few outer rows left makes tables of their partitions only)
select regexp_replace(line, 'Build Rows: [0-9]+ *', 'Build Rows') as hgj_explained
	from hgj_explained('select f.id, d.w from f join d using (k)') line;
truncate hgj_known;
drop table f, d, e, nothing, skewed, likes, all_keys, unknown, many;
drop function hgj_check_shared, hgj_check_all, hgj_rescans, hgj_explained, hgj_has_full;
