/*-------------------------------------------------------------------------
 *
 * cpu_marks.c
 *	  Match bits (marks.c) of a table.
 *
 * The bits belong to the table, and are in its account; those of a table that
 * is attached to an image (cpu_share.c) are in there, and set atomically.  Locks
 * nothing: the caller keeps marking probes of any other table apart (see
 * engine.h).
 *
 *-------------------------------------------------------------------------
 */
#include "cpu_internal.h"

static uint64_t
word_count(uint32_t total_rows)
{
	return ((uint64_t) total_rows + 63) / 64;
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

static HgjMarks
marks_of(const HgjTable *table)
{
	HgjMarks	marks = {table->bits, table->total_rows};

	return marks;
}

/* HgjEngine.mark */
HgjStatus
hgj_cpu_mark(HgjTable *table, const uint32_t *rows, uint32_t n, HgjError *err)
{
	uint32_t	i;

	if (table->image == NULL || table->bits == NULL)
		return hgj_marks_set(marks_of(table), rows, n, err);
	for (i = 0; i < n; i++)
		if (rows[i] >= table->total_rows)
			return hgj_fail(err, HGJ_INVALID, "a row id is out of range");
	for (i = 0; i < n; i++)
		mark_row(table, rows[i]);
	return HGJ_OK;
}

/* HgjShareMethods.claim */
bool
hgj_cpu_share_claim(HgjTable *table, uint32_t row)
{
	uint64_t	bit = UINT64_C(1) << (row % 64);

	return !(__atomic_fetch_or(table->bits + row / 64, bit, __ATOMIC_RELAXED) & bit);
}

/* HgjEngine.is_marked */
bool
hgj_cpu_is_marked(const HgjTable *table, uint32_t row)
{
	return hgj_marks_has(marks_of(table), row);
}

/* HgjEngine.unmatched */
HgjStatus
hgj_cpu_unmatched(const HgjTable *table, uint32_t *cursor, uint32_t *rows,
				  uint32_t capacity, uint32_t *n, HgjError *err)
{
	return hgj_marks_unset(&table->spec, marks_of(table), cursor, rows, capacity, n,
						   err);
}

/* HgjEngine.clear_marks: unset every bit. */
HgjStatus
hgj_cpu_clear_marks(HgjTable *table, HgjError *err)
{
	if (table->bits == NULL)
		return hgj_fail(err, HGJ_INVALID, "the table keeps no match bits");
	if (table->image != NULL)
		return hgj_fail(err, HGJ_UNSUPPORTED,
						"the match bits of a shared table stay set");
	memset(table->bits, 0, table->bits_bytes);	/* 1 ms per 100M rows */
	return HGJ_OK;
}
