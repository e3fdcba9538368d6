/*-------------------------------------------------------------------------
 *
 * engine.c
 *	  The thread engine: joins with an aggregation that stay in one process and run on all
 *	  of its cores (threads.h).
 *
 * 1. A table is the CPU engine's.  It polls until it has been built; a pipeline that probes it
 *	  polls for its own caller, as that may be another one.
 * 2. The device is the number of threads that the process has been told to have.
 * 3. A join that is in no pipeline probes its table as it would in its own process; match bits
 *	  are the table's.  Dynamic tables are for one process's own engine: there are none.
 *
 * A table belongs to the caller from create to destroy.  Locks: none but the pool's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "threads/engine.h"
#include "threads/threads.h"

static uint32_t wanted = 1;		/* threads, with the one that makes a call */
static bool is_open = false;

/* See engine.h. */
void
hgj_threads_want(uint32_t nthreads)
{
	wanted = nthreads;
}

/* The longest name of a control group that is looked at. */
#define CGROUP_NAME	512

/* Whole cores of the quota that a file says; none of "max", -1, and where there is no such file. */
static uint32_t
quota_of(const char *group, const char *name, unsigned long period)
{
	char		path[CGROUP_NAME + 64];
	FILE	   *file;
	long		quota = 0;
	int			read;

	(void) snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", group, name);
	file = fopen(path, "r");
	if (file == NULL)
		return 0;
	/* cgroup v2 has the period behind the quota, v1 in a file of its own */
	read = fscanf(file, "%ld %lu", &quota, &period);
	(void) fclose(file);
	if (read < 1 || quota <= 0 || period == 0)
		return 0;
	return quota < (long) period ? 1 : (uint32_t) ((unsigned long) quota / period);
}

