/*-------------------------------------------------------------------------
 *
 * page_output.c
 *	  From the rows that are left of a page to a batch: steps 3 to 6 of
 *	  source_pages.c, whose memory all this is.
 *
 * No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "scan/page_source.h"
#include "utils/rel.h"

/* By-reference values of fewer rows of a page than this are copied. */
#define HGJ_PIN_ROWS		8

/* Fewer rows than this of chunks are copied. */
#define HGJ_POINT_ROWS		1024

/* What the child's output column is a copy of, if it is. */
Var *
hgj_page_child_var(const HgjSource *source, AttrNumber attno)
{
	Scan	   *scan = (Scan *) source->child->plan;
	TargetEntry *tle = list_nth_node(TargetEntry, scan->plan.targetlist,
									 attno - 1);
	Var		   *var = (Var *) tle->expr;

	return IsA(var, Var) && var->varno == scan->scanrelid ? var : NULL;
}

/* The table's number of a wanted column. */
AttrNumber
hgj_page_column_attno(const HgjSource *source, int c)
{
	AttrNumber	attno = source->columns[c].attno;

	return source->of_table ? attno : hgj_page_child_var(source, attno)->varattno;
}

/* One more that the source returns. */
static int
add_output(HgjPageSource *ps, AttrNumber attno)
{
	int			c = hgj_page_columns_add(&ps->columns, attno);

	for (int i = 0; i < ps->noutput; i++)
		if (ps->output[i] == c)
			return c;
	ps->output[ps->noutput++] = c;
	return c;
}

/* Which output columns are there, and where do wanted ones and keys lie? */
void
hgj_page_output_init(HgjSource *source, HgjPageSource *ps)
{
	int			ncols = source->ncols;
	AttrNumber *key_attnos = palloc(mul_size(source->nkeys, sizeof(AttrNumber)));

	ps->selection = palloc(mul_size(ps->columns.most_rows, sizeof(uint32)));
	ps->attnos = palloc(mul_size(Max(ncols, 1), sizeof(AttrNumber)));
	ps->wanted = palloc(mul_size(Max(ncols, 1), sizeof(int)));
	ps->keys = palloc(mul_size(source->nkeys, sizeof(int)));
	ps->output = palloc(mul_size(ncols + source->nkeys, sizeof(int)));
	for (int c = 0; c < ncols; c++)
	{
		ps->attnos[c] = hgj_page_column_attno(source, c);
		ps->wanted[c] = -1;
		if (ps->attnos[c] == SelfItemPointerAttributeNumber)
			ps->tid_wanted = true;
		if (ps->attnos[c] <= 0)
			continue;
		ps->wanted[c] = add_output(ps, ps->attnos[c]);
		if (!source->columns[c].attbyval)
			ps->by_reference = true;
	}
	for (int k = 0; k < source->nkeys; k++)
	{
		key_attnos[k] = hgj_page_child_var(source, source->keys[k].attno)->varattno;
		ps->keys[k] = add_output(ps, key_attnos[k]);
	}
	hgj_page_filters_init(&ps->filters, &ps->columns, &ps->quals, source, key_attnos);
	pfree(key_attnos);
}

/* Move value from[i] to i, counted from the target's first; from ascends. */
static void
close_gaps(const HgjPageTarget *target, const uint32 *from, uint32 n,
		   uint32 before)
{
	HgjVector  *vector = target->vector;
	uint8		width = vector->width;
	char	   *values = (char *) vector->values + (Size) target->first * width;

	hgj_values_gather(width, values, from, n, values);
	if (!vector->has_nulls)
		return;
	for (uint32 i = 0; i < before; i++)
	{
		bool		null = i < n &&
			hgj_vector_is_null(vector, target->first + from[i]);

		if (null)
			hgj_vector_set_null(vector, target->first + i);
		else
			hgj_vector_set_valid(vector, target->first + i);
	}
}

/* Rows selection[0 .. left) of the last n stay, the others go. */
static void
drop_rows(HgjPageSource *ps, uint32 left, uint32 n)
{
	for (int i = 0; i < ps->noutput; i++)
		close_gaps(&ps->targets[ps->output[i]], ps->selection, left, n);
}

/*
 * Step 4 of source_pages.c for the n rows that lie at the end of the batch, not yet
 * counted: fill batch->sel, and drop rows with NULL keys if nobody wants them.
 * Returns how many rows are left.
 */
