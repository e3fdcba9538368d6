/*-------------------------------------------------------------------------
 *
 * fake_engine.c
 *	  An engine library for tests: the CPU engine, which says that it is "cuda"
 *	  and has a device, and fails when it is told to.
 *
 * 1. What is to fail stands in the file hgj_fake_engine of the process's current
 *	  directory (a server's data directory), read when a table is created while
 *	  no other one is there, or when the file has been written since:
 *
 *		CALL NTH WHAT	the NTH call of CALL (open, table_create, append, build,
 *						probe_create, probe_begin, probe_next, mark, unmatched,
 *						clear_marks, pipe_create, pipe_payload, pipe_start,
 *						pipe_stage, pipe_push, pipe_from (which makes the two before it),
 *						pipe_kept, pipe_fetch, pipe_finish, pipe_groups; pipeline: any
 *						of these) since then: lost, memory, limit, hang; of pipelines' also row (a row's error),
 *						unsupported; of pipe_kept also late (it reads for a while,
 *						whatever the caller wants) and reads_on (the next call does);
 *						of all also busy: it is done, but not before the file
 *						hgj_fake_busy has gone, whatever the caller wants, and makes
 *						hgj_fake_busy.met
 *		any NTH WHAT	the NTH of all calls of this process, whatever it calls
 *		unit NTH CALL WHAT	the first CALL of the NTH table of this process
 *		free BYTES		the device's free memory
 *		unusable		the device is too old
 *		no_pipelines	they are refused
 *		no_rows			those that return rows are not offered
 *		no_kept			kept rows are not taken
 *		no_push_from	rows are staged in the engine's own buffers
 *		no_filter		tables have no filter, as those of a GPU
 *		outlives		the process does not end with its parent, as one does not that
 *						hangs in a driver
 *
 * 2. A lost device stays lost.  "hang" waits until the caller's poll says stop,
 *	  and is lost when spec.timeout_ms have passed, or, where the device is watched
 *	  (HgjWatch), when it has answered nobody for long; every call that is made is an
 *	  answer.  Who changes what a late one reads loses the device.
 * 3. Everything else is the CPU engine's doing, with a device's accounts; of
 *	  pipelines, fake_pipeline.c's.  Who takes a table away from under a pipeline
 *	  ends the process.
 *
 * A table belongs to the caller from create to destroy.  No locks: where tests have
 * several threads (a GPU process), counts are right, and faults are nobody's in
 * particular.
 *
 *-------------------------------------------------------------------------
 */
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fake.h"

#ifndef FAKE_ABI_VERSION
#define FAKE_ABI_VERSION	HGJ_ABI_VERSION
#endif

#define FAULT_FILE		"hgj_fake_engine"
#define BUSY_FILE		"hgj_fake_busy"
#define MAX_FAULTS		8
#define FREE_MEMORY		(UINT64_C(512) << 20)

static const char *const call_names[CALLS] = {
	"open", "table_create", "append", "build", "probe_create", "probe_begin",
	"probe_next", "mark", "unmatched", "clear_marks", "pipe_create", "pipe_payload",
	"pipe_start", "pipe_stage", "pipe_push", "pipe_from", "pipe_kept", "pipe_fetch", "pipe_finish",
	"pipe_groups", "pipeline", "any"
};

typedef struct Fault
{
	FakeCall	call;
	unsigned	nth;
	unsigned	table;			/* 0: of any */
	char		what[16];
} Fault;

typedef struct FakeProbe
{
	HgjProbe   *cpu;
	FakeTable  *table;
} FakeProbe;

static Fault faults[MAX_FAULTS];
static int	nfaults = 0;
static unsigned calls[CALLS];
static unsigned all_calls = 0;
static uint64_t free_memory = FREE_MEMORY;
static bool unusable = false;
static bool no_pipelines = false;
static bool no_filter = false;
static bool outlives = false;
static bool is_open = false;
static bool lost = false;
static uint32_t tables = 0;
static unsigned made = 0;		/* tables, so far */
static const HgjWatch *watch = NULL;
static int64_t answered_ms = 0; /* step 2: when it has answered last; atomic */

/* Fill *err, return its status. */
HgjStatus
fake_fail(HgjError *err, HgjStatus status, const char *message)
{
	if (err != NULL)
	{
		err->status = status;
		(void) snprintf(err->message, sizeof(err->message), "%s", message);
	}
	return status;
}

