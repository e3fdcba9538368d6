-- Departments with anyone of grade eleven.
select count(*) from departments d where exists (select 1 from employees e where e.department = d.id and grade = 11) or d.id < 10;
