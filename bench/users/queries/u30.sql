-- Customers who were referred by one who spent more.
select count(*) from customers c where credit < (select credit from customers r where r.id = c.referrer);
