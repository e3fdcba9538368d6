-- Subqueries that PostgreSQL runs once a row, and that are joins.
create table orders (id int, customer int, amount numeric(10,2), day date, note text) with (autovacuum_enabled = off);
insert into orders select g, nullif(g % 40, 7), g % 97, date '2024-01-01' + g % 60, 'note ' || g % 5 from generate_series(1, 1500) g;
create table visits (customer bigint, spent numeric(10,2), pages int, at timestamp, name varchar(10), f float8) with (autovacuum_enabled = off);
insert into visits select nullif(g % 50, 11), case when g % 13 <> 0 then (g * 7) % 101 / 3.0 end, g % 9, timestamp '2024-01-01' + g % 70 * interval '1 day', 'note ' || g % 8, g / 3.0 from generate_series(1, 2500) g where g % 50 not in (3, 4, 5);
-- runs for each row, with which joins are compared, take less time by an index
create index on visits (customer);
analyze orders, visits;
set hashgraph_join.min_rows = 0;

-- Joins: with NULLs on both sides, groups that are empty, and those that nobody asks for.
select hgj_hidden('select id from orders o where amount < (select 3 * avg(spent) from visits v where v.customer = o.customer)');
select hgj_hidden('select id from orders o where amount < (select 3 * avg(spent) from visits v where o.customer = v.customer and v.pages > 4) or o.id < 10');
select hgj_hidden('select id, (select count(*) from visits v where v.customer = o.customer) from orders o');
select hgj_hidden('select id, (select count(spent) + 1 from visits v where v.customer = o.customer and v.pages = 3) from orders o');
select hgj_hidden('select id, (select coalesce(max(at), o.day) from visits v where v.customer = o.customer) from orders o');
select hgj_hidden('select id from orders o where (select sum(pages) from visits v where v.customer = o.customer) is null');
select hgj_hidden('select id from orders o where not (select bool_and(pages > 0) from visits v where v.customer = o.customer and v.name = o.note)');
select hgj_hidden('select id, (select max(v.pages) from visits v where v.customer = o.customer and v.at = o.day) from orders o');
select hgj_hidden('select id, (select sum(spent * pages::numeric) from visits v where v.customer = o.customer) from orders o');
select hgj_hidden('select id, (select sum(case when pages > 3 then spent else 0 end) from visits v where v.customer = o.customer) from orders o');
select hgj_hidden('select sum((select count(*) from visits v where v.customer = o.customer)), o.note from orders o group by o.note');
select hgj_hidden('select (select count(*) from visits v where v.customer = o.customer) n, row_number() over (order by id) from orders o');
select hgj_hidden('select id from orders o where extract(epoch from o.day) < (select avg(extract(epoch from at)) from visits v where v.customer = o.customer and extract(year from v.at) = 2024 and extract(dow from v.at::date) <> 3)');
-- joins, subqueries and views inside and around
create view spenders as select customer, spent from visits where pages > 2;
select hgj_hidden('select id from orders o where amount > (select avg(spent) from spenders s where s.customer = o.customer)');
select hgj_hidden('select o.id, (select max(v.spent) from visits v join orders i on i.id = v.pages where v.customer = o.customer) from orders o');
select hgj_hidden('select o.id, p.id, (select max(v.spent) from visits v where v.customer = p.customer and v.name = o.note) from orders o left join orders p on p.id = o.id + 1490');
select hgj_hidden('select id from orders o where exists (select from visits v where v.customer = o.customer and v.spent > (select avg(spent) from visits w where w.customer = v.customer))');
select hgj_hidden('select id from orders o where id in (select pages from visits v where v.spent > (select avg(spent) from visits w where w.customer = v.customer))');
select hgj_hidden('with big as (select * from orders o where amount > (select avg(spent) from visits v where v.customer = o.customer)) select count(*), note from big group by note');
select hgj_hidden('select id from orders o where id % 16 = 1 and amount > (select avg(v.spent) from visits v where v.customer = o.customer and v.spent > (select 0.5 * avg(spent) from visits w where w.name = v.name and w.pages < 4))');
select hgj_hidden('select id from orders o where id % 16 = 1 and amount > (select avg(v.spent) from visits v where v.customer = o.customer and (select max(pages) from visits w where w.name = v.name) > 2)');

