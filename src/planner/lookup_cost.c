/*-------------------------------------------------------------------------
 *
 * lookup_cost.c
 *	  Nested loops over an index that are cheaper than they seem.
 *
 * PostgreSQL charges random_page_cost for the pages of each lookup, whether they are
 * cached or not, and only where there are as many lookups as pages does it suppose
 * that they are.  Its own hash joins are charged seq_page_cost for each page of a table
 * that they read, cached or not, so that the two stand in a sensible relation.  Ours
 * are charged for cached pages what these cost (feed_cost.c), which would push out
 * lookups that take a tenth of the time.
 *
 * 1. What a lookup is charged for pages is what is left of its costs without those of
 *	  its rows and of the way down the index.  Where effective_cache_size holds all
 *	  tables of the query, and shared buffers this one, HGJ_LOOKUP_PAGE_PART of
 *	  seq_page_cost a page is enough; the rest is overcharge.  It is what 300 to 20,000
 *	  lookups of one to four rows by the primary keys of TPC-H's tables took, 1.0 to
 *	  1.7 microseconds each, where a scan of ours takes 1.3 for what it is charged 1 for.
 * 2. What is overcharged below a path is overcharged in it: below a nested loop as many
 *	  times as it charges for its inner side, which is less than once a row for a semi
 *	  join, though not so much that a lookup costs less than it does; once below
 *	  everything else, ours included.  A sequential scan of PostgreSQL's is charged too
 *	  little in turn, for all that surrounds a row (feed_cost.c step 5): 73 nanoseconds
 *	  a row of TPC-H's orders with two filters, which is nearly twice its charge.
 * 3. A nested loop is preferred to a join of ours if it is cheaper without what both
 *	  are overcharged for, and PostgreSQL would have chosen it: it is cheaper, as it is
 *	  charged, than reading both sides, by several processes or by one.  So nothing comes
 *	  of it but what is PostgreSQL's own choice, and data that are not cached after all
 *	  cost no more than they do there.
 * 4. Paths of ours that were there first have pushed such nested loops out, in this
 *	  call of the hook or the one for the other order.  So the pair's own is made
 *	  anew, and put in their place; those that come later give way to it.
 *
 * Memory: the planner's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "planner/planner.h"
#include "utils/float.h"
#include "utils/spccache.h"

/* Step 1: of seq_page_cost, what a page of shared buffers costs that is looked up. */
#define HGJ_LOOKUP_PAGE_PART	0.2

/* Step 2: what a scan that returns slots costs more than it is charged, as a part of that. */
#define HGJ_SLOWER_SCAN			0.8

/* Steps 1 and 2: what the rows of one lookup cost, and the way to them. */
static Cost
lookup_rows(const IndexPath *path)
{
	const RelOptInfo *rel = path->path.parent;
	const IndexOptInfo *index = path->indexinfo;
	double		tuples = clamp_row_est(path->indexselectivity * rel->tuples);

	return tuples * (cpu_tuple_cost + cpu_index_tuple_cost +
					 cpu_operator_cost * (list_length(path->indexclauses) +
										  list_length(rel->baserestrictinfo))) +
		cpu_operator_cost * (ceil(log(Max(index->tuples, 1)) / log(2.0)) +
							 50 * (Max(index->tree_height, 0) + 1));
}

/* Step 1: of one lookup. */
static Cost
lookup_overcharge(PlannerInfo *root, const IndexPath *path)
{
	const RelOptInfo *rel = path->path.parent;
	double		random_cost;
	double		seq_cost;

	if (path->path.param_info == NULL || rel->pages > (BlockNumber) NBuffers ||
		root->total_table_pages > effective_cache_size)
		return 0;
	get_tablespace_page_costs(rel->reltablespace, &random_cost, &seq_cost);
	if (random_cost <= seq_cost * HGJ_LOOKUP_PAGE_PART)
		return 0;
	return Max(path->path.total_cost - lookup_rows(path), 0) *
		(1 - seq_cost * HGJ_LOOKUP_PAGE_PART / random_cost);
}

/* Step 2: what one lookup costs at least: a page of the index, and one of the table. */
static Cost
least_lookup(const Path *path)
{
	return IsA(path, IndexPath) ?
		lookup_rows((const IndexPath *) path) + 2 * seq_page_cost * HGJ_LOOKUP_PAGE_PART : 0;
}

static Cost overcharge(PlannerInfo *root, const Path *path);

