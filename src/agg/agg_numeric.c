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
 * 5. At the end both parts are put together, and become a numeric, or the state
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
#include "fmgr.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/numeric.h"

#define BASE			10000

/* Digits of this base after the point in the 128-bit sum. */
#define FRACTION		3

/* The highest weight of a value that goes there: below 10^32 units. */
#define HIGHEST_WEIGHT	4

/* Digits that a 128-bit integer may have. */
#define INT128_DIGITS	10

/* The header of a stored numeric: how it is laid out, and sign of a long one */
#define FORM_MASK		0xC000
#define FORM_POSITIVE	0x0000
#define FORM_NEGATIVE	0x4000
#define FORM_SHORT		0x8000
#define FORM_SPECIAL	0xC000
#define SPECIAL_MASK	0xF000
#define SPECIAL_NAN		0xC000
#define SPECIAL_PLUS	0xD000
#define SPECIAL_MINUS	0xF000

/* ... of a short one: sign, scale, and weight in two's complement */
#define SHORT_NEGATIVE	0x2000
#define SHORT_SCALE_SHIFT	7
#define SHORT_SCALE_MAX		63
#define SHORT_WEIGHT_SIGN	0x0040
#define SHORT_WEIGHT_MASK	0x003F
#define LONG_SCALE_MASK		0x3FFF

/* A stored value that is neither NaN nor infinite. */
typedef struct Number
{
	bool		negative;
	int			weight;
	int			scale;
	int			ndigits;
	const char *digits;			/* maybe unaligned */
} Number;

/* A number to be written: digits from the highest on, each below BASE. */
typedef struct Digits
{
	bool		negative;
	int			weight;
	int			n;
	int16	   *digits;
} Digits;

static const uint64 powers[] = {
	1, BASE, (uint64) BASE * BASE, (uint64) BASE * BASE * BASE,
	(uint64) BASE * BASE * BASE * BASE
};

static inline uint16
read16(const char *p)
{
	uint16		value;

	memcpy(&value, p, sizeof(value));
	return value;
}

/* False: it is special, and the header is all there is. */
static inline bool
decode(const char *data, Size size, Number *number)
{
	uint16		header = read16(data);

	if (header & FORM_SHORT)
	{
		if ((header & FORM_MASK) == FORM_SPECIAL)
			return false;
		number->negative = (header & SHORT_NEGATIVE) != 0;
		number->scale = (header >> SHORT_SCALE_SHIFT) & SHORT_SCALE_MAX;
		number->weight = header & SHORT_WEIGHT_MASK;
		if (header & SHORT_WEIGHT_SIGN)
			number->weight -= SHORT_WEIGHT_SIGN;
		number->digits = data + 2;
		number->ndigits = (size - 2) / 2;
	}
	else
	{
		number->negative = (header & FORM_MASK) == FORM_NEGATIVE;
		number->scale = header & LONG_SCALE_MASK;
		number->weight = (int16) read16(data + 2);
		number->digits = data + 4;
		number->ndigits = (size - 4) / 2;
	}
	return true;
}

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

	switch (header & SPECIAL_MASK)
	{
		case SPECIAL_PLUS:
			rest->plus_infinity++;
			break;
		case SPECIAL_MINUS:
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

	for (int weight = -FRACTION; left > 0; weight++, left /= BASE)
	{
		int64		digit = (int64) (left % BASE);

		rest->digits[rest->weight - weight] += sum < 0 ? -digit : digit;
	}
}

static void
cover_units(HgjNumericRest *rest, MemoryContext context)
{
	hgj_numeric_cover(rest, context, INT128_DIGITS - FRACTION, -FRACTION);
}

