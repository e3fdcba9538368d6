/*-------------------------------------------------------------------------
 *
 * agg_cost.c
 *	  What a HashGraphAgg costs, in PostgreSQL's own units.
 *
 * 1. It takes a join's matches without their being emitted, or a scan's rows, at a
 *	  tenth of startup_cost a scan, and pays agg_tuple_cost a row for each group column
 *	  and aggregate; arguments, filters and functions of PostgreSQL's are charged like
 *	  everybody else's.
 * 2. Groups that do not fit into memory have it write rows to files, if it is a
 *	  complete one, and return groups more than once, if it is a partial one.
 * 3. Workers that divide their groups among themselves write and read each of them
 *	  once more, and meet; what they return is finished.
 * 4. Workers are charged for as in joins of ours (worker_cost.c).
 * 5. Over a chain of joins it may pay on a GPU as a whole where none of the joins does
 *	  (pipeline_path.c): there, nothing comes back but groups.
 * 6. Where HAVING can be asked there, groups that fail need no memory of the host's, and no
 *	  time (agg/agg_device_having.c).
 *
 * No memory is kept, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "agg/agg_sort_place.h"
#include "base/agg_format.h"
#include "base/guc.h"
#include "catalog/pg_type.h"
#include "join/engines.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
#include "optimizer/tlist.h"
#include "planner/agg_path.h"
#include "planner/planner.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/selfuncs.h"

/*
 * Step 3: that workers meet, and what of their groups fits into memory, in tables
 * (agg/agg_exchange.c).
 */
#define HGJ_EXCHANGE_COST		100.0
#define HGJ_EXCHANGE_MEMORIES	(9.0 / 4.0)

/* Of HashGraphAgg's table per group, beside the columns, and per aggregate. */
#define HGJ_GROUP_BYTES			32
#define HGJ_STATE_BYTES			16

/* Of a comparison of strings, what it costs more without abbreviated keys. */
#define HGJ_STRING_SORT_PART	0.5

/*
 * Of PostgreSQL's sort by the group: what sorting all rows for one aggregate costs.  That
 * is integers alone, rows that integers tell apart, or neither.
 */
#define HGJ_SORT_PLACES			0.3
#define HGJ_SORT_BY_PLACES		0.75
#define HGJ_SORT_ROWS			1.0

/* Temporary files that it writes to at the same time. */
#define HGJ_SPILL_FILES			64

/* Step 5: rows of a staging buffer, which go to a GPU at once. */
#define HGJ_DEVICE_PIPE_ROWS		131072

/*
 * Step 5: bytes of a group of threads, of each of its keys and of each aggregate's words, and how
 * many there are of it, room that is free included.
 */
#define HGJ_THREADS_GROUP_BYTES		36
#define HGJ_THREADS_KEY_BYTES		8
#define HGJ_THREADS_STATE_BYTES		24
#define HGJ_THREADS_COPIES			3

/* Bytes of an expression's value, on average: a column's own, where they are known. */
int32
hgj_expr_width(PlannerInfo *root, Node *expr)
{
	const Var  *var = (const Var *) hgj_strip_relabel((Expr *) expr);
	const RelOptInfo *rel = IsA(var, Var) && var->varlevelsup == 0 &&
		var->varno > 0 && var->varno < root->simple_rel_array_size ?
		root->simple_rel_array[var->varno] : NULL;
	int32		width = 0;

	if (rel && rel->attr_widths && var->varattno >= rel->min_attr &&
		var->varattno <= rel->max_attr)
		width = rel->attr_widths[var->varattno - rel->min_attr];
	return width > 0 ? width : get_typavgwidth(exprType(expr), exprTypmod(expr));
}

/*
 * Bytes that a row adds to states that grow (agg/agg_growing.c), of *naggs aggregates.
 * Such a state is in *space, too, at what PostgreSQL takes it for where it does not know,
 * and so are those that are made when their sorted rows are read.
 */
static double
growth_per_row(PlannerInfo *root, const HgjAggContents *contents, double *space, int *naggs)
{
	Bitmapset  *seen = NULL;
	double		bytes = 0;
	ListCell   *lc;
	ListCell   *arg;

	foreach(lc, contents->functions == NIL ? contents->aggrefs : NIL)
	{
		const Aggref *aggref = lfirst_node(Aggref, lc);
		bool		ordered = hgj_sort_clauses(aggref) != NIL;

		if (hgj_aggregate_is_known(aggref) || bms_is_member(aggref->aggtransno, seen) ||
			!hgj_agg_state_grows(aggref->aggfnoid))
			continue;
		seen = bms_add_member(seen, aggref->aggtransno);
		if (aggref->aggtranstype == INTERNALOID)
			*space = Max(*space - ALLOCSET_DEFAULT_INITSIZE, 0);
		*naggs += !ordered;
		foreach(arg, ordered ? NIL : aggref->args)
			bytes += MAXALIGN(hgj_expr_width(root, (Node *) lfirst_node(TargetEntry, arg)->expr));
	}
	return bytes;
}

