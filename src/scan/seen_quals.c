/*-------------------------------------------------------------------------
 *
 * seen_quals.c
 *	  Scans of one table by the same quals: what one scan has found out about a page of
 *	  kept columns, the others of the query need not find out again.
 *
 * Queries scan a table twice with the same conditions where people join it with itself, and
 * where we restrict the groups of a subquery to what is around it (rewrite/restrict.c).  A
 * pattern that every string of a large table is compared with is most of what such a scan
 * costs.
 *
 * 1. At executor start, scans of one query that look at strings, or at anything row by row,
 *	  are put together if their tables and their quals are equal.  The quals must raise no
 *	  error, must not be volatile, and must not read anything that changes while the query
 *	  runs.
 * 2. Whichever scan runs its quals over all rows of a slice notes the rows that have passed,
 *	  by page.  All scans of a query have one snapshot, for which a page that is kept has the
 *	  same rows in the same order whenever it is looked at.
 * 3. A scan that comes to a slice of which all pages have been noted takes the rows from there.
 * 4. Nothing more is noted when the rows that pass become many, or the table has too many
 *	  pages: the memory is bounded by a part of work_mem.
 *
 * In a parallel query each process notes the pages that it has read, and no others.
 *
 * Memory: the query's context, from which the list of queries is told of its end.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "expr/demand.h"
#include "miscadmin.h"
#include "rewrite/rewriteManip.h"
#include "scan/seen_quals.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Step 4: of work_mem, for the pages, and for the rows. */
#define PART_OF_MEMORY	8

/* Tables with fewer pages are scanned faster than they are noted. */
#define LEAST_PAGES		64

/* Step 2: what is known of a page. */
typedef struct SeenPage
{
	uint32		at;				/* its first row in the list of rows */
	uint16		nrows;			/* rows that have passed */
	bool		seen;			/* whether anything is known */
} SeenPage;

struct HgjSeenQuals
{
	Oid			relid;			/* table of all these scans */
	List	   *quals;			/* their conditions, of a range table of one entry */
	int			nscans;			/* number of scans that have them */
	bool		off;			/* whether nothing more is noted */
	MemoryContext context;		/* the query's */
	BlockNumber npages;			/* length of `pages` */
	SeenPage   *pages;			/* what is known, by block; NULL before the first slice */
	uint16	   *rows;			/* numbers of rows within their pages, page by page */
	uint32		nrows;			/* entries of `rows` */
	uint32		room;			/* entries that fit */
};

/* The scans of a query that runs. */
typedef struct SeenQuery
{
	EState	   *estate;
	List	   *scans;			/* HgjSeenQuals */
	MemoryContextCallback when_gone;
} SeenQuery;

static List *queries = NIL;		/* SeenQuery, in TopMemoryContext; each is in its query's */

static void
forget_query(void *arg)
{
	queries = list_delete_ptr(queries, arg);
}

static SeenQuery *
query_of(EState *estate)
{
	SeenQuery  *query;
	MemoryContext old;
	ListCell   *lc;

	foreach(lc, queries)
		if (((SeenQuery *) lfirst(lc))->estate == estate)
			return lfirst(lc);
	query = MemoryContextAllocZero(estate->es_query_cxt, sizeof(SeenQuery));
	query->estate = estate;
	query->when_gone.func = forget_query;
	query->when_gone.arg = query;
	old = MemoryContextSwitchTo(TopMemoryContext);
	queries = lappend(queries, query);
	MemoryContextSwitchTo(old);
	MemoryContextRegisterResetCallback(estate->es_query_cxt, &query->when_gone);
	return query;
}

/* Step 1: does some column of those take long to look at? */
static bool
looks_at_strings(Relation rel, const List *attnos)
{
	ListCell   *lc;

	foreach(lc, attnos)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), lfirst_int(lc) - 1);
		char		category;
		bool		preferred;

		get_type_category_preferred(att->atttypid, &category, &preferred);
		if (category == TYPCATEGORY_STRING)
			return true;
	}
	return false;
}

/*
 * Step 1: what this scan has in common with others of its query, or NULL: it is not to be noted.
 * quals: all of the scan's, which raise no error and are not volatile; attnos: of the columns
 * that run over vectors; by_row: others are looked at row by row
 */
