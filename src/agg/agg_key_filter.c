/*-------------------------------------------------------------------------
 *
 * agg_key_filter.c
 *	  Rows of groups that a join above has no match for are not read.
 *
 * A HashGraphJoin whose outer side is a HashGraphAgg knows, once its inner side is built,
 * which keys it has.  Where it joins by what the groups are made by, a row whose key is none
 * of them belongs to a group that is dropped whole, and the scan may leave it out
 * (join/key_filters.c, step 3):
 *
 * 1. The join's keys are group columns, and those are columns of a table that is read by
 *	  pages, by the node itself or at the bottom of the chain of joins below it.  The equality
 *	  that groups and that which joins are of one hash operator family: the rows of a group
 *	  have a match all or none.  Their collations are one, or both tell strings apart that
 *	  have other bytes.
 * 2. Nobody notices the rows that are missing: no expression of the node or of the scan's
 *	  target list can raise an error or has an effect, and no aggregate can: those that
 *	  PostgreSQL's functions compute, and sums of what has no declared bound, might.
 * 3. The node aggregates for itself: what it returns is neither partial nor divided among
 *	  processes.
 * 4. Groups that were made so are those of one execution.  A rescan that leaves the node's
 *	  parameters alone, but not the join's inner side, may want others: it makes all of them,
 *	  once, and from then on they are kept.
 *
 * No memory, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_state.h"
#include "columns/keys.h"
#include "expr/demand.h"
#include "join/join.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"

/* Nanoseconds for a row to find its group, and to update that. */
#define HGJ_GROUP_COST			20.0

/* Step 2: may somebody notice whether the expressions are evaluated? */
static bool
is_noticed(List *expressions, EState *estate)
{
	return hgj_may_raise((Node *) expressions, estate) ||
		contain_volatile_functions((Node *) expressions);
}

/* Steps 2 and 3. */
static bool
may_leave_rows_out(const HgjAggState *state)
{
	const CustomScan *cscan = (const CustomScan *) state->css.ss.ps.plan;
	EState	   *estate = state->css.ss.ps.state;

	return !state->partial && state->exchange.nkeys == 0 && hgj_agg_is_grouped(state) &&
		!is_noticed(cscan->custom_exprs, estate) &&
		!is_noticed(cscan->scan.plan.targetlist, estate) &&
		!(state->feed && is_noticed(state->child->plan->targetlist, estate)) &&
		!hgj_agg_results_may_raise(state);
}

/* Step 1: the column of the child that this one of the node is, a group's, or 0. */
static AttrNumber
column_of_child(const CustomScan *cscan, AttrNumber resno, const OpExpr *clause)
{
	List	   *columns = list_nth(cscan->custom_private, HGJ_AGG_GROUP_COLUMNS);
	List	   *operators = list_nth(cscan->custom_private, HGJ_AGG_GROUP_OPERATORS);
	const TargetEntry *tle = resno > 0 ? list_nth(cscan->scan.plan.targetlist, resno - 1) : NULL;
	const Var  *var = tle ? (const Var *) tle->expr : NULL;
	Oid			left;
	Oid			right;
	ListCell   *lc;

	if (var == NULL || !IsA(var, Var) || var->varno != INDEX_VAR ||
		!hgj_same_equality(clause->inputcollid, var->varcollid) ||
		!get_compatible_hash_operators(clause->opno, &left, &right))
		return 0;
	foreach(lc, columns)
		if (lfirst_int(lc) == var->varattno &&
			list_nth_oid(operators, foreach_current_index(lc)) == left)
			return var->varattno;
	return 0;
}

/* HgjGroupsOffer; see join.h. */
static bool
offer(HgjJoinState *join, PlanState *node, AttrNumber *columns, const List *clauses)
{
	HgjAggState *state = (HgjAggState *) node;
	HgjSource  *asks = &hgj_join(join)->outer;
	HgjSource  *scan;

	if (!may_leave_rows_out(state))
		return false;
	for (int k = 0; k < asks->nkeys; k++)
		columns[k] = column_of_child((CustomScan *) node->plan, columns[k],
									 list_nth_node(OpExpr, clauses, k));
	if (state->join)
	{
		if (!hgj_chain_offer(state->join, join, columns, HGJ_GROUP_COST, &state->asked_stats))
			return false;
	}
	else
	{
		scan = state->feed ? hgj_agg_feed_scan(state->feed) : NULL;
		if (scan == NULL ||
			!hgj_pages_offer(scan, join, asks, columns, HGJ_GROUP_COST, &state->key_filter))
			return false;
		state->asked_stats = &state->key_filter;
	}
	state->asked = join;
	return true;
}

/* Step 4: have rows been left out of this execution's groups? */
bool
hgj_agg_left_rows_out(const HgjAggState *state)
{
	return state->asked && state->asked_stats->tested > state->tested_before;
}

/* Step 4: groups are about to be made. */
void
hgj_agg_key_filter_start(HgjAggState *state)
{
	if (state->asked)
		state->tested_before = state->asked_stats->tested;
}

/* Step 4: another execution begins, with nothing changed below. */
void
hgj_agg_want_all_rows(HgjAggState *state)
{
	if (state->asked && state->asked_stats->tested > 0)
		hgj_join_wants_all_groups(state->asked);
}

/* From _PG_init: joins may offer themselves. */
void
hgj_install_groups_offer(void)
{
	hgj_offer_to_groups = offer;
}
