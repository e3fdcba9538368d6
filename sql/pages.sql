-- The pages source: whatever a table's pages hold, a HashGraphJoin that reads
-- them itself returns what one over the same sequential scans of PostgreSQL's
-- would.  hashgraph_join.source = pages makes it an error not to.
create schema pages;
set search_path = pages, public;
set hashgraph_join.source = pages;
set enable_indexscan = off;
set enable_bitmapscan = off;
set enable_indexonlyscan = off;
set enable_tidscan = off;

-- one row per key, on the other side of the joins
create table other (k int, o text, kf float8, kn numeric) with (autovacuum_enabled = off);
insert into other select g, 'other ' || g, g, g from generate_series(0, 40) g;

-- NULLs in every place, in keys and in columns: all subsets of ten columns
create table nulls (a int2, b int8, c text, d bool, e "char", f float8, g uuid, h numeric, i date, j char(3)) with (autovacuum_enabled = off);
insert into nulls select
	case when n & 1 = 0 then n % 41 end, case when n & 2 = 0 then n % 41 end, case when n & 4 = 0 then repeat('x', n % 200) end,
	case when n & 8 = 0 then n % 3 = 0 end, case when n & 16 = 0 then chr(n % 41 + 40)::"char" end, case when n & 32 = 0 then n % 41 end,
	case when n & 64 = 0 then md5((n % 41)::text)::uuid end, case when n & 128 = 0 then n % 41 end,
	case when n & 256 = 0 then date '2020-01-01' + n % 41 end, case when n & 512 = 0 then 'c' || n % 41 end
from generate_series(0, 2047) n;
create view ways(what, q) as values
	('int2', 'select n.*, o from nulls n join other on a = k'),
	('int8', 'select n.*, o from nulls n join other on b = k'),
	('float8', 'select n.* from nulls n join other on f = kf'),
	('numeric', 'select x.*, o from nulls x join other on h = kn'),
	('left', 'select n.*, o from nulls n left join other on b = k'),
	('left, two keys', 'select n.*, o from nulls n left join other on b = k and a = k'),
	('right', 'select n.*, o from nulls n right join other on b = k'),
	('full', 'select n.*, o from nulls n full join other on b = k'),
	('full, two keys', 'select n.*, o from nulls n full join other on a = k and b = k'),
	('semi', 'select n.* from nulls n where exists (select from other where k = b and k = a)'),
	('anti', 'select n.* from nulls n where not exists (select from other where k = b and k > 20)'),
	('text', 'select x.a, y.b, x.c, y.c from nulls x join nulls y on x.c = y.c where x.b < 20 and y.b < 20'),
	('bool', 'select x.a, y.b, x.d, y.d, x.j from nulls x join nulls y on x.d = y.d where x.b < 10 and y.a < 5'),
	('char', 'select x.a, y.b, x.e, y.d from nulls x join nulls y on x.e = y.e where x.b < 20'),
	('uuid', 'select x.a, y.b, x.g, y.g from nulls x join nulls y on x.g = y.g where x.b < 20'),
	('date', 'select x.a, y.b, x.i from nulls x join nulls y on x.i = y.i where x.b < 20'),
	('char(3)', 'select x.a, y.b, x.j from nulls x join nulls y on x.j = y.j where x.b < 20'),
	('all columns', 'select x.* from nulls x join nulls y on x.a = y.a and x.b = y.b and x.c = y.c and x.d = y.d and x.e = y.e and x.f = y.f and x.g = y.g and x.h = y.h and x.i = y.i and x.j = y.j'),
	('no columns', 'select count(*) from nulls x join nulls y on x.b = y.b');
select what, hgj_check(q) from ways;
-- the same of pages that say that all their tuples are visible
vacuum (freeze, analyze) nulls, other;
select what, hgj_check(q) from ways;
set work_mem = '64kB';
select what, hgj_check(q) from ways;
reset work_mem;

