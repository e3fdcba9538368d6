/*-------------------------------------------------------------------------
 *
 * join_path.c
 *	  Offer a HashGraphJoin path for every join that can be one.
 *
 * PostgreSQL calls set_join_pathlist_hook for each ordered pair of input
 * relations of each join relation, after its own join methods.
 *
 * 1. Collect the clauses that can be keys (join_keys.c).
 * 2. Decline, with a reason at DEBUG1, when there is none, when the join type
 *	  is one that wants a unique-ified side, or when both sides are small and the
 *	  outer one is no join of ours.  Leave at once, which is most of what planning a
 *	  small query takes, when PostgreSQL has a path already that is cheaper than any of
 *	  ours could be (stock_cost.c), unless somebody wants to know the reason.
 * 3. Pair the cheapest outer and inner paths, parameterised ones included; the
 *	  inner side becomes the build side.  Both orders of an inner join, and the
 *	  left and right forms of an outer join, come as calls of their own.
 * 4. A semi or anti join may build with either side: the one whose rows it returns
 *	  gets match bits, and wants to be the smaller one by far.
 * 5. For parallel plans, pair the cheapest partial outer path with a complete
 *	  inner one, which every worker reads and builds for itself, and with a partial
 *	  one, of which they build one table together (join/shared_build.c).
 * 6. A join of PostgreSQL's that reads slots from a join of ours is charged for
 *	  them when it is compared with one of ours in its place; so is one whose table
 *	  every worker builds.
 * 7. Nested loops over an index that are dearer than ours only because their pages
 *	  are charged as if they were not cached take the place of ours (lookup_cost.c).
 * 8. The chain that would cost least in a pipeline on a GPU is kept beside the relation's
 *	  paths (pipeline_chains.c).
 * 9. Under hashgraph_join.force, scale our costs down so far that no other path
 *	  of this relation can push them out, then drop the others.
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
#include "optimizer/planmain.h"
#include "parser/parsetree.h"
#include "planner/declines.h"
#include "planner/planner.h"

static set_join_pathlist_hook_type previous_hook = NULL;

/* Can the executor run this join type with the hash table on the inner side? */
static bool
join_type_supported(JoinType jointype)
{
	switch ((int) jointype)
	{
		case JOIN_INNER:
		case JOIN_LEFT:
		case JOIN_RIGHT:
		case JOIN_FULL:
		case JOIN_SEMI:
		case JOIN_ANTI:
		case JOIN_RIGHT_ANTI:
		case JOIN_RIGHT_SEMI:
			return true;
		default:
			return false;
	}
}

/*
 * Step 4: is that a join that a device does not do, as its pipelines keep no match
 * bits?  The other order is there for it.
 */
static bool
not_for_device(JoinType jointype)
{
	return hgj_engine == HGJ_ENGINE_CUDA &&
		(jointype == JOIN_RIGHT_SEMI || jointype == JOIN_RIGHT_ANTI);
}

/* Does the path take parameters from `rel`, or from rel's partitioned parent? */
static bool
needs_rel(Path *path, RelOptInfo *rel)
{
	return bms_overlap(PATH_REQ_OUTER(path), rel->relids) ||
		bms_overlap(PATH_REQ_OUTER(path), rel->top_parent_relids);
}

static int
rounded(Cost cost)
{
	return (int) Max(Min(cost, (double) INT_MAX), (double) INT_MIN);
}

/* An IntList of HgjPathFact. */
static List *
facts_of(const HgjJoinCosts *costs, const HgjPairCosts *pair, bool emits)
{
	List	   *facts = list_make5_int((int) costs->jointype, costs->inner_unique,
									   pair->device ? HGJ_PLAN_DEVICE : HGJ_PLAN_CPU,
									   rounded(pair->alone),
									   rounded(pair->in_pipeline));

	facts = lappend_int(facts, costs->outer_in_batches);
	facts = lappend_int(facts, emits);
	facts = lappend_int(facts, costs->emitted);
	return lappend_int(facts, costs->shared);
}

/* Of a join of the two: under hashgraph_join.force they count as little as costs. */
static int
disabled_nodes(const Path *outer, const Path *inner)
{
	return hgj_force ? 0 : hgj_disabled_nodes(outer) + hgj_disabled_nodes(inner);
}

