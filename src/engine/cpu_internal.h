/*-------------------------------------------------------------------------
 *
 * cpu_internal.h
 *	  What the files of the CPU engine share: the table, its graph, the
 *	  sources that a build reads, and the probe.
 *
 * THE GRAPH.  A vertex is a number below `vertices`; it comes from a key's
 * "code": code >> shift.  For a hashed table the code is the 64-bit hash of
 * the key, so a vertex is the hash's high bits and a run of vertices is a
 * prefix of the hash.  For a direct table the code is key - base, and shift
 * is 0.  The slots of a vertex lie next to one another; where they begin and
 * end is what `segments` says:
 *
 *	  CSR		offsets[v] .. offsets[v + 1]
 *	  Ellpack	v * width .. (v + 1) * width
 *	  Sliced	slices[v / 32] + (v % 32) * w, with w slots, where
 *				w = (slices[v / 32 + 1] - slices[v / 32]) / 32
 *	  Bits		there are none: bit v of the entries says that v has one (cpu_bits.c)
 *
 * A slot holds an entry, of one of four layouts; or a quotient (cpu_quotient.c).
 * A slot whose row is HGJ_ROW_EMPTY was never used, and no slot after it in the
 * same vertex was either; a slot whose row is HGJ_ROW_DELETED once was.
 *
 * MEMORY.  Everything comes from hgj_cpu_get, which checks the limit and
 * counts, and goes back with hgj_cpu_put; but a graph that several processes have
 * built lies in memory that they share, with its match bits and filter.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CPU_INTERNAL_H
#define HGJ_CPU_INTERNAL_H

#include <string.h>

#include "checks.h"
#include "cpu_quotient.h"
#include "hash.h"
#include "hgj_memory.h"
#include "plan_rules.h"

#if defined(__GNUC__)
#pragma GCC visibility push(hidden)
#define HGJ_INLINE static inline __attribute__((always_inline, unused))
#define HGJ_LIKELY(x) __builtin_expect(!!(x), 1)
#define HGJ_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* Into L2, not L1: with L1's few miss buffers a probe took 34 ns, not 26. */
#define HGJ_PREFETCH(p) __builtin_prefetch((p), 0, 2)
#else
#define HGJ_INLINE static inline
#define HGJ_LIKELY(x) (x)
#define HGJ_UNLIKELY(x) (x)
#define HGJ_PREFETCH(p) ((void) (p))
#endif

#define HGJ_ROW_EMPTY	UINT32_C(0xFFFFFFFF)
#define HGJ_ROW_DELETED	UINT32_C(0xFFFFFFFE)

/* Rows that a source yields at a time: their columns stay in the L1 cache. */
#define HGJ_BLOCK_ROWS	1024

/* Blocks, and units of other work, between two calls of poll (about 1 ms). */
#define HGJ_POLL_BLOCKS	16
#define HGJ_POLL_STEPS	(UINT64_C(1) << 18)

/* At most so many bins: their staging lines must stay in the L2 cache. */
#define HGJ_MAX_BINS	2048

typedef struct NarrowEntry
{
	uint32_t	key;			/* key - base */
	uint32_t	row;
} NarrowEntry;

typedef struct WideEntry
{
	uint64_t	key;
	uint32_t	row;
	uint32_t	tag;
} WideEntry;

typedef struct MultiEntry
{
	uint32_t	row;
	uint32_t	tag;			/* low bits of the hash, compared first */
	uint64_t	words[];
} MultiEntry;

/*
 * Rows that were appended: columns of `cap` words and then row ids, or, after
 * a build that was given up half way, entries of `layout` (packed).
 */
typedef struct Chunk
{
	struct Chunk *next;
	size_t		bytes;			/* of this allocation, header included */
	uint64_t	nrows;
	uint64_t	cap;			/* rows that fit; 0 when packed */
	uint64_t   *data;
	size_t		data_bytes;		/* packed: size of data, an allocation apart */
	uint64_t	base;			/* packed, narrow: what keys are relative to */
	Layout		layout;
} Chunk;

