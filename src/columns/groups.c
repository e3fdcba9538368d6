/*-------------------------------------------------------------------------
 *
 * groups.c
 *	  The group table of a HashGraphAgg.
 *
 * 1. Groups are rows of one array, numbered in the order of their first input
 *	  row; groups.h says what a row holds.
 * 2. An array of slots with open addressing leads from a hash to groups.  A slot
 *	  holds half of the hash, so that nearly always the first group whose half
 *	  agrees is the right one: a batch takes that on trust, then compares column
 *	  by column, and looks the few wrong ones up again with care.  simplehash.h
 *	  compares row by row, and grows without asking whether the limit allows it
 *	  and without a look at interrupts.
 * 3. Integer-like keys whose values lie close together need no hash, as long as
 *	  groups_direct.c can map them; then all groups go to the slots.
 * 4. Keys that depend on others (ntelling) are neither hashed nor compared, and are looked
 *	  at for the first row of a group only.
 * 5. When the limit is reached no group is added any more, and rows without a
 *	  group are the caller's to put aside.
 *
 * Rows, slots, map and arena are malloc'd: hgj_groups_release() frees them, which
 * the owner calls on abort, too.  The rest is palloc'd in the context given to
 * hgj_groups_init().  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "columns/groups.h"
#include "common/pg_prng.h"
#include "engine/hgj_memory.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

#define FIRST_SLOTS		256

/* Slots to a group, at most, of a table that keeps them when it is emptied. */
#define FEWEST_FILLED	16

/* Bytes, and slots, between two looks at interrupts while the table grows. */
#define GROW_STEP		((Size) 4 * 1024 * 1024)
#define GROW_SLOTS		65536

/* Rows after which a map is tried again: the first batch may be a few rows of many. */
#define ROWS_FOR_MAP	65536

/* How many rows ahead slots and groups are prefetched. */
#define PREFETCH		16

void *
hgj_groups_allocate(Size bytes)
{
	return hgj_alloc(bytes, gettext_noop("Failed on request of size %zu for the groups of a HashGraphAgg."));
}

/*
 * Get ready for groups.  The keys, ntelling, stride, nulls_offset, initial, expected and
 * limit must be set.
 */
void
hgj_groups_init(HgjGroups *groups, MemoryContext context)
{
	Size		block = ALLOCSET_DEFAULT_INITSIZE;

	groups->context = context;
	hgj_arena_limit(&groups->values, groups->limit);
	groups->seed = pg_prng_uint64(&pg_global_prng_state);
	groups->scratch = AllocSetContextCreate(context, "HashGraphAgg scratch",
											ALLOCSET_DEFAULT_SIZES);
	while (block < ALLOCSET_DEFAULT_MAXSIZE && block < groups->limit / 32)
		block *= 2;
	groups->states = AllocSetContextCreate(context, "HashGraphAgg states",
										   0, ALLOCSET_DEFAULT_INITSIZE, block);
}

/* Get ready for batches of so many live rows. */
void
hgj_groups_reserve(HgjGroups *groups, uint32 batch_rows)
{
	MemoryContext context = groups->context;

	/* what there was is in the context till the end: it is small */
	groups->batch_rows = batch_rows;
	groups->hashes = MemoryContextAllocHuge(context, mul_size(batch_rows, sizeof(uint64)));
	groups->of = MemoryContextAllocHuge(context, mul_size(batch_rows, sizeof(uint32)));
	groups->mismatched = MemoryContextAllocHuge(context, mul_size(batch_rows, sizeof(uint32)));
	for (int k = 0; k < groups->ntelling; k++)
	{
		groups->keys[k].values = MemoryContextAllocHuge(context, mul_size(batch_rows, sizeof(Datum)));
		groups->keys[k].nulls = MemoryContextAllocHuge(context, batch_rows);
	}
}

static Size
rows_bytes(const HgjGroups *groups, uint32 capacity)
{
	return mul_size(capacity, groups->stride);
}

