/*-------------------------------------------------------------------------
 *
 * build.c
 *	  The build side: inner rows into an engine's table and the row store.
 *
 * 1. The engine has been chosen (engines.c).  Where it is a device's, and that
 *	  fails, or has less memory than it said, the build of the pass starts again
 *	  with less of it, or on the CPU, if the rows can be read again (failover.c).
 * 2. Make a table and append inner batches, key words to the engine, wanted
 *	  columns to the row store.  After each batch, ask the engine what a build
 *	  of these rows would take.
 * 3. When that, and the rows, pass work_mem x hash_mem_multiplier, or what the
 *	  device has, and there are more rows, let the rest be split into partitions
 *	  (partition.c).  Where that is not wanted, stop: this is one pass of several.
 *	  The child, or the file, stays where it is, and the next pass takes on from
 *	  there.  A pass has at least one batch, so it always gets on.
 * 4. Build.
 *
 * The fallback for a build side larger than memory is therefore not another
 * node but partitions, or more passes over the outer side (probe.c), each over a
 * chunk of the build side that fits.  Both are right for every join type, and
 * passes for any skew.
 *
 * The probe is the node's, and not PostgreSQL memory; so is a reference to the build
 * side, which owns the rest (build_side.c).  node.c's reset callback on the query's
 * context calls hgj_leave_build() when the query aborts.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/guc.h"
#include "join/join_state.h"
#include "join/partition.h"
#include "join/shared_build.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"

/*
 * The rows of a build batch: few, so that memory is checked often, and fewer
 * where the batch itself would take more than this part of the limit.
 */
#define HGJ_BUILD_BATCH_ROWS	1024
#define HGJ_BUILD_BATCH_SHARE	32

/* No batch of any source has more rows. */
#define HGJ_LARGEST_BATCH		(UINT32_C(1) << 24)

/* Rows of a pass: what row ids are for, and the stores of plain values. */
#define HGJ_MOST_PASS_ROWS(state) \
	((hgj_build_side_codes_are_full(state->js.build) ? HGJ_STORED_PLAIN : HGJ_MAX_ROWS) - \
	 HGJ_LARGEST_BATCH)

/*
 * The engine takes memory for the expected rows in advance: no more of them
 * than would fill this part of the limit, lest a pass be full when it starts.
 */
#define HGJ_HINT_SHARE			16

/* What the table need not tell about a match: HgjTableSpec.flags, or 0. */
uint32
hgj_unwanted_of_matches(const HgjJoinState *state)
{
	const HgjSemantics *s = &state->js.semantics;

	if (state->js.inner.ncols > 0 || state->rules.always_recheck || s->fill_inner ||
		s->mark_inner || s->one_per_inner)
		return 0;
	return s->one_per_outer ? HGJ_TABLE_KEYS_ONLY | HGJ_TABLE_FIRST_MATCH :
		HGJ_TABLE_KEYS_ONLY;
}

/* An empty table for this pass; or hgj_device_failed(). */
bool
hgj_create_table(HgjJoinState *state)
{
	double		memory = state->use.device_limit > 0 ?
		Min(state->use.device_limit, get_hash_memory_limit()) : get_hash_memory_limit();
	double		fits = memory /
		(HGJ_HINT_SHARE * state->js.inner.nwords * sizeof(uint64));
	double		expected = Min(hgj_unit_rows(state), fits);
	Instrumentation *instrument = state->js.css.ss.ps.instrument;
	HgjTableSpec spec = {0};
	HgjError	err = {0};

	spec.nwords = state->js.inner.nwords;
	spec.flags = state->js.semantics.mark_inner ? HGJ_TABLE_TRACK_MATCHES : 0;
	if (state->probing.filters_early)
		spec.flags |= HGJ_TABLE_SIFT_EARLY;
	if (state->probing.filters_groups)
		spec.flags |= HGJ_TABLE_SIFT_AT_ONCE;
	spec.flags |= hgj_unwanted_of_matches(state);
	spec.seed = state->js.inner.seed;
	spec.build = (HgjBuild) hgj_build;
	spec.probe = (HgjProbeAlgo) hgj_probe;
	spec.segments = (HgjSegments) hgj_segments;
	spec.filter = (HgjFilter) hgj_filter;
	spec.expected_rows = (uint64) Min(expected, (double) HGJ_MAX_ROWS);
	if ((instrument && instrument->need_timer) || track_io_timing)
		spec.flags |= HGJ_TABLE_TIMING;
	spec.memory_limit = state->use.device_limit;
	spec.filter_room = hgj_filter_room(state);
	spec.timeout_ms = hgj_device_timeout;
	spec.poll = hgj_poll_interrupts;
	spec.poll_arg = &state->js.build->poll;
	state->js.build->engine = state->use.engine;
	hgj_engine_call(state, &err,
					state->use.engine->table_create(&spec, &state->js.build->table,
													&err));
	return !hgj_device_failed(state);
}

