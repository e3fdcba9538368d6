-- What EXPLAIN shows.
-- Subqueries are to stay what they are.
set hashgraph_join.rewrite = off;
set hashgraph_join.force = on;
explain (costs off) select a.id, b.id from a join b using (k);
explain (costs off) select a.id, b.id from a join b on a.k = b.k and a.v < b.v and a.t <> b.t;
explain (costs off) select a.id, c.id from a left join c on a.k = c.k and a.v < c.v;
explain (costs off) select a.id, c.id from c left join a on a.k = c.k and a.v < c.v;
explain (costs off) select a.id, b.id from a full join b on a.k = b.k and a.v < b.v where coalesce(a.id, b.id) > 3;
explain (costs off) select a.id from a where exists (select from b where a.k = b.k and a.v < b.v);
explain (costs off) select a.id from a where not exists (select from b where a.k = b.k);
select hgj_explain('(costs off) select a.id from a where a.k8 not in (select k from c where k is not null) and a.k in (select k from b)');
explain (costs off) select a.id, b.id from a left join b on a.k = b.k where b.v is null or a.v > b.v;
explain (costs off) select a.id, b.id, c.id from a join b using (k) left join c on c.id = a.id and c.t = b.t;
explain (costs off) select a.id, b.id from a join b on a.k8 = b.k and a.t = b.t and a.k + 1 = b.k8 - 1;
explain (costs off) select c.id, j.n from c, lateral (select count(*) as n from a join b on a.k = b.k and a.v < c.v) j;
explain (costs off) select a.id, (select max(c.id) from c where c.k = b.k) from a join b on a.k = b.k and a.v in (select v from c);
explain (costs off) select a.id, b.id from a join b on (select max(c.id) from c where c.k = a.k) = b.id;
explain (verbose, costs off) select a.id, b.id, a.v + b.v as sum from a left join b on a.k = b.k and a.w > b.w;
explain (verbose, costs off) select b.t from b where exists (select from c where c.id = b.k);
explain (costs off) update a set v = 1 from b where a.k = b.k;
explain (costs off) select count(*) from a join b using (k) where a.k = 7;

-- what a run adds
create function hgj_analyze(q text, options text default 'analyze, buffers off, costs off, timing off, summary off') returns setof text language plpgsql as $$
begin
	return query select * from hgj_explain('(' || options || ') ' || q);
end $$;
set hashgraph_join.build = v1;
set hashgraph_join.probe = standard;
set hashgraph_join.segments = csr;
set hashgraph_join.engine = cpu;
select hgj_analyze('select a.id, c.id from a join c on a.id = c.id');
select hgj_analyze('select a.id, c.id from a join c on a.k = c.k and a.v > c.v');
select hgj_analyze('select c.id, a.id from c left join a on a.k = c.k and a.v > c.v where a.id is null or a.id < 10');
select hgj_analyze('select a.id from a join none b using (k)');
select hgj_analyze('select a.id from none a right join c b using (k)');
-- LIMIT does not read the whole outer side
select (regexp_match(line, 'Seq Scan on a \(actual rows=(\d+)'))[1]::int < 1000 as stopped_early
from hgj_analyze('select a.id from a join c using (k) limit 1') line where line ~ 'Scan on a ';
set hashgraph_join.build = v2;
set hashgraph_join.segments = sliced;
select hgj_analyze('select a.id, c.id from a join c on a.id = c.id');
set hashgraph_join.segments = ellpack;
select hgj_analyze('select a.id, c.id from a join c on a.id = c.id');
set hashgraph_join.build = direct;
select hgj_analyze('select a.id, c.id from a join c on a.id = c.id');
select hgj_analyze('select a.id, c.id from a join c on a.t = c.t');
select hgj_analyze('select x.id, y.id from c x join c y on x.id * 1000000 = y.id');
-- never run
select hgj_analyze('select c.id, (select count(*) from a join b on a.k = b.k and a.v < c.v) from c where c.v < 0');

