-- What the planner is told of keys and of HAVING, beyond PostgreSQL's estimates.
create table lines (ord int, line int, qty int, price numeric(8,2), late bool, primary key (ord, line)) with (autovacuum_enabled = off);
insert into lines select o, l, (o * 7 + l * 13) % 50 + 1, (o * 11 + l) % 1000 / 4.0, (o + l) % 3 = 0 from generate_series(1, 20000) o, generate_series(1, 1 + o % 5) l order by 1, 2;
-- what a sample of a much larger table says of rows that stand together
alter table lines alter ord set (n_distinct = 500);
analyze lines;

-- The rows that are expected of a query, by PostgreSQL and with us.
create function hgj_expected(q text, ours bool) returns float8 language plpgsql as $$
declare
	plan json;
begin
	perform set_config('hashgraph_join.enabled', ours::text, true);
	execute 'explain (format json) ' || q into plan;
	perform set_config('hashgraph_join.enabled', 'on', true);
	return plan -> 0 -> 'Plan' ->> 'Plan Rows';
end $$;
create function hgj_compare(q text, low float8, high float8) returns text language sql as $$
	select case when o between low and high then 'ours as it should be' else 'ours ' || o end ||
		case when p between low and high then ', PostgreSQL''s as well' else '' end
	from hgj_expected(q, true) o, hgj_expected(q, false) p
$$;

set hashgraph_join.min_rows = 1000;
-- a clustered column of a unique index: 20,000 values
select hgj_compare('select ord from lines group by ord', 15000, 25000);
-- not where the table is small, nor where its rows do not stand in the column's order
set hashgraph_join.min_rows = 100000;
select hgj_compare('select ord from lines group by ord', 15000, 25000);
set hashgraph_join.min_rows = 1000;
create table mixed (like lines including all) with (autovacuum_enabled = off);
insert into mixed select * from lines order by md5(ord::text), line;
alter table mixed alter ord set (n_distinct = 500);
analyze mixed;
select hgj_compare('select ord from mixed group by ord', 15000, 25000);

-- an anti join whose inner side's condition takes all rows of some values
select hgj_compare('select * from lines a where not exists (select from lines b where b.ord = a.ord and b.late)', 4000, 40000);
select hgj_compare('select * from lines a left join lines b on b.ord = a.ord and b.qty < 10 and b.late where b.ord is null', 20000, 60000);
-- without a condition there is nothing to correct
select hgj_compare('select * from lines a where not exists (select from lines b where b.ord = a.ord)', 1, 100);

-- HAVING: sums, counts and averages, from either side; a third of the groups is what nothing is known of
select hgj_compare('select ord from lines group by ord having sum(qty) > 300', 100, 500);
select hgj_compare('select ord from lines group by ord having sum(price) < 10000', 15000, 25000);
select hgj_compare('select ord from lines group by ord having 12 < count(*)', 100, 500);
select hgj_compare('select ord from lines group by ord having avg(qty) >= 25', 8000, 12000);
select hgj_compare('select ord from lines group by ord having sum(qty) > 150 and count(*) < 100', 300, 3000);
select hgj_compare('select ord from lines group by ord having max(qty) > 300', 5000, 8500);
select hgj_compare('select ord from lines group by ord having sum(qty * 2) > 300', 5000, 8500);
reset hashgraph_join.min_rows;
drop function hgj_compare(text, float8, float8);
drop function hgj_expected(text, bool);
drop table lines, mixed;
