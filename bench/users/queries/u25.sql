-- Sessions with a purchase and what they saw.
select count(*), sum(n) from (select s.id, (select count(*) from events e where e.session_id = s.id and kind = 'view') n from sessions s where exists (select 1 from events e where e.session_id = s.id and kind = 'buy')) x;
