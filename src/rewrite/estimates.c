/*-------------------------------------------------------------------------
 *
 * estimates.c
 *	  How many rows a join with groups has that have been made of a subquery.
 *
 * A row finds one group at most.  PostgreSQL multiplies the selectivities of the equalities, and
 * knows nothing of what several columns of groups have in common: TPC-H's query 20 joins five
 * million groups by two keys, and is told of three rows.  It takes a nested loop then, which
 * runs for minutes.  Where groups are restricted to what is around them (restrict.c), it counts
 * that twice.  What it does know is a foreign key: each row finds one row of what it refers to.
 *
 * 1. Where all operands around the groups are columns of one table, the planner is told of such a
 *	  key.  It looks for the clauses itself, and drops a key that it does not find whole
 *	  (match_foreign_keys_to_quals()); it estimates with it, and proves nothing by it.
 * 2. Where groups are restricted to keys of a table, and that table is around them, too, each of
 *	  its rows that have passed its clauses is taken to find a group.  It is not looked for in the
 *	  query: the planner drops what it finds no clause for.  The keys of step 1, which say more,
 *	  come first: a clause counts once.
 * 3. The hook is that for a table's indexes and statistics: the conditions of joins are
 *	  still in the query then, and keys are about to be matched.
 *
 * Memory: the planner's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "nodes/pathnodes.h"
#include "optimizer/plancat.h"
#include "rewrite/hidden.h"
#include "rewrite/rewrite.h"
#include "utils/lsyscache.h"

static get_relation_info_hook_type previous_relation_info = NULL;

/*
 * Groups that have been made of a subquery?  Others have an alias, or a name of PostgreSQL's or of a
 * view; what has been pulled up is no subquery any more.
 */
bool
hgj_is_groups(const RangeTblEntry *rte)
{
	return rte->rtekind == RTE_SUBQUERY && rte->subquery && rte->alias == NULL &&
		strcmp(rte->eref->aliasname, HGJ_GROUPS_NAME) == 0 && rte->eref->colnames != NIL &&
		strcmp(strVal(linitial(rte->eref->colnames)), HGJ_GROUPS_COLUMN) == 0;
}

/* A column of this relation, by whatever type, or NULL. */
static const Var *
column_of(const Node *node, Index relation)
{
	const Var  *var = hgj_as_column(node);

	return var && var->varno == relation && var->varattno > 0 ? var : NULL;
}

/* Step 1: another column of the key; false: the clause has no column of the table's. */
static bool
add_column(ForeignKeyOptInfo *key, const OpExpr *clause)
{
	const Var  *of_groups;
	const Var  *of_table;
	bool		turned;

	if (!IsA(clause, OpExpr) || list_length(clause->args) != 2 || key->nkeys == INDEX_MAX_KEYS)
		return false;
	turned = column_of(lsecond(clause->args), key->ref_relid) != NULL;
	of_groups = column_of(turned ? lsecond(clause->args) : linitial(clause->args), key->ref_relid);
	of_table = column_of(turned ? linitial(clause->args) : lsecond(clause->args), key->con_relid);
	if (of_groups == NULL || of_table == NULL)
		return false;
	key->conkey[key->nkeys] = of_table->varattno;
	key->confkey[key->nkeys] = of_groups->varattno;
	/* what is referred to stands on its left */
	key->conpfeqop[key->nkeys] = turned ? get_commutator(clause->opno) : clause->opno;
	return OidIsValid(key->conpfeqop[key->nkeys++]);
}

/* Step 1, of one join; conditions: a list, as the planner has made it. */
static void
add_key(PlannerInfo *root, Index table, Index groups, List *conditions)
{
	ForeignKeyOptInfo *key = makeNode(ForeignKeyOptInfo);
	ListCell   *lc;

	key->con_relid = table;
	key->ref_relid = groups;
	foreach(lc, conditions)
		if (!add_column(key, lfirst(lc)))
			return;
	if (key->nkeys > 0)
		root->fkey_list = lcons(key, root->fkey_list);
}

/* Step 2: of a clause of the groups, which return this, if it restricts them to a column of the relation. */
static void
add_restriction(PlannerInfo *root, const RelOptInfo *rel, Oid relation, Index groups,
				const List *returned, const SubLink *clause)
{
	const Query *keys;
	const OpExpr *test;
	const Var  *column;
	ListCell   *lc;

	if (!IsA(clause, SubLink) || clause->subLinkType != ANY_SUBLINK ||
		!IsA(clause->testexpr, OpExpr))
		return;
	keys = castNode(Query, clause->subselect);
	test = (const OpExpr *) clause->testexpr;
	if (list_length(keys->rtable) != 1 ||
		linitial_node(RangeTblEntry, keys->rtable)->relid != relation)
		return;
	column = column_of((Node *) linitial_node(TargetEntry, keys->targetList)->expr, 1);
	foreach(lc, column ? returned : NIL)
	{
		const TargetEntry *tle = lfirst(lc);

		if (equal(tle->expr, linitial(test->args)))
		{
			ForeignKeyOptInfo *key = makeNode(ForeignKeyOptInfo);

			key->con_relid = rel->relid;
			key->ref_relid = groups;
			key->nkeys = 1;
			key->conkey[0] = column->varattno;
			key->confkey[0] = tle->resno;
			key->conpfeqop[0] = test->opno;
			root->fkey_list = lappend(root->fkey_list, key);
		}
	}
}

/* Step 1: all joins with groups, in what the query joins. */
static void
add_keys(PlannerInfo *root, Index table, Node *node)
{
	JoinExpr   *join = (JoinExpr *) node;
	ListCell   *lc;

	check_stack_depth();
	if (node == NULL || IsA(node, RangeTblRef))
		return;
	if (IsA(node, FromExpr))
	{
		foreach(lc, ((FromExpr *) node)->fromlist)
			add_keys(root, table, lfirst(lc));
		return;
	}
	add_keys(root, table, join->larg);
	add_keys(root, table, join->rarg);
	if (IsA(join->rarg, RangeTblRef) && (join->quals == NULL || IsA(join->quals, List)))
	{
		Index		groups = ((RangeTblRef *) join->rarg)->rtindex;

		if (hgj_is_groups(list_nth_node(RangeTblEntry, root->parse->rtable, groups - 1)))
			add_key(root, table, groups, (List *) join->quals);
	}
}

static void
tell_of_keys(PlannerInfo *root, Oid relation, bool inhparent, RelOptInfo *rel)
{
	bool		found = false;
	ListCell   *lc;
	ListCell   *lc2;

	if (previous_relation_info)
		previous_relation_info(root, relation, inhparent, rel);
	foreach(lc, root->parse->rtable)
	{
		RangeTblEntry *rte = lfirst(lc);
		List	   *clauses = NIL;

		if (!hgj_is_groups(rte))
			continue;
		found = true;
		hgj_split_clauses(rte->subquery->jointree->quals, &clauses);
		foreach(lc2, clauses)
			add_restriction(root, rel, relation, foreach_current_index(lc) + 1,
							rte->subquery->targetList, lfirst(lc2));
	}
	if (found)
		add_keys(root, rel->relid, (Node *) root->parse->jointree);
}

/* Call once per process, from _PG_init. */
void
hgj_install_group_estimates(void)
{
	previous_relation_info = get_relation_info_hook;
	get_relation_info_hook = tell_of_keys;
}
