/*-------------------------------------------------------------------------
 *
 * correlation.c
 *	  Clauses by which a subquery depends on the query around it.
 *
 * An equality has an operand inside and one around.  Rows can be joined by it to groups if its
 * operator raises no error and stands in a hash operator family with the equality that groups the
 * inner operand's type: then all rows of a group are equal to the outer operand if one is, and no
 * two groups are.  Both have one collation.
 *
 * Memory: lists in the current context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "expr/demand.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_oper.h"
#include "rewrite/hidden.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"

/*
 * Add the conditions of WHERE and of inner joins that hold for each row of what is joined, and to
 * *relations, if relations is not NULL, those that no outer join fills in NULLs for.  False: there
 * are other joins than inner ones.
 */
bool
hgj_collect_conditions(Node *node, List **clauses, Bitmapset **relations)
{
	bool		inner = true;
	ListCell   *lc;

	check_stack_depth();
	if (IsA(node, RangeTblRef))
	{
		if (relations)
			*relations = bms_add_member(*relations, ((RangeTblRef *) node)->rtindex);
		return true;
	}
	if (IsA(node, JoinExpr))
	{
		JoinExpr   *join = (JoinExpr *) node;

		inner = join->jointype == JOIN_INNER;
		if (inner)
			hgj_split_clauses(join->quals, clauses);
		if (inner || join->jointype == JOIN_LEFT)
			inner &= hgj_collect_conditions(join->larg, clauses, relations);
		if (join->jointype == JOIN_INNER || join->jointype == JOIN_RIGHT)
			inner &= hgj_collect_conditions(join->rarg, clauses, relations);
		return inner;
	}
	hgj_split_clauses(castNode(FromExpr, node)->quals, clauses);
	foreach(lc, ((FromExpr *) node)->fromlist)
		inner &= hgj_collect_conditions(lfirst(lc), clauses, relations);
	return inner;
}

/* Have the query's WHERE demand these, too. */
void
hgj_add_clauses(Query *query, List *clauses)
{
	List	   *all = NIL;

	hgj_split_clauses(query->jointree->quals, &all);
	query->jointree->quals = hgj_join_clauses(list_concat(all, clauses));
}

/* What stands one level above, where the subquery stands. */
Expr *
hgj_at_row(const Expr *operand)
{
	Node	   *result = copyObject((Node *) operand);

	IncrementVarSublevelsUp(result, -1, 1);
	return (Expr *) result;
}

/* Is each operand of one level only, one inside and one around? */
bool
hgj_split_operands(const OpExpr *clause, Expr **inner, Expr **outer)
{
	Expr	   *left = linitial(clause->args);
	Expr	   *right = lsecond(clause->args);
	bool		turned = hgj_refers_to_level((Node *) left, 1);

	*inner = turned ? right : left;
	*outer = turned ? left : right;
	return !hgj_refers_to_level((Node *) *inner, 1) && hgj_refers_to_level((Node *) *inner, 0) &&
		hgj_refers_to_level((Node *) *outer, 1) && !hgj_refers_to_level((Node *) *outer, 0);
}

/* The clause of GROUP BY or DISTINCT for the inner operand, which the target list has by this reference. */
SortGroupClause *
hgj_key_of(const HgjCorrelation *correlation, Index reference)
{
	SortGroupClause *key = makeNode(SortGroupClause);

	key->tleSortGroupRef = reference;
	key->eqop = correlation->group_operator;
	key->sortop = correlation->sort_operator;
	key->hashable = correlation->hashable;
	return key;
}

/* Fill *correlation; false: the clause is no such equality. */
bool
hgj_take_correlation(Node *node, HgjCorrelation *correlation)
{
	OpExpr	   *clause = (OpExpr *) node;
	Oid			left;
	Oid			right;
	Oid			of_inner;
	Oid			type;

	if (!IsA(node, OpExpr) || list_length(clause->args) != 2 ||
		!hgj_split_operands(clause, &correlation->inner, &correlation->outer))
		return false;
	if (!op_hashjoinable(clause->opno, exprType(linitial(clause->args))) ||
		!op_strict(clause->opno) ||
		!get_compatible_hash_operators(clause->opno, &left, &right))
		return false;
	if (hgj_calls_may_raise(node) ||
		(type_is_collatable(exprType((Node *) correlation->inner)) &&
		 !OidIsValid(clause->inputcollid)))
		return false;
	correlation->clause = clause;
	of_inner = correlation->inner == linitial(clause->args) ? left : right;
	type = exprType((Node *) correlation->inner);
	get_sort_group_operators(type, false, false, false, &correlation->sort_operator,
							 &correlation->group_operator, NULL, &correlation->hashable);
	return correlation->hashable && correlation->group_operator == of_inner &&
		clause->inputcollid == exprCollation((Node *) correlation->inner);
}