-- every column as what a filter, a key filter and the output read, in every order:
-- attributes of one length in all rows, of several, NULL in some, missing in others
create table walks (a int, t text, b int, u char(4), c int8, v varchar, d int, e numeric(9,2)) with (autovacuum_enabled = off);
insert into walks select g % 97, repeat('t', g % 7), g % 89, 'u' || g % 9, g % 83, case when g % 3000 > 900 then 'v' || g % 101 end,
	case when g % 3000 < 2100 or g % 5 > 0 then g % 79 end, g % 1000 / 7.0 from generate_series(1, 6000) g;
alter table walks add column f int default 13;
insert into walks select a, t, b, u, c, v, d, e, b from walks where e > 70;
analyze walks;
create table few (k int) with (autovacuum_enabled = off);
insert into few select 3 * g from generate_series(1, 9) g;
analyze few;
create view reads(q) as
	select format('select count(*), sum(a), sum(b), sum(c), sum(d), sum(e), sum(f), max(t), min(u), max(v), count(v) from walks join few x on %s = x.k join few y on %s = y.k where %s', k1, k2, qual)
	from unnest('{a,b,c,d,f}'::text[]) k1, unnest('{a,b,c,d,f}'::text[]) k2,
		unnest('{true,a > 40,v > ''v3'',e < 50,length(t) < 5,1 / (a + 1) >= 0}'::text[]) qual
	where k1 <> k2;
set hashgraph_join.filter = on;
select hgj_check(q, 2) as says, count(*) from reads group by 1;
reset hashgraph_join.filter;
select hgj_check(q, 2) as says, count(*) from reads group by 1;
select hgj_check(format('select t, %s, x.k from walks left join few x on %s = x.k where %s', array_to_string(o, ', '), k, qual)) as says, count(*)
from unnest('{a,c,f}'::text[]) k, (values ('{a,b}'::text[]), ('{v,a,d,a}'), ('{e,u,f}'), ('{f,b,v,t}')) o(o),
	unnest('{true,d < 20,u = ''u3'',v is null,f <> 13}'::text[]) qual
group by 1;

-- few rows of a page are left, and batches end among them: what is known of where their
-- attributes lie says nothing about the others
create table runs (a int, t text, b int, c int8, v varchar, d int) with (autovacuum_enabled = off);
insert into runs select g % 41, repeat('t', g / 50 % 7), g, g % 83, repeat('v', g % 5), g * 7 % 100 from generate_series(1, 20000) g;
analyze runs;
select hgj_check(format('select r.b, r.c, r.t, r.v, o from runs r join other on a = k where d < %s', n)) as says, n from generate_series(3, 30, 9) n;

-- quals: none, some and all rows pass; errors, subqueries, parameters
select hgj_check(format('select n.*, o from nulls n join other on b = k where %s', qual)) as says, qual from unnest('{
	true, a < 10, a is null, c like ''xx%'', c is null and d, b + a > 30, d, not d, "e is not null", f = 3, "f <> 3 or c is null",
	b between 3 and 9, "b in (1, 2, 3, 40)", "h > 10", "i < date ''2020-01-10''", "j = ''c1''", "n is not null", "length(c) > a", "c < j",
	"n.ctid > ''(3,1)''", "n.xmin is not null", "n.tableoid = ''nulls''::regclass", "b < (select max(k) / 2 from other)",
	"b in (select k from other where k % 2 = 0) is true", "a < 5 and length(c) > 3 and b > 1", "random() >= 0 and b < 7", "1 / (b + 1) >= 0 and a > 0"
}'::text[]) qual;
prepare p(int, text) as select count(*), sum(k), count(c) from nulls join other on b = k where a < $1 and c <> $2 and k is not null;
set hashgraph_join.force = on;
set plan_cache_mode = force_generic_plan;
execute p(10, 'x');
execute p(null, 'x');
execute p(20, 'xx');
deallocate p;
-- a qual is not run on rows that one before it has removed, nor a subquery in vain
create table bad (id int, k int, d int) with (autovacuum_enabled = off);
insert into bad select g, g % 41, g % 4 from generate_series(1, 200) g;
create function ratio(int, int) returns int language plpgsql cost 1000 as 'begin return $1 / $2; end';
select count(*) from bad join other using (k) where d <> 0 and ratio(id, d) > 10;
select count(*) from bad join other using (k) where d > 100 and id > (select ratio(1, 0) from other limit 1);
select count(*) from bad join other using (k) where ratio(id, d) > 10;
select count(*) from bad join other using (k) where id / d > 10;
reset hashgraph_join.force;
reset plan_cache_mode;

