/*-------------------------------------------------------------------------
 *
 * rebuild.c
 *	  A table that has to be built again, because the device failed or has too
 *	  little memory: step 1 of failover.c.
 *
 * Memory: as in build.c, whose tables these are.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/guc.h"
#include "expr/demand.h"
#include "join/join_state.h"
#include "join/partition.h"

/* Fewer rows are not worth a table on a device, if there are more. */
#define HGJ_LEAST_DEVICE_ROWS	8192

bool
hgj_can_read_inner_again(const HgjJoinState *state)
{
	return !state->building.read || !hgj_calls_volatile(state->js.inner_ps);
}

/*
 * The inner side at its start, nothing built.  The outer batch at hand, and what
 * its values point at, stays.
 */
void
hgj_drop_build(HgjJoinState *state)
{
	hgj_free_table(state);
	hgj_partitions_release(state);
	state->building.pending = false;
	state->passes.has_split = false;
	state->passes.pass = state->passes.unit_pass = 0;
	if (state->building.read)
		hgj_rewind_inner(state, true);
}

/* The unit's build rows at the first of this pass, nothing built. */
void
hgj_drop_unit_table(HgjJoinState *state)
{
	hgj_free_table(state);
	hgj_reread_unit(state);
}

/* The table at hand fills the device: is it to be left? */
bool
hgj_should_leave_device(const HgjJoinState *state)
{
	if (!hgj_in_unit(state) &&
		(state->passes.pass > 1 || !hgj_can_read_inner_again(state)))
		return false;
	return state->js.build->total_rows < HGJ_LEAST_DEVICE_ROWS ||
		(!hgj_in_unit(state) && hgj_engine == HGJ_ENGINE_AUTO);
}

/*
 * Step 1 of failover.c: prepare for building the table of this pass again, on the
 * CPU or in less memory.  False where its rows cannot be read again.
 */
bool
hgj_retry_build(HgjJoinState *state)
{
	if (hgj_in_unit(state))
		hgj_drop_unit_table(state);
	else
	{
		if (state->passes.pass > 1 || !hgj_can_read_inner_again(state))
			return false;
		hgj_drop_build(state);
		state->passes.pass = state->passes.unit_pass = 1;
	}
	if (!hgj_use_less_memory(state))
		hgj_use_cpu(state);
	return true;
}
