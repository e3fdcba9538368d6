/*-------------------------------------------------------------------------
 *
 * heap_pages.h
 *	  The pages of a sequential scan, one at a time (heap_pages.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_HEAP_PAGES_H
#define HGJ_HEAP_PAGES_H

#include "compat.h"

#include "access/heapam.h"
#include "nodes/execnodes.h"
#include "scan/kept_pages.h"
#include "scan/page_columns.h"
#include "scan/recent_buffers.h"
#include "storage/bufmgr.h"

typedef struct HgjHeapPages
{
	SeqScanState *node;
	Relation	rel;
	HeapScanDesc scan;			/* the node's; it holds the current page's pin */
	bool		begun;			/* since the last reset */
	bool		at_end;
	struct ReadStream *stream;	/* where the pages come from; or NULL */
	BlockNumber next_block;		/* where there is no stream, nor a parallel scan ... */
	BlockNumber blocks_left;	/* ... which shares them out itself */
	BlockNumber put_back;		/* the block that comes before these, or none */
	BlockNumber *left;			/* or those that kept_ranges.c has left to be read, ... */
	uint32		nleft;
	uint32		left_room;
	uint32		next_left;
	bool		only_left;		/* ... which is now */
	Buffer		ahead;			/* the next page, pinned; or none */
	BlockNumber ahead_block;
	BlockNumber nread;			/* pages pinned since the scan has begun */
	BlockNumber npassed;		/* pages of them that were read into a ring of buffers */
	Buffer		last_pinned;	/* the last that was, where there is no stream, */
	uint32		count_use;		/* which buffers' use is counted, */
	HgjRecentBuffers recent;	/* and where blocks were found before */
	HgjPrefetch prefetch;		/* of a page that will be read soon, ... */
	Buffer		prefetched;		/* ... which is in this buffer, or none */
	AttrNumber	natts;
	bool		want_offsets;

	/* the current page: the tuples on it that the snapshot sees */
	BlockNumber block;
	uint32		ntuples;
	HgjTupleKind kind;			/* wanted: attributes up to natts */
	HeapTupleHeader tuples[MaxHeapTuplesPerPage];
	OffsetNumber offsets[MaxHeapTuplesPerPage];

	/* pages whose columns are kept in memory; NULL: not of this scan */
	HgjKeptPages *kept_columns;
	uint32		slice_rows;		/* the most of those that are taken together */
	uint64		pages_kept;		/* that came from there, */
	uint64		pages_skipped;	/* among them: no row could pass the quals, */
	uint64		pages_fetched;	/* or they were read for columns that are not kept, */
	uint64		pages_read;		/* and from the table alone, */
	uint64		pages_noted;	/* of which kept/wanted.c knows */
	BlockNumber nblocks;		/* of the table, when the scan began */

	/* pages that somebody has pointers into */
	bool		keep;			/* the current one, too */
	int			nkept;
	int			max_kept;
	int			granted;		/* pins of a temporary table's buffers */
	MemoryContextCallback when_gone;
	int			may_keep;		/* till the next hgj_pages_forget(): no more, or
								 * if it is 0 then none */
	Buffer	   *kept;
} HgjHeapPages;

extern void hgj_pages_init(HgjHeapPages *pages, SeqScanState *node,
						   HgjPageColumns *columns, bool want_offsets);
extern bool hgj_pages_next(HgjHeapPages *pages, bool read_ahead);
extern void hgj_pages_begin(HgjHeapPages *pages);
extern void hgj_pages_tuple(const HgjHeapPages *pages, uint32 i,
							HeapTuple tuple);
extern uint32 hgj_pages_fetch(HgjHeapPages *pages, BlockNumber block);
extern void hgj_pages_fetched(HgjHeapPages *pages);
extern void hgj_pages_forget(HgjHeapPages *pages);
extern void hgj_pages_reset(HgjHeapPages *pages);

/* heap_blocks.c, for heap_pages.c */
extern void hgj_blocks_begin(HgjHeapPages *pages);
extern BlockNumber hgj_blocks_next(HgjHeapPages *pages);
extern uint32 hgj_blocks_behind(const HgjHeapPages *pages, BlockNumber block);
extern void hgj_blocks_pass(HgjHeapPages *pages, uint32 n);
extern bool hgj_blocks_pin_ahead(HgjHeapPages *pages);
extern void hgj_blocks_prefetch(HgjHeapPages *pages);

/* kept_ranges.c */
typedef struct HgjKeptRange
{
	uint32		nrows;
	uint32		npages;
	BlockNumber start;			/* where they are: consecutive pages of one run */
	const uint32 *first;		/* per page of the run: the first row, of a chunk that is */
} HgjKeptRange;					/* held until the next ranges */

extern bool hgj_pages_next_range(HgjHeapPages *pages, HgjKeptRange *range);
extern void hgj_pages_leave_range(HgjHeapPages *pages, const HgjKeptRange *range);
extern void hgj_pages_end_ranges(HgjHeapPages *pages);

/* Is nothing left to be read of a scan whose pages go as ranges? */
static inline bool
hgj_pages_all_taken(const HgjHeapPages *pages)
{
	return pages->only_left && pages->nleft == 0;
}
extern void hgj_pages_take_left(HgjHeapPages *pages, HgjHeapPages *from);

/* Is there no room to keep another page? */
static inline bool
hgj_pages_full(const HgjHeapPages *pages)
{
	return pages->keep && pages->nkept == pages->may_keep;
}

#endif							/* HGJ_HEAP_PAGES_H */
