/*-------------------------------------------------------------------------
 *
 * values.c
 *	  What instructions that have a result compute (engine/pipeline.h), for a vector.
 *
 * 1. An operation is a loop over words, which the compiler makes vector code of, and then one
 *	  over the bytes that say NULL, where an operand has any.  Words of rows that are NULL are
 *	  computed with, too, but raise no error.
 * 2. Integers are computed in 64 bits, then held against the limits of their kind; operands of
 *	  a narrower kind cannot overflow 64 bits.  Operations that raise errors are done for rows that
 *	  are alive alone.
 * 3. Floats compare as PostgreSQL's do: NaNs are equal, and above all.  The results of arithmetic
 *	  are checked as PostgreSQL checks them: an infinite one of finite operands, or a zero that
 *	  should be none.
 *
 * Owns nothing.  Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "threads/threads.h"

/* The value of a float's word, of either kind. */
static inline double
float_value(uint32_t kind, uint64_t word)
{
	return kind == HGJ_KIND_F4 ? (double) hgj_word_float4(word) : hgj_word_float8(word);
}

/* Step 1: NULL where an operand is. */
static void
strict_nulls(Vector *v, uint8_t dst, uint8_t a, uint8_t b)
{
	bool		of_a = has_nulls(v, a);
	bool		of_b = has_nulls(v, b);
	const uint8_t *nulls_a = v->nulls[a];
	const uint8_t *nulls_b = v->nulls[b];
	uint8_t    *nulls = nulls_to_set(v, dst, of_a || of_b);

	if (nulls == NULL)
		return;
	if (of_a && of_b)
		EACH_ALIVE(v, nulls[i] = nulls_a[i] | nulls_b[i]);
	else if (of_a)
		EACH_ALIVE(v, nulls[i] = nulls_a[i]);
	else if (of_b)
		EACH_ALIVE(v, nulls[i] = nulls_b[i]);
	else
		EACH_ALIVE(v, nulls[i] = 0);
}

static void
no_nulls(Vector *v, uint8_t dst)
{
	uint8_t    *nulls = nulls_to_set(v, dst, false);

	if (nulls != NULL)
		EACH_ALIVE(v, nulls[i] = 0);
}

/* ---- comparisons ----------------------------------------------------------- */

/* Step 3. */
static inline int
compare_doubles(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) && isnan(b) ? 0 : isnan(a) ? 1 : -1;
	return (a > b) - (a < b);
}

static inline bool
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

#define COMPARE(op) \
	EACH_ROW(v, to[i] = (int64_t) a[i] op (int64_t) b[i])

HGJ_CLONES static void
compare_integers(const Vector *v, uint32_t comparison, const uint64_t *a, const uint64_t *b,
				 uint64_t *to)
{
	switch (comparison)
	{
		case HGJ_EQ:
			COMPARE(==);
			break;
		case HGJ_NE:
			COMPARE(!=);
			break;
		case HGJ_LT:
			COMPARE(<);
			break;
		case HGJ_LE:
			COMPARE(<=);
			break;
		case HGJ_GT:
			COMPARE(>);
			break;
		default:
			COMPARE(>=);
			break;
	}
}

static void
compare(Vector *v, const HgjPipeInstruction *in)
{
	const uint64_t *a = v->words[in->a];
	const uint64_t *b = v->words[in->b];
	uint64_t   *to = v->words[in->dst];

	if (in->kind != HGJ_KIND_F4 && in->kind != HGJ_KIND_F8)
		compare_integers(v, in->c, a, b, to);
	else
		EACH_ROW(v, to[i] = holds(in->c, compare_doubles(float_value(in->kind, a[i]),
														 float_value(in->kind, b[i]))));
	strict_nulls(v, in->dst, in->a, in->b);
}

