/*-------------------------------------------------------------------------
 *
 * grouped.c
 *	  A subquery becomes the groups of what it reads, or its rows, joined to the level that it
 *	  stands in.
 *
 *	  ... o WHERE x < (SELECT 0.2 * avg(q) FROM t WHERE t.k = o.k AND p)
 *	  ... o LEFT JOIN (SELECT t.k, avg(q) FROM t WHERE p GROUP BY t.k) c ON c.k = o.k
 *			WHERE x < 0.2 * c.avg
 *
 * 1. The subquery returns its operands of the equalities, by which it is grouped, and its
 *	  aggregates.  No outer operand finds two groups (subquery.c), so the join has the rows that
 *	  there were before.  No row without an operand counts: PostgreSQL makes inner joins of
 *	  outer ones for that, and can do no full join on some conditions, so this is said.
 *	  Of EXISTS there are the operands alone; groups that HAVING has left are made distinct.  Of
 *	  a subquery that has one row at most there are its rows, not grouped; of one that has the
 *	  first row, DISTINCT ON the operands in its order.  Both return the columns that the value is
 *	  made of.
 * 2. Without a group the columns are NULL, which is the value of the aggregates over no
 *	  rows, but for count, which is 0.  Where there is no row then, the value is NULL, whatever
 *	  it is made of: CASE WHEN c.k IS NOT NULL THEN ... END; and EXISTS is c.k IS NOT NULL.
 * 3. Where what FROM joins is one table or one join that has all outer operands, the groups
 *	  are joined to that, so that the planner sees the rest as it was; otherwise to all of
 *	  FROM.  Below ON of an outer join, they are joined to the side that it fills in.  If the clause around the subquery does not hold for NULL, the planner makes an
 *	  inner join of it, and looks at the clause for each group.
 *	  A group that is not computed (guarded.c) has the value that the subquery has as it is written.
 * 4. A value that is pinned says so: CASE WHEN o.k IS NOT NULL THEN c.avg END is c.avg, as
 *	  without an operand there is no group, but it needs the row, and may hold for NULL.
 *
 * Memory: the current context; the subquery is changed and becomes part of the level.  No
 * locks.
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
#include "utils/fmgroids.h"

/* The value of the subquery on its way out. */
typedef struct HgjValue
{
	int			groups;			/* range table index of the groups */
	int			join;			/* range table index of their left join; 0: it is an inner one */
	List	   *targetlist;		/* what the groups return: keys, then what the value is made of */
	bool		optional;		/* without a group it is NULL, counts as well */
	Node	   *pin;			/* outer operand of an equality, or NULL (step 4) */
} HgjValue;

static TargetEntry *
append_column(List **targetlist, Expr *expr)
{
	AttrNumber	resno = list_length(*targetlist) + 1;
	TargetEntry *tle = makeTargetEntry(expr, resno, psprintf("column%d", resno), false);

	*targetlist = lappend(*targetlist, tle);
	return tle;
}

/* A column of the groups, above their join or in its condition. */
static Var *
column_of_groups(const HgjValue *value, const TargetEntry *tle, bool above)
{
	Var		   *var = makeVarFromTargetEntry(value->groups, (TargetEntry *) tle);

	if (above && value->join > 0)
		hgj_set_nulled_by(var, value->join);
	return var;
}

/* The column that is this aggregate, or column of the subquery's, once for all that are alike. */
static const TargetEntry *
column_of(HgjValue *value, Expr *expr)
{
	ListCell   *lc;

	foreach(lc, value->targetlist)
		if (equal(lfirst_node(TargetEntry, lc)->expr, expr))
			return lfirst(lc);
	return append_column(&value->targetlist, expr);
}

/* CASE WHEN condition THEN result END */
static Node *
result_if(NullTest *condition, Node *result)
{
	return (Node *) hgj_case(list_make1(hgj_when((Expr *) condition, (Expr *) result)),
							 hgj_null_like(result));
}

/* Step 4: a column of the groups, where the row around it has an operand for the equality. */
static Node *
pinned_column(HgjValue *value, const TargetEntry *tle)
{
	Var		   *var = column_of_groups(value, tle, true);

	return value->pin ? result_if(hgj_null_test((Expr *) value->pin, IS_NOT_NULL), (Node *) var) :
		(Node *) var;
}

