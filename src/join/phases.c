/*-------------------------------------------------------------------------
 *
 * phases.c
 *	  The phases of a join: what comes next, whoever takes the rows (portion.c).
 *
 *	START		an outer side found empty, or an empty build side, may end the
 *				join here; build the first pass (build.c)
 *	FETCH		the next outer batch (probe.c); at the end of the outer side, or
 *				when no inner row is left to be found (all_found.c), go to
 *				UNMATCHED_INNER
 *	PROBE		the next portion of matches; when there is none left, put
 *				outer rows that are to wait into partitions (partition.c) and go
 *				to UNMATCHED_OUTER
 *	MATCHES		recheck and return them, then PROBE
 *	UNMATCHED_OUTER	left, full and anti joins: outer rows of the batch that
 *				have not matched in any pass, and do not wait; then FETCH
 *	UNMATCHED_INNER	right and full joins: inner rows of this pass that have not
 *				matched; then NEXT_PASS
 *	NEXT_PASS	if the build side did not fit into memory: build the next chunk
 *				of it and go through the outer side again, or build the next
 *				unit's (partition.c) and go through its outer rows; else DONE
 *	DONE		until a rescan
 *
 * Where the engine's device fails in any of these, failover.c takes over.
 *
 * A rescan keeps the table if nothing that went into it has changed; where it
 * does not hold the whole build side, partition_keep.c knows what else there is,
 * or how to make the table again.  Inside EvalPlanQual the children return the test
 * tuples, and nothing here needs to know.
 *
 * Memory is the node's (node.c).  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "join/join_state.h"
#include "join/partition.h"
#include "join/shared_build.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Can the table be probed again, if it is the same build side? */
static bool
table_is_reusable(const HgjJoinState *state)
{
	return state->js.build->table != NULL && state->passes.pass == 1 &&
		state->passes.last_pass &&
		(!state->passes.has_split || hgj_split_is_there(state));
}

/* Unset the match bits of a table that is probed again. */
static bool
clear_marks(HgjJoinState *state)
{
	HgjError	err = {0};

	if (!state->js.semantics.mark_inner)
		return true;
	hgj_engine_call(state, &err,
					state->use.engine->clear_marks(state->js.build->table, &err));
	return !hgj_device_failed(state);
}

/* ReScanCustomScan callback. */
void
hgj_rescan(CustomScanState *node)
{
	HgjJoinState *state = (HgjJoinState *) node;
	bool		same;

	hgj_row_prober->stop(state);
	hgj_share_end_run(state);	/* the Gather's next processes make another */
	hgj_block_drop(state);
	state->slots.rows.n = state->slots.next_row = 0;
	ExecClearTuple(state->slots.slot);
	state->output_started = false;
	if (node->ss.ps.chgParam != NULL)
	{
		UpdateChangedParamSet(state->js.outer_ps, node->ss.ps.chgParam);
		UpdateChangedParamSet(state->js.inner_ps, node->ss.ps.chgParam);
	}

	same = state->js.inner_ps->chgParam == NULL &&
		!(state->inner_key_params && node->ss.ps.chgParam != NULL);
	state->passes.rescanned |= same;
	if (same && table_is_reusable(state) && clear_marks(state))
	{
		if (state->passes.has_split)
			hgj_split_again(state);
	}
	else if (same && hgj_restore(state))
		hgj_free_build(state);
	else
	{
		hgj_partitions_release(state);
		hgj_free_build(state);
		if (hgj_device_failed(state))
			hgj_use_cpu(state);
		hgj_rewind_inner(state, false);
	}
	hgj_rewind_outer(state, false);
	state->phase = HGJ_PHASE_START;
}

/*
 * Is it cheap to see whether the outer side is empty, before building?  The
 * rule is nodeHashjoin.c's: never when unmatched inner rows are wanted, always
 * when unmatched outer rows are, else when an outer row comes cheaper than the
 * inner side.
 */
bool
hgj_worth_peeking(const HgjJoinState *state)
{
	/* groups are made for the first of them, and then nobody has said which are wanted */
	if (state->js.semantics.fill_inner || state->js.build->table != NULL ||
		state->share.build || state->probing.filters_groups)
		return false;
	return state->js.semantics.fill_outer ||
		(!state->probing.outer_seen &&
		 state->js.outer_ps->plan->startup_cost < state->js.inner_ps->plan->total_cost);
}

/* Who takes our slots: do they take all of them? */
static void
find_demand(HgjJoinState *state)
{
	PlanState  *ps = &state->js.css.ss.ps;

	if (!state->goal.demand_known)
		state->goal.demand = hgj_demand_of(ps);
	state->goal.demand_known = true;
	state->goal.careful = !hgj_all_rows_wanted(state->goal.demand, ps->state);
}

/* The outer side has no more rows, or need not be read. */
static HgjPhase
after_outer(HgjJoinState *state)
{
	state->found.next_pair = state->found.pairs.n = state->found.npairs_left = 0;
	if (state->js.semantics.fill_inner && hgj_share_last_one(state))
	{
		hgj_join_progress(state, HGJ_PROGRESS_UNMATCHED);
		return HGJ_PHASE_UNMATCHED_INNER;
	}
	return HGJ_PHASE_NEXT_PASS;
}

