/*-------------------------------------------------------------------------
 *
 * grouped.c
 *	  A subquery with one value becomes the groups of what it reads, joined to the level
 *	  that it stands in.
 *
 *	  ... o WHERE x < (SELECT 0.2 * avg(q) FROM t WHERE t.k = o.k AND p)
 *	  ... o LEFT JOIN (SELECT t.k, avg(q) FROM t WHERE p GROUP BY t.k) c ON c.k = o.k
 *			WHERE x < 0.2 * c.avg
 *
 * 1. The subquery returns its operands of the equalities, by which it is grouped, and its
 *	  aggregates.  No outer operand finds two groups (scalar.c), so the join has the rows that
 *	  there were before.  No row without an operand counts: PostgreSQL makes inner joins of
 *	  outer ones for that, and can do no full join on some conditions, so this is said.
 * 2. Without a group the columns are NULL, which is the value of the aggregates over no
 *	  rows, but for count, which is 0.
 * 3. Where what FROM joins is one table or one join that has all outer operands, the groups
 *	  are joined to that, so that the planner sees the rest as it was; otherwise to all of
 *	  FROM.  If the clause around the subquery does not hold for NULL, the planner makes an
 *	  inner join of it, and looks at the clause for each group.
 * 4. A value that is pinned says so: CASE WHEN o.k IS NOT NULL THEN c.avg END is the same, as
 *	  without an operand there is no group, but it needs the row, and may hold for NULL.
 *
 * Memory: the current context; the subquery is changed and becomes part of the level.  No
 * locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "rewrite/hidden.h"
#include "utils/fmgroids.h"

/* Names that EXPLAIN prints. */
#define GROUPS_NAME		"correlated"

/* The value of the subquery on its way out. */
typedef struct HgjValue
{
	int			groups;			/* range table index of the groups */
	int			join;			/* range table index of their join */
	List	   *targetlist;		/* what the groups return: keys, then aggregates */
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

	if (above)
		hgj_set_nulled_by(var, value->join);
	return var;
}

/* The column that is this aggregate, once for all that are alike. */
static const TargetEntry *
column_of_aggregate(HgjValue *value, Aggref *aggref)
{
	ListCell   *lc;

	foreach(lc, value->targetlist)
		if (equal(lfirst_node(TargetEntry, lc)->expr, aggref))
			return lfirst(lc);
	return append_column(&value->targetlist, (Expr *) aggref);
}

static NullTest *
is_not_null(const Expr *operand)
{
	NullTest   *test = makeNode(NullTest);

	test->arg = copyObject((Expr *) operand);
	test->nulltesttype = IS_NOT_NULL;
	test->location = -1;
	return test;
}

/* Step 4: the column, where the row around it has an operand for the equality. */
static Node *
pin(Var *var, Node *operand)
{
	CaseWhen   *when = makeNode(CaseWhen);
	CaseExpr   *result = makeNode(CaseExpr);

	when->expr = (Expr *) is_not_null((Expr *) operand);
	when->result = (Expr *) var;
	when->location = -1;
	result->casetype = var->vartype;
	result->casecollid = var->varcollid;
	result->args = list_make1(when);
	result->defresult = (Expr *) makeNullConst(var->vartype, var->vartypmod, var->varcollid);
	result->location = -1;
	return (Node *) result;
}

/* Steps 2 and 4. */
static Node *
value_of_aggregate(HgjValue *value, Aggref *aggref)
{
	Var		   *var = column_of_groups(value, column_of_aggregate(value, aggref), true);
	Node	   *result = value->pin ? pin(var, value->pin) : (Node *) var;
	CoalesceExpr *counted;

	if (aggref->aggfnoid != F_COUNT_ && aggref->aggfnoid != F_COUNT_ANY)
		return result;
	counted = makeNode(CoalesceExpr);
	counted->coalescetype = INT8OID;
	counted->args = list_make2(result, makeConst(INT8OID, -1, InvalidOid, sizeof(int64),
											  Int64GetDatum(0), false, true));
	counted->location = -1;
	return (Node *) counted;
}

/* The same expression one level further out; its aggregates are columns there. */
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

		Assert(var->varlevelsup == 1);
		var->varlevelsup = 0;
		return (Node *) var;
	}
	return expression_tree_mutator(node, move_out, context);
}

