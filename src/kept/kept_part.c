/*-------------------------------------------------------------------------
 *
 * kept_part.c
 *	  Which part of a table's pages need not be read for some columns, because they
 *	  are kept in memory and have not changed: for the planner's costs.
 *
 * 1. A table of which nothing is kept is told by one count in shared memory, so that
 *	  planning statements that never come near kept columns costs nothing.
 * 2. Of some runs of pages, spread over the table, the chunks' pages that are not known
 *	  to have changed and those that are all-visible are compared.  A scan knows better:
 *	  it looks at pages of which nobody knows since a VACUUM (valid.c).
 * 3. The planner asks many times for a query.  What was found stands until the next
 *	  statement, or until chunks come or go.
 *
 * It is an estimate: nothing is held, and all of it may have changed when the query
 * runs.
 *
 * Memory: static.  Locks: those of store.c and map.c.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "kept/store.h"
#include "port/pg_bitutils.h"
#include "utils/rel.h"

/* Runs that are looked at, at most. */
#define MOST_SAMPLES	16

#define REMEMBERED		64

typedef struct Remembered
{
	Oid			relid;			/* InvalidOid: nothing */
	uint32		columns;		/* a hash of their numbers */
	BlockNumber npages;
	uint64		changes;		/* of the store, then */
	TimestampTz statement;
	double		part;
} Remembered;

static Remembered remembered[REMEMBERED];

/* Step 2: how many of the run's first npages pages have all columns kept? */
static uint32
kept_pages(Relation rel, uint32 run, uint32 npages, const AttrNumber *attnos, int n)
{
	uint64		valid[HGJ_RUN_WORDS];
	uint64		pages[HGJ_RUN_WORDS];
	uint32		kept = 0;

	memset(valid, 0xFF, sizeof(valid));
	for (int i = 0; i < n; i++)
	{
		HgjChunkKey key = hgj_store_key(rel, attnos[i], run);

		if (!hgj_store_look(&key, pages, NULL))
			return 0;
		for (int w = 0; w < HGJ_RUN_WORDS; w++)
			valid[w] &= pages[w];
	}
	/* last, because it takes longest */
	(void) hgj_map_look(rel, run, pages);
	for (int w = 0; w < HGJ_RUN_WORDS; w++)
		valid[w] &= pages[w];
	for (uint32 w = 0; w * 64 < npages; w++)
	{
		uint32		there = Min(npages - w * 64, 64);

		kept += pg_popcount64(valid[w] & (~UINT64CONST(0) >> (64 - there)));
	}
	return kept;
}

static double
look(Relation rel, const AttrNumber *attnos, int n, BlockNumber npages)
{
	uint32		nruns = hgj_run_of(npages - 1) + 1;
	uint32		samples = Min(nruns, MOST_SAMPLES);
	double		kept = 0;
	double		pages = 0;

	for (uint32 i = 0; i < samples; i++)
	{
		uint32		run = (uint32) ((uint64) nruns * i / samples);
		BlockNumber end = Min(hgj_run_start(run + 1), npages);
		uint32		in_run = end - hgj_run_start(run);

		kept += kept_pages(rel, run, in_run, attnos, n);
		pages += in_run;
	}
	return kept / pages;
}

/*
 * The part of the table's pages, 0 to 1, that a scan of these columns would not read
 * now.
 */
double
hgj_kept_part(Relation rel, const AttrNumber *attnos, int n, BlockNumber npages)
{
	Oid			relid = RelationGetRelid(rel);
	TimestampTz statement = GetCurrentStatementStartTimestamp();
	uint64		changes = hgj_store_changes();
	uint32		columns;
	Remembered *known;

	if (n == 0 || npages == 0 || !hgj_store_may_have(relid) ||
		!hgj_table_may_be_kept(rel) || !hgj_kept_may_be_read())
		return 0;
	columns = hash_bytes((const unsigned char *) attnos, n * sizeof(AttrNumber));
	known = &remembered[hash_combine(relid, columns) % REMEMBERED];
	if (known->relid != relid || known->columns != columns ||
		known->npages != npages || known->changes != changes ||
		known->statement != statement)
	{
		known->part = look(rel, attnos, n, npages);
		known->relid = relid;
		known->columns = columns;
		known->npages = npages;
		known->changes = changes;
		known->statement = statement;
	}
	return known->part;
}