/* Steps 2 and 4. */
static Node *
value_of_aggregate(HgjValue *value, Aggref *aggref)
{
	Node	   *result = pinned_column(value, column_of(value, (Expr *) aggref));

	if (value->optional || (aggref->aggfnoid != F_COUNT_ && aggref->aggfnoid != F_COUNT_ANY))
		return result;
	return (Node *) hgj_coalesce((Expr *) result, hgj_zero());
}

/*
 * An expression one level further out; its aggregates, and columns of the subquery's, are
 * columns of the groups there.
 */
static Node *
move_out(Node *node, void *context)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Aggref))
		return value_of_aggregate(context, (Aggref *) node);
	if (IsA(node, Var))
	{
		Var		   *var = copyObject((Var *) node);

		if (var->varlevelsup == 0)
			return pinned_column(context, column_of(context, (Expr *) var));
		Assert(var->varlevelsup == 1);
		var->varlevelsup = 0;
		return (Node *) var;
	}
	return expression_tree_mutator(node, move_out, context);
}

/* Step 2: what stands in the place of the subquery. */
static Expr *
move_value(HgjValue *value, HgjSubqueryKind kind, Node *expr)
{
	const TargetEntry *key = linitial(value->targetlist);
	Node	   *found;

	if (kind == HGJ_GIVES_EXISTENCE)
		return (Expr *) hgj_null_test((Expr *) pinned_column(value, key), IS_NOT_NULL);
	if (!value->optional || IsA(expr, Aggref) ||
		(IsA(expr, Var) && ((Var *) expr)->varlevelsup == 0))
		return (Expr *) move_out(expr, value);
	/* a key that is found needs the row already, so that nothing else has to be pinned to it */
	found = pinned_column(value, key);
	value->pin = NULL;
	return (Expr *) result_if(hgj_null_test((Expr *) found, IS_NOT_NULL),
							  move_out(expr, value));
}

/* Step 2: the value of a group that may not be computed. */
static Expr *
value_if_computed(HgjValue *value, const HgjSubquery *subquery, Expr *result)
{
	const TargetEntry *guard = column_of(value, (Expr *) subquery->guard);
	Expr	   *not_computed = hgj_test_truth((Expr *) column_of_groups(value, guard, true), IS_FALSE);

	return hgj_case(list_make1(hgj_when(not_computed, (Expr *) subquery->written)), result);
}

/* Step 1: return an operand; the condition of the join that it stands in. */
static Node *
return_operand(HgjValue *value, const HgjCorrelation *correlation, List **keys)
{
	TargetEntry *tle = append_column(&value->targetlist, correlation->inner);
	OpExpr	   *condition = copyObject(correlation->clause);
	Node	   *inner = (Node *) column_of_groups(value, tle, false);
	Node	   *outer = move_out((Node *) correlation->outer, NULL);
	bool		turned = correlation->outer == linitial(correlation->clause->args);

	tle->ressortgroupref = list_length(value->targetlist);
	*keys = lappend(*keys, hgj_key_of(correlation, tle->ressortgroupref));
	condition->args = turned ? list_make2(outer, inner) : list_make2(inner, outer);
	return (Node *) condition;
}

/*
 * Step 1: clauses of the subquery's whose columns it is not to return any more.  The new columns
 * are behind all that are returned.
 */
static List *
keep_columns(const Query *query, const List *clauses, List **targetlist)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, clauses)
	{
		SortGroupClause *clause = copyObject(lfirst_node(SortGroupClause, lc));
		Node	   *value = get_sortgroupclause_expr(clause, query->targetList);
		TargetEntry *tle = append_column(targetlist, (Expr *) value);

		tle->resjunk = true;
		tle->ressortgroupref = clause->tleSortGroupRef = tle->resno;
		result = lappend(result, clause);
	}
	return result;
}

/* Step 1: by what the subquery's rows are grouped, made distinct and sorted. */
static void
group(Query *query, HgjSubqueryKind kind, List *keys, List **targetlist)
{
	switch (kind)
	{
		case HGJ_GIVES_AGGREGATES:
			query->groupClause = keys;
			query->sortClause = NIL;
			break;
		case HGJ_GIVES_EXISTENCE:
			if (query->groupClause)
				query->distinctClause = copyObject(keys);
			query->groupClause = list_concat(keys, keep_columns(query, query->groupClause,
															   targetlist));
			break;
		case HGJ_GIVES_ROW:
			query->sortClause = NIL;
			break;
		case HGJ_GIVES_FIRST:
			query->distinctClause = keys;
			query->hasDistinctOn = true;
			query->sortClause = list_concat(copyObject(keys),
										   keep_columns(query, query->sortClause, targetlist));
			query->limitCount = NULL;
			break;
	}
}

