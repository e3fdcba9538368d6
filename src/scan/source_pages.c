/*-------------------------------------------------------------------------
 *
 * source_pages.c
 *	  The source that reads a sequential scan's table itself, page by page.
 *
 * 1. At executor start: is the child a plain SeqScan of a heap table whose
 *	  target list is columns, or computed by who reads it (of_table)?
 * 2. A page (heap_pages.c): the tuples that the snapshot sees.  Drop those that
 *	  the quals remove (page_quals.c), or that the filters of the join, and of
 *	  others above it, know to have no match (page_filters.c).
 * 3. Of the rows that are left, as many as the batch has room for: key columns and
 *	  wanted columns (page_columns.c) go to the batch's vectors, or to vectors of
 *	  our own for keys that nobody else wants.
 * 4. Leave out rows with NULL keys, unless they are owed; write key words.
 * 5. Numerics come as decimals, where these are kept, and all who read the column
 *	  take them; a batch ends where that changes.
 * 6. By-reference values: the build side's are copied.  Those of an outer batch
 *	  stay in the page, which is kept pinned till the batch is void, if enough
 *	  rows of the page are in the batch; otherwise they are copied, too.
 * 7. A device may take pages whose columns are kept as they are stored, before all others
 *	  (kept_ranges.c), and say which of their rows are wanted (chosen_rows.c).
 *
 * Whatever the SeqScan would have counted is counted, but for rows that a key filter
 * drops before the quals: rows and rows removed for EXPLAIN ANALYZE, tuples for
 * statistics (heap_pages.c).  A position within a page is kept from batch to batch, so
 * that no batch has more rows than asked.
 *
 * Memory: the query's context; by-reference values see 6.  Pins and locks: see
 * heap_pages.c.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/tableam.h"
#include "executor/executor.h"
#include "expr/program.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "pgstat.h"
#include "scan/page_source.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* Pages after which other sessions are told how far the scan is. */
#define HGJ_PAGES_PER_SHOW		64

/* A batch ends when so many rows have been dropped for each that it may have. */
#define HGJ_FILTERED_PER_ROW	16

/* Step 1: HGJ_SOURCE_FASTEST, or why the child cannot be read by pages. */
static HgjSourceReason
find_obstacle(const HgjSource *source, EState *estate)
{
	Relation	rel;

	if (!IsA(source->child, SeqScanState))
		return HGJ_SOURCE_OTHER_CHILD;
	rel = ((SeqScanState *) source->child)->ss.ss_currentRelation;
	if (rel->rd_tableam != GetHeapamTableAmRoutine())
		return HGJ_SOURCE_NOT_HEAP;
	if (estate->es_snapshot == NULL ||
		estate->es_snapshot->snapshot_type != SNAPSHOT_MVCC)
		return HGJ_SOURCE_SNAPSHOT;

	for (int i = 1; !source->of_table && i <= list_length(source->child->plan->targetlist); i++)
		if (hgj_page_child_var(source, i) == NULL)
			return HGJ_SOURCE_EXPRESSION;
	for (int c = 0; c < source->ncols; c++)
	{
		AttrNumber	attno = hgj_page_column_attno(source, c);

		if (attno <= 0 && attno != SelfItemPointerAttributeNumber &&
			attno != TableOidAttributeNumber)
			return HGJ_SOURCE_SYSTEM_COLUMN;
	}
	for (int k = 0; k < source->nkeys; k++)
		if (hgj_page_child_var(source, source->keys[k].attno)->varattno <= 0)
			return HGJ_SOURCE_SYSTEM_COLUMN;
	return HGJ_SOURCE_FASTEST;
}

/* Does nobody read the column before rows are taken? */
static bool
is_late(const HgjPageSource *ps, const HgjSource *source, int c)
{
	for (int i = 0; i < ps->quals.ninputs; i++)
		if (ps->quals.inputs[i] == c)
			return false;
	for (int k = 0; k < source->nkeys; k++)
		if (ps->keys[k] == c)
			return false;
	for (int f = 0; f < ps->filters.nfilters; f++)
		for (int k = 0; k < ps->filters.filters[f].asks->nkeys; k++)
			if (ps->filters.filters[f].keys[k] == c)
				return false;
	return true;
}

