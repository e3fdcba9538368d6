-- Not in a list, by one equality or another.
select count(*), sum(credit) from customers c where not exists (select from blocked b where b.email = c.email or b.customer_id = c.id);
