-- Group columns of every hashable type: answers are PostgreSQL's, by one process and by
-- workers, whose groups are combined or exchanged, and a HashGraphAgg is required.
create type gt_pair as (a int, b text);
create type gt_mood as enum ('sad', 'ok', 'happy');
create domain gt_short as varchar(6) check (value <> 'never');
create domain gt_pairs as gt_pair[];
create type gt_span as range (subtype = float8);
create collation gt_loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
create collation gt_icu (provider = icu, locale = 'en-US');
create table gt (id int, k int, arr int[], arrt text[], arr2 numeric[], arrl text[] collate gt_loose, r4 int4range, rn numrange, mr int4multirange, sp gt_span, comp gt_pair, comps gt_pair[], doms gt_pairs, j jsonb, ip inet, net cidr, mac macaddr, mac8 macaddr8,
	bits bit(12), e gt_mood, es gt_mood[], dom gt_short, u uuid, iv interval, tz timetz, tm time, ts timestamp, tsz timestamptz, d date, loose text collate gt_loose, icu text collate gt_icu, bp char(8), bploose char(8) collate gt_loose, f4 float4, f8 float8, fs float8[], n numeric, n2 numeric(8,2), x8 xid8, x xid, o oid, c "char", nm name, by bytea, b bool,
	l pg_lsn, reg regclass, cash money, tsv int2) with (autovacuum_enabled = off);
insert into gt select i, i % 23, case when i % 17 > 0 then array[i % 3, null, i % 2] end, case when i % 19 > 0 then array['a' || i % 4, 'B'] end, (array['{1,2.0}', '{1.0,2}', '{1.00,2.00}', '{NaN}', '{}', null])[1 + i % 6]::numeric[], (array['{a,b}', '{A,b}', '{a,B}', '{c}', null])[1 + i % 5]::text[],
	case when i % 13 > 0 then int4range(i % 5, i % 5 + 1 + i % 3, (array['[]', '[)', '(]'])[1 + i % 3]) end, (array['[1,2]', '[1.0,2.00]', 'empty', '(1,1)', '(,5)', null])[1 + i % 6]::numrange, (array['{[1,3)}', '{[1,2),[2,3)}', '{}', '{[7,9]}', null])[1 + i % 5]::int4multirange,
	(array['[0,1)', '[-0,1)', '[0,nan]', 'empty', null])[1 + i % 5]::gt_span, case when i % 9 > 0 then row(i % 3, nullif('t' || i % 2, 't1'))::gt_pair end, case when i % 10 > 0 then array[row(i % 2, 'x')::gt_pair, null] end, case when i % 6 > 0 then array[row(null, i % 3)::gt_pair] end,
	(array['{"a": 1, "b": [1, 2.0]}', '{"b": [1, 2.00], "a": 1.0}', '[]', '"x"', 'null', '1', '1.0', null])[1 + i % 8]::jsonb, (array['10.0.0.1', '10.0.0.1/32', '10.0.0.1/24', '::1', '::ffff:1.2.3.4', null])[1 + i % 6]::inet, (array['10.0.0.0/24', '10.0.0.0/16', null])[1 + i % 3]::cidr,
	(array['08:00:2b:01:02:03', '08002b010204', null])[1 + i % 3]::macaddr, (array['08:00:2b:01:02:03:04:05', '08:00:2b:01:02:03', null])[1 + i % 3]::macaddr8,
	(i % 5)::bit(12), (array['sad', 'ok', 'happy', null])[1 + i % 4]::gt_mood, (array['{sad,ok}', '{ok}', '{happy,NULL}', null])[1 + i % 4]::gt_mood[], (array['one', 'two', 'three ', 'three', null])[1 + i % 5],
	case when i % 7 > 0 then md5((i % 6)::text)::uuid end, (array['1 day', '24 hours', '1 mon', '30 days', '29 days 24:00', '-1 day', null])[1 + i % 7]::interval, (array['12:00+00', '13:00+01', '12:00+01', null])[1 + i % 4]::timetz, (array['12:00', '24:00', '00:00', null])[1 + i % 4]::time,
	timestamp '2000-01-01' + i % 5 * interval '1 day', (array['2000-01-01 12:00+00', '2000-01-01 13:00+01', '-infinity', 'infinity', null])[1 + i % 5]::timestamptz, (array['2000-01-01', 'infinity', null])[1 + i % 3]::date,
	(array['a', 'A', 'b', 'B', 'ab', '', null])[1 + i % 7], (array['a', 'A', 'é', 'é', null])[1 + i % 5], (array['x', 'x  ', 'X', '', null])[1 + i % 5], (array['x', 'X  ', 'y', 'Y', '', null])[1 + i % 6],
	(array['0', '-0', 'nan', 'inf', '-inf', '1.5', null])[1 + i % 7]::float4, (array['0', '-0', 'nan', '-nan', 'inf', '-inf', '1e-310', '2', null])[1 + i % 9]::float8, (array['{0}', '{-0}', '{nan}', '{1,nan}', '{}', null])[1 + i % 6]::float8[],
	(array['1', '1.0', '1.00', 'NaN', 'Infinity', '-Infinity', '0', '-0.00', '1e30', null])[1 + i % 10]::numeric, (array['1', '1.5', 'NaN', '0', '-0.004', null])[1 + i % 6]::numeric(8,2), (i % 4)::text::xid8, (i % 4)::text::xid, 4294967290 + i % 4, (array['a', 'b', '', null])[1 + i % 4]::"char", 'name ' || i % 5,
	decode((array['', '00', '0000', 'ff', null])[1 + i % 5], 'hex'), (array[true, false, null])[1 + i % 3], ('0/' || i % 3)::pg_lsn, (array['pg_class', 'pg_type', null])[1 + i % 3]::regclass, (i % 6)::money, i % 4
	from generate_series(1, 2600) i;
