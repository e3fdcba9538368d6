/*-------------------------------------------------------------------------
 *
 * heap_pages.c
 *	  The pages of a sequential scan, one at a time, and the tuples on them that
 *	  the scan's snapshot sees.
 *
 * 1. The scan descriptor is the SeqScan node's own: begun here if need be, so
 *	  that predicate locks, statistics and the ring for large tables are those
 *	  of any scan, and ended or rescanned by the node.  Scans are not
 *	  synchronised with others.
 * 2. Blocks come in order, or from the allocator that a parallel scan shares.
 * 3. A page is pruned if that pays, and looked at under share lock.  If it says
 *	  that all its tuples are visible to everybody, and nothing asks for more (a
 *	  snapshot taken during recovery, serializable conflicts), no tuple is
 *	  looked at.  A tuple whose hint bits say that it was inserted before any
 *	  transaction of the snapshot, and never deleted, needs no more either; all
 *	  others are PostgreSQL's own function's.  The tuples that are seen stay as
 *	  they are while the page is pinned.
 * 4. The page after the current one is pinned early and its lines prefetched.
 * 5. A page that somebody keeps pointers into stays pinned after the next one
 *	  is read, until hgj_pages_forget(); their number is bounded.
 *
 * Pins: the current page's belongs to the scan descriptor, the others' are
 * ours, until hgj_pages_reset(); on abort the resource owner gives all back.
 * Locks: a page's content lock, in share mode, within read_page() only.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/relscan.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/valid.h"
#include "exec/heap_pages.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/predicate.h"
#include "utils/guc.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/*
 * Pages kept: at most so many, the fair part of a session in shared buffers,
 * this part of a temporary table's buffers, half of the ring of a large table.
 */
#define HGJ_MAX_KEPT			64
#define HGJ_KEPT_LOCAL_SHARE	32
#define HGJ_MAX_KEPT_RING		16

#define HGJ_CACHE_LINE			64

/* Prepare; nothing is read, nor is the scan begun. */
void
hgj_pages_init(HgjHeapPages *pages, SeqScanState *node)
{
	int			fair;

	memset(pages, 0, offsetof(HgjHeapPages, tuples));
	pages->node = node;
	pages->rel = node->ss.ss_currentRelation;
	pages->ahead = InvalidBuffer;
	pages->keep = false;
	pages->nkept = 0;

	if (RelationUsesLocalBuffers(pages->rel))
		fair = num_temp_buffers / HGJ_KEPT_LOCAL_SHARE;
	else
		fair = NBuffers / MaxBackends;
	pages->max_kept = Max(Min(fair, HGJ_MAX_KEPT), 1);
	pages->kept = palloc(pages->max_kept * sizeof(Buffer));
}

/* Begin the scan, or take over the one that is there, at its first block. */
static void
begin_scan(HgjHeapPages *pages)
{
	ScanState  *ss = &pages->node->ss;
	HeapScanDesc scan;

	if (ss->ss_currentScanDesc == NULL)
	{
		EState	   *estate = ss->ps.state;
		MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);

		ss->ss_currentScanDesc = table_beginscan_strat(pages->rel,
													   estate->es_snapshot,
													   0, NULL, true, false);
		MemoryContextSwitchTo(old);
	}
	scan = (HeapScanDesc) ss->ss_currentScanDesc;
	Assert(!scan->rs_inited);
	if ((scan->rs_base.rs_flags & SO_ALLOW_PAGEMODE) == 0)
		elog(ERROR, "the snapshot does not allow to read whole pages");

	pages->scan = scan;
	pages->next_block = scan->rs_startblock;
	pages->blocks_left = Min(scan->rs_numblocks, scan->rs_nblocks);
	if (scan->rs_base.rs_parallel && pages->blocks_left > 0)
		table_block_parallelscan_startblock_init(pages->rel,
												 scan->rs_parallelworkerdata,
												 (ParallelBlockTableScanDesc) scan->rs_base.rs_parallel);
	if (scan->rs_strategy)
		pages->max_kept = Min(pages->max_kept, HGJ_MAX_KEPT_RING);
	pages->begun = true;
}

