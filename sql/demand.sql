-- A row that nobody asks for must not be noticed: below a LIMIT, in an EXISTS,
-- through a cursor, or beside an empty side, a query meets the same errors as
-- PostgreSQL's own plan for it, and calls functions as often.
create schema demand;
set search_path = demand, public;
set enable_nestloop = off;
set enable_mergejoin = off;
set join_collapse_limit = 1;
-- every 50th row has z = 0; rows come in the order of id
create table f (id int, k int, z int, t text, n numeric) with (autovacuum_enabled = off);
insert into f select g, g % 100, case when g % 50 <> 0 then g end, 'x' || g, g from generate_series(1, 3000) g;
update f set z = 0 where z is null;
create table g as select id, k, coalesce(z, 0) z, t, n from f order by id;
create table d (k int, u int, x text) with (autovacuum_enabled = off);
insert into d select g, g, 'd' || g from generate_series(0, 99) g;
create table e (k int) with (autovacuum_enabled = off);
create table i (v int primary key) with (autovacuum_enabled = off);
insert into i select generate_series(-3000, 3000);
vacuum i;
analyze f, g, d, e, i;

-- What a query without its LIMIT says for each of these limits, or till where:
-- as stock, and as ours.  Functions that PostgreSQL knows nothing about.
create function ratio(a int, b int) returns int language plpgsql as 'begin return a / b; end';
create function outcome(q text) returns text language plpgsql as $$
declare
	n bigint;
begin
	execute q into n;
	return n::text;
exception when division_by_zero or numeric_value_out_of_range or invalid_regular_expression then
	return sqlerrm;
end $$;
create function same_outcome(q text, nodes int default 1) returns text language plpgsql
	set hashgraph_join.enabled = on set hashgraph_join.force = off set hashgraph_join.require = off
as $$
declare
	limited text;
	stock text;
	ours text;
	said text[] := '{}';
begin
	foreach limited in array array[' limit 1', ' limit 30', ' limit 49', ' limit 50', ''] loop
		limited := 'select count(x.*) from (' || q || limited || ') x';
		perform set_config('hashgraph_join.enabled', 'off', true);
		stock := outcome(limited);
		perform set_config('hashgraph_join.enabled', 'on', true), set_config('hashgraph_join.force', 'on', true);
		if hgj_nodes(limited) < nodes then
			return 'too few HashGraphJoins: ' || limited;
		end if;
		ours := outcome(limited);
		perform set_config('hashgraph_join.force', 'off', true);
		if ours is distinct from stock then
			return format('DIFFERENT: %s stock, %s ours: %s', stock, ours, limited);
		end if;
		said := said || stock;
	end loop;
	return array_to_string(said, ', ');
end $$;

