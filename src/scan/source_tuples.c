/*-------------------------------------------------------------------------
 *
 * source_tuples.c
 *	  The source that is always right: ExecProcNode on any child, slots to
 *	  batches.
 *
 * 1. Fetch a slot, deform it up to the last column that is wanted.
 * 2. Write the key words.  A row with a NULL key matches nothing: unless an
 *	  outer join owes it to its parent, it ends here.
 * 3. Copy the wanted columns into the batch's vectors.
 * 4. Stop at the row limit, or when the by-reference values pass a megabyte or
 *	  a part of the memory limit, so that wide rows do not make a batch of
 *	  gigabytes.  The limit is one row where a row that nobody may want could
 *	  raise an error; unless that is one of a key that can be put aside: then the row
 *	  that fails is left for the next batch, and raises its error as the first of that.
 *
 * The replay source does the same over a tuplestore into which the tuples
 * source has put every outer row of a join that needs several passes.
 *
 * Memory: batches belong to the caller.  The tuplestore lives in the query's
 * context and in temporary files of the transaction's resource owner, until
 * hgj_source_drop_rows().  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "expr/demand.h"
#include "miscadmin.h"
#include "scan/source.h"

/* The tuplestore's own memory: beyond it, rows go to a temporary file. */
#define HGJ_STORE_KILOBYTES		1024

static const HgjSourceMethods source_replay;

static TupleTableSlot *
next_child_slot(HgjSource *source)
{
	TupleTableSlot *slot = source->peeked;

	if (slot)
	{
		source->peeked = NULL;
		return slot;
	}
	if (source->at_end)
		return NULL;
	slot = ExecProcNode(source->child);
	if (TupIsNull(slot))
	{
		source->at_end = true;
		return NULL;
	}
	return slot;
}

static TupleTableSlot *
next_stored_slot(HgjSource *source)
{
	if (tuplestore_gettupleslot(source->store, true, false, source->store_slot))
		return source->store_slot;
	return NULL;
}

/*
 * Is there another row?  For the tuples source: it stays where it is until the
 * next fill; the child must not be asked for anything meanwhile.
 */
bool
hgj_source_peek(HgjSource *source)
{
	if (source->peeked == NULL)
		source->peeked = next_child_slot(source);
	return source->peeked != NULL;
}

/* Write the row's key words; false if one of the keys is NULL. */
static bool
write_keys(HgjSource *source, HgjBatch *batch, TupleTableSlot *slot, uint32 row)
{
	for (int k = 0; k < source->nkeys; k++)
	{
		HgjKey	   *key = &source->keys[k];
		Datum		value;
		bool		isnull;

		if (likely(key->expr == NULL))
		{
			value = slot->tts_values[key->attno - 1];
			isnull = slot->tts_isnull[key->attno - 1];
		}
		else
			value = ExecEvalExpr(key->expr, source->econtext, &isnull);
		if (isnull)
			return false;
		hgj_key_words(key, value, source->seed, batch->words, row);
	}
	return true;
}

/*
 * Key expressions refer to custom_scan_tlist: lay this row out in that way, as
 * far as they look.
 */
static void
fill_expr_slot(HgjSource *source, TupleTableSlot *slot)
{
	TupleTableSlot *scan = source->expr_slot;
	int			attno = -1;

	ExecClearTuple(scan);
	while ((attno = bms_next_member(source->expr_attnos, attno)) >= 0)
	{
		scan->tts_values[source->expr_base + attno - 1] =
			slot->tts_values[attno - 1];
		scan->tts_isnull[source->expr_base + attno - 1] =
			slot->tts_isnull[attno - 1];
	}
	ExecStoreVirtualTuple(scan);
	source->econtext->ecxt_scantuple = scan;
}

/* write_keys(), when it may run functions: in a context that is reset by row. */
static bool
write_keys_carefully(HgjSource *source, HgjBatch *batch, TupleTableSlot *slot,
					 uint32 row)
{
	MemoryContext old;
	bool		result;

	ResetExprContext(source->econtext);
	if (source->expr_slot)
		fill_expr_slot(source, slot);
	old = MemoryContextSwitchTo(source->econtext->ecxt_per_tuple_memory);
	result = write_keys(source, batch, slot, row);
	MemoryContextSwitchTo(old);
	return result;
}

/*
 * The same; false if that raises an error which can be put aside.  The row is to be tried
 * again, then.
 */
static bool
try_keys(HgjSource *source, HgjBatch *batch, TupleTableSlot *slot, uint32 row,
		 bool *has_key)
{
	MemoryContext context = CurrentMemoryContext;
	volatile bool failed = false;

	PG_TRY();
	{
		*has_key = write_keys_carefully(source, batch, slot, row);
	}
	PG_CATCH();
	{
		hgj_put_error_aside(context);
		failed = true;
	}
	PG_END_TRY();
	return !failed;
}

