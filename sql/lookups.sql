-- Nested loops over an index, where few rows are looked up in a large table: PostgreSQL
-- charges them for pages as if they were not cached, joins of ours less.
create table look_big (id int primary key, g int, v int);
insert into look_big select g, g % 5000, g from generate_series(1, 200000) g;
create table look_few (id int, b int, c int);
insert into look_few select g, g * 601 % 200000, g * 7 from generate_series(1, 400) g;
create table look_many (id int, b int);
insert into look_many select g, g * 601 % 200000 from generate_series(1, 20000) g;
create index on look_big (g);
vacuum analyze look_big, look_few, look_many;
set max_parallel_workers_per_gather = 0;
set effective_cache_size = '4GB';
set enable_mergejoin = off;

-- the joins of a plan
create function look_joins(q text) returns setof text language plpgsql as $$
declare
	line text;
begin
	for line in execute 'explain (costs off) ' || q loop
		if line ~ 'HashGraphJoin|Nested Loop|Hash.* Join|Merge .*Join' then
			return next substring(line from '(Custom Scan \(HashGraphJoin\)|Nested Loop.*|Hash.*|Merge.*)');
		end if;
	end loop;
end $$;

create view looked_up as select * from (values
	(1, 'select f.id, b.v from look_few f join look_big b on b.id = f.b'),
	(2, 'select b.v, f.id from look_big b join look_few f on b.id = f.b'),
	(3, 'select f.id, b.v from look_few f left join look_big b on b.id = f.b'),
	(4, 'select f.id from look_few f where exists (select from look_big b where b.id = f.b)'),
	(5, 'select f.id from look_few f where not exists (select from look_big b where b.id = f.b)'),
	(6, 'select count(*), sum(b.v) from look_few f join look_big b on b.id = f.b'),
	(7, 'select f.id, b.v, c.v from look_few f join look_big b on b.id = f.b left join look_big c on c.id = f.c'),
	(8, 'select m.id, b.v from look_many m join look_big b on b.id = m.b where m.id < 100')) q (n, q);
select n, look_joins(q) from looked_up;

-- where most of the table is wanted, it is read
select look_joins('select m.id, b.v from look_many m join look_big b on b.id = m.b');
select look_joins('select f.id, b.v from look_few f join look_big b on b.g = f.c');

-- as it is where pages do not stay in memory: PostgreSQL's charges hold
set effective_cache_size = '1MB';
select look_joins(q) from looked_up where n = 1;
set effective_cache_size = '4GB';

-- and where one tells us to
set hashgraph_join.force = on;
select look_joins(q) from looked_up where n = 1;
reset hashgraph_join.force;

-- who forbids nested loops gets none
set enable_nestloop = off;
select look_joins(q) from looked_up where n = 1;
reset enable_nestloop;

drop function look_joins;
drop view looked_up;
drop table look_big, look_few, look_many;
