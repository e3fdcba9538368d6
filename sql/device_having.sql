-- Groups that HAVING is against are left out by the device, where it can tell
-- (src/agg/agg_device_having.c).  Without a device the host looks at all of them.
set hashgraph_join.engine = cuda;
set hashgraph_join.force = on;

create table hav_f (id int4, k int4, g int8, v int4, w int8, s int2, x float8, p numeric(15,2), q numeric(9,4), f int4, d date);
insert into hav_f
select i, i % 500, i % 3000, case when i % 7 > 0 then i % 1000 - 500 end, (i::int8 * 300719925474099) * (1 - 2 * (i % 2)),
	(i % 200 - 100)::int2, i / 8.0, case when i % 3000 <> 77 then i * 7.25 - 90000 end, i % 40 / 8.0 - 2, i % 5, date '2020-01-01' + i % 90
from generate_series(1, 30000) i;
create table hav_d (k int4, n text);
insert into hav_d select i, 'n' || i % 7 from generate_series(0, 499) i;
analyze hav_f, hav_d;

-- The right answer, from a pipeline, and are groups left out by the device?
create function hav_check(clause text, left_out bool default true, aggregates text default 'count(*), sum(v), sum(p), sum(w)', grouped text default 'g') returns text language plpgsql as $$
declare
	q text := format('select %2$s, %1$s from hav_f join hav_d using (k) group by %2$s having %3$s', aggregates, grouped, clause);
	line text;
	found bool := false;
	same text := hgj_check_device(q, 'yes', 1, '^no [(](join|group|aggr|expr|col|outer)');
begin
	if same <> 'ok' then
		return same;
	end if;
	for line in execute 'explain (analyze, buffers off, costs off, timing off, summary off) ' || q loop
		found := found or line ~ 'Groups Left Out: [1-9]';
	end loop;
	if found = left_out or current_setting('hgj_test.device', true) is distinct from 'yes' then
		return 'ok';
	end if;
	return format('left out by the device: %s', found);
end $$;

-- every comparison, on either side
select clause, hav_check(clause) from unnest(array[
	'sum(v) > 100', 'sum(v) >= 100', 'sum(v) < 100', 'sum(v) <= 100', 'sum(v) = 100', '100 < sum(v)', '100 >= sum(v)',
	'count(*) > 10', 'count(*) = 11', 'count(v) < 9', 'count(v) = 0', 'count(*) > 13::int2', 'count(*) < 10::int8',
	'sum(p) > 300', 'sum(p) > 300.005', 'sum(p) >= -155555.125', 'sum(p) < 1e6', 'sum(p) <= 0', 'sum(p) = 203077.50',
	'sum(p) = 203077.501', '-300.75 > sum(p)', 'sum(q) > 2.00005', 'sum(q) < -1.5',
	'sum(w) > 0', 'sum(w) < -1234567890123456789012', 'sum(w) >= 12345678901234567890.5',
	'min(v) > -490', 'max(v) <= 480', 'min(s) = -99', 'max(w) > 3007199254740990000', 'sum(p * q) > 1000.123456',
	'sum(v) filter (where f > 2) > 0', 'count(*) filter (where f > 2) = 3', 'count(p) filter (where f = 1) < 1']) with ordinality c (clause, n) order by n;

-- several, of which the first ones tell, and NULLs, which pass nothing
select clause, hav_check(clause) from unnest(array[
	'sum(v) > 0 and sum(p) > 0', 'sum(v) > 0 and count(*) = 10 and sum(p) > 0 and sum(w) > 0 and max(v) > 0 and min(v) < 0',
	'sum(v) > 100 and sqrt(abs(sum(v))) > 12']) with ordinality c (clause, n) order by n;
select hav_check('sum(p) > -1e12', aggregates => 'sum(p)');

-- what the host has to see: no comparison of that kind, nothing that fails, another one in front
select clause, hav_check(clause, false) from unnest(array[
	'sum(v) <> 100', 'sum(x) > 100', 'avg(v) > 10', 'sum(v) > sum(s)', 'sum(v) > -1000000000', 'count(*) = 10',
	'sum(p) > ''NaN''', 'sum(p) < 1e30', 'min(d) > ''2020-01-05''', 'g > 100', 'sum(v) > 100 or sum(p) > 0',
	'sum(v) > (select 100)', 'sum(p) <> 0 and sum(v) > 100']) with ordinality c (clause, n) order by n;

