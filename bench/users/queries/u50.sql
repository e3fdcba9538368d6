-- What is not in another list, by two columns.
select count(*) from orders o where not exists (select 1 from lines l where l.order_id = o.id and l.quantity = 3 and l.line = 1);
