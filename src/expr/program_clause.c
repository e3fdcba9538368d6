/*-------------------------------------------------------------------------
 *
 * program_clause.c
 *	  The clauses of a filter: one over a single column and constants narrows a
 *	  selection in one loop, any other does by running its step.
 *
 * 1. At compile time, hgj_clause_recognize() looks for comparisons of a column
 *	  with a constant, IN, IS [NOT] NULL, and boolean columns.
 *	  hgj_clause_merge() makes one clause of several comparisons of one integer
 *	  column (BETWEEN).
 * 2. When the first row arrives, prepare_clause() evaluates the constants.
 *	  Comparisons of integers become an interval of the column's own kind,
 *	  whatever the kind of the constant; a comparison with NULL is true of no
 *	  row.  Comparisons of floats become such of machine floats; a constant NaN
 *	  is larger than infinity.
 * 3. hgj_clause_run() narrows by value first and takes NULLs out afterwards.
 *
 * Memory: the program's.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "datatype/timestamp.h"
#include "expr/program_private.h"
#include "utils/date.h"

static bool
is_integer(HgjKind kind)
{
	return kind == HGJ_KIND_U1 || kind == HGJ_KIND_I2 ||
		kind == HGJ_KIND_I4 || kind == HGJ_KIND_I8 || kind == HGJ_KIND_U4;
}

static bool
is_float(HgjKind kind)
{
	return kind == HGJ_KIND_F4 || kind == HGJ_KIND_F8;
}

/* a op b is the same as b op' a */
HgjComparison
hgj_commuted(HgjComparison comparison)
{
	switch (comparison)
	{
		case HGJ_LT:
			return HGJ_GT;
		case HGJ_LE:
			return HGJ_GE;
		case HGJ_GT:
			return HGJ_LT;
		case HGJ_GE:
			return HGJ_LE;
		default:
			return comparison;
	}
}

/*
 * The input below casts that keep integers integers and floats floats, or
 * NULL.  *order_dates: one of them changes values, that of a date.
 */
static HgjStep *
column_of(HgjStep *step, bool *order_dates)
{
	HgjKind		kind = step->kind;

	*order_dates = false;
	while (step->exact)
	{
		*order_dates |= step->op == HGJ_STEP_DATE;
		step = step->args[0];
	}
	if (step->op != HGJ_STEP_INPUT)
		return NULL;
	if (is_integer(kind) != is_integer(step->kind) ||
		is_float(kind) != is_float(step->kind))
		return NULL;
	return step;
}

static void
recognize_comparison(HgjClause *clause)
{
	HgjStep    *step = clause->step;
	HgjStep    *input = NULL;
	HgjBound	bound = {.comparison = step->code};

	if (step->args[1]->op == HGJ_STEP_CONSTANT)
	{
		input = column_of(step->args[0], &bound.order_dates);
		bound.constant = step->args[1];
	}
	else if (step->args[0]->op == HGJ_STEP_CONSTANT)
	{
		input = column_of(step->args[1], &bound.order_dates);
		bound.constant = step->args[0];
		bound.comparison = hgj_commuted(bound.comparison);
	}
	if (input == NULL)
		return;
	clause->test = is_integer(input->kind) ? HGJ_TEST_RANGE : HGJ_TEST_FLOAT;
	clause->input = input->input;
	clause->kind = input->kind;
	clause->bounds = palloc(sizeof(HgjBound));
	clause->bounds[0] = bound;
	clause->nbounds = 1;
}

/* A boolean column that must be true, or false. */
static void
recognize_boolean(HgjClause *clause, const HgjStep *input, bool value)
{
	clause->test = HGJ_TEST_RANGE;
	clause->input = input->input;
	clause->kind = input->kind;
	clause->low = 0;
	clause->span = 0;
	clause->invert = value;
	clause->prepared = true;
}

