/*-------------------------------------------------------------------------
 *
 * tally.c
 *	  From what a join has done to its database's counters (counters.c).
 *
 * 1. While a node runs, whoever does something counts it in the node's state:
 *	  per batch, pass or file, never per row.
 * 2. When it ends, or its query is aborted, all of it is added at once.  What
 *	  was read and built then has cost its time whether the query succeeded or
 *	  not, so both count.
 * 3. Fallbacks are numbered (reasons.h).  A node counts once for a reason, however
 *	  often it was rescanned.
 *
 * A node counts in the process that runs it: those of workers add to the same
 * counters.  Memory: none.  No locks but those of counters.c.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "base/counters.h"
#include "executor/executor.h"
#include "join/tally.h"

/* See tally.h. */
bool
hgj_tally_begin(EState *estate, int eflags)
{
	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) || estate->es_epq_active != NULL)
		return false;
	hgj_counters_attach();
	return true;
}

static void
count_join_fallbacks(const HgjJoinState *state, HgjCounters *counters)
{
	const HgjRunStats *stats = &state->stats;

	if (state->use.fallback != HGJ_FALLBACK_NONE)
		hgj_counters_fell_back(counters, HGJ_FIRST_ENGINE_REASON + state->use.fallback);
	if (stats->shrunk[0])
		hgj_counters_fell_back(counters, HGJ_FIRST_MEMORY_REASON + HGJ_MEMORY_SHRUNK);
	if (stats->spilled_inner > 0 || state->counts.partitions > 0)
		hgj_counters_fell_back(counters, HGJ_FIRST_MEMORY_REASON +
				  (stats->device_full ? HGJ_MEMORY_DEVICE_PARTITIONS :
				   HGJ_MEMORY_PARTITIONS));
	if (state->counts.passes > 0)
		hgj_counters_fell_back(counters, HGJ_FIRST_MEMORY_REASON + HGJ_MEMORY_PASSES);
	if (stats->spilled_bits > 0)
		hgj_counters_fell_back(counters, HGJ_FIRST_MEMORY_REASON + HGJ_MEMORY_BITS);
	if (stats->dictionary_full)
		hgj_counters_fell_back(counters, HGJ_FIRST_MEMORY_REASON + HGJ_MEMORY_DICTIONARY);
	for (int bit = 0; stats->notes != 0 && bit < HGJ_TABLE_REASONS; bit++)
		if (stats->notes & (UINT32_C(1) << bit))
			hgj_counters_fell_back(counters, HGJ_FIRST_TABLE_REASON + bit);
}

/* See tally.h. */
void
hgj_tally_join(HgjJoinState *state)
{
	const HgjRunStats *stats = &state->stats;
	HgjCounters counters = {0};
	uint64	   *values = counters.values;

	if (!state->counts.wanted || state->use.engine == NULL)
		return;
	state->counts.wanted = false;
	values[HGJ_COUNT_JOINS] = 1;
	values[state->use.engine == hgj_cpu_engine() ? HGJ_COUNT_JOINS_CPU :
		   HGJ_COUNT_JOINS_CUDA] = 1;
	values[HGJ_COUNT_JOINS_IN_WORKERS] = IsParallelWorker();
	values[HGJ_COUNT_BUILDS] = state->counts.builds;
	values[HGJ_COUNT_INNER_ROWS] = state->js.inner.rows_read;
	values[HGJ_COUNT_OUTER_ROWS] = state->js.outer.rows_read;
	values[HGJ_COUNT_ROWS_RETURNED] = state->counts.returned +
		hgj_slots_returned(state);
	values[HGJ_COUNT_JOINS_SPILLED] = stats->spilled_inner > 0 ||
		state->counts.passes > 0;
	values[HGJ_COUNT_PARTITIONS] = state->counts.partitions;
	values[HGJ_COUNT_PASSES] = state->counts.passes;
	values[HGJ_COUNT_SPILLED_INNER] = stats->spilled_inner;
	values[HGJ_COUNT_SPILLED_OUTER] = stats->spilled_outer +
		stats->spilled_bits;
	values[HGJ_COUNT_OUTER_FILTERED] = stats->outer_filtered;
	values[HGJ_COUNT_TO_DEVICE] = stats->work.to_device;
	values[HGJ_COUNT_FROM_DEVICE] = stats->work.from_device;
	values[HGJ_COUNT_TRANSFER_NS] = stats->work.transfer_ns;
	values[HGJ_COUNT_KERNEL_NS] = stats->work.kernel_ns;
	values[HGJ_COUNT_PEAK_MEMORY] = stats->peak_bytes;
	values[HGJ_COUNT_PEAK_DEVICE_MEMORY] = stats->device_peak;
	hgj_row_prober->count(state, &counters);
	count_join_fallbacks(state, &counters);
	hgj_counters_add(&counters);
}
