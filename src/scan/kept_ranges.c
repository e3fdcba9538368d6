/*-------------------------------------------------------------------------
 *
 * kept_ranges.c
 *	  The pages of a scan whose kept columns a device takes as they are stored, a range
 *	  at a time: for source_pages.c (step 7), before the scan's other pages are read.
 *
 * 1. A range is consecutive pages of one run, all of them valid (kept_pages.c), where the
 *	  device can take every column as its chunk has it: their rows are one behind the
 *	  other in each chunk.
 * 2. All other pages are remembered, and so are those of a range that the device has not
 *	  taken in the end.  When there is no further range, these are the scan's pages
 *	  (heap_blocks.c), which are read as ever: a page once, here or there.
 *
 * Not in a parallel scan, whose blocks others want, too.
 *
 * Memory: the query's context; the numbers of pages that are left, four bytes each.  A
 * range says where a chunk's pages begin: that is held until the next ranges are asked for.  No
 * locks but those of kept_pages.c.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "scan/heap_pages.h"
#include "utils/memutils.h"

#define LEAST_LEFT		64

/* Step 2: n blocks. */
static void
leave_blocks(HgjHeapPages *pages, BlockNumber start, uint32 n)
{
	if (pages->nleft + n > pages->left_room)
	{
		uint32		room = Max(Max(2 * pages->left_room, LEAST_LEFT), pages->nleft + n);
		Size		bytes = mul_size(room, sizeof(BlockNumber));

		pages->left = pages->left ? repalloc_huge(pages->left, bytes) :
			MemoryContextAllocHuge(pages->kept_columns->context, bytes);
		pages->left_room = room;
	}
	for (uint32 i = 0; i < n; i++)
		pages->left[pages->nleft++] = start + i;
}

/* Step 1: the next block that can be in a range; the others are left. */
static BlockNumber
find_start(HgjHeapPages *pages)
{
	HgjKeptPages *kept = pages->kept_columns;

	for (;;)
	{
		BlockNumber block = hgj_blocks_next(pages);

		if (!BlockNumberIsValid(block) ||
			(hgj_kept_page(kept, block, NULL) && kept->fits))
			return block;
		CHECK_FOR_INTERRUPTS();
		leave_blocks(pages, block, 1);
	}
}

/* The rows of n pages of the run at hand; those of all are known without the chunk. */
static uint32
rows_of(const HgjKeptPages *kept, BlockNumber block, uint32 n)
{
	const HgjChunkHead *head = kept->chunks[0].head;
	const uint32 *first = kept->chunks[0].chunk->first;
	uint32		page = hgj_run_page(block);

	if (page == 0 && n == head->npages)
		return head->nrows;
	return first[page + n] - first[page];
}

/* Step 1; false: there is none.  kept_columns->rows says where its rows are. */
bool
hgj_pages_next_range(HgjHeapPages *pages, HgjKeptRange *range)
{
	HgjKeptPages *kept = pages->kept_columns;
	BlockNumber block;

	if (kept == NULL || kept->forms == NULL || pages->only_left)
		return false;
	hgj_pages_begin(pages);
	if (!kept->on || pages->scan->rs_base.rs_parallel != NULL)
		return false;
	block = find_start(pages);
	if (!BlockNumberIsValid(block))
	{
		pages->only_left = true;
		return false;
	}
	range->start = block;
	range->first = kept->chunks[0].chunk->first;
	hgj_kept_slice(kept, block);
	range->npages = 1;
	for (;;)
	{
		uint32		n = hgj_kept_pages_behind(kept, block, hgj_blocks_behind(pages, block), NULL);

		CHECK_FOR_INTERRUPTS();
		hgj_blocks_pass(pages, n);
		range->npages += n;
		pages->put_back = hgj_blocks_next(pages);
		block += n + 1;
		if (pages->put_back != block || hgj_run_of(block) != hgj_run_of(range->start) ||
			!hgj_kept_page(kept, block, NULL))
			break;
		pages->put_back = InvalidBlockNumber;
		range->npages++;
	}
	range->nrows = rows_of(kept, range->start, range->npages);
	kept->taken += range->nrows;
	pages->pages_kept += range->npages;
	return true;
}

/* Step 2: it has not been taken. */
void
hgj_pages_leave_range(HgjHeapPages *pages, const HgjKeptRange *range)
{
	leave_blocks(pages, range->start, range->npages);
	pages->pages_kept -= range->npages;
}

/* Step 2: what another scan of the table has left, to its end, are this one's pages. */
void
hgj_pages_take_left(HgjHeapPages *pages, HgjHeapPages *from)
{
	hgj_pages_begin(pages);
	hgj_pages_end_ranges(pages);
	pages->left = from->left;
	pages->nleft = from->nleft;
	pages->left_room = from->left_room;
	pages->only_left = true;
	from->left = NULL;
	hgj_pages_end_ranges(from);
}

/* The scan is over, or begins again. */
void
hgj_pages_end_ranges(HgjHeapPages *pages)
{
	if (pages->left)
		pfree(pages->left);
	pages->left = NULL;
	pages->nleft = pages->left_room = pages->next_left = 0;
}
