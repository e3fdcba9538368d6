/*-------------------------------------------------------------------------
 *
 * agg_numeric.c
 *	  Exact sums of numerics.
 *
 * 1. A value below 10^20 with at most 12 decimals is an integer number of
 *	  10^-12, and is added to a 128-bit integer.  That is nearly all of them.
 * 2. Any other value, and a sum that is about to overflow, goes digit by digit
 *	  (base 10^4, as numerics are stored) to an array of 64-bit integers, in which
 *	  carries are left for the end: nothing there can overflow.
 * 3. NaN and infinities are counted.
 * 4. The display scale of a sum is the largest of its values.
 * 5. Values that have come as decimals (columns/decimal.h), as most do whose column
 *	  says how many decimals it has, need not be read; the rest of it is the same.
 * 6. At the end both parts are put together, and become a numeric, or the state
 *	  that numeric_avg_deserialize() and int8_avg_deserialize() read.
 *
 * Numerics are read and written in the format in which they are stored, which is
 * as stable as tables are.
 *
 * Memory: what rule 2 and 3 need is palloc'd in the group table's context for
 * states; results in the caller's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_accumulate.h"
#include "agg/agg_numeric.h"
#include "columns/decimal.h"
#include "fmgr.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/numeric.h"

/* Digits of a numeric behind the point, and decimals, in the 128-bit sum. */
#define FRACTION		3
#define DECIMALS		(4 * FRACTION)

/* The highest weight of a value that goes there: below 10^32 units. */
#define HIGHEST_WEIGHT	4

/* Of the base. */
static const uint64 powers[] = {
	1, UINT64CONST(10000), UINT64CONST(100000000), UINT64CONST(1000000000000),
	UINT64CONST(10000000000000000)
};

/* The part that is no integer, made if need be. */
HgjNumericRest *
hgj_numeric_rest(HgjAggregate *agg, HgjAggNumeric *state)
{
	if (state->rest == NULL)
		state->rest = MemoryContextAllocZero(agg->table->states,
											 sizeof(HgjNumericRest));
	return state->rest;
}

static void
add_special(HgjAggregate *agg, HgjAggNumeric *state, uint16 header)
{
	HgjNumericRest *rest = hgj_numeric_rest(agg, state);

	switch (header & HGJ_NUMERIC_SPECIAL_MASK)
	{
		case HGJ_NUMERIC_PLUS_INFINITY:
			rest->plus_infinity++;
			break;
		case HGJ_NUMERIC_MINUS_INFINITY:
			rest->minus_infinity++;
			break;
		default:
			rest->nan++;
			break;
	}
}

/* Make the rest's digits reach from weight `high` down to `low`. */
void
hgj_numeric_cover(HgjNumericRest *rest, MemoryContext context, int high,
				  int low)
{
	int			lowest = rest->weight - rest->ndigits + 1;
	int64	   *digits;

	if (rest->ndigits > 0)
	{
		if (high <= rest->weight && low >= lowest)
			return;
		high = Max(high, rest->weight);
		low = Min(low, lowest);
	}
	digits = MemoryContextAllocZero(context, (high - low + 1) * sizeof(int64));
	if (rest->ndigits > 0)
	{
		memcpy(digits + (high - rest->weight), rest->digits,
			   rest->ndigits * sizeof(int64));
		pfree(rest->digits);
	}
	rest->digits = digits;
	rest->weight = high;
	rest->ndigits = high - low + 1;
}

/* Add a 128-bit sum to the rest, whose digits reach far enough. */
static void
add_units(HgjNumericRest *rest, int128 sum)
{
	uint128		left = sum < 0 ? -(uint128) sum : (uint128) sum;

	for (int weight = -FRACTION; left > 0; weight++, left /= HGJ_NUMERIC_BASE)
	{
		int64		digit = (int64) (left % HGJ_NUMERIC_BASE);

		rest->digits[rest->weight - weight] += sum < 0 ? -digit : digit;
	}
}

static void
cover_units(HgjNumericRest *rest, MemoryContext context)
{
	hgj_numeric_cover(rest, context, HGJ_INT128_DIGITS - FRACTION, -FRACTION);
}

