/*-------------------------------------------------------------------------
 *
 * agg_ranges.c
 *	  Memory contexts for states that grow (agg_growing.c).
 *
 * Groups are divided into ranges, by their numbers, and the states of a range have a
 * memory context of their own, so that they can go while others stay.  The first
 * SAME_SIZE groups are a range each, twice as many are in ranges of two, and so on: a range
 * has one group, or a SAME_SIZE-th of all groups at most, and few contexts do for millions
 * of groups.
 *
 * Memory: contexts below the query's.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_transition.h"
#include "executor/executor.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

/* Ranges of the same number of groups. */
#define SAME_SIZE		64

/* Bytes of the largest block of a context. */
#define LARGEST_BLOCK	(64 * ALLOCSET_SMALL_INITSIZE)

/* An ExprContext whose short-lived memory is this. */
ExprContext *
hgj_agg_context_over(MemoryContext memory)
{
	ExprContext *econtext = CreateStandaloneExprContext();

	MemoryContextDelete(econtext->ecxt_per_tuple_memory);
	econtext->ecxt_per_tuple_memory = memory;
	return econtext;
}

/* The number of a group's range. */
static uint32
range_of(uint32 group)
{
	uint32		level = pg_leftmost_one_pos32(group / SAME_SIZE + 1);
	uint32		first = SAME_SIZE * ((UINT32_C(1) << level) - 1);

	return level * SAME_SIZE + ((group - first) >> level);
}

/* Room for the context of this range. */
static void
reserve(HgjAggRanges *ranges, uint32 range)
{
	uint32		n = TYPEALIGN(SAME_SIZE, range + 1);

	if (range < ranges->n)
		return;
	ranges->contexts = ranges->contexts ?
		repalloc(ranges->contexts, mul_size(n, sizeof(ExprContext *))) :
		palloc(mul_size(n, sizeof(ExprContext *)));
	memset(ranges->contexts + ranges->n, 0, (n - ranges->n) * sizeof(ExprContext *));
	ranges->n = n;
}

/* What the functions are to see as their aggregate's context, for this group. */
ExprContext *
hgj_agg_range_context(HgjAggRanges *ranges, uint32 group)
{
	uint32		range = range_of(group);
	MemoryContext states;
	MemoryContext old;

	if (range < ranges->n && ranges->contexts[range])
		return ranges->contexts[range];
	old = MemoryContextSwitchTo(ranges->parent);
	reserve(ranges, range);
	states = AllocSetContextCreate(ranges->parent, "HashGraphAgg states that grow",
								   0, ALLOCSET_SMALL_INITSIZE, LARGEST_BLOCK);
	ranges->contexts[range] = hgj_agg_context_over(states);
	MemoryContextSwitchTo(old);
	return ranges->contexts[range];
}

/* Bytes that all states take. */
Size
hgj_agg_ranges_bytes(const HgjAggRanges *ranges)
{
	Size		bytes = 0;

	for (uint32 r = ranges->first; r < ranges->n; r++)
		if (ranges->contexts[r])
			bytes += MemoryContextMemAllocated(ranges->contexts[r]->ecxt_per_tuple_memory,
											   true);
	return bytes;
}

/* The states of ranges that end before this one go. */
static void
free_before(HgjAggRanges *ranges, uint32 range)
{
	for (; ranges->first < range; ranges->first++)
		if (ranges->contexts[ranges->first])
		{
			FreeExprContext(ranges->contexts[ranges->first], true);
			ranges->contexts[ranges->first] = NULL;
		}
}

/* Groups with smaller numbers than this one's have been returned. */
void
hgj_agg_ranges_returned(HgjAggRanges *ranges, uint32 group)
{
	free_before(ranges, Min(range_of(group), ranges->n));
}

/* All groups go.  Safe to call again. */
void
hgj_agg_ranges_forget(HgjAggRanges *ranges)
{
	free_before(ranges, ranges->n);
	if (ranges->contexts)
		pfree(ranges->contexts);
	ranges->contexts = NULL;
	ranges->n = ranges->first = 0;
}
