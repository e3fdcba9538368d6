/*-------------------------------------------------------------------------
 *
 * agg_plan.c
 *	  Turn a HashGraphAgg path into a CustomScan (base/agg_format.h).
 *
 * 1. custom_scan_tlist is the child's target list and then the aggregates, so
 *	  that the core resolves every expression for us: in the arguments, a column
 *	  or a whole expression that the child returns; in what is returned, group
 *	  columns and aggregates.
 * 2. custom_exprs has the aggregates' arguments and filters once more, because
 *	  only there does the core resolve columns, parameters and subplans.
 * 3. Clauses of HAVING are evaluated in the order that PostgreSQL would give them: one
 *	  that calls a volatile function does so for the groups which those before it let
 *	  pass.
 * 4. Group columns become numbers of the child's columns.
 *
 * Memory: the planner's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/agg_format.h"
#include "base/build_id.h"
#include "base/hidden_joins.h"
#include "optimizer/tlist.h"
#include "planner/planner.h"

/* The child's columns that are grouped by. */
static List *
group_columns(List *group_exprs, List *child_tlist)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, group_exprs)
	{
		TargetEntry *tle = tlist_member(lfirst(lc), child_tlist);

		if (tle == NULL)
			elog(ERROR, "the child of a HashGraphAgg does not return a group column");
		result = lappend_int(result, tle->resno);
	}
	return result;
}

/* What the child, and an Append's children, cost with us as their parent. */
static void
adjust_child_cost(PlannerInfo *root, Plan *plan, const Path *path)
{
	ListCell   *lc1;
	ListCell   *lc2;

	plan->total_cost = Max(plan->startup_cost,
						   plan->total_cost - hgj_agg_feed_saving(root, path));
	if (IsA(plan, Append) && IsA(path, AppendPath))
		forboth(lc1, ((Append *) plan)->appendplans,
				lc2, ((const AppendPath *) path)->subpaths)
			adjust_child_cost(root, lfirst(lc1), lfirst(lc2));
}

static Plan *
plan_agg_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path,
			  List *tlist, List *clauses, List *custom_plans)
{
	List	   *private = best_path->custom_private;
	List	   *facts = list_nth(private, HGJ_AGG_PATH_FACTS);
	List	   *second = list_nth(private, HGJ_AGG_PATH_SECOND);
	Plan	   *child = linitial(custom_plans);
	CustomScan *cscan = makeNode(CustomScan);
	List	   *args = NIL;
	List	   *filters = NIL;
	List	   *functions = NIL;
	ListCell   *lc;

	adjust_child_cost(root, child, linitial(best_path->custom_paths));

	cscan->custom_scan_tlist = hgj_append_columns(NIL, child->targetlist);
	foreach(lc, (List *) list_nth(private, HGJ_AGG_PATH_AGGREFS))
	{
		Aggref	   *aggref = lfirst_node(Aggref, lc);

		cscan->custom_scan_tlist = hgj_append_entry(cscan->custom_scan_tlist,
													(Expr *) aggref);
		args = lappend(args, get_tlist_exprs(aggref->args, true));
		filters = lappend(filters, aggref->aggfilter);
		functions = lappend_oid(functions, hgj_aggregate_is_known(aggref) ?
								aggref->aggfnoid : InvalidOid);
	}
	if (second != NIL)
	{
		/* what is left to a second grouping */
		functions = linitial(second);
		args = lsecond(second);
		filters = NIL;
		foreach(lc, functions)
			filters = lappend(filters, NULL);
	}

	cscan->scan.plan.targetlist = tlist;
	cscan->scan.scanrelid = 0;
	cscan->flags = best_path->flags | hgj_build_flags();
	cscan->custom_plans = custom_plans;
	cscan->custom_exprs =
		list_make3(args, filters,
				   hgj_order_clauses(root, list_nth(private, HGJ_AGG_PATH_HAVING)));
	cscan->custom_private =
		list_make5(group_columns(list_nth(private, HGJ_AGG_PATH_GROUP_EXPRS),
								 child->targetlist),
				   list_nth(private, HGJ_AGG_PATH_GROUP_OPERATORS),
				   functions,
				   list_copy_head(facts, HGJ_AGG_SPLIT_FACTS),
				   list_copy_tail(facts, HGJ_AGG_SPLIT_FACTS));
	cscan->custom_private = lappend(cscan->custom_private, hgj_no_hidden_joins());
	cscan->methods = &hgj_agg_scan_methods;
	return &cscan->scan.plan;
}

const CustomPathMethods hgj_agg_path_methods = {
	.CustomName = HGJ_AGG_NODE_NAME,
	.PlanCustomPath = plan_agg_path
};