/* The number of the next block, or InvalidBlockNumber. */
static BlockNumber
next_block(HgjHeapPages *pages)
{
	HeapScanDesc scan = pages->scan;
	BlockNumber block;

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

/* Pin the next page; false at the end of the table. */
static bool
pin_ahead(HgjHeapPages *pages)
{
	BlockNumber block = next_block(pages);

	if (block == InvalidBlockNumber)
		return false;
	pages->ahead = ReadBufferExtended(pages->rel, MAIN_FORKNUM, block,
									  RBM_NORMAL, pages->scan->rs_strategy);
	pages->ahead_block = block;
	return true;
}

/*
 * Is the tuple visible to the MVCC snapshot, as far as hint bits tell?  Its
 * inserter is known to have committed before any transaction that the
 * snapshot does not see, and nobody has tried to delete it.
 */
static inline bool
plainly_visible(HeapTupleHeader tuple, TransactionId snapshot_xmin)
{
	uint16		mask = tuple->t_infomask;

	if ((mask & (HEAP_XMAX_INVALID | HEAP_XMIN_COMMITTED)) !=
		(HEAP_XMAX_INVALID | HEAP_XMIN_COMMITTED))
		return false;
	return (mask & HEAP_XMIN_FROZEN) == HEAP_XMIN_FROZEN ||
		TransactionIdPrecedes(HeapTupleHeaderGetRawXmin(tuple), snapshot_xmin);
}

/* Collect every tuple of the page. */
static void
collect_all(HgjHeapPages *pages, Page page, OffsetNumber lines)
{
	uint32		n = 0;

	for (OffsetNumber offset = FirstOffsetNumber; offset <= lines; offset++)
	{
		ItemId		item = PageGetItemId(page, offset);

		pages->tuples[n] = (HeapTupleHeader) ((char *) page +
											  ItemIdGetOffset(item));
		pages->offsets[n] = offset;
		n += ItemIdIsNormal(item) ? 1 : 0;
	}
	pages->ntuples = n;
}

/* Collect the tuples that the snapshot sees. */
static void
collect_visible(HgjHeapPages *pages, Page page, OffsetNumber lines,
				bool all_visible, bool conflicts)
{
	HeapScanDesc scan = pages->scan;
	Snapshot	snapshot = scan->rs_base.rs_snapshot;
	uint32		n = 0;

	for (OffsetNumber offset = FirstOffsetNumber; offset <= lines; offset++)
	{
		ItemId		item = PageGetItemId(page, offset);
		HeapTupleHeader header;
		bool		visible;

		if (!ItemIdIsNormal(item))
			continue;
		header = (HeapTupleHeader) PageGetItem(page, item);
		visible = all_visible || plainly_visible(header, snapshot->xmin);
		if (!visible || conflicts)
		{
			HeapTupleData tuple;

			tuple.t_data = header;
			tuple.t_len = ItemIdGetLength(item);
			tuple.t_tableOid = RelationGetRelid(pages->rel);
			ItemPointerSet(&tuple.t_self, pages->block, offset);
			if (!visible)
				visible = HeapTupleSatisfiesVisibility(&tuple, snapshot,
													   scan->rs_cbuf);
			if (conflicts)
				HeapCheckForSerializableConflictOut(visible, pages->rel, &tuple,
													scan->rs_cbuf, snapshot);
		}
		pages->tuples[n] = header;
		pages->offsets[n] = offset;
		n += visible ? 1 : 0;
	}
	pages->ntuples = n;
}

/* Look at the page that has become the current one. */
static void
read_page(HgjHeapPages *pages)
{
	HeapScanDesc scan = pages->scan;
	Snapshot	snapshot = scan->rs_base.rs_snapshot;
	Buffer		buffer = scan->rs_cbuf;
	bool		conflicts;
	bool		all_visible;
	OffsetNumber lines;
	Page		page;

	heap_page_prune_opt(pages->rel, buffer);
	conflicts = CheckForSerializableConflictOutNeeded(pages->rel, snapshot);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	TestForOldSnapshot(snapshot, pages->rel, page);
	all_visible = PageIsAllVisible(page) && !snapshot->takenDuringRecovery;
	lines = PageGetMaxOffsetNumber(page);
	if (lines > MaxHeapTuplesPerPage)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("block %u of relation \"%s\" has %u line pointers",
						pages->block, RelationGetRelationName(pages->rel),
						lines)));
	if (all_visible && !conflicts)
		collect_all(pages, page, lines);
	else
		collect_visible(pages, page, lines, all_visible, conflicts);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);

	/* adds to the counter that pgstat_count_heap_getnext() adds one to */
	pgstat_count_index_tuples(pages->rel, pages->ntuples);
}

