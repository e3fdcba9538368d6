/*-------------------------------------------------------------------------
 *
 * batch.c
 *	  Memory of batches.
 *
 * 1. The arrays of a batch are palloc'd in the context it was made in, and
 *	  grow when a larger batch is asked for; its rows are lost then.
 * 2. By-reference values go to an arena: the batch's own, emptied whenever the
 *	  batch is, or one that its user lends it (the build side keeps the values
 *	  of every batch).
 * 3. A vector may point at values that lie elsewhere as they would here, instead of
 *	  having a copy of them, until the batch is emptied.  Nobody writes there.
 *
 * The own arena is malloc'd memory: whoever makes a batch frees it with
 * hgj_arena_free(), on abort too.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "columns/batch.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* By-reference values of a batch, also as a part of the memory limit. */
#define HGJ_BATCH_MOST_BYTES	((Size) 1024 * 1024)
#define HGJ_BATCH_FEWEST_BYTES	((Size) 16 * 1024)
#define HGJ_BATCH_VALUE_SHARE	8

/* A column of values of such an attribute, with this number in what returns it. */
void
hgj_column_init(HgjColumn *column, AttrNumber attno, const FormData_pg_attribute *att)
{
	column->attno = attno;
	column->attlen = att->attlen;
	column->attbyval = att->attbyval;
	column->width = att->attbyval ? att->attlen : sizeof(Datum);
}

/*
 * Make an empty batch of no capacity for these columns, with nwords key words
 * a row.  What it holds counts in the account, if there is one.
 */
HgjBatch *
hgj_batch_create(MemoryContext context, const HgjColumn *columns, int ncols,
				 uint32 nwords, HgjAccount *account)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	HgjBatch   *batch = palloc0(sizeof(HgjBatch));

	batch->context = context;
	batch->held.whole = account;
	batch->own_values.held.whole = &batch->held;
	batch->values = &batch->own_values;
	batch->ncols = ncols;
	batch->vectors = palloc0(mul_size(Max(ncols, 1), sizeof(HgjVector)));
	for (int i = 0; i < ncols; i++)
		batch->vectors[i].width = columns[i].width;
	batch->own = palloc0(mul_size(Max(ncols, 1), sizeof(void *)));
	batch->nwords = nwords;
	batch->words = palloc0(mul_size(nwords, sizeof(uint64 *)));
	MemoryContextSwitchTo(old);
	return batch;
}

/* Step 3: the values of rows from 0 on are there, none of them NULL. */
void
hgj_batch_point(HgjBatch *batch, int c, const void *values)
{
	HgjVector  *vector = &batch->vectors[c];

	Assert(!batch->borrowed && batch->nrows == 0 && !vector->has_nulls);
	if (batch->own[c] == NULL)
		batch->own[c] = vector->values;
	vector->values = unconstify(void *, values);
}

/* Step 3: no vector does any more. */
static void
point_back(HgjBatch *batch)
{
	for (int i = 0; batch->own && i < batch->ncols; i++)
		if (batch->own[i])
		{
			batch->vectors[i].values = batch->own[i];
			batch->own[i] = NULL;
		}
}

static void *
renew(HgjBatch *batch, void *array, Size rows, Size width)
{
	if (array)
		pfree(array);
	return MemoryContextAllocHuge(batch->context, mul_size(rows, width));
}

/* Bytes of a row in the arrays, validity bits not counted. */
Size
hgj_batch_row_bytes(const HgjBatch *batch)
{
	Size		row = sizeof(uint32) + batch->nwords * sizeof(uint64);

	for (int i = 0; i < batch->ncols; i++)
		row += batch->vectors[i].width;
	return row;
}

/* Bytes of the arrays; borrowed vectors count as if they were here. */
static Size
array_bytes(const HgjBatch *batch)
{
	return mul_size(batch->capacity, hgj_batch_row_bytes(batch)) +
		batch->ncols * (((Size) batch->capacity + 63) / 64) * sizeof(uint64);
}

static void
set_capacity(HgjBatch *batch, uint32 capacity)
{
	batch->capacity = capacity;
	hgj_account_set(&batch->held,
					array_bytes(batch) + batch->own_values.held.bytes);
}

/*
 * Make room for this many rows (without the vectors, where those are
 * borrowed).  Whatever rows there were are forgotten.
 */