create table gt_dim with (autovacuum_enabled = off) as select i as k, i % 3 as w from generate_series(0, 20) i;
analyze gt;
analyze gt_dim;

-- Which of several equal values that look different stands for a group depends on the order of rows, in PostgreSQL
-- as well: so counts and sums by group are compared.
create function gt_check(g text) returns text language sql as $$
	select hgj_check_each(array(select format(q, g) from unnest(array['select count(*) c, sum(id) s, min(id), count(gg) from (select %s as gg, id, k from gt) x group by gg', 'select count(*) c, sum(id) s, max(w), w, count(gg) from (select %s as gg, id, k from gt) x join gt_dim using (k) group by gg, w',
		'select count(*) c, sum(n) s, count(distinct id) from (select %s as gg, id, k, id %% 7 as n from gt) x join gt_dim using (k) group by gg', 'select count(*), string_agg(id::text, '','' order by id) from (select %s as gg, id from gt) x group by gg',
		'select count(distinct gg), count(distinct w), count(*) from (select %s as gg, id, k from gt) x join gt_dim using (k)']) with ordinality a(q, i) order by i), 0)
$$;
select c, gt_check(c) as says from (select attname::text c from pg_attribute where attrelid = 'gt'::regclass and attnum > 2 and attname not in ('bits', 'cash', 'x') order by attnum) a;
-- expressions of such types
select e, gt_check(e) as says from unnest(array['arr || k', 'row(k, arrt)::text', 'row(k % 3, b)::gt_pair', 'r4 * int4range(1, 4)', 'j -> ''a''', 'host(ip)', 'network(ip)', 'set_masklen(ip, 8)', 'iv * 2', '-f8', 'f4 + 0', 'n * 1.0', 'loose || ''x''', 'lower(bp)', 'e::text', 'dom || ''''',
	'tsz at time zone ''UTC''', 'array[f8]', 'array[loose]', 'coalesce(comp, row(0, ''t0'')::gt_pair)', 'tstzrange(tsz, null)', 'array[comp]', 'es[1]', 'bploose::text collate gt_loose']) e;
