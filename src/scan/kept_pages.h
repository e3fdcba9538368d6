/*-------------------------------------------------------------------------
 *
 * kept_pages.h
 *	  The pages of a scan whose columns are kept in memory (kept_pages.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_KEPT_PAGES_H
#define HGJ_KEPT_PAGES_H

#include "compat.h"

#include "kept/store.h"
#include "scan/page_columns.h"

typedef struct HgjKeptPages
{
	Relation	rel;
	HgjPageColumns *columns;	/* of which all are to be kept */
	bool		on;				/* this execution may use them */
	bool		looked;			/* at the run: */
	uint32		run;
	int			ncols;			/* columns there were then; 0: not all are kept */
	HgjHeldChunk *chunks;		/* of each */
	uint64		valid[HGJ_RUN_WORDS];	/* pages that all chunks have, and that have
										 * not changed since */
	HgjKeptRows rows;			/* the slice at hand */

	/* chunks of earlier runs that a batch has pointers into */
	HgjHeldChunk *held;
	int			nheld;
	int			room;
	MemoryContext context;
	MemoryContextCallback when_gone;
} HgjKeptPages;

extern HgjKeptPages *hgj_kept_pages_init(Relation rel, HgjPageColumns *columns);
extern void hgj_kept_pages_begin(HgjKeptPages *kept, Snapshot snapshot);
extern bool hgj_kept_page(HgjKeptPages *kept, BlockNumber block, uint32 *nrows);
extern void hgj_kept_slice(HgjKeptPages *kept, BlockNumber block);
extern void hgj_kept_pages_forget(HgjKeptPages *kept);
extern void hgj_kept_pages_reset(HgjKeptPages *kept);

#endif							/* HGJ_KEPT_PAGES_H */
