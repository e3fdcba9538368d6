/*-------------------------------------------------------------------------
 *
 * agg_floats.c
 *	  Sums, averages, minima and maxima of floats, value by value as
 *	  PostgreSQL's transition functions do them: the same overflow errors, the
 *	  same order of NaN, and of two equal values the later one.
 *
 * 1. A sum begins with -0, to which any first value can be added unchanged.
 * 2. An average keeps the sum of squares as well, because that is where its
 *	  overflow may show first, and because a partial result has it.
 * 3. A minimum begins with NaN, a maximum with minus infinity: the first value
 *	  always takes their place.
 *
 * No memory, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "agg/agg_accumulate.h"
#include "utils/float.h"

void
hgj_agg_sum_float4(HgjAggregate *agg, const HgjAggRows *rows)
{
	HGJ_ACCUMULATE(agg, rows, float4, float4, *state = float4_pl(*state, value));
}

void
hgj_agg_sum_float8(HgjAggregate *agg, const HgjAggRows *rows)
{
	HGJ_ACCUMULATE(agg, rows, float8, float8, *state = float8_pl(*state, value));
}

/* One step of Youngs and Cramer's sum of squared deviations. */
static inline void
add_float(HgjAggFloats *state, float8 value)
{
	float8		n = state->n + 1.0;
	float8		sum = state->sum + value;
	float8		squares = state->squares;

	if (state->n > 0.0)
	{
		float8		deviation = value * n - sum;

		squares += deviation * deviation / (n * state->n);
		if (unlikely(isinf(sum) || isinf(squares)))
		{
			if (!isinf(state->sum) && !isinf(value))
				float_overflow_error();
			squares = get_float8_nan();
		}
	}
	else if (isnan(value) || isinf(value))
		squares = get_float8_nan();
	state->n = n;
	state->sum = sum;
	state->squares = squares;
}

void
hgj_agg_avg_float4(HgjAggregate *agg, const HgjAggRows *rows)
{
	HGJ_ACCUMULATE(agg, rows, HgjAggFloats, float4,
				   add_float(state, (float8) value));
}

void
hgj_agg_avg_float8(HgjAggregate *agg, const HgjAggRows *rows)
{
	HGJ_ACCUMULATE(agg, rows, HgjAggFloats, float8, add_float(state, value));
}

void
hgj_agg_min_float4(HgjAggregate *agg, const HgjAggRows *rows)
{
	HGJ_ACCUMULATE(agg, rows, float4, float4,
				   if (!float4_lt(*state, value)) *state = value);
}

void
hgj_agg_max_float4(HgjAggregate *agg, const HgjAggRows *rows)
{
	HGJ_ACCUMULATE(agg, rows, float4, float4,
				   if (!float4_gt(*state, value)) *state = value);
}

void
hgj_agg_min_float8(HgjAggregate *agg, const HgjAggRows *rows)
{
	HGJ_ACCUMULATE(agg, rows, float8, float8,
				   if (!float8_lt(*state, value)) *state = value);
}

void
hgj_agg_max_float8(HgjAggregate *agg, const HgjAggRows *rows)
{
	HGJ_ACCUMULATE(agg, rows, float8, float8,
				   if (!float8_gt(*state, value)) *state = value);
}