create view queries(what, nodes, q) as values
	('a loop', 1, 'select g.id from g join d using (k) where 10 / z >= 0'),
	('behind another clause', 1, 'select g.id from g join d using (k) where id <> 7 and 10 / z >= 0'),
	('in an OR', 1, 'select g.id from g join d using (k) where id < 49 or 10 / z >= 0'),
	('overflow', 1, 'select g.id from g join d using (k) where (id / 50) * 2000000000 >= 0'),
	('two of them', 1, 'select g.id from g join d using (k) where 10 / (id - 60) < 100 and 10 / z >= 0'),
	('a call', 1, 'select g.id from g join d using (k) where 10 / z::numeric >= 0'),
	('a call that cannot fail', 1, 'select g.id from g join d using (k) where n > 0 and t like ''x%'' and 10 / z >= 0'),
	('a function of the user', 1, 'select g.id from g join d using (k) where ratio(10, z) >= 0'),
	('both', 1, 'select g.id from g join d using (k) where ratio(10, id) >= 0 and 10 / z >= 0'),
	('a constant', 1, 'select g.id from g join d using (k) where id < 30 or id > (select 1 / u from d where u = 0)'),
	('a constant that is well', 1, 'select g.id from g join d using (k) where id >= (select min(u) from d) and 10 / z >= 0'),
	('a list from a subquery', 1, 'select g.id from g join d using (k) where id < 30 or id in (select 1000 / u from d where u < 40 order by x offset 0)'),
	('a list that is well', 1, 'select g.id from g join d using (k) where id not in (select u * 5 from d where u > 7) and 10 / z >= 0'),
	('the other order', 1, 'select g.id from d right join g using (k) where 10 / z >= 0'),
	('left', 1, 'select g.id from g left join d on g.k = d.k and u < 50 where 10 / z >= 0'),
	('semi', 1, 'select g.id from g where exists (select from d where d.k = g.k) and 10 / z >= 0'),
	('anti', 1, 'select g.id from g where not exists (select from d where d.k = g.k + 1000) and 10 / z >= 0'),
	('wide values', 1, 'select g.t, x from g join d using (k) where 10 / z >= 0'),
	('a join clause', 1, 'select g.id from g join d on g.k = d.k and 10 / (z + u - u) >= 0'),
	('a join clause that is a call', 1, 'select g.id from g join d on g.k = d.k and 10 / (z + u - u)::numeric >= 0'),
	('a join clause of the user', 1, 'select g.id from g join d on g.k = d.k and ratio(10, z + u - u) >= 0'),
	('a semi join''s clause', 1, 'select g.id from g where exists (select from d where d.k = g.k and 10 / (z + u - u) >= 0)'),
	('a left join''s clause', 1, 'select g.id, u from g left join d on g.k = d.k and 10 / (z + u - u) >= 0'),
	('a filter above', 1, 'select g.id from g left join d on g.k = d.k where 10 / (z + coalesce(u, 0) * 0) >= 0'),
	('an output column', 1, 'select 10 / z as q from g join d using (k) offset 0'),
	('a key', 1, 'select g.id from g join d on g.k + 10 / z * 0 = d.k'),
	('a key that is a call', 1, 'select g.id from g join d on (g.k + 10 / z::numeric * 0)::int = d.k'),
	('a key of some rows', 1, 'select g.id from g join d on case when g.id % 3 = 0 then g.k + 10 / z * 0 end = d.k'),
	('a key and a clause', 1, 'select g.id from g join d on g.k + 10 / (z + (g.id = 100)::int) * 0 = d.k and 10 / (g.z + d.u - d.u + (g.id <> 100)::int) >= 0'),
	('two joins, a key that is a call', 2, 'select g.id from g join d using (k) join d d2 on d2.u = (g.k + 10 / z::numeric * 0)::int'),
	('a text key', 1, 'select g.id from g join d on ''d'' || g.k + 10 / z * 0 = d.x'),
	('a subquery', 1, 'select s.id from (select id, k, 10 / z as q from g offset 0) s join d using (k) where q >= 0'),
	('rows of a function', 1, 'select s.i from (select i, 10 / (i % 50) as q from generate_series(1, 200) i) s join d on s.i % 100 = d.k where q >= 0'),
	('an index condition', 1, 'select s.id from (select g.* from g, lateral (select v from i where v = 10 / z offset 0) j offset 0) s join d using (k)'),
	('a condition of a row', 1, 'select s.id from (select g.* from g, lateral (select 1 where 10 / z >= 0 offset 0) j offset 0) s join d using (k)'),
	('a limit', 1, 'select s.id from (select g.* from g, lateral (select v from i limit 1 + 10 / z * 0) j offset 0) s join d using (k)'),
	('values', 1, 'select s.i from (values (1, 1), (2, 1), (3, 0)) s(i, z) left join d on s.i = d.k where 10 / z >= 0'),
	('two joins', 2, 'select g.id from g join d using (k) join d d2 on d2.u = g.k where 10 / z >= 0'),
	('two joins, a call', 2, 'select g.id from g join d using (k) join d d2 on d2.u = g.k where ratio(10, z) >= 0'),
	('two joins, a clause of the lower', 2, 'select g.id from g join d on g.k = d.k and 10 / (z + u - u) >= 0 join d d2 on d2.u = g.k'),
	('two joins, the user''s', 2, 'select g.id from g join d on g.k = d.k and ratio(10, z + u - u) >= 0 join d d2 on d2.u = g.k'),
	('two joins, a filter of the lower', 2, 'select l.id from (select g.id, g.k from g left join d on g.k = d.k where 10 / (z + coalesce(u, 0) * 0) >= 0 offset 0) l join d d2 on d2.u = l.k'),
	('two joins, an output column', 2, 'select l.q from (select 10 / z as q, g.k from g join d using (k)) l join d d2 on d2.u = l.k offset 0'),
	('two joins, a key', 2, 'select g.id from g join d using (k) join d d2 on d2.u = g.k + 10 / z * 0'),
	('unmatched rows of the lower', 2, 'select g.id from g left join d on g.k = d.k + 1000 left join d d2 on d2.u = g.id where 10 / (z + coalesce(d2.k, 0) * 0) >= 0'),
	('beside no rows', 1, 'select g.id from g join e using (k) where 10 / z >= 0'),
	('beside no rows, a call', 1, 'select g.id from g join e using (k) where ratio(10, z) >= 0'),
	('two joins beside no rows', 2, 'select g.id from g join d using (k) join e on e.k = g.k where ratio(10, z) >= 0'),
	('two joins beside no rows, a clause', 2, 'select g.id from g join d on g.k = d.k and ratio(10, z + u - u) >= 0 join e on e.k = g.k'),
	('in the build side', 1, 'select g.id from g join (select * from d where 10 / (u - 40) < 100) d using (k)');
