/*-------------------------------------------------------------------------
 *
 * cpu_engine.c
 *	  The CPU's HgjEngine: creating and destroying tables.
 *
 * 1. table_create checks the spec and draws the hash's secrets.
 * 2. `memory` is two loads from the account (cpu_account.c) and, before build, a
 *	  sum over the plan.
 * 3. table_destroy gives everything back.
 *
 * A table belongs to the caller from create to destroy; its parts belong to
 * the table.  Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <unistd.h>

#include "cpu_internal.h"

#ifndef HGJ_VERSION
#define HGJ_VERSION "0.1.0"
#endif

#define DEFAULT_L2_BYTES	((size_t) 1024 * 1024)

/* Half of the bins' sizes follow from this; wrong is slower, never wrong. */
static size_t
l2_cache_bytes(void)
{
	long		bytes = -1;

#ifdef _SC_LEVEL2_CACHE_SIZE
	bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
#ifdef HGJ_MEM_TEST
	if (hgj_mem_test_l2_bytes > 0)
		return hgj_mem_test_l2_bytes;
#endif
	if (bytes >= 64 * 1024 && bytes <= 64L * 1024 * 1024)
		return (size_t) bytes;
	return DEFAULT_L2_BYTES;
}

/* HgjEngine.table_create: an empty table; HGJ_INVALID for a bad spec. */
static HgjStatus
cpu_table_create(const HgjTableSpec *spec, HgjTable **table, HgjError *err)
{
	HgjTable   *t;
	size_t		size = hgj_mem_footprint(sizeof(HgjTable));
	HgjStatus	status;

	if (table == NULL || spec == NULL)
		return hgj_fail(err, HGJ_INVALID, "table or spec is missing");
	*table = NULL;
	status = hgj_check_table(spec, err);
	if (status != HGJ_OK)
		return status;
	if (spec->device != 0)
		return hgj_fail(err, HGJ_NO_DEVICE,
						"the CPU engine has one device, number 0");
	if (spec->memory_limit > 0 && size > spec->memory_limit)
		return hgj_fail(err, HGJ_LIMIT,
						"the table does not fit its memory limit");
	t = hgj_mem_alloc(sizeof(HgjTable));
	if (t == NULL)
		return hgj_fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	memset(t, 0, sizeof(*t));
	t->spec = *spec;
	t->current = t->peak = size;
	t->row_bytes = spec->nwords * 8 + 4;
	t->l2_bytes = l2_cache_bytes();
	t->probe_bins = 1;
	t->filter_state = &t->own_filter_state;
	hgj_hash_init(&t->hash, spec->seed);
	*table = t;
	return HGJ_OK;
}

/*
 * HgjEngine.table_destroy: frees the table and all that is in it.  An image that
 * it is attached to may be gone.
 */
static void
cpu_table_destroy(HgjTable *table)
{
	if (table == NULL)
		return;
	hgj_cpu_free_chunks(table);
	hgj_cpu_put(table, table->share_bits, table->share_bits_bytes);
	if (table->image == NULL)
	{
		hgj_cpu_graph_free(table, &table->graph);
		hgj_cpu_put(table, table->bits, table->bits_bytes);
		hgj_cpu_filter_free(table);
	}
	hgj_mem_free(table, sizeof(HgjTable));
}

/* HgjEngine.memory: bytes; constant time. */
static void
cpu_memory(const HgjTable *table, HgjMemory *memory)
{
	memory->current = __atomic_load_n(&table->current, __ATOMIC_RELAXED);
	memory->peak = __atomic_load_n(&table->peak, __ATOMIC_RELAXED);
	memory->build_peak = table->built ? memory->peak :
		hgj_cpu_build_peak(table);
	memory->host = 0;
}

/* The filter's part of it. */
static void
filter_info(const HgjTable *table, HgjTableInfo *info)
{
	FilterState state = __atomic_load_n(table->filter_state, __ATOMIC_ACQUIRE);

	info->filter_bytes = state == FILTER_READY ? table->filter.bytes : 0;
	/* a graph that is one, but nobody has sifted by it */
	if (table->graph.segments == HGJ_SEGMENTS_BITS && table->filter_tested == 0)
		info->filter_bytes = 0;
	info->filter_tested = __atomic_load_n(&table->filter_tested,
										  __ATOMIC_RELAXED);
	info->filter_rejected = __atomic_load_n(&table->filter_rejected,
											__ATOMIC_RELAXED);
	if (state == FILTER_REFUSED)
		info->notes |= HGJ_NOTE_FILTER_MEMORY;
	if (table->spec.filter == HGJ_FILTER_ON && table->graph.slack > 0)
		info->notes |= HGJ_NOTE_FILTER_DYNAMIC;
}

