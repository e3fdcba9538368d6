-- EXISTS with HAVING.
select count(*) from customers c where exists (select from orders o where o.customer_id = c.id group by status having count(*) > 8);
