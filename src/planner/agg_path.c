/*-------------------------------------------------------------------------
 *
 * agg_path.c
 *	  Offer a HashGraphAgg for every aggregation directly above a
 *	  HashGraphJoin, or a sequential scan, that can be one.
 *
 * PostgreSQL calls create_upper_paths_hook for each grouped relation, when it
 * has its own paths for it; with partitionwise aggregation also for those of
 * the partitions.
 *
 * 1. Find the paths of the input that it may have below it, possibly below the
 *	  projection that makes the grouping expressions (agg_scan.c).
 * 2. See what is computed (agg_contents.c), and decline, with a reason at DEBUG1, what
 *	  the executor could not do or not do exactly.  Aggregates with DISTINCT group
 *	  twice (agg_distinct.c), where that can be.
 * 3. A path over each of them, as a pipeline on a GPU where that is cheaper.
 * 4. With a Sort on top of the cheapest, too, where an ORDER BY follows that
 *	  PostgreSQL's way to group by sorting would make free.
 * 5. agg_partial.c adds what aggregates in workers, or partition by partition.
 * 6. Under hashgraph_join.force, drop PostgreSQL's paths first, but for those that
 *	  look min() and max() up in an index.
 *
 * Memory: everything is palloc'd in the planner's context and dies with it.
 * No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/guc.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/prep.h"
#include "optimizer/tlist.h"
#include "planner/agg_path.h"
#include "planner/declines.h"
#include "planner/planner.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

/* What a value in a dictionary takes besides itself, more or less. */
#define HGJ_DICTIONARY_VALUE_BYTES	48

static create_upper_paths_hook_type previous_hook = NULL;

static void hgj_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
							RelOptInfo *output_rel, void *extra);

/*
 * Will there be a HashGraphAgg above the joins of this relation, so that none of
 * their rows is emitted?  For join_path.c, which has to know when it compares join
 * orders.  Foretold from the query, before there are relations of groups: what
 * partitions are aggregated into, and what only a child could decline, is not.
 */
bool
hgj_aggregation_takes(PlannerInfo *root, RelOptInfo *joinrel)
{
	Query	   *parse = root->parse;
	HgjAggContents contents;
	HgjAggDecline decline;
	List	   *exprs = NIL;
	ListCell   *lc;

	if (!hgj_aggregate || !bms_equal(joinrel->relids, HGJ_ALL_RELIDS(root)))
		return false;
	if (parse->groupingSets != NIL ||
		(parse->groupClause == NIL && !parse->hasAggs) ||
		(parse->groupClause != NIL && !enable_hashagg))
		return false;
	foreach(lc, root->processed_tlist)
		exprs = lappend(exprs, lfirst_node(TargetEntry, lc)->expr);
	decline = hgj_agg_collect(root, &contents, exprs, (List *) parse->havingQual,
							  AGGSPLIT_SIMPLE, root->processed_tlist);
	return decline == HGJ_AGG_DECLINE_NOTHING;
}

/* Can this be the child?  It must return the group columns as they are. */
static HgjAggDecline
child_decline(const HgjAggContents *contents, const Path *child)
{
	ListCell   *lc;

	foreach(lc, child->pathtarget->exprs)
		if (exprType(lfirst(lc)) == RECORDOID)
			return HGJ_AGG_DECLINE_RECORD;
	foreach(lc, contents->group_exprs)
		if (!list_member(child->pathtarget->exprs, lfirst(lc)))
			return HGJ_AGG_DECLINE_COLUMN;
	return HGJ_AGG_DECLINE_NOTHING;
}

/* How many groups such a number of the child's rows is expected to have. */
double
hgj_number_of_groups(PlannerInfo *root, double rows, List *tlist)
{
	List	   *group_clause = root->parse->groupClause;

	if (group_clause == NIL)
		return 1;
	return estimate_num_groups(root,
							   get_sortgrouplist_exprs(group_clause, tlist),
							   rows, NULL, NULL);
}

/*
 * The kilobytes that a dictionary of the expression's values would take: those
 * of its relation's rows, whether they match in the join or not.  Where there
 * are more of them than matches, looking the matches' values up is less work
 * than making it, so that it is said not to fit; but a device needs codes.
 */
