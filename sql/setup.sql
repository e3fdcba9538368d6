-- Tables and functions that the other tests share.
--
-- The technique: hgj_check() runs a query with PostgreSQL's own joins and then
-- with HashGraphJoin forced and required, and compares the two multisets of
-- rows.  It says "ok", or what is different.
select extversion is not null as installed from pg_extension where extname = 'hashgraph_join';
load 'hashgraph_join';
do $$ begin
	execute format('alter database %I set session_preload_libraries = %L', current_database(), 'hashgraph_join');
	execute format('alter database %I set max_parallel_workers_per_gather = 0', current_database());
	-- plans are to be the same on any machine
	execute format('alter database %I set hashgraph_join.processors = 64', current_database());
	-- from PostgreSQL 16 on, rows may be sorted for aggregates with ORDER BY or DISTINCT
	if exists (select from pg_settings where name = 'enable_presorted_aggregate') then
		execute format('alter database %I set enable_presorted_aggregate = off', current_database());
	end if;
end $$;

-- The number of rows of a query and a digest that does not depend on their
-- order.  The query is a CTE of its own, so that it is planned as it stands.
create function hgj_digest(q text, out n bigint, out digest text) language plpgsql as $$
begin
	execute 'with q as materialized (' || q || ') select count(*), md5(string_agg(q::text, E''\n'' order by q::text collate "C")) from q'
		into n, digest;
end $$;

-- What plans of this test run have used.
create table hgj_seen (join_type text primary key);

-- How many HashGraphJoin nodes the plan of a query has, as things are set.
create function hgj_nodes(q text) returns int language plpgsql as $$
declare
	line text;
	nodes int := 0;
begin
	for line in execute 'explain (costs off) ' || q loop
		if line ~ 'Custom Scan \(HashGraphJoin\)' then
			nodes := nodes + 1;
		elsif line ~ 'Join Type: ' then
			insert into hgj_seen values (substring(line from 'Join Type: (.*)')) on conflict do nothing;
		end if;
	end loop;
	return nodes;
end $$;

-- How many lines of the plan of a query are of a pattern.
create function hgj_lines(q text, pattern text) returns int language plpgsql as $$
declare
	line text;
	found int := 0;
begin
	for line in execute 'explain (costs off) ' || q loop
		found := found + (line ~ pattern)::int;
	end loop;
	return found;
end $$;

-- The answer of a query, or its error, as text.
create function hgj_answer(q text) returns text language plpgsql as $$
declare
	r record;
begin
	select * into r from hgj_digest(q);
	return r.n || ' rows, ' || coalesce(r.digest, 'none');
exception when others then
	return sqlstate || ' ' || sqlerrm;
end $$;

-- Says if the query's answer is not what it is as written, when it is rewritten; forced: with joins of ours.
create function hgj_rewrite_differs(q text, forced bool) returns text language plpgsql as $$
declare
	written text;
	rewritten text;
	rows text := format('select string_agg(r::text, E''\n'' order by r::text collate "C") from (%s) r', q);
begin
	perform set_config('hashgraph_join.enabled', 'off', true);
	execute rows into written;
	perform set_config('hashgraph_join.enabled', 'on', true);
	perform set_config('hashgraph_join.rewrite', 'force', true);
	if forced then
		perform set_config('hashgraph_join.force', 'on', true);
	end if;
	execute rows into rewritten;
	if forced then
		perform set_config('hashgraph_join.force', 'off', true);
	end if;
	perform set_config('hashgraph_join.rewrite', 'on', true);
	return case when written is distinct from rewritten then 'DIFFERENT: ' else '' end;
end $$;

-- What becomes of the query's subqueries, and whether the answer stays what it was.  nodes: those
-- that hashgraph_join_why() is asked about; of several, each reason says whose it is.
create function hgj_hidden(q text, nodes text[] default '{Subquery}') returns text language plpgsql as $$
declare
	reasons text;
	differs text := hgj_rewrite_differs(q, false);
