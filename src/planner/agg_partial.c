/*-------------------------------------------------------------------------
 *
 * agg_partial.c
 *	  Aggregation in parts: by workers, or partition by partition, and what
 *	  finishes it.
 *
 * PostgreSQL has its own paths for the partially grouped relation by the time
 * that it calls the hook, and has gathered and finished them, too.  The hook is
 * not called for that relation itself, so that what is to be made of our paths
 * is made here, by the same rules as in create_partial_grouping_paths(),
 * gather_grouping_paths() and add_paths_to_grouping_rel().
 *
 * 1. The lists of the partially grouped relation are put aside: others point to
 *	  the paths in them, which add_path() would free.
 * 2. A partial HashGraphAgg over every partial path of the input that it may have
 *	  below it (agg_scan.c); the cheapest stays.
 * 3. Where PostgreSQL aggregates partitions in parts, because the partitions'
 *	  keys are not grouped by: the same for each of them, and over complete
 *	  paths, too, then Appends of the partitions' cheapest paths, ours or not.
 * 4. What workers return is gathered, as it comes or sorted by the group
 *	  columns.
 * 5. PostgreSQL's own Finalize Aggregate on top, by hashing or over what is
 *	  sorted.  Beside it, workers that divide the groups among themselves by hash, so
 *	  that a Gather is all that is needed above them (agg/agg_exchange.c).  The choice
 *	  is add_path()'s.
 * 6. The lists get back what they had, besides ours or, under
 *	  hashgraph_join.force, only where there is none of ours: a parent that is
 *	  partitioned makes Appends of them.
 * 7. The workers' groups of step 5 are a partial path, too, without a Gather: of a subquery,
 *	  the planner hands those to the outer query, whose workers can join them, or build a table
 *	  of them together, having made each group once; for ORDER BY, each worker sorts its own,
 *	  and returns as many as LIMIT asks for.  Where a device can make the groups, the sort is left
 *	  above it: it is charged by the groups that are expected, which tend to be too many, and
 *	  what the device spares is not.
 *
 * Memory: everything is palloc'd in the planner's context and dies with it.
 * No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/guc.h"
#include "optimizer/appendinfo.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/prep.h"
#include "planner/agg_path.h"
#include "planner/planner.h"

/* What a query's partial aggregations have in common. */
typedef struct PartialAgg
{
	PlannerInfo *root;
	GroupPathExtraData *extra;
	HgjAggDecline decline;		/* the last one */
} PartialAgg;

/* As fetch_upper_rel(), but NULL where there is none. */
static RelOptInfo *
upper_rel(PlannerInfo *root, UpperRelationKind kind, const RelOptInfo *input_rel)
{
	Relids		relids = IS_OTHER_REL(input_rel) ? input_rel->relids : NULL;
	ListCell   *lc;

	foreach(lc, root->upper_rels[kind])
	{
		RelOptInfo *rel = lfirst(lc);

		if (bms_equal(rel->relids, relids))
			return rel;
	}
	return NULL;
}

/*
 * Does PostgreSQL aggregate the partitions of this relation in parts?  Then each
 * has a partially grouped relation, and nothing has been finished there.
 */
bool
hgj_aggregates_in_parts(PlannerInfo *root, RelOptInfo *input_rel,
						const GroupPathExtraData *extra)
{
	List	   *partitions;
	ListCell   *lc;

	if (extra->patype == PARTITIONWISE_AGGREGATE_NONE ||
		!extra->partial_costs_set || !IS_PARTITIONED_REL(input_rel))
		return false;
	partitions = hgj_live_partitions(input_rel);
	foreach(lc, partitions)
	{
		RelOptInfo *grouped = upper_rel(root, UPPERREL_GROUP_AGG, lfirst(lc));

		if (upper_rel(root, UPPERREL_PARTIAL_GROUP_AGG, lfirst(lc)) == NULL ||
			grouped == NULL || grouped->pathlist != NIL)
			return false;
	}
	return partitions != NIL;
}

