-- Statements around a join: prepared, PL/pgSQL, CTEs, DML, locks.

-- prepared statements, generic and custom
set hashgraph_join.force = on;
set hashgraph_join.require = join;
prepare p(int, text) as select count(*), count(b.id), sum(a.id) from a left join b on a.k = b.k and b.v > $1 where a.t <> $2;
set plan_cache_mode = force_generic_plan;
explain (costs off) execute p(10, 'text 5');
execute p(10, 'text 5');
execute p(1000, 'text 5');
execute p(null, 'text 5');
execute p(10, null);
set plan_cache_mode = force_custom_plan;
execute p(10, 'text 5');
reset plan_cache_mode;
-- a plan of before stays as it was; a new one obeys the settings of now
prepare q as select count(*) from a join b using (k);
execute q;
set hashgraph_join.enabled = off;
explain (costs off) execute q;
execute p(10, 'text 5');
execute q;
set hashgraph_join.enabled = on;
-- the table changes under a plan
alter table b add column extra int default 9;
execute q;
alter table b drop column extra;
execute q;
deallocate all;

-- PL/pgSQL
create function loops(n int) returns table (i int, matches bigint) language plpgsql as $$
begin
	for i in 1 .. n loop
		select count(*) into matches from a join b on a.k = b.k and a.v > i;
		loops.i := i;
		return next;
	end loop;
end $$;
select * from loops(7);
do $$
declare
	r record;
	n int := 0;
begin
	for r in select a.id, b.id as bid from a join b using (k) order by 1, 2 loop
		n := n + 1;
		exit when n = 10;
	end loop;
	raise notice '% rows', n;
	for r in select a.id from a join b using (k) loop
		begin
			perform 1 / (r.id - r.id);
		exception when division_by_zero then
			n := n + 1;
		end;
		exit when n > 20;
	end loop;
	raise notice '% rows', n;
end $$;
create function raising(i int) returns int language plpgsql as $$ begin if i > 990 then raise 'row %', 'above 990'; end if; return i; end $$;
select sum(raising(a.id)) from a left join b using (k);
-- a function that joins, called for every row of a join
create function matches_of(k int) returns bigint language sql stable as $$ select count(*) from a join b on a.k = b.k where a.k = $1 $$;
reset hashgraph_join.require;
select sum(matches_of(c.k)) from c join a on c.id = a.id;
reset hashgraph_join.force;
select hgj_check('select c.id, matches_of(c.k) from c join a on c.id = a.id');

create temp table queries (q text, nodes int);
insert into queries values
	('with x as materialized (select a.id, k from a join b using (k)) select x.id, y.id from x join x y using (k)', 2),
	('with x as not materialized (select a.id, k from a join b using (k)) select x.id from x where id < 50', 1),
	('with x as (select a.id as n, c.id as m from a left join c on a.k = c.k) select n, count(m) from x group by n having count(m) > 1', 1),
	('select (select count(*) from a join b using (k)), (select max(a.id) from a full join c using (k)), c.id from c', 2),
	('select c.id from c where c.v > (select avg(a.v) from a join b using (k))', 1),
	('select c.id, array(select a.id from a join b using (k) where a.v = c.v order by a.id, b.id) from c', 1),
	('select k, count(*), sum(a.v), min(b.v), array_agg(a.id order by a.id, b.id) from a join b using (k) group by k', 1),
	('select distinct k, a.v % 3 from a join b using (k)', 1),
	('select distinct on (k) k, a.id from a join b using (k) order by k, a.id', 1),
	('select k, a.id, b.id, row_number() over (partition by k order by a.id, b.id), count(*) over (), sum(b.v) over (order by a.id range unbounded preceding) from a join b using (k)', 1),
	('select k, a.w, count(*), grouping(k, a.w) from a join b using (k) group by grouping sets ((k), (a.w), (k, a.w), ())', 1),
	('select k, a.w, count(*) from a full join b using (k) group by cube (k, a.w)', 1),
	('select a.id, generate_series(1, a.w) from a join b using (k) where a.id < 50', 1),
	('select a.id, unnest(array[a.k, b.v]), random() < 2 from a join b using (k)', 1),
	('select a.id, b.id, g from a join b using (k), generate_series(1, a.w % 3) g', 1),
	('select a.id, b.id from a join b using (k) order by 1, 2 limit 20 offset 10', 1),
	('select a.id, b.id from a join b using (k) order by 1 fetch first 20 rows with ties', 1),
	('select a.id from a join b using (k) union select c.id from c join a using (k)', 2),
	('select a.id from a join b using (k) except all select c.id from c join a using (k)', 2),
	('select a.id from a join b using (k) intersect select c.id from c join a using (k)', 2),
	('select a, b from a join b using (k) where a.id < 100', 1),
	('select (a).t, b.*, a.* from a left join b using (k)', 1),
	('select a.tableoid::regclass, a.ctid, b.ctid, a.xmin = a.xmin, b.cmin is null from a left join b using (k)', 1),
	('select coalesce(a.id, b.id), a.k, b.k, k from a full join b using (k)', 1),
	('select case when a.k > 50 then a.t else b.t end || coalesce(b.t, ''none'') from a left join b using (k)', 1),
	('select json_agg(x order by x.id, x.bid) from (select a.id, b.id as bid from a join b using (k) where a.id < 30) x', 1),
	('select a.id from a join b using (k) where a.id > all (select c.id from c where c.k = b.v)', 1),
	('select x.id from (select a.id, a.k from a offset 3) x join (select k from b limit 1000) y using (k)', 1),
	('select * from (a join b using (k)) as j (x, y, z)', 1),
	('select * from a join b using (k, w, t)', 1),
	('select * from rows from (generate_series(1, 100), generate_series(50, 80)) r(x, y) left join a on a.id = r.y', 1),
	('select * from json_to_recordset(''[{"k": 1}, {"k": 77}, {"k": null}]'') j(k int) left join b using (k)', 1);
