-- Customers and how often they have ordered.
select max(n), sum(n) from (select c.email, (select count(*) from orders o where o.customer_id = c.id) n from customers c) x;
