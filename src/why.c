/*-------------------------------------------------------------------------
 *
 * why.c
 *	  hashgraph_join_why(): which nodes of a query's plan are ours, and why the
 *	  others are not, without running the query.
 *
 * 1. Parse the text: one statement, without parameters, that EXPLAIN would plan and
 *	  that is no utility statement.
 * 2. Rewrite and plan it with the caller's privileges, as EXPLAIN does, while
 *	  what is offered and declined is noted (planner/declines.c).
 * 3. Start the executor as EXPLAIN does: privileges on the tables are checked, our
 *	  nodes choose their sources, nothing is read.
 * 4. A row for each join, aggregation and scan, in EXPLAIN's order: of ours the
 *	  engine and, where it was for their time, why there are no workers, of whatever a
 *	  node of ours reads how it does, of the others the reason.  From PostgreSQL 18 on,
 *	  EXPLAIN (HASHGRAPH) has these, too (explain_option.c).
 * 5. Behind them, a row for each subquery that PostgreSQL runs once a row, and that might
 *	  be a join (rewrite/levels.c), and for GROUP BY and WITH that may be planned in another form.
 *	  All words are those of base/reasons.c.
 *
 * Memory: the caller's context, and that of the executor's state, which ends with
 * the function or, on errors, with the transaction.  Locks: those of parsing and
 * planning the query, until the transaction ends.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_state.h"
#include "base/guc.h"
#include "base/plan_format.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "funcapi.h"
#include "join/engines.h"
#include "join/join.h"
#include "miscadmin.h"
#include "node_names.h"
#include "nodes/nodeFuncs.h"
#include "parser/analyze.h"
#include "pipeline/device.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"
#include "why.h"

PG_FUNCTION_INFO_V1(hashgraph_join_why);

/* Columns. */
enum
{
	WHY_LEVEL,
	WHY_NODE,
	WHY_TAKEN,
	WHY_ENGINE,
	WHY_SOURCE,
	WHY_REASON,
	WHY_COLUMNS
};

typedef struct WhyWalk
{
	HgjWhyTaker take;
	void	   *arg;			/* its */
	const HgjDeclines *declines;
	const PlannedStmt *stmt;
	Bitmapset  *subplans;		/* that have been shown, by position */
	int			level;
	PlanState  *reader;			/* the node of ours that reads this one, or NULL */
} WhyWalk;

/* Where hashgraph_join_why()'s rows go. */
typedef struct WhyRows
{
	ReturnSetInfo *rsinfo;
	HgjNodeNames names;
} WhyRows;

static bool
is_our_join(const PlanState *ps)
{
	return hgj_is_join_plan(ps->plan);
}

static bool
is_ours(const PlanState *ps)
{
	return is_our_join(ps) || hgj_is_agg_plan(ps->plan);
}

/*
 * How does the reader read this node?  Sets *name as EXPLAIN prints it; the reason
 * is HGJ_SOURCE_FASTEST, or why it is by tuples.  False: it does not.
 */
static bool
source_of(const PlanState *reader, const PlanState *ps, const char **name,
		  HgjSourceReason *reason)
{
	const HgjSource *source = NULL;

	*reason = HGJ_SOURCE_FASTEST;
	if (reader == NULL)
		return false;
	if (is_our_join(reader))
	{
		const HgjJoinState *join = (const HgjJoinState *) reader;

		source = ps == hgj_join(join)->outer.child ? &hgj_join(join)->outer :
			ps == hgj_join(join)->inner.child ? &hgj_join(join)->inner : NULL;
	}
	else
	{
		const HgjAggState *agg = (const HgjAggState *) reader;

		if (agg->join && ps == agg->child)
		{
			*name = hgj_source_batches.name;
			return true;
		}
		if (agg->feed)
			source = hgj_agg_feed_source(agg->feed, ps);
	}
	if (source == NULL)
		return false;
	*name = source->methods->name;
	*reason = source->reason;
	if (source->methods == &hgj_source_tuples)
		*name = psprintf("%s (%s)", source->methods->name,
						 hgj_source_reason_text(source->reason));
	return true;
}

