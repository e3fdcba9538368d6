-- Groups that are rows of some tables: the others are grouped before they are joined.
create schema early;
set search_path = early, public;
create collation early_loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
create table regions (id int primary key, name text not null) with (autovacuum_enabled = off);
insert into regions select i, 'region ' || i from generate_series(0, 11) i;
create table clients (id int primary key, region int, code varchar(10) not null unique, alias text unique, nick text collate early_loose not null unique, name text, credit numeric(10,2), late int not null unique deferrable) with (autovacuum_enabled = off);
insert into clients select i, nullif(i % 12, 5), 'c' || i, nullif('a' || i, 'a7'), 'n' || i, 'client ' || i % 40, case when i % 9 > 0 then i % 50 end, i from generate_series(1, 300) i;
insert into clients values (301, 3, 'c301', null, 'm', 'client', 1, 301);
create table deals (id int primary key, client bigint, code text, region int, amount numeric(10,2), n numeric, kind varchar(10), v float8, k int) with (autovacuum_enabled = off);
insert into deals select i, nullif(i % 330, 7), 'c' || i % 320, i % 12, case when i % 7 > 0 then i % 90 end, (array[1.0, 1.00, 2])[1 + i % 3], 'kind ' || i % 5, i % 11, i % 400 from generate_series(1, 4000) i;
create table parts (deal int not null, at date, price numeric(8,2), weight int) with (autovacuum_enabled = off);
insert into parts select 1 + i * 7 % 4100, date '2024-01-01' + i % 100, i % 60, case when i % 13 > 0 then i % 25 end from generate_series(1, 9000) i;
analyze regions, clients, deals, parts;
set hashgraph_join.min_rows = 0;

-- What becomes of GROUP BY, and whether the answer stays what it was.
create function hgj_early(q text) returns text language sql as $$ select hgj_hidden(q, '{GROUP BY,Subquery}') $$;

-- one table and another
select hgj_early('select c.id, count(d.id), sum(d.amount), max(d.kind) from clients c left join deals d on d.client = c.id group by c.id');
select hgj_early('select c.id, c.name, count(*), sum(d.amount) from clients c left join deals d on d.client = c.id and d.region <> 3 group by c.id');
select hgj_early('select c.id, c.name, count(*), avg(d.amount), min(d.kind) from clients c join deals d on d.client = c.id group by c.id, c.name');
select hgj_early('select c.name, count(*) n, sum(d.amount) from clients c, deals d where c.id = d.client and d.region < 7 and c.region > 2 group by c.id having count(*) > 2 order by n desc, c.id limit 7');
select hgj_early('select c.code, count(*) from clients c, deals d where c.code = d.code group by c.code');
select hgj_early('select d.client is null, count(*) from clients c join deals d on d.client = c.id group by c.id, d.client');
-- equalities of two columns, and of expressions
select hgj_early('select c.id, count(*) from clients c join deals d on d.client = c.id and d.region = c.region group by c.id');
select hgj_early('select c.id, count(d.n), sum(d.n * d.amount) from clients c left join deals d on d.k = c.id + 1 and c.code = d.code group by c.id');
-- count(*) of a row without a match, and of what is there; counts of what differs; FILTER; expressions of aggregates
select hgj_early('select c.id, count(*), count(*) + 1, count(*) * count(d.id), count(distinct d.region), count(d.id) filter (where d.region > 4), coalesce(sum(d.amount), -1) from clients c left join deals d on d.client = c.id group by c.id');
select hgj_early('select c.id, sum(d.amount) / count(*) from clients c join deals d on d.client = c.id group by c.id');
select hgj_early('select n, count(*) from (select c.id, count(d.id) n from clients c left join deals d on d.client = c.id and d.kind not like ''%3%'' group by c.id) x group by n order by 2 desc, 1');
select hgj_early('select x.s, r.name from regions r left join (select c.id, sum(d.amount) s from clients c join deals d on d.client = c.id group by c.id) x on x.id = r.id where x.s is null or x.s > 100');
-- several tables on either side: rows of one by a key, and of the next by it
select hgj_early('select c.id, r.name, sum(p.price * (1 - 0.05)), max(p.at) from clients c, deals d, parts p, regions r where c.id = d.client and p.deal = d.id and r.id = c.region and d.region in (1, 2, 3) group by c.id, c.name, r.name order by 3 desc limit 20');
select hgj_early('select c.id, count(p.weight) from clients c join regions r on r.id = c.region left join (deals d join parts p on p.deal = d.id) on d.client = c.id and p.at < ''2024-03-01'' where r.name > ''region 3'' group by c.id');
select hgj_early('select d.id, d.kind, count(*), sum(p.price) from parts p join deals d on d.id = p.deal join clients c on c.id = d.client where c.region = 4 group by d.id');
select hgj_early('select r.id, count(*) from clients c, deals d, regions r where c.id = 9 and d.client = c.id and r.id = d.region group by r.id');
select hgj_early('select distinct count(*) from clients c, deals d where c.id = d.client group by c.id');
select hgj_early('select c.id from clients c, deals d where c.id = d.client group by c.id having count(*) > 3');
-- with joins of the subquery's, and below WITH, UNION and a subquery
select hgj_early('with x as (select c.id, count(*) n from clients c, deals d where c.id = d.client group by c.id) select n from x where id < 9 union all select count(*) from parts p join deals d on d.id = p.deal group by d.id');
select hgj_early('select r.id from regions r where r.id in (select count(*) from clients c, deals d where c.id = d.client group by c.id)');
-- by workers
set max_parallel_workers_per_gather = 2;
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
select hgj_early('select c.id, c.name, count(*), sum(d.amount) from clients c left join deals d on d.client = c.id group by c.id');
reset max_parallel_workers_per_gather;

