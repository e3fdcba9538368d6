/*-------------------------------------------------------------------------
 *
 * agg_contents.c
 *	  What an aggregation computes: group columns, aggregates, and the columns
 *	  beside them.
 *
 * 1. The group columns are those of GROUP BY, as far as they are needed.
 * 2. Columns that depend on a grouped primary key become group columns, too.  Those that
 *	  do not tell groups apart come last (agg_dependent.c).
 * 3. What the executor could not do, or not do exactly, is declined, with a reason.
 *
 * Memory: everything is palloc'd in the planner's context and dies with it.
 * No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/agg_format.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "planner/agg_path.h"
#include "planner/planner.h"
#include "utils/typcache.h"

/*
 * The GROUP BY clause itself; extra->targetList has its expressions.  Those that
 * are not needed are grouped by as far as they are columns, which the join returns.
 */
static HgjAggDecline
collect_group_columns(PlannerInfo *root, HgjAggContents *contents, List *tlist)
{
	List	   *group_clause = root->parse->groupClause;
	ListCell   *lc;

	foreach(lc, group_clause)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node	   *expr = get_sortgroupclause_expr(clause, tlist);

		if (!clause->hashable)
			return HGJ_AGG_DECLINE_GROUP_TYPE;
		if (!IsA(expr, Var) &&
			!list_member(HGJ_NEEDED_GROUP_CLAUSE(root), clause))
			continue;
		contents->group_exprs = lappend(contents->group_exprs, expr);
		contents->group_operators = lappend_oid(contents->group_operators,
												clause->eqop);
	}
	/* without a column, there would be a group where there are no rows */
	if (group_clause != NIL && contents->group_exprs == NIL)
		return HGJ_AGG_DECLINE_COLUMN;
	return HGJ_AGG_DECLINE_NOTHING;
}

/* Find the aggregates, and the columns that stand outside of them. */
static bool
collect_contents(Node *node, void *context)
{
	HgjAggContents *contents = context;

	if (node == NULL || list_member(contents->group_exprs, node))
		return false;
	if (IsA(node, Aggref))
	{
		contents->aggrefs = list_append_unique(contents->aggrefs, node);
		return false;
	}
	/* only an Agg node can evaluate it, even without grouping sets */
	if (IsA(node, GroupingFunc))
	{
		contents->grouping_func = true;
		return false;
	}
	if (IsA(node, Var) || IsA(node, PlaceHolderVar))
	{
		contents->loose = list_append_unique(contents->loose, node);
		return false;
	}
	return expression_tree_walker(node, collect_contents, context);
}

/*
 * Does the column depend on a grouped primary key?  Not so in tables with
 * children, whose rows the key does not cover, though the parser believes it.
 */
static bool
depends_on_group(PlannerInfo *root, const HgjAggContents *contents, Var *var)
{
	List	   *dependencies = NIL;
	RangeTblEntry *rte;

	if (!IsA(var, Var) || var->varlevelsup > 0)
		return false;
	rte = planner_rt_fetch(var->varno, root);
	return rte->rtekind == RTE_RELATION &&
		(!rte->inh || rte->relkind == RELKIND_PARTITIONED_TABLE) &&
		check_functional_grouping(rte->relid, var->varno, 0,
								  contents->group_exprs, &dependencies);
}

/*
 * Columns outside of aggregates are legal where a primary key is grouped by
 * (PostgreSQL itself drops such columns from GROUP BY).  Within a group they
 * have one value only, so grouping by them as well changes nothing.  Anything
 * else, whatever made it legal, would change the groups.
 */
static HgjAggDecline
group_loose_columns(PlannerInfo *root, HgjAggContents *contents)
{
	List	   *columns = NIL;
	List	   *operators = NIL;
	ListCell   *lc;

	foreach(lc, contents->loose)
	{
		Var		   *var = lfirst(lc);
		TypeCacheEntry *type;

		if (!depends_on_group(root, contents, var))
			return HGJ_AGG_DECLINE_UNGROUPED;
		type = lookup_type_cache(exprType((Node *) var),
								 TYPECACHE_EQ_OPR | TYPECACHE_HASH_PROC);
		if (!OidIsValid(type->eq_opr) || !OidIsValid(type->hash_proc))
			return HGJ_AGG_DECLINE_GROUP_TYPE;
		columns = lappend(columns, var);
		operators = lappend_oid(operators, type->eq_opr);
	}
	contents->group_exprs = list_concat_copy(contents->group_exprs, columns);
	contents->group_operators = list_concat_copy(contents->group_operators,
												 operators);
	hgj_find_dependent_columns(root, contents, list_length(columns));
	return HGJ_AGG_DECLINE_NOTHING;
}

