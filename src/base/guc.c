/*-------------------------------------------------------------------------
 *
 * guc.c
 *	  Every setting of hashgraph_join, sorted by name.
 *
 * The variables are owned by PostgreSQL's GUC machinery from
 * hgj_define_settings() on, until the process ends.  docs/settings.md is the
 * user's page about them; keep the two alike.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <float.h>
#include <limits.h>

#include "base/guc.h"
#include "engine/engine.h"
#include "miscadmin.h"
#include "utils/guc.h"

/* Kilobytes: the allocator of shared memory counts bytes with 40 bits (utils/dsa.h). */
#define MOST_COLUMN_MEMORY	(1024 * 1024 * 1024)

double		hgj_agg_tuple_cost = 0.0003;
bool		hgj_aggregate = true;
bool		hgj_aggregate_scans = true;
bool		hgj_dictionaries = true;
int			hgj_build = HGJ_BUILD_AUTO;
double		hgj_build_tuple_cost = 0.004;
int			hgj_chunk_outer_rows = 0;
int			hgj_chunk_rows = 0;
char	   *hgj_cuda_library = NULL;
int			hgj_column_loading = HGJ_LOADING_AUTO;
int			hgj_column_memory = 0;
int			hgj_gpu_server = HGJ_GPU_SERVER_AUTO;
int			hgj_gpu_server_timeout = 60000;
int			hgj_gpu_staging_memory = 128 * 1024;
int			hgj_threads = -1;
int			hgj_threads_nice = 0;
double		hgj_device_launch_cost = 50.0;
int			hgj_device_column_memory = -1;
bool		hgj_device_column_prewarm = true;
int			hgj_device_memory_limit = 0;
int			hgj_device_side_rows = 20000;
double		hgj_device_startup_cost = 80000.0;
int			hgj_device_timeout = 60000;
double		hgj_device_transfer_cost = 0.05;
double		hgj_emit_tuple_cost = 0.008;
bool		hgj_enabled = true;
int			hgj_engine = HGJ_ENGINE_AUTO;
int			hgj_filter = HGJ_FILTER_AUTO;
bool		hgj_force = false;
bool		hgj_load_evicts = false;
int			hgj_max_device_memory = -1;
int			hgj_min_rows = 10000;
double		hgj_page_attribute_cost = 0.0005;
double		hgj_page_tuple_cost = 0.001;
int			hgj_probe = HGJ_PROBE_AUTO;
double		hgj_probe_tuple_cost = 0.002;
int			hgj_processors = 0;
int			hgj_require = HGJ_REQUIRE_OFF;
int			hgj_rewrite = HGJ_REWRITE_ON;
int			hgj_segments = HGJ_SEGMENTS_AUTO;
int			hgj_source = HGJ_SOURCE_AUTO;
int			hgj_spill = HGJ_SPILL_AUTO;
int			hgj_parallel_aggregate = HGJ_AGGREGATE_AUTO;
int			hgj_parallel_build = HGJ_PARALLEL_AUTO;
double		hgj_startup_cost = 250.0;
double		hgj_worker_time = -1;
int			hgj_stats_databases = 100;

/* More than that no machine has. */
#define HGJ_MOST_THREADS	1024

static const struct config_enum_entry build_options[] = {
	{"auto", HGJ_BUILD_AUTO, false},
	{"v1", HGJ_BUILD_V1, false},
	{"v2", HGJ_BUILD_V2, false},
	{"sort", HGJ_BUILD_SORT, false},
	{"direct", HGJ_BUILD_DIRECT, false},
	{NULL, 0, false}
};

static const struct config_enum_entry engine_options[] = {
	{"auto", HGJ_ENGINE_AUTO, false},
	{"cpu", HGJ_ENGINE_CPU, false},
	{"cuda", HGJ_ENGINE_CUDA, false},
	{NULL, 0, false}
};

static const struct config_enum_entry loading_options[] = {
	{"auto", HGJ_LOADING_AUTO, false},
	{"off", HGJ_LOADING_OFF, false},
	{NULL, 0, false}
};