void
hgj_batch_reserve(HgjBatch *batch, uint32 capacity)
{
	Size		bitmap_words = ((Size) capacity + 63) / 64;

	batch->nrows = batch->nsel = 0;
	point_back(batch);
	if (capacity <= batch->capacity)
		return;

	set_capacity(batch, 0);		/* should an allocation fail */
	batch->sel = renew(batch, batch->sel, capacity, sizeof(uint32));
	for (uint32 w = 0; w < batch->nwords; w++)
		batch->words[w] = renew(batch, batch->words[w], capacity,
								sizeof(uint64));
	for (int i = 0; i < batch->ncols && !batch->borrowed; i++)
	{
		HgjVector  *vector = &batch->vectors[i];

		vector->values = renew(batch, vector->values, capacity, vector->width);
		vector->validity = renew(batch, vector->validity, bitmap_words,
								 sizeof(uint64));
		memset(vector->validity, 0xFF, bitmap_words * sizeof(uint64));
		vector->has_nulls = false;
	}
	set_capacity(batch, capacity);
}

/* The batch has no vectors any more; borrowed ones are not its to free. */
static void
leave_vectors(HgjBatch *batch)
{
	for (int i = 0; i < batch->ncols; i++)
	{
		HgjVector  *vector = &batch->vectors[i];

		if (!batch->borrowed && vector->values)
		{
			pfree(vector->values);
			pfree(vector->validity);
		}
		vector->values = vector->validity = NULL;
		vector->has_nulls = false;
	}
}

/*
 * From now on the batch's vectors are borrowed from another node, or they are
 * not any more.  Its rows and capacity are gone.
 */
void
hgj_batch_borrow(HgjBatch *batch, bool borrowed)
{
	if (batch->borrowed == borrowed)
		return;
	hgj_batch_clear(batch);
	leave_vectors(batch);
	set_capacity(batch, 0);
	batch->borrowed = borrowed;
}

/* Free what a buffer has. */
void
hgj_buffer_release(HgjBuffer *buffer)
{
	if (buffer->vector.values)
		pfree(buffer->vector.values);
	if (buffer->vector.validity)
		pfree(buffer->vector.validity);
	memset(buffer, 0, sizeof(*buffer));
}

/*
 * Free all that the batch has but itself: it may be filled again much later, or
 * never.
 */
void
hgj_batch_release(HgjBatch *batch)
{
	hgj_batch_clear(batch);
	hgj_arena_free(&batch->own_values);
	if (!batch->borrowed)
		leave_vectors(batch);
	for (uint32 w = 0; w < batch->nwords && batch->words[w]; w++)
	{
		pfree(batch->words[w]);
		batch->words[w] = NULL;
	}
	if (batch->sel)
		pfree(batch->sel);
	batch->sel = NULL;
	set_capacity(batch, 0);
}

/* A batch ends early when its by-reference values pass so many bytes. */
Size
hgj_batch_value_bytes(void)
{
	Size		affordable = get_hash_memory_limit() / HGJ_BATCH_VALUE_SHARE;

	return Max(Min(affordable, HGJ_BATCH_MOST_BYTES), HGJ_BATCH_FEWEST_BYTES);
}

/*
 * How many rows the next batch should have, `most` at most, if this one was to have `rows`, and
 * the by-reference values of the n that it has take these bytes.
 */
uint32
hgj_batch_next_rows(uint32 rows, uint32 n, Size bytes, uint32 most)
{
	double		next = (double) n * hgj_batch_value_bytes() / Max(bytes, 1);

	next = Min(next, (double) rows * 4);
	return (uint32) Max(Min(next, (double) most), 1);
}

/* Empty the batch for its next rows. */
void
hgj_batch_clear(HgjBatch *batch)
{
	batch->first_row += batch->nrows;
	batch->nrows = batch->nsel = 0;
	if (batch->own_values.used > 0)
		hgj_arena_reset(&batch->own_values);
	batch->nlive = 0;
	batch->live = NULL;
	point_back(batch);
	for (int i = 0; i < batch->ncols && !batch->borrowed; i++)
		hgj_vector_all_valid(&batch->vectors[i], batch->capacity);
}

/*
 * What to store for a by-reference value that is not NULL: its code, where the
 * column has a dictionary, or a copy in the batch's arena.
 */
