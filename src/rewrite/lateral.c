/*-------------------------------------------------------------------------
 *
 * lateral.c
 *	  Subqueries in FROM that run once for each row beside them: LATERAL.
 *
 *	  ... o LEFT JOIN LATERAL (SELECT sum(q) s, count(*) n FROM t WHERE t.k = o.k) x ON true
 *	  ... o LEFT JOIN (SELECT t.k, sum(q), count(*) FROM t GROUP BY t.k) x ON x.k = o.k
 *
 * PostgreSQL pulls up those that are plain joins.  Of the others, those with aggregates, GROUP BY
 * or LIMIT are looked at:
 *
 * 1. It stands in FROM, or right of an inner or a left join whose condition is TRUE and whose left
 *	  side has all columns that it depends on.  No outer join above it fills in NULLs for it:
 *	  without a group, a count is 0, and not NULL, as long as the row is there.
 * 2. It is of a form that a subquery in an expression may have (subquery.c), but for the number of
 *	  its columns.  Nothing else in FROM refers to it, unless it is right of a join: what depends on
 *	  it has to come behind.
 * 3. Its groups take its place (grouped.c).  Where it has a row for each row beside it, aggregates
 *	  without GROUP BY, the join becomes a left join; otherwise it stays what it was.
 * 4. Whoever refers to one of its columns gets the expression that has the column's value, as if
 *	  PostgreSQL had pulled it up.  Nobody may refer to its whole row, nor to a join's, and what is
 *	  returned is not grouped by sets of columns: equal expressions would be one of them.
 *	  A clause that may raise an error comes to rows of the join that other joins have not removed
 *	  yet, so that there must be none, and no level around reads such a value.  Of an inner join it
 *	  may come before the equality does, to groups of other rows, so that it is not taken at all.
 *	  If something around one of the columns might raise an error, or it is not a clause of WHERE or
 *	  of a join, the values are pinned to the rows (grouped.c, step 4).
 *	  Of a query that eager.c has made, no clause raises an error, and nothing around comes to its
 *	  values before they are returned.
 * 5. The groups are restricted (restrict.c) as those of other subqueries are (levels.c, step 8).
 *
 * The query is changed in place.  Memory: the current context.  No locks.
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

/* Where a subquery stands (step 1). */
typedef struct HgjLateral
{
	int			relation;		/* range table index of the subquery */
	JoinExpr   *join;			/* the join that it is the right side of; NULL: it stands in FROM */
	Node	   *beside;			/* what has all columns that it may depend on */
} HgjLateral;

/* References to the columns of a subquery (step 4). */
typedef struct HgjReferred
{
	int			relation;		/* range table index of the subquery */
	int			depth;			/* number of levels below the query that has it in FROM */
	bool		below;			/* whether there is one in another subquery */
	bool		found;			/* whether there is one */
	bool		returned;		/* whether there is one elsewhere than in clauses of WHERE and joins */
	bool		raises;			/* whether something around one may raise an error */
	List	   *values;			/* expressions, by column: what is put in the place of references */
} HgjReferred;

/*
 * Does it run once for each row beside it, and is of a form that PostgreSQL does not make a join
 * of?
 */
bool
hgj_is_lateral(const RangeTblEntry *rte)
{
	const Query *query = rte->subquery;

	return rte->rtekind == RTE_SUBQUERY && rte->lateral && !rte->security_barrier &&
		(query->hasAggs || query->groupClause || query->limitCount) &&
		hgj_refers_to_level((Node *) query, 1);
}

static bool
is_true(const Node *quals)
{
	return quals == NULL || (IsA(quals, Const) && !((const Const *) quals)->constisnull &&
							 DatumGetBool(((const Const *) quals)->constvalue));
}

