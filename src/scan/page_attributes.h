/*-------------------------------------------------------------------------
 *
 * page_attributes.h
 *	  Where the attributes of the page at hand lie (page_attributes.c,
 *	  page_walk.c): for page_columns.c alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_PAGE_ATTRIBUTES_H
#define HGJ_PAGE_ATTRIBUTES_H

#include "compat.h"

#include "scan/page_columns.h"

/* Loops over rows, which are the first n, or those of a list. */
#define HGJ_FOR_ROWS(statement) \
	do { \
		if (rows == NULL) \
			for (uint32 i = 0; i < n; i++) \
			{ \
				uint32		row = i; \
				statement; \
			} \
		else \
			for (uint32 i = 0; i < n; i++) \
			{ \
				uint32		row = rows[i]; \
				statement; \
			} \
	} while (0)

/* Where values of rows go: to positions from `first` on, or to the rows' numbers. */
typedef struct HgjPagePlace
{
	HgjVector  *vector;
	uint32		first;
	bool		by_row;
} HgjPagePlace;

/* page_attributes.c */
extern void hgj_page_begin_attributes(HgjPageColumns *set);
extern bool hgj_page_is_known(HgjPageColumns *set, AttrNumber last,
							  const uint32 *rows, uint32 n);
extern void hgj_page_read_rows(const HgjScanColumn *column,
							   const char *const *data, int32 offset,
							   const uint32 *rows, uint32 n,
							   const HgjPagePlace *place);
extern void hgj_page_read_known(const HgjPageColumns *set,
								const HgjScanColumn *column, const uint32 *rows,
								uint32 n, const HgjPagePlace *place);

/* page_walk.c */
extern void hgj_page_walk(HgjPageColumns *set, AttrNumber last,
						  const uint32 *rows, uint32 n,
						  const HgjPageTarget *targets);
extern void hgj_page_walk_tuples(HgjPageColumns *set);

/* The buffer of a column, whose values are about to be read. */
static inline HgjPagePlace
hgj_page_begin_buffer(HgjScanColumn *column)
{
	HgjPagePlace place = {&column->buffer.vector, 0, true};

	hgj_vector_all_valid(place.vector, column->buffer.capacity);
	place.vector->kept_in = 0;
	column->read = true;
	return place;
}

/* Where the value of the i-th of some rows goes. */
static inline uint32
hgj_page_position(const HgjPagePlace *place, uint32 i, uint32 row)
{
	return place->by_row ? row : place->first + i;
}

/* Does some tuple of the page have the attribute as NULL? */
static inline bool
hgj_page_may_be_null(const HgjPageColumns *set, AttrNumber attno)
{
	return set->kind == HGJ_TUPLES_COMPLETE && att_isnull(attno - 1, set->common);
}

#endif							/* HGJ_PAGE_ATTRIBUTES_H */
