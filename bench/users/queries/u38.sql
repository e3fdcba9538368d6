-- Orders neither blocked nor returned.
select count(*) from orders o where not (customer_id in (select customer_id from blocked where customer_id is not null) or status = 'returned');
