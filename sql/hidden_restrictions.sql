-- Groups of subqueries are restricted to what the query around them is restricted to.
create schema restrictions;
set search_path = restrictions, public;
create table part (id int primary key, kind text, size int, note varchar(9), n numeric(6,2));
insert into part select g, 'kind ' || g % 20, g % 30, 'n' || g % 7, g % 50 / 4.0 from generate_series(1, 600) g;
insert into part values (0, null, null, null, null);
create table line (part int, supplier int, quantity numeric(8,2), day date, note varchar(9));
insert into line select nullif(g % 640, 13), g % 11, g % 37 / 2.0, date '2024-01-01' + g % 90, 'n' || g % 9 from generate_series(1, 6000) g;
create table stock (part int, supplier int, available int, primary key (part, supplier));
insert into stock select g % 600, g / 600, g % 70 from generate_series(0, 5999) g;
analyze part, line, stock;
set hashgraph_join.min_rows = 0;
-- a query's answers are compared, and the number of restrictions is told
create function restricted(q text) returns text language plpgsql as $$
declare
	reasons text := hgj_hidden(q);
	line text;
begin
	perform set_config('hashgraph_join.rewrite', 'force', true);
	perform set_config('hashgraph_join.force', 'on', true);
	for line in execute 'explain (costs off) ' || q loop
		if line ~ 'Hidden Joins' then
			reasons := reasons || coalesce('; restrictions: ' || substring(line from 'Restrictions: ([0-9]+)'), '');
		end if;
	end loop;
	perform set_config('hashgraph_join.force', 'off', true);
	perform set_config('hashgraph_join.rewrite', 'on', true);
	return reasons;
end $$;

-- clauses of the table that has the operand, of another one that is equal to it, and IN
select restricted($$select l.quantity, p.id from line l, part p where p.id = l.part and p.kind = 'kind 3' and l.quantity < (select 0.6 * avg(quantity) from line i where i.part = p.id)$$);
select restricted($$select l.quantity, p.id from line l join part p on p.id = l.part and p.size < 4 where p.kind <> 'kind 3' and l.quantity < (select 0.6 * avg(quantity) from line i where i.part = l.part)$$);
select restricted($$select part, supplier from stock s where part in (select id from part where kind like 'kind 1%') and available > (select 0.5 * sum(quantity) from line l where l.part = s.part and l.supplier = s.supplier and day < date '2024-02-20')$$);
select restricted($$select id from part p where size between 3 and 9 and note > 'n2' and n = (select min(quantity) from line l where l.part = p.id)$$);
select restricted($$select id from part p where size = 5 and id in (select part from stock where available > 60) and not exists (select from line l where l.part = p.id group by l.supplier having count(*) > 1)$$);
-- what the clauses leave is nothing, or NULL
select restricted($$select id from part p where kind is null and (select count(*) from line l where l.part = p.size) = 0$$);
select restricted($$select id from part p where size > 100 and (select count(*) from line l where l.part = p.id) = 0$$);
-- values of the target list, of rows that are aggregated, and first rows
select restricted($$select id, (select sum(quantity) from line l where l.part = p.id) from part p where size = 5$$);
select restricted($$select kind, sum((select count(*) from line l where l.part = p.id)) from part p where size < 5 group by kind$$);
select restricted($$select id, (select note from line l where l.part = p.id order by day, note limit 1) from part p where size = 5$$);
-- below OR, and in subqueries
select restricted($$select id from part p where size = 5 and (n > 3 or exists (select from line l where l.part = p.id and l.quantity > 3))$$);
select restricted($$select part from stock s where available > 65 and exists (select from part p where p.id = s.part and size < 9 and n < (select max(quantity) from line l where l.part = p.id))$$);

