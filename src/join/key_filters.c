/*-------------------------------------------------------------------------
 *
 * key_filters.c
 *	  Which joins of a chain are asked about the rows of its bottom table.
 *
 * A star is a chain of joins, and its rows go through them in the planner's
 * order, so that the join that hardly any row survives may come last.  But a row
 * of the bottom table whose key has no match in an inner join is lost whatever
 * the joins below that make of it, and nobody need read it.
 *
 * 1. At executor start each join offers itself to the scan at the bottom of the
 *	  chain on its outer side, if all of its keys are columns of that table, and
 *	  it returns nothing for outer rows without a match.  The joins in between
 *	  must not notice that rows are missing: none of them remembers which inner
 *	  rows have matched, and none of their expressions can raise an error or has
 *	  an effect.  That some of them return rows without a match (left and anti
 *	  joins) does no harm: those rows have the same key.
 * 2. Before the scan fills a batch, it asks which of them have a table, all of
 *	  it, and an engine with a filter for it that is worth asking; and chooses
 *	  among those (filter_order.c).
 * 3. Where the outer side is a HashGraphAgg that groups by the join's keys, a row of its
 *	  table is in a group without a match if its key has none.  So the join offers itself
 *	  to that scan, too, and a subquery with groups makes those alone that the rest of the
 *	  query asks for.  The groups are made when the first is asked for, which is behind the
 *	  build.  A join whose outer side is to be kept for rescans asks for all groups.  A scan
 *	  of the subquery in between, which only names columns, does no harm.
 *
 * Memory: the query's context.  No locks: in a parallel plan every process has
 * filters of its own.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/agg_format.h"
#include "expr/demand.h"
#include "join/join_state.h"
#include "optimizer/optimizer.h"

/* ---- step 1 ------------------------------------------------------------- */

/* Would the join notice if outer rows were missing, or those above it? */
static bool
look_for_notice(const HgjJoinState *join)
{
	const CustomScan *scan = (const CustomScan *) join->js.css.ss.ps.plan;
	EState	   *estate = join->js.css.ss.ps.state;

	return join->js.semantics.mark_inner || join->js.outer.keys_may_raise ||
		hgj_may_raise((Node *) scan->scan.plan.targetlist, estate) ||
		hgj_may_raise((Node *) scan->custom_exprs, estate) ||
		contain_volatile_functions((Node *) scan->scan.plan.targetlist) ||
		contain_volatile_functions((Node *) scan->custom_exprs);
}

/* The answer for this join, which is found once, however many joins of a chain ask for it. */
static bool
notices_missing_rows(HgjJoinState *join)
{
	if (join->probing.notices == HGJ_UNASKED)
		join->probing.notices = look_for_notice(join) ? HGJ_YES : HGJ_NO;
	return join->probing.notices == HGJ_YES;
}

/*
 * The lowest join of the chain on the join's outer side, as far down as none in between
 * notices missing rows: the child has found its own before.
 */
static HgjJoinState *
find_bottom(HgjJoinState *join)
{
	HgjJoinState *child = hgj_source_join(&join->js.outer);

	if (child == NULL)
		return join;
	join->probing.below = child;
	return notices_missing_rows(child) ? child : child->probing.bottom;
}

/* The column of the outer child that the join returns as `resno`, or 0. */
static AttrNumber
outer_column(const HgjJoinState *join, AttrNumber resno)
{
	const CustomScan *scan = (const CustomScan *) join->js.css.ss.ps.plan;
	const TargetEntry *tle = list_nth(scan->scan.plan.targetlist, resno - 1);
	const Var  *var = (const Var *) tle->expr;

	if (!IsA(var, Var) || var->varno != INDEX_VAR || var->varattno <= 0 ||
		var->varattno > list_nth_int(scan->custom_private, HGJ_FACT_OUTER_COLUMNS))
		return 0;
	return var->varattno;
}

/*
 * The lowest join of the chain from this one on, if none of them notices missing rows, and
 * its outer side is a scan that can take another filter.  columns: of what the upper join
 * returns, become those of what the scan does, or 0.  njoins: how many a row goes through.
 * NULL: there is none.
 */
static HgjJoinState *
bottom_of_chain(HgjJoinState *top, int nkeys, AttrNumber *columns, int *njoins)
{
	HgjJoinState *bottom = notices_missing_rows(top) ? NULL : top->probing.bottom;

	if (bottom == NULL || bottom->js.outer.methods != &hgj_source_pages ||
		notices_missing_rows(bottom) ||
		hgj_pages_nfilters(&bottom->js.outer) == HGJ_MOST_KEY_FILTERS)
		return NULL;
	for (*njoins = 1;; (*njoins)++)
	{
		for (int k = 0; k < nkeys; k++)
			columns[k] = columns[k] ? outer_column(top, columns[k]) : 0;
		if (top == bottom)
			return bottom;
		top = hgj_source_join(&top->js.outer);
	}
}

/*
 * The scan below the chain of joins from `top` on is to ask `join` about its rows, which the
 * columns of what `top` returns are keys of; those become the scan's.  saved: nanoseconds that
 * a row costs above the chain.  Sets *stats to what is counted of it.  False: there is no such
 * scan, or it asks enough joins already.
 */
