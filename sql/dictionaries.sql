-- Expressions over one column of strings, which are evaluated once for each of its
-- values, and groups of strings by their bytes, against PostgreSQL's own answer.
create schema dictionaries;
set search_path = dictionaries, public;
create collation loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
create domain word as text check (length(value) < 100000);

-- Compares answers, or errors, with those of PostgreSQL: once a value and once a row,
-- by slots, in little memory and by workers.  There must be a node of ours.
create function check_ways(q text, node text default 'HashGraphAgg', parallel bool default true) returns text language plpgsql
	set hashgraph_join.enabled = on set hashgraph_join.force = off set hashgraph_join.require = off set hashgraph_join.source = auto
	set hashgraph_join.dictionaries = on set work_mem = '4MB' set max_parallel_workers_per_gather = 0
	set parallel_setup_cost = 0 set parallel_tuple_cost = 0 set min_parallel_table_scan_size = 0
as $$
declare
	stock text;
	ours text;
	way text;
	bad text := '';
begin
	perform set_config('hashgraph_join.enabled', 'off', true);
	stock := hgj_answer(q);
	perform set_config('hashgraph_join.enabled', 'on', true), set_config('hashgraph_join.force', 'on', true);
	foreach way in array '{values,rows,memory,tuples}'::text[] || case when parallel then array['workers'] end loop
		perform set_config('hashgraph_join.dictionaries', case way when 'rows' then 'off' else 'on' end, true),
			set_config('work_mem', case way when 'memory' then '64kB' else '4MB' end, true),
			set_config('hashgraph_join.source', case way when 'tuples' then 'tuples' else 'auto' end, true),
			set_config('max_parallel_workers_per_gather', case way when 'workers' then '1' else '0' end, true);
		if hgj_lines(q, 'Custom Scan \(' || node) = 0 then
			bad := bad || format(E'\n%s: no %s: %s', way, node, q);
		end if;
		ours := hgj_answer(q);
		if ours is distinct from stock then
			bad := bad || format(E'\n%s: DIFFERENT, %s stock and %s ours: %s', way, stock, ours, q);
		end if;
	end loop;
	return case when bad <> '' then bad when stock ~ '^\d+ rows' then 'ok' else 'ok: ' || stock end;
end $$;

-- Every kind of string; `far` is stored out of line or compressed, `code` without a
-- bad value but in rows that id tells.
create function pick(anyarray, int) returns anyelement language sql immutable as
	$$ select $1[1 + $2 % cardinality($1)] $$;
create table words (id int, k int, t text, v varchar(12), c char(6), p bpchar, b bytea, nm name, l text collate loose, w word, far text,
	code text, num text) with (autovacuum_enabled = off);
insert into words select i, i % 40, pick('{abc,null,"",ab,abcd,"abc ",ABC,x,a_c,a%c,straße,"  "}'::text[], i),
	pick('{abc,null,x,"x ","",abcd}'::varchar[], i / 2), pick('{abc,null,x,"x ","",abcdef,"  y"}'::bpchar[], i / 3),
	pick('{abc,null,x,"x ","x   ","","   "}'::bpchar[], i / 5), pick('{"\\x00","\\x0001",null,"\\x","\\xff00ff"}'::bytea[], i),
	pick('{abc,null,pg_class,""}'::name[], i / 7), pick('{abc,ABC,aBc,null,x,X,"x "}'::text[], i), pick('{abc,null,wordy}'::text[], i / 4),
	case i % 5 when 0 then repeat('far', 1000 + i % 3) when 1 then repeat('near', 10 + i % 2)
		when 2 then (select string_agg(md5((i % 10 + n)::text), '') from generate_series(1, 100) n) when 3 then 'far' end,
	case when i % 97 = 5 then 'bad' else (i % 9)::text end, case when i % 131 = 7 then '' else (i % 11)::text end
	from generate_series(1, 3000) i;
create table few (k int, x text, g int) with (autovacuum_enabled = off);
insert into few select i, pick('{abc,x,A%}'::text[], i), i % 3 from generate_series(0, 29) i;
analyze words;
analyze few;

