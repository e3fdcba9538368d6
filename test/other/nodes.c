/*-------------------------------------------------------------------------
 *
 * nodes.c
 *	  Paths and nodes of somebody else's: what an extension may do to a query's paths
 *	  in each hook of the planner.
 *
 * 1. other.scan, for tables that have a companion with the same columns: `t` and
 *	  `t_elsewhere`.  "replace": the table's rows stand there, as those of a compressed
 *	  chunk do, and the only paths are those of a node that reads them; "beside": so do
 *	  they, but paths of PostgreSQL's stay, and costs of 0 are to keep them away.  "index":
 *	  the table is read by indexes, as a hint asks for: its paths are made anew without
 *	  sequential scans, where there are others.
 * 2. other.joins: joins that PostgreSQL or another extension has found are read through
 *	  a node that hands rows on.
 * 3. other.groups: the same above aggregations, but every row twice, as a node that fills
 *	  gaps returns more rows than it reads.
 * 4. other.names: what the nodes are called: by names of their own, by none, or by
 *	  hashgraph_join's.  The methods of a plan have names of their own where they are
 *	  looked up in parallel workers, and take the others' with other.plan_names, where
 *	  nothing goes there.
 *
 * Memory: the planner's and the executor's contexts.  Relations are closed at the node's
 * end, and by the resource owner on errors.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "executor/executor.h"
#include "nodes/extensible.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/restrictinfo.h"
#include "parser/parsetree.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "other.h"

typedef enum ScanMode
{
	SCAN_OFF,
	SCAN_REPLACE,
	SCAN_BESIDE,
	SCAN_INDEX
} ScanMode;

typedef enum NameKind
{
	NAMES_OWN,
	NAMES_NONE,
	NAMES_JOIN,
	NAMES_AGG,
	NAME_KINDS
} NameKind;

static const char *const names[NAME_KINDS] = {"OtherNode", NULL, "HashGraphJoin", "HashGraphAgg"};

static const struct config_enum_entry scan_options[] = {
	{"off", SCAN_OFF, false},
	{"replace", SCAN_REPLACE, false},
	{"beside", SCAN_BESIDE, false},
	{"index", SCAN_INDEX, false},
	{NULL, 0, false}
};

static const struct config_enum_entry name_options[] = {
	{"own", NAMES_OWN, false},
	{"none", NAMES_NONE, false},
	{"join", NAMES_JOIN, false},
	{"agg", NAMES_AGG, false},
	{NULL, 0, false}
};

static int	other_scan = SCAN_OFF;
static int	other_names = NAMES_OWN;
static bool other_plan_names = false;
static bool other_join = false;
static bool other_groups = false;

static set_rel_pathlist_hook_type previous_rel = NULL;
static set_join_pathlist_hook_type previous_join = NULL;
static create_upper_paths_hook_type previous_upper = NULL;

/* custom_private of a plan: the companion's OID, the kind of names, rows twice */
typedef struct OtherState
{
	CustomScanState css;
	Oid			companion;		/* InvalidOid: hands on what its child returns */
	bool		twice;
	bool		once_more;		/* the row at hand is to be returned again */
	Relation	rel;
	TableScanDesc scan;
	TupleTableSlot *slot;
} OtherState;

/* There is a table of methods for each kind of names. */
static CustomPathMethods path_methods[NAME_KINDS];
static CustomExecMethods exec_methods[NAME_KINDS];
static CustomScanMethods plan_methods[NAME_KINDS];	/* with those names */
static CustomScanMethods registered_methods;	/* with one that workers find */

/* ---- execution ------------------------------------------------------------ */

static Node *
create_state(CustomScan *plan)
{
	OtherState *state = palloc0(sizeof(OtherState));

	NodeSetTag(state, T_CustomScanState);
	state->companion = (Oid) linitial_int(plan->custom_private);
	state->css.methods = &exec_methods[lsecond_int(plan->custom_private)];
	state->twice = lthird_int(plan->custom_private) != 0;
	return (Node *) state;
}

