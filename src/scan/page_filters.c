/*-------------------------------------------------------------------------
 *
 * page_filters.c
 *	  Outer rows that cannot match, dropped before they are read.
 *
 * Where few outer rows match, and the join returns nothing for the others, most
 * of what the pages source does is for rows that the table's filter will throw
 * out.  So it asks the filter first, page by page.  In a chain of joins it asks
 * the filters of those further up as well, each of which may be asked first
 * (filter_order.c says which ones, in which order, and when it is the turn of the
 * scan's own quals: in front of them all, where these may raise an error):
 *
 * 1. Read the filter's key columns of the rows that are left of the page, and
 *	  nothing else.  Rows with a NULL key match nothing.
 * 2. Make their key words, and let the join's engine say which may have a match.  A
 *	  single integer that is kept in memory is widened to its word at once; of all rows of
 *	  a slice, an engine may read it as it is kept.
 * 3. Only these rows are left.  The next filter is asked about them, and the source
 *	  reads them as if there had been no others.
 * 4. Now and then a page is a trial: every filter is asked about all of its
 *	  rows, so that it is known what each lets pass, and whether it is the
 *	  same rows as another.
 *
 * The engine decides when a filter is worth making, from the matches it has found
 * so far (probe.c asks).  Keys that go through a type's own hash function are left
 * alone: hashing them twice would cost more than is saved.
 *
 * Where quals come behind a filter, the scan returns fewer rows, and removes fewer
 * by its filter, than PostgreSQL's would: EXPLAIN ANALYZE says how many it did.
 *
 * Memory: the query's context, a few arrays as long as a page, or a slice of kept columns, has rows.  No
 * locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "scan/page_filters.h"

/* Nanoseconds a row, roughly; only their proportions matter. */
#define HGJ_WORD_COST		1.0
#define HGJ_TEXT_WORD_COST	6.0
#define HGJ_TEST_COST		4.0
#define HGJ_QUAL_COST		2.0
#define HGJ_ROW_QUAL_COST	60.0

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
hgj_page_filters_add(HgjPageFilters *set, HgjSource *asks,
					 const AttrNumber *key_attnos)
{
	HgjKeyFilter *filter = &set->filters[set->nfilters];
	int			nkeys = asks->nkeys;

	if (set->nfilters == HGJ_MOST_KEY_FILTERS || nkeys == 0)
		return NULL;
	for (int k = 0; k < nkeys; k++)
		if (asks->keys[k].kind == HGJ_KEY_OPAQUE)
			return NULL;
	set->nfilters++;

	filter->asks = asks;
	filter->keys = palloc(mul_size(nkeys, sizeof(int)));
	filter->dense = palloc(mul_size(nkeys, sizeof(HgjVector *)));
	filter->room = palloc0(mul_size(nkeys, sizeof(HgjBuffer)));
	for (int k = 0; k < nkeys; k++)
	{
		filter->keys[k] = hgj_page_columns_add(set->columns, key_attnos[k]);
		hgj_buffer_reserve(CurrentMemoryContext, &filter->room[k],
						   set->columns->columns[filter->keys[k]]->width,
						   set->columns->most_rows);
	}
	filter->words = palloc(mul_size(asks->nwords, sizeof(uint64 *)));
	for (uint32 w = 0; w < asks->nwords; w++)
		filter->words[w] = palloc(set->columns->most_rows * sizeof(uint64));
	return filter;
}

/* Get ready; key_attnos are the table's columns that the source's keys are. */
void
hgj_page_filters_init(HgjPageFilters *set, HgjPageColumns *columns,
					  HgjPageQuals *quals, HgjSource *source,
					  const AttrNumber *key_attnos)
{
	memset(set, 0, sizeof(*set));
	set->columns = columns;
	set->quals = quals;
	set->valid = palloc(columns->most_rows * sizeof(uint32));
	set->passed = palloc((columns->most_rows + 1) * sizeof(uint32));
	if (quals->may_wait)
		set->profile = palloc(HGJ_PROFILE_ROWS * sizeof(HgjFilterSet));
	/* a row that its own join's filter lets pass is looked up there */
	if (hgj_page_filters_add(set, source, key_attnos))
		set->filters[0].saved = HGJ_ROW_JOIN_COST;
}

