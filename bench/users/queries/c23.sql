-- HAVING, with a group's own subquery.
select count(*) from (select customer_id from orders o group by customer_id having sum(total) > (select 40 * avg(credit) from customers c where c.id = o.customer_id)) x;
