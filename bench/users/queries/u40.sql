-- The ten latest orders with their customers.
select string_agg(id || ' ' || email, ',') from (select o.id, (select email from customers c where c.id = o.customer_id) email from orders o order by id desc limit 10) x;
