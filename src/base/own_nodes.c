/*-------------------------------------------------------------------------
 *
 * own_nodes.c
 *	  Which paths and plans are ours.
 *
 * They are known by the addresses of their methods.  A name says nothing: other
 * extensions may give their nodes any, or none, as PostgreSQL looks at one only to
 * find the methods of a plan that a parallel worker has read, and finds those that
 * were registered in that process.  The state of a node is made by the methods of its
 * plan, which say whose it is.
 *
 * The nodes belong to rooms above, and rooms below ask for them, too: so their
 * methods are handed in by _PG_init.
 *
 * No memory but two static variables, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/agg_format.h"
#include "base/own_nodes.h"
#include "base/plan_format.h"

HgjNodeMethods hgj_join_methods = {NULL, NULL};
HgjNodeMethods hgj_agg_methods = {NULL, NULL};

/* Call once per process, from _PG_init. */
void
hgj_register_nodes(const HgjNodeMethods *join, const HgjNodeMethods *agg)
{
	RegisterCustomScanMethods(join->plan);
	RegisterCustomScanMethods(agg->plan);
	hgj_join_methods = *join;
	hgj_agg_methods = *agg;
}

/* Is it a HashGraphJoin? */
bool
hgj_is_join_plan(const Plan *plan)
{
	return IsA(plan, CustomScan) &&
		((const CustomScan *) plan)->methods == hgj_join_methods.plan;
}

/* Is it a HashGraphAgg? */
bool
hgj_is_agg_plan(const Plan *plan)
{
	return IsA(plan, CustomScan) &&
		((const CustomScan *) plan)->methods == hgj_agg_methods.plan;
}
