-- Orders with a line above a hundred.
select count(*) from orders o where exists (select 1 from lines l where l.order_id = o.id and l.price > 480);
