/*-------------------------------------------------------------------------
 *
 * map.c
 *	  A look at the visibility map: which pages of a run say the same to every
 *	  snapshot, and since when.
 *
 * 1. The page of the map is copied, in part, under share lock, with its LSN.
 * 2. Who sets a bit writes WAL and moves that LSN; who changes a heap page clears
 *	  the bit first.  So a page whose bit is set in two looks with the same LSN has
 *	  not changed in between.  docs/internals.md, "Columns kept in memory", says
 *	  why, and on which functions of PostgreSQL that rests.
 *
 * No memory.  The page's content lock, in share mode, and its pin, within
 * hgj_map_look() only.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/visibilitymap.h"
#include "kept/store.h"
#include "storage/bufmgr.h"

/* Of four pages' bits of the map, the four that say all-visible. */
static inline uint64
visible_bits(uint8 map)
{
	return (map & 1) | (map >> 1 & 2) | (map >> 2 & 4) | (map >> 3 & 8);
}

/*
 * The pages of the run that are all-visible now, and the LSN that goes with that;
 * invalid, and no pages, where there is no map.
 */
XLogRecPtr
hgj_map_look(Relation rel, uint32 run, uint64 *pages)
{
	uint32		first = run % HGJ_RUNS_PER_MAP * (HGJ_RUN_PAGES / 4);
	uint32		nbytes = Min(HGJ_RUN_PAGES / 4, HGJ_MAP_BYTES - first);
	Buffer		buffer = InvalidBuffer;
	XLogRecPtr	lsn;
	const uint8 *map;
	Page		page;

	StaticAssertStmt(VISIBILITYMAP_ALL_VISIBLE == 1, "another bit says all-visible");
	memset(pages, 0, HGJ_RUN_WORDS * sizeof(uint64));
	(void) visibilitymap_get_status(rel, hgj_run_start(run), &buffer);
	if (!BufferIsValid(buffer))
		return InvalidXLogRecPtr;
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	lsn = PageGetLSN(page);
	map = (const uint8 *) PageGetContents(page) + first;
	for (uint32 i = 0; i < nbytes; i++)
		pages[i / 16] |= visible_bits(map[i]) << (i % 16 * 4);
	UnlockReleaseBuffer(buffer);
	if (XLogRecPtrIsInvalid(lsn))
		memset(pages, 0, HGJ_RUN_WORDS * sizeof(uint64));
	return lsn;
}
