/*-------------------------------------------------------------------------
 *
 * page_sieve.h
 *	  Outer rows that cannot match, dropped before they are read
 *	  (page_sieve.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_PAGE_SIEVE_H
#define HGJ_PAGE_SIEVE_H

#include "compat.h"

#include "exec/heap_columns.h"
#include "exec/heap_pages.h"
#include "exec/source.h"

typedef struct HgjPageSieve
{
	bool		possible;		/* the keys are such that it can be done */
	bool		active;			/* and at present, it pays */
	HgjHeapColumns columns;		/* the keys */
	HgjHeapTarget *targets;
	HgjBuffer  *buffers;		/* as many as columns, in their order */
	int		   *keys;			/* per key: its place in columns */
	uint64	  **words;			/* key words of a page's rows */
	uint32	   *valid;			/* rows without a NULL key */
	uint32	   *passed;
} HgjPageSieve;

extern void hgj_page_sieve_init(HgjPageSieve *sieve, const HgjSource *source,
								TupleDesc desc, const AttrNumber *key_attnos);
extern void hgj_page_sieve_begin(HgjPageSieve *sieve, const HgjSource *source);
extern uint32 hgj_page_sieve_run(HgjPageSieve *sieve, HgjSource *source,
								 HgjHeapPages *pages);

#endif							/* HGJ_PAGE_SIEVE_H */
