-- Subqueries without aggregates that are joins: EXISTS, IN, NOT IN, ANY and ALL where PostgreSQL
-- makes no join of them, and values of one row.
create table people (id int primary key, name text, boss int, pay numeric(10,2)) with (autovacuum_enabled = off);
insert into people select g, 'p' || g % 40, nullif(g / 3, 5), g % 17 from generate_series(1, 90) g;
create table shifts (id int unique, person int, hours int, place text, day date not null) with (autovacuum_enabled = off);
insert into shifts select nullif(g, 11), nullif(g % 70, 7), nullif(g % 13, 4), case when g % 9 > 0 then 'at ' || g % 5 end, date '2024-01-01' + g % 31 from generate_series(1, 1200) g;
create table closed (place text, hours int, day date not null) with (autovacuum_enabled = off);
insert into closed select 'at ' || g % 3, g % 4, date '2024-01-01' + g from generate_series(1, 12) g;
create table empty (place text, hours int) with (autovacuum_enabled = off);
analyze people, shifts, closed, empty;
set hashgraph_join.min_rows = 0;

-- A row by a unique index, by one after the other, or none; and where no index says so.
select hgj_hidden('select id, (select name from people p where p.id = s.person) from shifts s');
select hgj_hidden('select id, (select coalesce(name, ''nobody'') || s.hours from people p where p.id = s.person and p.pay > 5) from shifts s');
select hgj_hidden('select id, (select b.name from people p join people b on b.id = p.boss where p.id = s.person) from shifts s');
select hgj_hidden('select id from shifts s where 10 / (select pay - 1 from people p where p.id = s.person and p.pay > 1) > 2');
select hgj_hidden('select id, (select p.pay from people p where p.id = s.person and s.hours > 5) from shifts s');
select hgj_hidden('select id, (select place from shifts t where t.id = s.hours) from shifts s');
select hgj_hidden('select id, (select b.name from people p, people b where p.id = s.person) from shifts s where id < 0');
select hgj_hidden('select id, (select name from people p where p.boss = s.person) from shifts s where id < 0');
select hgj_hidden('select id, (select b.name from people p left join people b on b.id = p.boss where b.id = s.person) from shifts s where id < 0');
-- more than one row is an error, as before
create table twice (id int, note text) with (autovacuum_enabled = off);
insert into twice values (1, 'a'), (1, 'b');
select hgj_says('select (select note from twice t where t.id = p.id) from people p');
-- an index that is deferred, is of a part, or is of children, says nothing
alter table twice add constraint later unique (id, note) deferrable initially deferred;
select hgj_hidden('select id, (select note from twice t where t.id = p.id and t.note = p.name) from people p');
create unique index on twice (id) where note = 'a';
select hgj_hidden('select id, (select note from twice t where t.id = p.id and t.note > ''a'') from people p');
create table parents (id int primary key, note text) with (autovacuum_enabled = off);
create table children () inherits (parents) with (autovacuum_enabled = off);
insert into parents values (1, 'parent');
insert into children values (2, 'child');
select hgj_hidden('select id, (select note from parents t where t.id = p.id) from people p');
create table parts (id int primary key, note text) partition by range (id);
create table parts_1 partition of parts for values from (0) to (50) with (autovacuum_enabled = off);
create table parts_2 partition of parts for values from (50) to (100) with (autovacuum_enabled = off);
insert into parts select g, 'part ' || g from generate_series(1, 80, 2) g;
analyze parts;
select hgj_hidden('select id, (select note from parts t where t.id = p.id) from people p');
-- a plan that was made with the index is not used without it
prepare by_index as select count((select name from people p where p.id = s.person)) from shifts s;
set plan_cache_mode = force_generic_plan;
set hashgraph_join.rewrite = force;
set hashgraph_join.force = on;
execute by_index;
select hgj_lines('execute by_index', 'HashGraphJoin');
begin;
alter table people drop constraint people_pkey;
select hgj_lines('execute by_index', 'HashGraphJoin');
execute by_index;
insert into people values (1, 'again');
savepoint twice;
execute by_index;
rollback;
select hgj_lines('execute by_index', 'HashGraphJoin');
deallocate by_index;
reset plan_cache_mode;
reset hashgraph_join.rewrite;
reset hashgraph_join.force;