/*
 * What the groups take, as a multiple of the memory that there is.  *grown: the states
 * among them that grow, of *naggs aggregates.
 */
static double
groups_in_memories(PlannerInfo *root, const HgjAggContents *contents, double groups,
				   double rows, double *grown, int *naggs)
{
	double		space = contents->costs.transitionSpace;
	double		limit = get_hash_memory_limit();
	double		bytes = HGJ_GROUP_BYTES + HGJ_STATE_BYTES * list_length(contents->aggrefs);
	ListCell   *lc;

	foreach(lc, contents->group_exprs)
		bytes += MAXALIGN(hgj_expr_width(root, lfirst(lc)));
	*grown = *naggs = 0;
	if (contents->group_exprs != NIL)
		*grown = growth_per_row(root, contents, &space, naggs) * rows / limit;
	return *grown + (bytes + space) * groups / limit;
}

/* Is the cheapest of PostgreSQL's own paths a HashAggregate, whose states have no limit? */
static bool
would_be_hashed(const RelOptInfo *rel)
{
	const Path *cheapest = NULL;
	ListCell   *lc;

	foreach(lc, rel->pathlist)
	{
		const Path *path = lfirst(lc);

		if (!IsA(path, CustomPath) &&
			(cheapest == NULL || path->total_cost < cheapest->total_cost))
			cheapest = path;
	}
	return cheapest && IsA(cheapest, AggPath) &&
		((const AggPath *) cheapest)->aggstrategy == AGG_HASHED;
}

/*
 * Would states outgrow the memory even if they are made a part of them after the other,
 * where PostgreSQL sorts the rows, and makes one state at a time?
 */
bool
hgj_states_outgrow_memory(PlannerInfo *root, const RelOptInfo *rel, const Path *child,
						  const HgjAggContents *contents)
{
	double		grown;
	int			naggs;

	if (hgj_force || contents->split != AGGSPLIT_SIMPLE || would_be_hashed(rel))
		return false;
	(void) groups_in_memories(root, contents, 1, child->rows, &grown, &naggs);
	return grown > hgj_agg_growing_parts(naggs);
}

/*
 * Step 2: rows whose groups do not fit into memory, or that wait for states that have
 * filled it, are written to temporary files and read again; those of groups as often as
 * the files have to be split.
 */
static Cost
spill_cost(double memories, double grown, const Path *child)
{
	double		rows;
	double		depth = 1;

	if (memories <= 1)
		return 0;
	rows = child->rows * (1 - 1 / memories);
	if (memories - grown > 1)
		depth = ceil(log(memories - grown) / log(HGJ_SPILL_FILES));
	return depth * (2 * seq_page_cost * hgj_pages_of(rows, child->pathtarget->width) +
					2 * cpu_tuple_cost * rows);
}

/*
 * Step 2: how many groups a partial aggregation returns that empties its table whenever
 * it is full.  Rows in any order find a part p of all groups in -ln(1 - p) times
 * as many rows as there are groups.
 */
static double
groups_returned(double memories, double groups, double rows)
{
	double		part;

	if (memories <= 1)
		return groups;
	part = 1 / memories;
	return Max(groups, Min(rows, rows * part / -log1p(-part)));
}

/*
 * Step 3: what it costs a process to give groups away by hash, and to combine what it
 * gets; *groups becomes the number of those that it returns.
 */
static Cost
exchange_cost(const Path *child, const HgjAggContents *contents,
			  double memories, double *groups)
{
	int			columns = list_length(contents->group_exprs) +
		list_length(contents->aggrefs);
	double		records = groups_returned(HGJ_EXCHANGE_MEMORIES * memories, *groups,
										  child->rows);
	Cost		cost = HGJ_EXCHANGE_COST +
		records * (2 * cpu_tuple_cost + 0.5 * cpu_operator_cost * columns);

	/* images that memory does not hold are written and read once */
	if (HGJ_EXCHANGE_MEMORIES * memories * records > *groups)
		cost += 2 * seq_page_cost * hgj_pages_of(records, child->pathtarget->width);
	*groups = clamp_row_est(contents->exchanged_groups / hgj_parallel_divisor(child));
	/* who asks for it is to have it, and who forces joins has them for next to nothing */
	if (hgj_parallel_aggregate == HGJ_AGGREGATE_EXCHANGE)
		return 0;
	return cost * (hgj_force ? HGJ_FORCE_DISCOUNT : 1.0);
}

