-- Group columns that depend on others: a unique key that is grouped by, or that joins make equal
-- to what is, tells groups apart, and nothing else of its row is hashed or compared.
create schema dependent;
set search_path = dependent, public;
create collation dependent_loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
create table nation (id int primary key, name char(25), region text) with (autovacuum_enabled = off);
create table cust (id int primary key, nation int, name text, short varchar(9), n numeric, note text, code text unique, loose text) with (autovacuum_enabled = off);
create table ord (id int primary key, cust int, day date, price numeric(10,2), tags text[]) with (autovacuum_enabled = off);
create table item (ord int, line int, v int, x float8, cust_code text, primary key (ord, line)) with (autovacuum_enabled = off);
insert into nation select g, 'nation ' || g, case when g % 4 > 0 then 'region ' || g % 3 end from generate_series(1, 25) g;
insert into cust select g, nullif(g % 26, 0), 'customer ' || g, 's' || g % 50, (array[1.0, 1.00, 2.5, null])[1 + g % 4],
	repeat('note ' || g, g % 300), 'code ' || g, (array['a', 'A', 'b'])[1 + g % 3] || g / 3 from generate_series(1, 900) g;
insert into ord select g, g * 7919 % 990, date '2020-01-01' + g % 400, g / 7.0, array['t' || g % 3] from generate_series(1, 5000) g;
insert into item select 1 + g * 104729 % 5200, g, g % 37, g / 3.0, 'code ' || g % 1000 from generate_series(1, 20000) g;
analyze nation, cust, ord, item;

-- What tells the groups apart, once the answer has been compared.
create function hgj_groups_by(q text, nodes int default 1) returns text language plpgsql
	set hashgraph_join.force = on
as $$
declare
	line text;
	said text := hgj_check_agg(q, nodes);
	key text;
	rest text;
begin
	if said <> 'ok' then
		return said;
	end if;
	for line in execute 'explain (costs off) ' || q loop
		key := coalesce(key, substring(line from 'Group Key: (.*)'));
		rest := coalesce(rest, substring(line from 'Dependent Columns: (.*)'));
	end loop;
	return key || coalesce('; with it: ' || rest, '');
end $$;

-- PostgreSQL's own rule, with a primary key
select hgj_groups_by('select cust.id, cust.name, note, n, count(*), sum(price) from cust join ord on ord.cust = cust.id group by cust.id');
-- and what joins make equal: the order's customer, the customer's nation
select hgj_groups_by('select ord.cust, cust.name, nation.name, region, sum(price) from ord join cust on ord.cust = cust.id join nation on nation = nation.id group by ord.cust, cust.name, nation.name, region', 2);
select hgj_groups_by('select item.ord, day, price, tags, sum(v) from item join ord on item.ord = ord.id group by item.ord, day, price, tags');
select hgj_groups_by('select ord.id, cust.id, cust.name, nation.region, count(*), max(x) from item join ord on item.ord = ord.id join cust on cust.id = ord.cust join nation on nation.id = cust.nation group by nation.region, cust.id, ord.id, cust.name', 3);
-- expressions of such columns
select hgj_groups_by('select item.ord, extract(year from day), upper(cust.name), cust.n + ord.price, sum(v) from item join ord on item.ord = ord.id join cust on cust.id = ord.cust group by 1, 2, 3, 4', 2);
-- not so of what subqueries return, which may call volatile functions
select hgj_groups_by('select item.ord, (select random() < 2 from nation where id = item.ord limit 1) r, count(*) from item join ord on item.ord = ord.id group by 1, 2');
-- a key of two columns, of which one alone is none
select hgj_groups_by('select ord, line, v, x, sum(price) from item join ord on ord.id = item.ord group by ord, line, v, x');
select hgj_groups_by('select ord, v, sum(price) from item join ord on ord.id = item.ord group by ord, v');
-- a unique column that may be NULL tells rows apart where a join has compared it
select hgj_groups_by('select code, cust.name, count(*) from cust join item on item.line = cust.id group by code, cust.name');
select hgj_groups_by('select cust_code, cust.name, count(*) from item join cust on cust.code = cust_code group by cust_code, cust.name');
insert into cust (id, nation, name) select g, 1, 'no code ' || g from generate_series(1001, 1040) g;
select hgj_groups_by('select code, cust.name, count(*) from cust join item on item.line = cust.id group by code, cust.name');
-- outer joins: a key of the row itself, NULL with it, and nothing that a join says
select hgj_groups_by('select cust.id, cust.name, cust.n, count(ord.id) from ord left join cust on cust.id = ord.cust group by cust.id');
select hgj_groups_by('select ord.cust, cust.name, count(*) from ord left join cust on cust.id = ord.cust and cust.n = 1 group by ord.cust, cust.name');
select hgj_groups_by('select cust.id, cust.name, ord.day, count(*) from ord full join cust on cust.id = ord.cust group by cust.id, ord.day');
-- semi joins
select hgj_groups_by('select ord.cust, cust.name, count(*) from ord join cust on ord.cust = cust.id where exists (select from item where item.ord = ord.id) group by ord.cust, cust.name', 2);
-- other equality, other collations, uniqueness that is put off or holds for some rows, a table's children
create table odd (id int, k numeric, c text collate dependent_loose, d int, e int, f text) with (autovacuum_enabled = off);
insert into odd select g, g, 'x' || g, g, g, 'row ' || g from generate_series(1, 900) g;
create unique index on odd (k);
create unique index on odd (c);
create unique index on odd (d) where d <> 7;
alter table odd add unique (e) deferrable;
analyze odd;
select hgj_groups_by('select odd.k, odd.f, count(*) from odd join ord on ord.cust = odd.id join cust on cust.id = ord.cust and cust.n = odd.k group by odd.k, odd.f', 2);
select hgj_groups_by('select odd.f, count(*), min(cust.id) from cust join odd on odd.k = cust.n group by cust.n, odd.f');
select hgj_groups_by('select cust.code, odd.f, count(*) from odd join cust on cust.code = odd.c collate "C" group by cust.code, odd.f');
select hgj_groups_by('select ord.cust, odd.f, count(*) from ord join odd on odd.d = ord.cust group by ord.cust, odd.f');
select hgj_groups_by('select ord.cust, odd.f, count(*) from ord join odd on odd.e = ord.cust group by ord.cust, odd.f');
create table parent (id int primary key, f text) with (autovacuum_enabled = off);
create table child () inherits (parent) with (autovacuum_enabled = off);
insert into parent select g, 'parent ' || g from generate_series(1, 500) g;
insert into child select g, 'child ' || g from generate_series(1, 500) g;
analyze parent, child;
select hgj_groups_by('select ord.cust, parent.f, count(*) from ord join parent on parent.id = ord.cust group by ord.cust, parent.f');
-- values that only rows say: one that is NULL in the first row of its group, and long ones
select hgj_groups_by('select cust.id, note, loose, n, min(ord.id) from cust join ord on ord.cust = cust.id where ord.id > 100 group by cust.id having count(*) > 3');

