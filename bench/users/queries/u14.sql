-- Products whose last price is above their first.
select count(*) from products p where (select max(price) from prices r where r.product_id = p.id) > 1.01 * (select min(price) from prices r where r.product_id = p.id);
