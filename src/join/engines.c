/*-------------------------------------------------------------------------
 *
 * engines.c
 *	  Which engine runs a join, and what becomes of its errors.
 *
 * 1. A session loads the CUDA engine's library when a query is to run on a GPU,
 *	  or when the planner finds that one would pay.  A GPU is opened by the
 *	  first join that is started on it, and stays open until the session ends or
 *	  gives it back (hashgraph_join_release()).  Where the server has a process that
 *	  has it open for all (server/worker.c), that one is used instead.  It may have threads in
 *	  the place of a GPU, which is no GPU for those who ask for one.
 * 2. The planner asks often, so it is told again what it was told the first time
 *	  where there is no library or no device; a query under engine = cuda tries
 *	  anew.
 * 3. A join whose engine cannot run falls back to the CPU's, and keeps the reason
 *	  for EXPLAIN.  hashgraph_join.require = cuda makes an error of it.
 * 4. Errors of the CPU engine are raised at once.  Those of a device are noted in
 *	  the join's state; the callers return to phases.c, and failover.c decides.
 *
 * Memory: the text of a reason lives in the query's context.  The library stays
 * loaded.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/guc.h"
#include "base/poll.h"
#include "base/waits.h"
#include "engine/registry.h"
#include "executor/nodeHash.h"
#include "join/engines.h"
#include "join/join_state.h"
#include "miscadmin.h"
#include "server/worker.h"

/* What is kept free of device memory where the limit is what is free. */
#define HGJ_DEVICE_RESERVE	16

/* What the planner was told for which library; step 2. */
static char absent_library[MAXPGPATH] = "";
static uint64 total_memory = 0;	/* of the first device; 0 = not asked yet */
static bool cuda_opened = false;

/* See engines.h. */
const HgjEngine *
hgj_cuda_engine(HgjError *err)
{
	static const HgjEngine *known = NULL;
	const HgjEngine *engine;
	HgjKeptMemory kept;

	if (hgj_server_serves(hgj_cuda_library))
	{
		if (hgj_server_threads() == 0 ||
			(hgj_engine != HGJ_ENGINE_CUDA && hgj_require != HGJ_REQUIRE_CUDA))
			return hgj_server_engine(err);
		err->status = HGJ_NO_DEVICE;
		strlcpy(err->message, "the server has threads, and no GPU", sizeof(err->message));
		return NULL;
	}
	hgj_registry_use(hgj_cuda_library);
	engine = hgj_registry_find("cuda", pkglib_path, err);
	if (engine && engine != known && engine->pipeline && engine->pipeline->keep)
	{
		hgj_kept_memory_for(&kept, false);
		engine->pipeline->keep(&kept);
	}
	known = engine;
	return engine;
}

/* See engines.h. */
bool
hgj_cuda_usable(double bytes)
{
	const HgjEngine *engine;
	HgjDeviceInfo info;
	HgjError	err = {0};

	if (absent_library[0] && strcmp(absent_library, hgj_cuda_library) == 0)
		return false;
	if ((hgj_device_memory_limit > 0 && bytes > hgj_device_memory_limit * 1024.0) ||
		(hgj_max_device_memory >= 0 && bytes > hgj_max_device_memory * 1024.0) ||
		hgj_max_device_memory == 0)
		return false;
	if (hgj_device_threads() > 0 && bytes > (double) hgj_threads_memory())
		return false;
	engine = hgj_cuda_engine(&err);
	if (engine && engine->usable(&err) == HGJ_OK)
	{
		if (total_memory == 0 &&
			engine->device_info(0, &info, &err) == HGJ_OK)
			total_memory = info.total_memory;
		return bytes < total_memory;
	}
	if (!hgj_server_serves(hgj_cuda_library))	/* that one may come back */
		strlcpy(absent_library, hgj_cuda_library, sizeof(absent_library));
	ereport(DEBUG1,
			(errmsg_internal("hashgraph_join: the cuda engine is left out of account: %s",
							 err.message)));
	return false;
}

