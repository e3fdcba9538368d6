/*-------------------------------------------------------------------------
 *
 * kept_pages.c
 *	  The pages of a sequential scan whose columns are kept in memory: for
 *	  heap_pages.c, which reads all others itself.
 *
 * 1. When an execution begins: may it use kept columns?  Not where a snapshot can be
 *	  too old for a page, and not in a serializable transaction, whose conflicts are
 *	  noticed when tuples are looked at.
 * 2. When the scan comes to a run of pages: hold the chunks of all columns that are
 *	  read of it, and then look at the visibility map.  That is after the query's
 *	  snapshot was taken, as everything here is.  If one is missing, no page of the
 *	  run is valid.
 * 3. A page is valid if all chunks have it, and it has not changed (kept/valid.c),
 *	  which is found out for 64 pages when the scan comes to the first of them.
 *	  Consecutive ones are handed out as slices, as if they were one page.
 * 4. Pages are skipped that have no value which the quals let pass, by the least and the
 *	  greatest that they have: none of a range, or none of IN's that lies in between.
 * 5. Where rows are filtered, columns that nobody reads before rows are taken need not be
 *	  kept (late_columns.c), as long as few pages have rows that are.  Where others have
 *	  chosen the rows (chosen_rows.c), none needs to be.
 * 6. By-reference values are pointers into chunks: those of runs that the scan has
 *	  left are held until the batch is void (hgj_kept_pages_forget()).
 *
 * In a parallel scan each process looks for itself, at the blocks that it is given:
 * each block is returned by one process, whether from here or from the table.
 *
 * Memory: the query's context.  Chunks are released on abort by a reset callback of
 * it.  No locks but those of store.c and map.c.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "scan/kept_pages.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#define ALL_WORDS	(~UINT64CONST(0) >> (64 - HGJ_RUN_WORDS))
StaticAssertDecl(HGJ_RUN_WORDS <= 64, "a set of words that does not hold all of them");

static void
when_gone(void *arg)
{
	hgj_kept_pages_reset(arg);
}

/*
 * Get ready to read these columns, more of which may come; NULL if nothing of the
 * table can be kept.  In the query's context.
 */
HgjKeptPages *
hgj_kept_pages_init(Relation rel, HgjPageColumns *columns)
{
	HgjKeptPages *kept;
	int			most = Max(RelationGetNumberOfAttributes(rel), 1);

	if (!hgj_table_may_be_kept(rel))
		return NULL;
	kept = palloc0(sizeof(HgjKeptPages));
	kept->rel = rel;
	kept->columns = columns;
	kept->context = CurrentMemoryContext;
	kept->chunks = palloc(mul_size(most, sizeof(HgjHeldChunk)));
	kept->keys = palloc(mul_size(most, sizeof(HgjChunkKey)));
	kept->rows.chunks = palloc(mul_size(most, sizeof(HgjChunk *)));
	kept->rows.starts = palloc(mul_size(most, sizeof(uint32)));
	kept->codes = palloc0(mul_size(most, sizeof(uint32 *)));
	kept->has_codes = palloc0(mul_size(most, sizeof(bool)));
	kept->late = palloc0(mul_size(most, sizeof(bool)));
	kept->all_late = palloc(mul_size(most, sizeof(bool)));
	memset(kept->all_late, true, most * sizeof(bool));
	kept->room = most;
	kept->held = palloc(mul_size(most, sizeof(HgjHeldChunk)));
	kept->when_gone.func = when_gone;
	kept->when_gone.arg = kept;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &kept->when_gone);
	return kept;
}

/* Step 1. */
void
hgj_kept_pages_begin(HgjKeptPages *kept, Snapshot snapshot,
					 BufferAccessStrategy strategy)
{
	kept->strategy = strategy;
	kept->on = snapshot->snapshot_type == SNAPSHOT_MVCC && hgj_kept_may_be_read();
}

/*
 * Step 5: after so many pages, of all executions, it is seen whether more than one in so many
 * has been fetched, which takes twice as long as reading it: then the next runs are read, each
 * time twice as many.
 */
#define HGJ_LATE_TRIAL		128
#define HGJ_LATE_SHARE		4
#define HGJ_MOST_LATE_PAUSES	10

/*
 * What reading a row by pages takes, and what an attribute more to walk over, as
 * measured with tables of four and of ten columns, of three million and half as many
 * rows in shared buffers: what reading kept columns takes has been taken off.
 */
#define HGJ_ROW_NS			2.4
#define HGJ_ATTRIBUTE_NS	1.0

