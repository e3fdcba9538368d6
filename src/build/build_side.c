/*-------------------------------------------------------------------------
 *
 * build_side.c
 *	  The build side of a join, apart from the node that has made it: the engine's
 *	  table, and the rows behind its row ids.
 *
 * 1. A node makes an empty one, has columns stored as codes if anybody above wants
 *	  that, lays the rows out, and fills it (join/build.c).
 * 2. Whoever reads it holds a reference: the node, which probes it, and a pipeline
 *	  of a device that has taken its table over.  Nothing in it points into a node.
 *	  A probe is a cursor of one of them, to be gone before its reference is.
 * 3. A node that is the only one to hold it may empty it, for the next pass or
 *	  rescan; codes of dictionaries stay what they are.
 * 4. With the last reference it goes.
 *
 * Memory: the engine's, malloc'd chunks of the row store, and a context of its own
 * below the top one, since the last reference, and no node, decides how long it
 * lives.  So everybody who holds one lets it go from a reset callback of the
 * query's context when that aborts.  What is there, but for the engine's, counts in
 * the account.  Files belong to the resource owner; the node closes those that are
 * left before it lets the build side go, but not when the query aborts.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "build/build_side.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* An empty one, held by the caller. */
HgjBuildSide *
hgj_build_side_create(void)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "HashGraphJoin build side",
												  ALLOCSET_SMALL_SIZES);
	HgjBuildSide *side = MemoryContextAllocZero(context, sizeof(HgjBuildSide));

	MemoryContextSetParent(context, TopMemoryContext);
	side->context = context;
	side->references = 1;
	return side;
}

/* One more holder. */
HgjBuildSide *
hgj_build_side_hold(HgjBuildSide *side)
{
	side->references++;
	return side;
}

/* One holder less.  May be called while the query aborts. */
void
hgj_build_side_release(HgjBuildSide *side)
{
	Assert(side->references > 0);
	if (--side->references > 0)
		return;
	side->references = 1;
	hgj_build_side_free(side);
	MemoryContextDelete(side->context);
}

/*
 * Lay the rows out, once it is known which columns are codes.  With `share_records`
 * nobody asks which of several equal rows it was.  `shared`: several processes may fill
 * it.
 */
void
hgj_build_side_lay_out(HgjBuildSide *side, const HgjColumn *columns, int ncols,
					   bool shared, double expected_rows, bool share_records)
{
	hgj_row_store_init(&side->rows, side->context, columns, ncols, shared,
					   expected_rows, &side->account);
	if (share_records)
		hgj_share_records_init(&side->rows, get_hash_memory_limit());
}

/* The table goes, and its rows; values that were read ahead stay. */
void
hgj_build_side_clear(HgjBuildSide *side)
{
	Assert(side->references == 1);
	if (side->table)
		side->engine->table_destroy(side->table);
	side->table = NULL;
	hgj_row_store_clear(&side->rows);
}

/*
 * The same, and all memory but the dictionaries' and that of files, which stay.
 * Safe at any time, and again.
 */
void
hgj_build_side_free(HgjBuildSide *side)
{
	hgj_build_side_clear(side);
	hgj_row_store_free(&side->rows);
	if (side->spilled)
		hgj_spill_filter_free(&side->spilled->filter);
}

/* Memory does not hold it: get ready for files, once. */
void
hgj_build_side_spill(HgjBuildSide *side, const HgjColumn *columns, int ncols,
					 uint32 nwords)
{
	Size		bytes = mul_size(ncols, sizeof(HgjColumn));
	HgjSpilledBuild *spilled = MemoryContextAllocZero(side->context,
													  sizeof(HgjSpilledBuild));

	Assert(side->spilled == NULL);
	spilled->room.held.whole = &side->account;
	spilled->start = pg_prng_uint64(&pg_global_prng_state);
	spilled->mul = pg_prng_uint64(&pg_global_prng_state) | 1;
	spilled->end_mul = pg_prng_uint64(&pg_global_prng_state) | 1;
	spilled->columns = MemoryContextAlloc(side->context, Max(bytes, 1));
	memcpy(spilled->columns, columns, bytes);
	hgj_spill_layout(&spilled->layout, side->context, spilled->columns, ncols,
					 nwords);
	side->spilled = spilled;
}

/* The split at hand goes; its partitions are those' who have units of them. */
void
hgj_build_side_drop_split(HgjBuildSide *side)
{
	hgj_spill_filter_free(&side->spilled->filter);
	hgj_spill_drop_runs(&side->spilled->runs);
}

/* What was kept for rescans is not wanted. */
void
hgj_build_side_drop_kept(HgjBuildSide *side)
{
	hgj_spill_drop_runs(&side->spilled->kept.rows);
	hgj_spill_drop_runs(&side->spilled->kept.inner_runs);
}

/*
 * A dictionary for a column of values attlen long, before the rows are laid out.
 * Each gets the same share of the memory that codes may take.  `shared`: as in
 * hgj_build_side_lay_out().
 */
HgjDictionary *
hgj_build_side_encode(HgjBuildSide *side, Node *expr, Oid equality, int16 attlen,
					  bool shared)
{
	Size		most = get_hash_memory_limit() / HGJ_DICTIONARY_SHARE;
	int			n = side->ndictionaries + 1;
	HgjDictionary *dictionary = hgj_dictionary_create(side->context, expr, equality,
													  attlen, &side->account);

	side->dictionaries = side->dictionaries ?
		repalloc(side->dictionaries, n * sizeof(HgjDictionary *)) :
		MemoryContextAlloc(side->context, n * sizeof(HgjDictionary *));
	side->dictionaries[n - 1] = dictionary;
	side->ndictionaries = n;
	for (int i = 0; i < n; i++)
		hgj_dictionary_limit(side->dictionaries[i],
							 (shared ? Min(most, HGJ_SHARED_DICTIONARIES) : most) / n);
	return dictionary;
}

/* Has a dictionary become full? */
bool
hgj_build_side_codes_are_full(const HgjBuildSide *side)
{
	for (int i = 0; i < side->ndictionaries; i++)
		if (hgj_dictionary_is_full(side->dictionaries[i]))
			return true;
	return false;
}

/* Bytes of all dictionaries. */
Size
hgj_build_side_code_bytes(const HgjBuildSide *side)
{
	Size		bytes = 0;

	for (int i = 0; i < side->ndictionaries; i++)
		bytes += hgj_dictionary_bytes(side->dictionaries[i]);
	return bytes;
}
