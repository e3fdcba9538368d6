-- Employees above their department's mean.
select count(*) from employees e where salary > (select avg(salary) from employees where department = e.department);
