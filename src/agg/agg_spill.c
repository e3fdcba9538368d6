/*-------------------------------------------------------------------------
 *
 * agg_spill.c
 *	  Rows of groups for which a HashGraphAgg has no memory left, unless it is a
 *	  partial one (agg_rounds.c).
 *
 * 1. Groups in the table go on; rows of other groups are written to temporary
 *	  files, by bits of their hash: all rows of a group go to one file.
 * 2. When the groups in the table have been returned, each file is read as the
 *	  join's batches were.  What does not fit then goes to files by further bits.
 *	  When all bits are used, rows go to one file.  Every round finishes some
 *	  groups, so this ends.
 *
 * A row is its length, a byte per column that says what it is, and the values of
 * the columns that are not NULL: as they lie in a vector, or the size and the
 * bytes of a by-reference value, also of one that has no code in its column's
 * dictionary.
 *
 * Memory: buffers of files and of one batch, in the query's context; by-reference
 * values in the batch's arena.  Files belong to the resource owner, and are closed
 * by hgj_agg_spill_release().  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_state.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/datum.h"
#include "utils/memutils.h"

/* Files that rows are written to at the same time; powers of two. */
#define FEWEST_PARTITIONS	4
#define MOST_PARTITIONS		64

/* Of the hash; the group table looks at the other half. */
#define HASH_BITS			32

/* Their buffers may take this part of the limit. */
#define BUFFERS_SHARE		4

/* Begin to write. */
static void
start_writing(HgjAggState *state)
{
	HgjAggSpill *spill = &state->spill;
	Size		buffers = state->groups.limit / BUFFERS_SHARE / BLCKSZ;
	int			n = FEWEST_PARTITIONS;
	int			bits;

	while (n < MOST_PARTITIONS && (Size) n * 2 <= buffers)
		n *= 2;
	spill->used_bits = spill->reading ? spill->reading->used_bits : 0;
	bits = Min(pg_leftmost_one_pos32(n), HASH_BITS - spill->used_bits);
	spill->npartitions = 1 << bits;
	spill->used_bits += bits;
	spill->writing = MemoryContextAllocZero(state->context,
											spill->npartitions * sizeof(HgjAggPartition *));
	ereport(spill->logged ? DEBUG2 : DEBUG1,
			(errmsg_internal("hashgraph_join: groups fill memory, rows of others go to %d partitions",
							 spill->npartitions)));
	spill->logged = true;
	if (spill->row.data == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(state->context);

		initStringInfo(&spill->row);
		MemoryContextSwitchTo(old);
	}
}

static HgjAggPartition *
partition_for(HgjAggState *state, uint64 hash)
{
	HgjAggSpill *spill = &state->spill;
	uint32		p = spill->npartitions == 1 ? 0 :
	((uint32) hash >> (HASH_BITS - spill->used_bits)) % spill->npartitions;
	MemoryContext old;

	if (spill->writing[p] == NULL)
	{
		old = MemoryContextSwitchTo(state->context);
		spill->writing[p] = palloc0(sizeof(HgjAggPartition));
		spill->writing[p]->file = BufFileCreateTemp(false);
		spill->writing[p]->used_bits = spill->used_bits;
		spill->total_partitions++;
		MemoryContextSwitchTo(old);
	}
	return spill->writing[p];
}

/* What a row has of a column. */
typedef enum SpilledValue
{
	SPILLED_NULL,
	SPILLED_WORD,				/* as in the vector */
	SPILLED_BYTES,				/* what the vector has a pointer to */
	SPILLED_LOOSE				/* what a dictionary's datum is */
} SpilledValue;

static SpilledValue
spilled_as(const HgjColumn *column, const char *at)
{
	if (column->attbyval)
		return SPILLED_WORD;
	if (column->dictionary)
		return hgj_datum_is_loose(*(const Datum *) at) ? SPILLED_LOOSE :
			SPILLED_WORD;
	return SPILLED_BYTES;
}

static void
append_value(HgjAggState *state, const HgjColumn *column, Datum value)
{
	StringInfo	row = &state->spill.row;
	uint32		size;

	if (column->attlen == -1 &&
		VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(value)))
		value = hgj_arena_copy(&state->values, value, -1);
	size = datumGetSize(value, false, column->attlen);
	appendBinaryStringInfo(row, (char *) &size, sizeof(size));
	appendBinaryStringInfo(row, DatumGetPointer(value), size);
}

/* Write out what of the batch's live rows has no group. */
void
hgj_agg_spill_rows(HgjAggState *state, const HgjBatch *batch)
{
	HgjAggSpill *spill = &state->spill;
	HgjGroups  *groups = &state->groups;
	StringInfo	row = &spill->row;
	uint32		n = hgj_batch_nlive(batch);

	if (spill->writing == NULL)
		start_writing(state);
	for (uint32 i = 0; i < n; i++)
	{
		uint32		position = hgj_batch_live_row(batch, i);
		HgjAggPartition *partition;
		uint32		length;

		if (groups->of[i] != HGJ_NO_GROUP)
			continue;
		CHECK_FOR_INTERRUPTS();
		partition = partition_for(state, hgj_groups_hash(groups, i));
		resetStringInfo(row);
		appendBinaryStringInfo(row, (char *) &length, sizeof(length));
		enlargeStringInfo(row, state->ncarried);
		row->len += state->ncarried;
		for (int w = 0; w < state->ncarried; w++)
		{
			const HgjColumn *column = &state->columns[state->carried[w]];
			const HgjVector *vector = &batch->vectors[state->carried[w]];
			const char *at = (const char *) vector->values +
			(Size) position * vector->width;
			SpilledValue as = hgj_vector_is_null(vector, position) ?
			SPILLED_NULL : spilled_as(column, at);

			row->data[sizeof(length) + w] = (char) as;
			if (as == SPILLED_WORD)
				appendBinaryStringInfo(row, at, vector->width);
			else if (as == SPILLED_BYTES)
				append_value(state, column, *(const Datum *) at);
			else if (as == SPILLED_LOOSE)
				append_value(state, column,
							 hgj_loose_value(*(const Datum *) at));
		}
		length = row->len;
		memcpy(row->data, &length, sizeof(length));
		BufFileWrite(partition->file, row->data, length);
		partition->rows++;
		spill->total_rows++;
		spill->total_bytes += length;
	}
	if (state->values.used > 0)
		hgj_arena_reset(&state->values);
}

