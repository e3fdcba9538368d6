/*-------------------------------------------------------------------------
 *
 * segments.cu
 *	  The storage of the edge lists (Groschaft 2022, section 2.3): from the tight
 *	  CSR graph that every build makes to Ellpack, Sliced Ellpack, and to CSR
 *	  with slack for dynamic tables.
 *
 * 1. Ellpack: the longest list (and the slack) is every vertex's width.
 * 2. Sliced Ellpack: the same within each slice of 32 vertices; a scan over the
 *	  slices tells where each begins.
 * 3. If the padding takes more than the table may have (the memory limit, or
 *	  without one four times CSR and 1 MB), CSR is kept and a note left.
 * 4. CSR with slack: a scan over all vertices, their lists and slack.
 * 5. All slots are marked empty, then the entries are moved.
 *
 * Slots of one vertex lie next to each other in all three: lists are so short
 * that one sector holds most of them, and an interleaved slice would cost a
 * sector per entry.
 *
 * What is made belongs to the graph.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include <cub/device/device_scan.cuh>

#include "device.cuh"
#include "internal.h"

namespace hgj
{

/* Slots of each slice: its longest list and the slack, 32 times. */
__global__ void slice_slots(const uint32_t *offsets, uint64_t vertices, uint32_t slack,
							uint64_t nslices, uint64_t *slots)
{
	uint64_t s = (uint64_t) blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
	uint64_t v = s * HGJ_SLICE + threadIdx.x % 32;
	uint32_t width = s < nslices && v < vertices ? offsets[v + 1] - offsets[v] : 0;

	width = warp_max(width);
	if (s < nslices && threadIdx.x % 32 == 0)
		slots[s] = ((uint64_t) width + slack) * HGJ_SLICE;
}

/* Slots of each vertex of a dynamic CSR graph. */
__global__ void slack_slots(const uint32_t *offsets, uint64_t vertices, uint32_t slack,
							uint64_t *slots)
{
	FOR_GRID (v, vertices)
	{
		uint64_t count = offsets[v + 1] - offsets[v];

		slots[v] = count + hgj_slack_of(slack, count);
	}
}

__global__ void narrow_offsets(const uint64_t *wide, uint64_t n, uint32_t *offsets)
{
	FOR_GRID (v, n)
		offsets[v] = (uint32_t) wide[v];
}

/* Step 5, entry by entry; rows of direct tables have no code: their vertex is
 * found by halving the offsets. */
template <class T>
__global__ void move_entries(const typename T::Entry *from, uint64_t n,
							 const uint32_t *offsets, GraphView to, void *entries)
{
	FOR_GRID (i, n)
	{
		typename T::Entry e = from[i];
		uint64_t v;
		uint64_t slot;
		uint64_t end;

		if constexpr (T::layout == LAYOUT_ROW)
		{
			uint64_t last = to.vertices;

			v = 0; /* the last vertex that begins at or before i */
			while (v + 1 < last)
			{
				uint64_t middle = v + (last - v) / 2;

				if (offsets[middle] <= i)
					v = middle;
				else
					last = middle;
			}
		}
		else
			v = (uint64_t) (e.code >> to.mix.shift);
		list_of(to, v, &slot, &end);
		static_cast<typename T::Entry *>(entries)[slot + (i - offsets[v])] = e;
	}
}

/* Step 3: whether that many slots are affordable. */
static bool padding_fits(const HgjTable *t, const Graph &g, uint64_t slots,
						 uint64_t extra)
{
	uint64_t now = __atomic_load_n(&t->current, __ATOMIC_RELAXED);
	uint64_t csr = (g.rows + g.vertices * g.slack) * g.stride() + (g.vertices + 1) * 4;
	uint64_t bytes;

	if (slots > (UINT64_MAX / 4 - extra) / g.stride())
		return false;
	bytes = slots * g.stride() + extra;
	if (t->spec.memory_limit > 0 && now + bytes + 8192 > t->spec.memory_limit)
		return false;
	return bytes <= hgj_most_padded(csr);
}

/* n sizes into where each begins, and the sum; waits. */
static HgjStatus scan_sizes(HgjTable *t, uint64_t *sizes, uint64_t n, uint64_t *sum,
							HgjError *err)
{
	cudaStream_t stream = t->lane.stream;
	size_t bytes = 0;
	Buffer temp;

	HGJ_CUDA(cudaMemsetAsync(sizes + n, 0, sizeof(uint64_t), stream));
	HGJ_CUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes, sizes, sizes, n + 1, stream));
	HGJ_TRY(temp.get(t, stream, bytes, err));
	HGJ_CUDA(cub::DeviceScan::ExclusiveSum(temp.as<void>(), bytes, sizes, sizes, n + 1,
										   stream));
	HGJ_CUDA(
		cudaMemcpyAsync(sum, sizes + n, sizeof(*sum), cudaMemcpyDeviceToHost, stream));
	return wait(t, t->lane, true, err);
}

