/*-------------------------------------------------------------------------
 *
 * cpu_bin.c
 *	  Build V2 (Green 2019, algorithm 2; Groschaft 2022, algorithm 2).
 *
 * hgj_cpu_bin:
 * 1. Histogram: how many rows fall into each bin (the high bits of the code).
 * 2. Exclusive scan: where each bin begins.
 * 3. Scatter the rows, as entries, into their bins.  Each bin has one cache
 *	  line of staging; a full line goes to memory past the cache, so that a
 *	  thousand open bins cost neither cache lines nor reads of what is going
 *	  to be overwritten.
 *
 * hgj_cpu_finish_bins, for static CSR, bin by bin:
 * 4. Copy the bin's entries aside, with their vertices, counting per vertex.
 * 5. Exclusive scan over the bin's vertices.
 * 6. Place the entries back, ordered by vertex.
 * Of a graph that has less of them (plan_repacks()), the entries stay as they are, and
 * what it has of each goes to its place elsewhere.
 * A bin that is too large to be copied aside (one hot key is enough) is
 * ordered where it is, by following the cycles of the permutation.  Between
 * two bins the entries are always all there, in some order: a cancelled build
 * can begin again from them.
 *
 * Histogram, staging and scratch live within a call.  The binned entries
 * belong to the caller.  Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "cpu_internal.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define LINE	64

/* A line of staging, of 8 narrow or 4 wide entries. */
typedef struct Line
{
	uint8_t		bytes[LINE];
} Line;

static size_t
staging_bytes(const Plan *plan)
{
	return plan->packed == LAYOUT_MULTI ? 0 : (size_t) plan->bins * sizeof(Line);
}

/* What hgj_cpu_bin allocates beside the entries. */
size_t
hgj_cpu_bin_bytes(const Plan *plan)
{
	return hgj_mem_footprint(plan->bins * sizeof(uint32_t)) +
		hgj_mem_footprint(staging_bytes(plan));
}

/* Vertices of one bin. */
uint64_t
hgj_cpu_bin_vertices(const Plan *plan)
{
	return UINT64_C(1) << (plan->bin_shift - plan->shift);
}

/* What hgj_cpu_finish_bins allocates beside the offsets. */
size_t
hgj_cpu_scratch_bytes(const HgjTable *table, const Plan *plan)
{
	size_t		ends = (size_t) hgj_cpu_bin_vertices(plan) * sizeof(uint32_t);
	uint64_t	average = plan->rows / plan->bins;
	uint64_t	entries = (average + average / 8 + 256) *
		(plan->packed_stride + sizeof(uint32_t));
	uint64_t	cap = 2 * (uint64_t) table->l2_bytes;

	if (plan_repacks(plan))
		return 0;
	entries = entries > cap ? cap : entries;
	return hgj_mem_footprint(ends > entries ? ends : (size_t) entries);
}

/* Write a full line to memory, past the cache. */
HGJ_INLINE void
stream_line(void *to, const Line *line)
{
#ifdef __SSE2__
	__m128i    *out = (__m128i *) to;
	const __m128i *in = (const __m128i *) (const void *) line;
	__m128i		a = _mm_load_si128(in);
	__m128i		b = _mm_load_si128(in + 1);
	__m128i		c = _mm_load_si128(in + 2);
	__m128i		d = _mm_load_si128(in + 3);

	_mm_stream_si128(out, a);
	_mm_stream_si128(out + 1, b);
	_mm_stream_si128(out + 2, c);
	_mm_stream_si128(out + 3, d);
#else
	memcpy(to, line, LINE);
#endif
}

HGJ_INLINE void
stream_fence(void)
{
#ifdef __SSE2__
	_mm_sfence();
#endif
}

/*
 * Move what is staged of a bin up to slot `to` (exclusive) to memory.  The
 * line may begin before the bin does; that part is another bin's.
 */