-- The first row, in an order without ties; the least and greatest value.
select hgj_hidden('select id, (select hours from shifts s where s.person = p.id order by hours limit 1) from people p');
select hgj_hidden('select id, (select day from shifts s where s.person = p.id order by day desc limit 1) from people p');
select hgj_hidden('select id, (select hours from shifts s where s.person = p.id order by hours desc limit 1) from people p');
select hgj_hidden('select id, (select hours from shifts s where s.person = p.id order by hours desc nulls last limit 1) from people p');
select hgj_hidden('select id, (select place || p.name from shifts s where s.person = p.id order by place limit 1) from people p');
select hgj_hidden('select id, (select place from shifts s where s.person = p.id and id is not null order by day, s.id desc limit 1) from people p');
select hgj_hidden('select id, (select place from shifts s where s.person = p.id order by day, s.id desc limit 1) from people p');
select hgj_hidden('select id, (select place from shifts s where s.person = p.id order by day desc limit 1) from people p');
select hgj_hidden('select id, (select place from shifts s where s.person = p.id limit 1) from people p where id < 0');
select hgj_hidden('select id, (select place from shifts s where s.person = p.id order by place, day limit 1 offset 1) from people p');
select hgj_hidden('select id, (select hours from shifts s where s.person = p.id order by 10 / (hours + 1), hours limit 1) from people p');

-- EXISTS, below OR and as a value; with HAVING and another comparison.
select hgj_hidden('select id from people p where pay > 11 or exists (select 1 from shifts s where s.person = p.id and hours > 9)');
select hgj_hidden('select id, exists (select 1 from shifts s where s.person = p.id), not exists (select 1 from closed c where c.hours = p.boss order by day limit 3) from people p');
select hgj_hidden('select id, exists (select 1 from shifts s where s.person = p.id limit 0) from people p');
select hgj_hidden('select id from people p where exists (select 1 from shifts s where s.person = p.id group by place having count(*) > 4)');
select hgj_hidden('select id from people p where not exists (select max(hours) from shifts s where s.person = p.id group by place having sum(hours) > 20)');
select hgj_hidden('select id, exists (select 1 from shifts s where s.person = p.id having count(*) = 0) from people p');
select hgj_hidden('select id, exists (select 1 from shifts s where s.person = p.id having max(hours) > p.pay) from people p');
select hgj_hidden('select id, exists (select 1 from shifts s where s.person = p.id and s.hours <> p.pay) from people p');
select hgj_hidden('select id, exists (select 1 from shifts s where s.person = p.id and s.hours <> p.boss), exists (select 1 from shifts s where s.person = p.id and p.boss >= s.hours) from people p');
select hgj_hidden('select id, exists (select 1 from shifts s where s.person = p.id and s.hours > p.boss and s.day > date ''2024-01-01'' + p.id) from people p');
select hgj_hidden('select count(*) filter (where exists (select 1 from shifts s where s.person = p.id and hours = 12)), boss from people p group by boss');
-- PostgreSQL makes joins of these, and nothing is said of them
-- by one equality or another
select hgj_hidden('select id from people p where exists (select 1 from shifts s where s.person = p.id or s.hours = p.boss)');
select hgj_hidden('select id from people p where not exists (select 1 from shifts s where (s.person = p.id or s.hours = p.boss) and s.day < ''2024-01-05'')');
select hgj_hidden('select id, exists (select 1 from shifts s where (s.person = p.id and s.hours = 3) or s.hours = p.boss or s.place = p.name) from people p');
select hgj_hidden('select id from people p where pay > 11 or not exists (select 1 from shifts s where s.person = p.id or s.hours = p.boss)');
select hgj_hidden('select boss, count(*) from people p group by boss having not exists (select 1 from shifts s where s.person = p.boss or s.hours = max(p.id))');
select hgj_hidden('select id from people p where exists (select 1 from shifts s where s.person = p.id or s.hours > p.boss)');
select hgj_hidden('select id from people p where exists (select 1 from shifts s where s.person = p.id or s.hours = 10 / (p.id - 95))');
select hgj_hidden('select id from people p where exists (select 1 from shifts s where s.day = ''2024-01-09'' and (s.person = p.id or s.hours = p.boss) and s.place = p.name)');
select hgj_hidden('select id from people p where exists (select 1 from shifts s where s.person = p.id) and id in (select person from shifts)');