-- several of them at once
select hgj_check_agg('select count(*), sum(id) from gt join gt_dim using (k) group by arr, comp, iv', 1) as three, hgj_check_agg('select count(*), sum(id) from gt group by n, loose, f8, ip, bp, r4, j', 0) as seven;
-- those that look as they are equal, returned as they are
select c, hgj_check_agg(format('select %s, count(*) from gt join gt_dim using (k) group by 1', c), 0) as says from unnest('{arr,arrt,r4,mr,mac,mac8,e,es,u,tm,ts,tsz,d,icu,x8,x,o,c,nm,by,b,l,reg,net,tsv}'::text[]) c;
-- citext, where PostgreSQL has come with it
do $$ begin
	if exists (select from pg_available_extensions where name = 'citext') then
		create extension citext;
		create table gt_ci with (autovacuum_enabled = off) as select id, k, (array['a', 'A', 'b', 'B', 'ab', '', null])[1 + id % 7]::citext as ct from gt;
	else
		create table gt_ci with (autovacuum_enabled = off) as select id, k, loose as ct from gt;
	end if;
	analyze gt_ci;
end $$;
select hgj_check_agg('select count(*), sum(id) from gt_ci group by ct', 0) as says, hgj_check_agg('select count(*), sum(id), w from gt_ci join gt_dim using (k) group by ct, w', 1) as joined,
	hgj_check_agg('select count(distinct ct), count(distinct k), count(*) from gt_ci group by id % 5', 0) as counted;
drop table gt_ci;
set client_min_messages = warning;
drop extension if exists citext;
reset client_min_messages;
-- what cannot be hashed goes to PostgreSQL: a type without a hash function, what contains one, and rows of no named type
set hashgraph_join.force = on;
select e, hgj_lines(format('select count(*) from gt group by %s', e), 'HashGraphAgg') as ours, hgj_answer(format('select count(*) from gt group by %s', e)) ~ 'rows' as answered
	from unnest(array['bits', 'cash', 'id::bit(8)::bit varying', 'array[id::bit(8)::bit varying]', 'to_tsvector(''simple'', nm::text)', 'row(id, k)']) e;
reset hashgraph_join.force;

-- workers: groups are combined by PostgreSQL's Finalize Aggregate, or exchanged by hash
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
-- what workers share is to outweigh what each of them does
set hashgraph_join.agg_tuple_cost = 100;
set max_parallel_workers_per_gather = 1;
create function gt_check_workers(g text, way text) returns text language plpgsql as $$
begin
	perform set_config('hashgraph_join.parallel_aggregate', way, true), set_config('hashgraph_join.force', 'on', true);
	return hgj_check_agg(format('select count(*) c, sum(id) s, min(id), w from gt join gt_dim using (k) group by %s, w', g), 0, case way when 'exchange' then 'Exchange: groups' else 'Partial Mode: Partial' end, way || ' HashGraphAgg');
end $$;
select c, gt_check_workers(c, 'partial') as partial, gt_check_workers(c, 'exchange') as exchange from (select attname::text c from pg_attribute where attrelid = 'gt'::regclass and attnum > 2 and attname not in ('bits', 'cash', 'x') order by attnum) a;
set work_mem = '64kB';
set hash_mem_multiplier = 1;
set max_parallel_workers_per_gather = 2;
select c, gt_check_workers(c, 'exchange') as exchange from unnest('{"arr || id","comp, id","iv, n, id","j, loose, f8, id","array[loose, id::text]"}'::text[]) c;
set max_parallel_workers_per_gather = 0;
select c, gt_check(c) as spilled from unnest(array['arr || id', 'row(id, arr::text)::gt_pair', 'iv * id', 'int4range(id, id + 2)', 'to_jsonb(id * 1.0)', 'array[loose, id::text]', 'id / 2.0', '-id::float8']) c;
reset work_mem;
reset hash_mem_multiplier;
reset hashgraph_join.agg_tuple_cost;
reset parallel_setup_cost;
reset parallel_tuple_cost;
reset min_parallel_table_scan_size;
reset max_parallel_workers_per_gather;
drop table gt, gt_dim;
drop function gt_check, gt_check_workers;
drop type gt_span;
drop domain gt_pairs, gt_short;
drop type gt_pair, gt_mood;
drop collation gt_loose, gt_icu;
