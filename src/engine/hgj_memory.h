/*-------------------------------------------------------------------------
 *
 * hgj_memory.h
 *	  Memory for tables that are accessed at random: big requests come
 *	  2 MB aligned, on huge pages where the system has them.
 *
 * Used by the CPU engine and by the executor's row store.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_MEMORY_H
#define HGJ_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/*
 * bytes bytes, aligned to 64 (2 MB from 2 MB on), contents undefined; NULL
 * where there is no memory or bytes is 0.  The caller keeps the size: free
 * wants it again.
 */
extern void *hgj_mem_alloc(size_t bytes);

/* Give back what hgj_mem_alloc(bytes) returned; NULL is allowed. */
extern void hgj_mem_free(void *p, size_t bytes);

/*
 * The bytes that a request of this size really takes, for accounting;
 * SIZE_MAX where it cannot be served at all.
 */
extern size_t hgj_mem_footprint(size_t bytes);

/*
 * Have pages of shared memory mapped that are going to be used in random order: a
 * hint, which saves a page fault for each.  Contents stay.
 */
extern void hgj_mem_populate(void *p, size_t bytes);

#ifdef HGJ_MEM_TEST

/* Test build only: fail the k-th allocation from now (1 = next), 0 = none. */
extern void hgj_mem_test_fail_at(uint64_t k);

/* Test build only: allocations that were asked for, since the process began. */
extern uint64_t hgj_mem_test_calls(void);

/* Test build only: bytes (footprints) that are allocated and not yet freed. */
extern uint64_t hgj_mem_test_live(void);

/* Test build only: highest value of the above since the last reset. */
extern uint64_t hgj_mem_test_peak(void);
extern void hgj_mem_test_reset_peak(void);

/* Test build only: the L2 cache that new tables see, 0 = the machine's. */
extern size_t hgj_mem_test_l2_bytes;
#endif

#endif							/* HGJ_MEMORY_H */
