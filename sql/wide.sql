-- Wide rows and huge values: megabytes in a column, 1,600 columns, 32 and more
-- key columns, values that are computed and not stored.  The same rows as
-- PostgreSQL's own joins have, in memory and on temporary files; where the session
-- forces one way (test/spill), that one only.
create temp table was as select current_setting('hashgraph_join.spill') as spill, current_setting('hashgraph_join.chunk_rows')::int as rows,
	current_setting('work_mem') as memory, current_setting('hashgraph_join.source') as source;
create function ways(s text, nodes int default 1, aggregate bool default false) returns text language plpgsql as $$
declare
	way record;
	said text;
	bad text := '';
begin
	perform hgj_remember(s);
	for way in select * from was where was.rows > 0 union all select v.* from was,
		(values ('auto', 0, '64kB', 'auto'), ('auto', 0, '256MB', 'auto'), ('partitions', 3, '64kB', 'tuples'), ('passes', 5, '64kB', 'auto')) v (spill, rows, memory, source)
		where was.rows = 0
	loop
		perform set_config('hashgraph_join.spill', way.spill, true), set_config('hashgraph_join.chunk_rows', way.rows::text, true),
			set_config('work_mem', way.memory, true), set_config('hashgraph_join.source', way.source, true);
		said := case when aggregate then hgj_check_agg(s, nodes) else hgj_check(s, nodes) end;
		if said <> 'ok' then
			bad := bad || format(E'\n%s %s %s %s: %s', way.spill, way.rows, way.memory, way.source, said);
		end if;
	end loop;
	perform set_config('hashgraph_join.spill', was.spill, true), set_config('hashgraph_join.chunk_rows', was.rows::text, true),
		set_config('work_mem', was.memory, true), set_config('hashgraph_join.source', was.source, true) from was;
	delete from hgj_known where q = s;
	return case when bad = '' then 'ok' else bad end;
end $$;

-- ---- values of megabytes: out of line, compressed, both; as keys and beside them
create temp table huge (id int, k text, x text, z text, b bytea, g text);
alter table huge alter k set storage external, alter x set storage external, alter b set storage external;
insert into huge
	select g, case when g % 6 <> 0 then repeat(t, 30) || g % 4 end, case when g % 5 <> 0 then repeat(t, 50) || g end,
		case when g % 3 <> 0 then repeat('compressed ' || g, case g when 10 then 500000 else 100000 end) end, convert_to(repeat(t, 10 + g % 3), 'UTF8'),
		case when g % 4 <> 0 then repeat(t, g % 3 * 30) end
	from generate_series(1, 14) g, (select string_agg(md5(i::text), '') t from generate_series(1, 1000) i) t;
-- the same bytes, stored in another way
create temp table other as select id + 3 as id, k, z, b, g from huge where id > 2;
alter table other alter k set storage main;
insert into other select id + 100, repeat('compressed ' || id, 100000), z, b, 'short' from huge where id < 6;
analyze huge;
analyze other;
select pg_size_pretty(max(length(x))::bigint), pg_size_pretty(max(length(z))::bigint) from huge;

create temp table queries (n serial, s text, nodes int default 1, aggregate bool default false);
insert into queries (s) values
	('select a.id, b.id, md5(a.x), md5(a.k), md5(b.k) from huge a join other b using (k)'),
	('select a.id, b.id, md5(a.x), md5(b.z) from huge a left join other b on a.k = b.k and a.id < b.id'),
	('select a.id, b.id, md5(a.x), md5(b.z) from huge a right join other b on a.k = b.k and a.id < b.id'),
	('select a.id, b.id, md5(a.x), md5(b.z), md5(a.k), md5(b.k) from huge a full join other b on a.k = b.k and a.id < b.id'),
	('select a.id, md5(a.x) from huge a where exists (select from other b where a.k = b.k and a.id < b.id)'),
	('select a.id, md5(a.x) from huge a where not exists (select from other b where a.k = b.k and a.id < b.id)'),
	('select b.id, md5(b.k) from other b where b.k in (select k from huge)'),
	('select a.id, b.id from huge a join other b on a.z = b.k'),
	('select a.id, b.id from huge a full join other b on a.z = b.k and a.id + 100 = b.id'),
	('select a.id, b.id from huge a join other b on a.b = b.b and a.id % 5 = b.id % 5'),
	('select a.id, b.id from huge a join other b on a.id = b.id and a.k = b.k and a.z <> b.z'),
	('select a.id, b.id from huge a join other b on a.id % 3 = b.id % 3 and a.k = b.k || ''''''''::text'),
	('select a.id, b.id, md5(a.x || b.z) from huge a join other b on a.id = b.id where a.k = (select k from huge where id = 5)'),
	('select a.id, b.id, c.id, md5(c.x) from huge a join other b using (k) join huge c on c.k = a.k and c.id > b.id');
