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
 * 3. A map that was made under wal_level = minimal, with its file, has no LSN until somebody
 *	  sets a bit after that.  Then 0 says that nobody has, like any other LSN that stays.
 *
 * No memory.  The page's content lock, in share mode, and its pin, within
 * hgj_map_look() only.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/visibilitymap.h"
#include "kept/store.h"
#include "port/pg_bswap.h"
#include "storage/bufmgr.h"

/* Of so many pages' bits of the map, in the order of memory, those that say all-visible. */
#define PAGES_AT_ONCE	32

static inline uint64
visible_bits(const uint8 *map)
{
	uint64		bits;

	memcpy(&bits, map, sizeof(bits));
#ifdef WORDS_BIGENDIAN
	bits = pg_bswap64(bits);
#endif
	/* every other bit goes, and the others move together */
	bits &= UINT64CONST(0x5555555555555555);
	bits = (bits | bits >> 1) & UINT64CONST(0x3333333333333333);
	bits = (bits | bits >> 2) & UINT64CONST(0x0F0F0F0F0F0F0F0F);
	bits = (bits | bits >> 4) & UINT64CONST(0x00FF00FF00FF00FF);
	bits = (bits | bits >> 8) & UINT64CONST(0x0000FFFF0000FFFF);
	return (bits | bits >> 16) & UINT64CONST(0x00000000FFFFFFFF);
}

/*
 * The pages of the run that are all-visible now, and the LSN that goes with that, which
 * may be 0 (step 3); no pages where there is no map.
 */
XLogRecPtr
hgj_map_look(Relation rel, uint32 run, uint64 *pages)
{
	uint32		first = run % HGJ_RUNS_PER_MAP * (HGJ_RUN_PAGES / 4);
	uint32		npages = Min(HGJ_RUN_PAGES, (HGJ_MAP_BYTES - first) * 4);
	Buffer		buffer = InvalidBuffer;
	XLogRecPtr	lsn;
	const uint8 *map;
	Page		page;

	StaticAssertStmt(VISIBILITYMAP_ALL_VISIBLE == 1, "another bit says all-visible");
	StaticAssertStmt(HGJ_MAP_BYTES * 4 % PAGES_AT_ONCE == 0, "a map ends within a word");
	memset(pages, 0, HGJ_RUN_WORDS * sizeof(uint64));
	(void) visibilitymap_get_status(rel, hgj_run_start(run), &buffer);
	if (!BufferIsValid(buffer))
		return InvalidXLogRecPtr;
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	lsn = PageGetLSN(page);
	map = (const uint8 *) PageGetContents(page) + first;
	for (uint32 i = 0; i < npages; i += PAGES_AT_ONCE)
		pages[i / 64] |= visible_bits(map + i / 4) << (i % 64);
	UnlockReleaseBuffer(buffer);
	return lsn;
}
