-- HashGraphAgg on a device.  Without one (most machines) the host does it all,
-- and what is tested is which plans would fit; test/gpu/sql.sh runs this file
-- where there is a device.
set hashgraph_join.engine = cuda;
set hashgraph_join.force = on;

create table dev_f (id int8, k1 int4, k2 int8, k3 int2, v int4, w int8, s int2, x float8, y float4, b bool, d date, t text, o oid);
insert into dev_f
select i, case when i % 17 = 0 then null else i % 1000 end, i % 77, (i % 13)::int2,
	case when i % 11 = 0 then null else i % 1000 - 500 end,
	(i::int8 * 300719925474099) * (1 - 2 * (i % 2)), (i % 200 - 100)::int2,
	case when i % 5 > 0 then (i % 64) / 4.0 - 3 end, (i % 32) / 2.0, i % 3 = 0,
	date '2020-01-01' + (i % 500)::int, 't' || i % 9, (4294967295 - i % 100)::oid
from generate_series(1, 30000) i;
create table dev_a (k int4, g int4, h int8, n text, p int4, z bool);
insert into dev_a select i, i % 7, case when i % 4 > 0 then i % 3 end, 'name ' || i % 5, i % 50, i % 2 = 0
from generate_series(1, 900) i;
insert into dev_a select i, null, 5, null, i, null from generate_series(1, 60) i;
insert into dev_a values (null, 1, 1, 'null', 1, true);
create table dev_b (k int8, g int2, u float8, q date);
insert into dev_b select i, (i % 5)::int2, i / 2.0, date '2021-01-01' + i::int from generate_series(0, 59) i;
create table dev_c (k int2 primary key, c text, f float4);
insert into dev_c select i, 'c' || i, i / 4.0 from generate_series(0, 11) i;
create table dev_none (k int4, g int4);
analyze dev_f; analyze dev_a; analyze dev_b; analyze dev_c; analyze dev_none;

-- Compares with stock, and says why the pipeline was not used, unless that is
-- because there is no device.
create function dev_check(q text, wanted text default 'yes', nodes int default 1) returns text language sql as
	$$ select hgj_check_device(q, wanted, nodes, '^no [(](join|group|aggr|expr|col|outer)') $$;

-- one join, one group
select dev_check('select count(*), sum(f.v) from dev_f f join dev_a a on f.k1 = a.k');
select dev_check('select count(*), count(v), sum(v), sum(w), sum(s), avg(v), avg(w), avg(s) from dev_f f join dev_a a on f.k1 = a.k');
select dev_check('select min(v), max(v), min(w), max(w), min(s), max(s), min(d), max(d), min(o), max(o), bool_and(b), bool_or(b), every(z) from dev_f f join dev_a a on f.k1 = a.k');
select dev_check('select sum(x), avg(x), min(x), max(x), avg(y), min(y), max(y) from dev_f f join dev_a a on f.k1 = a.k where x <> 0');
select dev_check('select count(*), sum(p), min(h) from dev_f f join dev_a a on f.k1 = a.k and f.k2 = a.p');
select dev_check('select count(*), sum(v) from dev_f f join dev_none n on f.k1 = n.k');
select dev_check('select count(*), sum(v) from dev_f f left join dev_none n on f.k1 = n.k');

