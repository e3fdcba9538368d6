-- Row security, security barriers and privileges stay PostgreSQL's.
create table secret (id int, owner name, k int, t text);
insert into secret select g, case g % 3 when 0 then 'regress_hgj_alice' else 'regress_hgj_bob' end, g % 50, 'secret ' || g from generate_series(1, 300) g;
create table open_data (k int, v int);
insert into open_data select g % 60, g from generate_series(1, 200) g;
analyze secret, open_data;
create role regress_hgj_alice;
create role regress_hgj_bob;
grant select, update, delete on secret to regress_hgj_alice, regress_hgj_bob;
grant select on open_data to regress_hgj_alice;
grant select (k) on open_data to regress_hgj_bob;
alter table secret enable row level security;
create policy own_rows on secret using (owner = current_user);
create view mine with (security_barrier) as select id, k, t from secret where owner = current_user;
create view joined with (security_barrier) as select s.id, s.t, o.v from secret s join open_data o using (k) where s.owner = current_user;
grant select on mine, joined to regress_hgj_alice, regress_hgj_bob;
-- says what it sees, and costs so little that it would run first if it might
create function leak(text) returns bool language plpgsql cost 0.0000001 as $$
begin
	if $1 not like 'secret%' then return true; end if;
	if substr($1, 8)::int % 3 <> 0 and current_user = 'regress_hgj_alice' then
		raise notice 'leaked %', $1;
	end if;
	return true;
end $$;
create function leak_lt(int, int) returns bool language plpgsql cost 0.0000001 as $$ begin return $1 < $2 + 1000; end $$;

set hashgraph_join.force = on;
set hashgraph_join.require = join;
set session authorization regress_hgj_alice;
explain (costs off) select count(*) from secret s join open_data o using (k);
select count(*), count(distinct owner) from secret s join open_data o using (k);
select count(*) from secret s left join open_data o using (k) where leak(s.t);
select count(*) from secret s join open_data o on s.k = o.k and leak(s.t) and leak_lt(s.id, o.v);
select count(*) from secret s full join open_data o on s.k = o.k and leak_lt(s.id, o.v);
select count(*) from mine join open_data using (k) where leak(t);
explain (costs off) select count(*) from mine join open_data using (k) where leak(t);
select count(*) from joined where leak(t) and leak_lt(id, v);
select count(*) from joined j join secret s using (id) where leak(j.t) and leak(s.t);
select count(*) from open_data o where exists (select from secret s where s.k = o.k and leak(s.t));
select count(*) from open_data o where not exists (select from secret s where s.k = o.k and leak(s.t));
select count(*) from open_data o join secret s on o.k = s.k and s.t || o.v = s.t || s.id;
begin;
with u as (update secret s set t = s.t || '!' from open_data o where s.k = o.k and leak(s.t) returning s.id, s.owner) select count(*), count(distinct owner) from u;
with d as (delete from secret s using open_data o where s.k = o.k returning s.owner) select count(*), count(distinct owner) from d;
rollback;
-- one prepared plan, two users
prepare both_users as select count(*), min(s.owner), max(s.owner) from secret s join open_data o using (k);
execute both_users;
reset session authorization;
set session authorization regress_hgj_bob;
select count(*) from secret s join open_data o using (k);
select count(o.v) from secret s join open_data o using (k);
select o from secret s join open_data o using (k);
reset session authorization;
execute both_users;
set role regress_hgj_alice;
execute both_users;
select count(*), count(distinct owner) from secret s join open_data o using (k);
reset role;
-- the same queries without the extension
set hashgraph_join.enabled = off;
set session authorization regress_hgj_alice;
select count(*), count(distinct owner) from secret s join open_data o using (k);
select count(*) from secret s left join open_data o using (k) where leak(s.t);
select count(*) from secret s join open_data o on s.k = o.k and leak(s.t) and leak_lt(s.id, o.v);
select count(*) from secret s full join open_data o on s.k = o.k and leak_lt(s.id, o.v);
select count(*) from mine join open_data using (k) where leak(t);
select count(*) from joined where leak(t) and leak_lt(id, v);
select count(*) from joined j join secret s using (id) where leak(j.t) and leak(s.t);
select count(*) from open_data o where exists (select from secret s where s.k = o.k and leak(s.t));
select count(*) from open_data o where not exists (select from secret s where s.k = o.k and leak(s.t));
reset session authorization;
deallocate all;
drop table secret, open_data cascade;
drop role regress_hgj_alice, regress_hgj_bob;