/* Bytes of the aggregates' states. */
static Size
state_bytes(const HgjGroups *groups)
{
	return MemoryContextMemAllocated(groups->states, true) + groups->more_state_bytes;
}

/* Bytes that count against the limit. */
Size
hgj_groups_bytes(const HgjGroups *groups)
{
	return rows_bytes(groups, groups->capacity) +
		(Size) groups->nslots * sizeof(uint64) +
		(Size) groups->map_size * sizeof(uint32) +
		groups->values.held.bytes + state_bytes(groups);
}

/* Forget every group, and give the memory back. */
void
hgj_groups_release(HgjGroups *groups)
{
	hgj_mem_free(groups->rows, rows_bytes(groups, groups->capacity));
	hgj_mem_free(groups->slots, (Size) groups->nslots * sizeof(uint64));
	hgj_mem_free(groups->growing, groups->growing_bytes);
	groups->growing = NULL;
	hgj_groups_leave_direct(groups);
	hgj_arena_free(&groups->values);
	groups->rows = NULL;
	groups->slots = NULL;
	groups->ngroups = groups->capacity = groups->nslots = 0;
	groups->rows_seen = 0;
	groups->maps_tried = 0;
	groups->settled = 0;
	groups->full = false;
}

/* Empty slots; there may be many. */
static void
clear_slots(uint64 *slots, Size bytes)
{
	for (Size at = 0; at < bytes; at += GROW_STEP)
	{
		CHECK_FOR_INTERRUPTS();
		memset((char *) slots + at, 0, Min(bytes - at, GROW_STEP));
	}
}

/*
 * Forget every group, for others of as many.  A table that has taken no more than half of its limit,
 * and has filled its arrays, keeps them: new ones would have to be mapped, page by page, and cleared.
 */
void
hgj_groups_clear(HgjGroups *groups)
{
	if (groups->direct != groups->covered || groups->ngroups < groups->nslots / FEWEST_FILLED ||
		hgj_groups_bytes(groups) > groups->limit / 2)
	{
		hgj_groups_release(groups);
		return;
	}
	if (groups->covered)
		memset(groups->map, 0, (Size) groups->map_size * sizeof(uint32));
	clear_slots(groups->slots, (Size) groups->nslots * sizeof(uint64));
	hgj_arena_reset(&groups->values);
	groups->ngroups = 0;
	groups->settled = 0;
	groups->full = false;
}

/*
 * Is there memory for so many bytes more?  New groups will want some for their
 * states, as much as others do.
 */
static bool
fits(const HgjGroups *groups, Size more)
{
	more = add_size(more, mul_size(groups->ngroups - groups->settled,
								   groups->state_bytes));
	return add_size(hgj_groups_bytes(groups), more) <= groups->limit;
}

/*
 * Is there no memory for another group?  A few there are in any case, unless
 * what their values take leaves none.
 */
static bool
no_room(const HgjGroups *groups)
{
	if (groups->ngroups < HGJ_FEWEST_GROUPS)
		return groups->ngroups > 0 &&
			groups->values.held.bytes + state_bytes(groups) > groups->limit;
	return !fits(groups, 0);
}

/*
 * The states have seen the portion.  Stop adding groups when what they keep has
 * grown too much.
 */
void
hgj_groups_settle(HgjGroups *groups)
{
	if (groups->ngroups > 0)
		groups->state_bytes = state_bytes(groups) / groups->ngroups;
	groups->settled = groups->ngroups;
	groups->full = groups->full || no_room(groups);
}

/*
 * Memory that the table will grow into.  Filling it takes long where groups are
 * many, so that interrupts are looked at meanwhile; till it is done, it is freed
 * with the rest.
 */
static void *
begin_growing(HgjGroups *groups, Size bytes)
{
	Assert(groups->growing == NULL);
	groups->growing = hgj_groups_allocate(bytes);
	groups->growing_bytes = bytes;
	return groups->growing;
}

