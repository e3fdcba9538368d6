/*-------------------------------------------------------------------------
 *
 * bin.cu
 *	  Partitioning rows by the high bits of their codes: the first half of build
 *	  V2 (Green 2019, algorithm 2), and of binned probes.
 *
 * 1. Count each bin's rows, in shared memory first.
 * 2. An exclusive scan over the bins, by one block: where each begins.
 * 3. A block takes a tile of rows, counts its rows per bin (the count before a
 *	  row is its rank in the tile), reserves room in every bin with one atomic
 *	  each, puts the tile in order in shared memory, and writes it out: threads
 *	  next to each other write entries next to each other, in runs per bin.
 * 4. Where there are so many bins that runs would be shorter than a sector or
 *	  two, step 3 is done twice: into coarse bins (some high bits), then each of
 *	  these into its fine ones.  A tile then only meets a few coarse bins; one
 *	  that meets too many, because they are tiny, places its rows one by one.
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

constexpr int COUNT_THREADS = 1024;
constexpr int SCATTER_THREADS = 512;

/* Bytes of entries in a tile: for devices with much shared memory, and others. */
constexpr int LARGE_TILE = 65536;
constexpr int SMALL_TILE = 32768;
constexpr size_t SHARED_EXTRA = 1024;

/* More bins than this are scattered to in two passes. */
constexpr uint32_t ONE_PASS_BITS = 9;

/* Fine bins that a tile of the second pass may meet. */
constexpr uint32_t TILE_BINS = 2048;

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

		uint32_t ids[4];
		uint32_t at[4];

		load_codes<T, 4>(rows, mix, i, step, code, ids, at, there);
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

/* Step 2: counts become cursors, of the fine bins and of the coarse ones. */
__global__ void __launch_bounds__(1024)
	start_bins(uint32_t bins, uint32_t sub_bits, uint32_t *starts, uint32_t *counts,
			   uint32_t *coarse, uint32_t *largest)
{
	extern __shared__ uint32_t local[];
	uint32_t most = 0;
	uint32_t total;

	for (uint32_t b = threadIdx.x; b < bins; b += 1024)
	{
		local[b] = counts[b];
		most = max(most, local[b]);
	}
	most = warp_max(most);
	if (threadIdx.x % 32 == 0)
		atomicMax(largest, most);
	__syncthreads();
	total = scan_shared<1024>(local, bins);
	for (uint32_t b = threadIdx.x; b < bins; b += 1024)
	{
		starts[b] = counts[b] = local[b];
		if ((b & ((1u << sub_bits) - 1)) == 0)
			coarse[b >> sub_bits] = local[b];
	}
	if (threadIdx.x == 0)
		starts[bins] = total;
}

/* Where step 3 gets its rows from, and which bins it puts them into. */
struct Scatter
{
	Rows rows;
	Mix mix;
	const void *binned; /* the second pass: entries in coarse bins */
	const uint32_t *n;  /* how many, of these */
	uint32_t shift;
	uint32_t bins;     /* shared memory is for so many */
	uint32_t sub_bits; /* the second pass: fine bins of a coarse one */
	uint32_t *cursors;
};

/* The second pass, a tile that meets too many bins. */
template <class T>
__device__ void place_singly(const Scatter &s, uint64_t base, uint64_t end,
							 typename T::Entry *out)
{
	for (uint64_t i = base + threadIdx.x; i < end; i += SCATTER_THREADS)
	{
		typename T::Entry e = static_cast<const typename T::Entry *>(s.binned)[i];

		out[atomicAdd(&s.cursors[e.code >> s.shift], 1u)] = e;
	}
}

