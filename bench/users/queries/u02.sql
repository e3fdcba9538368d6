-- The latest order of each customer.
select count(*), sum(total) from orders o where placed = (select max(placed) from orders where customer_id = o.customer_id);
