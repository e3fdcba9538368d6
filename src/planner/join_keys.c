/*-------------------------------------------------------------------------
 *
 * join_keys.c
 *	  Which clauses of a join can be its keys.
 *
 * 1. As hash_inner_and_outer() of joinpath.c does, take the hashable clauses that
 *	  compare one side with the other; of an outer join, its own only.
 * 2. Leave those whose operator is not strict, or has no commutator where it would
 *	  be needed, and those whose words an engine does not take any more.  They are
 *	  residual clauses.
 * 3. What a key costs is added up at once (cost.c), as asking the catalogs about each
 *	  operator is a good part of what considering a join takes.
 *
 * No memory is kept but the list of the clauses, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "columns/keys.h"
#include "nodes/pathnodes.h"
#include "optimizer/restrictinfo.h"
#include "planner/planner.h"
#include "utils/lsyscache.h"

/*
 * Does the clause compare the outer relation with the inner one?  Sets
 * *outer_is_left when it does.
 */
static bool
clause_sides(RestrictInfo *rinfo, RelOptInfo *outerrel, RelOptInfo *innerrel,
			 bool *outer_is_left)
{
	if (bms_is_subset(rinfo->left_relids, outerrel->relids) &&
		bms_is_subset(rinfo->right_relids, innerrel->relids))
	{
		*outer_is_left = true;
		return true;
	}
	if (bms_is_subset(rinfo->left_relids, innerrel->relids) &&
		bms_is_subset(rinfo->right_relids, outerrel->relids))
	{
		*outer_is_left = false;
		return true;
	}
	return false;
}

/* The clauses of the restriction list that will be key columns, and what they cost. */
void
hgj_collect_keys(List *restrictlist, RelOptInfo *joinrel, RelOptInfo *outerrel,
				 RelOptInfo *innerrel, JoinType jointype, HgjJoinCosts *costs)
{
	ListCell   *lc;

	foreach(lc, restrictlist)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		HgjKeyPair	pair;
		bool		outer_is_left;

		/* an outer join is keyed by its own clauses only */
		if (HGJ_IS_OUTER_JOIN(jointype) &&
			RINFO_IS_PUSHED_DOWN(rinfo, joinrel->relids))
			continue;
		if (!rinfo->can_join || !OidIsValid(rinfo->hashjoinoperator))
			continue;
		if (!clause_sides(rinfo, outerrel, innerrel, &outer_is_left))
			continue;
		/* it is to have the outer operand on the left (plan.c) */
		if (!outer_is_left &&
			!OidIsValid(get_commutator(((OpExpr *) rinfo->clause)->opno)))
			continue;
		if (!hgj_key_pair((OpExpr *) rinfo->clause, outer_is_left, &pair))
			continue;
		/* past what an engine takes, the rest is residual */
		if (costs->nwords + pair.nwords > HGJ_MAX_KEY_WORDS)
			continue;
		hgj_cost_key(costs, &pair);
		costs->hashclauses = lappend(costs->hashclauses, rinfo);
	}
}
