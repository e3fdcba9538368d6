/*-------------------------------------------------------------------------
 *
 * eager.c
 *	  Groups that are rows of some tables: the other tables are grouped before they are joined.
 *
 *	  SELECT c.id, c.name, count(o.id) FROM c LEFT JOIN o ON o.c = c.id GROUP BY c.id
 *	  SELECT c.id, c.name, x.count FROM c LEFT JOIN LATERAL (SELECT count(o.id) FROM o
 *		WHERE o.c = c.id) x ON true
 *
 * As it is written, all rows are joined first, each with all that is shown of its group.  The
 * literature calls it eager aggregation (Yan and Larson, "Eager Aggregation and Lazy Aggregation",
 * 1995).
 *
 * 1. The level groups, joins two tables or more, and has no subqueries in its expressions.  It is an
 *	  inner join, or one left join of two inner ones.
 * 2. Each group has one row at most of the tables above: by what it groups by, and from there by
 *	  unique indexes (single.c).  All that is not in an aggregate is theirs, and nothing in one.  The
 *	  other tables are those below; of a left join, those that it fills in NULLs for.
 * 3. Conditions that need tables of both kinds are equalities (correlation.c).  Those of a left join
 *	  are about a table below, and WHERE is not.
 * 4. The tables below become a subquery that depends on the row of those above, of which lateral.c
 *	  makes groups that are joined, if nothing in it raises errors, if its aggregates depend on no
 *	  order, and so on.  Otherwise the level stays as it is.  For an inner join it has GROUP BY, so
 *	  that it has no row where it reads none; HAVING becomes WHERE.
 *	  As PostgreSQL has evaluated all of these for groups, and now might for rows that another join
 *	  removes, HAVING, and what the level sorts by or makes distinct, may raise no error.  Nor may
 *	  what is around the level come to its values earlier than when it returns them, which OFFSET 0
 *	  is for: GROUP BY has prevented that before.
 * 5. A row without a match is joined to NULLs by a left join, and they are a row: count(*) is 1, and
 *	  not 0.  The argument of any other aggregate is to be NULL there, as aggregates that lateral.c
 *	  takes pass over NULLs.
 *
 * The query is the caller's copy, and is changed in place.  Memory: the current context.  No
 * locks.
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
#include "utils/fmgroids.h"

/* The name that lateral.c replaces by the groups'. */
#define SUBQUERY_NAME	"early"

/* The level, and what becomes of its parts. */
typedef struct HgjEager
{
	const Query *query;			/* level as it is written */
	JoinExpr   *join;			/* left join, or NULL: all are inner ones */
	Bitmapset  *above;			/* tables of which each group has one row */
	Bitmapset  *below;			/* tables that are grouped before they are joined */
	List	   *clauses_above;	/* conditions of tables above */
	List	   *clauses_below;	/* conditions that need a table below */
	List	   *aggregates;		/* Aggrefs of the level, as the subquery returns them */
	int			subquery;		/* range table index of the subquery */
	int			left_join;		/* range table index of its left join, or 0 */
} HgjEager;

/* Step 1, without a look at its conditions: it takes next to no time. */
bool
hgj_may_group_early(const Query *query)
{
	return query->commandType == CMD_SELECT && query->hasAggs && query->groupClause != NIL &&
		query->groupingSets == NIL && !query->hasSubLinks && !query->hasWindowFuncs &&
		!query->hasTargetSRFs && query->setOperations == NULL && query->cteList == NIL &&
		query->rowMarks == NIL && query->windowClause == NIL &&
		(list_length(query->jointree->fromlist) > 1 ||
		 (query->jointree->fromlist && IsA(linitial(query->jointree->fromlist), JoinExpr)));
}

/* Tables that expressions of the level refer to. */
typedef struct HgjMentions
{
	Bitmapset  *of_groups;		/* tables that are referred to outside of aggregates */
	Bitmapset  *of_rows;		/* tables that are referred to in aggregates */
	bool		in_aggregate;	/* the walk is in one */
	bool		others;			/* there is an aggregate of another level, or GROUPING() */
} HgjMentions;

