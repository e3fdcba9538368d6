/*-------------------------------------------------------------------------
 *
 * plan.c
 *	  Turn a HashGraphJoin path into a CustomScan (base/plan_format.h).
 *
 * 1. Split the restriction list as create_hashjoin_plan() does: hash clauses
 *	  (switched so that the outer operand is on the left), residual clauses that
 *	  belong to the match, and clauses to apply after an outer join.
 * 2. custom_scan_tlist is the outer plan's target list and then the inner
 *	  plan's, so that column i of a child is column i, or outer + i, here.
 * 3. Every column gets the form in which it leaves the join (nulling.c).
 * 4. The core replaces nest loop parameters and fixes references afterwards.
 *
 * Memory: the planner's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/build_id.h"
#include "base/hidden_joins.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/appendinfo.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "planner/planner.h"
#include "utils/lsyscache.h"

typedef struct QualItem
{
	Node	   *clause;
	Cost		cost;
	Index		security_level;
} QualItem;

/* Must `a` stay behind `b`? */
static bool
runs_after(const QualItem *a, const QualItem *b)
{
	if (a->security_level != b->security_level)
		return a->security_level > b->security_level;
	return a->cost >= b->cost;
}

/*
 * Sort RestrictInfos, or bare clauses, into execution order: security levels first,
 * cost within a level, stable.  A cheap leakproof clause counts as level 0.  The rules
 * are those of order_qual_clauses() in createplan.c, which is static there.
 */
List *
hgj_order_clauses(PlannerInfo *root, List *clauses)
{
	int			n = list_length(clauses);
	QualItem   *items;
	List	   *result = NIL;
	int			i = 0;
	ListCell   *lc;

	if (n <= 1)
		return clauses;
	items = palloc(mul_size(n, sizeof(QualItem)));
	foreach(lc, clauses)
	{
		QualItem	item;
		QualCost	cost;
		int			j = i++;

		item.clause = lfirst(lc);
		cost_qual_eval_node(&cost, item.clause, root);
		item.cost = cost.per_tuple;
		item.security_level = 0;
		if (IsA(item.clause, RestrictInfo))
		{
			const RestrictInfo *rinfo = (const RestrictInfo *) item.clause;

			if (!rinfo->leakproof || item.cost >= 10 * cpu_operator_cost)
				item.security_level = rinfo->security_level;
		}
		for (; j > 0 && !runs_after(&item, &items[j - 1]); j--)
			items[j] = items[j - 1];
		items[j] = item;
	}
	for (i = 0; i < n; i++)
		result = lappend(result, items[i].clause);
	pfree(items);
	return result;
}

/* The hash clauses as expressions with the outer operand on the left. */
static List *
switched_clauses(List *hashclauses, Relids outer_relids)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, hashclauses)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		OpExpr	   *clause = castNode(OpExpr, rinfo->clause);

		if (!bms_is_subset(rinfo->left_relids, outer_relids))
		{
			/* a shallow copy: CommuteOpExpr changes the node itself */
			OpExpr	   *copy = makeNode(OpExpr);

			*copy = *clause;
			copy->args = list_copy(clause->args);
			CommuteOpExpr(copy);
			clause = copy;
		}
		result = lappend(result, clause);
	}
	return result;
}

/* Append a copy of an expression to custom_scan_tlist. */
List *
hgj_append_entry(List *tlist, Expr *expr)
{
	return lappend(tlist, makeTargetEntry(copyObject(expr),
										  list_length(tlist) + 1, NULL, false));
}

/* And of a child's output columns. */
List *
hgj_append_columns(List *tlist, List *child_tlist)
{
	ListCell   *lc;

	foreach(lc, child_tlist)
		tlist = hgj_append_entry(tlist, lfirst_node(TargetEntry, lc)->expr);
	return tlist;
}

/* What the child costs with us as its parent. */
static void
adjust_child_cost(PlannerInfo *root, Plan *plan, const Path *path,
				  List *hashclauses)
{
	Cost		saving =
		hgj_feed_saving(root, path,
						hgj_side_in_batches(hashclauses, path->parent));

	plan->total_cost = Max(plan->total_cost - saving, plan->startup_cost);
}

