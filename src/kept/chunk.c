/*-------------------------------------------------------------------------
 *
 * chunk.c
 *	  One column of a run of heap pages, decoded: how such a chunk is made.
 *	  chunk_read.c fills vectors from it.
 *
 * 1. A maker takes the column's vectors, a page after the other, in the order of
 *	  the pages.  A page that is left out has no rows.
 * 2. A value that passes by value is kept as its distance from the least one of
 *	  the chunk, both taken as signed integers of their width, at the narrowest
 *	  width that holds all distances.  That gives back every bit, whatever the type.
 *	  Numbers of three bytes are two arrays, of two bytes each and of the third ones, both
 *	  of which vector code reads.
 *	  Where that is the type's own width, distances are counted from 0, if none is below:
 *	  then the chunk has the values as a vector has them, and a batch can point at them.
 * 3. A value that passes by reference is kept once, as it stands in the heap tuple,
 *	  header and compression included, and aligned as its type wants it; rows have
 *	  the value's number, at the narrowest width.  Where they are few they are in the order
 *	  of their bytes, so that chunks with the same values have the same numbers for them:
 *	  what is made of the values of one is then what is made of those of the next.
 * 4. Numerics whose type says how many decimals they have are kept as integers as
 *	  well (columns/decimal.h), as in step 2, if that is the display scale of all of
 *	  the chunk: who computes with them needs nothing else, and who returns them the
 *	  others.
 * 5. Of integers there are the least and the greatest of each page as well, stored as
 *	  they are, for who wants a part of them only.
 * 6. The image has no pointers.  Whoever reads by-reference values gets pointers
 *	  into it, and holds it meanwhile (store.c).
 *
 * Memory: the maker has a context of its own, below the one that is current when
 * it begins; the image that hgj_chunk_finish() returns is in the latter.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/tupmacs.h"
#include "columns/decimal.h"
#include "common/hashfn.h"
#include "kept/chunk.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

/* Step 2: there is little to copy of narrower ones. */
#define LEAST_POINTED_AT	4

#define MOST_OF_THREE_BYTES	0xFFFFFF

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

/* scale: of numerics, what their type says; or -1. */
HgjChunkMaker *
hgj_chunk_begin(const FormData_pg_attribute *att, int scale)
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
	maker->scale = scale;
	if (scale >= 0)
		maker->decimals = palloc(maker->capacity * sizeof(int64));
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

/* Step 4 for the n rows of a page, which have been added. */
static void
add_decimals(HgjChunkMaker *maker, const HgjVector *values, uint32 n)
{
	uint8		displays[MaxHeapTuplesPerPage];
	uint32		first = maker->nrows - n;

	if (hgj_decimals_read(values->values, (const uint8 *) maker->nulls + first, n,
						  maker->scale, maker->decimals + first, displays))
		maker->scale = -1;
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
		if (maker->scale >= 0)
			maker->decimals = repalloc_huge(maker->decimals,
											maker->capacity * sizeof(int64));
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
	if (maker->scale >= 0)
		add_decimals(maker, values, n);
}

/* How integers of the rows are stored: steps 2 and 5. */
typedef struct Packing
{
	const uint64 *numbers;
	uint64		base;			/* the least of them */
	uint8		width;
	Size		at;				/* where, in the image */
	Size		ends;			/* where those of pages are */
} Packing;

static uint8
width_of(uint64 range)
{
	return range <= PG_UINT8_MAX ? 1 : range <= PG_UINT16_MAX ? 2 :
		range <= MOST_OF_THREE_BYTES ? 3 : range <= PG_UINT32_MAX ? 4 : 8;
}

/* Step 2: the least value, and how far the others are from it. */
static Packing
pack(const HgjChunkMaker *maker, const uint64 *numbers)
{
	Packing		packing = {.numbers = numbers, .width = 1};
	int64		least = PG_INT64_MAX;
	int64		most = PG_INT64_MIN;

	for (uint32 i = 0; i < maker->nrows; i++)
		if (!maker->nulls[i])
		{
			least = Min(least, (int64) numbers[i]);
			most = Max(most, (int64) numbers[i]);
		}
	if (least > most)
		return packing;
	packing.base = (uint64) least;
	packing.width = width_of((uint64) most - (uint64) least);
	return packing;
}

/* Step 2: as they are, if that takes no more room. */
static void
leave_as_they_are(const HgjChunkMaker *maker, Packing *packing)
{
	if (maker->by_value && maker->attlen >= LEAST_POINTED_AT &&
		packing->width == maker->attlen && (int64) packing->base > 0)
		packing->base = 0;
}