/* Fill in how to run the clause's step. */
void
hgj_clause_recognize(HgjClause *clause)
{
	HgjStep    *step = clause->step;
	HgjStep    *arg = step->nargs > 0 ? step->args[0] : NULL;
	bool		order_dates;

	clause->test = HGJ_TEST_STEP;
	clause->nbounds = 0;
	switch (step->op)
	{
		case HGJ_STEP_COMPARE:
			recognize_comparison(clause);
			break;
		case HGJ_STEP_INPUT:
			recognize_boolean(clause, step, true);
			break;
		case HGJ_STEP_NOT:
			if (arg->op == HGJ_STEP_INPUT)
				recognize_boolean(clause, arg, false);
			break;
		case HGJ_STEP_BOOL_TEST:
			if (arg->op == HGJ_STEP_INPUT && !step->test_null &&
				step->test_true != step->test_false)
				recognize_boolean(clause, arg, step->test_true);
			break;
		case HGJ_STEP_MEMBER:
			arg = column_of(arg, &order_dates);
			if (arg == NULL || order_dates)
				break;
			clause->test = HGJ_TEST_MEMBER;
			clause->input = arg->input;
			clause->kind = arg->kind;
			break;
		case HGJ_STEP_IS_NULL:
		case HGJ_STEP_IS_NOT_NULL:
			if (arg->op != HGJ_STEP_INPUT)
				break;
			clause->test = HGJ_TEST_NULL;
			clause->input = arg->input;
			clause->invert = step->op == HGJ_STEP_IS_NOT_NULL;
			clause->prepared = true;
			break;
		default:
			break;
	}
}

/* Can the clause's interval be intersected with another? */
static bool
is_mergeable(const HgjClause *clause)
{
	if (clause->test != HGJ_TEST_RANGE || clause->nbounds == 0 ||
		clause->step->lazy)
		return false;
	for (int i = 0; i < clause->nbounds; i++)
		if (clause->bounds[i].comparison == HGJ_NE)
			return false;
	return true;
}

/* Make `clause` do what `next` does, too, if that is one test. */
bool
hgj_clause_merge(HgjClause *clause, const HgjClause *next)
{
	if (!is_mergeable(clause) || !is_mergeable(next) ||
		clause->input != next->input || clause->kind != next->kind)
		return false;
	clause->bounds = repalloc(clause->bounds,
							  (clause->nbounds + next->nbounds) * sizeof(HgjBound));
	memcpy(clause->bounds + clause->nbounds, next->bounds,
		   next->nbounds * sizeof(HgjBound));
	clause->nbounds += next->nbounds;
	clause->merged = list_concat(lappend(clause->merged, next->step),
								 next->merged);
	return true;
}

static int64
order_of_date(DateADT date)
{
	int64		order;

	hgj_loop_date_order(&order, &date, NULL, NULL, 1);
	return order;
}

/*
 * The dates whose order as timestamps is in [*low, *high].  Those of infinite
 * dates are the ends of the 64-bit numbers, so that these limits always exist.
 */
static void
range_of_dates(int64 *low, int64 *high)
{
	const int64 first = DATETIME_MIN_JULIAN - POSTGRES_EPOCH_JDATE;
	const int64 end = DATE_END_JULIAN - POSTGRES_EPOCH_JDATE;
	int64		from = first;
	int64		to = end;

	while (from < to)			/* the first date that is not too low */
	{
		int64		middle = from + (to - from) / 2;

		if (order_of_date(middle) >= *low)
			to = middle;
		else
			from = middle + 1;
	}
	if (*low == PG_INT64_MIN)
		*low = DATEVAL_NOBEGIN;
	else
		*low = from == end ? DATEVAL_NOEND : from;

	from = first;
	to = end;
	while (from < to)			/* the first date that is too high */
	{
		int64		middle = from + (to - from) / 2;

		if (order_of_date(middle) > *high)
			to = middle;
		else
			from = middle + 1;
	}
	if (*high == PG_INT64_MAX)
		*high = DATEVAL_NOEND;
	else
		*high = from == first ? DATEVAL_NOBEGIN : from - 1;
}

