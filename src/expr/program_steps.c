/*-------------------------------------------------------------------------
 *
 * program_steps.c
 *	  Steps over the rows of a chunk.
 *
 * 1. A step first runs the steps of its arguments, then computes its own values
 *	  into its buffers, or points to somebody else's: a column of an input that
 *	  is read from its start on is not copied.
 * 2. AND and OR combine truth values as bytes.  An arm that can raise an error
 *	  is run for those rows only that the arms before it have left undecided, and
 *	  CASE and COALESCE run each branch for its own rows: exactly those for which
 *	  PostgreSQL would evaluate it.
 * 3. When a loop says that a row raises an error, `failed` is set, and nothing
 *	  that is computed afterwards means anything; program.c then runs the rows
 *	  one at a time, and the first of them to fail calls the function itself,
 *	  which raises the error.
 * 4. A step that several others need is run once a chunk.
 *
 * Buffers belong to the steps, in the program's memory context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "expr/program_private.h"
#include "fmgr.h"

static const uint8 zeros[HGJ_CHUNK];

static void
run_args(HgjProgram *program, HgjStep *step, const HgjRows *rows)
{
	for (int i = 0; i < step->nargs; i++)
		hgj_step_run(program, step->args[i], rows);
}

static void
run_input(HgjProgram *program, HgjStep *step, const HgjRows *rows)
{
	const HgjVector *vector = program->inputs[step->input];

	Assert(vector->width == step->width);
	if (rows->sel)
		hgj_values_gather(step->width, vector->values, rows->sel, rows->n,
				   step->value_buffer);
	else
		step->values = (const char *) vector->values +
			(Size) rows->first * step->width;
	if (hgj_values_nulls(vector, rows, step->null_buffer))
		step->nulls = step->null_buffer;
	step->kept_in = vector->kept_in;
}

static void
run_constant(HgjProgram *program, HgjStep *step)
{
	HgjConstant *constant = step->constant;

	hgj_constant_fetch(program, constant);
	if (!step->spread)
	{
		Datum		value = constant->isnull ? (Datum) 0 : constant->value;

		for (uint32 i = 0; i < HGJ_CHUNK; i++)
			hgj_store((char *) step->value_buffer + (Size) i * step->width,
					  step->width, value);
		memset(step->null_buffer, 1, HGJ_CHUNK);
		step->spread = true;
	}
	if (constant->isnull)
		step->nulls = step->null_buffer;
}

/*
 * The row that is run alone fails: let the function say so.  (An operand that
 * was cast to a wider kind is given in that kind, and the function is the one
 * of that kind.)
 */
static void
raise_error(HgjStep *step)
{
	Datum		args[2] = {0, 0};

	for (int i = 0; i < step->nargs; i++)
		args[i] = hgj_load(step->args[i]->values, step->args[i]->width);
	if (step->nargs == 1)
		DirectFunctionCall1(step->raise, args[0]);
	else
		DirectFunctionCall2(step->raise, args[0], args[1]);
	elog(ERROR, "a function of a HashGraphJoin's expression did not fail again");
}

static void
run_function(HgjProgram *program, HgjStep *step, const HgjRows *rows)
{
	const HgjStep *a = step->args[0];
	const HgjStep *b = step->nargs > 1 ? step->args[1] : a;

	run_args(program, step, rows);
	step->nulls = hgj_either_null(a->nulls, b->nulls, rows->n, step->null_buffer);
	if (step->loop(step->value_buffer, a->values, b->values, step->nulls,
				   rows->n) && !program->failed)
	{
		if (program->single)
			raise_error(step);
		program->failed = true;
	}
}

/*
 * One more arm into the truth values so far.  A value is 0 where the null byte
 * is 1.
 */
static inline void
combine_and(uint8 *value, uint8 *null, const uint8 *arm, const uint8 *arm_null)
{
	uint8		a = (*arm != 0) & !*arm_null;

	*null = (*null | *arm_null) & (*value | *null) & (a | *arm_null);
	*value &= a;
}

