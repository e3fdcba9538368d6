-- LIMIT 1, the row by a unique key.
select count(*), max(x) from (select (select status from orders o where o.customer_id = c.id order by placed desc, id desc limit 1) x from customers c) x;
