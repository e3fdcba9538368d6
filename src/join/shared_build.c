/*-------------------------------------------------------------------------
 *
 * shared_build.c
 *	  The processes of a parallel query build one table together, and each probes
 *	  it, as PostgreSQL's Parallel Hash does (nodeHashjoin.c).
 *
 * 1. The leader lays HgjSharedBuild into the query's shared memory.  Without any
 *	  (there was no segment to be had, and so there are no workers) the join is an
 *	  ordinary one, whose partial child returns all rows to the one who asks.
 * 2. Who comes while others are reading the inner side takes part: it attaches to
 *	  the barrier `build`, reads what its partial child gives it, appends key words to
 *	  a table of its own, and the columns to chunks of shared memory, whose records
 *	  have the same numbers for everybody (base/shared_chunks.c).  Codes of dictionaries
 *	  are its own, until step 4 has begun (shared_codes.c).
 * 3. After each batch it adds to a common sum what its rows will take at the height
 *	  of the build.  Where that passes the memory limit of all processes together,
 *	  shared_spill.c takes over.
 * 4. At the barrier all know what all have appended.  From there on the engine says
 *	  what comes next (engine/share.h): step by step, with the barrier in between,
 *	  everybody does a part of one graph in shared memory, the image.
 * 5. The outcome is published, and they leave the barrier for good.  Who has come too
 *	  late for step 2 has waited for it.  Everybody attaches its table to the image, and
 *	  probes.  Nobody who has returned a row waits for others, ever: they may be
 *	  waiting for the room that a reader of its rows makes.
 * 6. Where build rows without a match are to be returned, who has seen the end of the
 *	  outer side leaves the barrier `probe`, and the last one returns them.  Who comes
 *	  after that one has nothing to do: the outer side has been read to its end.
 *
 * A Gather that is rescanned has new processes, and its leader begins all of this
 * anew (hgj_share_init_again()).
 *
 * Memory: chunks and images are in the query's area (es_query_dsa).  An image is freed
 * when another has taken its place; all else ends with the area, or is freed by the
 * first who starts over.  A process lets go of what it has of it in
 * ShutdownCustomScan, before the Gather gives the area back, or at the node's end; what
 * is run on abort does not look at it.
 * Locks: those of the meeting `build` (base/meeting.c), and the barrier `probe`.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/guc.h"
#include "join/partition.h"
#include "join/shared_build.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"

/* NULLs of columns beyond these are looked for in any case. */
#define HGJ_NULL_COLUMNS	64

/* Of shared memory, in front of the reports. */
static Size
shared_bytes(const HgjJoinState *state, int nparts)
{
	return state->share.planned ? MAXALIGN(offsetof(HgjSharedBuild, parts) +
										   nparts * sizeof(HgjSharedPart)) : 0;
}

/* Nothing has been done yet. */
static void
reset_shared(HgjSharedBuild *shared)
{
	hgj_meeting_init(&shared->build);
	BarrierInit(&shared->probe, 0);
	pg_atomic_init_u32(&shared->full, 0);
	pg_atomic_init_u64(&shared->bytes, 0);
	pg_atomic_init_u64(&shared->null_columns, 0);
	pg_atomic_init_u32(&shared->long_keys, 0);
	hgj_shared_chunks_init(&shared->chunks);
	shared->image_bytes = 0;
	shared->codes = 0;
	shared->image = shared->old_image = InvalidDsaPointer;
	pg_atomic_init_u32(&shared->nparts, 0);
	memset(shared->parts, 0, shared->most_parts * sizeof(HgjSharedPart));
}

/* EstimateDSMCustomScan callback. */
Size
hgj_share_estimate(CustomScanState *node, ParallelContext *pcxt)
{
	return add_size(shared_bytes((HgjJoinState *) node, pcxt->nworkers + 1),
					hgj_reports_estimate(node, pcxt));
}

/* InitializeDSMCustomScan callback, in the leader: step 1. */
void
hgj_share_init(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	HgjJoinState *state = (HgjJoinState *) node;
	HgjSharedBuild *shared = coordinate;

	hgj_reports_share(node, pcxt, (char *) coordinate +
					  shared_bytes(state, pcxt->nworkers + 1));
	if (!state->share.planned)
		return;
	memset(shared, 0, sizeof(*shared));
	shared->most_parts = pcxt->nworkers + 1;
	reset_shared(shared);
	pg_atomic_init_u64(&shared->stale_chunks, InvalidDsaPointer);
	pg_atomic_init_u64(&shared->stale_image, InvalidDsaPointer);
	shared->seed = state->js.inner.seed;
	if (pcxt->seg == NULL)
		return;
	shared->segment = dsm_segment_handle(pcxt->seg);
	SharedFileSetInit(&shared->files, pcxt->seg);
	state->share.build = shared;
}