/*
 * A path of ours without its costs: which rows it returns is up to the caller,
 * too.  restrictlist holds the clauses that this path has to check.
 */
static CustomPath *
make_path(RelOptInfo *joinrel, Path *outer, Path *inner,
		  const HgjJoinCosts *costs, const HgjPairCosts *pair,
		  List *restrictlist, bool emits)
{
	CustomPath *path = makeNode(CustomPath);

	path->path.pathtype = T_CustomScan;
	path->path.parent = joinrel;
	path->path.pathtarget = joinrel->reltarget;
	path->path.parallel_safe = joinrel->consider_parallel &&
		outer->parallel_safe && inner->parallel_safe;
	path->path.pathkeys = NIL;
	hgj_set_disabled_nodes(&path->path, disabled_nodes(outer, inner));
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->custom_paths = list_make2(outer, inner);
	path->custom_private = list_make3(restrictlist, costs->hashclauses,
									  facts_of(costs, pair, emits));
	path->methods = &hgj_path_methods;
	return path;
}

/*
 * The costs of the pair, as the rest of the planner is to see them, without those
 * of the rows that are returned.
 */
static void
pair_costs(PlannerInfo *root, const HgjJoinCosts *costs, Path *outer,
		   Path *inner, double rows, HgjPairCosts *pair)
{
	hgj_cost_join(root, costs, outer, inner, rows, pair);
	if (hgj_force)
	{
		pair->startup *= HGJ_FORCE_DISCOUNT;
		pair->total *= HGJ_FORCE_DISCOUNT;
	}
}

static void
set_costs(CustomPath *path, double rows, const HgjPairCosts *pair)
{
	QualCost   *target = &path->path.pathtarget->cost;

	path->path.rows = rows;
	path->path.startup_cost = pair->startup + target->startup;
	path->path.total_cost = pair->total + target->startup +
		target->per_tuple * rows + hgj_emission_cost(&path->path);
}

/*
 * Make and add one path, unless a better one is there already.  See
 * try_hashjoin_path() about required_outer.
 */
static void
try_path(PlannerInfo *root, RelOptInfo *joinrel, Path *outer, Path *inner,
		 const HgjJoinCosts *costs, JoinPathExtraData *extra)
{
	Relids		required_outer = calc_non_nestloop_required_outer(outer, inner);
	List	   *restrictlist = extra->restrictlist;
	ParamPathInfo *param_info;
	CustomPath *path;
	HgjPairCosts pair;

	if (HGJ_NEEDS_JOIN(outer, extra->sjinfo) || HGJ_NEEDS_JOIN(inner, extra->sjinfo) ||
		(required_outer && !bms_overlap(required_outer, extra->param_source_rels)))
		return;
	pair_costs(root, costs, outer, inner,
			   required_outer ? 1 : joinrel->rows, &pair);
	if (!hgj_is_join_path(outer) && !hgj_is_join_path(inner) &&
		!hgj_add_path_precheck(joinrel, disabled_nodes(outer, inner), pair.startup,
							   pair.total, NIL, required_outer))
		return;

	param_info = get_joinrel_parampathinfo(root, joinrel, outer, inner,
										   extra->sjinfo, required_outer,
										   &restrictlist);
	path = make_path(joinrel, outer, inner, costs, &pair, restrictlist,
					 costs->emits);
	path->path.param_info = param_info;
	set_costs(path, param_info ? param_info->ppi_rows : joinrel->rows, &pair);
	if (!hgj_force && hgj_lookups_are_better(root, joinrel, &path->path))
		return;
	joinrel->pathlist = hgj_without_undercharged(root, joinrel->pathlist, path);
	add_path(joinrel, (Path *) path);
}

/* Step 5: may the join have partial paths at all? */
static bool
may_be_partial(const RelOptInfo *joinrel, const RelOptInfo *outerrel)
{
	return joinrel->consider_parallel && outerrel->partial_pathlist != NIL &&
		bms_is_empty(joinrel->lateral_relids);
}

/*
 * Step 5.  Workers are charged for once.  The path says that it is aware of being parallel to get shared memory, in
 * which EXPLAIN ANALYZE finds what workers have done (join/parallel.c), at least.
 */
