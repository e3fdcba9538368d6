-- The first session of each user.
select count(*) from sessions s where started = (select min(started) from sessions f where f.user_id = s.user_id);
