/*-------------------------------------------------------------------------
 *
 * join_path.c
 *	  Offer a HashGraphJoin path for every join that can be one.
 *
 * PostgreSQL calls set_join_pathlist_hook for each ordered pair of input
 * relations of each join relation, after its own join methods.
 *
 * 1. Collect the clauses that can be keys, as hash_inner_and_outer() of
 *	  joinpath.c does, less those whose operator is not strict.
 * 2. Decline, with a reason at DEBUG1, when there is none, when the join type
 *	  is one that wants a unique-ified side, or when both sides are small.
 * 3. Pair the cheapest outer and inner paths, parameterised ones included; the
 *	  inner side becomes the build side.  Both orders of an inner join, and the
 *	  left and right forms of an outer join, come as calls of their own.
 * 4. Under hashgraph_join.force, scale our costs down so far that only another
 *	  path of ours can win, and take no parallel path beside them.
 *
 * Memory: everything is palloc'd in the planner's context and dies with it.
 * No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "exec/keys.h"
#include "guc.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "parser/parsetree.h"
#include "planner/planner.h"
#include "utils/lsyscache.h"

/* What force multiplies costs by: small, yet order-preserving. */
#define HGJ_FORCE_DISCOUNT	1e-6

static set_join_pathlist_hook_type previous_hook = NULL;

static const char *const decline_text[] = {
	[HGJ_DECLINE_NOTHING] = "not declined",
	[HGJ_DECLINE_JOIN_TYPE] = "the join type is not supported in this order",
	[HGJ_DECLINE_NO_HASH_CLAUSE] = "no join clause can be a hash key",
	[HGJ_DECLINE_FEW_ROWS] = "both sides are smaller than hashgraph_join.min_rows",
	[HGJ_DECLINE_PARAMETERIZED] = "one side is parameterized by the other"
};

/* Can the executor run this join type with the hash table on the inner side? */
static bool
join_type_supported(JoinType jointype)
{
	switch (jointype)
	{
		case JOIN_INNER:
		case JOIN_LEFT:
		case JOIN_RIGHT:
		case JOIN_FULL:
		case JOIN_SEMI:
		case JOIN_ANTI:
#ifdef HGJ_HAVE_RIGHT_ANTI
		case JOIN_RIGHT_ANTI:
#endif
#ifdef HGJ_HAVE_RIGHT_SEMI
		case JOIN_RIGHT_SEMI:
#endif
			return true;
		default:
			return false;
	}
}

/*
 * Does the clause compare the outer relation with the inner one?  Sets
 * *outer_is_left when it does.
 */
static bool
clause_sides(RestrictInfo *rinfo, RelOptInfo *outerrel, RelOptInfo *innerrel,
			 bool *outer_is_left)
{
	if (bms_is_subset(rinfo->left_relids, outerrel->relids) &&
		bms_is_subset(rinfo->right_relids, innerrel->relids))
	{
		*outer_is_left = true;
		return true;
	}
	if (bms_is_subset(rinfo->left_relids, innerrel->relids) &&
		bms_is_subset(rinfo->right_relids, outerrel->relids))
	{
		*outer_is_left = false;
		return true;
	}
	return false;
}

/* The clauses of the restriction list that will be key columns. */
static List *
collect_hash_clauses(List *restrictlist, RelOptInfo *joinrel,
					 RelOptInfo *outerrel, RelOptInfo *innerrel,
					 JoinType jointype)
{
	List	   *result = NIL;
	uint32		words = 0;
	ListCell   *lc;

	foreach(lc, restrictlist)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		HgjKeyPair	pair;
		bool		outer_is_left;

		/* an outer join is keyed by its own clauses only */
		if (IS_OUTER_JOIN(jointype) &&
			RINFO_IS_PUSHED_DOWN(rinfo, joinrel->relids))
			continue;
		if (!rinfo->can_join || !OidIsValid(rinfo->hashjoinoperator))
			continue;
		if (!clause_sides(rinfo, outerrel, innerrel, &outer_is_left))
			continue;
		if (!hgj_key_pair((OpExpr *) rinfo->clause, outer_is_left, &pair))
			continue;
		/* past what an engine takes, the rest is residual */
		if (words + pair.nwords > HGJ_MAX_KEY_WORDS)
			continue;
		words += pair.nwords;
		result = lappend(result, rinfo);
	}
	return result;
}

/* Does the path take parameters from `rel`, or from rel's partitioned parent? */
static bool
needs_rel(Path *path, RelOptInfo *rel)
{
	return bms_overlap(PATH_REQ_OUTER(path), rel->relids) ||
		bms_overlap(PATH_REQ_OUTER(path), rel->top_parent_relids);
}

/*
 * Make and add one path.  See try_hashjoin_path() about required_outer.
 */
