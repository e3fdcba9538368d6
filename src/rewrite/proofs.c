/*-------------------------------------------------------------------------
 *
 * proofs.c
 *	  What has to be known of a subquery before it becomes a join: which levels it refers
 *	  to, and that its rows raise no error.
 *
 * As a subquery it is evaluated for the rows around it, and of the table inside only rows
 * with their keys are looked at.  As a join all its rows are.  So no row may raise an
 * error, whatever its values are:
 *
 * 1. Clauses, keys and arguments are to be such as expr/may_raise.c knows, after constants
 *	  have been folded.
 * 2. Numerics may also be added, subtracted and multiplied, where a declared precision
 *	  bounds each of them, and there are few: a numeric has 131,072 digits before the point,
 *	  and the operands here HGJ_MOST_DIGITS each, so that no result is too large.
 * 3. What is read are tables, joins of tables, subqueries without anything but clauses, and
 *	  groups that have been made of a subquery inside.
 *
 * No memory but what is looked at, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "expr/demand.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "rewrite/hidden.h"
#include "utils/fmgroids.h"

/* Step 2: the most operands of an expression, which have at most 10^4 digits each. */
#define MOST_OPERANDS		8
#define MOST_BYTES			4096

/* Which references are looked for. */
typedef struct HgjReferences
{
	int			level;			/* number of levels above the one at hand */
	bool		and_above;		/* references further up count, too */
} HgjReferences;

static bool
counts(const HgjReferences *wanted, int level)
{
	return level == wanted->level || (wanted->and_above && level > wanted->level);
}

static bool
find_reference(Node *node, void *context)
{
	HgjReferences *wanted = context;

	if (node == NULL)
		return false;
	check_stack_depth();
	if (IsA(node, Var))
		return counts(wanted, ((Var *) node)->varlevelsup);
	if (IsA(node, Aggref) && counts(wanted, ((Aggref *) node)->agglevelsup))
		return true;
	if (IsA(node, GroupingFunc) && counts(wanted, ((GroupingFunc *) node)->agglevelsup))
		return true;
	if (IsA(node, Query))
	{
		bool		found;

		wanted->level++;
		found = query_tree_walker((Query *) node, find_reference, wanted, 0);
		wanted->level--;
		return found;
	}
	return expression_tree_walker(node, find_reference, wanted);
}

static bool
has_reference(Node *node, HgjReferences wanted)
{
	/* a query is its own level: its expressions are what is looked at */
	if (node && IsA(node, Query))
		return query_tree_walker((Query *) node, find_reference, &wanted, 0);
	return find_reference(node, &wanted);
}

/* Does the expression, or the query, refer to this level above it? */
bool
hgj_refers_to_level(Node *node, int level)
{
	return has_reference(node, (HgjReferences) {level, false});
}

/* To one that is further up than this one? */
bool
hgj_refers_above(Node *node, int level)
{
	return has_reference(node, (HgjReferences) {level + 1, true});
}

static bool is_small(const Node *node, int *operands);

/* Step 2: an operand with a declared precision, an integer, or a constant that is no giant. */
static bool
is_bounded(const Node *node)
{
	if (IsA(node, Const))
		return ((const Const *) node)->constisnull ||
			VARSIZE_ANY(DatumGetPointer(((const Const *) node)->constvalue)) <= MOST_BYTES;
	if (IsA(node, FuncExpr))
		switch (((const FuncExpr *) node)->funcid)
		{
			case F_NUMERIC_INT2:
			case F_NUMERIC_INT4:
			case F_NUMERIC_INT8:
				return !hgj_row_may_raise(linitial(((const FuncExpr *) node)->args));
		}
	return IsA(node, Var) && exprTypmod(node) >= 0;
}

static bool
are_small(const List *nodes, int *operands)
{
	ListCell   *lc;

	foreach(lc, nodes)
		if (!is_small(lfirst(lc), operands))
			return false;
	return true;
}

static bool
is_small_case(const CaseExpr *expr, int *operands)
{
	ListCell   *lc;

	foreach(lc, expr->args)
	{
		const CaseWhen *when = lfirst_node(CaseWhen, lc);

		if (hgj_row_may_raise((Node *) when->expr) ||
			!is_small((const Node *) when->result, operands))
			return false;
	}
	return !hgj_row_may_raise((Node *) expr->arg) &&
		(expr->defresult == NULL || is_small((const Node *) expr->defresult, operands));
}