static void
flush_part(uint8_t *entries, const Line *line, uint32_t stride, uint32_t start,
		   uint32_t to)
{
	uint32_t	per_line = LINE / stride;
	uint32_t	from = (to - 1) & ~(per_line - 1);
	uint32_t	skip = 0;

	if (from < start)
	{
		skip = start - from;
		from = start;
	}
	memcpy(entries + (size_t) from * stride, line->bytes + skip * stride,
		   (size_t) (to - from) * stride);
}

/* What the rows of a block are binned by. */
static void
block_codes(const HgjTable *t, const Plan *plan, const Block *block, uint64_t *codes)
{
	if (plan->quotient)
		hgj_cpu_quotient_codes(plan, block->words[0], block->n, codes);
	else
		hgj_cpu_codes(t, plan->direct, plan->base, block->words, block->n, codes);
}

/* Step 3 for a block of narrow or wide entries. */
HGJ_INLINE void
scatter_block(uint8_t *entries, Layout layout, const Plan *plan,
			  const Block *block, const uint64_t *codes, Line *lines,
			  uint32_t *next, const uint32_t *starts)
{
	const uint32_t stride = layout == LAYOUT_NARROW ? 8 : 16;
	const uint32_t per_line = LINE / stride;
	const uint64_t *keys = block->words[0];
	uint64_t	base = plan->base;
	uint32_t	shift = plan->bin_shift;
	uint32_t	i;

	for (i = 0; i < block->n; i++)
	{
		uint32_t	bin = (uint32_t) (codes[i] >> shift);
		uint32_t	slot = next[bin]++;
		uint32_t	at = slot & (per_line - 1);
		Line	   *line = lines + bin;

		if (layout == LAYOUT_NARROW)
		{
			NarrowEntry *e = (NarrowEntry *) (void *) line + at;

			e->key = (uint32_t) (keys[i] - base);
			e->row = block->rows[i];
		}
		else
		{
			WideEntry  *e = (WideEntry *) (void *) line + at;

			e->key = keys[i];
			e->row = block->rows[i];
			e->tag = (uint32_t) codes[i];
		}
		if (at == per_line - 1)
		{
			uint32_t	first = slot - at;

			if (HGJ_LIKELY(first >= starts[bin]))
				stream_line(entries + (size_t) first * stride, line);
			else
				flush_part(entries, line, stride, starts[bin], slot + 1);
		}
	}
}

/* Step 3 for a block of entries too long to be staged. */
static void
scatter_multi(uint8_t *entries, const Plan *plan, const Block *block,
			  const uint64_t *codes, uint32_t nwords, uint32_t *next)
{
	uint32_t	i;

	for (i = 0; i < block->n; i++)
		slot_write(entries, LAYOUT_MULTI, plan->packed_stride,
				   next[codes[i] >> plan->bin_shift]++, block->words, nwords, 0,
				   i, codes[i], block->rows[i]);
}

static HgjStatus
scatter_rows(HgjTable *t, Source *source, const Plan *plan, uint8_t *entries,
			 Line *lines, uint32_t *next, const uint32_t *starts,
			 HgjError *err)
{
	uint64_t	codes[HGJ_BLOCK_ROWS];
	Block		block;
	HgjStatus	status;
	uint32_t	b;

	hgj_cpu_source_rewind(source);
	for (;;)
	{
		status = hgj_cpu_source_next(source, &block, err);
		if (status != HGJ_OK || block.n == 0)
			break;
		block_codes(t, plan, &block, codes);
		if (plan->packed == LAYOUT_NARROW)
			scatter_block(entries, LAYOUT_NARROW, plan, &block, codes, lines,
						  next, starts);
		else if (plan->packed == LAYOUT_WIDE)
			scatter_block(entries, LAYOUT_WIDE, plan, &block, codes, lines,
						  next, starts);
		else
			scatter_multi(entries, plan, &block, codes, t->spec.nwords, next);
	}
	if (status == HGJ_OK && plan->packed != LAYOUT_MULTI)
	{
		uint32_t	per_line = LINE / plan->packed_stride;

		for (b = 0; b < plan->bins; b++)
			if (next[b] > starts[b] && next[b] % per_line != 0)
				flush_part(entries, lines + b, plan->packed_stride, starts[b],
						   next[b]);
		stream_fence();
	}
	return status;
}

