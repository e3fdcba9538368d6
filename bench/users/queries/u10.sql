-- Departments and their heads' names.
select count(*), max(head) from (select d.name, (select e.salary from employees e where e.id = d.head) head from departments d) x;
