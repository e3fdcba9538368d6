-- Customers without an order, the other way.
select count(*) from customers c where not exists (select 1 from orders o where o.customer_id = c.id);
