/*-------------------------------------------------------------------------
 *
 * split.c
 *	  A level that aggregates, and has a subquery of its own for each group, becomes two levels:
 *	  one that aggregates, and one around it that selects from its groups.
 *
 *	  SELECT o.k, sum(x), (SELECT max(y) FROM t WHERE t.k = o.k) FROM o GROUP BY o.k
 *		HAVING sum(x) > 10 AND count(*) > (SELECT z FROM u WHERE u.k = o.k)
 *	  SELECT g.k, g.sum, (SELECT max(y) FROM t WHERE t.k = g.k)
 *		FROM (SELECT o.k, sum(x), count(*) FROM o GROUP BY o.k HAVING sum(x) > 10) g
 *		WHERE g.count > (SELECT z FROM u WHERE u.k = g.k)
 *
 * In a level around groups, a subquery sees rows, and can become a join with them (levels.c,
 * step 2).
 *
 * 1. The inner level keeps FROM, WHERE, GROUP BY, and those clauses of HAVING that have no
 *	  subquery of this kind.  It returns what the rest of the level is made of: values of GROUP BY,
 *	  aggregates, and columns that depend on a key of GROUP BY; nothing is computed of these there.
 *	  So each expression is evaluated for the groups for which it was before, and no other one.
 * 2. The outer level keeps everything else: the target list, the other clauses of HAVING as its
 *	  WHERE, window functions, DISTINCT, ORDER BY, LIMIT, WITH.
 * 3. References change with the levels.  What the outer level's expressions had of FROM, in
 *	  subqueries as well, they have of the groups.  What the inner level refers to further up,
 *	  WITH queries of this level among it, is one level more away.
 *
 * A level stays whole where it has grouping sets, by which a column is NULL in some groups;
 * where GROUP BY calls volatile functions or functions that return sets, since an equal
 * expression elsewhere need not be the group's value; and where HAVING calls volatile functions,
 * whose number of calls depends on the other clauses; and where PostgreSQL evaluates a clause of
 * HAVING that would stay, and may raise an error, behind one that would not (order.c).  Levels that are evaluated again for
 * changed rows stay as they are (levels.c, step 3).
 *
 * The query is the caller's copy, and is changed in place.  Memory: the current context.
 * No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "rewrite/hidden.h"
#include "rewrite/rewriteManip.h"

/* The name of the groups; EXPLAIN prints it. */
#define GROUPS_NAME		"grouped"

/* The groups, while the outer level's expressions are made. */
typedef struct HgjSplit
{
	List	   *returned;		/* TargetEntries of the inner level */
	int			depth;			/* number of levels that the expression at hand is below the outer one */
} HgjSplit;

/* A column of the groups that has this value, which is of the inner level. */
static Node *
column_of_group(HgjSplit *split, Expr *value)
{
	TargetEntry *found = NULL;
	Var		   *column;
	ListCell   *lc;

	/* what is volatile has a value of its own wherever it stands */
	foreach(lc, contain_volatile_functions((Node *) value) ? NIL : split->returned)
		if (equal(lfirst_node(TargetEntry, lc)->expr, value))
			found = lfirst(lc);
	if (found == NULL)
	{
		AttrNumber	resno = list_length(split->returned) + 1;

		found = makeTargetEntry(value, resno, psprintf("column%d", resno), false);
		split->returned = lappend(split->returned, found);
	}
	column = makeVarFromTargetEntry(1, found);
	column->varlevelsup = split->depth;
	return (Node *) column;
}

/* The node as the inner level would have it, if it is one of that level's values by itself. */
static Expr *
as_value_of_group(const HgjSplit *split, Node *node)
{
	ListCell   *lc;
	Node	   *value;

	if ((IsA(node, Var) && ((Var *) node)->varlevelsup == split->depth) ||
		(IsA(node, Aggref) && ((Aggref *) node)->agglevelsup == split->depth))
	{
		value = copyObject(node);
		IncrementVarSublevelsUp(value, -split->depth, split->depth);
		return (Expr *) value;
	}
	/* PostgreSQL takes no expression inside of a subquery for one that GROUP BY has */
	foreach(lc, split->depth == 0 ? split->returned : NIL)
	{
		const TargetEntry *tle = lfirst(lc);

		if (tle->ressortgroupref != 0 && !IsA(node, Const) && equal(tle->expr, node))
			return tle->expr;
	}
	return NULL;
}

/* Step 3: an expression of the outer level. */
static Node *
over_groups(Node *node, void *context)
{
	HgjSplit   *split = context;
	Expr	   *value;
	Node	   *result;

	if (node == NULL)
		return NULL;
	check_stack_depth();
	if (IsA(node, Query))
	{
		split->depth++;
		result = (Node *) query_tree_mutator((Query *) node, over_groups, split, 0);
		split->depth--;
		return result;
	}
	value = as_value_of_group(split, node);
	return value ? column_of_group(split, value) :
		expression_tree_mutator(node, over_groups, context);
}

/* Step 3: WITH queries of the level are one more away.  context: the depth below the inner level */
static bool
refer_to_with(Node *node, void *context)
{
	int		   *depth = context;
	bool		result;

	if (node == NULL)
		return false;
	if (IsA(node, RangeTblEntry))
	{
		RangeTblEntry *rte = (RangeTblEntry *) node;

		if (rte->rtekind == RTE_CTE && rte->ctelevelsup == *depth)
			rte->ctelevelsup++;
		return false;
	}
	if (!IsA(node, Query))
		return expression_tree_walker(node, refer_to_with, context);
	++*depth;
	result = query_tree_walker((Query *) node, refer_to_with, context, QTW_EXAMINE_RTES_BEFORE);
	--*depth;
	return result;
}