-- IN and NOT IN: with NULLs on either side, on both, on none; of the row; of an empty table.
select hgj_hidden('select id from shifts s where hours not in (select hours from closed)');
select hgj_hidden('select id from shifts s where place not in (select place from closed where hours > 1)');
select hgj_hidden('select place from closed c where hours not in (select hours from shifts)');
select hgj_hidden('select hours from closed c where hours not in (select hours from shifts where hours is not null)');
select hgj_hidden('select hours from closed c where hours not in (select hours from shifts where hours < 2)');
select hgj_hidden('select day from shifts s where day not in (select day from closed)');
select hgj_hidden('select day from shifts s where day <> all (select day from closed) and hours <> 3');
select hgj_hidden('select id from shifts s where hours not in (select hours from empty)');
select hgj_hidden('select id from shifts s where not (hours in (select distinct hours from closed where place > ''at 0''))');
select hgj_hidden('select id from shifts s where place in (select place from closed c where c.hours = s.hours)');
select hgj_hidden('select id from shifts s where place not in (select place from closed c where c.hours = s.hours)');
select hgj_hidden('select id from people p where name not in (select place from shifts s where s.person = p.id)');
select hgj_hidden('select id, hours in (select hours from closed), hours not in (select hours from closed where day > date ''2024-01-05''), hours in (select hours from empty) from shifts s');
select hgj_hidden('select id, boss in (select hours from shifts s), boss not in (select hours from shifts s where hours > 3) from people p');
select hgj_hidden('select id, boss in (select hours from shifts s where s.person = p.id), boss not in (select hours from shifts s where s.person = p.id) from people p');
select hgj_hidden('select id from shifts s where hours in (select hours from closed) or place in (select place from closed where hours = 3)');
select hgj_hidden('select id from shifts s where (hours, day) not in (select hours, day from closed where hours is not null)');
select hgj_hidden('select id from shifts s where (day, day) not in (select day, day from closed) and (hours, place) in (select hours, place from closed c where c.day > s.day)');
select hgj_hidden('select id from people p where id not in (select person from shifts where person is not null group by person having count(*) > 17)');
select hgj_hidden('select id from shifts s where hours not in (select hours from closed union select 3)');
select hgj_hidden('select id from shifts s where hours not in (select hours from closed order by hours limit 2)');
select hgj_hidden('select s.id, p.id from shifts s left join people p on p.id = s.hours where p.id not in (select hours from closed where hours is not null)');
-- the null-rejecting clause of a join's other side, or of OR, proves nothing
select hgj_hidden('select s.id from shifts s where (hours > 3 or day > date ''2024-01-20'') and hours not in (select hours from closed)');

-- a subquery on the left of another one
select hgj_hidden('select id from people p where (select max(hours) from shifts s where s.person = p.id) in (select hours from closed)');
select hgj_hidden('select id from people p where (select max(hours) from shifts s where s.person = p.id) not in (select hours from closed where hours is not null)');

-- ANY and ALL of an order.
select hgj_hidden('select id from people p where pay > all (select hours from shifts s where s.person = p.id)');
select hgj_hidden('select id, boss > all (select hours from shifts s where s.person = p.id), boss < any (select hours from shifts s where s.person = p.id) from people p');
select hgj_hidden('select id, boss >= all (select hours from closed), boss <= any (select hours from empty), boss < all (select hours from empty), boss > any (select hours from shifts) from people p');
select hgj_hidden('select id, boss <> any (select hours from shifts s where s.person = p.id), boss = all (select hours from shifts s where s.person = p.id) from people p');