static const struct config_enum_entry filter_options[] = {
	{"auto", HGJ_FILTER_AUTO, false},
	{"on", HGJ_FILTER_ON, false},
	{"off", HGJ_FILTER_OFF, false},
	{NULL, 0, false}
};

static const struct config_enum_entry gpu_server_options[] = {
	{"auto", HGJ_GPU_SERVER_AUTO, false},
	{"off", HGJ_GPU_SERVER_OFF, false},
	{NULL, 0, false}
};

static const struct config_enum_entry probe_options[] = {
	{"auto", HGJ_PROBE_AUTO, false},
	{"standard", HGJ_PROBE_STANDARD, false},
	{"binned", HGJ_PROBE_BINNED, false},
	{NULL, 0, false}
};

static const struct config_enum_entry require_options[] = {
	{"off", HGJ_REQUIRE_OFF, false},
	{"join", HGJ_REQUIRE_JOIN, false},
	{"aggregate", HGJ_REQUIRE_AGGREGATE, false},
	{"cuda", HGJ_REQUIRE_CUDA, false},
	{NULL, 0, false}
};

static const struct config_enum_entry rewrite_options[] = {
	{"off", HGJ_REWRITE_OFF, false},
	{"on", HGJ_REWRITE_ON, false},
	{"force", HGJ_REWRITE_FORCE, false},
	{NULL, 0, false}
};

static const struct config_enum_entry segments_options[] = {
	{"auto", HGJ_SEGMENTS_AUTO, false},
	{"csr", HGJ_SEGMENTS_CSR, false},
	{"ellpack", HGJ_SEGMENTS_ELLPACK, false},
	{"sliced", HGJ_SEGMENTS_SLICED, false},
	{NULL, 0, false}
};

static const struct config_enum_entry source_options[] = {
	{"auto", HGJ_SOURCE_AUTO, false},
	{"tuples", HGJ_SOURCE_TUPLES, false},
	{"pages", HGJ_SOURCE_PAGES_REQUIRED, false},
	{NULL, 0, false}
};

static const struct config_enum_entry spill_options[] = {
	{"auto", HGJ_SPILL_AUTO, false},
	{"partitions", HGJ_SPILL_PARTITIONS, false},
	{"passes", HGJ_SPILL_PASSES, false},
	{NULL, 0, false}
};

static const struct config_enum_entry parallel_aggregate_options[] = {
	{"auto", HGJ_AGGREGATE_AUTO, false},
	{"partial", HGJ_AGGREGATE_PARTIAL, false},
	{"exchange", HGJ_AGGREGATE_EXCHANGE, false},
	{NULL, 0, false}
};

static const struct config_enum_entry parallel_build_options[] = {
	{"auto", HGJ_PARALLEL_AUTO, false},
	{"private", HGJ_PARALLEL_PRIVATE, false},
	{"shared", HGJ_PARALLEL_SHARED, false},
	{NULL, 0, false}
};

/*
 * ---- the settings, one table a type ----
 *
 * What has no context of its own any user may set: such a setting bears on his own
 * queries, and what it can do to others has a bound that he cannot move.
 */

