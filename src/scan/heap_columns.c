/*-------------------------------------------------------------------------
 *
 * heap_columns.c
 *	  Columns of the tuples of a page, into vectors.
 *
 * 1. At executor start: attributes before which everything has a fixed width lie
 *	  at the same offset in every tuple that has no NULL before them.
 * 2. Columns that lie so in all tuples at hand are read column by column, in a
 *	  loop that is one load and one store.
 * 3. What follows a varlena attribute lies at the same offset, too, if that
 *	  attribute happens to be as long in all tuples at hand: char(n), codes,
 *	  small numerics.  A look at its first byte in each tells.
 * 4. All other columns are found by walking over the attributes, from the first
 *	  one that is longer in some tuple than in others: attribute by attribute,
 *	  each for all tuples, so that every loop is simple.  Only attributes that
 *	  some tuple has as NULL need a look at bitmaps.
 * 5. If there is a tuple with fewer attributes than are wanted, every tuple is
 *	  walked over on its own.  An attribute that was added to the table after
 *	  the tuple has the value that the catalog keeps for it.
 *
 * Values that pass by reference stay where they are: vectors get pointers into
 * the page (or, for a missing one, into the table's descriptor).  The caller
 * keeps the page pinned.
 *
 * Memory: the set is palloc'd in the context that is current at its making.  No
 * locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "scan/heap_columns.h"

#define HGJ_LOAD_COST	1.0
#define HGJ_STEP_COST	2.5

/* The bitmap of a tuple that has none. */
static const bits8 no_nulls[BITMAPLEN(MaxHeapAttributeNumber)] = {
	[0 ... BITMAPLEN(MaxHeapAttributeNumber) - 1] = 0xFF
};

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

/*
 * Step 1.  A varlena attribute begins at a fixed offset if it is aligned there:
 * then there is no padding before it, whatever its header.
 */
static void
find_offsets(HgjHeapColumns *set)
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

/*
 * Prepare to read these user columns, which may be in any order and repeated.
 * positions[i] becomes the place of attnos[i] in set->columns.
 */
void
hgj_heap_columns_init(HgjHeapColumns *set, TupleDesc desc,
					  const AttrNumber *attnos, int nattnos, int *positions)
{
	memset(set, 0, sizeof(*set));
	set->desc = desc;
	set->ncols = nattnos;
	set->columns = palloc0(mul_size(nattnos + 1, sizeof(HgjHeapColumn)));
	for (int i = 0; i < nattnos; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, attnos[i] - 1);
		HgjHeapColumn *column;

		positions[i] = 0;
		for (int j = 0; j < nattnos; j++)
			if (attnos[j] < attnos[i] || (attnos[j] == attnos[i] && j < i))
				positions[i]++;
		column = &set->columns[positions[i]];
		column->attno = attnos[i];
		column->attbyval = att->attbyval;
		column->width = att->attbyval ? att->attlen : sizeof(Datum);
		set->natts = Max(set->natts, attnos[i]);
	}

	set->attributes = palloc0(mul_size(Max(set->natts, 1),
									   sizeof(HgjHeapAttribute)));
	find_offsets(set);

	set->data = palloc(MaxHeapTuplesPerPage * sizeof(char *));
	set->bits = palloc(MaxHeapTuplesPerPage * sizeof(bits8 *));
	set->at = palloc(MaxHeapTuplesPerPage * sizeof(char *));
	set->common = palloc0(BITMAPLEN(set->natts) + 1);
}

/*
 * Nanoseconds for the columns of a tuple, roughly: loads, and steps over the
 * attributes that lie elsewhere in every tuple.
 */
double
hgj_heap_columns_cost(const HgjHeapColumns *set)
{
	return set->ncols * HGJ_LOAD_COST +
		Max(set->natts - Max(set->nfixed, 1) + 1, 0) * HGJ_STEP_COST *
		(set->natts > set->nfixed);
}

/*
 * Where do the tuples' columns begin, and which attributes are NULL in none of
 * them?  All have set->natts attributes.
 */
static void
find_data(HgjHeapColumns *set, const HeapTupleHeader *tuples, uint32 ntuples)
{
	int			nbytes = BITMAPLEN(set->natts);

	memset(set->common, 0xFF, nbytes);
	for (uint32 i = 0; i < ntuples; i++)
	{
		HeapTupleHeader tuple = tuples[i];

		set->data[i] = (const char *) tuple + tuple->t_hoff;
		set->bits[i] = no_nulls;
		if ((tuple->t_infomask & HEAP_HASNULL) == 0)
			continue;
		set->bits[i] = tuple->t_bits;
		for (int b = 0; b < nbytes; b++)
			set->common[b] &= tuple->t_bits[b];
	}
}

/* Step 2: the column at `offset` from each of `data`. */
#define READ_FIXED(type) \
	do { \
		type	   *values = (type *) target->vector->values + target->first; \
		for (uint32 i = 0; i < ntuples; i++) \
			values[i] = *(const type *) (data[i] + offset); \
	} while (0)

