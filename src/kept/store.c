/*-------------------------------------------------------------------------
 *
 * store.c
 *	  Chunks of columns in shared memory, where all sessions find them.
 *
 * 1. If the postmaster loads the library, and hashgraph_join.column_memory is not
 *	  0, there is one piece of shared memory of that size: a directory of slots,
 *	  found by hash, and an area from which the chunks' images are allocated
 *	  (dsa.c, in place, which never grows).
 * 2. A chunk is made in its maker's own memory.  hgj_store_put() copies it into
 *	  the area and enters it into the directory under one lock: others see it whole
 *	  or not at all, and nothing is left behind if the maker dies before.
 * 3. When there is no room, chunks go that nobody holds, and that were not used
 *	  since the clock's hand came by the last time.  If all are held, the new chunk
 *	  is not kept.
 * 4. Who reads a chunk holds it: its slot counts holders.  One that is replaced or
 *	  dropped while somebody holds it is taken out of the directory at once, and
 *	  freed by its last holder.
 * 5. What a process holds it counts itself, too, and gives back when it exits,
 *	  whatever became of the scan that held it.
 *
 * Memory: shared memory of a fixed size, for the life of the postmaster; per process
 * an array of counts, for ever.  Locks: one LWLock guards directory, slots and
 * counts; no catalog is looked at, and nothing is read from disk meanwhile.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/guc.h"
#include "common/hashfn.h"
#include "kept/store.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/dsa.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#define SHARED_NAME			"hashgraph_join columns"
#define LEAST_BYTES			((Size) 1024 * 1024)
#define BYTES_PER_SLOT		((Size) 16 * 1024)
#define MOST_USAGE			3
#define NO_SLOT				(-1)

typedef struct Slot
{
	HgjChunkKey key;
	XLogRecPtr	map_lsn;
	dsa_pointer data;			/* InvalidDsaPointer: the slot is free */
	uint64		bytes;
	uint64		uses;
	TimestampTz last_use;
	uint32		holders;
	uint32		usage;			/* for the clock */
	bool		listed;			/* in the directory; false: the last holder frees it */
	int			next;			/* of the same bucket */
} Slot;

typedef struct SharedStore
{
	LWLock	   *lock;
	int			nslots;
	int			nbuckets;		/* a power of two */
	int			hand;
	Size		slots;			/* bytes behind the store's beginning: */
	Size		buckets;
	Size		area;
} SharedStore;

StaticAssertDecl(sizeof(HgjChunkKey) == sizeof(HgjLocator) + 4 * sizeof(uint32),
				 "padding in a key that is hashed");

static shmem_request_hook_type previous_request = NULL;
static shmem_startup_hook_type previous_startup = NULL;

static SharedStore *shared = NULL;
static dsa_area *area = NULL;	/* once this process has attached */
static uint32 *own_holds = NULL;	/* step 5, per slot */

/* ---- step 1 ------------------------------------------------------------- */

static Size
shared_bytes(void)
{
	return Max((Size) hgj_column_memory * 1024, LEAST_BYTES);
}

static void
request_memory(void)
{
	if (previous_request)
		previous_request();
	if (hgj_column_memory == 0)
		return;
	RequestAddinShmemSpace(MAXALIGN(shared_bytes()));
	RequestNamedLWLockTranche(SHARED_NAME, 1);
}

static Slot *
slot_at(int i)
{
	return (Slot *) ((char *) shared + shared->slots) + i;
}

static int *
bucket_of(const HgjChunkKey *key)
{
	uint32		hash = hash_bytes((const unsigned char *) key, sizeof(*key));

	return (int *) ((char *) shared + shared->buckets) +
		(hash & (shared->nbuckets - 1));
}

static void
lay_out(void)
{
	LWLockPadded *locks = GetNamedLWLockTranche(SHARED_NAME);
	dsa_area   *made;
	Size		room;

	shared->lock = &locks->lock;
	shared->hand = 0;
	shared->nslots = (int) Min(shared_bytes() / BYTES_PER_SLOT, 1 << 24);
	shared->nbuckets = (int) pg_nextpower2_32(shared->nslots);
	shared->slots = MAXALIGN(sizeof(SharedStore));
	shared->buckets = shared->slots + MAXALIGN(shared->nslots * sizeof(Slot));
	shared->area = shared->buckets + MAXALIGN(shared->nbuckets * sizeof(int));
	memset(slot_at(0), 0, shared->nslots * sizeof(Slot));
	memset((char *) shared + shared->buckets, 0xFF, shared->nbuckets * sizeof(int));

	room = shared_bytes() - shared->area;
	made = dsa_create_in_place((char *) shared + shared->area, room,
							   shared->lock->tranche, NULL);
	dsa_pin(made);
	dsa_set_size_limit(made, room);
	dsa_detach(made);
}

