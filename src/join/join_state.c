/*-------------------------------------------------------------------------
 *
 * join_state.c
 *	  What everybody in the room asks of a join: which node is one, who finds the
 *	  rows of a chain, and how its sides are read again from their start.
 *
 * No memory, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "join/join_state.h"
#include "miscadmin.h"

const HgjRowProber *hgj_row_prober;
HgjGroupsOffer hgj_offer_to_groups;

/* The HashGraphJoin that the node is, or NULL.  The plan's methods have made the state. */
HgjJoinState *
hgj_join_of(PlanState *ps)
{
	return hgj_is_join_plan(ps->plan) ? (HgjJoinState *) ps : NULL;
}

/* The join whose batches the source reads, or NULL: it reads something else, or slots. */
HgjJoinState *
hgj_source_join(const HgjSource *source)
{
	return source->methods == &hgj_source_batches ? hgj_join_of(source->child) : NULL;
}

/* Residual clauses that run as a program, and the columns that it reads; NULL: there are none. */
HgjProgram *
hgj_join_residual(const HgjJoinState *state, const HgjPairColumns **columns)
{
	*columns = &state->rules.residual_columns;
	return state->rules.residual;
}

/* Are there quals of a match that PostgreSQL's executor evaluates, pair by pair? */
bool
hgj_join_has_quals_by_row(const HgjJoinState *state)
{
	return state->rules.match_qual != NULL;
}

/* Is there a qual that rows must pass after an outer join? */
bool
hgj_join_has_filter(const HgjJoinState *state)
{
	return state->rules.filter != NULL;
}

/* Can confirming or returning a pair raise an error? */
bool
hgj_join_rows_may_raise(const HgjJoinState *state)
{
	return state->goal.rows_may_raise;
}

/* Does the node above take a row at a time, because its keys can raise an error? */
bool
hgj_join_gives_single_rows(const HgjJoinState *state)
{
	return state->goal.careful && state->goal.single_rows;
}

/* Do the join's rows leave in batches? */
bool
hgj_join_gives_batches(const HgjJoinState *state)
{
	return state->output != NULL;
}

/*
 * Read the inner side from its start; the table must be gone.  `uncounted`: what
 * has been read was in vain (counts.c).
 */
void
hgj_rewind_inner(HgjJoinState *state, bool uncounted)
{
	state->js.inner.methods->rewind(&state->js.inner);
	if (state->js.inner_ps->chgParam != NULL)
		;						/* it will be, when it is asked for a row */
	else if (uncounted)
		hgj_rescan_inner_uncounted(state);
	else
		ExecReScan(state->js.inner_ps);
	state->building.read = false;
}

/* The same for the outer side. */
void
hgj_rewind_outer(HgjJoinState *state, bool uncounted)
{
	hgj_source_drop_rows(&state->js.outer);
	state->js.outer.methods->rewind(&state->js.outer);
	if (state->js.outer_ps->chgParam != NULL)
		;
	else if (uncounted)
		hgj_rescan_uncounted(state);
	else
		ExecReScan(state->js.outer_ps);
	hgj_match_bits_reset(state);
}

/*
 * Would it be noticed how much of the outer side is read, and how often?  In a chain of
 * joins each looks at itself and its inner side once, for all that are above it.
 */
bool
hgj_outer_is_volatile(HgjJoinState *state)
{
	HgjOuterRows *outer = &state->probing;
	HgjJoinState *below = outer->below;
	bool		found;

	if (outer->is_volatile != HGJ_UNASKED)
		return outer->is_volatile == HGJ_YES;
	check_stack_depth();
	if (below != NULL)
		found = hgj_outer_is_volatile(below) || hgj_calls_volatile(below->js.inner_ps) ||
			hgj_node_calls_volatile(&below->js.css.ss.ps);
	else
		found = hgj_calls_volatile(state->js.outer_ps);
	outer->is_volatile = found ? HGJ_YES : HGJ_NO;
	return found;
}
