/*-------------------------------------------------------------------------
 *
 * proofs.c
 *	  What has to be known of a subquery before it becomes a join: which levels it refers
 *	  to, and that its rows raise no error.
 *
 * As a subquery it is evaluated for the rows around it, and of the table inside only rows
 * with their keys are looked at.  As a join all its rows are.  So no row may raise an
 * error, whatever its values are:
 *
 * 1. Clauses, keys and arguments are to be such as expr/may_raise.c knows.  They are looked
 *	  at as they are written: PostgreSQL folds no constants of a subquery that it finds to be
 *	  in a dead branch, and these might raise an error, too.
 * 2. Numerics may also be added, subtracted and multiplied, where a declared precision
 *	  bounds each of them, and there are few.  A numeric has 131,072 digits before the point.
 *	  An operand has 2,000 at most, as many as a declaration allows, and there are 8: an
 *	  aggregate of them has 16,020, and 8 operands such as that have fewer than 131,072.
 *	  An interval or days may be added to a date, both constants that are not far away, and to
 *	  the time of the query.  What is guarded (guarded.c) raises no error.
 * 3. What is read are tables, joins of tables, groups that have been made of a subquery inside,
 *	  and subqueries of these with clauses, GROUP BY and DISTINCT.  What foreign tables and
 *	  expanded columns do is not known.
 *
 * 4. Of the rows around it, its operands are evaluated for all of them, too.  Columns of a
 *	  subquery in FROM, as of a view, are what it computes, since PostgreSQL puts that in their
 *	  place; so are columns of WITH queries, VALUES and functions.
 *
 * No memory but what is looked at, no locks: the tables are the parser's.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "expr/demand.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "rewrite/hidden.h"
#include "rewrite/rewriteManip.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/* Step 2 */
#define MOST_OPERANDS		8
#define MOST_CONST_DIGITS	1000
#define MOST_DAYS			1000000
#define MOST_SPAN			100000
#define MOST_MONTHS			(MOST_SPAN / 31)

/* Which references are looked for. */
typedef struct HgjReferences
{
	int			level;			/* number of levels above the one at hand */
	bool		and_above;		/* references further up count, too */
} HgjReferences;

static bool
counts(const HgjReferences *wanted, int level)
{
	return level == wanted->level || (wanted->and_above && level > wanted->level);
}

static bool
find_reference(Node *node, void *context)
{
	HgjReferences *wanted = context;

	if (node == NULL)
		return false;
	check_stack_depth();
	if (IsA(node, Var))
		return counts(wanted, ((Var *) node)->varlevelsup);
	if (IsA(node, Aggref) && counts(wanted, ((Aggref *) node)->agglevelsup))
		return true;
	if (IsA(node, GroupingFunc) && counts(wanted, ((GroupingFunc *) node)->agglevelsup))
		return true;
	if (IsA(node, Query))
	{
		bool		found;

		wanted->level++;
		found = query_tree_walker((Query *) node, find_reference, wanted, 0);
		wanted->level--;
		return found;
	}
	return expression_tree_walker(node, find_reference, wanted);
}

static bool
has_reference(Node *node, HgjReferences wanted)
{
	/* a query is its own level: its expressions are what is looked at */
	if (node && IsA(node, Query))
		return query_tree_walker((Query *) node, find_reference, &wanted, 0);
	return find_reference(node, &wanted);
}

/* Does the expression, or the query, refer to this level above it? */
bool
hgj_refers_to_level(Node *node, int level)
{
	return has_reference(node, (HgjReferences) {level, false});
}

/* Do subqueries and functions in FROM? */
bool
hgj_tables_refer_to_level(List *rtable, int level)
{
	HgjReferences wanted = {level, false};

	return range_table_walker(rtable, find_reference, &wanted, QTW_IGNORE_JOINALIASES);
}

/* To one that is further up than this one? */
bool
hgj_refers_above(Node *node, int level)
{
	return has_reference(node, (HgjReferences) {level + 1, true});
}

/* Where a walk that looks for more than columns is. */
typedef struct HgjWhole
{
	const Query *query;			/* the level that has the relations */
	const Bitmapset *relations; /* range table indexes */
	int			depth;			/* number of levels below it */
} HgjWhole;

