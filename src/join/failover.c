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
 *	  read again.  Nor is it while that of a unit of partitions is (partition.c):
 *	  its rows are still on file.  Where it was memory that the device had too
 *	  little of, although it had said otherwise, the build is tried once more with
 *	  half of it: in smaller partitions.
 * 2. Later, while outer batches are probed: if the table holds the whole build
 *	  side (of the unit), it is built again on the CPU, and the batch at hand is
 *	  probed again.  Batches before it are finished, whatever they have returned.
 *	  But the batch at hand must not have returned anything; nor may batches before
 *	  it have set match bits, which are lost.
 * 3. Otherwise, if the join has returned nothing at all, both sides are read
 *	  again from their start.
 * 4. Otherwise there is an error.
 *
 * A build side that is too large for the device is no failure: what fits is joined
 * on it, and the rest goes to partitions (partition.c).  But it is left for the CPU
 * where too few rows fit to be worth it, and where the device was our choice
 * (engine = auto) and the CPU needs no partitions, as far as anybody knows.
 *
 * A side is read again by ExecReScan(), and EXPLAIN counts it once (counts.c).
 * That is out of the question where a volatile function would be called again,
 * and for scans that are shared with other processes.
 *
 * Memory: as in build.c, whose tables these are.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "join/join_state.h"
#include "join/partition.h"

/* Step 3; the other side of a parallel join is shared with other processes. */
static bool
can_start_again(const HgjJoinState *state)
{
	return state->emitted == 0 && !state->js.css.ss.ps.plan->parallel_aware &&
		hgj_can_read_inner_again(state) &&
		!hgj_calls_volatile(state->js.outer_ps);
}

/* Step 2. */
static bool
can_go_on(const HgjJoinState *state, HgjPhase phase)
{
	if (phase != HGJ_PHASE_FETCH && phase != HGJ_PHASE_PROBE &&
		phase != HGJ_PHASE_MATCHES)
		return false;
	return state->passes.last_pass && !state->passes.splitting &&
		!hgj_row_prober->left(state) &&
		state->emitted == state->emitted_before &&
		(!state->js.semantics.mark_inner || state->probing.outer_batch->first_row == 0) &&
		(hgj_in_unit(state) ||
		 (state->passes.unit_pass == 1 && hgj_can_read_inner_again(state)));
}

/* Prepare for building the table of this pass on the CPU. */
static void
leave_device(HgjJoinState *state)
{
	if (hgj_in_unit(state))
	{
		hgj_drop_unit_table(state);
		/* this pass has not been */
		state->stats.build_rows -= state->js.build->total_rows;
		state->js.build->total_rows = 0;
		state->passes.pass--;
		state->passes.unit_pass--;
	}
	else
		hgj_drop_build(state);
	hgj_use_cpu(state);
}

/*
 * The device has failed in a step of that phase: what the next phase is, on the
 * CPU, or an error.
 */
HgjPhase
hgj_fail_over(HgjJoinState *state, HgjPhase phase)
{
	HgjError	error = state->use.device_error;

	if (can_go_on(state, phase))
	{
		leave_device(state);
		hgj_build_pass(state);
		if (state->passes.last_pass && !state->passes.splitting)
		{
			hgj_begin_batch(state);
			return HGJ_PHASE_PROBE;
		}
		/* on the CPU it does not fit, and outer rows would have had to wait */
	}
	if (!can_start_again(state))
	{
		state->use.device_error = error;
		hgj_engine_failed(state, &state->use.device_error);
	}
	hgj_drop_build(state);
	if (hgj_on_device(state))
		hgj_use_cpu(state);
	hgj_rewind_outer(state, true);
	return HGJ_PHASE_START;
}
