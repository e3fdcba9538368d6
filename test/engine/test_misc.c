/*-------------------------------------------------------------------------
 *
 * test_misc.c
 *	  Invalid calls, automatic choices and notes, the spread of the hash, the
 *	  registry.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "test.h"

void
test_registry(void)
{
	HgjError	err = {HGJ_OK, ""};
	int			i;

	context("registry");
	CHECK(hgj_registry_find("cpu", NULL, &err) == hgj_cpu_engine(), "no cpu");
	CHECK(hgj_registry_find("nothing", ".", &err) == NULL &&
		  err.status == HGJ_UNSUPPORTED && strstr(err.message, "nothing"),
		  "an engine of nothing");
	CHECK(hgj_registry_find(NULL, ".", &err) == NULL, "an engine of NULL");
	err.status = HGJ_OK;
	/* a library that has been loaded is not looked for again */
	CHECK(!is_cpu ? hgj_registry_find("cuda", "/nowhere", &err) == engine :
		  hgj_registry_find("cuda", "/nowhere", &err) == NULL &&
		  err.status == HGJ_NO_DEVICE &&
		  strcmp(err.message, "could not load \"/nowhere/hashgraph_join_cuda.so\""
				 ": file not found") == 0, "message: %s", err.message);
	if (is_cpu)
	{
		hgj_registry_use("/elsewhere/mine");
		CHECK(hgj_registry_find("cuda", "/nowhere", &err) == NULL &&
			  strcmp(err.message, "could not load \"/elsewhere/mine.so\": file not"
					 " found") == 0, "message: %s", err.message);
		hgj_registry_use("other.so");
		CHECK(hgj_registry_find("cuda", "/nowhere", &err) == NULL &&
			  strcmp(err.message, "could not load \"/nowhere/other.so\": file not"
					 " found") == 0, "message: %s", err.message);
		hgj_registry_use(NULL);
	}
	CHECK(hgj_registry_count() >= 2, "too few engines");
	for (i = 0; i < hgj_registry_count(); i++)
		CHECK(hgj_registry_name(i) != NULL, "an engine without a name");
	CHECK(hgj_registry_name(-1) == NULL &&
		  hgj_registry_name(hgj_registry_count()) == NULL, "a name too many");
	for (i = 0; i <= HGJ_BUILD_DIRECT; i++)
		CHECK(strcmp(hgj_build_name((HgjBuild) i), "unknown") != 0, "build");
	for (i = 0; i <= HGJ_PROBE_BINNED; i++)
		CHECK(strcmp(hgj_probe_name((HgjProbeAlgo) i), "unknown") != 0,
			  "probe");
	for (i = 0; i <= HGJ_SEGMENTS_QUOTIENTS; i++)
		CHECK(strcmp(hgj_segments_name((HgjSegments) i), "unknown") != 0,
			  "segments");
	for (i = 0; i <= HGJ_FILTER_OFF; i++)
		CHECK(strcmp(hgj_filter_name((HgjFilter) i), "unknown") != 0,
			  "filter");
	for (i = 0; i <= HGJ_DEVICE_LOST; i++)
		CHECK(strcmp(hgj_status_name((HgjStatus) i), "unknown") != 0,
			  "status");
	for (i = 1; i <= HGJ_NOTE_FILTER_UNKNOWN; i *= 2)
		CHECK(strcmp(hgj_note_text((HgjNote) i), "unknown") != 0, "note");
	CHECK(strcmp(hgj_build_name((HgjBuild) 99), "unknown") == 0, "build 99");
}

