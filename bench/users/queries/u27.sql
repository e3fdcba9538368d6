-- Users with a session but without a click.
select count(*) from users u where exists (select 1 from sessions s where s.user_id = u.id) and not exists (select 1 from events e where e.user_id = u.id and kind = 'click' and value = 55);
