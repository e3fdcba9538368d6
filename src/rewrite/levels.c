/*-------------------------------------------------------------------------
 *
 * levels.c
 *	  The levels of a query, from the innermost outwards, and the places of each where a
 *	  subquery may become a join.
 *
 * 1. Each SELECT is a level: the query, subqueries and views in FROM, WITH queries, and
 *	  subqueries in expressions.  What is inside comes first, so that a level only sees
 *	  what could not be made a join there.
 * 2. A subquery in WHERE or in the target list is evaluated for rows of the level's FROM, so
 *	  the level may join its groups to FROM.  Where the level itself aggregates, this holds
 *	  only for the arguments of its aggregates: everything else there sees groups.  HAVING
 *	  sees groups, too, and ON stands below joins that fill in NULLs.
 * 3. FOR UPDATE, UPDATE, DELETE and MERGE evaluate clauses again for a row that another
 *	  transaction has changed meanwhile, with the new row.  A subquery would see that row,
 *	  and a join would not, so there the levels stay as they are, and all inside them.
 *
 * 4. A clause of WHERE that can be decided by a group alone may be looked at for each group,
 *	  those that no row asks for among them.  If it might raise an error then, its value is
 *	  pinned to the rows around it (grouped.c, step 4).  So is one of the target list: whoever
 *	  reads it may have such a clause.
 * 5. Where conditions call volatile functions, it would be noticed that rows come to them in
 *	  another order, or fewer, so nothing is rewritten.
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
#include "rewrite/hidden.h"
#include "rewrite/rewriteManip.h"

/* Where a walk through the expressions of a level is. */
typedef struct HgjPlace
{
	HgjRewriting *rewriting;
	Query	   *query;			/* the level */
	bool		sees_rows;		/* the place sees the rows of FROM (step 2) */
	Node	   *clause;			/* clause of WHERE that is walked through, or NULL */
} HgjPlace;

/* Are there subqueries in the expressions of this level, or one inside? */
static bool
has_sublinks(const Query *query)
{
	ListCell   *lc;

	if (query->hasSubLinks)
		return true;
	check_stack_depth();
	foreach(lc, query->rtable)
	{
		const RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (rte->rtekind == RTE_SUBQUERY && has_sublinks(rte->subquery))
			return true;
	}
	foreach(lc, query->cteList)
		if (has_sublinks((const Query *) lfirst_node(CommonTableExpr, lc)->ctequery))
			return true;
	return false;
}

static bool
is_correlated_scalar(const SubLink *sublink)
{
	return sublink->subLinkType == EXPR_SUBLINK &&
		hgj_refers_to_level(sublink->subselect, 1);
}

static bool
find_scalar(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubLink) && is_correlated_scalar((SubLink *) node))
		return true;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, find_scalar, context, 0);
	return expression_tree_walker(node, find_scalar, context);
}

/* Is there a subquery that could be a join?  The answer takes next to no time where none is. */
bool
hgj_may_hide_joins(const Query *query)
{
	return has_sublinks(query) && find_scalar((Node *) query, NULL);
}

/* Note that the subqueries in these expressions stay what they are. */
static bool
note_all(Node *node, void *context)
{
	HgjRewriting *rewriting = context;

	if (node == NULL)
		return false;
	if (IsA(node, SubLink) && is_correlated_scalar((SubLink *) node))
		rewriting->reasons = lappend_int(rewriting->reasons, HGJ_HIDDEN_PLACE);
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, note_all, context, 0);
	return expression_tree_walker(node, note_all, context);
}

/* A scalar subquery of the level: an expression in its place, or itself. */
static Node *
replace_scalar(HgjPlace *place, SubLink *sublink)
{
	HgjRewriting *rewriting = place->rewriting;
	Query	   *subquery = castNode(Query, sublink->subselect);
	HgjHidden	reason = HGJ_HIDDEN_PLACE;
	HgjScalar	scalar = {0};

	if (place->sees_rows)
		reason = hgj_look_at_scalar(rewriting, subquery, &scalar);
	if (reason == HGJ_HIDDEN_IS_JOIN && rewriting->calls_volatile)
		reason = HGJ_HIDDEN_VOLATILE;
	rewriting->reasons = lappend_int(rewriting->reasons, reason);
	if (reason != HGJ_HIDDEN_IS_JOIN)
		return (Node *) sublink;
	scalar.pinned = place->clause == NULL ||
		hgj_row_may_raise(hgj_stand_in(place->clause, sublink));
	rewriting->njoins++;
	return (Node *) hgj_join_groups(rewriting, place->query, subquery, &scalar);
}

