/*-------------------------------------------------------------------------
 *
 * stock_cost.c
 *	  What costsize.c leaves out, or says too much about, of PostgreSQL's own paths.
 *
 * That matters only when they are compared with ours, which save just what is left
 * out: a path that would not be cheaper if it were charged for it gives way to ours
 * (join_path.c, agg_path.c).
 *
 * 1. Where a join or an aggregation of PostgreSQL's reads slots from a join of
 *	  ours, the rows for which that one has not been charged (feed_cost.c) are
 *	  charged to the reader.
 * 2. Processes that build the same table at the same time are slower than one
 *	  alone: they share caches, memory and often cores.  costsize.c knows nothing
 *	  of that, so that it is charged to hash joins whose table is not shared, as it
 *	  is to ours.
 * 3. The number of rows of a join takes foreign keys into account, that of an index
 *	  scan which a nested loop repeats does not: by keys of several columns it may
 *	  find many times the rows that it is charged for.
 *	  Nor does it know of the page faults of workers that look rows up (feed_cost.c).
 * 4. parallel_tuple_cost is many times what a row costs on its way from a worker.
 *	  Where the number of rows is guessed too high, which it is where columns are
 *	  correlated, a join of ours in one process seems cheaper than workers that are
 *	  faster: the latter are compared at what their rows cost.
 * 5. A path in an order that ours has not is compared with ours and a sort.
 * 6. Aggregate functions are charged for where a group's states are combined, but not
 *	  for what surrounds that: states are serialized, sent, read again, and looked up by
 *	  keys that had been looked up before.
 * 7. Workers take time to begin and to end, which is charged to our partial paths, and to
 *	  PostgreSQL's where they are compared with ours (worker_cost.c).  For joins that is too
 *	  late, as PostgreSQL puts Gathers on top of them last, and compares them with ours by
 *	  itself: of the query's last join, partial paths are left out that would lose for it.
 * 8. A relation that can be had for less than any join of ours costs before its first
 *	  row needs none: add_path() would not take it.  Unless one of PostgreSQL's paths is
 *	  charged for so much too little that it would give way to ours after all.
 * 9. The same holds for the first rows, in the order that is wanted, where LIMIT wants no
 *	  more.
 *
 * No memory is kept, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/guc.h"
#include "base/worker_time.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "planner/declines.h"
#include "planner/planner.h"
#include "utils/float.h"

/* What each further process adds to a build that every process makes. */
#define HGJ_PRIVATE_BUILD		0.03

/* Of a group that workers have made a part of: 1 to 2 us. */
#define HGJ_FINISH_GROUP_COST	0.2

/* As add_path()'s: costs that differ by less are equal. */
#define HGJ_FUZZ				1.01

/* Step 1: what nobody is charged for yet if a node of PostgreSQL's reads it. */
static Cost
uncharged_rows(const Path *path)
{
	if (!hgj_is_join_path(path))
		return 0;
	return hgj_emit_tuple_cost * path->rows *
		(hgj_force ? HGJ_FORCE_DISCOUNT : 1.0) - hgj_emission_cost(path);
}

/* Step 1: what an aggregation of PostgreSQL's reads from a join of ours, uncharged. */
static Cost
uncharged_slots(const Path *path)
{
	for (; path; path = hgj_only_subpath(path))
		if (hgj_is_join_path(path))
			return uncharged_rows(path);
	return 0;
}

/* Step 6: what finishing groups costs more, somewhere in an upper path. */
Cost
hgj_uncharged_groups(const Path *path)
{
	for (; path; path = hgj_only_subpath(path))
		if (IsA(path, AggPath) &&
			DO_AGGSPLIT_COMBINE(((const AggPath *) path)->aggsplit))
			return HGJ_FINISH_GROUP_COST * ((const AggPath *) path)->subpath->rows *
				(hgj_force ? HGJ_FORCE_DISCOUNT : 1.0);
	return 0;
}

/* Is it an aggregation, ours or not, of a join of ours in the same process? */
static bool
aggregates_join(const Path *path)
{
	for (; path; path = hgj_only_subpath(path))
		if (hgj_is_join_path(path) ||
			hgj_is_agg_path(path))
			return true;
	return false;
}

/*
 * Step 4: does the aggregation get its rows, or groups, from workers?  *overcharged:
 * what it pays more for that than it costs.
 */
static bool
gathers(const Path *path, Cost *overcharged)
{
	*overcharged = 0;
	while (path)
	{
		if (IsA(path, GatherPath) || IsA(path, GatherMergePath))
		{
			*overcharged = Max(parallel_tuple_cost - HGJ_GATHER_TUPLE_COST, 0) *
				path->rows;
			return true;
		}
		/* one of ours may group what workers have grouped (agg_distinct.c) */
		path = hgj_is_agg_path(path) ?
			linitial(((const CustomPath *) path)->custom_paths) : hgj_only_subpath(path);
	}
	return false;
}

