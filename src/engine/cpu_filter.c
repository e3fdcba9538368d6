/*-------------------------------------------------------------------------
 *
 * cpu_filter.c
 *	  A filter in front of the graph, for probes of which few rows match.
 *
 * Looking a row up costs one or two cache misses in the graph, matched or
 * not.  The filter says "no" to most rows without a match, from memory that
 * is mostly ten times smaller, or is looked up faster.
 *
 * 1. A probe counts its rows, and those that found a match.  When few of them
 *	  did, and the graph is much larger than the L2 cache, the filter is made.
 * 2. For a hashed table it is a Bloom filter (Bloom 1970) blocked by word: the
 *	  hash's high bits choose one 64-bit word, and its low bits three bits of
 *	  it.  One row in 28 passes by mistake, or fewer.  As the entries lie in the
 *	  order of their hashes, making it runs through both arrays from end to end.
 *	  For a direct table, and for one of single keys that do not lie too far
 *	  apart, it is a bit per key from the smallest to the largest, which is
 *	  tested several times as fast and makes no mistakes: so a few keys of a large
 *	  table may take more than a Bloom filter of them would, and many may take what the
 *	  caller has set aside.
 * 3. From then on each batch is tested first, and only the rows that pass are
 *	  looked up: they become the batch's selection.
 * 4. When most of the rows pass, the probe does without, and counts again.
 * 5. A caller who sifts (engine.h) does step 3 on its own, before rows are in a
 *	  batch.  That saves more than a lookup, so that small graphs are worth it.
 *	  Where it saves a chain of joins, too (HGJ_TABLE_SIFT_EARLY), less evidence
 *	  is wanted, none for small tables, and fewer rows need to fail; which filters
 *	  are then asked, and in which order, is the caller's business.  None is wanted for
 *	  a caller who sifts all rows before the first is looked up (HGJ_TABLE_SIFT_AT_ONCE):
 *	  there could be none.
 *
 * A filter takes no more memory than the build has given back, and what the caller
 * has set aside for it (spec.filter_room): the memory limit is not passed, nor is
 * what the caller has checked.  Where that is too little, or malloc says no, there is
 * none, and a note says so.  Dynamic tables have none: their keys change.
 *
 * The filter belongs to the table, the selection to the probe.  Several probes
 * may find at once that they want a filter: one makes it, the others go on
 * without until it is there.  That of a shared table is in its image, where there
 * is room for it, with its state: one probe of one process makes it for all.
 * Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "cpu_probe.h"

/* Of a Bloom filter, per row, at least; a power of two makes it up to twice. */
#define BITS_PER_ROW	8

/* Graphs this many times larger than L2 are worth one. */
#define GRAPH_L2S		16

/* A filter smaller than this is in the cache: fetch nothing ahead. */
#define CACHED_BYTES	(128 * 1024)

/*
 * A bit per key is wanted up to so many times the memory of a Bloom filter, as long as it
 * leaves most of an L2 cache to others, and up to half of what the caller has set aside:
 * the hash of a Bloom filter takes four times as long as the bit's place (6 and 1.5 ns a row),
 * and keys that come in order find the bits of their neighbours.
 */
#define EXACT_PER_BLOOM	4
#define SMALL_BYTES		(256 * 1024)

/* Rows after which a probe looks back, and more before it makes a filter. */
#define WINDOW_ROWS		32768
#define ROWS_PER_TRIAL	16

/*
 * Measured (bench/engine_bench): at 10M rows a lookup costs 16 to 22 ns, the
 * test 6, and making the filter 3 per build row.  It is wanted when fewer than
 * two rows in five match, and no longer when more than three in five pass.
 * With graphs of up to 14 MB and an L2 of 1 MB, it did not pay at any rate.
 */
#define WANTED(matched, rows)	((matched) * 5 < (rows) * 2)
#define USELESS(passed, rows)	((passed) * 5 > (rows) * 3)

/* The same for HGJ_TABLE_SIFT_EARLY, and tables whose filter costs next to nothing. */
#define EARLY_ROWS				1024
#define EARLY_BUILD_ROWS		16384
#define WANTED_EARLY(matched, rows)	((matched) * 10 < (rows) * 9)
#define USELESS_EARLY(passed, rows)	((passed) * 20 > (rows) * 19)

