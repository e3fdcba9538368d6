-- What reviews have found, one by one.
create schema corner;
set search_path = corner, public;
create table t1 as select i, i % 100 k from generate_series(1, 1000) i;
create table t2 as select i, i % 70 k, i % 3 m from generate_series(1, 700) i;
analyze t1, t2;

-- The target of an UPDATE, DELETE or MERGE has partitions: its row identity
-- columns cannot go through a custom scan, so that join stays PostgreSQL's.
create table parted (k int, v text) partition by range (k);
create table parted_low partition of parted for values from (0) to (50);
create table parted_high partition of parted for values from (50) to (200);
insert into parted select i % 100, 'a' from generate_series(1, 1000) i;
analyze parted;
set hashgraph_join.force = on;
explain (verbose, costs off) update parted set v = 'x' from t1 where t1.k = parted.k;
set client_min_messages = debug1;
explain (costs off) delete from parted using t1 where t1.k = parted.k;
reset client_min_messages;
begin;
update parted set v = 'x' from t1 where t1.k = parted.k and t1.i > 500;
select count(*) from parted where v = 'x';
rollback;

-- Columns of type record cannot be deparsed through a custom scan.
explain (costs off) select (s.r).f1 from (select row(i, k) r, k from t1 offset 0) s join t2 on (s.r).f1 = t2.k;

-- A clause without columns wants a Result above the join: PostgreSQL does not
-- ask custom scans then, and require notices.
set hashgraph_join.require = join;
select count(*) from t1 join t2 using (k) where (select true);
reset hashgraph_join.require;
select count(*) from t1 join t2 using (k) where (select true);

-- Paths with an order must not win against a forced one.
set work_mem = '64kB';
set hashgraph_join.require = join;
select count(*) from (select distinct a.k from t1 a join t2 b on a.k = b.k group by a.k having count(*) > 3) x;
reset hashgraph_join.require;
reset work_mem;
reset hashgraph_join.force;

-- A type without an extended hash function, and an array and a range of it.
create type myint;
create function myint_in(cstring) returns myint strict immutable language internal as 'int4in';
set client_min_messages = warning;
create function myint_out(myint) returns cstring strict immutable language internal as 'int4out';
create type myint (input = myint_in, output = myint_out, like = int4);
reset client_min_messages;
create cast (int4 as myint) without function;
create function myint_eq(myint, myint) returns bool strict immutable language internal as 'int4eq';
create function myint_lt(myint, myint) returns bool strict immutable language internal as 'int4lt';
create function myint_le(myint, myint) returns bool strict immutable language internal as 'int4le';
create function myint_ge(myint, myint) returns bool strict immutable language internal as 'int4ge';
create function myint_gt(myint, myint) returns bool strict immutable language internal as 'int4gt';
create function myint_cmp(myint, myint) returns int4 strict immutable language internal as 'btint4cmp';
create function myint_hash(myint) returns int4 strict immutable language internal as 'hashint4';
create operator = (leftarg = myint, rightarg = myint, procedure = myint_eq, commutator = =, hashes, merges);
create operator < (leftarg = myint, rightarg = myint, procedure = myint_lt);
create operator <= (leftarg = myint, rightarg = myint, procedure = myint_le);
create operator >= (leftarg = myint, rightarg = myint, procedure = myint_ge);
create operator > (leftarg = myint, rightarg = myint, procedure = myint_gt);
create operator class myint_hash_ops default for type myint using hash as operator 1 =, function 1 myint_hash(myint);
create operator class myint_btree_ops default for type myint using btree as
	operator 1 <, operator 2 <=, operator 3 =, operator 4 >=, operator 5 >, function 1 myint_cmp(myint, myint);
create type myrange as range (subtype = myint);
create type mycomposite as (a int, b myint);
create table h1 as select i, (i % 20)::myint k, array[(i % 20)::myint, null] ks, myrange((i % 20)::myint, (i % 20 + 5)::myint) r,
	row(1, (i % 20)::myint)::mycomposite c from generate_series(1, 200) i;
create table h2 as select i, (i % 30)::myint k, array[(i % 30)::myint, null] ks, myrange((i % 30)::myint, (i % 30 + 5)::myint) r,
	row(1, (i % 30)::myint)::mycomposite c from generate_series(1, 200) i;
select c, hgj_check(format('select h1.i, h2.i from h1 join h2 on h1.%s = h2.%1$s', c)) from unnest('{k,ks,r,c}'::text[]) c;