static void
begin_node(CustomScanState *node, EState *estate, int eflags)
{
	OtherState *state = (OtherState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;

	if (OidIsValid(state->companion))
	{
		state->rel = table_open(state->companion, AccessShareLock);
		state->slot = table_slot_create(state->rel, &estate->es_tupleTable);
	}
	else
		node->custom_ps = list_make1(ExecInitNode(linitial(plan->custom_plans), estate, eflags));
}

static TupleTableSlot *
next_row(OtherState *state)
{
	TupleTableSlot *to = state->css.ss.ss_ScanTupleSlot;
	TupleTableSlot *from;

	if (state->once_more)
	{
		state->once_more = false;
		return to;
	}
	if (OidIsValid(state->companion))
	{
		if (state->scan == NULL)
			state->scan = table_beginscan(state->rel, state->css.ss.ps.state->es_snapshot, 0, NULL);
		from = table_scan_getnextslot(state->scan, ForwardScanDirection, state->slot) ?
			state->slot : NULL;
	}
	else
		from = ExecProcNode(linitial(state->css.custom_ps));
	if (TupIsNull(from))
		return ExecClearTuple(to);
	state->once_more = state->twice;
	return ExecCopySlot(to, from);
}

static TupleTableSlot *
access_row(ScanState *node)
{
	return next_row((OtherState *) node);
}

static bool
recheck_row(ScanState *node, TupleTableSlot *slot)
{
	return true;
}

static TupleTableSlot *
exec_node(CustomScanState *node)
{
	return ExecScan(&node->ss, access_row, recheck_row);
}

static void
end_node(CustomScanState *node)
{
	OtherState *state = (OtherState *) node;

	if (state->scan)
		table_endscan(state->scan);
	if (state->rel)
		table_close(state->rel, NoLock);
	else
		ExecEndNode(linitial(node->custom_ps));
}

static void
rescan_node(CustomScanState *node)
{
	OtherState *state = (OtherState *) node;

	state->once_more = false;
	if (state->scan)
		table_rescan(state->scan, NULL);
	if (state->rel == NULL)
		ExecReScan(linitial(node->custom_ps));
	ExecScanReScan(&node->ss);
}

/* In parallel plans, processes divide the companion among themselves. */
static Size
estimate_shared(CustomScanState *node, ParallelContext *pcxt)
{
	OtherState *state = (OtherState *) node;

	return state->rel ? table_parallelscan_estimate(state->rel, node->ss.ps.state->es_snapshot) : 0;
}

static void
share(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	OtherState *state = (OtherState *) node;

	if (state->rel == NULL)
		return;
	table_parallelscan_initialize(state->rel, coordinate, node->ss.ps.state->es_snapshot);
	state->scan = table_beginscan_parallel(state->rel, coordinate);
}

static void
share_again(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	OtherState *state = (OtherState *) node;

	if (state->rel)
		table_parallelscan_reinitialize(state->rel, coordinate);
}

static void
attach(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	OtherState *state = (OtherState *) node;

	if (state->rel)
		state->scan = table_beginscan_parallel(state->rel, coordinate);
}

/* ---- plans ---------------------------------------------------------------- */

static Plan *
plan_node(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist,
		  List *clauses, List *custom_plans)
{
	CustomScan *plan = makeNode(CustomScan);
	NameKind	kind = lsecond_int(path->custom_private);

	plan->scan.plan.targetlist = tlist;
	plan->flags = path->flags;
	plan->custom_private = path->custom_private;
	plan->methods = other_plan_names ? &plan_methods[kind] : &registered_methods;
	if (custom_plans == NIL)
	{
		plan->scan.scanrelid = rel->relid;
		plan->scan.plan.qual = extract_actual_clauses(clauses, false);
		return &plan->scan.plan;
	}
	plan->custom_plans = custom_plans;
	plan->custom_scan_tlist = copyObject(((Plan *) linitial(custom_plans))->targetlist);
	return &plan->scan.plan;
}

/* A path that reads the companion, or hands on what `child` returns. */
static CustomPath *
make_path(RelOptInfo *rel, PathTarget *target, Oid companion, Path *child, bool twice)
{
	CustomPath *path = makeNode(CustomPath);

	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = target;
	path->path.rows = child ? child->rows : rel->rows;
	path->path.parallel_safe = rel->consider_parallel && !other_plan_names &&
		(child == NULL || child->parallel_safe);
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->custom_private = list_make3_int((int) companion, other_names, twice);
	path->methods = &path_methods[other_names];
	if (child)
	{
		path->path.startup_cost = child->startup_cost;
		path->path.total_cost = child->total_cost;
		path->path.pathkeys = child->pathkeys;
		path->path.param_info = child->param_info;
		path->path.parallel_workers = child->parallel_workers;
		path->custom_paths = list_make1(child);
	}
	return path;
}

/* ---- hooks of the planner ------------------------------------------------- */

static Oid
companion_of(Oid relid)
{
	return get_relname_relid(psprintf("%s_elsewhere", get_rel_name(relid)),
							 get_rel_namespace(relid));
}

/* Step 1, with a path in workers where there may be one. */
static void
read_elsewhere(RelOptInfo *rel, Oid companion)
{
	CustomPath *path = make_path(rel, rel->reltarget, companion, NULL, false);

	if (other_scan == SCAN_BESIDE)
	{
		add_path(rel, &path->path);
		return;
	}
	path->path.total_cost = 100 + rel->rows * 0.01;
	rel->pathlist = list_make1(path);
	rel->partial_pathlist = NIL;
	if (path->path.parallel_safe && max_parallel_workers_per_gather > 0)
	{
		path = make_path(rel, rel->reltarget, companion, NULL, false);
		path->path.parallel_aware = true;
		path->path.parallel_workers = 2;
		path->path.total_cost = 50 + rel->rows * 0.005;
		rel->partial_pathlist = list_make1(path);
	}
}

/* Step 1: as a hint for an index. */
static void
read_by_index(PlannerInfo *root, RelOptInfo *rel)
{
	List	   *before = rel->pathlist;
	List	   *partial_before = rel->partial_pathlist;
	ListCell   *lc;

	rel->pathlist = NIL;
	rel->partial_pathlist = NIL;
	create_index_paths(root, rel);
	foreach(lc, rel->pathlist)
		if (((Path *) lfirst(lc))->param_info == NULL)
			return;
	rel->pathlist = before;
	rel->partial_pathlist = partial_before;
}

static void
other_rel_pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	Oid			companion;

	if (previous_rel)
		previous_rel(root, rel, rti, rte);
	if (other_scan == SCAN_OFF || rte->rtekind != RTE_RELATION || rte->inh ||
		!OidIsValid(companion = companion_of(rte->relid)))
		return;
	if (other_scan == SCAN_INDEX)
		read_by_index(root, rel);
	else
		read_elsewhere(rel, companion);
}

