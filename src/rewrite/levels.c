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
 *	  only for the arguments of its aggregates: everything else there sees groups, and so does
 *	  HAVING.  ON of inner joins is WHERE, unless an outer join is above them.  ON of an outer
 *	  join is evaluated for rows of the side that it fills in NULLs for, so what depends on these
 *	  alone is joined to that side.
 * 3. FOR UPDATE, UPDATE, DELETE and MERGE evaluate clauses again for a row that another
 *	  transaction has changed meanwhile, with the new row.  A subquery would see that row,
 *	  and a join would not, so there the levels stay as they are, and all inside them.
 *
 * 4. A clause of WHERE that can be decided by a group alone may be looked at for each group,
 *	  those that no row asks for among them.  If it might raise an error then, its value is
 *	  pinned to the rows around it (grouped.c, step 4).  So is one of the target list: whoever
 *	  reads it may have such a clause.
 * 5. What PostgreSQL makes joins of itself is left to it: EXISTS and NOT EXISTS as clauses of
 *	  WHERE, and IN that does not refer to the row.  Other IN, NOT IN, ANY and ALL become what it
 *	  makes joins of, or groups (quantified.c), if all subqueries of that can be joins, or run
 *	  once for the query.  A value of such an expression is always pinned.
 * 6. Conditions by which NULLs match become equalities (null_keys.c), in WHERE and ON, and joins by
 *	  one equality or another become several (disjunctions.c).
 * 7. As a join, a subquery is evaluated later than PostgreSQL does.  If the order of clauses matters
 *	  (order.c), all subqueries in WHERE and ON stay.
 * 8. The groups of a subquery may leave out those whose rows WHERE removes (restrict.c).  Whoever
 *	  looks at its value before that sees another one, so it must not raise an error.  That is
 *	  so of clauses of WHERE, and of the target list, by which PostgreSQL may sort below a join;
 *	  what is around a subquery in FROM whose target list has it is not known.
 * 9. A subquery in FROM that depends on the row beside it becomes a join before the others of its
 *	  level do (lateral.c): they may refer to its columns.
 * 10. WITH queries that are read several times may become subqueries first (repeated.c).
 * 11. A level that groups may make its groups before it joins (eager.c).
 * 12. Where conditions call volatile functions, it would be noticed that rows come to them in
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
#include "planner/declines.h"
#include "rewrite/hidden.h"
#include "rewrite/rewriteManip.h"

/* Where a walk through the expressions of a level is. */
typedef struct HgjPlace
{
	HgjRewriting *rewriting;
	Query	   *query;			/* the level */
	bool		sees_rows;		/* the place sees the rows of FROM (step 2) */
	Node	   *clause;			/* clause of WHERE that is walked through, or NULL */
	Node	   *value;			/* value of the target list, or argument of an aggregate in it, that is
								 * walked through, or NULL */
	HgjNulls	nulls;			/* what NULL counts as there */
	Node	  **side;			/* side of an outer join whose ON it is, or NULL (step 2) */
	bool		restricts;		/* WHERE restricts what the place has to look at (step 8) */
} HgjPlace;

/*
 * Conditions of joins, and of WHERE: is there one by which NULLs match, or that has one equality or
 * another?  context is not used.
 */
static bool
find_conditions(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, FromExpr) || IsA(node, JoinExpr) || IsA(node, List) || is_andclause(node))
		return expression_tree_walker(node, find_conditions, context);
	return hgj_matches_nulls(node) || hgj_is_either(node);
}

/*
 * Are there subqueries in the expressions of this level, or such conditions, or one that depends on
 * the row beside it, or any of these inside?
 */
static bool
has_candidates(const Query *query)
{
	ListCell   *lc;

	if (query->hasSubLinks || hgj_has_repeatable(query) || hgj_may_group_early(query) ||
		find_conditions((Node *) query->jointree, NULL))
		return true;
	check_stack_depth();
	foreach(lc, query->rtable)
	{
		const RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (rte->rtekind == RTE_SUBQUERY && (hgj_is_lateral(rte) || has_candidates(rte->subquery)))
			return true;
	}
	foreach(lc, query->cteList)
		if (has_candidates((const Query *) lfirst_node(CommonTableExpr, lc)->ctequery))
			return true;
	return false;
}

