/*-------------------------------------------------------------------------
 *
 * program_ops_select.c
 *	  Loops that pick positions, and those that collect and spread values.
 *
 * 1. Selections are free of branches: every position is written, and the place
 *	  to write to moves on if it passes.  The place never overtakes the position
 *	  that is read, so that the result may be written over the selection.
 * 2. They do not look at NULLs: hgj_select_valid() takes those out of what is
 *	  left.
 *
 * Compiled with -O3.  No memory, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "expr/program_private.h"

/* Run the body for each row: `row` is its position, `pass` what comes out. */
#define SELECT_ROWS(rows, out, k, body) \
	do { \
		uint32		n_ = (rows)->n; \
		if ((rows)->sel) \
		{ \
			const uint32 *sel_ = (rows)->sel; \
			for (uint32 i = 0; i < n_; i++) \
			{ \
				uint32		row = sel_[i]; \
				bool		pass; \
				body \
				(out)[k] = row; \
				(k) += pass; \
			} \
		} \
		else \
		{ \
			uint32		first_ = (rows)->first; \
			for (uint32 i = 0; i < n_; i++) \
			{ \
				uint32		row = first_ + i; \
				bool		pass; \
				body \
				(out)[k] = row; \
				(k) += pass; \
			} \
		} \
	} while (0)

/*
 * The values in [low, low + span], in the unsigned arithmetic of the kind's
 * width; the caller has seen to it that both ends are values of the kind.
 */
#define RANGE_LOOPS(kind, type, utype) \
static uint32 \
range_##kind(const void *values, const HgjRows *rows, int64 low, \
			 uint64 span, uint32 *out) \
{ \
	const type *v = values; \
	utype		from = (utype) low; \
	utype		width = (utype) span; \
	uint32		k = 0; \
\
	SELECT_ROWS(rows, out, k, \
				pass = (utype) ((utype) v[row] - from) <= width;); \
	return k; \
} \
\
static uint32 \
outside_##kind(const void *values, const HgjRows *rows, int64 low, \
			   uint64 span, uint32 *out) \
{ \
	const type *v = values; \
	utype		from = (utype) low; \
	utype		width = (utype) span; \
	uint32		k = 0; \
\
	SELECT_ROWS(rows, out, k, \
				pass = (utype) ((utype) v[row] - from) > width;); \
	return k; \
}

RANGE_LOOPS(u1, uint8, uint8)
RANGE_LOOPS(i2, int16, uint16)
RANGE_LOOPS(i4, int32, uint32)
RANGE_LOOPS(i8, int64, uint64)
RANGE_LOOPS(u4, uint32, uint32)

uint32
hgj_select_range(HgjKind kind, const void *values, const HgjRows *rows,
				 int64 low, uint64 span, bool invert, uint32 *out)
{
#define RANGE_CASE(KIND, kind) \
		case HGJ_KIND_##KIND: \
			return invert ? outside_##kind(values, rows, low, span, out) : \
				range_##kind(values, rows, low, span, out)

	switch (kind)
	{
			RANGE_CASE(U1, u1);
			RANGE_CASE(I2, i2);
			RANGE_CASE(I4, i4);
			RANGE_CASE(I8, i8);
			RANGE_CASE(U4, u4);
		default:
			break;
	}
	elog(ERROR, "no range of kind %d", (int) kind);
	return 0;
}

#define FLOAT_LOOP(kind, type, test, expression) \
static uint32 \
kind##_##test(const void *values, const HgjRows *rows, double bound, \
			  uint32 *out) \
{ \
	const type *v = values; \
	uint32		k = 0; \
\
	SELECT_ROWS(rows, out, k, \
				double a = v[row]; \
				pass = (expression);); \
	return k; \
}

#define FLOAT_LOOPS(kind, type) \
	FLOAT_LOOP(kind, type, eq, a == bound) \
	FLOAT_LOOP(kind, type, lt, a < bound) \
	FLOAT_LOOP(kind, type, le, a <= bound) \
	FLOAT_LOOP(kind, type, not_eq, !(a == bound)) \
	FLOAT_LOOP(kind, type, not_lt, !(a < bound)) \
	FLOAT_LOOP(kind, type, not_le, !(a <= bound))

FLOAT_LOOPS(f4, float)
FLOAT_LOOPS(f8, double)

uint32
hgj_select_float(HgjKind kind, const void *values, const HgjRows *rows,
				 HgjFloatTest test, double bound, uint32 *out)
{
	static uint32 (*const loops[2][HGJ_FLOAT_TESTS]) (const void *,
													  const HgjRows *,
													  double, uint32 *) = {
		{f4_eq, f4_lt, f4_le, f4_not_eq, f4_not_lt, f4_not_le},
		{f8_eq, f8_lt, f8_le, f8_not_eq, f8_not_lt, f8_not_le}
	};

	return loops[kind == HGJ_KIND_F8][test] (values, rows, bound, out);
}