/* HGJ_REPLACED_ bits. */
static int
replaced_sides(PlannerInfo *root, const CustomPath *path)
{
	int			bits = 0;

	if (hgj_scan_is_replaced(root, ((Path *) linitial(path->custom_paths))->parent))
		bits |= HGJ_REPLACED_OUTER;
	if (hgj_scan_is_replaced(root, ((Path *) lsecond(path->custom_paths))->parent))
		bits |= HGJ_REPLACED_INNER;
	return bits;
}

static Plan *
plan_custom_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path,
				 List *tlist, List *clauses, List *custom_plans)
{
	List	   *restrictlist = list_nth(best_path->custom_private,
										HGJ_PATH_RESTRICTLIST);
	List	   *hash_rinfos = list_nth(best_path->custom_private,
									   HGJ_PATH_HASHCLAUSES);
	List	   *facts = list_nth(best_path->custom_private, HGJ_PATH_FACTS);
	JoinType	jointype = (JoinType) list_nth_int(facts, HGJ_PATH_JOIN_TYPE);
	Path	   *outer_path = linitial(best_path->custom_paths);
	Plan	   *outer_plan = linitial(custom_plans);
	Plan	   *inner_plan = lsecond(custom_plans);
	CustomScan *cscan = makeNode(CustomScan);
	List	   *joinquals;
	List	   *otherquals = NIL;

	adjust_child_cost(root, outer_plan, outer_path, hash_rinfos);
	adjust_child_cost(root, inner_plan, lsecond(best_path->custom_paths),
					  hash_rinfos);
	restrictlist = hgj_order_clauses(root, restrictlist);
	if (HGJ_IS_OUTER_JOIN(jointype))
		extract_actual_join_clauses(restrictlist, rel->relids,
									&joinquals, &otherquals);
	else
		joinquals = extract_actual_clauses(restrictlist, false);
	joinquals = list_difference(joinquals, get_actual_clauses(hash_rinfos));

	cscan->scan.plan.targetlist = tlist;
	cscan->scan.scanrelid = 0;
	cscan->flags = best_path->flags | hgj_build_flags();
	cscan->custom_plans = custom_plans;
	cscan->custom_exprs =
		list_make3(switched_clauses(hash_rinfos, outer_path->parent->relids),
				   joinquals, otherquals);
	cscan->custom_scan_tlist = hgj_append_columns(NIL, outer_plan->targetlist);
	cscan->custom_private =
		list_make5_int((int) jointype,
					   list_nth_int(facts, HGJ_PATH_INNER_UNIQUE),
					   list_length(cscan->custom_scan_tlist),
					   list_nth_int(facts, HGJ_PATH_DEVICE),
					   list_nth_int(facts, HGJ_PATH_SHARED));
	cscan->custom_private = lappend_int(cscan->custom_private,
										replaced_sides(root, best_path));
	cscan->custom_private = list_concat(cscan->custom_private, hgj_no_hidden_joins());
	cscan->custom_scan_tlist = hgj_append_columns(cscan->custom_scan_tlist,
												  inner_plan->targetlist);
	hgj_unify_nulling(cscan, rel->reltarget->exprs, otherquals);
	cscan->methods = &hgj_scan_methods;
	return &cscan->scan.plan;
}

/*
 * A parameterised path of a partitionwise join is about to be re-aimed at a
 * child of its parameter: translate the clauses we carry; the core translates
 * the child paths.
 */
static List *
reparameterize_by_child(PlannerInfo *root, List *custom_private,
						RelOptInfo *child_rel)
{
	List	   *result = list_copy(custom_private);

	for (int i = HGJ_PATH_RESTRICTLIST; i <= HGJ_PATH_HASHCLAUSES; i++)
		lfirst(list_nth_cell(result, i)) =
			hgj_adjust_to_child(root, list_nth(result, i), child_rel);
	return result;
}

const CustomPathMethods hgj_path_methods = {
	.CustomName = HGJ_NODE_NAME,
	.PlanCustomPath = plan_custom_path,
	.ReparameterizeCustomPathByChild = reparameterize_by_child
};
