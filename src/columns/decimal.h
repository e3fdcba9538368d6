/*-------------------------------------------------------------------------
 *
 * decimal.h
 *	  Numerics as they are stored, and decimals: 64-bit integers in units of a
 *	  power of ten (decimal.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_DECIMAL_H
#define HGJ_DECIMAL_H

#include "compat.h"

#include "columns/batch.h"

/* Numerics are stored in digits of this base. */
#define HGJ_NUMERIC_BASE		10000

/* The header of a stored numeric: how it is laid out, and sign of a long one */
#define HGJ_NUMERIC_FORM_MASK	0xC000
#define HGJ_NUMERIC_POSITIVE	0x0000
#define HGJ_NUMERIC_NEGATIVE	0x4000
#define HGJ_NUMERIC_SHORT		0x8000
#define HGJ_NUMERIC_SPECIAL		0xC000
#define HGJ_NUMERIC_SPECIAL_MASK	0xF000
#define HGJ_NUMERIC_NAN			0xC000
#define HGJ_NUMERIC_PLUS_INFINITY	0xD000
#define HGJ_NUMERIC_MINUS_INFINITY	0xF000

/* ... of a short one: sign, scale, and weight in two's complement */
#define HGJ_SHORT_NEGATIVE		0x2000
#define HGJ_SHORT_SCALE_SHIFT	7
#define HGJ_SHORT_SCALE_MAX		63
#define HGJ_SHORT_WEIGHT_SIGN	0x0040
#define HGJ_SHORT_WEIGHT_MASK	0x003F
#define HGJ_LONG_SCALE_MASK		0x3FFF

/* A stored value that is neither NaN nor infinite. */
typedef struct HgjNumber
{
	bool		negative;
	int			weight;			/* of the first digit */
	int			scale;			/* for display */
	int			ndigits;
	const char *digits;			/* maybe unaligned */
} HgjNumber;

/* A number to be stored: digits from the highest on. */
typedef struct HgjDigits
{
	bool		negative;
	int			weight;
	int			n;
	int16	   *digits;
} HgjDigits;

/* Digits that a 128-bit integer may have, with one more for the point. */
#define HGJ_INT128_DIGITS		11

/*
 * Decimals: values of a column or an expression.  What such an integer cannot be
 * (because it is too large, has more decimals, is NaN or infinite) is a numeric
 * among them, known by its display scale.
 */
#define HGJ_NO_DECIMAL			255 /* a display scale: the value is a Datum */

/* The smallest unit of a stored column, and of an expression. */
#define HGJ_COLUMN_SCALE_MAX	18
#define HGJ_DECIMAL_SCALE_MAX	60

typedef struct HgjDecimals
{
	const HgjVector *vector;	/* of 64-bit integers ... */
	uint8		scale;			/* in units of 10^-scale */
	uint8		display;		/* the display scale of all, if ... */
	const uint8 *displays;		/* ... this, of each, is NULL */
} HgjDecimals;

/* No number of units that floors are made of has an absolute value of more than 10^36. */
#define HGJ_MOST_UNITS	\
	((int128) INT64CONST(1000000000000000000) * INT64CONST(1000000000000000000))

extern const int64 hgj_powers_of_ten[HGJ_COLUMN_SCALE_MAX + 1];

extern void hgj_digits_of_int128(int128 value, int scale, int16 *room,
								 HgjDigits *result);
extern void hgj_digits_strip(HgjDigits *number);
extern Datum hgj_digits_store(HgjDigits *number, int scale);
extern Datum hgj_numeric_store_special(uint16 header);
extern Datum hgj_decimal_numeric(int128 value, int scale, int display);
extern int128 hgj_decimal_floor(Datum numeric, int scale, bool *exact);
extern void hgj_comparison_range(HgjComparison comparison, int128 floor, bool exact,
								 int128 *low, int128 *high);
extern bool hgj_decimals_read(const Datum *values, const uint8 *nulls, uint32 n,
							  int scale, int64 *out, uint8 *displays);

static inline uint16
hgj_read16(const char *p)
{
	uint16		value;

	memcpy(&value, p, sizeof(value));
	return value;
}

/* False: it is special, and the header is all there is. */
static inline bool
hgj_number_read(const char *data, Size size, HgjNumber *number)
{
	uint16		header = hgj_read16(data);

	if (header & HGJ_NUMERIC_SHORT)
	{
		if ((header & HGJ_NUMERIC_FORM_MASK) == HGJ_NUMERIC_SPECIAL)
			return false;
		number->negative = (header & HGJ_SHORT_NEGATIVE) != 0;
		number->scale = (header >> HGJ_SHORT_SCALE_SHIFT) & HGJ_SHORT_SCALE_MAX;
		number->weight = header & HGJ_SHORT_WEIGHT_MASK;
		if (header & HGJ_SHORT_WEIGHT_SIGN)
			number->weight -= HGJ_SHORT_WEIGHT_SIGN;
		number->digits = data + 2;
		number->ndigits = (size - 2) / 2;
	}
	else
	{
		number->negative = (header & HGJ_NUMERIC_FORM_MASK) == HGJ_NUMERIC_NEGATIVE;
		number->scale = header & HGJ_LONG_SCALE_MASK;
		number->weight = (int16) hgj_read16(data + 2);
		number->digits = data + 4;
		number->ndigits = (size - 4) / 2;
	}
	return true;
}

#endif							/* HGJ_DECIMAL_H */
