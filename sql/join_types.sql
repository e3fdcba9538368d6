-- Join types x shapes of data, over every way of building, probing and storing.
create function over_ways(conditions text[], lefts text[], rights text[], joins text[]) returns table (q text, says text) language plpgsql as $$
declare
	l text; r text; j text; c text;
begin
	foreach l in array lefts loop
		foreach r in array rights loop
			foreach j in array joins loop
				foreach c in array conditions loop
					q := case j
						when 'semi' then format('select l.id, l.t from %s l where exists (select from %s r where %s)', l, r, c)
						when 'anti' then format('select l.id, l.t from %s l where not exists (select from %s r where %s)', l, r, c)
						else format('select l.id, l.k, r.id, r.t from %s l %s join %s r on %s', l, j, r, c) end;
					says := hgj_check_ways(q);
					return next;
				end loop;
			end loop;
		end loop;
	end loop;
end $$;

select * from over_ways('{l.k = r.k,l.k = r.k8 and l.v < r.v}', '{a}', '{c}', '{inner,left,right,full,semi,anti}');
select * from over_ways('{l.t = r.t and l.w <> r.w,"l.k = r.k and l.t = r.t"}', '{c}', '{b}', '{inner,left,right,full,semi,anti}');
select * from over_ways('{l.k = r.k and l.v > r.v + 30}', '{hot}', '{hot}', '{inner,full,semi,anti}');
select * from over_ways('{l.k = r.k}', '{c,none}', '{none,c}', '{inner,left,right,full,semi,anti}');
select * from over_ways('{l.k = r.k}', '{nulls}', '{c,nulls}', '{left,full,anti}');

-- the other shapes once each, in the automatic way
select l, r, j, hgj_check(case j
	when 'semi' then format('select l.id, l.t from %s l where exists (select from %s r where %s)', l, r, c)
	when 'anti' then format('select l.id, l.t from %s l where not exists (select from %s r where %s)', l, r, c)
	else format('select l.id, l.k, r.id, r.t from %s l %s join %s r on %s', l, j, r, c) end) as says, c
from unnest('{a,b,c,hot,none,nulls}'::text[]) l, unnest('{a,b,c,hot,none,nulls}'::text[]) r,
	unnest('{inner,left,right,full,semi,anti}'::text[]) j, unnest('{l.k = r.k,l.k8 = r.k and l.w > r.w}'::text[]) c
where l <> r
order by l, r, j, c;

-- several joins, of different kinds and shapes of tree
create temp table trees (q text, nodes int);
insert into trees values
	('select a.id, b.id, c.id from a join b using (k) join c using (k)', 2),
	('select a.id, b.id, c.id from a left join b on a.k = b.k left join c on b.k8 = c.k8', 2),
	('select a.id, b.id, c.id from a left join (b join c on b.k8 = c.k8) on a.k = b.k', 2),
	('select a.id, b.id, c.id from a full join b using (k) full join c using (k)', 2),
	('select k, count(*), count(a.id), count(b.id), count(c.id) from a full join b using (k) full join c using (k) group by k', 2),
	('select a.id, b.id from a full join b on a.k = b.k where a.k is null or b.k is null', 1),
	('select a.id, c.id from (a full join b on a.k = b.k) right join c on c.k = b.k8', 2),
	('select a.id from a where exists (select from b where b.k = a.k and exists (select from c where c.k = b.k8))', 2),
	('select a.id from a where exists (select from b where b.k = a.k) and not exists (select from c where c.k = a.k8)', 2),
	('select a.id from a where a.k in (select b.k from b join c using (k8)) or a.k in (1, 2, 3)', 1),
	('select a.id from a where (a.k, a.w) in (select b.k, b.w from b)', 1),
	('select c.id from c where c.k = any (select b.k from b where b.v > 5)', 1),
	('select c.id from c where c.k not in (select b.k from b join a using (k8) where b.k is not null)', 1),
	('select a.id, b.id from a, b where a.k = b.k and a.t = b.t and a.k8 = b.k8', 1),
	('select x.id, y.id, z.id from c x join c y on x.id = y.k join c z on y.id = z.k', 2),
	('select x.id, y.id from c x left join c y on x.id = y.id + 100 where y.id is null', 1),
	('select a.id from a natural join b', 1),
	('select * from a full join none using (k)', 1),
	('select * from none full join a using (k)', 1),
	('select * from (select k, count(*) from a group by k) x join (select k, sum(v) from b group by k) y using (k)', 1),
	('select * from (select distinct k from a) x full join (select distinct k from b) y using (k)', 1),
	('select * from (select k from a union all select k from b) x join c using (k)', 1),
	('select * from (select k from a union select k from b) x left join c using (k)', 1),
	('select * from generate_series(1, 500) g left join a on a.id = g * 2', 1),
	('select * from (values (1, ''x''), (2, ''y''), (null, ''z'')) v(n, s) full join c on c.k = v.n', 1),
	('select * from unnest(array[1, 2, 2, null]) with ordinality u(n, o) left join b on b.k8 = u.n', 1),
	('select * from a tablesample bernoulli (50) repeatable (7) join b using (k)', 1);
select q, hgj_check(q, nodes) as says from trees;

