/*-------------------------------------------------------------------------
 *
 * guarded.c
 *	  A subquery whose rows may raise errors becomes a join where they do not.
 *
 *	  ... o WHERE x < (SELECT sum(price * qty) FROM t WHERE t.k = o.k)
 *	  ... o LEFT JOIN (SELECT t.k, sum(CASE WHEN g IS NOT FALSE THEN price * qty END), bool_and(g)
 *						 FROM t GROUP BY t.k) c ON c.k = o.k
 *			WHERE x < CASE WHEN c.bool_and IS FALSE
 *						   THEN (SELECT sum(price * qty) FROM t WHERE t.k = o.k) ELSE c.sum END
 *
 *	  Here g is the guard of price * qty, price::bigint * qty::bigint BETWEEN -2147483648 AND
 *	  2147483647.
 *
 * 1. The guard of an expression is a condition of its columns that raises no error.  Where it is
 *	  not false, the expression raises none either; it is NULL only where a strict function has
 *	  an operand that is NULL, and is not called.
 * 2. Sums, differences, products and quotients of integers are guarded, and what makes an integer
 *	  a smaller one.  The guard computes them as bigint.  No value of it overflows: columns are
 *	  limited so far that none can, by the greatest limit that does.  Divisors are not 0.  What is
 *	  computed of guarded values again has no guard, so that a guard is not much longer than its
 *	  expression.
 * 3. Days and intervals are added to dates and timestamps that are not far away.  Dates are
 *	  subtracted from each other if both are finite, timestamps if neither is far away.
 * 4. What CASE computes under a condition is guarded under it, and so is what FILTER counts, if
 *	  the condition needs no guard itself.
 * 5. An aggregate's argument is NULL where its guard is false, and a clause of WHERE is true there,
 *	  with those that PostgreSQL evaluates behind it, which must not remove the row.
 *	  The group of such a row says so, and the subquery runs as it is written for the rows around
 *	  it that ask for this group.  It raises its errors then, or has a value, as a guard may be
 *	  false where nothing would have been raised.
 * 6. HAVING could remove the group, so a subquery that has it is not guarded.
 *
 * The search for errors (proofs.c) takes a guarded expression for one that raises none if its
 * guard is the one that is made here.
 *
 * Memory: the current context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "catalog/namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "rewrite/hidden.h"
#include "utils/acl.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

/* Step 2: no value that a guard computes is greater; the sum of two such values is a bigint. */
#define MOST_COMPUTED		4611686018427387904.0	/* 2^62 */

/* Step 2: the number of operations of one expression. */
#define MOST_OPERATIONS		16

/* Step 3: days since 2000 that are not far away, and a number of days that may be added. */
#define LEAST_DAY			(-1000000)
#define GREATEST_DAY		3000000
#define MOST_DAYS			1000000

/* Step 2: an operation on integers. */
typedef enum HgjOperator
{
	HGJ_ADDS,
	HGJ_SUBTRACTS,
	HGJ_MULTIPLIES,
	HGJ_DIVIDES,
	HGJ_LEAVES_REMAINDER,
	HGJ_NEGATES,
	HGJ_TAKES_ABSOLUTE,
	HGJ_CASTS
} HgjOperator;

typedef struct HgjOperation
{
	HgjOperator operator;		/* operator that is applied */
	Node	   *left;			/* first operand */
	Node	   *right;			/* second operand, or NULL */
} HgjOperation;

static Node *take_guards(Node *node, void *context);
static Expr *guard_of(Node *expression, Node **harmless);

/* ---- expressions ---------------------------------------------------------- */

/* An operator of two values of a type, of the name that it has in pg_catalog; or of one value. */
static Expr *
operate(const char *name, Expr *left, Expr *right, Oid result)
{
	Oid			type = exprType((Node *) left);
	OpExpr	   *expr = makeNode(OpExpr);

	expr->opno = OpernameGetOprid(list_make2(makeString("pg_catalog"), makeString(pstrdup(name))),
								  right ? type : InvalidOid, type);
	expr->opresulttype = result;
	expr->args = right ? list_make2(left, right) : list_make1(left);
	expr->location = -1;
	set_opfuncid(expr);
	return (Expr *) expr;
}

