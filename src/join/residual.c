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
 *	  the other, until one matches, and at no error of those behind it.  Clauses that can fail are
 *	  run for all of them, until one raises an error; the first match of each row counts.  If the
 *	  row of the one with the error has a match before it, the run goes on behind it.  There must be
 *	  no other clauses, which would have a say in what a match is, and no error may come at once.
 *
 * Memory: the query's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "join/join_state.h"

/* Step 1: compile what can be of the clauses; returns the rest. */
static List *
compile(HgjJoinState *state, List *quals, bool may_fail)
{
	hgj_pair_columns_init(&state->rules.residual_columns, state);
	return hgj_program_compile_quals(quals, &state->js.css.ss.ps, hgj_pair_lookup,
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
	bool		one_per_outer = state->js.semantics.one_per_outer;
	List	   *rest = compile(state, quals, may_fail && !one_per_outer);

	if (rest != NIL && may_fail && one_per_outer)
	{
		rest = compile(state, quals, true);
		state->rules.first_counts = rest == NIL &&
			!hgj_program_raises_at_once(state->rules.residual);
		if (!state->rules.first_counts)
			rest = compile(state, quals, false);
	}
	if (state->rules.residual)
		state->rules.residual_sel = palloc(HGJ_PAIRS * sizeof(uint32));
	if (state->rules.first_counts)
	{
		state->rules.asked = palloc(HGJ_PAIRS * sizeof(uint32));
		state->rules.passed = palloc(HGJ_PAIRS * sizeof(uint32));
	}
	return rest;
}

/* Step 4: has the outer row its one match, of this run or an earlier one? */
static inline bool
has_match(const HgjJoinState *state, uint32 row)
{
	return state->found.taken[row] || state->found.matched[row];
}

/* Step 4: the positions from `from` on of candidates whose outer rows have no match so far. */
static uint32
still_asked(HgjJoinState *state, const uint32 *rows, uint32 from, uint32 n)
{
	uint32		nasked = 0;

	for (uint32 i = from; i < n; i++)
		if (has_match(state, rows[i]))
			state->found.wasted_pairs++;
		else
			state->rules.asked[nasked++] = i;
	return nasked;
}

/* Step 4: of candidates that have passed, add the first of each outer row to the `kept` ones. */
static uint32
keep_first(HgjJoinState *state, const uint32 *rows, uint32 npassed, uint32 kept)
{
	for (uint32 i = 0; i < npassed; i++)
	{
		uint32		position = state->rules.passed[i];

		if (state->found.taken[rows[position]])
			state->found.wasted_pairs++;
		else
		{
			state->found.taken[rows[position]] = true;
			state->rules.residual_sel[kept++] = position;
		}
	}
	return kept;
}

/*
 * Step 4: run the program for n candidates of these outer rows.  It sees *seen of them: fewer, if
 * errors are to wait for rows before them.
 */
static uint32
run_until_matches(HgjJoinState *state, const uint32 *rows, uint32 n, uint32 *seen)
{
	HgjProgram *program = state->rules.residual;
	const HgjVector *const *vectors = state->rules.residual_columns.vectors;
	uint32		nasked = still_asked(state, rows, 0, n);
	uint32		kept = 0;
	uint32		stop;

	*seen = n;
	while (nasked > 0)
	{
		uint32		npassed = hgj_program_filter_until(program, vectors, state->rules.asked, nasked,
													   state->rules.passed, &stop);

		CHECK_FOR_INTERRUPTS();
		kept = keep_first(state, rows, npassed, kept);
		if (stop >= n)
			break;
		if (!has_match(state, rows[stop]))
		{
			if (state->goal.careful && n > 1)
			{
				*seen = stop;
				break;
			}
			/* this raises the error */
			npassed = hgj_program_filter(program, vectors, &stop, 1, state->rules.passed);
			kept = keep_first(state, rows, npassed, kept);
		}
		nasked = still_asked(state, rows, stop + 1, n);
	}
	for (uint32 i = 0; i < kept; i++)
		state->found.taken[rows[state->rules.residual_sel[i]]] = false;
	return kept;
}

/* Step 3: run it for n candidates from `first` on; it sees *seen of them. */
static uint32
run_program(HgjJoinState *state, uint32 first, uint32 n, uint32 *seen)
{
	HgjPairColumns *columns = &state->rules.residual_columns;
	const uint32 *rows = state->found.pairs.probe_rows + first;
	uint32		passed;
	uint32		stop;

	hgj_gather_pairs(columns, rows, state->found.pairs.build_rows + first, n);
	*seen = n;
	if (state->rules.first_counts)
		passed = run_until_matches(state, rows, n, seen);
	else if (!state->goal.careful || n == 1)
		return hgj_program_filter(state->rules.residual, columns->vectors, NULL, n,
								  state->rules.residual_sel);
	else
	{
		passed = hgj_program_filter_until(state->rules.residual, columns->vectors, NULL,
										  n, state->rules.residual_sel, &stop);
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
	InstrCountFiltered2(&state->js.css.ss.ps, Max(seen, n + wasted) - n - wasted);
	if (first > 0 || n < seen)
		for (uint32 i = 0; i < n; i++)
		{
			pairs->probe_rows[i] = pairs->probe_rows[first + sel[i]];
			pairs->build_rows[i] = pairs->build_rows[first + sel[i]];
		}
	pairs->n = n;
}
