/*-------------------------------------------------------------------------
 *
 * partition_keep.c
 *	  What a rescan takes over of a build side that memory did not hold, so that
 *	  the child is not asked for it again.
 *
 * The outer side is read anew by every execution, and so are its partitions
 * made.  Of the build side, neither of whose rows nor keys have changed:
 *
 * 1. While the first unit's table is in memory still (a LIMIT, an EXISTS, or all
 *	  outer rows were done with it), it is probed again, and its partitions, their
 *	  files and their filter are there as well.
 * 2. Otherwise that table has given way to those of later units.  So its rows are
 *	  written to a file of their own when it is first built, behind them the
 *	  filter, and the files of the partitions stay when their units are done.
 *	  The next execution begins with a table of those rows, the partitions as they
 *	  are, and the filter.  A partition that is split again is so each time.
 *
 * Step 2 writes as much as memory holds, in vain if no rescan comes.  It is done
 * where one is to be expected: where the executor says so (EXEC_FLAG_REWIND: below
 * a nested loop, in a subplan, without parameters of theirs); where parameters come
 * from above, of a nested loop or a correlated subplan, that the outer side or a
 * clause depends on, but not the build side; or where there has been a rescan
 * before.  It takes an engine that gives rows back; a device's does not.
 *
 * All of it is dropped when parameters of the build side change, or the memory
 * limit is lower than the one under which it was made.
 *
 * Memory: as in partition.c.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "join/partition.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Parameters that are set anew from above, but not for the build side. */
static bool
outer_has_params(const HgjJoinState *state)
{
	const Plan *plan = state->js.css.ss.ps.plan;
	Bitmapset  *params;
	bool		result;

	if (state->inner_key_params)
		return false;
	params = bms_difference(plan->extParam, state->js.inner_ps->plan->extParam);
	if (!bms_is_empty(params))
		params = bms_del_members(params, hgj_fixed_params(state->js.css.ss.ps.state));
	result = !bms_is_empty(params);
	bms_free(params);
	return result;
}

/* Does the plan say that a rescan is to be expected?  It says so once and for all. */
bool
hgj_rescans_expected(const HgjJoinState *state)
{
	return state->passes.rewinds || outer_has_params(state);
}

/*
 * Is step 2 to be prepared for?  Not where passes, which a setting had asked for,
 * have seen a part of the build side that is neither in the table nor on file.
 */
static bool
keep_wanted(const HgjJoinState *state)
{
	return state->passes.pass == 1 && state->js.build->spilled->kept.rows == NULL &&
		state->use.engine->appended != NULL &&
		(state->passes.partitions->rescans_expected || state->passes.rescanned);
}

/* Rows that have their key words in the batch: the columns, from their records. */
static void
load_columns(HgjJoinState *state, const uint32 *rows, uint32 n)
{
	HgjBatch   *batch = state->building.batch;
	HgjRowStore *store = &state->js.build->rows;

	for (int c = 0; c < batch->ncols; c++)
	{
		const HgjStoredColumn *place = &store->columns[c];

		for (uint32 i = 0; i < n; i++)
		{
			const char *record = hgj_row_store_record(store, rows[i]);
			bool		isnull = hgj_record_is_null(place, record);

			hgj_vector_put(&batch->vectors[c], i,
						   isnull ? (Datum) 0 : hgj_record_load(place, record), isnull);
		}
	}
	batch->nrows = n;
}

/* What it takes to write rows from a batch: all of them, to the one partition. */
typedef struct RowWriter
{
	HgjSpillWriter *writer;
	uint32	   *rows;			/* their records */
	uint32	   *all;			/* 0, 1, 2, ... */
	uint32	   *partition;		/* zeroes */
	uint32		capacity;
} RowWriter;

static RowWriter
start_writing(HgjJoinState *state, HgjSpillWriter *writer)
{
	uint32		capacity = state->building.batch->capacity;
	Size		bytes = mul_size(capacity, sizeof(uint32));
	RowWriter	result = {
		.writer = writer,
		.rows = MemoryContextAlloc(state->js.context, bytes),
		.all = MemoryContextAlloc(state->js.context, bytes),
		.partition = MemoryContextAllocZero(state->js.context, bytes),
		.capacity = capacity
	};

	for (uint32 i = 0; i < capacity; i++)
		result.all[i] = i;
	return result;
}

