-- A join by one equality or another.
select count(*) from customers c join blocked b on b.email = c.email or b.customer_id = c.id;
