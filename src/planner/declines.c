/*-------------------------------------------------------------------------
 *
 * declines.c
 *	  Note what is offered and declined while a query is planned.
 *
 * 1. hgj_plan_noting() plans a query while a collector is set.  join_path.c and
 *	  agg_path.c then note each join and aggregation that the planner asks them
 *	  about, with the reason if they decline it.  Nothing is noted without a
 *	  collector.
 * 2. Planning can call functions that plan queries of their own: those go without
 *	  the collector, as do calls of the planner by which others see what a query
 *	  would cost.
 * 3. The query's PlannerInfo is noted when its final paths are there: from it
 *	  chosen_paths.c finds the paths that the plan was made of.
 * 4. A join is known by the PlannerInfo and the relations of its two sides.  It is
 *	  asked about several times, as a join of several types and in both orders; if
 *	  one of them was offered, that counts, or else the last decline in the order
 *	  of the plan.
 *
 * Memory: notes live in the context that the collector names, the caller's, and the
 * planner's own structures in the current one, which has to be as long-lived.  The
 * collector is put back on errors, too.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "planner/declines.h"
#include "planner/planner.h"
#include "tcop/tcopprot.h"

static planner_hook_type previous_planner = NULL;
static HgjDeclines *collector = NULL;	/* NULL: nobody wants to know */

static void
note(List **notes, const HgjNoted *what)
{
	MemoryContext before = MemoryContextSwitchTo(collector->context);
	HgjNoted   *noted = palloc(sizeof(HgjNoted));

	*noted = *what;
	noted->outer = bms_copy(what->outer);
	noted->inner = bms_copy(what->inner);
	*notes = lappend(*notes, noted);
	MemoryContextSwitchTo(before);
}

/* Step 1: does somebody want to know what is offered and declined? */
bool
hgj_is_noting(void)
{
	return collector != NULL;
}

/* Step 3, of each query and subquery: the query itself has no parent. */
void
hgj_note_query(PlannerInfo *root)
{
	if (collector && root && root->parent_root == NULL)
		collector->top = root;
}

/* Which is that, of the query planned last?  NULL: nobody wants to know. */
PlannerInfo *
hgj_noted_query(void)
{
	return collector ? collector->top : NULL;
}

/* What has become of a subquery (rewrite/choose.c). */
void
hgj_note_hidden(HgjHidden hidden)
{
	MemoryContext before;

	if (collector == NULL)
		return;
	before = MemoryContextSwitchTo(collector->context);
	collector->hidden = lappend_int(collector->hidden, (int) hidden);
	MemoryContextSwitchTo(before);
}

/* A join of the two has been offered (HGJ_DECLINE_NOTHING), or declined. */
void
hgj_note_join(PlannerInfo *root, Relids outer, Relids inner, HgjDecline decline)
{
	const HgjNoted what = {.root = root, .outer = outer, .inner = inner,
	.decline = (int) decline};

	if (collector)
		note(&collector->joins, &what);
}

/* The same of an aggregation; grouped: NULL, or the partition's relations. */
void
hgj_note_aggregation(PlannerInfo *root, Relids grouped, HgjAggDecline decline,
					 HgjAggDecline partial_decline)
{
	const HgjNoted what = {.root = root, .outer = grouped, .decline = (int) decline,
	.partial_decline = (int) partial_decline};

	if (collector)
		note(&collector->aggregations, &what);
}

/* Workers for this relation would cost more than they save; NULL: for the query's groups. */
void
hgj_note_dear_workers(PlannerInfo *root, Relids relids)
{
	const HgjNoted what = {.root = root, .outer = relids};

	if (collector)
		note(&collector->dear_workers, &what);
}

/* Has that been noted? */
bool
hgj_noted_dear_workers(const HgjDeclines *declines, PlannerInfo *root, Relids relids)
{
	ListCell   *lc;

	foreach(lc, declines->dear_workers)
	{
		const HgjNoted *noted = lfirst(lc);

		if (noted->root == root && bms_equal(noted->outer, relids))
			return true;
	}
	return false;
}

