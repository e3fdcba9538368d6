-- Subqueries in FROM that run once for each row beside them: LATERAL.
create table clients (id int primary key, region int, name text, credit numeric(10,2)) with (autovacuum_enabled = off);
insert into clients select i, nullif(i % 12, 5), 'client ' || i % 40, case when i % 9 > 0 then i % 50 end from generate_series(1, 300) i;
create table deals (id int primary key, client bigint, region int, at timestamp, amount numeric(10,2), kind varchar(10), v float8) with (autovacuum_enabled = off);
insert into deals select i, nullif(i % 330, 7), i % 12, timestamp '2024-01-01' + i % 500 * interval '1 hour', case when i % 7 > 0 then i % 90 end, 'kind ' || i % 5, i % 11
from generate_series(1, 4000) i where i % 330 not between 60 and 75;
insert into deals select 5000 + i, 1000, 1, timestamp '2024-02-01', 0, 'other', 1 from generate_series(1, 5) i;
create index on deals (client);
create table regions (id int, boss int) with (autovacuum_enabled = off);
insert into regions select i, nullif(i * 20, 60) from generate_series(0, 14) i;
analyze clients, deals, regions;
set hashgraph_join.min_rows = 0;

-- aggregates: a row for each row
select hgj_hidden('select c.id, x.* from clients c left join lateral (select count(*) n, sum(amount) s, max(at) last from deals d where d.client = c.id) x on true');
select hgj_hidden('select c.id, n, s from clients c, lateral (select count(*) n, coalesce(sum(amount), 0) s from deals d where d.client = c.id and kind like ''kind 1%'') x');
select hgj_hidden('select c.id, n, s from clients c cross join lateral (select count(amount) n, sum(amount) / 3 s from deals d where d.client = c.id) x where n > 3');
select hgj_hidden('select c.id, n from clients c join lateral (select count(*) n from deals d where d.client = c.id) x on true where n = 0 or credit > 40');
select hgj_hidden('select c.name, sum(n), max(s + credit), count(*) from clients c, lateral (select count(*) n, sum(amount) s from deals d where d.client = c.id) x group by c.name having sum(n) > 4');
select hgj_hidden('select n, count(*) from clients c, lateral (select count(*) n from deals d where d.client = c.id) x group by n order by n');
select hgj_hidden('select c.id, rank() over (partition by n order by s desc, c.id) from clients c, lateral (select count(*) n, sum(amount) s from deals d where d.client = c.id) x');
select hgj_hidden('select distinct n, s is null from clients c, lateral (select count(*) n, sum(amount) s from deals d where d.client = c.id) x order by n desc limit 5');
select hgj_hidden('select c.id, x.n, y.n, z.a from clients c left join lateral (select count(*) n from deals d where d.client = c.id) x on true left join lateral (select count(*) n from deals d where d.client = c.id and amount > 50) y on true left join lateral (select avg(amount) a from deals d where d.region = c.region) z on true');
select hgj_hidden('select c.id, x.n, y.m from clients c, lateral (select count(*) n from deals d where d.client = c.id) x left join lateral (select max(amount) m from deals d where d.client = c.region) y on true');
select hgj_hidden('select c.id, x.n, y.m from clients c left join lateral (select count(*) n from deals d where d.client = c.id) x on true left join lateral (select max(amount) m from deals d where d.client = x.n) y on true');
select hgj_hidden('select c.id, x.n from clients c left join lateral (select count(*) n from deals d where d.client = c.id and d.region = c.region) x on true where c.credit < 30');
select hgj_hidden('select c.id, r.id, x.n from clients c join regions r on r.id = c.region left join lateral (select count(*) n from deals d where d.client = c.id and d.region = r.id) x on true');
select hgj_hidden('select c.id, r.id, x.n from clients c left join regions r on r.id = c.region left join lateral (select count(*) n from deals d where d.client = r.boss) x on true');
select hgj_hidden('select c.id, x.n from regions r right join (clients c left join lateral (select count(*) n from deals d where d.client = c.id) x on true) on r.id = c.region');
select hgj_hidden('select c.id, (select max(boss) from regions where id = x.n) from clients c, lateral (select count(*) n from deals d where d.client = c.id) x');
select hgj_hidden('select c.id from clients c, lateral (select count(*) n, max(amount) m from deals d where d.client = c.id) x where x.m > (select avg(amount) from deals d where d.region = c.region) and x.n in (select id from regions)');
select hgj_hidden('select q.* from (select c.id, x.n from clients c, lateral (select count(*) n from deals d where d.client = c.id) x) q where n between 1 and 13');
select hgj_hidden('with q as (select c.id, x.n from clients c, lateral (select count(*) n from deals d where d.client = c.id) x) select a.id, b.n from q a join q b on a.n = b.n and a.id < b.id where a.id < 20');
select hgj_hidden('select c.id, x.n, c.credit / nullif(x.n, 0) from clients c, lateral (select count(*) n from deals d where d.client = c.id) x');

