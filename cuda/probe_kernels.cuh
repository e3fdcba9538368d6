/*-------------------------------------------------------------------------
 *
 * probe_kernels.cuh
 *	  Looking probe rows up (Green 2019's standard probe; Groschaft 2022,
 *	  algorithm 3, and 11 for dynamic tables), and writing matches.
 *
 * A block takes a tile of rows, a thread some of them, and does every step for
 * all of its rows before the next step, so that their loads overlap:
 * 1. Codes, from key words or from binned entries.
 * 2. Where the lists are.
 * 3. The first entry of each.
 * 4. The range of slots that match.
 *
 * emit_pairs writes pairs at once: a block counts its tile's, reserves room with
 * one atomic, and each warp writes its part, threads next to each other to
 * places next to each other, also where one row has many matches.
 *
 * find_ranges and expand_pairs are for everything else (very long lists, output
 * in portions): ranges first, a scan of their lengths, and then every pair of a
 * portion finds its row by halving, so that no row is any thread's burden.
 *
 * walk_rows is for tables whose lists are not sorted: a warp walks a list, 32
 * slots at a time.
 *
 * Owns nothing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CUDA_PROBE_KERNELS_CUH
#define HGJ_CUDA_PROBE_KERNELS_CUH

#include "device.cuh"
#include "internal.h"

namespace hgj
{

constexpr int PROBE_THREADS = 256;
constexpr int PROBE_ITEMS = 4;
constexpr int PROBE_TILE = PROBE_THREADS * PROBE_ITEMS;

/* What is looked up where. */
struct ProbeJob
{
	GraphView graph;
	Rows rows;
	const void *binned;      /* entries in the order of the bins, or NULL */
	const uint32_t *nbinned; /* how many: rows with impossible keys are left out */
	uint64_t n;
	HgjProbeMode mode;
	uint32_t *bits; /* match bits to set, or NULL */
};

struct PairOut
{
	uint32_t *probe_rows;
	uint32_t *build_rows;
	uint64_t capacity;
	unsigned long long *cursor;
};

__device__ __forceinline__ void set_bit(uint32_t *bits, uint32_t row)
{
	uint32_t bit = 1u << (row % 32);

	if (!(bits[row / 32] & bit))
		atomicOr(&bits[row / 32], bit);
}

__device__ __forceinline__ void put_pair(const ProbeJob &job, const PairOut &out,
										 uint64_t at, uint32_t probe_row,
										 uint32_t build_row)
{
	out.probe_rows[at] = probe_row;
	out.build_rows[at] = build_row;
	if (job.bits != nullptr)
		set_bit(job.bits, build_row);
}

/* One row on its way through steps 1 to 4. */
template <class T>
struct Lookup
{
	typename T::Code code;
	typename T::Entry first;
	uint32_t row; /* of the probe side */
	uint32_t at;  /* multi: where its words are */
	bool there;
	uint64_t from;
	uint64_t to;
};

template <class T, bool BINNED>
__device__ __forceinline__ void begin_lookups(const ProbeJob &job, uint64_t base,
											  Lookup<T> *l)
{
	if constexpr (BINNED)
	{
		const typename T::Entry *binned =
			static_cast<const typename T::Entry *>(job.binned);
		uint64_t n = *job.nbinned;
		typename T::Entry e[PROBE_ITEMS];

#pragma unroll
		for (int k = 0; k < PROBE_ITEMS; k++)
		{
			l[k].there = base + k * PROBE_THREADS < n;
			if (l[k].there)
				e[k] = load_slot(binned + base + k * PROBE_THREADS);
		}
#pragma unroll
		for (int k = 0; k < PROBE_ITEMS; k++)
		{
			l[k].code = e[k].code;
			l[k].row = e[k].row;
			if constexpr (T::layout == LAYOUT_MULTI)
				l[k].at = e[k].pos;
		}
	}
	else
	{
		typename T::Code codes[PROBE_ITEMS];
		uint32_t ids[PROBE_ITEMS];
		uint32_t at[PROBE_ITEMS];
		bool there[PROBE_ITEMS];

		load_codes<T, PROBE_ITEMS>(job.rows, job.graph.mix, base, PROBE_THREADS, codes,
								   ids, at, there);
#pragma unroll
		for (int k = 0; k < PROBE_ITEMS; k++)
		{
			l[k].code = codes[k];
			l[k].row = ids[k];
			l[k].at = at[k];
			l[k].there = there[k];
		}
	}
}

