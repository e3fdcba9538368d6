/*-------------------------------------------------------------------------
 *
 * arena.c
 *	  Where the by-reference values of batches and of the build side live.
 *
 * 1. Chunks come from hgj_mem_alloc(), each twice as large as the one before,
 *	  between 8 kB and 8 MB, or a part of the memory limit that they count for;
 *	  a large value gets a chunk of its own.
 *	  Those of a build side that several processes make together are in shared
 *	  memory (base/shared_chunks.c), where a value is known by its chunk's number
 *	  and its distance from there.
 * 2. Nothing is freed singly.  A reset keeps the largest ordinary chunk, so
 *	  that a batch that is filled again and again allocates nothing.
 *
 * Not a MemoryContext, because millions of values of a few bytes each would
 * pay a chunk header apiece, and because the bytes taken must be known exactly.
 * Whoever owns the HgjArena struct frees it, on abort too (node.c registers a
 * reset callback); chunks in shared memory are not the arena's to free.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "columns/arena.h"
#include "engine/hgj_memory.h"
#include "utils/memutils.h"

#define HGJ_ARENA_FIRST		((Size) 8 * 1024)
#define HGJ_ARENA_LARGEST	((Size) 8 * 1024 * 1024)
#define HGJ_ARENA_HEADER	MAXALIGN(sizeof(HgjArenaChunk))

/* Chunks of at most this part of the limit. */
#define HGJ_ARENA_SHARE		16

/* Say what memory limit the arena counts for, before the first value. */
void
hgj_arena_limit(HgjArena *arena, Size limit)
{
	Size		chunk = HGJ_ARENA_FIRST;

	while (chunk < HGJ_ARENA_LARGEST && chunk * 2 <= limit / HGJ_ARENA_SHARE)
		chunk *= 2;
	arena->largest_chunk = chunk;
}

static Size
largest_chunk(const HgjArena *arena)
{
	return arena->largest_chunk ? arena->largest_chunk : HGJ_ARENA_LARGEST;
}

/*
 * hgj_mem_alloc(), or an error; `detail` is its detail, with a %zu for the
 * bytes.  The caller keeps them in mind for hgj_mem_free().
 */
void *
hgj_alloc(Size bytes, const char *detail)
{
	void	   *result = hgj_mem_alloc(bytes);

	if (result == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail(detail, bytes)));
	return result;
}

static HgjArenaChunk *
new_chunk(HgjArena *arena, Size bytes)
{
	HgjArenaChunk *chunk;
	uint32		number = 0;

	if (arena->map)
		chunk = (HgjArenaChunk *) hgj_chunk_create(arena->map, HGJ_VALUE_CHUNK,
												   bytes, &number);
	else
		chunk = hgj_alloc(bytes, gettext_noop("Failed on request of size %zu for the rows of a HashGraphJoin."));
	chunk->bytes = bytes;
	chunk->number = number;
	hgj_account_add(&arena->held, hgj_mem_footprint(bytes));
	return chunk;
}

/* The part of hgj_arena_alloc() that needs a new chunk. */
void *
hgj_arena_alloc_slow(HgjArena *arena, Size bytes)
{
	HgjArenaChunk *chunk;
	Size		size;

	if (bytes > Min(MaxAllocHugeSize, PG_UINT32_MAX) - HGJ_ARENA_HEADER)
		elog(ERROR, "invalid request of %zu bytes from an arena", bytes);

	if (bytes > largest_chunk(arena) / 4)
	{
		/* behind the newest chunk, which goes on being filled */
		chunk = new_chunk(arena, bytes + HGJ_ARENA_HEADER);
		if (arena->chunks)
		{
			chunk->next = arena->chunks->next;
			arena->chunks->next = chunk;
		}
		else
		{
			chunk->next = NULL;
			arena->chunks = chunk;
		}
		arena->used += bytes;
		return (char *) chunk + HGJ_ARENA_HEADER;
	}

	size = arena->chunks ? arena->chunks->bytes * 2 : HGJ_ARENA_FIRST;
	while (size < bytes + HGJ_ARENA_HEADER)
		size *= 2;
	size = Min(size, largest_chunk(arena));
	chunk = new_chunk(arena, size);
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	arena->free = (char *) chunk + HGJ_ARENA_HEADER;
	arena->end = (char *) chunk + size;
	return hgj_arena_alloc(arena, bytes);
}

/* Copy a by-reference datum into the arena. */
Datum
hgj_arena_copy(HgjArena *arena, Datum value, int16 attlen)
{
	Size		size = hgj_value_bytes(value, attlen);
	char	   *copy = hgj_arena_alloc(arena, MAXALIGN(size));

	hgj_value_write(copy, value, attlen, size);
	return PointerGetDatum(copy);
}

/*
 * Where a value lies that has been copied into an arena in shared memory: its chunk's
 * number, and in the lower half its offset there.  0: it is not in the arena.
 */
uint64
hgj_arena_place(const HgjArena *arena, Datum value)
{
	const char *address = DatumGetPointer(value);

	for (const HgjArenaChunk *chunk = arena->chunks; chunk; chunk = chunk->next)
	{
		const char *start = (const char *) chunk;

		if (address >= start && address < start + chunk->bytes)
			return (uint64) chunk->number << 32 | (uint64) (address - start);
	}
	return 0;
}

/* Forget every value; keep one chunk to go on with. */
void
hgj_arena_reset(HgjArena *arena)
{
	HgjArenaChunk *keep = NULL;
	HgjArenaChunk *next;

	Assert(arena->map == NULL);
	for (HgjArenaChunk *chunk = arena->chunks; chunk; chunk = chunk->next)
		if (chunk->bytes <= largest_chunk(arena) &&
			(keep == NULL || chunk->bytes > keep->bytes))
			keep = chunk;

	for (HgjArenaChunk *chunk = arena->chunks; chunk; chunk = next)
	{
		next = chunk->next;
		if (chunk == keep)
			continue;
		hgj_account_sub(&arena->held, hgj_mem_footprint(chunk->bytes));
		hgj_mem_free(chunk, chunk->bytes);
	}

	arena->chunks = keep;
	arena->used = 0;
	arena->free = arena->end = NULL;
	if (keep)
	{
		keep->next = NULL;
		arena->free = (char *) keep + HGJ_ARENA_HEADER;
		arena->end = (char *) keep + keep->bytes;
	}
}

/* Give everything back.  The struct is then empty, and may be used again. */
void
hgj_arena_free(HgjArena *arena)
{
	HgjArenaChunk *next;

	/* shared memory may be gone by now */
	for (HgjArenaChunk *chunk = arena->map ? NULL : arena->chunks; chunk; chunk = next)
	{
		next = chunk->next;
		hgj_mem_free(chunk, chunk->bytes);
	}
	arena->map = NULL;
	hgj_account_set(&arena->held, 0);
	arena->chunks = NULL;
	arena->free = arena->end = NULL;
	arena->used = 0;
}
