/*-------------------------------------------------------------------------
 *
 * restrict.c
 *	  What the rows around a subquery are restricted to, its groups are, too: magic sets, by
 *	  Mumick, Finkelstein, Pirahesh and Ramakrishnan, "Magic is Relevant", 1990.
 *
 *	  ... o, r WHERE r.k = o.k AND r.p AND x < (SELECT avg(q) FROM t WHERE t.k = o.k)
 *	  ... (SELECT t.k, avg(q) FROM t WHERE t.k IN (SELECT r.k FROM r WHERE r.p) GROUP BY t.k) ...
 *
 * 1. The clauses that count are those of WHERE and of inner joins that no outer join has below
 *	  it on the side that it fills in: they hold for each row that the level goes on with.
 *	  Without its group, any other row has the value of the empty group, and is removed.  What
 *	  stands around that value must not raise an error (levels.c, step 8).
 * 2. The operand of an equality by which the groups are joined is equal to others by such
 *	  clauses.  Each of them may be
 *	  - a column of a table that has clauses of its own: the groups' keys are columns of its rows;
 *	  - a member of what a subquery returns, by IN: they are members, too.
 *	  All of these equalities are the one that the groups are made by.
 * 3. The table is read, and the clauses are evaluated, once more, for other rows: they must not
 *	  raise errors, nor refer to levels further out.  Privileges are those of the table where it
 *	  stands; one with row security is left alone.
 * 4. Of subqueries that return one row for each operand there is nothing to be saved.
 *
 * PostgreSQL makes semi joins of these clauses, and inner joins where the columns are unique.
 *
 * Memory: the current context.  No locks: the tables are the parser's.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "rewrite/hidden.h"
#include "rewrite/rewriteManip.h"

/* What is known of the level's rows (step 1). */
typedef struct HgjRows
{
	const Query *query;			/* the level */
	List	   *clauses;		/* clauses that hold for each row */
	Bitmapset  *relations;		/* relations that no outer join fills in NULLs for */
} HgjRows;

/* Is it the equality that the groups are made by? */
static bool
is_group_equality(const Node *clause, const HgjCorrelation *correlation)
{
	return IsA(clause, OpExpr) && list_length(((const OpExpr *) clause)->args) == 2 &&
		((const OpExpr *) clause)->opno == correlation->group_operator &&
		((const OpExpr *) clause)->inputcollid == correlation->clause->inputcollid;
}

/* Step 2: the row's operand, and what is equal to it. */
static List *
equal_operands(const HgjRows *rows, const HgjCorrelation *correlation)
{
	List	   *operands = list_make1(hgj_at_row(correlation->outer));
	int			before;
	ListCell   *lc;

	do
	{
		before = list_length(operands);
		foreach(lc, rows->clauses)
		{
			const OpExpr *clause = lfirst(lc);

			if (!is_group_equality((const Node *) clause, correlation))
				continue;
			if (list_member(operands, linitial(clause->args)))
				operands = list_append_unique(operands, lsecond(clause->args));
			else if (list_member(operands, lsecond(clause->args)))
				operands = list_append_unique(operands, linitial(clause->args));
		}
	} while (list_length(operands) > before);
	return operands;
}

/* Step 2: clauses of the table alone. */
static List *
clauses_of(const HgjRows *rows, int table)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, rows->clauses)
	{
		Bitmapset  *relations = pull_varnos(NULL, lfirst(lc));
		int			relation;

		if (bms_get_singleton_member(relations, &relation) && relation == table &&
			hgj_can_be_repeated(lfirst(lc)))
			result = lappend(result, lfirst(lc));
	}
	return result;
}

/* SELECT operand FROM table WHERE clauses, of copies. */
static Query *
select_from(const Query *level, int table, Node *operand, List *clauses)
{
	RangeTblEntry *rte = copyObject(list_nth_node(RangeTblEntry, level->rtable, table - 1));
	Query	   *query = hgj_select_from(rte);

	hgj_copy_privileges(query, rte, level, rte);
	query->jointree->quals = copyObject(hgj_join_clauses(clauses));
	query->targetList = list_make1(makeTargetEntry(copyObject((Expr *) operand), 1, pstrdup("key"),
												   false));
	ChangeVarNodes((Node *) query->jointree->quals, table, 1, 0);
	ChangeVarNodes((Node *) query->targetList, table, 1, 0);
	return query;
}

