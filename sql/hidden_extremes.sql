-- The least and the greatest value of a group: the row that has it is looked up by the group's key
-- alone, and the planner expects one row for each group.
create schema extremes;
set search_path = extremes, public;
create table price (item int, day date, amount numeric(8,2), shop text);
insert into price select g % 50, date '2024-01-01' + g / 50 % 31, (g * 7919 % 1009) / 4.0, 'shop ' || g % 7 from generate_series(1, 2000) g;
insert into price values (null, '2024-05-05', 1, null), (7, null, null, 'none'), (60, null, null, null), (61, '2024-02-02', 5.50, 'twice'), (61, '2024-02-02', 5.5, 'again');
create table item (id int primary key, best numeric, name text);
insert into item select g, (g * 31 % 97) / 4.0, 'item ' || g % 9 from generate_series(1, 70) g;
insert into item select id + 100, amount, shop from (select item as id, min(amount) as amount, 'best' as shop from price where item < 20 group by item) q;
analyze price, item;
set hashgraph_join.min_rows = 0;
-- a query's answers are compared; conditions of its joins, and the rows that the planner expects, are told
create function extreme(q text) returns setof text language plpgsql as $$
declare
	expected float8;
	found float8;
begin
	return next hgj_hidden(q);
	perform set_config('hashgraph_join.rewrite', 'force', true);
	perform set_config('hashgraph_join.force', 'on', true);
	return query select ltrim(line) from hgj_explain('(costs off) ' || q) line where line ~ '(Hash Cond|Join Filter): ';
	expected := (select substring(line from 'rows=([0-9]+)') from hgj_explain(q) line limit 1);
	execute 'select count(*) from (' || q || ') q' into found;
	return next case when expected between found / 4 and found * 4 then 'as many rows as expected' else format('%s rows, %s expected', found, expected) end;
	perform set_config('hashgraph_join.force', 'off', true);
	perform set_config('hashgraph_join.rewrite', 'on', true);
end $$;

select extreme($$select * from price p where amount = (select min(amount) from price i where i.item = p.item)$$);
select extreme($$select * from price p where (select max(day) from price i where i.item = p.item) = day$$);
select extreme($$select * from price p where amount = (select max(amount) from price i where i.item = p.item and i.shop = p.shop)$$);
select extreme($$select p.* from price p join item on id = item where amount = (select min(amount) from price i where i.item = id) and name < 'item 5'$$);
-- two of them, an order, first rows
select extreme($$select * from price p where day = (select max(day) from price i where i.item = p.item) and amount = (select min(amount) from price i where i.item = p.item)$$);
select extreme($$select item, amount from price p where amount = (select amount from price i where i.item = p.item and amount is not null order by amount desc limit 1)$$);
-- groups that are restricted, joined, of part of a key, or of rows that are looked up by another column
select extreme($$select * from price p where amount = (select min(amount) from price i where i.item = p.item and i.shop = 'shop 3')$$);
select extreme($$select * from price p where amount = (select min(amount) from price i, item t where i.item = p.item and t.id = i.item)$$);
select extreme($$select * from price p, item t where p.amount = (select min(amount) from price i where i.item = t.id) and t.id < 20$$);
select hgj_hidden($$select * from price p where p.amount = (select min(amount) from price i where i.item = p.item % 40)$$);
-- other columns, other tables, other aggregates, other operators: nothing is known of these
select hgj_hidden($$select * from item where best = (select min(amount) from price i where i.item = id)$$);
select hgj_hidden($$select * from price p where item = (select max(i.item) from price i where i.day = p.day)$$);
select hgj_hidden($$select * from price p where amount = (select avg(amount) from price i where i.item = p.item)$$);
select hgj_hidden($$select * from price p where amount <= (select min(amount) from price i where i.item = p.item)$$);
select hgj_hidden($$select * from price p where amount = (select min(amount) filter (where shop > 'shop 3') from price i where i.item = p.item)$$);
select hgj_hidden($$select * from price p where amount = (select min(amount) + 0 from price i where i.item = p.item)$$);
-- values of the rows around them; nothing; all
select hgj_hidden($$select id, (select count(*) from price p where p.item = id and amount = (select min(amount) from price i where i.item = p.item)) from item$$);
select hgj_hidden($$select * from price p where shop > 'z' and amount = (select min(amount) from price i where i.item = p.item)$$);

-- Groups that are written as a join: keys that need a hash function are left to the row that is found.
set hashgraph_join.force = on;
create function conditions(q text) returns setof text language plpgsql as $$
declare
	answer text := hgj_answer(q);
begin
	return query select ltrim(line) from hgj_explain('(costs off) ' || q) line where line ~ '(Join Type|Hash Cond|Join Filter): ';
	perform set_config('hashgraph_join.enabled', 'off', true);
	return next case when answer = hgj_answer(q) then split_part(answer, ',', 1) else 'it differs' end;
	perform set_config('hashgraph_join.enabled', 'on', true);
end $$;
select conditions($$select p.* from price p join (select item, min(amount) m from price group by item) g on g.item = p.item and g.m = p.amount$$);
select conditions($$select p.*, g.* from price p left join (select item, min(amount) m from price group by item) g on g.item = p.item and g.m = p.amount$$);
select conditions($$select p.*, g.* from price p full join (select item, min(amount) m from price group by item) g on g.item = p.item and g.m = p.amount$$);
select conditions($$select p.* from price p where (item, amount) in (select item, min(amount) m from price group by item)$$);
select conditions($$select p.* from price p where not exists (select from (select item, min(amount) m from price group by item) g where g.item = p.item and g.m = p.amount)$$);
select conditions($$select p.*, g.item is null from price p left join (select distinct item, amount from price) g on g.item = p.item and g.amount = p.amount$$);
select conditions($$select p.* from price p join (select distinct on (item) item, amount from price order by item, day desc, amount) g on g.item = p.item and g.amount = p.amount$$);
-- one key only, and groups by another key
select conditions($$select p.* from price p join (select item, min(amount) m from price group by item) g on g.m = p.amount$$);
select conditions($$select p.day, g.* from price p join (select item, day, min(amount) m from price group by item, day) g on g.item = p.item and g.m = p.amount$$);
drop schema extremes cascade;
