/*-------------------------------------------------------------------------
 *
 * build.c
 *	  The build side: inner rows into an engine's table and the row store.
 *
 * 1. Choose the engine: the one that the setting asks for, or, when it cannot
 *	  run here, the CPU's, with the reason kept for EXPLAIN.
 * 2. Make a table and append inner batches, key words to the engine, wanted
 *	  columns to the row store.  After each batch, ask the engine what a build
 *	  of these rows would take.
 * 3. When that, and the rows, pass work_mem x hash_mem_multiplier, and there
 *	  are more rows, stop: this is one pass of several.  The child stays where
 *	  it is, and the next pass takes on from there.  A pass has at least one
 *	  batch, so it always gets on.
 * 4. Build.
 *
 * The fallback for a build side larger than memory is therefore not another
 * node but more passes over the outer side (probe.c), each over a chunk of the
 * build side that fits.  It is right for every join type and for any skew.
 *
 * The table, the probe and the row store's chunks are not PostgreSQL memory.
 * They belong to the HgjJoinState; node.c's reset callback on the query's
 * context calls hgj_free_build() when the query aborts.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "engine/registry.h"
#include "exec/join_state.h"
#include "guc.h"
#include "miscadmin.h"

/*
 * The rows of a build batch: few, so that memory is checked often, and fewer
 * where the batch itself would take more than this part of the limit.
 */
#define HGJ_BUILD_BATCH_ROWS	1024
#define HGJ_BUILD_BATCH_SHARE	32

/* No batch of any source has more rows. */
#define HGJ_LARGEST_BATCH		(UINT32_C(1) << 24)

/* Rows of a pass: what row ids are for, and the stores of loose values. */
#define HGJ_MOST_PASS_ROWS(state) \
	((hgj_dictionaries_are_full(state) ? HGJ_STORED_LOOSE : HGJ_MAX_ROWS) - \
	 HGJ_LARGEST_BATCH)

/*
 * The engine takes memory for the expected rows in advance: no more of them
 * than would fill this part of the limit, lest a pass be full when it starts.
 */
#define HGJ_HINT_SHARE			16

/* HgjTableSpec.poll: would CHECK_FOR_INTERRUPTS() raise an error? */
static int
poll_interrupts(void *arg)
{
	const HgjJoinState *state = arg;

	return !state->poll_disabled && InterruptPending &&
		INTERRUPTS_CAN_BE_PROCESSED() &&
		(QueryCancelPending || ProcDiePending);
}

/* Raise what an engine has reported. */
void
hgj_engine_failed(HgjJoinState *state, const HgjError *err)
{
	switch (err->status)
	{
		case HGJ_OUT_OF_MEMORY:
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("out of memory"),
					 errdetail("HashGraphJoin's %s engine: %s.",
							   state->engine->name, err->message)));
			break;
		case HGJ_LIMIT:
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("a HashGraphJoin passed a limit of its %s engine",
							state->engine->name),
					 errdetail("%s.", err->message),
					 errhint("Set hashgraph_join.enabled to off for this query.")));
			break;
		case HGJ_NO_DEVICE:
		case HGJ_DEVICE_LOST:
			ereport(ERROR,
					(errcode(ERRCODE_SYSTEM_ERROR),
					 errmsg("the device of a HashGraphJoin failed"),
					 errdetail("%s.", err->message),
					 errhint("Set hashgraph_join.engine to cpu and try again.")));
			break;
		default:
			ereport(ERROR,
					(errcode(ERRCODE_INTERNAL_ERROR),
					 errmsg_internal("HashGraphJoin's %s engine: %s: %s",
									 state->engine->name,
									 hgj_status_name(err->status),
									 err->message)));
			break;
	}
	pg_unreachable();
}

/*
 * What every call of an engine that polls goes through: true if it is done,
 * false if it has to be repeated, and errors are raised.
 *
 * After HGJ_CANCELLED the interrupt is let in.  Should that turn out to be
 * none, the repeated call must not be cancelled again, or it got nowhere.
 */
bool
hgj_engine_done(HgjJoinState *state, HgjStatus status, const HgjError *err)
{
	if (status == HGJ_OK)
	{
		state->poll_disabled = false;
		return true;
	}
	if (status != HGJ_CANCELLED)
		hgj_engine_failed(state, err);
	CHECK_FOR_INTERRUPTS();
	state->poll_disabled = true;
	return false;
}