/* Once all columns are known, of which the source returns `output`. */
void
hgj_page_filters_costs(HgjPageFilters *set, const int *output, int n)
{
	const HgjPageColumns *columns = set->columns;
	const HgjPageQuals *quals = set->quals;

	set->read_cost = hgj_page_columns_cost(columns, output, n);
	set->quals_cost = hgj_page_columns_cost(columns, quals->inputs,
											quals->ninputs) +
		(quals->program ? HGJ_QUAL_COST : 0) + (quals->rest ? HGJ_ROW_QUAL_COST : 0);
	for (int f = 0; f < set->nfilters; f++)
	{
		HgjKeyFilter *filter = &set->filters[f];

		filter->cost = hgj_page_columns_cost(columns, filter->keys,
											 filter->asks->nkeys) +
			words_cost(filter->asks) + HGJ_TEST_COST;
	}
}

/*
 * Is the only key an integer, whose word is what is kept of its column?  What reads the column
 * later reads it again, of the few rows that are left then.
 */
static bool
is_integer(const HgjKeyFilter *filter)
{
	return filter->asks->nkeys == 1 && hgj_key_is_integer(filter->asks->keys[0].kind);
}

/* Steps 1 and 2 in one, for such a key. */
static bool
read_words(HgjPageFilters *set, HgjKeyFilter *filter)
{
	return is_integer(filter) &&
		hgj_page_column_integers(set->columns, filter->keys[0],
								 filter->words[filter->asks->keys[0].first_word]);
}

/*
 * Step 1: the keys of the rows that are left, one behind the other.  Returns how
 * many are not NULL, and *all if all are.
 */
static uint32
read_keys(HgjPageFilters *set, HgjKeyFilter *filter, bool *all)
{
	HgjPageColumns *columns = set->columns;
	int			nkeys = filter->asks->nkeys;
	uint32		n = columns->nrows;
	uint32		nvalid = 0;
	bool		nulls = false;

	hgj_page_columns_read(columns, filter->keys, nkeys);
	for (int k = 0; k < nkeys; k++)
	{
		filter->dense[k] = hgj_page_column_dense(columns, filter->keys[k],
												 &filter->room[k].vector);
		nulls |= filter->dense[k]->has_nulls;
	}
	*all = !nulls;
	if (!nulls)
		return n;
	for (uint32 i = 0; i < n; i++)
	{
		bool		null = false;

		for (int k = 0; k < nkeys; k++)
			null |= hgj_vector_is_null(filter->dense[k], i);
		set->valid[nvalid] = i;
		nvalid += !null;
	}
	return nvalid;
}

/*
 * Steps 1 and 2 for the rows that are left of the page: the places of those
 * that may have a match go to set->passed.  Returns how many.
 */
static uint32
ask_words(HgjPageFilters *set, HgjKeyFilter *filter)
{
	HgjPageColumns *columns = set->columns;
	HgjSource  *asks = filter->asks;
	const HgjKeyWords to = {filter->words, 0, asks->seed,
	asks->econtext->ecxt_per_tuple_memory};
	uint32		n = columns->nrows;
	HgjKeys		keys = {0};
	bool		all;

	keys.nrows = n;
	keys.words = (const uint64_t *const *) filter->words;
	keys.location = HGJ_ON_HOST;
	if (!read_words(set, filter))
	{
		keys.nsel = read_keys(set, filter, &all);
		keys.sel = all ? NULL : set->valid;
		for (int k = 0; k < asks->nkeys; k++)
			hgj_key_words_vector(&asks->keys[k], filter->dense[k], 0, n, &to);
	}
	hgj_prefetch_more(columns->prefetch, HGJ_PREFETCH_LINES);
	return asks->filter->ask(asks->filter_of, &keys, set->passed);
}