-- dropped columns, added columns with and without defaults, in rows of all ages
create table aged (a int, gone1 int8, b text, gone2 text, k int) with (autovacuum_enabled = off);
insert into aged select g, g, case when g % 3 <> 0 then 'b' || g end, repeat('y', g % 9), g % 45 from generate_series(1, 300) g;
alter table aged drop column gone1;
insert into aged select g, 'b' || g, 'z', g % 45 from generate_series(301, 400) g;
alter table aged add column d1 int default 7;
alter table aged add column d2 text default 'a default that is not short enough to have a short header: ' || repeat('q', 90);
alter table aged add column d3 int8;
insert into aged select g, null, null, g % 45, g, 'own', g from generate_series(401, 500) g;
alter table aged drop column gone2;
alter table aged add column k2 int not null default 3;
insert into aged select g, 'new', g % 45, null, null, null, g % 45 from generate_series(501, 600) g;
select hgj_check('select aged.*, o from aged join other using (k)');
select hgj_check('select aged.*, o from aged join other on k2 = other.k');
select hgj_check('select other.k, aged.* from other left join aged on k2 = other.k and d1 = 7');
select hgj_check('select x.d2, y.d3, x.a from aged x full join aged y on x.d2 = y.d2 and x.d1 = y.d1 and x.b = y.b');
select hgj_check('select count(d3), sum(k2) from aged join other on d1 = other.k where d2 like ''a def%'' and d3 is null');
vacuum full aged;
select hgj_check('select aged.*, o from aged join other on k2 = other.k');

-- values in and out of line, compressed and not, with short headers and long ones
create table toasted (id int, t text, k int, e text, x text) with (autovacuum_enabled = off);
alter table toasted alter e set storage external, alter x set storage plain;
insert into toasted select g, repeat('compress me ' || g, g * 20), g % 41,
	(select string_agg(md5((g * i)::text), '') from generate_series(1, g * 2) i), repeat('p', g * 3 % 300) from generate_series(1, 250) g;
select count(*) > 10 as out_of_line from toasted where pg_column_size(e) > 4000;
select hgj_check('select toasted.*, o from toasted join other using (k)');
select hgj_check('select x.id, y.e, x.t from toasted x join toasted y on x.t = y.t and x.e = y.e');
select hgj_check('select x.*, y.id from toasted x left join toasted y on x.x = y.x and x.id < y.id');
select hgj_check('select x.*, y.id from toasted x join toasted y on x.x = y.x where length(x.t) > 1000 and y.e > ''8''');
-- wide rows, two or three a page; one value that is as wide as a page can hold
create table wide (id int, k int, a char(1500), b name, c text) with (autovacuum_enabled = off);
alter table wide alter a set storage plain, alter c set storage plain;
insert into wide select g, g % 41, g, 'n' || g, repeat('w', g * 5) from generate_series(1, 1200) g;
insert into wide select 2000, 5, 'a', 'b', repeat('w', 6000);
select hgj_check('select wide.*, o from wide join other using (k)');
select hgj_check('select wide.*, o from wide right join other using (k)');
select hgj_check('select x.a, y.b, y.c from wide x join wide y on x.b = y.b and x.c = y.c');
-- every alignment, before and after a value of any length
create table aligned (c1 "char", i2 int2, c2 "char", i8 int8, v1 text, b1 bool, i4 int, c3 "char", f8 float8, v2 bytea, c4 "char", ts timestamp, n name, p point, i8b int8) with (autovacuum_enabled = off);
insert into aligned select chr(65 + g % 26)::"char", g, chr(66)::"char", g, repeat('v', g % 150), g % 2 = 0, g % 41, chr(67)::"char", g,
	decode(repeat('00', g % 7), 'hex'), 'x', timestamp '2020-01-01' + g * interval '1 day', 'n' || g, point(g, g), g % 41 from generate_series(1, 500) g;