select q, hgj_check(q, nodes) as says from queries;
set jit = on;
set jit_above_cost = 0;
set jit_inline_above_cost = -1;
set jit_optimize_above_cost = -1;
select hgj_check('select a.id, b.id, a.v + b.v from a full join b on a.k = b.k and a.v < b.v where coalesce(a.id, 1) > 0');
reset jit;
reset jit_above_cost;
reset jit_inline_above_cost;
reset jit_optimize_above_cost;

-- volatile functions in the target list are called once per row
create sequence calls;
set hashgraph_join.force = on;
set hashgraph_join.require = join;
select count(*) from (select nextval('calls') from a join b using (k) offset 0) s;
select currval('calls') = (select count(*) from a join b using (k)) as once_per_row;
reset hashgraph_join.force;
reset hashgraph_join.require;

-- data-modifying statements
select dml, hgj_check_dml(dml, 'a') as says from unnest(array[
	'update a set v = a.v + 1000, t = ''updated'' from b where a.k = b.k and a.w = b.w',
	'update a set v = c.v, t = c.t from c where a.id = c.id',
	'update a set k = a.k + 1 from b left join c using (k) where a.k = b.k',
	'update a set v = -1 where exists (select from b where a.k = b.k)',
	'update a set v = -1 where k in (select k from b where v > 20) and id > 3',
	'delete from a using b where a.k = b.k and b.v > a.v',
	'delete from a where not exists (select from b where a.k = b.k)',
	'delete from a using b left join c on b.k8 = c.k8 where a.k = b.k and c.id is null',
	'insert into a select a.* from a join b using (k)',
	'insert into a select a.id + 1000, c.k, c.k8, c.t, a.v, c.w from a full join c using (k)',
	'with gone as (delete from a using b where a.k = b.k returning a.id, a.v) insert into a select id + 5000, v from gone',
	'with x as (select a.id from a join b using (k)) update a set t = ''x'' from x where x.id = a.id',
	'merge into a using c on a.id = c.id when matched and a.v > 10 then update set v = c.v, t = ''merged'' when matched then delete when not matched then insert (id, t) values (c.id, ''new'')',
	'merge into a using c on a.id = c.id + 900 when matched then do nothing when not matched and c.v > 5 then insert values (c.id + 10000, c.k, c.k8, c.t, c.v, c.w)']) dml;
-- the row of a subquery travels along for EvalPlanQual, as a record
select hgj_check_dml('update a set v = s.n from (select k, count(*) as n from b group by k) s where a.k = s.k', 'a');
set hashgraph_join.force = on;
set hashgraph_join.require = join;
begin;
with d as (delete from a using c where a.id = c.id + 500 and c.v < 5 returning a.id, c.v) select count(*), sum(id), sum(v) from d;
select sum(id) from a where id between 500 and 700;
update a set v = 7 from c where a.id = c.id and c.id = 12 returning a.id, a.v, c.t, c.ctid is not null as ctid;
insert into none select a.* from a join c on a.id = c.id where c.id < 4 returning id - id as zero, v is null as empty;
rollback;
begin;
create temp table made as select a.id, b.id as bid from a join b using (k);
select count(*) from made;
insert into none select a.* from a join c on a.id = c.id;
select count(*) from none;
create materialized view seen as select k, count(*) as n from a join b using (k) group by k;
select count(*), sum(n) from seen;
refresh materialized view seen;
select count(*), sum(n) from seen;
rollback;
copy (select count(*) from a join b using (k)) to stdout;
-- two source rows for one target row
merge into c using a on c.k = a.k when matched then update set v = a.v;

-- row locks
begin;
select count(*) from (select a.id from a join b using (k) for update of a) s;
select count(*) from (select a.id from a left join b using (k) for share of a skip locked) s;
select count(*) from (select a.id from a join c using (k) for no key update) s;
explain (costs off) select a.id from a join b using (k) for update of a;
rollback;
-- serializable, read only, deferrable
begin isolation level serializable read only deferrable;
select count(*) from a join b using (k);
commit;
begin isolation level repeatable read;
select count(*) from a join b using (k);
delete from a where id < 500;
select count(*) from a join b using (k);
rollback;
reset hashgraph_join.force;
reset hashgraph_join.require;
-- what a query has changed itself it does not see
select hgj_check_dml('with x as (update b set k = 1 returning id), y as (select a.id from a join b using (k)) insert into a select y.id + 2000 from y', 'a');
