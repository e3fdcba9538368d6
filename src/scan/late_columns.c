/*-------------------------------------------------------------------------
 *
 * late_columns.c
 *	  Columns that are not kept in memory, of rows whose other columns are: fetched from
 *	  the table's pages for the rows that are taken, after all filters.
 *
 * 1. kept_pages.c lets columns be missing that nobody reads before rows are taken, where
 *	  there are filters, and few pages have rows that pass them.
 * 2. A page with rows that are taken is read as any page of the scan.  It was valid when the
 *	  scan came to it, and so the tuples that the snapshot sees of it, in their order, are
 *	  the rows that the chunks have of it, whatever has been done to the page since: a row's
 *	  number among those of its page is that of its tuple.
 * 3. By-reference values are copied to the batch's own arena: the page is not pinned any
 *	  longer than that takes.  Who lends the batch an arena gets them copied from there.
 *
 * Memory: the batch's.  Locks: a page's content lock, in share mode, while its tuples are
 * looked for (heap_pages.c).
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "miscadmin.h"
#include "scan/page_source.h"
#include "utils/rel.h"

/* Steps 2 and 3: the columns that are missing, of tuple i of the page, as row `row`. */
static void
put_columns(HgjPageSource *ps, HgjBatch *batch, uint32 i, uint32 row)
{
	const HgjPageColumns *columns = &ps->columns;
	HeapTupleData tuple;

	hgj_pages_tuple(&ps->pages, i, &tuple);
	for (int c = 0; c < columns->ncols; c++)
	{
		const HgjPageTarget *target = &ps->targets[c];
		const HgjScanColumn *column = columns->columns[c];
		Datum		value;
		bool		isnull;

		if (target->vector == NULL || columns->kept->chunks[c] != NULL)
			continue;
		value = heap_getattr(&tuple, column->attno, columns->desc, &isnull);
		if (!isnull && !column->attbyval)
			value = hgj_arena_copy(&batch->own_values, value,
								   TupleDescAttr(columns->desc, column->attno - 1)->attlen);
		hgj_vector_put(target->vector, target->first + row, value, isnull);
	}
}

/* Step 2: the tuples of a page that the chunks have so many rows of. */
static void
fetch_page(HgjPageSource *ps, BlockNumber block, uint32 nrows)
{
	uint32		ntuples = hgj_pages_fetch(&ps->pages, block);

	if (ntuples != nrows)
		elog(ERROR, "block %u of relation \"%s\" has %u rows, and %u of its columns",
			 block, RelationGetRelationName(ps->pages.rel), ntuples, nrows);
	if (!ps->pages.kept_columns->chosen)
		ps->pages.kept_columns->late_fetched++;
}

/* The next n rows of the slice at hand, which go to the end of the batch. */
void
hgj_late_columns_take(HgjPageSource *ps, HgjBatch *batch, uint32 n)
{
	const HgjPageColumns *columns = &ps->columns;
	const uint32 *first = columns->kept->first;
	BlockNumber block = columns->kept->block;
	uint32		start = hgj_run_page(block);
	uint32		page = start;
	bool		fetched = false;

	for (uint32 row = 0; row < n; row++)
	{
		uint32		at = first[start] + hgj_page_row(columns, ps->next_row + row);

		if (fetched && at >= first[page + 1])
		{
			hgj_pages_fetched(&ps->pages);
			fetched = false;
		}
		while (at >= first[page + 1])
			page++;
		if (!fetched)
		{
			CHECK_FOR_INTERRUPTS();
			fetch_page(ps, block + (page - start), first[page + 1] - first[page]);
			fetched = true;
		}
		put_columns(ps, batch, at - first[page], row);
	}
	if (fetched)
		hgj_pages_fetched(&ps->pages);
}
