/*-------------------------------------------------------------------------
 *
 * agg_tally.c
 *	  From what a HashGraphAgg has done to its database's counters, as tally.c
 *	  does for joins.
 *
 * Memory: none.  No locks but those of counters.c.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_state.h"
#include "base/counters.h"
#include "pipeline/device.h"

/* See agg_state.h. */
void
hgj_tally_agg(HgjAggState *state)
{
	const HgjPipelineState *d = state->device;
	HgjCounters counters = {0};
	uint64	   *values = counters.values;

	if (!state->counts.wanted || !state->counts.started)
		return;
	state->counts.wanted = false;
	values[HGJ_COUNT_AGGREGATES] = 1;
	values[HGJ_COUNT_GROUPS] = state->counts.groups;
	values[HGJ_COUNT_AGGREGATES_SPILLED] = state->spill.total_rows > 0;
	values[HGJ_COUNT_SPILLED_AGGREGATES] = state->spill.total_bytes;
	values[HGJ_COUNT_PEAK_MEMORY] = state->peak_bytes;
	if (state->spill.total_rows > 0)
		hgj_counters_fell_back(&counters, HGJ_FIRST_MEMORY_REASON + HGJ_MEMORY_GROUPS);
	if (state->rounds.total > 0)
		hgj_counters_fell_back(&counters, HGJ_FIRST_MEMORY_REASON + HGJ_MEMORY_ROUNDS);
	if (d != NULL)
	{
		values[HGJ_COUNT_AGGREGATES_ON_DEVICE] = d->ran;
		hgj_device_count(d, &counters);
	}
	hgj_counters_add(&counters);
}