/* context: the subquery, or NULL inside of its value */
static Node *
put_values(Node *node, void *context)
{
	SubLink    *sublink = (SubLink *) node;

	if (node == NULL)
		return NULL;
	if (IsA(node, Aggref))
		return hgj_any_value(node, true);
	if (IsA(node, Var) && ((Var *) node)->varlevelsup == 1)
		return move_out(node, NULL);
	if (IsA(node, Var) && context == NULL)
		return hgj_any_value(node, false);
	if (IsA(node, SubLink) && node == context && sublink->subLinkType == EXISTS_SUBLINK)
		return hgj_any_value(node, false);
	if (IsA(node, SubLink) && node == context)
		return put_values((Node *) linitial_node(TargetEntry,
												 castNode(Query, sublink->subselect)->targetList)->expr,
						  NULL);
	return expression_tree_mutator(node, put_values, context);
}

/*
 * The clause around a subquery, for looking at what it may do: in the subquery's place stands
 * its value, whose aggregates and columns are any of their types' values.
 */
Node *
hgj_stand_in(Node *clause, SubLink *sublink)
{
	return put_values(clause, sublink);
}

static void
collect_relations(Node *node, Bitmapset **relations)
{
	ListCell   *lc;

	check_stack_depth();
	if (IsA(node, RangeTblRef))
		*relations = bms_add_member(*relations, ((RangeTblRef *) node)->rtindex);
	else if (IsA(node, JoinExpr))
	{
		JoinExpr   *join = (JoinExpr *) node;

		if (join->rtindex > 0)
			*relations = bms_add_member(*relations, join->rtindex);
		collect_relations(join->larg, relations);
		collect_relations(join->rarg, relations);
	}
	else
		foreach(lc, castNode(FromExpr, node)->fromlist)
			collect_relations(lfirst(lc), relations);
}

/* Range table indexes of what is joined, and of the joins. */
Bitmapset *
hgj_relations_of(Node *node)
{
	Bitmapset  *relations = NULL;

	collect_relations(node, &relations);
	return relations;
}

/* Those of the row's operands by which the subquery is joined. */
Bitmapset *
hgj_operands_of(const HgjSubquery *subquery)
{
	Bitmapset  *relations = NULL;
	ListCell   *lc;

	foreach(lc, subquery->correlations)
		relations = bms_join(relations,
							 pull_varnos_of_level(NULL, (Node *) ((const HgjCorrelation *) lfirst(lc))->outer,
												  1));
	return relations;
}

/* Step 3: put the join in the place of what it has on its left. */
static void
attach(Query *query, JoinExpr *join, const Bitmapset *wanted)
{
	List	   *fromlist = query->jointree->fromlist;
	ListCell   *lc;

	foreach(lc, fromlist)
	{
		if (!bms_is_subset(wanted, hgj_relations_of(lfirst(lc))))
			continue;
		join->larg = lfirst(lc);
		lfirst(lc) = join;
		return;
	}
	join->larg = (Node *) makeFromExpr(fromlist, NULL);
	query->jointree->fromlist = list_make1(join);
}

static RangeTblEntry *
add_entry(Query *query, RTEKind kind, const char *name)
{
	RangeTblEntry *rte = makeNode(RangeTblEntry);

	rte->rtekind = kind;
	rte->eref = makeAlias(name, NIL);
	rte->inFromCl = true;
	query->rtable = lappend(query->rtable, rte);
	return rte;
}

/* Are there outer joins among what the query joins? */
static bool
has_outer_joins(const Query *query)
{
	ListCell   *lc;

	foreach(lc, query->rtable)
		if (HGJ_IS_OUTER_JOIN(lfirst_node(RangeTblEntry, lc)->jointype))
			return true;
	return false;
}

/* The table that is joined: what the subquery has become.  keys: clauses of its operands */
static void
finish_groups(HgjRewriting *rewriting, RangeTblEntry *rte, const HgjSubquery *subquery,
			  const HgjValue *value, List *keys)
{
	Query	   *query = subquery->query;
	List	   *targetlist = value->targetlist;
	List	   *rest = subquery->rest;
	ListCell   *lc;

	hgj_name_columns(rte, targetlist);
	foreach(lc, has_outer_joins(query) ? subquery->correlations : NIL)
		rest = lappend(rest, hgj_null_test(((const HgjCorrelation *) lfirst(lc))->inner,
										   IS_NOT_NULL));
	query->jointree->quals = hgj_join_clauses(rest);
	group(query, subquery->kind, keys, &targetlist);
	query->targetList = targetlist;
	rte->subquery = query;
	rewriting->groups = lappend(rewriting->groups, query);
}

