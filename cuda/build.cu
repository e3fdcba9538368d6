/*-------------------------------------------------------------------------
 *
 * build.cu
 *	  From appended rows to a HashGraph.
 *
 * V1 (Green 2019, algorithm 1):
 * 1. Count the rows of every vertex with atomics; inclusive scan; place each row
 *	  by counting its vertex down, which leaves the offsets behind.
 * V2 (algorithm 2):
 * 2. Bin the rows (bin.cu).  A block then takes a bin: counts its vertices in
 *	  shared memory, scans, writes the offsets, and puts the entries in order,
 *	  in shared memory if they fit, or else by way of scratch that stays in L2.
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

constexpr uint32_t FLAG = 0x80000000u;

/* Entries of a small bin that a thread keeps. */
constexpr int FINISH_THREADS = 512;
constexpr int FINISH_ITEMS = 10;

static int grid_of(const Lane &lane, uint64_t n)
{
	uint64_t blocks = (n + 255) / 256;
	uint64_t most = (uint64_t) lane.device->sms * 32;

	return (int) (blocks < 1 ? 1 : blocks > most ? most : blocks);
}

/* Step 1: counts[v]. */
template <class T>
__global__ void count_rows(Rows rows, Mix mix, uint32_t *counts)
{
	uint64_t step = (uint64_t) gridDim.x * blockDim.x;

	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < rows.n;
		 i += step)
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
	uint64_t step = (uint64_t) gridDim.x * blockDim.x;

	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < rows.n;
		 i += step)
		Placer<T>::place(rows, mix, i, ends, entries);
}

/* Step 3. */
__global__ void place_unique(Rows rows, Mix mix, uint32_t *slots, uint32_t *duplicates)
{
	uint64_t step = (uint64_t) gridDim.x * blockDim.x;

	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < rows.n;
		 i += step)
	{
		uint64_t at = row_at(rows, i);
		uint32_t code;

		if (row_code<RowTraits>(rows, mix, at, &code) &&
			atomicExch(&slots[code], row_id(rows, at)) != ROW_EMPTY)
			*duplicates = 1;
	}
}

/* What finish_bins works on. */
struct BinWork
{
	void *entries; /* in and out */
	void *scratch;
	uint64_t scratch_step; /* entries of a block's own scratch; 0: as in `entries` */
	const uint32_t *starts;
	uint32_t bins;
	uint32_t vertices; /* of a bin */
	uint32_t shift;
	uint32_t stage; /* entries that fit shared memory */
	uint32_t *offsets;
	BuildStats *stats;
	uint32_t *long_lists;
};

/*
 * An entry of the list start .. end of `tile`, at i: where it belongs in the
 * sorted list.
 */
template <class Entry>
__device__ __forceinline__ uint32_t rank_in_list(const Entry *tile, uint32_t start,
												 uint32_t end, uint32_t i, const Entry &e,
												 bool *duplicate)
{
	uint32_t pos = start;

	for (uint32_t j = start; j < end; j++)
	{
		auto code = tile[j].code;

		*duplicate |= code == e.code && j != i;
		pos += code < e.code || (code == e.code && j < i);
	}
	return pos;
}

/*
 * The last part of step 2: bin b's entries, by vertex in `tile`, to their places.
 * Vertex v's list is lists[v] .. lists[v + 1].
 */
template <class T, int THREADS>
__device__ __forceinline__ void order_bin(const BinWork &w, uint32_t b, uint32_t s,
										  uint32_t n, const typename T::Entry *tile,
										  uint32_t *lists, uint32_t *duplicates)
{
	typedef typename T::Entry Entry;
	Entry *out = static_cast<Entry *>(w.entries) + s;

	for (uint32_t i = threadIdx.x; i < n; i += THREADS)
	{
		Entry e = tile[i];
		uint32_t v = (uint32_t) (e.code >> w.shift) & (w.vertices - 1);
		uint32_t start = lists[v] & ~FLAG;
		uint32_t end = lists[v + 1] & ~FLAG;
		uint32_t pos = i;
		bool duplicate = false;

		if (end - start > LONG_LIST)
		{
			duplicate = true; /* most likely */
			if (i > start && tile[i - 1].code > e.code &&
				!(atomicOr(&lists[v + 1], FLAG) & FLAG))
				w.long_lists[atomicAdd(&w.stats->long_lists, 1u)] = b * w.vertices + v;
		}
		else if (end - start > 1)
			pos = rank_in_list(tile, start, end, i, e, &duplicate);
		*duplicates |= duplicate;
		out[pos] = e;
	}
}

/* Counts become the starts of lists: in the bin here, in the graph in `offsets`. */
template <int THREADS>
__device__ __forceinline__ void scan_bin(const BinWork &w, uint32_t b, uint32_t s,
										 uint32_t n, uint32_t *counts, uint32_t *longest)
{
	for (uint32_t v = threadIdx.x; v < w.vertices; v += THREADS)
		*longest = max(*longest, counts[v]);
	scan_shared<THREADS>(counts, w.vertices);
	for (uint32_t v = threadIdx.x; v < w.vertices; v += THREADS)
		w.offsets[(uint64_t) b * w.vertices + v] = s + counts[v];
	if (b == w.bins - 1 && threadIdx.x == 0)
		w.offsets[(uint64_t) w.bins * w.vertices] = s + n;
	__syncthreads();
}

