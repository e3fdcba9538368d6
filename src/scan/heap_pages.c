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
 * 2. Blocks and their buffers come from heap_blocks.c, the next page's early.
 * 3. A page is pruned if that pays, and looked at under share lock.  If it says
 *	  that all its tuples are visible to everybody, and nothing asks for more (a
 *	  snapshot taken during recovery, serializable conflicts), visibility is no
 *	  question.  A tuple whose hint bits say that it was inserted before any
 *	  transaction of the snapshot, and never deleted, needs no more either; all
 *	  others are PostgreSQL's own function's.  The tuples that are seen stay as
 *	  they are while the page is pinned.
 * 4. Pages whose columns are kept in memory (kept_pages.c) are not read: they come
 *	  before the others, several at a time, as one that has no tuples.  How many had
 *	  to be read is said at the end (kept/wanted.c).
 * 5. A page that somebody keeps pointers into stays pinned after the next one
 *	  is read, until hgj_pages_forget(); their number is bounded.  A session has
 *	  few buffers for temporary tables, and many scans may be under way in a
 *	  query: of those buffers, all scans of ours together have a small part, and
 *	  pins that PostgreSQL's own scan would not hold are taken out of that only.
 *
 * Pins: the current page's belongs to the scan descriptor, the others' are
 * ours (heap_blocks.c pins the page ahead), until hgj_pages_reset(); on abort the resource owner gives all back.
 * Locks: a page's content lock, in share mode, within read_page() only.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/relscan.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "kept/wanted.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "scan/heap_pages.h"
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

/* Temporary tables' buffers: what part of them our scans may have pinned at a time. */
#define HGJ_PINNED_LOCAL_SHARE	8

/* Those pins of the session, the current pages' among them. */
static int	local_pins = 0;

/* Give back what of the temporary tables' buffers the scan has been granted. */
static void
give_back_pins(void *arg)
{
	HgjHeapPages *pages = arg;

	local_pins -= pages->granted;
	pages->granted = 0;
}

/*
 * Prepare; nothing is read, nor is the scan begun.  In the query's context.
 *
 * columns: that somebody will look at.  want_offsets: they will want offsets or
 * hgj_pages_tuple().
 */
void
hgj_pages_init(HgjHeapPages *pages, SeqScanState *node, HgjPageColumns *columns,
			   bool want_offsets)
{
	int			fair;

	memset(pages, 0, offsetof(HgjHeapPages, tuples));
	pages->node = node;
	pages->rel = node->ss.ss_currentRelation;
	pages->ahead = InvalidBuffer;
	pages->natts = columns->natts;
	pages->want_offsets = want_offsets;
	pages->kept_columns = want_offsets ? NULL :
		hgj_kept_pages_init(pages->rel, columns);
	pages->slice_rows = MaxHeapTuplesPerPage;
	pages->pages_kept = pages->pages_skipped = pages->pages_read = 0;
	pages->pages_fetched = 0;
	pages->pages_noted = 0;
	pages->keep = false;
	pages->nkept = 0;

	if (RelationUsesLocalBuffers(pages->rel))
	{
		fair = num_temp_buffers / HGJ_KEPT_LOCAL_SHARE;
		pages->when_gone.func = give_back_pins;
		pages->when_gone.arg = pages;
		MemoryContextRegisterResetCallback(CurrentMemoryContext,
										   &pages->when_gone);
	}
	else
		fair = NBuffers / MaxBackends;
	pages->max_kept = Max(Min(fair, HGJ_MAX_KEPT), 1);
	pages->kept = palloc(pages->max_kept * sizeof(Buffer));
}

/*
 * How many pages may be kept, as things stand?  Of a temporary table's, so many
 * are the scan's then, with the current one and the one ahead.
 */
static int
grant_pins(HgjHeapPages *pages)
{
	int			spare;

	if (!RelationUsesLocalBuffers(pages->rel))
		return pages->max_kept;
	give_back_pins(pages);
	spare = num_temp_buffers / HGJ_PINNED_LOCAL_SHARE - local_pins - 2;
	spare = Max(Min(spare, pages->max_kept), 0);
	pages->granted = spare + (spare > 0 ? 2 : 1);
	local_pins += pages->granted;
	return spare;
}

