-- IN that depends on the row.
select count(*) from sessions s where 3 in (select value from events e where e.session_id = s.id);
