/*-------------------------------------------------------------------------
 *
 * plan_rules.h
 *	  What every engine decides alike about a graph, before it looks at its own
 *	  caches and limits; for the CPU and for CUDA.
 *
 * Owns nothing, locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_PLAN_RULES_H
#define HGJ_PLAN_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"

#if defined(__cplusplus)
#define HGJ_PLAN_FN static inline
#else
#define HGJ_PLAN_FN static inline __attribute__((unused))
#endif

/* The smallest b with 2^b >= n, at most 63. */
HGJ_PLAN_FN uint32_t
hgj_log2_ceil(uint64_t n)
{
	uint32_t	bits = 0;

	while (bits < 63 && (UINT64_C(1) << bits) < n)
		bits++;
	return bits;
}

/* Whether a range is dense enough for a direct table of that many rows. */
HGJ_PLAN_FN bool
hgj_range_is_dense(HgjBuild build, uint64_t rows, uint64_t range)
{
	uint64_t	limit = build == HGJ_BUILD_DIRECT ? 16 * rows + 65536 :
		2 * rows + 1024;

	return range <= limit && range < UINT32_MAX - 1;
}

/*
 * Whether the table is to be direct.  range: the largest key less the smallest,
 * of a single word; slack: slots are kept free for inserts.  Adds to *notes why
 * a table that should have been direct is not.
 */
HGJ_PLAN_FN bool
hgj_plan_direct(const HgjTableSpec *spec, uint64_t rows, uint64_t range,
				bool slack, uint32_t *notes)
{
	bool		dense = spec->nwords == 1 && rows > 0 &&
		hgj_range_is_dense(spec->build, rows, range);

	if (spec->build == HGJ_BUILD_AUTO)
		return dense && !slack; /* inserts would leave the range */
	if (spec->build != HGJ_BUILD_DIRECT)
		return false;
	if (spec->nwords != 1)
		*notes |= HGJ_NOTE_DIRECT_MULTI_KEY;
	else if (rows == 0)
		return !slack;			/* nothing is dense */
	else if (!dense)
		*notes |= HGJ_NOTE_DIRECT_NOT_DENSE;
	return dense;
}

#endif							/* HGJ_PLAN_RULES_H */
