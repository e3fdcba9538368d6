-- Customers whose first order came late.
select count(*) from customers c where signup + 1200 < (select min(placed) from orders o where o.customer_id = c.id);
