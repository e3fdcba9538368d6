-- IN below OR.
select count(*) from orders o where coupon = 9 or customer_id in (select customer_id from blocked);