/* Step 2; complete: over complete paths as well. */
static void
add_paths_over_input(PartialAgg *agg, RelOptInfo *input_rel,
					 RelOptInfo *partial_rel, List *tlist, bool complete)
{
	List	   *partial_inputs = NIL;
	List	   *inputs = NIL;
	HgjAggContents contents;
	ListCell   *lc;

	if (partial_rel->consider_parallel)
		partial_inputs = hgj_paths_to_aggregate(agg->root, input_rel, true,
												&agg->decline);
	if (complete)
		inputs = hgj_paths_to_aggregate(agg->root, input_rel, false,
										&agg->decline);
	if (partial_inputs == NIL && inputs == NIL)
		return;
	agg->decline = hgj_agg_collect(agg->root, &contents,
								   partial_rel->reltarget->exprs, NIL,
								   AGGSPLIT_INITIAL_SERIAL, tlist);
	if (agg->decline != HGJ_AGG_DECLINE_NOTHING)
		return;

	contents.costs = agg->extra->agg_partial_costs;
	foreach(lc, list_concat_copy(partial_inputs, inputs))
	{
		CustomPath *path = hgj_make_agg_path(agg->root, partial_rel,
											 partial_rel->reltarget, &contents,
											 lfirst(lc), tlist, &agg->decline);

		if (path == NULL)
			continue;
		if (path->path.parallel_workers == 0)
			add_path(partial_rel, &path->path);
		else if (path->path.parallel_safe)
		{
			/* or else PostgreSQL would not let workers report (base/reports.c) */
			path->path.parallel_aware = true;
			add_partial_path(partial_rel, &path->path);
		}
	}
}

static int
compare_total_costs(const ListCell *a, const ListCell *b)
{
	const Path *path_a = lfirst(a);
	const Path *path_b = lfirst(b);

	if (hgj_disabled_nodes(path_a) != hgj_disabled_nodes(path_b))
		return hgj_disabled_nodes(path_a) < hgj_disabled_nodes(path_b) ? -1 : 1;
	if (path_a->total_cost != path_b->total_cost)
		return path_a->total_cost < path_b->total_cost ? -1 : 1;
	return 0;
}

/* The cheapest one first, as in every list of paths. */
static List *
merge_paths(List *ours, List *theirs)
{
	List	   *all;

	if (ours == NIL || (theirs != NIL && !hgj_force))
	{
		all = list_concat_copy(ours, theirs);
		list_sort(all, compare_total_costs);
		return all;
	}
	return ours;
}

/* Step 6. */
static void
give_back_lists(RelOptInfo *partial_rel, List *pathlist, List *partial_pathlist)
{
	partial_rel->pathlist = merge_paths(partial_rel->pathlist, pathlist);
	partial_rel->partial_pathlist = merge_paths(partial_rel->partial_pathlist,
												partial_pathlist);
	if (partial_rel->pathlist != NIL)
		set_cheapest(partial_rel);
}

static bool add_partial_paths(PartialAgg *agg, RelOptInfo *input_rel,
							  RelOptInfo *partial_rel, List *tlist,
							  bool complete);

/* Step 3, for one partition: is there a path of ours? */
static bool
aggregate_partition(PartialAgg *agg, RelOptInfo *partition,
					RelOptInfo *partial_rel, List *tlist)
{
	List	   *pathlist = partial_rel->pathlist;
	List	   *partial_pathlist = partial_rel->partial_pathlist;
	AppendRelInfo **appinfos;
	int			nappinfos;
	bool		ours;

	appinfos = find_appinfos_by_relids(agg->root, partition->relids, &nappinfos);
	tlist = (List *) adjust_appendrel_attrs(agg->root, (Node *) tlist,
											nappinfos, appinfos);
	pfree(appinfos);
	ours = add_partial_paths(agg, partition, partial_rel, tlist, true);
	give_back_lists(partial_rel, pathlist, partial_pathlist);
	return ours;
}

/*
 * Steps 1 to 3: afterwards, the lists have our paths and no others.  False:
 * there is none.
 */
