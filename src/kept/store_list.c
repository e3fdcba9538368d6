/*-------------------------------------------------------------------------
 *
 * store_list.c
 *	  All chunks of the store (store.c): what there is of each, for who looks, their ids, and
 *	  dropping those of a column, a table or a database.
 *
 * Memory: the caller's context.  Locks: the store's, in share mode for who looks, at one
 * slot after the other.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "kept/store_slots.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/*
 * Drop what is kept of a column, of a table (attno 0), or of a database (no table), whatever
 * its mark, and return how many chunks that were.
 */
uint32
hgj_store_drop(Oid database, Oid table, AttrNumber attno)
{
	HgjStore   *shared = hgj_store_attach();
	uint32		dropped = 0;

	if (shared == NULL)
		return 0;
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < shared->ntouched; i++)
	{
		HgjStoreSlot *slot = hgj_store_slot(shared, i);

		if (!slot->listed || HGJ_LOCATOR_DATABASE(slot->key.locator) != database ||
			(OidIsValid(table) && slot->key.table != table) ||
			(attno != 0 && slot->key.attno != attno))
			continue;
		hgj_store_drop_slot(i);
		dropped++;
	}
	LWLockRelease(shared->lock);
	return dropped;
}

/*
 * Room for so many bytes of each slot that is in use, in the current context, and the lock in
 * share mode; *nslots: how many these are, from the first one on.
 */
static void *
begin_listing(HgjStore *shared, Size bytes, int *nslots)
{
	void	   *list;

	LWLockAcquire(shared->lock, LW_SHARED);
	*nslots = shared->ntouched;
	LWLockRelease(shared->lock);
	list = MemoryContextAllocHuge(CurrentMemoryContext, mul_size(Max(*nslots, 1), bytes));
	LWLockAcquire(shared->lock, LW_SHARED);
	return list;
}

/* Facts of all chunks, or of those of this database, in the current memory context. */
HgjChunkFacts *
hgj_store_list(bool all, uint32 *n)
{
	HgjStore   *shared = hgj_store_attach();
	TransactionId mark = hgj_database_mark();
	HgjChunkFacts *facts;
	int			nslots;

	*n = 0;
	if (shared == NULL)
		return NULL;
	facts = begin_listing(shared, sizeof(HgjChunkFacts), &nslots);
	for (int i = 0; i < nslots; i++)
	{
		HgjStoreSlot *slot = hgj_store_slot(shared, i);
		const HgjChunk *chunk;
		HgjChunkFacts *fact = &facts[*n];

		if (!slot->listed ||
			(!all && (HGJ_LOCATOR_DATABASE(slot->key.locator) != MyDatabaseId ||
					  slot->key.database != mark)))
			continue;
		chunk = hgj_store_chunk(slot);
		fact->key = slot->key;
		fact->id = chunk->id;
		fact->bytes = slot->bytes;
		fact->pages = (uint32) pg_popcount((const char *) chunk->pages,
										   sizeof(chunk->pages));
		fact->rows = chunk->nrows;
		fact->width = chunk->width;
		fact->by_value = chunk->by_value;
		fact->uses = pg_atomic_read_u64(&slot->uses);
		fact->saved = pg_atomic_read_u64(&slot->saved);
		fact->last_use = (TimestampTz) pg_atomic_read_u64(&slot->last_use);
		(*n)++;
	}
	LWLockRelease(shared->lock);
	return facts;
}

static int
compare_ids(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return (x > y) - (x < y);
}

/* Ids of all chunks, in ascending order, in the current memory context. */
uint64 *
hgj_store_ids(uint32 *n)
{
	HgjStore   *shared = hgj_store_attach();
	uint64	   *ids;
	int			nslots;

	*n = 0;
	if (shared == NULL)
		return NULL;
	ids = begin_listing(shared, sizeof(uint64), &nslots);
	for (int i = 0; i < nslots; i++)
	{
		const HgjStoreSlot *slot = hgj_store_slot(shared, i);

		if (slot->listed)
			ids[(*n)++] = slot->head.id;
	}
	LWLockRelease(shared->lock);
	qsort(ids, *n, sizeof(uint64), compare_ids);
	return ids;
}
