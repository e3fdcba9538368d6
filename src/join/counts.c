/*-------------------------------------------------------------------------
 *
 * counts.c
 *	  What EXPLAIN ANALYZE counts of a side that has been read in vain.
 *
 * A join that has looked ahead, and then finds that it needs several passes,
 * begins its outer side again (probe.c).  One whose device fails begins one side
 * or both again (failover.c), and so does an aggregation whose pipeline fails
 * (agg_device_run.c), or a chain of joins that finds none fit (device_rows.c).
 * PostgreSQL would have read them once.
 *
 * 1. Before the side is read, note how many rows the filters of each plan node
 *	  below have removed so far.
 * 2. When the side is rescanned, each node that was under way counts a loop
 *	  with the rows it has returned: take both back, and what its filters have
 *	  removed.  Nodes that keep what they have (a Sort, a table that was built)
 *	  count none, and go on.
 *
 * Time and buffers were really used, and stay.
 *
 * Memory: a list in the query's context, while it may be needed.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "executor/instrument.h"
#include "join/join_state.h"
#include "nodes/nodeFuncs.h"

typedef struct HgjCount
{
	Instrumentation *instrument;
	double		removed1;		/* before the look ahead */
	double		removed2;
	bool		running;		/* before the rescan */
	double		rows;
} HgjCount;

static bool
note_counts(PlanState *ps, void *context)
{
	List	  **counts = context;

	if (ps->instrument)
	{
		HgjCount   *count = palloc0(sizeof(HgjCount));

		count->instrument = ps->instrument;
		count->removed1 = ps->instrument->nfiltered1;
		count->removed2 = ps->instrument->nfiltered2;
		*counts = lappend(*counts, count);
	}
	return planstate_tree_walker(ps, note_counts, context);
}

/* Step 1; the list is in the context. */
void
hgj_note_counts(PlanState *side, MemoryContext context, List **counts)
{
	MemoryContext old;

	if (side->instrument == NULL)
		return;
	old = MemoryContextSwitchTo(context);
	list_free_deep(*counts);
	*counts = NIL;
	note_counts(side, counts);
	MemoryContextSwitchTo(old);
}

/* Step 2: rescan the side; as ever, where nothing has been noted. */
void
hgj_rescan_counted(PlanState *side, List **counts)
{
	ListCell   *lc;

	foreach(lc, *counts)
	{
		HgjCount   *count = lfirst(lc);

		count->running = count->instrument->running;
		count->rows = count->instrument->tuplecount;
	}
	ExecReScan(side);
	foreach(lc, *counts)
	{
		HgjCount   *count = lfirst(lc);
		Instrumentation *instrument = count->instrument;

		if (!count->running || instrument->running)
			continue;
		instrument->nloops -= 1;
		instrument->ntuples -= count->rows;
		instrument->nfiltered1 = count->removed1;
		instrument->nfiltered2 = count->removed2;
	}
	list_free_deep(*counts);
	*counts = NIL;
}

void
hgj_note_outer_counts(HgjJoinState *state)
{
	hgj_note_counts(state->js.outer_ps, state->js.context, &state->probing.outer_counts);
}

void
hgj_note_inner_counts(HgjJoinState *state)
{
	hgj_note_counts(state->js.inner_ps, state->js.context, &state->probing.inner_counts);
}

void
hgj_rescan_uncounted(HgjJoinState *state)
{
	hgj_rescan_counted(state->js.outer_ps, &state->probing.outer_counts);
}

void
hgj_rescan_inner_uncounted(HgjJoinState *state)
{
	hgj_rescan_counted(state->js.inner_ps, &state->probing.inner_counts);
}
