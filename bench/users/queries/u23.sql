-- Users' last kind of event.
select count(*), max(x) from (select u.name, (select kind from events e where e.user_id = u.id order by at desc, id desc limit 1) x from users u) x;
