-- Partial aggregation by workers, and of partitions: which plans have it, and
-- that PostgreSQL finishes it right, whatever is grouped by.
set jit = off;
create table lo (id int, cust int, part int, sold int, revenue int, cost int) with (autovacuum_enabled = off);
insert into lo select g, g * 7919 % 900, g * 104729 % 1500, g % 700, g % 3000, g % 37 from generate_series(1, 20000) g;
create table cust (id int, nation varchar(15), city char(12), n numeric, loose text, tags text[], q float8) with (autovacuum_enabled = off);
create collation agg_loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
alter table cust alter loose type text collate agg_loose;
insert into cust select g, 'nation ' || g % 25, 'city ' || g % 60, (array[1.0, 1.00, 2.5, 2.50, 3])[1 + g % 5], (array['a', 'A', 'b', 'B', null])[1 + g % 5],
	array['t' || g % 4, nullif('u' || g % 3, 'u1')], (array['-0', '0', 'nan', 'inf', null])[1 + g % 5]::float8 from generate_series(1, 850) g;
create table part (id int primary key, brand varchar(9), category varchar(7)) with (autovacuum_enabled = off);
insert into part select g, 'b#' || g % 40, 'c#' || g % 5 from generate_series(1, 1400) g;
create table days (id int primary key, day date, year int) with (autovacuum_enabled = off);
insert into days select g, date '1992-01-01' + g * 3, 1992 + g * 3 / 365 from generate_series(0, 699) g;
analyze lo, cust, part, days;

-- hgj_check_agg() where the forced plan must have a partial aggregation of ours below a Gather
create function hgj_check_partial(q text, nodes int default 1) returns text language sql
as $$ select hgj_check_agg(q, nodes, 'Parallel Custom Scan \(HashGraphAgg\)', 'partial HashGraphAgg') $$;

set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
-- agg_exchange.sql is about the other way
set hashgraph_join.parallel_aggregate = partial;
set min_parallel_table_scan_size = 0;
set max_parallel_workers_per_gather = 2;
set hashgraph_join.min_rows = 100;
set hashgraph_join.startup_cost = 0;
set hashgraph_join.require = aggregate;
-- by cost: a star's groups in the order of the group columns, in another, in none
select hgj_shape('select sum(revenue), year, brand from lo join days on sold = days.id join part on part = part.id where category = ''c#1'' group by year, brand order by year, brand');
select hgj_shape('select nation, brand, year, sum(revenue - cost) as profit from lo join days on sold = days.id join part on part = part.id join cust on cust = cust.id group by 1, 2, 3 order by year, profit desc');
select hgj_shape('select nation, sum(revenue) from lo join cust on cust = cust.id group by nation having count(*) > 3');
select hgj_shape('select extract(year from days.day) as y, substring(category, 1, 3) as c, sum(revenue) from lo join days on sold = days.id join part on part = part.id group by 1, 2 order by 1, 2');
select hgj_shape('select nation from lo join cust on cust = cust.id group by nation order by nation');
-- one process: the order that PostgreSQL's grouping by sorting would give for nothing
set max_parallel_workers_per_gather = 0;
select hgj_shape('select lo.id, nation, count(*) from lo join cust on cust = cust.id group by lo.id, nation order by lo.id, nation');
select hgj_shape('select nation, count(*) from lo join cust on cust = cust.id group by lo.id, nation order by nation');
select hgj_shape('select nation, rank() over (order by nation) from lo join cust on cust = cust.id group by nation');
set max_parallel_workers_per_gather = 2;
-- where ours costs too much, "require" sees that PostgreSQL has taken it
set hashgraph_join.agg_tuple_cost = 1000;
select hgj_shape('select nation, sum(revenue) from lo join cust on cust = cust.id group by nation');
set hashgraph_join.require = join;
select hgj_shape('select nation, sum(revenue) from lo join cust on cust = cust.id group by nation');
set hashgraph_join.force = on;
set hashgraph_join.require = aggregate;
select hgj_shape('select nation, sum(revenue) from lo join cust on cust = cust.id group by nation order by nation');
reset hashgraph_join.agg_tuple_cost;
reset hashgraph_join.force;
-- what stays PostgreSQL's, and why
set hashgraph_join.require = off;
set client_min_messages = debug1;
create function agg_restricted(int) returns int language plpgsql immutable parallel restricted as 'begin return $1; end';
select hgj_shape('select nation, percentile_disc(0.5) within group (order by part) from lo join cust on cust = cust.id group by nation');
select hgj_shape('select nation, string_agg(brand, '','' order by brand) from lo join cust on cust = cust.id join part on part = part.id group by nation');
select hgj_shape('select nation, brand, sum(revenue) from lo join cust on cust = cust.id join part on part = part.id group by rollup (nation, brand)');
select hgj_shape('select nation, xmlagg(null) from lo join cust on cust = cust.id group by nation');
select hgj_shape('select nation, sum(agg_restricted(revenue)) from lo join cust on cust = cust.id group by nation');
set enable_hashagg = off;
select hgj_shape('select nation, sum(revenue) from lo join cust on cust = cust.id group by nation');
reset enable_hashagg;
reset client_min_messages;
-- ... and is compared at what rows from workers cost, not at what parallel_tuple_cost says
set parallel_tuple_cost = 0.1;
select hgj_shape('select nation, percentile_disc(0.5) within group (order by part) from lo join cust on cust = cust.id group by nation');
select hgj_check('select nation, percentile_disc(0.5) within group (order by part) from lo join cust on cust = cust.id group by nation');
set parallel_tuple_cost = 10;
select hgj_shape('select nation, percentile_disc(0.5) within group (order by part) from lo join cust on cust = cust.id group by nation');
set parallel_tuple_cost = 0;
-- what workers share is to outweigh what each of them does
set hashgraph_join.agg_tuple_cost = 1;
set hashgraph_join.build_tuple_cost = 0;

