-- Text keys: up to 15 bytes (more if they are long on average) are packed into the
-- key words, longer ones are hashed and rechecked, but only where the build side
-- has one.
set work_mem = '16MB';
create collation text_nd (provider = icu, locale = 'und-u-ks-level2', deterministic = false);

create function text_join(j text, c text, l text, r text) returns text language sql as $$
	select case j
		when 'semi' then format('select l.id, l.v from %1$s l where exists (select from %2$s r where %3$s)', l, r, c)
		when 'anti' then format('select l.id, l.v from %1$s l where not exists (select from %2$s r where %3$s)', l, r, c)
		when 'unique' then format('select l.id, r.g from %1$s l join (select distinct on (t) t, b, p, x, k, id as g from %2$s) r on %3$s', l, r, c)
		else format('select l.id, r.id as r from %1$s l %4$s join %2$s r on %3$s', l, r, c, j) end
$$;

-- Every length from 0 to 40 in many variants: prefixes of each other, a
-- difference in the first byte, in the last, beyond the 15th, trailing NULs'
-- nearest neighbours, blanks, and characters of several bytes.
create temp table words (s text);
insert into words select left(repeat('abcdefghij', 4), n) from generate_series(0, 40) n;
insert into words select left(repeat('abcdefghij', 4), n - 1) || 'Z' from generate_series(1, 40) n;
insert into words select 'Z' || left(repeat('abcdefghij', 4), n - 1) from generate_series(1, 40) n;
insert into words select left(repeat('abcdefghij', 4), n) || repeat(' ', b) from generate_series(0, 20) n, generate_series(1, 3) b;
insert into words select left(repeat('äöü€𝄞', 8), n) from generate_series(1, 24) n;
insert into words select left(repeat('äöü€𝄞', 8), n) || 'x' from generate_series(1, 24) n;
insert into words select 'same fifteen ch' || n from generate_series(1, 30) n;
insert into words select repeat(chr(c), n) from generate_series(1, 17) n, unnest('{1,2,32,65,127}'::int[]) c;
insert into words select null from generate_series(1, 5);

-- two copies, in which different rows are missing; with duplicates
create temp table ts (id serial, t text, b bytea, p char(30), x varchar(60), k int, v int) with (autovacuum_enabled = off);
create temp table us (id serial, t text, b bytea, p char(45), x varchar(50), k int, v int) with (autovacuum_enabled = off);
insert into ts (t, b, p, x, k, v) select s, convert_to(s, 'UTF8'), left(s, 30), s, length(s) % 3, n % 7 from (select s, row_number() over () as n from words) w where n % 5 <> 0;
insert into us (t, b, p, x, k, v) select s, convert_to(s, 'UTF8'), left(s, 30), s, length(s) % 3, n % 7 from (select s, row_number() over () as n from words) w where n % 7 <> 0;
insert into ts (t, b, p, x, k, v) select t, b, p, x, k, v + 1 from ts where id % 4 = 0;
insert into us (t, b, p, x, k, v) select t, b, p, x, k, v + 1 from us where id % 3 = 0;
-- bytes that text cannot have
insert into ts (b, k) select substring('\x00000000000000000000000000000000000000'::bytea, 1, n), 0 from generate_series(0, 19) n;
insert into us (b, k) select substring('\x000000000000000000000000000000000000ff'::bytea, 1, n), 0 from generate_series(0, 19) n;
insert into ts (b, k) select substring('\xff00ff00ff00ff00ff00ff00ff00ff00ff'::bytea, 1, n), 1 from generate_series(1, 17) n;
insert into us (b, k) select substring('\xff00ff00ff00ff00ff00ff00ff00ff00ff'::bytea, 1, n), 1 from generate_series(1, 17) n;
analyze ts, us;

select c, j, hgj_check(text_join(j, c, 'ts', 'us'))
from unnest('{l.t = r.t,l.b = r.b,l.p = r.p,l.x = r.x,l.t = r.x,l.x = r.t and l.k = r.k,l.t = r.t and l.b = r.b and l.p = r.p,l.t = r.t and l.v <> r.v,l.b = r.b and l.v + r.v > 5}'::text[]) c,
	unnest('{inner,left,right,full,semi,anti,unique}'::text[]) j
