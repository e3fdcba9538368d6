/*-------------------------------------------------------------------------
 *
 * source_pages.c
 *	  The source that reads a sequential scan's table itself, page by page.
 *
 * 1. At executor start: is the child a plain SeqScan of a heap table whose
 *	  target list is columns?
 * 2. A page (heap_pages.c): the tuples that the snapshot sees.  Run the quals
 *	  over them (page_quals.c).  Then drop those that the filters of the join,
 *	  and of others above it, know to have no match (page_sieve.c).
 * 3. Of the tuples that are left, as many as the batch has room for: read key
 *	  columns and wanted columns (heap_columns.c) into the batch's vectors, or
 *	  into vectors of our own for keys that nobody else wants.
 * 4. Leave out rows with NULL keys, unless they are owed; write key words.
 * 5. By-reference values: the build side's are copied.  Those of an outer batch
 *	  stay in the page, which is kept pinned till the batch is void, if enough
 *	  rows of the page are in the batch; otherwise they are copied, too.
 *
 * Whatever the SeqScan would have counted is counted: rows and rows removed for
 * EXPLAIN ANALYZE, tuples for statistics (heap_pages.c).  A position within a
 * page is kept from batch to batch, so that no batch has more rows than asked.
 *
 * Memory: the query's context; by-reference values see 5.  Pins and locks: see
 * heap_pages.c.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/tableam.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "scan/heap_columns.h"
#include "scan/heap_pages.h"
#include "scan/page_quals.h"
#include "scan/page_sieve.h"
#include "utils/rel.h"

/* By-reference values of fewer rows of a page than this are copied. */
#define HGJ_PIN_ROWS		8

/* A batch ends when so many rows have been dropped for each that it may have. */
#define HGJ_SIEVED_PER_ROW	16

typedef struct PageSource
{
	SeqScanState *node;
	HgjHeapPages pages;
	uint32		next_row;		/* of pages.tuples; the first pages.ntuples of
								 * them have passed the quals */
	HgjPageQuals quals;
	HgjPageSieve sieve;
	uint32		selection[MaxHeapTuplesPerPage];	/* rows whose keys are not NULL */

	HgjHeapColumns output;		/* wanted columns, and keys */
	HgjHeapTarget *targets;
	HgjBuffer  *key_buffers;	/* one per output column; used for keys that
								 * are not wanted */
	AttrNumber *attnos;			/* per wanted column: the table's */
	int		   *wanted;			/* and its place in output; -1: a system column */
	int		   *keys;			/* per key: its place in output */
	bool		by_reference;	/* a wanted column is */
	bool		tid_wanted;
} PageSource;

/* What the child's output column is a copy of, if it is. */
static Var *
child_var(const HgjSource *source, AttrNumber attno)
{
	Scan	   *scan = (Scan *) source->child->plan;
	TargetEntry *tle = list_nth_node(TargetEntry, scan->plan.targetlist,
									 attno - 1);
	Var		   *var = (Var *) tle->expr;

	return IsA(var, Var) && var->varno == scan->scanrelid ? var : NULL;
}

/* The table's number of a wanted column. */
static AttrNumber
column_attno(const HgjSource *source, int c)
{
	AttrNumber	attno = source->columns[c].attno;

	return source->of_table ? attno : child_var(source, attno)->varattno;
}

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

	for (int i = 1; i <= list_length(source->child->plan->targetlist); i++)
		if (child_var(source, i) == NULL)
			return HGJ_SOURCE_EXPRESSION;
	for (int c = 0; c < source->ncols; c++)
	{
		AttrNumber	attno = column_attno(source, c);

		if (attno <= 0 && attno != SelfItemPointerAttributeNumber &&
			attno != TableOidAttributeNumber)
			return HGJ_SOURCE_SYSTEM_COLUMN;
	}
	for (int k = 0; k < source->nkeys; k++)
		if (child_var(source, source->keys[k].attno)->varattno <= 0)
			return HGJ_SOURCE_SYSTEM_COLUMN;
	return HGJ_SOURCE_FASTEST;
}