/*
 * Step 2: how many times as long as one build do those take that the processes of this
 * partial path make, each for itself?  A little longer where each process has a processor,
 * and as many times as long as they have to take turns where not.  A device works for one
 * after the other.
 */
double
hgj_builds_of(const Path *path, const Path *inner)
{
	double		processes = path->parallel_workers + 1;

	if (path->parallel_workers > 0 && hgj_uses_device(inner))
		return processes;
	return (1 + HGJ_PRIVATE_BUILD * path->parallel_workers) *
		Max(processes / hgj_usable_processors(), 1);
}

/* Step 2: what the builds of a path of PostgreSQL's cost more. */
static Cost
uncharged_build(const Path *path)
{
	const JoinPath *join = (const JoinPath *) path;

	if (!IsA(path, HashPath) || path->parallel_aware)
		return 0;
	return (hgj_builds_of(path, join->innerjoinpath) - 1) *
		(join->innerjoinpath->total_cost +
		 (cpu_operator_cost + cpu_tuple_cost) * join->innerjoinpath->rows);
}

/*
 * Step 3: what a nested loop over an index that finds the inner rows costs more if
 * it finds as many of them as the join returns.
 */
Cost
hgj_uncharged_lookups(const Path *path)
{
	const JoinPath *join = (const JoinPath *) path;
	const Path *outer = join->outerjoinpath;
	const Path *inner = join->innerjoinpath;
	double		found;

	if (!IsA(path, NestPath) || join->jointype != JOIN_INNER ||
		inner->param_info == NULL)
		return 0;
	found = outer->rows * inner->rows;
	if (path->rows <= found)
		return 0;
	return (path->rows / found - 1) * outer->rows *
		(inner->total_cost - inner->startup_cost);
}

/* Is it a join of PostgreSQL's own? */
static bool
is_stock_join(const Path *path)
{
	return IsA(path, HashPath) || IsA(path, MergePath) || IsA(path, NestPath);
}

/* Steps 1 to 3: what a join of PostgreSQL's has not been charged for, but for workers. */
static Cost
uncharged(const Path *path)
{
	if (!is_stock_join(path))
		return 0;
	return uncharged_rows(((const JoinPath *) path)->outerjoinpath) +
		uncharged_rows(((const JoinPath *) path)->innerjoinpath) +
		uncharged_build(path) + hgj_uncharged_lookups(path);
}

/*
 * Steps 3 and 7: what it has not been charged for its workers, of which `ours` may have been
 * charged for others.
 */
static Cost
uncharged_for_workers(PlannerInfo *root, const Path *path, const Path *ours)
{
	if (!is_stock_join(path))
		return 0;
	if (path->parallel_workers > 0)
		return hgj_workers_charged(root, ours) - hgj_workers_charged(root, path) +
			hgj_lookup_page_faults(root, path);
	return hgj_uncharged_workers(root, path);
}

/*
 * Is there a join in the list that has been charged for too few rows?  Then the
 * other order of the join is worth a look at once (join_path.c).
 */
bool
hgj_has_uncharged_lookups(List *paths)
{
	ListCell   *lc;

	foreach(lc, paths)
		if (hgj_uncharged_lookups(lfirst(lc)) > 0)
			return true;
	return false;
}

/*
 * Step 5: would `path` be no cheaper than `ours` if it were charged for `uncharged`
 * as well?
 */
static bool
gives_way(PlannerInfo *root, const Path *path, Cost uncharged, const Path *ours)
{
	Path		sort = *ours;

	if (!pathkeys_contained_in(path->pathkeys, ours->pathkeys))
		hgj_cost_sort(&sort, root, path->pathkeys, hgj_disabled_nodes(ours),
					  ours->total_cost, ours->rows, ours->pathtarget->width);
	return hgj_disabled_nodes(&sort) <= hgj_disabled_nodes(path) &&
		sort.total_cost <= path->total_cost + uncharged;
}

/*
 * Steps 1 to 3 and 7: take joins of PostgreSQL's out of the list that would not be
 * cheaper than `ours`, which can take their place, if they were charged for the
 * slots that they read from a join of ours, for building in every worker, for
 * finding the rows that they are said to return, and for workers.
 */