-- One match of an outer row will do, each candidate has to be rechecked, and
-- there are many of them.
create table dup as select i, 'k' || i % 3 t, i % 3 k from generate_series(1, 3000) i;
select e, q, hgj_check(format('select * from dup a where %s (select 1 from dup b where a.t = b.t and %s)', e, q))
from unnest('{exists,not exists}'::text[]) e, unnest('{a.i <> b.i,b.i = 2990,b.i > 2900 and b.i > a.i,b.i < 0}'::text[]) q;
select e, q, hgj_check(format('select * from dup a where %s (select 1 from dup b where a.k = b.k and %s)', e, q))
from unnest('{exists,not exists}'::text[]) e, unnest('{a.i <> b.i,b.i = 2990,b.i > 2900 and b.i > a.i,b.i < 0}'::text[]) q;

-- An anti join that returns nothing keeps no memory for what it rejects.
create function note_memory() returns bool language plpgsql as $$
begin
	perform set_config('corner.bytes',
		greatest(current_setting('corner.bytes')::int8, (select max(used_bytes) from pg_backend_memory_contexts where name = 'ExprContext'))::text,
		false);
	return true;
end $$;
set corner.bytes = 0;
set hashgraph_join.force = on;
set hashgraph_join.require = join;
select count(*) from dup a where not exists (
	select 1 from dup b where a.i = b.i and repeat(a.t, 1000) = repeat(b.t, 1000) and (a.i % 300 <> 0 or note_memory()));
select current_setting('corner.bytes')::int8 between 1 and 100000 as bounded;
reset hashgraph_join.force;
reset hashgraph_join.require;

-- Parameters in keys, residuals and filters: what a rescan may keep.
select q, hgj_check(q, required => false) from unnest(array[
	'select o.i, (select count(*) from t1 join t2 on t1.k = t2.k + o.m) from t2 o where o.i <= 30',
	'select o.i, (select count(*) from t1 join t2 on t1.k + o.m = t2.k) from t2 o where o.i <= 30',
	'select o.i, (select count(*) from t1 join t2 on t1.k = t2.k and t1.i > t2.i + o.m * 100) from t2 o where o.i <= 30',
	'select o.i, (select count(*) from t1 left join t2 on t1.k = t2.k where t2.i is null or t2.i < o.i) from t2 o where o.i <= 30',
	'select o.i, x.* from t2 o, lateral (select t1.i a, t2.i b from t1 full join t2 on t1.k = t2.k + o.m where t1.i is null or t2.i is null) x where o.i <= 10',
	'select o.i, x.* from t2 o, lateral (select t1.i a, t2.i b from t1 join t2 on t1.k = t2.k where t1.i < o.i and t2.i < o.i) x where o.i <= 40'
]) q;

-- A subquery in a key is deparsed where it is run.
set hashgraph_join.force = on;
explain (verbose, costs off)
select o.i, x.* from t2 o, lateral (select a.i a, b.i b from t1 a join t2 b on (select a.k + o.m) = (select b.k * 1)) x where o.i <= 3;
reset hashgraph_join.force;
select hgj_check('select o.i, x.* from t2 o, lateral (select a.i a, b.i b from t1 a join t2 b on (select a.k + o.m) = (select b.k * 1)) x
	where o.i <= 3', required => false);

-- Memory is short: rows that come in passes, wide and narrow, with all kinds
-- of keys and everything that is remembered from pass to pass.
create table wide1 as select i, i % 1700 k, case when i % 11 > 0 then (i % 900)::text end t, repeat(chr(65 + i % 26), i % 97) pad
	from generate_series(1, 6000) i;
create table wide2 as select i, i % 1900 k, case when i % 13 > 0 then (i % 800)::text end t, repeat(chr(97 + i % 26), i % 89) pad
	from generate_series(1, 5000) i;
analyze wide1, wide2;
set work_mem = '64kB';
set hash_mem_multiplier = 1;
select j, c, hgj_check(format('select a.*, b.* from wide1 a %s join wide2 b on a.%s = b.%2$s', j, c))
from unnest('{inner,left,right,full}'::text[]) j, unnest('{k,t}'::text[]) c;
select j, c, hgj_check(format('select a.*, b.* from wide1 a %s join wide2 b on a.%s = b.%2$s and a.i < b.i and a.pad < b.pad', j, c))
from unnest('{inner,left,right,full}'::text[]) j, unnest('{k,t}'::text[]) c;
select e, c, hgj_check(format('select * from wide1 a where %s (select 1 from wide2 b where a.%s = b.%2$s and a.i < b.i)', e, c))
from unnest('{exists,not exists}'::text[]) e, unnest('{k,t}'::text[]) c;
set hashgraph_join.force = on;
do $$
declare
	line text;
	passes int := 0;
begin
	for line in execute 'explain (analyze, buffers off, costs off, timing off, summary off) select * from wide1 a join wide2 b using (k)' loop
		passes := greatest(passes, substring(line from 'Passes: (\d+)')::int);
	end loop;
	if passes < 2 then
		raise exception 'the build side took % passes', passes;
	end if;
end $$;
reset all;
set client_min_messages = warning;
drop schema corner cascade;