/* Is it one that runs once for each row, and is of no form that is looked at? */
static bool
has_no_join(const SubLink *sublink)
{
	return (sublink->subLinkType == ARRAY_SUBLINK || sublink->subLinkType == ROWCOMPARE_SUBLINK) &&
		hgj_refers_to_level(sublink->subselect, 1);
}

/* Does FROM have one that runs once for each row beside it? */
static bool
has_lateral(const Query *query)
{
	ListCell   *lc;

	foreach(lc, query->rtable)
		if (hgj_is_lateral(lfirst_node(RangeTblEntry, lc)))
			return true;
	return false;
}

static bool find_hidden(Node *node, void *context);

/*
 * find_hidden() for WHERE.  A subquery that PostgreSQL makes a join of is left to it (step 5), but may
 * have others inside.
 */
static bool
find_in_where(Node *where)
{
	ListCell   *lc;

	if (where == NULL)
		return false;
	if (is_andclause(where))
	{
		foreach(lc, ((BoolExpr *) where)->args)
			if (find_in_where(lfirst(lc)))
				return true;
		return false;
	}
	if (!hgj_is_noting() && hgj_is_join_already(where))
		return expression_tree_walker(is_notclause(where) ? (Node *) get_notclausearg(where) : where,
									  find_hidden, NULL);
	return find_hidden(where, NULL);
}

/* What has no join is looked for only where it is to be said. */
static bool
find_hidden(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, FromExpr))
		return find_hidden((Node *) ((FromExpr *) node)->fromlist, context) ||
			find_in_where(((FromExpr *) node)->quals);
	if (IsA(node, SubLink) && (hgj_may_be_hidden((SubLink *) node) ||
							   (hgj_is_noting() && has_no_join((SubLink *) node))))
		return true;
	if (IsA(node, Query))
		return has_lateral((Query *) node) || hgj_has_repeatable((Query *) node) ||
			hgj_may_group_early((Query *) node) ||
			find_conditions((Node *) ((Query *) node)->jointree, NULL) ||
			query_tree_walker((Query *) node, find_hidden, context, 0);
	return expression_tree_walker(node, find_hidden, context);
}

/* Is there something that could be a join?  The answer takes next to no time where none is. */
bool
hgj_may_hide_joins(const Query *query)
{
	return has_candidates(query) && find_hidden((Node *) query, NULL);
}

/* Does a subquery in a place that is no WHERE stay what it is for PostgreSQL, too? */
static bool
stays(const SubLink *sublink)
{
	return hgj_may_be_hidden(sublink) && hgj_refers_to_level(sublink->subselect, 1) &&
		!(sublink->subLinkType == EXISTS_SUBLINK &&
		  hgj_is_pulled_up(castNode(Query, sublink->subselect)));
}

/* Note that the subqueries in these expressions stay what they are. */
static bool
note_all(Node *node, void *context)
{
	HgjRewriting *rewriting = context;

	if (node == NULL)
		return false;
	if (IsA(node, SubLink) && stays((SubLink *) node))
		rewriting->reasons = lappend_int(rewriting->reasons, HGJ_HIDDEN_PLACE);
	if (!IsA(node, Query))
		return expression_tree_walker(node, note_all, context);
	hgj_note_laterals(rewriting, (Query *) node);
	return query_tree_walker((Query *) node, note_all, context, 0);
}

/* Step 5: subqueries that all have to be joins, or to run once for the query. */
typedef struct HgjTrial
{
	const HgjPlace *place;		/* where the expression stands */
	HgjHidden	reason;			/* why one is neither */
} HgjTrial;

/* A subquery in its place: below ON, its operands have to be of one side (step 2). */
static HgjHidden
look_at(const HgjPlace *place, const SubLink *sublink, HgjSubquery *subquery)
{
	HgjHidden	reason = hgj_look_at_subquery(place->rewriting, place->query, sublink,
												  subquery);

	if (reason == HGJ_HIDDEN_IS_JOIN && place->side &&
		!bms_is_subset(hgj_operands_of(subquery), hgj_relations_of(*place->side)))
		return HGJ_HIDDEN_PLACE;
	return reason;
}

