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

#include "expr/program.h"
#include "kept/store.h"
#include "scan/page_columns.h"

#define HGJ_NO_CODE			PG_UINT32_MAX

/* Conditions that pages are skipped by, at most. */
#define HGJ_MOST_KEPT_BOUNDS	8

/* As what a device takes a column (kept_ranges.c): one of these, or both. */
typedef struct HgjKeptForm
{
	bool		as_number;		/* its values, as they are stored, ... */
	int8		scale;			/* ... or decimals of this scale; -1: the former */
	uint32		most_values;	/* what the host makes of each value that the chunk has, or
								 * could have, if there are no more than these; or 0 */
} HgjKeptForm;

typedef struct HgjKeptPages
{
	Relation	rel;
	HgjPageColumns *columns;	/* of which all are to be kept */
	bool		on;				/* this execution may use them */
	bool		looked;			/* at the run: */
	HgjRunLook	look;
	int			ncols;			/* columns there were then; 0: not all are kept */
	HgjHeldChunk *chunks;		/* of each; no chunk: it is fetched for rows that are taken, */
	HgjChunkKey *keys;			/* and how it is found */
	const HgjHeldChunk *one;	/* of those that are there */
	uint64		known;			/* words of the run that have been looked at: */
	uint64		valid[HGJ_RUN_WORDS];	/* pages that all chunks have, and that have
										 * not changed since */
	BufferAccessStrategy strategy;	/* of the scan */
	HgjKeptRows rows;			/* the slice at hand */
	uint64		taken;			/* rows of the run */
	bool	   *late;			/* per column: nobody reads it before rows are taken; it */
	bool		may_be_late;	/* need not be kept then, as there are filters */
	bool		chosen;			/* others have chosen the rows: no column needs to be kept, */
	bool	   *all_late;		/* per column: true */
	bool		has_late;		/* some are not, of this run */
	uint64		late_pages;		/* of runs of which they were not, since the last trial, */
	uint64		late_fetched;	/* of which so many were fetched */
	uint32		late_pause;		/* runs until the next one, */
	uint32		late_pauses;	/* and so far */
	const HgjKeptForm *forms;	/* as which a device takes them, per column; or NULL */
	bool		fits;			/* so it can take those of the run */
	uint32	  **codes;			/* per column: codes that a dictionary has for the */
	bool	   *has_codes;		/* values of the chunk; if so, of this run's */
	int			nbounds;		/* of values that the quals let pass; `input` is the */
	HgjProgramBound bounds[HGJ_MOST_KEPT_BOUNDS];	/* column's number */

	/* chunks of earlier runs that a batch has pointers into */
	HgjHeldChunk *held;
	int			nheld;
	int			nread;			/* so many of them nobody reads any more (kept_ranges.c), */
	int			nbefore;		/* so many are of ranges before those at hand */
	int			room;
	MemoryContext context;
	MemoryContextCallback when_gone;
} HgjKeptPages;

extern HgjKeptPages *hgj_kept_pages_init(Relation rel, HgjPageColumns *columns);
extern void hgj_kept_pages_begin(HgjKeptPages *kept, Snapshot snapshot,
								 BufferAccessStrategy strategy);
extern bool hgj_kept_page(HgjKeptPages *kept, BlockNumber block, uint32 *nrows);
extern bool hgj_kept_page_may_pass(const HgjKeptPages *kept, BlockNumber block);
extern uint32 hgj_kept_pages_behind(HgjKeptPages *kept, BlockNumber block, uint32 most,
									uint32 *nrows);
extern uint32 *hgj_kept_codes(HgjKeptPages *kept, int column);
extern void hgj_kept_slice(HgjKeptPages *kept, BlockNumber block);
extern void hgj_kept_slice_missing(HgjKeptPages *kept, BlockNumber block, const uint32 *first);
extern void hgj_kept_choose(HgjKeptPages *kept, bool chosen);
extern void hgj_kept_pages_forget(HgjKeptPages *kept);
extern void hgj_kept_pages_forget_read(HgjKeptPages *kept);
extern void hgj_kept_pages_reset(HgjKeptPages *kept);

#endif							/* HGJ_KEPT_PAGES_H */
