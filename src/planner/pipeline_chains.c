/*-------------------------------------------------------------------------
 *
 * pipeline_chains.c
 *	  The joins of each relation that would cost least as a pipeline on a GPU.
 *
 * PostgreSQL keeps the paths of a join relation that cost least, and builds larger ones of
 * them.  What a pipeline saves is known only when the aggregation above it is planned
 * (pipeline_path.c), and by then a chain from a large table whose columns are on the GPU has
 * long given way to an order that is cheaper for the processor.  So one chain is kept beside
 * each relation's paths:
 *
 * 1. That of a table is its sequential scan, if most of its columns are kept in memory.
 * 2. That of a join goes on with the outer relation's, with the inner relation's cheapest
 *	  path as the build side, and costs less by what the pipeline saves so far.  Of several
 *	  pairs, the cheapest one is kept.
 * 3. That of all relations is offered to the aggregation beside their other paths.
 *
 * Paths in PostgreSQL's lists are freed when cheaper ones come; chains are in none.  Under
 * GEQO relations go while the query is planned, so there are no chains.
 *
 * Memory: the planner's context.  The table is forgotten with the query that is planned, whose
 * relations are its keys; a query that is planned meanwhile has its own.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/guc.h"
#include "join/engines.h"
#include "optimizer/pathnode.h"
#include "optimizer/planner.h"
#include "planner/planner.h"
#include "utils/hsearch.h"

/* The chain of a relation. */
typedef struct KeptChain
{
	const RelOptInfo *rel;		/* relation, the key */
	Path	   *path;			/* chain, or a scan; NULL: the table has none */
	double		kept;			/* part of the scan's rows that are kept */
	Cost		cost;			/* what it would cost as a pipeline */
} KeptChain;

static planner_hook_type previous_planner = NULL;
static HTAB *chains = NULL;		/* of the query that is being planned, or NULL */

/* The place of a relation's chain; *found: it has been filled. */
static KeptChain *
place_of(PlannerInfo *root, const RelOptInfo *rel, bool *found)
{
	if (chains == NULL)
	{
		HASHCTL		control = {.keysize = sizeof(rel),.entrysize = sizeof(KeptChain),
		.hcxt = root->planner_cxt};

		chains = hash_create("HashGraphJoin chains", 64, &control,
							 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	return hash_search(chains, &rel, HASH_ENTER, found);
}

/* Step 1: a table is looked at once, and asked for by each join with it. */
static const KeptChain *
chain_of_table(PlannerInfo *root, const RelOptInfo *rel)
{
	bool		found;
	KeptChain  *chain = place_of(root, rel, &found);
	ListCell   *lc;

	if (found)
		return chain;
	chain->path = NULL;
	chain->kept = 0;
	foreach(lc, rel->pathlist)
	{
		Path	   *path = lfirst(lc);

		if (path->pathtype != T_SeqScan || path->param_info != NULL)
			continue;
		chain->kept = hgj_pipeline_scan_kept(root, path);
		if (chain->kept > 0)
			chain->path = path;
	}
	return chain;
}

/* The chain of a relation, as steps 1 and 2 make it; NULL if the relation has none, as is one without a path. */
static const KeptChain *
chain_of(PlannerInfo *root, const RelOptInfo *rel)
{
	if (IS_SIMPLE_REL(rel))
		return chain_of_table(root, rel);
	return chains ? hash_search(chains, &rel, HASH_FIND, NULL) : NULL;
}

/* The path of the relation's chain; NULL if it has no chain. */
Path *
hgj_chain_of(PlannerInfo *root, const RelOptInfo *rel)
{
	const KeptChain *chain = chain_of(root, rel);

	return chain ? chain->path : NULL;
}

/*
 * May the joins of the query be in a pipeline at all?  Between them and the aggregation nothing is to
 * stand but a projection, which is no place for functions that return sets.
 */
bool
hgj_has_chains(const PlannerInfo *root)
{
	return !root->parse->hasTargetSRFs && hgj_engine == HGJ_ENGINE_AUTO && !hgj_force && hgj_aggregate &&
		(root->parse->hasAggs || root->parse->groupClause != NIL) &&
		root->parse->groupingSets == NIL && root->join_search_private == NULL &&
		hgj_cuda_has_columns();
}

/* Step 2: keep this join of the outer relation's chain, if it costs least so far. */
void
hgj_keep_chain(PlannerInfo *root, const RelOptInfo *outerrel, Path *path)
{
	double		part = chain_of(root, outerrel)->kept;
	Cost		saving = hgj_chain_saving(root, path, part);
	Cost		cost = path->total_cost - saving;
	KeptChain  *chain;
	bool		found;

	if (saving <= 0)
		return;
	chain = place_of(root, path->parent, &found);
	if (found && chain->cost <= cost)
		return;
	chain->path = path;
	chain->kept = part;
	chain->cost = cost;
}

/* Step 3: as PostgreSQL does it with the relation's paths, it is to return what the query wants. */
Path *
hgj_chain_to_aggregate(PlannerInfo *root, RelOptInfo *rel)
{
	Path	   *chain = IS_SIMPLE_REL(rel) || !hgj_has_chains(root) ? NULL :
		hgj_chain_of(root, rel);

	return chain ? (Path *) create_projection_path(root, rel, chain, rel->reltarget) : NULL;
}

static PlannedStmt *
forgetting_planner(Query *parse, const char *query_string, int cursorOptions,
				   ParamListInfo boundParams)
{
	HTAB	   *before = chains;
	PlannedStmt *result;

	/* after an error it is that of a query that is gone: nobody looks at it */
	chains = NULL;
	result = hgj_plan_by(previous_planner, parse, query_string, cursorOptions, boundParams);
	chains = before;
	return result;
}

/* Chain into the planner.  Call once per process, from _PG_init. */
void
hgj_install_chains_hook(void)
{
	previous_planner = planner_hook;
	planner_hook = forgetting_planner;
}
