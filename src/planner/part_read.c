/*-------------------------------------------------------------------------
 *
 * part_read.c
 *	  How much of its outer side does a join read that ends when all of its inner rows
 *	  have been found (join/all_found.c)?
 *
 * 1. PostgreSQL estimates which part of the rows that are returned, or left out, have a
 *	  match, and how many on average (SemiAntiJoinFactors).  Where less than all of them
 *	  have one, the outer side is read to its end.
 * 2. Where rows come in random order, a row with m matches has not found the first after
 *	  a part x of them with probability (1 - x)^m.  The outer side ends where half a row
 *	  is expected to be left.
 * 3. Rows that are ordered by the key come to the last one at their end.  The key's
 *	  correlation says how far they are; without one, nothing is known of their order,
 *	  nor is it above a join.
 * 4. All that is a guess, above all that not a single row is without a match.  So it
 *	  gets half of what it would save: a path that is cheaper by more than that remains
 *	  cheaper, as long as it is.  PostgreSQL charges its nested loop for one whole scan
 *	  of the inner side, in the same doubt.
 *
 * No memory is kept, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "catalog/pg_statistic.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "planner/planner.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

/* Step 4. */
#define HGJ_BELIEVED_SAVING		0.5

/* Step 3: how far is the relation in the order of this column?  1: for all that is known. */
static double
order_by(PlannerInfo *root, RelOptInfo *rel, Node *key)
{
	VariableStatData vardata;
	AttStatsSlot slot;
	double		result = 1;

	examine_variable(root, key, rel->relid, &vardata);
	if (HeapTupleIsValid(vardata.statsTuple) && IsA(vardata.var, Var) &&
		get_attstatsslot(&slot, vardata.statsTuple, STATISTIC_KIND_CORRELATION,
						 InvalidOid, ATTSTATSSLOT_NUMBERS))
	{
		if (slot.nnumbers == 1)
			result = fabs(slot.numbers[0]);
		free_attstatsslot(&slot);
	}
	ReleaseVariableStats(vardata);
	return Min(result, 1);
}

/* Step 3, by the keys: the outer relation's operands of the hash clauses. */
static double
order_by_keys(PlannerInfo *root, RelOptInfo *outerrel, List *hashclauses)
{
	double		result = 0;
	ListCell   *lc;

	foreach(lc, hashclauses)
		result = Max(result, order_by(root, outerrel,
									  hgj_key_of_side(lfirst_node(RestrictInfo, lc),
													  outerrel)));
	return result;
}

/*
 * The part of the outer side that the join of these relations is charged for.  The
 * factors are those of the inner rows, which are returned.
 */
double
hgj_part_read(PlannerInfo *root, const HgjJoinCosts *costs, RelOptInfo *outerrel,
			  RelOptInfo *innerrel, const SemiAntiJoinFactors *factors)
{
	double		rows = innerrel->rows;
	double		read;

	if ((costs->jointype != JOIN_RIGHT_SEMI && costs->jointype != JOIN_RIGHT_ANTI) ||
		outerrel->reloptkind != RELOPT_BASEREL || factors->match_count < 1 ||
		rows * (1 - factors->outer_match_frac) >= 0.5)
		return 1;
	read = 1 - pow(0.5 / Max(rows, 1), 1 / factors->match_count);
	read += order_by_keys(root, outerrel, costs->hashclauses) * (1 - read);
	return 1 - HGJ_BELIEVED_SAVING * (1 - read);
}
