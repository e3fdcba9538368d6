-- Employees who earn more than their boss.
select count(*) from employees e where salary > (select salary from employees b where b.id = e.boss);