-- What an expression may be.
-- Workers are tried with some of them, as starting them takes longer than all other ways do.
create temp table expressions (n serial, e text);
insert into expressions (e)
select format(e, col) from unnest('{t,v,c,p,nm,l,w,far}'::text[]) col, unnest(array['%s like ''a%%''', '%s ~ ''^[a-c]+$''', '%s ilike ''AB_%%''',
	'upper(%s) = ''ABC''', 'substring(%1$s from 2 for 2) in (''bc'', ''b'')', '%s > ''abc''', '%s between ''ab'' and ''abcd'' collate "C"',
	'length(%s) > 3', '%1$s || ''x'' = ''abcx''', 'coalesce(%s, ''none'') = ''none''', 'case %s when ''abc'' then true when ''x'' then null else false end',
	'%1$s is null or %1$s like ''%%c''', 'nullif(%1$s, ''x'') is null', 'not (%1$s like ''x%%'') and %1$s <> ''abcd''', '%1$s = any (array[''abc'', ''x'', upper(%1$s)])',
	'%s is distinct from ''abc''', '(string_to_array(%s::text, ''b''))[1] = ''a''', 'greatest(%s, ''b'') > ''b''', 'md5(%1$s::text) < ''8''',
	'format(''%%s'', %1$s) = ''abc''', 'pg_column_size(%1$s) > 5', '%1$s::text collate "C" < ''b''', 'octet_length(%1$s::text) > 3 and random() < 2']) e
	-- PostgreSQL's planner refuses these under a nondeterministic collation
	where col <> 'l' or e !~ '~|like|string_to_array'
union all
select unnest(array['b > ''\x0001''', 'b like ''\\000%''::bytea', 'length(b) = 1', 'encode(b, ''hex'') like ''ff%''', 'substring(b from 1 for 1) = ''\x00''',
	'case b when ''\x'' then 1 when ''\x00'' then 2 else 3 end = 2', 'get_byte(b || ''\x07'', 0) = 0']);
select count(*) from expressions;

select says, count(*) from (
	select check_ways(format('select count(*), count(*) filter (where %1$s), sum(case when %1$s then id else -id end), max(case when %1$s then k end) from words', e), parallel => n % 7 = 0) says
	from expressions where e !~ 'random') checked
group by says order by says collate "C";
select says, count(*) from (
	select check_ways(format('select w.id, f.x from words w join few f using (k) where %s', e), 'HashGraphJoin', n % 7 = 3) says from expressions) checked
group by says order by says collate "C";

-- each value is evaluated once in a process, as long as there are not too many; NULL as well, by what is not strict
create sequence calls;
create function counted(x text) returns bool language plpgsql immutable parallel restricted as
	$$ begin perform nextval('calls'); return x < 'b'; end $$;
create function counted_strictly(x text) returns bool language plpgsql immutable strict parallel restricted as
	$$ begin perform nextval('calls'); return x < 'b'; end $$;
create function counted_volatile(x text) returns bool language plpgsql volatile parallel restricted as
	$$ begin perform nextval('calls'); return x < 'b'; end $$;
create function counted_stable(x text) returns bool language plpgsql stable parallel restricted as
	$$ begin perform nextval('calls'); return x < 'b'; end $$;
create function calls_of(q text) returns bigint language plpgsql as
	$$ begin perform setval('calls', 1, false); execute q; return nextval('calls') - 1; end $$;
set hashgraph_join.force = on;
select f, calls_of(format('select count(*) from words where %s(t)', f)) as filter,
	calls_of(format('select count(*) filter (where %s(t)) from words', f)) as aggregate,
	calls_of(format('select sum(case when %1$s(t) then 1 else 2 end), k from words group by k', f)) as argument,
	calls_of(format('select count(*) from words join few using (k) where %s(t)', f)) as joined
	from unnest('{counted,counted_strictly,counted_volatile,counted_stable}'::text[]) f;
select count(distinct t) as values, count(*) as rows, count(*) filter (where t is not null) as not_null from words;
-- ... in one column only, and by one execution
select calls_of('select count(*) from words where counted(t || v)') as two_columns,
	calls_of('select count(*) from words where counted(t) and counted(v)') as two_expressions,
	calls_of('select count(*) from words where id > 3000 and counted(t)') as none;
set hashgraph_join.dictionaries = off;
select calls_of('select count(*) from words where counted(t)') as off;
reset hashgraph_join.dictionaries;

-- more values than there is room for, from the start and in the middle of a query
create table many (id int, t text, c char(8), n text) with (autovacuum_enabled = off);
insert into many select i, case when i <= 20000 or i % 50 = 0 then 'few ' || i % 9 else 'many ' || i end, i % 7000, i from generate_series(1, 50000) i;
analyze many;
select calls_of('select count(*) from many where counted(n)') as unique,
	calls_of('select count(*) from many where counted(t)') between 29000 and 31000 as middle,
	calls_of('select count(*) from many where id <= 20000 and counted(t)') as few;
reset hashgraph_join.force;
select check_ways(format('select count(*), sum(case when %1$s then id end), count(*) filter (where %1$s) from many', e)) from unnest(array['t like ''%1%''', 'n ~ ''[13]$''',
	'upper(t) like ''M%7''', 'c like ''%1''', 'case c when ''17'' then 1 when ''18'' then 2 end = 2', 'c > ''5'' and n <> ''7''']) e;

