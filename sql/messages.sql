-- What the log says of a join or aggregation that does otherwise than asked or
-- planned: one line at DEBUG1 for each reason, however many batches, partitions
-- and rescans there are; nothing above that.
create table me_a as select g as k, g % 10 as g, g as v, 'text ' || g as t from generate_series(1, 6000) g;
create table me_b as select g * 2 as k, g as v from generate_series(1, 1000) g;
create table me_g as select generate_series(0, 9) as k;
-- without the pages that a file is extended by in advance from PostgreSQL 16 on
vacuum analyze me_a, me_b, me_g;
set hashgraph_join.force = on;
set hashgraph_join.engine = cpu;
set jit = off;
set client_min_messages = debug1;

-- nothing to be said
select count(*), sum(a.v) from me_a a join me_b b using (k);
-- partitions; partitions of partitions; rescans
set hashgraph_join.spill = partitions;
set hashgraph_join.chunk_rows = 1000;
select count(*), count(y.t) from me_a x left join me_a y using (k);
set hashgraph_join.chunk_rows = 10;
select count(*), count(y.t) from me_a x left join me_a y using (k);
select count(s) from (select (select count(y.t) from me_a x join me_a y on x.k = y.k and x.v <> g.g) as s from generate_series(1, 3) g) q;
-- passes
set hashgraph_join.spill = passes;
set hashgraph_join.chunk_rows = 1000;
select count(*) from me_a x join me_a y using (k);
select count(s) from (select (select count(y.t) from me_a x join me_a y on x.k = y.k and x.v <> g.g) as s from generate_series(1, 3) g) q;
reset hashgraph_join.spill;
reset hashgraph_join.chunk_rows;
-- groups
set work_mem = '64kB';
select count(*), count(t) from (select x.t, count(*) from me_a x join me_g y on x.g = y.k group by 1 offset 0) q;
reset work_mem;
-- tables
set hashgraph_join.build = direct;
set hashgraph_join.segments = ellpack;
select count(*) from me_a x join me_b y on x.k = y.k * 1000000::int8;
select count(s) from (select (select count(*) from me_a x join me_b y on x.t = y.v::text where y.v <> g.g) as s from generate_series(1, 3) g) q;
reset hashgraph_join.build;
reset hashgraph_join.segments;
-- sources
select count(q.xmin) from (select x.xmin from me_a x join me_b y using (k) offset 0) q;
-- planning
select count(*) from me_a x join me_b y on x.k < y.k;
select percentile_disc(0.5) within group (order by x.v) from me_a x join me_b y using (k);
-- an engine that is not there
set hashgraph_join.cuda_library = '/nowhere/at_all.so';
set hashgraph_join.engine = cuda;
select count(*), sum(a.v) from me_a a join me_b b using (k);
select count(s) from (select (select count(*) from me_b x join me_b y using (k) where x.v <> g.g) as s from generate_series(1, 3) g) q;
reset client_min_messages;
drop table me_a, me_b, me_g;
