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

/*
 * Where "cuda" is looked for until a library has been opened: a path if there is
 * a slash in it, else a file of libdir; without ".so" at its end or with it.
 * NULL, or a name that is too long, stands for HGJ_CUDA_LIBRARY.
 */
extern void hgj_registry_use(const char *library);

/* Is there a file where "cuda" is looked for?  It is not opened. */
extern bool hgj_registry_has_cuda(const char *libdir);

/* The names that hgj_registry_find knows, i = 0 .. count - 1; else NULL. */
extern int	hgj_registry_count(void);
extern const char *hgj_registry_name(int i);

#endif							/* HGJ_REGISTRY_H */
