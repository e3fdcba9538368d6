/*-------------------------------------------------------------------------
 *
 * confirm.c
 *	  Candidates, one by one: which are matches that count?
 *
 * No memory, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "join/join_state.h"

/*
 * Is the candidate pair a match that counts?  If there is a match_qual, its
 * columns are in the scan slot afterwards.  Notes the match on both sides.
 */
bool
hgj_confirm_match(HgjJoinState *state, uint32 outer_row, uint32 inner_row)
{
	HgjSemantics *s = &state->js.semantics;
	ExprContext *econtext = state->js.css.ss.ps.ps_ExprContext;
	HgjError	err = {0};

	/* without a recheck the engine returns one pair for an outer row as it is */
	if (state->rules.recheck && s->one_per_outer &&
		state->found.matched[outer_row])
	{
		state->found.wasted_pairs++;
		return false;
	}
	if (hgj_device_failed(state) ||
		(s->one_per_inner &&
		 state->use.engine->is_marked(state->js.build->table, inner_row)))
		return false;

	if (state->rules.match_qual)
	{
		hgj_fill_slot(state, outer_row, inner_row);
		econtext->ecxt_scantuple = state->slots.slot;
		if (!ExecQual(state->rules.match_qual, econtext))
		{
			InstrCountFiltered2(&state->js.css.ss.ps, 1);
			ResetExprContext(econtext);
			return false;
		}
	}
	if (state->rules.recheck && (s->fill_outer || s->one_per_outer))
		state->found.matched[outer_row] = true;
	/* of those who find it unmatched at the same time, one returns it */
	if (s->one_per_inner && hgj_table_is_shared(state))
		return state->use.engine->share->claim(state->js.build->table, inner_row);
	if (s->mark_inner && (state->rules.recheck || s->one_per_inner))
		hgj_engine_call(state, &err,
						state->use.engine->mark(state->js.build->table, &inner_row, 1,
												&err));
	return !hgj_device_failed(state);
}
