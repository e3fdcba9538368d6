-- A build side that memory does not hold is split into partitions on temporary
-- files: the same rows, every type of join.  (partitions.sql is about
-- partitioned tables, passes.sql about passes.)
create temp table p (id int, k int, t text) with (autovacuum_enabled = off);
create temp table q (id int, k int, t text, w text) with (autovacuum_enabled = off);
insert into p select g, case when g % 20 <> 0 then g % 700 end, 'outer ' || g from generate_series(1, 1500) g;
insert into q select g, case when g % 30 <> 0 then (g * 7) % 1000 end, 'inner ' || repeat('x', g % 50), case when g % 3 <> 0 then repeat('w', g % 5) end from generate_series(1, 1200) g;
create temp table one_key as select g as id, 5 as k, 'one ' || repeat('y', 40) as t from generate_series(1, 1000) g;
create temp table ten_of_key (id int, k int);
insert into ten_of_key select g, case when g <= 10 then 5 else -g end from generate_series(1, 1200) g;
-- one hot key among others, on both sides
create temp table warm as select g as id, case when g % 4 = 0 then 7 else g end as k, 'warm ' || g as t from generate_series(1, 1200) g;
create temp table few as select g as id, g % 7 as k from generate_series(1, 3) g;
create temp table nothing (id int, k int, t text);
-- by-reference values of all kinds; some are kept out of line, some compressed
create temp table wide (id int, k text, n numeric, a int[], u uuid, x text, y text) with (autovacuum_enabled = off);
alter table wide alter column x set storage external;
insert into wide select g, case when g % 11 <> 0 then 'key ' || repeat('k', g % 40) || g / 2 end, g * 1.5, array[g, null, g + 1], md5((g / 3)::text)::uuid,
	case when g % 50 = 0 then repeat('external ' || g, 400) when g % 7 <> 0 then 'x' || g end,
	case when g % 50 = 1 then repeat('compressed ', 5000) when g % 5 <> 0 then 'y' || g end
	from generate_series(1, 700) g;
analyze p, q, one_key, warm, few, ten_of_key, nothing, wide;

-- Did a query's joins split, how many passes did they take, the most of any, and
-- did match bits of outer rows go to a file?
create function taken(s text, out split bool, out passes int, out bits bool) language plpgsql set hashgraph_join.force = on as $$
declare
	line text;
begin
	split := false;
	bits := false;
	passes := 1;
	for line in execute 'explain (analyze, buffers off, costs off, timing off, summary off) ' || s loop
		split := split or line ~ 'Spilled Inner: [1-9]';
		bits := bits or line ~ 'Spilled Match Bits: [1-9]';
		passes := greatest(passes, (regexp_match(line, 'Passes: (\d+)'))[1]::int);
	end loop;
end $$;

