/*-------------------------------------------------------------------------
 *
 * store_slots.h
 *	  What the store of kept chunks has in shared memory: for store.c, which knows when
 *	  what may be changed, and store_list.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_STORE_SLOTS_H
#define HGJ_STORE_SLOTS_H

#include "kept/store.h"
#include "port/atomics.h"
#include "storage/lwlock.h"
#include "utils/dsa.h"

typedef struct HgjStoreSlot
{
	HgjChunkKey key;
	dsa_pointer data;			/* InvalidDsaPointer: the slot is free */
	HgjChunkHead head;
	uint64		bytes;
	pg_atomic_uint64 uses;		/* these three by holders, without the lock */
	pg_atomic_uint64 saved;		/* nanoseconds */
	pg_atomic_uint64 last_use;	/* a TimestampTz */
	pg_atomic_uint32 credit;	/* for the clock; approximately */
	pg_atomic_uint32 holders;
	volatile bool listed;		/* in the directory; false: the last holder frees it */
	bool		is_filling;		/* put there by who may not have others make room */
	int			next;			/* of the same bucket, or of those that are free again */
} HgjStoreSlot;

/*
 * Chunks of tables whose OIDs share a remainder: where there is none, nobody need
 * look any further, nor take the lock.
 */
#define HGJ_TABLE_COUNTS	1024

typedef struct HgjStore
{
	LWLock	   *lock;
	pg_atomic_uint64 changes;	/* chunks that came or went, in all */
	pg_atomic_uint64 evictions; /* of these, by step 3, but for unused filling */
	pg_atomic_uint64 last_id;	/* of a chunk */
	uint64		used;			/* bytes behind our beginning that have ever been, changed
								 * atomically; a process without PostgreSQL reads it */
	uint64		claimed;		/* bytes behind our beginning for which somebody asks the system for
								 * huge pages, or has, changed atomically */
	uint64		prepared;		/* number of these for which somebody has, changed atomically */
	uint64		huge;			/* number of these that lie in huge pages, changed atomically */
	pg_atomic_uint32 by_table[HGJ_TABLE_COUNTS];
	int			nslots;
	int			nbuckets;		/* a power of two */
	int			ntouched;		/* the first so many have ever been used, */
	int			free;			/* and the first of them that is free again */
	int			hand;
	Size		slots;			/* bytes behind the store's beginning: */
	Size		buckets;
	Size		area;
} HgjStore;

static inline HgjStoreSlot *
hgj_store_slot(HgjStore *store, int i)
{
	return (HgjStoreSlot *) ((char *) store + store->slots) + i;
}

/* The store, to which this process is attached then; NULL: there is none. */
extern HgjStore *hgj_store_attach(void);

/* The chunk of a slot that is listed. */
extern const HgjChunk *hgj_store_chunk(const HgjStoreSlot *slot);

/* Nobody finds it any longer; the lock is held. */
extern void hgj_store_drop_slot(int i);

#endif							/* HGJ_STORE_SLOTS_H */