/* May the user call the functions of an expression?  PostgreSQL asks when it runs them. */
static bool
is_forbidden(Oid function, void *context)
{
	return !hgj_role_may_execute(function, GetUserId());
}

/* context is not used */
static bool
find_forbidden(Node *node, void *context)
{
	return node != NULL && (check_functions_in_node(node, is_forbidden, NULL) ||
							expression_tree_walker(node, find_forbidden, context));
}

static Expr *
bigint_constant(int64 value)
{
	return (Expr *) makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(value), false,
							  FLOAT8PASSBYVAL);
}

/* value BETWEEN least AND greatest */
static List *
between(Node *value, Expr *least, Expr *greatest)
{
	return list_make2(operate(">=", copyObject((Expr *) value), least, BOOLOID),
					  operate("<=", copyObject((Expr *) value), greatest, BOOLOID));
}

/* CASE WHEN guard IS NOT FALSE THEN expression ELSE otherwise END */
static Node *
where_guarded(Expr *guard, Node *expression, Expr *otherwise)
{
	return (Node *) hgj_case(list_make1(hgj_when(hgj_test_truth(guard, IS_NOT_FALSE),
												 copyObject((Expr *) expression))), otherwise);
}

/* ---- integers (step 2) ---------------------------------------------------- */

static bool
operator_of(Oid function, HgjOperator *operator)
{
#define OF_ALL_TYPES(operation) \
		case F_INT2##operation: \
		case F_INT4##operation: \
		case F_INT8##operation: \
		case F_INT24##operation: \
		case F_INT28##operation: \
		case F_INT42##operation: \
		case F_INT48##operation: \
		case F_INT82##operation: \
		case F_INT84##operation

	switch (function)
	{
		OF_ALL_TYPES(PL):
			*operator = HGJ_ADDS;
			return true;
		OF_ALL_TYPES(MI):
			*operator = HGJ_SUBTRACTS;
			return true;
		OF_ALL_TYPES(MUL):
			*operator = HGJ_MULTIPLIES;
			return true;
		OF_ALL_TYPES(DIV):
			*operator = HGJ_DIVIDES;
			return true;
		case F_INT2MOD:
		case F_INT4MOD:
		case F_INT8MOD:
			*operator = HGJ_LEAVES_REMAINDER;
			return true;
		case F_INT2UM:
		case F_INT4UM:
		case F_INT8UM:
			*operator = HGJ_NEGATES;
			return true;
		case F_INT2ABS:
		case F_INT4ABS:
		case F_INT8ABS:
		case F_ABS_INT2:
		case F_ABS_INT4:
		case F_ABS_INT8:
			*operator = HGJ_TAKES_ABSOLUTE;
			return true;
		case F_INT2_INT4:
		case F_INT2_INT8:
		case F_INT4_INT2:
		case F_INT4_INT8:
		case F_INT8_INT2:
		case F_INT8_INT4:
			*operator = HGJ_CASTS;
			return true;
		default:
			return false;
	}
#undef OF_ALL_TYPES
}

static bool
is_integer(const Node *node)
{
	Oid			type = exprType(node);

	return type == INT2OID || type == INT4OID || type == INT8OID;
}

static bool
as_operation(const Node *node, HgjOperation *operation)
{
	const List *args = IsA(node, OpExpr) ? ((const OpExpr *) node)->args :
		IsA(node, FuncExpr) ? ((const FuncExpr *) node)->args : NIL;
	Oid			function = IsA(node, OpExpr) ? ((const OpExpr *) node)->opfuncid :
		IsA(node, FuncExpr) ? ((const FuncExpr *) node)->funcid : InvalidOid;

	if (args == NIL || !operator_of(function, &operation->operator))
		return false;
	operation->left = linitial(args);
	operation->right = list_length(args) > 1 ? lsecond(args) : NULL;
	/* values of domains are of another type, and have no guards */
	return is_integer(operation->left) &&
		(operation->right == NULL || is_integer(operation->right));
}

/* The greatest value of an integer's type; the least is one further from 0. */
static int64
greatest_of(Oid type)
{
	return type == INT2OID ? PG_INT16_MAX : type == INT4OID ? PG_INT32_MAX : PG_INT64_MAX;
}

