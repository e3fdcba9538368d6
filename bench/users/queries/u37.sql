-- Products of which nobody bought more than ten.
select count(*) from products p where 10 >= all (select quantity from lines l where l.product_id = p.id and l.order_id < 200000);
