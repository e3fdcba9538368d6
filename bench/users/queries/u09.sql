-- The best paid of each department.
select sum(id) from employees e where salary = (select max(salary) from employees where department = e.department);
