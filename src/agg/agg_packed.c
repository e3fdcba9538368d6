/*-------------------------------------------------------------------------
 *
 * agg_packed.c
 *	  Groups of a HashGraphAgg as short records: 32-bit integers where nothing needs more.
 *
 * Most groups are a number or two, and small counts and sums, in words of 64 bits, while
 * writing records (agg_records.c) takes as long as the memory that they take is large: it is
 * new, and its pages are mapped one by one.
 *
 * 1. A group's row consists of words: its count, its keys, what its inputs and aggregates keep.
 *	  They can be shortened where keys pass by value, and no word is an address; sums of numerics
 *	  may have such ones.
 * 2. All words of all groups in a table are looked at: each must be a 32-bit integer, of any
 *	  sign, or all groups are written as they stand.
 * 3. A short record is a bit for each key, which says that it is NULL, and then the words.  It is
 *	  made a record again before anything is done with it.
 *
 * Memory: the caller's.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_exchange.h"
#include "miscadmin.h"

/* Keys that have a bit, at most. */
#define MOST_KEYS			32

/* Step 1. */
static bool
has_words_only(const HgjAggState *state)
{
	const HgjGroups *groups = &state->groups;

	if (groups->nkeys > MOST_KEYS)
		return false;
	for (int k = 0; k < groups->nkeys; k++)
		if (!groups->keys[k].attbyval || groups->keys[k].dictionary)
			return false;
	for (int a = 0; a < state->naggs; a++)
	{
		switch (state->aggs[a].function->kind)
		{
			case HGJ_AGG_SUM_NUMERIC:
			case HGJ_AGG_AVG_NUMERIC:
			case HGJ_AGG_BY_FUNCTION:
			case HGJ_AGG_TRANSITION:
				return false;
			default:
				break;
		}
	}
	return true;
}

/* Words in front of the bytes that say which keys are NULL: the count, and the keys. */
static inline uint32
nfirst(const HgjGroups *groups)
{
	return 1 + groups->nkeys;
}

/* Where the words behind these bytes begin. */
static inline Size
rest_offset(const HgjGroups *groups)
{
	return MAXALIGN(groups->nulls_offset + groups->nkeys);
}

static inline uint32
nrest(const HgjGroups *groups)
{
	return (groups->stride - rest_offset(groups)) / sizeof(int64);
}

/* The bits of these words that no 32-bit integer has: 0 if they are such ones. */
static inline uint64
bits_beyond(const int64 *words, uint32 n)
{
	uint64		beyond = 0;

	for (uint32 i = 0; i < n; i++)
		beyond |= ((uint64) words[i] + UINT64CONST(0x80000000)) >> 32;
	return beyond;
}

/* Bytes of a short record of the table's groups; 0: they are not to be shortened. */
Size
hgj_agg_packed_bytes(const HgjAggState *state)
{
	const HgjGroups *groups = &state->groups;
	uint64		beyond = 0;

	if (!has_words_only(state))
		return 0;
	for (uint32 g = 0; g < groups->ngroups; g++)
	{
		const char *row = hgj_group_row(groups, g);

		if (g % HGJ_EXCHANGE_BLOCK == 0)
		{
			CHECK_FOR_INTERRUPTS();
			if (beyond != 0)
				return 0;
		}
		beyond |= bits_beyond((const int64 *) row, nfirst(groups));
		beyond |= bits_beyond((const int64 *) (row + rest_offset(groups)), nrest(groups));
	}
	return beyond != 0 ? 0 : (1 + nfirst(groups) + nrest(groups)) * sizeof(int32);
}

/* Write the short record of a group. */
void
hgj_agg_pack(const HgjAggState *state, const char *row, char *packed)
{
	const HgjGroups *groups = &state->groups;
	const uint8 *nulls = (const uint8 *) row + groups->nulls_offset;
	const int64 *words = (const int64 *) row;
	int32	   *to = (int32 *) packed;
	uint32		bits = 0;

	for (int k = 0; k < groups->nkeys; k++)
		bits |= (uint32) (nulls[k] != 0) << k;
	*to++ = (int32) bits;
	for (uint32 i = 0; i < nfirst(groups); i++)
		*to++ = (int32) words[i];
	words = (const int64 *) (row + rest_offset(groups));
	for (uint32 i = 0; i < nrest(groups); i++)
		*to++ = (int32) words[i];
}

/* Bytes of a record that was short. */
Size
hgj_agg_unpacked_bytes(const HgjAggState *state)
{
	return sizeof(uint64) + state->groups.stride;
}

/* Make it a record again. */
void
hgj_agg_unpack(const HgjAggState *state, const char *packed, char *record)
{
	const HgjGroups *groups = &state->groups;
	char	   *row = record + sizeof(uint64);
	uint8	   *nulls = (uint8 *) row + groups->nulls_offset;
	int64	   *words = (int64 *) row;
	const int32 *from = (const int32 *) packed;
	uint32		bits = (uint32) *from++;

	*(uint64 *) record = hgj_agg_unpacked_bytes(state);
	for (uint32 i = 0; i < nfirst(groups); i++)
		words[i] = *from++;
	for (int k = 0; k < groups->nkeys; k++)
		nulls[k] = bits >> k & 1;
	words = (int64 *) (row + rest_offset(groups));
	for (uint32 i = 0; i < nrest(groups); i++)
		words[i] = *from++;
}
