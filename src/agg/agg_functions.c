/*-------------------------------------------------------------------------
 *
 * agg_functions.c
 *	  The aggregate functions that a HashGraphAgg computes.
 *
 * A table by OID: each is one of PostgreSQL's own, whose value and transition
 * state agg_final.c knows how to make.
 *
 * No memory, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_accumulate.h"
#include "utils/fmgroids.h"

/* The bits of the first states of agg_floats.c. */
#define FLOAT4_MINUS_ZERO		UINT64CONST(0x80000000)
#define FLOAT4_NAN				UINT64CONST(0x7FC00000)
#define FLOAT4_MINUS_INFINITY	UINT64CONST(0xFF800000)
#define FLOAT8_MINUS_ZERO		UINT64CONST(0x8000000000000000)
#define FLOAT8_NAN				UINT64CONST(0x7FF8000000000000)
#define FLOAT8_MINUS_INFINITY	UINT64CONST(0xFFF0000000000000)

#define LEAST_WORD	((uint64) PG_INT64_MIN)
#define MOST_WORD	((uint64) PG_INT64_MAX)

#define MIN_WORD(name, width) \
	{name, HGJ_AGG_WORD, sizeof(int64), hgj_agg_min_##width, MOST_WORD}
#define MAX_WORD(name, width) \
	{name, HGJ_AGG_WORD, sizeof(int64), hgj_agg_max_##width, LEAST_WORD}
#define BY_FUNCTION(name) \
	{name, HGJ_AGG_BY_FUNCTION, sizeof(HgjAggValue), hgj_agg_by_function, 0}

static const HgjAggFunction functions[] = {
	{F_COUNT_, HGJ_AGG_COUNT, 0, NULL, 0},
	{F_COUNT_ANY, HGJ_AGG_COUNT, 0, NULL, 0},

	{F_SUM_INT2, HGJ_AGG_WORD, sizeof(int64), hgj_agg_sum_int2, 0},
	{F_SUM_INT4, HGJ_AGG_WORD, sizeof(int64), hgj_agg_sum_int4, 0},
	{F_SUM_INT8, HGJ_AGG_SUM_INT8, sizeof(int128), hgj_agg_sum_int8, 0},
	{F_SUM_FLOAT4, HGJ_AGG_FLOAT4, sizeof(float4), hgj_agg_sum_float4, FLOAT4_MINUS_ZERO},
	{F_SUM_FLOAT8, HGJ_AGG_FLOAT8, sizeof(float8), hgj_agg_sum_float8, FLOAT8_MINUS_ZERO},
	{F_SUM_NUMERIC, HGJ_AGG_SUM_NUMERIC, sizeof(HgjAggNumeric), hgj_agg_sum_numeric, 0},
	BY_FUNCTION(F_SUM_MONEY),
	BY_FUNCTION(F_SUM_INTERVAL),

	{F_AVG_INT2, HGJ_AGG_AVG_INT, sizeof(int64), hgj_agg_sum_int2, 0},
	{F_AVG_INT4, HGJ_AGG_AVG_INT, sizeof(int64), hgj_agg_sum_int4, 0},
	{F_AVG_INT8, HGJ_AGG_AVG_INT8, sizeof(int128), hgj_agg_sum_int8, 0},
	{F_AVG_FLOAT4, HGJ_AGG_AVG_FLOAT, sizeof(HgjAggFloats), hgj_agg_avg_float4, 0},
	{F_AVG_FLOAT8, HGJ_AGG_AVG_FLOAT, sizeof(HgjAggFloats), hgj_agg_avg_float8, 0},
	{F_AVG_NUMERIC, HGJ_AGG_AVG_NUMERIC, sizeof(HgjAggNumeric), hgj_agg_sum_numeric, 0},

	MIN_WORD(F_BOOL_AND, bool),
	MIN_WORD(F_EVERY, bool),
	MAX_WORD(F_BOOL_OR, bool),

	MIN_WORD(F_MIN_INT2, int2),
	MAX_WORD(F_MAX_INT2, int2),
	MIN_WORD(F_MIN_INT4, int4),
	MAX_WORD(F_MAX_INT4, int4),
	MIN_WORD(F_MIN_INT8, int8),
	MAX_WORD(F_MAX_INT8, int8),
	MIN_WORD(F_MIN_OID, oid),
	MAX_WORD(F_MAX_OID, oid),
	MIN_WORD(F_MIN_DATE, int4),
	MAX_WORD(F_MAX_DATE, int4),
	MIN_WORD(F_MIN_TIME, int8),
	MAX_WORD(F_MAX_TIME, int8),
	MIN_WORD(F_MIN_TIMESTAMP, int8),
	MAX_WORD(F_MAX_TIMESTAMP, int8),
	MIN_WORD(F_MIN_TIMESTAMPTZ, int8),
	MAX_WORD(F_MAX_TIMESTAMPTZ, int8),
	MIN_WORD(F_MIN_MONEY, int8),
	MAX_WORD(F_MAX_MONEY, int8),

	{F_MIN_FLOAT4, HGJ_AGG_FLOAT4, sizeof(float4), hgj_agg_min_float4, FLOAT4_NAN},
	{F_MAX_FLOAT4, HGJ_AGG_FLOAT4, sizeof(float4), hgj_agg_max_float4, FLOAT4_MINUS_INFINITY},
	{F_MIN_FLOAT8, HGJ_AGG_FLOAT8, sizeof(float8), hgj_agg_min_float8, FLOAT8_NAN},
	{F_MAX_FLOAT8, HGJ_AGG_FLOAT8, sizeof(float8), hgj_agg_max_float8, FLOAT8_MINUS_INFINITY},

	BY_FUNCTION(F_MIN_NUMERIC),
	BY_FUNCTION(F_MAX_NUMERIC),
	BY_FUNCTION(F_MIN_TEXT),
	BY_FUNCTION(F_MAX_TEXT),
	BY_FUNCTION(F_MIN_BPCHAR),
	BY_FUNCTION(F_MAX_BPCHAR),
	BY_FUNCTION(F_MIN_TIMETZ),
	BY_FUNCTION(F_MAX_TIMETZ),
	BY_FUNCTION(F_MIN_INTERVAL),
	BY_FUNCTION(F_MAX_INTERVAL),
	BY_FUNCTION(F_MIN_INET),
	BY_FUNCTION(F_MAX_INET),
	BY_FUNCTION(F_MIN_TID),
	BY_FUNCTION(F_MAX_TID),
	BY_FUNCTION(F_MIN_PG_LSN),
	BY_FUNCTION(F_MAX_PG_LSN),
	BY_FUNCTION(F_MIN_XID8),
	BY_FUNCTION(F_MAX_XID8),
	BY_FUNCTION(F_MIN_ANYENUM),
	BY_FUNCTION(F_MAX_ANYENUM),
	BY_FUNCTION(F_MIN_ANYARRAY),
	BY_FUNCTION(F_MAX_ANYARRAY)
};

/* What we know of the function, or NULL. */
const HgjAggFunction *
hgj_agg_function(Oid function)
{
	for (int i = 0; i < lengthof(functions); i++)
		if (functions[i].function == function)
			return &functions[i];
	return NULL;
}

/* See agg_format.h. */
bool
hgj_agg_function_supported(Oid aggfnoid)
{
	return hgj_agg_function(aggfnoid) != NULL;
}
