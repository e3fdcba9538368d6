-- Customers of a country with open orders, or credit.
select count(*) from customers c where country = 3 and (credit > 8000 or exists (select 1 from orders o where o.customer_id = c.id and status = 'open'));
