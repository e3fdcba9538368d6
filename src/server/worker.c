/*-------------------------------------------------------------------------
 *
 * worker.c
 *	  The background worker that keeps a GPU process running.
 *
 * 1. If the library is preloaded, hashgraph_join.gpu_server is auto and the CUDA library
 *	  is installed, or columns are kept for threads (hashgraph_join.threads), the postmaster has
 *	  shared memory for the channels (channel.h), and starts the worker.
 * 2. The worker forks the GPU process (process.c), which is nobody's backend: it can
 *	  crash, be killed, or hang in a driver, and neither the postmaster nor a session
 *	  that does not use it takes notice.
 * 3. When it has ended, the worker counts the generation up, by which those who wait
 *	  for it see that, and starts another one: at once, if the last one has lived for a
 *	  while, and after a few seconds otherwise.  If it has found no usable device,
 *	  it is not tried again until the worker is (a signal to it does that, or a restart of
 *	  the server).  Channels that were left to the one that has ended are freed.
 * 4. Meanwhile it has columns copied to the device ahead (prewarm.c).
 * 5. A session that gives up on a call leaves its channel to the thread that makes it.
 *	  If that has not come back, and the device has answered nobody, for longer than
 *	  hashgraph_join.gpu_server_timeout allows, the GPU process is killed: its engine would
 *	  have noticed a device that does not answer, so that it hangs in the driver itself.
 *	  While the device answers others, a call may take as long as it does.  A process
 *	  that is not ready yet has no threads.
 *
 * Memory: that of channels.c.
 * Locks: none but prewarm.c's; states change atomically (channel.h).
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/guc.h"
#include "engine/registry.h"
#include "kept/store.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "server/channels.h"
#include "server/clock.h"
#include "server/prewarm.h"
#include "server/worker.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "threads/engine.h"
#include "utils/guc.h"
#include "utils/wait_event.h"

/*
 * Seconds: between two that end at once; until one that hangs is killed, behind
 * gpu_server_timeout.
 */
#define LEAST_PAUSE			1
#define MOST_PAUSE			4
#define LIVED_FOR_A_WHILE	10
#define HUNG_FOR			10
#define LOOK_EVERY_MS		1000
#define LOOK_AT_START_MS	50

/* How often, and for how long each time, the end of one that was killed is waited for. */
#define END_WAITS			500
#define END_WAIT_US			10000L

PGDLLEXPORT void hgj_gpu_worker_main(Datum arg);

static HgjServer *shared = NULL;	/* in the worker: hgj_server() */
static char server_library[MAXPGPATH];	/* the postmaster's setting */
static bool has_gpu = false;	/* its process is to look for a GPU */
static uint32 nthreads = 0;		/* threads that it is to have where it finds none */

/* ---- step 1 ------------------------------------------------------------- */

/*
 * The number of threads that the settings ask for.  Threads read kept columns only.  Where nobody
 * has said a number, they are not to take the place of a GPU that each session opens itself, and
 * a single processor's thread would do what the session can do without a message.
 */
static uint32
threads_wanted(void)
{
	uint32		cores;

	if (hgj_column_memory == 0 || hgj_threads == 0)
		return 0;
	if (hgj_threads > 0)
		return (uint32) hgj_threads;
	if (hgj_gpu_server == HGJ_GPU_SERVER_OFF && hgj_registry_has_cuda(pkglib_path))
		return 0;
	cores = hgj_threads_cores();
	return cores > 1 ? cores : 0;
}

/* See worker.h. */
void
hgj_server_share(void)
{
	BackgroundWorker worker = {0};

	hgj_registry_use(hgj_cuda_library);
	has_gpu = hgj_gpu_server != HGJ_GPU_SERVER_OFF && hgj_registry_has_cuda(pkglib_path);
	nthreads = threads_wanted();
	if (!has_gpu && nthreads == 0)
		return;
	/* where nobody has asked for anything, a server starts without threads rather than not */
	hgj_channels_share(has_gpu || hgj_threads > 0);
	strlcpy(server_library, hgj_cuda_library, sizeof(server_library));

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker.bgw_start_time = BgWorkerStart_PostmasterStart;
	worker.bgw_restart_time = LEAST_PAUSE;
	strlcpy(worker.bgw_library_name, "hashgraph_join", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "hgj_gpu_worker_main", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, has_gpu ? "hashgraph_join gpu server" : "hashgraph_join thread server",
			sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, worker.bgw_name, sizeof(worker.bgw_type));
	RegisterBackgroundWorker(&worker);
}

