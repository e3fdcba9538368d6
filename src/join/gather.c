/*-------------------------------------------------------------------------
 *
 * gather.c
 *	  From pairs of row numbers to column vectors.
 *
 * A pair is a row of the outer batch and a record of the build side's row
 * store.  Two layouts:
 *
 * 1. Dense: value i of every column belongs to pair i.  Outer values are copied
 *	  from the batch's vectors, inner ones from the records.
 * 2. In place: the value of a pair lies at the position of its outer row, which
 *	  may therefore be in one pair only.  The outer columns are the batch's own
 *	  vectors, not copied at all, and only inner values move.
 *
 * Records are visited in the order of the pairs, which is random in memory: a
 * block of them is prefetched while the block before is copied, and all columns
 * of a record are taken while its line is near.
 *
 * Memory: buffers in the query's context, kept from portion to portion.  No
 * locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "join/gather.h"
#include "join/join_state.h"

/*
 * Records that are prefetched at a time; into the L2 cache, because there are
 * more requests under way to it than to L1.
 */
#define HGJ_GATHER_BLOCK	64
#define HGJ_PREFETCH_RECORD(p)	__builtin_prefetch((p), 0, 2)

/* Make room for every column of both sides. */
void
hgj_pair_columns_init(HgjPairColumns *pairs, const HgjJoinState *join)
{
	int			max = Max(join->js.outer.ncols + join->js.inner.ncols, 1);

	pairs->join = join;
	pairs->n = 0;
	pairs->columns = palloc0(mul_size(max, sizeof(HgjPairColumn)));
	pairs->vectors = palloc0(mul_size(max, sizeof(HgjVector *)));
	pairs->numbers = palloc(mul_size(max, sizeof(int)));
	for (int c = 0; c < max; c++)
		pairs->numbers[c] = -1;
}

/* The column of a side that is this one of custom_scan_tlist, or -1: they are in order. */
int
hgj_scan_column(const HgjSource *source, AttrNumber scan_attno)
{
	int			first = 0;
	int			end = source->ncols;

	while (first < end)
	{
		int			middle = first + (end - first) / 2;

		if (source->columns[middle].scan_attno < scan_attno)
			first = middle + 1;
		else
			end = middle;
	}
	return first < source->ncols && source->columns[first].scan_attno == scan_attno ?
		first : -1;
}

/*
 * The number among `pairs` of a column of custom_scan_tlist, added if it is
 * not there.  -1: the join does not carry it.
 */
int
hgj_pair_column(HgjPairColumns *pairs, AttrNumber scan_attno)
{
	const HgjSource *source = &pairs->join->js.outer;
	int			c = hgj_scan_column(source, scan_attno);
	bool		inner = c < 0;
	HgjPairColumn *column;
	int		   *number;

	if (inner)
	{
		source = &pairs->join->js.inner;
		c = hgj_scan_column(source, scan_attno);
	}
	if (c < 0)
		return -1;
	number = &pairs->numbers[inner ? pairs->join->js.outer.ncols + c : c];
	if (*number >= 0)
		return *number;
	column = &pairs->columns[pairs->n];
	column->inner = inner;
	column->column = c;
	column->width = source->columns[c].width;
	pairs->vectors[pairs->n] = &column->buffer.vector;
	*number = pairs->n++;
	return *number;
}

/* The same as an HgjInputLookup. */
int
hgj_pair_lookup(void *pairs, const Var *var)
{
	if (var->varno != INDEX_VAR)
		return -1;
	return hgj_pair_column(pairs, var->varattno);
}

/* One column of some records, to positions[i], or to first + i. */
static void
copy_records(const HgjStoredColumn *column, char *const *records,
			 const uint32 *positions, uint32 first, uint32 n, HgjVector *into)
{
	uint32		offset = column->offset;

#define POSITION(i) (positions ? positions[i] : first + (i))
	switch (hgj_stored_kind(column))
	{
		case HGJ_STORED_CODES:
			for (uint32 i = 0; i < n; i++)
				((Datum *) into->values)[POSITION(i)] =
					hgj_stored_datum(column, *(const uint32 *) (records[i] + offset));
			break;
		case 8:
			for (uint32 i = 0; i < n; i++)
				((uint64 *) into->values)[POSITION(i)] = *(const uint64 *) (records[i] + offset);
			break;
		case HGJ_STORED_PLACED_CODES:
			for (uint32 i = 0; i < n; i++)
				((Datum *) into->values)[POSITION(i)] =
					hgj_placed_code(column, *(const uint64 *) (records[i] + offset));
			break;
		case HGJ_STORED_PLACES:
			for (uint32 i = 0; i < n; i++)
				((Datum *) into->values)[POSITION(i)] =
					hgj_placed_datum(column, *(const uint64 *) (records[i] + offset));
			break;
		case 4:
			for (uint32 i = 0; i < n; i++)
				((uint32 *) into->values)[POSITION(i)] = *(const uint32 *) (records[i] + offset);
			break;
		case 2:
			for (uint32 i = 0; i < n; i++)
				((uint16 *) into->values)[POSITION(i)] = *(const uint16 *) (records[i] + offset);
			break;
		default:
			for (uint32 i = 0; i < n; i++)
				((uint8 *) into->values)[POSITION(i)] = *(const uint8 *) (records[i] + offset);
			break;
	}
	if (!column->has_nulls)
		return;
	for (uint32 i = 0; i < n; i++)
		if (hgj_record_is_null(column, records[i]))
			hgj_vector_set_null(into, POSITION(i));
#undef POSITION
}