update aligned set v1 = null where i2 % 5 = 0;
select hgj_check('select o, c1, i2, c2, i8, v1, b1, i4, c3, f8, v2, c4, ts, n, p::text, i8b from aligned join other on i4 = k');
select hgj_check('select o, c1, i2, c2, i8, v1, b1, i4, c3, f8, v2, c4, ts, n, p::text, i8b from aligned right join other on i8b = k');
select hgj_check('select x.c4, y.ts, x.v1, x.p::text from aligned x join aligned y on x.ts = y.ts and x.n = y.n and x.v2 = y.v2 and x.b1 = y.b1 and x.c1 = y.c1');
select hgj_check('select i8b from aligned join other on i2 = k where c4 = ''x'' and p[0] > 3 and v2 is not null and f8 < 30');

-- what a snapshot sees: rows that are dead, aborted, moved, of our own commands
create table lively (id int primary key, k int, v text) with (autovacuum_enabled = off, fillfactor = 50);
insert into lively select g, g % 41, 'v' || g from generate_series(1, 1000) g;
create view lively_q as select 'select l.*, o from lively l join other using (k)' as q union all
	select 'select o, l.* from other left join lively l using (k)' union all select 'select x.*, y.id from lively x full join lively y on x.id = y.k';
select hgj_check(q) from lively_q;
delete from lively where id % 3 = 0;
update lively set v = v || 'u' where id % 4 = 0;
update lively set k = k + 1 where id % 7 = 0;
select hgj_check(q) from lively_q;
vacuum lively;
select hgj_check(q) from lively_q;
-- some pages are all visible, others not any more
update lively set v = 'here' where id between 300 and 330;
insert into lively select g, g % 41, 'late' from generate_series(2001, 2020) g;
select hgj_check(q) from lively_q;
begin;
insert into lively select g, g % 41, 'mine' from generate_series(3001, 3100) g;
update lively set v = 'mine, too' where id % 10 = 1;
delete from lively where id % 10 = 2;
select hgj_check(q) from lively_q;
savepoint s;
update lively set v = 'never' where id % 9 = 0;
insert into lively select g, g % 41, 'never' from generate_series(4001, 4100) g;
delete from lively where id < 50;
select hgj_check(q) from lively_q;
rollback to s;
select hgj_check(q) from lively_q;
select id, v from lively where id % 10 = 3 order by id limit 5 for update;
select hgj_check(q) from lively_q;
rollback;
select hgj_check(q) from lively_q;
begin isolation level serializable;
delete from lively where id % 11 = 0;
select hgj_check(q) from lively_q;
commit;
truncate lively;
select hgj_check(q) from lively_q;
insert into lively select g, g % 41, 'again' from generate_series(1, 100) g;
delete from lively;
select hgj_check(q) from lively_q;
vacuum lively;
select hgj_check(q) from lively_q;
-- a cursor sees what was there when it was opened, whatever its transaction does then
insert into lively select g, g % 41, 'old' from generate_series(1, 3000) g;
set hashgraph_join.force = on;
begin;
create function fetch_all(c refcursor) returns text language plpgsql as $$
declare
	r record;
	n int := 0;
	bad int := 0;
begin
	loop
		fetch c into r;
		exit when not found;
		n := n + 1;
		bad := bad + (r.v <> 'old')::int;
	end loop;
	return format('%s rows, %s of them changed', n, bad);
end $$;
declare mine cursor for select l.id, l.v from lively l join other using (k);
explain (costs off) declare mine cursor for select l.id, l.v from lively l join other using (k);
fetch 2 from mine;
update lively set v = 'new';
delete from lively where id % 2 = 0;
insert into lively select g, g % 41, 'new' from generate_series(5001, 6000) g;
select fetch_all('mine');
commit;
begin;
declare mine cursor for select l.id, l.v from lively l join other using (k) where v <> 'x';
fetch 2 from mine;
savepoint s;
update lively set v = 'x';
rollback to s;
update lively set v = 'old';
close mine;
commit;
reset hashgraph_join.force;
select hgj_check(q) from lively_q;

