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
 *	  nor what they hold is copied.  It is touched by reading: others may be writing to it.
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

#define MOST_TRIES		3
#define PLAIN_MEMORY	"/dev/zero"
#define HUGE_MEMORY		"/anon_hugepage"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE	25
#endif

/* What a page of the process belongs to: /proc/self/maps. */
typedef struct Mapping
{
	uintptr_t	end;			/* address behind the mapping */
	uintptr_t	offset;			/* place of the page in the mapping's file */
	char		name[32];		/* beginning of the file's name */
} Mapping;

/* Set in the postmaster: why huge pages cannot be mapped where the range lies; NULL: they can. */
static const char *why_small = NULL;

/* Set there as well: the range lies in huge pages that an administrator has put aside. */
static bool is_huge = false;

#if defined(__linux__)

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
		strlcpy(found->name, name > 0 ? line + name : "", sizeof(found->name));
		is_found = true;
	}
	if (maps != NULL)
		fclose(maps);
	return is_found;
}

static bool
begins_with(const Mapping *mapping, const char *name)
{
	return strncmp(mapping->name, name, strlen(name)) == 0;
}

/* Step 2: `bytes` of memory from `source` on are at `begin`, too; false: nothing has changed. */
static bool
map_again(void *source, void *begin, Size bytes)
{
	/* a second mapping of shared memory has no old size; it cannot overlap the first */
	void	   *moved = mremap(source, 0, bytes, MREMAP_MAYMOVE);

	if (moved == MAP_FAILED)
		return false;
	/* what is at `begin` goes first, so that there is no way back */
	if (mremap(moved, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, begin) == MAP_FAILED)
		ereport(FATAL,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("could not map memory for kept columns: %m"),
				 errhint("Set hashgraph_join.column_memory to 0 to do without.")));
	return true;
}

/* See mapped_memory.h.  Step 2; what cannot be mapped again stays as it is. */
void *
hgj_memory_for_huge_pages(void *memory, Size bytes)
{
	uintptr_t	begin = TYPEALIGN(HGJ_HUGE_PAGE, (uintptr_t) memory);
	Size		mapped = TYPEALIGN(HGJ_HUGE_PAGE, bytes);
	Mapping		mapping = {0};
	uintptr_t	source;

	is_huge = false;
	why_small = "/proc/self/maps does not say where the memory is";
	if (!find_mapping(begin, &mapping))
		return memory;
	is_huge = begins_with(&mapping, HUGE_MEMORY);
	why_small = "the memory is no anonymous mapping";
	if (!begins_with(&mapping, PLAIN_MEMORY))
		return memory;
	/* HGJ_HUGE_PAGE_ROOM: up to one page lies before the range, and one behind it */
	source = begin + (TYPEALIGN(HGJ_HUGE_PAGE, mapping.offset) - mapping.offset);
	why_small = "the memory cannot be mapped again";
	if (source != begin &&
		(source + mapped > mapping.end || !map_again((void *) source, (void *) begin, mapped)))
		return memory;
	why_small = NULL;
	return (void *) begin;
}

/* Step 3: makes one page huge.  Returns 0, or the errno of the call that was refused. */
static int
make_huge(const char *page)
{
	(void) *(const volatile char *) page;
	/* somebody else may just be filling it */
	for (int tries = 0; tries < MOST_TRIES; tries++)
		if (madvise((void *) page, HGJ_HUGE_PAGE, MADV_COLLAPSE) == 0)
			return 0;
		else if (errno != EAGAIN)
			return errno;
	return EAGAIN;
}

#else

void *
hgj_memory_for_huge_pages(void *memory, Size bytes)
{
	(void) bytes;
	why_small = "this system has no way to ask for others";
	return memory;
}

static int
make_huge(const char *page)
{
	(void) page;
	return ENOSYS;
}

#endif

/*
 * See mapped_memory.h.  Step 3.  A page that others are busy with stays small; where the system
 * does not know the call, or has no huge page to give at present, the rest of the range does.
 */
int
hgj_memory_in_huge_pages(const char *begin, const char *end, Size *huge)
{
	int			refused = 0;

	*huge = is_huge && begin < end ? (Size) (end - begin) : 0;
	for (const char *page = (const char *) TYPEALIGN(HGJ_HUGE_PAGE, begin);
		 why_small == NULL && page < end && (refused == 0 || refused == EAGAIN); page += HGJ_HUGE_PAGE)
	{
		int			why = make_huge(page);

		refused = why != 0 ? why : refused;
		if (why == 0)
			*huge = Min(*huge + HGJ_HUGE_PAGE, (Size) (end - begin));
	}
	return refused;
}

/* See mapped_memory.h. */
void
hgj_memory_say_small(int refused)
{
	if (why_small != NULL && !is_huge)
		ereport(DEBUG1,
				(errmsg_internal("kept columns are in small pages of memory: %s", why_small)));
	errno = refused;
	if (refused != 0)
		ereport(DEBUG1,
				(errmsg_internal("kept columns are in small pages of memory in part: %m")));
}
