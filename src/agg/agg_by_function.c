/*-------------------------------------------------------------------------
 *
 * agg_by_function.c
 *	  Aggregates whose value is their state, made by a strict transition
 *	  function of the type: min and max of text, intervals, arrays ..., sum of
 *	  intervals and money, bit_and, bit_or and bit_xor.
 *
 * The first value is the state; each further one is given to the function
 * together with the state, and what it returns is kept.
 *
 * By-reference states are palloc'd in the group table's context for states, and
 * are overwritten in place where the new one is not longer.  The function runs
 * in the scratch context, which is reset after every value.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_accumulate.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* Make a value the state's own. */
void
hgj_agg_keep_value(HgjAggregate *agg, HgjAggValue *state, Datum value)
{
	Size		size;

	state->present = true;
	if (agg->attbyval)
	{
		state->value = value;
		return;
	}
	if (agg->attlen == -1)
		value = PointerGetDatum(PG_DETOAST_DATUM_PACKED(value));
	size = datumGetSize(value, false, agg->attlen);
	if (size > state->allocated)
	{
		if (state->allocated > 0)
			pfree(DatumGetPointer(state->value));
		state->allocated = 0;
		state->value = PointerGetDatum(MemoryContextAlloc(agg->table->states,
														  size));
		state->allocated = size;
	}
	memmove(DatumGetPointer(state->value), DatumGetPointer(value), size);
}

/* One more value; what it leaves behind is in the current context. */
void
hgj_agg_call_for_value(HgjAggregate *agg, HgjAggValue *state, Datum value)
{
	if (state->present)
	{
		value = FunctionCall2Coll(&agg->transition, agg->collation,
								  state->value, value);
		if (!agg->attbyval &&
			DatumGetPointer(value) == DatumGetPointer(state->value))
			return;
	}
	hgj_agg_keep_value(agg, state, value);
}

#ifdef HGJ_SUM_INTERVAL_IS_SERIALIZED

/*
 * What interval_avg_serialize() makes of a sum of n values.  Of finite and infinite
 * values together, the sum is infinite, and one such value stands for all.
 */
Datum
hgj_interval_serialize(const HgjAggValue *state, int64 n)
{
	const Interval *sum = DatumGetIntervalP(state->value);
	bool		finite = !INTERVAL_NOT_FINITE(sum);
	StringInfoData buf;

	pq_begintypsend(&buf);
	pq_sendint64(&buf, finite ? n : 0);
	pq_sendint64(&buf, finite ? sum->time : 0);
	pq_sendint32(&buf, finite ? sum->day : 0);
	pq_sendint32(&buf, finite ? sum->month : 0);
	pq_sendint64(&buf, INTERVAL_IS_NOEND(sum) ? 1 : 0);
	pq_sendint64(&buf, INTERVAL_IS_NOBEGIN(sum) ? 1 : 0);
	return PointerGetDatum(pq_endtypsend(&buf));
}

#endif

void
hgj_agg_by_function(HgjAggregate *agg, const HgjAggRows *rows)
{
	MemoryContext scratch = agg->table->scratch;
	char	   *base = agg->table->rows + agg->offset;
	Size		stride = agg->table->stride;
	uint8		width = agg->attbyval ? agg->attlen : sizeof(Datum);
	MemoryContext old;

	if (rows->decimals)
	{
		hgj_agg_extreme_decimals(agg, rows);
		return;
	}
	old = MemoryContextSwitchTo(scratch);
	for (uint32 i = 0; i < rows->n; i++)
	{
		uint32		at = rows->at ? rows->at[i] : i;
		uint32		group = rows->groups ? rows->groups[i] : 0;

		CHECK_FOR_INTERRUPTS();
		hgj_agg_call_for_value(agg, (HgjAggValue *) (base + group * stride),
							   hgj_load((const char *) rows->values + (Size) at * width,
										width));
		MemoryContextReset(scratch);
	}
	MemoryContextSwitchTo(old);
}
