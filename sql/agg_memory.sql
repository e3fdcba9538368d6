-- The memory limit of a HashGraphAgg and of the joins below it, where the
-- planner's estimates are wrong.  (Stock's answers come from hgj_check_agg().)
set hash_mem_multiplier = 1;
set max_parallel_workers_per_gather = 0;

-- The highest Memory Usage of a node of the kind, as a multiple of work_mem;
-- whether joins had several passes, groups spilled, and what fell back.
create function hgj_memory(q text, out joins numeric, out aggs numeric, out passes bool, out spilled bool, out fallback text) language plpgsql
	set hashgraph_join.force = on set hashgraph_join.require = aggregate
as $$
declare
	line text;
	limit_kb numeric := (select setting from pg_settings where name = 'work_mem');
	kb numeric;
begin
	joins := 0;
	aggs := 0;
	passes := false;
	spilled := false;
	for line in execute 'explain (analyze, buffers off, costs off, timing off, summary off) ' || q loop
		kb := substring(line from 'Memory Usage: (\d+)kB');
		if line ~ 'Groups: ' then
			aggs := greatest(aggs, kb / limit_kb);
		elsif kb is not null then
			joins := greatest(joins, kb / limit_kb);
		end if;
		passes := passes or line ~ 'Passes: ';
		spilled := spilled or line ~ 'Spilled Rows: ';
		if line ~ 'Fallback: ' then
			fallback := substring(line from 'groups by value .*');
		end if;
	end loop;
end $$;

-- a dictionary of group values that nobody expected: analyzed with few of them
create collation hgj_loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
create table dict (k int, t text, n numeric, c text collate hgj_loose, j jsonb, u uuid, a int[], few text, w text) with (autovacuum_enabled = off);
insert into dict select g, 'few ' || g % 3, g % 3, 'c' || g % 2, '1', null, null, 'few ' || g % 3, null from generate_series(1, 12000) g;
analyze dict;
update dict set t = case when k % 50 <> 0 then 'many texts ' || k % 9000 || repeat('y', k % 70) end, n = k % 5000 / 7.0, c = (array['C', 'c'])[1 + k % 2] || k % 4000,
	j = jsonb_build_object('k', k % 6000), u = md5((k % 7000)::text)::uuid, a = array[k % 3000, k % 2], w = repeat(chr(97 + k % 26), 3000) || k % 50;
vacuum dict;
create table fact (k int, v int, x int) with (autovacuum_enabled = off);
insert into fact select g % 12500, g, g % 50 from generate_series(1, 30000) g;
create table other (x int, y int) with (autovacuum_enabled = off);
insert into other select g, g % 7 from generate_series(1, 40) g;
analyze fact, other;

create function hgj_dictionaries(memory text) returns table (q int, bounded bool, passes bool, spilled bool, fallback text, says text) language plpgsql as $$
declare
	m record;
	-- dict is expected to be small
	small text := 'dict.k % 2 >= 0 and dict.k + 1 > 0 and dict.k + 2 > 0';
	queries text[] := array[
		'select t, count(*), sum(v), max(v) from fact join dict using (k) where ' || small || ' group by t',
		'select n, few, count(*) from fact join dict using (k) where ' || small || ' group by n, few',
		'select lower(c), count(*), sum(v) from fact join dict using (k) where ' || small || ' group by c',
		'select j, a, count(*), min(v) from fact left join dict using (k) where ' || small || ' or dict.k is null group by j, a',
		'select u, t, y, count(*) from fact join dict using (k) join other using (x) where ' || small || ' group by u, t, y',
		'select t, count(*) from fact full join (select * from dict where ' || small || ') dict using (k) group by t',
		'select w, few, sum(v) from fact join dict using (k) where ' || small || ' group by w, few',
		-- a dictionary that is full stays so when it is all done again
		'select p, s.* from generate_series(1, 3) p, lateral (select t, count(*), sum(v + p) from fact join dict using (k) where ' || small || ' and dict.k > p * 50 and x > p * 9 group by t) s'];
begin
	perform set_config('work_mem', memory, true);
	for i in 1 .. cardinality(queries) loop
		q := i;
		select * into m from hgj_memory(queries[i]);
		-- a last batch may be too much, but no more
		bounded := greatest(m.joins, m.aggs) < 1.4;
		passes := m.passes;
		spilled := m.spilled;
		fallback := m.fallback;
		says := hgj_check_agg(queries[i]);
		return next;
	end loop;
end $$;
select * from hgj_dictionaries('256kB');
select q, bounded, says from hgj_dictionaries('1MB');
select * from hgj_dictionaries('64MB');

-- states that pass by reference: a batch has thousands of new groups, but they
-- are taken in portions, so that what the first ones take is seen in time (states
-- of groups that are there may grow, as they may in PostgreSQL)
create table states (k int, g int, t text, n numeric, z text) with (autovacuum_enabled = off);
alter table states alter z set storage extended;
insert into states select g, g % 1250, repeat(md5(g::text), 1 + 20 * (g % 5)), (10::numeric ^ (400 + g % 1250)) + g, repeat(chr(97 + g % 26), 30000) || g from generate_series(1, 2500) g;
create table one (k int primary key, w int);
insert into one select g, g % 3 from generate_series(1, 2500) g;
analyze states, one;
create function hgj_states(memory text) returns table (q int, bounded bool, spilled bool, says text) language plpgsql as $$
declare
	queries text[] := array[
		'select g, md5(min(t)), md5(max(t)) from states join one using (k) group by g',
		'select g, sum(n), avg(n) from states join one using (k) group by g',
		'select g, md5(max(z)) from states join one using (k) group by g',
		'select g, length(min(repeat(t, 9))), count(repeat(t, 9)) from states join one using (k) group by g',
		'select md5(z), md5(min(t)) from states join one using (k) where k <= 300 group by z',
		'select w, md5(min(z)), md5(max(t || z)), count(*) from states join one using (k) group by w',
		'select md5(min(z)), md5(max(t || z)), count(repeat(t, 9)) from states join one using (k)'];
begin
	perform set_config('work_mem', memory, true);
	for i in 1 .. cardinality(queries) loop
		q := i;
		-- a limit of 64 kB is less than the first values take
		select m.aggs < case memory when '64kB' then 5 else 1.4 end, m.spilled into bounded, spilled from hgj_memory(queries[i]) m;
		says := hgj_check_agg(queries[i]);
		return next;
	end loop;
end $$;
select * from hgj_states('64kB');
select * from hgj_states('1MB');
