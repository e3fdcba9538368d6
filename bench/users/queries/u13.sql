-- The price that was valid on a day.
select count(*), sum(x) from (select (select price from prices r where r.product_id = p.id order by since desc limit 1) x from products p) x;
