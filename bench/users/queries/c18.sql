-- LIMIT 1 as a maximum.
select count(*), max(x) from (select (select placed from orders o where o.customer_id = c.id order by placed desc limit 1) x from customers c) x;
