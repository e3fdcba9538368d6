/*-------------------------------------------------------------------------
 *
 * build.cu
 *	  From appended rows to a HashGraph.
 *
 * V1 (Green 2019, algorithm 1):
 * 1. Count the rows of every vertex with atomics; inclusive scan; place each row
 *	  by counting its vertex down, which leaves the offsets behind.
 * V2 (algorithm 2):
 * 2. Bin the rows (bin.cu), then build within each bin (finish.cu).
 * By sort (build_sort.cu), also where rows are so skewed that one bin would
 * hold up all others, or where a very long list holds several keys.
 * Direct:
 * 3. One slot per key, hoping for unique keys; or else V1 with vertex = key.
 *
 * Lists are sorted by code: short ones on the way, unsorted long ones (rare:
 * a hot key that shares its vertex) afterwards by a block each (lists.cu).
 *
 * The graph is made apart and becomes the table's when it is complete; the
 * appended rows stay until then.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "device.cuh"
#include "internal.h"
#include "lists.h"

namespace hgj
{

/* A bin this many times as large as the average, and this large, is skewed. */
constexpr uint64_t SKEWED_TIMES = 16;
constexpr uint64_t SKEWED_ROWS = 1 << 18;

/* Bins are at most so large. */
constexpr uint32_t MOST_ROWS = 0x7FFFFFFFu;

/* Step 1: counts[v]. */
template <class T>
__global__ void count_rows(Rows rows, Mix mix, uint32_t *counts)
{
	FOR_GRID (i, rows.n)
	{
		typename T::Code code;

		if (row_code<T>(rows, mix, row_at(rows, i), &code))
			atomicAdd(&counts[code >> mix.shift], 1u);
	}
}

template <class T>
struct Placer
{
	static __device__ void place(const Rows &rows, const Mix &mix, uint64_t i,
								 uint32_t *ends, void *entries)
	{
		typename T::Entry e;

		if (load_entry<T>(rows, mix, i, &e))
			static_cast<typename T::Entry *>(
				entries)[atomicSub(&ends[e.code >> mix.shift], 1u) - 1] = e;
	}
};

template <>
struct Placer<RowTraits>
{
	static __device__ void place(const Rows &rows, const Mix &mix, uint64_t i,
								 uint32_t *ends, void *entries)
	{
		uint64_t at = row_at(rows, i);
		uint32_t code;

		if (row_code<RowTraits>(rows, mix, at, &code))
			static_cast<uint32_t *>(entries)[atomicSub(&ends[code], 1u) - 1] =
				row_id(rows, at);
	}
};

template <class T>
__global__ void place_rows(Rows rows, Mix mix, uint32_t *ends, void *entries)
{
	FOR_GRID (i, rows.n)
		Placer<T>::place(rows, mix, i, ends, entries);
}

/* Step 3. */
__global__ void place_unique(Rows rows, Mix mix, uint32_t *slots, uint32_t *duplicates)
{
	FOR_GRID (i, rows.n)
	{
		uint64_t at = row_at(rows, i);
		uint32_t code;

		if (row_code<RowTraits>(rows, mix, at, &code) &&
			atomicExch(&slots[code], row_id(rows, at)) != ROW_EMPTY)
			*duplicates = 1;
	}
}

/* Everything a build needs to hand around. */
struct Build
{
	HgjTable *table;
	const Plan *plan;
	const RowSet *rows;
	Graph *graph;
	Buffer stats; /* a BuildStats */
	Buffer long_lists;
	BuildStats found;
};

static HgjStatus read_stats(Build *b, HgjError *err)
{
	BuildStats *found = b->table->scalars.as<BuildStats>();

	HGJ_CUDA(cudaMemcpyAsync(found, b->stats.as<void>(), sizeof(*found),
							 cudaMemcpyDeviceToHost, b->table->lane.stream));
	HGJ_TRY(wait(b->table, b->table->lane, true, err));
	b->found = *found;
	return HGJ_OK;
}

