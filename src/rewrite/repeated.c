/*-------------------------------------------------------------------------
 *
 * repeated.c
 *	  WITH queries that are read at several places become subqueries there.
 *
 * PostgreSQL computes such a query once, in one process, and keeps its rows as tuples, which every
 * place that reads them goes through from the first to the last.  Groups of a large table may be
 * made twice in less time than that takes: by batches, on a device, by all workers, only those
 * that a condition asks for.  And a subquery that reads the WITH query may be a join only where
 * what it reads is known.  (WITH r AS (SELECT k, sum(v) AS s FROM t GROUP BY k)
 * SELECT k FROM r WHERE s = (SELECT max(s) FROM r))
 *
 * 1. It is a SELECT that groups or aggregates, without MATERIALIZED, and read more than once; others
 *	  read once, or without groups, are PostgreSQL's to judge.  Nothing in the statement changes data,
 *	  locks rows or, in a condition, calls a volatile function.
 * 2. It must return equal rows each time.  Its rows are those of tables, as one snapshot sees them,
 *	  and their aggregates depend on neither order nor the way in which they are read; nothing in it
 *	  raises an error (proofs.c), and the user may read it.  Keys are of types whose equal values are
 *	  alike, because each place gets the key of the row that comes first there; and columns beside
 *	  them depend on them, which they do not where a table's children have keys of their own.
 * 3. As WITH it keeps the conditions around it outside, and is read where PostgreSQL has seen fit.  As a
 *	  subquery it lets PostgreSQL look at them for groups, and rows, that it would have left out, and
 *	  joins come in another order, so that other tables' rows meet their conditions which would have
 *	  met no partner before.  So nothing in FROM, WHERE and HAVING of the statement, and of
 *	  the subqueries in it, may raise an error; one in a condition is to be EXISTS, IN or ANY, or to
 *	  have one row whatever happens.
 * 4. WITH queries are taken in order, so that one that reads another has it in its copies.  The number
 *	  of copies is limited: each has to be planned.
 *
 * The query is the caller's copy, and is changed in place.  Memory: the current context.
 * No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "rewrite/hidden.h"
#include "rewrite/rewriteManip.h"

/* Step 4 */
#define MOST_COPIES		8

/* A walk through a statement for the places that read a WITH query. */
typedef struct HgjPlaces
{
	const CommonTableExpr *with;	/* WITH query */
	int			depth;			/* number of levels below the one that has it in its WITH */
	List	   *entries;		/* RangeTblEntries that read it */
	List	   *depths;			/* IntList: their depths */
	bool		all_plain;		/* each stands in a SELECT that locks no row */
} HgjPlaces;

/* Step 1: is it one that is looked at? */
static bool
is_repeatable_kind(const CommonTableExpr *with)
{
	const Query *query = (const Query *) with->ctequery;

	return with->cterefcount > 1 && with->ctematerialized == CTEMaterializeDefault &&
		!with->cterecursive && IsA(query, Query) && query->commandType == CMD_SELECT &&
		(query->hasAggs || query->groupClause != NIL || query->distinctClause != NIL);
}

/* Does the query have such a WITH query? */
bool
hgj_has_repeatable(const Query *query)
{
	ListCell   *lc;

	foreach(lc, query->cteList)
		if (is_repeatable_kind(lfirst_node(CommonTableExpr, lc)))
			return true;
	return false;
}

/* Step 2: do groups of equal keys have equal keys to show? */
static bool
keys_look_equal(const Query *query)
{
	ListCell   *lc;

	foreach(lc, list_concat_copy(query->groupClause, query->distinctClause))
	{
		const SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node	   *value = get_sortgroupclause_expr((SortGroupClause *) clause, query->targetList);

		/* a numeric's equal values differ in their scales, which a declaration makes one */
		if (!hgj_looks_equal(clause, value) &&
			(exprType(value) != NUMERICOID || exprTypmod(value) < 0))
			return false;
	}
	return true;
}

/*
 * Step 2: of what it reads in FROM, too.  The parser takes a table's primary key for one of its
 * children's rows as well.
 */
static bool
all_keys_look_equal(const Query *query)
{
	ListCell   *lc;

	check_stack_depth();
	foreach(lc, query->rtable)
	{
		const RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (rte->rtekind == RTE_SUBQUERY && !all_keys_look_equal(rte->subquery))
			return false;
		if (query->constraintDeps != NIL && rte->rtekind == RTE_RELATION && rte->inh &&
			rte->relkind != RELKIND_PARTITIONED_TABLE && has_subclass(rte->relid))
			return false;
	}
	return keys_look_equal(query);
}

static bool
find_places(Node *node, void *context)
{
	HgjPlaces  *places = context;
	bool		found;
	ListCell   *lc;

	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, find_places, context);
	check_stack_depth();
	foreach(lc, ((Query *) node)->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (rte->rtekind != RTE_CTE || (int) rte->ctelevelsup != places->depth ||
			strcmp(rte->ctename, places->with->ctename) != 0)
			continue;
		places->entries = lappend(places->entries, rte);
		places->depths = lappend_int(places->depths, places->depth);
		places->all_plain &= ((Query *) node)->commandType == CMD_SELECT &&
			((Query *) node)->rowMarks == NIL;
	}
	places->depth++;
	found = query_tree_walker((Query *) node, find_places, context, 0);
	places->depth--;
	return found;
}

