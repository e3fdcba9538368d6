-- Customers with more than ten orders of a kind.
select count(*) from customers c where (select count(*) from orders o where o.customer_id = c.id and status = 'paid') > 10;
