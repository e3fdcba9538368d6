/*-------------------------------------------------------------------------
 *
 * first_rows.c
 *	  The first row of each key, without sorting all rows.
 *
 *	  ... SELECT DISTINCT ON (t.k) t.k, x FROM t WHERE p ORDER BY t.k, at DESC, id
 *	  ... SELECT DISTINCT ON (t.k) t.k, x FROM t LEFT JOIN (SELECT k, max(at) FROM t WHERE p
 *			GROUP BY k) c ON c.k = t.k WHERE p AND at = c.max ORDER BY t.k, at DESC, id
 *
 * A row that is the first of its key by several columns has the key's least or greatest value of the
 * first of them.  Rows that have another one are removed before the others are sorted: mostly all but
 * one of a key.
 *
 * 1. The column is never NULL, its type has an aggregate for the order's first value (aggregates.c), and
 *	  it does not depend on the row around the subquery.
 * 2. The aggregate is written as a subquery of the subquery, by the equalities that this one has with
 *	  the row around it, and is joined as all of them are (subquery.c, grouped.c).
 * 3. What the subquery's rows are restricted to (restrict.c), the aggregate's are, too.
 *
 * Memory: the current context; the subquery is changed.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "rewrite/hidden.h"
#include "rewrite/rewriteManip.h"

/* Step 2: (SELECT aggregate FROM the subquery's tables WHERE clauses AND the keys are equal) */
static SubLink *
make_subquery(const HgjSubquery *subquery, Aggref *aggregate, List *clauses)
{
	Query	   *query = copyObject(subquery->query);
	ListCell   *lc;

	foreach(lc, subquery->correlations)
	{
		const HgjCorrelation *correlation = lfirst(lc);
		Expr	   *around = copyObject(correlation->inner);

		IncrementVarSublevelsUp((Node *) around, 1, 0);
		clauses = lappend(clauses, make_opclause(correlation->group_operator, BOOLOID, false,
												 copyObject(correlation->inner), around, InvalidOid,
												 correlation->clause->inputcollid));
	}
	query->targetList = list_make1(makeTargetEntry((Expr *) aggregate, 1, pstrdup("first"), false));
	query->hasAggs = true;
	query->sortClause = NIL;
	query->limitCount = NULL;
	query->jointree->quals = hgj_join_clauses(clauses);
	fix_opfuncids(query->jointree->quals);
	return hgj_make_sublink(EXPR_SUBLINK, NULL, query);
}

/* Have fewer rows sorted of a subquery that returns the first of each key, if that can be. */
void
hgj_narrow_first_rows(HgjRewriting *rewriting, HgjSubquery *subquery)
{
	Query	   *query = subquery->query;
	List	   *clauses = NIL;
	List	   *restrictions = NIL;
	const SortGroupClause *order;
	Expr	   *value;
	Aggref	   *aggregate;
	HgjSubquery first;
	ListCell   *lc;

	if (subquery->kind != HGJ_GIVES_FIRST)
		return;
	order = linitial_node(SortGroupClause, query->sortClause);
	value = (Expr *) get_sortgroupclause_expr((SortGroupClause *) order, query->targetList);
	if (hgj_refers_to_level((Node *) value, 1) || !hgj_is_never_null(query, (Node *) value))
		return;
	aggregate = hgj_make_first(value, order);
	if (aggregate == NULL)
		return;
	foreach(lc, subquery->rest)
	{
		if (checkExprHasSubLink(lfirst(lc)))
			restrictions = lappend(restrictions, copyObject(lfirst(lc)));
		else
			clauses = lappend(clauses, copyObject(lfirst(lc)));
	}
	if (hgj_look_at_subquery(rewriting, query, make_subquery(subquery, aggregate, clauses), &first) !=
		HGJ_HIDDEN_IS_JOIN)
		return;
	first.rest = list_concat(first.rest, restrictions);
	first.query->hasSubLinks = restrictions != NIL;
	subquery->rest = lappend(subquery->rest,
							 make_opclause(order->eqop, BOOLOID, false, copyObject(value),
										   hgj_join_subquery(rewriting, query, NULL, &first), InvalidOid,
										   exprCollation((Node *) value)));
	fix_opfuncids(llast(subquery->rest));
}