static inline void
combine_or(uint8 *value, uint8 *null, const uint8 *arm, const uint8 *arm_null)
{
	*value |= (*arm != 0) & !*arm_null;
	*null = (*null | *arm_null) & !*value;
}

/* An arm that was run for all rows. */
static void
combine_all(HgjStep *step, const HgjStep *arm, uint32 n)
{
	uint8	   *pg_restrict value = step->value_buffer;
	uint8	   *pg_restrict null = step->null_buffer;
	const uint8 *v = arm->values;
	const uint8 *z = arm->nulls;
	bool		is_or = step->op == HGJ_STEP_OR;

	if (step->nulls == NULL && z == NULL)
	{
		if (is_or)
			for (uint32 i = 0; i < n; i++)
				value[i] |= (v[i] != 0);
		else
			for (uint32 i = 0; i < n; i++)
				value[i] &= (v[i] != 0);
		return;
	}
	if (step->nulls == NULL)
		memset(null, 0, n);
	step->nulls = null;
	if (z == NULL)
		z = zeros;
	if (is_or)
		for (uint32 i = 0; i < n; i++)
			combine_or(&value[i], &null[i], &v[i], &z[i]);
	else
		for (uint32 i = 0; i < n; i++)
			combine_and(&value[i], &null[i], &v[i], &z[i]);
}

/* An arm that was run for the rows of step->index. */
static void
combine_some(HgjStep *step, const HgjStep *arm, uint32 n, uint32 m)
{
	uint8	   *value = step->value_buffer;
	uint8	   *null = step->null_buffer;
	const uint8 *v = arm->values;
	const uint8 *z = arm->nulls ? arm->nulls : zeros;

	if (step->nulls == NULL)
	{
		if (arm->nulls)
			step->nulls = null;
		memset(null, 0, n);
	}
	for (uint32 j = 0; j < m; j++)
	{
		uint32		i = step->index[j];

		if (step->op == HGJ_STEP_OR)
			combine_or(&value[i], &null[i], &v[j], &z[j]);
		else
			combine_and(&value[i], &null[i], &v[j], &z[j]);
	}
}

/* Rows that the arms so far have not decided, into sel and index. */
static uint32
undecided(HgjStep *step, const HgjRows *rows)
{
	const uint8 *value = step->value_buffer;
	const uint8 *null = step->nulls ? step->nulls : zeros;
	bool		is_or = step->op == HGJ_STEP_OR;
	uint32		m = 0;

	for (uint32 i = 0; i < rows->n; i++)
	{
		step->index[m] = i;
		step->sel[m] = rows->sel ? rows->sel[i] : rows->first + i;
		m += is_or ? !value[i] : (value[i] | null[i]);
	}
	return m;
}

static void
run_and_or(HgjProgram *program, HgjStep *step, const HgjRows *rows)
{
	memset(step->value_buffer, step->op == HGJ_STEP_AND, rows->n);
	for (int i = 0; i < step->nargs && !program->failed; i++)
	{
		HgjStep    *arm = step->args[i];

		if (i > 0 && arm->lazy)
		{
			HgjRows		some = {.sel = step->sel};

			some.n = undecided(step, rows);
			if (some.n == 0)
				break;
			hgj_step_run(program, arm, &some);
			combine_some(step, arm, rows->n, some.n);
		}
		else
		{
			hgj_step_run(program, arm, rows);
			combine_all(step, arm, rows->n);
		}
	}
}

static void
run_not(HgjProgram *program, HgjStep *step, const HgjRows *rows)
{
	uint8	   *pg_restrict out = step->value_buffer;
	const uint8 *v;

	run_args(program, step, rows);
	v = step->args[0]->values;
	for (uint32 i = 0; i < rows->n; i++)
		out[i] = !v[i];
	step->nulls = step->args[0]->nulls;
}

