/*-------------------------------------------------------------------------
 *
 * finish.cu
 *	  The second half of build V2 (Green 2019, algorithm 2): from binned rows to
 *	  a graph.  A block takes a bin:
 *
 * 1. It counts the rows of each of the bin's vertices in shared memory; a scan
 *	  gives where lists begin, in the bin and, as offsets, in the graph.
 * 2. A bin that fits is kept in registers meanwhile (entries, and their ranks in
 *	  their lists), and put in order in shared memory.  One that does not fit is
 *	  put in order by way of scratch, which stays in L2.
 * 3. Each entry then finds its place among the codes of its list, and goes to
 *	  its slot, where the binned rows were: threads next to each other write next
 *	  to each other.  Long lists are only looked at: unsorted ones are noted, for
 *	  lists.cu.
 *
 * Owns nothing but scratch within the call.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "device.cuh"
#include "internal.h"
#include "lists.h"

namespace hgj
{

constexpr uint32_t FLAG = 0x80000000u;

/* Entries of a small bin that a thread keeps. */
constexpr int FINISH_THREADS = 512;
constexpr int FINISH_ITEMS = 10;

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
 * Step 3: bin b's entries, by vertex in `tile`, to their places.
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

/* Step 1: counts become the starts of lists: in the bin here, in the graph in `offsets`. */
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

/* Each block takes bins in turn. */
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
	longest = warp_max(longest);
	duplicates = __any_sync(ALL_LANES, duplicates);
	if (threadIdx.x % 32 == 0)
	{
		atomicMax(&w.stats->longest, longest);
		if (duplicates)
			w.stats->duplicates = 1;
	}
}

template <class T, int THREADS, int PER_SM>
static HgjStatus launch_finish(const Lane &lane, const BinWork &w, uint64_t blocks,
							   size_t shared, HgjError *err)
{
	HGJ_TRY(allow_shared(lane.device, finish_bins<T, THREADS, PER_SM>, err));
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

/*
 * Offsets and sorted lists of a graph whose rows are binned; the binned entries
 * become the graph's.  Does not wait.
 */
HgjStatus bin_finish(HgjTable *t, const Plan &plan, Binning *bins, uint32_t largest,
					 Graph *g, BuildStats *stats, uint32_t *long_lists, HgjError *err)
{
	const Device *d = t->lane.device;
	uint32_t stride = plan.stride;
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
	if (plan.rows / w.bins > w.stage)
		w.stage = 0; /* leave it to the cache */
	shared = counters + (size_t) w.stage * stride;
	per_sm = (int) (d->sm_shared / (shared + 1280));
	per_sm = per_sm > 2 ? 2 : per_sm < 1 ? 1 : per_sm; /* three would spill registers */
	blocks = (uint64_t) d->sms * per_sm;
	blocks = blocks > w.bins ? w.bins : blocks;
	w.scratch = bins->coarse.as<void>();
	if (largest > w.stage && blocks * largest <= plan.rows)
		w.scratch_step = largest;
	if (largest > w.stage && w.scratch == nullptr)
	{
		HGJ_TRY(own.get(t, t->lane.stream, plan.rows * stride, err));
		w.scratch = own.as<void>();
	}
	HGJ_TRY(g->offsets.get(t, t->lane.stream, (g->vertices + 1) * sizeof(uint32_t), err));
	w.entries = bins->entries.as<void>();
	w.starts = bins->starts.as<uint32_t>();
	w.offsets = g->offsets.as<uint32_t>();
	w.stats = stats;
	w.long_lists = long_lists;
	if (g->layout == LAYOUT_NARROW)
		HGJ_TRY(launch_finish_any<NarrowTraits>(t->lane, w, per_sm, blocks, shared, err));
	else
		HGJ_TRY(launch_finish_any<WideTraits>(t->lane, w, per_sm, blocks, shared, err));
	g->entries.swap(bins->entries);
	return sort_long_lists(t, *g, w.stats, w.long_lists, err);
}

} // namespace hgj