static HgjHidden
look_at_single_run(const HgjRewriting *rewriting, Query *query)
{
	HgjHidden	reason = hgj_look_at_aggregates((Node *) query->targetList);

	return reason == HGJ_HIDDEN_IS_JOIN ?
		hgj_look_at_reading(rewriting, query, list_make1(query->jointree->quals)) : reason;
}

static bool
try_node(Node *node, void *context)
{
	HgjTrial   *trial = context;
	SubLink    *sublink = (SubLink *) node;
	HgjSubquery subquery;

	if (node == NULL)
		return false;
	if (!IsA(node, SubLink))
		return expression_tree_walker(node, try_node, context);
	trial->reason = hgj_refers_to_level(sublink->subselect, 1) ?
		look_at(trial->place, sublink, &subquery) :
		look_at_single_run(trial->place->rewriting, castNode(Query, sublink->subselect));
	return trial->reason != HGJ_HIDDEN_IS_JOIN;
}

/* Step 5: of an expression, or of a list of clauses. */
static HgjHidden
look_at_all(const HgjPlace *place, Node *expression)
{
	HgjTrial	trial = {place, HGJ_HIDDEN_IS_JOIN};

	(void) try_node(expression, &trial);
	return trial.reason;
}

/* What becomes of a subquery, with what is true of the whole query (step 12). */
bool
hgj_note_found(HgjRewriting *rewriting, HgjHidden reason)
{
	if (reason == HGJ_HIDDEN_IS_JOIN && rewriting->calls_volatile)
		reason = HGJ_HIDDEN_VOLATILE;
	rewriting->reasons = lappend_int(rewriting->reasons, reason);
	rewriting->njoins += reason == HGJ_HIDDEN_IS_JOIN;
	return reason == HGJ_HIDDEN_IS_JOIN;
}

/* Join a subquery that has been looked at. */
static Node *
join_found(HgjPlace *place, HgjSubquery *subquery)
{
	if (place->rewriting->attempts.restricts && place->restricts)
		hgj_restrict_subquery(place->rewriting, place->query, subquery);
	hgj_narrow_first_rows(place->rewriting, subquery);
	return (Node *) hgj_join_subquery(place->rewriting, place->query, place->side, subquery);
}

/* Step 5: join the subqueries of an expression that have been looked at.  context: the place */
static Node *
join_all(Node *node, void *context)
{
	HgjPlace   *place = context;
	HgjSubquery subquery;

	if (node == NULL)
		return NULL;
	if (!IsA(node, SubLink))
		return expression_tree_mutator(node, join_all, context);
	if (!hgj_refers_to_level(((SubLink *) node)->subselect, 1))
		return node;
	(void) hgj_look_at_subquery(place->rewriting, place->query, (SubLink *) node, &subquery);
	subquery.pinned = true;
	return join_found(place, &subquery);
}

static Node *replace_mutator(Node *node, void *context);

/* A subquery that stays; what ANY and ALL compare may have others in it. */
static Node *
keep_subquery(const HgjPlace *place, SubLink *sublink)
{
	HgjPlace	inside = *place;

	inside.nulls = HGJ_NULL_IS_NULL;
	return expression_tree_mutator((Node *) sublink, replace_mutator, &inside);
}

/* A subquery that may raise errors: it is looked at as a guarded one (guarded.c). */
static HgjHidden
look_at_guarded(const HgjPlace *place, SubLink *sublink, HgjSubquery *subquery)
{
	Query	   *query = castNode(Query, sublink->subselect);
	List	   *targetlist = query->targetList;
	Node	   *where = query->jointree->quals;
	SubLink    *written;
	Aggref	   *guard;
	HgjHidden	reason;

	if (sublink->subLinkType != EXPR_SUBLINK || place->rewriting->calls_volatile)
		return HGJ_HIDDEN_RAISES;
	written = copyObject(sublink);
	guard = hgj_guard_subquery(query);
	reason = guard ? look_at(place, sublink, subquery) : HGJ_HIDDEN_RAISES;
	if (reason == HGJ_HIDDEN_IS_JOIN)
	{
		subquery->guard = guard;
		subquery->written = written;
		return reason;
	}
	query->targetList = targetlist;
	query->jointree->quals = where;
	return HGJ_HIDDEN_RAISES;
}

