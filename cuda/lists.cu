/*-------------------------------------------------------------------------
 *
 * lists.cu
 *	  Sorting the lists of a CSR graph by code, so that what a key matches is
 *	  one range of slots, and a long list can be halved.
 *
 * 1. A thread per vertex sorts a short list by insertion, and notes a long one.
 * 2. A block per long list looks whether it is sorted already (that of a single
 *	  key always is), and if not, sorts up to BLOCK_LIST entries by CUB's block
 *	  radix sort.  Longer ones are counted: build.cu starts over by sort.
 * 3. Keys of several words: where codes are equal, the words must be.
 *
 * Owns nothing, locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include <cub/block/block_radix_sort.cuh>

#include "device.cuh"
#include "internal.h"
#include "lists.h"

namespace hgj
{

constexpr int SORT_THREADS = 256;
constexpr int SORT_ITEMS = BLOCK_LIST / SORT_THREADS;

/* Step 1 for one list; whether a code is in it twice. */
template <class Entry>
__device__ bool insertion_sort(Entry *list, uint32_t n)
{
	bool duplicate = false;

	for (uint32_t i = 1; i < n; i++)
	{
		Entry e = list[i];
		uint32_t j = i;

		for (; j > 0 && list[j - 1].code > e.code; j--)
			list[j] = list[j - 1];
		duplicate |= j > 0 && list[j - 1].code == e.code;
		list[j] = e;
	}
	return duplicate;
}

template <class T>
__global__ void order_kernel(const uint32_t *offsets, uint64_t vertices, void *entries,
							 BuildStats *stats, uint32_t *long_lists)
{
	uint32_t longest = 0;
	uint32_t duplicates = 0;

	FOR_GRID (v, vertices)
	{
		uint32_t from = offsets[v];
		uint32_t n = offsets[v + 1] - from;

		longest = max(longest, n);
		if (n < 2)
			continue;
		if (T::layout == LAYOUT_ROW)
			duplicates = 1;
		else if (n > LONG_LIST)
		{
			duplicates = 1; /* most likely */
			long_lists[atomicAdd(&stats->long_lists, 1u)] = (uint32_t) v;
		}
		else if constexpr (T::layout != LAYOUT_ROW)
			duplicates |=
				insertion_sort(static_cast<typename T::Entry *>(entries) + from, n);
	}
	longest = warp_max(longest);
	duplicates = __any_sync(ALL_LANES, duplicates);
	if (threadIdx.x % 32 == 0)
	{
		atomicMax(&stats->longest, longest);
		if (duplicates)
			stats->duplicates = 1;
	}
}

__device__ __forceinline__ uint32_t payload_of(const Entry32 &e)
{
	return e.row;
}

__device__ __forceinline__ uint64_t payload_of(const Entry64 &e)
{
	return (uint64_t) e.pos << 32 | e.row;
}

__device__ __forceinline__ void set_payload(Entry32 *e, uint32_t payload)
{
	e->row = payload;
}

__device__ __forceinline__ void set_payload(Entry64 *e, uint64_t payload)
{
	e->row = (uint32_t) payload;
	e->pos = (uint32_t) (payload >> 32);
}

