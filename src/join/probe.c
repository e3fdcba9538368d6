/*-------------------------------------------------------------------------
 *
 * probe.c
 *	  The probe side: outer batches against the table, in one pass or several.
 *
 * 1. Fetch an outer batch.  The first one is small and each is twice the one
 *	  before, up to what the engine likes and a part of the memory limit, so that
 *	  LIMIT 1 does not read thousands of rows.
 * 2. Hand its key words to the engine and take matches in bounded portions.
 *	  If a match needs no recheck and one per outer row will do, the engine
 *	  stops at the first itself.  Where one will do but has to be rechecked, the
 *	  portions are small and the engine is told which rows are done, so that a
 *	  long list ends soon after its first match.  If inner rows are marked and no
 *	  recheck is needed, the engine marks them itself, too.
 * 3. Remember which rows of the batch matched, when the join type asks.
 *
 * Where the join wants nothing of outer rows without a match, the pages source
 * asks the engine's filter, through us, before it reads a row (page_filters.c).
 *
 * Several passes (build.c, step 3): in the first pass the outer rows are kept
 * in a tuplestore, which each later pass reads again.  Match bits of all outer
 * rows are then kept from pass to pass (match_bits.c): a left, full or anti join returns its
 * unmatched outer rows in the last pass only, and a join that wants one match
 * per outer row leaves those out that have had it.  Unmatched inner rows are
 * returned at the end of each pass, which has seen every outer row.  The outer
 * rows of a unit of partitions (partition.c) are on file already, and that is
 * what a later pass reads.
 *
 * Memory: batch and match arrays in the query's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/xact.h"
#include "executor/executor.h"
#include "join/join_state.h"
#include "join/partition.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* An outer batch takes at most this part of the memory limit. */
#define HGJ_BATCH_MEMORY_SHARE	8

/*
 * Of the batches whose rows leave in slots where a device has the table: the
 * batch is to be in the processor's caches still when its turn comes.
 */
#define HGJ_SLOT_BATCH_ROWS		65536

/* What a device takes for an outer row beside its words: ids, sums, pairs. */
#define HGJ_DEVICE_ROW_BYTES	96

/* Does the join have to know which outer rows have matched? */
static bool
tracks_outer(const HgjJoinState *state)
{
	return state->js.semantics.fill_outer ||
		(state->js.semantics.one_per_outer &&
		 (state->rules.recheck || state->passes.unit_pass > 1 ||
		  !state->passes.last_pass ||
		  state->passes.splitting));
}

/*
 * Start the batch's match flags: from the passes before, or none.  Rows that
 * have had their one match are taken out of the selection.
 */
static void
start_matched(HgjJoinState *state)
{
	HgjBatch   *batch = state->probing.outer_batch;
	uint32		nsel = 0;

	memset(state->found.matched, 0, batch->nrows);
	if (state->passes.unit_pass == 1)
	{
		if (state->passes.partitions && state->passes.partitions->unit)
			hgj_take_flags(state);
		return;
	}

	hgj_match_bits_get(state, batch->first_row, batch->nrows, state->found.matched);
	if (!state->js.semantics.one_per_outer)
		return;
	for (uint32 i = 0; i < batch->nsel; i++)
		if (!state->found.matched[batch->sel[i]])
			batch->sel[nsel++] = batch->sel[i];
	batch->nsel = nsel;
}

/* Begin to probe with the batch at hand, from its first row. */
void
hgj_begin_batch(HgjJoinState *state)
{
	HgjBatch   *batch = state->probing.outer_batch;
	HgjSemantics *s = &state->js.semantics;
	HgjKeys		keys;
	HgjError	err = {0};
	HgjProbeMode mode = HGJ_MATCH_ALL;
	uint32		flags = 0;

	if (tracks_outer(state))
		start_matched(state);
	keys = hgj_batch_keys(batch);
	state->found.next_pair = 0;
	state->found.pairs.n = state->found.npairs_left = state->found.wasted_pairs = 0;
	state->found.residual_stopped = false;
	state->found.next_outer = 0;
	if (!state->rules.recheck)
	{
		if (s->one_per_outer)
			mode = HGJ_MATCH_FIRST;
		if (s->mark_inner && !s->one_per_inner)
			flags = HGJ_PROBE_MARK;
	}
	if (state->probing.key_filtered)
		flags |= HGJ_PROBE_SIFTED;
	hgj_engine_call(state, &err,
					state->use.engine->probe_begin(state->found.probe, &keys, mode,
												   flags, &err));
	state->found.pairs.done = (state->js.build->graph_rows == 0 || batch->nsel == 0);
}

