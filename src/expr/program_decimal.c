/*-------------------------------------------------------------------------
 *
 * program_decimal.c
 *	  Expressions over numeric, as steps over decimals: 64-bit integers in units of
 *	  a power of ten.
 *
 * 1. The unit of every step is known when it is compiled: that of a column is said
 *	  by its typmod, that of a constant by its value, that of what a function of
 *	  PostgreSQL's returns by what is known of it (program_call.c), that of a sum or
 *	  difference is the smaller one of its operands, that of a product the product of
 *	  theirs.  The typmod is merely believed: rows that do not keep to it are no
 *	  decimals.  Where there is none, most values are taken to have few decimals.
 * 2. A value may have a display scale that is smaller than its unit (a constant
 *	  that was aligned to a column, a branch of CASE): that is known as well, or
 *	  noted per row.
 * 3. What is no decimal in some row, a column's value or a result that does not fit,
 *	  is a numeric in that row, and PostgreSQL's own functions compute with it
 *	  (program_decimal_run.c).  They may raise errors, so that arithmetic is lazy.
 * 4. A comparison with something that is constant needs no unit of it: it is true of
 *	  a range of integers, which is found when the first row comes.
 * 5. Whether an expression can be compiled so is seen from its form, before that is
 *	  done, so that each is compiled in one way only.
 * 6. Several expressions in one program share the steps that they have in common,
 *	  columns to begin with, but for those that only some rows come to.
 *
 * Everything is palloc'd in the current context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "expr/program_private.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"

/* Constants of an IN that are compared with one after the other. */
#define HGJ_LONGEST_LIST		8

/* Decimals of a column whose type does not say how many. */
#define HGJ_GUESSED_SCALE		4

/* What is done to decimals by functions of one or two numerics. */
typedef struct DecimalFunction
{
	Oid			funcid;
	HgjStepOp	op;				/* DECIMAL: what the argument is */
	uint8		code;			/* HgjArithmetic */
	PGFunction	function;
} DecimalFunction;

static const DecimalFunction functions[] = {
	{F_NUMERIC_ADD, HGJ_STEP_DECIMAL_ARITHMETIC, HGJ_ADD, numeric_add},
	{F_NUMERIC_SUB, HGJ_STEP_DECIMAL_ARITHMETIC, HGJ_SUB, numeric_sub},
	{F_NUMERIC_MUL, HGJ_STEP_DECIMAL_ARITHMETIC, HGJ_MUL, numeric_mul},
	{F_NUMERIC_UMINUS, HGJ_STEP_DECIMAL_ARITHMETIC, HGJ_NEG, numeric_uminus},
	{F_NUMERIC_ABS, HGJ_STEP_DECIMAL_ARITHMETIC, HGJ_ABS, numeric_abs},
	{F_ABS_NUMERIC, HGJ_STEP_DECIMAL_ARITHMETIC, HGJ_ABS, numeric_abs},
	{F_NUMERIC_UPLUS, HGJ_STEP_DECIMAL, 0, NULL},
	{F_NUMERIC_INT2, HGJ_STEP_DECIMAL_INTEGER, 0, NULL},
	{F_NUMERIC_INT4, HGJ_STEP_DECIMAL_INTEGER, 0, NULL},
	{F_NUMERIC_INT8, HGJ_STEP_DECIMAL_INTEGER, 0, NULL}
};

static const struct
{
	Oid			funcid;
	HgjComparison comparison;
	PGFunction	function;
}			comparisons[] = {
	{F_NUMERIC_EQ, HGJ_EQ, numeric_eq},
	{F_NUMERIC_NE, HGJ_NE, numeric_ne},
	{F_NUMERIC_LT, HGJ_LT, numeric_lt},
	{F_NUMERIC_LE, HGJ_LE, numeric_le},
	{F_NUMERIC_GT, HGJ_GT, numeric_gt},
	{F_NUMERIC_GE, HGJ_GE, numeric_ge}
};

static bool
is_numeric(Expr *expr)
{
	return getBaseType(exprType((Node *) expr)) == NUMERICOID;
}

static const DecimalFunction *
find_function(Oid funcid)
{
	for (int i = 0; i < lengthof(functions); i++)
		if (functions[i].funcid == funcid)
			return &functions[i];
	return NULL;
}

static const DecimalFunction *
function_of(Expr *expr, List **args)
{
	Oid			funcid;

	if (IsA(expr, OpExpr))
	{
		OpExpr	   *op = (OpExpr *) expr;

		funcid = OidIsValid(op->opfuncid) ? op->opfuncid : get_opcode(op->opno);
		*args = op->args;
	}
	else
	{
		funcid = ((FuncExpr *) expr)->funcid;
		*args = ((FuncExpr *) expr)->args;
	}
	return find_function(funcid);
}

