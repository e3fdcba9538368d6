/*-------------------------------------------------------------------------
 *
 * planner.h
 *	  What the planner's files share, and the shape of the CustomScan that
 *	  they hand to the executor.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_PLANNER_H
#define HGJ_PLANNER_H

#include "compat.h"

#include "access/htup.h"
#include "base/agg_format.h"
#include "base/plan_format.h"
#include "columns/keys.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "optimizer/planner.h"

/*
 * custom_private of the CustomPath, by position.  The restriction list holds
 * RestrictInfos as they came; the hash clauses are among them.
 */
#define HGJ_PATH_RESTRICTLIST	0
#define HGJ_PATH_HASHCLAUSES	1
#define HGJ_PATH_FACTS			2	/* IntList of HgjPathFact */

typedef enum HgjPathFact
{
	HGJ_PATH_JOIN_TYPE,
	HGJ_PATH_INNER_UNIQUE,
	HGJ_PATH_DEVICE,			/* HgjPlanDevice */
	HGJ_PATH_ALONE,				/* what its costs are lower for being on a GPU */
	HGJ_PATH_IN_PIPELINE,		/* what they could be in a pipeline on one */
	HGJ_PATH_IN_BATCHES,		/* may the outer side be? */
	HGJ_PATH_EMITS,				/* are its rows charged for? */
	HGJ_PATH_EMITTED,			/* for so many of 10^9 outer rows only, or -1 */
	HGJ_PATH_SHARED				/* do all processes build one table together? */
} HgjPathFact;

/* join_path.c */
#define HGJ_FORCE_DISCOUNT	1e-6	/* what force multiplies a join's costs by */
extern void hgj_install_join_hook(void);

/* key_estimates.c */
extern void hgj_estimate_anti_joins(PlannerInfo *root, const RelOptInfo *rel);
extern void hgj_install_key_estimates(void);

/* index_age.c */
extern bool hgj_index_entry_is_older(HeapTuple entry);
extern bool hgj_index_is_older(Oid index);

/* path_facts.c */
extern bool hgj_has_one_time_filter(PlannerInfo *root, List *restrictlist);
extern const Path *hgj_below_projections(const Path *path);
extern const Path *hgj_below_joins(const Path *path);
extern double hgj_parallel_divisor(const Path *path);
extern bool hgj_is_join_path(const Path *path);
extern bool hgj_is_agg_path(const Path *path);
extern bool hgj_is_scan_path(const Path *path);
extern const Path *hgj_only_subpath(const Path *path);
extern bool hgj_has_foreign_paths(PlannerInfo *root, const RelOptInfo *rel);
extern bool hgj_is_grouped_by_others(const RelOptInfo *grouped);
extern Node *hgj_key_of_side(const RestrictInfo *rinfo, const RelOptInfo *rel);
extern bool hgj_uses_device(const Path *path);
extern List *hgj_agg_inputs(const Path *path);
extern List *hgj_live_partitions(const RelOptInfo *rel);
extern int	hgj_path_fact(const Path *path, HgjPathFact fact);
extern bool hgj_path_wants_device(const Path *path);
extern char *hgj_relids_names(PlannerInfo *root, Relids relids);

/* A path, and what it costs less below a join of ours: hgj_feed_saving(). */
typedef struct HgjFedPath
{
	Path	   *path;
	Cost		saving;
} HgjFedPath;

/* What the costs of all paths of one pair of relations have in common. */
typedef struct HgjJoinCosts
{
	JoinType	jointype;
	bool		one_per_outer;	/* the first match of an outer row will do */
	const SemiAntiJoinFactors *semifactors;
	Cost		key_cost;		/* of a row, beside the settings' */
	double		nwords;			/* 64-bit words of them */
	bool		outer_in_batches;	/* the sides' keys are all columns */
	bool		inner_in_batches;
	bool		residual;		/* there are clauses beside the keys */
	bool		opaque;			/* a key's matches are rechecked by its operator */
	bool		recheck;		/* residual clauses or opaque keys */
	bool		matches_raise;	/* hgj_matches_raise() of the residual clauses */
	List	   *hashclauses;	/* the keys */
	bool		inner_unique;
	bool		emits;			/* are rows charged for: of a complete path, */
	bool		partial_emits;	/* of a partial one */
	int			emitted;		/* HGJ_PATH_EMITTED */
	bool		shared;			/* HGJ_PATH_SHARED */
	QualCost	match;			/* of what is evaluated for each candidate */
	Selectivity selectivity;	/* of the hash clauses alone */
	double		part_read;		/* of the outer side, until all inner rows are found */
	HgjFedPath	outer;			/* those that most pairs consist of; or NULL */
	HgjFedPath	inner;
} HgjJoinCosts;

/*
 * What joining two paths costs, without the rows that are returned, and what a
 * GPU saves of that: less than nothing, if it does not.
 */