template <class T>
static HgjStatus count_and_place(Build *b, HgjError *err)
{
	HgjTable *t = b->table;
	const Lane &lane = t->lane;
	Graph *g = b->graph;

	for (uint32_t i = 0; i < b->rows->nparts; i++)
	{
		const Rows &part = b->rows->parts[i];

		count_rows<T><<<grid_of(lane, part.n), 256, 0, lane.stream>>>(
			part, g->mix, g->offsets.as<uint32_t>());
		HGJ_CUDA(cudaGetLastError());
	}
	HGJ_TRY(scan_offsets(t, g->offsets.as<uint32_t>(), g->vertices + 1, true, err));
	for (uint32_t i = 0; i < b->rows->nparts; i++)
	{
		const Rows &part = b->rows->parts[i];

		place_rows<T><<<grid_of(lane, part.n), 256, 0, lane.stream>>>(
			part, g->mix, g->offsets.as<uint32_t>(), g->entries.as<void>());
		HGJ_CUDA(cudaGetLastError());
	}
	return HGJ_OK;
}

/* Step 1, for any layout. */
static HgjStatus build_v1(Build *b, HgjError *err)
{
	HgjTable *t = b->table;
	Graph *g = b->graph;
	size_t bytes = (g->vertices + 1) * sizeof(uint32_t);

	HGJ_TRY(g->offsets.get(t, t->lane.stream, bytes, err));
	HGJ_TRY(g->entries.get(t, t->lane.stream, b->plan->rows * b->plan->stride, err));
	HGJ_CUDA(cudaMemsetAsync(g->offsets.as<void>(), 0, bytes, t->lane.stream));
	if (g->layout == LAYOUT_ROW)
		HGJ_TRY(count_and_place<RowTraits>(b, err));
	else if (g->layout == LAYOUT_NARROW)
		HGJ_TRY(count_and_place<NarrowTraits>(b, err));
	else if (g->layout == LAYOUT_WIDE)
		HGJ_TRY(count_and_place<WideTraits>(b, err));
	else
		HGJ_TRY(count_and_place<MultiTraits>(b, err));
	return order_lists(t, *g, b->stats.as<BuildStats>(), b->long_lists.as<uint32_t>(),
					   err);
}

/* Step 2; *skewed instead, where another build is better. */
static HgjStatus build_v2(Build *b, bool *skewed, HgjError *err)
{
	HgjTable *t = b->table;
	Graph *g = b->graph;
	Binning bins;
	uint32_t *largest = t->scalars.as<uint32_t>();
	uint64_t average = b->plan->rows / b->plan->bins;

	bins.bins = b->plan->bins;
	bins.shift = b->plan->bin_shift;
	HGJ_TRY(bin_count(t, t->lane, *b->rows, g->mix, &bins, err));
	HGJ_CUDA(cudaMemcpyAsync(largest, bin_largest(bins), sizeof(*largest),
							 cudaMemcpyDeviceToHost, t->lane.stream));
	/* the device goes on while the host reads this */
	HGJ_TRY(mark(t->lane, err));
	HGJ_TRY(bin_scatter(t, t->lane, *b->rows, g->mix, &bins, err));
	HGJ_TRY(wait_for_mark(t, t->lane, true, err));
	*skewed = *largest > MOST_ROWS ||
			  (*largest > SKEWED_ROWS && *largest > average * SKEWED_TIMES);
	if (*skewed)
		return HGJ_OK;
	g->bins = bins.bins;
	g->build = HGJ_BUILD_V2;
	return bin_finish(t, *b->plan, &bins, *largest, g, b->stats.as<BuildStats>(),
					  b->long_lists.as<uint32_t>(), err);
}

