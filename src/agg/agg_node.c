/*-------------------------------------------------------------------------
 *
 * agg_node.c
 *	  The HashGraphAgg node: callbacks of a CustomScan, and the state machine.
 *
 *	READ		have a device do it all (agg_device_run.c), or take every batch: of
 *				the child (agg_feed.c), or of a spilled partition; find the rows' groups
 *				(groups.c) and update their states (agg_input.c).  A partial
 *				aggregation stops when its table is full (agg_rounds.c)
 *				where processes divide their groups among themselves, each reads
 *				all that it gets (agg_exchange.c)
 *	RETURN		the groups in the table, one by one: HAVING, then projection;
 *				at the end the rest of the input or the next spilled partition is
 *				read, if there is one
 *	DONE		until a rescan
 *
 * A rescan for which nothing has changed returns the groups again, if they all
 * are in the table.  If a join above has said which rows are wanted, they are not: the next
 * execution makes all of them, to be returned again (agg_key_filter.c).
 *
 * Memory: the state lives in the query's context.  The group table is malloc'd:
 * freed by EndCustomScan, or by the reset callback that BeginCustomScan registers
 * when the query aborts; temporary files belong to the resource owner.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_exchange.h"
#include "agg/agg_parallel.h"
#include "base/build_id.h"
#include "executor/executor.h"
#include "join/tally.h"
#include "miscadmin.h"
#include "pipeline/device.h"
#include "utils/memutils.h"

static Node *create_state(CustomScan *cscan);
static void begin_agg(CustomScanState *node, EState *estate, int eflags);
static TupleTableSlot *exec_agg(CustomScanState *node);
static void end_agg(CustomScanState *node);
static void rescan_agg(CustomScanState *node);

const CustomScanMethods hgj_agg_scan_methods = {
	.CustomName = HGJ_AGG_NODE_NAME,
	.CreateCustomScanState = create_state
};

static const CustomExecMethods exec_methods = {
	.CustomName = HGJ_AGG_NODE_NAME,
	.BeginCustomScan = begin_agg,
	.ExecCustomScan = exec_agg,
	.EndCustomScan = end_agg,
	.ReScanCustomScan = rescan_agg,
	.EstimateDSMCustomScan = hgj_exchange_estimate,
	.InitializeDSMCustomScan = hgj_exchange_init,
	.ReInitializeDSMCustomScan = hgj_exchange_init_again,
	.InitializeWorkerCustomScan = hgj_exchange_attach,
	.ShutdownCustomScan = hgj_exchange_shutdown,
	.ExplainCustomScan = hgj_agg_explain
};

static Node *
create_state(CustomScan *cscan)
{
	HgjAggState *state = (HgjAggState *) newNode(sizeof(HgjAggState),
												 T_CustomScanState);

	hgj_check_plan_build(cscan);
	state->css.methods = &exec_methods;
	state->reports.methods = &hgj_agg_reports;
	return (Node *) state;
}

/* What is not palloc'd; safe to call again, and while aborting. */
static void
free_memory(HgjAggState *state)
{
	hgj_groups_release(&state->groups);
	hgj_agg_free_seen(state);
	hgj_exchange_free_memory(state);
	hgj_arena_free(&state->values);
	hgj_agg_feed_free(state->feed);
	hgj_agg_spill_free_memory(state);
}

static void
release_on_reset(void *arg)
{
	hgj_progress_end(&((HgjAggState *) arg)->progress);
	free_memory(arg);
	hgj_tally_agg(arg);
}

static void
begin_agg(CustomScanState *node, EState *estate, int eflags)
{
	HgjAggState *state = (HgjAggState *) node;
	MemoryContextCallback *callback = palloc0(sizeof(MemoryContextCallback));

	callback->func = release_on_reset;
	callback->arg = state;
	MemoryContextRegisterResetCallback(estate->es_query_cxt, callback);
	state->counts.wanted = hgj_tally_begin(estate, eflags);
	hgj_agg_setup(state, estate, eflags);
}

static void
end_agg(CustomScanState *node)
{
	HgjAggState *state = (HgjAggState *) node;

	hgj_progress_end(&state->progress);
	if (state->device)
		hgj_device_end(state->device);
	hgj_exchange_end_run(state);
	if (state->feed)
		hgj_agg_feed_end(state->feed);
	hgj_agg_spill_release(state);
	hgj_agg_forget_states(state);
	free_memory(state);
	hgj_tally_agg(state);
	ExecEndNode(state->child);
}