/* A constant's value, if it is one; NULL counts as 0. */
static bool
constant_value(const Node *node, int64 *value)
{
	const Const *constant = (const Const *) node;

	if (!IsA(node, Const))
		return false;
	*value = constant->constisnull ? 0 :
		constant->consttype == INT2OID ? DatumGetInt16(constant->constvalue) :
		constant->consttype == INT4OID ? DatumGetInt32(constant->constvalue) :
		DatumGetInt64(constant->constvalue);
	return true;
}

/*
 * How far from 0 the expression's value is, at most, if columns are limited; *most: how far any
 * value is that it is computed of.
 */
static double
extent_of(const Node *node, double limit, double *most)
{
	HgjOperation operation;
	double		left;
	double		right;
	double		result;
	int64		value;

	check_stack_depth();
	if (!as_operation(node, &operation))
	{
		result = constant_value(node, &value) ? fabs((double) value) :
			Min((double) greatest_of(exprType(node)) + 1, limit);
		*most = Max(*most, result);
		return result;
	}
	left = extent_of(operation.left, limit, most);
	right = operation.right ? extent_of(operation.right, limit, most) : 0;
	result = left;
	if (operation.operator == HGJ_ADDS || operation.operator == HGJ_SUBTRACTS)
		result = left + right;
	else if (operation.operator == HGJ_MULTIPLIES)
		result = left * right;
	*most = Max(*most, result);
	return result;
}

/*
 * Does nothing that integers are computed of raise an error?  Differences of dates may, behind guards
 * of their own; of other guarded values nothing is computed.  Counts operations.
 */
static bool
leaves_are_harmless(Node *node, int *operations)
{
	HgjOperation operation;
	List	   *guards = NIL;

	check_stack_depth();
	if (!as_operation(node, &operation))
		return is_integer(node) && !hgj_row_may_raise(take_guards(node, &guards)) &&
			(guards == NIL || IsA(node, OpExpr));
	return ++*operations <= MOST_OPERATIONS &&
		leaves_are_harmless(operation.left, operations) &&
		(operation.right == NULL || leaves_are_harmless(operation.right, operations));
}

/*
 * The greatest limit of columns by which no value is too large for a bigint; or 0: there is none, or
 * something else may raise an error.
 */
static int64
limit_of(Node *node)
{
	static const int bits[] = {62, 55, 48, 40, 31, 24, 20, 15, 10};
	int			operations = 0;

	if (!leaves_are_harmless(node, &operations))
		return 0;
	for (int i = 0; i < lengthof(bits); i++)
	{
		double		most = 0;

		(void) extent_of(node, (double) (INT64CONST(1) << bits[i]), &most);
		if (most <= MOST_COMPUTED)
			return INT64CONST(1) << bits[i];
	}
	return 0;
}

static Expr *
widen(Node *value)
{
	Oid			type = exprType(value);

	if (type == INT8OID)
		return (Expr *) value;
	return (Expr *) makeFuncExpr(type == INT4OID ? F_INT8_INT4 : F_INT8_INT2, INT8OID,
								 list_make1(value), InvalidOid, InvalidOid, COERCE_EXPLICIT_CAST);
}

/* Conditions of a value that the guard's computation begins with. */
static List *
conditions_of_leaf(Node *leaf, int64 limit)
{
	List	   *conditions = NIL;

	(void) take_guards(leaf, &conditions);
	if (!IsA(leaf, Const) && greatest_of(exprType(leaf)) >= limit)
		conditions = list_concat(conditions, between((Node *) widen(copyObject(leaf)),
													 bigint_constant(-limit),
													 bigint_constant(limit)));
	return conditions;
}

static Expr *
leaf_as_bigint(Node *leaf, int64 limit)
{
	List	   *conditions = conditions_of_leaf(leaf, limit);

	return widen(conditions == NIL ? copyObject(leaf) :
				 where_guarded(make_ands_explicit(conditions), leaf, hgj_null_like(leaf)));
}

