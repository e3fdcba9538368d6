/*-------------------------------------------------------------------------
 *
 * program_ops_compare.c
 *	  Loops that compare two arrays, kind by kind.
 *
 * 1. Integers compare as integers.
 * 2. Floats compare in PostgreSQL's order: a NaN equals a NaN and is larger
 *	  than everything else; 0 equals -0.
 *
 * No loop looks at NULLs, none fails.  Compiled with -O3 (see the Makefile), so
 * that the compiler makes vector code of them.  No memory, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "expr/program_private.h"

#define COMPARE_LOOP(name, type, expression) \
static bool \
name(void *result, const void *left, const void *right, const uint8 *nulls, \
	 uint32 n) \
{ \
	const type *l = left; \
	const type *r = right; \
	uint8	   *pg_restrict out = result; \
\
	for (uint32 i = 0; i < n; i++) \
	{ \
		type		a = l[i]; \
		type		b = r[i]; \
\
		out[i] = (expression); \
	} \
	return false; \
}

#define INTEGER_LOOPS(kind, type) \
	COMPARE_LOOP(kind##_eq, type, a == b) \
	COMPARE_LOOP(kind##_ne, type, a != b) \
	COMPARE_LOOP(kind##_lt, type, a < b) \
	COMPARE_LOOP(kind##_le, type, a <= b) \
	COMPARE_LOOP(kind##_gt, type, a > b) \
	COMPARE_LOOP(kind##_ge, type, a >= b)

#define IS_NAN(x)	((x) != (x))

#define FLOAT_LOOPS(kind, type) \
	COMPARE_LOOP(kind##_eq, type, (a == b) | (IS_NAN(a) & IS_NAN(b))) \
	COMPARE_LOOP(kind##_ne, type, !((a == b) | (IS_NAN(a) & IS_NAN(b)))) \
	COMPARE_LOOP(kind##_lt, type, (a < b) | (!IS_NAN(a) & IS_NAN(b))) \
	COMPARE_LOOP(kind##_le, type, (a <= b) | IS_NAN(b)) \
	COMPARE_LOOP(kind##_gt, type, (a > b) | (IS_NAN(a) & !IS_NAN(b))) \
	COMPARE_LOOP(kind##_ge, type, (a >= b) | IS_NAN(a))

INTEGER_LOOPS(u1, uint8)
INTEGER_LOOPS(i2, int16)
INTEGER_LOOPS(i4, int32)
INTEGER_LOOPS(i8, int64)
INTEGER_LOOPS(u4, uint32)
FLOAT_LOOPS(f4, float)
FLOAT_LOOPS(f8, double)

#define ALL_OF(kind) {kind##_eq, kind##_ne, kind##_lt, kind##_le, kind##_gt, \
	kind##_ge}

/* In the order of HgjComparison. */
const HgjLoop hgj_compare_loops[HGJ_KINDS][HGJ_COMPARISONS] = {
	[HGJ_KIND_U1] = ALL_OF(u1),
	[HGJ_KIND_I2] = ALL_OF(i2),
	[HGJ_KIND_I4] = ALL_OF(i4),
	[HGJ_KIND_I8] = ALL_OF(i8),
	[HGJ_KIND_U4] = ALL_OF(u4),
	[HGJ_KIND_F4] = ALL_OF(f4),
	[HGJ_KIND_F8] = ALL_OF(f8)
};