/* See engines.h. */
int
hgj_device_threads(void)
{
	return hgj_server_serves(hgj_cuda_library) ? hgj_server_threads() : 0;
}

/* See engines.h. */
uint64
hgj_threads_memory(void)
{
	return (uint64) get_hash_memory_limit() *
		Min(Max(hgj_device_threads(), 1), HGJ_THREADS_SHARES);
}

/* See engines.h. */
const char *
hgj_device_engine_name(void)
{
	return hgj_device_threads() > 0 ? "threads" : "cuda";
}

/* See engines.h. */
bool
hgj_cuda_is_open(void)
{
	return cuda_opened;
}

/* See engines.h. */
bool
hgj_cuda_kept_bytes(const uint64 *ids, uint32 n, uint64 *bytes)
{
	HgjPoll		poll = {false};
	HgjPipelineCaller caller = {.poll = hgj_poll_interrupts,.poll_arg = &poll};
	const HgjEngine *engine;
	HgjStatus	status;
	HgjError	err;

	if (!hgj_server_serves(hgj_cuda_library) && !cuda_opened)
		return false;
	do
	{
		engine = hgj_cuda_engine(&err);
		if (!engine || !engine->pipeline || !engine->pipeline->kept_bytes)
			return false;
		status = engine->pipeline->kept_bytes(&caller, ids, n, bytes, &err);
	} while (hgj_call_cancelled(&poll, status));
	return status == HGJ_OK;
}

/* See engines.h. */
bool
hgj_cuda_has_columns(void)
{
	HgjError	err;
	const HgjEngine *engine = hgj_server_serves(hgj_cuda_library) ?
		hgj_server_engine(&err) : NULL;

	return engine && engine->pipeline && engine->pipeline->push_kept;
}

/* See engines.h. */
bool
hgj_cuda_release(uint32 *tables)
{
	const HgjEngine *engine;
	HgjDeviceInfo info;
	HgjError	err = {0};

	*tables = 0;
	if (!cuda_opened)
		return false;
	engine = hgj_cuda_engine(&err);
	for (int i = 0; engine && i < engine->device_count(); i++)
		if (engine->device_info(i, &info, &err) == HGJ_OK)
			*tables += info.tables;
	if (engine == NULL || *tables > 0 || engine->usable(&err) != HGJ_OK)
		return false;
	engine->close();
	cuda_opened = false;
	return true;
}

/* Raise what an engine has reported. */
void
hgj_engine_failed(HgjJoinState *state, const HgjError *err)
{
	switch (err->status)
	{
		case HGJ_OUT_OF_MEMORY:
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("out of memory"),
					 errdetail("HashGraphJoin's %s engine: %s.",
							   state->use.engine->name, err->message)));
			break;
		case HGJ_LIMIT:
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("a HashGraphJoin passed a limit of its %s engine",
							state->use.engine->name),
					 errdetail("%s.", err->message),
					 errhint("Set hashgraph_join.enabled to off for this query.")));
			break;
		case HGJ_NO_DEVICE:
		case HGJ_DEVICE_LOST:
			ereport(ERROR,
					(errcode(ERRCODE_SYSTEM_ERROR),
					 errmsg("the device of a HashGraphJoin failed"),
					 errdetail("%s.", err->message),
					 errhint("Run the query again: the CPU takes over in this session.")));
			break;
		default:
			ereport(ERROR,
					(errcode(ERRCODE_INTERNAL_ERROR),
					 errmsg_internal("HashGraphJoin's %s engine: %s: %s",
									 state->use.engine->name,
									 hgj_status_name(err->status),
									 err->message)));
			break;
	}
	pg_unreachable();
}

/* Step 4: from here on, what the device returns is not to be used. */
void
hgj_device_fails(HgjJoinState *state, HgjStatus status, const char *text)
{
	state->use.place = HGJ_DEVICE_HAS_FAILED;
	state->use.device_error.status = status;
	strlcpy(state->use.device_error.message, text,
			sizeof(state->use.device_error.message));
}

