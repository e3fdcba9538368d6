/*-------------------------------------------------------------------------
 *
 * arena.h
 *	  A bump allocator for values that live and die together (arena.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_ARENA_H
#define HGJ_ARENA_H

#include "compat.h"

typedef struct HgjArenaChunk
{
	struct HgjArenaChunk *next;
	Size		bytes;			/* of the whole chunk */
} HgjArenaChunk;

typedef struct HgjArena
{
	HgjArenaChunk *chunks;		/* newest first */
	char	   *free;
	char	   *end;
	Size		used;			/* bytes handed out since the last reset */
	Size		allocated;		/* bytes taken from the system */
	Size		largest_chunk;	/* 0: HGJ_ARENA_LARGEST */
} HgjArena;

extern void hgj_arena_limit(HgjArena *arena, Size limit);
extern void *hgj_arena_alloc_slow(HgjArena *arena, Size bytes);
extern Size hgj_arena_value_bytes(Datum value, int16 attlen);
extern Datum hgj_arena_copy(HgjArena *arena, Datum value, int16 attlen);
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

#endif							/* HGJ_ARENA_H */
