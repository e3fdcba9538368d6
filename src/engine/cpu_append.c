/*-------------------------------------------------------------------------
 *
 * cpu_append.c
 *	  Rows that wait for a build.
 *
 * 1. Rows are copied into chunks, column by column and then the row ids.
 *	  A chunk is a quarter of those before it, between 16 KB and 4 MB (whole huge
 *	  pages where it can be), so that nothing is ever moved and little is taken
 *	  that is not used; the first takes up the caller's estimate.
 * 2. All chunks that a batch needs are allocated before anything is copied,
 *	  and the counts are only advanced at the end: a batch is taken in whole
 *	  or not at all.
 * 3. For one key word the smallest and largest key are noted: they choose
 *	  between direct, narrow and wide tables.
 *
 * 4. Until then the rows can be read back from the chunks, in the order in which
 *	  they came.
 *
 * Chunks belong to the table until its build has succeeded.  Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "cpu_internal.h"

#define MIN_CHUNK	((size_t) 16 * 1024)
#define HUGE_CHUNK	((size_t) 2 * 1024 * 1024)
#define MAX_CHUNK	((size_t) 4 * 1024 * 1024)
#define COPY_STEP	((uint32_t) 65536)	/* rows between two polls */

/* What a batch changes, applied when all of it is in. */
typedef struct Totals
{
	int64_t		min_key;
	int64_t		max_key;
	uint64_t	max_row;
} Totals;

static HgjStatus
add_chunk(HgjTable *t, HgjError *err)
{
	size_t		bytes = t->next_chunk;
	uint64_t	want = t->spec.expected_rows;
	Chunk	   *chunk;
	void	   *p;
	HgjStatus	status;

	if (bytes == 0)
	{
		bytes = MIN_CHUNK;
		if (want > MAX_CHUNK / t->row_bytes)
			bytes = MAX_CHUNK;
		else if (want * t->row_bytes > MIN_CHUNK)
			bytes = (size_t) (want + 16) * t->row_bytes + HGJ_CHUNK_HEADER;
	}
	status = hgj_cpu_get(t, bytes, &p, err);
	if (status != HGJ_OK)
		return status;
	chunk = p;
	memset(chunk, 0, sizeof(*chunk));
	chunk->bytes = bytes;
	chunk->cap = (bytes - HGJ_CHUNK_HEADER) / t->row_bytes & ~(uint64_t) 15;
	chunk->data = (uint64_t *) (void *) ((uint8_t *) p + HGJ_CHUNK_HEADER);
	chunk->layout = LAYOUT_MULTI;
	if (t->last_chunk != NULL)
		t->last_chunk->next = chunk;
	else
		t->first_chunk = chunk;
	t->last_chunk = chunk;
	t->chunk_bytes += hgj_mem_footprint(bytes);
	t->next_chunk = t->chunk_bytes / 4 < MIN_CHUNK ? MIN_CHUNK :
		t->chunk_bytes / 4 < HUGE_CHUNK / 2 ? t->chunk_bytes / 4 :
		t->chunk_bytes / 4 < MAX_CHUNK ? HUGE_CHUNK : MAX_CHUNK;
	return HGJ_OK;
}

static void
free_chunk(HgjTable *t, Chunk *chunk)
{
	t->chunk_bytes -= hgj_mem_footprint(chunk->bytes);
	if (chunk->data_bytes > 0)
	{
		t->chunk_bytes -= hgj_mem_footprint(chunk->data_bytes);
		hgj_cpu_put(t, chunk->data, chunk->data_bytes);
	}
	hgj_cpu_put(t, chunk, chunk->bytes);
}

/* Free all chunks from `from` on, leaving `last` as the last one. */
static void
cut_chunks(HgjTable *t, Chunk *last, Chunk *from)
{
	if (last != NULL)
		last->next = NULL;
	else
		t->first_chunk = NULL;
	t->last_chunk = last;
	while (from != NULL)
	{
		Chunk	   *next = from->next;

		free_chunk(t, from);
		from = next;
	}
}

/* Free every appended row. */
void
hgj_cpu_free_chunks(HgjTable *table)
{
	cut_chunks(table, NULL, table->first_chunk);
}

/* The range of the selected keys of a one-word batch, from index `from` on. */
void
hgj_cpu_key_range(const HgjKeys *keys, uint32_t from, int64_t *min_key,
				  int64_t *max_key)
{
	uint32_t	n = hgj_key_count(keys);
	uint32_t	i;

	if (from >= n)
		return;
	if (keys->sel == NULL)
	{
		hgj_key_range(keys->words[0] + from, n - from, min_key, max_key);
		return;
	}
	for (i = from; i < n; i++)
		hgj_key_range(keys->words[0] + keys->sel[i], 1, min_key, max_key);
}

/* Rows from .. from + n of a batch to the free end of a chunk. */
static void
copy_rows(const HgjTable *t, Chunk *chunk, uint64_t at, const HgjKeys *keys,
		  uint32_t from, uint32_t n, uint32_t first_row,
		  const uint32_t *row_ids, Totals *totals)
{
	uint32_t   *rows = (uint32_t *) (void *)
		(chunk->data + t->spec.nwords * chunk->cap) + at;
	const uint32_t *sel = keys->sel != NULL ? keys->sel + from : NULL;
	uint32_t	w;
	uint32_t	i;

	for (w = 0; w < t->spec.nwords; w++)
	{
		uint64_t   *to = chunk->data + w * chunk->cap + at;
		const uint64_t *column = keys->words[w];

		if (sel == NULL)
			memcpy(to, column + from, (size_t) n * sizeof(uint64_t));
		else
			for (i = 0; i < n; i++)
				to[i] = column[sel[i]];
		if (t->spec.nwords == 1)
			hgj_key_range(to, n, &totals->min_key, &totals->max_key);
	}
	if (row_ids == NULL && sel == NULL)
		for (i = 0; i < n; i++)
			rows[i] = first_row + from + i;
	else if (row_ids == NULL)
		for (i = 0; i < n; i++)
			rows[i] = first_row + sel[i];
	else if (sel == NULL)
		memcpy(rows, row_ids + from, (size_t) n * sizeof(uint32_t));
	else
		for (i = 0; i < n; i++)
			rows[i] = row_ids[sel[i]];
}

