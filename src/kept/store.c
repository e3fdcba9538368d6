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
 *	  the area, where nobody else can find it yet, and then enters it into the
 *	  directory under the lock: others see it whole or not at all.  Nothing can
 *	  interrupt the maker in between, and who dies there takes the server along.
 * 3. When there is no room, chunks go that nobody holds, and that have no credit
 *	  left.  The clock's hand takes one off each chunk that it passes; a use gives
 *	  some, the more, the more time it saves for a byte of the chunk.  What has been
 *	  put there since the load at hand began stays, whoever has put it there: otherwise tables
 *	  that are loaded one beside the other, or the parts of one that is too large, would
 *	  put each other out, and nothing would be kept as a whole.  If no other chunk can
 *	  go, the new one is not kept.  Not everybody may have others' chunks make
 *	  room: what other loads put there fills free room, begins without credit, and is
 *	  not counted as put out before somebody has used it.
 * 4. Who reads a chunk holds it: its slot counts holders, more of them under the lock in
 *	  share mode, fewer without it.  One that is replaced or dropped while somebody holds
 *	  it is taken out of the directory at once, and freed by its last holder.  Where somebody
 *	  else reads what a process holds (the GPU process, meanwhile), that waits before it
 *	  releases anything.
 * 5. What a process holds it counts itself, too, and gives back when it exits,
 *	  whatever became of the scan that held it.  There is a count for each slot that was
 *	  in use when the process last looked: of what came since, it holds nothing.
 *
 * Memory: shared memory of a fixed size, for the life of the postmaster; per process
 * the array of counts, for ever.  Locks: one LWLock guards directory, slots and
 * counts; no catalog is looked at, and nothing is read from disk or copied meanwhile.
 * dsa.c has locks of its own, which are taken inside of that one, too.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/transam.h"
#include "base/guc.h"
#include "base/mapped_memory.h"
#include "base/shared_memory.h"
#include "common/hashfn.h"
#include "kept/store_slots.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#define SHARED_NAME			"hashgraph_join columns"
#define LEAST_BYTES			((Size) 1024 * 1024)
#define BYTES_PER_SLOT		((Size) 16 * 1024)
#define NO_SLOT				(-1)

/* What gets huge pages at a time: a block that a device registers at a time (cuda/registered.cu). */
#define PREPARED_BYTES		((uint64) 64 * 1024 * 1024)
#define MOST_LOOKS			1000
#define LOOK_US				1000

/* Slots that are looked at before others get the lock. */
#define SLOTS_AT_ONCE		1024

/* Step 3: credit of a chunk; nanoseconds a byte that a use saves for one more of it. */
#define FIRST_CREDIT		1
#define MOST_CREDIT			8
#define CREDIT_FOR_2		0.25
#define CREDIT_FOR_3		1.0
#define CREDIT_FOR_4		4.0

StaticAssertDecl(sizeof(HgjChunkKey) == sizeof(HgjLocator) + 5 * sizeof(uint32) &&
				 offsetof(HgjChunkKey, run) == sizeof(HgjChunkKey) - sizeof(uint32),
				 "padding in a key that is hashed, or a run that is not its end");

static HgjStore *shared = NULL;
static dsa_area *area = NULL;	/* once this process has attached */
static uint32 *own_holds = NULL;	/* step 5: of the first slots, */
static int	nown_holds = 0;		/* so many, */
static uint64 all_own_holds = 0;	/* and in all */
static uint64 own_evictions = 0;	/* step 3: chunks that made room for this process's */
static void (*wait_for_reader) (void) = NULL;	/* step 4: who reads of them for this process */

/* ---- step 1 ------------------------------------------------------------- */

static Size
shared_bytes(void)
{
	return hgj_column_memory == 0 ? 0 :
		Max((Size) hgj_column_memory * 1024, LEAST_BYTES);
}