/* Without a branch between the loads where that is possible. */
template <class T>
__device__ __forceinline__ void lookup_lists(const ProbeJob &job, Lookup<T> *l)
{
	const typename T::Entry *entries =
		static_cast<const typename T::Entry *>(job.graph.entries);

	if (job.graph.segments == HGJ_SEGMENTS_CSR)
	{
		uint32_t from[PROBE_ITEMS];
		uint32_t to[PROBE_ITEMS];

#pragma unroll
		for (int k = 0; k < PROBE_ITEMS; k++)
		{
			uint64_t v = l[k].there ? (uint64_t) (l[k].code >> job.graph.mix.shift) : 0;

			from[k] = __ldg(job.graph.offsets + v);
			to[k] = __ldg(job.graph.offsets + v + 1);
		}
#pragma unroll
		for (int k = 0; k < PROBE_ITEMS; k++)
		{
			l[k].from = from[k];
			l[k].to = l[k].there ? to[k] : from[k];
		}
	}
	else
	{
#pragma unroll
		for (int k = 0; k < PROBE_ITEMS; k++)
		{
			l[k].from = l[k].to = 0;
			if (l[k].there)
				list_of(job.graph, (uint64_t) (l[k].code >> job.graph.mix.shift),
						&l[k].from, &l[k].to);
		}
	}
#pragma unroll
	for (int k = 0; k < PROBE_ITEMS; k++)
		if (l[k].from < l[k].to)
			l[k].first = load_slot(entries + l[k].from);
}

template <class T>
__device__ __forceinline__ Found lookup_match(const ProbeJob &job, const Lookup<T> &l)
{
	bool single = job.graph.unique || job.mode == HGJ_MATCH_FIRST;
	Found f;

	if constexpr (T::layout == LAYOUT_ROW)
		f = find_direct(job.graph, l.from, l.to, l.first);
	else
	{
		f = find_sorted<T>(job.graph, l.from, l.to, l.first, l.code, single);
		if (T::layout == LAYOUT_MULTI && f.count > 0 &&
			!verify<T>(job.graph, job.rows, l.at, f))
			f.count = 0;
	}
	if (job.mode == HGJ_MATCH_FIRST && f.count > 1)
		f.count = 1;
	return f;
}

/* The pairs of 32 rows, of which some have several; all lanes take part. */
template <class T>
__device__ void emit_many(const ProbeJob &job, const PairOut &out, uint64_t at,
						  uint32_t probe_row, uint32_t from, uint32_t count)
{
	const typename T::Entry *entries =
		static_cast<const typename T::Entry *>(job.graph.entries);
	uint32_t lane = threadIdx.x % 32;
	uint32_t before = warp_prefix(count);
	uint32_t total = __shfl_sync(ALL_LANES, before, 31);

	before -= count;
	for (uint32_t j0 = 0; j0 < total; j0 += 32)
	{
		uint32_t j = j0 + lane;
		uint32_t owner = 0; /* the last lane that begins at or before j */

		for (uint32_t d = 16; d > 0; d /= 2)
			owner += __shfl_sync(ALL_LANES, before, owner + d) <= j ? d : 0;

		uint32_t slot = __shfl_sync(ALL_LANES, from, owner) + j -
						__shfl_sync(ALL_LANES, before, owner);
		uint32_t row = __shfl_sync(ALL_LANES, probe_row, owner);

		if (j < total)
			put_pair(job, out, at + j, row, entry_row(load_slot(entries + slot)));
	}
}

