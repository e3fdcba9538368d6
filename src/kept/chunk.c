/*-------------------------------------------------------------------------
 *
 * chunk.c
 *	  One column of a run of heap pages, decoded: how such a chunk is made, and
 *	  how vectors are filled from it.
 *
 * 1. A maker takes the column's vectors, a page after the other, in the order of
 *	  the pages.  A page that is left out has no rows.
 * 2. A value that passes by value is kept as its distance from the least one of
 *	  the chunk, both taken as signed integers of their width, at the narrowest
 *	  width that holds all distances.  That gives back every bit, whatever the type.
 * 3. A value that passes by reference is kept once, as it stands in the heap tuple,
 *	  header and compression included, and aligned as its type wants it; rows have
 *	  the value's number, at the narrowest width.
 * 4. The image has no pointers.  Whoever reads by-reference values gets pointers
 *	  into it, and holds it meanwhile (store.c).
 *
 * Memory: the maker has a context of its own, below the one that is current when
 * it begins; the image that hgj_chunk_finish() returns is in the latter.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/tupmacs.h"
#include "common/hashfn.h"
#include "kept/chunk.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* ---- step 3: values, each once --------------------------------------------- */

typedef struct DistinctEntry
{
	uint32		number;			/* key: of the value */
	uint32		hash;
	char		status;
} DistinctEntry;

/*
 * A value's bytes: those of the one with that number, or, for the number that
 * nothing has yet, of the one that has just been put behind all others.
 */
static inline Size
value_size(const HgjChunkMaker *maker, const char *value)
{
	return att_addlength_pointer(0, maker->attlen, value);
}

static bool
same_value(const HgjChunkMaker *maker, uint32 a, uint32 b)
{
	const char *x = maker->values + maker->offsets[a];
	const char *y = maker->values + maker->offsets[b];
	Size		size = value_size(maker, x);

	return size == value_size(maker, y) && memcmp(x, y, size) == 0;
}

#define SH_PREFIX		distinct
#define SH_ELEMENT_TYPE	DistinctEntry
#define SH_KEY_TYPE		uint32
#define SH_KEY			number
#define SH_HASH_KEY(tb, key) \
	hash_bytes((const unsigned char *) ((HgjChunkMaker *) (tb)->private_data)->values + \
			   ((HgjChunkMaker *) (tb)->private_data)->offsets[key], \
			   value_size((tb)->private_data, \
						  ((HgjChunkMaker *) (tb)->private_data)->values + \
						  ((HgjChunkMaker *) (tb)->private_data)->offsets[key]))
#define SH_EQUAL(tb, a, b)	same_value((tb)->private_data, a, b)
#define SH_STORE_HASH
#define SH_GET_HASH(tb, entry)	(entry)->hash
#define SH_SCOPE		static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* Put the value behind all others, aligned. */
static void
append_value(HgjChunkMaker *maker, const char *value)
{
	Size		size = value_size(maker, value);
	Size		at = att_align_pointer(maker->used, maker->attalign,
									   maker->attlen, value);

	if (at + size > maker->room)
	{
		maker->room = Max(maker->room * 2, at + size);
		maker->values = repalloc_huge(maker->values, maker->room);
	}
	if (maker->ndistinct == maker->most_distinct)
	{
		maker->most_distinct *= 2;
		maker->offsets = repalloc_huge(maker->offsets,
									   maker->most_distinct * sizeof(uint32));
	}
	memset(maker->values + maker->used, 0, at - maker->used);
	memcpy(maker->values + at, value, size);
	maker->offsets[maker->ndistinct] = (uint32) at;
}

static uint32
number_of(HgjChunkMaker *maker, const char *value)
{
	DistinctEntry *entry;
	bool		found;

	append_value(maker, value);
	entry = distinct_insert(maker->distinct, maker->ndistinct, &found);
	if (!found)
	{
		maker->used = maker->offsets[maker->ndistinct] + value_size(maker, value);
		maker->ndistinct++;
	}
	return entry->number;
}

/* ---- making a chunk --------------------------------------------------------- */