/* What the postmaster is asked for. */
static Size
wanted_bytes(void)
{
	return shared_bytes() == 0 ? 0 : shared_bytes() + HGJ_HUGE_PAGE_ROOM;
}

static inline HgjStoreSlot *
slot_at(int i)
{
	return hgj_store_slot(shared, i);
}

/* Runs of a column lie side by side: a new process has one page of buckets mapped for them. */
static int *
bucket_of(const HgjChunkKey *key)
{
	uint32		hash = hash_bytes((const unsigned char *) key, offsetof(HgjChunkKey, run));

	return (int *) ((char *) shared + shared->buckets) +
		((hash + key->run) & (shared->nbuckets - 1));
}

static void
lay_out(void)
{
	LWLockPadded *locks = GetNamedLWLockTranche(SHARED_NAME);
	dsa_area   *made;
	Size		room;

	shared->lock = &locks->lock;
	pg_atomic_init_u64(&shared->changes, 0);
	pg_atomic_init_u64(&shared->evictions, 0);
	pg_atomic_init_u64(&shared->last_id, 0);
	shared->used = shared->claimed = shared->prepared = shared->huge = 0;
	for (int i = 0; i < HGJ_TABLE_COUNTS; i++)
		pg_atomic_init_u32(&shared->by_table[i], 0);
	shared->hand = shared->ntouched = 0;
	shared->nslots = (int) Min(shared_bytes() / BYTES_PER_SLOT, 1 << 24);
	shared->nbuckets = (int) pg_nextpower2_32(shared->nslots);
	shared->slots = MAXALIGN(sizeof(HgjStore));
	shared->buckets = shared->slots + MAXALIGN(shared->nslots * sizeof(HgjStoreSlot));
	shared->area = shared->buckets + MAXALIGN(shared->nbuckets * sizeof(int));
	shared->free = NO_SLOT;
	memset((char *) shared + shared->buckets, 0xFF, shared->nbuckets * sizeof(int));

	room = shared_bytes() - shared->area;
	made = dsa_create_in_place((char *) shared + shared->area, room,
							   shared->lock->tranche, NULL);
	dsa_pin(made);
	dsa_set_size_limit(made, room);
	dsa_detach(made);
}

static void
attach_shared(void *memory, bool found)
{
	/* a process that finds the memory has been forked from the one that has made it */
	if (found)
		return;
	shared = hgj_memory_for_huge_pages(memory, shared_bytes());
	lay_out();
}

/* In the postmaster, when it loads the library. */
void
hgj_store_share(void)
{
	static const HgjSharedPart part = {SHARED_NAME, wanted_bytes, true, attach_shared};

	hgj_shared_memory_add(&part);
}

bool
hgj_store_exists(void)
{
	return shared != NULL;
}

/*
 * All of the store's memory, where every process has it, as long as the postmaster
 * lives; NULL: there is none.
 */
const void *
hgj_store_memory(Size *bytes)
{
	*bytes = shared ? shared_bytes() : 0;
	return shared;
}

/* Its first bytes that have been in use so far, to be read atomically; NULL: no store. */
const uint64 *
hgj_store_filled(void)
{
	return shared ? &shared->used : NULL;
}

/* Could columns of the table be kept? */
bool
hgj_table_may_be_kept(Relation rel)
{
	return hgj_store_exists() && RelationGetRelid(rel) >= FirstNormalObjectId &&
		rel->rd_rel->relpersistence == RELPERSISTENCE_PERMANENT;
}

/* ---- directory; the lock is held ------------------------------------------ */

static pg_atomic_uint32 *
count_of(Oid table)
{
	return &shared->by_table[table % HGJ_TABLE_COUNTS];
}

static int
find_slot(const HgjChunkKey *key)
{
	int			i = *bucket_of(key);

	while (i != NO_SLOT && memcmp(&slot_at(i)->key, key, sizeof(*key)) != 0)
		i = slot_at(i)->next;
	return i;
}

