/*-------------------------------------------------------------------------
 *
 * may_raise.c
 *	  Can the evaluation of a row raise an error, or have an effect?
 *
 * 1. An expression cannot if all its nodes are of forms known here, and its
 *	  functions are leakproof, or are on a list of those that are not marked so
 *	  but accept any value: comparisons of numbers, strings, and dates with
 *	  timestamps, LIKE with a plain pattern, a part of a string, integers divided by a
 *	  constant.  A leakproof
 *	  function has no side effects and raises no error that depends on its
 *	  arguments; that is what the mark is for.  Nor can a subplan that is hashed
 *	  once, if neither its plan nor the comparison can.
 * 2. Nor can a parameter that a nested loop or a correlated subquery has set: it
 *	  is a value.  The first look at the result of an InitPlan runs that; so does
 *	  the one at the columns of UPDATE's (a, b) = (SELECT ...).  The plan says which
 *	  parameters these are, and no other is.
 * 3. The rows of a plan cannot if none of its expressions can, as far down as
 *	  rows are made one by one: what is below a Sort has all run when the first
 *	  row comes out.
 * 4. The same expressions say whether a plan may be run again without being
 *	  noticed, and whether it is noticed for how many rows a clause is evaluated:
 *	  a call of a volatile function may stand in the clause itself, or in a
 *	  subplan that it runs.
 * 5. The planner asks as well, for what it charges (planner/single_rows.c), and has no
 *	  EState yet: a parameter is taken for a value then, and any subplan may raise.
 *
 * To say yes wrongly costs time, to say no wrongly an error that PostgreSQL
 * would not have raised, so whatever is not known can.
 *
 * No memory, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/transam.h"
#include "base/plan_format.h"
#include "catalog/pg_type.h"
#include "columns/groups.h"
#include "expr/demand.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/* Step 1: a function, whatever its arguments.  context: the collation, an Oid */
static bool
function_may_raise(Oid funcid, void *context)
{
	switch (funcid)
	{
		case F_NUMERIC_EQ:
		case F_NUMERIC_NE:
		case F_NUMERIC_LT:
		case F_NUMERIC_LE:
		case F_NUMERIC_GT:
		case F_NUMERIC_GE:
		case F_LENGTH_TEXT:
		case F_OCTET_LENGTH_TEXT:
		case F_OCTET_LENGTH_BYTEA:
		case F_TEXT_BPCHAR:
		case F_DATE_TIMESTAMP:
		case F_NOW:
		case F_DATE_LT_TIMESTAMP:
		case F_DATE_LE_TIMESTAMP:
		case F_DATE_EQ_TIMESTAMP:
		case F_DATE_NE_TIMESTAMP:
		case F_DATE_GE_TIMESTAMP:
		case F_DATE_GT_TIMESTAMP:
		case F_DATE_LT_TIMESTAMPTZ:
		case F_DATE_LE_TIMESTAMPTZ:
		case F_DATE_EQ_TIMESTAMPTZ:
		case F_DATE_NE_TIMESTAMPTZ:
		case F_DATE_GE_TIMESTAMPTZ:
		case F_DATE_GT_TIMESTAMPTZ:
		case F_TIMESTAMP_LT_TIMESTAMPTZ:
		case F_TIMESTAMP_LE_TIMESTAMPTZ:
		case F_TIMESTAMP_EQ_TIMESTAMPTZ:
		case F_TIMESTAMP_NE_TIMESTAMPTZ:
		case F_TIMESTAMP_GE_TIMESTAMPTZ:
		case F_TIMESTAMP_GT_TIMESTAMPTZ:
		case F_TIMESTAMPTZ_LT_TIMESTAMP:
		case F_TIMESTAMPTZ_LE_TIMESTAMP:
		case F_TIMESTAMPTZ_EQ_TIMESTAMP:
		case F_TIMESTAMPTZ_NE_TIMESTAMP:
		case F_TIMESTAMPTZ_GE_TIMESTAMP:
		case F_TIMESTAMPTZ_GT_TIMESTAMP:
		case F_TIMESTAMPTZ_LT_DATE:
		case F_TIMESTAMPTZ_LE_DATE:
		case F_TIMESTAMPTZ_EQ_DATE:
		case F_TIMESTAMPTZ_NE_DATE:
		case F_TIMESTAMPTZ_GE_DATE:
		case F_TIMESTAMPTZ_GT_DATE:
		case F_TIMESTAMP_LT_DATE:
		case F_TIMESTAMP_LE_DATE:
		case F_TIMESTAMP_EQ_DATE:
		case F_TIMESTAMP_NE_DATE:
		case F_TIMESTAMP_GE_DATE:
		case F_TIMESTAMP_GT_DATE:
			return false;
		case F_TEXT_LT:
		case F_TEXT_LE:
		case F_TEXT_GT:
		case F_TEXT_GE:
		case F_BPCHARLT:
		case F_BPCHARLE:
		case F_BPCHARGT:
		case F_BPCHARGE:
			return !OidIsValid(*(Oid *) context);
		default:
			return !get_func_leakproof(funcid);
	}
}