static void
copy_columns(HgjSource *source, HgjBatch *batch, TupleTableSlot *slot, uint32 row)
{
	for (int c = 0; c < source->ncols; c++)
	{
		const HgjColumn *column = &source->columns[c];
		Datum		value = slot->tts_values[column->attno - 1];
		bool		isnull = slot->tts_isnull[column->attno - 1];

		if (!column->attbyval && !isnull)
			value = hgj_batch_keep(batch, column, value);
		hgj_vector_put(&batch->vectors[c], row, value, isnull);
	}
}

/* May a row whose keys raise an error be left for the next batch? */
static bool
keys_can_wait(const HgjSource *source)
{
	return source->keys_may_raise && !source->keys_raise_at_once &&
		!source->keep_rows && source->methods != &source_replay;
}

/* Is a row not to be taken before somebody wants it? */
static bool
takes_single_rows(HgjSource *source)
{
	if (!source->careful)
		return false;
	if (source->keys_may_raise && !keys_can_wait(source))
		return true;
	if (source->methods == &source_replay)
		return false;
	if (!source->child_looked_at)
		source->child_may_raise = hgj_rows_may_raise(source->child);
	source->child_looked_at = true;
	return source->child_may_raise;
}

/* Returns how many rows were taken, those that are left out included. */
static inline uint32
fill_batch(HgjSource *source, HgjBatch *batch, uint32 max_rows,
		   TupleTableSlot *(*next_slot) (HgjSource *source))
{
	Size		most_bytes = hgj_batch_value_bytes();
	Size		used_before;
	uint32		taken = 0;
	uint32		n = 0;
	uint32		nsel = 0;
	bool		single = takes_single_rows(source);
	bool		waits = source->careful && !single && keys_can_wait(source);

	hgj_batch_clear(batch);
	used_before = batch->values->used;
	max_rows = single ? 1 : Min(max_rows, batch->capacity);
	while (n < max_rows)
	{
		TupleTableSlot *slot = next_slot(source);
		bool		has_key;

		CHECK_FOR_INTERRUPTS();
		if (slot == NULL)
			break;
		taken++;
		if (source->keep_rows)
			tuplestore_puttupleslot(source->store, slot);
		slot_getsomeattrs(slot, source->last_attno);

		if (!source->reset_econtext)
			has_key = write_keys(source, batch, slot, n);
		else if (!waits || n == 0)
			has_key = write_keys_carefully(source, batch, slot, n);
		else if (!try_keys(source, batch, slot, n, &has_key))
		{
			source->peeked = slot;
			taken--;
			break;
		}
		if (has_key)
			batch->sel[nsel++] = n;
		else if (!source->keep_null_keys)
			continue;

		copy_columns(source, batch, slot, n);
		n++;
		if (batch->values->used - used_before > most_bytes)
			break;
	}
	batch->nrows = n;
	batch->nsel = nsel;
	if (source->reset_econtext)
		ResetExprContext(source->econtext);
	if (single)
		source->rows_singly += taken;
	return taken;
}

static void
fill_from_child(HgjSource *source, HgjBatch *batch, uint32 max_rows)
{
	source->rows_read += fill_batch(source, batch, max_rows, next_child_slot);
}

static void
rewind_child(HgjSource *source)
{
	source->peeked = NULL;
	source->at_end = false;
}

static void
fill_from_store(HgjSource *source, HgjBatch *batch, uint32 max_rows)
{
	(void) fill_batch(source, batch, max_rows, next_stored_slot);
}

static void
rewind_store(HgjSource *source)
{
	tuplestore_rescan(source->store);
}

const HgjSourceMethods hgj_source_tuples = {
	.name = "tuples",
	.fill = fill_from_child,
	.rewind = rewind_child
};

static const HgjSourceMethods source_replay = {
	.name = "tuples",
	.fill = fill_from_store,
	.rewind = rewind_store
};

/*
 * From now on, keep a copy of every row of the child, for later passes.  Call
 * in the query's memory context, before the first row is taken.
 */
void
hgj_source_keep_rows(HgjSource *source, EState *estate)
{
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);

	Assert(source->store == NULL);
	source->store = tuplestore_begin_heap(false, false,
										  Min(work_mem, HGJ_STORE_KILOBYTES));
	source->keep_rows = true;
	if (source->store_slot == NULL)
		source->store_slot =
			ExecInitExtraTupleSlot(estate, ExecGetResultType(source->child),
								   &TTSOpsMinimalTuple);
	MemoryContextSwitchTo(old);
}

/* Take rows from the copy, from the first one on. */
void
hgj_source_replay_rows(HgjSource *source)
{
	source->keep_rows = false;
	source->methods = &source_replay;
	source->methods->rewind(source);
}

/* Back to the child; the copy is gone. */
void
hgj_source_drop_rows(HgjSource *source)
{
	if (source->methods == &source_replay)
		source->methods = &hgj_source_tuples;
	source->keep_rows = false;
	if (source->store)
	{
		ExecClearTuple(source->store_slot);
		tuplestore_end(source->store);
		source->store = NULL;
	}
}