where not (j in ('unique', 'full') and c ~ 'v');
-- the same with sides that have short keys only
create temp table short_ts as select * from ts where (length(t) < 15 or t is null) and octet_length(b) <= 15 and octet_length(t) <= 15;
create temp table short_us as select * from us where octet_length(t) <= 15;
analyze short_ts, short_us;
select l, r, c, hgj_check(text_join(j, c, l, r))
from (values ('short_ts', 'us'), ('ts', 'short_us'), ('short_ts', 'short_us')) s (l, r),
	unnest('{l.t = r.t,l.x = r.t and l.p = r.p}'::text[]) c, unnest('{inner,left,full,semi,anti,unique}'::text[]) j;
-- one long key among many short ones
insert into short_us (id, t, b, p, x, k, v) select id, t, b, p, x, k, v from us where octet_length(t) = 16;
select j, hgj_check(text_join(j, 'l.t = r.t', 'ts', 'short_us')) from unnest('{inner,left,right,full,semi,anti,unique}'::text[]) j;

-- As many words as values are long on average (3, 4, 5, and 2 again); some are
-- longer, whatever the average is.
create function text_widths(width int) returns table (c text, j text, says text) language plpgsql as $$
begin
	create temp table wide_ts as select t, b, x, v, k, id from ts;
	create temp table wide_us as select t, b, x, v, k, id from us;
	insert into wide_ts select t, convert_to(t, 'UTF8'), t, 1, g, -g from (select g, left(repeat(md5(g::text), 3), width + g % 5 - 2) as t from generate_series(1, 4000) g) f;
	insert into wide_us select t, convert_to(t, 'UTF8'), t, 1, g, -g from (select g, left(repeat(md5(g::text), 3), width + g % 5 - 2) as t from generate_series(3000, 7000) g) f;
	insert into wide_us select overlay(t placing 'y' from length(t)), b, x, v, k, id from wide_us where t <> '' and id < -3500;
	analyze wide_ts, wide_us;
	return query select f.c, g.j, hgj_check(text_join(g.j, f.c, 'wide_ts', 'wide_us'))
	from unnest('{l.t = r.t,l.b = r.b and l.t = r.x}'::text[]) f(c), unnest('{inner,full,semi,anti}'::text[]) g(j);
	drop table wide_ts, wide_us;
end $$;
select w, t.* from unnest('{19,27,35,47}'::int[]) w, text_widths(w) t;
drop function text_widths;

-- every way
select hgj_check_ways(text_join('inner', 'l.t = r.t', 'ts', 'us'));
select hgj_check_ways(text_join('full', 'l.b = r.b', 'ts', 'us'));
select hgj_check_ways(text_join('anti', 'l.p = r.p', 'ts', 'us'));
select hgj_check_ways(text_join('unique', 'l.x = r.x', 'ts', 'short_ts'));

-- char(n): the padding does not count, whatever the lengths; text: it does
select count(*) from (values ('abc'::char(3)), ('abc '), (' abc')) l (c) join (values ('abc'::char(10)), ('abd')) r (c) on l.c = r.c;
create temp table c3 as select s::char(3) as c, s as t from unnest('{abc,ab,a,"","  a"}'::text[]) s;
create temp table c10 as select s::char(10) as c, s as t from unnest('{abc,"abc ",ab,"a ",""," ","  a",abcdefghij}'::text[]) s;
create temp table c200 as select s::char(200) as c, s as t from unnest('{abc,"a  ","",abcdefghijklmnopqrst}'::text[]) s;
set hashgraph_join.force = on;
set hashgraph_join.require = join;
select c3.t, c10.t from c3 join c10 on c3.c = c10.c order by 1, 2;
select c200.t, c10.t from c200 join c10 on c200.c = c10.c order by 1, 2;
select c3.t, c10.t from c3 join c10 using (t) order by 1;
-- the column is returned as it is stored, short or long
select octet_length(c200.c), count(*) from c200 join c10 on c200.c = c10.c group by 1;
reset hashgraph_join.force;
reset hashgraph_join.require;