/* Add to counts[c] the number of rows whose code, shifted right so far, is c. */
HgjStatus
hgj_cpu_count_codes(HgjTable *table, Source *source, const Plan *plan,
					uint32_t shift, uint32_t *counts, HgjError *err)
{
	uint64_t	codes[HGJ_BLOCK_ROWS];
	Block		block;
	HgjStatus	status;
	uint32_t	i;

	hgj_cpu_source_rewind(source);
	for (;;)
	{
		status = hgj_cpu_source_next(source, &block, err);
		if (status != HGJ_OK || block.n == 0)
			return status;
		block_codes(table, plan, &block, codes);
		for (i = 0; i < block.n; i++)
			counts[codes[i] >> shift]++;
	}
}

/* Step 1: counts[b] becomes the number of rows of bin b. */
HgjStatus
hgj_cpu_count_bins(HgjTable *table, Source *source, const Plan *plan,
				   uint32_t *counts, HgjError *err)
{
	memset(counts, 0, plan->bins * sizeof(uint32_t));
	return hgj_cpu_count_codes(table, source, plan, plan->bin_shift, counts, err);
}

/*
 * Step 3: rows become entries, in plan->packed layout; those of bin b go to
 * starts[b] and what follows, and nothing else is written.
 */
HgjStatus
hgj_cpu_scatter(HgjTable *table, Source *source, const Plan *plan,
				void *packed, const uint32_t *starts, HgjError *err)
{
	size_t		next_bytes = plan->bins * sizeof(uint32_t);
	size_t		lines_bytes = staging_bytes(plan);
	void	   *next;
	void	   *lines = NULL;
	HgjStatus	status = hgj_cpu_get(table, next_bytes, &next, err);

	if (status == HGJ_OK && lines_bytes > 0)
		status = hgj_cpu_get(table, lines_bytes, &lines, err);
	if (status == HGJ_OK)
	{
		memcpy(next, starts, next_bytes);
		status = scatter_rows(table, source, plan, packed, lines, next, starts,
							  err);
	}
	hgj_cpu_put(table, lines, lines_bytes);
	hgj_cpu_put(table, next, next_bytes);
	return status;
}

/*
 * Bin all rows of a source.  *packed gets the entries, in plan->packed layout,
 * and starts[b] .. starts[b + 1] says which are bin b's.
 */
HgjStatus
hgj_cpu_bin(HgjTable *table, Source *source, const Plan *plan, void **packed,
			size_t *packed_bytes, uint32_t *starts, HgjError *err)
{
	HgjStatus	status;
	uint32_t	sum = 0;
	uint32_t	b;

	*packed = NULL;
	*packed_bytes = 0;
	if (plan->rows > (SIZE_MAX / 2 - LINE) / plan->packed_stride)
		return hgj_fail(err, HGJ_OUT_OF_MEMORY, "the table is too large");
	*packed_bytes = (size_t) plan->rows * plan->packed_stride + LINE;
	status = hgj_cpu_count_bins(table, source, plan, starts, err);
	if (status != HGJ_OK)
		return status;
	for (b = 0; b < plan->bins; b++)
	{
		uint32_t	count = starts[b];

		starts[b] = sum;
		sum += count;
	}
	starts[plan->bins] = sum;
	status = hgj_cpu_get(table, *packed_bytes, packed, err);
	if (status == HGJ_OK)
		status = hgj_cpu_touch(table, *packed, *packed_bytes, err);
	if (status == HGJ_OK)
		status = hgj_cpu_scatter(table, source, plan, *packed, starts, err);
	if (status != HGJ_OK)
	{
		hgj_cpu_put(table, *packed, *packed_bytes);
		*packed = NULL;
	}
	return status;
}

