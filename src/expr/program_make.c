/*-------------------------------------------------------------------------
 *
 * program_make.c
 *	  Programs from expressions: the public functions that compile.
 *
 * 1. An expression becomes a tree of steps (program_compile.c), which is one
 *	  program; of a plan's quals all that can become one do.
 * 2. A filter becomes clauses: a plan's quals, or the arms of an AND.  They
 *	  differ in one point.  ExecQual() drops a row at the first clause of a list
 *	  that is NULL; AND looks at the arms that follow, which may raise an error.
 *	  So an AND is taken apart only as far as its arms cannot.
 * 3. What is compiled runs for all rows before any other clause of a plan's quals
 *	  does for the first.  So nothing that stands behind a clause with an effect (it
 *	  calls nextval()) is compiled, which would keep rows from it; nor what might
 *	  raise an error in front of one, because rows before the one that fails have
 *	  their effects in PostgreSQL.
 * 4. A clause that compares a column with constants may do its part in an
 *	  earlier one over that column, if all in between cannot fail.
 *
 * Everything is palloc'd in the current context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "expr/demand.h"
#include "expr/program_private.h"
#include "utils/memutils.h"

/* Can the arms of an AND be clauses?  See step 2 of the head comment. */
static bool
can_split(const HgjStep *step)
{
	if (step->op != HGJ_STEP_AND)
		return false;
	for (int i = 1; i < step->nargs; i++)
		if (step->args[i]->lazy)
			return false;
	return true;
}

/* Can the clause do its part in one that stands before it? */
static bool
merge_clause(HgjProgram *program, const HgjClause *clause)
{
	for (int i = program->nclauses - 1; i >= 0; i--)
	{
		if (hgj_clause_merge(&program->clauses[i], clause))
			return true;
		if (program->clauses[i].step->lazy)
			return false;		/* it would be run for fewer rows then */
	}
	return false;
}

static void
add_clauses(HgjProgram *program, HgjStep *step)
{
	HgjClause	clause = {.step = step};

	if (can_split(step))
	{
		for (int i = 0; i < step->nargs; i++)
			add_clauses(program, step->args[i]);
		return;
	}
	hgj_clause_recognize(&clause);
	if (merge_clause(program, &clause))
		return;
	program->clauses = repalloc(program->clauses,
								(program->nclauses + 1) * sizeof(HgjClause));
	program->clauses[program->nclauses++] = clause;
}

/* Compile one expression; NULL leaves nothing behind. */
static HgjStep *
compile_root(HgjCompiler *c, Expr *expr, bool may_fail)
{
	int			nconstants = list_length(c->constants);
	int			nby_values = list_length(c->by_values);
	HgjStep    *step = hgj_numeric_step(hgj_step_compile(c, expr));

	if (step && (may_fail || !step->lazy))
		return step;
	c->constants = list_truncate(c->constants, nconstants);
	c->by_values = list_truncate(c->by_values, nby_values);
	return NULL;
}

/* Which of the steps may raise an error, given their arguments? */
static void
count_raising(HgjProgram *program, const HgjStep *step)
{
	int			before = program->nraising;

	program->calls_at_once |= step->raises && step->at_once;
	program->nraising += step->raises || step->raise;
	for (int i = 0; i < step->nargs; i++)
		count_raising(program, step->args[i]);
	if (step->by_value && step->by_value->may_raise && program->nraising == before)
		program->nraising++;
}

/* A program of these steps, the clauses of a filter if they are boolean. */
static HgjProgram *
make_program(HgjCompiler *c, List *roots)
{
	HgjProgram *program = palloc0(sizeof(HgjProgram));
	ListCell   *lc;

	program->context = CurrentMemoryContext;
	program->scratch = AllocSetContextCreate(CurrentMemoryContext,
											 "HashGraphJoin constants",
											 ALLOCSET_SMALL_SIZES);
	program->calls = AllocSetContextCreate(CurrentMemoryContext,
										   "HashGraphJoin calls",
										   ALLOCSET_DEFAULT_SIZES);
	if (list_length(roots) == 1)
		program->root = linitial(roots);
	program->clauses = palloc(sizeof(HgjClause));
	foreach(lc, roots)
	{
		HgjStep    *step = lfirst(lc);

		count_raising(program, step);
		if (step->kind == HGJ_KIND_U1)
			add_clauses(program, step);
	}

	program->by_values = c->by_values;
	program->nconstants = list_length(c->constants);
	program->constants = palloc(Max(program->nconstants, 1) * sizeof(HgjStep *));
	foreach(lc, c->constants)
		program->constants[foreach_current_index(lc)] = lfirst(lc);
	return program;
}

HgjProgram *
hgj_program_compile(Expr *expr, PlanState *parent, HgjInputLookup lookup,
					void *arg)
{
	HgjCompiler c = {.by_value = hgj_by_value_compile, .parent = parent, .lookup = lookup,
	.arg = arg};
	HgjStep    *root = compile_root(&c, expr, true);

	if (root && root->op == HGJ_STEP_CALL && !hgj_call_pays(root))
		return NULL;
	return root ? make_program(&c, list_make1(root)) : NULL;
}

HgjProgram *
hgj_program_compile_decimals(List *exprs, PlanState *parent, HgjInputLookup lookup,
							 void *arg, int *places)
{
	HgjCompiler c = {.by_value = hgj_by_value_compile, .parent = parent, .lookup = lookup,
	.arg = arg, .share = true};
	List	   *roots = NIL;
	HgjProgram *program;
	ListCell   *lc;

	foreach(lc, exprs)
	{
		HgjStep    *root = NULL;

		if (hgj_is_decimal(parent, lfirst(lc)))
			root = hgj_decimal_compile(&c, lfirst(lc));
		places[foreach_current_index(lc)] = root ? list_length(roots) : -1;
		if (root)
			roots = lappend(roots, root);
	}
	if (roots == NIL)
		return NULL;
	program = make_program(&c, roots);
	program->root = NULL;
	program->ndecimals = list_length(roots);
	program->decimals = palloc0(program->ndecimals * sizeof(HgjDecimalRoot));
	foreach(lc, roots)
	{
		HgjDecimalRoot *root = &program->decimals[foreach_current_index(lc)];

		root->step = lfirst(lc);
		root->decimals.scale = root->step->scale;
		root->decimals.display = root->step->display;
	}
	return program;
}

/* Step 3: how many of the quals stand in front of the first one with an effect? */
static int
count_quiet(List *quals, EState *estate)
{
	ListCell   *lc;

	foreach(lc, quals)
		if (hgj_has_effects(lfirst(lc), estate))
			return foreach_current_index(lc);
	return list_length(quals);
}

List *
hgj_program_compile_quals(List *quals, PlanState *parent,
						  HgjInputLookup lookup, void *arg, bool may_fail,
						  HgjProgram **program)
{
	HgjCompiler c = {.by_value = hgj_by_value_compile, .parent = parent, .lookup = lookup,
	.arg = arg};
	List	   *roots = NIL;
	List	   *rest = NIL;
	int			nquiet = count_quiet(quals, parent->state);
	ListCell   *lc;

	may_fail = may_fail && nquiet == list_length(quals);
	foreach(lc, quals)
	{
		HgjStep    *root = NULL;

		if (foreach_current_index(lc) < nquiet)
			root = compile_root(&c, lfirst(lc), may_fail && rest == NIL);
		if (root)
			roots = lappend(roots, root);
		else
			rest = lappend(rest, lfirst(lc));
	}
	*program = roots ? make_program(&c, roots) : NULL;
	return rest;
}
