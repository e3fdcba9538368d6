/*-------------------------------------------------------------------------
 *
 * worker_time.h
 *	  How long it takes until parallel workers are at work, and gone again
 *	  (worker_time.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_WORKER_TIME_H
#define HGJ_WORKER_TIME_H

#include "compat.h"

#include "port/atomics.h"

/* As many workers as times are of, which is PostgreSQL's default for a Gather. */
#define HGJ_TIMED_WORKERS	2

/* How the background worker that measures is called, and those that it starts. */
#define HGJ_PROBE_MAIN			"hgj_worker_probe_main"
#define HGJ_PROBED_MAIN			"hgj_probed_worker_main"

/* In shared memory: processes that one process has others start. */
typedef struct HgjLaunch
{
	uint64		asked;			/* microseconds, by everybody's clock: when it did */
	pg_atomic_uint64 last;		/* when the last of them began, so far; 0: none has */
	pg_atomic_uint32 started;	/* those that have begun */
} HgjLaunch;

/* In the postmaster, when it loads the library. */
extern void hgj_worker_time_share(void);

/* Where the background worker and those that it starts meet; NULL: nowhere. */
extern HgjLaunch *hgj_probe_launch(void);

/* Microseconds of a clock that all processes of the machine share. */
extern uint64 hgj_microseconds(void);

/* The one who asks is about to ask, */
extern void hgj_launch_begin(HgjLaunch *launch);

/* one of the others has begun, */
extern void hgj_launch_started(HgjLaunch *launch);

/* and the one who has asked looks at it; a Gather's nodes all have one. */
extern void hgj_launch_look(const HgjLaunch *launch);

/* The background worker has measured two workers: until both had begun, until both had gone. */
extern void hgj_worker_time_probed(uint64 start, uint64 end);

/*
 * What HGJ_TIMED_WORKERS workers take of a query's time, in milliseconds, by the setting or
 * as measured.  It is one value as long as one statement runs.
 */
extern double hgj_worker_time_now(void);

/* The same as measured; false: nothing has been, and it is a guess. */
extern bool hgj_worker_time_measured(double *milliseconds);

/* What so many workers take, as a part of that. */
extern double hgj_workers_part(int workers, double processors);

/* How many processors the machine has, or is said to have. */
extern double hgj_usable_processors(void);

#endif							/* HGJ_WORKER_TIME_H */
