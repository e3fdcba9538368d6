/*-------------------------------------------------------------------------
 *
 * fake_values.c
 *	  What single instructions of a pipeline compute, and how the states of
 *	  groups change (engine/pipeline.h).
 *
 * 1. A function returns false where PostgreSQL's counterpart raises an error.
 * 2. Integers are computed in 64 bits, then held against the limits of their
 *	  kind.  Floats compare as PostgreSQL's do: NaNs are equal, and above all.
 * 3. The least and largest float are kept as integers of the same order.
 *
 * Owns nothing.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "fake.h"

#define MINUS_ZERO		UINT64_C(0x8000000000000000)
#define ANY_NAN			UINT64_C(0x7FF8000000000000)

/* No sum of such values, nor of their squares, overflows. */
#define MOST_SUMMED		1e140

/* Bytes of a column's value. */
size_t
fake_width(uint32_t kind)
{
	static const uint8_t widths[] = {1, 2, 4, 8, 4, 4, 8};

	return widths[kind];
}

/* A column's value as registers have it. */
uint64_t
fake_load(uint32_t kind, const void *values, uint64_t at)
{
	const char *from = (const char *) values + at * fake_width(kind);
	int16_t		i2;
	int32_t		i4;
	uint32_t	u4;
	uint64_t	word;

	switch (kind)
	{
		case HGJ_KIND_U1:
			return (uint8_t) *from;
		case HGJ_KIND_I2:
			memcpy(&i2, from, sizeof(i2));
			return (uint64_t) (int64_t) i2;
		case HGJ_KIND_I4:
			memcpy(&i4, from, sizeof(i4));
			return (uint64_t) (int64_t) i4;
		case HGJ_KIND_U4:
		case HGJ_KIND_F4:
			memcpy(&u4, from, sizeof(u4));
			return u4;
		default:
			memcpy(&word, from, sizeof(word));
			return word;
	}
}

static int
compare_doubles(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) && isnan(b) ? 0 : isnan(a) ? 1 : -1;
	return (a > b) - (a < b);
}

static int
compare(uint32_t kind, uint64_t a, uint64_t b)
{
	if (kind == HGJ_KIND_F4)
		return compare_doubles((double) hgj_word_float4(a), (double) hgj_word_float4(b));
	if (kind == HGJ_KIND_F8)
		return compare_doubles(hgj_word_float8(a), hgj_word_float8(b));
	return ((int64_t) a > (int64_t) b) - ((int64_t) a < (int64_t) b);
}

static bool
holds(uint32_t comparison, int order)
{
	switch (comparison)
	{
		case HGJ_EQ:
			return order == 0;
		case HGJ_NE:
			return order != 0;
		case HGJ_LT:
			return order < 0;
		case HGJ_LE:
			return order <= 0;
		case HGJ_GT:
			return order > 0;
		default:
			return order >= 0;
	}
}

/* Step 2. */
static bool
in_range(uint32_t kind, int64_t value)
{
	switch (kind)
	{
		case HGJ_KIND_U1:
			return value >= 0 && value <= UINT8_MAX;
		case HGJ_KIND_I2:
			return value >= INT16_MIN && value <= INT16_MAX;
		case HGJ_KIND_I4:
			return value >= INT32_MIN && value <= INT32_MAX;
		case HGJ_KIND_U4:
			return value >= 0 && value <= UINT32_MAX;
		default:
			return true;
	}
}

static bool
integer_arithmetic(const HgjPipeInstruction *in, int64_t a, int64_t b, uint64_t *r)
{
	int64_t		value = 0;
	bool		overflow = false;

	switch (in->c)
	{
		case HGJ_ADD:
			overflow = __builtin_add_overflow(a, b, &value);
			break;
		case HGJ_SUB:
			overflow = __builtin_sub_overflow(a, b, &value);
			break;
		case HGJ_MUL:
			overflow = __builtin_mul_overflow(a, b, &value);
			break;
		case HGJ_DIV:
			if (b == 0)
				return false;
			overflow = b == -1 ? __builtin_sub_overflow((int64_t) 0, a, &value) : false;
			if (b != -1)
				value = a / b;
			break;
		case HGJ_MOD:
			if (b == 0)
				return false;
			value = b == -1 ? 0 : a % b;
			break;
		case HGJ_NEG:
			overflow = __builtin_sub_overflow((int64_t) 0, a, &value);
			break;
		default:
			value = a;
			if (a < 0)
				overflow = __builtin_sub_overflow((int64_t) 0, a, &value);
			break;
	}
	*r = (uint64_t) value;
	return !overflow && in_range(in->kind, value);
}

/*
 * PostgreSQL's checks of a float result: an infinite one of finite operands, or a
 * zero that should be none.
 */
