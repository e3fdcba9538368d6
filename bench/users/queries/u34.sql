-- Duplicate addresses, by the first id.
select count(*) from customers c where id > (select min(id) from customers d where d.email = c.email);