/* The engine of a node of ours, as far as it is known before it runs. */
static const char *
engine_of(const PlanState *ps, const char **reason)
{
	const HgjPipelineState *device = is_our_join(ps) ?
		hgj_join_pipeline((const HgjJoinState *) ps) : ((const HgjAggState *) ps)->device;
	bool		wanted;
	const HgjEngine *engine;
	HgjError	err = {0};

	if (device && hgj_device_reason(device) != HGJ_DEVICE_FITS)
		*reason = psprintf("no device pipeline: %s",
						   hgj_device_reason_text(hgj_device_reason(device)));
	wanted = is_our_join(ps) ? hgj_engine == HGJ_ENGINE_CUDA ||
		(hgj_engine == HGJ_ENGINE_AUTO && hgj_join_wants_device((const HgjJoinState *) ps)) :
		device && hgj_device_reason(device) == HGJ_DEVICE_FITS;
	if (!wanted)
		return "cpu";
	engine = hgj_cuda_engine(&err);
	if (engine && engine->usable(&err) == HGJ_OK)
		return engine->name;
	*reason = psprintf("%s: %s", hgj_fallback_text(HGJ_FALLBACK_ENGINE), err.message);
	return "cpu";
}

/* Step 4, of one node. */
static void
look_at_node(WhyWalk *walk, PlanState *ps)
{
	HgjNodeKind kind = hgj_node_kind(ps->plan);
	HgjWhy		why = {.ps = ps, .level = walk->level, .taken = is_ours(ps)};
	HgjSourceReason by_tuples;
	bool		is_read = source_of(walk->reader, ps, &why.source, &by_tuples);

	if (why.taken)
	{
		why.engine = engine_of(ps, &why.reason);
		if (why.reason == NULL && walk->declines)
			why.reason = hgj_why_no_workers(walk->declines, ps->plan);
	}
	else if (kind != HGJ_NODE_SCAN)
		why.reason = walk->declines ? hgj_why_not(walk->declines, ps->plan) : NULL;
	else if (!is_read)
		why.reason = hgj_not_ours_text(HGJ_NOT_OURS_NOT_READ);
	else if (by_tuples != HGJ_SOURCE_FASTEST)
		why.reason = hgj_source_reason_text(by_tuples);
	else
		why.taken = true;
	walk->take(walk->arg, &why);
}

/* HgjWhyTaker: a row. */
static void
put_row(void *arg, const HgjWhy *why)
{
	const WhyRows *rows = arg;
	Datum		values[WHY_COLUMNS] = {0};
	bool		nulls[WHY_COLUMNS] = {false};

	values[WHY_LEVEL] = Int32GetDatum(why->level);
	values[WHY_NODE] = CStringGetTextDatum(hgj_node_name(&rows->names, why->ps->plan));
	values[WHY_TAKEN] = BoolGetDatum(why->taken);
	nulls[WHY_ENGINE] = why->engine == NULL;
	nulls[WHY_SOURCE] = why->source == NULL;
	nulls[WHY_REASON] = why->reason == NULL;
	if (why->engine)
		values[WHY_ENGINE] = CStringGetTextDatum(why->engine);
	if (why->source)
		values[WHY_SOURCE] = CStringGetTextDatum(why->source);
	if (why->reason)
		values[WHY_REASON] = CStringGetTextDatum(why->reason);
	tuplestore_putvalues(rows->rsinfo->setResult, rows->rsinfo->setDesc,
						 values, nulls);
}

/* The position of a subplan; -1: the node is not the top of one. */
static int
subplan_number(const WhyWalk *walk, const Plan *plan)
{
	ListCell   *lc;

	foreach(lc, walk->stmt->subplans)
		if (lfirst(lc) == plan)
			return foreach_current_index(lc);
	return -1;
}

/* Step 5: a row for a subquery that depends on the row around it, for GROUP BY, or for a WITH query. */
static void
put_hidden(const WhyRows *rows, HgjHidden hidden)
{
	Datum		values[WHY_COLUMNS] = {0};
	bool		nulls[WHY_COLUMNS] = {false};

	values[WHY_LEVEL] = Int32GetDatum(0);
	values[WHY_NODE] = CStringGetTextDatum(hidden >= HGJ_HIDDEN_REPEATED ? "WITH" :
										   hidden >= HGJ_HIDDEN_EARLY ? "GROUP BY" : "Subquery");
	values[WHY_TAKEN] = BoolGetDatum(hidden == HGJ_HIDDEN_IS_JOIN || hidden == HGJ_HIDDEN_REPEATED ||
									 hidden == HGJ_HIDDEN_EARLY);
	values[WHY_REASON] = CStringGetTextDatum(hgj_hidden_text(hidden));
	nulls[WHY_ENGINE] = nulls[WHY_SOURCE] = true;
	tuplestore_putvalues(rows->rsinfo->setResult, rows->rsinfo->setDesc, values, nulls);
}