static int
comparison_of(Oid funcid)
{
	for (int i = 0; i < lengthof(comparisons); i++)
		if (comparisons[i].funcid == funcid)
			return i;
	return -1;
}

/* How does the function compare two integers, or two numerics?  False: it does not. */
bool
hgj_number_comparison(Oid funcid, HgjComparison *comparison)
{
	int			which = comparison_of(funcid);
	HgjOperation operation;

	if (which >= 0)
		*comparison = comparisons[which].comparison;
	else if (hgj_operation(funcid, &operation) && operation.op == HGJ_STEP_COMPARE)
		*comparison = operation.code;
	else
		return false;
	return true;
}

/* Is it one of numerics that are decimals? */
bool
hgj_decimal_function(Oid funcid)
{
	return find_function(funcid) != NULL || comparison_of(funcid) >= 0;
}

/* Step 1: the scale that a typmod says, as numeric.c has it; -1: it is none of ours. */
static int
scale_of_typmod(int32 typmod)
{
	int			scale = (((typmod - VARHDRSZ) & 0x7FF) ^ 1024) - 1024;

	return scale > HGJ_COLUMN_SCALE_MAX ? -1 : Max(scale, 0);
}

int
hgj_decimal_scale(Oid type, int32 typmod)
{
	if (getBaseTypeAndTypmod(type, &typmod) != NUMERICOID || typmod < VARHDRSZ)
		return -1;
	return scale_of_typmod(typmod);
}

/* The column that an expression is, and its scale; or NULL. */
static Var *
column_of(Expr *expr, int *scale)
{
	bool		known = false;

	*scale = HGJ_GUESSED_SCALE;
	for (;; expr = ((RelabelType *) expr)->arg)
	{
		int32		typmod = exprTypmod((Node *) expr);

		if (getBaseTypeAndTypmod(exprType((Node *) expr), &typmod) != NUMERICOID)
			return NULL;
		if (typmod >= VARHDRSZ && !known)
		{
			*scale = scale_of_typmod(typmod);
			known = true;
		}
		if (!IsA(expr, RelabelType))
			break;
	}
	return IsA(expr, Var) && *scale >= 0 ? (Var *) expr : NULL;
}

/* A constant in units of its display scale, NULL in those of 1. */
static bool
read_constant(const Const *constant, int *scale, int64 *value)
{
	Numeric		numeric;
	Datum		datum;
	HgjNumber	number;
	uint8		display;

	*scale = 0;
	*value = 0;
	if (constant->constisnull)
		return true;
	numeric = DatumGetNumeric(constant->constvalue);
	datum = NumericGetDatum(numeric);
	if (!hgj_number_read(VARDATA(numeric), VARSIZE(numeric) - VARHDRSZ, &number) ||
		number.scale > HGJ_COLUMN_SCALE_MAX)
		return false;
	*scale = number.scale;
	return !hgj_decimals_read(&datum, NULL, 1, *scale, value, &display);
}

/* Step 5: can it be decimals, by its form? */
bool
hgj_is_decimal(PlanState *parent, Expr *expr)
{
	const DecimalFunction *function;
	List	   *args = NIL;
	ListCell   *lc;
	int			scale;
	int64		value;

	check_stack_depth();
	if (!is_numeric(expr))
		return false;
	switch (nodeTag(expr))
	{
		case T_Const:
			return read_constant((Const *) expr, &scale, &value);
		case T_Var:
			return column_of(expr, &scale) != NULL;
		case T_RelabelType:
			return column_of(expr, &scale) != NULL ||
				hgj_is_decimal(parent, ((RelabelType *) expr)->arg);
		case T_FuncExpr:
		case T_OpExpr:
			function = function_of(expr, &args);
			if (function == NULL)
				return hgj_is_numeric_call(expr);
			if (function->op == HGJ_STEP_DECIMAL_INTEGER)
				return true;
			break;
		case T_CaseExpr:
			foreach(lc, ((CaseExpr *) expr)->args)
				args = lappend(args, lfirst_node(CaseWhen, lc)->result);
			if (((CaseExpr *) expr)->defresult == NULL)
				return false;
			args = lappend(args, ((CaseExpr *) expr)->defresult);
			break;
		case T_CoalesceExpr:
			args = ((CoalesceExpr *) expr)->args;
			break;
		case T_MinMaxExpr:
			args = ((MinMaxExpr *) expr)->args;
			break;
		case T_NullIfExpr:
			args = list_make1(linitial(((NullIfExpr *) expr)->args));
			break;
		default:
			return false;
	}
	foreach(lc, args)
		if (!hgj_is_decimal(parent, lfirst(lc)))
			return false;
	return true;
}