/* Begin the scan, or take over the one that is there, at its first block; once. */
void
hgj_pages_begin(HgjHeapPages *pages)
{
	ScanState  *ss = &pages->node->ss;
	HeapScanDesc scan;

	if (pages->begun)
		return;
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
	pages->nblocks = scan->rs_nblocks;
	if (pages->kept_columns)
		hgj_kept_pages_begin(pages->kept_columns, scan->rs_base.rs_snapshot,
							 scan->rs_strategy);
	hgj_blocks_begin(pages);
	if (scan->rs_strategy)
		pages->max_kept = Min(pages->max_kept, HGJ_MAX_KEPT_RING);
	pages->begun = true;
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
	TransactionId xmin;

	if ((mask & (HEAP_XMAX_INVALID | HEAP_XMIN_COMMITTED)) !=
		(HEAP_XMAX_INVALID | HEAP_XMIN_COMMITTED))
		return false;
	if ((mask & HEAP_XMIN_FROZEN) == HEAP_XMIN_FROZEN)
		return true;
	xmin = HeapTupleHeaderGetRawXmin(tuple);
	return TransactionIdIsNormal(xmin) && (int32) (xmin - snapshot_xmin) < 0;
}

/*
 * What makes a tuple anything but plain, as far as the page's tuples so far
 * have it: bits that should be 0, and those that should be 1.
 */
typedef struct Oddities
{
	uint32		nulls;
	uint32		hoff;
	uint32		few_columns;
} Oddities;

static inline void
note_oddities(Oddities *odd, HeapTupleHeader tuple, AttrNumber natts)
{
	odd->nulls |= tuple->t_infomask & HEAP_HASNULL;
	odd->hoff |= tuple->t_hoff ^ HGJ_PLAIN_HOFF;
	odd->few_columns |= HeapTupleHeaderGetNatts(tuple) < natts;
}

static HgjTupleKind
tuple_kind(const Oddities *odd)
{
	if (odd->few_columns)
		return HGJ_TUPLES_ANY;
	return odd->nulls || odd->hoff ? HGJ_TUPLES_COMPLETE : HGJ_TUPLES_PLAIN;
}

/*
 * The eight bytes of a tuple header in which there is all that makes a tuple odd,
 * and which bits of them do.
 */
#define SHAPE_OFFSET	(offsetof(HeapTupleHeaderData, t_infomask2) - 2)

StaticAssertDecl(offsetof(HeapTupleHeaderData, t_hoff) < SHAPE_OFFSET + 8,
				 "a tuple's shape is not in eight bytes");

static inline uint64
shape_of(const HeapTupleHeaderData *tuple)
{
	uint64		shape;

	memcpy(&shape, (const char *) tuple + SHAPE_OFFSET, sizeof(shape));
	return shape;
}

static uint64
shape_mask(void)
{
	HeapTupleHeaderData bits;

	memset(&bits, 0, sizeof(bits));
	bits.t_infomask2 = HEAP_NATTS_MASK;
	bits.t_infomask = HEAP_HASNULL;
	bits.t_hoff = 0xFF;
	return shape_of(&bits);
}

/*
 * Collect every tuple of the page.  Nearly always they all are of the same shape,
 * so that it is enough to look at one of them.
 */
static void
collect_all(HgjHeapPages *pages, Page page, OffsetNumber lines)
{
	const ItemIdData *items = PageGetItemId(page, FirstOffsetNumber);
	Oddities	odd = {0};
	uint64		first = 0;
	uint64		differ = 0;
	uint32		alike;
	uint32		n = 0;

	for (uint32 i = 0; i < lines; i++)
		if (ItemIdIsNormal(&items[i]))
		{
			first = shape_of((HeapTupleHeader)
							 ((char *) page + ItemIdGetOffset(&items[i])));
			break;
		}
	for (uint32 i = 0; i < lines; i++)
	{
		HeapTupleHeader tuple = (HeapTupleHeader)
		((char *) page + ItemIdGetOffset(&items[i]));

		if (!ItemIdIsNormal(&items[i]))
			continue;
		differ |= shape_of(tuple) ^ first;
		pages->tuples[n++] = tuple;
	}
	alike = (differ & shape_mask()) == 0 ? Min(n, 1) : n;
	for (uint32 i = 0; i < alike; i++)
		note_oddities(&odd, pages->tuples[i], pages->natts);
	pages->ntuples = n;
	pages->kind = tuple_kind(&odd);
	if (!pages->want_offsets)
		return;
	for (uint32 i = 0, j = 0; i < lines; i++)
		if (ItemIdIsNormal(&items[i]))
			pages->offsets[j++] = FirstOffsetNumber + i;
}

