/*-------------------------------------------------------------------------
 *
 * reasons.h
 *	  Why something is not done, or not done in the way that was asked for: all
 *	  reasons there are, for EXPLAIN, DEBUG1 and the counters (reasons.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_REASONS_H
#define HGJ_REASONS_H

#include "compat.h"

#include "engine/engine.h"

/* Why a join got no path of ours; shown at DEBUG1. */
typedef enum HgjDecline
{
	HGJ_DECLINE_NOTHING,
	HGJ_DECLINE_JOIN_TYPE,		/* JOIN_UNIQUE_*, or one we do not know */
	HGJ_DECLINE_NO_HASH_CLAUSE,
	HGJ_DECLINE_FEW_ROWS,
	HGJ_DECLINE_ONE_TIME,		/* a pseudoconstant clause wants a Result above */
	HGJ_DECLINE_ROW_IDENTITY,	/* UPDATE etc. of a partitioned table */
	HGJ_DECLINE_RECORD,			/* columns of type record */
	HGJ_DECLINE_PARAMETERIZED	/* the sides depend on one another */
} HgjDecline;

/* Why an aggregation got no path of ours; shown at DEBUG1. */
typedef enum HgjAggDecline
{
	HGJ_AGG_DECLINE_NOTHING,
	HGJ_AGG_DECLINE_GROUPING_SETS,
	HGJ_AGG_DECLINE_GROUPING_FUNC,
	HGJ_AGG_DECLINE_HASHAGG,
	HGJ_AGG_DECLINE_KIND,
	HGJ_AGG_DECLINE_VOLATILE,
	HGJ_AGG_DECLINE_GROUP_TYPE,
	HGJ_AGG_DECLINE_UNGROUPED,
	HGJ_AGG_DECLINE_RECORD,
	HGJ_AGG_DECLINE_COLUMN,
	HGJ_AGG_DECLINE_WORKERS,
	HGJ_AGG_DECLINE_COMBINE,
	HGJ_AGG_DECLINE_STATES,
	HGJ_AGG_DECLINE_GROUPED,	/* a node of another extension's stands above */
	/* of a table, not of a join */
	HGJ_AGG_DECLINE_NOT_HEAP,
	HGJ_AGG_DECLINE_SAMPLE,
	HGJ_AGG_DECLINE_CHILDREN,
	HGJ_AGG_DECLINE_ONE_TIME,
	HGJ_AGG_DECLINE_SCAN_COLUMN,
	HGJ_AGG_DECLINE_FEW_ROWS,
	HGJ_AGG_DECLINE_INDEX,
	HGJ_AGG_DECLINE_REPLACED	/* by other paths of another extension's */
} HgjAggDecline;

/*
 * Why a node of a plan is not ours, where nothing has been declined, or has no workers;
 * shown by hashgraph_join_why().
 */
typedef enum HgjNotOurs
{
	HGJ_NOT_OURS_ENABLED,		/* hashgraph_join.enabled */
	HGJ_NOT_OURS_HASHJOIN,		/* enable_hashjoin */
	HGJ_NOT_OURS_AGGREGATE,		/* hashgraph_join.aggregate */
	HGJ_NOT_OURS_AGGREGATE_SCANS,	/* hashgraph_join.aggregate_scans */
	HGJ_NOT_OURS_COST,			/* ours was offered, and not chosen */
	HGJ_NOT_OURS_INPUT,			/* an aggregation of what we do not read */
	HGJ_NOT_OURS_DUPLICATES,	/* DISTINCT and the like */
	HGJ_NOT_OURS_NOT_READ,		/* a scan that no node of ours reads */
	HGJ_NOT_OURS_UNKNOWN,		/* PostgreSQL's planner has not planned it */
	HGJ_NOT_OURS_WORKERS		/* it is, in one process */
} HgjNotOurs;

/*
 * What has become of a subquery that returns one value and depends on the row around it, and of
 * what else may be planned in another form than it is written in; shown by hashgraph_join_why().
 */
typedef enum HgjHidden
{
	HGJ_HIDDEN_IS_JOIN,			/* a join, with groups of what it reads, or with its rows */
	HGJ_HIDDEN_OFF,				/* hashgraph_join.rewrite */
	HGJ_HIDDEN_COST,			/* the query costs less as it is written */
	HGJ_HIDDEN_PLACE,			/* levels.c, steps 2 and 3 */
	HGJ_HIDDEN_SHAPE,			/* subquery.c, step 1 */
	HGJ_HIDDEN_ROWS,			/* single.c, step 1 */
	HGJ_HIDDEN_TIES,			/* single.c, steps 2 and 3 */
	HGJ_HIDDEN_CORRELATION,		/* subquery.c, step 2 */
	HGJ_HIDDEN_LEVELS,			/* it depends on a level further out */
	HGJ_HIDDEN_AGGREGATE,		/* subquery.c, step 3 */
	HGJ_HIDDEN_VOLATILE,		/* step 4 */
	HGJ_HIDDEN_RAISES,
	HGJ_HIDDEN_READS,			/* proofs.c, step 3 */
	HGJ_HIDDEN_PERMISSION,
	/* of GROUP BY, if its groups may be made before a join (eager.c) */
	HGJ_HIDDEN_EARLY,			/* they are */
	HGJ_HIDDEN_LATE,			/* the query costs less as it is written */
	HGJ_HIDDEN_LATE_OFF,		/* hashgraph_join.rewrite */
	/* of a WITH query that is read several times (repeated.c) */
	HGJ_HIDDEN_REPEATED,		/* computed at each place */
	HGJ_HIDDEN_KEPT,			/* steps 1 to 4 */
	HGJ_HIDDEN_KEPT_COST,		/* the query costs less as it is written */
	HGJ_HIDDEN_KEPT_OFF			/* hashgraph_join.rewrite */
} HgjHidden;