/* ReInitializeDSMCustomScan callback: new processes will come. */
void
hgj_share_init_again(CustomScanState *node, ParallelContext *pcxt,
					 void *coordinate)
{
	HgjJoinState *state = (HgjJoinState *) node;
	HgjSharedBuild *shared = coordinate;

	hgj_reports_attach(node, (char *) coordinate +
					   shared_bytes(state, pcxt->nworkers + 1));
	hgj_share_end_run(state);
	if (!state->share.planned || pcxt->seg == NULL)
		return;
	state->share.build = shared;
	/* who has made something has freed what was stale then */
	if (DsaPointerIsValid(pg_atomic_read_u64(&shared->chunks.newest)))
		pg_atomic_write_u64(&shared->stale_chunks,
							pg_atomic_read_u64(&shared->chunks.newest));
	if (DsaPointerIsValid(shared->image))
		pg_atomic_write_u64(&shared->stale_image, shared->image);
	reset_shared(shared);
	SharedFileSetDeleteAll(&shared->files);
}

/* InitializeWorkerCustomScan callback. */
void
hgj_share_attach(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	HgjJoinState *state = (HgjJoinState *) node;
	HgjSharedBuild *shared = coordinate;

	if (!state->share.planned)
	{
		hgj_reports_attach(node, coordinate);
		return;
	}
	hgj_reports_attach(node, (char *) coordinate +
					   shared_bytes(state, shared->most_parts));
	SharedFileSetAttach(&shared->files, dsm_find_mapping(shared->segment));
	state->js.outer.seed = state->js.inner.seed = shared->seed;
	state->share.build = shared;
}

/* ShutdownCustomScan callback: shared memory is not looked at afterwards. */
void
hgj_share_shutdown(CustomScanState *node)
{
	hgj_reports_shutdown(node);
	hgj_share_leave((HgjJoinState *) node);
}

/*
 * This run is over: let go of what it has of shared memory, which may be there still
 * for another one.  Safe at any time but on abort, and again.
 */
void
hgj_share_end_run(HgjJoinState *state)
{
	HgjShare   *share = &state->share;

	if (share->map.shared == NULL)
		return;
	if (share->probing)
		BarrierDetach(&share->build->probe);
	share->probing = false;
	if (share->files)
		hgj_partitions_release(state);
	else if (state->found.probe)
		hgj_add_table_stats(state, &state->stats);
	hgj_free_build(state);
	share->map.shared = NULL;
	hgj_account_sub(&state->js.build->account, share->max_keyless * sizeof(uint32));
	if (share->keyless)
		pfree(share->keyless);
	share->keyless = NULL;
	share->nkeyless = share->max_keyless = 0;
	share->idle = false;
	share->bytes = 0;
	hgj_share_end_files(state);
}

/* The same; and shared memory is gone soon. */
void
hgj_share_leave(HgjJoinState *state)
{
	hgj_share_end_run(state);
	state->share.build = NULL;
}

/* Free what a run before this one has left. */
static void
free_stale(HgjShare *share)
{
	HgjSharedBuild *shared = share->build;
	dsa_pointer chunks = pg_atomic_exchange_u64(&shared->stale_chunks,
												InvalidDsaPointer);
	dsa_pointer image = pg_atomic_exchange_u64(&shared->stale_image,
											   InvalidDsaPointer);

	hgj_shared_list_free(share->area, chunks);
	if (DsaPointerIsValid(image))
		dsa_free(share->area, image);
}

