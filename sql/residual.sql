-- Join quals that are no hash clauses are part of the match.
create function slow_lt(int, int) returns bool language plpgsql immutable as $$ begin return $1 < $2; end $$;
create function sql_lt(int, int) returns bool language sql stable as 'select $1 < $2';
create function always() returns bool language plpgsql volatile as $$ begin return true; end $$;
create function no_rows() returns setof int language sql as 'select 1 where false';

create temp table quals (qual text);
insert into quals values
	('l.v < r.v'),
	('l.v = r.v or l.w = r.w'),
	('l.v is distinct from r.v'),
	('l.v is not distinct from r.v'),
	('slow_lt(l.v, r.v)'),
	('sql_lt(l.v, r.v)'),
	('always()'),
	('l.v > 10'),
	('r.v > 10'),
	('l.t like ''%1%'' and r.t like ''%2%'''),
	('(l.k is null or l.v > 5)'),
	('case when l.v > 20 then r.v > 20 else r.v <= 20 end'),
	('coalesce(l.v, r.v) > 7 and nullif(l.w, r.w) is not null'),
	('row(l.v, l.w) < row(r.v, r.w)'),
	('l.* is not null'),
	('(l.*)::text <> (r.*)::text'),
	('l.v = (select max(v) % 20 from c)'),
	('l.v < (select count(*) from c where c.k = r.k)'),
	('l.v in (select c.v from c)'),
	('l.v not in (select c.v from c where c.id < 9)'),
	('l.v + r.v in (select c.k from c)'),
	('exists (select from c where c.id = l.v and c.w <= r.w)'),
	('not exists (select from c where c.id = l.v + r.w)'),
	('l.v = any (array[r.v, r.v + 1, r.w])'),
	('l.id between r.id - 100 and r.id + 100'),
	('to_char(l.v, ''999'') <> to_char(r.v, ''999'')'),
	('l.v::numeric / 7 > r.w'),
	('false'),
	('null'),
	('l.t = r.t and l.v < r.v');
create function with_quals(l text, r text, out says text, out cases int) returns setof record language plpgsql as $$
declare
	j text; qual text; q text;
begin
	foreach j in array '{inner,left,right,full,semi,anti}'::text[] loop
		for qual in select quals.qual from quals loop
			-- PostgreSQL has no full join over a constant
			continue when j = 'full' and qual in ('false', 'null');
			q := case j
				when 'semi' then format('select l.id, l.t from %s l where exists (select from %s r where l.k = r.k and (%s))', l, r, qual)
				when 'anti' then format('select l.id, l.t from %s l where not exists (select from %s r where l.k = r.k and (%s))', l, r, qual)
				else format('select l.id, l.k, r.id, r.t from %s l %s join %s r on l.k = r.k and (%s)', l, j, r, qual) end;
			-- a constant qual can leave nothing to join, and a sublink with a
			-- volatile function does not become one
			says := hgj_check(q, case when qual in ('false', 'null') or qual = 'always()' and j in ('semi', 'anti') then 0 else 1 end);
			if says <> 'ok' then
				cases := 1;
				return next;
			else
				cases := coalesce(cases, 0) + 1;
			end if;
		end loop;
		says := j || ' ok';
		return next;
		cases := 0;
	end loop;
end $$;
select * from with_quals('a', 'b');
select * from with_quals('c', 'a');
select * from with_quals('hot', 'c');
select * from with_quals('none', 'c');
select * from with_quals('c', 'none');

-- A residual qual is evaluated for pairs of equal keys only, in both.
set enable_nestloop = off;
set enable_mergejoin = off;
select hgj_check('select a.id, b.id from a join b on a.k = b.k and 100 / (a.k - 30) > b.v');
select hgj_check('select a.id, c.id from a left join c on a.k = c.k8 and (a.v + c.v) / (c.k8 - 150) < 10');
reset enable_nestloop;
reset enable_mergejoin;

-- And its errors come through.
set hashgraph_join.force = on;
set hashgraph_join.require = join;
select a.id, b.id from a join b on a.k = b.k and 100 / (a.k - 60) > b.v;
select count(*) from a full join b on a.k = b.k and 100 / (b.k - 60) > b.v;
select count(*) from a join b on a.k / (a.k - 60) = b.k;
select count(*) from a join b on a.k = b.k / (b.k - 60);
reset hashgraph_join.force;
reset hashgraph_join.require;

