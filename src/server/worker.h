/*-------------------------------------------------------------------------
 *
 * worker.h
 *	  The worker that keeps a GPU process running, and the sessions' way to it
 *	  (worker.c, client.c, letter.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_WORKER_H
#define HGJ_WORKER_H

#include "compat.h"

#include "engine/engine.h"
#include "server/channel.h"

/*
 * From _PG_init, while the postmaster loads the library: shared memory and the worker,
 * if hashgraph_join.gpu_server asks for them.
 */
extern void hgj_server_share(void);

/* From _PG_init: at the end of a query nothing that it has written waits to be sent. */
extern void hgj_install_letters(void);

/*
 * What an engine of this process is to know of columns kept in memory; stay: copies are
 * for later queries, too.
 */
extern void hgj_kept_memory_for(HgjKeptMemory *kept, bool stay);

/* The server of this postmaster, or NULL. */
extern HgjServer *hgj_server(void);

/* Is it the one for that library, so that this session is not to open the GPU itself? */
extern bool hgj_server_serves(const char *library);

/* How many threads its device consists of.  A GPU has 0 of them, and a device that is not there, too. */
extern int	hgj_server_threads(void);

/*
 * Its engine, for this session: whose calls are made in the GPU process.  NULL, and
 * HGJ_NO_DEVICE, while there is none, or no device.
 */
extern const HgjEngine *hgj_server_engine(HgjError *err);

#endif							/* HGJ_WORKER_H */