/* An integer constant of the step's kind. */
static int64
integer_value(const HgjStep *constant)
{
	int64		key;
	uint64		bits = 0;
	HgjRows		one = {.n = 1};

	hgj_store(&bits, constant->width, constant->constant->value);
	hgj_values_keys(constant->kind, &bits, &one, &key);
	return key;
}

static double
float_value(const HgjStep *constant)
{
	if (constant->kind == HGJ_KIND_F4)
		return DatumGetFloat4(constant->constant->value);
	return DatumGetFloat8(constant->constant->value);
}

/*
 * Numbers x for which x op value, as [*low, *high]; false if there are none.
 * NE gives the numbers for which it is not true.
 */
static bool
range_of_comparison(HgjComparison comparison, int64 value, int64 *low,
					int64 *high)
{
	*low = PG_INT64_MIN;
	*high = PG_INT64_MAX;
	switch (comparison)
	{
		case HGJ_EQ:
		case HGJ_NE:
			*low = *high = value;
			return true;
		case HGJ_LT:
			if (value == PG_INT64_MIN)
				return false;
			*high = value - 1;
			return true;
		case HGJ_LE:
			*high = value;
			return true;
		case HGJ_GT:
			if (value == PG_INT64_MAX)
				return false;
			*low = value + 1;
			return true;
		default:
			*low = value;
			return true;
	}
}

static void
limits_of_kind(HgjKind kind, int64 *low, int64 *high)
{
	switch (kind)
	{
		case HGJ_KIND_U1:
			*low = 0;
			*high = PG_UINT8_MAX;
			break;
		case HGJ_KIND_I2:
			*low = PG_INT16_MIN;
			*high = PG_INT16_MAX;
			break;
		case HGJ_KIND_I4:
			*low = PG_INT32_MIN;
			*high = PG_INT32_MAX;
			break;
		case HGJ_KIND_U4:
			*low = 0;
			*high = PG_UINT32_MAX;
			break;
		default:
			*low = PG_INT64_MIN;
			*high = PG_INT64_MAX;
			break;
	}
}

static void
prepare_range(HgjProgram *program, HgjClause *clause)
{
	int64		low;
	int64		high;

	limits_of_kind(clause->kind, &low, &high);
	clause->invert = clause->bounds[0].comparison == HGJ_NE;
	for (int i = 0; i < clause->nbounds; i++)
	{
		HgjBound   *bound = &clause->bounds[i];
		int64		from;
		int64		to;

		hgj_constant_fetch(program, bound->constant->constant);
		if (bound->constant->constant->isnull ||
			!range_of_comparison(bound->comparison,
								 integer_value(bound->constant), &from, &to))
		{
			clause->never = true;
			return;
		}
		if (bound->order_dates)
			range_of_dates(&from, &to);
		low = Max(low, from);
		high = Min(high, to);
	}
	if (low > high)
	{
		/* no value of the kind is in it: all or none are what is asked for */
		if (!clause->invert)
			clause->never = true;
		else
			limits_of_kind(clause->kind, &low, &high);
		clause->invert = false;
	}
	clause->low = low;
	clause->span = (uint64) high - (uint64) low;
}

static void
prepare_float(HgjProgram *program, HgjClause *clause)
{
	static const HgjFloatTest tests[HGJ_COMPARISONS] = {
		[HGJ_EQ] = HGJ_FLOAT_EQ, [HGJ_NE] = HGJ_FLOAT_NOT_EQ,
		[HGJ_LT] = HGJ_FLOAT_LT, [HGJ_LE] = HGJ_FLOAT_LE,
		[HGJ_GT] = HGJ_FLOAT_NOT_LE, [HGJ_GE] = HGJ_FLOAT_NOT_LT
	};
	HgjBound   *bound = &clause->bounds[0];
	double		value;

	hgj_constant_fetch(program, bound->constant->constant);
	clause->never = bound->constant->constant->isnull;
	if (clause->never)
		return;
	value = float_value(bound->constant);
	clause->float_test = tests[bound->comparison];
	clause->float_bound = value;
	if (!isnan(value))
		return;

	/* the same in terms of infinity, above which there are only NaNs */
	switch (bound->comparison)
	{
		case HGJ_EQ:
		case HGJ_GE:
			clause->float_test = HGJ_FLOAT_NOT_LE;
			clause->float_bound = INFINITY;
			break;
		case HGJ_NE:
		case HGJ_LT:
			clause->float_test = HGJ_FLOAT_LE;
			clause->float_bound = INFINITY;
			break;
		case HGJ_LE:			/* all of them */
			clause->float_test = HGJ_FLOAT_NOT_LT;
			clause->float_bound = -INFINITY;
			break;
		default:
			clause->never = true;
			break;
	}
}

