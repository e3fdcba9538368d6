/*-------------------------------------------------------------------------
 *
 * spill_filter.c
 *	  A filter of build rows that wait in partitions: outer rows that none of
 *	  them can match need not wait, too.
 *
 * 1. A Bloom filter (Bloom 1970) blocked by word: the hash chooses one 64-bit
 *	  word and three bits of it.  How many rows will come may not be known, so it
 *	  takes all of its part of the memory limit: a number of words that suits the
 *	  rows that are expected, times a power of two.
 * 2. When all rows have been told, it is folded to half its size, each word with
 *	  its neighbour, as long as their bits suffice, so that the cache holds more
 *	  of it.  Where most bits are set it is dropped.
 * 3. Where nearly every row passes, it is not asked for a while.
 *
 * The words are malloc'd and belong to whoever has the filter, who frees them on
 * abort, too.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "engine/hgj_memory.h"
#include "spill/spill_filter.h"

#define BITS_PER_ROW		8
#define FEWEST_WORDS		64

/* Fewer bits than this per row: two rows in five pass by mistake. */
#define FEWEST_BITS_PER_ROW	2.5

/* Words are fetched so many rows ahead. */
#define PREFETCH_ROWS		24

/* After so many rows look whether one in so many is rejected; if not, let as
 * many windows pass unasked. */
#define WINDOW_ROWS			16384
#define WORTH_REJECTING		16
#define PAUSE_WINDOWS		7

/* The word and the bits that a hash stands for. */
static inline Size
filter_word(const HgjSpillFilter *filter, uint64 hash, uint64 *bits)
{
	/* other bits than those that choose the partition have to matter */
	uint64		h = hash * UINT64CONST(0x9E3779B97F4A7C15);

	*bits = UINT64CONST(1) << (h & 63) | UINT64CONST(1) << (h >> 6 & 63) |
		UINT64CONST(1) << (h >> 12 & 63);
	return (Size) (((h >> 32) * (uint64) filter->nwords) >> 32);
}

/* Memory for so many bytes of words, as they come; without it there is none. */
void
hgj_spill_filter_alloc(HgjSpillFilter *filter, HgjAccount *account)
{
	filter->account = account;
	filter->words = filter->bytes > 0 ? hgj_mem_alloc(filter->bytes) : NULL;
	if (filter->words)
		hgj_account_add(account, filter->bytes);
}

/* Step 1. */
void
hgj_spill_filter_make(HgjSpillFilter *filter, double rows, Size most_bytes,
					  HgjAccount *account)
{
	double		wanted = rows * BITS_PER_ROW / 64;
	Size		most_words = Min(most_bytes / sizeof(uint64), PG_UINT32_MAX);

	memset(filter, 0, sizeof(*filter));
	filter->nwords = (Size) Min(wanted, (double) most_words);
	filter->nwords = Max(filter->nwords, FEWEST_WORDS);
	while (filter->nwords * 2 <= most_words)
	{
		filter->nwords *= 2;
		filter->folds++;
	}
	filter->bytes = filter->nwords * sizeof(uint64);
	hgj_spill_filter_alloc(filter, account);
	if (filter->words)
		memset(filter->words, 0, filter->bytes);
}

/* Rows that wait. */
void
hgj_spill_filter_add(HgjSpillFilter *filter, const uint64 *hashes, uint32 n)
{
	filter->rows += n;
	if (filter->words == NULL)
		return;
	for (uint32 i = 0; i < n; i++)
	{
		uint64		bits;
		Size		w = filter_word(filter, hashes[i], &bits);

		filter->words[w] |= bits;
	}
}

/*
 * Half as many words: a hash that chose word w or its neighbour chooses w / 2.
 * (The other half stays allocated: it is the filter's part of the limit.)
 */
static void
fold(HgjSpillFilter *filter)
{
	filter->nwords /= 2;
	filter->folds--;
	for (Size w = 0; w < filter->nwords; w++)
		filter->words[w] = filter->words[2 * w] | filter->words[2 * w + 1];
}

/* Step 2. */
void
hgj_spill_filter_settle(HgjSpillFilter *filter)
{
	if (filter->words == NULL)
		return;
	if ((double) filter->rows * FEWEST_BITS_PER_ROW > (double) filter->nwords * 64)
	{
		hgj_spill_filter_free(filter);
		return;
	}
	while (filter->folds > 0 &&
		   (double) filter->rows * BITS_PER_ROW <= (double) filter->nwords * 32)
		fold(filter);
}

/*
 * Keep those of n rows, and of their hashes, that a row may wait for.  Returns
 * how many.
 */
uint32
hgj_spill_filter_test(HgjSpillFilter *filter, uint64 *hashes, uint32 *rows,
					  uint32 n)
{
	uint32		kept = 0;

	if (filter->words == NULL)
		return n;
	if (filter->pause > 0)
	{
		filter->pause -= Min(filter->pause, n);
		return n;
	}
	for (uint32 i = 0; i < n; i++)
	{
		uint64		bits;
		Size		w;

		if (i + PREFETCH_ROWS < n)
			__builtin_prefetch(&filter->words[filter_word(filter, hashes[i + PREFETCH_ROWS],
														  &bits)]);
		w = filter_word(filter, hashes[i], &bits);
		hashes[kept] = hashes[i];
		rows[kept] = rows[i];
		kept += (filter->words[w] & bits) == bits;
	}
	filter->tested += n;
	filter->rejected += n - kept;
	if (filter->tested >= WINDOW_ROWS)
	{
		if (filter->rejected < filter->tested / WORTH_REJECTING)
			filter->pause = PAUSE_WINDOWS * WINDOW_ROWS;
		filter->tested = filter->rejected = 0;
	}
	return kept;
}

/* Safe at any time, and again. */
void
hgj_spill_filter_free(HgjSpillFilter *filter)
{
	if (filter->words == NULL)
		return;
	hgj_account_sub(filter->account, filter->bytes);
	hgj_mem_free(filter->words, filter->bytes);
	filter->words = NULL;
}
