/*-------------------------------------------------------------------------
 *
 * agg_final.c
 *	  From states to values: those that an aggregate returns, or those that
 *	  PostgreSQL's Finalize Aggregate wants (its own transition values, and
 *	  serialized where their type is internal).
 *
 * Results are palloc'd in the caller's context, but for those of BY_FUNCTION
 * aggregates, which are the state's, and of TRANSITION ones, which may be.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_transition.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/numeric.h"

/* Could one of the aggregates raise an error? */
bool
hgj_agg_results_may_raise(const HgjAggState *state)
{
	for (int a = 0; a < state->naggs; a++)
	{
		const HgjAggregate *agg = &state->aggs[a];

		if (hgj_agg_may_raise(agg->function->function,
							  agg->input->argument ? agg->input->argument->expr : NULL))
			return true;
	}
	return false;
}

static Datum
divide(Datum sum, int64 n)
{
	return DirectFunctionCall2(numeric_div, sum,
							   NumericGetDatum(int64_to_numeric(n)));
}

/* The transition value of avg(int2) and avg(int4). */
static Datum
int_array(int64 n, int64 sum)
{
	Datum		elements[] = {Int64GetDatum(n), Int64GetDatum(sum)};

	return PointerGetDatum(construct_array(elements, lengthof(elements),
										   INT8OID, sizeof(int64),
										   FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

/* The transition value of avg(float4) and avg(float8). */
static Datum
float_array(const HgjAggFloats *state)
{
	Datum		elements[] = {
		Float8GetDatum(state->n),
		Float8GetDatum(state->sum),
		Float8GetDatum(state->squares)
	};

	return PointerGetDatum(construct_array(elements, lengthof(elements),
										   FLOAT8OID, sizeof(float8),
										   FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

/* An aggregate's value, or transition value, in the group of this row. */
Datum
hgj_agg_result(const HgjAggregate *agg, const char *row, bool partial,
			   bool *isnull)
{
	HgjAggKind	kind = agg->function->kind;
	const void *state = row + agg->offset;
	int64		n = hgj_agg_input_count(agg->input, row);

	if (kind == HGJ_AGG_TRANSITION)
		return hgj_transition_result(agg, row, partial, isnull);
	*isnull = false;
	if (kind == HGJ_AGG_COUNT)
		return Int64GetDatum(n);
	if (kind == HGJ_AGG_SUM_COUNTS)
		return Int64GetDatum((int64) *(const int128 *) state);
	if (partial && kind == HGJ_AGG_AVG_INT)
		return int_array(n, *(const int64 *) state);
	if (partial && kind == HGJ_AGG_AVG_FLOAT)
		return float_array(state);

	*isnull = (n == 0);
	if (n == 0)
		return (Datum) 0;
	if (agg->counts)
		n = (int64) *(const int128 *) (row + agg->counts->offset);
	switch (kind)
	{
		case HGJ_AGG_COUNT:
		case HGJ_AGG_SUM_COUNTS:
		case HGJ_AGG_TRANSITION:
			break;
		case HGJ_AGG_SUM_SUMS:
			return Int64GetDatum((int64) *(const int128 *) state);
		case HGJ_AGG_WORD:
			return *(const Datum *) state;
		case HGJ_AGG_AVG_INT:
			return divide(NumericGetDatum(int64_to_numeric(*(const int64 *) state)),
						  n);
		case HGJ_AGG_SUM_INT8:
		case HGJ_AGG_AVG_INT8:
			if (partial)
				return hgj_int128_serialize(*(const int128 *) state, n);
			if (kind == HGJ_AGG_SUM_INT8)
				return hgj_int128_to_numeric(*(const int128 *) state);
			return divide(hgj_int128_to_numeric(*(const int128 *) state), n);
		case HGJ_AGG_FLOAT4:
			return Float4GetDatum(*(const float4 *) state);
		case HGJ_AGG_FLOAT8:
			return Float8GetDatum(*(const float8 *) state);
		case HGJ_AGG_AVG_FLOAT:
			{
				const HgjAggFloats *floats = state;

				return Float8GetDatum(floats->sum / floats->n);
			}
		case HGJ_AGG_SUM_NUMERIC:
		case HGJ_AGG_AVG_NUMERIC:
			if (partial)
				return hgj_numeric_serialize(state, n);
			if (kind == HGJ_AGG_SUM_NUMERIC)
				return hgj_numeric_sum(state);
			return hgj_numeric_avg(state, n);
		case HGJ_AGG_BY_FUNCTION:
#ifdef HGJ_SUM_INTERVAL_IS_SERIALIZED
			if (partial && agg->function->function == F_SUM_INTERVAL)
				return hgj_interval_serialize(state, n);
#endif
			return ((const HgjAggValue *) state)->value;
	}
	return (Datum) 0;
}
