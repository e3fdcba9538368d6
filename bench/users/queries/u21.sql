-- Users who never bought.
select count(*) from users u where u.id not in (select user_id from events where kind = 'buy' and value > 90);
