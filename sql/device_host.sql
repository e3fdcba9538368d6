-- What the host computes for a pipeline on a device: expressions that there is no
-- instruction for, group keys that pass by reference, and aggregates over a table without
-- any join.  As device.sql, this shows which plans would fit where there is no device.
set hashgraph_join.engine = cuda;
set hashgraph_join.force = on;

create table host_f (id int, k int, y int, d date, ts timestamp, t text, c char(6), b bytea, p numeric(12,2), n numeric, v int, x float8);
insert into host_f
select i, case when i % 19 > 0 then i % 700 end, 1990 + i % 9, date '1992-01-01' + (i % 2000), timestamp '2001-02-03' + i * interval '1 hour',
	case when i % 7 > 0 then 'text ' || i % 12 end, 'c' || i % 5, decode(lpad((i % 30)::text, 4, '0'), 'hex'),
	case when i % 23 > 0 then (i % 300) / 4.0 end, (i % 40) / 8.0, case when i % 5 > 0 then i % 90 - 20 end, (i % 64) / 8.0
from generate_series(1, 12000) i;
create table host_a (k int, u int, t text, c varchar(20), p numeric(9,3), d date, g int, z int);
insert into host_a
select i, i + 5, case when i % 6 > 0 then 'name ' || i % 8 end, case when i % 2 = 0 then 'PROMO' else 'OTHER' end || i % 3, i / 8.0, date '2020-02-29' - i, i % 4, i % 11
from generate_series(1, 650) i;
create table host_b (k int, t text);
insert into host_b select i % 100, repeat('b', i % 100) from generate_series(1, 150) i;
analyze host_f; analyze host_a; analyze host_b;

create function host_check(q text, wanted text default 'yes', nodes int default 1) returns text language sql as
	$$ select hgj_check_device(q, wanted, nodes, '^no [(](join|aggr|expr|col|outer)') $$;

-- expressions over one side
select host_check('select count(*), sum(f.v) from host_f f join host_a a using (k) where f.v > 0 or f.t like ''%1'' or a.t in (''name 1'', ''name 3'')');
select host_check('select sum(case when a.c like ''PROMO%'' then f.p * (1 - f.p) else 0 end), sum(case when f.t = ''text 3'' or f.t = ''text 4'' then 1 else 0 end) from host_f f join host_a a using (k)');
select host_check('select sum(length(f.t)), max(length(a.t)), count(*) filter (where f.t ~ ''[13]$''), sum(f.v) filter (where a.t is null) from host_f f join host_a a using (k)');
select host_check('select sum(f.v) from host_f f join host_a a on f.k = a.k and (f.t = ''text 1'' and a.t = ''name 2'' or f.t = ''text 2'' and a.t = ''name 3'')');
select host_check('select count(*), sum(a.p) from host_f f left join host_a a on f.k = a.k and a.c not like ''%2'' where f.d >= date ''1993-01-01'' or a.t is null');
select host_check('select sum(coalesce(length(a.t), -1)), count(*) filter (where a.t is null), sum(case when a.c like ''P%'' then 1 when a.c is null then 100 else 10 end), sum(coalesce(extract(month from a.d), 50)) from host_f f left join host_a a on f.k = a.k and a.g < 3');
select host_check('select coalesce(a.t, ''missing''), a.c is null, coalesce(length(a.t), -7), count(*) from host_f f left join host_a a on f.k = a.k and a.g < 2 group by 1, 2, 3');
select host_check('select count(*), sum(f.v) from host_f f left join host_a a on f.k = a.k left join host_b b on a.z = b.k and b.t is not null where coalesce(length(b.t), 3) < 5 or a.t is null', nodes => 2);
select host_check('select sum(extract(year from f.d) * f.v), max(extract(month from a.d)), count(*) filter (where extract(dow from f.ts) = 3) from host_f f join host_a a using (k)');
select host_check('select sum(f.d + 7 - date ''2000-01-01''), max(date_trunc(''month'', f.ts)), min(f.ts::date), sum(f.d - date ''1999-12-31'') from host_f f join host_a a using (k)');
select host_check('select count(*) from host_f f join host_a a using (k) where f.d + f.v > date ''1995-05-05'' and f.n > 2.5 and f.b <> ''\x0007''');
select host_check('select sum(case f.c when ''c1'' then a.p when ''c2'' then f.p end), count(coalesce(f.t, ''none'') = ''none'' or null) from host_f f join host_a a using (k)');
select host_check('select count(*) from host_f f join host_a a using (k) where (f.v between 2 and 60 and f.id % 3 = 0 or f.id % 70 in (1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69)) and a.z < 9');
-- of two sides
select host_check('select sum(length(f.t || a.t)) from host_f f join host_a a using (k)', 'no (expression of another kind)');
-- a numeric of any scale may be compared, but no sum be made of it
select host_check('select sum(f.n) from host_f f join host_a a using (k)', 'no (column that does not pass by value)');
-- the row that fails has no match; one that has, fails
select host_check('select sum(make_date(f.v + 1, 1, 1) - date ''1970-01-01'') from host_f f join host_b b on f.v = b.k and b.k > 0', 'no (value that the host must look at)');
select sum(make_date(f.v + 1, 1, 1) - date '1970-01-01') from host_f f join host_a a using (k);

