-- < ANY.
select count(*) from customers c where credit < any (select total from orders o where o.customer_id = c.id);