-- numerics, as integers
create table dev_m (k int4, p numeric(15,2), d numeric(4,2), q numeric(9,4), v numeric(18,0), f numeric, w numeric(30,6));
insert into dev_m select i % 900, i * 7.25 - 900, case when i % 13 > 0 then i % 11 / 100.0 end, i % 40 / 8.0, i::int8 * 900000007, i / 4.0, i from generate_series(1, 8000) i;
create table dev_n (k int4, r numeric(8,3), t text);
insert into dev_n select i, case when i % 9 > 0 then i * 0.125 end, 't' || i % 3 from generate_series(1, 900) i;
analyze dev_m; analyze dev_n;
select dev_check('select t, sum(p), avg(p), min(p), max(p), count(d), sum(p * (1 - d)), sum(p * (1 - d) * (1 + q)), avg(-q), min(q - r), max(abs(p) * r), sum(r), sum(v), sum(w + 0.5) from dev_m join dev_n using (k) group by t');
select dev_check('select sum(p * r), avg(k * d), count(*) from dev_m m left join dev_n using (k) where p between 100 and 9000.5 and d < 0.075 and q <> r');
select dev_check('select sum(p) filter (where p * d > r), sum(p - r) filter (where q is not null), count(*) filter (where -d <= r), sum(case when q > 2 then d else p end) from dev_m join dev_n using (k)');
select dev_check('select t, sum(case when q > 2 then p * (1 - d) else 0 end), avg(coalesce(d, q, 0)), sum(case when p > 1e9 then q else 0 end), sum(case when q > 2 then d else 1.0000 end) from dev_m join dev_n using (k) group by t');
select dev_check('select sum(1 + case when q > 2 then d else 1.0000 end) from dev_m join dev_n using (k)', 'no (expression of another kind)');
select dev_check('select min(case when q > 2 then d else 1.0000 end) from dev_m join dev_n using (k)', 'no (aggregate of another kind)');
select dev_check('select sum(f) from dev_m join dev_n using (k)', 'no (column that does not pass by value)');
select dev_check('select sum(v * v * v) from dev_m join dev_n using (k)', 'no (value that the host must look at)');
update dev_m set d = 'NaN' where p = 6350;
select dev_check('select sum(d) from dev_m join dev_n using (k)', 'no (value that the host must look at)');
update dev_n set r = 'NaN' where k = 700;
select dev_check('select sum(p + r) from dev_m join dev_n using (k)', 'no (value that the host must look at)');
drop table dev_m, dev_n;

-- keys of other types
select dev_check('select count(*), sum(v) from dev_f f join dev_b b on f.k2 = b.k');
select dev_check('select count(*), sum(v) from dev_f f join dev_c c on f.k3 = c.k');
select dev_check('select count(*), sum(v) from dev_f f join dev_b b on f.d = b.q');
select dev_check('select count(*), sum(v) from dev_f f join dev_b b on f.x = b.u');
select dev_check('select count(*), sum(v) from dev_f f join dev_c c on f.y = c.f');
select dev_check('select count(*), sum(v) from dev_f f join dev_b b on f.y = b.u');
select dev_check('select count(*), sum(v) from dev_f f join dev_a a on f.b = a.z and f.k1 = a.k');

-- groups
select dev_check('select g, count(*), sum(v) from dev_f f join dev_a a on f.k1 = a.k group by g');
select dev_check('select g, h, count(*), sum(v), min(w), avg(x) from dev_f f join dev_a a on f.k1 = a.k group by g, h');
select dev_check('select n, count(*), sum(v) from dev_f f join dev_a a on f.k1 = a.k group by n');
select dev_check('select v, count(*), sum(p) from dev_f f join dev_a a on f.k1 = a.k group by v');
select dev_check('select id, count(*), sum(p) from dev_f f join dev_a a on f.k1 = a.k group by id');
select dev_check('select w, z, n, count(*) from dev_f f join dev_a a on f.k1 = a.k group by w, z, n');
select dev_check('select g, count(*) from dev_f f join dev_a a on f.k1 = a.k group by g having count(*) > 4000');
select dev_check('select k, g, count(*) from dev_f f join dev_none n on f.k1 = n.k group by k, g');

-- join types
select dev_check('select count(*), count(a.k), sum(v), sum(a.p) from dev_f f left join dev_a a on f.k1 = a.k');
select dev_check('select g, count(*), count(a.k), sum(v) from dev_f f left join dev_a a on f.k1 = a.k group by g');
select dev_check('select count(*), sum(v) from dev_f f where exists (select from dev_a a where f.k1 = a.k)');
select dev_check('select count(*), sum(v) from dev_f f where not exists (select from dev_a a where f.k1 = a.k)');
select dev_check('select b, count(*) from dev_f f where not exists (select from dev_a a where f.k1 = a.k and a.p > f.v) group by b');
select dev_check('select b, count(*) from dev_f f where exists (select from dev_a a where f.k1 = a.k and a.p > f.v) group by b');

