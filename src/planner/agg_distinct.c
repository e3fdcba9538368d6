/*-------------------------------------------------------------------------
 *
 * agg_distinct.c
 *	  count(DISTINCT x), sum(DISTINCT x) and avg(DISTINCT x) by grouping twice: one
 *	  HashGraphAgg groups by x, too, and another one aggregates its groups.
 *
 * 1. All aggregates with DISTINCT must be over the same column, which the input
 *	  returns, and be such that it does not matter which one of several equal values
 *	  is taken, nor in which order.  PostgreSQL sorts them.
 * 2. The others are computed by the first grouping, where their FILTER is, and
 *	  their values are put together by the second one: sums of sums and of counts,
 *	  the least of the least.  An average is a sum and a count, each put together.
 *	  Where one cannot be put together so, as an average of floats, whose errors look
 *	  at squares, all are declined.
 * 3. Both groupings may spill.  Where workers can divide the groups among themselves
 *	  by hash (agg/agg_exchange.c), the first one is theirs.  If they divide them by the columns
 *	  that the second one groups by, each worker has all that goes into one of its groups, and
 *	  that is theirs, too.  It takes many groups for all workers to have some.
 * 4. In the plan, an aggregate of the first grouping is an argument of the second one,
 *	  and is told from that one's own by its number (setrefs.c looks for equal ones).
 *
 * Memory: the planner's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/agg_format.h"
#include "base/guc.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/tlist.h"
#include "planner/agg_path.h"
#include "planner/planner.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

/* Step 4: added to the number of an aggregate. */
#define FIRST_GROUPING		100000

/* Step 3: groups of the second grouping for each process. */
#define MANY_GROUPS			64

/* Step 3: who groups. */
typedef enum GroupedBy
{
	BY_ONE,						/* one process */
	BY_WORKERS_FIRST,			/* workers, for the first grouping, which is gathered */
	BY_WORKERS					/* workers, for both of them */
} GroupedBy;

/* What the two groupings compute. */
typedef struct Groupings
{
	Expr	   *column;			/* that DISTINCT is of */
	Oid			equality;
	List	   *first;			/* Aggrefs of the first one */
	List	   *aggrefs;		/* those of the second one, ... */
	List	   *functions;		/* ... the OidList of what computes them, ... */
	List	   *args;			/* ... and Lists of their arguments there */
} Groupings;

/* A numeric whose equal values look equal. */
static bool
has_scale(Expr *expr)
{
	return exprTypmod((Node *) expr) >= 0;
}

/* Step 1: an aggregate with DISTINCT. */
static bool
take_distinct(Groupings *groupings, Aggref *aggref)
{
	SortGroupClause *clause;
	Expr	   *column;

	if (list_length(aggref->aggdistinct) != 1 ||
		list_length(aggref->args) != 1 ||
		aggref->aggorder != NIL || aggref->aggfilter != NULL)
		return false;
	clause = linitial_node(SortGroupClause, aggref->aggdistinct);
	column = linitial_node(TargetEntry, aggref->args)->expr;
	if (!clause->hashable || !IsA(column, Var) ||
		(groupings->column != NULL && (!equal(groupings->column, column) ||
									   groupings->equality != clause->eqop)))
		return false;
	if (!hgj_agg_takes_any_equal(aggref->aggfnoid, column))
		return false;
	groupings->column = column;
	groupings->equality = clause->eqop;
	groupings->aggrefs = lappend(groupings->aggrefs, aggref);
	groupings->functions = lappend_oid(groupings->functions, aggref->aggfnoid);
	groupings->args = lappend(groupings->args, list_make1(column));
	return true;
}

