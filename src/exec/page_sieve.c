/*-------------------------------------------------------------------------
 *
 * page_sieve.c
 *	  Outer rows that cannot match, dropped before they are read.
 *
 * Where few outer rows match, and the join returns nothing for the others, most
 * of what the pages source does is for rows that the table's filter will throw
 * out.  So it asks the filter first, page by page:
 *
 * 1. Read the key columns of the page's tuples, and nothing else.  Rows with a
 *	  NULL key match nothing.
 * 2. Make their key words, and let the engine say which may have a match.
 * 3. Only these tuples stay in the page's list; the source reads them as if
 *	  there had been no others.
 *
 * The engine decides when that is worth it, from the matches it has found so
 * far (probe.c asks).  Keys that go through a type's own hash function are left
 * alone: hashing them twice would cost more than is saved.
 *
 * Memory: the query's context, a few arrays as long as a page has tuples.  No
 * locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "exec/join_state.h"
#include "exec/page_sieve.h"

/* Get ready; key_attnos are the table's columns that the keys are. */
void
hgj_page_sieve_init(HgjPageSieve *sieve, const HgjSource *source,
					TupleDesc desc, const AttrNumber *key_attnos)
{
	int			nkeys = source->nkeys;

	memset(sieve, 0, sizeof(*sieve));
	for (int k = 0; k < nkeys; k++)
		if (source->keys[k].kind == HGJ_KEY_OPAQUE)
			return;
	sieve->possible = true;

	sieve->keys = palloc(mul_size(nkeys, sizeof(int)));
	hgj_heap_columns_init(&sieve->columns, desc, key_attnos, nkeys,
						  sieve->keys);
	sieve->targets = palloc0(mul_size(nkeys, sizeof(HgjHeapTarget)));
	sieve->buffers = palloc0(mul_size(nkeys, sizeof(HgjBuffer)));
	for (int i = 0; i < nkeys; i++)
	{
		hgj_buffer_reserve(CurrentMemoryContext, &sieve->buffers[i],
						   sieve->columns.columns[i].width,
						   MaxHeapTuplesPerPage);
		sieve->targets[i].vector = &sieve->buffers[i].vector;
	}
	sieve->words = palloc(mul_size(source->nwords, sizeof(uint64 *)));
	for (uint32 w = 0; w < source->nwords; w++)
		sieve->words[w] = palloc(MaxHeapTuplesPerPage * sizeof(uint64));
	sieve->valid = palloc(MaxHeapTuplesPerPage * sizeof(uint32));
	sieve->passed = palloc((MaxHeapTuplesPerPage + 1) * sizeof(uint32));
}

/* Before a batch is filled: is it worth it at present? */
void
hgj_page_sieve_begin(HgjPageSieve *sieve, const HgjSource *source)
{
	sieve->active = sieve->possible && source->sieve_of != NULL &&
		hgj_sift_begin(source->sieve_of);
}

/* Step 1; returns how many rows' keys are not NULL, and *all if all are. */
static uint32
read_keys(HgjPageSieve *sieve, HgjHeapPages *pages, bool *all)
{
	uint32		n = pages->ntuples;
	uint32		nvalid = 0;
	bool		nulls = false;

	for (int i = 0; i < sieve->columns.ncols; i++)
		hgj_vector_all_valid(sieve->targets[i].vector, MaxHeapTuplesPerPage);
	hgj_heap_columns_read(&sieve->columns, pages->tuples, n, pages->kind,
						  sieve->targets, &pages->prefetch);
	for (int i = 0; i < sieve->columns.ncols; i++)
		nulls |= sieve->targets[i].vector->has_nulls;
	*all = !nulls;
	if (!nulls)
		return n;
	for (uint32 row = 0; row < n; row++)
	{
		bool		null = false;

		for (int i = 0; i < sieve->columns.ncols; i++)
			null |= hgj_vector_is_null(sieve->targets[i].vector, row);
		sieve->valid[nvalid] = row;
		nvalid += !null;
	}
	return nvalid;
}

/* Steps 1 to 3 for the current page; returns how many tuples were dropped. */
uint32
hgj_page_sieve_run(HgjPageSieve *sieve, HgjSource *source, HgjHeapPages *pages)
{
	uint32		n = pages->ntuples;
	HgjKeys		keys = {0};
	bool		all;
	uint32		left;

	if (n == 0)
		return 0;
	keys.nrows = n;
	keys.nsel = read_keys(sieve, pages, &all);
	keys.sel = all ? NULL : sieve->valid;
	keys.words = (const uint64_t *const *) sieve->words;
	keys.location = HGJ_ON_HOST;
	for (int k = 0; k < source->nkeys; k++)
		hgj_key_words_vector(&source->keys[k],
							 sieve->targets[sieve->keys[k]].vector, 0, n,
							 source->seed, sieve->words, 0,
							 source->econtext->ecxt_per_tuple_memory);
	hgj_prefetch_more(&pages->prefetch, HGJ_PREFETCH_LINES);

	left = hgj_sift(source->sieve_of, &keys, sieve->passed);
	for (uint32 i = 0; i < left; i++)
		pages->tuples[i] = pages->tuples[sieve->passed[i]];
	for (uint32 i = 0; i < left && pages->want_offsets; i++)
		pages->offsets[i] = pages->offsets[sieve->passed[i]];
	pages->ntuples = left;
	hgj_prefetch_more(&pages->prefetch, BLCKSZ / HGJ_CACHE_LINE);
	return n - left;
}
