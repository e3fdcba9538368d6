/*-------------------------------------------------------------------------
 *
 * expressions.c
 *	  Expressions and queries that a rewritten query has and the written one has not; clauses of
 *	  conditions, and what an expression costs.
 *
 * Memory: the current context; what is given becomes part of the expression, but for an operand
 * that is tested for NULL, which is copied, as it stands elsewhere, too.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "rewrite/hidden.h"

/* operand IS NULL, or IS NOT NULL */
NullTest *
hgj_null_test(const Expr *operand, NullTestType type)
{
	NullTest   *test = makeNode(NullTest);

	test->arg = copyObject((Expr *) operand);
	test->nulltesttype = type;
	test->location = -1;
	return test;
}

/* condition IS TRUE, IS NOT FALSE and so on */
Expr *
hgj_test_truth(Expr *condition, BoolTestType type)
{
	BooleanTest *test = makeNode(BooleanTest);

	test->arg = condition;
	test->booltesttype = type;
	test->location = -1;
	return (Expr *) test;
}

/* NULL, as a value of the expression's type */
Expr *
hgj_null_like(Node *expression)
{
	return (Expr *) makeNullConst(exprType(expression), exprTypmod(expression),
								  exprCollation(expression));
}

/* WHEN condition THEN result */
CaseWhen *
hgj_when(Expr *condition, Expr *result)
{
	CaseWhen   *when = makeNode(CaseWhen);

	when->expr = condition;
	when->result = result;
	when->location = -1;
	return when;
}

/* CASE whens ELSE otherwise END, of the latter's type */
Expr *
hgj_case(List *whens, Expr *otherwise)
{
	CaseExpr   *expr = makeNode(CaseExpr);

	expr->casetype = exprType((Node *) otherwise);
	expr->casecollid = exprCollation((Node *) otherwise);
	expr->args = whens;
	expr->defresult = otherwise;
	expr->location = -1;
	return (Expr *) expr;
}

/* COALESCE(value, otherwise), of the former's type */
Expr *
hgj_coalesce(Expr *value, Expr *otherwise)
{
	CoalesceExpr *expr = makeNode(CoalesceExpr);

	expr->coalescetype = exprType((Node *) value);
	expr->coalescecollid = exprCollation((Node *) value);
	expr->args = list_make2(value, otherwise);
	expr->location = -1;
	return (Expr *) expr;
}

/* 0, as what count() returns */
Expr *
hgj_zero(void)
{
	return (Expr *) makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(0), false, true);
}

/* A subquery in an expression; test: of ANY, or NULL */
SubLink *
hgj_make_sublink(SubLinkType type, Expr *test, Query *query)
{
	SubLink    *result = makeNode(SubLink);

	result->subLinkType = type;
	result->testexpr = (Node *) test;
	result->subselect = (Node *) query;
	result->location = -1;
	return result;
}

/* A reference to an entry of the range table, as FROM has it. */
RangeTblRef *
hgj_refer_to(int relation)
{
	RangeTblRef *result = makeNode(RangeTblRef);

	result->rtindex = relation;
	return result;
}

/* Name the columns of an entry after what its subquery returns. */
void
hgj_name_columns(RangeTblEntry *rte, const List *targetlist)
{
	ListCell   *lc;

	foreach(lc, targetlist)
	{
		const TargetEntry *tle = lfirst_node(TargetEntry, lc);

		rte->eref->colnames = lappend(rte->eref->colnames,
									  makeString(pstrdup(tle->resname ? tle->resname : "?column?")));
	}
}

/* An entry of the range table for a subquery in FROM; name: the name that EXPLAIN prints */
RangeTblEntry *
hgj_subquery_entry(Query *subquery, const char *name)
{
	RangeTblEntry *rte = makeNode(RangeTblEntry);

	rte->rtekind = RTE_SUBQUERY;
	rte->subquery = subquery;
	rte->eref = makeAlias(name, NIL);
	rte->inFromCl = true;
	hgj_name_columns(rte, subquery->targetList);
	return rte;
}

/* The query returns nothing, and neither sorts, makes distinct nor counts off its rows. */
void
hgj_forget_result(Query *query)
{
	query->hasWindowFuncs = query->hasTargetSRFs = query->hasDistinctOn = false;
	query->targetList = query->distinctClause = query->sortClause = query->windowClause = NIL;
	query->limitCount = query->limitOffset = NULL;
	query->limitOption = LIMIT_OPTION_COUNT;
}

/* The query does not group; its aggregates are the caller's to replace. */
void
hgj_forget_grouping(Query *query)
{
	query->groupClause = NIL;
	query->groupDistinct = query->hasAggs = false;
	query->havingQual = NULL;
	hgj_forget_groups(query);
}

/* SELECT FROM what the entry names, which is the first and only one; it returns nothing yet. */
Query *
hgj_select_from(RangeTblEntry *rte)
{
	Query	   *result = makeNode(Query);

	result->commandType = CMD_SELECT;
	result->canSetTag = true;
	result->rtable = list_make1(rte);
	result->jointree = makeFromExpr(list_make1(hgj_refer_to(1)), NULL);
	return result;
}

/* The clauses of a condition. */
void
hgj_split_clauses(Node *condition, List **clauses)
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
		hgj_split_clauses(lfirst(lc), clauses);
}

/* A condition of clauses; NULL: there are none. */
Node *
hgj_join_clauses(List *clauses)
{
	return clauses == NIL ? NULL : (Node *) make_ands_explicit(clauses);
}

/* Put NULL in the place of each subquery; context is not used. */
static Node *
without_subqueries(Node *node, void *context)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, SubLink))
		return (Node *) hgj_null_like(node);
	return expression_tree_mutator(node, without_subqueries, context);
}

/* What PostgreSQL charges for evaluating an expression once, without the subqueries in it. */
Cost
hgj_cost_of_row(Node *expression)
{
	QualCost	cost;

	/* functions that are not named yet are looked up in the expression itself, which is a copy */
	cost_qual_eval_node(&cost, without_subqueries(expression, NULL), NULL);
	return cost.per_tuple;
}
