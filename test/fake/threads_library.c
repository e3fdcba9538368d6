/*-------------------------------------------------------------------------
 *
 * threads_library.c
 *	  The thread engine (src/threads) in a library of its own that says that it is "cuda":
 *	  so that tests of pipelines, and queries under engine = cuda, run on it, a server's process
 *	  for all sessions included.
 *
 * It has three threads, also where there are fewer processors.
 *
 * Owns nothing, locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "threads/engine.h"

#define THREADS		3

__attribute__((visibility("default")))
extern const HgjEngine *hgj_engine_entry(void);

const HgjEngine *
hgj_engine_entry(void)
{
	static HgjEngine engine;

	engine = *hgj_threads_engine();
	engine.name = "cuda";
	hgj_threads_want(THREADS);
	return &engine;
}
