/*-------------------------------------------------------------------------
 *
 * program_by_value.c
 *	  Expressions over one column of strings that are evaluated once for each
 *	  value of it: which ones.
 *
 * 1. LIKE, regular expressions, substring(), CASE, comparisons under whatever
 *	  collation: where nothing but a single column of strings and what is the same
 *	  for all rows stands in an expression, equal bytes give equal results.  So the
 *	  largest such expression is one step, which looks results up by the value
 *	  (program_values.c).
 * 2. Its functions are immutable, or stable ones of PostgreSQL's own, which is good
 *	  for one execution.  Of these, some look at how a value is stored, which equal
 *	  bytes say nothing about; a stable function of somebody else may call them.
 * 3. What is as fast without, IS NULL and comparisons with few constants, stays as
 *	  it is.  Other expressions that have steps keep these, for columns that turn
 *	  out to have too many values.  Those that have none, which would have to be
 *	  evaluated tuple by tuple, are evaluated for the column alone then.
 *
 * Everything is palloc'd in the current context, but for an expression context,
 * which is the query's.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/transam.h"
#include "base/guc.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "expr/demand.h"
#include "expr/program_private.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/* What an expression consists of. */
typedef struct Contents
{
	HgjCompiler *c;
	Var		   *var;			/* the column, or NULL: none yet */
	bool		changes;		/* it is another expression in the next execution */
} Contents;

/* Step 2.  context: the Contents */
static bool
is_unsuitable_function(Oid funcid, void *context)
{
	Contents   *contents = context;

	switch (funcid)
	{
		case F_PG_COLUMN_SIZE:
		case F_PG_COLUMN_COMPRESSION:
#ifdef F_PG_COLUMN_TOAST_CHUNK_ID
		case F_PG_COLUMN_TOAST_CHUNK_ID:
#endif
			return true;
		default:
			break;
	}
	switch (func_volatile(funcid))
	{
		case PROVOLATILE_IMMUTABLE:
			return false;
		case PROVOLATILE_STABLE:
			contents->changes = true;
			return funcid >= FirstNormalObjectId;
		default:
			return true;
	}
}

/* One more column: are there others? */
static bool
is_other_column(Contents *contents, Var *var)
{
	if (var->varlevelsup != 0 || var->varattno <= 0)
		return true;
	if (contents->var == NULL)
		contents->var = var;
	return var->varno != contents->var->varno ||
		var->varattno != contents->var->varattno;
}

/* Is there anything in the expression that step 1 does not speak of? */
static bool
is_unsuitable(Node *node, void *context)
{
	Contents   *contents = context;

	if (node == NULL)
		return false;
	check_stack_depth();
	if (hgj_returns_set(node))
		return true;
	switch (nodeTag(node))
	{
		case T_Var:
			return is_other_column(contents, (Var *) node);
		case T_Param:
			contents->changes = true;
			return !hgj_is_constant(contents->c->parent, (Expr *) node);
		case T_NullTest:
			if (((NullTest *) node)->argisrow)
				return true;
			break;
		case T_CaseTestExpr:	/* it might be that of a CASE around us */
			return contents->c->case_arg != NULL;
		case T_SubscriptingRef:
			if (((SubscriptingRef *) node)->refassgnexpr)
				return true;
			break;
		case T_SQLValueFunction:
			contents->changes = true;
			break;
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
		case T_ArrayCoerceExpr:
		case T_ArrayExpr:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CoalesceExpr:
		case T_MinMaxExpr:
		case T_BooleanTest:
			break;
		default:
			return true;
	}
	if (check_functions_in_node(node, is_unsuitable_function, contents))
		return true;
	return expression_tree_walker(node, is_unsuitable, contents);
}

/* Strings, whatever they are called, that may be looked up by their bytes. */
static bool
is_string(Oid type, int16 *attlen)
{
	Oid			base = getBaseType(type);
	char		category;
	bool		preferred;
	bool		attbyval;

	get_typlenbyval(base, attlen, &attbyval);
	if (attbyval || (*attlen != -1 && base != NAMEOID))
		return false;
	get_type_category_preferred(base, &category, &preferred);
	return base == BYTEAOID || category == TYPCATEGORY_STRING;
}

/* The column becomes the only one of a tuple. */
static Node *
replace_column(Node *node, void *context)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Var))
	{
		const Var  *var = (const Var *) node;

		return (Node *) makeVar(1, 1, var->vartype, var->vartypmod, var->varcollid, 0);
	}
	return expression_tree_mutator(node, replace_column, context);
}

