/*-------------------------------------------------------------------------
 *
 * agg_dependent.c
 *	  Which group columns tell groups apart, and which depend on these.
 *
 * GROUP BY often lists what comes with a key: a customer's name and address beside the
 * number, an order's date beside the items' order number.  Hashing and comparing them
 * for every row would change no group.
 *
 * 1. Let some group columns be given.  The row of a table is determined if each column of
 *	  a unique index of it is determined: because it is one of these group columns (and
 *	  declared NOT NULL: an index has NULLs as often as there are), or because the query's
 *	  joins make it equal to one of them, or to a column of a row that is determined.
 *	  What is equal has to be so by the index's operators and collation.
 * 2. Then every expression of columns of such rows has one value in each group.
 * 3. Group columns are looked at from the last to the first: one that the others
 *	  determine is no longer given, but depends on them.  At least one is left.
 * 4. Equal columns are known from equivalence classes, whose clauses hold for every row
 *	  only where there is no outer join.  Columns of the nullable side of one are all
 *	  NULL where the key is, so that a key that is grouped by determines them there, too.
 * 5. A snapshot that is older than an index may see rows that were gone when the index was made.
 *	  Such an index says nothing (index_age.c).
 *
 * PostgreSQL's relation_has_unique_index_for() rests on the same indexes for unique joins,
 * and its plans are made anew when an index goes.
 *
 * Memory: the planner's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/table.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "planner/agg_path.h"
#include "planner/planner.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* More group columns than this are not looked at: the time grows with their square. */
#define MOST_COLUMNS	32

/* What some group columns determine. */
typedef struct Known
{
	PlannerInfo *root;			/* query */
	bool		inner;			/* all joins are inner or semi joins (step 4) */
	List	   *exprs;			/* group columns that are given, and one more */
	List	   *operators;		/* equality operators of these columns */
	int			without;		/* position of the column that is not given */
	Bitmapset  *rows;			/* relids of tables whose rows are determined */
} Known;

/* The planner has the table open. */
static bool
is_not_null(Oid relid, AttrNumber attno)
{
	Relation	rel = table_open(relid, NoLock);
	bool		result = HGJ_IS_NOT_NULL(RelationGetDescr(rel), attno);

	table_close(rel, NoLock);
	return result;
}

/* Is it one of the group columns that are given, by equality of the family and collation? */
static bool
is_given(const Known *known, const Node *expr, Oid opfamily, Oid collation)
{
	for (int i = 0; i < list_length(known->exprs); i++)
		if (i != known->without && equal(expr, list_nth(known->exprs, i)) &&
			op_in_opfamily(list_nth_oid(known->operators, i), opfamily) &&
			exprCollation(expr) == collation)
			return true;
	return false;
}

/* Step 1: do joins make column attno of the table equal to something that is determined? */
static bool
is_equal_to_known(const Known *known, const RelOptInfo *rel, AttrNumber attno, Oid opfamily,
				  Oid collation)
{
	int			i = -1;

	while ((i = bms_next_member(rel->eclass_indexes, i)) >= 0)
	{
		EquivalenceClass *ec = list_nth_node(EquivalenceClass, known->root->eq_classes, i);
		bool		has_column = false;
		bool		has_known = false;
		ListCell   *lc;

		if (ec->ec_has_volatile || ec->ec_collation != collation ||
			!list_member_oid(ec->ec_opfamilies, opfamily))
			continue;
		foreach(lc, ec->ec_members)
		{
			const EquivalenceMember *member = lfirst_node(EquivalenceMember, lc);
			const Var  *var = (const Var *) member->em_expr;

			if (member->em_is_child || !IsA(var, Var))
				continue;
			if (var->varno == (int) rel->relid)
				has_column |= var->varattno == attno;
			else
				has_known |= bms_is_member(var->varno, known->rows) ||
					is_given(known, (const Node *) var, opfamily, collation);
		}
		if (has_column && has_known)
			return true;
	}
	return false;
}