/* Evaluate the clause's constants: a row has come to it. */
static void
prepare_clause(HgjProgram *program, HgjClause *clause)
{
	HgjStep    *step = clause->step;

	clause->never = false;
	switch (clause->test)
	{
		case HGJ_TEST_RANGE:
			prepare_range(program, clause);
			break;
		case HGJ_TEST_FLOAT:
			prepare_float(program, clause);
			break;
		case HGJ_TEST_MEMBER:
			hgj_constant_fetch(program, step->constant);
			clause->never = step->constant->isnull;
			if (clause->never)
				break;
			hgj_set_prepare(program, step);
			clause->never = step->invert ? step->set->has_nulls :
				step->set->nkeys == 0;
			break;
		default:
			break;
	}
	clause->prepared = true;
}

static uint32
run_step(HgjProgram *program, HgjClause *clause, const HgjRows *rows,
		 uint32 *out)
{
	HgjStep    *step = clause->step;

	hgj_step_run(program, step, rows);
	if (program->failed)
		return 0;
	return hgj_select_true(step->values, step->nulls, rows, out);
}

static uint32
run_member(HgjProgram *program, HgjClause *clause, const HgjRows *rows,
		   uint32 *out)
{
	HgjStep    *step = clause->step;
	uint8	   *flags = program->flags;

	hgj_values_keys(clause->kind, program->inputs[clause->input]->values, rows,
					program->keys);
	hgj_set_lookup(step->set, program->keys, rows->n, flags);
	if (step->invert)
		for (uint32 i = 0; i < rows->n; i++)
			flags[i] ^= 1;
	return hgj_select_flags(flags, rows, out);
}

/* All rows, or none. */
static uint32
pass_all(const HgjRows *rows, bool pass, uint32 *out)
{
	if (!pass)
		return 0;
	for (uint32 i = 0; i < rows->n; i++)
		out[i] = rows->sel ? rows->sel[i] : rows->first + i;
	return rows->n;
}

/*
 * The rows that pass the clause, into out (which may be rows->sel); their
 * number.  There is at least one row.
 */
uint32
hgj_clause_run(HgjProgram *program, HgjClause *clause, const HgjRows *rows,
			   uint32 *out)
{
	const HgjVector *vector;
	HgjRows		left = {.sel = out};

	if (clause->test == HGJ_TEST_STEP)
		return run_step(program, clause, rows, out);
	if (unlikely(!clause->prepared))
		prepare_clause(program, clause);
	if (clause->never)
		return 0;

	vector = program->inputs[clause->input];
	switch (clause->test)
	{
		case HGJ_TEST_RANGE:
			left.n = hgj_select_range(clause->kind, vector->values, rows,
									  clause->low, clause->span,
									  clause->invert, out);
			break;
		case HGJ_TEST_FLOAT:
			left.n = hgj_select_float(clause->kind, vector->values, rows,
									  clause->float_test, clause->float_bound,
									  out);
			break;
		case HGJ_TEST_MEMBER:
			if (clause->step->set->nkeys == 0)
				return pass_all(rows, true, out);	/* NOT IN an empty list */
			left.n = run_member(program, clause, rows, out);
			break;
		default:
			if (!vector->has_nulls)
				return pass_all(rows, clause->invert, out);
			return hgj_select_valid(vector->validity, rows, clause->invert,
									out);
	}
	if (vector->has_nulls)
		return hgj_select_valid(vector->validity, &left, true, out);
	return left.n;
}
