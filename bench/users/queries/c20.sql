-- > ALL.
select count(*) from employees e where salary > all (select salary from employees i where i.boss = e.id);
