/*-------------------------------------------------------------------------
 *
 * disjunctions.c
 *	  A join of two tables by one equality or another, which PostgreSQL joins by a nested loop,
 *	  becomes a join for each, whose rows are put together.
 *
 *	  FROM a JOIN b ON a.x = b.x OR a.y = b.y
 *	  FROM (SELECT ... FROM a, b WHERE a.x = b.x
 *			UNION ALL
 *			SELECT ... FROM a, b WHERE a.y = b.y AND (a.x = b.x) IS NOT TRUE) u
 *
 * 1. Each part of OR has an equality of its own between the tables, by which they can be joined
 *	  by hash.  A pair of rows comes from the first part that holds for it, and so only once.
 *	  PostgreSQL evaluates the parts for pairs of rows, and as keys they are evaluated for all
 *	  rows, so they may raise no error.
 * 2. A LEFT JOIN has the rows of the first table for which no part holds, too: for these there is
 *	  another SELECT, with NULLs for the other table, WHERE NOT EXISTS (... a.x = b.x) AND NOT EXISTS
 *	  (... a.y = b.y), of which PostgreSQL makes anti joins.
 * 3. Both are tables, and nobody asks for whole rows or system columns of them.  They are two
 *	  members of the level's inner joins, with OR in WHERE or ON; or what one JOIN joins, whatever
 *	  is around it, whose ON is about them alone.
 * 4. Where an equality of both stands beside OR, PostgreSQL has what it needs for a join.
 *
 * The query is the caller's copy, and is changed in place.  Memory: the current context.
 * No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "expr/demand.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "rewrite/hidden.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"

/* The name of the rows that are put together; EXPLAIN prints it. */
#define ROWS_NAME		"either"

/* Two tables that are joined by OR. */
typedef struct HgjEither
{
	Query	   *query;			/* the level */
	int			tables[2];		/* range table indexes of the tables */
	List	   *parts;			/* parts of OR */
	List	   *also;			/* other clauses of ON, where that is all about the tables */
	int			outer_join;		/* range table index of a LEFT JOIN; 0: it is an inner join */
	int			result;			/* range table index of the rows that are put together */
	List	   *columns;		/* Vars of the tables, as the level's own expressions have them */
	int			depth;			/* number of levels below the level, of the expression at hand */
} HgjEither;

/* ---- what can be joined so ---------------------------------------------- */

/* Is it an equality between the tables, by which they can be joined by hash? */
static bool
is_equality_between(const Node *node, int a, int b)
{
	const OpExpr *clause = (const OpExpr *) node;
	int			left;
	int			right;

	return IsA(node, OpExpr) && list_length(clause->args) == 2 &&
		op_hashjoinable(clause->opno, exprType(linitial(clause->args))) &&
		bms_get_singleton_member(pull_varnos(NULL, linitial(clause->args)), &left) &&
		bms_get_singleton_member(pull_varnos(NULL, lsecond(clause->args)), &right) &&
		((left == a && right == b) || (left == b && right == a));
}

/* Step 1: has the part such an equality among what all has to hold? */
static bool
has_equality(const Node *part, int a, int b)
{
	ListCell   *lc;

	if (!is_andclause(part))
		return is_equality_between(part, a, b);
	foreach(lc, ((const BoolExpr *) part)->args)
		if (has_equality(lfirst(lc), a, b))
			return true;
	return false;
}

/* The two tables of a clause that is OR; false: it is no OR of two tables. */
static bool
tables_of(Node *clause, int *a, int *b)
{
	Bitmapset  *relations;

	if (!is_orclause(clause) || list_length(((BoolExpr *) clause)->args) > HGJ_MOST_OR_PARTS)
		return false;
	relations = pull_varnos(NULL, clause);
	if (bms_num_members(relations) != 2)
		return false;
	*a = bms_next_member(relations, -1);
	*b = bms_next_member(relations, *a);
	return true;
}

/* Step 1: is it an OR of equalities of two tables?  A clause that is no OR is told at once. */
bool
hgj_is_either(Node *clause)
{
	int			a;
	int			b;
	ListCell   *lc;

	if (!tables_of(clause, &a, &b))
		return false;
	foreach(lc, ((BoolExpr *) clause)->args)
		if (!has_equality(lfirst(lc), a, b))
			return false;
	return true;
}

/* Step 3: is it a table all of whose rows may be read as often as one likes? */
static bool
is_table(const Query *query, int relation)
{
	const RangeTblEntry *rte = list_nth(query->rtable, relation - 1);

	return rte->rtekind == RTE_RELATION && rte->tablesample == NULL && rte->securityQuals == NIL &&
		relation != query->resultRelation;
}