static void
read_fixed(const HgjHeapColumn *column, const char *const *data, int32 offset,
		   uint32 ntuples, const HgjHeapTarget *target)
{
	if (!column->attbyval)
	{
		const char **values = (const char **) target->vector->values +
			target->first;

		for (uint32 i = 0; i < ntuples; i++)
			values[i] = data[i] + offset;
		return;
	}
	switch (column->width)
	{
		case 1:
			READ_FIXED(uint8);
			break;
		case 2:
			READ_FIXED(uint16);
			break;
		case 4:
			READ_FIXED(uint32);
			break;
		default:
			READ_FIXED(uint64);
			break;
	}
}

static inline void
put_value(const HgjHeapColumn *column, const HgjHeapTarget *target, uint32 i,
		  const char *address)
{
	char	   *value = (char *) target->vector->values +
		(Size) (target->first + i) * column->width;

	hgj_store(value, column->width,
			  column->attbyval ? hgj_load(address, column->width) :
			  PointerGetDatum(address));
}

static inline void
put_null(const HgjHeapColumn *column, const HgjHeapTarget *target, uint32 i)
{
	hgj_vector_set_null(target->vector, target->first + i);
	hgj_store((char *) target->vector->values +
			  (Size) (target->first + i) * column->width, column->width, 0);
}

/*
 * The length of the short varlena values at `offset` from each of `data`; 0 if
 * they are of several lengths, or not short.
 */
static int32
common_length(const char *const *data, int32 offset, uint32 ntuples)
{
	const char *first = data[0] + offset;

	if (!VARATT_IS_1B(first) || VARATT_IS_1B_E(first))
		return 0;
	for (uint32 i = 1; i < ntuples; i++)
		if (data[i][offset] != *first)
			return 0;
	return VARSIZE_1B(first);
}

/*
 * Step 3: columns from c on, of attributes from *attno on, the first of which
 * begins behind *offset from each of `data`.  Returns the first column that is
 * not read yet; *attno and *offset move on to the attribute where that ended.
 */