static bool
find_mentions(Node *node, void *context)
{
	HgjMentions *mentions = context;

	if (node == NULL)
		return false;
	if (IsA(node, Aggref) && ((Aggref *) node)->agglevelsup == 0)
	{
		mentions->in_aggregate = true;
		(void) expression_tree_walker(node, find_mentions, context);
		mentions->in_aggregate = false;
		return false;
	}
	mentions->others |= IsA(node, Aggref) || IsA(node, GroupingFunc);
	/* pull_varnos() would name joins that may have nulled them, too, from 16 on */
	if (IsA(node, Var) && ((Var *) node)->varlevelsup == 0)
	{
		Bitmapset **tables = mentions->in_aggregate ? &mentions->of_rows : &mentions->of_groups;

		*tables = bms_add_member(*tables, ((Var *) node)->varno);
	}
	return expression_tree_walker(node, find_mentions, context);
}

/* Are they tables, of which nobody asks for more than columns? */
static bool
are_tables(const Query *query, const Bitmapset *relations)
{
	int			relation = -1;

	while ((relation = bms_next_member(relations, relation)) >= 0)
		if (list_nth_node(RangeTblEntry, query->rtable, relation - 1)->rtekind != RTE_RELATION)
			return false;
	return !hgj_refers_to_whole(query, relations);
}

/* Sort out a condition: does it need a table below? */
static void
sort_out(HgjEager *eager, Node *clause)
{
	List	  **to = bms_overlap(pull_varnos(NULL, clause), eager->below) ?
		&eager->clauses_below : &eager->clauses_above;

	*to = lappend(*to, clause);
}

/* Steps 2 and 3, of inner joins of these tables by these conditions. */
static bool
divide_inner(HgjEager *eager, const HgjMentions *mentions, const Bitmapset *tables,
			 List *clauses)
{
	ListCell   *lc;

	eager->above = hgj_single_in_groups(eager->query, clauses,
										bms_difference(tables, mentions->of_rows));
	eager->below = bms_difference(tables, eager->above);
	foreach(lc, clauses)
		sort_out(eager, lfirst(lc));
	return !bms_is_empty(eager->above) && !bms_is_empty(eager->below);
}

/* Steps 2 and 3, of a left join. */
static bool
divide_left(HgjEager *eager, const HgjMentions *mentions)
{
	const FromExpr *from = eager->query->jointree;
	JoinExpr   *join = linitial(from->fromlist);
	List	   *inside = NIL;
	List	   *conditions = NIL;
	ListCell   *lc;

	if (list_length(from->fromlist) != 1 || !IsA(join, JoinExpr) || join->jointype != JOIN_LEFT)
		return false;
	hgj_split_clauses(from->quals, &eager->clauses_above);
	if (!hgj_collect_conditions(join->larg, &eager->clauses_above, &eager->above) ||
		!hgj_collect_conditions(join->rarg, &inside, &eager->below) ||
		!bms_equal(hgj_single_in_groups(eager->query, eager->clauses_above, eager->above),
				   eager->above))
		return false;
	foreach(lc, eager->clauses_above)
		if (bms_overlap(pull_varnos(NULL, lfirst(lc)), eager->below))
			return false;
	hgj_split_clauses(join->quals, &conditions);
	foreach(lc, conditions)
		if (!bms_overlap(pull_varnos(NULL, lfirst(lc)), eager->below))
			return false;
	eager->clauses_below = list_concat(conditions, inside);
	eager->join = join;
	return bms_is_subset(mentions->of_rows, eager->below);
}

/* Step 2: which tables are above, and which below? */
static bool
divide(HgjEager *eager)
{
	const Query *query = eager->query;
	HgjMentions mentions = {NULL};
	Bitmapset  *tables = NULL;
	List	   *clauses = NIL;

	(void) find_mentions((Node *) query->targetList, &mentions);
	(void) find_mentions(query->havingQual, &mentions);
	if (mentions.others)
		return false;
	if (hgj_collect_conditions((Node *) query->jointree, &clauses, &tables) ?
		!divide_inner(eager, &mentions, tables, clauses) : !divide_left(eager, &mentions))
		return false;
	return bms_is_subset(mentions.of_groups, eager->above) && are_tables(query, eager->above) &&
		are_tables(query, eager->below);
}

/* Step 5: is the aggregate over a row of NULLs what it is over no row, or is it count(*)? */
static bool
passes_over_nulls(const Aggref *aggref)
{
	if (aggref->aggstar)
		return aggref->aggfilter == NULL;
	return !bms_is_empty(pull_varnos(NULL, (Node *) aggref->args)) &&
		!contain_nonstrict_functions((Node *) aggref->args);
}