/* The node and what is below it.  Subplans are shown once, as EXPLAIN does. */
static bool
walk_node(PlanState *ps, void *context)
{
	WhyWalk    *walk = context;
	WhyWalk		before = *walk;
	int			subplan = subplan_number(walk, ps->plan);

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (subplan >= 0)
	{
		if (bms_is_member(subplan, walk->subplans))
			return false;
		walk->subplans = bms_add_member(walk->subplans, subplan);
		walk->reader = NULL;
	}
	if (hgj_node_kind(ps->plan) != HGJ_NODE_OTHER)
	{
		look_at_node(walk, ps);
		walk->level++;
	}
	/* an aggregation may read the children of an Append */
	if (!IsA(ps, AppendState))
		walk->reader = is_ours(ps) ? ps : NULL;
	planstate_tree_walker(ps, walk_node, walk);
	walk->level = before.level;
	walk->reader = before.reader;
	return false;
}

/* See why.h. */
void
hgj_why_plan(PlanState *top, const PlannedStmt *stmt, const HgjDeclines *declines,
			 HgjWhyTaker take, void *arg)
{
	WhyWalk		walk = {.take = take, .arg = arg, .declines = declines, .stmt = stmt};

	walk_node(top, &walk);
}

/* Steps 2 to 5, of one of the queries that the rewriter has made. */
static void
why_query(ReturnSetInfo *rsinfo, Query *query, const char *text)
{
	HgjDeclines declines = {0};
	WhyRows		rows = {.rsinfo = rsinfo};
	PlannedStmt *stmt = hgj_plan_noting(query, text, &declines);
	ListCell   *lc;
	QueryDesc  *desc = CreateQueryDesc(stmt, text, GetActiveSnapshot(),
									   InvalidSnapshot, None_Receiver, NULL,
									   NULL, 0);

	ExecutorStart(desc, EXEC_FLAG_EXPLAIN_ONLY);
	hgj_node_names(&rows.names, stmt);
	hgj_why_plan(desc->planstate, stmt, &declines, put_row, &rows);
	foreach(lc, declines.hidden)
		put_hidden(&rows, (HgjHidden) lfirst_int(lc));
	ExecutorEnd(desc);
	FreeQueryDesc(desc);
}

/* Errors of parsing point at the query, and not at the one that calls the function. */
static void
say_where(void *sql)
{
	int			position = geterrposition();

	if (position > 0)
	{
		errposition(0);
		internalerrposition(position);
		internalerrquery(sql);
	}
	else
		errcontext("hashgraph_join_why() of \"%s\"", (const char *) sql);
}

static Query *
parse(const char *sql)
{
	List	   *statements = pg_parse_query(sql);
	Query	   *query;

	if (list_length(statements) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("hashgraph_join_why() wants one statement, not %d",
						list_length(statements))));
	query = parse_analyze_fixedparams(linitial_node(RawStmt, statements), sql,
									  NULL, 0, NULL);
	if (query->commandType == CMD_UTILITY)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("hashgraph_join_why() is for statements that are planned, not for utility statements"),
				 errhint("Give it the query that the statement contains.")));
	return query;
}

/* A row per join, aggregation and scan of the plan of a query. */
Datum
hashgraph_join_why(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	char	   *sql = text_to_cstring(PG_GETARG_TEXT_PP(0));
	ErrorContextCallback where = {error_context_stack, say_where, sql};
	ListCell   *lc;

	InitMaterializedSRF(fcinfo, 0);
	error_context_stack = &where;
	foreach(lc, pg_rewrite_query(parse(sql)))
	{
		/* a rule's NOTIFY has no plan */
		if (lfirst_node(Query, lc)->commandType != CMD_UTILITY)
			why_query(rsinfo, lfirst_node(Query, lc), sql);
	}
	error_context_stack = where.previous;
	return (Datum) 0;
}