/* Has the file been written since it was read, while tables of other queries have stayed? */
static bool
faults_changed(void)
{
	static struct timespec before;
	struct stat now = {0};
	bool		changed;

	(void) stat(FAULT_FILE, &now);
	changed = now.st_mtim.tv_sec != before.tv_sec || now.st_mtim.tv_nsec != before.tv_nsec;
	before = now.st_mtim;
	return changed;
}

/* Step 1. */
static void
read_faults(void)
{
	FILE	   *file = fopen(FAULT_FILE, "r");
	char		line[128];

	nfaults = 0;
	free_memory = FREE_MEMORY;
	unusable = false;
	no_pipelines = false;
	no_filter = false;
	fake_pipeline.fetch = fake_pipeline_fetch;
	fake_pipeline.push_kept = fake_push_kept;
	fake_pipeline.push_from = fake_push_from;
	memset(calls, 0, sizeof(calls));
	if (file == NULL)
		return;
	while (fgets(line, sizeof(line), file) != NULL)
	{
		char		name[32];
		char		what[16];
		unsigned long long bytes;
		unsigned	nth;

		unsigned	table = 0;

		if (sscanf(line, "free %llu", &bytes) == 1)
			free_memory = bytes;
		else if (strncmp(line, "unusable", 8) == 0)
			unusable = true;
		else if (strncmp(line, "no_pipelines", 12) == 0)
			no_pipelines = true;
		else if (strncmp(line, "no_rows", 7) == 0)
			fake_pipeline.fetch = NULL;
		else if (strncmp(line, "no_kept", 7) == 0)
			fake_pipeline.push_kept = NULL;
		else if (strncmp(line, "no_push_from", 12) == 0)
			fake_pipeline.push_from = NULL;
		else if (strncmp(line, "no_filter", 9) == 0)
			no_filter = true;
		else if (strncmp(line, "outlives", 8) == 0)
			outlives = true;
		else if (sscanf(line, "unit %u %31s %15s", &table, name, what) == 3 ||
				 sscanf(line, "%31s %u %15s", name, &nth, what) == 3)
			for (int c = 0; c < CALLS && nfaults < MAX_FAULTS; c++)
				if (strcmp(name, call_names[c]) == 0)
				{
					faults[nfaults].call = (FakeCall) c;
					faults[nfaults].nth = table > 0 ? 1 : nth;
					faults[nfaults].table = table;
					strcpy(faults[nfaults++].what, what);
				}
	}
	(void) fclose(file);
}

