/*-------------------------------------------------------------------------
 *
 * chosen_paths.c
 *	  Find the paths that the joins and aggregations of a plan were made of.
 *
 * A finished plan does not say which relations of which query a node joins: its
 * relations are numbered anew, and subqueries have been merged into it.  The paths
 * know, and the planner's structures outlive planning where the caller plans.
 *
 * 1. The plan consists of the query's own plan and of those of its subplans, each of
 *	  which has a PlannerInfo: the query's, which was noted (declines.c), and
 *	  PlannerGlobal.subroots.
 * 2. The joins and aggregations of each, in the order in which they are met from
 *	  the top, are those of one of the final paths of its PlannerInfo: nodes that
 *	  create_plan() adds or leaves out are neither.
 * 3. The first final path whose joins and aggregations are of the same kinds is
 *	  taken, the cheapest before the others.  Where there is none, somebody else has
 *	  made the plan, and nothing is known of it.
 *
 * Memory: the caller's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/plan_walk.h"
#include "miscadmin.h"
#include "optimizer/pathnode.h"
#include "planner/declines.h"
#include "planner/planner.h"

/* ---- the plan ------------------------------------------------------------- */

/* Adds the joins and aggregations of a plan, without its subplans, to the List. */
static void
collect_plan(Plan *plan, void *context)
{
	List	  **found = context;

	if (IsA(plan, NestLoop) || IsA(plan, MergeJoin) || IsA(plan, HashJoin) ||
		IsA(plan, Agg) || IsA(plan, Group) || hgj_is_join_plan(plan) ||
		hgj_is_agg_plan(plan))
		*found = lappend(*found, plan);
	hgj_visit_children(plan, collect_plan, found);
}

/* ---- the paths ------------------------------------------------------------ */

/* What a path is made of, from the outer side to the inner one. */
static List *
inputs_of(Path *path)
{
	switch (nodeTag(path))
	{
		case T_NestPath:
		case T_MergePath:
		case T_HashPath:
			return list_make2(((JoinPath *) path)->outerjoinpath,
							  ((JoinPath *) path)->innerjoinpath);
		case T_AppendPath:
			return ((AppendPath *) path)->subpaths;
		case T_MergeAppendPath:
			return ((MergeAppendPath *) path)->subpaths;
		case T_CustomPath:
			return ((CustomPath *) path)->custom_paths;
		case T_RecursiveUnionPath:
			return list_make2(((RecursiveUnionPath *) path)->leftpath,
							  ((RecursiveUnionPath *) path)->rightpath);
		case T_SetOpPath:
			return HGJ_SETOP_INPUTS((SetOpPath *) path);
		case T_MaterialPath:
			return list_make1(((MaterialPath *) path)->subpath);
		case T_MemoizePath:
			return list_make1(((MemoizePath *) path)->subpath);
		case T_UniquePath:
			return list_make1(((UniquePath *) path)->subpath);
		case T_GatherPath:
			return list_make1(((GatherPath *) path)->subpath);
		case T_GatherMergePath:
			return list_make1(((GatherMergePath *) path)->subpath);
		case T_ProjectionPath:
			return list_make1(((ProjectionPath *) path)->subpath);
		case T_ProjectSetPath:
			return list_make1(((ProjectSetPath *) path)->subpath);
		case T_SortPath:
		case T_IncrementalSortPath:
			return list_make1(((SortPath *) path)->subpath);
		case T_GroupPath:
			return list_make1(((GroupPath *) path)->subpath);
		case T_UpperUniquePath:
			return list_make1(((UpperUniquePath *) path)->subpath);
		case T_AggPath:
			return list_make1(((AggPath *) path)->subpath);
		case T_GroupingSetsPath:
			return list_make1(((GroupingSetsPath *) path)->subpath);
		case T_WindowAggPath:
			return list_make1(((WindowAggPath *) path)->subpath);
		case T_LockRowsPath:
			return list_make1(((LockRowsPath *) path)->subpath);
		case T_ModifyTablePath:
			return list_make1(((ModifyTablePath *) path)->subpath);
		case T_LimitPath:
			return list_make1(((LimitPath *) path)->subpath);
		case T_SubqueryScanPath:
			return list_make1(((SubqueryScanPath *) path)->subpath);
		case T_ForeignPath:
			return ((ForeignPath *) path)->fdw_outerpath ?
				list_make1(((ForeignPath *) path)->fdw_outerpath) : NIL;
		default:
			return NIL;
	}
}