/* The expression's value as a bigint, NULL where a column is not within the limit. */
static Expr *
as_bigint(Node *node, int64 limit)
{
	static const char *const names[] = {"+", "-", "*", "/", "%", "-", "@"};
	HgjOperation operation;
	Expr	   *left;
	Expr	   *right;

	check_stack_depth();
	if (!as_operation(node, &operation))
		return leaf_as_bigint(node, limit);
	left = as_bigint(operation.left, limit);
	if (operation.operator == HGJ_CASTS)
		return left;
	right = operation.right ? as_bigint(operation.right, limit) : NULL;
	if (operation.operator == HGJ_DIVIDES || operation.operator == HGJ_LEAVES_REMAINDER)
	{
		/* NULLIF is an equality with the type of its first operand */
		OpExpr	   *divisor = (OpExpr *) operate("=", right, bigint_constant(0), INT8OID);

		NodeSetTag(divisor, T_NullIfExpr);
		right = (Expr *) divisor;
	}
	return operate(names[operation.operator], left, right, INT8OID);
}

static void
guard_integer(Node *node, int64 limit, List **guards)
{
	HgjOperation operation;
	int64		greatest = greatest_of(exprType(node));
	double		most = 0;
	int64		divisor;

	check_stack_depth();
	if (!as_operation(node, &operation))
	{
		*guards = list_concat(*guards, conditions_of_leaf(node, limit));
		return;
	}
	guard_integer(operation.left, limit, guards);
	if (operation.right)
		guard_integer(operation.right, limit, guards);
	if ((operation.operator == HGJ_DIVIDES || operation.operator == HGJ_LEAVES_REMAINDER) &&
		!(constant_value(operation.right, &divisor) && divisor != 0))
		*guards = lappend(*guards, operate("<>", as_bigint(operation.right, limit),
										   bigint_constant(0), BOOLOID));
	if (extent_of(node, (double) limit, &most) > (double) greatest && greatest < PG_INT64_MAX)
		*guards = list_concat(*guards, between((Node *) as_bigint(node, limit),
											   bigint_constant(-greatest - 1),
											   bigint_constant(greatest)));
}

/* ---- dates (step 3) ------------------------------------------------------- */

/* value BETWEEN two days that are not far away */
static List *
near(Node *value)
{
	static const int64 days[] = {LEAST_DAY, GREATEST_DAY};
	Oid			type = exprType(value);
	Expr	   *ends[2];

	for (int i = 0; i < 2; i++)
		ends[i] = (Expr *) (type == DATEOID ?
							makeConst(type, -1, InvalidOid, sizeof(DateADT),
									  DateADTGetDatum((DateADT) days[i]), false, true) :
							makeConst(type, -1, InvalidOid, sizeof(Timestamp),
									  TimestampGetDatum(days[i] * USECS_PER_DAY), false,
									  FLOAT8PASSBYVAL));
	return between(value, ends[0], ends[1]);
}

static Expr *
is_finite(Node *date)
{
	return (Expr *) makeFuncExpr(F_ISFINITE_DATE, BOOLOID, list_make1(copyObject(date)), InvalidOid,
								 InvalidOid, COERCE_EXPLICIT_CALL);
}

/* A number of days that is added to a date. */
static bool
guard_days(Node *days, List **guards)
{
	int64		limit = limit_of(days);

	if (limit == 0)
		return false;
	guard_integer(days, limit, guards);
	*guards = list_concat(*guards, between((Node *) as_bigint(days, limit),
										   bigint_constant(-MOST_DAYS),
										   bigint_constant(MOST_DAYS)));
	return true;
}

static bool
is_date(const Node *node)
{
	Oid			type = exprType(node);

	return type == DATEOID || type == TIMESTAMPOID || type == TIMESTAMPTZOID;
}

/* A difference of dates, or of timestamps. */
static bool
guard_difference(const OpExpr *expr, List **guards)
{
	Node	   *left = linitial(expr->args);
	Node	   *right = lsecond(expr->args);

	if (!is_date(right) || hgj_row_may_raise(right))
		return false;
	*guards = list_concat(*guards, expr->opfuncid == F_DATE_MI ?
						  list_make2(is_finite(left), is_finite(right)) :
						  list_concat(near(right), near(left)));
	return true;
}

