/*-------------------------------------------------------------------------
 *
 * chosen_rows.c
 *	  Rows of a scan that somebody else has chosen by columns that are kept in memory: what
 *	  this scan wants of them, for source_pages.c.
 *
 * 1. Another source over the same scan has offered ranges of pages (kept_ranges.c), and has
 *	  been told which of their rows are wanted (pipeline/device_rows_kept.c).  This one has
 *	  more columns, or others: where they are kept, too, and pages are valid, they come from
 *	  chunks; those that are not kept are fetched (late_columns.c).
 * 2. Rows are taken a slice at a time: valid pages of one run, one after the other, however
 *	  many rows they have.  Where few are wanted, the next ones are far away, and are
 *	  waited for together.  A page that is not valid any more, or not for these chunks, is a
 *	  slice of its own, all columns of which are fetched: the snapshot sees the tuples that
 *	  the other chunks have rows of, in their order.
 * 3. Pages that the other source has left are read here as ever, after that.
 *
 * Quals have been looked at, and are not here.
 *
 * Memory, pins and locks: source_pages.c.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "scan/page_source.h"

/* Step 2: the slice that begins with a page.  Returns the number of the page behind it. */
static uint32
begin_slice(HgjPageSource *ps, const HgjKeptRange *range, uint32 page)
{
	HgjKeptPages *kept = ps->pages.kept_columns;
	BlockNumber run = range->start - hgj_run_page(range->start);
	uint32		last = hgj_run_page(range->start) + range->npages;
	uint32		end = page + 1;
	uint32		n;

	if (hgj_kept_page(kept, run + page, NULL))
	{
		hgj_kept_slice(kept, run + page);
		end += hgj_kept_pages_behind(kept, run + page, last - end, NULL);
	}
	else
		hgj_kept_slice_missing(kept, run + page, range->first);
	n = range->first[end] - range->first[page];
	Assert(end == page + 1 || n == kept->one->chunk->first[end] - kept->one->chunk->first[page]);
	ps->pages.ntuples = n;
	ps->pages.kind = HGJ_TUPLES_KEPT;
	ps->pages.prefetch.next = ps->pages.prefetch.end = NULL;
	hgj_page_columns_begin(&ps->columns, ps->pages.tuples, n, HGJ_TUPLES_KEPT,
						   &ps->pages.prefetch);
	ps->columns.kept = &kept->rows;
	ps->next_row = 0;
	return end;
}

/*
 * Step 2: rows of a range, by their numbers in it, ascending, to the end of the batch, until
 * that has max_rows, or cannot go on with them.  Returns how many.  The first rows of a batch
 * come after hgj_chosen_begin().
 */
uint32
hgj_chosen_take(HgjSource *source, HgjBatch *batch, const HgjKeptRange *range,
				const uint32 *rows, uint32 n, uint32 max_rows)
{
	HgjPageSource *ps = source->private_state;
	uint32		page = hgj_run_page(range->start);
	uint32		base = range->first[page];
	Size		most_bytes = hgj_batch_value_bytes();
	uint32		taken = 0;

	while (taken < n && batch->nrows < max_rows && batch->values->used <= most_bytes)
	{
		uint32		before = batch->nrows;
		uint32		most = Min(Min(n - taken, max_rows - before), ps->columns.most_rows);
		uint32		start;
		uint32		end;
		uint32		some;

		while (base + rows[taken] >= range->first[page + 1])
			page++;
		start = range->first[page];
		end = range->first[begin_slice(ps, range, page)];
		for (some = 0; some < most && base + rows[taken + some] < end; some++)
			ps->selection[some] = base + rows[taken + some] - start;
		hgj_page_columns_keep(&ps->columns, ps->selection, some);
		/* whether it can go on depends on which rows those are */
		if (hgj_page_output_must_stop(source, batch))
			break;
		ps->pages.kept_columns->taken += some;
		hgj_page_output_take(source, batch, some);
		if (batch->nrows != before + some)
			elog(ERROR, "a row whose key is NULL has been joined");
		taken += some;
	}
	return taken;
}

/* A batch of such rows begins: what earlier ones have pointers to may go. */
void
hgj_chosen_begin(HgjSource *source, HgjBatch *batch)
{
	HgjPageSource *ps = source->private_state;

	hgj_batch_clear(batch);
	hgj_pages_begin(&ps->pages);
	hgj_pages_forget(&ps->pages);
	hgj_kept_choose(ps->pages.kept_columns, true);
}

/* Step 3: there are no more; from: has looked at all pages, or NULL: nobody wants others. */
void
hgj_chosen_end(HgjSource *source, HgjSource *from)
{
	HgjPageSource *ps = source->private_state;
	HgjPageSource *chose = from ? from->private_state : NULL;

	hgj_kept_choose(ps->pages.kept_columns, false);
	ps->columns.nrows = ps->next_row = 0;
	if (chose && chose->pages.only_left)
		hgj_pages_take_left(&ps->pages, &chose->pages);
}
