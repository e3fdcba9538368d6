/*-------------------------------------------------------------------------
 *
 * program_compile.c
 *	  Expression trees to steps.
 *
 * 1. What has no column in it is a constant, whatever it looks like, if it does
 *	  not change from row to row (program_constant.c).
 * 2. Columns are inputs; functions and operators are looked up by the OID of the
 *	  function (program_functions.c).  The user must be allowed to call it: where
 *	  that is not so we compile nothing, and PostgreSQL's code says why.
 * 3. A step is lazy if it can raise an error, or something below it can.
 * 4. A filter becomes clauses: a plan's quals, or the arms of an AND.  They
 *	  differ in one point.  ExecQual() drops a row at the first clause of a list
 *	  that is NULL; AND looks at the arms that follow, which may raise an error.
 *	  So an AND is taken apart only as far as its arms cannot.
 *
 * Everything is palloc'd in the current context, and no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/objectaccess.h"
#include "exec/program_private.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

typedef struct HgjCompiler
{
	PlanState  *parent;
	HgjInputLookup lookup;
	void	   *arg;
	List	   *constants;		/* HgjSteps */
	Expr	   *case_arg;		/* what a CaseTestExpr stands for */
} HgjCompiler;

static HgjStep *compile(HgjCompiler *c, Expr *expr);

static HgjStep *
make_step(HgjStepOp op, HgjKind kind, int nargs)
{
	HgjStep    *step = palloc0(sizeof(HgjStep));

	step->op = op;
	step->kind = kind;
	step->width = kind < HGJ_KINDS ? hgj_kind_width[kind] : sizeof(Datum);
	step->args = palloc0(Max(nargs, 1) * sizeof(HgjStep *));
	step->input = -1;
	return step;
}

static void
add_arg(HgjStep *step, HgjStep *arg)
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
	step = make_step(HGJ_STEP_CONSTANT, kind, 0);
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
	step = make_step(HGJ_STEP_INPUT, hgj_kind_of_type(var->vartype), 0);
	get_typlenbyval(var->vartype, &typlen, &typbyval);
	step->width = typbyval ? typlen : sizeof(Datum);
	step->input = input;
	return step;
}

/* The step with its values in another kind. */
static HgjStep *
cast_step(HgjStep *step, HgjLoop cast, HgjKind kind)
{
	HgjStep    *result;

	if (cast == NULL)
		return step;
	if (step->op == HGJ_STEP_CONSTANT && step->constant->cast == NULL)
	{
		HgjConstant *constant = step->constant;

		constant->cast = cast;
		constant->cast_from = step->width;
		constant->cast_to = hgj_kind_width[kind];
		step->kind = kind;
		step->width = hgj_kind_width[kind];
		if (constant->ready)
			hgj_constant_cast(constant);
		return step;
	}
	result = make_step(HGJ_STEP_FUNCTION, kind, 1);
	result->loop = cast;
	result->exact = true;
	add_arg(result, step);
	return result;
}

/* What to do for a function that the user may call. */
static bool
find_operation(Oid funcid, HgjOperation *operation)
{
	if (!hgj_operation(funcid, operation))
		return false;
	if (pg_proc_aclcheck(funcid, GetUserId(), ACL_EXECUTE) != ACLCHECK_OK)
		return false;
	InvokeFunctionExecuteHook(funcid);
	return true;
}

/* Both operands of a function, as its loop wants them. */
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
		HgjStep    *arg = compile(c, lfirst(lc));

		if (arg == NULL || arg->kind != operation->args[i])
			return false;
		add_arg(step, cast_step(arg, operation->casts[i], operation->operand));
	}
	return true;
}