/* Make room for another group.  False: the limit is reached. */
static bool
grow_rows(HgjGroups *groups)
{
	uint32		capacity = groups->capacity;
	uint32		larger;
	Size		used;
	char	   *rows;

	if (capacity == 0)
		larger = HGJ_FEWEST_GROUPS;
	else
	{
		if (capacity >= PG_INT32_MAX / 2)
			return false;
		/* the old rows live on until they are copied */
		larger = capacity * 2;
		if (!fits(groups, rows_bytes(groups, larger)))
			larger = capacity + capacity / 4;
		if (!fits(groups, rows_bytes(groups, larger)))
			return false;
	}
	rows = begin_growing(groups, rows_bytes(groups, larger));
	used = rows_bytes(groups, groups->ngroups);
	for (Size at = 0; at < used; at += GROW_STEP)
	{
		CHECK_FOR_INTERRUPTS();
		memcpy(rows + at, groups->rows + at, Min(used - at, GROW_STEP));
	}
	groups->growing = NULL;
	hgj_mem_free(groups->rows, rows_bytes(groups, capacity));
	groups->rows = rows;
	groups->capacity = larger;
	return true;
}

static inline uint32
slot_of(uint64 hash, uint32 mask)
{
	return (uint32) (hash >> 32) & mask;
}

static inline uint64
slot_value(uint64 hash, uint32 group)
{
	return (hash & UINT64CONST(0xFFFFFFFF00000000)) | (group + 1);
}

static inline uint32
slot_group(uint64 slot)
{
	return (uint32) slot - 1;
}

static inline bool
slot_agrees(uint64 slot, uint64 hash)
{
	return ((slot ^ hash) >> 32) == 0;
}

static void
put_slot(uint64 *slots, uint32 mask, uint64 value)
{
	uint32		s = slot_of(value, mask);

	while (slots[s] != 0)
		s = (s + 1) & mask;
	slots[s] = value;
}

/* Make an array of nslots slots, and move what there is into it. */
static void
resize_slots(HgjGroups *groups, uint32 nslots)
{
	Size		bytes = (Size) nslots * sizeof(uint64);
	uint64	   *slots = begin_growing(groups, bytes);

	clear_slots(slots, bytes);
	for (uint32 s = 0; s < groups->nslots; s++)
	{
		if (s % GROW_SLOTS == 0)
			CHECK_FOR_INTERRUPTS();
		if (groups->slots[s] != 0)
			put_slot(slots, nslots - 1, groups->slots[s]);
	}
	groups->growing = NULL;
	hgj_mem_free(groups->slots, (Size) groups->nslots * sizeof(uint64));
	groups->slots = slots;
	groups->nslots = nslots;
}

/* May one more slot be filled?  At most half of them are. */
static bool
room_for_slot(HgjGroups *groups)
{
	if (groups->ngroups < groups->nslots / 2)
		return true;
	if (groups->nslots >= UINT32_C(1) << 31)
		return false;
	if (groups->ngroups >= HGJ_FEWEST_GROUPS &&
		!fits(groups, (Size) groups->nslots * 2 * sizeof(uint64)))
		return false;
	resize_slots(groups, groups->nslots * 2);
	return true;
}

/* Add a group for live row i; HGJ_NO_GROUP if the table is full. */
static uint32
add_group(HgjGroups *groups, uint32 i)
{
	uint32		group = groups->ngroups;
	Size		allocated = groups->values.held.bytes;
	char	   *row;

	if (groups->full ||
		(group == groups->capacity && !grow_rows(groups)))
	{
		groups->full = true;
		return HGJ_NO_GROUP;
	}
	row = hgj_group_row(groups, group);
	memcpy(row, groups->initial, groups->stride);
	for (int k = 0; k < groups->nkeys; k++)
	{
		HgjGroupKey *key = &groups->keys[k];
		bool		isnull;
		Datum		value;

		/* what does not tell groups apart has not been loaded */
		if (k < groups->ntelling)
		{
			isnull = key->has_nulls && key->nulls[i];
			value = key->values[i];
		}
		else
			value = hgj_vector_datum(&groups->batch->vectors[key->column],
									 hgj_batch_live_row(groups->batch, i), &isnull);
		if (isnull)
			((uint8 *) row + groups->nulls_offset)[k] = 1;
		else
			hgj_group_datums(row)[k] = hgj_group_key_keep(groups, key, value);
	}
	groups->ngroups++;
	if (groups->ngroups % HGJ_FEWEST_GROUPS == 0 ||
		groups->values.held.bytes > allocated)
		groups->full = no_room(groups);
	return group;
}

