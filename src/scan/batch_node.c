/*-------------------------------------------------------------------------
 *
 * batch_node.c
 *	  Which plan nodes return batches, and what is done around one that is asked for the next.
 *
 * They are known by the addresses of their plans' methods, as base/own_nodes.c has it, which
 * _PG_init registers: the nodes belong to rooms above, and those below read them.
 *
 * No memory but a static table, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "expr/demand.h"
#include "scan/batch_node.h"

/* A kind of node. */
typedef struct HgjNodeKind
{
	const CustomScanMethods *plan;	/* methods of its plans */
	const HgjBatchNode *node;	/* how it is read */
} HgjNodeKind;

#define MOST_KINDS	4

static HgjNodeKind kinds[MOST_KINDS];
static int	nkinds = 0;

/* Call once for each kind and process, from _PG_init. */
void
hgj_register_batch_node(const CustomScanMethods *plan, const HgjBatchNode *node)
{
	Assert(nkinds < MOST_KINDS);
	kinds[nkinds++] = (HgjNodeKind) {plan, node};
}

/* How the node's batches are read, or NULL: it has none. */
const HgjBatchNode *
hgj_batch_node_of(const PlanState *node)
{
	const CustomScan *cscan = (const CustomScan *) node->plan;

	if (IsA(node, SubqueryScanState))
		return hgj_batch_node_of(((const SubqueryScanState *) node)->subplan) ?
			&hgj_subquery_batch_node : NULL;
	if (!IsA(cscan, CustomScan))
		return NULL;
	for (int i = 0; i < nkinds; i++)
		if (kinds[i].plan == cscan->methods)
			return kinds[i].node;
	return NULL;
}

/*
 * Have the node return batches with these columns, if it can; see HgjBatchNode.want.  Where what it
 * returns has an effect, PostgreSQL evaluates a row's clauses and columns, those that nobody wants,
 * too, before it looks at the next row: a batch would not.
 */
HgjReading
hgj_read_node(PlanState *node, const Bitmapset *columns)
{
	const HgjBatchNode *kind = hgj_batch_node_of(node);
	bool		possible = kind &&
		!hgj_has_effects((Node *) node->plan->targetlist, node->state);

	return (HgjReading) {kind, possible ? kind->want(node, columns) : NULL};
}

/* Before a node makes a batch: what ExecProcNode() does, which is not called. */
void
hgj_enter_node(PlanState *node)
{
	if (node->chgParam != NULL)
		ExecReScan(node);
	if (node->instrument)
		InstrStartNode(node->instrument);
}

/* And behind that; returns the batch, or NULL: there was none. */
HgjBatch *
hgj_leave_node(PlanState *node, HgjBatch *batch)
{
	if (node->instrument)
		InstrStopNode(node->instrument, batch ? hgj_batch_nlive(batch) : 0);
	return batch;
}
