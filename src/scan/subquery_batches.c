/*-------------------------------------------------------------------------
 *
 * subquery_batches.c
 *	  The batches of a scan of a subquery (scan/batch_node.h), which are those of the subquery's
 *	  topmost node by other numbers.
 *
 * PostgreSQL leaves out a scan that returns the subquery's columns as they are, but not one that
 * has them in another order, or not all.  One with clauses of its own, or which computes what it
 * returns, is asked for slots.
 *
 * Memory: the query's context; vectors are the node's below.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "scan/batch_node.h"

/* A scan that is read by batches. */
typedef struct HgjSubqueryReading
{
	PlanState  *node;			/* scan */
	HgjReading	below;			/* subquery's topmost node */
	AttrNumber *numbers;		/* columns there, by resno - 1; 0: nobody wants it */
	HgjBatch	batch;			/* batch that is returned */
} HgjSubqueryReading;

/* The number of the subquery's column that the scan returns, or 0: it is computed. */
static AttrNumber
column_below(const PlanState *node, int resno)
{
	const TargetEntry *tle = list_nth_node(TargetEntry, node->plan->targetlist, resno - 1);
	const Var  *var = (const Var *) tle->expr;

	return IsA(var, Var) && var->varno == ((const Scan *) node->plan)->scanrelid &&
		var->varattno > 0 ? var->varattno : 0;
}

static void *
want(PlanState *node, const Bitmapset *columns)
{
	PlanState  *subplan = castNode(SubqueryScanState, node)->subplan;
	HgjSubqueryReading result = {node};
	MemoryContext old = MemoryContextSwitchTo(node->state->es_query_cxt);
	Bitmapset  *wanted = NULL;
	bool		possible = node->plan->qual == NIL;

	result.batch.ncols = list_length(node->plan->targetlist);
	result.batch.vectors = palloc0(mul_size(result.batch.ncols + 1, sizeof(HgjVector)));
	result.numbers = palloc0(mul_size(result.batch.ncols + 1, sizeof(AttrNumber)));
	for (int resno = -1; possible && (resno = bms_next_member(columns, resno)) >= 0;)
	{
		AttrNumber	number = column_below(node, resno);

		result.numbers[resno - 1] = number;
		possible = number > 0;
		wanted = bms_add_member(wanted, number);
	}
	if (possible)
		result.below = hgj_read_node(subplan, wanted);
	MemoryContextSwitchTo(old);
	return result.below.handle ?
		memcpy(MemoryContextAlloc(node->state->es_query_cxt, sizeof(result)), &result, sizeof(result)) : NULL;
}

static HgjBatch *
next(void *arg, const HgjBatchDemand *demand)
{
	HgjSubqueryReading *reading = arg;
	PlanState  *node = reading->node;
	HgjBatch   *batch = &reading->batch;
	const HgjBatch *from;

	hgj_enter_node(node);
	from = reading->below.kind->next(reading->below.handle, demand);
	if (from)
	{
		batch->nrows = from->nrows;
		batch->live = from->live;
		batch->nlive = from->nlive;
		for (int c = 0; c < batch->ncols; c++)
			if (reading->numbers[c] > 0)
				batch->vectors[c] = from->vectors[reading->numbers[c] - 1];
	}
	return hgj_leave_node(node, from ? batch : NULL);
}

static void
use_slots(void *arg)
{
	HgjSubqueryReading *reading = arg;

	reading->below.kind->use_slots(reading->below.handle);
}

const HgjBatchNode hgj_subquery_batch_node = {
	.want = want,
	.next = next,
	.use_slots = use_slots
};