/* Step 1: what taking the child's rows costs. */
static Cost
take_cost(const Path *child, const HgjAggContents *contents)
{
	return hgj_agg_tuple_cost * child->rows *
		(contents->ntelling + list_length(contents->aggrefs));
}

/*
 * Which part of the rows does it sort by values of variable length?  Of DISTINCT, most
 * values that come again are dropped in front of the sort.
 */
static double
string_part(PlannerInfo *root, const Aggref *aggref, double rows)
{
	List	   *order = hgj_sort_clauses(aggref);
	Node	   *first;

	if (order == NIL)
		return 0;
	first = get_sortgroupclause_expr(linitial(order), aggref->args);
	if (get_typlen(exprType(first)) >= 0)
		return 0;
	if (aggref->aggdistinct == NIL)
		return 1;
	return Min(estimate_num_groups(root, list_make1(first), Max(rows, 1), NULL, NULL) /
			   Max(rows, 1), 1);
}

/* What it costs to sort all rows for this aggregate, in sorts by the group. */
static double
sort_part(const Aggref *aggref)
{
	List	   *order = hgj_sort_clauses(aggref);
	const SortGroupClause *clause;
	HgjSortPlace place;

	if (order == NIL)
		return 0;
	clause = linitial_node(SortGroupClause, order);
	hgj_sort_place_init(&place, clause->sortop,
						exprCollation(get_sortgroupclause_expr((SortGroupClause *) clause,
															   aggref->args)),
						clause->nulls_first);
	if (hgj_sort_places_only(&place, list_length(aggref->args)))
		return HGJ_SORT_PLACES;
	return place.kind == HGJ_PLACE_GROUP ? HGJ_SORT_ROWS : HGJ_SORT_BY_PLACES;
}

/*
 * Step 1: what calling PostgreSQL's functions costs.  Sorting for ORDER BY and DISTINCT
 * is charged as the sort below an aggregation of PostgreSQL's would be: that one
 * sorts each group's rows without being charged for it, but all rows only once, and
 * ours all rows for each aggregate, which costs more than once from the second or third
 * on.  Where that one sorts a group's strings, it does so by abbreviated keys, which ours
 * cannot, because the group comes first: what each comparison within a group costs more
 * is charged.
 */
static Cost
call_cost(PlannerInfo *root, const Path *child, const HgjAggContents *contents,
		  double groups)
{
	QualCost	cost = {0};
	Path		sort;
	double		sorts = 0;
	Cost		comparisons = HGJ_STRING_SORT_PART * 2 * cpu_operator_cost *
		child->rows * log2(Max(child->rows / Max(groups, 1), 1));
	ListCell   *lc;

	foreach(lc, contents->functions == NIL ? contents->aggrefs : NIL)
	{
		const Aggref *aggref = lfirst_node(Aggref, lc);
		const AggTransInfo *trans;

		if (hgj_aggregate_is_known(aggref))
			continue;
		trans = list_nth(root->aggtransinfos, aggref->aggtransno);
		add_function_cost(root, trans->transfn_oid, NULL, &cost);
		sorts += sort_part(aggref);
		cost.startup += comparisons * string_part(root, aggref, child->rows);
	}
	cost.startup += cost.per_tuple * child->rows;
	if (sorts == 0 || contents->group_exprs == NIL)
		return cost.startup;
	memset(&sort, 0, sizeof(sort));
	hgj_cost_sort(&sort, root, NIL, 0, 0, child->rows, child->pathtarget->width);
	return cost.startup + sort.total_cost * Max(sorts, 1);
}

/* What the arguments and filters of the aggregates cost, for all rows. */
static Cost
arguments_cost(PlannerInfo *root, const Path *child, const HgjAggContents *contents)
{
	Cost		cost = 0;
	ListCell   *lc;

	foreach(lc, contents->aggrefs)
	{
		Aggref	   *aggref = lfirst_node(Aggref, lc);
		QualCost	qual;

		cost_qual_eval(&qual, aggref->args, root);
		cost += qual.startup + qual.per_tuple * child->rows;
		cost_qual_eval_node(&qual, (Node *) aggref->aggfilter, root);
		cost += qual.startup + qual.per_tuple * child->rows;
	}
	return cost;
}

static bool
is_number(Oid type)
{
	return type == INT2OID || type == INT4OID || type == INT8OID || type == NUMERICOID;
}

