/*-------------------------------------------------------------------------
 *
 * agg_combine.c
 *	  Add what one process knows of a group to what another knows of it.
 *
 * The state of every aggregate that we compute can be combined with another one,
 * as PostgreSQL's combine functions do it (nodeAgg.c): counts and sums are added,
 * of minima and maxima the lesser or greater is kept, and a state without values
 * changes nothing.  Of floats whose state is the value, and of an aggregate that is
 * made by a transition function, the other state is one more value.
 *
 * The other state may have been copied from another process: what it refers to is
 * found by hgj_agg_record_at() (agg_records.c).
 *
 * Memory: as when values are added, in the group table's contexts.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "agg/agg_accumulate.h"
#include "agg/agg_exchange.h"
#include "agg/agg_numeric.h"
#include "utils/float.h"
#include "utils/memutils.h"

static void
combine_words(HgjAggChange change, int64 *into, int64 from)
{
	switch (change)
	{
		case HGJ_AGG_LEAST:
			*into = Min(*into, from);
			break;
		case HGJ_AGG_MOST:
			*into = Max(*into, from);
			break;
		default:
			*into += from;
			break;
	}
}

/* Sums of squared deviations, as Youngs and Cramer put two of them together. */
static void
combine_squares(HgjAggFloats *into, const HgjAggFloats *from)
{
	float8		n = into->n + from->n;
	float8		apart;
	float8		squares;

	if (from->n == 0)
		return;
	if (into->n == 0)
	{
		*into = *from;
		return;
	}
	apart = into->sum / into->n - from->sum / from->n;
	squares = into->squares + from->squares + into->n * from->n * apart * apart / n;
	if (unlikely(isinf(squares)) && !isinf(into->squares) && !isinf(from->squares))
		float_overflow_error();
	into->sum = float8_pl(into->sum, from->sum);
	into->squares = squares;
	into->n = n;
}

static void
combine_numerics(HgjAggregate *agg, HgjAggNumeric *into,
				 const HgjAggNumeric *from, const char *record)
{
	const HgjNumericRest *more = from->rest == NULL ? NULL :
		(const HgjNumericRest *) hgj_agg_record_at(record, (Datum) from->rest);
	HgjNumericRest *rest;
	const int64 *digits;
	int128		sum;

	into->scale = Max(into->scale, from->scale);
	if (unlikely(__builtin_add_overflow(into->sum, from->sum, &sum)))
	{
		hgj_numeric_move_sum(agg, into);
		sum = from->sum;
	}
	into->sum = sum;
	if (more == NULL)
		return;

	rest = hgj_numeric_rest(agg, into);
	rest->nan += more->nan;
	rest->plus_infinity += more->plus_infinity;
	rest->minus_infinity += more->minus_infinity;
	if (more->ndigits == 0)
		return;
	hgj_numeric_cover(rest, agg->table->states, more->weight,
					  more->weight - more->ndigits + 1);
	digits = (const int64 *) (more + 1);
	for (int i = 0; i < more->ndigits; i++)
		rest->digits[rest->weight - more->weight + i] += digits[i];
}

static void
combine_values(HgjAggregate *agg, HgjAggValue *into, const HgjAggValue *from,
			   const char *record)
{
	MemoryContext scratch = agg->table->scratch;
	MemoryContext old;

	if (!from->present)
		return;
	old = MemoryContextSwitchTo(scratch);
	hgj_agg_call_for_value(agg, into, agg->attbyval ? from->value :
						   PointerGetDatum(hgj_agg_record_at(record, from->value)));
	MemoryContextSwitchTo(old);
	MemoryContextReset(scratch);
}

static void
combine_states(HgjAggregate *agg, uint32 group, const char *record)
{
	void	   *into = hgj_group_row(agg->table, group) + agg->offset;
	const void *from = hgj_agg_record_row(record) + agg->offset;

	switch (agg->function->kind)
	{
		case HGJ_AGG_COUNT:
		case HGJ_AGG_TRANSITION:	/* not exchanged (planner/agg_partial.c) */
			break;
		case HGJ_AGG_WORD:
		case HGJ_AGG_AVG_INT:
			combine_words(agg->function->change, into, *(const int64 *) from);
			break;
		case HGJ_AGG_SUM_COUNTS:
		case HGJ_AGG_SUM_SUMS:
		case HGJ_AGG_SUM_INT8:
		case HGJ_AGG_AVG_INT8:
			*(int128 *) into += *(const int128 *) from;
			break;
		case HGJ_AGG_FLOAT4:
		case HGJ_AGG_FLOAT8:
			agg->update(agg, &(HgjAggRows) {.n = 1, .groups = &group, .values = from});
			break;
		case HGJ_AGG_AVG_FLOAT:
			combine_squares(into, from);
			break;
		case HGJ_AGG_SUM_NUMERIC:
		case HGJ_AGG_AVG_NUMERIC:
			combine_numerics(agg, into, from, record);
			break;
		case HGJ_AGG_BY_FUNCTION:
			combine_values(agg, into, from, record);
			break;
	}
}

/* Add a record's counts and states to those of a group in the exchange's table. */
void
hgj_agg_combine(HgjAggState *state, uint32 group, const char *record)
{
	char	   *row = hgj_group_row(&state->exchange.merged, group);
	const char *other = hgj_agg_record_row(record);

	*(int64 *) row += *(const int64 *) other;
	for (int i = 0; i < state->ninputs; i++)
	{
		const HgjAggInput *input = &state->inputs[i];

		if (input->filter || input->argument)
			*(int64 *) (row + input->counter) +=
				*(const int64 *) (other + input->counter);
	}
	for (int a = 0; a < state->naggs; a++)
		combine_states(&state->aggs[a], group, record);
}