/* Step 3: the tile's entries from the rows; rank UINT32_MAX: there is none. */
template <class T, int ITEMS>
__device__ __forceinline__ void load_rows(const Scatter &s, uint64_t base,
										  typename T::Entry (&e)[ITEMS],
										  uint32_t (&rank)[ITEMS])
{
	constexpr int AT_ONCE =
		ITEMS < 8 ? ITEMS : 8; /* more loads under way would spill registers */

#pragma unroll
	for (int h = 0; h < ITEMS; h += AT_ONCE)
	{
		uint64_t from = base + h * SCATTER_THREADS + threadIdx.x;
		typename T::Code codes[AT_ONCE];
		uint32_t ids[AT_ONCE];
		uint32_t at[AT_ONCE];
		bool there[AT_ONCE];

		load_codes<T, AT_ONCE>(s.rows, s.mix, from, SCATTER_THREADS, codes, ids, at,
							   there);
#pragma unroll
		for (int k = 0; k < AT_ONCE; k++)
		{
			e[h + k].code = codes[k];
			e[h + k].row = ids[k];
			/* several words: copied without gaps, or not selected from */
			set_pos(&e[h + k], s.rows.pos + (uint32_t) from + k * SCATTER_THREADS);
			rank[h + k] = there[k] ? 0 : UINT32_MAX;
		}
	}
}

/* The same from entries that have been binned before. */
template <class Entry, int ITEMS>
__device__ __forceinline__ void load_binned(const Entry *binned, uint64_t base, uint64_t n,
											Entry (&e)[ITEMS], uint32_t (&rank)[ITEMS])
{
#pragma unroll
	for (int k = 0; k < ITEMS; k++)
	{
		uint64_t i = base + k * SCATTER_THREADS + threadIdx.x;

		rank[k] = i < n ? 0 : UINT32_MAX;
		if (i < n)
			e[k] = load_slot(binned + i);
	}
}

/* Step 3. */
template <class T, int TILE_BYTES, bool AGAIN>
__global__ void __launch_bounds__(SCATTER_THREADS, 2)
	scatter_bins(Scatter s, typename T::Entry *out)
{
	typedef typename T::Entry Entry;
	constexpr int TILE = TILE_BYTES / sizeof(Entry);
	constexpr int ITEMS = TILE / SCATTER_THREADS;
	static_assert(AGAIN || ITEMS % 4 == 0, "whole rounds of loads");
	extern __shared__ __align__(16) unsigned char shared[];
	Entry *tile = reinterpret_cast<Entry *>(shared);
	uint32_t *first = reinterpret_cast<uint32_t *>(tile + TILE);
	uint32_t *target = first + s.bins;
	const Entry *binned = static_cast<const Entry *>(s.binned);
	uint64_t base = (uint64_t) blockIdx.x * TILE;
	uint64_t n = AGAIN ? (uint64_t) *s.n : s.rows.n;
	uint32_t bins = s.bins;
	uint32_t bin0 = 0;
	Entry e[ITEMS];
	uint32_t rank[ITEMS];
	uint32_t total;

	if (AGAIN)
	{
		uint64_t end = min(base + TILE, n);
		uint32_t last;

		if (base >= n)
			return;
		bin0 = (uint32_t) (binned[base].code >> s.shift) >> s.sub_bits << s.sub_bits;
		last = (uint32_t) (binned[end - 1].code >> s.shift) >> s.sub_bits << s.sub_bits;
		bins = last - bin0 + (1u << s.sub_bits);
		if (bins > s.bins)
		{
			place_singly<T>(s, base, end, out);
			return;
		}
	}
	for (uint32_t b = threadIdx.x; b < bins; b += SCATTER_THREADS)
		first[b] = 0;
	if constexpr (AGAIN)
		load_binned(binned, base, n, e, rank);
	else
		load_rows<T>(s, base, e, rank);
	__syncthreads();
#pragma unroll
	for (int k = 0; k < ITEMS; k++)
		if (rank[k] == 0)
			rank[k] = atomicAdd(&first[(uint32_t) (e[k].code >> s.shift) - bin0], 1u);
	__syncthreads();
#pragma unroll 4
	for (uint32_t b = threadIdx.x; b < bins; b += SCATTER_THREADS)
		target[b] = first[b] > 0 ? atomicAdd(&s.cursors[bin0 + b], first[b]) : 0;
	__syncthreads();
	total = scan_shared<SCATTER_THREADS>(first, bins);
#pragma unroll
	for (int k = 0; k < ITEMS; k++)
		if (rank[k] != UINT32_MAX)
			tile[first[(uint32_t) (e[k].code >> s.shift) - bin0] + rank[k]] = e[k];
	__syncthreads();
#pragma unroll 4
	for (uint32_t j = threadIdx.x; j < total; j += SCATTER_THREADS)
	{
		Entry x = tile[j];
		uint32_t b = (uint32_t) (x.code >> s.shift) - bin0;

		out[target[b] + (j - first[b])] = x;
	}
}