static int
compare_values(const void *a, const void *b, void *arg)
{
	const HgjChunkMaker *maker = arg;
	const char *x = maker->values + maker->offsets[*(const uint32 *) a];
	const char *y = maker->values + maker->offsets[*(const uint32 *) b];
	Size		size_x = value_size(maker, x);
	Size		size_y = value_size(maker, y);
	int			order = memcmp(x, y, Min(size_x, size_y));

	return order != 0 ? order : (size_x > size_y) - (size_x < size_y);
}

/* Step 3: few values are put into order, and rows get their new numbers. */
static void
order_values(HgjChunkMaker *maker)
{
	uint32		n = maker->ndistinct;
	uint32	   *order;
	uint32	   *place;
	char	   *values = maker->values;
	uint32	   *offsets = maker->offsets;

	if (n < 2 || n > HGJ_MOST_KEPT_CODES)
		return;
	order = MemoryContextAlloc(maker->context, n * sizeof(uint32));
	place = MemoryContextAlloc(maker->context, n * sizeof(uint32));
	for (uint32 i = 0; i < n; i++)
		order[i] = i;
	qsort_arg(order, n, sizeof(uint32), compare_values, maker);
	maker->values = MemoryContextAllocHuge(maker->context, maker->room);
	maker->offsets = MemoryContextAlloc(maker->context, n * sizeof(uint32));
	maker->most_distinct = n;
	maker->used = 0;
	maker->ndistinct = 0;
	for (uint32 i = 0; i < n; i++)
	{
		const char *value = values + offsets[order[i]];

		place[order[i]] = i;
		append_value(maker, value);
		maker->used = maker->offsets[i] + value_size(maker, value);
		maker->ndistinct++;
	}
	for (uint32 row = 0; row < maker->nrows; row++)
		if (!maker->nulls[row])
			maker->numbers[row] = place[maker->numbers[row]];
}

/* Have both the same values, with the same numbers? */
bool
hgj_chunk_same_values(const HgjChunk *a, const HgjChunk *b)
{
	Size		end_a = a->decimals ? a->decimals : a->bytes;
	Size		end_b = b->decimals ? b->decimals : b->bytes;

	if (a->by_value || b->by_value)
		return a->by_value && b->by_value && a->base == b->base &&
			hgj_chunk_greatest(a) == hgj_chunk_greatest(b);
	return a->ndistinct == b->ndistinct && end_a - a->values == end_b - b->values &&
		memcmp((const char *) a + a->offsets, (const char *) b + b->offsets,
			   a->ndistinct * sizeof(uint32)) == 0 &&
		memcmp((const char *) a + a->values, (const char *) b + b->values,
			   end_a - a->values) == 0;
}

static inline void
store_number(HgjChunk *chunk, Size array, uint8 width, uint32 i, uint64 number)
{
	char	   *numbers = (char *) chunk + array;

	if (width == 3)
	{
		((uint16 *) numbers)[i] = (uint16) number;
		((uint8 *) numbers)[hgj_numbers_high(chunk->nrows) + i] = (uint8) (number >> 16);
	}
	else
		hgj_store(numbers + (Size) i * width, width, (Datum) number);
}

/* Step 5 for a page; where all is NULL, the least is above the greatest. */
static void
store_ends(const HgjChunkMaker *maker, HgjChunk *chunk, const Packing *packing,
		   uint32 page)
{
	uint64		least = PG_UINT64_MAX;
	uint64		greatest = 0;
	uint8		width = hgj_ends_width(packing->width);

	for (uint32 i = chunk->first[page]; i < chunk->first[page + 1]; i++)
		if (!maker->nulls[i])
		{
			uint64		number = packing->numbers[i] - packing->base;

			least = Min(least, number);
			greatest = Max(greatest, number);
		}
	store_number(chunk, packing->ends, width, 2 * page, least);
	store_number(chunk, packing->ends, width, 2 * page + 1, greatest);
}

static void
store_numbers(const HgjChunkMaker *maker, HgjChunk *chunk, const Packing *packing)
{
	for (uint32 i = 0; i < maker->nrows; i++)
		store_number(chunk, packing->at, packing->width, i, maker->nulls[i] ? 0 :
					 packing->numbers[i] - packing->base);
	for (uint32 page = 0; packing->ends && page < HGJ_RUN_PAGES; page++)
		store_ends(maker, chunk, packing, page);
}

/* Room for a number of each row, and, of integers, for two of each page. */
static Size
place_numbers(const HgjChunkMaker *maker, Packing *packing, bool integers, Size at)
{
	packing->at = at;
	at += MAXALIGN(hgj_numbers_bytes(packing->width, maker->nrows));
	if (!integers)
		return at;
	packing->ends = at;
	return at + MAXALIGN(2 * HGJ_RUN_PAGES * hgj_ends_width(packing->width));
}