/* Steps 1 and 4: can the tables of this clause be joined by its parts, beside the others? */
static bool
take_clause(HgjEither *either, Node *clause, const List *others)
{
	ListCell   *lc;

	if (!hgj_is_either(clause) || !hgj_can_be_repeated(clause))
		return false;
	(void) tables_of(clause, &either->tables[0], &either->tables[1]);
	either->parts = ((BoolExpr *) clause)->args;
	foreach(lc, others)
		if (lfirst(lc) != clause && has_equality(lfirst(lc), either->tables[0], either->tables[1]))
			return false;
	return is_table(either->query, either->tables[0]) && is_table(either->query, either->tables[1]);
}

/* Step 3: is there a reference to all of a table's row, a system column, or a join's own column? */
static bool
is_whole(const HgjEither *either)
{
	return hgj_refers_to_whole(either->query, bms_add_member(bms_make_singleton(either->tables[0]),
															 either->tables[1]));
}

/* ---- the rows, put together ----------------------------------------------- */

/* Put the tables' new numbers into an expression.  levels: how far above it they stand */
typedef struct HgjRenumbering
{
	const HgjEither *either;
	int			numbers[2];		/* new numbers of the tables */
	int			levels[2];		/* number of levels that they stand above the expression */
} HgjRenumbering;

static Node *
renumber(Node *node, void *context)
{
	const HgjRenumbering *renumbering = context;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var))
	{
		Var		   *var = copyObject((Var *) node);
		int			which = var->varno == renumbering->either->tables[1];

		var->varno = renumbering->numbers[which];
		var->varlevelsup = renumbering->levels[which];
		hgj_forget_nulled_by(var);
		return (Node *) var;
	}
	return expression_tree_mutator(node, renumber, context);
}

/* A SELECT from copies of tables of the level. */
static Query *
select_from_tables(const HgjEither *either, int first, int last)
{
	Query	   *result = NULL;

	for (int i = first; i <= last; i++)
	{
		const RangeTblEntry *original = list_nth(either->query->rtable, either->tables[i] - 1);
		RangeTblEntry *rte = copyObject((RangeTblEntry *) original);

		if (result == NULL)
			result = hgj_select_from(rte);
		else
		{
			result->rtable = lappend(result->rtable, rte);
			result->jointree->fromlist = lappend(result->jointree->fromlist,
												 hgj_refer_to(list_length(result->rtable)));
		}
		hgj_copy_privileges(result, rte, either->query, original);
	}
	return result;
}

/* Return the columns; the other table's are NULL if only the first one is there. */
static void
return_columns(const HgjEither *either, Query *query, bool both)
{
	HgjRenumbering renumbering = {either, {1, 2}, {0, 0}};
	ListCell   *lc;

	foreach(lc, either->columns)
	{
		Var		   *var = lfirst(lc);
		AttrNumber	resno = list_length(query->targetList) + 1;
		Node	   *value = both || var->varno == either->tables[0] ?
			renumber((Node *) var, &renumbering) :
			(Node *) makeNullConst(var->vartype, var->vartypmod, var->varcollid);

		query->targetList = lappend(query->targetList,
									makeTargetEntry((Expr *) value, resno,
													psprintf("column%d", resno), false));
	}
}

/* Step 1: the rows that come from a part. */
static Query *
rows_of_part(const HgjEither *either, int part)
{
	HgjRenumbering renumbering = {either, {1, 2}, {0, 0}};
	Query	   *result = select_from_tables(either, 0, 1);
	List	   *clauses = list_copy(either->also);

	clauses = lappend(clauses, list_nth(either->parts, part));
	for (int i = 0; i < part; i++)
		clauses = lappend(clauses, hgj_test_truth(list_nth(either->parts, i), IS_NOT_TRUE));
	result->jointree->quals = renumber((Node *) make_ands_explicit(clauses), &renumbering);
	return_columns(either, result, true);
	return result;
}

/* Step 2: the first table's rows for which no part holds. */
static Query *
rows_of_no_part(const HgjEither *either)
{
	HgjRenumbering renumbering = {either, {1, 1}, {1, 0}};
	Query	   *result = select_from_tables(either, 0, 0);
	List	   *clauses = NIL;
	ListCell   *lc;

	foreach(lc, either->parts)
	{
		Query	   *match = select_from_tables(either, 1, 1);
		List	   *matched = lappend(list_copy(either->also), lfirst(lc));

		match->jointree->quals = renumber((Node *) make_ands_explicit(matched), &renumbering);
		clauses = lappend(clauses, make_notclause((Expr *) hgj_make_sublink(EXISTS_SUBLINK, NULL,
																			 match)));
	}
	result->jointree->quals = (Node *) make_ands_explicit(clauses);
	result->hasSubLinks = true;
	return_columns(either, result, false);
	return result;
}

