/*-------------------------------------------------------------------------
 *
 * output.h
 *	  The result of a HashGraphJoin in batches, for a parent node that takes
 *	  them: another HashGraphJoin, or a HashGraphAgg (output.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_OUTPUT_H
#define HGJ_OUTPUT_H

#include "compat.h"

#include "columns/batch.h"
#include "nodes/execnodes.h"

struct HgjJoinState;

/* The HashGraphJoin that the node is, or NULL. */
extern struct HgjJoinState *hgj_join_of(PlanState *ps);

/*
 * Get ready to return batches instead of slots, with these columns of the
 * node's target list (a set of resnos) filled in.  Call once, at executor
 * start, after ExecInitNode(); ExecProcNode() must not be called afterwards
 * (but for use_slots() of scan/batch_node.h).  A batch has at most as many positions as the
 * join's own outer batch, or a few thousand.
 */
extern void hgj_join_use_batches(struct HgjJoinState *join,
								 const Bitmapset *wanted);

/*
 * After that: return column resno, whose expression is expr, as datums of a
 * dictionary (dictionary.h) of the equality operator, which is expected to take so many
 * bytes.  NULL: the join cannot, and the column stays as it is.
 */
extern HgjDictionary *hgj_join_encode(struct HgjJoinState *join,
									  AttrNumber resno, Node *expr,
									  Oid equality, Size expected);

/*
 * The next batch; NULL at the end.  Vector i is column resno i + 1.  Rows are
 * those that are live; there are no keys in it.  Everything belongs to the
 * join, until it is called again, rescanned or ended.  Counts rows for EXPLAIN
 * ANALYZE.  Rescan with ExecReScan().
 */
extern HgjBatch *hgj_join_next_batch(struct HgjJoinState *join);

/* The columns of those batches, by resno - 1. */
extern const HgjColumn *hgj_join_columns(struct HgjJoinState *join, int *ncols);

/* How sources read it (scan/batch_node.h). */
extern const struct HgjBatchNode hgj_join_batch_node;

#endif							/* HGJ_OUTPUT_H */
