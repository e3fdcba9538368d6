-- Orders with all lines of one product.
select count(*) from orders o where status = 'sent' and (select count(distinct product_id) from lines l where l.order_id = o.id) = 1;
