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

/* Ask for huge pages before the memory is used; where there are none, nothing changes. */
extern void hgj_memory_in_huge_pages(void *memory, Size bytes);

#endif							/* HGJ_MAPPED_MEMORY_H */