/* Put another SELECT behind those before it: UNION ALL. */
static void
add_select(Query *all, Query *select)
{
	int			relation = list_length(all->rtable) + 1;
	Node	   *reference = (Node *) hgj_refer_to(relation);
	SetOperationStmt *operation;
	ListCell   *lc;

	all->rtable = lappend(all->rtable, hgj_subquery_entry(select, psprintf("*SELECT* %d", relation)));
	if (all->setOperations == NULL)
	{
		all->setOperations = reference;
		return;
	}
	operation = makeNode(SetOperationStmt);
	operation->op = SETOP_UNION;
	operation->all = true;
	operation->larg = all->setOperations;
	operation->rarg = reference;
	foreach(lc, select->targetList)
	{
		Node	   *value = (Node *) lfirst_node(TargetEntry, lc)->expr;

		operation->colTypes = lappend_oid(operation->colTypes, exprType(value));
		operation->colTypmods = lappend_int(operation->colTypmods, exprTypmod(value));
		operation->colCollations = lappend_oid(operation->colCollations, exprCollation(value));
	}
	all->setOperations = (Node *) operation;
}

/* All rows of the join. */
static Query *
all_rows(const HgjEither *either)
{
	Query	   *result = makeNode(Query);
	ListCell   *lc;

	result->commandType = CMD_SELECT;
	result->canSetTag = true;
	for (int part = 0; part < list_length(either->parts); part++)
		add_select(result, rows_of_part(either, part));
	if (either->outer_join > 0)
		add_select(result, rows_of_no_part(either));
	result->jointree = makeFromExpr(NIL, NULL);
	foreach(lc, linitial_node(RangeTblEntry, result->rtable)->subquery->targetList)
	{
		TargetEntry *tle = lfirst(lc);

		result->targetList = lappend(result->targetList,
									 makeTargetEntry((Expr *) makeVarFromTargetEntry(1, tle), tle->resno,
													 pstrdup(tle->resname), false));
	}
	return result;
}

/* ---- the level around them ------------------------------------------------- */

/* The column of the result that is this one of a table, which is returned from now on. */
static int
column_for(HgjEither *either, const Var *var)
{
	Var		   *column;
	ListCell   *lc;

	foreach(lc, either->columns)
	{
		column = lfirst(lc);
		if (column->varno == var->varno && column->varattno == var->varattno)
			return foreach_current_index(lc) + 1;
	}
	column = copyObject((Var *) var);
	column->varlevelsup = 0;
	either->columns = lappend(either->columns, column);
	return list_length(either->columns);
}

/* Refer to the result in place of the tables. */
static Node *
refer_to_result(Node *node, void *context)
{
	HgjEither  *either = context;
	Node	   *result;

	if (node == NULL)
		return NULL;
	check_stack_depth();
	if (IsA(node, Var))
	{
		Var		   *var = copyObject((Var *) node);

		if (var->varlevelsup == either->depth &&
			(var->varno == either->tables[0] || var->varno == either->tables[1]))
		{
			var->varattno = column_for(either, var);
			var->varno = either->result;
			var->varnosyn = 0;
			var->varattnosyn = 0;
			hgj_forget_nulled_by_join(var, either->outer_join);
		}
		return (Node *) var;
	}
	if (!IsA(node, Query))
		return expression_tree_mutator(node, refer_to_result, context);
	either->depth++;
	result = (Node *) query_tree_mutator((Query *) node, refer_to_result, context,
											QTW_IGNORE_JOINALIASES);
	either->depth--;
	return result;
}

/* Put the result into the level, whose FROM refers to it already. */
static void
add_result(HgjEither *either)
{
	Query	   *query = either->query;

	(void) query_tree_mutator(query, refer_to_result, either,
							  QTW_DONT_COPY_QUERY | QTW_IGNORE_JOINALIASES);
	/* a SELECT returns something, whether anybody asks for it or not */
	if (either->columns == NIL)
		either->columns = list_make1(linitial(pull_var_clause(linitial(either->parts), 0)));
	query->rtable = lappend(query->rtable, hgj_subquery_entry(all_rows(either), ROWS_NAME));
}

/* The result, which is put into the level's range table next. */
static RangeTblRef *
refer_to_next(HgjEither *either)
{
	either->result = list_length(either->query->rtable) + 1;
	return hgj_refer_to(either->result);
}