/* Slots must be below 2^32, and no row may have very many matches. */
template <class T, bool BINNED>
__global__ void __launch_bounds__(PROBE_THREADS) emit_pairs(ProbeJob job, PairOut out)
{
	__shared__ uint32_t totals[PROBE_THREADS / 32];
	__shared__ unsigned long long reserved;
	uint32_t warp = threadIdx.x / 32;
	uint32_t lane = threadIdx.x % 32;
	uint64_t base = (uint64_t) blockIdx.x * PROBE_TILE + threadIdx.x;
	uint32_t from[PROBE_ITEMS];
	uint32_t count[PROBE_ITEMS];
	uint32_t row[PROBE_ITEMS];
	uint32_t match[PROBE_ITEMS];
	uint32_t sum = 0;
	uint32_t total = 0;
	uint64_t at;

	{
		Lookup<T> l[PROBE_ITEMS];

		begin_lookups<T, BINNED>(job, base, l);
		lookup_lists<T>(job, l);
#pragma unroll
		for (int k = 0; k < PROBE_ITEMS; k++)
		{
			Found f = lookup_match<T>(job, l[k]);

			from[k] = (uint32_t) f.from;
			count[k] = f.count;
			match[k] = f.row;
			row[k] = l[k].row;
			sum += f.count;
		}
	}
	sum = warp_sum(sum);
	if (lane == 0)
		totals[warp] = sum;
	__syncthreads();
	sum = 0;
	for (uint32_t w = 0; w < PROBE_THREADS / 32; w++)
	{
		sum += w < warp ? totals[w] : 0;
		total += totals[w];
	}
	if (total == 0)
		return;
	if (threadIdx.x == 0)
		reserved = atomicAdd(out.cursor, (unsigned long long) total);
	__syncthreads();
	if (reserved + total > out.capacity)
		return; /* counted only */
	at = reserved + sum;
#pragma unroll
	for (int k = 0; k < PROBE_ITEMS; k++)
	{
		uint32_t some = __ballot_sync(ALL_LANES, count[k] > 0);

		if (__any_sync(ALL_LANES, count[k] > 1))
		{
			emit_many<T>(job, out, at, row[k], from[k], count[k]);
			at += warp_sum(count[k]);
			continue;
		}
		if (count[k] > 0)
			put_pair(job, out, at + __popc(some & ((1u << lane) - 1)), row[k], match[k]);
		at += __popc(some);
	}
}

/*
 * Ranges of rows i (starts, counts[i]), or in HGJ_MATCH_COUNT mode only
 * counts[probe row].
 */
template <class T, bool BINNED>
__global__ void __launch_bounds__(PROBE_THREADS)
	find_ranges(ProbeJob job, uint64_t *starts, uint32_t *counts)
{
	uint64_t base = (uint64_t) blockIdx.x * PROBE_TILE + threadIdx.x;
	const typename T::Entry *entries =
		static_cast<const typename T::Entry *>(job.graph.entries);
	Lookup<T> l[PROBE_ITEMS];

	begin_lookups<T, BINNED>(job, base, l);
	lookup_lists<T>(job, l);
#pragma unroll
	for (int k = 0; k < PROBE_ITEMS; k++)
	{
		uint64_t i = base + k * PROBE_THREADS;
		Found f = lookup_match<T>(job, l[k]);

		if (i >= job.n)
			continue; /* binned rows are only counted */
		if (job.mode != HGJ_MATCH_COUNT)
		{
			starts[i] = f.from;
			counts[i] = f.count;
			continue;
		}
		if (f.count > 0)
			counts[l[k].row] = f.count;
		if (job.bits != nullptr)
			for (uint32_t j = 0; j < f.count; j++)
				set_bit(job.bits, entry_row(load_slot(entries + f.from + j)));
	}
}

/* The last i of [first, last) with sums[i] <= x. */
__device__ __forceinline__ uint64_t last_at_most(const uint64_t *sums, uint64_t first,
												 uint64_t last, uint64_t x)
{
	while (first + 1 < last)
	{
		uint64_t middle = first + (last - first) / 2;

		if (__ldg(sums + middle) <= x)
			first = middle;
		else
			last = middle;
	}
	return first;
}

