-- Joins that want nothing of the inner side but whether, and how often, a key is there:
-- a bit per key, or entries of two bytes where keys lie far apart.
create table o (id int, k int, b bigint, v int) with (autovacuum_enabled = off);
create table unique_keys (k int, b bigint, v int) with (autovacuum_enabled = off);
create table some_twice (k int, b bigint, v int) with (autovacuum_enabled = off);
create table often (k int, v int) with (autovacuum_enabled = off);
create table far (k int, v int) with (autovacuum_enabled = off);
create table far_twice (k int, v int) with (autovacuum_enabled = off);
create table probes (k int, v int) with (autovacuum_enabled = off);
insert into unique_keys select g * 3 - 4000, g * 3 - 4000 + 9000000000, g % 50 from generate_series(1, 4000) g;
insert into some_twice select k, b, v + 1 from unique_keys union all select k, b, 0 from unique_keys where k % 5 = 0;
insert into unique_keys values (null, null, 1), (null, 9000000001, 2);
insert into some_twice values (null, null, 1);
insert into often select case when g % 3 = 0 then 77 else g end, g from generate_series(1, 6000) g;
-- of all 32 bits, so that a bit per key would take half a gigabyte
insert into far select (g * 2654435761 % 4294967296 - 2147483648)::int, g from generate_series(1::bigint, 100000) g;
insert into far values (2147483647, 0), (-2147483648, 0), (null, 0);
insert into far_twice select k, v from far union all select k, v + 1 from far where v % 4 = 0 union all select 5, g from generate_series(1, 3000) g;
insert into o select g, case when g % 19 <> 0 then g % 15000 - 5000 end, g % 15000 - 5000 + 9000000000, g % 37 from generate_series(1, 20000) g;
insert into probes select k, v from far, generate_series(1, 2) where v % 30 <> 0;
insert into probes select k + 1, v from far where k < 2147483647 and v % 7 = 0;
insert into probes values (null, 1), (5, 2), (5, 3), (2147483647, 4), (-2147483648, 5), (0, 6);
analyze o, unique_keys, some_twice, often, far, far_twice, probes;

-- What the tables of a query's joins were like, from the uppermost on.
create function hgj_segments(q text) returns text language sql
	set hashgraph_join.force = on
as $$
	select string_agg(substring(line from 'Segments: (\w+)'), ', ')
	from hgj_explain('(analyze, costs off, timing off, summary off) ' || q) line
$$;

create temp table queries (q text);
insert into queries values
	('select o.id from o join unique_keys u on o.k = u.k'),
	('select o.id from o join unique_keys u on o.b = u.b'),
	('select o.id from o join unique_keys u on o.b = u.k'),
	('select o.id from o left join (select k from unique_keys where v > 3) u on o.k = u.k'),
	('select count(*), sum(o.v) from o join unique_keys u on o.k = u.k'),
	('select o.v, count(*) from o join unique_keys u on o.k = u.k and u.v < 30 group by 1'),
	('select o.id from o where exists (select from unique_keys u where o.k = u.k)'),
	('select o.id from o where not exists (select from unique_keys u where o.k = u.k)'),
	('select o.id from o where exists (select from some_twice s where o.k = s.k)'),
	('select o.id from o where not exists (select from some_twice s where o.k = s.k)'),
	('select o.id from o where o.k in (select h.k from often h)'),
	('select count(*), sum(o.v) from o where o.b in (select s.b from some_twice s where s.v > 7)'),
	-- how often a key is there
	('select o.id from o join some_twice s on o.k = s.k'),
	('select count(*), sum(o.v) from o join some_twice s on o.k = s.k'),
	('select o.id from o left join some_twice s on o.k = s.k'),
	('select o.id from o join often h on o.k = h.k where o.v < 3'),
	-- far apart
	('select p.v from probes p join far f on p.k = f.k'),
	('select p.v from probes p left join far f on p.k = f.k'),
	('select p.v from probes p where exists (select from far f where p.k = f.k)'),
	('select p.v from probes p where not exists (select from far f where p.k = f.k)'),
	('select p.v from probes p join far_twice f on p.k = f.k'),
	('select count(*), sum(p.v) from probes p join far_twice f on p.k = f.k'),
	('select p.v from probes p left join far_twice f on p.k = f.k'),
	('select p.v from probes p where exists (select from far_twice f where p.k = f.k)'),
	('select p.v from probes p where not exists (select from far_twice f where p.k = f.k and f.v > 100)'),
	-- not these: a row is looked at, or it has to be known which rows have matched
	('select o.id, u.v from o join unique_keys u on o.k = u.k'),
	('select o.id from o join unique_keys u on o.k = u.k and o.v < u.v'),
	('select o.id from o right join unique_keys u on o.k = u.k'),
	('select o.id from o full join unique_keys u on o.k = u.k'),
	('select o.id from o join unique_keys u on o.k = u.k and o.b = u.b'),
	-- several joins, the inner side of one another one
	('select o.v, count(*) from o join unique_keys u on o.k = u.k join some_twice s on s.b = o.b group by 1'),
	('select o.id from o where exists (select from unique_keys u join some_twice s on u.k = s.k where u.b = o.b)');