/* Rule 2. */
static void
add_digits(HgjAggregate *agg, HgjAggNumeric *state, const HgjNumber *number)
{
	HgjNumericRest *rest = hgj_numeric_rest(agg, state);

	hgj_numeric_cover(rest, agg->table->states, number->weight,
		  number->weight - number->ndigits + 1);
	for (int i = 0; i < number->ndigits; i++)
	{
		int64		digit = (int16) hgj_read16(number->digits + 2 * i);

		rest->digits[rest->weight - number->weight + i] +=
			number->negative ? -digit : digit;
	}
}

/* The 128-bit sum would overflow: move it to the rest. */
void
hgj_numeric_move_sum(HgjAggregate *agg, HgjAggNumeric *state)
{
	HgjNumericRest *rest = hgj_numeric_rest(agg, state);

	cover_units(rest, agg->table->states);
	add_units(rest, state->sum);
	state->sum = 0;
}

/* Rule 1, in units of the sum. */
static inline void
add_to_sum(HgjAggregate *agg, HgjAggNumeric *state, int128 units)
{
	int128		sum;

	if (unlikely(__builtin_add_overflow(state->sum, units, &sum)))
	{
		hgj_numeric_move_sum(agg, state);
		sum = units;
	}
	state->sum = sum;
}

/* Rules 1, 2 and 4. */
static inline void
add_number(HgjAggregate *agg, HgjAggNumeric *state, const HgjNumber *number)
{
	int			shift;
	uint128		units;

	if (number->scale > state->scale)
		state->scale = number->scale;
	if (number->ndigits == 0)
		return;

	shift = FRACTION - (number->ndigits - 1 - number->weight);
	if (unlikely(shift < 0 || number->weight > HIGHEST_WEIGHT))
	{
		add_digits(agg, state, number);
		return;
	}
	if (number->ndigits < lengthof(powers) && shift < lengthof(powers))
	{
		uint64		word = 0;

		for (int i = 0; i < number->ndigits; i++)
			word = word * HGJ_NUMERIC_BASE + hgj_read16(number->digits + 2 * i);
		units = (uint128) word * powers[shift];
	}
	else
	{
		units = 0;
		for (int i = 0; i < number->ndigits; i++)
			units = units * HGJ_NUMERIC_BASE + hgj_read16(number->digits + 2 * i);
		for (; shift > 0; shift--)
			units *= HGJ_NUMERIC_BASE;
	}
	add_to_sum(agg, state, number->negative ? -(int128) units : (int128) units);
}

/* Rules 1 to 4 for one value, of which `size` bytes follow the header. */
static inline void
add_stored(HgjAggregate *agg, HgjAggNumeric *state, const char *data, Size size)
{
	HgjNumber	number;

	if (unlikely(!hgj_number_read(data, size, &number)))
		add_special(agg, state, hgj_read16(data));
	else
		add_number(agg, state, &number);
}

static inline void
add_value(HgjAggregate *agg, HgjAggNumeric *state, Datum value)
{
	struct varlena *stored = (struct varlena *) DatumGetPointer(value);
	struct varlena *flat = stored;

	/* a pointer to a value that is stored elsewhere looks short as well */
	if (unlikely(VARATT_IS_EXTENDED(stored) &&
				 (!VARATT_IS_SHORT(stored) || VARATT_IS_EXTERNAL(stored))))
	{
		CHECK_FOR_INTERRUPTS();
		flat = pg_detoast_datum_packed(stored);
	}
	add_stored(agg, state, VARDATA_ANY(flat), VARSIZE_ANY_EXHDR(flat));
	if (unlikely(flat != stored))
		pfree(flat);
}

