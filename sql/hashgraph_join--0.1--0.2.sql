/* sql/hashgraph_join--0.1--0.2.sql */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION hashgraph_join UPDATE TO '0.2'" to load this file. \quit

-- The first 0.1 had hashgraph_join_info() only.  What came later called itself 0.1, too,
-- and its functions changed on the way: whatever of them is the extension's is
-- dropped, and what follows is that of 0.2.

DO LANGUAGE plpgsql $$
DECLARE
	member pg_catalog.record;
BEGIN
	FOR member IN
		SELECT d.classid, d.objid, p.proname
		FROM pg_catalog.pg_extension e
			JOIN pg_catalog.pg_depend d ON d.refobjid OPERATOR(pg_catalog.=) e.oid
			LEFT JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) d.objid
				AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid
		WHERE e.extname OPERATOR(pg_catalog.=) 'hashgraph_join'::pg_catalog.name
			AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass::pg_catalog.oid
			AND d.deptype OPERATOR(pg_catalog.=) 'e'::pg_catalog."char"
			AND (p.oid IS NOT NULL
				OR d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid)
		-- views stand on functions
		ORDER BY p.oid IS NOT NULL
	LOOP
		IF member.proname IS NULL THEN
			EXECUTE pg_catalog.format('DROP VIEW %s'::pg_catalog.text, member.objid::pg_catalog.regclass);
		ELSIF member.proname OPERATOR(pg_catalog.<>) 'hashgraph_join_info'::pg_catalog.name THEN
			EXECUTE pg_catalog.format('DROP FUNCTION %s'::pg_catalog.text, member.objid::pg_catalog.regprocedure);
		END IF;
	END LOOP;
END $$;

CREATE FUNCTION hashgraph_join_devices(
	OUT device integer,
	OUT name pg_catalog.text,
	OUT compute_capability pg_catalog.text,
	OUT memory_total bigint,
	OUT memory_free bigint,
	OUT driver_version pg_catalog.text,
	OUT runtime_version pg_catalog.text,
	OUT state pg_catalog.text,
	OUT tables integer,
	OUT detail pg_catalog.text,
	OUT column_memory bigint,
	OUT column_hits bigint,
	OUT column_uploads bigint,
	OUT sessions integer,
	OUT calls integer)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'hashgraph_join_devices'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION hashgraph_join_devices() IS
'GPUs that hashgraph_join can use, what this session has on them, and why one is off';

CREATE FUNCTION hashgraph_join_release()
RETURNS boolean
AS 'MODULE_PATHNAME', 'hashgraph_join_release'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION hashgraph_join_release() IS
'gives back the GPUs that this session has open; false if there was none';

-- Counted by all sessions together only if the postmaster loads the library
-- (shared_preload_libraries); otherwise by each session for itself.

CREATE FUNCTION hashgraph_join_stats(
	OUT datid pg_catalog.oid,
	OUT datname pg_catalog.name,
	OUT shared boolean,
	OUT joins bigint,
	OUT joins_cpu bigint,
	OUT joins_cuda bigint,
	OUT joins_in_workers bigint,
	OUT builds bigint,
	OUT inner_rows bigint,
	OUT outer_rows bigint,
	OUT rows_returned bigint,
	OUT joins_spilled bigint,
	OUT spill_partitions bigint,
	OUT spill_passes bigint,
	OUT spilled_inner_bytes bigint,
	OUT spilled_outer_bytes bigint,
	OUT outer_rows_filtered bigint,
	OUT aggregates bigint,
	OUT aggregates_on_device bigint,
	OUT groups bigint,
	OUT aggregates_spilled bigint,
	OUT spilled_aggregate_bytes bigint,
	OUT to_device_bytes bigint,
	OUT from_device_bytes bigint,
	OUT transfer_time double precision,
	OUT kernel_time double precision,
	OUT peak_memory_bytes bigint,
	OUT peak_device_memory_bytes bigint,
	OUT stats_reset timestamp with time zone)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'hashgraph_join_stats'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION hashgraph_join_stats() IS
'what HashGraphJoin and HashGraphAgg have done in each database since stats_reset';

CREATE FUNCTION hashgraph_join_fallbacks(
	OUT datid pg_catalog.oid,
	OUT datname pg_catalog.name,
	OUT kind pg_catalog.text,
	OUT reason pg_catalog.text,
	OUT count bigint)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'hashgraph_join_fallbacks'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION hashgraph_join_fallbacks() IS
'how often, and why, a HashGraphJoin or HashGraphAgg had to do otherwise than asked or planned';

CREATE FUNCTION hashgraph_join_stats_reset()
RETURNS pg_catalog.void
AS 'MODULE_PATHNAME', 'hashgraph_join_stats_reset'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION hashgraph_join_stats_reset() IS
'sets the counters of the current database to zero';

REVOKE ALL ON FUNCTION hashgraph_join_stats_reset() FROM PUBLIC;

CREATE FUNCTION hashgraph_join_progress(
	OUT pid integer,
	OUT datid pg_catalog.oid,
	OUT datname pg_catalog.name,
	OUT leader_pid integer,
	OUT node integer,
	OUT kind pg_catalog.text,
	OUT phase pg_catalog.text,
	OUT build_rows_done bigint,
	OUT build_rows_expected bigint,
	OUT outer_rows_done bigint,
	OUT outer_blocks_done bigint,
	OUT outer_blocks_total bigint,
	OUT partitions_done bigint,
	OUT partitions_total bigint,
	OUT groups bigint,
	OUT spilled_bytes bigint,
	OUT memory_bytes bigint,
	OUT device pg_catalog.text)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'hashgraph_join_progress'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION hashgraph_join_progress() IS
'HashGraphJoin and HashGraphAgg nodes that run now, in sessions that the caller may see, and how far they are';

CREATE FUNCTION hashgraph_join_load(tab pg_catalog.regclass, columns pg_catalog.name[] DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'hashgraph_join_load'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION hashgraph_join_load(pg_catalog.regclass, pg_catalog.name[]) IS
'decodes columns of a table and keeps them in memory; returns the number of chunks made';

CREATE FUNCTION hashgraph_join_unload(tab pg_catalog.regclass)
RETURNS bigint
AS 'MODULE_PATHNAME', 'hashgraph_join_unload'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION hashgraph_join_unload(pg_catalog.regclass) IS
'drops what is kept in memory of a table; returns the number of chunks dropped';

CREATE FUNCTION hashgraph_join_kept(
	OUT tab pg_catalog.regclass,
	OUT "column" pg_catalog.name,
	OUT chunks bigint,
	OUT pages bigint,
	OUT "rows" bigint,
	OUT bytes bigint,
	OUT encoding pg_catalog.text,
	OUT uses bigint,
	OUT time_saved double precision,
	OUT last_use timestamp with time zone,
	OUT device_bytes bigint)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'hashgraph_join_kept'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE VIEW hashgraph_join_columns AS SELECT * FROM hashgraph_join_kept();

GRANT SELECT ON hashgraph_join_columns TO PUBLIC;

COMMENT ON VIEW hashgraph_join_columns IS
'the columns of this database that are kept in memory, decoded, of those that the caller may read';

CREATE FUNCTION hashgraph_join_why(
	query pg_catalog.text,
	OUT level integer,
	OUT node pg_catalog.text,
	OUT taken boolean,
	OUT engine pg_catalog.text,
	OUT source pg_catalog.text,
	OUT reason pg_catalog.text)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'hashgraph_join_why'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION hashgraph_join_why(pg_catalog.text) IS
'joins, aggregations and scans of the plan of a query, which is not run, and why hashgraph_join takes them or not';
