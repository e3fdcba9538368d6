-- Customers without an order.
select count(*) from customers where id not in (select customer_id from orders);
