-- Rows of some days, by arithmetic of dates, and a quotient.
select count(*) from customers c where (select count(*) from orders o where o.customer_id = c.id and o.placed + interval '30 days' > timestamp '2024-06-01' and o.id / nullif(o.coupon, 0) > 3) > 1;
