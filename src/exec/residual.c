/*-------------------------------------------------------------------------
 *
 * residual.c
 *	  Residual join clauses over whole portions of matches.
 *
 * 1. At executor start, every residual clause that compiles to a program which
 *	  cannot fail is taken out of the list; the others stay with ExecQual().  A
 *	  program that cannot fail tells nobody anything about the rows it looks at,
 *	  so it may go first, whatever the clauses' security levels are, and may see
 *	  candidates that the recheck of an opaque key would have removed.
 * 2. For each portion of candidates, gather the columns that the programs read,
 *	  run one program after the other, and close the ranks of the pairs.
 *
 * Memory: the query's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "exec/join_state.h"

/* HgjInputLookup over both sides' columns. */
static int
lookup_column(void *arg, const Var *var)
{
	HgjJoinState *state = arg;

	if (var->varno != INDEX_VAR)
		return -1;
	return hgj_pair_column(state, &state->residual_columns, var->varattno);
}

/*
 * Compile what can be of `quals`, an implicitly ANDed list; returns the rest,
 * in its order.  Call when both sides' columns are known.
 */
List *
hgj_residual_init(HgjJoinState *state, List *quals)
{
	List	   *rest = NIL;
	ListCell   *lc;

	hgj_pair_columns_init(&state->residual_columns, state);
	state->residual = palloc0(mul_size(Max(list_length(quals), 1),
									   sizeof(HgjProgram *)));
	foreach(lc, quals)
	{
		HgjProgram *program = hgj_program_compile(lfirst(lc),
												  &state->css.ss.ps,
												  lookup_column, state, false);

		if (program)
			state->residual[state->nresidual++] = program;
		else
			rest = lappend(rest, lfirst(lc));
	}
	if (state->nresidual > 0)
		state->residual_sel = palloc(HGJ_PAIRS * sizeof(uint32));
	return rest;
}

/* Take the candidates of the portion at hand out that a program rejects. */
void
hgj_residual_run(HgjJoinState *state)
{
	HgjMatches *pairs = &state->pairs;
	const uint32 *sel = NULL;
	uint32		n = pairs->n;

	if (state->nresidual == 0 || n == 0)
		return;
	hgj_gather_pairs(state, &state->residual_columns, pairs->probe_rows,
					 pairs->build_rows, n);
	for (int p = 0; p < state->nresidual && n > 0; p++)
	{
		n = hgj_program_filter(state->residual[p],
							   state->residual_columns.vectors,
							   sel, n, state->residual_sel);
		sel = state->residual_sel;
	}
	InstrCountFiltered2(&state->css.ss.ps, pairs->n - n);
	if (n < pairs->n)
		for (uint32 i = 0; i < n; i++)
		{
			pairs->probe_rows[i] = pairs->probe_rows[sel[i]];
			pairs->build_rows[i] = pairs->build_rows[sel[i]];
		}
	pairs->n = n;
}
