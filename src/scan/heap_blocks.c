/*-------------------------------------------------------------------------
 *
 * heap_blocks.c
 *	  The blocks of a sequential scan, in its order, and the buffers where they
 *	  are: for heap_pages.c, whose state this is.
 *
 * 1. Where PostgreSQL's own scans have a stream of pages (compat.h), ours come
 *	  from it, read ahead as it does that, but for temporary tables.  Elsewhere
 *	  blocks come in order, or from the allocator that a parallel scan shares, and
 *	  cold ones are left to the kernel, which reads ahead of whoever reads a file
 *	  in order, many blocks in a request.  PrefetchBuffer() asks for one block at
 *	  a time: where it was tried, at distances of 2 to 256 blocks, it cost a
 *	  tenth to twice the time on a fast device, and more where a device takes
 *	  few requests at a time; it gained only with 64 blocks or more on a slow
 *	  device that takes any number of them.
 * 2. The page after the current one is pinned early.  Where there is no stream, a
 *	  block that the session has found in a buffer before mostly is there still
 *	  (recent_buffers.c), and tables often lie in consecutive buffers: if either
 *	  one has the block, it is pinned without a look into the mapping table, which
 *	  takes as long as many a page's rows.
 * 3. A page's lines are prefetched little by little while another one is worked
 *	  on: all at once they would only queue up.  That is done for the page after
 *	  next, if it has been found in a buffer before, or else for the next one.
 *	  Nothing comes of a wrong guess, so that buffer need not be pinned.  It is no
 *	  use to guess in a process that has not read the page yet: what is not in its
 *	  address space is not prefetched.
 *
 * Pins: the page ahead's, which heap_pages.c takes over or gives back.  No memory of
 * its own, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/relscan.h"
#include "access/tableam.h"
#include "base/known_pages.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "scan/heap_pages.h"
#include "utils/rel.h"

/* Pages of which the use of one is counted (pin_block()). */
#define HGJ_COUNT_USE_OF		32

static uint32 scans_begun = 0;

/*
 * Where do pages come from?  A stream would keep several of a temporary table's few
 * buffers, and it would read pages whose columns are kept.
 */
void
hgj_blocks_begin(HgjHeapPages *pages)
{
	HeapScanDesc scan = pages->scan;

	pages->nread = pages->npassed = 0;
	pages->put_back = InvalidBlockNumber;
	pages->stream = HGJ_SCAN_STREAM(scan);
	if (RelationUsesLocalBuffers(pages->rel) ||
		(pages->kept_columns && pages->kept_columns->on))
		pages->stream = NULL;
	if (pages->stream)
		return;
	pages->recent = (HgjRecentBuffers) {NULL, 0};
	pages->next_block = scan->rs_startblock;
	pages->last_pinned = pages->prefetched = InvalidBuffer;
	pages->count_use = scans_begun++;
	pages->blocks_left = Min(scan->rs_numblocks, scan->rs_nblocks);
	if (scan->rs_base.rs_parallel && pages->blocks_left > 0)
		table_block_parallelscan_startblock_init(pages->rel,
												 scan->rs_parallelworkerdata,
												 (ParallelBlockTableScanDesc) scan->rs_base.rs_parallel);
}

/* The number of the next block, or InvalidBlockNumber; not where there is a stream. */
BlockNumber
hgj_blocks_next(HgjHeapPages *pages)
{
	HeapScanDesc scan = pages->scan;
	BlockNumber block = pages->put_back;

	pages->put_back = InvalidBlockNumber;
	if (BlockNumberIsValid(block))
		return block;
	if (pages->only_left)
		return pages->next_left < pages->nleft ? pages->left[pages->next_left++] :
			InvalidBlockNumber;
	if (pages->blocks_left == 0)
		return InvalidBlockNumber;
	if (scan->rs_base.rs_parallel)
	{
		block = table_block_parallelscan_nextpage(pages->rel,
												  scan->rs_parallelworkerdata,
												  (ParallelBlockTableScanDesc) scan->rs_base.rs_parallel);
		if (block == InvalidBlockNumber)
			pages->blocks_left = 0;
		return block;
	}
	block = pages->next_block++;
	if (pages->next_block >= scan->rs_nblocks)
		pages->next_block = 0;
	pages->blocks_left--;
	return block;
}

/*
 * How many blocks behind this one, which hgj_blocks_next() has just returned, are this
 * process's for certain, one after the other?  Of a parallel scan, those of the piece that
 * the process has been given.
 */
uint32
hgj_blocks_behind(const HgjHeapPages *pages, BlockNumber block)
{
	HeapScanDesc scan = pages->scan;
	BlockNumber to_last = scan->rs_nblocks - 1 - block;
	const ParallelBlockTableScanDescData *shared;
	const ParallelBlockTableScanWorkerData *own;

	if (pages->only_left || BlockNumberIsValid(pages->put_back))
		return 0;
	if (scan->rs_base.rs_parallel == NULL)
		return pages->next_block == block + 1 ? Min(pages->blocks_left, to_last) : 0;
	shared = (const ParallelBlockTableScanDescData *) scan->rs_base.rs_parallel;
	own = scan->rs_parallelworkerdata;
	/* the piece may be larger than what is left of the table */
	return (uint32) Min(Min((uint64) own->phsw_chunk_remaining, to_last),
						shared->phs_nblocks - 1 - own->phsw_nallocated);
}