/* In front of such a call: on a device, this process only waits. */
void
hgj_engine_begins(const HgjJoinState *state)
{
	if (hgj_on_device(state))
		hgj_device_wait_starts();
}

/*
 * What every call of an engine that polls goes through: false if it has to be
 * repeated.  True if it is done, or if the device has failed in it, which
 * hgj_device_failed() tells.  Other errors are raised.
 */
bool
hgj_engine_done(HgjJoinState *state, HgjStatus status, const HgjError *err)
{
	if (hgj_on_device(state))
		hgj_device_wait_ends();
	if (hgj_call_cancelled(&state->js.build->poll, status))
		return false;
	if (status == HGJ_OK)
		return true;
	if (!hgj_on_device(state) || status == HGJ_INVALID)
		hgj_engine_failed(state, err);
	hgj_device_fails(state, status, err->message);
	return true;
}

/* Steps 3 and 4: the CPU from now on.  There must not be a table. */
void
hgj_use_cpu(HgjJoinState *state)
{
	const HgjError *error = &state->use.device_error;
	HgjError	err = {0};

	Assert(state->js.build->table == NULL);
	if (state->use.fallback == HGJ_FALLBACK_NONE)
		state->use.fallback = error->status == HGJ_OUT_OF_MEMORY ||
			error->status == HGJ_LIMIT ? HGJ_FALLBACK_DEVICE_MEMORY :
			HGJ_FALLBACK_DEVICE_FAILED;
	state->use.fallback_text = MemoryContextStrdup(state->js.context, error->message);
	if (hgj_require == HGJ_REQUIRE_CUDA)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a HashGraphJoin could not run on the GPU"),
				 errdetail("%s.", error->message),
				 errhint("Set hashgraph_join.require to join.")));
	ereport(DEBUG1,
			(errmsg_internal("hashgraph_join: the cuda engine falls back to cpu: %s",
							 error->message)));
	state->use.place = HGJ_ON_CPU;
	state->use.device_limit = 0;
	state->use.engine = hgj_cpu_engine();
	if (state->use.engine->open(&err) != HGJ_OK)
		hgj_engine_failed(state, &err);
}

/* What a table may take of the device: what the user wants, as far as he may have it. */
static uint64
device_memory(const HgjDeviceInfo *info)
{
	uint64		bytes = info->free_memory - info->free_memory / HGJ_DEVICE_RESERVE;

	if (hgj_device_memory_limit > 0)
		bytes = (uint64) hgj_device_memory_limit * 1024;
	if (hgj_max_device_memory >= 0)
		bytes = Min(bytes, (uint64) hgj_max_device_memory * 1024);
	if (hgj_device_threads() > 0)
		bytes = Min(bytes, hgj_threads_memory());
	return bytes;
}

/*
 * After a build for which the device had too little memory: can it be tried with
 * less?  Once in a join's life, and only where a device was asked for.
 */
bool
hgj_use_less_memory(HgjJoinState *state)
{
	HgjStatus	status = state->use.device_error.status;
	HgjDeviceInfo info;
	HgjError	err = {0};

	if ((status != HGJ_OUT_OF_MEMORY && status != HGJ_LIMIT) ||
		hgj_engine != HGJ_ENGINE_CUDA || state->use.device_shrunk ||
		state->use.engine->device_info(0, &info, &err) != HGJ_OK)
		return false;
	state->use.device_shrunk = true;
	state->use.device_limit = Min(state->use.device_limit, device_memory(&info)) / 2;
	strlcpy(state->stats.shrunk, state->use.device_error.message,
			sizeof(state->stats.shrunk));
	ereport(DEBUG1,
			(errmsg_internal("hashgraph_join: half of the device memory is used: %s",
							 state->stats.shrunk)));
	state->use.place = HGJ_ON_THE_DEVICE;
	return true;
}

