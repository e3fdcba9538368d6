/*-------------------------------------------------------------------------
 *
 * cost.c
 *	  What a HashGraphJoin costs, in PostgreSQL's own units.
 *
 * The model is costsize.c's for hash joins (initial_cost_hashjoin and
 * final_cost_hashjoin), with our settings in the place of the constants that
 * differ:
 *
 * 1. Start-up: the inner side in full, build_tuple_cost a row and an operator
 *	  for each key, and the fixed startup_cost that keeps small joins away.
 * 2. Run: the outer side, probe_tuple_cost and the keys' operators a row.
 * 3. Every match costs emit_tuple_cost, and every candidate its residual
 *	  clauses.  Raw keys need no operator calls, opaque ones do.
 * 4. A build side larger than the memory limit is joined in passes: the outer
 *	  rows are written once and read again for each pass but the first.
 * 5. A partial path's outer side is one worker's share, so that the same sums
 *	  charge every worker for all of the inner side and the build.
 *
 * No memory is kept, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "exec/keys.h"
#include "guc.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "planner/planner.h"

/* Bytes of graph per build row at the height of a build, about. */
#define HGJ_GRAPH_ROW_BYTES		28

/* What approx_tuple_count() computes, but for the factor of both sides' rows. */
static Selectivity
hash_selectivity(PlannerInfo *root, RelOptInfo *outerrel, RelOptInfo *innerrel,
				 List *hashclauses)
{
	SpecialJoinInfo sjinfo;
	Selectivity selectivity = 1.0;
	ListCell   *lc;

	memset(&sjinfo, 0, sizeof(sjinfo));
	sjinfo.type = T_SpecialJoinInfo;
	sjinfo.min_lefthand = outerrel->relids;
	sjinfo.min_righthand = innerrel->relids;
	sjinfo.syn_lefthand = outerrel->relids;
	sjinfo.syn_righthand = innerrel->relids;
	sjinfo.jointype = JOIN_INNER;

	foreach(lc, hashclauses)
		selectivity *= clause_selectivity(root, (Node *) lfirst(lc), 0,
										  JOIN_INNER, &sjinfo);
	return selectivity;
}

static double
pages_of(double rows, int width)
{
	return ceil(rows * (MAXALIGN(width) + MAXALIGN(SizeofHeapTupleHeader)) /
				BLCKSZ);
}

static bool
has_opaque_key(List *hashclauses)
{
	ListCell   *lc;

	foreach(lc, hashclauses)
	{
		HgjKeyPair	pair;

		hgj_key_pair((OpExpr *) lfirst_node(RestrictInfo, lc)->clause, true,
					 &pair);
		if (pair.outer_kind == HGJ_KEY_OPAQUE)
			return true;
	}
	return false;
}

/*
 * Once per pair of relations: what does not depend on their paths.  The caller
 * has set jointype, one_per_outer and semifactors.
 */
void
hgj_cost_clauses(PlannerInfo *root, HgjJoinCosts *costs, RelOptInfo *outerrel,
				 RelOptInfo *innerrel, List *restrictlist, List *hashclauses)
{
	bool		opaque = has_opaque_key(hashclauses);

	costs->nkeys = list_length(hashclauses);
	costs->recheck = opaque ||
		list_length(restrictlist) > list_length(hashclauses);
	cost_qual_eval(&costs->match, restrictlist, root);
	if (!opaque)
	{
		QualCost	hash;

		/* raw keys are compared by the engine */
		cost_qual_eval(&hash, hashclauses, root);
		costs->match.startup -= hash.startup;
		costs->match.per_tuple -= hash.per_tuple;
	}
	costs->selectivity = hash_selectivity(root, outerrel, innerrel, hashclauses);
}

/*
 * How many candidates are looked at.  Where one match of an outer row will do,
 * a matching row stops after a part of its candidates, by the same guess as in
 * final_cost_hashjoin().  Sets *emitted to those that are worth a row.
 */
static double
estimate_candidates(const HgjJoinCosts *costs, const Path *outer,
					const Path *inner, double *emitted)
{
	double		all = clamp_row_est(costs->selectivity * outer->rows * inner->rows);
	double		matched;

	if (!costs->one_per_outer)
	{
		*emitted = all;
		return all;
	}
	matched = rint(outer->rows * costs->semifactors->outer_match_frac);
	*emitted = costs->jointype == JOIN_ANTI ? outer->rows - matched : matched;
	if (!costs->recheck)
		return matched;
	return Max(matched,
			   all * Min(1.0, 2.0 / (costs->semifactors->match_count + 1.0)));
}

/*
 * The costs of joining these two paths, without those of the target list.
 */
void
hgj_cost_join(const HgjJoinCosts *costs, const Path *outer, const Path *inner,
			  Cost *startup, Cost *total)
{
	double		key_cost = cpu_operator_cost * costs->nkeys;
	double		emitted;
	double		candidates = estimate_candidates(costs, outer, inner, &emitted);
	double		passes;
	Cost		run;

	*startup = outer->startup_cost + inner->total_cost + hgj_startup_cost +
		(hgj_build_tuple_cost + key_cost) * inner->rows + costs->match.startup;
	run = outer->total_cost - outer->startup_cost +
		(hgj_probe_tuple_cost + key_cost) * outer->rows +
		costs->match.per_tuple * candidates + hgj_emit_tuple_cost * emitted;

	passes = ceil(inner->rows *
				  (HGJ_GRAPH_ROW_BYTES + MAXALIGN(inner->pathtarget->width)) /
				  (double) get_hash_memory_limit());
	if (passes > 1)
	{
		double		pages = pages_of(outer->rows, outer->pathtarget->width);

		run += seq_page_cost * pages * passes;
		run += (passes - 1) * outer->rows *
			(cpu_tuple_cost + hgj_probe_tuple_cost + key_cost);
	}
	*total = *startup + run;
}

/*
 * What costsize.c divides the rows of a partial path by: the workers, and the
 * leader as far as it is not busy with theirs.
 */
double
hgj_parallel_divisor(const Path *path)
{
	double		workers = path->parallel_workers;
	double		leader = 1.0 - 0.3 * workers;

	if (!parallel_leader_participation || leader < 0)
		leader = 0;
	return workers + leader;
}
