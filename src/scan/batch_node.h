/*-------------------------------------------------------------------------
 *
 * batch_node.h
 *	  Plan nodes that return batches, to a node above that takes them, in place of slots
 *	  (batch_node.c): HashGraphJoin, HashGraphAgg, and a scan of a subquery that is one of these.
 *
 * A node above knows nothing else of them: it reads a batch node by a source
 * (source_batches.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_BATCH_NODE_H
#define HGJ_BATCH_NODE_H

#include "compat.h"

#include "columns/batch.h"
#include "nodes/execnodes.h"
#include "nodes/extensible.h"

/* What the node above wants of the next batch. */
typedef struct HgjBatchDemand
{
	bool		careful;		/* rows that may not be wanted must not raise errors before others
								 * are returned */
	bool		single_rows;	/* a batch is to have one row only */
	uint32		most_rows;		/* more rows than these are copied at once, where they are to be kept: a
								 * node that can return fewer does */
} HgjBatchDemand;

typedef struct HgjBatchNode
{
	/*
	 * At executor start, after ExecInitNode(): get ready to return batches with these
	 * columns of the target list (a set of resnos) filled in.  Returns what the other functions
	 * are called with, in the query's context; NULL: the node cannot, and returns slots.
	 */
	void	   *(*want) (PlanState *node, const Bitmapset *columns);

	/*
	 * The next batch, whose vector i is column resno i + 1; NULL at the end.  Everything in it
	 * belongs to the node, until it is called again, rescanned or ended.  Does what
	 * ExecProcNode() does around a node, too.  Rescan with ExecReScan().
	 */
	HgjBatch   *(*next) (void *reading, const HgjBatchDemand *demand);

	/* Go back to slots, before the first row or right after a rescan. */
	void		(*use_slots) (void *reading);
} HgjBatchNode;

/* A node that is read by batches. */
typedef struct HgjReading
{
	const HgjBatchNode *kind;	/* how it is read, or NULL: it has no batches */
	void	   *handle;			/* what the functions are called with, or NULL: it returns slots */
} HgjReading;

extern const HgjBatchNode hgj_subquery_batch_node;	/* subquery_batches.c */

extern void hgj_enter_node(PlanState *node);
extern HgjBatch *hgj_leave_node(PlanState *node, HgjBatch *batch);
extern void hgj_register_batch_node(const CustomScanMethods *plan, const HgjBatchNode *node);
extern const HgjBatchNode *hgj_batch_node_of(const PlanState *node);
extern HgjReading hgj_read_node(PlanState *node, const Bitmapset *columns);

#endif							/* HGJ_BATCH_NODE_H */