/* Collect the tuples that the snapshot sees. */
static void
collect_visible(HgjHeapPages *pages, Page page, OffsetNumber lines,
				bool all_visible, bool conflicts)
{
	HeapScanDesc scan = pages->scan;
	Snapshot	snapshot = scan->rs_base.rs_snapshot;
	Oddities	odd = {0};
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
		if (!visible)
			continue;
		note_oddities(&odd, header, pages->natts);
		pages->tuples[n] = header;
		pages->offsets[n++] = offset;
	}
	pages->ntuples = n;
	pages->kind = tuple_kind(&odd);
}

/* Find the tuples of the page that has become the current one. */
static void
find_tuples(HgjHeapPages *pages)
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

	hgj_prefetch_more(&pages->prefetch, HGJ_PREFETCH_LINES);
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
	hgj_prefetch_more(&pages->prefetch, HGJ_PREFETCH_LINES);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
}

/* Look at the page that has become the current one. */
static void
read_page(HgjHeapPages *pages)
{
	find_tuples(pages);
	/* adds to the counter that pgstat_count_heap_getnext() adds one to */
	pgstat_count_index_tuples(pages->rel, pages->ntuples);
}

/*
 * For late_columns.c: the tuples of a page whose rows have come from kept columns, for
 * hgj_pages_tuple(), until hgj_pages_fetched().  Returns how many there are.
 */
uint32
hgj_pages_fetch(HgjHeapPages *pages, BlockNumber block)
{
	HeapScanDesc scan = pages->scan;
	HgjTupleKind kind = pages->kind;
	uint32		ntuples = pages->ntuples;
	bool		want_offsets = pages->want_offsets;
	uint32		found;

	Assert(kind == HGJ_TUPLES_KEPT && !BufferIsValid(scan->rs_cbuf));
	scan->rs_cbuf = ReadBufferExtended(pages->rel, MAIN_FORKNUM, block, RBM_NORMAL,
									   scan->rs_strategy);
	scan->rs_cblock = pages->block = block;
	pages->want_offsets = true;
	find_tuples(pages);
	pages->want_offsets = want_offsets;
	found = pages->ntuples;
	pages->kind = kind;
	pages->ntuples = ntuples;
	pages->pages_fetched++;
	return found;
}

