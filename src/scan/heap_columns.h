/*-------------------------------------------------------------------------
 *
 * heap_columns.h
 *	  Columns of heap tuples into vectors (heap_columns.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_HEAP_COLUMNS_H
#define HGJ_HEAP_COLUMNS_H

#include "compat.h"

#include "access/htup_details.h"
#include "columns/batch.h"

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

/* Where the attributes of a tuple without NULLs begin. */
#define HGJ_PLAIN_HOFF		MAXALIGN(SizeofHeapTupleHeader)

/* What is known of all tuples that are read together. */
typedef enum HgjTupleKind
{
	HGJ_TUPLES_PLAIN,			/* no NULL bitmap, data at HGJ_PLAIN_HOFF, and no
								 * fewer attributes than are wanted */
	HGJ_TUPLES_COMPLETE,		/* no fewer attributes than are wanted */
	HGJ_TUPLES_ANY
} HgjTupleKind;

/* What is to be known of an attribute to step over it. */
typedef struct HgjHeapAttribute
{
	int16		attlen;
	uint8		align_mask;		/* alignment - 1 */
	int32		offset;			/* from the data's start in every tuple without
								 * NULLs before it; -1: it depends */
} HgjHeapAttribute;

/* A column that is wanted. */
typedef struct HgjHeapColumn
{
	AttrNumber	attno;			/* of the table, above 0 */
	uint8		width;			/* in a vector */
	bool		attbyval;
} HgjHeapColumn;

/* Where a column's values go: positions from `first` on. */
typedef struct HgjHeapTarget
{
	HgjVector  *vector;
	uint32		first;
} HgjHeapTarget;

/* A set of columns, ascending by attno; one may be there several times. */
typedef struct HgjHeapColumns
{
	TupleDesc	desc;
	AttrNumber	natts;			/* the highest attno that is wanted */
	HgjHeapAttribute *attributes;	/* so many of them */
	int			ncols;
	HgjHeapColumn *columns;		/* and one of attno 0 */
	AttrNumber	nfixed;			/* the first so many attributes have an offset */

	/* scratch: the tuples at hand */
	const char **data;			/* where their columns begin */
	const bits8 **bits;			/* NULL bitmaps, or one of bits all set */
	const char **at;			/* how far a walk over attributes has come */
	bits8	   *common;			/* bits that all of the bitmaps have set */
} HgjHeapColumns;

extern void hgj_heap_columns_init(HgjHeapColumns *set, TupleDesc desc,
								  const AttrNumber *attnos, int nattnos,
								  int *positions);
extern double hgj_heap_columns_cost(const HgjHeapColumns *set);
extern void hgj_heap_columns_read(HgjHeapColumns *set,
								  const HeapTupleHeader *tuples, uint32 ntuples,
								  HgjTupleKind kind,
								  const HgjHeapTarget *targets,
								  HgjPrefetch *prefetch);

#endif							/* HGJ_HEAP_COLUMNS_H */