static void
end_writing(RowWriter *to)
{
	pfree(to->rows);
	pfree(to->all);
	pfree(to->partition);
}

/*
 * Write the rows of the table, which is not built yet, that have a key.  `seen`, if not
 * NULL, gets a bit for the record of each.
 */
void
hgj_write_keyed(HgjJoinState *state, HgjSpillWriter *writer, uint8 *seen)
{
	HgjBatch   *batch = state->building.batch;
	RowWriter	to = start_writing(state, writer);
	uint64		cursor = 0;

	for (;;)
	{
		HgjError	err = {0};
		uint32		n;

		CHECK_FOR_INTERRUPTS();
		hgj_batch_clear(batch);
		if (state->use.engine->appended(state->js.build->table, &cursor, batch->words,
										to.rows, to.capacity, &n, &err) != HGJ_OK)
			hgj_engine_failed(state, &err);
		if (n == 0)
			break;
		load_columns(state, to.rows, n);
		hgj_spill_write(writer, batch, to.all, to.partition, NULL, n);
		for (uint32 i = 0; i < n && seen; i++)
			seen[to.rows[i] / 8] |= 1 << (to.rows[i] % 8);
	}
	end_writing(&to);
}

/* And others of its rows, which have none, but are owed. */
void
hgj_write_keyless(HgjJoinState *state, HgjSpillWriter *writer, const uint32 *rows,
				  uint32 n)
{
	HgjBatch   *batch = state->building.batch;
	RowWriter	to = start_writing(state, writer);
	uint8	   *flags = MemoryContextAlloc(state->js.context, to.capacity);

	memset(flags, HGJ_SPILL_NO_KEY, to.capacity);
	for (uint32 done = 0; done < n; done += batch->nrows)
	{
		CHECK_FOR_INTERRUPTS();
		hgj_batch_clear(batch);
		load_columns(state, rows + done, Min(n - done, to.capacity));
		hgj_spill_write(writer, batch, to.all, to.partition, flags, batch->nrows);
	}
	pfree(flags);
	end_writing(&to);
}

/* Those of the table's rows that have not been seen, a batch of them at a time. */
static void
write_unseen(HgjJoinState *state, HgjSpillWriter *writer, const uint8 *seen)
{
	uint32		capacity = state->building.batch->capacity;
	uint32	   *rows = MemoryContextAlloc(state->js.context,
										  mul_size(capacity, sizeof(uint32)));
	uint32		n = 0;

	for (uint32 row = 0; row < state->js.build->total_rows; row++)
	{
		if ((seen[row / 8] & (1 << (row % 8))) == 0)
			rows[n++] = row;
		if (n == capacity)
		{
			hgj_write_keyless(state, writer, rows, n);
			n = 0;
		}
	}
	hgj_write_keyless(state, writer, rows, n);
	pfree(rows);
}