/* Go on behind the next n blocks, of those that hgj_blocks_behind() has counted. */
void
hgj_blocks_pass(HgjHeapPages *pages, uint32 n)
{
	HeapScanDesc scan = pages->scan;

	if (scan->rs_base.rs_parallel)
	{
		scan->rs_parallelworkerdata->phsw_nallocated += n;
		scan->rs_parallelworkerdata->phsw_chunk_remaining -= n;
		return;
	}
	pages->next_block += n;
	if (pages->next_block >= scan->rs_nblocks)
		pages->next_block = 0;
	pages->blocks_left -= n;
}

/* Pin the block if the buffer has it. */
static bool
pin_guess(HgjHeapPages *pages, BlockNumber block, Buffer guess)
{
	if (guess <= 0 || guess > NBuffers ||
		!ReadRecentBuffer(HGJ_LOCATOR(pages->rel), MAIN_FORKNUM, block, guess))
		return false;
	pgstat_count_buffer_read(pages->rel);
	pgstat_count_buffer_hit(pages->rel);
	pages->ahead = guess;
	return true;
}

/* Where it is noted in which buffer the block is; nobody asks where all columns are kept. */
static Buffer *
recent_place(HgjHeapPages *pages, BlockNumber block)
{
	if (pages->nread == 0)
		pages->recent = hgj_recent_buffers(pages->rel, pages->scan->rs_nblocks);
	return hgj_recent_buffer(&pages->recent, block);
}

/*
 * Pin the block: in the buffer where it was found before, in the one behind that of
 * the block before, or wherever it is.  What ReadBuffer() does besides is to count the
 * buffer as used once more: it is asked for one page in so many, others in each scan.
 */
static void
pin_block(HgjHeapPages *pages, BlockNumber block)
{
	Buffer	   *place = recent_place(pages, block);
	Buffer		before = place ? *place : InvalidBuffer;
	Buffer		behind = pages->last_pinned > 0 ? pages->last_pinned + 1 : InvalidBuffer;
	int64		reads = pgBufferUsage.shared_blks_read;
	bool		found = (block + pages->count_use) % HGJ_COUNT_USE_OF != 0 &&
		(pin_guess(pages, block, before) ||
		 (behind != before && pin_guess(pages, block, behind)));

	if (!found)
		pages->ahead = ReadBufferExtended(pages->rel, MAIN_FORKNUM, block, RBM_NORMAL,
										  pages->scan->rs_strategy);
	pages->ahead_block = block;
	pages->last_pinned = pages->ahead;
	if (place == NULL)
		return;

	/* what has just been read into a ring will soon be overwritten */
	if (!found && pages->scan->rs_strategy && pgBufferUsage.shared_blks_read > reads)
		*place = InvalidBuffer;
	else
		*place = pages->ahead;
}

/* Pin the next page; false: there is none. */
static bool
pin_next(HgjHeapPages *pages)
{
	BlockNumber block;

	if (pages->stream)
	{
		pages->ahead = hgj_next_of_stream(pages->stream);
		if (!BufferIsValid(pages->ahead))
			return false;
		pages->ahead_block = BufferGetBlockNumber(pages->ahead);
		return true;
	}
	block = hgj_blocks_next(pages);
	if (block == InvalidBlockNumber)
		return false;
	pin_block(pages, block);
	return true;
}

/*
 * The same; false at the end of the table, which the planner is told of.  What was read
 * into a ring of buffers is not there any more.
 */
bool
hgj_blocks_pin_ahead(HgjHeapPages *pages)
{
	int64		reads = pgBufferUsage.shared_blks_read;
	bool		found = pin_next(pages);

	if (pages->scan->rs_strategy)
		pages->npassed += pgBufferUsage.shared_blks_read - reads;
	if (found)
	{
		pages->nread++;
		return true;
	}
	hgj_pages_were_read(RelationGetRelid(pages->rel), pages->nread, pages->npassed,
						pages->scan->rs_nblocks);
	pages->nread = pages->npassed = 0;
	return false;
}

/* Where the block after the page ahead was found before; or InvalidBuffer. */
static Buffer
buffer_to_come(const HgjHeapPages *pages)
{
	const Buffer *place;

	if (pages->stream)
		return InvalidBuffer;
	place = hgj_recent_buffer(&pages->recent, pages->ahead_block + 1);
	return place ? *place : InvalidBuffer;
}

/*
 * Which page is prefetched while the current one is worked on?  The one after the
 * page ahead, if there is a guess where it is; that page has mostly had its turn then.
 */
void
hgj_blocks_prefetch(HgjHeapPages *pages)
{
	HgjPrefetch *prefetch = &pages->prefetch;
	Buffer		to_come = buffer_to_come(pages);

	if (pages->ahead != pages->prefetched)
	{
		prefetch->next = (const char *) BufferGetPage(pages->ahead);
		prefetch->end = prefetch->next + BLCKSZ;
	}
	if (to_come == InvalidBuffer)
		return;
	hgj_prefetch_more(prefetch, BLCKSZ / HGJ_CACHE_LINE);
	prefetch->next = (const char *) BufferGetPage(to_come);
	prefetch->end = prefetch->next + BLCKSZ;
	pages->prefetched = to_come;
}
