-- EXISTS as a value.
select sum(x::int), count(*) from (select exists (select from orders o where o.customer_id = c.id and status = 'open') x from customers c) x;