static void
run_null_test(HgjProgram *program, HgjStep *step, const HgjRows *rows)
{
	HgjStep    *arg = step->args[0];
	uint8	   *pg_restrict out = step->value_buffer;
	const uint8 *z;

	if (arg->op == HGJ_STEP_INPUT)
		z = hgj_values_nulls(program->inputs[arg->input], rows,
							 step->null_buffer) ? step->null_buffer : NULL;
	else
	{
		hgj_step_run(program, arg, rows);
		z = arg->nulls;
	}
	if (z == NULL)
		memset(out, step->op == HGJ_STEP_IS_NOT_NULL, rows->n);
	else
	{
		uint8		flip = step->op == HGJ_STEP_IS_NOT_NULL;

		for (uint32 i = 0; i < rows->n; i++)
			out[i] = z[i] ^ flip;
	}
}

static void
run_bool_test(HgjProgram *program, HgjStep *step, const HgjRows *rows)
{
	uint8	   *pg_restrict out = step->value_buffer;
	const uint8 *v;
	const uint8 *z;
	bool		becomes[2] = {step->test_false, step->test_true};

	run_args(program, step, rows);
	v = step->args[0]->values;
	z = step->args[0]->nulls ? step->args[0]->nulls : zeros;
	for (uint32 i = 0; i < rows->n; i++)
		out[i] = z[i] ? step->test_null : becomes[v[i] != 0];
}

/* The loop has said which operands are different, looking at their bits. */
static void
run_distinct(HgjProgram *program, HgjStep *step, const HgjRows *rows)
{
	const HgjStep *a = step->args[0];
	const HgjStep *b = step->args[1];
	uint8	   *pg_restrict out = step->value_buffer;

	run_args(program, step, rows);
	step->loop(out, a->values, b->values, NULL, rows->n);
	if (a->nulls || b->nulls)
	{
		const uint8 *y = a->nulls ? a->nulls : zeros;
		const uint8 *z = b->nulls ? b->nulls : zeros;

		for (uint32 i = 0; i < rows->n; i++)
			out[i] = (y[i] | z[i]) ? y[i] ^ z[i] : out[i];
	}
}

/*
 * IN and NOT IN: value_buffer says which of the argument's values are members
 * of a set, which may have a NULL as well.
 */
void
hgj_member_finish(HgjStep *step, bool has_nulls, uint32 n)
{
	const uint8 *nulls = step->args[0]->nulls;
	uint8	   *pg_restrict out = step->value_buffer;
	uint8	   *pg_restrict null = step->null_buffer;

	step->nulls = nulls;
	if (has_nulls)
	{
		const uint8 *z = nulls ? nulls : zeros;

		for (uint32 i = 0; i < n; i++)
			null[i] = z[i] | !out[i];
		step->nulls = null;
	}
	if (step->invert)
		for (uint32 i = 0; i < n; i++)
			out[i] ^= 1;
}

static void
run_member(HgjProgram *program, HgjStep *step, const HgjRows *rows)
{
	HgjStep    *arg = step->args[0];
	HgjRows		dense = {.n = rows->n};
	uint8	   *out = step->value_buffer;

	hgj_step_run(program, arg, rows);
	if (program->failed)
		return;
	if (hgj_constant_nulls(program, step, rows->n))
		return;
	hgj_set_prepare(program, step);
	if (step->set->nkeys == 0 && !step->set->has_nulls)
	{
		memset(out, step->invert, rows->n); /* whatever the value is */
		return;
	}
	hgj_values_keys(arg->kind, arg->values, &dense, program->keys);
	hgj_set_lookup(step->set, program->keys, rows->n, out);
	hgj_member_finish(step, step->set->has_nulls, rows->n);
}

/* A branch's values, for the m rows of `index`, into those of the step's n. */
static void
take_branch(HgjStep *step, const HgjStep *branch, const uint32 *index, uint32 m,
			uint32 n)
{
	hgj_decimal_take(step, branch, index, m, n);
	hgj_values_scatter(step->width, branch->values, index, m, step->value_buffer);
	if (branch->nulls)
	{
		hgj_values_scatter(1, branch->nulls, index, m, step->null_buffer);
		step->nulls = step->null_buffer;
	}
}