Datum
hgj_batch_keep(HgjBatch *batch, const HgjColumn *column, Datum value)
{
	if (column->dictionary)
		return hgj_dictionary_code(column->dictionary, value, batch->values);
	if (column->short_bytes > 0)
	{
		const struct varlena *v = (const struct varlena *) DatumGetPointer(value);

		if (!VARATT_IS_EXTERNAL(v) && !VARATT_IS_COMPRESSED(v) &&
			VARSIZE_ANY_EXHDR(v) <= column->short_bytes)
			return PointerGetDatum(hgj_text_placeholder());
	}
	return hgj_arena_copy(batch->values, value, column->attlen);
}

/* The batch's keys as an engine takes them; borrowed from the batch. */
HgjKeys
hgj_batch_keys(const HgjBatch *batch)
{
	HgjKeys		keys = {0};

	keys.nrows = batch->nrows;
	keys.words = (const uint64_t *const *) batch->words;
	keys.location = HGJ_ON_HOST;
	if (batch->nsel < batch->nrows)
	{
		keys.sel = batch->sel;
		keys.nsel = batch->nsel;
	}
	return keys;
}

/*
 * Make room for this many values of this width, all valid; what was there is
 * forgotten.  palloc'd in the context, which must be the same every time.
 */
void
hgj_buffer_reserve(MemoryContext context, HgjBuffer *buffer, uint8 width,
				   uint32 rows)
{
	HgjVector  *vector = &buffer->vector;

	if (rows > buffer->capacity || vector->width != width)
	{
		uint32		capacity = Max(rows, 64);

		hgj_buffer_release(buffer);
		vector->width = width;
		vector->values = MemoryContextAllocHuge(context,
												mul_size(capacity, width));
		vector->validity = MemoryContextAllocHuge(context,
												  mul_size(((Size) capacity + 63) / 64,
														   sizeof(uint64)));
		vector->has_nulls = true;	/* the bits have never been set */
		buffer->capacity = capacity;
	}
	hgj_vector_all_valid(vector, buffer->capacity);
}

/* Make positions [0, rows) not NULL; no other has been set NULL.  No decimals, either. */
void
hgj_vector_all_valid(HgjVector *vector, uint32 rows)
{
	if (vector->has_nulls)
		memset(vector->validity, 0xFF,
			   (((Size) rows + 63) / 64) * sizeof(uint64));
	vector->has_nulls = vector->decimals = false;
}

/* Make positions [0, rows) NULL, with a zero for a value. */
void
hgj_vector_all_null(HgjVector *vector, uint32 rows)
{
	if (rows == 0)
		return;
	memset(vector->values, 0, mul_size(rows, vector->width));
	memset(vector->validity, 0, (((Size) rows + 63) / 64) * sizeof(uint64));
	vector->has_nulls = true;
}

/* out[i] = values[rows[i]]; out may be the values, if the rows ascend. */
void
hgj_values_gather(uint8 width, const void *values, const uint32 *rows, uint32 n,
				  void *out)
{
#define GATHER_CASE(bytes, type) \
		case bytes: \
			for (uint32 i = 0; i < n; i++) \
				((type *) out)[i] = ((const type *) values)[rows[i]]; \
			break

	switch (width)
	{
			GATHER_CASE(1, uint8);
			GATHER_CASE(2, uint16);
			GATHER_CASE(4, uint32);
			GATHER_CASE(8, uint64);
	}
}

/*
 * Rows rows[0 .. n) of a vector (NULL: its first n), values and NULLs, to positions
 * from `first` on of one of the same width, where nothing is NULL yet.
 */
void
hgj_vector_gather(HgjVector *into, uint32 first, const HgjVector *from,
				  const uint32 *rows, uint32 n)
{
	char	   *values = (char *) into->values + (Size) first * into->width;

	into->decimals = from->decimals;
	into->scale = from->scale;
	if (rows)
		hgj_values_gather(from->width, from->values, rows, n, values);
	else
		memcpy(values, from->values, (Size) n * from->width);
	for (uint32 i = 0; from->has_nulls && i < n; i++)
		if (hgj_vector_is_null(from, rows ? rows[i] : i))
			hgj_vector_set_null(into, first + i);
}