/* Rule 2. */
static void
add_digits(HgjAggregate *agg, HgjAggNumeric *state, const Number *number)
{
	HgjNumericRest *rest = hgj_numeric_rest(agg, state);

	hgj_numeric_cover(rest, agg->table->states, number->weight,
		  number->weight - number->ndigits + 1);
	for (int i = 0; i < number->ndigits; i++)
	{
		int64		digit = (int16) read16(number->digits + 2 * i);

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

/* Rules 1 to 4 for one value, of which `size` bytes follow the header. */
static inline void
add_stored(HgjAggregate *agg, HgjAggNumeric *state, const char *data, Size size)
{
	Number		number;
	int			shift;
	uint128		units;
	int128		sum;

	if (unlikely(!decode(data, size, &number)))
	{
		add_special(agg, state, read16(data));
		return;
	}
	if (number.scale > state->scale)
		state->scale = number.scale;
	if (number.ndigits == 0)
		return;

	shift = FRACTION - (number.ndigits - 1 - number.weight);
	if (unlikely(shift < 0 || number.weight > HIGHEST_WEIGHT))
	{
		add_digits(agg, state, &number);
		return;
	}
	if (number.ndigits < lengthof(powers) && shift < lengthof(powers))
	{
		uint64		word = 0;

		for (int i = 0; i < number.ndigits; i++)
			word = word * BASE + read16(number.digits + 2 * i);
		units = (uint128) word * powers[shift];
	}
	else
	{
		units = 0;
		for (int i = 0; i < number.ndigits; i++)
			units = units * BASE + read16(number.digits + 2 * i);
		for (; shift > 0; shift--)
			units *= BASE;
	}
	if (unlikely(__builtin_add_overflow(state->sum,
										number.negative ? -(int128) units : (int128) units,
										&sum)))
	{
		hgj_numeric_move_sum(agg, state);
		sum = number.negative ? -(int128) units : (int128) units;
	}
	state->sum = sum;
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

void
hgj_agg_sum_numeric(HgjAggregate *agg, const HgjAggRows *rows)
{
	HGJ_ACCUMULATE(agg, rows, HgjAggNumeric, Datum,
				   add_value(agg, state, value));
}

/* The digits of an integer whose lowest digit has this weight. */
static void
digits_of_int128(int128 value, int lowest_weight, Digits *result)
{
	uint128		left = value < 0 ? -(uint128) value : (uint128) value;
	int16	   *digits = palloc(INT128_DIGITS * sizeof(int16));
	int			first = INT128_DIGITS;

	for (; left > 0; left /= BASE)
		digits[--first] = (int16) (left % BASE);
	result->negative = value < 0;
	result->digits = digits + first;
	result->n = INT128_DIGITS - first;
	result->weight = lowest_weight + result->n - 1;
}

/*
 * Propagate carries from the lowest digit up, so that each but the first is
 * from 0 to BASE - 1.  The first one is large enough for what remains.
 */
static void
propagate(int64 *digits, int n)
{
	for (int i = n - 1; i > 0; i--)
	{
		int64		carry = digits[i] / BASE;

		digits[i] -= carry * BASE;
		if (digits[i] < 0)
		{
			digits[i] += BASE;
			carry--;
		}
		digits[i - 1] += carry;
	}
}

/* Both parts of a sum. */
static void
digits_of_sum(const HgjAggNumeric *state, Digits *result)
{
	const int	spare = 6;		/* digits for the carries of 64-bit ones */
	HgjNumericRest rest;
	int64	   *digits;

	if (state->rest == NULL || state->rest->ndigits == 0)
	{
		digits_of_int128(state->sum, -FRACTION, result);
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

/* Drop zeros at both ends. */
static void
strip(Digits *number)
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
static Datum
store_number(Digits *number, int scale)
{
	bool		short_form;
	Size		header;
	Size		size;
	char	   *result;
	uint16		word;

	strip(number);
	if (number->weight > PG_INT16_MAX || scale > LONG_SCALE_MASK)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("value overflows numeric format")));

	short_form = scale <= SHORT_SCALE_MAX &&
		number->weight <= SHORT_WEIGHT_MASK &&
		number->weight >= -SHORT_WEIGHT_SIGN;
	header = VARHDRSZ + (short_form ? 2 : 4);
	size = header + number->n * sizeof(int16);
	result = palloc(size);
	SET_VARSIZE(result, size);
	if (short_form)
	{
		word = FORM_SHORT | (number->negative ? SHORT_NEGATIVE : 0) |
			(scale << SHORT_SCALE_SHIFT) |
			(number->weight & (SHORT_WEIGHT_SIGN | SHORT_WEIGHT_MASK));
		memcpy(result + VARHDRSZ, &word, 2);
	}
	else
	{
		word = (number->negative ? FORM_NEGATIVE : FORM_POSITIVE) | scale;
		memcpy(result + VARHDRSZ, &word, 2);
		word = (uint16) (int16) number->weight;
		memcpy(result + VARHDRSZ + 2, &word, 2);
	}
	memcpy(result + header, number->digits, number->n * sizeof(int16));
	return PointerGetDatum(result);
}

static Datum
store_special(uint16 word)
{
	char	   *result = palloc(VARHDRSZ + sizeof(word));

	SET_VARSIZE(result, VARHDRSZ + sizeof(word));
	memcpy(result + VARHDRSZ, &word, sizeof(word));
	return PointerGetDatum(result);
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
		return SPECIAL_NAN;
	if (rest->plus_infinity > 0)
		return SPECIAL_PLUS;
	return rest->minus_infinity > 0 ? SPECIAL_MINUS : 0;
}

/* The sum of at least one value. */
Datum
hgj_numeric_sum(const HgjAggNumeric *state)
{
	uint16		special = special_sum(state);
	Digits		digits;

	if (special)
		return store_special(special);
	digits_of_sum(state, &digits);
	return store_number(&digits, state->scale);
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
	Digits		digits;

	digits_of_int128(value, 0, &digits);
	return store_number(&digits, 0);
}

static void
send_number(StringInfo buf, Digits *number, int scale)
{
	strip(number);
	pq_sendint32(buf, number->n);
	pq_sendint32(buf, number->weight);
	pq_sendint32(buf, number->negative ? FORM_NEGATIVE : FORM_POSITIVE);
	pq_sendint32(buf, scale);
	for (int i = 0; i < number->n; i++)
		pq_sendint16(buf, number->digits[i]);
}

/* What int8_avg_serialize() makes of the state of n values. */
Datum
hgj_int128_serialize(int128 value, int64 n)
{
	StringInfoData buf;
	Digits		digits;

	digits_of_int128(value, 0, &digits);
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
	Digits		digits;

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
