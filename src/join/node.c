/*-------------------------------------------------------------------------
 *
 * node.c
 *	  The HashGraphJoin node: callbacks of a CustomScan, and the state machine.
 *
 *	START		an outer side found empty, or an empty build side, may end the
 *				join here; build the first pass (build.c)
 *	FETCH		the next outer batch (probe.c); at the end of the outer side go
 *				to UNMATCHED_INNER
 *	PROBE		the next portion of matches; when there is none left, put
 *				outer rows that are to wait into partitions (partition.c) and go
 *				to UNMATCHED_OUTER
 *	MATCHES		recheck and return them one by one (emit.c), then PROBE
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
 * Memory: the state and its arrays live in the query's context.  The engine's
 * tables, the row store and arenas are malloc'd: freed by EndCustomScan, or by
 * the reset callback that BeginCustomScan registers when the query aborts.  No
 * locks.
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

const HgjRowProber *hgj_row_prober;

static Node *create_state(CustomScan *cscan);
static void begin_join(CustomScanState *node, EState *estate, int eflags);
static TupleTableSlot *exec_join(CustomScanState *node);
static void end_join(CustomScanState *node);
static void rescan_join(CustomScanState *node);

const CustomScanMethods hgj_scan_methods = {
	.CustomName = HGJ_NODE_NAME,
	.CreateCustomScanState = create_state
};

static const CustomExecMethods exec_methods = {
	.CustomName = HGJ_NODE_NAME,
	.BeginCustomScan = begin_join,
	.ExecCustomScan = exec_join,
	.EndCustomScan = end_join,
	.ReScanCustomScan = rescan_join,
	.EstimateDSMCustomScan = hgj_reports_estimate,
	.InitializeDSMCustomScan = hgj_reports_share,
	.ReInitializeDSMCustomScan = hgj_reports_share_again,
	.InitializeWorkerCustomScan = hgj_reports_attach,
	.ShutdownCustomScan = hgj_shutdown,
	.ExplainCustomScan = hgj_explain
};

/* The HashGraphJoin that the node is, or NULL. */
HgjJoinState *
hgj_join_of(PlanState *ps)
{
	if (IsA(ps, CustomScanState) &&
		((CustomScanState *) ps)->methods == &exec_methods)
		return (HgjJoinState *) ps;
	return NULL;
}

static Node *
create_state(CustomScan *cscan)
{
	HgjJoinState *state = (HgjJoinState *) newNode(sizeof(HgjJoinState),
												   T_CustomScanState);

	state->css.methods = &exec_methods;
	state->reports.size = sizeof(HgjRunReport);
	return (Node *) state;
}

static void
release_on_reset(void *arg)
{
	hgj_free_build(arg);
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
	state->counts.wanted = hgj_tally_begin(estate, eflags);
	state->rewinds = (eflags & EXEC_FLAG_REWIND) != 0;
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
	hgj_free_build(state);
	hgj_log_notes(state);
	hgj_tally_join(state);
	ExecEndNode(state->outer_ps);
	ExecEndNode(state->inner_ps);
}

/* Can the table be probed again, if it is the same build side? */
static bool
table_is_reusable(const HgjJoinState *state)
{
	return state->table != NULL && state->pass == 1 && state->last_pass &&
		(!state->has_split || hgj_split_is_there(state));
}

/*
 * Read the inner side from its start; the table must be gone.  `uncounted`: what
 * has been read was in vain (counts.c).
 */
void
hgj_rewind_inner(HgjJoinState *state, bool uncounted)
{
	state->inner.methods->rewind(&state->inner);
	if (state->inner_ps->chgParam != NULL)
		;						/* it will be, when it is asked for a row */
	else if (uncounted)
		hgj_rescan_inner_uncounted(state);
	else
		ExecReScan(state->inner_ps);
	state->inner_read = false;
}

/* The same for the outer side. */
void
hgj_rewind_outer(HgjJoinState *state, bool uncounted)
{
	hgj_source_drop_rows(&state->outer);
	state->outer.methods->rewind(&state->outer);
	if (state->outer_ps->chgParam != NULL)
		;
	else if (uncounted)
		hgj_rescan_uncounted(state);
	else
		ExecReScan(state->outer_ps);
	hgj_match_bits_reset(state);
}