/* All rows into sel and index. */
static uint32
take_rows(HgjStep *step, const HgjRows *rows)
{
	for (uint32 i = 0; i < rows->n; i++)
	{
		step->index[i] = i;
		step->sel[i] = rows->sel ? rows->sel[i] : rows->first + i;
	}
	memset(step->null_buffer, 0, rows->n);
	return rows->n;
}

static void
run_case(HgjProgram *program, HgjStep *step, const HgjRows *rows)
{
	uint32		left = take_rows(step, rows);
	uint32	   *sel = step->sel;
	uint32	   *index = step->index;
	uint32	   *taken = step->sel + HGJ_CHUNK;
	uint32	   *taken_index = step->index + HGJ_CHUNK;

	for (int arm = 0; arm + 1 < step->nargs && left > 0; arm += 2)
	{
		HgjStep    *condition = step->args[arm];
		HgjRows		some = {.sel = sel, .n = left};
		const uint8 *v;
		const uint8 *z;
		uint32		k = 0;

		hgj_step_run(program, condition, &some);
		if (program->failed)
			return;
		v = condition->values;
		z = condition->nulls ? condition->nulls : zeros;
		left = 0;
		for (uint32 i = 0; i < some.n; i++)
		{
			bool		pass = (v[i] != 0) & !z[i];

			taken[k] = sel[i];
			taken_index[k] = index[i];
			k += pass;
			sel[left] = sel[i];
			index[left] = index[i];
			left += !pass;
		}
		if (k == 0)
			continue;
		some.sel = taken;
		some.n = k;
		hgj_step_run(program, step->args[arm + 1], &some);
		take_branch(step, step->args[arm + 1], taken_index, k, rows->n);
	}
	if (left > 0)
	{
		HgjRows		some = {.sel = sel, .n = left};

		hgj_step_run(program, step->args[step->nargs - 1], &some);
		take_branch(step, step->args[step->nargs - 1], index, left, rows->n);
	}
}

static void
run_coalesce(HgjProgram *program, HgjStep *step, const HgjRows *rows)
{
	uint32		left = take_rows(step, rows);
	bool		some_null = false;

	for (int arm = 0; arm < step->nargs && left > 0; arm++)
	{
		HgjStep    *branch = step->args[arm];
		HgjRows		some = {.sel = step->sel, .n = left};

		hgj_step_run(program, branch, &some);
		if (program->failed)
			return;
		hgj_decimal_take(step, branch, step->index, left, rows->n);
		hgj_values_scatter(step->width, branch->values, step->index, left,
					step->value_buffer);
		left = 0;
		if (branch->nulls)
			for (uint32 i = 0; i < some.n; i++)
			{
				step->sel[left] = step->sel[i];
				step->index[left] = step->index[i];
				left += branch->nulls[i];
			}
	}
	for (uint32 i = 0; i < left; i++)
	{
		step->null_buffer[step->index[i]] = 1;
		some_null = true;
	}
	if (some_null)
		step->nulls = step->null_buffer;
}

/* What is evaluated once a value, or no longer: its second argument does the same. */
static void
run_by_value(HgjProgram *program, HgjStep *step, const HgjRows *rows)
{
	bool		other = step->by_value->given_up && step->nargs > 1;
	HgjStep    *arg = step->args[other ? 1 : 0];

	hgj_step_run(program, arg, rows);
	if (program->failed)
		return;
	if (!other)
		hgj_by_value_run(program, step, rows->n);
	else
	{
		step->values = arg->values;
		step->nulls = arg->nulls;
	}
}

