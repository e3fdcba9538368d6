-- Subqueries whose rows may raise errors: they are joins for the groups in which none does.
create table parts (id int primary key, box int, size smallint, qty int, price int, units bigint, weight numeric(10,2), made date, sold timestamp, seen timestamptz) with (autovacuum_enabled = off);
insert into parts select g, nullif(g % 40, 13), g % 9, nullif(g % 23, 5), case when g % 29 <> 0 then g * 131 % 5000 end, g * 1000003 % 99991, g % 77 / 4.0,
	date '2024-01-01' + g % 300, timestamp '2024-03-01' + g % 90 * interval '7 hours', timestamptz '2024-02-01 00:00+00' + g % 50 * interval '1 day' from generate_series(1, 1200) g;
-- groups with what overflows: 1 and 2; with what a guard takes for too much: 3 and 4
insert into parts values (2001, 1, 32767, 2147483647, 2, 9223372036854775807, 1, 'infinity', 'infinity', 'infinity'),
	(2002, 2, -32768, -2147483648, -1, -9223372036854775808, 1, '-infinity', '-infinity', '-infinity'), (2003, 3, 1, 1, 1, 9000000000000000000, 1, '5000000-01-01', '20000-01-01', '20000-01-01 00:00+00'),
	(2004, 4, 0, 0, 0, -9000000000000000000, 1, '4700-01-01 BC', '4700-01-01 BC', '4700-01-01 00:00+00 BC');
create table boxes (id int primary key, lim int, name text) with (autovacuum_enabled = off);
insert into boxes select g, g * 37 % 1000, 'box ' || g from generate_series(1, 60) g;
analyze parts, boxes;
set hashgraph_join.min_rows = 0;

-- Whether the subquery is a join, whether answers are equal, and for how many rows it runs as it is written
create function guarded(value text, wheres text default 'true', boxes text default 'o.id > 2') returns text language plpgsql as $$
declare
	q text := format('select o.id, o.name, (select %s from parts p where p.box = o.id and %s) from boxes o where %s', value, wheres, boxes);
	line text;
	runs text;
begin
	perform set_config('hashgraph_join.rewrite', 'force', true);
	for line in execute 'explain (analyze, costs off, timing off, summary off) ' || q loop
		if runs = 'next' then
			runs := coalesce(substring(line from 'loops=(\d+)'), '0');
		elsif line ~ 'SubPlan' then
			runs := 'next';
		end if;
	end loop;
	return hgj_hidden(q) || ', ' || coalesce(runs, 'no') || ' runs';
end $$;
-- Its error, as it is written and rewritten, for a box.
create function guard_says(value text, box int, wheres text default 'true') returns text language plpgsql as $$
declare
	q text := format('select o.id, (select %s from parts p where p.box = o.id and %s) from boxes o where o.id >= %s', value, wheres, box);
	written text;
	ours text;
begin
	perform set_config('hashgraph_join.enabled', 'off', true);
	written := hgj_says(q);
	perform set_config('hashgraph_join.enabled', 'on', true);
	perform set_config('hashgraph_join.rewrite', 'force', true);
	ours := hgj_says(q);
	return ours || case when written <> ours then ', not: ' || written else '' end;
end $$;