/* Which output columns are there, and where do wanted ones and keys lie? */
static void
init_output(HgjSource *source, PageSource *ps, TupleDesc desc)
{
	int			max = source->ncols + source->nkeys;
	AttrNumber *attnos = palloc(mul_size(max, sizeof(AttrNumber)));
	AttrNumber *key_attnos = palloc(mul_size(source->nkeys, sizeof(AttrNumber)));
	int		   *places = palloc(mul_size(max, sizeof(int)));
	int			n = 0;

	ps->attnos = palloc(mul_size(Max(source->ncols, 1), sizeof(AttrNumber)));
	ps->wanted = palloc(mul_size(Max(source->ncols, 1), sizeof(int)));
	ps->keys = palloc(mul_size(source->nkeys, sizeof(int)));
	for (int c = 0; c < source->ncols; c++)
	{
		ps->attnos[c] = column_attno(source, c);
		ps->wanted[c] = -1;
		if (ps->attnos[c] == SelfItemPointerAttributeNumber)
			ps->tid_wanted = true;
		if (ps->attnos[c] <= 0)
			continue;
		ps->wanted[c] = n;
		attnos[n++] = ps->attnos[c];
		if (!source->columns[c].attbyval)
			ps->by_reference = true;
	}
	for (int k = 0; k < source->nkeys; k++)
	{
		AttrNumber	attno = child_var(source, source->keys[k].attno)->varattno;

		ps->keys[k] = 0;
		while (ps->keys[k] < n && attnos[ps->keys[k]] != attno)
			ps->keys[k]++;
		if (ps->keys[k] == n)
			attnos[n++] = attno;
		key_attnos[k] = attno;
	}

	hgj_page_sieve_init(&ps->sieve, source, desc, key_attnos);
	hgj_heap_columns_init(&ps->output, desc, attnos, n, places);
	ps->sieve.read_cost = hgj_heap_columns_cost(&ps->output);
	ps->targets = palloc0(mul_size(n, sizeof(HgjHeapTarget)));
	ps->key_buffers = palloc0(mul_size(n, sizeof(HgjBuffer)));
	for (int c = 0; c < source->ncols; c++)
		if (ps->wanted[c] >= 0)
			ps->wanted[c] = places[ps->wanted[c]];
	for (int k = 0; k < source->nkeys; k++)
		ps->keys[k] = places[ps->keys[k]];
	pfree(attnos);
	pfree(key_attnos);
	pfree(places);
}

bool
hgj_source_use_pages(HgjSource *source, EState *estate)
{
	MemoryContext old;
	TupleDesc	desc;
	PageSource *ps;

	source->reason = find_obstacle(source, estate);
	if (source->reason != HGJ_SOURCE_FASTEST)
		return false;

	old = MemoryContextSwitchTo(estate->es_query_cxt);
	ps = palloc0(sizeof(PageSource));
	ps->node = castNode(SeqScanState, source->child);
	desc = RelationGetDescr(ps->node->ss.ss_currentRelation);
	init_output(source, ps, desc);
	hgj_page_quals_init(&ps->quals, source, desc);
	hgj_pages_init(&ps->pages, ps->node,
				   Max(ps->quals.input.natts, ps->output.natts),
				   ps->quals.rest != NULL || ps->tid_wanted);
	MemoryContextSwitchTo(old);

	source->private_state = ps;
	source->methods = &hgj_source_pages;
	return true;
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
	PageSource *ps = source->private_state;
	HgjPageSieve *sieve = &ps->sieve;
	int			nkeys = asks->nkeys;
	AttrNumber *attnos = palloc(mul_size(nkeys, sizeof(AttrNumber)));
	HgjKeyFilter *filter;

	for (int k = 0; k < nkeys; k++)
	{
		attnos[k] = columns[k] ? child_var(source, columns[k])->varattno : 0;
		if (attnos[k] <= 0)
		{
			pfree(attnos);
			return false;
		}
	}
	filter = hgj_page_sieve_add(sieve, asks, attnos);
	pfree(attnos);
	if (filter == NULL)
		return false;
	filter->join = join;
	filter->saved = saved;
	if (sieve->stats == NULL)
		sieve->profile = palloc(HGJ_PROFILE_ROWS);
	sieve->stats = stats;
	return true;
}