static int
dictionary_kilobytes(PlannerInfo *root, Node *expr, const Path *child)
{
	int			relid;
	RelOptInfo *rel;
	double		values;
	double		kilobytes;

	/* only a join's build side has them, and a table whose columns are kept in memory */
	if ((!hgj_is_join_path(child) && child->pathtype != T_SeqScan) ||
		!bms_get_singleton_member(HGJ_BASE_RELIDS(root, pull_varnos(root, expr)),
								  &relid))
		return INT_MAX;
	rel = find_base_rel(root, relid);
	values = estimate_num_groups(root, list_make1(expr), Max(rel->rows, 1),
								 NULL, NULL);
	if (values > child->rows && hgj_engine != HGJ_ENGINE_CUDA &&
		!hgj_path_wants_device(child))
		return INT_MAX;
	kilobytes = values * (hgj_expr_width(root, expr) + HGJ_DICTIONARY_VALUE_BYTES) / 1024;
	return (int) Min(kilobytes, (double) INT_MAX);
}

/* The number of leading columns by whose hash workers divide the groups; 0: they do not. */
static int
exchanged_keys(const HgjAggContents *contents)
{
	if (contents->exchanged_groups == 0)
		return 0;
	return contents->exchanged_keys > 0 ? contents->exchanged_keys : contents->ntelling;
}

/*
 * HGJ_AGG_PATH_FACTS, an IntList: what HGJ_AGG_SPLIT has, and estimates, as in agg_format.h.
 */
static List *
facts_of(PlannerInfo *root, const HgjAggContents *contents, const Path *child,
		 double groups, bool planned)
{
	List	   *result = list_make5_int((int) contents->split,
										exchanged_keys(contents), planned,
										contents->ntelling,
										(int) Min(groups, (double) INT_MAX));
	ListCell   *lc;

	foreach(lc, contents->group_exprs)
		result = lappend_int(result,
							 dictionary_kilobytes(root, lfirst(lc), child));
	return result;
}

/* A path over `child`, or NULL with a reason. */
CustomPath *
hgj_make_agg_path(PlannerInfo *root, RelOptInfo *rel, PathTarget *target,
				  const HgjAggContents *contents, Path *child, List *tlist,
				  HgjAggDecline *decline)
{
	double		groups = contents->groups > 0 ? contents->groups :
		hgj_number_of_groups(root, child->rows, tlist);
	CustomPath *path;
	Cost		gain = 0;
	Cost		rows;
	bool		planned = false;

	*decline = child_decline(contents, child);
	if (*decline == HGJ_AGG_DECLINE_NOTHING &&
		hgj_states_outgrow_memory(root, rel, child, contents))
		*decline = HGJ_AGG_DECLINE_STATES;
	if (*decline != HGJ_AGG_DECLINE_NOTHING)
		return NULL;
	if (contents->split == AGGSPLIT_SIMPLE && contents->exchanged_groups == 0 &&
		(hgj_is_join_path(child) || hgj_is_scan_path(child)))
	{
		double		kept = hgj_pipeline_part_kept(root, child, contents);

		child = hgj_pipeline_child(root, child, contents, kept,
								   hgj_agg_device_gain(root, child, contents, kept, groups), &gain,
								   &planned);
	}

	path = makeNode(CustomPath);
	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = target;
	path->path.parallel_safe = rel->consider_parallel && child->parallel_safe;
	path->path.parallel_workers = child->parallel_workers;
	path->path.pathkeys = NIL;
	hgj_set_disabled_nodes(&path->path, hgj_disabled_nodes(child));
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->custom_paths = list_make1(child);
	path->custom_private =
		list_make5(contents->group_exprs, contents->group_operators,
				   contents->aggrefs, contents->having,
				   facts_of(root, contents, child, groups, planned));
	path->custom_private = lappend(path->custom_private,
								   contents->functions ?
								   list_make2(contents->functions, contents->args) : NIL);
	path->methods = &hgj_agg_path_methods;
	rows = hgj_cost_agg(root, &path->path, child, contents, groups, planned);
	path->custom_private = lappend(path->custom_private,
								   list_make1_int((int) Min(rows, (double) INT_MAX)));
	path->path.startup_cost = Max(path->path.startup_cost - gain, child->startup_cost);
	path->path.total_cost = Max(path->path.total_cost - gain, path->path.startup_cost);
	return path;
}

/*
 * Step 3 of the head comment: paths over the inputs whose groups are complete, or, where
 * exchanged_groups are expected, over partial ones whose workers divide so many among
 * themselves.  *decline: why there is none.
 */