static void
add_partial_pair(PlannerInfo *root, RelOptInfo *joinrel, Path *outer, Path *inner,
				 const HgjJoinCosts *costs, JoinPathExtraData *extra)
{
	double		rows = clamp_row_est(joinrel->rows / hgj_parallel_divisor(outer));
	HgjPairCosts pair;
	CustomPath *path;
	Cost		workers;

	pair_costs(root, costs, outer, inner, rows, &pair);
	path = make_path(joinrel, outer, inner, costs, &pair, extra->restrictlist,
					 costs->partial_emits);
	path->path.parallel_aware = true;
	path->path.parallel_workers = outer->parallel_workers;
	workers = hgj_worker_charge(root, &path->path) - hgj_workers_charged(root, outer) -
		(costs->shared ? hgj_workers_charged(root, inner) : 0);
	pair.startup += workers;
	pair.total += workers;
	set_costs(path, rows, &pair);
	if (!hgj_force && hgj_lookups_are_better(root, joinrel, &path->path))
		return;
	joinrel->partial_pathlist =
		hgj_without_undercharged(root, joinrel->partial_pathlist, path);
	add_partial_path(joinrel, (Path *) path);
}

/*
 * Step 5: the cheapest partial outer path with an inner one of which every
 * worker reads all.  As in hash_inner_and_outer(), join types that return
 * unmatched inner rows are out, because no worker alone knows which those are,
 * and so is everything parameterised.
 */
static void
try_private_build(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
				  Path *inner, const HgjJoinCosts *costs,
				  JoinPathExtraData *extra)
{
	Path	   *outer;

	if (!may_be_partial(joinrel, outerrel))
		return;
	if (costs->jointype != JOIN_INNER && costs->jointype != JOIN_LEFT &&
		costs->jointype != JOIN_SEMI && costs->jointype != JOIN_ANTI)
		return;

	outer = hgj_cheapest_fed(root, outerrel, costs->outer_in_batches, true).path;
	if (inner && !inner->parallel_safe)
		inner = get_cheapest_parallel_safe_total_inner(inner->parent->pathlist);
	if (outer && inner && bms_is_empty(PATH_REQ_OUTER(inner)))
		add_partial_pair(root, joinrel, outer, inner, costs, extra);
}

/*
 * Step 5: the cheapest partial paths of both sides, for every join type.  Not on a
 * device, nor, unless it is asked for, if their memory were too small for the build
 * side.
 */
static bool
try_shared_build(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
				 RelOptInfo *innerrel, const HgjJoinCosts *costs,
				 JoinPathExtraData *extra)
{
	HgjJoinCosts shared = *costs;
	Path	   *outer;
	Path	   *inner;

	if (!may_be_partial(joinrel, outerrel) || innerrel->partial_pathlist == NIL ||
		hgj_parallel_build == HGJ_PARALLEL_PRIVATE ||
		hgj_engine == HGJ_ENGINE_CUDA)
		return false;
	shared.outer = hgj_cheapest_fed(root, outerrel, costs->outer_in_batches, true);
	shared.inner = hgj_cheapest_fed(root, innerrel, costs->inner_in_batches, true);
	outer = shared.outer.path;
	inner = shared.inner.path;
	if (outer == NULL || inner == NULL ||
		(hgj_parallel_build != HGJ_PARALLEL_SHARED && !hgj_fits_shared(outer, inner)))
		return false;
	shared.shared = true;
	add_partial_pair(root, joinrel, outer, inner, &shared, extra);
	return true;
}

/*
 * Step 2: would complete paths of ours change nothing?  Those with parameters have to
 * be tried all the same.
 */
static bool
too_dear(const RelOptInfo *joinrel, const JoinPathExtraData *extra)
{
	return bms_is_empty(extra->param_source_rels) &&
		hgj_ours_are_too_dear(joinrel, hgj_least_startup());
}