/* Note a place where a subquery may be joined, if it is one, or why it may not. */
static void
look_at_place(HgjRewriting *rewriting, const Query *query, Node *node, JoinExpr *join, bool fits,
			  List **places)
{
	HgjLateral *place;
	int			relation = IsA(node, RangeTblRef) ? ((RangeTblRef *) node)->rtindex : 0;

	if (relation == 0 || !hgj_is_lateral(list_nth(query->rtable, relation - 1)))
		return;
	if (!fits)
	{
		(void) hgj_note_found(rewriting, HGJ_HIDDEN_PLACE);
		return;
	}
	place = palloc(sizeof(HgjLateral));
	place->relation = relation;
	place->join = join;
	place->beside = join ? join->larg : (Node *) query->jointree;
	*places = lappend(*places, place);
}

/* Step 1.  kept: no outer join above fills in NULLs */
static void
find_places(HgjRewriting *rewriting, const Query *query, Node *node, bool kept, List **places)
{
	JoinExpr   *join = (JoinExpr *) node;
	bool		inner;
	bool		left;
	ListCell   *lc;

	check_stack_depth();
	if (IsA(node, FromExpr))
	{
		foreach(lc, ((FromExpr *) node)->fromlist)
		{
			look_at_place(rewriting, query, lfirst(lc), NULL, node == (Node *) query->jointree,
						  places);
			find_places(rewriting, query, lfirst(lc), kept, places);
		}
		return;
	}
	if (!IsA(node, JoinExpr))
		return;
	inner = join->jointype == JOIN_INNER;
	left = join->jointype == JOIN_LEFT;
	find_places(rewriting, query, join->larg, kept && (inner || left), places);
	find_places(rewriting, query, join->rarg, kept && (inner || join->jointype == JOIN_RIGHT), places);
	look_at_place(rewriting, query, join->larg, NULL, false, places);
	look_at_place(rewriting, query, join->rarg, join,
				  kept && (inner || left) && is_true(join->quals), places);
}

/* Is the variable a column of the subquery's? */
static bool
is_referred(const HgjReferred *referred, const Var *var)
{
	return (int) var->varlevelsup == referred->depth && var->varno == referred->relation;
}

/* Look for references. */
static bool
find_referred(Node *node, void *context)
{
	HgjReferred *referred = context;
	bool		stop;

	if (node == NULL)
		return false;
	if (IsA(node, Var) && is_referred(referred, (Var *) node))
	{
		referred->found = true;
		referred->below |= referred->depth > 0;
	}
	if (!IsA(node, Query))
		return expression_tree_walker(node, find_referred, context);
	check_stack_depth();
	referred->depth++;
	stop = query_tree_walker((Query *) node, find_referred, context, QTW_IGNORE_JOINALIASES);
	referred->depth--;
	return stop;
}

/* Does an expression of the level refer to the subquery? */
static bool
refers(HgjReferred *referred, Node *expression)
{
	referred->found = false;
	(void) find_referred(expression, referred);
	return referred->found;
}

/* Step 2: does something else in FROM refer to the subquery? */
static bool
is_read_in_from(HgjReferred *referred, const Query *query)
{
	ListCell   *lc;

	referred->found = false;
	foreach(lc, query->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (!HGJ_IS_GROUP_ENTRY(rte))
			(void) range_table_entry_walker(rte, find_referred, referred, QTW_IGNORE_JOINALIASES);
	}
	return referred->found;
}

/* Step 4: put the values in the place of the columns.  Queries inside are changed in place. */
static Node *
replace_referred(Node *node, void *context)
{
	HgjReferred *referred = context;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var) && is_referred(referred, (Var *) node))
	{
		Node	   *value = copyObject(list_nth(referred->values, ((Var *) node)->varattno - 1));

		IncrementVarSublevelsUp(value, referred->depth, 0);
		return value;
	}
	if (!IsA(node, Query))
		return expression_tree_mutator(node, replace_referred, context);
	check_stack_depth();
	referred->depth++;
	(void) query_tree_mutator((Query *) node, replace_referred, context, QTW_DONT_COPY_QUERY);
	referred->depth--;
	return node;
}

