-- NOT IN, IS NOT NULL inside.
select count(*) from customers c where email not in (select email from blocked where email is not null);