/* The bits that a hash stands for, in the word that it chooses. */
HGJ_INLINE uint64_t
bloom_bits(uint64_t code)
{
	return UINT64_C(1) << (code & 63) | UINT64_C(1) << (code >> 6 & 63) |
		UINT64_C(1) << (code >> 12 & 63);
}

/* The hash of the key in a slot. */
HGJ_INLINE uint64_t
slot_code(const HgjTable *t, Layout layout, uint64_t slot)
{
	const Graph *g = &t->graph;
	uint64_t	state = t->hash.start;
	uint32_t	w;

	if (layout == LAYOUT_NARROW)
		return hgj_hash_single(&t->hash, g->base +
							   ((const NarrowEntry *) (const void *) g->entries)[slot].key);
	if (layout == LAYOUT_WIDE)
		return hgj_hash_single(&t->hash,
							   ((const WideEntry *) (const void *) g->entries)[slot].key);
	for (w = 0; w < t->spec.nwords; w++)
		state = hgj_hash_word(&t->hash, state,
							  multi_entry(g->entries, slot, g->stride)->words[w]);
	return hgj_hash_finish(&t->hash, state);
}

/* Step 2, hashed: the keys in slots from .. to. */
HGJ_INLINE void
add_slots(const HgjTable *t, Layout layout, const Filter *filter,
		  uint64_t from, uint64_t to)
{
	for (; from < to; from++)
	{
		uint64_t	code;

		if (slot_row(t->graph.entries, layout, t->graph.stride, from) ==
			HGJ_ROW_EMPTY)
			continue;			/* padding */
		code = slot_code(t, layout, from);
		filter->words[code >> filter->shift] |= bloom_bits(code);
	}
}

/* Step 2, a bit per key: the keys in slots from .. to. */
static void
add_keys(const Graph *g, uint64_t *words, uint64_t from, uint64_t to)
{
	const NarrowEntry *entries = (const NarrowEntry *) (const void *) g->entries;

	for (; from < to; from++)
	{
		if (slot_row(g->entries, LAYOUT_NARROW, g->stride, from) == HGJ_ROW_EMPTY)
			continue;			/* padding */
		words[entries[from].key / 64] |= UINT64_C(1) << (entries[from].key % 64);
	}
}

/* Step 2, quotients: the keys of the lists of vertices from .. to. */
static void
add_quotients(const HgjTable *t, const Filter *filter, uint64_t from, uint64_t to)
{
	const Graph *g = &t->graph;
	const uint16_t *entries = (const uint16_t *) (const void *) g->entries;
	uint32_t	inverse = mix_inverse(g->mix.mul);
	uint32_t	end_inverse = mix_inverse(g->mix.end_mul);

	for (; from < to; from++)
		for (uint32_t slot = g->offsets[from]; slot < g->offsets[from + 1]; slot++)
		{
			uint32_t	key = mix_back(&g->mix, inverse, end_inverse,
									   (uint32_t) (from << g->shift) | entries[slot]);
			uint64_t	code;

			if (filter->exact)
			{
				filter->words[key / 64] |= UINT64_C(1) << (key % 64);
				continue;
			}
			code = hgj_hash_single(&t->hash, g->base + key);
			filter->words[code >> filter->shift] |= bloom_bits(code);
		}
}

/* Step 2, direct: the vertices from .. to that have an entry. */
static void
add_vertices(const Graph *g, uint64_t *words, uint64_t from, uint64_t to)
{
	const uint32_t *rows = (const uint32_t *) (const void *) g->entries;
	uint64_t	slot;
	uint64_t	end;

	for (; from < to; from++)
	{
		vertex_slots(g, g->segments, from, &slot, &end);
		words[from / 64] |= (uint64_t)
			(slot < end && rows[slot] != HGJ_ROW_EMPTY) << (from % 64);
	}
}

