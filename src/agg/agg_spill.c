/*-------------------------------------------------------------------------
 *
 * agg_spill.c
 *	  Rows of groups for which a HashGraphAgg has no memory left, unless it is a
 *	  partial one (agg_rounds.c).
 *
 * 1. Groups in the table go on; rows of other groups are written to partitions
 *	  on file (spill/partition_file.c), by bits of their hash: all rows of a group
 *	  go to one partition.
 * 2. When the groups in the table have been returned, each partition is read as
 *	  the join's batches were.  What does not fit then goes to partitions by further
 *	  bits.  When all bits are used, rows go to one partition.  Every round finishes
 *	  some groups, so this ends.
 *
 * Rows of a partition come back a block at a time, the newest first.  So what depends
 * on the order of rows, sums of floating-point numbers and which of several equal
 * values stands for a group, may differ from what memory would have made of them.
 * All partitions of a round share a file, which stays until the last is read.
 *
 * Memory: the partitions' blocks and the values of the batch that is read are
 * malloc'd, and freed when the node ends or its query is aborted (agg_node.c); all
 * else is in the query's context.  Files belong to the resource owner, and are
 * closed by hgj_agg_spill_release().
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_state.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

/* Partitions that rows are written to at the same time; powers of two. */
#define FEWEST_PARTITIONS	4
#define MOST_PARTITIONS		64

/* Of the hash; the group table looks at the other half. */
#define HASH_BITS			32

/* Their blocks may take this part of the limit. */
#define BLOCKS_SHARE		4

/* Before the first row: a row on file has the columns that somebody reads. */
static void
lay_out(HgjAggState *state)
{
	HgjAggSpill *spill = &state->spill;
	MemoryContext old = MemoryContextSwitchTo(state->context);
	HgjColumn  *columns = palloc(mul_size(Max(state->ncarried, 1), sizeof(HgjColumn)));

	for (int w = 0; w < state->ncarried; w++)
		columns[w] = state->columns[state->carried[w]];
	hgj_spill_layout(&spill->layout, state->context, columns, state->ncarried, 0);
	spill->written = hgj_batch_create(state->context, columns, state->ncarried, 0,
									  NULL);
	spill->read = hgj_batch_create(state->context, columns, state->ncarried, 0,
									  NULL);
	spill->numerics = palloc0(mul_size(Max(state->ncarried, 1), sizeof(HgjBuffer)));
	spill->made = AllocSetContextCreate(state->context, "HashGraphAgg numerics",
										ALLOCSET_DEFAULT_SIZES);
	spill->batch.vectors = palloc0(mul_size(Max(state->ncolumns, 1), sizeof(HgjVector)));
	MemoryContextSwitchTo(old);
}

/* Begin to write. */
static void
start_writing(HgjAggState *state)
{
	HgjAggSpill *spill = &state->spill;
	Size		blocks = state->groups.limit / BLOCKS_SHARE / BLCKSZ;
	int			n = FEWEST_PARTITIONS;
	int			bits;

	if (spill->read == NULL)
		lay_out(state);
	while (n < MOST_PARTITIONS && (Size) n * 2 <= blocks)
		n *= 2;
	spill->used_bits = spill->reading ? spill->reading->used_bits : 0;
	bits = Min(pg_leftmost_one_pos32(n), HASH_BITS - spill->used_bits);
	spill->used_bits += bits;
	hgj_spill_open(&spill->writer, state->context, &spill->layout, 1 << bits,
				   BLCKSZ, &spill->no_room, NULL);
	ereport(spill->logged ? DEBUG2 : DEBUG1,
			(errmsg_internal("hashgraph_join: groups fill memory, rows of others go to %d partitions",
							 1 << bits)));
	spill->logged = true;
}

/* The w-th carried column, of n rows, as it is written: decimals become numerics. */
static HgjVector
vector_to_write(HgjAggState *state, const HgjBatch *batch, int w, const uint32 *rows,
				uint32 n)
{
	HgjBuffer  *numerics = &state->spill.numerics[w];
	HgjVector	vector = batch->vectors[state->carried[w]];
	MemoryContext old;

	if (!vector.decimals)
		return vector;
	hgj_buffer_reserve(state->context, numerics, sizeof(Datum), batch->nrows);
	old = MemoryContextSwitchTo(state->spill.made);
	for (uint32 i = 0; i < n; i++)
		if (!hgj_vector_is_null(&vector, rows[i]))
			((Datum *) numerics->vector.values)[rows[i]] =
				hgj_decimal_numeric(((const int64 *) vector.values)[rows[i]],
									vector.scale, vector.scale);
	MemoryContextSwitchTo(old);
	vector.values = numerics->vector.values;
	vector.decimals = false;
	return vector;
}

