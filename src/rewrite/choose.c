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
 * 2. Other queries are planned as they are written.  One that costs next to nothing is done: to
 *	  look for joins, and to plan it again, would take longer than it runs.
 * 3. A copy is rewritten (levels.c), with WITH queries computed where they are read (repeated.c),
 *	  groups restricted to what is around them (restrict.c), and groups made before joins (eager.c);
 *	  if something was found for one of these, another one without it.  All forms are planned by the
 *	  planner that was there before.  The costs that count are those of all rows or, for a cursor, of
 *	  the part that cursor_tuple_fraction says.
 * 4. With few rows around a subquery and an index inside, it stays as it is.  PostgreSQL charges
 *	  a scan for the subquery of each row that it reads, but evaluates it behind the scan's
 *	  cheaper clauses, and charges each run for pages as if no other run had read them.  Both are
 *	  taken off.  It charges joins next to nothing for the subqueries in their conditions: these
 *	  are added.  What runs only for groups that raise errors (guarded.c) is taken off: there are
 *	  next to none.
 * 5. The plan says, at its topmost node of ours, how many joins were found, how many WITH queries
 *	  are computed where they are read, and what the query would cost as it is written
 *	  (base/hidden_joins.c).  For hashgraph_join_why(), what became of each is noted.
 * 6. A cursor over one table can be updated through, and read backwards.  Joined to groups
 *	  it could not, so that what a cursor is declared for is left alone if it is that.
 *
 * The hook stands outside of hashgraph_join.require's, which looks at each of the
 * plans by itself, and inside of the one that notes what is declined.
 *
 * Memory: the planner's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "base/guc.h"
#include "base/hidden_joins.h"
#include "base/plan_format.h"
#include "base/plan_walk.h"
#include "catalog/pg_class.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/planmain.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "planner/declines.h"
#include "planner/planner.h"
#include "rewrite/hidden.h"
#include "rewrite/rewrite.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

/* Step 2: a query of such a cost takes some milliseconds at most. */
#define LEAST_COST	5000

static planner_hook_type previous_planner = NULL;

/* What is asked of a plan's nodes (step 4). */
typedef struct HgjOvercharge
{
	const PlannedStmt *stmt;	/* plan that is walked through */
	bool		rewritten;		/* the plan is of a query with joins in the place of subqueries */
	Cost		cost;			/* what is charged beyond what its subqueries will cost */
} HgjOvercharge;

/* The scans of a subquery's plan that go through an index. */
typedef struct HgjIndexScans
{
	const PlannedStmt *stmt;	/* plan that has the subquery */
	Cost		total;			/* what the scans cost a run */
	Cost		reading;		/* part of it that is charged for reading pages */
	double		pages;			/* pages of their tables and indexes */
} HgjIndexScans;

/* What a clause with a subquery is taken to let pass: selfuncs.h's, as nothing is known of it. */
static Selectivity
part_passed(const Node *clause)
{
	if (IsA(clause, OpExpr))
		return get_oprrest(((const OpExpr *) clause)->opno) == F_EQSEL ? DEFAULT_EQ_SEL :
			DEFAULT_INEQ_SEL;
	if (IsA(clause, NullTest) && ((const NullTest *) clause)->nulltesttype == IS_NULL)
		return DEFAULT_UNK_SEL;
	/* clause_selectivity() has no other value for what it does not know */
	return 0.5;
}

/* Rows and pages of a relation, as it was last analysed. */
static void
size_of(Oid relation, double *rows, double *pages)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));

	*rows = *pages = 0;
	if (!HeapTupleIsValid(tuple))
		return;
	*rows = ((Form_pg_class) GETSTRUCT(tuple))->reltuples;
	*pages = ((Form_pg_class) GETSTRUCT(tuple))->relpages;
	ReleaseSysCache(tuple);
}

static Oid
relation_of(const Plan *scan, const PlannedStmt *stmt)
{
	return rt_fetch(((const Scan *) scan)->scanrelid, stmt->rtable)->relid;
}

/* The rows that a scan reads: those of its table, at most; -1 for a node that scans no table. */
static double
rows_read(const Plan *plan, const PlannedStmt *stmt)
{
	double		rows;
	double		pages;

	if (!IsA(plan, SeqScan) && !IsA(plan, IndexScan) && !IsA(plan, IndexOnlyScan) &&
		!IsA(plan, BitmapHeapScan))
		return -1;
	size_of(relation_of(plan, stmt), &rows, &pages);
	return rows;
}

