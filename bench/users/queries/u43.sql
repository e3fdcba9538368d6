-- Employees hired after their boss.
select count(*) from employees e where hired > (select hired from employees b where b.id = e.boss);
