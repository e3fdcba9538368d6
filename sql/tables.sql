-- What tables can be: TOAST, dropped and added columns, inheritance,
-- temporary tables, generated columns, whole rows, system columns, wide rows.

-- compressed and external values, as keys and as cargo
create temp table big (id int, k text, cargo text) with (autovacuum_enabled = off);
alter table big alter k set storage external;
insert into big select g, case when g % 9 <> 0 then repeat(md5((g % 40)::text), 100) end,
	case when g % 4 <> 0 then repeat('cargo ' || g, 3000) end from generate_series(1, 200) g;
create temp table big2 (id int, k text, cargo text) with (autovacuum_enabled = off);
insert into big2 select g, case when g % 7 <> 0 then repeat(md5((g % 60)::text), 100) end,
	(select string_agg(md5(g || ' ' || j), '') from generate_series(1, 200) j) from generate_series(1, 150) g;
analyze big, big2;
select bool_or(pg_column_size(k) > 3000) as external, (select bool_or(pg_column_size(k) < 1000) from big2) as compressed from big;
select q, hgj_check(q) as says from unnest(array[
	'select x.id, y.id from big x join big2 y on x.k = y.k',
	'select x.id, y.id, x.cargo, y.cargo from big x join big2 y on x.k = y.k',
	'select x.id, y.id, md5(x.k), y.cargo from big x full join big2 y on x.k = y.k and x.id < y.id',
	'select x, y from big x left join big2 y on x.k = y.k where x.id < 40',
	'select x.id, x.cargo from big x where not exists (select from big2 y where y.k = x.k and length(y.cargo) > length(x.cargo))',
	'select x.id, y.cargo from big x join big2 y on substr(x.cargo, 1, 9) = substr(''cargo '' || y.id, 1, 9)',
	'select substr(y.cargo, 1, 100), x.id from c x right join big2 y on x.id = y.id']) q;
set work_mem = '64kB';
select hgj_check('select x.id, y.id, x.cargo, y.cargo from big x full join big2 y on x.k = y.k');
reset work_mem;
-- values that only the statement's own snapshot keeps alive
set hashgraph_join.force = on;
set hashgraph_join.require = join;
begin;
declare cur cursor for select count(*) over () as n, length(x.cargo) + length(y.cargo) > 100 as long from big x join big2 y on x.k = y.k;
delete from big;
fetch 1 from cur;
rollback;
reset hashgraph_join.force;
reset hashgraph_join.require;

-- columns dropped and added
create temp table altered (gone1 text, id int, gone2 int8, k int, t text) with (autovacuum_enabled = off);
insert into altered select 'gone', g, g, g % 100, 'text ' || g % 50 from generate_series(1, 300) g;
alter table altered drop column gone1;
alter table altered add column late int default 42, add column late_null text;
insert into altered (id, k, t, late, late_null) select g, g % 100, 'text', 43, 'there' from generate_series(301, 400) g;
alter table altered drop column gone2;
alter table altered add column never_null text not null default 'fast default';
analyze altered;
select q, hgj_check(q) as says from unnest(array[
	'select * from altered x join a using (k)',
	'select a.id, x.* from altered x right join a using (k)',
	'select x from altered x full join a using (k)',
	'select x.late, x.late_null, x.never_null, a.id from a left join altered x on x.late = a.id',
	'select x.id, y.id from altered x join altered y on x.late = y.id and x.never_null = y.never_null']) q;

-- inheritance, with children of another layout
create temp table parent (id int, k int, t text);
create temp table child1 (extra int8, t text, id int, k int);
alter table child1 inherit parent;
create temp table child2 () inherits (parent);
create temp table grandchild (more text) inherits (child2);
insert into parent select g, g % 50, 'parent' from generate_series(1, 100) g;
insert into child1 select g, 'child', g, g % 60 from generate_series(1, 100) g;
insert into child2 select g, g % 70, null from generate_series(1, 100) g;
insert into grandchild select g, g % 80, 'grandchild', 'more' from generate_series(1, 100) g;
analyze parent, child1, child2, grandchild;
select q, hgj_check(q) as says from unnest(array[
	'select p.id, p.t, a.id from parent p join a using (k)',
	'select p.tableoid::regclass, p.ctid, p, a.id from parent p left join a using (k)',
	'select p.id, a.id from only parent p full join a using (k)',
	'select p.id, q.id from parent p join parent q on p.k = q.k and p.tableoid <> q.tableoid']) q;
-- a target with children: that join stays PostgreSQL's
select dml, hgj_check_dml(dml, 'parent', 0, false) as says from unnest(array[
	'update parent p set t = ''updated'' from a where a.k = p.k and a.id < 100',
	'delete from parent p using a where a.k = p.k and p.id < a.v']) dml;
select hgj_check_dml('update only parent p set t = ''updated'' from a where a.k = p.k', 'parent');

-- system columns and whole rows of both sides, from below outer joins too
select q, hgj_check(q) as says from unnest(array[
	'select x.ctid, y.ctid, x.tableoid, y.tableoid, x.xmin, y.cmax from a x full join b y using (k)',
	'select x, y from a x full join b y on x.k = y.k and x.v < y.v',
	'select x is null, y is null, x is not null, (x).id, (y).t from a x full join b y on x.k = y.k and x.v < y.v',
	'select x.id from a x join b y on (x.k, x.v)::text = (y.k, y.v)::text',
	'select x.id, y.id from a x join a y on x.ctid = y.ctid',
	'select x.id, y.id from (select a as row, id from a) x join (select a as row, id from a) y on x.row = y.row',
	'select row(x.id, y.id), array[x.id, y.id], x.t || y.t from a x join b y using (k)']) q;

-- generated columns, identity, arrays, composites, domains with checks
create temp table gen (id int generated always as identity, k int, twice int generated always as (k * 2) stored, arr int[], d date default '2000-01-01');
insert into gen (k, arr) select g % 40, array_fill(g, array[g % 5]) from generate_series(1, 150) g;
analyze gen;
select q, hgj_check(q) as says from unnest(array[
	'select gen.*, a.id from gen join a on a.k = gen.twice',
	'select g.id, h.id from gen g join gen h on g.arr = h.arr and g.id <> h.id',
	'select g.id, a.id from gen g left join a on a.id = g.arr[1]',
	'select g.id, a.id from gen g left join a on a.id = cardinality(g.arr)']) q;

-- many columns, and a row wider than a page's quarter
do $$
declare
	wide text := (select string_agg(format('%s as c%s', case i % 4 when 0 then 'g' when 1 then 'null::int8' when 2 then '''text '' || g' else 'g::numeric / 3' end, i), ', ') from generate_series(1, 300) i);
begin
	execute 'create temp table wide as select g % 50 as k, ' || wide || ' from generate_series(1, 120) g';
end $$;
analyze wide;
select hgj_check('select * from wide x join c on x.k = c.k');
select hgj_check('select x.c300, y.c298, y from wide x full join wide y on x.k = y.c4 + 3');

-- unlogged, and a foreign table's like: a function in FROM
create unlogged table unlogged_c as select * from c;
analyze unlogged_c;
select hgj_check('select x.id, a.id from unlogged_c x right join a using (k)');
drop table unlogged_c;
create function set_of_c() returns setof c language plpgsql as $$ begin return query select * from c; end $$;
select hgj_check('select x.id, a.id, x from set_of_c() x full join a using (k)');
-- the catalogs
select hgj_check('select c.relname, a.attname, t.typname from pg_class c join pg_attribute a on a.attrelid = c.oid join pg_type t on t.oid = a.atttypid where c.oid < 16384', 2);
