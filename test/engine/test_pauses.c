/*-------------------------------------------------------------------------
 *
 * test_pauses.c
 *	  How much a call does between two polls.
 *
 * Time would say more about the machine than about the engine.  What makes for
 * long pauses, beside loops without polls, is fresh memory: the kernel clears it
 * when it is touched, and rows in random order touch all of it in huge pages
 * within the first few thousand.  So the process's resident memory may grow by
 * so much from poll to poll, and no more (where there are no huge pages, it does
 * so in any case).
 *
 *-------------------------------------------------------------------------
 */
#include <unistd.h>

#include "test.h"

#define MOST_BYTES	((uint64_t) 12 * 1024 * 1024)

#if defined(__SANITIZE_ADDRESS__)
#define BUILD_ROWS	((uint32_t) 200 * 1000)
#else
#define BUILD_ROWS	((uint32_t) 2 * 1000 * 1000)
#endif
#define BATCH_ROWS	((uint32_t) 65536)
#define CAPACITY	4096

typedef struct Watch
{
	uint64_t	polls;
	uint64_t	resident;		/* bytes, when it was looked at last */
	uint64_t	most;			/* by which it has grown at once */
} Watch;

/* Bytes of the process that are in memory; 0: the system does not say. */
static uint64_t
resident_bytes(void)
{
	FILE	   *file = fopen("/proc/self/statm", "r");
	unsigned long long total;
	unsigned long long resident = 0;

	if (file == NULL)
		return 0;
	if (fscanf(file, "%llu %llu", &total, &resident) != 2)
		resident = 0;
	(void) fclose(file);
	return resident * (uint64_t) sysconf(_SC_PAGESIZE);
}

static void
look(Watch *watch)
{
	uint64_t	now = resident_bytes();

	if (now > watch->resident && now - watch->resident > watch->most)
		watch->most = now - watch->resident;
	watch->resident = now;
}

/* A poll function, whose argument is a Watch. */
static int
poll_watch(void *arg)
{
	Watch	   *watch = arg;

	watch->polls++;
	look(watch);
	return 0;
}

static void
probe_all(HgjTable *table, const Rows *rows)
{
	HgjKeys		keys = rows_keys(rows);
	HgjProbe   *probe = NULL;
	HgjMatches	matches = {0};
	HgjError	err = {HGJ_OK, ""};
	uint64_t	n = 0;

	matches.probe_rows = must_alloc(CAPACITY * sizeof(uint32_t));
	matches.build_rows = must_alloc(CAPACITY * sizeof(uint32_t));
	matches.capacity = CAPACITY;
	CHECK_STATUS(engine->probe_create(table, &probe, &err), HGJ_OK);
	CHECK_STATUS(engine->probe_begin(probe, &keys, HGJ_MATCH_ALL, 0, &err),
				 HGJ_OK);
	while (!matches.done &&
		   engine->probe_next(probe, &matches, &err) == HGJ_OK)
		n += matches.n;
	CHECK(matches.done && n >= rows->n, "%llu matches",
		  (unsigned long long) n);
	engine->probe_destroy(probe);
	free(matches.probe_rows);
	free(matches.build_rows);
}

static void
run_case(HgjTableSpec *spec, const Rows *rows)
{
	Watch		watch = {0, 0, 0};
	HgjTable   *table = NULL;
	HgjError	err = {HGJ_OK, ""};
	uint32_t	first;

	spec->poll = poll_watch;
	spec->poll_arg = &watch;
	watch.resident = resident_bytes();
	CHECK_STATUS(engine->table_create(spec, &table, &err), HGJ_OK);
	for (first = 0; first < rows->n; first += BATCH_ROWS)
	{
		const uint64_t *words[HGJ_MAX_KEY_WORDS];
		HgjKeys		keys = {0};
		uint32_t	w;

		for (w = 0; w < rows->nwords; w++)
			words[w] = rows->words[w] + first;
		keys.words = words;
		keys.nrows = rows->n - first < BATCH_ROWS ? rows->n - first : BATCH_ROWS;
		CHECK_STATUS(engine->append(table, &keys, first, NULL, &err), HGJ_OK);
		look(&watch);
	}
	CHECK_STATUS(engine->build(table, rows->n, &err), HGJ_OK);
	look(&watch);
	probe_all(table, rows);
	look(&watch);
	CHECK(watch.polls > rows->n / 1000000, "%llu polls",
		  (unsigned long long) watch.polls);
	CHECK(watch.most <= MOST_BYTES, "memory grew by %llu bytes at once",
		  (unsigned long long) watch.most);
	engine->table_destroy(table);
}

void
test_pauses(void)
{
	static const struct
	{
		Shape		shape;
		uint32_t	nwords;
		HgjBuild	build;
		HgjSegments segments;
		HgjProbeAlgo probe;
		HgjFilter	filter;
	}			cases[] = {
		{SHAPE_NARROW, 1, HGJ_BUILD_V1, HGJ_SEGMENTS_CSR, HGJ_PROBE_BINNED, HGJ_FILTER_ON},
		{SHAPE_NARROW, 1, HGJ_BUILD_V2, HGJ_SEGMENTS_CSR, HGJ_PROBE_STANDARD, HGJ_FILTER_OFF},
		{SHAPE_WIDE, 1, HGJ_BUILD_V2, HGJ_SEGMENTS_CSR, HGJ_PROBE_BINNED, HGJ_FILTER_ON},
		{SHAPE_WIDE, 1, HGJ_BUILD_V1, HGJ_SEGMENTS_SLICED, HGJ_PROBE_STANDARD, HGJ_FILTER_OFF},
		{SHAPE_WIDE, 2, HGJ_BUILD_V1, HGJ_SEGMENTS_CSR, HGJ_PROBE_STANDARD, HGJ_FILTER_OFF},
		{SHAPE_WIDE, 2, HGJ_BUILD_SORT, HGJ_SEGMENTS_CSR, HGJ_PROBE_BINNED, HGJ_FILTER_OFF},
		{SHAPE_DENSE, 1, HGJ_BUILD_DIRECT, HGJ_SEGMENTS_CSR, HGJ_PROBE_STANDARD, HGJ_FILTER_OFF},
		{SHAPE_DENSE_DUP, 1, HGJ_BUILD_DIRECT, HGJ_SEGMENTS_CSR, HGJ_PROBE_STANDARD, HGJ_FILTER_OFF},
	};
	int			i;

	if (!is_cpu)
		return;					/* the memory of a device is elsewhere */
	for (i = 0; i < COUNT_OF(cases); i++)
	{
		Rows		rows = rows_make(cases[i].shape, cases[i].nwords, BUILD_ROWS, 1);
		HgjTableSpec spec = spec_default(cases[i].nwords);

		spec.build = cases[i].build;
		spec.segments = cases[i].segments;
		spec.probe = cases[i].probe;
		spec.filter = cases[i].filter;
		context("pauses: %s, %u words, build %s", shape_name(cases[i].shape),
				cases[i].nwords, hgj_build_name(cases[i].build));
		run_case(&spec, &rows);
		rows_free(&rows);
	}
}