/* Step 2 for a bin that fits: a thread keeps its entries, and their ranks. */
template <class T, int THREADS>
__device__ __forceinline__ void finish_small(const BinWork &w, uint32_t b, uint32_t s,
											 uint32_t n, typename T::Entry *stage,
											 uint32_t *lists, uint32_t *longest,
											 uint32_t *duplicates)
{
	typedef typename T::Entry Entry;
	const Entry *entries = static_cast<const Entry *>(w.entries) + s;
	uint32_t mask = w.vertices - 1;
	Entry e[FINISH_ITEMS];
	uint32_t rank[FINISH_ITEMS];

#pragma unroll
	for (int k = 0; k < FINISH_ITEMS; k++)
		if (k * THREADS + threadIdx.x < n)
			e[k] = entries[k * THREADS + threadIdx.x];
#pragma unroll
	for (int k = 0; k < FINISH_ITEMS; k++)
		if (k * THREADS + threadIdx.x < n)
			rank[k] = atomicAdd(&lists[(uint32_t) (e[k].code >> w.shift) & mask], 1u);
	__syncthreads();
	scan_bin<THREADS>(w, b, s, n, lists, longest);
	if (threadIdx.x == 0)
		lists[w.vertices] = n;
#pragma unroll
	for (int k = 0; k < FINISH_ITEMS; k++)
		if (k * THREADS + threadIdx.x < n)
			stage[lists[(uint32_t) (e[k].code >> w.shift) & mask] + rank[k]] = e[k];
	__syncthreads();
	order_bin<T, THREADS>(w, b, s, n, stage, lists, duplicates);
}

/* Step 2 for one that does not: by way of `own`. */
template <class T, int THREADS>
__device__ __forceinline__ void
finish_large(const BinWork &w, uint32_t b, uint32_t s, uint32_t n, typename T::Entry *own,
			 uint32_t *lists, uint32_t *longest, uint32_t *duplicates)
{
	typedef typename T::Entry Entry;
	const Entry *entries = static_cast<const Entry *>(w.entries) + s;
	uint32_t *ends = lists + 1; /* once entries are placed */
	uint32_t mask = w.vertices - 1;

	if (threadIdx.x == 0)
		lists[w.vertices] = 0;
	__syncthreads();
#pragma unroll 4
	for (uint32_t i = threadIdx.x; i < n; i += THREADS)
		atomicAdd(&ends[(uint32_t) (entries[i].code >> w.shift) & mask], 1u);
	__syncthreads();
	scan_bin<THREADS>(w, b, s, n, ends, longest);
	if (threadIdx.x == 0)
		lists[0] = 0;
#pragma unroll 4
	for (uint32_t i = threadIdx.x; i < n; i += THREADS)
	{
		Entry e = entries[i];

		own[atomicAdd(&ends[(uint32_t) (e.code >> w.shift) & mask], 1u)] = e;
	}
	__syncthreads();
	order_bin<T, THREADS>(w, b, s, n, own, lists, duplicates);
}