/* Step 1, of one column of an index. */
static bool
is_determined(const Known *known, RelOptInfo *rel, const IndexOptInfo *index, int column)
{
	AttrNumber	attno = index->indexkeys[column];
	Oid			opfamily = index->opfamily[column];
	Oid			collation = index->indexcollations[column];
	Oid			relid = planner_rt_fetch(rel->relid, known->root)->relid;

	for (int i = 0; i < list_length(known->exprs); i++)
	{
		const Var  *var = list_nth(known->exprs, i);

		if (IsA(var, Var) && var->varno == (int) rel->relid && var->varattno == attno &&
			var->varlevelsup == 0 && is_given(known, (const Node *) var, opfamily, collation) &&
			is_not_null(relid, attno))
			return true;
	}
	return known->inner && is_equal_to_known(known, rel, attno, opfamily, collation);
}

/* Step 1, of a table. */
static bool
row_is_determined(const Known *known, RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, rel->indexlist)
	{
		const IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);
		bool		all = index->unique && index->immediate && !index->hypothetical &&
			index->relam == BTREE_AM_OID && index->indpred == NIL;

		for (int c = 0; all && c < index->nkeycolumns; c++)
			all = index->indexkeys[c] > 0 && is_determined(known, rel, index, c);
		if (all && hgj_index_is_older(index->indexoid))
			return true;
	}
	return false;
}

/* Step 1: all tables whose rows are determined. */
static void
find_rows(Known *known)
{
	bool		more;

	known->rows = NULL;
	do
	{
		more = false;
		for (int r = 1; r < known->root->simple_rel_array_size; r++)
		{
			RelOptInfo *rel = known->root->simple_rel_array[r];
			RangeTblEntry *rte = known->root->simple_rte_array[r];

			/* an index of a parent says nothing of its children's rows */
			if (rel == NULL || rel->reloptkind != RELOPT_BASEREL ||
				rte->rtekind != RTE_RELATION || bms_is_member(r, known->rows) ||
				(rte->inh && rte->relkind != RELKIND_PARTITIONED_TABLE) ||
				!row_is_determined(known, rel))
				continue;
			known->rows = bms_add_member(known->rows, r);
			more = true;
		}
	} while (more);
}

/* Step 2. */
static bool
depends(const Known *known, Node *expr)
{
	List	   *vars = pull_var_clause(expr, PVC_INCLUDE_PLACEHOLDERS);
	ListCell   *lc;

	/* nobody looks into subplans here, which may call volatile functions */
	if (vars == NIL || contain_volatile_functions(expr) || contain_subplans(expr))
		return false;
	foreach(lc, vars)
		if (!IsA(lfirst(lc), Var) || !bms_is_member(lfirst_node(Var, lc)->varno, known->rows))
			return false;
	return true;
}

/* Step 4: only such joins whose clauses hold for all rows? */
static bool
has_inner_joins_only(const PlannerInfo *root)
{
	ListCell   *lc;

	foreach(lc, root->join_info_list)
	{
		JoinType	type = lfirst_node(SpecialJoinInfo, lc)->jointype;

		if (type != JOIN_INNER && type != JOIN_SEMI)
			return false;
	}
	return true;
}

/*
 * Put the group columns that tell groups apart first, and set contents->ntelling to their
 * number.  The last `loose` columns are known to depend on the others.
 */
void
hgj_find_dependent_columns(PlannerInfo *root, HgjAggContents *contents, int loose)
{
	Known		known = {.root = root, .inner = has_inner_joins_only(root)};
	int			n = list_length(contents->group_exprs) - loose;
	List	   *exprs = list_copy_tail(contents->group_exprs, n);
	List	   *operators = list_copy_tail(contents->group_operators, n);
	int			last = n - 1;

	known.exprs = list_copy_head(contents->group_exprs, n);
	known.operators = list_copy_head(contents->group_operators, n);
	if (n > MOST_COLUMNS)
		last = -1;
	for (int i = last; i >= 0 && list_length(known.exprs) > 1; i--)
	{
		known.without = i;
		find_rows(&known);
		if (!depends(&known, list_nth(known.exprs, i)))
			continue;
		exprs = lcons(list_nth(known.exprs, i), exprs);
		operators = lcons_oid(list_nth_oid(known.operators, i), operators);
		known.exprs = list_delete_nth_cell(known.exprs, i);
		known.operators = list_delete_nth_cell(known.operators, i);
	}
	contents->ntelling = list_length(known.exprs);
	contents->group_exprs = list_concat(known.exprs, exprs);
	contents->group_operators = list_concat(known.operators, operators);
}