-- a subquery is run when there are groups, and if these are many, all again with what it gives
select clause, hav_check(clause, clause not like '%null%' and clause not like '%<>%', grouped => 'id') from unnest(array[
	'sum(v) > (select 100)', 'sum(p) < (select max(p) / 2 from hav_f)', 'sum(v) > (select null::int8)',
	'sum(v) > (select 100) and sum(p) > 0', 'sum(p) > 0 and sum(v) > (select 100)', 'sum(p) <> 0 and sum(v) > (select 100)']) with ordinality c (clause, n) order by n;

-- without group columns there is one group, and it may be the one that fails
select hgj_check_device('select count(*), sum(v) from hav_f join hav_d using (k) having sum(v) > 1e9', 'yes', 1, '^no');

-- an error comes where PostgreSQL has one: a clause in front of it hides it, one behind does not
create function hav_raises(v int8) returns bool language plpgsql cost 1 as $$ begin if v < -400 then raise 'raised'; end if; return true; end $$;
create function hav_answer(q text) returns text language plpgsql as $$
declare
	stock text;
	ours text;
begin
	set local hashgraph_join.enabled = off;
	stock := hgj_answer(q);
	set local hashgraph_join.enabled = on;
	ours := hgj_answer(q);
	return case when stock = ours then left(stock, 20) else format('%s, not %s', ours, stock) end;
end $$;
select hav_answer('select g from hav_f join hav_d using (k) group by g having sum(v) > 0 and hav_raises(sum(v)) order by 1 limit 1');
select hav_answer('select count(*) from (select g from hav_f join hav_d using (k) group by g having hav_raises(sum(v)) and sum(v) > 0) s');

-- parameters: of prepared statements, and of a subquery that is run again
set plan_cache_mode = force_generic_plan;
prepare hav_p(int8, numeric) as select g, sum(v), sum(p) from hav_f join hav_d using (k) group by g having sum(v) > $1 and sum(p) < $2;
create function hav_same(q text) returns text language sql as
	$$ select hav_answer(format('select count(*) || '' '' || sum(g) || '' '' || sum(v) from hgj_rows(%L) as t(g int8, v int8, p numeric)', q)) $$;
create function hgj_rows(q text) returns setof record language plpgsql as $$ begin return query execute q; end $$;
select hav_same('execute hav_p(100, 1e5)'), hav_same('execute hav_p(-100, 3e5)'), hav_same('execute hav_p(null, 3e5)'), hav_same('execute hav_p(0, ''NaN'')');
reset plan_cache_mode;
select hav_answer($$select string_agg(b || ':' || n, ' ' order by b) from generate_series(-400, 400, 200) b,
	lateral (select count(*) as n from (select g from hav_f join hav_d using (k) group by g having sum(v) > b) s) t$$);
-- the first look at it runs the subquery, which may raise an error, and is not to where there are no groups
select hav_answer('select g from hav_f join hav_d using (k) where f > 100 group by g having sum(v) > (select 1 / f from hav_f limit 1)');

select hav_answer('select id from hav_f join hav_d using (k) group by id having sum(v) > (select 1 / f from hav_f order by f limit 1)');
select hav_answer($$select string_agg(b || ':' || n, ' ' order by b) from generate_series(-400, 400, 200) b,
	lateral (select count(*) as n from (select id from hav_f join hav_d using (k) group by id having sum(v) > (select b + count(*) from hav_d)) s) t$$);

-- what is left out is counted as what HAVING removes
create function hav_removed() returns setof text language plpgsql as $$
declare
	line text;
begin
	for line in execute 'explain (analyze, buffers off, costs off, timing off, summary off) select g, sum(v) from hav_f join hav_d using (k) group by g having sum(v) > 100' loop
		if line ~ 'Rows Removed by Filter' then
			return next trim(line);
		end if;
	end loop;
end $$;
select hav_removed();

drop table hav_f, hav_d;
drop function hav_check, hav_raises, hav_answer, hav_same, hgj_rows, hav_removed;