static void
try_path(PlannerInfo *root, RelOptInfo *joinrel, Path *outer, Path *inner,
		 JoinType jointype, List *hashclauses, JoinPathExtraData *extra)
{
	Relids		required_outer = calc_non_nestloop_required_outer(outer, inner);
	List	   *restrictlist = extra->restrictlist;
	CustomPath *path;

	if (required_outer && !bms_overlap(required_outer, extra->param_source_rels))
		return;

	path = makeNode(CustomPath);
	path->path.pathtype = T_CustomScan;
	path->path.parent = joinrel;
	path->path.pathtarget = joinrel->reltarget;
	path->path.param_info =
		get_joinrel_parampathinfo(root, joinrel, outer, inner, extra->sjinfo,
								  required_outer, &restrictlist);
	path->path.parallel_aware = false;
	path->path.parallel_safe = joinrel->consider_parallel &&
		outer->parallel_safe && inner->parallel_safe;
	path->path.parallel_workers = 0;
	path->path.pathkeys = NIL;
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->custom_paths = list_make2(outer, inner);
	path->custom_private = list_make3(restrictlist, hashclauses,
									  list_make2_int((int) jointype,
													 extra->inner_unique));
	path->methods = &hgj_path_methods;

	hgj_cost_join(root, path, jointype, extra->inner_unique, restrictlist,
				  hashclauses, &extra->semifactors);
	if (hgj_force)
	{
		path->path.startup_cost *= HGJ_FORCE_DISCOUNT;
		path->path.total_cost *= HGJ_FORCE_DISCOUNT;
	}
	add_path(joinrel, (Path *) path);
}

/*
 * Pair up the paths of both sides as hash_inner_and_outer() does.  Returns
 * false when each side needs the other.
 */
static bool
add_paths(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
		  RelOptInfo *innerrel, JoinType jointype, List *hashclauses,
		  JoinPathExtraData *extra)
{
	Path	   *startup_outer = outerrel->cheapest_startup_path;
	Path	   *total_outer = outerrel->cheapest_total_path;
	Path	   *total_inner = innerrel->cheapest_total_path;
	ListCell   *lc1;
	ListCell   *lc2;

	if (needs_rel(total_outer, innerrel) ||
		needs_rel(total_inner, outerrel))
		return false;

	if (startup_outer != NULL && startup_outer != total_outer)
		try_path(root, joinrel, startup_outer, total_inner, jointype,
				 hashclauses, extra);

	foreach(lc1, outerrel->cheapest_parameterized_paths)
	{
		Path	   *outer = (Path *) lfirst(lc1);

		if (needs_rel(outer, innerrel))
			continue;
		foreach(lc2, innerrel->cheapest_parameterized_paths)
		{
			Path	   *inner = (Path *) lfirst(lc2);

			if (needs_rel(inner, outerrel))
				continue;
			try_path(root, joinrel, outer, inner, jointype, hashclauses, extra);
		}
	}
	return true;
}

/* Steps 1 to 4 of the head comment; says why there is no path. */
static HgjDecline
consider_join(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
			  RelOptInfo *innerrel, JoinType jointype,
			  JoinPathExtraData *extra)
{
	List	   *hashclauses;

	if (!join_type_supported(jointype))
		return HGJ_DECLINE_JOIN_TYPE;

	/* the cheapest test that turns most joins of small queries away */
	if (!hgj_force &&
		outerrel->rows < hgj_min_rows && innerrel->rows < hgj_min_rows)
		return HGJ_DECLINE_FEW_ROWS;

	hashclauses = collect_hash_clauses(extra->restrictlist, joinrel, outerrel,
									   innerrel, jointype);
	if (hashclauses == NIL)
		return HGJ_DECLINE_NO_HASH_CLAUSE;

	if (!add_paths(root, joinrel, outerrel, innerrel, jointype, hashclauses,
				   extra))
		return HGJ_DECLINE_PARAMETERIZED;

	/* force is about this node, which has no parallel path yet */
	if (hgj_force)
		joinrel->partial_pathlist = NIL;
	hgj_require_note_join();
	return HGJ_DECLINE_NOTHING;
}

/* The relations of a set, for a message: "a b c". */
static char *
relids_names(PlannerInfo *root, Relids relids)
{
	StringInfoData buf;
	int			rti = -1;

	initStringInfo(&buf);
	while ((rti = bms_next_member(relids, rti)) >= 0)
	{
		RangeTblEntry *rte = planner_rt_fetch(rti, root);

		appendStringInfo(&buf, "%s%s", buf.len ? " " : "",
						 rte->eref ? rte->eref->aliasname : "?");
	}
	return buf.data;
}

static void
hgj_join_pathlist(PlannerInfo *root, RelOptInfo *joinrel,
				  RelOptInfo *outerrel, RelOptInfo *innerrel,
				  JoinType jointype, JoinPathExtraData *extra)
{
	HgjDecline	decline;

	if (previous_hook)
		previous_hook(root, joinrel, outerrel, innerrel, jointype, extra);

	/* enable_hashjoin steers PostgreSQL's hash joins, and therefore ours */
	if (!hgj_enabled || !enable_hashjoin)
		return;

	decline = consider_join(root, joinrel, outerrel, innerrel, jointype, extra);
	if (decline != HGJ_DECLINE_NOTHING && message_level_is_interesting(DEBUG1))
		ereport(DEBUG1,
				(errmsg_internal("hashgraph_join: declined join of (%s) with (%s): %s",
								 relids_names(root, outerrel->relids),
								 relids_names(root, innerrel->relids),
								 decline_text[decline])));
}

/* Chain into the planner.  Call once per process, from _PG_init. */
void
hgj_install_planner_hooks(void)
{
	previous_hook = set_join_pathlist_hook;
	set_join_pathlist_hook = hgj_join_pathlist;
	hgj_install_require_hook();
}
