-- A join inside.
select count(*) from customers c where credit < (select max(l.price) from orders o join lines l on l.order_id = o.id where o.customer_id = c.id);
