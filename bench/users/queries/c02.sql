-- A scalar aggregate in the target list, no index inside.
select sum(n), count(*) from (select id, (select sum(quantity) from lines l where l.product_id = p.id) n from products p where p.id % 50 = 0) x;