static bool
float_is_good(uint32_t arithmetic, double a, double b, double r)
{
	bool		finite = isfinite(a) && isfinite(b);

	if (arithmetic == HGJ_NEG || arithmetic == HGJ_ABS)
		return true;
	if (arithmetic == HGJ_DIV && b == 0 && !isnan(a))
		return false;
	if (!isfinite(r) && finite)
		return false;
	if (r == 0 && arithmetic == HGJ_MUL)
		return a == 0 || b == 0;
	if (r == 0 && arithmetic == HGJ_DIV)
		return a == 0 || !isfinite(b);
	return true;
}

/*
 * Floats are computed as doubles and rounded once more: a sum, product or quotient
 * of two floats has too few bits for that to make a difference.
 */
static bool
float_arithmetic(uint32_t kind, uint32_t arithmetic, double a, double b, uint64_t *word)
{
	double		r = 0;

	switch (arithmetic)
	{
		case HGJ_ADD:
			r = a + b;
			break;
		case HGJ_SUB:
			r = a - b;
			break;
		case HGJ_MUL:
			r = a * b;
			break;
		case HGJ_DIV:
			if (b != 0 || isnan(a))
				r = a / b;
			break;
		case HGJ_NEG:
			r = -a;
			break;
		case HGJ_ABS:
			r = fabs(a);
			break;
		default:
			return false;		/* there is no remainder of floats */
	}
	if (kind == HGJ_KIND_F4)
		r = (double) (float) r;
	*word = kind == HGJ_KIND_F4 ? hgj_float4_word((float) r) : hgj_float8_word(r);
	return float_is_good(arithmetic, a, b, r);
}

static bool
arithmetic(const HgjPipeInstruction *in, uint64_t a, uint64_t b, uint64_t *r)
{
	if (in->kind == HGJ_KIND_F8)
		return float_arithmetic(in->kind, in->c, hgj_word_float8(a), hgj_word_float8(b), r);
	if (in->kind == HGJ_KIND_F4)
		return float_arithmetic(in->kind, in->c, (double) hgj_word_float4(a),
								(double) hgj_word_float4(b), r);
	return integer_arithmetic(in, (int64_t) a, (int64_t) b, r);
}

/* `value` has been rounded already; the upper limits are powers of two. */
static bool
integer_of(double value, uint32_t kind, uint64_t *r)
{
	double		limit = kind == HGJ_KIND_I2 ? 0x1p15 :
		kind == HGJ_KIND_I4 ? 0x1p31 : 0x1p63;

	if (isnan(value) || value < -limit || value >= limit)
		return false;
	*r = (uint64_t) (int64_t) value;
	return true;
}

static bool
narrow(double from, uint64_t *r)
{
	float		value = (float) from;

	*r = hgj_float4_word(value);
	return (!isinf(value) || isinf(from)) && (value != 0 || from == 0);
}

static bool
cast(const HgjPipeInstruction *in, uint64_t a, uint64_t *r)
{
	int64_t		value = (int64_t) a;

	if (in->kind == HGJ_KIND_F4 && in->c == HGJ_KIND_F8)
		*r = hgj_float8_word((double) hgj_word_float4(a));
	else if (in->kind == HGJ_KIND_F4)
		return integer_of((double) rintf(hgj_word_float4(a)), in->c, r);
	else if (in->kind == HGJ_KIND_F8 && in->c == HGJ_KIND_F4)
		return narrow(hgj_word_float8(a), r);
	else if (in->kind == HGJ_KIND_F8)
		return integer_of(rint(hgj_word_float8(a)), in->c, r);
	else if (in->c == HGJ_KIND_F4)
		*r = hgj_float4_word((float) value);
	else if (in->c == HGJ_KIND_F8)
		*r = hgj_float8_word((double) value);
	else if (in->c == HGJ_KIND_U1)
		*r = value != 0;
	else
	{
		*r = in->kind == HGJ_KIND_U1 ? value != 0 : a;
		return in_range(in->c, value);
	}
	return true;
}

/* As columns/keys.c makes them: one NaN, one zero. */
static uint64_t
key_word(uint32_t kind, uint64_t a)
{
	double		value;

	switch (kind)
	{
		case HGJ_KIND_U1:
			return (uint8_t) a;
		case HGJ_KIND_I2:
			return (uint64_t) (int64_t) (int16_t) a;
		case HGJ_KIND_I4:
			return (uint64_t) (int64_t) (int32_t) a;
		case HGJ_KIND_I8:
			return a;
		case HGJ_KIND_U4:
			return (uint32_t) a;
		case HGJ_KIND_F4:
			value = (double) hgj_word_float4(a);
			break;
		default:
			value = hgj_word_float8(a);
			break;
	}
	if (isnan(value))
		return (uint64_t) INT64_MAX;
	return value == 0 ? 0 : hgj_float8_word(value);
}