/* Is it one of the tables? */
static bool
is_one_of(const HgjEither *either, const Node *item)
{
	return IsA(item, RangeTblRef) && (((const RangeTblRef *) item)->rtindex == either->tables[0] ||
									  ((const RangeTblRef *) item)->rtindex == either->tables[1]);
}

/* Step 3: what inner joins join, and their clauses. */
static void
collect(Node *node, List **items, List **clauses)
{
	check_stack_depth();
	if (IsA(node, FromExpr))
	{
		ListCell   *lc;

		foreach(lc, ((FromExpr *) node)->fromlist)
			collect(lfirst(lc), items, clauses);
		hgj_split_clauses(((FromExpr *) node)->quals, clauses);
	}
	else if (IsA(node, JoinExpr) && ((JoinExpr *) node)->jointype == JOIN_INNER)
	{
		collect(((JoinExpr *) node)->larg, items, clauses);
		collect(((JoinExpr *) node)->rarg, items, clauses);
		hgj_split_clauses(((JoinExpr *) node)->quals, clauses);
	}
	else
		*items = lappend(*items, node);
}

/* Step 3: two members of the level's inner joins. */
static bool
split_inner(Query *query)
{
	List	   *items = NIL;
	List	   *clauses = NIL;
	ListCell   *lc;
	ListCell   *lc2;

	collect((Node *) query->jointree, &items, &clauses);
	foreach(lc, clauses)
	{
		HgjEither	either = {.query = query};
		List	   *rest = NIL;

		if (!take_clause(&either, lfirst(lc), clauses) ||
			is_whole(&either))
			continue;
		foreach(lc2, items)
			if (!is_one_of(&either, lfirst(lc2)))
				rest = lappend(rest, lfirst(lc2));
		if (list_length(rest) != list_length(items) - 2)
			continue;
		rest = lappend(rest, refer_to_next(&either));
		clauses = list_delete_nth_cell(clauses, foreach_current_index(lc));
		query->jointree = makeFromExpr(rest, hgj_join_clauses(clauses));
		add_result(&either);
		return true;
	}
	return false;
}

/* Step 3: what one JOIN joins. */
static bool
split_join(Query *query, Node **place)
{
	JoinExpr   *join = (JoinExpr *) *place;
	HgjEither	either = {.query = query};
	List	   *clauses = NIL;
	ListCell   *lc;

	if (!IsA(join, JoinExpr) || (join->jointype != JOIN_INNER && join->jointype != JOIN_LEFT) ||
		!IsA(join->larg, RangeTblRef) || !IsA(join->rarg, RangeTblRef))
		return false;
	hgj_split_clauses(join->quals, &clauses);
	foreach(lc, clauses)
		if (take_clause(&either, lfirst(lc), clauses))
			break;
	if (lc == NULL || !is_one_of(&either, join->larg) || !is_one_of(&either, join->rarg))
		return false;
	either.also = list_delete_ptr(list_copy(clauses), lfirst(lc));
	if (!hgj_can_be_repeated((Node *) either.also) ||
		bms_num_members(pull_varnos(NULL, (Node *) clauses)) != 2 ||
		is_whole(&either))
		return false;
	either.tables[0] = ((RangeTblRef *) join->larg)->rtindex;
	either.tables[1] = ((RangeTblRef *) join->rarg)->rtindex;
	if (join->jointype == JOIN_LEFT)
	{
		either.outer_join = join->rtindex;
		/* the planner looks for outer joins where there is an entry of one */
		list_nth_node(RangeTblEntry, query->rtable, join->rtindex - 1)->jointype = JOIN_INNER;
	}
	*place = (Node *) refer_to_next(&either);
	add_result(&either);
	return true;
}

/* Step 3: joins below others. */
static bool
split_below(Query *query, Node **place)
{
	Node	   *node = *place;
	ListCell   *lc;

	check_stack_depth();
	if (split_join(query, place))
		return true;
	if (IsA(node, JoinExpr))
		return split_below(query, &((JoinExpr *) node)->larg) ||
			split_below(query, &((JoinExpr *) node)->rarg);
	if (IsA(node, FromExpr))
		foreach(lc, ((FromExpr *) node)->fromlist)
			if (split_below(query, (Node **) &lfirst(lc)))
				return true;
	return false;
}

/* Join tables of the level by the parts of OR.  Returns the number of joins that were found. */
int
hgj_join_by_either(Query *query)
{
	int			found = 0;

	while (split_inner(query) || split_below(query, (Node **) &query->jointree))
		found++;
	return found;
}
