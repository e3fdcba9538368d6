/*-------------------------------------------------------------------------
 *
 * groups_direct.c
 *	  Groups by the values of integer-like keys themselves.
 *
 * 1. Where the values of every key lie close together (years, codes of a
 *	  dictionary, numbers of something), they are coordinates in a map that leads
 *	  to group numbers: no hash, no comparison.  NULL has a place of its own.
 * 2. The map begins with the range of the first batch.  When a value lies
 *	  outside, the map is made anew over a larger range from the groups there are.
 * 3. When it would become too large, or too empty, the caller is told to hash.  A large
 *	  map is not made for groups that are only expected: rows must have come that could
 *	  be of a good part of them.  So the caller tries again when there have been some.
 *
 * The map is malloc'd and belongs to the group table.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "columns/groups.h"
#include "engine/hgj_memory.h"

/* A map that is not larger than this may be emptier than others (HGJ_SPARSEST_MAP). */
#define SMALL_PLACES	(64 * 1024)

#define MOST_PLACES		(8 * 1024 * 1024)
#define MOST_KEYS		8

/* Step 3: groups to each row that has come, of those that are expected. */
#define GROUPS_PER_ROW	16

/* How many rows ahead places are prefetched. */
#define PREFETCH		16

/* The part of the memory limit that a map may take. */
#define SHARE			4

bool
hgj_groups_can_be_direct(const HgjGroups *groups)
{
	for (int k = 0; k < groups->ntelling; k++)
		if (groups->keys[k].kind != HGJ_GROUP_WORD)
			return false;
	return groups->ntelling > 0 && groups->ntelling <= MOST_KEYS;
}

void
hgj_groups_leave_direct(HgjGroups *groups)
{
	hgj_mem_free(groups->map, (Size) groups->map_size * sizeof(uint32));
	groups->map = NULL;
	groups->map_size = 0;
	groups->direct = groups->covered = false;
	for (int k = 0; k < groups->ntelling; k++)
		groups->keys[k].places = 0;
}

/* Extend the key's range to these values, within reason; least > most: there are NULLs only. */
static bool
extend_range(HgjGroupKey *key, int64 least, int64 most)
{
	uint64		range;
	int64		slack = 0;

	if (least > most)
	{
		key->places = Max(key->places, 1);	/* NULLs only */
		return true;
	}
	if (key->dictionary && least < 0)
		return false;			/* a value that has no code */
	if (key->places > 1)
	{
		int64		last = key->base + key->places - 2;

		if (least >= key->base && most <= last)
			return true;
		least = Min(least, key->base);
		most = Max(most, last);
		slack = key->places / 4;
	}
	range = (uint64) most - (uint64) least;
	if (range >= MOST_PLACES)
		return false;
	if (least > PG_INT64_MIN + slack && most < PG_INT64_MAX - slack)
	{
		least -= slack;
		range += 2 * slack;
	}
	key->base = least;
	key->places = (uint32) range + 2;
	return true;
}

/* Extend the key's range to the values of the batch. */
static bool
cover_batch(HgjGroupKey *key, const HgjBatch *batch)
{
	const HgjVector *vector = &batch->vectors[key->column];
	uint32		n = hgj_batch_nlive(batch);
	int64		least = PG_INT64_MAX;
	int64		most = PG_INT64_MIN;

	for (uint32 i = 0; i < n; i++)
	{
		uint32		row = hgj_batch_live_row(batch, i);
		int64		value;

		if (hgj_vector_is_null(vector, row))
			continue;
		value = (int64) hgj_vector_load(vector, row);
		least = Min(least, value);
		most = Max(most, value);
	}
	return extend_range(key, least, most);
}

/* Extend the range of key k to the groups that there are. */
static bool
cover_groups(HgjGroups *groups, int k)
{
	int64		least = PG_INT64_MAX;
	int64		most = PG_INT64_MIN;

	for (uint32 g = 0; g < groups->ngroups; g++)
	{
		char	   *row = hgj_group_row(groups, g);
		int64		value = (int64) hgj_group_datums(row)[k];

		if (((uint8 *) row + groups->nulls_offset)[k])
			continue;
		least = Min(least, value);
		most = Max(most, value);
	}
	return extend_range(&groups->keys[k], least, most);
}

/* Where the group of this row is in the map. */
static uint32
place_of(const HgjGroups *groups, char *row)
{
	uint32		place = 0;

	for (int k = 0; k < groups->ntelling; k++)
	{
		const HgjGroupKey *key = &groups->keys[k];

		if (!((uint8 *) row + groups->nulls_offset)[k])
			place += key->step *
				(uint32) ((uint64) hgj_group_datums(row)[k] - (uint64) key->base + 1);
	}
	return place;
}

/* A map without groups, in the place of none.  False: it would be too large. */
static bool
allocate_map(HgjGroups *groups, uint64 size)
{
	if (size > MOST_PLACES || size * sizeof(uint32) > groups->limit / SHARE)
		return false;
	groups->map = hgj_groups_allocate(size * sizeof(uint32));
	groups->map_size = (uint32) size;
	memset(groups->map, 0, size * sizeof(uint32));
	return true;
}

