-- Joins that are read in pieces, not to the end, backward, or later.
create function rows_by_cursor(q text, most int, out n int, out digest text) language plpgsql as $$
declare
	c refcursor;
	r record;
	lines text[] := '{}';
begin
	open c for execute q;
	loop
		fetch c into r;
		exit when not found;
		lines := lines || r::text;
		exit when cardinality(lines) >= most;
	end loop;
	close c;
	n := cardinality(lines);
	select md5(string_agg(x, ';' order by x collate "C")) into digest from unnest(lines) x;
end $$;
create temp table queries (q text);
insert into queries values
	('select a.id, b.id from a join b using (k)'),
	('select a.id, b.id from a left join b on a.k = b.k and a.v < b.v'),
	('select a.id, b.id from a right join c b on a.k = b.k8'),
	('select a.id, b.id from a full join b on a.k = b.k and a.v < b.v'),
	('select a.id from a where exists (select from b where a.k = b.k)'),
	('select a.id from a where not exists (select from b where a.k = b.k)'),
	('select a.id, b.id, c.id from a join b using (k) full join c using (k)'),
	('select a.id, b.id from a join none b using (k)'),
	('select a.id, b.id from a left join none b using (k)');

-- to the end, and with an early close
create function check_cursor(q text, most int) returns text language plpgsql
	set hashgraph_join.enabled = off set hashgraph_join.force = off set hashgraph_join.require = off
as $$
declare
	stock record;
	ours record;
begin
	select * into stock from rows_by_cursor(q, most);
	perform set_config('hashgraph_join.enabled', 'on', true), set_config('hashgraph_join.force', 'on', true),
		set_config('hashgraph_join.require', 'join', true);
	select * into ours from rows_by_cursor(q, most);
	return case when ours.n <> stock.n then format('DIFFERENT: %s rows stock, %s ours', stock.n, ours.n)
		when ours.digest is distinct from stock.digest and stock.n < most then 'DIFFERENT rows' else 'ok' end;
end $$;
select q, check_cursor(q, 1000000) as all_rows, check_cursor(q, 7) as few_rows, check_cursor(q, 400) as some_rows from queries;
set work_mem = '64kB';
select q, check_cursor(q, 1000000) as all_rows, check_cursor(q, 7) as few_rows, check_cursor(q, 400) as some_rows from queries;
reset work_mem;

-- forward, backward, absolute and relative: what was read once is read again
create function check_scroll(q text) returns text language plpgsql
	set hashgraph_join.force = on set hashgraph_join.require = join
as $$
declare
	c refcursor;
	r record;
	forward text[] := '{}';
	again text[] := '{}';
	backward text[] := '{}';
begin
	open c scroll for execute q;
	loop fetch c into r; exit when not found; forward := forward || r::text; end loop;
	loop fetch prior from c into r; exit when not found; backward := r::text || backward; end loop;
	loop fetch next from c into r; exit when not found; again := again || r::text; end loop;
	if forward <> backward then return 'backward is DIFFERENT'; end if;
	if forward <> again then return 'the second time is DIFFERENT'; end if;
	if cardinality(forward) > 3 then
		fetch absolute 3 from c into r;
		if r::text <> forward[3] then return 'row 3 is DIFFERENT'; end if;
		move relative 1 from c;
		fetch relative 0 from c into r;
		if r::text <> forward[4] then return 'row 4 is DIFFERENT'; end if;
		fetch last from c into r;
		if r::text <> forward[cardinality(forward)] then return 'the last row is DIFFERENT'; end if;
		fetch first from c into r;
		if r::text <> forward[1] then return 'the first row is DIFFERENT'; end if;
		move forward 2 from c;
		fetch backward from c into r;
		if r::text <> forward[2] then return 'row 2 is DIFFERENT'; end if;
	end if;
	close c;
	return 'ok';
end $$;
select q, check_scroll(q) from queries;

-- SQL cursors; every row is alike, so that their order does not matter
set hashgraph_join.force = on;
set hashgraph_join.require = join;
begin;
declare plain cursor for select 'row' as r from c join a on c.id = a.id;
explain (costs off) declare other cursor for select 'row' as r from c join a on c.id = a.id;
fetch 2 from plain;
move 100 in plain;
fetch 1 from plain;
move all in plain;
fetch 1 from plain;
close plain;
declare no_way_back no scroll cursor for select 'row' as r from c join a on c.id = a.id;
fetch 2 from no_way_back;
fetch backward 1 from no_way_back;
rollback;
begin;
declare first cursor for select 'first' as r from c join a on c.id = a.id;
fetch 1 from first;
-- two at a time, one of them closed by the end of the transaction
declare second cursor for select 'second' as r from a full join b using (k);
fetch 1 from second;
fetch 1 from first;
close second;
commit;
begin;
declare held cursor with hold for select 'row' as r from c join a on c.id = a.id;
fetch 1 from held;
commit;
fetch 2 from held;
move all in held;
fetch backward 1 from held;
close held;
-- an aborted subtransaction takes a cursor half-way with it
begin;
savepoint s;
declare gone cursor for select 'row' as r from c join a on c.id = a.id;
fetch 1 from gone;
rollback to s;
fetch 1 from gone;
rollback;
-- a row that is fetched can be changed
begin;
declare u cursor for select c.id from c join a on c.id = a.id and a.id = 77 for update of c;
fetch 1 from u;
update c set t = 'changed' where current of u returning id, t;
rollback;
reset hashgraph_join.require;
reset hashgraph_join.force;

-- LIMIT stops early; OFFSET and ties do not
select q, n, check_cursor(q || ' limit ' || n, 1000000) as says
from queries, unnest(array[0, 100000]) n where q !~ 'none'
order by q, n;
-- which rows LIMIT and OFFSET leave is up to the engine: they must be rows of the whole
create function limited_rows(q text, n int) returns text language plpgsql
	set hashgraph_join.force = on set hashgraph_join.require = join
as $$
declare
	got bigint;
	foreign_rows bigint;
begin
	execute format('select count(*) from (%s limit %s) s', q, n) into got;
	execute format('with q(x, y) as materialized (select s::text, 1 from (%s limit %s) s) select count(*) from ((select x from q) except (select s::text from (%s) s)) e', q, n,
			regexp_replace(q, ' offset \d+$', ''))
		into foreign_rows;
	return format('%s rows, %s of them strange', got, foreign_rows);
end $$;
select q, limited_rows(q, 10), limited_rows(q || ' offset 5', 77) from queries where q !~ 'none';
