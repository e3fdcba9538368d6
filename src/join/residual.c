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
 *	  too, as long as no other stands before them: where PostgreSQL would look at
 *	  every candidate that we look at, or by step 4.
 * 2. For each portion of candidates, gather the columns that the program reads,
 *	  run it, and close the ranks of the pairs.
 * 3. Where not every row may be wanted, a candidate that raises an error stops
 *	  the run.  It and those behind it are left at the end of the arrays, and
 *	  come next, one of them alone, when those before it have been returned.
 * 4. Where one match of an outer row will do, PostgreSQL looks at its candidates one after
 *	  the other, until one matches.  Clauses that can fail are run in rounds, each of which
 *	  has the next candidate of every outer row that has no match so far.  There must be no
 *	  other clauses, which would have a say in what a match is.
 *
 * Memory: the query's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "join/join_state.h"

/* What an outer row has had of the candidates that are run in rounds. */
typedef enum HgjTurn
{
	NO_TURN,
	THIS_ROUND,					/* a candidate of its is looked at */
	HAS_MATCH					/* it has its one match */
} HgjTurn;

/* Step 1: compile what can be of the clauses; returns the rest. */
static List *
compile(HgjJoinState *state, List *quals, bool may_fail)
{
	hgj_pair_columns_init(&state->rules.residual_columns, state);
	return hgj_program_compile_quals(quals, &state->css.ss.ps, hgj_pair_lookup,
									 &state->rules.residual_columns, may_fail,
									 &state->rules.residual);
}

/*
 * Compile what can be of `quals`, an implicitly ANDed list; returns the rest,
 * in its order.  Call when both sides' columns are known.  may_fail: there are no clauses
 * besides that may turn a candidate down
 */
List *
hgj_residual_init(HgjJoinState *state, List *quals, bool may_fail)
{
	List	   *rest = compile(state, quals, false);

	if (rest != NIL && may_fail)
	{
		rest = compile(state, quals, true);
		state->rules.in_rounds = state->semantics.one_per_outer && rest == NIL;
		if (state->semantics.one_per_outer && rest != NIL)
			rest = compile(state, quals, false);
	}
	if (state->rules.residual)
		state->rules.residual_sel = palloc(HGJ_PAIRS * sizeof(uint32));
	if (state->rules.in_rounds)
	{
		state->rules.round = palloc(HGJ_PAIRS * sizeof(uint32));
		state->rules.later = palloc(HGJ_PAIRS * sizeof(uint32));
		state->rules.passes = palloc(HGJ_PAIRS);
	}
	return rest;
}

/* Step 3: which of the n candidates at these positions pass; *stop: where the run has ended. */
static uint32
run_until(HgjJoinState *state, const uint32 *sel, uint32 n, uint32 *stop)
{
	HgjPairColumns *columns = &state->rules.residual_columns;

	*stop = PG_UINT32_MAX;
	if (!state->goal.careful || n == 1)
		return hgj_program_filter(state->rules.residual, columns->vectors, sel, n,
								  state->rules.residual_sel);
	return hgj_program_filter_until(state->rules.residual, columns->vectors, sel,
									n, state->rules.residual_sel, stop);
}

/*
 * Step 4: of the n candidates in `later`, one of each outer row without a match goes to `round`; the
 * others stay, to be looked at after it.  Returns the number of the former, and sets that of the
 * latter.
 */
static uint32
next_round(HgjJoinState *state, const uint32 *rows, uint32 n, uint32 *nlater)
{
	uint32	   *later = state->rules.later;
	uint32		nround = 0;

	*nlater = 0;
	for (uint32 i = 0; i < n; i++)
	{
		uint32		row = rows[later[i]];
		uint8	   *turn = &state->found.turns[row];

		if (*turn == THIS_ROUND)
			later[(*nlater)++] = later[i];
		else if (*turn == HAS_MATCH || state->found.matched[row])
			state->found.wasted_pairs++;
		else
		{
			*turn = THIS_ROUND;
			state->rules.round[nround++] = later[i];
		}
	}
	return nround;
}

/* The outer rows of a round that has been run, of whose candidates so many have passed. */
static void
end_round(HgjJoinState *state, const uint32 *rows, uint32 nround, uint32 npassed)
{
	for (uint32 i = 0; i < nround; i++)
		state->found.turns[rows[state->rules.round[i]]] = NO_TURN;
	for (uint32 i = 0; i < npassed; i++)
	{
		state->rules.passes[state->rules.residual_sel[i]] = true;
		state->found.turns[rows[state->rules.residual_sel[i]]] = HAS_MATCH;
	}
}

/*
 * Step 4: run the program for n candidates of these outer rows, until one of them raises an error,
 * which is then the *seen-th.  Candidates behind it may have been looked at, and are so again.
 */
static uint32
run_rounds(HgjJoinState *state, const uint32 *rows, uint32 n, uint32 *seen)
{
	bool	   *passes = state->rules.passes;
	uint32		nlater = n;
	uint32		passed = 0;

	*seen = n;
	memset(passes, false, n);
	for (uint32 i = 0; i < n; i++)
		state->rules.later[i] = i;
	while (nlater > 0)
	{
		uint32		nround = next_round(state, rows, nlater, &nlater);
		uint32		stop;

		CHECK_FOR_INTERRUPTS();
		if (nround == 0)
			break;				/* all others have matched */
		end_round(state, rows, nround, run_until(state, state->rules.round, nround, &stop));
		*seen = Min(*seen, stop);
		while (nlater > 0 && state->rules.later[nlater - 1] >= *seen)
			nlater--;
	}
	for (uint32 i = 0; i < n; i++)
		state->found.turns[rows[i]] = NO_TURN;
	for (uint32 i = 0; i < *seen; i++)
		if (passes[i])
			state->rules.residual_sel[passed++] = i;
	return passed;
}

/* Step 3: run it for n candidates from `first` on; it sees *seen of them. */
static uint32
run_program(HgjJoinState *state, uint32 first, uint32 n, uint32 *seen)
{
	const uint32 *rows = state->found.pairs.probe_rows + first;
	uint32		passed;
	uint32		stop;

	hgj_gather_pairs(&state->rules.residual_columns, rows,
					 state->found.pairs.build_rows + first, n);
	if (state->rules.in_rounds)
		passed = run_rounds(state, rows, n, seen);
	else
	{
		passed = run_until(state, NULL, n, &stop);
		*seen = Min(n, stop);
	}
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
	uint32		wasted = state->found.wasted_pairs;
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
	wasted = state->found.wasted_pairs - wasted;
	InstrCountFiltered2(&state->css.ss.ps, Max(seen, n + wasted) - n - wasted);
	if (first > 0 || n < seen)
		for (uint32 i = 0; i < n; i++)
		{
			pairs->probe_rows[i] = pairs->probe_rows[first + sel[i]];
			pairs->build_rows[i] = pairs->build_rows[first + sel[i]];
		}
	pairs->n = n;
}
