/*-------------------------------------------------------------------------
 *
 * program.c
 *	  Run a program: a filter narrows a selection of rows, clause by clause; an
 *	  expression makes a vector.
 *
 * 1. Rows are taken in chunks, so that what is computed for one step is still in
 *	  cache when the next one reads it.
 * 2. A filter hands the rows that have passed one clause to the next.
 * 3. When a row of a chunk raises an error, the chunk is run again row by row:
 *	  the error is then that of the first such row, and of the first function
 *	  that fails for it, as in PostgreSQL.  Or the rows before it are all that
 *	  is returned, and the error is left to whoever runs that row again.  That
 *	  is for loops, which only say that they failed, and for plain functions, whose
 *	  errors are put aside (program_errors.c).
 * 4. A function that is not plain (program_call.c) raises its error itself.  That
 *	  of the first row is the first to come, unless something else in the program
 *	  can raise one, too: the rows are run one at a time from the start then.
 * 5. Nor is an expression evaluated for a value that it has not seen, if it could
 *	  raise an error too early (program_values.c).  The rows are run one by one as
 *	  in 3, though it may turn out that none of them fails.
 *
 * Everything is in the program's memory context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "expr/program_private.h"
#include "miscadmin.h"
#include "utils/memutils.h"

void
hgj_program_start(HgjProgram *program, ExprContext *econtext)
{
	ListCell   *lc;

	program->econtext = econtext;
	program->executions++;
	for (int i = 0; i < program->nconstants; i++)
	{
		HgjStep    *step = program->constants[i];

		if (step->constant->state == NULL)
			continue;
		step->constant->ready = false;
		step->spread = false;
		if (step->set)
			hgj_set_reset(step->set);
		if (step->texts)
			hgj_text_set_reset(step->texts);
	}
	foreach(lc, program->by_values)
		hgj_by_value_start(((HgjStep *) lfirst(lc))->by_value);
	for (int i = 0; i < program->nclauses; i++)
		if (program->clauses[i].nbounds > 0 ||
			program->clauses[i].test == HGJ_TEST_MEMBER)
			program->clauses[i].prepared = false;
}

/* Is the input read by this step or one below it in any other way? */
static bool
reads_numerics(const HgjStep *step, int input, int scale)
{
	check_stack_depth();
	if (step->op == HGJ_STEP_INPUT)
		return step->input == input;
	if (step->op == HGJ_STEP_DECIMAL && step->args[0]->op == HGJ_STEP_INPUT)
		return step->args[0]->input == input && step->scale != scale;
	for (int i = 0; i < step->nargs; i++)
		if (reads_numerics(step->args[i], input, scale))
			return true;
	return false;
}

bool
hgj_program_takes_decimals(const HgjProgram *program, int input, int scale)
{
	if (program->root && reads_numerics(program->root, input, scale))
		return false;
	for (int c = 0; c < program->nclauses; c++)
	{
		ListCell   *lc;

		if (reads_numerics(program->clauses[c].step, input, scale))
			return false;
		foreach(lc, program->clauses[c].merged)
			if (reads_numerics(lfirst(lc), input, scale))
				return false;
	}
	for (int d = 0; d < program->ndecimals; d++)
		if (reads_numerics(program->decimals[d].step, input, scale))
			return false;
	return true;
}

/* Step 4: could a call raise the error of a row that is not the first to fail? */
static bool
order_matters(const HgjProgram *program)
{
	return program->calls_at_once &&
		(program->nraising > 1 || hgj_constants_raise(program));
}

/*
 * Run each of the rows alone through the filter from this clause on.  The first
 * row that fails raises its error, or if `stop` is given becomes *stop; those
 * before it that pass are put out then, and their number is returned.
 */
static uint32
filter_singly(HgjProgram *program, int first_clause, const HgjRows *rows,
			  uint32 *out, uint32 *stop)
{
	uint32		passed = 0;

	program->single = (stop == NULL);
	for (uint32 i = 0; i < rows->n; i++)
	{
		uint32		row = rows->sel ? rows->sel[i] : rows->first + i;
		HgjRows		one = {.sel = &row, .n = 1};
		uint32		same;
		int			c = first_clause;

		program->failed = false;
		while (c < program->nclauses &&
			   hgj_clause_run(program, &program->clauses[c], &one, &same) > 0)
			c++;
		if (program->failed)
		{
			*stop = row;
			return passed;
		}
		if (c == program->nclauses)
			out[passed++] = row;
	}
	program->single = false;
	return passed;
}

