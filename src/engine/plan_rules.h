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

#ifdef __CUDACC__
#define HGJ_PLAN_FN static __host__ __device__ inline
#elif defined(__cplusplus)
#define HGJ_PLAN_FN static inline
#else
#define HGJ_PLAN_FN static inline __attribute__((unused))
#endif

/* What an entry of the graph holds besides its row. */
typedef enum Layout
{
	LAYOUT_ROW = 0,				/* nothing: direct and static */
	LAYOUT_NARROW,				/* one word whose range fits 32 bits */
	LAYOUT_WIDE,				/* one word */
	LAYOUT_MULTI				/* several */
} Layout;

/* The smallest b with 2^b >= n, at most 63. */
HGJ_PLAN_FN uint32_t
hgj_log2_ceil(uint64_t n)
{
	uint32_t	bits = 0;

	while (bits < 63 && (UINT64_C(1) << bits) < n)
		bits++;
	return bits;
}

/* The range of n keys, which goes on from another one. */
HGJ_PLAN_FN void
hgj_key_range(const uint64_t *keys, uint32_t n, int64_t *min_key,
			  int64_t *max_key)
{
	int64_t		lo = *min_key;
	int64_t		hi = *max_key;
	uint32_t	i;

	for (i = 0; i < n; i++)
	{
		int64_t		key = (int64_t) keys[i];

		lo = key < lo ? key : lo;
		hi = key > hi ? key : hi;
	}
	*min_key = lo;
	*max_key = hi;
}

/* Whether a range is dense enough for a direct table of that many rows. */
HGJ_PLAN_FN bool
hgj_range_is_dense(HgjBuild build, uint64_t rows, uint64_t range)
{
	uint64_t	limit = build == HGJ_BUILD_DIRECT ? 16 * rows + 65536 :
		2 * rows + 1024;

	return range <= limit && range < UINT32_MAX - 1;
}

/* Free slots per vertex; 0: the table is static. */
HGJ_PLAN_FN uint32_t
hgj_plan_slack(const HgjTableSpec *spec)
{
	if (!(spec->flags & HGJ_TABLE_DYNAMIC))
		return 0;
	return spec->slack > 0 ? spec->slack : 1;
}

/* ... and those that a vertex of that many entries gets in CSR: a long list gets
 * more, or a hot key would rebuild the table at every turn. */
HGJ_PLAN_FN uint64_t
hgj_slack_of(uint32_t slack, uint64_t count)
{
	return slack == 0 ? 0 : slack + (count >= 8 ? count / 2 : 0);
}

/* The bytes that padded segments may take, where CSR would take that many. */
HGJ_PLAN_FN uint64_t
hgj_most_padded(uint64_t csr)
{
	return 4 * csr + 1024 * 1024;
}

/* Vertices of a hashed table, as a power of two. */
HGJ_PLAN_FN uint32_t
hgj_plan_vertex_bits(const HgjTableSpec *spec, uint64_t rows)
{
	double		load = spec->load > 0 ? spec->load : 1.0;
	uint32_t	bits = hgj_log2_ceil((uint64_t) ((double) rows / load));

	return bits < 1 ? 1 : bits > 32 ? 32 : bits;
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

/* What lies where: a table's range is 0 where keys have several words. */
typedef struct PlannedLayout
{
	Layout		layout;
	bool		direct;
	uint64_t	base;
	uint64_t	range;
} PlannedLayout;

/*
 * Whether the table is to be direct, and the layout of entries.  min_key, max_key:
 * of a single word.
 */
HGJ_PLAN_FN PlannedLayout
hgj_plan_layout(const HgjTableSpec *spec, uint64_t rows, int64_t min_key,
				int64_t max_key, uint32_t *notes)
{
	bool		ranged = spec->nwords == 1 && rows > 0;
	bool		slack = hgj_plan_slack(spec) > 0;
	PlannedLayout planned;

	planned.base = ranged ? (uint64_t) min_key : 0;
	planned.range = ranged ? (uint64_t) max_key - (uint64_t) min_key : 0;
	planned.direct = hgj_plan_direct(spec, rows, planned.range, slack, notes);
	if (spec->nwords > 1)
		planned.layout = LAYOUT_MULTI;
	else if (planned.direct && !slack)
		planned.layout = LAYOUT_ROW;
	else
		planned.layout = ranged && planned.range <= UINT32_MAX ? LAYOUT_NARROW :
			LAYOUT_WIDE;
	return planned;
}

#endif							/* HGJ_PLAN_RULES_H */