static void
free_slot(int i)
{
	HgjStoreSlot *slot = slot_at(i);

	Assert(pg_atomic_read_u32(&slot->holders) == 0 && !slot->listed);
	dsa_free(area, slot->data);
	slot->data = InvalidDsaPointer;
	slot->next = shared->free;
	shared->free = i;
}

/* See store_slots.h.  Step 4. */
void
hgj_store_drop_slot(int i)
{
	HgjStoreSlot *slot = slot_at(i);
	int		   *link = bucket_of(&slot->key);

	while (*link != i)
		link = &slot_at(*link)->next;
	*link = slot->next;
	slot->listed = false;
	pg_atomic_fetch_sub_u32(count_of(slot->key.table), 1);
	pg_atomic_fetch_add_u64(&shared->changes, 1);
	/* a holder who leaves now sees that it is not listed, or we that he has left */
	pg_memory_barrier();
	if (pg_atomic_read_u32(&slot->holders) == 0)
		free_slot(i);
}

/* Step 3: make room; false if there is nothing that could go. */
static bool
evict_one(const HgjRoom *room)
{
	if (!room->may_evict)
		return false;
	for (int steps = 0; steps < shared->ntouched * (MOST_CREDIT + 1); steps++)
	{
		int			i = shared->hand;
		HgjStoreSlot *slot = slot_at(i);

		shared->hand = (i + 1) % shared->ntouched;
		if (!slot->listed || slot->head.id > room->newest ||
			pg_atomic_read_u32(&slot->holders) > 0)
			continue;
		if (pg_atomic_read_u32(&slot->credit) == 0)
		{
			if (!slot->is_filling || pg_atomic_read_u64(&slot->uses) > 0)
				pg_atomic_fetch_add_u64(&shared->evictions, 1);
			hgj_store_drop_slot(i);
			own_evictions++;
			return true;
		}
		pg_atomic_fetch_sub_u32(&slot->credit, 1);
	}
	return false;
}

/* On what terms a chunk is put into the store; step 3. */
typedef struct Terms
{
	HgjRoom		room;
	bool		is_filling;
	uint32		credit;
} Terms;

static bool
has_free_slot(void)
{
	return shared->free != NO_SLOT || shared->ntouched < shared->nslots;
}

/* Take a free slot; NO_SLOT: there is none, and none can be made. */
static int
take_slot(const HgjRoom *room)
{
	int			i;

	while (!has_free_slot())
		if (!evict_one(room))
			return NO_SLOT;
	if (shared->free == NO_SLOT)
		return shared->ntouched++;
	i = shared->free;
	shared->free = slot_at(i)->next;
	return i;
}

/* ---- for everybody ---------------------------------------------------------- */

/* Step 4: until nobody reads any more what this process holds. */
static void
wait_until_read(void)
{
	void		(*wait) (void) = wait_for_reader;

	wait_for_reader = NULL;
	if (wait)
		wait();
}

/*
 * Step 4, without the lock.  What is not listed any more is freed by its last holder, unless
 * who has dropped it has done so: then the slot is free, or another chunk's.
 */
static void
release_slot(int i, uint32 times)
{
	HgjStoreSlot *slot = slot_at(i);

	Assert(pg_atomic_read_u32(&slot->holders) >= times && own_holds[i] >= times);
	own_holds[i] -= times;
	all_own_holds -= times;
	if (pg_atomic_sub_fetch_u32(&slot->holders, times) > 0 || slot->listed)
		return;
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	if (!slot->listed && pg_atomic_read_u32(&slot->holders) == 0 &&
		DsaPointerIsValid(slot->data))
		free_slot(i);
	LWLockRelease(shared->lock);
}

/* Step 5: the process exits. */
static void
release_all(int code, Datum arg)
{
	if (all_own_holds > 0)
		wait_until_read();
	for (int i = 0; i < nown_holds && all_own_holds > 0; i++)
		if (own_holds[i] > 0)
			release_slot(i, own_holds[i]);
	dsa_release_in_place((char *) shared + shared->area);
}