-- clauses
select dev_check('select count(*), sum(v) from dev_f f join dev_a a on f.k1 = a.k and f.v < a.p');
select dev_check('select count(*), count(a.k), sum(p) from dev_f f left join dev_a a on f.k1 = a.k and (f.v < a.p or a.z is null)');
select dev_check('select count(*) from dev_f f join dev_a a on f.k1 = a.k and f.v + a.p between 3 and 90 and a.g in (1, 2, 5)');
select dev_check('select count(*) from dev_f f join dev_a a on f.k1 = a.k and f.v * a.p not in (4, 44, 444)');
select dev_check('select count(*) from dev_f f join dev_a a on f.k1 = a.k and f.x > a.p and not (f.b is true and a.z is not false)');
select dev_check('select count(*) from dev_f f join dev_a a on f.k1 = a.k where f.v > 0 and f.d < date ''2020-12-24'' and a.g <> 3 and t <> ''t3''');

-- clauses that apply after an outer join
select dev_check('select count(*), sum(v), count(a.k) from dev_f f left join dev_a a on f.k1 = a.k where a.p > f.v or a.k is null');
select dev_check('select a.g, count(*), sum(v) from dev_f f left join dev_a a on f.k1 = a.k and a.z where f.v > 100 or coalesce(a.p, 3) < 20 group by a.g');
select dev_check('select a.g, count(*), sum(p) from dev_f f left join dev_a a on f.k1 = a.k left join dev_b b on a.p = b.k where (b.g is null or b.u < f.x) and (a.h is distinct from 2 or f.b) group by a.g', nodes => 2);
select dev_check('select count(*) from dev_f f left join dev_a a on f.k1 = a.k left join dev_b b on f.k2 = b.k where coalesce(a.g, 1) < coalesce(b.g, 2) and not exists (select from dev_c c where c.k = f.k3)', nodes => 3);
select count(*) from dev_f f left join dev_a a on f.k1 = a.k where coalesce(a.p, 1) / coalesce(f.v, 1) > 0;
select dev_check('select count(*) from dev_f f left join dev_a a on f.k1 = a.k where f.t like ''%'' || coalesce(a.g, 3)', 'no (join clause that runs row by row)');
select line from hgj_explain('(analyze, buffers off, costs off, timing off, summary off) select count(*) from dev_f f left join dev_a a on f.k1 = a.k and a.p > f.s where f.v > 100 or a.p < 20') line where line ~ 'HashGraphJoin|Removed';

-- arguments and filters
select dev_check('select sum(v + p), sum(v * p), sum(w / (p + 1)), avg(x * p), max(v - s), min(abs(v)), sum(-s) from dev_f f join dev_a a on f.k1 = a.k');
select dev_check('select count(*) filter (where b), sum(v) filter (where v > 100), count(v) filter (where z), min(p) filter (where v is null) from dev_f f join dev_a a on f.k1 = a.k');
select dev_check('select g, sum(100 / p) filter (where p > 0), count(*) filter (where g in (1, 3) or x is null) from dev_f f join dev_a a on f.k1 = a.k group by g');
select dev_check('select sum(case when v > 0 then v when v < -10 then p else 1 end), sum(coalesce(v, p, 7)), sum(case when p <> 0 then v / p end) from dev_f f join dev_a a on f.k1 = a.k');
select dev_check('select sum(v::int8 * 1000000000), sum(s::float8), sum(x::int4), max(y::float8), bool_or(v > p), bool_and(v is distinct from p) from dev_f f join dev_a a on f.k1 = a.k');

