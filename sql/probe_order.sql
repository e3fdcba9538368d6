-- Joins of a chain are asked about the keys of its bottom table before rows of
-- that are read, and the one that drops most of them first.
set work_mem = '64MB';
set join_collapse_limit = 1;
set from_collapse_limit = 1;
set hashgraph_join.build = direct;
create table po_half (k int, v int, t text) with (autovacuum_enabled = off);
create table po_tenth (k int8, v int, t text) with (autovacuum_enabled = off);
create table po_few (k int, v int, t text) with (autovacuum_enabled = off);
create table po_all (k int, v int, t text) with (autovacuum_enabled = off);
create table po_code (c text, v int) with (autovacuum_enabled = off);
create table po_none (k int, v int) with (autovacuum_enabled = off);
create table po_fact (id int not null, h int, t int, f int, a int, c text, note text, amount numeric(12,2), big int8) with (autovacuum_enabled = off);
insert into po_half select g, g % 7, 'half ' || g from generate_series(1, 1000) g where g % 2 = 0;
insert into po_tenth select g, g % 7, 'tenth ' || g from generate_series(1, 1000) g where g % 10 = 3;
insert into po_few select g, g % 7, 'few ' || g from generate_series(1, 1000) g where g % 100 = 17;
insert into po_all select g, g % 7, 'all ' || g from generate_series(1, 1000) g;
insert into po_code select 'code ' || repeat('x', g % 40) || g, g % 7 from generate_series(1, 60) g;
insert into po_code values (null, 1);
insert into po_fact select g, 1 + g * 7919::int8 % 1000, 1 + g * 104729::int8 / 7 % 1000, 1 + g * 1299709::int8 / 11 % 1000, 1 + g % 1000,
	'code ' || repeat('x', g % 400 % 40) || g % 400, repeat('n', g % 30), g / 100.0, g % 1000 from generate_series(1, 30000) g;
-- NULLs among the keys, values out of the dimensions' range, duplicates in them
update po_fact set h = null where id % 37 = 0;
update po_fact set f = null where id % 41 = 0;
update po_fact set t = 5000000 where id % 43 = 0;
update po_fact set c = null where id % 47 = 0;
insert into po_half select k, v + 1, 'again' from po_half where k % 12 = 0;
insert into po_tenth values (null, 1, 'null'), (13, 99, 'again');
vacuum analyze po_fact, po_half, po_tenth, po_few, po_all, po_code, po_none;

-- What is asked, in which order, and roughly what it lets pass.
create function asked(q text) returns text language plpgsql set hashgraph_join.force = on as $$
declare
	line text;
	part text;
	found text := '';
begin
	for line in execute 'explain (analyze, buffers off, costs off, timing off, summary off) ' || q loop
		if line ~ 'Key Filters: ' and line !~ 'Rows Removed' then
			foreach part in array string_to_array(substring(line from 'Key Filters: (.*)$'), '; ') loop
				found := found || case when found = '' then '' else ', then ' end || substring(part from '^(.*\)) ') || ' ' ||
					('{few,some,half,most,all}'::text[])[width_bucket(substring(part from '([0-9.]+)%')::numeric, array[0, 5, 30, 70, 99.95])] ||
					case when part ~ 'off$' then ' off' else '' end;
			end loop;
		end if;
	end loop;
	return case when found = '' then 'nobody' else found end;
end $$;
create function chain(kinds text[], extra text default '') returns text language sql as $$
	select format('select f.id, f.amount, p_half.v as hv, p_tenth.t as tt, p_few.t as ft from po_fact f %s join po_half p_half on f.h = p_half.k %s join po_tenth p_tenth on f.t = p_tenth.k %s join po_few p_few on f.f = p_few.k %s',
		kinds[1], kinds[2], kinds[3], extra)
$$;