static void
attach(void)
{
	MemoryContext old;

	if (area != NULL)
		return;
	old = MemoryContextSwitchTo(TopMemoryContext);
	area = dsa_attach_in_place((char *) shared + shared->area, NULL);
	dsa_pin_mapping(area);
	MemoryContextSwitchTo(old);
	before_shmem_exit(release_all, 0);
}

/* See store_slots.h. */
HgjStore *
hgj_store_attach(void)
{
	if (shared)
		attach();
	return shared;
}

/* See store_slots.h. */
const HgjChunk *
hgj_store_chunk(const HgjStoreSlot *slot)
{
	return dsa_get_address(area, slot->data);
}

/* Step 5: room for counts of the slots that are in use; without the lock. */
static void
reserve_counts(void)
{
	int			wanted = *(volatile int *) &shared->ntouched;
	uint32	   *counts;

	if (wanted <= nown_holds)
		return;
	wanted = (int) pg_nextpower2_32(Max(wanted, 64));
	counts = MemoryContextAllocZero(TopMemoryContext, mul_size(wanted, sizeof(uint32)));
	if (own_holds)
	{
		memcpy(counts, own_holds, mul_size(nown_holds, sizeof(uint32)));
		pfree(own_holds);
	}
	own_holds = counts;
	nown_holds = wanted;
}

HgjChunkKey
hgj_store_key(Relation rel, AttrNumber attno, uint32 run)
{
	HgjChunkKey key;

	key.locator = HGJ_LOCATOR(rel);
	key.database = hgj_database_mark();
	key.table = RelationGetRelid(rel);
	key.type = TupleDescAttr(RelationGetDescr(rel), attno - 1)->atttypid;
	key.attno = attno;
	key.run = run;
	return key;
}

/* Could something of a table with this OID be kept? */
bool
hgj_store_may_have(Oid table)
{
	return shared != NULL && pg_atomic_read_u32(count_of(table)) > 0;
}

/* Steps 4 and 5, under the lock. */
static void
hold_slot(int i)
{
	pg_atomic_fetch_add_u32(&slot_at(i)->holders, 1);
	own_holds[i]++;
	all_own_holds++;
}

/* Hold chunks of a table, if there are all of them but those that may be missing (or NULL). */
bool
hgj_store_hold(const HgjChunkKey *keys, const bool *may_miss, int n, HgjHeldChunk *held)
{
	int			found = 0;

	if (!hgj_store_may_have(keys->table))
		return false;
	attach();
	reserve_counts();
	LWLockAcquire(shared->lock, LW_SHARED);
	for (; found < n; found++)
	{
		int			i = find_slot(&keys[found]);

		held[found] = (HgjHeldChunk) {NULL, NULL, NO_SLOT};
		if (i != NO_SLOT && i < nown_holds) /* or it came in this moment */
			held[found] = (HgjHeldChunk) {
				dsa_get_address(area, slot_at(i)->data), &slot_at(i)->head, i
			};
		else if (may_miss == NULL || !may_miss[found])
			break;
	}
	for (int c = 0; found == n && c < n; c++)
	{
		if (held[c].chunk != NULL)
			hold_slot(held[c].slot);
	}
	LWLockRelease(shared->lock);
	return found == n;
}

/*
 * Hold the next chunk of any table, from slot *next on, which is moved behind it: one that is
 * newer than the id `after`, and, with `used`, one that somebody has used.  False: there are
 * no more.
 */