/* How many joins the scan asks about its rows; 0: its own, or none. */
int
hgj_pages_nfilters(const HgjSource *source)
{
	const PageSource *ps = source->private_state;

	if (source->methods != &hgj_source_pages || ps->sieve.stats == NULL)
		return 0;
	return ps->sieve.nfilters;
}

/* The names of the table's columns that one of them is about. */
List *
hgj_pages_filter(const HgjSource *source, int f, struct HgjJoinState **join)
{
	const PageSource *ps = source->private_state;
	const HgjKeyFilter *filter = &ps->sieve.filters[f];
	List	   *names = NIL;

	*join = filter->join;
	for (int k = 0; k < filter->asks->nkeys; k++)
	{
		AttrNumber	attno = filter->columns.columns[filter->keys[k]].attno;

		names = lappend(names, NameStr(TupleDescAttr(ps->sieve.desc,
													 attno - 1)->attname));
	}
	return names;
}

/* Step 2; returns how many tuples were dropped though they passed the quals. */
static uint32
look_at_page(HgjSource *source)
{
	PageSource *ps = source->private_state;
	uint32		first = ps->quals.looked_at;

	hgj_page_quals_run(&ps->quals, source, &ps->pages);
	if (!ps->sieve.active || first > 0 || !hgj_page_quals_done(&ps->quals))
		return 0;
	return hgj_page_sieve_run(&ps->sieve, &ps->pages);
}

/* Move value from[i] to i, counted from the target's first; from ascends. */
static void
close_gaps(const HgjHeapTarget *target, const uint32 *from, uint32 n,
		   uint32 before)
{
	HgjVector  *vector = target->vector;
	uint8		width = vector->width;
	char	   *values = (char *) vector->values + (Size) target->first * width;

	hgj_values_gather(width, values, from, n, values);
	if (!vector->has_nulls)
		return;
	for (uint32 i = 0; i < before; i++)
	{
		bool		null = i < n &&
			hgj_vector_is_null(vector, target->first + from[i]);

		if (null)
			hgj_vector_set_null(vector, target->first + i);
		else
			hgj_vector_set_valid(vector, target->first + i);
	}
}

/* Rows selection[0 .. left) of the last n stay, the others go. */
static void
drop_rows(PageSource *ps, uint32 left, uint32 n)
{
	for (int i = 0; i < ps->output.ncols; i++)
		close_gaps(&ps->targets[i], ps->selection, left, n);
}

/*
 * Step 4 for the n rows that lie at the end of the batch, not yet counted:
 * fill batch->sel, and drop rows with NULL keys if nobody wants them.  Returns
 * how many rows are left.
 */
static uint32
select_rows(HgjSource *source, HgjBatch *batch, uint32 n)
{
	PageSource *ps = source->private_state;
	uint32	   *sel = batch->sel + batch->nsel;
	uint32		left = 0;
	bool		nulls = false;

	if (source->nkeys == 0)
		return n;				/* nobody looks at batch->sel */
	for (int k = 0; k < source->nkeys; k++)
		nulls |= ps->targets[ps->keys[k]].vector->has_nulls;
	for (uint32 i = 0; i < n; i++)
	{
		bool		null = false;

		for (int k = 0; k < source->nkeys && nulls; k++)
		{
			const HgjHeapTarget *target = &ps->targets[ps->keys[k]];

			null |= hgj_vector_is_null(target->vector, target->first + i);
		}
		ps->selection[left] = i;
		sel[left] = batch->nrows + (source->keep_null_keys ? i : left);
		left += null ? 0 : 1;
	}
	batch->nsel += left;
	if (source->keep_null_keys || left == n)
		return n;
	drop_rows(ps, left, n);
	return left;
}

