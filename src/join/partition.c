/*-------------------------------------------------------------------------
 *
 * partition.c
 *	  Joins whose build side is larger than memory: partitions on temporary
 *	  files (a hybrid hash join; DeWitt and others 1984).
 *
 * A *unit* is a build side and the outer rows that may match it.  The first one
 * is what the two children return.
 *
 * 1. Build rows of the unit are taken as long as memory lasts (build.c); they
 *	  are the part that stays in memory.  If there are more, the rest is split
 *	  by bits of a hash of the key words, seeded and unlike the graph's, and
 *	  goes to a temporary file (partition_file.c).
 * 2. A Bloom filter is told of every row that goes there (spill_filter.c).
 * 3. The table of the rows in memory is built and probed with all outer rows of
 *	  the unit.  Those that may match a row on file wait, too, in the same
 *	  partitions: an outer row is done when it needs no second match, when a
 *	  key is NULL, or when the filter has never seen its hash.  So the filter
 *	  serves every join type, and a build side that is slightly larger than
 *	  memory makes few outer rows wait.  An outer row that waits takes along
 *	  whether it has matched, and is returned as unmatched by the unit in which
 *	  it is done.
 * 4. When the outer rows are through, every partition is known exactly: rows,
 *	  bytes, and whether all its hashes are one.  There are more of them than
 *	  needed, and as many as fit into memory together make a unit.  Units are
 *	  joined one by one, beginning with step 1.
 * 5. A unit that does not fit after all is split again by further bits, in as
 *	  many partitions as its rows need.  Or its build side is joined in passes
 *	  over its outer rows, which are on file already: when splitting would get
 *	  nowhere (one hash), or when there are so few outer rows that reading them
 *	  for each pass is cheaper than writing both sides.  So a hot key costs as
 *	  many passes over the rows that match it as its build rows fill memory.
 *
 * On a device the part that stays is what fits into its memory, too, and so are
 * units: every table is built there.  Where it is the device that is full, and not
 * the host, blocks of partitions stay in the host's memory as long as that lasts
 * (partition_file.c), and files are written for the rest only.  Other ways were
 * thought of: to keep the build side's rows and build a device table of every part
 * of them for each batch of outer rows transfers the build side once per batch; to
 * go over the outer side once per part means to read it again, or to keep all of it.
 * Here most outer rows are done after the first part, and what waits is filtered.
 *
 * A rescan begins with what is still there, or was kept, of the build side
 * (partition_keep.c).
 *
 * The number of partitions follows from the rows that are to come: for a
 * sequential scan, or a join above one, from the share of its pages that has
 * been read; for other children from the planner's estimate or, where that is
 * passed already, as many again; for any other unit from the exact number.  Too
 * few of them cost passes over the few outer rows of each, or a second split, of
 * exact numbers; too many cost smaller blocks.
 *
 * Memory: blocks for writing (one side is written at a time) and the filter
 * take parts of the limit that build.c leaves free for them; they are malloc'd
 * and freed on abort, too, by hgj_leave_build() and the build side.  Files belong to the
 * resource owner.  The rest is in the build side's context, if it is of its rows
 * (build_side.c), or else the query's.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "base/guc.h"
#include "join/partition.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

/* Parts of the limit, and bounds of the blocks' part. */
#define HGJ_BLOCKS_SHARE		8
#define HGJ_FEWEST_BLOCK_BYTES	((Size) 32 * 1024)
#define HGJ_MOST_BLOCK_BYTES	((Size) 4 * 1024 * 1024)

/* Bits of the hash that may be used up. */
#define HGJ_MOST_BITS			48

/* Writing a row and reading it again, against probing with a row on file. */
#define HGJ_SPILL_COST			2
#define HGJ_REREAD_COST			1

/* What blocks for writing may take. */
Size
hgj_partition_blocks(Size limit)
{
	Size		bytes = limit / HGJ_BLOCKS_SHARE;

	bytes = Min(bytes, HGJ_MOST_BLOCK_BYTES);
	return Max(bytes, Min(HGJ_FEWEST_BLOCK_BYTES, limit / 4));
}

/* What build.c has to leave free. */
Size
hgj_partition_reserve(Size limit)
{
	if (hgj_spill == HGJ_SPILL_PASSES)
		return 0;
	return hgj_partition_blocks(limit) + limit / HGJ_FILTER_SHARE;
}

/* Rows of the build side of the unit: an estimate, or their number. */
double
hgj_unit_rows(const HgjJoinState *state)
{
	if (hgj_restoring(state))
		return (double) state->js.build->spilled->kept.rows[0].rows;
	if (hgj_in_unit(state))
		return (double) state->passes.partitions->unit->rows[HGJ_INNER_SIDE];
	return state->js.inner_ps->plan->plan_rows;
}

