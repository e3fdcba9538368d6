/*-------------------------------------------------------------------------
 *
 * cpu_direct.c
 *	  A direct table whose keys are unique, built and probed: one row id per
 *	  possible key.
 *
 * 1. All slots, one per key between the smallest and the largest, are empty.
 * 2. Every row goes to the slot key - min.  No count, no scan: this is Ellpack
 *	  of width 1, and a probe is one load.
 * 3. The first slot that is taken already says that the keys are not unique;
 *	  the slots are given back, and the caller counts after all.
 *
 * 4. A probe prefetches the slots of a block of rows, and then reads them.  Keys
 *	  out of range read a slot behind the last one, which is always empty.
 *
 * (Direct tables with longer lists are built by cpu_build.c, like any other:
 * only their vertices come from the key instead of its hash.)
 *
 * The slots belong to the graph.  Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "cpu_probe.h"

/*
 * Place a block; false where a slot is taken.  Other processes may do so at the same
 * time (cpu_share.c): what both find empty, one of them has written last.
 */
bool
hgj_cpu_place_unique(uint32_t *slots, const Block *block, uint64_t base)
{
	const uint64_t *keys = block->words[0];
	uint32_t	taken = 0;
	uint32_t	i;

	for (i = 0; i < block->n; i++)
	{
		uint32_t   *slot = slots + (keys[i] - base);

		taken |= __atomic_load_n(slot, __ATOMIC_RELAXED) != HGJ_ROW_EMPTY;
		__atomic_store_n(slot, block->rows[i], __ATOMIC_RELAXED);
	}
	return taken == 0;
}

/*
 * Build a direct graph in the hope of unique keys; *unique says whether it
 * came true, and only then is there a graph.
 */
HgjStatus
hgj_cpu_build_unique(HgjTable *table, Source *source, const Plan *plan,
					 Graph *graph, bool *unique, HgjError *err)
{
	size_t		bytes = (size_t) plan->vertices * sizeof(uint32_t) + 64;
	void	   *p;
	Block		block;
	HgjStatus	status;

	*unique = false;
	if (plan->rows > plan->vertices)
		return HGJ_OK;			/* two rows must share a key */
	status = hgj_cpu_get(table, bytes, &p, err);
	if (status != HGJ_OK)
		return status;
	graph->entries = p;
	graph->entries_bytes = bytes;
	status = hgj_cpu_fill(table, p, 0xFF, bytes, err);
	*unique = true;
	hgj_cpu_source_rewind(source);
	while (status == HGJ_OK && *unique)
	{
		status = hgj_cpu_source_next(source, &block, err);
		if (status != HGJ_OK || block.n == 0)
			break;
		*unique = hgj_cpu_place_unique(p, &block, plan->base);
	}
	if (status != HGJ_OK || !*unique)
	{
		*unique = false;
		hgj_cpu_graph_free(table, graph);
		return status;
	}
	graph->segments = HGJ_SEGMENTS_ELLPACK;
	graph->width = 1;
	graph->slots = plan->vertices;
	graph->longest = plan->rows > 0 ? 1 : 0;
	graph->bins = 1;			/* whatever the plan for duplicates was */
	return HGJ_OK;
}

/*
 * Step 4: the matches of the next n <= HGJ_UNIQUE_ROWS rows of a batch.  Returns
 * how many; the arrays have room for n.
 */
uint32_t
hgj_cpu_probe_unique(HgjProbe *probe, uint32_t n, uint32_t *probe_rows,
					 uint32_t *build_rows)
{
	const Graph *graph = &probe->table->graph;
	const uint32_t *slots = (const uint32_t *) (const void *) graph->entries;
	const uint64_t *column = probe->keys.words[0];
	const uint32_t *sel = probe->keys.sel;
	uint32_t	first = probe->next;
	uint32_t	key[HGJ_UNIQUE_ROWS];
	uint64_t	base = graph->base;
	uint64_t	range = graph->range;
	uint32_t	found = 0;
	uint32_t	out = 0;
	uint32_t	i;

	for (i = 0; i < n; i++)
	{
		uint64_t	offset = column[sel != NULL ? sel[first + i] : first + i] -
			base;

		out += offset > range;
		key[i] = (uint32_t) (offset <= range ? offset : range + 1);
		HGJ_PREFETCH(slots + key[i]);
	}
	for (i = 0; i < n; i++)
	{
		uint32_t	row = slots[key[i]];

		probe_rows[found] = sel != NULL ? sel[first + i] : first + i;
		build_rows[found] = row;
		found += row != HGJ_ROW_EMPTY;
	}
	probe->next += n;
	if (!probe->filtering)
	{
		probe->window_rows += n - out;
		probe->window_hits += found;
		probe->window_out += out;
	}
	return found;
}
