/*-------------------------------------------------------------------------
 *
 * shared_chunks.c
 *	  Dynamic shared memory of a query: lists of what its processes allocate, and
 *	  chunks that are found by number.
 *
 * 1. A process that needs a chunk allocates it in the query's area, hangs it into the one
 *	  list of them all, for which an atomic word is enough, as nothing is taken out before
 *	  the end, and gives it the next number of its kind.
 * 2. When all processes have made theirs (the caller's barrier says so), each walks
 *	  the list once and notes where the chunks lie in its own address space.
 *
 * Numbers begin with 1 for values, so that 0 can say that there is none, and with 0
 * for records.
 *
 * Memory: chunks belong to the area, which the parallel query gives back at its end, on
 * abort too; who starts over within the query frees them first.  The arrays of a map
 * are palloc'd in its context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/shared_chunks.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* What a chunk begins with; contents begin on a cache line. */
typedef struct ChunkHeader
{
	HgjSharedLink link;
	uint32		kind;
	uint32		number;
} ChunkHeader;

#define HEADER_BYTES	PG_CACHE_LINE_SIZE

StaticAssertDecl(sizeof(ChunkHeader) <= HEADER_BYTES, "a header must fit its room");

/* So many bytes; detail: what is said of it if there is no memory, with a %zu. */
dsa_pointer
hgj_shared_allocate(dsa_area *area, Size size, const char *detail)
{
	dsa_pointer pointer = dsa_allocate_extended(area, size,
												DSA_ALLOC_HUGE | DSA_ALLOC_NO_OOM);

	if (!DsaPointerIsValid(pointer))
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail(detail, size)));
	return pointer;
}

/*
 * The same, as the newest member of a list.  Whoever reads the list does so when nobody
 * writes any more, so that the rest may be filled in later.
 */
void *
hgj_shared_list_add(dsa_area *area, pg_atomic_uint64 *newest, Size size,
					const char *detail)
{
	dsa_pointer pointer = hgj_shared_allocate(area, size, detail);
	HgjSharedLink *link = dsa_get_address(area, pointer);
	uint64		older = pg_atomic_read_u64(newest);

	do
		link->older = older;
	while (!pg_atomic_compare_exchange_u64(newest, &older, pointer));
	return link;
}

/* Free a list, which nobody uses any more. */
void
hgj_shared_list_free(dsa_area *area, dsa_pointer newest)
{
	while (DsaPointerIsValid(newest))
	{
		dsa_pointer older = ((HgjSharedLink *) dsa_get_address(area, newest))->older;

		CHECK_FOR_INTERRUPTS();
		dsa_free(area, newest);
		newest = older;
	}
}

/* There are none. */
void
hgj_shared_chunks_init(HgjSharedChunks *shared)
{
	pg_atomic_init_u64(&shared->newest, InvalidDsaPointer);
	pg_atomic_init_u64(&shared->bytes, 0);
	pg_atomic_init_u32(&shared->next[HGJ_RECORD_CHUNK], 0);
	pg_atomic_init_u32(&shared->next[HGJ_VALUE_CHUNK], 1);
}

/* Make the array of a kind reach up to a number. */
static void
reach(HgjChunkMap *map, HgjChunkKind kind, uint32 number)
{
	uint32		old = map->nchunks[kind];
	uint32		n = Max(old, 16);

	if (number < old)
		return;
	while (n <= number)
		n = n > PG_UINT32_MAX / 2 ? PG_UINT32_MAX : n * 2;
	map->chunks[kind] = map->chunks[kind] ?
		repalloc_huge(map->chunks[kind], mul_size(n, sizeof(char *))) :
		MemoryContextAllocHuge(map->context, mul_size(n, sizeof(char *)));
	memset(map->chunks[kind] + old, 0, (Size) (n - old) * sizeof(char *));
	map->nchunks[kind] = n;
}

/* This process is going to make and read them; the map is zeroed, or an old one. */
void
hgj_chunk_map_init(HgjChunkMap *map, MemoryContext context,
				   HgjSharedChunks *shared, dsa_area *area)
{
	for (int kind = 0; kind < HGJ_CHUNK_KINDS; kind++)
		if (map->chunks[kind])
			pfree(map->chunks[kind]);
	memset(map, 0, sizeof(*map));
	map->shared = shared;
	map->area = area;
	map->context = context;
	for (int kind = 0; kind < HGJ_CHUNK_KINDS; kind++)
		reach(map, kind, 0);
}

/* A number, for a chunk that nobody has to find. */
uint32
hgj_chunk_number(HgjChunkMap *map, HgjChunkKind kind)
{
	uint32		number = pg_atomic_fetch_add_u32(&map->shared->next[kind], 1);

	if (number >= PG_UINT32_MAX / 2)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("a HashGraphJoin needs too many chunks of shared memory")));
	return number;
}

static Size
aligned_at(const char *chunk)
{
	return TYPEALIGN(HEADER_BYTES, (uintptr_t) chunk) - (uintptr_t) chunk;
}

/* Step 1: so many bytes, from a cache line on, and their number. */
char *
hgj_chunk_create(HgjChunkMap *map, HgjChunkKind kind, Size bytes, uint32 *number)
{
	Size		size = add_size(bytes, 2 * HEADER_BYTES);
	ChunkHeader *header =
		hgj_shared_list_add(map->area, &map->shared->newest, size,
							gettext_noop(HGJ_NO_SHARED_BUILD));
	char	   *chunk;

	/* it can be found, and freed, whatever happens now */
	header->kind = kind;
	header->number = *number = hgj_chunk_number(map, kind);
	pg_atomic_fetch_add_u64(&map->shared->bytes, size);

	chunk = (char *) header + HEADER_BYTES;
	chunk += aligned_at(chunk);
	reach(map, kind, *number);
	map->chunks[kind][*number] = chunk;
	return chunk;
}

/* Step 2. */
void
hgj_chunk_map_all(HgjChunkMap *map)
{
	dsa_pointer pointer = pg_atomic_read_u64(&map->shared->newest);

	/* numbers without a chunk are read as if there were one */
	for (int kind = 0; kind < HGJ_CHUNK_KINDS; kind++)
		reach(map, kind, pg_atomic_read_u32(&map->shared->next[kind]));
	while (DsaPointerIsValid(pointer))
	{
		ChunkHeader *header = dsa_get_address(map->area, pointer);
		char	   *chunk = (char *) header + HEADER_BYTES;

		CHECK_FOR_INTERRUPTS();
		map->chunks[header->kind][header->number] = chunk + aligned_at(chunk);
		pointer = header->link.older;
	}
}