/*
 * Set state->engine, open in this process.  Never fails: the CPU engine is
 * always there.
 */
void
hgj_choose_engine(HgjJoinState *state)
{
	HgjError	err = {0};

	if (hgj_engine == HGJ_ENGINE_CUDA)
	{
		state->engine = hgj_registry_find("cuda", pkglib_path, &err);
		if (state->engine && state->engine->open(&err) == HGJ_OK)
			return;
		state->fallback = HGJ_FALLBACK_ENGINE;
		state->fallback_text = MemoryContextStrdup(state->context, err.message);
		ereport(DEBUG1,
				(errmsg_internal("hashgraph_join: the cuda engine falls back to cpu: %s",
								 err.message)));
	}
	state->engine = hgj_cpu_engine();
	if (state->engine->open(&err) != HGJ_OK)
		hgj_engine_failed(state, &err);
}

static void
create_table(HgjJoinState *state)
{
	double		fits = (double) get_hash_memory_limit() /
		(HGJ_HINT_SHARE * state->inner.nwords * sizeof(uint64));
	double		expected = Min(state->inner_ps->plan->plan_rows, fits);
	HgjTableSpec spec = {0};
	HgjError	err = {0};

	spec.nwords = state->inner.nwords;
	spec.flags = state->semantics.mark_inner ? HGJ_TABLE_TRACK_MATCHES : 0;
	spec.seed = state->inner.seed;
	spec.build = (HgjBuild) hgj_build;
	spec.probe = (HgjProbeAlgo) hgj_probe;
	spec.segments = (HgjSegments) hgj_segments;
	spec.filter = (HgjFilter) hgj_filter;
	spec.expected_rows = (uint64) Min(expected, (double) HGJ_MAX_ROWS);
	spec.memory_limit = 0;
	spec.poll = poll_interrupts;
	spec.poll_arg = state;
	if (state->engine->table_create(&spec, &state->table, &err) != HGJ_OK)
		hgj_engine_failed(state, &err);
}

/* Bytes that this pass would hold at the height of a build of its rows. */
static Size
projected_bytes(HgjJoinState *state)
{
	HgjMemory	memory;

	state->engine->memory(state->table, &memory);
	return (Size) memory.build_peak + hgj_row_store_bytes(&state->rows) +
		hgj_batch_bytes(state->inner_batch) +
		hgj_dictionaries_bytes(state);
}

static void
append_batch(HgjJoinState *state)
{
	HgjBatch   *batch = state->inner_batch;
	HgjKeys		keys = hgj_batch_keys(batch);
	HgjError	err = {0};

	while (!hgj_engine_done(state,
							state->engine->append(state->table, &keys,
												  state->total_rows, NULL,
												  &err),
							&err))
		;
	hgj_row_store_append(&state->rows, batch);
	state->long_keys = state->long_keys ||
		hgj_text_any_long(&state->inner, batch);
	state->total_rows += batch->nrows;
	state->graph_rows += batch->nsel;
}

/*
 * Read inner rows until they end or memory is full.  Sets last_pass.
 */
static void
read_inner(HgjJoinState *state)
{
	HgjSource  *source = &state->inner;
	HgjBatch   *batch = state->inner_batch;
	Size		limit = get_hash_memory_limit();
	Size		affordable = limit / HGJ_BUILD_BATCH_SHARE /
		hgj_batch_row_bytes(batch);
	uint32		batch_rows = Max(Min(affordable, HGJ_BUILD_BATCH_ROWS),
								 HGJ_BATCH_FIRST_ROWS);
	bool		full = false;

	state->last_pass = true;
	if (state->inner_pending)
	{
		append_batch(state);
		state->inner_pending = false;
	}
	hgj_batch_reserve(batch, batch_rows);
	for (;;)
	{
		/* what comes after a full pass belongs to the next one */
		batch->values = full ? &state->rows.next_values : &state->rows.values;
		source->methods->fill(source, batch, batch_rows);
		if (batch->nrows == 0)
			break;
		if (full)
		{
			state->inner_pending = true;
			state->last_pass = false;
			break;
		}
		append_batch(state);
		full = projected_bytes(state) > limit ||
			state->total_rows > HGJ_MOST_PASS_ROWS(state);
	}
	batch->values = &state->rows.values;
}

