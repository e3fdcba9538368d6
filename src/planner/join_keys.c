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
 * 3. Leave those that call a hash function for each row (numerics) where the others alone
 *	  find one row of a side that is grouped by them: `x = (SELECT min(x) ...)` has become
 *	  that.  To compare the one row that is found costs less than to hash each row that
 *	  is looked up, and a scan below can be asked about keys that have words (key_filters.c).
 * 4. What a key costs is added up at once (cost.c), as asking the catalogs about each
 *	  operator is a good part of what considering a join takes.
 *
 * No memory is kept but the list of the clauses, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "columns/keys.h"
#include "nodes/pathnodes.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "parser/parsetree.h"
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

/* Step 1: what the clause says as a key; false: it cannot be one.  Step 2 in part. */
static bool
may_be_key(RestrictInfo *rinfo, RelOptInfo *joinrel, RelOptInfo *outerrel, RelOptInfo *innerrel,
		   JoinType jointype, HgjKeyPair *pair)
{
	bool		outer_is_left;

	/* an outer join is keyed by its own clauses only */
	if (HGJ_IS_OUTER_JOIN(jointype) &&
		RINFO_IS_PUSHED_DOWN(rinfo, joinrel->relids))
		return false;
	if (!rinfo->can_join || !OidIsValid(rinfo->hashjoinoperator))
		return false;
	if (!clause_sides(rinfo, outerrel, innerrel, &outer_is_left))
		return false;
	/* it is to have the outer operand on the left (plan.c) */
	if (!outer_is_left &&
		!OidIsValid(get_commutator(((OpExpr *) rinfo->clause)->opno)))
		return false;
	return hgj_key_pair((OpExpr *) rinfo->clause, outer_is_left, pair);
}

/* Step 3: does each value of these clauses find at most one row of the subquery? */
static bool
is_one_row(PlannerInfo *root, const RelOptInfo *rel, List *clauses)
{
	List	   *columns = NIL;
	List	   *operators = NIL;
	Query	   *query;
	ListCell   *lc;

	if (rel->rtekind != RTE_SUBQUERY)
		return false;			/* so is a join */
	query = planner_rt_fetch(rel->relid, root)->subquery;
	if (!query_supports_distinctness(query))
		return false;
	foreach(lc, clauses)
	{
		const OpExpr *clause = (const OpExpr *) lfirst_node(RestrictInfo, lc)->clause;
		bool		left = bms_is_subset(lfirst_node(RestrictInfo, lc)->left_relids, rel->relids);
		const Var  *var = (const Var *) (left ? linitial(clause->args) : lsecond(clause->args));

		if (IsA(var, RelabelType))
			var = (const Var *) ((const RelabelType *) var)->arg;
		if (!IsA(var, Var) || var->varattno <= 0)
			continue;
		columns = lappend_int(columns, var->varattno);
		operators = lappend_oid(operators, clause->opno);
	}
	return columns != NIL && query_is_distinct_for(query, columns, operators);
}

/* Step 3: of the clauses that may be keys, are those with a hash function needless? */
static bool
opaque_are_needless(PlannerInfo *root, List *clauses, const HgjKeyPair *pairs,
					RelOptInfo *outerrel, RelOptInfo *innerrel)
{
	List	   *rest = NIL;
	uint32		nwords = 0;
	ListCell   *lc;

	foreach(lc, clauses)
	{
		const HgjKeyPair *pair = &pairs[foreach_current_index(lc)];

		if (pair->outer_kind == HGJ_KEY_OPAQUE)
			continue;
		rest = lappend(rest, lfirst(lc));
		nwords += pair->nwords;
	}
	/* an engine has to take all the others */
	return rest != NIL && list_length(rest) < list_length(clauses) && nwords <= HGJ_MAX_KEY_WORDS &&
		(is_one_row(root, innerrel, rest) || is_one_row(root, outerrel, rest));
}

/* The clauses of the restriction list that will be key columns, and what they cost. */
void
hgj_collect_keys(PlannerInfo *root, List *restrictlist, RelOptInfo *joinrel,
				 RelOptInfo *outerrel, RelOptInfo *innerrel, JoinType jointype,
				 HgjJoinCosts *costs)
{
	HgjKeyPair *pairs = palloc(mul_size(list_length(restrictlist), sizeof(HgjKeyPair)));
	List	   *clauses = NIL;
	bool		without_opaque;
	ListCell   *lc;

	foreach(lc, restrictlist)
		if (may_be_key(lfirst(lc), joinrel, outerrel, innerrel, jointype,
					   &pairs[list_length(clauses)]))
			clauses = lappend(clauses, lfirst(lc));
	/* a full join returns what a clause that is no key turns down from both sides */
	without_opaque = jointype != JOIN_FULL &&
		opaque_are_needless(root, clauses, pairs, outerrel, innerrel);
	foreach(lc, clauses)
	{
		const HgjKeyPair *pair = &pairs[foreach_current_index(lc)];

		/* past what an engine takes, the rest is residual, too */
		if ((without_opaque && pair->outer_kind == HGJ_KEY_OPAQUE) ||
			costs->nwords + pair->nwords > HGJ_MAX_KEY_WORDS)
			continue;
		hgj_cost_key(costs, pair);
		costs->hashclauses = lappend(costs->hashclauses, lfirst(lc));
	}
	pfree(pairs);
}
