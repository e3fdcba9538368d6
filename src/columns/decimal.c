/*-------------------------------------------------------------------------
 *
 * decimal.c
 *	  Numerics as 64-bit integers in units of 10^-scale, read straight from the
 *	  stored digits, and back.
 *
 * 1. A stored numeric is a string of digits of base 10^4, which are aligned at the
 *	  point, without zeros at either end.  A unit of 10^-scale lies within one of
 *	  them.  So the integer is made of the digits above that one, times what the
 *	  unit leaves of it, and of the upper part of that one.
 * 2. A value whose display scale is that of its column is a decimal; so is one of a
 *	  smaller display scale, which is noted.  Everything else is left as it is:
 *	  values of a larger display scale, NaN, infinities, such as do not fit 64 bits,
 *	  and those that are compressed or stored elsewhere.
 * 3. The way back writes what PostgreSQL would have: no zeros at either end, the
 *	  short header where it suffices.
 *
 * Numerics are read and written in the format in which they are stored, which is
 * as stable as tables are.
 *
 * Memory: numerics are palloc'd in the caller's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "columns/decimal.h"

const int64 hgj_powers_of_ten[HGJ_COLUMN_SCALE_MAX + 1] = {
	INT64CONST(1), INT64CONST(10), INT64CONST(100), INT64CONST(1000),
	INT64CONST(10000), INT64CONST(100000), INT64CONST(1000000),
	INT64CONST(10000000), INT64CONST(100000000), INT64CONST(1000000000),
	INT64CONST(10000000000), INT64CONST(100000000000),
	INT64CONST(1000000000000), INT64CONST(10000000000000),
	INT64CONST(100000000000000), INT64CONST(1000000000000000),
	INT64CONST(10000000000000000), INT64CONST(100000000000000000),
	INT64CONST(1000000000000000000)
};

/* Digits of values that need no look at whether they fit. */
#define SAFE_DIGITS		4

/*
 * An integer in units of 10^-scale, as digits in `room`, which is for
 * HGJ_INT128_DIGITS of them.
 */
void
hgj_digits_of_int128(int128 value, int scale, int16 *room, HgjDigits *result)
{
	uint128		left = value < 0 ? -(uint128) value : (uint128) value;
	uint64		small;
	int			first = HGJ_INT128_DIGITS;
	int			lowest = -((scale + 3) / 4);
	int			odd = scale % 4;

	if (odd > 0)
	{
		uint64		part = hgj_powers_of_ten[odd];
		uint64		low;

		/* the unit lies within a digit: the rest of that one is zeros */
		if (left <= PG_UINT64_MAX)
		{
			low = (uint64) left % part;
			left = (uint64) left / part;
		}
		else
		{
			low = (uint64) (left % part);
			left /= part;
		}
		room[--first] = (int16) (low * hgj_powers_of_ten[4 - odd]);
	}
	for (; left > PG_UINT64_MAX; left /= HGJ_NUMERIC_BASE)
		room[--first] = (int16) (left % HGJ_NUMERIC_BASE);
	for (small = (uint64) left; small > 0; small /= HGJ_NUMERIC_BASE)
		room[--first] = (int16) (small % HGJ_NUMERIC_BASE);
	result->negative = value < 0;
	result->digits = room + first;
	result->n = HGJ_INT128_DIGITS - first;
	result->weight = lowest + result->n - 1;
}

/* Drop zeros at both ends. */
void
hgj_digits_strip(HgjDigits *number)
{
	while (number->n > 0 && number->digits[0] == 0)
	{
		number->digits++;
		number->n--;
		number->weight--;
	}
	while (number->n > 0 && number->digits[number->n - 1] == 0)
		number->n--;
	if (number->n == 0)
	{
		number->negative = false;
		number->weight = 0;
	}
}

/* A numeric as it is stored. */
Datum
hgj_digits_store(HgjDigits *number, int scale)
{
	bool		short_form;
	Size		header;
	Size		size;
	char	   *result;
	uint16		word;

	hgj_digits_strip(number);
	if (number->weight > PG_INT16_MAX || scale > HGJ_LONG_SCALE_MASK)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("value overflows numeric format")));

	short_form = scale <= HGJ_SHORT_SCALE_MAX &&
		number->weight <= HGJ_SHORT_WEIGHT_MASK &&
		number->weight >= -HGJ_SHORT_WEIGHT_SIGN;
	header = VARHDRSZ + (short_form ? 2 : 4);
	size = header + number->n * sizeof(int16);
	result = palloc(size);
	SET_VARSIZE(result, size);
	if (short_form)
	{
		word = HGJ_NUMERIC_SHORT | (number->negative ? HGJ_SHORT_NEGATIVE : 0) |
			(scale << HGJ_SHORT_SCALE_SHIFT) |
			(number->weight & (HGJ_SHORT_WEIGHT_SIGN | HGJ_SHORT_WEIGHT_MASK));
		memcpy(result + VARHDRSZ, &word, 2);
	}
	else
	{
		word = (number->negative ? HGJ_NUMERIC_NEGATIVE : HGJ_NUMERIC_POSITIVE) | scale;
		memcpy(result + VARHDRSZ, &word, 2);
		word = (uint16) (int16) number->weight;
		memcpy(result + VARHDRSZ + 2, &word, 2);
	}
	memcpy(result + header, number->digits, number->n * sizeof(int16));
	return PointerGetDatum(result);
}

