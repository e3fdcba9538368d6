/*-------------------------------------------------------------------------
 *
 * cpu_account.c
 *	  What the files of the CPU's engine share: a table's memory account,
 *	  and the check of keys.
 *
 * 1. Every allocation of a table goes through hgj_cpu_get, which refuses what
 *	  would pass spec.memory_limit, and counts footprints.
 * 2. Filling and touching memory polls, because gigabytes take seconds.
 *
 * Memory belongs to the table.  Locks nothing: the account is atomic because
 * several probes of one table may be created at the same time.
 *
 *-------------------------------------------------------------------------
 */
#include "cpu_internal.h"

#define FILL_STEP			((size_t) 4 * 1024 * 1024)
#define POPULATE_STEP		((size_t) 16 * 1024 * 1024)
#define TOUCH_STEP			((size_t) 2 * 1024 * 1024)	/* a huge page */

/*
 * Allocate for a table: HGJ_LIMIT where spec.memory_limit would be passed,
 * HGJ_OUT_OF_MEMORY where there is none.
 */
HgjStatus
hgj_cpu_get(HgjTable *table, size_t bytes, void **p, HgjError *err)
{
	size_t		size = hgj_mem_footprint(bytes);
	uint64_t	limit = table->spec.memory_limit;
	uint64_t	now = __atomic_load_n(&table->current, __ATOMIC_RELAXED);
	uint64_t	peak;

	*p = NULL;
	if (size == SIZE_MAX)
		return hgj_fail(err, HGJ_OUT_OF_MEMORY, "the table is too large");
	if (limit > 0 && (now > limit || size > limit - now))
		return hgj_fail(err, HGJ_LIMIT,
						"the table does not fit its memory limit");
	*p = hgj_mem_alloc(bytes);
	if (*p == NULL)
		return hgj_fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	now = __atomic_add_fetch(&table->current, size, __ATOMIC_RELAXED);
	peak = __atomic_load_n(&table->peak, __ATOMIC_RELAXED);
	while (now > peak &&
		   !__atomic_compare_exchange_n(&table->peak, &peak, now, true,
										__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		continue;
	return HGJ_OK;
}

/* Give back what hgj_cpu_get(bytes) returned; NULL is allowed. */
void
hgj_cpu_put(HgjTable *table, void *p, size_t bytes)
{
	if (p == NULL)
		return;
	hgj_mem_free(p, bytes);
	(void) __atomic_sub_fetch(&table->current, hgj_mem_footprint(bytes),
							  __ATOMIC_RELAXED);
}

/* memset that polls: fresh memory is cleared by the kernel meanwhile. */
HgjStatus
hgj_cpu_fill(HgjTable *table, void *p, int byte, size_t bytes, HgjError *err)
{
	size_t		at = 0;

	while (at < bytes)
	{
		size_t		n = bytes - at < FILL_STEP ? bytes - at : FILL_STEP;

		memset((uint8_t *) p + at, byte, n);
		at += n;
		if (at < bytes)
		{
			HgjStatus	status = hgj_poll(&table->spec, err);

			if (status != HGJ_OK)
				return status;
		}
	}
	return HGJ_OK;
}

/*
 * Have the kernel clear fresh memory that is about to be written in random
 * order: else the first few thousand rows touch, and so clear, all of it, which
 * for gigabytes in huge pages takes seconds, and nobody polls meanwhile.
 */
HgjStatus
hgj_cpu_touch(HgjTable *table, void *p, size_t bytes, HgjError *err)
{
	volatile uint8_t *bytes_of = p;
	size_t		at;

	for (at = TOUCH_STEP; at < bytes; at += TOUCH_STEP)
	{
		HgjStatus	status = hgj_poll(&table->spec, err);

		if (status != HGJ_OK)
			return status;
		bytes_of[at] = 0;
	}
	return HGJ_OK;
}

/*
 * The same for an image in shared memory, whose pages are small, and mapped one by
 * one in every process: a fault for each took as long as the build.
 */
HgjStatus
hgj_cpu_populate(HgjTable *table, void *p, size_t bytes, HgjError *err)
{
	size_t		at = 0;

	while (at < bytes)
	{
		size_t		n = bytes - at < POPULATE_STEP ? bytes - at : POPULATE_STEP;
		HgjStatus	status = hgj_poll(&table->spec, err);

		if (status != HGJ_OK)
			return status;
		hgj_mem_populate((uint8_t *) p + at, n);
		at += n;
	}
	return HGJ_OK;
}

/* Whether a batch is one that this table can take. */
HgjStatus
hgj_cpu_check_keys(const HgjTable *table, const HgjKeys *keys, HgjError *err)
{
	if (keys != NULL && keys->location != HGJ_ON_HOST)
		return hgj_fail(err, HGJ_UNSUPPORTED,
						"the CPU engine takes keys in host memory only");
	return hgj_check_keys(keys, table->spec.nwords, err);
}

/* Free what a graph owns. */
void
hgj_cpu_graph_free(HgjTable *table, Graph *graph)
{
	hgj_cpu_put(table, graph->offsets, graph->offsets_bytes);
	hgj_cpu_put(table, graph->slices, graph->slices_bytes);
	hgj_cpu_put(table, graph->entries, graph->entries_bytes);
	graph->offsets = NULL;
	graph->slices = NULL;
	graph->entries = NULL;
}