static void
invalid_specs(void)
{
	HgjTable   *table;
	HgjError	err = {HGJ_OK, ""};
	HgjTableSpec spec = spec_default(0);

	CHECK_STATUS(engine->table_create(&spec, &table, &err), HGJ_INVALID);
	CHECK(table == NULL && err.status == HGJ_INVALID && err.message[0] != '\0',
		  "no message");
	spec = spec_default(HGJ_MAX_KEY_WORDS + 1);
	CHECK_STATUS(engine->table_create(&spec, &table, &err), HGJ_INVALID);
	spec = spec_default(1);
	spec.build = (HgjBuild) 77;
	CHECK_STATUS(engine->table_create(&spec, &table, &err), HGJ_INVALID);
	spec = spec_default(1);
	spec.probe = (HgjProbeAlgo) 77;
	CHECK_STATUS(engine->table_create(&spec, &table, &err), HGJ_INVALID);
	spec = spec_default(1);
	spec.segments = (HgjSegments) 77;
	CHECK_STATUS(engine->table_create(&spec, &table, &err), HGJ_INVALID);
	spec = spec_default(1);
	spec.filter = (HgjFilter) 77;
	CHECK_STATUS(engine->table_create(&spec, &table, &err), HGJ_INVALID);
	spec = spec_default(1);
	spec.load = -1;
	CHECK_STATUS(engine->table_create(&spec, &table, &err), HGJ_INVALID);
	spec.load = NAN;
	CHECK_STATUS(engine->table_create(&spec, &table, &err), HGJ_INVALID);
	spec.load = 0;
	spec.device = engine->device_count() + 3;
	CHECK_STATUS(engine->table_create(&spec, &table, &err), HGJ_NO_DEVICE);
	engine->table_destroy(NULL);
	engine->probe_destroy(NULL);
}

static void
invalid_before_build(void)
{
	HgjTableSpec spec = spec_default(1);
	Rows		rows = rows_make(SHAPE_NARROW, 1, 10, 0);
	uint32_t	sel[] = {3, 10};
	uint32_t	ids[10] = {0};
	const uint64_t *none[] = {NULL};
	HgjTable   *table;
	HgjProbe   *probe = NULL;
	HgjKeys		keys = rows_keys(&rows);
	HgjMemory	memory;
	HgjError	err = {HGJ_OK, ""};

	CHECK_STATUS(engine->table_create(&spec, &table, &err), HGJ_OK);
	CHECK(!is_cpu || engine->appended != NULL, "no rows to be had back");
	CHECK_STATUS(engine->append(table, NULL, 0, NULL, &err), HGJ_INVALID);
	keys.words = NULL;
	CHECK_STATUS(engine->append(table, &keys, 0, NULL, &err), HGJ_INVALID);
	keys.words = none;
	CHECK_STATUS(engine->append(table, &keys, 0, NULL, &err), HGJ_INVALID);
	keys = rows_keys(&rows);
	keys.sel = sel;
	keys.nsel = 2;
	CHECK_STATUS(engine->append(table, &keys, 0, NULL, &err), HGJ_INVALID);
	keys = rows_keys(&rows);
	CHECK_STATUS(engine->append(table, &keys, HGJ_MAX_ROWS - 3, NULL, &err),
				 HGJ_LIMIT);
	ids[7] = HGJ_MAX_ROWS;
	CHECK_STATUS(engine->append(table, &keys, 0, ids, &err), HGJ_INVALID);
	if (!(engine->capabilities & HGJ_CAP_DEVICE_KEYS))
	{
		keys.location = HGJ_ON_DEVICE;
		CHECK_STATUS(engine->append(table, &keys, 0, NULL, &err),
					 HGJ_UNSUPPORTED);
		keys.location = HGJ_ON_HOST;
	}
	CHECK_STATUS(engine->probe_create(table, &probe, &err), HGJ_INVALID);
	CHECK_STATUS(engine->append(table, &keys, 100, NULL, &err), HGJ_OK);
	CHECK_STATUS(engine->build(table, 109, &err), HGJ_INVALID);
	engine->memory(table, &memory);
	CHECK(memory.current > 0 && memory.build_peak >= memory.current,
		  "memory before build");
	CHECK_STATUS(engine->build(table, 110, &err), HGJ_OK);
	engine->table_destroy(table);
	rows_free(&rows);
}