static bool
find_whole(Node *node, void *context)
{
	HgjWhole   *whole = context;
	bool		found;

	if (node == NULL)
		return false;
	if (IsA(node, Var))
	{
		const Var  *var = (const Var *) node;

		if ((int) var->varlevelsup != whole->depth)
			return false;
		if (bms_is_member(var->varno, whole->relations))
			return var->varattno <= 0;
		return list_nth_node(RangeTblEntry, whole->query->rtable, var->varno - 1)->rtekind == RTE_JOIN;
	}
	if (!IsA(node, Query))
		return expression_tree_walker(node, find_whole, context);
	check_stack_depth();
	whole->depth++;
	found = query_tree_walker((Query *) node, find_whole, context, QTW_IGNORE_JOINALIASES);
	whole->depth--;
	return found;
}

/*
 * Is there a reference to the whole row of one of these relations of the query's, to a system
 * column, or to any join's own column?
 */
bool
hgj_refers_to_whole(const Query *query, const Bitmapset *relations)
{
	HgjWhole	whole = {query, relations, 0};

	return query_tree_walker((Query *) query, find_whole, &whole, QTW_IGNORE_JOINALIASES);
}

/* Is it a subquery that may run once for each row, or whose test does? */
bool
hgj_may_be_hidden(const SubLink *sublink)
{
	switch (sublink->subLinkType)
	{
		case ANY_SUBLINK:
		case ALL_SUBLINK:
			return true;
		case EXISTS_SUBLINK:
		case EXPR_SUBLINK:
			return hgj_refers_to_level(sublink->subselect, 1);
		default:
			return false;
	}
}

/*
 * Something that has a value of the node's type, and is not a constant: what is computed of a
 * constant may be known to raise no error.  bounded: a numeric, as an aggregate of operands by
 * step 2 is.
 */
Node *
hgj_any_value(Node *node, bool bounded)
{
	Param	   *result = makeNode(Param);

	result->paramkind = PARAM_EXEC;
	result->paramtype = exprType(node);
	result->paramtypmod = bounded && result->paramtype == NUMERICOID ?
		(MOST_CONST_DIGITS << 16) + VARHDRSZ : exprTypmod(node);
	result->paramcollid = exprCollation(node);
	result->location = -1;
	return (Node *) result;
}

static bool is_small(const Node *node, int *operands);

/* Step 2: an operand with a declared precision, an integer, or a constant that is no giant. */
static bool
is_bounded(const Node *node)
{
	if (IsA(node, Const))
		return ((const Const *) node)->constisnull ||
			strlen(DatumGetCString(DirectFunctionCall1(numeric_out,
													   ((const Const *) node)->constvalue))) <= MOST_CONST_DIGITS;
	if (IsA(node, FuncExpr))
		switch (((const FuncExpr *) node)->funcid)
		{
			case F_NUMERIC_INT2:
			case F_NUMERIC_INT4:
			case F_NUMERIC_INT8:
				return !hgj_row_may_raise(linitial(((const FuncExpr *) node)->args));
			default:
				if (hgj_is_plain_extract((const FuncExpr *) node))
					return !hgj_row_may_raise(lsecond(((const FuncExpr *) node)->args));
		}
	return (IsA(node, Var) || (IsA(node, Param) && ((const Param *) node)->paramkind == PARAM_EXEC)) &&
		exprTypmod(node) >= 0;
}

static bool
are_small(const List *nodes, int *operands)
{
	ListCell   *lc;

	foreach(lc, nodes)
		if (!is_small(lfirst(lc), operands))
			return false;
	return true;
}

static bool
is_small_case(const CaseExpr *expr, int *operands)
{
	ListCell   *lc;

	foreach(lc, expr->args)
	{
		const CaseWhen *when = lfirst_node(CaseWhen, lc);

		if (hgj_row_may_raise((Node *) when->expr) ||
			!is_small((const Node *) when->result, operands))
			return false;
	}
	return !hgj_row_may_raise((Node *) expr->arg) &&
		(expr->defresult == NULL || is_small((const Node *) expr->defresult, operands));
}

/* Step 2: is it such an operand, one of several, or arithmetic with them?  Counts them. */
static bool
is_small(const Node *node, int *operands)
{
	OpExpr	   *expr = (OpExpr *) node;
	Node	   *guarded;

	check_stack_depth();
	if (exprType(node) != NUMERICOID)
		return false;
	guarded = hgj_guarded_value(node);
	if (guarded)
		return is_small(guarded, operands);
	if (is_bounded(node))
		return ++(*operands) <= MOST_OPERANDS;
	if (IsA(node, CaseExpr))
		return is_small_case((const CaseExpr *) node, operands);
	if (IsA(node, CoalesceExpr))
		return are_small(((const CoalesceExpr *) node)->args, operands);
	if (!IsA(node, OpExpr))
		return false;
	set_opfuncid(expr);
	switch (expr->opfuncid)
	{
		case F_NUMERIC_ADD:
		case F_NUMERIC_SUB:
		case F_NUMERIC_MUL:
		case F_NUMERIC_UMINUS:
		case F_NUMERIC_UPLUS:
			return are_small(expr->args, operands);
		default:
			return false;
	}
}