/* Step 2: is it such an operand, one of several, or arithmetic with them?  Counts them. */
static bool
is_small(const Node *node, int *operands)
{
	OpExpr	   *expr = (OpExpr *) node;

	check_stack_depth();
	if (exprType(node) != NUMERICOID)
		return false;
	if (is_bounded(node))
		return ++(*operands) <= MOST_OPERANDS;
	if (IsA(node, CaseExpr))
		return is_small_case((const CaseExpr *) node, operands);
	if (IsA(node, CoalesceExpr))
		return are_small(((const CoalesceExpr *) node)->args, operands);
	if (!IsA(node, OpExpr))
		return false;
	set_opfuncid(expr);
	switch (expr->opfuncid)
	{
		case F_NUMERIC_ADD:
		case F_NUMERIC_SUB:
		case F_NUMERIC_MUL:
		case F_NUMERIC_UMINUS:
		case F_NUMERIC_UPLUS:
			return are_small(expr->args, operands);
		default:
			return false;
	}
}

/* Step 2: is it a numeric whose sum, over any number of rows, is not too large for one? */
bool
hgj_is_small_numeric(Node *expression)
{
	int			operands = 0;

	return is_small(eval_const_expressions(NULL, copyObject(expression)), &operands);
}

/* Put a value in the place of what raises no error by step 2. */
static Node *
without_small_numerics(Node *node, void *context)
{
	int			operands = 0;

	if (node == NULL)
		return NULL;
	if ((IsA(node, OpExpr) || IsA(node, FuncExpr) || IsA(node, CaseExpr) ||
		 IsA(node, CoalesceExpr)) && is_small(node, &operands))
		return (Node *) makeNullConst(NUMERICOID, -1, InvalidOid);
	return expression_tree_mutator(node, without_small_numerics, context);
}

/* Steps 1 and 2: can the expression, or one of a list of them, raise an error? */
bool
hgj_row_may_raise(Node *expression)
{
	Node	   *folded = eval_const_expressions(NULL, copyObject(expression));

	return hgj_may_raise(without_small_numerics(folded, NULL), NULL);
}

/* Conditions in FROM; context is not used. */
static bool
condition_may_raise(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, JoinExpr) && hgj_row_may_raise(((JoinExpr *) node)->quals))
		return true;
	if (IsA(node, FromExpr) && hgj_row_may_raise(((FromExpr *) node)->quals))
		return true;
	if (!IsA(node, JoinExpr) && !IsA(node, FromExpr) && !IsA(node, List))
		return false;
	return expression_tree_walker(node, condition_may_raise, context);
}

/* Is it nothing but rows that pass clauses? */
static bool
is_plain(const Query *query)
{
	return query->commandType == CMD_SELECT && !query->hasAggs && !query->hasWindowFuncs &&
		!query->hasTargetSRFs && query->cteList == NIL && query->setOperations == NULL &&
		query->groupClause == NIL && query->groupingSets == NIL && query->havingQual == NULL &&
		query->distinctClause == NIL && query->limitCount == NULL &&
		query->limitOffset == NULL && query->rowMarks == NIL;
}

/* Step 3: what FROM names, and the clauses that its policies add. */
static bool
is_proven(const HgjRewriting *rewriting, const RangeTblEntry *rte)
{
	switch (rte->rtekind)
	{
		case RTE_RELATION:
			return rte->relkind != RELKIND_FOREIGN_TABLE && rte->tablesample == NULL &&
				!hgj_row_may_raise((Node *) rte->securityQuals);
		case RTE_JOIN:
			return true;
		case RTE_SUBQUERY:
			return list_member_ptr(rewriting->groups, rte->subquery) ||
				(is_plain(rte->subquery) &&
				 !hgj_row_may_raise((Node *) rte->subquery->targetList) &&
				 !hgj_row_may_raise(rte->subquery->jointree->quals) &&
				 hgj_reads_proven(rewriting, rte->subquery));
		default:
			return false;
	}
}

/* Step 3: may all rows of the query's FROM be looked at, whatever its WHERE is? */
bool
hgj_reads_proven(const HgjRewriting *rewriting, const Query *query)
{
	ListCell   *lc;

	check_stack_depth();
	foreach(lc, query->rtable)
		if (!is_proven(rewriting, lfirst_node(RangeTblEntry, lc)))
			return false;
	return !condition_may_raise((Node *) query->jointree->fromlist, NULL);
}
