-- Lines above their order's mean.
select count(*) from lines l where price > (select avg(price) from lines i where i.order_id = l.order_id);
