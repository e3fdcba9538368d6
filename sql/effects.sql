-- A clause that calls a volatile function calls it as often as in PostgreSQL's own plan
-- for the query: for the rows that the clauses before it let pass, whatever could run over
-- vectors behind it, and whatever filters could drop rows before it is their turn.
create schema effects;
set search_path = effects, public;
set enable_nestloop = off;
set enable_mergejoin = off;
create table f (id int, k int, z int, t text) with (autovacuum_enabled = off);
insert into f select g, g % 100, g % 7, 'x' || g from generate_series(1, 3000) g;
create table d (k int, u int) with (autovacuum_enabled = off);
insert into d select g, g from generate_series(0, 19) g;
analyze f, d;
create sequence called;

-- The answer of a query, or its error, and how often it has called.
create function outcome(q text) returns text language plpgsql as $$
declare
	answer text;
	calls bigint;
begin
	perform setval('called', 1, false);
	begin
		execute q into answer;
	exception when division_by_zero then
		answer := sqlerrm;
	end;
	select case when is_called then last_value else 0 end into calls from called;
	return answer || ', ' || calls || ' calls';
end $$;
create function same_calls(q text, node text) returns text language plpgsql
	set hashgraph_join.enabled = off set hashgraph_join.force = off
as $$
declare
	stock text := outcome(q);
	ours text;
begin
	perform set_config('hashgraph_join.enabled', 'on', true), set_config('hashgraph_join.force', 'on', true);
	if hgj_lines(q, 'Custom Scan \(' || node) = 0 then
		return 'no ' || node || ': ' || q;
	end if;
	ours := outcome(q);
	return case when ours = stock then ours else format('DIFFERENT: %s stock, %s ours: %s', stock, ours, q) end;
end $$;

create view queries(what, node, q) as values
	('a scan below a join', 'HashGraphJoin', 'select count(*) from f join d using (k) where nextval(''called'') > f.z and f.id = any (''{1,2,3,4,5,6,7,8}'')'),
	('a scan below an aggregate', 'HashGraphAgg', 'select count(*) from f where nextval(''called'') > z and id = any (''{1,2,3,4,5,6,7,8}'')'),
	('between others', 'HashGraphJoin', 'select count(*) from f join d using (k) where f.id > 1000 and nextval(''called'') > f.z and f.id = any (''{1,2,3,4,5,6,7,1008}'')'),
	('behind one over strings', 'HashGraphJoin', 'select count(*) from f join d using (k) where f.t > ''x2'' and nextval(''called'') > f.z and f.id = any (''{1,2,3,4,5,6,7,2008}'')'),
	('an error in front of it', 'HashGraphJoin', 'select count(*) from f join d using (k) where 10 / (f.id - 1500) < 100 and nextval(''called'') > f.z + f.k - f.k'),
	('an error behind it', 'HashGraphJoin', 'select count(*) from f join d using (k) where nextval(''called'') > f.z and 1000 / (f.id - 1500) + f.k - f.k < 1100'),
	('in a subplan', 'HashGraphJoin', 'select count(*) from f join d using (k) where (select nextval(''called'') where z > 1) > 0 and f.id = any (''{1,2,3,4,5,6,7,8}'')'),
	('in a list from a subplan', 'HashGraphJoin', 'select count(*) from f join d using (k) where f.z not in (select nextval(''called'') + i from generate_series(1, 10) i offset 0) and f.id = any (''{-1,-2,-3,-4,-5,-6,-7,-8}'')'),
	('in a function in FROM', 'HashGraphJoin', 'select count(*) from f join d using (k) where f.z not in (select i from generate_series(1, nextval(''called'') + 1) i) and f.id = any (''{-1,-2,-3,-4,-5,-6,-7,-8}'')'),
	('in a subquery run once', 'HashGraphJoin', 'select count(*) from f join d using (k) where f.z + f.k < (select nextval(''called'') + 10 from d where u = 0) and f.id = any (''{-1,-2,-3,-4,-5,-6,-7,-8}'')'),
	('a join clause', 'HashGraphJoin', 'select count(*) from f join d on f.k = d.k and nextval(''called'') > f.z + d.u * 0 and f.id + d.u = any (''{1,2,3,4,5,6,7,8}'')'),
	('a join clause, left', 'HashGraphJoin', 'select count(d.k) from f left join d on f.k = d.k and nextval(''called'') > f.z + d.u * 0 and f.id + d.u = any (''{1,2,3,4,5,6,7,8}'')'),
	('a join clause, an error in front', 'HashGraphJoin', 'select count(*) from f join d on f.k = d.k and 10 / (f.id + d.u - 1500 - f.k) < 100 and nextval(''called'') > f.z + f.id * 0 + f.k * 0 + d.u * 0'),
	('a filter above a join', 'HashGraphJoin', 'select count(*) from f left join d on f.k = d.k where nextval(''called'') > coalesce(d.u, 0) - 100 and f.id + coalesce(d.u, 0) = any (''{1,2,3,4,5,6,7,8}'')'),
	('HAVING', 'HashGraphAgg', 'select count(*) from (select f.k from f group by f.k having sum(id) = any (''{43530,2,3,4,5,6,7,8}'') and nextval(''called'') > min(id) - 5000) x'),
	('HAVING above a join', 'HashGraphAgg', 'select count(*) from (select f.k from f join d using (k) group by f.k having sum(id) = any (''{43530,2,3,4,5,6,7,8}'') and nextval(''called'') > min(id) - 5000) x');
select what, same_calls(q, node) from queries;
set hashgraph_join.source = tuples;
select what, same_calls(q, node) from queries where node = 'HashGraphJoin' and same_calls(q, node) ~ 'DIFFERENT';
reset hashgraph_join.source;
-- where filters of the joins drop rows of the scan
set hashgraph_join.filter = on;
select what, same_calls(q, node) from queries where same_calls(q, node) ~ 'DIFFERENT';
set join_collapse_limit = 1;
select same_calls('select count(*) from f join d using (k) join (select * from d where u < 3) d2 on d2.u = f.k where nextval(''called'') > f.z and f.id % 3 = 0 and f.id = any (''{100,102,3,4,5,6,7,8}'')', 'HashGraphJoin');
select same_calls('select count(*) from f join d on f.k = d.k and nextval(''called'') > f.z + d.u * 0 join (select * from d where u < 3) d2 on d2.u = f.k', 'HashGraphJoin');
reset join_collapse_limit;
reset hashgraph_join.filter;

-- Arguments of aggregates, and their FILTER, take values row by row there, and column by
-- column here; so PostgreSQL's own node has them.
set hashgraph_join.force = on;
select hgj_lines(q, 'HashGraphAgg'), outcome(q) from (values
	('select md5(string_agg(n::text, '','' order by k)) from (select k, sum((select nextval(''called'') where z >= 0)) - max((select nextval(''called'') where z >= 1)) n from f group by k) x'),
	('select sum(n) from (select count(*) filter (where nextval(''called'') % 2 = 0) n from f group by k) x'),
	('select sum(n) from (select count(*) filter (where (select nextval(''called'') where z >= 0) % 2 = 0) n from f group by k) x')) v(q);
set hashgraph_join.enabled = off;
select outcome('select md5(string_agg(n::text, '','' order by k)) from (select k, sum((select nextval(''called'') where z >= 0)) - max((select nextval(''called'') where z >= 1)) n from f group by k) x');

reset all;
set client_min_messages = warning;
drop schema effects cascade;
