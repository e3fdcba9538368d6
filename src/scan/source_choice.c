/*-------------------------------------------------------------------------
 *
 * source_choice.c
 *	  How the rows of a node's child are read.
 *
 * Pages come first, because they need no slot; batches of a node of ours come next, and
 * tuples are what every child gives.  A source is taken only where it returns exactly what
 * the child would.
 *
 * Memory: the caller's context, for the private state of the chosen source.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/guc.h"
#include "executor/executor.h"
#include "scan/source.h"

/*
 * Decide how a side is read: the fastest way that returns exactly what the
 * child plan would.  For messages: what it is, and of which node.
 */
void
hgj_choose_source(HgjSource *source, const char *side, const char *node,
				  EState *estate)
{
	bool		key_expression = false;

	for (int k = 0; k < source->nkeys; k++)
		if (source->keys[k].expr)
			key_expression = true;

	source->methods = &hgj_source_tuples;
	if (estate->es_epq_active != NULL)
		source->reason = HGJ_SOURCE_RECHECK;
	else if (hgj_source == HGJ_SOURCE_TUPLES)
		source->reason = HGJ_SOURCE_SETTING;
	else if (key_expression)
		source->reason = HGJ_SOURCE_KEY_EXPRESSION;
	else if (!hgj_source_use_pages(source, estate) &&
			 source->reason == HGJ_SOURCE_OTHER_CHILD)
		hgj_source_use_batches(source);

	if (hgj_source == HGJ_SOURCE_PAGES_REQUIRED &&
		source->reason != HGJ_SOURCE_FASTEST &&
		source->reason != HGJ_SOURCE_RECHECK &&
		IsA(source->child, SeqScanState))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a sequential scan below a %s cannot be read by pages", node),
				 errdetail("The reason is: %s.",
						   hgj_source_reason_text(source->reason)),
				 errhint("Set hashgraph_join.source to auto.")));
	if (source->reason >= HGJ_SOURCE_FIRST_OBSTACLE &&
		!(estate->es_top_eflags & EXEC_FLAG_EXPLAIN_ONLY))
		ereport(DEBUG1,
				(errmsg_internal("hashgraph_join: the %s is read by tuples: %s",
								 side, hgj_source_reason_text(source->reason))));
}