List *
hgj_complete_agg_paths(PlannerInfo *root, List *inputs, RelOptInfo *output_rel,
					   GroupPathExtraData *extra, double exchanged_groups,
					   HgjAggDecline *decline)
{
	HgjAggContents contents;
	List	   *result = NIL;
	ListCell   *lc;

	*decline = hgj_agg_collect(root, &contents, output_rel->reltarget->exprs,
							   (List *) extra->havingQual, AGGSPLIT_SIMPLE,
							   extra->targetList);
	if (*decline != HGJ_AGG_DECLINE_NOTHING)
		return NIL;
	/* states of PostgreSQL's functions are put together by Finalize Aggregate only */
	if (exchanged_groups > 0 && !hgj_aggregates_are_known(&contents))
		return NIL;
	contents.exchanged_groups = exchanged_groups;
	get_agg_clause_costs(root, AGGSPLIT_SIMPLE, &contents.costs);
	foreach(lc, inputs)
	{
		CustomPath *path = hgj_make_agg_path(root, output_rel,
											 output_rel->reltarget, &contents,
											 lfirst(lc), extra->targetList,
											 decline);

		if (path)
			result = lappend(result, path);
	}
	return result;
}

/*
 * Is what comes next (a window function, DISTINCT, ORDER BY) served by an order
 * of the group columns?  Then those are to be sorted by, or as many of them as
 * that takes, where others are not among what is returned.
 */
static List *
wanted_order(PlannerInfo *root, const RelOptInfo *output_rel, List *tlist)
{
	List	   *wanted = root->window_pathkeys ? root->window_pathkeys :
		root->distinct_pathkeys ? root->distinct_pathkeys :
		root->sort_pathkeys;
	List	   *grouped = HGJ_GROUP_PATHKEYS(root);
	ListCell   *lc;

	if (wanted == NIL || !pathkeys_contained_in(wanted, grouped))
		return NIL;
	foreach(lc, get_sortgrouplist_exprs(root->parse->groupClause, tlist))
		if (!list_member(output_rel->reltarget->exprs, lfirst(lc)))
			return wanted;
	return grouped;
}

/*
 * Step 4 of the head comment.  PostgreSQL would sort the cheapest path by itself,
 * but first weighs it, unsorted, against its own ways that return an order, and
 * takes costs that are nearly equal for equal.
 */
static Path *
sorted_path(PlannerInfo *root, RelOptInfo *output_rel, List *paths, List *tlist)
{
	List	   *order = wanted_order(root, output_rel, tlist);
	CustomPath *cheapest = NULL;
	CustomPath *copy;
	ListCell   *lc;

	if (order == NIL)
		return NULL;
	foreach(lc, paths)
		if (cheapest == NULL || ((Path *) lfirst(lc))->total_cost <
			cheapest->path.total_cost)
			cheapest = lfirst(lc);
	if (cheapest == NULL)
		return NULL;
	/* add_path() may free the other one */
	copy = makeNode(CustomPath);
	*copy = *cheapest;
	return (Path *) create_sort_path(root, output_rel, &copy->path, order, -1.0);
}

static void
report_decline(PlannerInfo *root, const RelOptInfo *input_rel, const char *what,
			   HgjAggDecline decline)
{
	if (decline != HGJ_AGG_DECLINE_NOTHING && message_level_is_interesting(DEBUG1))
		ereport(DEBUG1,
				(errmsg_internal("hashgraph_join: declined %s of (%s): %s", what,
								 hgj_relids_names(root, input_rel->relids),
								 hgj_agg_decline_text(decline))));
}

/* The paths that find min() and max() at the ends of indexes, without aggregating. */
static List *
lookups_of(List *paths)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, paths)
		if (IsA(lfirst(lc), MinMaxAggPath))
			result = lappend(result, lfirst(lc));
	return result;
}

/* Where aggregates have DISTINCT. */
static List *
distinct_paths(PlannerInfo *root, RelOptInfo *input_rel, List *inputs,
			   RelOptInfo *output_rel, GroupPathExtraData *extra)
{
	HgjAggDecline decline;
	List	   *partial_inputs;

	/* DISTINCT is one of the things that want an order */
	if (root->numOrderedAggs == 0 || !enable_hashagg)
		return NIL;
	partial_inputs = hgj_paths_to_aggregate(root, input_rel, true, &decline);
	return hgj_distinct_agg_paths(root, inputs, partial_inputs, output_rel, extra);
}