/* Step 3, unique keys; *unique says whether they were. */
static HgjStatus build_unique(Build *b, bool *unique, HgjError *err)
{
	HgjTable *t = b->table;
	Graph *g = b->graph;
	const Lane &lane = t->lane;
	size_t bytes = g->vertices * sizeof(uint32_t);
	uint32_t *duplicates = &b->stats.as<BuildStats>()->duplicates;

	HGJ_TRY(g->entries.get(t, lane.stream, bytes, err));
	HGJ_CUDA(cudaMemsetAsync(g->entries.as<void>(), 0xFF, bytes, lane.stream));
	for (uint32_t i = 0; i < b->rows->nparts; i++)
	{
		const Rows &part = b->rows->parts[i];

		place_unique<<<grid_of(lane, part.n), 256, 0, lane.stream>>>(
			part, g->mix, g->entries.as<uint32_t>(), duplicates);
		HGJ_CUDA(cudaGetLastError());
	}
	HGJ_TRY(read_stats(b, err));
	*unique = b->found.duplicates == 0;
	if (!*unique)
	{
		g->entries.release();
		return HGJ_OK;
	}
	g->segments = HGJ_SEGMENTS_ELLPACK;
	g->width = 1;
	g->slots = g->vertices;
	b->found.longest = b->plan->rows > 0 ? 1 : 0;
	return HGJ_OK;
}

/* A sorted, tight CSR graph, or a direct one of unique keys (*arranged). */
static HgjStatus build_tight(Build *b, bool *arranged, HgjError *err)
{
	HgjTable *t = b->table;
	const Plan *p = b->plan;
	Graph *g = b->graph;
	HgjSegments asked = t->spec.segments;
	bool by_sort = p->build == HGJ_BUILD_SORT;
	bool whole_code = false;

	*arranged = false;
	g->build = p->build;
	if (g->layout == LAYOUT_ROW &&
		(asked == HGJ_SEGMENTS_AUTO || asked == HGJ_SEGMENTS_ELLPACK))
	{
		HGJ_TRY(build_unique(b, arranged, err));
		if (*arranged)
			return HGJ_OK;
	}
	HGJ_CUDA(cudaMemsetAsync(b->stats.as<void>(), 0, sizeof(BuildStats), t->lane.stream));
	if (p->build == HGJ_BUILD_V2)
		HGJ_TRY(build_v2(b, &by_sort, err));
	else if (p->build != HGJ_BUILD_SORT)
		HGJ_TRY(build_v1(b, err));
	if (!by_sort)
	{
		HGJ_TRY(read_stats(b, err));
		by_sort = whole_code = b->found.huge_lists > 0;
	}
	if (!by_sort)
		return HGJ_OK;
	g->offsets.release();
	g->entries.release();
	g->bins = 1;
	g->build = HGJ_BUILD_SORT;
	return build_by_sort(t, *b->rows, *p, g, whole_code, &b->found, err);
}

/* The words of all rows, in one place; parts[i].pos must count them. */
static HgjStatus copy_words(Build *b, HgjError *err)
{
	HgjTable *t = b->table;
	size_t row = (size_t) t->spec.nwords * sizeof(uint64_t);

	HGJ_TRY(b->graph->words.get(t, t->lane.stream, b->plan->rows * row, err));
	for (uint32_t i = 0; i < b->rows->nparts; i++)
	{
		const Rows &part = b->rows->parts[i];

		HGJ_TRY(
			copy_rows(t->lane, part,
					  b->graph->words.as<uint64_t>() + (size_t) part.pos * part.nwords,
					  nullptr, err));
	}
	return HGJ_OK;
}