typedef struct HgjPairCosts
{
	Cost		startup;
	Cost		total;
	bool		device;			/* these are the costs of a GPU */
	Cost		alone;			/* so much has been taken off them, or 0 */
	Cost		in_pipeline;	/* besides opening the GPU */
} HgjPairCosts;

/* cost.c */
/* Of startup_cost, for what takes the batches of a join, or of a scan. */
#define HGJ_CHAINED_STARTUP		0.1

/*
 * What a pipeline on threads costs by itself, and each of its joins: messages, and threads that
 * wake up; and a group that it returns: it is merged, sent, and taken in by the session.
 */
#define HGJ_THREADS_COST		60.0
#define HGJ_THREADS_JOIN_COST	10.0
#define HGJ_THREADS_GROUP_COST	0.02

/*
 * What a join costs whose rows threads choose: its table is sent to them, and they wait while the
 * session takes in what has come out; and each row that comes out.
 */
#define HGJ_THREADS_ROWS_COST	700.0
#define HGJ_THREADS_ROW_COST	0.1

/* The least part of a scan's rows that is kept, for threads. */
#define HGJ_THREADS_LEAST_KEPT	0.5

#define HGJ_DEVICE_PIPE_LAUNCHES	6	/* to a GPU, of a join in a pipeline */

extern double hgj_pages_of(double rows, int width);
extern void hgj_cost_key(HgjJoinCosts *costs, const HgjKeyPair *pair);
extern void hgj_cost_clauses(PlannerInfo *root, HgjJoinCosts *costs,
							 RelOptInfo *outerrel, RelOptInfo *innerrel,
							 List *restrictlist);
extern Cost hgj_least_startup(void);
extern Cost hgj_threads_saving(Cost work);
extern Cost hgj_side_transfer_cost(const Path *inner, int nwords);
extern double hgj_part_chosen(PlannerInfo *root, const Path *scan, List *hashclauses);
extern bool hgj_query_has_row_clause(PlannerInfo *root);
extern bool hgj_fits_shared(const Path *outer, const Path *inner);
extern void hgj_cost_join(PlannerInfo *root, const HgjJoinCosts *costs,
						  const Path *outer, const Path *inner, double rows,
						  HgjPairCosts *pair);

/* single_rows.c */
extern void hgj_install_single_rows_hook(void);
extern bool hgj_matches_raise(const PlannerInfo *root, const List *restrictlist,
							  const List *hashclauses);
extern Cost hgj_single_rows_cost(PlannerInfo *root, const HgjJoinCosts *costs,
								 const Path *outer, const Path *inner, double candidates);

/* group_filter.c */
typedef struct HgjGroupSaving
{
	Cost		rows;			/* cost of finding their groups, saved */
	Cost		groups;			/* cost of returning these, saved */
} HgjGroupSaving;

extern HgjGroupSaving hgj_group_saving(const HgjJoinCosts *costs, const Path *outer,
									   const Path *inner);

/* part_read.c */
extern double hgj_part_read(PlannerInfo *root, const HgjJoinCosts *costs,
							RelOptInfo *outerrel, RelOptInfo *innerrel,
							const SemiAntiJoinFactors *factors);

/* join_keys.c */
extern void hgj_collect_keys(PlannerInfo *root, List *restrictlist, RelOptInfo *joinrel,
							 RelOptInfo *outerrel, RelOptInfo *innerrel,
							 JoinType jointype, HgjJoinCosts *costs);

/* feed_cost.c */

/*
 * What a row takes from a worker to the leader: parallel_tuple_cost says more, to
 * keep small queries from going parallel, or nothing, to make others.
 */
#define HGJ_GATHER_TUPLE_COST	0.02

extern bool hgj_side_in_batches(List *hashclauses, const RelOptInfo *rel);
extern int	hgj_emitted_part(JoinType jointype,
							 const JoinPathExtraData *extra);
extern Cost hgj_emission_cost(const Path *path);
extern Cost hgj_feed_saving(PlannerInfo *root, const Path *path,
							bool in_batches);
extern Cost hgj_page_faults(PlannerInfo *root, const Path *path);
extern Cost hgj_lookup_page_faults(PlannerInfo *root, const Path *path);
extern double hgj_part_kept(PlannerInfo *root, const RelOptInfo *rel);
extern Cost hgj_agg_feed_saving(PlannerInfo *root, const Path *path);
extern HgjFedPath hgj_cheapest_fed(PlannerInfo *root, RelOptInfo *rel,
								   bool in_batches, bool partial);

/* worker_cost.c */
extern Cost hgj_worker_charge(PlannerInfo *root, const Path *path);
extern Cost hgj_workers_charged(PlannerInfo *root, const Path *path);
extern Cost hgj_uncharged_workers(PlannerInfo *root, const Path *path);
extern void hgj_weigh_workers(PlannerInfo *root, const RelOptInfo *rel,
							  const List *paths);
extern void hgj_weigh_joins(PlannerInfo *root, const RelOptInfo *joinrel,
							const Path *ours);

/* table_scan.c */

