/*-------------------------------------------------------------------------
 *
 * page_columns.h
 *	  The columns of a page of heap tuples, as vectors (page_columns.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_PAGE_COLUMNS_H
#define HGJ_PAGE_COLUMNS_H

#include "compat.h"

#include "access/htup_details.h"
#include "columns/batch.h"
#include "kept/chunk.h"

/*
 * Memory that will be wanted soon.  Its lines are prefetched a few at a time,
 * between loops, because a processor has few misses under way.
 */
typedef struct HgjPrefetch
{
	const char *next;
	const char *end;
} HgjPrefetch;

#define HGJ_CACHE_LINE		64
#define HGJ_PREFETCH_LINES	16

static inline void
hgj_prefetch_more(HgjPrefetch *prefetch, int lines)
{
	for (; lines > 0 && prefetch->next < prefetch->end; lines--)
	{
		__builtin_prefetch(prefetch->next, 0, 2);
		prefetch->next += HGJ_CACHE_LINE;
	}
}

/*
 * The most rows that are read together: those of a page, or of several whose columns
 * are kept in memory.  Of the latter as many as stay in the caches until the last who
 * reads them has done so.
 */
#define HGJ_SLICE_ROWS		2048

StaticAssertDecl(HGJ_SLICE_ROWS >= MaxHeapTuplesPerPage,
				 "a page may have more rows than are read together");

/* Where the attributes of a tuple without NULLs begin. */
#define HGJ_PLAIN_HOFF		MAXALIGN(SizeofHeapTupleHeader)

/* What is known of all tuples that are read together. */
typedef enum HgjTupleKind
{
	HGJ_TUPLES_PLAIN,			/* no NULL bitmap, data at HGJ_PLAIN_HOFF, and no
								 * fewer attributes than are wanted */
	HGJ_TUPLES_COMPLETE,		/* no fewer attributes than are wanted */
	HGJ_TUPLES_ANY,
	HGJ_TUPLES_KEPT				/* there are none: the columns are kept in memory */
} HgjTupleKind;

/*
 * Rows whose columns are kept: per column of a set, the chunk, and the first row.  NULL: the
 * column is not kept, and is fetched for who takes rows (late_columns.c).
 */
typedef struct HgjKeptRows
{
	const HgjChunk **chunks;
	uint32	   *starts;
	BlockNumber block;			/* of the first row */
	bool		missing;		/* a column is not kept: where do pages begin? */
	const uint32 *first;		/* per page of the run, and of one behind: of the rows of */
} HgjKeptRows;					/* a chunk, or of another one that has as many per page */

/* What is to be known of an attribute to step over it. */
typedef struct HgjHeapAttribute
{
	int16		attlen;
	uint8		align_mask;		/* alignment - 1 */
	int32		offset;			/* from the data's start in every tuple without
								 * NULLs before it; -1: it depends */
} HgjHeapAttribute;

/* A column that somebody reads. */
typedef struct HgjScanColumn
{
	AttrNumber	attno;			/* of the table, above 0 */
	uint8		width;			/* in a vector */
	bool		attbyval;
	bool		wanted;			/* by who is walking over attributes */
	int8		scale;			/* everybody takes it as decimals of this scale where
								 * they are kept; or -1 */
	bool		read;			/* of all rows that are left of the page */
	HgjBuffer	buffer;			/* if so: the values, at their rows' numbers */
} HgjScanColumn;

/* Where a column's values go: positions from `first` on. */
typedef struct HgjPageTarget
{
	HgjVector  *vector;			/* NULL: nowhere */
	uint32		first;
	bool		numbers;		/* of by-reference values that are kept: those in the
								 * chunk in their place */
	bool		there;			/* the values are there: the vector points at them */
} HgjPageTarget;

/* How far the attributes of some rows are known. */
typedef struct HgjPageProgress
{
	AttrNumber	nknown;			/* so many lie at one offset in all of them */
	AttrNumber	frontier;		/* the next one, which begins behind ... */
	int32		offset;			/* ... this, or, once they are walked over, behind */
	bool		walking;		/* what `at` says of each */
} HgjPageProgress;

/*
 * The columns that a scan reads, for whatever purpose, and what is known of them
 * on the page at hand.  Whoever reads one knows it by its number.
 */
typedef struct HgjPageColumns
{
	TupleDesc	desc;
	MemoryContext context;
	uint32		most_rows;		/* that are read together */
	int			ncols;
	HgjScanColumn **columns;	/* in the order of their adding */
	AttrNumber	natts;			/* the highest attno of them */
	HgjHeapAttribute *attributes;	/* so many */
	int		   *by_attno;		/* per attribute: the column, or -1 */
	AttrNumber	nfixed;			/* the first so many attributes have an offset */

	/* the page at hand: its tuples, of which some rows are left */
	const HeapTupleHeader *tuples;
	uint32		ntuples;
	uint32		seen;			/* of the last thousands of rows, how many ... */
	uint32		taken;			/* ... were taken in the end */
	HgjTupleKind kind;
	const HgjKeptRows *kept;	/* HGJ_TUPLES_KEPT */
	HgjPrefetch *prefetch;
	uint32		nrows;			/* that are left ... */
	bool		all;			/* ... which is all of them, or ... */
	uint32	   *rows;			/* ... these, ascending */

	/* where attributes are; begun: any of this means something */
	bool		begun;
	HgjPageProgress progress;	/* of the rows that are left */
	HgjPageProgress before_walk;	/* the same, without walking */
	const char *const *data;	/* per row: what offsets count from */
	int32	   *offsets;		/* per attribute that is known */
	const char **at;			/* per row: see HgjPageProgress */
	const bits8 **bits;			/* NULL bitmaps, or one of bits all set */
	bits8	   *common;			/* bits that all of the bitmaps have set */
	const char **starts;		/* room for data */
} HgjPageColumns;

extern void hgj_page_columns_init(HgjPageColumns *set, TupleDesc desc,
								  uint32 most_rows);
extern int	hgj_page_columns_add(HgjPageColumns *set, AttrNumber attno);
extern double hgj_page_columns_cost(const HgjPageColumns *set, const int *wanted,
									int n);
extern void hgj_page_columns_begin(HgjPageColumns *set,
								   const HeapTupleHeader *tuples, uint32 ntuples,
								   HgjTupleKind kind, HgjPrefetch *prefetch);
extern void hgj_page_columns_keep(HgjPageColumns *set, const uint32 *places,
								  uint32 n);
extern void hgj_page_columns_read(HgjPageColumns *set, const int *wanted, int n);
extern bool hgj_page_column_integers(const HgjPageColumns *set, int c, uint64 *into);
extern bool hgj_page_column_packed(const HgjPageColumns *set, int c, HgjPackedKeys *keys);
extern const HgjVector *hgj_page_column_dense(const HgjPageColumns *set, int c,
											  HgjVector *room);
extern void hgj_page_columns_take(HgjPageColumns *set, uint32 first, uint32 n,
								  const HgjPageTarget *targets);

/* Does the column come as decimals, of the rows at hand? */
static inline bool
hgj_page_column_is_decimal(const HgjPageColumns *set, int c)
{
	const HgjScanColumn *column = set->columns[c];

	return column->scale >= 0 && set->kind == HGJ_TUPLES_KEPT &&
		set->kept->chunks[c] != NULL && set->kept->chunks[c]->scale == column->scale;
}

/* The number of the i-th row that is left. */
static inline uint32
hgj_page_row(const HgjPageColumns *set, uint32 i)
{
	return set->all ? i : set->rows[i];
}

#endif							/* HGJ_PAGE_COLUMNS_H */