/*
 * Bytes of host memory that this pass would hold at the height of a build of its
 * rows.
 */
static Size
projected_bytes(HgjJoinState *state, const HgjMemory *memory)
{
	return (Size) (hgj_on_device(state) ? memory->host :
				   memory->build_peak + hgj_filter_room(state)) +
		state->js.build->account.bytes;
}

/*
 * Are these as many rows as a table may have?  Or, if hgj_device_failed(), not for
 * the device at all?
 */
static bool
table_is_full(HgjJoinState *state, Size limit)
{
	HgjMemory	memory;

	state->use.device_is_full = false;
	state->use.engine->memory(state->js.build->table, &memory);
	if (projected_bytes(state, &memory) +
		hgj_partition_reserve(limit) > limit ||
		state->js.build->total_rows > HGJ_MOST_PASS_ROWS(state) ||
		(hgj_chunk_rows > 0 && state->js.build->total_rows >= (uint32) hgj_chunk_rows))
		return true;
	if (state->use.device_limit == 0 || memory.build_peak <= hgj_table_share(state))
		return false;
	if (hgj_should_leave_device(state))
	{
		state->use.device_shrunk = true;	/* less memory is not what would help */
		hgj_device_fails(state, HGJ_LIMIT, "the build side is too large");
	}
	else
		state->use.device_is_full = true;
	return true;
}

static void
append_batch(HgjJoinState *state)
{
	HgjBatch   *batch = state->building.batch;
	HgjKeys		keys = hgj_batch_keys(batch);
	HgjError	err = {0};
	uint32		first = state->js.build->rows.nrows;
	const uint32 *records = state->js.build->rows.shared ?
	hgj_share_records(&state->js.build->rows, batch) : NULL;

	hgj_engine_call(state, &err,
					state->use.engine->append(state->js.build->table, &keys, first,
											  records, &err));
	if (hgj_device_failed(state))
		return;
	if (records == NULL)
		hgj_row_store_append(&state->js.build->rows, batch, NULL);
	state->js.build->long_keys = state->js.build->long_keys ||
		hgj_text_any_long(&state->js.inner, batch);
	state->js.build->total_rows += batch->nrows;
	state->js.build->graph_rows += batch->nsel;
}

/* How many inner rows to read at a time. */
uint32
hgj_build_batch_rows(const HgjJoinState *state)
{
	Size		affordable = get_hash_memory_limit() / HGJ_BUILD_BATCH_SHARE /
		hgj_batch_row_bytes(state->building.batch);
	uint32		rows = Max(Min(affordable, HGJ_BUILD_BATCH_ROWS),
						   HGJ_BATCH_FIRST_ROWS);

	return hgj_chunk_rows > 0 ? Min(rows, (uint32) hgj_chunk_rows) : rows;
}

/*
 * Read inner rows until they end or memory is full.  Sets last_pass, and
 * splitting where the rest has gone to partitions.
 */
static void
read_inner(HgjJoinState *state)
{
	HgjBatch   *batch = state->building.batch;
	Size		limit = get_hash_memory_limit();
	uint32		batch_rows = hgj_build_batch_rows(state);
	bool		full = false;

	state->passes.last_pass = true;
	state->building.read = true;	/* now, or before what was kept of it */
	if (state->building.pending)
	{
		append_batch(state);
		state->building.pending = false;
	}
	hgj_batch_reserve(batch, batch_rows);
	while (!hgj_device_failed(state))
	{
		/* what comes after a full pass belongs to the next one */
		batch->values = full ? &state->js.build->rows.next_values :
			&state->js.build->rows.values;
		hgj_fill_inner(state, batch_rows);
		if (batch->nrows == 0)
			break;
		if (full)
		{
			state->building.pending = true;
			state->passes.last_pass = false;
			break;
		}
		append_batch(state);
		if (hgj_device_failed(state))
			break;
		full = !hgj_restoring(state) && table_is_full(state, limit);
		if (full && !hgj_device_failed(state) && hgj_split_wanted(state))
		{
			hgj_split_inner(state, batch_rows);
			break;
		}
	}
	batch->values = &state->js.build->rows.values;
	if (hgj_restoring(state))
		hgj_restore_split(state);
}

