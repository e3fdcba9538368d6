/*-------------------------------------------------------------------------
 *
 * device.cuh
 *	  What kernels share: what a warp has in all, codes, entries, lists, and
 *	  finding a key.
 *
 * 1. A Traits class per layout says what a code and an entry are.
 * 2. load_entry makes an entry of a row: build and probe use the same.
 * 3. list_of says where a vertex's slots are, for every storage.
 * 4. find gives the range of slots that hold a code: by a walk over a short
 *	  list, by halving in a long one.
 *
 * Owns nothing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CUDA_DEVICE_CUH
#define HGJ_CUDA_DEVICE_CUH

#include "internal.h"

namespace hgj
{

constexpr uint32_t ALL_LANES = 0xFFFFFFFFu;

/* What the lanes of a whole warp have, put together by `op`; each of them gets it. */
template <class V, class Op>
__device__ __forceinline__ V warp_reduce(V value, Op op)
{
#pragma unroll
	for (int d = 16; d > 0; d /= 2)
		value = op(value, __shfl_xor_sync(ALL_LANES, value, d));
	return value;
}

/* Ampere and later do that with 32 bits in one instruction. */
__device__ __forceinline__ uint32_t warp_sum(uint32_t value)
{
#if __CUDA_ARCH__ >= 800
	return __reduce_add_sync(ALL_LANES, value);
#else
	return warp_reduce(value, [](uint32_t a, uint32_t b) { return a + b; });
#endif
}

__device__ __forceinline__ uint32_t warp_max(uint32_t value)
{
#if __CUDA_ARCH__ >= 800
	return __reduce_max_sync(ALL_LANES, value);
#else
	return warp_reduce(value, [](uint32_t a, uint32_t b) { return max(a, b); });
#endif
}

/* The sum over the lanes up to this one. */
__device__ __forceinline__ uint32_t warp_prefix(uint32_t value)
{
	for (uint32_t d = 1; d < 32; d *= 2)
	{
		uint32_t up = __shfl_up_sync(ALL_LANES, value, d);

		value += threadIdx.x % 32 >= d ? up : 0;
	}
	return value;
}

/* A bijection of 32 bits, and its way back. */
__device__ __forceinline__ uint32_t mix32(const Mix &m, uint32_t x)
{
	x ^= m.xor32;
	x ^= x >> 16;
	x *= m.mul32a;
	x ^= x >> 15;
	return x * m.mul32b;
}

__device__ __forceinline__ uint64_t mix64(const Mix &m, uint64_t x)
{
	x ^= m.xor64;
	x ^= x >> 32;
	x *= m.mul64a;
	x ^= x >> 29;
	return x * m.mul64b;
}

/* Each of n items that is this thread's, in steps of the whole grid (grid_of()). */
#define FOR_GRID(i, n)                                                                   \
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < (n);         \
		 i += (uint64_t) gridDim.x * blockDim.x)

template <class T>
__host__ __device__ __forceinline__ T inverse(T a)
{
	T x = a; /* right for 3 bits, and twice as many with each step */

	for (int i = 0; i < 5; i++)
		x *= 2 - a * x;
	return x;
}

__device__ __forceinline__ uint32_t unmix32(const Mix &m, uint32_t x)
{
	x *= inverse(m.mul32b);
	x ^= x >> 15 ^ x >> 30;
	x *= inverse(m.mul32a);
	x ^= x >> 16;
	return x ^ m.xor32;
}

__device__ __forceinline__ uint64_t unmix64(const Mix &m, uint64_t x)
{
	x *= inverse(m.mul64b);
	x ^= x >> 29 ^ x >> 58;
	x *= inverse(m.mul64a);
	x ^= x >> 32;
	return x ^ m.xor64;
}

/* Step 1. */
struct RowTraits
{
	static constexpr Layout layout = LAYOUT_ROW;
	typedef uint32_t Code;
	typedef uint32_t Entry;
};

struct NarrowTraits
{
	static constexpr Layout layout = LAYOUT_NARROW;
	typedef uint32_t Code;
	typedef Entry32 Entry;
};

