-- Numerics as 64-bit integers: every operator, comparison and aggregate over columns
-- numeric(p,s), against PostgreSQL's own answer, where values are edges of what fits.
create table edges (id int, k int,
	p1 numeric(1,0), p2s2 numeric(2,2), p2s4 numeric(2,4), p3neg numeric(3,-2), p4s2 numeric(4,2), p9s3 numeric(9,3),
	p15s2 numeric(15,2), p18 numeric(18,0), p18s1 numeric(18,1), p18s9 numeric(18,9), p18s18 numeric(18,18), p30s6 numeric(30,6),
	free numeric, i2 int2, i4 int4, i8 int8);
create table sides (k int, g int, c numeric(6,3), w numeric(15,2));
-- 0, the unit, the largest and values between, of either sign; zeros at the end; NULL and NaN
create function hgj_edge(n int, p int, s int) returns numeric language sql immutable as $$
	select case n % 11 when 0 then 0 when 1 then null when 2 then (10::numeric ^ p - 1) * 10::numeric ^ (-s)
		when 3 then -(10::numeric ^ p - 1) * 10::numeric ^ (-s) when 4 then 10::numeric ^ (-s) when 5 then -(10::numeric ^ (-s))
		when 6 then trunc(10::numeric ^ (p - 1)) * 10::numeric ^ (-s)
		else trunc((hashint4(n) + 2147483648)::numeric * (10::numeric ^ p) / 4294967296) * 10::numeric ^ (-s) end
$$;
insert into edges select i, i % 37, hgj_edge(i, 1, 0), hgj_edge(i / 2, 2, 2), hgj_edge(i / 3, 2, 4), hgj_edge(i, 3, -2), hgj_edge(i / 5, 4, 2),
	hgj_edge(i / 7, 9, 3), hgj_edge(i / 4, 15, 2), hgj_edge(i / 11, 18, 0), hgj_edge(i / 2, 18, 1), hgj_edge(i / 13, 18, 9), hgj_edge(i / 6, 18, 18),
	hgj_edge(i / 3, 30, 6), (array[1, 1.0, 1.00, -2.5, 'NaN', 1e30, 1e-30, 0.000, null, 'Infinity', '-Infinity', 7.10])[1 + i % 12],
	i % 100 - 50, hashint4(i), hashint4(i)::int8 * hashint4(-i)
	from generate_series(1, 1500) i;
-- what a column numeric(p,s) may hold besides
update edges set p4s2 = 'NaN' where id % 97 = 5 and k % 5 = 3;
update edges set p15s2 = 'NaN' where id % 101 = 7 and k % 5 = 2;
insert into sides select i, i % 5, hgj_edge(i, 6, 3), hgj_edge(i / 2, 15, 2) from generate_series(0, 36) i;
analyze edges;
analyze sides;

-- Runs the check for queries made of many expressions each; says how many there were.
create function hgj_check_lists(expressions text[], per_query int, query text) returns text language plpgsql as $$
declare
	said text;
	bad text := '';
begin
	for i in 0 .. (cardinality(expressions) - 1) / per_query loop
		said := hgj_check_agg(format(query, array_to_string(expressions[i * per_query + 1 : (i + 1) * per_query], ', ')));
		if said <> 'ok' then
			bad := bad || E'\n' || said;
		end if;
	end loop;
	return case when bad = '' then format('ok (%s expressions)', cardinality(expressions)) else bad end;
end $$;
create view operands as select c, n from unnest('{p1,p2s2,p2s4,p3neg,p4s2,p9s3,p15s2,p18,p18s1,p18s9,p18s18,p30s6,c,w}'::text[]) with ordinality o(c, n);

-- + - * of every two columns: every aggregate, in groups and of single rows
select hgj_check_lists(array_agg(format('sum(%1$s %3$s %2$s), avg(%1$s %3$s %2$s), count(%1$s %3$s %2$s)', a.c, b.c, op) order by a.n, b.n, op), 40,
	'select s.g, %s from edges e join sides s using (k) group by s.g')
	from operands a, operands b, unnest('{+,-,*}'::text[]) op;
select hgj_check_lists(array_agg(format('min(%1$s %3$s %2$s), max(%1$s %3$s %2$s)', a.c, b.c, op) order by a.n, b.n, op), 60,
	'select s.g, %s from edges e join sides s using (k) group by s.g')
	from operands a, operands b, unnest('{+,-,*}'::text[]) op where (a.n + b.n) % 3 = 0;