-- temporary tables live in local buffers: more of them than there are buffers
set temp_buffers = '800kB';
create temp table local (id int, k int, t text, fill char(500));
insert into local select g, g % 41, repeat('t', g % 100), g from generate_series(1, 4000) g;
select hgj_check('select l.*, o from local l join other using (k)');
begin;
update local set t = 'changed' where id % 3 = 0;
delete from local where id % 7 = 0;
select hgj_check('select l.*, o from local l join other using (k)');
select hgj_check('select x.id, y.t, x.fill, z.t from local x join local y using (id) join local z using (id)', 2);
rollback;
select hgj_check('select l.*, o from local l full join other using (k)');
select hgj_check('select x.id, y.t, x.fill, z.t, w.t from local x join local y using (id) join local z using (id) left join local w on w.id = x.k', 3);
drop table local;

-- values stay where they are while rows are returned, though in between other
-- scans go through all buffers that are not pinned
create temp table pinned as select g id, g % 41 k, repeat('p' || g, 150) t from generate_series(1, 300) g;
create temp table churn as select g id, repeat('c', 1000) c from generate_series(1, 1500) g;
analyze pinned, churn;
select pg_relation_size('churn') / current_setting('block_size')::int > 150 as more_than_there_are_buffers;
select hgj_check('select p.id, md5(p.t), o, (select count(c.c) from churn c where c.id <> p.id) from pinned p join other using (k)');
select hgj_check('select p.id, p.t, q.t, (select count(c.c) from churn c where c.id <> p.id) from pinned p join pinned q using (id) left join other on q.k = other.k', 2);
-- many scans under way at a time, of a table each: no more of them fail than
-- PostgreSQL's would, which keeps one page each
do $$ begin
	for n in 1 .. 80 loop
		execute format('create temp table pinned%s as select * from pinned where id <= 100', n);
	end loop;
