/*-------------------------------------------------------------------------
 *
 * agg_functions.c
 *	  The aggregate functions that a HashGraphAgg computes.
 *
 * A table by OID: each is one of PostgreSQL's own, whose value and transition
 * state agg_final.c knows how to make.  It says what a value does to a state, and
 * from that comes the loop; agg_device_plan.c makes state words of a pipeline of it.
 *
 * No memory, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_accumulate.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* The bits of the first states of agg_floats.c. */
#define FLOAT4_MINUS_ZERO		UINT64CONST(0x80000000)
#define FLOAT4_NAN				UINT64CONST(0x7FC00000)
#define FLOAT4_MINUS_INFINITY	UINT64CONST(0xFF800000)
#define FLOAT8_MINUS_ZERO		UINT64CONST(0x8000000000000000)
#define FLOAT8_NAN				UINT64CONST(0x7FF8000000000000)
#define FLOAT8_MINUS_INFINITY	UINT64CONST(0xFFF0000000000000)

#define LEAST_WORD	((uint64) PG_INT64_MIN)
#define MOST_WORD	((uint64) PG_INT64_MAX)

#define MIN_WORD(name, argument) \
	{name, HGJ_AGG_WORD, sizeof(int64), HGJ_AGG_LEAST, HGJ_KIND_##argument, MOST_WORD}
#define MAX_WORD(name, argument) \
	{name, HGJ_AGG_WORD, sizeof(int64), HGJ_AGG_MOST, HGJ_KIND_##argument, LEAST_WORD}
#define BY_FUNCTION(name) \
	{name, HGJ_AGG_BY_FUNCTION, sizeof(HgjAggValue), HGJ_AGG_CALL, HGJ_KIND_OTHER, 0}

static const HgjAggFunction functions[] = {
	{F_COUNT_, HGJ_AGG_COUNT, 0, HGJ_AGG_NO_CHANGE, HGJ_KIND_OTHER, 0},
	{F_COUNT_ANY, HGJ_AGG_COUNT, 0, HGJ_AGG_NO_CHANGE, HGJ_KIND_OTHER, 0},

	{HGJ_AGG_SUM_OF_COUNTS, HGJ_AGG_SUM_COUNTS, sizeof(int128), HGJ_AGG_ADD, HGJ_KIND_I8, 0},
	{HGJ_AGG_SUM_OF_SUMS, HGJ_AGG_SUM_SUMS, sizeof(int128), HGJ_AGG_ADD, HGJ_KIND_I8, 0},
	{HGJ_AGG_AVG_OF_SUMS, HGJ_AGG_AVG_INT8, sizeof(int128), HGJ_AGG_ADD, HGJ_KIND_I8, 0},
	{HGJ_AGG_AVG_OF_NUMERICS, HGJ_AGG_AVG_NUMERIC, sizeof(HgjAggNumeric), HGJ_AGG_ADD, HGJ_KIND_OTHER, 0},

	{F_SUM_INT2, HGJ_AGG_WORD, sizeof(int64), HGJ_AGG_ADD, HGJ_KIND_I2, 0},
	{F_SUM_INT4, HGJ_AGG_WORD, sizeof(int64), HGJ_AGG_ADD, HGJ_KIND_I4, 0},
	{F_SUM_INT8, HGJ_AGG_SUM_INT8, sizeof(int128), HGJ_AGG_ADD, HGJ_KIND_I8, 0},
	{F_SUM_FLOAT4, HGJ_AGG_FLOAT4, sizeof(float4), HGJ_AGG_ADD, HGJ_KIND_F4, FLOAT4_MINUS_ZERO},
	{F_SUM_FLOAT8, HGJ_AGG_FLOAT8, sizeof(float8), HGJ_AGG_ADD, HGJ_KIND_F8, FLOAT8_MINUS_ZERO},
	{F_SUM_NUMERIC, HGJ_AGG_SUM_NUMERIC, sizeof(HgjAggNumeric), HGJ_AGG_ADD, HGJ_KIND_OTHER, 0},
	BY_FUNCTION(F_SUM_MONEY),
	BY_FUNCTION(F_SUM_INTERVAL),

	{F_AVG_INT2, HGJ_AGG_AVG_INT, sizeof(int64), HGJ_AGG_ADD, HGJ_KIND_I2, 0},
	{F_AVG_INT4, HGJ_AGG_AVG_INT, sizeof(int64), HGJ_AGG_ADD, HGJ_KIND_I4, 0},
	{F_AVG_INT8, HGJ_AGG_AVG_INT8, sizeof(int128), HGJ_AGG_ADD, HGJ_KIND_I8, 0},
	{F_AVG_FLOAT4, HGJ_AGG_AVG_FLOAT, sizeof(HgjAggFloats), HGJ_AGG_ADD_SQUARES, HGJ_KIND_F4, 0},
	{F_AVG_FLOAT8, HGJ_AGG_AVG_FLOAT, sizeof(HgjAggFloats), HGJ_AGG_ADD_SQUARES, HGJ_KIND_F8, 0},
	{F_AVG_NUMERIC, HGJ_AGG_AVG_NUMERIC, sizeof(HgjAggNumeric), HGJ_AGG_ADD, HGJ_KIND_OTHER, 0},

	MIN_WORD(F_BOOL_AND, U1),
	MIN_WORD(F_EVERY, U1),
	MAX_WORD(F_BOOL_OR, U1),

	MIN_WORD(F_MIN_INT2, I2),
	MAX_WORD(F_MAX_INT2, I2),
	MIN_WORD(F_MIN_INT4, I4),
	MAX_WORD(F_MAX_INT4, I4),
	MIN_WORD(F_MIN_INT8, I8),
	MAX_WORD(F_MAX_INT8, I8),
	MIN_WORD(F_MIN_OID, U4),
	MAX_WORD(F_MAX_OID, U4),
	MIN_WORD(F_MIN_DATE, I4),
	MAX_WORD(F_MAX_DATE, I4),
	MIN_WORD(F_MIN_TIME, I8),
	MAX_WORD(F_MAX_TIME, I8),
	MIN_WORD(F_MIN_TIMESTAMP, I8),
	MAX_WORD(F_MAX_TIMESTAMP, I8),
	MIN_WORD(F_MIN_TIMESTAMPTZ, I8),
	MAX_WORD(F_MAX_TIMESTAMPTZ, I8),
	MIN_WORD(F_MIN_MONEY, I8),
	MAX_WORD(F_MAX_MONEY, I8),

	{F_MIN_FLOAT4, HGJ_AGG_FLOAT4, sizeof(float4), HGJ_AGG_LEAST, HGJ_KIND_F4, FLOAT4_NAN},
	{F_MAX_FLOAT4, HGJ_AGG_FLOAT4, sizeof(float4), HGJ_AGG_MOST, HGJ_KIND_F4, FLOAT4_MINUS_INFINITY},
	{F_MIN_FLOAT8, HGJ_AGG_FLOAT8, sizeof(float8), HGJ_AGG_LEAST, HGJ_KIND_F8, FLOAT8_NAN},
	{F_MAX_FLOAT8, HGJ_AGG_FLOAT8, sizeof(float8), HGJ_AGG_MOST, HGJ_KIND_F8, FLOAT8_MINUS_INFINITY},

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
	BY_FUNCTION(F_MAX_ANYARRAY),

	BY_FUNCTION(F_BIT_AND_INT2),
	BY_FUNCTION(F_BIT_OR_INT2),
	BY_FUNCTION(F_BIT_XOR_INT2),
	BY_FUNCTION(F_BIT_AND_INT4),
	BY_FUNCTION(F_BIT_OR_INT4),
	BY_FUNCTION(F_BIT_XOR_INT4),
	BY_FUNCTION(F_BIT_AND_INT8),
	BY_FUNCTION(F_BIT_OR_INT8),
	BY_FUNCTION(F_BIT_XOR_INT8),
	BY_FUNCTION(F_BIT_AND_BIT),
	BY_FUNCTION(F_BIT_OR_BIT),
	BY_FUNCTION(F_BIT_XOR_BIT)
};

static const HgjAggUpdate loops[HGJ_AGG_CHANGES][HGJ_KINDS + 1] = {
	[HGJ_AGG_ADD] = {
		[HGJ_KIND_I2] = hgj_agg_sum_int2, [HGJ_KIND_I4] = hgj_agg_sum_int4,
		[HGJ_KIND_I8] = hgj_agg_sum_int8, [HGJ_KIND_F4] = hgj_agg_sum_float4,
		[HGJ_KIND_F8] = hgj_agg_sum_float8, [HGJ_KIND_OTHER] = hgj_agg_sum_numeric
	},
	[HGJ_AGG_ADD_SQUARES] = {
		[HGJ_KIND_F4] = hgj_agg_avg_float4, [HGJ_KIND_F8] = hgj_agg_avg_float8
	},
	[HGJ_AGG_LEAST] = {
		[HGJ_KIND_U1] = hgj_agg_min_bool, [HGJ_KIND_I2] = hgj_agg_min_int2,
		[HGJ_KIND_I4] = hgj_agg_min_int4, [HGJ_KIND_I8] = hgj_agg_min_int8,
		[HGJ_KIND_U4] = hgj_agg_min_oid, [HGJ_KIND_F4] = hgj_agg_min_float4,
		[HGJ_KIND_F8] = hgj_agg_min_float8
	},
	[HGJ_AGG_MOST] = {
		[HGJ_KIND_U1] = hgj_agg_max_bool, [HGJ_KIND_I2] = hgj_agg_max_int2,
		[HGJ_KIND_I4] = hgj_agg_max_int4, [HGJ_KIND_I8] = hgj_agg_max_int8,
		[HGJ_KIND_U4] = hgj_agg_max_oid, [HGJ_KIND_F4] = hgj_agg_max_float4,
		[HGJ_KIND_F8] = hgj_agg_max_float8
	},
	[HGJ_AGG_CALL] = {[HGJ_KIND_OTHER] = hgj_agg_by_function}
};

/* The loop of an aggregate function; NULL: there is none. */
HgjAggUpdate
hgj_agg_loop(const HgjAggFunction *function)
{
	return loops[function->change][function->argument];
}

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
hgj_agg_takes_any_equal(Oid aggfnoid, const Expr *argument)
{
	switch (aggfnoid)
	{
		case F_COUNT_ANY:
		case F_SUM_INT2:
		case F_SUM_INT4:
		case F_SUM_INT8:
		case F_AVG_INT2:
		case F_AVG_INT4:
		case F_AVG_INT8:
			return true;
		case F_SUM_NUMERIC:
		case F_AVG_NUMERIC:
			return exprTypmod((const Node *) argument) >= 0;
		default:
			return false;
	}
}

/* Is there nothing to begin with, or nothing in it: an empty string, array or object? */
static bool
begins_empty(HeapTuple aggregate)
{
	bool		isnull;
	Datum		value = SysCacheGetAttr(AGGFNOID, aggregate, Anum_pg_aggregate_agginitval,
										&isnull);

	return isnull || VARSIZE_ANY_EXHDR(DatumGetPointer(value)) <= 2;
}

/*
 * See agg_format.h.  PostgreSQL knows of internal states that do not grow how much they
 * take.
 */
bool
hgj_agg_state_grows(Oid aggfnoid)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggfnoid));
	Form_pg_aggregate form;
	bool		grows;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for aggregate %u", aggfnoid);
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	if (form->aggtransspace > 0 || OidIsValid(form->aggsortop))
		grows = false;
	else if (form->aggtranstype == INTERNALOID)
		grows = true;
	else if (IsPolymorphicType(form->aggtranstype))
		grows = (form->aggtranstype == ANYARRAYOID ||
				 form->aggtranstype == ANYCOMPATIBLEARRAYOID) && begins_empty(tuple);
	else
		grows = get_typlen(form->aggtranstype) == -1 &&
			form->aggtranstype != NUMERICOID && !type_is_range(form->aggtranstype) &&
			begins_empty(tuple);
	ReleaseSysCache(tuple);
	return grows;
}

/* See agg_format.h. */
bool
hgj_agg_function_supported(Oid aggfnoid)
{
	return hgj_agg_function(aggfnoid) != NULL;
}

/* See agg_format.h. */
bool
hgj_agg_may_raise(Oid aggfnoid, const Expr *argument)
{
	switch (aggfnoid)
	{
		case F_SUM_FLOAT4:
		case F_SUM_FLOAT8:
		case F_AVG_FLOAT4:
		case F_AVG_FLOAT8:
		case F_SUM_MONEY:
		case F_SUM_INTERVAL:
		case F_MIN_ANYARRAY:
		case F_MAX_ANYARRAY:
		case F_BIT_AND_BIT:
		case F_BIT_OR_BIT:
		case F_BIT_XOR_BIT:
			return true;
		case F_SUM_NUMERIC:
		case F_AVG_NUMERIC:
		case HGJ_AGG_AVG_OF_NUMERICS:
			return exprTypmod((const Node *) argument) < 0;
		default:
			return !hgj_agg_function_supported(aggfnoid);
	}
}
