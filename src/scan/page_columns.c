/*-------------------------------------------------------------------------
 *
 * page_columns.c
 *	  The columns of the tuples of a page, as vectors, each decoded at most once,
 *	  whoever asks first: a filter, a key filter, or the output.
 *
 * The rows of a page are numbered as its tuples are.  Fewer and fewer of them are
 * left as filters drop some.
 *
 * 1. Before which attributes does everything have a fixed width?  They lie at the
 *	  same offset in every tuple that has no NULL before them.
 * 2. What follows a varlena attribute lies at the same offset, too, if that
 *	  attribute happens to be as long in all rows that are left: char(n), codes,
 *	  small numerics.  A look at its first byte in each tells.  Columns at such
 *	  offsets are read in a loop that is one load and one store.
 * 3. All other columns are found by walking over the attributes, from the first
 *	  one that is longer in some row than in others: stretch by stretch
 *	  (page_walk.c), each for all rows that are left, so that every loop is simple.
 *	  Only attributes that some tuple has as NULL need a look at bitmaps.  Where
 *	  many rows are taken in the end, whatever column of the set the walk comes by is
 *	  read, and the next one who asks goes on from where it ended; otherwise he
 *	  begins again, for the few rows that are left.
 * 4. If there is a tuple with fewer attributes than are wanted, every tuple is
 *	  walked over on its own, once, for all columns.  An attribute that was added
 *	  to the table after the tuple has the value that the catalog keeps for it.
 * 5. What has been read lies in a buffer of the column, at its rows' numbers.  The
 *	  output takes it from there, or, where nobody has asked before, straight from
 *	  the page.
 * 6. Rows of pages whose columns are kept in memory have no tuples: their columns
 *	  are read from chunks (kept/chunk.c).
 *
 * Values that pass by reference stay where they are: vectors get pointers into
 * the page (or, for a missing one, into the table's descriptor; or into a chunk).
 * The caller keeps the page pinned, or holds the chunk.
 *
 * Memory: the context that is current at the set's making; a buffer of a page's
 * rows for each column.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "scan/page_attributes.h"
#include "utils/memutils.h"

/* Nanoseconds, roughly; only their proportions matter. */
#define HGJ_LOAD_COST	1.0
#define HGJ_STEP_COST	2.5

/* Step 3: rows after which older ones count less. */
#define HGJ_ROWS_KNOWN	16384

static uint8
align_mask(char attalign)
{
	switch (attalign)
	{
		case TYPALIGN_CHAR:
			return 0;
		case TYPALIGN_SHORT:
			return ALIGNOF_SHORT - 1;
		case TYPALIGN_INT:
			return ALIGNOF_INT - 1;
		default:
			return ALIGNOF_DOUBLE - 1;
	}
}

void
hgj_page_columns_init(HgjPageColumns *set, TupleDesc desc, uint32 most_rows)
{
	memset(set, 0, sizeof(HgjPageColumns));
	set->desc = desc;
	set->most_rows = most_rows;
	set->context = CurrentMemoryContext;
	set->rows = palloc(mul_size(most_rows, sizeof(uint32)));
	set->starts = palloc(MaxHeapTuplesPerPage * sizeof(char *));
	set->bits = palloc(MaxHeapTuplesPerPage * sizeof(bits8 *));
	set->at = palloc(MaxHeapTuplesPerPage * sizeof(char *));
	set->columns = palloc0(mul_size(Max(desc->natts, 1), sizeof(HgjScanColumn *)));
	set->attributes = palloc0(mul_size(Max(desc->natts, 1),
									   sizeof(HgjHeapAttribute)));
	set->by_attno = palloc(mul_size(Max(desc->natts, 1), sizeof(int)));
	set->offsets = palloc0(mul_size(Max(desc->natts, 1), sizeof(int32)));
	set->common = palloc0(BITMAPLEN(desc->natts) + 1);
	for (int i = 0; i < desc->natts; i++)
		set->by_attno[i] = -1;
}