-- none of the columns is needed: rows still count
select q, hgj_check(q) as says from unnest(array[
	'select count(*) from a join b using (k)',
	'select count(*) from a full join b on a.k = b.k and a.v < b.v',
	'select from a join b using (k)',
	'select count(*) from a where exists (select from b where a.k = b.k)',
	'select 1 from a left join b using (k)']) q;

-- many rows of one key on both sides
select hgj_check_ways('select count(*), sum(l.id), sum(r.id) from hot l join hot r using (k8)');
select hgj_check('select l.id, r.id from hot l full join hot r on l.k = r.k');

-- semi and anti joins that build with the side whose rows they return: all of these do,
-- where building is dear
set hashgraph_join.build_tuple_cost = 0.1;
create temp table ninth as select * from a where id % 9 = 0;
insert into ninth select * from ninth where id % 2 = 0;
analyze ninth;
create function right_form(q text) returns text language plpgsql set hashgraph_join.force = on as $$
declare
	line text;
	found text := 'no';
begin
	for line in execute 'explain (costs off) ' || q loop
		found := coalesce(substring(line from 'Join Type: (Right .*)'), found);
	end loop;
	return found;
end $$;
select right_form(q), hgj_check_ways(q) as says, q from unnest(array[
	'select s.id, s.t from ninth s where exists (select from a where s.k = a.k)',
	'select s.id, s.t from ninth s where not exists (select from a where s.k = a.k and a.v > 20)',
	'select s.id from ninth s where exists (select from a where s.t = a.t and a.v > s.w)',
	'select s.id from ninth s where not exists (select from a where s.t = a.t and a.v > s.w)',
	'select s.id from ninth s where exists (select from a where s.k8::numeric = a.k)',
	'select s.id from ninth s where not exists (select from a where s.k8::numeric = a.k and s.id <> a.id)',
	'select count(*), sum(s.v), max(s.t) from ninth s where s.k in (select k from a where v < 9)',
	'select s.w, count(*) from ninth s where not exists (select from a where s.k = a.k and a.v > 9) group by s.w']) q;
select right_form(q), hgj_check(q, nodes) as says, q from (values
	(2, 'select b.id, s.id from b join ninth s using (k) where exists (select from a where a.k8 = s.k8 and a.id > 500)'),
	(1, 'select n.g, (select count(*) from ninth s where exists (select from a where s.k = a.k and a.v <> n.g)) from generate_series(1, 20) n(g)'),
	(1, 'select n.g, x.id from generate_series(1, 5) n(g), lateral (select s.id from ninth s where not exists (select from a where s.k = a.k and a.w > n.g) order by s.id limit 3) x'),
	(1, 'select s.id from ninth s where exists (select from a where s.k = a.k) for update'),
	(1, 'select s.id from ninth s where s.id < 300 and exists (select from nulls n where s.k = n.k)'),
	(1, 'select s.id from ninth s where s.id < 300 and not exists (select from nulls n where s.k = n.k)'),
	(1, 'select s.id from ninth s left join (select k from a where a.v < 3) x using (k) where x.k is null and s.v < 30')) t(nodes, q);
select hgj_check_dml('delete from ninth s where exists (select from a where s.k = a.k and a.v > 15)', 'ninth') as says;
-- of which an outer row can match one only, as a key says
create temp table keyed (id int primary key, v int);
insert into keyed select id, v from ninth where k is not null on conflict do nothing;
analyze keyed;
select hgj_check_ways(q) as says, q from unnest(array[
	'select s.id, s.v from keyed s where exists (select from a where s.id = a.id)',
	'select s.id, s.v from keyed s where exists (select from a where s.id = a.k)',
	'select s.id from keyed s where exists (select from a where s.id = a.k and s.v < a.v)',
	'select s.id, s.v from keyed s where s.id in (select k from a where a.t in (select t from ninth where v < 9))',
	'select s.id, s.v from keyed s where not exists (select from a where s.id = a.k)']) q;
-- a side that takes what the outer join itself is to null
set hashgraph_join.force = on;
select n from hgj_digest('select 1 from keyed a join lateral (select a.id from (select 1) x offset 0) s on true join (select 1 from keyed b join (keyed c left join (keyed d left join keyed e on d.id = 1) on c.id = d.id) on false where c.id = coalesce(e.id, 1)) t on true');
reset hashgraph_join.force;
reset hashgraph_join.build_tuple_cost;

-- columns that several joins may have nulled, and values computed between these
select hgj_check(q, 2) as says, q from unnest(array[
	'select * from (select k, id as ia from a where id < 200) x natural full join (select * from (select k, id as ib from b where id < 200) y natural full join (select k, id as ic from ninth) z) s',
	'select * from (select k, id as ia from a where id < 200) x natural full join (select * from (select k, id as ib, 2 as two from b where id < 200) y natural full join (select k, id as ic from ninth) z) s where coalesce(two, ia) > 1',
	'select b.id, s.* from b left join (select a.k, coalesce(g.n, 0) as n, -1 as one from a left join (select count(*) as n, k from ninth group by k) g using (k) where a.id < 200) s on b.k = s.k',
	'select b.id, s.* from b left join (select a.k, coalesce(ninth.id, a.id) as either from a left join ninth on a.k = ninth.k and a.id < 200) s on b.k = s.k and s.either > b.id where b.id < 200']) q;

select string_agg(join_type, ', ' order by join_type) as seen from hgj_seen;