-- integers of all sizes, NULLs, constants, nested ones
select guarded('sum(qty * price)');
select guarded('sum(qty + price)');
select guarded('max(price - qty)');
select guarded('min(-qty)');
select guarded('sum(abs(qty - price))');
select guarded('sum(@ qty)');
select guarded('avg(size * qty)');
select guarded('sum(size * size)');
select guarded('sum(units * qty)');
select guarded('sum(units + 1)');
select guarded('sum(price * 1000)');
select guarded('sum(qty * price * (100 - size))');
select guarded('sum(size * size * size * size * size * size * size)', 'size < 4');
select guarded('max(units * qty - price / 2)');
select guarded('sum((qty + price)::smallint)');
select guarded('max(units::int)', 'id < 2000');
select guarded('sum((units / 100)::int * size)', 'true', 'o.id > 4');
select guarded('sum(case when price > 2000 then qty * price else -qty end)');
select guarded('sum(coalesce(qty * price, 1))');
select guarded('count(distinct qty * size)');
select guarded('sum((qty * price)::numeric * weight)');
select guarded('sum(qty * price) / nullif(sum(qty), 0)');
select guarded('coalesce(sum(qty * price), 0) + count(*)');
select guarded('bool_or(qty * price > o.lim)');
select guarded('bool_or(qty * price > 100)');
-- divisors
select guarded('sum(price / qty)', 'qty <> 0');
select guarded('sum(price / nullif(qty, 0))');
select guarded('sum(price % nullif(size, 0))');
select guarded('sum(case when qty <> 0 then price / qty end)');
select guarded('sum(price / qty) filter (where qty > 0)');
select guarded('sum(price / size) filter (where 100 / qty > 1)', 'size <> 0 and qty <> 0');
-- dates
select guarded('max(made - date ''2020-01-01'')');
select guarded('max(made + 30)');
select guarded('min(made - qty)');
select guarded('min(made + qty * 7)');
select guarded('max(made + interval ''1 month'')', 'true', 'o.id > 4');
select guarded('max(sold - interval ''3 days'')');
select guarded('max(seen + interval ''2 hours'')');
select guarded('sum(extract(epoch from sold - timestamp ''2024-01-01''))', 'true', 'o.id > 4');
select guarded('bool_and(sold - seen::timestamp > interval ''1 day'')');
select guarded('sum((made - date ''2024-01-01'') * qty)');
-- clauses
select guarded('count(*)', 'qty * price > 1000');
select guarded('count(*)', 'qty <> 0 and price / qty > 100');
select guarded('sum(qty + 1)', '(qty * price > 1000 or made + 7 > date ''2024-05-01'')');
select guarded('max(id)', 'made > current_date - 36500 and seen > now() - interval ''100 years'' and sold < localtimestamp');
select guarded('max(id)', 'made between date ''2024-03-01'' and date ''2024-03-01'' + interval ''1 month''');
-- errors come for the rows that ask for them
select guard_says('sum(qty * price)', 1), guard_says('sum(qty * price)', 2), guard_says('sum(qty * price)', 3);
select guard_says('sum(-qty)', 2), guard_says('sum(abs(qty))', 2), guard_says('max(size * size * size)', 1);
select guard_says('sum(units + 1)', 1), guard_says('sum(units * 2)', 2), guard_says('sum(units * 2)', 3), guard_says('sum(units::int)', 4);
select guard_says('sum(price / qty)', 3), guard_says('sum(price % qty)', 4), guard_says('sum(qty / price)', 2);
select guard_says('max(made - date ''2020-01-01'')', 1), guard_says('max(made + 1)', 1), guard_says('max(made + 2147483647)', 3), guard_says('max(made - interval ''100 years'')', 4);
select guard_says('count(*)', 1, 'qty * price > 1000'), guard_says('count(*)', 3, 'price / qty > 1');
select guard_says('sum(price / size) filter (where 100 / qty > 1)', 3);

-- where a subquery may stand
select hgj_hidden('select id from boxes o where lim < (select sum(qty * price) / 1000 from parts p where p.box = o.id) and id > 2');
select hgj_hidden('select o.id, q.id from boxes o left join boxes q on q.id = o.lim and q.lim < (select sum(qty * price) from parts p where p.box = q.id) where o.id > 2');
select hgj_hidden('select count(*), sum((select sum(qty + price) from parts p where p.box = o.id)) from boxes o where id > 2');
select hgj_hidden('select o.lim % 5, max(lim), (select sum(qty * price) from parts p where p.box = max(o.id)) from boxes o group by o.lim % 5 having min(o.id) > 2');
select hgj_hidden('select o.id, (select sum(qty * price) from parts p where p.box = o.id and p.size < (select max(q.size + 1) from parts q where q.box = p.box and q.id < 2000)) from boxes o where id > 4');
select hgj_hidden('select x.s, count(*) from (select o.id, (select sum(qty * price) from parts p where p.box = o.id) s from boxes o where id > 2) x where x.s > 1000000 group by x.s');
create view totals as select o.id, o.name, (select sum(qty * price) from parts p where p.box = o.id) total from boxes o;
select hgj_hidden('select t.id, t.total from totals t where t.id > 2 and t.total > 100');
set hashgraph_join.rewrite = force;
select hgj_says('select id from boxes o where lim < (select sum(qty * price) from parts p where p.box = o.id)');
select hgj_says('select id from boxes o where id > 2 and lim < (select sum(qty * price) from parts p where p.box = o.id)');
select hgj_says('select id from totals where id <= 2 and total > 100');
prepare totals_of(int) as select o.id, (select sum(qty * $1) from parts p where p.box = o.id) from boxes o where id > 2 and id < 6;
execute totals_of(2);
execute totals_of(2147483647);
reset hashgraph_join.rewrite;