static bool
add_partial_paths(PartialAgg *agg, RelOptInfo *input_rel,
				  RelOptInfo *partial_rel, List *tlist, bool complete)
{
	List	   *children = NIL;
	bool		ours = false;
	ListCell   *lc;

	partial_rel->pathlist = partial_rel->partial_pathlist = NIL;
	if (hgj_aggregates_in_parts(agg->root, input_rel, agg->extra))
	{
		foreach(lc, hgj_live_partitions(input_rel))
		{
			RelOptInfo *child = upper_rel(agg->root, UPPERREL_PARTIAL_GROUP_AGG,
										  lfirst(lc));

			ours |= aggregate_partition(agg, lfirst(lc), child, tlist);
			children = lappend(children, child);
		}
		if (ours)
			add_paths_to_append_rel(agg->root, partial_rel, children);
	}
	add_paths_over_input(agg, input_rel, partial_rel, tlist, complete);
	return partial_rel->pathlist != NIL || partial_rel->partial_pathlist != NIL;
}

/* Step 4: the cheapest one, as our paths have no order. */
static void
add_gather_paths(PlannerInfo *root, RelOptInfo *partial_rel)
{
	Path	   *path;
	double		rows;

	if (partial_rel->partial_pathlist == NIL)
		return;
	path = linitial(partial_rel->partial_pathlist);
	rows = path->rows * path->parallel_workers;
	add_path(partial_rel, (Path *)
			 create_gather_path(root, partial_rel, path, partial_rel->reltarget,
								NULL, &rows));
	if (root->group_pathkeys == NIL)
		return;
	path = (Path *) create_sort_path(root, partial_rel, path,
									 root->group_pathkeys, -1.0);
	add_path(partial_rel, (Path *)
			 create_gather_merge_path(root, partial_rel, path,
									  partial_rel->reltarget,
									  root->group_pathkeys, NULL, &rows));
}

/* Step 5, over a path that is sorted by the group columns. */
static Path *
finish_sorted(PlannerInfo *root, Path *path, RelOptInfo *output_rel,
			  GroupPathExtraData *extra, double groups)
{
	List	   *group_clause = HGJ_NEEDED_GROUP_CLAUSE(root);

	if (!root->parse->hasAggs)
		return (Path *)
			create_group_path(root, output_rel, path, group_clause,
							  (List *) extra->havingQual, groups);
	return (Path *)
		create_agg_path(root, output_rel, path, output_rel->reltarget,
						AGG_SORTED, AGGSPLIT_FINAL_DESERIAL, group_clause,
						(List *) extra->havingQual, &extra->agg_final_costs,
						groups);
}

/* Step 5: every way to finish what is in the list. */
static List *
finish(PlannerInfo *root, RelOptInfo *partial_rel, RelOptInfo *output_rel,
	   GroupPathExtraData *extra, double groups)
{
	List	   *group_clause = HGJ_NEEDED_GROUP_CLAUSE(root);
	AggStrategy strategy = group_clause ? AGG_HASHED :
		root->parse->groupClause ? AGG_SORTED : AGG_PLAIN;
	List	   *result = NIL;
	ListCell   *lc;

	set_cheapest(partial_rel);
	foreach(lc, partial_rel->pathlist)
	{
		Path	   *path = lfirst(lc);

		if (path == partial_rel->cheapest_total_path)
			result = lappend(result,
							 create_agg_path(root, output_rel, path,
											 output_rel->reltarget,
											 strategy,
											 AGGSPLIT_FINAL_DESERIAL, group_clause,
											 (List *) extra->havingQual,
											 &extra->agg_final_costs, groups));
		if (root->group_pathkeys == NIL)
			continue;
		if (!pathkeys_contained_in(root->group_pathkeys, path->pathkeys))
		{
			if (path != partial_rel->cheapest_total_path)
				continue;
			path = (Path *) create_sort_path(root, output_rel, path,
											 root->group_pathkeys, -1.0);
		}
		result = lappend(result,
						 finish_sorted(root, path, output_rel, extra, groups));
	}
	/* who asks for it is to have it */
	if (hgj_parallel_aggregate == HGJ_AGGREGATE_PARTIAL)
		return result;
	foreach(lc, result)
	{
		Path	   *path = lfirst(lc);
		Cost		more = hgj_uncharged_groups(path);

		path->startup_cost += path->pathkeys == NIL ? more : 0;
		path->total_cost += more;
	}
	return result;
}

/* Step 5: a Gather above an aggregation whose processes return finished groups, each its own. */
Path *
hgj_gather_groups(PlannerInfo *root, RelOptInfo *output_rel, Path *path)
{
	double		rows = path->rows * hgj_parallel_divisor(path);

	/* for what it has to tell; see hgj_agg_explain() */
	path->parallel_aware = true;
	return (Path *) create_gather_path(root, output_rel, path, output_rel->reltarget, NULL, &rows);
}