select what, same_outcome(q, nodes) from queries;
-- whatever reads the table
set hashgraph_join.source = tuples;
select what, same_outcome(q, nodes) from queries;
reset hashgraph_join.source;
-- and where key filters drop rows of it
set hashgraph_join.filter = on;
select what, same_outcome(q, nodes) from queries;
create view filtered(q) as select format(
	'select g.id, g.t, g.n from g join (select * from d where u %% 3 = 0) d using (k) where %s', qual)
	from unnest('{10 / (z + id % 7) >= 0,id <> 8 and 10 / z >= 0,10 / (id - 40) < 100,10 / (id - 130) < 100 and t <> ''x4'',t like ''x%'' and 100 / (id % 50) > 0}'::text[]) qual;
select same_outcome(q), q from filtered;
reset hashgraph_join.filter;

-- EXISTS, cursors, functions that take one row, sublinks that are run again
set hashgraph_join.force = on;
set hashgraph_join.require = join;
select exists (select from g join d using (k) where 10 / z >= 0);
select exists (select from g join d using (k) where ratio(10, z) >= 0);
select (select id from g join d using (k) where ratio(10, z) >= 0 limit 1);
select i, (select id from g join d using (k) where ratio(10, z) >= 0 and g.id > i limit 1) from (values (1), (20), (48)) v(i);
select i, (select id from g join d using (k) where ratio(10, z) >= 0 and g.id > i limit 1) from (values (1), (20), (49)) v(i);
begin;
declare c cursor for select id from g join d using (k) where 10 / z >= 0;
move 48 in c;
fetch 1 from c;
savepoint s;
fetch 1 from c;
rollback to s;
declare c2 cursor for select id from g join d using (k) where ratio(10, z) >= 0;
move 48 in c2;
fetch 1 from c2;
fetch all from c2;
rollback;
create function first_of(out id int) language sql as 'select g.id from g join d using (k) where ratio(10, z) >= 0';
select first_of();
do $$
declare
	r record;
	n int := 0;
