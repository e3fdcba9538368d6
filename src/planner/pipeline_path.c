/*-------------------------------------------------------------------------
 *
 * pipeline_path.c
 *	  Under engine = auto: is a HashGraphAgg over a chain of HashGraphJoins
 *	  cheaper as a pipeline on a GPU (pipeline/device.h)?
 *
 * A join by itself pays on a GPU where its table is large: its outer rows go
 * there, and pairs come back.  In a pipeline, rows go there once for all joins of
 * the chain, and only groups come back, so that even small tables may pay.
 *
 * 1. Go down the chain from the aggregation's child to a sequential scan, and sum
 *	  up what a pipeline would save of each join's costs (cost.c, step 7) and of
 *	  the aggregation's.  What is known here already not to fit ends it.
 * 2. If that is more than what the joins that are planned for a GPU by themselves
 *	  save, and there is a GPU: copies of the chain's paths, marked, with costs of
 *	  the pipeline.  The paths themselves may be somebody else's, too.
 * 3. Where the GPU process of the server keeps columns on the GPU, and most of the scan's
 *	  table is kept in memory, rows need not go there, nor be looked at on the host: the
 *	  scan costs only what its other pages do.  That is for scans whose columns all pass
 *	  by value, are decimals, or have few values.
 * 4. The rest is seen by the executor (agg/agg_device_plan.c); where the pipeline does
 *	  not fit, the joins that do not pay by themselves run on the CPU.
 *
 * Memory: the planner's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/guc.h"
#include "catalog/pg_type.h"
#include "engine/engine.h"
#include "expr/program.h"
#include "join/engines.h"
#include "kept/chunk.h"
#include "nodes/nodeFuncs.h"
#include "planner/planner.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

/* Bytes of device memory per row of a build side: graph, key and payload. */
#define HGJ_PIPELINE_ROW_BYTES	64

static bool
join_may_fit(const CustomPath *join)
{
	JoinType	type = (JoinType) hgj_path_fact(&join->path, HGJ_PATH_JOIN_TYPE);

	return (type == JOIN_INNER || type == JOIN_LEFT || type == JOIN_SEMI ||
			type == JOIN_ANTI) &&
		join->path.param_info == NULL && join->path.parallel_workers == 0 &&
		hgj_path_fact(&join->path, HGJ_PATH_IN_BATCHES);
}

/* Step 3: less than this is as if nothing was kept. */
#define HGJ_PIPELINE_LEAST_KEPT		0.9

/* Step 3: a column of a scan's table: is it not taken as it is kept, nor by its values? */
static bool
is_no_kept_column(PlannerInfo *root, const Var *var)
{
	if (var->varattno <= 0)
		return true;
	if (get_typbyval(var->vartype) || hgj_decimal_scale(var->vartype, var->vartypmod) >= 0)
		return false;
	return estimate_num_groups(root, list_make1(unconstify(Var *, var)),
							   root->simple_rel_array[var->varno]->tuples, NULL, NULL) >
		HGJ_MOST_KEPT_CODES;
}

/* Step 3: is there anything in it that is not taken from kept columns?  context: the root */
static bool
not_of_columns(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Var:
			return is_no_kept_column(context, (Var *) node);
		case T_RestrictInfo:
			return not_of_columns((Node *) ((RestrictInfo *) node)->clause, context);
		case T_Const:
		case T_OpExpr:
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_ScalarArrayOpExpr:
		case T_List:
			return expression_tree_walker(node, not_of_columns, context);
		default:
			return true;
	}
}

/*
 * Step 3: the part of the rows of the scan at the bottom of these joins that are on the
 * GPU as columns, or only have to be copied there once.
 */
double
hgj_pipeline_part_kept(PlannerInfo *root, const Path *child)
{
	const Path *path = child;
	double		kept;

	if (hgj_engine != HGJ_ENGINE_AUTO || !hgj_cuda_has_columns())
		return 0;
	while (hgj_is_join_path(path))
		path = linitial(((const CustomPath *) hgj_below_projections(path))->custom_paths);
	if (path->pathtype != T_SeqScan || path->parent->rtekind != RTE_RELATION ||
		path->parallel_workers > 0 ||
		not_of_columns((Node *) path->parent->baserestrictinfo, root) ||
		not_of_columns((Node *) path->pathtarget->exprs, root))
		return 0;
	kept = hgj_part_kept(root, path->parent);
	return kept >= HGJ_PIPELINE_LEAST_KEPT ? kept : 0;
}

