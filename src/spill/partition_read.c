/*-------------------------------------------------------------------------
 *
 * partition_read.c
 *	  From a partition's chains of blocks to batches (partition_file.c says how
 *	  they look).
 *
 * 1. Read a block, newest first.
 * 2. Copy its rows into the batch, column by column, and by-reference values to
 *	  where the batch keeps its values.  A batch takes rows of many blocks, and a
 *	  block's rows may go to several batches.
 *
 * Memory: one block of a file, and a byte of flags per row of the batch, in the
 * query's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "spill/partition_file.h"
#include "utils/memutils.h"

/* Rows that are read between two looks at the bytes of their values. */
#define HGJ_SPILL_PORTION	64

/*
 * Get ready to read these runs, which stay the caller's.  Buffers count in the
 * account.
 */
void
hgj_spill_read_runs(HgjSpillReader *reader, MemoryContext context,
					HgjAccount *account,
					const HgjSpillLayout *layout, const HgjSpillRun *runs,
					int nruns)
{
	reader->layout = layout;
	reader->context = context;
	reader->account = account;
	reader->runs = runs;
	reader->nruns = nruns;
	hgj_spill_rewind(reader);
}

/* Begin again. */
void
hgj_spill_rewind(HgjSpillReader *reader)
{
	reader->run = -1;
	reader->next_bytes = 0;
	reader->block = NULL;
	reader->nrows = reader->row = 0;
}

/* Give the memory back. */
void
hgj_spill_end_read(HgjSpillReader *reader)
{
	if (reader->buffer)
		pfree(reader->buffer);
	if (reader->flags)
		pfree(reader->flags);
	hgj_account_sub(reader->account, reader->capacity + reader->flags_capacity);
	memset(reader, 0, sizeof(*reader));
}

/* So many bytes of a file. */
void
hgj_spill_get(HgjSpillFile *file, uint64 at, void *bytes, Size n)
{
	size_t		got;

	if (BufFileSeek(file->file, 0, (off_t) at, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not seek in temporary file of spilled rows")));
	got = BufFileRead(file->file, bytes, n);
	if (got != n)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read from temporary file of spilled rows: read only %zu of %zu bytes",
						got, n)));
}

/* Read the next block, which is in the file. */
static void
read_block(HgjSpillReader *reader)
{
	if (reader->next_bytes > reader->capacity)
	{
		if (reader->buffer)
			pfree(reader->buffer);
		reader->buffer = NULL;
		hgj_account_sub(reader->account, reader->capacity);
		reader->capacity = 0;
		reader->buffer = MemoryContextAllocHuge(reader->context,
												reader->next_bytes);
		reader->capacity = reader->next_bytes;
		hgj_account_add(reader->account, reader->capacity);
	}
	hgj_spill_get(reader->runs[reader->run].file, reader->next, reader->buffer,
				  reader->next_bytes);
	reader->block = reader->buffer;
}

/* Turn to the next block of the chains; false when there is none. */
static bool
next_block(HgjSpillReader *reader)
{
	HgjSpillBlock header;

	while (reader->next_bytes == 0)
	{
		if (reader->run + 1 >= reader->nruns)
			return false;
		reader->run++;
		reader->next = reader->runs[reader->run].newest;
		reader->next_bytes = reader->runs[reader->run].newest_bytes;
	}

	CHECK_FOR_INTERRUPTS();
	if (reader->next_bytes & HGJ_SPILL_HELD)
	{
		reader->block = (const char *) (uintptr_t) reader->next;
		reader->next_bytes &= ~HGJ_SPILL_HELD;
	}
	else
		read_block(reader);
	memcpy(&header, reader->block, sizeof(header));
	reader->block_bytes = reader->next_bytes;
	reader->nrows = header.nrows;
	reader->row = 0;
	reader->next = header.previous;
	reader->next_bytes = header.previous_bytes;
	return true;
}

#define TAKE_WORDS(type, to) \
	for (uint32 i = 0; i < n; i++) \
		((type *) (to))[first + i] = *(const type *) (record + (Size) i * stride)

/*
 * What the batch is to have for what a record has for a by-reference value.  What
 * had no code when it was written has none now: full dictionaries stay so.
 */
