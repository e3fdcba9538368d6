/*-------------------------------------------------------------------------
 *
 * program_ops_cast.c
 *	  Loops that turn values of one kind into values of another.
 *
 * 1. Between numbers, as PostgreSQL's cast functions do it: floats are rounded
 *	  to the nearest even integer, and what does not fit is an error.  As in
 *	  program_ops_arith.c a loop says that there was one and not where.
 * 2. hgj_loop_date_order() makes 64-bit numbers of dates that compare with
 *	  timestamps as PostgreSQL compares the two types: a date that is too late
 *	  to be a timestamp lies between all finite timestamps and infinity.
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
#include "utils/timestamp.h"

#define LOOP_HEAD(name) \
bool \
name(void *result, const void *values, const void *unused, \
	 const uint8 *nulls, uint32 n)

/* Every value can be cast. */
#define PLAIN_CAST(name, from, to, expression) \
static LOOP_HEAD(name) \
{ \
	const from *in = values; \
	to		   *pg_restrict out = result; \
\
	for (uint32 i = 0; i < n; i++) \
	{ \
		from		v = in[i]; \
\
		out[i] = (expression); \
	} \
	return false; \
}

/* `fits` says which values can; v has been made to what `before` says. */
#define CHECKED_CAST(name, from, to, before, fits) \
static LOOP_HEAD(name) \
{ \
	const from *in = values; \
	to		   *pg_restrict out = result; \
	uint8		any = 0; \
\
	for (uint32 i = 0; i < n; i++) \
	{ \
		from		v = in[i]; \
		bool		good; \
\
		v = (before); \
		good = (fits); \
		out[i] = good ? (to) v : 0; \
		any |= !good; \
	} \
	if (likely(any == 0) || nulls == NULL) \
		return any != 0; \
	for (uint32 i = 0; i < n; i++) \
	{ \
		from		v = in[i]; \
\
		v = (before); \
		if (!nulls[i] && !(fits)) \
			return true; \
	} \
	return false; \
}

PLAIN_CAST(i2_to_i4, int16, int32, v)
PLAIN_CAST(i2_to_i8, int16, int64, v)
PLAIN_CAST(i2_to_f4, int16, float, v)
PLAIN_CAST(i2_to_f8, int16, double, v)
PLAIN_CAST(i4_to_i8, int32, int64, v)
PLAIN_CAST(i4_to_f4, int32, float, v)
PLAIN_CAST(i4_to_f8, int32, double, v)
PLAIN_CAST(i4_to_u1, int32, uint8, v != 0)
PLAIN_CAST(i8_to_f4, int64, float, v)
PLAIN_CAST(i8_to_f8, int64, double, v)
PLAIN_CAST(u1_to_i4, uint8, int32, v != 0)
PLAIN_CAST(u4_to_i8, uint32, int64, v)
PLAIN_CAST(f4_to_f8, float, double, v)

CHECKED_CAST(i4_to_i2, int32, int16, v,
			 v >= PG_INT16_MIN && v <= PG_INT16_MAX)
CHECKED_CAST(i8_to_i2, int64, int16, v,
			 v >= PG_INT16_MIN && v <= PG_INT16_MAX)
CHECKED_CAST(i8_to_i4, int64, int32, v,
			 v >= PG_INT32_MIN && v <= PG_INT32_MAX)
CHECKED_CAST(i8_to_u4, int64, uint32, v, v >= 0 && v <= PG_UINT32_MAX)

/* NaN passes none of these; the upper limits are powers of two. */
#define FITS(type, bits) \
	(v >= -(type) (UINT64CONST(1) << (bits - 1)) && \
	 v < (type) (UINT64CONST(1) << (bits - 1)))