/* Pairs lo .. hi of all: sums[i] is how many come before row i. */
template <class T>
__global__ void __launch_bounds__(PROBE_THREADS)
	expand_pairs(ProbeJob job, PairOut out, const uint64_t *starts, const uint64_t *sums,
				 uint64_t lo, uint64_t hi)
{
	__shared__ uint64_t rows[2];
	const typename T::Entry *entries =
		static_cast<const typename T::Entry *>(job.graph.entries);
	uint64_t base = lo + (uint64_t) blockIdx.x * PROBE_TILE;
	uint64_t end = min(base + PROBE_TILE, hi);

	if (threadIdx.x < 2)
		rows[threadIdx.x] =
			last_at_most(sums, 0, job.n, threadIdx.x == 0 ? base : end - 1);
	__syncthreads();
	for (uint64_t j = base + threadIdx.x; j < end; j += PROBE_THREADS)
	{
		uint64_t i = last_at_most(sums, rows[0], rows[1] + 1, j);
		uint64_t slot = starts[i] + (j - sums[i]);

		put_pair(job, out, j - lo, row_id(job.rows, row_at(job.rows, i)),
				 entry_row(load_slot(entries + slot)));
	}
}

/* An entry, as a dynamic table or one with colliding hashes may have it. */
template <class T>
__device__ __forceinline__ bool entry_matches(const ProbeJob &job,
											  const typename T::Entry &e,
											  typename T::Code code, uint64_t at)
{
	if (e.row >= ROW_DELETED || e.code != code)
		return false;
	if constexpr (T::layout == LAYOUT_MULTI)
		return same_words(job.graph.words + (uint64_t) e.pos * job.rows.nwords,
						  static_cast<const uint64_t *>(job.rows.words) +
							  at * job.rows.nwords,
						  job.rows.nwords);
	return true;
}

/*
 * A warp per row.  Without sums: counts[i], or in HGJ_MATCH_COUNT mode
 * counts[probe row].  With sums: writes those of the pairs lo .. hi that are
 * its row's.
 */
template <class T>
__global__ void __launch_bounds__(PROBE_THREADS)
	walk_rows(ProbeJob job, bool dynamic, uint32_t *counts, const uint64_t *sums,
			  PairOut out, uint64_t lo, uint64_t hi)
{
	const typename T::Entry *entries =
		static_cast<const typename T::Entry *>(job.graph.entries);
	uint64_t i = ((uint64_t) blockIdx.x * PROBE_THREADS + threadIdx.x) / 32;
	uint32_t lane = threadIdx.x % 32;
	uint64_t done = 0;
	uint64_t most = job.mode == HGJ_MATCH_FIRST ? 1 : UINT64_MAX;
	uint64_t at;
	uint64_t vertex;
	uint64_t home;
	typename T::Code code;
	bool end;

	if (i >= job.n || (sums != nullptr && (sums[i] >= hi || sums[i + 1] <= lo)))
		return;
	at = row_at(job.rows, i);
	end = !row_code<T>(job.rows, job.graph.mix, at, &code);
	vertex = home = (uint64_t) (code >> job.graph.mix.shift);
	while (!end && done < most)
	{
		uint64_t from;
		uint64_t to;

		list_of(job.graph, vertex, &from, &to);
		for (; from < to && !end && done < most; from += 32)
		{
			uint64_t slot = from + lane;
			typename T::Entry e;
			uint32_t empty;
			uint32_t hits;

			e.row = ROW_DELETED;
			if (slot < to)
				e = entries[slot];
			empty = __ballot_sync(ALL_LANES, e.row == ROW_EMPTY);
			hits = __ballot_sync(ALL_LANES, entry_matches<T>(job, e, code, at));
			if (empty != 0)
			{
				end = true; /* nothing comes after the first empty slot */
				hits &= (empty & -empty) - 1;
			}
			if (job.mode == HGJ_MATCH_FIRST)
				hits &= -hits;
			if (hits >> lane & 1)
			{
				uint64_t j = done + __popc(hits & ((1u << lane) - 1));

				if (sums != nullptr && sums[i] + j >= lo && sums[i] + j < hi)
					put_pair(job, out, sums[i] + j - lo, row_id(job.rows, at), e.row);
				else if (job.mode == HGJ_MATCH_COUNT && job.bits != nullptr)
					set_bit(job.bits, e.row);
			}
			done += __popc(hits);
		}
		vertex = vertex + 1 < job.graph.vertices ? vertex + 1 : 0;
		end |= !dynamic || vertex == home;
	}
	if (sums == nullptr && lane == 0)
		counts[job.mode == HGJ_MATCH_COUNT ? row_id(job.rows, at) : i] = (uint32_t) done;
}

} // namespace hgj

#endif /* HGJ_CUDA_PROBE_KERNELS_CUH */