static void
distinct(Vector *v, const HgjPipeInstruction *in)
{
	const uint64_t *a = v->words[in->a];
	const uint64_t *b = v->words[in->b];
	const uint8_t *nulls_a = v->nulls[in->a];
	const uint8_t *nulls_b = v->nulls[in->b];
	bool		may_a = has_nulls(v, in->a);
	bool		may_b = has_nulls(v, in->b);
	bool		floats = in->kind == HGJ_KIND_F4 || in->kind == HGJ_KIND_F8;
	uint64_t   *to = v->words[in->dst];

	EACH_ALIVE(v,
			   const bool null_a = may_a && nulls_a[i];
			   const bool null_b = may_b && nulls_b[i];
			   to[i] = null_a || null_b ? null_a != null_b :
			   floats ? compare_doubles(float_value(in->kind, a[i]),
										float_value(in->kind, b[i])) != 0 :
			   a[i] != b[i]);
	no_nulls(v, in->dst);
}

/* ---- arithmetic of integers --------------------------------------------------- */

static inline int64_t
least_of(uint32_t kind)
{
	return kind == HGJ_KIND_I2 ? INT16_MIN : kind == HGJ_KIND_I4 ? INT32_MIN :
		kind == HGJ_KIND_I8 ? INT64_MIN : 0;
}

static inline int64_t
most_of(uint32_t kind)
{
	return kind == HGJ_KIND_U1 ? UINT8_MAX : kind == HGJ_KIND_I2 ? INT16_MAX :
		kind == HGJ_KIND_I4 ? INT32_MAX : kind == HGJ_KIND_U4 ? UINT32_MAX : INT64_MAX;
}

static inline bool
overflows(uint32_t arithmetic, int64_t a, int64_t b, int64_t *r)
{
	switch (arithmetic)
	{
		case HGJ_ADD:
			return __builtin_add_overflow(a, b, r);
		case HGJ_SUB:
			return __builtin_sub_overflow(a, b, r);
		case HGJ_MUL:
			return __builtin_mul_overflow(a, b, r);
		case HGJ_DIV:
			*r = 0;
			if (b == 0)
				return true;
			if (b == -1)
				return __builtin_sub_overflow((int64_t) 0, a, r);
			*r = a / b;
			return false;
		case HGJ_MOD:
			*r = 0;
			if (b == 0)
				return true;
			*r = b == -1 ? 0 : a % b;
			return false;
		case HGJ_NEG:
			return __builtin_sub_overflow((int64_t) 0, a, r);
		default:
			*r = a;
			return a < 0 && __builtin_sub_overflow((int64_t) 0, a, r);
	}
}

/* Step 2: `bad` is left 0 where no row that is not NULL raises an error. */
#define CALCULATE(arithmetic) \
	EACH_ALIVE(v, \
			   int64_t r; \
			   bool wrong = overflows(arithmetic, (int64_t) a[i], (int64_t) b[i], &r); \
			   to[i] = (uint64_t) r; \
			   bad |= (uint64_t) (wrong | (r < least) | (r > most)) & (nulls[i & mask] ^ 1u))

/* Step 2, of a narrow kind, without NULLs. */
#define CALCULATE_NARROW(op) \
	EACH_ALIVE(v, \
			   const int64_t r = (int64_t) (a[i] op b[i]); \
			   to[i] = (uint64_t) r; \
			   bad |= (uint64_t) ((r < least) | (r > most)))

HGJ_CLONES static bool
calculate_narrow(const Vector *v, uint32_t arithmetic, uint32_t kind, const uint64_t *a,
				 const uint64_t *b, uint64_t *to)
{
	const int64_t least = least_of(kind);
	const int64_t most = most_of(kind);
	uint64_t	bad = 0;

	if (arithmetic == HGJ_ADD)
		CALCULATE_NARROW(+);
	else if (arithmetic == HGJ_SUB)
		CALCULATE_NARROW(-);
	else
		CALCULATE_NARROW(*);
	return bad == 0;
}

/* Step 2, of 64 bits: an overflow shows in the signs. */
HGJ_CLONES static bool
add_wide(const Vector *v, bool subtract, const uint64_t *a, const uint64_t *b, uint64_t *to)
{
	uint64_t	bad = 0;

	if (subtract)
		EACH_ALIVE(v, const uint64_t r = a[i] - b[i]; bad |= (a[i] ^ b[i]) & (a[i] ^ r); to[i] = r);
	else
		EACH_ALIVE(v, const uint64_t r = a[i] + b[i]; bad |= (a[i] ^ r) & (b[i] ^ r); to[i] = r);
	return bad >> 63 == 0;
}