/* What the planner reckons with: from 0 on, and EXPLAIN (SETTINGS) shows it. */
static const struct
{
	const char *name;
	const char *says;
	const char *more;
	double	   *variable;
	double		initial;
}			costs[] = {
	{"hashgraph_join.agg_tuple_cost",
		"Sets the planner's estimate of the cost of one group column or aggregate of a HashGraphAgg for one row.",
		NULL,
		&hgj_agg_tuple_cost, 0.0003},
	{"hashgraph_join.build_tuple_cost",
		"Sets the planner's estimate of the cost of adding one row to a HashGraph.",
		"To one of a million rows: smaller ones cost less, larger ones more.",
		&hgj_build_tuple_cost, 0.004},
	{"hashgraph_join.device_launch_cost",
		"Sets the planner's estimate of the fixed cost of one batch on a GPU.",
		NULL,
		&hgj_device_launch_cost, 50.0},
	{"hashgraph_join.device_startup_cost",
		"Sets the planner's estimate of the cost of a session's first use of a GPU.",
		NULL,
		&hgj_device_startup_cost, 80000.0},
	{"hashgraph_join.device_transfer_cost",
		"Sets the planner's estimate of the cost of moving one kilobyte to or from a GPU.",
		"What the GPU does with it is included.",
		&hgj_device_transfer_cost, 0.05},
	{"hashgraph_join.emit_tuple_cost",
		"Sets the planner's estimate of the cost of one match of a HashGraphJoin.",
		NULL,
		&hgj_emit_tuple_cost, 0.008},
	{"hashgraph_join.page_attribute_cost",
		"Sets the planner's estimate of the cost of walking over one attribute of a row that is read by pages.",
		"Attributes behind others of a fixed width only are not walked over.",
		&hgj_page_attribute_cost, 0.0005},
	{"hashgraph_join.page_tuple_cost",
		"Sets the planner's estimate of the cost of one row that is read by pages.",
		"It takes the place of cpu_tuple_cost in a sequential scan below a HashGraphJoin.",
		&hgj_page_tuple_cost, 0.001},
	{"hashgraph_join.probe_tuple_cost",
		"Sets the planner's estimate of the cost of probing a HashGraph with one row.",
		"One of a million rows: smaller ones cost less, larger ones more.",
		&hgj_probe_tuple_cost, 0.002},
	{"hashgraph_join.startup_cost",
		"Sets the planner's estimate of the fixed cost of a HashGraphJoin.",
		NULL,
		&hgj_startup_cost, 250.0}
};

static const struct
{
	const char *name;
	const char *says;
	const char *more;
	bool	   *variable;
	bool		initial;
	GucContext	context;
	int			flags;
}			switches[] = {
	{"hashgraph_join.aggregate",
		"Enables the planner's use of HashGraphAgg plans.",
		"They aggregate the batches of a HashGraphJoin, or what a sequential scan reads.",
		&hgj_aggregate, true, PGC_USERSET, GUC_EXPLAIN},
	{"hashgraph_join.aggregate_scans",
		"Enables the planner's use of HashGraphAgg plans over sequential scans.",
		"They also need hashgraph_join.aggregate.",
		&hgj_aggregate_scans, true, PGC_USERSET, GUC_EXPLAIN},
	{"hashgraph_join.dictionaries",
		"Enables the evaluation of expressions over one column of strings once for each of its values.",
		"A column that turns out to have too many is evaluated row by row.",
		&hgj_dictionaries, true, PGC_USERSET, 0},
	{"hashgraph_join.enabled",
		"Enables the planner's use of HashGraphJoin plans.",
		"They also need enable_hashjoin.",
		&hgj_enabled, true, PGC_USERSET, GUC_EXPLAIN},
	{"hashgraph_join.force",
		"Plans HashGraphJoin for every join that can use it, and HashGraphAgg for every aggregation, whatever the costs.",
		"Meant for tests.",
		&hgj_force, false, PGC_USERSET, GUC_EXPLAIN | GUC_NOT_IN_SAMPLE},
	{"hashgraph_join.load_evicts",
		"Lets hashgraph_join_load() make room by dropping columns that are kept already.",
		"Superusers' loads always do. Others' fill room that is free.",
		&hgj_load_evicts, false, PGC_SUSET, 0}
};

