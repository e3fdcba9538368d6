/*-------------------------------------------------------------------------
 *
 * marks.c
 *	  Match bits in the host's memory: which build rows have found a partner.
 *
 * 1. One bit per row id below total_rows, in words of 64.
 * 2. hgj_marks_unset walks the words, skips those that are all set, and takes
 *	  the unset bits of the others from low to high.  Other processes may set bits
 *	  meanwhile (share.h).
 *
 * The bits belong to the caller's table.  Locks nothing: the caller keeps
 * marking probes of one table apart (see engine.h).
 *
 *-------------------------------------------------------------------------
 */
#include "checks.h"

#define WORDS_PER_POLL	((uint64_t) 1 << 20)

/*
 * HgjEngine.mark: set the bits of n row ids.  HGJ_INVALID, and nothing
 * marked, where one is not below total_rows or the table keeps no bits.
 */
HgjStatus
hgj_marks_set(HgjMarks marks, const uint32_t *rows, uint32_t n, HgjError *err)
{
	uint32_t	i;

	if (marks.bits == NULL)
		return hgj_fail(err, HGJ_INVALID, "the table keeps no match bits");
	for (i = 0; i < n; i++)
		if (rows[i] >= marks.total_rows)
			return hgj_fail(err, HGJ_INVALID, "a row id is out of range");
	for (i = 0; i < n; i++)
		marks.bits[rows[i] / 64] |= UINT64_C(1) << (rows[i] % 64);
	return HGJ_OK;
}

/*
 * HgjEngine.unmatched: up to `capacity` row ids whose bit is unset, ascending
 * from *cursor on.  When cancelled, *cursor stays.
 */
HgjStatus
hgj_marks_unset(const HgjTableSpec *spec, HgjMarks marks, uint32_t *cursor,
				uint32_t *rows, uint32_t capacity, uint32_t *n, HgjError *err)
{
	uint64_t	total = marks.total_rows;
	uint64_t	row = *cursor;
	uint64_t	words = 0;
	uint32_t	found = 0;

	*n = 0;
	if (marks.bits == NULL)
		return hgj_fail(err, HGJ_INVALID, "the table keeps no match bits");
	while (row < total && found < capacity)
	{
		uint64_t	word = __atomic_load_n(marks.bits + row / 64, __ATOMIC_RELAXED);
		uint64_t	unset = ~word >> (row % 64);

		if (unset == 0)
			row = (row / 64 + 1) * 64;
		else
		{
			row += (uint64_t) __builtin_ctzll(unset);
			if (row < total)
				rows[found++] = (uint32_t) row;
			row++;
		}
		if (++words % WORDS_PER_POLL == 0)
		{
			HgjStatus	status = hgj_poll(spec, err);

			if (status != HGJ_OK)
				return status;
		}
	}
	*cursor = (uint32_t) (row < total ? row : total);
	*n = found;
	return HGJ_OK;
}
