-- NOT IN, NULLs inside.
select count(*) from customers c where id not in (select customer_id from blocked);
