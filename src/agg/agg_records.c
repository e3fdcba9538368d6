/*-------------------------------------------------------------------------
 *
 * agg_records.c
 *	  Groups of a HashGraphAgg as records, which another process can read.
 *
 * A record is its size, then the group's row as it stands in the table, then the
 * values that the row refers to: key values that pass by reference, values that are
 * states, and the parts of sums that no integer holds.  Where the row has a pointer,
 * the record has a distance from the record's beginning.  A code of a dictionary,
 * which is this process's own, becomes the value that it stands for.
 *
 * Sizes and distances are MAXALIGNed, so that a record at an aligned address can be
 * used where it is.
 *
 * Memory: the caller's.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_exchange.h"
#include "agg/agg_numeric.h"
#include "utils/datum.h"

/* The value of a key in a group, with no dictionary any more. */
static Datum
key_value(const HgjGroupKey *key, Datum datum)
{
	return key->dictionary ? hgj_dictionary_value(key->dictionary, datum) : datum;
}

/* The k-th key of a group of a table; false: it is NULL. */
bool
hgj_agg_key_of(const HgjGroups *groups, const char *row, int k, Datum *value)
{
	if (((const uint8 *) row + groups->nulls_offset)[k])
		return false;
	*value = key_value(&groups->keys[k], hgj_group_datums((char *) row)[k]);
	return true;
}

/* The k-th key of a group in the node's own table; false: it is NULL. */
bool
hgj_agg_group_key(const HgjAggState *state, const char *row, int k, Datum *value)
{
	return hgj_agg_key_of(&state->groups, row, k, value);
}

/* Values that a row refers to, one after the other; see visit(). */
typedef struct Visit
{
	char	   *record;			/* NULL: only add up */
	Size		at;				/* in the record */
} Visit;

/* Room for so many bytes more; where they begin. */
static Size
reserve(Visit *visit, Size bytes)
{
	Size		at = visit->at;

	visit->at = add_size(at, MAXALIGN(bytes));
	return at;
}

static void
visit_value(Visit *visit, Datum value, int16 attlen, Datum *place)
{
	Size		bytes = datumGetSize(value, false, attlen);
	Size		at = reserve(visit, bytes);

	if (visit->record == NULL)
		return;
	memcpy(visit->record + at, DatumGetPointer(value), bytes);
	*place = (Datum) at;
}

static void
visit_rest(Visit *visit, const HgjNumericRest *rest, HgjAggNumeric *state)
{
	Size		digits = mul_size(rest->ndigits, sizeof(int64));
	Size		at = reserve(visit, sizeof(HgjNumericRest) + digits);

	if (visit->record == NULL)
		return;
	memcpy(visit->record + at, rest, sizeof(HgjNumericRest));
	if (digits > 0)
		memcpy(visit->record + at + sizeof(HgjNumericRest), rest->digits, digits);
	state->rest = (HgjNumericRest *) at;
}

/* Everything that a group's row refers to; copy is its row in the record, or NULL. */
static void
visit_row(const HgjAggState *state, char *row, char *copy, Visit *visit)
{
	const HgjGroups *groups = &state->groups;

	for (int k = 0; k < groups->nkeys; k++)
	{
		const HgjGroupKey *key = &groups->keys[k];

		if (!key->attbyval && !((uint8 *) row + groups->nulls_offset)[k])
			visit_value(visit, key_value(key, hgj_group_datums(row)[k]), key->attlen,
						copy ? &hgj_group_datums(copy)[k] : NULL);
	}
	for (int a = 0; a < state->naggs; a++)
	{
		const HgjAggregate *agg = &state->aggs[a];
		void	   *own = row + agg->offset;
		void	   *copied = copy ? copy + agg->offset : NULL;

		switch (agg->function->kind)
		{
			case HGJ_AGG_SUM_NUMERIC:
			case HGJ_AGG_AVG_NUMERIC:
				if (((HgjAggNumeric *) own)->rest)
					visit_rest(visit, ((HgjAggNumeric *) own)->rest, copied);
				break;
			case HGJ_AGG_BY_FUNCTION:
				if (((HgjAggValue *) own)->present && !agg->attbyval)
					visit_value(visit, ((HgjAggValue *) own)->value, agg->attlen,
								copied ? &((HgjAggValue *) copied)->value : NULL);
				break;
			default:
				break;
		}
	}
}

/* Bytes that the record of a group takes. */
Size
hgj_agg_record_bytes(const HgjAggState *state, char *row)
{
	Visit		visit = {NULL, sizeof(uint64) + state->groups.stride};

	visit_row(state, row, NULL, &visit);
	return visit.at;
}

/* Write the record of a group, of so many bytes. */
void
hgj_agg_record_write(const HgjAggState *state, char *row, char *record,
					 Size bytes)
{
	Visit		visit = {record, sizeof(uint64) + state->groups.stride};
	char	   *copy = record + sizeof(uint64);

	*(uint64 *) record = bytes;
	memcpy(copy, row, state->groups.stride);
	visit_row(state, row, copy, &visit);
	Assert(visit.at == bytes);
}

/* The same of a record. */
bool
hgj_agg_record_key(const HgjAggState *state, const char *record, int k,
				   Datum *value)
{
	const HgjGroups *groups = &state->groups;
	const char *row = hgj_agg_record_row(record);

	if (((const uint8 *) row + groups->nulls_offset)[k])
		return false;
	*value = hgj_group_datums((char *) row)[k];
	if (!groups->keys[k].attbyval)
		*value = PointerGetDatum(hgj_agg_record_at(record, *value));
	return true;
}
