/*-------------------------------------------------------------------------
 *
 * program_decimal_run.c
 *	  Steps over decimals (program_decimal.c), for the rows of a chunk.
 *
 * 1. As long as all values are decimals of the display scale that is known, and no
 *	  result overflows, a step is the loop that 64-bit integers have.
 * 2. Otherwise the chunk is done again row by row: in 128 bits, which sums and
 *	  products of two 64-bit integers fit.  A result that does not fit 64 bits
 *	  becomes a numeric, which has the digits and the display scale that PostgreSQL
 *	  would give it.
 * 3. Where an operand is a numeric, PostgreSQL's function computes with both.  When
 *	  it raises an error, that is put aside as for functions that are called
 *	  (program_errors.c).
 * 4. A comparison with a constant is true of a range of integers.  They are those
 *	  for which it is true of their multiples of the unit: x < c if x is below
 *	  c / unit, rounded up.
 *
 * Numerics that steps make live in a context of the program's, until its next chunk,
 * or with a result until the next one.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "expr/program_private.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/numeric.h"

/* Where numerics are made, and other values by reference. */
MemoryContext
hgj_program_numerics(HgjProgram *program)
{
	if (program->numerics == NULL)
	{
		program->numerics = AllocSetContextCreate(program->context,
												  "HashGraphJoin numerics",
												  ALLOCSET_DEFAULT_SIZES);
		program->numerics_empty = program->numerics->mem_allocated;
	}
	return program->numerics;
}

static inline int
display_of(const HgjStep *step, uint32 i)
{
	return step->displays ? step->displays[i] : step->display;
}

/* The i-th value of decimals as a numeric. */
static Datum
numeric_of(const HgjStep *step, uint32 i)
{
	int			display = display_of(step, i);
	int64		value = ((const int64 *) step->values)[i];

	if (display == HGJ_NO_DECIMAL)
		return (Datum) value;
	return hgj_decimal_numeric(value, step->scale, display);
}

/* Step 2: a result, with its display scale. */
static inline void
put_result(HgjStep *step, uint32 i, int128 value, int display)
{
	int64	   *out = step->value_buffer;

	if (likely(value == (int64) value))
	{
		out[i] = (int64) value;
		step->display_buffer[i] = display;
	}
	else
	{
		out[i] = (int64) hgj_decimal_numeric(value, step->scale, display);
		step->display_buffer[i] = HGJ_NO_DECIMAL;
	}
}

/* Step 3. */
static void
put_numeric(HgjStep *step, uint32 i, const HgjStep *a, const HgjStep *b)
{
	Datum		result;

	CHECK_FOR_INTERRUPTS();
	if (step->nargs == 1)
		result = DirectFunctionCall1(step->function, numeric_of(a, i));
	else
		result = DirectFunctionCall2(step->function, numeric_of(a, i),
									 numeric_of(b, i));
	((int64 *) step->value_buffer)[i] = (int64) result;
	step->display_buffer[i] = HGJ_NO_DECIMAL;
}

/* Steps 2 and 3: arithmetic row by row. */
static void
compute_rows(HgjProgram *program, HgjStep *step, uint32 n)
{
	const HgjStep *a = step->args[0];
	const HgjStep *b = step->nargs > 1 ? step->args[1] : a;

	for (uint32 i = 0; i < n; i++)
	{
		int128		left = ((const int64 *) a->values)[i];
		int128		right = ((const int64 *) b->values)[i];
		int			of_left = display_of(a, i);
		int			of_right = display_of(b, i);

		step->display_buffer[i] = step->display;
		if (step->nulls && step->nulls[i])
			continue;
		if (of_left == HGJ_NO_DECIMAL || of_right == HGJ_NO_DECIMAL)
			put_numeric(step, i, a, b);
		else
			switch (step->code)
			{
				case HGJ_ADD:
					put_result(step, i, left + right, Max(of_left, of_right));
					break;
				case HGJ_SUB:
					put_result(step, i, left - right, Max(of_left, of_right));
					break;
				case HGJ_MUL:
					put_result(step, i, left * right, of_left + of_right);
					break;
				case HGJ_NEG:
					put_result(step, i, -left, of_left);
					break;
				default:
					put_result(step, i, left < 0 ? -left : left, of_left);
					break;
			}
	}
}