/* Have the page's lines in the cache by the time that they are looked at. */
static void
prefetch_lines(Buffer buffer)
{
	const char *page = (const char *) BufferGetPage(buffer);

	for (int i = 0; i < BLCKSZ; i += HGJ_CACHE_LINE)
		__builtin_prefetch(page + i);
}

/* Done with the current page: unpin it, or keep it. */
static void
leave_page(HgjHeapPages *pages)
{
	HeapScanDesc scan = pages->scan;

	pages->ntuples = 0;
	if (BufferIsValid(scan->rs_cbuf))
	{
		if (pages->keep)
		{
			Assert(pages->nkept < pages->max_kept);
			pages->kept[pages->nkept++] = scan->rs_cbuf;
		}
		else
			ReleaseBuffer(scan->rs_cbuf);
	}
	pages->keep = false;
	scan->rs_cbuf = InvalidBuffer;
	scan->rs_cblock = InvalidBlockNumber;
}

/*
 * Go to the next page, which may turn out to have no tuples.  False at the end
 * of the table.  Not when hgj_pages_full().
 */
bool
hgj_pages_next(HgjHeapPages *pages, bool read_ahead)
{
	HeapScanDesc scan;

	if (pages->at_end)
		return false;
	if (!pages->begun)
		begin_scan(pages);
	scan = pages->scan;
	leave_page(pages);
	CHECK_FOR_INTERRUPTS();

	if (!BufferIsValid(pages->ahead) && !pin_ahead(pages))
	{
		pages->at_end = true;
		return false;
	}
	scan->rs_cbuf = pages->ahead;
	scan->rs_cblock = pages->block = pages->ahead_block;
	pages->ahead = InvalidBuffer;
	read_page(pages);
	if (read_ahead && pin_ahead(pages))
		prefetch_lines(pages->ahead);
	return true;
}

/* Tuple i of the current page, as a HeapTuple. */
void
hgj_pages_tuple(const HgjHeapPages *pages, uint32 i, HeapTuple tuple)
{
	Page		page = BufferGetPage(pages->scan->rs_cbuf);

	tuple->t_data = pages->tuples[i];
	tuple->t_len = ItemIdGetLength(PageGetItemId(page, pages->offsets[i]));
	tuple->t_tableOid = RelationGetRelid(pages->rel);
	ItemPointerSet(&tuple->t_self, pages->block, pages->offsets[i]);
}

/* Nobody has pointers any longer, but into the current page. */
void
hgj_pages_forget(HgjHeapPages *pages)
{
	while (pages->nkept > 0)
		ReleaseBuffer(pages->kept[--pages->nkept]);
	pages->keep = false;
}

/*
 * Give back all pins of ours and begin again with the next call.  The node's
 * scan is rescanned (or ended) by whoever calls.
 */
void
hgj_pages_reset(HgjHeapPages *pages)
{
	hgj_pages_forget(pages);
	if (BufferIsValid(pages->ahead))
		ReleaseBuffer(pages->ahead);
	pages->ahead = InvalidBuffer;
	pages->ntuples = 0;
	pages->scan = NULL;
	pages->begun = pages->at_end = false;
}