/* Step 2: fill the filter, which is all zero. */
static HgjStatus
fill_filter(HgjTable *t, const Filter *filter, HgjError *err)
{
	const Graph *g = &t->graph;
	uint64_t	total = g->direct || g->quotient ? g->vertices : g->slots;
	uint64_t	at;

	for (at = 0; at < total; at += HGJ_POLL_STEPS)
	{
		uint64_t	to = total - at > HGJ_POLL_STEPS ? at + HGJ_POLL_STEPS :
			total;
		HgjStatus	status = hgj_poll(&t->spec, err);

		if (status != HGJ_OK)
			return status;
		if (g->direct)
			add_vertices(g, filter->words, at, to);
		else if (g->quotient)
			add_quotients(t, filter, at, to);
		else if (filter->exact)
			add_keys(g, filter->words, at, to);
		else if (g->layout == LAYOUT_NARROW)
			add_slots(t, LAYOUT_NARROW, filter, at, to);
		else if (g->layout == LAYOUT_WIDE)
			add_slots(t, LAYOUT_WIDE, filter, at, to);
		else
			add_slots(t, LAYOUT_MULTI, filter, at, to);
	}
	return HGJ_OK;
}

/*
 * Which kind of filter, and how many words it has; `room`, what it may take in all, is in
 * bytes, and so is `set_aside`, the caller's part of it.
 */
uint64_t
hgj_cpu_filter_words(const Graph *graph, uint64_t room, uint64_t set_aside, Filter *filter)
{
	uint32_t	log2_words = hgj_log2_ceil(graph->rows * BITS_PER_ROW / 64 + 2);
	uint64_t	most = (UINT64_C(1) << log2_words) * EXACT_PER_BLOOM;

	if (most < SMALL_BYTES / sizeof(uint64_t))
		most = SMALL_BYTES / sizeof(uint64_t);
	if (most < set_aside / 2 / sizeof(uint64_t))
		most = set_aside / 2 / sizeof(uint64_t);
	/* a Bloom filter may fit where a bit per key does not */
	if (most > room / 2 / sizeof(uint64_t))
		most = room / 2 / sizeof(uint64_t);
	filter->shift = 64 - log2_words;
	filter->base = graph->base;
	filter->range = graph->range;
	filter->exact = graph->direct ||
		(graph->layout == LAYOUT_NARROW && graph->range / 64 < most);
	if (graph->direct)
		return graph->vertices / 64 + 1;
	return filter->exact ? filter->range / 64 + 1 : UINT64_C(1) << log2_words;
}

/* Memory for a filter; HGJ_LIMIT or HGJ_OUT_OF_MEMORY where it must not be. */
static HgjStatus
get_filter(HgjTable *t, Filter *filter, HgjError *err)
{
	uint64_t	now = __atomic_load_n(&t->current, __ATOMIC_RELAXED);
	uint64_t	peak = __atomic_load_n(&t->peak, __ATOMIC_RELAXED);
	uint64_t	room = (peak > now ? peak - now : 0) + t->spec.filter_room;
	void	   *p;
	HgjStatus	status;

	filter->bytes = (size_t) hgj_cpu_filter_words(&t->graph, room, t->spec.filter_room, filter) *
		sizeof(uint64_t);
	if (hgj_mem_footprint(filter->bytes) > room)
		return hgj_fail(err, HGJ_LIMIT,
						"a filter would take more memory than the build");
	status = hgj_cpu_get(t, filter->bytes, &p, err);
	filter->words = p;
	return status;
}

/*
 * Make the filter; HGJ_LIMIT or HGJ_OUT_OF_MEMORY where it must not be.  In an
 * image there is room for it, and what it is like has been decided.
 */
static HgjStatus
make_filter(HgjTable *t, Filter *filter, HgjError *err)
{
	Filter		made = *filter;
	HgjStatus	status = HGJ_OK;

	if (t->image == NULL)
		status = get_filter(t, &made, err);
	if (status != HGJ_OK)
		return status;
	status = hgj_cpu_fill(t, made.words, 0, made.bytes, err);
	if (status == HGJ_OK)
		status = fill_filter(t, &made, err);
	if (status == HGJ_OK)
		*filter = made;
	else if (t->image == NULL)
		hgj_cpu_put(t, made.words, made.bytes);
	return status;
}

/*
 * Have a filter: made now, or by somebody else.  Without one, probe->filtering
 * stays unset.  The only failure is HGJ_CANCELLED.
 */
