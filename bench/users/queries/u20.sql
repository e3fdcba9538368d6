-- Users who bought something.
select count(*) from users u where exists (select 1 from events e where e.user_id = u.id and kind = 'buy');