/*
 * System columns of the n rows that lie at the end of the batch, those that
 * find_obstacle() lets by.  from: their tuples, counted from the next one
 * (NULL: all in a row).
 */
static void
read_system_column(PageSource *ps, HgjBatch *batch, const HgjColumn *column,
				   int c, const uint32 *from, uint32 n)
{
	HgjHeapPages *pages = &ps->pages;
	void	   *values = batch->vectors[c].values;

	for (uint32 i = 0; i < n; i++)
	{
		uint32		row = batch->nrows + i;
		uint32		tuple = ps->next_row + (from ? from[i] : i);

		if (ps->attnos[c] == TableOidAttributeNumber)
			((Oid *) values)[row] = RelationGetRelid(pages->rel);
		else
		{
			ItemPointerData tid;
			Datum		kept;

			ItemPointerSet(&tid, pages->block, pages->offsets[tuple]);
			kept = hgj_batch_keep(batch, column, PointerGetDatum(&tid));
			hgj_store((char *) values + (Size) row * column->width,
					  column->width, kept);
		}
	}
}

/* Codes of the dictionary for n values that aim() has sent to a buffer. */
static void
encode_values(HgjBatch *batch, int c, HgjDictionary *dictionary,
			  const HgjVector *values, uint32 n)
{
	HgjVector  *into = &batch->vectors[c];
	uint32		first = batch->nrows;

	for (uint32 i = 0; i < n; i++)
		if (hgj_vector_is_null(values, i))
			hgj_vector_set_null(into, first + i);
		else
			((Datum *) into->values)[first + i] =
				hgj_dictionary_code(dictionary, ((Datum *) values->values)[i],
									batch->values);
}

/* Step 5 for the n rows that lie at the end of the batch. */
static void
settle_references(HgjSource *source, HgjBatch *batch, uint32 n)
{
	PageSource *ps = source->private_state;

	if (!ps->by_reference || n == 0)
		return;
	for (int c = 0; c < source->ncols; c++)
		if (source->columns[c].dictionary && ps->wanted[c] >= 0)
			encode_values(batch, c, source->columns[c].dictionary,
						  ps->targets[ps->wanted[c]].vector, n);
	if (batch->values == &batch->own_values && n >= HGJ_PIN_ROWS &&
		ps->pages.may_keep > 0)
	{
		ps->pages.keep = true;
		return;
	}
	for (int c = 0; c < source->ncols; c++)
	{
		HgjVector  *vector = &batch->vectors[c];
		Datum	   *values = (Datum *) vector->values;

		if (source->columns[c].attbyval || source->columns[c].dictionary ||
			ps->wanted[c] < 0)
			continue;
		for (uint32 i = batch->nrows; i < batch->nrows + n; i++)
			if (!hgj_vector_is_null(vector, i))
				values[i] = hgj_batch_keep(batch, &source->columns[c],
										   values[i]);
	}
}

/* Where the output columns go: behind the batch's rows, or to buffers. */
static void
aim(HgjSource *source, HgjBatch *batch)
{
	PageSource *ps = source->private_state;

	for (int i = 0; i < ps->output.ncols; i++)
		ps->targets[i].vector = NULL;
	for (int c = 0; c < source->ncols; c++)
		if (ps->wanted[c] >= 0 && source->columns[c].dictionary == NULL)
		{
			ps->targets[ps->wanted[c]].vector = &batch->vectors[c];
			ps->targets[ps->wanted[c]].first = batch->nrows;
		}
	for (int i = 0; i < ps->output.ncols; i++)
		if (ps->targets[i].vector == NULL)
		{
			hgj_buffer_reserve(batch->context, &ps->key_buffers[i],
							   ps->output.columns[i].width,
							   MaxHeapTuplesPerPage);
			ps->targets[i].vector = &ps->key_buffers[i].vector;
			ps->targets[i].first = 0;
		}
}