static void
note_stats(HgjJoinState *state)
{
	HgjRunStats *stats = &state->stats;
	Size		bytes;

	state->engine->info(state->table, &stats->table);
	bytes = (Size) stats->table.memory.peak + hgj_row_store_bytes(&state->rows) +
		hgj_batch_bytes(state->inner_batch) + hgj_dictionaries_bytes(state);
	stats->peak_bytes = Max(stats->peak_bytes, bytes);
	stats->notes |= stats->table.notes;
	stats->dictionary_full = hgj_dictionaries_are_full(state);
	if (state->pass == 1)
		stats->build_rows = 0;
	stats->build_rows += state->total_rows;
	stats->passes = state->pass;
	stats->built = true;
}

/*
 * Are matches of this table candidates?  Now it is known whether text keys
 * are all packed.
 */
static void
settle_recheck(HgjJoinState *state)
{
	state->recheck = state->always_recheck || state->long_keys;
	if (state->recheck && state->semantics.one_per_outer)
		state->pairs.capacity = HGJ_SOME_PAIRS;
	else
	{
		state->pairs.capacity = HGJ_PAIRS;
		state->pairs.skip = NULL;
	}
}

/*
 * Lay the row store and the batches of the build side out, before the first
 * pass: by then it is known which columns are encoded (encode.c).
 */
static void
lay_out_build_side(HgjJoinState *state)
{
	state->inner_batch = hgj_batch_create(state->context, state->inner.columns,
										  state->inner.ncols,
										  state->inner.nwords);
	hgj_row_store_init(&state->rows, state->context, state->inner.columns,
					   state->inner.ncols, state->inner_ps->plan->plan_rows,
					   get_hash_memory_limit());
	state->inner_batch->values = &state->rows.values;
}

/*
 * Build the table of the next pass; state->pass counts it.  Whatever table
 * there was must have been released.
 */
void
hgj_build_pass(HgjJoinState *state)
{
	HgjError	err = {0};

	Assert(state->table == NULL);
	if (state->inner_batch == NULL)
		lay_out_build_side(state);
	state->pass++;
	state->total_rows = 0;
	state->graph_rows = 0;
	state->long_keys = false;
	create_table(state);
	read_inner(state);
	while (!hgj_engine_done(state,
							state->engine->build(state->table,
												 state->total_rows, &err),
							&err))
		;
	if (state->engine->probe_create(state->table, &state->probe, &err) != HGJ_OK)
		hgj_engine_failed(state, &err);
	note_stats(state);
	settle_recheck(state);
	if (!state->last_pass)
		ereport(DEBUG1,
				(errmsg_internal("hashgraph_join: pass %u ends at %u build rows, because memory is full",
								 state->pass, state->total_rows)));
}

/*
 * What the probes of this table have done with a filter so far, for EXPLAIN;
 * added up when the table goes.
 */
void
hgj_add_filter_stats(const HgjJoinState *state, HgjRunStats *stats)
{
	HgjTableInfo info;

	if (state->table == NULL)
		return;
	state->engine->info(state->table, &info);
	stats->filter_bytes = Max(stats->filter_bytes, info.filter_bytes);
	stats->filter_rejected += info.filter_rejected;
	stats->notes |= info.notes;
}

/* Free the engine's part, and the rows; what was read ahead stays. */
void
hgj_release_table(HgjJoinState *state)
{
	if (state->engine)
	{
		hgj_add_filter_stats(state, &state->stats);
		state->engine->probe_destroy(state->probe);
		state->engine->table_destroy(state->table);
	}
	state->probe = NULL;
	state->table = NULL;
	hgj_row_store_clear(&state->rows);
}

/* Free everything that is not palloc'd.  Safe at any time, and again. */
void
hgj_free_build(HgjJoinState *state)
{
	hgj_release_table(state);
	hgj_row_store_free(&state->rows);
	state->inner_pending = false;
	state->pass = 0;
	if (state->outer_batch)
		hgj_arena_free(&state->outer_batch->own_values);
}