-- answers, with much and little memory, with the leader and without it
create temp table queries (q text);
insert into queries values
	('select sum(revenue), year, brand from lo join days on sold = days.id join part on part = part.id group by year, brand order by year, brand'),
	('select nation, city, year, sum(revenue - cost) as profit from lo join days on sold = days.id join cust on cust = cust.id group by 1, 2, 3 order by year, profit desc'),
	('select nation, sum(revenue), avg(cost) from lo join cust on cust = cust.id group by nation having sum(revenue) % 3 = 0 and count(*) > 3'),
	('select lo.id, count(*), sum(revenue), min(nation), max(n), avg(n) from lo join cust on cust = cust.id group by lo.id'),
	('select lo.id, nation, sum(n), max(city), sum(q) from lo left join cust on cust = cust.id and year(cust) > 0 group by lo.id, nation'),
	('select extract(year from days.day) as y, substring(brand, 1, 3) as b, sum(revenue) from lo join days on sold = days.id join part on part = part.id group by 1, 2 order by 1, 2'),
	('select part.id, brand, category, count(*), sum(revenue) from lo join part on part = part.id group by part.id'),
	('select count(*), sum(revenue), min(loose collate "C") from lo left join cust on cust = cust.id group by lower(loose) collate "C"'),
	('select count(*), sum(revenue) from lo join cust on cust = cust.id group by loose'),
	('select count(*), sum(revenue) from lo left join cust on cust = cust.id group by n'),
	('select count(*), sum(revenue), max(lo.id) from lo join cust on cust = cust.id group by n, loose, q, city'),
	('select tags, count(*), sum(revenue) from lo left join cust on cust = cust.id group by tags'),
	('select tags, city, lo.id % 100, count(*), max(tags) from lo left join cust on cust = cust.id group by 1, 2, 3'),
	('select q is null, count(*), sum(cost) from lo left join cust on cust = cust.id group by q'),
	('select nation, brand from lo join cust on cust = cust.id join part on part = part.id group by nation, brand order by nation'),
	('select nation, sum(revenue) filter (where year > 1994), bool_or(cost > 35) from lo join cust on cust = cust.id join days on sold = days.id group by nation'),
	('select nation, 7 as seven, count(*) from lo join cust on cust = cust.id where nation = ''nation 3'' group by nation, seven order by nation');
update queries set q = replace(q, ' and year(cust) > 0', ' and cost < 30');
select hgj_check_partial(q) as says, count(*) from queries group by 1;
set parallel_leader_participation = off;
select hgj_check_partial(q) as says, count(*) from queries group by 1;
set work_mem = '64kB';
select hgj_check_partial(q) as says, count(*) from queries group by 1;
set hashgraph_join.source = tuples;
select hgj_check_partial(q) as says, count(*) from queries group by 1;
reset hashgraph_join.source;
-- the helper can fail
select hgj_check_partial('select nation, percentile_disc(0.5) within group (order by part) from lo join cust on cust = cust.id group by nation') as says;

