/*-------------------------------------------------------------------------
 *
 * bin.cu
 *	  Partitioning rows by the high bits of their codes, in one pass: the first
 *	  half of build V2 (Green 2019, algorithm 2), and of binned probes.
 *
 * 1. Count each bin's rows, in shared memory first.
 * 2. An exclusive scan over the bins, by one block: where each begins.
 * 3. A block takes a tile of rows, counts its rows per bin (the count before a
 *	  row is its rank in the tile), reserves room in every bin with one atomic
 *	  each, puts the tile in order in shared memory, and writes it out: threads
 *	  next to each other write entries next to each other, in runs per bin.
 *
 * Within a bin the order is arbitrary.  Rows whose key the table cannot have are
 * left out (of a probe; a build has none).
 *
 * The buffers belong to the Binning.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "device.cuh"
#include "internal.h"

namespace hgj
{

constexpr int COUNT_THREADS = 512;
constexpr int SCATTER_THREADS = 512;

/* Bytes of entries in a tile: for devices with much shared memory, and others. */
constexpr int LARGE_TILE = 65536;
constexpr int SMALL_TILE = 32768;
constexpr size_t SHARED_EXTRA = 1024;

/* Step 1. */
template <class T>
__global__ void __launch_bounds__(COUNT_THREADS)
	count_bins(Rows rows, Mix mix, uint32_t shift, uint32_t bins, uint32_t *counts)
{
	extern __shared__ uint32_t local[];
	uint64_t step = (uint64_t) gridDim.x * COUNT_THREADS;
	uint64_t i = (uint64_t) blockIdx.x * COUNT_THREADS + threadIdx.x;

	for (uint32_t b = threadIdx.x; b < bins; b += COUNT_THREADS)
		local[b] = 0;
	__syncthreads();
	for (; i + 3 * step < rows.n; i += 4 * step)
	{
		typename T::Code code[4];
		bool there[4];

#pragma unroll
		for (int k = 0; k < 4; k++)
			there[k] = row_code<T>(rows, mix, row_at(rows, i + k * step), &code[k]);
#pragma unroll
		for (int k = 0; k < 4; k++)
			if (there[k])
				atomicAdd(&local[code[k] >> shift], 1u);
	}
	for (; i < rows.n; i += step)
	{
		typename T::Code code;

		if (row_code<T>(rows, mix, row_at(rows, i), &code))
			atomicAdd(&local[code >> shift], 1u);
	}
	__syncthreads();
	for (uint32_t b = threadIdx.x; b < bins; b += COUNT_THREADS)
		if (local[b] > 0)
			atomicAdd(&counts[b], local[b]);
}

/* Step 2: counts become cursors. */
__global__ void __launch_bounds__(1024)
	start_bins(uint32_t bins, uint32_t *starts, uint32_t *counts, uint32_t *largest)
{
	extern __shared__ uint32_t local[];
	uint32_t most = 0;
	uint32_t total;

	for (uint32_t b = threadIdx.x; b < bins; b += 1024)
	{
		local[b] = counts[b];
		most = max(most, local[b]);
	}
	for (int d = 16; d > 0; d /= 2)
		most = max(most, __shfl_xor_sync(0xFFFFFFFFu, most, d));
	if (threadIdx.x % 32 == 0)
		atomicMax(largest, most);
	__syncthreads();
	total = scan_shared<1024>(local, bins);
	for (uint32_t b = threadIdx.x; b < bins; b += 1024)
		starts[b] = counts[b] = local[b];
	if (threadIdx.x == 0)
		starts[bins] = total;
}

/* Step 3. */
template <class T, int TILE_BYTES>
__global__ void __launch_bounds__(SCATTER_THREADS)
	scatter_bins(Rows rows, Mix mix, uint32_t shift, uint32_t bins, uint32_t *cursors,
				 typename T::Entry *out)
{
	typedef typename T::Entry Entry;
	constexpr int TILE = TILE_BYTES / sizeof(Entry);
	constexpr int ITEMS = TILE / SCATTER_THREADS;
	extern __shared__ __align__(16) unsigned char shared[];
	Entry *tile = reinterpret_cast<Entry *>(shared);
	uint32_t *first = reinterpret_cast<uint32_t *>(tile + TILE);
	uint32_t *target = first + bins;
	uint64_t base = (uint64_t) blockIdx.x * TILE;
	Entry e[ITEMS];
	uint32_t rank[ITEMS];
	bool there[ITEMS];
	uint32_t total;

	for (uint32_t b = threadIdx.x; b < bins; b += SCATTER_THREADS)
		first[b] = 0;
#pragma unroll
	for (int k = 0; k < ITEMS; k++)
	{
		uint64_t i = base + k * SCATTER_THREADS + threadIdx.x;

		there[k] = i < rows.n && load_entry<T>(rows, mix, i, &e[k]);
	}
	__syncthreads();
#pragma unroll
	for (int k = 0; k < ITEMS; k++)
		rank[k] = there[k] ? atomicAdd(&first[e[k].code >> shift], 1u) : 0;
	__syncthreads();
	for (uint32_t b = threadIdx.x; b < bins; b += SCATTER_THREADS)
		target[b] = first[b] > 0 ? atomicAdd(&cursors[b], first[b]) : 0;
	__syncthreads();
	total = scan_shared<SCATTER_THREADS>(first, bins);
#pragma unroll
	for (int k = 0; k < ITEMS; k++)
		if (there[k])
			tile[first[e[k].code >> shift] + rank[k]] = e[k];
	__syncthreads();
	for (uint32_t j = threadIdx.x; j < total; j += SCATTER_THREADS)
	{
		Entry x = tile[j];
		uint32_t b = (uint32_t) (x.code >> shift);

		out[target[b] + (j - first[b])] = x;
	}
}