List *
hgj_without_undercharged(PlannerInfo *root, List *paths, const CustomPath *ours)
{
	ListCell   *lc;

	foreach(lc, paths)
	{
		Path	   *path = lfirst(lc);
		Cost		more = uncharged(path) +
			uncharged_for_workers(root, path, &ours->path);

		if (more <= 0 || path->param_info != ours->path.param_info ||
			(path->parallel_safe && !ours->path.parallel_safe) ||
			/* which add_partial_path() never asks */
			(path->parallel_workers == 0 && path->parent->consider_startup &&
			 path->startup_cost * HGJ_FUZZ < ours->path.startup_cost))
			continue;
		if (gives_way(root, path, more, &ours->path))
			paths = foreach_delete_current(paths, lc);
	}
	return paths;
}

/*
 * Steps 1, 6 and 7: take aggregations of PostgreSQL's out of the list that would be no
 * cheaper than one of ours if they were charged for the slots of the joins below, for
 * finishing groups, and for workers.
 */
List *
hgj_without_dearer_readers(PlannerInfo *root, List *paths, List *ours)
{
	ListCell   *lc1;
	ListCell   *lc2;

	foreach(lc1, paths)
	{
		const Path *path = lfirst(lc1);
		Cost		more = uncharged_slots(path) + hgj_uncharged_groups(path) +
			hgj_uncharged_workers(root, path);

		if (more <= 0)
			continue;
		foreach(lc2, ours)
			if (gives_way(root, path, more, lfirst(lc2)))
			{
				paths = foreach_delete_current(paths, lc1);
				break;
			}
	}
	return paths;
}

/* Step 8: does add_path() take no path without an order that costs `least` or more? */
static bool
keeps_out(const RelOptInfo *joinrel, const Path *path, Cost least)
{
	return path->total_cost * HGJ_FUZZ < least && hgj_disabled_nodes(path) == 0 &&
		path->rows <= joinrel->rows &&
		(path->parallel_safe || !joinrel->consider_parallel);
}

/*
 * Step 8: would it change nothing to offer the relation complete paths of ours without
 * parameters, which cost at least `least` before their first row?  They also make
 * partial paths of ours give way (lookup_cost.c).
 */
bool
hgj_ours_are_too_dear(const RelOptInfo *joinrel, Cost least)
{
	bool		kept_out = false;
	ListCell   *lc;

	foreach(lc, joinrel->pathlist)
	{
		const Path *path = lfirst(lc);
		Cost		more;

		if (path->param_info != NULL)
			continue;
		kept_out = kept_out || keeps_out(joinrel, path, least);
		/* the cheapest ones come first */
		if (!kept_out && path->total_cost >= least)
			return false;
		more = uncharged(path);
		if (more > 0 && path->total_cost + more >= least)
			return false;
	}
	foreach(lc, joinrel->partial_pathlist)
		if (hgj_is_join_path(lfirst(lc)))
			return false;
	return kept_out;
}

/*
 * Step 9: does the query want so few rows of this relation that a path has them for less
 * than `least`, which is what any path of ours costs before its first row?
 */
bool
hgj_limit_is_cheaper(const PlannerInfo *root, const RelOptInfo *joinrel, Cost least)
{
	ListCell   *lc;

	/* without grouping, and what else needs all rows, and with nothing left to join */
	if (root->limit_tuples <= 0 || !bms_equal(joinrel->relids, HGJ_ALL_RELIDS(root)))
		return false;
	foreach(lc, joinrel->pathlist)
	{
		const Path *path = lfirst(lc);
		Cost		run = path->total_cost + uncharged(path) - path->startup_cost;

		if (path->param_info == NULL && hgj_disabled_nodes(path) == 0 &&
			pathkeys_contained_in(root->sort_pathkeys, path->pathkeys) &&
			path->startup_cost + run * Min(1, root->limit_tuples / Max(path->rows, 1)) < least)
			return true;
	}
	return false;
}

/* The costs of the cheapest path that has workers, at what these and their rows cost. */
static Cost
cheapest_with_workers(PlannerInfo *root, List *paths)
{
	Cost		least = get_float8_infinity();
	ListCell   *lc;

	foreach(lc, paths)
	{
		const Path *path = lfirst(lc);
		Cost		overcharged;

		if (gathers(path, &overcharged))
			least = Min(least, path->total_cost - overcharged +
						hgj_uncharged_workers(root, path));
	}
	return least;
}

/*
 * Step 4: without those paths over joins of ours in one process that are dearer
 * than others are with workers.
 */
List *
hgj_without_slower_process(PlannerInfo *root, List *paths, List *others)
{
	Cost		least = Min(cheapest_with_workers(root, paths),
							cheapest_with_workers(root, others));
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, paths)
	{
		Path	   *path = lfirst(lc);
		Cost		overcharged;

		if (gathers(path, &overcharged) || !aggregates_join(path) ||
			path->total_cost + uncharged_slots(path) <= least)
			result = lappend(result, path);
	}
	return result;
}

