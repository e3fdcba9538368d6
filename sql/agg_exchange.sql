-- Workers divide the groups among themselves by hash, and each finishes its own.
set jit = off;
create table lo (id int, cust int, part int, v int, x float8, big numeric, note text) with (autovacuum_enabled = off);
insert into lo select g, g * 7919 % 900, g * 104729 % 1500, g % 37, case when g % 11 <> 0 then g / 3.0 end,
	case when g % 13 = 0 then 'nan' when g % 997 = 0 then 1e40 when g % 501 = 0 then 1e-30 else g / 7.0 end::numeric,
	case when g % 5 = 0 then repeat('note ' || g % 700, 1 + g % 9) end from generate_series(1, 20000) g;
create table cust (id int, nation varchar(15), city char(12), n numeric, loose text, tags text[], q float8, u uuid) with (autovacuum_enabled = off);
create collation exchange_loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
alter table cust alter loose type text collate exchange_loose;
insert into cust select g, 'nation ' || g % 25, 'city ' || g % 60, (array[1.0, 1.00, 2.5, 2.50, 3])[1 + g % 5], (array['a', 'A', 'b', 'B', null])[1 + g % 5],
	array['t' || g % 4, nullif('u' || g % 3, 'u1')], (array['-0', '0', 'nan', 'inf', null])[1 + g % 5]::float8, md5((g % 90)::text)::uuid from generate_series(1, 850) g;
create table nothing (id int, w int) with (autovacuum_enabled = off);
-- the planner does not know that they will be gone
insert into nothing select g, g from generate_series(1, 3000) g;
analyze lo, cust, nothing;
delete from nothing;

set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
set max_parallel_workers_per_gather = 2;
set hashgraph_join.min_rows = 100;
set hashgraph_join.startup_cost = 0;
set hashgraph_join.parallel_aggregate = exchange;
-- what workers share is to outweigh what each of them does
set hashgraph_join.agg_tuple_cost = 1;
set hashgraph_join.build_tuple_cost = 0;

set hashgraph_join.force = on;
explain (costs off) select lo.id % 5000 as g, nation, sum(v) from lo join cust on cust = cust.id group by 1, 2 having count(*) > 3;
-- where there are no group columns there is but one group
select hgj_shape('select count(*), sum(v) from lo join cust on cust = cust.id');
-- a function that only the leader may run, in HAVING and in what is returned
create function exchange_restricted(bigint) returns bigint language plpgsql stable parallel restricted as 'begin return $1; end';
select hgj_shape('select nation, count(*) from lo join cust on cust = cust.id group by nation having exchange_restricted(count(*)) > 3');
select hgj_shape('select nation, exchange_restricted(count(*)) from lo join cust on cust = cust.id group by nation');
reset hashgraph_join.force;

create temp table queries (q text);
insert into queries values
	('select lo.id, count(*), sum(v), min(nation), max(n), avg(n) from lo join cust on cust = cust.id group by lo.id'),
	('select nation, count(*), sum(v), avg(v) from lo join cust on cust = cust.id group by nation having count(*) > 3'),
	('select part, city, sum(big), avg(big), count(big), max(big), min(big) from lo join cust on cust = cust.id group by part, city'),
	('select part, sum(big), avg(big) from lo join cust on cust = cust.id where big <> ''nan'' group by part'),
	('select part, min(note), max(note), count(note), bool_or(v > 35), every(v < 30) from lo join cust on cust = cust.id group by part'),
	('select note, nation, count(*), min(x), max(x), sum(v::bigint), avg(v::bigint) from lo join cust on cust = cust.id group by note, nation'),
	('select part % 7, sum(v) filter (where nation > ''nation 3''), count(*) filter (where x > 100), avg(v) filter (where false) from lo join cust on cust = cust.id group by 1'),
	('select u, tags, max(tags), min(u::text), count(*) from lo left join cust on cust = cust.id group by u, tags'),
	('select count(*), sum(v) from lo left join cust on cust = cust.id group by n'),
	('select count(*), sum(v), max(lo.id) from lo join cust on cust = cust.id group by n, loose, q, city'),
	('select q is null, count(*), sum(v) from lo left join cust on cust = cust.id group by q'),
	('select nation, part from lo join cust on cust = cust.id group by nation, part order by nation'),
	('select lo.v, round(avg(x)::numeric, 4), round(sum(x)::numeric, 2), count(x) from lo join cust on cust = cust.id group by lo.v'),
	('select lo.id, sum(interval ''1 hour'' * v), max(interval ''1 day'' * v) from lo join cust on cust = cust.id group by lo.id'),
	('select w, count(*) from nothing join lo using (id) group by w'),
	('select cust.id, sum(v) + (select max(v) from lo) from lo join cust on cust = cust.id group by cust.id having sum(v) > (select min(v) from lo)');
select q, hgj_check_exchange(q) as says from queries;
-- the helper can fail
select hgj_check_exchange('select count(*) from lo join cust on cust = cust.id') as says;

do 'begin perform hgj_remember(q) from queries; end';
create function hgj_check_all() returns setof text language sql
as $$ select q || ': ' || s from queries, hgj_check_exchange(q) s where s <> 'ok' $$;
set parallel_leader_participation = off;
select hgj_check_all();
reset parallel_leader_participation;
-- one process, which has all groups; planned workers, none of which comes
set max_parallel_workers_per_gather = 1;
set parallel_leader_participation = off;
select hgj_check_all();
reset parallel_leader_participation;
set max_parallel_workers = 0;
select hgj_check_all();
reset max_parallel_workers;
set hashgraph_join.source = tuples;
select hgj_check_all();
reset hashgraph_join.source;
set hashgraph_join.parallel_build = shared;
select hgj_check_all();
set hashgraph_join.parallel_build = private;
select hgj_check_all();
reset hashgraph_join.parallel_build;
set max_parallel_workers_per_gather = 2;