static void
write_rows(HgjJoinState *state, HgjSpillWriter *writer)
{
	uint8	   *seen = NULL;

	/* where they are owed, no two rows share a record */
	Assert(!state->js.inner.keep_null_keys ||
		   state->js.build->rows.nrows == state->js.build->total_rows);
	if (state->js.inner.keep_null_keys &&
		state->js.build->graph_rows < state->js.build->total_rows)
		seen = MemoryContextAllocExtended(state->js.context,
										  state->js.build->total_rows / 8 + 1,
										  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	hgj_write_keyed(state, writer, seen);
	if (seen)
	{
		write_unseen(state, writer, seen);
		pfree(seen);
	}
}

/*
 * The first unit has been split, and its table is not built yet: step 2, if it is
 * worth it.
 */
void
hgj_keep_split(HgjJoinState *state)
{
	HgjPartitions *parts = state->passes.partitions;
	HgjSpilledBuild *spilled = state->js.build->spilled;
	HgjKept    *kept = &spilled->kept;
	Size		limit = get_hash_memory_limit();
	HgjSpillRun *rows;

	if (!keep_wanted(state))
		return;
	hgj_spill_open(&parts->writer, state->js.build->context,
				   parts->layouts[HGJ_INNER_SIDE], 1,
				   Min(hgj_partition_blocks(limit), HGJ_LARGEST_BLOCK) / 1024 * 1024,
				   &spilled->room, &state->js.build->account);
	write_rows(state, &parts->writer);
	rows = hgj_spill_close(&parts->writer);
	kept->filter = spilled->filter;
	kept->filter.words = NULL;
	kept->filter_at = rows[0].file->end;
	if (spilled->filter.words)
		hgj_spill_put(rows[0].file, spilled->filter.words,
					  spilled->filter.nwords * sizeof(uint64));
	else
		kept->filter.nwords = 0;
	state->stats.spilled_inner += rows[0].file->end;

	kept->limit = limit;
	kept->split = spilled->split;
	kept->inner_runs = hgj_spill_copy_runs(state->js.build->context, spilled->runs,
										   spilled->split.npartitions);
	kept->rows = rows;			/* from here on there is something kept */
}

/* Drop it. */
void
hgj_keep_nothing(HgjJoinState *state)
{
	state->passes.partitions->restoring = false;
	hgj_build_side_drop_kept(state->js.build);
}

/* Step 1: is the table in memory the first unit's, and its split at hand? */
bool
hgj_split_is_there(const HgjJoinState *state)
{
	return state->passes.partitions && !hgj_in_unit(state) &&
		state->js.build->spilled->runs != NULL;
}

/* A rescan, of step 1. */
void
hgj_split_again(HgjJoinState *state)
{
	HgjSpillFilter *filter = &state->js.build->spilled->filter;

	hgj_spill_abandon(&state->passes.partitions->writer);
	filter->tested = filter->rejected = filter->pause = 0;
	state->passes.units = 0;
	state->passes.splitting = true;
}

/* Is there anything kept, which memory has room for? */
static bool
can_restore(const HgjJoinState *state)
{
	const HgjSpilledBuild *spilled = state->js.build->spilled;

	return spilled && spilled->kept.rows &&
		spilled->kept.limit <= get_hash_memory_limit();
}

/*
 * A rescan, of step 2: the build rows are to come from the file.  False: they
 * cannot.  The table must be freed afterwards.
 */
bool
hgj_restore(HgjJoinState *state)
{
	HgjPartitions *parts = state->passes.partitions;

	if (!can_restore(state))
		return false;
	hgj_partitions_release_units(state);
	hgj_spill_read_runs(&parts->readers[HGJ_INNER_SIDE], state->js.context,
						&state->js.build->account, parts->layouts[HGJ_INNER_SIDE],
						state->js.build->spilled->kept.rows, 1);
	parts->restoring = true;
	return true;
}

/* The rows of the first unit's table come from what was kept. */
bool
hgj_restoring(const HgjJoinState *state)
{
	return state->passes.partitions && state->passes.partitions->restoring;
}

/*
 * Before the first table of an execution is built: should they still?  Reading
 * an outer row may have changed the limit.
 */
void
hgj_check_restoring(HgjJoinState *state)
{
	if (!hgj_restoring(state) || can_restore(state))
		return;
	hgj_partitions_release(state);
	hgj_rewind_inner(state, false);
}

/* They are all there: the partitions, too. */
void
hgj_restore_split(HgjJoinState *state)
{
	HgjSpilledBuild *spilled = state->js.build->spilled;
	HgjKept    *kept = &spilled->kept;
	Size		bytes = kept->filter.nwords * sizeof(uint64);

	state->passes.partitions->restoring = false;
	spilled->split = kept->split;
	spilled->runs = hgj_spill_copy_runs(state->js.build->context, kept->inner_runs,
										spilled->split.npartitions);
	spilled->filter = kept->filter;
	spilled->filter.bytes = bytes;
	hgj_spill_filter_alloc(&spilled->filter, &state->js.build->account);
	if (spilled->filter.words)
		hgj_spill_get(kept->rows[0].file, kept->filter_at, spilled->filter.words,
					  bytes);
	state->passes.splitting = state->passes.has_split = true;
}
