/*-------------------------------------------------------------------------
 *
 * shared_spill.c
 *	  A build side that several processes were to make together (shared_build.c), for
 *	  which their memory is not enough.
 *
 * The planner has expected otherwise, and has been wrong.
 *
 * 1. The process that finds memory full says so.  Each writes the build rows that it
 *	  has, and those that its child has left, to a file of its own in a file set that all
 *	  can read.
 * 2. At the barrier all rows are in files.  The chunks of shared memory are freed.
 * 3. From then on every process is on its own: it reads the files in the place of its
 *	  child, makes a table that obeys its own limit, with partitions if need be
 *	  (partition.c), and probes it with its part of the outer side.
 * 4. That does not do where build rows are returned, because nobody would know of the
 *	  others' matches: one process joins all by itself then.  Its outer child has all
 *	  rows for it, if nobody else asks.
 *
 * Memory: the struct and its files are in the query's context, the writer's blocks are
 * the node's (hgj_leave_build()); the files belong to the resource owner, and are
 * deleted with the file set, when the query lets its shared memory go.  No locks but the
 * barrier.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "join/partition.h"
#include "join/shared_build.h"
#include "miscadmin.h"

typedef struct HgjSharedFiles
{
	HgjSpillLayout layout;
	HgjSpillWriter writer;
	HgjSpillRoom room;			/* none: nothing stays in memory */
	char		name[16];		/* of our file */
	uint32		capacity;		/* of what it takes to write a batch: */
	uint32	   *rows;			/* which of its rows, */
	uint32	   *partition;		/* zeroes, */
	uint8	   *flags;
	int			nruns;
	HgjSpillRun *runs;			/* of all files */
	HgjSpillReader reader;
	const HgjSourceMethods *methods;	/* of the child, whose place this takes */
} HgjSharedFiles;

static void fill(HgjSource *source, HgjBatch *batch, uint32 max_rows);
static void rewind_files(HgjSource *source);

static const HgjSourceMethods files_source = {
	.name = "files",
	.fill = fill,
	.rewind = rewind_files
};

static HgjJoinState *
join_of(HgjSource *source)
{
	return (HgjJoinState *) ((char *) source - offsetof(HgjJoinState, js.inner));
}

static void
fill(HgjSource *source, HgjBatch *batch, uint32 max_rows)
{
	hgj_spill_read(&join_of(source)->share.files->reader, batch, max_rows);
}

static void
rewind_files(HgjSource *source)
{
	hgj_spill_rewind(&join_of(source)->share.files->reader);
}

static void
file_name(char *name, Size bytes, uint32 part)
{
	snprintf(name, bytes, "build%u", part);
}

static HgjSharedFiles *
create_files(HgjJoinState *state)
{
	HgjSharedFiles *files = MemoryContextAllocZero(state->js.context,
												   sizeof(HgjSharedFiles));

	hgj_spill_layout(&files->layout, state->js.context, state->js.inner.columns,
					 state->js.inner.ncols, state->js.inner.nwords);
	files->layout.decoded = true;
	file_name(files->name, sizeof(files->name), state->share.part);
	state->share.files = files;
	return files;
}

static void
reserve(HgjJoinState *state, uint32 capacity)
{
	HgjSharedFiles *files = state->share.files;

	if (capacity <= files->capacity)
		return;
	files->rows = MemoryContextAlloc(state->js.context, capacity * sizeof(uint32));
	files->partition = MemoryContextAllocZero(state->js.context,
											  capacity * sizeof(uint32));
	files->flags = MemoryContextAlloc(state->js.context, capacity);
	files->capacity = capacity;
}

/* The rows of a batch go to our file. */
static void
write_batch(HgjJoinState *state)
{
	HgjSharedFiles *files = state->share.files;
	HgjBatch   *batch = state->building.batch;

	/* a join below may have returned more than it was asked for */
	reserve(state, Max(batch->capacity, batch->nrows));
	if (!state->js.inner.keep_null_keys)
	{
		hgj_spill_write(&files->writer, batch, batch->sel, files->partition, NULL,
						batch->nsel);
		return;
	}
	for (uint32 i = 0; i < batch->nrows; i++)
	{
		files->rows[i] = i;
		files->flags[i] = HGJ_SPILL_NO_KEY;
	}
	for (uint32 i = 0; i < batch->nsel; i++)
		files->flags[batch->sel[i]] = 0;
	hgj_spill_write(&files->writer, batch, files->rows, files->partition,
					files->flags, batch->nrows);
}

