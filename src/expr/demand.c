/*-------------------------------------------------------------------------
 *
 * demand.c
 *	  Will all rows of a node be asked for?
 *
 * We evaluate many rows before the first of them is returned, where PostgreSQL
 * evaluates one row when it is asked for.  The difference shows when a row
 * raises an error, or calls a function that has effects, and nobody asks for
 * that row: below a LIMIT, in an EXISTS, through a cursor.
 *
 * 1. The executor is told how many rows of a query are wanted.  A hook notes
 *	  for the query that runs whether that is all of them.  A worker is told to
 *	  go on to the end where the leader may stop it before, so nothing is noted
 *	  there.
 * 2. The plan says which nodes take all rows of their child once they take the
 *	  first (Sort, Hash, Agg), and which take as many as they are asked for
 *	  themselves.  What is not known to do either may stop early.  A side of a
 *	  join may, too: PostgreSQL's joins end when the other side has no rows.
 *
 * Queries nest.  What is noted is that of the innermost, by its EState: when an
 * error has ended one of them, nothing is known of those around it, and then
 * not all rows are taken to be wanted.
 *
 * No memory but two static variables; the walk's is the caller's.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "base/agg_format.h"
#include "base/plan_format.h"
#include "executor/executor.h"
#include "expr/demand.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"

static ExecutorRun_hook_type next_run_hook = NULL;
static const EState *run_estate = NULL; /* the query that runs ... */
static bool run_all = false;	/* ... till its end */

/* Step 1. */
static void
note_run(QueryDesc *query, ScanDirection direction, uint64 count
		 HGJ_EXECUTE_ONCE_PARAM)
{
	const EState *outer_estate = run_estate;
	bool		outer_all = run_all;

	run_estate = query->estate;
	run_all = (count == 0 && !IsParallelWorker());
	if (next_run_hook)
		next_run_hook(query, direction, count HGJ_EXECUTE_ONCE_ARG);
	else
		standard_ExecutorRun(query, direction, count HGJ_EXECUTE_ONCE_ARG);
	run_estate = outer_estate;
	run_all = outer_all;
}

void
hgj_install_demand_hook(void)
{
	next_run_hook = ExecutorRun_hook;
	ExecutorRun_hook = note_run;
}

/* What the walk over a plan knows. */
typedef struct Walk
{
	const PlannedStmt *stmt;
	const Plan *wanted;
	bool		seen;			/* `wanted` has been met */
	HgjDemand	found;			/* with what, at the lowest */
	Bitmapset  *fixed_params;	/* of plans met so far: see below */
	HgjDemand  *subplans;		/* the lowest that each was walked with ... */
	bool	   *walked;			/* ... if it was */
} Walk;

static void walk(Walk *w, const Plan *plan, HgjDemand demand);

static void
walk_list(Walk *w, const List *plans, HgjDemand demand)
{
	ListCell   *lc;

	foreach(lc, plans)
		walk(w, lfirst(lc), demand);
}

/*
 * A subplan, numbered from 1.  A CTE may have several readers, of which one may
 * stop early and another, who would take all rows, never be run: what counts is
 * the reader that takes the fewest.
 */
static void
walk_subplan(Walk *w, int number, HgjDemand demand)
{
	if (w->walked[number - 1] && w->subplans[number - 1] <= demand)
		return;
	w->walked[number - 1] = true;
	w->subplans[number - 1] = demand;
	walk(w, list_nth(w->stmt->subplans, number - 1), demand);
}

static void
walk_custom(Walk *w, const CustomScan *scan)
{
	if (hgj_is_agg_plan(&scan->scan.plan))
		walk_list(w, scan->custom_plans, HGJ_DEMAND_ALL);
	else if (hgj_is_join_plan(&scan->scan.plan))
	{
		walk(w, linitial(scan->custom_plans), HGJ_DEMAND_SOME);
		walk(w, lsecond(scan->custom_plans), HGJ_DEMAND_ALL);
	}
	else
		walk_list(w, scan->custom_plans, HGJ_DEMAND_SOME);
}

/* See hgj_fixed_params(). */
static void
note_fixed_params(Walk *w, const Plan *plan)
{
	ListCell   *lc;
	int			rescan = -1;

	foreach(lc, plan->initPlan)
	{
		ListCell   *p;

		foreach(p, lfirst_node(SubPlan, lc)->setParam)
			w->fixed_params = bms_add_member(w->fixed_params, lfirst_int(p));
	}
	if (IsA(plan, Gather))
		rescan = ((const Gather *) plan)->rescan_param;
	else if (IsA(plan, GatherMerge))
		rescan = ((const GatherMerge *) plan)->rescan_param;
	if (rescan >= 0)
		w->fixed_params = bms_add_member(w->fixed_params, rescan);
}