/* Without group columns there is one group, which is there from the start. */
void
hgj_groups_only(HgjGroups *groups)
{
	Assert(groups->nkeys == 0);
	if (groups->ngroups == 0)
		(void) add_group(groups, 0);
}

/*
 * Make n groups at once, whose rows the caller is going to write, in a table
 * that has none; no batch comes after that.  False: they do not fit.
 */
bool
hgj_groups_make(HgjGroups *groups, uint32 n)
{
	uint32		capacity = Max(n, 1);

	Assert(groups->rows == NULL);
	if (n > HGJ_FEWEST_GROUPS && !fits(groups, rows_bytes(groups, capacity)))
		return false;
	groups->rows = hgj_groups_allocate(rows_bytes(groups, capacity));
	groups->capacity = capacity;
	groups->ngroups = n;
	return true;
}

/* The group of live row i, by comparing every candidate; added if need be. */
static uint32
find_or_add(HgjGroups *groups, uint32 i)
{
	uint64		hash = groups->hashes[i];
	uint32		mask = groups->nslots - 1;
	uint32		s;
	uint32		group;

	for (s = slot_of(hash, mask); groups->slots[s] != 0; s = (s + 1) & mask)
	{
		char	   *row;
		int			k = 0;

		if (!slot_agrees(groups->slots[s], hash))
			continue;
		group = slot_group(groups->slots[s]);
		row = hgj_group_row(groups, group);
		while (k < groups->ntelling && hgj_group_key_equal(groups, k, i, row))
			k++;
		if (k == groups->ntelling)
			return group;
	}
	if (groups->full || !room_for_slot(groups))
	{
		groups->full = true;
		return HGJ_NO_GROUP;
	}
	group = add_group(groups, i);
	if (group != HGJ_NO_GROUP)
		put_slot(groups->slots, groups->nslots - 1, slot_value(hash, group));
	return group;
}

/* The hash of live row i, whose keys have been loaded. */
static uint64
hash_row(HgjGroups *groups, uint32 i)
{
	groups->hashes[i] = groups->seed;
	for (int k = 0; k < groups->ntelling; k++)
		hgj_group_key_hash(groups, &groups->keys[k], i, 1);
	return groups->hashes[i];
}

/* The hashes of the first nkeys keys of the first n live rows, whose keys have been loaded. */
static void
hash_rows(HgjGroups *groups, uint32 n, int nkeys)
{
	for (uint32 i = 0; i < n; i++)
		groups->hashes[i] = groups->seed;
	for (int k = 0; k < nkeys; k++)
		hgj_group_key_hash(groups, &groups->keys[k], 0, n);
	groups->hashed = nkeys == groups->ntelling;
}

/* Groups of n live rows, by hash. */
static void
assign_hashed(HgjGroups *groups, uint32 n)
{
	uint64	   *hashes = groups->hashes;
	uint32	   *of = groups->of;
	bool		prefetch = hgj_groups_bytes(groups) > HGJ_PREFETCH_BYTES;
	uint32		nmismatched = 0;

	hash_rows(groups, n, groups->ntelling);
	for (uint32 i = 0; i < n; i++)
	{
		uint32		mask = groups->nslots - 1;
		uint32		s = slot_of(hashes[i], mask);

		if (prefetch && i + PREFETCH < n)
			__builtin_prefetch(&groups->slots[slot_of(hashes[i + PREFETCH],
													  mask)]);
		while (groups->slots[s] != 0 && !slot_agrees(groups->slots[s], hashes[i]))
			s = (s + 1) & mask;
		of[i] = groups->slots[s] != 0 ? slot_group(groups->slots[s]) :
			find_or_add(groups, i);
		if (prefetch && of[i] != HGJ_NO_GROUP)
			__builtin_prefetch(hgj_group_row(groups, of[i]));
	}

	for (int k = 0; k < groups->ntelling; k++)
		nmismatched = hgj_group_key_compare(groups, k, n, nmismatched);
	for (uint32 m = 0; m < nmismatched; m++)
		of[groups->mismatched[m]] = find_or_add(groups, groups->mismatched[m]);
}

