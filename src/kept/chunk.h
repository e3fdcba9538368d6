/*-------------------------------------------------------------------------
 *
 * chunk.h
 *	  One column of a run of heap pages, decoded (chunk.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CHUNK_H
#define HGJ_CHUNK_H

#include "compat.h"

#include "access/xlogdefs.h"
#include "columns/batch.h"
#include "engine/engine.h"
#include "port/atomics.h"
#include "storage/block.h"
#include "storage/bufpage.h"

/*
 * Runs of pages: the visibility map has two bits a page, and a run never lies in
 * two of its pages, so that the last run of each is shorter.
 */
#define HGJ_RUN_PAGES		2048
#define HGJ_RUN_WORDS		(HGJ_RUN_PAGES / 64)
#define HGJ_MAP_BYTES		(BLCKSZ - MAXALIGN(SizeOfPageHeaderData))
#define HGJ_MAP_PAGES		(HGJ_MAP_BYTES * 4)
#define HGJ_RUNS_PER_MAP	((HGJ_MAP_PAGES + HGJ_RUN_PAGES - 1) / HGJ_RUN_PAGES)

/* Values of a column of a run for which there may be a table of codes. */
#define HGJ_MOST_KEPT_CODES	4096

/* Less of a table than this is as if nothing was, to a device. */
#define HGJ_LEAST_KEPT			0.9

/*
 * What a row costs that a GPU has chosen of such a table, in rows of reading all of it in
 * order: with three columns some 230 nanoseconds, where each of those takes 10 (6 of 60
 * million rows).
 */
#define HGJ_CHOSEN_ROWS			25.0

static inline uint32
hgj_run_of(BlockNumber block)
{
	return block / HGJ_MAP_PAGES * HGJ_RUNS_PER_MAP +
		block % HGJ_MAP_PAGES / HGJ_RUN_PAGES;
}

/* Of a run behind the last block that a table can have, InvalidBlockNumber. */
static inline BlockNumber
hgj_run_start(uint32 run)
{
	uint64		start = (uint64) (run / HGJ_RUNS_PER_MAP) * HGJ_MAP_PAGES +
		run % HGJ_RUNS_PER_MAP * HGJ_RUN_PAGES;

	return (BlockNumber) Min(start, InvalidBlockNumber);
}

/* The page's number within its run. */
static inline uint32
hgj_run_page(BlockNumber block)
{
	return block % HGJ_MAP_PAGES % HGJ_RUN_PAGES;
}

/* Why a page that was all-visible is not in a chunk. */
typedef enum HgjLeftOut
{
	HGJ_LEFT_OUT_LACKING,		/* a tuple does not have the attribute */
	HGJ_LEFT_OUT_EXTERNAL,		/* a value is out of line */
	HGJ_LEFT_OUT_TOO_LARGE,		/* the chunk would have been, for the store */
	HGJ_LEFT_OUT_REASONS
} HgjLeftOut;

/*
 * Header of the image, which has no pointers: what it says is where other parts
 * are lies so many bytes behind its beginning.
 */
typedef struct HgjChunk
{
	uint64		bytes;			/* of the image */
	uint64		id;				/* that no other chunk has, while it is kept (store.c) */
	XLogRecPtr	whole_lsn;		/* of the map, when it was made; see HgjChunkHead */
	uint32		npages;			/* it has the run's first so many pages, and all of them
								 * fit; 0: it is otherwise */
	uint32		nrows;
	uint32		ndistinct;		/* by reference: values, each once */
	uint8		width;			/* of a number, in bytes: 1, 2, 3, 4, 8 */
	uint8		value_width;	/* by value: of a value in a vector */
	bool		by_value;
	bool		has_nulls;
	uint64		base;			/* by value: what numbers count from */
	uint64		validity;		/* has_nulls: bit i set, row i is not NULL */
	uint64		numbers;		/* per row */
	uint64		offsets;		/* by reference: of each value, in `values` */
	uint64		values;
	uint64		decimals;		/* of numerics, per row: integers, or 0: none */
	uint64		decimal_base;	/* what these count from */
	uint8		decimal_width;
	int8		scale;			/* they are in units of 10^-scale */
	uint64		ends;			/* by value: per page the least and the greatest number, */
	uint64		decimal_ends;	/* and the same of decimals; 0: not known */
	XLogRecPtr	decoded_after;	/* before the first page was read; see valid.c */
	uint64		pages[HGJ_RUN_WORDS];	/* those whose rows are here */
	uint64		unfit[HGJ_RUN_WORDS];	/* were all-visible, too, but cannot be kept */
	uint32		left_out[HGJ_LEFT_OUT_REASONS]; /* how many of these, by reason */
	pg_atomic_uint64 map_lsns[HGJ_RUN_WORDS];	/* per word of pages */
	pg_atomic_uint64 changed[HGJ_RUN_WORDS];	/* pages that have changed since */
	uint32		first[HGJ_RUN_PAGES + 1];	/* row of each page */
} HgjChunk;

/*
 * What has to be known of a chunk to say where its rows are, besides the chunk: who says
 * that of all chunks of a table need not have a page of each mapped, which takes a process
 * that has not read them yet longer than all else (store.c).
 */
typedef struct HgjChunkHead
{
	uint64		id;
	uint64		at;				/* bytes behind the beginning of the store's memory */
	pg_atomic_uint64 whole_lsn; /* of the map, by which npages are valid; see valid.c */
	uint32		npages;
	uint32		nrows;
	uint32		ndistinct;
	uint8		width;
	uint8		decimal_width;
	int8		scale;
	bool		by_value;
	bool		has_nulls;
	uint64		base;
	uint64		validity;
	uint64		numbers;
	uint64		decimals;
	uint64		decimal_base;
} HgjChunkHead;

