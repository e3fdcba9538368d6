/*-------------------------------------------------------------------------
 *
 * partition_split.c
 *	  Which partition a row goes to, and how many there are: steps 1 to 3 of
 *	  partition.c.
 *
 * 1. When memory is full, plan: the number of partitions and the size of their
 *	  blocks from the rows that are to come, and a filter for those.
 * 2. Write the rest of the build side.  Rows with a NULL key, where unmatched
 *	  build rows are wanted, go to any partition.
 * 3. Write the outer rows of each batch that have to wait, when its matches with
 *	  the rows in memory have all been found.
 *
 * Memory as in partition.c.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/heapam.h"
#include "join/partition.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

#define HGJ_SMALLEST_BLOCK		((Size) 4 * 1024)

#define HGJ_FEWEST_PARTITIONS	4
#define HGJ_USUAL_PARTITIONS	32

/* So many partitions for one unit: of an estimate, and of an exact number. */
#define HGJ_PARTS_OF_ESTIMATE	4
#define HGJ_PARTS_OF_COUNT		2

/* What is left is expected to be at least this part of what is in memory. */
#define HGJ_LEAST_REST			16

/* How full units are planned to be. */
#define HGJ_UNIT_FILL			0.85

/* Rows whose hashes and partitions are computed together. */
#define HGJ_PORTION				512

/* Before the first row is written. */
static HgjPartitions *
get_partitions(HgjJoinState *state)
{
	HgjPartitions *parts = state->passes.partitions;

	if (parts)
		return parts;
	parts = MemoryContextAllocZero(state->js.context, sizeof(HgjPartitions));
	parts->layouts[HGJ_OUTER_SIDE] = MemoryContextAlloc(state->js.context,
														sizeof(HgjSpillLayout));
	hgj_spill_layout(parts->layouts[HGJ_OUTER_SIDE], state->js.context,
					 state->js.outer.columns, state->js.outer.ncols, state->js.outer.nwords);
	hgj_build_side_spill(state->js.build, state->js.inner.columns, state->js.inner.ncols,
						 state->js.inner.nwords);
	parts->layouts[HGJ_INNER_SIDE] = &state->js.build->spilled->layout;
	parts->rescans_expected = hgj_rescans_expected(state);
	state->passes.partitions = parts;
	return parts;
}

/*
 * How many rows the device has room for, when those in the table fill that; and how
 * much of the host's memory is left for blocks, if any, beside what is reserved.
 */
static void
plan_for_device(HgjJoinState *state, const HgjMemory *memory, Size limit,
				Size reserved)
{
	HgjSpilledBuild *spilled = state->js.build->spilled;
	Size		taken = reserved + memory->host + state->js.build->account.bytes;

	spilled->room.most = 0;
	spilled->split.unit_rows = 0;
	if (!hgj_on_device(state))
		return;
	if (state->use.device_limit > 0 && memory->build_peak > 0)
		spilled->split.unit_rows = HGJ_UNIT_FILL * state->js.build->total_rows *
			hgj_table_share(state) / memory->build_peak;
	if (state->use.device_is_full && taken < limit)
		spilled->room.most = spilled->room.held.bytes + (limit - taken) / 4 * 3;
}

/*
 * The part of its rows that a plan has returned, as far as pages of a table can
 * tell; 0: they cannot.
 */
static double
part_returned(PlanState *ps)
{
	const HgjJoinState *join = hgj_join_of(ps);
	HeapScanDesc scan;
	BlockNumber blocks;

	if (join && !join->passes.splitting && join->passes.pass == 1)
		return part_returned(join->js.outer_ps);
	if (!IsA(ps, SeqScanState))
		return 0;
	scan = (HeapScanDesc) ((SeqScanState *) ps)->ss.ss_currentScanDesc;
	if (scan == NULL || scan->rs_base.rs_parallel ||
		scan->rs_base.rs_rd->rd_tableam != GetHeapamTableAmRoutine() ||
		scan->rs_cblock == InvalidBlockNumber)
		return 0;
	blocks = Min(scan->rs_nblocks, scan->rs_numblocks);
	if (scan->rs_cblock >= scan->rs_startblock)
		return (scan->rs_cblock - scan->rs_startblock + 1) / (double) blocks;
	return (scan->rs_cblock + scan->rs_nblocks - scan->rs_startblock + 1) /
		(double) blocks;
}

/* How many rows of the unit's build side are to come? */
static double
rows_to_come(HgjJoinState *state)
{
	double		in_memory = Max(state->js.build->total_rows, 1);
	double		rest = hgj_unit_rows(state) - in_memory;

	if (state->passes.partitions->unit == NULL)
	{
		double		returned = part_returned(state->js.inner_ps);

		if (returned > 0)
			rest = in_memory / returned - in_memory;
		else if (rest <= 0)
			rest = in_memory;	/* the estimate was too low already */
	}
	return Max(rest, in_memory / HGJ_LEAST_REST);
}