#define HGJ_CHUNK_HEADER	((size_t) 128)	/* sizeof(Chunk) and padding */

typedef struct Graph
{
	Layout		layout;
	HgjSegments segments;
	HgjBuild	build;
	bool		direct;
	uint32_t	stride;			/* bytes of an entry */
	uint32_t	shift;			/* vertex = code >> shift */
	uint32_t	slack;			/* free slots per vertex; 0 = static */
	uint32_t	notes;
	uint32_t	bins;
	bool		quotient;		/* entries are 16 bits of the code, which is no hash */
	Mix			mix;			/* then: what the code is */
	uint64_t	base;			/* smallest key, as a word */
	uint64_t	range;			/* largest key - smallest key */
	uint64_t	vertices;
	uint64_t	width;			/* Ellpack: slots per vertex */
	uint64_t	slots;
	uint64_t	rows;			/* live entries */
	uint64_t	longest;
	uint32_t   *offsets;		/* CSR: vertices + 1 */
	size_t		offsets_bytes;
	uint64_t   *slices;			/* Sliced: vertices / 32 + 1 */
	size_t		slices_bytes;
	uint8_t    *entries;
	size_t		entries_bytes;
} Graph;

/* What a build is going to do; from sizes and statistics alone. */
typedef struct Plan
{
	HgjBuild	build;
	HgjSegments segments;
	Layout		layout;
	Layout		packed;			/* of the entries while they are binned */
	bool		direct;
	bool		binned;			/* bin first, count and place per bin */
	bool		in_place;		/* the binned entries become the graph's */
	bool		try_unique;		/* direct: hope for one row per key */
	bool		try_bits;		/* the same, where keys are all that is wanted; first */
	bool		quotient;		/* see Graph */
	Mix			mix;
	uint32_t	stride;
	uint32_t	packed_stride;
	uint32_t	shift;
	uint32_t	bin_shift;		/* bin = code >> bin_shift */
	uint32_t	bins;
	uint32_t	slack;
	uint32_t	notes;
	uint64_t	rows;
	uint64_t	vertices;
	uint64_t	base;
	uint64_t	range;
} Plan;

/* One bin in the making: what steps 4 to 6 of cpu_bin.c work on. */
typedef struct Bin
{
	uint8_t    *entries;		/* of the whole table */
	uint32_t   *cells;			/* cells[v] is offsets[v + 1] */
	uint64_t	first;			/* vertex */
	uint64_t	last;			/* vertex, exclusive */
	uint32_t	from;			/* slot */
	uint32_t	to;				/* slot, exclusive */
	void	   *lists;			/* not NULL: entries stay as they are, and what the
								 * graph has of them goes there (plan_repacks()) */
	uint8_t    *scratch;
	size_t		scratch_bytes;
} Bin;

/* Keys that may be in the graph (cpu_filter.c). */
typedef struct Filter
{
	uint64_t   *words;
	uint32_t	shift;			/* Bloom: word = code >> shift */
	bool		exact;			/* a bit per key from base on, up to range */
	uint64_t	base;
	uint64_t	range;
	size_t		bytes;
} Filter;

typedef enum FilterState
{
	FILTER_NONE = 0,
	FILTER_MAKING,				/* by one of the probes */
	FILTER_READY,
	FILTER_REFUSED				/* there was no memory */
} FilterState;

/* What a table's next step of a shared build does (cpu_share.c). */
typedef enum ShareStage
{
	SHARE_PLAN = 0,
	SHARE_SET_BITS,
	SHARE_MERGE_BITS,
	SHARE_CLEAR,
	SHARE_PLACE,
	SHARE_VERIFY,
	SHARE_UNIQUE,
	SHARE_COUNT,
	SHARE_SCATTER,
	SHARE_ORDER,
	SHARE_SEGMENTS,
	SHARE_PAD,
	SHARE_DONE
} ShareStage;

struct HgjTable
{
	HgjTableSpec spec;
	HgjHash		hash;
	bool		built;
	uint32_t	rebuilds;
	uint32_t	total_rows;
	uint32_t	row_bytes;		/* of one appended row */

