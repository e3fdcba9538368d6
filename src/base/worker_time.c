/*-------------------------------------------------------------------------
 *
 * worker_time.c
 *	  How long it takes until parallel workers are at work, and gone again, on
 *	  this machine, as it is now: for the planner's costs.
 *
 * A worker is a new process.  The postmaster has to notice that it is wanted and to fork
 * it; it sets up a backend, and has a page fault for everything that it touches first;
 * at its end all that is taken down, and the postmaster has to notice again, before the
 * query is over.  That is a millisecond on one machine, and forty on another one, while
 * parallel_setup_cost is the same.
 *
 * 1. When the server starts, a background worker (worker_probe.c) has two others started
 *	  that do nothing, and says how long it took until both had begun and until both had
 *	  gone.
 * 2. What a query's workers take to begin is several times as long, because they connect to
 *	  a database and read the plan.  The first one that is seen takes the place of what
 *	  was measured, and from then on each parallel query that has a node of ours below its Gather
 *	  moves the time by a part of the difference.  Where processors are busy, workers wait
 *	  for one, and all else takes longer, too, which no other cost knows of: so a time that
 *	  is shorter counts for more than a longer one.  The end cannot be seen from there: the
 *	  Gather waits for it after all nodes below have been shut down.
 * 3. Workers take as long as the machine is busy.  If that has kept the planner from
 *	  having workers for a while, no query moves the time any more: then the background
 *	  worker measures again, and takes what it finds for all that was known.
 * 4. Where the library is not preloaded, a session knows what it has seen itself, and
 *	  guesses before that, as does everybody until 1 is done.
 *
 * Memory: the postmaster's, or static.  No locks: times change atomically, and it does
 * no harm if one of two that come at once is lost.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <unistd.h>

#include "access/parallel.h"
#include "access/xact.h"
#include "base/guc.h"
#include "base/shared_memory.h"
#include "base/worker_time.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "postmaster/bgworker.h"
#include "utils/timestamp.h"

#define SHARED_NAME			"hashgraph_join worker time"

/* Step 4: what is guessed, and of that the part which is the end. */
#define GUESSED_US			10000
#define GUESSED_END_PART	0.25

/*
 * Step 2: a query's part in the time, if it makes it shorter, and longer; and how many times
 * as long as it is the time may seem.
 */
#define SHORTER_PART		4
#define LONGER_PART			16
#define MOST_OFF			2

/*
 * Step 2: how many times as long as that of workers without a query their start is taken to
 * be, until one is seen: it was three to five times as long with 2 GB of shared buffers.
 */
#define PROBED_FACTOR		3

/* Step 3. */
#define STALE_MINUTES		10

/*
 * What each worker beyond two adds, as a part of the time of two: the postmaster forks
 * one after the other, while those before are setting themselves up.
 */
#define FURTHER_WORKER		0.1

/* Of HGJ_TIMED_WORKERS workers, in microseconds; 0: not known. */
typedef struct WorkerTime
{
	pg_atomic_uint64 start;
	pg_atomic_uint64 end;
	pg_atomic_uint32 probed;	/* the start is the background worker's, no query's */
	pg_atomic_uint64 when;		/* TimestampTz of the newest of them, or of a probe begun */
	HgjLaunch	probe;			/* step 1 */
} WorkerTime;

static WorkerTime *shared = NULL;

static void
forget_all(WorkerTime *time)
{
	pg_atomic_init_u64(&time->start, 0);
	pg_atomic_init_u64(&time->end, 0);
	pg_atomic_init_u32(&time->probed, 0);
	pg_atomic_init_u64(&time->when, 0);
	time->probe.asked = 0;
	pg_atomic_init_u64(&time->probe.last, 0);
	pg_atomic_init_u32(&time->probe.started, 0);
}

/* Step 4: everybody's, or the session's. */
static WorkerTime *
known(void)
{
	static WorkerTime own;
	static bool ready = false;

	if (shared)
		return shared;
	if (!ready)
		forget_all(&own);
	ready = true;
	return &own;
}

static Size
shared_bytes(void)
{
	return sizeof(WorkerTime);
}

static void
attach_shared(void *memory, bool found)
{
	shared = memory;
	if (!found)
		forget_all(shared);
}

/* See worker_time.h. */
void
hgj_describe_worker(BackgroundWorker *worker, const char *name, const char *function)
{
	memset(worker, 0, sizeof(*worker));
	worker->bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker->bgw_start_time = BgWorkerStart_ConsistentState;
	worker->bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker->bgw_library_name, "hashgraph_join", sizeof(worker->bgw_library_name));
	strlcpy(worker->bgw_function_name, function, sizeof(worker->bgw_function_name));
	strlcpy(worker->bgw_name, name, sizeof(worker->bgw_name));
	strlcpy(worker->bgw_type, name, sizeof(worker->bgw_type));
}

/* Steps 1 and 3: the one that measures. */
static void
describe_probe(BackgroundWorker *worker)
{
	hgj_describe_worker(worker, "hashgraph_join worker probe", HGJ_PROBE_MAIN);
}

/* See worker_time.h.  Step 1. */
void
hgj_worker_time_share(void)
{
	static const HgjSharedPart part = {SHARED_NAME, shared_bytes, false, attach_shared};
	BackgroundWorker worker;

	hgj_shared_memory_add(&part);
	/* with fewer, there is no room for the two that it has started */
	if (max_worker_processes <= HGJ_TIMED_WORKERS)
		return;
	describe_probe(&worker);
	RegisterBackgroundWorker(&worker);
}

