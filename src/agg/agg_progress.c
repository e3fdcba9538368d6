/*-------------------------------------------------------------------------
 *
 * agg_progress.c
 *	  What a HashGraphAgg shows of itself while it runs (base/progress.c), as
 *	  join_progress.c does for joins.
 *
 * 1. An aggregation shows itself from the moment it is asked for its first group to
 *	  that when it has returned the last one.
 * 2. Rows are its input's, before any of them is put aside.  Blocks are those of the
 *	  tables that it reads by itself (agg_feed.c), or for a device; where that gives
 *	  up, the host begins anew, and so does what is shown.
 * 3. Groups are those of the tables so far, in this process.
 *
 * Memory: none.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_state.h"
#include "join/join.h"
#include "pipeline/device.h"

static void
note_partitions(const HgjAggSpill *spill, HgjProgressRow *now)
{
	uint64		waiting = 0;

	for (const HgjAggPartition *p = spill->pending; p; p = p->next)
		waiting++;
	now->partitions_total = spill->total_partitions;
	now->partitions_done = spill->total_partitions - waiting - (spill->reading != NULL);
	now->spilled = spill->total_bytes +
		(spill->writer.file ? spill->writer.file->end : 0);
}

static const char *
device_name(const HgjAggState *state)
{
	const HgjPipelineState *d = state->device;

	if (d == NULL || (d->pipeline == NULL && !d->ran))
		return "cpu";
	return d->njoins > 0 ? hgj_join_device_name(d->joins[0]) : d->device_name;
}

/* The aggregation is in this phase, and has taken so many rows more. */
void
hgj_agg_progress(HgjAggState *state, HgjProgressPhase phase, uint64 rows)
{
	HgjProgressRow *now = &state->progress.now;

	if (!state->counts.wanted ||
		!hgj_progress_begin(&state->progress, HGJ_PROGRESS_AGGREGATION,
							state->css.ss.ps.plan->plan_node_id))
		return;
	now->phase = phase;
	now->outer_rows += rows;
	now->groups = state->ngroups;
	if (phase != HGJ_PROGRESS_RETURNING)
		now->groups += state->groups.ngroups;
	now->memory = hgj_groups_bytes(&state->groups);
	note_partitions(&state->spill, now);
	strlcpy(now->device, device_name(state), sizeof(now->device));
	hgj_progress_show(&state->progress);
}