/* All columns are known, for the time being: where may each of them go? */
static void
settle_columns(HgjPageSource *ps, const HgjSource *source)
{
	int			ncols = Max(ps->columns.ncols, 1);

	if (ps->targets)
	{
		pfree(ps->targets);
		pfree(ps->key_buffers);
		pfree(ps->key_vectors);
	}
	ps->targets = palloc0(mul_size(ncols, sizeof(HgjPageTarget)));
	ps->key_buffers = palloc0(mul_size(ncols, sizeof(HgjBuffer)));
	ps->key_vectors = palloc0(mul_size(ncols, sizeof(HgjVector)));
	for (int c = 0; ps->pages.kept_columns && c < ps->columns.ncols; c++)
		ps->pages.kept_columns->late[c] = is_late(ps, source, c);
	ps->pages.natts = ps->columns.natts;
	hgj_page_filters_costs(&ps->filters, ps->output, ps->noutput);
}

bool
hgj_source_use_pages(HgjSource *source, EState *estate)
{
	MemoryContext old;
	HgjPageSource *ps;
	Relation	rel;

	source->reason = find_obstacle(source, estate);
	if (source->reason != HGJ_SOURCE_FASTEST)
		return false;

	old = MemoryContextSwitchTo(estate->es_query_cxt);
	ps = palloc0(sizeof(HgjPageSource));
	ps->node = castNode(SeqScanState, source->child);
	rel = ps->node->ss.ss_currentRelation;
	hgj_page_columns_init(&ps->columns, RelationGetDescr(rel),
						  hgj_table_may_be_kept(rel) ? HGJ_SLICE_ROWS :
						  MaxHeapTuplesPerPage);
	hgj_page_quals_init(&ps->quals, source, &ps->columns);
	hgj_page_output_init(source, ps);
	hgj_pages_init(&ps->pages, ps->node, &ps->columns,
				   ps->quals.rest != NULL || ps->tid_wanted);
	settle_columns(ps, source);
	source->private_state = ps;
	source->methods = &hgj_source_pages;
	hgj_pages_take_decimals(source, NULL);
	MemoryContextSwitchTo(old);
	return true;
}

/* Could pages come from columns that are kept in memory? */
bool
hgj_pages_may_be_kept(const HgjSource *source)
{
	const HgjPageSource *ps = source->private_state;

	return source->methods == &hgj_source_pages && ps->pages.kept_columns != NULL;
}

/*
 * May the quals come behind the join's own filter, so that a row that the filter drops saves more
 * than looking it up?
 */
bool
hgj_pages_quals_may_wait(const HgjSource *source)
{
	const HgjPageSource *ps = source->private_state;

	return hgj_pages_may_be_kept(source) && ps->quals.may_wait && ps->filters.nfilters > 0;
}

/*
 * Numerics may come as decimals where all who read them take these: the quals, and
 * who gets the batches, if he says so of these columns (NULL: of none).
 */
void
hgj_pages_take_decimals(HgjSource *source, const bool *takes)
{
	HgjPageSource *ps = source->private_state;
	HgjPageColumns *columns = &ps->columns;

	if (!hgj_pages_may_be_kept(source))
		return;					/* no scale is -1 */
	for (int c = 0; c < columns->ncols; c++)
	{
		HgjScanColumn *column = columns->columns[c];
		Form_pg_attribute att = TupleDescAttr(columns->desc, column->attno - 1);
		int			scale = hgj_decimal_scale(att->atttypid, att->atttypmod);

		column->scale = -1;
		for (int i = 0; ps->quals.program && i < ps->quals.ninputs; i++)
			if (ps->quals.inputs[i] == c && scale >= 0 &&
				!hgj_program_takes_decimals(ps->quals.program, i, scale))
				scale = -1;
		for (int k = 0; k < source->nkeys; k++)
			if (ps->keys[k] == c)
				scale = -1;
		for (int i = 0; i < source->ncols; i++)
			if (ps->wanted[i] == c && (takes == NULL || !takes[i]))
				scale = -1;
		column->scale = scale;
	}
}

/*
 * The table's column that the child returns as `resno`, or 0.  A string by another type's
 * name is the same string; integers may be read in another way.
 */
