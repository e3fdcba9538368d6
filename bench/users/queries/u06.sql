-- Customers without a blocked address.
select count(*) from customers where email not in (select email from blocked where email is not null);