/* Rows without a key, of a join that owes them: they are in no table, only records. */
static void
note_keyless(HgjJoinState *state, const uint32 *numbers)
{
	HgjShare   *share = &state->share;
	HgjBatch   *batch = state->building.batch;
	uint32		selected = 0;

	if (!state->js.inner.keep_null_keys || batch->nsel == batch->nrows)
		return;
	if (share->max_keyless - share->nkeyless < batch->nrows)
	{
		uint32		max = share->max_keyless + Max(share->max_keyless, batch->nrows);
		Size		bytes = mul_size(max, sizeof(uint32));

		hgj_account_add(&state->js.build->account,
						bytes - share->max_keyless * sizeof(uint32));
		share->keyless = share->keyless ? repalloc_huge(share->keyless, bytes) :
			MemoryContextAllocHuge(state->js.context, bytes);
		share->max_keyless = max;
	}
	for (uint32 i = 0; i < batch->nrows; i++)
		if (selected < batch->nsel && batch->sel[selected] == i)
			selected++;
		else
			share->keyless[share->nkeyless++] = numbers[i];
}

/* Does nobody ask for a row of the build side?  Then rows have no record, nor number. */
static bool
keys_only(const HgjJoinState *state)
{
	return (hgj_unwanted_of_matches(state) & HGJ_TABLE_KEYS_ONLY) != 0;
}

/* The rows of a batch become records; returns their numbers. */
static const uint32 *
append_records(HgjJoinState *state, HgjBatch *batch)
{
	HgjShare   *share = &state->share;
	HgjRowStore *rows = &state->js.build->rows;
	const uint32 *numbers = rows->shared ? hgj_share_records(rows, batch) : NULL;

	if (numbers)
		return numbers;
	if (share->capacity < batch->nrows)
	{
		if (share->numbers)
			pfree(share->numbers);
		share->capacity = 0;
		share->numbers = MemoryContextAlloc(state->js.context,
											mul_size(batch->capacity,
													 sizeof(uint32)));
		share->capacity = batch->capacity;
	}
	hgj_row_store_append(rows, batch, share->numbers);
	return share->numbers;
}

/* Step 2: the rows of a batch. */
static void
append_batch(HgjJoinState *state)
{
	HgjBatch   *batch = state->building.batch;
	HgjKeys		keys = hgj_batch_keys(batch);
	HgjError	err = {0};
	const uint32 *numbers = keys_only(state) ? NULL : append_records(state, batch);

	hgj_engine_call(state, &err,
					state->use.engine->append(state->js.build->table, &keys, 0,
											  numbers, &err));
	state->js.build->long_keys = state->js.build->long_keys ||
		hgj_text_any_long(&state->js.inner, batch);
	if (numbers)
		note_keyless(state, numbers);
	hgj_own_part(state)->rows += batch->nrows;
	state->js.build->graph_rows += batch->nsel;
}

/*
 * Step 3.  Records are counted as the engine's numbers go, too: there may be no more
 * of them than it takes, gaps included; nor of rows, which may have none.
 */
static bool
memory_is_full(HgjJoinState *state, Size limit)
{
	HgjShare   *share = &state->share;
	HgjSharedBuild *shared = share->build;
	Size		bytes = state->use.engine->share->peak(state->js.build->table) +
		state->js.build->account.bytes;
	int64		more = (int64) bytes - (int64) share->bytes;
	uint32		chunks = pg_atomic_read_u32(&shared->chunks.next[HGJ_RECORD_CHUNK]);
	uint64		most = HGJ_MAX_ROWS - 2 * (uint64) shared->most_parts *
		Max(HGJ_BATCH_ROWS, UINT64CONST(1) << state->js.build->rows.chunk_shift);

	share->bytes = bytes;
	if (pg_atomic_fetch_add_u64(&shared->bytes, more) + more >
		(uint64) limit * shared->most_parts ||
		(hgj_chunk_rows > 0 &&
		 hgj_own_part(state)->rows > (uint32) hgj_chunk_rows) ||
		((uint64) chunks << state->js.build->rows.chunk_shift) > most ||
		hgj_own_part(state)->rows > most / shared->most_parts)
		pg_atomic_write_u32(&shared->full, 1);
	return pg_atomic_read_u32(&shared->full) != 0;
}

/* Steps 2 and 3: what the child has for this process. */
static void
read_part(HgjJoinState *state)
{
	HgjBatch   *batch = state->building.batch;
	uint32		batch_rows = hgj_build_batch_rows(state);
	Size		limit = get_hash_memory_limit();

	state->building.read = true;
	hgj_batch_reserve(batch, batch_rows);
	batch->values = &state->js.build->rows.values;
	for (;;)
	{
		state->js.inner.methods->fill(&state->js.inner, batch, batch_rows);
		hgj_join_progress(state, HGJ_PROGRESS_BUILDING);
		if (batch->nrows == 0)
			break;
		append_batch(state);
		if (memory_is_full(state, limit))
		{
			hgj_share_spill_rest(state, batch_rows);
			break;
		}
	}
}

