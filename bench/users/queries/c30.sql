-- Orders and spending of each customer, side by side: LATERAL with aggregates.
select count(*), sum(n), sum(s), max(last) from customers c left join lateral (select count(*) n, sum(total) s, max(placed) last from orders o where o.customer_id = c.id) x on true;