/* Is it the date or the time of the query, without a precision of its own? */
bool
hgj_is_time_of_query(const SQLValueFunction *function)
{
	switch (function->op)
	{
		case SVFOP_CURRENT_DATE:
		case SVFOP_CURRENT_TIME:
		case SVFOP_CURRENT_TIMESTAMP:
		case SVFOP_LOCALTIME:
		case SVFOP_LOCALTIMESTAMP:
			return true;
		default:
			return false;
	}
}

/* The hash function of a key. */
bool
hgj_hash_may_raise(Oid funcid)
{
	return funcid >= FirstNormalObjectId || funcid == F_HASH_RECORD ||
		funcid == F_HASH_RECORD_EXTENDED;
}

/*
 * Step 1: does the node compare or search strings without having one collation?  Functions that are
 * marked as leakproof raise an error then, too, since it comes before they see a string.
 */
static bool
lacks_collation(const Node *node)
{
	const List *args;
	ListCell   *lc;

	if (OidIsValid(exprInputCollation(node)))
		return false;
	switch (nodeTag(node))
	{
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
			args = ((const OpExpr *) node)->args;
			break;
		case T_ScalarArrayOpExpr:
			args = ((const ScalarArrayOpExpr *) node)->args;
			break;
		case T_FuncExpr:
			args = ((const FuncExpr *) node)->args;
			break;
		default:
			return false;
	}
	foreach(lc, args)
		if (type_is_collatable(exprType(lfirst(lc))))
			return true;
	return false;
}

/* Step 1: what the node itself calls, whatever is below it. */
bool
hgj_calls_may_raise(Node *node)
{
	Oid			collation = exprInputCollation(node);

	return check_functions_in_node(node, function_may_raise, &collation) ||
		lacks_collation(node);
}

/* LIKE fails when a pattern ends in the midst of an escape. */
static bool
is_plain_like(const OpExpr *expr)
{
	const Const *pattern;
	text	   *value;

	if (expr->opfuncid != F_TEXTLIKE && expr->opfuncid != F_TEXTNLIKE)
		return false;
	pattern = lsecond(expr->args);
	if (!IsA(pattern, Const) || pattern->consttype != TEXTOID ||
		!OidIsValid(expr->inputcollid) ||
		!get_collation_isdeterministic(expr->inputcollid))
		return false;
	if (pattern->constisnull)
		return true;
	value = DatumGetTextPP(pattern->constvalue);
	return memchr(VARDATA_ANY(value), '\\', VARSIZE_ANY_EXHDR(value)) == NULL;
}

/* A part of a string, unless its length is negative. */
static bool
is_plain_substring(const FuncExpr *expr)
{
	const Const *length;

	if (expr->funcid != F_SUBSTRING_TEXT_INT4_INT4 && expr->funcid != F_SUBSTR_TEXT_INT4_INT4)
		return false;
	length = llast(expr->args);
	return IsA(length, Const) &&
		(length->constisnull || DatumGetInt32(length->constvalue) >= 0);
}

/*
 * A field of a timestamp, a date or an interval, which all of these have: a numeric of few digits,
 * also of infinity.
 */
bool
hgj_is_plain_extract(const FuncExpr *expr)
{
	static const char *const fields[] = {
		"epoch", "year", "month", "day", "quarter", "week", "dow", "doy", "isodow", "isoyear",
		"decade", "century", "millennium"
	};
	static const char *const of_interval[] = {
		"epoch", "year", "month", "day", "hour", "minute", "second"
	};

	if (expr->funcid == F_EXTRACT_TEXT_INTERVAL)
		return hgj_extracts_one_of((const Node *) expr, of_interval, lengthof(of_interval));
	return expr->funcid != F_EXTRACT_TEXT_TIMESTAMPTZ &&
		hgj_extracts_one_of((const Node *) expr, fields, lengthof(fields));
}

