/*-------------------------------------------------------------------------
 *
 * agg_exchange_read.c
 *	  Combine the records that all processes have written of a partition
 *	  (agg_exchange.c).
 *
 * 1. Image by image, the partition's records are read a block at a time: where they
 *	  stand, in shared memory, or into a buffer, from a file, or from short ones (agg_packed.c).
 * 2. Their keys make a batch, whose groups are found or made (columns/groups.c), and
 *	  each record is added to its group's row (agg_combine.c).
 * 3. Records that find no group in a full table go to a file of this process.  When the
 *	  groups in the table have been returned, they are read in the place of images; every
 *	  round finishes some groups, so that this ends.
 *
 * Memory: the table has its limit; the buffer, of the size of a block or of the largest
 * record, is the query's.  Files belong to the resource owner, and are closed when they
 * have been read, or by hgj_exchange_close_files().  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_exchange.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Where records come from. */
typedef struct RecordReader
{
	BufFile    *file;			/* NULL: from memory, ... */
	const char *at;				/* ... from here on */
	Size		packed;			/* bytes of each, if they are short; else 0 */
	uint64		left;			/* records that have not been read */
} RecordReader;

static void
read_bytes(BufFile *file, void *into, Size bytes)
{
	if (BufFileRead(file, into, bytes) != bytes)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read the groups of a HashGraphAgg from a temporary file")));
}

/* The buffer, with room for so many bytes; what it has stays there. */
static char *
reserve_buffer(HgjAggState *state, Size bytes)
{
	HgjAggExchange *exchange = &state->exchange;

	if (bytes > exchange->buffer_bytes)
	{
		Size		size = Max(bytes, HGJ_EXCHANGE_BLOCK_BYTES);

		exchange->buffer = exchange->buffer ?
			repalloc_huge(exchange->buffer, size) :
			MemoryContextAllocHuge(state->context, size);
		exchange->buffer_bytes = size;
	}
	return exchange->buffer;
}

/* Records from a file, until the block or the buffer is full; one at least. */
static uint32
read_from_file(HgjAggState *state, RecordReader *reader)
{
	HgjAggExchange *exchange = &state->exchange;
	Size		used = 0;
	uint32		n = 0;

	while (reader->left > 0 && n < HGJ_EXCHANGE_BLOCK &&
		   (n == 0 || used < HGJ_EXCHANGE_BLOCK_BYTES / 2))
	{
		uint64		bytes;
		char	   *record;

		read_bytes(reader->file, &bytes, sizeof(bytes));
		record = reserve_buffer(state, add_size(used, bytes)) + used;
		*(uint64 *) record = bytes;
		read_bytes(reader->file, record + sizeof(bytes), bytes - sizeof(bytes));
		used += bytes;
		n++;
		reader->left--;
	}
	/* the buffer stays where it is from now on */
	used = 0;
	for (uint32 i = 0; i < n; i++)
	{
		exchange->items[i] = exchange->buffer + used;
		used += hgj_agg_record_size(exchange->items[i]);
	}
	return n;
}

/* Short records from memory, made records again in the buffer. */
static uint32
read_packed(HgjAggState *state, RecordReader *reader)
{
	HgjAggExchange *exchange = &state->exchange;
	uint32		n = (uint32) Min(reader->left, HGJ_EXCHANGE_BLOCK);
	Size		bytes = hgj_agg_unpacked_bytes(state);
	char	   *record = reserve_buffer(state, mul_size(n, bytes));

	for (uint32 i = 0; i < n; i++)
	{
		hgj_agg_unpack(state, reader->at, record);
		exchange->items[i] = record;
		reader->at += reader->packed;
		record += bytes;
	}
	reader->left -= n;
	return n;
}

/* The next block of records, as addresses in exchange->items; 0 at the end. */
static uint32
read_block(HgjAggState *state, RecordReader *reader)
{
	const char **records = state->exchange.items;
	Size		used = 0;
	uint32		n = 0;

	if (reader->file)
		return read_from_file(state, reader);
	if (reader->packed > 0)
		return read_packed(state, reader);
	while (reader->left > 0 && n < HGJ_EXCHANGE_BLOCK &&
		   used < HGJ_EXCHANGE_BLOCK_BYTES)
	{
		Size		bytes = hgj_agg_record_size(reader->at);

		records[n++] = reader->at;
		reader->at += bytes;
		used += bytes;
		reader->left--;
	}
	return n;
}