static const struct
{
	const char *name;
	const char *says;
	const char *more;
	int		   *variable;
	int			initial;
	int			least;
	int			most;
	GucContext	context;
	int			flags;
}			numbers[] = {
	{"hashgraph_join.chunk_outer_rows",
		"Sets the number of outer rows whose match bits count as too many for memory.",
		"Zero means that bytes alone count. Rounded up to a multiple of 64. Meant for tests.",
		&hgj_chunk_outer_rows, 0, 0, INT_MAX, PGC_USERSET, GUC_EXPLAIN | GUC_NOT_IN_SAMPLE},
	{"hashgraph_join.chunk_rows",
		"Sets the number of build rows that count as too many for memory.",
		"Zero means that bytes alone count. Meant for tests.",
		&hgj_chunk_rows, 0, 0, INT_MAX, PGC_USERSET, GUC_EXPLAIN | GUC_NOT_IN_SAMPLE},
	{"hashgraph_join.device_memory_limit",
		"Sets the device memory that each HashGraphJoin on a GPU may use.",
		"A build side that needs more is joined in parts that fit where hashgraph_join.engine is cuda, and on the CPU otherwise. 0 means what is free.",
		&hgj_device_memory_limit, 0, 0, MAX_KILOBYTES, PGC_USERSET, GUC_UNIT_KB | GUC_EXPLAIN},
	{"hashgraph_join.device_side_rows",
		"Sets the fewest rows of a table of which a build side is made on a GPU, of columns kept in memory.",
		"The host reads a smaller one as fast. Meant for tests.",
		&hgj_device_side_rows, 20000, 0, INT_MAX, PGC_USERSET, GUC_EXPLAIN | GUC_NOT_IN_SAMPLE},
	{"hashgraph_join.device_timeout",
		"Sets the time after which a GPU that has not answered counts as failed.",
		"Without a GPU process the session then does without it; 0 waits for ever. With one only the query does, and hashgraph_join.gpu_server_timeout bounds the time.",
		&hgj_device_timeout, 60000, 0, INT_MAX, PGC_USERSET, GUC_UNIT_MS},
	{"hashgraph_join.max_device_memory",
		"Sets the device memory that each HashGraphJoin on a GPU may use at most, whatever hashgraph_join.device_memory_limit is.",
		"-1 means that there is no such bound. 0 means that no GPU is used.",
		&hgj_max_device_memory, -1, -1, MAX_KILOBYTES, PGC_SUSET, GUC_UNIT_KB | GUC_EXPLAIN},
	{"hashgraph_join.min_rows",
		"Sets the estimated number of rows of the larger side below which HashGraphJoin is not considered.",
		NULL,
		&hgj_min_rows, 10000, 0, INT_MAX, PGC_USERSET, GUC_EXPLAIN},
	{"hashgraph_join.processors",
		"Sets the number of processors that the planner expects parallel processes to share.",
		"0 means those of the machine.",
		&hgj_processors, 0, 0, 65536, PGC_USERSET, GUC_EXPLAIN}
};