-- What stays: groups that are no rows, or not certainly
select hgj_early('select c.name, count(*) from clients c join deals d on d.client = c.id group by c.name');
select hgj_early('select c.alias, count(*) from clients c join deals d on d.client = c.id group by c.alias');
select hgj_early('select c.late, count(*) from clients c join deals d on d.client = c.id group by c.late');
select hgj_early('select c.id + 0, count(*) from clients c join deals d on d.client = c.id group by c.id + 0');
select hgj_early('select c.id, r.name, count(*) from clients c, deals d, regions r where c.id = d.client and r.id < c.region group by c.id, r.name');
select hgj_early('select c.id, count(*) from clients c, deals d where c.id = d.client group by grouping sets ((c.id), ())');
-- aggregates of both sides, of floats, in an order, and of what is no NULL where there is no match
select hgj_early('select c.id, sum(d.amount * c.credit) from clients c join deals d on d.client = c.id group by c.id');
select hgj_early('select c.id, sum(d.v) from clients c join deals d on d.client = c.id group by c.id');
select hgj_early('select c.id, string_agg(d.kind, '','' order by d.id) from clients c join deals d on d.client = c.id group by c.id');
select hgj_early('select c.id, max(d.n)::text from clients c join deals d on d.client = c.id group by c.id');
select hgj_early('select c.id, sum(coalesce(d.amount, 5)) from clients c left join deals d on d.client = c.id group by c.id');
select hgj_early('select c.id, count(*) filter (where d.id is null) from clients c left join deals d on d.client = c.id group by c.id');
select hgj_early('select c.id, count(1) from clients c left join deals d on d.client = c.id group by c.id');
-- columns, conditions and rows of the other side; what is no equality, raises errors, or is volatile
select hgj_early('select c.id, d.region, count(*) from clients c left join deals d on d.client = c.id group by c.id, d.region');
select hgj_early('select c.id, count(d) from clients c left join deals d on d.client = c.id group by c.id');
select hgj_early('select c.id, count(*) from clients c left join deals d on d.client = c.id where d.region > 3 group by c.id');
select hgj_early('select c.id, count(*) from clients c left join deals d on d.client = c.id and c.region > 3 group by c.id');
select hgj_early('select c.id, count(*) from clients c join deals d on d.client < c.id group by c.id');
select hgj_early('select c.id, count(*) from clients c join deals d on d.client = c.id and d.amount > c.credit group by c.id');
select hgj_early('select c.id, count(*) from clients c, deals d where c.region = 3 group by c.id');
select hgj_early('select c.id, sum(d.amount / (d.region + 1)) from clients c join deals d on d.client = c.id group by c.id');
select hgj_early('select c.id, count(*) from clients c join deals d on d.client = c.id group by c.id having 10 / (count(*) - 3) > 1');
select hgj_early('select c.id, count(*) from clients c join deals d on d.client = c.id group by c.id having random() < 2');
select hgj_early('select c.id, count(*), (select max(name) from regions) from clients c join deals d on d.client = c.id group by c.id');
select hgj_early('select c.id, count(*), rank() over (order by count(*)) from clients c join deals d on d.client = c.id group by c.id');
select hgj_early('select c.id, count(*) from clients c full join deals d on d.client = c.id group by c.id');
select hgj_early('select c.id, count(*) from clients c join (select client, region from deals limit 100) d on d.client = c.id group by c.id');
-- a clause above comes to groups that are no row's: those of clients that are not there would divide by zero
create table more (client int, v int) with (autovacuum_enabled = off);
insert into more select 1 + i % 5, 2 from generate_series(1, 50) i union all select 999, 3 from generate_series(1, 3);
analyze more;
select hgj_early('select id, s from (select c.id, sum(m.v) s from clients c join more m on m.client = c.id group by c.id) x where 100 / (s - 9) > 0');
select hgj_early('select id, s from (select c.id, sum(m.v) s from clients c left join more m on m.client = c.id group by c.id) x where 100 / (s - 9) > 0');
select hgj_early('select id, s, 100 / (s - 9) from (select c.id, sum(m.v) s from clients c left join more m on m.client = c.id group by c.id) x');
select hgj_early('select c.id, 100 / (sum(m.v) - 9) from clients c join more m on m.client = c.id group by c.id');

