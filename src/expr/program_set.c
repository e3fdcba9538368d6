/*-------------------------------------------------------------------------
 *
 * program_set.c
 *	  The constants of IN: a set of 64-bit keys.
 *
 * 1. Elements become keys: integers as they are, floats by hgj_float_word().
 *	  Duplicates and NULL elements are left out, but that there was a NULL is
 *	  remembered: a value that is not in the set is then neither in nor out.
 * 2. Keys that lie close together become a bitmap, all others a hash table.  For
 *	  a few keys a hash function without collisions is looked for, so that a
 *	  lookup has no branch; otherwise there is linear probing.
 * 3. Not too many are there in order as well, for who wants to know whether there is one
 *	  in some range (program_bounds.c).
 *
 * The arrays are in a memory context of the set's own, a child of the
 * program's, and are built when the first row asks, once per execution; once
 * only if the array is a constant of the query.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "expr/program_private.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* A bitmap that has this many bits is small enough whatever the keys are. */
#define HGJ_SET_BITMAP_BITS			4096

/* A larger one has at most so many bits per key. */
#define HGJ_SET_BITMAP_BITS_PER_KEY	64

/* Slots per key of a hash table, and how many hash functions to try. */
#define HGJ_SET_SLOTS_PER_KEY		8
#define HGJ_SET_TRIES				64
#define HGJ_SET_TRY_KEYS			128

/* Step 3. */
#define HGJ_SET_SORTED_KEYS			16384

static inline uint64
mix(uint64 key, uint64 multiplier)
{
	key *= multiplier;
	return key ^ (key >> 32);
}

/* Give the arrays back. */
void
hgj_set_reset(HgjSet *set)
{
	if (set->context)
		MemoryContextDelete(set->context);
	memset(set, 0, sizeof(*set));
}

static int
compare_keys(const void *a, const void *b)
{
	int64		left = *(const int64 *) a;
	int64		right = *(const int64 *) b;

	return (left > right) - (left < right);
}

static void
build_bitmap(HgjSet *set, const int64 *keys)
{
	set->bitmap = palloc0((set->span / 64 + 1) * sizeof(uint64));
	for (uint32 i = 0; i < set->nkeys; i++)
	{
		uint64		bit = (uint64) keys[i] - (uint64) set->low;

		set->bitmap[bit / 64] |= UINT64CONST(1) << (bit % 64);
	}
}

/* Put the keys into the free slots; returns how many were not where they hash. */
static uint32
fill_slots(HgjSet *set, const int64 *keys)
{
	uint32		moved = 0;

	for (uint64 i = 0; i <= set->mask; i++)
		set->slots[i] = set->empty;
	for (uint32 i = 0; i < set->nkeys; i++)
	{
		uint64		slot = mix(keys[i], set->multiplier) & set->mask;

		moved += set->slots[slot] != set->empty;
		while (set->slots[slot] != set->empty)
			slot = (slot + 1) & set->mask;
		set->slots[slot] = keys[i];
	}
	return moved;
}

static void
build_hash(HgjSet *set, const int64 *keys)
{
	uint64		nslots = 16;

	while (nslots < (uint64) set->nkeys * HGJ_SET_SLOTS_PER_KEY)
		nslots *= 2;
	set->mask = nslots - 1;
	set->slots = MemoryContextAllocHuge(CurrentMemoryContext,
										mul_size(nslots, sizeof(int64)));

	/* any number that is not among the keys, which are sorted, will do */
	set->empty = 0;
	for (uint32 i = 0; i < set->nkeys; i++)
		if (keys[i] == set->empty)
			set->empty++;

	set->multiplier = UINT64CONST(0x9E3779B97F4A7C15);
	set->probing = fill_slots(set, keys) > 0;
	for (int i = 0; i < HGJ_SET_TRIES && set->probing &&
		 set->nkeys <= HGJ_SET_TRY_KEYS; i++)
	{
		set->multiplier = set->multiplier * UINT64CONST(6364136223846793005) | 1;
		set->probing = fill_slots(set, keys) > 0;
	}
}

