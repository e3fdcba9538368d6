/*-------------------------------------------------------------------------
 *
 * subquery.c
 *	  Is a subquery that depends on the row around it a join?
 *
 * It is, where all of this holds:
 *
 * 1. It is of one of these forms, without WITH, UNION, window functions and FOR UPDATE:
 *	  - It has one value, of aggregates.  GROUP BY may repeat the keys of step 2, HAVING stands
 *		with GROUP BY only.  (SELECT avg(x) FROM t WHERE t.k = o.k)
 *	  - It has one value without aggregates, and no two rows have the keys of step 2, by unique
 *		indexes.  (SELECT name FROM t WHERE t.id = o.t)
 *	  - It has the value of the first row in an order without ties.
 *		(SELECT x FROM t WHERE t.k = o.k ORDER BY at, id LIMIT 1)
 *	  - It is EXISTS (...).
 * 2. It depends on the query around it by equalities in its WHERE alone (correlation.c), and by
 *	  what its value is made of outside of aggregates.
 * 3. Its aggregates may be computed for all groups (aggregates.c).
 * 4. Nothing in it is volatile, and nothing raises an error (proofs.c), or what does is guarded
 *	  (guarded.c).  What is computed from the aggregates' values, or from a row's, is computed
 *	  around the join (levels.c, step 4).
 *
 * What becomes of ANY, ALL, and of EXISTS with other conditions: quantified.c.
 *
 * Memory: lists and copies in the current context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/xact.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "rewrite/hidden.h"
#include "rewrite/rewriteManip.h"

/* Step 2: the equalities, and the clauses that are none. */
static HgjHidden
look_at_clauses(const Query *level, HgjSubquery *subquery)
{
	const Query *query = subquery->query;
	List	   *clauses = NIL;
	ListCell   *lc;

	if (hgj_refers_to_level((Node *) query->jointree->fromlist, 1) ||
		hgj_tables_refer_to_level(query->rtable, 1))
		return HGJ_HIDDEN_CORRELATION;
	hgj_split_clauses(query->jointree->quals, &clauses);
	foreach(lc, clauses)
	{
		HgjCorrelation correlation;

		if (!hgj_refers_to_level(lfirst(lc), 1))
			subquery->rest = lappend(subquery->rest, lfirst(lc));
		else if (!hgj_take_correlation(lfirst(lc), &correlation))
			return HGJ_HIDDEN_CORRELATION;
		else if (hgj_row_may_raise((Node *) correlation.inner) ||
				 hgj_operand_may_raise(level, (Node *) correlation.outer, 1))
			return HGJ_HIDDEN_RAISES;
		else
			subquery->correlations = lappend(subquery->correlations,
											 memcpy(palloc(sizeof(correlation)), &correlation,
													sizeof(correlation)));
	}
	return subquery->correlations == NIL ? HGJ_HIDDEN_CORRELATION : HGJ_HIDDEN_IS_JOIN;
}

/* Step 1: what is allowed beside FROM and WHERE is taken out first. */
static bool
is_plain_without(const Query *query, bool grouping, bool limit)
{
	Query		bare = *query;

	if (grouping)
	{
		bare.groupClause = NIL;
		bare.havingQual = NULL;
	}
	if (limit)
		bare.limitCount = NULL;
	return hgj_is_plain(&bare);
}

/* Step 1: LIMIT 1, whatever comes first. */
static bool
is_first_row(const Query *query)
{
	const Const *limit = hgj_limit_of(query);

	return query->limitOption == LIMIT_OPTION_COUNT && limit && !limit->constisnull &&
		DatumGetInt64(limit->constvalue) == 1;
}

/* Step 1: aggregates, whose GROUP BY is looked at when the equalities are known. */
static HgjHidden
look_at_aggregates(HgjSubquery *subquery)
{
	const Query *query = subquery->query;

	subquery->kind = HGJ_GIVES_AGGREGATES;
	subquery->optional = query->groupClause != NIL;
	if (!is_plain_without(query, true, false) || (query->havingQual && !subquery->optional))
		return HGJ_HIDDEN_SHAPE;
	if (hgj_refers_to_level(query->havingQual, 1))
		return HGJ_HIDDEN_CORRELATION;
	return hgj_look_at_aggregates((Node *) query->targetList);
}

/* Step 1: a row, or the first one.  The latter may be a group's least or greatest value. */
static HgjHidden
look_at_row(HgjSubquery *subquery)
{
	bool		first = is_first_row(subquery->query);

	/* what is inside of a subquery in the value would not move out with it */
	if (!is_plain_without(subquery->query, false, first) || subquery->query->hasTargetSRFs ||
		checkExprHasSubLink((Node *) subquery->query->targetList))
		return HGJ_HIDDEN_SHAPE;
	subquery->kind = first ? HGJ_GIVES_FIRST : HGJ_GIVES_ROW;
	subquery->optional = true;
	if (!first)
		return HGJ_HIDDEN_IS_JOIN;
	if (subquery->query->sortClause == NIL)
		return HGJ_HIDDEN_TIES;
	subquery->query = copyObject(subquery->query);
	if (!hgj_take_extreme(subquery->query))
		return HGJ_HIDDEN_IS_JOIN;
	subquery->optional = false;
	return look_at_aggregates(subquery);
}