/* A decimal, or a sum of them: an integer in units of 10^-scale. */
static void
add_decimal(HgjAggregate *agg, HgjAggNumeric *state, int128 value, int scale,
			int display)
{
	int16		room[HGJ_INT128_DIGITS];
	HgjDigits	digits;
	HgjNumber	number = {.scale = display};
	int128		units;

	if (scale <= DECIMALS &&
		!__builtin_mul_overflow(value, (int128) hgj_powers_of_ten[DECIMALS - scale],
								&units))
	{
		if (display > state->scale)
			state->scale = display;
		add_to_sum(agg, state, units);
		return;
	}
	hgj_digits_of_int128(value, scale, room, &digits);
	hgj_digits_strip(&digits);
	number.negative = digits.negative;
	number.weight = digits.weight;
	number.ndigits = digits.n;
	number.digits = (const char *) digits.digits;
	add_number(agg, state, &number);
}

/* The sum of a group's values, as a device has made it. */
void
hgj_numeric_take_sum(HgjAggregate *agg, HgjAggNumeric *state, int128 sum,
					 const HgjDecimals *decimals)
{
	add_decimal(agg, state, sum, decimals->scale, decimals->display);
}

/* What one of these values is, its display scale says. */
static inline void
add_any(HgjAggregate *agg, HgjAggNumeric *state, int64 value, int scale, int display)
{
	if (display == HGJ_NO_DECIMAL)
		add_value(agg, state, (Datum) value);
	else
		add_decimal(agg, state, value, scale, display);
}

static void
sum_decimals(HgjAggregate *agg, const HgjAggRows *rows)
{
	const HgjDecimals *decimals = rows->decimals;
	const int64 *values = rows->values;
	const uint8 *displays = decimals->displays;
	char	   *base = agg->table->rows + agg->offset;
	Size		stride = agg->table->stride;
	int			scale = decimals->scale;
	int			display = decimals->display;

	if (displays == NULL && scale <= DECIMALS)
	{
		int64		factor = hgj_powers_of_ten[DECIMALS - scale];

		HGJ_ACCUMULATE(agg, rows, HgjAggNumeric, int64,
					   if (display > state->scale)
					   state->scale = display;
					   add_to_sum(agg, state, (int128) value * factor));
		return;
	}
	for (uint32 i = 0; i < rows->n; i++)
	{
		uint32		at = rows->at ? rows->at[i] : i;
		uint32		group = rows->groups ? rows->groups[i] : 0;

		add_any(agg, (HgjAggNumeric *) (base + group * stride), values[at], scale,
				displays ? displays[at] : display);
	}
}

void
hgj_agg_sum_numeric(HgjAggregate *agg, const HgjAggRows *rows)
{
	if (rows->decimals)
	{
		sum_decimals(agg, rows);
		return;
	}
	HGJ_ACCUMULATE(agg, rows, HgjAggNumeric, Datum,
				   add_value(agg, state, value));
}

/*
 * Propagate carries from the lowest digit up, so that each but the first is
 * from 0 to HGJ_NUMERIC_BASE - 1.  The first one is large enough for what remains.
 */
static void
propagate(int64 *digits, int n)
{
	for (int i = n - 1; i > 0; i--)
	{
		int64		carry = digits[i] / HGJ_NUMERIC_BASE;

		digits[i] -= carry * HGJ_NUMERIC_BASE;
		if (digits[i] < 0)
		{
			digits[i] += HGJ_NUMERIC_BASE;
			carry--;
		}
		digits[i - 1] += carry;
	}
}

/* Both parts of a sum. */
static void
digits_of_sum(const HgjAggNumeric *state, HgjDigits *result)
{
	const int	spare = 6;		/* digits for the carries of 64-bit ones */
	HgjNumericRest rest;
	int64	   *digits;

	if (state->rest == NULL || state->rest->ndigits == 0)
	{
		hgj_digits_of_int128(state->sum, DECIMALS,
							 palloc(HGJ_INT128_DIGITS * sizeof(int16)), result);
		return;
	}
	rest = *state->rest;
	rest.digits = memcpy(palloc(rest.ndigits * sizeof(int64)), rest.digits,
						 rest.ndigits * sizeof(int64));
	cover_units(&rest, CurrentMemoryContext);
	hgj_numeric_cover(&rest, CurrentMemoryContext, rest.weight + spare,
		  rest.weight - rest.ndigits + 1);
	add_units(&rest, state->sum);

	digits = rest.digits;
	propagate(digits, rest.ndigits);
	result->negative = digits[0] < 0;
	if (result->negative)
	{
		for (int i = 0; i < rest.ndigits; i++)
			digits[i] = -digits[i];
		propagate(digits, rest.ndigits);
	}
	result->weight = rest.weight;
	result->n = rest.ndigits;
	result->digits = palloc(rest.ndigits * sizeof(int16));
	for (int i = 0; i < rest.ndigits; i++)
		result->digits[i] = (int16) digits[i];
	pfree(digits);
}