static bool
calculate(const Vector *v, const HgjPipeInstruction *in, const uint8_t *nulls, uint32_t mask)
{
	const uint64_t *a = v->words[in->a];
	const uint64_t *b = v->words[in->c < HGJ_NEG ? in->b : in->a];
	uint64_t   *to = v->words[in->dst];
	const int64_t least = least_of(in->kind);
	const int64_t most = most_of(in->kind);
	uint64_t	bad = 0;

	switch (in->c)
	{
		case HGJ_ADD:
			CALCULATE(HGJ_ADD);
			break;
		case HGJ_SUB:
			CALCULATE(HGJ_SUB);
			break;
		case HGJ_MUL:
			CALCULATE(HGJ_MUL);
			break;
		case HGJ_DIV:
			CALCULATE(HGJ_DIV);
			break;
		case HGJ_MOD:
			CALCULATE(HGJ_MOD);
			break;
		case HGJ_NEG:
			CALCULATE(HGJ_NEG);
			break;
		default:
			CALCULATE(HGJ_ABS);
			break;
	}
	return bad == 0;
}

/* ---- arithmetic of floats ----------------------------------------------------- */

/* Step 3. */
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

static inline double
float_result(uint32_t arithmetic, double a, double b)
{
	switch (arithmetic)
	{
		case HGJ_ADD:
			return a + b;
		case HGJ_SUB:
			return a - b;
		case HGJ_MUL:
			return a * b;
		case HGJ_DIV:
			return b != 0 || isnan(a) ? a / b : 0;
		case HGJ_NEG:
			return -a;
		default:
			return fabs(a);
	}
}

/* Floats of four bytes are computed as doubles and rounded once more, which makes no difference. */
static bool
calculate_floats(const Vector *v, const HgjPipeInstruction *in, const uint8_t *nulls,
				 uint32_t mask)
{
	const uint64_t *a = v->words[in->a];
	const uint64_t *b = v->words[in->c < HGJ_NEG ? in->b : in->a];
	uint64_t   *to = v->words[in->dst];
	bool		narrow = in->kind == HGJ_KIND_F4;
	bool		none = in->c == HGJ_MOD;	/* there is no remainder of floats */
	bool		bad = false;

	EACH_ALIVE(v,
			   const double of_a = float_value(in->kind, a[i]);
			   const double of_b = float_value(in->kind, b[i]);
			   double r = float_result(in->c, of_a, of_b);
			   r = narrow ? (double) (float) r : r;
			   to[i] = narrow ? hgj_float4_word((float) r) : hgj_float8_word(r);
			   bad |= !nulls[i & mask] && (none || !float_is_good(in->c, of_a, of_b, r)));
	return !bad;
}

/* ---- all of arithmetic ---------------------------------------------------------- */

static const uint8_t never[1] = {0};

/* Bytes that say which operands are NULL, and a mask of rows: none may be. */
static const uint8_t *
nulls_of(const Vector *v, uint8_t reg, uint32_t *mask)
{
	*mask = has_nulls(v, reg) ? UINT32_MAX : 0;
	return *mask ? v->nulls[reg] : never;
}

static bool
arithmetic(Vector *v, const HgjPipeInstruction *in)
{
	uint8_t		b = in->c < HGJ_NEG ? in->b : in->a;
	bool		may = has_nulls(v, in->a) || has_nulls(v, b);
	bool		narrow = in->kind != HGJ_KIND_I8 && in->c <= HGJ_MUL;
	uint32_t	mask;
	const uint8_t *nulls;

	if (in->kind != HGJ_KIND_F4 && in->kind != HGJ_KIND_F8 && !may)
	{
		no_nulls(v, in->dst);
		if (narrow)
			return calculate_narrow(v, in->c, in->kind, v->words[in->a], v->words[b],
									v->words[in->dst]);
		if (in->c <= HGJ_SUB)
			return add_wide(v, in->c == HGJ_SUB, v->words[in->a], v->words[b],
							v->words[in->dst]);
		return calculate(v, in, never, 0);
	}
	strict_nulls(v, in->dst, in->a, b);
	nulls = nulls_of(v, in->dst, &mask);
	if (in->kind == HGJ_KIND_F4 || in->kind == HGJ_KIND_F8)
		return calculate_floats(v, in, nulls, mask);
	return calculate(v, in, nulls, mask);
}

