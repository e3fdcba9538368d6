-- EXISTS with another comparison, below OR.
select count(*) from employees e where grade = 3 or exists (select from employees i where i.department = e.department and i.hired > e.hired);