/* The same aggregation of PostgreSQL's over `input`. */
static Path *
aggregation_over(const Path *path, Path *input)
{
	const Path *old = hgj_only_subpath(path);
	Path	   *copy;

	if (IsA(path, AggPath))
	{
		AggPath    *agg = makeNode(AggPath);

		*agg = *(const AggPath *) path;
		agg->subpath = input;
		copy = &agg->path;
	}
	else
	{
		GroupPath  *group = makeNode(GroupPath);

		*group = *(const GroupPath *) path;
		group->subpath = input;
		copy = &group->path;
	}
	copy->parallel_safe = path->parallel_safe && input->parallel_safe;
	copy->startup_cost += input->startup_cost - old->startup_cost;
	copy->total_cost += input->total_cost - old->total_cost;
	hgj_set_disabled_nodes(copy, hgj_disabled_nodes(path) +
						   hgj_disabled_nodes(input) - hgj_disabled_nodes(old));
	return copy;
}

/*
 * Step 4, where the aggregation is PostgreSQL's: one over a join of ours in one
 * process gives way to the same over what workers return in the same order.
 */
void
hgj_aggregate_gathered(PlannerInfo *root, RelOptInfo *output_rel,
					   const RelOptInfo *input_rel)
{
	List	   *better = NIL;
	ListCell   *lc1;
	ListCell   *lc2;

	foreach(lc1, output_rel->pathlist)
	{
		const Path *path = lfirst(lc1);
		const Path *input = hgj_only_subpath(path);
		Cost		overcharged;

		if ((!IsA(path, AggPath) && !IsA(path, GroupPath)) ||
			!aggregates_join(path) || gathers(path, &overcharged))
			continue;
		foreach(lc2, input_rel->pathlist)
		{
			Path	   *gathered = lfirst(lc2);

			if (gathers(gathered, &overcharged) &&
				gathered->param_info == input->param_info &&
				hgj_disabled_nodes(gathered) <= hgj_disabled_nodes(input) &&
				pathkeys_contained_in(input->pathkeys, gathered->pathkeys) &&
				gathered->total_cost - overcharged + hgj_uncharged_workers(root, gathered) <
				input->total_cost)
			{
				better = lappend(better, aggregation_over(path, gathered));
				output_rel->pathlist = foreach_delete_current(output_rel->pathlist, lc1);
				break;
			}
		}
	}
	foreach(lc1, better)
		add_path(output_rel, lfirst(lc1));
}

/* Step 7: the cheapest path of ours in one process, or NULL. */
static const Path *
cheapest_of_ours(const List *paths)
{
	const Path *best = NULL;
	ListCell   *lc;

	foreach(lc, paths)
	{
		const Path *path = lfirst(lc);

		if (hgj_is_join_path(path) && path->param_info == NULL &&
			(best == NULL || path->total_cost < best->total_cost))
			best = path;
	}
	return best;
}

/*
 * Step 7: take partial joins of PostgreSQL's out of the query's last join relation that
 * cost more, below a Gather and with what their workers take, than one of ours does in
 * one process.  More of their paths may come, and so may calls.  What an aggregation
 * leaves of the rows is not known here: they are sent for nothing then.
 */
void
hgj_drop_dearer_workers(PlannerInfo *root, RelOptInfo *joinrel)
{
	bool		grouped = root->parse->hasAggs || root->parse->groupClause != NIL;
	const Path *ours;
	ListCell   *lc;

	if (joinrel->partial_pathlist == NIL ||
		!bms_equal(joinrel->relids, HGJ_ALL_RELIDS(root)))
		return;
	ours = cheapest_of_ours(joinrel->pathlist);
	if (ours == NULL)
		return;
	if (!grouped && hgj_is_noting())
		hgj_weigh_joins(root, joinrel, ours);
	foreach(lc, joinrel->partial_pathlist)
	{
		const Path *path = lfirst(lc);
		double		rows = path->rows * hgj_parallel_divisor(path);
		Cost		more = hgj_worker_charge(root, path) - hgj_workers_charged(root, path);

		if (!is_stock_join(path) || more <= 0)
			continue;
		more += parallel_setup_cost;
		if (!grouped)
			more += Min(parallel_tuple_cost, HGJ_GATHER_TUPLE_COST) * rows;
		if (gives_way(root, path, more, ours))
			joinrel->partial_pathlist = foreach_delete_current(joinrel->partial_pathlist, lc);
	}
}