static inline Datum
take_value(const HgjSpillReader *reader, const HgjColumn *column, uint64 slot,
		   HgjBatch *batch)
{
	const char *end = reader->block + reader->block_bytes;
	Datum		value;

	if (column->dictionary && (slot & HGJ_PLAIN_BIT) == 0)
		return (Datum) slot;
	value = PointerGetDatum(end - (slot & ~HGJ_PLAIN_BIT));
	if (column->dictionary && !reader->layout->decoded)
		return hgj_plain_datum(hgj_arena_copy(batch->values, value, column->attlen));
	return hgj_batch_keep(batch, column, value);
}

/* Read column c of n records into the batch, from position `first` on. */
static void
take_column(const HgjSpillReader *reader, int c, const char *records,
			uint32 n, HgjBatch *batch, uint32 first)
{
	const HgjSpillLayout *layout = reader->layout;
	const HgjStoredColumn *place = &layout->places[c];
	const HgjColumn *column = &layout->columns[c];
	HgjVector  *vector = &batch->vectors[c];
	const char *record = records + place->offset;
	uint32		stride = layout->stride;

	if (place->has_nulls)
		for (uint32 i = 0; i < n; i++)
			if (hgj_record_is_null(place, records + (Size) i * stride))
				hgj_vector_set_null(vector, first + i);

	if (!column->attbyval)
		for (uint32 i = 0; i < n; i++)
			((Datum *) vector->values)[first + i] =
				hgj_vector_is_null(vector, first + i) ? (Datum) 0 :
				take_value(reader, column,
						   *(const uint64 *) (record + (Size) i * stride),
						   batch);
	else if (place->width == 8)
		TAKE_WORDS(uint64, vector->values);
	else if (place->width == 4)
		TAKE_WORDS(uint32, vector->values);
	else if (place->width == 2)
		TAKE_WORDS(uint16, vector->values);
	else
		TAKE_WORDS(uint8, vector->values);
}

/* The next n rows of the block, to the end of the batch. */
static void
take_rows(HgjSpillReader *reader, HgjBatch *batch, uint32 n)
{
	const HgjSpillLayout *layout = reader->layout;
	uint32		stride = layout->stride;
	uint32		first = batch->nrows;
	uint32		nsel = batch->nsel;
	const char *records = reader->block + sizeof(HgjSpillBlock) +
		(Size) reader->row * stride;

	for (uint32 w = 0; w < layout->nwords; w++)
	{
		const char *record = records + w * sizeof(uint64);

		TAKE_WORDS(uint64, batch->words[w]);
	}
	for (int c = 0; c < layout->ncols; c++)
		take_column(reader, c, records, n, batch, first);
	for (uint32 i = 0; i < n; i++)
	{
		uint8		flags = records[(Size) i * stride + layout->flags_byte];

		reader->flags[first + i] = flags;
		batch->sel[nsel] = first + i;
		nsel += !(flags & HGJ_SPILL_NO_KEY);
	}
	batch->nsel = nsel;
	batch->nrows += n;
	reader->row += n;
}

/* What HgjSourceMethods.fill does, from the runs. */
void
hgj_spill_read(HgjSpillReader *reader, HgjBatch *batch, uint32 max_rows)
{
	bool		by_reference = reader->layout->by_reference;
	Size		used_before;

	hgj_batch_clear(batch);
	used_before = batch->values->used;
	max_rows = Min(max_rows, batch->capacity);
	if (max_rows > reader->flags_capacity)
	{
		if (reader->flags)
			pfree(reader->flags);
		reader->flags = NULL;
		hgj_account_sub(reader->account, reader->flags_capacity);
		reader->flags_capacity = 0;
		reader->flags = MemoryContextAllocHuge(reader->context, max_rows);
		reader->flags_capacity = max_rows;
		hgj_account_add(reader->account, max_rows);
	}
	while (batch->nrows < max_rows &&
		   batch->values->used - used_before <= hgj_batch_value_bytes())
	{
		uint32		n;

		if (reader->row == reader->nrows && !next_block(reader))
			break;
		n = Min(reader->nrows - reader->row, max_rows - batch->nrows);
		if (by_reference)
			n = Min(n, HGJ_SPILL_PORTION);
		take_rows(reader, batch, n);
	}
}
