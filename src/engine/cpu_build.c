/*-------------------------------------------------------------------------
 *
 * cpu_build.c
 *	  From appended rows to a HashGraph.
 *
 * Build V1 (Green 2019, algorithm 1; Groschaft 2022, algorithm 1, and 9 for
 * dynamic tables):
 *
 * 1. Count the rows of every vertex.
 * 2. Exclusive scan: where each vertex's slots begin (cpu_segments.c).
 * 3. Place every row into the next slot of its vertex.
 *
 * Build V2 (algorithm 2) bins the rows first, by the high bits of their code,
 * so that steps 1 to 3 only touch counters and entries that are in the cache.
 * For a static CSR table the binned entries are then ordered within their
 * bins (cpu_bin.c), and are the graph's entries.  For any other, the binned
 * entries are the input of V1: coming bin by bin, they make it cache local.
 *
 * Once rows are binned, the chunks that append filled are given back, and the
 * binned entries take their place as the table's appended rows: so a build
 * that is cancelled, or that finds no memory, can be repeated, and the peak
 * does not have all three in it.
 *
 * The graph is made apart and only becomes the table's when it is complete.
 * Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "cpu_internal.h"

/*
 * Step 3 for a block.  In CSR, cell v + 1 is v's next slot.  In the padded
 * segments it is how many entries are still to come: they are placed from the
 * last to the first, so that the free slots end up behind them.
 */
HGJ_INLINE void
place_block(const Graph *g, Layout layout, HgjSegments segments,
			const Block *block, const uint64_t *codes, uint32_t *counts,
			uint32_t nwords)
{
	uint32_t	shift = g->shift;
	uint32_t	i;

	for (i = 0; i < block->n; i++)
	{
		uint64_t	vertex = codes[i] >> shift;
		uint64_t	slot;
		uint64_t	end;

		if (segments == HGJ_SEGMENTS_CSR)
			slot = counts[vertex + 1]++;
		else
		{
			vertex_slots(g, segments, vertex, &slot, &end);
			slot += --counts[vertex + 1];
		}
		slot_write(g->entries, layout, g->stride, slot, block->words, nwords,
				   g->base, i, codes[i], block->rows[i]);
	}
}

#define PLACE_SEGMENTS(layout) \
	do { \
		if (g->segments == HGJ_SEGMENTS_CSR) \
			place_block(g, layout, HGJ_SEGMENTS_CSR, block, codes, counts, \
						nwords); \
		else if (g->segments == HGJ_SEGMENTS_ELLPACK) \
			place_block(g, layout, HGJ_SEGMENTS_ELLPACK, block, codes, \
						counts, nwords); \
		else \
			place_block(g, layout, HGJ_SEGMENTS_SLICED, block, codes, \
						counts, nwords); \
	} while (0)

static void
place_any_block(const Graph *g, const Block *block, const uint64_t *codes,
				uint32_t *counts, uint32_t nwords)
{
	switch (g->layout)
	{
		case LAYOUT_ROW:
			PLACE_SEGMENTS(LAYOUT_ROW);
			break;
		case LAYOUT_NARROW:
			PLACE_SEGMENTS(LAYOUT_NARROW);
			break;
		case LAYOUT_WIDE:
			PLACE_SEGMENTS(LAYOUT_WIDE);
			break;
		case LAYOUT_MULTI:
			PLACE_SEGMENTS(LAYOUT_MULTI);
			break;
	}
}

/* Step 3. */
static HgjStatus
place_rows(HgjTable *t, Source *source, Graph *g, uint32_t *counts,
		   HgjError *err)
{
	uint64_t	codes[HGJ_BLOCK_ROWS];
	Block		block;
	HgjStatus	status;

	hgj_cpu_source_rewind(source);
	for (;;)
	{
		status = hgj_cpu_source_next(source, &block, err);
		if (status != HGJ_OK || block.n == 0)
			return status;
		hgj_cpu_codes(t, g->direct, g->base, block.words, block.n, codes);
		place_any_block(g, &block, codes, counts, t->spec.nwords);
	}
}