/* The entry reads a copy of the query from here on, which stands this number of levels below its WITH. */
static void
read_copy(RangeTblEntry *rte, const CommonTableExpr *with, int depth)
{
	rte->rtekind = RTE_SUBQUERY;
	rte->subquery = copyObject((Query *) with->ctequery);
	IncrementVarSublevelsUp((Node *) rte->subquery, depth, 1);
	rte->ctename = NULL;
	rte->ctelevelsup = 0;
	rte->self_reference = false;
	rte->coltypes = rte->coltypmods = rte->colcollations = NIL;
}

/* Steps 2 and 4: put copies in the places of one WITH query.  False: it stays. */
static bool
repeat(HgjRewriting *rewriting, Query *query, CommonTableExpr *with)
{
	Query	   *read = castNode(Query, with->ctequery);
	HgjPlaces	places = {with, 0, NIL, NIL, true};
	ListCell   *lc1;
	ListCell   *lc2;

	if (!hgj_is_proven_subquery(rewriting, read) || !hgj_is_permitted(read) ||
		!all_keys_look_equal(read) || contain_volatile_functions((Node *) read) ||
		hgj_refers_above((Node *) read, 0))
		return false;
	(void) find_places((Node *) query, &places);
	if (!places.all_plain || list_length(places.entries) != with->cterefcount ||
		rewriting->ncopies + with->cterefcount > MOST_COPIES)
		return false;
	forboth(lc1, places.entries, lc2, places.depths)
		read_copy(lfirst(lc1), with, lfirst_int(lc2));
	rewriting->ncopies += list_length(places.entries);
	return true;
}

/* What groups are made by is to stand where it is looked for.  context is not used. */
static bool
flatten_all(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, flatten_all, context);
	check_stack_depth();
	hgj_flatten_groups((Query *) node);
	return query_tree_walker((Query *) node, flatten_all, context, 0);
}

/* Steps 2 and 4, of the query's WITH, and then of those inside. */
static bool
repeat_each(Node *node, void *context)
{
	HgjRewriting *rewriting = context;
	Query	   *query = (Query *) node;
	ListCell   *lc;

	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, repeat_each, context);
	check_stack_depth();
	foreach(lc, query->cteList)
	{
		CommonTableExpr *with = lfirst_node(CommonTableExpr, lc);

		if (!is_repeatable_kind(with))
			continue;
		if (repeat(rewriting, query, with))
		{
			rewriting->nrepeated++;
			rewriting->reasons = lappend_int(rewriting->reasons, HGJ_HIDDEN_REPEATED);
			query->cteList = foreach_delete_current(query->cteList, lc);
		}
		else
			rewriting->reasons = lappend_int(rewriting->reasons, HGJ_HIDDEN_KEPT);
	}
	return query_tree_walker(query, repeat_each, context, 0);
}

static bool may_raise(const HgjRewriting *rewriting, const Query *query);

/* Step 3: does a subquery in a condition raise no error, beside those of what it is compared with? */
static bool
is_proven_sublink(const HgjRewriting *rewriting, const SubLink *sublink)
{
	const Query *query = castNode(Query, sublink->subselect);

	if (!hgj_is_plain(query) || may_raise(rewriting, query) ||
		hgj_groups_may_raise((Node *) query->targetList))
		return false;
	return sublink->subLinkType == EXISTS_SUBLINK || sublink->subLinkType == ANY_SUBLINK ||
		(sublink->subLinkType == EXPR_SUBLINK && query->hasAggs);
}

/* Step 3: something that has its value, in the place of such a subquery; its operator is still there. */
static Node *
without_proven(Node *node, void *context)
{
	SubLink    *sublink = (SubLink *) node;

	if (node == NULL || IsA(node, Query))
		return node;
	if (!IsA(node, SubLink) || !is_proven_sublink(context, sublink))
		return expression_tree_mutator(node, without_proven, context);
	if (sublink->subLinkType == ANY_SUBLINK)
		return without_proven(sublink->testexpr, context);
	return hgj_any_value(node, false);
}

/* Step 3: can what the query reads, or a condition of it, raise an error? */
static bool
may_raise(const HgjRewriting *rewriting, const Query *query)
{
	check_stack_depth();
	return !hgj_tables_proven(rewriting, query) ||
		hgj_condition_may_raise((Node *) query->jointree, without_proven, (void *) rewriting) ||
		hgj_groups_may_raise(without_proven(query->havingQual, (void *) rewriting));
}

/* Step 3: a query in the statement of which that is so.  context: HgjRewriting */
static bool
find_raising(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, find_raising, context);
	return may_raise(context, (Query *) node) ||
		query_tree_walker((Query *) node, find_raising, context, 0);
}

/*
 * Put copies in the places of the statement's WITH queries that may be computed at each of them:
 * rewriting->nrepeated is their number.  The caller has looked for volatile conditions.
 */
void
hgj_repeat_queries(HgjRewriting *rewriting, Query *query)
{
	HgjRewriting attempt = *rewriting;
	Query	   *repeated;
	ListCell   *lc;

	if (rewriting->calls_volatile || query->hasModifyingCTE ||
		query->commandType != CMD_SELECT || query->rowMarks != NIL)
		return;
	repeated = copyObject(query);
	(void) flatten_all((Node *) repeated, NULL);
	(void) repeat_each((Node *) repeated, &attempt);
	/* what reads the copies is looked at with them: what they are made of is known */
	if (attempt.nrepeated == 0 || !find_raising((Node *) repeated, &attempt))
	{
		*rewriting = attempt;
		*query = *repeated;
		return;
	}
	/* nothing has been looked at before: each reason is that of a WITH query */
	foreach(lc, attempt.reasons)
		lfirst_int(lc) = HGJ_HIDDEN_KEPT;
	rewriting->reasons = attempt.reasons;
}
