/*-------------------------------------------------------------------------
 *
 * aggregates.c
 *	  May a subquery's aggregates be computed for all groups at once, and not for one group at a
 *	  time?
 *
 * They may, where all of this holds:
 *
 * 1. The value of each over no rows is known: NULL, or 0 of a count.
 * 2. It depends neither on the order of the rows nor on the way in which they are read.
 * 3. It raises no error, whatever the rows are (proofs.c); sums of floating-point numbers and of
 *	  intervals can.
 *
 * Aggregates are also made here, for subqueries that are written without them (quantified.c,
 * single.c, guarded.c).
 *
 * Memory: the current context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "columns/keys.h"
#include "expr/demand.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parse_func.h"
#include "rewrite/hidden.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/syscache.h"

/* Steps 1 and 3: of one aggregate, whatever its arguments are. */
static bool
is_known_aggregate(Oid function)
{
	switch (function)
	{
		case F_COUNT_:
		case F_COUNT_ANY:
		case F_SUM_INT2:
		case F_SUM_INT4:
		case F_SUM_INT8:
		case F_SUM_NUMERIC:
		case F_AVG_INT2:
		case F_AVG_INT4:
		case F_AVG_INT8:
		case F_AVG_NUMERIC:
		case F_BOOL_AND:
		case F_BOOL_OR:
		case F_EVERY:
		case F_MIN_INT2:
		case F_MAX_INT2:
		case F_MIN_INT4:
		case F_MAX_INT4:
		case F_MIN_INT8:
		case F_MAX_INT8:
		case F_MIN_NUMERIC:
		case F_MAX_NUMERIC:
		case F_MIN_OID:
		case F_MAX_OID:
		case F_MIN_DATE:
		case F_MAX_DATE:
		case F_MIN_TIME:
		case F_MAX_TIME:
		case F_MIN_TIMETZ:
		case F_MAX_TIMETZ:
		case F_MIN_TIMESTAMP:
		case F_MAX_TIMESTAMP:
		case F_MIN_TIMESTAMPTZ:
		case F_MAX_TIMESTAMPTZ:
		case F_MIN_MONEY:
		case F_MAX_MONEY:
		case F_MIN_TEXT:
		case F_MAX_TEXT:
		case F_MIN_BPCHAR:
		case F_MAX_BPCHAR:
			return true;
		default:
			return false;
	}
}

/* Is it an integer that has become a numeric, without a fraction? */
static bool
is_whole(const Node *argument)
{
	const FuncExpr *cast = (const FuncExpr *) argument;

	return IsA(argument, FuncExpr) &&
		(cast->funcid == F_NUMERIC_INT2 || cast->funcid == F_NUMERIC_INT4 ||
		 cast->funcid == F_NUMERIC_INT8);
}

/*
 * Step 2: does the value depend neither on the order of the rows, nor on which of equal
 * values comes first?
 */
static bool
is_told_by_values(const Aggref *aggref, Node *argument)
{
	switch (aggref->aggfnoid)
	{
		case F_MIN_NUMERIC:
		case F_MAX_NUMERIC:
			return exprTypmod(argument) >= 0 || is_whole(argument);
		case F_MIN_BPCHAR:
		case F_MAX_BPCHAR:
			if (exprTypmod(argument) < 0)
				return false;
			/* FALLTHROUGH */
		case F_MIN_TEXT:
		case F_MAX_TEXT:
			return hgj_is_deterministic(aggref->inputcollid);
		default:
			return true;
	}
}

/* Can the equality by which rows are grouped raise an error? */
static bool
equality_may_raise(const SortGroupClause *clause, const List *targetlist)
{
	/* what the value is computed of is looked at where it is computed */
	Node	   *value = hgj_any_value(get_sortgroupclause_expr((SortGroupClause *) clause,
															(List *) targetlist), false);
	OpExpr	   *equality = (OpExpr *) make_opclause(clause->eqop, BOOLOID, false, (Expr *) value,
													(Expr *) value, InvalidOid,
													exprCollation(value));

	return hgj_row_may_raise((Node *) equality);
}

/* Step 2: how many values differ depends on their equality alone, which may raise no error. */
static bool
counts_distinct(const Aggref *aggref)
{
	return aggref->aggfnoid == F_COUNT_ANY &&
		!equality_may_raise(linitial(aggref->aggdistinct), aggref->args);
}

/* A walk through an expression over groups. */
typedef struct HgjLook
{
	bool		at_order;		/* step 2 is asked for */
	HgjHidden	reason;			/* what has been found */
} HgjLook;

/* One aggregate. */
static HgjHidden
look_at_aggregate(const Aggref *aggref, bool at_order)
{
	Node	   *argument = aggref->args == NIL ? NULL :
		(Node *) linitial_node(TargetEntry, aggref->args)->expr;
	bool		adds_numerics = aggref->aggfnoid == F_SUM_NUMERIC ||
		aggref->aggfnoid == F_AVG_NUMERIC;

	if (aggref->agglevelsup > 0 || aggref->aggorder != NIL ||
		!is_known_aggregate(aggref->aggfnoid) ||
		(at_order && !is_told_by_values(aggref, argument)) ||
		(aggref->aggdistinct != NIL && !counts_distinct(aggref)))
		return HGJ_HIDDEN_AGGREGATE;
	if (hgj_refers_to_level((Node *) aggref, 1))
		return HGJ_HIDDEN_CORRELATION;
	if (hgj_row_may_raise(argument) || hgj_row_may_raise((Node *) aggref->aggfilter) ||
		(adds_numerics && !hgj_is_small_numeric(argument)))
		return HGJ_HIDDEN_RAISES;
	return HGJ_HIDDEN_IS_JOIN;
}