/* HgjPlanVisit */
static void
add_index_scan(Plan *plan, void *context)
{
	HgjIndexScans *scans = context;
	double		rows;
	double		pages;
	Oid			index = IsA(plan, IndexScan) ? ((const IndexScan *) plan)->indexid :
		IsA(plan, IndexOnlyScan) ? ((const IndexOnlyScan *) plan)->indexid : InvalidOid;

	if (OidIsValid(index) || IsA(plan, BitmapHeapScan))
	{
		scans->total += plan->total_cost;
		scans->reading += Max(plan->total_cost - plan->startup_cost -
							  plan->plan_rows * (cpu_tuple_cost + cpu_index_tuple_cost), 0);
		size_of(relation_of(plan, scans->stmt), &rows, &pages);
		scans->pages += pages;
		size_of(index, &rows, &pages);
		scans->pages += pages;
	}
	hgj_visit_children(plan, add_index_scan, context);
}

/*
 * Step 4: of this number of runs, what is charged for pages that have been read before.  PostgreSQL
 * charges each run for its own, as if they came from a disk.  Where a table and its index fit into
 * the cache, each is taken to be read once, at what the join is charged for reading the table, and
 * no more of them than the runs look at.
 */
static Cost
read_again(const SubPlan *subplan, double runs, const PlannedStmt *stmt)
{
	HgjIndexScans scans = {stmt, 0, 0, 0};
	Cost		reading;
	double		pages;

	add_index_scan(list_nth(stmt->subplans, subplan->plan_id - 1), &scans);
	if (scans.total <= 0 || scans.pages > effective_cache_size || random_page_cost <= 0)
		return 0;
	reading = runs * subplan->per_call_cost * scans.reading / scans.total;
	pages = Min(scans.pages, reading / random_page_cost);
	return Max(reading - pages * seq_page_cost, 0);
}

/* The rows for which a node computes what it returns: an aggregation does for those that come in. */
static double
rows_computed(const Plan *plan)
{
	if (IsA(plan, Agg))
		return plan->lefttree->plan_rows;
	if (hgj_is_agg_plan(plan))
		return ((const Plan *) linitial(((const CustomScan *) plan)->custom_plans))->plan_rows;
	return plan->plan_rows;
}

/* Subqueries of a node's expressions that run for each row. */
typedef struct HgjSubplans
{
	bool		rewritten;		/* they may be of groups that are not computed */
	List	   *each;			/* SubPlans of each row */
	List	   *seldom;			/* SubPlans of rows that ask for a group that is not computed */
} HgjSubplans;

/* CASE WHEN a group is not computed THEN the subquery as it is written (guarded.c) */
static bool
runs_seldom(const CaseExpr *expr)
{
	const CaseWhen *when = linitial_node(CaseWhen, expr->args);
	const BooleanTest *test = (const BooleanTest *) when->expr;

	return expr->arg == NULL && list_length(expr->args) == 1 && IsA(when->result, SubPlan) &&
		IsA(test, BooleanTest) && test->booltesttype == IS_FALSE && IsA(test->arg, Var);
}

static bool
find_subplans(Node *node, void *context)
{
	HgjSubplans *subplans = context;

	if (node == NULL)
		return false;
	if (subplans->rewritten && IsA(node, CaseExpr) && runs_seldom((CaseExpr *) node))
	{
		const CaseExpr *expr = (const CaseExpr *) node;

		subplans->seldom = lappend(subplans->seldom,
								   linitial_node(CaseWhen, expr->args)->result);
		return find_subplans((Node *) expr->defresult, context);
	}
	if (IsA(node, SubPlan) && !((const SubPlan *) node)->useHashTable)
		subplans->each = lappend(subplans->each, node);
	return expression_tree_walker(node, find_subplans, context);
}

/* HgjPlanVisit: context is what the nodes below another one cost. */
static void
add_cost(Plan *plan, void *context)
{
	*(Cost *) context += plan->total_cost;
}

/* What a node is charged for its own work. */
static Cost
own_cost(Plan *plan)
{
	Cost		below = 0;

	hgj_visit_children(plan, add_cost, &below);
	return plan->total_cost - below;
}

