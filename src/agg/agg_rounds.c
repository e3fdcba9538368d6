/*-------------------------------------------------------------------------
 *
 * agg_rounds.c
 *	  A partial HashGraphAgg whose groups do not fit into memory.
 *
 * Whoever finishes the aggregation combines states of the same group anyway, so
 * that nothing has to be put aside on files:
 *
 * 1. When the table takes no more groups, or its states have grown beyond it, the rows of the portion at hand that
 *	  have one are still added, and the positions of the others are noted.
 * 2. These, and the rows of the batch that come after the portion, are the rest.
 *	  The batch stays what it is, as long as the join is not asked for another.
 * 3. The groups are returned, the table is emptied, and the rest is taken as if
 *	  it were a batch; then the join's next batches.  The table has room for one
 *	  group at least, so that every round ends with fewer rows left.
 *
 * Memory: two arrays of row numbers in the query's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_state.h"

/* Step 1, for the live rows of the portion that have no group. */
void
hgj_agg_leave_rows(HgjAggState *state, const HgjBatch *batch)
{
	HgjAggRounds *rounds = &state->rounds;
	const uint32 *groups = state->groups.of;
	uint32		n = hgj_batch_nlive(batch);

	Assert(rounds->nleft == 0);
	for (uint32 i = 0; i < n; i++)
		if (groups[i] == HGJ_NO_GROUP)
			rounds->next[rounds->nleft++] = hgj_batch_live_row(batch, i);
}

/*
 * Step 2.  The portion ends before live row `from` of the batch.  full: states have
 * grown too much, even if all rows have a group.  in_vain: there is memory for more groups, but
 * nothing is gained by keeping them.  True: groups must be returned now, and there is a rest,
 * which may be empty if all rows have a group.
 */
bool
hgj_agg_end_round(HgjAggState *state, const HgjBatch *batch, uint32 from, bool full, bool in_vain)
{
	HgjAggRounds *rounds = &state->rounds;
	uint32		n = hgj_batch_nlive(batch);
	uint32	   *left = rounds->next;

	full = full || rounds->nleft > 0;
	if (!full && !in_vain)
		return false;
	for (uint32 i = from; i < n; i++)
		left[rounds->nleft++] = hgj_batch_live_row(batch, i);
	/* the batch may be the rest itself, and its rows in the other array */
	if (batch != &rounds->rest)
		rounds->rest = *batch;
	rounds->next = rounds->left;
	rounds->left = left;
	rounds->rest.live = left;
	rounds->rest.nlive = rounds->nleft;
	rounds->nleft = 0;
	rounds->waiting = true;
	if (full && rounds->total++ == 0)
		ereport(DEBUG1,
				(errmsg_internal("hashgraph_join: partial groups fill memory, they are returned early")));
	return true;
}

/* Step 3: what is left of the batch, once. */
const HgjBatch *
hgj_agg_rest(HgjAggState *state)
{
	state->rounds.waiting = false;
	return &state->rounds.rest;
}
