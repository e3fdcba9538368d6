/*-------------------------------------------------------------------------
 *
 * build_sort.cu
 *	  Build by sort (Groschaft 2022, algorithm 4), and what else CUB does for
 *	  builds: scans.
 *
 * 1. Codes and payloads (row ids, places of words) are written out apart.
 * 2. CUB's radix sort, over just the bits that choose the vertex; or over the
 *	  whole code, where long lists need to be sorted, too.
 * 3. The sorted pairs become entries; the first entry of each vertex writes its
 *	  offset.  Vertices without entries get the next one's by a scan from the
 *	  end, so that no gap, however long, is one thread's work.
 *
 * Skew cannot hurt: no step looks at how rows spread over vertices.
 *
 * Buffers live within the call.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cuda/functional>
#include <cuda/std/functional>
#include <thrust/iterator/reverse_iterator.h>

#include "device.cuh"
#include "internal.h"
#include "lists.h"

namespace hgj
{

/* Step 1. */
template <class T, class Payload>
__global__ void write_pairs(Rows rows, Mix mix, uint64_t at, typename T::Code *codes,
							Payload *payloads)
{
	FOR_GRID (i, rows.n)
	{
		uint64_t from = row_at(rows, i);
		Payload payload = row_id(rows, from);

		if (sizeof(Payload) == 8)
			payload |= (Payload) (rows.pos + i) << (sizeof(Payload) * 4);
		(void) row_code<T>(rows, mix, from, &codes[at + i]);
		payloads[at + i] = payload;
	}
}

__device__ __forceinline__ void make_entry(Entry32 *e, uint32_t code, uint32_t payload)
{
	e->code = code;
	e->row = payload;
}

__device__ __forceinline__ void make_entry(Entry64 *e, uint64_t code, uint64_t payload)
{
	e->code = code;
	e->row = (uint32_t) payload;
	e->pos = (uint32_t) (payload >> 32);
}

/* Step 3: offsets must begin as 0xFF.. everywhere. */
template <class Code, class Payload, class Entry>
__global__ void write_entries(const Code *codes, const Payload *payloads, uint64_t n,
							  uint32_t shift, Entry *entries, uint32_t *offsets)
{
	FOR_GRID (i, n)
	{
		Code code = codes[i];
		Entry e;

		make_entry(&e, code, payloads[i]);
		entries[i] = e;
		if (i == 0 || codes[i - 1] >> shift != code >> shift)
			offsets[code >> shift] = (uint32_t) i;
	}
}

__global__ void set_last_offset(uint32_t *offset, uint32_t n)
{
	*offset = n;
}

typedef cub::DoubleBuffer<uint32_t> Keys32;
typedef cub::DoubleBuffer<uint64_t> Keys64;

/* Bytes of CUB's own for sorting that many pairs; exact up to a power of 2. */
uint64_t sort_temp_bytes(uint64_t rows, Layout layout)
{
	static uint64_t known[2][64];
	bool wide = layout != LAYOUT_NARROW;
	uint32_t bits = hgj_log2_ceil(rows < 1024 ? 1024 : rows);
	uint64_t n = UINT64_C(1) << bits;
	size_t bytes = 0;

	if (known[wide][bits] > 0)
		return known[wide][bits];
	if (wide)
	{
		Keys64 keys(nullptr, nullptr);
		Keys64 values(nullptr, nullptr);

		(void) cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, values, n);
	}
	else
	{
		Keys32 keys(nullptr, nullptr);
		Keys32 values(nullptr, nullptr);

		(void) cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, values, n);
	}
	return known[wide][bits] = bytes + 4096;
}

/* The same for scans of that many counters. */
uint64_t scan_temp_bytes(uint64_t n)
{
	static uint64_t known[64];
	uint32_t bits = hgj_log2_ceil(n < 1024 ? 1024 : n);
	size_t bytes = 0;
	size_t more = 0;
	uint32_t *p = nullptr;

	if (known[bits] > 0)
		return known[bits];
	(void) cub::DeviceScan::InclusiveSum(nullptr, bytes, p, p, UINT64_C(1) << bits);
	(void) cub::DeviceScan::ExclusiveSum(nullptr, more, p, p, UINT64_C(1) << bits);
	return known[bits] = (bytes > more ? bytes : more) * 2 + 4096;
}

/* In place, over n counters.  Does not wait. */
HgjStatus scan_offsets(HgjTable *table, uint32_t *counts, uint64_t n, bool inclusive,
					   HgjError *err)
{
	cudaStream_t stream = table->lane.stream;
	size_t bytes = 0;
	Buffer temp;

	if (inclusive)
	{
		HGJ_CUDA(
			cub::DeviceScan::InclusiveSum(nullptr, bytes, counts, counts, n, stream));
		HGJ_TRY(temp.get(table, stream, bytes, err));
		HGJ_CUDA(cub::DeviceScan::InclusiveSum(temp.as<void>(), bytes, counts, counts, n,
											   stream));
		return HGJ_OK;
	}
	HGJ_CUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes, counts, counts, n, stream));
	HGJ_TRY(temp.get(table, stream, bytes, err));
	HGJ_CUDA(
		cub::DeviceScan::ExclusiveSum(temp.as<void>(), bytes, counts, counts, n, stream));
	return HGJ_OK;
}