/* Below, a row of the tables above is one of the level around. */
static Node *
move_below(Node *node, void *context)
{
	const HgjEager *eager = context;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var))
	{
		Var		   *var = copyObject((Var *) node);

		hgj_forget_nulled_by(var);
		if (bms_is_member(var->varno, eager->above))
			var->varlevelsup = 1;
		return (Node *) var;
	}
	return expression_tree_mutator(node, move_below, context);
}

/* The column of the subquery that is an aggregate of the level; each stands there once. */
static Node *
column_of_subquery(HgjEager *eager, Aggref *aggref)
{
	Var		   *var;
	MinMaxExpr *at_least;
	int			position = 0;
	ListCell   *lc;

	foreach(lc, eager->aggregates)
		if (equal(lfirst(lc), aggref))
			position = foreach_current_index(lc) + 1;
	if (position == 0)
	{
		eager->aggregates = lappend(eager->aggregates, aggref);
		position = list_length(eager->aggregates);
	}
	var = makeVar(eager->subquery, position, aggref->aggtype, exprTypmod((Node *) aggref),
				  exprCollation((Node *) aggref), 0);
	if (eager->left_join == 0)
		return (Node *) var;
	hgj_set_nulled_by(var, eager->left_join);
	if (!aggref->aggstar)
		return (Node *) var;
	at_least = makeNode(MinMaxExpr);
	at_least->minmaxtype = INT8OID;
	at_least->op = IS_GREATEST;
	at_least->args = list_make2(var, makeConst(INT8OID, -1, InvalidOid, sizeof(int64),
											   Int64GetDatum(1), false, FLOAT8PASSBYVAL));
	at_least->location = -1;
	return (Node *) at_least;
}

static Node *
replace_aggregates(Node *node, void *context)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Aggref))
		return column_of_subquery(context, (Aggref *) node);
	return expression_tree_mutator(node, replace_aggregates, context);
}

/* Entries of joins that the query does not have any more, and of what it grouped by. */
static void
forget_joins(Query *query)
{
	Bitmapset  *joined = hgj_relations_of((Node *) query->jointree);
	ListCell   *lc;

	foreach(lc, query->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (bms_is_member(foreach_current_index(lc) + 1, joined))
			continue;
		/* the planner believes these entries about outer joins */
		if (rte->rtekind == RTE_JOIN || HGJ_IS_GROUP_ENTRY(rte))
		{
			rte->rtekind = RTE_RESULT;
			rte->jointype = JOIN_INNER;
			rte->joinaliasvars = rte->joinleftcols = rte->joinrightcols = NIL;
			if (HGJ_GROUP_EXPRESSIONS(rte))
				*HGJ_GROUP_EXPRESSIONS(rte) = NIL;
		}
	}
}

/*
 * Step 4: have the subquery group by the operand of an equality, by which its rows are equal anyway.
 * Returns false where the clause is no such equality.
 */
static bool
group_by_operand(Query *subquery, Node *clause)
{
	HgjCorrelation correlation;
	TargetEntry *tle;

	if (!hgj_take_correlation(clause, &correlation))
		return false;
	tle = makeTargetEntry(copyObject(correlation.inner), list_length(subquery->targetList) + 1,
						  pstrdup("key"), true);
	tle->ressortgroupref = 1;
	subquery->targetList = lappend(subquery->targetList, tle);
	subquery->groupClause = list_make1(hgj_key_of(&correlation, 1));
	return true;
}

static List *
refer_to_all(const Bitmapset *relations)
{
	List	   *result = NIL;
	int			relation = -1;

	while ((relation = bms_next_member(relations, relation)) >= 0)
		result = lappend(result, hgj_refer_to(relation));
	return result;
}

/* Step 4: the subquery, when it is known which aggregates it returns.  NULL: it can have no groups. */
static Query *
make_subquery(HgjEager *eager)
{
	Query	   *result = copyObject((Query *) eager->query);
	List	   *clauses = (List *) move_below((Node *) eager->clauses_below, eager);
	bool		grouped = eager->join != NULL;
	ListCell   *lc;

	hgj_forget_result(result);
	hgj_forget_grouping(result);
	result->hasAggs = true;
	result->constraintDeps = NIL;
	foreach(lc, eager->aggregates)
	{
		int			resno = foreach_current_index(lc) + 1;
		Expr	   *aggregate = (Expr *) move_below(lfirst(lc), eager);

		result->targetList = lappend(result->targetList,
									 makeTargetEntry(aggregate, resno, psprintf("column%d", resno), false));
	}
	result->jointree = makeFromExpr(refer_to_all(eager->below), hgj_join_clauses(clauses));
	foreach(lc, clauses)
		if (!grouped)
			grouped = group_by_operand(result, lfirst(lc));
	forget_joins(result);
	return grouped ? result : NULL;
}