-- What stays as it is.
select hgj_hidden('select id, (select count(*) from visits v where v.customer = o.customer and v.pages < 0 and extract(hour from v.at::date) = 1) from orders o');
select hgj_hidden('select id, (select avg(extract(second from at)) from visits v where v.customer = o.customer) from orders o');
select hgj_hidden('select id from orders o where amount < (select max(spent) from visits v where v.customer > o.customer)');
select hgj_hidden('select id, (select max(v.at) + (o.day - v.at::date) * interval ''1 day'' from visits v where v.customer = o.customer group by v.at limit 1) is null from orders o');
select hgj_hidden('select id, (select max(v.pages + o.id) from visits v where v.customer = o.customer) from orders o');
select hgj_hidden('select id, (select max(name) from visits v where v.customer = o.customer having count(*) > 3) from orders o');
select hgj_hidden('select id, (select v.spent from visits v where v.customer = o.customer and v.pages = -1) from orders o');
select hgj_hidden('select id, (select sum(f) from visits v where v.customer = o.customer) is null from orders o');
select hgj_hidden('select id, array(select v.pages from visits v where v.customer = o.customer order by 1) from orders o');
select hgj_hidden('select id from orders o where (o.id, o.customer) > (select max(v.pages), max(v.customer) from visits v where v.customer = o.customer)');
select hgj_hidden('select id, (select count(distinct pages) from visits v where v.customer = o.customer) from orders o');
select hgj_hidden('select id, (select sum(100 / (pages + 1)) from visits v where v.customer = o.customer) from orders o');
select hgj_hidden('select id, (select count(*) from visits v where v.customer = o.customer and 100 / (pages + 1) > 20) from orders o');
select hgj_hidden('select id, (select count(*) from visits v where v.customer = o.customer and random() < 2) from orders o');
select hgj_hidden('select id, (select count(*) from generate_series(1, 5) v where v = o.customer) from orders o');
select hgj_hidden('select o.id, p.id from orders o left join orders p on p.id = o.id and p.amount > (select avg(spent) from visits v where v.customer = p.customer)');
select hgj_hidden('select id, (select (select count(*) from visits w where w.customer = o.customer and w.pages = v.pages) from visits v where v.pages = 1 and v.customer = 1 limit 1) from orders o');
set hashgraph_join.rewrite = off;
select node, taken, reason from hashgraph_join_why('select id from orders o where amount < (select 3 * avg(spent) from visits v where v.customer = o.customer)') where node = 'Subquery';
set hashgraph_join.rewrite = on;
-- few rows around it, and an index inside
create table many (k int, v int) with (autovacuum_enabled = off);
insert into many select g % 5000, g from generate_series(1, 30000) g;
create index on many (k);
analyze many;
select node, taken, reason from hashgraph_join_why('select id from orders o where id + 0 = 5 and amount < (select 3 * avg(v) from many m where m.k = o.customer)') where node = 'Subquery';
select node, taken, reason from hashgraph_join_why('select id from orders o where amount < (select 3 * avg(v) from many m where m.k = o.customer)') where node = 'Subquery';
drop table many;
-- what the user may not read, even where it is never read
create role hgj_hidden_user;
grant select on orders to hgj_hidden_user;
grant execute on function hgj_hidden to hgj_hidden_user;
set role hgj_hidden_user;
select hgj_hidden('select count(case when false then (select sum(pages) from visits v where v.customer = o.customer) end) from orders o');
reset role;

-- Locking and changing look at a row again, and so does the subquery.
set hashgraph_join.rewrite = force;
select hgj_lines('select id from orders o where amount < (select avg(spent) from visits v where v.customer = o.customer) for update', '^ *SubPlan') as subplans;
select hgj_lines('update orders o set amount = 0 where amount < (select avg(spent) from visits v where v.customer = o.customer)', '^ *SubPlan') as subplans;
begin;
create temp table copies as select id from orders o where amount < (select avg(spent) from visits v where v.customer = o.customer);
insert into copies select id from orders o where amount < (select avg(spent) from visits v where v.customer = o.customer);
select count(*), count(distinct id) from copies;
rollback;

-- Errors that only a group nobody asks for would raise are not raised: it is not joined, or its
-- value is looked at for the rows around it.
insert into visits values (999, 1, 0, '2024-01-01', 'zero', 0);
select hgj_hidden('select id, (select sum(100 / pages) from visits v where v.customer = o.customer and pages > 0 and v.name = ''zero'') from orders o');
select hgj_hidden('select id from orders o where 10 / (select sum(pages) from visits v where v.customer = o.customer) >= 0');
select hgj_hidden('select q.id from (select id, (select sum(pages) from visits v where v.customer = o.customer) n from orders o) q where 10 / q.n >= 0');
select hgj_hidden('select id from orders o where amount < (select avg(spent) / count(*) from visits v where v.customer = o.customer)');
select hgj_hidden('select count((select sum(spent * 1e131000) from visits v where v.customer = o.customer and v.pages = -1)) from orders o');
-- constants of a branch that is dead
select hgj_hidden('select id from orders o where false and amount < (select sum(pages) from visits v where v.customer = o.customer and 1 / 0 = 1)');
select hgj_hidden('select id from orders o where amount < (select sum(pages) from visits v where v.customer = o.customer and v.at < date ''2024-01-05'' + interval ''1 month'')');
-- calls of volatile functions around it
create function hgj_note(n bigint) returns bigint volatile strict language plpgsql as $$
begin
	perform set_config('hgj.calls', (current_setting('hgj.calls')::int + 1)::text, false);
	return n;