bool
hgj_store_hold_next(int *next, uint64 after, bool used, HgjHeldChunk *held)
{
	bool		found = false;
	bool		more = true;

	attach();
	reserve_counts();
	while (!found && more)
	{
		int			end;

		LWLockAcquire(shared->lock, LW_SHARED);
		end = Min(shared->ntouched, nown_holds);
		more = end > *next + SLOTS_AT_ONCE;
		end = Min(end, *next + SLOTS_AT_ONCE);
		while (!found && *next < end)
		{
			int			i = (*next)++;
			HgjStoreSlot *slot = slot_at(i);

			found = slot->listed && slot->head.id > after &&
				(!used || pg_atomic_read_u64(&slot->uses) > 0);
			if (!found)
				continue;
			*held = (HgjHeldChunk) {
				dsa_get_address(area, slot->data), &slot->head, i
			};
			hold_slot(i);
		}
		LWLockRelease(shared->lock);
	}
	return found;
}

/*
 * Which pages does the chunk have that are not known to have changed, and (unless left_out
 * is NULL) how many were left out for which reason?  For who does not mean to read it.
 */
bool
hgj_store_look(const HgjChunkKey *key, uint64 *pages, uint32 *left_out)
{
	int			i;

	attach();
	LWLockAcquire(shared->lock, LW_SHARED);
	i = find_slot(key);
	if (i != NO_SLOT)
	{
		HgjChunk   *chunk = dsa_get_address(area, slot_at(i)->data);

		for (int w = 0; w < HGJ_RUN_WORDS; w++)
			pages[w] = chunk->pages[w] & ~pg_atomic_read_u64(&chunk->changed[w]);
		if (left_out)
			memcpy(left_out, chunk->left_out, sizeof(chunk->left_out));
	}
	LWLockRelease(shared->lock);
	return i != NO_SLOT;
}

/* A number that is another one when chunks have come or gone. */
uint64
hgj_store_changes(void)
{
	return shared ? pg_atomic_read_u64(&shared->changes) : 0;
}

/* The id of the newest chunk that there was; who looks at chunks after that finds no other. */
uint64
hgj_store_last_id(void)
{
	return shared ? pg_atomic_read_u64(&shared->last_id) : 0;
}

/* How many chunks, but for unused filling, have had to make room for others so far? */
uint64
hgj_store_evictions(void)
{
	return pg_atomic_read_u64(&shared->evictions);
}

/* And for what this process has loaded? */
uint64
hgj_store_own_evictions(void)
{
	return own_evictions;
}

/* Does this process hold the chunk still?  Not if it is about to exit (step 5), or it is none. */
bool
hgj_store_holds(const HgjHeldChunk *held)
{
	return held->chunk != NULL && own_holds[held->slot] > 0;
}

/* Step 3: a chunk has saved somebody this many nanoseconds, who holds it, or did. */
void
hgj_store_used(const HgjHeldChunk *held, uint64 saved, TimestampTz now)
{
	HgjStoreSlot *slot = slot_at(held->slot);
	double		per_byte;
	uint32		credit;

	if (!hgj_store_holds(held))
		return;
	per_byte = (double) saved / (double) slot->bytes;
	credit = pg_atomic_read_u32(&slot->credit) + 1 + (per_byte >= CREDIT_FOR_2) +
		(per_byte >= CREDIT_FOR_3) + (per_byte >= CREDIT_FOR_4);
	pg_atomic_write_u32(&slot->credit, Min(credit, MOST_CREDIT));
	pg_atomic_fetch_add_u64(&slot->uses, 1);
	pg_atomic_fetch_add_u64(&slot->saved, saved);
	pg_atomic_write_u64(&slot->last_use, (uint64) now);
}

/* Has anybody read rows of the chunk, which the caller holds? */
bool
hgj_store_was_used(const HgjHeldChunk *held)
{
	return pg_atomic_read_u64(&slot_at(held->slot)->uses) > 0;
}

/*
 * Step 4: somebody else reads chunks that this process holds, until `wait` returns, which
 * raises no error; NULL: not any more.
 */
void
hgj_store_lend(void (*wait) (void))
{
	wait_for_reader = wait;
}

/* A process that exits has given all back before its queries are cleaned up. */
void
hgj_store_release(const HgjHeldChunk *held)
{
	if (!hgj_store_holds(held))
		return;
	wait_until_read();
	release_slot(held->slot, 1);
}