/* What has been written waits to be read. */
void
hgj_agg_spill_finish_writing(HgjAggState *state)
{
	HgjAggSpill *spill = &state->spill;

	if (spill->reading)
	{
		BufFileClose(spill->reading->file);
		pfree(spill->reading);
		spill->reading = NULL;
	}
	if (spill->writing == NULL)
		return;
	for (int p = 0; p < spill->npartitions; p++)
	{
		if (spill->writing[p] == NULL)
			continue;
		spill->writing[p]->next = spill->pending;
		spill->pending = spill->writing[p];
	}
	pfree(spill->writing);
	spill->writing = NULL;
}

/* The next batches are those of a file that waits.  False: none does. */
bool
hgj_agg_spill_next_partition(HgjAggState *state)
{
	HgjAggSpill *spill = &state->spill;

	if (spill->pending == NULL)
		return false;
	spill->reading = spill->pending;
	spill->pending = spill->pending->next;
	if (BufFileSeek(spill->reading->file, 0, 0, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind temporary file of a HashGraphAgg")));

	if (spill->batch == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(state->context);

		spill->batch = palloc0(sizeof(HgjBatch));
		spill->batch->ncols = state->ncolumns;
		spill->batch->vectors = palloc0(mul_size(Max(state->ncolumns, 1),
												 sizeof(HgjVector)));
		spill->batch->values = &spill->batch->own_values;
		spill->buffers = palloc0(mul_size(Max(state->ncarried, 1),
										  sizeof(HgjBuffer)));
		MemoryContextSwitchTo(old);
	}
	return true;
}

static void
read_exactly(BufFile *file, void *to, Size bytes)
{
	Size		got = BufFileRead(file, to, bytes);

	if (got != bytes)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read from temporary file of a HashGraphAgg: read only %zu of %zu bytes",
						got, bytes)));
}

/* Put the row in spill->row, without its length, into position `n`. */
static void
take_row(HgjAggState *state, uint32 n)
{
	HgjAggSpill *spill = &state->spill;
	const char *kinds = spill->row.data;
	const char *at = kinds + state->ncarried;

	for (int w = 0; w < state->ncarried; w++)
	{
		HgjVector  *vector = &spill->buffers[w].vector;
		char	   *to = (char *) vector->values + (Size) n * vector->width;
		uint32		size = vector->width;

		if (kinds[w] == SPILLED_NULL)
		{
			hgj_vector_set_null(vector, n);
			memset(to, 0, size);
			continue;
		}
		if (kinds[w] == SPILLED_WORD)
			memcpy(to, at, size);
		else
		{
			char	   *copy;
			Datum		value;

			memcpy(&size, at, sizeof(size));
			at += sizeof(size);
			copy = hgj_arena_alloc(&spill->batch->own_values, MAXALIGN(size));
			memcpy(copy, at, size);
			value = PointerGetDatum(copy);
			*(Datum *) to = kinds[w] == SPILLED_LOOSE ?
				hgj_loose_datum(value) : value;
		}
		at += size;
	}
}

/* The next rows of the file that is being read; NULL at its end. */
HgjBatch *
hgj_agg_spill_next_batch(HgjAggState *state)
{
	HgjAggSpill *spill = &state->spill;
	HgjAggPartition *partition = spill->reading;
	HgjBatch   *batch = spill->batch;
	Size		most_bytes = hgj_batch_value_bytes();
	uint32		n = 0;

	if (batch->own_values.used > 0)
		hgj_arena_reset(&batch->own_values);
	for (int w = 0; w < state->ncarried; w++)
		hgj_buffer_reserve(state->context, &spill->buffers[w],
						   state->columns[state->carried[w]].width,
						   HGJ_BATCH_ROWS);

	while (n < HGJ_BATCH_ROWS && partition->rows > 0 &&
		   batch->own_values.used < most_bytes)
	{
		uint32		length;

		read_exactly(partition->file, &length, sizeof(length));
		resetStringInfo(&spill->row);
		enlargeStringInfo(&spill->row, length);
		read_exactly(partition->file, spill->row.data,
					 length - sizeof(length));
		take_row(state, n++);
		partition->rows--;
	}
	for (int w = 0; w < state->ncarried; w++)
		batch->vectors[state->carried[w]] = spill->buffers[w].vector;
	batch->nrows = batch->nlive = n;
	return n > 0 ? batch : NULL;
}

/* Close every file, and forget what is in it. */
void
hgj_agg_spill_release(HgjAggState *state)
{
	HgjAggSpill *spill = &state->spill;

	hgj_agg_spill_finish_writing(state);
	while (spill->pending)
	{
		HgjAggPartition *next = spill->pending->next;

		BufFileClose(spill->pending->file);
		pfree(spill->pending);
		spill->pending = next;
	}
}