void
hgj_pages_fetched(HgjHeapPages *pages)
{
	ReleaseBuffer(pages->scan->rs_cbuf);
	pages->scan->rs_cbuf = InvalidBuffer;
	pages->scan->rs_cblock = InvalidBlockNumber;
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
			Assert(pages->nkept < pages->may_keep);
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
 * The next block, if its columns are kept; those before it are skipped of which no row
 * could pass the quals.  Otherwise it is put back.
 */
static bool
next_kept(HgjHeapPages *pages, uint32 *nrows)
{
	HgjKeptPages *kept = pages->kept_columns;
	uint64		removed = 0;
	BlockNumber block;
	bool		found;

	for (;;)
	{
		block = hgj_blocks_next(pages);
		found = BlockNumberIsValid(block) && hgj_kept_page(kept, block, nrows);
		if (!found || hgj_kept_page_may_pass(kept, block))
			break;
		CHECK_FOR_INTERRUPTS();
		pages->pages_kept++;
		pages->pages_skipped++;
		removed += *nrows;
	}
	InstrCountFiltered1(pages->node, removed);
	pgstat_count_index_tuples(pages->rel, removed);
	if (found)
		pages->block = block;
	else
		pages->put_back = block;
	return found;
}

/*
 * Step 4: the next blocks, as many as have slice_rows together, if their columns are
 * kept.
 */
static bool
take_kept(HgjHeapPages *pages)
{
	HgjKeptPages *kept = pages->kept_columns;
	BlockNumber block;
	uint64		before;
	uint32		total;
	uint32		nrows;
	uint32		n;

	if (!next_kept(pages, &total))
		return false;
	block = pages->block;
	before = pages->pages_kept++;
	hgj_kept_slice(kept, block);
	for (;;)
	{
		nrows = pages->slice_rows - Min(total, pages->slice_rows);
		n = hgj_kept_pages_behind(kept, block, hgj_blocks_behind(pages, block), &nrows);
		hgj_blocks_pass(pages, n);
		block += n;
		total += nrows;
		pages->pages_kept += n;
		/* a parallel scan's next piece may go on where this one ends */
		pages->put_back = hgj_blocks_next(pages);
		if (pages->put_back != ++block ||
			hgj_run_of(block) != hgj_run_of(block - 1) ||
			!hgj_kept_page(kept, block, &nrows) ||
			!hgj_kept_page_may_pass(kept, block) ||
			total + nrows > pages->slice_rows)
			break;
		pages->put_back = InvalidBlockNumber;
		total += nrows;
		pages->pages_kept++;
	}
	kept->taken += total;
	/* not before: a run that is left has no slice that has not been taken */
	if (kept->has_late)
		kept->late_pages += pages->pages_kept - before;
	pages->ntuples = total;
	pages->kind = HGJ_TUPLES_KEPT;
	pages->prefetch.next = pages->prefetch.end = NULL;
	pgstat_count_index_tuples(pages->rel, total);
	return true;
}

/* The scan has ended: what might it have found among kept columns? */
static void
note_demand(HgjHeapPages *pages)
{
	const HgjPageColumns *columns;
	AttrNumber *attnos;
	uint64		npages = pages->pages_read + pages->pages_fetched - pages->pages_noted;

	if (pages->kept_columns == NULL || !pages->kept_columns->on || npages == 0)
		return;
	columns = pages->kept_columns->columns;
	attnos = palloc(mul_size(Max(columns->ncols, 1), sizeof(AttrNumber)));
	for (int c = 0; c < columns->ncols; c++)
		attnos[c] = columns->columns[c]->attno;
	hgj_wanted_note(pages->rel, attnos, columns->ncols, npages, pages->nblocks);
	pages->pages_noted += npages;
	pfree(attnos);
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
	hgj_pages_begin(pages);
	scan = pages->scan;
	leave_page(pages);
	CHECK_FOR_INTERRUPTS();

	if (pages->kept_columns && pages->kept_columns->on && take_kept(pages))
		return true;
	if (!BufferIsValid(pages->ahead) && !hgj_blocks_pin_ahead(pages))
	{
		pages->at_end = true;
		note_demand(pages);
		return false;
	}
	scan->rs_cbuf = pages->ahead;
	scan->rs_cblock = pages->block = pages->ahead_block;
	pages->ahead = InvalidBuffer;
	pages->prefetch.next = pages->prefetch.end = NULL;
	if (read_ahead && pages->may_keep > 0 && hgj_blocks_pin_ahead(pages))
		hgj_blocks_prefetch(pages);
	read_page(pages);
	pages->pages_read++;
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

static void
release_kept(HgjHeapPages *pages)
{
	while (pages->nkept > 0)
		ReleaseBuffer(pages->kept[--pages->nkept]);
	pages->keep = false;
}

/* Nobody has pointers any longer, but into the current page. */
void
hgj_pages_forget(HgjHeapPages *pages)
{
	release_kept(pages);
	if (pages->kept_columns)
		hgj_kept_pages_forget(pages->kept_columns);
	pages->may_keep = grant_pins(pages);
}

/*
 * Give back all pins of ours and begin again with the next call.  The node's
 * scan is rescanned (or ended) by whoever calls.
 */
void
hgj_pages_reset(HgjHeapPages *pages)
{
	release_kept(pages);
	note_demand(pages);
	if (pages->kept_columns)
		hgj_kept_pages_reset(pages->kept_columns);
	pages->may_keep = 0;
	give_back_pins(pages);
	if (BufferIsValid(pages->ahead))
		ReleaseBuffer(pages->ahead);
	pages->ahead = InvalidBuffer;
	pages->ntuples = 0;
	pages->scan = NULL;
	pages->begun = pages->at_end = false;
	hgj_pages_end_ranges(pages);
	pages->only_left = false;
}
