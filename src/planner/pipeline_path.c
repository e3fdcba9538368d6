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
 *	  by value, are decimals, or have few values, and for what the executor is known to
 *	  find no fault with, as the host would do all of it in one process.
 * 4. The same goes for the build sides of such a chain, which are made on the GPU
 *	  (pipeline/device_sides.c): what they read costs nothing, and nothing goes there.
 * 5. The rest is seen by the executor (agg/agg_device_plan.c); where the pipeline does
 *	  not fit, the joins that do not pay by themselves run on the CPU.
 * 6. Of a join that returns rows of such a scan, the GPU looks at all of them, and the host
 *	  at those that come out (pipeline/device_rows_kept.c): cost.c asks whether it may.  That is
 *	  so in a query that aggregates, too, if one of its join clauses cannot be in a pipeline.
 *
 * Memory: the planner's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "base/agg_format.h"
#include "base/guc.h"
#include "catalog/pg_type.h"
#include "expr/demand.h"
#include "expr/program.h"
#include "join/engines.h"
#include "kept/chunk.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "planner/agg_path.h"
#include "planner/planner.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

/* Bytes of device memory per row of a build side: graph, key and payload. */
#define HGJ_PIPELINE_ROW_BYTES	64

/* As a part of the rows of a build side, the values that are taken to tell them apart. */
#define HGJ_MOSTLY_APART		0.9

static bool
join_may_fit(const CustomPath *join)
{
	JoinType	type = (JoinType) hgj_path_fact(&join->path, HGJ_PATH_JOIN_TYPE);

	return (type == JOIN_INNER || type == JOIN_LEFT || type == JOIN_SEMI ||
			type == JOIN_ANTI) &&
		join->path.param_info == NULL && join->path.parallel_workers == 0 &&
		hgj_path_fact(&join->path, HGJ_PATH_IN_BATCHES);
}

/* Has the column, of the scan's or another table, more values than go by a table? */
static bool
has_many_values(PlannerInfo *root, const Var *var)
{
	return estimate_num_groups(root, list_make1(unconstify(Var *, var)),
							   root->simple_rel_array[var->varno]->tuples, NULL, NULL) >
		HGJ_MOST_KEPT_CODES;
}

/* Step 3: a column of a scan's table: is it not taken as it is kept, nor by its values? */
static bool
is_no_kept_column(PlannerInfo *root, const Var *var)
{
	if (var->varattno <= 0)
		return true;
	return !get_typbyval(var->vartype) &&
		hgj_decimal_scale(var->vartype, var->vartypmod) < 0 && has_many_values(root, var);
}

/* What the walker below looks for. */
typedef struct Looked
{
	PlannerInfo *root;
	Index		relid;			/* the scan's table */
} Looked;

/* Is it made of more than one column, or, unless that has few values, of one? */
static bool
is_made_of_many(Node *node, const Looked *looked)
{
	List	   *vars = pull_var_clause(node, PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS |
									   PVC_RECURSE_PLACEHOLDERS);
	bool		many = false;
	ListCell   *lc;

	foreach(lc, vars)
	{
		const Var  *var = lfirst(lc);

		many |= !equal(var, linitial(vars)) ||
			(var->varno == looked->relid && has_many_values(looked->root, var));
	}
	list_free(vars);
	return many;
}

/* Has a device no instruction for the operator? */
static bool
is_for_host(const OpExpr *expr)
{
	return !hgj_has_instruction(get_opcode(expr->opno));
}

/* Step 3: conditions that may raise an error are the host's. */
static bool
may_raise(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, RestrictInfo))
		return may_raise((Node *) ((RestrictInfo *) node)->clause, context);
	return hgj_calls_may_raise(node) || expression_tree_walker(node, may_raise, context);
}

/*
 * Step 3: is there anything in it that rows of the table would have to be decoded for?
 * context: a Looked
 */
