/*-------------------------------------------------------------------------
 *
 * scalar.c
 *	  Is a subquery with one value, such as (SELECT avg(x) FROM t WHERE t.k = o.k), a join
 *	  with the groups of a table?
 *
 * It is, where all of this holds:
 *
 * 1. It returns one row in any case: it has aggregates, and none of GROUP BY, HAVING,
 *	  DISTINCT, LIMIT, window functions, WITH, UNION, FOR UPDATE.
 * 2. It depends on the query around it by equalities in its WHERE alone, and by what its
 *	  value is made of outside of aggregates.  Each equality has an operand inside and one
 *	  around, and its operator raises no error and stands in a hash operator family with the equality that groups
 *	  the inner operand's type: then all rows of a group are equal to the outer operand if one
 *	  is, and no two groups are.  Both have the same collation.
 * 3. Its aggregates are of those whose value over no rows is known, NULL or 0, and depends
 *	  neither on the order of the rows nor on the way in which they are read.
 * 4. Nothing in it is volatile, and nothing raises an error (proofs.c); sums of floating-point
 *	  numbers and of intervals can.  What is computed from the aggregates' values is computed
 *	  around the join (levels.c, step 4).
 *
 * No memory but lists in the current context, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "columns/keys.h"
#include "expr/demand.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_oper.h"
#include "rewrite/hidden.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/* The clauses of a condition. */
static void
split_clauses(Node *condition, List **clauses)
{
	ListCell   *lc;

	if (condition == NULL)
		return;
	if (!is_andclause(condition))
	{
		*clauses = lappend(*clauses, condition);
		return;
	}
	foreach(lc, ((BoolExpr *) condition)->args)
		split_clauses(lfirst(lc), clauses);
}

/* Step 2: is each operand of one level only? */
static bool
split_operands(const OpExpr *clause, HgjCorrelation *correlation)
{
	Expr	   *left = linitial(clause->args);
	Expr	   *right = lsecond(clause->args);
	bool		turned = hgj_refers_to_level((Node *) left, 1);

	correlation->inner = turned ? right : left;
	correlation->outer = turned ? left : right;
	return !hgj_refers_to_level((Node *) correlation->inner, 1) &&
		hgj_refers_to_level((Node *) correlation->inner, 0) &&
		hgj_refers_to_level((Node *) correlation->outer, 1) &&
		!hgj_refers_to_level((Node *) correlation->outer, 0);
}

/* Step 2; false: it is no such equality. */
static bool
take_correlation(Node *node, HgjCorrelation *correlation)
{
	OpExpr	   *clause = (OpExpr *) node;
	Oid			left;
	Oid			right;
	Oid			of_inner;
	Oid			type;

	if (!IsA(node, OpExpr) || list_length(clause->args) != 2 ||
		!split_operands(clause, correlation))
		return false;
	if (!op_hashjoinable(clause->opno, exprType(linitial(clause->args))) ||
		!op_strict(clause->opno) ||
		!get_compatible_hash_operators(clause->opno, &left, &right))
		return false;
	if (hgj_calls_may_raise(node) ||
		(type_is_collatable(exprType((Node *) correlation->inner)) &&
		 !OidIsValid(clause->inputcollid)))
		return false;
	correlation->clause = clause;
	of_inner = correlation->inner == linitial(clause->args) ? left : right;
	type = exprType((Node *) correlation->inner);
	get_sort_group_operators(type, false, false, false, &correlation->sort_operator,
							 &correlation->group_operator, NULL, &correlation->hashable);
	return correlation->hashable && correlation->group_operator == of_inner &&
		clause->inputcollid == exprCollation((Node *) correlation->inner);
}

/* Steps 3 and 4: of one aggregate, whatever its arguments are. */
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

/*
 * Step 3: is the value the same, whatever the order of the rows is, and whichever of equal
 * values comes first?
 */