end $$;
-- (from 18 on, PostgreSQL's keep more)
create function hgj_check_where_stock_can(q text, n int) returns text language plpgsql as $$
begin
	begin
		perform set_config('hashgraph_join.enabled', 'off', true), hgj_digest(q);
	exception when insufficient_resources then
		return 'ok';
	end;
	return hgj_check(q, n);
end $$;
select n, hgj_check_where_stock_can((select format('select %s from generate_series(1, 3) i', string_agg(format(
	'(select p.t from pinned%s p left join other using (k) where p.id > i + %s limit 1) as c%s', i, i % 7, i), ', ')) from generate_series(1, n) i), n) as hgj_check
from unnest(array[10, 30, 80]) n;
do $$ begin
	for n in 1 .. 80 loop
		execute format('drop table pinned%s', n);
	end loop;
end $$;
drop function hgj_check_where_stock_can;
drop table pinned, churn;

-- no pages, no rows, all rows removed
create table empty (id int, k int, t text);
select hgj_check('select * from empty join other using (k)'), hgj_check('select * from empty full join other using (k)'), hgj_check('select * from other left join empty using (k)');
select hgj_check('select * from nulls join other on b = k where c = ''no such value'''), hgj_check('select * from other left join nulls on b = k and c = ''no such value''');

-- system columns that can be had, and statements that need them
select hgj_check('select nulls.ctid, nulls.tableoid::regclass, o from nulls join other on b = k where a < 5');
select hgj_check('select o, x.ctid, y.ctid from nulls x left join nulls y on x.b = y.a left join other on other.k = x.a where x.f < 9', 2);
select hgj_check_dml('update lively l set v = o from other where other.k = l.k and id % 5 = 0', 'lively');
select hgj_check_dml('delete from lively l using other where other.k = l.k and o < ''other 2''', 'lively');

-- run again, with LIMIT, with parameters
select hgj_check('select k, j.* from other, lateral (select n.a, n.c, x.o from nulls n join other x on x.k = n.b where n.a < other.k limit 1000) j');
select hgj_check('select k, (select count(n.c) from nulls n join other x on x.k = n.b where n.a < other.k) from other');
select hgj_check('select k, (select count(n.c) from nulls n left join other x on x.k = n.b and x.k > other.k) from other');
set hashgraph_join.force = on;
select count(*) from (select n.c, o from nulls n join other on k = b limit 700) q;
select count(*) from other, lateral (select n.c, o from nulls n join other x on x.k = n.b where n.a >= other.k limit 3) j;

-- what cannot be read by pages is an error here, with the reason
\set SHOW_CONTEXT never
select hgj_check('select n, o from nulls n join other on b = k');
select hgj_check('select n.xmin, o from nulls n join other on b = k');
select * from nulls n join other on n.tableoid::int8 = k;
\set SHOW_CONTEXT errors
select hgj_check('select o from nulls n tablesample system (100) join other on b = k');
set hashgraph_join.source = auto;
explain (costs off) select n, o from nulls n join other on b = k;
explain (costs off) select n.xmin, o from nulls n join other on b = k;
explain (costs off) select n.a, o from nulls n tablesample system (100) join other on b = k;
explain (costs off) select n.a, o from nulls n join other on b + 1 = k;
explain (costs off) select n.a, n.ctid, n.tableoid, o from nulls n join other on b = k;
set hashgraph_join.source = tuples;
explain (costs off) select n.a, o from nulls n join other on b = k;
set hashgraph_join.source = pages;

-- EXPLAIN ANALYZE and statistics say what they would have said
create function scans(q text) returns setof text language plpgsql as $$
declare
	line text;
	scan text;
begin
	for line in execute 'explain (analyze, buffers, costs off, timing off, summary off) ' || q loop
		if line ~ 'Planning:' then
			exit;
		elsif line ~ '->' then
			scan := regexp_replace(line, '^.*->\s*', '');
		end if;
		if scan ~ '^Seq Scan' and line ~ 'actual|Removed|Buffers' then
			return next hgj_plain(regexp_replace(line, '^[->\s]*', ''));
		end if;
	end loop;
end $$;
create function same_scans(q text) returns setof text language plpgsql set hashgraph_join.enabled = on as $$
declare
	stock text[];
	ours text[];
begin
	set local enable_nestloop = off;
	set local enable_mergejoin = off;
	set local hashgraph_join.enabled = off;
	perform array_agg(s) from scans(q) s;
	stock := array_agg(s order by s) from scans(q) s;
	set local hashgraph_join.enabled = on;
	ours := array_agg(s order by s) from scans(q) s;
	if stock is distinct from ours then
		return next 'DIFFERENT';
		return query select unnest(stock);
		return next 'and ours';
	end if;
	return query select unnest(ours);
end $$;
select same_scans('select n.c, o from nulls n join other on b = k');
select same_scans('select n.c, o from nulls n join other on b = k where a < 10 and k % 2 = 0');
select same_scans('select n.c, o from nulls n left join other on b = k and k < 30 where c like ''xx%'' and d');
select same_scans('select n.c, o from nulls n full join (select * from other where o <> ''other 3'') q on b = k');
select same_scans('select n.c, o from nulls n join other on b = k where a < 0');
-- (files are extended by several pages at a time from 16 on)
select regexp_replace(line, 'hit=2[78][05]', 'hit=2xx') as same_scans from same_scans('select x.k, j.* from other x, lateral (select count(bad.d) from lively l left join bad on l.id = bad.id and bad.k < 30 + x.k where l.k > x.k) j where x.k < 5') line;
create function counted(q text, out seq_scan int8, out seq_tup_read int8) language plpgsql as $$
declare
	before record;
begin
	select sum(s.seq_scan) s, sum(s.seq_tup_read) t into before from pg_stat_xact_user_tables s where relname in ('nulls', 'other', 'lively');
	execute 'select count(*) from (' || q || ') q';
	select sum(s.seq_scan) - before.s, sum(s.seq_tup_read) - before.t into seq_scan, seq_tup_read from pg_stat_xact_user_tables s where relname in ('nulls', 'other', 'lively');
end $$;
begin;
set local enable_nestloop = off;
set local enable_mergejoin = off;
set local hashgraph_join.enabled = off;
select counted('select n.c, o from nulls n join other on b = k'), counted('select l.v, o from lively l left join other using (k) where id % 3 = 0');
set local hashgraph_join.enabled = on;
select counted('select n.c, o from nulls n join other on b = k'), counted('select l.v, o from lively l left join other using (k) where id % 3 = 0');
commit;

-- Attributes behind ones that are as long in all tuples of a page, or in all but
-- one of them: the first, one in the middle, the last; by a byte, by a header of
-- four bytes, by a NULL, by a value elsewhere, by one that is compressed.
create table alike (id int not null, c char(7), n numeric, t text, k int, s int2, u uuid, z char(3), d date, b int8) with (autovacuum_enabled = off);
insert into alike select g, 'c' || g % 10, 10 + g % 80, 'text', g % 60, g % 7, md5((g % 9)::text)::uuid, 'z', date '2020-01-01' + g % 5, g from generate_series(1, 2000) g;
create table altered (like alike) with (autovacuum_enabled = off);
create function altered(what text, which int) returns text language plpgsql as $$
begin
	truncate altered;
	insert into altered select id, case when x and what = 'multibyte' then 'c€' else c end, case when x and what = 'numeric' then 12345.678 else n end,
		case when not x then t when what = 'shorter' then 'tex' when what = 'long' then repeat('l', 200) when what = 'missing' then null
			when what = 'toasted' then (select string_agg(md5(i::text), '') from generate_series(1, 200) i) when what = 'compressed' then repeat('c', 5000) else t end,
		k, s, u, z, d, b
	from (select *, id % 50 = which % 50 or id = which as x from alike) a order by id;
	return hgj_check('select a.*, o from altered a join other on other.k = a.k') || ' ' ||
		hgj_check('select a.id, a.s, a.u, a.z, a.d, a.b from altered a join other on other.k = a.b where a.s > 2') || ' ' ||
		hgj_check('select a.z, a.d from altered a left join other on other.k = a.k and a.n > 20 where a.d > ''2020-01-02''');
end $$;
select what, which, altered(what, which) from unnest('{nothing,multibyte,numeric,shorter,long,missing,toasted,compressed}'::text[]) what, unnest('{1,25,2000}'::int[]) which;

-- Runs of varlena attributes that nobody reads, as long in one row as not in the next, and
-- what stands behind them, aligned more and less strictly than what is before it: each
-- column alone as output, behind quals and keys that lie before and behind it.
create table stretches (id int, v1 text, v2 varchar, n1 numeric, f bool, i2 int2, i4 int, i8 int8, v3 text, m macaddr, c "char", iv interval, d int, e bool, h int2, v4 text, u uuid, k int2, v5 text, z int8) with (autovacuum_enabled = off);
create function stretched(what text, every int) returns text language plpgsql as $$
declare
	said text;
begin
	truncate stretches;
	insert into stretches select g, case when x and what = 'long' then repeat('l', 124 + g % 9) when x and what = 'empty' then '' else repeat('a', g * 7 % 11) end,
		case when x and what = 'compressed' then repeat('c', 4000 + g % 9) when x and what = 'missing' then null else repeat('b', g * 5 % 6) end,
		(g * 31 % 200) ^ (g % 7), g % 3 = 0, g % 50, case when x and what = 'missing later' then null else g % 70 end, g % 90,
		case when x and what = 'elsewhere' then (select string_agg(md5((i + g)::text), '') from generate_series(1, 100) i) when x and what = 'two long' then repeat('m', 127) else repeat('d', g * 3 % 5) end,
		('00:00:00:00:00:' || to_char(g % 60, 'FM00'))::macaddr, chr(g % 41 + 40)::"char", make_interval(days => g % 20), g % 30, g % 2 = 0, g % 80,
		case when x and what in ('long', 'two long') then repeat('n', 126) else repeat('e', g % 4) end, md5((g % 9)::text)::uuid, g % 60, repeat('f', g % 120 + g % 7), g
	from (select g, g % every = 0 as x from generate_series(1, 700) g) s;
	select string_agg(distinct hgj_check(format('select s.%I, o from stretches s join other on other.k = s.k where %s', col, qual)), E'\n') into said
	from unnest('{v1,n1,f,i2,i4,i8,v3,m,c,iv,d,h,v4,u,z}'::text[]) col, unnest('{true,i8 % 3 = 1,d = 7}'::text[]) qual;
	return said || ' ' || hgj_check('select s.*, o from stretches s join other on other.k = s.k where z % 5 < 3') || ' ' ||
		hgj_check('select s.id, s.u, o from stretches s join other on other.k = s.i2');
end $$;
select what, every, stretched(what, every) from unnest('{nothing,long,empty,compressed,missing,missing later,elsewhere,two long}'::text[]) what, unnest('{2,60,650}'::int[]) every;
alter table stretches drop column v2, drop column i4;
select hgj_check('select s.iv, s.v5, o from stretches s join other on other.k = s.k where s.d < 9');
insert into stretches select * from stretches where id % 3 = 0;
select hgj_check('select s.iv, s.v5, o from stretches s join other on other.k = s.k where s.d < 9');
alter table stretches add column w int default 40, add column t text default 'added';
select hgj_check('select s.z, s.w, s.t, o from stretches s join other on other.k = s.w where s.d < 9');
insert into stretches select id, v1, n1, f, i2, i8, v3, m, c, iv, d, e, h, v4, u, k, v5, z, z % 40, v5 from stretches where id % 2 = 0;
select hgj_check('select s.z, s.w, s.t, o from stretches s join other on other.k = s.w where s.d < 9');

-- Where blocks have been found in buffers before is a hint: it may be wrong when a table has been
-- cut and has grown again, and is forgotten, in the middle of a scan, when many tables are read.
create table moved (id int, k int, fill text) with (autovacuum_enabled = off, fillfactor = 10);
insert into moved select g, g % 41, repeat('m', 600) from generate_series(1, 400) g;
analyze moved;
create function moves(q text) returns text language plpgsql as $$
declare
	line text;
begin
	foreach line in array array(select same_scans(q)) loop
		if line ~ 'DIFFERENT' then
			return 'DIFFERENT';
		end if;
	end loop;
	return hgj_check(q);
end $$;
select moves('select m.fill, m.id, o from moved m join other using (k)'), moves('select m.fill, m.id, o from moved m join other using (k)');
delete from moved where id > 150;
vacuum (truncate, index_cleanup off) moved;
select moves('select m.fill, m.id, o from moved m join other using (k)');
create table between_them with (autovacuum_enabled = off, fillfactor = 10) as select g id, repeat('b', 600) t from generate_series(1, 200) g;
insert into moved select g, g % 41, repeat('n', 600) from generate_series(401, 900) g;
select moves('select m.fill, m.id, o from moved m join other using (k)'), moves('select m.fill, m.id, o from moved m join other using (k)');
truncate moved;
insert into moved select g, g % 41, repeat('o', 600) from generate_series(1, 300) g;
select moves('select m.fill, m.id, o from moved m join other using (k)'), moves('select m.fill, m.id, o from moved m join other using (k)');
do $$ begin
	for n in 1 .. 20 loop
		execute format('create table read%s with (autovacuum_enabled = off, fillfactor = 10) as select g id, repeat(''r'', 600) t from generate_series(1, 100) g', n);
	end loop;
end $$;
select hgj_check((select format('select m.id, m.fill, o, %s from moved m join other using (k)', string_agg(format(
	'(select sum(length(r.t)) from read%s r join other on r.id = other.k where r.id > mod(m.id, 50)) as c%s', i, i), ', ')) from generate_series(1, 20) i), 21);

reset all;
set client_min_messages = warning;
drop schema pages cascade;
