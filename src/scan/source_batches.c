/*-------------------------------------------------------------------------
 *
 * source_batches.c
 *	  The source whose child returns batches (batch_node.h), never slots, so that a
 *	  chain of joins (a star, a snowflake) and the groups of a subquery stay vectorised.
 *
 * 1. Ask the child for its next batch.
 * 2. Outer side: borrow its vectors, and its selection of live rows, as they
 *	  are.  Build side: copy the live rows densely, by-reference values into the
 *	  row store's arena, because the child takes its batch back.
 * 3. Write the key words of the live rows.  One with a NULL key is left out of
 *	  the selection.
 *
 * Memory: what is borrowed belongs to the child until this source is filled
 * again; the rest is the batch's.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "scan/batch_node.h"
#include "scan/source.h"
#include "utils/memutils.h"

/* Take over a child that returns batches.  All keys are plain columns here (setup.c). */
bool
hgj_source_use_batches(HgjSource *source)
{
	HgjReading *reading;
	Bitmapset  *wanted = NULL;

	for (int c = 0; c < source->ncols; c++)
		wanted = bms_add_member(wanted, source->columns[c].attno);
	for (int k = 0; k < source->nkeys; k++)
		wanted = bms_add_member(wanted, source->keys[k].attno);
	reading = palloc(sizeof(HgjReading));
	*reading = hgj_read_node(source->child, wanted);
	if (reading->handle == NULL)
	{
		source->reason = reading->kind ? HGJ_SOURCE_COMPUTED : HGJ_SOURCE_OTHER_CHILD;
		return false;
	}
	source->private_state = reading;
	source->methods = &hgj_source_batches;
	source->reason = HGJ_SOURCE_FASTEST;
	return true;
}

/* Do words come from values that can be looked at even where no row is? */
static bool
keys_pass_by_value(const HgjSource *source)
{
	for (int k = 0; k < source->nkeys; k++)
		if (source->keys[k].kind >= HGJ_KEY_BYTES6)
			return false;
	return true;
}

/*
 * Step 3 in the simple case: words for all positions, whether they hold a row
 * or not, and the live rows without a NULL key.
 */
static void
select_rows_at_once(HgjSource *source, HgjBatch *batch, const HgjBatch *from)
{
	const HgjKeyWords to = {batch->words, 0, source->seed,
	source->econtext->ecxt_per_tuple_memory};
	uint32		nlive = hgj_batch_nlive(from);
	bool		nulls = false;
	uint32		nsel = 0;

	for (int k = 0; k < source->nkeys; k++)
	{
		const HgjVector *vector = &from->vectors[source->keys[k].attno - 1];

		nulls |= vector->has_nulls;
		hgj_key_words_vector(&source->keys[k], vector, 0, from->nrows, &to);
	}
	if (!nulls && from->live)
	{
		memcpy(batch->sel, from->live, nlive * sizeof(uint32));
		batch->nsel = nlive;
		return;
	}
	for (uint32 i = 0; i < nlive; i++)
	{
		uint32		row = hgj_batch_live_row(from, i);
		bool		null = false;

		for (int k = 0; k < source->nkeys && nulls; k++)
			null |= hgj_vector_is_null(&from->vectors[source->keys[k].attno - 1],
									   row);
		batch->sel[nsel] = row;
		nsel += !null;
	}
	batch->nsel = nsel;
}

/* Write the key words of one row; false if one of the keys is NULL. */
static inline bool
write_keys(HgjSource *source, HgjBatch *batch, const HgjBatch *from,
		   uint32 from_row, uint32 row)
{
	for (int k = 0; k < source->nkeys; k++)
	{
		HgjKey	   *key = &source->keys[k];
		const HgjVector *vector = &from->vectors[key->attno - 1];

		if (hgj_vector_is_null(vector, from_row))
			return false;
		hgj_key_words(key, hgj_vector_load(vector, from_row), source->seed,
					  batch->words, row);
	}
	return true;
}