/* Is it a value of GROUP BY? */
static bool
is_grouped_by(const Query *query, const TargetEntry *tle)
{
	return tle->ressortgroupref != 0 &&
		get_sortgroupref_clause_noerr(tle->ressortgroupref, query->groupClause) != NULL;
}

/* Step 1: the values of GROUP BY, as the inner level returns them. */
static List *
values_of_groups(const Query *query)
{
	List	   *values = NIL;
	ListCell   *lc;

	foreach(lc, query->targetList)
	{
		TargetEntry *tle = lfirst(lc);

		if (!is_grouped_by(query, tle))
			continue;
		tle = copyObject(tle);
		tle->resno = list_length(values) + 1;
		tle->resname = psprintf("column%d", tle->resno);
		tle->resjunk = false;
		values = lappend(values, tle);
	}
	return values;
}

/* Is there a subquery outside of aggregates that may become a join?  context is not used. */
static bool
find_over_groups(Node *node, void *context)
{
	if (node == NULL || (IsA(node, Aggref) && ((Aggref *) node)->agglevelsup == 0))
		return false;
	if (IsA(node, SubLink) && hgj_may_be_hidden((SubLink *) node))
		return true;
	return expression_tree_walker(node, find_over_groups, context);
}

/* Is one in the target list, but for values of GROUP BY, which are computed of rows? */
static bool
returns_over_groups(const Query *query)
{
	ListCell   *lc;

	foreach(lc, query->targetList)
	{
		const TargetEntry *tle = lfirst(lc);

		if (!is_grouped_by(query, tle) && find_over_groups((Node *) tle->expr, NULL))
			return true;
	}
	return false;
}

/* Step 1: sort out the clauses of HAVING. */
static void
split_having(const Query *query, List **stay, List **leave)
{
	List	   *clauses = NIL;
	ListCell   *lc;

	hgj_split_clauses(query->havingQual, &clauses);
	foreach(lc, clauses)
	{
		List	  **to = find_over_groups(lfirst(lc), NULL) ? leave : stay;

		*to = lappend(*to, lfirst(lc));
	}
}

/* Step 3: what the inner level has of levels further up; it stands in the level that it was. */
static void
move_inwards(Node *node)
{
	int			depth = 0;

	IncrementVarSublevelsUp(node, 1, 1);
	if (IsA(node, Query))
		(void) query_tree_walker((Query *) node, refer_to_with, &depth, QTW_EXAMINE_RTES_BEFORE);
	else
		(void) refer_to_with(node, &depth);
}

/* Step 1: the level that aggregates, without what it returns. */
static Query *
make_inner(const Query *query, List *having)
{
	Query	   *inner = makeNode(Query);

	*inner = *query;
	hgj_forget_result(inner);
	inner->havingQual = hgj_join_clauses(having);
	inner->hasRecursive = inner->hasModifyingCTE = false;
	inner->cteList = NIL;
	move_inwards((Node *) inner);
	return inner;
}

/* Step 2: make the level one that selects from the groups. */
static void
make_outer(Query *query, Query *inner, List *clauses)
{
	HgjSplit	split = {values_of_groups(query), 0};
	List	   *conditions = NIL;
	ListCell   *lc;

	query->targetList = (List *) over_groups((Node *) query->targetList, &split);
	foreach(lc, clauses)
		conditions = lappend(conditions, over_groups(lfirst(lc), &split));
	/* all of them have been compared with what the level has, which is still as it was */
	move_inwards((Node *) split.returned);
	inner->targetList = split.returned;
	inner->hasSubLinks = checkExprHasSubLink((Node *) inner);

	query->rtable = list_make1(hgj_subquery_entry(inner, GROUPS_NAME));
	hgj_forget_privileges(query);
	query->jointree = makeFromExpr(list_make1(hgj_refer_to(1)), hgj_join_clauses(conditions));
	hgj_forget_grouping(query);
}

/* Does GROUP BY have values that an equal expression elsewhere may not have? */
static bool
groups_are_told_by_values(const Query *query)
{
	List	   *values = get_sortgrouplist_exprs(query->groupClause, query->targetList);

	return !contain_volatile_functions((Node *) values) &&
		!expression_returns_set((Node *) values);
}

static bool
find_grouping(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, GroupingFunc))
		return true;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, find_grouping, context, 0);
	return expression_tree_walker(node, find_grouping, context);
}

/*
 * Split the level, if it aggregates and has a subquery that sees groups and may become a join.
 * Returns whether it has been split.
 */
bool
hgj_split_level(Query *query)
{
	List	   *stay = NIL;
	List	   *leave = NIL;

	if (!query->hasSubLinks || (!query->hasAggs && query->groupClause == NIL) ||
		query->groupingSets != NIL || contain_volatile_functions(query->havingQual) ||
		!groups_are_told_by_values(query) || find_grouping((Node *) query->targetList, NULL) ||
		find_grouping(query->havingQual, NULL))
		return false;
	split_having(query, &stay, &leave);
	if ((leave == NIL && !returns_over_groups(query)) ||
		hgj_come_late(leave, stay))
		return false;
	make_outer(query, make_inner(query, stay), leave);
	return true;
}
