-- Subqueries that see groups: in HAVING, and in the target list of a level that aggregates.
create table sales (id int primary key, shop int, item text, amount numeric(10,2), day date) with (autovacuum_enabled = off);
insert into sales select g, nullif(g % 30, 7), 'item ' || g % 11, case when g % 17 <> 0 then g % 97 end, date '2024-01-01' + g % 60 from generate_series(1, 1500) g;
create table goals (shop bigint, item varchar(10), goal numeric(10,2), pages int) with (autovacuum_enabled = off);
insert into goals select nullif(g % 35, 9), 'item ' || g % 13, (g * 7) % 1001, g % 6 from generate_series(1, 900) g where g % 35 not in (3, 4);
create table shops (id int primary key, name text, owner int) with (autovacuum_enabled = off);
insert into shops select g, 'shop ' || g, g % 4 from generate_series(0, 40) g;
analyze sales, goals, shops;
set hashgraph_join.min_rows = 0;

-- HAVING: keys, aggregates, several clauses, NULLs, groups that nobody finds
select hgj_hidden('select shop, sum(amount) from sales s group by shop having sum(amount) > (select 3 * max(goal) from goals g where g.shop = s.shop)');
select hgj_hidden('select shop from sales s group by shop having count(*) > 40 and sum(amount) > (select max(goal) from goals g where g.shop = s.shop) and min(day) < ''2024-02-01''');
select hgj_hidden('select shop, count(*) from sales s group by shop having count(*) > (select count(*) + 10 from goals g where g.shop = s.shop) or shop is null');
select hgj_hidden('select shop, item from sales s group by shop, item having max(amount) < (select avg(goal) from goals g where g.shop = s.shop and g.item = s.item)');
select hgj_hidden('select shop from sales s group by shop having exists (select from goals g where g.shop = s.shop and g.pages > 4)');
select hgj_hidden('select shop from sales s group by shop having not exists (select from goals g where g.shop = s.shop and g.pages > 4)');
select hgj_hidden('select shop from sales s group by shop having max(day) not in (select date ''2024-02-01'' from goals g where g.shop = s.shop)');
select hgj_hidden('select shop from sales s group by shop having count(*) % 7 in (select pages from goals g where g.shop = s.shop)');
select hgj_hidden('select max(item) from sales s having max(shop) < (select max(goal) from goals g where g.shop = max(s.shop))');
select hgj_hidden('select count(*) from sales s having count(*) > 5 and exists (select from goals g where g.shop = min(s.shop))');
-- the target list: keys, expressions that are keys, aggregates, columns that depend on a key
select hgj_hidden('select shop, (select count(*) from goals g where g.shop = s.shop), sum(amount) from sales s group by shop');
select hgj_hidden('select lower(item), (select max(goal) from goals g where g.item = max(s.item)) from sales s group by lower(item)');
select hgj_hidden('select shop + 1, (select max(goal) from goals g where g.shop = count(distinct s.item)), shop + 1 + count(*) from sales s group by shop + 1');
select hgj_hidden('select item, (select max(pages) from goals g where g.shop = max(s.shop)) + count(*) from sales s group by item');
select hgj_hidden('select o.id, o.name, (select sum(goal) from goals g where g.shop = o.owner) from sales s join shops o on o.id = s.shop group by o.id');
select hgj_hidden('select o.*, (select sum(goal) from goals g where g.shop = o.owner) from sales s join shops o on o.id = s.shop group by o.id having count(*) > (select count(*) from goals g where g.shop = o.owner)');
select hgj_hidden('select shop, (select case when max(goal) > sum(s.amount) then 1 else 2 end from goals g where g.shop = s.shop) from sales s group by shop');
select hgj_hidden('select count(*), (select max(goal) from goals g where g.shop = s.shop) from sales s group by shop, (select 1)');
-- what else the level has
select hgj_hidden('select distinct count(*), (select max(goal) from goals g where g.shop = s.shop) from sales s group by shop order by 1');
select hgj_hidden('select shop, rank() over (order by sum(amount), shop) r, (select max(goal) from goals g where g.shop = s.shop) from sales s group by shop order by r limit 9 offset 2');
select hgj_hidden('select shop, count(*) from sales s group by shop order by (select max(goal) from goals g where g.shop = s.shop), shop limit 5');
select hgj_hidden('select shop, generate_series(1, 2), (select max(goal) from goals g where g.shop = s.shop) from sales s group by shop');
select hgj_hidden('with g as (select shop, max(goal) goal from goals group by shop), s as (select * from sales where amount > 20) select s.shop, count(*), (select max(goal) from goals where goals.shop = s.shop) from s join g on g.shop = s.shop where exists (select from g h where h.goal = g.goal) group by s.shop having max(s.amount) < (select avg(goals.goal) from goals where goals.shop = s.shop) and s.shop in (select shop from g)');
select hgj_hidden('select o.name, l.n from shops o, lateral (select count(*) n, s.item from sales s where s.shop = o.id group by s.item having count(*) > (select count(*) from goals g where g.item = s.item) / 20) l');
select hgj_hidden('select shop, sum((select count(*) from goals g where g.shop = s.shop)), (select max(goal) from goals g where g.shop = s.shop) from sales s group by shop');
select hgj_hidden('select name from shops o where id in (select shop from sales s group by shop having sum(amount) > (select 2 * max(goal) from goals g where g.shop = s.shop))');
select hgj_hidden('select 1, shop from sales s group by shop having exists (select from goals g where g.shop = s.shop) union all select 2, shop from goals');
create view sellers as select shop, sum(amount) total from sales s group by shop having sum(amount) > (select max(goal) from goals g where g.shop = s.shop);
select hgj_hidden('select o.name, total from shops o join sellers l on l.shop = o.id where total > (select avg(goal) from goals g where g.shop = o.owner)');
create table found (shop int, n bigint, goal numeric);
explain (costs off) insert into found select shop, count(*), (select max(goal) from goals g where g.shop = s.shop) from sales s group by shop;
-- errors of clauses come for the groups for which they came before
set hashgraph_join.rewrite = force;
select hgj_says('select shop from sales s group by shop having 10 / (count(*) - 50) < 5 and sum(amount) > (select max(goal) from goals g where g.shop = s.shop)');
select hgj_says('select shop, 10 / (count(*) - 100) from sales s group by shop having count(*) < 100 and sum(amount) > (select max(goal) from goals g where g.shop = s.shop)');
select hgj_says('select shop, 10 / (count(*) - 50) from sales s group by shop having sum(amount) > (select max(goal) from goals g where g.shop = s.shop)');
select hgj_says('select shop, 10 / (count(*) - 50) from sales s group by shop having sum(amount) < (select min(goal) - 1 from goals g where g.shop = s.shop)');
reset hashgraph_join.rewrite;
select hgj_hidden('select shop from sales s group by shop having exists (select from goals g where g.shop = s.shop and 10 / (g.pages + 1) > 3)');

