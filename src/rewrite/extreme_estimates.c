/*-------------------------------------------------------------------------
 *
 * extreme_estimates.c
 *	  How many rows have the least or the greatest value of their group.
 *
 * `x = (SELECT max(x) FROM t WHERE t.k = o.k)`, the latest row of each key, has become a join
 * with groups by the key and by the value.  PostgreSQL takes the two equalities for independent,
 * and the second one for as rare as one value of all that x has: it expects a row where there is
 * one for each group, and puts a nested loop above it.
 *
 * 1. When the groups' paths are known, their columns that are min() or max() of a plain column are
 *	  looked for among the equivalence classes: in one with the same column of the same table, whose
 *	  other columns are equal to the groups' keys of that table, all of them.  Of other rows nothing is
 *	  known.
 * 2. Of the rows with a group's keys, one at least has the value: the selectivity is one divided by
 *	  the number of rows that the table has for each value of the keys, whatever else restricts
 *	  the groups.  The planner keeps it in the clause that it makes of the class, which is
 *	  made here, and found again for each join of the two.
 *
 * Memory: the planner's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "parser/parsetree.h"
#include "rewrite/hidden.h"
#include "rewrite/rewrite.h"
#include "utils/selfuncs.h"

static set_rel_pathlist_hook_type previous_hook = NULL;

/* Step 1: the column of a table that the groups' column is an extreme of; NULL: of none. */
static const Var *
extreme_of(const Query *groups, AttrNumber attno)
{
	const TargetEntry *tle = list_nth_node(TargetEntry, groups->targetList, attno - 1);
	const Aggref *aggregate = (const Aggref *) tle->expr;
	const Var  *column;

	if (!IsA(aggregate, Aggref) || list_length(aggregate->args) != 1 ||
		aggregate->aggfilter != NULL || !OidIsValid(hgj_sort_operator_of(aggregate->aggfnoid)))
		return NULL;
	column = (const Var *) linitial_node(TargetEntry, aggregate->args)->expr;
	return IsA(column, Var) && column->varlevelsup == 0 && column->varattno > 0 &&
		rt_fetch(column->varno, groups->rtable)->rtekind == RTE_RELATION ? column : NULL;
}

/* Step 1: a member of a class that is a column of one relation, or NULL. */
static const Var *
column_of_member(const EquivalenceMember *member)
{
	const Var  *var = (const Var *) member->em_expr;

	return !member->em_is_const && !member->em_is_child && IsA(var, Var) &&
		var->varattno > 0 ? var : NULL;
}

/* Step 1: are the groups' column and the table's in one class? */
static bool
are_equal(const PlannerInfo *root, Index groups, AttrNumber column, Index table, AttrNumber other)
{
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, root->eq_classes)
	{
		const EquivalenceClass *class = lfirst(lc);
		bool		has_column = false;
		bool		has_other = false;

		if (class->ec_merged != NULL)
			continue;
		foreach(lc2, class->ec_members)
		{
			const Var  *var = column_of_member(lfirst(lc2));

			has_column |= var && var->varno == groups && var->varattno == column;
			has_other |= var && var->varno == table && var->varattno == other;
		}
		if (has_column && has_other)
			return true;
	}
	return false;
}

/*
 * Steps 1 and 2: rows of the table, which the groups have as relation `inside`, for each value of
 * the groups' keys; 0: these are not the table's.
 */
static double
rows_of_keys(PlannerInfo *root, const RelOptInfo *rel, const Query *groups, Index inside,
			 const RelOptInfo *table)
{
	List	   *keys = NIL;
	ListCell   *lc;

	foreach(lc, groups->groupClause)
	{
		const TargetEntry *tle = get_sortgroupclause_tle(lfirst(lc), groups->targetList);
		const Var  *key = (const Var *) tle->expr;
		Var		   *outer;

		if (!IsA(key, Var) || key->varno != inside || key->varlevelsup > 0 || key->varattno <= 0 ||
			!are_equal(root, rel->relid, tle->resno, table->relid, key->varattno))
			return 0;
		outer = copyObject((Var *) key);
		outer->varno = table->relid;
		keys = lappend(keys, outer);
	}
	if (keys == NIL)
		return 0;
	return Max(table->tuples / estimate_num_groups(root, keys, Max(table->tuples, 1), NULL, NULL), 1);
}

/* Step 2: of the clauses of a join, the one that compares the other member. */
static void
weigh(const List *clauses, const EquivalenceClass *class, const EquivalenceMember *other,
	  Selectivity selectivity)
{
	ListCell   *lc;

	foreach(lc, clauses)
	{
		RestrictInfo *clause = lfirst(lc);

		if (clause->parent_ec == class && (clause->left_em == other || clause->right_em == other))
			clause->norm_selec = clause->outer_selec = selectivity;
	}
}

/* Step 1, for one class: the extreme's member, and with it all members of the column's. */
static void
weigh_class(PlannerInfo *root, RelOptInfo *rel, const Query *groups, const EquivalenceClass *class)
{
	const Var  *column = NULL;
	ListCell   *lc;

	foreach(lc, class->ec_members)
	{
		const Var  *var = column_of_member(lfirst(lc));

		if (column == NULL && var && var->varno == rel->relid)
			column = extreme_of(groups, var->varattno);
	}
	foreach(lc, column ? class->ec_members : NIL)
	{
		const EquivalenceMember *member = lfirst(lc);
		const Var  *var = column_of_member(member);

		if (var && var->varno != rel->relid && var->varattno == column->varattno &&
			planner_rt_fetch(var->varno, root)->rtekind == RTE_RELATION &&
			planner_rt_fetch(var->varno, root)->relid == rt_fetch(column->varno, groups->rtable)->relid)
		{
			RelOptInfo *table = find_base_rel(root, var->varno);
			double		rows = rows_of_keys(root, rel, groups, column->varno, table);

			if (rows == 0)
				continue;
			/* before 16, it is another clause where the groups are the outer side */
			weigh(hgj_implied_equalities(root, table, rel), class, member, 1 / rows);
			weigh(hgj_implied_equalities(root, rel, table), class, member, 1 / rows);
		}
	}
}

static void
weigh_extremes(PlannerInfo *root, RelOptInfo *rel, Index relation, RangeTblEntry *rte)
{
	ListCell   *lc;

	if (previous_hook)
		previous_hook(root, rel, relation, rte);
	if (!hgj_is_groups(rte) || rel->subroot == NULL)
		return;
	foreach(lc, root->eq_classes)
	{
		const EquivalenceClass *class = lfirst(lc);

		if (class->ec_merged == NULL && !class->ec_has_const && !class->ec_has_volatile &&
			bms_is_member(rel->relid, class->ec_relids))
			weigh_class(root, rel, rte->subquery, class);
	}
}

/* Call once per process, from _PG_init. */
void
hgj_install_extreme_estimates(void)
{
	previous_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = weigh_extremes;
}
