-- Products sold below their list price.
select count(*) from lines l where price < (select p.price from products p where p.id = l.product_id);
