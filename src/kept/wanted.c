/*-------------------------------------------------------------------------
 *
 * wanted.c
 *	  How often, and how many pages, scans have read of which columns, so that those
 *	  that are read often are loaded (load_worker.c) without anybody asking for it.
 *
 * 1. A scan that could have read kept columns says at its end how many pages it has
 *	  read from the table, for each column that it wanted.  What was kept does not
 *	  count, nor do small tables.  An hour makes half of a count.
 * 2. A column is wanted when it has been read from the table twice, nearly whole
 *	  (READ_FIRST).  To load a column costs about as much as to decode it
 *	  for a query.  So, whatever comes later, no more time is spent on loading than
 *	  half of what queries have spent on the same pages, a table that is read once a
 *	  day is left alone, and one that is read again and again is loaded soon.
 * 3. If loading was of no use, because no page is all-visible, there was nothing that
 *	  had not been loaded, it does not fit into the store, or it changes before it is
 *	  read, the column is wanted when it has been read twice as often, and so on.
 * 4. The counts are a table of sets of a few places each; a column for which there is
 *	  no place takes that of the one that was read least.
 * 5. The process whose scan finds a column wanted has a worker started for its
 *	  database, unless there is one.  All databases together have a quarter of
 *	  max_worker_processes, or one: parallel queries need the others.  If there is no
 *	  place for it, somebody tries again later.
 *
 * Memory: shared memory of a fixed size, for the life of the postmaster, if columns
 * are kept at all.  Locks: one LWLock guards all of it.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "base/guc.h"
#include "base/shared_memory.h"
#include "common/hashfn.h"
#include "kept/wanted.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#define SHARED_NAME			"hashgraph_join column loading"

/* Step 1. */
#define FEWEST_PAGES		32
#define HALF_LIFE_SECONDS	3600.0

/* Steps 2 and 3. */
#define READ_FIRST			1.9
#define MOST_PATIENCE		6

/* Step 4. */
#define SETS				512
#define PLACES				8

/* Step 5: databases with workers at a time; seconds till it is tried again. */
#define MOST_WORKERS		64
#define TRY_AGAIN_SECONDS	10

typedef struct Wanted
{
	Oid			database;		/* InvalidOid: the place is free */
	Oid			table;
	AttrNumber	attno;
	uint8		patience;		/* step 3 */
	BlockNumber npages;			/* of the table, when it was last scanned */
	double		pages;			/* that were read, as of: */
	TimestampTz when;
} Wanted;

typedef struct Worker
{
	Oid			database;		/* InvalidOid: the place is free */
	pid_t		pid;			/* 0: it has not begun yet, if it ever does */
	TimestampTz asked;
} Worker;

typedef struct SharedWanted
{
	LWLock	   *lock;
	Worker		workers[MOST_WORKERS];
	Wanted		sets[SETS][PLACES];
} SharedWanted;

static SharedWanted *shared = NULL;

static Size
shared_bytes(void)
{
	return hgj_column_memory == 0 ? 0 : sizeof(SharedWanted);
}

static void
attach_shared(void *memory, bool found)
{
	shared = memory;
	if (found)
		return;
	memset(shared, 0, sizeof(SharedWanted));
	shared->lock = &GetNamedLWLockTranche(SHARED_NAME)->lock;
}

/* In the postmaster, when it loads the library. */
void
hgj_wanted_share(void)
{
	static const HgjSharedPart part = {SHARED_NAME, shared_bytes, true, attach_shared};

	hgj_shared_memory_add(&part);
}

/* ---- counts; the lock is held ----------------------------------------------- */

/* Step 1. */
static double
count_now(const Wanted *wanted, TimestampTz now)
{
	double		seconds = (double) Max(now - wanted->when, 0) / USECS_PER_SEC;

	return wanted->pages * exp2(-seconds / HALF_LIFE_SECONDS);
}

/* Steps 2 and 3. */
static bool
is_wanted(const Wanted *wanted, TimestampTz now)
{
	return count_now(wanted, now) >=
		ldexp(READ_FIRST * wanted->npages, wanted->patience);
}

static Wanted *
set_of(Oid table, AttrNumber attno)
{
	uint32		hash = hash_combine(murmurhash32(table),
									murmurhash32(MyDatabaseId) + attno);

	return shared->sets[hash % SETS];
}

static Wanted *
find_wanted(Oid table, AttrNumber attno)
{
	Wanted	   *set = set_of(table, attno);

	for (int i = 0; i < PLACES; i++)
		if (set[i].database == MyDatabaseId && set[i].table == table &&
			set[i].attno == attno)
			return &set[i];
	return NULL;
}

/* Step 4. */
static Wanted *
make_wanted(Oid table, AttrNumber attno, TimestampTz now)
{
	Wanted	   *set = set_of(table, attno);
	Wanted	   *least = &set[0];

	for (int i = 1; i < PLACES && OidIsValid(least->database); i++)
		if (!OidIsValid(set[i].database) ||
			count_now(&set[i], now) < count_now(least, now))
			least = &set[i];
	memset(least, 0, sizeof(Wanted));
	least->database = MyDatabaseId;
	least->table = table;
	least->attno = attno;
	least->when = now;
	return least;
}

/* ---- step 5 ----------------------------------------------------------------- */