static uint32
select_rows(HgjSource *source, HgjBatch *batch, uint32 n)
{
	HgjPageSource *ps = source->private_state;
	uint32	   *sel = batch->sel + batch->nsel;
	uint32	   *selection = ps->selection;
	uint32		left = 0;
	bool		nulls = false;

	if (source->nkeys == 0)
		return n;				/* nobody looks at batch->sel */
	for (int k = 0; k < source->nkeys; k++)
		nulls |= ps->targets[ps->keys[k]].vector->has_nulls;
	if (!nulls)
	{
		for (uint32 i = 0; i < n; i++)
			sel[i] = batch->nrows + i;
		batch->nsel += n;
		return n;
	}
	for (uint32 i = 0; i < n; i++)
	{
		bool		null = false;

		for (int k = 0; k < source->nkeys; k++)
		{
			const HgjPageTarget *target = &ps->targets[ps->keys[k]];

			null |= hgj_vector_is_null(target->vector, target->first + i);
		}
		selection[left] = i;
		sel[left] = batch->nrows + (source->keep_null_keys ? i : left);
		left += null ? 0 : 1;
	}
	batch->nsel += left;
	if (source->keep_null_keys || left == n)
		return n;
	drop_rows(ps, left, n);
	return left;
}

/*
 * System columns of the n rows that lie at the end of the batch, those that
 * find_obstacle() lets by.  from: their tuples, counted from the next one
 * (NULL: all in a row).
 */
static void
read_system_column(HgjPageSource *ps, HgjBatch *batch, const HgjColumn *column,
				   int c, const uint32 *from, uint32 n)
{
	HgjHeapPages *pages = &ps->pages;
	void	   *values = batch->vectors[c].values;

	for (uint32 i = 0; i < n; i++)
	{
		uint32		row = batch->nrows + i;
		uint32		tuple = hgj_page_row(&ps->columns,
										 ps->next_row + (from ? from[i] : i));

		if (ps->attnos[c] == TableOidAttributeNumber)
			((Oid *) values)[row] = RelationGetRelid(pages->rel);
		else
		{
			ItemPointerData tid;
			Datum		kept;

			ItemPointerSet(&tid, pages->block, pages->offsets[tuple]);
			kept = hgj_batch_keep(batch, column, PointerGetDatum(&tid));
			hgj_store((char *) values + (Size) row * column->width,
					  column->width, kept);
		}
	}
}

/* Codes of the dictionary for n values that aim() has sent somewhere. */
static void
encode_values(HgjBatch *batch, int c, HgjDictionary *dictionary,
			  const HgjPageTarget *from, uint32 n)
{
	const HgjVector *values = from->vector;
	HgjVector  *into = &batch->vectors[c];
	uint32		first = batch->nrows;

	for (uint32 i = 0; i < n; i++)
		if (hgj_vector_is_null(values, from->first + i))
			hgj_vector_set_null(into, first + i);
		else
			((Datum *) into->values)[first + i] =
				hgj_dictionary_code(dictionary,
									((Datum *) values->values)[from->first + i],
									batch->values);
}

/*
 * The same, of numbers of values of a chunk: each is looked up once while the scan is in
 * the run.
 */
static void
encode_numbers(HgjBatch *batch, int c, HgjDictionary *dictionary,
			   const HgjPageSource *ps, uint32 n)
{
	int			column = ps->wanted[c];
	const HgjPageTarget *from = &ps->targets[column];
	const HgjChunk *chunk = ps->columns.kept->chunks[column];
	uint32	   *codes = hgj_kept_codes(ps->pages.kept_columns, column);
	const uint64 *numbers = (const uint64 *) from->vector->values + from->first;
	HgjVector  *into = &batch->vectors[c];
	Datum	   *out = (Datum *) into->values + batch->nrows;

	for (uint32 i = 0; i < n; i++)
	{
		uint32		number = (uint32) numbers[i];

		if (hgj_vector_is_null(from->vector, from->first + i))
			hgj_vector_set_null(into, batch->nrows + i);
		else if (likely(codes[number] != HGJ_NO_CODE))
			out[i] = UInt32GetDatum(codes[number]);
		else
		{
			out[i] = hgj_dictionary_code(dictionary, hgj_chunk_value(chunk, number),
										 batch->values);
			if (!hgj_datum_is_plain(out[i]))
				codes[number] = DatumGetUInt32(out[i]);
		}
	}
}

/* Does the batch's vector point at values of a chunk? */
static inline bool
is_pointing(const HgjBatch *batch, int c)
{
	return batch->own[c] != NULL;
}

/*
 * The n rows at the end of the batch, of columns whose values aim() has sent to
 * another one of the batch that is the same.
 */
