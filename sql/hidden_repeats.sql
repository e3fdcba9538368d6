-- WITH queries that are read at several places, and computed at each.
create schema repeats;
set search_path = repeats, public;
create collation repeats_loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
create table clients (id int primary key, region int, name text, credit numeric(10,2)) with (autovacuum_enabled = off);
insert into clients select i, nullif(i % 12, 5), 'client ' || i % 40, case when i % 9 > 0 then i % 50 end from generate_series(1, 300) i;
create table deals (id int primary key, client bigint, region int, at timestamp, amount numeric(10,2), n numeric, kind varchar(10), loose text collate repeats_loose, v float8) with (autovacuum_enabled = off);
insert into deals select i, nullif(i % 330, 7), i % 12, timestamp '2024-01-01' + i % 500 * interval '1 hour', case when i % 7 > 0 then i % 90 end,
	(array[1.0, 1.00, 2])[1 + i % 3], 'kind ' || i % 5, (array['a', 'A'])[1 + i % 2], i % 11 from generate_series(1, 4000) i;
analyze clients, deals;
set hashgraph_join.min_rows = 0;

-- What becomes of the query's WITH queries and subqueries, and whether the answer stays what it was.
create function hgj_repeats(q text) returns text language sql as $$ select hgj_hidden(q, '{WITH,Subquery}') $$;

-- The greatest of all groups, more than the average of its region, one group beside another.
select hgj_repeats('with r as (select client, sum(amount) s from deals where at < ''2024-01-15'' group by client) select client, s from r where s = (select max(s) from r)');
select hgj_repeats('with r as (select region, client, sum(amount) s from deals group by region, client) select * from r where s > (select avg(s) from r r2 where r2.region = r.region)');
select hgj_repeats('with r as (select client, count(*) n from deals group by client) select a.client, b.client from r a join r b on a.n = b.n and a.client < b.client where a.client < 20');
select hgj_repeats('with r as (select client, count(*) n, max(kind) k from deals group by client having count(*) > 3) select c.name, r.n from clients c left join r on r.client = c.id where not exists (select from r r2 where r2.client = c.region)');
select hgj_repeats('with r as (select distinct client, kind from deals) select count(*) from r a join r b using (client)');
select hgj_repeats('with r as (select count(*) n, sum(amount) s from deals) select c.id, c.credit / r.n from clients c, r where c.credit < (select s / n from r)');
-- several, of which one reads another, and in subqueries
select hgj_repeats('with a as (select client, region, count(amount) s from deals group by client, region), b as (select region, max(s) m, count(*) n from a group by region) select a.client, b.n from a join b on a.region = b.region and a.s = b.m where b.n > (select min(n) from b)');
select hgj_repeats('select * from (with r as (select client, sum(amount) s from deals group by client) select x.client, x.s, (select count(*) from r y where y.s > x.s) rank from r x where x.client < 9) q where rank < 200');
select hgj_repeats('select c.id from clients c where c.id in (with r as (select client, sum(amount) s from deals group by client) select x.client from r x join r y on x.s = y.s and x.client <> y.client)');
select hgj_repeats('with c as (select region from clients where credit > 3), r as (select client, count(*) n from deals group by client) select (select count(*) from c), (select count(*) from c where region = 3), a.n from r a join r b using (client) where a.client = 5');
-- a condition that may raise an error: the WITH query leaves out what it would fail for, or another join does
select hgj_repeats('with r as (select region k, count(*) n, sum(amount) s from deals where region > 0 group by region) select count(*), sum(b.n) from r a join r b on b.k = a.n join deals d on d.region = b.k and 10 / d.region > 2');
select hgj_repeats('with r as (select region k, count(*) n from deals group by region) select count(*) from r a join r b using (k) join lateral generate_series(1, 20 / a.k) g on true where a.k > 3');
select hgj_repeats('with r as (select region k, count(*) n from deals group by region) select count(*) from r a join r b using (k) where exists (select from clients c where c.region = a.k and 10 / c.id > 3)');
select hgj_repeats('with r as (select region k, count(*) n from deals group by region) select count(*) from r a join r b using (k) where a.n in (select c.credit::int from clients c)');
select hgj_repeats('with r as (select region k, count(*) n from deals group by region) select count(*) from r a join r b using (k) where a.n > (select c.id from clients c where c.id = 3)');
select hgj_repeats('with r as (select region k, count(*) n from deals group by region), w as (select 10 / id x from clients) select count(*) from r a join r b using (k) join w on w.x = a.n');
select hgj_repeats('with r as (select client, kind, sum(amount) s from deals where client <> 0 group by client, kind) select a.client from r a join r b using (client) where 10 / a.client > 2 and b.s > 1');
select hgj_repeats('with r as (select region, count(*) n, sum(amount) s from deals where region > 0 group by region) select x.region, 100 / x.region from r x, r y where 100 / x.region > 20 and y.region = x.region');
select hgj_says('with r as (select region, count(*) n from deals where region > 0 group by region) select x.region from r x, r y where 100 / (x.region - 3) > 20 and y.region = x.region');

