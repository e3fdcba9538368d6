-- NOT IN of groups.
select count(*) from customers c where id not in (select customer_id from orders group by customer_id having count(*) > 25);
