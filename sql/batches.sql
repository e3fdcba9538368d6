-- Chains of joins: batches go from one HashGraphJoin to the next.
set hashgraph_join.force = on;
create table d1 (k int, g int, t text) with (autovacuum_enabled = off);
insert into d1 select i, i % 7, 'd1 ' || i % 5 from generate_series(1, 60) i;
create table d2 (k int, g int, t text) with (autovacuum_enabled = off);
insert into d2 select i, case when i % 4 <> 0 then i % 3 end, repeat('long ', i) from generate_series(1, 40) i;
create table d3 (k int, g numeric, t text) with (autovacuum_enabled = off);
insert into d3 select i % 20, i / 2.0, case when i % 3 <> 0 then 'd3 ' || i end from generate_series(1, 50) i;
create table f (id int, k1 int, k2 int, k3 int, v int, w int8, x text) with (autovacuum_enabled = off);
insert into f select i, i % 80, case when i % 9 <> 0 then i % 50 end, (i * 7) % 30, i % 11, i * 1000000007::int8,
	case when i % 6 <> 0 then 'x' || i end from generate_series(1, 5000) i;
analyze d1, d2, d3, f;

-- What EXPLAIN says of it.
explain (costs off) select f.id, d1.g, d2.g from f join d1 on f.k1 = d1.k join d2 on f.k2 = d2.k;

-- How many sides a plan reads by batches.
create function hgj_batch_sides(q text) returns int language plpgsql as $$
declare
	line text;
	n int := 0;
begin
	for line in execute 'explain (costs off) ' || q loop
		n := n + (line ~ 'Source: batches')::int;
	end loop;
	return n;
end $$;
create function hgj_check_chain(q text, sides int, nodes int default 2) returns text language plpgsql
	set hashgraph_join.force = on
as $$
begin
	if hgj_batch_sides(q) < sides then
		return format('only %s sides by batches: %s', hgj_batch_sides(q), q);
	end if;
	return hgj_check(q, nodes);
end $$;

-- Every pair of join types, with the chain on the outer side, ...
set join_collapse_limit = 1;
select j1, j2, hgj_check_chain(format('select f.id, f.x, d1.t, d2.g, d2.t from f %s join d1 on f.k1 = d1.k %s join d2 on f.k2 = d2.k', j1, j2), 1)
from unnest('{inner,left,right,full}'::text[]) j1, unnest('{inner,left,right,full}'::text[]) j2;
-- ... keyed by what the first join may have made NULL, ...
select j1, j2, hgj_check_chain(format('select f.id, f.x, d1.t, d2.g, d2.t from f %s join d1 on f.k1 = d1.k %s join d2 on d1.g = d2.k', j1, j2), 1)
from unnest('{inner,left,full}'::text[]) j1, unnest('{inner,left,right,full}'::text[]) j2;
-- ... on the inner side, ...
select j1, j2, hgj_check_chain(format('select f.id, f.x, d1.t, d3.g, d3.t from f %s join (d1 %s join d3 on d1.g = d3.k) on f.k1 = d1.k', j1, j2), 1)
from unnest('{inner,left,right,full}'::text[]) j1, unnest('{inner,left,right,full}'::text[]) j2;
-- ... and below semi and anti joins.
select hgj_check_chain('select f.id, d1.t from f join d1 on f.k1 = d1.k where exists (select from d3 where d3.k = f.k3 and d3.g > d1.g)', 1),
	hgj_check_chain('select f.id, d1.t from f left join d1 on f.k1 = d1.k where not exists (select from d2 where d2.k = f.k2)', 1),
	hgj_check_chain('select f.id, d1.t from f left join d1 on f.k1 = d1.k where f.k2 in (select d2.k from d2 join d3 on d2.g = d3.k)', 1);

