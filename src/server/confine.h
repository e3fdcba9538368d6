/*-------------------------------------------------------------------------
 *
 * confine.h
 *	  In the GPU process: giving up PostgreSQL's memory (confine.c).
 *
 * None of PostgreSQL's headers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CONFINE_H
#define HGJ_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/engine.h"

/*
 * Of all memory that this process can write to and shares with others it keeps `bytes` at
 * `keep`, and that of *kept, only to be read.  kept->memory becomes NULL where that cannot be kept.  False: it
 * could not be done, and *why says what could not.
 */
extern bool hgj_confine(const void *keep, size_t bytes, HgjKeptMemory *kept,
						const char **why);

#endif							/* HGJ_CONFINE_H */