static HgjStep *
make_decimal(HgjStepOp op, int scale, int display, int nargs)
{
	HgjStep    *step = hgj_step_make(op, HGJ_KIND_OTHER, nargs);

	step->decimal = true;
	step->scale = scale;
	step->display = display;
	return step;
}

static HgjStep *
compile_constant(const Const *constant)
{
	HgjStep    *step;
	int			scale;
	int64		value;

	if (!read_constant(constant, &scale, &value))
		return NULL;
	step = make_decimal(HGJ_STEP_CONSTANT, scale, scale, 0);
	step->constant = palloc0(sizeof(HgjConstant));
	step->constant->value = Int64GetDatum(value);
	step->constant->isnull = constant->constisnull;
	step->constant->ready = true;
	return step;
}

static HgjStep *
compile_column(HgjCompiler *c, Var *var, int scale)
{
	HgjStep    *input = hgj_step_compile(c, (Expr *) var);
	HgjStep    *step;

	if (input == NULL)
		return NULL;
	step = make_decimal(HGJ_STEP_DECIMAL, scale, scale, 1);
	hgj_step_add_arg(step, input);
	return step;
}

/* A cast of integers. */
static HgjStep *
compile_integer(HgjCompiler *c, Expr *arg)
{
	const HgjOperation cast = {.operand = HGJ_KIND_I8};
	HgjStep    *integer = hgj_step_compile(c, arg);
	HgjStep    *step;

	if (integer == NULL || (integer->kind != HGJ_KIND_I2 &&
							integer->kind != HGJ_KIND_I4 && integer->kind != HGJ_KIND_I8))
		return NULL;
	step = make_decimal(HGJ_STEP_DECIMAL_INTEGER, 0, 0, 1);
	hgj_step_add_arg(step, hgj_step_cast(integer, &cast));
	return step;
}

/* The same values in units of 10^-scale; NULL: that would not do. */
static HgjStep *
align(HgjStep *step, int scale)
{
	HgjStep    *result;
	int64		factor;
	int64		value;

	if (step->scale == scale)
		return step;
	if (scale - step->scale > HGJ_COLUMN_SCALE_MAX)
		return NULL;
	factor = hgj_powers_of_ten[scale - step->scale];
	if (step->op == HGJ_STEP_CONSTANT &&
		!__builtin_mul_overflow(DatumGetInt64(step->constant->value), factor, &value))
	{
		step->constant->value = Int64GetDatum(value);
		step->scale = scale;
		return step;
	}
	result = make_decimal(HGJ_STEP_DECIMAL_ALIGN, scale, step->display, 1);
	result->factor = factor;
	hgj_step_add_arg(result, step);
	return result;
}

/* Put the operands into the smaller of their units. */
static bool
align_operands(HgjStep **a, HgjStep **b)
{
	int			scale = Max((*a)->scale, (*b)->scale);

	*a = align(*a, scale);
	*b = align(*b, scale);
	return *a && *b;
}

static HgjStep *
compile_arithmetic(HgjCompiler *c, const DecimalFunction *function, List *args)
{
	int			nargs = list_length(args);
	HgjStep    *a = hgj_decimal_compile(c, linitial(args));
	HgjStep    *b = nargs > 1 ? hgj_decimal_compile(c, lsecond(args)) : a;
	HgjStep    *step;
	int			scale;
	int			display;

	if (a == NULL || b == NULL)
		return NULL;
	if (function->code == HGJ_MUL)
	{
		scale = a->scale + b->scale;
		display = a->display + b->display;
		if (scale > HGJ_DECIMAL_SCALE_MAX)
			return NULL;
	}
	else
	{
		if (!align_operands(&a, &b))
			return NULL;
		scale = a->scale;
		display = Max(a->display, b->display);
	}
	step = make_decimal(HGJ_STEP_DECIMAL_ARITHMETIC, scale, display, 2);
	step->operand = HGJ_KIND_I8;
	step->code = function->code;
	step->function = step->raise = function->function;
	hgj_step_add_arg(step, a);
	if (nargs > 1)
		hgj_step_add_arg(step, b);
	step->lazy = true;
	return step;
}