begin
	for r in select id from g join d using (k) where ratio(10, z) >= 0 loop
		n := n + 1;
		exit when n = 40;
	end loop;
	raise notice '% rows', n;
end $$;

-- as many calls as there are rows that are asked for
create sequence called;
select count(*) from (select id from g join d using (k) where nextval('called') > 0 limit 30) x;
select last_value from called;
select setval('called', 1, false);
select count(*) from (select s.i from (select i, nextval('called') from generate_series(1, 1000) i offset 0) s join d on s.i % 100 = d.k limit 30) x;
select last_value from called;
select setval('called', 1, false);
-- (an empty side)
select count(*) from (select id from g join e using (k) where nextval('called') > 0) x;
select last_value from called;

-- a clause with a subplan that calls it, and the target list, in turn
select setval('called', 1, false);
select count(*), bool_and(n % 2 = 0) as in_turn from (select nextval('called') as n from g join d on g.k = d.k and (select nextval('called') + g.id + d.u) > 0 offset 0) x;

-- a CTE that one reader takes some of, and one that is never run would take all of
with c as materialized (select id from g join d using (k) where 10 / (id - 150) < 100)
select (select sum(id) from (select id from c limit 100) x), case when (select count(*) from e) > 0 then (select count(*) from c) end;
with c as materialized (select id from g join d using (k) where 10 / (id - 150) < 100)
select sum(a.id) from c a join (select id from c order by id limit 1) b on true;

-- Errors of PostgreSQL's own plain functions are put aside: rows need not be taken singly
-- for them, in clauses and in keys.
create function singly(q text) returns text language plpgsql as $$
declare
	line text;
	taken text := '0';
	nodes int := 0;
begin
	for line in execute 'explain (analyze, costs off, timing off, summary off, buffers off) ' || q loop
		nodes := nodes + (line ~ 'Custom Scan \(HashGraphJoin\)')::int;
		taken := coalesce(substring(line from 'Outer Rows Taken Singly: (\d+)'), taken);
	end loop;
	return case nodes when 0 then 'no HashGraphJoin' else taken end;
end $$;
select what, singly(q) from (values
	('a recursive CTE', 'with recursive r(k, n) as (select 1, 0 union all select g.k % 7, r.n + 1 from r join g on g.id + 0 = r.k + 1 where r.n < 3) select * from r limit 100'),
	('a call', 'select g.id from g join d using (k) where sqrt(g.id) >= 0 limit 1000'),
	('a call in ARRAY()', 'select array(select g.id from g join d using (k) where sqrt(g.id) >= 0)'),
	('a call in a CTE', 'with c as materialized (select g.id from g join d using (k) where sqrt(g.id) >= 0) select (select count(*) from c), (select id from c limit 1)'),
	('a join clause', 'select g.id from g join d on g.k = d.k and sqrt(g.id + d.u) >= 0 limit 1000'),
	('a key', 'select g.id from g join d on g.k + 0 = d.k limit 1000')) v(what, q);
select singly('select g.id from g join d using (k) where ratio(g.id, 1) >= 0 limit 10') as "of the user";

-- what is read to its end is read ahead of, and fails all the same
select count(id) from g join d using (k) where ratio(10, z) >= 0;
select sum(id) from (select id from g join d using (k) where ratio(10, z) >= 0 order by id desc limit 10) x;

reset all;
set client_min_messages = warning;
drop schema demand cascade;

-- Evaluation that is put off at the first row of a page, when the batch at hand has a
-- row: the next batch begins with that page, and wants all of it.
create table demand_names as select i as id, i % 3 as k, ('name ' || i)::name as t from generate_series(1, 3000) i;
create table demand_kinds as select i as k from generate_series(0, 2) i;
analyze demand_names, demand_kinds;
do $$
declare
	q text;
	ours int;
	stock int;
	differ int := 0;
