/*-------------------------------------------------------------------------
 *
 * single_rows.c
 *	  What a join costs more whose rows may have to be evaluated one by one.
 *
 * Where not all rows of a query are sure to be wanted, a row that could raise an error
 * which cannot be put aside is evaluated when it is asked for, by itself (expr/demand.h).
 * A batch of one row costs as much as some dozens of rows in a larger one.  The executor
 * decides that from the finished plan; here is what is known of it when paths are made:
 *
 * 1. All rows of a query level are taken by its aggregation, sort, DISTINCT or window
 *	  functions.  Without those, perhaps not all are: in a subquery, or a CTE; below LIMIT,
 *	  or in EXISTS; through a cursor, as which PL/pgSQL runs its loops, too; and by a
 *	  worker, whom the leader may stop.  A planner hook notes what the plan is for:
 *	  whoever plans for a cursor does not say CURSOR_OPT_PARALLEL_OK.
 * 2. The clauses of a table, the operands of its keys and what else the join
 *	  evaluates are looked at as the executor does (may_raise.c, program_call.c), but that
 *	  nothing is known of subplans, and parameters are taken for values.
 * 3. In a chain, the join at the bottom is charged, as it is the one that reads the table.
 *
 * What the level's place in the plan says besides, such as that a nested loop will have it
 * for its outer side, is not known, and not charged.
 *
 * No memory is kept but what the hook knows, of the innermost call of the planner; it is
 * put back on errors, too.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "expr/demand.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "planner/planner.h"

/*
 * What a row by itself costs, of cpu_tuple_cost.  Measured: 0.35 microseconds for a row of
 * a scan with a filter, where a sequential scan of PostgreSQL's charges 0.01 for each of
 * its rows and takes 0.1 to 0.15.
 */
#define HGJ_SINGLE_ROW_PART		3.0

static planner_hook_type previous_planner = NULL;
static bool for_cursor = false; /* is the plan at hand made for one? */

/* Step 1. */
static PlannedStmt *
note_options(Query *parse, const char *query_string, int cursorOptions,
			 ParamListInfo boundParams)
{
	bool		before = for_cursor;
	PlannedStmt *stmt;

	for_cursor = (cursorOptions & CURSOR_OPT_PARALLEL_OK) == 0;
	PG_TRY();
	{
		stmt = hgj_plan_by(previous_planner, parse, query_string, cursorOptions,
						   boundParams);
	}
	PG_FINALLY();
	{
		for_cursor = before;
	}
	PG_END_TRY();
	return stmt;
}

/* Chain into the planner.  Call once per process, from _PG_init. */
void
hgj_install_single_rows_hook(void)
{
	previous_planner = planner_hook;
	planner_hook = note_options;
}

/* Step 1: are all rows of the level's joins sure to be wanted, once the first is? */
static bool
takes_all_rows(const PlannerInfo *root, bool in_worker)
{
	const Query *parse = root->parse;

	if (parse->hasAggs || parse->groupClause != NIL || parse->groupingSets != NIL ||
		parse->sortClause != NIL || parse->distinctClause != NIL || parse->hasWindowFuncs)
		return true;
	return !in_worker && !for_cursor && root->parent_root == NULL &&
		root->tuple_fraction <= 0;
}

/* Step 2: can the expression raise an error that has to be raised at once? */
static bool
raises_at_once(Node *node)
{
	return hgj_may_raise(node, NULL) && !hgj_errors_can_wait(node, NULL);
}

/* Step 2: of an operand of the keys that is of this relation. */
static bool
keys_raise(const RelOptInfo *rel, const List *hashclauses)
{
	ListCell   *lc;

	foreach(lc, hashclauses)
		if (raises_at_once(hgj_key_of_side(lfirst_node(RestrictInfo, lc), rel)))
			return true;
	return false;
}

/*
 * Step 2: of a table's clauses.  An index scan's rows are asked for as they are by
 * PostgreSQL, and no error of theirs can wait.
 */
static bool
filter_raises(const Path *path)
{
	ListCell   *lc;

	foreach(lc, path->parent->baserestrictinfo)
	{
		Node	   *clause = (Node *) lfirst_node(RestrictInfo, lc)->clause;

		if (path->pathtype == T_SeqScan ? raises_at_once(clause) : hgj_may_raise(clause, NULL))
			return true;
	}
	return false;
}

/* Step 3: how many rows of this side are charged? */
static double
rows_of_side(const Path *path, const List *hashclauses)
{
	if (path->parent->reloptkind != RELOPT_BASEREL)
		return 0;
	if (filter_raises(path))
		return path->pathtype == T_SeqScan ?
			path->parent->tuples / hgj_parallel_divisor(path) : path->rows;
	return keys_raise(path->parent, hashclauses) ? path->rows : 0;
}

/*
 * Once per pair of relations: step 2, for the clauses beside the keys, where any path of
 * theirs can be charged.
 */
bool
hgj_matches_raise(const PlannerInfo *root, const List *restrictlist, const List *hashclauses)
{
	ListCell   *lc;

	if (takes_all_rows(root, true))
		return false;
	foreach(lc, restrictlist)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (!list_member_ptr(hashclauses, rinfo) &&
			raises_at_once((Node *) rinfo->clause))
			return true;
	}
	return false;
}

/*
 * The charge, for a pair of paths and the matches that are looked at.  The inner side is
 * read as a whole in any case, and costs nothing more.  Where the query says that it may
 * end early, it is charged all the same, or else clauses would go to that side for it, and
 * raise the errors of rows that nobody asks for in PostgreSQL's plan.
 */
Cost
hgj_single_rows_cost(PlannerInfo *root, const HgjJoinCosts *costs, const Path *outer,
					 const Path *inner, double candidates)
{
	double		rows;

	if (takes_all_rows(root, outer->parallel_workers > 0))
		return 0;
	rows = rows_of_side(outer, costs->hashclauses);
	if (for_cursor || root->tuple_fraction > 0)
		rows += rows_of_side(inner, costs->hashclauses);
	if (costs->matches_raise)
		rows = Max(rows, candidates);
	return HGJ_SINGLE_ROW_PART * cpu_tuple_cost * rows;
}