-- Three and four joins, duplicates on every level, expressions, filters above outer joins.
select hgj_check_chain('select f.id, d1.t, d2.t, d3.t from f join d1 on f.k1 = d1.k join d2 on f.k2 = d2.k join d3 on f.k3 = d3.k', 2, 3);
select hgj_check_chain('select f.id, d1.t, d2.t, d3.t, e.g from f left join d1 on f.k1 = d1.k left join d2 on d1.g = d2.k left join d3 on f.k3 = d3.k join d1 e on f.v = e.g', 3, 4);
select hgj_check_chain('select f.id + d1.g, coalesce(d2.t, f.x), d2.g * d3.g from f join d1 on f.k1 = d1.k left join d2 on f.k2 = d2.k left join d3 on d2.g = d3.k', 2, 3);
select hgj_check_chain('select f.id, d1.t, d3.g from f left join d1 on f.k1 = d1.k left join d3 on f.k3 = d3.k where coalesce(d1.g, -1) < coalesce(d3.g, 3)', 1);
select hgj_check_chain('select f.id, d1.t, d3.g from f left join d1 on f.k1 = d1.k left join d3 on f.k3 = d3.k where d1.t is distinct from f.x', 1);
-- Residual clauses between the levels.
select hgj_check_chain('select f.id, d1.t, d3.t from f join d1 on f.k1 = d1.k and f.v > d1.g left join d3 on f.k3 = d3.k and d1.g < d3.g and f.x <> d3.t', 1);
select hgj_check_chain('select f.id, d1.t from f left join d1 on f.k1 = d1.k and f.v > d1.g where not exists (select from d3 where f.k3 = d3.k and d1.g < d3.k)', 1);
-- By-reference keys on the upper level: numeric and text.
select hgj_check_chain('select f.id, d3.t, e.g from f join d3 on f.k3 = d3.k join d3 e on d3.g = e.g', 1);
select hgj_check_chain('select f.id, d1.t, e.g from f join d1 on f.k1 = d1.k join d1 e on d1.t = e.t', 1);
-- Empty sides.
select hgj_check_chain('select f.id, d1.t, none.t from f join d1 on f.k1 = d1.k left join none on f.k2 = none.k', 1),
	hgj_check_chain('select f.id, d1.t, none.t from f left join none on f.k2 = none.k join d1 on f.k1 = d1.k', 1),
	hgj_check_chain('select f.id, d1.t, none.t from none join f on f.k2 = none.k left join d1 on f.k1 = d1.k', 1);

-- Whole rows, row marks' columns, and rows that are much larger than a batch's first.
select hgj_check_chain('select f, d1, d2.g from f join d1 on f.k1 = d1.k join d2 on f.k2 = d2.k', 1);
select hgj_check_chain('select f.id, repeat(f.x, 1000), d2.t from f join d1 on f.k1 = d1.k join d2 on f.k2 = d2.k', 1);
select hgj_check_dml('update f set v = d1.g from d1, d2 where f.k1 = d1.k and f.k2 = d2.k', 'f', 2);
select hgj_check_dml('delete from f using d1, d2 where f.k1 = d1.k and f.k2 = d2.k and d1.g < d2.g', 'f', 2);

-- Little memory: the upper join takes several passes, the lower one does, both do.
set work_mem = '64kB';
set hash_mem_multiplier = 1;
create table big (k int, g int, t text) with (autovacuum_enabled = off);
insert into big select i % 3000, i, 'big ' || i from generate_series(1, 12000) i;
analyze big;
select hgj_check('select f.id, d1.t, big.t from f join d1 on f.k1 = d1.k join big on f.id = big.k', 2),
	hgj_check('select f.id, d1.t, big.t from f left join big on f.id = big.k left join d1 on big.g = d1.k', 2),
	hgj_check('select f.id, big.t, b2.t from f full join big on f.id = big.k full join big b2 on big.g = b2.k', 2);
reset work_mem;
reset hash_mem_multiplier;

-- Rescans and parameters, LIMIT, cursors.
select hgj_check('select d.k, s.* from d1 d, lateral (select count(*) n, sum(f.id) s from f join d1 on f.k1 = d1.k left join d2 on f.k2 = d2.k where f.v = d.g) s', 2);
select hgj_check('select d.k, s.* from d1 d, lateral (select f.id, d2.t from f join d1 on f.k1 = d1.k join d2 on f.k2 = d2.k and d2.g < d.g where f.v = d.g order by 1, 2 limit 3) s', 2);
select count(*) from (select f.id from f join d1 on f.k1 = d1.k join d2 on f.k2 = d2.k limit 7) s;
begin;
declare chain cursor for select f.id is not null as id, d1.t is not null as t from f join d1 on f.k1 = d1.k join d2 on f.k2 = d2.k;
fetch 2 from chain;
delete from f where id > 100;
delete from d1;
move 3000 from chain;
fetch 1 from chain;
close chain;
rollback;
-- The counts of the lower node are those of rows, not of batches (all of them, if
-- the upper join does not say which it has no use for).
select hgj_check('select f.id, d1.t from f join d1 on f.k1 = d1.k join d2 on f.k2 = d2.k', 2);
do $$
declare
	plan json;
begin
	set local hashgraph_join.require = join;
	set local hashgraph_join.filter = off;
	execute 'explain (analyze, buffers off, format json, timing off) select f.id, d1.t from f join d1 on f.k1 = d1.k join d2 on f.k2 = d2.k' into plan;
	raise notice 'upper % rows, lower % rows', (plan->0->'Plan'->>'Actual Rows')::numeric::int, (plan->0->'Plan'->'Plans'->0->>'Actual Rows')::numeric::int;
	raise notice 'counted % and %', (select count(*) from f join d1 on f.k1 = d1.k join d2 on f.k2 = d2.k), (select count(*) from f join d1 on f.k1 = d1.k);
end $$;
drop table f, d1, d2, d3, big;