/* What NaN and infinities among the values make of the sum; 0: nothing. */
static uint16
special_sum(const HgjAggNumeric *state)
{
	const HgjNumericRest *rest = state->rest;

	if (rest == NULL)
		return 0;
	if (rest->nan > 0 ||
		(rest->plus_infinity > 0 && rest->minus_infinity > 0))
		return HGJ_NUMERIC_NAN;
	if (rest->plus_infinity > 0)
		return HGJ_NUMERIC_PLUS_INFINITY;
	return rest->minus_infinity > 0 ? HGJ_NUMERIC_MINUS_INFINITY : 0;
}

/* The sum of at least one value. */
Datum
hgj_numeric_sum(const HgjAggNumeric *state)
{
	uint16		special = special_sum(state);
	HgjDigits	digits;

	if (special)
		return hgj_numeric_store_special(special);
	digits_of_sum(state, &digits);
	return hgj_digits_store(&digits, state->scale);
}

/* The average of n values, n > 0. */
Datum
hgj_numeric_avg(const HgjAggNumeric *state, int64 n)
{
	Datum		sum = hgj_numeric_sum(state);

	if (special_sum(state))
		return sum;
	return DirectFunctionCall2(numeric_div, sum,
							   NumericGetDatum(int64_to_numeric(n)));
}

Datum
hgj_int128_to_numeric(int128 value)
{
	return hgj_decimal_numeric(value, 0, 0);
}

static void
send_number(StringInfo buf, HgjDigits *number, int scale)
{
	hgj_digits_strip(number);
	pq_sendint32(buf, number->n);
	pq_sendint32(buf, number->weight);
	pq_sendint32(buf, number->negative ? HGJ_NUMERIC_NEGATIVE : HGJ_NUMERIC_POSITIVE);
	pq_sendint32(buf, scale);
	for (int i = 0; i < number->n; i++)
		pq_sendint16(buf, number->digits[i]);
}

/* What int8_avg_serialize() makes of the state of n values. */
Datum
hgj_int128_serialize(int128 value, int64 n)
{
	StringInfoData buf;
	HgjDigits	digits;
	int16		room[HGJ_INT128_DIGITS];

	hgj_digits_of_int128(value, 0, room, &digits);
	pq_begintypsend(&buf);
	pq_sendint64(&buf, n);
	send_number(&buf, &digits, 0);
	return PointerGetDatum(pq_endtypsend(&buf));
}

/*
 * What numeric_avg_serialize() makes of it.  How many values have the largest
 * scale is asked only by moving aggregates, which meet no partial states: say
 * all.
 */
Datum
hgj_numeric_serialize(const HgjAggNumeric *state, int64 n)
{
	const HgjNumericRest none = {0};
	const HgjNumericRest *rest = state->rest ? state->rest : &none;
	StringInfoData buf;
	HgjDigits	digits;

	n -= rest->nan + rest->plus_infinity + rest->minus_infinity;
	digits_of_sum(state, &digits);
	pq_begintypsend(&buf);
	pq_sendint64(&buf, n);
	send_number(&buf, &digits, state->scale);
	pq_sendint32(&buf, state->scale);
	pq_sendint64(&buf, n);
	pq_sendint64(&buf, rest->nan);
	pq_sendint64(&buf, rest->plus_infinity);
	pq_sendint64(&buf, rest->minus_infinity);
	return PointerGetDatum(pq_endtypsend(&buf));
}