-- values of groups by which the level, or one around it, joins and sorts: rows that another table removes do not come to them
create table more2 (k int, k2 int, v int, pat text) with (autovacuum_enabled = off);
insert into more2 select i % 4, i % 4, 1, 'a' from generate_series(1, 400) i where i % 4 > 0;
insert into more2 values (5, -1, null, '(');
create table ends (id int primary key, z int) with (autovacuum_enabled = off);
insert into ends select i, i % 4 from generate_series(1, 40) i;
create table few2 (id int primary key) with (autovacuum_enabled = off);
insert into few2 values (1), (2);
analyze more2, ends, few2;
select hgj_early('select x.* from (select c.id, e.id aid, count(m.v) n from clients c, ends e, more2 m where m.k = c.id and m.k2 = e.id group by c.id, e.id) x where 10 / n > 0');
select hgj_early('select x.* from (select c.id, max(m.pat) p from clients c join few2 e on e.id = c.id left join more2 m on m.k = c.id group by c.id) x where ''x'' !~ p');
select hgj_early('select x.* from (select e.id, 1 / e.z z, count(*) n from ends e join more2 m on m.k = e.id and m.v = 1 group by e.id) x join few2 r on r.id = x.z');
select hgj_early('select e.id, 1 / e.z z, count(*) n from ends e join more2 m on m.k = e.id and m.v = 1 group by e.id order by 1 / e.z');
set enable_hashjoin = off;
set enable_mergejoin = off;
select hgj_early('select e.id from few2 e join more2 m on m.k = e.id group by e.id having ''x'' !~ max(m.pat)');
reset enable_hashjoin;
reset enable_mergejoin;
-- keys that differ from row to row
create sequence steps;
select hgj_early('select count(*) from (select c.id, nextval(''steps'') > 0 and random() < 0, count(*) from clients c join deals d on d.client = c.id group by c.id, 2) x');
select hgj_early('select count(*) from (select c.id, random() < 2, count(*) from clients c join deals d on d.client = c.id group by c.id) x');