-- What stays: it may have other rows elsewhere, or it is to be computed once
select hgj_repeats('with r as (select client, sum(v) s from deals group by client) select client, s from r where s = (select max(s) from r)');
select hgj_repeats('with r as (select n, count(*) c from deals group by n) select a.n::text, b.n::text from r a join r b using (n)');
select hgj_repeats('with r as (select loose, count(*) c from deals group by loose) select count(*) from r a join r b using (loose)');
select hgj_repeats('with r as (select v, count(*) c from deals group by v) select count(*) from r a join r b using (v)');
select hgj_repeats('with r as (select client, max(n) m from deals group by client) select count(*) from r a join r b using (client)');
select hgj_repeats('with r as (select client, string_agg(kind, '','') k from deals group by client) select count(*) from r a join r b using (client)');
select hgj_repeats('with r as (select client, count(*) n from deals group by client order by client limit 5) select count(*) from r a join r b using (client)');
select hgj_repeats('with r as (select distinct on (client) client, kind from deals order by client) select count(*) from r a join r b using (client)');
select hgj_repeats('with r as (select client, count(*) n from deals tablesample bernoulli (50) repeatable (3) group by client) select count(*) from r a join r b using (client)');
select hgj_repeats('with r as (select client, count(*) n, random() x from deals group by client) select count(*) from r a join r b using (client) where a.x = b.x');
select hgj_repeats('with r as (select client, 10 / count(*) n from deals group by client) select count(*) from r a join r b using (client)');
-- keys of a table's children, beside which the parser believes in the parent's
create table parent (id int primary key, f text) with (autovacuum_enabled = off);
create table child (primary key (id)) inherits (parent) with (autovacuum_enabled = off);
insert into parent select i, 'parent ' || i from generate_series(1, 300) i;
insert into child select i, 'child ' || i from generate_series(1, 300) i;
analyze parent, child;
select hgj_repeats('with r as (select id, f, count(*) n from parent group by id) select count(*) from r a join r b using (id) where a.id = 5 and a.f = ''child 5'' and b.f <> a.f');
select hgj_repeats('with r as (select id, f, count(*) n from only parent group by id) select a.f, b.f from r a join r b using (id) where a.id = 5');
select hgj_repeats('with r as materialized (select client, count(*) n from deals group by client) select count(*) from r a join r b using (client)');
set hashgraph_join.rewrite = force;
select node, reason from hashgraph_join_why('with r as (select client, count(*) n from deals group by client), w as (update clients set credit = 1 where false returning id) select count(*) from r a join r b using (client)') where node = 'WITH';
select node, reason from hashgraph_join_why('with r as (select client, count(*) n from deals group by client) select c.id from clients c where id in (select client from r where n > 10) and region in (select n from r) for update') where node = 'WITH';
reset hashgraph_join.rewrite;
select hgj_repeats('with recursive r as (select client, count(*) n from deals group by client), t as (select 1 i union all select i + 1 from t where i < 3) select count(*) from r a join r b using (client) join t on t.i = a.client');
select hgj_repeats('with r as (select client, count(*) n from deals group by client) select count(*) from r a, r b, r c, r d, r e, r f, r g, r h, r i where a.client + b.client + c.client + d.client + e.client + f.client + g.client + h.client + i.client < 10 and a.client = 1 and b.client = 1 and c.client = 1 and d.client = 1 and e.client = 1 and f.client = 1 and g.client = 1 and h.client = 1 and i.client = 1');
-- read once, or without groups: PostgreSQL's to judge
select hgj_repeats('with r as (select client, count(*) n from deals group by client) select count(*) from r');
select hgj_repeats('with r as (select client from deals) select count(*) from r a join r b using (client) where a.client = 3');

