/*-------------------------------------------------------------------------
 *
 * group_filter.c
 *	  What a join costs less whose outer side is groups that are made by its keys.
 *
 * The scan below the HashGraphAgg leaves out the rows whose groups have no match
 * (agg/agg_key_filter.c), so that of the aggregation the part remains that the join asks
 * for, and a test of each row.  Reading the other columns of the rows that are left out, and
 * their way through joins below the aggregation, is saved as well, and is not taken off.
 *
 * 1. The conditions are those of the executor, as far as they are known of a path.
 * 2. The part of the groups that have a match is taken from the selectivity of the keys:
 *	  what subqueries return has no statistics, but each of their groups has other keys.
 *
 * No memory, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/agg_format.h"
#include "base/guc.h"
#include "columns/keys.h"
#include "expr/demand.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "planner/agg_path.h"
#include "planner/planner.h"

/* What testing a row costs, of agg_tuple_cost. */
#define HGJ_GROUP_TEST_PART		0.4

/* With this part of the groups the filter is given up (engine/cpu_filter.c). */
#define HGJ_FILTERED_PART		0.95

/* Step 1: could an aggregate, or what it is computed of, raise an error? */
static bool
aggregates_may_raise(const List *aggrefs)
{
	ListCell   *lc;

	foreach(lc, aggrefs)
	{
		const Aggref *aggref = lfirst_node(Aggref, lc);
		const Expr *argument = aggref->args == NIL ? NULL :
			linitial_node(TargetEntry, aggref->args)->expr;

		if (!hgj_aggregate_is_known(aggref) ||
			hgj_agg_may_raise(aggref->aggfnoid, argument) ||
			hgj_may_raise((Node *) aggref->args, NULL) ||
			hgj_may_raise((Node *) aggref->aggfilter, NULL))
			return true;
	}
	return false;
}

/* Step 1: the aggregation below a subquery's path whose scan may be asked about; or NULL. */
static const CustomPath *
filtered_groups(const Path *path)
{
	const CustomPath *agg = IsA(path, SubqueryScanPath) ?
		(const CustomPath *) ((const SubqueryScanPath *) path)->subpath : NULL;
	const List *facts;

	if (agg == NULL || !hgj_is_agg_path(&agg->path))
		return NULL;
	facts = list_nth(agg->custom_private, HGJ_AGG_PATH_FACTS);
	if (linitial_int(facts) != (int) AGGSPLIT_SIMPLE || lsecond_int(facts) || lthird_int(facts) ||
		!hgj_is_scan_path(hgj_below_joins(linitial(agg->custom_paths))) ||
		aggregates_may_raise(list_nth(agg->custom_private, HGJ_AGG_PATH_AGGREFS)) ||
		hgj_may_raise(list_nth(agg->custom_private, HGJ_AGG_PATH_HAVING), NULL))
		return NULL;
	return agg;
}

/* Step 1: is a key of the join one that the groups are made by, of the table that is scanned? */
static bool
is_group_column(const RestrictInfo *rinfo, const RelOptInfo *rel, const CustomPath *agg)
{
	const Relids scanned = hgj_below_joins(linitial(agg->custom_paths))->parent->relids;
	const Var  *var = (const Var *) hgj_strip_relabel((Expr *) hgj_key_of_side(rinfo, rel));
	const TargetEntry *tle;

	if (!IsA(var, Var) || var->varattno <= 0 || rel->subroot == NULL)
		return false;
	tle = list_nth(rel->subroot->parse->targetList, var->varattno - 1);
	return IsA(tle->expr, Var) &&
		bms_is_member(((const Var *) tle->expr)->varno, scanned) &&
		hgj_same_equality(((const OpExpr *) rinfo->clause)->inputcollid,
						  ((const Var *) tle->expr)->varcollid) &&
		list_member(list_nth(agg->custom_private, HGJ_AGG_PATH_GROUP_EXPRS), tle->expr);
}

/*
 * What of the outer side's costs, before the first group and behind it, the join of it with
 * the inner side saves; zeros where there are no such groups.
 */
HgjGroupSaving
hgj_group_saving(const HgjJoinCosts *costs, const Path *outer, const Path *inner)
{
	const CustomPath *agg = filtered_groups(outer);
	const Path *rows = agg ? linitial(agg->custom_paths) : NULL;
	double		matched = Min(costs->selectivity * inner->rows, 1);
	HgjGroupSaving saving = {0, 0};
	ListCell   *lc;

	if (agg == NULL || costs->opaque || costs->jointype == JOIN_LEFT || costs->jointype == JOIN_FULL ||
		costs->jointype == JOIN_ANTI || matched >= HGJ_FILTERED_PART)
		return saving;
	foreach(lc, costs->hashclauses)
		if (!is_group_column(lfirst(lc), outer->parent, agg))
			return saving;
	saving.rows = (1 - matched) *
		linitial_int(list_nth(agg->custom_private, HGJ_AGG_PATH_ROWS_COST)) -
		HGJ_GROUP_TEST_PART * hgj_agg_tuple_cost * rows->rows;
	saving.rows = Max(saving.rows, 0);
	saving.groups = (1 - matched) * (agg->path.total_cost - agg->path.startup_cost);
	return saving;
}