begin
	for i in 1310 .. 1400 loop
		q := format('select count(*) from (select n.t from demand_names n join demand_kinds using (k) where t ~ any(''{^name %s$,^name 1[45]..$}'') offset 0) q', i);
		perform set_config('hashgraph_join.force', 'on', true), set_config('hashgraph_join.enabled', 'on', true), set_config('hashgraph_join.require', 'join', true);
		execute q into ours;
		perform set_config('hashgraph_join.require', 'off', true), set_config('hashgraph_join.enabled', 'off', true);
		execute q into stock;
		differ := differ + (ours is distinct from stock)::int;
	end loop;
	if differ > 0 then
		raise exception '% answers differ', differ;
	end if;
end $$;
drop table demand_names, demand_kinds;

-- Rows that are taken singly are charged for.  With a clause whose error cannot wait, a join is
-- ours where all rows are wanted.  Where perhaps they are not, the table is read for the build
-- side, which takes all of its rows in any case; but not where the query may end early.
create table demand_rows as select i as id, i % 20011 as k, timestamptz '2020-01-01' + i * interval '1 s' as t from generate_series(1, 300000) i;
create table demand_few as select i as k, i % 7 as c from generate_series(0, 20010) i;
analyze demand_rows, demand_few;
set max_parallel_workers_per_gather = 0;
create function join_of(q text) returns text language plpgsql as $$
declare
	line text;
	node text;
begin
	for line in execute 'explain (costs off) ' || q loop
		node := coalesce(node, substring(line from 'HashGraphJoin|Hash Join|Merge Join|Nested Loop'));
		if line ~ 'Seq Scan' then
			return concat_ws(', ', node, substring(line from 'Scan on (\w+)'));
		end if;
	end loop;
end $$;
select what, join_of(format(q, $$t + interval '1 day' > '2020-01-02'$$)) as "an error at once", join_of(format(q, 'sqrt(id) > 10')) as "an error that waits"
from (values ('all rows', 'select c from demand_rows join demand_few using (k) where %s'),
	('ordered', 'select array(select c from demand_rows join demand_few using (k) where %s order by id)'),
	('aggregated', 'select (select sum(c) from demand_rows join demand_few using (k) where %s)'),
	('an array', 'select array(select c from demand_rows join demand_few using (k) where %s)'),
	('a CTE', 'with q as materialized (select c from demand_rows join demand_few using (k) where %s) select (select sum(c) from q), (select c from q limit 1)'),
	('a join clause', 'select array(select c from demand_rows r join demand_few f on r.k = f.k and (%s or f.c = 10))'),
	('LIMIT', 'select c from demand_rows join demand_few using (k) where %s limit 290000'),
	('a cursor', 'declare q cursor for select c from demand_rows join demand_few using (k) where %s')) v(what, q);
drop function join_of(text);
drop table demand_rows, demand_few;

-- A join clause that can fail, where a row has one match at most: its error is raised when the row is
-- asked for, as long as rows do not wait in files.
set work_mem = '1MB';
create table demand_asks as select i as id, i % 50 as v from generate_series(1, 3000) i;
create table demand_has (id int primary key) with (autovacuum_enabled = off);
insert into demand_has select i from generate_series(1, 400) i;
analyze demand_asks, demand_has;
set hashgraph_join.force = on;
set hashgraph_join.require = 'join';
create function says_with(matches int) returns text language sql as $$
	select hgj_says(format('select count(*) from (select a.id from demand_asks a join demand_has h on h.id = a.id where 10 / (a.v * 0 + 250 - h.id) <= 10 limit %s) x', matches))
$$;
select n as rows, says_with(n) as says from unnest(array[100, 249, 3000]) n;
reset hashgraph_join.require;
set hashgraph_join.enabled = off;
select n as rows, says_with(n) as says from unnest(array[100, 249, 3000]) n;
reset hashgraph_join.enabled;
reset hashgraph_join.force;
reset work_mem;
drop function says_with(int);
drop table demand_asks, demand_has;