/* Step 2: is it a numeric whose sum, over any number of rows, is not too large for one? */
bool
hgj_is_small_numeric(Node *expression)
{
	int			operands = 0;

	return is_small(expression, &operands);
}

/* Step 2: an interval that is a constant, of some centuries at most. */
bool
hgj_is_short_interval(const Node *node)
{
	const Interval *span;

	if (!IsA(node, Const) || ((const Const *) node)->consttype != INTERVALOID)
		return false;
	if (((const Const *) node)->constisnull)
		return true;
	span = DatumGetIntervalP(((const Const *) node)->constvalue);
	return span->month >= -MOST_MONTHS && span->month <= MOST_MONTHS &&
		span->day >= -MOST_SPAN && span->day <= MOST_SPAN &&
		span->time >= -MOST_SPAN * USECS_PER_DAY && span->time <= MOST_SPAN * USECS_PER_DAY;
}

/* Step 2: a date that is a constant and not far away, or today, or the time that it is. */
static bool
is_near(const Node *node)
{
	if (IsA(node, SQLValueFunction))
		return hgj_is_time_of_query((const SQLValueFunction *) node);
	if (IsA(node, FuncExpr))
		return ((const FuncExpr *) node)->funcid == F_NOW;
	if (!IsA(node, Const) || ((const Const *) node)->constisnull)
		return IsA(node, Const);
	switch (((const Const *) node)->consttype)
	{
		case DATEOID:
			return fabs((double) DatumGetDateADT(((const Const *) node)->constvalue)) <= MOST_DAYS;
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return fabs((double) DatumGetTimestamp(((const Const *) node)->constvalue)) <=
				MOST_DAYS * (double) USECS_PER_DAY;
		default:
			return false;
	}
}

static bool
is_few_days(const Node *node)
{
	return IsA(node, Const) &&
		(((const Const *) node)->constisnull ||
		 fabs((double) DatumGetInt32(((const Const *) node)->constvalue)) <= MOST_SPAN);
}

/* Does the function of an operator add an interval to a date or a timestamp, or subtract it? */
bool
hgj_adds_interval(Oid function)
{
	switch (function)
	{
		case F_DATE_PL_INTERVAL:
		case F_DATE_MI_INTERVAL:
		case F_TIMESTAMP_PL_INTERVAL:
		case F_TIMESTAMP_MI_INTERVAL:
		case F_TIMESTAMPTZ_PL_INTERVAL:
		case F_TIMESTAMPTZ_MI_INTERVAL:
			return true;
		default:
			return false;
	}
}

/* Does it add days to a date, or subtract them? */
bool
hgj_adds_days(Oid function)
{
	return function == F_DATE_PLI || function == F_DATE_MII;
}

/* Step 2: an interval, or days, that are added to a date, or subtracted. */
static bool
is_near_date(const OpExpr *expr)
{
	if (!IsA(expr, OpExpr) || list_length(expr->args) != 2 || !is_near(linitial(expr->args)))
		return false;
	return (hgj_adds_interval(expr->opfuncid) && hgj_is_short_interval(lsecond(expr->args))) ||
		(hgj_adds_days(expr->opfuncid) && is_few_days(lsecond(expr->args)));
}

/* Put a value in the place of what raises no error by step 2. */
static Node *
without_harmless(Node *node, void *context)
{
	int			operands = 0;
	Node	   *guarded;

	if (node == NULL)
		return NULL;
	guarded = hgj_guarded_value(node);
	if (guarded)
		return without_harmless(guarded, context);
	if (is_near_date((const OpExpr *) node))
		return hgj_any_value(node, false);
	if ((IsA(node, OpExpr) || IsA(node, FuncExpr) || IsA(node, CaseExpr) ||
		 IsA(node, CoalesceExpr)) && is_small(node, &operands))
		return hgj_any_value(node, false);
	return expression_tree_mutator(node, without_harmless, context);
}

/* Steps 1 and 2: can the expression, or one of a list of them, raise an error? */
bool
hgj_row_may_raise(Node *expression)
{
	Node	   *copy = copyObject(expression);

	/* what comes from a view does not name its functions yet */
	fix_opfuncids(copy);
	return hgj_may_raise(without_harmless(copy, NULL), NULL);
}