/* See worker_time.h. */
HgjLaunch *
hgj_probe_launch(void)
{
	return shared ? &shared->probe : NULL;
}

/* See worker_time.h. */
uint64
hgj_microseconds(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return (uint64) INSTR_TIME_GET_MICROSEC(now);
}

/* ---- what is seen ----------------------------------------------------------- */

/* See worker_time.h. */
void
hgj_launch_begin(HgjLaunch *launch)
{
	launch->asked = hgj_microseconds();
	pg_atomic_init_u64(&launch->last, 0);
	pg_atomic_init_u32(&launch->started, 0);
}

/* See worker_time.h. */
void
hgj_launch_started(HgjLaunch *launch)
{
	uint64		now = hgj_microseconds();
	uint64		last = pg_atomic_read_u64(&launch->last);

	while (last < now && !pg_atomic_compare_exchange_u64(&launch->last, &last, now))
		continue;
	pg_atomic_fetch_add_u32(&launch->started, 1);
}

static double
machine_processors(void)
{
	static long online = 0;

	/* asking the system is slow, and a plan wants to know a thousand times */
	if (online == 0)
		online = Max(sysconf(_SC_NPROCESSORS_ONLN), 1);
	return (double) online;
}

static void
note_time(void)
{
	pg_atomic_write_u64(&known()->when, (uint64) GetCurrentTimestamp());
}

/* Step 2.  A session's own settings have no part in what others see. */
static void
note_query(uint32 workers, uint64 start)
{
	WorkerTime *time = known();
	int64		seen = (int64) ((double) start / hgj_workers_part((int) workers,
																  machine_processors()));
	int64		before = (int64) pg_atomic_read_u64(&time->start);

	if (before > 0 && pg_atomic_exchange_u32(&time->probed, 0) == 0)
	{
		seen = Min(seen, before * MOST_OFF);
		seen = before + (seen - before) / (seen < before ? SHORTER_PART : LONGER_PART);
	}
	pg_atomic_write_u64(&time->start, (uint64) Max(seen, 1));
	note_time();
}

/*
 * See worker_time.h.  All nodes below a Gather are shut down one after the other, and each
 * says when the same workers began: the first one counts, and with it no node whose workers
 * had been asked for by then.
 */
void
hgj_launch_look(const HgjLaunch *launch)
{
	static uint64 counted = 0;
	uint64		last = pg_atomic_read_u64(unconstify(pg_atomic_uint64 *, &launch->last));
	uint32		started = pg_atomic_read_u32(unconstify(pg_atomic_uint32 *, &launch->started));

	if (started == 0 || last < launch->asked || launch->asked <= counted)
		return;
	counted = hgj_microseconds();
	note_query(started, last - launch->asked);
}

/* See worker_time.h.  Steps 1 and 3. */
void
hgj_worker_time_probed(uint64 start, uint64 end)
{
	pg_atomic_write_u64(&shared->start, Max(start * PROBED_FACTOR, 1));
	pg_atomic_write_u32(&shared->probed, 1);
	pg_atomic_write_u64(&shared->end, Max(end, 1));
	note_time();
}

/* ---- what is known ---------------------------------------------------------- */

/* Step 3: nobody waits for it. */
static void
probe_if_stale(void)
{
	TimestampTz now = GetCurrentStatementStartTimestamp();
	BackgroundWorker worker;
	uint64		when;

	if (shared == NULL || IsParallelWorker() || max_worker_processes <= HGJ_TIMED_WORKERS)
		return;
	when = pg_atomic_read_u64(&shared->when);
	if (when == 0 ||
		!TimestampDifferenceExceeds((TimestampTz) when, now, STALE_MINUTES * 60 * 1000) ||
		!pg_atomic_compare_exchange_u64(&shared->when, &when, (uint64) now))
		return;
	describe_probe(&worker);
	(void) RegisterDynamicBackgroundWorker(&worker, NULL);
}

/* See worker_time.h. */
bool
hgj_worker_time_measured(double *milliseconds)
{
	WorkerTime *time = known();
	double		start = (double) pg_atomic_read_u64(&time->start);
	double		end = (double) pg_atomic_read_u64(&time->end);

	if (start == 0)
	{
		*milliseconds = GUESSED_US / 1000.0;
		return false;
	}
	if (end == 0)
		end = start * GUESSED_END_PART / (1 - GUESSED_END_PART);
	*milliseconds = (start + end) / 1000.0;
	return true;
}

/* See worker_time.h. */
double
hgj_worker_time_now(void)
{
	static TimestampTz asked = 0;
	static double milliseconds = 0;
	TimestampTz statement = GetCurrentStatementStartTimestamp();

	if (hgj_worker_time >= 0)
		return hgj_worker_time;
	/* paths are compared that were made one after the other */
	if (asked != statement || milliseconds == 0)
	{
		(void) hgj_worker_time_measured(&milliseconds);
		asked = statement;
		probe_if_stale();
	}
	return milliseconds;
}

/* How often processors change between the workers and the leader at their start. */
static double
turns(int workers, double processors)
{
	return Max((workers + 1) / processors, 1);
}

/* See worker_time.h. */
double
hgj_workers_part(int workers, double processors)
{
	return (1 + FURTHER_WORKER * (workers - HGJ_TIMED_WORKERS)) *
		turns(workers, processors) / turns(HGJ_TIMED_WORKERS, processors);
}

/* See worker_time.h. */
double
hgj_usable_processors(void)
{
	return hgj_processors > 0 ? hgj_processors : machine_processors();
}