static int64_t
now_ms(void)
{
	struct timespec ts;

	(void) clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

HgjStatus
fake_lose(HgjError *err, const char *message)
{
	lost = true;
	return fake_fail(err, HGJ_DEVICE_LOST, message);
}

/* HgjEngine.watch */
static void
fake_watch(const HgjWatch *asked)
{
	watch = asked;
}

static void
answered(void)
{
	__atomic_store_n(&answered_ms, now_ms(), __ATOMIC_RELAXED);
	if (watch != NULL)
		watch->answered();
}

/* Step 2: is a device lost that is waited for since then? */
static bool
is_too_long(const HgjTableSpec *spec, int64_t begun)
{
	int64_t		limit = watch == NULL ? spec->timeout_ms :
		__atomic_load_n(watch->limit_ms, __ATOMIC_RELAXED);
	int64_t		last = watch == NULL ? 0 : __atomic_load_n(&answered_ms, __ATOMIC_RELAXED);

	return limit > 0 && now_ms() - (last > begun ? last : begun) > limit;
}

/* Step 1: its work takes as long as the test wants. */
static void
be_busy(void)
{
	FILE	   *met = fopen(BUSY_FILE ".met", "w");

	if (met != NULL)
		(void) fclose(met);
	while (access(BUSY_FILE, F_OK) == 0)
		(void) usleep(1000);
}

/* Step 2. */
static HgjStatus
hang(const HgjTableSpec *spec, HgjError *err)
{
	int64_t		begun = now_ms();

	for (;;)
	{
		(void) usleep(1000);
		if (spec == NULL)
			return fake_lose(err, "the device hangs");
		if (is_too_long(spec, begun))
			return fake_lose(err, "the device has not answered in time");
		if (spec->poll != NULL && spec->poll(spec->poll_arg) != 0)
			return fake_fail(err, HGJ_CANCELLED, "cancelled");
	}
}

/* Is this the call that the fault means? */
static bool
meets(const Fault *fault, FakeCall call)
{
	if (fault->call == CALL_ANY)
		return fault->nth == all_calls;
	if (fault->call != call && (fault->call != CALL_PIPELINE || call < CALL_PIPE_CREATE))
		return false;
	return fault->nth == calls[fault->call] && (fault->table == 0 || fault->table == made);
}

/* What every call begins with. */
HgjStatus
fake_enter(FakeCall call, const HgjTableSpec *spec, HgjError *err)
{
	calls[call]++;
	if (call >= CALL_PIPE_CREATE)
		calls[CALL_PIPELINE]++;
	(void) __atomic_add_fetch(&all_calls, 1, __ATOMIC_RELAXED);
	if (lost)
		return fake_fail(err, HGJ_DEVICE_LOST, "the device was lost earlier in this session");
	for (int i = 0; i < nfaults; i++)
	{
		if (!meets(&faults[i], call))
			continue;
		if (strcmp(faults[i].what, "lost") == 0)
			return fake_lose(err, "the device fell off the bus");
		if (strcmp(faults[i].what, "memory") == 0)
		{
			fake_give_back();
			return fake_fail(err, HGJ_OUT_OF_MEMORY, "the device is out of memory");
		}
		if (strcmp(faults[i].what, "limit") == 0)
			return fake_fail(err, HGJ_LIMIT, "the table does not fit its memory limit");
		if (strcmp(faults[i].what, "row") == 0)
			return fake_fail(err, HGJ_ROW_FAILED, "a row raises an error");
		if (strcmp(faults[i].what, "unsupported") == 0)
			return fake_fail(err, HGJ_UNSUPPORTED, "that is not done here");
		if (strcmp(faults[i].what, "hang") == 0)
			return hang(spec, err);
		if (strcmp(faults[i].what, "busy") == 0)
			be_busy();
	}
	answered();
	return HGJ_OK;
}

/* Is the call of kept rows that has just been counted to do this? */
bool
fake_is(const char *what)
{
	for (int i = 0; i < nfaults; i++)
		if (meets(&faults[i], CALL_PIPE_KEPT) && strcmp(faults[i].what, what) == 0)
			return true;
	return false;
}

#define ENTER(call, spec) \
	do { \
		HgjStatus	status_ = fake_enter(call, spec, err); \
		if (status_ != HGJ_OK) \
			return status_; \
	} while (0)

/* Tables and pipelines that are on the device: more, or fewer. */
void
fake_tables(int more)
{
	(void) __atomic_add_fetch(&tables, (uint32_t) more, __ATOMIC_RELAXED);
}

bool
fake_refuses_pipelines(void)
{
	return no_pipelines;
}

static FakeTable *
fake(const HgjTable *table)
{
	return (FakeTable *) (void *) (uintptr_t) table;
}

static FakeProbe *
fake_probe(HgjProbe *probe)
{
	return (FakeProbe *) (void *) probe;
}

static HgjStatus
fake_usable(HgjError *err)
{
	if (!is_open)
		read_faults();
	if (lost)
		return fake_fail(err, HGJ_DEVICE_LOST, "the device was lost earlier in this session");
	if (unusable)
		return fake_fail(err, HGJ_NO_DEVICE, "the device is too old");
	return HGJ_OK;
}

static HgjStatus
fake_open(HgjError *err)
{
	HgjStatus	status = fake_usable(err);

	if (status != HGJ_OK)
		return status;
	ENTER(CALL_OPEN, NULL);
	is_open = true;
	return HGJ_OK;
}

static void
fake_close(void)
{
	is_open = false;
}

static int
fake_device_count(void)
{
	return 1;
}

static HgjStatus
fake_device_info(int device, HgjDeviceInfo *info, HgjError *err)
{
	HgjError	why = {HGJ_OK, ""};

	/* the signal is the first thread's, which asks for this every second; and a postmaster
	 * in a hurry kills its children's process groups */
	if (outlives && syscall(SYS_gettid) == getpid())
	{
		(void) prctl(PR_SET_PDEATHSIG, 0);
		(void) setsid();
		outlives = false;
	}
	if (device != 0)
		return fake_fail(err, HGJ_NO_DEVICE, "there is no such device");
	memset(info, 0, sizeof(*info));
	(void) snprintf(info->name, sizeof(info->name), "Fake GPU");
	info->total_memory = UINT64_C(1) << 30;
	info->free_memory = is_open ? free_memory : 0;
	info->units = 1;
	info->open = is_open;
	info->tables = tables;
	info->major = 9;
	info->driver_version = 13000;
	info->runtime_version = 12080;
	fake_kept_info(info);
	if (fake_usable(&why) != HGJ_OK)
		(void) snprintf(info->off, sizeof(info->off), "%.159s", why.message);
	return HGJ_OK;
}

/* HgjTableSpec.poll of the CPU engine's table. */
static int
poll_table(void *arg)
{
	const FakeTable *t = arg;

	return t->quiet || t->spec.poll == NULL ? 0 : t->spec.poll(t->spec.poll_arg);
}

static HgjStatus
fake_table_create(const HgjTableSpec *spec, HgjTable **table, HgjError *err)
{
	HgjTableSpec cpu_spec = *spec;
	FakeTable  *t;
	HgjStatus	status;

	if (faults_changed() || tables == 0)
		read_faults();
	*table = NULL;
	(void) __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED);
	ENTER(CALL_TABLE_CREATE, spec);
	t = calloc(1, sizeof(FakeTable));
	if (t == NULL)
		return fake_fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	t->spec = *spec;
	cpu_spec.poll = poll_table;
	cpu_spec.poll_arg = t;
	if (no_filter)
		cpu_spec.filter = HGJ_FILTER_OFF;
	status = hgj_cpu_engine()->table_create(&cpu_spec, &t->cpu, err);
	if (status != HGJ_OK)
	{
		free(t);
		return status;
	}
	(void) __atomic_add_fetch(&tables, 1, __ATOMIC_RELAXED);
	*table = (HgjTable *) (void *) t;
	return HGJ_OK;
}