/*
 * Step 1: an entry of the range table for the groups, which nothing refers to yet; conditions, by
 * which they are joined, and keys are appended to.
 */
static RangeTblEntry *
begin_groups(HgjValue *value, Query *query, const HgjSubquery *subquery, List **conditions,
			 List **keys)
{
	RangeTblEntry *groups = add_entry(query, RTE_SUBQUERY, HGJ_GROUPS_NAME);
	ListCell   *lc;

	value->groups = list_length(query->rtable);
	value->optional = subquery->optional;
	foreach(lc, subquery->correlations)
		*conditions = lappend(*conditions, return_operand(value, lfirst(lc), keys));
	if (subquery->pinned)
		value->pin = move_out((Node *) ((const HgjCorrelation *) linitial(subquery->correlations))->outer,
							  NULL);
	return groups;
}

/*
 * Step 3: join the groups to the level by a left join; *place is what is joined to them, or place is
 * NULL.  groups, joined: range table indexes
 */
void
hgj_attach_groups(Query *query, Node **place, int groups, int joined, List *conditions,
				  const HgjSubquery *subquery)
{
	JoinExpr   *join = makeNode(JoinExpr);

	join->jointype = JOIN_LEFT;
	join->rarg = (Node *) hgj_refer_to(groups);
	join->rtindex = joined;
	join->quals = (Node *) make_ands_explicit(conditions);
	if (place)
	{
		join->larg = *place;
		*place = (Node *) join;
	}
	else
		attach(query, join, hgj_operands_of(subquery));
}

/* An entry of the range table for a left join; its index. */
int
hgj_add_left_join(Query *query)
{
	add_entry(query, RTE_JOIN, "unnamed_join")->jointype = JOIN_LEFT;
	return list_length(query->rtable);
}

/*
 * Join the subquery's groups, or rows, to the level; subquery is what hgj_look_at_subquery() has
 * found of it; *place is the side of a join that has all its operands, if it stands in that
 * join's condition, or place is NULL.  Returns the value, for where the subquery stood.
 */
Expr *
hgj_join_subquery(HgjRewriting *rewriting, Query *query, Node **place,
				  const HgjSubquery *subquery)
{
	const List *returned = subquery->query->targetList;
	Node	   *expr = returned ? (Node *) linitial_node(TargetEntry, returned)->expr : NULL;
	HgjValue	value = {.join = hgj_add_left_join(query)};
	List	   *conditions = NIL;
	List	   *keys = NIL;
	RangeTblEntry *groups = begin_groups(&value, query, subquery, &conditions, &keys);
	Expr	   *result = move_value(&value, subquery->kind, expr);

	if (subquery->guard)
		result = value_if_computed(&value, subquery, result);
	finish_groups(rewriting, groups, subquery, &value, keys);
	hgj_attach_groups(query, place, value.groups, value.join, conditions, subquery);
	return result;
}

/*
 * Make the subquery's groups, or rows, an entry of the range table, which is to be joined by
 * *conditions: in the left join `join`, or, if that is 0, in an inner one.  *values: expressions
 * above the join, by the subquery's columns.  Returns the entry's index.
 */
int
hgj_add_groups(HgjRewriting *rewriting, Query *query, int join, const HgjSubquery *subquery,
			   List **conditions, List **values)
{
	HgjValue	value = {.join = join};
	List	   *keys = NIL;
	RangeTblEntry *groups;
	Node	   *pin;
	ListCell   *lc;

	*conditions = *values = NIL;
	groups = begin_groups(&value, query, subquery, conditions, &keys);
	pin = value.pin;
	foreach(lc, subquery->query->targetList)
	{
		const TargetEntry *tle = lfirst_node(TargetEntry, lc);

		if (tle->resjunk)
			continue;
		value.pin = pin;
		*values = lappend(*values, move_value(&value, subquery->kind, (Node *) tle->expr));
	}
	finish_groups(rewriting, groups, subquery, &value, keys);
	return value.groups;
}
