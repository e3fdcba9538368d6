-- Joins by one equality or another: a join for each, whose rows are put together.
create table people (id int primary key, email text, phone int, n numeric(8,2), born date) with (autovacuum_enabled = off);
insert into people select g, case when g % 7 <> 3 then 'mail ' || g % 90 end, nullif(g % 60, 5), g % 31, date '2000-01-01' + g % 400 from generate_series(1, 600) g;
create table leads (id int, email varchar(20), phone bigint, w int, at date) with (autovacuum_enabled = off);
insert into leads select g, case when g % 5 <> 1 then 'mail ' || g % 120 end, nullif(g % 70, 6), g % 9, date '2000-01-01' + g % 500 from generate_series(1, 500) g;
create table calls (person int, lead int, length int) with (autovacuum_enabled = off);
insert into calls select g % 650, g % 510, g % 17 from generate_series(1, 900) g;
create table nobody (id int, email text, phone int);
analyze people, leads, calls, nobody;
set hashgraph_join.min_rows = 0;

-- Whether the joins of the parts are put together, and whether the answer stayed what it was.
create function hgj_either(q text) returns text language sql
as $$ select hgj_rewritten(q, 'Append') $$;

-- inner joins, in WHERE and ON; conditions beside the equalities; three parts; expressions
select hgj_either('select p.id, l.id from people p join leads l on p.email = l.email or p.phone = l.phone');
select hgj_either('select p.id, l.id from people p, leads l where (p.email = l.email or l.phone = p.phone) and p.n > 3 and l.w < 7');
select hgj_either('select p.id, l.w from people p join leads l on (p.email = l.email and l.w > 3) or (p.phone = l.phone and p.n < l.w) or p.born = l.at');
select hgj_either('select p.id, l.id from people p join leads l on p.email = l.email or p.phone / 2 = l.phone');
select hgj_either('select count(*) from people p join leads l on p.email = l.email or p.phone = l.phone');
select hgj_either('select l.w, count(*), sum(p.n) from people p join leads l on p.email = l.email or p.phone = l.phone group by l.w having count(*) > 100 order by 2');
select hgj_either('select a.id, b.id from people a join people b on a.email = b.email or a.phone = b.phone');
select hgj_either('select p.id, l.id from people p join nobody l on p.email = l.email or p.phone = l.phone');
-- other tables, subqueries, WITH, LATERAL and windows around them
select hgj_either('select c.length, p.id, l.id from calls c join people p on p.id = c.person join leads l on l.id = c.lead or l.phone = c.length where p.n > 4');
select hgj_either('select c.length, p.id, l.id from people p join leads l on p.email = l.email or p.phone = l.phone join calls c on c.person = p.id and c.lead = l.id');
select hgj_either('select p.id, (select max(length) from calls c where c.lead = l.id) from people p join leads l on p.email = l.email or p.phone = l.phone where exists (select from calls c where c.person = p.id and c.length > l.w)');
select hgj_either('with b as (select p.id, l.w from people p join leads l on p.email = l.email or p.phone = l.phone) select w, count(*) from b group by w');
select hgj_either('select p.id, l.id, x.s from people p join leads l on p.email = l.email or p.phone = l.phone, lateral (select sum(length) s from calls c where c.person = p.id and c.lead > l.id) x where p.id < 60');
select hgj_either('select p.id, rank() over (partition by l.w order by p.id, l.id) from people p join leads l on p.email = l.email or p.phone = l.phone');
select hgj_either('select c.lead, p.id, l.w from calls c left join (people p join leads l on p.email = l.email or p.phone = l.phone) on c.person = p.id and c.lead = l.id');
select hgj_either('select c.person, c.lead from calls c where exists (select from people p join leads l on p.email = l.email or p.phone = l.phone where p.id = c.person)');
-- left joins
select hgj_either('select p.id, p.email, l.id, l.w from people p left join leads l on p.email = l.email or p.phone = l.phone');
select hgj_either('select p.id, l.id from people p left join leads l on (p.email = l.email or p.phone = l.phone) and l.w > 5 and p.n > 7');
select hgj_either('select p.id, coalesce(l.w, -1), c.length from people p left join leads l on p.email = l.email or p.phone = l.phone left join calls c on c.lead = l.id where p.id % 3 = 0');
select hgj_either('select p.id from people p left join leads l on p.email = l.email or p.phone = l.phone where l.id is null');
select hgj_either('select c.length, p.id, l.w from calls c left join (people p left join leads l on p.email = l.email or p.phone = l.phone) on c.person = p.id');
select hgj_either('select p.id, l.id from people p left join nobody l on p.email = l.email or p.phone = l.phone');
select hgj_either('select p.id, l.id from nobody p left join leads l on p.email = l.email or p.phone = l.phone');
-- as it is written: one part without an equality, an equality beside OR, whole rows, errors, volatile functions, other levels
select hgj_either('select p.id, l.id from people p join leads l on p.email = l.email or p.phone > l.phone + 60');
select hgj_either('select p.id, l.id from people p join leads l on p.id = l.id and (p.email = l.email or p.phone = l.phone)');
select hgj_either('select p, l.id from people p join leads l on p.email = l.email or p.phone = l.phone');
select hgj_either('select p.ctid is null, l.id from people p join leads l on p.email = l.email or p.phone = l.phone');
select hgj_either('select p.id, l.id from people p join leads l on p.email = l.email or p.phone = 100 / (l.w + 1)');
select hgj_either('select p.id, l.id from people p join leads l on p.email = l.email or p.phone = l.phone + (random() < 0)::int');
select hgj_either('select c.length, (select count(*) from people p join leads l on p.email = l.email or p.phone = l.phone + c.length) from calls c where c.person < 5');
-- a clause of both that raises an error may come to other pairs, but to those that are joined
select hgj_either('select p.id, 10 / (l.w + 1) from people p join leads l on p.email = l.email or p.phone = l.phone where 10 / (l.w + p.id) < 9');