/* The same without the words, where that can be. */
static bool
ask_packed(HgjPageFilters *set, HgjKeyFilter *filter, uint32 *passed)
{
	HgjSource  *asks = filter->asks;
	HgjPackedKeys keys;

	return is_integer(filter) && hgj_page_column_packed(set->columns, filter->keys[0], &keys) &&
		asks->filter->ask_packed(asks->filter_of, &keys, set->passed, passed);
}

/* The filter's question about the rows that are left, in the shorter way; it is counted. */
static uint32
ask(HgjPageFilters *set, int f)
{
	HgjKeyFilter *filter = &set->filters[f];
	uint32		n = set->columns->nrows;
	uint32		passed;

	if (!ask_packed(set, filter, &passed))
		passed = ask_words(set, filter);
	if (set->stats)
	{
		set->stats[f].tested += n;
		set->stats[f].passed += passed;
	}
	return passed;
}

/*
 * Step 4: every filter that can be asked, about all rows of the page that pass the
 * quals, or, where these may wait, about all; then the quals.  No trial where a row's
 * quals raise an error that is put off: other rows will join those that are left.
 */
static void
run_trial(HgjPageFilters *set, HgjSource *source, HgjHeapPages *pages)
{
	HgjPageColumns *columns = set->columns;
	HgjFilterSet masks[HGJ_SLICE_ROWS];
	bool		waits = set->quals->may_wait;
	uint32		n;
	uint32		left = 0;

	if (!waits)
		hgj_page_quals_run(set->quals, source, pages, columns);
	if (!waits && !hgj_page_quals_done(set->quals))
		return;
	n = columns->nrows;
	memset(masks, 0, n * sizeof(HgjFilterSet));
	for (int f = 0; f < set->nfilters && n > 0; f++)
	{
		HgjFilterSet bit = 1 << f;
		uint32		passed;

		if ((set->ready & bit) == 0)
			continue;
		passed = ask(set, f);
		for (uint32 i = 0; i < passed; i++)
			masks[set->passed[i]] |= bit;
	}
	if (waits)
	{
		/* they see all rows, whose numbers are their places */
		hgj_page_quals_run(set->quals, source, pages, columns);
		for (uint32 i = 0; i < columns->nrows; i++)
			masks[hgj_page_row(columns, i)] |= 1 << HGJ_QUALS_PLACE;
	}
	hgj_key_filters_note(set, masks, n);
	for (uint32 i = 0; i < columns->nrows; i++)
	{
		uint32		place = waits ? hgj_page_row(columns, i) : i;

		set->passed[left] = i;
		left += (masks[place] & set->ready) == set->ready;
	}
	set->dropped += columns->nrows - left;
	hgj_page_columns_keep(columns, set->passed, left);
}

/* The filters and the quals, over all rows of a new page. */
void
hgj_page_filters_run(HgjPageFilters *set, HgjSource *source,
					 HgjHeapPages *pages)
{
	HgjPageColumns *columns = set->columns;
	bool		qualified = false;

	if (hgj_key_filters_on_trial(set))
	{
		run_trial(set, source, pages);
		return;
	}
	set->since_trial += columns->nrows;
	for (int i = 0; i < set->norder; i++)
	{
		uint32		n = columns->nrows;

		if (set->order[i] == HGJ_QUALS_PLACE)
		{
			hgj_page_quals_run(set->quals, source, pages, columns);
			if (!hgj_page_quals_done(set->quals))
				return;			/* the rest of the rows joins these */
			qualified = true;
		}
		else if (n > 0)
		{
			hgj_page_columns_keep(columns, set->passed,
								  ask(set, set->order[i]));
			*(qualified ? &set->dropped : &set->dropped_early) +=
				n - columns->nrows;
		}
	}
	hgj_prefetch_more(columns->prefetch, BLCKSZ / HGJ_CACHE_LINE);
}