-- Filters above the join, some of which become part of it.
select q, hgj_check(q) as says from unnest(array[
	'select a.id, b.id from a left join b on a.k = b.k where a.v > coalesce(b.v, 10)',
	'select a.id, b.id from a left join b on a.k = b.k where b.id is null',
	'select a.id, b.id from a left join b on a.k = b.k and b.v > 10 where b.id is null',
	'select a.id, b.id from a right join b on a.k = b.k where a.id is null or b.v < 5',
	'select a.id, b.id from a full join b on a.k = b.k where coalesce(a.v, b.v) > 30',
	'select a.id, b.id from a full join b on a.k = b.k and a.w < b.w where a.id is null or b.id is null',
	'select a.id, b.id from a left join b on a.k = b.k where slow_lt(a.v, b.v) is not true',
	'select a.id, b.id from a left join b on a.k = b.k where a.v in (select c.v from c) or b.v is null',
	'select a.id, b.id from a full join b on a.k = b.k where exists (select from c where c.id = a.v or c.id = b.v)',
	'select a.id, b.id from a full join b on a.k = b.k where (select count(*) from c where c.id < a.v) > 4']) q;

-- Constants of the run: parameters and functions that decide for all rows.
prepare one_time(int) as select count(*), count(b.id) from a join b on a.k = b.k and $1 = 3;
prepare one_time_left(int) as select count(*), count(b.id) from a left join b on a.k = b.k and $1 = 3;
prepare one_time_full(int) as select count(*), count(a.id), count(b.id) from a full join b on a.k = b.k where $1 = 3;
set plan_cache_mode = force_generic_plan;
set hashgraph_join.force = on;
set hashgraph_join.require = join;
-- PostgreSQL 15 does not ask extensions about a join with such a qual, unless
-- it belongs to an outer join: nothing can be required there.
reset hashgraph_join.require;
explain (costs off) execute one_time(3);
execute one_time(3);
execute one_time(4);
execute one_time(null);
explain (costs off) execute one_time_left(3);
execute one_time_left(3);
execute one_time_left(4);
execute one_time_full(3);
execute one_time_full(4);
deallocate all;
set hashgraph_join.enabled = off;
select count(*), count(b.id) from a join b on a.k = b.k;
select count(*), count(b.id) from a left join b on a.k = b.k;
select count(*), count(b.id) from a left join b on false;
select count(*), count(a.id), count(b.id) from a full join b on a.k = b.k;

set hashgraph_join.enabled = on;

-- Clauses that can raise an error, where one match of a row will do: its candidates are looked at one
-- after the other, until one matches, but those of many rows together.
create temp table asks (id int, k int, v int);
create temp table has (id int, k int, v int, w numeric);
insert into asks select i, case when i % 11 > 0 then i % 97 end, i % 50 from generate_series(1, 3000) i;
insert into has select i, case when i % 13 > 0 then i * 7 % 83 end, i % 40, i % 23 - 0.5 from generate_series(1, 2500) i;
analyze asks, has;
create temp table can_fail (qual text);
insert into can_fail values
	('asks.v + has.v > 30'),
	('asks.v + has.v > 86'),
	('asks.v * 0.5 > has.w'),
	('asks.v - has.v = 3 and has.id * 2 > asks.id'),
	('asks.v / (has.v + 1) = 2'),
	('asks.v / has.w > 1.5');
create function first_counts(rest text) returns table (qual text, semi text, anti text, once text, perhaps text) language plpgsql as $$
declare
	q text;
begin
	for qual in select can_fail.qual from can_fail loop
		q := format('select id from asks where exists (select from has where has.k = asks.k and %s)%s', qual, rest);
		semi := hgj_check_lines(q, 1, 'Join Filter:', 'join filter');
		anti := hgj_check(format('select count(*) from (select id from asks where not exists (select from has where has.k = asks.k and %s)%s) x', qual, rest));
		q := 'select count(v) from (select asks.id, has.v from asks %s join (select distinct on (k) * from has order by k, id) has on has.k = asks.k and %s%s) x';
		once := hgj_check(format(q, 'inner', qual, rest)) || case hgj_lines(format(q, 'inner', qual, rest), 'Filter by Row') when 0 then '' else ', by row' end;
		perhaps := hgj_check(format(q, 'left', qual, rest));
		return next;
	end loop;
end $$;
set hashgraph_join.force = on;
select * from first_counts('');
select * from first_counts(' limit 1000000');
-- Errors of candidates behind a match, of which there are many in a portion, are nobody's.
create temp table late (k int, v int);
insert into late select i % 100, case when i > 100 then 5 else i % 5 end from generate_series(0, 999) i;
analyze late;
set hashgraph_join.require = 'join';
select b as build, l as rest, hgj_says(format('select 1 / (count(*) - 2701)::int from (select id from asks where exists (select from late where late.k = asks.k and 10 / (late.v - 5 + asks.v * 0) <= 10)%s) x', l)) as says
from unnest('{v1,v2}'::text[]) b, unnest(array['', ' limit 2700']) l, set_config('hashgraph_join.build', b, false);
reset all;
drop function first_counts;