/* Are there columns that are computed when they are read? */
static bool
has_computed_columns(const RangeTblEntry *rte)
{
	Relation	table = table_open(rte->relid, NoLock);
	bool		result = HGJ_HAS_VIRTUAL_COLUMNS(table);

	table_close(table, NoLock);
	return result;
}

/* Step 3: are all of its rows PostgreSQL's own, and stored as they are read? */
static bool
is_stored(const RangeTblEntry *rte)
{
	Relation	table = table_open(rte->relid, NoLock);
	bool		inherited = rte->inh && table->rd_rel->relhassubclass;
	bool		foreign = rte->relkind == RELKIND_FOREIGN_TABLE;
	ListCell   *lc;

	table_close(table, NoLock);
	foreach(lc, inherited ? find_all_inheritors(rte->relid, NoLock, NULL) : NIL)
		foreign |= get_rel_relkind(lfirst_oid(lc)) == RELKIND_FOREIGN_TABLE;
	return !foreign && !has_computed_columns(rte);
}

/*
 * May a clause of a level, or a list of them, be evaluated elsewhere in the query as well, for any
 * of its tables' rows?
 */
bool
hgj_can_be_repeated(Node *clause)
{
	return !checkExprHasSubLink(clause) && !hgj_refers_above(clause, 0) &&
		!hgj_row_may_raise(clause);
}

/* Where the columns of an expression come from. */
typedef struct HgjOrigin
{
	const Query *query;			/* the query whose columns they are */
	int			level;			/* number of levels that it is above the expression */
} HgjOrigin;

static bool column_may_raise(const Query *query, const Var *var);

static bool
find_raising_column(Node *node, void *context)
{
	HgjOrigin  *origin = context;

	if (node == NULL)
		return false;
	if (IsA(node, Var))
		return ((Var *) node)->varlevelsup == origin->level &&
			column_may_raise(origin->query, (Var *) node);
	return expression_tree_walker(node, find_raising_column, context);
}

/*
 * Step 4: of what a subquery in FROM returns.  An aggregate is there before anybody asks for it,
 * and so is a value by which it groups.
 */
static bool
returned_may_raise(const Query *query, AttrNumber column)
{
	const TargetEntry *value;

	/* all of its columns, or a union's: not looked into */
	if (column <= 0 || query->setOperations)
		return true;
	value = list_nth_node(TargetEntry, query->targetList, column - 1);
	return !IsA(value->expr, Aggref) &&
		!(value->ressortgroupref != 0 &&
		  get_sortgroupref_clause_noerr(value->ressortgroupref, query->groupClause)) &&
		hgj_operand_may_raise(query, (Node *) value->expr, 0);
}

/*
 * Step 4: the WITH query of this level that a range table entry reads, if its columns are those of its
 * target list: what a data-modifying one returns is not looked into.
 */
static const Query *
query_of_cte(const Query *query, const RangeTblEntry *rte)
{
	ListCell   *lc;

	foreach(lc, rte->ctelevelsup == 0 ? query->cteList : NIL)
	{
		const CommonTableExpr *cte = lfirst(lc);

		if (strcmp(cte->ctename, rte->ctename) == 0 && !cte->cterecursive &&
			((const Query *) cte->ctequery)->commandType == CMD_SELECT)
			return (const Query *) cte->ctequery;
	}
	return NULL;
}

/* Step 4 */
static bool
column_may_raise(const Query *query, const Var *var)
{
	const RangeTblEntry *rte = list_nth(query->rtable, var->varno - 1);
	const Query *with;

	check_stack_depth();
	if (HGJ_IS_GROUP_ENTRY(rte))
		return true;
	switch (rte->rtekind)
	{
		case RTE_RELATION:
			return has_computed_columns(rte);
		case RTE_JOIN:
			return var->varattno <= 0 ||
				hgj_operand_may_raise(query, list_nth(rte->joinaliasvars, var->varattno - 1), 0);
		case RTE_SUBQUERY:
			return returned_may_raise(rte->subquery, var->varattno);
		case RTE_CTE:
			with = query_of_cte(query, rte);
			return with == NULL || returned_may_raise(with, var->varattno);
		case RTE_FUNCTION:
			/* one that returns a set is a scan; another's call may be put in the place of its column */
			return !expression_returns_set((Node *) rte->functions) &&
				hgj_row_may_raise((Node *) rte->functions);
		case RTE_VALUES:
			return hgj_row_may_raise((Node *) rte->values_lists);
		default:
			return true;
	}
}

/*
 * Step 4: can the expression raise an error, if what it is made of is put in the place of the
 * query's columns?  level: the number of levels that the query is above the expression
 */
