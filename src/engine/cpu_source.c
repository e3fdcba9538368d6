/*-------------------------------------------------------------------------
 *
 * cpu_source.c
 *	  Reading rows back, block by block, for a build: from the chunks that
 *	  append filled, from the entries of a graph that is being rebuilt, and
 *	  from a batch that is being inserted.
 *
 * 1. Columns of a chunk are handed out where they lie.
 * 2. Entries (a packed chunk, or a graph) are unpacked into a small buffer of
 *	  columns; slots that are empty or deleted are skipped.
 * 3. A batch's columns are handed out where they lie, or gathered into the
 *	  buffer when there is a selection vector.
 *
 * A block is valid until the next call.  The buffer belongs to the source,
 * from open to close; the rows belong to whom they belonged before.  Every
 * HGJ_POLL_BLOCKS blocks it polls, so that no loop over a source has to.
 * Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "cpu_internal.h"

#define BUFFER_BYTES	((size_t) 64 * 1024)
#define MIN_BUFFER_ROWS	64

enum
{
	STAGE_CHUNKS,
	STAGE_GRAPH,
	STAGE_KEYS,
	STAGE_END
};

/*
 * Get a source ready, whose table and origins the caller has set.  Allocates
 * a buffer when one of them is not in columns.
 */
HgjStatus
hgj_cpu_source_open(Source *source, HgjError *err)
{
	HgjTable   *t = source->table;
	const Chunk *c;
	bool		unpack = source->graph != NULL || source->keys != NULL;
	void	   *p;
	HgjStatus	status;

	for (c = source->chunks; c != NULL && !unpack; c = c->next)
		unpack = c->data_bytes > 0;
	source->buffer = NULL;
	source->buffer_bytes = 0;
	source->buffer_rows = 0;
	if (unpack)
	{
		size_t		rows = BUFFER_BYTES / t->row_bytes;

		rows = rows > HGJ_BLOCK_ROWS ? HGJ_BLOCK_ROWS : rows;
		rows = rows < MIN_BUFFER_ROWS ? MIN_BUFFER_ROWS : rows;
		source->buffer_bytes = rows * t->row_bytes;
		status = hgj_cpu_get(t, source->buffer_bytes, &p, err);
		if (status != HGJ_OK)
			return status;
		source->buffer = p;
		source->buffer_rows = (uint32_t) rows;
	}
	hgj_cpu_source_rewind(source);
	return HGJ_OK;
}

/* Give the buffer back; may be called twice. */
void
hgj_cpu_source_close(Source *source)
{
	hgj_cpu_put(source->table, source->buffer, source->buffer_bytes);
	source->buffer = NULL;
}

/* Back to the first row. */
void
hgj_cpu_source_rewind(Source *source)
{
	source->stage = STAGE_CHUNKS;
	source->chunk = source->chunks;
	source->at = 0;
	source->blocks = 0;
}

static uint64_t *
buffer_column(const Source *source, uint32_t w)
{
	return source->buffer + (size_t) w * source->buffer_rows;
}

static uint32_t *
buffer_rows(const Source *source)
{
	return (uint32_t *) (void *)
		buffer_column(source, source->table->spec.nwords);
}

/* Point a block at the buffer. */
static void
block_of_buffer(const Source *source, Block *block, uint32_t n)
{
	uint32_t	w;

	for (w = 0; w < source->table->spec.nwords; w++)
		block->words[w] = buffer_column(source, w);
	block->rows = buffer_rows(source);
	block->n = n;
}

/*
 * Unpack live entries from slot *at on (and before `end`) into the buffer,
 * moving *at behind the last one looked at.  Returns how many.
 */
static uint32_t
unpack(const Source *source, const uint8_t *entries, Layout layout,
	   uint32_t stride, uint64_t base, uint64_t *at, uint64_t end)
{
	uint64_t   *column = buffer_column(source, 0);
	uint32_t   *rows = buffer_rows(source);
	uint32_t	cap = source->buffer_rows;
	uint32_t	nwords = source->table->spec.nwords;
	uint64_t	slot = *at;
	uint32_t	n = 0;
	uint32_t	w;

	/* a run of free slots must not keep us from polling */
	if (end - slot > HGJ_POLL_STEPS / HGJ_POLL_BLOCKS)
		end = slot + HGJ_POLL_STEPS / HGJ_POLL_BLOCKS;
	for (; slot < end && n < cap; slot++)
	{
		uint32_t	row = slot_row(entries, layout, stride, slot);

		if (row >= HGJ_ROW_DELETED)
			continue;
		rows[n] = row;
		if (layout == LAYOUT_NARROW)
			column[n] = base +
				((const NarrowEntry *) (const void *) entries)[slot].key;
		else if (layout == LAYOUT_WIDE)
			column[n] = ((const WideEntry *) (const void *) entries)[slot].key;
		else
		{
			const MultiEntry *e = (const MultiEntry *) (const void *)
				(entries + slot * stride);

			for (w = 0; w < nwords; w++)
				column[(size_t) w * cap + n] = e->words[w];
		}
		n++;
	}
	*at = slot;
	return n;
}

