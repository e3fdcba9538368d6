-- A report with five figures a customer.
select count(*), sum(a), sum(b), max(d), max(e) from (select (select count(*) from orders o where o.customer_id = c.id) a, (select sum(total) from orders o where o.customer_id = c.id) b, (select max(placed) from orders o where o.customer_id = c.id) d, (select email from customers r where r.id = c.referrer) e from customers c where country < 20) x;