static void
note_stats(HgjJoinState *state)
{
	HgjRunStats *stats = &state->stats;
	Size		bytes;

	state->use.engine->info(state->js.build->table, &stats->table);
	if (hgj_on_device(state))
		stats->device_peak = Max(stats->device_peak, stats->table.memory.peak);
	bytes = (Size) (hgj_on_device(state) ? stats->table.memory.host :
					stats->table.memory.peak) +
		state->js.build->account.bytes;
	stats->peak_bytes = Max(stats->peak_bytes, bytes);
	stats->notes |= stats->table.notes;
	stats->dictionary_full = hgj_build_side_codes_are_full(state->js.build);
	stats->device_full |= state->use.device_is_full &&
		(state->passes.splitting || !state->passes.last_pass);
	stats->build_rows += state->js.build->total_rows;
	stats->passes = Max(stats->passes, state->passes.pass);
	stats->built = true;
	state->counts.builds++;
	state->counts.passes += state->passes.unit_pass > 1;
}

/*
 * Are matches of this table candidates?  Now it is known whether text keys
 * are all packed.
 */
static void
settle_recheck(HgjJoinState *state)
{
	state->rules.recheck = state->rules.always_recheck || state->js.build->long_keys;
	/* a recheck reads the key */
	Assert(!state->rules.recheck || hgj_unwanted_of_matches(state) == 0);
	if (state->rules.recheck && state->js.semantics.one_per_outer)
		state->found.pairs.capacity = HGJ_SOME_PAIRS;
	else
	{
		state->found.pairs.capacity = HGJ_PAIRS;
		state->found.pairs.skip = NULL;
	}
}

/*
 * Lay the row store and the batches of the build side out, before the first
 * pass: by then it is known which columns are encoded (encode.c).
 */
static void
lay_out_build_side(HgjJoinState *state)
{
	if (state->building.batch)
		return;
	state->building.batch = hgj_batch_create(state->js.context, state->js.inner.columns,
											 state->js.inner.ncols,
											 state->js.inner.nwords,
											 &state->js.build->account);
	/* a device takes the columns' values by row id (device_start.c) */
	hgj_build_side_lay_out(state->js.build, state->js.inner.columns, state->js.inner.ncols,
						   state->share.planned, state->js.inner_ps->plan->plan_rows,
						   !state->js.semantics.mark_inner &&
						   state->use.engine == hgj_cpu_engine());
	state->building.batch->values = &state->js.build->rows.values;
}

/* Nothing has been read for this pass. */
static void
begin_build(HgjJoinState *state)
{
	if (state->passes.pass == 1)
	{
		state->stats.build_rows = 0;
		state->passes.units = 0;
		if (hgj_on_device(state))
			hgj_note_inner_counts(state);
	}
	state->use.device_is_full = false;
	state->js.build->total_rows = 0;
	state->js.build->graph_rows = 0;
	state->js.build->long_keys = false;
}

/* Table, rows, graph and probe of this pass; or hgj_device_failed(). */
static void
build_table(HgjJoinState *state)
{
	HgjError	err = {0};

	begin_build(state);
	if (!hgj_create_table(state))
		return;
	read_inner(state);
	if (hgj_device_failed(state))
		return;
	hgj_join_progress(state, HGJ_PROGRESS_TABLE);
	hgj_engine_call(state, &err,
					state->use.engine->build(state->js.build->table,
											 state->js.build->total_rows, &err));
	if (hgj_device_failed(state))
		return;
	hgj_engine_call(state, &err,
					state->use.engine->probe_create(state->js.build->table,
													&state->found.probe, &err));
}

/*
 * What tables are not, though it was asked for, goes to the log.  Some of it
 * comes up only while they are probed, so this is called when they are gone, too,
 * but not while aborting.
 */
void
hgj_log_notes(HgjJoinState *state)
{
	uint32		left = state->stats.notes & ~state->logged.notes;

	state->logged.notes |= left;
	for (; left != 0; left &= left - 1)
		ereport(DEBUG1,
				(errmsg_internal("hashgraph_join: %s",
								 hgj_note_text((HgjNote) (left & -left)))));
}

/* Passes are logged once per node at DEBUG1, all of them at DEBUG2. */
static void
log_build(HgjJoinState *state)
{
	hgj_log_notes(state);
	if (!state->passes.last_pass)
	{
		ereport(state->logged.passes ? DEBUG2 : DEBUG1,
				(errmsg_internal("hashgraph_join: pass %u ends at %u build rows, because memory is full",
								 state->passes.pass, state->js.build->total_rows)));
		state->logged.passes = true;
	}
	if (state->stats.dictionary_full && !state->logged.dictionary)
	{
		ereport(DEBUG1,
				(errmsg_internal("hashgraph_join: groups by value, because the dictionary of their codes is full")));
		state->logged.dictionary = true;
	}
}

/* Begin with the next pass; passes.pass counts it. */
void
hgj_build_start(HgjJoinState *state)
{
	Assert(state->js.build->table == NULL);
	lay_out_build_side(state);
	state->passes.pass++;
	state->building.rows_before = state->passes.unit_pass > 0 ?
		state->building.rows_before + state->js.build->total_rows : 0;
	state->passes.unit_pass++;
}