-- what groups have of levels further out, and of WITH: in aggregates, FILTER and GROUP BY
select hgj_hidden('select 1 from shops a, lateral (select sum(s.amount + a.id), (select count(*) from goals g where g.shop = max(s.shop)) from sales s where s.id < 90) z');
select hgj_hidden('select a.id, z.* from shops a, lateral (select s.item, sum(s.amount + a.id), (select count(*) from goals g where g.item = s.item) from sales s where s.shop = a.owner group by s.item) z');
select hgj_hidden('select a.id, z.* from shops a, lateral (select s.shop + a.id k, count(*) filter (where s.amount > a.owner), percentile_disc(a.owner / 10.0) within group (order by s.id), (select count(*) from goals g where g.shop = max(s.shop)) from sales s where s.id < 40 group by s.shop + a.id) z');
select hgj_hidden('select a.id, (select n from (select sum(s.amount + a.id) n, (select count(*) from goals g where g.shop = max(s.shop)) c from sales s where s.id < 99) z) from shops a');
select hgj_hidden('with w as (select 7 as x) select max((select x from w)), count(*) filter (where s.shop in (select x from w)), (select count(*) from goals g where g.shop = max(s.shop)) from sales s');
select hgj_hidden('with w as (select 7 as x) select (select x from w) + s.shop, count(*), (select count(*) from goals g where g.shop = max(s.shop)) from sales s group by (select x from w) + s.shop');
set hashgraph_join.min_rows = 1000;
select count(*) from shops a, shops b, shops c, lateral (select sum(s.amount + c.id), (select count(*) from goals g where g.shop = max(s.shop)) from sales s) z;
reset hashgraph_join.min_rows;
-- aggregates of what is volatile are as many as are written
create sequence counter;
select hgj_hidden('select shop, min(nextval(''counter'')) = max(nextval(''counter'')), min(nextval(''counter'')) <> min(nextval(''counter'')), (select count(*) from goals g where g.shop = s.shop) from sales s group by shop');
-- clauses that PostgreSQL evaluates behind a subquery stay behind it
create function no_seven(x int) returns bool language plpgsql immutable cost 1000000 as $$ begin if x = 7 then raise 'seven'; end if; return true; end $$;
set hashgraph_join.rewrite = force;
select hgj_says('select shop from sales s where shop is not null group by shop having shop not in (select 8) and 10 / (min(shop) - 8) < 5');
select hgj_says('select shop, (select count(*) from goals g where g.shop = s.shop) from sales s group by shop having 10 / min(shop - 8) < 5 and shop not in (select 8)');
select hgj_says('select shop from sales s group by shop having no_seven(max(shop + 3)) and exists (select from goals g where g.shop = s.shop)');
select hgj_says('select shop from sales s group by shop having no_seven(max(shop + 3)) and (select count(*) from goals g where g.shop = s.shop) > 1');
select hgj_says('select id from sales s where shop <> 8 and no_seven(shop - 1) and shop not in (select 8)');
select hgj_says('select id from sales s where no_seven(shop + 3) and (select count(*) from goals g where g.shop = s.shop) > 1');
select hgj_says('select id from sales s where no_seven(shop + 3) and (shop in (select g.shop from goals g where g.pages = s.id % 6) or shop < 0)');
select hgj_says('select id from sales s where shop not in (select 8) and 10 / (shop - 8) < 5');
reset hashgraph_join.rewrite;

