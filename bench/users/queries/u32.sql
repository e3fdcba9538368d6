-- Flags beside each customer.
select count(*) filter (where a), count(*) filter (where b) from (select exists (select 1 from orders o where o.customer_id = c.id and total > 9900) a, exists (select 1 from blocked b where b.customer_id = c.id) b from customers c) x;