/*
 * What it takes to know the vertex of an entry.  Loops keep a copy of their
 * own: the entries that they write could alias anything they have a pointer to.
 */
typedef struct Coder
{
	HgjHash		hash;
	uint64_t	base;
	uint32_t	shift;
	uint32_t	nwords;
	uint32_t	stride;
} Coder;

static Coder
make_coder(const HgjTable *t, const Plan *plan)
{
	Coder		coder;

	coder.hash = t->hash;
	coder.base = plan->base;
	coder.shift = plan->shift;
	coder.nwords = t->spec.nwords;
	coder.stride = plan->packed_stride;
	return coder;
}

/* The vertex of a packed entry of a hashed table. */
HGJ_INLINE uint64_t
entry_vertex(const Coder *coder, Layout layout, const uint8_t *entry)
{
	const HgjHash *hash = &coder->hash;
	uint64_t	code;
	uint32_t	w;

	if (layout == LAYOUT_NARROW)
		code = hgj_hash_single(hash, coder->base + ((const NarrowEntry *)
													(const void *) entry)->key);
	else if (layout == LAYOUT_WIDE)
		code = hgj_hash_single(hash, ((const WideEntry *)
									  (const void *) entry)->key);
	else
	{
		code = hash->start;
		for (w = 0; w < coder->nwords; w++)
			code = hgj_hash_word(hash, code,
								 ((const MultiEntry *)
								  (const void *) entry)->words[w]);
		code = hgj_hash_finish(hash, code);
	}
	return code >> coder->shift;
}

HGJ_INLINE void
entry_copy(uint8_t *to, const uint8_t *from, Layout layout, uint32_t stride)
{
	if (layout == LAYOUT_NARROW)
		memcpy(to, from, sizeof(NarrowEntry));
	else if (layout == LAYOUT_WIDE)
		memcpy(to, from, sizeof(WideEntry));
	else
		memcpy(to, from, stride);
}

/* Step 5: counts in the bin's cells become first slots.  The longest list. */
static uint32_t
scan_bin(const Bin *bin)
{
	uint32_t   *cells = bin->cells;
	uint64_t	last = bin->last;
	uint32_t	slot = bin->from;
	uint32_t	longest = 0;
	uint64_t	v;

	for (v = bin->first; v < last; v++)
	{
		uint32_t	count = cells[v];

		longest = count > longest ? count : longest;
		cells[v] = slot;
		slot += count;
	}
	return longest;
}

/* Steps 4 to 6, aside. */
HGJ_INLINE void
order_aside(Coder coder, Layout layout, const Bin *bin, uint32_t *longest)
{
	uint32_t	stride = layout == LAYOUT_NARROW ? 8 :
		layout == LAYOUT_WIDE ? 16 : coder.stride;
	uint8_t    *entries = bin->entries;
	uint8_t    *in_bin = entries + (size_t) bin->from * stride;
	uint8_t    *scratch = bin->scratch;
	uint32_t   *cells = bin->cells + bin->first;
	uint32_t	n = bin->to - bin->from;
	uint32_t   *vertices = (uint32_t *) (void *) (scratch + (size_t) n * stride);
	uint32_t	first = (uint32_t) bin->first;
	uint32_t	i;

	for (i = 0; i < n; i++)
	{
		const uint8_t *e = in_bin + (size_t) i * stride;
		uint32_t	vertex = (uint32_t) entry_vertex(&coder, layout, e) - first;

		entry_copy(scratch + (size_t) i * stride, e, layout, stride);
		vertices[i] = vertex;
		cells[vertex]++;
	}
	*longest = scan_bin(bin);
	for (i = 0; i < n; i++)
		entry_copy(entries + (size_t) cells[vertices[i]]++ * stride,
				   scratch + (size_t) i * stride, layout, stride);
}