/* Step 4; NULL: nobody has asked. */
const HgjNoted *
hgj_noted_join(const HgjDeclines *declines, PlannerInfo *root, Relids outer,
			   Relids inner)
{
	const HgjNoted *same_order = NULL;
	const HgjNoted *other_order = NULL;
	ListCell   *lc;

	foreach(lc, declines->joins)
	{
		const HgjNoted *noted = lfirst(lc);
		bool		same = bms_equal(noted->outer, outer) &&
			bms_equal(noted->inner, inner);

		if (noted->root != root ||
			!(same || (bms_equal(noted->outer, inner) &&
					   bms_equal(noted->inner, outer))))
			continue;
		if (noted->decline == HGJ_DECLINE_NOTHING)
			return noted;
		if (same)
			same_order = noted;
		else
			other_order = noted;
	}
	return same_order ? same_order : other_order;
}

/* NULL: nobody has asked, or there was nothing to aggregate for us. */
const HgjNoted *
hgj_noted_aggregation(const HgjDeclines *declines, PlannerInfo *root,
					  Relids grouped)
{
	ListCell   *lc;

	foreach(lc, declines->aggregations)
	{
		const HgjNoted *noted = lfirst(lc);

		if (noted->root == root && bms_equal(noted->outer, grouped))
			return noted;
	}
	return NULL;
}

/* Step 2: only the first call, outside of which there is none, is the query's. */
static PlannedStmt *
noting_planner(Query *parse, const char *query_string, int cursorOptions,
			   ParamListInfo boundParams)
{
	HgjDeclines *own = collector;
	PlannedStmt *stmt;

	if (own == NULL)
		return hgj_plan_by(previous_planner, parse, query_string, cursorOptions, boundParams);
	if (!own->begun)
	{
		own->begun = true;
		return hgj_plan_by(previous_planner, parse, query_string, cursorOptions, boundParams);
	}
	collector = NULL;
	PG_TRY();
	{
		stmt = hgj_plan_by(previous_planner, parse, query_string, cursorOptions, boundParams);
	}
	PG_FINALLY();
	{
		collector = own;
	}
	PG_END_TRY();
	return stmt;
}

/*
 * Let the function plan a query, and whatever else, and note in *declines, which the
 * caller has zeroed, what is offered and declined by the first call of the planner.
 * hgj_match_paths() is the caller's.
 */
void
hgj_note_while(HgjDeclines *declines, void (*run) (void *arg), void *arg)
{
	HgjDeclines *before = collector;

	declines->context = CurrentMemoryContext;
	collector = declines;
	PG_TRY();
	{
		run(arg);
	}
	PG_FINALLY();
	{
		collector = before;
	}
	PG_END_TRY();
}

/* What hgj_plan_noting() hands to the planner, and gets back. */
typedef struct Planning
{
	Query	   *query;
	const char *text;
	PlannedStmt *stmt;
} Planning;

static void
plan_query(void *arg)
{
	Planning   *planning = arg;

	planning->stmt = pg_plan_query(planning->query, planning->text,
								   CURSOR_OPT_PARALLEL_OK, NULL);
}

/*
 * Plan a query as EXPLAIN would, and note in *declines, which the caller has
 * zeroed, what is offered and declined.
 */
PlannedStmt *
hgj_plan_noting(Query *query, const char *text, HgjDeclines *declines)
{
	Planning	planning = {query, text, NULL};

	hgj_note_while(declines, plan_query, &planning);
	hgj_match_paths(declines, planning.stmt);
	return planning.stmt;
}

/* Chain into the planner.  Call once per process, from _PG_init. */
void
hgj_install_declines_hook(void)
{
	previous_planner = planner_hook;
	planner_hook = noting_planner;
}
