/*-------------------------------------------------------------------------
 *
 * path_facts.c
 *	  What is known of a path: is it one of ours, or another extension's, and what did its
 *	  maker note?
 *
 * No memory is kept, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/own_nodes.h"
#include "catalog/pg_class.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "parser/parsetree.h"
#include "planner/planner.h"

/* The path below projections. */
const Path *
hgj_below_projections(const Path *path)
{
	while (IsA(path, ProjectionPath))
		path = ((const ProjectionPath *) path)->subpath;
	return path;
}

/* Is this a HashGraphJoin, possibly below a projection? */
bool
hgj_is_join_path(const Path *path)
{
	path = hgj_below_projections(path);
	return IsA(path, CustomPath) &&
		((const CustomPath *) path)->methods == hgj_join_methods.path;
}

/* What is at the bottom of a chain of them, on their outer sides; the path, if it is none. */
const Path *
hgj_below_joins(const Path *path)
{
	while (hgj_is_join_path(path))
		path = linitial(((const CustomPath *) hgj_below_projections(path))->custom_paths);
	return path;
}

/* What is known of such a path. */
int
hgj_path_fact(const Path *path, HgjPathFact fact)
{
	const CustomPath *join = (const CustomPath *) hgj_below_projections(path);

	return list_nth_int(list_nth(join->custom_private, HGJ_PATH_FACTS), fact);
}

/* Is it one that the planner wants to run on a GPU? */
bool
hgj_path_wants_device(const Path *path)
{
	return hgj_is_join_path(path) &&
		hgj_path_fact(path, HGJ_PATH_DEVICE) != HGJ_PLAN_CPU;
}

/* Is this a HashGraphAgg? */
bool
hgj_is_agg_path(const Path *path)
{
	return IsA(path, CustomPath) &&
		((const CustomPath *) path)->methods == hgj_agg_methods.path;
}

/* Is this a sequential scan of a table, possibly below a projection? */
bool
hgj_is_scan_path(const Path *path)
{
	path = hgj_below_projections(path);
	return path->pathtype == T_SeqScan && path->parent->rtekind == RTE_RELATION;
}

/* The path below an upper path that has just one, or NULL. */
const Path *
hgj_only_subpath(const Path *path)
{
	switch (nodeTag(path))
	{
		case T_AggPath:
			return ((const AggPath *) path)->subpath;
		case T_GroupPath:
			return ((const GroupPath *) path)->subpath;
		case T_SortPath:
		case T_IncrementalSortPath:
			return ((const SortPath *) path)->subpath;
		case T_GatherPath:
			return ((const GatherPath *) path)->subpath;
		case T_GatherMergePath:
			return ((const GatherMergePath *) path)->subpath;
		case T_ProjectionPath:
			return ((const ProjectionPath *) path)->subpath;
		default:
			return NULL;
	}
}

/* Of a hash clause, the operand that is this side's. */
Node *
hgj_key_of_side(const RestrictInfo *rinfo, const RelOptInfo *rel)
{
	return bms_is_subset(rinfo->left_relids, rel->relids) ?
		get_leftop(rinfo->clause) : get_rightop(rinfo->clause);
}

/* Is there a node of ours in the path, or below it in the same process, that is planned for a device? */
bool
hgj_uses_device(const Path *path)
{
	check_stack_depth();
	for (;;)
	{
		if (path == NULL)
			return false;
		path = hgj_below_projections(path);
		if (hgj_path_wants_device(path))
			return true;
		if (hgj_is_agg_path(path))
		{
			const CustomPath *agg = (const CustomPath *) path;

			if (lthird_int((List *) list_nth(agg->custom_private, HGJ_AGG_PATH_FACTS)))
				return true;
			path = linitial(agg->custom_paths);
		}
		else if (hgj_is_join_path(path))
		{
			const CustomPath *join = (const CustomPath *) path;

			if (hgj_uses_device(linitial(join->custom_paths)))
				return true;
			path = lsecond(join->custom_paths);
		}
		else if (IsA(path, HashPath) || IsA(path, MergePath) || IsA(path, NestPath))
		{
			if (hgj_uses_device(((const JoinPath *) path)->outerjoinpath))
				return true;
			path = ((const JoinPath *) path)->innerjoinpath;
		}
		else
			path = IsA(path, SubqueryScanPath) ? ((const SubqueryScanPath *) path)->subpath :
				hgj_only_subpath(path);
	}
}