/* Say what chunks of the run have saved: each column its part. */
static void
note_use(HgjKeptPages *kept)
{
	const HgjPageColumns *columns = kept->columns;
	double		row = HGJ_ROW_NS +
		HGJ_ATTRIBUTE_NS * Max(columns->natts - columns->nfixed, 0);
	TimestampTz now = kept->taken > 0 ? GetCurrentTimestamp() : 0;

	for (int c = 0; c < kept->ncols && kept->taken > 0; c++)
		hgj_store_used(&kept->chunks[c], (uint64) (kept->taken * row / kept->ncols), now);
	kept->taken = 0;
}

/*
 * Step 3: the run is left.  Where all words were asked, and are valid, who comes next need
 * not ask them.
 */
static void
note_whole(const HgjKeptPages *kept)
{
	if (!kept->looked || kept->known != ALL_WORDS ||
		memcmp(kept->valid, kept->look.visible, sizeof(kept->valid)) != 0)
		return;
	for (int c = 0; c < kept->ncols; c++)
		if (hgj_store_holds(&kept->chunks[c]))
			hgj_chunk_note_whole(&kept->look, kept->chunks[c].head);
}

/* The chunks of the run. */
static void
release_run(HgjKeptPages *kept)
{
	while (kept->ncols > 0)
		hgj_store_release(&kept->chunks[--kept->ncols]);
}

/* Step 6: the chunks of the run are left behind; nobody has pointers if no row was taken. */
static void
leave_run(HgjKeptPages *kept)
{
	int			ncols = kept->ncols;
	bool		used = kept->taken > 0;

	note_use(kept);
	note_whole(kept);
	kept->looked = false;
	if (!used)
	{
		release_run(kept);
		return;
	}
	if (kept->nheld + ncols > kept->room)
	{
		int			room = Max(kept->room * 2, kept->nheld + ncols);

		kept->held = repalloc(kept->held, mul_size(room, sizeof(HgjHeldChunk)));
		kept->room = room;
	}
	memcpy(kept->held + kept->nheld, kept->chunks, ncols * sizeof(HgjHeldChunk));
	kept->nheld += ncols;
	kept->ncols = 0;
}

/* Can a device take the column as the chunk has it? */
static bool
takes_chunk(const HgjKeptForm *form, const HgjHeldChunk *held)
{
	const HgjChunkHead *head = held->head;

	if (head->nrows == 0 || (!form->as_number && form->most_values == 0))
		return false;
	if (form->as_number &&
		(form->scale < 0 ? !head->by_value :
		 head->decimals == 0 || head->scale != form->scale))
		return false;
	return form->most_values == 0 || form->most_values >
		(head->by_value ? hgj_chunk_greatest(held->chunk) : head->ndistinct);
}

/* The same of all columns of the run, if there is a device. */
static bool
takes_chunks(const HgjKeptPages *kept)
{
	for (int c = 0; kept->forms && c < kept->ncols; c++)
		if (!takes_chunk(&kept->forms[c], &kept->chunks[c]))
			return false;
	return kept->forms != NULL;
}

#ifdef USE_ASSERT_CHECKING
/* Have the chunks as many rows of each of the word's valid pages? */
static bool
rows_agree(const HgjKeptPages *kept, uint32 word)
{
	const HgjChunk *one = kept->one->chunk;

	for (uint32 page = word * 64; page < (word + 1) * 64; page++)
		for (int c = 0; c < kept->ncols && hgj_run_has(kept->valid, page); c++)
		{
			const HgjChunk *other = kept->chunks[c].chunk;

			if (other && other->first[page + 1] - other->first[page] !=
				one->first[page + 1] - one->first[page])
				return false;
		}
	return true;
}
#endif

/* Step 3: all of the run, if all of it is valid by one look. */
static void
find_whole(HgjKeptPages *kept)
{
	/* there is nothing to ask of words without pages: a table's last run has some */
	for (int w = 0; w < HGJ_RUN_WORDS; w++)
		if (kept->look.visible[w] == 0)
		{
			kept->valid[w] = 0;
			kept->known |= UINT64CONST(1) << w;
		}
	for (int c = 0; c < kept->ncols; c++)
		if (kept->chunks[c].chunk && !hgj_chunk_is_whole(&kept->look, kept->chunks[c].head))
			return;
	memcpy(kept->valid, kept->look.visible, sizeof(kept->valid));
	kept->known = ALL_WORDS;
#ifdef USE_ASSERT_CHECKING
	for (uint32 word = 0; word < HGJ_RUN_WORDS; word++)
		Assert(rows_agree(kept, word));
#endif
}

/* Step 5: has it turned out that many pages have rows that are taken? */
static bool
fetches_many(const HgjKeptPages *kept)
{
	return !kept->chosen && kept->late_pages > HGJ_LATE_TRIAL &&
		kept->late_fetched * HGJ_LATE_SHARE > kept->late_pages;
}