/* A cast that leaves integers integers of the same order, or floats floats. */
static bool
is_exact_cast(const HgjOperation *operation)
{
	HgjKind		from = operation->operand;
	HgjKind		to = operation->result;

	return operation->nargs == 1 && operation->raise == NULL &&
		operation->loop == hgj_cast_loops[from][to] &&
		((from == HGJ_KIND_I2 && (to == HGJ_KIND_I4 || to == HGJ_KIND_I8)) ||
		 (from == HGJ_KIND_I4 && to == HGJ_KIND_I8) ||
		 (from == HGJ_KIND_U4 && to == HGJ_KIND_I8) ||
		 (from == HGJ_KIND_F4 && to == HGJ_KIND_F8));
}

static HgjStep *
compile_function(HgjCompiler *c, Oid funcid, List *args)
{
	HgjOperation operation;
	HgjStep    *step;

	if (!find_operation(funcid, &operation))
		return NULL;
	step = make_step(HGJ_STEP_FUNCTION, operation.result, operation.nargs);
	if (!compile_args(c, step, &operation, args))
		return NULL;
	step->loop = operation.loop;
	step->raise = operation.raise;
	step->compares = operation.compares;
	step->comparison = operation.comparison;
	step->exact = is_exact_cast(&operation);
	step->lazy |= operation.raise != NULL;
	return step;
}

static Oid
function_of(Oid opno, Oid opfuncid)
{
	return OidIsValid(opfuncid) ? opfuncid : get_opcode(opno);
}

static HgjStep *
compile_distinct(HgjCompiler *c, DistinctExpr *expr)
{
	HgjOperation operation;
	HgjStep    *step;

	if (!find_operation(function_of(expr->opno, expr->opfuncid), &operation) ||
		!operation.compares || operation.comparison != HGJ_EQ)
		return NULL;
	step = make_step(HGJ_STEP_DISTINCT, HGJ_KIND_U1, 2);
	if (!compile_args(c, step, &operation, expr->args))
		return NULL;
	step->loop = hgj_compare_loops[operation.operand][HGJ_NE];
	return step;
}

/* IN and NOT IN: scalar = ANY (array), scalar <> ALL (array) */
static HgjStep *
compile_member(HgjCompiler *c, ScalarArrayOpExpr *expr)
{
	HgjOperation operation;
	HgjStep    *step;
	HgjStep    *scalar;
	Expr	   *array = lsecond(expr->args);
	bool		lazy;

	if (!find_operation(function_of(expr->opno, expr->opfuncid), &operation) ||
		!operation.compares ||
		operation.comparison != (expr->useOr ? HGJ_EQ : HGJ_NE) ||
		operation.casts[0] == hgj_loop_date_order ||
		operation.casts[1] == hgj_loop_date_order)
		return NULL;
	if (OidIsValid(expr->hashfuncid) &&
		pg_proc_aclcheck(expr->hashfuncid, GetUserId(),
						 ACL_EXECUTE) != ACLCHECK_OK)
		return NULL;
	step = make_step(HGJ_STEP_MEMBER, HGJ_KIND_U1, 1);
	step->element_type = get_base_element_type(exprType((Node *) array));
	if (!OidIsValid(step->element_type) ||
		hgj_kind_of_type(step->element_type) != operation.args[1])
		return NULL;
	scalar = compile(c, linitial(expr->args));
	if (scalar == NULL || scalar->kind != operation.args[0])
		return NULL;
	add_arg(step, scalar);
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
	ListCell   *lc;

	step = make_step(expr->boolop == AND_EXPR ? HGJ_STEP_AND :
					 expr->boolop == OR_EXPR ? HGJ_STEP_OR : HGJ_STEP_NOT,
					 HGJ_KIND_U1, list_length(expr->args));
	foreach(lc, expr->args)
	{
		HgjStep    *arg = compile(c, lfirst(lc));

		if (arg == NULL || arg->kind != HGJ_KIND_U1)
			return NULL;
		add_arg(step, arg);
	}
	return step;
}

