/*-------------------------------------------------------------------------
 *
 * agg_path.h
 *	  What agg_path.c and agg_partial.c share: how a path of a HashGraphAgg comes
 *	  about.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_AGG_PATH_H
#define HGJ_AGG_PATH_H

#include "compat.h"

#include "base/reasons.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"

/* What a HashGraphAgg computes. */
typedef struct HgjAggContents
{
	List	   *group_exprs;
	List	   *group_operators;	/* OidList: equality, hashable */
	int			ntelling;		/* number of leading group columns that tell groups apart */
	List	   *aggrefs;		/* distinct ones */
	List	   *loose;			/* columns outside group columns and aggregates */
	bool		grouping_func;	/* GROUPING() is called */
	List	   *having;
	AggSplit	split;
	double		exchanged_groups;	/* that workers divide by hash; 0: they do not */
	int			exchanged_keys; /* number of leading columns by whose hash; 0: ntelling */
	AggClauseCosts costs;		/* set by whoever makes a path of it */
	double		groups;			/* how many there will be; 0: as the query's
								 * GROUP BY says */
	List	   *functions;		/* OidList and Lists of arguments: in place of those */
	List	   *args;			/* of the aggregates (agg_distinct.c); or NIL */
} HgjAggContents;

/* agg_contents.c */
extern HgjAggDecline hgj_agg_collect(PlannerInfo *root,
									 HgjAggContents *contents, List *exprs,
									 List *having, AggSplit split, List *tlist);

extern bool hgj_aggregates_are_known(const HgjAggContents *contents);

/* agg_dependent.c */
extern void hgj_find_dependent_columns(PlannerInfo *root, HgjAggContents *contents,
									   int loose);

/* agg_path.c */
extern double hgj_number_of_groups(PlannerInfo *root, double rows, List *tlist);
extern List *hgj_complete_agg_paths(PlannerInfo *root, List *inputs,
									RelOptInfo *output_rel,
									GroupPathExtraData *extra,
									double exchanged_groups,
									HgjAggDecline *decline);
extern CustomPath *hgj_make_agg_path(PlannerInfo *root, RelOptInfo *rel,
									 PathTarget *target,
									 const HgjAggContents *contents,
									 Path *child, List *tlist,
									 HgjAggDecline *decline);

extern Path *hgj_gather_groups(PlannerInfo *root, RelOptInfo *output_rel, Path *path);
extern void hgj_offer_without_gather(PlannerInfo *root, RelOptInfo *output_rel,
									 const List *paths);

/* agg_distinct.c */
extern List *hgj_distinct_agg_paths(PlannerInfo *root, List *inputs,
									List *partial_inputs,
									RelOptInfo *output_rel,
									GroupPathExtraData *extra);

/* agg_scan.c */
extern List *hgj_paths_to_aggregate(PlannerInfo *root, RelOptInfo *rel,
									bool partial, HgjAggDecline *decline);

/* agg_cost.c */
extern Cost hgj_cost_agg(PlannerInfo *root, Path *path, const Path *child,
						 const HgjAggContents *contents, double groups, bool in_pipeline);
extern int32 hgj_expr_width(PlannerInfo *root, Node *expr);
extern bool hgj_states_outgrow_memory(PlannerInfo *root, const RelOptInfo *rel,
									  const Path *child,
									  const HgjAggContents *contents);
extern Cost hgj_agg_device_gain(PlannerInfo *root, const Path *child,
								const HgjAggContents *contents, double kept, double groups);

/* having_estimate.c */
extern const Aggref *hgj_compared_aggregate(const OpExpr *clause, const Node **value,
											bool *turned);
extern Selectivity hgj_having_selectivity(PlannerInfo *root, List *having, double rows,
										  double groups);

/* pipeline_path.c */
extern Path *hgj_pipeline_child(PlannerInfo *root, Path *child,
								const HgjAggContents *contents, double kept,
								Cost agg_gain, Cost *gain, bool *planned);
extern double hgj_pipeline_part_kept(PlannerInfo *root, const Path *child,
									 const HgjAggContents *contents);

/* agg_partial.c */
extern bool hgj_aggregates_in_parts(PlannerInfo *root,
									RelOptInfo *input_rel,
									const GroupPathExtraData *extra);
extern List *hgj_partial_agg_paths(PlannerInfo *root, RelOptInfo *input_rel,
								   RelOptInfo *output_rel,
								   GroupPathExtraData *extra,
								   HgjAggDecline *decline);

#endif							/* HGJ_AGG_PATH_H */