static void
make_memory(void)
{
	bool		found;

	if (previous_startup)
		previous_startup();
	if (hgj_column_memory == 0)
		return;
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct(SHARED_NAME, shared_bytes(), &found);
	if (!found)
		lay_out();
	LWLockRelease(AddinShmemInitLock);
}

/* In the postmaster, when it loads the library. */
void
hgj_store_share(void)
{
	previous_request = shmem_request_hook;
	shmem_request_hook = request_memory;
	previous_startup = shmem_startup_hook;
	shmem_startup_hook = make_memory;
}

bool
hgj_store_exists(void)
{
	return shared != NULL;
}

/* ---- directory; the lock is held ------------------------------------------ */

static int
find_slot(const HgjChunkKey *key)
{
	int			i = *bucket_of(key);

	while (i != NO_SLOT && memcmp(&slot_at(i)->key, key, sizeof(*key)) != 0)
		i = slot_at(i)->next;
	return i;
}

static void
free_slot(Slot *slot)
{
	Assert(slot->holders == 0 && !slot->listed);
	dsa_free(area, slot->data);
	slot->data = InvalidDsaPointer;
}

/* Step 4: nobody finds it any longer. */
static void
drop_slot(int i)
{
	Slot	   *slot = slot_at(i);
	int		   *link = bucket_of(&slot->key);

	while (*link != i)
		link = &slot_at(*link)->next;
	*link = slot->next;
	slot->listed = false;
	if (slot->holders == 0)
		free_slot(slot);
}

/* Step 3: make room; false if there is nothing that could go. */
static bool
evict_one(void)
{
	for (int steps = 0; steps < shared->nslots * (MOST_USAGE + 1); steps++)
	{
		int			i = shared->hand;
		Slot	   *slot = slot_at(i);

		shared->hand = (i + 1) % shared->nslots;
		if (!slot->listed || slot->holders > 0)
			continue;
		if (slot->usage == 0)
		{
			drop_slot(i);
			return true;
		}
		slot->usage--;
	}
	return false;
}

static int
find_free_slot(void)
{
	for (int i = 0; i < shared->nslots; i++)
		if (!DsaPointerIsValid(slot_at(i)->data))
			return i;
	return NO_SLOT;
}

static void
release_slot(int i, uint32 times)
{
	Slot	   *slot = slot_at(i);

	Assert(slot->holders >= times && own_holds[i] >= times);
	own_holds[i] -= times;
	slot->holders -= times;
	if (slot->holders == 0 && !slot->listed)
		free_slot(slot);
}

/* ---- for everybody ---------------------------------------------------------- */

/* Step 5: the process exits. */
static void
release_all(int code, Datum arg)
{
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < shared->nslots; i++)
		if (own_holds[i] > 0)
			release_slot(i, own_holds[i]);
	LWLockRelease(shared->lock);
	dsa_release_in_place((char *) shared + shared->area);
}

static void
attach(void)
{
	MemoryContext old;

	if (area != NULL)
		return;
	old = MemoryContextSwitchTo(TopMemoryContext);
	if (own_holds == NULL)
		own_holds = palloc0(mul_size(shared->nslots, sizeof(uint32)));
	area = dsa_attach_in_place((char *) shared + shared->area, NULL);
	dsa_pin_mapping(area);
	MemoryContextSwitchTo(old);
	before_shmem_exit(release_all, 0);
}

HgjChunkKey
hgj_store_key(Relation rel, AttrNumber attno, uint32 run)
{
	HgjChunkKey key;

	key.locator = HGJ_LOCATOR(rel);
	key.table = RelationGetRelid(rel);
	key.type = TupleDescAttr(RelationGetDescr(rel), attno - 1)->atttypid;
	key.attno = attno;
	key.run = run;
	return key;
}