/* Step 3. */
static void
try_complete_paths(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
				   RelOptInfo *innerrel, const HgjJoinCosts *costs,
				   JoinPathExtraData *extra)
{
	Path	   *startup_outer = outerrel->cheapest_startup_path;
	Path	   *total_outer = outerrel->cheapest_total_path;
	Path	   *total_inner = innerrel->cheapest_total_path;
	ListCell   *lc1;
	ListCell   *lc2;

	if (startup_outer != NULL && startup_outer != total_outer &&
		!needs_rel(startup_outer, innerrel))
		try_path(root, joinrel, startup_outer, total_inner, costs, extra);

	/* those that cost us least may be others than cost their relations least */
	if (costs->outer.path && costs->inner.path &&
		(costs->outer.path != total_outer || costs->inner.path != total_inner))
		try_path(root, joinrel, costs->outer.path, costs->inner.path, costs, extra);

	foreach(lc1, outerrel->cheapest_parameterized_paths)
	{
		Path	   *outer = (Path *) lfirst(lc1);

		if (needs_rel(outer, innerrel))
			continue;
		foreach(lc2, innerrel->cheapest_parameterized_paths)
		{
			Path	   *inner = (Path *) lfirst(lc2);

			if (!needs_rel(inner, outerrel))
				try_path(root, joinrel, outer, inner, costs, extra);
		}
	}
}

/* Step 8. */
static void
try_chain(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
		  const HgjJoinCosts *costs, JoinPathExtraData *extra)
{
	Path	   *outer = hgj_has_chains(root) ? hgj_chain_of(root, outerrel) : NULL;
	Path	   *inner = costs->inner.path;
	HgjPairCosts pair;
	CustomPath *path;

	if (outer == NULL || inner == NULL || PATH_REQ_OUTER(inner) != NULL ||
		HGJ_NEEDS_JOIN(outer, extra->sjinfo) || HGJ_NEEDS_JOIN(inner, extra->sjinfo) ||
		!bms_is_empty(joinrel->lateral_relids))
		return;
	pair_costs(root, costs, outer, inner, joinrel->rows, &pair);
	path = make_path(joinrel, outer, inner, costs, &pair, extra->restrictlist, costs->emits);
	set_costs(path, joinrel->rows, &pair);
	hgj_keep_chain(root, outerrel, &path->path);
}

/*
 * How much of the outer side is read?  The factors of a right form that PostgreSQL offers
 * by itself are not there.
 */
static double
part_read(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
		  RelOptInfo *innerrel, const HgjJoinCosts *costs, JoinPathExtraData *extra)
{
	bool		anti = costs->jointype == JOIN_RIGHT_ANTI;
	SemiAntiJoinFactors factors = extra->semifactors;

	if (!anti && costs->jointype != JOIN_RIGHT_SEMI)
		return 1;
	if (anti ? !HGJ_OFFER_RIGHT_ANTI : !HGJ_OFFER_RIGHT_SEMI)
		compute_semi_anti_join_factors(root, joinrel, innerrel, outerrel,
									   anti ? JOIN_ANTI : JOIN_SEMI, extra->sjinfo,
									   extra->restrictlist, &factors);
	return hgj_part_read(root, costs, outerrel, innerrel, &factors);
}

/*
 * Pair up the paths of both sides as hash_inner_and_outer() does.  Returns
 * false when each side needs the other.
 */
static bool
add_paths(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
		  RelOptInfo *innerrel, JoinType jointype, HgjJoinCosts *costs,
		  JoinPathExtraData *extra)
{
	if (needs_rel(outerrel->cheapest_total_path, innerrel) ||
		needs_rel(innerrel->cheapest_total_path, outerrel))
		return false;

	costs->jointype = jointype;
	costs->one_per_outer = jointype == JOIN_SEMI || jointype == JOIN_ANTI ||
		extra->inner_unique;
	costs->semifactors = &extra->semifactors;
	costs->emits = !hgj_aggregation_takes(root, joinrel);
	costs->partial_emits = costs->emits || root->hasNonPartialAggs ||
		root->hasNonSerialAggs;
	costs->emitted = hgj_emitted_part(jointype, extra);
	costs->inner_unique = extra->inner_unique;
	hgj_cost_clauses(root, costs, outerrel, innerrel, extra->restrictlist);
	costs->part_read = part_read(root, joinrel, outerrel, innerrel, costs, extra);
	costs->outer = hgj_cheapest_fed(root, outerrel, costs->outer_in_batches, false);
	costs->inner = hgj_cheapest_fed(root, innerrel, costs->inner_in_batches, false);

	if (!too_dear(joinrel, extra))
		try_complete_paths(root, joinrel, outerrel, innerrel, costs, extra);
	try_chain(root, joinrel, outerrel, costs, extra);
	if (!try_shared_build(root, joinrel, outerrel, innerrel, costs, extra) ||
		hgj_parallel_build != HGJ_PARALLEL_SHARED)
		try_private_build(root, joinrel, outerrel, costs->inner.path, costs, extra);
	return true;
}