/* Before the barrier: what the others have to know of it. */
static void
publish_part(HgjJoinState *state)
{
	HgjSharedBuild *shared = state->share.build;
	HgjRowStore *rows = &state->js.build->rows;
	uint64		nulls = 0;

	if (state->share.files)
		return;					/* there is no table */
	state->use.engine->share->part(state->js.build->table, &hgj_own_part(state)->engine);
	hgj_own_part(state)->end = rows->nrows;
	hgj_share_codes_publish(state);
	for (int c = 0; c < Min(rows->ncols, HGJ_NULL_COLUMNS); c++)
		if (rows->columns[c].has_nulls)
			nulls |= UINT64CONST(1) << c;
	if (nulls)
		pg_atomic_fetch_or_u64(&shared->null_columns, nulls);
	if (state->js.build->long_keys)
		pg_atomic_write_u32(&shared->long_keys, 1);
}

/* One process allocates the next image. */
static void
allocate_image(HgjShare *share, Size bytes)
{
	HgjSharedBuild *shared = share->build;
	Size		size = add_size(bytes, PG_CACHE_LINE_SIZE);

	if (DsaPointerIsValid(shared->old_image))
		dsa_free(share->area, shared->old_image);
	shared->old_image = shared->image;
	shared->image = InvalidDsaPointer;
	shared->image = hgj_shared_allocate(share->area, size,
										gettext_noop(HGJ_NO_SHARED_BUILD));
	shared->image_bytes = size;
}

static void *
image_address(HgjShare *share, dsa_pointer image)
{
	if (!DsaPointerIsValid(image))
		return NULL;
	return (void *) TYPEALIGN(PG_CACHE_LINE_SIZE,
							  (uintptr_t) dsa_get_address(share->area, image));
}

/* Step 4, after all have appended. */
static void
build_together(HgjJoinState *state)
{
	HgjShare   *share = &state->share;
	HgjSharedBuild *shared = share->build;
	const HgjShareMethods *methods = state->use.engine->share;
	uint32		nparts = pg_atomic_read_u32(&shared->nparts);
	HgjSharePart *parts = palloc(mul_size(nparts, sizeof(HgjSharePart)));
	HgjShareBuild build = {
		.parts = parts,
		.nparts = nparts,
		.part = share->part,
		.total_rows = keys_only(state) ? HGJ_MAX_ROWS :
			pg_atomic_read_u32(&shared->chunks.next[HGJ_RECORD_CHUNK]) <<
			state->js.build->rows.chunk_shift
	};
	HgjShareNext next;

	for (uint32 i = 0; i < nparts; i++)
		parts[i] = shared->parts[i].engine;
	for (;;)
	{
		HgjError	err = {0};
		bool		elected;

		hgj_engine_call(state, &err,
						methods->step(state->js.build->table, &build, &next, &err));
		if (next.done)
			break;
		elected = hgj_share_meet(shared);
		build.old_image = NULL;
		if (next.image_bytes == 0)
			continue;
		if (elected)
			allocate_image(share, next.image_bytes);
		hgj_share_meet(shared);
		build.image = image_address(share, shared->image);
		build.old_image = image_address(share, shared->old_image);
	}
	/* nobody looks at it any more */
	if (share->part == 0 && DsaPointerIsValid(shared->old_image))
	{
		dsa_free(share->area, shared->old_image);
		shared->old_image = InvalidDsaPointer;
	}
	pfree(parts);
}

