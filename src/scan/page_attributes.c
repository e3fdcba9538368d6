/*-------------------------------------------------------------------------
 *
 * page_attributes.c
 *	  Attributes that lie at one offset in all tuples: steps 1 and 2 of
 *	  page_columns.c, which owns everything.
 *
 * No memory of its own, no locks; the caller keeps the page pinned.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "scan/page_attributes.h"

/* The bitmap of a tuple that has none. */
static const bits8 no_nulls[(MaxHeapAttributeNumber + 7) / 8] = {
	[0 ... (MaxHeapAttributeNumber + 7) / 8 - 1] = 0xFF
};

/*
 * Where do the tuples' columns begin, and which attributes are NULL in none of
 * them?  All tuples have set->natts attributes.
 */
static void
find_data(HgjPageColumns *set)
{
	int			nbytes = BITMAPLEN(set->natts);

	memset(set->common, 0xFF, nbytes);
	for (uint32 row = 0; row < set->ntuples; row++)
	{
		HeapTupleHeader tuple = set->tuples[row];

		set->starts[row] = (const char *) tuple + tuple->t_hoff;
		set->bits[row] = no_nulls;
		if ((tuple->t_infomask & HEAP_HASNULL) == 0)
			continue;
		set->bits[row] = tuple->t_bits;
		for (int b = 0; b < nbytes; b++)
			set->common[b] &= tuple->t_bits[b];
	}
}

/* Step 1 of page_columns.c, for the page at hand. */
void
hgj_page_begin_attributes(HgjPageColumns *set)
{
	HgjPageProgress *progress = &set->progress;
	int32		start = 0;

	if (set->begun)
		return;
	set->begun = true;
	progress->nknown = set->nfixed;
	progress->walking = false;
	if (set->kind == HGJ_TUPLES_COMPLETE)
	{
		find_data(set);
		set->data = set->starts;
		for (AttrNumber attno = set->nfixed; attno > 0; attno--)
			if (hgj_page_may_be_null(set, attno))
				progress->nknown = attno - 1;
	}
	else
	{
		set->data = (const char *const *) set->tuples;
		start = HGJ_PLAIN_HOFF;
	}
	for (int i = 0; i < progress->nknown; i++)
		set->offsets[i] = start + set->attributes[i].offset;

	/* the last fixed one may have any length: begin with it */
	progress->frontier = Max(progress->nknown, 1);
	progress->offset = start +
		Max(set->attributes[progress->frontier - 1].offset, 0);
}

#define READ_KNOWN(type) \
	do { \
		type	   *values = (type *) place->vector->values; \
		if (place->by_row) \
			HGJ_FOR_ROWS(values[row] = *(const type *) (data[row] + offset)); \
		else \
			HGJ_FOR_ROWS(values[place->first + i] = \
					 *(const type *) (data[row] + offset)); \
	} while (0)

/*
 * A column of n rows (NULL: the first), which lies behind data[row] by the same
 * offset in each.
 */
void
hgj_page_read_rows(const HgjScanColumn *column, const char *const *data,
				   int32 offset, const uint32 *rows, uint32 n,
				   const HgjPagePlace *place)
{
	if (!column->attbyval)
	{
		const char **values = (const char **) place->vector->values;

		HGJ_FOR_ROWS(values[hgj_page_position(place, i, row)] = data[row] + offset);
		return;
	}
	switch (column->width)
	{
		case 1:
			READ_KNOWN(uint8);
			break;
		case 2:
			READ_KNOWN(uint16);
			break;
		case 4:
			READ_KNOWN(uint32);
			break;
		default:
			READ_KNOWN(uint64);
			break;
	}
}

/* Step 2 of page_columns.c: the column at an offset that is known. */
void
hgj_page_read_known(const HgjPageColumns *set, const HgjScanColumn *column,
					const uint32 *rows, uint32 n, const HgjPagePlace *place)
{
	hgj_prefetch_more(set->prefetch, HGJ_PREFETCH_LINES);
	hgj_page_read_rows(column, set->data, set->offsets[column->attno - 1], rows, n,
					   place);
}

/*
 * The length of the short varlena values at the frontier; 0 if they are of several
 * lengths, or not short.
 */
static int32
common_length(const HgjPageColumns *set, const uint32 *rows, uint32 n)
{
	const char *const *data = set->data;
	int32		offset = set->progress.offset;
	const char *first = data[rows ? rows[0] : 0] + offset;
	bool		same = true;

	if (!VARATT_IS_1B(first) || VARATT_IS_1B_E(first))
		return 0;
	HGJ_FOR_ROWS(if (data[row][offset] != *first) { same = false; break; });
	return same ? VARSIZE_1B(first) : 0;
}

/* Step 2 of page_columns.c: is the attribute `last` at one offset in these rows? */
bool
hgj_page_is_known(HgjPageColumns *set, AttrNumber last, const uint32 *rows, uint32 n)
{
	HgjPageProgress *progress = &set->progress;

	while (progress->nknown < last && !progress->walking)
	{
		AttrNumber	attno = progress->frontier;
		const HgjHeapAttribute *att = &set->attributes[attno - 1];
		int32		start = progress->offset;
		int32		length = att->attlen;

		if (hgj_page_may_be_null(set, attno))
			break;
		if (length > 0)
			start = (start + att->align_mask) & ~(int32) att->align_mask;
		else if (length == -1)
			length = common_length(set, rows, n);
		if (length <= 0)
			break;
		hgj_prefetch_more(set->prefetch, HGJ_PREFETCH_LINES);
		set->offsets[attno - 1] = start;
		progress->nknown = Max(progress->nknown, attno);
		progress->offset = start + length;
		progress->frontier++;
	}
	return last <= progress->nknown;
}