/*
 * Steps 4 to 6 where the entries are.  An entry is lifted out; while it is not
 * one of the vertex we are filling, it changes places with the next entry of
 * the vertex it belongs to.
 */
HGJ_INLINE HgjStatus
order_in_place(HgjTable *t, Coder coder, Layout layout, const Bin *bin,
			   uint32_t *longest, HgjError *err)
{
	uint32_t	stride = coder.stride;
	uint32_t   *cells = bin->cells;
	uint32_t   *ends = (uint32_t *) (void *) bin->scratch;
	uint64_t	lifted[HGJ_MAX_KEY_WORDS + 1];
	uint64_t	other[HGJ_MAX_KEY_WORDS + 1];
	uint64_t	steps = 0;
	uint32_t	i;
	uint64_t	v;
	HgjStatus	status;

	for (i = bin->from; i < bin->to; i++)
	{
		cells[entry_vertex(&coder, layout,
						   bin->entries + (size_t) i * stride)]++;
		if (++steps % HGJ_POLL_STEPS == 0 &&
			(status = hgj_poll(&t->spec, err)) != HGJ_OK)
			return status;
	}
	*longest = scan_bin(bin);
	for (v = bin->first; v < bin->last; v++)
		ends[v - bin->first] = v + 1 < bin->last ? cells[v + 1] : bin->to;
	for (v = bin->first; v < bin->last; v++)
	{
		while (cells[v] < ends[v - bin->first])
		{
			uint8_t    *hole = bin->entries + (size_t) cells[v] * stride;
			uint64_t	vertex;

			entry_copy((uint8_t *) lifted, hole, layout, stride);
			for (;;)
			{
				uint8_t    *place;

				steps++;
				vertex = entry_vertex(&coder, layout, (uint8_t *) lifted);
				if (vertex == v)
					break;
				place = bin->entries + (size_t) cells[vertex]++ * stride;
				entry_copy((uint8_t *) other, place, layout, stride);
				entry_copy(place, (uint8_t *) lifted, layout, stride);
				entry_copy((uint8_t *) lifted, (uint8_t *) other, layout,
						   stride);
			}
			entry_copy(hole, (uint8_t *) lifted, layout, stride);
			cells[v]++;
			if (steps >= HGJ_POLL_STEPS)
			{
				steps = 0;
				if ((status = hgj_poll(&t->spec, err)) != HGJ_OK)
					return status;
			}
		}
	}
	return HGJ_OK;
}

/* Steps 4 to 6 of a plan that repacks: row ids, or quotients. */
HGJ_INLINE HgjStatus
repack(HgjTable *t, const Plan *plan, const Bin *bin, bool quotient,
	   uint32_t *longest, HgjError *err)
{
	const NarrowEntry *packed = (const NarrowEntry *) (const void *) bin->entries;
	const Mix	mix = plan->mix;
	uint32_t	shift = plan->shift;
	uint32_t   *cells = bin->cells;
	HgjStatus	status = HGJ_OK;
	uint32_t	i;

	for (i = bin->from; i < bin->to && status == HGJ_OK; i++)
	{
		cells[quotient ? mix_number(&mix, packed[i].key) >> shift : packed[i].key]++;
		if ((i + 1) % HGJ_POLL_STEPS == 0)
			status = hgj_poll(&t->spec, err);
	}
	if (status != HGJ_OK)
		return status;
	*longest = scan_bin(bin);
	for (i = bin->from; i < bin->to && status == HGJ_OK; i++)
	{
		if (quotient)
		{
			uint32_t	code = mix_number(&mix, packed[i].key);

			((uint16_t *) bin->lists)[cells[code >> shift]++] =
				(uint16_t) (code & ((UINT32_C(1) << shift) - 1));
		}
		else
			((uint32_t *) bin->lists)[cells[packed[i].key]++] = packed[i].row;
		if ((i + 1) % HGJ_POLL_STEPS == 0)
			status = hgj_poll(&t->spec, err);
	}
	return status;
}