/* Once, when the step is run for the first time. */
static void
allocate_buffers(HgjProgram *program, HgjStep *step)
{
	MemoryContext old = MemoryContextSwitchTo(program->context);

	step->null_buffer = palloc0(HGJ_CHUNK);
	if (step->op == HGJ_STEP_AND || step->op == HGJ_STEP_OR ||
		step->op == HGJ_STEP_CASE || step->op == HGJ_STEP_COALESCE)
	{
		step->sel = palloc(2 * HGJ_CHUNK * sizeof(uint32));
		step->index = palloc(2 * HGJ_CHUNK * sizeof(uint32));
	}
	step->value_buffer = palloc0(HGJ_CHUNK * step->width);
	if (step->decimal)
		step->display_buffer = palloc0(HGJ_CHUNK);
	MemoryContextSwitchTo(old);
}

/* Has a step that several others share been run for all rows of the chunk? */
static bool
has_run(const HgjProgram *program, HgjStep *step, const HgjRows *rows)
{
	if (rows->whole && step->chunk == program->chunk)
		return true;
	step->chunk = rows->whole ? program->chunk : 0;
	return false;
}

/* What other files have loops for, which want the arguments' values. */
static void
run_behind_args(HgjProgram *program, HgjStep *step, const HgjRows *rows)
{
	run_args(program, step, rows);
	if (program->failed)
		return;
	if (step->op == HGJ_STEP_LIKE)
		hgj_like_run(program, step, rows->n);
	else if (step->op == HGJ_STEP_PART)
		hgj_part_run(program, step, rows->n);
	else
		hgj_decimal_run(program, step, rows->n);
}

/* Compute the step's values for the rows; look at program->failed then. */
void
hgj_step_run(HgjProgram *program, HgjStep *step, const HgjRows *rows)
{
	if (step->shared && has_run(program, step, rows))
		return;
	if (unlikely(step->value_buffer == NULL))
		allocate_buffers(program, step);
	step->values = step->value_buffer;
	step->nulls = NULL;
	step->displays = NULL;
	if (program->failed)
	{
		step->chunk = 0;		/* the others may be run again, not to fail */
		return;
	}
	switch (step->op)
	{
		case HGJ_STEP_INPUT:
			run_input(program, step, rows);
			break;
		case HGJ_STEP_CONSTANT:
			run_constant(program, step);
			break;
		case HGJ_STEP_COMPARE:
		case HGJ_STEP_ARITHMETIC:
		case HGJ_STEP_CAST:
		case HGJ_STEP_DATE:
			run_function(program, step, rows);
			break;
		case HGJ_STEP_AND:
		case HGJ_STEP_OR:
			run_and_or(program, step, rows);
			break;
		case HGJ_STEP_NOT:
			run_not(program, step, rows);
			break;
		case HGJ_STEP_IS_NULL:
		case HGJ_STEP_IS_NOT_NULL:
			run_null_test(program, step, rows);
			break;
		case HGJ_STEP_BOOL_TEST:
			run_bool_test(program, step, rows);
			break;
		case HGJ_STEP_DISTINCT:
			run_distinct(program, step, rows);
			break;
		case HGJ_STEP_MEMBER:
			run_member(program, step, rows);
			break;
		case HGJ_STEP_TEXT:
			hgj_text_run(program, step, rows);
			break;
		case HGJ_STEP_CALL:
			hgj_call_run(program, step, rows);
			break;
		case HGJ_STEP_BY_VALUE:
			run_by_value(program, step, rows);
			break;
		case HGJ_STEP_CASE:
			run_case(program, step, rows);
			break;
		case HGJ_STEP_COALESCE:
			run_coalesce(program, step, rows);
			break;
		case HGJ_STEP_LIKE:
		case HGJ_STEP_PART:
		case HGJ_STEP_DECIMAL:
		case HGJ_STEP_DECIMAL_INTEGER:
		case HGJ_STEP_DECIMAL_ARITHMETIC:
		case HGJ_STEP_DECIMAL_ALIGN:
		case HGJ_STEP_DECIMAL_COMPARE:
		case HGJ_STEP_DECIMAL_RANGE:
		case HGJ_STEP_NUMERIC:
			run_behind_args(program, step, rows);
			break;
	}
}
