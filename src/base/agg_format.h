/*-------------------------------------------------------------------------
 *
 * agg_format.h
 *	  The shape of a HashGraphAgg's CustomScan: what the planner writes and
 *	  the executor reads.
 *
 * custom_plans		 the HashGraphJoin whose batches are aggregated, or another
 *					 plan, a sequential scan, that is read by batches
 * custom_scan_tlist the child's output columns, one for one (these include the
 *					 grouping expressions), then one Aggref per distinct
 *					 aggregate; expressions name them as INDEX_VAR
 * targetlist		 what is returned, over group columns and Aggrefs
 * custom_exprs		 three lists, by position (below); the first two have one
 *					 entry per aggregate, over the child's output columns only
 * custom_private	 lists by HgjAggFact
 *
 * A group column is a column of the child's output.  Columns that merely depend
 * on other group columns (GROUP BY a primary key) are group columns as well, the last ones.
 *
 * All aggregates have the same aggsplit: AGGSPLIT_SIMPLE, or
 * AGGSPLIT_INITIAL_SERIAL, whose values are PostgreSQL's transition states,
 * serialized where their type is internal.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_AGG_FORMAT_H
#define HGJ_AGG_FORMAT_H

#include "compat.h"

#include "miscadmin.h"
#include "nodes/extensible.h"
#include "nodes/plannodes.h"
#include "utils/fmgroids.h"

/* CustomName of the path, the plan and the node; EXPLAIN prints it. */
#define HGJ_AGG_NODE_NAME	"HashGraphAgg"

/* custom_exprs, by position */
#define HGJ_AGG_EXPRS_ARGS		0	/* Lists of arguments; NIL: count(*) */
#define HGJ_AGG_EXPRS_FILTERS	1	/* FILTER expressions, or NULL */
#define HGJ_AGG_EXPRS_HAVING	2	/* clauses over all of custom_scan_tlist */

/* The number of integers of HGJ_AGG_SPLIT. */
#define HGJ_AGG_SPLIT_FACTS		4

/* custom_private, by position */
typedef enum HgjAggFact
{
	HGJ_AGG_GROUP_COLUMNS,		/* IntList: resnos in the child's target list */
	HGJ_AGG_GROUP_OPERATORS,	/* OidList: their equality operators */
	HGJ_AGG_FUNCTIONS,			/* OidList: aggfnoid per aggregate; InvalidOid: its Aggref's,
								 * DISTINCT and ORDER BY with it, by PostgreSQL's functions */
	HGJ_AGG_SPLIT,				/* IntList of HGJ_AGG_SPLIT_FACTS: the AggSplit of them all,
								 * the number of leading columns by whose hash processes
								 * divide the groups (agg_exchange.c) or 0, whether a
								 * pipeline on a GPU is planned, and the number of leading
								 * columns that tell groups apart */
	HGJ_AGG_ESTIMATES,			/* IntList: expected groups, and per group
								 * column kB of a dictionary of its values */
	HGJ_AGG_HIDDEN,				/* IntList by HgjHiddenFact */
	HGJ_AGG_FACTS
} HgjAggFact;

/*
 * Functions that only plans have (HGJ_AGG_FUNCTIONS), for aggregates of groups that have
 * been aggregated: sums of int8 that are int8, 0 or NULL where there was nothing, and
 * averages, whose sums are their arguments and whose counts the next aggregate adds up.
 * The numbers are those of PostgreSQL's functions that add up such values, or divide them.
 */
#define HGJ_AGG_SUM_OF_COUNTS	F_INT8PL
#define HGJ_AGG_SUM_OF_SUMS		F_INT8_SUM
#define HGJ_AGG_AVG_OF_SUMS		F_INT8_AVG	/* int8 ... */
#define HGJ_AGG_AVG_OF_NUMERICS F_NUMERIC_AVG	/* ... or numeric */

extern const CustomScanMethods hgj_agg_scan_methods;	/* agg_node.c */

extern bool hgj_is_agg_plan(const Plan *plan);	/* own_nodes.c */

/*
 * Can HashGraphAgg compute this aggregate function by itself (over arguments of the
 * types it is declared for)?  The planner asks (agg_functions.c).
 */
extern bool hgj_agg_function_supported(Oid aggfnoid);

/*
 * Can computing it raise an error, whatever evaluating the argument does?  Sums without a
 * declared bound can, and so may what users have created.
 */
extern bool hgj_agg_may_raise(Oid aggfnoid, const Expr *argument);

/*
 * Is the result the same for any order of the argument's values, and for any of several
 * that are equal?  Those of numeric are then to have the same scale.  (Of the
 * functions that DISTINCT changes.)
 */
extern bool hgj_agg_takes_any_equal(Oid aggfnoid, const Expr *argument);

/*
 * Does a state of the aggregate, which PostgreSQL's functions compute, keep every value that
 * it is given?  What users have created is taken at its state's type: strings and arrays
 * that begin with nothing in them do, but for those of min() and max().
 */
extern bool hgj_agg_state_grows(Oid aggfnoid);

/* Parts of the groups in which such states are made when they fill memory. */
#define HGJ_AGG_FEWEST_PARTS	8
#define HGJ_AGG_MOST_PARTS		64

/* What waits for a part of one aggregate takes so much memory at least. */
#define HGJ_AGG_PART_KILOBYTES	32

/* The number of these parts, where this number of aggregates divides work_mem. */
static inline uint32
hgj_agg_growing_parts(int naggs)
{
	int			parts = work_mem / HGJ_AGG_PART_KILOBYTES / Max(naggs, 1);

	return Min(Max(parts, HGJ_AGG_FEWEST_PARTS), HGJ_AGG_MOST_PARTS);
}

#endif							/* HGJ_AGG_FORMAT_H */