-- an error is that of the first row that raises one, and of no row that a filter drops
select check_ways(q) from unnest(array[
	'select sum(code::int) from words where id % 97 <> 5',
	'select sum(code::int) from words',
	'select count(*) from words where id % 97 <> 5 and code::int > 3',
	'select count(*) from words where id % 97 <> 5 and code::int > 3 and id % 131 <> 7 and num::int > 2',
	'select count(*) from words where code::int > 3 and num::int > 2',
	'select count(*) from words where num::int > 2 and code::int > 3',
	'select count(*) from words where id > 5 and num::int > 2 and code::int > 3 and 1 / (id - 103) = 0',
	'select sum(case when code <> ''bad'' then code::int else 0 end) from words',
	'select count(*) filter (where case when id % 97 = 5 then false else code::int > 3 end) from words',
	'select sum(case when id % 97 <> 5 and code::int > 3 then 1 when id % 131 <> 7 then num::int end) from words',
	'select max(1 / (length(c) - 3)) from words where c <> ''abc'' and c <> ''  y''',
	'select max(1 / (length(c) - 3)) from words',
	'select count(*) from words where substring(t from id % 2) = ''a'' or substring(t from 1 for -1) = ''b''',
	'select count(*) from words where t ~ (''('' || left(t, 0))']) q;
-- nor of one that nobody asks for
select check_ways(q, 'HashGraphJoin', false) from unnest(array[
	'select count(*) from (select w.id from words w join few f using (k) where w.code::int >= 0 limit 4) q',
	'select count(*) from (select w.id, w.code::int from words w join few f using (k) limit 4) q',
	'select count(*) from (select w.id, w.code::int from words w join few f using (k)) q',
	'select sum(w.code::int) from words w join few f using (k) where w.code <> ''bad''',
	'select count(*) from words w join few f on w.k = f.k and (w.code::int > f.g or length(w.t) > f.g) where w.id % 97 <> 5',
	'select count(*) from words w left join few f on w.k = f.k and w.code::int > 3 and f.x like ''a%''']) q;

-- parameters: of a prepared statement, of a nested loop, and of a subquery
prepare p (text, int) as select count(*), sum(case when t like $1 then $2 end) from words where t <> $1 and upper(t) like upper($1);
set plan_cache_mode = force_generic_plan;
set hashgraph_join.force = on;
execute p ('a%', 1);
execute p ('x', 10);
execute p (null, 10);
execute p ('a%', 100);
set hashgraph_join.enabled = off;
execute p ('a%', 1);
execute p ('x', 10);
execute p (null, 10);
execute p ('a%', 100);
reset hashgraph_join.enabled;
reset hashgraph_join.force;
reset plan_cache_mode;
select check_ways(q, 'HashGraphAgg', false) from unnest(array[
	'select f.k, s.* from few f, lateral (select count(*), sum(case when w.t like f.x then 1 else 2 end) from words w where upper(w.t) like f.x or w.id < f.k) s',
	'select f.k, s.* from few f, lateral (select count(*), min(w.id) from words w where w.t || f.g = ''abc1'' and w.v like f.x) s',
	'select count(*) from words where t like (select x from few where k = 2)',
	'select (select count(*) from words where t || f.x = ''abcabc'') from few f']) q;

-- groups of strings, whose blanks at the end may be different
select check_ways(format('select %s, count(*), sum(id) from words group by 1', g)) from unnest('{c,v,b,w,nm,far}'::text[]) g;
select check_ways(q) from unnest(array['select p::text, count(*), sum(id) from words group by p', 'select length(p), count(*) from (select max(p) p, count(*) n from words group by p) q group by 1',
	'select lower(min(l collate "C")), count(*) from words group by l', 'select c, p::text, t, v, count(*) from words group by c, p, t, v',
	'select c collate loose, count(*) from words group by 1', 'select octet_length(p) from words group by p having count(*) > 1000000']) q;
select check_ways(format('select f.x, %s, count(*) from words join few f using (k) group by 1, 2', g)) from unnest('{c,b,far}'::text[]) g;

-- strings compared with constants: some have their first eight bytes in common
create table alike (id int, k int, t text, c char(12), p bpchar, b bytea) with (autovacuum_enabled = off);
insert into alike select i, i % 40, s, s, s, convert_to(s, 'UTF8') from (select i,
	pick('{abcdefgh,abcdefgh ,abcdefghi,"abcdefgh  i",abcdefg,"abcdefg ",abcd,"","        ",null,abcdefghijkl}'::text[], i) s
	from generate_series(1, 2000) i) strings;