/* A constant, which the parser may have widened by a call that nobody has folded yet; or NULL. */
static const Const *
as_integer_constant(const Node *node)
{
	if (IsA(node, FuncExpr))
		switch (((const FuncExpr *) node)->funcid)
		{
			case F_INT4_INT2:
			case F_INT8_INT2:
			case F_INT8_INT4:
				node = linitial(((const FuncExpr *) node)->args);
		}
	return IsA(node, Const) ? (const Const *) node : NULL;
}

/* An integer divided by a constant: by 0 it fails, and the least one by -1. */
static bool
is_plain_division(const OpExpr *expr)
{
	const Const *divisor;
	int64		value;

	switch (expr->opfuncid)
	{
		case F_INT2DIV:
		case F_INT4DIV:
		case F_INT8DIV:
		case F_INT24DIV:
		case F_INT28DIV:
		case F_INT42DIV:
		case F_INT48DIV:
		case F_INT82DIV:
		case F_INT84DIV:
		case F_INT2MOD:
		case F_INT4MOD:
		case F_INT8MOD:
			break;
		default:
			return false;
	}
	divisor = as_integer_constant(lsecond(expr->args));
	if (divisor == NULL)
		return false;
	if (divisor->constisnull)
		return true;
	value = divisor->consttype == INT2OID ? DatumGetInt16(divisor->constvalue) :
		divisor->consttype == INT4OID ? DatumGetInt32(divisor->constvalue) :
		DatumGetInt64(divisor->constvalue);
	return value != 0 && value != -1;
}

static bool sets_param(const Plan *plan, int paramid);

static bool
any_sets_param(const List *plans, int paramid)
{
	ListCell   *lc;

	foreach(lc, plans)
		if (sets_param(lfirst(lc), paramid))
			return true;
	return false;
}

/* Does a subplan of this node, or of one below it, set the parameter? */
static bool
sets_param(const Plan *plan, int paramid)
{
	ListCell   *lc;

	if (plan == NULL)
		return false;
	check_stack_depth();
	foreach(lc, plan->initPlan)
		if (list_member_int(lfirst_node(SubPlan, lc)->setParam, paramid))
			return true;
	foreach(lc, plan->targetlist)
	{
		SubPlan    *subplan = (SubPlan *) lfirst_node(TargetEntry, lc)->expr;

		if (subplan && IsA(subplan, SubPlan) &&
			list_member_int(subplan->setParam, paramid))
			return true;
	}
	switch (nodeTag(plan))
	{
		case T_Append:
			return any_sets_param(((const Append *) plan)->appendplans, paramid);
		case T_MergeAppend:
			return any_sets_param(((const MergeAppend *) plan)->mergeplans, paramid);
		case T_SubqueryScan:
			return sets_param(((const SubqueryScan *) plan)->subplan, paramid);
		case T_CustomScan:
			return any_sets_param(((const CustomScan *) plan)->custom_plans, paramid);
		default:				/* what is below a BitmapAnd has no subplans */
			return sets_param(plan->lefttree, paramid) ||
				sets_param(plan->righttree, paramid);
	}
}

/* Step 2.  Without an EState: no, as step 5 says. */
bool
hgj_param_may_raise(const Param *param, const EState *estate)
{
	const PlannedStmt *stmt;

	if (param->paramkind == PARAM_EXTERN || estate == NULL)
		return false;
	stmt = estate->es_plannedstmt;
	return param->paramkind != PARAM_EXEC || stmt == NULL ||
		sets_param(stmt->planTree, param->paramid) ||
		any_sets_param(stmt->subplans, param->paramid);
}

static bool may_raise_walker(Node *node, void *context);
static bool rows_may_raise_walker(PlanState *ps, void *context);

/* Step 3: the plan is asked for its first row as well. */
static char from_the_start;

/*
 * Step 1: a subplan that is run once, for all rows, into a hash table, when the first
 * of them comes to it.  Others run once a row, which EXPLAIN ANALYZE would show if
 * there were more rows.
 */