static void
invalid_after_build(void)
{
	HgjTableSpec spec = spec_default(1);
	Rows		rows = rows_make(SHAPE_NARROW, 1, 10, 0);
	HgjTable   *table = table_of(&spec, &rows);
	HgjProbe   *probe = NULL;
	HgjKeys		keys = rows_keys(&rows);
	uint32_t	out[4];
	uint32_t	cursor = 0;
	uint64_t	position = 0;
	uint32_t	n = 0;
	HgjMatches	m;
	HgjError	err = {HGJ_OK, ""};

	memset(&m, 0, sizeof(m));
	m.probe_rows = m.build_rows = out;
	m.capacity = 4;
	CHECK_STATUS(engine->append(table, &keys, 0, NULL, &err), HGJ_INVALID);
	CHECK_STATUS(engine->build(table, 10, &err), HGJ_INVALID);
	if (engine->appended != NULL)
		CHECK_STATUS(engine->appended(table, &position, NULL, out, 4, &n, &err),
					 HGJ_INVALID);
	CHECK_STATUS(engine->probe_create(table, &probe, &err), HGJ_OK);
	CHECK_STATUS(engine->probe_next(probe, &m, &err), HGJ_INVALID);
	CHECK_STATUS(engine->probe_begin(probe, &keys, (HgjProbeMode) 9, 0, &err),
				 HGJ_INVALID);
	CHECK_STATUS(engine->probe_begin(probe, &keys, HGJ_MATCH_ALL,
									 HGJ_PROBE_MARK, &err), HGJ_INVALID);
	CHECK_STATUS(engine->probe_begin(probe, &keys, HGJ_MATCH_ALL, 0, &err),
				 HGJ_OK);
	m.capacity = 0;
	CHECK_STATUS(engine->probe_next(probe, &m, &err), HGJ_INVALID);
	CHECK_STATUS(engine->probe_begin(probe, &keys, HGJ_MATCH_COUNT, 0, &err),
				 HGJ_OK);
	CHECK_STATUS(engine->probe_next(probe, &m, &err), HGJ_INVALID);
	CHECK_STATUS(engine->mark(table, out, 0, &err), HGJ_INVALID);
	CHECK_STATUS(engine->clear_marks(table, &err), HGJ_INVALID);
	CHECK_STATUS(engine->unmatched(table, &cursor, out, 4, &n, &err),
				 HGJ_INVALID);
	CHECK(!engine->is_marked(table, 0), "marked without bits");
	if (engine->capabilities & HGJ_CAP_DYNAMIC)
	{
		CHECK_STATUS(engine->insert(table, &keys, 10, NULL, &err),
					 HGJ_INVALID);
		CHECK_STATUS(engine->remove(table, &keys, NULL, NULL, &err),
					 HGJ_INVALID);
		CHECK_STATUS(engine->rebuild(table, &err), HGJ_INVALID);
	}
	engine->probe_destroy(probe);
	engine->table_destroy(table);

	spec.flags = HGJ_TABLE_TRACK_MATCHES;
	table = table_of(&spec, &rows);
	out[0] = 3;
	out[1] = 10;
	CHECK_STATUS(engine->mark(table, out, 2, &err), HGJ_INVALID);
	CHECK(!engine->is_marked(table, 3), "marked by an invalid call");
	CHECK_STATUS(engine->mark(table, out, 1, &err), HGJ_OK);
	CHECK(engine->is_marked(table, 3) && !engine->is_marked(table, 4) &&
		  !engine->is_marked(table, 4000000000u), "marks");
	engine->table_destroy(table);
	rows_free(&rows);
}

void
test_invalid(void)
{
	HgjDeviceInfo device;
	HgjError	err = {HGJ_OK, ""};

	context("invalid");
	CHECK(engine->device_count() >= 1, "no device");
	CHECK_STATUS(engine->device_info(0, &device, &err), HGJ_OK);
	CHECK(device.name[0] != '\0' && device.total_memory > 0 &&
		  device.units > 0, "device info");
	CHECK_STATUS(engine->device_info(engine->device_count(), &device, &err),
				 HGJ_NO_DEVICE);
	invalid_specs();
	invalid_before_build();
	invalid_after_build();
}

/* Build that many rows of a shape, return what the table says of itself. */
static HgjTableInfo
info_of(HgjTableSpec *spec, Shape shape, uint32_t n)
{
	Rows		rows = rows_make(shape, spec->nwords, n, 5000);
	HgjTable   *table;
	HgjTableInfo info;

	memset(&info, 0, sizeof(info));
	table = table_of(spec, &rows);
	if (table != NULL)
		engine->info(table, &info);
	engine->table_destroy(table);
	rows_free(&rows);
	return info;
}