static AttrNumber
table_column(const HgjSource *source, AttrNumber resno)
{
	const Scan *scan = (const Scan *) source->child->plan;
	const Expr *expr = list_nth_node(TargetEntry, scan->plan.targetlist, resno - 1)->expr;
	const Var  *var = (const Var *) expr;

	if (IsA(expr, RelabelType) && get_typlen(exprType((const Node *) expr)) == -1)
		var = (const Var *) ((const RelabelType *) expr)->arg;
	return IsA(var, Var) && var->varno == scan->scanrelid ? var->varattno : 0;
}

/*
 * Let a join further up say which rows it cannot match, if its keys, columns of
 * the child, are the table's (key_filters.c).  saved: what such a row costs the
 * joins.
 */
bool
hgj_pages_offer(HgjSource *source, struct HgjJoinState *join,
				HgjSource *asks, const AttrNumber *columns, double saved,
				HgjKeyFilterStats *stats)
{
	HgjPageSource *ps = source->private_state;
	HgjPageFilters *set = &ps->filters;
	int			nkeys = asks->nkeys;
	AttrNumber *attnos = palloc(mul_size(nkeys, sizeof(AttrNumber)));
	HgjKeyFilter *filter;

	for (int k = 0; k < nkeys; k++)
	{
		attnos[k] = columns[k] ? table_column(source, columns[k]) : 0;
		if (attnos[k] <= 0)
		{
			pfree(attnos);
			return false;
		}
	}
	filter = hgj_page_filters_add(set, asks, attnos);
	pfree(attnos);
	if (filter == NULL)
		return false;
	filter->join = join;
	filter->saved = saved;
	if (set->profile == NULL)
		set->profile = palloc(HGJ_PROFILE_ROWS * sizeof(HgjFilterSet));
	set->stats = stats;
	settle_columns(ps, source);
	return true;
}

/* How many joins the scan asks about its rows; 0: its own, or none. */
int
hgj_pages_nfilters(const HgjSource *source)
{
	const HgjPageSource *ps = source->private_state;

	if (source->methods != &hgj_source_pages || ps->filters.stats == NULL)
		return 0;
	return ps->filters.nfilters;
}

/*
 * The names of the table's columns that one of them is about.  Sets *inner to the side of a
 * join further up whose rows they are looked up in; the source's own leaves it alone.
 */
List *
hgj_pages_filter(const HgjSource *source, int f, const PlanState **inner)
{
	const HgjPageSource *ps = source->private_state;
	const HgjKeyFilter *filter = &ps->filters.filters[f];
	List	   *names = NIL;

	if (filter->join)
		*inner = filter->asks->filter->inner(filter->join);
	for (int k = 0; k < filter->asks->nkeys; k++)
	{
		AttrNumber	attno = ps->columns.columns[filter->keys[k]]->attno;

		names = lappend(names, NameStr(TupleDescAttr(ps->columns.desc,
													 attno - 1)->attname));
	}
	return names;
}

/* Add what this process has done to the counts. */
void
hgj_pages_count(const HgjSource *source, HgjPageCounts *counts)
{
	const HgjPageSource *ps = source->private_state;

	if (source->methods != &hgj_source_pages)
		return;
	counts->kept += ps->pages.pages_kept;
	counts->skipped += ps->pages.pages_skipped;
	counts->fetched += ps->pages.pages_fetched;
	counts->seen += ps->quals.pages_seen;
	counts->read += ps->pages.pages_read;
}

/*
 * Step 2, for the page at hand, or for the next row of it that has to be looked at
 * alone.
 */
static void
look_at_page(HgjSource *source)
{
	HgjPageSource *ps = source->private_state;

	if (ps->quals.looked_at > 0 ||
		(source->careful && hgj_page_quals_may_raise(&ps->quals, source)))
		hgj_page_quals_run(&ps->quals, source, &ps->pages, &ps->columns);
	else
		hgj_page_filters_run(&ps->filters, source, &ps->pages);
}

/*
 * The next page.  Slices of kept columns are small where few rows may be wanted, or
 * where every filter is asked about all of them.
 */
static bool
next_page(HgjSource *source, uint32 max_rows)
{
	HgjPageSource *ps = source->private_state;
	HgjKeptPages *kept = ps->pages.kept_columns;
	bool		many = max_rows > HGJ_BATCH_FIRST_ROWS;

	ps->pages.slice_rows = many && !hgj_key_filters_on_trial(&ps->filters) ?
		ps->columns.most_rows : MaxHeapTuplesPerPage;
	if (kept)
	{
		kept->nbounds = hgj_page_quals_bounds(&ps->quals, kept->bounds,
											  HGJ_MOST_KEPT_BOUNDS);
		kept->may_be_late = hgj_page_quals_exist(&ps->quals) || ps->filters.nfilters > 0;
	}
	return hgj_pages_next(&ps->pages, many);
}

