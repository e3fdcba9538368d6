/*-------------------------------------------------------------------------
 *
 * agg_scan.c
 *	  Which paths a HashGraphAgg may have below it.
 *
 * 1. Every join of ours, without parameters.
 * 2. A sequential scan, where the input is one heap table whose rows can be read
 *	  page by page (agg/agg_feed.c), and nobody else has replaced it (table_scan.c,
 *	  which also says what becomes of the one that PostgreSQL has dropped because an
 *	  index is cheaper for it: to read all of a table through an index is cheaper only
 *	  if rows cost what they cost PostgreSQL).
 * 3. An Append of such joins and scans: partitions, children, branches of UNION ALL.
 *	  One of a partitioned table's scans is made where PostgreSQL's has others.
 * 4. A subquery whose topmost node returns batches: the groups of a HashGraphAgg, or its part
 *	  of them, or the rows of a join of ours, where PostgreSQL has to leave the subquery as it is.
 * 5. But where an index finds a small part of the rows, the index is used: its
 *	  pages are charged as if each came from a disk, ours are in caches, or need not
 *	  be read at all.  So is it where enable_seqscan is off.  Nor is a table worth it
 *	  that is smaller than hashgraph_join.min_rows.
 *
 * Memory: the planner's context.  No locks: the planner has locked the table.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/sysattr.h"
#include "access/table.h"
#include "access/tableam.h"
#include "base/guc.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "parser/parsetree.h"
#include "planner/agg_path.h"
#include "planner/planner.h"
#include "utils/rel.h"

static bool
is_heap(Oid relid)
{
	Relation	rel = table_open(relid, NoLock);
	bool		result = rel->rd_tableam == GetHeapamTableAmRoutine();

	table_close(rel, NoLock);
	return result;
}

/* Can the scan's target list be computed of columns that are read by pages? */
static bool
reads_columns_only(const RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, rel->reltarget->exprs)
	{
		Node	   *expr = lfirst(lc);
		Bitmapset  *attnos = NULL;
		int			member = -1;

		if (contain_subplans(expr) || expression_returns_set(expr))
			return false;
		pull_varattnos(expr, rel->relid, &attnos);
		while ((member = bms_next_member(attnos, member)) >= 0)
		{
			int			attno = member + FirstLowInvalidHeapAttributeNumber;

			if (attno <= 0 &&
				!(IsA(expr, Var) && (attno == SelfItemPointerAttributeNumber ||
									 attno == TableOidAttributeNumber)))
				return false;
		}
	}
	return true;
}

/*
 * Step 5: does PostgreSQL find a small part of the rows by an index, or find them by one
 * because it is told to?
 */
static bool
index_is_better(PlannerInfo *root, const RelOptInfo *rel)
{
	const Path *path = rel->cheapest_total_path;
	double		kept;

	if (path == NULL)
		return false;
	path = hgj_below_projections(path);
	while (IsA(path, GatherPath) || IsA(path, GatherMergePath))
		path = hgj_below_projections(IsA(path, GatherPath) ?
									 ((const GatherPath *) path)->subpath :
									 ((const GatherMergePath *) path)->subpath);
	if (path->pathtype == T_SeqScan)
		return false;
	if (!enable_seqscan)
		return true;
	if (rel->rows >= HGJ_INDEX_PART * rel->tuples)
		return false;
	kept = hgj_part_kept(root, rel);
	return rel->rows < rel->tuples *
		(kept * HGJ_KEPT_INDEX_PART + (1 - kept) * HGJ_INDEX_PART);
}

/* Why a HashGraphAgg does not read the table page by page. */
static HgjAggDecline
table_decline(PlannerInfo *root, const RelOptInfo *rel)
{
	const RangeTblEntry *rte = planner_rt_fetch(rel->relid, root);

	if (rte->inh)
		return HGJ_AGG_DECLINE_CHILDREN;
	if (rte->tablesample)
		return HGJ_AGG_DECLINE_SAMPLE;
	if ((rte->relkind != RELKIND_RELATION && rte->relkind != RELKIND_MATVIEW) ||
		!is_heap(rte->relid))
		return HGJ_AGG_DECLINE_NOT_HEAP;
	if (hgj_has_one_time_filter(root, rel->baserestrictinfo))
		return HGJ_AGG_DECLINE_ONE_TIME;
	if (!reads_columns_only(rel))
		return HGJ_AGG_DECLINE_SCAN_COLUMN;
	return HGJ_AGG_DECLINE_NOTHING;
}

/* The same where it is all there is to aggregate. */
static HgjAggDecline
scan_decline(PlannerInfo *root, const RelOptInfo *rel)
{
	HgjAggDecline decline;

	/* the most frequent reason, and the one that is known at once */
	if (rel->tuples < hgj_min_rows && !hgj_force &&
		!planner_rt_fetch(rel->relid, root)->inh)
		return HGJ_AGG_DECLINE_FEW_ROWS;
	decline = table_decline(root, rel);
	if (decline != HGJ_AGG_DECLINE_NOTHING)
		return decline;
	if (index_is_better(root, rel))
		return HGJ_AGG_DECLINE_INDEX;
	return HGJ_AGG_DECLINE_NOTHING;
}

