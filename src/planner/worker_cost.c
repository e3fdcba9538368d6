/*-------------------------------------------------------------------------
 *
 * worker_cost.c
 *	  What workers cost a plan of ours, beyond what PostgreSQL charges for them.
 *
 * parallel_setup_cost is one figure for all machines, and next to nothing beside the
 * queries that it was made for.  Ours may take less time than their workers need to
 * begin, on a machine where that is long (base/worker_time.c).
 *
 * 1. What workers take has been measured, and is charged at the rate at which other
 *	  work of ours is (HGJ_COST_PER_MS), less what parallel_setup_cost stands for.  If
 *	  that is lowered, or raised, so is the charge: who says that workers are for nothing,
 *	  as tests do, has them for nothing.
 * 2. It cannot be charged to a Gather, which PostgreSQL puts on top of partial paths by
 *	  itself.  So each partial join and aggregation of ours has it in its start-up costs,
 *	  once, whatever is below: what comes from below is taken off.  Partitions that an
 *	  Append adds up have their part of it each.
 * 3. PostgreSQL's own partial paths have no charge.  They are compared with ours as if
 *	  they had it, because both have the same workers (stock_cost.c).
 * 4. Nor has a Gather over them.  It is charged where a node of ours reads what it
 *	  returns, and where it is compared with a path of ours in one process.
 * 5. Where somebody wants to know why a plan of ours has no workers, it is noted that they
 *	  would have been taken but for this.
 * 6. Under hashgraph_join.force all costs are next to nothing, and so is this.
 *
 * No memory is kept, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/guc.h"
#include "base/worker_time.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "planner/declines.h"
#include "planner/planner.h"
#include "utils/float.h"

/*
 * Step 1: of ours, a millisecond.  It is what the 13 queries of the Star Schema Benchmark
 * over kept columns are charged for one, 340 to 660, and TPC-H's are, 130 to 560; reading rows by pages or as columns
 * that are kept was found to take 2.4 nanoseconds where 0.001 is charged (feed_cost.c).
 */
#define HGJ_COST_PER_MS			500.0

/* Step 2: among how many partitions that an Append adds up is it divided? */
static double
sharing_partitions(PlannerInfo *root, const RelOptInfo *rel)
{
	const RelOptInfo *input;
	int			relid;

	if (!IS_OTHER_REL(rel) || bms_is_empty(rel->relids))
		return 1;
	/* of groups of a partition, the relation of its rows is known by the same relids */
	input = bms_get_singleton_member(rel->relids, &relid) ?
		find_base_rel(root, relid) : find_join_rel(root, rel->relids);
	if (input == NULL || bms_is_empty(input->top_parent_relids))
		return 1;
	input = bms_get_singleton_member(input->top_parent_relids, &relid) ?
		find_base_rel(root, relid) : find_join_rel(root, input->top_parent_relids);
	return input ? Max(input->nparts, 1) : 1;
}

/* Step 1: what this number of workers is charged. */
static Cost
charge_of(int workers)
{
	Cost		cost = hgj_worker_time_now() * HGJ_COST_PER_MS *
		hgj_workers_part(workers, hgj_usable_processors());

	return Max(cost - DEFAULT_PARALLEL_SETUP_COST, 0) *
		parallel_setup_cost / DEFAULT_PARALLEL_SETUP_COST *
		(hgj_force ? HGJ_FORCE_DISCOUNT : 1.0);
}

/* Step 2: what a path of ours is charged, or would be in the place of this one. */
Cost
hgj_worker_charge(PlannerInfo *root, const Path *path)
{
	if (path->parallel_workers <= 0)
		return 0;
	return charge_of(path->parallel_workers) / sharing_partitions(root, path->parent);
}

