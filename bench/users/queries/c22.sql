-- Few rows around it, an index inside.
select count(*) from (select id, (select max(total) from orders o where o.customer_id = c.id) from customers c where c.id between 100 and 120) x;