/* Have the unit's build rows more than one hash? */
static bool
can_be_split(const HgjUnit *unit)
{
	uint64		all = ~UINT64CONST(0);
	uint64		any = 0;

	for (int i = 0; i < unit->nruns[HGJ_INNER_SIDE]; i++)
	{
		all &= unit->runs[HGJ_INNER_SIDE][i].all_bits;
		any |= unit->runs[HGJ_INNER_SIDE][i].any_bits;
	}
	return (any & ~all) != 0 &&
		unit->used_bits + pg_leftmost_one_pos32(HGJ_MOST_PARTITIONS) <= HGJ_MOST_BITS;
}

/*
 * Memory is full: is the rest of the unit's build side to be split?  Otherwise
 * it is joined in passes.
 */
bool
hgj_split_wanted(const HgjJoinState *state)
{
	const HgjUnit *unit =
		state->passes.partitions ? state->passes.partitions->unit : NULL;
	double		rest;
	double		outer;
	double		passes;

	if (hgj_spill == HGJ_SPILL_PASSES)
		return false;
	if (unit == NULL)
		return true;
	if (!can_be_split(unit))
		return false;
	if (hgj_spill == HGJ_SPILL_PARTITIONS)
		return true;
	/* what came in earlier passes of this unit is not in total_rows */
	if (state->passes.unit_pass > 1)
		return false;
	rest = (double) unit->rows[HGJ_INNER_SIDE] - state->js.build->total_rows;
	outer = (double) unit->rows[HGJ_OUTER_SIDE];
	passes = ceil(rest / Max(state->js.build->total_rows, 1));
	return passes * outer * HGJ_REREAD_COST > (rest + outer) * HGJ_SPILL_COST;
}

/* What the flags of the outer batch say, which is a unit's. */
void
hgj_take_flags(HgjJoinState *state)
{
	const uint8 *flags = state->passes.partitions->readers[HGJ_OUTER_SIDE].flags;

	for (uint32 i = 0; i < state->probing.outer_batch->nrows; i++)
		state->found.matched[i] = (flags[i] & HGJ_SPILL_MATCHED) != 0;
}

/* Put a unit of these partitions before the others that wait. */
static void
add_unit(HgjJoinState *state, const HgjSpillRun *outer_runs,
		 const int *members, int nmembers)
{
	HgjPartitions *parts = state->passes.partitions;
	const HgjSpilledBuild *spilled = state->js.build->spilled;
	HgjUnit    *unit = MemoryContextAllocZero(state->js.context, sizeof(HgjUnit));
	const HgjSpillRun *runs[2] = {outer_runs, spilled->runs};

	for (int side = 0; side < 2; side++)
	{
		if (runs[side] == NULL)
			continue;
		unit->runs[side] = MemoryContextAlloc(state->js.context,
											  mul_size(nmembers, sizeof(HgjSpillRun)));
		unit->nruns[side] = nmembers;
		runs[side][0].file->users++;
		for (int i = 0; i < nmembers; i++)
		{
			unit->runs[side][i] = runs[side][members[i]];
			unit->rows[side] += unit->runs[side][i].rows;
		}
	}
	unit->used_bits = spilled->split.used_bits;
	unit->next = parts->pending;
	parts->pending = unit;
}

/* Step 4: partitions that fit into memory together make a unit. */
static void
make_units(HgjJoinState *state, const HgjSpillRun *outer_runs)
{
	const HgjSpilledBuild *spilled = state->js.build->spilled;
	int			members[HGJ_MOST_PARTITIONS];
	int			nmembers = 0;
	double		bytes = 0;
	double		rows = 0;

	for (int p = 0; p < spilled->split.npartitions; p++)
	{
		const HgjSpillRun *inner = &spilled->runs[p];
		uint64		outer_rows = outer_runs ? outer_runs[p].rows : 0;
		double		these = inner->rows * spilled->split.row_bytes + inner->value_bytes;

		if ((inner->rows == 0 || !state->js.semantics.fill_inner) &&
			(outer_rows == 0 || (inner->rows == 0 && !state->js.semantics.fill_outer)))
			continue;			/* nothing can come out of it */
		if (nmembers > 0 &&
			(bytes + these > spilled->split.unit_bytes ||
			 (spilled->split.unit_rows > 0 && rows + inner->rows > spilled->split.unit_rows) ||
			 (hgj_chunk_rows > 0 && rows + inner->rows > hgj_chunk_rows)))
		{
			add_unit(state, outer_runs, members, nmembers);
			nmembers = 0;
			bytes = rows = 0;
		}
		members[nmembers++] = p;
		bytes += these;
		rows += inner->rows;
	}
	if (nmembers > 0)
		add_unit(state, outer_runs, members, nmembers);
}