/* What a number of runs of each of these subqueries costs. */
static Cost
cost_of_runs(const List *subplans, double runs)
{
	Cost		cost = 0;
	ListCell   *lc;

	foreach(lc, subplans)
		cost += runs * ((const SubPlan *) lfirst(lc))->per_call_cost;
	return cost;
}

/*
 * Step 4: what a node is charged beyond what these subqueries of it cost; less than nothing if
 * it is charged for a part of them.  How often a nested loop's inner side runs is not known
 * here, so neither is what is charged for its own work.
 */
static Cost
overcharge_of(Plan *plan, const List *subplans, double runs, const PlannedStmt *stmt)
{
	Cost		again = 0;
	Cost		missing;
	ListCell   *lc;

	if (subplans == NIL)
		return 0;
	foreach(lc, subplans)
		again += read_again(lfirst(lc), runs, stmt);
	missing = Max(cost_of_runs(subplans, runs) - own_cost(plan), 0);
	/* nor does a node of ours that is forced cost what it does */
	if (IsA(plan, NestLoop) || hgj_force)
		return missing > 0 ? 0 : again;
	return again - missing;
}

/* Step 4: what a node is charged for subqueries that run seldom, if it is charged for them. */
static Cost
charged_for_seldom(Plan *plan, const List *subplans, double runs)
{
	Cost		charged = cost_of_runs(subplans, runs);

	return charged <= own_cost(plan) ? charged : 0;
}

/* The clauses that a node evaluates for the rows that it has read, or that its keys have found. */
static List *
conditions_of(const Plan *plan)
{
	if (hgj_is_join_plan(plan))
	{
		const List *expressions = ((const CustomScan *) plan)->custom_exprs;

		return list_concat_copy(list_nth(expressions, HGJ_EXPRS_JOIN),
								list_nth(expressions, HGJ_EXPRS_FILTER));
	}
	if (IsA(plan, NestLoop) || IsA(plan, HashJoin) || IsA(plan, MergeJoin))
		return list_concat_copy(((const Join *) plan)->joinqual, plan->qual);
	return plan->qual;
}

/* What a scan is charged for a subquery of rows that do not come to it. */
static Cost
charged_for_others(const Plan *plan, const List *subplans, double rows, const PlannedStmt *stmt)
{
	Cost		per_row = cost_of_runs(subplans, 1);
	double		read = rows_read(plan, stmt);

	if (per_row <= 0 || read <= rows)
		return 0;
	/* an index may have left fewer rows; they have not cost more than the scan does */
	read = Min(read, (plan->total_cost - plan->startup_cost) / per_row);
	return Max(read - rows, 0) * per_row;
}

/*
 * Step 4, HgjPlanVisit: of a node's clauses, for the rows that come to them, which are those that
 * it returns by the clauses' selectivity; and of what it computes.
 */
static void
add_overcharge(Plan *plan, void *context)
{
	HgjOvercharge *overcharge = context;
	const PlannedStmt *stmt = overcharge->stmt;
	HgjSubplans subplans = {overcharge->rewritten, NIL, NIL};
	HgjSubplans returned = {overcharge->rewritten, NIL, NIL};
	double		rows = plan->plan_rows;
	ListCell   *lc;

	foreach(lc, conditions_of(plan))
	{
		int			before = list_length(subplans.each);

		(void) find_subplans(lfirst(lc), &subplans);
		if (list_length(subplans.each) > before)
			rows /= part_passed(lfirst(lc));
	}
	(void) find_subplans((Node *) plan->targetlist, &returned);
	if (hgj_is_agg_plan(plan))
		(void) find_subplans((Node *) ((CustomScan *) plan)->custom_exprs, &returned);
	overcharge->cost += charged_for_others(plan, subplans.each, rows, stmt) +
		overcharge_of(plan, subplans.each, rows, stmt) +
		overcharge_of(plan, returned.each, rows_computed(plan), stmt) +
		charged_for_seldom(plan, subplans.seldom, plan->plan_rows) +
		charged_for_seldom(plan, returned.seldom, rows_computed(plan));
	if (IsA(plan, NestLoop))
		add_overcharge(plan->lefttree, context);
	else
		hgj_visit_children(plan, add_overcharge, context);
}

