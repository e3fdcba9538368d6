/*-------------------------------------------------------------------------
 *
 * join_progress.c
 *	  What a join shows of itself while it runs (base/progress.c).
 *
 * 1. A join that is executed, and not merely explained or part of a recheck, shows
 *	  itself from the moment it is asked for its first row to that when it has
 *	  returned the last one; again when it is rescanned.
 * 2. Whoever fills a batch says which phase that is for.  Blocks of the outer side's
 *	  table are shown by the source that reads them (source_pages.c), because a
 *	  batch may take a whole table where few rows are wanted.
 * 3. Rows of the build side are those that the child has returned, also those that
 *	  then went to partitions, of which what they were written to is shown.
 *
 * Memory: none.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "join/join_state.h"
#include "join/partition.h"

/* Step 3: those that wait, and those that are done. */
static void
note_partitions(const HgjJoinState *state, HgjProgressRow *now)
{
	const HgjPartitions *parts = state->passes.partitions;

	now->spilled = state->stats.spilled_inner + state->stats.spilled_outer +
		state->stats.spilled_bits + state->share.written;
	now->partitions_done = now->partitions_total = 0;
	if (parts == NULL)
		return;
	if (parts->writer.file)
		now->spilled += parts->writer.file->end;
	now->partitions_total = state->passes.units;
	now->partitions_done = state->passes.units - (parts->unit != NULL);
	for (const HgjUnit *unit = parts->pending; unit; unit = unit->next)
		now->partitions_total++;
}

/* Step 1: an execution begins.  The table of the one before may serve it, too. */
static void
begin(HgjJoinState *state)
{
	state->progress.now.blocks_done = state->progress.now.blocks_total = 0;
	if (state->js.build->table == NULL)
		state->shown.inner_before = state->js.inner.rows_read;
	state->shown.outer_before = state->js.outer.rows_read;
	state->js.outer.progress = &state->progress;
}

/* The join is in this phase, and has got so far. */
void
hgj_join_progress(HgjJoinState *state, HgjProgressPhase phase)
{
	HgjProgressRow *now = &state->progress.now;
	HgjMemory	memory;

	if (!state->counts.wanted ||
		!hgj_progress_begin(&state->progress, HGJ_PROGRESS_JOIN,
							state->js.css.ss.ps.plan->plan_node_id))
		return;
	if (phase == HGJ_PROGRESS_STARTING)
		begin(state);
	now->phase = phase;
	now->build_rows = state->js.inner.rows_read - state->shown.inner_before;
	now->build_expected = (uint64) Max(state->js.inner_ps->plan->plan_rows, 0);
	now->outer_rows = state->js.outer.rows_read - state->shown.outer_before;
	now->memory = hgj_memory_now(state, &memory);
	note_partitions(state, now);
	if (state->use.engine)
		strlcpy(now->device, state->use.engine == hgj_cpu_engine() ? "cpu" :
				state->stats.device, sizeof(now->device));
	hgj_progress_show(&state->progress);
}

/* The join has returned the last row of this execution, or a pipeline has in its place. */
void
hgj_join_progress_end(HgjJoinState *state)
{
	hgj_progress_end(&state->progress);
}
