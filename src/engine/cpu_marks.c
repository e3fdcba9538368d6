/*-------------------------------------------------------------------------
 *
 * cpu_marks.c
 *	  Match bits: which build rows have found a partner.
 *
 * 1. One bit per row id below total_rows, in words of 64.
 * 2. unmatched walks the words, skips those that are all set, and takes the
 *	  unset bits of the others from low to high.
 *
 * The bits belong to the table.  Locks nothing: the caller keeps marking
 * probes of one table apart (see engine.h).
 *
 *-------------------------------------------------------------------------
 */
#include "cpu_internal.h"

#define WORDS_PER_POLL	((uint64_t) 1 << 20)

static uint64_t
word_count(uint32_t total_rows)
{
	return ((uint64_t) total_rows + 63) / 64;
}

static int
lowest_bit(uint64_t word)
{
#if defined(__GNUC__)
	return __builtin_ctzll(word);
#else
	int			bit = 0;

	while ((word & 1) == 0)
	{
		word >>= 1;
		bit++;
	}
	return bit;
#endif
}

/* Bits for that many rows, all unset; at least one word. */
HgjStatus
hgj_cpu_bits_alloc(HgjTable *table, uint32_t total_rows, uint64_t **bits,
				   size_t *bytes, HgjError *err)
{
	size_t		size = (size_t) (word_count(total_rows) + 1) * sizeof(uint64_t);
	void	   *p;
	HgjStatus	status = hgj_cpu_get(table, size, &p, err);

	if (status == HGJ_OK)
	{
		status = hgj_cpu_fill(table, p, 0, size, err);
		if (status != HGJ_OK)
		{
			hgj_cpu_put(table, p, size);
			p = NULL;
		}
	}
	*bits = p;
	*bytes = size;
	return status;
}

/*
 * HgjEngine.mark: set the bits of n row ids.  HGJ_INVALID, and nothing
 * marked, where one is not below total_rows or the table keeps no bits.
 */
HgjStatus
hgj_cpu_mark(HgjTable *table, const uint32_t *rows, uint32_t n, HgjError *err)
{
	uint32_t	i;

	if (table->bits == NULL)
		return hgj_fail(err, HGJ_INVALID, "the table keeps no match bits");
	for (i = 0; i < n; i++)
		if (rows[i] >= table->total_rows)
			return hgj_fail(err, HGJ_INVALID, "a row id is out of range");
	for (i = 0; i < n; i++)
		table->bits[rows[i] / 64] |= UINT64_C(1) << (rows[i] % 64);
	return HGJ_OK;
}

/* HgjEngine.is_marked: false for anything that has no bit. */
bool
hgj_cpu_is_marked(const HgjTable *table, uint32_t row)
{
	return table->bits != NULL && row < table->total_rows &&
		(table->bits[row / 64] >> (row % 64) & 1) != 0;
}

/*
 * HgjEngine.unmatched: up to `capacity` row ids whose bit is unset, ascending
 * from *cursor on.  When cancelled, *cursor stays.
 */
HgjStatus
hgj_cpu_unmatched(const HgjTable *table, uint32_t *cursor, uint32_t *rows,
				  uint32_t capacity, uint32_t *n, HgjError *err)
{
	uint64_t	total = table->total_rows;
	uint64_t	row = *cursor;
	uint64_t	words = 0;
	uint32_t	found = 0;

	*n = 0;
	if (table->bits == NULL)
		return hgj_fail(err, HGJ_INVALID, "the table keeps no match bits");
	while (row < total && found < capacity)
	{
		uint64_t	unset = ~table->bits[row / 64] >> (row % 64);

		if (unset == 0)
			row = (row / 64 + 1) * 64;
		else
		{
			row += (uint64_t) lowest_bit(unset);
			if (row < total)
				rows[found++] = (uint32_t) row;
			row++;
		}
		if (++words % WORDS_PER_POLL == 0)
		{
			HgjStatus	status = hgj_cpu_poll(table, err);

			if (status != HGJ_OK)
				return status;
		}
	}
	*cursor = (uint32_t) (row < total ? row : total);
	*n = found;
	return HGJ_OK;
}

/* HgjEngine.clear_marks: unset every bit. */
HgjStatus
hgj_cpu_clear_marks(HgjTable *table, HgjError *err)
{
	if (table->bits == NULL)
		return hgj_fail(err, HGJ_INVALID, "the table keeps no match bits");
	memset(table->bits, 0, table->bits_bytes);	/* 1 ms per 100M rows */
	return HGJ_OK;
}