/* Linux's name of the group that the process is in (cgroup v2); empty: it does not say. */
static void
find_group(char *group)
{
	char		line[CGROUP_NAME];
	FILE	   *file = fopen("/proc/self/cgroup", "r");

	group[0] = '\0';
	if (file == NULL)
		return;
	while (fgets(line, sizeof(line), file) != NULL)
	{
		if (strncmp(line, "0::/", 4) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		(void) strcpy(group, line + 3);
		break;
	}
	(void) fclose(file);
}

/*
 * Cores that the control groups of the process let it use, the one that it is in and those above
 * that; 0: as many as there are.  In a container the group's own files are at the root.
 */
static uint32_t
cgroup_cores(void)
{
	char		group[CGROUP_NAME];
	uint32_t	least = quota_of("", "cpu.max", 0);
	uint32_t	old = quota_of("/cpu", "cpu.cfs_quota_us", 100000);

	if (old > 0 && (least == 0 || old < least))
		least = old;
	find_group(group);
	while (group[0] != '\0')
	{
		uint32_t	cores = quota_of(group, "cpu.max", 0);

		if (cores > 0 && (least == 0 || cores < least))
			least = cores;
		*strrchr(group, '/') = '\0';
	}
	return least;
}

/* See engine.h. */
uint32_t
hgj_threads_cores(void)
{
	cpu_set_t	set;
	long		online = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t	cores = online > 0 ? (uint32_t) online : 1;
	uint32_t	most = cgroup_cores();

	if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
		cores = (uint32_t) CPU_COUNT(&set);
	return most > 0 && most < cores ? most : cores;
}

/* See engine.h. */
uint32_t
hgj_threads_open(void)
{
	return hgj_pool_runs();
}

/* HgjEngine.open: whoever brings a job is one of the threads. */
static HgjStatus
engine_open(HgjError *err)
{
	if (!hgj_pool_open(wanted - 1))
		return hgj_fail(err, HGJ_NO_DEVICE, "could not start a thread");
	is_open = true;
	return HGJ_OK;
}

/* HgjEngine.close: threads stay as long as the process. */
static void
engine_close(void)
{
	is_open = false;
}

static int
engine_device_count(void)
{
	return 1;
}

/* HgjEngine.device_info */
static HgjStatus
engine_device_info(int device, HgjDeviceInfo *info, HgjError *err)
{
	struct sysinfo memory;
	uint32_t	n = is_open ? hgj_pool_runs() : wanted;

	if (device != 0)
		return hgj_fail(err, HGJ_NO_DEVICE, "there is no such device");
	memset(info, 0, sizeof(*info));
	(void) snprintf(info->name, sizeof(info->name), n == 1 ? "%u thread" : "%u threads", n);
	if (sysinfo(&memory) == 0)
	{
		info->total_memory = (uint64_t) memory.totalram * memory.mem_unit;
		info->free_memory = is_open ?
			((uint64_t) memory.freeram + memory.bufferram) * memory.mem_unit : 0;
	}
	info->units = n;
	info->open = is_open;
	info->tables = hgj_threads_count(0);
	return HGJ_OK;
}

static HgjStatus
engine_usable(HgjError *err)
{
	(void) err;
	return HGJ_OK;
}

/* Step 1: HgjTableSpec.poll of the CPU engine's table. */
static int
poll_table(void *arg)
{
	const ThreadTable *t = arg;

	return t->built || t->spec.poll == NULL ? 0 : t->spec.poll(t->spec.poll_arg);
}

/* HgjEngine.table_create */
static HgjStatus
table_create(const HgjTableSpec *spec, HgjTable **table, HgjError *err)
{
	HgjTableSpec cpu_spec = *spec;
	ThreadTable *t;
	HgjStatus	status;

	*table = NULL;
	if (spec->flags & HGJ_TABLE_DYNAMIC)
		return hgj_fail(err, HGJ_UNSUPPORTED, "threads have no dynamic tables");
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return hgj_fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	t->spec = *spec;
	/* threads ask filters first, of keys as they are kept; and a place for each key is found
	 * faster than its hash, where it does not take much more */
	cpu_spec.flags |= HGJ_TABLE_SIFT_EARLY | HGJ_TABLE_SIFT_AT_ONCE;
	if (cpu_spec.build == HGJ_BUILD_AUTO)
		cpu_spec.build = HGJ_BUILD_DIRECT;
	cpu_spec.poll = poll_table;
	cpu_spec.poll_arg = t;
	status = hgj_cpu_engine()->table_create(&cpu_spec, &t->cpu, err);
	if (status != HGJ_OK)
	{
		free(t);
		return status;
	}
	hgj_threads_count(1);
	*table = (HgjTable *) (void *) t;
	return HGJ_OK;
}

static void
table_destroy(HgjTable *table)
{
	if (table == NULL)
		return;
	hgj_cpu_engine()->table_destroy(thread_table(table)->cpu);
	free(thread_table(table));
	hgj_threads_count(-1);
}

static HgjStatus
table_append(HgjTable *table, const HgjKeys *keys, uint32_t first_row, const uint32_t *row_ids,
			 HgjError *err)
{
	HgjStatus	status = hgj_cpu_engine()->append(thread_table(table)->cpu, keys, first_row,
												  row_ids, err);

	if (status == HGJ_OK)
		thread_table(table)->appended += hgj_key_count(keys);
	return status;
}

static HgjStatus
table_build(HgjTable *table, uint32_t total_rows, HgjError *err)
{
	ThreadTable *t = thread_table(table);
	HgjStatus	status = hgj_cpu_engine()->build(t->cpu, total_rows, err);

	t->built = status == HGJ_OK;
	t->total_rows = total_rows;
	return status;
}

static void
table_info(const HgjTable *table, HgjTableInfo *info)
{
	hgj_cpu_engine()->info(thread_table(table)->cpu, info);
	/* a table may be many queries': each pipeline counts what the filter has rejected for it */
	info->filter_rejected -= __atomic_load_n(&thread_table(table)->rejected, __ATOMIC_RELAXED);
	/* nobody has asked for that */
	if (thread_table(table)->spec.build == HGJ_BUILD_AUTO)
		info->notes &= ~(uint32_t) (HGJ_NOTE_DIRECT_NOT_DENSE | HGJ_NOTE_DIRECT_MULTI_KEY);
}

static void
table_memory(const HgjTable *table, HgjMemory *memory)
{
	hgj_cpu_engine()->memory(thread_table(table)->cpu, memory);
}

static uint32_t
table_batch_rows(const HgjTable *table)
{
	return hgj_cpu_engine()->probe_batch_rows(thread_table(table)->cpu);
}

/* ---- step 3: probes are the CPU engine's --------------------------------------- */

static HgjStatus
probe_create(HgjTable *table, HgjProbe **probe, HgjError *err)
{
	return hgj_cpu_engine()->probe_create(thread_table(table)->cpu, probe, err);
}

static void
probe_destroy(HgjProbe *probe)
{
	hgj_cpu_engine()->probe_destroy(probe);
}

static HgjStatus
probe_begin(HgjProbe *probe, const HgjKeys *keys, HgjProbeMode mode, uint32_t flags,
			HgjError *err)
{
	return hgj_cpu_engine()->probe_begin(probe, keys, mode, flags, err);
}

static HgjStatus
probe_next(HgjProbe *probe, HgjMatches *matches, HgjError *err)
{
	return hgj_cpu_engine()->probe_next(probe, matches, err);
}

static HgjStatus
table_mark(HgjTable *table, const uint32_t *rows, uint32_t n, HgjError *err)
{
	return hgj_cpu_engine()->mark(thread_table(table)->cpu, rows, n, err);
}

static bool
table_is_marked(const HgjTable *table, uint32_t row)
{
	return hgj_cpu_engine()->is_marked(thread_table(table)->cpu, row);
}

static HgjStatus
table_unmatched(const HgjTable *table, uint32_t *cursor, uint32_t *rows, uint32_t capacity,
				uint32_t *n, HgjError *err)
{
	return hgj_cpu_engine()->unmatched(thread_table(table)->cpu, cursor, rows, capacity, n, err);
}

static HgjStatus
table_clear_marks(HgjTable *table, HgjError *err)
{
	return hgj_cpu_engine()->clear_marks(thread_table(table)->cpu, err);
}

/* See engine.h. */
const HgjEngine *
hgj_threads_engine(void)
{
	static const HgjEngine engine = {
		.abi_version = HGJ_ABI_VERSION,
		.name = "threads",
		.version = HGJ_VERSION,
		.capabilities = HGJ_CAP_HOST_KEYS | HGJ_CAP_DEVICE_MEMORY,
		.open = engine_open,
		.close = engine_close,
		.device_count = engine_device_count,
		.device_info = engine_device_info,
		.usable = engine_usable,
		.watch = hgj_pool_watch,
		.table_create = table_create,
		.table_destroy = table_destroy,
		.append = table_append,
		.build = table_build,
		.info = table_info,
		.memory = table_memory,
		.probe_batch_rows = table_batch_rows,
		.probe_create = probe_create,
		.probe_destroy = probe_destroy,
		.probe_begin = probe_begin,
		.probe_next = probe_next,
		.mark = table_mark,
		.is_marked = table_is_marked,
		.unmatched = table_unmatched,
		.clear_marks = table_clear_marks,
		.pipeline = &hgj_threads_pipelines,
	};

	return &engine;
}