/* ---- casts ------------------------------------------------------------------------ */

/* `value` has been rounded already; the upper limits are powers of two. */
static bool
integer_of(double value, uint32_t kind, uint64_t *r)
{
	double		limit = kind == HGJ_KIND_I2 ? 0x1p15 : kind == HGJ_KIND_I4 ? 0x1p31 : 0x1p63;

	*r = 0;
	if (isnan(value) || value < -limit || value >= limit)
		return false;
	*r = (uint64_t) (int64_t) value;
	return true;
}

static bool
narrow_float(double from, uint64_t *r)
{
	float		value = (float) from;

	*r = hgj_float4_word(value);
	return (!isinf(value) || isinf(from)) && (value != 0 || from == 0);
}

/* One value; false: it raises an error. */
static inline bool
cast_word(uint32_t from, uint32_t to, uint64_t a, uint64_t *r)
{
	int64_t		value = (int64_t) a;

	if (from == HGJ_KIND_F4 && to == HGJ_KIND_F8)
		*r = hgj_float8_word((double) hgj_word_float4(a));
	else if (from == HGJ_KIND_F4)
		return integer_of((double) rintf(hgj_word_float4(a)), to, r);
	else if (from == HGJ_KIND_F8 && to == HGJ_KIND_F4)
		return narrow_float(hgj_word_float8(a), r);
	else if (from == HGJ_KIND_F8)
		return integer_of(rint(hgj_word_float8(a)), to, r);
	else if (to == HGJ_KIND_F4)
		*r = hgj_float4_word((float) value);
	else if (to == HGJ_KIND_F8)
		*r = hgj_float8_word((double) value);
	else if (to == HGJ_KIND_U1)
		*r = value != 0;
	else
	{
		*r = from == HGJ_KIND_U1 ? value != 0 : a;
		return value >= least_of(to) && value <= most_of(to);
	}
	return true;
}

static bool
cast(Vector *v, const HgjPipeInstruction *in)
{
	const uint64_t *a = v->words[in->a];
	uint64_t   *to = v->words[in->dst];
	bool		bad = false;
	const uint8_t *nulls;
	uint32_t	mask;

	strict_nulls(v, in->dst, in->a, in->a);
	nulls = nulls_of(v, in->dst, &mask);
	EACH_ALIVE(v,
			   uint64_t r = 0;
			   const bool good = cast_word(in->kind, in->c, a[i], &r);
			   to[i] = r;
			   bad |= !good && !nulls[i & mask]);
	return !bad;
}

static void
key_word(Vector *v, const HgjPipeInstruction *in)
{
	const uint64_t *a = v->words[in->a];
	uint64_t   *to = v->words[in->dst];

	switch (in->kind)
	{
		case HGJ_KIND_F4:
		case HGJ_KIND_F8:
			EACH_ROW(v, to[i] = hgj_float_word(float_value(in->kind, a[i])));
			break;
		case HGJ_KIND_U1:
			EACH_ROW(v, to[i] = (uint8_t) a[i]);
			break;
		case HGJ_KIND_I2:
			EACH_ROW(v, to[i] = (uint64_t) (int64_t) (int16_t) a[i]);
			break;
		case HGJ_KIND_I4:
			EACH_ROW(v, to[i] = (uint64_t) (int64_t) (int32_t) a[i]);
			break;
		case HGJ_KIND_U4:
			EACH_ROW(v, to[i] = (uint32_t) a[i]);
			break;
		default:
			EACH_ROW(v, to[i] = a[i]);
			break;
	}
	strict_nulls(v, in->dst, in->a, in->a);
}

/* ---- booleans ----------------------------------------------------------------------- */