/* Make a map over the batch's values as well.  False: it is not worth it. */
static bool
make_map(HgjGroups *groups, const HgjBatch *batch)
{
	uint64		size = 1;
	double		expected = Min(groups->expected, (double) groups->rows_seen * GROUPS_PER_ROW);

	hgj_mem_free(groups->map, (Size) groups->map_size * sizeof(uint32));
	groups->map = NULL;
	groups->map_size = 0;

	for (int k = 0; k < groups->ntelling; k++)
	{
		HgjGroupKey *key = &groups->keys[k];

		if ((groups->nslots > 0 && !cover_groups(groups, k)) || !cover_batch(key, batch))
			return false;
		key->step = (uint32) size;
		size *= key->places;
		if (size > MOST_PLACES)
			return false;
	}
	if (size > SMALL_PLACES &&
		size / HGJ_SPARSEST_MAP > Max((double) groups->ngroups, expected))
		return false;
	if (!allocate_map(groups, size))
		return false;
	for (uint32 g = 0; g < groups->ngroups; g++)
		groups->map[place_of(groups, hgj_group_row(groups, g))] = g + 1;
	hgj_mem_free(groups->slots, (Size) groups->nslots * sizeof(uint64));
	groups->slots = NULL;
	groups->nslots = 0;
	return true;
}

/*
 * A table without groups gets a map of one key's `width` values from `least` on, which are known to
 * come, or of as many others if it had one of this size.  There is none if that would take too much.
 */
void
hgj_groups_cover(HgjGroups *groups, int64 least, uint64 width)
{
	HgjGroupKey *key = groups->keys;
	uint64		size = width + 1;	/* NULL's place */

	Assert(groups->ngroups == 0 && groups->ntelling == 1);
	if (groups->map_size != size)
	{
		hgj_groups_leave_direct(groups);
		if (!hgj_groups_can_be_direct(groups) || !allocate_map(groups, size))
			return;
	}
	key->base = least;
	key->places = (uint32) size;
	key->step = 1;
	groups->direct = groups->covered = true;
}

/* Add the coordinates of the live rows, from values of `type`. */
#define ADD_COORDINATES(type) \
	do { \
		const type *values = vector->values; \
		if (live == NULL && !vector->has_nulls) \
			for (uint32 i = 0; i < n; i++) \
			{ \
				uint64		at = (uint64) (int64) values[i] - base; \
				outside |= at >= places; \
				places_of[i] += step * (uint32) (at + 1); \
			} \
		else \
			for (uint32 i = 0; i < n; i++) \
			{ \
				uint32		row = live ? live[i] : i; \
				uint64		at = (uint64) (int64) values[row] - base; \
				if (hgj_vector_is_null(vector, row)) \
					continue; \
				outside |= at >= places; \
				places_of[i] += step * (uint32) (at + 1); \
			} \
	} while (0)

/* True: one of the values is not covered. */
static bool
add_coordinates(const HgjGroupKey *key, const HgjBatch *batch, uint32 *places_of)
{
	const HgjVector *vector = &batch->vectors[key->column];
	const uint32 *live = batch->live;
	uint32		n = hgj_batch_nlive(batch);
	uint64		base = (uint64) key->base;
	uint32		places = key->places - 1;
	uint32		step = key->step;
	bool		outside = false;

	switch (vector->width)
	{
		case 1:
			ADD_COORDINATES(char);
			break;
		case 2:
			ADD_COORDINATES(int16);
			break;
		case 4:
			ADD_COORDINATES(int32);
			break;
		default:
			ADD_COORDINATES(int64);
			break;
	}
	return outside;
}

/*
 * As hgj_groups_assign().  False: a map will not do any more; nothing has been
 * assigned or added then.
 */
bool
hgj_groups_assign_direct(HgjGroups *groups, const HgjBatch *batch)
{
	uint32		n = hgj_batch_nlive(batch);
	uint32	   *of = groups->of;
	bool		outside = (groups->map == NULL);
	bool		prefetch = groups->ngroups * groups->stride > HGJ_PREFETCH_BYTES;

	if (!outside)
	{
		memset(of, 0, n * sizeof(uint32));
		for (int k = 0; k < groups->ntelling; k++)
			outside |= add_coordinates(&groups->keys[k], batch, of);
	}
	if (outside)
	{
		if (!make_map(groups, batch))
			return false;
		memset(of, 0, n * sizeof(uint32));
		for (int k = 0; k < groups->ntelling; k++)
			(void) add_coordinates(&groups->keys[k], batch, of);
	}

	for (uint32 i = 0; i < n; i++)
	{
		uint32	   *entry = &groups->map[of[i]];

		if (prefetch && i + PREFETCH < n)
			__builtin_prefetch(&groups->map[of[i + PREFETCH]]);
		if (unlikely(*entry == 0))
			*entry = hgj_groups_add(groups, i) + 1; /* HGJ_NO_GROUP gives 0 */
		of[i] = *entry - 1;
		if (prefetch)
			__builtin_prefetch(hgj_group_row(groups, of[i]));
	}
	return true;
}