/* Step 4: the level, with the subquery in it; NULL: it can have none. */
static Query *
make_level(HgjEager *eager)
{
	Query	   *result = copyObject((Query *) eager->query);
	List	   *having = NIL;
	Query	   *subquery;
	RangeTblEntry *rte;
	Node	   *read;

	eager->left_join = eager->join ? hgj_add_left_join(result) : 0;
	eager->subquery = list_length(result->rtable) + 1;
	result->targetList = (List *) replace_aggregates((Node *) result->targetList, eager);
	hgj_split_clauses(replace_aggregates(eager->query->havingQual, eager), &having);
	subquery = make_subquery(eager);
	if (subquery == NULL)
		return NULL;
	rte = hgj_subquery_entry(subquery, SUBQUERY_NAME);
	rte->lateral = true;
	result->rtable = lappend(result->rtable, rte);
	read = (Node *) hgj_refer_to(eager->subquery);
	if (eager->join)
	{
		JoinExpr   *join = makeNode(JoinExpr);

		join->jointype = JOIN_LEFT;
		join->larg = copyObject(eager->join->larg);
		join->rarg = read;
		join->rtindex = eager->left_join;
		join->quals = makeBoolConst(true, false);
		result->jointree = makeFromExpr(list_make1(join), copyObject(eager->query->jointree->quals));
		hgj_add_clauses(result, having);
	}
	else
		result->jointree = makeFromExpr(lappend(refer_to_all(eager->above), read),
										hgj_join_clauses(list_concat(copyObject(eager->clauses_above),
																	 having)));
	hgj_forget_grouping(result);
	forget_joins(result);
	return result;
}

/* Step 5, of all aggregates. */
static bool
all_pass_over_nulls(const HgjEager *eager)
{
	ListCell   *lc;

	foreach(lc, eager->aggregates)
		if (!passes_over_nulls(lfirst_node(Aggref, lc)))
			return false;
	return true;
}

/*
 * Step 4: may what is computed of groups be computed of rows that turn out to be none?  What they are
 * grouped by may not be another value in each row, either.
 */
static bool
are_late_values(const Query *query)
{
	List	   *order = list_concat_copy(query->sortClause, query->distinctClause);
	List	   *sorted = get_sortgrouplist_exprs(order, query->targetList);
	List	   *grouped = get_sortgrouplist_exprs(query->groupClause, query->targetList);

	return !contain_volatile_functions(query->havingQual) &&
		!contain_volatile_functions((Node *) grouped) &&
		!hgj_group_may_raise(query->havingQual) && !hgj_group_may_raise((Node *) sorted);
}

/* Group the tables below before they are joined, if the level has such; otherwise it is not changed. */
void
hgj_group_early(HgjRewriting *rewriting, Query *query)
{
	HgjEager	eager = {query};
	HgjRewriting attempt = *rewriting;
	Query	   *level;

	if (!hgj_may_group_early(query) || hgj_refers_above((Node *) query, 0) ||
		!are_late_values(query) || hgj_sees_two_versions() || !divide(&eager))
		return;
	level = make_level(&eager);
	if (level == NULL || (eager.join && !all_pass_over_nulls(&eager)))
		return;
	attempt.reasons = NIL;
	attempt.groups = list_copy(rewriting->groups);
	attempt.is_eager = true;
	hgj_join_laterals(&attempt, level);
	if (attempt.njoins == rewriting->njoins)
		return;
	attempt.njoins = rewriting->njoins;
	attempt.is_eager = false;
	if (rewriting->around && level->limitOffset == NULL && level->limitCount == NULL)
		level->limitOffset = (Node *) hgj_zero();
	attempt.ngrouped++;
	attempt.reasons = lappend_int(rewriting->reasons, HGJ_HIDDEN_EARLY);
	*rewriting = attempt;
	*query = *level;
}
