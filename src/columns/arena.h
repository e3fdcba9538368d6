/*-------------------------------------------------------------------------
 *
 * arena.h
 *	  A bump allocator for values that live and die together (arena.c), and how
 *	  a value is copied.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_ARENA_H
#define HGJ_ARENA_H

#include "compat.h"

#include "base/account.h"
#include "base/shared_chunks.h"
#include "utils/expandeddatum.h"

typedef struct HgjArenaChunk
{
	struct HgjArenaChunk *next;
	Size		bytes;			/* of the whole chunk */
	uint32		number;			/* in shared memory */
} HgjArenaChunk;

typedef struct HgjArena
{
	HgjArenaChunk *chunks;		/* newest first */
	char	   *free;
	char	   *end;
	Size		used;			/* bytes handed out since the last reset */
	Size		largest_chunk;	/* 0: HGJ_ARENA_LARGEST */
	HgjAccount	held;			/* bytes taken from the system */
	HgjChunkMap *map;			/* chunks are in shared memory, or NULL */
} HgjArena;

extern void *hgj_alloc(Size bytes, const char *detail);
extern void hgj_arena_limit(HgjArena *arena, Size limit);
extern void *hgj_arena_alloc_slow(HgjArena *arena, Size bytes);
extern Datum hgj_arena_copy(HgjArena *arena, Datum value, int16 attlen);
extern uint64 hgj_arena_place(const HgjArena *arena, Datum value);
extern void hgj_arena_reset(HgjArena *arena);
extern void hgj_arena_free(HgjArena *arena);

/* bytes must be MAXALIGNed */
static inline void *
hgj_arena_alloc(HgjArena *arena, Size bytes)
{
	void	   *result = arena->free;

	if (unlikely(bytes > (Size) (arena->end - arena->free)))
		return hgj_arena_alloc_slow(arena, bytes);
	arena->free += bytes;
	arena->used += bytes;
	return result;
}

/* What a copy of a by-reference datum (attlen as in pg_type) takes. */
static inline Size
hgj_value_bytes(Datum value, int16 attlen)
{
	Pointer		source = DatumGetPointer(value);

	if (attlen == -2)
		return strlen(source) + 1;
	if (attlen != -1)
		return attlen;
	if (VARATT_IS_EXTERNAL_EXPANDED(source))
		return EOH_get_flat_size(DatumGetEOHP(value));
	return VARSIZE_ANY(source);
}

/*
 * Write that copy, of so many bytes, as datumCopy() would: expanded objects are
 * flattened, TOAST pointers stay.
 */
static inline void
hgj_value_write(char *to, Datum value, int16 attlen, Size bytes)
{
	if (attlen == -1 && VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(value)))
		EOH_flatten_into(DatumGetEOHP(value), to, bytes);
	else
		memcpy(to, DatumGetPointer(value), bytes);
}

#endif							/* HGJ_ARENA_H */