/* Steps 2 and 3: what is in the costs of a partial path of it. */
Cost
hgj_workers_charged(PlannerInfo *root, const Path *path)
{
	const Path *below;
	Cost		sum = 0;
	ListCell   *lc;

	if (path->parallel_workers <= 0)
		return 0;
	if (hgj_is_join_path(path) || hgj_is_agg_path(path))
		return hgj_worker_charge(root, hgj_below_projections(path));
	switch (nodeTag(path))
	{
		case T_NestPath:
		case T_HashPath:
		case T_MergePath:
			return hgj_workers_charged(root, ((const JoinPath *) path)->outerjoinpath) +
				hgj_workers_charged(root, ((const JoinPath *) path)->innerjoinpath);
		case T_AppendPath:
			foreach(lc, ((const AppendPath *) path)->subpaths)
				sum += hgj_workers_charged(root, lfirst(lc));
			return sum;
		case T_SubqueryScanPath:
			return hgj_workers_charged(path->parent->subroot,
									   ((const SubqueryScanPath *) path)->subpath);
		default:
			below = hgj_only_subpath(path);
			return below ? hgj_workers_charged(root, below) : 0;
	}
}

/* The workers that a Gather, in either form, has started. */
static int
gathered_workers(const Path *path)
{
	return IsA(path, GatherPath) ? ((const GatherPath *) path)->num_workers :
		((const GatherMergePath *) path)->num_workers;
}

/* Step 4: what Gathers somewhere in a path have not been charged. */
Cost
hgj_uncharged_workers(PlannerInfo *root, const Path *path)
{
	const Path *below;
	Cost		sum = 0;
	ListCell   *lc;

	switch (nodeTag(path))
	{
		case T_GatherPath:
		case T_GatherMergePath:
			return Max(charge_of(gathered_workers(path)) -
					   hgj_workers_charged(root, hgj_only_subpath(path)), 0);
		case T_NestPath:
		case T_HashPath:
		case T_MergePath:
			return hgj_uncharged_workers(root, ((const JoinPath *) path)->outerjoinpath) +
				hgj_uncharged_workers(root, ((const JoinPath *) path)->innerjoinpath);
		case T_AppendPath:
			foreach(lc, ((const AppendPath *) path)->subpaths)
				sum += hgj_uncharged_workers(root, lfirst(lc));
			return sum;
		case T_CustomPath:
			return 0;			/* of ours, it is in its costs */
		default:
			below = hgj_only_subpath(path);
			return below ? hgj_uncharged_workers(root, below) : 0;
	}
}

/* Step 5: what the Gather of an aggregation of ours has for its workers; 0: there is none. */
static Cost
charge_of_gather(const Path *path)
{
	while (path)
	{
		if (IsA(path, GatherPath) || IsA(path, GatherMergePath))
			return charge_of(gathered_workers(path));
		path = hgj_is_agg_path(path) ?
			linitial(((const CustomPath *) hgj_below_projections(path))->custom_paths) :
			hgj_only_subpath(path);
	}
	return 0;
}

/* Step 5, of aggregations of ours, in one process or by workers. */
void
hgj_weigh_workers(PlannerInfo *root, const RelOptInfo *rel, const List *paths)
{
	Cost		alone = get_float8_infinity();
	Cost		with_workers = get_float8_infinity();
	Cost		for_nothing = get_float8_infinity();
	ListCell   *lc;

	if (!hgj_is_noting())
		return;
	foreach(lc, paths)
	{
		const Path *path = lfirst(lc);
		Cost		charge = charge_of_gather(path);

		if (charge > 0)
		{
			with_workers = Min(with_workers, path->total_cost);
			for_nothing = Min(for_nothing, path->total_cost - charge);
		}
		else
			alone = Min(alone, path->total_cost);
	}
	if (for_nothing < alone && alone <= with_workers)
		hgj_note_dear_workers(root, rel->relids);
}

/* Step 5, of the joins of a relation that is complete, so far. */
void
hgj_weigh_joins(PlannerInfo *root, const RelOptInfo *joinrel, const Path *ours)
{
	ListCell   *lc;

	foreach(lc, joinrel->partial_pathlist)
	{
		const Path *path = lfirst(lc);
		Cost		cost = path->total_cost + parallel_setup_cost +
			parallel_tuple_cost * path->rows * hgj_parallel_divisor(path);

		if (hgj_is_join_path(path) && ours->total_cost <= cost &&
			cost - hgj_workers_charged(root, path) < ours->total_cost)
			hgj_note_dear_workers(root, joinrel->relids);
	}
}