/* Step 6: does HAVING begin with a clause that compares an aggregate with one value, as numbers? */
static bool
may_be_asked_on_device(const List *having)
{
	const OpExpr *clause = having ? linitial(having) : NULL;
	const Node *value;
	bool		turned;
	const Aggref *aggref = clause ? hgj_compared_aggregate(clause, &value, &turned) : NULL;

	return aggref && clause->opresulttype == BOOLOID && get_oprrest(clause->opno) != F_NEQSEL &&
		(IsA(value, Const) || IsA(value, Param)) &&
		is_number(exprType((const Node *) aggref)) && is_number(exprType(value));
}

/* Step 5: have threads memory for this number of groups, and once more while they are merged? */
static bool
fit_into_threads(const HgjAggContents *contents, double groups)
{
	double		bytes = HGJ_THREADS_GROUP_BYTES +
		HGJ_THREADS_KEY_BYTES * list_length(contents->group_exprs) +
		HGJ_THREADS_STATE_BYTES * list_length(contents->aggrefs);

	return groups * bytes * HGJ_THREADS_COPIES < (double) hgj_threads_memory();
}

/* Step 5: the number of groups that threads send back. */
static double
groups_from_threads(PlannerInfo *root, const HgjAggContents *contents, const Path *child,
					double groups)
{
	if (!may_be_asked_on_device(contents->having))
		return groups;
	return groups * hgj_having_selectivity(root, contents->having, child->rows, groups);
}

/*
 * Step 5: what a pipeline saves of a HashGraphAgg's costs, less what it takes for
 * itself.  kept: the part of the outermost table's rows that need not be sent.
 */
Cost
hgj_agg_device_gain(PlannerInfo *root, const Path *child, const HgjAggContents *contents,
					double kept, double groups)
{
	const Path *outer = hgj_below_joins(child);
	Cost		gain = take_cost(child, contents);

	if (kept > 0)
		gain += arguments_cost(root, child, contents);
	if (hgj_device_threads() > 0)
		return !fit_into_threads(contents, groups) ? -disable_cost :
			hgj_threads_saving(gain) - HGJ_THREADS_COST -
			HGJ_THREADS_GROUP_COST * groups_from_threads(root, contents, child, groups);
	if (kept == 0 && !hgj_cuda_is_open())
		gain -= hgj_device_startup_cost;
	return gain - hgj_device_launch_cost *
		(HGJ_DEVICE_PIPE_LAUNCHES + (1 - kept) * outer->rows / HGJ_DEVICE_PIPE_ROWS);
}

/*
 * The costs and rows of a HashGraphAgg path, whose target is set.  Arguments
 * and filters are charged like everybody else's.  in_pipeline: it is planned for a device.
 * Returns what the rows cost, from where they are read to their groups.
 */
Cost
hgj_cost_agg(PlannerInfo *root, Path *path, const Path *child,
			 const HgjAggContents *contents, double groups, bool in_pipeline)
{
	bool		on_device = in_pipeline && may_be_asked_on_device(contents->having);
	const QualCost *final = &contents->costs.finalCost;
	Cost		rows = take_cost(child, contents) + arguments_cost(root, child, contents);
	Cost		startup = Max(child->total_cost - hgj_agg_feed_saving(root, child),
							  child->startup_cost);
	double		grown;
	int			naggs;
	double		memories = groups_in_memories(root, contents, groups, child->rows, &grown, &naggs);
	/* of the rows of all processes there are as many to a group as of all groups */
	Selectivity passing = hgj_having_selectivity(root, contents->having, child->rows *
												 (contents->exchanged_groups > 0 ? hgj_parallel_divisor(child) : 1),
												 contents->exchanged_groups > 0 ? contents->exchanged_groups : groups);
	Cost		run;
	QualCost	qual;
	ListCell   *lc;

	startup += rows + call_cost(root, child, contents, groups);
	foreach(lc, hgj_agg_inputs(child))
		if (hgj_is_scan_path(lfirst(lc)))
			startup += hgj_startup_cost * HGJ_CHAINED_STARTUP;
	if (contents->exchanged_groups > 0)
		startup += exchange_cost(child, contents, memories, &groups);
	else if (contents->split != AGGSPLIT_SIMPLE)
		groups = groups_returned(memories, groups, child->rows);
	else if (!on_device)
		startup += spill_cost(memories, grown, child);
	if (path->parallel_workers > 0)
		startup += hgj_worker_charge(root, path) - hgj_workers_charged(root, child);
	path->rows = groups;
	if (contents->having)
		path->rows = clamp_row_est(groups * passing);
	if (on_device)
		groups = path->rows;
	cost_qual_eval(&qual, contents->having, root);
	run = (final->per_tuple + cpu_tuple_cost + qual.per_tuple) * groups;
	startup += final->startup + qual.startup;

	startup += path->pathtarget->cost.startup;
	run += path->pathtarget->cost.per_tuple * path->rows;
	path->startup_cost = startup;
	path->total_cost = startup + run;
	return rows;
}