static bool
not_of_columns(Node *node, void *context)
{
	Looked	   *looked = context;

	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Var:
			return ((Var *) node)->varno == looked->relid &&
				is_no_kept_column(looked->root, (Var *) node);
		case T_RestrictInfo:
			return not_of_columns((Node *) ((RestrictInfo *) node)->clause, context);
		case T_Aggref:
			return !hgj_agg_function_supported(((Aggref *) node)->aggfnoid) ||
				((Aggref *) node)->aggdistinct != NIL || ((Aggref *) node)->aggorder != NIL ||
				not_of_columns((Node *) ((Aggref *) node)->args, context) ||
				not_of_columns((Node *) ((Aggref *) node)->aggfilter, context);
		case T_OpExpr:
			return (is_for_host((OpExpr *) node) && is_made_of_many(node, looked)) ||
				expression_tree_walker(node, not_of_columns, context);
		case T_ScalarArrayOpExpr:
			return !get_typbyval(exprType(linitial(((ScalarArrayOpExpr *) node)->args))) &&
				is_made_of_many(node, looked);
		case T_CaseExpr:
		case T_CoalesceExpr:
			return (!get_typbyval(exprType(node)) && exprType(node) != NUMERICOID &&
					is_made_of_many(node, looked)) ||
				expression_tree_walker(node, not_of_columns, context);
		case T_FuncExpr:
			return (!hgj_has_instruction(((FuncExpr *) node)->funcid) &&
					is_made_of_many(node, looked)) ||
				expression_tree_walker(node, not_of_columns, context);
		case T_Const:
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_RelabelType:
		case T_CaseWhen:
		case T_TargetEntry:
		case T_List:
			return expression_tree_walker(node, not_of_columns, context);
		default:
			return true;
	}
}

/*
 * Has the column another value in nearly each row of a build side?  In rows of a join, some
 * come again, as many as in so many draws from all values.
 */
static bool
tells_rows_apart(PlannerInfo *root, Var *var, const Path *side)
{
	double		rows = side->rows;
	double		values = estimate_num_groups(root, list_make1(var),
											 root->simple_rel_array[var->varno]->tuples,
											 NULL, NULL);

	if (bms_membership(side->parent->relids) == BMS_MULTIPLE)
		values *= 1 - exp(-rows / values);
	return values >= HGJ_MOSTLY_APART * rows;
}

/*
 * Step 3: is the key a column of a build side that another key, which passes by value, tells
 * the rows of apart?  Then it is looked up in the row (agg/agg_device_keys.c).
 */
static bool
is_told_by_row(PlannerInfo *root, const Path *child, const HgjAggContents *contents,
			   const Var *key)
{
	const Path *inner = NULL;
	ListCell   *lc;

	while (IsA(key, Var) && inner == NULL && hgj_is_join_path(child))
	{
		const CustomPath *join = (const CustomPath *) hgj_below_projections(child);

		child = linitial(join->custom_paths);
		inner = lsecond(join->custom_paths);
		if (!bms_is_member(key->varno, inner->parent->relids))
			inner = NULL;
	}
	foreach(lc, inner ? contents->group_exprs : NIL)
	{
		Var		   *var = lfirst(lc);

		if (IsA(var, Var) && bms_is_member(var->varno, inner->parent->relids) &&
			get_typbyval(var->vartype) && tells_rows_apart(root, var, inner))
			return true;
	}
	return false;
}

/* Step 3: can a device have the groups' keys? */
static bool
keys_fit(PlannerInfo *root, const Path *child, const HgjAggContents *contents)
{
	ListCell   *lc;

	foreach(lc, contents->group_exprs)
	{
		Oid			type = exprType(lfirst(lc));

		if (type == FLOAT4OID || type == FLOAT8OID)
			return false;
		if (!get_typbyval(type) && type != NUMERICOID &&
			estimate_num_groups(root, list_make1(lfirst(lc)), child->rows, NULL, NULL) >
			HGJ_MOST_KEPT_CODES &&
			!is_told_by_row(root, child, contents, lfirst(lc)))
			return false;
	}
	return true;
}

/*
 * Steps 3, 4 and 6: the part of a scan's table that a device takes as it is kept, if all
 * that is made of it is for that.  contents: of the aggregation; NULL: rows are returned.
 */
