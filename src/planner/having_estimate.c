/*-------------------------------------------------------------------------
 *
 * having_estimate.c
 *	  How many groups HAVING lets pass.
 *
 * PostgreSQL knows nothing of an aggregate's values, and takes a third of all groups for what
 * sum(x) > 300 leaves.  Of many million groups that is far from the few that are wanted, and all
 * that is above is planned for millions.
 *
 * 1. A group has n rows on average.  Taken as a Poisson number of independent values, whose mean
 *	  m and mean square q the column's statistics tell, count() has mean and variance n; sum(x)
 *	  has mean n * m and variance n * q; avg(x) has mean m and variance (q - m * m) / n.
 * 2. The value is taken as normal, which says what share is above the constant that it is
 *	  compared with.  Tails are what that knows least about, so it is believed down to a
 *	  hundredth.
 * 3. Any other clause is estimated by PostgreSQL.
 *
 * No memory is kept, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "planner/agg_path.h"
#include "planner/planner.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

/* Step 2 */
#define LEAST_SHARE		0.01

/* Step 1: what is known of a column's values. */
typedef struct Moments
{
	double		mean;
	double		square;			/* mean of the squares */
	double		share;			/* share of the rows that these are of; 0: nothing is known */
} Moments;

/* Put a number into *result as a double.  Returns false if the value is no number, or not finite. */
static bool
as_double(Oid type, Datum value, double *result)
{
	switch (type)
	{
		case INT2OID:
			*result = DatumGetInt16(value);
			break;
		case INT4OID:
			*result = DatumGetInt32(value);
			break;
		case INT8OID:
			*result = (double) DatumGetInt64(value);
			break;
		case FLOAT4OID:
			*result = DatumGetFloat4(value);
			break;
		case FLOAT8OID:
			*result = DatumGetFloat8(value);
			break;
		case NUMERICOID:
			*result = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, value));
			break;
		default:
			return false;
	}
	return isfinite(*result);
}

static void
add_values(Moments *moments, double mean, double square, double share)
{
	moments->mean += mean * share;
	moments->square += square * share;
	moments->share += share;
}

/* Step 1: values that are frequent, each with its share. */
static void
add_frequent(Moments *moments, HeapTuple statistics, Oid type)
{
	AttStatsSlot slot;
	double		value;

	if (!get_attstatsslot(&slot, statistics, STATISTIC_KIND_MCV, InvalidOid,
						  ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS))
		return;
	for (int i = 0; i < Min(slot.nvalues, slot.nnumbers); i++)
		if (as_double(type, slot.values[i], &value))
			add_values(moments, value, value * value, slot.numbers[i]);
	free_attstatsslot(&slot);
}

/* Step 1: all others, which lie evenly between the bounds of each part. */
static void
add_others(Moments *moments, HeapTuple statistics, Oid type, double share)
{
	AttStatsSlot slot;
	double		low;
	double		high;

	if (share <= 0 || !get_attstatsslot(&slot, statistics, STATISTIC_KIND_HISTOGRAM, InvalidOid,
										ATTSTATSSLOT_VALUES))
		return;
	for (int i = 1; i < slot.nvalues; i++)
		if (as_double(type, slot.values[i - 1], &low) && as_double(type, slot.values[i], &high))
			add_values(moments, (low + high) / 2, (low * low + low * high + high * high) / 3,
					   share / (slot.nvalues - 1));
	free_attstatsslot(&slot);
}

/* Step 1; moments->share is 0 where nothing is known, or the user may not know it. */
static void
look_at_column(PlannerInfo *root, Node *column, Moments *moments)
{
	VariableStatData data;

	memset(moments, 0, sizeof(*moments));
	examine_variable(root, column, 0, &data);
	if (HeapTupleIsValid(data.statsTuple) && data.acl_ok)
	{
		Oid			type = exprType(column);

		add_frequent(moments, data.statsTuple, type);
		add_others(moments, data.statsTuple, type,
				   1 - moments->share - ((Form_pg_statistic) GETSTRUCT(data.statsTuple))->stanullfrac);
	}
	ReleaseVariableStats(data);
	if (moments->share > 0)
	{
		moments->mean /= moments->share;
		moments->square /= moments->share;
	}
}