/* A subquery of the level: an expression in its place, or itself. */
static Node *
replace_subquery(HgjPlace *place, SubLink *sublink)
{
	HgjRewriting *rewriting = place->rewriting;
	HgjSubquery subquery;
	Node	   *expression;
	HgjHidden	reason;
	bool		raises;

	if (!place->sees_rows)
	{
		if (stays(sublink))
			(void) hgj_note_found(rewriting, HGJ_HIDDEN_PLACE);
		return keep_subquery(place, sublink);
	}
	expression = hgj_as_existence(place->query, sublink, place->nulls);
	reason = expression ? look_at_all(place, expression) :
		look_at(place, sublink, &subquery);
	if (reason == HGJ_HIDDEN_RAISES && expression == NULL)
		reason = look_at_guarded(place, sublink, &subquery);
	if (!hgj_note_found(rewriting, reason))
		return keep_subquery(place, sublink);
	raises = hgj_row_may_raise(hgj_stand_in(place->clause ? place->clause : place->value, sublink));
	place->restricts = !raises && place->side == NULL &&
		(place->clause || rewriting->around == NULL);
	if (expression)
		return join_all(expression, place);
	subquery.pinned = raises || place->clause == NULL;
	return join_found(place, &subquery);
}

/* An aggregate of the level: arguments and FILTER see rows, what percentile_cont() is given not. */
static Node *
replace_in_aggregate(HgjPlace *place, const Aggref *aggref)
{
	HgjPlace	inside = *place;
	Aggref	   *result = makeNode(Aggref);

	inside.sees_rows = true;
	*result = *aggref;
	inside.value = (Node *) aggref->args;
	result->args = (List *) replace_mutator((Node *) aggref->args, &inside);
	result->aggdirectargs = (List *) replace_mutator((Node *) aggref->aggdirectargs, place);
	inside.value = (Node *) aggref->aggfilter;
	inside.nulls = HGJ_NULL_IS_FALSE;
	result->aggfilter = (Expr *) replace_mutator((Node *) aggref->aggfilter, &inside);
	return (Node *) result;
}

/* A condition of CASE, and what it has for a result. */
static Node *
replace_in_when(HgjPlace *place, const CaseWhen *when)
{
	HgjPlace	inside = *place;
	CaseWhen   *result = makeNode(CaseWhen);

	*result = *when;
	inside.nulls = HGJ_NULL_IS_NULL;
	result->result = (Expr *) replace_mutator((Node *) when->result, &inside);
	inside.nulls = HGJ_NULL_IS_FALSE;
	result->expr = (Expr *) replace_mutator((Node *) when->expr, &inside);
	return (Node *) result;
}

static Node *
replace_mutator(Node *node, void *context)
{
	HgjPlace   *place = context;
	HgjPlace	inside;

	/* those inside of subqueries have had their turn (step 1) */
	if (node == NULL || IsA(node, Query))
		return node;
	check_stack_depth();
	if (IsA(node, SubLink) && hgj_may_be_hidden((SubLink *) node))
		return replace_subquery(place, (SubLink *) node);
	if (IsA(node, SubLink) && has_no_join((SubLink *) node))
		(void) hgj_note_found(place->rewriting, HGJ_HIDDEN_SHAPE);
	if (IsA(node, Aggref) && !place->sees_rows && ((Aggref *) node)->agglevelsup == 0)
		return replace_in_aggregate(place, (Aggref *) node);
	if (IsA(node, CaseWhen))
		return replace_in_when(place, (CaseWhen *) node);
	inside = *place;
	if (IsA(node, TargetEntry) && place->value == NULL)
		inside.value = (Node *) ((TargetEntry *) node)->expr;
	if (!is_andclause(node) && !is_orclause(node))
		inside.nulls = HGJ_NULL_IS_NULL;
	return expression_tree_mutator(node, replace_mutator, &inside);
}

