/*-------------------------------------------------------------------------
 *
 * cpu_probe_stage.c
 *	  Getting a group of probe rows ready to be walked: from keys to slots,
 *	  with every cache miss of the group under way at the same time.
 *
 * 1. Fetch the rows' keys, in the batch's order or in that of the bins.
 * 2. Compute their codes; keys outside the table's range drop out.  Prefetch
 *	  where their vertices' slots are written down (Ellpack: the entries).
 * 3. Load that, drop the vertices without entries, prefetch the entries.
 * 4. Do steps 1 and 2 for the next group, before this one is walked.
 *
 * Dropping is done by writing every row and only sometimes moving on, because
 * a branch on it could not be predicted.
 *
 * Group and Ahead belong to the probe.  Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "cpu_probe.h"

/* Step 1: rows and keys of the order's rows first .. first + n. */
static void
fetch_keys(HgjProbe *probe, uint32_t first, uint32_t n)
{
	Ahead	   *g = &probe->ahead;
	const uint32_t *sel = probe->keys.sel;
	const uint64_t *column = probe->keys.words[0];
	uint32_t	i;

	if (probe->binned && probe->table->graph.layout == LAYOUT_NARROW)
	{
		const NarrowEntry *rows = (const NarrowEntry *) probe->rows + first;
		uint64_t	base = probe->table->graph.base;

		for (i = 0; i < n; i++)
		{
			g->row[i] = rows[i].row;
			g->key[i] = base + rows[i].key;
		}
	}
	else if (probe->binned)
	{
		const BinnedRow *rows = (const BinnedRow *) probe->rows + first;

		for (i = 0; i < n; i++)
		{
			g->row[i] = rows[i].row;
			g->key[i] = rows[i].key;
		}
	}
	else if (sel != NULL)
		for (i = 0; i < n; i++)
		{
			g->row[i] = sel[first + i];
			g->key[i] = column[sel[first + i]];
		}
	else
		for (i = 0; i < n; i++)
		{
			g->row[i] = first + i;
			g->key[i] = column[first + i];
		}
}

/* Step 2 for keys of several words, whose column 0 is in g->key. */
static void
multi_codes(const HgjProbe *probe, Ahead *g, uint32_t n)
{
	const HgjHash hash = probe->table->hash;
	uint32_t	nwords = probe->table->spec.nwords;
	uint32_t	w;
	uint32_t	i;

	if (probe->binned)
	{
		memcpy(g->code, g->key, n * sizeof(uint64_t));
		return;
	}
	for (i = 0; i < n; i++)
		g->code[i] = hgj_hash_word(&hash, hash.start, g->key[i]);
	for (w = 1; w < nwords; w++)
	{
		const uint64_t *column = probe->keys.words[w];

		for (i = 0; i < n; i++)
			g->code[i] = hgj_hash_word(&hash, g->code[i], column[g->row[i]]);
	}
	for (i = 0; i < n; i++)
		g->code[i] = hgj_hash_finish(&hash, g->code[i]);
}

/* Step 2 but the prefetch; returns how many rows are left. */
static uint32_t
ahead_codes(const HgjProbe *probe, Ahead *g, uint32_t n)
{
	const Graph *graph = &probe->table->graph;
	const HgjHash hash = probe->table->hash;
	uint64_t	base = graph->base;
	uint64_t	range = graph->range;
	uint32_t	kept = 0;
	uint32_t	i;

	if (graph->layout == LAYOUT_MULTI)
		multi_codes(probe, g, n);
	else if (graph->layout == LAYOUT_WIDE)
		for (i = 0; i < n; i++)
			g->code[i] = hgj_hash_single(&hash, g->key[i]);
	else
	{
		for (i = 0; i < n; i++)
		{
			uint64_t	offset = g->key[i] - base;

			g->row[kept] = g->row[i];
			g->key[kept] = offset;
			kept += offset <= range;
		}
		if (graph->direct)
			memcpy(g->code, g->key, kept * sizeof(uint64_t));
		else
			for (i = 0; i < kept; i++)
				g->code[i] = hgj_hash_single(&hash, base + g->key[i]);
		return kept;
	}
	return n;
}

