-- EXISTS below OR.
select count(*) from orders o where status = 'returned' or exists (select from blocked b where b.customer_id = o.customer_id);