-- A value that an error may depend on sees all groups.
select restricted($$select p.id from part p, stock s where s.part = p.id and s.available > 66 and p.size = 5 and 10 / (select count(*) from line l where l.part = p.id) > 0$$);
select restricted($$select * from (select p.id, s.part, (select count(*) from line l where l.part = p.id) c from part p, stock s where s.part = p.id and s.available > 66) q where 10 / (c + 1) >= 0$$);
-- PostgreSQL may sort by it before the join that removes rows
select restricted($$select p.id, s.supplier from part p join stock s on s.part = p.id and s.available > 66 where p.size = 5 order by 10 / (1 + (select count(*) from line l where l.part = p.id)), p.id, s.supplier$$);
select restricted($$select p.id, s.supplier from part p join stock s on s.part = p.id and s.available > 66 where p.size = 5 order by (select count(*) from line l where l.part = p.id), p.id, s.supplier$$);
select restricted($$select count(*), sum(10 / (1 + (select count(*) from line l where l.part = p.id))) from part p where size = 5$$);
select restricted($$select count(*), sum((select count(*) from line l where l.part = p.id)) filter (where 10 / (1 + (select count(*) from line l where l.part = p.id)) < 3) from part p where size = 5$$);
-- Clauses of what an outer join fills in, or that are evaluated below it, restrict nothing there.
select restricted($$select s.part, p.id from stock s left join part p on p.id = s.part and p.size = 5 where s.available > 65 and (select count(*) from line l where l.part = p.id) < 12$$);
select restricted($$select s.part, p.id from stock s left join part p on p.id = s.part where s.available > 65 and (select count(*) from line l where l.part = s.part) < 12$$);
select restricted($$select s.part, p.id from part p left join stock s on s.part = p.id and s.available < (select sum(quantity) from line l where l.part = s.part) where p.size = 5$$);
-- nor do those that may raise an error, have subqueries, or are of several tables
select restricted($$select id from part p where 10 / (size + 1) = 2 and n < (select max(quantity) from line l where l.part = p.id)$$);
select restricted($$select p.id from part p join stock s on s.part = p.id and s.available > p.size where p.n < (select max(quantity) from line l where l.part = p.id)$$);
-- an equality of other types, and one row for each operand
select restricted($$select id from part p where size = 5 and n < (select max(quantity) from line l where l.part = p.id::bigint)$$);
select restricted($$select part, (select kind from part p where p.id = s.part) from stock s where available > 66$$);
-- a table whose rows are seen by policies: its clauses stay where they are
create role hgj_restricted_user;
grant usage on schema restrictions to hgj_restricted_user;
grant select on part, line to hgj_restricted_user;
alter table part enable row level security;
create policy third on part for select using (id % 3 = 1);
set role hgj_restricted_user;
select restricted($$select id from part p where size = 5 and n < (select max(quantity) from line l where l.part = p.id)$$);
reset role;
alter table part disable row level security;
-- columns that are read twice need no other privileges
revoke select on part from hgj_restricted_user;
grant select (id, size) on part to hgj_restricted_user;
set role hgj_restricted_user;
select restricted($$select id from part p where size = 5 and (select count(*) from line l where l.part = p.id) > 9$$);
select restricted($$select id from part p where n = 5 and (select count(*) from line l where l.part = p.id) > 9$$);
reset role;

-- Groups by two keys: each row of the table around them is taken to find one.
create function rows_of(q text) returns text language plpgsql as $$
declare
	plan json;
	rows float;
begin
	execute 'explain (format json) ' || q into plan;
	rows := (plan->0->'Plan'->>'Plan Rows')::float;
	return case when rows between 500 and 12000 then 'some' else rows::text end;
end $$;
set hashgraph_join.rewrite = force;
select rows_of($$select part, supplier from stock s where available > (select 0.01 * sum(quantity) from line l where l.part = s.part and l.supplier = s.supplier)$$);
reset hashgraph_join.rewrite;

-- A view may have the name of the groups, and any columns, or none.
create view correlated as select from line where part is not null group by part having count(*) > 9;
select count(*) > 0 as some from correlated, part where size = 5;
drop view correlated;
create view correlated as select part as column1, supplier as column2, sum(quantity) as column3 from line group by part, supplier;
select count(*) from stock s left join correlated on column1 = part and column2 = supplier;
drop view correlated;

set client_min_messages = warning;
drop schema restrictions cascade;
drop owned by hgj_restricted_user;
drop role hgj_restricted_user;
