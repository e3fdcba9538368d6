/*-------------------------------------------------------------------------
 *
 * registry.h
 *	  Finding an engine by its name.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_REGISTRY_H
#define HGJ_REGISTRY_H

#include "engine.h"

/* The file, in the server's library directory, that holds the CUDA engine. */
#define HGJ_CUDA_LIBRARY	"hashgraph_join_cuda.so"

/*
 * The engine of that name, or NULL with *err filled.  libdir is where engine
 * libraries lie (PostgreSQL's $libdir); only engines that are not built in
 * need it.  A library is opened once per process, on the first call that asks
 * for it, and stays open; a failure is tried again by the next call.
 */
extern const HgjEngine *hgj_registry_find(const char *name,
										  const char *libdir, HgjError *err);

/* The names that hgj_registry_find knows, i = 0 .. count - 1; else NULL. */
extern int	hgj_registry_count(void);
extern const char *hgj_registry_name(int i);

#endif							/* HGJ_REGISTRY_H */