/* Those for which a device has memory beside its table. */
static Size
device_batch_rows(HgjJoinState *state)
{
	HgjMemory	memory;

	state->use.engine->memory(state->js.build->table, &memory);
	if (memory.current >= state->use.device_limit)
		return 0;
	return (state->use.device_limit - memory.current) /
		(HGJ_DEVICE_ROW_BYTES + state->js.outer.nwords * sizeof(uint64));
}

/* The most rows that an outer batch may have. */
static uint32
most_batch_rows(HgjJoinState *state)
{
	Size		affordable = get_hash_memory_limit() / HGJ_BATCH_MEMORY_SHARE /
		hgj_batch_row_bytes(state->probing.outer_batch);
	Size		wanted = Max(state->use.engine->probe_batch_rows(state->js.build->table),
							 HGJ_BATCH_ROWS);

	if (hgj_on_device(state) && state->output == NULL)
		wanted = Min(wanted, HGJ_SLOT_BATCH_ROWS);
	if (state->use.device_limit > 0)
		wanted = Min(wanted, device_batch_rows(state));
	return (uint32) Max(Min(wanted, affordable), HGJ_BATCH_FIRST_ROWS);
}

/* Make room for a batch of state->batch_rows rows. */
static void
grow_outer_batch(HgjJoinState *state)
{
	HgjBatch   *batch = state->probing.outer_batch;
	uint64		first_row = batch->first_row + batch->nrows;

	hgj_batch_reserve(batch, state->probing.batch_rows);
	batch->first_row = first_row;
}

/* Room for as many rows as are wanted now. */
static void
reserve_outer_batch(HgjJoinState *state)
{
	if (state->probing.batch_rows > state->probing.outer_batch->capacity)
		grow_outer_batch(state);
}

/* The next batch is to be larger. */
static void
want_more_rows(HgjJoinState *state)
{
	state->probing.batch_rows =
		Min(state->probing.batch_rows * 2, most_batch_rows(state));
}

/* careful: whatever the join is, perhaps only one row is wanted. */
static void
fill_outer_batch(HgjJoinState *state, bool careful)
{
	reserve_outer_batch(state);
	state->js.outer.careful = careful || state->goal.careful;
	if (!hgj_fill_outer_of_unit(state, state->probing.batch_rows))
		state->js.outer.methods->fill(&state->js.outer, state->probing.outer_batch,
									  state->probing.batch_rows);
}

/*
 * Before the outer batch is filled: is it worth while to ask hgj_key_filter_ask() about
 * its rows?
 */
bool
hgj_key_filter_begin(HgjJoinState *state)
{
	HgjError	err = {0};
	bool		worth;

	hgj_engine_call(state, &err,
					state->use.engine->sift_begin(state->found.probe, &worth,
												  &err));
	state->probing.key_filtered = worth;
	return worth;
}

/*
 * Which of these rows may have a match?  Their indexes go to rows, which has
 * room for one more; returns how many.
 */
uint32
hgj_key_filter_ask(HgjJoinState *state, const HgjKeys *keys, uint32 *rows)
{
	HgjError	err = {0};
	uint32		n;

	if (state->use.engine->sift(state->found.probe, keys, rows, &n, &err) != HGJ_OK)
		hgj_engine_failed(state, &err);
	return n;
}

/* The same of keys as they are kept; false: this filter has to be asked about key words. */
bool
hgj_key_filter_ask_packed(HgjJoinState *state, const HgjPackedKeys *keys, uint32 *rows,
						  uint32 *n)
{
	return state->use.engine->sift_packed(state->found.probe, keys, rows, n);
}