/* Step 5.  `g` already says what the storage is to be, but for the entries. */
static HgjStatus move_all(HgjTable *t, Graph *g, const Buffer &offsets, HgjError *err)
{
	cudaStream_t stream = t->lane.stream;
	int blocks = grid_of(t->lane, g->rows);
	GraphView view = g->view();
	Buffer entries;

	HGJ_TRY(entries.get(t, stream, g->slots * g->stride(), err));
	if (g->slots > 0)
		HGJ_CUDA(
			cudaMemsetAsync(entries.as<void>(), 0xFF, g->slots * g->stride(), stream));
	if (g->rows > 0)
	{
		if (g->layout == LAYOUT_ROW)
			move_entries<RowTraits><<<blocks, 256, 0, stream>>>(
				g->entries.as<uint32_t>(), g->rows, offsets.as<uint32_t>(), view,
				entries.as<void>());
		else if (g->layout == LAYOUT_NARROW)
			move_entries<NarrowTraits><<<blocks, 256, 0, stream>>>(
				g->entries.as<Entry32>(), g->rows, offsets.as<uint32_t>(), view,
				entries.as<void>());
		else
			move_entries<WideTraits><<<blocks, 256, 0, stream>>>(
				g->entries.as<Entry64>(), g->rows, offsets.as<uint32_t>(), view,
				entries.as<void>());
		HGJ_CUDA(cudaGetLastError());
	}
	g->entries.swap(entries);
	return HGJ_OK;
}

/* Step 4. */
static HgjStatus add_slack(HgjTable *t, Graph *g, HgjError *err)
{
	cudaStream_t stream = t->lane.stream;
	uint64_t n = g->vertices;
	Buffer wide;
	Buffer old;

	HGJ_TRY(wide.get(t, stream, (n + 1) * sizeof(uint64_t), err));
	slack_slots<<<grid_of(t->lane, n), 256, 0, stream>>>(g->offsets.as<uint32_t>(), n,
														 g->slack, wide.as<uint64_t>());
	HGJ_CUDA(cudaGetLastError());
	HGJ_TRY(scan_sizes(t, wide.as<uint64_t>(), n, &g->slots, err));
	if (g->slots > UINT32_MAX)
		return fail(err, HGJ_LIMIT, "the table has more than 4294967295 slots");
	old.swap(g->offsets);
	HGJ_TRY(g->offsets.get(t, stream, (n + 1) * sizeof(uint32_t), err));
	narrow_offsets<<<grid_of(t->lane, n + 1), 256, 0, stream>>>(
		wide.as<uint64_t>(), n + 1, g->offsets.as<uint32_t>());
	HGJ_CUDA(cudaGetLastError());
	wide.release();
	return move_all(t, g, old, err);
}

/* Steps 1 to 3; *done is false where CSR is kept. */
static HgjStatus pad(HgjTable *t, const Plan &plan, Graph *g, bool *done, HgjError *err)
{
	cudaStream_t stream = t->lane.stream;
	uint64_t nslices = (g->vertices + HGJ_SLICE - 1) / HGJ_SLICE;
	Buffer slices;
	Buffer old;

	*done = false;
	if (plan.segments == HGJ_SEGMENTS_ELLPACK)
	{
		uint64_t width = g->longest + g->slack;

		if (width > UINT64_MAX / g->vertices ||
			!padding_fits(t, *g, width * g->vertices, 0))
			return HGJ_OK;
		g->width = width;
		g->slots = width * g->vertices;
	}
	else
	{
		uint64_t slots;

		HGJ_TRY(slices.get(t, stream, (nslices + 1) * sizeof(uint64_t), err));
		slice_slots<<<(unsigned int) ((nslices + 7) / 8), 256, 0, stream>>>(
			g->offsets.as<uint32_t>(), g->vertices, g->slack, nslices,
			slices.as<uint64_t>());
		HGJ_CUDA(cudaGetLastError());
		HGJ_TRY(scan_sizes(t, slices.as<uint64_t>(), nslices, &slots, err));
		if (!padding_fits(t, *g, slots, 0))
			return HGJ_OK;
		g->slots = slots;
		g->slices.swap(slices);
	}
	g->segments = plan.segments;
	old.swap(g->offsets);
	*done = true;
	return move_all(t, g, old, err);
}

/* A tight CSR graph becomes what the plan asks for, as far as memory allows. */
HgjStatus arrange_segments(HgjTable *table, const Plan &plan, Graph *graph, HgjError *err)
{
	bool done;

	graph->segments = HGJ_SEGMENTS_CSR;
	if (plan.segments != HGJ_SEGMENTS_CSR)
	{
		HGJ_TRY(pad(table, plan, graph, &done, err));
		if (done)
			return HGJ_OK;
		graph->notes |= plan.segments == HGJ_SEGMENTS_SLICED ? HGJ_NOTE_SLICED_TOO_WIDE
															 : HGJ_NOTE_ELLPACK_TOO_WIDE;
	}
	return graph->slack > 0 ? add_slack(table, graph, err) : HGJ_OK;
}

} // namespace hgj
