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
 *	  few rows around a subquery and an index inside, it stays as it is.  PostgreSQL charges a
 *	  scan for the subquery of each row that it reads, but evaluates it behind the scan's
 *	  cheaper clauses: what is charged for rows that these remove is taken off.
 * 4. The plan says, at its topmost node of ours, how many joins were found, and what the
 *	  query would cost as it is written (base/hidden_joins.c).  For hashgraph_join_why(),
 *	  what became of each subquery is noted.
 * 5. A cursor over one table can be updated through, and read backwards.  Joined to groups
 *	  it could not, so that what a cursor is declared for is left alone if it is that.
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
#include "base/plan_walk.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/planmain.h"
#include "optimizer/planner.h"
#include "planner/declines.h"
#include "planner/planner.h"
#include "rewrite/hidden.h"
#include "rewrite/rewrite.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

static planner_hook_type previous_planner = NULL;

/* What a clause with a subquery is taken to let pass: selfuncs.h's, as nothing is known of it. */
static Selectivity
part_passed(const Node *clause)
{
	if (IsA(clause, OpExpr) && get_oprrest(((const OpExpr *) clause)->opno) == F_EQSEL)
		return DEFAULT_EQ_SEL;
	if (IsA(clause, NullTest) && ((const NullTest *) clause)->nulltesttype == IS_NULL)
		return DEFAULT_UNK_SEL;
	return DEFAULT_INEQ_SEL;
}

/* Adds up what one evaluation of an expression's subqueries costs. */
static bool
add_subplans(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan))
		*(Cost *) context += ((const SubPlan *) node)->per_call_cost;
	return expression_tree_walker(node, add_subplans, context);
}

/*
 * Step 3, HgjPlanVisit: what a scan is charged for its subqueries beyond the rows that come
 * to them, which are those that it returns by the clauses' selectivity.
 */
static void
add_overcharge(Plan *plan, void *context)
{
	Cost		per_row = 0;
	double		rows = plan->plan_rows;
	ListCell   *lc;

	foreach(lc, plan->qual)
	{
		Cost		of_clause = 0;

		(void) add_subplans(lfirst(lc), &of_clause);
		if (of_clause > 0)
			rows /= part_passed(lfirst(lc));
		per_row += of_clause;
	}
	if (plan->lefttree == NULL && per_row > 0)
		*(Cost *) context += Max(plan->total_cost - plan->startup_cost - per_row * rows, 0);
	/* how often the inner side of a nested loop runs is not known here */
	if (IsA(plan, NestLoop))
		add_overcharge(plan->lefttree, context);
	else
		hgj_visit_children(plan, add_overcharge, context);
}

/* Step 3: of the rows that are going to be fetched. */
static Cost
cost_of(const PlannedStmt *stmt, int cursorOptions)
{
	Plan	   *plan = stmt->planTree;
	Cost		overcharge = 0;
	Cost		total;
	Cost		startup;

	add_overcharge(plan, &overcharge);
	total = Max(plan->total_cost - overcharge, 0);
	startup = Min(plan->startup_cost, total);
	if ((cursorOptions & CURSOR_OPT_FAST_PLAN) != 0)
		total = startup + cursor_tuple_fraction * (total - startup);
	return total;
}

/* Step 5: could it be a scan of one table? */
static bool
is_simple_cursor(const Query *query, int cursorOptions)
{
	return (cursorOptions & CURSOR_OPT_FAST_PLAN) != 0 && !query->hasAggs &&
		query->groupClause == NIL && query->distinctClause == NIL &&
		query->setOperations == NULL && list_length(query->jointree->fromlist) == 1 &&
		IsA(linitial(query->jointree->fromlist), RangeTblRef);
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
						   forced ? -1 : cost_of(written, 0));
	return joined;
}

static PlannedStmt *
rewriting_planner(Query *parse, const char *query_string, int cursorOptions,
				  ParamListInfo boundParams)
{
	HgjRewriting rewriting = {0};
	Query	   *rewritten;

	if (!hgj_enabled || (hgj_rewrite == HGJ_REWRITE_OFF && !hgj_is_noting()) ||
		is_simple_cursor(parse, cursorOptions) || !hgj_may_hide_joins(parse))
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