/* AND (decisive false) and OR (decisive true) with SQL's NULLs. */
static FakeValue
combine(bool decisive, FakeValue a, FakeValue b)
{
	FakeValue	r = {!decisive, false};

	if ((!a.null && (a.word != 0) == decisive) || (!b.null && (b.word != 0) == decisive))
		r.word = decisive;
	else
		r.null = a.null || b.null;
	return r;
}

/* An instruction that has a result and reads no column. */
bool
fake_compute(const HgjPipeInstruction *in, FakeValue a, FakeValue b, FakeValue *r)
{
	r->word = 0;
	r->null = false;
	switch (in->op)
	{
		case HGJ_PIPE_CONSTANT:
			r->word = (uint64_t) in->imm;
			return true;
		case HGJ_PIPE_NULL:
			r->null = true;
			return true;
		case HGJ_PIPE_MOVE:
			*r = a;
			return true;
		case HGJ_PIPE_COMPARE:
			r->null = a.null || b.null;
			r->word = !r->null && holds(in->c, compare(in->kind, a.word, b.word));
			return true;
		case HGJ_PIPE_DISTINCT:
			r->word = a.null || b.null ? a.null != b.null :
				compare(in->kind, a.word, b.word) != 0;
			return true;
		case HGJ_PIPE_ARITHMETIC:
			r->null = a.null || b.null;
			return r->null || arithmetic(in, a.word, b.word, &r->word);
		case HGJ_PIPE_CAST:
			r->null = a.null;
			return r->null || cast(in, a.word, &r->word);
		case HGJ_PIPE_AND:
			*r = combine(false, a, b);
			return true;
		case HGJ_PIPE_OR:
			*r = combine(true, a, b);
			return true;
		case HGJ_PIPE_NOT:
			r->null = a.null;
			r->word = a.word == 0;
			return true;
		case HGJ_PIPE_IS_NULL:
			r->word = a.null;
			return true;
		case HGJ_PIPE_IS_NOT_NULL:
			r->word = !a.null;
			return true;
		case HGJ_PIPE_BOOL_TEST:
			r->word = in->c >> (a.null ? 2 : a.word != 0 ? 0 : 1) & 1;
			return true;
		case HGJ_PIPE_KEY_WORD:
			r->null = a.null;
			r->word = a.null ? 0 : key_word(in->kind, a.word);
			return true;
		default:
			return false;
	}
}

/* Step 3, there and back: NaN is above all, and comes back as one NaN. */
static uint64_t
order_of(uint64_t word)
{
	if (isnan(hgj_word_float8(word)))
		return (uint64_t) INT64_MAX;
	return (int64_t) word < 0 ? word ^ (uint64_t) INT64_MAX : word;
}

static uint64_t
float_of_order(uint64_t order)
{
	if (order == (uint64_t) INT64_MAX)
		return ANY_NAN;
	return (int64_t) order < 0 ? order ^ (uint64_t) INT64_MAX : order;
}

/* The word of a group that has no row. */
uint64_t
fake_state_identity(uint32_t state)
{
	switch (state)
	{
		case HGJ_PIPE_SUM_FLOAT:
			return MINUS_ZERO;
		case HGJ_PIPE_MIN:
		case HGJ_PIPE_MIN_FLOAT:
			return (uint64_t) INT64_MAX;
		case HGJ_PIPE_MAX:
		case HGJ_PIPE_MAX_FLOAT:
			return (uint64_t) INT64_MIN;
		default:
			return 0;
	}
}

/* Add a register that is not NULL; false where the host must look at it. */
bool
fake_state_add(uint32_t state, uint64_t *word, uint64_t value)
{
	switch (state)
	{
		case HGJ_PIPE_COUNT:
			*word += 1;
			return true;
		case HGJ_PIPE_SUM:
			*word += value;
			return true;
		case HGJ_PIPE_SUM_LOW:
			*word += (uint32_t) value;
			return true;
		case HGJ_PIPE_SUM_HIGH:
			*word += (uint64_t) ((int64_t) value >> 32);
			return true;
		case HGJ_PIPE_SUM_FLOAT:
			*word = hgj_float8_word(hgj_word_float8(*word) + hgj_word_float8(value));
			return fabs(hgj_word_float8(value)) < MOST_SUMMED;
		case HGJ_PIPE_MIN_FLOAT:
		case HGJ_PIPE_MAX_FLOAT:
			if (value == MINUS_ZERO)
				return false;
			value = order_of(value);
			break;
		default:
			break;
	}
	if (state == HGJ_PIPE_MIN || state == HGJ_PIPE_MIN_FLOAT)
		*word = (int64_t) value < (int64_t) *word ? value : *word;
	else
		*word = (int64_t) value > (int64_t) *word ? value : *word;
	return true;
}

/* As group rows have it. */
uint64_t
fake_state_result(uint32_t state, uint64_t word)
{
	if (state == HGJ_PIPE_MIN_FLOAT || state == HGJ_PIPE_MAX_FLOAT)
		return float_of_order(word);
	return word;
}