-- what stays: conditions of groups, what no guard is known for, rows that are compared one by one
select hgj_hidden('select o.id, (select sum(qty * price) from parts p where p.box = o.id group by p.box having count(*) > 2) from boxes o where id > 2');
select hgj_hidden('select o.id, (select max(weight / nullif(qty, 0)) from parts p where p.box = o.id) from boxes o where id > 4');
select hgj_hidden('select o.id, (select max((sqrt(abs(qty)))::int) from parts p where p.box = o.id) from boxes o where id > 4');
select hgj_hidden('select o.id, (select sum(price + ln(qty + 1)::int) from parts p where p.box = o.id and qty + 1 > 0) from boxes o where id > 4');
select hgj_hidden('select o.id, (select max(made + ln(qty + 1)::int) from parts p where p.box = o.id and qty + 1 > 0) from boxes o where id > 4');
select hgj_hidden('select o.id from boxes o where id > 4 and lim > all (select qty * price from parts p where p.box = o.id)');
select hgj_hidden('select o.id, (select sum(qty * price) from parts p where p.box + 1 = o.id) from boxes o where id > 5');
-- values of domains are compared as nothing else
create domain hgj_count as int;
create domain hgj_units as bigint;
alter table parts add counted hgj_count, add many hgj_units;
update parts set counted = case when box = 5 then 100000 else size end, many = case when box = 5 then 1::bigint << 40 else size end;
select hgj_hidden('select id, case when id > 5 then (select max(counted::smallint) from parts p where p.box = o.id) end from boxes o where id > 4');
select hgj_hidden('select id, case when id > 5 then (select max(many::int) from parts p where p.box = o.id) end from boxes o where id > 4');
select hgj_hidden('select id, case when id > 5 then (select max(date ''2024-01-01'' + many::int) from parts p where p.box = o.id) end from boxes o where id > 4');
select hgj_hidden('select id, (select sum(counted + 1) from parts p where p.box = o.id) from boxes o where id > 4');
-- a clause raises its error before one that PostgreSQL evaluates behind it removes the row
select guard_says('count(*)', 3, '10 / size > 0 and qty % 7 = 8'), guard_says('count(*)', 3, 'qty % 7 = 8 and 10 / size > 0'), guard_says('count(*)', 3, 'qty + 1 < 0 and 10 / size > 0'), guard_says('count(*)', 3, 'size <> 0 and 10 / size > 0');
select guard_says('count(*)', 50, 'size <> 0 and current_date - date ''infinity'' <> 0'), guard_says('count(*)', 50, 'size <> 0 and 10 / size > 1');
select guarded('count(*)', 'size <> 0 and 10 / size > 1 and qty % 7 = 3 and price + 1 > 5');
-- what is computed of guarded values has no guard, and no plan takes long
select hgj_hidden(format('select id, (select sum(%s) from parts p where p.box = o.id) from boxes o where id > 2', (with recursive e as (select 0 n, 'qty' e union all select n + 1, format('nullif(%s, 0) + 1', e) from e where n < 30) select e from e where n = 30)));
select hgj_hidden(format('select id, (select sum(%s) from parts p where p.box = o.id) from boxes o where id > 2', (with recursive e as (select 0 n, 'size + 1' e union all select n + 1, format('coalesce(%s, 0) + 1', e) from e where n < 30) select e from e where n = 30)));
select hgj_hidden(format('select id, (select sum(%s) from parts p where p.box = o.id) from boxes o where id > 2', (with recursive e as (select 0 n, 'size + 1' e union all select n + 1, format('case when qty + 1 > %s then %s + 1 else 3 end', n, e) from e where n < 30) select e from e where n = 30)));
select hgj_hidden(format('select id, (select sum(%s) from parts p where p.box = o.id) from boxes o where id > 2', (with recursive e as (select 0 n, 'size + 1' e union all select n + 1, format('case when %s > 1 then size + 1 else 3 end', e) from e where n < 20) select e from e where n = 20)));
select hgj_hidden('select id, (select sum(' || repeat('size + ', 300) || '1) from parts p where p.box = o.id) from boxes o where id > 2');
select hgj_hidden('select id, (select sum(' || repeat('case when qty * 2 > 1 then size * 2 else 0 end + ', 40) || '1) from parts p where p.box = o.id) from boxes o where id > 2');
-- a plan of what is written is charged for its own CASE
create table flags as select g as k, g % 50 = 0 as f from generate_series(1, 3000) g;
create table much as select g % 200 as k, g as v from generate_series(1, 6000) g;
analyze flags, much;
select reason from hashgraph_join_why('select k, case when f is false then (select max(v) from much p where p.k = o.k) end from flags o') where node = 'Subquery';
drop table flags, much;
deallocate totals_of;
reset hashgraph_join.min_rows;
drop function guarded, guard_says;
drop view totals;
drop table parts, boxes;
drop domain hgj_count, hgj_units;