static double
part_of_scan(PlannerInfo *root, const Path *path, const HgjAggContents *contents)
{
	Looked		looked = {root};
	double		kept;

	if (path->pathtype != T_SeqScan || path->parent->rtekind != RTE_RELATION ||
		path->parallel_workers > 0)
		return 0;
	kept = hgj_part_kept(root, path->parent);
	looked.relid = path->parent->relid;
	if (kept < HGJ_LEAST_KEPT ||
		may_raise((Node *) path->parent->baserestrictinfo, NULL) ||
		not_of_columns((Node *) path->parent->baserestrictinfo, &looked))
		return 0;
	if (contents != NULL &&
		(not_of_columns((Node *) path->pathtarget->exprs, &looked) ||
		 not_of_columns((Node *) contents->group_exprs, &looked) ||
		 not_of_columns((Node *) contents->aggrefs, &looked)))
		return 0;
	return kept;
}

/*
 * Step 3: the part of the rows of the scan at the bottom of these joins that are on the
 * GPU as columns, or only have to be copied there once.
 */
double
hgj_pipeline_part_kept(PlannerInfo *root, const Path *child, const HgjAggContents *contents)
{
	if (hgj_engine != HGJ_ENGINE_AUTO || contents->functions != NIL ||
		!hgj_cuda_has_columns() || !keys_fit(root, child, contents))
		return 0;
	return part_of_scan(root, hgj_below_projections(hgj_below_joins(child)), contents);
}

/*
 * Step 1: is there a part that no program computes from vectors, so that the clause is evaluated
 * row by row?  context is not used
 */
static bool
is_for_rows(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, RestrictInfo))
		return is_for_rows((Node *) ((RestrictInfo *) node)->clause, context);
	if (IsA(node, SubPlan) || IsA(node, AlternativeSubPlan))
		return true;
	if (IsA(node, Var))
		return ((Var *) node)->vartype == NUMERICOID &&
			hgj_decimal_scale(NUMERICOID, ((Var *) node)->vartypmod) < 0;
	return expression_tree_walker(node, is_for_rows, context);
}

/* Step 1: has the join a clause beside its keys that is evaluated row by row? */
static bool
has_row_clause(const CustomPath *join)
{
	const List *keys = list_nth(join->custom_private, HGJ_PATH_HASHCLAUSES);
	ListCell   *lc;

	foreach(lc, list_nth(join->custom_private, HGJ_PATH_RESTRICTLIST))
		if (!list_member_ptr(keys, lfirst(lc)) && is_for_rows(lfirst(lc), NULL))
			return true;
	return false;
}

/*
 * Step 6: does a join clause of the query keep its aggregation out of a pipeline, whatever the
 * order of the joins?
 */
bool
hgj_query_has_row_clause(PlannerInfo *root)
{
	for (int i = 1; i < root->simple_rel_array_size; i++)
		if (root->simple_rel_array[i] &&
			is_for_rows((Node *) root->simple_rel_array[i]->joininfo, NULL))
			return true;
	return false;
}

/* Step 6: is every key, of the scan's side, a column that a device makes the words of? */
static bool
keys_are_for_device(List *hashclauses, const RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, hashclauses)
	{
		Node	   *operand = hgj_key_of_side(lfirst_node(RestrictInfo, lc), rel);

		if (!IsA(operand, Var) || ((Var *) operand)->varattno <= 0 ||
			!get_typbyval(exprType(operand)))
			return false;
	}
	return true;
}

/*
 * Step 6: the part of a scan's rows that a device can look at as columns, for a join with
 * these keys.
 */
double
hgj_part_chosen(PlannerInfo *root, const Path *scan, List *hashclauses)
{
	if (scan->pathtype != T_SeqScan || scan->parent->rtekind != RTE_RELATION ||
		scan->parent->tuples < hgj_device_side_rows || !hgj_cuda_has_columns() ||
		!keys_are_for_device(hashclauses, scan->parent))
		return 0;
	return part_of_scan(root, scan, NULL);
}

/* A chain that is looked at. */
typedef struct Chain
{
	PlannerInfo *root;
	const HgjAggContents *contents;
	double		kept;			/* of the scan at its bottom, which is */
	const Path *scan;
	Cost		alone;			/* what its joins save by themselves, */
	Cost		in_pipeline;	/* and in a pipeline */
	double		bytes;			/* of its build sides */
} Chain;