/* The same, of a chunk that nobody else reads any more, though they may read others. */
void
hgj_store_release_read(const HgjHeldChunk *held)
{
	if (hgj_store_holds(held))
		release_slot(held->slot, 1);
}

/* Drop the chunk, if there is one. */
void
hgj_store_forget(const HgjChunkKey *key)
{
	int			i;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	i = find_slot(key);
	if (i != NO_SLOT)
		hgj_store_drop_slot(i);
	LWLockRelease(shared->lock);
}

/* Step 2: room for a chunk, which nobody else knows of; or InvalidDsaPointer. */
static dsa_pointer
reserve(Size bytes, const HgjRoom *room)
{
	dsa_pointer data;
	bool		evicted = true;

	while (!DsaPointerIsValid(data = dsa_allocate_extended(area, bytes,
														   DSA_ALLOC_HUGE | DSA_ALLOC_NO_OOM)) &&
		   evicted)
	{
		LWLockAcquire(shared->lock, LW_EXCLUSIVE);
		evicted = evict_one(room);
		LWLockRelease(shared->lock);
	}
	return data;
}

/*
 * Step 2: others may find it, in place of one that somebody else has put there
 * meanwhile.  False: there is no slot.
 */
static bool
publish(const HgjChunkKey *key, dsa_pointer data, Size bytes, const Terms *terms)
{
	int		   *bucket = bucket_of(key);
	int			i;
	bool		has_room;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	i = find_slot(key);
	/* one that is held leaves no slot when it goes */
	has_room = terms->room.may_evict || has_free_slot() ||
		(i != NO_SLOT && pg_atomic_read_u32(&slot_at(i)->holders) == 0);
	if (i != NO_SLOT && has_room)
		hgj_store_drop_slot(i);
	i = has_room ? take_slot(&terms->room) : NO_SLOT;
	if (i != NO_SLOT)
	{
		HgjStoreSlot *slot = slot_at(i);

		HgjChunk   *chunk = dsa_get_address(area, data);

		/* who knows of an id finds the chunk, or it has gone */
		chunk->id = pg_atomic_add_fetch_u64(&shared->last_id, 1);
		memset(slot, 0, sizeof(HgjStoreSlot));
		slot->key = *key;
		slot->data = data;
		slot->bytes = bytes;
		hgj_chunk_fill_head(&slot->head, chunk, shared);
		pg_atomic_init_u64(&slot->uses, 0);
		pg_atomic_init_u64(&slot->saved, 0);
		pg_atomic_init_u64(&slot->last_use, 0);
		pg_atomic_init_u32(&slot->credit, terms->credit);
		pg_atomic_init_u32(&slot->holders, 0);
		slot->is_filling = terms->is_filling;
		slot->listed = true;
		pg_atomic_fetch_add_u32(count_of(key->table), 1);
		pg_atomic_fetch_add_u64(&shared->changes, 1);
		slot->next = *bucket;
		*bucket = i;
	}
	LWLockRelease(shared->lock);
	return i != NO_SLOT;
}

/*
 * Larger chunks are not kept: all others would have to make room for one, or it would
 * find none when they had.
 */
Size
hgj_store_most_bytes(void)
{
	return (shared_bytes() - shared->area) / 2;
}

/*
 * Memory that has never been used gets huge pages first: a later call would have to copy it, and
 * what a driver has pinned cannot be moved any more.  One process asks for a block; others that
 * want to fill it wait, as a device registers it once somebody has, but no longer than that takes
 * by far.  0, or the errno of hgj_memory_in_huge_pages().
 */
