-- A row by unique keys of two tables.
select count(*), max(x) from (select (select c.email from orders o join customers c on c.id = o.customer_id where o.id = l.order_id) x from lines l) x;
