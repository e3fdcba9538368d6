/*-------------------------------------------------------------------------
 *
 * row_store.c
 *	  Fixed-stride records of the build side, found by number, which is the row
 *	  id unless rows share records (shared_records.c).
 *
 * 1. A record holds the columns that are wanted above the join, or by a
 *	  residual clause or recheck: widest first, so that nothing needs padding,
 *	  then a bit per column that says NULL.  By-reference values are pointers
 *	  into the store's arena.  Columns that only serve as raw keys are not here:
 *	  the engine has them.  A dictionary's datum takes four bytes; the few that
 *	  are no codes lie in an array beside the records.  Where other processes are to
 *	  read them, it takes eight bytes.
 * 2. Records lie row by row, not column by column, because matches fetch whole
 *	  rows in random order: one cache miss a match instead of one a column.
 * 3. They are kept in chunks of a power of two records, at most about 2 MB
 *	  each (a huge page) or a sixteenth of the memory limit, so that growing
 *	  never copies and takes little ahead.
 * 4. Several processes may fill a store together (join/shared_build.c).  Its chunks
 *	  are in shared memory then, and each is filled by the process that made it, so
 *	  that the numbers of its records are those of its chunks: no two are alike, and
 *	  behind the last one of a process there is a gap.  By-reference values are not
 *	  addresses but places, which are the same for all.
 *
 * The chunks and arenas are malloc'd memory, which hgj_row_store_free() gives back;
 * the build side sees to that on abort, too.  Those in shared memory are the query's.
 * No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "columns/row_store.h"
#include "engine/hgj_memory.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#define HGJ_CHUNK_LARGEST	((Size) 2 * 1024 * 1024)

/* log2 of the numbers that a process takes at a time where there are no records. */
#define HGJ_NUMBERS_SHIFT	12

/*
 * Lay records out whose columns begin at `offset`: the widest first, then a
 * NULL bit for each.  The columns' widths must be set.  Returns where the record
 * goes on.
 */
uint32
hgj_record_layout(HgjStoredColumn *columns, int ncols, uint32 offset)
{
	static const uint8 widths[] = {8, 4, 2, 1};

	for (int w = 0; w < lengthof(widths); w++)
		for (int i = 0; i < ncols; i++)
			if (columns[i].width == widths[w])
			{
				columns[i].offset = offset;
				offset += widths[w];
			}
	for (int i = 0; i < ncols; i++)
	{
		columns[i].null_byte = offset + i / 8;
		columns[i].null_bit = 1 << (i % 8);
	}
	return offset + (ncols + 7) / 8;
}

/*
 * Lay the records out.  `columns` are the build side's, in the order of a
 * batch's vectors.  `shared`: hgj_row_store_share() may be called.  expected_rows
 * only sizes the chunks.  What the store takes counts in the account, if there is one.
 */
void
hgj_row_store_init(HgjRowStore *store, MemoryContext context,
				   const HgjColumn *columns, int ncols, bool shared,
				   double expected_rows, HgjAccount *account)
{
	Size		memory_limit = get_hash_memory_limit();
	uint32		bytes;
	Size		largest = Min(HGJ_CHUNK_LARGEST, memory_limit / 16);
	Size		rows;

	memset(store, 0, sizeof(*store));
	store->context = context;
	store->account = store->held.whole = account;
	store->values.held.whole = store->next_values.held.whole = account;
	hgj_arena_limit(&store->values, memory_limit);
	hgj_arena_limit(&store->next_values, memory_limit);
	if (ncols == 0)
		return;

	store->columns = MemoryContextAllocZero(context,
											mul_size(ncols, sizeof(HgjStoredColumn)));
	store->ncols = ncols;		/* from here on there are columns to free */
	for (int i = 0; i < ncols; i++)
	{
		store->columns[i].encoded = columns[i].dictionary != NULL;
		store->columns[i].width = columns[i].dictionary && !shared ?
			sizeof(uint32) : columns[i].width;
	}
	bytes = hgj_record_layout(store->columns, ncols, 0);
	store->stride = TYPEALIGN(bytes <= 4 ? 4 : 8, bytes);

	rows = Max((Size) Min(expected_rows, 1e9), 1);
	store->chunk_shift = 6;
	while (((Size) 1 << store->chunk_shift) < rows &&
		   (((Size) 2 << store->chunk_shift) * store->stride) <= largest)
		store->chunk_shift++;
	store->chunk_bytes = ((Size) 1 << store->chunk_shift) * store->stride;
}

static void *
allocate(HgjRowStore *store, Size bytes)
{
	void	   *result =
		hgj_alloc(bytes, gettext_noop("Failed on request of size %zu for the build side of a HashGraphJoin."));

	hgj_account_add(&store->held, hgj_mem_footprint(bytes));
	return result;
}