/* The table of this process becomes the one of all. */
static void
attach_table(HgjJoinState *state)
{
	HgjShare   *share = &state->share;
	HgjSharedBuild *shared = share->build;
	HgjRowStore *rows = &state->js.build->rows;
	uint64		nulls = pg_atomic_read_u64(&shared->null_columns);
	uint64		total = 0;
	HgjError	err = {0};

	hgj_engine_call(state, &err,
					state->use.engine->share->attach(state->js.build->table,
													 image_address(share, shared->image),
													 &err));
	hgj_row_store_map_all(rows);
	for (int c = 0; c < rows->ncols; c++)
		rows->columns[c].has_nulls = c >= HGJ_NULL_COLUMNS ||
			(nulls & (UINT64CONST(1) << c)) != 0;
	state->js.build->graph_rows = 0;
	for (uint32 i = 0; i < pg_atomic_read_u32(&shared->nparts); i++)
	{
		state->js.build->graph_rows += shared->parts[i].engine.nrows;
		total += shared->parts[i].rows;
	}
	state->js.build->total_rows = (uint32) Min(total, HGJ_MAX_ROWS);
	state->js.build->long_keys = pg_atomic_read_u32(&shared->long_keys) != 0;
	hgj_engine_call(state, &err,
					state->use.engine->probe_create(state->js.build->table,
													&state->found.probe, &err));
}

/* Step 6: take part in the probing, if it is not over. */
static void
begin_probing(HgjJoinState *state)
{
	HgjShare   *share = &state->share;

	if (!state->js.semantics.fill_inner)
		return;
	share->probing = true;
	if (BarrierAttach(&share->build->probe) > 0)
	{
		BarrierDetach(&share->build->probe);
		share->probing = false;
		share->idle = true;
	}
}

/* Row ids that records have not used have no match to wait for. */
static void
mark_gaps(HgjJoinState *state)
{
	HgjSharedBuild *shared = state->share.build;
	uint32		chunk_rows = UINT32_C(1) << state->js.build->rows.chunk_shift;
	HgjError	err = {0};

	for (uint32 i = 0; i < pg_atomic_read_u32(&shared->nparts); i++)
		for (uint32 row = shared->parts[i].end; (row & (chunk_rows - 1)) != 0; row++)
			hgj_engine_call(state, &err,
							state->use.engine->mark(state->js.build->table, &row, 1,
													&err));
}

/*
 * Steps 2 to 5.  False: the build rows are in files, and this process is to make a
 * table of them by itself, unless share.idle.
 */
bool
hgj_build_shared(HgjJoinState *state)
{
	HgjShare   *share = &state->share;
	HgjSharedBuild *shared = share->build;
	bool		takes_part;

	share->area = state->js.css.ss.ps.state->es_query_dsa;
	free_stale(share);
	hgj_build_start(state);
	state->passes.last_pass = true;
	state->stats.build_rows = 0;
	state->js.build->graph_rows = 0;
	state->js.build->long_keys = false;
	hgj_chunk_map_init(&share->map, state->js.context, &shared->chunks, share->area);
	hgj_row_store_share(&state->js.build->rows, state->js.inner.columns, &share->map);
	takes_part = hgj_meeting_join(&shared->build);
	(void) hgj_create_table(state);
	if (takes_part)
	{
		share->part = pg_atomic_fetch_add_u32(&shared->nparts, 1);
		read_part(state);
		hgj_join_progress(state, HGJ_PROGRESS_TABLE);
		publish_part(state);
		hgj_share_meet(shared);
		if (pg_atomic_read_u32(&shared->full))
		{
			hgj_share_spill_close(state);
			hgj_meeting_decide(&shared->build, HGJ_SHARE_SPILLED);
		}
		else
		{
			hgj_share_codes_merge(state);
			build_together(state);
			hgj_meeting_decide(&shared->build, HGJ_SHARE_BUILT);
		}
	}
	else
		hgj_meeting_wait(&shared->build, HGJ_WAIT_BUILD);
	if (hgj_meeting_outcome(&shared->build) == HGJ_SHARE_SPILLED)
	{
		hgj_share_read_files(state);
		return false;
	}
	attach_table(state);
	if (!takes_part)
		hgj_share_codes_take(state);
	else if (share->part == 0 && state->js.semantics.mark_inner)
		mark_gaps(state);		/* who looks for rows without a match is to see few of them */
	hgj_build_done(state);
	state->stats.peak_bytes = Max(state->stats.peak_bytes, shared->image_bytes +
								  pg_atomic_read_u64(&shared->chunks.bytes));
	begin_probing(state);
	return true;
}

/* Step 6: at the end of the outer side, is this the last process? */
bool
hgj_share_last_one(HgjJoinState *state)
{
	HgjShare   *share = &state->share;

	if (!share->probing)
		return !hgj_table_is_shared(state);
	share->probing = false;
	if (!BarrierArriveAndDetach(&share->build->probe))
		return false;
	mark_gaps(state);			/* the first process may not have come to it */
	return true;
}