analyze alike;
select check_ways(format('select count(*), sum(id) from alike where %s = %s', col, c), parallel => false)
	from unnest('{t,c,p}'::text[]) col, unnest(array['''abcdefgh''', '''abcdefgh ''', '''abcdefghi''', '''abcdefg''', '''abcd''', '''''', '''        ''', '''abcdefgh  i''', '''abcdefghijklm''']) c;
select check_ways(format('select count(*), sum(id) from alike where %s', q), parallel => false) from unnest(array['c in (''abcdefgh'', ''abcd'', '''')',
	'p not in (''abcdefgh'', ''abcd'', '''')', 'c <> ''abcdefg''', 't in (''abcdefgh'', ''abcdefgh '', '''')', 'b = ''abcdefgh''', 'b in (''abcdefgh '', ''abcdefg'', ''\x'')',
	'c in (''abcdefgh'', ''abcd'', '''', ''1'', ''2'', ''3'', ''4'', ''abcdefghijkl'')', 'p in (''abcdefgh'', ''abcd'', '''', ''1'', ''2'', ''3'', ''4'', ''abcdefghi'')']) q;

-- what is made of a string may be one: grouped by, aggregated, compared with another, short, long, and of many values
create temp table results (n serial, e text);
insert into results (e) select format(e, col) from unnest('{t,v,c,nm,w,far}'::text[]) col, unnest(array['upper(%s)', 'substring(%s from 1 for 2)', 'coalesce(%s, ''none'')',
	'case when %1$s < ''b'' then ''low'' when %1$s = ''x'' then null else %1$s end', 'nullif(%s, ''abc'')', 'repeat(%1$s, 1500 / (1 + length(%1$s)))', 'array[%s::text, ''1'']', '%s::text::bytea',
	'md5(%s::text)::uuid', 'repeat(%s, 3)::char(5)']) e;
-- where equal values look different, that of any row may stand for a group
insert into results (e) values ('upper(l)'), ('md5(l collate "C")::uuid'), ('substring(l collate "C" from 1 for 2)'), ('coalesce(l collate "C", ''none'')'),
	('upper(p)'), ('substring(p from 1 for 2)'), ('case when p < ''b'' then ''low'' when p = ''x'' then null else p::text end'), ('repeat(p, 3)::char(5)');
select says, count(*) from (select check_ways(format('select %s as r, count(*), sum(id) from words group by 1', e), parallel => n % 4 = 0) says from results) checked
	group by says order by says collate "C";
select says, count(*) from (select check_ways(format('select k, max(%1$s::text collate "C"), min(%1$s::text collate "C") filter (where %1$s is not null), count(%1$s) from words group by 1', e), parallel => n % 4 = 1) says from results) checked
	group by says order by says collate "C";
select says, count(*) from (select check_ways(format('select f.g, %1$s, count(*) from words w join few f using (k) where %1$s is not null group by 1, 2', e), parallel => n % 4 = 2) says from results) checked
	group by says order by says collate "C";
select check_ways(q) from unnest(array['select upper(t), count(*) from many group by 1', 'select left(n, 2), repeat(c, 30), count(*) from many where id < 9000 group by 1, 2',
	'select case when t like ''few%'' then t else ''many'' end, max(reverse(t)), min(upper(n)) from many group by 1',
	'select count(*) from words where upper(t) = v', 'select count(*) from words where upper(t) || lower(v) = t || v and left(v, 1) > left(c, 1)',
	'select substring(code from 1 for 2 - id % 2), sum(id) from words group by 1', 'select chr(code::int + 64), count(*) from words where id % 97 <> 5 group by 1',
	'select chr(code::int + 64), count(*) from words group by 1', 'select max(repeat(t, 100000)), count(*) from words where id < 40 group by k % 3']) q;
set hashgraph_join.force = on;
select calls_of('select case when counted(t) then upper(t) else v end from words') as two_columns,
	calls_of('select case when counted(t) then upper(t) end, count(*) from words group by 1') as grouped,
	calls_of('select max(case when counted(t) then upper(t) end), count(*) from words group by k') as aggregated,
	calls_of('select max(case when counted(n) then repeat(n, 1000) end), count(*) from many where id <= 500 or id > 7000 and id <= 7500 group by id % 3') >= 500 as large;
prepare s (text) as select case when t like $1 then $1 || t end, count(*) from words group by 1 order by 1;
set plan_cache_mode = force_generic_plan;
execute s ('a%');
execute s ('x%');
execute s (null);
reset plan_cache_mode;
reset hashgraph_join.force;
select check_ways(q, 'HashGraphAgg', false) from unnest(array[
	'select f.k, s.* from few f, lateral (select upper(w.t || f.x), count(*), min(repeat(w.t, f.g)) from words w where w.k > 30 group by 1) s']) q;