-- group keys
select host_check('select t, count(*), sum(v) from host_f f join host_b b using (t) group by t', 'no (join key of another kind)');
select host_check('select f.t, count(*), sum(v) from host_f f join host_a a using (k) group by f.t');
select host_check('select f.c, f.t, count(*), avg(f.p) from host_f f join host_a a using (k) group by f.c, f.t');
select host_check('select f.b, count(*) from host_f f join host_a a using (k) group by f.b');
select host_check('select f.p, count(*), min(f.v) from host_f f join host_a a using (k) group by f.p');
select host_check('select a.p, a.z, count(*) from host_f f left join host_a a using (k) group by a.p, a.z');
select host_check('select extract(year from f.d), a.t, count(*), sum(f.v) from host_f f join host_a a using (k) group by 1, 2');
select host_check('select extract(year from a.d), length(f.t), count(*) from host_f f join host_a a using (k) group by 1, 2');
select host_check('select substring(f.t, 1, 6), left(a.t, 4), count(*) from host_f f join host_a a using (k) group by 1, 2');
select host_check('select substring(f.c from 1 for 2), count(*), sum(f.p) from host_f f where substring(f.c from 1 for 2) in (''c1'', ''c2'', ''c4'') and not exists (select from host_a a where a.k = f.k) group by 1');
select host_check('select upper(f.t), count(*) from host_f f join host_a a using (k) group by 1', 'no (group key of another kind)');
select host_check('select date_trunc(''month'', f.ts), f.v > 0, count(*) from host_f f join host_a a using (k) group by 1, 2');
select host_check('select a.t, count(*) from host_f f left join host_a a using (k) where a.t = ''name 1'' or f.v > 3 group by a.t');
-- equal ones that may look different, and what is of two sides
select host_check('select f.n, count(*) from host_f f join host_a a using (k) group by f.n', 'no (group key of another kind)');
select host_check('select f.x, count(*) from host_f f join host_a a using (k) group by f.x', 'no (group key of another kind)');
select host_check('select f.t || a.t, count(*) from host_f f join host_a a using (k) group by 1', 'no (group key of another kind)');
create collation host_any (provider = icu, locale = 'und', deterministic = false);
select host_check('select f.t collate host_any, count(*) from host_f f join host_a a using (k) group by 1', 'no (group key of another kind)');
-- by the number of a row: the key is unique, or it is not, or not there
select host_check('select a.k, a.t, a.p, a.c, a.d, count(*), sum(f.v) from host_f f join host_a a using (k) group by a.k, a.t, a.p, a.c, a.d');
select host_check('select a.u, a.t, a.g, f.t, count(*) from host_f f left join host_a a using (k) group by a.u, a.t, a.g, f.t');
select host_check('select a.g, a.t, count(*), sum(f.v) from host_f f join host_a a using (k) group by a.g, a.t');
select host_check('select b.k, b.t, count(*) from host_f f join host_b b on f.v = b.k group by b.k, b.t');
select host_check('select a.k, a.t, b.k, b.t, count(*) from host_f f join host_a a using (k) left join host_b b on a.z = b.k group by a.k, a.t, b.k, b.t', nodes => 2);
update host_a set u = null where u in (9, 10);
select host_check('select a.u, a.t, count(*), sum(f.v) from host_f f join host_a a using (k) group by a.u, a.t');
-- more values than there may be
create table host_many as select i % 700 as k, md5(i::text) as t from generate_series(1, 20000) i;
analyze host_many;
set work_mem = '256kB';
select host_check('select m.t, count(*) from host_many m join host_a a using (k) group by m.t', 'no (group key of another kind)');
reset work_mem;
drop table host_many;

