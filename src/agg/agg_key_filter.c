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
 *	  pages.  The equality that groups and that which joins are of one hash operator family:
 *	  the rows of a group have a match all or none.
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
#include "expr/demand.h"
#include "join/join_state.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/* Step 2: may somebody notice whether the expressions are evaluated? */
static bool
is_noticed(List *expressions, EState *estate)
{
	return hgj_may_raise((Node *) expressions, estate) ||
		contain_volatile_functions((Node *) expressions);
}

/* Step 2: may an aggregate raise an error itself, or do something else? */
static bool
aggregate_may_raise(const HgjAggregate *agg)
{
	switch (agg->function->kind)
	{
		case HGJ_AGG_TRANSITION:
		case HGJ_AGG_AVG_FLOAT:
			return true;
		case HGJ_AGG_FLOAT4:
		case HGJ_AGG_FLOAT8:
			return agg->function->change == HGJ_AGG_ADD;
		case HGJ_AGG_SUM_NUMERIC:
		case HGJ_AGG_AVG_NUMERIC:
			return exprTypmod((Node *) agg->input->argument->expr) < 0;
		case HGJ_AGG_BY_FUNCTION:
			return agg->function->function == F_SUM_MONEY ||
				agg->function->function == F_SUM_INTERVAL ||
				agg->function->function == F_MIN_ANYARRAY ||
				agg->function->function == F_MAX_ANYARRAY;
		default:
			return false;
	}
}

/* Steps 2 and 3. */
static bool
may_leave_rows_out(const HgjAggState *state)
{
	const CustomScan *cscan = (const CustomScan *) state->css.ss.ps.plan;
	EState	   *estate = state->css.ss.ps.state;

	if (state->partial || state->exchange.planned || !hgj_agg_is_grouped(state) ||
		is_noticed(cscan->custom_exprs, estate) ||
		is_noticed(cscan->scan.plan.targetlist, estate) ||
		is_noticed(state->child->plan->targetlist, estate))
		return false;
	for (int a = 0; a < state->naggs; a++)
		if (aggregate_may_raise(&state->aggs[a]))
			return false;
	return true;
}

/* Step 1: the column of the scan that this one of the node is, or 0. */
static AttrNumber
column_of_scan(const CustomScan *cscan, AttrNumber resno, Oid operator)
{
	List	   *columns = list_nth(cscan->custom_private, HGJ_AGG_GROUP_COLUMNS);
	List	   *operators = list_nth(cscan->custom_private, HGJ_AGG_GROUP_OPERATORS);
	const TargetEntry *tle = resno > 0 ? list_nth(cscan->scan.plan.targetlist, resno - 1) : NULL;
	const Var  *var = tle ? (const Var *) tle->expr : NULL;
	Oid			left;
	Oid			right;
	ListCell   *lc;

	if (var == NULL || !IsA(var, Var) || var->varno != INDEX_VAR ||
		!get_compatible_hash_operators(operator, &left, &right))
		return 0;
	foreach(lc, columns)
		if (lfirst_int(lc) == var->varattno &&
			list_nth_oid(operators, foreach_current_index(lc)) == left)
			return var->varattno;
	return 0;
}

/* HgjScanOfGroups; see join_state.h. */
static HgjSource *
scan_of_groups(PlanState *child, int nkeys, AttrNumber *columns, const Oid *operators,
			   HgjKeyFilterStats **stats)
{
	HgjAggState *state = (HgjAggState *) child;
	HgjSource  *scan = state->feed ? hgj_agg_feed_scan(state->feed) : NULL;

	if (scan == NULL || !may_leave_rows_out(state))
		return NULL;
	for (int k = 0; k < nkeys; k++)
	{
		columns[k] = column_of_scan((CustomScan *) child->plan, columns[k], operators[k]);
		if (columns[k] == 0)
			return NULL;
	}
	*stats = &state->key_filter;
	return scan;
}

/* Step 4: another execution of the same groups begins. */
void
hgj_agg_want_all_rows(HgjAggState *state)
{
	HgjSource  *scan = state->feed ? hgj_agg_feed_scan(state->feed) : NULL;

	if (scan && state->key_filter.tested > 0)
		scan->whole = true;
}

/* From _PG_init: joins may ask about groups. */
void
hgj_install_scan_of_groups(void)
{
	hgj_scan_of_groups = scan_of_groups;
}