CHECKED_CAST(f4_to_i2, float, int16, rintf(v), FITS(float, 16))
CHECKED_CAST(f4_to_i4, float, int32, rintf(v), FITS(float, 32))
CHECKED_CAST(f4_to_i8, float, int64, rintf(v), FITS(float, 64))
CHECKED_CAST(f8_to_i2, double, int16, rint(v), FITS(double, 16))
CHECKED_CAST(f8_to_i4, double, int32, rint(v), FITS(double, 32))
CHECKED_CAST(f8_to_i8, double, int64, rint(v), FITS(double, 64))

/* Overflow and underflow; infinity, NaN and zero stay what they are. */
static LOOP_HEAD(f8_to_f4)
{
	const double *in = values;
	float	   *pg_restrict out = result;
	bool		any = false;

	for (uint32 i = 0; i < n; i++)
	{
		float		r = (float) in[i];
		bool		bad = (isinf(r) && !isinf(in[i])) ||
			(r == 0 && in[i] != 0);

		out[i] = r;
		any |= bad && !(nulls && nulls[i]);
	}
	return any;
}

const HgjLoop hgj_cast_loops[HGJ_KINDS][HGJ_KINDS] = {
	[HGJ_KIND_U1] = {[HGJ_KIND_I4] = u1_to_i4},
	[HGJ_KIND_I2] = {
		[HGJ_KIND_I4] = i2_to_i4, [HGJ_KIND_I8] = i2_to_i8,
		[HGJ_KIND_F4] = i2_to_f4, [HGJ_KIND_F8] = i2_to_f8
	},
	[HGJ_KIND_I4] = {
		[HGJ_KIND_U1] = i4_to_u1, [HGJ_KIND_I2] = i4_to_i2,
		[HGJ_KIND_I8] = i4_to_i8, [HGJ_KIND_F4] = i4_to_f4,
		[HGJ_KIND_F8] = i4_to_f8
	},
	[HGJ_KIND_I8] = {
		[HGJ_KIND_I2] = i8_to_i2, [HGJ_KIND_I4] = i8_to_i4,
		[HGJ_KIND_U4] = i8_to_u4, [HGJ_KIND_F4] = i8_to_f4,
		[HGJ_KIND_F8] = i8_to_f8
	},
	[HGJ_KIND_U4] = {[HGJ_KIND_I8] = u4_to_i8},
	[HGJ_KIND_F4] = {
		[HGJ_KIND_I2] = f4_to_i2, [HGJ_KIND_I4] = f4_to_i4,
		[HGJ_KIND_I8] = f4_to_i8, [HGJ_KIND_F8] = f4_to_f8
	},
	[HGJ_KIND_F8] = {
		[HGJ_KIND_I2] = f8_to_i2, [HGJ_KIND_I4] = f8_to_i4,
		[HGJ_KIND_I8] = f8_to_i8, [HGJ_KIND_F4] = f8_to_f4
	}
};

/* The first day that no timestamp lies in. */
#define FIRST_LATE_DATE		(TIMESTAMP_END_JULIAN - POSTGRES_EPOCH_JDATE)

LOOP_HEAD(hgj_loop_date_order)
{
	const DateADT *in = values;
	int64	   *out = result;

	for (uint32 i = 0; i < n; i++)
	{
		if (DATE_IS_NOBEGIN(in[i]))
			out[i] = DT_NOBEGIN;
		else if (DATE_IS_NOEND(in[i]))
			out[i] = DT_NOEND;
		else if (in[i] >= FIRST_LATE_DATE)
			out[i] = DT_NOEND - 1;
		else
			out[i] = in[i] * USECS_PER_DAY;
	}
	return false;
}

/* The cast: a date that is too late is an error. */
LOOP_HEAD(hgj_loop_date_timestamp)
{
	const DateADT *in = values;
	bool		any = false;

	hgj_loop_date_order(result, values, NULL, NULL, n);
	for (uint32 i = 0; i < n; i++)
		any |= !DATE_IS_NOEND(in[i]) && in[i] >= FIRST_LATE_DATE &&
			!(nulls && nulls[i]);
	return any;
}
