/*-------------------------------------------------------------------------
 *
 * kept_pages.c
 *	  The pages of a sequential scan whose columns are kept in memory: for
 *	  heap_pages.c, which reads all others itself.
 *
 * 1. When an execution begins: may it use kept columns?  Not where a snapshot can be
 *	  too old for a page, and not in a serializable transaction, whose conflicts are
 *	  noticed when tuples are looked at.
 * 2. When the scan comes to a run of pages: hold the chunks of all columns that are
 *	  read of it, and then look at the visibility map.  That is after the query's
 *	  snapshot was taken, as everything here is.  If one is missing, or has another
 *	  LSN than the map, no page of the run is valid.
 * 3. A page is valid if all chunks have it, and its bit is set.  Consecutive ones are
 *	  handed out as slices, as if they were one page.
 * 4. By-reference values are pointers into chunks: those of runs that the scan has
 *	  left are held until the batch is void (hgj_kept_pages_forget()).
 *
 * In a parallel scan each process looks for itself, at the blocks that it is given:
 * each block is returned by one process, whether from here or from the table.
 *
 * Memory: the query's context.  Chunks are released on abort by a reset callback of
 * it.  No locks but those of store.c and map.c.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/transam.h"
#include "access/xact.h"
#include "scan/kept_pages.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

static void
when_gone(void *arg)
{
	hgj_kept_pages_reset(arg);
}

/*
 * Get ready to read these columns, more of which may come; NULL if nothing of the
 * table can be kept.  In the query's context.
 */
HgjKeptPages *
hgj_kept_pages_init(Relation rel, HgjPageColumns *columns)
{
	HgjKeptPages *kept;
	int			most = Max(RelationGetNumberOfAttributes(rel), 1);

	if (!hgj_store_exists() || RelationGetRelid(rel) < FirstNormalObjectId ||
		rel->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
		return NULL;
	kept = palloc0(sizeof(HgjKeptPages));
	kept->rel = rel;
	kept->columns = columns;
	kept->context = CurrentMemoryContext;
	kept->chunks = palloc(mul_size(most, sizeof(HgjHeldChunk)));
	kept->rows.chunks = palloc(mul_size(most, sizeof(HgjChunk *)));
	kept->rows.starts = palloc(mul_size(most, sizeof(uint32)));
	kept->room = most;
	kept->held = palloc(mul_size(most, sizeof(HgjHeldChunk)));
	kept->when_gone.func = when_gone;
	kept->when_gone.arg = kept;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &kept->when_gone);
	return kept;
}

/* Step 1. */
void
hgj_kept_pages_begin(HgjKeptPages *kept, Snapshot snapshot)
{
	kept->on = snapshot->snapshot_type == SNAPSHOT_MVCC &&
		!IsolationIsSerializable() && !OldSnapshotThresholdActive();
}

/* Step 4: the chunks of the run are left behind. */
static void
leave_run(HgjKeptPages *kept)
{
	int			ncols = kept->ncols;

	kept->looked = false;
	if (kept->nheld + ncols > kept->room)
	{
		int			room = Max(kept->room * 2, kept->nheld + ncols);

		kept->held = repalloc(kept->held, mul_size(room, sizeof(HgjHeldChunk)));
		kept->room = room;
	}
	memcpy(kept->held + kept->nheld, kept->chunks, ncols * sizeof(HgjHeldChunk));
	kept->nheld += ncols;
	kept->ncols = 0;
}

/* Step 2, for chunks that are held. */
static void
find_valid(HgjKeptPages *kept)
{
	XLogRecPtr	lsn = hgj_map_look(kept->rel, kept->run, kept->valid);

	for (int c = 0; c < kept->ncols; c++)
		for (int w = 0; w < HGJ_RUN_WORDS; w++)
			kept->valid[w] &= kept->chunks[c].map_lsn == lsn ?
				kept->chunks[c].chunk->pages[w] : 0;
}

static void
look_at_run(HgjKeptPages *kept, uint32 run)
{
	const HgjPageColumns *columns = kept->columns;
	int			n = 0;

	leave_run(kept);
	while (n < columns->ncols)
	{
		HgjChunkKey key = hgj_store_key(kept->rel, columns->columns[n]->attno, run);

		if (!hgj_store_hold(&key, true, &kept->chunks[n]))
			break;
		n++;
		kept->ncols = n;		/* so many are to be released, whatever happens */
	}
	kept->run = run;
	kept->looked = true;
	if (n > 0 && n == columns->ncols)
	{
		find_valid(kept);
		return;
	}
	while (kept->ncols > 0)
		hgj_store_release(&kept->chunks[--kept->ncols]);
	memset(kept->valid, 0, sizeof(kept->valid));
}

/* Step 3: is the page valid?  How many rows has it? */
bool
hgj_kept_page(HgjKeptPages *kept, BlockNumber block, uint32 *nrows)
{
	uint32		run = hgj_run_of(block);
	uint32		page = hgj_run_page(block);
	const HgjChunk *chunk;

	if (!kept->looked || kept->run != run)
		look_at_run(kept, run);
	if (!hgj_run_has(kept->valid, page) || kept->ncols != kept->columns->ncols)
		return false;
	chunk = kept->chunks[0].chunk;
	*nrows = chunk->first[page + 1] - chunk->first[page];
	return true;
}

/* A slice begins with this page, which is valid. */
void
hgj_kept_slice(HgjKeptPages *kept, BlockNumber block)
{
	uint32		page = hgj_run_page(block);

	for (int c = 0; c < kept->ncols; c++)
	{
		kept->rows.chunks[c] = kept->chunks[c].chunk;
		kept->rows.starts[c] = kept->chunks[c].chunk->first[page];
	}
}

/* Nobody has pointers any longer, but into chunks of the run at hand. */
void
hgj_kept_pages_forget(HgjKeptPages *kept)
{
	while (kept->nheld > 0)
		hgj_store_release(&kept->held[--kept->nheld]);
}

/* Hold nothing, and know nothing. */
void
hgj_kept_pages_reset(HgjKeptPages *kept)
{
	hgj_kept_pages_forget(kept);
	while (kept->ncols > 0)
		hgj_store_release(&kept->chunks[--kept->ncols]);
	kept->looked = kept->on = false;
}
