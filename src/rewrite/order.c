/*-------------------------------------------------------------------------
 *
 * order.c
 *	  Does the order in which clauses are evaluated matter, when subqueries become joins?
 *
 * PostgreSQL evaluates a clause with a subquery where it scans a table, or makes groups, after
 * clauses of less cost, and before clauses of joins.  As a join, it is evaluated later.  Clauses
 * that may raise an error might come to rows that the subquery would have removed then:
 *
 * 1. clauses of several relations, and other ones with subqueries,
 * 2. clauses of the same relation that cost as much as the one with the subquery, or more.  What
 *	  that costs is known when it is planned; it is taken for the least that it can be: a subquery
 *	  that is hashed costs what it compares, and a run of another one makes a row at least.
 *
 * Memory: the current context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "rewrite/hidden.h"
#include "utils/float.h"

/* What clauses there are in the conditions of a query. */
typedef struct HgjClauses
{
	int			nsubqueries;	/* number of those with a subquery that may run for each row */
	int			nraising;		/* number of these that may raise an error */
	int			njoining;		/* number of others that may, of several relations */
	bool		late;			/* one of one relation may, and come behind a subquery (step 2) */
} HgjClauses;

/* Is it a clause of WHERE that PostgreSQL makes a join of? */
bool
hgj_is_join_already(Node *clause)
{
	Node	   *node = is_notclause(clause) ? (Node *) get_notclausearg(clause) : clause;
	const SubLink *sublink = (const SubLink *) node;

	if (!IsA(node, SubLink))
		return false;
	if (sublink->subLinkType == EXISTS_SUBLINK)
		return hgj_is_pulled_up_well(castNode(Query, sublink->subselect));
	return sublink->subLinkType == ANY_SUBLINK && node == clause &&
		!hgj_refers_to_level(sublink->subselect, 1);
}

/* Step 1: put a value in the place of each subquery.  context: whether one raises an error itself */
static Node *
without_subqueries(Node *node, void *context)
{
	Query	   *query;

	if (node == NULL)
		return NULL;
	if (!IsA(node, SubLink))
		return expression_tree_mutator(node, without_subqueries, context);
	query = castNode(Query, ((SubLink *) node)->subselect);
	if (hgj_row_may_raise(without_subqueries(query->jointree->quals, context)) ||
		hgj_look_at_group(without_subqueries((Node *) query->targetList, context)) != HGJ_HIDDEN_IS_JOIN)
		*(bool *) context = true;
	(void) without_subqueries(((SubLink *) node)->testexpr, context);
	return hgj_any_value(node, true);
}

/* context is not used */
static bool
find_own_subquery(Node *node, void *context)
{
	if (node == NULL)
		return false;
	return (IsA(node, SubLink) && hgj_may_be_hidden((SubLink *) node)) ||
		expression_tree_walker(node, find_own_subquery, context);
}

/* Step 2: what a subquery costs a row, at least. */
static Cost
least_cost_of(const SubLink *sublink)
{
	bool		correlated = hgj_refers_to_level(sublink->subselect, 1);

	switch (sublink->subLinkType)
	{
		case EXISTS_SUBLINK:
			return cpu_operator_cost;
		case ANY_SUBLINK:
		case ALL_SUBLINK:
			/* half of its rows are taken to be read */
			return hgj_cost_of_row(sublink->testexpr) + (correlated ? 0.5 * cpu_tuple_cost : 0);
		default:
			return cpu_tuple_cost;
	}
}

/* Step 2: the subquery that costs least.  context: Cost *, what it costs */
static bool
find_least(Node *node, void *context)
{
	Cost	   *least = context;

	if (node == NULL)
		return false;
	if (IsA(node, SubLink) && hgj_may_be_hidden((SubLink *) node))
		*least = Min(*least, least_cost_of((SubLink *) node));
	return expression_tree_walker(node, find_least, context);
}

/*
 * Step 2: may one of the other clauses raise an error, and come behind one with a subquery?  They
 * are of one scan, or of one HAVING.
 */
bool
hgj_come_late(const List *subqueries, const List *others)
{
	Cost		least = get_float8_infinity();
	ListCell   *lc;

	if (subqueries == NIL)
		return false;
	foreach(lc, subqueries)
		(void) find_least(lfirst(lc), &least);
	foreach(lc, others)
		if (hgj_group_may_raise(lfirst(lc)) && hgj_cost_of_row(lfirst(lc)) >= least)
			return true;
	return false;
}

/* Step 2: the clauses of a level that are evaluated with this one, where a table is scanned. */
static List *
clauses_beside(const Node *clause, const List *clauses)
{
	Bitmapset  *relations = pull_varnos(NULL, (Node *) clause);
	List	   *beside = NIL;
	ListCell   *lc;

	foreach(lc, clauses)
	{
		Bitmapset  *of_other = pull_varnos(NULL, lfirst(lc));

		if (lfirst(lc) != clause && bms_membership(of_other) == BMS_SINGLETON &&
			bms_overlap(of_other, relations) && !find_own_subquery(lfirst(lc), NULL))
			beside = lappend(beside, lfirst(lc));
	}
	return beside;
}

static void
count_clauses(const List *clauses, HgjClauses *counts)
{
	ListCell   *lc;

	foreach(lc, clauses)
	{
		Node	   *clause = lfirst(lc);
		bool		raises = false;
		bool		joins = hgj_is_join_already(clause);
		bool		has_subquery = !joins && find_own_subquery(clause, NULL);

		if (!has_subquery && bms_membership(pull_varnos(NULL, clause)) != BMS_MULTIPLE)
			continue;
		counts->late |= has_subquery &&
			hgj_come_late(list_make1(clause), clauses_beside(clause, clauses));
		clause = without_subqueries(clause, &raises);
		raises |= hgj_row_may_raise(clause);
		counts->nsubqueries += has_subquery;
		counts->nraising += has_subquery && raises;
		counts->njoining += !has_subquery && !joins && raises;
	}
}

/* Conditions of a level.  context: List **, the clauses */
static bool
collect_clauses(Node *node, void *context)
{
	if (node == NULL || IsA(node, RangeTblRef))
		return false;
	if (IsA(node, FromExpr))
		hgj_split_clauses(((FromExpr *) node)->quals, context);
	else if (IsA(node, JoinExpr))
		hgj_split_clauses(((JoinExpr *) node)->quals, context);
	else if (!IsA(node, List))
		return false;
	return expression_tree_walker(node, collect_clauses, context);
}

/* context: HgjClauses */
static bool
count_conditions(Node *node, void *context)
{
	List	   *clauses = NIL;

	if (node == NULL)
		return false;
	check_stack_depth();
	if (!IsA(node, Query))
		return expression_tree_walker(node, count_conditions, context);
	(void) collect_clauses((Node *) ((Query *) node)->jointree, &clauses);
	count_clauses(clauses, context);
	return query_tree_walker((Query *) node, count_conditions, context, 0);
}

/* Might an error be raised that is not raised when the query is run as it is written? */
bool
hgj_order_matters(Query *query)
{
	HgjClauses	counts = {0};

	(void) count_conditions((Node *) query, &counts);
	return counts.late || (counts.njoining > 0 && counts.nsubqueries > 0) ||
		(counts.nraising > 0 && counts.nsubqueries > 1);
}
