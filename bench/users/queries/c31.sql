-- Every customer's latest order, whole: LATERAL with LIMIT 1.
select status, count(*), sum(total) from customers c cross join lateral (select o.total, o.status from orders o where o.customer_id = c.id order by placed desc, id desc limit 1) x group by status order by status;
