/*-------------------------------------------------------------------------
 *
 * worker_probe.c
 *	  The background worker that measures how long others take to begin and to end
 *	  (base/worker_time.c says what for).
 *
 * 1. It has two workers started, which set themselves up as far as one can that is for no
 *	  database, say that they have begun, and end.
 * 2. It waits for both to have gone, as a Gather does, and does so a few times: the time
 *	  that was least disturbed counts, and what workers of queries take moves it from
 *	  there.
 * 3. Where there is no room for them, because others have taken all that
 *	  max_worker_processes allows, it ends, and nothing has been measured.
 *
 * No table, no catalog of a database, and no user's code is looked at.
 *
 * Memory: none to speak of.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/worker_time.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"

extern PGDLLEXPORT void hgj_worker_probe_main(Datum arg);
extern PGDLLEXPORT void hgj_probed_worker_main(Datum arg);

/* Step 2. */
#define ROUNDS		5

/* Step 1; false: there is no room for it. */
static bool
start_one(BackgroundWorkerHandle **handle)
{
	BackgroundWorker worker;

	hgj_describe_worker(&worker, "hashgraph_join probed worker", HGJ_PROBED_MAIN);
	worker.bgw_notify_pid = MyProcPid;
	return RegisterDynamicBackgroundWorker(&worker, handle);
}

/* One round; false: it says nothing.  Those that were started have gone in any case. */
static bool
measure(HgjLaunch *launch, uint64 *start, uint64 *end)
{
	BackgroundWorkerHandle *handles[HGJ_TIMED_WORKERS];
	int			n = 0;
	uint64		last;

	hgj_launch_begin(launch);
	while (n < HGJ_TIMED_WORKERS && start_one(&handles[n]))
		n++;
	for (int i = 0; i < n; i++)
		if (WaitForBackgroundWorkerShutdown(handles[i]) == BGWH_POSTMASTER_DIED)
			proc_exit(1);
	last = pg_atomic_read_u64(&launch->last);
	if (n < HGJ_TIMED_WORKERS || pg_atomic_read_u32(&launch->started) < HGJ_TIMED_WORKERS ||
		last < launch->asked)
		return false;
	*start = last - launch->asked;
	*end = hgj_microseconds() - last;
	return true;
}

/* The background worker. */
void
hgj_worker_probe_main(Datum arg)
{
	HgjLaunch  *launch = hgj_probe_launch();
	uint64		best_start = 0;
	uint64		best_end = 0;

	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	/* without it, the postmaster's signals would not wake it */
	BackgroundWorkerInitializeConnectionByOid(InvalidOid, InvalidOid, 0);
	for (int round = 0; launch != NULL && round < ROUNDS; round++)
	{
		uint64		start;
		uint64		end;

		CHECK_FOR_INTERRUPTS();
		if (measure(launch, &start, &end) &&
			(best_start == 0 || start + end < best_start + best_end))
		{
			best_start = start;
			best_end = end;
		}
	}
	if (best_start > 0)
		hgj_worker_time_probed(best_start, best_end);
	proc_exit(0);
}

/* One of the workers that it has started. */
void
hgj_probed_worker_main(Datum arg)
{
	HgjLaunch  *launch = hgj_probe_launch();

	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(InvalidOid, InvalidOid, 0);
	if (launch)
		hgj_launch_started(launch);
	proc_exit(0);
}
