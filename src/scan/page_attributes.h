/*-------------------------------------------------------------------------
 *
 * page_attributes.h
 *	  Where the attributes of the page at hand lie (page_attributes.c): for
 *	  page_columns.c alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_PAGE_ATTRIBUTES_H
#define HGJ_PAGE_ATTRIBUTES_H

#include "compat.h"

#include "scan/page_columns.h"

/* Where values of rows go: to positions from `first` on, or to the rows' numbers. */
typedef struct HgjPagePlace
{
	HgjVector  *vector;
	uint32		first;
	bool		by_row;
} HgjPagePlace;

extern void hgj_page_begin_attributes(HgjPageColumns *set);
extern bool hgj_page_is_known(HgjPageColumns *set, AttrNumber last,
							  const uint32 *rows, uint32 n);
extern void hgj_page_read_known(const HgjPageColumns *set,
								const HgjScanColumn *column, const uint32 *rows,
								uint32 n, const HgjPagePlace *place);
extern void hgj_page_walk(HgjPageColumns *set, AttrNumber last,
						  const uint32 *rows, uint32 n,
						  const HgjPageTarget *targets);
extern void hgj_page_walk_tuples(HgjPageColumns *set);

/* The buffer of a column, whose values are about to be read. */
static inline HgjPagePlace
hgj_page_begin_buffer(HgjScanColumn *column)
{
	HgjPagePlace place = {&column->buffer.vector, 0, true};

	hgj_vector_all_valid(place.vector, MaxHeapTuplesPerPage);
	column->read = true;
	return place;
}

#endif							/* HGJ_PAGE_ATTRIBUTES_H */
