-- One customer's page.
select count(*), max(n) from (select o.id, (select count(*) from lines l where l.order_id = o.id) n from orders o where customer_id = 4711) x;
