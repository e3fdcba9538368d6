/* sql/hashgraph_join--0.1.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION hashgraph_join" to load this file. \quit

-- The functions make this session load the library, and with it the planner
-- hook; other sessions load it through session_preload_libraries, LOAD, or a
-- call of the function.

CREATE FUNCTION hashgraph_join_info(
	OUT engine text,
	OUT available boolean,
	OUT version text,
	OUT devices text[],
	OUT capabilities text[],
	OUT detail text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'hashgraph_join_info'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION hashgraph_join_info() IS
'engines of hashgraph_join, with their versions, devices and capabilities';

CREATE FUNCTION hashgraph_join_devices(
	OUT device integer,
	OUT name text,
	OUT compute_capability text,
	OUT memory_total bigint,
	OUT memory_free bigint,
	OUT driver_version text,
	OUT runtime_version text,
	OUT state text,
	OUT tables integer,
	OUT detail text)
RETURNS SETOF record
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
	OUT datid oid,
	OUT datname name,
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
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'hashgraph_join_stats'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION hashgraph_join_stats() IS
'what HashGraphJoin and HashGraphAgg have done in each database since stats_reset';

CREATE FUNCTION hashgraph_join_fallbacks(
	OUT datid oid,
	OUT datname name,
	OUT kind text,
	OUT reason text,
	OUT count bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'hashgraph_join_fallbacks'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION hashgraph_join_fallbacks() IS
'how often, and why, a HashGraphJoin or HashGraphAgg had to do otherwise than asked or planned';

CREATE FUNCTION hashgraph_join_stats_reset()
RETURNS void
AS 'MODULE_PATHNAME', 'hashgraph_join_stats_reset'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION hashgraph_join_stats_reset() IS
'sets the counters of the current database to zero';

REVOKE ALL ON FUNCTION hashgraph_join_stats_reset() FROM PUBLIC;

CREATE FUNCTION hashgraph_join_why(
	query text,
	OUT level integer,
	OUT node text,
	OUT taken boolean,
	OUT engine text,
	OUT source text,
	OUT reason text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'hashgraph_join_why'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION hashgraph_join_why(text) IS
'joins, aggregations and scans of the plan of a query, which is not run, and why hashgraph_join takes them or not';
