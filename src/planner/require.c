/*-------------------------------------------------------------------------
 *
 * require.c
 *	  hashgraph_join.require: make a test fail whose query did not use us.
 *
 * 1. While a statement is planned, join_path.c notes that there was a join for
 *	  which it could add a path (also when it did not, for lack of rows).
 * 2. When the plan is done, look for a HashGraphJoin in it, and for one of
 *	  PostgreSQL's own hash joins.  A noted join but no node of ours, or any
 *	  hash join that is not ours (even where we had a reason to decline: a test
 *	  that requires us would test nothing), is an error.
 * 3. With "aggregate", the same for aggregations: agg_path.c notes that there
 *	  was one that it could add a path for, and an Agg or Group of PostgreSQL's
 *	  own right above a HashGraphJoin is an error then, if all its aggregates are
 *	  of the supported kind (others in the statement may have been declined).
 *	  Where it has noted a table's aggregation, so is one right above a sequential
 *	  scan.  So is a partial one, in workers or of a partition, as what workers return
 *	  could have been ours, too.
 * 4. With "cuda", a HashGraphJoin that is not planned for a GPU is an error; when
 *	  it is run, so is one that cannot run there (join/engines.c).
 *
 * The note lives on the stack of the planner hook, one per nesting level:
 * planning can call functions that plan queries of their own.  No memory, no
 * locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/guc.h"
#include "base/plan_walk.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/planner.h"
#include "planner/planner.h"

typedef struct PlanUse
{
	bool		ours;
	bool		stock_hash_join;
	bool		stock_aggregate;
	bool		stock_scan_aggregate;
	bool		on_cpu;			/* a join of ours that is not planned for a GPU */
} PlanUse;

/* What could have been ours in the statement. */
typedef struct Seen
{
	bool		join;
	bool		aggregate;
	bool		scan;			/* a table's aggregation */
} Seen;

static planner_hook_type previous_planner = NULL;
static Seen *seen_now = NULL;	/* of the innermost planner call, or NULL */

/* A join of the statement being planned has got a path of ours. */
void
hgj_require_note_join(void)
{
	if (seen_now)
		seen_now->join = true;
}

/* An aggregation of the statement being planned has. */
void
hgj_require_note_aggregate(void)
{
	if (seen_now)
		seen_now->aggregate = true;
}

/* The same of a table. */
void
hgj_require_note_scan(void)
{
	if (seen_now)
		seen_now->scan = true;
}

static bool
has_unsupported_aggregate(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, GroupingFunc))
		return true;
	if (IsA(node, Aggref))
		return !hgj_aggregate_supported((Aggref *) node);
	return expression_tree_walker(node, has_unsupported_aggregate, context);
}

/* Does this node aggregate a HashGraphJoin, or a table, as a HashGraphAgg might? */
static void
look_at_aggregate(const Plan *plan, PlanUse *use)
{
	const Plan *child = plan->lefttree;

	if (IsA(plan, Agg) && ((const Agg *) plan)->groupingSets != NIL)
		return;
	while (child && (IsA(child, Gather) || IsA(child, GatherMerge) ||
					 IsA(child, Sort) || IsA(child, IncrementalSort)))
		child = child->lefttree;
	if (child == NULL ||
		has_unsupported_aggregate((Node *) plan->targetlist, NULL) ||
		has_unsupported_aggregate((Node *) plan->qual, NULL))
		return;
	if (hgj_is_join_plan(child))
		use->stock_aggregate = true;
	else if (IsA(child, SeqScan))
		use->stock_scan_aggregate = true;
}

static bool
planned_for_gpu(const CustomScan *join)
{
	return hgj_engine == HGJ_ENGINE_CUDA ||
		(hgj_engine == HGJ_ENGINE_AUTO &&
		 list_nth_int(join->custom_private, HGJ_FACT_DEVICE) != 0);
}

/* Subplans of expressions are in PlannedStmt.subplans, seen by the caller. */
static void
look_at_plan(Plan *plan, void *context)
{
	PlanUse    *use = context;

	if (IsA(plan, HashJoin))
		use->stock_hash_join = true;
	else if (IsA(plan, Agg) || IsA(plan, Group))
		look_at_aggregate(plan, use);
	else if (hgj_is_join_plan(plan))
	{
		use->ours = true;
		if (!planned_for_gpu((CustomScan *) plan))
			use->on_cpu = true;
	}
	hgj_visit_children(plan, look_at_plan, use);
}

static PlannedStmt *
hgj_planner(Query *parse, const char *query_string, int cursorOptions,
			ParamListInfo boundParams)
{
	PlannedStmt *stmt;
	Seen	   *outer_seen = seen_now;
	Seen		seen = {0};
	PlanUse		use = {0};

	if (hgj_require == HGJ_REQUIRE_OFF)
		return hgj_plan_by(previous_planner, parse, query_string, cursorOptions, boundParams);

	seen_now = &seen;
	PG_TRY();
	{
		stmt = hgj_plan_by(previous_planner, parse, query_string, cursorOptions, boundParams);
	}
	PG_FINALLY();
	{
		seen_now = outer_seen;
	}
	PG_END_TRY();

	if (!hgj_enabled || !enable_hashjoin)
		return stmt;
	look_at_plan(stmt->planTree, &use);
	hgj_visit_plans(stmt->subplans, look_at_plan, &use);
	if (use.stock_hash_join || (seen.join && !use.ours))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("query with a hashable join was planned without HashGraphJoin"),
				 use.stock_hash_join ?
				 errdetail("The plan has a hash join of PostgreSQL's own.") : 0,
				 errhint("Set hashgraph_join.require to off, or hashgraph_join.force to on.")));
	if (hgj_require == HGJ_REQUIRE_AGGREGATE && seen.aggregate &&
		use.stock_aggregate)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("aggregation of a HashGraphJoin was planned without HashGraphAgg"),
				 errhint("Set hashgraph_join.require to join, or hashgraph_join.force to on.")));
	if (hgj_require == HGJ_REQUIRE_AGGREGATE && seen.scan &&
		use.stock_scan_aggregate)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("aggregation of a sequential scan was planned without HashGraphAgg"),
				 errhint("Set hashgraph_join.require to join, or hashgraph_join.force to on.")));
	if (hgj_require == HGJ_REQUIRE_CUDA && use.on_cpu)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a HashGraphJoin was planned for the CPU"),
				 errhint("Set hashgraph_join.require to join, or hashgraph_join.engine to cuda.")));
	return stmt;
}

/* Chain into the planner.  Call once per process, from _PG_init. */
void
hgj_install_require_hook(void)
{
	previous_planner = planner_hook;
	planner_hook = hgj_planner;
}