static bool
is_told_by_values(const Aggref *aggref, Node *argument)
{
	switch (aggref->aggfnoid)
	{
		case F_MIN_NUMERIC:
		case F_MAX_NUMERIC:
			return exprTypmod(argument) >= 0;
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

/* Steps 3 and 4, of one aggregate. */
static HgjHidden
look_at_aggregate(const Aggref *aggref)
{
	Node	   *argument = aggref->args == NIL ? NULL :
		(Node *) linitial_node(TargetEntry, aggref->args)->expr;
	bool		adds_numerics = aggref->aggfnoid == F_SUM_NUMERIC ||
		aggref->aggfnoid == F_AVG_NUMERIC;

	if (aggref->agglevelsup > 0 || aggref->aggdistinct != NIL || aggref->aggorder != NIL ||
		!is_known_aggregate(aggref->aggfnoid) || !is_told_by_values(aggref, argument))
		return HGJ_HIDDEN_AGGREGATE;
	if (hgj_refers_to_level((Node *) aggref, 1))
		return HGJ_HIDDEN_CORRELATION;
	if (hgj_row_may_raise(argument) || hgj_row_may_raise((Node *) aggref->aggfilter) ||
		(adds_numerics && !hgj_is_small_numeric(argument)))
		return HGJ_HIDDEN_RAISES;
	return HGJ_HIDDEN_IS_JOIN;
}

/* The value: aggregates, and what is computed of them.  context: where the reason goes */
static bool
look_at_value(Node *node, void *context)
{
	HgjHidden  *reason = context;

	if (node == NULL)
		return false;
	if (IsA(node, SubLink))
		*reason = HGJ_HIDDEN_SHAPE;
	else if (IsA(node, Aggref))
		*reason = look_at_aggregate((const Aggref *) node);
	else
		return expression_tree_walker(node, look_at_value, context);
	return *reason != HGJ_HIDDEN_IS_JOIN;
}

/* Step 2: the equalities, and the clauses that are none. */
static HgjHidden
look_at_clauses(const Query *subquery, HgjScalar *scalar)
{
	List	   *clauses = NIL;
	ListCell   *lc;

	if (hgj_refers_to_level((Node *) subquery->jointree->fromlist, 1) ||
		hgj_tables_refer_to_level(subquery->rtable, 1))
		return HGJ_HIDDEN_CORRELATION;
	split_clauses(subquery->jointree->quals, &clauses);
	foreach(lc, clauses)
	{
		HgjCorrelation correlation;

		if (!hgj_refers_to_level(lfirst(lc), 1))
			scalar->rest = lappend(scalar->rest, lfirst(lc));
		else if (!take_correlation(lfirst(lc), &correlation))
			return HGJ_HIDDEN_CORRELATION;
		else if (hgj_row_may_raise((Node *) correlation.inner) ||
				 hgj_row_may_raise((Node *) correlation.outer))
			return HGJ_HIDDEN_RAISES;
		else
			scalar->correlations = lappend(scalar->correlations,
										   memcpy(palloc(sizeof(correlation)), &correlation,
												  sizeof(correlation)));
	}
	return scalar->correlations == NIL ? HGJ_HIDDEN_CORRELATION : HGJ_HIDDEN_IS_JOIN;
}

/* What becomes of a subquery that depends on the level above it.  *scalar is all zero. */
HgjHidden
hgj_look_at_scalar(const HgjRewriting *rewriting, const Query *subquery, HgjScalar *scalar)
{
	HgjHidden	reason = HGJ_HIDDEN_IS_JOIN;

	if (!hgj_is_plain(subquery) || !subquery->hasAggs || list_length(subquery->targetList) != 1)
		return HGJ_HIDDEN_SHAPE;
	if (contain_volatile_functions((Node *) subquery))
		return HGJ_HIDDEN_VOLATILE;
	if (hgj_refers_above((Node *) subquery, 1))
		return HGJ_HIDDEN_LEVELS;
	(void) look_at_value((Node *) subquery->targetList, &reason);
	if (reason == HGJ_HIDDEN_IS_JOIN)
		reason = look_at_clauses(subquery, scalar);
	if (reason == HGJ_HIDDEN_IS_JOIN && hgj_row_may_raise((Node *) scalar->rest))
		reason = HGJ_HIDDEN_RAISES;
	if (reason == HGJ_HIDDEN_IS_JOIN && !hgj_reads_proven(rewriting, subquery))
		reason = HGJ_HIDDEN_READS;
	if (reason == HGJ_HIDDEN_IS_JOIN && !hgj_is_permitted(subquery))
		reason = HGJ_HIDDEN_PERMISSION;
	return reason;
}
