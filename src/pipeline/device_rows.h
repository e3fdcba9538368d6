/*-------------------------------------------------------------------------
 *
 * device_rows.h
 *	  What device_rows.c and device_blocks.c share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_DEVICE_ROWS_H
#define HGJ_DEVICE_ROWS_H

#include "compat.h"

#include "pipeline/device.h"

typedef struct HgjDeviceChosen HgjDeviceChosen;

/* What the pipeline has returned, and how far the upper join has come with it. */
typedef struct HgjDeviceRows
{
	HgjDeviceChosen *chosen;	/* kept rows come first (device_rows_kept.c); NULL: none */
	bool		alone;			/* the upper join is the bottom one: there are no others */
	bool		rest;			/* but they are to be joined by itself, now */
	bool		active;			/* the upper join's rows come from here */
	bool		left;			/* some of the outer batch at hand have */
	uint64		batches;		/* outer batches that have been read */
	uint32		most_rows;		/* that one may have: one push's */
	uint32		pushed;			/* rows of the one at hand */
	uint32		base;			/* the first one of the last push */
	bool		pending;		/* more of that is to be fetched */
	HgjPipeRows fetched;
	uint32		next;			/* of order */
	bool		unique;			/* no input row twice, and order is ascending */
	uint32		filled[256];	/* first of order, for each set of filled joins */
	uint32	   *order;			/* numbers of fetched rows */
	uint32	   *sorted;			/* the same, before they are sorted */
	uint32		capacity;		/* of these, and the following arrays */
	uint32	   *rows[HGJ_PIPE_JOINS];	/* of the block, per join */
	uint32	   *outer_rows;		/* of the block, */
	uint32	   *probe;			/* and of the upper join's outer batch */
	uint32	   *identity;
	uint32	   *seen;			/* per row of the push: its number in fetched */
	uint32		seen_capacity;
	uint32		nblock;
	HgjPipelineInfo counted;	/* what instruments know of */
} HgjDeviceRows;

/* device_rows.c */
extern bool hgj_device_lower_rows(HgjPipelineState *d);
extern void hgj_device_rows_begin(HgjPipelineState *d);

/* device_rows_kept.c */
extern void hgj_device_plan_chosen(HgjPipelineState *d);
extern bool hgj_device_start_chosen(HgjPipelineState *d);
extern bool hgj_device_next_chosen(HgjPipelineState *d);
extern void hgj_device_leave_chosen(HgjPipelineState *d);
extern void hgj_device_end_chosen(HgjPipelineState *d, bool go_on);
extern bool hgj_device_chooses(const HgjPipelineState *d);
extern HgjPipelineState *hgj_device_of_chosen(const HgjPipelineState *d);

/* device_blocks.c */
extern void hgj_device_rows_order(HgjPipelineState *d);
extern void hgj_device_rows_block(HgjPipelineState *d);

#endif							/* HGJ_DEVICE_ROWS_H */