/* Step 2: `demand` is for the rows of `plan`. */
static void
walk(Walk *w, const Plan *plan, HgjDemand demand)
{
	HgjDemand	left = HGJ_DEMAND_SOME;
	HgjDemand	right = HGJ_DEMAND_SOME;

	if (plan == NULL)
		return;
	check_stack_depth();
	note_fixed_params(w, plan);
	if (plan == w->wanted)
	{
		w->found = w->seen ? Min(w->found, demand) : demand;
		w->seen = true;
	}
	switch (nodeTag(plan))
	{
		case T_Result:
		case T_ProjectSet:
		case T_ModifyTable:
		case T_LockRows:
		case T_Unique:
		case T_Group:
		case T_SetOp:
		case T_Material:
		case T_IncrementalSort:
		case T_Gather:
		case T_GatherMerge:
		case T_NestLoop:
			left = demand;
			break;
		case T_WindowAgg:
			if (((const WindowAgg *) plan)->runCondition == NIL)
				left = demand;
			break;
		case T_Agg:
			left = demand;
			if (((const Agg *) plan)->aggstrategy == AGG_PLAIN ||
				((const Agg *) plan)->aggstrategy == AGG_HASHED)
				left = HGJ_DEMAND_ALL;
			break;
		case T_Sort:
		case T_Hash:
			left = HGJ_DEMAND_ALL;
			break;
		case T_Append:
			walk_list(w, ((const Append *) plan)->appendplans, demand);
			break;
		case T_MergeAppend:
			walk_list(w, ((const MergeAppend *) plan)->mergeplans, demand);
			break;
		case T_SubqueryScan:
			walk(w, ((const SubqueryScan *) plan)->subplan, demand);
			break;
		case T_CteScan:
			walk_subplan(w, ((const CteScan *) plan)->ctePlanId, demand);
			break;
		case T_CustomScan:
			walk_custom(w, (const CustomScan *) plan);
			break;
		default:
			break;
	}
	walk(w, plan->lefttree, left);
	walk(w, plan->righttree, right);
}

static void
walk_all(Walk *w)
{
	int			n = list_length(w->stmt->subplans);

	w->subplans = palloc0(mul_size(n + 1, sizeof(HgjDemand)));
	w->walked = palloc0(mul_size(n + 1, sizeof(bool)));
	walk(w, w->stmt->planTree, HGJ_DEMAND_QUERY);

	/* then those that are no CTE; the readers of a CTE come behind it */
	for (int i = n; i > 0; i--)
		if (!w->walked[i - 1])
			walk_subplan(w, i, HGJ_DEMAND_SOME);
	pfree(w->subplans);
	pfree(w->walked);
}

/* What the plan says of the node's rows, whoever runs it. */
HgjDemand
hgj_demand_of(const PlanState *ps)
{
	Walk		w = {.stmt = ps->state->es_plannedstmt, .wanted = ps->plan};

	if (w.stmt == NULL)
		return HGJ_DEMAND_SOME;
	walk_all(&w);
	bms_free(w.fixed_params);
	return w.found;
}

/*
 * The parameters that say nothing of a rescan to come: what subplans return that
 * are run once, those that stand for a Gather's own, and in a worker all that come
 * from without.
 */
Bitmapset *
hgj_fixed_params(const EState *estate)
{
	Walk		w = {.stmt = estate->es_plannedstmt};

	if (w.stmt == NULL)
		return NULL;
	walk_all(&w);
	return bms_add_members(w.fixed_params, w.stmt->planTree->extParam);
}

/* In this execution, now that it runs. */
bool
hgj_all_rows_wanted(HgjDemand demand, const EState *estate)
{
	return demand == HGJ_DEMAND_ALL ||
		(demand == HGJ_DEMAND_QUERY && run_all && run_estate == estate);
}

/*
 * Could the expression's value change when a parameter of the executor's does?  context is not
 * used.
 */
bool
hgj_depends_on_parameters(Node *expression, void *context)
{
	if (expression == NULL)
		return false;
	if (IsA(expression, Param))
		return ((Param *) expression)->paramkind == PARAM_EXEC;
	if (IsA(expression, SubPlan) || IsA(expression, AlternativeSubPlan))
		return true;
	return expression_tree_walker(expression, hgj_depends_on_parameters, context);
}