static HgjStep *
compile_null_test(HgjCompiler *c, NullTest *expr)
{
	HgjStep    *step;
	HgjStep    *arg;

	if (expr->argisrow)
		return NULL;
	arg = compile(c, expr->arg);
	if (arg == NULL)
		return NULL;
	step = make_step(expr->nulltesttype == IS_NULL ? HGJ_STEP_IS_NULL :
					 HGJ_STEP_IS_NOT_NULL, HGJ_KIND_U1, 1);
	add_arg(step, arg);
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
	HgjStep    *arg = compile(c, expr->arg);
	HgjStep    *step;

	if (arg == NULL || arg->kind != HGJ_KIND_U1)
		return NULL;
	step = make_step(HGJ_STEP_BOOL_TEST, HGJ_KIND_U1, 1);
	step->test_true = tests[expr->booltesttype].of_true;
	step->test_false = tests[expr->booltesttype].of_false;
	step->test_null = tests[expr->booltesttype].of_null;
	add_arg(step, arg);
	return step;
}

static bool
add_branch(HgjCompiler *c, HgjStep *step, Expr *expr, HgjKind kind)
{
	HgjStep    *arg = compile(c, expr);

	if (arg == NULL || arg->kind != kind || kind == HGJ_KIND_OTHER)
		return false;
	add_arg(step, arg);
	return true;
}

static HgjStep *
compile_case(HgjCompiler *c, CaseExpr *expr)
{
	HgjKind		kind = hgj_kind_of_type(expr->casetype);
	HgjStep    *step = make_step(HGJ_STEP_CASE, kind,
								 2 * list_length(expr->args) + 1);
	Expr	   *outer_arg = c->case_arg;
	ListCell   *lc;

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
	return step;
}

static HgjStep *
compile_coalesce(HgjCompiler *c, CoalesceExpr *expr)
{
	HgjKind		kind = hgj_kind_of_type(expr->coalescetype);
	HgjStep    *step = make_step(HGJ_STEP_COALESCE, kind,
								 list_length(expr->args));
	ListCell   *lc;

	foreach(lc, expr->args)
		if (!add_branch(c, step, lfirst(lc), kind))
			return NULL;
	return step;
}

