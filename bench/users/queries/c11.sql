-- NOT IN of a column that is never NULL.
select count(*) from customers c where id not in (select customer_id from orders where status = 'open');
