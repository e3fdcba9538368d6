/*-------------------------------------------------------------------------
 *
 * sides.h
 *	  Build sides that have been made on the device, and stay there for other queries.
 *
 * A RECORD is all that decides what a side holds: the specs, and every call by which it
 * was made, with its arrays.  Kept columns are named by numbers that are never given again
 * (engine/pipeline.h), so that whoever says the same gets the same rows.  Records are
 * compared byte by byte, not by a digest.
 *
 * None of PostgreSQL's headers: it is the GPU process's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_SIDES_H
#define HGJ_SIDES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"

#define HGJ_SIDE_ARGS	5

/* Calls one behind the other, each with its arrays; all multiples of 8 bytes. */
typedef struct HgjSideRecord
{
	char	   *bytes;
	size_t		n;
	size_t		room;
	size_t		alike;			/* so many have been compared with the candidate's */
} HgjSideRecord;

typedef struct HgjSideCall
{
	uint64_t	call;			/* HgjCall */
	uint64_t	arg[HGJ_SIDE_ARGS];	/* those that the call has; 0 behind them */
	uint64_t	nbytes;			/* of arrays, which follow; a multiple of 8 */
} HgjSideCall;

/* Its table and the pipeline that has filled it and has its columns: both only read. */
typedef struct HgjSide
{
	const HgjEngine *engine;
	HgjTable   *table;
	struct HgjPipeline *pipeline;
	uint64_t	nrows;
	uint32_t	stage_rows;		/* of the pipeline's staging buffers, as it was */
	uint64_t	id;				/* of no other side, ever */

	/* sides.c's */
	HgjSideRecord *record;
	uint32_t	holders;
	uint64_t	bytes;			/* on the device */
	int64_t		used;			/* seconds: when somebody held it last */
	struct HgjSide *next;
} HgjSide;

extern HgjSideRecord *hgj_record_new(void);
extern void hgj_record_free(HgjSideRecord *record);

/*
 * Room for a call's arrays at the record's end, zeroed; NULL, and nothing happened: the
 * record would pass `most` bytes, or there is no memory.
 */
extern char *hgj_record_call(HgjSideRecord *record, uint64_t call, const uint64_t *arg,
							 int nargs, size_t nbytes, size_t most);

/*
 * A side whose record begins with this one, or NULL.  `candidate`, the last answer for a
 * shorter record, or NULL, is held no more; the answer is.
 */
extern HgjSide *hgj_side_find(HgjSideRecord *record, HgjSide *candidate);

/* Is it made of no more than the record, which it begins with? */
extern bool hgj_side_is_whole(const HgjSide *side, const HgjSideRecord *record);

/*
 * Keep a side that is built, with what the caller has filled in of `made` (all above
 * sides.c's, but for id), by this record, which goes with it.  The answer is held
 * twice, for the table and for the pipeline.  NULL: it is not kept, and nothing happened.
 */
extern HgjSide *hgj_side_keep(const HgjSide *made, uint64_t bytes, HgjSideRecord *record);

extern void hgj_side_hold(HgjSide *side);
extern void hgj_side_leave(HgjSide *side);

/*
 * Sides that nobody holds go: all of them, which makes room on the device (false: there
 * were none), or those that were not used for a while.  An engine's call may be under way
 * in this thread.
 */
extern bool hgj_sides_give_back(void);
extern void hgj_sides_tidy(void);

/* Bytes on the devices that hgj_sides_give_back() would free. */
extern uint64_t hgj_sides_idle_bytes(void);

#endif							/* HGJ_SIDES_H */