/* An empty table; it may keep its arrays if others of as many groups are to come. */
static void
forget_groups(HgjAggState *state, bool refills)
{
	if (refills)
		hgj_groups_clear(&state->groups);
	else
		hgj_groups_release(&state->groups);
	hgj_agg_forget_states(state);
	hgj_agg_portions_restart(state);
	state->next_group = 0;
}

static void
rescan_agg(CustomScanState *node)
{
	HgjAggState *state = (HgjAggState *) node;

	ExecClearTuple(node->ss.ss_ScanTupleSlot);
	if (state->kept && node->ss.ps.chgParam == NULL)
	{
		state->next_group = 0;
		state->phase = HGJ_AGG_PHASE_RETURN;
		return;
	}
	if (node->ss.ps.chgParam == NULL)
		hgj_agg_want_all_rows(state);
	if (node->ss.ps.chgParam != NULL)
		UpdateChangedParamSet(state->child, node->ss.ps.chgParam);
	if (state->child->chgParam == NULL)
		ExecReScan(state->child);
	hgj_exchange_end_run(state);
	if (state->feed)
		hgj_agg_feed_rewind(state->feed);
	hgj_agg_spill_release(state);
	forget_groups(state, false);
	state->rounds.waiting = false;
	state->kept = false;
	state->phase = HGJ_AGG_PHASE_READ;
}

/*
 * Add the batch's rows to their groups, or put them aside.  False: the groups
 * are to be returned before there is room for the rest of them.
 */
static bool
take_batch(HgjAggState *state, const HgjBatch *batch)
{
	HgjGroups  *groups = &state->groups;
	HgjBatch	portion;
	uint32		from = 0;

	hgj_agg_reserve(state, hgj_batch_nlive(batch));
	while (hgj_agg_next_portion(state, batch, &from, &portion))
	{
		CHECK_FOR_INTERRUPTS();
		if (groups->nkeys > 0)
			hgj_groups_assign(groups, &portion);
		hgj_agg_select_rows(state, &portion);
		hgj_agg_update(state);
		hgj_agg_growth_settle(state);
		hgj_groups_settle(groups);
		hgj_agg_portion_done(state, hgj_batch_nlive(&portion));
		if (hgj_agg_end_round(state, batch, from, hgj_agg_growth_check(state),
							  hgj_exchange_groups_in_vain(state, hgj_batch_nlive(&portion))))
			return false;
	}
	return true;
}

static const HgjBatch *
next_batch(HgjAggState *state)
{
	if (state->rounds.waiting)
		return hgj_agg_rest(state);
	if (state->spill.reading)
		return hgj_agg_spill_next_batch(state);
	return hgj_agg_feed_next(state);
}

/* Phase READ. */
static void
read_all(HgjAggState *state)
{
	HgjGroups  *groups = &state->groups;
	bool		spilled = state->spill.reading != NULL;
	bool		first = !spilled && !state->rounds.waiting;
	HgjProgressPhase phase = spilled ? HGJ_PROGRESS_PARTITIONS : HGJ_PROGRESS_READING;
	bool		done = false;

	state->counts.started = true;
	if (first)
	{
		hgj_progress_end(&state->progress);
		state->ngroups = 0;
		hgj_agg_key_filter_start(state);
		hgj_agg_start(state);
	}
	hgj_agg_progress(state, phase, 0);
	if (state->device && first)
		done = hgj_device_run(state->device);
	if (groups->nkeys == 0 && !done)
		hgj_groups_only(groups);
	while (!done)
	{
		bool		again = spilled || state->rounds.waiting;
		const HgjBatch *batch = next_batch(state);

		CHECK_FOR_INTERRUPTS();
		if (batch == NULL)
			break;
		hgj_agg_progress(state, phase, again ? 0 : hgj_batch_nlive(batch));
		if (!take_batch(state, batch))
			break;
	}
	state->peak_bytes = Max(state->peak_bytes, hgj_groups_bytes(groups) +
							hgj_agg_all_seen_bytes(state));
	hgj_agg_spill_finish_writing(state);
	ResetExprContext(state->css.ss.ps.ps_ExprContext);
	state->ngroups += groups->ngroups;
	state->counts.groups += groups->ngroups;
	state->ran = true;
	state->kept = first && !state->rounds.waiting &&
		state->spill.pending == NULL && !state->returned_once && !state->growing.begun &&
		!hgj_agg_left_rows_out(state);
	state->next_group = 0;
}