/* See worker.h. */
void
hgj_kept_memory_for(HgjKeptMemory *kept, bool stay)
{
	Size		bytes = 0;

	memset(kept, 0, sizeof(*kept));
	kept->memory = hgj_device_column_memory == 0 ? NULL : hgj_store_memory(&bytes);
	kept->bytes = bytes;
	kept->used = hgj_store_filled();
	kept->most = (uint64) Max(hgj_device_column_memory, 0) * 1024;
	kept->stay = stay;
}

/* See worker.h. */
int
hgj_server_threads(void)
{
	return hgj_server() != NULL && hgj_server_state(hgj_server()) == HGJ_SERVER_READY ?
		(int) hgj_server()->threads : 0;
}

/* See worker.h. */
bool
hgj_server_serves(const char *library)
{
	return hgj_server() != NULL && hgj_server_state(hgj_server()) != HGJ_SERVER_NO_WORKER &&
		strcmp(library, server_library) == 0;
}

/* ---- steps 2 to 5 ------------------------------------------------------- */

static void
child_has_ended(SIGNAL_ARGS)
{
	int			save_errno = errno;

	SetLatch(MyLatch);
	errno = save_errno;
}

static void
next_generation(HgjServerState state)
{
	__atomic_store_n(&shared->state, state, __ATOMIC_RELEASE);
	(void) __atomic_add_fetch(&shared->generation, 1, __ATOMIC_ACQ_REL);
}

/* Step 2. */
static pid_t
start_process(void)
{
	HgjKeptMemory kept;
	pid_t		process;

	hgj_kept_memory_for(&kept, true);
	memset(shared->why, 0, sizeof(shared->why));
	next_generation(HGJ_SERVER_STARTING);
	fflush(NULL);
	process = fork();
	if (process == 0)
	{
		/* a driver that calls exit() must not run PostgreSQL's end of a process */
		on_exit_reset();
		hgj_gpu_process(shared, MyProcPid, has_gpu ? server_library : NULL, nthreads, pkglib_path,
						&kept);
	}
	if (process < 0)
	{
		next_generation(HGJ_SERVER_DOWN);
		ereport(WARNING,
				(errcode(ERRCODE_SYSTEM_ERROR),
				 errmsg("could not start the GPU process of hashgraph_join: %m")));
	}
	shared->process = Max(process, 0);
	return process;
}

/* Step 3: the process has ended, and nobody else looks at what was left to it. */
static void
free_channels(void)
{
	for (uint32 i = 0; i < shared->nchannels; i++)
	{
		HgjChannel *channel = &shared->channels[i];

		if (__atomic_load_n(&channel->state, __ATOMIC_ACQUIRE) == HGJ_CHANNEL_LEFT)
			hgj_channel_is_cleared(channel);
	}
}

/* Step 5: when was the device seen to answer last? */
static uint64
answered_at(void)
{
	static uint64 answers = 0;
	static uint64 seen_at = 0;
	uint64		now = __atomic_load_n(&shared->answers, __ATOMIC_RELAXED);

	if (answers != now || seen_at == 0)
		seen_at = hgj_monotonic_seconds();
	answers = now;
	return seen_at;
}

/* Step 5, of a process that was seen ready then, for the first time. */
static bool
process_hangs(uint64 ready_since)
{
	uint64		now = hgj_monotonic_seconds();
	uint64		quiet_since = Max(answered_at(), ready_since);
	uint64		most = hgj_gpu_server_timeout / 1000 + HUNG_FOR;

	if (hgj_gpu_server_timeout == 0)
		return false;
	for (uint32 i = 0; i < shared->nchannels; i++)
	{
		HgjChannel *channel = &shared->channels[i];

		if (__atomic_load_n(&channel->state, __ATOMIC_ACQUIRE) == HGJ_CHANNEL_LEFT &&
			now > Max(channel->left_at, quiet_since) + most)
			return true;
	}
	return hgj_prewarm_hangs(shared, quiet_since, most);
}

