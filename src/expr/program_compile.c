/*-------------------------------------------------------------------------
 *
 * program_compile.c
 *	  Expression trees to steps.
 *
 * 1. What has no column in it is a constant, whatever it looks like, if it does
 *	  not change from row to row (program_constant.c).
 * 2. Columns are inputs; functions and operators are looked up by the OID of the
 *	  function (program_functions.c, program_text.c), and if they are not there
 *	  may be of those that are simply called (program_call.c).  The user must be
 *	  allowed to call it: where that is not so we compile nothing, and
 *	  PostgreSQL's code says why.
 * 3. A step is lazy if it can raise an error, or something below it can.
 *
 * Everything is palloc'd in the current context, and no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/objectaccess.h"
#include "catalog/pg_proc.h"
#include "expr/demand.h"
#include "expr/program_private.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"

/* Parts of expressions that are compiled for a program, at most. */
#define HGJ_MOST_EXPRS		20000

HgjStep *
hgj_step_make(HgjStepOp op, HgjKind kind, int nargs)
{
	HgjStep    *step = palloc0(sizeof(HgjStep));

	step->op = op;
	step->kind = kind;
	step->width = kind < HGJ_KINDS ? hgj_kind_width(kind) : sizeof(Datum);
	step->args = palloc0(Max(nargs, 1) * sizeof(HgjStep *));
	step->input = -1;
	return step;
}

void
hgj_step_add_arg(HgjStep *step, HgjStep *arg)
{
	step->args[step->nargs++] = arg;
	step->lazy |= arg->lazy;
}

static HgjStep *
compile_constant(HgjCompiler *c, Expr *expr)
{
	HgjKind		kind = hgj_kind_of_type(exprType((Node *) expr));
	HgjConstant *constant;
	HgjStep    *step;
	bool		lazy;

	if (kind == HGJ_KIND_OTHER)
		return NULL;
	constant = hgj_constant_make(c->parent, expr, &lazy);
	if (constant == NULL)
		return NULL;
	step = hgj_step_make(HGJ_STEP_CONSTANT, kind, 0);
	step->constant = constant;
	step->lazy = lazy;
	c->constants = lappend(c->constants, step);
	return step;
}

static HgjStep *
compile_var(HgjCompiler *c, Var *var)
{
	HgjStep    *step;
	int			input;
	int16		typlen;
	bool		typbyval;

	if (var->varlevelsup != 0 || var->varattno == 0)
		return NULL;
	input = c->lookup(c->arg, var);
	if (input < 0)
		return NULL;
	step = hgj_step_make(HGJ_STEP_INPUT, hgj_kind_of_type(var->vartype), 0);
	get_typlenbyval(var->vartype, &typlen, &typbyval);
	step->width = typbyval ? typlen : sizeof(Datum);
	step->input = input;
	return step;
}

/* A cast that leaves integers integers of the same order, or floats floats. */
static bool
is_exact_cast(HgjStepOp op, uint8 code, HgjKind from)
{
	if (op != HGJ_STEP_CAST)
		return op == HGJ_STEP_DATE && code == HGJ_DATE_ORDER;
	return (from == HGJ_KIND_I2 && (code == HGJ_KIND_I4 || code == HGJ_KIND_I8)) ||
		(from == HGJ_KIND_I4 && code == HGJ_KIND_I8) ||
		(from == HGJ_KIND_U4 && code == HGJ_KIND_I8) ||
		(from == HGJ_KIND_F4 && code == HGJ_KIND_F8);
}

/* A step that has a loop. */
static HgjStep *
make_loop_step(HgjStepOp op, uint8 code, HgjKind operand, HgjKind result, int nargs)
{
	HgjStep    *step = hgj_step_make(op, result, nargs);

	step->code = code;
	step->operand = operand;
	step->loop = hgj_loop(op, code, operand);
	step->exact = is_exact_cast(op, code, operand);
	return step;
}

/* An argument, with its values in the kind that the operation wants. */
HgjStep *
hgj_step_cast(HgjStep *step, const HgjOperation *operation)
{
	HgjStepOp	op = operation->order_dates ? HGJ_STEP_DATE : HGJ_STEP_CAST;
	HgjKind		kind = operation->operand;
	uint8		code = operation->order_dates ? HGJ_DATE_ORDER : kind;
	HgjStep    *result;

	if (step->kind == kind)
		return step;
	if (step->op == HGJ_STEP_CONSTANT && step->constant->cast == NULL)
	{
		HgjConstant *constant = step->constant;

		constant->cast = hgj_loop(op, code, step->kind);
		constant->cast_from = step->width;
		constant->cast_to = hgj_kind_width(kind);
		step->kind = kind;
		step->width = hgj_kind_width(kind);
		if (constant->ready)
			hgj_constant_cast(constant);
		return step;
	}
	result = make_loop_step(op, code, step->kind, kind, 1);
	hgj_step_add_arg(result, step);
	return result;
}