static int
read_uniform(const HgjHeapColumns *set, const char *const *data, bool bitmaps,
			 AttrNumber *attno, int32 *offset, int c,
			 const HgjHeapTarget *targets, uint32 ntuples,
			 HgjPrefetch *prefetch)
{
	for (; c < set->ncols; (*attno)++)
	{
		const HgjHeapAttribute *att = &set->attributes[*attno - 1];
		int32		start = *offset;
		int32		length = att->attlen;

		if (bitmaps && att_isnull(*attno - 1, set->common))
			break;
		if (length > 0)
			start = (start + att->align_mask) & ~(int32) att->align_mask;
		else if (length == -1)
			length = common_length(data, start, ntuples);
		if (length <= 0)
			break;
		hgj_prefetch_more(prefetch, HGJ_PREFETCH_LINES);
		for (; set->columns[c].attno == *attno; c++)
			read_fixed(&set->columns[c], data, start, ntuples, &targets[c]);
		*offset = start + length;
	}
	return c;
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
 * Step 4, for one attribute of all tuples: of the columns from c on, those that
 * it is; `at` moves on.  Written out for attributes of 4 and 8 bytes and
 * varlena ones, because compilers then know the lengths.
 */
static inline void
step_over(HgjHeapColumns *set, AttrNumber attno, HgjHeapAttribute att,
		  bool nulls, int c, const HgjHeapTarget *targets, uint32 ntuples)
{
	const HgjHeapColumn *column = &set->columns[c];
	const HgjHeapTarget *target = &targets[c];
	bool		wanted = column->attno == attno;
	int			byte = (attno - 1) / 8;
	bits8		bit = 1 << ((attno - 1) % 8);

	for (uint32 i = 0; i < ntuples; i++)
	{
		const char *start;

		if (nulls && (set->bits[i][byte] & bit) == 0)
		{
			if (wanted)
				put_null(column, target, i);
			continue;
		}
		start = attribute_start(&att, set->at[i]);
		if (wanted)
			put_value(column, target, i, start);
		set->at[i] = attribute_end(&att, start);
	}
}

static void
step_over_attribute(HgjHeapColumns *set, AttrNumber attno, bool nulls, int c,
					const HgjHeapTarget *targets, uint32 ntuples)
{
	HgjHeapAttribute att = set->attributes[attno - 1];

	if (att.attlen == 4 && !nulls)
	{
		att.attlen = 4;
		step_over(set, attno, att, false, c, targets, ntuples);
	}
	else if (att.attlen == 8 && !nulls)
	{
		att.attlen = 8;
		step_over(set, attno, att, false, c, targets, ntuples);
	}
	else if (att.attlen == -1 && !nulls)
	{
		att.attlen = -1;
		step_over(set, attno, att, false, c, targets, ntuples);
	}
	else
		step_over(set, attno, att, nulls, c, targets, ntuples);
}

/* Columns from c on that are newer than the tuple. */
static void
put_missing(const HgjHeapColumns *set, int c, const HgjHeapTarget *targets,
			uint32 i)
{
	for (; c < set->ncols; c++)
	{
		const HgjHeapColumn *column = &set->columns[c];
		bool		isnull;
		Datum		value = getmissingattr(set->desc, column->attno, &isnull);

		if (isnull)
			put_null(column, &targets[c], i);
		else
			hgj_store((char *) targets[c].vector->values +
					  (Size) (targets[c].first + i) * column->width,
					  column->width, value);
	}
}

/* Step 5, for one tuple. */
static void
walk_tuple(const HgjHeapColumns *set, HeapTupleHeader tuple,
		   const HgjHeapTarget *targets, uint32 i)
{
	const char *at = (const char *) tuple + tuple->t_hoff;
	AttrNumber	natts = Min(HeapTupleHeaderGetNatts(tuple), set->natts);
	bool		bitmap = (tuple->t_infomask & HEAP_HASNULL) != 0;
	int			c = 0;

	for (AttrNumber attno = 1; attno <= natts; attno++)
	{
		const HgjHeapAttribute *att = &set->attributes[attno - 1];

		if (bitmap && att_isnull(attno - 1, tuple->t_bits))
		{
			for (; set->columns[c].attno == attno; c++)
				put_null(&set->columns[c], &targets[c], i);
			continue;
		}
		at = attribute_start(att, at);
		for (; set->columns[c].attno == attno; c++)
			put_value(&set->columns[c], &targets[c], i, at);
		at = attribute_end(att, at);
	}
	put_missing(set, c, targets, i);
}

/* A column that is there again: the same values. */
static void
copy_column(const HgjHeapTarget *from, const HgjHeapTarget *to, uint32 ntuples)
{
	uint8		width = from->vector->width;

	memcpy((char *) to->vector->values + (Size) to->first * width,
		   (char *) from->vector->values + (Size) from->first * width,
		   (Size) ntuples * width);
	for (uint32 i = 0; from->vector->has_nulls && i < ntuples; i++)
		if (hgj_vector_is_null(from->vector, from->first + i))
			hgj_vector_set_null(to->vector, to->first + i);
}

/*
 * Read the set's columns of up to MaxHeapTuplesPerPage tuples of a pinned page;
 * targets[c] says where those of columns[c] go.
 */
void
hgj_heap_columns_read(HgjHeapColumns *set, const HeapTupleHeader *tuples,
					  uint32 ntuples, HgjTupleKind kind,
					  const HgjHeapTarget *targets, HgjPrefetch *prefetch)
{
	const char *const *data = (const char *const *) tuples;
	int32		start = HGJ_PLAIN_HOFF;
	AttrNumber	fixed = set->nfixed;
	AttrNumber	attno;
	int			c = 0;

	if (set->ncols == 0 || ntuples == 0)
		return;
	if (kind == HGJ_TUPLES_ANY)
	{
		for (uint32 i = 0; i < ntuples; i++)
			walk_tuple(set, tuples[i], targets, i);
		return;
	}
	if (kind == HGJ_TUPLES_COMPLETE)
	{
		find_data(set, tuples, ntuples);
		data = set->data;
		start = 0;
		for (attno = 1; attno <= fixed; attno++)
			if (att_isnull(attno - 1, set->common))
				break;
		fixed = attno - 1;
	}

	for (; c < set->ncols && set->columns[c].attno <= fixed; c++)
	{
		hgj_prefetch_more(prefetch, HGJ_PREFETCH_LINES);
		read_fixed(&set->columns[c], data,
				   start + set->attributes[set->columns[c].attno - 1].offset,
				   ntuples, &targets[c]);
	}
	if (c == set->ncols)
		return;

	/* the last fixed one may have any length: begin with it */
	attno = Max(fixed, 1);
	start += Max(set->attributes[attno - 1].offset, 0);
	c = read_uniform(set, data, kind == HGJ_TUPLES_COMPLETE, &attno, &start, c,
					 targets, ntuples, prefetch);
	if (c == set->ncols)
		return;
	for (uint32 i = 0; i < ntuples; i++)
		set->at[i] = data[i] + start;
	for (; c < set->ncols; attno++)
	{
		bool		nulls = kind == HGJ_TUPLES_COMPLETE &&
			att_isnull(attno - 1, set->common);

		hgj_prefetch_more(prefetch, HGJ_PREFETCH_LINES);
		step_over_attribute(set, attno, nulls, c, targets, ntuples);
		if (set->columns[c].attno == attno)
			for (c++; set->columns[c].attno == attno; c++)
				copy_column(&targets[c - 1], &targets[c], ntuples);
	}
}
