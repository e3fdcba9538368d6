/*-------------------------------------------------------------------------
 *
 * page_walk.c
 *	  Attributes that lie elsewhere in every tuple: steps 3 and 4 of
 *	  page_columns.c, which owns everything.
 *
 * What is between two attributes that somebody reads mostly is a run of varlena
 * values with short headers, and attributes of fixed width behind them.  So the
 * walk goes by stretches, each in one loop over the rows:
 *
 * 1. A run of varlena attributes that nobody reads is passed by adding up their
 *	  lengths, all of a row's before the next row's.  Rows do not depend on each
 *	  other, so that a processor has several of them under way.  A header that is
 *	  not short is looked at out of line.
 * 2. The attributes of fixed width behind a run keep their distances from the
 *	  first of them, as long as none is aligned more strictly than that one.
 *	  They are read as columns at known offsets are.
 * 3. An attribute that some tuple has as NULL is passed on its own, with a look at
 *	  each tuple's bitmap.
 *
 * No memory of its own, no locks; the caller keeps the page pinned.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "scan/page_attributes.h"

/* Many rows are one in so many. */
#define HGJ_MANY_TAKEN	3

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

/* ---- step 3 of page_columns.c ------------------------------------------- */

/* A walk that is under way. */
typedef struct Walk
{
	HgjPageColumns *set;
	AttrNumber	last;			/* the attribute where it ends */
	AttrNumber	taken;			/* what somebody reads has been read up to here */
	bool		all;			/* every column that it comes by is read */
	const uint32 *rows;			/* NULL: the first n */
	uint32		n;
	const HgjPageTarget *targets;
} Walk;

/* The column that is to be read when the walk comes by this attribute, or NULL. */
static HgjScanColumn *
column_to_read(const Walk *walk, AttrNumber attno)
{
	const HgjPageColumns *set = walk->set;
	int			c = set->by_attno[attno - 1];
	HgjScanColumn *column;

	if (c < 0 || attno <= walk->taken)
		return NULL;
	column = set->columns[c];
	if (column->read || attno <= set->progress.nknown ||
		(walk->targets ? walk->targets[c].vector == NULL :
		 !walk->all && !column->wanted))
		return NULL;
	return column;
}

/* Where its values go. */
static HgjPagePlace
place_of(const Walk *walk, HgjScanColumn *column)
{
	const HgjPageTarget *target;

	if (walk->targets == NULL)
		return hgj_page_begin_buffer(column);
	target = &walk->targets[walk->set->by_attno[column->attno - 1]];
	return (HgjPagePlace) {target->vector, target->first, false};
}

static void
read_at(const Walk *walk, HgjScanColumn *column, int32 offset)
{
	HgjPagePlace place = place_of(walk, column);

	hgj_page_read_rows(column, (const char *const *) walk->set->at, offset,
					   walk->rows, walk->n, &place);
}

/* The end of a varlena value that may have any header, or padding in front. */
static pg_noinline const char *
end_of_any(const char *at, uint8 align_mask)
{
	const HgjHeapAttribute att = {-1, align_mask, -1};

	return attribute_end(&att, attribute_start(&att, at));
}

/*
 * Behind `length` varlena values, the first of attributes atts, where the next
 * attribute begins (NULL: where they end).
 */
static inline const char *
pass_run(const HgjHeapAttribute *atts, int length, const HgjHeapAttribute *next,
		 const char *at)
{
	for (int i = 0; i < length; i++)
		at = likely(VARATT_IS_1B(at) && !VARATT_IS_1B_E(at)) ?
			at + VARSIZE_1B(at) : end_of_any(at, atts[i].align_mask);
	return next ? attribute_start(next, at) : at;
}

/*
 * Let set->at be where the attribute `next` begins in each row (NULL: where the
 * run ends), behind a run of so many varlena ones that begins at the frontier.
 */
static void
pass_runs(const Walk *walk, int length, const HgjHeapAttribute *next)
{
	HgjPageColumns *set = walk->set;
	HgjPageProgress *progress = &set->progress;
	const HgjHeapAttribute *atts = &set->attributes[progress->frontier - 1];
	const char *const *from = progress->walking ? set->at : set->data;
	const char **at = set->at;
	const uint32 *rows = walk->rows;
	uint32		n = walk->n;
	int32		offset = progress->offset;

	HGJ_FOR_ROWS(at[row] = pass_run(atts, length, next, from[row] + offset));
	progress->walking = true;
	progress->offset = 0;
	progress->frontier += length;
}