static uint32_t *cursors_of(const Binning &b)
{
	return b.starts.as<uint32_t>() + b.bins + 1;
}

static uint32_t *coarse_of(const Binning &b)
{
	return cursors_of(b) + b.bins;
}

/* How many rows the largest bin has (on the device). */
uint32_t *bin_largest(const Binning &b)
{
	return coarse_of(b) + (b.bins >> b.sub_bits);
}

/* How many rows were binned (on the device). */
uint32_t *bin_total(const Binning &b)
{
	return b.starts.as<uint32_t>() + b.bins;
}

/* The high bits that the first pass looks at. */
static uint32_t coarse_bits(uint32_t bits)
{
	return bits <= ONE_PASS_BITS ? bits : (bits + 5) / 2;
}

/* So many bins, as a power of two, this device can count. */
uint32_t most_bin_bits(const Device *device)
{
	uint32_t bits = 11;

	while (bits < 15 &&
		   (sizeof(uint32_t) << (bits + 1)) + SHARED_EXTRA <= device->block_shared)
		bits++;
	return bits;
}

template <class T>
static HgjStatus launch_count(const Lane &lane, const RowSet &rows, const Mix &mix,
							  Binning *b, HgjError *err)
{
	size_t shared = b->bins * sizeof(uint32_t);

	HGJ_TRY(allow_shared(lane.device, count_bins<T>, err));
	for (uint32_t i = 0; i < rows.nparts; i++)
	{
		const Rows &part = rows.parts[i];
		uint64_t blocks = (part.n + COUNT_THREADS * 4 - 1) / (COUNT_THREADS * 4);
		uint64_t most =
			(uint64_t) lane.device->sms * (2 * shared < lane.device->sm_shared ? 2 : 1);

		if (part.n == 0)
			continue;
		count_bins<T>
			<<<(unsigned int) (blocks > most ? most : blocks), COUNT_THREADS, shared,
			   lane.stream>>>(part, mix, b->shift, b->bins, cursors_of(*b));
		HGJ_CUDA(cudaGetLastError());
	}
	return HGJ_OK;
}

template <class T, int TILE_BYTES, bool AGAIN>
static HgjStatus launch_tiles(const Lane &lane, const Scatter &s, uint64_t n, Buffer *out,
							  HgjError *err)
{
	constexpr int TILE = TILE_BYTES / sizeof(typename T::Entry);
	size_t shared = TILE_BYTES + 2 * (size_t) s.bins * sizeof(uint32_t);

	if (n == 0)
		return HGJ_OK;
	HGJ_TRY(allow_shared(lane.device, scatter_bins<T, TILE_BYTES, AGAIN>, err));
	scatter_bins<T, TILE_BYTES, AGAIN>
		<<<(unsigned int) ((n + TILE - 1) / TILE), SCATTER_THREADS, shared,
		   lane.stream>>>(s, out->as<typename T::Entry>());
	HGJ_CUDA(cudaGetLastError());
	return HGJ_OK;
}

