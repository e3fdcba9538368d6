-- Arithmetic of integers in an aggregate, which might overflow.
select count(*), sum(weight) from (select u.id, (select sum(e.value * e.session_id) from events e where e.user_id = u.id) weight from users u) t;
