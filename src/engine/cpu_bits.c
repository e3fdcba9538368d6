/*-------------------------------------------------------------------------
 *
 * cpu_bits.c
 *	  A graph of which only the keys are wanted: a bit per key.
 *
 * A join whose output takes nothing from the inner side asks of a key whether it is
 * there, and how often.  Where no key is there twice, or the first match will do, a
 * vertex needs no list: a bit says that it has an edge.  That is a thirty-second of the
 * slots of a direct table, it is a filter without mistakes as it stands
 * (cpu_filter.c), and asking the filter is all there is to a probe.
 *
 * 1. It is tried for keys of one word, where the bits from the smallest to the largest
 *	  take no more than a half of what the graph would take otherwise (cpu_plan.c).
 * 2. Every row sets the bit key - min.  The first that finds it set, unless first
 *	  matches are all that is wanted, ends the attempt: the bits are given back, and
 *	  the graph is built as ever.
 * 3. A probe tests rows as filters do; its matches' build rows are 0.
 *
 * By several processes (cpu_share.c): where all their bits together take little,
 * 4. each sets the bits of its own keys, in memory of its own (SHARE_SET_BITS);
 * 5. and adds its words to those of the image (SHARE_MERGE_BITS), which finds the
 *	  keys that two processes have;
 * 6. when nobody has found any, the image is complete (SHARE_UNIQUE); or else another
 *	  one follows.
 *
 * The bits belong to the graph; those of step 4 to the table, until step 5.  Locks
 * nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "cpu_probe.h"

/* Where only first matches are wanted, nobody asks whether keys are there twice. */
static bool
may_be_twice(const HgjTable *table)
{
	return (table->spec.flags & HGJ_TABLE_FIRST_MATCH) != 0;
}

/* Set the bits of a block's keys; false where one was set already. */
static bool
set_block(const Block *block, uint64_t base, uint64_t *words)
{
	const uint64_t *keys = block->words[0];
	uint64_t	seen = 0;
	uint32_t	i;

	for (i = 0; i < block->n; i++)
	{
		uint64_t	key = keys[i] - base;
		uint64_t	bit = UINT64_C(1) << (key % 64);

		seen |= words[key / 64] & bit;
		words[key / 64] |= bit;
	}
	return seen == 0;
}

/*
 * Step 2: set the bits of all rows of an open source.  *twice: a key is there twice, and
 * it matters; then the others are not looked at.
 */
HgjStatus
hgj_cpu_set_bits(HgjTable *table, Source *source, const Plan *plan, uint64_t *words,
				 bool *twice, HgjError *err)
{
	HgjStatus	status = hgj_cpu_fill(table, words, 0, hgj_cpu_bits_bytes(plan), err);
	Block		block;

	*twice = false;
	hgj_cpu_source_rewind(source);
	while (status == HGJ_OK && !*twice)
	{
		status = hgj_cpu_source_next(source, &block, err);
		if (status != HGJ_OK || block.n == 0)
			break;
		*twice = !set_block(&block, plan->base, words) && !may_be_twice(table);
	}
	return status;
}

/* What the graph is like, but for its bits. */
void
hgj_cpu_bits_graph(const Plan *plan, Graph *graph)
{
	hgj_cpu_graph_begin(plan, graph);
	graph->layout = LAYOUT_ROW;
	graph->segments = HGJ_SEGMENTS_BITS;
	graph->build = HGJ_BUILD_DIRECT;
	graph->direct = true;
	graph->quotient = false;
	graph->stride = 0;
	graph->shift = 0;
	graph->notes = 0;
	graph->bins = 1;
	graph->vertices = plan->range + 1;
	graph->longest = 1;
	graph->entries_bytes = hgj_cpu_bits_bytes(plan);
}

/*
 * Steps 1 and 2; *made says whether it went well, and only then is *graph another one.
 */
HgjStatus
hgj_cpu_build_bits(HgjTable *table, Source *source, const Plan *plan, Graph *graph,
				   bool *made, HgjError *err)
{
	size_t		bytes = hgj_cpu_bits_bytes(plan);
	bool		twice = false;
	void	   *p;
	HgjStatus	status = hgj_cpu_get(table, bytes, &p, err);

	*made = false;
	if (status != HGJ_OK)
		return status;
	status = hgj_cpu_set_bits(table, source, plan, p, &twice, err);
	if (status != HGJ_OK || twice)
	{
		hgj_cpu_put(table, p, bytes);
		return status;
	}
	hgj_cpu_bits_graph(plan, graph);
	graph->entries = p;
	*made = true;
	return HGJ_OK;
}

/*
 * Step 3: the matches of the next n <= HGJ_UNIQUE_ROWS rows of a batch.  Returns
 * how many; the arrays have room for n.
 */
uint32_t
hgj_cpu_probe_bits(HgjProbe *probe, uint32_t n, uint32_t *probe_rows,
				   uint32_t *build_rows)
{
	uint32_t	found = hgj_cpu_test_block(probe, probe->next, n, probe_rows);

	memset(build_rows, 0, found * sizeof(uint32_t));
	probe->next += n;
	if (!probe->filtering)
	{
		probe->window_rows += n;
		probe->window_hits += found;
	}
	return found;
}