/* All inner columns of the records rows[0 .. n). */
static void
gather_records(const HgjRowStore *store, HgjPairColumns *pairs,
			   const uint32 *rows, const uint32 *positions, uint32 n)
{
	char	   *records[2][HGJ_GATHER_BLOCK];
	uint32		ready = Min(n, HGJ_GATHER_BLOCK);
	int			block = 0;

	for (uint32 i = 0; i < ready; i++)
	{
		records[0][i] = hgj_row_store_record(store, rows[i]);
		HGJ_PREFETCH_RECORD(records[0][i]);
	}
	for (uint32 done = 0; done < n; done += HGJ_GATHER_BLOCK, block ^= 1)
	{
		uint32		these = ready;

		ready = Min(n - done - these, HGJ_GATHER_BLOCK);
		for (uint32 i = 0; i < ready; i++)
		{
			records[block ^ 1][i] = hgj_row_store_record(store,
														 rows[done + these + i]);
			HGJ_PREFETCH_RECORD(records[block ^ 1][i]);
		}
		for (int c = 0; c < pairs->n; c++)
			if (pairs->columns[c].inner)
				copy_records(&store->columns[pairs->columns[c].column],
							 records[block], positions ? positions + done : NULL,
							 done, these, &pairs->columns[c].buffer.vector);
	}
}

static bool
wants_inner(const HgjPairColumns *pairs)
{
	for (int c = 0; c < pairs->n; c++)
		if (pairs->columns[c].inner)
			return true;
	return false;
}

/*
 * Fill the columns for n pairs, densely.  outer_rows or inner_rows NULL: that
 * side is missing, and its columns are NULL.
 */
void
hgj_gather_pairs(HgjPairColumns *pairs, const uint32 *outer_rows,
				 const uint32 *inner_rows, uint32 n)
{
	const HgjJoinState *join = pairs->join;

	for (int c = 0; c < pairs->n; c++)
	{
		HgjPairColumn *column = &pairs->columns[c];
		HgjVector  *vector = &column->buffer.vector;

		hgj_buffer_reserve(join->js.context, &column->buffer, column->width, n);
		pairs->vectors[c] = vector;
		if ((column->inner ? inner_rows : outer_rows) == NULL)
			hgj_vector_all_null(vector, n);
		else if (!column->inner)
		{
			const HgjVector *from = &join->probing.outer_batch->vectors[column->column];

			hgj_vector_gather(vector, 0, from, outer_rows, n);
		}
	}
	if (inner_rows && wants_inner(pairs))
		gather_records(&join->js.build->rows, pairs, inner_rows, NULL, n);
}

/*
 * Fill the columns for n pairs, each at the position of its outer row; no outer
 * row may be there twice.  inner_rows NULL: the inner columns are NULL.
 */
void
hgj_gather_in_place(HgjPairColumns *pairs, const uint32 *outer_rows,
					const uint32 *inner_rows, uint32 n)
{
	const HgjJoinState *join = pairs->join;
	uint32		positions = join->probing.outer_batch->nrows;

	for (int c = 0; c < pairs->n; c++)
	{
		HgjPairColumn *column = &pairs->columns[c];

		if (!column->inner)
		{
			pairs->vectors[c] = &join->probing.outer_batch->vectors[column->column];
			continue;
		}
		hgj_buffer_reserve(join->js.context, &column->buffer, column->width,
						   positions);
		pairs->vectors[c] = &column->buffer.vector;
		if (inner_rows == NULL)
			hgj_vector_all_null(&column->buffer.vector, positions);
	}
	if (inner_rows && wants_inner(pairs))
		gather_records(&join->js.build->rows, pairs, inner_rows,
					   outer_rows, n);
}
