-- Target list of a level that aggregates.
select max(n), sum(paid) from (select s.user_id, count(*) n, (select count(*) from events e where e.user_id = s.user_id and e.kind = 'buy') paid from sessions s group by s.user_id) x;
