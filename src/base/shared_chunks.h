/*-------------------------------------------------------------------------
 *
 * shared_chunks.h
 *	  Dynamic shared memory that the processes of a parallel query fill, and read of
 *	  each other: lists, and chunks with numbers (shared_chunks.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_SHARED_CHUNKS_H
#define HGJ_SHARED_CHUNKS_H

#include "compat.h"

#include "port/atomics.h"
#include "utils/dsa.h"

/* What members of a list begin with. */
typedef struct HgjSharedLink
{
	dsa_pointer older;
} HgjSharedLink;

extern dsa_pointer hgj_shared_allocate(dsa_area *area, Size size,
									   const char *detail);
extern void *hgj_shared_list_add(dsa_area *area, pg_atomic_uint64 *newest,
								 Size size, const char *detail);
extern void hgj_shared_list_free(dsa_area *area, dsa_pointer newest);

/* ... if there is no memory for a build side that processes share. */
#define HGJ_NO_SHARED_BUILD \
	"Failed on request of size %zu in shared memory for the build side of a HashGraphJoin."

typedef enum HgjChunkKind
{
	HGJ_RECORD_CHUNK,			/* of a row store */
	HGJ_VALUE_CHUNK,			/* of an arena */
	HGJ_CHUNK_KINDS
} HgjChunkKind;

/* What all processes see. */
typedef struct HgjSharedChunks
{
	pg_atomic_uint64 newest;	/* a dsa_pointer: the chunks are a list */
	pg_atomic_uint64 bytes;		/* of all of them */
	pg_atomic_uint32 next[HGJ_CHUNK_KINDS]; /* the number of the next one */
} HgjSharedChunks;

/* Where they are in this process. */
typedef struct HgjChunkMap
{
	HgjSharedChunks *shared;
	dsa_area   *area;
	MemoryContext context;		/* of the arrays */
	char	  **chunks[HGJ_CHUNK_KINDS];	/* by number; NULL: not looked up yet */
	uint32		nchunks[HGJ_CHUNK_KINDS];	/* of the array */
} HgjChunkMap;

extern void hgj_shared_chunks_init(HgjSharedChunks *shared);
extern void hgj_chunk_map_init(HgjChunkMap *map, MemoryContext context,
							   HgjSharedChunks *shared, dsa_area *area);
extern uint32 hgj_chunk_number(HgjChunkMap *map, HgjChunkKind kind);
extern char *hgj_chunk_create(HgjChunkMap *map, HgjChunkKind kind, Size bytes,
							  uint32 *number);
extern void hgj_chunk_map_all(HgjChunkMap *map);

/* Where a place in a chunk (hgj_arena_place()) is in this process. */
static inline void *
hgj_chunk_address(char *const *chunks, uint64 place)
{
	return chunks[place >> 32] + (uint32) place;
}

#endif							/* HGJ_SHARED_CHUNKS_H */
