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
#include "postmaster/bgworker.h"

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

/* A background worker of this library for no database, which is not started again. */
extern void hgj_describe_worker(BackgroundWorker *worker, const char *name,
								const char *function);

/* Where the background worker and those that it starts meet; NULL: nowhere. */
extern HgjLaunch *hgj_probe_launch(void);

/* Microseconds of a clock that all processes of the machine share. */
extern uint64 hgj_microseconds(void);

/* The process that asks for others calls this before it does. */
extern void hgj_launch_begin(HgjLaunch *launch);

/* Each of the others calls this when it has begun. */
extern void hgj_launch_started(HgjLaunch *launch);

/* The process that has asked calls this afterwards; all nodes of a Gather have a launch. */
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

/* The time that this number of workers takes, as a part of that of HGJ_TIMED_WORKERS. */
extern double hgj_workers_part(int workers, double processors);

/* How many processors the machine has, or is said to have. */
extern double hgj_usable_processors(void);

#endif							/* HGJ_WORKER_TIME_H */