-- children of a table have keys of their own; one row has two versions for a snapshot of the transaction
create table parent (id int primary key, f text) with (autovacuum_enabled = off);
create table child () inherits (parent) with (autovacuum_enabled = off);
insert into parent select i, 'parent ' || i from generate_series(1, 300) i;
insert into child select i, 'child ' || i from generate_series(1, 300) i;
analyze parent, child;
select hgj_early('select p.id, count(*) from parent p join deals d on d.client = p.id group by p.id');
select hgj_early('select p.id, count(*) from only parent p join deals d on d.client = p.id group by p.id');
select hgj_early('select c.id, count(p.id) from clients c left join parent p on p.id = c.id group by c.id');
-- parts of a partitioned table
create table ranges (id int primary key, f text) partition by range (id);
create table ranges_1 partition of ranges for values from (0) to (100) with (autovacuum_enabled = off);
create table ranges_2 partition of ranges for values from (100) to (400) with (autovacuum_enabled = off);
insert into ranges select i, 'r' || i from generate_series(1, 300) i;
analyze ranges;
select hgj_early('select p.id, p.f, count(*) from ranges p join deals d on d.client = p.id group by p.id');
-- rows of policies, and what may not be read
create role hgj_early_user;
grant usage on schema early to hgj_early_user;
grant select on clients to hgj_early_user;
grant select (id, client, amount) on deals to hgj_early_user;
alter table deals enable row level security;
create policy few on deals for select to hgj_early_user using (region < 4);
set role hgj_early_user;
select hgj_early('select c.id, count(*), sum(d.amount) from clients c join deals d on d.client = c.id group by c.id');
select hgj_says('set hashgraph_join.rewrite = force; select c.id, sum(d.n) from clients c join deals d on d.client = c.id group by c.id');
reset role;
alter table deals disable row level security;

-- EXPLAIN says so, and what is cheaper as it is written stays
set hashgraph_join.force = on;
select line from hgj_explain('(costs off) select c.id, c.name, r.name, count(*) from clients c, deals d, regions r where c.id = d.client and r.id = c.region group by c.id, r.name') line;
set hashgraph_join.rewrite = force;
select line from hgj_explain('(costs off) select c.id, c.name, r.name, count(*) from clients c, deals d, regions r where c.id = d.client and r.id = c.region group by c.id, r.name') line;
select p -> 'Hidden Joins' as joins, p -> 'Restrictions' as restrictions, p -> 'Repeated WITH' as repeated, p -> 'Early Groups' as early from (select hgj_plan_json('select c.id, count(d.id) from clients c left join deals d on d.client = c.id group by c.id') #> '{0,Plan}') x (p);
reset hashgraph_join.force;
reset hashgraph_join.rewrite;
select node, reason from hashgraph_join_why('select c.id, count(*) from clients c join deals d on d.client = c.id group by c.id') where node = 'GROUP BY';
set hashgraph_join.rewrite = off;
select node, reason from hashgraph_join_why('select c.id, count(*) from clients c join deals d on d.client = c.id group by c.id') where node = 'GROUP BY';
reset hashgraph_join.rewrite;
-- a plan that is kept depends on the index
prepare kept as select c.code, count(*) from clients c, deals d where c.code = d.code group by c.code;
set hashgraph_join.rewrite = force;
set plan_cache_mode = force_generic_plan;
create table before as execute kept;
alter table clients drop constraint clients_code_key;
update clients set code = 'c1' where id = 2;
create table after as execute kept;
select (select count(*) from before) as before, (select count(*) from after) as after, (select count from after where code = 'c1') as two;
reset plan_cache_mode;
reset hashgraph_join.rewrite;
set client_min_messages = warning;
drop schema early cascade;
drop role hgj_early_user;
