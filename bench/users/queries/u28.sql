-- Events above their session's mean.
select count(*) from events e where value > (select avg(value) from events i where i.session_id = e.session_id);