/* Step 2. */
template <class T>
__global__ void __launch_bounds__(SORT_THREADS)
	sort_long_kernel(const uint32_t *offsets, void *entries, BuildStats *stats,
					 const uint32_t *long_lists)
{
	typedef typename T::Entry Entry;
	typedef typename T::Code Code;
	typedef decltype(payload_of(Entry())) Payload;
	typedef cub::BlockRadixSort<Code, SORT_THREADS, SORT_ITEMS, Payload> Sort;
	__shared__ typename Sort::TempStorage temp;
	uint32_t count = stats->long_lists;

	for (uint32_t k = blockIdx.x; k < count; k += gridDim.x)
	{
		uint32_t from = offsets[long_lists[k]];
		uint32_t n = offsets[long_lists[k] + 1] - from;
		Entry *list = static_cast<Entry *>(entries) + from;
		int unsorted = 0;
		Code codes[SORT_ITEMS];
		Payload payloads[SORT_ITEMS];

		for (uint32_t i = threadIdx.x + 1; i < n; i += SORT_THREADS)
			unsorted |= list[i - 1].code > list[i].code;
		if (!__syncthreads_or(unsorted))
			continue;
		if (n > BLOCK_LIST)
		{
			if (threadIdx.x == 0)
				atomicAdd(&stats->huge_lists, 1u);
			continue;
		}
		for (int j = 0; j < SORT_ITEMS; j++)
		{
			uint32_t i = threadIdx.x * SORT_ITEMS + j;

			codes[j] = i < n ? list[i].code : ~(Code) 0;
			payloads[j] = i < n ? payload_of(list[i]) : 0;
		}
		__syncthreads();
		Sort(temp).Sort(codes, payloads); /* stable: what pads stays behind */
		for (int j = 0; j < SORT_ITEMS; j++)
		{
			uint32_t i = threadIdx.x * SORT_ITEMS + j;
			Entry e;

			e.code = codes[j];
			set_payload(&e, payloads[j]);
			if (i < n)
				list[i] = e;
		}
		__syncthreads();
	}
}

/* Step 3. */
__global__ void collision_kernel(const Entry64 *entries, uint64_t n,
								 const uint64_t *words, uint32_t nwords,
								 BuildStats *stats)
{
	uint64_t step = (uint64_t) gridDim.x * blockDim.x;

	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x + 1; i < n;
		 i += step)
	{
		Entry64 a = entries[i - 1];
		Entry64 b = entries[i];

		if (a.code == b.code && !same_words(words + (uint64_t) a.pos * nwords,
											words + (uint64_t) b.pos * nwords, nwords))
			stats->collision = 1;
	}
}

HgjStatus sort_long_lists(HgjTable *table, const Graph &graph, BuildStats *stats,
						  const uint32_t *long_lists, HgjError *err)
{
	const Lane &lane = table->lane;
	int blocks = lane.device->sms * 4;
	const uint32_t *offsets = graph.offsets.as<uint32_t>();
	void *entries = graph.entries.as<void>();

	if (graph.layout == LAYOUT_ROW)
		return HGJ_OK;
	if (graph.layout == LAYOUT_NARROW)
		sort_long_kernel<NarrowTraits><<<blocks, SORT_THREADS, 0, lane.stream>>>(
			offsets, entries, stats, long_lists);
	else
		sort_long_kernel<WideTraits><<<blocks, SORT_THREADS, 0, lane.stream>>>(
			offsets, entries, stats, long_lists);
	HGJ_CUDA(cudaGetLastError());
	return HGJ_OK;
}

HgjStatus order_lists(HgjTable *table, const Graph &graph, BuildStats *stats,
					  uint32_t *long_lists, HgjError *err)
{
	const Lane &lane = table->lane;
	const uint32_t *offsets = graph.offsets.as<uint32_t>();
	void *entries = graph.entries.as<void>();
	int blocks = grid_of(lane, graph.vertices);

	if (graph.layout == LAYOUT_ROW)
		order_kernel<RowTraits><<<blocks, 256, 0, lane.stream>>>(
			offsets, graph.vertices, entries, stats, long_lists);
	else if (graph.layout == LAYOUT_NARROW)
		order_kernel<NarrowTraits><<<blocks, 256, 0, lane.stream>>>(
			offsets, graph.vertices, entries, stats, long_lists);
	else
		order_kernel<WideTraits><<<blocks, 256, 0, lane.stream>>>(
			offsets, graph.vertices, entries, stats, long_lists);
	HGJ_CUDA(cudaGetLastError());
	return sort_long_lists(table, graph, stats, long_lists, err);
}

HgjStatus check_collisions(HgjTable *table, const Graph &graph, BuildStats *stats,
						   HgjError *err)
{
	const Lane &lane = table->lane;

	collision_kernel<<<grid_of(lane, graph.rows), 256, 0, lane.stream>>>(
		graph.entries.as<Entry64>(), graph.rows, graph.words.as<uint64_t>(),
		table->spec.nwords, stats);
	HGJ_CUDA(cudaGetLastError());
	return HGJ_OK;
}

} // namespace hgj
