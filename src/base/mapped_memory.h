/*-------------------------------------------------------------------------
 *
 * mapped_memory.h
 *	  How shared memory is mapped by the processes that read it (mapped_memory.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_MAPPED_MEMORY_H
#define HGJ_MAPPED_MEMORY_H

#include "compat.h"

#define HGJ_HUGE_PAGE		((Size) 2 * 1024 * 1024)

/* Bytes that memory for huge pages has more than what is used of it. */
#define HGJ_HUGE_PAGE_ROOM	(3 * HGJ_HUGE_PAGE)

/*
 * In the postmaster, before the memory is used: `memory` has bytes + HGJ_HUGE_PAGE_ROOM
 * bytes, of which the result has `bytes`, at an address where huge pages may be mapped, if
 * the system has any.
 */
extern void *hgj_memory_for_huge_pages(void *memory, Size bytes);

/*
 * The range of that memory is about to be filled for the first time, and what is before it
 * has been: huge pages that begin in it are made.  Others may fill parts of them at the same
 * time.  0, or the errno that the system refuses some with.  *huge: bytes of the range that lie
 * in huge pages, then
 */
extern int	hgj_memory_in_huge_pages(const char *begin, const char *end, Size *huge);

/* A debug message says why memory of the range has stayed in small pages, if it has. */
extern void hgj_memory_say_small(int refused);

#endif							/* HGJ_MAPPED_MEMORY_H */
