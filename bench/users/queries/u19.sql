-- Orders and their customers' countries, of one.
select count(*) from orders o where (select country from customers c where c.id = o.customer_id) = 17;