/* Steps 1 and 2 for the group that begins at row `first` of the order. */
static void
look_ahead(HgjProbe *probe, uint32_t first)
{
	const Graph *graph = &probe->table->graph;
	Ahead	   *a = &probe->ahead;
	uint32_t	shift = graph->shift;
	uint32_t	n = probe->total - first;
	uint32_t	i;

	n = n > HGJ_GROUP ? HGJ_GROUP : n;
	a->first = first;
	a->next = first + n;
	fetch_keys(probe, first, n);
	n = ahead_codes(probe, a, n);
	a->n = n;
	if (graph->segments == HGJ_SEGMENTS_CSR)
		for (i = 0; i < n; i++)
		{
			const uint32_t *offset = graph->offsets + (a->code[i] >> shift);

			HGJ_PREFETCH(offset);
			HGJ_PREFETCH(offset + 1);
		}
	else if (graph->segments == HGJ_SEGMENTS_SLICED)
		for (i = 0; i < n; i++)
			HGJ_PREFETCH(graph->slices + (a->code[i] >> shift) / HGJ_SLICE);
	else
		for (i = 0; i < n; i++)
			HGJ_PREFETCH(graph->entries + (a->code[i] >> shift) *
						 graph->width * graph->stride);
}

/* Step 3. */
HGJ_INLINE void
group_slots(const Graph *graph, HgjSegments segments, bool dynamic,
			const Ahead *a, Group *g)
{
	uint32_t	shift = graph->shift;
	uint32_t	stride = graph->stride;
	uint32_t	n = a->n;
	uint64_t	edges = 0;
	uint32_t	kept = 0;
	uint32_t	i;

	for (i = 0; i < n; i++)
	{
		uint64_t	from;
		uint64_t	to;
		uint64_t	code = a->code[i];

		vertex_slots(graph, segments, code >> shift, &from, &to);
		if (segments != HGJ_SEGMENTS_ELLPACK)
		{
			HGJ_PREFETCH(graph->entries + from * stride);
			HGJ_PREFETCH(graph->entries + to * stride - 1);
		}
		g->row[kept] = a->row[i];
		g->key[kept] = a->key[i];
		g->code[kept] = code;
		g->from[kept] = from;
		g->to[kept] = to;
		edges += to - from;
		kept += dynamic || from < to;
	}
	g->n = kept;
	g->at = 0;
	g->edges = edges;
}

/* Steps 1 to 4 for the group that begins at row `first` of the order. */
void
hgj_cpu_probe_stage(HgjProbe *probe, uint32_t first)
{
	const Graph *graph = &probe->table->graph;
	Ahead	   *a = &probe->ahead;
	Group	   *g = &probe->group;
	bool		dynamic = graph->slack > 0;

	if (a->next == 0 || a->first != first)
		look_ahead(probe, first);
	probe->group_first = first;
	probe->next = a->next;
	probe->staged = true;
	if (!probe->filtering)
	{
		probe->window_rows += a->n;
		probe->window_out += a->next - a->first - a->n;
	}
	if (dynamic && graph->segments == HGJ_SEGMENTS_CSR)
		group_slots(graph, HGJ_SEGMENTS_CSR, true, a, g);
	else if (dynamic && graph->segments == HGJ_SEGMENTS_ELLPACK)
		group_slots(graph, HGJ_SEGMENTS_ELLPACK, true, a, g);
	else if (dynamic)
		group_slots(graph, HGJ_SEGMENTS_SLICED, true, a, g);
	else if (graph->segments == HGJ_SEGMENTS_CSR)
		group_slots(graph, HGJ_SEGMENTS_CSR, false, a, g);
	else if (graph->segments == HGJ_SEGMENTS_ELLPACK)
		group_slots(graph, HGJ_SEGMENTS_ELLPACK, false, a, g);
	else
		group_slots(graph, HGJ_SEGMENTS_SLICED, false, a, g);
	probe->vertex = g->n > 0 ? g->code[0] >> graph->shift : 0;
	a->next = 0;
	if (probe->next < probe->total)
		look_ahead(probe, probe->next);
}