begin
	perform set_config('hashgraph_join.rewrite', 'force', true);
	execute format('select string_agg(case when cardinality(%L::text[]) > 1 then node || '': '' else '''' end || reason, ''; '') from hashgraph_join_why(%L) where node = any (%L)', nodes, q, nodes) into reasons;
	perform set_config('hashgraph_join.rewrite', 'on', true);
	return differs || coalesce(reasons, 'nothing');
end $$;

-- Whether the query is planned as another one, which has such a line, and whether the answer stays what it was.
create function hgj_rewritten(q text, pattern text) returns text language plpgsql as $$
declare
	found int;
	differs text := hgj_rewrite_differs(q, true);
begin
	perform set_config('hashgraph_join.rewrite', 'force', true);
	perform set_config('hashgraph_join.force', 'on', true);
	found := hgj_lines(q, pattern);
	perform set_config('hashgraph_join.force', 'off', true);
	perform set_config('hashgraph_join.rewrite', 'on', true);
	return differs || case when found > 0 then 'joined' else 'as written' end;
end $$;

-- Runs a query as it stands, and returns its error, or that there was none.
create function hgj_says(q text) returns text language plpgsql as $$
begin
	execute q;
	return 'no error';
exception when others then
	return sqlerrm;
end $$;

-- The nodes of a plan, without what stands below them.
create function hgj_shape(q text) returns setof text language plpgsql as $$
declare
	line text;
	first bool := true;
begin
	for line in execute 'explain (costs off) ' || q loop
		if first or line ~ '-> ' then
			return next line;
		end if;
		first := false;
	end loop;
end $$;

-- What PostgreSQL's own joins answer to queries that are checked in many ways, asked once;
-- of tables that nobody writes meanwhile.
create table hgj_known (q text, n bigint, digest text);
create function hgj_remember(query text) returns void language sql
	set hashgraph_join.enabled = off set max_parallel_workers_per_gather = 0
as $$
	insert into hgj_known select query, d.* from hgj_digest(query) d;
$$;

-- Compares; "nodes" is how many HashGraphJoins the forced plan has at least.
create function hgj_check(q text, nodes int default 1, required bool default true) returns text language plpgsql
	set hashgraph_join.enabled = on set hashgraph_join.force = off set hashgraph_join.require = off
as $$
declare
	stock record;
	ours record;
	joins int;
	workers text := current_setting('max_parallel_workers_per_gather');
begin
	select k.n, k.digest into stock from hgj_known k where k.q = hgj_check.q;
	if not found then
		perform set_config('hashgraph_join.enabled', 'off', true);
		-- starting workers would be most of the time
		perform set_config('max_parallel_workers_per_gather', '0', true);
		if hgj_nodes(q) > 0 then
			return 'HashGraphJoin though it is not enabled: ' || q;
		end if;
		select * into stock from hgj_digest(q);
		perform set_config('max_parallel_workers_per_gather', workers, true);
	end if;
	perform set_config('hashgraph_join.enabled', 'on', true);
	perform set_config('hashgraph_join.force', 'on', true);
	joins := hgj_nodes(q);
	if joins < nodes then
		return format('only %s of %s HashGraphJoins: %s', joins, nodes, q);
	end if;
	if required then
		perform set_config('hashgraph_join.require', 'join', true);
	end if;
	select * into ours from hgj_digest(q);
	if ours is distinct from stock then
		return format('DIFFERENT, %s rows stock and %s ours: %s', stock.n, ours.n, q);
	end if;
	return 'ok';
end $$;

-- hgj_check() where the forced plan must have so many lines of that pattern.
create function hgj_check_lines(q text, nodes int, pattern text, what text) returns text language plpgsql
	set hashgraph_join.force = on
as $$
declare
	found int := hgj_lines(q, pattern);
begin
	if found < nodes then
		return format('only %s of %s %s: %s', found, nodes, what, q);
	end if;
	return hgj_check(q, nodes);
end $$;

-- As hgj_check(), and the forced plan must have a HashGraphAgg, or whatever `what` is,
-- and no aggregation of PostgreSQL's own where one could be.
create function hgj_check_agg(q text, nodes int default 1, pattern text default 'Custom Scan \(HashGraphAgg\)', what text default 'HashGraphAgg') returns text language plpgsql
	set hashgraph_join.enabled = on set hashgraph_join.aggregate = on set hashgraph_join.force = on set hashgraph_join.require = aggregate
as $$
begin
	if hgj_lines(q, pattern) = 0 then
		return format('no %s: %s', what, q);
	end if;
	return hgj_check(q, nodes);
end $$;

-- The same of several queries: what is wrong of them, a line each.
create function hgj_check_each(queries text[], nodes int default 1, pattern text default 'Custom Scan \(HashGraphAgg\)', what text default 'HashGraphAgg') returns text language plpgsql as $$
declare
	said text;
	bad text := '';
	q text;
begin
	foreach q in array queries loop
		said := hgj_check_agg(q, nodes, pattern, what);
		if said <> 'ok' then
			bad := bad || said || E'\n';
		end if;
	end loop;
	return case bad when '' then 'ok' else bad end;
end $$;

-- As hgj_check_agg(), where the forced plan has an exchange.
create function hgj_check_exchange(q text, nodes int default 1) returns text language sql
as $$ select hgj_check_agg(q, nodes, 'Exchange: groups, by hash', 'exchange') $$;

-- As hgj_check_agg(), and says why the pipeline was not used if that is not what is wanted,
-- unless it is because there is no device; but the reasons of `early` come before that one.
create function hgj_check_device(q text, wanted text, nodes int, early text) returns text language plpgsql as $$
declare
	line text;
	said text := 'nothing';
	same text := hgj_check_agg(q, nodes);
begin
	if same <> 'ok' then
		return same;
	end if;
	for line in execute 'explain (analyze, buffers off, costs off, timing off, summary off) ' || q loop
		if line ~ 'Device Pipeline: ' then
			said := substring(line from 'Device Pipeline: (.*)');
		end if;
	end loop;
	if said = wanted or (said = 'no (engine without pipelines)' and wanted !~ early and
		current_setting('hgj_test.device', true) is distinct from 'yes') then
		return 'ok';
	end if;
	return format('%s, not %s: %s', said, wanted, q);
end $$;

-- The same over every way of building, probing and storing, in little and in
-- enough memory.
create function hgj_check_ways(q text, nodes int default 1) returns text language plpgsql
	set hashgraph_join.build = auto set hashgraph_join.probe = auto set hashgraph_join.segments = auto set hashgraph_join.filter = auto set work_mem = '4MB'
as $$
declare
	way record;
	said text;
	bad text := '';
	ways int := 0;
begin
	perform hgj_remember(q);
	for way in
		select * from unnest('{auto,v1,v2,sort,direct}'::text[]) build, unnest('{auto,standard,binned}'::text[]) probe,
			unnest('{auto,csr,ellpack,sliced}'::text[]) segments, unnest('{64kB,4MB}'::text[]) memory
	loop
		perform set_config('hashgraph_join.build', way.build, true), set_config('hashgraph_join.probe', way.probe, true),
			set_config('hashgraph_join.segments', way.segments, true), set_config('work_mem', way.memory, true),
			set_config('hashgraph_join.filter', ('{auto,on,off}'::text[])[ways % 3 + 1], true);
		said := hgj_check(q, nodes);
		ways := ways + 1;
		if said <> 'ok' then
			bad := bad || format(E'\n%s %s %s %s %s: %s', way.build, way.probe, way.segments, current_setting('hashgraph_join.filter'), way.memory, said);
		end if;
	end loop;
	delete from hgj_known k where k.q = hgj_check_ways.q;
	return case when bad = '' then format('ok (%s ways)', ways) else bad end;
end $$;

-- Data-modifying statements: compares what they leave in a table, and undoes it.
create function hgj_check_dml(dml text, target text, nodes int default 1, required bool default true) returns text language plpgsql
	set hashgraph_join.enabled = on set hashgraph_join.force = off set hashgraph_join.require = off
as $$
declare
	results text[] := '{}';
	found int;
	n bigint;
	r record;
begin
	for forced in 0 .. 1 loop
		perform set_config('hashgraph_join.enabled', case forced when 1 then 'on' else 'off' end, true),
			set_config('hashgraph_join.force', case forced when 1 then 'on' else 'off' end, true);
		found := hgj_nodes(dml);
		if forced = 1 and found < nodes then
			return format('only %s of %s HashGraphJoins: %s', found, nodes, dml);
		end if;
		if forced = 1 and required then
			perform set_config('hashgraph_join.require', 'join', true);
		end if;
		begin
			execute dml;
			get diagnostics n = row_count;
			select * into r from hgj_digest('select * from ' || target);
			results := results || format('%s rows, then %s', n, r);
			raise exception using errcode = 'HGJ01';
		exception when sqlstate 'HGJ01' then null;
		end;
	end loop;
	if results[1] <> results[2] then
		return format('DIFFERENT: %s', results);
	end if;
	return 'ok';
end $$;

-- EXPLAIN without what differs from run to run.
-- A line of EXPLAIN in PostgreSQL 15's words: from 18 on rows have two decimals, and
-- from 17 on a subplan is written as what is done with it.
create function hgj_plain(line text) returns text language plpgsql as $$
declare
	n text := substring(line from 'actual rows=(\d+\.\d+)');
begin
	if n is not null then
		line := replace(line, 'actual rows=' || n, 'actual rows=' || round(n::numeric));
	end if;
	return regexp_replace(line, '\(ANY \([\w.]+ = \((hashed SubPlan \d+)\)\.col1\)\)', '(\1)', 'g');
end $$;
create function hgj_explain(q text) returns setof text language plpgsql as $$
declare
	line text;
begin
	for line in execute 'explain ' || q loop
		line := regexp_replace(line, 'Memory Usage: \d+kB', 'Memory Usage: NkB');
		line := regexp_replace(line, 'Memory: \d+kB', 'Memory: NkB');
		line := regexp_replace(line, 'Memory Usage": \d+', 'Memory Usage": N');
		continue when line ~ '(Planning|Execution) Time' or line ~ 'Planning:' or line ~ 'Buffers:';
		return next hgj_plain(line);
	end loop;
end $$;

-- The plan of a query that has been run.
create function hgj_plan_json(q text) returns jsonb language plpgsql as $$
declare
	plan json;
begin
	execute 'explain (analyze, buffers off, costs off, timing off, summary off, format json) ' || q into plan;
	return plan;
end $$;

-- What each process has done in a HashGraphAgg of such a plan.
create function hgj_process_reports(agg jsonb) returns setof jsonb language sql as $$
	select jsonb_array_elements(coalesce(agg -> 'Worker Aggregations', '[]') || case when agg ? 'Groups' then jsonb_build_array(agg) else '[]' end)
$$;

-- a: 1000 rows, keys 0 to 99 ten times each, every 17th NULL.  b: 600 rows,
-- keys 50 to 149.  c: 200 rows with a primary key.  hot: one key has 80% of
-- the rows.  none: no rows.  nulls: no key at all.
create table a (id int, k int, k8 int8, t text, v int, w int) with (autovacuum_enabled = off);
insert into a select g, case when g % 17 <> 0 then g % 100 end, case when g % 11 <> 0 then g % 70 end,
	'text ' || g % 100, g % 37, g % 10 from generate_series(1, 1000) g;
create table b (like a) with (autovacuum_enabled = off);
insert into b select g, case when g % 13 <> 0 then 50 + g % 100 end, g % 90,
	case when g % 5 <> 0 then 'text ' || g % 150 end, g % 41, g % 7 from generate_series(1, 600) g;
create table c (id int primary key, k int, k8 int8, t text, v int, w int) with (autovacuum_enabled = off);
insert into c select g, g % 120, g, 'text ' || g, g % 43, g % 5 from generate_series(1, 200) g;
create table hot (like a) with (autovacuum_enabled = off);
insert into hot select g, case when g % 5 = 0 then g else 77 end, 77, 'hot', g % 37, g % 10 from generate_series(1, 300) g;
create table none (like a) with (autovacuum_enabled = off);
create table nulls (like a) with (autovacuum_enabled = off);
insert into nulls select g, null, null, null, g, g % 3 from generate_series(1, 100) g;
analyze a, b, c, hot, none, nulls;

-- The helpers can fail: a query whose two runs differ, and one without a join.
create function hgj_forced() returns text language sql volatile as $$ select current_setting('hashgraph_join.force') $$;
select regexp_replace(hgj_check('select a.id, hgj_forced() from a join b using (k)'), ':.*', '') as says;
select hgj_check('select id from a') as says;
select regexp_replace(hgj_check_dml('update a set t = hgj_forced() from b where a.k = b.k', 'a'), '\(.*', '') as says;
select hgj_check('select a.id from a join b using (k)') as says;
