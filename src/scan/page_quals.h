/*-------------------------------------------------------------------------
 *
 * page_quals.h
 *	  The quals of a sequential scan, over the tuples of a page (page_quals.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_PAGE_QUALS_H
#define HGJ_PAGE_QUALS_H

#include "compat.h"

#include "expr/program.h"
#include "scan/heap_pages.h"
#include "scan/page_columns.h"
#include "scan/seen_quals.h"
#include "scan/source.h"

typedef struct HgjPageQuals
{
	SeqScanState *node;
	uint32		page_rows;		/* all tuples of the page, of which ... */
	uint32		looked_at;		/* ... so many have gone through the quals */
	bool		stopped;		/* the one after them raises an error */
	bool		may_wait;		/* nobody notices if some rows never do */

	/* quals over vectors, then those that ExecQual runs */
	int		   *inputs;			/* columns that the former read */
	int			ninputs;
	const HgjVector **input_vectors;	/* by the program's numbers */
	HgjProgram *program;
	bool		started;		/* it has run in this execution */
	ExprState  *rest;
	bool		rest_may_raise;
	HeapTupleData tuple;		/* what it looks at */
	uint32	   *selection;		/* room for most_rows of the columns */

	HgjSeenQuals *seen;			/* what other scans of the query have found out, or NULL */
	uint64		pages_seen;		/* pages of which that was enough */
} HgjPageQuals;

extern int	hgj_scan_lookup(void *attnos, const Var *var);
extern void hgj_page_quals_init(HgjPageQuals *quals, HgjSource *source,
								HgjPageColumns *columns);
extern void hgj_page_quals_begin(HgjPageQuals *quals,
								 const HgjPageColumns *columns);
extern bool hgj_page_quals_may_raise(const HgjPageQuals *quals,
									 const HgjSource *source);
extern void hgj_page_quals_run(HgjPageQuals *quals, HgjSource *source,
							   const HgjHeapPages *pages, HgjPageColumns *columns);
extern int	hgj_page_quals_bounds(const HgjPageQuals *quals, HgjProgramBound *bounds,
								  int most);
extern void hgj_page_quals_reset(HgjPageQuals *quals);

/* Are there any? */
static inline bool
hgj_page_quals_exist(const HgjPageQuals *quals)
{
	return quals->program != NULL || quals->rest != NULL;
}

/* Have all tuples of the page gone through them? */
static inline bool
hgj_page_quals_done(const HgjPageQuals *quals)
{
	return quals->looked_at == quals->page_rows;
}

#endif							/* HGJ_PAGE_QUALS_H */