/* How many partitions, of which size, with which filter (head comment). */
static void
plan_split(HgjJoinState *state)
{
	HgjPartitions *parts = get_partitions(state);
	HgjSpilledBuild *spilled = state->js.build->spilled;
	Size		limit = get_hash_memory_limit();
	Size		budget = hgj_partition_blocks(limit);
	Size		reserved = hgj_partition_reserve(limit);
	Size		taken = reserved + hgj_filter_room(state) + state->building.batch->held.bytes +
	Min(hgj_build_side_code_bytes(state->js.build), limit / 2);
	double		in_memory = Max(state->js.build->total_rows, 1);
	double		rest = rows_to_come(state);
	double		factor = parts->unit ? HGJ_PARTS_OF_COUNT : HGJ_PARTS_OF_ESTIMATE;
	double		wanted;
	HgjMemory	memory;
	int			n = HGJ_FEWEST_PARTITIONS;

	state->use.engine->memory(state->js.build->table, &memory);
	spilled->split.row_bytes =
		((double) (hgj_on_device(state) ? memory.host : memory.build_peak) +
						state->js.build->rows.held.bytes) / in_memory;
	spilled->split.unit_bytes = taken < limit ? limit - taken : 0;
	spilled->split.unit_bytes = Max(spilled->split.unit_bytes, limit / 8);
	spilled->split.unit_bytes = (Size) (spilled->split.unit_bytes * HGJ_UNIT_FILL);
	plan_for_device(state, &memory, limit, reserved);
	wanted = factor * rest / spilled->split.unit_bytes *
		(spilled->split.row_bytes + state->js.build->rows.values.held.bytes / in_memory);
	if (spilled->split.unit_rows > 0)
		wanted = Max(wanted, factor * rest / spilled->split.unit_rows);
	wanted = Max(wanted, HGJ_USUAL_PARTITIONS);
	wanted = Min(wanted, HGJ_MOST_PARTITIONS);
	while (n < wanted && (Size) n * 2 * HGJ_SMALLEST_BLOCK <= budget)
		n *= 2;
	spilled->split.npartitions = n;
	spilled->split.block_bytes = Min(budget / n, HGJ_LARGEST_BLOCK) / 1024 * 1024;
	spilled->split.used_bits = (parts->unit ? parts->unit->used_bits : 0) +
		pg_leftmost_one_pos32(n);
	hgj_spill_filter_make(&spilled->filter, rest, limit / HGJ_FILTER_SHARE,
						  &state->js.build->account);
	ereport(state->logged.split ? DEBUG2 : DEBUG1,
			(errmsg_internal("hashgraph_join: %u build rows fill memory, the rest, about %.0f, goes to %d partitions",
							 state->js.build->total_rows, rest, n)));
	state->logged.split = true;
}

static void
open_writer(HgjJoinState *state, HgjSpillSide side)
{
	HgjPartitions *parts = state->passes.partitions;
	HgjSpilledBuild *spilled = state->js.build->spilled;

	hgj_spill_open(&parts->writer,
				   side == HGJ_INNER_SIDE ? state->js.build->context : state->js.context,
				   parts->layouts[side],
				   spilled->split.npartitions, spilled->split.block_bytes, &spilled->room,
				   &state->js.build->account);
	hgj_note_peak_memory(state);
}

/* The hashes of some rows' key words, as the head of hash.h explains. */
static void
hash_rows(const HgjSpilledBuild *spilled, const HgjBatch *batch,
		  const uint32 *rows, uint32 n, uint64 *hashes)
{
	for (uint32 i = 0; i < n; i++)
		hashes[i] = spilled->start;
	for (uint32 w = 0; w < batch->nwords; w++)
		for (uint32 i = 0; i < n; i++)
			hashes[i] = hgj_fold(hashes[i] ^ batch->words[w][rows[i]], spilled->mul);
	for (uint32 i = 0; i < n; i++)
		hashes[i] = hgj_fold(hashes[i], spilled->end_mul);
}

static void
choose_partitions(const HgjSpilledBuild *spilled, const uint64 *hashes, uint32 n,
				  uint32 *partitions)
{
	int			shift = 64 - spilled->split.used_bits;
	uint32		mask = spilled->split.npartitions - 1;

	for (uint32 i = 0; i < n; i++)
		partitions[i] = (uint32) (hashes[i] >> shift) & mask;
}

/* Write the rows of the build batch whose keys are not NULL. */
static void
write_keyed(HgjSpilledBuild *spilled, HgjSpillWriter *writer, const HgjBatch *batch)
{
	uint64		hashes[HGJ_PORTION];
	uint32		partitions[HGJ_PORTION];

	for (uint32 done = 0; done < batch->nsel; done += HGJ_PORTION)
	{
		uint32		n = Min(batch->nsel - done, HGJ_PORTION);

		CHECK_FOR_INTERRUPTS();
		hash_rows(spilled, batch, batch->sel + done, n, hashes);
		choose_partitions(spilled, hashes, n, partitions);
		hgj_spill_filter_add(&spilled->filter, hashes, n);
		for (uint32 i = 0; i < n; i++)
		{
			HgjSpillRun *run = &writer->buffers[partitions[i]].run;

			run->all_bits &= hashes[i];
			run->any_bits |= hashes[i];
		}
		hgj_spill_write(writer, batch, batch->sel + done, partitions,
						NULL, n);
	}
}

