/*-------------------------------------------------------------------------
 *
 * cpu_segments.c
 *	  The storage of the edge lists (Groschaft 2022, section 2.3): from the
 *	  length of every list to where its slots begin.
 *
 * 1. Ellpack: the longest list (and the slack) is every vertex's width.
 * 2. Sliced Ellpack: the same within each slice of 32 vertices; an exclusive
 *	  scan over the slices tells where each begins.
 * 3. If the padding takes more than the table may have (the memory limit, or
 *	  without one four times CSR and 1 MB), CSR is used and a note left.
 * 4. CSR: an exclusive scan over all vertices (lists and slack).
 *
 * On the CPU the slots of one vertex lie next to each other in all three,
 * where a GPU would interleave the vertices of a slice.
 *
 * The slices belong to the graph; the counts become its offsets (CSR) or stay
 * the caller's.  Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "cpu_internal.h"

/* Vertices between two calls of poll. */
#define VERTEX_STEP	HGJ_POLL_STEPS

static uint64_t
slice_count(uint64_t vertices)
{
	return (vertices + HGJ_SLICE - 1) / HGJ_SLICE;
}

/* The longest list among some vertices; lists[0] is the first one's length. */
static uint32_t
longest_list(const uint32_t *lists, uint64_t n)
{
	uint32_t	longest = 0;
	uint64_t	i;

	for (i = 0; i < n; i++)
		longest = lists[i] > longest ? lists[i] : longest;
	return longest;
}

/*
 * The longest list of all, and how many slots Sliced Ellpack would have
 * (saturating).  slices may be NULL; else it gets where every slice begins.
 */
static HgjStatus
scan_slices(HgjTable *t, const Plan *plan, const uint32_t *counts,
			uint64_t *slices, uint64_t *longest, uint64_t *slots,
			HgjError *err)
{
	uint64_t	n = slice_count(plan->vertices);
	uint64_t	s;

	*longest = 0;
	*slots = 0;
	for (s = 0; s < n; s++)
	{
		uint64_t	first = s * HGJ_SLICE;
		uint64_t	in_slice = plan->vertices - first;
		uint64_t	width;

		width = longest_list(counts + 1 + first,
							 in_slice > HGJ_SLICE ? HGJ_SLICE : in_slice);
		*longest = width > *longest ? width : *longest;
		if (slices != NULL)
			slices[s] = *slots;
		*slots += (width + plan->slack) * HGJ_SLICE;
		if ((s + 1) % (VERTEX_STEP / HGJ_SLICE) == 0)
		{
			HgjStatus	status = hgj_poll(&t->spec, err);

			if (status != HGJ_OK)
				return status;
		}
	}
	if (slices != NULL)
		slices[n] = *slots;
	return HGJ_OK;
}

/* Step 3: whether that many slots are affordable. */
static bool
padding_fits(const HgjTable *t, const Plan *plan, uint64_t slots,
			 uint64_t extra)
{
	uint64_t	now = __atomic_load_n(&t->current, __ATOMIC_RELAXED);
	uint64_t	csr;
	uint64_t	bytes;

	if (slots > (UINT64_MAX / 4 - extra) / plan->stride)
		return false;
	bytes = slots * plan->stride + extra;
	if (bytes > SIZE_MAX / 4)
		return false;
	if (t->spec.memory_limit > 0)
		return now + hgj_mem_footprint((size_t) bytes) + 8192 <=
			t->spec.memory_limit;
	csr = (plan->rows + plan->vertices * plan->slack) * plan->stride +
		(plan->vertices + 1) * sizeof(uint32_t);
	return bytes <= hgj_most_padded(csr);
}

/* Step 4, in place: counts[v + 1] becomes the first slot of vertex v. */
static HgjStatus
scan_csr(HgjTable *t, const Plan *plan, uint32_t *counts, Graph *g,
		 HgjError *err)
{
	uint64_t	slots = 0;
	uint64_t	longest = 0;
	uint64_t	v;

	for (v = 0; v < plan->vertices; v++)
	{
		uint64_t	count = counts[v + 1];

		longest = count > longest ? count : longest;
		counts[v + 1] = (uint32_t) slots;
		slots += count + hgj_slack_of(plan->slack, count);
		if (slots > UINT32_MAX)
			return hgj_fail(err, HGJ_LIMIT,
							"the table has more than 4294967295 slots");
		if ((v + 1) % VERTEX_STEP == 0)
		{
			HgjStatus	status = hgj_poll(&t->spec, err);

			if (status != HGJ_OK)
				return status;
		}
	}
	counts[0] = 0;
	g->longest = longest;
	g->slots = slots;
	return HGJ_OK;
}

/*
 * Choose the segments and lay out the slots.  counts[v + 1] is the length of
 * vertex v's list.  For CSR, counts becomes graph->offsets, with the first
 * slot of v in cell v + 1: placing the entries advances it to the end, which
 * is where v + 1 begins (hgj_cpu_segments_close adds the slack).
 */
HgjStatus
hgj_cpu_segments_size(HgjTable *table, const Plan *plan, uint32_t *counts,
					  size_t counts_bytes, Graph *graph, HgjError *err)
{
	uint64_t	n = slice_count(plan->vertices);
	uint64_t	slots;
	void	   *p;
	HgjStatus	status;

	graph->segments = HGJ_SEGMENTS_CSR;
	if (plan->segments != HGJ_SEGMENTS_CSR)
	{
		uint64_t	width;

		status = scan_slices(table, plan, counts, NULL, &graph->longest,
							 &slots, err);
		if (status != HGJ_OK)
			return status;
		width = graph->longest + plan->slack;
		if (plan->segments == HGJ_SEGMENTS_SLICED &&
			padding_fits(table, plan, slots, (n + 1) * sizeof(uint64_t)))
		{
			size_t		bytes = (size_t) (n + 1) * sizeof(uint64_t);

			status = hgj_cpu_get(table, bytes, &p, err);
			if (status != HGJ_OK)
				return status;
			graph->slices = p;
			graph->slices_bytes = bytes;
			graph->slots = slots;
			graph->segments = HGJ_SEGMENTS_SLICED;
			return scan_slices(table, plan, counts, graph->slices,
							   &graph->longest, &slots, err);
		}
		if (plan->segments == HGJ_SEGMENTS_ELLPACK &&
			width <= UINT64_MAX / plan->vertices &&
			padding_fits(table, plan, width * plan->vertices, 0))
		{
			graph->width = width;
			graph->slots = width * plan->vertices;
			graph->segments = HGJ_SEGMENTS_ELLPACK;
			return HGJ_OK;
		}
		graph->notes |= plan->segments == HGJ_SEGMENTS_SLICED ?
			HGJ_NOTE_SLICED_TOO_WIDE : HGJ_NOTE_ELLPACK_TOO_WIDE;
	}
	graph->offsets = counts;
	graph->offsets_bytes = counts_bytes;
	return scan_csr(table, plan, counts, graph, err);
}

/*
 * After the entries of a CSR graph were placed: put the slack of each vertex
 * behind its list.  Cannot fail.
 */
void
hgj_cpu_segments_close(Graph *graph)
{
	uint64_t	from = 0;
	uint64_t	v;

	if (graph->segments != HGJ_SEGMENTS_CSR || graph->slack == 0)
		return;
	for (v = 0; v < graph->vertices; v++)
	{
		uint64_t	count = graph->offsets[v + 1] - from;

		from += count + hgj_slack_of(graph->slack, count);
		graph->offsets[v + 1] = (uint32_t) from;
	}
}
