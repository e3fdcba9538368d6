/*-------------------------------------------------------------------------
 *
 * known_pages.c
 *	  How much of a table this session has read, for the planner's costs: the pages
 *	  of shared buffers that a process looks at for the first time cost it page faults
 *	  and look-ups, as many as everything else that is done with them.
 *
 * 1. A scan says at its end how many pages it has read.  What it has read of a
 *	  parallel scan may be other pages than those before, or the same ones.
 *	  Pages of a large table that are not in shared buffers pass through a ring of a few
 *	  (heapam.c), by whichever process they are read: those are as new the next time.
 * 2. Small tables are left out: plans do not depend on what a session has done
 *	  where it does not matter.
 * 3. The tables that were read last are remembered.  Nothing comes of it if one of
 *	  them has been rewritten, or is no more: these are estimates.
 *
 * Memory: static.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "base/known_pages.h"

#define HGJ_KNOWN_TABLES	64

typedef struct KnownTable
{
	Oid			relid;			/* InvalidOid: the place is free */
	double		pages;
	uint64		used;			/* the larger, the later */
} KnownTable;

static KnownTable tables[HGJ_KNOWN_TABLES];
static uint64 last_use = 0;

static KnownTable *
find_table(Oid relid)
{
	for (int i = 0; i < HGJ_KNOWN_TABLES; i++)
		if (tables[i].relid == relid)
			return &tables[i];
	return NULL;
}

/* A place for another table: a free one, or that of the one not read for longest. */
static KnownTable *
make_room(Oid relid)
{
	KnownTable *oldest = &tables[0];

	for (int i = 1; i < HGJ_KNOWN_TABLES; i++)
		if (tables[i].used < oldest->used)
			oldest = &tables[i];
	oldest->relid = relid;
	oldest->pages = 0;
	return oldest;
}

/*
 * A scan has read so many pages of the table's npages, and `passed` of them into a ring of
 * buffers, where they have made room for others since.
 */
void
hgj_pages_were_read(Oid relid, BlockNumber pages, BlockNumber passed, BlockNumber npages)
{
	double		stayed = pages - Min(passed, pages);
	KnownTable *table;

	/* a worker ends with its query */
	if (npages < HGJ_FEWEST_KNOWN_PAGES || IsParallelWorker())
		return;
	table = find_table(relid);
	if (table == NULL)
		table = make_room(relid);
	table->used = ++last_use;
	table->pages = Min(table->pages, npages);
	table->pages += stayed * (1 - table->pages / npages);
	table->pages = Min(table->pages, npages - (double) Min(passed, npages));
}

/* The part of the table's pages that the session has read: 0 to 1. */
double
hgj_known_part(Oid relid, BlockNumber npages)
{
	const KnownTable *table = npages < HGJ_FEWEST_KNOWN_PAGES ? NULL : find_table(relid);

	return table ? Min(table->pages / npages, 1) : 0;
}