static void
fake_table_destroy(HgjTable *table)
{
	if (table == NULL)
		return;
	if (fake(table)->pipelines > 0)
	{
		(void) fprintf(stderr, "a table is destroyed before its pipeline\n");
		abort();
	}
	hgj_cpu_engine()->table_destroy(fake(table)->cpu);
	free(fake(table));
	(void) __atomic_sub_fetch(&tables, 1, __ATOMIC_RELAXED);
}

static void
transfer(FakeTable *t, uint64_t to, uint64_t from)
{
	t->work.to_device += to;
	t->work.from_device += from;
	if (t->spec.flags & HGJ_TABLE_TIMING)
	{
		t->work.transfer_ns += to + from;
		t->work.kernel_ns += 1000;
	}
}

static HgjStatus
fake_append(HgjTable *table, const HgjKeys *keys, uint32_t first_row,
			const uint32_t *row_ids, HgjError *err)
{
	FakeTable  *t = fake(table);

	ENTER(CALL_APPEND, &t->spec);
	transfer(t, (uint64_t) keys->nrows * t->spec.nwords * 8, 0);
	t->appended = true;
	return hgj_cpu_engine()->append(t->cpu, keys, first_row, row_ids, err);
}

static HgjStatus
fake_build(HgjTable *table, uint32_t total_rows, HgjError *err)
{
	FakeTable  *t = fake(table);
	HgjStatus	status;

	ENTER(CALL_BUILD, &t->spec);
	status = hgj_cpu_engine()->build(t->cpu, total_rows, err);
	t->built = status == HGJ_OK;
	t->total_rows = total_rows;
	return status;
}

static void
fake_memory(const HgjTable *table, HgjMemory *memory)
{
	hgj_cpu_engine()->memory(fake(table)->cpu, memory);
	memory->host = 4096;
}

static void
fake_info(const HgjTable *table, HgjTableInfo *info)
{
	hgj_cpu_engine()->info(fake(table)->cpu, info);
	info->work = fake(table)->work;
	if (no_filter && fake(table)->spec.filter == HGJ_FILTER_ON)
		info->notes |= HGJ_NOTE_FILTER_UNKNOWN;
	fake_memory(table, &info->memory);
}

static uint32_t
fake_probe_batch_rows(const HgjTable *table)
{
	return hgj_cpu_engine()->probe_batch_rows(fake(table)->cpu);
}

