-- Makes the regression database ready for sqlsmith (run.sh).
--
-- A role that is not a superuser: sqlsmith calls every function that it may.
create role sqlsmith login;
grant pg_read_all_data, pg_write_all_data to sqlsmith;

-- sqlsmith picks the operator of a comparison from all those in pg_operator,
-- and prints its name only.  More rows for "=" over types that columns have
-- mean more equi-joins; what runs is the operator in pg_catalog.
do $$
declare
	o record;
begin
	for i in 1 .. 40 loop
		execute format('create schema more_equals_%s', i);
	end loop;
	for o in
		select oprleft::regtype as l, oprright::regtype as r, oprcode::text as f, n
		from (values ('int4', 'int4', 40), ('oid', 'oid', 30), ('name', 'name', 30), ('int8', 'int8', 25), ('text', 'text', 25),
			('float8', 'float8', 15), ('numeric', 'numeric', 15), ('int4', 'int8', 10), ('int8', 'int4', 10), ('name', 'text', 10),
			('bpchar', 'bpchar', 10), ('timestamptz', 'timestamptz', 10), ('int2', 'int2', 5), ('int2', 'int4', 5), ('float4', 'float4', 5),
			('timestamp', 'timestamp', 5), ('date', 'date', 5), ('"char"', '"char"', 5), ('interval', 'interval', 3)) v(l, r, n)
			join pg_operator on oprname = '=' and oprnamespace = 'pg_catalog'::regnamespace
				and oprleft = v.l::regtype and oprright = v.r::regtype
	loop
		for i in 1 .. o.n loop
			execute format('create operator more_equals_%s.= (leftarg = %s, rightarg = %s, function = %s)', i, o.l, o.r, o.f);
		end loop;
	end loop;
end $$;
vacuum analyze;
