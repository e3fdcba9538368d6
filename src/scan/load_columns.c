/*-------------------------------------------------------------------------
 *
 * load_columns.c
 *	  Decodes columns of a table, a run of pages after the other, and has them kept
 *	  (kept/store.c).
 *
 * 1. See where WAL ends, and look at the visibility map, before any page of the run is
 *	  read: both LSNs go with the chunks (kept/valid.c).  A column is left alone if it
 *	  has a chunk in which every page that is all-visible is valid, or is known not to
 *	  be fit for it.
 * 2. Take the pages whose bits are set, under share lock, and only if the page says
 *	  itself that it is all-visible.  All its tuples are rows of every snapshot; they
 *	  stay as they are while the page is pinned.
 * 3. Decode the columns (page_columns.c).  A page is left out of a column where a tuple
 *	  does not have the attribute: what one that was added later is taken to be stands
 *	  in the catalog, and can be rolled back.  So is a page with a value out of line,
 *	  which could not be read any more when the row is gone.  The chunk says which
 *	  pages were left out, so that nobody tries them again before they change.
 * 4. What is made of the run is put into the store, column by column.  Of a chunk that
 *	  is too large for the store there is only one that says that for all pages.  Chunks
 *	  know how many pages they lack for which reason (load_report.c).
 * 5. Many columns of a run are loaded some at a time, so that what is made of them
 *	  together stays within maintenance_work_mem, approximately.
 *
 * Memory: a context for each run.  Pins: one page at a time.  Locks: that page's
 * content lock, in share mode, while its tuples are listed.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "catalog/catalog.h"
#include "expr/program.h"
#include "kept/store.h"
#include "miscadmin.h"
#include "scan/load_columns.h"
#include "scan/page_columns.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

typedef struct Loader
{
	Relation	rel;
	int			n;
	const AttrNumber *attnos;
	int		   *columns;		/* their numbers in `page` */
	HgjPageColumns page;
	BufferAccessStrategy strategy;
	bool		(*stop) (void); /* asked before each page; or NULL */
	bool		stopped;
	int			ntodo;			/* of these, the run at hand needs: */
	int		   *todo;			/* their places in attnos and columns, */
	int		   *todo_columns;	/* their numbers in `page`, */
	HgjChunkMaker **makers;		/* and what is made of them */
	int			at_once;		/* so many of them */
	const HgjRoom *room;		/* chunks that make room for the new ones */
	HgjLoadCounts counts;
	HeapTupleHeader tuples[MaxHeapTuplesPerPage];
	HgjPrefetch prefetch;		/* nothing */
} Loader;