static int
prepare(const char *end)
{
	uint64		wanted = end - (const char *) shared;
	uint64		before = __atomic_load_n(&shared->claimed, __ATOMIC_RELAXED);
	int			refused = 0;

	while (before < wanted)
	{
		uint64		next = (before / PREPARED_BYTES + 1) * PREPARED_BYTES;
		int			why;
		Size		huge;

		if (!__atomic_compare_exchange_n(&shared->claimed, &before, next, false,
										 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			continue;
		why = hgj_memory_in_huge_pages((char *) shared + Max(before, shared->area),
									   (char *) shared + Min(next, shared_bytes()), &huge);
		(void) __atomic_add_fetch(&shared->huge, huge, __ATOMIC_RELAXED);
		refused = why != 0 ? why : refused;
		(void) __atomic_add_fetch(&shared->prepared, next - before, __ATOMIC_RELAXED);
		before = next;
	}
	/* it is the last block that somebody is at, if at any */
	for (int looks = 0; looks < MOST_LOOKS && wanted + PREPARED_BYTES > before &&
		 __atomic_load_n(&shared->prepared, __ATOMIC_RELAXED) <
		 __atomic_load_n(&shared->claimed, __ATOMIC_RELAXED); looks++)
		pg_usleep(LOOK_US);
	return refused;
}

/* The part of the memory that has been filled so far which lies in huge pages. */
double
hgj_store_huge_part(void)
{
	double		prepared = shared ?
		(double) __atomic_load_n(&shared->prepared, __ATOMIC_RELAXED) : 0;

	return prepared == 0 ? 0 :
		Min((double) __atomic_load_n(&shared->huge, __ATOMIC_RELAXED) / prepared, 1);
}

/* Who registers the memory with a device does so up to here. */
static void
note_used(const char *end)
{
	uint64		bytes = end - (const char *) shared;
	uint64		before = __atomic_load_n(&shared->used, __ATOMIC_RELAXED);

	while (before < bytes &&
		   !__atomic_compare_exchange_n(&shared->used, &before, bytes, false,
										__ATOMIC_RELEASE, __ATOMIC_RELAXED))
		continue;
}

/*
 * Step 3: look at the earlier chunk that one of so many bytes is to take the place of
 * without evicting others.  It hands its terms on.  True: if it goes, it leaves room.
 */
static bool
take_over(const HgjChunkKey *key, Size bytes, Terms *terms)
{
	bool		leaves = false;
	int			i;

	LWLockAcquire(shared->lock, LW_SHARED);
	i = find_slot(key);
	if (i != NO_SLOT)
	{
		HgjStoreSlot *slot = slot_at(i);

		terms->is_filling = slot->is_filling;
		terms->credit = pg_atomic_read_u32(&slot->credit);
		leaves = slot->bytes >= bytes && pg_atomic_read_u32(&slot->holders) == 0;
	}
	LWLockRelease(shared->lock);
	return leaves;
}

/*
 * Step 2: keep a copy of the chunk, in place of an earlier one.  False if there is
 * no room for it, and none can be made of what the load may put out (step 3).
 */
bool
hgj_store_put(const HgjChunkKey *key, const HgjChunk *chunk, const HgjRoom *room)
{
	Terms		terms = {*room, !room->may_evict, room->may_evict ? FIRST_CREDIT : 0};
	dsa_pointer data;
	bool		kept = false;
	int			refused = 0;

	Assert(chunk->bytes <= hgj_store_most_bytes());
	attach();
	HOLD_INTERRUPTS();
	/* an earlier one would be of no use, and makes room; but it is better than none */
	if (room->may_evict || take_over(key, chunk->bytes, &terms))
		hgj_store_forget(key);
	data = reserve(chunk->bytes, room);
	if (DsaPointerIsValid(data))
	{
		HgjChunk   *copy = dsa_get_address(area, data);

		refused = prepare((const char *) copy + chunk->bytes);
		memcpy(copy, chunk, chunk->bytes);
		note_used((const char *) copy + chunk->bytes);
		kept = publish(key, data, chunk->bytes, &terms);
		if (!kept)
			dsa_free(area, data);
	}
	RESUME_INTERRUPTS();
	hgj_memory_say_small(refused);
	return kept;
}