static HgjStatus
want_filter(HgjProbe *probe, HgjError *err)
{
	HgjTable   *t = probe->table;
	FilterState state = FILTER_NONE;
	HgjStatus	status;

	if (__atomic_compare_exchange_n(t->filter_state, &state, FILTER_MAKING,
									false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
	{
		status = make_filter(t, &t->filter, err);
		state = status == HGJ_OK ? FILTER_READY :
			status == HGJ_CANCELLED ? FILTER_NONE : FILTER_REFUSED;
		__atomic_store_n(t->filter_state, state, __ATOMIC_RELEASE);
		if (status == HGJ_CANCELLED)
			return status;
	}
	probe->filtering = state == FILTER_READY;
	probe->filter_refused = state == FILTER_REFUSED;
	return HGJ_OK;
}

/*
 * Steps 1 and 4: is this batch to be tested first?  Rows whose key is out of
 * range cost a lookup nothing, but who sifts saves more than that.
 */
static HgjStatus
decide(HgjProbe *probe, bool sifting, HgjError *err)
{
	const HgjTable *t = probe->table;
	uint64_t	window = WINDOW_ROWS;
	uint64_t	rows = probe->window_rows + (sifting ? probe->window_out : 0);
	bool		early = sifting && (t->spec.flags & HGJ_TABLE_SIFT_EARLY) != 0;
	bool		bits = t->graph.segments == HGJ_SEGMENTS_BITS;
	HgjStatus	status = HGJ_OK;

	if (t->spec.filter == HGJ_FILTER_ON)
		return probe->filtering ? HGJ_OK : want_filter(probe, err);
	if (!probe->filtering &&
		(bits || __atomic_load_n(t->filter_state, __ATOMIC_RELAXED) == FILTER_NONE))
	{
		if (early)
			window = t->graph.rows <= EARLY_BUILD_ROWS ||
				(t->spec.flags & HGJ_TABLE_SIFT_AT_ONCE) != 0 ? 0 : EARLY_ROWS;
		if (window > 0 && !bits && t->graph.rows / ROWS_PER_TRIAL > window)
			window = t->graph.rows / ROWS_PER_TRIAL;
	}
	if (rows < window)
		return HGJ_OK;
	if (probe->filtering)
		probe->filtering = early ? !USELESS_EARLY(probe->window_hits, rows) :
			!USELESS(probe->window_hits, rows);
	else if (window == 0 || (early ? WANTED_EARLY(probe->window_hits, rows) :
							 WANTED(probe->window_hits, rows)))
		status = want_filter(probe, err);
	if (status == HGJ_OK)
		probe->window_rows = probe->window_hits = probe->window_out = 0;
	return status;
}

/* Does the filter have a code? */
HGJ_INLINE uint32_t
bloom_has(const uint64_t *words, uint32_t shift, uint64_t code)
{
	uint64_t	bits = bloom_bits(code);

	return (words[code >> shift] & bits) == bits;
}

/*
 * Step 3 for keys of one word: row(i) is the i-th row, has(key) says whether the filter
 * has it.  Every row is written, and only those that pass are kept: there is nothing to
 * guess for the processor.
 */
#define TEST_SINGLE(row, has) \
	for (uint32_t i = 0; i < n; i++) \
	{ \
		uint32_t	row_ = (row); \
		uint64_t	key = column[row_]; \
		\
		out[kept] = row_; \
		kept += (has); \
	}

/* The same with all rows of a batch, or those of a selection. */
#define TEST_BLOCK(has) \
	if (sel != NULL) \
		TEST_SINGLE(sel[i], has) \
	else \
		TEST_SINGLE(at + i, has)

/* Has a bit per key this one? */
HGJ_INLINE uint32_t
exact_has(const uint64_t *words, uint64_t range, uint64_t code)
{
	bool		in = code <= range;

	code = in ? code : 0;
	return in & (words[code / 64] >> (code % 64));
}

/* Step 3 for a bit per key. */
static uint32_t
test_keys(const HgjProbe *probe, uint32_t at, uint32_t n, uint32_t *out)
{
	const uint64_t *words = probe->table->filter.words;
	const uint64_t base = probe->table->filter.base;
	const uint64_t range = probe->table->filter.range;
	const uint64_t *column = probe->keys.words[0];
	uint32_t	done;
	uint32_t	kept = hgj_cpu_test_keys(probe, at, n, out, &done);
	const uint32_t *sel = probe->keys.sel != NULL ? probe->keys.sel + at + done : NULL;

	at += done;
	n -= done;
	TEST_BLOCK(exact_has(words, range, key - base))
	return kept;
}

/* Step 3 for keys of one word and a Bloom filter that is in the cache. */
static uint32_t
test_hashes(const HgjProbe *probe, uint32_t at, uint32_t n, uint32_t *out)
{
	const HgjHash hash = probe->table->hash;
	const uint64_t *words = probe->table->filter.words;
	const uint32_t shift = probe->table->filter.shift;
	const uint64_t *column = probe->keys.words[0];
	const uint32_t *sel = probe->keys.sel != NULL ? probe->keys.sel + at : NULL;
	uint32_t	kept = 0;

	TEST_BLOCK(bloom_has(words, shift, hgj_hash_single(&hash, key)))
	return kept;
}

/*
 * Step 3 for rows at .. at + n of the selection: those that pass go to `out`, which
 * has room for n.  Returns how many.
 */
uint32_t
hgj_cpu_test_block(const HgjProbe *probe, uint32_t at, uint32_t n, uint32_t *out)
{
	const HgjTable *t = probe->table;
	const uint64_t *words = t->filter.words;
	uint32_t	shift = t->filter.shift;
	const uint32_t *sel = probe->keys.sel;
	uint64_t	codes[HGJ_TEST_ROWS];
	uint32_t	kept = 0;
	uint32_t	i;

	if (t->filter.exact)
		return test_keys(probe, at, n, out);
	if (t->spec.nwords == 1 && t->filter.bytes < CACHED_BYTES)
		return test_hashes(probe, at, n, out);
	hgj_cpu_probe_codes(probe, at, n, codes);
	for (i = 0; i < n; i++)
		HGJ_PREFETCH(words + (codes[i] >> shift));
	for (i = 0; i < n; i++)
	{
		out[kept] = sel != NULL ? sel[at + i] : at + i;
		kept += bloom_has(words, shift, codes[i]);
	}
	return kept;
}

static void
count_tested(HgjProbe *probe, uint64_t tested, uint64_t kept)
{
	HgjTable   *t = probe->table;

	probe->window_rows += tested;
	probe->window_hits += kept;
	(void) __atomic_add_fetch(&t->filter_tested, tested, __ATOMIC_RELAXED);
	(void) __atomic_add_fetch(&t->filter_rejected, tested - kept,
							  __ATOMIC_RELAXED);
}

/* Room for the selection of a batch; false where there is none. */
static bool
reserve_selection(HgjProbe *probe)
{
	/* every row is written, and only sometimes kept: one more than there are */
	size_t		bytes = ((size_t) probe->total + 1) * sizeof(uint32_t);
	void	   *p;

	if (bytes <= probe->passed_bytes)
		return true;
	hgj_cpu_probe_free_filter(probe);
	if (hgj_cpu_get(probe->table, bytes, &p, NULL) != HGJ_OK)
		return false;
	probe->passed = p;
	probe->passed_bytes = bytes;
	return true;
}

/* Give back the selection of the last batch. */
void
hgj_cpu_probe_free_filter(HgjProbe *probe)
{
	hgj_cpu_put(probe->table, probe->passed, probe->passed_bytes);
	probe->passed = NULL;
	probe->passed_bytes = 0;
}

/*
 * Steps 1 to 4 for the batch that a probe was begun with: may make a filter,
 * and narrow the batch's selection to the rows that pass it.  The only failure
 * is HGJ_CANCELLED.
 */
HgjStatus
hgj_cpu_probe_filter(HgjProbe *probe, HgjError *err)
{
	HgjTable   *t = probe->table;
	uint32_t	total = probe->total;
	uint32_t	kept = 0;
	uint32_t	at;
	HgjStatus	status;

	if (!t->may_filter || probe->filter_refused ||
		(probe->flags & HGJ_PROBE_SIFTED) != 0)
		return HGJ_OK;
	status = decide(probe, false, err);
	if (status != HGJ_OK || !probe->filtering || !reserve_selection(probe))
		return status;
	for (at = 0; at < probe->total; at += HGJ_TEST_ROWS)
	{
		uint32_t	n = probe->total - at;

		n = n > HGJ_TEST_ROWS ? HGJ_TEST_ROWS : n;
		kept += hgj_cpu_test_block(probe, at, n, probe->passed + kept);
		if ((at / HGJ_TEST_ROWS + 1) % (HGJ_POLL_STEPS / 4 / HGJ_TEST_ROWS) == 0)
		{
			status = hgj_poll(&t->spec, err);
			if (status != HGJ_OK)
				return status;
		}
	}
	probe->keys.sel = probe->passed;
	probe->keys.nsel = kept;
	probe->total = kept;
	count_tested(probe, total, kept);
	return HGJ_OK;
}

/*
 * HgjEngine.sift_begin: step 5, is it worth it?  May make the filter; the only
 * failure is HGJ_CANCELLED.
 */
HgjStatus
hgj_cpu_sift_begin(HgjProbe *probe, bool *worth, HgjError *err)
{
	HgjStatus	status = HGJ_OK;

	*worth = false;
	if (!probe->table->may_sift || probe->filter_refused)
		return HGJ_OK;
	status = decide(probe, true, err);
	*worth = status == HGJ_OK && probe->filtering;
	return status;
}

/* HgjEngine.sift; only while hgj_cpu_sift_begin() has found it worth it. */
HgjStatus
hgj_cpu_sift(HgjProbe *probe, const HgjKeys *keys, uint32_t *rows, uint32_t *n,
			 HgjError *err)
{
	HgjTable   *t = probe->table;
	HgjStatus	status = hgj_cpu_check_keys(t, keys, err);
	uint32_t	total;
	uint32_t	kept = 0;
	uint32_t	at;

	*n = 0;
	if (status != HGJ_OK)
		return status;
	if (!probe->filtering)
		return hgj_fail(err, HGJ_INVALID, "sift without a filter");
	total = hgj_key_count(keys);
	probe->begun = false;
	probe->keys = *keys;
	for (at = 0; at < total; at += HGJ_TEST_ROWS)
		kept += hgj_cpu_test_block(probe, at, total - at > HGJ_TEST_ROWS ?
								   HGJ_TEST_ROWS : total - at, rows + kept);
	*n = kept;
	count_tested(probe, total, kept);
	return HGJ_OK;
}

/* HgjEngine.sift_packed; only while hgj_cpu_sift_begin() has found it worth it. */
bool
hgj_cpu_sift_packed(HgjProbe *probe, const HgjPackedKeys *keys, uint32_t *rows, uint32_t *n)
{
	const HgjTable *t = probe->table;

	if (!probe->filtering || t->spec.nwords != 1 || !hgj_cpu_reads_packed(&t->filter))
		return false;
	probe->begun = false;
	*n = hgj_cpu_test_packed(&t->filter, keys, rows);
	count_tested(probe, keys->n, *n);
	return true;
}

/* A graph of bits as the filter that it is. */
void
hgj_cpu_bits_filter(const Graph *graph, Filter *filter)
{
	filter->words = (uint64_t *) (void *) graph->entries;
	filter->shift = 0;
	filter->exact = true;
	filter->base = graph->base;
	filter->range = graph->range;
	filter->bytes = graph->entries_bytes;
}

/* Whether probes of the graph just built may have a filter. */
void
hgj_cpu_plan_filter(HgjTable *table)
{
	const Graph *g = &table->graph;
	uint64_t	bytes = (uint64_t) g->entries_bytes + g->offsets_bytes +
		g->slices_bytes;

	if (g->segments == HGJ_SEGMENTS_BITS)
	{
		/* the graph is one, and a probe does nothing but ask it */
		hgj_cpu_bits_filter(g, &table->filter);
		table->may_sift = g->rows > 0 && table->spec.filter != HGJ_FILTER_OFF;
		if (table->image == NULL && table->may_sift)
			table->own_filter_state = FILTER_READY;
		return;
	}
	table->may_filter = g->rows > 0 && g->slack == 0 &&
		(table->spec.filter == HGJ_FILTER_ON ||
		 (table->spec.filter == HGJ_FILTER_AUTO &&
		  bytes > GRAPH_L2S * (uint64_t) table->l2_bytes));
	table->may_sift = g->rows > 0 && g->slack == 0 &&
		table->spec.filter != HGJ_FILTER_OFF;
}

/* Free the filter, with the table; not an image's, nor one that is the graph. */
void
hgj_cpu_filter_free(HgjTable *table)
{
	if (table->graph.segments != HGJ_SEGMENTS_BITS)
		hgj_cpu_put(table, table->filter.words, table->filter.bytes);
}