/* Copy all of a batch, advancing the chunks' counts as it goes. */
static HgjStatus
copy_batch(HgjTable *t, Chunk *chunk, const HgjKeys *keys, uint32_t n,
		   uint32_t first_row, const uint32_t *row_ids, Totals *totals,
		   HgjError *err)
{
	uint32_t	done = 0;
	uint32_t	since_poll = 0;

	while (done < n)
	{
		uint64_t	room = chunk->cap - chunk->nrows;
		uint32_t	take = n - done;

		if (room == 0 || chunk->cap == 0)
		{
			chunk = chunk->next;
			continue;
		}
		take = take > room ? (uint32_t) room : take;
		take = take > COPY_STEP ? COPY_STEP : take;
		copy_rows(t, chunk, chunk->nrows, keys, done, take, first_row, row_ids,
				  totals);
		chunk->nrows += take;
		done += take;
		since_poll += take;
		if (since_poll >= COPY_STEP && done < n)
		{
			HgjStatus	status = hgj_poll(&t->spec, err);

			if (status != HGJ_OK)
				return status;
			since_poll = 0;
		}
	}
	return HGJ_OK;
}

/*
 * HgjEngine.append: take in the selected rows of a batch, all or none.
 * HGJ_LIMIT where row ids, the count of rows, or memory pass their limits.
 */
HgjStatus
hgj_cpu_append(HgjTable *table, const HgjKeys *keys, uint32_t first_row,
			   const uint32_t *row_ids, HgjError *err)
{
	HgjStatus	status;
	Chunk	   *old_last = table->last_chunk;
	uint64_t	old_n = old_last != NULL ? old_last->nrows : 0;
	size_t		old_next = table->next_chunk;
	uint64_t	room;
	uint32_t	n;
	Totals		totals;

	if (table->built)
		return hgj_fail(err, HGJ_INVALID, "append after build");
	status = hgj_cpu_check_keys(table, keys, err);
	if (status == HGJ_OK)
		status = hgj_check_rows(keys, first_row, row_ids, &totals.max_row, err);
	if (status != HGJ_OK)
		return status;
	n = hgj_key_count(keys);
	if (n == 0)
		return HGJ_OK;
	if (table->nrows + n > HGJ_MAX_ROWS)
		return hgj_fail(err, HGJ_LIMIT,
						"a table holds at most 4294967280 rows");
	room = old_last != NULL && old_last->cap > 0 ? old_last->cap - old_n : 0;
	while (status == HGJ_OK && room < n)
	{
		status = add_chunk(table, err);
		if (status == HGJ_OK)
			room += table->last_chunk->cap;
	}
	totals.min_key = table->nrows > 0 ? table->min_key : INT64_MAX;
	totals.max_key = table->nrows > 0 ? table->max_key : INT64_MIN;
	if (status == HGJ_OK)
		status = copy_batch(table, old_last != NULL ? old_last :
							table->first_chunk, keys, n, first_row, row_ids,
							&totals, err);
	if (status != HGJ_OK)
	{
		if (old_last != NULL)
			old_last->nrows = old_n;
		cut_chunks(table, old_last, old_last != NULL ? old_last->next :
				   table->first_chunk);
		table->next_chunk = old_next;
		return status;
	}
	table->nrows += n;
	table->min_key = totals.min_key;
	table->max_key = totals.max_key;
	if (totals.max_row > table->max_row)
		table->max_row = totals.max_row;
	return HGJ_OK;
}

/* HgjEngine.appended: the cursor is the number of rows given back so far. */
HgjStatus
hgj_cpu_appended(const HgjTable *table, uint64_t *cursor,
				 uint64_t *const *words, uint32_t *rows, uint32_t capacity,
				 uint32_t *n, HgjError *err)
{
	const Chunk *chunk = table->first_chunk;
	uint64_t	at = *cursor;
	uint32_t	w;

	*n = 0;
	if (table->built)
		return hgj_fail(err, HGJ_INVALID, "appended after build");
	while (chunk != NULL && at >= chunk->nrows)
	{
		at -= chunk->nrows;
		chunk = chunk->next;
	}
	if (chunk == NULL)
		return HGJ_OK;
	if (chunk->data_bytes > 0)
		return hgj_fail(err, HGJ_INVALID,
						"appended after a build that was given up");
	*n = chunk->nrows - at < capacity ? (uint32_t) (chunk->nrows - at) : capacity;
	for (w = 0; w < table->spec.nwords; w++)
		memcpy(words[w], chunk->data + w * chunk->cap + at,
			   *n * sizeof(uint64_t));
	memcpy(rows, (const uint32_t *) (const void *)
		   (chunk->data + table->spec.nwords * chunk->cap) + at,
		   *n * sizeof(uint32_t));
	*cursor += *n;
	return HGJ_OK;
}