static uint32
filter_chunk(HgjProgram *program, const HgjRows *chunk, uint32 *out,
			 uint32 *stop)
{
	HgjRows		rows = *chunk;

	if (program->numerics)
		MemoryContextReset(program->numerics);
	program->undecided = false;
	if (order_matters(program))
		return filter_singly(program, 0, chunk, out, stop);
	for (int c = 0; c < program->nclauses && rows.n > 0; c++)
	{
		uint32		n = hgj_clause_run(program, &program->clauses[c], &rows,
									   out);

		if (unlikely(program->failed))
		{
			n = filter_singly(program, c, &rows, out, stop);
			if (!program->failed && !program->undecided)
				elog(ERROR, "a filter of a HashGraphJoin did not fail again");
			return n;
		}
		rows.sel = out;
		rows.n = n;
	}
	return rows.n;
}

/* The chunk that begins with the first'th of n rows. */
static inline HgjRows
chunk_of(const uint32 *sel, uint32 first, uint32 n)
{
	return (HgjRows) {
		.sel = sel ? sel + first : NULL,
		.first = first,
		.n = Min(HGJ_CHUNK, n - first)
	};
}

/* Both public functions: with stop NULL, errors are raised. */
static inline uint32
filter_rows(HgjProgram *program, const HgjVector *const *inputs,
			const uint32 *sel, uint32 n, uint32 *out, uint32 *stop)
{
	uint32		passed = 0;

	Assert(stop == NULL || !program->calls_at_once);
	program->inputs = inputs;
	program->failed = program->single = false;
	program->until = stop != NULL;
	program->runs++;
	for (uint32 first = 0; first < n; first += HGJ_CHUNK)
	{
		HgjRows		chunk = chunk_of(sel, first, n);

		CHECK_FOR_INTERRUPTS();
		passed += filter_chunk(program, &chunk, out + passed, stop);
		if (program->failed)
			break;
	}
	return passed;
}

uint32
hgj_program_filter(HgjProgram *program, const HgjVector *const *inputs,
				   const uint32 *sel, uint32 n, uint32 *out)
{
	return filter_rows(program, inputs, sel, n, out, NULL);
}

uint32
hgj_program_filter_until(HgjProgram *program, const HgjVector *const *inputs,
						 const uint32 *sel, uint32 n, uint32 *out,
						 uint32 *stop)
{
	*stop = PG_UINT32_MAX;
	return filter_rows(program, inputs, sel, n, out, stop);
}

/*
 * Would running it for many rows raise the error of one, or evaluate what only
 * one of them may come to?
 */
bool
hgj_program_raises_at_once(const HgjProgram *program)
{
	return program->calls_at_once || hgj_constants_raise(program);
}

/* The NULL bytes of a chunk, as bits. */
static void
pack_validity(uint64 *validity, const uint8 *nulls, uint32 n)
{
	for (uint32 i = 0; i < n; i += 64)
	{
		uint64		word = 0;
		uint32		m = Min(64, n - i);

		if (nulls == NULL)
			word = ~UINT64CONST(0);
		else
			for (uint32 j = 0; j < m; j++)
				word |= (uint64) (nulls[i + j] == 0) << j;
		validity[i / 64] = word;
	}
}

/* What the step has made of n rows, as the result's from `first` on. */
static void
put_values(const HgjStep *step, HgjVector *vector, HgjDecimalRoot *decimals,
		   uint32 first, uint32 n)
{
	memcpy((char *) vector->values + (Size) first * vector->width, step->values,
		   (Size) n * vector->width);
	if (decimals == NULL)
		return;
	if (step->displays == NULL)
		memset(decimals->displays + first, step->display, n);
	else
	{
		memcpy(decimals->displays + first, step->displays, n);
		decimals->decimals.displays = decimals->displays;
	}
}

/*
 * An expression, or (decimals not NULL) one of several of numerics, for a chunk whose rows
 * are those of the result from `first` on.
 */
