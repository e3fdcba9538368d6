/*-------------------------------------------------------------------------
 *
 * engine.h
 *	  The thread engine: pipelines on the processor's cores, for a process that makes the
 *	  calls of many sessions.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_THREADS_ENGINE_H
#define HGJ_THREADS_ENGINE_H

#include "engine/engine.h"

/* The engine "threads", for the process's life. */
extern const HgjEngine *hgj_threads_engine(void);

/* The number of threads that work when it is opened, with the one that makes a call: at least 1. */
extern void hgj_threads_want(uint32_t nthreads);

/* The cores that this process may run on. */
extern uint32_t hgj_threads_cores(void);

/* The number of threads that could be started; the engine is open. */
extern uint32_t hgj_threads_open(void);

#endif							/* HGJ_THREADS_ENGINE_H */
