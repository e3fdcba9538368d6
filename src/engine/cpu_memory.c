/*-------------------------------------------------------------------------
 *
 * cpu_memory.c
 *	  Allocation for tables that are accessed at random.
 *
 * 1. A request below 2 MB goes to aligned_alloc, on a cache line boundary.
 * 2. A bigger one is mapped with 2 MB to spare, and cut back to a 2 MB
 *	  boundary, so that the kernel can back all of it with huge pages; it is
 *	  asked to.  A random access to a table on 4 KB pages is mostly TLB miss.
 * 3. Where there is no mmap, aligned_alloc serves everything.
 * 4. Shared memory is the caller's, and mostly on small pages: they are mapped
 *	  many at a time.
 *
 * Memory belongs to the caller until hgj_mem_free; nothing is cached here.
 * Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE				/* for MAP_ANONYMOUS and madvise */
#endif

#include <stdlib.h>

#include "hgj_memory.h"

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#if defined(MAP_ANONYMOUS)
#define HGJ_HAVE_MMAP 1
#endif
#endif

#define SMALL_ALIGN	((size_t) 64)
#define HUGE_ALIGN	((size_t) 2 * 1024 * 1024)
#define PAGE_ALIGN	((size_t) 4096)

#ifdef HGJ_MEM_TEST

size_t		hgj_mem_test_l2_bytes;

static uint64_t test_fail_at;
static uint64_t test_calls;
static uint64_t test_live;
static uint64_t test_peak;

void
hgj_mem_test_fail_at(uint64_t k)
{
	test_fail_at = k;
}

uint64_t
hgj_mem_test_calls(void)
{
	return test_calls;
}

uint64_t
hgj_mem_test_live(void)
{
	return test_live;
}

uint64_t
hgj_mem_test_peak(void)
{
	return test_peak;
}

void
hgj_mem_test_reset_peak(void)
{
	test_peak = test_live;
}
#endif							/* HGJ_MEM_TEST */

size_t
hgj_mem_footprint(size_t bytes)
{
	size_t		align = SMALL_ALIGN;

#ifdef HGJ_HAVE_MMAP
	if (bytes >= HUGE_ALIGN)
		align = PAGE_ALIGN;
#endif
	if (bytes > SIZE_MAX / 2)
		return SIZE_MAX;
	return (bytes + align - 1) / align * align;
}

#ifdef HGJ_HAVE_MMAP

static void *
map_huge(size_t bytes)
{
	char	   *raw;
	char	   *start;
	size_t		head;

	raw = mmap(NULL, bytes + HUGE_ALIGN, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (raw == MAP_FAILED)
		return NULL;
	head = (HUGE_ALIGN - ((uintptr_t) raw & (HUGE_ALIGN - 1))) &
		(HUGE_ALIGN - 1);
	start = raw + head;
	if (head > 0)
		(void) munmap(raw, head);
	if (head < HUGE_ALIGN)
		(void) munmap(start + bytes, HUGE_ALIGN - head);
#ifdef MADV_HUGEPAGE
	(void) madvise(start, bytes, MADV_HUGEPAGE);	/* a wish, not a need */
#endif
	return start;
}
#endif							/* HGJ_HAVE_MMAP */

void *
hgj_mem_alloc(size_t bytes)
{
	size_t		size = hgj_mem_footprint(bytes);
	void	   *p = NULL;

	if (bytes == 0 || size == SIZE_MAX)
		return NULL;
#ifdef HGJ_MEM_TEST
	test_calls++;
	if (test_fail_at > 0 && --test_fail_at == 0)
		return NULL;
#endif
#ifdef HGJ_HAVE_MMAP
	if (bytes >= HUGE_ALIGN)
		p = map_huge(size);
	else
#endif
		p = aligned_alloc(SMALL_ALIGN, size);
#ifdef HGJ_MEM_TEST
	if (p != NULL)
	{
		uint64_t	live = __atomic_add_fetch(&test_live, size,
											  __ATOMIC_RELAXED);

		if (live > test_peak)
			test_peak = live;	/* meant for one thread */
	}
#endif
	return p;
}

void
hgj_mem_free(void *p, size_t bytes)
{
	if (p == NULL)
		return;
#ifdef HGJ_MEM_TEST
	(void) __atomic_sub_fetch(&test_live, hgj_mem_footprint(bytes),
							  __ATOMIC_RELAXED);
#endif
#ifdef HGJ_HAVE_MMAP
	if (bytes >= HUGE_ALIGN)
	{
		(void) munmap(p, hgj_mem_footprint(bytes));
		return;
	}
#endif
	(void) bytes;
	free(p);
}

void
hgj_mem_populate(void *p, size_t bytes)
{
#if defined(HGJ_HAVE_MMAP) && defined(MADV_POPULATE_READ)
	uintptr_t	from = (uintptr_t) p / PAGE_ALIGN * PAGE_ALIGN;

	/*
	 * Linux 5.14; an older one says no.  To read, since then pages that are in
	 * memory are mapped in runs: a quarter of the time that it takes to write.
	 */
	(void) madvise((void *) from, (uintptr_t) p + bytes - from,
				   MADV_POPULATE_READ);
#else
	(void) p;
	(void) bytes;
#endif
}