static const struct
{
	const char *name;
	const char *says;
	const char *more;
	int		   *variable;
	int			initial;
	const struct config_enum_entry *options;
	int			flags;
}			choices[] = {
	{"hashgraph_join.build",
		"Forces how a HashGraph is built.",
		"auto chooses by key range and size.",
		&hgj_build, HGJ_BUILD_AUTO, build_options, GUC_EXPLAIN},
	{"hashgraph_join.engine",
		"Chooses what runs the joins.",
		"An engine that cannot run falls back to cpu, and EXPLAIN ANALYZE says why.",
		&hgj_engine, HGJ_ENGINE_AUTO, engine_options, GUC_EXPLAIN},
	{"hashgraph_join.filter",
		"Forces the use of a filter in front of a HashGraph.",
		"auto makes one when few of the rows that probe a large table match.",
		&hgj_filter, HGJ_FILTER_AUTO, filter_options, GUC_EXPLAIN},
	{"hashgraph_join.parallel_aggregate",
		"Chooses how the groups that the processes of a parallel plan have made become one.",
		"partial sends all of them through the Gather, to be combined above it; exchange divides them among the processes by hash.",
		&hgj_parallel_aggregate, HGJ_AGGREGATE_AUTO, parallel_aggregate_options, GUC_EXPLAIN},
	{"hashgraph_join.parallel_build",
		"Chooses whether the processes of a parallel plan build one HashGraph together.",
		"private has each build its own, of all rows; shared, one of the rows that all of them have read, where the inner side can be read in parallel.",
		&hgj_parallel_build, HGJ_PARALLEL_AUTO, parallel_build_options, GUC_EXPLAIN},
	{"hashgraph_join.probe",
		"Forces how a HashGraph is probed.",
		"auto chooses by the size of the table.",
		&hgj_probe, HGJ_PROBE_AUTO, probe_options, GUC_EXPLAIN},
	{"hashgraph_join.require",
		"Raises an error when a query that could use HashGraphJoin is planned without it.",
		"Meant for tests.",
		&hgj_require, HGJ_REQUIRE_OFF, require_options, GUC_NOT_IN_SAMPLE},
	{"hashgraph_join.rewrite",
		"Chooses whether a subquery that PostgreSQL runs once for each row, and that is a join, is planned as one.",
		"on plans the query both ways and takes the one that costs less; force takes the joins.",
		&hgj_rewrite, HGJ_REWRITE_ON, rewrite_options, GUC_EXPLAIN},
	{"hashgraph_join.segments",
		"Forces how the edge lists of a HashGraph are stored.",
		"A table that padding would make too large is stored as csr, and EXPLAIN ANALYZE says so.",
		&hgj_segments, HGJ_SEGMENTS_AUTO, segments_options, GUC_EXPLAIN},
	{"hashgraph_join.source",
		"Chooses how a HashGraphJoin reads its sides.",
		"tuples asks the child plan row by row; pages raises an error where a sequential scan cannot be read by pages.",
		&hgj_source, HGJ_SOURCE_AUTO, source_options, GUC_EXPLAIN},
	{"hashgraph_join.spill",
		"Forces how a build side that is larger than memory is joined.",
		"partitions splits both sides by hash; passes reads the outer side again for each part of the build side.",
		&hgj_spill, HGJ_SPILL_AUTO, spill_options, GUC_EXPLAIN}
};

/*
 * A quarter of shared_buffers, where the postmaster is about to make that memory: in
 * kilobytes.  The chunks take the place of pages that need not be read any more.
 */
static int
default_column_memory(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return 0;
	return (int) Min((uint64) NBuffers * (BLCKSZ / 1024) / 4, MOST_COLUMN_MEMORY);
}