/* Step 3, the gaps: every offset becomes the smallest from there on. */
static HgjStatus fill_gaps(HgjTable *table, uint32_t *offsets, uint64_t n, HgjError *err)
{
	cudaStream_t stream = table->lane.stream;
	auto from_end = thrust::make_reverse_iterator(offsets + n);
	size_t bytes = 0;
	Buffer temp;

	HGJ_CUDA(cub::DeviceScan::InclusiveScan(nullptr, bytes, from_end, from_end,
											cuda::minimum<>{}, n, stream));
	HGJ_TRY(temp.get(table, stream, bytes, err));
	HGJ_CUDA(cub::DeviceScan::InclusiveScan(temp.as<void>(), bytes, from_end, from_end,
											cuda::minimum<>{}, n, stream));
	return HGJ_OK;
}

/* Steps 1 to 3 for codes and payloads of one size. */
template <class T, class Key>
static HgjStatus sort_and_write(HgjTable *table, const RowSet &rows, const Plan &plan,
								Graph *graph, bool whole_code, HgjError *err)
{
	const Lane &lane = table->lane;
	cudaStream_t stream = lane.stream;
	size_t column = rows.n * sizeof(Key);
	size_t offsets_bytes = (plan.vertices + 1) * sizeof(uint32_t);
	int end_bit = (int) sizeof(Key) * 8;
	uint64_t at = 0;
	size_t bytes = 0;
	Buffer pairs[2];
	Buffer temp;

	HGJ_TRY(pairs[0].get(table, stream, 2 * column, err));
	HGJ_TRY(pairs[1].get(table, stream, 2 * column, err));

	cub::DoubleBuffer<Key> codes(pairs[0].as<Key>(), pairs[1].as<Key>());
	cub::DoubleBuffer<Key> payloads(pairs[0].as<Key>() + rows.n,
									pairs[1].as<Key>() + rows.n);

	for (uint32_t i = 0; i < rows.nparts; at += rows.parts[i++].n)
	{
		if (rows.parts[i].n == 0)
			continue;
		write_pairs<T, Key><<<grid_of(lane, rows.parts[i].n), 256, 0, stream>>>(
			rows.parts[i], graph->mix, at, codes.Current(), payloads.Current());
		HGJ_CUDA(cudaGetLastError());
	}
	if (rows.n > 0)
	{
		int begin_bit = whole_code ? 0 : (int) plan.shift;

		HGJ_CUDA(cub::DeviceRadixSort::SortPairs(nullptr, bytes, codes, payloads, rows.n,
												 begin_bit, end_bit, stream));
		HGJ_TRY(temp.get(table, stream, bytes, err));
		HGJ_CUDA(cub::DeviceRadixSort::SortPairs(temp.as<void>(), bytes, codes, payloads,
												 rows.n, begin_bit, end_bit, stream));
		temp.release();
	}
	pairs[codes.Current() == pairs[0].as<Key>() ? 1 : 0].release();
	HGJ_TRY(graph->offsets.get(table, stream, offsets_bytes, err));
	HGJ_TRY(graph->entries.get(table, stream, rows.n * plan.stride, err));
	HGJ_CUDA(cudaMemsetAsync(graph->offsets.as<void>(), 0xFF, offsets_bytes, stream));
	if (rows.n > 0)
	{
		write_entries<<<grid_of(lane, rows.n), 256, 0, stream>>>(
			codes.Current(), payloads.Current(), rows.n, plan.shift,
			graph->entries.as<typename T::Entry>(), graph->offsets.as<uint32_t>());
		HGJ_CUDA(cudaGetLastError());
	}
	set_last_offset<<<1, 1, 0, stream>>>(graph->offsets.as<uint32_t>() + plan.vertices,
										 (uint32_t) rows.n);
	HGJ_CUDA(cudaGetLastError());
	return fill_gaps(table, graph->offsets.as<uint32_t>(), plan.vertices + 1, err);
}

/*
 * A sorted, tight CSR graph; sorts the whole code at once if asked to, or once
 * it turns out that a huge list is unsorted otherwise.
 */
HgjStatus build_by_sort(HgjTable *table, const RowSet &rows, const Plan &plan,
						Graph *graph, bool whole_code, BuildStats *stats, HgjError *err)
{
	cudaStream_t stream = table->lane.stream;
	Buffer device_stats;
	Buffer long_lists;

	for (;;)
	{
		if (graph->layout == LAYOUT_NARROW)
			HGJ_TRY((sort_and_write<NarrowTraits, uint32_t>(table, rows, plan, graph,
															whole_code, err)));
		else if (graph->layout == LAYOUT_WIDE)
			HGJ_TRY((sort_and_write<WideTraits, uint64_t>(table, rows, plan, graph,
														  whole_code, err)));
		else
			HGJ_TRY((sort_and_write<MultiTraits, uint64_t>(table, rows, plan, graph,
														   whole_code, err)));
		HGJ_TRY(device_stats.get(table, stream, sizeof(*stats), err));
		HGJ_TRY(long_lists.get(table, stream, (rows.n / LONG_LIST + 1) * 4, err));
		HGJ_CUDA(cudaMemsetAsync(device_stats.as<void>(), 0, sizeof(*stats), stream));
		HGJ_TRY(order_lists(table, *graph, device_stats.as<BuildStats>(),
							long_lists.as<uint32_t>(), err));
		HGJ_CUDA(cudaMemcpyAsync(stats, device_stats.as<void>(), sizeof(*stats),
								 cudaMemcpyDeviceToHost, stream));
		HGJ_TRY(wait(table, table->lane, true, err));
		if (stats->huge_lists == 0 || whole_code)
			return HGJ_OK;
		whole_code = true;
		graph->offsets.release();
		graph->entries.release();
	}
}

} // namespace hgj