/*
 * The part of a table's rows for which an index is better than reading all, and the
 * same where all columns that are read are kept in memory.
 */
#define HGJ_INDEX_PART		0.02
#define HGJ_KEPT_INDEX_PART	0.004

extern Path *hgj_table_scan(PlannerInfo *root, const RelOptInfo *rel, bool partial);
extern bool hgj_scan_is_replaced(PlannerInfo *root, RelOptInfo *rel);
extern void hgj_install_scan_hook(void);

/* stock_cost.c */
extern void hgj_drop_dearer_workers(PlannerInfo *root, RelOptInfo *joinrel);
extern double hgj_builds_of(const Path *path, const Path *inner);
extern Cost hgj_uncharged_lookups(const Path *path);
extern bool hgj_has_uncharged_lookups(List *paths);
extern List *hgj_without_undercharged(PlannerInfo *root, List *paths,
									  const CustomPath *ours);
extern bool hgj_ours_are_too_dear(const RelOptInfo *joinrel, Cost least);
extern bool hgj_limit_is_cheaper(const PlannerInfo *root, const RelOptInfo *joinrel,
								 Cost least);
extern Cost hgj_uncharged_groups(const Path *path);
extern List *hgj_without_dearer_readers(PlannerInfo *root, List *paths,
										List *ours);
extern List *hgj_without_slower_process(PlannerInfo *root, List *paths,
										List *others);
extern void hgj_aggregate_gathered(PlannerInfo *root, RelOptInfo *output_rel,
								   const RelOptInfo *input_rel);

/* pipeline_path.c, besides agg_path.h */
extern double hgj_pipeline_scan_kept(PlannerInfo *root, const Path *scan);
extern Cost hgj_chain_saving(PlannerInfo *root, const Path *path, double kept);
extern Cost hgj_pipeline_would_save(PlannerInfo *root, const Path *path);

/* pipeline_chains.c */
extern void hgj_install_chains_hook(void);
extern bool hgj_has_chains(const PlannerInfo *root);
extern Path *hgj_chain_of(PlannerInfo *root, const RelOptInfo *rel);
extern void hgj_keep_chain(PlannerInfo *root, const RelOptInfo *outerrel, Path *path);
extern Path *hgj_chain_to_aggregate(PlannerInfo *root, RelOptInfo *rel);

/* lookup_cost.c */
extern bool hgj_lookups_are_better(PlannerInfo *root, RelOptInfo *joinrel,
								   const Path *ours);
extern void hgj_prefer_lookups(PlannerInfo *root, RelOptInfo *joinrel,
							   RelOptInfo *outerrel, RelOptInfo *innerrel,
							   JoinType jointype, JoinPathExtraData *extra);

/* plan.c */
extern const CustomPathMethods hgj_path_methods;
extern List *hgj_order_clauses(PlannerInfo *root, List *clauses);
extern List *hgj_append_entry(List *tlist, Expr *expr);
extern List *hgj_append_columns(List *tlist, List *child_tlist);

/* nulling.c */
extern void hgj_unify_nulling(CustomScan *cscan, List *returned,
							  List *after_join);

/*
 * agg_path.c; custom_private of the CustomPath, by position.  Expressions are
 * as they were before setrefs.c.
 */
#define HGJ_AGG_PATH_GROUP_EXPRS		0
#define HGJ_AGG_PATH_GROUP_OPERATORS	1	/* OidList */
#define HGJ_AGG_PATH_AGGREFS			2
#define HGJ_AGG_PATH_HAVING				3
#define HGJ_AGG_PATH_FACTS				4	/* IntList: what HGJ_AGG_SPLIT has, and
											 * estimates (agg_format.h) */
#define HGJ_AGG_PATH_SECOND				5	/* functions and arguments in place of the
											 * aggregates', or NIL (agg_distinct.c) */
#define HGJ_AGG_PATH_ROWS_COST			6	/* IntList: what the rows cost, from where
											 * they are read to their groups */
extern void hgj_install_agg_hook(void);
extern bool hgj_aggregation_takes(PlannerInfo *root, RelOptInfo *joinrel);

/* agg_contents.c */
extern bool hgj_aggregate_supported(const Aggref *aggref);
extern bool hgj_aggregate_is_known(const Aggref *aggref);

/* agg_plan.c */
extern const CustomPathMethods hgj_agg_path_methods;

/* For a planner hook: the hook before it, or else PostgreSQL's planner. */
static inline PlannedStmt *
hgj_plan_by(planner_hook_type previous, Query *parse, const char *query_string,
			int cursorOptions, ParamListInfo boundParams)
{
	return (previous ? previous : standard_planner) (parse, query_string, cursorOptions,
													  boundParams);
}

/* require.c */
extern void hgj_require_note_join(void);
extern void hgj_require_note_aggregate(void);
extern void hgj_require_note_scan(void);
extern void hgj_install_require_hook(void);

#endif							/* HGJ_PLANNER_H */
