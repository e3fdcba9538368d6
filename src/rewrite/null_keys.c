/*-------------------------------------------------------------------------
 *
 * null_keys.c
 *	  Conditions by which NULLs match, which PostgreSQL joins by nested loops, as equalities.
 *
 *	  a IS NOT DISTINCT FROM b
 *	  a = b OR (a IS NULL AND b IS NULL)
 *
 * 1. If either is never NULL (nulls.c), both are a = b.
 * 2. Otherwise they are (a IS NULL) = (b IS NULL) AND COALESCE(a, c) = COALESCE(b, c), where c is
 *	  any constant: it is compared with itself only, as the first equality keeps it from other
 *	  values.  The second form counts as false where it is NULL, so it has to be a clause of
 *	  WHERE or ON.
 * 3. Each operand belongs to relations of its own, so that a join by hash can be made of it; it
 *	  is evaluated for all of their rows, so it may raise no error.
 *
 * Memory: the current context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "expr/demand.h"
#include "fmgr.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "rewrite/hidden.h"
#include "utils/lsyscache.h"

/* The equality of the second form that one of its NULL tests is about, or NULL. */
static const Node *
tested_for_null(const Node *node)
{
	const NullTest *test = (const NullTest *) node;

	return IsA(node, NullTest) && test->nulltesttype == IS_NULL && !test->argisrow ?
		hgj_without_relabeling((const Node *) test->arg) : NULL;
}

/* a IS NULL AND b IS NULL, in either order */
static bool
tests_both(const Node *node, const Node *a, const Node *b)
{
	const List *args = is_andclause(node) ? ((const BoolExpr *) node)->args : NIL;
	const Node *first;
	const Node *second;

	if (list_length(args) != 2)
		return false;
	first = tested_for_null(linitial(args));
	second = tested_for_null(lsecond(args));
	return first && second &&
		((equal(first, a) && equal(second, b)) || (equal(first, b) && equal(second, a)));
}

/* The second form: its equality, or NULL. */
static const OpExpr *
equality_or_nulls(const Node *clause)
{
	const List *args = is_orclause(clause) ? ((const BoolExpr *) clause)->args : NIL;

	if (list_length(args) != 2)
		return NULL;
	for (int i = 0; i < 2; i++)
	{
		const OpExpr *equality = list_nth(args, i);

		if (IsA(equality, OpExpr) && list_length(equality->args) == 2 &&
			tests_both(list_nth(args, 1 - i), hgj_without_relabeling(linitial(equality->args)),
					   hgj_without_relabeling(lsecond(equality->args))))
			return equality;
	}
	return NULL;
}

/* Either form; in the first one, a DistinctExpr has the members of an OpExpr. */
static const OpExpr *
null_safe_equality(const Node *clause)
{
	const Node *inside = is_notclause(clause) ? (const Node *) get_notclausearg(clause) : NULL;

	if (inside && IsA(inside, DistinctExpr))
		return (const OpExpr *) inside;
	return equality_or_nulls(clause);
}

/* Step 2: a constant of the type, or NULL if none is known. */
static Expr *
any_constant(const Node *operand)
{
	Oid			type = exprType(operand);
	const char *text;
	Oid			function;
	Oid			element;
	int16		length;
	bool		by_value;

	switch (type)
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case OIDOID:
		case NUMERICOID:
		case FLOAT4OID:
		case FLOAT8OID:
			text = "0";
			break;
		case TEXTOID:
		case BPCHAROID:
		case BYTEAOID:
			text = "";
			break;
		case DATEOID:
		case TIMESTAMPOID:
			text = "2000-01-01";
			break;
		case TIMESTAMPTZOID:
			text = "2000-01-01 00:00:00+00";
			break;
		case UUIDOID:
			text = "00000000-0000-0000-0000-000000000000";
			break;
		case BOOLOID:
			text = "f";
			break;
		default:
			return NULL;
	}
	getTypeInputInfo(type, &function, &element);
	get_typlenbyval(type, &length, &by_value);
	return (Expr *) makeConst(type, -1, exprCollation(operand), length,
							  OidInputFunctionCall(function, (char *) text, element, -1), false,
							  by_value);
}

/* Step 3: of relations of this level, and of the one around it. */
static bool
have_own_relations(Node *a, Node *b)
{
	Bitmapset  *of_a = pull_varnos_of_level(NULL, a, 0);
	Bitmapset  *of_b = pull_varnos_of_level(NULL, b, 0);
	bool		above_a = hgj_refers_to_level(a, 1);
	bool		above_b = hgj_refers_to_level(b, 1);

	if (hgj_refers_above(a, 1) || hgj_refers_above(b, 1))
		return false;
	/* the query around it makes a join of EXISTS */
	if (above_a || above_b)
		return above_a != above_b && (above_a ? bms_is_empty(of_a) && !bms_is_empty(of_b) :
									  bms_is_empty(of_b) && !bms_is_empty(of_a));
	return !bms_is_empty(of_a) && !bms_is_empty(of_b) && !bms_overlap(of_a, of_b);
}

/* Is it one of the two forms?  It takes next to no time to say no. */
bool
hgj_matches_nulls(const Node *clause)
{
	return null_safe_equality(clause) != NULL;
}

/* Step 3: of this level, or of the one around it. */
static bool
may_raise(const Query *query, const Query *around, Expr *operand)
{
	return hgj_refers_to_level((Node *) operand, 1) ?
		around == NULL || hgj_operand_may_raise(around, (Node *) operand, 1) :
		hgj_operand_may_raise(query, (Node *) operand, 0);
}

/*
 * A clause of the query as equalities by which it can be joined, or NULL: it is another clause.
 * around: the query that it stands in, or NULL
 */
Node *
hgj_as_equalities(const Query *query, const Query *around, const Node *clause)
{
	const OpExpr *equality = null_safe_equality(clause);
	Expr	   *a = equality ? linitial(equality->args) : NULL;
	Expr	   *b = equality ? lsecond(equality->args) : NULL;
	Expr	   *of_a;
	Expr	   *of_b;

	if (equality == NULL || !op_hashjoinable(equality->opno, exprType((Node *) a)) ||
		!op_strict(equality->opno) || !have_own_relations((Node *) a, (Node *) b) ||
		contain_volatile_functions((Node *) clause) ||
		hgj_row_may_raise((Node *) equality) || may_raise(query, around, a) ||
		may_raise(query, around, b))
		return NULL;
	if (hgj_is_never_null(query, (Node *) a) || hgj_is_never_null(query, (Node *) b))
		return (Node *) make_opclause(equality->opno, BOOLOID, false, a, b, InvalidOid,
									  equality->inputcollid);
	of_a = any_constant((Node *) a);
	of_b = any_constant((Node *) b);
	if (of_a == NULL || of_b == NULL)
		return NULL;
	return (Node *) make_andclause(list_make2(make_opclause(equality->opno, BOOLOID, false,
															hgj_coalesce(copyObject(a), of_a),
															hgj_coalesce(copyObject(b), of_b), InvalidOid,
															equality->inputcollid),
											  make_opclause(BooleanEqualOperator, BOOLOID, false,
															(Expr *) hgj_null_test(a, IS_NULL),
															(Expr *) hgj_null_test(b, IS_NULL),
															InvalidOid, InvalidOid)));
}