/* A chunk that is being made. */
typedef struct HgjChunkMaker
{
	MemoryContext context;
	int16		attlen;
	char		attalign;
	bool		by_value;
	uint32		nrows;
	uint32		capacity;
	uint64	   *numbers;		/* by value: the value, sign extended */
	bool	   *nulls;
	bool		has_nulls;
	int8		scale;			/* values are decimals of this scale so far; or -1 */
	int64	   *decimals;
	uint64		pages[HGJ_RUN_WORDS];
	uint32		left_out[HGJ_LEFT_OUT_REASONS]; /* pages that were not added */
	uint32		first[HGJ_RUN_PAGES + 1];

	/* by reference: every value once */
	struct distinct_hash *distinct;
	uint32		ndistinct;
	uint32		most_distinct;
	uint32	   *offsets;
	char	   *values;
	Size		used;
	Size		room;
} HgjChunkMaker;

extern HgjChunkMaker *hgj_chunk_begin(const FormData_pg_attribute *att, int scale);
extern void hgj_chunk_add_page(HgjChunkMaker *maker, uint32 page,
							   const HgjVector *values, uint32 n);
extern HgjChunk *hgj_chunk_finish(HgjChunkMaker *maker);
extern void hgj_chunk_fill_head(HgjChunkHead *head, const HgjChunk *chunk,
								const void *memory);
extern HgjChunk *hgj_chunk_without_pages(const FormData_pg_attribute *att,
										 const HgjChunk *large);
extern uint64 hgj_chunk_greatest(const HgjChunk *chunk);
extern bool hgj_chunk_same_values(const HgjChunk *a, const HgjChunk *b);
extern void hgj_chunk_read(const HgjChunk *chunk, uint32 start,
						   const uint32 *rows, uint32 n, HgjVector *into,
						   uint32 first, bool by_row);
extern void hgj_chunk_read_numbers(const HgjChunk *chunk, uint32 start,
								   const uint32 *rows, uint32 n,
								   HgjVector *into, uint32 first);
extern void hgj_chunk_read_integers(const HgjChunk *chunk, uint32 start,
									const uint32 *rows, uint32 n, uint64 *into);
extern void hgj_chunk_packed(const HgjChunk *chunk, uint32 start, HgjPackedKeys *keys);
extern void hgj_chunk_read_decimals(const HgjChunk *chunk, uint32 start,
									const uint32 *rows, uint32 n,
									HgjVector *into, uint32 first, bool by_row);

/* Of numbers of three bytes, where the third ones of n numbers begin, behind the others. */
static inline Size
hgj_numbers_high(uint32 n)
{
	return (Size) TYPEALIGN(8, n) * 2;
}

/* Bytes of an array of n numbers of some width; see engine/pipeline.h, HgjKeptInput. */
static inline Size
hgj_numbers_bytes(uint8 width, uint32 n)
{
	return width == 3 ? hgj_numbers_high(n) / 2 * 3 : (Size) n * width;
}

/* The width at which the ends of pages are stored, of numbers of this one. */
static inline uint8
hgj_ends_width(uint8 width)
{
	return width == 3 ? 4 : width;
}

/* The i-th end in an array of these, of numbers of this width. */
static inline uint64
hgj_chunk_end_at(const HgjChunk *chunk, uint64 array, uint8 width, uint32 i)
{
	const char *ends = (const char *) chunk + array;

	switch (hgj_ends_width(width))
	{
		case 1:
			return ((const uint8 *) ends)[i];
		case 2:
			return ((const uint16 *) ends)[i];
		case 4:
			return ((const uint32 *) ends)[i];
		default:
			return ((const uint64 *) ends)[i];
	}
}

/* The least and the greatest value of a page; decimals: of these. */
typedef struct HgjPageRange
{
	int64		least;
	int64		greatest;		/* below it: there is none but NULL */
} HgjPageRange;

/* As signed integers; false: they are not known. */
static inline bool
hgj_chunk_page_range(const HgjChunk *chunk, uint32 page, bool decimals,
					 HgjPageRange *range)
{
	uint64		ends = decimals ? chunk->decimal_ends : chunk->ends;
	uint8		width = decimals ? chunk->decimal_width : chunk->width;
	uint64		base = decimals ? chunk->decimal_base : chunk->base;
	uint64		least;
	uint64		greatest;

	if (ends == 0)
		return false;
	least = hgj_chunk_end_at(chunk, ends, width, 2 * page);
	greatest = hgj_chunk_end_at(chunk, ends, width, 2 * page + 1);
	range->least = least <= greatest ? (int64) (base + least) : PG_INT64_MAX;
	range->greatest = least <= greatest ? (int64) (base + greatest) : PG_INT64_MIN;
	return true;
}

/*
 * The values of rows from `row` on as a vector has them, if the chunk has them so; NULL if
 * not.
 */
static inline const void *
hgj_chunk_values_at(const HgjChunk *chunk, uint32 row)
{
	if (!chunk->by_value || chunk->has_nulls || chunk->base != 0 ||
		chunk->width != chunk->value_width)
		return NULL;
	return (const char *) chunk + chunk->numbers + (Size) row * chunk->width;
}

/* The by-reference value of a number. */
static inline Datum
hgj_chunk_value(const HgjChunk *chunk, uint32 number)
{
	const uint32 *offsets = (const uint32 *) ((const char *) chunk + chunk->offsets);

	return PointerGetDatum((const char *) chunk + chunk->values + offsets[number]);
}

static inline bool
hgj_run_has(const uint64 *pages, uint32 page)
{
	return (pages[page / 64] >> (page % 64)) & 1;
}

#endif							/* HGJ_CHUNK_H */
