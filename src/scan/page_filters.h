/*-------------------------------------------------------------------------
 *
 * page_filters.h
 *	  Outer rows that cannot match, dropped before they are read
 *	  (page_filters.c), by the joins that say most for the least
 *	  (filter_order.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_PAGE_FILTERS_H
#define HGJ_PAGE_FILTERS_H

#include "compat.h"

#include "scan/heap_pages.h"
#include "scan/page_columns.h"
#include "scan/page_quals.h"
#include "scan/source.h"

/* Rows that the order of filters is chosen by. */
#define HGJ_PROFILE_ROWS	1024

/* In the order of filters: here come the scan's own quals. */
#define HGJ_QUALS_PLACE		HGJ_MOST_KEY_FILTERS

/* A set of filters, of the key filters' and the quals' numbers. */
typedef uint16 HgjFilterSet;

/* The question whether a row of the table can have a match in a join. */
typedef struct HgjKeyFilter
{
	HgjSource  *asks;			/* the join's outer side: its keys, and filter_of */
	struct HgjJoinState *join;	/* one further up, or NULL: the source's own */
	int		   *keys;			/* per key: the column of the page */
	const HgjVector **dense;	/* and its values, of the rows that are left: */
	HgjBuffer  *room;			/* there, or here */
	uint64	  **words;			/* key words of these */
	double		cost;			/* of a row that is asked about, and ... */
	double		saved;			/* ... of one that goes no further */
} HgjKeyFilter;

typedef struct HgjPageFilters
{
	HgjPageColumns *columns;
	HgjPageQuals *quals;
	double		read_cost;		/* of a row that the source has to read */
	double		quals_cost;		/* of one that goes through the quals */
	int			nfilters;
	HgjKeyFilter filters[HGJ_MOST_KEY_FILTERS];
	HgjFilterSet ready;			/* those that can be asked at present */
	int			norder;			/* those that are, the first one first, and the */
	uint8		order[HGJ_MOST_KEY_FILTERS + 1];	/* quals, even if there are none */
	uint32	   *valid;			/* places of rows without a NULL key */
	uint32	   *passed;
	uint64		dropped;		/* rows that had passed the quals */
	uint64		dropped_early;	/* that had not gone through them */

	/* of a source with filters of several joins, or with quals that may wait */
	HgjKeyFilterStats *stats;	/* one per filter; NULL: there is one at most */
	HgjFilterSet *profile;		/* which filters the last rows passed that all */
	uint32		nprofile;		/* of them were asked about, so many, and where */
	uint32		next_profile;	/* the next one goes */
	bool		profile_is_new;
	uint32		since_trial;	/* rows */
} HgjPageFilters;

/* page_filters.c */
extern void hgj_page_filters_init(HgjPageFilters *set, HgjPageColumns *columns,
								  HgjPageQuals *quals, HgjSource *source,
								  const AttrNumber *key_attnos);
extern HgjKeyFilter *hgj_page_filters_add(HgjPageFilters *set, HgjSource *asks,
										  const AttrNumber *key_attnos);
extern void hgj_page_filters_costs(HgjPageFilters *set, const int *output, int n);
extern void hgj_page_filters_run(HgjPageFilters *set, HgjSource *source,
								 HgjHeapPages *pages);

/* filter_order.c */
extern void hgj_key_filters_begin(HgjPageFilters *set, const HgjSource *source);
extern bool hgj_key_filters_on_trial(const HgjPageFilters *set);
extern void hgj_key_filters_note(HgjPageFilters *set, const HgjFilterSet *masks,
								 uint32 n);

#endif							/* HGJ_PAGE_FILTERS_H */