static HgjStep *
compile_relabel(HgjCompiler *c, RelabelType *expr)
{
	HgjStep    *step = compile(c, expr->arg);
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

/* What the CASE that we are in compares with: compile it once more. */
static HgjStep *
compile_case_test(HgjCompiler *c)
{
	Expr	   *case_arg = c->case_arg;
	HgjStep    *step;

	if (case_arg == NULL)
		return NULL;
	c->case_arg = NULL;
	step = compile(c, case_arg);
	c->case_arg = case_arg;
	return step;
}

/* The steps of an expression, or NULL if it is not of the supported forms. */
static HgjStep *
compile(HgjCompiler *c, Expr *expr)
{
	HgjStep    *step;

	check_stack_depth();
	step = compile_constant(c, expr);
	if (step)
		return step;
	switch (nodeTag(expr))
	{
		case T_Var:
			return compile_var(c, (Var *) expr);
		case T_RelabelType:
			return compile_relabel(c, (RelabelType *) expr);
		case T_FuncExpr:
			return compile_function(c, ((FuncExpr *) expr)->funcid,
									((FuncExpr *) expr)->args);
		case T_OpExpr:
			return compile_function(c,
									function_of(((OpExpr *) expr)->opno,
												((OpExpr *) expr)->opfuncid),
									((OpExpr *) expr)->args);
		case T_DistinctExpr:
			return compile_distinct(c, (DistinctExpr *) expr);
		case T_ScalarArrayOpExpr:
			return compile_member(c, (ScalarArrayOpExpr *) expr);
		case T_BoolExpr:
			return compile_bool(c, (BoolExpr *) expr);
		case T_NullTest:
			return compile_null_test(c, (NullTest *) expr);
		case T_BooleanTest:
			return compile_bool_test(c, (BooleanTest *) expr);
		case T_CaseExpr:
			return compile_case(c, (CaseExpr *) expr);
		case T_CaseTestExpr:
			return compile_case_test(c);
		case T_CoalesceExpr:
			return compile_coalesce(c, (CoalesceExpr *) expr);
		default:
			return NULL;
	}
}

/* Can the arms of an AND be clauses?  See step 4 of the head comment. */
static bool
can_split(const HgjStep *step)
{
	if (step->op != HGJ_STEP_AND)
		return false;
	for (int i = 1; i < step->nargs; i++)
		if (step->args[i]->lazy)
			return false;
	return true;
}

/* Can the clause do its part in one that stands before it? */
static bool
merge_clause(HgjProgram *program, const HgjClause *clause)
{
	for (int i = program->nclauses - 1; i >= 0; i--)
	{
		if (hgj_clause_merge(&program->clauses[i], clause))
			return true;
		if (program->clauses[i].step->lazy)
			return false;		/* it would be run for fewer rows then */
	}
	return false;
}

static void
add_clauses(HgjProgram *program, HgjStep *step)
{
	HgjClause	clause = {.step = step};

	if (can_split(step))
	{
		for (int i = 0; i < step->nargs; i++)
			add_clauses(program, step->args[i]);
		return;
	}
	hgj_clause_recognize(&clause);
	if (merge_clause(program, &clause))
		return;
	program->clauses = repalloc(program->clauses,
								(program->nclauses + 1) * sizeof(HgjClause));
	program->clauses[program->nclauses++] = clause;
}

/* Compile one expression; NULL leaves nothing behind. */
static HgjStep *
compile_root(HgjCompiler *c, Expr *expr, bool may_fail)
{
	int			nconstants = list_length(c->constants);
	HgjStep    *step = compile(c, expr);

	if (step && (may_fail || !step->lazy))
		return step;
	c->constants = list_truncate(c->constants, nconstants);
	return NULL;
}

/* A program of these steps, the clauses of a filter if they are boolean. */
static HgjProgram *
make_program(HgjCompiler *c, List *roots)
{
	HgjProgram *program = palloc0(sizeof(HgjProgram));
	ListCell   *lc;

	program->context = CurrentMemoryContext;
	program->scratch = AllocSetContextCreate(CurrentMemoryContext,
											 "HashGraphJoin constants",
											 ALLOCSET_SMALL_SIZES);
	if (list_length(roots) == 1)
	{
		program->root = linitial(roots);
		program->result.width = program->root->width;
	}
	program->clauses = palloc(sizeof(HgjClause));
	foreach(lc, roots)
		if (((HgjStep *) lfirst(lc))->kind == HGJ_KIND_U1)
			add_clauses(program, lfirst(lc));

	program->nconstants = list_length(c->constants);
	program->constants = palloc(Max(program->nconstants, 1) * sizeof(HgjStep *));
	foreach(lc, c->constants)
		program->constants[foreach_current_index(lc)] = lfirst(lc);
	return program;
}

HgjProgram *
hgj_program_compile(Expr *expr, PlanState *parent, HgjInputLookup lookup,
					void *arg, bool may_fail)
{
	HgjCompiler c = {.parent = parent, .lookup = lookup, .arg = arg};
	HgjStep    *root = compile_root(&c, expr, may_fail);

	return root ? make_program(&c, list_make1(root)) : NULL;
}

List *
hgj_program_compile_quals(List *quals, PlanState *parent,
						  HgjInputLookup lookup, void *arg, bool may_fail,
						  HgjProgram **program)
{
	HgjCompiler c = {.parent = parent, .lookup = lookup, .arg = arg};
	List	   *roots = NIL;
	List	   *rest = NIL;
	ListCell   *lc;

	foreach(lc, quals)
	{
		HgjStep    *root = compile_root(&c, lfirst(lc), may_fail && rest == NIL);

		if (root)
			roots = lappend(roots, root);
		else
			rest = lappend(rest, lfirst(lc));
	}
	*program = roots ? make_program(&c, roots) : NULL;
	return rest;
}