/* The batch of a pass's first outer row. */
void
hgj_restart_outer(HgjJoinState *state)
{
	hgj_batch_clear(state->probing.outer_batch);
	state->probing.outer_batch->first_row = 0;
	if (state->probing.batch_rows == 0)
		state->probing.batch_rows = HGJ_BATCH_FIRST_ROWS;
	state->probing.outer_filled = false;
	hgj_seek_all(state);
	state->found.unmatched_cursor = 0;
	state->found.unmatched_end = false;
}

/*
 * Before anything is built: is there an outer row?  Looks into the first batch,
 * which hgj_fetch_outer() will find filled.
 */
bool
hgj_peek_outer(HgjJoinState *state)
{
	if (state->js.outer.methods == &hgj_source_tuples)
		return hgj_source_peek(&state->js.outer);

	/*
	 * What has been taken from a shared scan could not be put back; and rows
	 * that are read again for several passes must not have called nextval().
	 */
	if (IsInParallelMode() || hgj_outer_is_volatile(state))
		return true;
	hgj_note_outer_counts(state);
	fill_outer_batch(state, true);
	state->probing.outer_filled = (state->probing.outer_batch->nrows > 0);
	return state->probing.outer_filled;
}

/* What has been looked at so is to be read again, by whoever asks next. */
void
hgj_unpeek_outer(HgjJoinState *state)
{
	if (!state->probing.outer_filled)
		return;
	state->js.outer.methods->rewind(&state->js.outer);
	hgj_restart_outer(state);
	hgj_rescan_uncounted(state);
	state->probing.outer_seen = true;
}

/*
 * There will be several passes: keep the outer rows.  Only the tuples source
 * can, so whatever other source there is gives way to it.
 */
void
hgj_keep_outer(HgjJoinState *state)
{
	HgjSource  *source = &state->js.outer;

	if (source->methods != &hgj_source_tuples)
	{
		bool		peeked = state->probing.outer_filled;

		source->methods->rewind(source);
		if (source->methods->give_way)
			source->methods->give_way(source);
		if (source->methods->end)
			source->methods->end(source);
		source->methods = &hgj_source_tuples;
		source->reason = HGJ_SOURCE_PASSES;
		source->row_quals = NIL;
		hgj_batch_borrow(state->probing.outer_batch, false);
		hgj_restart_outer(state);
		if (peeked)
			hgj_rescan_uncounted(state);
	}
	hgj_source_keep_rows(source, state->js.css.ss.ps.state);
}

/* As many match flags as the outer batch at hand has room for rows. */
void
hgj_reserve_matched(HgjJoinState *state)
{
	uint32		capacity = state->probing.outer_batch->capacity;

	if (capacity <= state->found.matched_capacity)
		return;
	if (state->found.matched)
		pfree(state->found.matched);
	if (state->found.taken)
		pfree(state->found.taken);
	state->found.matched_capacity = 0;
	state->found.matched = NULL;
	state->found.taken = NULL;
	state->found.matched = MemoryContextAlloc(state->js.context, capacity);
	if (state->rules.first_counts)
		state->found.taken = MemoryContextAllocZero(state->js.context, capacity);
	state->found.matched_capacity = capacity;
	hgj_note_peak_memory(state);
}

/* An outer batch will be made of rows that a device has chosen: of so many at most. */
uint32
hgj_make_outer_batch(HgjJoinState *state)
{
	uint32		rows = state->probing.batch_rows;

	reserve_outer_batch(state);
	want_more_rows(state);
	return rows;
}

/* It is there, in place of one that has been read. */
void
hgj_outer_batch_made(HgjJoinState *state)
{
	hgj_reserve_matched(state);
	state->probing.outer_seen = true;
}

