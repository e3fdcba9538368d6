/*-------------------------------------------------------------------------
 *
 * plan_walk.c
 *	  The nodes right below one of a plan.
 *
 * 1. The outer and the inner one first, then those that are in lists, or that are a
 *	  subquery's.
 * 2. Subplans of expressions are not among them: PlannedStmt has a list of these.
 *
 * PostgreSQL has such a function for the executor's nodes (planstate_tree_walker()),
 * but none for plans.  No memory, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/plan_walk.h"
#include "miscadmin.h"

void
hgj_visit_plans(List *plans, HgjPlanVisit visit, void *context)
{
	ListCell   *lc;

	foreach(lc, plans)
		if (lfirst(lc))
			visit(lfirst(lc), context);
}

void
hgj_visit_children(Plan *plan, HgjPlanVisit visit, void *context)
{
	check_stack_depth();
	if (plan->lefttree)
		visit(plan->lefttree, context);
	if (plan->righttree)
		visit(plan->righttree, context);
	switch (nodeTag(plan))
	{
		case T_Append:
			hgj_visit_plans(((Append *) plan)->appendplans, visit, context);
			break;
		case T_MergeAppend:
			hgj_visit_plans(((MergeAppend *) plan)->mergeplans, visit, context);
			break;
		case T_BitmapAnd:
			hgj_visit_plans(((BitmapAnd *) plan)->bitmapplans, visit, context);
			break;
		case T_BitmapOr:
			hgj_visit_plans(((BitmapOr *) plan)->bitmapplans, visit, context);
			break;
		case T_SubqueryScan:
			visit(((SubqueryScan *) plan)->subplan, context);
			break;
		case T_CustomScan:
			hgj_visit_plans(((CustomScan *) plan)->custom_plans, visit, context);
			break;
		default:
			break;
	}
}