/* Step 3, for one record. */
static void
put_aside(HgjAggState *state, const char *record)
{
	HgjAggExchange *exchange = &state->exchange;

	if (exchange->rest == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(state->context);

		exchange->rest = BufFileCreateTemp(false);
		MemoryContextSwitchTo(old);
	}
	BufFileWrite(exchange->rest, unconstify(char *, record),
				 hgj_agg_record_size(record));
	exchange->nrest++;
	exchange->total_disk += hgj_agg_record_size(record);
}

/* Step 2. */
static void
combine_block(HgjAggState *state, uint32 n)
{
	HgjAggExchange *exchange = &state->exchange;
	HgjGroups  *merged = &exchange->merged;

	hgj_exchange_load_keys(state, hgj_agg_record_key, merged->nkeys, n);
	hgj_groups_assign(merged, &exchange->batch);
	for (uint32 i = 0; i < n; i++)
		if (merged->of[i] == HGJ_NO_GROUP)
			put_aside(state, exchange->items[i]);
		else
			hgj_agg_combine(state, merged->of[i], exchange->items[i]);
	hgj_groups_settle(merged);
	state->peak_bytes = Max(state->peak_bytes, hgj_groups_bytes(merged));
}

/* Everything that a reader has; the table may have groups already. */
static void
combine_all(HgjAggState *state, RecordReader *reader)
{
	uint32		n;

	/* keys of a partition by hash are spread: no map of them would be dense */
	state->exchange.merged.maps_tried = HGJ_MOST_MAPS;
	while ((n = read_block(state, reader)) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		combine_block(state, n);
	}
}

/* The file of one of the processes, for reading. */
static BufFile *
open_file(HgjAggState *state, uint32 part)
{
	HgjAggExchange *exchange = &state->exchange;
	MemoryContext old = MemoryContextSwitchTo(state->context);
	char		name[24];

	if (exchange->files[part] == NULL)
	{
		hgj_exchange_file_name(name, sizeof(name), part);
		exchange->files[part] = BufFileOpenFileSet(&exchange->shared->files.fs, name,
												   O_RDONLY, false);
	}
	MemoryContextSwitchTo(old);
	return exchange->files[part];
}

/* Step 1: the groups of a partition, in an empty table. */
void
hgj_exchange_combine(HgjAggState *state, uint32 partition)
{
	HgjAggExchange *exchange = &state->exchange;
	dsa_pointer pointer = pg_atomic_read_u64(&exchange->shared->images);

	if (exchange->by_value)
		hgj_exchange_cover_partition(state, partition);
	while (DsaPointerIsValid(pointer))
	{
		HgjExchangeImage *image = dsa_get_address(exchange->area, pointer);
		const HgjImageRun *run = &image->runs[partition];
		RecordReader reader = {NULL, (const char *) image + run->offset, image->packed, run->ngroups};

		if (run->ngroups > 0 && image->on_file)
		{
			reader.file = open_file(state, image->part);
			if (BufFileSeek(reader.file, run->fileno, run->offset, SEEK_SET) != 0)
				ereport(ERROR,
						(errcode_for_file_access(),
						 errmsg("could not seek in the groups of a HashGraphAgg in a temporary file")));
		}
		combine_all(state, &reader);
		pointer = image->link.older;
	}
}

/* Step 3: what is left of the partition; false: nothing. */
bool
hgj_exchange_combine_rest(HgjAggState *state)
{
	HgjAggExchange *exchange = &state->exchange;
	BufFile    *file = exchange->rest;
	RecordReader reader = {file, NULL, 0, exchange->nrest};

	if (file == NULL)
		return false;
	exchange->rest = NULL;
	exchange->nrest = 0;
	if (BufFileSeek(file, 0, 0, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind the groups of a HashGraphAgg in a temporary file")));
	combine_all(state, &reader);
	BufFileClose(file);
	return true;
}

/* Close what is open for reading. */
void
hgj_exchange_close_files(HgjAggExchange *exchange)
{
	if (exchange->rest)
		BufFileClose(exchange->rest);
	exchange->rest = NULL;
	exchange->nrest = 0;
	for (int i = 0; exchange->files && exchange->shared &&
		 i < exchange->shared->most_parts; i++)
	{
		if (exchange->files[i])
			BufFileClose(exchange->files[i]);
		exchange->files[i] = NULL;
	}
}
