-- Keys: many columns, mixtures, odd operators, NULLs.

-- 1, 2, ... 40 key columns of mixed types
create temp table wide_l (id int, v int);
create temp table wide_r (id int, v int);
do $$
declare
	i int;
	type text;
begin
	for i in 1 .. 40 loop
		type := (array['int4', 'text', 'uuid', 'float8', 'numeric', 'date', 'int8', 'bool'])[1 + i % 8];
		execute format('alter table wide_l add k%s %s', i, type);
		execute format('alter table wide_r add k%s %s', i, case type when 'int4' then 'int8' when 'float8' then 'float4' else type end);
	end loop;
end $$;
create function wide_fill(t text, n int, step int) returns void language plpgsql as $$
begin
	execute format('insert into %s select g, g %% 5, %s from generate_series(1, %s, %s) g', t,
		(select string_agg(replace((array['g %% 90', '''t'' || g %% 90', 'md5((g %% 90)::text)::uuid', '(g %% 90) / 2.0', '((g %% 90) || ''.0'')::numeric',
			'date ''2000-01-01'' + g %% 90', 'g %% 90', 'g %% 2 = 0'])[1 + i % 8], '%%', '%'), ', ' order by i) from generate_series(1, 40) i), n, step);
end $$;
select wide_fill('wide_l', 300, 1), wide_fill('wide_r', 300, 2);
update wide_l set k9 = null where id % 11 = 0;
update wide_r set k32 = null where id % 13 = 0;
analyze wide_l, wide_r;
select n, j, hgj_check(case j
	when 'semi' then format('select l.id from wide_l l where exists (select from wide_r r where %s)', c)
	when 'anti' then format('select l.id from wide_l l where not exists (select from wide_r r where %s)', c)
	else format('select l.id, r.id, l.k9, r.k32 from wide_l l %s join wide_r r on %s', j, c) end) as says
from unnest(array[1, 2, 3, 5, 8, 16, 32, 40]) n, unnest('{inner,left,right,full,semi,anti}'::text[]) j,
	lateral (select string_agg(format('l.k%1$s = r.k%1$s', i), ' and ' order by i) as c from generate_series(1, n) i) s
order by n, j;
select n, hgj_check_ways(format('select l.id, r.id from wide_l l full join wide_r r on %s', c)) as says
from unnest(array[2, 32]) n, lateral (select string_agg(format('l.k%1$s = r.k%1$s', i), ' and ' order by i) as c from generate_series(1, n) i) s;
-- more words than an engine takes: the rest is checked afterwards
select hgj_check('select l.id, r.id from wide_l l full join wide_r r on ' || string_agg(format('l.k%1$s = r.k%2$s', 8 * (1 + i % 5) - 6, 8 * (1 + i / 5 % 5) - 6), ' and ')) as says
from generate_series(0, 79) i;

-- an operator without a commutator cannot be turned around (before 18 that is an error of
-- PostgreSQL's own joins)
create operator ==== (leftarg = int, rightarg = int, function = int4eq, hashes);
create operator class no_commutator for type int using hash as operator 1 ====, function 1 hashint4(int);
set hashgraph_join.force = on;
select hgj_nodes(q) as nodes, hgj_digest(q) = hgj_digest(replace(q, '====', '=')) as same, q from unnest(array[
	'select a.id, b.id from a join b on a.k ==== b.k',
	'select a.id, b.id from a join b on b.k ==== a.k',
	'select a.id, b.id from a left join b on a.k ==== b.k',
	'select a.id from a where exists (select from b where a.k ==== b.k)',
	'select a.id, b.id from a full join b on b.k ==== a.k']) q;
reset hashgraph_join.force;
drop operator family no_commutator using hash;
drop operator ==== (int, int);

-- records without a name: those joins stay PostgreSQL's, comparing columns does not
create temp table x as select g as id, g % 30 as p, 'r' || g % 7 as q from generate_series(1, 150) g;
create temp table y as select g as id, g % 40 as p, 'r' || g % 5 as q from generate_series(1, 170) g;
analyze x, y;
select q, hgj_check(q, 0, false) as says from unnest(array[
	'select x.id, y.id from (select id, row(p, q) as k from x offset 0) x join (select id, row(p, q) as k from y offset 0) y on x.k = y.k',
	'select x.id, y.id from (select id, row(p, q) as k from x offset 0) x full join (select id, row(p, q) as k from y offset 0) y on x.k = y.k',
	'select x.id, y.id from (select id, array[row(p, q)] as k from x offset 0) x left join (select id, array[row(p, q)] as k from y offset 0) y on x.k = y.k']) q;
select q, hgj_check(q) as says from unnest(array[
	'select x.id from x where (p, q) in (select p, q from y)',
	'select x.id, y.id from x join y on row(x.p, x.q) = row(y.p, y.q)',
	'select x.id, y.id from x join y on row(row(x.p), x.q) = row(row(y.p), y.q)']) q;
-- a record that has no hash function inside cannot be hashed, by anyone
set hashgraph_join.force = on;
select count(*) from (select row(p, point(p, p)) as k from x offset 0) x join (select row(p, point(p, p)) as k from y offset 0) y on x.k = y.k;
reset hashgraph_join.force;

-- no hash clause, no HashGraphJoin: IS NOT DISTINCT FROM, <, OR, expressions of
-- both sides, an equality that is not hashable
select q, hgj_check(q, 0) as says, hgj_nodes(q) as nodes from unnest(array[
	'select x.id, y.id from x join y on x.p is not distinct from y.p',
	'select x.id, y.id from x join y on x.p < y.p - 20',
	'select x.id, y.id from x join y on x.p = y.p or x.q = y.q',
	'select x.id, y.id from x join y on x.p + y.p = 7',
	'select x.id, y.id from x left join y on x.p - y.p = 0',
	'select x.id, y.id from x join y on x.p = 7 and y.p = 7',
	'select x.id, y.id from x join y on point(x.p, 1) ~= point(y.p, 1)',
	'select x.id, y.id from x join y on date ''2000-01-01'' + x.p = timestamp ''2000-01-01'' + y.p * interval ''1 day''',
	'select x.id from x where x.p not in (select y.p from y)',
	'select x.id, y.id from x cross join y where x.id < 5']) q;

-- operators of one's own: not strict, so NULLs may be equal
create function null_eq(int, int) returns bool language plpgsql immutable as $$ begin return $1 is not distinct from $2; end $$;
create function null_hash(int) returns int language plpgsql immutable as $$ begin return coalesce($1, -1); end $$;
create operator <=> (leftarg = int, rightarg = int, procedure = null_eq, commutator = <=>, hashes);
create operator class null_ops for type int4 using hash as operator 1 <=>, function 1 null_hash(int);
insert into x values (1000, null, 'null'), (1001, null, 'null');
insert into y values (1000, null, 'null');
select j, hgj_check(format('select x.id, y.id from x %s join y on x.p <=> y.p and x.id <= y.id', j), 0, false) as alone,
	hgj_check(format('select x.id, y.id from x %s join y on x.p <=> y.p and x.q = y.q', j)) as with_a_key
from unnest('{inner,left,right,full}'::text[]) j;
-- a hash function that raises an error, or returns nothing but one value
create function bad_hash(int) returns int language plpgsql immutable strict as $$ begin if $1 = 29 then raise 'no hash for 29'; end if; return 7; end $$;
create function good_eq(int, int) returns bool language plpgsql immutable strict as $$ begin return $1 = $2; end $$;
create operator <==> (leftarg = int, rightarg = int, procedure = good_eq, commutator = <==>, hashes);
create operator class bad_ops for type int4 using hash as operator 1 <==>, function 1 bad_hash(int);
set hashgraph_join.force = on;
set hashgraph_join.require = join;
select count(*) from x join y on x.p <==> y.p;
reset hashgraph_join.force;
reset hashgraph_join.require;
select hgj_check('select x.id, y.id from (select * from x where p < 29 offset 0) x full join (select * from y where p < 29 offset 0) y on x.p <==> y.p');

-- keys that are subqueries and functions
select q, hgj_check(q) as says from unnest(array[
	'select x.id, y.id from x join y on x.p + (select min(p) from y) = y.p',
	'select x.id, y.id from x join y on (select z.p from y z where z.id = x.id) = y.p',
	'select x.id, y.id from x left join y on abs(x.p - 10) = abs(y.p - 15)',
	'select x.id, y.id from x full join y on x.p % 5 = y.p % 7 and left(x.q, 2) = left(y.q, 2)',
	'select x.id, y.id from x join y on coalesce(x.p, -1) = coalesce(y.p, -1)',
	'select x.id, y.id from x join y on nullif(x.p, 3) = nullif(y.p, 4)',
	'select x.id, y.id from x join y on (x.p > 10) = (y.p > 20) and x.id = y.id',
	'select x.id, y.id from x join y on x.p::text = y.p::text || ''''',
	'select x.id, y.id from x join y on array[x.p] = array[y.p] and x.id < y.id',
	'select x.id, y.id from x join y on to_jsonb(x.p) = to_jsonb(y.p * 1.0)']) q;

-- two implicit collations
create temp table coll (t text collate "C", u text collate "POSIX");
insert into coll select 'k' || g % 9, 'k' || g % 7 from generate_series(1, 50) g;
set hashgraph_join.force = on;
select count(*) from coll l join coll r on l.t = r.u;
reset hashgraph_join.force;
select hgj_check('select l.t, r.u from coll l join coll r on l.t = r.u collate "C"');

-- extreme values, dense and sparse ranges
create temp table e4 (k int4);
create temp table e8 (k int8);
insert into e4 values (-2147483648), (2147483647), (0), (-1), (1), (null), (2147483647);
insert into e8 select k from e4 union all values (-9223372036854775808), (9223372036854775807), (4294967295), (4294967296), (-4294967296), (2147483648);
analyze e4, e8;
select q, hgj_check_ways(q) as says from unnest(array[
	'select * from e4 full join e8 on e4.k = e8.k',
	'select * from e8 x full join e8 y on x.k = y.k',
	'select * from e8 x left join e8 y on x.k = y.k and x.k > 0',
	'select * from e4 x join e4 y on x.k = y.k',
	'select * from (select g from generate_series(1000000000000, 1000000000300) g) x right join (select 2 * g + 1000000000000 as g from generate_series(-10, 400) g) y using (g)']) q;
