-- Sessions longer than their user's mean.
select count(*) from sessions s where (select count(*) from events e where e.session_id = s.id) > 3;