/*
 * Is there a column among what the relation returns that a CustomScan cannot
 * return?
 *
 * The row identity columns of an inherited target of UPDATE, DELETE or MERGE
 * carry a special varno until setrefs.c, which does not accept that in
 * custom_scan_tlist.  And the deparser cannot follow a column of type record
 * from custom_scan_tlist to the subquery that it comes from; a whole-row
 * reference, such as row marks need, it does not have to follow.
 */
static HgjDecline
unsuitable_columns(RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, rel->reltarget->exprs)
	{
		Node	   *expr = lfirst(lc);

		if (IsA(expr, Var) && ((Var *) expr)->varno == ROWID_VAR)
			return HGJ_DECLINE_ROW_IDENTITY;
		if (IsA(expr, Var) && ((Var *) expr)->varattno == InvalidAttrNumber)
			continue;
		if (exprType(expr) == RECORDOID)
			return HGJ_DECLINE_RECORD;
	}
	return HGJ_DECLINE_NOTHING;
}

/* Is the relation a join of ours, so that a chain might go on with it? */
static bool
returns_batches(const RelOptInfo *rel)
{
	return hgj_is_join_path(rel->cheapest_total_path) ||
		(rel->partial_pathlist != NIL &&
		 hgj_is_join_path(linitial(rel->partial_pathlist)));
}

/* Does somebody want to know what could have been ours, and why it is not? */
static bool
reasons_are_wanted(void)
{
	return hgj_require != HGJ_REQUIRE_OFF || hgj_is_noting() ||
		message_level_is_interesting(DEBUG1);
}

/* Steps 1 to 5 of the head comment; says why there is no path. */
static HgjDecline
consider_join(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
			  RelOptInfo *innerrel, JoinType jointype,
			  JoinPathExtraData *extra)
{
	bool		few_rows = !hgj_force &&
		outerrel->rows < hgj_min_rows && innerrel->rows < hgj_min_rows &&
		!returns_batches(outerrel);
	HgjJoinCosts costs = {0};
	HgjDecline	decline;

	if (!join_type_supported(jointype))
		return HGJ_DECLINE_JOIN_TYPE;

	/*
	 * The cheapest test, which turns most joins of small queries away; unless
	 * somebody wants to know whether this one could have been ours.
	 */
	if (few_rows && hgj_require == HGJ_REQUIRE_OFF)
		return HGJ_DECLINE_FEW_ROWS;

	/* the same of large tables of which the query wants a few rows */
	if ((hgj_limit_is_cheaper(root, joinrel, hgj_least_startup()) ||
		 (!may_be_partial(joinrel, outerrel) && too_dear(joinrel, extra))) &&
		!reasons_are_wanted())
		return HGJ_DECLINE_NOTHING;

	hgj_collect_keys(root, extra->restrictlist, joinrel, outerrel, innerrel, jointype, &costs);
	if (costs.hashclauses == NIL)
		return HGJ_DECLINE_NO_HASH_CLAUSE;

	/* PostgreSQL itself does not call the hook for these, from 15.4 on till 16 */
	if (hgj_has_one_time_filter(root, extra->restrictlist))
		return HGJ_DECLINE_ONE_TIME;

	decline = unsuitable_columns(outerrel);
	if (decline == HGJ_DECLINE_NOTHING)
		decline = unsuitable_columns(innerrel);
	if (decline != HGJ_DECLINE_NOTHING)
		return decline;

	if (!few_rows &&
		!add_paths(root, joinrel, outerrel, innerrel, jointype, &costs, extra))
		return HGJ_DECLINE_PARAMETERIZED;
	hgj_require_note_join();
	return few_rows ? HGJ_DECLINE_FEW_ROWS : HGJ_DECLINE_NOTHING;
}

