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
