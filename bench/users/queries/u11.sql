-- Products that have never been sold.
select count(*) from products p where not exists (select 1 from lines l where l.product_id = p.id);
