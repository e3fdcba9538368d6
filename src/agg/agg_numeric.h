/*-------------------------------------------------------------------------
 *
 * agg_numeric.h
 *	  What agg_numeric.c and agg_combine.c share: the part of a sum of numerics
 *	  that no 128-bit integer holds.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_AGG_NUMERIC_H
#define HGJ_AGG_NUMERIC_H

#include "compat.h"

#include "agg/agg_state.h"

typedef struct HgjNumericRest
{
	int64		nan;
	int64		plus_infinity;
	int64		minus_infinity;
	int			weight;			/* of digits[0] */
	int			ndigits;
	int64	   *digits;			/* base 10^4, carries not propagated, any sign */
} HgjNumericRest;

extern HgjNumericRest *hgj_numeric_rest(HgjAggregate *agg, HgjAggNumeric *state);
extern void hgj_numeric_cover(HgjNumericRest *rest, MemoryContext context,
							  int high, int low);
extern void hgj_numeric_move_sum(HgjAggregate *agg, HgjAggNumeric *state);

#endif							/* HGJ_AGG_NUMERIC_H */