/*
 * Step 1.  A varlena attribute begins at a fixed offset if it is aligned there:
 * then there is no padding before it, whatever its header.
 */
static void
find_offsets(HgjPageColumns *set)
{
	int32		offset = 0;
	bool		fixed = true;

	for (int i = 0; i < set->natts; i++)
	{
		Form_pg_attribute form = TupleDescAttr(set->desc, i);
		HgjHeapAttribute *att = &set->attributes[i];
		int32		aligned;

		att->attlen = form->attlen;
		att->align_mask = align_mask(form->attalign);
		aligned = (offset + att->align_mask) & ~(int32) att->align_mask;
		fixed = fixed && (att->attlen > 0 || aligned == offset);
		att->offset = fixed ? aligned : -1;
		if (fixed)
			set->nfixed = i + 1;
		fixed = fixed && att->attlen > 0;
		offset = aligned + att->attlen;
	}
}

/* The number of a user column, which is now one of the set; not within a page. */
int
hgj_page_columns_add(HgjPageColumns *set, AttrNumber attno)
{
	Form_pg_attribute att = TupleDescAttr(set->desc, attno - 1);
	HgjScanColumn *column;

	if (set->by_attno[attno - 1] >= 0)
		return set->by_attno[attno - 1];
	column = MemoryContextAllocZero(set->context, sizeof(HgjScanColumn));
	column->attno = attno;
	column->attbyval = att->attbyval;
	column->width = att->attbyval ? att->attlen : sizeof(Datum);
	column->scale = -1;
	hgj_buffer_reserve(set->context, &column->buffer, column->width,
					   set->most_rows);
	set->columns[set->ncols] = column;
	set->by_attno[attno - 1] = set->ncols;
	set->natts = Max(set->natts, attno);
	find_offsets(set);
	return set->ncols++;
}

/*
 * Nanoseconds for these columns of a row, roughly: loads, and steps over the
 * attributes that lie elsewhere in every tuple.
 */
double
hgj_page_columns_cost(const HgjPageColumns *set, const int *wanted, int n)
{
	AttrNumber	last = 0;

	for (int i = 0; i < n; i++)
		last = Max(last, set->columns[wanted[i]]->attno);
	return n * HGJ_LOAD_COST +
		Max(last - Max(set->nfixed, 1) + 1, 0) * HGJ_STEP_COST *
		(last > set->nfixed);
}

/* A page: all of its tuples are left, and nothing has been read. */
void
hgj_page_columns_begin(HgjPageColumns *set, const HeapTupleHeader *tuples,
					   uint32 ntuples, HgjTupleKind kind, HgjPrefetch *prefetch)
{
	set->tuples = tuples;
	set->ntuples = set->nrows = ntuples;
	set->kind = kind;
	set->prefetch = prefetch;
	set->all = true;
	set->begun = false;
	/* of the rows that are kept, nobody counts those that are taken either */
	set->seen += kind == HGJ_TUPLES_KEPT ? 0 : ntuples;
	if (set->seen > HGJ_ROWS_KNOWN)
	{
		set->seen /= 2;
		set->taken /= 2;
	}
	for (int c = 0; c < set->ncols; c++)
		set->columns[c]->read = false;
}

/* Of the rows that are left, those at places[0 .. n) stay; places ascend. */
void
hgj_page_columns_keep(HgjPageColumns *set, const uint32 *places, uint32 n)
{
	uint32	   *rows = set->rows;

	if (n == set->nrows)
		return;
	if (set->all)
		memcpy(rows, places, n * sizeof(uint32));
	else
		for (uint32 i = 0; i < n; i++)
			rows[i] = rows[places[i]];
	set->nrows = n;
	set->all = false;
}

/* Of columns that have not been read, and lie nowhere that is known: the ends. */
static inline void
note_unknown(const HgjPageColumns *set, int c, AttrNumber *first, AttrNumber *last)
{
	const HgjScanColumn *column = set->columns[c];

	if (column->read || column->attno <= set->progress.nknown)
		return;
	*first = Min(*first, column->attno);
	*last = Max(*last, column->attno);
}