/* The store, which is empty, is filled by other processes, too; columns as in init. */
void
hgj_row_store_share(HgjRowStore *store, const HgjColumn *columns, HgjChunkMap *map)
{
	Assert(store->nrows == 0 && store->nchunks == 0);
	for (int c = 0; c < store->ncols; c++)
		if (!columns[c].attbyval)
			store->columns[c].value_chunks = &map->chunks[HGJ_VALUE_CHUNK];
	store->map = map;
	store->values.map = map;
	/* what has no place is a value that nobody looks at (hgj_batch_keep()) */
	map->chunks[HGJ_VALUE_CHUNK][0] = unconstify(char *, (const char *) hgj_text_placeholder());
	if (store->stride == 0)
		store->chunk_shift = HGJ_NUMBERS_SHIFT;
}

/* All processes have filled it: their records can be read from now on. */
void
hgj_row_store_map_all(HgjRowStore *store)
{
	hgj_chunk_map_all(store->map);
	store->chunks = store->map->chunks[HGJ_RECORD_CHUNK];
}

/* A chunk of our own in shared memory, whose records are the next ones. */
static void
add_shared_chunk(HgjRowStore *store)
{
	uint32		number;

	if (store->stride == 0)
		number = hgj_chunk_number(store->map, HGJ_RECORD_CHUNK);
	else
	{
		hgj_chunk_create(store->map, HGJ_RECORD_CHUNK, store->chunk_bytes, &number);
		hgj_account_add(&store->held, store->chunk_bytes);
	}
	if (number >= HGJ_MAX_ROWS >> store->chunk_shift)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the build side of a HashGraphJoin has too many rows")));
	store->chunks = store->map->chunks[HGJ_RECORD_CHUNK];
	store->nrows = number << store->chunk_shift;
}

static void
add_chunk(HgjRowStore *store)
{
	if (store->nchunks == store->max_chunks)
	{
		uint32		max = store->max_chunks ? store->max_chunks * 2 : 16;
		Size		bytes = mul_size(max, sizeof(char *));

		store->chunks = store->chunks ?
			repalloc_huge(store->chunks, bytes) :
			MemoryContextAllocHuge(store->context, bytes);
		store->max_chunks = max;
	}
	store->chunks[store->nchunks] = allocate(store, store->chunk_bytes);
	store->nchunks++;
}

/* The chunk for the next record is there. */
static void
make_room(HgjRowStore *store)
{
	if ((store->nrows & ((UINT32_C(1) << store->chunk_shift) - 1)) != 0)
		return;
	if (store->map)
		add_shared_chunk(store);
	else if (store->nrows >> store->chunk_shift == store->nchunks)
		add_chunk(store);
}

static void
free_plain(HgjRowStore *store, HgjStoredColumn *column)
{
	Size		bytes = (Size) column->max_plain * sizeof(Datum);

	if (column->plain == NULL)
		return;
	hgj_account_sub(&store->held, hgj_mem_footprint(bytes));
	hgj_mem_free(column->plain, bytes);
	column->plain = NULL;
	column->nplain = column->max_plain = 0;
}

/* What stands in a record for a datum that is no code. */
static uint32
store_plain(HgjRowStore *store, HgjStoredColumn *column, Datum datum)
{
	if (column->nplain == column->max_plain)
	{
		uint32		nplain = column->nplain;
		uint32		larger = nplain ? nplain + nplain / 2 : 64;
		Datum	   *plain = allocate(store, (Size) larger * sizeof(Datum));

		if (nplain > 0)
			memcpy(plain, column->plain, (Size) nplain * sizeof(Datum));
		free_plain(store, column);
		column->plain = plain;
		column->nplain = nplain;
		column->max_plain = larger;
	}
	column->plain[column->nplain] = datum;
	return HGJ_STORED_PLAIN + column->nplain++;
}

/* append_column() for datums of a dictionary. */
static void
append_codes(HgjRowStore *store, HgjStoredColumn *column,
			 const HgjVector *vector, uint32 from, uint32 n, char *record)
{
	char	   *target = record + column->offset;

	for (uint32 i = 0; i < n; i++, target += store->stride)
	{
		Datum		datum = ((const Datum *) vector->values)[from + i];

		if (hgj_vector_is_null(vector, from + i))
			*(uint32 *) target = 0;
		else
			*(uint32 *) target = likely(!hgj_datum_is_plain(datum)) ?
				DatumGetUInt32(datum) : store_plain(store, column, datum);
	}
}

/* What a record has for a by-reference value, or a dictionary's datum, in eight bytes. */
static inline uint64
placed(const HgjRowStore *store, const HgjStoredColumn *column, Datum datum)
{
	if (!column->encoded)
		return hgj_arena_place(&store->values, datum);
	if (likely(!hgj_datum_is_plain(datum)) || column->value_chunks == NULL)
		return (uint64) datum;
	return hgj_arena_place(&store->values, hgj_plain_value(datum)) | HGJ_PLAIN_BIT;
}

/* append_column() for these. */
static void
append_placed(HgjRowStore *store, HgjStoredColumn *column,
			  const HgjVector *vector, uint32 from, uint32 n, char *record)
{
	char	   *target = record + column->offset;

	for (uint32 i = 0; i < n; i++, target += store->stride)
		*(uint64 *) target = hgj_vector_is_null(vector, from + i) ? 0 :
			placed(store, column, ((const Datum *) vector->values)[from + i]);
}