/* Of memory and processes of the server; without the postmaster they size nothing. */
static void
define_server_settings(void)
{
	DefineCustomIntVariable("hashgraph_join.column_memory",
							"Sets the shared memory in which columns of tables are kept decoded.",
							"It needs shared_preload_libraries, and is a quarter of shared_buffers then. 0 keeps none.",
							&hgj_column_memory, default_column_memory(), 0, MOST_COLUMN_MEMORY,
							process_shared_preload_libraries_in_progress ?
							PGC_POSTMASTER : PGC_SIGHUP, GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomIntVariable("hashgraph_join.device_column_memory",
							"Sets the device memory in which kept columns stay for later queries.",
							"-1 means 70 percent of what is free at first. 0 keeps none there.",
							&hgj_device_column_memory, -1, -1, MAX_KILOBYTES,
							process_shared_preload_libraries_in_progress ?
							PGC_POSTMASTER : PGC_SIGHUP, GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomBoolVariable("hashgraph_join.device_column_prewarm",
							 "Sets whether kept columns go to the device before a query asks for them.",
							 "It needs the GPU process, and is done while that makes no call for a session.",
							 &hgj_device_column_prewarm, true, PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("hashgraph_join.gpu_server",
							 "Sets whether one process has the GPU open for all sessions.",
							 "It needs shared_preload_libraries and the CUDA library. Otherwise each session opens the GPU itself.",
							 &hgj_gpu_server, HGJ_GPU_SERVER_AUTO, gpu_server_options,
							 process_shared_preload_libraries_in_progress ?
							 PGC_POSTMASTER : PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("hashgraph_join.gpu_server_timeout",
							"Sets the time after which a GPU that has answered no session counts as failed.",
							"The GPU process is then started again. No session can wait longer for one that answers others. 0 waits for ever.",
							&hgj_gpu_server_timeout, 60000, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("hashgraph_join.threads",
							"Sets the number of threads of one process that run aggregations over kept columns for all sessions.",
							"It needs shared_preload_libraries and hashgraph_join.column_memory. -1 means one for each processor if there are several, 0 none. Where there is a GPU that serves all sessions, that is used.",
							&hgj_threads, -1, -1, HGJ_MOST_THREADS,
							process_shared_preload_libraries_in_progress ?
							PGC_POSTMASTER : PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("hashgraph_join.threads_nice",
							"Sets the nice value of the threads.",
							"It is added to the server's own. With 0, threads take processors as sessions do.",
							&hgj_threads_nice, 0, 0, 19,
							process_shared_preload_libraries_in_progress ?
							PGC_POSTMASTER : PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("hashgraph_join.gpu_staging_memory",
							"Sets the shared memory through which the first sessions and the GPU process pass rows.",
							"It is divided among 16 of them. Others have less, of their own.",
							&hgj_gpu_staging_memory, 128 * 1024, 64 * 1024, MAX_KILOBYTES,
							process_shared_preload_libraries_in_progress ?
							PGC_POSTMASTER : PGC_SIGHUP, GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomIntVariable("hashgraph_join.stats_databases",
							"Sets the number of databases for which hashgraph_join_stats() counts separately.",
							"It needs shared_preload_libraries. Further databases share a row.",
							&hgj_stats_databases, 100, 1, 100000,
							process_shared_preload_libraries_in_progress ?
							PGC_POSTMASTER : PGC_SIGHUP, 0, NULL, NULL, NULL);
}

/*
 * Define the settings and reserve their prefix, so that a misspelt name is an
 * error.  Call once per process, from _PG_init.
 */
void
hgj_define_settings(void)
{
	for (int i = 0; i < lengthof(costs); i++)
		DefineCustomRealVariable(costs[i].name, costs[i].says, costs[i].more,
								 costs[i].variable, costs[i].initial, 0.0, DBL_MAX,
								 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	for (int i = 0; i < lengthof(switches); i++)
		DefineCustomBoolVariable(switches[i].name, switches[i].says,
								 switches[i].more, switches[i].variable,
								 switches[i].initial, switches[i].context,
								 switches[i].flags, NULL, NULL, NULL);
	for (int i = 0; i < lengthof(numbers); i++)
		DefineCustomIntVariable(numbers[i].name, numbers[i].says, numbers[i].more,
								numbers[i].variable, numbers[i].initial,
								numbers[i].least, numbers[i].most,
								numbers[i].context, numbers[i].flags, NULL, NULL, NULL);
	for (int i = 0; i < lengthof(choices); i++)
		DefineCustomEnumVariable(choices[i].name, choices[i].says, choices[i].more,
								 choices[i].variable, choices[i].initial,
								 choices[i].options, PGC_USERSET,
								 choices[i].flags, NULL, NULL, NULL);

	DefineCustomRealVariable("hashgraph_join.worker_time",
							 "Sets what the planner expects two parallel workers to take of a query's time to begin and to end.",
							 "-1 means what they have been seen to take. It is charged in so far as parallel_setup_cost is not zero.",
							 &hgj_worker_time, -1, -1, INT_MAX, PGC_USERSET,
							 GUC_UNIT_MS | GUC_EXPLAIN, NULL, NULL, NULL);

	DefineCustomStringVariable("hashgraph_join.cuda_library",
							   "Sets the library that holds the CUDA engine.",
							   "A file of PostgreSQL's library directory, or a path. It is loaded when a session first needs it, and stays.",
							   &hgj_cuda_library, "hashgraph_join_cuda",
							   PGC_SUSET, 0, NULL, NULL, NULL);

	DefineCustomEnumVariable("hashgraph_join.column_loading",
							 "Chooses whether columns that are read often are kept without anybody asking for it.",
							 "auto has a background worker load them, if hashgraph_join.column_memory is set.",
							 &hgj_column_loading, HGJ_LOADING_AUTO, loading_options,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);

	define_server_settings();
#ifdef HGJ_MEM_TEST
	hgj_define_fault_settings();
#endif
	MarkGUCPrefixReserved("hashgraph_join");
}
