-- NOT IN that depends on the row.
select count(*) from customers c where signup not in (select placed::date from orders o where o.customer_id = c.id);