-- a SELECT for each part, and one for the rows of a left join without a match
select hgj_lines('select p.id, l.id from people p left join leads l on p.email = l.email or p.phone = l.phone where p.n < 4', 'Subquery Scan on');
set hashgraph_join.rewrite = force;
select hgj_lines('select p.id, l.id from people p left join leads l on p.email = l.email or p.phone = l.phone where p.n < 4', 'Subquery Scan on');
select hgj_lines('select p.id, l.id from people p join leads l on p.email = l.email or p.phone = l.phone where p.n < 4', 'Subquery Scan on');
reset hashgraph_join.rewrite;

-- privileges and policies are those of the user
create role hgj_reader;
grant select (id, email, phone) on people to hgj_reader;
grant select on leads to hgj_reader;
alter table leads enable row level security;
create policy busy on leads using (w > 4);
set role hgj_reader;
set hashgraph_join.rewrite = force;
select count(*) from people p join leads l on p.email = l.email or p.phone = l.phone;
select count(n) from people p join leads l on p.email = l.email or p.phone = l.phone;
reset role;
alter table leads disable row level security;
set role hgj_reader;
select count(*) from people p join leads l on p.email = l.email or p.phone = l.phone;
select count(n) from people p join leads l on p.email = l.email or p.phone = l.phone;
reset role;
reset hashgraph_join.rewrite;
revoke all on people, leads from hgj_reader;
drop role hgj_reader;
-- a prepared statement with a generic plan, whose parameter is in OR
prepare either (int) as select count(*) from people p join leads l on p.email = l.email or (p.phone = l.phone and l.w > $1);
set plan_cache_mode = force_generic_plan;
set hashgraph_join.rewrite = force;
execute either (0);
execute either (3);
set hashgraph_join.rewrite = off;
deallocate either;
prepare either (int) as select count(*) from people p join leads l on p.email = l.email or (p.phone = l.phone and l.w > $1);
execute either (0);
execute either (3);
reset plan_cache_mode;
reset hashgraph_join.rewrite;
reset hashgraph_join.min_rows;
drop function hgj_either(text);
drop table people, leads, calls, nobody;