/* Step 5: may columns be missing in the next run? */
static bool
may_be_late(HgjKeptPages *kept)
{
	if (kept->chosen)
		return true;
	if (!kept->may_be_late || kept->forms)
		return false;
	if (fetches_many(kept))
	{
		/* filters may be of more use later on */
		kept->late_pause = 1 << Min(kept->late_pauses++, HGJ_MOST_LATE_PAUSES);
		kept->late_pages = kept->late_fetched = 0;
	}
	if (kept->late_pause == 0)
		return true;
	kept->late_pause--;
	return false;
}

/* Steps 2 and 5: false if a column is not kept that has to be, or none is. */
static bool
hold_chunks(HgjKeptPages *kept)
{
	int			ncols = kept->columns->ncols;
	int			there = 0;

	kept->has_late = false;
	if (!hgj_store_hold(kept->keys, !may_be_late(kept) ? NULL :
						kept->chosen ? kept->all_late : kept->late, ncols, kept->chunks))
		return false;
	for (int c = 0; c < ncols; c++)
		if (kept->chunks[c].chunk)
		{
			kept->one = &kept->chunks[c];
			there++;
		}
	if (there == 0)
		return false;
	kept->has_late = there < ncols;
	kept->ncols = ncols;		/* so many are to be released, whatever happens */
	return true;
}

static void
look_at_run(HgjKeptPages *kept, uint32 run)
{
	const HgjPageColumns *columns = kept->columns;

	leave_run(kept);
	memset(kept->has_codes, 0, columns->ncols * sizeof(bool));
	for (int c = 0; c < columns->ncols; c++)
		kept->keys[c] = hgj_store_key(kept->rel, columns->columns[c]->attno, run);
	kept->look.run = run;
	kept->looked = true;
	kept->known = 0;
	if (columns->ncols == 0 || !hold_chunks(kept))
		return;
	kept->fits = takes_chunks(kept);
	hgj_run_look(kept->rel, run, &kept->look);
	find_whole(kept);
}

/* Step 3, for 64 pages. */
static void
find_valid(HgjKeptPages *kept, uint32 word)
{
	uint64		valid = ~UINT64CONST(0);

	for (int c = 0; c < kept->ncols && valid != 0; c++)
		if (kept->chunks[c].chunk)
			valid &= hgj_chunk_valid_pages(kept->rel, &kept->look, word,
										   kept->chunks[c].chunk, kept->strategy);
	kept->valid[word] = valid;
	kept->known |= UINT64CONST(1) << word;
	Assert(rows_agree(kept, word));
}

/* Step 3: is the page valid?  How many rows has it, if anybody (nrows) wants to know? */
bool
hgj_kept_page(HgjKeptPages *kept, BlockNumber block, uint32 *nrows)
{
	uint32		run = hgj_run_of(block);
	uint32		page = hgj_run_page(block);

	if (!kept->looked || kept->look.run != run || (kept->has_late && fetches_many(kept)))
		look_at_run(kept, run);
	if (kept->ncols == 0 || kept->ncols != kept->columns->ncols)
		return false;
	if ((kept->known >> (page / 64) & 1) == 0)
		find_valid(kept, page / 64);
	if (!hgj_run_has(kept->valid, page))
		return false;
	if (nrows)
	{
		const HgjChunk *chunk = kept->one->chunk;

		*nrows = chunk->first[page + 1] - chunk->first[page];
	}
	return true;
}

/* Is one of the values, which are in order, in the range? */
static bool
has_value(const HgjProgramBound *bound, const HgjPageRange *range)
{
	uint32		low = 0;
	uint32		high = bound->nvalues;

	while (low < high)
	{
		uint32		middle = low + (high - low) / 2;

		if (bound->values[middle] < range->least)
			low = middle + 1;
		else
			high = middle;
	}
	return low < bound->nvalues && bound->values[low] <= range->greatest;
}

/* May a row of the page, which is valid, pass the scan's quals? */
bool
hgj_kept_page_may_pass(const HgjKeptPages *kept, BlockNumber block)
{
	uint32		page = hgj_run_page(block);

	for (int b = 0; b < kept->nbounds; b++)
	{
		const HgjProgramBound *bound = &kept->bounds[b];
		const HgjChunk *chunk = kept->chunks[bound->input].chunk;
		bool		decimals = bound->scale >= 0;
		HgjPageRange range;

		if ((decimals && chunk->scale != bound->scale) ||
			!hgj_chunk_page_range(chunk, page, decimals, &range))
			continue;
		if (range.least > bound->high || range.greatest < bound->low ||
			(bound->values && !has_value(bound, &range)))
			return false;
	}
	return true;
}