-- TOASTed and compressed keys
create temp table big (id int, t text, b bytea);
create temp table big2 (id int, t text, b bytea);
alter table big alter t set storage external;
alter table big2 alter t set storage extended;
insert into big select g, repeat(md5((g % 40)::text), 300) || case when g % 3 = 0 then 'x' else '' end, convert_to(repeat('z', 5000) || g % 30, 'UTF8') from generate_series(1, 80) g;
insert into big2 select g, repeat(md5((g % 50)::text), 300) || case when g % 4 = 0 then 'x' else '' end, convert_to(repeat('z', 5000) || g % 25, 'UTF8') from generate_series(1, 90) g;
insert into big select g, 'short ' || g, 'b' from generate_series(1, 20) g;
insert into big2 select g, 'short ' || g, 'b' from generate_series(1, 20) g;
analyze big, big2;
select c, j, hgj_check(case j when 'semi' then format('select l.id from big l where exists (select from big2 r where %s)', c)
	else format('select l.id, r.id as r, md5(l.t) as t, length(r.t) as n from big l %s join big2 r on %s', j, c) end)
from unnest('{l.t = r.t,l.b = r.b,l.t = r.t and l.b = r.b}'::text[]) c, unnest('{inner,left,full,semi}'::text[]) j;

-- other collations: any deterministic one packs, the others are rechecked
create temp table co (id int, c text collate "C", d text collate "und-x-icu", n text collate text_nd);
insert into co select g, w, w, w from (select g, (array['Straße', 'STRASSE', 'strasse', 'résumé', 'RÉSUMÉ', 'a longer word than fits', 'A Longer Word Than Fits'])[1 + g % 7] || g % 5 as w from generate_series(1, 100) g) s;
select c, hgj_check('select l.id, r.id as r from co l join co r on ' || c)
from unnest(array['l.c = r.c', 'l.d = r.d', 'l.n = r.n', 'l.c = r.d collate "C"', 'l.n = r.d collate text_nd', 'l.n collate "C" = r.n collate "C"',
	'lower(l.c) = r.c', 'l.c || '''' = r.d collate "C"']) c;
set hashgraph_join.force = on;
select count(*) > (select count(*) from co l join co r on l.d = r.d) as folds_case from co l join co r on l.n = r.n;
-- no collation: the same complaint as stock's
select count(*) from co l join co r on l.c = r.d;
set hashgraph_join.enabled = off;
select count(*) from co l join co r on l.c = r.d;
reset hashgraph_join.enabled;
reset hashgraph_join.force;

-- columns that are keys and are returned, filtered by, joined with again
select hgj_check('select l.t, r.t as t2, r.x, l.p, r.p as p2, r.b from ts l join us r on l.t = r.t and l.p = r.p');
select hgj_check('select l.t, m.x, r.p from ts l join us m on l.t = m.t join ts r on r.x = m.x and r.b = l.b', 2);
select hgj_check('select l.id, r.t from ts l left join us r on l.t = r.t where r.t is null or length(r.t) > l.k');
select hgj_check('select r.t, count(*), min(l.x), max(l.p::text) from ts l join us r on l.t = r.t group by r.t');
select hgj_check('select l.p, count(*) from ts l join us r on l.p = r.p group by l.p');
select hgj_check('select t, (select count(*) from us r join short_us s using (t) where r.k = l.k) from ts l', 1, false);
-- passes with long keys and passes without
set work_mem = '64kB';
create temp table mixed as select g as id, case when g between 2000 and 2400 then 'a key with more than fifteen bytes ' else 'k' end || g % 1500 as t, g % 5 as v from generate_series(1, 4000) g;
create temp table probes as select g as id, case when g % 2 = 0 then 'a key with more than fifteen bytes ' else 'k' end || g % 1600 as t, g % 5 as v from generate_series(1, 5000) g;
analyze mixed, probes;
select j, hgj_check(case j when 'semi' then 'select l.id from probes l where exists (select from mixed r where l.t = r.t)'
	when 'anti' then 'select l.id from probes l where not exists (select from mixed r where l.t = r.t)'
	else format('select l.id, r.id as r from probes l %s join mixed r on l.t = r.t', j) end)
from unnest('{inner,left,right,full,semi,anti}'::text[]) j;
reset all;
drop function text_join;
drop table words, ts, us, short_ts, short_us, c3, c10, c200, big, big2, co, mixed, probes;
drop collation text_nd;