struct WideTraits
{
	static constexpr Layout layout = LAYOUT_WIDE;
	typedef uint64_t Code;
	typedef Entry64 Entry;
};

struct MultiTraits
{
	static constexpr Layout layout = LAYOUT_MULTI;
	typedef uint64_t Code;
	typedef Entry64 Entry;
};

__device__ __forceinline__ uint64_t row_word(const Rows &rows, uint64_t at)
{
	return rows.word_bytes == 8 ? __ldg(static_cast<const uint64_t *>(rows.words) + at)
								: __ldg(static_cast<const uint32_t *>(rows.words) + at);
}

__device__ __forceinline__ uint32_t row_id(const Rows &rows, uint64_t at)
{
	return rows.rows != nullptr ? __ldg(rows.rows + at) : rows.first_row + (uint32_t) at;
}

/* Where row i's words are, in `rows`. */
__device__ __forceinline__ uint64_t row_at(const Rows &rows, uint64_t i)
{
	return rows.sel != nullptr ? __ldg(rows.sel + i) : i;
}

/* The code of a key of one word; false where the table cannot have it. */
template <class T>
__device__ __forceinline__ bool word_code(const Mix &m, uint64_t word,
										  typename T::Code *code)
{
	if (T::layout == LAYOUT_WIDE)
	{
		*code = (typename T::Code) mix64(m, word);
		return true;
	}

	uint64_t distance = word - m.base;

	*code = T::layout == LAYOUT_ROW || m.direct ? (uint32_t) distance
												: mix32(m, (uint32_t) distance);
	return distance <= m.range;
}

/* The same of a row's key. */
template <class T>
__device__ __forceinline__ bool row_code(const Rows &rows, const Mix &m, uint64_t at,
										 typename T::Code *code)
{
	if (T::layout == LAYOUT_MULTI)
	{
		const uint64_t *words =
			static_cast<const uint64_t *>(rows.words) + at * rows.nwords;
		uint64_t state = m.hash.start;

		for (uint32_t w = 0; w < rows.nwords; w++)
			state = hgj_hash_word(&m.hash, state, __ldg(words + w));
		*code = (typename T::Code) hgj_hash_finish(&m.hash, state);
		return true;
	}
	return word_code<T>(m, row_word(rows, at), code);
}

/* Codes of several rows of one word, all loads before the first use. */
template <class T, class Word, int ITEMS>
__device__ __forceinline__ void column_codes(const Rows &rows, const Mix &m,
											 uint64_t first, uint64_t step,
											 typename T::Code *codes, bool *there)
{
	const Word *words = static_cast<const Word *>(rows.words);
	Word w[ITEMS];

#pragma unroll
	for (int k = 0; k < ITEMS; k++)
		w[k] = first + k * step < rows.n ? __ldg(words + first + k * step) : 0;
#pragma unroll
	for (int k = 0; k < ITEMS; k++)
		there[k] = word_code<T>(m, w[k], &codes[k]) && first + k * step < rows.n;
}

/* Codes and row ids of rows first, first + step, ...; at is where words are. */
template <class T, int ITEMS>
__device__ __forceinline__ void load_codes(const Rows &rows, const Mix &m, uint64_t first,
										   uint64_t step, typename T::Code *codes,
										   uint32_t *ids, uint32_t *at, bool *there)
{
	if (T::layout == LAYOUT_MULTI || rows.sel != nullptr)
	{
#pragma unroll
		for (int k = 0; k < ITEMS; k++)
		{
			uint64_t i = first + k * step;
			uint64_t from = i < rows.n ? row_at(rows, i) : 0;

			there[k] = i < rows.n && row_code<T>(rows, m, from, &codes[k]);
			ids[k] = i < rows.n ? row_id(rows, from) : 0;
			at[k] = (uint32_t) from;
		}
		return;
	}
	if (rows.word_bytes == 4)
		column_codes<T, uint32_t, ITEMS>(rows, m, first, step, codes, there);
	else
		column_codes<T, uint64_t, ITEMS>(rows, m, first, step, codes, there);
	if (rows.rows == nullptr)
	{
#pragma unroll
		for (int k = 0; k < ITEMS; k++)
			ids[k] = rows.first_row + (uint32_t) (first + k * step);
		return;
	}
#pragma unroll
	for (int k = 0; k < ITEMS; k++)
		ids[k] = first + k * step < rows.n ? __ldg(rows.rows + first + k * step) : 0;
}