/* Step 3: what the scan costs less for that. */
static Cost
kept_gain(PlannerInfo *root, const Path *scan, double kept)
{
	return kept * Max(scan->total_cost - scan->startup_cost -
					  hgj_feed_saving(root, scan, true), 0);
}

/* Step 1: what a pipeline saves, in the joins alone; false: it cannot be.  *scan: below. */
static bool
chain_gain(Path *child, Cost *alone, Cost *in_pipeline, double *bytes, const Path **scan)
{
	Path	   *path = child;
	int			n = 0;

	*alone = *in_pipeline = *bytes = 0;
	for (; hgj_is_join_path(path); n++)
	{
		const CustomPath *join = (const CustomPath *) hgj_below_projections(path);
		const Path *inner = lsecond(join->custom_paths);

		if (n == HGJ_PIPE_JOINS || !join_may_fit(join))
			return false;
		*alone += hgj_path_fact(path, HGJ_PATH_ALONE);
		*in_pipeline += hgj_path_fact(path, HGJ_PATH_IN_PIPELINE);
		*bytes += inner->rows * HGJ_PIPELINE_ROW_BYTES;
		path = linitial(join->custom_paths);
	}
	*scan = path;
	return path->pathtype == T_SeqScan && path->parent->rtekind == RTE_RELATION;
}

/* What is taken off a path's costs. */
static void
lower_costs(Path *path, Cost saving)
{
	path->total_cost = Max(path->total_cost - saving, 0);
	path->startup_cost = Min(path->startup_cost, path->total_cost);
}

/* The scan, with what it costs less. */
static Path *
copy_scan(const Path *scan, Cost saving)
{
	Path	   *copy = makeNode(Path);

	*copy = *scan;
	lower_costs(copy, saving);
	return copy;
}

/*
 * Step 2: a copy of the chain.  *saving: what it costs less, at first what the scan does.
 * Under force costs only keep other paths away, and stay as they are.
 */
static Path *
copy_chain(Path *path, Cost *saving)
{
	if (IsA(path, ProjectionPath))
	{
		ProjectionPath *copy = makeNode(ProjectionPath);

		*copy = *(ProjectionPath *) path;
		copy->subpath = copy_chain(copy->subpath, saving);
		lower_costs(&copy->path, *saving);
		return &copy->path;
	}
	if (hgj_is_join_path(path))
	{
		CustomPath *copy = makeNode(CustomPath);
		List	   *facts;

		*copy = *(CustomPath *) path;
		facts = list_copy(list_nth(copy->custom_private, HGJ_PATH_FACTS));
		if (list_nth_int(facts, HGJ_PATH_DEVICE) == HGJ_PLAN_CPU)
			lfirst_int(list_nth_cell(facts, HGJ_PATH_DEVICE)) = HGJ_PLAN_PIPELINE;
		copy->custom_private = list_copy(copy->custom_private);
		lfirst(list_nth_cell(copy->custom_private, HGJ_PATH_FACTS)) = facts;
		copy->custom_paths = list_copy(copy->custom_paths);
		linitial(copy->custom_paths) =
			copy_chain(linitial(copy->custom_paths), saving);
		if (!hgj_force)
			*saving += hgj_path_fact(path, HGJ_PATH_IN_PIPELINE) -
				hgj_path_fact(path, HGJ_PATH_ALONE);
		lower_costs(&copy->path, *saving);
		return &copy->path;
	}
	return *saving > 0 ? copy_scan(path, *saving) : path;
}

/*
 * The chain as a part of a pipeline, if that is cheaper than what `child` is, or
 * `child` itself.  kept: hgj_pipeline_part_kept().  agg_gain: what the pipeline saves of
 * the aggregation.  *gain: what is to be taken off the aggregation's costs.
 */
Path *
hgj_pipeline_child(PlannerInfo *root, Path *child, double kept, Cost agg_gain, Cost *gain)
{
	const Path *scan;
	Cost		alone;
	Cost		in_pipeline;
	Cost		saving = 0;
	double		bytes;

	*gain = 0;
	if (hgj_engine != HGJ_ENGINE_AUTO ||
		!chain_gain(child, &alone, &in_pipeline, &bytes, &scan))
		return child;
	saving = kept_gain(root, scan, kept);
	if (saving + in_pipeline + agg_gain <= alone || !hgj_cuda_usable(bytes))
		return child;
	if (hgj_force)
		saving = 0;
	else
		*gain = agg_gain;
	return copy_chain(child, &saving);
}