/* See engines.h. */
const HgjEngine *
hgj_cuda_open(HgjDeviceInfo *info, uint64 *limit, HgjError *err)
{
	const HgjEngine *engine;

	/* opening it takes device memory as well */
	if (hgj_max_device_memory == 0)
	{
		err->status = HGJ_UNSUPPORTED;
		strlcpy(err->message, "hashgraph_join.max_device_memory is 0",
				sizeof(err->message));
		return NULL;
	}
	engine = hgj_cuda_engine(err);
	if (engine == NULL || engine->open(err) != HGJ_OK ||
		engine->device_info(0, info, err) != HGJ_OK)
		return NULL;
	cuda_opened = true;
	*limit = device_memory(info);
	return engine;
}

/*
 * The join, and those below it, are in no pipeline: what does not pay by itself on a GPU
 * runs on the CPU.
 */
void
hgj_leave_pipeline(HgjJoinState *state)
{
	for (; state; state = hgj_join_of(state->js.outer_ps))
	{
		CustomScan *cscan = castNode(CustomScan, state->js.css.ss.ps.plan);
		HgjJoinState *inner = hgj_join_of(state->js.inner_ps);

		if (list_nth_int(cscan->custom_private, HGJ_FACT_DEVICE) == HGJ_PLAN_PIPELINE)
			state->use.wants_device = false;
		if (inner)
			hgj_leave_pipeline(inner);
	}
}

/* The engine of the join's table, which is chosen if it has not been. */
const HgjEngine *
hgj_join_engine(HgjJoinState *state)
{
	if (state->use.engine == NULL)
		hgj_choose_engine(state);
	return state->use.engine;
}

/* Does the plan want a GPU under engine = auto? */
bool
hgj_join_wants_device(const HgjJoinState *state)
{
	return state->use.wants_device;
}

/* Bytes that the join may take of the GPU's memory; 0: no limit is known. */
uint64
hgj_join_device_limit(const HgjJoinState *state)
{
	return state->use.device_limit;
}

/* The GPU's name; empty: the last run was the CPU's. */
const char *
hgj_join_device_name(const HgjJoinState *state)
{
	return state->stats.device;
}

/* Are the tables not in host memory, or were they so until the device failed? */
bool
hgj_on_device(const HgjJoinState *state)
{
	return state->use.place != HGJ_ON_CPU;
}

/* Has a call of the engine failed in a way that the CPU may make good? */
bool
hgj_device_failed(const HgjJoinState *state)
{
	return state->use.place == HGJ_DEVICE_HAS_FAILED;
}

/*
 * Set use.engine, open in this process.  Never fails, or only because the
 * GPU is required: the CPU engine is always there.
 */
void
hgj_choose_engine(HgjJoinState *state)
{
	bool		recheck = state->js.css.ss.ps.state->es_epq_active != NULL;
	HgjError   *err = &state->use.device_error;
	HgjDeviceInfo info;

	state->use.engine = hgj_cpu_engine();
	/* nor has a device shared memory; a recheck of one row is nothing for it */
	if (recheck || state->share.planned || hgj_engine == HGJ_ENGINE_CPU ||
		(hgj_engine == HGJ_ENGINE_AUTO && !state->use.wants_device))
	{
		if (hgj_require != HGJ_REQUIRE_CUDA || recheck)
			return;
		err->status = HGJ_UNSUPPORTED;
		strlcpy(err->message, "the cpu engine was chosen", sizeof(err->message));
		hgj_use_cpu(state);		/* raises the error */
	}

	state->use.engine = hgj_cuda_open(&info, &state->use.device_limit, err);
	if (state->use.engine == NULL)
	{
		state->use.fallback = HGJ_FALLBACK_ENGINE;
		hgj_use_cpu(state);
		return;
	}
	if (state->use.engine->capabilities & HGJ_CAP_DEVICE_MEMORY)
		state->use.place = HGJ_ON_THE_DEVICE;
	strlcpy(state->stats.device, info.name, sizeof(state->stats.device));
}