insert into queries (s, nodes, aggregate) values
	('select md5(a.k), count(*), md5(max(b.z)), md5(min(a.x)) from huge a join other b on a.id = b.id group by a.k', 1, true),
	('select md5(b.g), count(*), md5(max(a.g)), sum(a.id) from huge a join other b on a.id % 5 = b.id % 5 group by b.g', 1, true),
	('select md5(a.z), md5(b.k), count(b.z) from huge a join other b on a.id % 5 = b.id % 5 group by a.z, b.k', 1, true),
	('select md5(max(a.x)), md5(min(b.z)), max(length(a.x || b.z)) from huge a join other b on a.id % 7 = b.id % 7', 1, true);
select n, ways(s, nodes, aggregate) from queries order by n;
truncate queries;

-- ---- values that are computed: hundreds of megabytes of them in all
--
-- What a join keeps at a time stays within the limit (128 kB) and a batch.
create function most_memory(s text) returns int language plpgsql set hashgraph_join.force = on set work_mem = '64kB' as $$
declare
	line text;
	most int := 0;
begin
	for line in execute 'explain (analyze, buffers off, costs off, timing off, summary off) ' || s loop
		most := greatest(most, (regexp_match(line, 'Memory Usage: (\d+)kB'))[1]::int);
	end loop;
	return most;
end $$;
create temp table numbers as select g as id from generate_series(1, 700) g;
analyze numbers;
insert into queries (s, aggregate) values
	('select a.id, length(a.x), length(b.x), md5(b.x) from (select id, repeat(''a'' || id, 10000) x from numbers offset 0) a join (select id % 500 as id, repeat(''b'' || id, 30000) x from numbers offset 0) b using (id)', false),
	('select a.id, b.id from (select id, repeat(''c'' || id % 300, 15000) x from numbers offset 0) a full join (select id, repeat(''c'' || id % 400, 15000) x from numbers offset 0) b using (x)', false);
-- passes over all of them, of which memory holds a few at a time, would be hundreds
set hashgraph_join.chunk_rows = 0;
set hashgraph_join.spill = auto;
select hgj_check(s) from queries order by n;
select most_memory(s) between 128 and 2048 as memory from queries order by n;
reset hashgraph_join.chunk_rows;
reset hashgraph_join.spill;
truncate queries;

-- ---- 1,600 columns
do $$
declare
	columns text;
	nulls text;
begin
	select string_agg(format('c%s int', i), ', '), string_agg(format('case when (g + %s) %% 9 <> 0 then (g * %s) %% 500 end', i, i), ', ')
		into columns, nulls from generate_series(2, 1600) i;
	execute format('create temp table w1 (c1 int, %s)', columns);
	execute format('create temp table w2 (c1 int, %s)', columns);
	execute format('insert into w1 select g, %s from generate_series(1, 60) g', nulls);
	execute format('insert into w2 select g + 20, %s from generate_series(1, 60) g', nulls);
end $$;
analyze w1;
analyze w2;
insert into queries (s, aggregate)
	select format(q, (select string_agg(format(part, i), sep) from generate_series(1, n) i)), aggregate
	from (values
		(1, 'select %s from w1 a join w2 b using (c1)', 'a.c%1$s a%1$s, b.c%1$s b%1$s', ', ', 832, false),
		(2, 'select %s from w1 a full join w2 b on a.c1 = b.c1 and a.c2 + b.c3 > 400', 'a.c%1$s a%1$s, b.c%1$s b%1$s', ', ', 832, false),
		(3, 'select w1 from w1 where exists (select from w2 where w2.c1 = w1.c1 and (%s))', 'w1.c%1$s + w2.c%1$s = 777', ' or ', 1600, false),
		(4, 'select a.c1, %s from w1 a left join w2 b using (c1) group by a.c1', 'max(a.c%1$s + b.c%1$s)', ', ', 600, true),
		(5, 'select a.c1, %s from w1 a left join w2 b using (c1)', 'coalesce(a.c%1$s, 0) + coalesce(b.c%1$s, 0)', ' + ', 1600, false),
		(6, 'select a from w1 a left join w2 b on %s', 'a.c%1$s = b.c%1$s', ' and ', 30, false)) v (n0, q, part, sep, n, aggregate)
	order by n0;
select n, ways(s, 1, aggregate) from queries order by n;
select ways('select a, b from w1 a full join w2 b using (c1)');
truncate queries;

-- ---- many key columns: 32, 64 words, and more, which are join filters then
create temp table keys1 as select g as id, x.* from generate_series(1, 300) g, lateral (select
	array_agg((g * i) % 3 order by i) filter (where i <= 70) as a from generate_series(1, 70) i) x;