/* A graph of those rows, as planned.  What `graph` holds on failure is junk. */
HgjStatus build_graph(HgjTable *table, const RowSet &rows, const Plan &plan, Graph *graph,
					  HgjError *err)
{
	Build b = {table, &plan, &rows, graph, {}, {}, {}};
	bool arranged;

	graph->layout = plan.layout;
	graph->slack = plan.slack;
	graph->notes = plan.notes;
	graph->vertices = plan.vertices;
	graph->rows = plan.rows;
	graph->keys = plan.rows;
	graph->mix = plan_mix(&table->spec, plan);
	HGJ_TRY(b.stats.get(table, table->lane.stream, sizeof(BuildStats), err));
	HGJ_TRY(b.long_lists.get(table, table->lane.stream,
							 (plan.rows / LONG_LIST + 1) * sizeof(uint32_t), err));
	HGJ_CUDA(
		cudaMemsetAsync(b.stats.as<void>(), 0, sizeof(BuildStats), table->lane.stream));
	if (graph->layout == LAYOUT_MULTI)
		HGJ_TRY(copy_words(&b, err));
	HGJ_TRY(build_tight(&b, &arranged, err));
	graph->longest = b.found.longest;
	graph->unique = b.found.duplicates == 0;
	graph->walk = graph->slack > 0;
	if (graph->layout == LAYOUT_MULTI && !graph->unique)
	{
		HGJ_TRY(check_collisions(table, *graph, b.stats.as<BuildStats>(), err));
		HGJ_TRY(read_stats(&b, err));
		graph->walk |= b.found.collision != 0;
	}
	if (arranged)
		return HGJ_OK;
	graph->slots = plan.rows;
	return arrange_segments(table, plan, graph, err);
}

/* The appended rows that are on the device; the caller frees the array. */
static HgjStatus table_rows(const HgjTable *table, Rows **parts, uint32_t *nparts,
							HgjError *err)
{
	uint32_t n = 0;
	uint64_t pos = 0;

	for (const Chunk *c = table->first_chunk; c != nullptr; c = c->next)
		n++;
	*nparts = n;
	*parts = static_cast<Rows *>(calloc(n + 2, sizeof(Rows))); /* room for more */
	if (*parts == nullptr)
		return fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	n = 0;
	for (const Chunk *c = table->first_chunk; c != nullptr; c = c->next)
	{
		Rows *r = &(*parts)[n++];

		r->words = c->words.as<void>();
		r->rows = c->rows.as<uint32_t>();
		r->n = c->n;
		r->word_bytes = 8;
		r->nwords = table->spec.nwords;
		r->pos = (uint32_t) pos;
		pos += c->n;
	}
	return HGJ_OK;
}

/* HgjEngine.build */
HgjStatus table_build(HgjTable *table, uint32_t total_rows, HgjError *err)
{
	RowSet rows = {nullptr, 0, table->nrows};
	Rows *parts = nullptr;
	HgjStatus status;
	Plan plan;
	Graph graph;

	if (table->built)
		return fail(err, HGJ_INVALID, "build was called twice");
	HGJ_TRY(hgj_check_build(table->nrows, table->max_row, total_rows, err));
	HGJ_TRY(table_enter(table, err));
	HGJ_TRY(poll(table, err));
	HGJ_TRY(append_flush(table, err));
	plan_build(table, table->nrows, table->min_key, table->max_key, &plan);
	status = marks_alloc(table, total_rows, err);
	if (status == HGJ_OK)
		status = table_rows(table, &parts, &rows.nparts, err);
	rows.parts = parts;
	if (status == HGJ_OK)
	{
		Span span(table, table->lane, true);

		status = build_graph(table, rows, plan, &graph, err);
	}
	if (status == HGJ_OK)
		status = wait(table, table->lane, true, err);
	free(parts);
	if (status != HGJ_OK)
		return status;
	table->graph.swap(graph);
	table->total_rows = total_rows;
	table->built = true;
	free_chunks(table);
	settle(table->lane.stream); /* the table may stay for long */
	table->stages[0].memory.release();
	table->stages[1].memory.release();
	return HGJ_OK;
}

void Graph::swap(Graph &o)
{
	GraphFacts facts = *this;

	static_cast<GraphFacts &>(*this) = o;
	static_cast<GraphFacts &>(o) = facts;
	offsets.swap(o.offsets);
	slices.swap(o.slices);
	entries.swap(o.entries);
	words.swap(o.words);
}

GraphView Graph::view() const
{
	GraphView v = {mix,
				   segments,
				   unique,
				   vertices,
				   width,
				   offsets.as<uint32_t>(),
				   slices.as<uint64_t>(),
				   entries.as<void>(),
				   words.as<uint64_t>()};

	return v;
}

} // namespace hgj
