/*-------------------------------------------------------------------------
 *
 * shared_records.c
 *	  Build rows whose records are equal share one.
 *
 * A build side of millions of rows often carries a column or two of few
 * different values (what a query groups by), and every match fetches a record
 * at random.  Where no join type asks which build row has matched, a row id is
 * nothing but a way to the record: rows may have the same one.  Then records are
 * few and stay in the cache, and take next to no memory.
 *
 * 1. Only small builds are all there is to most queries: begin after so many
 *	  rows.  Records of up to 16 bytes take part.
 * 2. Write a batch's records aside, and look each up in a table of those that
 *	  rows may share: the record's number, or a new record.
 * 3. The table is small and never grows.  A record that finds no place in it is
 *	  one that nobody else will share.  When most rows of late have found none,
 *	  stop: all further rows of this pass get records of their own.  (simplehash.h
 *	  has no such end: it would look on, and grow.)
 *
 * Equal records are equal values: by value, codes of a dictionary, or addresses
 * (which no two rows have in common, so that step 3 soon ends it).
 *
 * Memory: the store's context, counted in its account.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "columns/row_store.h"
#include "utils/memutils.h"

#define WIDEST			16

/* Rows before the first that may share, and rows after which to look back. */
#define FIRST_ROWS		32768
#define TRIAL_ROWS		65536

/* A power of two of slots, of which a part is used; slots looked at per row. */
#define SLOT_BITS		15
#define SLOTS			(1 << SLOT_BITS)
#define MOST_RECORDS	(SLOTS / 2)
#define MOST_STEPS		8

/* The memory limit must be so many times what this takes. */
#define LIMIT_SHARE		16

typedef struct HgjSharedRecords
{
	bool		stopped;		/* in this pass */
	uint32		nrecords;		/* slots that are taken */
	uint32		looked_up;		/* rows of late ... */
	uint32		found;			/* ... and those of them that share */
	uint32	   *slots;			/* record number + 1; NULL: not begun */
	char	   *written;		/* records of the batch at hand */
	uint32	   *numbers;		/* and theirs */
	uint32		capacity;		/* rows of these two */
} HgjSharedRecords;

/* Rows of the store may share records, if these are such that it can be. */
void
hgj_share_records_init(HgjRowStore *store, Size memory_limit)
{
	if (store->stride == 0 || store->stride > WIDEST ||
		memory_limit / LIMIT_SHARE < SLOTS * sizeof(uint32))
		return;
	store->shared = MemoryContextAllocZero(store->context,
										   sizeof(HgjSharedRecords));
}

/* Forget the records, before the next pass. */
void
hgj_share_records_clear(HgjRowStore *store)
{
	HgjSharedRecords *shared = store->shared;

	if (shared->slots)
		memset(shared->slots, 0, SLOTS * sizeof(uint32));
	shared->nrecords = shared->looked_up = shared->found = 0;
	shared->stopped = false;
}

static void
set_capacity(HgjRowStore *store, uint32 rows)
{
	Size		bytes = store->stride + sizeof(uint32);

	hgj_account_sub(store->account, store->shared->capacity * bytes);
	store->shared->capacity = rows;
	hgj_account_add(store->account, rows * bytes);
}

static void
reserve(HgjRowStore *store, uint32 rows)
{
	HgjSharedRecords *shared = store->shared;

	if (shared->slots == NULL)
	{
		shared->slots = MemoryContextAllocZero(store->context,
											   SLOTS * sizeof(uint32));
		hgj_account_add(store->account, SLOTS * sizeof(uint32));
	}
	if (rows <= shared->capacity)
		return;
	set_capacity(store, 0);
	if (shared->written)
	{
		pfree(shared->written);
		pfree(shared->numbers);
		shared->written = NULL;
	}
	/* zeros between columns, too, because records are compared as a whole */
	shared->numbers = MemoryContextAllocHuge(store->context,
											 mul_size(rows, sizeof(uint32)));
	shared->written = MemoryContextAllocHuge(store->context,
											 mul_size(rows, store->stride));
	memset(shared->written, 0, mul_size(rows, store->stride));
	set_capacity(store, rows);
}

/* The number of a record of that many bytes, a constant; added if need be. */
static inline uint32
number_of(HgjRowStore *store, const char *record, uint32 stride)
{
	HgjSharedRecords *shared = store->shared;
	uint64		words[2] = {0, 0};
	uint32		slot;

	memcpy(words, record, stride);
	slot = (uint32) (((words[0] ^ (words[1] * UINT64CONST(0xD6E8FEB86659FD93))) *
					  UINT64CONST(0x9E3779B97F4A7C15)) >> (64 - SLOT_BITS));
	for (int step = 0; step < MOST_STEPS; step++)
	{
		uint32	   *taken = &shared->slots[slot];

		if (*taken == 0)
		{
			uint32		number = hgj_row_store_add(store, record);

			if (shared->nrecords < MOST_RECORDS)
			{
				*taken = number + 1;
				shared->nrecords++;
			}
			return number;
		}
		if (memcmp(hgj_row_store_record(store, *taken - 1), record, stride) == 0)
		{
			shared->found++;
			return *taken - 1;
		}
		slot = (slot + 1) % SLOTS;
	}
	return hgj_row_store_add(store, record);
}

/*
 * Put the rows of a batch into the store, and return the numbers of their
 * records.  NULL: they are to be appended as ever.
 */
const uint32 *
hgj_share_records(HgjRowStore *store, const HgjBatch *batch)
{
	HgjSharedRecords *shared = store->shared;
	uint32		n = batch->nrows;

	if (shared->stopped || store->nrows < FIRST_ROWS)
		return NULL;
	if (shared->looked_up >= TRIAL_ROWS)
	{
		shared->stopped = shared->found < shared->looked_up / 2;
		shared->looked_up = shared->found = 0;
		if (shared->stopped)
			return NULL;
	}
	reserve(store, n);
	hgj_row_store_write(store, batch, 0, n, shared->written);
	switch (store->stride)
	{
		case 4:
			for (uint32 i = 0; i < n; i++)
				shared->numbers[i] = number_of(store, shared->written + i * 4, 4);
			break;
		case 8:
			for (uint32 i = 0; i < n; i++)
				shared->numbers[i] = number_of(store, shared->written + i * 8, 8);
			break;
		default:
			for (uint32 i = 0; i < n; i++)
				shared->numbers[i] = number_of(store, shared->written + i * 16, 16);
			break;
	}
	shared->looked_up += n;
	return shared->numbers;
}
