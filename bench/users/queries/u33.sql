-- Customers and the coupon of their last order.
select count(*), sum(x) from (select (select coupon from orders o where o.customer_id = c.id order by placed desc, id desc limit 1) x from customers c where country = 5) x;
