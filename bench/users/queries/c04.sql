-- Two subqueries, one of them count.
select count(*), sum(a), sum(b) from (select (select count(*) from orders o where o.customer_id = c.id) a, (select max(total) from orders o where o.customer_id = c.id and status = 'paid') b from customers c) x;