-- several, which depend on one thing or another beside them
select hgj_hidden('select count(*), sum(n), sum(x.id) from clients c, regions r, lateral (select count(*) n from deals d where d.client = c.id and d.region = r.id) y, lateral (select d.id, d.kind from deals d where d.client = c.id order by d.at, d.id limit 1) x where c.id < 40');
select hgj_hidden('select count(*), sum(n), sum(m) from clients c, regions r, lateral (select count(*) n from deals d where d.client = c.id and d.region = r.id) y, lateral (select count(*) m from deals d where d.client = c.id) x where c.id < 40');
select hgj_hidden('select count(*) from clients c, regions r, lateral (select count(*) n from deals d where d.client = c.id and d.region = r.id) y, lateral (select count(*) m from deals d where d.client = c.id) x, lateral (select max(d.id) m from deals d where d.client = r.boss) z where c.id < 40');
-- grouping sets see columns, and not what they are made of
select hgj_hidden('select x.one + 1, count(*), sum(x.n) from clients c, lateral (select count(*) n, 5 as one from deals d where d.client = c.id) x group by rollup (x.one)');
select hgj_hidden('select x.a + 1, x.b + 1, count(*) from clients c, lateral (select count(*) a, count(*) b from deals d where d.client = c.id) x group by grouping sets ((x.a), (x.b))');
select hgj_hidden('select c.region, count(*) from clients c, lateral (select count(*) a from deals d where d.client = c.id) x where x.a > 3 group by rollup (c.region)');

-- GROUP BY and LIMIT 1: a row, or none
select hgj_hidden('select c.id, x.id, x.at, x.kind from clients c left join lateral (select d.id, d.at, d.kind from deals d where d.client = c.id order by d.at desc, d.id limit 1) x on true');
select hgj_hidden('select c.id, x.id, x.at, x.kind from clients c join lateral (select d.id, d.at, d.kind from deals d where d.client = c.id order by d.at desc nulls last, d.id limit 1) x on true');
select hgj_hidden('select c.id, x.* from clients c, lateral (select d.id, d.amount * 2 a, c.credit from deals d where d.client = c.id order by d.id limit 1) x where x.a > 10');
select hgj_hidden('select c.id, x.* from clients c left join lateral (select d.amount from deals d where d.client = c.id order by d.amount desc limit 1) x on true');
select hgj_hidden('select c.id, x.* from clients c cross join lateral (select d.amount from deals d where d.client = c.id and d.amount is not null order by d.amount limit 1) x');
select hgj_hidden('select c.id, x.* from clients c left join lateral (select client, count(*), min(at) from deals d where d.client = c.id group by client) x on true');
select hgj_hidden('select c.id, x.* from clients c, lateral (select client, count(*), min(at) from deals d where d.client = c.id group by client having sum(amount) > 300) x');

-- rows that do not have a key's first value are not sorted, where the column is never NULL
alter table deals alter at set not null;
select hgj_rewritten('select c.id, x.* from clients c left join lateral (select d.id, d.at, d.kind from deals d where d.client = c.id order by d.at desc, d.id limit 1) x on true', 'd.at = correlated_1.column2');
select hgj_rewritten('select c.id, x.* from clients c, lateral (select d.id, d.amount from deals d where d.client = c.id and d.kind <> ''kind 2'' and d.amount > 3 order by d.at, d.amount, d.id desc limit 1) x where x.id > 7', 'd.at = correlated_1.column2');
select hgj_rewritten('select c.id, (select d.kind from deals d where d.client = c.id and d.region = c.region order by d.at desc, d.id limit 1) from clients c', 'd.at = correlated_1.column3');
select hgj_rewritten('select c.id from clients c where credit > (select d.amount from deals d where d.client = c.id order by d.at desc, d.id limit 1)', 'd.at = correlated_1.column2');
select hgj_rewritten('select c.id, (select d.kind from deals d where d.client = c.id order by coalesce(d.region, 0), d.id limit 1) from clients c where c.credit = 9', 'COALESCE\(d.region, 0\) = correlated_1.column2');
select hgj_rewritten('select c.id, (select d.kind from deals d where d.client = c.id and d.id in (select id from regions) order by d.at desc, d.id limit 1) from clients c', 'd.at = correlated_1.column2');
select hgj_rewritten('select c.id, (select d.kind from deals d where d.client = c.id order by d.amount desc, d.id limit 1) from clients c', 'correlated_1');
select hgj_rewritten('select c.id, (select d.kind from deals d where d.client = c.id order by d.at + c.id * interval ''1 day'', d.id limit 1) from clients c', 'correlated_1');