/* Is every child of the Append one that could be below a HashGraphAgg by itself? */
static bool
append_fits(PlannerInfo *root, const AppendPath *append)
{
	double		tuples = 0;
	ListCell   *lc;

	foreach(lc, append->subpaths)
	{
		const Path *path = lfirst(lc);

		if (hgj_is_scan_path(path) && hgj_aggregate_scans &&
			!hgj_has_foreign_paths(root, path->parent) &&
			table_decline(root, path->parent) == HGJ_AGG_DECLINE_NOTHING)
			tuples += path->parent->tuples;
		else if (hgj_is_join_path(path))
			tuples = Max(tuples, hgj_min_rows);
		else
			return false;
	}
	return append->path.param_info == NULL && append->subpaths != NIL &&
		(tuples >= hgj_min_rows || hgj_force);
}

/*
 * The sequential scans of all leaves of a partitioned table; or why they are not of
 * all.
 */
static HgjAggDecline
scan_leaves(PlannerInfo *root, const RelOptInfo *rel, List **scans)
{
	ListCell   *lc;

	check_stack_depth();
	foreach(lc, hgj_live_partitions(rel))
	{
		RelOptInfo *leaf = lfirst(lc);
		HgjAggDecline decline = HGJ_AGG_DECLINE_NOTHING;
		Path	   *scan;

		if (IS_PARTITIONED_REL(leaf))
			decline = scan_leaves(root, leaf, scans);
		else if (table_decline(root, leaf) != HGJ_AGG_DECLINE_NOTHING ||
				 index_is_better(root, leaf))
			decline = HGJ_AGG_DECLINE_CHILDREN;
		else if ((scan = hgj_table_scan(root, leaf, false)) != NULL)
			*scans = lappend(*scans, scan);
		else
			decline = hgj_scan_is_replaced(root, leaf) ? HGJ_AGG_DECLINE_REPLACED :
				HGJ_AGG_DECLINE_CHILDREN;
		if (decline != HGJ_AGG_DECLINE_NOTHING)
			return decline;
	}
	return HGJ_AGG_DECLINE_NOTHING;
}

/*
 * An Append of such scans, where PostgreSQL reads partitions by indexes; unless another
 * extension has replaced what PostgreSQL makes of the partitions.
 */
static Path *
append_of(PlannerInfo *root, RelOptInfo *rel, HgjAggDecline *decline)
{
	List	   *scans = NIL;
	AppendPath *append;

	*decline = HGJ_AGG_DECLINE_CHILDREN;
	if (!IS_PARTITIONED_REL(rel))
		return NULL;
	if (hgj_has_foreign_paths(root, rel))
		*decline = HGJ_AGG_DECLINE_REPLACED;
	else
		*decline = scan_leaves(root, rel, &scans);
	if (*decline != HGJ_AGG_DECLINE_NOTHING || scans == NIL)
		return NULL;
	append = create_append_path(root, rel, scans, NIL, NIL, NULL, 0, false, -1);
	if (append_fits(root, append))
		return &append->path;
	*decline = HGJ_AGG_DECLINE_CHILDREN;
	return NULL;
}

/* Is it a subquery whose rows come in batches? */
static bool
returns_batches(const Path *path)
{
	const Path *below;

	if (!IsA(path, SubqueryScanPath) || path->param_info != NULL ||
		path->parent->baserestrictinfo != NIL)
		return false;
	below = ((const SubqueryScanPath *) path)->subpath;
	return hgj_is_agg_path(hgj_below_projections(below)) || hgj_is_join_path(below);
}

/*
 * The paths of the relation, or its partial ones, that a HashGraphAgg may have
 * below it; NIL: there is none, and *decline says why if there could be.
 */
List *
hgj_paths_to_aggregate(PlannerInfo *root, RelOptInfo *rel, bool partial,
					   HgjAggDecline *decline)
{
	List	   *result = NIL;
	Path	   *scan;
	ListCell   *lc;

	*decline = HGJ_AGG_DECLINE_NOTHING;
	foreach(lc, partial ? rel->partial_pathlist : rel->pathlist)
	{
		Path	   *path = lfirst(lc);

		if ((hgj_is_join_path(path) && path->param_info == NULL) || returns_batches(path) ||
			(IsA(path, AppendPath) && append_fits(root, (AppendPath *) path)))
			result = lappend(result, path);
	}
	if (result != NIL || !hgj_aggregate_scans || !IS_SIMPLE_REL(rel) ||
		rel->rtekind != RTE_RELATION || IS_DUMMY_REL(rel))
		return result;
	*decline = scan_decline(root, rel);
	if (*decline == HGJ_AGG_DECLINE_NOTHING)
	{
		scan = hgj_table_scan(root, rel, partial);
		if (scan == NULL && hgj_scan_is_replaced(root, rel))
			*decline = HGJ_AGG_DECLINE_REPLACED;
	}
	else if (*decline == HGJ_AGG_DECLINE_CHILDREN && !partial)
		scan = append_of(root, rel, decline);
	else
		return NIL;
	return scan ? list_make1(scan) : NIL;
}
