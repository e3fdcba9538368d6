/*-------------------------------------------------------------------------
 *
 * agg_transition.h
 *	  Aggregates that are computed by PostgreSQL's functions for them, a row at a
 *	  time: what agg_transition.c, agg_transition_init.c and agg_sorted.c share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_AGG_TRANSITION_H
#define HGJ_AGG_TRANSITION_H

#include "compat.h"

#include "agg/agg_state.h"
#include "executor/nodeAgg.h"

/* The state of a group. */
typedef struct HgjTransValue
{
	Datum		value;
	bool		isnull;
	bool		none;			/* the first argument that is not NULL becomes it */
	bool		begun;			/* or else all of this means nothing yet */
} HgjTransValue;

/* The functions of an aggregate. */
typedef struct HgjTransition
{
	AggState   *caller;			/* what they see, the node's; it has these two */
	AggStatePerTrans trans;
	AggStatePerAgg agg;
	struct HgjAggSort *sort;	/* of DISTINCT and ORDER BY; or NULL */
	struct HgjAggSeen *seen;	/* of DISTINCT; or NULL */
	struct HgjAggGrowth *growth;	/* of states that grow with every row; or NULL */
	HgjAggRanges *ranges;		/* where those are */
	bool		ordered;		/* states begin when sorted rows are read */
} HgjTransition;

/* agg_transition_init.c */
extern const HgjAggFunction hgj_agg_transition_function;
extern void hgj_transition_init(HgjAggState *state, int a, Aggref *aggref);

/* agg_transition.c */
extern void hgj_agg_call_rows(HgjAggregate *agg, const HgjAggRows *rows);
extern void hgj_agg_load_arguments(const HgjAggInput *input, uint32 i, int n,
								   NullableDatum *into);
extern bool hgj_transition_skips(const HgjTransition *transition,
								 const NullableDatum *arguments);
extern void hgj_transition_advance(HgjTransition *transition, HgjTransValue *value);
extern Datum hgj_transition_result(const HgjAggregate *agg, const char *row,
								   bool partial, bool *isnull);

/* agg_sorted.c */
extern void hgj_agg_sort_init(HgjAggState *state, HgjTransition *transition);
extern void hgj_agg_put_rows(HgjAggregate *agg, const HgjAggRows *rows);
extern void hgj_agg_put_row(HgjAggregate *agg, uint32 group, uint32 i);
extern void hgj_agg_sort_feed(HgjTransition *transition, HgjTransValue *value,
							  uint32 group);
extern void hgj_agg_sort_end(struct HgjAggSort *sort);

/* agg_seen.c */
extern void hgj_agg_seen_init(HgjAggState *state, HgjTransition *transition);
extern void hgj_agg_put_distinct(HgjAggregate *agg, const HgjAggRows *rows);
extern Size hgj_agg_seen_bytes(const struct HgjAggSeen *seen);
extern void hgj_agg_seen_forget(struct HgjAggSeen *seen);

/* agg_ranges.c */
extern ExprContext *hgj_agg_context_over(MemoryContext memory);
extern ExprContext *hgj_agg_range_context(HgjAggRanges *ranges, uint32 group);
extern Size hgj_agg_ranges_bytes(const HgjAggRanges *ranges);
extern void hgj_agg_ranges_returned(HgjAggRanges *ranges, uint32 group);
extern void hgj_agg_ranges_forget(HgjAggRanges *ranges);

/* agg_growing.c */
extern void hgj_agg_growth_init(HgjAggState *state, HgjAggregate *agg);
extern void hgj_agg_growth_rows(HgjAggregate *agg, const HgjAggRows *rows);

#endif							/* HGJ_AGG_TRANSITION_H */
