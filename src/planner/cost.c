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
 * 3. Every match costs emit_tuple_cost and its residual clauses.  Edge lists
 *	  of raw keys need no operator calls, those of opaque ones do.
 * 4. A build side larger than the memory limit is joined in passes: the outer
 *	  rows are written once and read again for each pass but the first.
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

/* Rows that pass the hash clauses alone, as approx_tuple_count() has it. */
static double
estimate_matches(PlannerInfo *root, Path *outer, Path *inner, List *hashclauses)
{
	SpecialJoinInfo sjinfo;
	Selectivity selectivity = 1.0;
	ListCell   *lc;

	memset(&sjinfo, 0, sizeof(sjinfo));
	sjinfo.type = T_SpecialJoinInfo;
	sjinfo.min_lefthand = outer->parent->relids;
	sjinfo.min_righthand = inner->parent->relids;
	sjinfo.syn_lefthand = outer->parent->relids;
	sjinfo.syn_righthand = inner->parent->relids;
	sjinfo.jointype = JOIN_INNER;

	foreach(lc, hashclauses)
		selectivity *= clause_selectivity(root, (Node *) lfirst(lc), 0,
										  JOIN_INNER, &sjinfo);
	return clamp_row_est(selectivity * outer->rows * inner->rows);
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

/* Set the path's rows and costs. */
void
hgj_cost_join(PlannerInfo *root, CustomPath *path, JoinType jointype,
			  bool inner_unique, List *restrictlist, List *hashclauses,
			  const SemiAntiJoinFactors *semifactors)
{
	Path	   *outer = linitial(path->custom_paths);
	Path	   *inner = lsecond(path->custom_paths);
	double		key_cost = cpu_operator_cost * list_length(hashclauses);
	QualCost	hash_cost;
	QualCost	residual;
	double		matches;
	double		passes;
	Cost		startup;
	Cost		run;

	path->path.rows = path->path.param_info ?
		path->path.param_info->ppi_rows : path->path.parent->rows;

	cost_qual_eval(&hash_cost, hashclauses, root);
	cost_qual_eval(&residual, restrictlist, root);
	residual.startup -= hash_cost.startup;
	residual.per_tuple -= hash_cost.per_tuple;

	startup = outer->startup_cost + inner->total_cost + hgj_startup_cost +
		(hgj_build_tuple_cost + key_cost) * inner->rows;
	run = outer->total_cost - outer->startup_cost +
		(hgj_probe_tuple_cost + key_cost) * outer->rows;

	if (jointype == JOIN_SEMI || jointype == JOIN_ANTI || inner_unique)
	{
		matches = rint(outer->rows * semifactors->outer_match_frac);
		if (jointype == JOIN_ANTI)
			matches = outer->rows - matches;
	}
	else
		matches = estimate_matches(root, outer, inner, hashclauses);
	startup += hash_cost.startup + residual.startup;
	run += (hgj_emit_tuple_cost + residual.per_tuple) * matches;
	if (has_opaque_key(hashclauses))
		run += hash_cost.per_tuple * matches;

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

	startup += path->path.pathtarget->cost.startup;
	run += path->path.pathtarget->cost.per_tuple * path->path.rows;

	path->path.startup_cost = startup;
	path->path.total_cost = startup + run;
}
