/*-------------------------------------------------------------------------
 *
 * program_branches.c
 *	  CASE and COALESCE to steps, and what can be said in their words: NULLIF,
 *	  GREATEST and LEAST.
 *
 * 1. Each branch is a step of its own, which is run for those rows only that come
 *	  to it (program_steps.c).  All have the result's kind, or are decimals.
 * 2. What a CASE compares with is compiled once for every WHEN.
 * 3. An expression becomes another one that has its answers, its errors and their
 *	  order.  Arguments stand in it several times, which does not matter, as nothing
 *	  that is volatile is compiled, but for time: so there may only be a few.
 *
 * Everything is palloc'd in the current context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "expr/program_private.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "utils/typcache.h"

/* More arguments of GREATEST or LEAST are left to PostgreSQL. */
#define HGJ_LONGEST_EXTREME	3

static bool
add_branch(HgjCompiler *c, HgjStep *step, Expr *expr, HgjKind kind)
{
	bool		decimal = step->decimal && kind == HGJ_KIND_OTHER;
	HgjStep    *arg = decimal ? hgj_decimal_compile(c, expr) :
		hgj_step_compile(c, expr);

	if (arg == NULL || arg->kind != kind || (kind == HGJ_KIND_OTHER && !decimal))
		return false;
	hgj_step_add_arg(step, arg);
	return true;
}

static HgjStep *
compile_case(HgjCompiler *c, CaseExpr *expr)
{
	HgjKind		kind = hgj_kind_of_type(expr->casetype);
	HgjStep    *step = hgj_step_make(HGJ_STEP_CASE, kind,
								 2 * list_length(expr->args) + 1);
	Expr	   *outer_arg = c->case_arg;
	ListCell   *lc;

	step->decimal = hgj_is_decimal(c->parent, (Expr *) expr);
	foreach(lc, expr->args)
	{
		CaseWhen   *when = lfirst_node(CaseWhen, lc);
		bool		good;

		if (expr->arg)
			c->case_arg = expr->arg;
		good = add_branch(c, step, when->expr, HGJ_KIND_U1);
		c->case_arg = outer_arg;
		if (!good || !add_branch(c, step, when->result, kind))
			return NULL;
	}
	/* without ELSE the parser puts a NULL there */
	if (expr->defresult == NULL || !add_branch(c, step, expr->defresult, kind))
		return NULL;
	if (step->decimal && !hgj_decimal_branches(step, 1, 2))
		return NULL;
	return step;
}

static HgjStep *
compile_coalesce(HgjCompiler *c, CoalesceExpr *expr)
{
	HgjKind		kind = hgj_kind_of_type(expr->coalescetype);
	HgjStep    *step = hgj_step_make(HGJ_STEP_COALESCE, kind,
								 list_length(expr->args));
	ListCell   *lc;

	step->decimal = hgj_is_decimal(c->parent, (Expr *) expr);
	foreach(lc, expr->args)
		if (!add_branch(c, step, lfirst(lc), kind))
			return NULL;
	if (step->decimal && !hgj_decimal_branches(step, 0, 1))
		return NULL;
	return step;
}

/* What the CASE that we are in compares with: compile it once more. */
HgjStep *
hgj_case_test_compile(HgjCompiler *c)
{
	Expr	   *case_arg = c->case_arg;
	HgjStep    *step;

	if (case_arg == NULL)
		return NULL;
	c->case_arg = NULL;
	step = hgj_step_compile(c, case_arg);
	c->case_arg = case_arg;
	return step;
}

/* CASE WHEN condition THEN result ELSE otherwise END */
static Expr *
make_case(Expr *condition, Expr *result, Expr *otherwise)
{
	CaseExpr   *expr = makeNode(CaseExpr);
	CaseWhen   *when = makeNode(CaseWhen);

	when->expr = condition;
	when->result = result;
	expr->casetype = exprType((Node *) otherwise);
	expr->casecollid = exprCollation((Node *) otherwise);
	expr->args = list_make1(when);
	expr->defresult = otherwise;
	return (Expr *) expr;
}

/* NULLIF, in other words: CASE WHEN a = b THEN NULL ELSE a END. */
static HgjStep *
compile_nullif(HgjCompiler *c, NullIfExpr *expr)
{
	Expr	   *value = linitial(expr->args);
	Node	   *node = (Node *) value;
	OpExpr	   *equal = makeNode(OpExpr);

	equal->opno = expr->opno;
	equal->opfuncid = expr->opfuncid;
	equal->opresulttype = BOOLOID;
	equal->opcollid = expr->opcollid;
	equal->inputcollid = expr->inputcollid;
	equal->args = expr->args;
	return hgj_step_compile(c, make_case((Expr *) equal, (Expr *)
										 makeNullConst(exprType(node),
													   exprTypmod(node),
													   exprCollation(node)),
										 value));
}

/*
 * GREATEST and LEAST, in other words: CASE WHEN a IS NULL OR b > a THEN b ELSE a END,
 * and that for `a` with the next argument.  As it becomes long, for few arguments.
 */
static HgjStep *
compile_extreme(HgjCompiler *c, MinMaxExpr *expr)
{
	TypeCacheEntry *type = lookup_type_cache(expr->minmaxtype, TYPECACHE_CMP_PROC |
											 TYPECACHE_LT_OPR | TYPECACHE_GT_OPR);
	Oid			beyond = expr->op == IS_GREATEST ? type->gt_opr : type->lt_opr;
	Expr	   *result = linitial(expr->args);
	ListCell   *lc;

	if (list_length(expr->args) > HGJ_LONGEST_EXTREME || !OidIsValid(beyond) ||
		!OidIsValid(type->cmp_proc) || !hgj_may_call(type->cmp_proc))
		return NULL;
	for_each_from(lc, expr->args, 1)
	{
		NullTest   *test = makeNode(NullTest);
		Expr	   *next = lfirst(lc);
		Expr	   *comparison = make_opclause(beyond, BOOLOID, false, next, result,
											   InvalidOid, expr->inputcollid);

		test->arg = result;
		test->nulltesttype = IS_NULL;
		result = make_case(makeBoolExpr(OR_EXPR, list_make2(test, comparison), -1), next,
						   result);
	}
	return hgj_step_compile(c, result);
}

/* What may be run for fewer rows than the others of a chunk is not shared. */
HgjStep *
hgj_branches_compile(HgjCompiler *c, Expr *expr)
{
	bool		share = c->share;
	HgjStep    *step;

	c->share = false;
	switch (nodeTag(expr))
	{
		case T_CaseExpr:
			step = compile_case(c, (CaseExpr *) expr);
			break;
		case T_CoalesceExpr:
			step = compile_coalesce(c, (CoalesceExpr *) expr);
			break;
		case T_NullIfExpr:
			step = compile_nullif(c, (NullIfExpr *) expr);
			break;
		default:
			step = compile_extreme(c, (MinMaxExpr *) expr);
			break;
	}
	c->share = share;
	return step;
}
