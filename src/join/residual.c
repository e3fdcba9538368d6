/*-------------------------------------------------------------------------
 *
 * residual.c
 *	  Residual join clauses over whole portions of matches.
 *
 * 1. At executor start, residual clauses that compile and cannot fail are taken
 *	  out of the list; the others stay with ExecQual().  What cannot fail tells
 *	  nobody anything about the rows it looks at, so it may go first, whatever
 *	  the clauses' security levels are, and may see candidates that the recheck
 *	  of an opaque key would have removed.  Those that can fail are taken out,
 *	  too, as long as no other stands before them, where PostgreSQL would look at
 *	  every candidate that we look at.
 * 2. For each portion of candidates, gather the columns that the program reads,
 *	  run it, and close the ranks of the pairs.
 * 3. Where not every row may be wanted, a candidate that raises an error stops
 *	  the run.  It and those behind it are left at the end of the arrays, and
 *	  come next, one of them alone, when those before it have been returned.
 *
 * Memory: the query's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "join/join_state.h"

/*
 * Compile what can be of `quals`, an implicitly ANDed list; returns the rest,
 * in its order.  Call when both sides' columns are known.
 */
List *
hgj_residual_init(HgjJoinState *state, List *quals, bool may_fail)
{
	List	   *rest;

	hgj_pair_columns_init(&state->rules.residual_columns, state);
	rest = hgj_program_compile_quals(quals, &state->css.ss.ps, hgj_pair_lookup,
									 &state->rules.residual_columns, may_fail,
									 &state->rules.residual);
	if (state->rules.residual)
		state->rules.residual_sel = palloc(HGJ_PAIRS * sizeof(uint32));
	return rest;
}

/* Step 3: run it for n candidates from `first` on; it sees *seen of them. */
static uint32
run_program(HgjJoinState *state, uint32 first, uint32 n, uint32 *seen)
{
	HgjPairColumns *columns = &state->rules.residual_columns;
	uint32		passed;
	uint32		stop;

	hgj_gather_pairs(columns, state->found.pairs.probe_rows + first,
					 state->found.pairs.build_rows + first, n);
	*seen = n;
	if (!state->goal.careful || n == 1)
		return hgj_program_filter(state->rules.residual, columns->vectors, NULL, n,
								  state->rules.residual_sel);
	passed = hgj_program_filter_until(state->rules.residual, columns->vectors, NULL,
									  n, state->rules.residual_sel, &stop);
	*seen = Min(n, stop);
	state->found.residual_stopped = *seen < n;
	return passed;
}

/*
 * Take those of the portion's candidates out that the program rejects, or of
 * what was left of it the last time.
 */
void
hgj_residual_run(HgjJoinState *state)
{
	HgjMatches *pairs = &state->found.pairs;
	const uint32 *sel = state->rules.residual_sel;
	uint32		first = state->found.npairs_left > 0 ? state->found.first_left : 0;
	uint32		n = state->found.npairs_left > 0 ? state->found.npairs_left : pairs->n;
	uint32		end = first + n;
	uint32		seen;

	if (state->rules.residual == NULL || n == 0)
		return;
	if (state->goal.careful && (state->found.residual_stopped ||
						   hgj_program_raises_at_once(state->rules.residual)))
	{
		n = 1;
		state->stats.joined_singly++;
	}
	n = run_program(state, first, n, &seen);
	state->found.first_left = first + seen;
	state->found.npairs_left = end - state->found.first_left;
	InstrCountFiltered2(&state->css.ss.ps, seen - n);
	if (first > 0 || n < seen)
		for (uint32 i = 0; i < n; i++)
		{
			pairs->probe_rows[i] = pairs->probe_rows[first + sel[i]];
			pairs->build_rows[i] = pairs->build_rows[first + sel[i]];
		}
	pairs->n = n;
}
