-- A row by a unique key.
select count(*), max(x) from (select (select name from products p where p.id = l.product_id) x from lines l) x;