/* May the user call it?  (If not, PostgreSQL's code says so.) */
bool
hgj_may_call(Oid funcid)
{
	if (!hgj_may_execute(funcid))
		return false;
	InvokeFunctionExecuteHook(funcid);
	return true;
}

static Oid
function_of(Oid opno, Oid opfuncid)
{
	return OidIsValid(opfuncid) ? opfuncid : get_opcode(opno);
}

/* What to do for a function that the user may call. */
static bool
find_operation(Oid funcid, HgjOperation *operation)
{
	if (!hgj_operation(funcid, operation))
		return false;
	return hgj_may_call(funcid);
}

/* The arguments of a function, as its loop wants them. */
static bool
compile_args(HgjCompiler *c, HgjStep *step, const HgjOperation *operation,
			 List *args)
{
	ListCell   *lc;

	if (list_length(args) != operation->nargs)
		return false;
	foreach(lc, args)
	{
		int			i = foreach_current_index(lc);
		HgjStep    *arg = hgj_step_compile(c, lfirst(lc));

		if (arg == NULL || arg->kind != operation->args[i])
			return false;
		hgj_step_add_arg(step, hgj_step_cast(arg, operation));
	}
	return true;
}

/* A string: of a column, or that a function returns. */
static HgjStep *
compile_string(HgjCompiler *c, Expr *expr)
{
	HgjStep    *step = hgj_step_compile(c, expr);

	if (step == NULL || step->width != sizeof(Datum) ||
		(step->op != HGJ_STEP_INPUT && step->op != HGJ_STEP_CALL && step->op != HGJ_STEP_PART))
		return NULL;
	return step;
}

/*
 * A string compared with constants: `value` = ANY of what `constants` is, or
 * with is_array false is.  NULL if it is nothing of that kind.
 */
static HgjStep *
compile_text(HgjCompiler *c, Oid funcid, Oid collation, Expr *value,
			 Expr *constants, bool is_array)
{
	HgjStep    *step;
	HgjStep    *arg;
	struct HgjTextSet *texts;
	bool		invert;
	bool		lazy;

	texts = hgj_text_set_make(funcid, collation, is_array, &invert);
	if (texts == NULL || !hgj_may_call(funcid))
		return NULL;
	arg = compile_string(c, value);
	if (arg == NULL)
		return NULL;
	step = hgj_step_make(HGJ_STEP_TEXT, HGJ_KIND_U1, 1);
	hgj_step_add_arg(step, arg);
	step->texts = texts;
	step->invert = invert;
	step->constant = hgj_constant_make(c->parent, constants, &lazy);
	if (step->constant == NULL)
		return NULL;
	step->lazy |= lazy;
	c->constants = lappend(c->constants, step);
	return step;
}

/* A string matched with a pattern, as `like` says. */
static HgjStep *
compile_like(HgjCompiler *c, Oid funcid, Expr *value, HgjLike *like, bool invert)
{
	HgjStep    *arg;
	HgjStep    *step;

	if (!hgj_may_call(funcid))
		return NULL;
	arg = compile_string(c, value);
	if (arg == NULL)
		return NULL;
	step = hgj_step_make(HGJ_STEP_LIKE, HGJ_KIND_U1, 1);
	hgj_step_add_arg(step, arg);
	step->like = like;
	step->invert = invert;
	return step;
}

/* Characters of a string, as `part` says. */
static HgjStep *
compile_part(HgjCompiler *c, Oid funcid, Oid cast, Expr *string, HgjPart *part)
{
	HgjStep    *arg;
	HgjStep    *step;

	if (!hgj_may_call(funcid) || (OidIsValid(cast) && !hgj_may_call(cast)))
		return NULL;
	arg = hgj_step_compile(c, string);
	if (arg == NULL || arg->kind != HGJ_KIND_OTHER || arg->width != sizeof(Datum))
		return NULL;
	step = hgj_step_make(HGJ_STEP_PART, HGJ_KIND_OTHER, 1);
	hgj_step_add_arg(step, arg);
	step->part = part;
	return step;
}

