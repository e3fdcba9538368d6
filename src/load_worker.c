/*-------------------------------------------------------------------------
 *
 * load_worker.c
 *	  The background worker that loads columns which are read often, of one database
 *	  (kept/wanted.c says which, and has it started).
 *
 * 1. It takes what is wanted most, loads it run by run of pages as
 *	  hashgraph_join_load() does (scan/load_columns.c), and ends when nothing is wanted.
 * 2. Each run is a transaction of its own.  The table is locked in AccessShareLock
 *	  if that can be had at once: where somebody waits for a stronger lock, it cannot.
 *	  So nobody waits for longer than a run takes.  What has become of the table since
 *	  the last run is looked at again.
 * 3. Between runs it sleeps as long as it has worked, so that it takes half of a
 *	  processor at most.
 * 4. Who wants to drop, rename, move or copy the database counts its processes for five
 *	  seconds, and then gives up.  So every few pages, and before and after it sleeps,
 *	  the worker looks whether somebody has the database's lock, and ends if so.
 * 5. It is a superuser, whoever has scanned the table.  No code of users' is run:
 *	  heap pages are decoded by their attributes' lengths and alignments alone, and
 *	  equal values are found as bytes; no operator, no function of a type, no
 *	  expression, index, trigger or policy is looked at.  What is loaded is seen only by
 *	  scans that PostgreSQL has allowed to read the table.
 * 6. Chunks have to make room for others when the store is full.  If these become half
 *	  as many as are loaded, or one finds no room, what is read often does not fit:
 *	  loading stops, and what was wanted is tried again later and later
 *	  (kept/wanted.c), which goes on from there.
 * 7. Nor is it of use to load what changes before anybody has read it: if most chunks
 *	  take the place of ones that were never used, that is tried later and later, too,
 *	  and so is what has ended in an error.
 *
 * SIGTERM ends it when it next looks for interrupts, and so do errors, and recovery
 * conflicts on a standby; what it has loaded so far is of use all the same.
 *
 * Memory: that of the transaction of a run.  Locks: see 2 and 4; pages' as
 * load_columns.c says.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/relation.h"
#include "access/xact.h"
#include "base/guc.h"
#include "base/waits.h"
#include "catalog/pg_database.h"
#include "kept/store.h"
#include "kept/wanted.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "scan/load_columns.h"
#include "storage/bufmgr.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/rel.h"

extern PGDLLEXPORT void hgj_load_worker_main(Datum arg);

/* Step 3: milliseconds that are worth sleeping, and the most at once. */
#define LEAST_SLEEP		10.0
#define MOST_SLEEP		1000.0

/* Step 6: so many chunks that make room count for nothing. */
#define MAY_PUT_OUT		8

/* Step 4: pages. */
#define LOOK_EVERY		64

/* Step 4: does somebody have the database's lock whom our presence disturbs? */
static bool
is_in_the_way(void)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, MyDatabaseId, 0);
	if (LockAcquire(&tag, RowExclusiveLock, true, true) == LOCKACQUIRE_NOT_AVAIL)
		return true;
	LockRelease(&tag, RowExclusiveLock, true);
	return false;
}

/* For load_columns.c, before each page. */
static bool
should_stop(void)
{
	static uint32 pages = 0;

	return ++pages % LOOK_EVERY == 0 && is_in_the_way();
}

static void
end_if_unwanted(void)
{
	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
	if (hgj_column_loading == HGJ_LOADING_OFF || is_in_the_way())
		proc_exit(0);
}

/* Step 3, outside of any transaction. */
static void
sleep_for(double milliseconds)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 (long) Min(milliseconds, MOST_SLEEP),
					 hgj_wait_event(HGJ_WAIT_LOAD));
	ResetLatch(MyLatch);
}

/* Step 2: the columns of the order that the table has. */
static int
columns_there(Relation rel, const HgjLoadOrder *order, AttrNumber *attnos)
{
	TupleDesc	desc = RelationGetDescr(rel);
	int			n = 0;

	for (int i = 0; i < order->n; i++)
		if (order->attnos[i] <= desc->natts &&
			!TupleDescAttr(desc, order->attnos[i] - 1)->attisdropped)
			attnos[n++] = order->attnos[i];
	return n;
}