	/* rows appended and not yet in a graph */
	Chunk	   *first_chunk;
	Chunk	   *last_chunk;
	size_t		next_chunk;		/* bytes */
	uint64_t	chunk_bytes;	/* footprints of all of them */
	uint64_t	nrows;
	int64_t		min_key;		/* one word only */
	int64_t		max_key;
	uint64_t	max_row;

	Graph		graph;
	uint64_t   *bits;			/* match bits, or NULL */
	size_t		bits_bytes;

	uint32_t	probe_shift;	/* probe bin = code >> probe_shift */
	uint32_t	probe_bins;		/* 1 = cannot be binned */
	bool		probe_binned;	/* forced, and there are bins */
	uint64_t	binned_rows;	/* AUTO: from such a batch on it pays */

	bool		may_filter;		/* batches may be tested first */
	bool		may_sift;		/* rows may be, before they are in one */
	FilterState own_filter_state;
	FilterState *filter_state;	/* atomic; READY publishes the filter; in the
								 * image of an attached table */
	Filter		filter;
	uint64_t	filter_tested;	/* rows; atomic */
	uint64_t	filter_rejected;	/* atomic */

	/* a graph that several processes build (cpu_share.c) */
	struct Image *image;		/* holds graph, bits and filter; NULL: they are
								 * the table's own */
	ShareStage	share_stage;
	uint32_t	share_bin;		/* one more than the bin at hand; 0 = none */
	uint64_t	share_placed;	/* rows in slots that may be unique; or words of bits
								 * that are in the image */
	bool		share_twice;	/* a key is there twice among this process's */
	uint64_t   *share_bits;		/* of this process's keys, for a while */
	size_t		share_bits_bytes;
	uint64_t	share_limit;	/* spec.memory_limit, while it is lifted */

	size_t		l2_bytes;
	uint64_t	current;		/* atomic: probes count here too */
	uint64_t	peak;			/* atomic */
};

typedef struct Block
{
	uint32_t	n;
	const uint32_t *rows;
	const uint64_t *words[HGJ_MAX_KEY_WORDS];
} Block;

/*
 * Rows for a build, block by block: the chunks, then the live entries of a
 * graph, then the rows of a batch from keys_from on.  Each may be absent.
 */
typedef struct Source
{
	HgjTable   *table;
	Chunk	   *chunks;
	const Graph *graph;
	const HgjKeys *keys;
	uint32_t	keys_from;
	uint32_t	first_row;
	const uint32_t *row_ids;

	uint64_t   *buffer;			/* what is not in columns is copied here */
	size_t		buffer_bytes;
	uint32_t	buffer_rows;

	const Chunk *chunk;			/* where it stands */
	uint64_t	at;
	int			stage;
	uint32_t	blocks;			/* yielded since poll was last called */
} Source;

/* cpu_account.c: memory, and keys that are where the engine takes them */
extern HgjStatus hgj_cpu_get(HgjTable *table, size_t bytes, void **p,
							 HgjError *err);
extern void hgj_cpu_put(HgjTable *table, void *p, size_t bytes);
extern HgjStatus hgj_cpu_fill(HgjTable *table, void *p, int byte,
							  size_t bytes, HgjError *err);
extern HgjStatus hgj_cpu_touch(HgjTable *table, void *p, size_t bytes,
							   HgjError *err);
extern HgjStatus hgj_cpu_populate(HgjTable *table, void *p, size_t bytes,
								  HgjError *err);
extern HgjStatus hgj_cpu_check_keys(const HgjTable *table, const HgjKeys *keys,
									HgjError *err);

/* cpu_append.c: rows that wait for a build */
extern HgjStatus hgj_cpu_append(HgjTable *table, const HgjKeys *keys,
								uint32_t first_row, const uint32_t *row_ids,
								HgjError *err);
extern HgjStatus hgj_cpu_appended(const HgjTable *table, uint64_t *cursor,
								  uint64_t *const *words, uint32_t *rows,
								  uint32_t capacity, uint32_t *n,
								  HgjError *err);