-- chains
select dev_check('select count(*), sum(v), sum(a.p), sum(b.g) from dev_f f join dev_a a on f.k1 = a.k join dev_b b on f.k2 = b.k', nodes => 2);
select dev_check('select a.g, b.g, count(*), sum(v) from dev_f f join dev_a a on f.k1 = a.k join dev_b b on f.k2 = b.k group by a.g, b.g', nodes => 2);
select dev_check('select n, c, count(*), sum(v), max(u) from dev_f f join dev_a a on f.k1 = a.k join dev_b b on f.k2 = b.k join dev_c c on f.k3 = c.k group by n, c', nodes => 3);
select dev_check('select a.g, count(*), sum(b.u) from dev_f f left join dev_a a on f.k1 = a.k left join dev_b b on a.p = b.k group by a.g', nodes => 2);
select dev_check('select a.g, count(*), sum(b.u) from dev_f f join dev_a a on f.k1 = a.k left join dev_b b on a.p = b.k and b.u < f.x group by a.g', nodes => 2);
select dev_check('select count(*), sum(v) from dev_f f join dev_a a on f.k1 = a.k where not exists (select from dev_b b where b.k = f.k2) and exists (select from dev_c c where c.k = f.k3)', nodes => 3);

-- all columns that a pipeline has room for, one more, and one that a lower join computes
do $$ begin execute (select 'create table dev_wide as select i % 5 as k, ' || string_agg(format('i + %s as c%s', c, c), ', ' order by c) || ' from generate_series(1, 500) i' from generate_series(0, 39) c); end $$;
create table dev_few as select * from dev_wide where c0 <= 5;
analyze dev_wide; analyze dev_few;
set join_collapse_limit = 1;
select hgj_check_agg(q, nodes => 8), array(select trim(line) from hgj_explain('(costs off) ' || q) line where line ~ 'Device Pipeline') as pipeline from (select format('select sum(%s + s.c36 + s.e) from (dev_few b left join (select x.*, coalesce(y.c0, 0) + x.c0 as e, %s from dev_wide x join dev_few y on x.k = y.k) s on b.k = s.k) %s where s.c1 > 0',
	(select string_agg(format('s.c%s', i), ' + ') from generate_series(0, 31) i) || (select string_agg(format(' + s.y%s', i), '') from generate_series(0, 15) i) ||
	(select string_agg(format(' + %s.c%s', t, i), '') from unnest('{b,d1,d2,d3,d4,d5,d6}'::text[]) t, generate_series(20, 35) i),
	(select string_agg(format('y.c%s as y%1$s', i), ', ') from generate_series(0, 15) i),
	(select string_agg(format('left join dev_few d%s on s.c%1$s = d%1$s.c%1$s', i), ' ') from generate_series(1, 6) i)) as q) x;
reset join_collapse_limit;

-- values that the host must look at, and errors
select dev_check('select sum(x * power(2::float8, 900)) from dev_f f join dev_a a on f.k1 = a.k', 'no (value that the host must look at)');
select dev_check('select min(-(x - x)) from dev_f f join dev_a a on f.k1 = a.k', 'no (value that the host must look at)');
select dev_check('select sum(y) from dev_f f join dev_a a on f.k1 = a.k', 'no (aggregate of another kind)');
select sum(v * 10000000) from dev_f f join dev_a a on f.k1 = a.k;
select sum(v / p) from dev_f f join dev_a a on f.k1 = a.k;
select count(*) from dev_f f join dev_a a on f.k1 = a.k and f.v / a.p > 1;
select sum(v / (p - 7)) filter (where p <> 7) > 0 as fine from dev_f f join dev_a a on f.k1 = a.k;

-- nothing is built beside an empty side, where that could raise an error
select dev_check('select count(*) from dev_none n where not exists (select from dev_a a where n.k = a.k and 10 / (a.p - 7) > 0)');
select dev_check('select count(*), sum(v) from dev_f f where not exists (select from dev_a a where f.k1 = a.k and 10 / (a.p + 7) > 0)');
set join_collapse_limit = 1;
select dev_check('select count(*), sum(b.g) from dev_f f left join dev_a a on f.k1 = a.k left join dev_b b on f.k2 = b.k and 10 / (b.g + 1) > 1', 'no (build side that may raise an error)', nodes => 2);
reset join_collapse_limit;