/* Step 4: in the conditions of what the level joins. */
static void
replace_in_joins(HgjReferred *referred, Node *node)
{
	Node	  **quals = IsA(node, FromExpr) ? &((FromExpr *) node)->quals : &((JoinExpr *) node)->quals;
	ListCell   *lc;

	check_stack_depth();
	if (IsA(node, RangeTblRef))
		return;
	*quals = replace_referred(*quals, referred);
	if (IsA(node, JoinExpr))
	{
		replace_in_joins(referred, ((JoinExpr *) node)->larg);
		replace_in_joins(referred, ((JoinExpr *) node)->rarg);
		return;
	}
	foreach(lc, ((FromExpr *) node)->fromlist)
		replace_in_joins(referred, lfirst(lc));
}

/*
 * Step 4: in the level, and all inside of it.  What it joins stays in its place, and so do the
 * queries inside: others have found them there.
 */
static void
replace_in_level(HgjReferred *referred, Query *query)
{
	ListCell   *lc;

	query->targetList = (List *) replace_referred((Node *) query->targetList, referred);
	query->havingQual = replace_referred(query->havingQual, referred);
	replace_in_joins(referred, (Node *) query->jointree);
	foreach(lc, query->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);
		List	  **grouped = HGJ_GROUP_EXPRESSIONS(rte);

		if (grouped)
			*grouped = (List *) replace_referred((Node *) *grouped, referred);
		(void) replace_referred((Node *) rte->subquery, referred);
		rte->tablesample = (TableSampleClause *) replace_referred((Node *) rte->tablesample, referred);
		rte->functions = (List *) replace_referred((Node *) rte->functions, referred);
		rte->tablefunc = (TableFunc *) replace_referred((Node *) rte->tablefunc, referred);
		rte->values_lists = (List *) replace_referred((Node *) rte->values_lists, referred);
	}
}

/* Step 2: per column of the subquery, something that has such values. */
static List *
any_values(const Query *subquery)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, subquery->targetList)
	{
		Query	   *single = makeNode(Query);
		SubLink    *sublink = hgj_make_sublink(EXPR_SUBLINK, NULL, single);

		single->targetList = list_make1(lfirst(lc));
		result = lappend(result, hgj_stand_in((Node *) sublink, sublink));
	}
	return result;
}

/* Step 4: would one of these expressions of the level that refer to the subquery raise errors? */
static bool
one_may_raise(HgjReferred *referred, List *expressions)
{
	ListCell   *lc;

	foreach(lc, expressions)
	{
		if (refers(referred, lfirst(lc)) &&
			(checkExprHasSubLink(lfirst(lc)) ||
			 hgj_row_may_raise(replace_referred(lfirst(lc), referred))))
			return true;
	}
	return false;
}

/* Step 4: may a clause of WHERE or of a join? */
static bool
a_clause_may_raise(HgjReferred *referred, Node *node)
{
	List	   *clauses = NIL;
	ListCell   *lc;

	check_stack_depth();
	if (IsA(node, RangeTblRef))
		return false;
	hgj_split_clauses(IsA(node, FromExpr) ? ((FromExpr *) node)->quals : ((JoinExpr *) node)->quals,
					  &clauses);
	if (one_may_raise(referred, clauses))
		return true;
	if (IsA(node, JoinExpr))
		return a_clause_may_raise(referred, ((JoinExpr *) node)->larg) ||
			a_clause_may_raise(referred, ((JoinExpr *) node)->rarg);
	foreach(lc, ((FromExpr *) node)->fromlist)
		if (a_clause_may_raise(referred, lfirst(lc)))
			return true;
	return false;
}

/* Is it looked at elsewhere than in clauses of WHERE and joins? */
static bool
is_returned(HgjReferred *referred, const Query *query)
{
	ListCell   *lc;

	foreach(lc, query->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);
		List	  **grouped = HGJ_GROUP_EXPRESSIONS(rte);

		if (grouped && refers(referred, (Node *) *grouped))
			return true;
	}
	return refers(referred, (Node *) query->targetList) || refers(referred, query->havingQual);
}