/* Datums of the element kind as keys. */
static uint32
make_keys(HgjKind kind, uint8 width, const Datum *values, const bool *nulls,
		  int n, int64 *keys, bool *has_nulls)
{
	HgjRows		one = {.n = 1};
	uint32		nkeys = 0;

	for (int i = 0; i < n; i++)
	{
		uint64		bits = 0;

		if (nulls[i])
		{
			*has_nulls = true;
			continue;
		}
		hgj_store(&bits, width, values[i]);
		hgj_values_keys(kind, &bits, &one, &keys[nkeys++]);
	}
	return nkeys;
}

/*
 * Make the set of a MEMBER step ready: its array, which is not NULL, has been
 * evaluated.
 */
void
hgj_set_prepare(HgjProgram *program, HgjStep *step)
{
	HgjSet	   *set = step->set;
	ArrayType  *array;
	MemoryContext old;
	Datum	   *values;
	bool	   *nulls;
	int64	   *keys;
	int			n;
	uint32		nkeys;
	int16		typlen;
	bool		typbyval;
	char		typalign;

	if (set->context)
		return;
	hgj_set_reset(set);
	set->context = AllocSetContextCreate(program->context,
										 "HashGraphJoin IN list",
										 ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(program->scratch);

	array = DatumGetArrayTypeP(step->constant->value);
	get_typlenbyvalalign(ARR_ELEMTYPE(array), &typlen, &typbyval, &typalign);
	deconstruct_array(array, ARR_ELEMTYPE(array), typlen, typbyval, typalign,
					  &values, &nulls, &n);
	keys = palloc(mul_size(Max(n, 1), sizeof(int64)));
	nkeys = make_keys(hgj_kind_of_type(step->element_type), typlen, values,
					  nulls, n, keys, &set->has_nulls);
	qsort(keys, nkeys, sizeof(int64), compare_keys);
	set->nkeys = 0;
	for (uint32 i = 0; i < nkeys; i++)
		if (set->nkeys == 0 || keys[i] != keys[set->nkeys - 1])
			keys[set->nkeys++] = keys[i];

	MemoryContextSwitchTo(set->context);
	if (set->nkeys > 0)
	{
		set->low = keys[0];
		set->span = (uint64) keys[set->nkeys - 1] - (uint64) keys[0];
		if (set->nkeys <= HGJ_SET_SORTED_KEYS)
		{
			set->keys = palloc(mul_size(set->nkeys, sizeof(int64)));
			memcpy(set->keys, keys, mul_size(set->nkeys, sizeof(int64)));
		}
		if (set->span < Max((uint64) set->nkeys * HGJ_SET_BITMAP_BITS_PER_KEY,
							HGJ_SET_BITMAP_BITS))
			build_bitmap(set, keys);
		else
			build_hash(set, keys);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(program->scratch);
}

/* found[i] is 1 where keys[i] is in the set. */
void
hgj_set_lookup(const HgjSet *set, const int64 *keys, uint32 n, uint8 *found)
{
	if (set->nkeys == 0)
		memset(found, 0, n);
	else if (set->bitmap)
	{
		const uint64 *bitmap = set->bitmap;
		uint64		low = (uint64) set->low;
		uint64		span = set->span;

		for (uint32 i = 0; i < n; i++)
		{
			uint64		bit = (uint64) keys[i] - low;
			uint64		inside = bit <= span;

			bit &= -inside;		/* without a branch */
			found[i] = inside & (bitmap[bit / 64] >> (bit % 64));
		}
	}
	else if (!set->probing)
	{
		const int64 *slots = set->slots;
		uint64		mask = set->mask;
		uint64		multiplier = set->multiplier;
		int64		empty = set->empty;

		for (uint32 i = 0; i < n; i++)
			found[i] = (slots[mix(keys[i], multiplier) & mask] == keys[i]) &
				(keys[i] != empty);
	}
	else
	{
		const int64 *slots = set->slots;

		for (uint32 i = 0; i < n; i++)
		{
			int64		key = keys[i];
			uint64		slot = mix(key, set->multiplier) & set->mask;

			while (slots[slot] != key && slots[slot] != set->empty)
				slot = (slot + 1) & set->mask;
			found[i] = slots[slot] == key && key != set->empty;
		}
	}
}