/* An operand of a function that is called: of whatever type. */
static HgjStep *
compile_call_arg(HgjCompiler *c, Expr *expr)
{
	Oid			type = exprType((Node *) expr);
	HgjStep    *step;
	int16		typlen;
	bool		typbyval;
	bool		lazy;

	if (hgj_kind_of_type(type) != HGJ_KIND_OTHER ||
		!hgj_is_constant(c->parent, expr))
		return hgj_numeric_step(hgj_step_compile(c, expr));
	get_typlenbyval(type, &typlen, &typbyval);
	step = hgj_step_make(HGJ_STEP_CONSTANT, HGJ_KIND_OTHER, 0);
	step->constant = hgj_constant_make(c->parent, expr, &lazy);
	step->width = typbyval ? typlen : sizeof(Datum);
	step->constant->keep = !typbyval;
	step->constant->typlen = typlen;
	step->lazy = lazy;
	c->constants = lappend(c->constants, step);
	return step;
}

static HgjStep *
compile_call(HgjCompiler *c, Expr *expr, Oid funcid, List *args,
			 Oid collation)
{
	HgjKind		kind = hgj_kind_of_type(exprType((Node *) expr));
	HgjStep    *step;
	ListCell   *lc;
	int16		typlen;
	bool		typbyval;

	get_typlenbyval(exprType((Node *) expr), &typlen, &typbyval);
	if (kind == HGJ_KIND_OTHER && typbyval)
		return NULL;
	step = hgj_step_make(HGJ_STEP_CALL, kind, list_length(args));
	step->call = hgj_call_make(expr, funcid, collation, list_length(args),
							   &step->lazy, &step->at_once);
	if (step->call == NULL || !hgj_may_call(funcid))
		return NULL;
	step->raises = hgj_may_raise((Node *) expr, c->parent->state);
	foreach(lc, args)
	{
		HgjStep    *arg = compile_call_arg(c, lfirst(lc));

		if (arg == NULL)
			return NULL;
		hgj_step_add_arg(step, arg);
	}
	hgj_call_finish(step);
	return step;
}

/* What hgj_is_numeric_call() says yes to. */
HgjStep *
hgj_call_compile(HgjCompiler *c, Expr *expr)
{
	FuncExpr   *function = (FuncExpr *) expr;
	OpExpr	   *op = (OpExpr *) expr;

	if (IsA(expr, FuncExpr))
		return compile_call(c, expr, function->funcid, function->args,
							function->inputcollid);
	return compile_call(c, expr, function_of(op->opno, op->opfuncid), op->args,
						op->inputcollid);
}

/*
 * A function or an operator.  Each function is tried in one way only, or trees
 * would be compiled again and again.
 */
static HgjStep *
compile_function(HgjCompiler *c, Expr *expr, Oid funcid, List *args,
				 Oid collation)
{
	HgjOperation operation;
	HgjStep    *step;
	HgjLike    *like;
	HgjPart    *part;
	Expr	   *string;
	Oid			cast;
	bool		invert;

	if (hgj_is_decimal_comparison(c->parent, funcid, args))
		return hgj_decimal_comparison(c, funcid, args);
	if (!hgj_operation(funcid, &operation))
	{
		Expr	   *left = list_length(args) == 2 ? linitial(args) : NULL;
		Expr	   *right = list_length(args) == 2 ? lsecond(args) : NULL;

		if (right && hgj_text_set_make(funcid, collation, false, &invert))
		{
			if (hgj_is_constant(c->parent, right))
				return compile_text(c, funcid, collation, left, right, false);
			if (hgj_is_constant(c->parent, left))
				return compile_text(c, funcid, collation, right, left, false);
		}
		like = right ? hgj_like_make(funcid, collation, right, &invert) : NULL;
		if (like && !hgj_is_constant(c->parent, left))
			return compile_like(c, funcid, left, like, invert);
		part = hgj_part_make(funcid, args, &string, &cast);
		if (part && !hgj_is_constant(c->parent, string))
			return compile_part(c, funcid, cast, string, part);
		return compile_call(c, expr, funcid, args, collation);
	}
	if (!hgj_may_call(funcid))
		return NULL;
	step = make_loop_step(operation.op, operation.code, operation.operand,
						  operation.result, operation.nargs);
	if (!compile_args(c, step, &operation, args))
		return NULL;
	step->raise = operation.raise;
	step->lazy |= operation.raise != NULL;
	return step;
}