select f, asked(chain('{inner,inner,inner}')) from unnest('{on,auto,off}'::text[]) f, lateral (select set_config('hashgraph_join.filter', f, false)) x where x is not null;
-- a join that all rows pass is asked now and then only, and "on" asks all
set hashgraph_join.filter = on;
select asked('select count(*) from po_fact f join po_all on f.a = po_all.k join po_few on f.f = po_few.k');
set hashgraph_join.filter = auto;
select asked('select count(*) from po_fact f join po_all on f.a = po_all.k join po_few on f.f = po_few.k');
-- of two that drop the same rows one is enough
select asked('select count(*) from po_fact f join po_all on f.a = po_all.k join po_few on f.f = po_few.k join po_few again on f.f = again.k');
-- joins that return rows without a match are not asked, and stand in nobody's way
set hashgraph_join.filter = on;
select k, asked(chain(k::text[])) from unnest('{"{left,inner,inner}","{inner,left,inner}","{left,left,inner}","{inner,inner,left}","{left,left,left}"}'::text[]) k;
select asked('select count(*) from po_fact f join po_all on f.a = po_all.k where not exists (select from po_half where po_half.k = f.h) and exists (select from po_few where po_few.k = f.f)');
-- keys that are no columns of the bottom table
select asked('select count(*) from po_fact f join po_all on f.a = po_all.k join po_few on po_all.v = po_few.k');
select asked('select count(*) from po_fact f join po_all on f.a = po_all.k join po_few on f.f = po_few.k and po_all.v = po_few.v');
-- what can raise an error, or has an effect, is evaluated for every row of a join
create sequence po_seen;
select asked('select count(*) from po_fact f join po_all on f.a = po_all.k and po_all.v / f.id < 5 join po_few on f.f = po_few.k');
select asked('select count(*) from po_fact f join po_all on f.a = po_all.k and nextval(''po_seen'') + po_all.v > f.a - f.a join po_few on f.f = po_few.k');
select asked('select count(*) from po_fact f join po_all on f.a = po_all.k and f.id <> po_all.v join po_few on f.f = po_few.k');

-- structured
create function asked_json(q text) returns setof text language plpgsql set hashgraph_join.force = on as $$
declare
	plan jsonb;
begin
	execute 'explain (analyze, buffers off, costs off, timing off, summary off, format json) ' || q into plan;
	return query select distinct (jsonb_path_query(plan, 'strict $.**."Key Filters"[*]') - 'Rows Passed' - 'Rows Tested')::text order by 1;
	return query select format('passed fewer than were tested: %s', (f->>'Rows Passed')::int < (f->>'Rows Tested')::int) from jsonb_path_query(plan, 'strict $.**."Key Filters"[*]') f;
end $$;
select asked_json(chain('{inner,inner,inner}'));

-- rows that were never read are rows that the scan returned
create function scanned(q text) returns setof text language plpgsql set hashgraph_join.force = on as $$
declare
	line text;
begin
	for line in execute 'explain (analyze, buffers off, costs off, timing off, summary off) ' || q loop
		if line ~ 'Seq Scan on po_fact|Removed by Filter' then
			return next hgj_plain(trim(line));
		end if;
	end loop;
end $$;
select scanned(chain('{inner,inner,inner}', 'where f.id % 3 = 0'));

-- The same rows, whatever the joins between are, and whoever is asked.
create function all_filters(q text, nodes int) returns text language plpgsql as $$
declare
	said text := '';
	f text;
begin
	foreach f in array '{on,auto,off}'::text[] loop
		perform set_config('hashgraph_join.filter', f, true);
		said := said || hgj_check(q, nodes) || ' ';
	end loop;
	return rtrim(said);