/* Step 2: the function that puts an aggregate's values together; or InvalidOid. */
static Oid
second_function(const Aggref *aggref)
{
	Expr	   *argument = aggref->args == NIL ? NULL :
		linitial_node(TargetEntry, aggref->args)->expr;

	switch (aggref->aggfnoid)
	{
		case F_COUNT_:
		case F_COUNT_ANY:
			return HGJ_AGG_SUM_OF_COUNTS;
		case F_SUM_INT2:
		case F_SUM_INT4:
			return HGJ_AGG_SUM_OF_SUMS;
		case F_SUM_INT8:
		case F_SUM_NUMERIC:
			return F_SUM_NUMERIC;
		case F_MIN_NUMERIC:
		case F_MAX_NUMERIC:
			return has_scale(argument) ? aggref->aggfnoid : InvalidOid;
		case F_MIN_TEXT:
		case F_MAX_TEXT:
			return hgj_is_deterministic(aggref->inputcollid) ? aggref->aggfnoid : InvalidOid;
		case F_SUM_FLOAT4:
		case F_SUM_FLOAT8:
		case F_MIN_FLOAT4:
		case F_MAX_FLOAT4:
		case F_MIN_FLOAT8:
		case F_MAX_FLOAT8:
		case F_BOOL_AND:
		case F_BOOL_OR:
		case F_EVERY:
		case F_MIN_INT2:
		case F_MAX_INT2:
		case F_MIN_INT4:
		case F_MAX_INT4:
		case F_MIN_INT8:
		case F_MAX_INT8:
		case F_MIN_DATE:
		case F_MAX_DATE:
		case F_MIN_TIMESTAMP:
		case F_MAX_TIMESTAMP:
		case F_MIN_TIMESTAMPTZ:
		case F_MAX_TIMESTAMPTZ:
			return aggref->aggfnoid;
		default:
			return InvalidOid;
	}
}

/* The sum that goes into an average; or InvalidOid. */
static Oid
sum_of_average(Oid function)
{
	switch (function)
	{
		case F_AVG_INT2:
			return F_SUM_INT2;
		case F_AVG_INT4:
			return F_SUM_INT4;
		case F_AVG_INT8:
			return F_SUM_INT8;
		case F_AVG_NUMERIC:
			return F_SUM_NUMERIC;
		default:
			return InvalidOid;
	}
}

/* Step 4: another aggregate of the same values, which nobody takes for that one. */
static Aggref *
copy_aggref(Aggref *aggref, Oid function)
{
	Aggref	   *copy = copyObject(aggref);

	copy->aggno += FIRST_GROUPING;
	copy->aggtransno += FIRST_GROUPING;
	if (function != aggref->aggfnoid)
	{
		copy->aggfnoid = function;
		copy->aggtype = get_func_rettype(function);
	}
	return copy;
}

/* Step 2: what an aggregate is of the first grouping's values, by `function`. */
static void
put_together(Groupings *groupings, Aggref *aggref, Oid first_function, Oid function)
{
	Aggref	   *first = copy_aggref(aggref, first_function);

	groupings->aggrefs = lappend(groupings->aggrefs, aggref);
	groupings->first = lappend(groupings->first, first);
	groupings->functions = lappend_oid(groupings->functions, function);
	groupings->args = lappend(groupings->args, list_make1(first));
}

/* Step 2: an aggregate without DISTINCT. */
static bool
take_other(Groupings *groupings, Aggref *aggref)
{
	Oid			function = second_function(aggref);
	Oid			sum = sum_of_average(aggref->aggfnoid);
	Aggref	   *counts;

	if (!hgj_aggregate_is_known(aggref))
		return false;
	if (OidIsValid(sum))
	{
		if (!hgj_may_execute(sum) || !hgj_may_execute(F_COUNT_ANY))
			return false;
		put_together(groupings, aggref, sum, sum == F_SUM_INT2 || sum == F_SUM_INT4 ?
					 HGJ_AGG_AVG_OF_SUMS : HGJ_AGG_AVG_OF_NUMERICS);
		/* the average looks at the one behind it */
		counts = copy_aggref(aggref, F_COUNT_ANY);
		put_together(groupings, counts, F_COUNT_ANY, HGJ_AGG_SUM_OF_COUNTS);
		return true;
	}
	if (OidIsValid(function))
		put_together(groupings, aggref, aggref->aggfnoid, function);
	return OidIsValid(function);
}

/* Steps 1 and 2: what the groupings compute; false: it cannot be done so. */
static bool
divide(Groupings *groupings, const HgjAggContents *contents)
{
	ListCell   *lc;

	memset(groupings, 0, sizeof(*groupings));
	foreach(lc, contents->aggrefs)
	{
		Aggref	   *aggref = lfirst_node(Aggref, lc);

		if (aggref->aggdistinct != NIL ? !take_distinct(groupings, aggref) :
			!take_other(groupings, aggref))
			return false;
	}
	return groupings->column != NULL;
}

/* What the first grouping returns: the columns that both group by, and the rest. */
static PathTarget *
first_target(PlannerInfo *root, const HgjAggContents *first)
{
	PathTarget *target = create_empty_pathtarget();

	add_new_columns_to_pathtarget(target, first->group_exprs);
	add_new_columns_to_pathtarget(target, first->aggrefs);
	return set_pathtarget_cost_width(root, target);
}