/* Why no columns of this table are kept; or NULL. */
const char *
hgj_load_obstacle(Relation rel)
{
	if (rel->rd_rel->relkind != RELKIND_RELATION &&
		rel->rd_rel->relkind != RELKIND_MATVIEW)
		return "it is not a table";
	if (rel->rd_tableam != GetHeapamTableAmRoutine())
		return "its access method is not heap";
	if (rel->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
		return "changes of it are not WAL-logged";
	if (RelationGetRelid(rel) < FirstNormalObjectId || IsCatalogRelation(rel))
		return "it is a system catalog";
	if (HGJ_IS_NEW_FILE(rel) || !RelationNeedsWAL(rel))
		return "this transaction has created or rewritten it";
	return NULL;
}

/* Is there nothing to be had for the chunk of all the pages that are all-visible? */
static bool
is_whole(const Loader *loader, const HgjRunLook *look, const HgjChunk *chunk)
{
	for (int w = 0; w < HGJ_RUN_WORDS; w++)
		if (look->visible[w] !=
			hgj_chunk_same_pages(loader->rel, look, w, chunk, loader->strategy))
			return false;
	return true;
}

/* The same of what is kept of the i-th column; whether it was used is counted. */
static bool
is_column_loaded(Loader *loader, const HgjRunLook *look, int i)
{
	HgjChunkKey key = hgj_store_key(loader->rel, loader->attnos[i], look->run);
	HgjHeldChunk held;
	volatile bool whole = false;

	if (!hgj_store_hold(&key, NULL, 1, &held))
		return false;
	PG_TRY();
	{
		whole = is_whole(loader, look, held.chunk);
		if (!whole && !hgj_store_was_used(&held))
			loader->counts.in_vain++;
	}
	PG_FINALLY();
	{
		hgj_store_release(&held);
	}
	PG_END_TRY();
	return whole;
}

static const FormData_pg_attribute *
attribute_at(const Loader *loader, int i)
{
	return TupleDescAttr(RelationGetDescr(loader->rel), loader->attnos[i] - 1);
}

/* Step 1: which columns need the run? */
static void
find_todo(Loader *loader, const HgjRunLook *look)
{
	uint64		visible = 0;

	loader->ntodo = 0;
	for (int w = 0; w < HGJ_RUN_WORDS; w++)
		visible |= look->visible[w];
	for (int i = 0; i < loader->n && visible != 0; i++)
		if (!is_column_loaded(loader, look, i))
		{
			loader->todo_columns[loader->ntodo] = loader->columns[i];
			loader->todo[loader->ntodo++] = i;
		}
}

/*
 * Step 2: the tuples of a page, and how many attributes each has at least; false if it
 * is not all-visible.
 */
static bool
list_tuples(Loader *loader, Buffer buffer, uint32 *ntuples, AttrNumber *natts)
{
	Page		page = BufferGetPage(buffer);
	AttrNumber	least = MaxHeapAttributeNumber;
	bool		good;
	uint32		n = 0;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	good = PageIsAllVisible(page) &&
		PageGetMaxOffsetNumber(page) <= MaxHeapTuplesPerPage;
	for (OffsetNumber offset = FirstOffsetNumber;
		 good && offset <= PageGetMaxOffsetNumber(page); offset++)
	{
		ItemId		item = PageGetItemId(page, offset);
		HeapTupleHeader tuple;

		if (!ItemIdIsNormal(item))
			continue;
		tuple = (HeapTupleHeader) PageGetItem(page, item);
		least = Min(least, HeapTupleHeaderGetNatts(tuple));
		loader->tuples[n++] = tuple;
	}
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	*ntuples = n;
	*natts = least;
	return good;
}

/* Step 3: is one of the column's values out of line? */
static bool
has_external(const HgjVector *values, uint32 n)
{
	for (uint32 i = 0; i < n; i++)
		if (!hgj_vector_is_null(values, i) &&
			VARATT_IS_EXTERNAL(((char **) values->values)[i]))
			return true;
	return false;
}

/* Of a run, n of the columns that need it, from the first-th on. */
typedef struct Part
{
	const HgjRunLook *look;
	XLogRecPtr	decoded_after;
	int			first;
	int			n;
} Part;

/* Step 3 for the page in the buffer. */
static void
decode_page(Loader *loader, const Part *part, Buffer buffer, uint32 number)
{
	HgjPageColumns *page = &loader->page;
	const int  *columns = loader->todo_columns + part->first;
	AttrNumber	natts;
	uint32		n;

	if (!list_tuples(loader, buffer, &n, &natts))
		return;
	hgj_page_columns_begin(page, loader->tuples, n,
						   natts < page->natts ? HGJ_TUPLES_ANY : HGJ_TUPLES_COMPLETE,
						   &loader->prefetch);
	hgj_page_columns_read(page, columns, part->n);
	for (int t = 0; t < part->n; t++)
	{
		const HgjVector *values = &page->columns[columns[t]]->buffer.vector;
		const FormData_pg_attribute *att =
			attribute_at(loader, loader->todo[part->first + t]);

		if (att->attnum > natts)
			loader->makers[t]->left_out[HGJ_LEFT_OUT_LACKING]++;
		else if (att->attlen == -1 && has_external(values, n))
			loader->makers[t]->left_out[HGJ_LEFT_OUT_EXTERNAL]++;
		else
			hgj_chunk_add_page(loader->makers[t], number, values, n);
	}
}

/* Steps 2 and 3 for the pages of the run; false: it is to stop. */
static bool
decode_pages(Loader *loader, const Part *part)
{
	const HgjRunLook *look = part->look;
	BlockNumber start = hgj_run_start(look->run);
	BlockNumber nblocks = RelationGetNumberOfBlocks(loader->rel);

	for (uint32 p = 0; p < HGJ_RUN_PAGES && start + p < nblocks; p++)
	{
		Buffer		buffer;

		if (!hgj_run_has(look->visible, p))
			continue;
		CHECK_FOR_INTERRUPTS();
		if (loader->stop && loader->stop())
			return false;
		buffer = ReadBufferExtended(loader->rel, MAIN_FORKNUM, start + p,
									RBM_NORMAL, loader->strategy);
		decode_page(loader, part, buffer, p);
		ReleaseBuffer(buffer);
	}
	return true;
}

/* Step 4 for the t-th column of the part. */
static void
put_chunk(Loader *loader, const Part *part, int t)
{
	int			i = loader->todo[part->first + t];
	HgjChunkKey key = hgj_store_key(loader->rel, loader->attnos[i], part->look->run);
	HgjChunk   *chunk = hgj_chunk_finish(loader->makers[t]);

	if (chunk->bytes > hgj_store_most_bytes())
	{
		HgjChunk   *large = chunk;

		chunk = hgj_chunk_without_pages(attribute_at(loader, i), large);
		pfree(large);
	}
	hgj_chunk_begin_validity(chunk, part->look, part->decoded_after);
	if (hgj_store_put(&key, chunk, loader->room))
		loader->counts.chunks++;
	else
		loader->counts.full = true;
	/* who fills free room has filled it */
	if (loader->counts.full && !loader->room->may_evict)
		loader->stopped = true;
	pfree(chunk);
}

/* Steps 2 to 4. */
static void
load_part(Loader *loader, const Part *part)
{
	for (int t = 0; t < part->n; t++)
	{
		const FormData_pg_attribute *att =
			attribute_at(loader, loader->todo[part->first + t]);

		loader->makers[t] = hgj_chunk_begin(att, hgj_decimal_scale(att->atttypid,
																   att->atttypmod));
	}
	loader->stopped = !decode_pages(loader, part);
	for (int t = 0; t < part->n && !loader->stopped; t++)
		put_chunk(loader, part, t);
}

/* Steps 1 to 5. */
static void
load_run(Loader *loader, uint32 run)
{
	XLogRecPtr	decoded_after = hgj_wal_position();
	HgjRunLook	look;

	hgj_run_look(loader->rel, run, &look);
	find_todo(loader, &look);
	for (int first = 0; first < loader->ntodo && !loader->stopped;
		 first += loader->at_once)
	{
		Part		part = {&look, decoded_after, first,
		Min(loader->at_once, loader->ntodo - first)};

		load_part(loader, &part);
	}
}

/* What a chunk's maker has of a row, at most, if the value passes by value. */
#define BYTES_PER_ROW	(2 * sizeof(int64) + sizeof(bool))

/* Step 5: columns at once, as many rows as the table's pages have on average. */
static int
columns_at_once(Relation rel)
{
	double		rows = MaxHeapTuplesPerPage;

	if (rel->rd_rel->relpages > 0 && rel->rd_rel->reltuples > 0)
		rows = Min(rows, rel->rd_rel->reltuples / rel->rd_rel->relpages);
	return (int) Max(maintenance_work_mem * 1024.0 /
					 (HGJ_RUN_PAGES * rows * BYTES_PER_ROW), 1);
}

/*
 * Have these columns kept of runs first to end - 1 of the table, of which
 * hgj_load_obstacle() has nothing to say.  room says which chunks may make room for
 * theirs; if none may, they fill free room only, and it ends when there is none.  stop,
 * unless it is NULL, ends it when it says so.
 */
HgjLoadCounts
hgj_load_runs(Relation rel, const AttrNumber *attnos, int n, uint32 first, uint32 end,
			  const HgjRoom *room, bool (*stop) (void))
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "hashgraph_join load",
												  ALLOCSET_DEFAULT_SIZES);
	Loader	   *loader = palloc0(sizeof(Loader));

	loader->rel = rel;
	loader->n = n;
	loader->attnos = attnos;
	loader->columns = palloc(mul_size(n, sizeof(int)));
	loader->todo = palloc(mul_size(n, sizeof(int)));
	loader->todo_columns = palloc(mul_size(n, sizeof(int)));
	loader->makers = palloc(mul_size(n, sizeof(HgjChunkMaker *)));
	loader->strategy = GetAccessStrategy(BAS_BULKREAD);
	hgj_page_columns_init(&loader->page, RelationGetDescr(rel), MaxHeapTuplesPerPage);
	for (int i = 0; i < n; i++)
		loader->columns[i] = hgj_page_columns_add(&loader->page, attnos[i]);
	loader->at_once = columns_at_once(rel);
	loader->room = room;
	loader->stop = stop;
	for (uint32 run = first; n > 0 && run < end && !loader->stopped &&
		 hgj_run_start(run) < nblocks; run++)
	{
		MemoryContext old = MemoryContextSwitchTo(context);

		load_run(loader, run);
		MemoryContextSwitchTo(old);
		MemoryContextReset(context);
	}
	FreeAccessStrategy(loader->strategy);
	MemoryContextDelete(context);
	return loader->counts;
}

/* The same of all of the table. */
HgjLoadCounts
hgj_load_columns(Relation rel, const AttrNumber *attnos, int n, bool may_evict)
{
	HgjRoom		room = {may_evict, hgj_store_last_id()};

	return hgj_load_runs(rel, attnos, n, 0, PG_UINT32_MAX, &room, NULL);
}