/* Steps 1 to 3 over whatever the source yields. */
static HgjStatus
build_counted(HgjTable *t, Source *source, const Plan *plan, Graph *g,
			  HgjError *err)
{
	size_t		counts_bytes = (size_t) (plan->vertices + 1) * sizeof(uint32_t);
	uint32_t   *counts;
	void	   *p;
	HgjStatus	status;

	status = hgj_cpu_get(t, counts_bytes, &p, err);
	if (status != HGJ_OK)
		return status;
	counts = p;
	status = hgj_cpu_fill(t, counts, 0, counts_bytes, err);
	/* step 1; cell 0 is where the first vertex's slots begin */
	if (status == HGJ_OK)
		status = hgj_cpu_count_codes(t, source, plan, plan->shift, counts + 1, err);
	if (status == HGJ_OK)
		status = hgj_cpu_segments_size(t, plan, counts, counts_bytes, g, err);
	if (status == HGJ_OK && g->slots > (SIZE_MAX / 2 - 64) / g->stride)
		status = hgj_fail(err, HGJ_OUT_OF_MEMORY, "the table is too large");
	if (status == HGJ_OK)
	{
		/* a little more: a probe may look one entry beyond the last list */
		g->entries_bytes = (size_t) g->slots * g->stride + 64;
		status = hgj_cpu_get(t, g->entries_bytes, &p, err);
		g->entries = p;
	}
	if (status == HGJ_OK && g->slots > plan->rows)
		status = hgj_cpu_fill(t, g->entries, 0xFF, g->entries_bytes, err);
	else if (status == HGJ_OK)
		status = hgj_cpu_touch(t, g->entries, g->entries_bytes, err);
	if (status == HGJ_OK)
		status = place_rows(t, source, g, counts, err);
	if (status == HGJ_OK)
		hgj_cpu_segments_close(g);
	if (g->offsets != counts)
		hgj_cpu_put(t, counts, counts_bytes);
	return status;
}

/* Make the binned entries the table's appended rows, instead of its chunks. */
static void
replace_chunks(HgjTable *t, Chunk *chunk)
{
	hgj_cpu_free_chunks(t);
	t->first_chunk = t->last_chunk = chunk;
	t->chunk_bytes = hgj_mem_footprint(chunk->bytes) +
		hgj_mem_footprint(chunk->data_bytes);
}

/* Order the binned entries within their bins, or build from them. */
static HgjStatus
build_from_bins(HgjTable *t, Chunk *chunk, const Plan *plan,
				const uint32_t *starts, Graph *g, HgjError *err)
{
	Source		packed;
	HgjStatus	status;

	if (plan->quotient)
	{
		void	   *p;

		g->entries_bytes = (size_t) plan->rows * plan->stride + 64;
		status = hgj_cpu_get(t, g->entries_bytes, &p, err);
		g->entries = p;
		return status != HGJ_OK ? status :
			hgj_cpu_finish_bins(t, plan, chunk->data, starts, g, err);
	}
	if (plan->in_place)
	{
		status = hgj_cpu_finish_bins(t, plan, chunk->data, starts, g, err);
		if (status == HGJ_OK)
		{
			g->entries = (uint8_t *) chunk->data;
			g->entries_bytes = chunk->data_bytes;
		}
		return status;
	}
	memset(&packed, 0, sizeof(packed));
	packed.table = t;
	packed.chunks = chunk;
	status = hgj_cpu_source_open(&packed, err);
	if (status == HGJ_OK)
		status = build_counted(t, &packed, plan, g, err);
	hgj_cpu_source_close(&packed);
	return status;
}

/* Build V2; also direct tables that are too large for the cache. */
static HgjStatus
build_binned(HgjTable *t, Source *source, const Plan *plan, Graph *g,
			 HgjError *err)
{
	/* only a build proper may consume its source; a rebuild must not */
	bool		consume = source->chunks != NULL && !t->built;
	size_t		starts_bytes = (plan->bins + 1) * sizeof(uint32_t);
	Chunk	   *chunk;
	uint32_t   *starts;
	void	   *p;
	HgjStatus	status;

	status = hgj_cpu_get(t, HGJ_CHUNK_HEADER, &p, err);
	if (status != HGJ_OK)
		return status;
	chunk = p;
	memset(chunk, 0, sizeof(*chunk));
	chunk->bytes = HGJ_CHUNK_HEADER;
	status = hgj_cpu_get(t, starts_bytes, &p, err);
	starts = p;
	if (status == HGJ_OK)
	{
		status = hgj_cpu_bin(t, source, plan, &p, &chunk->data_bytes, starts,
							 err);
		chunk->data = p;
	}
	if (status != HGJ_OK)
	{
		hgj_cpu_put(t, starts, starts_bytes);
		hgj_cpu_put(t, chunk, HGJ_CHUNK_HEADER);
		return status;
	}
	chunk->nrows = plan->rows;
	chunk->base = plan->base;
	chunk->layout = plan->packed;
	if (consume)
		replace_chunks(t, chunk);
	status = build_from_bins(t, chunk, plan, starts, g, err);
	hgj_cpu_put(t, starts, starts_bytes);
	if (!consume || status == HGJ_OK)
	{
		if (consume)
		{
			t->first_chunk = t->last_chunk = NULL;
			t->chunk_bytes = 0;
		}
		if (g->entries != (uint8_t *) chunk->data)
			hgj_cpu_put(t, chunk->data, chunk->data_bytes);
		hgj_cpu_put(t, chunk, HGJ_CHUNK_HEADER);
	}
	return status;
}

