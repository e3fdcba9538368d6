/*-------------------------------------------------------------------------
 *
 * page_source.h
 *	  The pages source (source_pages.c), and its way into batches
 *	  (page_output.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_PAGE_SOURCE_H
#define HGJ_PAGE_SOURCE_H

#include "compat.h"

#include "scan/heap_pages.h"
#include "scan/page_columns.h"
#include "scan/page_quals.h"
#include "scan/page_filters.h"

typedef struct HgjPageSource
{
	SeqScanState *node;
	HgjHeapPages pages;
	HgjPageColumns columns;
	HgjPageQuals quals;
	HgjPageFilters filters;
	uint32		next_row;		/* of the rows that are left of the page */
	uint32	   *selection;		/* rows whose keys are not NULL */

	HgjPageTarget *targets;		/* where each of the page's columns goes */
	HgjBuffer  *key_buffers;	/* used for keys that are not wanted, or these, */
	HgjVector  *key_vectors;	/* which point at values of chunks */
	AttrNumber *attnos;			/* per wanted column: the table's number, */
	int		   *wanted;			/* and that in columns; -1: a system column */
	int		   *keys;			/* per key: its number in columns */
	int			noutput;		/* all that are wanted and all keys, each once */
	int		   *output;
	bool		by_reference;	/* a wanted column is */
	bool		tid_wanted;
	uint64		pages_before;	/* this run over the table, */
	uint64		pages_shown;	/* and since: those that the progress knows of */
} HgjPageSource;

extern Var *hgj_page_child_var(const HgjSource *source, AttrNumber attno);
extern AttrNumber hgj_page_column_attno(const HgjSource *source, int c);
extern void hgj_page_output_init(HgjSource *source, HgjPageSource *ps);
extern bool hgj_page_output_must_stop(const HgjSource *source, const HgjBatch *batch);
extern void hgj_page_output_take(HgjSource *source, HgjBatch *batch, uint32 n);

/* late_columns.c */
extern void hgj_late_columns_take(HgjPageSource *ps, HgjBatch *batch, uint32 n);

#endif							/* HGJ_PAGE_SOURCE_H */
