-- Orders above their customer's average.
select count(*) from orders o where total > (select avg(total) from orders where customer_id = o.customer_id);
