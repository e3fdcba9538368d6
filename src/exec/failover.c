/*-------------------------------------------------------------------------
 *
 * failover.c
 *	  A join goes on on the CPU when its device has failed, or has too little
 *	  memory, in the middle of it.
 *
 * What was on the device is gone, so it has to be made again, and whatever way
 * is taken, no row may be returned twice or not at all:
 *
 * 1. While the first table is being built, nothing is lost: the inner side is
 *	  read again.  Nor is it while that of a unit of partitions is (partition.c),
 *	  if it is the first of the unit: its rows are still on file.
 * 2. Later, while outer batches are probed: if the table holds the whole build
 *	  side (of the unit), it is built again on the CPU, and the batch at hand is
 *	  probed again.  Batches before it are finished, whatever they have returned.
 *	  But the batch at hand must not have returned anything; nor may batches before
 *	  it have set match bits, which are lost.
 * 3. Otherwise, if the join has returned nothing at all, both sides are read
 *	  again from their start.
 * 4. Otherwise there is an error.
 *
 * A side is read again by ExecReScan().  That is out of the question where a
 * volatile function would be called again, and for scans that are shared with
 * other processes.
 *
 * Memory: as in build.c, whose tables these are.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "exec/join_state.h"
#include "exec/partition.h"

static bool
can_read_inner_again(const HgjJoinState *state)
{
	return !state->inner_read || !hgj_calls_volatile(state->inner_ps);
}

/* Step 3; the other side of a parallel join is shared with other processes. */
static bool
can_start_again(const HgjJoinState *state)
{
	return state->emitted == 0 && !state->css.ss.ps.plan->parallel_aware &&
		can_read_inner_again(state) &&
		!hgj_calls_volatile(state->outer_ps);
}

/* Step 2. */
static bool
can_go_on(const HgjJoinState *state, HgjPhase phase)
{
	if (phase != HGJ_PHASE_FETCH && phase != HGJ_PHASE_PROBE &&
		phase != HGJ_PHASE_MATCHES)
		return false;
	return state->unit_pass == 1 && state->last_pass && !state->splitting &&
		state->emitted == state->emitted_before &&
		(!state->semantics.mark_inner || state->outer_batch->first_row == 0) &&
		(hgj_in_unit(state) || can_read_inner_again(state));
}

/*
 * The inner side at its start, nothing built.  The outer batch at hand, and what
 * its values point at, stays.
 */
static void
drop_build(HgjJoinState *state)
{
	hgj_release_table(state);
	hgj_row_store_free(&state->rows);
	hgj_partitions_release(state);
	state->inner_pending = false;
	state->has_split = false;
	state->pass = state->unit_pass = 0;
	if (state->inner_read)
		hgj_rewind_inner(state);
}

static void
leave_device(HgjJoinState *state)
{
	drop_build(state);
	hgj_use_cpu(state);
}

/* The same for the table of a unit, whose outer rows stay where they are. */
static void
leave_device_in_unit(HgjJoinState *state)
{
	hgj_release_table(state);
	hgj_row_store_free(&state->rows);
	state->inner_pending = false;
	hgj_rewind_unit_inner(state);
	hgj_use_cpu(state);
}

/*
 * Step 1: prepare for building the first pass, or a unit's first, on the CPU.
 * False where that cannot be, because it is not the first or cannot be read again.
 */
bool
hgj_retry_build(HgjJoinState *state)
{
	if (hgj_in_unit(state))
	{
		if (state->unit_pass > 1 || state->splitting)
			return false;
		leave_device_in_unit(state);
		return true;
	}
	if (state->pass > 1 || !can_read_inner_again(state))
		return false;
	leave_device(state);
	state->pass = state->unit_pass = 1;
	return true;
}

/*
 * The device has failed in a step of that phase: what the next phase is, on the
 * CPU, or an error.
 */
HgjPhase
hgj_fail_over(HgjJoinState *state, HgjPhase phase)
{
	HgjError	error = state->device_error;

	if (can_go_on(state, phase))
	{
		if (hgj_in_unit(state))
		{
			leave_device_in_unit(state);
			state->pass--;
			state->unit_pass--;
		}
		else
			leave_device(state);
		hgj_build_pass(state);
		if (state->last_pass && !state->splitting)
		{
			hgj_begin_batch(state);
			return HGJ_PHASE_PROBE;
		}
		/* on the CPU it does not fit, and outer rows would have had to wait */
	}
	if (!can_start_again(state))
	{
		state->device_error = error;
		hgj_engine_failed(state, &state->device_error);
	}
	if (state->on_device)
		leave_device(state);
	else
		drop_build(state);
	hgj_rewind_outer(state);
	return HGJ_PHASE_START;
}