static void
rewind_pages(HgjSource *source)
{
	HgjPageSource *ps = source->private_state;

	hgj_pages_reset(&ps->pages);
	hgj_page_quals_reset(&ps->quals);
	ps->columns.nrows = 0;
	ps->next_row = 0;
	ps->pages_before = ps->pages.pages_kept + ps->pages.pages_read;
	ps->pages_shown = 0;
}

/* Has the scan read so much that it is to be shown?  At the end it always is. */
static inline void
show_pages(HgjSource *source)
{
	HgjPageSource *ps = source->private_state;
	HgjHeapPages *pages = &ps->pages;
	uint64		done = pages->pages_kept + pages->pages_read - ps->pages_before;

	if (!pages->begun)
		return;
	if (done < ps->pages_shown + HGJ_PAGES_PER_SHOW && !pages->at_end && done > 1)
		return;
	ps->pages_shown = done;
	hgj_progress_blocks(source->progress, done, pages->scan->rs_nblocks);
}

/* The next page, or what is kept of some; false at the end of the table. */
static bool
next_shown_page(HgjSource *source, uint32 max_rows)
{
	HgjPageSource *ps = source->private_state;
	bool		was_at_end = ps->pages.at_end;
	bool		found = next_page(source, max_rows);

	if (!was_at_end)
		show_pages(source);
	return found;
}

static void
fill_from_pages(HgjSource *source, HgjBatch *batch, uint32 max_rows)
{
	HgjPageSource *ps = source->private_state;
	HgjHeapPages *pages = &ps->pages;
	PlanState  *child = source->child;
	Size		most_bytes = hgj_batch_value_bytes();
	Size		used_before;
	uint64		returned = 0;	/* rows that the child would have */
	uint64		dropped = 0;	/* by key filters, whether they pass the quals or not */

	hgj_batch_clear(batch);
	if (child->chgParam != NULL)
	{
		rewind_pages(source);
		ExecReScan(child);
	}
	if (!hgj_pages_all_taken(pages))
		hgj_pages_forget(pages);
	if (child->instrument)
		InstrStartNode(child->instrument);

	used_before = batch->values->used;
	max_rows = Min(max_rows, batch->capacity);
	hgj_key_filters_begin(&ps->filters, source);
	ps->filters.dropped = ps->filters.dropped_early = 0;
	while (batch->nrows < max_rows &&
		   (dropped < (uint64) max_rows * HGJ_FILTERED_PER_ROW ||
			batch->nrows == 0) &&
		   batch->values->used - used_before <= most_bytes)
	{
		if (ps->quals.looked_at > 0 && ps->next_row < ps->columns.nrows)
		{
			uint32		n = Min(ps->columns.nrows - ps->next_row,
								max_rows - batch->nrows);

			if (hgj_page_output_must_stop(source, batch))
				break;
			hgj_page_output_take(source, batch, n);
			returned += n;
		}
		else if (!hgj_page_quals_done(&ps->quals))
		{
			if (source->careful && batch->nrows > 0 &&
				hgj_page_quals_may_raise(&ps->quals, source))
				break;
			look_at_page(source);
			dropped = ps->filters.dropped + ps->filters.dropped_early;
		}
		else if (!hgj_pages_full(pages) && next_shown_page(source, max_rows))
		{
			hgj_page_columns_begin(&ps->columns, pages->tuples, pages->ntuples,
								   pages->kind, &pages->prefetch);
			if (pages->kind == HGJ_TUPLES_KEPT)
				ps->columns.kept = &pages->kept_columns->rows;
			hgj_page_quals_begin(&ps->quals, &ps->columns);
			ps->next_row = 0;
		}
		else
			break;
	}
	source->rows_read += returned + ps->filters.dropped;
	if (child->instrument)
		InstrStopNode(child->instrument, (double) (returned + ps->filters.dropped));
}

/* ---- step 7 --------------------------------------------------------------- */

