-- What each product has sold.
select count(*), sum(x) from (select p.id, (select coalesce(sum(quantity), 0) from lines l where l.product_id = p.id) x from products p where category < 3) x;
