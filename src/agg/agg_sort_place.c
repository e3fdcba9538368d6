/*-------------------------------------------------------------------------
 *
 * agg_sort_place.c
 *	  The place of a row among those that are sorted for an aggregate, as one integer.
 *
 * 1. In the upper bits stands the group's number, so that groups come one after the
 *	  other.
 * 2. Below it stand a bit for NULL and 32 bits of the first value that is sorted by,
 *	  which are greater only if the value is: those of an integer, with the sign turned;
 *	  of a float, such that they compare as integers; the first bytes of a string under
 *	  a collation that compares bytes.  Larger integers have the place of the largest
 *	  of 32 bits.
 * 3. Where all of a value is in them, nothing else need be compared, and the value can
 *	  be had from its place.
 *
 * Which types these are is told by the operator that sorts.  No memory is kept, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_sort_place.h"
#include "catalog/pg_collation.h"
#include "columns/keys.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/* The functions of operators that sort, upwards and downwards. */
static const struct
{
	Oid			less;
	Oid			greater;
	HgjPlaceKind kind;
	bool		exact;
}			sorters[] = {
	{F_INT2LT, F_INT2GT, HGJ_PLACE_INT2, true},
	{F_INT4LT, F_INT4GT, HGJ_PLACE_INT4, true},
	{F_DATE_LT, F_DATE_GT, HGJ_PLACE_INT4, true},
	{F_OIDLT, F_OIDGT, HGJ_PLACE_OID, true},
	{F_INT8LT, F_INT8GT, HGJ_PLACE_INT8, false},
	{F_TIMESTAMP_LT, F_TIMESTAMP_GT, HGJ_PLACE_TIME, false},
	{F_TIMESTAMPTZ_LT, F_TIMESTAMPTZ_GT, HGJ_PLACE_TIME, false},
	{F_FLOAT4LT, F_FLOAT4GT, HGJ_PLACE_FLOAT4, false},
	{F_FLOAT8LT, F_FLOAT8GT, HGJ_PLACE_FLOAT8, false},
	{F_TEXT_LT, F_TEXT_GT, HGJ_PLACE_BYTES, false},
	{F_BYTEALT, F_BYTEAGT, HGJ_PLACE_BYTES, false}
};

/* Get ready for values that this operator sorts. */
void
hgj_sort_place_init(HgjSortPlace *place, Oid operator, Oid collation, bool nulls_first)
{
	Oid			function = get_opcode(operator);

	memset(place, 0, sizeof(*place));
	place->nulls_first = nulls_first;
	if (OidIsValid(collation) && collation != C_COLLATION_OID)
		return;
	for (int i = 0; i < lengthof(sorters); i++)
		if (function == sorters[i].less || function == sorters[i].greater)
		{
			place->kind = sorters[i].kind;
			place->exact = sorters[i].exact;
			place->descending = function == sorters[i].greater;
		}
}

/* Bits that compare as the integer does. */
static inline uint32
signed_bits(int64 value)
{
	return (uint32) (int32) Min(Max(value, PG_INT32_MIN), PG_INT32_MAX) ^ 0x80000000;
}

/* The same of a float, in 64 bits: NaN is the largest, and there is one zero. */
static inline uint64
float_bits(float8 value)
{
	uint64		bits = hgj_float_word(value);

	return bits & (UINT64CONST(1) << 63) ? ~bits : bits | (UINT64CONST(1) << 63);
}

/* The first four bytes of a string. */
static uint32
string_bits(Datum value)
{
	struct varlena *string = PG_DETOAST_DATUM_PACKED(value);
	const unsigned char *bytes = (const unsigned char *) VARDATA_ANY(string);
	Size		size = VARSIZE_ANY_EXHDR(string);
	uint32		result = 0;

	for (Size i = 0; i < sizeof(result); i++)
		result = result << 8 | (i < size ? bytes[i] : 0);
	if ((Pointer) string != DatumGetPointer(value))
		pfree(string);
	return result;
}

static uint32
value_bits(HgjPlaceKind kind, Datum value)
{
	switch (kind)
	{
		case HGJ_PLACE_GROUP:
			break;
		case HGJ_PLACE_INT2:
			return signed_bits(DatumGetInt16(value));
		case HGJ_PLACE_INT4:
			return signed_bits(DatumGetInt32(value));
		case HGJ_PLACE_OID:
			return DatumGetObjectId(value);
		case HGJ_PLACE_INT8:
			return signed_bits(DatumGetInt64(value));
		case HGJ_PLACE_TIME:
			return signed_bits(DatumGetInt64(value) >> 32);
		case HGJ_PLACE_FLOAT4:
			return (uint32) (float_bits(DatumGetFloat4(value)) >> 32);
		case HGJ_PLACE_FLOAT8:
			return (uint32) (float_bits(DatumGetFloat8(value)) >> 32);
		case HGJ_PLACE_BYTES:
			return string_bits(value);
	}
	return 0;
}

/* The place of a row of this group. */
int64
hgj_sort_place(const HgjSortPlace *place, uint32 group, const NullableDatum *value)
{
	uint64		result = ((uint64) group << HGJ_PLACE_BITS) ^ HGJ_PLACE_SIGN;
	uint32		bits;

	if (value->isnull)
		return (int64) (result | (place->nulls_first ? 0 : UINT64CONST(1) << 32));
	bits = value_bits(place->kind, value->value);
	if (place->nulls_first)
		result |= UINT64CONST(1) << 32;
	return (int64) (result | (place->descending ? ~bits : bits));
}

/* The value that has this place, where all of it is in there. */
NullableDatum
hgj_sort_place_value(const HgjSortPlace *place, int64 of)
{
	NullableDatum result = {0};
	uint32		bits = place->descending ? ~(uint32) of : (uint32) of;

	Assert(place->exact);
	result.isnull = (((uint64) of >> 32) & 1) != (place->nulls_first ? 1 : 0);
	if (result.isnull)
		return result;
	switch (place->kind)
	{
		case HGJ_PLACE_INT2:
			result.value = Int16GetDatum((int16) (int32) (bits ^ 0x80000000));
			break;
		case HGJ_PLACE_OID:
			result.value = ObjectIdGetDatum(bits);
			break;
		default:
			result.value = Int32GetDatum((int32) (bits ^ 0x80000000));
			break;
	}
	return result;
}