/*
 * Step 2: of the inner side of a nested loop, as far as it has been charged: of a semi
 * or anti join, or where the inner side is unique, that may be less than for each row.
 */
static Cost
loop_overcharge(PlannerInfo *root, const JoinPath *path)
{
	const Path *outer = path->outerjoinpath;
	const Path *inner = path->innerjoinpath;
	Cost		charged = Min(path->path.total_cost - outer->total_cost,
							  outer->rows * inner->total_cost);
	Cost		too_much = overcharge(root, inner);

	if (charged <= 0 || too_much <= 0)
		return 0;
	return Min(too_much * charged / inner->total_cost,
			   charged - outer->rows * least_lookup(inner));
}

/* Step 2. */
static Cost
overcharge(PlannerInfo *root, const Path *path)
{
	ListCell   *lc;
	Cost		sum = 0;

	check_stack_depth();
	switch (nodeTag(path))
	{
		case T_Path:
			return path->pathtype == T_SeqScan ? -HGJ_SLOWER_SCAN * path->total_cost : 0;
		case T_IndexPath:
			return lookup_overcharge(root, (const IndexPath *) path);
		case T_NestPath:
			return overcharge(root, ((const JoinPath *) path)->outerjoinpath) +
				loop_overcharge(root, (const JoinPath *) path);
		case T_HashPath:
		case T_MergePath:
			return overcharge(root, ((const JoinPath *) path)->outerjoinpath) +
				overcharge(root, ((const JoinPath *) path)->innerjoinpath);
		case T_MemoizePath:
			{
				const Path *lookup = ((const MemoizePath *) path)->subpath;

				return overcharge(root, lookup) *
					Min(path->total_cost / Max(lookup->total_cost, cpu_operator_cost), 1);
			}
		case T_MaterialPath:
			return overcharge(root, ((const MaterialPath *) path)->subpath);
		case T_ProjectionPath:
			return overcharge(root, ((const ProjectionPath *) path)->subpath);
		case T_CustomPath:
			if (hgj_is_join_path(path))
				foreach(lc, ((const CustomPath *) path)->custom_paths)
					if (!IsA(lfirst(lc), Path))
						sum += overcharge(root, lfirst(lc));
			return sum;
		default:
			return 0;
	}
}

/*
 * What the path costs the host while pages are cached, with the workers of Gathers below it.  Those
 * that a partial path is charged for may be of use to more than this join.
 */
static Cost
cost_on_host(PlannerInfo *root, const Path *path)
{
	return path->total_cost - hgj_workers_charged(root, path) +
		hgj_uncharged_workers(root, path) - overcharge(root, path) +
		hgj_uncharged_lookups(path);
}

/* What the path costs where a device may run it: the host's costs of joins of ours do not know that. */
static Cost
cached_cost(PlannerInfo *root, const Path *path)
{
	return cost_on_host(root, path) -
		(hgj_is_join_path(path) ? hgj_pipeline_would_save(root, path) : 0);
}

/* Is it PostgreSQL's own nested loop over lookups? */
static bool
looks_up(PlannerInfo *root, const Path *path)
{
	return IsA(path, NestPath) &&
		overcharge(root, ((const JoinPath *) path)->innerjoinpath) > 0;
}

static bool
has_ours(List *paths)
{
	ListCell   *lc;

	foreach(lc, paths)
		if (hgj_is_join_path(lfirst(lc)))
			return true;
	return false;
}

/* The paths of the list but those of ours that are dearer than `other`, at its cost. */
static List *
without_dearer(PlannerInfo *root, List *paths, const Path *other, Cost cost)
{
	ListCell   *lc;

	foreach(lc, paths)
	{
		const Path *path = lfirst(lc);

		if (hgj_is_join_path(path) && path->param_info == NULL &&
			hgj_disabled_nodes(path) >= hgj_disabled_nodes(other) &&
			cached_cost(root, path) > cost)
			paths = foreach_delete_current(paths, lc);
	}
	return paths;
}

/*
 * Take paths of ours that are dearer than `other`, at its cached cost, from the relation;
 * were there any?
 */
static bool
remove_dearer(PlannerInfo *root, RelOptInfo *joinrel, const Path *other, Cost cost)
{
	int			npaths = list_length(joinrel->pathlist) +
		list_length(joinrel->partial_pathlist);

	joinrel->pathlist = without_dearer(root, joinrel->pathlist, other, cost);
	joinrel->partial_pathlist = without_dearer(root, joinrel->partial_pathlist, other,
											   cost);
	return list_length(joinrel->pathlist) +
		list_length(joinrel->partial_pathlist) < npaths;
}