/* Unset the match bits of a table that is probed again. */
static bool
clear_marks(HgjJoinState *state)
{
	HgjError	err = {0};

	if (!state->semantics.mark_inner)
		return true;
	while (!hgj_engine_done(state,
							state->engine->clear_marks(state->table, &err),
							&err))
		;
	return !state->device_failed;
}

static void
rescan_join(CustomScanState *node)
{
	HgjJoinState *state = (HgjJoinState *) node;
	bool		same;

	hgj_row_prober->stop(state);
	hgj_block_drop(state);
	ExecClearTuple(state->slot);
	hgj_output_rescan(state);
	if (node->ss.ps.chgParam != NULL)
	{
		UpdateChangedParamSet(state->outer_ps, node->ss.ps.chgParam);
		UpdateChangedParamSet(state->inner_ps, node->ss.ps.chgParam);
	}

	same = state->inner_ps->chgParam == NULL &&
		!(state->inner_key_params && node->ss.ps.chgParam != NULL);
	state->rescanned |= same;
	if (same && table_is_reusable(state) && clear_marks(state))
	{
		if (state->has_split)
			hgj_split_again(state);
	}
	else if (same && hgj_restore(state))
		hgj_free_build(state);
	else
	{
		hgj_partitions_release(state);
		hgj_free_build(state);
		if (state->device_failed)
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
	if (state->semantics.fill_inner || state->table != NULL)
		return false;
	return state->semantics.fill_outer ||
		(!state->outer_seen &&
		 state->outer_ps->plan->startup_cost < state->inner_ps->plan->total_cost);
}

/* Who takes our slots: do they take all of them? */
static void
find_demand(HgjJoinState *state)
{
	PlanState  *ps = &state->css.ss.ps;

	if (!state->demand_known)
		state->demand = hgj_demand_of(ps);
	state->demand_known = true;
	state->careful = !hgj_all_rows_wanted(state->demand, ps->state);
}

/* The table is built: which phase is next? */
static HgjPhase
after_build(HgjJoinState *state)
{
	if (state->last_pass && !state->splitting && state->graph_rows == 0 &&
		!state->semantics.fill_outer)
	{
		state->next_pair = state->pairs.n = 0;
		return state->semantics.fill_inner ?
			HGJ_PHASE_UNMATCHED_INNER : HGJ_PHASE_NEXT_PASS;
	}
	return HGJ_PHASE_FETCH;
}

/* Before the first outer row is read, and anything is built. */
void
hgj_prepare(HgjJoinState *state)
{
	HgjMatches *pairs = &state->pairs;

	if (state->engine == NULL)
		hgj_choose_engine(state);
	if (pairs->probe_rows == NULL)
	{
		pairs->probe_rows = MemoryContextAlloc(state->context,
											   HGJ_PAIRS * sizeof(uint32));
		pairs->build_rows = MemoryContextAlloc(state->context,
											   HGJ_PAIRS * sizeof(uint32));
		pairs->location = HGJ_ON_HOST;
		if (pairs->capacity == 0)
			pairs->capacity = HGJ_PAIRS;
	}

	if (state->residual)
		hgj_program_start(state->residual, state->css.ss.ps.ps_ExprContext);
	if (state->output == NULL)
		find_demand(state);
	state->npairs_left = 0;
	state->residual_stopped = false;
	state->batch_rows = 0;
	state->counts.returned += hgj_slots_returned(state);
	state->emitted = state->emitted_before = 0;
	hgj_restart_outer(state);
	if (state->on_device)
		hgj_note_outer_counts(state);
}

/* Phase START; returns the next one. */
static HgjPhase
start_join(HgjJoinState *state)
{
	bool		empty;

	hgj_prepare(state);
	if (hgj_row_prober->start(state, &empty))
		return empty ? HGJ_PHASE_DONE : HGJ_PHASE_FETCH;
	if (state->device_failed)
		return HGJ_PHASE_START;
	if (hgj_worth_peeking(state) && !hgj_peek_outer(state))
		return HGJ_PHASE_DONE;
	if (state->table == NULL)
	{
		hgj_check_restoring(state);
		hgj_build_pass(state);
	}
	if (state->device_failed)
		return HGJ_PHASE_START;

	if (!state->last_pass)
		hgj_keep_outer(state);
	return after_build(state);
}

/* Phase NEXT_PASS; returns the next one. */
static HgjPhase
start_next_pass(HgjJoinState *state)
{
	if (state->last_pass)
	{
		if (state->splitting)
			hgj_split_end(state);
		if (!hgj_next_unit(state))
			return HGJ_PHASE_DONE;
	}
	else if (!hgj_rewind_unit(state))
		hgj_source_replay_rows(&state->outer);
	hgj_release_table(state);
	hgj_build_pass(state);
	if (state->device_failed)
		return HGJ_PHASE_NEXT_PASS;
	hgj_restart_outer(state);
	return after_build(state);
}

/*
 * Is the candidate pair a match that counts?  If there is a match_qual, its
 * columns are in the scan slot afterwards.  Notes the match on both sides.
 */
bool
hgj_confirm_match(HgjJoinState *state, uint32 outer_row, uint32 inner_row)
{
	HgjSemantics *s = &state->semantics;
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	HgjError	err = {0};

	if (s->one_per_outer && state->matched[outer_row])
	{
		state->wasted_pairs++;
		return false;
	}
	if (state->device_failed ||
		(s->one_per_inner && state->engine->is_marked(state->table, inner_row)))
		return false;

	if (state->match_qual)
	{
		hgj_fill_slot(state, outer_row, inner_row);
		econtext->ecxt_scantuple = state->slot;
		if (!ExecQual(state->match_qual, econtext))
		{
			InstrCountFiltered2(&state->css.ss.ps, 1);
			ResetExprContext(econtext);
			return false;
		}
	}
	if (state->recheck && (s->fill_outer || s->one_per_outer))
		state->matched[outer_row] = true;
	if (s->mark_inner && (state->recheck || s->one_per_inner))
		while (!hgj_engine_done(state,
								state->engine->mark(state->table, &inner_row, 1,
													&err),
								&err))
			;
	return !state->device_failed;
}

/* The next row to return of matches that need no more confirmation, or NULL. */
static TupleTableSlot *
next_of_block(HgjJoinState *state)
{
	while (state->block.next < state->block.n || hgj_block_fill(state))
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
	HgjMatches *pairs = &state->pairs;

	if (!hgj_confirms(state))
		return state->semantics.emit_matches ? next_of_block(state) : NULL;

	while (state->next_pair < pairs->n)
	{
		uint32		p = state->next_pair++;
		uint32		outer_row = pairs->probe_rows[p];
		uint32		inner_row = pairs->build_rows[p];
		TupleTableSlot *slot;

		if (state->rows.stride > 0 && p + HGJ_PREFETCH_PAIRS < pairs->n)
			__builtin_prefetch(hgj_row_store_record(&state->rows,
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
		if (!state->match_qual)
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
	if (!state->semantics.fill_outer || !state->last_pass)
		return NULL;
	while (state->next_outer < hgj_batch_nlive(state->outer_batch))
	{
		uint32		row = hgj_batch_live_row(state->outer_batch,
											 state->next_outer++);
		TupleTableSlot *slot;

		if (state->matched[row])
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
	while (state->next_pair < state->pairs.n || hgj_next_unmatched(state))
	{
		uint32		row = state->pairs.build_rows[state->next_pair++];
		TupleTableSlot *slot;

		CHECK_FOR_INTERRUPTS();
		slot = hgj_emit(state, HGJ_NO_ROW, row);
		if (slot)
			return slot;
	}
	return NULL;
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
			state->next_pair = state->pairs.n = 0;
			state->phase = start_join(state);
			break;

		case HGJ_PHASE_FETCH:
			if (hgj_fetch_outer(state))
				state->phase = HGJ_PHASE_PROBE;
			else
			{
				state->next_pair = state->pairs.n = 0;
				state->phase = HGJ_PHASE_UNMATCHED_INNER;
			}
			break;

		case HGJ_PHASE_PROBE:
			if (state->pairs.done && state->npairs_left == 0)
			{
				if (state->splitting)
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
	if (state->device_failed)
	{
		state->next_pair = state->pairs.n = 0;
		state->phase = hgj_fail_over(state, phase);
	}
}

static TupleTableSlot *
exec_join(CustomScanState *node)
{
	HgjJoinState *state = (HgjJoinState *) node;
	TupleTableSlot *slot = NULL;

	if (state->direct && state->block.next < state->block.n)
	{
		hgj_block_row(state);
		state->emitted++;
		return state->slot;
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