/*
 * Steps 3 and 4: what the scan costs less for that.  by_agg: what reads it, if that is the
 * aggregation; NULL: a join does.
 */
static Cost
kept_gain(const Chain *chain, const Path *by_agg)
{
	const Path *scan = chain->scan;
	Cost		saving;

	if (chain->kept == 0)
		return 0;
	saving = by_agg ? hgj_agg_feed_saving(chain->root, by_agg) :
		hgj_feed_saving(chain->root, scan, true);
	return hgj_threads_saving(chain->kept *
							  Max(scan->total_cost - scan->startup_cost - saving, 0));
}

static bool chain_gain(Path *child, Chain *chain);

/*
 * Step 4: rows of a side are told apart by a group key of theirs, for all that is known, so
 * that others are looked up on the host (agg/agg_device_keys.c).
 */
static bool
is_by_row(const HgjAggContents *contents, Relids relids)
{
	bool		words = false;
	bool		others = false;
	ListCell   *lc;

	foreach(lc, contents->group_exprs)
	{
		const Var  *var = lfirst(lc);

		if (!IsA(var, Var) || !bms_is_member(var->varno, relids))
			continue;
		if (get_typbyval(var->vartype))
			words = true;
		else
			others = true;
	}
	return words && others;
}

/*
 * Step 4: the build side of a join as a chain of its own, of a scan alone or of joins, if it
 * is made on the GPU.  Returns what it then costs less, what it takes to bring it there
 * otherwise included; 0: it is not.
 */
static Cost
side_gain(const Chain *chain, const CustomPath *join, Chain *side)
{
	Path	   *inner = lsecond(join->custom_paths);
	const Path *scan = hgj_below_projections(hgj_below_joins(inner));
	Cost		gain;

	*side = (Chain) {.root = chain->root,.contents = chain->contents};
	if (chain->kept == 0 || scan->parent == NULL ||
		scan->parent->tuples < hgj_device_side_rows ||
		is_by_row(chain->contents, inner->parent->relids))
		return 0;
	side->kept = part_of_scan(chain->root, scan, chain->contents);
	if (side->kept == 0 || !chain_gain(inner, side))
		return 0;
	gain = kept_gain(side, NULL) + side->in_pipeline - side->alone;
	return gain > 0 ? gain + hgj_side_transfer_cost(inner, 1) : 0;
}

/* Step 1: what a pipeline saves, in the joins alone; false: it cannot be. */
static bool
chain_gain(Path *child, Chain *chain)
{
	Path	   *path = child;
	int			n = 0;

	for (; hgj_is_join_path(path); n++)
	{
		const CustomPath *join = (const CustomPath *) hgj_below_projections(path);
		const Path *inner = lsecond(join->custom_paths);
		Chain		side;

		if (n == HGJ_PIPE_JOINS || !join_may_fit(join) || has_row_clause(join))
			return false;
		chain->alone += hgj_path_fact(path, HGJ_PATH_ALONE);
		chain->in_pipeline += hgj_path_fact(path, HGJ_PATH_IN_PIPELINE) +
			side_gain(chain, join, &side);
		chain->bytes += inner->rows * HGJ_PIPELINE_ROW_BYTES;
		path = linitial(join->custom_paths);
	}
	chain->scan = path = unconstify(Path *, hgj_below_projections(path));
	return path->pathtype == T_SeqScan && path->parent->rtekind == RTE_RELATION;
}

/* The part of the scan's rows that a pipeline has as columns (step 3), for all that is known yet. */
double
hgj_pipeline_scan_kept(PlannerInfo *root, const Path *scan)
{
	return part_of_scan(root, scan, NULL);
}

/*
 * What a pipeline would save of a join of ours, at least, if an aggregation took it: nothing is known
 * yet of what that computes, nor are build sides looked at that are made on the GPU.  kept:
 * hgj_pipeline_scan_kept() of the scan at its bottom.  0: the join may not fit.
 */
