/*-------------------------------------------------------------------------
 *
 * shared_codes.c
 *	  Columns of a build side that several processes make together
 *	  (shared_build.c), stored as dictionary codes (encode.c).
 *
 * While rows are read, each process numbers values by itself, so that one value has as
 * many codes as there are processes that have seen it.
 *
 * 1. Before the barrier a process copies its dictionaries' values to shared memory, and
 *	  publishes where they are.
 * 2. Behind it one process merges them: a value gets one code, in the order of the
 *	  processes and of their codes.  For each process it says which of its codes has
 *	  become which.  The bound of a dictionary holds for the merged one, too; values
 *	  beyond it have no code.
 * 3. The others wait for that.  Then each fills its own dictionary with the merged one's
 *	  values, and rewrites the records that it has made: codes become those of all, or
 *	  places of values that have none.  A value that had none may have one now.
 * 4. Nobody reads records before all have done so.
 * 5. Who comes late only fills its dictionary.
 *
 * Dictionaries of columns that are thought to take more than HGJ_SHARED_DICTIONARIES are
 * not made (encode.c), since one process merges while the others wait.
 *
 * Memory: what is published is in chunks of the arena that the rows' values are in
 * (base/shared_chunks.c).  Locks: the caller's meeting.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "join/shared_build.h"
#include "miscadmin.h"

/* What is published of one dictionary, in the order of the build side's. */
typedef struct SharedCodes
{
	uint64		values;			/* the place of places, by code */
	uint64		codes;			/* the merged one's: the place of one place per part,
								 * of an array of its codes */
	uint32		n;				/* values */
	bool		full;			/* others may have no code */
} SharedCodes;

/* Of a code that has none in the merged dictionary. */
#define NO_CODE		PG_UINT32_MAX

/* Codes that are looked at between two looks for interrupts. */
#define CODES_AT_ONCE	4096

static void *
at_place(const HgjJoinState *state, uint64 place)
{
	return hgj_chunk_address(state->share.map.chunks[HGJ_VALUE_CHUNK], place);
}

/* n elements of shared memory; *place: where everybody finds them. */
static void *
allocate(HgjJoinState *state, uint32 n, Size size, uint64 *place)
{
	HgjArena   *arena = &state->js.build->rows.values;
	void	   *result = hgj_arena_alloc(arena, MAXALIGN(mul_size(Max(n, 1), size)));

	*place = hgj_arena_place(arena, PointerGetDatum(result));
	return result;
}

/* Step 1. */
void
hgj_share_codes_publish(HgjJoinState *state)
{
	HgjBuildSide *side = state->js.build;
	SharedCodes *published;

	if (side->ndictionaries == 0)
		return;
	published = allocate(state, side->ndictionaries, sizeof(SharedCodes),
						 &hgj_own_part(state)->codes);
	for (int d = 0; d < side->ndictionaries; d++)
	{
		const HgjDictionary *dictionary = side->dictionaries[d];
		SharedCodes *codes = &published[d];
		uint64	   *places;

		codes->n = hgj_dictionary_size(dictionary);
		codes->full = hgj_dictionary_is_full(dictionary);
		codes->codes = 0;
		places = allocate(state, codes->n, sizeof(uint64), &codes->values);
		for (uint32 i = 0; i < codes->n; i++)
		{
			Datum		copy = hgj_dictionary_copy(dictionary, i, &side->rows.values);

			places[i] = hgj_arena_place(&side->rows.values, copy);
			if (i % CODES_AT_ONCE == 0)
				CHECK_FOR_INTERRUPTS();
		}
	}
}

/* What a part has published of the d-th dictionary. */
static const SharedCodes *
codes_of(const HgjJoinState *state, uint32 part, int d)
{
	const SharedCodes *published =
		at_place(state, state->share.build->parts[part].codes);

	return &published[d];
}

/* Step 2: the d-th dictionary. */
static void
merge_dictionary(HgjJoinState *state, int d, SharedCodes *merged)
{
	HgjDictionary *dictionary = state->js.build->dictionaries[d];
	uint32		nparts = pg_atomic_read_u32(&state->share.build->nparts);
	uint64	   *maps = allocate(state, nparts, sizeof(uint64), &merged->codes);
	uint64	   *values;
	uint32		total = 0;

	for (uint32 p = 0; p < nparts; p++)
		total += codes_of(state, p, d)->n;
	values = allocate(state, total, sizeof(uint64), &merged->values);
	merged->n = 0;
	merged->full = false;
	hgj_dictionary_refill(dictionary, NULL, 0, false);
	for (uint32 p = 0; p < nparts; p++)
	{
		const SharedCodes *part = codes_of(state, p, d);
		const uint64 *places = at_place(state, part->values);
		uint32	   *codes = allocate(state, part->n, sizeof(uint32), &maps[p]);

		merged->full |= part->full;
		for (uint32 i = 0; i < part->n; i++)
		{
			if (i % CODES_AT_ONCE == 0)
				CHECK_FOR_INTERRUPTS();
			if (!hgj_dictionary_find(dictionary,
									 PointerGetDatum(at_place(state, places[i])),
									 &codes[i]))
				codes[i] = NO_CODE;
			else if (codes[i] == merged->n)
				values[merged->n++] = places[i];
		}
	}
	merged->full |= hgj_dictionary_is_full(dictionary);
}