-- What stays whole.
select hgj_hidden('select shop, item, (select max(goal) from goals g where g.shop = s.shop) from sales s group by rollup (shop, item)');
select hgj_hidden('select shop, grouping(shop), (select max(goal) from goals g where g.shop = s.shop) from sales s group by shop');
select hgj_hidden('select shop from sales s group by shop having random() < 2 and sum(amount) > (select max(goal) from goals g where g.shop = s.shop)');
select hgj_hidden('select s.shop, (select max(goal) from goals g where g.shop = s.shop) from sales s group by shop, random() > 2');
select hgj_hidden('select (select max(goal) from goals g where g.shop = s.shop), count(*) from sales s group by 1');

-- privileges are those of the user, of columns, too
create role hgj_seller;
grant select (shop, amount) on sales to hgj_seller;
grant select (shop, goal) on goals to hgj_seller;
set role hgj_seller;
select count(*) from (select shop from sales s group by shop having sum(amount) > (select max(goal) from goals g where g.shop = s.shop)) x;
select count(*) from (select shop, max(day) from sales s group by shop having sum(amount) > (select max(goal) from goals g where g.shop = s.shop)) x;
select count(*) from (select shop from sales s group by shop having sum(amount) > (select max(pages) from goals g where g.shop = s.shop)) x;
reset role;
revoke all on sales, goals from hgj_seller;
drop role hgj_seller;
reset hashgraph_join.min_rows;
drop view sellers;
drop table sales, goals, shops, found;