/*
 * Steps 4 to 6: order the entries of a bin by vertex, filling its cells.  When
 * cancelled, they are all there, in some order, and the call may be repeated.
 */
HgjStatus
hgj_cpu_order_bin(HgjTable *table, const Plan *plan, const Bin *bin,
				  uint32_t *longest, HgjError *err)
{
	bool		aside = (uint64_t) (bin->to - bin->from) *
		(plan->packed_stride + sizeof(uint32_t)) <= bin->scratch_bytes;
	Coder		coder = make_coder(table, plan);

	memset(bin->cells + bin->first, 0,
		   (size_t) (bin->last - bin->first) * sizeof(uint32_t));
	if (bin->lists != NULL)
		return plan->quotient ? repack(table, plan, bin, true, longest, err) :
			repack(table, plan, bin, false, longest, err);
	if (plan->packed == LAYOUT_NARROW)
	{
		if (!aside)
			return order_in_place(table, coder, LAYOUT_NARROW, bin, longest,
								  err);
		order_aside(coder, LAYOUT_NARROW, bin, longest);
	}
	else if (plan->packed == LAYOUT_WIDE)
	{
		if (!aside)
			return order_in_place(table, coder, LAYOUT_WIDE, bin, longest, err);
		order_aside(coder, LAYOUT_WIDE, bin, longest);
	}
	else
	{
		if (!aside)
			return order_in_place(table, coder, LAYOUT_MULTI, bin, longest,
								  err);
		order_aside(coder, LAYOUT_MULTI, bin, longest);
	}
	return HGJ_OK;
}

/*
 * Order the entries within every bin by vertex, so that they are the edge
 * lists of a CSR graph, whose offsets are made on the way; or fill graph->entries,
 * if there are any, with what it has of them.
 */
HgjStatus
hgj_cpu_finish_bins(HgjTable *table, const Plan *plan, void *packed,
					const uint32_t *starts, Graph *graph, HgjError *err)
{
	size_t		bytes = (size_t) (plan->vertices + 1) * sizeof(uint32_t);
	uint64_t	step = hgj_cpu_bin_vertices(plan);
	uint64_t	since_poll = 0;
	uint32_t	longest = 0;
	void	   *p;
	Bin			bin;
	HgjStatus	status;
	uint32_t	b;

	status = hgj_cpu_get(table, bytes, &p, err);
	if (status != HGJ_OK)
		return status;
	graph->offsets = p;
	graph->offsets_bytes = bytes;
	graph->segments = HGJ_SEGMENTS_CSR;
	graph->slots = plan->rows;
	graph->longest = 0;
	graph->offsets[0] = 0;
	bin.scratch_bytes = hgj_cpu_scratch_bytes(table, plan);
	p = NULL;
	if (bin.scratch_bytes > 0)
		status = hgj_cpu_get(table, bin.scratch_bytes, &p, err);
	bin.scratch = p;
	bin.entries = packed;
	bin.lists = graph->entries;
	bin.cells = graph->offsets + 1;
	for (b = 0; b < plan->bins && status == HGJ_OK; b++)
	{
		bin.first = b * step;
		bin.last = bin.first + step;
		bin.from = starts[b];
		bin.to = starts[b + 1];
		status = hgj_cpu_order_bin(table, plan, &bin, &longest, err);
		graph->longest = longest > graph->longest ? longest : graph->longest;
		since_poll += step + (bin.to - bin.from);
		if (status == HGJ_OK && since_poll >= HGJ_POLL_STEPS)
		{
			status = hgj_poll(&table->spec, err);
			since_poll = 0;
		}
	}
	hgj_cpu_put(table, bin.scratch, bin.scratch_bytes);
	return status;
}