/* What is chosen, and the notes that say why it is not what was asked for. */
void
test_choices(void)
{
	HgjTableSpec spec = spec_default(1);
	HgjTableInfo info;

	context("choices");
	if (!is_cpu)
		return;					/* another engine chooses otherwise */
	hgj_mem_test_l2_bytes = 65536;
	info = info_of(&spec, SHAPE_DENSE, 3000);
	CHECK(info.build == HGJ_BUILD_DIRECT && info.entry_bytes == 4 &&
		  info.segments == HGJ_SEGMENTS_ELLPACK && info.longest == 1 &&
		  info.slots == 3000 && info.notes == 0, "dense unique keys");
	info = info_of(&spec, SHAPE_DENSE_DUP, 3000);
	CHECK(info.build == HGJ_BUILD_DIRECT && info.longest > 1 &&
		  info.segments == HGJ_SEGMENTS_CSR && info.slots == 3000,
		  "dense keys with duplicates");
	info = info_of(&spec, SHAPE_NARROW, 1000);
	CHECK(info.build == HGJ_BUILD_V1 && info.entry_bytes == 8 &&
		  info.segments == HGJ_SEGMENTS_CSR && info.bins == 1 &&
		  info.probe == HGJ_PROBE_STANDARD && info.vertices == 1024,
		  "a small sparse table");
	info = info_of(&spec, SHAPE_WIDE, 40000);
	CHECK(info.build == HGJ_BUILD_V2 && info.entry_bytes == 16 &&
		  info.bins > 8 && info.vertices == 65536, "a large sparse table");
	spec.load = 4;
	info = info_of(&spec, SHAPE_WIDE, 40000);
	CHECK(info.vertices == 16384, "load 4");
	spec.load = 0;
	spec.build = HGJ_BUILD_DIRECT;
	info = info_of(&spec, SHAPE_NARROW, 1000);
	CHECK(info.build != HGJ_BUILD_DIRECT &&
		  info.notes == HGJ_NOTE_DIRECT_NOT_DENSE, "direct, not dense");
	spec.nwords = 2;
	info = info_of(&spec, SHAPE_DENSE, 1000);
	CHECK(info.notes == HGJ_NOTE_DIRECT_MULTI_KEY && info.entry_bytes == 24,
		  "direct, two words");
	spec = spec_default(1);
	spec.build = HGJ_BUILD_SORT;
	info = info_of(&spec, SHAPE_NARROW, 1000);
	CHECK(info.build == HGJ_BUILD_V2 && info.notes == HGJ_NOTE_SORT_AS_V2,
		  "sort");
	spec.build = HGJ_BUILD_V1;
	spec.probe = HGJ_PROBE_BINNED;
	info = info_of(&spec, SHAPE_NARROW, 100);
	CHECK(info.probe == HGJ_PROBE_STANDARD &&
		  info.notes == HGJ_NOTE_BINNED_UNFIT, "binned, too small");
	info = info_of(&spec, SHAPE_NARROW, 40000);
	CHECK(info.probe == HGJ_PROBE_BINNED && info.notes == 0, "binned");
	spec.probe = HGJ_PROBE_AUTO;
	spec.segments = HGJ_SEGMENTS_ELLPACK;
	info = info_of(&spec, SHAPE_SKEW, 40000);
	CHECK(info.segments == HGJ_SEGMENTS_CSR &&
		  info.notes == HGJ_NOTE_ELLPACK_TOO_WIDE, "Ellpack, too wide");
	info = info_of(&spec, SHAPE_NARROW, 4000);
	CHECK(info.segments == HGJ_SEGMENTS_ELLPACK && info.notes == 0 &&
		  info.slots == info.vertices * info.longest, "Ellpack");
	spec.segments = HGJ_SEGMENTS_SLICED;
	info = info_of(&spec, SHAPE_SAME, 400000);
	CHECK(info.segments == HGJ_SEGMENTS_CSR &&
		  info.notes == HGJ_NOTE_SLICED_TOO_WIDE, "Sliced, too wide");
	info = info_of(&spec, SHAPE_NARROW, 4000);
	CHECK(info.segments == HGJ_SEGMENTS_SLICED && info.notes == 0, "Sliced");
	hgj_mem_test_l2_bytes = 0;
}