set hashgraph_join.engine = cpu;
-- nothing of it is too small
set hashgraph_join.min_rows = 0;
select count(hgj_remember(q)) from queries;
-- keys are not made unique first
set enable_hashagg = off;
set enable_sort = off;
set work_mem = '64MB';
select hgj_check(q), hgj_segments(q), q from queries;
-- keys that lie as far apart as can be, and a few
select hgj_check(q), hgj_segments(q) from (values ('select count(*) from (values (1::bigint), (9223372036854775807), (-9223372036854775808), (null)) a (k) join (values (9223372036854775807), (-9223372036854775808), (null)) b (k) using (k)')) t (q);

-- with filters, and without; what is asked for is had
set hashgraph_join.filter = on;
select hgj_check(q), hgj_segments(q) from queries where q ~ 'p.v from probes p join|o.id from o join (unique_keys|some_twice) . on o.k = ..k$';
set hashgraph_join.filter = off;
select hgj_check(q), hgj_segments(q) from queries where q ~ 'p.v from probes p join|o.id from o join (unique_keys|some_twice) . on o.k = ..k$';
reset hashgraph_join.filter;
set hashgraph_join.segments = csr;
select hgj_check(q), hgj_segments(q) from queries where q ~ 'p.v from probes p join|o.id from o join unique_keys u on o.k = u.k$';
reset hashgraph_join.segments;
set hashgraph_join.probe = binned;
select hgj_check(q), hgj_segments(q) from queries where q ~ 'p.v from probes p join|o.id from o join unique_keys u on o.k = u.k$';
reset hashgraph_join.probe;

reset work_mem;
-- passes, and partitions on file
set hashgraph_join.chunk_rows = 700;
select hgj_check(q) from queries where q !~ 'probes';
reset hashgraph_join.chunk_rows;
set work_mem = '64kB';
set hash_mem_multiplier = 1;
select hgj_check(q) from queries where q ~ 'far_twice|some_twice';
reset work_mem;
reset hash_mem_multiplier;

-- by several processes
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
set max_parallel_workers_per_gather = 1;
set hashgraph_join.parallel_build = shared;
set hashgraph_join.agg_tuple_cost = 1;
set hashgraph_join.build_tuple_cost = 1;
set hashgraph_join.probe_tuple_cost = 0;
set work_mem = '64MB';
select hgj_check_lines(q, 1, 'Build Side: shared', 'shared builds'), hgj_segments(q), q from queries where q !~ 'full join|right join';
set work_mem = '64kB';
set hash_mem_multiplier = 1;
set max_parallel_workers_per_gather = 2;
select hgj_check(q) from queries where q ~ 'far f|unique_keys u on o.k = u.k$';
reset work_mem;
reset hash_mem_multiplier;
