/*-------------------------------------------------------------------------
 *
 * guc.h
 *	  The settings of hashgraph_join (guc.c defines and documents them).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_GUC_H
#define HGJ_GUC_H

#include "postgres.h"

typedef enum HgjEngineChoice
{
	HGJ_ENGINE_AUTO,
	HGJ_ENGINE_CPU,
	HGJ_ENGINE_CUDA
} HgjEngineChoice;

typedef enum HgjRequire
{
	HGJ_REQUIRE_OFF,
	HGJ_REQUIRE_JOIN,
	HGJ_REQUIRE_AGGREGATE,		/* and HashGraphAgg where it could be */
	HGJ_REQUIRE_CUDA			/* HashGraphJoin, and that on a GPU */
} HgjRequire;

typedef enum HgjGpuServer
{
	HGJ_GPU_SERVER_OFF,
	HGJ_GPU_SERVER_AUTO
} HgjGpuServer;

typedef enum HgjSourceChoice
{
	HGJ_SOURCE_AUTO,
	HGJ_SOURCE_TUPLES,
	HGJ_SOURCE_PAGES_REQUIRED	/* an error where a SeqScan is not read so */
} HgjSourceChoice;

/* How the build side's rest is joined when memory is full. */
typedef enum HgjSpillChoice
{
	HGJ_SPILL_AUTO,
	HGJ_SPILL_PARTITIONS,		/* wherever rows have more than one hash */
	HGJ_SPILL_PASSES
} HgjSpillChoice;

/* Are columns that are read often loaded by themselves? */
typedef enum HgjLoadingChoice
{
	HGJ_LOADING_AUTO,
	HGJ_LOADING_OFF
} HgjLoadingChoice;

/* How the groups of the processes of a parallel plan become one. */
typedef enum HgjAggregateChoice
{
	HGJ_AGGREGATE_AUTO,
	HGJ_AGGREGATE_PARTIAL,		/* above the Gather */
	HGJ_AGGREGATE_EXCHANGE		/* divided among them by hash, if they can be */
} HgjAggregateChoice;

/* Whose table the processes of a parallel plan probe. */
typedef enum HgjParallelChoice
{
	HGJ_PARALLEL_AUTO,
	HGJ_PARALLEL_PRIVATE,		/* its own, which each builds of all rows */
	HGJ_PARALLEL_SHARED			/* one that they build together, if they can */
} HgjParallelChoice;

/* What becomes of subqueries that are joins (rewrite/choose.c). */
typedef enum HgjRewriteChoice
{
	HGJ_REWRITE_OFF,			/* they stay subqueries */
	HGJ_REWRITE_ON,				/* joins, where these cost less */
	HGJ_REWRITE_FORCE			/* joins */
} HgjRewriteChoice;

extern double hgj_agg_tuple_cost;
extern bool hgj_aggregate;
extern bool hgj_aggregate_scans;
extern bool hgj_dictionaries;
extern int	hgj_build;
extern double hgj_build_tuple_cost;
extern int	hgj_chunk_outer_rows;
extern int	hgj_chunk_rows;
extern char *hgj_cuda_library;
extern int	hgj_column_loading;
extern int	hgj_column_memory;
extern double hgj_device_launch_cost;
extern int	hgj_device_column_memory;
extern bool hgj_device_column_prewarm;
extern int	hgj_device_memory_limit;
extern int	hgj_device_side_rows;
extern double hgj_device_startup_cost;
extern int	hgj_device_timeout;
extern double hgj_device_transfer_cost;
extern double hgj_emit_tuple_cost;
extern bool hgj_enabled;
extern int	hgj_engine;
extern int	hgj_filter;
extern bool hgj_force;
extern int	hgj_gpu_server;
extern int	hgj_gpu_server_timeout;
extern int	hgj_gpu_staging_memory;
extern int	hgj_threads;
extern int	hgj_threads_nice;
extern bool hgj_load_evicts;
extern int	hgj_max_device_memory;
extern int	hgj_min_rows;
extern double hgj_page_attribute_cost;
extern double hgj_page_tuple_cost;
extern int	hgj_probe;
extern double hgj_probe_tuple_cost;
extern int	hgj_processors;
extern int	hgj_require;
extern int	hgj_rewrite;
extern int	hgj_segments;
extern int	hgj_source;
extern int	hgj_spill;
extern int	hgj_parallel_aggregate;
extern int	hgj_parallel_build;
extern double hgj_startup_cost;
extern double hgj_worker_time;
extern int	hgj_stats_databases;

extern void hgj_define_settings(void);

#endif							/* HGJ_GUC_H */