/* Is the attribute in every tuple, and its length in its type or header? */
static inline bool
is_plain(const HgjPageColumns *set, AttrNumber attno)
{
	return set->attributes[attno - 1].attlen >= -1 && !hgj_page_may_be_null(set, attno);
}

/* Steps 1 and 2, from the frontier on, which is plain. */
static void
pass_stretch(Walk *walk)
{
	HgjPageColumns *set = walk->set;
	HgjPageProgress *progress = &set->progress;
	const HgjHeapAttribute *atts = set->attributes - 1;
	AttrNumber	next = progress->frontier;
	int32		offset = 0;

	while (next <= walk->last && atts[next].attlen == -1 && is_plain(set, next) &&
		   column_to_read(walk, next) == NULL)
		next++;
	if (next > walk->last || !is_plain(set, next))
	{
		pass_runs(walk, next - progress->frontier, NULL);
		walk->taken = next - 1;
		return;
	}
	pass_runs(walk, next - progress->frontier, &atts[next]);
	if (atts[next].attlen == -1)
	{
		/* its length is the next stretch's affair */
		read_at(walk, column_to_read(walk, next), 0);
		walk->taken = next;
		return;
	}
	for (uint8 strictest = atts[next].align_mask;
		 next <= walk->last && atts[next].attlen > 0 && is_plain(set, next) &&
		 atts[next].align_mask <= strictest; next++)
	{
		HgjScanColumn *column = column_to_read(walk, next);

		offset = (offset + atts[next].align_mask) & ~(int32) atts[next].align_mask;
		if (column)
			read_at(walk, column, offset);
		offset += atts[next].attlen;
	}
	progress->frontier = next;
	progress->offset = offset;
	walk->taken = next - 1;
}

/* Step 3, or an attribute that ends with a zero byte: the one at the frontier. */
static void
pass_one(Walk *walk)
{
	HgjPageColumns *set = walk->set;
	HgjPageProgress *progress = &set->progress;
	AttrNumber	attno = progress->frontier;
	HgjHeapAttribute att = set->attributes[attno - 1];
	const char *const *from = progress->walking ? set->at : set->data;
	HgjScanColumn *column = column_to_read(walk, attno);
	HgjPagePlace place = {0};
	bool		nulls = hgj_page_may_be_null(set, attno);

	if (column)
		place = place_of(walk, column);
	for (uint32 i = 0; i < walk->n; i++)
	{
		uint32		row = walk->rows ? walk->rows[i] : i;
		const char *at = from[row] + progress->offset;

		if (nulls && att_isnull(attno - 1, set->bits[row]))
		{
			if (column)
				put_null(column, &place, hgj_page_position(&place, i, row));
		}
		else
		{
			at = attribute_start(&att, at);
			if (column)
				put_value(column, &place, hgj_page_position(&place, i, row), at);
			at = attribute_end(&att, at);
		}
		set->at[row] = at;
	}
	progress->walking = true;
	progress->offset = 0;
	progress->frontier++;
	walk->taken = attno;
}

/*
 * Step 3 of page_columns.c: walk over attributes up to `last`, for n rows (NULL: the
 * first).  What is wanted goes to targets, or, where there are none, to the columns'
 * buffers, with others that come by.
 */
void
hgj_page_walk(HgjPageColumns *set, AttrNumber last, const uint32 *rows, uint32 n,
			  const HgjPageTarget *targets)
{
	HgjPageProgress *progress = &set->progress;
	Walk		walk = {
		.set = set,
		.last = last,
		.taken = progress->frontier - 1,
		.all = !targets && set->taken * HGJ_MANY_TAKEN >= set->seen,
		.rows = rows,
		.n = n,
		.targets = targets
	};

	if (!progress->walking)
		set->before_walk = *progress;
	while (walk.taken < last)
	{
		hgj_prefetch_more(set->prefetch, HGJ_PREFETCH_LINES);
		if (is_plain(set, progress->frontier))
			pass_stretch(&walk);
		else
			pass_one(&walk);
	}
}

/* ---- step 4 of page_columns.c ------------------------------------------- */

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