/* A function that is called, and returns numerics. */
static HgjStep *
compile_call(HgjCompiler *c, Expr *expr)
{
	HgjStep    *call = hgj_call_compile(c, expr);
	int			scale = hgj_decimal_scale(exprType((Node *) expr),
										  exprTypmod((Node *) expr));
	HgjStep    *step;

	if (call == NULL)
		return NULL;
	if (scale < 0)
		scale = hgj_call_scale(expr);
	if (scale < 0)
		scale = HGJ_GUESSED_SCALE;
	step = make_decimal(HGJ_STEP_DECIMAL, scale, scale, 1);
	hgj_step_add_arg(step, call);
	return step;
}

static HgjStep *
compile_function(HgjCompiler *c, Expr *expr)
{
	List	   *args;
	const DecimalFunction *function = function_of(expr, &args);

	if (function == NULL)
		return compile_call(c, expr);
	if (!hgj_may_call(IsA(expr, FuncExpr) ? ((FuncExpr *) expr)->funcid :
					  function->funcid))
		return NULL;
	switch (function->op)
	{
		case HGJ_STEP_DECIMAL:
			return hgj_decimal_compile(c, linitial(args));
		case HGJ_STEP_DECIMAL_INTEGER:
			return compile_integer(c, linitial(args));
		default:
			return compile_arithmetic(c, function, args);
	}
}

static HgjStep *
compile(HgjCompiler *c, Expr *expr)
{
	int			scale;
	Var		   *var;

	switch (nodeTag(expr))
	{
		case T_Const:
			return compile_constant((Const *) expr);
		case T_Var:
		case T_RelabelType:
			var = column_of(expr, &scale);
			if (var)
				return compile_column(c, var, scale);
			return hgj_decimal_compile(c, ((RelabelType *) expr)->arg);
		case T_FuncExpr:
		case T_OpExpr:
			return compile_function(c, expr);
		default:				/* CASE, COALESCE and the like */
			return hgj_step_compile(c, expr);
	}
}

/*
 * The steps of an expression that is decimals by its form; NULL if there is
 * something in it that cannot be compiled.
 */
HgjStep *
hgj_decimal_compile(HgjCompiler *c, Expr *expr)
{
	HgjStep    *step;
	ListCell   *lc;

	check_stack_depth();
	if (!c->share || IsA(expr, Const))	/* align() changes constants */
		return compile(c, expr);
	foreach(lc, c->shared_exprs)
		if (equal(lfirst(lc), expr))
		{
			step = list_nth(c->shared_steps, foreach_current_index(lc));
			step->shared = true;
			return step;
		}
	step = compile(c, expr);
	if (step && step->op != HGJ_STEP_CONSTANT)
	{
		c->shared_exprs = lappend(c->shared_exprs, expr);
		c->shared_steps = lappend(c->shared_steps, step);
	}
	return step;
}

/*
 * The results of CASE or the arguments of COALESCE have been compiled: those from
 * `first` on, and the last.  False: they have no unit in common.
 */
bool
hgj_decimal_branches(HgjStep *step, int first, int stride)
{
	int			last = step->nargs - 1;

	for (int i = first; i <= last; i = i < last ? Min(i + stride, last) : i + 1)
	{
		step->scale = Max(step->scale, step->args[i]->scale);
		step->display = Max(step->display, step->args[i]->display);
	}
	for (int i = first; i <= last; i = i < last ? Min(i + stride, last) : i + 1)
	{
		HgjStep    *branch = align(step->args[i], step->scale);

		if (branch == NULL)
			return false;
		if (branch->op == HGJ_STEP_CONSTANT && branch->constant->isnull)
			branch->display = step->display;	/* that of NULL does not matter */
		step->args[i] = branch;
	}
	return true;
}

/* A comparison of decimals with each other, or with something constant? */
bool
hgj_is_decimal_comparison(PlanState *parent, Oid funcid, List *args)
{
	bool		constant[2];

	if (comparison_of(funcid) < 0 || list_length(args) != 2)
		return false;
	for (int i = 0; i < 2; i++)
	{
		constant[i] = hgj_is_constant(parent, list_nth(args, i));
		if (!constant[i] && !hgj_is_decimal(parent, list_nth(args, i)))
			return false;
	}
	return !constant[0] || !constant[1];
}