/*
 * Write out what of the batch's live rows has no group.  The state's arrays of
 * rows and groups are free until those that have one are noted there.
 */
void
hgj_agg_spill_rows(HgjAggState *state, const HgjBatch *batch)
{
	HgjAggSpill *spill = &state->spill;
	HgjGroups  *groups = &state->groups;
	uint32	   *rows = state->row_buffer;
	uint32	   *partitions = state->group_buffer;
	uint32		nlive = hgj_batch_nlive(batch);
	uint32		n = 0;
	uint32		mask;

	if (spill->writer.file == NULL)
		start_writing(state);
	mask = spill->writer.nbuffers - 1;
	for (uint32 i = 0; i < nlive; i++)
	{
		if (groups->of[i] != HGJ_NO_GROUP)
			continue;
		CHECK_FOR_INTERRUPTS();
		rows[n] = hgj_batch_live_row(batch, i);
		partitions[n++] = ((uint32) hgj_groups_hash(groups, i) >>
						   (HASH_BITS - spill->used_bits)) & mask;
	}
	for (int w = 0; w < state->ncarried; w++)
		spill->written->vectors[w] = vector_to_write(state, batch, w, rows, n);
	hgj_spill_write(&spill->writer, spill->written, rows, partitions, NULL, n);
	MemoryContextReset(spill->made);
	spill->total_rows += n;
}

static void
release(HgjAggPartition *partition)
{
	hgj_spill_file_release(partition->run.file);
	pfree(partition);
}

/* What has been written waits to be read. */
void
hgj_agg_spill_finish_writing(HgjAggState *state)
{
	HgjAggSpill *spill = &state->spill;
	HgjSpillFile *file = spill->writer.file;
	HgjSpillRun *runs;

	if (spill->reading)
		release(spill->reading);
	spill->reading = NULL;
	if (file == NULL)
		return;
	runs = hgj_spill_close(&spill->writer);
	for (int p = 0; p < spill->writer.nbuffers; p++)
	{
		HgjAggPartition *partition;

		if (runs[p].rows == 0)
			continue;
		partition = MemoryContextAlloc(state->context, sizeof(HgjAggPartition));
		partition->run = runs[p];
		partition->used_bits = spill->used_bits;
		partition->next = spill->pending;
		spill->pending = partition;
		file->users++;
		spill->total_partitions++;
	}
	spill->total_bytes += file->end;
	hgj_spill_drop_runs(&runs);
}

/* The next batches are those of a partition that waits. */
void
hgj_agg_spill_next_partition(HgjAggState *state)
{
	HgjAggSpill *spill = &state->spill;

	spill->reading = spill->pending;
	spill->pending = spill->reading->next;
	hgj_spill_read_runs(&spill->reader, state->context, NULL, &spill->layout,
						&spill->reading->run, 1);
}

/* The next rows of the partition that is being read; NULL at its end. */
HgjBatch *
hgj_agg_spill_next_batch(HgjAggState *state)
{
	HgjAggSpill *spill = &state->spill;

	hgj_batch_reserve(spill->read, HGJ_BATCH_ROWS);
	hgj_spill_read(&spill->reader, spill->read, HGJ_BATCH_ROWS);
	for (int w = 0; w < state->ncarried; w++)
		spill->batch.vectors[state->carried[w]] = spill->read->vectors[w];
	spill->batch.nrows = spill->read->nrows;
	return spill->batch.nrows > 0 ? &spill->batch : NULL;
}

/* Close every file, and forget what is in it. */
void
hgj_agg_spill_release(HgjAggState *state)
{
	HgjAggSpill *spill = &state->spill;

	hgj_spill_abandon(&spill->writer);
	hgj_agg_spill_finish_writing(state);
	while (spill->pending)
	{
		HgjAggPartition *partition = spill->pending;

		spill->pending = partition->next;
		release(partition);
	}
}

/* Free what is not palloc'd.  Safe at any time, and again. */
void
hgj_agg_spill_free_memory(HgjAggState *state)
{
	hgj_spill_free_blocks(&state->spill.writer);
	if (state->spill.read)
		hgj_arena_free(&state->spill.read->own_values);
}