template <class T, bool AGAIN>
static HgjStatus launch_scatter(const Lane &lane, const Scatter &s, uint64_t n,
								Buffer *out, HgjError *err)
{
	if (LARGE_TILE + 2 * (size_t) s.bins * sizeof(uint32_t) + SHARED_EXTRA <=
		lane.device->block_shared)
		return launch_tiles<T, LARGE_TILE, AGAIN>(lane, s, n, out, err);
	return launch_tiles<T, SMALL_TILE, AGAIN>(lane, s, n, out, err);
}

/* Both passes, or the one that there is. */
template <class T>
static HgjStatus scatter_all(const Lane &lane, const RowSet &rows, const Mix &mix,
							 Binning *b, HgjError *err)
{
	Buffer *out = b->sub_bits > 0 ? &b->coarse : &b->entries;
	Scatter s = {};

	s.mix = mix;
	s.shift = b->shift + b->sub_bits;
	s.bins = b->bins >> b->sub_bits;
	s.cursors = coarse_of(*b);
	for (uint32_t i = 0; i < rows.nparts; i++)
	{
		s.rows = rows.parts[i];
		HGJ_TRY((launch_scatter<T, false>(lane, s, s.rows.n, out, err)));
	}
	if (b->sub_bits == 0)
		return HGJ_OK;
	s.binned = b->coarse.as<void>();
	s.n = bin_total(*b);
	s.shift = b->shift;
	s.bins = b->bins < TILE_BINS ? b->bins : TILE_BINS;
	s.sub_bits = b->sub_bits;
	s.cursors = cursors_of(*b);
	return launch_scatter<T, true>(lane, s, rows.n, &b->entries, err);
}

/* Steps 1 and 2, for b->bins bins of code >> b->shift.  Does not wait. */
HgjStatus bin_count(HgjTable *table, const Lane &lane, const RowSet &rows, const Mix &mix,
					Binning *b, HgjError *err)
{
	size_t bytes = (3 * (size_t) b->bins + 2) * sizeof(uint32_t);
	size_t shared = b->bins * sizeof(uint32_t);
	uint32_t bits = hgj_log2_ceil(b->bins);

	b->sub_bits = bits - coarse_bits(bits);
	HGJ_TRY(b->starts.reserve(table, lane.stream, bytes, err));
	HGJ_CUDA(cudaMemsetAsync(b->starts.as<void>(), 0, bytes, lane.stream));
	if (mix.layout == LAYOUT_NARROW)
		HGJ_TRY(launch_count<NarrowTraits>(lane, rows, mix, b, err));
	else if (mix.layout == LAYOUT_WIDE)
		HGJ_TRY(launch_count<WideTraits>(lane, rows, mix, b, err));
	else
		HGJ_TRY(launch_count<MultiTraits>(lane, rows, mix, b, err));
	HGJ_TRY(allow_shared(lane.device, start_bins, err));
	start_bins<<<1, 1024, shared, lane.stream>>>(b->bins, b->sub_bits,
												 b->starts.as<uint32_t>(), cursors_of(*b),
												 coarse_of(*b), bin_largest(*b));
	HGJ_CUDA(cudaGetLastError());
	return HGJ_OK;
}

/* Steps 3 and 4; b->entries gets an entry per row.  Does not wait. */
HgjStatus bin_scatter(HgjTable *table, const Lane &lane, const RowSet &rows,
					  const Mix &mix, Binning *b, HgjError *err)
{
	uint64_t stride = mix.layout == LAYOUT_NARROW ? sizeof(Entry32) : sizeof(Entry64);

	if (b->sub_bits > 0)
		HGJ_TRY(b->coarse.reserve(table, lane.stream, rows.n * stride, err));
	HGJ_TRY(b->entries.reserve(table, lane.stream, rows.n * stride, err));
	if (mix.layout == LAYOUT_NARROW)
		return scatter_all<NarrowTraits>(lane, rows, mix, b, err);
	if (mix.layout == LAYOUT_WIDE)
		return scatter_all<WideTraits>(lane, rows, mix, b, err);
	return scatter_all<MultiTraits>(lane, rows, mix, b, err);
}

} // namespace hgj