/* Step 3: rows whose keys are not NULL, into batch->sel. */
static void
select_rows(HgjSource *source, HgjBatch *batch, const HgjBatch *from)
{
	uint32		nlive = hgj_batch_nlive(from);
	uint32		nsel = 0;
	bool		dense = batch->live == NULL;
	MemoryContext old = CurrentMemoryContext;

	if (source->nkeys == 0)
		return;					/* nobody looks at batch->sel */
	if ((from->live == NULL || !dense) && keys_pass_by_value(source))
	{
		select_rows_at_once(source, batch, from);
		return;
	}
	if (source->reset_econtext)
		MemoryContextSwitchTo(source->econtext->ecxt_per_tuple_memory);
	for (uint32 i = 0; i < nlive; i++)
	{
		uint32		from_row = hgj_batch_live_row(from, i);
		uint32		row = dense ? i : from_row;

		if (source->reset_econtext)
		{
			CHECK_FOR_INTERRUPTS();
			MemoryContextReset(source->econtext->ecxt_per_tuple_memory);
		}
		batch->sel[nsel] = row;
		nsel += write_keys(source, batch, from, from_row, row);
	}
	MemoryContextSwitchTo(old);
	batch->nsel = nsel;
}

/* Step 2, outer side; the selection is empty. */
void
hgj_source_borrow(const HgjSource *source, HgjBatch *batch, const HgjBatch *from)
{
	hgj_batch_clear(batch);
	hgj_batch_borrow(batch, true);
	hgj_batch_reserve(batch, from->nrows);
	batch->nrows = from->nrows;
	batch->live = from->live;
	batch->nlive = from->nlive;
	for (int c = 0; c < source->ncols; c++)
		batch->vectors[c] = from->vectors[source->columns[c].attno - 1];
}

/* Let the batch keep by-reference values that it will outlive. */
static void
keep_values(HgjBatch *batch, const HgjColumn *column, const HgjVector *vector,
			const uint32 *live, HgjVector *into, uint32 n)
{
	for (uint32 i = 0; i < n; i++)
	{
		uint32		row = live ? live[i] : i;

		CHECK_FOR_INTERRUPTS();
		if (hgj_vector_is_null(vector, row))
			hgj_vector_set_null(into, i);
		else
			hgj_store((char *) into->values + (Size) i * column->width,
					  column->width,
					  hgj_batch_keep(batch, column,
									 ((const Datum *) vector->values)[row]));
	}
}

static void
copy_columns(HgjSource *source, HgjBatch *batch, const HgjBatch *from)
{
	uint32		nlive = hgj_batch_nlive(from);

	batch->nrows = nlive;
	for (int c = 0; c < source->ncols; c++)
	{
		const HgjColumn *column = &source->columns[c];
		const HgjVector *vector = &from->vectors[column->attno - 1];
		HgjVector  *into = &batch->vectors[c];

		if (column->attbyval)
			hgj_vector_gather(into, 0, vector, from->live, nlive);
		else
			keep_values(batch, column, vector, from->live, into, nlive);
	}
}

static void
fill_from_node(HgjSource *source, HgjBatch *batch, uint32 max_rows)
{
	const HgjReading *reading = source->private_state;
	const HgjBatchDemand demand = {source->careful, source->careful && source->keys_may_raise,
	max_rows};
	bool		keeps = batch->values != &batch->own_values;
	HgjBatch   *from;

	hgj_batch_clear(batch);
	if (source->at_end)
		return;
	from = reading->kind->next(reading->handle, &demand);
	if (from == NULL)
	{
		source->at_end = true;
		return;
	}
	source->rows_read += hgj_batch_nlive(from);
	if (keeps)
	{
		hgj_batch_borrow(batch, false);
		hgj_batch_reserve(batch, from->nrows);
		copy_columns(source, batch, from);
	}
	else
		hgj_source_borrow(source, batch, from);
	select_rows(source, batch, from);
}

static void
rewind_node(HgjSource *source)
{
	source->at_end = false;
}

static void
give_way(HgjSource *source)
{
	const HgjReading *reading = source->private_state;

	reading->kind->use_slots(reading->handle);
}

const HgjSourceMethods hgj_source_batches = {
	.name = "batches",
	.fill = fill_from_node,
	.rewind = rewind_node,
	.give_way = give_way
};