/* Is it one that PostgreSQL makes for this relation? */
static bool
is_stock_path(const RelOptInfo *rel, const Path *path, bool has_children)
{
	check_stack_depth();
	switch (nodeTag(path))
	{
		case T_Path:
		case T_IndexPath:
		case T_BitmapHeapPath:
		case T_TidPath:
		case T_TidRangePath:
			return path->parent == rel;
		case T_AppendPath:
		case T_MergeAppendPath:
			return has_children || IS_DUMMY_APPEND(path);
		case T_MaterialPath:
			return is_stock_path(rel, ((const MaterialPath *) path)->subpath, has_children);
		case T_ProjectSetPath:
			return is_stock_path(rel, ((const ProjectSetPath *) path)->subpath, has_children);
		case T_ProjectionPath:
		case T_SortPath:
		case T_IncrementalSortPath:
		case T_GatherPath:
		case T_GatherMergePath:
			return is_stock_path(rel, hgj_only_subpath(path), has_children);
		default:
			return false;
	}
}

static bool
are_stock_paths(const RelOptInfo *rel, const List *paths, bool has_children)
{
	ListCell   *lc;

	foreach(lc, paths)
		if (!is_stock_path(rel, lfirst(lc), has_children))
			return false;
	return true;
}

/* Has a table, or a table with children, paths of another extension's? */
bool
hgj_has_foreign_paths(PlannerInfo *root, const RelOptInfo *rel)
{
	const RangeTblEntry *rte;

	if (!IS_SIMPLE_REL(rel) || rel->rtekind != RTE_RELATION)
		return false;
	rte = planner_rt_fetch(rel->relid, root);
	if (rte->relkind == RELKIND_FOREIGN_TABLE)
		return false;
	return !are_stock_paths(rel, rel->pathlist, rte->inh) ||
		!are_stock_paths(rel, rel->partial_pathlist, rte->inh);
}

/* Is what aggregates a node of another extension's? */
static bool
is_foreign_grouping(const RelOptInfo *grouped, const Path *path)
{
	for (; path != NULL && path->parent == grouped; path = hgj_only_subpath(path))
		if (IsA(path, CustomPath) && !hgj_is_agg_path(path))
			return true;
	return false;
}

/*
 * Has another extension put a node of its own above PostgreSQL's aggregation (to fill
 * gaps between groups, say)?  Then it expects no other aggregation beside it.
 */
bool
hgj_is_grouped_by_others(const RelOptInfo *grouped)
{
	ListCell   *lc;

	foreach(lc, grouped->pathlist)
		if (is_foreign_grouping(grouped, lfirst(lc)))
			return true;
	foreach(lc, grouped->partial_pathlist)
		if (is_foreign_grouping(grouped, lfirst(lc)))
			return true;
	return false;
}

/* What a HashGraphAgg over this path reads: the children of an Append, or the path. */
List *
hgj_agg_inputs(const Path *path)
{
	if (IsA(path, AppendPath))
		return ((const AppendPath *) path)->subpaths;
	return list_make1(unconstify(Path *, path));
}

/* The partitions that have rows, as far as the planner knows. */
List *
hgj_live_partitions(const RelOptInfo *rel)
{
	List	   *result = NIL;
	int			i = -1;

	while ((i = bms_next_member(rel->live_parts, i)) >= 0)
		if (rel->part_rels[i] != NULL && !IS_DUMMY_REL(rel->part_rels[i]))
			result = lappend(result, rel->part_rels[i]);
	return result;
}

/* The relations of a set, for a message: "a b c". */
char *
hgj_relids_names(PlannerInfo *root, Relids relids)
{
	StringInfoData buf;
	int			rti = -1;

	initStringInfo(&buf);
	relids = HGJ_BASE_RELIDS(root, relids);
	while ((rti = bms_next_member(relids, rti)) >= 0)
	{
		RangeTblEntry *rte = planner_rt_fetch(rti, root);

		appendStringInfo(&buf, "%s%s", buf.len ? " " : "",
						 rte->eref ? rte->eref->aliasname : "?");
	}
	return buf.data;
}

/* Is a clause constant for the whole run, a "One-Time Filter"? */
bool
hgj_has_one_time_filter(PlannerInfo *root, List *restrictlist)
{
	ListCell   *lc;

	if (!root->hasPseudoConstantQuals)
		return false;
	foreach(lc, restrictlist)
		if (lfirst_node(RestrictInfo, lc)->pseudoconstant)
			return true;
	return false;
}

/*
 * What costsize.c divides the rows of a partial path by: the workers, and
 * the leader as far as it is not busy with theirs.
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