/*
 * Step 4: is the subquery joined to one relation, and are there no other clauses with subqueries, of
 * which PostgreSQL may make joins?
 */
static bool
is_alone(HgjReferred *referred, const Query *query)
{
	Bitmapset  *relations = hgj_relations_of((Node *) query->jointree);
	List	   *clauses = NIL;
	int			relation = -1;
	int			n = 0;
	ListCell   *lc;

	while ((relation = bms_next_member(relations, relation)) >= 0)
		n += list_nth_node(RangeTblEntry, query->rtable, relation - 1)->rtekind != RTE_JOIN;
	hgj_split_clauses(query->jointree->quals, &clauses);
	foreach(lc, clauses)
		if (checkExprHasSubLink(lfirst(lc)) && !refers(referred, lfirst(lc)))
			return false;
	return n == 2;
}

/* Step 3: is it joined by an inner join, as it has no row where it reads none? */
static bool
is_inner(const HgjLateral *place, const Query *subquery)
{
	return !(subquery->hasAggs && subquery->groupClause == NIL) &&
		(place->join == NULL || place->join->jointype == JOIN_INNER);
}

/* Step 4, when nobody refers to more than columns.  inner: it is joined by an inner join */
static HgjHidden
look_around(const HgjRewriting *rewriting, const Query *query, HgjReferred *referred, bool inner)
{
	bool		clause_raises = a_clause_may_raise(referred, (Node *) query->jointree);
	bool		value_raises = one_may_raise(referred, query->targetList) ||
		one_may_raise(referred, list_make1(query->havingQual));

	referred->returned = is_returned(referred, query);
	referred->raises = clause_raises || value_raises || referred->below;
	if (referred->returned && query->groupingSets)
		return HGJ_HIDDEN_PLACE;
	if ((clause_raises && (inner || !is_alone(referred, query))) ||
		(value_raises && rewriting->around && !rewriting->is_eager))
		return HGJ_HIDDEN_RAISES;
	return HGJ_HIDDEN_IS_JOIN;
}

/* Steps 1, 2 and 4; subquery is what hgj_look_at_subquery() finds. */
static HgjHidden
look_at_lateral(const HgjRewriting *rewriting, const Query *query, const HgjLateral *place,
				HgjReferred *referred, HgjSubquery *subquery)
{
	const RangeTblEntry *rte = list_nth(query->rtable, place->relation - 1);
	SubLink    *sublink = hgj_make_sublink(EXPR_SUBLINK, NULL, rte->subquery);
	HgjHidden	reason;

	if (checkExprHasSubLink((Node *) rte->subquery->targetList))
		return HGJ_HIDDEN_SHAPE;
	if ((place->join == NULL && is_read_in_from(referred, query)) ||
		hgj_refers_to_whole(query, bms_make_singleton(place->relation)))
		return HGJ_HIDDEN_PLACE;
	(void) query_tree_walker((Query *) query, find_referred, referred, QTW_IGNORE_JOINALIASES);
	reason = hgj_look_at_subquery(rewriting, query, sublink, subquery);
	if (reason != HGJ_HIDDEN_IS_JOIN)
		return reason;
	if (!bms_is_subset(hgj_operands_of(subquery), hgj_relations_of(place->beside)))
		return HGJ_HIDDEN_PLACE;
	referred->values = any_values(rte->subquery);
	return look_around(rewriting, query, referred, is_inner(place, rte->subquery));
}

