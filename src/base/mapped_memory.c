/*-------------------------------------------------------------------------
 *
 * mapped_memory.c
 *	  How shared memory is mapped by the processes that read it.
 *
 * A process has a page fault for each 64 kB of shared memory that it reads first, and the
 * pages are taken off one by one when it ends, while the leader of a parallel query waits
 * for it: 0.15 milliseconds a megabyte, which is more than a worker of a short query does
 * with it.  A huge page is one fault for two megabytes.
 *
 * huge_pages asks for them for all of PostgreSQL's shared memory, and an administrator has
 * to put them aside first.  The rest is for servers where nobody has:
 *
 * 1. Linux gives transparent huge pages to shared memory that asks for them by MADV_COLLAPSE
 *	  (6.1), whatever /sys/kernel/mm/transparent_hugepage/shmem_enabled says, but for
 *	  "deny".  The call puts one in the place of the small pages that are there.
 * 2. A process can map one only where its address and its place in the memory's file differ
 *	  by a multiple of two megabytes.  PostgreSQL's memory begins at any small page.
 *	  The part that is asked for is therefore mapped again, less than a huge page
 *	  further on in the file, at the next huge page's address.  It stays inside of the
 *	  addresses that PostgreSQL has: who gives up its shared memory gives this up, too.
 * 3. A range is collapsed just before it is first filled.  One page of it that has
 *	  been touched is enough for the call, so that neither 512 pages are cleared one by one,
 *	  nor what they hold is copied.
 *
 * Mapping what is about to be read by one call (MADV_POPULATE_READ) was tried: it takes as
 * long as the faults, or a tenth more, as the kernel maps page by page in either case.
 *
 * Memory: the postmaster's shared memory, whose owner asks.  Locks: none.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/mapped_memory.h"

#define HUGE_PAGE		((Size) 2 * 1024 * 1024)
#define MOST_TRIES		3

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE	25
#endif

/* Where a page of the process stands: /proc/self/maps. */
typedef struct Mapping
{
	uintptr_t	end;			/* address behind the mapping */
	uintptr_t	offset;			/* place of the page in the mapping's file */
	bool		is_plain;		/* kind: anonymous shared memory in small pages */
} Mapping;

/* Set in the postmaster: huge pages may be mapped where the range lies.  Step 2. */
static bool may_be_huge = false;

/* False: the page is in no mapping, or the list cannot be read. */
static bool
find_mapping(uintptr_t address, Mapping *found)
{
	FILE	   *maps = fopen("/proc/self/maps", "r");
	char		line[MAXPGPATH + 128];
	bool		is_found = false;

	while (maps != NULL && !is_found && fgets(line, sizeof(line), maps) != NULL)
	{
		unsigned long begin;
		unsigned long end;
		unsigned long offset;
		int			name = 0;

		if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %n", &begin, &end, &offset, &name) < 3 ||
			address < begin || address >= end)
			continue;
		found->end = end;
		found->offset = offset + (address - begin);
		found->is_plain = name > 0 && strncmp(line + name, "/dev/zero", 9) == 0;
		is_found = true;
	}
	if (maps != NULL)
		fclose(maps);
	return is_found;
}

/* See mapped_memory.h.  Step 2; what cannot be mapped again stays as it is. */
void *
hgj_memory_for_huge_pages(void *memory, Size bytes)
{
	uintptr_t	begin = TYPEALIGN(HUGE_PAGE, (uintptr_t) memory);
	Size		mapped = TYPEALIGN(HUGE_PAGE, bytes);
	Mapping		mapping;
	void	   *source;
	void	   *moved;

	may_be_huge = false;
	if (!find_mapping(begin, &mapping) || !mapping.is_plain)
		return memory;
	/* HGJ_HUGE_PAGE_ROOM: up to one page lies before the range, and one behind it */
	source = (void *) (begin + (TYPEALIGN(HUGE_PAGE, mapping.offset) - mapping.offset));
	if ((uintptr_t) source + mapped > mapping.end)
		return memory;
	may_be_huge = source == (void *) begin;
	if (may_be_huge)
		return source;
	/* a second mapping of shared memory has no old size; it cannot overlap the first */
	moved = mremap(source, 0, mapped, MREMAP_MAYMOVE);
	if (moved == MAP_FAILED)
		return memory;
	if (mremap(moved, mapped, mapped, MREMAP_MAYMOVE | MREMAP_FIXED, (void *) begin) == MAP_FAILED)
	{
		(void) munmap(moved, mapped);
		return memory;
	}
	may_be_huge = true;
	return (void *) begin;
}

/* Step 3, of one page: 0, or why there is none. */
static int
make_huge(char *page)
{
	volatile char *first = page;

	*first = *first;
	/* somebody else may just be at this page, for the same purpose or to fill it */
	for (int tries = 0; tries < MOST_TRIES; tries++)
		if (madvise(page, HUGE_PAGE, MADV_COLLAPSE) == 0)
			return 0;
		else if (errno != EAGAIN)
			return errno;
	return EAGAIN;
}

/*
 * See mapped_memory.h.  Step 3.  What the system refuses is refused for good: it does not
 * know the call, or has been told not to give any, or has none at present, and a
 * range is asked for once.
 */
void
hgj_memory_in_huge_pages(char *begin, const char *end)
{
	int			refused = 0;

	for (char *page = (char *) TYPEALIGN(HUGE_PAGE, begin);
		 may_be_huge && page < end && (refused == 0 || refused == EAGAIN); page += HUGE_PAGE)
	{
		int			why = make_huge(page);

		refused = why != 0 ? why : refused;
	}
	errno = refused;
	if (refused != 0)
		ereport(DEBUG1,
				(errmsg_internal("kept columns are in small pages of memory from here: %m")));
}
