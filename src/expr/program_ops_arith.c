/*-------------------------------------------------------------------------
 *
 * program_ops_arith.c
 *	  Loops for arithmetic, kind by kind.
 *
 * A loop computes all n results, whatever comes out, and says at the end
 * whether PostgreSQL would have raised an error for one of them that is not
 * NULL:
 *
 * 1. Integers: the result does not fit, or a division by zero.
 * 2. Floats: a result is infinite though no operand is; it is zero though a
 *	  product or quotient of its operands cannot be; a division by zero.  (For
 *	  each operation, which of these PostgreSQL looks at.)
 * 3. Dates: infinite ones stay what they are when days are added; two dates
 *	  must both be finite to be subtracted.
 *
 * The loop does not say which row it was, nor which error: the function itself
 * is called for that row then (program_steps.c).
 *
 * Compiled with -O3.  No memory, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "datatype/timestamp.h"
#include "expr/program_private.h"
#include "utils/date.h"

#define LOOP_HEAD(name) \
bool \
name(void *result, const void *left, const void *right, const uint8 *nulls, \
	 uint32 n)

/*
 * The body computes r from a and b (or a alone), and bad, not 0 for an error.
 * That is done for all rows, in a simple loop; only if there was an error, those
 * of rows that are not NULL are told apart.
 */
#define ANY_LOOP(name, type, flag, take_b, body) \
static LOOP_HEAD(name) \
{ \
	const type *l = left; \
	const type *rr = right; \
	type	   *pg_restrict out = result; \
	flag		any = 0; \
\
	for (uint32 i = 0; i < n; i++) \
	{ \
		type		a = l[i]; \
		type		b = take_b; \
		type		r; \
		flag		bad; \
\
		body \
		out[i] = r; \
		any |= bad; \
		(void) b; \
	} \
	if (likely(any == 0) || nulls == NULL) \
		return any != 0; \
	any = 0; \
	for (uint32 i = 0; i < n; i++) \
	{ \
		type		a = l[i]; \
		type		b = take_b; \
		type		r; \
		flag		bad; \
\
		body \
		any |= nulls[i] ? 0 : bad; \
		(void) r; \
		(void) b; \
	} \
	(void) rr; \
	return any != 0; \
}

#define BINARY_LOOP(name, type, flag, body) \
	ANY_LOOP(name, type, flag, rr[i], body)
#define UNARY_LOOP(name, type, flag, body) \
	ANY_LOOP(name, type, flag, 0, body)

/* A sum does not fit when its sign differs from that of both operands. */
#define INTEGER_LOOPS(kind, type, utype, minimum) \
	BINARY_LOOP(kind##_add, type, utype, \
				r = (type) ((utype) a + (utype) b); \
				bad = (utype) (((a ^ r) & (b ^ r)) & minimum);) \
	BINARY_LOOP(kind##_sub, type, utype, \
				r = (type) ((utype) a - (utype) b); \
				bad = (utype) (((a ^ b) & (a ^ r)) & minimum);) \
	BINARY_LOOP(kind##_div, type, uint8, \
				bool easy = b != 0 && b != -1; \
				r = (type) (easy ? a / b : (type) -(utype) a); \
				bad = b == 0 || (b == -1 && a == minimum);) \
	BINARY_LOOP(kind##_mod, type, uint8, \
				bool easy = b != 0 && b != -1; \
				r = (type) (easy ? a % b : 0); \
				bad = b == 0;) \
	UNARY_LOOP(kind##_neg, type, uint8, \
			   r = (type) -(utype) a; \
			   bad = a == minimum;) \
	UNARY_LOOP(kind##_abs, type, uint8, \
			   r = a < 0 ? (type) -(utype) a : a; \
			   bad = a == minimum;)

INTEGER_LOOPS(i2, int16, uint16, PG_INT16_MIN)
INTEGER_LOOPS(i4, int32, uint32, PG_INT32_MIN)
INTEGER_LOOPS(i8, int64, uint64, PG_INT64_MIN)

BINARY_LOOP(i2_mul, int16, uint8,
			int32 product = (int32) a * b;
			r = (int16) product;
			bad = product != r;)
BINARY_LOOP(i4_mul, int32, uint8,
			int64 product = (int64) a * b;
			r = (int32) product;
			bad = product != r;)
BINARY_LOOP(i8_mul, int64, uint8,
			bad = __builtin_mul_overflow(a, b, &r);)

/*
 * Errors of float operations, found out by integer arithmetic on the bits of
 * the operands and the result, less the sign: each of these has the highest bit
 * set if it is true, so that a loop of them needs neither branch nor mask.
 */
#define ZERO(m)				((m) - 1)
#define NOT_FINITE(m, inf)	((m) + (sign - (inf)))	/* infinite or NaN */
#define NAN_BITS(m, inf)	((m) + (sign - (inf) - 1))

/* Finite operands, but no finite result. */
#define OVERFLOW \
	(NOT_FINITE(r, inf) & ~NOT_FINITE(a, inf) & ~NOT_FINITE(b, inf))