/* Step 1: group by an operand; the condition of the join that it stands in. */
static Node *
group_by(HgjValue *value, Query *subquery, const HgjCorrelation *correlation)
{
	TargetEntry *tle = append_column(&value->targetlist, correlation->inner);
	SortGroupClause *group = makeNode(SortGroupClause);
	OpExpr	   *condition = copyObject(correlation->clause);
	Node	   *inner = (Node *) column_of_groups(value, tle, false);
	Node	   *outer = move_out((Node *) correlation->outer, NULL);
	bool		turned = correlation->outer == linitial(correlation->clause->args);

	tle->ressortgroupref = list_length(value->targetlist);
	group->tleSortGroupRef = tle->ressortgroupref;
	group->eqop = correlation->group_operator;
	group->sortop = correlation->sort_operator;
	group->hashable = correlation->hashable;
	subquery->groupClause = lappend(subquery->groupClause, group);
	condition->args = turned ? list_make2(outer, inner) : list_make2(inner, outer);
	return (Node *) condition;
}

/* context: the subquery, or NULL inside of its value */
static Node *
put_nulls(Node *node, void *context)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Aggref))
		return (Node *) makeNullConst(exprType(node), -1, exprCollation(node));
	if (IsA(node, Var) && ((Var *) node)->varlevelsup == 1)
		return move_out(node, NULL);
	if (IsA(node, SubLink) && node == context)
		return put_nulls((Node *) linitial_node(TargetEntry,
												castNode(Query, ((SubLink *) node)->subselect)->targetList)->expr,
						 NULL);
	return expression_tree_mutator(node, put_nulls, context);
}

/*
 * The clause around a subquery, for looking at what it may do: in the subquery's place stands
 * its value, whose aggregates are NULLs of their types.
 */
Node *
hgj_stand_in(Node *clause, SubLink *sublink)
{
	return put_nulls(clause, sublink);
}

/* Range table indexes of what is joined, and of the joins. */
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

/* Step 3: put the join in the place of what it has on its left. */
static void
attach(Query *query, JoinExpr *join, const Bitmapset *wanted)
{
	List	   *fromlist = query->jointree->fromlist;
	ListCell   *lc;

	foreach(lc, fromlist)
	{
		Bitmapset  *relations = NULL;

		collect_relations(lfirst(lc), &relations);
		if (!bms_is_subset(wanted, relations))
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

/* The table that is joined: what the subquery has become. */
static void
finish_groups(RangeTblEntry *rte, Query *subquery, const HgjValue *value,
			  const HgjScalar *scalar)
{
	List	   *rest = scalar->rest;
	ListCell   *lc;

	foreach(lc, has_outer_joins(subquery) ? scalar->correlations : NIL)
		rest = lappend(rest, is_not_null(((const HgjCorrelation *) lfirst(lc))->inner));

	subquery->targetList = value->targetlist;
	subquery->jointree->quals = rest == NIL ? NULL : (Node *) make_ands_explicit(rest);
	rte->subquery = subquery;
	foreach(lc, value->targetlist)
		rte->eref->colnames = lappend(rte->eref->colnames,
									  makeString(lfirst_node(TargetEntry, lc)->resname));
}

/*
 * Join the groups of the subquery to the level; scalar is what hgj_look_at_scalar() has found
 * of it.  Returns the value, for the place where the subquery stood.
 */
Expr *
hgj_join_groups(HgjRewriting *rewriting, Query *query, Query *subquery,
				const HgjScalar *scalar)
{
	Expr	   *result = linitial_node(TargetEntry, subquery->targetList)->expr;
	RangeTblEntry *groups = add_entry(query, RTE_SUBQUERY, GROUPS_NAME);
	RangeTblEntry *joined = add_entry(query, RTE_JOIN, "unnamed_join");
	HgjValue	value = {.join = list_length(query->rtable)};
	RangeTblRef *reference = makeNode(RangeTblRef);
	JoinExpr   *join = makeNode(JoinExpr);
	Bitmapset  *wanted = NULL;
	List	   *conditions = NIL;
	ListCell   *lc;

	value.groups = value.join - 1;
	foreach(lc, scalar->correlations)
	{
		const HgjCorrelation *correlation = lfirst(lc);

		wanted = bms_join(wanted, pull_varnos_of_level(NULL, (Node *) correlation->outer, 1));
		conditions = lappend(conditions, group_by(&value, subquery, correlation));
	}
	if (scalar->pinned)
		value.pin = move_out((Node *) ((const HgjCorrelation *) linitial(scalar->correlations))->outer,
							 NULL);
	result = (Expr *) move_out((Node *) result, &value);
	finish_groups(groups, subquery, &value, scalar);

	reference->rtindex = value.groups;
	joined->jointype = join->jointype = JOIN_LEFT;
	join->rarg = (Node *) reference;
	join->rtindex = value.join;
	join->quals = (Node *) make_ands_explicit(conditions);
	attach(query, join, wanted);
	rewriting->groups = lappend(rewriting->groups, subquery);
	return result;
}