static void
store_validity(const HgjChunkMaker *maker, HgjChunk *chunk)
{
	uint64	   *validity = (uint64 *) ((char *) chunk + chunk->validity);

	for (uint32 i = 0; i < maker->nrows; i++)
		if (!maker->nulls[i])
			validity[i / 64] |= UINT64CONST(1) << (i % 64);
}

/* The image; the maker is gone. */
HgjChunk *
hgj_chunk_finish(HgjChunkMaker *maker)
{
	bool		decimal = maker->scale >= 0;
	Packing		numbers;
	Packing		decimals = {0};
	Size		validity = MAXALIGN(sizeof(HgjChunk));
	Size		validity_bytes = maker->has_nulls ? ((Size) maker->nrows + 63) / 64 * 8 : 0;
	Size		offsets;
	Size		values;
	Size		bytes;
	HgjChunk   *chunk;

	order_values(maker);
	numbers = pack(maker, maker->numbers);
	leave_as_they_are(maker, &numbers);
	offsets = place_numbers(maker, &numbers, maker->by_value, validity + validity_bytes);
	values = offsets + MAXALIGN((Size) maker->ndistinct * sizeof(uint32));
	bytes = values + MAXALIGN(maker->used);
	if (decimal)
	{
		decimals = pack(maker, (const uint64 *) maker->decimals);
		bytes = place_numbers(maker, &decimals, true, bytes);
	}
	chunk = MemoryContextAllocHuge(CurrentMemoryContext, bytes);
	memset(chunk, 0, numbers.at);
	chunk->bytes = bytes;
	memcpy(chunk->pages, maker->pages, sizeof(chunk->pages));
	memcpy(chunk->left_out, maker->left_out, sizeof(chunk->left_out));
	for (int page = 0; page < HGJ_RUN_PAGES; page++)
		chunk->first[page + 1] = chunk->first[page] + maker->first[page + 1];
	chunk->nrows = maker->nrows;
	chunk->ndistinct = maker->ndistinct;
	chunk->width = numbers.width;
	chunk->value_width = maker->by_value ? maker->attlen : sizeof(Datum);
	chunk->by_value = maker->by_value;
	chunk->has_nulls = maker->has_nulls;
	chunk->base = numbers.base;
	chunk->validity = validity;
	chunk->numbers = numbers.at;
	chunk->offsets = offsets;
	chunk->values = values;
	chunk->decimals = decimals.at;
	chunk->decimal_base = decimals.base;
	chunk->decimal_width = decimals.width;
	chunk->scale = maker->scale;
	chunk->ends = numbers.ends;
	chunk->decimal_ends = decimals.ends;
	store_numbers(maker, chunk, &numbers);
	if (decimal)
		store_numbers(maker, chunk, &decimals);
	if (maker->has_nulls)
		store_validity(maker, chunk);
	if (!maker->by_value)
	{
		memcpy((char *) chunk + offsets, maker->offsets,
			   (Size) maker->ndistinct * sizeof(uint32));
		memcpy((char *) chunk + values, maker->values, maker->used);
		memset((char *) chunk + values + maker->used, 0, MAXALIGN(maker->used) - maker->used);
	}
	MemoryContextDelete(maker->context);
	return chunk;
}

/* One in place of a chunk that is too large, which says only that of all its pages. */
HgjChunk *
hgj_chunk_without_pages(const FormData_pg_attribute *att, const HgjChunk *large)
{
	HgjChunkMaker *maker = hgj_chunk_begin(att, -1);

	memcpy(maker->left_out, large->left_out, sizeof(large->left_out));
	maker->left_out[HGJ_LEFT_OUT_TOO_LARGE] =
		(uint32) pg_popcount((const char *) large->pages, sizeof(large->pages));
	return hgj_chunk_finish(maker);
}

/* Of an image in the store's memory, which begins there. */
void
hgj_chunk_fill_head(HgjChunkHead *head, const HgjChunk *chunk, const void *memory)
{
	head->id = chunk->id;
	head->at = (const char *) chunk - (const char *) memory;
	pg_atomic_init_u64(&head->whole_lsn, chunk->whole_lsn);
	head->npages = chunk->npages;
	head->nrows = chunk->nrows;
	head->ndistinct = chunk->ndistinct;
	head->width = chunk->width;
	head->decimal_width = chunk->decimal_width;
	head->scale = chunk->scale;
	head->by_value = chunk->by_value;
	head->has_nulls = chunk->has_nulls;
	head->base = chunk->base;
	head->validity = chunk->validity;
	head->numbers = chunk->numbers;
	head->decimals = chunk->decimals;
	head->decimal_base = chunk->decimal_base;
}