/* Its table has been built. */
void
hgj_build_done(HgjJoinState *state)
{
	note_stats(state);
	settle_recheck(state);
	if (state->use.engine->sift && !state->js.semantics.fill_outer &&
		!state->passes.splitting)
		state->js.outer.filter_of = state;
	log_build(state);
}

/*
 * Build the table of the next pass.  Whatever table there was must have been
 * released.  If hgj_device_failed() afterwards, there is none (failover.c).
 */
void
hgj_build_pass(HgjJoinState *state)
{
	hgj_build_start(state);
	build_table(state);
	while (hgj_device_failed(state) && hgj_retry_build(state))
		build_table(state);
	if (!hgj_device_failed(state))
		hgj_build_done(state);
}

/*
 * The same for the first pass, of rows that `fill` appends to the table by itself, *nrows of
 * them, all with a key; what it reads of the inner side is read.  Nobody will look at rows
 * of the row store, nor probe it from here.  False: he has not done so, and
 * hgj_drop_build() is to follow, and hgj_use_cpu() if hgj_device_failed().
 */
bool
hgj_build_filled(HgjJoinState *state, HgjTableFill fill, void *arg)
{
	HgjError	err = {0};
	uint32		nrows = 0;
	bool		filled;

	hgj_build_start(state);
	begin_build(state);
	filled = hgj_create_table(state);
	if (filled)
	{
		state->building.read = true;
		filled = fill(arg, state->js.build->table, &nrows);
	}
	if (filled)
	{
		state->passes.last_pass = true;
		state->js.build->total_rows = nrows;
		state->js.build->graph_rows = nrows;
		hgj_join_progress(state, HGJ_PROGRESS_TABLE);
		hgj_engine_call(state, &err,
						state->use.engine->build(state->js.build->table, nrows, &err));
		filled = !hgj_device_failed(state);
	}
	if (filled)
		hgj_build_done(state);
	return filled;
}

/*
 * What this table's probes have done with a filter, and a device for it, so far,
 * for EXPLAIN; added up when the table goes.
 */
void
hgj_add_table_stats(const HgjJoinState *state, HgjRunStats *stats)
{
	HgjTableInfo info;

	if (state->js.build->table == NULL)
		return;
	state->use.engine->info(state->js.build->table, &info);
	stats->filter_bytes = Max(stats->filter_bytes, info.filter_bytes);
	stats->filter_rejected += info.filter_rejected;
	stats->notes |= info.notes;
	stats->work.to_device += info.work.to_device;
	stats->work.from_device += info.work.from_device;
	stats->work.transfer_ns += info.work.transfer_ns;
	stats->work.kernel_ns += info.work.kernel_ns;
	if (hgj_on_device(state))
		stats->device_peak = Max(stats->device_peak, info.memory.peak);
}

/*
 * The probe of the table goes; what it has done is noted, unless the table is shared:
 * on abort it may be gone, and else somebody has done so (shared_build.c).
 */
static void
destroy_probe(HgjJoinState *state)
{
	if (!hgj_table_is_shared(state))
		hgj_add_table_stats(state, &state->stats);
	if (state->found.probe)
		state->js.build->engine->probe_destroy(state->found.probe);
	state->found.probe = NULL;
	state->js.outer.filter_of = NULL;
	state->probing.key_filtered = false;
}

/* Free the engine's part, and the rows; what was read ahead stays. */
void
hgj_release_table(HgjJoinState *state)
{
	destroy_probe(state);
	hgj_build_side_clear(state->js.build);
}

/* The same, and give the rows' memory back. */
void
hgj_free_table(HgjJoinState *state)
{
	destroy_probe(state);
	hgj_build_side_free(state->js.build);
}

/* Empty the build side, for another one; partitions have been released. */
void
hgj_free_build(HgjJoinState *state)
{
	hgj_free_table(state);
	state->building.pending = false;
	state->passes.pass = state->passes.unit_pass = 0;
	state->passes.has_split = false;
	hgj_arena_free(&state->probing.outer_batch->own_values);
}

/* Free what is not palloc'd, and let the build side go.  Safe at any time, and again. */
void
hgj_leave_build(HgjJoinState *state)
{
	if (state->js.build == NULL)
		return;
	destroy_probe(state);
	if (state->passes.partitions)
		hgj_spill_free_blocks(&state->passes.partitions->writer);
	hgj_share_free_blocks(state);
	if (state->probing.outer_batch)
		hgj_arena_free(&state->probing.outer_batch->own_values);
	hgj_build_side_release(state->js.build);
	state->js.build = NULL;
}