static void
repeat_columns(const HgjSource *source, const HgjPageSource *ps, HgjBatch *batch,
			   uint32 n)
{
	for (int c = 0; c < source->ncols; c++)
	{
		HgjVector  *to = &batch->vectors[c];
		const HgjVector *from;

		if (ps->wanted[c] < 0 || source->columns[c].dictionary)
			continue;
		from = ps->targets[ps->wanted[c]].vector;
		if (from == to || is_pointing(batch, c))
			continue;
		memcpy((char *) to->values + (Size) batch->nrows * to->width,
			   (char *) from->values + (Size) batch->nrows * to->width,
			   (Size) n * to->width);
		to->decimals = from->decimals;
		to->scale = from->scale;
		for (uint32 i = batch->nrows; from->has_nulls && i < batch->nrows + n; i++)
			if (hgj_vector_is_null(from, i))
				hgj_vector_set_null(to, i);
	}
}

/* Step 6 of source_pages.c for the n rows that lie at the end of the batch. */
static void
settle_references(HgjSource *source, HgjBatch *batch, uint32 n)
{
	HgjPageSource *ps = source->private_state;

	if (!ps->by_reference || n == 0)
		return;
	for (int c = 0; c < source->ncols; c++)
		if (source->columns[c].dictionary == NULL || ps->wanted[c] < 0)
			continue;
		else if (ps->targets[ps->wanted[c]].numbers)
			encode_numbers(batch, c, source->columns[c].dictionary, ps, n);
		else
			encode_values(batch, c, source->columns[c].dictionary,
						  &ps->targets[ps->wanted[c]], n);
	if (batch->values == &batch->own_values && ps->pages.kind == HGJ_TUPLES_KEPT)
		return;					/* the chunks are held as long as the batch */
	if (batch->values == &batch->own_values && n >= HGJ_PIN_ROWS &&
		ps->pages.may_keep > 0)
	{
		ps->pages.keep = true;
		return;
	}
	for (int c = 0; c < source->ncols; c++)
	{
		HgjVector  *vector = &batch->vectors[c];
		Datum	   *values = (Datum *) vector->values;

		if (source->columns[c].attbyval || source->columns[c].dictionary ||
			ps->wanted[c] < 0)
			continue;
		for (uint32 i = batch->nrows; i < batch->nrows + n; i++)
			if (!hgj_vector_is_null(vector, i))
				values[i] = hgj_batch_keep(batch, &source->columns[c],
										   values[i]);
	}
}

/*
 * Is the column only to be encoded, and does that pay by its numbers?  Then its rows have
 * far fewer values than there are.
 */
static bool
takes_numbers(const HgjSource *source, const HgjPageSource *ps, int column)
{
	const HgjPageColumns *columns = &ps->columns;
	int			readers = 0;

	if (columns->kind != HGJ_TUPLES_KEPT || columns->columns[column]->attbyval ||
		columns->columns[column]->read || columns->kept->chunks[column] == NULL ||
		columns->kept->chunks[column]->ndistinct > HGJ_MOST_KEPT_CODES)
		return false;
	for (int c = 0; c < source->ncols; c++)
	{
		if (ps->wanted[c] != column)
			continue;
		if (source->columns[c].dictionary == NULL)
			return false;
		readers++;
	}
	for (int k = 0; k < source->nkeys; k++)
		if (ps->keys[k] == column)
			return false;
	return readers == 1;
}

/* Where the chunk has the column's next rows as a vector has them; NULL: it has not. */
static const void *
values_in_chunk(const HgjPageSource *ps, int column)
{
	const HgjKeptRows *kept = ps->columns.kept;

	return kept->chunks[column] == NULL ? NULL :
		hgj_chunk_values_at(kept->chunks[column], kept->starts[column] + ps->next_row);
}

/*
 * Can the batch not go on with the rows that come next: a vector points elsewhere than they
 * are, or they come in another form?
 */
bool
hgj_page_output_must_stop(const HgjSource *source, const HgjBatch *batch)
{
	const HgjPageSource *ps = source->private_state;
	const HgjPageColumns *columns = &ps->columns;

	for (int c = 0; c < source->ncols && batch->nrows > 0; c++)
	{
		const HgjVector *vector = &batch->vectors[c];
		int			column = ps->wanted[c];

		if (column < 0)
			continue;
		if (columns->columns[column]->scale >= 0 &&
			vector->decimals != hgj_page_column_is_decimal(columns, column))
			return true;
		if (is_pointing(batch, c) &&
			(columns->kind != HGJ_TUPLES_KEPT || !columns->all ||
			 values_in_chunk(ps, column) !=
			 (const char *) vector->values + (Size) batch->nrows * vector->width))
			return true;
	}
	return false;
}

/* Do all of the next rows come from chunks, in a row, and is none dropped for its keys? */
static bool
may_point(const HgjSource *source)
{
	const HgjPageSource *ps = source->private_state;

	if (ps->columns.kind != HGJ_TUPLES_KEPT || !ps->columns.all)
		return false;
	for (int k = 0; k < source->nkeys; k++)
	{
		const HgjChunk *chunk = ps->columns.kept->chunks[ps->keys[k]];

		/* a key is only missing where others have chosen the rows */
		if (chunk == NULL || chunk->has_nulls)
			return false;
	}
	return true;
}

