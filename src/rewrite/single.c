/*-------------------------------------------------------------------------
 *
 * single.c
 *	  Subqueries without aggregates that have one row at most: by unique indexes, or as they
 *	  take the first row of an order that has no ties.
 *
 * 1. FROM joins tables by inner joins.  A table has one row at most, for a row around the
 *	  subquery, if each column of a unique index equals an operand of that row, a constant, or a
 *	  value of a table that has one row at most.  The equality is that of the index.  If all
 *	  tables have, so has the subquery.
 * 2. An order has no ties if the columns of a unique index of the one table that is read are in
 *	  it, or equal such operands; those in the order are never NULL.
 * 3. Rows that tie are alike if the value is made of columns of the order alone, whose types
 *	  have no values that are equal and look different.
 * 4. The first row in the order of a value has the least or greatest of its values, and so is
 *	  min() or max(); but NULL may come first, which these pass over.
 * 5. Of a query that groups, a table has one row at most for each group if a unique index's columns
 *	  are among what it groups by, and are never NULL, or are set as in step 1.
 *
 * A plan depends on the tables' indexes by the relation cache, whose invalidations the plan
 * cache obeys: an index that is dropped, or becomes invalid, invalidates the plan.
 *
 * Memory: lists in the current context.  No locks: the tables are the parser's.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/table.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "planner/planner.h"
#include "rewrite/hidden.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* What is known of the columns that the subquery reads. */
typedef struct HgjKnown
{
	const Query *query;			/* the subquery */
	List	   *clauses;		/* OpExprs of inner joins and WHERE; those with the row around it, too */
	List	   *order;			/* SortGroupClauses whose columns count as known, or NIL */
	Bitmapset  *single;			/* tables that have one row at most */
} HgjKnown;

/* Is this operand the column, and is the other one known? */
static bool
sets_column(const HgjKnown *known, int table, AttrNumber column, const Node *operand,
			Node *other)
{
	const Var  *var = hgj_as_column(operand);

	return var && var->varno == table && var->varattno == column &&
		bms_is_subset(pull_varnos(NULL, other), known->single) &&
		!contain_volatile_functions(other);
}

/* Step 1: does a clause set the column, by an equality of the index's family? */
static bool
is_set(const HgjKnown *known, int table, AttrNumber column, Oid family, Oid collation)
{
	ListCell   *lc;

	foreach(lc, known->clauses)
	{
		const OpExpr *clause = lfirst(lc);

		if (!IsA(clause, OpExpr) || list_length(clause->args) != 2 ||
			get_op_opfamily_strategy(clause->opno, family) != BTEqualStrategyNumber ||
			(OidIsValid(collation) && clause->inputcollid != collation))
			continue;
		if (sets_column(known, table, column, linitial(clause->args), lsecond(clause->args)) ||
			sets_column(known, table, column, lsecond(clause->args), linitial(clause->args)))
			return true;
	}
	return false;
}

/* Step 2: is the column in the order, and never NULL? */
static bool
is_ordered(const HgjKnown *known, int table, AttrNumber column, Oid family, Oid collation)
{
	ListCell   *lc;

	foreach(lc, known->order)
	{
		const SortGroupClause *clause = lfirst(lc);
		Node	   *value = get_sortgroupclause_expr(lfirst(lc), known->query->targetList);
		const Var  *var = hgj_as_column(value);

		if (var && var->varno == table && var->varattno == column &&
			get_op_opfamily_strategy(clause->eqop, family) == BTEqualStrategyNumber &&
			(!OidIsValid(collation) || exprCollation(value) == collation) &&
			hgj_is_never_null(known->query, value))
			return true;
	}
	return false;
}

/* An index of another kind may have other operators under the number of equality. */
static bool
is_btree(Oid index)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(index));
	bool		result = false;

	if (HeapTupleIsValid(tuple))
	{
		result = ((Form_pg_class) GETSTRUCT(tuple))->relam == BTREE_AM_OID;
		ReleaseSysCache(tuple);
	}
	return result;
}

/* Steps 1 and 2, of one index. */
static bool
index_is_known(const HgjKnown *known, int table, HeapTuple tuple)
{
	Form_pg_index index = (Form_pg_index) GETSTRUCT(tuple);
	bool		isnull;
	oidvector  *classes;
	oidvector  *collations;

	if (!index->indisunique || !index->indimmediate || !index->indisvalid ||
		index->indisexclusion || !heap_attisnull(tuple, Anum_pg_index_indpred, NULL) ||
		!hgj_index_entry_is_older(tuple) || !is_btree(index->indexrelid))
		return false;
	classes = (oidvector *) DatumGetPointer(SysCacheGetAttr(INDEXRELID, tuple,
														   Anum_pg_index_indclass, &isnull));
	collations = (oidvector *) DatumGetPointer(SysCacheGetAttr(INDEXRELID, tuple,
															  Anum_pg_index_indcollation, &isnull));
	for (int i = 0; i < index->indnkeyatts; i++)
	{
		AttrNumber	column = index->indkey.values[i];
		Oid			family = get_opclass_family(classes->values[i]);

		/* 0 is an expression */
		if (column <= 0 ||
			(!is_set(known, table, column, family, collations->values[i]) &&
			 !is_ordered(known, table, column, family, collations->values[i])))
			return false;
	}
	return true;
}