select hgj_check_lists(array_agg(format('sum(%1$s %3$s %2$s)', a.c, b.c, op) order by a.n, b.n, op), 60,
	'select e.id, %s from edges e join sides s using (k) group by e.id')
	from operands a, operands b, unnest('{+,-,*}'::text[]) op where (a.n + b.n) % 2 = 1;
-- plain columns, and what has one operand, or an integer, or a constant
select hgj_check_lists(array_agg(format('sum(%1$s), avg(%1$s), min(%1$s), max(%1$s), count(%1$s), sum(-%1$s), sum(abs(%1$s)), avg(+%1$s),
	sum(%1$s * i2), avg(i4 - %1$s), sum(%1$s * i8), sum(i8 / 7 - i4 + %1$s), sum(1 - %1$s), sum(%1$s * 1.0500), sum(%1$s + 1e10), sum(0.000000000000000001 * %1$s),
	sum(1e18 - %1$s), sum(null::numeric * %1$s), sum(%1$s + ''NaN''), sum(%1$s * 1e40), sum(%1$s * free), avg(%1$s * %1$s * %1$s)', a.c) order by a.n), 3,
	'select s.g, %s from edges e join sides s using (k) group by s.g')
	from operands a;
select hgj_check_agg('select s.g, sum(p9s3 * c), sum((p9s3 * c in (0, 1.5, -2))::int::numeric + p9s3 * c), sum((p9s3 * c > 1 or c * p9s3 < w)::int::numeric * (p9s3 * c)), sum(p9s3 + p9s3) from edges join sides s using (k) group by 1');
-- the display scale of a sum is the largest of those that it has met
select hgj_check_lists(array_agg(format('sum(case when %1$s > %2$s then %1$s * (1 - p2s2) else 0 end), sum(case when %1$s < 0 then %1$s end), avg(coalesce(%1$s, 0.0, %2$s)),
	sum(case when i2 > 1000 then %1$s else 0 end), sum(case i2 %% 3 when 0 then 1 when 1 then %1$s else -%2$s end), sum(case p1 when 1 then 1 else %1$s * 2 end + %2$s),
	min(case when i2 > 0 then %1$s else 7 end), sum(%1$s) filter (where %1$s * p1 > %2$s), count(*) filter (where %1$s is not null and -%1$s <= p9s3)',
	a.c, b.c) order by a.n, b.n), 4, 'select e.k, %s from edges e join sides s using (k) group by e.k')
	from operands a, operands b where (a.n * b.n) % 5 = 1;

-- comparisons, as quals of the scan and of the join
create function hgj_check_quals(quals text[]) returns text language plpgsql as $$
declare
	said text;
	bad text := '';
	q text;
begin
	foreach q in array quals loop
		said := hgj_check('select count(*), sum(e.id) from edges e join sides s using (k) where ' || q);
		if said <> 'ok' then
			bad := bad || E'\n' || said;
		end if;
	end loop;
	return case when bad = '' then format('ok (%s quals)', cardinality(quals)) else bad end;
end $$;
select hgj_check_quals(array_agg(format('%s %s %s', a.c, op, b.c) order by a.n, b.n, op))
	from operands a, operands b, unnest('{<,<=,=,<>,>,>=}'::text[]) op where (a.n + 2 * b.n + length(op)) % 3 = 0;
select hgj_check_quals(array_agg(format('%s %s %s and %1$s is not null', a.c, op, b) order by a.n, op, b))
	from operands a, unnest('{<,<=,=,<>,>,>=}'::text[]) op,
	unnest('{0,1,-1,0.05,0.0500,-0.333,99,99.99,9999999999999.99,-9999999999999.99,1e18,-1e19,1e40,0.0000000000000000001,''NaN'',''Infinity'',''-Infinity'',null}'::text[]) b
	where a.c not in ('c', 'w') and (a.n + length(op) + length(b)) % 2 = 0;
select hgj_check_quals(array_agg(format('%s * (1 - %s) %s %s', a.c, b.c, op, 'p15s2 + 1') order by a.n, b.n, op))
	from operands a, operands b, unnest('{<,>=,=}'::text[]) op where (a.n * 3 + b.n) % 4 = 0;
select hgj_check_quals(array['1 > p4s2', '0.5 <= p18s18 and p18s18 < 0.75', 'p9s3 between -100.5 and 1e5', 'not (p15s2 > 0)', 'p15s2 > 0 is unknown', 'p18 + 0 > i8',
	'p4s2 > (select avg(p4s2) from edges where p4s2 <> ''NaN'')', 'p15s2 = (select max(w) from sides)', 'case when i2 > 0 then p4s2 else p9s3 end > 0',
	'p4s2 <> 0 and 1 / p4s2 > 0.01', 'round(p15s2 * p4s2, 1) > 5', 'p18s9::int8 > 5 and p18s9 < 1e9', 'e.p15s2 > s.w', 'e.p9s3 * s.c >= s.w - e.p4s2', 'p1 in (1, 2.0, 3)', 'p4s2 not in (0.01, -99.99, 7)', 'p4s2 not in (0.01, null)',
	'p9s3 = any (''{0.001,NaN,-1,1e30,null,0.0005}'')', 'p15s2 * 2 in (0.02, -0.02, 0)', '(p18s1 in (0.1, null)) is unknown', 'free in (1, 7.1, ''NaN'')',
	'p18 <> all (''{}'')', 'p18 in (1, 2, 3, 4, 5, 6, 7, 8, 9, 0)',
	'coalesce(p2s2, c) > 0.5', 'p4s2 is distinct from 0', 'free > p4s2', 'free = 1', 'abs(p2s4) < 0.005']);
-- nothing of that is done row by row
set hashgraph_join.force = on;
explain (costs off) select count(*) from edges e join sides s using (k) where e.p15s2 * (1 - e.p2s2) > 100 and e.p9s3 * s.c >= s.w - e.p4s2 and e.p18 > 5.5;
reset hashgraph_join.force;

-- parameters, once known and once not
prepare dec(numeric, numeric) as select s.g, count(*), sum(e.p15s2) from edges e join sides s using (k) where e.p15s2 > $1 and e.p9s3 < $2 group by 1 order by 1;
set plan_cache_mode = force_generic_plan;
set hashgraph_join.force = on;
execute dec(0.005, 1000);
execute dec('NaN', 1000);
execute dec(-1e30, 'Infinity');
execute dec(null, 1);
set hashgraph_join.enabled = off;
execute dec(0.005, 1000);
execute dec(-1e30, 'Infinity');
reset hashgraph_join.enabled;
reset hashgraph_join.force;
reset plan_cache_mode;
deallocate dec;

-- what is never such an integer, at times because it is stored elsewhere
create table huge (k int, n numeric(1000,0), m numeric(1000,2));
insert into huge select i, case when i = 50 then 9e999 else i end, i from generate_series(1, 100) i;
analyze huge;
select hgj_check_agg('select sum(n * n), sum(n * m * n), max(n - m * n) from huge join sides using (k)');
select hgj_check('select count(*) from huge join sides using (k) where case when k < 50 then n * m > 5 else false end');
create table lines (k int, n numeric, m numeric(1000,2));
alter table lines alter n set storage external, alter m set storage external;
insert into lines select i, (select string_agg((hashint4(i * j) + 3e9)::text, '')::numeric from generate_series(1, case when i % 2 = 0 then 2500 else 1 end) j),
	(select string_agg((hashint4(i - j) + 3e9)::text, '')::numeric / 100 from generate_series(1, i * 2 + 1) j) from generate_series(0, 36) i;
select pg_column_size(n) > 8000 and octet_length(n::text) > 20000 as elsewhere from lines where k = 2;
analyze lines;
select hgj_check_agg('select g, sum(n), avg(n), max(n), sum(m), sum(m * c), sum(-m), count(m - n) from lines join sides using (k) group by g');
create domain money_like as numeric(12,2) check (value > -1000000);
create table domains (k int, v money_like, u numeric(12,2));
insert into domains select i % 37, i * 1.25, null from generate_series(1, 300) i;
alter table domains add column later numeric(8,3) default 12.125;
insert into domains select i % 37, -i * 0.25, 2, 9 from generate_series(1, 300) i;
analyze domains;
select hgj_check_agg('select g, sum(v), sum(v * 2), sum(u), sum(v * later - u), min(v), sum(later), avg(later * later) from domains join sides using (k) group by g');

-- partial aggregation: PostgreSQL's Finalize Aggregate reads our states
set max_parallel_workers_per_gather = 2;
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
select hgj_check_agg('select s.g, sum(p15s2 * (1 - p2s2) * (1 + p4s2)), avg(p18 * p18), sum(p18s18 * p18s9), avg(p9s3), min(p9s3 - c), max(w * p1), count(p15s2 - w), sum(case when p1 > 5 then p18 else 0 end) from edges e join sides s using (k) group by s.g');
reset max_parallel_workers_per_gather;
reset parallel_setup_cost;
reset parallel_tuple_cost;
reset min_parallel_table_scan_size;
drop view operands;
drop table edges, sides, huge, lines, domains;
drop domain money_like;
drop function hgj_edge, hgj_check_lists, hgj_check_quals;