-- Errors of rows that nobody asks for.
insert into shifts values (9999, 888, 77, 'nowhere', '2024-02-01');
select hgj_hidden('select id from people p where id not in (select 10 / (hours - 77) from shifts s where s.person = p.id)');
select hgj_hidden('select id, boss in (select 10 / (hours - 77) from shifts s where s.person = p.id) from people p');
select hgj_hidden('select id from people p where case when exists (select from shifts s where s.person = p.id) then 1 else 1 / (id - 888) end = 1 or id > 0');
-- a column that is computed in FROM, of rows around it that nothing asks for
create view rates as select p.*, 10 / (id - 7) as rate from people p;
select hgj_hidden('select id, case when id <> 7 then (select max(hours) from shifts s where s.person = r.rate) end from rates r');
select hgj_hidden('select id, case when id <> 7 then (select place from shifts s where s.id = r.rate) end from rates r');
select hgj_hidden('select id from rates r where id = 7 or rate not in (select hours from closed where hours is not null)');
select hgj_hidden('select id from rates r where rate not in (select hours from empty)');
select hgj_hidden('with r as (select p.*, 10 / (id - 7) as rate from people p) select id, case when id <> 7 then exists (select from shifts s where s.hours = r.rate) end from r');
select hgj_hidden('select id, exists (select from shifts s where s.person = -p.id and s.hours > 10 / (p.id - 7)) from people p');
select hgj_hidden('select id, 10 / (p.id - 7) > any (select hours from empty), 10 / (p.id - 7) > any (select hours from shifts s where s.person = -p.id) from people p');
select hgj_hidden('select r.id, s.id from rates r left join shifts s on r.id <> 7 and r.rate is not distinct from s.hours');
select hgj_hidden('select case when false then exists (select from shifts s where s.person = p.id limit (1 / 0)) end from people p');
-- clauses that raise errors for rows that a subquery beside them removes
select hgj_hidden('select id from people p where (select hours from shifts s where s.id = p.id) > 90 and (select 10 / (s.hours - s.hours) from shifts s where s.id = p.id) is not null');
select hgj_hidden('select p.id from people p join closed c on c.hours = p.boss % 4 where 10 / (c.hours + p.id - 7) > -2 and p.id <> 7 and p.id > (select max(hours) - 90 from shifts s where s.person = p.id)');
select hgj_hidden('select p.id from people p where p.id + 5 > (select max(hours) from shifts s where s.person = p.id)');
-- a subquery in the value
select hgj_hidden('select id, (select (select max(day) from closed c where c.hours < p.boss) from people p where p.id = s.person) from shifts s');
select hgj_hidden('select id, (select exists (select from closed c where c.hours < s.hours) from shifts s where s.person = p.id order by s.id limit 1) from people p where id is not null');
-- an index by another collation than the order's
create collation hgj_alike (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
create table names (k int, name text collate hgj_alike not null, id int) with (autovacuum_enabled = off);
insert into names select g % 20, case when g < 30 then 'a' else 'A' end || g % 3, g from generate_series(1, 60) g;
create unique index on names (k, id, name collate "C");
select hgj_hidden('select id, (select n.id from names n where n.k = p.id and n.id = p.boss order by n.name limit 1) from people p');
drop table names;
drop collation hgj_alike;
-- a pattern that is a group's
update shifts set place = E'at\\' where person = 888;
select hgj_hidden('select id from people p where name like (select max(place) from shifts s where s.person = p.id)');
-- locking
select hgj_says('select id from people p where boss not in (select hours from closed) for update');
drop view rates;
drop table people, shifts, closed, empty, twice, parents, children, parts;
reset hashgraph_join.min_rows;