/* The outer rows of a unit that was split are through. */
void
hgj_split_end(HgjJoinState *state)
{
	HgjPartitions *parts = state->passes.partitions;
	HgjSpilledBuild *spilled = state->js.build->spilled;
	HgjSpillRun *outer_runs = NULL;

	if (parts->writer.file)
	{
		outer_runs = hgj_spill_close(&parts->writer);
		state->stats.spilled_outer += outer_runs[0].file->end;
	}
	state->stats.held_bytes = Max(state->stats.held_bytes, spilled->room.held.bytes);
	make_units(state, outer_runs);
	if (hgj_in_unit(state) || parts->pending)
		hgj_build_side_drop_split(state->js.build);
	/* else the table stays, and a rescan may use both (partition_keep.c) */
	hgj_spill_drop_runs(&outer_runs);
	state->passes.splitting = false;
}

static void
release_unit(HgjUnit *unit)
{
	for (int side = 0; side < 2; side++)
		hgj_spill_drop_runs(&unit->runs[side]);
	pfree(unit);
}

/* Turn to the next unit that waits; false: none does. */
bool
hgj_next_unit(HgjJoinState *state)
{
	HgjPartitions *parts = state->passes.partitions;

	if (parts == NULL)
		return false;
	if (parts->unit)
		release_unit(parts->unit);
	parts->unit = parts->pending;
	if (parts->unit == NULL)
		return false;
	parts->pending = parts->unit->next;
	for (int side = 0; side < 2; side++)
		hgj_spill_read_runs(&parts->readers[side], state->js.context,
							&state->js.build->account, parts->layouts[side],
							parts->unit->runs[side], parts->unit->nruns[side]);
	hgj_batch_borrow(state->probing.outer_batch, false);
	hgj_match_bits_reset(state);
	state->passes.unit_pass = 0;
	state->passes.units++;
	state->stats.partitions = Max(state->stats.partitions, state->passes.units);
	state->counts.partitions++;
	return true;
}

/* The next build rows, of the child, of the unit, or kept, into inner_batch. */
void
hgj_fill_inner(HgjJoinState *state, uint32 max_rows)
{
	if (hgj_in_unit(state) || hgj_restoring(state))
		hgj_spill_read(&state->passes.partitions->readers[HGJ_INNER_SIDE],
					   state->building.batch, max_rows);
	else
		state->js.inner.methods->fill(&state->js.inner, state->building.batch, max_rows);
	hgj_join_progress(state, HGJ_PROGRESS_BUILDING);
}

/* The next outer rows of the unit; false: they are to come from the child. */
bool
hgj_fill_outer_of_unit(HgjJoinState *state, uint32 max_rows)
{
	if (state->passes.partitions == NULL || state->passes.partitions->unit == NULL)
		return false;
	hgj_spill_read(&state->passes.partitions->readers[HGJ_OUTER_SIDE],
				   state->probing.outer_batch, max_rows);
	return true;
}

/* Another pass over the outer rows of a unit; false: they are the child's. */
bool
hgj_rewind_unit(HgjJoinState *state)
{
	if (state->passes.partitions == NULL || state->passes.partitions->unit == NULL)
		return false;
	hgj_spill_rewind(&state->passes.partitions->readers[HGJ_OUTER_SIDE]);
	return true;
}

/*
 * The device has failed while the table of a unit was built, or later: undo a split
 * of it, and turn to the first build row of this pass.
 */
void
hgj_reread_unit(HgjJoinState *state)
{
	HgjPartitions *parts = state->passes.partitions;
	HgjSpillReader *reader = &parts->readers[HGJ_INNER_SIDE];
	uint64		left = state->building.rows_before;

	if (state->passes.splitting)
	{
		hgj_build_side_drop_split(state->js.build);
		state->passes.splitting = false;
	}
	hgj_spill_rewind(reader);
	state->building.pending = false;
	state->building.batch->values = &state->js.build->rows.next_values;
	while (left > 0)
	{
		hgj_arena_reset(state->building.batch->values);
		hgj_spill_read(reader, state->building.batch,
					   (uint32) Min(left, state->building.batch->capacity));
		if (state->building.batch->nrows == 0)
			elog(ERROR, "a partition of a HashGraphJoin has become smaller");
		left -= state->building.batch->nrows;
	}
	hgj_arena_free(state->building.batch->values);
	state->building.batch->values = &state->js.build->rows.values;
}

/*
 * The next outer rows are the child's; of the inner ones, what has been kept for
 * a rescan stays.
 */
void
hgj_partitions_release_units(HgjJoinState *state)
{
	HgjPartitions *parts = state->passes.partitions;
	HgjUnit    *unit;

	hgj_spill_abandon(&parts->writer);
	hgj_build_side_drop_split(state->js.build);
	if (parts->unit)
		release_unit(parts->unit);
	parts->unit = NULL;
	while ((unit = parts->pending) != NULL)
	{
		parts->pending = unit->next;
		release_unit(unit);
	}
	for (int side = 0; side < 2; side++)
		hgj_spill_end_read(&parts->readers[side]);
	state->passes.splitting = false;
}

/* Close all files: the next rows are the children's.  Not for aborts. */
void
hgj_partitions_release(HgjJoinState *state)
{
	if (state->passes.partitions == NULL)
		return;
	hgj_partitions_release_units(state);
	hgj_keep_nothing(state);
}