/* Copy one column of rows [from, from + n) of the batch; all in one chunk. */
static void
append_column(HgjRowStore *store, HgjStoredColumn *column,
			  const HgjVector *vector, uint32 from, uint32 n, char *record)
{
	char	   *target = record + column->offset;
	uint32		stride = store->stride;

	switch (hgj_stored_kind(column))
	{
		case HGJ_STORED_CODES:
			append_codes(store, column, vector, from, n, record);
			break;
		case HGJ_STORED_PLACED_CODES:
		case HGJ_STORED_PLACES:
			append_placed(store, column, vector, from, n, record);
			break;
		case 8:
			for (uint32 i = 0; i < n; i++, target += stride)
				*(Datum *) target = ((const Datum *) vector->values)[from + i];
			break;
		case 4:
			for (uint32 i = 0; i < n; i++, target += stride)
				*(int32 *) target = ((const int32 *) vector->values)[from + i];
			break;
		case 2:
			for (uint32 i = 0; i < n; i++, target += stride)
				*(int16 *) target = ((const int16 *) vector->values)[from + i];
			break;
		default:
			for (uint32 i = 0; i < n; i++, target += stride)
				*target = ((const char *) vector->values)[from + i];
			break;
	}

	if (!vector->has_nulls)
		return;
	for (uint32 i = 0; i < n; i++)
		if (hgj_vector_is_null(vector, from + i))
		{
			record[(Size) i * stride + column->null_byte] |= column->null_bit;
			column->has_nulls = true;
		}
}

/* Write the records of rows [from, from + n) of a batch, one after another. */
void
hgj_row_store_write(HgjRowStore *store, const HgjBatch *batch, uint32 from,
					uint32 n, char *records)
{
	for (uint32 i = 0; i < n; i++)
		memset(records + (Size) i * store->stride + store->columns[0].null_byte,
			   0, (store->ncols + 7) / 8);
	for (int c = 0; c < store->ncols; c++)
		append_column(store, &store->columns[c], &batch->vectors[c], from, n,
					  records);
}

/* Add a record that has been written elsewhere; returns its number. */
uint32
hgj_row_store_add(HgjRowStore *store, const char *record)
{
	uint32		number;

	make_room(store);
	number = store->nrows;
	memcpy(hgj_row_store_record(store, number), record, store->stride);
	store->nrows++;
	return number;
}

/*
 * Add the rows of a batch.  They get the next record numbers, one after another, unless
 * other processes fill the store, too: `numbers`, if not NULL, is told.  By-reference
 * values must lie in the store's arena already (the batch was lent it).
 */
void
hgj_row_store_append(HgjRowStore *store, const HgjBatch *batch, uint32 *numbers)
{
	uint32		chunk_rows = UINT32_C(1) << store->chunk_shift;
	uint32		done = 0;

	if (store->stride == 0 && store->map == NULL)
	{
		store->nrows += batch->nrows;
		return;
	}
	while (done < batch->nrows)
	{
		uint32		n;

		make_room(store);
		n = Min(batch->nrows - done, chunk_rows - (store->nrows & (chunk_rows - 1)));
		if (store->stride > 0)
			hgj_row_store_write(store, batch, done, n,
								hgj_row_store_record(store, store->nrows));
		for (uint32 i = 0; numbers && i < n; i++)
			numbers[done + i] = store->nrows + i;
		store->nrows += n;
		done += n;
	}
}

/*
 * Forget the rows, before the next pass.  The values of the batch that was
 * read ahead for it become the store's.
 */
void
hgj_row_store_clear(HgjRowStore *store)
{
	HgjArena	empty;

	if (store->shared)
		hgj_share_records_clear(store);
	store->nrows = 0;			/* the chunks are used again */
	for (int c = 0; c < store->ncols; c++)
	{
		store->columns[c].has_nulls = false;
		store->columns[c].nplain = 0;
	}
	hgj_arena_free(&store->values);
	empty = store->values;
	store->values = store->next_values;
	store->next_values = empty;
}

/* Give all memory back but the layout's; the store is empty then. */
void
hgj_row_store_free(HgjRowStore *store)
{
	for (uint32 i = 0; i < store->nchunks; i++)
		hgj_mem_free(store->chunks[i], store->chunk_bytes);
	if (store->map)
	{
		/* all of it is the query's */
		store->chunks = NULL;
		store->max_chunks = 0;
		store->map = NULL;
		for (int c = 0; c < store->ncols; c++)
			store->columns[c].value_chunks = NULL;
	}
	for (int c = 0; c < store->ncols; c++)
		free_plain(store, &store->columns[c]);
	store->nchunks = 0;
	if (store->shared)
		hgj_share_records_clear(store);
	store->nrows = 0;
	hgj_account_set(&store->held, 0);
	hgj_arena_free(&store->values);
	hgj_arena_free(&store->next_values);
}