/* Steps 3 and 5: the merged dictionaries, in the place of this process's. */
void
hgj_share_codes_take(HgjJoinState *state)
{
	HgjBuildSide *side = state->js.build;
	const SharedCodes *merged;

	if (side->ndictionaries == 0)
		return;
	merged = at_place(state, state->share.build->codes);
	for (int d = 0; d < side->ndictionaries; d++)
	{
		const uint64 *places = at_place(state, merged[d].values);
		Datum	   *values = palloc(mul_size(Max(merged[d].n, 1), sizeof(Datum)));

		for (uint32 i = 0; i < merged[d].n; i++)
			values[i] = PointerGetDatum(at_place(state, places[i]));
		CHECK_FOR_INTERRUPTS();
		hgj_dictionary_refill(side->dictionaries[d], values, merged[d].n,
							  merged[d].full);
		pfree(values);
	}
}

/* Step 3: one column of n records, whose dictionary is the d-th. */
static void
rewrite_records(HgjJoinState *state, char *records, uint32 n,
				const HgjStoredColumn *column, int d)
{
	HgjShare   *share = &state->share;
	const SharedCodes *merged = at_place(state, share->build->codes);
	const SharedCodes *own = codes_of(state, share->part, d);
	const uint64 *maps = at_place(state, merged[d].codes);
	const uint32 *codes = at_place(state, maps[share->part]);
	const uint64 *places = at_place(state, own->values);

	for (uint32 i = 0; i < n; i++, records += state->js.build->rows.stride)
	{
		uint64	   *stored = (uint64 *) (records + column->offset);
		uint32		code;

		if (column->has_nulls && hgj_record_is_null(column, records))
			continue;
		if (likely(!hgj_datum_is_plain((Datum) *stored)))
		{
			code = codes[*stored];
			*stored = code != NO_CODE ? code : places[*stored] | HGJ_PLAIN_BIT;
		}
		else if (hgj_dictionary_find(state->js.build->dictionaries[d],
									 PointerGetDatum(at_place(state, *stored &
															  ~HGJ_PLAIN_BIT)),
									 &code))
			*stored = code;
	}
}

/*
 * The chunks of records that this process has made, as long as it knows of no others.
 * *n: so many.
 */
static uint32 *
own_chunks(const HgjJoinState *state, uint32 *n)
{
	const HgjChunkMap *map = &state->share.map;
	uint32	   *numbers = palloc(mul_size(map->nchunks[HGJ_RECORD_CHUNK],
										  sizeof(uint32)));

	*n = 0;
	for (uint32 i = 0; i < map->nchunks[HGJ_RECORD_CHUNK]; i++)
		if (map->chunks[HGJ_RECORD_CHUNK][i])
			numbers[(*n)++] = i;
	return numbers;
}

/* Step 3: all columns of these chunks. */
static void
rewrite_chunks(HgjJoinState *state, const uint32 *numbers, uint32 nchunks)
{
	HgjRowStore *rows = &state->js.build->rows;
	uint32		chunk_rows = UINT32_C(1) << rows->chunk_shift;
	uint32		end = hgj_own_part(state)->end;

	for (uint32 i = 0; i < nchunks; i++)
	{
		uint32		n = numbers[i] == end >> rows->chunk_shift ?
			end & (chunk_rows - 1) : chunk_rows;

		CHECK_FOR_INTERRUPTS();
		for (int c = 0; c < rows->ncols; c++)
			for (int d = 0; d < state->js.build->ndictionaries; d++)
				if (state->js.inner.columns[c].dictionary == state->js.build->dictionaries[d])
					rewrite_records(state, rows->chunks[numbers[i]], n,
									&rows->columns[c], d);
	}
}

/* Steps 2 to 4, for all who have published. */
void
hgj_share_codes_merge(HgjJoinState *state)
{
	HgjBuildSide *side = state->js.build;
	HgjSharedBuild *shared = state->share.build;
	uint32	   *own;
	uint32		nown;

	if (side->ndictionaries == 0)
		return;
	own = own_chunks(state, &nown);
	if (state->share.part == 0)
	{
		SharedCodes *merged;

		hgj_row_store_map_all(&side->rows);
		merged = allocate(state, side->ndictionaries, sizeof(SharedCodes),
						  &shared->codes);
		for (int d = 0; d < side->ndictionaries; d++)
			merge_dictionary(state, d, &merged[d]);
	}
	hgj_share_meet(shared);
	hgj_row_store_map_all(&side->rows);
	hgj_share_codes_take(state);
	rewrite_chunks(state, own, nown);
	pfree(own);
	hgj_share_meet(shared);
}