/*
 * May ranges of pages be taken as their columns are kept?  Only by who looks at all rows
 * of them, and at nothing else; forms: what he takes each of the source's columns as.
 * In the query's context.
 */
bool
hgj_pages_offer_ranges(HgjSource *source, const HgjKeptForm *forms)
{
	HgjPageSource *ps = source->private_state;
	HgjKeptPages *kept = ps->pages.kept_columns;
	HgjKeptForm *by_column;

	if (!hgj_pages_may_be_kept(source) || source->nkeys > 0 || ps->columns.ncols == 0 ||
		ps->quals.program != NULL || ps->quals.rest != NULL)
		return false;
	for (int c = 0; c < source->ncols; c++)
		if (ps->wanted[c] < 0)
			return false;		/* tableoid is in no chunk */
	by_column = palloc0(mul_size(ps->columns.ncols, sizeof(HgjKeptForm)));
	for (int c = 0; c < source->ncols; c++)
		by_column[ps->wanted[c]] = forms[c];
	kept->forms = by_column;
	return true;
}

/* The next ranges; chunks of all before stay until hgj_ranges_forget(). */
void
hgj_ranges_begin(HgjSource *source)
{
	HgjPageSource *ps = source->private_state;
	HgjKeptPages *kept = ps->pages.kept_columns;

	if (source->child->chgParam != NULL)
	{
		rewind_pages(source);
		ExecReScan(source->child);
	}
	kept->nread = kept->nbefore;
	kept->nbefore = kept->nheld;
	if (source->child->instrument)
		InstrStartNode(source->child->instrument);
}

/* Of ranges before the last but one hgj_ranges_begin() nobody reads chunks any longer. */
void
hgj_ranges_forget(HgjSource *source)
{
	HgjPageSource *ps = source->private_state;

	hgj_kept_pages_forget_read(ps->pages.kept_columns);
}

/* Per column of the source: the range's chunk, and its first row there. */
bool
hgj_ranges_next(HgjSource *source, HgjKeptRange *range, HgjHeldChunk *chunks,
				uint32 *starts)
{
	HgjPageSource *ps = source->private_state;
	const HgjKeptPages *kept = ps->pages.kept_columns;

	if (!hgj_pages_next_range(&ps->pages, range))
		return false;
	for (int c = 0; c < source->ncols; c++)
	{
		chunks[c] = kept->chunks[ps->wanted[c]];
		starts[c] = kept->rows.starts[ps->wanted[c]];
	}
	return true;
}

/* It has not been taken: its pages come later, with all that are in no range. */
void
hgj_ranges_leave(HgjSource *source, const HgjKeptRange *range)
{
	HgjPageSource *ps = source->private_state;

	hgj_pages_leave_range(&ps->pages, range);
}

/* That is all that goes together. */
void
hgj_ranges_end(HgjSource *source)
{
	if (source->child->instrument)
		InstrStopNode(source->child->instrument, 0);
	show_pages(source);
}

/* So many rows of them have been taken. */
void
hgj_ranges_taken(HgjSource *source, uint64 rows)
{
	HgjPageSource *ps = source->private_state;

	source->rows_read += rows;
	/* as heap_pages.c counts those of other pages */
	pgstat_count_index_tuples(ps->pages.rel, rows);
	if (source->child->instrument)
		source->child->instrument->tuplecount += (double) rows;
}

/* N ranges are to be read after all, of which so many rows had been taken. */
void
hgj_ranges_take_back(HgjSource *source, const HgjKeptRange *ranges, uint32 n, uint64 rows)
{
	for (uint32 i = 0; i < n; i++)
		hgj_ranges_leave(source, &ranges[i]);
	source->rows_read -= rows;
	if (source->child->instrument)
		source->child->instrument->tuplecount -= (double) rows;
}

/* So are all that have not been offered yet. */
void
hgj_ranges_leave_rest(HgjSource *source)
{
	HgjPageSource *ps = source->private_state;
	HgjKeptRange range;

	while (hgj_pages_next_range(&ps->pages, &range))
	{
		CHECK_FOR_INTERRUPTS();
		hgj_pages_leave_range(&ps->pages, &range);
	}
}

const HgjSourceMethods hgj_source_pages = {
	.name = "pages",
	.fill = fill_from_pages,
	.rewind = rewind_pages,
	.end = rewind_pages
};