/* Step 2: the keys of a table that has such a column, or NULL. */
static Query *
keys_of_table(const HgjRewriting *rewriting, const HgjRows *rows, Node *operand)
{
	const Var  *var = hgj_as_column(operand);
	const RangeTblEntry *rte;
	List	   *clauses;
	Query	   *result;

	if (var == NULL || var->varattno <= 0 ||
		!bms_is_member(var->varno, rows->relations))
		return NULL;
	rte = list_nth(rows->query->rtable, var->varno - 1);
	if (rte->rtekind != RTE_RELATION || rte->securityQuals != NIL || rte->tablesample)
		return NULL;
	clauses = clauses_of(rows, var->varno);
	if (clauses == NIL)
		return NULL;
	result = select_from(rows->query, var->varno, operand, clauses);
	return hgj_reads_proven(rewriting, result) ? result : NULL;
}

/* Step 2: what IN says that the operand is a member of, or NULL. */
static Query *
members(const HgjRewriting *rewriting, const SubLink *sublink, const Node *operand,
		const HgjCorrelation *correlation)
{
	const OpExpr *test;
	const Param *member;
	Query	   *query;

	if (!IsA(sublink, SubLink) || sublink->subLinkType != ANY_SUBLINK ||
		!is_group_equality(sublink->testexpr, correlation))
		return NULL;
	test = (const OpExpr *) sublink->testexpr;
	if (!equal(linitial(test->args), operand))
		return NULL;
	member = lsecond(test->args);
	query = castNode(Query, sublink->subselect);
	if (!IsA(member, Param) || member->paramkind != PARAM_SUBLINK || member->paramid != 1 ||
		list_length(query->targetList) != 1 || !hgj_is_plain(query) || query->hasAggs ||
		query->hasSubLinks || hgj_refers_to_level((Node *) query, 1) ||
		hgj_refers_above((Node *) query, 1) ||
		hgj_row_may_raise((Node *) query->targetList) ||
		hgj_look_at_reading(rewriting, query, list_make1(query->jointree->quals)) != HGJ_HIDDEN_IS_JOIN)
		return NULL;
	return copyObject(query);
}

/* key IN (keys) */
static Node *
is_among(const HgjCorrelation *correlation, Query *keys)
{
	const TargetEntry *tle = linitial(keys->targetList);
	Param	   *param = makeNode(Param);
	OpExpr	   *test = copyObject(correlation->clause);

	param->paramkind = PARAM_SUBLINK;
	param->paramid = 1;
	param->paramtype = exprType((Node *) tle->expr);
	param->paramtypmod = exprTypmod((Node *) tle->expr);
	param->paramcollid = exprCollation((Node *) tle->expr);
	param->location = -1;
	test->args = list_make2(copyObject(correlation->inner), param);
	return (Node *) hgj_make_sublink(ANY_SUBLINK, (Expr *) test, keys);
}

/* Step 2: of one of the equalities by which the groups are joined. */
static List *
restrictions_of(const HgjRewriting *rewriting, const HgjRows *rows,
				const HgjCorrelation *correlation)
{
	List	   *result = NIL;
	ListCell   *lc;
	ListCell   *lc2;

	if (!is_group_equality((Node *) correlation->clause, correlation))
		return NIL;
	foreach(lc, equal_operands(rows, correlation))
	{
		Query	   *keys = keys_of_table(rewriting, rows, lfirst(lc));

		if (keys)
			result = lappend(result, is_among(correlation, keys));
		foreach(lc2, rows->clauses)
		{
			keys = members(rewriting, lfirst(lc2), lfirst(lc), correlation);
			if (keys)
				result = lappend(result, is_among(correlation, keys));
		}
	}
	return result;
}

/*
 * Restrict what a subquery of the level reads, which is about to be joined, to keys that the
 * level's rows may have.
 */
void
hgj_restrict_subquery(HgjRewriting *rewriting, const Query *query, HgjSubquery *subquery)
{
	HgjRows		rows = {query, NIL, NULL};
	List	   *restrictions = NIL;
	ListCell   *lc;

	if (subquery->kind == HGJ_GIVES_ROW)
		return;
	(void) hgj_collect_conditions((Node *) query->jointree, &rows.clauses, &rows.relations);
	foreach(lc, subquery->correlations)
		restrictions = list_concat(restrictions,
								   restrictions_of(rewriting, &rows, lfirst(lc)));
	if (restrictions == NIL)
		return;
	subquery->rest = list_concat(subquery->rest, restrictions);
	subquery->query->hasSubLinks = true;
	rewriting->nrestrictions += list_length(restrictions);
}