extern void hgj_cpu_free_chunks(HgjTable *table);
extern void hgj_cpu_key_range(const HgjKeys *keys, uint32_t from,
							  int64_t *min_key, int64_t *max_key);

/* cpu_source.c: reading rows back */
extern HgjStatus hgj_cpu_source_open(Source *source, HgjError *err);
extern void hgj_cpu_source_close(Source *source);
extern void hgj_cpu_source_rewind(Source *source);
extern HgjStatus hgj_cpu_source_next(Source *source, Block *block,
									 HgjError *err);
extern void hgj_cpu_codes(const HgjTable *table, bool direct, uint64_t base,
						  const uint64_t *const *words, uint32_t n,
						  uint64_t *codes);

/* cpu_plan.c: choices */
extern void hgj_cpu_plan(const HgjTable *table, uint64_t rows, int64_t min_key,
						 int64_t max_key, Plan *plan);
extern void hgj_cpu_plan_bins(const HgjTable *table, Plan *plan,
							  uint32_t most);
extern size_t hgj_cpu_bits_bytes(const Plan *plan);
extern uint64_t hgj_cpu_build_peak(const HgjTable *table);
extern void hgj_cpu_plan_probe(HgjTable *table);
extern uint32_t hgj_cpu_probe_batch_rows(const HgjTable *table);

/* cpu_build.c: rows to graph */
extern HgjStatus hgj_cpu_build(HgjTable *table, uint32_t total_rows,
							   HgjError *err);
extern HgjStatus hgj_cpu_build_graph(HgjTable *table, Source *source,
									 const Plan *plan, Graph *graph,
									 HgjError *err);
extern void hgj_cpu_graph_begin(const Plan *plan, Graph *graph);
extern void hgj_cpu_graph_free(HgjTable *table, Graph *graph);

/* cpu_bin.c: algorithm 2 */
extern HgjStatus hgj_cpu_bin(HgjTable *table, Source *source,
							 const Plan *plan, void **packed,
							 size_t *packed_bytes, uint32_t *starts,
							 HgjError *err);
extern HgjStatus hgj_cpu_finish_bins(HgjTable *table, const Plan *plan,
									 void *packed, const uint32_t *starts,
									 Graph *graph, HgjError *err);
extern HgjStatus hgj_cpu_count_codes(HgjTable *table, Source *source,
									 const Plan *plan, uint32_t shift,
									 uint32_t *counts, HgjError *err);
extern HgjStatus hgj_cpu_count_bins(HgjTable *table, Source *source,
									const Plan *plan, uint32_t *counts,
									HgjError *err);
extern HgjStatus hgj_cpu_scatter(HgjTable *table, Source *source,
								 const Plan *plan, void *packed,
								 const uint32_t *starts, HgjError *err);
extern HgjStatus hgj_cpu_order_bin(HgjTable *table, const Plan *plan,
								   const Bin *bin, uint32_t *longest,
								   HgjError *err);
extern uint64_t hgj_cpu_bin_vertices(const Plan *plan);
extern size_t hgj_cpu_bin_bytes(const Plan *plan);
extern size_t hgj_cpu_scratch_bytes(const HgjTable *table, const Plan *plan);

/* cpu_direct.c: one row per key */
extern bool hgj_cpu_place_unique(uint32_t *slots, const Block *block,
								 uint64_t base);
extern HgjStatus hgj_cpu_build_unique(HgjTable *table, Source *source,
									  const Plan *plan, Graph *graph,
									  bool *unique, HgjError *err);

/* cpu_bits.c: a bit per key */
extern HgjStatus hgj_cpu_build_bits(HgjTable *table, Source *source,
									const Plan *plan, Graph *graph, bool *made,
									HgjError *err);
extern void hgj_cpu_bits_graph(const Plan *plan, Graph *graph);
extern HgjStatus hgj_cpu_set_bits(HgjTable *table, Source *source, const Plan *plan,
								  uint64_t *words, bool *twice, HgjError *err);

/* cpu_quotient.c: entries of two bytes */
extern void hgj_cpu_plan_quotient(const HgjTable *table, Plan *plan);
extern void hgj_cpu_quotient_codes(const Plan *plan, const uint64_t *keys, uint32_t n,
								   uint64_t *codes);