static bool
guard_date(const OpExpr *expr, List **guards)
{
	Node	   *left = linitial(expr->args);

	/* values of domains are of another type, and have no guards */
	if (!is_date(left) || !hgj_row_may_raise((Node *) expr) || hgj_row_may_raise(left))
		return false;
	if (expr->opfuncid == F_DATE_MI || expr->opfuncid == F_TIMESTAMP_MI ||
		expr->opfuncid == F_TIMESTAMPTZ_MI)
		return guard_difference(expr, guards);
	if (!(hgj_adds_days(expr->opfuncid) && guard_days(lsecond(expr->args), guards)) &&
		!(hgj_adds_interval(expr->opfuncid) && hgj_is_short_interval(lsecond(expr->args))))
		return false;
	*guards = list_concat(*guards, near(left));
	return true;
}

/* ---- guards (step 1) ------------------------------------------------------ */

/*
 * What is guarded where a condition is true (step 4), or everywhere, if the condition may raise an
 * error itself.
 */
static Expr *
under(Node *condition, List *guards)
{
	if (hgj_row_may_raise(condition))
		return make_ands_explicit(guards);
	return make_orclause(list_make2(hgj_test_truth(copyObject((Expr *) condition), IS_NOT_TRUE),
									make_ands_explicit(guards)));
}

/* Step 4: CASE WHEN */
static Node *
take_from_case(const CaseExpr *expr, List **guards)
{
	CaseExpr   *result = makeNode(CaseExpr);
	ListCell   *lc;

	*result = *expr;
	result->args = NIL;
	foreach(lc, expr->args)
	{
		const CaseWhen *when = lfirst_node(CaseWhen, lc);
		List	   *inside = NIL;
		Node	   *condition = take_guards((Node *) when->expr, guards);

		result->args = lappend(result->args,
							   hgj_when((Expr *) condition,
										(Expr *) take_guards((Node *) when->result, &inside)));
		if (inside != NIL)
			*guards = lappend(*guards, under((Node *) when->expr, inside));
	}
	result->defresult = (Expr *) take_guards((Node *) expr->defresult, guards);
	return (Node *) result;
}

/*
 * The expression, with any value in the place of what guards are made for.  context: List **, the
 * guards; what may raise an error without one stays what it is
 */
static Node *
take_guards(Node *node, void *context)
{
	HgjOperation operation;
	int64		limit;

	if (node == NULL)
		return NULL;
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (as_operation(node, &operation))
	{
		limit = hgj_row_may_raise(node) ? limit_of(node) : 0;
		if (limit == 0)
			return copyObject(node);
		guard_integer(node, limit, context);
		return hgj_any_value(node, false);
	}
	if (IsA(node, OpExpr) && guard_date((const OpExpr *) node, context))
		return hgj_any_value(node, false);
	if (IsA(node, CaseExpr) && ((const CaseExpr *) node)->arg == NULL)
		return take_from_case((const CaseExpr *) node, context);
	return expression_tree_mutator(node, take_guards, context);
}

/*
 * The guard of an expression, or NULL: the expression needs none, or has none.  *harmless is the
 * expression with any value in the place of what is guarded.
 */
static Expr *
guard_of(Node *expression, Node **harmless)
{
	Node	   *copy = copyObject(expression);
	List	   *guards = NIL;

	/* what comes from a view does not name its functions yet */
	fix_opfuncids(copy);
	*harmless = take_guards(copy, &guards);
	return guards == NIL || hgj_row_may_raise(*harmless) ? NULL : make_ands_explicit(guards);
}

/*
 * Is it an expression behind its guard?  Returns it with any value in the place of what may raise
 * an error without that, or NULL.
 */
Node *
hgj_guarded_value(const Node *node)
{
	const CaseExpr *expr = (const CaseExpr *) node;
	const CaseWhen *when;
	const BooleanTest *test;
	Node	   *harmless;
	Expr	   *guard;

	if (!IsA(node, CaseExpr) || expr->arg || list_length(expr->args) != 1 ||
		!IsA(expr->defresult, Const) ||
		!(((const Const *) expr->defresult)->constisnull || exprType(node) == BOOLOID))
		return NULL;
	when = linitial_node(CaseWhen, expr->args);
	test = (const BooleanTest *) when->expr;
	if (!IsA(test, BooleanTest) || test->booltesttype != IS_NOT_FALSE)
		return NULL;
	guard = guard_of((Node *) when->result, &harmless);
	return guard && equal(guard, test->arg) ? harmless : NULL;
}

/* ---- subqueries (step 5) -------------------------------------------------- */

