/*-------------------------------------------------------------------------
 *
 * demand.h
 *	  Will every row be asked for (demand.c), and can a row raise an error or
 *	  have an effect (may_raise.c)?  Together: what must not be evaluated ahead of
 *	  time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_DEMAND_H
#define HGJ_DEMAND_H

#include "compat.h"

#include "nodes/execnodes.h"

/* How many of a node's rows those above it take, once they take the first. */
typedef enum HgjDemand
{
	HGJ_DEMAND_SOME,			/* perhaps not all */
	HGJ_DEMAND_QUERY,			/* all, if the query is run to its end */
	HGJ_DEMAND_ALL
} HgjDemand;

extern void hgj_install_demand_hook(void);
extern HgjDemand hgj_demand_of(const PlanState *ps);
extern Bitmapset *hgj_fixed_params(const EState *estate);
extern bool hgj_all_rows_wanted(HgjDemand demand, const EState *estate);
extern bool hgj_depends_on_parameters(Node *expression, void *context);

extern bool hgj_calls_may_raise(Node *node);
extern bool hgj_is_time_of_query(const SQLValueFunction *function);
extern bool hgj_is_plain_extract(const FuncExpr *expr);
extern bool hgj_hash_may_raise(Oid funcid);
extern bool hgj_param_may_raise(const Param *param, const EState *estate);
extern bool hgj_may_raise(Node *node, EState *estate);
extern bool hgj_rows_may_raise(PlanState *ps);
extern bool hgj_errors_can_wait(Node *node, EState *estate);
extern void hgj_put_error_aside(MemoryContext context);
extern bool hgj_calls_volatile(PlanState *ps);
extern bool hgj_node_calls_volatile(PlanState *ps);
extern bool hgj_has_effects(Node *node, EState *estate);

/* Does this node, whatever its arguments are, return several rows? */
static inline bool
hgj_returns_set(const Node *node)
{
	return (IsA(node, FuncExpr) && ((const FuncExpr *) node)->funcretset) ||
		(IsA(node, OpExpr) && ((const OpExpr *) node)->opretset);
}

#endif							/* HGJ_DEMAND_H */