HgjSeenQuals *
hgj_seen_quals_join(SeqScanState *node, List *quals, const List *attnos, bool by_row)
{
	EState	   *estate = node->ss.ps.state;
	Relation	rel = node->ss.ss_currentRelation;
	SeenQuery  *query;
	HgjSeenQuals *seen;
	MemoryContext old;
	ListCell   *lc;

	if (quals == NIL || hgj_depends_on_parameters((Node *) quals, NULL) ||
		(!by_row && !looks_at_strings(rel, attnos)))
		return NULL;
	query = query_of(estate);
	old = MemoryContextSwitchTo(estate->es_query_cxt);
	quals = copyObject(quals);
	ChangeVarNodes((Node *) quals, ((Scan *) node->ss.ps.plan)->scanrelid, 1, 0);
	foreach(lc, query->scans)
	{
		seen = lfirst(lc);
		if (seen->relid == RelationGetRelid(rel) && equal(seen->quals, quals))
			break;
	}
	if (lc == NULL)
	{
		seen = palloc0(sizeof(HgjSeenQuals));
		seen->relid = RelationGetRelid(rel);
		seen->quals = quals;
		seen->context = estate->es_query_cxt;
		query->scans = lappend(query->scans, seen);
	}
	seen->nscans++;
	MemoryContextSwitchTo(old);
	return seen;
}

/* The slice's page that many behind its first, and how many rows it has in the slice. */
static SeenPage *
page_of(const HgjSeenQuals *seen, const HgjKeptRows *slice, uint32 page, uint32 *nrows)
{
	BlockNumber block = slice->block + page;
	const uint32 *first = slice->first + hgj_run_page(block);

	*nrows = first[1] - first[0];
	return block < seen->npages ? &seen->pages[block] : NULL;
}

/*
 * Step 3: which of the slice's n rows pass, if that is known of all of them: their positions
 * go to `selection`, and their number to *passed.  Returns how many pages they are on; 0: it is
 * not known.
 */
uint32
hgj_seen_quals_read(const HgjSeenQuals *seen, const HgjKeptRows *slice, uint32 n,
					uint32 *selection, uint32 *passed)
{
	uint32		page = 0;
	uint32		nrows;

	*passed = 0;
	if (seen->pages == NULL)
		return 0;
	for (uint32 at = 0; at < n; page++, at += nrows)
	{
		const SeenPage *known = page_of(seen, slice, page, &nrows);

		if (known == NULL || !known->seen)
			return 0;
		for (uint32 i = 0; i < known->nrows; i++)
			selection[(*passed)++] = at + seen->rows[known->at + i];
	}
	return page;
}

/* Step 4: bytes that pages, or rows, may take. */
static Size
most_bytes(void)
{
	return (Size) work_mem * 1024 / PART_OF_MEMORY;
}

/* Memory for the pages, and that for as many rows more; false: there is to be none. */
static bool
reserve(HgjSeenQuals *seen, BlockNumber npages, uint32 more)
{
	Size		rows = (Size) seen->nrows + more;

	if (seen->pages == NULL)
	{
		if (npages < LEAST_PAGES || (Size) npages * sizeof(SeenPage) > most_bytes())
			return false;
		seen->pages = MemoryContextAllocExtended(seen->context, (Size) npages * sizeof(SeenPage),
												 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
		seen->npages = npages;
		seen->room = 1024;
		seen->rows = MemoryContextAlloc(seen->context, seen->room * sizeof(uint16));
	}
	if (rows * sizeof(uint16) > most_bytes())
		return false;
	if (rows > seen->room)
	{
		seen->room = (uint32) Max(rows, (Size) seen->room * 2);
		seen->rows = repalloc_huge(seen->rows, (Size) seen->room * sizeof(uint16));
	}
	return true;
}

/*
 * Step 2: of the slice's n rows, `passed` in `selection`, ascending, have passed.  npages: the
 * table's.
 */
void
hgj_seen_quals_note(HgjSeenQuals *seen, const HgjKeptRows *slice, uint32 n,
					const uint32 *selection, uint32 passed, BlockNumber npages)
{
	uint32		nrows;
	uint32		next = 0;

	if (seen->nscans < 2 || seen->off)
		return;
	if (!reserve(seen, npages, passed))
	{
		seen->off = true;
		return;
	}
	for (uint32 page = 0, at = 0; at < n; page++, at += nrows)
	{
		SeenPage   *known = page_of(seen, slice, page, &nrows);
		uint32		begin = seen->nrows;

		for (; next < passed && selection[next] < at + nrows; next++)
			if (known && !known->seen)
				seen->rows[seen->nrows++] = (uint16) (selection[next] - at);
		if (known && !known->seen)
		{
			known->at = begin;
			known->nrows = (uint16) (seen->nrows - begin);
			known->seen = true;
		}
	}
}