static void
eval_root(HgjProgram *program, HgjStep *step, HgjVector *vector,
		  HgjDecimalRoot *decimals, const HgjRows *rows, uint32 first)
{
	const uint8 *nulls = NULL;
	uint8		one_by_one[HGJ_CHUNK];
	bool		singly = order_matters(program);

	program->undecided = false;
	if (!singly)
	{
		hgj_step_run(program, step, rows);
		nulls = step->nulls;
	}
	if (singly || unlikely(program->failed))
	{
		/* a row that fails raises its error */
		program->single = true;
		program->failed = false;
		for (uint32 i = 0; i < rows->n; i++)
		{
			uint32		row = rows->sel ? rows->sel[i] : rows->first + i;
			HgjRows		one = {.sel = &row, .n = 1};

			hgj_step_run(program, step, &one);
			put_values(step, vector, decimals, first + i, 1);
			one_by_one[i] = step->nulls && step->nulls[0];
		}
		program->single = false;
		if (!singly && !program->undecided)
			elog(ERROR, "an expression of a HashGraphJoin did not fail again");
		nulls = memchr(one_by_one, 1, rows->n) ? one_by_one : NULL;
	}
	else
		put_values(step, vector, decimals, first, rows->n);
	pack_validity(vector->validity + first / 64, nulls, rows->n);
	vector->has_nulls |= nulls != NULL;
}

/* A result is made: what the last one consisted of goes. */
static void
begin_eval(HgjProgram *program, const HgjVector *const *inputs)
{
	if (program->numerics)
		MemoryContextReset(program->numerics);
	program->inputs = inputs;
	program->failed = program->single = program->until = false;
	program->runs++;
}

const HgjVector *
hgj_program_eval(HgjProgram *program, const HgjVector *const *inputs,
				 const uint32 *sel, uint32 n)
{
	HgjVector  *result = &program->result.vector;
	HgjStep    *root = program->root;

	/* whole chunks of NULL bits are written, and all that are read */
	hgj_buffer_reserve(program->context, &program->result, root->width,
					   Max(n, HGJ_CHUNK));
	begin_eval(program, inputs);
	for (uint32 first = 0; first < n; first += HGJ_CHUNK)
	{
		HgjRows		chunk = chunk_of(sel, first, n);

		CHECK_FOR_INTERRUPTS();
		eval_root(program, root, result, NULL, &chunk, first);
	}
	return result;
}

/* Room for n rows in each of the results. */
static void
begin_decimals(HgjProgram *program, uint32 n)
{
	for (int d = 0; d < program->ndecimals; d++)
	{
		HgjDecimalRoot *root = &program->decimals[d];

		hgj_buffer_reserve(program->context, &root->buffer, sizeof(int64),
						   Max(n, HGJ_CHUNK));
		if (root->room < n)
		{
			if (root->displays)
				pfree(root->displays);
			root->displays = NULL;
			root->displays = MemoryContextAlloc(program->context, n);
			root->room = n;
		}
		root->decimals.vector = &root->buffer.vector;
		root->decimals.displays = NULL;
	}
}

void
hgj_program_eval_decimals(HgjProgram *program, const HgjVector *const *inputs,
						  const uint32 *sel, uint32 n)
{
	begin_decimals(program, n);
	begin_eval(program, inputs);
	for (uint32 first = 0; first < n; first += HGJ_CHUNK)
	{
		HgjRows		chunk = chunk_of(sel, first, n);

		CHECK_FOR_INTERRUPTS();
		chunk.whole = true;
		program->chunk++;
		for (int d = 0; d < program->ndecimals; d++)
		{
			HgjDecimalRoot *root = &program->decimals[d];

			eval_root(program, root->step, &root->buffer.vector, root, &chunk, first);
		}
	}
}

const HgjDecimals *
hgj_program_decimals(const HgjProgram *program, int place)
{
	return &program->decimals[place].decimals;
}

/*
 * One step of a program for the rows of a chunk, of which nobody knows whether they will
 * be asked for: its values are in the step then.  False: a row may raise an error.
 */
bool
hgj_program_run_step(HgjProgram *program, HgjStep *step, const HgjVector *const *inputs,
					 const HgjRows *rows)
{
	begin_eval(program, inputs);
	program->until = true;
	program->undecided = false;
	program->chunk++;
	hgj_step_run(program, step, rows);
	program->until = false;
	return !program->failed;
}

Size
hgj_program_result_bytes(const HgjProgram *program)
{
	return program->numerics ?
		program->numerics->mem_allocated - program->numerics_empty : 0;
}