end $$;
set hgj.calls = 0;
select count(*) from orders o where hgj_note((select sum(pages) from visits v where v.customer = o.customer)) > 0;
select current_setting('hgj.calls');
select hgj_hidden('select count(*) from orders o where hgj_note(o.id) > 0 and amount < (select sum(pages) from visits v where v.customer = o.customer)');
-- subqueries in FROM that depend on the row, and what percentiles are given
select hgj_hidden('select sum((select sum(pages) from (select * from visits v where v.pages = o.id % 5) s where s.customer = o.customer)) from orders o');
select hgj_hidden('select o.customer, percentile_disc((select count(*)::float8 / 100 from visits v where v.customer = o.customer)) within group (order by id) from orders o group by rollup (o.customer)');
-- a cursor that is updated through, and read backwards
begin;
declare c scroll cursor for select id, (select sum(pages) from visits v where v.customer = o.customer) from orders o;
fetch 2 from c;
update orders set note = 'changed' where current of c;
fetch prior from c;
select count(*) from orders where note = 'changed';
rollback;
-- strings that one collation takes for equal, and another does not
create collation hgj_ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
create table cased (k text collate hgj_ci, v int) with (autovacuum_enabled = off);
insert into cased select case when g % 2 = 0 then 'a' else 'A' end || g % 10 / 2, g from generate_series(1, 1000) g;
create table names (k text) with (autovacuum_enabled = off);
insert into names values ('a1'), ('A2'), ('a3');
analyze cased, names;
select hgj_hidden('select k, (select sum(v) from cased c where c.k = n.k collate hgj_ci) from names n');
select hgj_hidden('select k, (select sum(v) from cased c where c.k = n.k collate "C") from names n');
set hashgraph_join.force = on;
select n.k, s from (select k, sum(v) s from cased group by k) g join names n on g.k = n.k collate hgj_ci order by n.k collate "C";
select hgj_check('select n.k, s, n.k = g.k collate "C" from (select k, sum(v) s from cased group by k) g join names n on g.k = n.k collate "C"');
set hashgraph_join.force = off;
drop table cased, names;
drop collation hgj_ci;

-- Plans: what was rewritten, and what it would cost as it is written.
set hashgraph_join.force = on;
set max_parallel_workers_per_gather = 0;
set enable_nestloop = off;
explain (costs off) select id from orders o where amount < (select 3 * avg(spent) from visits v where v.customer = o.customer);
set hashgraph_join.force = off;
set hashgraph_join.rewrite = on;
create function hgj_as_written(q text, format text) returns setof text language plpgsql as $$
declare
	line text;
begin
	for line in execute format('explain (format %s) %s', format, q) loop
		if format = 'text' and line ~ 'Hidden Joins' then
			return next regexp_replace(line, '[0-9]+\.[0-9]+$', 'N');
		elsif format = 'yaml' then
			return query select regexp_replace(trim(m), '[0-9]+\.[0-9]+$', 'N') from regexp_split_to_table(line, E'\n') m where m ~ 'Hidden Joins|Cost as Written';
		end if;
	end loop;
end $$;
set hashgraph_join.startup_cost = 0;
select hgj_as_written('select id from orders o where amount < (select 3 * avg(spent) from visits v where v.customer = o.customer)', 'text');
select hgj_as_written('select id from orders o where amount < (select 3 * avg(spent) from visits v where v.customer = o.customer)', 'yaml');
reset hashgraph_join.startup_cost;
-- a prepared query, with a parameter in the subquery
set hashgraph_join.rewrite = force;
prepare above (int) as select count(*) from orders o where amount > (select avg(spent) from visits v where v.customer = o.customer and v.pages > $1);
execute above (3);
set plan_cache_mode = force_generic_plan;
execute above (3);
execute above (8);
set hashgraph_join.enabled = off;
execute above (3);
execute above (8);
reset hashgraph_join.enabled;
reset plan_cache_mode;
deallocate above;

-- Who may not see a row does not see it through a group.
grant select on visits to hgj_hidden_user;
alter table visits enable row level security;
create policy odd on visits for select to hgj_hidden_user using (customer % 2 = 1);
set role hgj_hidden_user;
set hashgraph_join.rewrite = force;
select count(*), sum(n) from (select (select count(*) from visits v where v.customer = o.customer) n from orders o) q;
set hashgraph_join.enabled = off;
select count(*), sum(n) from (select (select count(*) from visits v where v.customer = o.customer) n from orders o) q;
reset hashgraph_join.enabled;
reset role;
revoke select on visits from hgj_hidden_user;
grant select (customer) on visits to hgj_hidden_user;
set role hgj_hidden_user;
select id from orders o where amount < (select avg(spent) from visits v where v.customer = o.customer);
reset role;
drop policy odd on visits;
alter table visits disable row level security;
revoke execute on function hgj_hidden from hgj_hidden_user;
drop owned by hgj_hidden_user;
drop role hgj_hidden_user;

