/*-------------------------------------------------------------------------
 *
 * program_bounds.c
 *	  Which values of its inputs a filter lets pass at most, so that its user can
 *	  leave out rows that are known to have others.
 *
 * 1. Comparisons of a column of signed integers with constants, and IN, have been
 *	  made into intervals when the first row came (program_clause.c,
 *	  program_set.c); those of numerics into intervals of decimals
 *	  (program_decimal_run.c).
 * 2. No constant is evaluated here: there may be no row for which PostgreSQL would.
 *
 * No memory, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "expr/program_private.h"

/* The order of the others is not that of signed integers of their width. */
static bool
is_signed(HgjKind kind)
{
	return kind == HGJ_KIND_I2 || kind == HGJ_KIND_I4 || kind == HGJ_KIND_I8;
}

/* A comparison of a column of numerics with a constant; false: there is no bound. */
static bool
bound_of_decimals(const HgjStep *step, HgjProgramBound *bound)
{
	const HgjStep *arg = step->nargs > 0 ? step->args[0] : NULL;

	if (step->op != HGJ_STEP_DECIMAL_RANGE || !step->constant->ready ||
		step->constant->isnull || !step->spread || step->invert ||
		arg->op != HGJ_STEP_DECIMAL || arg->args[0]->op != HGJ_STEP_INPUT)
		return false;
	bound->input = arg->args[0]->input;
	bound->scale = arg->scale;
	bound->low = step->low;
	bound->high = step->high;
	return true;
}

static bool
bound_of_clause(const HgjClause *clause, HgjProgramBound *bound)
{
	const HgjSet *set = clause->step->set;

	bound->values = NULL;
	if (clause->test == HGJ_TEST_STEP)
		return bound_of_decimals(clause->step, bound);
	if (!clause->prepared || !is_signed(clause->kind))
		return false;
	bound->input = clause->input;
	bound->scale = -1;
	if (clause->never)
	{
		bound->low = 1;
		bound->high = 0;
		return true;
	}
	if (clause->test == HGJ_TEST_RANGE && !clause->invert)
	{
		bound->low = clause->low;
		bound->high = (int64) ((uint64) clause->low + clause->span);
		return true;
	}
	if (clause->test != HGJ_TEST_MEMBER || clause->step->invert || set->nkeys == 0)
		return false;
	bound->low = set->low;
	bound->high = (int64) ((uint64) set->low + set->span);
	bound->values = set->keys;
	bound->nvalues = set->nkeys;
	return true;
}

int
hgj_program_bounds(const HgjProgram *program, HgjProgramBound *bounds, int most)
{
	int			n = 0;

	for (int c = 0; c < program->nclauses && n < most; c++)
		n += bound_of_clause(&program->clauses[c], &bounds[n]);
	return n;
}