/* The rows whose flag, one per row of the chunk, is 1. */
uint32
hgj_select_flags(const uint8 *flags, const HgjRows *rows, uint32 *out)
{
	uint32		k = 0;

	SELECT_ROWS(rows, out, k, pass = flags[i];);
	return k;
}

/* The rows whose boolean value is true. */
uint32
hgj_select_true(const uint8 *values, const uint8 *nulls, const HgjRows *rows,
				uint32 *out)
{
	uint32		k = 0;

	if (nulls == NULL)
		SELECT_ROWS(rows, out, k, pass = (values[i] != 0););
	else
		SELECT_ROWS(rows, out, k,
					pass = (values[i] != 0) & (nulls[i] == 0););
	return k;
}

/* The rows whose bit is `valid`. */
uint32
hgj_select_valid(const uint64 *validity, const HgjRows *rows, bool valid,
				 uint32 *out)
{
	uint32		k = 0;
	uint64		flip = valid ? 0 : ~UINT64CONST(0);

	SELECT_ROWS(rows, out, k,
				pass = ((validity[row / 64] ^ flip) >> (row % 64)) & 1;);
	return k;
}

void
hgj_values_scatter(uint8 width, const void *values, const uint32 *index, uint32 n,
			void *out)
{
#define SCATTER_CASE(bytes, type) \
		case bytes: \
			for (uint32 i = 0; i < n; i++) \
				((type *) out)[index[i]] = ((const type *) values)[i]; \
			break

	switch (width)
	{
			SCATTER_CASE(1, uint8);
			SCATTER_CASE(2, uint16);
			SCATTER_CASE(4, uint32);
			SCATTER_CASE(8, uint64);
	}
}

/* One byte per row, 1 where it is NULL; false if none is. */
bool
hgj_values_nulls(const HgjVector *vector, const HgjRows *rows, uint8 *nulls)
{
	const uint64 *validity = vector->validity;
	uint8		any = 0;

	if (!vector->has_nulls)
		return false;
	if (rows->sel)
	{
		for (uint32 i = 0; i < rows->n; i++)
		{
			uint32		row = rows->sel[i];

			nulls[i] = (~validity[row / 64] >> (row % 64)) & 1;
			any |= nulls[i];
		}
		return any != 0;
	}
	for (uint32 i = 0; i < rows->n; i += 64)
	{
		uint64		word = ~validity[(rows->first + i) / 64];
		uint32		m = Min(64, rows->n - i);

		if (m < 64)
			word &= (UINT64CONST(1) << m) - 1;
		if (word == 0)
			memset(nulls + i, 0, m);
		else
		{
			for (uint32 j = 0; j < m; j++)
				nulls[i + j] = (word >> j) & 1;
			any = 1;
		}
	}
	return any != 0;
}

/* NULL where one of two operands is; one of them, if the other never is, or out. */
const uint8 *
hgj_either_null(const uint8 *a, const uint8 *b, uint32 n, uint8 *out)
{
	uint8	   *pg_restrict nulls = out;

	if (a == NULL)
		return b;
	if (b == NULL)
		return a;
	for (uint32 i = 0; i < n; i++)
		nulls[i] = a[i] | b[i];
	return nulls;
}

/* Values as 64-bit keys that are equal if and only if the values are. */
void
hgj_values_keys(HgjKind kind, const void *values, const HgjRows *rows,
				int64 *keys)
{
	uint32		n = rows->n;
	uint32		first = rows->first;
	const uint32 *sel = rows->sel;

#define KEYS_CASE(KIND, type, key) \
		case HGJ_KIND_##KIND: \
			if (sel) \
				for (uint32 i = 0; i < n; i++) \
					keys[i] = key(((const type *) values)[sel[i]]); \
			else \
				for (uint32 i = 0; i < n; i++) \
					keys[i] = key(((const type *) values)[first + i]); \
			break

	switch (kind)
	{
			KEYS_CASE(U1, uint8, (int64));
			KEYS_CASE(I2, int16, (int64));
			KEYS_CASE(I4, int32, (int64));
			KEYS_CASE(I8, int64, (int64));
			KEYS_CASE(U4, uint32, (int64));
			KEYS_CASE(F4, float, (int64) hgj_float_word);
			KEYS_CASE(F8, double, (int64) hgj_float_word);
		default:
			elog(ERROR, "no keys of kind %d", (int) kind);
	}
}