-- workers divide the groups by what tells them apart; distinct values are grouped with it
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
set hashgraph_join.startup_cost = 0;
set hashgraph_join.min_rows = 100;
set max_parallel_workers_per_gather = 2;
set hashgraph_join.parallel_aggregate = exchange;
set hashgraph_join.agg_tuple_cost = 1;
set hashgraph_join.build_tuple_cost = 0;
create function hgj_lines_of(q text, pattern text) returns setof text language plpgsql
	set hashgraph_join.force = on
as $$ declare line text; begin
	for line in execute 'explain (costs off) ' || q loop
		if line ~ pattern then
			return next trim(line);
		end if;
	end loop;
end $$;
select hgj_lines_of('select item.ord, day, price, tags, sum(v) from item join ord on item.ord = ord.id group by item.ord, day, price, tags', 'Exchange|Group Key|Dependent');
select hgj_check_agg('select item.ord, day, price, tags, sum(v) from item join ord on item.ord = ord.id group by item.ord, day, price, tags', 1, 'Exchange: groups, by hash$', 'exchange');
select hgj_lines_of('select ord.cust, cust.name, note, count(distinct day), sum(price) from ord join cust on ord.cust = cust.id group by ord.cust, cust.name, note', 'Exchange|Group Key|Dependent');
select hgj_check_agg('select ord.cust, cust.name, note, count(distinct day), sum(price) from ord join cust on ord.cust = cust.id group by ord.cust, cust.name, note');
set hashgraph_join.parallel_aggregate = partial;
select hgj_check_agg('select ord.cust, cust.name, note, count(*), sum(price) from ord join cust on ord.cust = cust.id group by ord.cust, cust.name, note');
reset hashgraph_join.parallel_aggregate;
set max_parallel_workers_per_gather = 0;
reset hashgraph_join.agg_tuple_cost;

-- groups that memory does not hold go to files with all of their columns
set work_mem = '64kB';
set hash_mem_multiplier = 1;
select hgj_check_agg('select item.ord, day, price, tags, sum(v), max(x) from item join ord on item.ord = ord.id group by item.ord, day, price, tags');
select hgj_check_agg('select cust.id, note, loose, cust.name, count(*) from cust join ord on ord.cust = cust.id group by cust.id');
reset work_mem;
reset hash_mem_multiplier;

-- the map of numbers: groups that come in a few rows at first, then many, then others far from these
create table spread (k int, v int) with (autovacuum_enabled = off);
insert into spread select case when g <= 70000 then g % 50000 when g <= 150000 then g % 400000 else g * 1000 end, g from generate_series(1, 160000) g;
analyze spread;
select hgj_check_agg('select k, count(*), sum(v), max(id) from spread left join nation on id = v group by k');
select hgj_check_agg('select nullif(k, 17) as k, count(*), sum(v), max(id) from spread left join nation on id = v group by 1');
select hgj_check_agg('select k, v % 3, count(*), max(id) from spread left join nation on id = v where v <= 90000 group by 1, 2');