/* A graph without slots: what the plan says of it. */
void
hgj_cpu_graph_begin(const Plan *plan, Graph *graph)
{
	memset(graph, 0, sizeof(*graph));
	graph->layout = plan->layout;
	graph->build = plan->build;
	graph->direct = plan->direct;
	graph->stride = plan->stride;
	graph->shift = plan->shift;
	graph->slack = plan->slack;
	graph->notes = plan->notes;
	graph->quotient = plan->quotient;
	graph->mix = plan->mix;
	graph->bins = plan->binned ? plan->bins : 1;
	graph->base = plan->base;
	graph->range = plan->range;
	graph->vertices = plan->vertices;
	graph->rows = plan->rows;
}

/*
 * Build a graph by plan from all rows of a source.  On failure there is no
 * graph, and the rows are where they were; if the source is the table's
 * appended rows, they may have moved to other chunks.
 */
HgjStatus
hgj_cpu_build_graph(HgjTable *table, Source *source, const Plan *plan,
					Graph *graph, HgjError *err)
{
	bool		made = false;
	HgjStatus	status;

	hgj_cpu_graph_begin(plan, graph);
	status = hgj_cpu_source_open(source, err);
	if (status == HGJ_OK && plan->try_bits)
		status = hgj_cpu_build_bits(table, source, plan, graph, &made, err);
	if (status == HGJ_OK && plan->try_unique && !made)
		status = hgj_cpu_build_unique(table, source, plan, graph, &made, err);
	if (status == HGJ_OK && !made)
	{
		if (plan->binned)
			status = build_binned(table, source, plan, graph, err);
		else
			status = build_counted(table, source, plan, graph, err);
	}
	hgj_cpu_source_close(source);
	if (status != HGJ_OK)
		hgj_cpu_graph_free(table, graph);
	return status;
}

/*
 * HgjEngine.build.  Whatever fails, the appended rows are still there, and
 * the call may be repeated.
 */
HgjStatus
hgj_cpu_build(HgjTable *table, uint32_t total_rows, HgjError *err)
{
	Source		source;
	Plan		plan;
	Graph		graph;
	uint64_t   *bits = NULL;
	size_t		bits_bytes = 0;
	HgjStatus	status;

	if (table->built)
		return hgj_fail(err, HGJ_INVALID, "build after build");
	status = hgj_check_build(table->nrows, table->max_row, total_rows, err);
	if (status == HGJ_OK)
		status = hgj_poll(&table->spec, err);
	if (status == HGJ_OK && (table->spec.flags & HGJ_TABLE_TRACK_MATCHES))
		status = hgj_cpu_bits_alloc(table, total_rows, &bits, &bits_bytes, err);
	if (status != HGJ_OK)
		return status;
	hgj_cpu_plan(table, table->nrows, table->min_key, table->max_key, &plan);
	memset(&source, 0, sizeof(source));
	source.table = table;
	source.chunks = table->first_chunk;
	status = hgj_cpu_build_graph(table, &source, &plan, &graph, err);
	if (status != HGJ_OK)
	{
		hgj_cpu_put(table, bits, bits_bytes);
		return status;
	}
	hgj_cpu_free_chunks(table);
	table->graph = graph;
	table->bits = bits;
	table->bits_bytes = bits_bytes;
	table->total_rows = total_rows;
	table->built = true;
	hgj_cpu_plan_probe(table);
	hgj_cpu_plan_filter(table);
	return HGJ_OK;
}
