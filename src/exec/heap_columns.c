/*-------------------------------------------------------------------------
 *
 * heap_columns.c
 *	  Columns of the tuples of a page, into vectors.
 *
 * 1. At executor start: columns before which everything has a fixed width lie
 *	  at the same offset in every tuple that has no NULL before them.
 * 2. A tuple is regular if none of the attributes up to the last one wanted is
 *	  NULL or missing.  The fixed columns of regular tuples are read column by
 *	  column, in a loop that is one load and one store.
 * 3. Everything else is found by walking over the attributes: of a regular
 *	  tuple from the first one whose offset is not fixed, of other tuples from
 *	  the first one on, with their NULL bitmap.  An attribute that was added to
 *	  the table after the tuple has the value that the catalog keeps for it.
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

#include "exec/heap_columns.h"

/*
 * Find the fixed offsets.  A varlena column begins at a fixed offset if it is
 * aligned there: then there is no padding before it, whatever its header.
 */
static void
find_offsets(HgjHeapColumns *set)
{
	int32		offset = 0;
	bool		fixed = true;
	int			c = 0;

	for (AttrNumber attno = 1; attno <= set->natts; attno++)
	{
		const HgjHeapAttribute *att = &set->attributes[attno - 1];
		int32		aligned = att_align_nominal(offset, att->attalign);

		if (fixed && (att->attlen > 0 || aligned == offset))
			offset = aligned;
		else
			fixed = false;
		if (fixed)
		{
			set->walk_attno = attno;
			set->walk_offset = offset;
		}
		while (set->columns[c].attno == attno)
			set->columns[c++].offset = fixed ? offset : -1;
		if (fixed)
			set->nfixed = c;
		if (att->attlen > 0)
			offset += att->attlen;
		else
			fixed = false;
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
	for (int i = 0; i < set->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		set->attributes[i].attlen = att->attlen;
		set->attributes[i].attalign = att->attalign;
		set->attributes[i].attbyval = att->attbyval;
	}
	find_offsets(set);

	set->data = palloc(MaxHeapTuplesPerPage * sizeof(char *));
	set->regular = palloc(MaxHeapTuplesPerPage * sizeof(bool));
}

/* Are attributes 1 to natts (natts > 0) of a tuple with a bitmap not NULL? */
static bool
has_no_null(const bits8 *bits, AttrNumber natts)
{
	int			whole = natts / 8;
	bits8		rest = (bits8) ((1 << (natts % 8)) - 1);

	for (int i = 0; i < whole; i++)
		if (bits[i] != 0xFF)
			return false;
	return rest == 0 || (bits[whole] & rest) == rest;
}

/* Where do the tuples' columns begin?  True if all are regular. */
static bool
find_data(HgjHeapColumns *set, const HeapTupleHeader *tuples, uint32 ntuples)
{
	AttrNumber	natts = set->natts;
	bool		all = true;

	for (uint32 i = 0; i < ntuples; i++)
	{
		HeapTupleHeader tuple = tuples[i];

		set->data[i] = (const char *) tuple + tuple->t_hoff;
		set->regular[i] = HeapTupleHeaderGetNatts(tuple) >= natts &&
			((tuple->t_infomask & HEAP_HASNULL) == 0 ||
			 has_no_null(tuple->t_bits, natts));
		all &= set->regular[i];
	}
	return all;
}

/* A column at `offset` from `data`, of all tuples, or of the regular ones. */
#define READ_FIXED(type) \
	do { \
		type	   *values = (type *) target->vector->values + target->first; \
		if (regular == NULL) \
			for (uint32 i = 0; i < ntuples; i++) \
				values[i] = *(const type *) (data[i] + offset); \
		else \
			for (uint32 i = 0; i < ntuples; i++) \
				if (regular[i]) \
					values[i] = *(const type *) (data[i] + offset); \
	} while (0)

static void
read_fixed(const HgjHeapColumn *column, const char *const *data, int32 offset,
		   const bool *regular, uint32 ntuples, const HgjHeapTarget *target)
{
	if (!column->attbyval)
	{
		const char **values = (const char **) target->vector->values +
			target->first;

		for (uint32 i = 0; i < ntuples; i++)
			if (regular == NULL || regular[i])
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
	memset((char *) target->vector->values +
		   (Size) (target->first + i) * column->width, 0, column->width);
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

/*
 * Walk over tuple i from attribute `attno` at `offset` to the last one that is
 * wanted, for columns from c on.  bits: its NULL bitmap, if that matters.
 */
static void
walk_tuple(const HgjHeapColumns *set, const char *data, const bits8 *bits,
		   AttrNumber natts, AttrNumber attno, int32 start, int c,
		   const HgjHeapTarget *targets, uint32 i)
{
	uint32		offset = start;

	natts = Min(natts, set->natts);
	for (; attno <= natts; attno++)
	{
		const HgjHeapAttribute *att = &set->attributes[attno - 1];

		if (bits && att_isnull(attno - 1, bits))
		{
			for (; set->columns[c].attno == attno; c++)
				put_null(&set->columns[c], &targets[c], i);
			continue;
		}
		offset = att_align_pointer(offset, att->attalign, att->attlen,
								   data + offset);
		for (; set->columns[c].attno == attno; c++)
			put_value(&set->columns[c], &targets[c], i, data + offset);
		offset = att_addlength_pointer(offset, att->attlen, data + offset);
	}
	put_missing(set, c, targets, i);
}

/*
 * Read the set's columns of up to MaxHeapTuplesPerPage tuples of a pinned page;
 * targets[c] says where those of columns[c] go.
 *
 * plain: it is known that no tuple has a NULL bitmap, and that all have as many
 * attributes as the set wants.
 */
void
hgj_heap_columns_read(HgjHeapColumns *set, const HeapTupleHeader *tuples,
					  uint32 ntuples, bool plain, const HgjHeapTarget *targets,
					  HgjPrefetch *prefetch)
{
	const char *const *data = (const char *const *) tuples;
	int32		start = HGJ_PLAIN_HOFF;
	const bool *regular = NULL;

	if (set->ncols == 0 || ntuples == 0)
		return;
	if (!plain)
	{
		if (!find_data(set, tuples, ntuples))
			regular = set->regular;
		data = set->data;
		start = 0;
	}

	for (int c = 0; c < set->nfixed; c++)
	{
		hgj_prefetch_more(prefetch, HGJ_PREFETCH_LINES);
		read_fixed(&set->columns[c], data, start + set->columns[c].offset,
				   regular, ntuples, &targets[c]);
	}
	if (regular == NULL && set->nfixed == set->ncols)
		return;

	for (uint32 i = 0; i < ntuples; i++)
	{
		HeapTupleHeader tuple = tuples[i];

		if (regular && !regular[i])
			walk_tuple(set, data[i],
					   (tuple->t_infomask & HEAP_HASNULL) ? tuple->t_bits : NULL,
					   HeapTupleHeaderGetNatts(tuple), 1, 0, 0, targets, i);
		else if (set->nfixed < set->ncols)
			walk_tuple(set, data[i] + start, NULL, set->natts, set->walk_attno,
					   set->walk_offset, set->nfixed, targets, i);
	}
}