/* How an order goes. */
typedef struct Progress
{
	uint64		evictions;		/* in all, before it */
	HgjRoom		room;			/* as it was then */
	int64		chunks;			/* made for it */
	int64		in_vain;		/* step 7 */
	bool		crowded;		/* step 6 */
} Progress;

/* Step 6: has a chunk of the run found no room, or has too much had to make room? */
static void
note_run(Progress *progress, const HgjLoadCounts *counts)
{
	progress->chunks += counts->chunks;
	progress->in_vain += counts->in_vain;
	if (counts->full ||
		hgj_store_evictions() - progress->evictions >
		(uint64) progress->chunks / 2 + MAY_PUT_OUT)
		progress->crowded = true;
}

/* Step 7. */
static bool
is_of_use(const Progress *progress)
{
	return progress->chunks > 0 && !progress->crowded &&
		progress->in_vain <= progress->chunks / 2;
}

/*
 * Step 2: one run.  False: the table has no such run, is no more, or is not to be had.
 */
static bool
load_run(const HgjLoadOrder *order, uint32 run, Progress *progress)
{
	AttrNumber	attnos[HGJ_ORDER_COLUMNS];
	Relation	rel = NULL;
	bool		there = false;

	StartTransactionCommand();
	if (ConditionalLockRelationOid(order->table, AccessShareLock))
		rel = try_relation_open(order->table, NoLock);
	if (rel)
	{
		there = hgj_load_obstacle(rel) == NULL &&
			hgj_run_start(run) < RelationGetNumberOfBlocks(rel);
		if (there)
		{
			int			n = columns_there(rel, order, attnos);
			HgjLoadCounts counts = hgj_load_runs(rel, attnos, n, run, run + 1,
												 &progress->room, should_stop);

			note_run(progress, &counts);
		}
		relation_close(rel, NoLock);
	}
	CommitTransactionCommand();
	return there;
}

/* All runs of the table, with sleep in between; how many there were, or could be had. */
static uint32
load_all_runs(const HgjLoadOrder *order, Progress *progress)
{
	double		worked = 0;
	bool		there = true;
	uint32		run;

	for (run = 0; there && !progress->crowded; run++)
	{
		instr_time	begin;
		instr_time	end;

		end_if_unwanted();
		INSTR_TIME_SET_CURRENT(begin);
		there = load_run(order, run, progress);
		INSTR_TIME_SET_CURRENT(end);
		INSTR_TIME_SUBTRACT(end, begin);
		worked += INSTR_TIME_GET_MILLISEC(end);
		while (worked >= LEAST_SLEEP)
		{
			sleep_for(worked);
			worked -= Min(worked, MOST_SLEEP);
			end_if_unwanted();
		}
	}
	return there ? run : run - 1;
}

static void
load_table(const HgjLoadOrder *order)
{
	Progress	progress = {.evictions = hgj_store_evictions(),
	.room = {true, hgj_store_last_id()}};
	uint32		runs = 0;

	PG_TRY();
	{
		runs = load_all_runs(order, &progress);
	}
	PG_CATCH();
	{
		hgj_wanted_done(order, false);
		PG_RE_THROW();
	}
	PG_END_TRY();
	pgstat_report_stat(true);
	/* the table could not be had: that says nothing */
	if (runs > 0)
		hgj_wanted_done(order, is_of_use(&progress));
	ereport(DEBUG1,
			(errmsg_internal("column loader: " INT64_FORMAT " chunks of %d columns of table %u",
							 progress.chunks, order->n, order->table)));
}

/* bgw_main_arg: the database. */
void
hgj_load_worker_main(Datum arg)
{
	HgjLoadOrder order;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(arg), InvalidOid, 0);
	hgj_wanted_serve();
	pgstat_report_activity(STATE_RUNNING, "loading columns that are read often");
	StartTransactionCommand();
	hgj_store_forget_gone();
	CommitTransactionCommand();
	while (hgj_wanted_next(&order))
		load_table(&order);
	proc_exit(0);
}