static bool
look_at_node(Node *node, void *context)
{
	HgjLook    *look = context;

	if (node == NULL)
		return false;
	if (IsA(node, SubLink))
		look->reason = HGJ_HIDDEN_SHAPE;
	else if (IsA(node, Aggref))
		look->reason = look_at_aggregate((const Aggref *) node, look->at_order);
	else
		return expression_tree_walker(node, look_at_node, context);
	return look->reason != HGJ_HIDDEN_IS_JOIN;
}

/* An expression over groups: its aggregates, not what is computed of their values. */
HgjHidden
hgj_look_at_aggregates(Node *value)
{
	HgjLook		look = {true, HGJ_HIDDEN_IS_JOIN};

	(void) look_at_node(value, &look);
	return look.reason;
}

/* Put a value in the place of each aggregate. */
static Node *
without_aggregates(Node *node, void *context)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Aggref))
		return hgj_any_value(node, true);
	return expression_tree_mutator(node, without_aggregates, context);
}

/* Can what is computed of aggregates' values raise an error? */
bool
hgj_group_may_raise(Node *expression)
{
	return hgj_row_may_raise(without_aggregates(expression, NULL));
}

/* Can an expression over groups, or a list of them, raise an error, its aggregates or what is made of them? */
bool
hgj_groups_may_raise(Node *expression)
{
	HgjLook		look = {false, HGJ_HIDDEN_IS_JOIN};

	return look_at_node(expression, &look) || hgj_group_may_raise(expression);
}

/* An expression over groups, or a list of them: aggregates, and what is computed of them. */
HgjHidden
hgj_look_at_group(Node *expression)
{
	HgjHidden	reason = hgj_look_at_aggregates(expression);

	if (reason == HGJ_HIDDEN_IS_JOIN && hgj_group_may_raise(expression))
		return HGJ_HIDDEN_RAISES;
	return reason;
}

/*
 * May all groups of a SELECT be computed: keys, HAVING, what is returned, and what is computed of
 * aggregates for it?
 */
HgjHidden
hgj_look_at_groups(const Query *query)
{
	HgjHidden	reason = hgj_look_at_group((Node *) query->targetList);
	ListCell   *lc;

	if (reason == HGJ_HIDDEN_IS_JOIN)
		reason = hgj_look_at_group(query->havingQual);
	foreach(lc, list_concat_copy(query->groupClause, query->distinctClause))
		if (equality_may_raise(lfirst(lc), query->targetList))
			return HGJ_HIDDEN_RAISES;
	return reason;
}

/* The operator by which an aggregate is the first or last value, or InvalidOid. */
Oid
hgj_sort_operator_of(Oid aggregate)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate));
	Oid			result = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		result = ((Form_pg_aggregate) GETSTRUCT(tuple))->aggsortop;
		ReleaseSysCache(tuple);
	}
	return result;
}

/* A plain aggregate of one argument, or of none. */
static Aggref *
make_aggregate(Oid function, Oid type, Expr *argument)
{
	Aggref	   *result = makeNode(Aggref);

	result->aggfnoid = function;
	result->aggtype = type;
	result->aggstar = argument == NULL;
	if (argument)
	{
		result->aggargtypes = list_make1_oid(exprType((Node *) argument));
		result->args = list_make1(makeTargetEntry(copyObject(argument), 1, NULL, false));
		result->inputcollid = exprCollation((Node *) argument);
	}
	result->aggkind = AGGKIND_NORMAL;
	result->aggsplit = AGGSPLIT_SIMPLE;
	result->aggno = result->aggtransno = -1;
	result->location = -1;
	return result;
}

/*
 * The greatest, or smallest, of an argument's values; *sort_operator is the operator that says
 * which comes first.  NULL: its type has no such aggregate that is known.
 */
Aggref *
hgj_make_extreme(Expr *argument, bool greatest, Oid *sort_operator)
{
	Oid			type = exprType((Node *) argument);
	Oid			function = LookupFuncName(list_make2(makeString("pg_catalog"),
													 makeString(greatest ? "max" : "min")),
										  1, &type, true);
	Aggref	   *result;

	if (!OidIsValid(function) || !is_known_aggregate(function))
		return NULL;
	*sort_operator = hgj_sort_operator_of(function);
	if (!OidIsValid(*sort_operator))
		return NULL;
	result = make_aggregate(function, type, argument);
	result->aggcollid = result->inputcollid;
	return result;
}

/* The aggregate that has the first of these values in an order, NULLs left aside; or NULL. */
Aggref *
hgj_make_first(Expr *argument, const SortGroupClause *order)
{
	for (int greatest = 0; greatest < 2; greatest++)
	{
		Oid			sort_operator;
		Aggref	   *result = hgj_make_extreme(argument, greatest, &sort_operator);

		if (result && sort_operator == order->sortop)
			return result;
	}
	return NULL;
}

/* How many rows there are, or how many with a value. */
Aggref *
hgj_make_count(Expr *argument)
{
	return make_aggregate(argument ? F_COUNT_ANY : F_COUNT_, INT8OID, argument);
}

/* Does a condition hold for all rows for which it is not NULL? */
Aggref *
hgj_make_all(Expr *condition)
{
	return make_aggregate(F_BOOL_AND, BOOLOID, condition);
}
