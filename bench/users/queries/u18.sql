-- Orders and their customers' addresses.
select count(*), max(x) from (select o.id, (select email from customers c where c.id = o.customer_id) x from orders o where status = 'open') x;
