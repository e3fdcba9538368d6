-- Users' last event.
select count(*), max(x) from (select u.name, (select max(at) from events e where e.user_id = u.id) x from users u) x;