static uint64_t
reverse_bits(uint64_t x)
{
	uint64_t	r = 0;
	int			i;

	for (i = 0; i < 64; i++)
		r |= (x >> i & 1) << (63 - i);
	return r;
}

static uint64_t
adversary(int kind, uint64_t i)
{
	double		d = (double) i;
	uint64_t	bits;

	switch (kind)
	{
		case 0:
			return i << 32;
		case 1:
			return i << 48;
		case 2:
			return i * 1000003;
		case 3:
			return reverse_bits(i);
		case 4:
			return i * UINT64_C(0x9E3779B97F4A7C15);	/* beats Fibonacci */
		case 5:
			return i * UINT64_C(0xF1DE83E19937733D);	/* its inverse */
		case 6:
			memcpy(&bits, &d, sizeof(bits));	/* integers as doubles */
			return bits;
		case 7:
			return i ^ i >> 1;	/* Gray code */
		case 8:
			return i << 16 | i;
		case 9:
			return (i & 0xFF) << 56 | (i >> 8) << 20;
		default:
			return i * 4096 + UINT64_C(0x7F0000000000); /* pages */
	}
}

/* No low-entropy key set may pile up: lists as short as those of chance. */
void
test_spread(void)
{
	enum
	{
		N = 65536,
		KINDS = 11
	};
	int			kind;
	int			round;
	uint32_t	i;

	for (kind = 0; kind < KINDS * 3; kind++)
		for (round = 0; in_share() && round < 3; round++)
		{
			/* as one word; as (key, constant); as (i / 256, i % 256) */
			HgjTableSpec spec = spec_default(kind < KINDS ? 1 : 2);
			Rows		rows = rows_make(SHAPE_DENSE, spec.nwords, N, 0);
			HgjTable   *table;
			HgjTableInfo info;

			context("spread of key set %d, seed %llx", kind,
					(unsigned long long) spec.seed);
			for (i = 0; i < N; i++)
			{
				if (kind < KINDS)
					rows.words[0][i] = adversary(kind, i);
				else if (kind < 2 * KINDS)
				{
					rows.words[0][i] = round & 1 ? 7 :
						adversary(kind % KINDS, i);
					rows.words[1][i] = round & 1 ?
						adversary(kind % KINDS, i) : 7;
				}
				else
				{
					rows.words[0][i] = adversary(kind % KINDS, i / 256);
					rows.words[1][i] = adversary(kind % KINDS, i % 256);
				}
			}
			spec.build = HGJ_BUILD_V1;
			table = table_of(&spec, &rows);
			if (table != NULL)
			{
				engine->info(table, &info);
				/* 1 row per vertex: 8 or 9 by chance, 14 once in 10^6 */
				CHECK(info.longest <= 14 || info.vertices < N / 4,
					  "a list of %llu", (unsigned long long) info.longest);
				CHECK(info.vertices == N || !is_cpu, "%llu vertices",
					  (unsigned long long) info.vertices);
			}
			engine->table_destroy(table);
			rows_free(&rows);
		}
}

static uint64_t answers = 0;

static void
count_answer(void)
{
	(void) __atomic_add_fetch(&answers, 1, __ATOMIC_RELAXED);
}

/* Where several sessions' device is watched, its answers are counted, and no caller's timeout holds. */
void
test_watch(void)
{
	static uint32_t limit_ms = 0;
	static HgjWatch watch = {&limit_ms, count_answer};
	HgjTableSpec spec = spec_default(1);
	Rows		rows;

	CHECK(!is_cpu || engine->watch == NULL, "the CPU engine waits for a device");
	if (engine->watch == NULL || !in_share())
		return;
	engine->watch(&watch);
	rows = rows_make(SHAPE_DENSE, 1, 4000000, 0);
	spec.timeout_ms = 1;		/* less than the device takes */
	context("a table with a timeout of 1 ms on a device without a limit");
	engine->table_destroy(table_of(&spec, &rows));
	CHECK(answers > 0, "the device has answered nobody");
	rows_free(&rows);
}