/* Have columns been passed that are wanted after all?  Begin the walk again. */
static inline void
go_back(HgjPageColumns *set, AttrNumber first)
{
	if (set->progress.walking && first < set->progress.frontier)
		set->progress = set->before_walk;
}

/* Of a column that is kept, n rows (NULL: the first) to positions from `first` on. */
static void
read_chunk(const HgjPageColumns *set, int c, const uint32 *rows, uint32 n,
		   const HgjPageTarget *target, bool by_row)
{
	const HgjChunk *chunk = set->kept->chunks[c];
	uint32		start = set->kept->starts[c];

	if (target->numbers)
		hgj_chunk_read_numbers(chunk, start, rows, n, target->vector, target->first);
	else if (hgj_page_column_is_decimal(set, c))
		hgj_chunk_read_decimals(chunk, start, rows, n, target->vector, target->first,
								by_row);
	else
		hgj_chunk_read(chunk, start, rows, n, target->vector, target->first, by_row);
}

/* hgj_page_columns_read() from chunks. */
static void
read_kept(HgjPageColumns *set, const int *wanted, int n)
{
	const uint32 *rows = set->all ? NULL : set->rows;

	for (int i = 0; i < n; i++)
	{
		int			c = wanted[i];
		HgjPageTarget target = {0};

		if (set->columns[c]->read)
			continue;
		target.vector = hgj_page_begin_buffer(set->columns[c]).vector;
		read_chunk(set, c, rows, set->nrows, &target, true);
		target.vector->kept_in = set->kept->chunks[c]->id;
	}
}

/* hgj_page_columns_take() from chunks; rows: the n rows' numbers, or NULL. */
static void
take_kept(HgjPageColumns *set, const uint32 *rows, uint32 n,
		  const HgjPageTarget *targets)
{
	for (int c = 0; c < set->ncols; c++)
	{
		if (targets[c].vector == NULL || targets[c].there || set->kept->chunks[c] == NULL)
			continue;
		if (set->columns[c]->read)
			hgj_vector_gather(targets[c].vector, targets[c].first,
							  &set->columns[c]->buffer.vector, rows, n);
		else
			read_chunk(set, c, rows, n, &targets[c], false);
	}
}

/*
 * Have these columns of all rows that are left in their buffers, at the rows'
 * numbers.
 */
void
hgj_page_columns_read(HgjPageColumns *set, const int *wanted, int n)
{
	const uint32 *rows = set->all ? NULL : set->rows;
	AttrNumber	first = MaxHeapAttributeNumber;
	AttrNumber	last = 0;

	if (set->nrows == 0)
		return;
	if (set->kind == HGJ_TUPLES_KEPT)
	{
		read_kept(set, wanted, n);
		return;
	}
	if (set->kind == HGJ_TUPLES_ANY)
	{
		hgj_page_walk_tuples(set);
		return;
	}
	hgj_page_begin_attributes(set);
	for (int i = 0; i < n; i++)
		note_unknown(set, wanted[i], &first, &last);
	go_back(set, first);
	if (!hgj_page_is_known(set, last, rows, set->nrows))
	{
		for (int i = 0; i < n; i++)
			set->columns[wanted[i]]->wanted = true;
		hgj_page_walk(set, last, rows, set->nrows, NULL);
		for (int i = 0; i < n; i++)
			set->columns[wanted[i]]->wanted = false;
	}
	for (int i = 0; i < n; i++)
	{
		HgjScanColumn *column = set->columns[wanted[i]];
		HgjPagePlace place;

		if (column->read)
			continue;
		place = hgj_page_begin_buffer(column);
		hgj_page_read_known(set, column, rows, set->nrows, &place);
	}
}

