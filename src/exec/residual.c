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
 *
 * Memory: the query's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "exec/join_state.h"

/*
 * Compile what can be of `quals`, an implicitly ANDed list; returns the rest,
 * in its order.  Call when both sides' columns are known.
 */
List *
hgj_residual_init(HgjJoinState *state, List *quals, bool may_fail)
{
	List	   *rest;

	hgj_pair_columns_init(&state->residual_columns, state);
	rest = hgj_program_compile_quals(quals, &state->css.ss.ps, hgj_pair_lookup,
									 &state->residual_columns, may_fail,
									 &state->residual);
	if (state->residual)
		state->residual_sel = palloc(HGJ_PAIRS * sizeof(uint32));
	return rest;
}

/* Take the candidates of the portion at hand out that a program rejects. */
void
hgj_residual_run(HgjJoinState *state)
{
	HgjMatches *pairs = &state->pairs;
	const uint32 *sel = state->residual_sel;
	uint32		n;

	if (state->residual == NULL || pairs->n == 0)
		return;
	hgj_gather_pairs(&state->residual_columns, pairs->probe_rows,
					 pairs->build_rows, pairs->n);
	n = hgj_program_filter(state->residual, state->residual_columns.vectors,
						   NULL, pairs->n, state->residual_sel);
	InstrCountFiltered2(&state->css.ss.ps, pairs->n - n);
	if (n < pairs->n)
		for (uint32 i = 0; i < n; i++)
		{
			pairs->probe_rows[i] = pairs->probe_rows[sel[i]];
			pairs->build_rows[i] = pairs->build_rows[sel[i]];
		}
	pairs->n = n;
}