/* Has the place no worker, and nobody who has asked for one lately? */
static bool
is_free(const Worker *worker, TimestampTz now)
{
	return !OidIsValid(worker->database) ||
		(worker->pid == 0 &&
		 TimestampDifferenceExceeds(worker->asked, now, TRY_AGAIN_SECONDS * 1000));
}

/* A place for a worker of this database; false: there is one, or none can be had. */
static bool
claim_worker(TimestampTz now)
{
	Worker	   *mine = NULL;
	bool		has_one = false;
	int			others = 0;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < MOST_WORKERS; i++)
	{
		Worker	   *worker = &shared->workers[i];

		if (is_free(worker, now))
		{
			if (mine == NULL || worker->database == MyDatabaseId)
				mine = worker;
		}
		else if (worker->database == MyDatabaseId)
			has_one = true;
		else
			others++;
	}
	if (has_one || others >= Max(max_worker_processes / 4, 1))
		mine = NULL;
	if (mine)
	{
		mine->database = MyDatabaseId;
		mine->pid = 0;
		mine->asked = now;
	}
	LWLockRelease(shared->lock);
	return mine != NULL;
}

static void
start_worker(void)
{
	BackgroundWorker worker = {
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
		.bgw_start_time = BgWorkerStart_ConsistentState,
		.bgw_restart_time = BGW_NEVER_RESTART,
		.bgw_main_arg = ObjectIdGetDatum(MyDatabaseId)
	};

	if (!claim_worker(GetCurrentTimestamp()))
		return;
	strlcpy(worker.bgw_name, "hashgraph_join column loader", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "hashgraph_join column loader", BGW_MAXLEN);
	strlcpy(worker.bgw_library_name, "hashgraph_join", BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "hgj_load_worker_main", BGW_MAXLEN);
	if (RegisterDynamicBackgroundWorker(&worker, NULL))
		ereport(DEBUG1, (errmsg_internal("a column loader is asked for")));
	else
		ereport(DEBUG1,
				(errmsg_internal("no column loader could be started: max_worker_processes are running")));
}

/*
 * Step 1: a scan has read so many of the table's npages pages, which it would not have
 * done if these columns had been kept.
 */
void
hgj_wanted_note(Relation rel, const AttrNumber *attnos, int n, uint64 read,
				BlockNumber npages)
{
	Oid			table = RelationGetRelid(rel);
	TimestampTz now;
	bool		load = false;

	if (shared == NULL || hgj_column_loading == HGJ_LOADING_OFF ||
		npages < FEWEST_PAGES || read == 0)
		return;
	now = GetCurrentTimestamp();
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < n; i++)
	{
		Wanted	   *wanted = find_wanted(table, attnos[i]);

		if (wanted == NULL)
			wanted = make_wanted(table, attnos[i], now);
		wanted->pages = count_now(wanted, now) + read;
		wanted->when = now;
		wanted->npages = npages;
		load |= is_wanted(wanted, now);
	}
	LWLockRelease(shared->lock);
	if (load)
		start_worker();
}

/* ---- for the worker --------------------------------------------------------- */

/* The process ends: another one may be started. */
static void
stop_serving(int code, Datum arg)
{
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < MOST_WORKERS; i++)
		if (shared->workers[i].pid == MyProcPid)
			memset(&shared->workers[i], 0, sizeof(Worker));
	LWLockRelease(shared->lock);
	ereport(DEBUG1, (errmsg_internal("a column loader ends")));
}

/*
 * This process is the database's worker until it ends.  If there is another one after
 * all, which came late, this one has nothing to do.
 */
void
hgj_wanted_serve(void)
{
	bool		alone = false;

	before_shmem_exit(stop_serving, 0);
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < MOST_WORKERS; i++)
		if (shared->workers[i].database == MyDatabaseId &&
			shared->workers[i].pid == 0)
		{
			shared->workers[i].pid = MyProcPid;
			alone = true;
		}
	LWLockRelease(shared->lock);
	if (!alone)
		proc_exit(0);
}

/*
 * What is wanted most of this database, which counts from zero again; false: nothing
 * is.
 */
bool
hgj_wanted_next(HgjLoadOrder *order)
{
	TimestampTz now = GetCurrentTimestamp();
	Wanted	   *all = &shared->sets[0][0];
	double		most = -1;

	memset(order, 0, sizeof(HgjLoadOrder));
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < SETS * PLACES; i++)
	{
		double		times;

		if (all[i].database != MyDatabaseId || !is_wanted(&all[i], now))
			continue;
		times = count_now(&all[i], now) / all[i].npages;
		if (times > most)
		{
			order->table = all[i].table;
			most = times;
		}
	}
	for (int i = 0; i < SETS * PLACES && order->n < HGJ_ORDER_COLUMNS; i++)
		if (OidIsValid(order->table) && all[i].database == MyDatabaseId &&
			all[i].table == order->table && is_wanted(&all[i], now))
		{
			order->attnos[order->n++] = all[i].attno;
			all[i].pages = 0;
		}
	LWLockRelease(shared->lock);
	return order->n > 0;
}

/* Step 3: it has been loaded, and that was of use or not. */
void
hgj_wanted_done(const HgjLoadOrder *order, bool useful)
{
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < order->n; i++)
	{
		Wanted	   *wanted = find_wanted(order->table, order->attnos[i]);

		if (wanted)
			wanted->patience = useful ? 0 : Min(wanted->patience + 1, MOST_PATIENCE);
	}
	LWLockRelease(shared->lock);
}