/* Step 3: a path of the first grouping over an input, or NULL. */
static Path *
first_path(PlannerInfo *root, Path *input, RelOptInfo *output_rel, HgjAggContents *first,
		   GroupPathExtraData *extra, GroupedBy by)
{
	PathTarget *target = first_target(root, first);
	double		rows = input->rows;
	HgjAggDecline decline;
	CustomPath *path;

	/* those of one process, and those of all */
	first->groups = estimate_num_groups(root, first->group_exprs, rows, NULL, NULL);
	rows *= hgj_parallel_divisor(input);
	first->exchanged_groups = by == BY_ONE ? 0 :
		estimate_num_groups(root, first->group_exprs, rows, NULL, NULL);
	path = hgj_make_agg_path(root, output_rel, target, first, input, extra->targetList, &decline);
	if (path == NULL || by == BY_ONE)
		return (Path *) path;
	if (!path->path.parallel_safe)
		return NULL;
	path->path.parallel_aware = true;	/* as in agg_partial.c */
	if (by == BY_WORKERS)
		return &path->path;
	rows = path->path.rows * hgj_parallel_divisor(&path->path);
	return (Path *) create_gather_path(root, output_rel, &path->path, target, NULL, &rows);
}

/* Paths of both groupings over the inputs. */
static List *
both_paths(PlannerInfo *root, List *inputs, RelOptInfo *output_rel, const HgjAggContents *first,
		   const HgjAggContents *second, GroupPathExtraData *extra, GroupedBy by)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, inputs)
	{
		Path	   *input = lfirst(lc);
		HgjAggContents below = *first;
		HgjAggContents above = *second;
		HgjAggDecline decline;
		CustomPath *path;
		Path	   *child;

		if (by == BY_WORKERS)
		{
			double		divisor = hgj_parallel_divisor(input);
			double		groups = hgj_number_of_groups(root, input->rows * divisor,
													  extra->targetList);

			if (groups < MANY_GROUPS * (input->parallel_workers + 1))
				continue;
			above.groups = clamp_row_est(groups / divisor);
			below.exchanged_keys = second->ntelling;
		}
		child = first_path(root, input, output_rel, &below, extra, by);
		path = child ? hgj_make_agg_path(root, output_rel, output_rel->reltarget, &above, child,
										 extra->targetList, &decline) : NULL;
		if (path && (by != BY_WORKERS || path->path.parallel_safe))
			result = lappend(result, by != BY_WORKERS ? &path->path :
							 hgj_gather_groups(root, output_rel, &path->path));
	}
	return result;
}

/*
 * Paths that group twice, over the inputs and over the partial ones; NIL: there is none.
 */
List *
hgj_distinct_agg_paths(PlannerInfo *root, List *inputs, List *partial_inputs,
					   RelOptInfo *output_rel, GroupPathExtraData *extra)
{
	HgjAggContents first;
	HgjAggContents second;
	Groupings	groupings;
	List	   *result;

	if (IS_OTHER_REL(output_rel) ||
		hgj_agg_collect(root, &second, output_rel->reltarget->exprs,
						(List *) extra->havingQual, AGGSPLIT_SIMPLE,
						extra->targetList) != HGJ_AGG_DECLINE_NOTHING ||
		!divide(&groupings, &second))
		return NIL;
	first = second;
	first.having = NIL;
	first.aggrefs = groupings.first;
	if (!list_member(first.group_exprs, groupings.column))
	{
		first.group_exprs = list_insert_nth(list_copy(first.group_exprs), first.ntelling,
											groupings.column);
		first.group_operators = list_insert_nth_oid(list_copy(first.group_operators),
													first.ntelling, groupings.equality);
		first.ntelling++;
	}
	second.aggrefs = groupings.aggrefs;
	second.functions = groupings.functions;
	second.args = groupings.args;

	result = both_paths(root, inputs, output_rel, &first, &second, extra, BY_ONE);
	if (!output_rel->consider_parallel || hgj_parallel_aggregate == HGJ_AGGREGATE_PARTIAL)
		return result;
	result = list_concat(result, both_paths(root, partial_inputs, output_rel, &first, &second,
											extra, BY_WORKERS_FIRST));
	if (second.group_exprs == NIL)
		return result;
	return list_concat(result, both_paths(root, partial_inputs, output_rel, &first, &second,
										  extra, BY_WORKERS));
}