static HgjStep *
compile_distinct(HgjCompiler *c, DistinctExpr *expr)
{
	HgjOperation operation;
	HgjStep    *step;

	if (!find_operation(function_of(expr->opno, expr->opfuncid), &operation) ||
		operation.op != HGJ_STEP_COMPARE || operation.code != HGJ_EQ)
		return NULL;
	step = make_loop_step(HGJ_STEP_DISTINCT, HGJ_NE, operation.operand, HGJ_KIND_U1, 2);
	return compile_args(c, step, &operation, expr->args) ? step : NULL;
}

/* IN and NOT IN: scalar = ANY (array), scalar <> ALL (array) */
static HgjStep *
compile_member(HgjCompiler *c, ScalarArrayOpExpr *expr)
{
	HgjOperation operation;
	HgjStep    *step;
	HgjStep    *scalar;
	Expr	   *array = lsecond(expr->args);
	bool		invert;
	bool		lazy;
	Oid			funcid = function_of(expr->opno, expr->opfuncid);

	if (OidIsValid(expr->hashfuncid) && !hgj_may_execute(expr->hashfuncid))
		return NULL;
	if (hgj_is_decimal_list(c->parent, expr, funcid))
		return hgj_decimal_list(c, expr, funcid);
	if (hgj_text_set_make(funcid, expr->inputcollid, true, &invert))
		return invert == !expr->useOr ?
			compile_text(c, funcid, expr->inputcollid, linitial(expr->args),
						 array, true) : NULL;
	if (!find_operation(funcid, &operation) ||
		operation.op != HGJ_STEP_COMPARE || operation.order_dates ||
		operation.code != (expr->useOr ? HGJ_EQ : HGJ_NE))
		return NULL;
	step = hgj_step_make(HGJ_STEP_MEMBER, HGJ_KIND_U1, 1);
	step->element_type = get_base_element_type(exprType((Node *) array));
	if (!OidIsValid(step->element_type) ||
		hgj_kind_of_type(step->element_type) != operation.args[1])
		return NULL;
	scalar = hgj_step_compile(c, linitial(expr->args));
	if (scalar == NULL || scalar->kind != operation.args[0])
		return NULL;
	hgj_step_add_arg(step, scalar);
	step->constant = hgj_constant_make(c->parent, array, &lazy);
	if (step->constant == NULL)
		return NULL;
	step->lazy |= lazy;
	step->invert = !expr->useOr;
	step->set = palloc0(sizeof(HgjSet));
	c->constants = lappend(c->constants, step);
	return step;
}

static HgjStep *
compile_bool(HgjCompiler *c, BoolExpr *expr)
{
	HgjStep    *step;
	bool		share = c->share;
	ListCell   *lc;

	step = hgj_step_make(expr->boolop == AND_EXPR ? HGJ_STEP_AND :
					 expr->boolop == OR_EXPR ? HGJ_STEP_OR : HGJ_STEP_NOT,
					 HGJ_KIND_U1, list_length(expr->args));
	c->share = false;			/* an arm may be run for fewer rows */
	foreach(lc, expr->args)
	{
		HgjStep    *arg = hgj_step_compile(c, lfirst(lc));

		if (arg == NULL || arg->kind != HGJ_KIND_U1)
		{
			step = NULL;
			break;
		}
		hgj_step_add_arg(step, arg);
	}
	c->share = share;
	return step;
}

static HgjStep *
compile_null_test(HgjCompiler *c, NullTest *expr)
{
	HgjStep    *step;
	HgjStep    *arg;

	if (expr->argisrow)
		return NULL;
	arg = hgj_step_compile(c, expr->arg);
	if (arg == NULL)
		return NULL;
	step = hgj_step_make(expr->nulltesttype == IS_NULL ? HGJ_STEP_IS_NULL :
					 HGJ_STEP_IS_NOT_NULL, HGJ_KIND_U1, 1);
	hgj_step_add_arg(step, arg);
	return step;
}

