/*-------------------------------------------------------------------------
 *
 * node.c
 *	  The HashGraphJoin node: callbacks of a CustomScan, and rows as slots.
 *
 * 1. Where the phase of the join (phases.c) returns rows, return the next one:
 *	  of matches, those that a block of them has ready, or confirmed one by one;
 *	  of outer and inner rows without a match.
 * 2. Else, or where it has no more, go on to the next phase.
 *
 * output.c does the same a batch at a time, for a join or an aggregation of ours.
 *
 * Memory: the state and its arrays live in the query's context.  The build side is
 * an object of its own, which EndCustomScan lets go, with what else is malloc'd, or,
 * when the query aborts, the reset callback that BeginCustomScan registers.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "join/join_state.h"
#include "join/parallel.h"
#include "join/partition.h"
#include "join/tally.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* How many matches ahead a record of the row store is prefetched. */
#define HGJ_PREFETCH_PAIRS	8

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
	.EstimateDSMCustomScan = hgj_reports_estimate,
	.InitializeDSMCustomScan = hgj_reports_share,
	.ReInitializeDSMCustomScan = hgj_reports_share_again,
	.InitializeWorkerCustomScan = hgj_reports_attach,
	.ShutdownCustomScan = hgj_reports_shutdown,
	.ExplainCustomScan = hgj_explain
};

static Node *
create_state(CustomScan *cscan)
{
	HgjJoinState *state = (HgjJoinState *) newNode(sizeof(HgjJoinState),
												   T_CustomScanState);

	state->css.methods = &exec_methods;
	state->reports.methods = &hgj_join_reports;
	return (Node *) state;
}

static void
release_on_reset(void *arg)
{
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
	state->build = hgj_build_side_create();
	state->counts.wanted = hgj_tally_begin(estate, eflags);
	state->passes.rewinds = (eflags & EXEC_FLAG_REWIND) != 0;
	hgj_setup(state, estate, eflags);
}

static void
end_join(CustomScanState *node)
{
	HgjJoinState *state = (HgjJoinState *) node;

	hgj_row_prober->stop(state);
	hgj_source_drop_rows(&state->outer);
	hgj_match_bits_reset(state);
	hgj_partitions_release(state);
	if (state->outer.methods->end)
		state->outer.methods->end(&state->outer);
	if (state->inner.methods->end)
		state->inner.methods->end(&state->inner);
	hgj_leave_build(state);
	hgj_log_notes(state);
	hgj_tally_join(state);
	ExecEndNode(state->outer_ps);
	ExecEndNode(state->inner_ps);
}

/* The next row to return of matches that need no more confirmation, or NULL. */
static TupleTableSlot *
next_of_block(HgjJoinState *state)
{
	while (state->slots.block.next < state->slots.block.n || hgj_block_fill(state))
	{
		TupleTableSlot *slot;

		hgj_block_row(state);
		slot = hgj_project(state);
		if (slot)
			return slot;
		CHECK_FOR_INTERRUPTS();
	}
	return NULL;
}

/* The next row to return of the portion of matches at hand, or NULL. */
static TupleTableSlot *
next_match(HgjJoinState *state)
{
	HgjMatches *pairs = &state->found.pairs;

	if (!hgj_confirms(state))
		return state->semantics.emit_matches ? next_of_block(state) : NULL;

	while (state->found.next_pair < pairs->n)
	{
		uint32		p = state->found.next_pair++;
		uint32		outer_row = pairs->probe_rows[p];
		uint32		inner_row = pairs->build_rows[p];
		TupleTableSlot *slot;

		if (state->build->rows.stride > 0 && p + HGJ_PREFETCH_PAIRS < pairs->n)
			__builtin_prefetch(hgj_row_store_record(&state->build->rows,
													pairs->build_rows[p + HGJ_PREFETCH_PAIRS]),
							   0, 2);
		CHECK_FOR_INTERRUPTS();
		if (!hgj_confirm_match(state, outer_row, inner_row))
			continue;
		if (!state->semantics.emit_matches)
		{
			ResetExprContext(state->css.ss.ps.ps_ExprContext);
			continue;
		}
		if (!state->rules.match_qual)
			hgj_fill_slot(state, outer_row, inner_row);
		slot = hgj_project(state);
		if (slot)
			return slot;
	}
	return NULL;
}

/* The next outer row of the batch that has no match at all, or NULL. */
static TupleTableSlot *
next_unmatched_outer(HgjJoinState *state)
{
	if (!state->semantics.fill_outer || !state->passes.last_pass)
		return NULL;
	while (state->found.next_outer < hgj_batch_nlive(state->probing.outer_batch))
	{
		uint32		row = hgj_batch_live_row(state->probing.outer_batch,
											 state->found.next_outer++);
		TupleTableSlot *slot;

		if (state->found.matched[row])
			continue;
		slot = hgj_emit(state, row, HGJ_NO_ROW);
		if (slot)
			return slot;
	}
	return NULL;
}

/* The next inner row of the pass that has no match, or NULL. */
static TupleTableSlot *
next_unmatched_inner(HgjJoinState *state)
{
	if (!state->semantics.fill_inner)
		return NULL;
	while (state->found.next_pair < state->found.pairs.n || hgj_next_unmatched(state))
	{
		uint32		row = state->found.pairs.build_rows[state->found.next_pair++];
		TupleTableSlot *slot;

		CHECK_FOR_INTERRUPTS();
		slot = hgj_emit(state, HGJ_NO_ROW, row);
		if (slot)
			return slot;
	}
	return NULL;
}

static TupleTableSlot *
exec_join(CustomScanState *node)
{
	HgjJoinState *state = (HgjJoinState *) node;
	TupleTableSlot *slot = NULL;

	if (state->slots.direct && state->slots.block.next < state->slots.block.n)
	{
		hgj_block_row(state);
		state->emitted++;
		return state->slots.slot;
	}
	ResetExprContext(node->ss.ps.ps_ExprContext);
	while (state->phase != HGJ_PHASE_DONE)
	{
		CHECK_FOR_INTERRUPTS();
		if (state->phase == HGJ_PHASE_MATCHES)
			slot = next_match(state);
		else if (state->phase == HGJ_PHASE_UNMATCHED_OUTER)
			slot = next_unmatched_outer(state);
		else if (state->phase == HGJ_PHASE_UNMATCHED_INNER)
			slot = next_unmatched_inner(state);
		if (slot)
		{
			state->emitted++;
			return slot;
		}
		hgj_advance(state);
	}
	return NULL;
}
