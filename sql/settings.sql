-- Settings: what they are, what they refuse, what they do.
-- What column_memory is by default depends on what the server preloads.
select name, case when vartype <> 'real' and name <> 'hashgraph_join.column_memory' then boot_val end as default, vartype, replace(context, 'postmaster', 'sighup') as context, min_val, max_val, enumvals, category, short_desc <> '' as described
from pg_settings where name like 'hashgraph\_join.%' and name not like '%.debug\_%' order by name;

-- wrong values
set hashgraph_join.enabled = perhaps;
set hashgraph_join.engine = opencl;
set hashgraph_join.build = v3;
set hashgraph_join.probe = 1;
set hashgraph_join.segments = '';
set hashgraph_join.filter = bloom;
set hashgraph_join.spill = disk;
set hashgraph_join.chunk_rows = -1;
set hashgraph_join.require = agg;
set hashgraph_join.force = maybe;
set hashgraph_join.min_rows = -1;
set hashgraph_join.min_rows = 3000000000;
set hashgraph_join.min_rows = many;
set hashgraph_join.startup_cost = -0.5;
set hashgraph_join.build_tuple_cost = -1;
set hashgraph_join.probe_tuple_cost = 'NaN';
set hashgraph_join.emit_tuple_cost = cheap;
set hashgraph_join.unknown = 1;
select set_config('hashgraph_join.enable', 'off', false);
-- right ones
set hashgraph_join.enabled = 0;
set hashgraph_join.engine = CPU;
set hashgraph_join.min_rows = '0x10';
set hashgraph_join.startup_cost = 1e3;
show hashgraph_join.enabled;
show hashgraph_join.engine;
show hashgraph_join.min_rows;
show hashgraph_join.startup_cost;
reset all;

-- anybody may set them, for a session, a transaction, a function, a role
create role regress_hgj_user;
set session authorization regress_hgj_user;
set hashgraph_join.force = on;
begin;
set local hashgraph_join.build = v2;
show hashgraph_join.build;
rollback;
show hashgraph_join.build;
reset session authorization;
alter role regress_hgj_user set hashgraph_join.enabled = off;
alter role regress_hgj_user set hashgraph_join.build = never;
drop role regress_hgj_user;
reset hashgraph_join.force;

-- EXPLAIN (SETTINGS) tells those that matter for the plan
set hashgraph_join.force = on;
set hashgraph_join.build = v1;
-- which names what is not the default
set jit = on;
select 'Settings: ' || string_agg(s, ', ' order by s collate "C") as line from hgj_explain('(costs off, settings) select a.id from a join b using (k)') line, regexp_split_to_table(substring(line from 'Settings: (.*)'), ', ') s
where line ~ 'Settings' and s !~ 'presorted';
reset hashgraph_join.build;
reset hashgraph_join.force;

-- small joins are PostgreSQL's
explain (costs off) select count(*) from a join b using (k);
-- large ones need not be: both sides have 20,000 rows, and a table of a
-- million hash values would be made
create temp table big1 as select g as k, g % 10 as v from generate_series(1, 20000) g;
create temp table big2 as select g * 3 as k, repeat('x', 30) as t from generate_series(1, 20000) g;
create temp table thousand as select g as k, g % 10 as v from generate_series(1, 1000) g;
analyze big1, big2, thousand;
set enable_mergejoin = off;
set hashgraph_join.startup_cost = 0;
set hashgraph_join.build_tuple_cost = 0;
set hashgraph_join.probe_tuple_cost = 0;
set hashgraph_join.emit_tuple_cost = 0;
select hgj_nodes('select count(*) from big1 join big2 using (k)') as large, hgj_nodes('select count(*) from thousand x join thousand y using (k)') as small,
	hgj_nodes('select count(*) from big1 join thousand using (k)') as one_large;
set hashgraph_join.min_rows = 1000;
select hgj_nodes('select count(*) from thousand x join thousand y using (k)') as small;
set hashgraph_join.min_rows = 1001;
select hgj_nodes('select count(*) from thousand x join thousand y using (k)') as small;
set hashgraph_join.min_rows = 20001;
select hgj_nodes('select count(*) from big1 join big2 using (k)') as large;
set hashgraph_join.min_rows = 0;
set hashgraph_join.startup_cost = 1000000;
select hgj_nodes('select count(*) from big1 join big2 using (k)') as too_dear;
reset hashgraph_join.startup_cost;
reset hashgraph_join.build_tuple_cost;
reset hashgraph_join.probe_tuple_cost;
reset hashgraph_join.emit_tuple_cost;
reset hashgraph_join.min_rows;
reset enable_mergejoin;

-- off, in three ways; the other settings do not matter then
set hashgraph_join.force = on;
select hgj_nodes('select count(*) from a join b using (k)') as forced;
set hashgraph_join.enabled = off;
select hgj_nodes('select count(*) from a join b using (k)') as not_enabled;
reset hashgraph_join.enabled;
set enable_hashjoin = off;
select hgj_nodes('select count(*) from a join b using (k)') as no_hash_joins;
reset enable_hashjoin;
reset hashgraph_join.force;

-- require
set hashgraph_join.require = join;
do $$
begin
	set hashgraph_join.min_rows = 0;
	set hashgraph_join.startup_cost = 1000000;
	perform count(*) from a join b using (k);
exception when feature_not_supported then
	raise notice '% %', sqlstate, sqlerrm;
end $$;
set hashgraph_join.min_rows = 0;
set hashgraph_join.startup_cost = 1000000;
select count(*) from a join b using (k);
prepare req as select count(*) from a join b using (k);
execute req;
create view req_view as select a.id from a join b using (k);
explain select * from req_view;
insert into none select * from req_view;
-- no hash clause: nothing is required
select count(*) from a join c on a.id < c.id - 195;
select count(*) from a;
-- nor when it is switched off
set hashgraph_join.enabled = off;
select count(*) from a join b using (k);
set hashgraph_join.enabled = on;
set enable_hashjoin = off;
select count(*) from a join b using (k);
reset enable_hashjoin;
-- with force it is fulfilled
set hashgraph_join.force = on;
select count(*) from a join b using (k);
select count(*) from req_view;
reset all;
drop view req_view;
deallocate all;

-- an engine that is not there is replaced, and named
set hashgraph_join.force = on;
set hashgraph_join.engine = cpu;
select count(*) from a join b using (k);
select engine, available, version = (select extversion from pg_extension where extname = 'hashgraph_join') as version, devices is not null as devices,
	cardinality(capabilities) > 0 as capabilities from hashgraph_join_info() where engine = 'cpu';
reset all;

-- the extension's objects; making and dropping it again keeps the settings
select count(*) as others from pg_depend where refclassid = 'pg_extension'::regclass and refobjid = (select oid from pg_extension where extname = 'hashgraph_join')
	and deptype = 'e' and classid not in ('pg_proc'::regclass, 'pg_type'::regclass);
drop extension hashgraph_join;
select * from hashgraph_join_info();
set hashgraph_join.force = on;
select hgj_nodes('select count(*) from a join b using (k)') as still_loaded;
create extension hashgraph_join;
select count(*) > 0 as engines from hashgraph_join_info();
create schema elsewhere;
alter extension hashgraph_join set schema elsewhere;
select count(*) > 0 as engines from elsewhere.hashgraph_join_info();
alter extension hashgraph_join set schema public;
drop schema elsewhere;
reset all;