/* Step 5: a clause of WHERE that PostgreSQL makes a join of, if it is written otherwise; or NULL. */
static Node *
as_join(HgjPlace *place, Node *clause)
{
	List	   *clauses = hgj_as_join_clauses(place->query, clause);
	ListCell   *lc;

	if (clauses == NIL || look_at_all(place, (Node *) clauses) != HGJ_HIDDEN_IS_JOIN)
		return NULL;
	if (!hgj_note_found(place->rewriting, HGJ_HIDDEN_IS_JOIN))
		return clause;
	place->restricts = place->side == NULL;
	foreach(lc, clauses)
		if (!hgj_is_join_already(lfirst(lc)))
			lfirst(lc) = join_all(lfirst(lc), place);
	return (Node *) make_ands_explicit(clauses);
}

/* Note that the subqueries in a clause stay, by step 7. */
static bool
note_raising(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubLink) && hgj_may_be_hidden((SubLink *) node))
		(void) hgj_note_found(context, HGJ_HIDDEN_RAISES);
	return expression_tree_walker(node, note_raising, context);
}

/*
 * Step 5: a clause of WHERE that PostgreSQL makes a join of, and would not have where it was
 * written, in HAVING.  It stays a test of each group, as it was there, if the subquery cannot be
 * read whole.
 */
static Node *
leave_to_planner(HgjPlace *place, Node *clause)
{
	return hgj_note_found(place->rewriting, look_at_all(place, clause)) ? clause :
		(Node *) hgj_test_truth((Expr *) clause, IS_TRUE);
}

/* The clauses of WHERE, or ON, one by one (steps 4 to 7). */
static Node *
replace_in_where(HgjPlace *place, Node *where)
{
	Node	   *join;
	ListCell   *lc;

	if (where && is_andclause(where))
	{
		foreach(lc, ((BoolExpr *) where)->args)
			lfirst(lc) = replace_in_where(place, lfirst(lc));
		return where;
	}
	if (where == NULL)
		return where;
	if (hgj_is_join_already(where))
	{
		where = IsA(where, SubLink) ? keep_subquery(place, (SubLink *) where) : where;
		return list_member_ptr(place->rewriting->split, place->query) ?
			leave_to_planner(place, where) : where;
	}
	join = place->rewriting->calls_volatile ? NULL : hgj_as_equalities(place->query,
																			   place->rewriting->around,
																			   where);
	if (join)
	{
		place->rewriting->njoins++;
		return join;
	}
	if (place->rewriting->order_matters)
	{
		(void) note_raising(where, place->rewriting);
		return where;
	}
	join = as_join(place, where);
	if (join)
		return join;
	place->clause = where;
	place->nulls = HGJ_NULL_IS_FALSE;
	where = replace_mutator(where, place);
	place->clause = NULL;
	place->nulls = HGJ_NULL_IS_NULL;
	return where;
}

/* Step 12: context is not used. */
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

/* Step 2: what inner joins compare by subqueries is a matter of WHERE. */
static void
move_to_where(Query *query, JoinExpr *join)
{
	List	   *clauses = NIL;
	List	   *moved = NIL;
	List	   *stay = NIL;
	ListCell   *lc;

	hgj_split_clauses(join->quals, &clauses);
	foreach(lc, clauses)
	{
		if (checkExprHasSubLink(lfirst(lc)))
			moved = lappend(moved, lfirst(lc));
		else
			stay = lappend(stay, lfirst(lc));
	}
	if (moved == NIL)
		return;
	/* an inner join's condition may be TRUE, but not be missing */
	join->quals = (Node *) make_ands_explicit(stay);
	hgj_add_clauses(query, moved);
}