/* cpu_segments.c: where the slots of a vertex are */
extern HgjStatus hgj_cpu_segments_size(HgjTable *table, const Plan *plan,
									   uint32_t *counts, size_t counts_bytes,
									   Graph *graph, HgjError *err);
extern void hgj_cpu_segments_close(Graph *graph);

/* cpu_filter.c */
extern uint64_t hgj_cpu_filter_words(const Graph *graph, uint64_t room,
									 uint64_t set_aside, Filter *filter);
extern void hgj_cpu_bits_filter(const Graph *graph, Filter *filter);
extern void hgj_cpu_plan_filter(HgjTable *table);
extern void hgj_cpu_filter_free(HgjTable *table);
extern HgjStatus hgj_cpu_sift_begin(HgjProbe *probe, bool *worth,
									HgjError *err);
extern HgjStatus hgj_cpu_sift(HgjProbe *probe, const HgjKeys *keys,
							  uint32_t *rows, uint32_t *n, HgjError *err);
extern bool hgj_cpu_sift_packed(HgjProbe *probe, const HgjPackedKeys *keys,
								uint32_t *rows, uint32_t *n);

/* cpu_probe.c, cpu_probe_binned.c */
extern HgjStatus hgj_cpu_probe_create(HgjTable *table, HgjProbe **probe,
									  HgjError *err);
extern void hgj_cpu_probe_destroy(HgjProbe *probe);
extern HgjStatus hgj_cpu_probe_begin(HgjProbe *probe, const HgjKeys *keys,
									 HgjProbeMode mode, uint32_t flags,
									 HgjError *err);
extern HgjStatus hgj_cpu_probe_next(HgjProbe *probe, HgjMatches *matches,
									HgjError *err);

/* cpu_dynamic.c */
extern HgjStatus hgj_cpu_insert(HgjTable *table, const HgjKeys *keys,
								uint32_t first_row, const uint32_t *row_ids,
								HgjError *err);
extern HgjStatus hgj_cpu_remove(HgjTable *table, const HgjKeys *keys,
								const uint32_t *row_ids, uint64_t *removed,
								HgjError *err);
extern HgjStatus hgj_cpu_rebuild(HgjTable *table, HgjError *err);

/* cpu_share.c: a graph that several processes build */
extern HgjStatus hgj_cpu_share_step(HgjTable *table, const HgjShareBuild *build,
									HgjShareNext *next, HgjError *err);

/* cpu_share_image.c */
extern void hgj_cpu_share_part(const HgjTable *table, HgjSharePart *part);
extern uint64_t hgj_cpu_share_peak(const HgjTable *table);
extern HgjStatus hgj_cpu_share_attach(HgjTable *table, void *image,
									  HgjError *err);

/* cpu_marks.c */
extern HgjStatus hgj_cpu_bits_alloc(HgjTable *table, uint32_t total_rows,
									uint64_t **bits, size_t *bytes,
									HgjError *err);
extern HgjStatus hgj_cpu_mark(HgjTable *table, const uint32_t *rows,
							  uint32_t n, HgjError *err);
extern bool hgj_cpu_is_marked(const HgjTable *table, uint32_t row);
extern HgjStatus hgj_cpu_unmatched(const HgjTable *table, uint32_t *cursor,
								   uint32_t *rows, uint32_t capacity,
								   uint32_t *n, HgjError *err);
extern HgjStatus hgj_cpu_clear_marks(HgjTable *table, HgjError *err);
extern bool hgj_cpu_share_claim(HgjTable *table, uint32_t row);

/* Has the graph something smaller than the entries that are binned for it? */
HGJ_INLINE bool
plan_repacks(const Plan *plan)
{
	return plan->direct || plan->quotient;
}

/* Set the match bit of a row; of a shared table, other processes do, too. */
HGJ_INLINE void
mark_row(HgjTable *t, uint32_t row)
{
	uint64_t   *word = t->bits + row / 64;
	uint64_t	bit = UINT64_C(1) << (row % 64);

	if (t->image == NULL)
		*word |= bit;
	else if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit))
		(void) __atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
}

