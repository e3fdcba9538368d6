/*-------------------------------------------------------------------------
 *
 * load_columns.c
 *	  Decodes columns of a table, a run of pages after the other, and has them kept
 *	  (kept/store.c).
 *
 * 1. See where WAL ends, and look at the visibility map, before any page of the run is
 *	  read: both LSNs go with the chunks (kept/valid.c).  If all columns have chunks in
 *	  which every page that is all-visible is valid, the run needs nothing.
 * 2. Take the pages whose bits are set, under share lock, and only if the page says
 *	  itself that it is all-visible.  All its tuples are rows of every snapshot; they
 *	  stay as they are while the page is pinned.
 * 3. Decode the columns (page_columns.c).  A page is left out where a tuple has
 *	  fewer attributes than are wanted: what an attribute that was added later is
 *	  taken to be stands in the catalog, and can be rolled back.  So is one with a value
 *	  out of line, which could not be read any more when the row is gone.
 * 4. What is made of the run is put into the store, column by column.
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
	AttrNumber	natts;			/* the highest of them */
	BufferAccessStrategy strategy;
	bool		(*stop) (void); /* asked before each page; or NULL */
	bool		stopped;
	HgjChunkMaker **makers;
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

/* Has the chunk every page that is all-visible? */
static bool
is_whole(const Loader *loader, const HgjRunLook *look, const HgjChunk *chunk)
{
	for (int w = 0; w < HGJ_RUN_WORDS; w++)
		if (look->visible[w] !=
			hgj_chunk_valid_pages(loader->rel, look, w, chunk, loader->strategy))
			return false;
	return true;
}

/* The same of what is kept of the i-th column. */
static bool
is_column_loaded(const Loader *loader, const HgjRunLook *look, int i)
{
	HgjChunkKey key = hgj_store_key(loader->rel, loader->attnos[i], look->run);
	HgjHeldChunk held;
	volatile bool whole = false;

	if (!hgj_store_hold(&key, &held))
		return false;
	PG_TRY();
	{
		whole = is_whole(loader, look, held.chunk);
	}
	PG_FINALLY();
	{
		hgj_store_release(&held);
	}
	PG_END_TRY();
	return whole;
}

/* Step 1: is what is kept of the run all that could be? */
static bool
is_loaded(const Loader *loader, const HgjRunLook *look)
{
	for (int i = 0; i < loader->n; i++)
		if (!is_column_loaded(loader, look, i))
			return false;
	return true;
}

/*
 * Step 2: the tuples of a page; false if it is not all-visible, or one has fewer
 * attributes than are wanted.
 */
static bool
list_tuples(Loader *loader, Buffer buffer, uint32 *ntuples)
{
	Page		page = BufferGetPage(buffer);
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
		good = HeapTupleHeaderGetNatts(tuple) >= loader->natts;
		loader->tuples[n++] = tuple;
	}
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	*ntuples = n;
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

/* Step 3 for the page in the buffer. */
static void
decode_page(Loader *loader, Buffer buffer, uint32 number)
{
	HgjPageColumns *page = &loader->page;
	uint32		n;

	if (!list_tuples(loader, buffer, &n))
		return;
	hgj_page_columns_begin(page, loader->tuples, n, HGJ_TUPLES_COMPLETE,
						   &loader->prefetch);
	hgj_page_columns_read(page, loader->columns, loader->n);
	for (int i = 0; i < loader->n; i++)
	{
		const HgjVector *values = &page->columns[loader->columns[i]]->buffer.vector;
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(loader->rel),
											  loader->attnos[i] - 1);

		if (att->attlen == -1 && has_external(values, n))
			continue;
		hgj_chunk_add_page(loader->makers[i], number, values, n);
	}
}

/* Steps 1 to 4; returns how many chunks were put into the store. */
static int64
load_run(Loader *loader, uint32 run, BlockNumber nblocks)
{
	XLogRecPtr	decoded_after = hgj_wal_position();
	BlockNumber start = hgj_run_start(run);
	int64		kept = 0;
	HgjRunLook	look;

	hgj_run_look(loader->rel, run, &look);
	if (XLogRecPtrIsInvalid(look.map_lsn) || is_loaded(loader, &look))
		return 0;
	for (int i = 0; i < loader->n; i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(loader->rel),
											  loader->attnos[i] - 1);

		loader->makers[i] = hgj_chunk_begin(att, hgj_decimal_scale(att->atttypid,
																   att->atttypmod));
	}
	for (uint32 p = 0; p < HGJ_RUN_PAGES && start + p < nblocks; p++)
	{
		Buffer		buffer;

		if (!hgj_run_has(look.visible, p))
			continue;
		CHECK_FOR_INTERRUPTS();
		if (loader->stop && loader->stop())
		{
			loader->stopped = true;
			return 0;
		}
		buffer = ReadBufferExtended(loader->rel, MAIN_FORKNUM, start + p,
									RBM_NORMAL, loader->strategy);
		decode_page(loader, buffer, p);
		ReleaseBuffer(buffer);
	}
	for (int i = 0; i < loader->n; i++)
	{
		HgjChunkKey key = hgj_store_key(loader->rel, loader->attnos[i], run);
		HgjChunk   *chunk = hgj_chunk_finish(loader->makers[i]);

		hgj_chunk_begin_validity(chunk, &look, decoded_after);
		kept += hgj_store_put(&key, chunk);
		pfree(chunk);
	}
	return kept;
}

/*
 * Have these columns kept of runs first to end - 1 of the table, of which
 * hgj_load_obstacle() has nothing to say.  Returns how many chunks that made.  stop,
 * unless it is NULL, ends it when it says so.
 */
int64
hgj_load_runs(Relation rel, const AttrNumber *attnos, int n, uint32 first, uint32 end,
			  bool (*stop) (void))
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "hashgraph_join load",
												  ALLOCSET_DEFAULT_SIZES);
	Loader	   *loader = palloc0(sizeof(Loader));
	int64		kept = 0;

	loader->rel = rel;
	loader->n = n;
	loader->attnos = attnos;
	loader->columns = palloc(mul_size(n, sizeof(int)));
	loader->makers = palloc(mul_size(n, sizeof(HgjChunkMaker *)));
	loader->strategy = GetAccessStrategy(BAS_BULKREAD);
	hgj_page_columns_init(&loader->page, RelationGetDescr(rel), MaxHeapTuplesPerPage);
	for (int i = 0; i < n; i++)
		loader->columns[i] = hgj_page_columns_add(&loader->page, attnos[i]);
	loader->natts = loader->page.natts;
	loader->stop = stop;
	for (uint32 run = first; n > 0 && run < end && !loader->stopped &&
		 hgj_run_start(run) < nblocks; run++)
	{
		MemoryContext old = MemoryContextSwitchTo(context);

		kept += load_run(loader, run, nblocks);
		MemoryContextSwitchTo(old);
		MemoryContextReset(context);
	}
	FreeAccessStrategy(loader->strategy);
	MemoryContextDelete(context);
	return kept;
}

/* The same of all of the table. */
int64
hgj_load_columns(Relation rel, const AttrNumber *attnos, int n)
{
	return hgj_load_runs(rel, attnos, n, 0, PG_UINT32_MAX, NULL);
}