/*
 * Why the engine that runs is not the one that was asked for.  (That memory
 * was short shows as several passes, and what a table could not be as its
 * notes.)
 */
typedef enum HgjFallback
{
	HGJ_FALLBACK_NONE,
	HGJ_FALLBACK_ENGINE,		/* it could not be opened */
	HGJ_FALLBACK_DEVICE_MEMORY, /* the device has too little of it */
	HGJ_FALLBACK_DEVICE_FAILED	/* while it was at work */
} HgjFallback;

#define HGJ_LAST_FALLBACK	HGJ_FALLBACK_DEVICE_FAILED

/* Why there is no pipeline; EXPLAIN shows it. */
typedef enum HgjDeviceReason
{
	HGJ_DEVICE_FITS,
	/* the plan, at executor start */
	HGJ_DEVICE_PARALLEL,
	HGJ_DEVICE_JOIN_TYPE,
	HGJ_DEVICE_KEY,
	HGJ_DEVICE_QUAL,
	HGJ_DEVICE_SOURCE,
	HGJ_DEVICE_VOLATILE,
	HGJ_DEVICE_RAISES,
	HGJ_DEVICE_ORDER,
	HGJ_DEVICE_COLUMN,
	HGJ_DEVICE_EXPRESSION,
	HGJ_DEVICE_AGGREGATE,
	HGJ_DEVICE_GROUP_KEY,
	HGJ_DEVICE_SIZE,
	/* a run: the host takes over, if nothing of the batch at hand has left */
	HGJ_DEVICE_ENGINE,
	HGJ_DEVICE_PASSES,
	HGJ_DEVICE_TABLE,
	HGJ_DEVICE_ROW,
	HGJ_DEVICE_MEMORY,
	HGJ_DEVICE_GROUPS,
	HGJ_DEVICE_FAILED
} HgjDeviceReason;

#define HGJ_LAST_DEVICE_REASON	HGJ_DEVICE_FAILED

/* Why a side is read by tuples and not faster; EXPLAIN shows it. */
typedef enum HgjSourceReason
{
	HGJ_SOURCE_FASTEST,			/* it is not, or nothing is faster */
	HGJ_SOURCE_SETTING,			/* hashgraph_join.source = tuples */
	HGJ_SOURCE_RECHECK,			/* inside EvalPlanQual */
	HGJ_SOURCE_OTHER_CHILD,		/* not a sequential scan, not our join */
	HGJ_SOURCE_COMPUTED,		/* a batch node has values that it computes by row */
	HGJ_SOURCE_REPLACED,		/* because another extension did not want the scan */
	HGJ_SOURCE_NOT_HEAP,		/* a table access method of somebody else's */
	HGJ_SOURCE_SNAPSHOT,		/* not one that sees whole transactions */
	HGJ_SOURCE_EXPRESSION,		/* the child's target list computes something */
	HGJ_SOURCE_SYSTEM_COLUMN,	/* xmin and the like, or a whole row */
	HGJ_SOURCE_KEY_EXPRESSION,	/* a join key is more than a column */
	HGJ_SOURCE_PASSES			/* the build side did not fit into memory */
} HgjSourceReason;

/* From here on a table, or a join, might have been read faster. */
#define HGJ_SOURCE_FIRST_OBSTACLE	HGJ_SOURCE_NOT_HEAP

/* What was done because memory was short. */
typedef enum HgjMemoryReason
{
	HGJ_MEMORY_PARTITIONS,
	HGJ_MEMORY_DEVICE_PARTITIONS,
	HGJ_MEMORY_PASSES,
	HGJ_MEMORY_BITS,
	HGJ_MEMORY_SHRUNK,
	HGJ_MEMORY_DICTIONARY,
	HGJ_MEMORY_GROUPS,
	HGJ_MEMORY_ROUNDS,
	HGJ_MEMORY_REASONS
} HgjMemoryReason;

extern const char *hgj_decline_text(HgjDecline decline);
extern const char *hgj_agg_decline_text(HgjAggDecline decline);
extern const char *hgj_not_ours_text(HgjNotOurs reason);
extern const char *hgj_hidden_text(HgjHidden hidden);
extern const char *hgj_fallback_text(HgjFallback fallback);
extern const char *hgj_device_reason_text(HgjDeviceReason reason);
extern const char *hgj_source_reason_text(HgjSourceReason reason);

/*
 * Reasons of fallbacks, numbered for the counters: those of engines, of pipelines
 * (of both, the first stands for none), of memory, and of tables (HgjNote bits).
 */
#define HGJ_FIRST_ENGINE_REASON		0
#define HGJ_FIRST_PIPELINE_REASON	(HGJ_FIRST_ENGINE_REASON + HGJ_LAST_FALLBACK + 1)
#define HGJ_FIRST_MEMORY_REASON		(HGJ_FIRST_PIPELINE_REASON + HGJ_LAST_DEVICE_REASON + 1)
#define HGJ_FIRST_TABLE_REASON		(HGJ_FIRST_MEMORY_REASON + HGJ_MEMORY_REASONS)
#define HGJ_TABLE_REASONS			9	/* HgjNote bits */

/* The names of one: its kind and its reason, or false if that number means nothing. */
extern bool hgj_fallback_reason(int i, const char **kind, const char **reason);

#endif							/* HGJ_REASONS_H */
