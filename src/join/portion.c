/*-------------------------------------------------------------------------
 *
 * portion.c
 *	  The rows that a join returns, a portion at a time, as row numbers of its two
 *	  sides: what slots (node.c) and batches (output.c) are made from.
 *
 * 1. Where the phase of the join (phases.c) returns rows, take what it has:
 *	  candidates of the outer batch; the batch's outer rows, or inner rows, without
 *	  a match.
 * 2. Confirm candidates one by one, where that is necessary (confirm.c); what is
 *	  left is the portion, but for the filter of an outer join, if it is to become a
 *	  batch.  Slots are filtered when they are filled.
 * 3. Where an expression could be evaluated in vain, and somebody would notice, a
 *	  portion is a single row.  That is where not all rows may be wanted (demand.h), of
 *	  batches if it may raise an error, of slots if any expression is evaluated for a
 *	  candidate; or if that is volatile.
 * 4. Else go on to the next phase.
 *
 * Memory: a portion's arrays are the probe's, or in the query's context, until the
 * next one.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "join/join_state.h"
#include "miscadmin.h"

/* How many candidates ahead a record of the row store is prefetched. */
#define HGJ_PREFETCH_PAIRS	8

/* For slots, is a candidate to be confirmed when it is asked for? */
static inline bool
one_candidate(const HgjJoinState *state)
{
	return state->output == NULL && state->rules.match_qual &&
		(state->goal.careful || state->rules.match_volatile);
}

/*
 * Step 3: how many of n rows to take at once.  Candidates that residual.c has let
 * come one at a time have been counted there.
 */
static inline uint32
rows_at_once(HgjJoinState *state, uint32 n, bool candidates)
{
	if (candidates && one_candidate(state))
		return 1;
	if (state->output == NULL || !hgj_single_rows(state) || n == 0)
		return n;
	state->stats.joined_singly += !candidates || state->rules.residual == NULL ||
		!hgj_program_raises_at_once(state->rules.residual);
	return 1;
}

/*
 * Those of n candidates, the first of `left`, that match, in front.  None, where the
 * device fails in it: their batch is to be joined again.
 */
static uint32
confirm_pairs(HgjJoinState *state, uint32 *outer_rows, uint32 *inner_rows,
			  uint32 n, uint32 left)
{
	bool		reads = state->rules.match_qual && state->js.build->rows.stride > 0;
	uint32		confirmed = 0;

	if (!hgj_confirms(state))
		return n;
	for (uint32 i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (reads && i + HGJ_PREFETCH_PAIRS < left)
			__builtin_prefetch(hgj_row_store_record(&state->js.build->rows,
													inner_rows[i + HGJ_PREFETCH_PAIRS]),
							   0, 2);
		if (!hgj_confirm_match(state, outer_rows[i], inner_rows[i]))
			continue;
		if (n > 1 && state->rules.match_qual)
			ResetExprContext(state->js.css.ss.ps.ps_ExprContext);
		outer_rows[confirmed] = outer_rows[i];
		inner_rows[confirmed++] = inner_rows[i];
	}
	return hgj_device_failed(state) ? 0 : confirmed;
}

/*
 * For batches, those of the portion's rows that pass the filter: slots are looked at
 * when they are filled.  False: none.
 */
static bool
filter_rows(HgjJoinState *state, HgjPortion *rows)
{
	ExprContext *econtext = state->js.css.ss.ps.ps_ExprContext;
	uint32		n = rows->n;

	if (state->rules.filter == NULL || state->output == NULL)
		return n > 0;
	rows->n = 0;
	for (uint32 i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		ResetExprContext(econtext);
		hgj_fill_slot(state, rows->outer_rows ? rows->outer_rows[i] : HGJ_NO_ROW,
					  rows->inner_rows ? rows->inner_rows[i] : HGJ_NO_ROW);
		econtext->ecxt_scantuple = state->slots.slot;
		if (!ExecQual(state->rules.filter, econtext))
			continue;
		if (rows->outer_rows)
			rows->outer_rows[rows->n] = rows->outer_rows[i];
		if (rows->inner_rows)
			rows->inner_rows[rows->n] = rows->inner_rows[i];
		rows->n++;
	}
	InstrCountFiltered1(&state->js.css.ss.ps, n - rows->n);
	return rows->n > 0;
}