/* HgjEngine.info: what the table is, or before build, what it is planned as. */
static void
cpu_info(const HgjTable *table, HgjTableInfo *info)
{
	memset(info, 0, sizeof(*info));
	if (table->built)
	{
		const Graph *g = &table->graph;

		info->rows = g->rows;
		info->vertices = g->vertices;
		info->slots = g->slots;
		info->longest = g->longest;
		info->entry_bytes = g->stride;
		info->bins = g->bins;
		info->build = g->build;
		info->segments = g->quotient ? HGJ_SEGMENTS_QUOTIENTS : g->segments;
		info->notes = g->notes;
		info->probe = table->probe_binned ? HGJ_PROBE_BINNED :
			HGJ_PROBE_STANDARD;
		if (table->spec.probe == HGJ_PROBE_BINNED && !table->probe_binned)
			info->notes |= HGJ_NOTE_BINNED_UNFIT;
		info->rebuilds = table->rebuilds;
		filter_info(table, info);
	}
	else
	{
		Plan		plan;

		hgj_cpu_plan(table, table->nrows, table->min_key, table->max_key,
					 &plan);
		info->rows = table->nrows;
		info->vertices = plan.vertices;
		info->entry_bytes = plan.stride;
		info->bins = plan.bins;
		info->build = plan.build;
		info->segments = plan.segments;
		info->probe = table->spec.probe;
		info->notes = plan.notes;
	}
	cpu_memory(table, &info->memory);
}

static HgjStatus
cpu_open(HgjError *err)
{
	(void) err;
	return HGJ_OK;				/* nothing to get ready */
}

static void
cpu_close(void)
{
}

static int
cpu_device_count(void)
{
	return 1;
}

/* HgjEngine.device_info: the machine's memory in bytes, its cores in units. */
static HgjStatus
cpu_device_info(int device, HgjDeviceInfo *info, HgjError *err)
{
	long		page = sysconf(_SC_PAGESIZE);
	long		value;

	if (device != 0 || info == NULL)
		return hgj_fail(err, HGJ_NO_DEVICE,
						"the CPU engine has one device, number 0");
	memset(info, 0, sizeof(*info));
	memcpy(info->name, "CPU", 4);
	if (page > 0)
	{
#ifdef _SC_PHYS_PAGES
		value = sysconf(_SC_PHYS_PAGES);
		info->total_memory = value > 0 ? (uint64_t) value * (uint64_t) page : 0;
#endif
#ifdef _SC_AVPHYS_PAGES
		value = sysconf(_SC_AVPHYS_PAGES);
		info->free_memory = value > 0 ? (uint64_t) value * (uint64_t) page : 0;
#endif
	}
	value = sysconf(_SC_NPROCESSORS_ONLN);
	info->units = value > 0 ? (uint32_t) value : 1;
	info->open = true;
	return HGJ_OK;
}

static const HgjShareMethods cpu_share = {
	.part = hgj_cpu_share_part,
	.peak = hgj_cpu_share_peak,
	.step = hgj_cpu_share_step,
	.attach = hgj_cpu_share_attach,
	.claim = hgj_cpu_share_claim,
};

static const HgjEngine cpu_engine = {
	.abi_version = HGJ_ABI_VERSION,
	.name = "cpu",
	.version = HGJ_VERSION,
	.capabilities = HGJ_CAP_HOST_KEYS | HGJ_CAP_GROUPED | HGJ_CAP_DYNAMIC,
	.open = cpu_open,
	.close = cpu_close,
	.device_count = cpu_device_count,
	.device_info = cpu_device_info,
	.usable = cpu_open,
	.table_create = cpu_table_create,
	.table_destroy = cpu_table_destroy,
	.append = hgj_cpu_append,
	.appended = hgj_cpu_appended,
	.build = hgj_cpu_build,
	.info = cpu_info,
	.memory = cpu_memory,
	.probe_batch_rows = hgj_cpu_probe_batch_rows,
	.probe_create = hgj_cpu_probe_create,
	.probe_destroy = hgj_cpu_probe_destroy,
	.probe_begin = hgj_cpu_probe_begin,
	.probe_next = hgj_cpu_probe_next,
	.mark = hgj_cpu_mark,
	.is_marked = hgj_cpu_is_marked,
	.unmatched = hgj_cpu_unmatched,
	.clear_marks = hgj_cpu_clear_marks,
	.insert = hgj_cpu_insert,
	.remove = hgj_cpu_remove,
	.rebuild = hgj_cpu_rebuild,
	.sift_begin = hgj_cpu_sift_begin,
	.sift = hgj_cpu_sift,
	.sift_packed = hgj_cpu_sift_packed,
	.share = &cpu_share,
};

/* The engine that is linked in; a constant. */
const HgjEngine *
hgj_cpu_engine(void)
{
	return &cpu_engine;
}