-- the columns may be looked at in any way, and rows that nobody asks for are nobody's
select hgj_hidden('select c.id from clients c, lateral (select count(*) n from deals d where d.client = c.id) x where 10 / (n - 1) < 5 and c.id < 60');
select hgj_hidden('select c.id, 100 / (n - 5) from clients c, lateral (select count(*) n from deals d where d.client = c.id) x where c.id > 80');
select hgj_hidden('select c.id, q from clients c, lateral (select 10 / (count(*) - 5) q from deals d where d.client = c.id) x where q < 3 and c.id > 8');
select hgj_hidden('select c.id, x.q from clients c left join lateral (select 10 / d.amount q from deals d where d.client = c.id and d.amount > 2 order by d.id limit 1) x on true');
select hgj_hidden('select c.id, y.q from clients c left join lateral (select sum(amount) / count(*) q from deals d where d.client = c.id) x on true left join lateral (select max(at) q from deals d where d.client = c.id and d.region = c.region) y on true where x.q > 40');
-- what other joins remove does not come to a clause that may raise an error
select hgj_hidden('select count(*) from clients c join regions r on r.id = c.id left join lateral (select count(*) n from deals d where d.client = c.id + 8) x on true where 100 / x.n = 8');
select hgj_hidden('select count(*) from clients c left join lateral (select count(*) n from deals d where d.client = c.id) x on true where c.id in (select id + 8 from regions) and 100 / x.n = 8');
select hgj_hidden('select count(*) from regions r, clients c, lateral (select count(*) n from deals d where d.client = c.id) x where 100 / x.n = 8 and r.id + 8 = c.id');
select hgj_hidden('select count(*) from regions r join (select c.id, 100 / x.n q from clients c, lateral (select count(*) n from deals d where d.client = c.id) x) y on y.id = r.id + 8 where q = 8');
set hashgraph_join.rewrite = force;
select hgj_says('select c.id, 100 / (n - 13) from clients c, lateral (select count(*) n from deals d where d.client = c.id) x');
select hgj_says('select c.id, 100 / n from clients c, lateral (select count(*) n from deals d where d.client = c.id) x where c.id < 60');
select hgj_says('select c.id from regions r, clients c, lateral (select count(*) n from deals d where d.client = c.id) x where r.id = n and 10 / (n - 13) < 5');
explain (costs off) select c.id, x.n, x.s from clients c left join lateral (select count(*) n, sum(amount) s from deals d where d.client = c.id) x on true where c.credit = 3;
explain (costs off) select c.id, x.* from clients c join lateral (select d.id, d.at from deals d where d.client = c.id order by d.at desc, d.id limit 1) x on true where c.credit = 3;
reset hashgraph_join.rewrite;