/* Phase MATCHES: what counts of the portion of candidates. */
static bool
next_matches(HgjJoinState *state, HgjPortion *rows)
{
	HgjMatches *pairs = &state->found.pairs;

	while (state->found.next_pair < pairs->n)
	{
		uint32		left = pairs->n - state->found.next_pair;
		uint32		n = rows_at_once(state, left, true);

		rows->outer_rows = pairs->probe_rows + state->found.next_pair;
		rows->inner_rows = pairs->build_rows + state->found.next_pair;
		state->found.next_pair += n;
		rows->n = confirm_pairs(state, rows->outer_rows, rows->inner_rows, n, left);
		rows->in_slot = one_candidate(state);
		if (state->js.semantics.emit_matches && filter_rows(state, rows))
			return true;
	}
	return false;
}

/* The next outer row of the batch without a match. */
static uint32
skip_matched(HgjJoinState *state, const HgjBatch *outer, uint32 nlive)
{
	uint32		i = state->found.next_outer;

	while (i < nlive && state->found.matched[hgj_batch_live_row(outer, i)])
		i++;
	state->found.next_outer = i;
	return i;
}

/* Phase UNMATCHED_OUTER: rows of the outer batch that have not matched at all. */
static bool
next_unmatched_outer(HgjJoinState *state, HgjPortion *rows)
{
	HgjBatch   *outer = state->probing.outer_batch;
	uint32		nlive = hgj_batch_nlive(outer);

	if (!state->js.semantics.fill_outer || !state->passes.last_pass ||
		state->found.next_outer >= nlive)
		return false;

	hgj_buffer_reserve(state->js.context, &state->found.unmatched_rows, sizeof(uint32),
					   nlive);
	while (skip_matched(state, outer, nlive) < nlive)
	{
		uint32		most = rows_at_once(state, nlive - state->found.next_outer, false);
		uint32		i = state->found.next_outer;

		*rows = (HgjPortion) {.outer_rows = state->found.unmatched_rows.vector.values};
		for (; i < nlive && rows->n < most; i++)
		{
			uint32		row = hgj_batch_live_row(outer, i);

			rows->outer_rows[rows->n] = row;
			rows->n += !state->found.matched[row];
		}
		state->found.next_outer = i;
		if (filter_rows(state, rows))
			return true;
	}
	return false;
}

/* Phase UNMATCHED_INNER: rows of the build side that nothing has matched. */
static bool
next_unmatched_inner(HgjJoinState *state, HgjPortion *rows)
{
	HgjMatches *pairs = &state->found.pairs;

	if (!state->js.semantics.fill_inner)
		return false;
	while (state->found.next_pair < pairs->n || hgj_next_unmatched(state))
	{
		*rows = (HgjPortion) {.inner_rows = pairs->build_rows + state->found.next_pair};
		CHECK_FOR_INTERRUPTS();
		rows->n = rows_at_once(state, pairs->n - state->found.next_pair, false);
		state->found.next_pair += rows->n;
		if (filter_rows(state, rows))
			return true;
	}
	return false;
}

/* The next portion of rows to return; false: there are no more. */
bool
hgj_next_portion(HgjJoinState *state, HgjPortion *rows)
{
	while (state->phase != HGJ_PHASE_DONE)
	{
		bool		found = false;

		CHECK_FOR_INTERRUPTS();
		ResetExprContext(state->js.css.ss.ps.ps_ExprContext);
		if (state->phase == HGJ_PHASE_MATCHES)
			found = next_matches(state, rows);
		else if (state->phase == HGJ_PHASE_UNMATCHED_OUTER)
			found = next_unmatched_outer(state, rows);
		else if (state->phase == HGJ_PHASE_UNMATCHED_INNER)
			found = next_unmatched_inner(state, rows);
		if (found)
			return true;
		hgj_advance(state);
	}
	return false;
}