-- ... than when it was analyzed
create table host_more as select case when i < 3000 then 'c' || i % 3 else 'd' || i % 40 end::char(4) as c, i % 5 as v from generate_series(1, 2999) i;
analyze host_more;
insert into host_more select 'd' || i % 40, i % 5 from generate_series(1, 3000) i;
select host_check('select c, count(*), sum(v) from host_more group by c', nodes => 0);
drop table host_more;

-- a table alone
select host_check('select count(*), sum(v), avg(v), min(d), max(ts), sum(p), avg(p) from host_f', nodes => 0);
select host_check('select c, t, count(*), sum(p * (1 - p)), sum(p * (1 - p) * (1 + p)) from host_f where d <= date ''1997-01-01'' group by c, t', nodes => 0);
select host_check('select sum(p * v) from host_f where d >= date ''1994-01-01'' and d < date ''1995-01-01'' and p between 5 and 70 and v < 60', nodes => 0);
select host_check('select count(*), min(v) from host_f where t like ''%9''', nodes => 0);
select host_check('select count(*), max(v), sum(p) from host_f where v > 1000', nodes => 0);
select host_check('select v, count(*) from host_f where v > 1000 group by v', nodes => 0);
select host_check('select extract(year from d), v / 10, substring(t, 1, 6), count(*), sum(x) from host_f group by 1, 2, 3', nodes => 0);
select host_check('select v, sum(id) filter (where t like ''%1''), count(*) filter (where c = ''c3'') from host_f group by v having count(*) > 20', nodes => 0);
select host_check('select id, count(*) from host_f group by id', nodes => 0);
select host_check('select y, (random() * 0)::int, count(*) from host_f group by 1, 2', 'no (volatile function below)', nodes => 0);
select host_check('select sum(id * 1000000), max(id * 100) from host_f where id < 2000', nodes => 0);
select sum(id * 1000000) from host_f;
select host_check('select ctid, count(*), sum(v) from host_f where id < 3000 group by ctid', 'no (group key of another kind)', nodes => 0);
select host_check('select y, sum(10 / (v + 20)) from host_f where v <> -20 group by y', nodes => 0);
select host_check('select i, (select sum(v) from host_f where y < 1990 + i) from generate_series(1, 4) i', nodes => 0);
select host_check('select i, (select count(*) from host_f where v < i % 2) from generate_series(1, 4) i', nodes => 0);
update host_f set p = 'NaN' where id = 7000;
select host_check('select c, sum(p), count(*) from host_f group by c', 'no (value that the host must look at)', nodes => 0);
select line from hgj_explain('(analyze, buffers off, costs off, timing off, summary off) select c, sum(p) from host_f where v > 3 group by c') line where line ~ 'Scan on|Removed|Group';
drop table host_f, host_a, host_b;
drop collation host_any;
drop function host_check;