static void
next_of_chunks(Source *source, Block *block)
{
	const Chunk *c = source->chunk;
	uint32_t	nwords = source->table->spec.nwords;
	uint32_t	w;

	if (c == NULL)
	{
		source->stage = STAGE_GRAPH;
		source->at = 0;
	}
	else if (source->at >= c->nrows)
	{
		source->chunk = c->next;
		source->at = 0;
	}
	else if (c->data_bytes > 0)
	{
		uint32_t	n;

		n = unpack(source, (const uint8_t *) c->data, c->layout,
				   layout_stride(c->layout, nwords), c->base, &source->at,
				   c->nrows);
		block_of_buffer(source, block, n);
	}
	else
	{
		uint64_t	n = c->nrows - source->at;

		block->n = n > HGJ_BLOCK_ROWS ? HGJ_BLOCK_ROWS : (uint32_t) n;
		for (w = 0; w < nwords; w++)
			block->words[w] = c->data + w * c->cap + source->at;
		block->rows = (const uint32_t *) (const void *)
			(c->data + nwords * c->cap) + source->at;
		source->at += block->n;
	}
}

static void
next_of_graph(Source *source, Block *block)
{
	const Graph *g = source->graph;

	if (g == NULL || source->at >= g->slots)
	{
		source->stage = STAGE_KEYS;
		source->at = source->keys_from;
		return;
	}
	block_of_buffer(source, block,
					unpack(source, g->entries, g->layout, g->stride, g->base,
						   &source->at, g->slots));
}

static void
next_of_keys(Source *source, Block *block)
{
	const HgjKeys *keys = source->keys;
	uint32_t	total = keys == NULL ? 0 : hgj_key_count(keys);
	uint32_t	n;
	uint32_t	w;
	uint32_t	i;

	if (source->at >= total)
	{
		source->stage = STAGE_END;
		return;
	}
	n = total - (uint32_t) source->at;
	n = n > source->buffer_rows ? source->buffer_rows : n;
	block_of_buffer(source, block, n);
	for (i = 0; i < n; i++)
	{
		uint32_t	at = (uint32_t) source->at + i;
		uint32_t	index = keys->sel != NULL ? keys->sel[at] : at;

		buffer_rows(source)[i] = source->row_ids != NULL ?
			source->row_ids[index] : source->first_row + index;
		for (w = 0; w < source->table->spec.nwords; w++)
			buffer_column(source, w)[i] = keys->words[w][index];
	}
	source->at += n;
}

/*
 * The next block: 1 .. HGJ_BLOCK_ROWS rows, or none at the end.  The only
 * failure is HGJ_CANCELLED.
 */
HgjStatus
hgj_cpu_source_next(Source *source, Block *block, HgjError *err)
{
	block->n = 0;
	while (block->n == 0 && source->stage != STAGE_END)
	{
		if (++source->blocks > HGJ_POLL_BLOCKS)
		{
			HgjStatus	status = hgj_poll(&source->table->spec, err);

			if (status != HGJ_OK)
				return status;
			source->blocks = 1;
		}
		if (source->stage == STAGE_CHUNKS)
			next_of_chunks(source, block);
		else if (source->stage == STAGE_GRAPH)
			next_of_graph(source, block);
		else
			next_of_keys(source, block);
	}
	return HGJ_OK;
}

/*
 * The codes (see cpu_internal.h) of n <= HGJ_BLOCK_ROWS rows, whose key words
 * lie in columns: hashes, or key - base for a direct table.
 */
void
hgj_cpu_codes(const HgjTable *table, bool direct, uint64_t base,
			  const uint64_t *const *words, uint32_t n, uint64_t *codes)
{
	const HgjHash hash = table->hash;
	uint32_t	nwords = table->spec.nwords;
	uint32_t	w;
	uint32_t	i;

	if (direct)
		for (i = 0; i < n; i++)
			codes[i] = words[0][i] - base;
	else if (nwords == 1)
		for (i = 0; i < n; i++)
			codes[i] = hgj_hash_single(&hash, words[0][i]);
	else
	{
		for (i = 0; i < n; i++)
			codes[i] = hgj_hash_word(&hash, hash.start, words[0][i]);
		for (w = 1; w < nwords; w++)
			for (i = 0; i < n; i++)
				codes[i] = hgj_hash_word(&hash, codes[i], words[w][i]);
		for (i = 0; i < n; i++)
			codes[i] = hgj_hash_finish(&hash, codes[i]);
	}
}