/* NaN or an infinity. */
Datum
hgj_numeric_store_special(uint16 header)
{
	char	   *result = palloc(VARHDRSZ + sizeof(header));

	SET_VARSIZE(result, VARHDRSZ + sizeof(header));
	memcpy(result + VARHDRSZ, &header, sizeof(header));
	return PointerGetDatum(result);
}

/* Step 3: an integer in units of 10^-scale, with a display scale, as a numeric. */
Datum
hgj_decimal_numeric(int128 value, int scale, int display)
{
	int16		room[HGJ_INT128_DIGITS];
	HgjDigits	digits;

	hgj_digits_of_int128(value, scale, room, &digits);
	return hgj_digits_store(&digits, display);
}

/* Units in a digit of base 10^4 that is 10^power units, and whether some are left over. */
static int128
units_of_digit(int128 digit, int power, bool *exact)
{
	int64		part;

	if (power >= 0)
		return digit * hgj_powers_of_ten[Min(power, HGJ_COLUMN_SCALE_MAX)] *
			hgj_powers_of_ten[Max(power - HGJ_COLUMN_SCALE_MAX, 0)];
	part = power > -4 ? hgj_powers_of_ten[-power] : HGJ_NUMERIC_BASE;
	*exact = *exact && digit % part == 0;
	return digit / part;
}

/*
 * The largest integer that is not above the value in units of 10^-scale; *exact: it is that.
 * What is larger than HGJ_MOST_UNITS is taken for that, inexactly, as are NaN and infinity,
 * and what is less than -HGJ_MOST_UNITS likewise.
 */
int128
hgj_decimal_floor(Datum numeric, int scale, bool *exact)
{
	struct varlena *value = PG_DETOAST_DATUM_PACKED(numeric);
	const char *data = VARDATA_ANY(value);
	HgjNumber	number;
	int128		units = 0;

	*exact = false;
	if (!hgj_number_read(data, VARSIZE_ANY_EXHDR(value), &number))
		return (hgj_read16(data) & HGJ_NUMERIC_SPECIAL_MASK) == HGJ_NUMERIC_MINUS_INFINITY ?
			-HGJ_MOST_UNITS : HGJ_MOST_UNITS;
	if (number.ndigits > 0 && 4 * number.weight + scale > 32)
		return number.negative ? -HGJ_MOST_UNITS : HGJ_MOST_UNITS;
	*exact = true;
	for (int i = 0; i < number.ndigits; i++)
		units += units_of_digit(hgj_read16(number.digits + 2 * i),
								4 * (number.weight - i) + scale, exact);
	if (number.negative)
		return *exact ? -units : -units - 1;
	return units;
}

/*
 * The integers x for which "x comparison y" holds, where `floor` is the largest one that is
 * not above y, and, if exact, y itself: *low to *high, of which none is in there where
 * *low > *high.  Those of NE are the others of EQ's.
 */
void
hgj_comparison_range(HgjComparison comparison, int128 floor, bool exact,
					 int128 *low, int128 *high)
{
	*low = -HGJ_MOST_UNITS * 10;
	*high = HGJ_MOST_UNITS * 10;
	switch (comparison)
	{
		case HGJ_LT:
			*high = exact ? floor - 1 : floor;
			break;
		case HGJ_LE:
			*high = floor;
			break;
		case HGJ_GT:
			*low = floor + 1;
			break;
		case HGJ_GE:
			*low = exact ? floor : floor + 1;
			break;
		default:
			*low = floor;
			*high = exact ? floor : floor - 1;
			break;
	}
}

/*
 * Step 1: n digits, the first of which has this weight.  The unit lies in a digit that
 * is the fraction'th behind the point and has `below` decimals below it, which is a
 * constant wherever this is inlined.  False: it is no integer of 64 bits.
 */