__device__ __forceinline__ void set_pos(Entry32 *, uint32_t)
{
}

__device__ __forceinline__ void set_pos(Entry64 *e, uint32_t pos)
{
	e->pos = pos;
}

/* Step 2: row i.  Several words have no `sel`, or are copied without gaps. */
template <class T>
__device__ __forceinline__ bool load_entry(const Rows &rows, const Mix &m, uint64_t i,
										   typename T::Entry *e)
{
	uint64_t at = row_at(rows, i);
	bool there = row_code<T>(rows, m, at, &e->code);

	e->row = row_id(rows, at);
	set_pos(e, rows.pos + (uint32_t) i);
	return there;
}

__device__ __forceinline__ uint32_t entry_row(uint32_t e)
{
	return e;
}

__device__ __forceinline__ uint32_t entry_row(const Entry32 &e)
{
	return e.row;
}

__device__ __forceinline__ uint32_t entry_row(const Entry64 &e)
{
	return e.row;
}

__device__ __forceinline__ uint32_t load_slot(const uint32_t *p)
{
	return __ldg(p);
}

__device__ __forceinline__ Entry32 load_slot(const Entry32 *p)
{
	uint2 v = __ldg(reinterpret_cast<const uint2 *>(p));

	return Entry32{v.x, v.y};
}

__device__ __forceinline__ Entry64 load_slot(const Entry64 *p)
{
	uint4 v = __ldg(reinterpret_cast<const uint4 *>(p));

	return Entry64{(uint64_t) v.y << 32 | v.x, v.z, v.w};
}

/* Step 3: the slots of a vertex. */
__device__ __forceinline__ void list_of(const GraphView &g, uint64_t vertex,
										uint64_t *from, uint64_t *to)
{
	if (g.segments == HGJ_SEGMENTS_CSR)
	{
		*from = __ldg(g.offsets + vertex);
		*to = __ldg(g.offsets + vertex + 1);
	}
	else if (g.segments == HGJ_SEGMENTS_ELLPACK)
	{
		*from = vertex * g.width;
		*to = *from + g.width;
	}
	else
	{
		uint64_t first = __ldg(g.slices + vertex / HGJ_SLICE);
		uint64_t width = (__ldg(g.slices + vertex / HGJ_SLICE + 1) - first) / HGJ_SLICE;

		*from = first + vertex % HGJ_SLICE * width;
		*to = *from + width;
	}
}

/* Whether two keys of several words are the same. */
__device__ __forceinline__ bool same_words(const uint64_t *a, const uint64_t *b,
										   uint32_t n)
{
	for (uint32_t w = 0; w < n; w++)
		if (__ldg(a + w) != __ldg(b + w))
			return false;
	return true;
}

/* Step 4: slots from .. from + count hold the code; row is the first one's. */
struct Found
{
	uint64_t from;
	uint32_t count;
	uint32_t row;
};

/* In a direct table a list is the key's. */
__device__ __forceinline__ Found find_direct(const GraphView &g, uint64_t from,
											 uint64_t to, uint32_t first)
{
	const uint32_t *entries = static_cast<const uint32_t *>(g.entries);
	Found f = {from, 0, first};

	if (from == to || first == ROW_EMPTY)
		return f;
	if (g.segments == HGJ_SEGMENTS_CSR)
	{
		f.count = (uint32_t) (to - from);
		return f;
	}
	/* entries come before the empty slots: halve */
	uint64_t last = to;

	while (from + 1 < last)
	{
		uint64_t middle = from + (last - from) / 2;

		if (__ldg(entries + middle) == ROW_EMPTY)
			last = middle;
		else
			from = middle;
	}
	f.count = (uint32_t) (last - f.from);
	return f;
}

