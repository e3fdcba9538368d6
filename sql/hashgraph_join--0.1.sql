/* sql/hashgraph_join--0.1.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION hashgraph_join" to load this file. \quit

-- The functions make this session load the library, and with it the planner
-- hook; other sessions load it through session_preload_libraries, LOAD, or a
-- call of the function.

CREATE FUNCTION hashgraph_join_info(
	OUT engine pg_catalog.text,
	OUT available boolean,
	OUT version pg_catalog.text,
	OUT devices pg_catalog.text[],
	OUT capabilities pg_catalog.text[],
	OUT detail pg_catalog.text)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'hashgraph_join_info'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION hashgraph_join_info() IS
'engines of hashgraph_join, with their versions, devices and capabilities';