/* Step 3: is what has been compiled as fast as a look-up? */
static bool
is_cheap(const HgjStep *step)
{
	switch (step->op)
	{
		case HGJ_STEP_INPUT:
			return true;
		case HGJ_STEP_TEXT:
			return !hgj_text_is_hashed(step);
		case HGJ_STEP_IS_NULL:
		case HGJ_STEP_IS_NOT_NULL:
		case HGJ_STEP_NOT:
		case HGJ_STEP_BOOL_TEST:
			return is_cheap(step->args[0]);
		case HGJ_STEP_AND:
		case HGJ_STEP_OR:
			return step->nargs == 2 && is_cheap(step->args[0]) &&
				is_cheap(step->args[1]);
		default:
			return false;
	}
}

/*
 * The steps of the expression as they would be otherwise, if none of their
 * constants is one to be evaluated late: that would never come to pass, as long as
 * the steps are not run.
 */
static HgjStep *
compile_alternative(HgjCompiler *c, Expr *expr)
{
	int			nconstants = list_length(c->constants);
	bool		share = c->share;
	HgjStep    *step;
	bool		late = false;

	c->share = false;
	c->alternative = true;
	step = hgj_step_compile(c, expr);
	c->alternative = false;
	c->share = share;
	if (step && is_cheap(step))
		return step;
	for (int i = nconstants; i < list_length(c->constants); i++)
		late |= ((HgjStep *) list_nth(c->constants, i))->lazy;
	if (step && !late)
		return step;
	c->constants = list_truncate(c->constants, nconstants);
	return NULL;
}

/*
 * Does the expression give values that can be kept?  Numerics are made into decimals,
 * where that can be done.
 */
static bool
has_result(Expr *expr, int16 *result_len)
{
	Oid			type = exprType((Node *) expr);
	bool		attbyval;

	get_typlenbyval(type, result_len, &attbyval);
	if (attbyval)
		return hgj_kind_of_type(type) != HGJ_KIND_OTHER;
	return getBaseType(type) != NUMERICOID && get_typtype(type) != TYPTYPE_PSEUDO;
}

/* How the expression is evaluated for a value. */
static HgjByValue *
make_by_value(HgjCompiler *c, Expr *expr, const Contents *contents, int16 attlen)
{
	HgjByValue *by = palloc0(sizeof(HgjByValue));
	EState	   *estate = c->parent->state;
	const Var  *var = contents->var;
	TupleDesc	desc = CreateTemplateTupleDesc(1);

	TupleDescInitEntry(desc, 1, NULL, var->vartype, var->vartypmod, 0);
	TupleDescInitEntryCollation(desc, 1, var->varcollid);
	by->slot = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	by->econtext = CreateExprContext(estate);
	by->econtext->ecxt_scantuple = by->slot;
	by->state = ExecInitExprWithParams((Expr *) replace_column((Node *) expr, NULL),
									   estate->es_param_list_info);
	by->attlen = attlen;
	by->changes = contents->changes;
	by->may_raise = hgj_may_raise((Node *) expr, estate);
	return by;
}

/* One step for an expression that is evaluated once a value, or NULL: it is not. */
HgjStep *
hgj_by_value_compile(HgjCompiler *c, Expr *expr)
{
	Contents	contents = {.c = c};
	HgjKind		kind = hgj_kind_of_type(exprType((Node *) expr));
	HgjStep    *alternative;
	HgjStep    *input;
	HgjStep    *step;
	int16		attlen;
	int16		result_len;

	if (!hgj_dictionaries || c->alternative || IsA(expr, Var) ||
		!has_result(expr, &result_len) || is_unsuitable((Node *) expr, &contents) ||
		contents.var == NULL || !is_string(contents.var->vartype, &attlen))
		return NULL;
	alternative = compile_alternative(c, expr);
	if (alternative && (is_cheap(alternative) || alternative->kind != kind))
		return alternative;
	input = hgj_step_compile(c, (Expr *) contents.var);
	if (input == NULL)
		return NULL;

	step = hgj_step_make(HGJ_STEP_BY_VALUE, kind, 2);
	step->by_value = make_by_value(c, expr, &contents, attlen);
	step->by_value->by_reference = kind == HGJ_KIND_OTHER;
	step->by_value->result_len = result_len;
	hgj_step_add_arg(step, input);
	if (alternative)
		hgj_step_add_arg(step, alternative);
	else
		step->lazy = step->by_value->may_raise;
	c->by_values = lappend(c->by_values, step);
	return step;
}