static void
run_arithmetic(HgjProgram *program, HgjStep *step, uint32 n)
{
	HgjLoop		loop = hgj_arith_loops[step->code][HGJ_KIND_I8];
	const HgjStep *a = step->args[0];
	const HgjStep *b = step->nargs > 1 ? step->args[1] : a;
	MemoryContext old;

	step->nulls = hgj_either_null(a->nulls, b->nulls, n, step->null_buffer);
	if (a->displays == NULL && b->displays == NULL &&
		!loop(step->value_buffer, a->values, b->values, step->nulls, n))
		return;
	old = MemoryContextSwitchTo(hgj_program_numerics(program));
	hgj_call_carefully(program, step, n, compute_rows);
	MemoryContextSwitchTo(old);
	step->displays = step->display_buffer;
}

/* Numerics of columns as decimals, which they may be already. */
static void
run_column(const HgjProgram *program, HgjStep *step, uint32 n)
{
	const HgjStep *arg = step->args[0];

	step->nulls = arg->nulls;
	Assert(arg->op != HGJ_STEP_INPUT || !program->inputs[arg->input]->decimals ||
		   program->inputs[arg->input]->scale == step->scale);
	if (arg->op == HGJ_STEP_INPUT && program->inputs[arg->input]->decimals)
		step->values = arg->values;
	else if (hgj_decimals_read(arg->values, arg->nulls, n, step->scale,
						  step->value_buffer, step->display_buffer))
		step->displays = step->display_buffer;
}

/* True: one of them overflows. */
static bool
multiply(const int64 *values, int64 factor, const uint8 *nulls, uint32 n, int64 *out)
{
	bool		any = false;

	for (uint32 i = 0; i < n; i++)
		any |= __builtin_mul_overflow(values[i], factor, &out[i]) &&
			!(nulls && nulls[i]);
	return any;
}

static void
run_align(HgjProgram *program, HgjStep *step, uint32 n)
{
	const HgjStep *arg = step->args[0];
	const int64 *values = arg->values;
	MemoryContext old;

	step->nulls = arg->nulls;
	if (arg->displays == NULL &&
		!multiply(values, step->factor, arg->nulls, n, step->value_buffer))
		return;
	old = MemoryContextSwitchTo(hgj_program_numerics(program));
	for (uint32 i = 0; i < n; i++)
	{
		int			display = display_of(arg, i);

		step->display_buffer[i] = display;
		((int64 *) step->value_buffer)[i] = values[i];
		if (display != HGJ_NO_DECIMAL && !(arg->nulls && arg->nulls[i]))
			put_result(step, i, (int128) values[i] * step->factor, display);
	}
	MemoryContextSwitchTo(old);
	step->displays = step->display_buffer;
}

/* A row of which one operand is no decimal. */
static bool
compare_numerics(const HgjStep *step, Datum a, Datum b)
{
	CHECK_FOR_INTERRUPTS();
	return DatumGetBool(DirectFunctionCall2(step->function, a, b));
}

static void
run_compare(HgjProgram *program, HgjStep *step, uint32 n)
{
	const HgjStep *a = step->args[0];
	const HgjStep *b = step->args[1];
	uint8	   *out = step->value_buffer;
	MemoryContext old;

	step->nulls = hgj_either_null(a->nulls, b->nulls, n, step->null_buffer);
	hgj_compare_loops[HGJ_KIND_I8][step->code] (out, a->values, b->values, NULL,
												n);
	if (a->displays == NULL && b->displays == NULL)
		return;
	old = MemoryContextSwitchTo(hgj_program_numerics(program));
	for (uint32 i = 0; i < n; i++)
		if ((display_of(a, i) == HGJ_NO_DECIMAL ||
			 display_of(b, i) == HGJ_NO_DECIMAL) &&
			!(step->nulls && step->nulls[i]))
			out[i] = compare_numerics(step, numeric_of(a, i), numeric_of(b, i));
	MemoryContextSwitchTo(old);
}

