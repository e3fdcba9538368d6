/*-------------------------------------------------------------------------
 *
 * choose.c
 *	  A query whose subqueries are joins is planned as it is written, and with the joins;
 *	  what costs less is run.
 *
 * PostgreSQL runs a subquery that depends on the row around it once for each row.  The
 * literature makes joins of such subqueries (Galindo-Legaria and Joshi, "Orthogonal
 * Optimization of Subqueries and Aggregation", 2001; Neumann and Kemper, "Unnesting
 * Arbitrary Queries", 2015).
 *
 * 1. A query without a subquery that could be one is not looked at further
 *	  (hgj_may_hide_joins()); nothing is copied.
 * 2. A copy is rewritten (levels.c), if there is something to be rewritten.
 * 3. Both are planned by the planner that was there before.  The costs that count are
 *	  those of all rows or, for a cursor, of the part that cursor_tuple_fraction says.  With
 *	  few rows around a subquery and an index inside, it stays as it is.
 * 4. The plan says, at its topmost node of ours, how many joins were found, and what the
 *	  query would cost as it is written (base/hidden_joins.c).  For hashgraph_join_why(),
 *	  what became of each subquery is noted.
 *
 * The hook stands outside of hashgraph_join.require's, which looks at each of the two
 * plans by itself, and inside of the one that notes what is declined.
 *
 * Memory: the planner's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/guc.h"
#include "base/hidden_joins.h"
#include "optimizer/optimizer.h"
#include "optimizer/planmain.h"
#include "optimizer/planner.h"
#include "planner/declines.h"
#include "planner/planner.h"
#include "rewrite/hidden.h"
#include "rewrite/rewrite.h"

static planner_hook_type previous_planner = NULL;

/* Step 3: of the rows that are going to be fetched. */
static Cost
cost_of(const PlannedStmt *stmt, int cursorOptions)
{
	const Plan *plan = stmt->planTree;

	if ((cursorOptions & CURSOR_OPT_FAST_PLAN) == 0)
		return plan->total_cost;
	return plan->startup_cost +
		cursor_tuple_fraction * (plan->total_cost - plan->startup_cost);
}

/* Step 4: what is true of all of them is said of each that would have become a join. */
static void
note_reasons(const HgjRewriting *rewriting, HgjHidden of_joins)
{
	ListCell   *lc;

	foreach(lc, rewriting->reasons)
	{
		HgjHidden	reason = (HgjHidden) lfirst_int(lc);

		hgj_note_hidden(reason == HGJ_HIDDEN_IS_JOIN ? of_joins : reason);
	}
}

/* Steps 3 and 4; the query is left to be planned by whoever is asked first. */
static PlannedStmt *
plan_both(const HgjRewriting *rewriting, Query *rewritten, Query *parse,
		  const char *query_string, int cursorOptions, ParamListInfo boundParams)
{
	bool		forced = hgj_rewrite == HGJ_REWRITE_FORCE;
	PlannedStmt *written = NULL;
	PlannedStmt *joined;
	PlannerInfo *noted;

	/* errors of folding constants are those of the query as it is written */
	if (!forced)
		written = hgj_plan_by(previous_planner, parse, query_string, cursorOptions, boundParams);
	noted = hgj_noted_query();
	joined = hgj_plan_by(previous_planner, rewritten, query_string, cursorOptions, boundParams);
	if (!forced && cost_of(written, cursorOptions) <= cost_of(joined, cursorOptions))
	{
		hgj_note_query(noted);
		note_reasons(rewriting, HGJ_HIDDEN_COST);
		return written;
	}
	note_reasons(rewriting, HGJ_HIDDEN_IS_JOIN);
	hgj_write_hidden_joins(joined, rewriting->njoins,
						   forced ? -1 : written->planTree->total_cost);
	return joined;
}

static PlannedStmt *
rewriting_planner(Query *parse, const char *query_string, int cursorOptions,
				  ParamListInfo boundParams)
{
	HgjRewriting rewriting = {0};
	Query	   *rewritten;

	if (!hgj_enabled || (hgj_rewrite == HGJ_REWRITE_OFF && !hgj_is_noting()) ||
		!hgj_may_hide_joins(parse))
		return hgj_plan_by(previous_planner, parse, query_string, cursorOptions, boundParams);

	rewritten = copyObject(parse);
	hgj_rewrite_query(&rewriting, rewritten);
	if (rewriting.njoins > 0 && hgj_rewrite != HGJ_REWRITE_OFF)
		return plan_both(&rewriting, rewritten, parse, query_string, cursorOptions,
						 boundParams);
	note_reasons(&rewriting, HGJ_HIDDEN_OFF);
	return hgj_plan_by(previous_planner, parse, query_string, cursorOptions, boundParams);
}

/* Chain into the planner.  Call once per process, from _PG_init. */
void
hgj_install_rewrite_hook(void)
{
	previous_planner = planner_hook;
	planner_hook = rewriting_planner;
}