static HgjStatus
fake_probe_create(HgjTable *table, HgjProbe **probe, HgjError *err)
{
	FakeProbe  *p;
	HgjStatus	status;

	*probe = NULL;
	ENTER(CALL_PROBE_CREATE, &fake(table)->spec);
	p = calloc(1, sizeof(FakeProbe));
	if (p == NULL)
		return fake_fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	p->table = fake(table);
	status = hgj_cpu_engine()->probe_create(p->table->cpu, &p->cpu, err);
	if (status != HGJ_OK)
	{
		free(p);
		return status;
	}
	*probe = (HgjProbe *) (void *) p;
	return HGJ_OK;
}

static void
fake_probe_destroy(HgjProbe *probe)
{
	if (probe == NULL)
		return;
	hgj_cpu_engine()->probe_destroy(fake_probe(probe)->cpu);
	free(fake_probe(probe));
}

static HgjStatus
fake_probe_begin(HgjProbe *probe, const HgjKeys *keys, HgjProbeMode mode,
				 uint32_t flags, HgjError *err)
{
	FakeProbe  *p = fake_probe(probe);

	ENTER(CALL_PROBE_BEGIN, &p->table->spec);
	transfer(p->table, (uint64_t) keys->nrows * p->table->spec.nwords * 8, 0);
	return hgj_cpu_engine()->probe_begin(p->cpu, keys, mode, flags, err);
}

static HgjStatus
fake_probe_next(HgjProbe *probe, HgjMatches *matches, HgjError *err)
{
	FakeProbe  *p = fake_probe(probe);
	HgjStatus	status;

	ENTER(CALL_PROBE_NEXT, &p->table->spec);
	status = hgj_cpu_engine()->probe_next(p->cpu, matches, err);
	if (status == HGJ_OK)
		transfer(p->table, 0, (uint64_t) matches->n * 8);
	return status;
}

static HgjStatus
fake_mark(HgjTable *table, const uint32_t *rows, uint32_t n, HgjError *err)
{
	ENTER(CALL_MARK, &fake(table)->spec);
	return hgj_cpu_engine()->mark(fake(table)->cpu, rows, n, err);
}

static bool
fake_is_marked(const HgjTable *table, uint32_t row)
{
	return hgj_cpu_engine()->is_marked(fake(table)->cpu, row);
}

static HgjStatus
fake_unmatched(const HgjTable *table, uint32_t *cursor, uint32_t *rows,
			   uint32_t capacity, uint32_t *n, HgjError *err)
{
	ENTER(CALL_UNMATCHED, &fake(table)->spec);
	return hgj_cpu_engine()->unmatched(fake(table)->cpu, cursor, rows, capacity,
									   n, err);
}

static HgjStatus
fake_clear_marks(HgjTable *table, HgjError *err)
{
	ENTER(CALL_CLEAR_MARKS, &fake(table)->spec);
	return hgj_cpu_engine()->clear_marks(fake(table)->cpu, err);
}

static const HgjEngine fake_engine = {
	.abi_version = FAKE_ABI_VERSION,
	.name = "cuda",
	.version = "0.1",
	.capabilities = HGJ_CAP_HOST_KEYS | HGJ_CAP_GROUPED | HGJ_CAP_DEVICE_MEMORY,
	.open = fake_open,
	.close = fake_close,
	.device_count = fake_device_count,
	.device_info = fake_device_info,
	.usable = fake_usable,
	.watch = fake_watch,
	.table_create = fake_table_create,
	.table_destroy = fake_table_destroy,
	.append = fake_append,
	.build = fake_build,
	.info = fake_info,
	.memory = fake_memory,
	.probe_batch_rows = fake_probe_batch_rows,
	.probe_create = fake_probe_create,
	.probe_destroy = fake_probe_destroy,
	.probe_begin = fake_probe_begin,
	.probe_next = fake_probe_next,
	.mark = fake_mark,
	.is_marked = fake_is_marked,
	.unmatched = fake_unmatched,
	.clear_marks = fake_clear_marks,
	.pipeline = &fake_pipeline,
};

extern __attribute__((visibility("default"))) const HgjEngine *hgj_engine_entry(void);

const HgjEngine *
hgj_engine_entry(void)
{
	return &fake_engine;
}