/* Step 2: each block takes bins in turn. */
template <class T, int THREADS, int PER_SM>
__global__ void __launch_bounds__(THREADS, PER_SM) finish_bins(BinWork w)
{
	typedef typename T::Entry Entry;
	extern __shared__ __align__(16) unsigned char shared[];
	Entry *stage = reinterpret_cast<Entry *>(shared);
	uint32_t *lists = reinterpret_cast<uint32_t *>(stage + w.stage);
	Entry *scratch =
		static_cast<Entry *>(w.scratch) + (uint64_t) blockIdx.x * w.scratch_step;
	uint32_t longest = 0;
	uint32_t duplicates = 0;

	for (uint32_t b = blockIdx.x; b < w.bins; b += gridDim.x)
	{
		uint32_t s = w.starts[b];
		uint32_t n = w.starts[b + 1] - s;

		for (uint32_t v = threadIdx.x; v < w.vertices; v += THREADS)
			lists[v] = 0;
		__syncthreads();
		if (n <= w.stage)
			finish_small<T, THREADS>(w, b, s, n, stage, lists, &longest, &duplicates);
		else
			finish_large<T, THREADS>(w, b, s, n,
									 w.scratch_step > 0 ? scratch : scratch + s, lists,
									 &longest, &duplicates);
		__syncthreads();
	}
	for (int d = 16; d > 0; d /= 2)
	{
		longest = max(longest, __shfl_xor_sync(0xFFFFFFFFu, longest, d));
		duplicates |= __shfl_xor_sync(0xFFFFFFFFu, duplicates, d);
	}
	if (threadIdx.x % 32 == 0)
	{
		atomicMax(&w.stats->longest, longest);
		if (duplicates)
			w.stats->duplicates = 1;
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

template <class T, int THREADS, int PER_SM>
static HgjStatus launch_finish(const Lane &lane, const BinWork &w, uint64_t blocks,
							   size_t shared, HgjError *err)
{
	HGJ_CUDA(cudaFuncSetAttribute(finish_bins<T, THREADS, PER_SM>,
								  cudaFuncAttributeMaxDynamicSharedMemorySize,
								  (int) shared));
	finish_bins<T, THREADS, PER_SM>
		<<<(unsigned int) blocks, THREADS, shared, lane.stream>>>(w);
	HGJ_CUDA(cudaGetLastError());
	return HGJ_OK;
}

template <class T>
static HgjStatus launch_finish_any(const Lane &lane, const BinWork &w, int per_sm,
								   uint64_t blocks, size_t shared, HgjError *err)
{
	if (per_sm == 2)
		return launch_finish<T, FINISH_THREADS, 2>(lane, w, blocks, shared, err);
	return launch_finish<T, FINISH_THREADS, 1>(lane, w, blocks, shared, err);
}

/* The second half of step 2; the binned entries become the graph's. */
static HgjStatus finish(Build *b, Binning *bins, uint32_t largest, HgjError *err)
{
	HgjTable *t = b->table;
	const Device *d = t->lane.device;
	Graph *g = b->graph;
	uint32_t stride = b->plan->stride;
	uint32_t most = FINISH_THREADS * FINISH_ITEMS;
	BinWork w = {};
	size_t counters;
	size_t room;
	size_t shared;
	int per_sm;
	uint64_t blocks;
	Buffer own;

	w.bins = bins->bins;
	w.vertices = (uint32_t) (g->vertices / w.bins);
	w.shift = g->mix.shift;
	counters = ((size_t) w.vertices + 1) * sizeof(uint32_t);
	room = d->block_shared - 1024;
	if (counters > room)
		return fail(err, HGJ_UNSUPPORTED, "the bins do not fit shared memory");
	w.stage = (uint32_t) ((room - counters) / stride);
	w.stage = w.stage > most ? most : w.stage;
	w.stage = w.stage > largest ? largest : w.stage;
	if (b->plan->rows / w.bins > w.stage)
		w.stage = 0; /* leave it to the cache */
	shared = counters + (size_t) w.stage * stride;
	per_sm = (int) (d->sm_shared / (shared + 1280));
	per_sm = per_sm > 2 ? 2 : per_sm < 1 ? 1 : per_sm; /* three would spill registers */
	blocks = (uint64_t) d->sms * per_sm;
	blocks = blocks > w.bins ? w.bins : blocks;
	w.scratch = bins->coarse.as<void>();
	if (largest > w.stage && blocks * largest <= b->plan->rows)
		w.scratch_step = largest;
	if (largest > w.stage && w.scratch == nullptr)
	{
		HGJ_TRY(own.get(t, t->lane.stream, b->plan->rows * stride, err));
		w.scratch = own.as<void>();
	}
	HGJ_TRY(g->offsets.get(t, t->lane.stream, (g->vertices + 1) * sizeof(uint32_t), err));
	w.entries = bins->entries.as<void>();
	w.starts = bins->starts.as<uint32_t>();
	w.offsets = g->offsets.as<uint32_t>();
	w.stats = b->stats.as<BuildStats>();
	w.long_lists = b->long_lists.as<uint32_t>();
	if (g->layout == LAYOUT_NARROW)
		HGJ_TRY(launch_finish_any<NarrowTraits>(t->lane, w, per_sm, blocks, shared, err));
	else
		HGJ_TRY(launch_finish_any<WideTraits>(t->lane, w, per_sm, blocks, shared, err));
	g->entries.swap(bins->entries);
	return sort_long_lists(t, *g, w.stats, w.long_lists, err);
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
	*skewed =
		*largest >= FLAG || (*largest > SKEWED_ROWS && *largest > average * SKEWED_TIMES);
	if (*skewed)
		return HGJ_OK;
	g->bins = bins.bins;
	g->build = HGJ_BUILD_V2;
	return finish(b, &bins, *largest, err);
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
HgjStatus table_rows(const HgjTable *table, Rows **parts, uint32_t *nparts, HgjError *err)
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
	if (table->nrows > 0 && table->max_row >= total_rows)
		return fail(err, HGJ_INVALID, "a row id is not below the number of rows");
	HGJ_TRY(table_enter(table, err));
	HGJ_TRY(poll(table, err));
	HGJ_TRY(append_flush(table, err));
	plan_build(table, table->nrows, table->min_key, table->max_key, &plan);
	status = marks_alloc(table, total_rows, err);
	if (status == HGJ_OK)
		status = table_rows(table, &parts, &rows.nparts, err);
	rows.parts = parts;
	if (status == HGJ_OK)
		status = build_graph(table, rows, plan, &graph, err);
	if (status == HGJ_OK)
		status = wait(table, table->lane, true, err);
	free(parts);
	if (status != HGJ_OK)
		return status;
	table->graph.swap(graph);
	table->total_rows = total_rows;
	table->built = true;
	free_chunks(table);
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