/* Step 3: what the relation stands in by a comma; earlier subqueries may have put it below a join. */
static FromExpr *
from_with(Node *node, int relation, ListCell **cell)
{
	FromExpr   *from = NULL;
	ListCell   *lc;

	check_stack_depth();
	if (IsA(node, JoinExpr))
	{
		from = from_with(((JoinExpr *) node)->larg, relation, cell);
		return from ? from : from_with(((JoinExpr *) node)->rarg, relation, cell);
	}
	if (!IsA(node, FromExpr))
		return NULL;
	foreach(lc, ((FromExpr *) node)->fromlist)
	{
		*cell = lc;
		if (IsA(lfirst(lc), RangeTblRef) && ((RangeTblRef *) lfirst(lc))->rtindex == relation)
			return (FromExpr *) node;
		from = from_with(lfirst(lc), relation, cell);
		if (from)
			return from;
	}
	return NULL;
}

/* Step 3: the groups are joined where the subquery was. */
static void
put_groups(Query *query, const HgjLateral *place, int groups, int join, List *conditions,
		   const HgjSubquery *subquery)
{
	FromExpr   *from;
	ListCell   *cell = NULL;

	if (place->join)
	{
		place->join->rarg = (Node *) hgj_refer_to(groups);
		place->join->quals = (Node *) make_ands_explicit(conditions);
		if (join > 0)
			place->join->jointype = list_nth_node(RangeTblEntry, query->rtable, join - 1)->jointype = JOIN_LEFT;
		return;
	}
	from = from_with((Node *) query->jointree, place->relation, &cell);
	if (from == NULL)
		elog(ERROR, "a subquery in FROM is gone");
	if (join == 0)
	{
		lfirst(cell) = hgj_refer_to(groups);
		hgj_add_clauses(query, conditions);
		return;
	}
	from->fromlist = list_delete_cell(from->fromlist, cell);
	hgj_attach_groups(query, NULL, groups, join, conditions, subquery);
}

/* The subquery is not read any more; its entry keeps the others' numbers as they are. */
static void
empty_entry(RangeTblEntry *rte)
{
	rte->rtekind = RTE_RESULT;
	rte->subquery = NULL;
	rte->lateral = false;
}

/* Steps 3 to 5. */
static void
join_lateral(HgjRewriting *rewriting, Query *query, const HgjLateral *place, HgjReferred *referred,
			 HgjSubquery *subquery)
{
	RangeTblEntry *rte = list_nth(query->rtable, place->relation - 1);
	bool		inner = is_inner(place, rte->subquery);
	int			join = inner ? 0 : place->join ? place->join->rtindex : hgj_add_left_join(query);
	List	   *conditions;
	int			groups;

	subquery->pinned = !rewriting->is_eager && (referred->raises || referred->returned);
	subquery->optional &= !inner;
	if (rewriting->attempts.restricts && !referred->raises &&
		(!referred->returned || rewriting->around == NULL))
		hgj_restrict_subquery(rewriting, query, subquery);
	hgj_narrow_first_rows(rewriting, subquery);
	empty_entry(rte);
	groups = hgj_add_groups(rewriting, query, join, subquery, &conditions, &referred->values);
	replace_in_level(referred, query);
	put_groups(query, place, groups, join, conditions, subquery);
}

/* Note that those of a level stay. */
void
hgj_note_laterals(HgjRewriting *rewriting, const Query *query)
{
	ListCell   *lc;

	foreach(lc, query->rtable)
		if (hgj_is_lateral(lfirst_node(RangeTblEntry, lc)))
			(void) hgj_note_found(rewriting, HGJ_HIDDEN_PLACE);
}

/* Join the subqueries of the level that are LATERAL, where that can be. */
void
hgj_join_laterals(HgjRewriting *rewriting, Query *query)
{
	List	   *places = NIL;
	ListCell   *lc;

	find_places(rewriting, query, (Node *) query->jointree, true, &places);
	foreach(lc, places)
	{
		const HgjLateral *place = lfirst(lc);
		HgjReferred referred = {.relation = place->relation};
		HgjSubquery subquery;
		HgjHidden	reason = rewriting->order_matters ? HGJ_HIDDEN_RAISES :
			look_at_lateral(rewriting, query, place, &referred, &subquery);

		if (hgj_note_found(rewriting, reason))
			join_lateral(rewriting, query, place, &referred, &subquery);
	}
}