/* Step 4. */
static void
find_range(HgjStep *step, Datum constant)
{
	bool		exact;
	int128		floor = hgj_decimal_floor(constant, step->args[0]->scale, &exact);
	int128		low;
	int128		high;

	hgj_comparison_range(step->code, floor, exact, &low, &high);
	low = Max(low, PG_INT64_MIN);
	high = Min(high, PG_INT64_MAX);
	step->low = low > high ? 1 : (int64) low;
	step->high = low > high ? 0 : (int64) high;
	step->invert = step->code == HGJ_NE;
}

/* When the first row of an execution comes: `spread` says that this is done. */
static void
prepare_range(HgjProgram *program, HgjStep *step)
{
	MemoryContext old = MemoryContextSwitchTo(program->scratch);

	find_range(step, step->constant->value);
	step->spread = true;
	MemoryContextSwitchTo(old);
}

/* Have `low` and `high` of a RANGE ready; false: it compares with NULL. */
bool
hgj_decimal_range(HgjProgram *program, HgjStep *step)
{
	hgj_constant_fetch(program, step->constant);
	if (!step->constant->isnull && !step->spread)
		prepare_range(program, step);
	return !step->constant->isnull;
}

static void
run_range(HgjProgram *program, HgjStep *step, uint32 n)
{
	const HgjStep *arg = step->args[0];
	const int64 *values = arg->values;
	uint8	   *pg_restrict out = step->value_buffer;
	int64		low;
	int64		high;
	uint8		invert;
	MemoryContext old;

	if (hgj_constant_nulls(program, step, n))
		return;
	if (!step->spread)
		prepare_range(program, step);
	low = step->low;
	high = step->high;
	invert = step->invert;
	for (uint32 i = 0; i < n; i++)
		out[i] = ((values[i] >= low) & (values[i] <= high)) ^ invert;
	step->nulls = arg->nulls;
	if (arg->displays == NULL)
		return;
	old = MemoryContextSwitchTo(hgj_program_numerics(program));
	for (uint32 i = 0; i < n; i++)
		if (arg->displays[i] == HGJ_NO_DECIMAL && !(arg->nulls && arg->nulls[i]))
			out[i] = compare_numerics(step, (Datum) values[i], step->constant->value);
	MemoryContextSwitchTo(old);
}

static void
run_numeric(HgjProgram *program, HgjStep *step, uint32 n)
{
	const HgjStep *arg = step->args[0];
	Datum	   *out = step->value_buffer;
	MemoryContext old = MemoryContextSwitchTo(hgj_program_numerics(program));

	step->nulls = arg->nulls;
	for (uint32 i = 0; i < n; i++)
		out[i] = arg->nulls && arg->nulls[i] ? (Datum) 0 : numeric_of(arg, i);
	MemoryContextSwitchTo(old);
}

/* The steps that only decimals have, whose arguments have been run. */
void
hgj_decimal_run(HgjProgram *program, HgjStep *step, uint32 n)
{
	switch (step->op)
	{
		case HGJ_STEP_DECIMAL:
			run_column(program, step, n);
			break;
		case HGJ_STEP_DECIMAL_INTEGER:
			step->values = step->args[0]->values;
			step->nulls = step->args[0]->nulls;
			break;
		case HGJ_STEP_DECIMAL_ARITHMETIC:
			run_arithmetic(program, step, n);
			break;
		case HGJ_STEP_DECIMAL_ALIGN:
			run_align(program, step, n);
			break;
		case HGJ_STEP_DECIMAL_COMPARE:
			run_compare(program, step, n);
			break;
		case HGJ_STEP_DECIMAL_RANGE:
			run_range(program, step, n);
			break;
		default:
			run_numeric(program, step, n);
			break;
	}
}

/*
 * The display scales of a branch of CASE or COALESCE, for the m of the step's n
 * rows that `index` names.
 */
void
hgj_decimal_take(HgjStep *step, const HgjStep *branch, const uint32 *index, uint32 m,
				 uint32 n)
{
	if (!step->decimal)
		return;
	if (step->displays == NULL)
	{
		if (branch->displays == NULL && branch->display == step->display)
			return;
		memset(step->display_buffer, step->display, n);
		step->displays = step->display_buffer;
	}
	for (uint32 j = 0; j < m; j++)
		step->display_buffer[index[j]] = display_of(branch, j);
}