/*
 * Phase READ, as far as it goes before groups can be returned.  Where processes
 * divide the groups among themselves, that is to the end of the input.
 */
static void
read_input(HgjAggState *state)
{
	if (state->exchange.shared == NULL)
	{
		read_all(state);
		return;
	}
	if (!hgj_exchange_begin(state))
		return;
	for (read_all(state); state->rounds.waiting; read_all(state))
	{
		hgj_exchange_empty_table(state);
		forget_groups(state, true);
	}
	hgj_exchange_end_input(state);
	if (state->exchange.returning)
		forget_groups(state, false);
}

/* Write a group into the scan slot: its key, then its aggregates. */
static TupleTableSlot *
fill_slot(HgjAggState *state, char *row)
{
	HgjGroups  *groups = state->result;
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	MemoryContext old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);

	ExecClearTuple(slot);
	hgj_agg_caller_next_group(state);
	hgj_agg_growth_next_group(state, state->next_group - 1);
	for (int k = 0; k < groups->nkeys; k++)
	{
		int			column = groups->keys[k].column;

		slot->tts_isnull[column] = !hgj_agg_key_of(groups, row, k, &slot->tts_values[column]);
	}
	for (int a = 0; a < state->naggs; a++)
		slot->tts_values[state->ncolumns + a] =
			hgj_agg_result(&state->aggs[a], row, state->partial,
						   &slot->tts_isnull[state->ncolumns + a]);
	MemoryContextSwitchTo(old);
	return ExecStoreVirtualTuple(slot);
}

/* Does a group pass HAVING?  It stands in the scan slot then. */
bool
hgj_agg_passes(HgjAggState *state, char *row)
{
	PlanState  *ps = &state->css.ss.ps;
	ExprContext *econtext = ps->ps_ExprContext;

	ResetExprContext(econtext);
	econtext->ecxt_scantuple = fill_slot(state, row);
	if (ExecQual(state->having, econtext))
		return true;
	InstrCountFiltered1(ps, 1);
	return false;
}

/* Phase RETURN has come to the end of the groups at hand. */
static void
leave_groups(HgjAggState *state)
{
	if (hgj_exchange_next(state))
		return;
	if (!state->rounds.waiting && state->spill.pending == NULL)
	{
		if (state->device)
			InstrCountFiltered1(&state->css.ss.ps, hgj_device_left_out(state->device));
		hgj_progress_end(&state->progress);
		state->phase = HGJ_AGG_PHASE_DONE;
		return;
	}
	forget_groups(state, false);
	if (!state->rounds.waiting)
		hgj_agg_spill_next_partition(state);
	state->phase = HGJ_AGG_PHASE_READ;
}

/* Go on until there are groups to be returned, from next_group on; false: there are no more. */
bool
hgj_agg_has_groups(HgjAggState *state)
{
	for (;;)
	{
		switch (state->phase)
		{
			case HGJ_AGG_PHASE_READ:
				read_input(state);
				hgj_agg_progress(state, HGJ_PROGRESS_RETURNING, 0);
				state->phase = HGJ_AGG_PHASE_RETURN;
				break;

			case HGJ_AGG_PHASE_RETURN:
				if (state->next_group < state->result->ngroups)
					return true;
				leave_groups(state);
				break;

			case HGJ_AGG_PHASE_DONE:
				return false;
		}
	}
}

static TupleTableSlot *
exec_agg(CustomScanState *node)
{
	HgjAggState *state = (HgjAggState *) node;
	ProjectionInfo *projection = node->ss.ps.ps_ProjInfo;

	while (hgj_agg_has_groups(state))
	{
		CHECK_FOR_INTERRUPTS();
		if (hgj_agg_passes(state, hgj_group_row(state->result, state->next_group++)))
			return projection ? ExecProject(projection) : node->ss.ss_ScanTupleSlot;
	}
	return NULL;
}