/* Step 3: what is to be said of its end, and whether there shall be another one. */
static bool
process_ended(int status)
{
	bool		again = hgj_server_state(shared) != HGJ_SERVER_UNUSABLE;

	shared->process = 0;
	if (again)
	{
		next_generation(HGJ_SERVER_DOWN);
		ereport(LOG,
				(errmsg("the GPU process of hashgraph_join ended, and is started again"),
				 WIFSIGNALED(status) ?
				 errdetail("It was ended by signal %d.", WTERMSIG(status)) :
				 shared->why[0] != '\0' && shared->threads == 0 ? errdetail("It had lost its device: %s.", shared->why) :
				 errdetail("It ended with status %d.", WEXITSTATUS(status))));
	}
	else
	{
		next_generation(HGJ_SERVER_UNUSABLE);
		ereport(LOG,
				(errmsg("hashgraph_join has no GPU to serve: %s", shared->why),
				 errhint("To save the worker and its shared memory, set hashgraph_join.gpu_server to off, and hashgraph_join.threads to 0.")));
	}
	return again;
}

/* Step 2: its process has a device.  Returns since when that is known. */
static uint64
is_ready(void)
{
	if (has_gpu && shared->threads > 0)
		ereport(LOG,
				(errmsg("hashgraph_join has no GPU to serve, and runs %u threads: %s",
						shared->threads, shared->why)));
	return hgj_monotonic_seconds();
}

static void
look_at_settings(void)
{
	if (!ConfigReloadPending)
		return;
	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
	__atomic_store_n(&shared->timeout_ms, (uint32) hgj_gpu_server_timeout, __ATOMIC_RELAXED);
}

/* The process, if it is there; with the worker it goes, too. */
static pid_t gpu_process = 0;

/*
 * Of one that hangs in the driver the end is not waited for: it makes no more calls, and keeps
 * no memory but its channels and, to be read, the columns.
 */
static void
end_process(void)
{
	int			status;

	if (gpu_process <= 0)
		return;
	(void) kill(gpu_process, SIGKILL);
	for (int i = 0; i < END_WAITS && waitpid(gpu_process, &status, WNOHANG) == 0; i++)
		pg_usleep(END_WAIT_US);
	gpu_process = 0;
	shared->process = 0;
	next_generation(HGJ_SERVER_DOWN);
}

static void
exit_with_process(int code, Datum arg)
{
	end_process();
}

void
hgj_gpu_worker_main(Datum arg)
{
	time_t		started = 0;
	uint64		ready_since = 0;
	int			pause = 0;
	pid_t		killed = 0;		/* and not gone yet */
	bool		again = true;

	shared = hgj_server();
	if (shared == NULL)
		proc_exit(0);
	shared->timeout_ms = (uint32) hgj_gpu_server_timeout;
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGCHLD, child_has_ended);
	BackgroundWorkerUnblockSignals();
	before_shmem_exit(exit_with_process, (Datum) 0);
	hgj_prewarm_forget(shared);	/* of a worker before this one */
	while (!ShutdownRequestPending)
	{
		long		pause_ms = LOOK_EVERY_MS;
		pid_t		ended;
		int			status;

		/* one before it may have hung */
		do
			ended = waitpid(-1, &status, WNOHANG);
		while (ended > 0 && ended != gpu_process);
		if (ended > 0)
		{
			gpu_process = killed = 0;
			hgj_prewarm_forget(shared);
			free_channels();
			again = process_ended(status);
			pause = time(NULL) - started >= LIVED_FOR_A_WHILE ? 0 :
				Min(Max(2 * pause, LEAST_PAUSE), MOST_PAUSE);
		}
		if (gpu_process <= 0 && again && time(NULL) >= started + pause)
		{
			started = time(NULL);
			gpu_process = start_process();
		}
		if (gpu_process <= 0 || hgj_server_state(shared) != HGJ_SERVER_READY)
			ready_since = 0;
		else if (ready_since == 0)
			ready_since = is_ready();
		if (ready_since > 0 && gpu_process != killed &&
			(process_hangs(ready_since) ||
			 __atomic_load_n(&shared->unsafe, __ATOMIC_ACQUIRE) == hgj_server_generation(shared)))
		{
			ereport(LOG,
					(errmsg("the GPU process of hashgraph_join is killed"),
					 errdetail("A call has not come back for %d seconds.",
							   hgj_gpu_server_timeout / 1000 + HUNG_FOR)));
			(void) kill(gpu_process, SIGKILL);
			killed = gpu_process;
		}
		if (ready_since > 0)
			pause_ms = hgj_prewarm_step(shared, end_process, LOOK_EVERY_MS);
		else if (gpu_process > 0)
			pause_ms = LOOK_AT_START_MS;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 pause_ms, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		look_at_settings();
	}
	proc_exit(1);				/* 0 would end it for good */
}