end $$;
select a, b, c, all_filters(chain(array[a, b, c]), 1)
from unnest('{inner,left,right,full}'::text[]) a, unnest('{inner,left,right,full}'::text[]) b, unnest('{inner,left,right,full}'::text[]) c;
reset hashgraph_join.build;
select build, all_filters(chain('{inner,left,inner}'), 3), all_filters(chain('{left,inner,inner}'), 3)
from unnest('{v1,v2,direct}'::text[]) build, lateral (select set_config('hashgraph_join.build', build, false)) x where x is not null;
reset hashgraph_join.build;
select l, u, all_filters(format('select f.id, f.note, po_all.t from po_fact f join po_all on f.a = po_all.k where %s (select from po_half where po_half.k = f.h) and %s (select from po_tenth where po_tenth.k = f.t)', l, u), 3)
from unnest('{exists,not exists}'::text[]) l, unnest('{exists,not exists}'::text[]) u;
-- text keys, short and long; several columns; int8 = int4; the table's own columns in another order
select all_filters('select f.id, f.c, po_code.v from po_fact f join po_all on f.a = po_all.k join po_code on f.c = po_code.c', 2);
select all_filters('select f.id, f.c from po_fact f join po_code on f.c = po_code.c join po_few on f.f = po_few.k', 2);
select all_filters('select f.id, h.v from po_fact f join po_all on f.big = po_all.k join po_half h on f.h = h.k and f.a = h.k + 0 join po_tenth on po_tenth.k = f.t and po_tenth.k = f.big', 1);
select all_filters('select q.id, q.s, po_few.t from (select f.id, f.f as s, f.note || po_all.t as n, f.t from po_fact f join po_all on f.a = po_all.k) q join po_tenth on q.t = po_tenth.k join po_few on q.s = po_few.k', 1);
-- numeric keys have hashes of their own, and stay out
select all_filters('select f.id from po_fact f join po_all on f.amount = po_all.k::numeric join po_few on f.f = po_few.k', 1);
-- an empty dimension, on top, in the middle and below; one without keys
select all_filters('select f.id from po_fact f join po_all on f.a = po_all.k join po_none on f.f = po_none.k', 2);
select all_filters('select f.id from po_fact f join po_none on f.a = po_none.k join po_few on f.f = po_few.k', 2);
select all_filters('select f.id, po_none.v from po_fact f left join po_none on f.a = po_none.k join po_few on f.f = po_few.k join po_half on f.h = po_half.k', 3);
select all_filters('select f.id from po_fact f join po_all on f.a = po_all.k join po_code on f.c = po_code.c and po_code.c is null', 1);

-- The error of a row that an upper join would have dropped, or no error.
create function outcome(q text) returns text language plpgsql set hashgraph_join.require = join as $$
declare
	said text := '';
	n bigint;
	setting text;
begin
	foreach setting in array '{stock,on,auto}'::text[] loop
		perform set_config('hashgraph_join.enabled', case setting when 'stock' then 'off' else 'on' end, true),
			set_config('hashgraph_join.force', case setting when 'stock' then 'off' else 'on' end, true),
			set_config('hashgraph_join.require', case setting when 'stock' then 'off' else 'join' end, true),
			set_config('hashgraph_join.filter', case setting when 'stock' then 'auto' else setting end, true);
		begin
			execute q into n;
			said := said || setting || ': ' || n || '  ';
		exception when others then
			said := said || setting || ': ' || sqlerrm || '  ';
		end;
	end loop;
	return rtrim(said);
end $$;
set enable_nestloop = off;
set enable_mergejoin = off;
update po_fact set f = 1 where id = 29999;	-- which po_few has not
select outcome('select count(*) from po_fact f join po_all on f.a = po_all.k and po_all.v / (f.id - 29999) < 5 join po_few on f.f = po_few.k');
select outcome('select count(*) from po_fact f left join po_all on f.a = po_all.k and po_all.v / (f.id - 29999) < 5 join po_few on f.f = po_few.k');
select outcome('select count(*) from (select f.f, 1 / (f.id - 29999) + po_all.v as x from po_fact f join po_all on f.a = po_all.k offset 0) q join po_few on q.f = po_few.k where q.x is not null');
select outcome('select count(*) from po_fact f join po_all on f.a = po_all.k join po_few on f.f = po_few.k and po_few.v / (f.id - 29999) < 5');
select outcome('select count(*) from (select f.id from po_fact f join po_all on f.a = po_all.k and po_all.v / (f.id - 29999) < 5 join po_few on f.f = po_few.k limit 5) q');
select outcome('select count(*) from (select f.id from po_fact f join po_all on f.a = po_all.k join po_few on f.f = po_few.k where 1 / (29999 - f.id) >= 0 limit 5) q');
-- calls are counted: one for each row of the lower join
select setval('po_seen', 1, false) is null;
set hashgraph_join.force = on;
set hashgraph_join.filter = on;
select count(*) from po_fact f join po_all on f.a = po_all.k and nextval('po_seen') + po_all.v > f.a - f.a join po_few on f.f = po_few.k;
select last_value from po_seen;
reset hashgraph_join.force;
reset hashgraph_join.filter;