static HgjStep *
compile_bool_test(HgjCompiler *c, BooleanTest *expr)
{
	static const struct
	{
		bool		of_true;
		bool		of_false;
		bool		of_null;
	}			tests[] = {
		[IS_TRUE] = {true, false, false},
		[IS_NOT_TRUE] = {false, true, true},
		[IS_FALSE] = {false, true, false},
		[IS_NOT_FALSE] = {true, false, true},
		[IS_UNKNOWN] = {false, false, true},
		[IS_NOT_UNKNOWN] = {true, true, false}
	};
	HgjStep    *arg = hgj_step_compile(c, expr->arg);
	HgjStep    *step;

	if (arg == NULL || arg->kind != HGJ_KIND_U1)
		return NULL;
	step = hgj_step_make(HGJ_STEP_BOOL_TEST, HGJ_KIND_U1, 1);
	step->test_true = tests[expr->booltesttype].of_true;
	step->test_false = tests[expr->booltesttype].of_false;
	step->test_null = tests[expr->booltesttype].of_null;
	hgj_step_add_arg(step, arg);
	return step;
}

static HgjStep *
compile_relabel(HgjCompiler *c, RelabelType *expr)
{
	HgjStep    *step = hgj_step_compile(c, expr->arg);
	HgjKind		kind = hgj_kind_of_type(expr->resulttype);
	int16		typlen;
	bool		typbyval;

	if (step == NULL)
		return NULL;
	get_typlenbyval(expr->resulttype, &typlen, &typbyval);
	if (step->width != (typbyval ? typlen : sizeof(Datum)))
		return NULL;

	/* the bits are the same; nobody else has this step */
	if (step->kind != kind)
		step->exact = false;
	step->kind = kind;
	return step;
}

/* An expression over numeric that is not just a column or a constant? */
static bool
is_decimal_computation(HgjCompiler *c, Expr *expr)
{
	Expr	   *inner = hgj_strip_relabel(expr);

	return (IsA(inner, FuncExpr) || IsA(inner, OpExpr) ||
			(IsA(expr, RelabelType) && !IsA(inner, Var))) &&
		hgj_is_decimal(c->parent, expr);
}

static HgjStep *
compile_operator(HgjCompiler *c, OpExpr *expr)
{
	Oid			funcid = function_of(expr->opno, expr->opfuncid);
	Expr	   *dates = hgj_comparison_of_dates(expr, funcid);

	if (dates)
		return hgj_step_compile(c, dates);
	return compile_function(c, (Expr *) expr, funcid, expr->args, expr->inputcollid);
}

/*
 * The steps of an expression, or NULL if it is not of the supported forms, or has become
 * too many: arguments of NULLIF and GREATEST are compiled several times, and others in
 * them again.  Those of numeric are decimals, but for columns and constants, or refused.
 */
HgjStep *
hgj_step_compile(HgjCompiler *c, Expr *expr)
{
	HgjStep    *step;

	check_stack_depth();
	if (++c->nexprs > HGJ_MOST_EXPRS)
		return NULL;
	step = compile_constant(c, expr);
	if (step == NULL)
		step = c->by_value(c, expr);
	if (step)
		return step;
	if (is_decimal_computation(c, expr))
		return hgj_decimal_compile(c, expr);
	switch (nodeTag(expr))
	{
		case T_Var:
			return compile_var(c, (Var *) expr);
		case T_RelabelType:
			return compile_relabel(c, (RelabelType *) expr);
		case T_FuncExpr:
			if (((FuncExpr *) expr)->funcvariadic)
				return NULL;
			return compile_function(c, expr, ((FuncExpr *) expr)->funcid,
									((FuncExpr *) expr)->args,
									((FuncExpr *) expr)->inputcollid);
		case T_OpExpr:
			return compile_operator(c, (OpExpr *) expr);
		case T_DistinctExpr:
			return compile_distinct(c, (DistinctExpr *) expr);
		case T_ScalarArrayOpExpr:
			return compile_member(c, (ScalarArrayOpExpr *) expr);
		case T_BoolExpr:
			return compile_bool(c, (BoolExpr *) expr);
		case T_CaseExpr:
		case T_CoalesceExpr:
		case T_NullIfExpr:
		case T_MinMaxExpr:
			return hgj_branches_compile(c, expr);
		case T_NullTest:
			return compile_null_test(c, (NullTest *) expr);
		case T_BooleanTest:
			return compile_bool_test(c, (BooleanTest *) expr);
		case T_CaseTestExpr:
			return hgj_case_test_compile(c);
		default:
			return NULL;
	}
}

/* For the planner: does a device itself compute it, of columns by value and decimals? */
bool
hgj_has_instruction(Oid funcid)
{
	HgjOperation operation;

	if (hgj_operation(funcid, &operation))
		return operation.op != HGJ_STEP_DATE;
	return hgj_decimal_function(funcid);
}