/* The paths of the list that are ours, in the same order. */
static List *
our_paths(List *paths)
{
	List	   *ours = NIL;
	ListCell   *lc;

	foreach(lc, paths)
		if (hgj_is_join_path(lfirst(lc)))
			ours = lappend(ours, lfirst(lc));
	return ours;
}

/*
 * Step 9: once a join relation has a path of ours, force leaves it no other,
 * and whether to go parallel is a choice among ours.  The lists stay sorted,
 * and set_cheapest() comes later.
 */
static void
keep_only_ours(RelOptInfo *joinrel)
{
	List	   *ours = our_paths(joinrel->pathlist);

	if (ours == NIL)
		return;
	joinrel->pathlist = ours;
	joinrel->partial_pathlist = our_paths(joinrel->partial_pathlist);
}

/*
 * The other order of an inner join has its call, too, but what has not been charged
 * enough may have pushed its path out since, or do so before the call is over.
 */
static void
consider_other_order(PlannerInfo *root, RelOptInfo *joinrel,
					 RelOptInfo *outerrel, RelOptInfo *innerrel,
					 const JoinPathExtraData *extra)
{
	JoinPathExtraData other = *extra;

	other.inner_unique = innerrel_is_unique(root, joinrel->relids,
											innerrel->relids, outerrel,
											JOIN_INNER, extra->restrictlist,
											false);
	if (other.inner_unique)
		compute_semi_anti_join_factors(root, joinrel, innerrel, outerrel,
									   JOIN_INNER, extra->sjinfo,
									   extra->restrictlist,
									   &other.semifactors);
	(void) consider_join(root, joinrel, innerrel, outerrel, JOIN_INNER, &other);
}

/*
 * Step 4: a semi or anti join that builds with its left side, where PostgreSQL has
 * no such join to offer.
 */
static void
consider_right_form(PlannerInfo *root, RelOptInfo *joinrel,
					RelOptInfo *outerrel, RelOptInfo *innerrel,
					JoinType jointype, JoinPathExtraData *extra)
{
	if (not_for_device(JOIN_RIGHT_SEMI))
		return;
	if (jointype == JOIN_SEMI && HGJ_OFFER_RIGHT_SEMI)
		(void) consider_join(root, joinrel, innerrel, outerrel,
							 JOIN_RIGHT_SEMI, extra);
	else if (jointype == JOIN_ANTI && HGJ_OFFER_RIGHT_ANTI)
		(void) consider_join(root, joinrel, innerrel, outerrel,
							 JOIN_RIGHT_ANTI, extra);
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

	decline = not_for_device(jointype) ? HGJ_DECLINE_NOTHING :
		consider_join(root, joinrel, outerrel, innerrel, jointype, extra);
	consider_right_form(root, joinrel, outerrel, innerrel, jointype, extra);
	if (jointype == JOIN_INNER &&
		(hgj_has_uncharged_lookups(joinrel->pathlist) ||
		 hgj_has_uncharged_lookups(joinrel->partial_pathlist)))
		consider_other_order(root, joinrel, outerrel, innerrel, extra);
	if (hgj_force)
		keep_only_ours(joinrel);
	else
	{
		hgj_prefer_lookups(root, joinrel, outerrel, innerrel, jointype, extra);
		hgj_drop_dearer_workers(root, joinrel);
	}
	if (!not_for_device(jointype))
		hgj_note_join(root, outerrel->relids, innerrel->relids, decline);
	if (decline != HGJ_DECLINE_NOTHING && message_level_is_interesting(DEBUG1))
		ereport(DEBUG1,
				(errmsg_internal("hashgraph_join: declined join of (%s) with (%s): %s",
								 hgj_relids_names(root, outerrel->relids),
								 hgj_relids_names(root, innerrel->relids),
								 hgj_decline_text(decline))));
}

/* Chain into the planner.  Call once per process, from _PG_init. */
void
hgj_install_join_hook(void)
{
	previous_hook = set_join_pathlist_hook;
	set_join_pathlist_hook = hgj_join_pathlist;
}