/*
 * How many pages behind that of this block, at most `most`, are valid, one after the other, and
 * have rows that may pass?  nrows: in, how many rows they may have together, and out, how many
 * they have; NULL: any number, and the chunk is not looked at.  Of the run that hgj_kept_page()
 * has been asked about.
 */
uint32
hgj_kept_pages_behind(HgjKeptPages *kept, BlockNumber block, uint32 most, uint32 *nrows)
{
	const uint32 *first = kept->one->chunk->first;
	uint32		begin = hgj_run_page(block) + 1;
	uint32		end = begin + Min(most, HGJ_RUN_PAGES - begin);
	uint32		page = begin;
	bool		by_words = nrows == NULL && kept->nbounds == 0;

	while (page < end)
	{
		if ((kept->known >> (page / 64) & 1) == 0)
			find_valid(kept, page / 64);
		if (by_words && page % 64 == 0 && end - page >= 64 &&
			kept->valid[page / 64] == ~UINT64CONST(0))
		{
			page += 64;
			continue;
		}
		if (!hgj_run_has(kept->valid, page) ||
			(nrows != NULL && first[page + 1] - first[begin] > *nrows) ||
			(kept->nbounds > 0 && !hgj_kept_page_may_pass(kept, block + (page - begin) + 1)))
			break;
		page++;
	}
	if (nrows != NULL)
		*nrows = first[page] - first[begin];
	return page - begin;
}

/*
 * Room for the codes of the column's values in this run, by their numbers, of which there
 * are few; HGJ_NO_CODE where the caller has not put any yet.
 */
uint32 *
hgj_kept_codes(HgjKeptPages *kept, int column)
{
	uint32		n = kept->chunks[column].chunk->ndistinct;

	Assert(n <= HGJ_MOST_KEPT_CODES);
	if (kept->codes[column] == NULL)
		kept->codes[column] = MemoryContextAlloc(kept->context,
												 HGJ_MOST_KEPT_CODES * sizeof(uint32));
	if (!kept->has_codes[column])
		memset(kept->codes[column], 0xFF, n * sizeof(uint32));
	kept->has_codes[column] = true;
	return kept->codes[column];
}

/* A slice begins with this page, which is valid. */
void
hgj_kept_slice(HgjKeptPages *kept, BlockNumber block)
{
	uint32		page = hgj_run_page(block);

	for (int c = 0; c < kept->ncols; c++)
	{
		const HgjChunk *chunk = kept->chunks[c].chunk;

		kept->rows.chunks[c] = chunk;
		kept->rows.starts[c] = page == 0 || chunk == NULL ? 0 : chunk->first[page];
	}
	kept->rows.block = block;
	kept->rows.missing = kept->has_late;
	kept->rows.first = kept->one->chunk->first;
}

/*
 * The same, of pages that are not valid here, but were for others, who have chunks of them:
 * `first` is one's.
 */
void
hgj_kept_slice_missing(HgjKeptPages *kept, BlockNumber block, const uint32 *first)
{
	for (int c = 0; c < kept->columns->ncols; c++)
		kept->rows.chunks[c] = NULL;
	kept->rows.block = block;
	kept->rows.missing = true;
	kept->rows.first = first;
}

/* Rows will be taken that others have chosen, or no more of them. */
void
hgj_kept_choose(HgjKeptPages *kept, bool chosen)
{
	if (kept->chosen == chosen)
		return;
	leave_run(kept);			/* it is held for the one, or the other */
	kept->chosen = chosen;
	kept->nbounds = 0;			/* chosen rows have passed the quals, whose columns may be missing here */
}

/* Nobody reads chunks any longer of ranges before the last ones. */
void
hgj_kept_pages_forget_read(HgjKeptPages *kept)
{
	for (int i = 0; i < kept->nread; i++)
		hgj_store_release_read(&kept->held[i]);
	kept->nheld -= kept->nread;
	kept->nbefore -= kept->nread;
	memmove(kept->held, kept->held + kept->nread, kept->nheld * sizeof(HgjHeldChunk));
	kept->nread = 0;
}

/* Nobody has pointers any longer into chunks, but into those of the run at hand. */
void
hgj_kept_pages_forget(HgjKeptPages *kept)
{
	for (int i = 0; i < kept->nheld; i++)
		hgj_store_release(&kept->held[i]);
	kept->nheld = kept->nbefore = kept->nread = 0;
}

/* Hold nothing, and know nothing. */
void
hgj_kept_pages_reset(HgjKeptPages *kept)
{
	hgj_kept_pages_forget(kept);
	note_use(kept);
	note_whole(kept);
	release_run(kept);
	kept->looked = kept->on = kept->chosen = false;
}
