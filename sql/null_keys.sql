-- Joins by conditions that NULLs match, and subqueries below ON.
create schema null_keys;
set search_path = null_keys, public;
create table a (id int primary key, x int, s varchar(9), d date, n numeric(8,2), f float8, u uuid, t timestamptz, c char(3), b bool) with (autovacuum_enabled = off);
insert into a select g, nullif(g % 23, 3), nullif('s' || g % 11, 's4'), case when g % 13 > 0 then date '2024-01-01' + g % 9 end, case when g % 6 > 0 then g % 5 end,
	case g % 8 when 1 then null when 2 then '-0'::float8 when 3 then 'nan' else g % 5 end, case when g % 5 > 0 then md5((g % 30)::text)::uuid end,
	case when g % 10 > 0 then timestamptz '2024-01-01 00:00:00+00' + g % 4 * interval '1 day' end, case when g % 4 > 0 then 'c' || g % 7 end, nullif(g % 3, 2)::bool from generate_series(1, 300) g;
create table b (id int primary key, x bigint, s text, d timestamp, n numeric, f float4, u uuid, t timestamptz, c char(5), b bool, y int not null) with (autovacuum_enabled = off);
insert into b select g, case when g % 6 > 0 then g % 19 end, case when g % 9 > 0 then 's' || g % 14 end, case when g % 5 > 0 then date '2024-01-01' + g % 12 end, case when g % 7 > 0 then (g % 6)::numeric(9,3) end,
	case g % 9 when 1 then null when 2 then 0::float4 when 3 then 'nan' else g % 6 end, case when g % 6 > 0 then md5((g % 20)::text)::uuid end,
	case when g % 7 > 0 then timestamptz '2024-01-01 00:00:00+00' + g % 5 * interval '1 day' end, case when g % 5 > 0 then 'c' || g % 5 end, nullif(g % 4, 3)::bool, g % 23 from generate_series(1, 120) g;
analyze a, b;
set hashgraph_join.min_rows = 0;

-- Whether the condition became one of a join, and whether the answer stayed what it was.
create function hgj_matches(q text) returns text language sql
as $$ select hgj_rewritten(q, 'Hidden Joins: ') $$;

-- of each type, also where the two sides have different ones
select k, hgj_matches(format('select a.id, b.id from a join b on a.%1$s is not distinct from b.%1$s', k)) from unnest('{x,s,d,n,f,u,t,c,b}'::text[]) k;
select k, hgj_matches(format('select a.id, b.id from a, b where (a.%1$s = b.%1$s or b.%1$s is null and a.%1$s is null) and b.id < 60', k)) from unnest('{x,s,d,n,f,u,t,c,b}'::text[]) k;
-- strings of two collations are compared by nobody, and so by no join either
create table named (id int, k int, a text collate "C", b text collate "POSIX", c char(4) collate "C") with (autovacuum_enabled = off);
insert into named select g, g % 7, 's' || g, 's' || g, 's' || g from generate_series(1, 40) g;
create table unnamed (k int, a text collate "C", b text collate "POSIX", c char(4) collate "POSIX");
insert into unnamed select 100 + g, 's' || g, 's' || g, 's' || g from generate_series(1, 20) g;
create table nobody (a text collate "C", b text collate "POSIX");
analyze named, unnamed, nobody;
select hgj_hidden('select id, (select count(*) from unnamed u where u.k = named.k and u.a = u.b) from named');
select hgj_hidden('select id, (select count(*) filter (where u.c = named.c) from unnamed u where u.k = named.k) from named');
select hgj_hidden('select id, (select count(*) from unnamed u where u.k = named.k and u.a in (u.b, ''x'')) from named');
select hgj_matches('select named.id, n.b from named left join nobody n on named.a = n.a or named.a = n.b');
select hgj_matches('select named.id, n.b from named left join nobody n on named.a = n.b or (named.a is null and n.b is null)');
-- a column that is never NULL: one equality
select hgj_matches('select a.id, b.id from a join b on a.x is not distinct from b.y');
select hgj_matches('select a.id, b.id from a join b on a.x is not distinct from b.x where b.x > 3');
-- outer, semi and anti joins, several keys, other conditions
select hgj_matches('select a.id, b.id from a left join b on a.x is not distinct from b.x and a.s is not distinct from b.s');
select hgj_matches('select a.id, b.id from a right join b on (b.x = a.x or (a.x is null and b.x is null)) and a.id > b.id');
select hgj_matches('select id from a where exists (select from b where b.x is not distinct from a.x)');
select hgj_matches('select id from a where not exists (select from b where (b.d = a.d or (b.d is null and a.d is null)) and b.id > a.id)');
select hgj_matches('select a.id, b.id from a join b on a.x + 0 is not distinct from b.x');
select hgj_matches('select a.id, b.id from a join b on a.x % 7 is not distinct from b.x');
-- what stays
select hgj_matches('select a.id, b.id from a join b on a.x is distinct from b.x where b.id < 9');
select hgj_matches('select a.id, b.id from a join b on a.x = b.x or (a.x is null and b.y is null)');
select hgj_matches('select a.id, b.id from a join b on a.x = b.x or (a.x is null and b.x is not null)');
select hgj_matches('select a.id from a where a.x is not distinct from a.id');
select hgj_matches('select a.id, b.id from a join b on row(a.x, a.s) is not distinct from row(b.x, b.s)');
select hgj_matches('select a.id, b.id from a join b on (a.x is not distinct from b.x) is not false and b.id < 9');
select hgj_says('select 1 from a full join b on a.x is not distinct from b.x');

-- ON of inner joins is WHERE; of outer joins, it is that of the side that is filled in.
select hgj_hidden('select a.id, b.id from a join b on a.x = b.x and a.id > (select avg(id) from a i where i.x = b.x)');
select hgj_hidden('select a.id, b.id from a left join b on a.x = b.x and b.id = (select max(id) from b i where i.x = b.x)');
select hgj_hidden('select a.id, b.id from b right join a on a.x = b.x and b.id = (select max(id) from b i where i.x = b.x and i.s = b.s)');
select hgj_hidden('select a.id, b.id, c.id from a left join b on a.x = b.x and (b.s = ''s3'' or exists (select from b i where i.y = b.x and i.c is null)) left join b c on c.id = b.y and c.x in (select x from a where a.s = c.s)');
select hgj_hidden('select a.id, b.id from a left join b on a.x = b.x and b.id = (select max(id) from b i where i.x = a.x)');
select hgj_hidden('select a.id, b.id, c.id from a left join (b join b c on c.id = b.y and b.id > (select avg(id) from a i where i.x = b.x)) on a.x = b.x');
select hgj_hidden('select a.id, b.id from a full join b on a.x = b.x and b.id = (select max(id) from b i where i.x = b.x)');
set client_min_messages = warning;
drop schema null_keys cascade;