/* Step 4. */
static HgjStep *
compile_range(HgjCompiler *c, Expr *value, Expr *constant, HgjComparison comparison)
{
	HgjStep    *step = hgj_step_make(HGJ_STEP_DECIMAL_RANGE, HGJ_KIND_U1, 1);
	HgjStep    *arg = hgj_decimal_compile(c, value);
	bool		lazy;

	if (arg == NULL)
		return NULL;
	hgj_step_add_arg(step, arg);
	step->code = comparison;
	for (int i = 0; i < lengthof(comparisons); i++)
		if (comparisons[i].comparison == comparison)
			step->function = comparisons[i].function;
	step->constant = hgj_constant_make(c->parent, constant, &lazy);
	if (step->constant == NULL)
		return NULL;
	step->constant->keep = true;
	step->constant->typlen = -1;
	step->lazy |= lazy;
	c->constants = lappend(c->constants, step);
	return step;
}

/* What hgj_is_decimal_comparison() says yes to. */
HgjStep *
hgj_decimal_comparison(HgjCompiler *c, Oid funcid, List *args)
{
	int			which = comparison_of(funcid);
	HgjStep    *step;
	HgjStep    *a;
	HgjStep    *b;

	if (!hgj_may_call(funcid))
		return NULL;
	if (hgj_is_constant(c->parent, lsecond(args)))
		return compile_range(c, linitial(args), lsecond(args),
							 comparisons[which].comparison);
	if (hgj_is_constant(c->parent, linitial(args)))
		return compile_range(c, lsecond(args), linitial(args),
							 hgj_commuted(comparisons[which].comparison));
	a = hgj_decimal_compile(c, linitial(args));
	b = hgj_decimal_compile(c, lsecond(args));
	if (a == NULL || b == NULL || !align_operands(&a, &b))
		return NULL;
	step = hgj_step_make(HGJ_STEP_DECIMAL_COMPARE, HGJ_KIND_U1, 2);
	step->operand = HGJ_KIND_I8;
	step->code = comparisons[which].comparison;
	step->function = comparisons[which].function;
	hgj_step_add_arg(step, a);
	hgj_step_add_arg(step, b);
	return step;
}

/* IN and NOT IN a short list of constants? */
bool
hgj_is_decimal_list(PlanState *parent, const ScalarArrayOpExpr *expr, Oid funcid)
{
	int			which = comparison_of(funcid);
	Const	   *array = lsecond(expr->args);
	ArrayType  *elements;

	if (which < 0 || !IsA(array, Const) || array->constisnull ||
		comparisons[which].comparison != (expr->useOr ? HGJ_EQ : HGJ_NE) ||
		!hgj_is_decimal(parent, linitial(expr->args)))
		return false;
	elements = DatumGetArrayTypeP(array->constvalue);
	return ArrayGetNItems(ARR_NDIM(elements), ARR_DIMS(elements)) > 0 &&
		ArrayGetNItems(ARR_NDIM(elements), ARR_DIMS(elements)) <= HGJ_LONGEST_LIST;
}

/* What that says yes to: a comparison with each, ORed or ANDed together. */
HgjStep *
hgj_decimal_list(HgjCompiler *c, const ScalarArrayOpExpr *expr, Oid funcid)
{
	Const	   *array = lsecond(expr->args);
	HgjStep    *step;
	Datum	   *values;
	bool	   *nulls;
	int			n;
	bool		share = c->share;

	if (!hgj_may_call(funcid))
		return NULL;
	deconstruct_array(DatumGetArrayTypeP(array->constvalue), NUMERICOID, -1, false,
					  TYPALIGN_INT, &values, &nulls, &n);
	step = hgj_step_make(expr->useOr ? HGJ_STEP_OR : HGJ_STEP_AND, HGJ_KIND_U1, n);
	c->share = false;			/* what can fail is run for fewer and fewer rows */
	for (int i = 0; i < n; i++)
	{
		Const	   *value = makeConst(NUMERICOID, -1, InvalidOid, -1, values[i], nulls[i],
									  false);
		HgjStep    *arm = compile_range(c, linitial(expr->args), (Expr *) value,
										expr->useOr ? HGJ_EQ : HGJ_NE);

		if (arm == NULL)
		{
			step = NULL;
			break;
		}
		hgj_step_add_arg(step, arm);
	}
	c->share = share;
	return step;
}

/* A step's values for those who know numerics only. */
HgjStep *
hgj_numeric_step(HgjStep *step)
{
	HgjStep    *result;

	if (step == NULL || !step->decimal)
		return step;
	if (step->op == HGJ_STEP_DECIMAL && !step->shared)
		return step->args[0];	/* they have been numerics */
	result = hgj_step_make(HGJ_STEP_NUMERIC, HGJ_KIND_OTHER, 1);
	hgj_step_add_arg(result, step);
	return result;
}
