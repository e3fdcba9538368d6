/*-------------------------------------------------------------------------
 *
 * page_attributes.c
 *	  Where the attributes of tuples lie, and what is read on the way there:
 *	  steps 1 to 4 of page_columns.c, which owns everything.
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

/* Many rows are one in so many. */
#define HGJ_MANY_TAKEN	3

static inline uint32
position(const HgjPagePlace *place, uint32 i, uint32 row)
{
	return place->by_row ? row : place->first + i;
}

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

/* Does some tuple of the page have the attribute as NULL? */
static inline bool
may_be_null(const HgjPageColumns *set, AttrNumber attno)
{
	return set->kind == HGJ_TUPLES_COMPLETE && att_isnull(attno - 1, set->common);
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
			if (may_be_null(set, attno))
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

/* Loops over rows, which are all or those of a list. */
#define FOR_ROWS(statement) \
	do { \
		if (rows == NULL) \
			for (uint32 i = 0; i < n; i++) \
			{ \
				uint32		row = i; \
				statement; \
			} \
		else \
			for (uint32 i = 0; i < n; i++) \
			{ \
				uint32		row = rows[i]; \
				statement; \
			} \
	} while (0)

#define READ_KNOWN(type) \
	do { \
		type	   *values = (type *) place->vector->values; \
		if (place->by_row) \
			FOR_ROWS(values[row] = *(const type *) (data[row] + offset)); \
		else \
			FOR_ROWS(values[place->first + i] = \
					 *(const type *) (data[row] + offset)); \
	} while (0)

/*
 * Step 2 of page_columns.c: the column at an offset that is known, of n rows
 * (NULL: the first).
 */
void
hgj_page_read_known(const HgjPageColumns *set, const HgjScanColumn *column,
					const uint32 *rows, uint32 n, const HgjPagePlace *place)
{
	const char *const *data = set->data;
	int32		offset = set->offsets[column->attno - 1];

	hgj_prefetch_more(set->prefetch, HGJ_PREFETCH_LINES);
	if (!column->attbyval)
	{
		const char **values = (const char **) place->vector->values;

		FOR_ROWS(values[position(place, i, row)] = data[row] + offset);
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

static inline void
put_value(const HgjScanColumn *column, const HgjPagePlace *place, uint32 at,
		  const char *address)
{
	char	   *value = (char *) place->vector->values + (Size) at * column->width;

	hgj_store(value, column->width,
			  column->attbyval ? hgj_load(address, column->width) :
			  PointerGetDatum(address));
}

static inline void
put_null(const HgjScanColumn *column, const HgjPagePlace *place, uint32 at)
{
	hgj_vector_set_null(place->vector, at);
	hgj_store((char *) place->vector->values + (Size) at * column->width,
			  column->width, 0);
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
	FOR_ROWS(if (data[row][offset] != *first) { same = false; break; });
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

		if (may_be_null(set, attno))
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

/* Where the attribute is, if what comes before it ends at `at`. */
static inline const char *
attribute_start(const HgjHeapAttribute *att, const char *at)
{
	/* a varlena with a short header is not aligned; padding is zeros */
	if (att->attlen == -1 && *(const uint8 *) at != 0)
		return at;
	return (const char *) (((uintptr_t) at + att->align_mask) &
						   ~(uintptr_t) att->align_mask);
}

static inline const char *
attribute_end(const HgjHeapAttribute *att, const char *start)
{
	if (att->attlen > 0)
		return start + att->attlen;
	if (att->attlen == -1)
		return start + VARSIZE_ANY(start);
	return start + strlen(start) + 1;
}

/*
 * Step 3 of page_columns.c, for the attribute at the frontier, in n rows: column is
 * what it is, or NULL if nobody wants it.  Written out for attributes of 4 and 8
 * bytes and varlena ones, because compilers then know the lengths.
 */
static inline void
step_over_rows(HgjPageColumns *set, HgjHeapAttribute att, bool nulls,
			   const HgjScanColumn *column, const uint32 *rows, uint32 n,
			   const HgjPagePlace *place)
{
	int			byte = (set->progress.frontier - 1) / 8;
	bits8		bit = 1 << ((set->progress.frontier - 1) % 8);

	for (uint32 i = 0; i < n; i++)
	{
		uint32		row = rows ? rows[i] : i;
		const char *start;

		if (nulls && (set->bits[row][byte] & bit) == 0)
		{
			if (column)
				put_null(column, place, position(place, i, row));
			continue;
		}
		start = attribute_start(&att, set->at[row]);
		if (column)
			put_value(column, place, position(place, i, row), start);
		set->at[row] = attribute_end(&att, start);
	}
}

static inline void
step_over(HgjPageColumns *set, HgjHeapAttribute att, bool nulls,
		  const HgjScanColumn *column, const uint32 *rows, uint32 n,
		  const HgjPagePlace *place)
{
	if (rows)
		step_over_rows(set, att, nulls, column, rows, n, place);
	else
		step_over_rows(set, att, nulls, column, NULL, n, place);
}

static void
step_over_attribute(HgjPageColumns *set, const HgjScanColumn *column,
					const uint32 *rows, uint32 n, const HgjPagePlace *place)
{
	HgjHeapAttribute att = set->attributes[set->progress.frontier - 1];
	bool		nulls = may_be_null(set, set->progress.frontier);

	if (att.attlen == 4 && !nulls)
	{
		att.attlen = 4;
		step_over(set, att, false, column, rows, n, place);
	}
	else if (att.attlen == 8 && !nulls)
	{
		att.attlen = 8;
		step_over(set, att, false, column, rows, n, place);
	}
	else if (att.attlen == -1 && !nulls)
	{
		att.attlen = -1;
		step_over(set, att, false, column, rows, n, place);
	}
	else
		step_over(set, att, nulls, column, rows, n, place);
	set->progress.frontier++;
}

/*
 * Step 3 of page_columns.c: walk over attributes up to `last`, for n rows.  What is
 * wanted goes to targets, or, where there are none, to the columns' buffers, with
 * others that come by.
 */
void
hgj_page_walk(HgjPageColumns *set, AttrNumber last, const uint32 *rows, uint32 n,
			  const HgjPageTarget *targets)
{
	HgjPageProgress *progress = &set->progress;
	bool		all = !targets && set->taken * HGJ_MANY_TAKEN >= set->seen;

	if (!progress->walking)
	{
		for (uint32 i = 0; i < n; i++)
		{
			uint32		row = rows ? rows[i] : i;

			set->at[row] = set->data[row] + progress->offset;
		}
		set->before_walk = *progress;
		progress->walking = true;
	}
	while (progress->frontier <= last)
	{
		AttrNumber	attno = progress->frontier;
		int			c = set->by_attno[attno - 1];
		HgjScanColumn *column = c < 0 ? NULL : set->columns[c];
		HgjPagePlace place = {0};

		hgj_prefetch_more(set->prefetch, HGJ_PREFETCH_LINES);
		if (column && (column->read || attno <= progress->nknown ||
					   (targets ? targets[c].vector == NULL :
						!all && !column->wanted)))
			column = NULL;
		if (column && targets)
			place = (HgjPagePlace) {targets[c].vector, targets[c].first, false};
		else if (column)
			place = hgj_page_begin_buffer(column);
		step_over_attribute(set, column, rows, n, &place);
	}
}

/* Step 4 of page_columns.c, for one tuple. */
static void
walk_tuple(HgjPageColumns *set, uint32 row)
{
	HeapTupleHeader tuple = set->tuples[row];
	const char *at = (const char *) tuple + tuple->t_hoff;
	AttrNumber	natts = Min(HeapTupleHeaderGetNatts(tuple), set->natts);
	bool		bitmap = (tuple->t_infomask & HEAP_HASNULL) != 0;

	for (AttrNumber attno = 1; attno <= set->natts; attno++)
	{
		const HgjHeapAttribute *att = &set->attributes[attno - 1];
		int			c = set->by_attno[attno - 1];
		const HgjScanColumn *column = c < 0 ? NULL : set->columns[c];
		HgjPagePlace place = {0};

		if (column)
			place.vector = &set->columns[c]->buffer.vector;
		if (attno > natts)
		{
			bool		isnull = true;
			Datum		value = 0;

			if (column)
				value = getmissingattr(set->desc, attno, &isnull);
			if (column && isnull)
				put_null(column, &place, row);
			else if (column)
				hgj_store((char *) place.vector->values + (Size) row * column->width,
						  column->width, value);
		}
		else if (bitmap && att_isnull(attno - 1, tuple->t_bits))
		{
			if (column)
				put_null(column, &place, row);
		}
		else
		{
			at = attribute_start(att, at);
			if (column)
				put_value(column, &place, row, at);
			at = attribute_end(att, at);
		}
	}
}

/* Step 4 of page_columns.c: all columns of all tuples. */
void
hgj_page_walk_tuples(HgjPageColumns *set)
{
	if (set->begun)
		return;
	set->begun = true;
	for (int c = 0; c < set->ncols; c++)
		(void) hgj_page_begin_buffer(set->columns[c]);
	for (uint32 row = 0; row < set->ntuples; row++)
		walk_tuple(set, row);
}
