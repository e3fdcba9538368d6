-- Events of users who joined last.
select count(*) from events e where user_id in (select id from users u where joined > (select avg(extract(epoch from joined)) * interval '1 s' + timestamp '1970-01-01' from users v where v.team = u.team));
