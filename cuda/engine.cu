/*-------------------------------------------------------------------------
 *
 * engine.cu
 *	  The CUDA engine's HgjEngine: creating and destroying tables, what they
 *	  say of themselves, and the entry point of the library.
 *
 * 1. table_create checks the spec, opens the device, and gives the table a
 *	  stream of its own.
 * 2. table_destroy waits for that stream and gives everything back, in stream
 *	  order; with a device's last table goes what the pool has kept.
 *
 * A table belongs to the caller from create to destroy; its parts belong to
 * the table.  Nothing here throws: there are no exceptions in this library.
 *
 *-------------------------------------------------------------------------
 */
#include <new>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#ifndef HGJ_VERSION
#define HGJ_VERSION "0.1.0"
#endif

using namespace hgj;

HgjTable::~HgjTable()
{
	hgj::free_chunks(this);
	free(host_bits);
}

/* HgjEngine.table_create */
static HgjStatus cuda_table_create(const HgjTableSpec *spec, HgjTable **table,
								   HgjError *err)
{
	HgjTable *t;
	Device *device;
	HgjStatus status;

	if (table == nullptr || spec == nullptr)
		return fail(err, HGJ_INVALID, "table or spec is missing");
	*table = nullptr;
	HGJ_TRY(hgj_check_table(spec, err));
	HGJ_TRY(session_device(spec->device, &device, err));
	if (spec->memory_limit > 0 && sizeof(HgjTable) > spec->memory_limit)
		return fail(err, HGJ_LIMIT, "the table does not fit its memory limit");
	t = new (std::nothrow) HgjTable;
	if (t == nullptr)
		return fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	t->spec = *spec;
	t->device = device;
	set_timeout(spec->timeout_ms);
	t->current = t->peak = sizeof(HgjTable);
	status = t->lane.open(device, err);
	if (status == HGJ_OK)
		status = t->scalars.reserve(sizeof(BuildStats) + 2 * sizeof(uint64_t), err);
	if (status != HGJ_OK)
	{
		delete t;
		return status;
	}
	(void) __atomic_add_fetch(&device->tables, 1, __ATOMIC_RELAXED);
	*table = t;
	return HGJ_OK;
}

/* HgjEngine.table_destroy */
static void cuda_table_destroy(HgjTable *table)
{
	Device *device;

	if (table == nullptr)
		return;
	device = table->device;
	(void) table_enter(table, nullptr); /* lost: memory stays with the device */
	delete table;
	if (__atomic_sub_fetch(&device->tables, 1, __ATOMIC_RELAXED) == 0)
		device_trim(device);
}

/* HgjEngine.memory: device memory, in bytes. */
static void cuda_memory(const HgjTable *table, HgjMemory *memory)
{
	memory->current = __atomic_load_n(&table->current, __ATOMIC_RELAXED);
	memory->peak = __atomic_load_n(&table->peak, __ATOMIC_RELAXED);
	memory->build_peak = table->built ? memory->peak : plan_peak(table);
	memory->host = table->stages[0].memory.bytes() + table->stages[1].memory.bytes() +
				   table->host_words * sizeof(uint64_t);
}

/* HgjEngine.info: what the table is, or before build, what it is planned as. */
static void cuda_info(const HgjTable *table, HgjTableInfo *info)
{
	memset(info, 0, sizeof(*info));
	if (table->built)
	{
		const Graph &g = table->graph;

		info->rows = g.rows;
		info->vertices = g.vertices;
		info->slots = g.slots;
		info->longest = g.longest;
		info->entry_bytes = g.stride();
		info->bins = g.bins;
		info->build = g.build;
		info->segments = g.segments;
		info->notes = g.notes;
		info->probe = table->spec.probe != HGJ_PROBE_STANDARD &&
							  probe_should_bin(table, probe_batch_rows(table))
						  ? HGJ_PROBE_BINNED
						  : HGJ_PROBE_STANDARD;
		if (table->spec.probe == HGJ_PROBE_BINNED && info->probe != HGJ_PROBE_BINNED)
			info->notes |= HGJ_NOTE_BINNED_UNFIT;
		info->rebuilds = table->rebuilds;
	}
	else
	{
		Plan plan;

		plan_build(table, table->nrows, table->min_key, table->max_key, &plan);
		info->rows = table->nrows;
		info->vertices = plan.vertices;
		info->entry_bytes = plan.stride;
		info->bins = plan.bins;
		info->build = plan.build;
		info->segments = plan.segments;
		info->probe = table->spec.probe;
		info->notes = plan.notes;
	}
	if (table->spec.filter == HGJ_FILTER_ON)
		info->notes |= HGJ_NOTE_FILTER_UNKNOWN;
	table_work(const_cast<HgjTable *>(table), &info->work);
	cuda_memory(table, &info->memory);
}

static const HgjEngine *make_engine()
{
	static HgjEngine e;

	e.abi_version = HGJ_ABI_VERSION;
	e.name = "cuda";
	e.version = HGJ_VERSION;
	e.capabilities = HGJ_CAP_HOST_KEYS | HGJ_CAP_DEVICE_KEYS | HGJ_CAP_GROUPED |
					 HGJ_CAP_DYNAMIC | HGJ_CAP_SORT | HGJ_CAP_DEVICE_MEMORY;
	e.open = session_open;
	e.close = session_close;
	e.device_count = session_device_count;
	e.device_info = session_device_info;
	e.usable = session_usable;
	e.watch = watch;
	e.table_create = cuda_table_create;
	e.table_destroy = cuda_table_destroy;
	e.append = table_append;
	e.build = table_build;
	e.info = cuda_info;
	e.memory = cuda_memory;
	e.probe_batch_rows = probe_batch_rows;
	e.probe_create = probe_create;
	e.probe_destroy = probe_destroy;
	e.probe_begin = probe_begin;
	e.probe_next = probe_next;
	e.mark = table_mark;
	e.is_marked = table_is_marked;
	e.unmatched = table_unmatched;
	e.clear_marks = table_clear_marks;
	e.insert = table_insert;
	e.remove = table_remove;
	e.rebuild = table_rebuild;
	e.pipeline = pipeline_methods();
#ifdef HGJ_CUDA_FAULTS
	install_faults(&e);
#endif
	return &e;
}

extern "C" __attribute__((visibility("default"))) const HgjEngine *hgj_engine_entry(void)
{
	return make_engine();
}