/* Steps 1 and 2: of one table. */
static bool
is_single(const HgjKnown *known, int table)
{
	const RangeTblEntry *rte = list_nth(known->query->rtable, table - 1);
	Relation	relation;
	List	   *indexes;
	bool		result = false;
	ListCell   *lc;

	if (rte->rtekind != RTE_RELATION)
		return false;
	relation = table_open(rte->relid, NoLock);
	/* children of an inherited table have indexes of their own */
	if (!rte->inh || !relation->rd_rel->relhassubclass ||
		relation->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
	{
		indexes = RelationGetIndexList(relation);
		foreach(lc, indexes)
		{
			HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(lfirst_oid(lc)));

			if (!HeapTupleIsValid(tuple))
				continue;
			result |= index_is_known(known, table, tuple);
			ReleaseSysCache(tuple);
		}
	}
	table_close(relation, NoLock);
	return result;
}

/* Fill *known; false: there are joins that are no inner joins. */
static bool
know(HgjKnown *known, const Query *query)
{
	known->query = query;
	return hgj_collect_conditions((Node *) query->jointree, &known->clauses, NULL);
}

/* Steps 1 and 5: those of these tables that have one row at most; they come to be known one after the other. */
static Bitmapset *
find_single(HgjKnown *known, const Bitmapset *tables)
{
	bool		again = true;

	while (again)
	{
		int			table = -1;

		again = false;
		while ((table = bms_next_member(tables, table)) >= 0)
		{
			if (bms_is_member(table, known->single) || !is_single(known, table))
				continue;
			known->single = bms_add_member(known->single, table);
			again = true;
		}
	}
	return known->single;
}

/* Step 1: do all tables have one row at most? */
bool
hgj_is_single_row(const Query *query)
{
	HgjKnown	known = {0};
	Bitmapset  *tables = NULL;
	ListCell   *lc;

	if (query->limitCount || !know(&known, query))
		return false;
	foreach(lc, query->rtable)
		if (lfirst_node(RangeTblEntry, lc)->rtekind != RTE_JOIN)
			tables = bms_add_member(tables, foreach_current_index(lc) + 1);
	return bms_equal(find_single(&known, tables), tables);
}

/*
 * Step 5: of these tables, those of which each group of the query has one row at most; clauses: those
 * of inner joins and of WHERE.
 */
Bitmapset *
hgj_single_in_groups(const Query *query, List *clauses, const Bitmapset *tables)
{
	HgjKnown	known = {query, clauses, query->groupClause, NULL};

	return find_single(&known, tables);
}

/* Step 3: are values of the type that are equal alike, in that order's sense? */
bool
hgj_looks_equal(const SortGroupClause *clause, Node *value)
{
	Oid			family;
	Oid			type;
	Oid			function;
	HgjOrderMeaning meaning;

	if (!get_ordering_op_properties(clause->sortop, &family, &type, &meaning))
		return false;
	function = get_opfamily_proc(family, type, type, BTEQUALIMAGE_PROC);
	return OidIsValid(function) &&
		DatumGetBool(OidFunctionCall1Coll(function, exprCollation(value),
										  ObjectIdGetDatum(type)));
}

/* Step 3: is there a column of the subquery's that is not in the order?  context: the query */
static bool
find_unordered(Node *node, void *context)
{
	const Query *query = context;
	ListCell   *lc;

	if (node == NULL)
		return false;
	if (!IsA(node, Var))
		return expression_tree_walker(node, find_unordered, context);
	if (((Var *) node)->varlevelsup > 0)
		return false;
	foreach(lc, query->sortClause)
	{
		Node	   *value = get_sortgroupclause_expr(lfirst(lc), query->targetList);

		if (equal(hgj_as_column(value), node) && hgj_looks_equal(lfirst(lc), value))
			return false;
	}
	return true;
}

/* Steps 2 and 3: is the value of the first row told by the order, whatever ties there? */
bool
hgj_is_first_of_ties(const Query *query)
{
	HgjKnown	known = {0};
	bool		unordered = false;
	ListCell   *lc;

	foreach(lc, query->targetList)
		if (!lfirst_node(TargetEntry, lc)->resjunk)
			unordered |= find_unordered((Node *) lfirst_node(TargetEntry, lc)->expr, (void *) query);
	if (!unordered)
		return true;
	if (list_length(query->rtable) != 1 || !know(&known, query))
		return false;
	known.order = query->sortClause;
	return is_single(&known, 1);
}

/*
 * Step 4: have the subquery return an aggregate instead of the first row's value.  False: it
 * is not changed.
 */
bool
hgj_take_extreme(Query *query)
{
	TargetEntry *value = linitial(query->targetList);
	const SortGroupClause *clause = linitial(query->sortClause);
	Aggref	   *aggregate;

	if (list_length(query->sortClause) != 1 || list_length(query->targetList) != 1 ||
		clause->tleSortGroupRef != value->ressortgroupref ||
		hgj_refers_to_level((Node *) value->expr, 1) ||
		(clause->nulls_first && !hgj_is_never_null(query, (Node *) value->expr)))
		return false;
	aggregate = hgj_make_first(value->expr, clause);
	if (aggregate == NULL)
		return false;
	value->expr = (Expr *) aggregate;
	value->ressortgroupref = 0;
	query->hasAggs = true;
	query->sortClause = NIL;
	query->limitCount = NULL;
	return true;
}