static bool
subplan_may_raise(const SubPlan *subplan, EState *estate)
{
	PlanState  *ps;

	if (estate == NULL || !subplan->useHashTable || subplan->parParam != NIL ||
		subplan->subLinkType != ANY_SUBLINK ||
		subplan->plan_id > list_length(estate->es_subplanstates))
		return true;
	ps = list_nth(estate->es_subplanstates, subplan->plan_id - 1);
	return ps == NULL || rows_may_raise_walker(ps, &from_the_start) ||
		may_raise_walker(subplan->testexpr, estate) ||
		may_raise_walker((Node *) subplan->args, estate);
}

/* context: the EState, or NULL (step 5) */
static bool
may_raise_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	check_stack_depth();
	if (hgj_returns_set(node))
		return true;
	switch (nodeTag(node))
	{
		case T_OpExpr:
			if (is_plain_like((OpExpr *) node) || is_plain_division((OpExpr *) node))
				return expression_tree_walker(node, may_raise_walker, context);
			break;
		case T_FuncExpr:
			if (is_plain_substring((FuncExpr *) node) || hgj_is_plain_extract((FuncExpr *) node))
				return expression_tree_walker(node, may_raise_walker, context);
			break;
		case T_SQLValueFunction:
			return !hgj_is_time_of_query((SQLValueFunction *) node);
		case T_Param:
			return hgj_param_may_raise((Param *) node, context);
		case T_ArrayExpr:
			/* IN (...), before its constants are folded; arrays in arrays may be of unequal lengths */
			if (((ArrayExpr *) node)->multidims)
				return true;
			break;
		case T_SubPlan:
			return subplan_may_raise((SubPlan *) node, context);
		case T_List:
		case T_TargetEntry:
		case T_Var:
		case T_Const:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
		case T_BoolExpr:
		case T_RelabelType:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CaseTestExpr:
		case T_CoalesceExpr:
		case T_NullTest:
		case T_BooleanTest:
			break;
		default:
			return true;
	}
	return hgj_calls_may_raise(node) ||
		expression_tree_walker(node, may_raise_walker, context);
}

/* An expression of a plan, or a list of them; of a query that is being planned: NULL. */
bool
hgj_may_raise(Node *node, EState *estate)
{
	return may_raise_walker(node, estate);
}

static bool
calls_volatile(Node *node, EState *estate)
{
	return contain_volatile_functions(node);
}

/* Does an expression of the plan node itself pass the test, or a list of them? */
static bool
any_expression(const PlanState *ps, bool (*test) (Node *, EState *))
{
	const Plan *plan = ps->plan;

#define TEST(type, field) \
	test((Node *) ((const type *) plan)->field, ps->state)

	if (TEST(Plan, qual) || TEST(Plan, targetlist))
		return true;
	switch (nodeTag(plan))
	{
		case T_Result:
			return TEST(Result, resconstantqual);
		case T_SampleScan:
			return TEST(SampleScan, tablesample->args) ||
				TEST(SampleScan, tablesample->repeatable);
		case T_IndexScan:
			return TEST(IndexScan, indexqualorig) ||
				TEST(IndexScan, indexorderbyorig);
		case T_IndexOnlyScan:
			return TEST(IndexOnlyScan, indexqual) ||
				TEST(IndexOnlyScan, indexorderby);
		case T_BitmapIndexScan:
			return TEST(BitmapIndexScan, indexqualorig);
		case T_BitmapHeapScan:
			return TEST(BitmapHeapScan, bitmapqualorig);
		case T_TidScan:
			return TEST(TidScan, tidquals);
		case T_ValuesScan:
			return TEST(ValuesScan, values_lists);
		case T_FunctionScan:
			return TEST(FunctionScan, functions);
		case T_TableFuncScan:
			return TEST(TableFuncScan, tablefunc);
		case T_NestLoop:
			return TEST(Join, joinqual);
		case T_MergeJoin:
			return TEST(Join, joinqual) || TEST(MergeJoin, mergeclauses);
		case T_HashJoin:
			return TEST(Join, joinqual) || TEST(HashJoin, hashclauses);
		case T_Memoize:
			return TEST(Memoize, param_exprs);
		case T_Limit:
			return TEST(Limit, limitOffset) || TEST(Limit, limitCount);
		case T_CustomScan:
			return TEST(CustomScan, custom_exprs);
		default:
			return false;
	}
#undef TEST
}