/* Is one of the paths planned for a device? */
static bool
use_device(const List *paths)
{
	ListCell   *lc;

	foreach(lc, paths)
		if (hgj_uses_device(lfirst(lc)))
			return true;
	return false;
}

/*
 * Step 7, of these paths: copies, as the list's paths are freed when others are cheaper, and there
 * is a Gather above each.
 */
void
hgj_offer_without_gather(PlannerInfo *root, RelOptInfo *output_rel, const List *paths)
{
	ListCell   *lc;

	if (root->parent_root == NULL && (root->sort_pathkeys == NIL || use_device(paths)))
		return;
	foreach(lc, paths)
	{
		const GatherPath *gather = lfirst(lc);
		CustomPath *copy;

		if (!IsA(gather, GatherPath) || !hgj_is_agg_path(gather->subpath) ||
			((const CustomPath *) gather->subpath)->path.parent != output_rel)
			continue;
		copy = makeNode(CustomPath);
		*copy = *(const CustomPath *) gather->subpath;
		add_partial_path(output_rel, &copy->path);
	}
}

/* Step 5, over partial inputs: groups that workers have divided among themselves. */
static List *
exchange_paths(PlannerInfo *root, List *inputs, RelOptInfo *output_rel,
			   GroupPathExtraData *extra, double groups)
{
	HgjAggDecline decline;
	List	   *result = NIL;
	ListCell   *lc;

	if (hgj_parallel_aggregate == HGJ_AGGREGATE_PARTIAL ||
		root->parse->groupClause == NIL || IS_OTHER_REL(output_rel) ||
		!output_rel->consider_parallel)
		return NIL;
	foreach(lc, hgj_complete_agg_paths(root, inputs, output_rel, extra, groups, &decline))
	{
		Path	   *path = lfirst(lc);

		if (path->parallel_safe)
			result = lappend(result, hgj_gather_groups(root, output_rel, path));
	}
	return result;
}

/*
 * Finished paths over partial ones of ours; NIL: there is none, and *decline says
 * why if there was something to decline.
 */
List *
hgj_partial_agg_paths(PlannerInfo *root, RelOptInfo *input_rel,
					  RelOptInfo *output_rel, GroupPathExtraData *extra,
					  HgjAggDecline *decline)
{
	PartialAgg	agg = {root, extra, HGJ_AGG_DECLINE_NOTHING};
	RelOptInfo *partial_rel = upper_rel(root, UPPERREL_PARTIAL_GROUP_AGG,
										input_rel);
	List	   *inputs = hgj_paths_to_aggregate(root, input_rel, true, decline);
	List	   *pathlist;
	List	   *partial_pathlist;
	List	   *result = NIL;
	double		groups;

	*decline = HGJ_AGG_DECLINE_NOTHING;
	if (inputs != NIL && !output_rel->consider_parallel)
		*decline = HGJ_AGG_DECLINE_WORKERS;
	else if (inputs != NIL && (extra->flags & GROUPING_CAN_PARTIAL_AGG) == 0)
		*decline = HGJ_AGG_DECLINE_COMBINE;
	if (partial_rel == NULL || !extra->partial_costs_set ||
		(extra->flags & GROUPING_CAN_PARTIAL_AGG) == 0)
		return NIL;

	pathlist = partial_rel->pathlist;
	partial_pathlist = partial_rel->partial_pathlist;
	if (add_partial_paths(&agg, input_rel, partial_rel, extra->targetList, false))
	{
		add_gather_paths(root, partial_rel);
		groups = hgj_number_of_groups(root, input_rel->cheapest_total_path->rows,
									  extra->targetList);
		result = exchange_paths(root, inputs, output_rel, extra, groups);
		if (result == NIL || hgj_parallel_aggregate != HGJ_AGGREGATE_EXCHANGE)
			result = list_concat(finish(root, partial_rel, output_rel, extra, groups),
								 result);
	}
	else if (agg.decline != HGJ_AGG_DECLINE_NOTHING)
		*decline = agg.decline;
	give_back_lists(partial_rel, pathlist, partial_pathlist);
	return result;
}