/* Steps 3 to 5: add the next n tuples of the page to the batch. */
static void
take_rows(HgjSource *source, HgjBatch *batch, uint32 n)
{
	PageSource *ps = source->private_state;
	uint32		left;

	aim(source, batch);
	hgj_heap_columns_read(&ps->output, ps->pages.tuples + ps->next_row, n,
						  ps->pages.kind, ps->targets,
						  &ps->pages.prefetch);
	hgj_prefetch_more(&ps->pages.prefetch, HGJ_PREFETCH_LINES);
	left = select_rows(source, batch, n);
	hgj_prefetch_more(&ps->pages.prefetch, HGJ_PREFETCH_LINES);
	for (int c = 0; c < source->ncols; c++)
		if (ps->wanted[c] < 0)
			read_system_column(ps, batch, &source->columns[c], c,
							   left < n ? ps->selection : NULL, left);
	for (int k = 0; k < source->nkeys; k++)
	{
		const HgjHeapTarget *target = &ps->targets[ps->keys[k]];

		hgj_key_words_vector(&source->keys[k], target->vector, target->first,
							 left, source->seed, batch->words, batch->nrows,
							 source->econtext->ecxt_per_tuple_memory);
	}
	hgj_prefetch_more(&ps->pages.prefetch, BLCKSZ / HGJ_CACHE_LINE);
	settle_references(source, batch, left);
	batch->nrows += left;
	ps->next_row += n;
}

static void
rewind_pages(HgjSource *source)
{
	PageSource *ps = source->private_state;

	hgj_pages_reset(&ps->pages);
	hgj_page_quals_reset(&ps->quals);
	ps->next_row = 0;
}

static void
fill_from_pages(HgjSource *source, HgjBatch *batch, uint32 max_rows)
{
	PageSource *ps = source->private_state;
	HgjHeapPages *pages = &ps->pages;
	PlanState  *child = source->child;
	Size		most_bytes = hgj_batch_value_bytes();
	Size		used_before;
	uint64		returned = 0;	/* rows that the child would have */
	uint64		dropped = 0;

	hgj_batch_clear(batch);
	hgj_pages_forget(pages);
	if (child->chgParam != NULL)
	{
		rewind_pages(source);
		ExecReScan(child);
	}
	if (child->instrument)
		InstrStartNode(child->instrument);

	used_before = batch->values->used;
	max_rows = Min(max_rows, batch->capacity);
	hgj_key_filters_begin(&ps->sieve, source);
	while (batch->nrows < max_rows &&
		   (dropped < (uint64) max_rows * HGJ_SIEVED_PER_ROW ||
			batch->nrows == 0) &&
		   batch->values->used - used_before <= most_bytes)
	{
		if (ps->next_row < pages->ntuples)
		{
			uint32		n = Min(pages->ntuples - ps->next_row,
								max_rows - batch->nrows);

			take_rows(source, batch, n);
			returned += n;
		}
		else if (!hgj_page_quals_done(&ps->quals))
		{
			if (source->careful && batch->nrows > 0 &&
				hgj_page_quals_may_raise(&ps->quals, source))
				break;
			dropped += look_at_page(source);
		}
		else if (!hgj_pages_full(pages) &&
				 hgj_pages_next(pages, max_rows > HGJ_BATCH_FIRST_ROWS))
		{
			hgj_page_quals_begin(&ps->quals, pages);
			ps->next_row = 0;
		}
		else
			break;
	}
	source->rows_read += returned + dropped;
	if (child->instrument)
		InstrStopNode(child->instrument, (double) (returned + dropped));
}

const HgjSourceMethods hgj_source_pages = {
	.name = "pages",
	.fill = fill_from_pages,
	.rewind = rewind_pages,
	.end = rewind_pages
};
