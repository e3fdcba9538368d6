/*-------------------------------------------------------------------------
 *
 * node.c
 *	  The HashGraphJoin node: callbacks of a CustomScan, and rows as slots.
 *
 * 1. Take a portion of the join's rows (portion.c).
 * 2. Return them one by one, if they pass the filter: from a block of them that lies
 *	  ready (emit.c), or one that stands in the scan slot already, because it had to
 *	  be confirmed there.
 *
 * output.c makes batches of the portions, for a join or an aggregation of ours.
 *
 * Memory: the state and its arrays live in the query's context.  The build side is
 * an object of its own, which EndCustomScan lets go, with what else is malloc'd, or,
 * when the query aborts, the reset callback that BeginCustomScan registers.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/build_id.h"
#include "executor/executor.h"
#include "join/join_state.h"
#include "join/parallel.h"
#include "join/partition.h"
#include "join/shared_build.h"
#include "join/tally.h"
#include "miscadmin.h"
#include "utils/memutils.h"

static Node *create_state(CustomScan *cscan);
static void begin_join(CustomScanState *node, EState *estate, int eflags);
static TupleTableSlot *exec_join(CustomScanState *node);
static void end_join(CustomScanState *node);

const CustomScanMethods hgj_scan_methods = {
	.CustomName = HGJ_NODE_NAME,
	.CreateCustomScanState = create_state
};

static const CustomExecMethods exec_methods = {
	.CustomName = HGJ_NODE_NAME,
	.BeginCustomScan = begin_join,
	.ExecCustomScan = exec_join,
	.EndCustomScan = end_join,
	.ReScanCustomScan = hgj_rescan,
	.EstimateDSMCustomScan = hgj_share_estimate,
	.InitializeDSMCustomScan = hgj_share_init,
	.ReInitializeDSMCustomScan = hgj_share_init_again,
	.InitializeWorkerCustomScan = hgj_share_attach,
	.ShutdownCustomScan = hgj_share_shutdown,
	.ExplainCustomScan = hgj_explain
};

static Node *
create_state(CustomScan *cscan)
{
	HgjJoinState *state = (HgjJoinState *) newNode(sizeof(HgjJoinState),
												   T_CustomScanState);

	hgj_check_plan_build(cscan);
	state->js.css.methods = &exec_methods;
	state->js.reports.methods = &hgj_join_reports;
	return (Node *) state;
}

static void
release_on_reset(void *arg)
{
	hgj_progress_end(&((HgjJoinState *) arg)->progress);
	hgj_leave_build(arg);
	hgj_tally_join(arg);
}

static void
begin_join(CustomScanState *node, EState *estate, int eflags)
{
	HgjJoinState *state = (HgjJoinState *) node;
	MemoryContextCallback *callback = palloc0(sizeof(MemoryContextCallback));

	callback->func = release_on_reset;
	callback->arg = state;
	MemoryContextRegisterResetCallback(estate->es_query_cxt, callback);
	state->js.build = hgj_build_side_create();
	state->counts.wanted = hgj_tally_begin(estate, eflags);
	state->passes.rewinds = (eflags & EXEC_FLAG_REWIND) != 0;
	hgj_setup(state, estate, eflags);
}

static void
end_join(CustomScanState *node)
{
	HgjJoinState *state = (HgjJoinState *) node;

	hgj_progress_end(&state->progress);
	hgj_row_prober->stop(state);
	hgj_share_leave(state);
	hgj_source_drop_rows(&state->js.outer);
	hgj_match_bits_reset(state);
	hgj_partitions_release(state);
	if (state->js.outer.methods->end)
		state->js.outer.methods->end(&state->js.outer);
	if (state->js.inner.methods->end)
		state->js.inner.methods->end(&state->js.inner);
	hgj_leave_build(state);
	hgj_log_notes(state);
	hgj_tally_join(state);
	ExecEndNode(state->js.outer_ps);
	ExecEndNode(state->js.inner_ps);
}

/* The next row of the block at hand goes into the slot, without a projection. */
static inline void
block_row(HgjJoinState *state)
{
	HgjRowBlock *block = &state->slots.block;
	TupleTableSlot *slot = state->slots.slot;
	Size		at = (Size) block->next * block->natts;

	if (block->next < block->nahead)
		__builtin_prefetch(hgj_row_store_record(&state->js.build->rows,
												block->ahead[block->next]),
						   0, 2);
	block->next++;
	if (TTS_SHOULDFREE(slot))
		ExecClearTuple(slot);
	slot->tts_values = block->values + at;
	slot->tts_isnull = block->isnull + at;
	slot->tts_nvalid = block->natts;
	slot->tts_flags &= ~TTS_FLAG_EMPTY;
}

/* The next row into the slot; false: there are no more. */
static bool
next_row(HgjJoinState *state)
{
	HgjSlotOutput *slots = &state->slots;

	if (slots->block.next == slots->block.n)
	{
		hgj_block_drop(state);
		if (slots->next_row == slots->rows.n)
		{
			slots->next_row = 0;
			if (!hgj_next_portion(state, &slots->rows))
			{
				/* who asks again gets no more */
				memset(&slots->rows, 0, sizeof(slots->rows));
				return false;
			}
		}
		if (slots->rows.in_slot)
		{
			slots->next_row = 1;
			return true;
		}
		hgj_block_fill(state);
	}
	block_row(state);
	return true;
}

static TupleTableSlot *
exec_join(CustomScanState *node)
{
	HgjJoinState *state = (HgjJoinState *) node;
	HgjSlotOutput *slots = &state->slots;
	TupleTableSlot *slot;

	if (slots->direct && slots->block.next < slots->block.n)
	{
		block_row(state);
		state->emitted++;
		return slots->slot;
	}
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		ResetExprContext(node->ss.ps.ps_ExprContext);
		if (!next_row(state))
			return NULL;
		slot = hgj_project(state);
		if (slot == NULL)
			continue;
		state->emitted++;
		return slot;
	}
}