/*
 * The batch begins with n rows for which may_point() is true: its vectors point at values
 * that the chunks have as they would.  Not for so few rows that batches would be small, and
 * not where whoever lends the vectors wants values there.
 */
static void
point_at_chunks(const HgjSource *source, HgjBatch *batch, uint32 n)
{
	const HgjPageSource *ps = source->private_state;

	if (batch->nrows > 0 || batch->borrowed || n < HGJ_POINT_ROWS)
		return;
	for (int c = 0; c < source->ncols; c++)
	{
		const void *values = ps->wanted[c] < 0 ? NULL : values_in_chunk(ps, ps->wanted[c]);

		if (values)
			hgj_batch_point(batch, c, values);
	}
}

/* Where the output columns go: behind the batch's rows, or to buffers. */
static void
aim(HgjSource *source, HgjBatch *batch, uint32 n)
{
	HgjPageSource *ps = source->private_state;
	bool		points = may_point(source);

	if (points)
		point_at_chunks(source, batch, n);
	for (int i = 0; i < ps->noutput; i++)
	{
		ps->targets[ps->output[i]].vector = NULL;
		ps->targets[ps->output[i]].numbers = ps->targets[ps->output[i]].there = false;
	}
	for (int c = 0; c < source->ncols; c++)
		if (ps->wanted[c] >= 0 && source->columns[c].dictionary == NULL &&
			ps->targets[ps->wanted[c]].vector == NULL)
		{
			ps->targets[ps->wanted[c]].vector = &batch->vectors[c];
			ps->targets[ps->wanted[c]].first = batch->nrows;
			ps->targets[ps->wanted[c]].there = is_pointing(batch, c);
			/* or hgj_page_output_must_stop() was not asked, or too early */
			Assert(!is_pointing(batch, c) ||
				   (points && values_in_chunk(ps, ps->wanted[c]) ==
					(char *) batch->vectors[c].values + (Size) batch->nrows * batch->vectors[c].width));
		}
	for (int i = 0; i < ps->noutput; i++)
	{
		int			column = ps->output[i];
		HgjPageTarget *target = &ps->targets[column];
		HgjVector  *vector = &ps->key_vectors[column];

		if (target->vector != NULL)
			continue;
		vector->values = points ?
			unconstify(void *, values_in_chunk(ps, column)) : NULL;
		if (vector->values)
		{
			vector->width = ps->columns.columns[column]->width;
			target->vector = vector;
			target->first = 0;
			target->there = true;
			/* a copy would have had them in the caches */
			ps->pages.prefetch.next = (char *) vector->values + (Size) n * vector->width;
			ps->pages.prefetch.end = ps->pages.prefetch.next + (Size) n * vector->width;
			continue;
		}
		hgj_buffer_reserve(batch->context, &ps->key_buffers[column],
						   ps->columns.columns[column]->width,
						   ps->columns.most_rows);
		target->vector = &ps->key_buffers[column].vector;
		target->first = 0;
		target->numbers = takes_numbers(source, ps, column);
	}
}

/* Steps 3 to 6 of source_pages.c: add the next n tuples of the page to the batch. */
void
hgj_page_output_take(HgjSource *source, HgjBatch *batch, uint32 n)
{
	HgjPageSource *ps = source->private_state;
	const HgjKeyWords to = {batch->words, batch->nrows, source->seed,
	source->econtext->ecxt_per_tuple_memory};
	uint32		left;

	aim(source, batch, n);
	hgj_page_columns_take(&ps->columns, ps->next_row, n, ps->targets);
	if (ps->columns.kind == HGJ_TUPLES_KEPT && ps->columns.kept->missing)
		hgj_late_columns_take(ps, batch, n);
	hgj_prefetch_more(&ps->pages.prefetch, HGJ_PREFETCH_LINES);
	left = select_rows(source, batch, n);
	hgj_prefetch_more(&ps->pages.prefetch, HGJ_PREFETCH_LINES);
	for (int c = 0; c < source->ncols; c++)
		if (ps->wanted[c] < 0)
			read_system_column(ps, batch, &source->columns[c], c,
							   left < n ? ps->selection : NULL, left);
	for (int k = 0; k < source->nkeys; k++)
	{
		const HgjPageTarget *target = &ps->targets[ps->keys[k]];

		hgj_key_words_vector(&source->keys[k], target->vector, target->first,
							 left, &to);
	}
	hgj_prefetch_more(&ps->pages.prefetch, BLCKSZ / HGJ_CACHE_LINE);
	repeat_columns(source, ps, batch, left);
	settle_references(source, batch, left);
	batch->nrows += left;
	ps->next_row += n;
}