-- rows taken singly: where one may raise an error, and not all may be wanted
set enable_nestloop = off;
create temp view singly(what, q) as values
	('a loop', 'select a.id from a join c using (k) where 10 / a.id >= 0 limit 3'),
	('a call', 'select a.id from a join c using (k) where date_part(''year'', date ''2000-01-01'' + a.id) > 0 limit 3'),
	('a call, all rows', 'select a.id from a join c using (k) where date_part(''year'', date ''2000-01-01'' + a.id) > 0'),
	('a call, aggregated', 'select sum(a.v + c.v) from a join c using (k) where date_part(''year'', date ''2000-01-01'' + a.id) > 0 limit 1'),
	('by row', 'select a.id from a join c using (k) where upper(a.t || a.v) > c.t collate "C" and upper(a.t || a.v) >= ''TEXT'' limit 3'),
	('by value', 'select a.id from a join c using (k) where upper(a.t) > c.t collate "C" and upper(a.t) >= ''TEXT'' limit 3'),
	('a join clause', 'select a.id from a join c on a.k = c.k and date_part(''year'', date ''2000-01-01'' + a.id + c.v) > 0 limit 3'),
	('a key', 'select a.id from a join c on a.k + 10 / a.id * 0 = c.k limit 3'),
	('a key above', 'select a.id from a join c using (k) join b on b.k = a.k + 10 / a.id * 0 limit 3'),
	('a column of an inner side', 'select count(s.q) from (select b.k from b limit 3) b left join (select 10 / a.id as q, a.k from a join c using (k) offset 0) s using (k)'),
	('a column below', 'select s.q from (select date_part(''year'', date ''2000-01-01'' + a.id) as q, a.k from a join c using (k) offset 0) s join b using (k) limit 3'),
	-- what a nested loop or a correlated subquery sets cannot raise an error; the first look at the result of an InitPlan can
	('a parameter', 'select c.id, x.id from c, lateral (select a.id from a join b using (k) where a.v < c.v limit 2) x where c.id < 5'),
	('a parameter by row', 'select c.id, x.id from c, lateral (select a.id from a join b using (k) where nullif(a.v, c.v) is not null limit 2) x where c.id < 5'),
	('a correlated subquery', 'select c.id, exists (select from a join b using (k) where a.v < c.v) from c where c.id < 5'),
	('a nested loop below', 'select s.x from (select a.id, a.k, i.id from a, lateral (select id from c where c.id = a.v offset 0) i offset 0) s(x, k, y) join b using (k) limit 3'),
	('the same, with a call', 'select s.x from (select a.id, a.k, i.id from a, lateral (select id from c where c.id = a.v % 50 + 0 offset 0) i offset 0) s(x, k, y) join b using (k) limit 3'),
	('an InitPlan', 'select a.id from a join b using (k) where a.v < (select max(v) from c) limit 3'),
	('an InitPlan by row', 'select a.id from a join b using (k) where concat(a.v, (select max(v) from c)) <> '''' limit 3');
select what, coalesce((select string_agg(trim(line), ', ') from hgj_analyze(q) line where line ~ 'Singly'), '-') as singly from singly;
select regexp_matches(hgj_analyze(q, 'analyze, timing off, summary off, format json'), '"[^"]* Singly": \d+', 'g') from singly where what = 'by row';
reset enable_nestloop;

-- JSON: every property, and its type
reset hashgraph_join.segments;
set hashgraph_join.build = v1;
create function hgj_json(q text, options text) returns table (property text, value text) language plpgsql as $$
declare
	j json;
begin
	execute 'explain (format json, ' || options || ') ' || q into j;
	return query select e.key, case when e.key ~ 'Memory' then json_typeof(e.value) when e.key = 'Plans' then json_array_length(e.value)::text
			when e.key = 'Actual Rows' then round(e.value::text::numeric)::text else e.value::text end
		from json_each(j -> 0 -> 'Plan') e where e.key !~ '(Cost|Rows|Width|Blocks|Time|Disabled)$' or e.key ~ 'Build|Removed|Actual Rows';
end $$;
select * from hgj_json('select a.id, c.id from a join c on a.k = c.k and a.v > c.v', 'costs off');
select * from hgj_json('select a.id, c.id from a join c on a.k = c.k and a.v > c.v', 'analyze, timing off, summary off');
-- XML and YAML have them too
do $$
declare
	x text;
	y text;
begin
	execute 'explain (analyze, buffers off, costs off, timing off, summary off, format xml) select a.id, c.id from a join c on a.k = c.k and a.v > c.v' into x;
	raise notice 'xml: %', x ~ '<Custom-Plan-Provider>HashGraphJoin</Custom-Plan-Provider>.*<Join-Type>Inner</Join-Type>.*<Hash-Cond>.*</Hash-Cond>.*<Build>v1</Build>.*<Vertices>256</Vertices>';
	for y in execute 'explain (costs off, format yaml) select a.id, c.id from a join c on a.k = c.k and a.v > c.v' loop
		raise notice 'yaml: %', regexp_replace(y, '\n', ' ', 'g') ~ 'Custom Plan Provider: "HashGraphJoin".*Join Type: "Inner".*Hash Cond: ';
	end loop;
end $$;

-- other plans, other shapes: still only what is there
reset all;
set hashgraph_join.force = on;
set enable_partitionwise_join = on;
create temp table pa (id int, k int) partition by hash (k);
create temp table pa1 partition of pa for values with (modulus 2, remainder 0);
create temp table pa2 partition of pa for values with (modulus 2, remainder 1);
explain (costs off) select x.id, y.id from pa x join pa y using (k);
explain (costs off) select x.id, y.id from pa x full join pa y using (k);
reset all;