static Node *replace_mutator(Node *node, void *context);

/* An aggregate of the level: arguments and FILTER see rows, what percentile_cont() is given not. */
static Node *
replace_in_aggregate(HgjPlace *place, const Aggref *aggref)
{
	HgjPlace	inside = *place;
	Aggref	   *result = makeNode(Aggref);

	inside.sees_rows = true;
	*result = *aggref;
	result->args = (List *) replace_mutator((Node *) aggref->args, &inside);
	result->aggfilter = (Expr *) replace_mutator((Node *) aggref->aggfilter, &inside);
	result->aggdirectargs = (List *) replace_mutator((Node *) aggref->aggdirectargs, place);
	return (Node *) result;
}

static Node *
replace_mutator(Node *node, void *context)
{
	HgjPlace   *place = context;

	/* those inside of subqueries have had their turn (step 1) */
	if (node == NULL || IsA(node, Query))
		return node;
	check_stack_depth();
	if (IsA(node, SubLink) && is_correlated_scalar((SubLink *) node))
		return replace_scalar(place, (SubLink *) node);
	if (IsA(node, Aggref) && !place->sees_rows && ((Aggref *) node)->agglevelsup == 0)
		return replace_in_aggregate(place, (Aggref *) node);
	return expression_tree_mutator(node, replace_mutator, place);
}

/* The clauses of WHERE, one by one (step 4). */
static Node *
replace_in_where(HgjPlace *place, Node *where)
{
	ListCell   *lc;

	if (where && is_andclause(where))
	{
		foreach(lc, ((BoolExpr *) where)->args)
			lfirst(lc) = replace_in_where(place, lfirst(lc));
		return where;
	}
	place->clause = where;
	where = replace_mutator(where, place);
	place->clause = NULL;
	return where;
}

/* Step 5: context is not used. */
static bool
find_volatile(Node *node, void *context)
{
	ListCell   *lc;

	if (node == NULL)
		return false;
	check_stack_depth();
	if (!IsA(node, Query))
		return expression_tree_walker(node, find_volatile, context);
	if (contain_volatile_functions((Node *) ((Query *) node)->jointree))
		return true;
	foreach(lc, ((Query *) node)->rtable)
		if (contain_volatile_functions((Node *) lfirst_node(RangeTblEntry, lc)->functions))
			return true;
	return query_tree_walker((Query *) node, find_volatile, context, 0);
}

static void rewrite_level(HgjRewriting *rewriting, Query *query);

/* Step 1: the subqueries in the expressions of a level. */
static bool
rewrite_inside(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		rewrite_level(context, (Query *) node);
		return false;
	}
	return expression_tree_walker(node, rewrite_inside, context);
}

/* Steps 1 to 4. */
static void
rewrite_level(HgjRewriting *rewriting, Query *query)
{
	HgjPlace	place = {rewriting, query, true, NULL};
	bool		aggregates = query->hasAggs || query->groupClause != NIL ||
		query->groupingSets != NIL || query->havingQual != NULL;
	int			before = rewriting->njoins;

	check_stack_depth();
	if ((query->commandType != CMD_SELECT && query->commandType != CMD_INSERT) ||
		query->rowMarks != NIL)
	{
		query_tree_walker(query, note_all, rewriting, 0);
		return;
	}
	query_tree_walker(query, rewrite_inside, rewriting, 0);
	if (!query->hasSubLinks || query->commandType != CMD_SELECT)
		return;
	query->jointree->quals = replace_in_where(&place, query->jointree->quals);
	place.sees_rows = !aggregates;
	query->targetList = (List *) replace_mutator((Node *) query->targetList, &place);
	place.sees_rows = false;
	query->havingQual = replace_mutator(query->havingQual, &place);
	query->jointree->fromlist = (List *) replace_mutator((Node *) query->jointree->fromlist,
														 &place);
	if (rewriting->njoins > before)
		query->hasSubLinks = checkExprHasSubLink((Node *) query);
}

/* Rewrite the query in place, and whatever is inside. */
void
hgj_rewrite_query(HgjRewriting *rewriting, Query *query)
{
	rewriting->calls_volatile = find_volatile((Node *) query, NULL);
	rewrite_level(rewriting, query);
}
