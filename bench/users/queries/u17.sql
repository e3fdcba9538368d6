-- Orders of blocked customers, or returned.
select count(*) from orders o where status = 'returned' or customer_id in (select customer_id from blocked);
