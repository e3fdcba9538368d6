-- Bosses whose people all earn less.
select count(*) from employees b where salary > all (select salary from employees e where e.boss = b.id);