-- Which form is planned is told by the costs; the plan says so.
select node, taken, reason from hashgraph_join_why('with r as (select client, sum(amount) s from deals group by client) select client from r where s = (select max(s) from r)') where node in ('WITH', 'Subquery');
set hashgraph_join.rewrite = off;
select node, taken, reason from hashgraph_join_why('with r as (select client, sum(amount) s from deals group by client) select client from r where s = (select max(s) from r)') where node in ('WITH', 'Subquery');
set hashgraph_join.rewrite = force;
set hashgraph_join.force = on;
select node, taken, reason from hashgraph_join_why('with r as (select client, sum(amount) s from deals group by client) select client from r where s = (select max(s) from r)') where node in ('WITH', 'Subquery');
select hgj_lines(q, 'Repeated WITH: 1') as says, hgj_lines(q, 'CTE') as with from (values ('with r as (select client, sum(amount) s from deals group by client) select client from r where s = (select max(s) from r)')) v(q);
create function hgj_fact(q text, fact text) returns text language plpgsql as $$ declare j json; begin
	execute 'explain (costs off, format json) ' || q into j;
	return jsonb_path_query_first(j::jsonb, format('$.**.%s', to_json(fact))::jsonpath);
end $$;
select hgj_fact(q, 'Repeated WITH') as repeated, hgj_fact(q, 'Hidden Joins') as joins from (values ('with r as (select client, count(*) n from deals group by client) select c.id from clients c join r on r.client = c.id and r.n > (select min(n) from r)')) v(q);
-- a condition on the key is looked at before groups are made
explain (costs off) with r as (select client, sum(amount) s from deals group by client) select a.s, b.s from r a join r b on b.client = a.client + 1 where a.client = 7;
explain (costs off) with r as (select client, sum(amount) s from deals group by client) select a.s, b.s from r a join r b on b.client = a.client + 1 where 70 / a.client = 10;
reset hashgraph_join.rewrite;
reset hashgraph_join.force;

-- A large table: what is cheap twice is computed twice.  Prepared, with parameters, and through a view.
create table large (k int, g int, v int) with (autovacuum_enabled = off);
insert into large select i % 5000, i % 7, i % 100 from generate_series(1, 900000) i;
create index on large (k);
analyze large;
set max_parallel_workers_per_gather = 0;
prepare of_one(int, int) as with r as (select k, count(*) n, sum(v) s from large group by k) select a.s, b.s from r a, r b where a.k = $1 and b.k = $2;
execute of_one(7, 8);
select string_agg(line, E'\n') as plan from (select trim(hgj_explain) as line from hgj_explain('execute of_one(7, 8)') where hgj_explain ~ 'CTE|Index Cond') q;
set plan_cache_mode = force_generic_plan;
execute of_one(7, 8);
execute of_one(8, 9);
reset plan_cache_mode;
create view ranked as with r as (select k, sum(v) s from large group by k) select a.k, a.s, (select count(*) from r b where b.s > a.s) above from r a;
select hgj_rewrite_differs('select * from ranked where k between 3 and 9', true) as differs;
create role repeats_reader;
grant usage on schema repeats to repeats_reader;
grant select on ranked to repeats_reader;
set role repeats_reader;
select count(*) from ranked where k < 3;
select count(*) from (with r as (select k, sum(v) s from large group by k) select * from r where s = (select max(s) from r)) q;
set hashgraph_join.rewrite = force;
with r as (select k, count(*) n from large group by k) select * from r a, r b where false;
reset hashgraph_join.rewrite;
reset role;
revoke all on schema repeats from repeats_reader;
revoke all on ranked from repeats_reader;
drop role repeats_reader;