-- Compares with PostgreSQL's own joins in every way to run out of memory, and
-- says which of them split (#) or took passes (p), with bits on file (b).
create function check_spills(s text, nodes int default 1, out says text, out did text) language plpgsql as $$
declare
	way record;
	found record;
	said text;
begin
	says := '';
	did := '';
	perform hgj_remember(s);
	for way in select spill, rows, bits, memory, source from
		(values ('auto', 0, 0, '64kB', 'auto'), ('auto', 100, 64, '4MB', 'tuples'), ('partitions', 8, 0, '4MB', 'auto'), ('partitions', 90, 0, '4MB', 'auto'),
			('partitions', 400, 0, '64kB', 'tuples'), ('passes', 300, 0, '64kB', 'auto'), ('passes', 200, 320, '4MB', 'tuples')) v (spill, rows, bits, memory, source)
	loop
		perform set_config('hashgraph_join.spill', way.spill, true), set_config('hashgraph_join.chunk_rows', way.rows::text, true),
			set_config('work_mem', way.memory, true), set_config('hashgraph_join.source', way.source, true),
			set_config('hashgraph_join.chunk_outer_rows', way.bits::text, true);
		said := hgj_check(s, nodes);
		if said <> 'ok' then
			says := says || format(E'\n%s %s %s %s: %s', way.spill, way.rows, way.bits, way.memory, said);
		end if;
		found := taken(s);
		did := did || case when found.split then '#' when found.passes > 1 then 'p' else '-' end || case when found.bits then 'b' else '' end;
	end loop;
	perform set_config('hashgraph_join.spill', 'auto', true), set_config('hashgraph_join.chunk_rows', '0', true),
		set_config('work_mem', '4MB', true), set_config('hashgraph_join.source', 'auto', true),
		set_config('hashgraph_join.chunk_outer_rows', '0', true);
	delete from hgj_known where q = s;
	says := case when says = '' then 'ok' else says end;
end $$;

create temp table queries (n serial, s text, nodes int default 1);
insert into queries (s) values
	('select p.id, q.id from p join q using (k)'),
	('select p.id, q.id, p.t, q.t, q.w from p left join q on p.k = q.k and p.id < q.id'),
	('select p.id, q.id, p.t, q.t from p right join q on p.k = q.k and p.id < q.id'),
	('select p.id, q.id, p.t, q.t, q.w from p full join q on p.k = q.k and p.id < q.id'),
	('select p, q from p full join q on p.k = q.k'),
	('select p.id, p.t from p where exists (select from q where p.k = q.k and q.id > p.id)'),
	('select p.id, p.t from p where exists (select from q where p.k = q.k)'),
	('select p.id, p.t from p where not exists (select from q where p.k = q.k and q.id > p.id)'),
	('select p.id, p.t from p where not exists (select from q where p.k = q.k)'),
	('select p.id, d.n from p join (select k, count(*) n from q group by k) d using (k)'),
	('select p.id, d.n from p left join (select k, count(*) n from q group by k) d using (k)'),
	('select p.id, q.id from p join q on p.t = ''outer '' || q.k'),
	('select p.id, q.id from p full join q on p.t = ''outer '' || q.k and p.k = q.k % 700'),
	('select x.id, y.id from q x full join q y on x.id = y.k'),
	('select f.id, o.id, o.t from ten_of_key f join one_key o using (k)'),
	('select f.id, o.id, o.t from ten_of_key f left join one_key o on f.k = o.k and f.id > o.id'),
	('select f.id, o.id, o.t from ten_of_key f full join one_key o on f.k = o.k and o.id % 5 = f.id % 5'),
	('select f.id from ten_of_key f where exists (select from one_key o where f.k = o.k and o.id = 990 + f.id)'),
	('select f.id from ten_of_key f where not exists (select from one_key o where f.k = o.k and o.id = 990 + f.id)'),
	('select f.id, w.id, w.t from ten_of_key f right join warm w on f.id = w.k'),
	('select x.id, y.id from warm x join warm y using (k) where x.id < 40'),
	('select x.id, y.id from warm x full join warm y on x.k = y.k and x.id = y.id + 4'),
	('select x.id, y.id from warm x left join warm y on x.k = y.k and x.id < y.id - 1000'),
	('select x.id, y.id from warm x full join warm y on x.k = y.k and x.id < y.id - 1000'),
	('select x.id from warm x where exists (select from warm y where x.k = y.k and x.id < y.id - 600)'),
	('select x.id from warm x where not exists (select from warm y where x.k = y.k and x.id < y.id - 600)'),
	('select p.id, n.t from p left join nothing n using (k)'),
	('select p.id, n.t from nothing n left join p using (k)'),
	('select p.id, n.t from p full join nothing n using (k)'),
	('select n.id, q.t from nothing n right join q using (k)'),
	('select p.id from p where not exists (select from nothing n where n.k = p.k)'),
	('select p.id, q.id from p full join (select * from q where k is null) q using (k)'),
	('select l, r from wide l join wide r using (k)'),
	('select l, r from wide l full join wide r on l.k = r.k and l.id < r.id'),
	('select l.id, l.x, r.y, r.a from wide l left join wide r on l.n = r.n * 2'),
	('select l.id, r.x from wide l right join wide r on l.u = r.u and l.k = r.k'),
	('select l.id, r.id from wide l full join wide r on l.a = r.a'),
	('select l.id from wide l where exists (select from wide r where l.k = r.k and l.x < r.x)'),
	('select l.id from wide l where not exists (select from wide r where l.y = r.y and l.id <> r.id)'),
	('select l.ctid, r.ctid, r.tableoid::regclass from wide l join wide r using (u)');
insert into queries (nodes, s) values
	(2, 'select count(*), sum(p.id), sum(q.id), sum(o.id) from p join q using (k) join warm o on o.k = q.id'),
	(2, 'select p.id, o.t, q.w from p left join q using (k) left join warm o on o.id = q.id'),
	(1, 'select q.t, count(*), sum(p.id) from p join q using (k) group by q.t'),
	-- values as dictionary codes, of a build side that is a join
	(2, 'select q.t, q.w, count(*), max(w.t) from p left join (q join warm w on q.id = w.id) on p.k = q.k group by 1, 2'),
	(1, 'select q.w, q.t, count(p.id), min(p.id) from p right join q using (k) group by 1, 2'),
	(1, 'select f.id, x.n from few f, lateral (select count(*) as n from p full join q on p.k = q.k and p.id < q.id + f.id * 100) x'),
	(1, 'select f.id, x.n from few f, lateral (select count(q.id) as n from p left join (select * from q where id > f.id * 100) q using (k)) x'),
	(1, 'select f.id, (select count(*) from p join q using (k) where p.id > f.id * 100) from few f'),
	(1, 'select p.id from p join q using (k) order by p.id, q.id limit 50');
select n, says, did, s from queries, lateral check_spills(s, nodes) order by n;

-- stopped early, and read in pieces
set hashgraph_join.force = on;
set hashgraph_join.require = join;
set hashgraph_join.chunk_rows = 50;
select count(*) from (select p.id from p join q using (k) limit 10) s;
select count(*) from (select p.id from p full join q using (k) limit 1300) s;
select f.id, (select count(*) from (select 1 from p join q using (k) where p.id > f.id limit 40) x) from few f;
begin;
declare c cursor for select 'row' as r from p full join q on p.k = q.k and p.id < q.id;
fetch 2 from c;
move 1000 in c;
declare d cursor for select 'row' as r from p join q using (k);
move 500 in d;
fetch 1 from c;
close c;
savepoint s;
declare e cursor for select 'row' as r from p join q using (k);
move 300 in e;
rollback to s;
fetch 1 from d;
commit;
-- rows are locked and rechecked
begin;
select count(*) from (select p.id from p join q on p.id = q.id where q.k is null for update of p) s;
rollback;
update p set t = p.t || q.w from q where p.id = q.id and q.id < 8;
select id, t from p where id < 8 order by id;
reset hashgraph_join.force;
reset hashgraph_join.require;
reset hashgraph_join.chunk_rows;

-- an error in the middle, caught, and again
create function caught(s text) returns text language plpgsql set hashgraph_join.force = on set hashgraph_join.chunk_rows = 60 as $$
begin
	for i in 1 .. 30 loop
		begin
			execute s;
			return 'no error';
		exception when division_by_zero then null;
		end;
	end loop;
	return 'caught';
end $$;
select caught('select count(*) from p join q on p.k = q.k and 1 / (p.id - 1499) >= 0');
select caught('select count(*) from p join q on p.k = q.k and 1 / (q.id - 1199) >= 0');
select caught('select count(*) from p full join q on p.k = q.k where 1 / (coalesce(q.id, 5) - 1190) >= 0');

-- what EXPLAIN says
create function explained(s text, f text) returns setof text language plpgsql set hashgraph_join.force = on set hashgraph_join.engine = cpu as $$
declare
	line text;
begin
	for line in execute format('explain (analyze, buffers off, costs off, timing off, summary off, format %s) ', f) || s loop
		return query select regexp_replace(l, '\d\d+', 'N', 'g') from regexp_split_to_table(line, E'\n') l where l ~ 'Partitions|Passes|Spilled|Filtered|Fallback';
	end loop;
end $$;
set hashgraph_join.chunk_rows = 100;
select explained('select p.id, q.t from p left join q using (k)', 'text');
select explained('select p.id, q.t from p left join q using (k)', 'json');
set hashgraph_join.spill = passes;
select explained('select p.id, q.t from p left join q using (k)', 'text');
reset hashgraph_join.chunk_rows;
select explained('select p.id, q.t from p left join q using (k)', 'text');
select explained('select p.id, q.t from p left join q using (k)', 'json');
reset hashgraph_join.spill;

-- rows of the outer side that match nothing on file do not go there
create temp table sparse as select g * 100 as id from generate_series(1, 1500) g;
create temp table most as select g as id from generate_series(1, 30000) g;
analyze sparse, most;
create function spilled_and_filtered(s text, out outer_kb int, out filtered int) language plpgsql set hashgraph_join.force = on as $$
declare
	line text;
begin
	for line in execute 'explain (analyze, buffers off, costs off, timing off, summary off) ' || s loop
		outer_kb := coalesce((regexp_match(line, 'Spilled Outer: (\d+)kB'))[1]::int, outer_kb);
		filtered := coalesce((regexp_match(line, 'Outer Rows Filtered: (\d+)'))[1]::int, filtered);
	end loop;
end $$;
set hashgraph_join.chunk_rows = 100;
select outer_kb < 150 as little_spilled, filtered > 25000 as most_filtered from spilled_and_filtered('select count(*) from most left join sparse using (id)');
select outer_kb < 150 as little_spilled, filtered > 25000 as most_filtered from spilled_and_filtered('select count(*) from most where exists (select from sparse where sparse.id = most.id)');
-- nor those that have had the one match they need
select filtered < 1500 as one_match from spilled_and_filtered('select count(*) from sparse a where exists (select from sparse b where a.id = b.id)');
reset hashgraph_join.chunk_rows;

-- nor does it take a good estimate to tell them: statistics of few rows, or of very many
set work_mem = '256kB';
create temp table stale as select g as id, 'wide ' || repeat('x', 200) as t from generate_series(1, 20000) g;
create temp table asked as select g as id from generate_series(1, 60000) g;
analyze stale, asked;
update pg_class set reltuples = 100 where oid = 'stale'::regclass;
select filtered > 30000 as most_filtered from spilled_and_filtered('select count(a.id), count(s.t) from asked a left join stale s using (id)');
select filtered > 30000 as most_filtered from spilled_and_filtered('select count(a.id), count(s.t) from asked a left join (select * from stale offset 0) s using (id)');
drop table stale, asked;
reset work_mem;

-- memory is honest: what EXPLAIN reports is not far above the limit
set work_mem = '256kB';
create temp table many as select g as id, 'text of ' || g as t from generate_series(1, 40000) g;
create temp table same as select 1 as id, 'text of ' || g as t from generate_series(1, 40000) g;
analyze many, same;
create function memory_in_partitions(s text) returns int language plpgsql set hashgraph_join.force = on as $$
declare
	line text;
	kb int := 0;
begin
	for line in execute 'explain (analyze, buffers off, costs off, timing off, summary off) ' || s loop
		kb := greatest(kb, (regexp_match(line, 'Memory Usage: (\d+)kB  Passes'))[1]::int);
	end loop;
	return kb;
end $$;
select s, memory_in_partitions(s) between 1 and 3 * 256 as within_reason from (values
	('select count(b.t) from many a join many b using (id) where a.id + b.id > 0'),
	('select count(b.t) from many a left join same b using (id) where a.id % 2 = 0 or b.id is null'),
	('select count(a.t), count(b.t) from many a full join many b on a.id = b.id')) v (s);
reset work_mem;
drop function taken, check_spills, caught, explained, spilled_and_filtered, memory_in_partitions;
drop table p, q, one_key, ten_of_key, warm, few, nothing, wide, queries, sparse, most, many, same;