/* Does the expression call a volatile function, or a subplan in it? */
static bool
calls_volatile(Node *node, void *context)
{
	PlannerGlobal *glob = context;

	if (node == NULL)
		return false;
	if (IsA(node, SubPlan))
	{
		const PlannerInfo *subroot = list_nth_node(PlannerInfo, glob->subroots,
												   ((SubPlan *) node)->plan_id - 1);

		if (contain_volatile_functions((Node *) subroot->parse) ||
			query_tree_walker(subroot->parse, calls_volatile, context, 0))
			return true;
	}
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, calls_volatile, context, 0);
	return expression_tree_walker(node, calls_volatile, context);
}

/* Of the expressions of a plan, or (glob NULL) of a query that has not been planned. */
static HgjAggDecline
aggregate_decline(const Aggref *aggref, PlannerGlobal *glob)
{
	if (aggref->aggkind != AGGKIND_NORMAL || aggref->aggdirectargs != NIL ||
		aggref->agglevelsup > 0)
		return HGJ_AGG_DECLINE_KIND;
	/* arguments are not evaluated row by row, one after the other */
	if (contain_volatile_functions((Node *) aggref->args) ||
		contain_volatile_functions((Node *) aggref->aggfilter) ||
		(glob && (calls_volatile((Node *) aggref->args, glob) ||
				  calls_volatile((Node *) aggref->aggfilter, glob))))
		return HGJ_AGG_DECLINE_VOLATILE;
	return HGJ_AGG_DECLINE_NOTHING;
}

/*
 * Does the executor compute this aggregate by itself?  Otherwise it calls PostgreSQL's
 * functions for it (agg/agg_transition.c).
 */
bool
hgj_aggregate_is_known(const Aggref *aggref)
{
	return aggref->aggdistinct == NIL && aggref->aggorder == NIL &&
		hgj_agg_function_supported(aggref->aggfnoid);
}

/* Are all of them such? */
bool
hgj_aggregates_are_known(const HgjAggContents *contents)
{
	ListCell   *lc;

	foreach(lc, contents->aggrefs)
		if (!hgj_aggregate_is_known(lfirst_node(Aggref, lc)))
			return false;
	return true;
}

/* Could the executor compute this aggregate?  For require.c, too. */
bool
hgj_aggregate_supported(const Aggref *aggref)
{
	return aggregate_decline(aggref, NULL) == HGJ_AGG_DECLINE_NOTHING;
}

/*
 * What a path with this target and these HAVING clauses computes; declined if the
 * executor cannot compute one of the aggregates.
 */
HgjAggDecline
hgj_agg_collect(PlannerInfo *root, HgjAggContents *contents, List *exprs,
				List *having, AggSplit split, List *tlist)
{
	HgjAggDecline decline;
	ListCell   *lc;

	memset(contents, 0, sizeof(*contents));
	contents->split = split;
	contents->having = having;

	decline = collect_group_columns(root, contents, tlist);
	if (decline != HGJ_AGG_DECLINE_NOTHING)
		return decline;
	collect_contents((Node *) exprs, contents);
	collect_contents((Node *) having, contents);
	if (contents->grouping_func)
		return HGJ_AGG_DECLINE_GROUPING_FUNC;
	decline = group_loose_columns(root, contents);
	if (decline != HGJ_AGG_DECLINE_NOTHING)
		return decline;
	foreach(lc, contents->aggrefs)
	{
		decline = aggregate_decline(lfirst_node(Aggref, lc), root->glob);
		if (decline != HGJ_AGG_DECLINE_NOTHING)
			return decline;
	}
	return HGJ_AGG_DECLINE_NOTHING;
}
