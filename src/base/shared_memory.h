/*-------------------------------------------------------------------------
 *
 * shared_memory.h
 *	  Parts of the postmaster's shared memory that are ours (shared_memory.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_SHARED_MEMORY_H
#define HGJ_SHARED_MEMORY_H

#include "compat.h"

typedef struct HgjSharedPart
{
	const char *name;			/* of its memory, and of its lock's tranche */
	Size		(*bytes) (void);	/* 0: it is not wanted; settings are known */
	bool		has_lock;		/* GetNamedLWLockTranche(name) has one */

	/*
	 * The memory is there; found: somebody has made it before.  Otherwise nothing is
	 * said of what it holds.  AddinShmemInitLock is held.
	 */
	void		(*attach) (void *memory, bool found);
} HgjSharedPart;

/* While the postmaster loads the library.  The part stays the caller's, for ever. */
extern void hgj_shared_memory_add(const HgjSharedPart *part);

#endif							/* HGJ_SHARED_MEMORY_H */