/* The kind of node that is made of the path, if that is one to be found. */
static NodeTag
node_of(const Path *path)
{
	switch (nodeTag(path))
	{
		case T_NestPath:
			return T_NestLoop;
		case T_MergePath:
			return T_MergeJoin;
		case T_HashPath:
			return T_HashJoin;
		case T_AggPath:
		case T_GroupingSetsPath:
			return T_Agg;
		case T_GroupPath:
			return T_Group;
		case T_UniquePath:
			return ((const UniquePath *) path)->umethod == UNIQUE_PATH_HASH ?
				T_Agg : T_Invalid;
		case T_CustomPath:
			return hgj_is_join_path(path) || hgj_is_agg_path(path) ?
				T_CustomScan : T_Invalid;
		default:
			return T_Invalid;
	}
}

/* Adds an HgjChosen, still without a plan, for each join and aggregation. */
static List *
collect_path(PlannerInfo *root, Path *path, List *found)
{
	ListCell   *lc;

	check_stack_depth();
	if (node_of(path) != T_Invalid)
	{
		HgjChosen  *chosen = palloc0(sizeof(HgjChosen));

		chosen->path = path;
		chosen->root = root;
		found = lappend(found, chosen);
	}
	if (IsA(path, SubqueryScanPath))
		root = path->parent->subroot;
	foreach(lc, inputs_of(path))
		found = collect_path(root, lfirst(lc), found);
	return found;
}

/* ---- both ----------------------------------------------------------------- */

/* Are these the paths of those plans?  Then say so in them. */
static bool
fits(List *plans, List *paths)
{
	ListCell   *lc1;
	ListCell   *lc2;

	if (list_length(plans) != list_length(paths))
		return false;
	forboth(lc1, plans, lc2, paths)
	{
		HgjChosen  *chosen = lfirst(lc2);

		chosen->plan = lfirst(lc1);
		if (node_of(chosen->path) != nodeTag(chosen->plan))
			return false;
	}
	return true;
}

/* Steps 2 and 3, of the query's plan or of a subplan. */
static void
match_plan(HgjDeclines *declines, PlannerInfo *root, Plan *plan)
{
	List	   *plans = NIL;
	RelOptInfo *final;
	List	   *candidates;
	ListCell   *lc;

	collect_plan(plan, &plans);
	if (plans == NIL || root == NULL || root->upper_rels[UPPERREL_FINAL] == NIL)
		return;
	final = linitial(root->upper_rels[UPPERREL_FINAL]);
	candidates = list_copy(final->pathlist);
	if (final->cheapest_total_path)
		candidates = lcons(final->cheapest_total_path, candidates);
	foreach(lc, candidates)
	{
		List	   *paths = collect_path(root, lfirst(lc), NIL);

		CHECK_FOR_INTERRUPTS();
		if (fits(plans, paths))
		{
			declines->chosen = list_concat(declines->chosen, paths);
			return;
		}
	}
}

/* Fills declines->chosen. */
void
hgj_match_paths(HgjDeclines *declines, const PlannedStmt *stmt)
{
	ListCell   *lc1;
	ListCell   *lc2;

	if (declines->top == NULL)
		return;
	match_plan(declines, declines->top, stmt->planTree);
	forboth(lc1, stmt->subplans, lc2, declines->top->glob->subroots)
		if (lfirst(lc1) != NULL)
			match_plan(declines, lfirst(lc2), lfirst(lc1));
}
