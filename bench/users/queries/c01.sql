-- A scalar aggregate in WHERE, an index inside.
select count(*), sum(total) from orders o where total > (select 1.5 * avg(total) from orders i where i.customer_id = o.customer_id);