-- Rescans, with the same dimension and with others.
select all_filters('select x, s.* from generate_series(1, 5) x, lateral (select count(*), sum(f.id) from po_fact f join po_half on f.h = po_half.k join po_few on f.f = po_few.k where f.a % 5 = x - 1) s', 2);
select all_filters('select x, s.* from generate_series(1, 5) x, lateral (select count(*), sum(f.id) from po_fact f join po_half on f.h = po_half.k join po_few on f.f = po_few.k and po_few.v = x) s', 2);
select all_filters('select x, s.* from generate_series(1, 5) x, lateral (select count(*), sum(f.id) from po_fact f join po_half on f.h = po_half.k join po_all on f.f = po_all.k + x) s', 2);
-- LIMIT, a cursor
select all_filters('select count(*) from (select f.id from po_fact f join po_half on f.h = po_half.k join po_few on f.f = po_few.k limit 17) s', 2);
begin;
set local hashgraph_join.force = on;
set local hashgraph_join.filter = on;
declare star cursor for select f.id > 0 as id, po_few.v is not null as v from po_fact f join po_half on f.h = po_half.k join po_few on f.f = po_few.k;
fetch 2 from star;
delete from po_few;
delete from po_fact where id > 100;
move 90 from star;
fetch 1 from star;
rollback;
-- rows that are locked
select hgj_check('select f.id, po_few.v from po_fact f join po_half on f.h = po_half.k join po_few on f.f = po_few.k for update of f', 2, false);

-- Dimensions that memory does not hold.
create table po_wide (k int, t text) with (autovacuum_enabled = off);
insert into po_wide select g % 4000 * 2, repeat('w', 100) || g from generate_series(1, 6000) g;
analyze po_wide;
set work_mem = '64kB';
set hash_mem_multiplier = 1;
select s, all_filters('select f.id, w.t from po_fact f join po_half on f.h = po_half.k join po_wide w on f.id = w.k', 2),
	all_filters('select f.id, w.t from po_fact f join po_wide w on f.id = w.k join po_few on f.f = po_few.k', 2),
	all_filters('select f.id, w.t, x.t as u from po_fact f join po_wide w on f.id = w.k left join po_wide x on f.a = x.k join po_half on f.h = po_half.k', 3)
from unnest('{auto,partitions,passes}'::text[]) s, lateral (select set_config('hashgraph_join.spill', s, false)) x where x is not null;
-- a part of the dimension is not all of it
set hashgraph_join.filter = on;
select s, asked('select count(*) from po_fact f join po_half on f.h = po_half.k join po_wide w on f.id = w.k and w.t <> po_half.t')
from unnest('{auto,partitions,passes}'::text[]) s, lateral (select set_config('hashgraph_join.spill', s, false)) x where x is not null;
select all_filters('select x, s.* from generate_series(1, 3) x, lateral (select count(*), sum(f.id) from po_fact f join po_half on f.h = po_half.k join po_wide w on f.id = w.k and w.t <> po_half.t where f.a % 5 = x) s', 2);
reset hashgraph_join.filter;
reset hashgraph_join.spill;
reset work_mem;
reset hash_mem_multiplier;

-- Workers have filters of their own.
set max_parallel_workers_per_gather = 2;
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
select all_filters(chain('{inner,inner,inner}'), 3), all_filters(chain('{left,inner,inner}'), 3);
reset all;
drop table po_fact, po_half, po_tenth, po_few, po_all, po_code, po_none, po_wide;
drop sequence po_seen;
drop function asked, asked_json, chain, scanned, all_filters, outcome;