/* Step 1: the rows that this process has in memory, which is given back. */
static void
spill_own(HgjJoinState *state)
{
	HgjSharedFiles *files = create_files(state);
	Size		block = Min(hgj_partition_blocks(get_hash_memory_limit()),
							HGJ_LARGEST_BLOCK) / 1024 * 1024;

	hgj_spill_open(&files->writer, state->js.context, &files->layout, 1, block,
				   &files->room, &state->js.build->account);
	hgj_spill_share(&files->writer, &state->share.build->files.fs, files->name);
	hgj_write_keyed(state, &files->writer, NULL);
	hgj_write_keyless(state, &files->writer, state->share.keyless,
					  state->share.nkeyless);
	hgj_free_build(state);
}

/* Step 1, where there is more to be read. */
void
hgj_share_spill_rest(HgjJoinState *state, uint32 batch_rows)
{
	HgjBatch   *batch = state->building.batch;

	spill_own(state);
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		/* nobody reads the values of the batch before */
		hgj_arena_free(&state->js.build->rows.values);
		state->js.inner.methods->fill(&state->js.inner, batch, batch_rows);
		hgj_join_progress(state, HGJ_PROGRESS_BUILDING);
		if (batch->nrows == 0)
			break;
		write_batch(state);
		state->share.written = state->share.files->writer.file->end;
	}
	hgj_arena_free(&state->js.build->rows.values);
}

/* Step 2: everybody knows that memory is full, and has no more rows. */
void
hgj_share_spill_close(HgjJoinState *state)
{
	HgjShare   *share = &state->share;
	HgjSharedBuild *shared = share->build;
	HgjSharedFiles *files;
	HgjSpillRun *run;

	if (share->files == NULL)
		spill_own(state);
	files = share->files;
	run = hgj_spill_close(&files->writer);
	hgj_spill_export(run->file);
	hgj_own_part(state)->run = *run;
	state->stats.spilled_inner += run->file->end;
	share->written = 0;
	hgj_spill_drop_runs(&run);
	share->idle = state->js.semantics.mark_inner;
	if (!hgj_share_meet(shared))
		return;
	hgj_shared_list_free(share->area,
						 pg_atomic_exchange_u64(&shared->chunks.newest,
												  InvalidDsaPointer));
	share->idle = false;
}

/* Step 3: read all of them from now on; or step 4, not this process. */
void
hgj_share_read_files(HgjJoinState *state)
{
	HgjShare   *share = &state->share;
	HgjSharedBuild *shared = share->build;
	HgjSharedFiles *files = share->files;
	uint32		nparts = pg_atomic_read_u32(&shared->nparts);

	if (files == NULL)
	{
		/* we have come late */
		files = create_files(state);
		share->idle = state->js.semantics.mark_inner;
		hgj_free_build(state);
	}
	if (share->idle)
		return;
	files->runs = MemoryContextAllocZero(state->js.context,
										 mul_size(nparts, sizeof(HgjSpillRun)));
	for (uint32 p = 0; p < nparts; p++)
	{
		HgjSpillRun run = shared->parts[p].run;
		char		name[sizeof(files->name)];

		if (run.newest_bytes == 0)
			continue;
		file_name(name, sizeof(name), p);
		run.file = hgj_spill_import(state->js.context, &shared->files.fs, name,
									&state->js.build->account);
		files->runs[files->nruns++] = run;
	}
	for (int c = 0; c < files->layout.ncols; c++)
		files->layout.places[c].has_nulls = true;
	hgj_spill_read_runs(&files->reader, state->js.context, &state->js.build->account,
						&files->layout, files->runs, files->nruns);
	files->methods = state->js.inner.methods;
	state->js.inner.methods = &files_source;
	state->stats.share_spilled = true;
}

/* Free what is not palloc'd.  Safe at any time, and again. */
void
hgj_share_free_blocks(HgjJoinState *state)
{
	if (state->share.files)
		hgj_spill_free_blocks(&state->share.files->writer);
}

/* Let go of the files.  Not to be called on abort. */
void
hgj_share_end_files(HgjJoinState *state)
{
	HgjSharedFiles *files = state->share.files;

	if (files == NULL)
		return;
	if (files->methods)
		state->js.inner.methods = files->methods;
	if (files->reader.account)
		hgj_spill_end_read(&files->reader);
	hgj_spill_abandon(&files->writer);
	for (int r = 0; r < files->nruns; r++)
		hgj_spill_file_release(files->runs[r].file);
	state->share.files = NULL;
}