bool
hgj_operand_may_raise(const Query *query, Node *expression, int level)
{
	HgjOrigin	origin = {query, level};

	return hgj_row_may_raise(expression) || find_raising_column(expression, &origin);
}

/* A walk through the conditions of a query. */
typedef struct HgjConditions
{
	HgjConditionView view;		/* what is looked at in the place of each, or NULL */
	void	   *context;		/* what that is called with */
} HgjConditions;

static bool
find_raising_condition(Node *node, void *context)
{
	const HgjConditions *conditions = context;
	Node	   *quals = NULL;

	if (node == NULL)
		return false;
	if (IsA(node, JoinExpr))
		quals = ((JoinExpr *) node)->quals;
	else if (IsA(node, FromExpr))
		quals = ((FromExpr *) node)->quals;
	else if (!IsA(node, List))
		return false;
	if (conditions->view)
		quals = conditions->view(quals, conditions->context);
	return hgj_row_may_raise(quals) ||
		expression_tree_walker(node, find_raising_condition, context);
}

/*
 * Can a condition of FROM or WHERE, below this node of them, raise an error?  view: what is looked at
 * in a condition's place; NULL: the condition itself
 */
bool
hgj_condition_may_raise(Node *node, HgjConditionView view, void *context)
{
	HgjConditions conditions = {view, context};

	return find_raising_condition(node, &conditions);
}

/* Is it one SELECT of FROM and WHERE, whose rows nobody groups, sorts out or counts off? */
bool
hgj_is_plain(const Query *query)
{
	return query->commandType == CMD_SELECT && !query->hasWindowFuncs &&
		!query->hasTargetSRFs && query->cteList == NIL && query->setOperations == NULL &&
		query->groupClause == NIL && query->groupingSets == NIL && query->havingQual == NULL &&
		query->distinctClause == NIL && query->limitCount == NULL &&
		query->limitOffset == NULL && query->rowMarks == NIL;
}

/* Step 3: may all rows that a subquery in FROM returns be asked for? */
bool
hgj_is_proven_subquery(const HgjRewriting *rewriting, const Query *query)
{
	Query		bare = *query;

	bare.groupClause = bare.distinctClause = NIL;
	bare.havingQual = NULL;
	return hgj_is_plain(&bare) && !query->hasDistinctOn &&
		hgj_look_at_groups(query) == HGJ_HIDDEN_IS_JOIN &&
		!hgj_row_may_raise(query->jointree->quals) && hgj_reads_proven(rewriting, query);
}

/* Step 3: what FROM names, and the clauses that its policies add. */
static bool
is_proven(const HgjRewriting *rewriting, const RangeTblEntry *rte)
{
	if (HGJ_IS_GROUP_ENTRY(rte))
		return true;
	switch (rte->rtekind)
	{
		case RTE_RELATION:
			return rte->tablesample == NULL && !hgj_row_may_raise((Node *) rte->securityQuals) &&
				is_stored(rte);
		case RTE_JOIN:
			return true;
		case RTE_RESULT:
			/* what has been read there is read elsewhere now (lateral.c, eager.c) */
			return true;
		case RTE_SUBQUERY:
			return list_member_ptr(rewriting->groups, rte->subquery) ||
				hgj_is_proven_subquery(rewriting, rte->subquery);
		default:
			return false;
	}
}

/*
 * May the user read what the query does?  PostgreSQL does not ask where it finds a subquery
 * to be in a dead branch.
 */
bool
hgj_is_permitted(const Query *query)
{
	ListCell   *lc;

	check_stack_depth();
	if (!HGJ_TABLES_ARE_PERMITTED(query))
		return false;
	foreach(lc, query->rtable)
	{
		const RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (rte->rtekind == RTE_SUBQUERY && !hgj_is_permitted(rte->subquery))
			return false;
	}
	return true;
}

/* Step 3: may all rows of what FROM names be looked at, whatever its conditions are? */
bool
hgj_tables_proven(const HgjRewriting *rewriting, const Query *query)
{
	ListCell   *lc;

	check_stack_depth();
	foreach(lc, query->rtable)
		if (!is_proven(rewriting, lfirst_node(RangeTblEntry, lc)))
			return false;
	return true;
}

/* Step 3: may all rows of the query's FROM be looked at, whatever its WHERE is? */
bool
hgj_reads_proven(const HgjRewriting *rewriting, const Query *query)
{
	return hgj_tables_proven(rewriting, query) &&
		!hgj_condition_may_raise((Node *) query->jointree->fromlist, NULL, NULL);
}