/* The slots of a vertex; segments is the graph's, as a constant if possible. */
HGJ_INLINE void
vertex_slots(const Graph *graph, HgjSegments segments, uint64_t vertex,
			 uint64_t *from, uint64_t *to)
{
	if (segments == HGJ_SEGMENTS_CSR)
	{
		*from = graph->offsets[vertex];
		*to = graph->offsets[vertex + 1];
	}
	else if (segments == HGJ_SEGMENTS_ELLPACK)
	{
		*from = vertex * graph->width;
		*to = *from + graph->width;
	}
	else
	{
		const uint64_t *slice = graph->slices + vertex / HGJ_SLICE;
		uint64_t	width = (slice[1] - slice[0]) / HGJ_SLICE;

		*from = slice[0] + vertex % HGJ_SLICE * width;
		*to = *from + width;
	}
}

HGJ_INLINE MultiEntry *
multi_entry(uint8_t *entries, uint64_t slot, uint32_t stride)
{
	return (MultiEntry *) (void *) (entries + slot * stride);
}

/* The row that a slot holds. */
HGJ_INLINE uint32_t
slot_row(const uint8_t *entries, Layout layout, uint32_t stride, uint64_t slot)
{
	switch (layout)
	{
		case LAYOUT_ROW:
			return ((const uint32_t *) (const void *) entries)[slot];
		case LAYOUT_NARROW:
			return ((const NarrowEntry *) (const void *) entries)[slot].row;
		case LAYOUT_WIDE:
			return ((const WideEntry *) (const void *) entries)[slot].row;
		case LAYOUT_MULTI:
			break;
	}
	return ((const MultiEntry *) (const void *) (entries + slot * stride))->row;
}

HGJ_INLINE void
slot_set_row(uint8_t *entries, Layout layout, uint32_t stride, uint64_t slot,
			 uint32_t row)
{
	switch (layout)
	{
		case LAYOUT_ROW:
			((uint32_t *) (void *) entries)[slot] = row;
			break;
		case LAYOUT_NARROW:
			((NarrowEntry *) (void *) entries)[slot].row = row;
			break;
		case LAYOUT_WIDE:
			((WideEntry *) (void *) entries)[slot].row = row;
			break;
		case LAYOUT_MULTI:
			multi_entry(entries, slot, stride)->row = row;
			break;
	}
}

/* Write row i of a block into a slot. */
HGJ_INLINE void
slot_write(uint8_t *entries, Layout layout, uint32_t stride, uint64_t slot,
		   const uint64_t *const *words, uint32_t nwords, uint64_t base,
		   uint32_t i, uint64_t code, uint32_t row)
{
	if (layout == LAYOUT_ROW)
		((uint32_t *) (void *) entries)[slot] = row;
	else if (layout == LAYOUT_NARROW)
	{
		NarrowEntry *e = (NarrowEntry *) (void *) entries + slot;

		e->key = (uint32_t) (words[0][i] - base);
		e->row = row;
	}
	else if (layout == LAYOUT_WIDE)
	{
		WideEntry  *e = (WideEntry *) (void *) entries + slot;

		e->key = words[0][i];
		e->row = row;
		e->tag = (uint32_t) code;
	}
	else
	{
		MultiEntry *e = multi_entry(entries, slot, stride);
		uint32_t	w;

		e->row = row;
		e->tag = (uint32_t) code;
		for (w = 0; w < nwords; w++)
			e->words[w] = words[w][i];
	}
}

HGJ_INLINE uint32_t
layout_stride(Layout layout, uint32_t nwords)
{
	switch (layout)
	{
		case LAYOUT_ROW:
			return sizeof(uint32_t);
		case LAYOUT_NARROW:
			return sizeof(NarrowEntry);
		case LAYOUT_WIDE:
			return sizeof(WideEntry);
		case LAYOUT_MULTI:
			break;
	}
	return (uint32_t) sizeof(MultiEntry) + nwords * 8;
}

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif							/* HGJ_CPU_INTERNAL_H */