/* A map has become too large: all groups go to the slots. */
static void
move_to_slots(HgjGroups *groups)
{
	uint32		nslots = FIRST_SLOTS;

	while (nslots / 2 <= groups->ngroups)
		nslots *= 2;
	resize_slots(groups, nslots);
	for (uint32 g = 0; g < groups->ngroups; g++)
	{
		char	   *row = hgj_group_row(groups, g);

		if (g % GROW_SLOTS == 0)
			CHECK_FOR_INTERRUPTS();
		for (int k = 0; k < groups->ntelling; k++)
		{
			HgjGroupKey *key = &groups->keys[k];

			key->values[0] = hgj_group_datums(row)[k];
			key->nulls[0] = ((uint8 *) row + groups->nulls_offset)[k];
			key->has_nulls = true;
			key->ever_nulls |= key->nulls[0];
		}
		put_slot(groups->slots, nslots - 1, slot_value(hash_row(groups, 0), g));
	}
	groups->loaded = groups->hashed = false;
}

/* Take the keys of the batch's live rows out of their vectors. */
static void
load_keys(HgjGroups *groups)
{
	if (groups->loaded)
		return;
	for (int k = 0; k < groups->ntelling; k++)
		hgj_group_key_load(&groups->keys[k], groups->batch);
	groups->loaded = true;
}

/* The hash of live row i of the batch. */
uint64
hgj_groups_hash(HgjGroups *groups, uint32 i)
{
	if (groups->hashed)
		return groups->hashes[i];
	load_keys(groups);
	return hash_row(groups, i);
}

/* The hashes of the first nkeys keys of a batch's live rows, in groups->hashes: no group is made. */
void
hgj_groups_hash_rows(HgjGroups *groups, const HgjBatch *batch, int nkeys)
{
	groups->batch = batch;
	groups->loaded = groups->hashed = false;
	load_keys(groups);
	hash_rows(groups, hgj_batch_nlive(batch), nkeys);
}

/* Make room in the map or the slots, and add a group for live row i. */
uint32
hgj_groups_add(HgjGroups *groups, uint32 i)
{
	if (groups->full)
		return HGJ_NO_GROUP;
	load_keys(groups);
	return add_group(groups, i);
}

/*
 * Find or add the groups of a batch's live rows: groups->of[i] is that of the
 * i-th of them, or HGJ_NO_GROUP where the table is full.
 */
void
hgj_groups_assign(HgjGroups *groups, const HgjBatch *batch)
{
	uint32		n = hgj_batch_nlive(batch);

	Assert(n <= groups->batch_rows);
	groups->batch = batch;
	groups->loaded = groups->hashed = false;

	groups->rows_seen += n;
	if (!groups->direct && groups->maps_tried < HGJ_MOST_MAPS &&
		(groups->maps_tried == 0 || groups->rows_seen >= ROWS_FOR_MAP))
	{
		groups->maps_tried++;
		groups->direct = hgj_groups_can_be_direct(groups);
	}
	if (groups->direct)
	{
		if (hgj_groups_assign_direct(groups, batch))
			return;
		hgj_groups_leave_direct(groups);
		/* where a map was tried again, they have stayed there */
		if (groups->nslots == 0)
			move_to_slots(groups);
	}
	if (groups->nslots == 0)
		resize_slots(groups, FIRST_SLOTS);
	load_keys(groups);
	assign_hashed(groups, n);
}
