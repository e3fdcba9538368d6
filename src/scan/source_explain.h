/*-------------------------------------------------------------------------
 *
 * source_explain.h
 *	  What EXPLAIN says of the rows that a node of ours reads.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_SOURCE_EXPLAIN_H
#define HGJ_SOURCE_EXPLAIN_H

#include "compat.h"

#include HGJ_EXPLAIN_STATE_HEADER
#include "scan/source.h"

extern void hgj_show_clauses(const char *label, List *clauses, const PlanState *ps,
							 List *ancestors, ExplainState *es);
extern void hgj_show_source(const char *side, const HgjSource *source,
							const HgjPageCounts *pages,
							const PlanState *ps, List *ancestors,
							ExplainState *es);
extern void hgj_show_removed(const char *label, const PlanState *ps,
							 bool by_match, ExplainState *es);
extern void hgj_show_key_filters(const HgjSource *source, const PlanState *own_inner,
								 const HgjKeyFilterStats *stats, ExplainState *es);

#endif							/* HGJ_SOURCE_EXPLAIN_H */