static List *
read_through(RelOptInfo *rel, List *paths, bool twice)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, paths)
	{
		Path	   *path = lfirst(lc);

		result = lappend(result, make_path(rel, path->pathtarget, InvalidOid, path, twice));
	}
	return result;
}

/* Step 2: without parameters, which would have to be handed on, too. */
static void
other_join_pathlist(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
					RelOptInfo *innerrel, JoinType jointype, JoinPathExtraData *extra)
{
	List	   *theirs = NIL;
	ListCell   *lc;

	if (previous_join)
		previous_join(root, joinrel, outerrel, innerrel, jointype, extra);
	if (!other_join)
		return;
	foreach(lc, joinrel->pathlist)
	{
		Path	   *path = lfirst(lc);

		if (path->param_info == NULL && !IsA(path, CustomPath))
			path = (Path *) make_path(joinrel, path->pathtarget, InvalidOid, path, false);
		theirs = lappend(theirs, path);
	}
	joinrel->pathlist = theirs;
}

/* Step 3. */
static void
other_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
				  RelOptInfo *output_rel, void *extra)
{
	if (previous_upper)
		previous_upper(root, stage, input_rel, output_rel, extra);
	if (stage == UPPERREL_GROUP_AGG && other_groups && !IS_OTHER_REL(output_rel))
		output_rel->pathlist = read_through(output_rel, output_rel->pathlist, true);
}

void
other_nodes_init(void)
{
	for (int i = 0; i < NAME_KINDS; i++)
	{
		path_methods[i] = (CustomPathMethods) {.CustomName = names[i], .PlanCustomPath = plan_node};
		plan_methods[i] = (CustomScanMethods) {.CustomName = names[i], .CreateCustomScanState = create_state};
		exec_methods[i] = (CustomExecMethods) {
			.CustomName = names[i],
			.BeginCustomScan = begin_node,
			.ExecCustomScan = exec_node,
			.EndCustomScan = end_node,
			.ReScanCustomScan = rescan_node,
			.EstimateDSMCustomScan = estimate_shared,
			.InitializeDSMCustomScan = share,
			.ReInitializeDSMCustomScan = share_again,
			.InitializeWorkerCustomScan = attach
		};
	}
	registered_methods = (CustomScanMethods) {.CustomName = "OtherNode", .CreateCustomScanState = create_state};
	RegisterCustomScanMethods(&registered_methods);

	DefineCustomEnumVariable("other.scan", "Where the rows of some tables stand.", NULL,
							 &other_scan, SCAN_OFF, scan_options, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("other.names", "What nodes are called.", NULL,
							 &other_names, NAMES_OWN, name_options, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("other.plan_names", "Gives those names to the methods of plans, too.", NULL,
							 &other_plan_names, false, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("other.joins", "Puts a node above joins.", NULL,
							 &other_join, false, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("other.groups", "Puts a node above aggregations.", NULL,
							 &other_groups, false, PGC_USERSET, 0, NULL, NULL, NULL);
	previous_rel = set_rel_pathlist_hook;
	set_rel_pathlist_hook = other_rel_pathlist;
	previous_join = set_join_pathlist_hook;
	set_join_pathlist_hook = other_join_pathlist;
	previous_upper = create_upper_paths_hook;
	create_upper_paths_hook = other_upper_paths;
}