-- plans that do not fit
select dev_check('select count(*) from dev_f f join dev_b b on f.k2 = b.k and f.t like ''t%'' || b.g', 'no (join clause that runs row by row)');
select dev_check('select count(*) from dev_f f full join dev_a a on f.k1 = a.k', 'no (join type)');
select dev_check('select count(*) from dev_f f join dev_c c on f.t = c.c', 'no (join key of another kind)');
select dev_check('select t, count(*) from dev_f f join dev_a a on f.k1 = a.k group by t');
select dev_check('select x, count(*) from dev_f f join dev_a a on f.k1 = a.k group by x', 'no (group key of another kind)');
select dev_check('select sum(length(t)) from dev_f f join dev_a a on f.k1 = a.k');
select dev_check('select count(*) from (select * from dev_f order by id limit 1000) f join dev_a a on f.k1 = a.k', 'no (outer side not read by pages)');

-- again and again: rescans, parameters, prepared plans, cursors
select dev_check('select i, (select count(*) from dev_f f join dev_a a on f.k1 = a.k and f.v < a.p + i) from generate_series(1, 3) i');
select dev_check('select i, (select count(*) from dev_f f join dev_a a on f.k1 = a.k where f.v < i) from generate_series(1, 3) i');
prepare dev_p(int) as select count(*), sum(v) from dev_f f join dev_a a on f.k1 = a.k and f.v < a.p + $1 where f.s > $1;
set plan_cache_mode = force_generic_plan;
execute dev_p(1);
execute dev_p(50);
execute dev_p(null);
begin;
declare dev_c1 cursor for select g, count(*) from dev_f f join dev_a a on f.k1 = a.k group by g order by 1;
fetch 2 from dev_c1;
delete from dev_f where id < 10000;
fetch 2 from dev_c1;
rollback;
-- rows of a side that its key does not tell apart after all, with more columns than there is room
-- for then: no part of that plan is run the next time
create table dev_two with (autovacuum_enabled = off) as
	select i % 2500 as a1, 'two ' || i % 7 as a2, 'two ' || i % 5 as a3, 'two ' || i % 3 as a4, 'two ' || i % 2 as a5, 'a' as a6, 'b' as a7,
		i as b1, i + 1 as b2, i + 2 as b3, i + 3 as b4, i + 4 as b5, i + 5 as b6, i + 6 as b7, i + 7 as b8, i + 8 as b9, i + 9 as b10
	from generate_series(1, 5000) i;
create table dev_many with (autovacuum_enabled = off) as select g % 2500 as k, g % 3 as m from generate_series(1, 60000) g;
analyze dev_two, dev_many;
set enable_material = off;
set enable_memoize = off;
set join_collapse_limit = 1;
select hgj_check('select s.i, x.* from generate_series(0, 2) s(i), lateral (select count(*), sum(c), sum(s1), sum(s2), sum(s3), sum(s4), sum(s5), sum(s6), sum(s7), sum(s8), sum(s9), sum(s10) from
	(select a1, a2, a3, a4, a5, a6, a7, count(*) as c, sum(b1) as s1, sum(b2) as s2, sum(b3) as s3, sum(b4) as s4, sum(b5) as s5, sum(b6) as s6, sum(b7) as s7, sum(b8) as s8, sum(b9) as s9, sum(b10) as s10
	from dev_many join dev_two on dev_many.k = dev_two.a1 where dev_many.m = s.i group by 1, 2, 3, 4, 5, 6, 7) y offset 0) x') as says;
drop table dev_two, dev_many;
reset enable_material;
reset enable_memoize;
reset join_collapse_limit;
explain (costs off) select g, count(*) from dev_f f join dev_a a on f.k1 = a.k group by g;
explain (costs off) select x, count(*) from dev_f f join dev_a a on f.k1 = a.k group by x;
drop table dev_f, dev_a, dev_b, dev_c, dev_none, dev_wide, dev_few;
drop function dev_check;