-- what stays
select hgj_hidden('select c.id, x.n from clients c left join lateral (select count(*) n from deals d where d.client > c.id) x on true where c.id < 20');
select hgj_hidden('select c.id, x.n from clients c left join lateral (select count(*) n from deals d where d.client = c.id) x on x.n > 3');
select hgj_hidden('select c.id, q.n from clients c left join (regions r cross join lateral (select count(*) n from deals d where d.client = r.boss) x) q on q.id = c.region');
select hgj_hidden('select c.id, x from clients c, lateral (select count(*) n, sum(amount) s from deals d where d.client = c.id) x');
select hgj_hidden('select c.id, x.n from clients c, lateral (select string_agg(kind, '','') n from deals d where d.client = c.id) x');
select hgj_hidden('select c.id, x.id from clients c, lateral (select d.id from deals d where d.client = c.id order by d.at limit 1) x');
select hgj_hidden('select c.id, x.id from clients c, lateral (select d.id from deals d where d.client = c.id order by d.at, d.id limit 2) x');
select hgj_hidden('select c.id, x.n from clients c, lateral (select count(*) n, sum(d.v) s from deals d where d.client = c.id) x');
select hgj_hidden('select c.id, x.n from clients c, lateral (select 10 / count(*) n from deals d where d.client = c.id) x where c.id between 10 and 20');
select hgj_hidden('select c.id, x.n from clients c, lateral (select count(*) n from deals d where d.client = c.id and 100 / d.id >= 0) x');
select hgj_hidden('select c.id, y.n from clients c, lateral (select count(*) n from deals d where d.client = c.id) x, lateral (select a.id + x.n n from regions a where a.id < x.n offset 0) y');
select hgj_hidden('select c.id, x.n from clients c, lateral (select count(*) + random() * 0 n from deals d where d.client = c.id) x');
select hgj_hidden('select c.id, y.* from clients c, lateral (select r.id, x.n from regions r, lateral (select count(*) n from deals d where d.client = c.id and d.region = r.id) x) y where c.id < 10');
select hgj_hidden('select c.id, y.* from clients c, lateral (select count(*) n from deals d where d.client = c.id) x, generate_series(1, x.n) y');
select hgj_hidden('select c.id, x.n from clients c full join regions r on r.id = c.region cross join lateral (select count(*) n from deals d where d.client = c.id) x');

select hgj_hidden('select c.id, x.id from clients c left join lateral (select d.id from deals d where d.client = c.id order by c.id, d.at, d.id limit 1) x on true');
select hgj_hidden('select c.id, (select d.id from deals d where d.client = c.id order by c.id, d.at, d.id limit 1) from clients c');
select hgj_hidden('select c.id, x.* from clients c, lateral (select c.name, d.id from deals d where d.client = c.id order by c.name, d.id limit 1) x');

-- statements that are kept, write, or lock
select reason from hashgraph_join_why('select c.id, x.n from clients c, lateral (select count(*) n from deals d where d.client = c.id) x for update of c') where node = 'Subquery';
prepare sums(int) as select c.id, x.s from clients c left join lateral (select sum(amount) s from deals d where d.client = c.id and d.region > $1) x on true where c.id < 5 order by 1;
set plan_cache_mode = force_generic_plan;
set hashgraph_join.rewrite = force;
execute sums(3);
execute sums(20);
reset hashgraph_join.rewrite;
reset plan_cache_mode;
deallocate sums;
create table totals (id int, n bigint, s numeric);
set hashgraph_join.rewrite = force;
insert into totals select c.id, x.* from clients c left join lateral (select count(*), sum(amount) from deals d where d.client = c.id) x on true;
select count(*), sum(n), sum(s) from totals;
update totals set n = x.n from clients c, lateral (select count(*) + 1 n from deals d where d.client = c.id) x where c.id = totals.id;
select count(*), sum(n), sum(s) from totals;
reset hashgraph_join.rewrite;
-- a clause that a nested loop evaluates before the equality would come to groups of other rows
create table wanted (id int primary key) with (autovacuum_enabled = off);
insert into wanted values (1), (2);
create table patterns (k int, p text) with (autovacuum_enabled = off);
insert into patterns values (1, 'a'), (99, '(');
analyze wanted, patterns;
set enable_hashjoin = off;
set enable_mergejoin = off;
select hgj_hidden('select w.id from wanted w, lateral (select max(p) m from patterns where k = w.id group by k) x where ''x'' !~ x.m');
select hgj_hidden('select w.id from wanted w, lateral (select max(p) m from patterns where k = w.id) x where ''x'' !~ x.m');
reset enable_hashjoin;
reset enable_mergejoin;
drop table wanted, patterns;
create view client_totals as select c.id, c.region, x.n, x.s from clients c left join lateral (select count(*) n, sum(amount) s from deals d where d.client = c.id) x on true;
select hgj_hidden('select region, sum(n), max(s) from client_totals where id % 3 = 0 group by region');
select hgj_hidden('select t.*, u.n from client_totals t join client_totals u on u.id = t.id + 1');
drop view client_totals;
drop table clients, deals, regions, totals;
