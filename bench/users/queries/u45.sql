-- Categories' dearest products.
select count(*) from products p where price = (select max(price) from products q where q.category = p.category);