Cost
hgj_chain_saving(PlannerInfo *root, const Path *path, double kept)
{
	Chain		chain = {.root = root};

	if (kept == 0 || !chain_gain(unconstify(Path *, path), &chain))
		return 0;
	chain.kept = kept;
	return Max(chain.in_pipeline + kept_gain(&chain, NULL), 0);
}

/* The same of a join that an aggregation takes, if one does. */
Cost
hgj_pipeline_would_save(PlannerInfo *root, const Path *path)
{
	if (hgj_engine != HGJ_ENGINE_AUTO || hgj_path_fact(path, HGJ_PATH_EMITS) ||
		!hgj_cuda_has_columns())
		return 0;
	return hgj_chain_saving(root, path,
							hgj_pipeline_scan_kept(root, hgj_below_projections(hgj_below_joins(path))));
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
copy_chain(const Chain *chain, Path *path, Cost *saving)
{
	if (IsA(path, ProjectionPath))
	{
		ProjectionPath *copy = makeNode(ProjectionPath);

		*copy = *(ProjectionPath *) path;
		copy->subpath = copy_chain(chain, copy->subpath, saving);
		lower_costs(&copy->path, *saving);
		return &copy->path;
	}
	if (hgj_is_join_path(path))
	{
		CustomPath *copy = makeNode(CustomPath);
		Chain		side;
		Cost		gain;
		List	   *facts;

		*copy = *(CustomPath *) path;
		facts = list_copy(list_nth(copy->custom_private, HGJ_PATH_FACTS));
		if (list_nth_int(facts, HGJ_PATH_DEVICE) == HGJ_PLAN_CPU)
			lfirst_int(list_nth_cell(facts, HGJ_PATH_DEVICE)) = HGJ_PLAN_PIPELINE;
		copy->custom_private = list_copy(copy->custom_private);
		lfirst(list_nth_cell(copy->custom_private, HGJ_PATH_FACTS)) = facts;
		copy->custom_paths = list_copy(copy->custom_paths);
		linitial(copy->custom_paths) =
			copy_chain(chain, linitial(copy->custom_paths), saving);
		gain = side_gain(chain, copy, &side);
		if (!hgj_force)
			*saving += hgj_path_fact(path, HGJ_PATH_IN_PIPELINE) + gain -
				hgj_path_fact(path, HGJ_PATH_ALONE);
		if (gain > 0)
		{
			Cost		side_saving = hgj_force ? 0 : kept_gain(&side, NULL);

			lsecond(copy->custom_paths) =
				copy_chain(&side, lsecond(copy->custom_paths), &side_saving);
		}
		lower_costs(&copy->path, *saving);
		return &copy->path;
	}
	return *saving > 0 ? copy_scan(path, *saving) : path;
}

/*
 * The chain as a part of a pipeline, if that is cheaper than what `child` is, or
 * `child` itself.  kept: hgj_pipeline_part_kept().  agg_gain: what the pipeline saves of
 * the aggregation.  *gain: what is to be taken off the aggregation's costs.  *planned:
 * there is to be a pipeline.
 */
Path *
hgj_pipeline_child(PlannerInfo *root, Path *child, const HgjAggContents *contents,
				   double kept, Cost agg_gain, Cost *gain, bool *planned)
{
	Chain		chain = {.root = root,.contents = contents,.kept = kept};
	Cost		saving = 0;

	*gain = 0;
	*planned = false;
	if (hgj_engine != HGJ_ENGINE_AUTO || !chain_gain(child, &chain))
		return child;
	if (kept == 0 && chain.scan == hgj_below_projections(child))
		return child;
	/* what is not kept is decoded here, by one process */
	if (hgj_device_threads() > 0 && kept < HGJ_THREADS_LEAST_KEPT)
		return child;
	saving = kept_gain(&chain, hgj_is_join_path(child) ? NULL : child);
	/* force asks threads for what they can do, and not a GPU, which engine = cuda does */
	if (saving + chain.in_pipeline + agg_gain <= chain.alone &&
		!(hgj_force && hgj_device_threads() > 0))
		return child;
	if (!hgj_cuda_usable(chain.bytes))
		return child;
	if (hgj_force)
		saving = 0;
	else
		*gain = agg_gain;
	*planned = true;
	return copy_chain(&chain, child, &saving);
}