/* Steps 3 and 4: of the rows that are going to be fetched. */
static Cost
cost_of(const PlannedStmt *stmt, bool rewritten, int cursorOptions)
{
	Plan	   *plan = stmt->planTree;
	HgjOvercharge overcharge = {stmt, rewritten, 0};
	Cost		total;
	Cost		startup;

	add_overcharge(plan, &overcharge);
	total = Max(plan->total_cost - overcharge.cost, 0);
	startup = Min(plan->startup_cost, total);
	if ((cursorOptions & CURSOR_OPT_FAST_PLAN) != 0)
		total = startup + cursor_tuple_fraction * (total - startup);
	return total;
}

/* Step 6: could it be a scan of one table? */
static bool
is_simple_cursor(const Query *query, int cursorOptions)
{
	return (cursorOptions & CURSOR_OPT_FAST_PLAN) != 0 && !query->hasAggs &&
		query->groupClause == NIL && query->distinctClause == NIL &&
		query->setOperations == NULL && list_length(query->jointree->fromlist) == 1 &&
		IsA(linitial(query->jointree->fromlist), RangeTblRef);
}

/*
 * Step 5: what is true of all of them is said of each subquery that would have become a join, of
 * each WITH query that would have been repeated, and of GROUP BY.
 */
static void
note_reasons(const HgjRewriting *rewriting, HgjHidden of_joins, HgjHidden of_repeated,
			 HgjHidden of_early)
{
	ListCell   *lc;

	foreach(lc, rewriting->reasons)
	{
		HgjHidden	reason = (HgjHidden) lfirst_int(lc);

		hgj_note_hidden(reason == HGJ_HIDDEN_IS_JOIN ? of_joins :
						reason == HGJ_HIDDEN_REPEATED ? of_repeated :
						reason == HGJ_HIDDEN_EARLY ? of_early : reason);
	}
}

/* One of the forms of a query (steps 2 and 3). */
typedef struct HgjForm
{
	HgjRewriting rewriting;		/* what has been found in it */
	Query	   *query;			/* query to be planned */
	PlannedStmt *stmt;			/* plan, or NULL */
	Cost		cost;			/* what the rows that are going to be fetched cost by it */
	PlannerInfo *noted;			/* what is noted of the plan for hashgraph_join_why() */
} HgjForm;

/* What the planner is called with, beside the query. */
typedef struct HgjCall
{
	const char *query_string;	/* text of the query */
	int			cursorOptions;	/* options of the cursor that it is planned for */
	ParamListInfo boundParams;	/* parameters whose values are known */
} HgjCall;

/* Is there something in the form that the query as it is written has not? */
static bool
is_rewritten(const HgjForm *form)
{
	return form->rewriting.njoins > 0 || form->rewriting.nrepeated > 0 || form->rewriting.ngrouped > 0;
}

static void
plan_form(HgjForm *form, const HgjCall *call)
{
	form->stmt = hgj_plan_by(previous_planner, form->query, call->query_string,
							 call->cursorOptions, call->boundParams);
	form->noted = hgj_noted_query();
	form->cost = cost_of(form->stmt, is_rewritten(form), call->cursorOptions);
}

/* Step 3: the query with the joins, and with what is to be attempted. */
static HgjForm
rewrite(const Query *parse, HgjAttempts attempts)
{
	HgjForm		form = {{0}};

	form.rewriting.attempts = attempts;
	form.query = copyObject((Query *) parse);
	hgj_rewrite_query(&form.rewriting, form.query);
	return form;
}

/*
 * What was found of WITH queries, or of GROUP BY, by a form that has attempted it, remains to be said
 * of one that has not.
 */
static void
keep_reasons(HgjForm *form, const HgjForm *joined)
{
	HgjAttempts attempts = form->rewriting.attempts;
	ListCell   *lc;

	foreach(lc, joined->rewriting.reasons)
	{
		int			reason = lfirst_int(lc);

		if (!attempts.repeats && (reason == HGJ_HIDDEN_REPEATED || reason == HGJ_HIDDEN_KEPT))
			form->rewriting.reasons = lappend_int(form->rewriting.reasons,
												  reason == HGJ_HIDDEN_KEPT ? reason : HGJ_HIDDEN_KEPT_COST);
		if (!attempts.groups_early && reason == HGJ_HIDDEN_EARLY)
			form->rewriting.reasons = lappend_int(form->rewriting.reasons, HGJ_HIDDEN_LATE);
	}
}

