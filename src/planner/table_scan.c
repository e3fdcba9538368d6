/*-------------------------------------------------------------------------
 *
 * table_scan.c
 *	  The sequential scans of tables that nodes of ours read, beside extensions that
 *	  have something to say about a table's paths.
 *
 * PostgreSQL makes a sequential scan of every table, and drops it where an index is
 * cheaper for it.  It need not be for us, who save a good part of what it is charged.
 * But another extension may have taken the scan away because it would return other
 * rows than the table is to have (the rows of a compressed chunk stand elsewhere),
 * or because somebody has asked for an index (a hint).  What is left looks alike.
 *
 * 1. So the scan is put back, at what it costs, before other extensions see the
 *	  table's paths: set_rel_pathlist_hook is called from the library that was loaded
 *	  last to the one that was loaded first, and we act before we call the next one,
 *	  as the others call us before they act.  Whoever takes paths away then takes this
 *	  one as well, and what is in the list when joins and groups are planned is what
 *	  everybody has agreed to.  No scan is made later.
 * 2. It is put back only where a cheaper path can have pushed it out: if none is
 *	  there, somebody else has been here before us.
 * 3. And only where it may be read: where it costs a join of ours less than what is
 *	  there, or where a HashGraphAgg might take it (agg_scan.c).  PostgreSQL itself
 *	  never chooses it, being dearer than another path of the list.
 * 4. Where any path of the table is of a kind that PostgreSQL does not make for tables
 *	  (path_facts.c), a scan is not ours to choose: the path's owner may count on its
 *	  costs alone to keep the scan away.
 *
 * Memory: the planner's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "base/guc.h"
#include "catalog/pg_class.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "parser/parsetree.h"
#include "planner/planner.h"
#include "utils/float.h"

/* As add_path()'s: costs that differ by less are equal. */
#define HGJ_FUZZ	1.01

static set_rel_pathlist_hook_type previous_hook = NULL;

/* The sequential scan in the list, possibly below a projection, or NULL. */
static Path *
find_scan(const List *paths)
{
	ListCell   *lc;

	foreach(lc, paths)
		if (hgj_is_scan_path(lfirst(lc)) &&
			hgj_below_projections(lfirst(lc))->param_info == NULL)
			return lfirst(lc);
	return NULL;
}

/*
 * The sequential scan of the table that everybody has agreed to, or its partial one;
 * NULL: there is none.
 */
Path *
hgj_table_scan(PlannerInfo *root, const RelOptInfo *rel, bool partial)
{
	return hgj_has_foreign_paths(root, rel) ? NULL :
		find_scan(partial ? rel->partial_pathlist : rel->pathlist);
}

/* WHERE CURRENT OF is for a scan by TID alone, and from 18 on PostgreSQL makes no other. */
static bool
is_of_cursor(const RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, rel->baserestrictinfo)
		if (IsA(lfirst_node(RestrictInfo, lc)->clause, CurrentOfExpr))
			return true;
	return false;
}

/* The scan, as PostgreSQL makes it; NULL if there cannot be one. */
static Path *
sequential_scan(PlannerInfo *root, RelOptInfo *rel, bool partial)
{
	RangeTblEntry *rte;
	int			workers = 0;

	if (!IS_SIMPLE_REL(rel) || rel->rtekind != RTE_RELATION ||
		IS_DUMMY_REL(rel) || !bms_is_empty(rel->lateral_relids) || !enable_seqscan ||
		is_of_cursor(rel))
		return NULL;
	rte = planner_rt_fetch(rel->relid, root);
	if (rte->inh || rte->tablesample ||
		(rte->relkind != RELKIND_RELATION && rte->relkind != RELKIND_MATVIEW))
		return NULL;
	if (partial)
	{
		workers = compute_parallel_worker(rel, rel->pages, -1,
										  max_parallel_workers_per_gather);
		if (workers <= 0)
			return NULL;
	}
	return create_seqscan_path(root, rel, NULL, workers);
}

/* What the cheapest path without parameters costs; infinity: there is none. */
static Cost
cheapest_cost(const List *paths)
{
	ListCell   *lc;

	/* those that cost least come first */
	foreach(lc, paths)
		if (((const Path *) lfirst(lc))->param_info == NULL)
			return ((const Path *) lfirst(lc))->total_cost;
	return get_float8_infinity();
}

/* Step 3. */
static bool
is_wanted(PlannerInfo *root, const RelOptInfo *rel, const Path *scan, const List *paths)
{
	if (rel->rows >= HGJ_KEPT_INDEX_PART * rel->tuples)
		return true;
	return bms_membership(root->all_baserels) == BMS_MULTIPLE &&
		scan->total_cost - hgj_feed_saving(root, scan, hgj_source != HGJ_SOURCE_TUPLES) <
		cheapest_cost(paths);
}

/* Could a table of the query be large enough for nodes of ours, as far as pages go? */
static bool
may_be_ours(const PlannerInfo *root)
{
	return hgj_enabled &&
		(hgj_force || root->total_table_pages * MaxHeapTuplesPerPage >= hgj_min_rows);
}

/* Steps 1 to 3, for the relation's paths, or its partial ones. */
static List *
with_scan(PlannerInfo *root, RelOptInfo *rel, List *paths, bool partial)
{
	Path	   *scan;
	int			place = 0;
	ListCell   *lc;

	if (paths == NIL || find_scan(paths) != NULL ||
		(scan = sequential_scan(root, rel, partial)) == NULL ||
		cheapest_cost(paths) > scan->total_cost * HGJ_FUZZ ||
		!is_wanted(root, rel, scan, paths))
		return paths;
	/* the list is sorted, and the scan is not disabled */
	foreach(lc, paths)
	{
		const Path *path = lfirst(lc);

		if (hgj_disabled_nodes(path) > 0 || path->total_cost > scan->total_cost)
			break;
		place++;
	}
	return list_insert_nth(paths, place, scan);
}

/*
 * For messages, once the relation's paths are what they are to be: would there be a
 * sequential scan for us to read, if another extension had not replaced it?
 */
bool
hgj_scan_is_replaced(PlannerInfo *root, RelOptInfo *rel)
{
	const Path *scan;

	if (!may_be_ours(root) || hgj_table_scan(root, rel, false) != NULL ||
		(scan = sequential_scan(root, rel, false)) == NULL)
		return false;
	return hgj_has_foreign_paths(root, rel) || is_wanted(root, rel, scan, rel->pathlist);
}

static void
hgj_rel_pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	if (may_be_ours(root) && rel->rtekind == RTE_RELATION && !rte->inh &&
		!hgj_has_foreign_paths(root, rel))
	{
		rel->pathlist = with_scan(root, rel, rel->pathlist, false);
		rel->partial_pathlist = with_scan(root, rel, rel->partial_pathlist, true);
	}
	if (may_be_ours(root))
		hgj_estimate_anti_joins(root, rel);
	if (previous_hook)
		previous_hook(root, rel, rti, rte);
}

/* Chain into the planner.  Call once per process, from _PG_init. */
void
hgj_install_scan_hook(void)
{
	previous_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = hgj_rel_pathlist;
}
