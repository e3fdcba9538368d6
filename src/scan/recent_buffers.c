/*-------------------------------------------------------------------------
 *
 * recent_buffers.c
 *	  In which buffers this session has found a table's blocks.
 *
 * To look a block up in PostgreSQL's mapping table takes three misses of the
 * processor's caches or so, one behind the other: half a microsecond, which is
 * more than is done with all rows of many a page.  A block that has been read
 * before mostly still is in the same buffer, and PostgreSQL's ReadRecentBuffer()
 * pins it there, if so.
 *
 * 1. A table has an array of buffer numbers, one per block.  They are hints:
 *	  whoever uses one finds out whether it is still right.
 * 2. Tables of a few pages are left out, and those with more pages than there are
 *	  buffers.  There is a limit to the tables and to the blocks of all of them;
 *	  the ones not used for longest are forgotten.
 * 3. A scan that is under way when its table is forgotten does without.
 *
 * Memory: up to 2 MB, kept till the session ends; calloc'd, so that what is about blocks
 * that nobody reads takes none, and a session's first query no time to clear it.  A worker,
 * which ends with its query, has none.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "miscadmin.h"
#include "scan/recent_buffers.h"

#define HGJ_RECENT_TABLES	16
#define HGJ_RECENT_BLOCKS	((BlockNumber) 512 * 1024)
#define HGJ_FEWEST_BLOCKS	64

static HgjRecentTable tables[HGJ_RECENT_TABLES];
static BlockNumber blocks_held = 0;
static uint64 last_id = 0;
static uint64 last_use = 0;

static HgjRecentTable *
find_table(const HgjLocator *locator)
{
	for (int i = 0; i < HGJ_RECENT_TABLES; i++)
		if (tables[i].id != 0 && HGJ_SAME_LOCATOR(tables[i].locator, *locator))
			return &tables[i];
	return NULL;
}

static void
forget(HgjRecentTable *table)
{
	blocks_held -= table->nblocks;
	free(table->buffers);
	memset(table, 0, sizeof(*table));
}

/* A place for another table, of so many blocks. */
static HgjRecentTable *
make_room(BlockNumber nblocks)
{
	for (;;)
	{
		HgjRecentTable *empty = NULL;
		HgjRecentTable *oldest = NULL;

		for (int i = 0; i < HGJ_RECENT_TABLES; i++)
			if (tables[i].id == 0)
				empty = &tables[i];
			else if (oldest == NULL || tables[i].used < oldest->used)
				oldest = &tables[i];
		if (empty != NULL && blocks_held + nblocks <= HGJ_RECENT_BLOCKS)
			return empty;
		forget(oldest);
	}
}

static HgjRecentTable *
remember(const HgjLocator *locator, BlockNumber nblocks)
{
	HgjRecentTable *table = make_room(nblocks);

	table->buffers = calloc(nblocks, sizeof(Buffer));
	if (table->buffers == NULL)
		return NULL;
	table->locator = *locator;
	table->nblocks = nblocks;
	table->id = ++last_id;
	blocks_held += nblocks;
	return table;
}

/* What a scan of a table of so many blocks goes by. */
HgjRecentBuffers
hgj_recent_buffers(Relation rel, BlockNumber nblocks)
{
	HgjRecentBuffers recent = {NULL, 0};
	HgjLocator	locator = HGJ_LOCATOR(rel);

	if (IsParallelWorker() || RelationUsesLocalBuffers(rel) ||
		nblocks < HGJ_FEWEST_BLOCKS || nblocks > (BlockNumber) NBuffers)
		return recent;
	nblocks = Min(nblocks, HGJ_RECENT_BLOCKS);
	recent.table = find_table(&locator);
	if (recent.table && recent.table->nblocks < nblocks - nblocks / 8)
	{
		/* it has grown */
		forget(recent.table);
		recent.table = NULL;
	}
	if (recent.table == NULL)
		recent.table = remember(&locator, nblocks);
	if (recent.table != NULL)
	{
		recent.table->used = ++last_use;
		recent.id = recent.table->id;
	}
	return recent;
}