/* The table is built: which phase is next? */
static HgjPhase
after_build(HgjJoinState *state)
{
	if (state->passes.last_pass && !state->passes.splitting &&
		state->js.build->graph_rows == 0 &&
		!state->js.semantics.fill_outer)
		return after_outer(state);
	return HGJ_PHASE_FETCH;
}

/* Before the first outer row is read, and anything is built. */
void
hgj_prepare(HgjJoinState *state)
{
	HgjMatches *pairs = &state->found.pairs;

	if (state->use.engine == NULL)
		hgj_choose_engine(state);
	if (pairs->probe_rows == NULL)
	{
		pairs->probe_rows = MemoryContextAlloc(state->js.context,
											   HGJ_PAIRS * sizeof(uint32));
		pairs->build_rows = MemoryContextAlloc(state->js.context,
											   HGJ_PAIRS * sizeof(uint32));
		pairs->location = HGJ_ON_HOST;
		if (pairs->capacity == 0)
			pairs->capacity = HGJ_PAIRS;
	}

	if (state->rules.residual)
		hgj_program_start(state->rules.residual, state->js.css.ss.ps.ps_ExprContext);
	if (state->output == NULL)
		find_demand(state);
	state->found.npairs_left = 0;
	state->found.residual_stopped = false;
	state->probing.batch_rows = 0;
	state->counts.returned += hgj_slots_returned(state);
	state->emitted = state->emitted_before = 0;
	hgj_restart_outer(state);
	if (hgj_on_device(state))
		hgj_note_outer_counts(state);
}

/* Phase START; returns the next one. */
static HgjPhase
start_join(HgjJoinState *state)
{
	bool		empty;

	hgj_join_progress(state, HGJ_PROGRESS_STARTING);
	hgj_prepare(state);
	if (hgj_row_prober->start(state, &empty))
		return empty ? HGJ_PHASE_DONE : HGJ_PHASE_FETCH;
	if (hgj_device_failed(state))
		return HGJ_PHASE_START;
	if (hgj_worth_peeking(state) && !hgj_peek_outer(state))
		return HGJ_PHASE_DONE;
	if (state->js.build->table == NULL)
	{
		hgj_check_restoring(state);
		if ((state->share.build == NULL || !hgj_build_shared(state)) &&
			!state->share.idle)
			hgj_build_pass(state);
		if (state->share.idle)
			return HGJ_PHASE_DONE;
	}
	if (hgj_device_failed(state))
		return HGJ_PHASE_START;

	if (!state->passes.last_pass)
		hgj_keep_outer(state);
	return after_build(state);
}

/* Phase NEXT_PASS; returns the next one. */
static HgjPhase
start_next_pass(HgjJoinState *state)
{
	if (state->passes.last_pass)
	{
		if (state->passes.splitting)
			hgj_split_end(state);
		if (!hgj_next_unit(state))
			return HGJ_PHASE_DONE;
	}
	else if (!hgj_rewind_unit(state))
		hgj_source_replay_rows(&state->js.outer);
	hgj_release_table(state);
	hgj_build_pass(state);
	if (hgj_device_failed(state))
		return HGJ_PHASE_NEXT_PASS;
	hgj_restart_outer(state);
	return after_build(state);
}

/*
 * Go on from a phase: take its step, or, where it returns rows, leave it
 * because it has no more.
 */
void
hgj_advance(HgjJoinState *state)
{
	HgjPhase	phase = state->phase;

	switch (phase)
	{
		case HGJ_PHASE_START:
			state->found.next_pair = state->found.pairs.n = 0;
			state->phase = start_join(state);
			break;

		case HGJ_PHASE_FETCH:
			if (!hgj_all_found(state) && hgj_fetch_outer(state))
				state->phase = HGJ_PHASE_PROBE;
			else
				state->phase = after_outer(state);
			break;

		case HGJ_PHASE_PROBE:
			if (hgj_all_found(state))
				state->phase = after_outer(state);
			else if (state->found.pairs.done && state->found.npairs_left == 0)
			{
				if (state->passes.splitting)
					hgj_split_outer(state);
				state->phase = HGJ_PHASE_UNMATCHED_OUTER;
			}
			else
			{
				hgj_next_matches(state);
				state->phase = HGJ_PHASE_MATCHES;
			}
			break;

		case HGJ_PHASE_NEXT_PASS:
			state->phase = start_next_pass(state);
			break;

		case HGJ_PHASE_MATCHES:
			state->phase = HGJ_PHASE_PROBE;
			break;

		case HGJ_PHASE_UNMATCHED_OUTER:
			hgj_finish_batch(state);
			state->phase = HGJ_PHASE_FETCH;
			break;

		case HGJ_PHASE_UNMATCHED_INNER:
			state->phase = HGJ_PHASE_NEXT_PASS;
			break;

		case HGJ_PHASE_DONE:
			break;
	}
	if (hgj_device_failed(state))
	{
		state->found.next_pair = state->found.pairs.n = 0;
		state->phase = hgj_fail_over(state, phase);
	}
	if (state->phase == HGJ_PHASE_DONE)
		hgj_progress_end(&state->progress);
}
