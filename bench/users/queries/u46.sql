-- Orders with a coupon that others have used.
select count(*) from orders o where coupon is not null and exists (select 1 from orders i where i.coupon = o.coupon and i.customer_id <> o.customer_id);
