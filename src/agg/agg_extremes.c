/*-------------------------------------------------------------------------
 *
 * agg_extremes.c
 *	  The least and the largest of numerics that have come as decimals.
 *
 * 1. The state is that of agg_by_function.c, a numeric, and besides the integer that
 *	  it is.  Most values are not beyond it, which a comparison of integers says; the
 *	  others become the state.
 * 2. Of values that are equal, PostgreSQL's functions take the last one, which may
 *	  have another display scale.
 * 3. Where the value or the state is no decimal, the transition function is called.
 *
 * Memory: as in agg_by_function.c.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_accumulate.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"

/* Steps 2 and 3: the value may become the state. */
static void
take_value(HgjAggregate *agg, HgjAggValue *state, int64 value, int scale, int display)
{
	CHECK_FOR_INTERRUPTS();
	if (display != HGJ_NO_DECIMAL && (state->is_decimal || !state->present))
	{
		hgj_agg_keep_value(agg, state, hgj_decimal_numeric(value, scale, display));
		state->is_decimal = true;
		state->decimal = value;
		state->display = display;
		return;
	}
	hgj_agg_call_for_value(agg, state, display == HGJ_NO_DECIMAL ? (Datum) value :
						   hgj_decimal_numeric(value, scale, display));
	(void) hgj_decimals_read(&state->value, NULL, 1, scale, &state->decimal,
							 &state->display);
	state->is_decimal = state->display != HGJ_NO_DECIMAL;
}

void
hgj_agg_extreme_decimals(HgjAggregate *agg, const HgjAggRows *rows)
{
	MemoryContext old = MemoryContextSwitchTo(agg->table->scratch);
	const HgjDecimals *decimals = rows->decimals;
	const int64 *values = rows->values;
	char	   *base = agg->table->rows + agg->offset;
	Size		stride = agg->table->stride;
	bool		least = agg->function->function == F_MIN_NUMERIC;

	for (uint32 i = 0; i < rows->n; i++)
	{
		uint32		at = rows->at ? rows->at[i] : i;
		uint32		group = rows->groups ? rows->groups[i] : 0;
		HgjAggValue *state = (HgjAggValue *) (base + group * stride);
		int64		value = values[at];
		int			display = decimals->displays ? decimals->displays[at] :
			decimals->display;

		if (state->is_decimal && display != HGJ_NO_DECIMAL)
		{
			if (least ? value > state->decimal : value < state->decimal)
				continue;
			if (value == state->decimal && display == state->display)
				continue;
		}
		take_value(agg, state, value, decimals->scale, display);
		MemoryContextReset(agg->table->scratch);
	}
	MemoryContextSwitchTo(old);
}

/* One value that is the least or the largest of all, as a device has found it. */
void
hgj_agg_take_extreme(HgjAggregate *agg, HgjAggValue *state, int64 value,
					 const HgjDecimals *decimals)
{
	MemoryContext old = MemoryContextSwitchTo(agg->table->scratch);

	take_value(agg, state, value, decimals->scale, decimals->display);
	MemoryContextSwitchTo(old);
	MemoryContextReset(agg->table->scratch);
}