/* Hold the chunk, if there is one.  used: somebody reads values of it. */
bool
hgj_store_hold(const HgjChunkKey *key, bool used, HgjHeldChunk *held)
{
	Slot	   *slot;
	int			i;

	attach();
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	i = find_slot(key);
	if (i != NO_SLOT)
	{
		slot = slot_at(i);
		slot->holders++;
		own_holds[i]++;
		if (used)
		{
			slot->uses++;
			slot->usage = Min(slot->usage + 1, MOST_USAGE);
			slot->last_use = GetCurrentTimestamp();
		}
		held->slot = i;
		held->map_lsn = slot->map_lsn;
		held->chunk = dsa_get_address(area, slot->data);
	}
	LWLockRelease(shared->lock);
	return i != NO_SLOT;
}

/* A process that exits has given all back before its queries are cleaned up. */
void
hgj_store_release(const HgjHeldChunk *held)
{
	if (own_holds[held->slot] == 0)
		return;
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	release_slot(held->slot, 1);
	LWLockRelease(shared->lock);
}

/*
 * Step 2: keep a copy of the chunk, in place of an earlier one.  False if there is
 * no room for it, and none can be made.
 */
bool
hgj_store_put(const HgjChunkKey *key, XLogRecPtr map_lsn, const HgjChunk *chunk)
{
	dsa_pointer data = InvalidDsaPointer;
	Slot	   *slot;
	int			i;

	attach();
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	i = find_slot(key);
	if (i != NO_SLOT)
		drop_slot(i);
	while ((i = find_free_slot()) == NO_SLOT && evict_one())
		;
	while (i != NO_SLOT && !DsaPointerIsValid(data))
	{
		data = dsa_allocate_extended(area, chunk->bytes,
									 DSA_ALLOC_HUGE | DSA_ALLOC_NO_OOM);
		if (!DsaPointerIsValid(data) && !evict_one())
			break;
	}
	if (DsaPointerIsValid(data))
	{
		int		   *bucket = bucket_of(key);

		memcpy(dsa_get_address(area, data), chunk, chunk->bytes);
		slot = slot_at(i);
		memset(slot, 0, sizeof(Slot));
		slot->key = *key;
		slot->map_lsn = map_lsn;
		slot->data = data;
		slot->bytes = chunk->bytes;
		slot->usage = 1;
		slot->listed = true;
		slot->next = *bucket;
		*bucket = i;
	}
	LWLockRelease(shared->lock);
	return DsaPointerIsValid(data);
}

/* Drop what is kept of a table, and return how many chunks that were. */
uint32
hgj_store_drop(Oid database, Oid table)
{
	uint32		dropped = 0;

	if (shared == NULL)
		return 0;
	attach();
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < shared->nslots; i++)
	{
		Slot	   *slot = slot_at(i);

		if (!slot->listed || slot->key.table != table ||
			HGJ_LOCATOR_DATABASE(slot->key.locator) != database)
			continue;
		drop_slot(i);
		dropped++;
	}
	LWLockRelease(shared->lock);
	return dropped;
}

/* Facts of all chunks of a database, in the current memory context. */
HgjChunkFacts *
hgj_store_list(Oid database, uint32 *n)
{
	HgjChunkFacts *facts;

	*n = 0;
	if (shared == NULL)
		return NULL;
	attach();
	facts = MemoryContextAllocHuge(CurrentMemoryContext,
								   mul_size(shared->nslots, sizeof(HgjChunkFacts)));
	LWLockAcquire(shared->lock, LW_SHARED);
	for (int i = 0; i < shared->nslots; i++)
	{
		const Slot *slot = slot_at(i);
		const HgjChunk *chunk;
		HgjChunkFacts *fact = &facts[*n];

		if (!slot->listed || HGJ_LOCATOR_DATABASE(slot->key.locator) != database)
			continue;
		chunk = dsa_get_address(area, slot->data);
		fact->key = slot->key;
		fact->bytes = slot->bytes;
		fact->pages = (uint32) pg_popcount((const char *) chunk->pages,
										   sizeof(chunk->pages));
		fact->rows = chunk->nrows;
		fact->width = chunk->width;
		fact->by_value = chunk->by_value;
		fact->uses = slot->uses;
		fact->last_use = slot->last_use;
		(*n)++;
	}
	LWLockRelease(shared->lock);
	return facts;
}
