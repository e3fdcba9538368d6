/*-------------------------------------------------------------------------
 *
 * prewarm.h
 *	  In the worker: kept columns go to the device before a query asks for them (prewarm.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_PREWARM_H
#define HGJ_PREWARM_H

#include "compat.h"

#include "server/channel.h"

/*
 * What is to be done next; of a GPU process that is ready.  stop: ends it, and returns when it
 * has ended.  How many milliseconds later to call again, if `most` are the most.
 */
extern long hgj_prewarm_step(HgjServer *server, void (*stop) (void), long most);

/* Has it been asked for something so long before, and not answered since?  Nor a session? */
extern bool hgj_prewarm_hangs(HgjServer *server, uint64 quiet_since, uint64 seconds);

/* The GPU process has ended, or there is none yet. */
extern void hgj_prewarm_forget(HgjServer *server);

#endif							/* HGJ_PREWARM_H */