/* Write those that have one, because somebody wants unmatched build rows. */
static void
write_keyless(HgjSpilledBuild *spilled, HgjSpillWriter *writer, const HgjBatch *batch)
{
	uint32		rows[HGJ_PORTION];
	uint32		partitions[HGJ_PORTION];
	uint8		flags[HGJ_PORTION];
	uint32		nlive = hgj_batch_nlive(batch);
	uint32		n = 0;
	uint32		s = 0;

	memset(flags, HGJ_SPILL_NO_KEY, sizeof(flags));
	for (uint32 i = 0; i < nlive; i++)
	{
		uint32		row = hgj_batch_live_row(batch, i);

		if (s < batch->nsel && batch->sel[s] == row)
		{
			s++;
			continue;
		}
		rows[n] = row;
		partitions[n++] = i & (spilled->split.npartitions - 1);	/* any will do */
		if (n == HGJ_PORTION)
		{
			hgj_spill_write(writer, batch, rows, partitions, flags, n);
			n = 0;
		}
	}
	if (n > 0)
		hgj_spill_write(writer, batch, rows, partitions, flags, n);
}

/*
 * Steps 1 and 2: what is left of the unit's build side goes to partitions.
 * Sets passes.splitting if anything was left.
 */
void
hgj_split_inner(HgjJoinState *state, uint32 batch_rows)
{
	HgjBatch   *batch = state->building.batch;
	HgjSpilledBuild *spilled = NULL;
	HgjSpillWriter *writer = NULL;

	/* values that are kept for a batch, in an arena that nobody else uses now */
	batch->values = &state->js.build->rows.next_values;
	for (;;)
	{
		hgj_arena_reset(batch->values);
		hgj_fill_inner(state, batch_rows);
		if (batch->nrows == 0)
			break;
		if (!state->passes.splitting)
		{
			plan_split(state);
			open_writer(state, HGJ_INNER_SIDE);
			spilled = state->js.build->spilled;
			writer = &state->passes.partitions->writer;
			state->passes.splitting = state->passes.has_split = true;
		}
		write_keyed(spilled, writer, batch);
		if (state->js.inner.keep_null_keys && batch->nsel < hgj_batch_nlive(batch))
			write_keyless(spilled, writer, batch);
	}
	hgj_arena_free(batch->values);
	batch->values = &state->js.build->rows.values;
	if (!state->passes.splitting)
		return;

	spilled->runs = hgj_spill_close(writer);
	state->stats.spilled_inner += spilled->runs[0].file->end;
	state->stats.held_bytes = Max(state->stats.held_bytes, spilled->room.held.bytes);
	hgj_spill_filter_settle(&spilled->filter);
	hgj_keep_split(state);
}

/*
 * Those of n selected outer rows that are to wait: not those that have had the
 * only match they need, nor those that no row on file can match.
 */
static uint32
choose_outer(HgjJoinState *state, const uint32 *sel, uint32 n, uint32 *rows,
			 uint64 *hashes)
{
	HgjSpilledBuild *spilled = state->js.build->spilled;
	uint32		wait = 0;
	uint32		kept;

	for (uint32 i = 0; i < n; i++)
	{
		rows[wait] = sel[i];
		wait += !(state->js.semantics.one_per_outer && state->found.matched[sel[i]]);
	}
	hash_rows(spilled, state->probing.outer_batch, rows, wait, hashes);
	kept = hgj_spill_filter_test(&spilled->filter, hashes, rows, wait);
	state->stats.outer_filtered += wait - kept;
	return kept;
}

/*
 * Step 3: all matches of the outer batch with the rows in memory have been
 * found.  Rows that wait count as matched here, because they are not to be
 * returned as unmatched yet.
 */
void
hgj_split_outer(HgjJoinState *state)
{
	HgjPartitions *parts = state->passes.partitions;
	HgjSpilledBuild *spilled = state->js.build->spilled;
	HgjBatch   *batch = state->probing.outer_batch;
	bool		fill_outer = state->js.semantics.fill_outer;
	uint32		rows[HGJ_PORTION];
	uint64		hashes[HGJ_PORTION];
	uint32		partitions[HGJ_PORTION];
	uint8		flags[HGJ_PORTION];

	for (uint32 done = 0; done < batch->nsel; done += HGJ_PORTION)
	{
		uint32		n = choose_outer(state, batch->sel + done,
									 Min(batch->nsel - done, HGJ_PORTION),
									 rows, hashes);

		CHECK_FOR_INTERRUPTS();
		if (n == 0)
			continue;
		if (parts->writer.file == NULL)
			open_writer(state, HGJ_OUTER_SIDE);
		choose_partitions(spilled, hashes, n, partitions);
		for (uint32 i = 0; i < n && fill_outer; i++)
		{
			flags[i] = state->found.matched[rows[i]] ? HGJ_SPILL_MATCHED : 0;
			state->found.matched[rows[i]] = true;
		}
		hgj_spill_write(&parts->writer, batch, rows, partitions,
						fill_outer ? flags : NULL, n);
	}
}