/* Step 1: mean and variance of an aggregate over groups of n rows; false: they are not known. */
static bool
look_at_aggregate(PlannerInfo *root, const Aggref *aggref, double n, double *mean,
				  double *variance)
{
	Moments		moments;

	if (aggref->aggdistinct != NIL || aggref->aggfilter != NULL)
		return false;
	*mean = *variance = n;
	if (aggref->aggfnoid == F_COUNT_ || aggref->aggfnoid == F_COUNT_ANY)
		return true;
	if (list_length(aggref->args) != 1)
		return false;
	look_at_column(root, (Node *) linitial_node(TargetEntry, aggref->args)->expr, &moments);
	n *= moments.share;
	if (n <= 0)
		return false;
	switch (aggref->aggfnoid)
	{
		case F_SUM_INT2:
		case F_SUM_INT4:
		case F_SUM_INT8:
		case F_SUM_NUMERIC:
		case F_SUM_FLOAT4:
		case F_SUM_FLOAT8:
			*mean = n * moments.mean;
			*variance = n * moments.square;
			return true;
		case F_AVG_INT2:
		case F_AVG_INT4:
		case F_AVG_INT8:
		case F_AVG_NUMERIC:
		case F_AVG_FLOAT4:
		case F_AVG_FLOAT8:
			*mean = moments.mean;
			*variance = Max(moments.square - moments.mean * moments.mean, 0) / n;
			return true;
		default:
			return false;
	}
}

/* Is the operator a comparison by which greater values pass (1), or smaller ones (-1)?  0: neither */
static int
direction_of(Oid operator)
{
	switch (get_oprrest(operator))
	{
		case F_SCALARGTSEL:
		case F_SCALARGESEL:
			return 1;
		case F_SCALARLTSEL:
		case F_SCALARLESEL:
			return -1;
		default:
			return 0;
	}
}

/*
 * The aggregate that a clause of HAVING compares with another value, if its form is this, or NULL;
 * *turned: the aggregate stands on the right.
 */
const Aggref *
hgj_compared_aggregate(const OpExpr *clause, const Node **value, bool *turned)
{
	const Node *left;
	const Node *right;

	if (!IsA(clause, OpExpr) || list_length(clause->args) != 2)
		return NULL;
	left = linitial(clause->args);
	right = lsecond(clause->args);
	*turned = IsA(right, Aggref);
	*value = *turned ? left : right;
	left = *turned ? right : left;
	return IsA(left, Aggref) ? (const Aggref *) left : NULL;
}

/* Steps 1 and 2: the share of groups of n rows that pass one clause.  Returns -1 if it is not known. */
static double
share_of_groups(PlannerInfo *root, const OpExpr *clause, double n)
{
	const Node *value;
	bool		turned;
	const Aggref *aggref = hgj_compared_aggregate(clause, &value, &turned);
	int			direction = aggref ? direction_of(clause->opno) : 0;
	double		bound;
	double		mean;
	double		variance;
	double		above;

	if (direction == 0 || !IsA(value, Const) || ((const Const *) value)->constisnull ||
		!as_double(((const Const *) value)->consttype, ((const Const *) value)->constvalue, &bound) ||
		!look_at_aggregate(root, aggref, n, &mean, &variance) || variance <= 0)
		return -1;
	above = 0.5 * erfc((bound - mean) / sqrt(2 * variance));
	above = Min(Max(above, LEAST_SHARE), 1 - LEAST_SHARE);
	return (direction > 0) != turned ? above : 1 - above;
}

/* The share of `groups` groups of `rows` rows that pass these clauses. */
Selectivity
hgj_having_selectivity(PlannerInfo *root, List *having, double rows, double groups)
{
	List	   *others = NIL;
	Selectivity result = 1;
	ListCell   *lc;

	foreach(lc, having)
	{
		double		share = share_of_groups(root, lfirst(lc), rows / Max(groups, 1));

		if (share < 0)
			others = lappend(others, lfirst(lc));
		else
			result *= share;
	}
	return result * clauselist_selectivity(root, others, 0, JOIN_INNER, NULL);
}
