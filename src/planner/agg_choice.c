/*-------------------------------------------------------------------------
 *
 * agg_choice.c
 *	  Which paths of an aggregation are left to choose from, where costs that
 *	  costsize.c knows nothing of, or says too much about, would mislead.
 *
 * 1. Joins below a HashGraphAgg are not charged for their rows.  PostgreSQL's own
 *	  aggregations over them are charged for the slots when they are compared with
 *	  ours.
 * 2. What comes from workers is compared at what its rows cost on their way, with
 *	  ours in one process (feed_cost.c, step 8).
 *
 * Memory: the planner's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "optimizer/paths.h"
#include "planner/agg_path.h"
#include "planner/planner.h"
#include "utils/float.h"

/*
 * Joins below a HashGraphAgg are not charged for their rows, so that those who
 * would take them as slots seem cheaper than they are: such paths go where one of
 * ours has the same order and would not be dearer if they were charged.
 */
List *
hgj_without_dearer_readers(List *paths, List *ours)
{
	ListCell   *lc1;
	ListCell   *lc2;

	foreach(lc1, paths)
	{
		const Path *path = lfirst(lc1);
		Cost		uncharged = hgj_uncharged_slots(path);

		if (uncharged <= 0)
			continue;
		foreach(lc2, ours)
		{
			const Path *our = lfirst(lc2);

			if (our->total_cost <= path->total_cost + uncharged &&
				pathkeys_contained_in(path->pathkeys, our->pathkeys))
			{
				paths = foreach_delete_current(paths, lc1);
				break;
			}
		}
	}
	return paths;
}

/* The costs of the cheapest path that has workers, at what their rows cost. */
static Cost
cheapest_with_workers(List *paths)
{
	Cost		least = get_float8_infinity();
	ListCell   *lc;

	foreach(lc, paths)
	{
		const Path *path = lfirst(lc);
		Cost		overcharged;

		if (hgj_gathers(path, &overcharged))
			least = Min(least, path->total_cost - overcharged);
	}
	return least;
}

/*
 * Without those paths over joins of ours in one process that are dearer than
 * others are with workers.
 */
List *
hgj_without_slower_process(List *paths, List *others)
{
	Cost		least = Min(cheapest_with_workers(paths),
							cheapest_with_workers(others));
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, paths)
	{
		Path	   *path = lfirst(lc);
		Cost		overcharged;

		if (hgj_gathers(path, &overcharged) || !hgj_aggregates_join(path) ||
			path->total_cost + hgj_uncharged_slots(path) <= least)
			result = lappend(result, path);
	}
	return result;
}
