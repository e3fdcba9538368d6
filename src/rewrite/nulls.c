/*-------------------------------------------------------------------------
 *
 * nulls.c
 *	  Is a value of a query's rows never NULL?
 *
 * 1. A constant says so itself, and a column of a table by its declaration, where no outer join
 *	  of the query fills in NULLs for it.  Children of an inherited table may lack it.
 * 2. WHERE removes rows with a NULL where one of its clauses says IS NOT NULL, or compares the
 *	  value by an operator that is strict.
 * 3. A column of a subquery is never NULL if that is so of what it returns there.
 *
 * NOT IN is an anti join where neither side is ever NULL (quantified.c); of rows that tie in an
 * order by a unique column, there is none but those that have NULL there (single.c).
 *
 * Memory: lists in the current context.  No locks: the tables are the parser's.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/table.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "rewrite/hidden.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* The value itself, as what it is called by another type. */
const Node *
hgj_without_relabeling(const Node *node)
{
	while (node && IsA(node, RelabelType))
		node = (const Node *) ((const RelabelType *) node)->arg;
	return node;
}

/* The column of this level that an expression is, by whatever type, or NULL. */
const Var *
hgj_as_column(const Node *node)
{
	const Var  *var = (const Var *) hgj_without_relabeling(node);

	return var && IsA(var, Var) && var->varlevelsup == 0 ? var : NULL;
}

/* Step 1: in what is joined, does an outer join fill in NULLs for this relation? */
static bool
is_nulled(const Node *node, int relation, bool below)
{
	ListCell   *lc;

	check_stack_depth();
	if (IsA(node, RangeTblRef))
		return below && ((const RangeTblRef *) node)->rtindex == relation;
	if (IsA(node, JoinExpr))
	{
		const JoinExpr *join = (const JoinExpr *) node;
		JoinType	type = join->jointype;

		return is_nulled(join->larg, relation, below || type == JOIN_RIGHT || type == JOIN_FULL) ||
			is_nulled(join->rarg, relation, below || type == JOIN_LEFT || type == JOIN_FULL);
	}
	foreach(lc, ((const FromExpr *) node)->fromlist)
		if (is_nulled(lfirst(lc), relation, below))
			return true;
	return false;
}

/* Steps 1 and 3: a column of what FROM names. */
static bool
is_declared(const Query *query, const Var *var)
{
	RangeTblEntry *rte = list_nth(query->rtable, var->varno - 1);
	Relation	table;
	bool		result;

	if (is_nulled((const Node *) query->jointree, var->varno, false))
		return false;
	if (rte->rtekind == RTE_SUBQUERY && rte->subquery->setOperations == NULL &&
		rte->subquery->groupingSets == NIL && var->varattno > 0)
		return hgj_is_never_null(rte->subquery,
								 (Node *) list_nth_node(TargetEntry, rte->subquery->targetList,
														var->varattno - 1)->expr);
	if (rte->rtekind != RTE_RELATION || var->varattno <= 0)
		return false;
	table = table_open(rte->relid, NoLock);
	result = HGJ_IS_NOT_NULL(RelationGetDescr(table), var->varattno) &&
		(!rte->inh || !table->rd_rel->relhassubclass ||
		 table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE);
	table_close(table, NoLock);
	return result;
}

/* Step 2: is the clause not true where the value is NULL? */
static bool
removes_null(const Node *clause, const Node *value)
{
	ListCell   *lc;

	if (IsA(clause, NullTest))
		return ((const NullTest *) clause)->nulltesttype == IS_NOT_NULL &&
			!((const NullTest *) clause)->argisrow &&
			equal(hgj_without_relabeling((Node *) ((const NullTest *) clause)->arg), value);
	if (!IsA(clause, OpExpr) || !op_strict(((const OpExpr *) clause)->opno))
		return false;
	foreach(lc, ((const OpExpr *) clause)->args)
		if (equal(hgj_without_relabeling(lfirst(lc)), value))
			return true;
	return false;
}

/* Is an expression over the query's FROM never NULL, for the rows that its WHERE leaves? */
bool
hgj_is_never_null(const Query *query, const Node *expression)
{
	const Node *value = hgj_without_relabeling(expression);
	List	   *clauses = NIL;
	ListCell   *lc;

	check_stack_depth();
	if (IsA(value, Const))
		return !((const Const *) value)->constisnull;
	if (!IsA(value, Var) || ((const Var *) value)->varlevelsup > 0)
		return false;
	if (is_declared(query, (const Var *) value))
		return true;
	hgj_split_clauses(query->jointree->quals, &clauses);
	foreach(lc, clauses)
		if (removes_null(lfirst(lc), value))
			return true;
	return false;
}
