/*-------------------------------------------------------------------------
 *
 * page_sieve.c
 *	  Outer rows that cannot match, dropped before they are read.
 *
 * Where few outer rows match, and the join returns nothing for the others, most
 * of what the pages source does is for rows that the table's filter will throw
 * out.  So it asks the filter first, page by page.  In a chain of joins it asks
 * the filters of those further up as well, each of which may be asked first
 * (filter_order.c says which ones, and in which order):
 *
 * 1. Read the filter's key columns of the page's tuples, and nothing else.  Rows
 *	  with a NULL key match nothing.
 * 2. Make their key words, and let the join's engine say which may have a match.
 * 3. Only these tuples stay in the page's list.  The next filter is asked about
 *	  them, and the source reads them as if there had been no others.
 * 4. Now and then a page is a trial: every filter is asked about all of its
 *	  tuples, so that it is known what each lets pass, and whether it is the
 *	  same rows as another.
 *
 * The engine decides when a filter is worth making, from the matches it has found
 * so far (probe.c asks).  Keys that go through a type's own hash function are left
 * alone: hashing them twice would cost more than is saved.
 *
 * Memory: the query's context, a few arrays as long as a page has tuples.  No
 * locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "scan/page_sieve.h"

/* Nanoseconds a row, roughly; only their proportions matter. */
#define HGJ_WORD_COST		1.0
#define HGJ_TEXT_WORD_COST	6.0
#define HGJ_TEST_COST		4.0

static double
words_cost(const HgjSource *asks)
{
	double		cost = 0;

	for (int k = 0; k < asks->nkeys; k++)
		cost += hgj_key_is_text(asks->keys[k].kind) ? HGJ_TEXT_WORD_COST :
			HGJ_WORD_COST * asks->keys[k].nwords;
	return cost;
}

/*
 * Another filter, if there can be one: key_attnos are the table's columns that
 * the keys of `asks` are.
 */
HgjKeyFilter *
hgj_page_sieve_add(HgjPageSieve *sieve, HgjSource *asks,
				   const AttrNumber *key_attnos)
{
	HgjKeyFilter *filter = &sieve->filters[sieve->nfilters];
	int			nkeys = asks->nkeys;

	if (sieve->nfilters == HGJ_MOST_KEY_FILTERS || nkeys == 0)
		return NULL;
	for (int k = 0; k < nkeys; k++)
		if (asks->keys[k].kind == HGJ_KEY_OPAQUE)
			return NULL;
	sieve->nfilters++;

	filter->asks = asks;
	filter->keys = palloc(mul_size(nkeys, sizeof(int)));
	hgj_heap_columns_init(&filter->columns, sieve->desc, key_attnos, nkeys,
						  filter->keys);
	filter->targets = palloc0(mul_size(nkeys, sizeof(HgjHeapTarget)));
	filter->buffers = palloc0(mul_size(nkeys, sizeof(HgjBuffer)));
	for (int i = 0; i < nkeys; i++)
	{
		hgj_buffer_reserve(CurrentMemoryContext, &filter->buffers[i],
						   filter->columns.columns[i].width,
						   MaxHeapTuplesPerPage);
		filter->targets[i].vector = &filter->buffers[i].vector;
	}
	filter->words = palloc(mul_size(asks->nwords, sizeof(uint64 *)));
	for (uint32 w = 0; w < asks->nwords; w++)
		filter->words[w] = palloc(MaxHeapTuplesPerPage * sizeof(uint64));
	filter->cost = hgj_heap_columns_cost(&filter->columns) + words_cost(asks) +
		HGJ_TEST_COST;
	return filter;
}

/* Get ready; key_attnos are the table's columns that the source's keys are. */
void
hgj_page_sieve_init(HgjPageSieve *sieve, HgjSource *source, TupleDesc desc,
					const AttrNumber *key_attnos)
{
	memset(sieve, 0, sizeof(*sieve));
	sieve->desc = desc;
	sieve->valid = palloc(MaxHeapTuplesPerPage * sizeof(uint32));
	sieve->passed = palloc((MaxHeapTuplesPerPage + 1) * sizeof(uint32));
	(void) hgj_page_sieve_add(sieve, source, key_attnos);
}

