/*-------------------------------------------------------------------------
 *
 * match_bits.c
 *	  Which outer rows have matched, between the passes over them (probe.c).
 *
 * A partition that cannot be split may have any number of outer rows, so their
 * bits may take any number of bytes.  But every pass goes through the rows in one
 * and the same order:
 *
 * 1. Bits are kept in memory up to a small part of the limit.
 * 2. Where there are more, that much memory is a window over a temporary file: it
 *	  is written back, if it has changed, when the rows of another window come.
 *
 * So a pass reads and writes a bit of file per outer row, where it reads all of
 * the row anyway, whatever the join type, and however many rows there are.  (To
 * take the outer rows in portions, and go through the build side for each, would
 * do without a file; but the table of each of its parts would be built once per
 * portion, marks of build rows would have to be kept from portion to portion, and
 * a build side that is not on file could not be read again.)
 *
 * Memory: the window is in the query's context.  The file belongs to the resource
 * owner; it is closed at the next unit, rescan or end.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/guc.h"
#include "join/join_state.h"
#include "join/partition.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* The window's part of the memory limit, and how little it may be. */
#define HGJ_BITS_SHARE			16
#define HGJ_FEWEST_BIT_WORDS	((Size) 512)

/* The words that may be in memory. */
static Size
most_words(void)
{
	if (hgj_chunk_outer_rows > 0)
		return ((Size) hgj_chunk_outer_rows + 63) / 64;
	return Max(get_hash_memory_limit() / HGJ_BITS_SHARE / sizeof(uint64),
			   HGJ_FEWEST_BIT_WORDS);
}

/* Bits that were never written are unset. */
static void
read_window(HgjMatchBits *bits)
{
	Size		bytes = bits->nwords * sizeof(uint64);
	Size		begin = bits->window * bytes;

	memset(bits->words, 0, bytes);
	if (begin >= bits->file_bytes)
		return;
	if (BufFileSeek(bits->file, 0, (off_t) begin, SEEK_SET) != 0 ||
		BufFileRead(bits->file, bits->words, bytes) != bytes)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read match bits from temporary file of a HashGraphJoin")));
}

static void
write_window(HgjJoinState *state)
{
	HgjMatchBits *bits = &state->found.outer_bits;
	Size		bytes = bits->nwords * sizeof(uint64);
	Size		begin = bits->window * bytes;

	if (bits->file == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(state->js.context);

		bits->file = BufFileCreateTemp(false);
		MemoryContextSwitchTo(old);
		hgj_account_add(&state->js.build->account, BLCKSZ);
		if (!state->logged.bits)
			ereport(DEBUG1,
					(errmsg_internal("hashgraph_join: match bits of outer rows go to a file, because memory has room for %zu only",
									 bits->nwords * 64)));
		state->logged.bits = true;
	}
	if (BufFileSeek(bits->file, 0, (off_t) begin, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not seek in temporary file of a HashGraphJoin")));
	BufFileWrite(bits->file, bits->words, bytes);
	if (begin + bytes > bits->file_bytes)
	{
		state->stats.spilled_bits += begin + bytes - bits->file_bytes;
		bits->file_bytes = begin + bytes;
	}
	bits->dirty = false;
}

/*
 * Have room for the bits of rows below `rows`, as far as memory is there for
 * them; new ones are unset.  How many a unit needs is known.
 */
static void
reserve(HgjJoinState *state, uint64 rows)
{
	HgjMatchBits *bits = &state->found.outer_bits;
	Size		words = rows / 64 + 1;
	Size		grown;

	if (bits->nwords == 0)
		bits->most = most_words();
	if (words <= bits->nwords || bits->nwords == bits->most)
		return;
	if (hgj_in_unit(state))
		grown = Max(words, hgj_unit_outer_rows(state) / 64 + 1);
	else
		grown = Max(Max(words, bits->nwords * 2), HGJ_FEWEST_BIT_WORDS);
	grown = Min(grown, bits->most);
	if (bits->words)
		bits->words = repalloc_huge(bits->words,
									mul_size(grown, sizeof(uint64)));
	else
		bits->words = MemoryContextAllocHuge(state->js.context,
											 mul_size(grown, sizeof(uint64)));
	memset(bits->words + bits->nwords, 0,
		   (grown - bits->nwords) * sizeof(uint64));
	hgj_account_add(&state->js.build->account, (grown - bits->nwords) * sizeof(uint64));
	bits->nwords = grown;
}

/*
 * Turn to the window of a row.  Returns how many of n rows, from that one on, have
 * their bits there, and sets *at to the first one's place.
 */
static uint32
turn_to(HgjJoinState *state, uint64 row, uint32 n, Size *at)
{
	HgjMatchBits *bits = &state->found.outer_bits;
	uint64		window_rows;

	reserve(state, row + n);
	window_rows = (uint64) bits->nwords * 64;
	if (row / window_rows != bits->window)
	{
		CHECK_FOR_INTERRUPTS();
		if (bits->dirty)
			write_window(state);
		bits->window = row / window_rows;
		read_window(bits);
	}
	*at = row % window_rows;
	return (uint32) Min(n, window_rows - *at);
}

/* What is known of rows [first, first + n), into a byte for each. */
void
hgj_match_bits_get(HgjJoinState *state, uint64 first, uint32 n, uint8 *matched)
{
	Size		at;

	for (uint32 done = 0, these; done < n; done += these)
	{
		const uint64 *words;

		these = turn_to(state, first + done, n - done, &at);
		words = state->found.outer_bits.words;
		for (uint32 i = 0; i < these; i++)
			matched[done + i] = (words[(at + i) / 64] >> ((at + i) % 64)) & 1;
	}
}

/* Note those of them that have matched; no bit is ever unset. */
void
hgj_match_bits_add(HgjJoinState *state, uint64 first, uint32 n,
				   const uint8 *matched)
{
	Size		at;

	for (uint32 done = 0, these; done < n; done += these)
	{
		uint64	   *words;

		these = turn_to(state, first + done, n - done, &at);
		words = state->found.outer_bits.words;
		for (uint32 i = 0; i < these; i++)
			if (matched[done + i])
				words[(at + i) / 64] |= UINT64CONST(1) << ((at + i) % 64);
		state->found.outer_bits.dirty = true;
	}
}

/* There are other outer rows now, or none.  Not for aborts. */
void
hgj_match_bits_reset(HgjJoinState *state)
{
	HgjMatchBits *bits = &state->found.outer_bits;

	hgj_account_sub(&state->js.build->account, bits->nwords * sizeof(uint64) +
					(bits->file ? BLCKSZ : 0));
	if (bits->file)
		BufFileClose(bits->file);
	if (bits->words)
		pfree(bits->words);
	memset(bits, 0, sizeof(*bits));
}
