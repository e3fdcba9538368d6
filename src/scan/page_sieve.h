/*-------------------------------------------------------------------------
 *
 * page_sieve.h
 *	  Outer rows that cannot match, dropped before they are read
 *	  (page_sieve.c), by the joins that say most for the least
 *	  (filter_order.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_PAGE_SIEVE_H
#define HGJ_PAGE_SIEVE_H

#include "compat.h"

#include "scan/heap_columns.h"
#include "scan/heap_pages.h"
#include "scan/source.h"

/* Rows that the order of filters is chosen by. */
#define HGJ_PROFILE_ROWS	1024

/* The question whether a row of the table can have a match in a join. */
typedef struct HgjKeyFilter
{
	HgjSource  *asks;			/* the join's outer side: its keys, and sieve_of */
	struct HgjJoinState *join;	/* one further up, or NULL: the source's own */
	HgjHeapColumns columns;		/* the keys */
	HgjHeapTarget *targets;
	HgjBuffer  *buffers;		/* as many as columns, in their order */
	int		   *keys;			/* per key: its place in columns */
	uint64	  **words;			/* key words of a page's rows */
	double		cost;			/* of a row that is asked about, and ... */
	double		saved;			/* ... of one that goes no further */
} HgjKeyFilter;

typedef struct HgjPageSieve
{
	bool		active;			/* there is something to ask at present */
	TupleDesc	desc;
	double		read_cost;		/* of a row that the source has to read */
	int			nfilters;
	HgjKeyFilter filters[HGJ_MOST_KEY_FILTERS];
	uint8		ready;			/* a bit for each that can be asked at present */
	int			norder;			/* those that are, the first one first */
	uint8		order[HGJ_MOST_KEY_FILTERS];
	uint32	   *valid;			/* rows without a NULL key */
	uint32	   *passed;

	/* of a source with filters of several joins */
	HgjKeyFilterStats *stats;	/* one per filter; NULL: there are no others */
	uint8	   *profile;		/* which filters the last rows passed that all */
	uint32		nprofile;		/* of them were asked about, so many, and where */
	uint32		next_profile;	/* the next one goes */
	bool		profile_is_new;
	uint32		since_trial;	/* rows */
} HgjPageSieve;

/* page_sieve.c */
extern void hgj_page_sieve_init(HgjPageSieve *sieve, HgjSource *source,
								TupleDesc desc, const AttrNumber *key_attnos);
extern HgjKeyFilter *hgj_page_sieve_add(HgjPageSieve *sieve, HgjSource *asks,
										const AttrNumber *key_attnos);
extern uint32 hgj_page_sieve_run(HgjPageSieve *sieve, HgjHeapPages *pages);

/* filter_order.c */
extern void hgj_key_filters_begin(HgjPageSieve *sieve, const HgjSource *source);
extern bool hgj_key_filters_on_trial(const HgjPageSieve *sieve);
extern void hgj_key_filters_note(HgjPageSieve *sieve, const uint8 *masks,
								 uint32 n);

#endif							/* HGJ_PAGE_SIEVE_H */