-- Little memory: tables are emptied, images go to files, and partitions are returned in
-- several rounds.
set work_mem = '64kB';
set hash_mem_multiplier = 1;
select hgj_check_all();
set parallel_leader_participation = off;
select hgj_check_all();
reset parallel_leader_participation;
create function hgj_exchanged(q text, kilobytes int default null) returns table (groups bigint, exchanged bool, in_memory bool, on_file bool, within_limit bool) language sql
	set hashgraph_join.force = on
as $$
	select sum((p ->> 'Groups')::int), bool_or((p ->> 'Exchanged Groups')::int > 0),
		bool_or((p ->> 'Exchange Memory')::int > 0), bool_or((p ->> 'Exchange Disk')::int > 0),
		max((p ->> 'Memory Usage')::int) < coalesce(kilobytes, 1.2 * (select setting::int from pg_settings where name = 'work_mem') * current_setting('hash_mem_multiplier')::float8)
	from hgj_process_reports(jsonb_path_query_first(hgj_plan_json(q), 'strict $.** ? (@."Custom Plan Provider" == "HashGraphAgg")')) p
$$;
select * from hgj_exchanged('select lo.id, nation, count(*), sum(v), max(note) from lo join cust on cust = cust.id group by lo.id, nation');
set work_mem = '8MB';
-- who reads some of these rows leaves others to the other processes
select * from hgj_exchanged('select lo.id, nation, count(*), sum(v), max(note) from lo join cust on cust = cust.id where lo.id % 577 <> 0 or pg_sleep(0.005) is not null group by lo.id, nation');
-- more groups than were expected, by far: too few partitions for them
set work_mem = '64kB';
create table few (id int, g int, w text) with (autovacuum_enabled = off);
insert into few select g, g % 3, 'w' || g % 3 from generate_series(1, 20000) g;
analyze few;
update few set g = id, w = 'w' || id;
select * from hgj_exchanged('select g, few.w, count(*), sum(v), max(note) from lo join few using (id) group by g, few.w');
select hgj_check_exchange('select g, few.w, count(*), sum(v), max(note) from lo join few using (id) group by g, few.w') as says;

-- The Gather is rescanned: other processes divide other groups.
set enable_material = off;
set enable_memoize = off;
create temp table rescans (q text);
insert into rescans values
	('select g, x.* from generate_series(1, 3) g left join (select lo.id, sum(v) as s, max(note) from lo join cust on cust = cust.id group by lo.id) x on x.s = g * 7'),
	('select g, (select sum(s) from (select part, sum(v) * 7 as s from lo join cust on cust = cust.id where lo.id % 577 <> 0 or pg_sleep(0.001) is not null group by part) x where part > 0) from generate_series(1, 3) g');
select q, hgj_check_exchange(q) as says from rescans;
set work_mem = '4MB';
select q, hgj_check_exchange(q) as says from rescans;
set parallel_leader_participation = off;
select q, hgj_check_exchange(q) as says from rescans;
reset parallel_leader_participation;
reset enable_material;
reset enable_memoize;

-- LIMIT stops in the middle of it; cursors never go to workers
set hashgraph_join.force = on;
select count(*) from (select lo.id, sum(v) from lo join cust on cust = cust.id group by lo.id limit 300) x;
set work_mem = '64kB';
select count(*) from (select lo.id, sum(v) from lo join cust on cust = cust.id group by lo.id limit 300) x;
begin;
declare c cursor for select lo.id, sum(v) from lo join cust on cust = cust.id group by lo.id order by 1;
fetch 3 from c;
commit;
-- an error in a worker, or in the leader, while the others are at the barrier or on the way to it
select hgj_says('select lo.id, sum(1 / (lo.id - 19990)) from lo join cust on cust = cust.id group by lo.id');
select hgj_says('select lo.id, sum(v) from lo join cust on cust = cust.id group by lo.id having 1 / (sum(v) - 17) > 5');
set work_mem = '4MB';
select hgj_says('select lo.id, sum(1 / (lo.id - 19990)) from lo join cust on cust = cust.id group by lo.id');
select hgj_says('select lo.id, sum(v) from lo join cust on cust = cust.id group by lo.id having 1 / (sum(v) - 17) > 5');

-- Groups that no two rows share are given away before their table has grown; others stay in it.
set work_mem = '64MB';
set parallel_leader_participation = off;
create table apart (id int, name text, half int, many int, turn int) with (autovacuum_enabled = off);
insert into apart select g, 'name ' || g, g / 2, g * 104729::int8 % 30000, g % 40000 from generate_series(1, 120000) g;
analyze apart;
create temp table given (q text);
insert into given values
	('select name, count(*), sum(id), min(name) from apart group by name'),
	('select name, half, sum(id::numeric) from apart where id % 7 > 0 group by name, half'),
	('select many, count(*), max(id) from apart group by many'),
	('select turn, count(*), min(name) from apart group by turn');
select q, hgj_check_exchange(q, 0) as says from given;
select exchanged, within_limit from hgj_exchanged('select name, count(*), sum(id), min(name) from apart group by name', 4 * 1024);
set work_mem = '1MB';
select q, hgj_check_exchange(q, 0) as says from given where q like '%group by name';
reset all;
truncate hgj_known;
drop table lo, cust, nothing, few, apart;
drop function hgj_exchanged, hgj_check_all, exchange_restricted;
drop collation exchange_loose;