/* AND (decisive false) and OR (decisive true) with SQL's NULLs. */
static void
combine(Vector *v, const HgjPipeInstruction *in, bool decisive)
{
	const uint64_t *a = v->words[in->a];
	const uint64_t *b = v->words[in->b];
	const uint8_t *nulls_a = v->nulls[in->a];
	const uint8_t *nulls_b = v->nulls[in->b];
	bool		may_a = has_nulls(v, in->a);
	bool		may_b = has_nulls(v, in->b);
	uint64_t   *to = v->words[in->dst];
	uint8_t    *nulls = nulls_to_set(v, in->dst, may_a || may_b);

	if (!may_a && !may_b)
	{
		if (decisive)
			EACH_ROW(v, to[i] = (a[i] | b[i]) != 0);
		else
			EACH_ROW(v, to[i] = (a[i] != 0) & (b[i] != 0));
		if (nulls != NULL)
			EACH_ALIVE(v, nulls[i] = 0);
		return;
	}
	/* the result may stand where an operand does */
	EACH_ALIVE(v,
			   const bool null_a = may_a && nulls_a[i];
			   const bool null_b = may_b && nulls_b[i];
			   const bool decided = (!null_a && (a[i] != 0) == decisive) ||
			   (!null_b && (b[i] != 0) == decisive);
			   to[i] = decided == decisive;
			   nulls[i] = !decided && (null_a || null_b));
}

static void
test_null(Vector *v, const HgjPipeInstruction *in, bool wanted)
{
	bool		may = has_nulls(v, in->a);
	const uint8_t *nulls = v->nulls[in->a];
	uint64_t   *to = v->words[in->dst];

	if (may)
		EACH_ALIVE(v, to[i] = (nulls[i] != 0) == wanted);
	else
		EACH_ALIVE(v, to[i] = !wanted);
	no_nulls(v, in->dst);
}

static void
test_bool(Vector *v, const HgjPipeInstruction *in)
{
	bool		may = has_nulls(v, in->a);
	const uint64_t *a = v->words[in->a];
	const uint8_t *nulls = v->nulls[in->a];
	uint64_t   *to = v->words[in->dst];

	EACH_ALIVE(v, to[i] = in->c >> (may && nulls[i] ? 2 : a[i] != 0 ? 0 : 1) & 1);
	no_nulls(v, in->dst);
}

/* ---- all of them ---------------------------------------------------------------------- */

/* One word, or NULL, for all rows. */
void
hgj_set_all(Vector *v, uint8_t reg, uint64_t word, bool null)
{
	uint64_t   *to = v->words[reg];
	uint8_t    *nulls = nulls_to_set(v, reg, null);

	EACH_ROW(v, to[i] = word);
	if (nulls != NULL)
		EACH_ALIVE(v, nulls[i] = null);
}

/* An instruction that has a result and reads no column; false: a row raises an error. */
bool
hgj_run_compute(Vector *v, const HgjPipeInstruction *in)
{
	const uint64_t *a = v->words[in->a % HGJ_PIPE_REGISTERS];
	uint64_t   *to = v->words[in->dst];

	switch (in->op)
	{
		case HGJ_PIPE_CONSTANT:
			hgj_set_all(v, in->dst, (uint64_t) in->imm, false);
			return true;
		case HGJ_PIPE_NULL:
			hgj_set_all(v, in->dst, 0, true);
			return true;
		case HGJ_PIPE_MOVE:
			EACH_ROW(v, to[i] = a[i]);
			strict_nulls(v, in->dst, in->a, in->a);
			return true;
		case HGJ_PIPE_COMPARE:
			compare(v, in);
			return true;
		case HGJ_PIPE_DISTINCT:
			distinct(v, in);
			return true;
		case HGJ_PIPE_ARITHMETIC:
			return arithmetic(v, in);
		case HGJ_PIPE_CAST:
			return cast(v, in);
		case HGJ_PIPE_AND:
			combine(v, in, false);
			return true;
		case HGJ_PIPE_OR:
			combine(v, in, true);
			return true;
		case HGJ_PIPE_NOT:
			EACH_ROW(v, to[i] = a[i] == 0);
			strict_nulls(v, in->dst, in->a, in->a);
			return true;
		case HGJ_PIPE_IS_NULL:
			test_null(v, in, true);
			return true;
		case HGJ_PIPE_IS_NOT_NULL:
			test_null(v, in, false);
			return true;
		case HGJ_PIPE_BOOL_TEST:
			test_bool(v, in);
			return true;
		default:
			key_word(v, in);
			return true;
	}
}