/* Says why there is no path, where there is something to aggregate. */
static HgjAggDecline
consider_aggregation(PlannerInfo *root, RelOptInfo *input_rel,
					 RelOptInfo *output_rel, GroupPathExtraData *extra)
{
	HgjAggDecline decline;
	HgjAggDecline partial_decline;
	List	   *inputs = hgj_paths_to_aggregate(root, input_rel, false, &decline);
	List	   *paths;
	Path	   *chain;
	Path	   *sorted;
	ListCell   *lc;

	if (inputs == NIL &&
		hgj_paths_to_aggregate(root, input_rel, true, &partial_decline) == NIL &&
		!hgj_aggregates_in_parts(root, input_rel, extra))
		return decline;
	if (root->parse->groupingSets != NIL)
		return HGJ_AGG_DECLINE_GROUPING_SETS;
	if (root->parse->groupClause != NIL && !enable_hashagg)
		return HGJ_AGG_DECLINE_HASHAGG;

	paths = distinct_paths(root, input_rel, inputs, output_rel, extra);
	chain = hgj_chain_to_aggregate(root, input_rel);
	if (chain)
		inputs = lappend(inputs, chain);
	if (paths == NIL)
		paths = hgj_complete_agg_paths(root, inputs, output_rel, extra, 0, &decline);
	sorted = sorted_path(root, output_rel, paths, extra->targetList);
	if (sorted)
		paths = lappend(paths, sorted);
	paths = list_concat(paths, hgj_partial_agg_paths(root, input_rel, output_rel,
													 extra, &partial_decline));
	if (paths == NIL)
		return decline != HGJ_AGG_DECLINE_NOTHING ? decline : partial_decline;
	hgj_weigh_workers(root, output_rel, paths);

	report_decline(root, input_rel, "partial aggregation", partial_decline);
	hgj_note_aggregation(root, output_rel->relids, HGJ_AGG_DECLINE_NOTHING, partial_decline);

	/* what is there aggregates the same by PostgreSQL's own means */
	if (hgj_force)
		output_rel->pathlist = lookups_of(output_rel->pathlist);
	else
	{
		List	   *theirs = hgj_without_slower_process(root, output_rel->pathlist,
														paths);

		paths = hgj_without_slower_process(root, paths, output_rel->pathlist);
		output_rel->pathlist = hgj_without_dearer_readers(root, theirs,
														  paths);
	}

	/*
	 * Whoever is called after us may put a node above each of the relation's paths, and expects
	 * no partial ones, as PostgreSQL makes none of finished groups: they would go around it.
	 * What a device would do more slowly has gone by now, and add_path() may free the others.
	 */
	if (create_upper_paths_hook == hgj_upper_paths)
		hgj_offer_without_gather(root, output_rel, paths);
	foreach(lc, paths)
		add_path(output_rel, (Path *) lfirst(lc));
	if (paths != NIL && IS_SIMPLE_REL(input_rel))
		hgj_require_note_scan();
	else if (paths != NIL)
		hgj_require_note_aggregate();
	return HGJ_AGG_DECLINE_NOTHING;
}

static void
hgj_upper_paths(PlannerInfo *root, UpperRelationKind stage,
				RelOptInfo *input_rel, RelOptInfo *output_rel, void *extra)
{
	HgjAggDecline decline;

	if (previous_hook)
		previous_hook(root, stage, input_rel, output_rel, extra);

	if (stage == UPPERREL_FINAL)
		hgj_note_query(root);
	if (stage != UPPERREL_GROUP_AGG || !hgj_enabled || !hgj_aggregate)
		return;
	decline = hgj_is_grouped_by_others(output_rel) ? HGJ_AGG_DECLINE_GROUPED :
		consider_aggregation(root, input_rel, output_rel, extra);
	report_decline(root, input_rel, "aggregation", decline);
	if (decline != HGJ_AGG_DECLINE_NOTHING)
		hgj_note_aggregation(root, output_rel->relids, decline, decline);
	if (!hgj_force && decline != HGJ_AGG_DECLINE_GROUPED)
		hgj_aggregate_gathered(root, output_rel, input_rel);
}

/* Chain into the planner.  Call once per process, from _PG_init. */
void
hgj_install_agg_hook(void)
{
	previous_hook = create_upper_paths_hook;
	create_upper_paths_hook = hgj_upper_paths;
}