/* Where a column of integers without a NULL is kept that nobody has read, or NULL. */
static const HgjChunk *
unread_integers(const HgjPageColumns *set, int c)
{
	const HgjChunk *chunk = set->kind == HGJ_TUPLES_KEPT ? set->kept->chunks[c] : NULL;

	return chunk && !set->columns[c]->read && chunk->by_value && !chunk->has_nulls ? chunk : NULL;
}

/* That column of all rows of the page, as it is kept.  False: rows have gone, or it is not so. */
bool
hgj_page_column_packed(const HgjPageColumns *set, int c, HgjPackedKeys *keys)
{
	const HgjChunk *chunk = set->all ? unread_integers(set, c) : NULL;

	if (chunk == NULL || chunk->width > sizeof(uint32))
		return false;
	hgj_chunk_packed(chunk, set->kept->starts[c], keys);
	keys->n = set->nrows;
	return true;
}

/*
 * A column of integers of the rows that are left, with their sign, one behind the other:
 * straight from where it is kept, unless somebody has read it.  False: it is not kept so.
 */
bool
hgj_page_column_integers(const HgjPageColumns *set, int c, uint64 *into)
{
	const HgjChunk *chunk = unread_integers(set, c);

	if (chunk == NULL)
		return false;
	hgj_chunk_read_integers(chunk, set->kept->starts[c], set->all ? NULL : set->rows,
							set->nrows, into);
	return true;
}

/*
 * A column that has been read, of the rows that are left, one behind the other: in
 * its buffer, or, if it has to be moved for that, in `room`.
 */
const HgjVector *
hgj_page_column_dense(const HgjPageColumns *set, int c, HgjVector *room)
{
	const HgjVector *buffer = &set->columns[c]->buffer.vector;

	if (set->all)
		return buffer;
	hgj_vector_all_valid(room, set->most_rows);
	hgj_vector_gather(room, 0, buffer, set->rows, set->nrows);
	room->kept_in = buffer->kept_in;
	return room;
}

/*
 * Step 5: the columns that have a target, of n rows that are left, from the
 * first-th on.  Each row is taken once, and nothing is read of it any more.
 */
void
hgj_page_columns_take(HgjPageColumns *set, uint32 first, uint32 n,
					  const HgjPageTarget *targets)
{
	uint32		taken[HGJ_SLICE_ROWS];
	const uint32 *rows = set->all ? NULL : set->rows + first;
	HgjPageProgress progress = set->progress;
	HgjPageProgress before_walk = set->before_walk;
	AttrNumber	first_unknown = MaxHeapAttributeNumber;
	AttrNumber	last = 0;

	if (n == 0)
		return;
	if (set->all && first > 0)
	{
		for (uint32 i = 0; i < n; i++)
			taken[i] = first + i;
		rows = taken;
	}
	if (set->kind == HGJ_TUPLES_KEPT)
	{
		take_kept(set, rows, n, targets);
		return;
	}
	if (set->kind == HGJ_TUPLES_ANY)
		hgj_page_walk_tuples(set);
	else if (!set->begun)
	{
		hgj_page_begin_attributes(set);
		progress = set->progress;
	}
	set->taken += n;
	for (int c = 0; c < set->ncols; c++)
		if (targets[c].vector)
			note_unknown(set, c, &first_unknown, &last);

	go_back(set, first_unknown);
	if (!hgj_page_is_known(set, last, rows, n))
		hgj_page_walk(set, last, rows, n, targets);
	for (int c = 0; c < set->ncols; c++)
	{
		const HgjScanColumn *column = set->columns[c];
		HgjPagePlace place = {targets[c].vector, targets[c].first, false};

		if (place.vector == NULL)
			continue;
		if (column->read)
			hgj_vector_gather(place.vector, place.first, &column->buffer.vector,
							  rows, n);
		else if (column->attno <= set->progress.nknown)
			hgj_page_read_known(set, column, rows, n, &place);
	}
	/* how far these rows are known says nothing about the others */
	set->progress = progress;
	set->before_walk = before_walk;
}
