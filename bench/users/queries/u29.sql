-- Teams and their users' events.
select count(*), sum(n) from (select u.team, sum((select count(*) from events e where e.user_id = u.id)) n from users u group by u.team) x;