#define FLOAT_LOOP(name, type, utype, infinity, op, error) \
static LOOP_HEAD(name) \
{ \
	const utype sign = (utype) 1 << (sizeof(utype) * BITS_PER_BYTE - 1); \
	const utype inf = infinity; \
	const type *l = left; \
	const type *rr = right; \
	type	   *pg_restrict out = result; \
	const utype *lb = left; \
	const utype *rb = right; \
	const utype *ob = result; \
	utype		any = 0; \
\
	for (uint32 i = 0; i < n; i++) \
		out[i] = l[i] op rr[i]; \
	for (uint32 i = 0; i < n; i++) \
	{ \
		utype		a = lb[i] & ~sign; \
		utype		b = rb[i] & ~sign; \
		utype		r = ob[i] & ~sign; \
\
		any |= (error); \
	} \
	if (likely((any & sign) == 0) || nulls == NULL) \
		return (any & sign) != 0; \
	any = 0; \
	for (uint32 i = 0; i < n; i++) \
	{ \
		utype		a = lb[i] & ~sign; \
		utype		b = rb[i] & ~sign; \
		utype		r = ob[i] & ~sign; \
\
		any |= nulls[i] ? 0 : (error); \
	} \
	return (any & sign) != 0; \
}

/* The last two are a result of 0, and a division by zero but of NaN. */
#define FLOAT_LOOPS(kind, type, utype, infinity) \
	FLOAT_LOOP(kind##_add, type, utype, infinity, +, OVERFLOW) \
	FLOAT_LOOP(kind##_sub, type, utype, infinity, -, OVERFLOW) \
	FLOAT_LOOP(kind##_mul, type, utype, infinity, *, \
			   OVERFLOW | (ZERO(r) & ~ZERO(a) & ~ZERO(b))) \
	FLOAT_LOOP(kind##_div, type, utype, infinity, /, \
			   OVERFLOW | (ZERO(r) & ~ZERO(a) & ~NOT_FINITE(b, inf)) | \
			   (ZERO(b) & ~NAN_BITS(a, inf))) \
	UNARY_LOOP(kind##_neg, type, uint8, r = -a; bad = 0;) \
	UNARY_LOOP(kind##_abs, type, uint8, r = kind##_fabs(a); bad = 0;)

#define f4_fabs(x)	fabsf(x)
#define f8_fabs(x)	fabs(x)

FLOAT_LOOPS(f4, float, uint32, UINT32_C(0x7F800000))
FLOAT_LOOPS(f8, double, uint64, UINT64CONST(0x7FF0000000000000))

#define FOR_INTEGERS(op) \
	[HGJ_KIND_I2] = i2_##op, [HGJ_KIND_I4] = i4_##op, [HGJ_KIND_I8] = i8_##op
#define FOR_FLOATS(op) [HGJ_KIND_F4] = f4_##op, [HGJ_KIND_F8] = f8_##op

const HgjLoop hgj_arith_loops[HGJ_ARITHMETICS][HGJ_KINDS] = {
	[HGJ_ADD] = {FOR_INTEGERS(add), FOR_FLOATS(add)},
	[HGJ_SUB] = {FOR_INTEGERS(sub), FOR_FLOATS(sub)},
	[HGJ_MUL] = {FOR_INTEGERS(mul), FOR_FLOATS(mul)},
	[HGJ_DIV] = {FOR_INTEGERS(div), FOR_FLOATS(div)},
	[HGJ_MOD] = {FOR_INTEGERS(mod)},
	[HGJ_NEG] = {FOR_INTEGERS(neg), FOR_FLOATS(neg)},
	[HGJ_ABS] = {FOR_INTEGERS(abs), FOR_FLOATS(abs)}
};

/* Date plus or minus days: what is added is in 64 bits, where it fits. */
static inline bool
move_dates(DateADT *out, const DateADT *dates, const int32 *days,
		   const uint8 *nulls, uint32 n, bool back)
{
	bool		any = false;

	for (uint32 i = 0; i < n; i++)
	{
		int64		moved = back ? (int64) dates[i] - days[i] :
			(int64) dates[i] + days[i];
		bool		infinite = DATE_NOT_FINITE(dates[i]);
		bool		bad = moved < PG_INT32_MIN || moved > PG_INT32_MAX ||
			!IS_VALID_DATE(moved);

		out[i] = infinite ? dates[i] : (DateADT) moved;
		any |= bad && !infinite && !(nulls && nulls[i]);
	}
	return any;
}

LOOP_HEAD(hgj_loop_date_add)
{
	return move_dates(result, left, right, nulls, n, false);
}

LOOP_HEAD(hgj_loop_date_sub)
{
	return move_dates(result, left, right, nulls, n, true);
}

LOOP_HEAD(hgj_loop_date_diff)
{
	const DateADT *a = left;
	const DateADT *b = right;
	int32	   *out = result;
	bool		any = false;

	for (uint32 i = 0; i < n; i++)
	{
		bool		bad = DATE_NOT_FINITE(a[i]) || DATE_NOT_FINITE(b[i]);

		out[i] = (int32) ((uint32) a[i] - (uint32) b[i]);
		any |= bad && !(nulls && nulls[i]);
	}
	return any;
}
