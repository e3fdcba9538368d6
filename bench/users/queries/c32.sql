-- Two summaries of a user without an index that helps, and what they have in common.
select count(*), sum(x.n), sum(y.n) from users u left join lateral (select count(*) n, min(started) first from sessions s where s.user_id = u.id) x on true
left join lateral (select count(*) n, max(at) last from events e where e.user_id = u.id and e.kind = 'buy') y on true where y.last > x.first;
