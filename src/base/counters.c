/*-------------------------------------------------------------------------
 *
 * counters.c
 *	  What nodes have done, counted per database, where all sessions see it.
 *
 * 1. If the postmaster loads the library (shared_preload_libraries), there is
 *	  an array of entries in shared memory, hashgraph_join.stats_databases of
 *	  them and one for all databases that find no room.  A process looks its
 *	  database up once and takes the next free entry if it is not there.
 * 2. When no entry is free, those of databases that have been dropped are given
 *	  to others.  Nobody can have such an entry in use.
 * 3. A node adds its counts when it ends (tally.c): one lock, one time per node
 *	  and execution, whether the query succeeds or not.
 * 4. Otherwise the library counts in the session's own memory, what its
 *	  parallel workers do not among it.
 *
 * Nothing outlives the server: counters start at zero when it does.
 *
 * Memory: shared memory, of a fixed size, for the life of the postmaster; or one
 * static entry.  Locks: the LWLock guards which entry is whose, each entry's
 * spinlock its counters; readers take both in this order.  No catalog is looked
 * at meanwhile, and a query that ends takes the spinlock only.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/counters.h"
#include "base/guc.h"
#include "base/shared_memory.h"
#include "miscadmin.h"
#include "storage/lwlock.h"
#include "storage/spin.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#define SHARED_NAME		"hashgraph_join counters"

typedef struct Entry
{
	slock_t		lock;
	HgjDatabaseCounters of;		/* .database: guarded by the LWLock */
} Entry;

typedef struct SharedCounters
{
	LWLock	   *lock;
	TimestampTz started;
	int			nentries;
	int			nused;			/* the first of them */
	Entry		others;
	Entry		entries[FLEXIBLE_ARRAY_MEMBER];
} SharedCounters;

static SharedCounters *shared = NULL;
static Entry session_entry;		/* step 4 */
static Entry *own = NULL;		/* NULL: not attached yet */

static Size
shared_bytes(void)
{
	return add_size(offsetof(SharedCounters, entries),
					mul_size(hgj_stats_databases, sizeof(Entry)));
}

static void
start_entry(Entry *entry, Oid database, TimestampTz since)
{
	memset(&entry->of, 0, sizeof(entry->of));
	entry->of.database = database;
	entry->of.reset = since;
}

static void
attach_shared(void *memory, bool found)
{
	shared = memory;
	if (found)
		return;
	memset(shared, 0, shared_bytes());
	shared->lock = &GetNamedLWLockTranche(SHARED_NAME)->lock;
	shared->started = GetCurrentTimestamp();
	shared->nentries = hgj_stats_databases;
	SpinLockInit(&shared->others.lock);
	start_entry(&shared->others, InvalidOid, shared->started);
	for (int i = 0; i < shared->nentries; i++)
		SpinLockInit(&shared->entries[i].lock);
}

/* See counters.h. */
void
hgj_counters_share(void)
{
	static const HgjSharedPart part = {SHARED_NAME, shared_bytes, true, attach_shared};

	hgj_shared_memory_add(&part);
}

/* See counters.h. */
bool
hgj_counters_shared(void)
{
	return shared != NULL;
}

/* The entry of this database, or NULL; the lock must be held. */
static Entry *
find_entry(void)
{
	for (int i = 0; i < shared->nused; i++)
		if (shared->entries[i].of.database == MyDatabaseId)
			return &shared->entries[i];
	return NULL;
}

/*
 * Step 2: the entry of a database that is no more, or InvalidOid.  Names are
 * taken while the lock is held, and looked up when it is not.
 */
static Oid
find_dropped(void)
{
	Oid		   *databases = palloc(mul_size(shared->nentries, sizeof(Oid)));
	Oid			dropped = InvalidOid;
	int			n;

	LWLockAcquire(shared->lock, LW_SHARED);
	n = shared->nused;
	for (int i = 0; i < n; i++)
		databases[i] = shared->entries[i].of.database;
	LWLockRelease(shared->lock);
	for (int i = 0; i < n && !OidIsValid(dropped); i++)
		if (!SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(databases[i])))
			dropped = databases[i];
	pfree(databases);
	return dropped;
}

/*
 * Steps 1 and 2: this database's entry, a fresh one, or the one of `dropped`;
 * NULL if there is none.
 */
static Entry *
take_entry(Oid dropped)
{
	Entry	   *entry;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	entry = find_entry();
	if (entry == NULL && shared->nused < shared->nentries)
	{
		entry = &shared->entries[shared->nused];
		start_entry(entry, MyDatabaseId, shared->started);
		shared->nused++;
	}
	for (int i = 0; i < shared->nused && entry == NULL && OidIsValid(dropped); i++)
		if (shared->entries[i].of.database == dropped)
		{
			entry = &shared->entries[i];
			start_entry(entry, MyDatabaseId, shared->started);
		}
	LWLockRelease(shared->lock);
	return entry;
}

/* See counters.h. */
void
hgj_counters_attach(void)
{
	if (own != NULL)
		return;
	if (shared == NULL)
	{
		SpinLockInit(&session_entry.lock);
		start_entry(&session_entry, MyDatabaseId, GetCurrentTimestamp());
		own = &session_entry;
		return;
	}
	LWLockAcquire(shared->lock, LW_SHARED);
	own = find_entry();
	LWLockRelease(shared->lock);
	if (own == NULL)
		own = take_entry(InvalidOid);
	if (own == NULL)
	{
		Oid			dropped = find_dropped();

		if (OidIsValid(dropped))
			own = take_entry(dropped);
	}
	if (own == NULL)
		own = &shared->others;
}

/* See counters.h. */
void
hgj_counters_add(const HgjCounters *counters)
{
	HgjCounters *to;

	Assert(own != NULL);
	to = &own->of.counters;
	SpinLockAcquire(&own->lock);
	for (int i = 0; i < HGJ_FIRST_PEAK; i++)
		to->values[i] += counters->values[i];
	for (int i = HGJ_FIRST_PEAK; i < HGJ_COUNTERS; i++)
		to->values[i] = Max(to->values[i], counters->values[i]);
	if (counters->fell_back)
	{
		to->fell_back = true;
		for (int i = 0; i < HGJ_REASONS; i++)
			to->fallbacks[i] += counters->fallbacks[i];
	}
	SpinLockRelease(&own->lock);
}

/* See counters.h. */
bool
hgj_counters_get(int i, HgjDatabaseCounters *copy)
{
	Entry	   *entry = &session_entry;

	if (i > (shared ? shared->nentries : 0))
		return false;
	if (shared)
	{
		entry = i < shared->nentries ? &shared->entries[i] : &shared->others;
		LWLockAcquire(shared->lock, LW_SHARED);
	}
	SpinLockAcquire(&entry->lock);
	*copy = entry->of;
	SpinLockRelease(&entry->lock);
	if (shared)
		LWLockRelease(shared->lock);
	return true;
}

/* See counters.h. */
void
hgj_counters_reset(void)
{
	TimestampTz now = GetCurrentTimestamp();

	hgj_counters_attach();
	SpinLockAcquire(&own->lock);
	memset(&own->of.counters, 0, sizeof(own->of.counters));
	own->of.reset = now;
	SpinLockRelease(&own->lock);
}
