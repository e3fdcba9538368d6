-- A left join by one equality or another.
select count(*), count(b.email) from customers c left join blocked b on b.email = c.email or b.customer_id = c.id;