/*
 * Step 4: is there a nested loop in the relation that is preferred to this path of
 * ours, or a path of ours above one?  If not, those that are dearer than it make way
 * for it where there is one below it.
 */
bool
hgj_lookups_are_better(PlannerInfo *root, RelOptInfo *joinrel, const Path *ours)
{
	const Path *best = NULL;
	Cost		on_host;
	ListCell   *lc;

	if (ours->param_info != NULL)
		return false;
	on_host = cost_on_host(root, ours);
	foreach(lc, joinrel->pathlist)
	{
		const Path *path = lfirst(lc);
		Cost		cached;

		if (path->param_info != NULL)
			continue;
		if (!hgj_is_join_path(path))
		{
			best = best == NULL || path->total_cost < best->total_cost ? path : best;
			continue;
		}
		cached = cost_on_host(root, path);
		if (hgj_disabled_nodes(path) <= hgj_disabled_nodes(ours) &&
			cached < path->total_cost && cached < on_host)
			return true;
	}
	if (best != NULL && looks_up(root, best) &&
		hgj_disabled_nodes(best) <= hgj_disabled_nodes(ours) &&
		cached_cost(root, best) < cached_cost(root, ours))
		return true;
	if (on_host < ours->total_cost && ours->parallel_workers == 0)
		(void) remove_dearer(root, joinrel, ours, on_host);
	return false;
}

/* What the cheapest partial path costs each process; or infinity. */
static Cost
partial_cost(PlannerInfo *root, const RelOptInfo *rel)
{
	const Path *path;

	if (rel->partial_pathlist == NIL)
		return get_float8_infinity();
	path = linitial(rel->partial_pathlist);
	return path->total_cost - hgj_workers_charged(root, path);
}

/* Step 3: the nested loop of these two, if PostgreSQL would choose it. */
static Path *
nested_loop(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *innerrel,
			JoinType jointype, JoinPathExtraData *extra, Path *outer, Path *inner)
{
	const RelOptInfo *outerrel = outer->parent;
	JoinCostWorkspace workspace;
	Path	   *path;
	Relids		needed = calc_nestloop_required_outer(outerrel->relids, PATH_REQ_OUTER(outer),
													  innerrel->relids, PATH_REQ_OUTER(inner));

	if (!bms_is_empty(needed) || HGJ_NEEDS_JOIN(inner, extra->sjinfo))
		return NULL;
	initial_cost_nestloop(root, &workspace, jointype, outer, inner, extra);
	path = (Path *) create_nestloop_path(root, joinrel, jointype, &workspace, extra, outer,
										 inner, extra->restrictlist,
										 build_join_pathkeys(root, joinrel, jointype, outer->pathkeys),
										 NULL);
	if (path->total_cost >= outer->total_cost + innerrel->cheapest_total_path->total_cost ||
		path->total_cost >= parallel_setup_cost + partial_cost(root, outerrel) +
		partial_cost(root, innerrel))
		return NULL;
	return path;
}

/*
 * Step 4: put nested loops of this pair, in this order, in the place of joins of ours,
 * whichever pair they are of.
 */
void
hgj_prefer_lookups(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
				   RelOptInfo *innerrel, JoinType jointype,
				   JoinPathExtraData *extra)
{
	Path	   *outer = outerrel->cheapest_total_path;
	ListCell   *lc;

	if ((jointype != JOIN_INNER && jointype != JOIN_LEFT && jointype != JOIN_SEMI &&
		 jointype != JOIN_ANTI) ||
		outer->param_info != NULL || innerrel->cheapest_total_path->param_info != NULL ||
		(!has_ours(joinrel->pathlist) && !has_ours(joinrel->partial_pathlist)))
		return;
	foreach(lc, innerrel->cheapest_parameterized_paths)
	{
		Path	   *inner = lfirst(lc);
		Path	   *loop;

		if (!IsA(inner, IndexPath) || inner->param_info == NULL ||
			!bms_is_subset(PATH_REQ_OUTER(inner), outerrel->relids))
			continue;
		loop = nested_loop(root, joinrel, innerrel, jointype, extra, outer, inner);
		if (loop != NULL &&
			remove_dearer(root, joinrel, loop, cached_cost(root, loop)))
			add_path(joinrel, loop);
	}
}