/* Step 3; context: &from_the_start, or NULL. */
static bool
rows_may_raise_walker(PlanState *ps, void *context)
{
	const Plan *plan = ps->plan;

	switch (nodeTag(plan))
	{
		case T_Sort:
			if (context == NULL)
				return false;
			break;
		case T_Result:
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
		case T_BitmapIndexScan:
		case T_BitmapAnd:
		case T_BitmapOr:
		case T_TidScan:
		case T_SubqueryScan:
		case T_NamedTuplestoreScan:
		case T_WorkTableScan:
		case T_Append:
		case T_MergeAppend:
		case T_Material:
		case T_Memoize:
		case T_Hash:
		case T_Unique:
		case T_Limit:
		case T_Gather:
		case T_GatherMerge:
		case T_ValuesScan:
		case T_NestLoop:
		case T_MergeJoin:
		case T_HashJoin:
			break;
		case T_CteScan:
			if (rows_may_raise_walker(((CteScanState *) ps)->cteplanstate, context))
				return true;
			break;
		case T_CustomScan:
			if (!hgj_is_join_plan(plan))
				return true;
			break;
		default:
			return true;
	}
	return any_expression(ps, hgj_may_raise) ||
		planstate_tree_walker(ps, rows_may_raise_walker, context);
}

/* Can asking the node for one more row? */
bool
hgj_rows_may_raise(PlanState *ps)
{
	return rows_may_raise_walker(ps, NULL);
}

/* Step 4; context: &from_the_start, or NULL. */
static bool
calls_volatile_walker(PlanState *ps, void *context)
{
	if (context == &from_the_start && IsA(ps, CteScanState) &&
		calls_volatile_walker(((CteScanState *) ps)->cteplanstate, context))
		return true;

	/* what functions in FROM have returned is kept */
	if (context == NULL && (IsA(ps, FunctionScanState) || IsA(ps, TableFuncScanState)))
		return calls_volatile((Node *) ps->plan->qual, ps->state) ||
			calls_volatile((Node *) ps->plan->targetlist, ps->state) ||
			planstate_tree_walker(ps, calls_volatile_walker, context);
	return any_expression(ps, calls_volatile) ||
		planstate_tree_walker(ps, calls_volatile_walker, context);
}

/* Step 4: would reading the node again call a volatile function again? */
bool
hgj_calls_volatile(PlanState *ps)
{
	return calls_volatile_walker(ps, NULL);
}

/* Step 4: the same of the node itself and its subplans, whatever its children do. */
bool
hgj_node_calls_volatile(PlanState *ps)
{
	List	   *subplans = list_concat_copy(ps->initPlan, ps->subPlan);
	bool		found = any_expression(ps, calls_volatile);
	ListCell   *lc;

	foreach(lc, subplans)
		found = found || hgj_calls_volatile(lfirst_node(SubPlanState, lc)->planstate);
	list_free(subplans);
	return found;
}

/* Step 4: does this subplan, numbered from 1, or is nothing known of it yet? */
static bool
subplan_has_effects(EState *estate, int number)
{
	PlanState  *ps = number > list_length(estate->es_subplanstates) ? NULL :
		list_nth(estate->es_subplanstates, number - 1);

	return ps == NULL || calls_volatile_walker(ps, &from_the_start);
}

/* context: the EState */
static bool
has_effects_walker(Node *node, void *context)
{
	EState	   *estate = context;

	if (node == NULL)
		return false;
	check_stack_depth();
	if (IsA(node, SubPlan) &&
		subplan_has_effects(estate, ((SubPlan *) node)->plan_id))
		return true;

	/* which of the subplans returns it is written at one node of the plan or another */
	if (IsA(node, Param) && hgj_param_may_raise((Param *) node, estate))
	{
		int			n = estate->es_plannedstmt ?
			list_length(estate->es_plannedstmt->subplans) : 0;

		for (int i = 1; i <= n; i++)
			if (subplan_has_effects(estate, i))
				return true;
		return n == 0;
	}
	return expression_tree_walker(node, has_effects_walker, context);
}

/*
 * Step 4: would somebody notice if the expression, or one of a list of them, were
 * evaluated for other rows than PostgreSQL evaluates it for?
 */
bool
hgj_has_effects(Node *node, EState *estate)
{
	return contain_volatile_functions(node) || has_effects_walker(node, estate);
}