bool
hgj_chain_offer(HgjJoinState *top, HgjJoinState *join, AttrNumber *columns, double saved,
				const HgjKeyFilterStats **stats)
{
	HgjSource  *asks = &join->js.outer;
	int			njoins = 0;
	HgjJoinState *bottom = bottom_of_chain(top, asks->nkeys, columns, &njoins);

	if (bottom == NULL ||
		!hgj_pages_offer(&bottom->js.outer, join, asks, columns,
						 njoins * HGJ_ROW_JOIN_COST + saved, bottom->stats.key_filters))
		return false;
	bottom->probing.filters_early = true;
	*stats = &bottom->stats.key_filters[hgj_pages_nfilters(&bottom->js.outer) - 1];
	return true;
}

/*
 * The node below one that only names a subquery's columns and tests their values, or the node
 * itself; columns become those of that node, 0 where they are none.
 */
static PlanState *
below_subquery(PlanState *child, int nkeys, AttrNumber *columns)
{
	const Plan *plan = child->plan;

	if (!IsA(child, SubqueryScanState) || hgj_may_raise((Node *) plan->targetlist, child->state) ||
		hgj_may_raise((Node *) plan->qual, child->state) ||
		contain_volatile_functions((Node *) plan->targetlist) ||
		contain_volatile_functions((Node *) plan->qual))
		return child;
	for (int k = 0; k < nkeys; k++)
	{
		const TargetEntry *tle = columns[k] > 0 ? list_nth(plan->targetlist, columns[k] - 1) : NULL;

		columns[k] = tle && IsA(tle->expr, Var) ? ((const Var *) tle->expr)->varattno : 0;
	}
	return ((SubqueryScanState *) child)->subplan;
}

/*
 * Step 3: would it be noticed if the inner side were read although there is no outer row?
 * PostgreSQL looks first where an outer row comes cheaper.
 */
static bool
must_peek(const HgjJoinState *join)
{
	return join->js.outer_ps->plan->startup_cost < join->js.inner_ps->plan->total_cost &&
		(hgj_rows_may_raise(join->js.inner_ps) || hgj_calls_volatile(join->js.inner_ps));
}

/* Step 3; columns: the numbers of the keys in what the outer child returns. */
static void
offer_to_groups(HgjJoinState *join, AttrNumber *columns)
{
	const CustomScan *scan = (const CustomScan *) join->js.css.ss.ps.plan;
	List	   *clauses = list_nth(scan->custom_exprs, HGJ_EXPRS_HASH);
	int			nkeys = join->js.outer.nkeys;
	PlanState  *child = below_subquery(join->js.outer.child, nkeys, columns);

	if (hgj_is_agg_plan(child->plan) && !join->passes.rewinds && !must_peek(join) &&
		hgj_offer_to_groups(join, child, columns, clauses))
		join->probing.filters_early = join->probing.filters_groups = true;
}

/* Step 1; columns: the numbers of the keys in what the join below returns. */
static void
offer_to_chain(HgjJoinState *join, AttrNumber *columns)
{
	const HgjKeyFilterStats *stats;

	if (hgj_chain_offer(hgj_source_join(&join->js.outer), join, columns, HGJ_ROW_JOIN_COST,
						&stats))
		join->probing.filters_early = true;
}

/* Steps 1 and 3, once the join's sources are chosen. */
void
hgj_key_filters_offer(HgjJoinState *join)
{
	HgjSource  *source = &join->js.outer;
	AttrNumber *columns;
	MemoryContext old;

	join->probing.bottom = find_bottom(join);
	if (join->js.semantics.fill_outer)
		return;
	join->probing.filters_early |= hgj_pages_quals_may_wait(source);
	old = MemoryContextSwitchTo(join->js.context);
	columns = palloc(mul_size(source->nkeys, sizeof(AttrNumber)));
	for (int k = 0; k < source->nkeys; k++)
		columns[k] = source->keys[k].attno;
	if (hgj_source_join(source))
		offer_to_chain(join, columns);
	else if (source->methods != &hgj_source_pages)
		offer_to_groups(join, columns);
	pfree(columns);
	MemoryContextSwitchTo(old);
}

/* ---- step 2 ------------------------------------------------------------- */

/*
 * Does the join know all the keys that its outer rows could match, and does the
 * engine find it worth asking?  own: the scan is its own outer side.
 */
static bool
can_be_asked(HgjJoinState *join, const HgjSource *scan, bool own)
{
	if (!own && (scan->leave_quals || join->probing.wants_all_groups ||
				 join->use.engine != hgj_cpu_engine() ||
				 join->passes.pass != 1 || !join->passes.last_pass ||
				 join->passes.splitting ||
				 join->passes.has_split))
		return false;
	return hgj_key_filter_begin(join);
}

static void
note_chosen(HgjJoinState *join, bool asked)
{
	join->probing.key_filtered = asked;
}

/* The groups that the join filters rows of are to be kept for another execution: all of them. */
void
hgj_join_wants_all_groups(HgjJoinState *state)
{
	state->probing.wants_all_groups = true;
}

static const PlanState *
looked_up_in(const HgjJoinState *join)
{
	return join->js.inner_ps;
}

const HgjFilterMethods hgj_join_filter = {
	.begin = can_be_asked,
	.ask = hgj_key_filter_ask,
	.ask_packed = hgj_key_filter_ask_packed,
	.chosen = note_chosen,
	.inner = looked_up_in
};