static uint32_t *cursors_of(const Binning &b)
{
	return b.starts.as<uint32_t>() + b.bins + 1;
}

/* How many rows the largest bin has (on the device). */
uint32_t *bin_largest(const Binning &b)
{
	return cursors_of(b) + b.bins;
}

template <class T>
static HgjStatus launch_count(const Lane &lane, const RowSet &rows, const Mix &mix,
							  Binning *b, HgjError *err)
{
	for (uint32_t i = 0; i < rows.nparts; i++)
	{
		const Rows &part = rows.parts[i];
		uint64_t blocks = (part.n + COUNT_THREADS * 4 - 1) / (COUNT_THREADS * 4);
		uint64_t most = (uint64_t) lane.device->sms * 4;

		if (part.n == 0)
			continue;
		count_bins<T><<<(unsigned int) (blocks > most ? most : blocks), COUNT_THREADS,
						b->bins * sizeof(uint32_t), lane.stream>>>(
			part, mix, b->shift, b->bins, cursors_of(*b));
		HGJ_CUDA(cudaGetLastError());
	}
	return HGJ_OK;
}

template <class T, int TILE_BYTES>
static HgjStatus launch_tiles(const Lane &lane, const RowSet &rows, const Mix &mix,
							  Binning *b, HgjError *err)
{
	constexpr int TILE = TILE_BYTES / sizeof(typename T::Entry);
	size_t shared = TILE_BYTES + 2 * (size_t) b->bins * sizeof(uint32_t);

	HGJ_CUDA(cudaFuncSetAttribute(scatter_bins<T, TILE_BYTES>,
								  cudaFuncAttributeMaxDynamicSharedMemorySize,
								  (int) shared));
	for (uint32_t i = 0; i < rows.nparts; i++)
	{
		const Rows &part = rows.parts[i];

		if (part.n == 0)
			continue;
		scatter_bins<T, TILE_BYTES>
			<<<(unsigned int) ((part.n + TILE - 1) / TILE), SCATTER_THREADS, shared,
			   lane.stream>>>(part, mix, b->shift, b->bins, cursors_of(*b),
							  b->entries.as<typename T::Entry>());
		HGJ_CUDA(cudaGetLastError());
	}
	return HGJ_OK;
}

/* So many bins, as a power of two, this device can scatter to. */
uint32_t most_bin_bits(const Device *device)
{
	return LARGE_TILE + (2 * sizeof(uint32_t) << 12) + SHARED_EXTRA <=
				   device->block_shared
			   ? 12
			   : 11;
}

template <class T>
static HgjStatus launch_scatter(const Lane &lane, const RowSet &rows, const Mix &mix,
								Binning *b, HgjError *err)
{
	if (LARGE_TILE + 2 * (size_t) b->bins * sizeof(uint32_t) + SHARED_EXTRA <=
		lane.device->block_shared)
		return launch_tiles<T, LARGE_TILE>(lane, rows, mix, b, err);
	return launch_tiles<T, SMALL_TILE>(lane, rows, mix, b, err);
}

/* Steps 1 and 2, for b->bins bins of code >> b->shift.  Does not wait. */
HgjStatus bin_count(HgjTable *table, const Lane &lane, const RowSet &rows, const Mix &mix,
					Binning *b, HgjError *err)
{
	size_t bytes = (2 * (size_t) b->bins + 2) * sizeof(uint32_t);

	HGJ_TRY(b->starts.reserve(table, lane.stream, bytes, err));
	HGJ_CUDA(cudaMemsetAsync(b->starts.as<void>(), 0, bytes, lane.stream));
	if (mix.layout == LAYOUT_NARROW)
		HGJ_TRY(launch_count<NarrowTraits>(lane, rows, mix, b, err));
	else if (mix.layout == LAYOUT_WIDE)
		HGJ_TRY(launch_count<WideTraits>(lane, rows, mix, b, err));
	else
		HGJ_TRY(launch_count<MultiTraits>(lane, rows, mix, b, err));
	start_bins<<<1, 1024, b->bins * sizeof(uint32_t), lane.stream>>>(
		b->bins, b->starts.as<uint32_t>(), cursors_of(*b), bin_largest(*b));
	HGJ_CUDA(cudaGetLastError());
	return HGJ_OK;
}

/* Step 3; b->entries gets an entry per row.  Does not wait. */
HgjStatus bin_scatter(HgjTable *table, const Lane &lane, const RowSet &rows,
					  const Mix &mix, Binning *b, HgjError *err)
{
	uint64_t stride = mix.layout == LAYOUT_NARROW ? sizeof(Entry32) : sizeof(Entry64);

	HGJ_TRY(b->entries.reserve(table, lane.stream, rows.n * stride, err));
	if (mix.layout == LAYOUT_NARROW)
		return launch_scatter<NarrowTraits>(lane, rows, mix, b, err);
	if (mix.layout == LAYOUT_WIDE)
		return launch_scatter<WideTraits>(lane, rows, mix, b, err);
	return launch_scatter<MultiTraits>(lane, rows, mix, b, err);
}

} // namespace hgj