/* The expression behind its guard, which comes to the guards; or itself. */
static Node *
guard(Node *expression, Expr *otherwise, List **guards)
{
	Node	   *harmless;
	Expr	   *condition = expression && hgj_row_may_raise(expression) ?
		guard_of(expression, &harmless) : NULL;

	if (condition == NULL)
		return expression;
	*guards = lappend(*guards, condition);
	return where_guarded(copyObject(condition), expression, otherwise);
}

static Node *
guard_aggregate(const Aggref *aggref, List **guards)
{
	Aggref	   *result = copyObject((Aggref *) aggref);
	List	   *inside = NIL;
	ListCell   *lc;

	foreach(lc, result->args)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);

		tle->expr = (Expr *) guard((Node *) tle->expr, hgj_null_like((Node *) tle->expr), &inside);
	}
	if (inside != NIL && aggref->aggfilter)
		inside = list_make1(under((Node *) aggref->aggfilter, inside));
	*guards = list_concat(*guards, inside);
	result->aggfilter = (Expr *) guard((Node *) aggref->aggfilter,
									   (Expr *) makeNullConst(BOOLOID, -1, InvalidOid), guards);
	return (Node *) result;
}

/* context: List **, the guards */
static Node *
guard_aggregates(Node *node, void *context)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Aggref) && ((const Aggref *) node)->agglevelsup == 0)
		return guard_aggregate((const Aggref *) node, context);
	return expression_tree_mutator(node, guard_aggregates, context);
}

/*
 * Might one clause be evaluated before another one?  Those that cost as much are in the order in which
 * they are written, but the planner takes equalities away first, and puts them back behind others.
 */
static bool
may_come_before(Node *clause, Node *other)
{
	Cost		cost = hgj_cost_of_row(clause);
	Cost		of_other = hgj_cost_of_row(other);

	return cost < of_other || (cost == of_other && hgj_row_may_raise(clause));
}

/*
 * Clauses of the subquery's rows alone; those come first that raise an error before others remove the
 * row.  The rest come to the others.
 */
static List *
in_order(List *clauses, List **others)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, clauses)
	{
		int			place = list_length(result);

		/* one of no row is evaluated whatever rows there are */
		if (hgj_refers_to_level(lfirst(lc), 1) || !hgj_refers_to_level(lfirst(lc), 0))
		{
			*others = lappend(*others, lfirst(lc));
			continue;
		}
		while (place > 0 && may_come_before(lfirst(lc), list_nth(result, place - 1)))
			place--;
		result = list_insert_nth(result, place, lfirst(lc));
	}
	return result;
}

/* Step 5: WHERE.  The first clause with a guard is one clause with all behind it. */
static List *
guard_clauses(Node *condition, List **guards)
{
	List	   *clauses = NIL;
	List	   *result = NIL;
	Node	   *harmless;

	hgj_split_clauses(condition, &clauses);
	clauses = in_order(clauses, &result);
	while (clauses != NIL && !(hgj_row_may_raise(linitial(clauses)) &&
							   guard_of(linitial(clauses), &harmless)))
	{
		result = lappend(result, linitial(clauses));
		clauses = list_delete_first(clauses);
	}
	if (clauses != NIL)
		result = lappend(result, guard((Node *) make_ands_explicit(clauses),
									   (Expr *) makeBoolConst(true, false), guards));
	return result;
}

/*
 * Guard what the subquery computes, if it has one row, of aggregates.  Returns an aggregate that is
 * false for the groups with a row that is not as its guards want it, or NULL if there is nothing to
 * be guarded.  The query has a new target list and WHERE then; the old ones are left as they were.
 */
Aggref *
hgj_guard_subquery(Query *query)
{
	List	   *guards = NIL;
	List	   *clauses;
	List	   *targetlist;
	Aggref	   *result;

	if (!query->hasAggs || query->havingQual || query->groupingSets)
		return NULL;
	clauses = guard_clauses(query->jointree->quals, &guards);
	targetlist = (List *) guard_aggregates((Node *) query->targetList, &guards);
	if (guards == NIL)
		return NULL;
	result = hgj_make_all(make_ands_explicit(guards));
	if (find_forbidden((Node *) result, NULL))
		return NULL;
	query->targetList = targetlist;
	query->jointree->quals = hgj_join_clauses(clauses);
	return result;
}