/* Step 1. */
static HgjHidden
look_at_form(const SubLink *sublink, HgjSubquery *subquery)
{
	const Query *query = subquery->query;

	if (sublink->subLinkType == EXISTS_SUBLINK)
	{
		subquery->kind = HGJ_GIVES_EXISTENCE;
		subquery->query = hgj_simple_exists(query);
		if (subquery->query == NULL)
			return HGJ_HIDDEN_SHAPE;
		return hgj_refers_to_level(subquery->query->havingQual, 1) ||
			hgj_refers_to_level((Node *) subquery->query->targetList, 1) ?
			HGJ_HIDDEN_CORRELATION : HGJ_HIDDEN_IS_JOIN;
	}
	if (sublink->subLinkType != EXPR_SUBLINK || list_length(query->targetList) < 1)
		return HGJ_HIDDEN_SHAPE;
	return query->hasAggs || query->groupClause != NIL ? look_at_aggregates(subquery) :
		look_at_row(subquery);
}

/* Step 1: does GROUP BY name no more than the equalities do? */
static bool
repeats_keys(const Query *query, const List *correlations)
{
	ListCell   *lc;

	foreach(lc, query->groupClause)
	{
		const SortGroupClause *clause = lfirst(lc);
		Node	   *value = get_sortgroupclause_expr(lfirst(lc), query->targetList);
		bool		found = false;
		ListCell   *lc2;

		foreach(lc2, correlations)
		{
			const HgjCorrelation *correlation = lfirst(lc2);

			found |= equal(correlation->inner, value) &&
				correlation->group_operator == clause->eqop;
		}
		if (!found)
			return false;
	}
	return true;
}

/* Are there orders in which the rows of each key come together? */
static bool
can_be_sorted(const List *correlations)
{
	ListCell   *lc;

	foreach(lc, correlations)
		if (!OidIsValid(((const HgjCorrelation *) lfirst(lc))->sort_operator))
			return false;
	return true;
}

/*
 * Step 1: may there be two rows with one key of a unique index?  A snapshot of the whole transaction
 * sees a row that another one has removed since, and the row that this one has put in its place.
 */
bool
hgj_sees_two_versions(void)
{
	return IsolationUsesXactSnapshot() && TransactionIdIsValid(GetTopTransactionIdIfAny());
}

/* Steps 1 and 4, where the equalities are known. */
static HgjHidden
look_at_rows(const HgjSubquery *subquery)
{
	Query	   *query = subquery->query;
	Node	   *sorted;

	switch (subquery->kind)
	{
		case HGJ_GIVES_AGGREGATES:
			if (!repeats_keys(query, subquery->correlations))
				return HGJ_HIDDEN_SHAPE;
			return query->havingQual ? hgj_look_at_group(query->havingQual) : HGJ_HIDDEN_IS_JOIN;
		case HGJ_GIVES_EXISTENCE:
			return hgj_look_at_groups(query);
		case HGJ_GIVES_ROW:
			return hgj_is_single_row(query) && !hgj_sees_two_versions() ?
				HGJ_HIDDEN_IS_JOIN : HGJ_HIDDEN_ROWS;
		case HGJ_GIVES_FIRST:
			sorted = (Node *) get_sortgrouplist_exprs(query->sortClause, query->targetList);
			if (!can_be_sorted(subquery->correlations) || hgj_refers_to_level(sorted, 1))
				return HGJ_HIDDEN_CORRELATION;
			if (!hgj_is_first_of_ties(query))
				return HGJ_HIDDEN_TIES;
			return hgj_row_may_raise(sorted) ? HGJ_HIDDEN_RAISES : HGJ_HIDDEN_IS_JOIN;
	}
	return HGJ_HIDDEN_SHAPE;
}

/* May the subquery's rows be read whole, and its clauses be evaluated for all of them? */
HgjHidden
hgj_look_at_reading(const HgjRewriting *rewriting, const Query *query, List *clauses)
{
	if (hgj_row_may_raise((Node *) clauses))
		return HGJ_HIDDEN_RAISES;
	if (!hgj_reads_proven(rewriting, query))
		return HGJ_HIDDEN_READS;
	return hgj_is_permitted(query) ? HGJ_HIDDEN_IS_JOIN : HGJ_HIDDEN_PERMISSION;
}

/* What becomes of a subquery that depends on the level above it. */
HgjHidden
hgj_look_at_subquery(const HgjRewriting *rewriting, const Query *level, const SubLink *sublink,
					 HgjSubquery *subquery)
{
	Query	   *query = castNode(Query, sublink->subselect);
	HgjHidden	reason;

	memset(subquery, 0, sizeof(*subquery));
	subquery->query = query;
	reason = look_at_form(sublink, subquery);
	if (reason == HGJ_HIDDEN_IS_JOIN && contain_volatile_functions((Node *) query))
		reason = HGJ_HIDDEN_VOLATILE;
	if (reason == HGJ_HIDDEN_IS_JOIN && hgj_refers_above((Node *) query, 1))
		reason = HGJ_HIDDEN_LEVELS;
	if (reason == HGJ_HIDDEN_IS_JOIN)
		reason = look_at_clauses(level, subquery);
	if (reason == HGJ_HIDDEN_IS_JOIN)
		reason = look_at_rows(subquery);
	return reason == HGJ_HIDDEN_IS_JOIN ?
		hgj_look_at_reading(rewriting, subquery->query, subquery->rest) : reason;
}