/* Step 2: conditions of joins, from the inside out.  inner: no outer join is above them. */
static void
replace_in_joins(HgjPlace *place, Node *node, bool inner)
{
	JoinExpr   *join = (JoinExpr *) node;
	HgjPlace	inside = *place;
	bool		fills_right;
	ListCell   *lc;

	check_stack_depth();
	if (IsA(node, FromExpr))
	{
		foreach(lc, ((FromExpr *) node)->fromlist)
			replace_in_joins(place, lfirst(lc), inner);
		return;
	}
	if (!IsA(node, JoinExpr))
		return;
	fills_right = join->jointype == JOIN_LEFT;
	replace_in_joins(place, join->larg, inner && (join->jointype == JOIN_INNER || fills_right));
	replace_in_joins(place, join->rarg,
					 inner && (join->jointype == JOIN_INNER || join->jointype == JOIN_RIGHT));
	if (join->jointype == JOIN_INNER && inner)
		move_to_where(place->query, join);
	inside.side = fills_right ? &join->rarg : &join->larg;
	inside.sees_rows = fills_right || join->jointype == JOIN_RIGHT;
	/* PostgreSQL has no full join by other conditions than equalities, and says so */
	if (join->jointype == JOIN_FULL)
		(void) note_all(join->quals, place->rewriting);
	else
		join->quals = replace_in_where(&inside, join->quals);
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

/* Is it a level whose rows are not looked at again (step 3)? */
static bool
is_read_once(const Query *query)
{
	return (query->commandType == CMD_SELECT || query->commandType == CMD_INSERT) &&
		query->rowMarks == NIL;
}

/*
 * Step 2: split the levels that aggregate.  A subquery that depends on the row around it stays
 * whole, as it is looked for in that form.  context: HgjRewriting
 */
static bool
split_levels(Node *node, void *context)
{
	HgjRewriting *rewriting = context;

	if (node == NULL)
		return false;
	check_stack_depth();
	if (IsA(node, SubLink) && hgj_refers_to_level(((SubLink *) node)->subselect, 1))
	{
		Query	   *subquery = castNode(Query, ((SubLink *) node)->subselect);

		hgj_flatten_groups(subquery);
		return split_levels(((SubLink *) node)->testexpr, context) ||
			query_tree_walker(subquery, split_levels, context, 0);
	}
	if (!IsA(node, Query))
		return expression_tree_walker(node, split_levels, context);
	if (!is_read_once((Query *) node))
		return false;
	hgj_flatten_groups((Query *) node);
	if (hgj_split_level((Query *) node))
		rewriting->split = lappend(rewriting->split, node);
	if (((Query *) node)->commandType == CMD_SELECT && !rewriting->calls_volatile)
		rewriting->njoins += hgj_join_by_either((Query *) node);
	return query_tree_walker((Query *) node, split_levels, context, 0);
}

/* Steps 1 to 4. */
static void
rewrite_level(HgjRewriting *rewriting, Query *query)
{
	HgjPlace	place = {rewriting, query, true, NULL, NULL, HGJ_NULL_IS_NULL, NULL, false};
	const Query *around = rewriting->around;
	int			before = rewriting->njoins;

	check_stack_depth();
	if (!is_read_once(query))
	{
		(void) note_all((Node *) query, rewriting);
		return;
	}
	rewriting->around = query;
	query_tree_walker(query, rewrite_inside, rewriting, 0);
	rewriting->around = around;
	if (query->commandType != CMD_SELECT)
		return;
	hgj_join_laterals(rewriting, query);
	if (rewriting->attempts.groups_early)
		hgj_group_early(rewriting, query);
	replace_in_joins(&place, (Node *) query->jointree, true);
	query->jointree->quals = replace_in_where(&place, query->jointree->quals);
	if (!query->hasSubLinks)
		return;
	place.sees_rows = !query->hasAggs && query->groupClause == NIL &&
		query->groupingSets == NIL && query->havingQual == NULL;
	query->targetList = (List *) replace_mutator((Node *) query->targetList, &place);
	place.sees_rows = false;
	query->havingQual = replace_mutator(query->havingQual, &place);
	if (rewriting->njoins > before)
		query->hasSubLinks = checkExprHasSubLink((Node *) query);
}

/* Rewrite the query in place, and whatever is inside. */
void
hgj_rewrite_query(HgjRewriting *rewriting, Query *query)
{
	rewriting->calls_volatile = find_volatile((Node *) query, NULL);
	/* first: a subquery that reads a copy may become a join, as one of a table may */
	if (rewriting->attempts.repeats)
		hgj_repeat_queries(rewriting, query);
	(void) split_levels((Node *) query, rewriting);
	rewriting->order_matters = !rewriting->calls_volatile && hgj_order_matters(query);
	rewrite_level(rewriting, query);
}