/* Step 1; returns how many rows' keys are not NULL, and *all if all are. */
static uint32
read_keys(HgjPageSieve *sieve, HgjKeyFilter *filter, HgjHeapPages *pages,
		  bool *all)
{
	uint32		n = pages->ntuples;
	uint32		nvalid = 0;
	bool		nulls = false;

	for (int i = 0; i < filter->columns.ncols; i++)
		hgj_vector_all_valid(filter->targets[i].vector, MaxHeapTuplesPerPage);
	hgj_heap_columns_read(&filter->columns, pages->tuples, n, pages->kind,
						  filter->targets, &pages->prefetch);
	for (int i = 0; i < filter->columns.ncols; i++)
		nulls |= filter->targets[i].vector->has_nulls;
	*all = !nulls;
	if (!nulls)
		return n;
	for (uint32 row = 0; row < n; row++)
	{
		bool		null = false;

		for (int i = 0; i < filter->columns.ncols; i++)
			null |= hgj_vector_is_null(filter->targets[i].vector, row);
		sieve->valid[nvalid] = row;
		nvalid += !null;
	}
	return nvalid;
}

/*
 * Steps 1 and 2 for the tuples that are left of the page: the places of those
 * that may have a match go to sieve->passed.  Returns how many.
 */
static uint32
ask(HgjPageSieve *sieve, int f, HgjHeapPages *pages)
{
	HgjKeyFilter *filter = &sieve->filters[f];
	HgjSource  *asks = filter->asks;
	uint32		n = pages->ntuples;
	HgjKeys		keys = {0};
	bool		all;
	uint32		passed;

	keys.nrows = n;
	keys.nsel = read_keys(sieve, filter, pages, &all);
	keys.sel = all ? NULL : sieve->valid;
	keys.words = (const uint64_t *const *) filter->words;
	keys.location = HGJ_ON_HOST;
	for (int k = 0; k < asks->nkeys; k++)
		hgj_key_words_vector(&asks->keys[k],
							 filter->targets[filter->keys[k]].vector, 0, n,
							 asks->seed, filter->words, 0,
							 asks->econtext->ecxt_per_tuple_memory);
	hgj_prefetch_more(&pages->prefetch, HGJ_PREFETCH_LINES);
	passed = asks->filter->ask(asks->sieve_of, &keys, sieve->passed);
	if (sieve->stats)
	{
		sieve->stats[f].tested += n;
		sieve->stats[f].passed += passed;
	}
	return passed;
}

/* Step 3: the tuples at sieve->passed[0 .. n) stay. */
static void
keep_tuples(const HgjPageSieve *sieve, HgjHeapPages *pages, uint32 n)
{
	if (n == pages->ntuples)
		return;
	for (uint32 i = 0; i < n; i++)
		pages->tuples[i] = pages->tuples[sieve->passed[i]];
	for (uint32 i = 0; i < n && pages->want_offsets; i++)
		pages->offsets[i] = pages->offsets[sieve->passed[i]];
	pages->ntuples = n;
}

/* Step 4. */
static void
run_trial(HgjPageSieve *sieve, HgjHeapPages *pages)
{
	uint8		masks[MaxHeapTuplesPerPage] = {0};
	uint32		n = pages->ntuples;
	uint32		left = 0;

	for (int f = 0; f < sieve->nfilters; f++)
	{
		uint8		bit = 1 << f;
		uint32		passed;

		if ((sieve->ready & bit) == 0)
			continue;
		passed = ask(sieve, f, pages);
		for (uint32 i = 0; i < passed; i++)
			masks[sieve->passed[i]] |= bit;
	}
	hgj_key_filters_note(sieve, masks, n);
	for (uint32 row = 0; row < n; row++)
	{
		sieve->passed[left] = row;
		left += masks[row] == sieve->ready;
	}
	keep_tuples(sieve, pages, left);
}

/* The filters, over the current page; returns how many tuples were dropped. */
uint32
hgj_page_sieve_run(HgjPageSieve *sieve, HgjHeapPages *pages)
{
	uint32		n = pages->ntuples;

	if (n == 0)
		return 0;
	if (hgj_key_filters_on_trial(sieve))
		run_trial(sieve, pages);
	else
	{
		sieve->since_trial += n;
		for (int i = 0; i < sieve->norder && pages->ntuples > 0; i++)
			keep_tuples(sieve, pages, ask(sieve, sieve->order[i], pages));
	}
	hgj_prefetch_more(&pages->prefetch, BLCKSZ / HGJ_CACHE_LINE);
	return n - pages->ntuples;
}
