/*-------------------------------------------------------------------------
 *
 * mapped_memory.c
 *	  How shared memory is mapped by the processes that read it.
 *
 * A process has a page fault for each 64 kB of shared memory that it reads first, and the
 * pages are taken off one by one when it ends: 0.15 milliseconds a megabyte, which is more
 * than a worker of a short query does with it.  A huge page is one fault for two megabytes.
 *
 * huge_pages asks for them for all of PostgreSQL's shared memory, and an administrator has
 * to put them aside first.  Transparent ones need no more than that the system gives them
 * to memory that asks (/sys/kernel/mm/transparent_hugepage/shmem_enabled, advise).  The
 * postmaster asks, and who is forked from it has asked, too.
 *
 * Mapping what is about to be read by one call (MADV_POPULATE_READ) was tried: it takes as
 * long as the faults, or a tenth more, as the kernel maps page by page in either case.
 *
 * No memory, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/mapped_memory.h"

/*
 * See mapped_memory.h.  Pages that have other memory, too, are left alone.  That the
 * system does not know of it, or has it in huge pages already, is no failure.
 */
void
hgj_memory_in_huge_pages(void *memory, Size bytes)
{
#ifdef MADV_HUGEPAGE
	uintptr_t	page = (uintptr_t) sysconf(_SC_PAGESIZE);
	uintptr_t	begin = TYPEALIGN(page, (uintptr_t) memory);
	uintptr_t	end = TYPEALIGN_DOWN(page, (uintptr_t) memory + bytes);

	if (begin < end)
		(void) madvise((void *) begin, end - begin, MADV_HUGEPAGE);
#endif
}