-- Groups that the join above has no match for are not made.
set hashgraph_join.force = on;
set hashgraph_join.require = join;
create table few (customer int, name text) with (autovacuum_enabled = off);
insert into few values (1, 'one'), (2, 'two'), (48, 'gone'), (null, 'none');
analyze few;
create function hgj_groups(q text) returns setof text language plpgsql as $$
declare
	line text;
begin
	for line in execute 'explain (analyze, buffers off, costs off, timing off, summary off) ' || q loop
		if line ~ 'HashGraphAgg|Key Filters|  Groups' then
			return next regexp_replace(line, ' *Memory Usage: [0-9]+kB| \(actual.*', '', 'g');
		end if;
	end loop;
end $$;
select hgj_groups('select name, n from few join (select customer, count(*) n from visits group by customer) v using (customer)');
select hgj_check('select name, n from few join (select customer, count(*) n from visits group by customer) v using (customer)');
select hgj_groups('select name, n from few left join (select customer, count(*) n from visits group by customer) v using (customer)');
select hgj_check('select name, n from few left join (select customer, count(*) n from visits group by customer) v using (customer)');
select hgj_groups('select name, n from few right join (select customer, count(*) n from visits group by customer) v using (customer)');
-- by a join below, whose table is asked as well
select hgj_groups('select name, n from few join (select v.customer, count(*) n from visits v join orders o on o.id = v.pages group by v.customer) v using (customer)');
select hgj_check('select name, n from few join (select v.customer, count(*) n from visits v join orders o on o.id = v.pages group by v.customer) v using (customer)', 2);
-- sums that may be too large, and calls that would be missed
select hgj_groups('select name, n from few join (select customer, sum(f) n from visits group by customer) v using (customer)');
select hgj_groups('select name, n from few join (select customer, max(100 / (pages + 1)) n from visits group by customer) v using (customer)');
-- another key, and part of the groups' keys
select hgj_groups('select few.name, n from few join (select customer, count(*) n from visits group by customer) v on v.n = few.customer');
select hgj_groups('select few.name, n from few join (select customer, pages, count(*) n from visits group by customer, pages) v using (customer)');
-- Groups that an earlier execution has left out are there when a later one asks for them.
set enable_memoize = off;
set enable_material = off;
set enable_nestloop = on;
reset hashgraph_join.require;
select hgj_check('select w.name, x.n from few w, lateral (select v.n from few f join (select customer, count(*) n from visits group by customer) v using (customer) where f.name = w.name offset 0) x');
select hgj_check('select w.name, (select sum(v.n) from few f join (select customer, count(*) n from visits group by customer) v using (customer) where f.name >= w.name) from few w');

-- A full join on a condition that only a left join can be done on, and a value of another
-- subquery in what a join returns, which lasts until the next row's.
reset enable_material;
reset enable_memoize;
set hashgraph_join.rewrite = force;
select hgj_hidden('select o.id from orders o where (select max(v.spent) from visits v full join few f on v.pages = f.customer and f.name <> ''two'' or f.name is null where v.customer = o.customer) > 3');
set hashgraph_join.force = on;
select hgj_check_agg('select x, count(*) from (select (select max(w.name) from visits w where w.pages = o.id % 9 and w.customer > o.customer) x from orders o join few f on f.customer = o.id % 3) q group by x');

-- What a data-modifying WITH query returns is not what its target list has.
create function modified(dml text) returns table (rewrite text, answer text) language plpgsql as $$
begin
	foreach rewrite in array '{off,on,force}'::text[] loop
		perform set_config('hashgraph_join.rewrite', rewrite, true);
		begin
			execute format('with changed as (%s returning *) select count(*) || '' '' || coalesce(sum(id), 0) from changed where id > (select 2 * min(pages) from visits v where v.customer = changed.customer) and amount >= (select min(spent) from visits v where v.customer = changed.customer)', dml) into answer;
			raise 'undone';
		exception when raise_exception then
			return next;
		end;
	end loop;
end $$;
select dml, array_agg(distinct answer) as answers from unnest(array[
	'delete from orders where amount < (select 3 * avg(spent) from visits v where v.customer = orders.customer)',
	'update orders set day = day where amount < 1000',
	'update orders set amount = 10 / nullif(id % 7, 0) where id < 5000',
	'insert into orders select * from orders where id < 300']) dml, modified(dml) group by dml order by dml;
drop function modified;

drop view spenders;
drop table orders, visits, few;
drop function hgj_groups, hgj_as_written, hgj_note;