/* The first slot of from .. to whose code is at least (beyond: greater than) x. */
template <class T>
__device__ __forceinline__ uint64_t halve(const typename T::Entry *entries, uint64_t from,
										  uint64_t to, typename T::Code x, bool beyond)
{
	while (from < to)
	{
		uint64_t middle = from + (to - from) / 2;
		typename T::Entry e = load_slot(entries + middle);

		if (e.row != ROW_EMPTY && (e.code < x || (beyond && e.code == x)))
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/*
 * A code in the sorted list from .. to, whose first entry has been loaded.
 * `single`: that it is there is enough, however often.
 */
template <class T>
__device__ __forceinline__ Found find_sorted(const GraphView &g, uint64_t from,
											 uint64_t to, typename T::Entry first,
											 typename T::Code code, bool single)
{
	const typename T::Entry *entries = static_cast<const typename T::Entry *>(g.entries);
	Found f = {from, 0, 0};

	if (from == to)
		return f;
	if (to - from > LONG_LIST)
	{
		f.from = halve<T>(entries, from, to, code, false);
		if (f.from == to)
			return f;
		first = load_slot(entries + f.from);
		if (first.row == ROW_EMPTY || first.code != code)
			return f;
		f.row = first.row;
		f.count =
			single ? 1 : (uint32_t) (halve<T>(entries, f.from, to, code, true) - f.from);
		return f;
	}
	while (first.code < code && first.row != ROW_EMPTY)
	{
		if (++f.from == to)
			return f;
		first = load_slot(entries + f.from);
	}
	if (first.code != code || first.row == ROW_EMPTY)
		return f;
	f.row = first.row;
	f.count = 1;
	if (single)
		return f;
	for (uint64_t slot = f.from + 1; slot < to; slot++)
	{
		typename T::Entry e = load_slot(entries + slot);

		if (e.code != code || e.row == ROW_EMPTY)
			break;
		f.count++;
	}
	return f;
}

/* Of what a static multi table found, whether the words are the same, too. */
template <class T>
__device__ __forceinline__ bool verify(const GraphView &g, const Rows &rows, uint64_t at,
									   const Found &f)
{
	if (T::layout != LAYOUT_MULTI)
		return true;

	const Entry64 *entries = static_cast<const Entry64 *>(g.entries);

	return same_words(g.words + (uint64_t) entries[f.from].pos * rows.nwords,
					  static_cast<const uint64_t *>(rows.words) + at * rows.nwords,
					  rows.nwords);
}

/* The exclusive sum of n counters in shared memory, in place, by one block. */
template <int THREADS>
__device__ __forceinline__ uint32_t scan_shared(uint32_t *a, uint32_t n)
{
	constexpr int WARPS = THREADS / 32;
	__shared__ uint32_t totals[WARPS];
	uint32_t warp = threadIdx.x / 32;
	uint32_t lane = threadIdx.x % 32;
	uint32_t chunk = (n + THREADS - 1) / THREADS * 32;
	uint32_t begin = min(warp * chunk, n);
	uint32_t end = min(begin + chunk, n);
	uint32_t sum = 0;
	uint32_t before = 0;
	uint32_t all = 0;

	for (uint32_t i = begin + lane; i < end; i += 32)
		sum += a[i];
	sum = warp_sum(sum);
	if (lane == 0)
		totals[warp] = sum;
	__syncthreads();
	for (int w = 0; w < WARPS; w++)
	{
		before += (uint32_t) w < warp ? totals[w] : 0;
		all += totals[w];
	}
	for (uint32_t i0 = begin; i0 < end; i0 += 32)
	{
		uint32_t i = i0 + lane;
		uint32_t own = i < end ? a[i] : 0;
		uint32_t sums = warp_prefix(own);

		if (i < end)
			a[i] = before + sums - own;
		before += __shfl_sync(ALL_LANES, sums, 31);
	}
	__syncthreads();
	return all;
}

} // namespace hgj

#endif /* HGJ_CUDA_DEVICE_CUH */
