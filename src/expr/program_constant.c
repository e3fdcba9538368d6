/*-------------------------------------------------------------------------
 *
 * program_constant.c
 *	  What has no column in it: constants, parameters, and expressions of them.
 *
 * 1. Whatever is the same for all rows of an execution is one constant for the
 *	  program, however large the expression: PostgreSQL's own code evaluates it.
 *	  Only forms that are known not to change from row to row count.
 * 2. It is evaluated when the first row comes to where it stands, as in
 *	  PostgreSQL: an error that no row would have met is not raised.  All but
 *	  constants proper, the plain parameters of a prepared statement, and those
 *	  that a nested loop sets are lazy in that sense, the result of a subquery as
 *	  well.
 * 3. hgj_program_start() makes everything but constants proper be evaluated
 *	  again.
 *
 * A value that is not passed by value lives in the program's scratch context.
 * No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "expr/demand.h"
#include "expr/program_private.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/datum.h"
#include "utils/memutils.h"

/* Does a parameter of an UPDATE's (a, b) = (SELECT ...) change by row? */
static bool
is_multiexpr_param(PlanState *parent, const Param *param)
{
	ListCell   *lc;

	if (parent->plan == NULL)
		return true;
	foreach(lc, parent->plan->targetlist)
	{
		SubPlan    *subplan = (SubPlan *) lfirst_node(TargetEntry, lc)->expr;

		if (subplan && IsA(subplan, SubPlan) &&
			subplan->subLinkType == MULTIEXPR_SUBLINK &&
			list_member_int(subplan->setParam, param->paramid))
			return true;
	}
	return false;
}

/*
 * Is there anything in the expression that is a column, that we are not sure
 * about, or that has a context of its own?  Only these forms are known to be
 * the same for all rows.
 */
static bool
has_variable(Node *node, void *context)
{
	PlanState  *parent = context;

	if (node == NULL)
		return false;
	if (hgj_returns_set(node))
		return true;
	switch (nodeTag(node))
	{
		case T_Param:
			{
				Param	   *param = (Param *) node;

				return !(param->paramkind == PARAM_EXTERN ||
						 (param->paramkind == PARAM_EXEC &&
						  !is_multiexpr_param(parent, param)));
			}
		case T_ArrayCoerceExpr:	/* the rest of it is a cast */
			return has_variable((Node *) ((ArrayCoerceExpr *) node)->arg,
								context);
		case T_List:
		case T_Const:
		case T_FuncExpr:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
		case T_BoolExpr:
		case T_RelabelType:
		case T_CoerceViaIO:
		case T_ArrayExpr:
		case T_CoalesceExpr:
		case T_MinMaxExpr:
		case T_SQLValueFunction:
		case T_NullTest:
		case T_BooleanTest:
			break;
		default:
			return true;
	}
	return expression_tree_walker(node, has_variable, context);
}

bool
hgj_is_constant(PlanState *parent, Expr *expr)
{
	return !has_variable((Node *) expr, parent) &&
		!contain_volatile_functions((Node *) expr);
}

/* Can the evaluation raise an error, or run something that can? */
static bool
is_lazy_constant(PlanState *parent, Expr *expr)
{
	ParamListInfo params;

	expr = hgj_strip_relabel(expr);
	if (IsA(expr, Const))
		return false;
	if (!IsA(expr, Param))
		return true;
	if (((Param *) expr)->paramkind != PARAM_EXTERN)
		return hgj_param_may_raise((Param *) expr, parent->state);
	params = parent->state->es_param_list_info;
	return params == NULL || params->paramFetch != NULL ||
		params->paramCompile != NULL;
}

/* A value that no column has part in, or NULL. */
HgjConstant *
hgj_constant_make(PlanState *parent, Expr *expr, bool *lazy)
{
	HgjConstant *constant;

	if (!hgj_is_constant(parent, expr))
		return NULL;
	*lazy = is_lazy_constant(parent, expr);
	constant = palloc0(sizeof(HgjConstant));
	expr = hgj_strip_relabel(expr);
	if (IsA(expr, Const))
	{
		constant->value = ((Const *) expr)->constvalue;
		constant->isnull = ((Const *) expr)->constisnull;
		constant->ready = true;
	}
	else
		constant->state = ExecInitExpr(expr, parent);
	return constant;
}

/* Bring the constant's value to the kind that its step has. */
void
hgj_constant_cast(HgjConstant *constant)
{
	uint64		from = 0;
	uint64		to = 0;

	if (constant->cast == NULL || constant->isnull)
		return;
	hgj_store(&from, constant->cast_from, constant->value);
	constant->cast(&to, &from, NULL, NULL, 1);
	constant->value = hgj_load(&to, constant->cast_to);
}

/* Copy a value that is not passed by value to where it stays. */
static void
keep_value(HgjProgram *program, HgjConstant *constant)
{
	MemoryContext old;

	if (constant->kept)
		pfree(DatumGetPointer(constant->last));
	constant->kept = !constant->isnull;
	if (constant->isnull)
		return;
	old = MemoryContextSwitchTo(program->context);
	constant->value = datumCopy(constant->value, false, constant->typlen);
	constant->last = constant->value;
	MemoryContextSwitchTo(old);
}

/*
 * Evaluate, unless that has been done in this execution.  A value that is not
 * passed by value stays until the next constant is evaluated.
 */
void
hgj_constant_fetch(HgjProgram *program, HgjConstant *constant)
{
	MemoryContext old;

	if (constant->ready)
		return;
	MemoryContextReset(program->scratch);
	old = MemoryContextSwitchTo(program->scratch);
	constant->value = ExecEvalExpr(constant->state, program->econtext,
								   &constant->isnull);
	MemoryContextSwitchTo(old);
	if (constant->keep)
		keep_value(program, constant);
	hgj_constant_cast(constant);
	constant->ready = true;
}

/* Is there a constant that can raise an error, and has yet to be evaluated? */
bool
hgj_constants_raise(const HgjProgram *program)
{
	for (int i = 0; i < program->nconstants; i++)
		if (program->constants[i]->lazy &&
			program->constants[i]->constant->state != NULL &&
			!program->constants[i]->constant->ready)
			return true;
	return false;
}

/*
 * Fetch the constant of a step of bytes.  True: it is NULL, and so is the
 * step's value for all n rows.
 */
bool
hgj_constant_nulls(HgjProgram *program, HgjStep *step, uint32 n)
{
	hgj_constant_fetch(program, step->constant);
	if (!step->constant->isnull)
		return false;
	memset(step->value_buffer, 0, n);
	memset(step->null_buffer, 1, n);
	step->nulls = step->null_buffer;
	return true;
}
