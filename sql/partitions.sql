-- Partitioned tables, joined as a whole and partition by partition.
create table p1 (id int, k int, t text, v int) partition by range (k);
create table p1_a partition of p1 for values from (0) to (40);
create table p1_b partition of p1 for values from (40) to (80);
create table p1_c partition of p1 for values from (80) to (200);
create table p1_d partition of p1 default;
create table p2 (v int, k int, id int, t text) partition by range (k);
create table p2_a partition of p2 for values from (0) to (40);
create table p2_b (t text, id int, k int, v int);
alter table p2 attach partition p2_b for values from (40) to (80);
create table p2_c partition of p2 for values from (80) to (200) partition by list (v);
create table p2_c1 partition of p2_c for values in (0, 1);
create table p2_c2 partition of p2_c default;
create table p2_d partition of p2 default;
create table p3 (id int, k text, v int) partition by hash (k);
create table p3_a partition of p3 for values with (modulus 2, remainder 0);
create table p3_b partition of p3 for values with (modulus 2, remainder 1);
insert into p1 select g, case when g % 15 <> 0 then g % 150 - 10 end, 'text ' || g % 50, g % 7 from generate_series(1, 900) g;
insert into p2 select g % 4, case when g % 11 <> 0 then g % 170 - 5 end, g, 'text ' || g % 40 from generate_series(1, 700) g;
insert into p3 select g, case when g % 8 <> 0 then 'text ' || g % 60 end, g % 5 from generate_series(1, 300) g;
analyze p1, p2, p3;

create temp table queries (q text);
insert into queries values
	('select p1.id, p2.id from p1 join p2 using (k)'),
	('select p1.id, p2.id from p1 left join p2 on p1.k = p2.k and p1.v < p2.v'),
	('select p1.id, p2.id from p1 right join p2 on p1.k = p2.k and p1.v < p2.v'),
	('select p1.id, p2.id from p1 full join p2 on p1.k = p2.k and p1.v < p2.v'),
	('select p1.id, k, p2.id from p1 full join p2 using (k)'),
	('select p1.id from p1 where exists (select from p2 where p1.k = p2.k and p1.v = p2.v)'),
	('select p1.id from p1 where not exists (select from p2 where p1.k = p2.k and p1.v > p2.v)'),
	('select p1, p2, p1.tableoid::regclass, p2.tableoid::regclass from p1 join p2 using (k) where p1.k between 30 and 50'),
	('select p1.id, p2.id from p1 join p2 using (k, v, t)'),
	('select p1.id, p2.id, c.id from p1 join p2 using (k) left join c using (k)'),
	('select x.id, y.id, z.id from p1 x full join p1 y using (k, id) full join p2 z using (k, id)'),
	('select p1.id, p3.id from p1 join p3 on p1.t = p3.k'),
	('select x.id, y.id from p3 x join p3 y using (k)'),
	('select x.id, y.id from p3 x full join (select * from p3 where v = 3) y using (k)'),
	('select p1.id, a.id from p1 full join a using (k)'),
	('select p1.id, x.n from p1, lateral (select count(*) as n from p2 join c using (k) where p2.v = p1.v) x where p1.id < 50'),
	('select k, count(*), sum(p1.v) from p1 join p2 using (k) group by k');
select q, hgj_check(q) as says from queries;
set enable_partitionwise_join = on;
set enable_partitionwise_aggregate = on;
select q, hgj_check(q) as says from queries;
set work_mem = '64kB';
select q, hgj_check(q) as says from queries;
reset work_mem;
set hashgraph_join.force = on;
explain (costs off) select p1.id, p2.id from p1 join p2 using (k) where k < 60;
-- pruned when the plan is made, when it starts and while it runs
prepare pruned(int, int) as select count(*), count(p1.id), sum(p2.id) from p1 right join p2 on p1.k = p2.k and p1.k between $1 and $2 where p2.k between $1 and $2;
set plan_cache_mode = force_generic_plan;
execute pruned(10, 30);
execute pruned(10, 90);
execute pruned(500, 600);
execute pruned(null, 3);
set hashgraph_join.enabled = off;
deallocate pruned;
prepare pruned(int, int) as select count(*), count(p1.id), sum(p2.id) from p1 right join p2 on p1.k = p2.k and p1.k between $1 and $2 where p2.k between $1 and $2;
execute pruned(10, 30);
execute pruned(10, 90);
execute pruned(500, 600);
execute pruned(null, 3);
deallocate pruned;
reset hashgraph_join.enabled;
reset hashgraph_join.force;
reset plan_cache_mode;
select hgj_check('select c.id, x.n from c, lateral (select count(*) as n from p1 join p2 using (k) where p1.v < c.v % 7) x');

-- data-modifying statements, with rows that move; joins to a target with
-- partitions stay PostgreSQL's, unless they are made partition by partition
create temp table dmls (dml text, nodes int);
insert into dmls values
	('update p1 set t = ''updated'' from p2 where p1.k = p2.k', 0),
	('update p1 set k = p1.k + 40 from p2 where p1.k = p2.k and p2.v = 2', 0),
	('update p1 set k = p1.k + 40 from a join b using (k) where p1.k = a.id', 1),
	('delete from p1 using p2 where p1.k = p2.k and p1.v < p2.v', 0),
	('insert into p1 select p2.id + 1000, p2.k, p1.t, p1.v from p1 right join p2 using (k) where p2.v = 3', 1),
	('merge into p1 using (select k, max(id) as id from p2 group by k) s on p1.k = s.k when matched and p1.v > 3 then update set k = p1.k + 50 when matched then delete when not matched then insert values (s.id, s.k, ''new'', 0)', 0);
select dml, hgj_check_dml(dml, 'p1', nodes, false) as says from dmls;
reset enable_partitionwise_join;
select dml, hgj_check_dml(dml, 'p1', nodes, false) as says from dmls;
reset enable_partitionwise_aggregate;
drop table p1, p2, p3;