HgjChunkMaker *
hgj_chunk_begin(const FormData_pg_attribute *att)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "hashgraph_join chunk",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	HgjChunkMaker *maker = palloc0(sizeof(HgjChunkMaker));

	maker->context = context;
	maker->attlen = att->attlen;
	maker->attalign = att->attalign;
	maker->by_value = att->attbyval;
	maker->capacity = 4096;
	maker->numbers = palloc(maker->capacity * sizeof(uint64));
	maker->nulls = palloc(maker->capacity * sizeof(bool));
	if (!att->attbyval)
	{
		maker->most_distinct = 1024;
		maker->offsets = palloc(maker->most_distinct * sizeof(uint32));
		maker->room = BLCKSZ;
		maker->values = palloc(maker->room);
		maker->distinct = distinct_create(context, 1024, maker);
	}
	MemoryContextSwitchTo(old);
	return maker;
}

static uint64
signed_value(const HgjVector *values, uint32 i)
{
	switch (values->width)
	{
		case 1:
			return (uint64) (int64) ((const int8 *) values->values)[i];
		case 2:
			return (uint64) (int64) ((const int16 *) values->values)[i];
		case 4:
			return (uint64) (int64) ((const int32 *) values->values)[i];
		default:
			return ((const uint64 *) values->values)[i];
	}
}

/* Step 1: the n rows of a page; pages come in order, those without rows need not. */
void
hgj_chunk_add_page(HgjChunkMaker *maker, uint32 page, const HgjVector *values,
				   uint32 n)
{
	if (maker->nrows + n > maker->capacity)
	{
		maker->capacity = Max(maker->capacity * 2, maker->nrows + n);
		maker->numbers = repalloc_huge(maker->numbers,
									   maker->capacity * sizeof(uint64));
		maker->nulls = repalloc_huge(maker->nulls, maker->capacity * sizeof(bool));
	}
	maker->pages[page / 64] |= UINT64CONST(1) << (page % 64);
	maker->first[page + 1] = n;
	for (uint32 i = 0; i < n; i++)
	{
		uint32		row = maker->nrows++;
		bool		null = hgj_vector_is_null(values, i);

		maker->nulls[row] = null;
		maker->has_nulls |= null;
		if (null)
			maker->numbers[row] = 0;
		else if (maker->by_value)
			maker->numbers[row] = signed_value(values, i);
		else
			maker->numbers[row] = number_of(maker, ((char **) values->values)[i]);
	}
}

/* Step 2: the least value, and how far the others are from it. */
static uint64
find_range(const HgjChunkMaker *maker, uint64 *base)
{
	int64		least = PG_INT64_MAX;
	int64		most = PG_INT64_MIN;

	*base = 0;
	if (!maker->by_value)
		return maker->ndistinct > 0 ? maker->ndistinct - 1 : 0;
	for (uint32 i = 0; i < maker->nrows; i++)
		if (!maker->nulls[i])
		{
			least = Min(least, (int64) maker->numbers[i]);
			most = Max(most, (int64) maker->numbers[i]);
		}
	if (least > most)
		return 0;
	*base = (uint64) least;
	return (uint64) most - (uint64) least;
}

static void
store_numbers(const HgjChunkMaker *maker, HgjChunk *chunk)
{
	char	   *to = (char *) chunk + chunk->numbers;

	for (uint32 i = 0; i < maker->nrows; i++)
	{
		uint64		number = maker->nulls[i] ? 0 : maker->numbers[i] - chunk->base;

		switch (chunk->width)
		{
			case 1:
				((uint8 *) to)[i] = (uint8) number;
				break;
			case 2:
				((uint16 *) to)[i] = (uint16) number;
				break;
			case 4:
				((uint32 *) to)[i] = (uint32) number;
				break;
			default:
				((uint64 *) to)[i] = number;
				break;
		}
	}
}

