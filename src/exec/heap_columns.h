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
#include "exec/batch.h"

/* What is to be known of an attribute to step over it. */
typedef struct HgjHeapAttribute
{
	int16		attlen;
	char		attalign;
	bool		attbyval;
} HgjHeapAttribute;

/* A column that is wanted. */
typedef struct HgjHeapColumn
{
	AttrNumber	attno;			/* of the table, above 0 */
	uint8		width;			/* in a vector */
	bool		attbyval;
	int32		offset;			/* from the data's start in every tuple without
								 * NULLs before it; -1: it depends */
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
	int			nfixed;			/* the first so many have an offset */
	AttrNumber	walk_attno;		/* where to begin to look for the others ... */
	int32		walk_offset;	/* ... and its offset */

	/* scratch: the tuples at hand */
	const char **data;			/* where their columns begin */
	bool	   *regular;		/* no NULL and nothing missing in 1 .. natts */
} HgjHeapColumns;

extern void hgj_heap_columns_init(HgjHeapColumns *set, TupleDesc desc,
								  const AttrNumber *attnos, int nattnos,
								  int *positions);
extern void hgj_heap_columns_read(HgjHeapColumns *set,
								  const HeapTupleHeader *tuples, uint32 ntuples,
								  const HgjHeapTarget *targets);

#endif							/* HGJ_HEAP_COLUMNS_H */