do $$ begin
	execute format('create temp table many1 as select id, %s from keys1', (select string_agg(format('case when id %% 97 <> %1$s then a[1 + id %% 5] + %1$s end as i%1$s, (''text '' || a[2 + id %% 3] || repeat(''x'', %1$s)) as t%1$s, md5(a[1 + id %% 4]::text || %1$s)::uuid as u%1$s', n), ', ') from generate_series(1, 70) n));
	create temp table many2 as table many1;
	update many2 set i40 = i40 + 1 where id % 7 = 0;
	update many2 set t33 = t33 || 'y' where id % 11 = 0;
	update many2 set u35 = md5('other')::uuid where id % 13 = 0;
end $$;
analyze many1;
analyze many2;
insert into queries (s)
	select format('select a.id, b.id from many1 a %s join many2 b on a.id %% 20 = b.id %% 20 and %s', jointype,
		(select string_agg(format('a.%1$s%2$s = b.%1$s%2$s', letter, i), ' and ') from generate_series(1, n) i))
	from unnest('{inner,full}'::text[]) with ordinality j (jointype, o), (values (1, 'i', 31), (2, 'i', 63), (3, 'i', 70), (4, 't', 32), (5, 't', 60), (6, 'u', 32), (7, 'u', 70)) v (m, letter, n)
	order by o, m;
select n, ways(s) from queries order by n;
truncate queries;

-- ---- expanded values: arrays and records as PL/pgSQL hands them over
create function expanded(n int) returns int[] language plpgsql as $$ declare a int[] := '{}'; begin a[1] := n % 40; a[2] := n % 3; a[600] := 5; return a; end $$;
create type wide_pair as (x int, y text);
create function expanded_pair(n int) returns wide_pair language plpgsql as $$ declare p wide_pair; begin p.x := n % 40; p.y := repeat('y', n % 5); return p; end $$;
insert into queries (s, aggregate) values
	('select a.id, b.id, a.e, b.e from (select id, expanded(id) e from numbers where id < 200 offset 0) a join (select id, expanded(id * 3) e from numbers where id < 150 offset 0) b on a.e = b.e', false),
	('select a.id, b.id, a.e, b.e from (select id, expanded(id) e from numbers where id < 200 offset 0) a full join (select id, expanded(id * 3) e from numbers where id < 150 offset 0) b on a.id = b.id and a.e <> b.e', false),
	('select a.id, b.id, a.p, b.p from (select id, expanded_pair(id) p from numbers where id < 200 offset 0) a left join (select id, expanded_pair(id * 3) p from numbers where id < 150 offset 0) b on a.p = b.p', false),
	('select a.e, b.e as f, count(*), max(b.e), min(a.e) from (select id, expanded(id) e from numbers where id < 200 offset 0) a join (select id, expanded(id * 3) e from numbers where id < 150 offset 0) b on a.id = b.id group by a.e, b.e', true);
select n, ways(s, 1, aggregate) from queries order by n;

-- ---- more than 2^31 matches are counted, and not listed
set hashgraph_join.force = on;
set hashgraph_join.require = aggregate;
-- passes of a few rows would be thousands
set hashgraph_join.chunk_rows = 0;
create temp table same as select 1 as k, g as v from generate_series(1, 47000) g;
analyze same;
select count(*), count(*) > 1::bigint << 31 as many from same a join same b using (k);

-- A chain of 400 joins: what a join asks of those below it is asked once of each, whoever
-- is above, and their filters are asked about the rows of the table at the bottom.
create table wide_link as select g as k, g * 3 % 40 as v from generate_series(1, 40) g;
analyze wide_link;
do $$
declare
	q text;
	stock text;
	ours text;
begin
	select 'select count(*), sum(t0.k), sum(t400.v) from wide_link t0 ' ||
		string_agg(format('join wide_link t%s on t%s.k = t%s.k%s', g, g, g - 1, case when g % 100 = 0 then format(' and t%s.v > %s', g, g / 50) else '' end), ' ' order by g)
		into q from generate_series(1, 400) g;
	perform set_config('join_collapse_limit', '1', true);
	perform set_config('hashgraph_join.enabled', 'off', true);
	execute 'select x::text from (' || q || ') x' into stock;
	perform set_config('hashgraph_join.enabled', 'on', true), set_config('hashgraph_join.force', 'on', true),
		set_config('hashgraph_join.require', 'join', true);
	execute 'select x::text from (' || q || ') x' into ours;
	if ours is distinct from stock then
		raise exception '% is not %', ours, stock;
	end if;
	raise notice '%', ours;
end $$;
drop table wide_link;