/* The image; the maker is gone. */
HgjChunk *
hgj_chunk_finish(HgjChunkMaker *maker)
{
	uint64		base;
	uint64		range = find_range(maker, &base);
	uint8		width = range <= PG_UINT8_MAX ? 1 : range <= PG_UINT16_MAX ? 2 :
		range <= PG_UINT32_MAX ? 4 : 8;
	Size		validity_bytes = maker->has_nulls ? ((Size) maker->nrows + 63) / 64 * 8 : 0;
	Size		validity = MAXALIGN(sizeof(HgjChunk));
	Size		numbers = validity + validity_bytes;
	Size		offsets = numbers + MAXALIGN((Size) maker->nrows * width);
	Size		values = offsets + MAXALIGN((Size) maker->ndistinct * sizeof(uint32));
	Size		bytes = values + MAXALIGN(maker->used);
	HgjChunk   *chunk = MemoryContextAllocHuge(CurrentMemoryContext, bytes);

	memset(chunk, 0, numbers);
	chunk->bytes = bytes;
	memcpy(chunk->pages, maker->pages, sizeof(chunk->pages));
	for (int page = 0; page < HGJ_RUN_PAGES; page++)
		chunk->first[page + 1] = chunk->first[page] + maker->first[page + 1];
	chunk->nrows = maker->nrows;
	chunk->ndistinct = maker->ndistinct;
	chunk->width = width;
	chunk->value_width = maker->by_value ? maker->attlen : sizeof(Datum);
	chunk->by_value = maker->by_value;
	chunk->has_nulls = maker->has_nulls;
	chunk->base = base;
	chunk->validity = validity;
	chunk->numbers = numbers;
	chunk->offsets = offsets;
	chunk->values = values;
	store_numbers(maker, chunk);
	for (uint32 i = 0; maker->has_nulls && i < maker->nrows; i++)
		if (!maker->nulls[i])
			((uint64 *) ((char *) chunk + validity))[i / 64] |= UINT64CONST(1) << (i % 64);
	if (!maker->by_value)
	{
		memcpy((char *) chunk + offsets, maker->offsets,
			   (Size) maker->ndistinct * sizeof(uint32));
		memcpy((char *) chunk + values, maker->values, maker->used);
	}
	MemoryContextDelete(maker->context);
	return chunk;
}

/* ---- reading ---------------------------------------------------------------- */

#define READ(from_type, to_type, expression) \
	do { \
		const from_type *from = (const from_type *) numbers + start; \
		to_type    *to = (to_type *) into->values; \
		if (rows == NULL) \
		{ \
			to += first; \
			for (uint32 i = 0; i < n; i++) \
			{ \
				from_type	number = from[i]; \
				to[i] = (to_type) (expression); \
			} \
		} \
		else \
			for (uint32 i = 0; i < n; i++) \
			{ \
				from_type	number = from[rows[i]]; \
				to[by_row ? rows[i] : first + i] = (to_type) (expression); \
			} \
	} while (0)

#define READ_ANY_WIDTH(to_type, expression) \
	do { \
		switch (chunk->width) \
		{ \
			case 1: \
				READ(uint8, to_type, expression); \
				break; \
			case 2: \
				READ(uint16, to_type, expression); \
				break; \
			case 4: \
				READ(uint32, to_type, expression); \
				break; \
			default: \
				READ(uint64, to_type, expression); \
				break; \
		} \
	} while (0)

/*
 * Of the rows from `start` on, those whose numbers counted from there are in rows
 * (NULL: the first n), to the vector's positions from `first` on, or, by_row, to
 * these numbers (`first` is 0).  Positions are taken to be valid so far.
 */
void
hgj_chunk_read(const HgjChunk *chunk, uint32 start, const uint32 *rows, uint32 n,
			   HgjVector *into, uint32 first, bool by_row)
{
	const char *numbers = (const char *) chunk + chunk->numbers;
	const uint32 *offsets = (const uint32 *) ((const char *) chunk + chunk->offsets);
	const char *values = (const char *) chunk + chunk->values;
	const uint64 *validity = (const uint64 *) ((const char *) chunk + chunk->validity);
	uint64		base = chunk->base;

	Assert(into->width == chunk->value_width && (!by_row || first == 0));
	if (!chunk->by_value)
	{
		if (chunk->ndistinct > 0)
			READ_ANY_WIDTH(uintptr_t, values + offsets[number]);
	}
	else
		switch (into->width)
		{
			case 1:
				READ_ANY_WIDTH(uint8, base + number);
				break;
			case 2:
				READ_ANY_WIDTH(uint16, base + number);
				break;
			case 4:
				READ_ANY_WIDTH(uint32, base + number);
				break;
			default:
				READ_ANY_WIDTH(uint64, base + number);
				break;
		}
	for (uint32 i = 0; chunk->has_nulls && i < n; i++)
	{
		uint32		row = rows ? rows[i] : i;
		uint32		bit = start + row;

		if ((validity[bit / 64] & (UINT64CONST(1) << (bit % 64))) == 0)
			hgj_vector_set_null(into, by_row ? row : first + i);
	}
}