-- a full table is returned and emptied, within the limit, and nothing is written
create function hgj_rounds(q text) returns table (emptied bool, spilled bool, within_limit bool, rows_agree bool) language plpgsql as $$
declare
	agg jsonb := jsonb_path_query_first(hgj_plan_json(q), 'strict $.** ? (@."Custom Plan Provider" == "HashGraphAgg")');
begin
	return query select bool_or((p ->> 'Times Emptied')::int > 0), bool_or((p ->> 'Spilled Rows')::int > 0),
		max((p ->> 'Memory Usage')::int) < 1.2 * (select setting::int from pg_settings where name = 'work_mem') * current_setting('hash_mem_multiplier')::float8,
		abs(sum((p ->> 'Groups')::int) - max((agg ->> 'Actual Rows')::numeric * (agg ->> 'Actual Loops')::int)) <= max((agg ->> 'Actual Loops')::int)
	from hgj_process_reports(agg) p;
end $$;
set hashgraph_join.force = on;
select * from hgj_rounds('select lo.id, sum(revenue) from lo join part on part = part.id group by lo.id');
select * from hgj_rounds('select lo.id, nation, max(city), sum(n) from lo join cust on cust = cust.id group by lo.id, nation');
select * from hgj_rounds('select year, sum(revenue) from lo join days on sold = days.id group by year');
-- and is not what a rescan returns again
set enable_material = off;
set enable_memoize = off;
select hgj_check_partial('select g, x.* from generate_series(1, 3) g left join (select lo.id, sum(revenue) as s from lo join part on part = part.id group by lo.id) x on x.s = g * 7') as says;
reset enable_material;
reset enable_memoize;
-- LIMIT stops in the middle of it
select count(*) from (select lo.id, sum(revenue) from lo join part on part = part.id group by lo.id limit 300) x;
reset work_mem;
reset parallel_leader_participation;
reset hashgraph_join.agg_tuple_cost;
reset hashgraph_join.build_tuple_cost;
reset hashgraph_join.force;

-- partitions that are aggregated in parts, by workers and without them
create table plo (id int, k int, v int) partition by range (k);
create table plo1 partition of plo for values from (0) to (300);
create table plo2 partition of plo for values from (300) to (600);
create table plo3 partition of plo for values from (600) to (2000) partition by range (k);
create table plo31 partition of plo3 for values from (600) to (800);
create table plo32 partition of plo3 for values from (800) to (2000);
create table pd (k int, w text, primary key (k)) partition by range (k);
create table pd1 partition of pd for values from (0) to (300);
create table pd2 partition of pd for values from (300) to (600);
create table pd3 partition of pd for values from (600) to (2000) partition by range (k);
create table pd31 partition of pd3 for values from (600) to (800);
create table pd32 partition of pd3 for values from (800) to (2000);
insert into plo select g, g * 7919 % 1000, g % 50 from generate_series(1, 8000) g;
insert into pd select g, 'w' || g % 20 from generate_series(0, 900) g;
analyze plo, pd;
set enable_partitionwise_join = on;
set enable_partitionwise_aggregate = on;
set hashgraph_join.force = on;
select hgj_shape('select w, count(*), sum(v) from plo join pd using (k) group by w');
select hgj_shape('select pd.k, count(*), sum(v) from plo join pd using (k) group by pd.k');
set max_parallel_workers_per_gather = 0;
select hgj_shape('select w, count(*), sum(v) from plo join pd using (k) group by w');
select hgj_check_agg(q, 4) as says, count(*) from (values
	('select w, count(*), sum(v) from plo join pd using (k) group by w'),
	('select w, v % 5, avg(v), max(w) from plo join pd using (k) group by w, v % 5 having count(*) > 20'),
	('select count(w), sum(v) from plo left join pd using (k)'),
	('select pd.k, count(*), sum(v) from plo join pd using (k) group by pd.k'),
	('select plo.id, count(*) from plo join pd using (k) group by plo.id')) x (q) group by 1;
set max_parallel_workers_per_gather = 2;
select hgj_check_agg(q, 4) as says, count(*) from (values
	('select w, count(*), sum(v) from plo join pd using (k) group by w'),
	('select w, v % 5, avg(v), max(w) from plo join pd using (k) group by w, v % 5 having count(*) > 20'),
	('select count(w), sum(v) from plo left join pd using (k)'),
	('select pd.k, count(*), sum(v) from plo join pd using (k) group by pd.k'),
	('select plo.id, count(*) from plo join pd using (k) group by plo.id')) x (q) group by 1;
reset all;
drop table lo, cust, part, days, plo, pd;
drop function hgj_check_partial, hgj_rounds, agg_restricted;
drop collation agg_loose;