static pg_attribute_always_inline bool
read_digits(const char *digits, int n, int weight, int fraction, int below,
			int64 *out)
{
	const uint64 part = below == 0 ? 1 : below == 1 ? 10 : below == 2 ? 100 : 1000;
	int			total = weight + 1 + fraction;	/* with zeros that are not stored */
	int			missing = total - n;
	uint64		value = 0;
	uint64		last;
	uint128		wide;

	if (unlikely(missing < 0 || total > SAFE_DIGITS + 1))
		return false;
	for (int i = 0; i < n - 1; i++)
		value = value * HGJ_NUMERIC_BASE + hgj_read16(digits + 2 * i);
	last = hgj_read16(digits + 2 * (n - 1));
	if (missing == 0)
	{
		uint64		units = last / part;

		wide = (uint128) value * (HGJ_NUMERIC_BASE / part) + units;
		if (unlikely(units * part != last))
			return false;
	}
	else
		wide = (uint128) (value * HGJ_NUMERIC_BASE + last) *
			(uint64) hgj_powers_of_ten[4 * missing - below];
	*out = (int64) wide;
	return total <= SAFE_DIGITS || wide <= PG_INT64_MAX;
}

/* Step 2 for one value; false: it is none.  *display becomes its display scale. */
static bool
read_any(Datum value, int scale, int below, int64 *out, uint8 *display)
{
	const char *stored = DatumGetPointer(value);
	int			fraction = (scale + 3) / 4;
	HgjNumber	number;
	bool		fits = true;

	if (VARATT_IS_EXTENDED(stored) &&
		(!VARATT_IS_SHORT(stored) || VARATT_IS_EXTERNAL(stored)))
		return false;
	if (!hgj_number_read(VARDATA_ANY(stored), VARSIZE_ANY_EXHDR(stored), &number) ||
		number.scale > scale)
		return false;
	*display = number.scale;
	*out = 0;
	if (number.ndigits == 0)
		return true;
	switch (below)
	{
		case 0:
			fits = read_digits(number.digits, number.ndigits, number.weight, fraction, 0, out);
			break;
		case 1:
			fits = read_digits(number.digits, number.ndigits, number.weight, fraction, 1, out);
			break;
		case 2:
			fits = read_digits(number.digits, number.ndigits, number.weight, fraction, 2, out);
			break;
		default:
			fits = read_digits(number.digits, number.ndigits, number.weight, fraction, 3, out);
			break;
	}
	if (number.negative)
		*out = -*out;
	return fits;
}

/*
 * The same for values as tables have them: with short headers, and of the display
 * scale that is expected.  False: this is another one.
 */
static pg_attribute_always_inline bool
read_usual(Datum value, int scale, int below, int64 *out)
{
	const char *stored = DatumGetPointer(value);
	const uint16 fixed = HGJ_NUMERIC_FORM_MASK | (HGJ_SHORT_SCALE_MAX << HGJ_SHORT_SCALE_SHIFT);
	uint16		header;
	int			weight;
	int			n;

	if (!VARATT_IS_1B(stored) || VARATT_IS_1B_E(stored))
		return false;
	header = hgj_read16(VARDATA_1B(stored));
	if ((header & fixed) != (HGJ_NUMERIC_SHORT | (scale << HGJ_SHORT_SCALE_SHIFT)))
		return false;
	n = (VARSIZE_1B(stored) - VARHDRSZ_SHORT - 2) / 2;
	weight = ((header & (HGJ_SHORT_WEIGHT_SIGN | HGJ_SHORT_WEIGHT_MASK)) ^
			  HGJ_SHORT_WEIGHT_SIGN) - HGJ_SHORT_WEIGHT_SIGN;
	*out = 0;
	if (n > 0 && !read_digits(VARDATA_1B(stored) + 2, n, weight, (scale + 3) / 4, below, out))
		return false;
	if (header & HGJ_SHORT_NEGATIVE)
		*out = -*out;
	return true;
}

static pg_attribute_always_inline bool
read_all(const Datum *values, const uint8 *nulls, uint32 n, int scale, int below,
		 int64 *out, uint8 *displays)
{
	bool		mixed = false;

	memset(displays, scale, n);
	for (uint32 i = 0; i < n; i++)
	{
		int64		value = 0;

		if ((nulls == NULL || nulls[i] == 0) &&
			unlikely(!read_usual(values[i], scale, below, &value)))
		{
			if (!read_any(values[i], scale, below, &value, &displays[i]))
			{
				value = (int64) values[i];
				displays[i] = HGJ_NO_DECIMAL;
			}
			mixed |= displays[i] != scale;
		}
		out[i] = value;
	}
	return mixed;
}

/*
 * Numerics, of which those with nulls[i] are NULL (nulls itself is NULL: none), in
 * units of 10^-scale, into out, and their display scales.  True: these are not all
 * `scale`.
 */
bool
hgj_decimals_read(const Datum *values, const uint8 *nulls, uint32 n, int scale,
				  int64 *out, uint8 *displays)
{
	switch (4 * ((scale + 3) / 4) - scale)
	{
		case 0:
			return read_all(values, nulls, n, scale, 0, out, displays);
		case 1:
			return read_all(values, nulls, n, scale, 1, out, displays);
		case 2:
			return read_all(values, nulls, n, scale, 2, out, displays);
		default:
			return read_all(values, nulls, n, scale, 3, out, displays);
	}
}