/* Get the next outer batch.  False at the end of the outer side (of this pass). */
bool
hgj_read_outer(HgjJoinState *state)
{
	HgjBatch   *batch = state->probing.outer_batch;

	hgj_join_progress(state, HGJ_PROGRESS_PROBING);
	if (!state->probing.outer_filled)
		fill_outer_batch(state, false);
	state->probing.outer_filled = false;
	want_more_rows(state);
	if (batch->nrows == 0)
		return false;

	hgj_outer_batch_made(state);
	state->emitted_before = state->emitted;
	return true;
}

/*
 * The same, and begin to probe with it; or, in its place, rows that a device has
 * joined already.
 */
bool
hgj_fetch_outer(HgjJoinState *state)
{
	if (hgj_row_prober->active(state))
	{
		hgj_join_progress(state, HGJ_PROGRESS_PROBING);
		if (hgj_row_prober->fetch(state))
			return true;
		if (hgj_device_failed(state) || !hgj_row_prober->gave_up(state))
			return false;
		/* the batch at hand is still to be joined */
	}
	if (!hgj_read_outer(state))
		return false;
	hgj_note_sought(state, state->probing.outer_batch->nrows);
	hgj_begin_batch(state);
	return true;
}

/*
 * One match of an outer row will do, and candidates are rechecked: tell the
 * engine which rows are done, and make the next portion smaller when most of
 * the last one came too late, larger when hardly any of it did.
 */
static void
limit_candidates(HgjJoinState *state)
{
	HgjMatches *pairs = &state->found.pairs;

	if (state->found.wasted_pairs * 2 > pairs->n)
		pairs->capacity = Max(pairs->capacity / 2, HGJ_FEWEST_PAIRS);
	else if (state->found.wasted_pairs * 8 < pairs->n)
		pairs->capacity = Min(pairs->capacity * 2, HGJ_PAIRS);
	state->found.wasted_pairs = 0;
	pairs->skip = state->found.matched;
}

/*
 * Take the next portion of matches.  Where matches need no recheck, the outer
 * rows' flags are set here; otherwise confirm.c sets them one by one.
 */
void
hgj_next_matches(HgjJoinState *state)
{
	HgjMatches *pairs = &state->found.pairs;
	HgjError	err = {0};

	state->found.next_pair = 0;
	if (hgj_row_prober->active(state))
	{
		hgj_row_prober->matches(state);
		return;
	}
	if (state->found.npairs_left > 0)
	{
		hgj_residual_run(state);
		return;
	}
	if (state->rules.recheck && state->js.semantics.one_per_outer)
		limit_candidates(state);
	hgj_engine_call(state, &err,
					state->use.engine->probe_next(state->found.probe, pairs, &err));
	if (hgj_device_failed(state))
	{
		pairs->n = 0;
		return;
	}

	hgj_note_sought(state, pairs->n);
	hgj_text_recheck(state);
	hgj_residual_run(state);
	if (!state->rules.recheck && tracks_outer(state))
		for (uint32 i = 0; i < pairs->n; i++)
			state->found.matched[pairs->probe_rows[i]] = true;
}

/* All matches of the batch have been looked at: the next pass wants to know. */
void
hgj_finish_batch(HgjJoinState *state)
{
	HgjBatch   *batch = state->probing.outer_batch;

	if (!state->passes.last_pass && tracks_outer(state))
		hgj_match_bits_add(state, batch->first_row, batch->nrows,
						   state->found.matched);
}

/*
 * The next portion of inner rows that nothing has matched, into
 * pairs.build_rows.  False when there are no more.
 */
bool
hgj_next_unmatched(HgjJoinState *state)
{
	HgjMatches *pairs = &state->found.pairs;
	HgjError	err = {0};

	state->found.next_pair = 0;
	pairs->n = 0;
	if (state->found.unmatched_end)
		return false;
	hgj_engine_call(state, &err,
					state->use.engine->unmatched(state->js.build->table,
												 &state->found.unmatched_cursor,
												 pairs->build_rows, HGJ_PAIRS,
												 &pairs->n, &err));
	if (hgj_device_failed(state))
		pairs->n = 0;
	state->found.unmatched_end = pairs->n < HGJ_PAIRS;
	return pairs->n > 0;
}