/* Step 3: a form without one of these, if it costs less. */
static void
try_without(HgjForm *joined, const Query *parse, HgjAttempts attempts, const HgjCall *call)
{
	HgjForm		form = rewrite(parse, attempts);

	if (!is_rewritten(&form))
		return;
	plan_form(&form, call);
	if (form.cost > joined->cost)
		return;
	keep_reasons(&form, joined);
	*joined = form;
}

/*
 * Steps 3 and 5: the plan of the form that costs least.  joined: with all that can be repeated, all
 * that groups can be restricted to, and all groups that can be made before joins; written: NULL if
 * joins are forced
 */
static PlannedStmt *
plan_joined(HgjForm *joined, const Query *parse, const HgjForm *written, const HgjCall *call)
{
	const HgjRewriting *rewriting = &joined->rewriting;
	bool		repeats = rewriting->nrepeated > 0;
	bool		early = rewriting->ngrouped > 0;

	plan_form(joined, call);
	if (written && rewriting->nrestrictions > 0)
		try_without(joined, parse, (HgjAttempts) {true, false, true}, call);
	if (written && repeats)
		try_without(joined, parse, (HgjAttempts) {false, true, true}, call);
	if (written && early)
		try_without(joined, parse, (HgjAttempts) {true, true, false}, call);
	if (written && written->cost <= joined->cost)
	{
		hgj_note_query(written->noted);
		note_reasons(rewriting, HGJ_HIDDEN_COST, HGJ_HIDDEN_KEPT_COST, HGJ_HIDDEN_LATE);
		return written->stmt;
	}
	hgj_note_query(joined->noted);
	note_reasons(rewriting, HGJ_HIDDEN_IS_JOIN, HGJ_HIDDEN_REPEATED, HGJ_HIDDEN_EARLY);
	hgj_write_hidden_joins(joined->stmt,
						   (int[HGJ_HIDDEN_COST_HIGH]) {
							   [HGJ_HIDDEN_JOINS] = rewriting->njoins,
							   [HGJ_HIDDEN_RESTRICTIONS] = rewriting->nrestrictions,
							   [HGJ_HIDDEN_REPEATS] = rewriting->nrepeated,
							   [HGJ_HIDDEN_EARLY_GROUPS] = rewriting->ngrouped
						   }, written ? cost_of(written->stmt, false, 0) : -1);
	return joined->stmt;
}

static PlannedStmt *
rewriting_planner(Query *parse, const char *query_string, int cursorOptions,
				  ParamListInfo boundParams)
{
	HgjCall		call = {query_string, cursorOptions, boundParams};
	HgjForm		written = {{0}};
	HgjForm		joined;
	bool		forced = hgj_rewrite == HGJ_REWRITE_FORCE;
	bool		is_cheap;

	if (!hgj_enabled || (hgj_rewrite == HGJ_REWRITE_OFF && !hgj_is_noting()) ||
		is_simple_cursor(parse, cursorOptions) || !hgj_may_hide_joins(parse))
		return hgj_plan_by(previous_planner, parse, query_string, cursorOptions, boundParams);

	if (!forced)
	{
		written.query = copyObject(parse);
		plan_form(&written, &call);
	}
	is_cheap = !forced && written.cost < LEAST_COST;
	if (is_cheap && !hgj_is_noting())
		return written.stmt;

	joined = rewrite(parse, (HgjAttempts) {true, true, true});
	if (is_rewritten(&joined) && hgj_rewrite != HGJ_REWRITE_OFF && !is_cheap)
		return plan_joined(&joined, parse, forced ? NULL : &written, &call);
	if (hgj_rewrite == HGJ_REWRITE_OFF)
		note_reasons(&joined.rewriting, HGJ_HIDDEN_OFF, HGJ_HIDDEN_KEPT_OFF, HGJ_HIDDEN_LATE_OFF);
	else
		note_reasons(&joined.rewriting, HGJ_HIDDEN_COST, HGJ_HIDDEN_KEPT_COST, HGJ_HIDDEN_LATE);
	if (written.stmt)
		return written.stmt;
	return hgj_plan_by(previous_planner, parse, query_string, cursorOptions, boundParams);
}

/* Chain into the planner.  Call once per process, from _PG_init. */
void
hgj_install_rewrite_hook(void)
{
	previous_planner = planner_hook;
	planner_hook = rewriting_planner;
}
