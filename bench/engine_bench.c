/*-------------------------------------------------------------------------
 *
 * engine_bench.c
 *	  The CPU engine's speed, beside what the machine's memory allows.
 *
 *	  engine_bench [rows ...]		default: 1000000 10000000
 *
 * For every size: nanoseconds per row (medians of several runs) of
 *	  append, build V1, V2, direct, for sparse 4-byte-range, sparse 8-byte
 *	  and dense keys, and how many times V2 is faster than V1;
 *	  standard and binned probes, all hits and 10% hits, per segments and
 *	  batch size.
 * And the floor: a 64-byte line read at random from a region of the graph's
 * size, on the same kind of pages, each read waiting for the last one
 * (dependent) or not (independent).  A probe of CSR reads two such lines,
 * offsets and entries, so "x floor" is time / (2 independent reads).
 *
 * Times are processor time, system time included: one thread does all of it,
 * and a busy neighbour on the same core should not count.
 *
 * Built by test/engine/Makefile (make bench).
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine.h"
#include "hgj_memory.h"

#define MAX_RUNS	7
#define BATCH_OUT	8192

typedef enum KeyKind
{
	KEYS_SPARSE4,				/* random in 31 bits: narrow entries */
	KEYS_SPARSE8,				/* random in 64 bits: wide entries */
	KEYS_DENSE					/* a permutation: direct */
} KeyKind;

static const char *const kind_names[] = {"sparse4", "sparse8", "dense"};

static const HgjEngine *engine;
static uint64_t random_state = 88172645463325252ULL;
static uint64_t sink;

static uint64_t
rnd(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static double
now(void)
{
	struct timespec ts;

	(void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double) ts.tv_sec * 1e9 + (double) ts.tv_nsec;
}

static int
compare_doubles(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return x < y ? -1 : x > y;
}

static double
median(double *a, int n)
{
	qsort(a, (size_t) n, sizeof(double), compare_doubles);
	return a[n / 2];
}

static void
must(HgjStatus status, const HgjError *err)
{
	if (status != HGJ_OK)
	{
		printf("failed: %s\n", err->message);
		exit(1);
	}
}

static void *
must_alloc(size_t bytes)
{
	void	   *p = hgj_mem_alloc(bytes);

	if (p == NULL)
	{
		printf("out of memory\n");
		exit(1);
	}
	return p;
}

/* Nanoseconds per random 64-byte line of a region of that many bytes. */
static void
floors(size_t bytes, double *dependent, double *independent)
{
	size_t		lines = bytes / 64;
	uint64_t   *region = must_alloc(lines * 64);
	uint64_t	steps = 4000000;
	double		times[3];
	uint64_t	at = 1;
	uint64_t	i;
	int			run;

	for (i = 0; i < lines * 8; i++)
		region[i] = rnd();
	for (run = 0; run < 3; run++)
	{
		double		start = now();

		for (i = 0; i < steps / 4; i++)
		{
			at = at * 6364136223846793005ULL + 1442695040888963407ULL;
			at += region[(at >> 32) % lines * 8];
		}
		times[run] = (now() - start) / (double) (steps / 4);
	}
	*dependent = median(times, 3);
	for (run = 0; run < 3; run++)
	{
		double		start = now();
		uint64_t	sum = 0;

		for (i = 0; i < steps; i++)
		{
			at = at * 6364136223846793005ULL + 1442695040888963407ULL;
			sum += region[((at >> 32) * lines >> 32) * 8];
		}
		sink += sum;
		times[run] = (now() - start) / (double) steps;
	}
	*independent = median(times, 3);
	sink += at;
	hgj_mem_free(region, lines * 64);
}

static uint64_t *
make_keys(KeyKind kind, uint32_t n)
{
	uint64_t   *keys = must_alloc((size_t) n * 8);
	uint32_t	i;

	for (i = 0; i < n; i++)
		keys[i] = kind == KEYS_SPARSE4 ? rnd() & 0x7FFFFFFF :
			kind == KEYS_SPARSE8 ? rnd() : i;
	for (i = n; kind == KEYS_DENSE && i > 1; i--)
	{
		uint32_t	j = (uint32_t) (rnd() % i);
		uint64_t	t = keys[i - 1];

		keys[i - 1] = keys[j];
		keys[j] = t;
	}
	return keys;
}

/* Probe keys: that many percent of them are build keys. */
static uint64_t *
make_probe_keys(KeyKind kind, const uint64_t *build, uint32_t n, int percent)
{
	uint64_t   *keys = must_alloc((size_t) n * 8);
	uint32_t	i;

	for (i = 0; i < n; i++)
	{
		if ((int) (rnd() % 100) < percent)
			keys[i] = build[rnd() % n];
		else
			keys[i] = kind == KEYS_SPARSE8 ? rnd() :
				kind == KEYS_SPARSE4 ? rnd() & 0x7FFFFFFF : n + rnd() % n;
	}
	return keys;
}

static HgjTable *
make_table(HgjBuild build, HgjProbeAlgo probe, HgjSegments segments,
		   HgjFilter filter, const uint64_t *keys, uint32_t n,
		   double *append_ns, double *build_ns)
{
	HgjTableSpec spec;
	HgjTable   *table;
	HgjError	err;
	double		start = now();
	uint32_t	at;

	memset(&spec, 0, sizeof(spec));
	spec.nwords = 1;
	spec.seed = rnd();
	spec.build = build;
	spec.probe = probe;
	spec.segments = segments;
	spec.filter = filter;
	must(engine->table_create(&spec, &table, &err), &err);
	for (at = 0; at < n; at += 4096)
	{
		const uint64_t *column = keys + at;
		HgjMemory	memory;
		HgjKeys		batch;

		memset(&batch, 0, sizeof(batch));
		batch.nrows = n - at < 4096 ? n - at : 4096;
		batch.words = &column;
		must(engine->append(table, &batch, at, NULL, &err), &err);
		engine->memory(table, &memory);
	}
	*append_ns = (now() - start) / n;
	start = now();
	must(engine->build(table, n, &err), &err);
	*build_ns = (now() - start) / n;
	return table;
}

static double
bench_build(HgjBuild build, KeyKind kind, const uint64_t *keys, uint32_t n,
			int runs)
{
	double		append[MAX_RUNS];
	double		built[MAX_RUNS];
	HgjTableInfo info;
	HgjTable   *table;
	double		ns;
	int			run;

	for (run = 0; run < runs; run++)
	{
		table = make_table(build, HGJ_PROBE_STANDARD, HGJ_SEGMENTS_AUTO,
						   HGJ_FILTER_OFF, keys, n, &append[run], &built[run]);
		engine->info(table, &info);
		engine->table_destroy(table);
	}
	ns = median(built, runs);
	printf("  build %-8s %-6s %7.2f ns/row   append %5.2f ns/row   %u bins, "
		   "longest %llu, peak %.1f bytes/row\n", kind_names[kind],
		   hgj_build_name(info.build), ns, median(append, runs), info.bins,
		   (unsigned long long) info.longest,
		   (double) info.memory.peak / n);
	return ns;
}

/* Probe all keys in batches; ns per probe row. */
static double
probe_once(HgjTable *table, const uint64_t *keys, uint32_t n, uint32_t batch)
{
	static uint32_t probe_rows[BATCH_OUT];
	static uint32_t build_rows[BATCH_OUT];
	HgjProbe   *probe;
	HgjMatches	m;
	HgjError	err;
	double		start;
	double		ns;
	uint32_t	at;

	memset(&m, 0, sizeof(m));
	m.probe_rows = probe_rows;
	m.build_rows = build_rows;
	m.capacity = BATCH_OUT;
	must(engine->probe_create(table, &probe, &err), &err);
	start = now();
	for (at = 0; at < n; at += batch)
	{
		const uint64_t *column = keys + at;
		HgjKeys		b;

		memset(&b, 0, sizeof(b));
		b.nrows = n - at < batch ? n - at : batch;
		b.words = &column;
		must(engine->probe_begin(probe, &b, HGJ_MATCH_ALL, 0, &err), &err);
		do
		{
			must(engine->probe_next(probe, &m, &err), &err);
			sink += m.n > 0 ? build_rows[m.n - 1] : 0;
		} while (!m.done);
	}
	ns = (now() - start) / n;
	engine->probe_destroy(probe);
	return ns;
}

static void
bench_probe(HgjBuild build, KeyKind kind, HgjSegments segments,
			const uint64_t *keys, uint32_t n, int percent, double floor_ns,
			int runs)
{
	static const uint32_t batches[] = {4096, 65536, 262144, 1048576, 0};
	uint64_t   *probe_keys = make_probe_keys(kind, keys, n, percent);
	double		append;
	double		built;
	double		times[MAX_RUNS];
	HgjTableInfo info;
	HgjTable   *table;
	double		ns;
	int			run;
	int			i;

	table = make_table(build, HGJ_PROBE_STANDARD, segments, HGJ_FILTER_OFF, keys,
					   n, &append, &built);
	engine->info(table, &info);
	for (run = 0; run < runs; run++)
		times[run] = probe_once(table, probe_keys, n, 4096);
	ns = median(times, runs);
	printf("  probe %-8s %-6s %-8s %3d%% hits: standard %6.2f ns/row "
		   "(%.2f x floor)", kind_names[kind], hgj_build_name(info.build),
		   hgj_segments_name(info.segments), percent, ns, ns / floor_ns);
	engine->table_destroy(table);
	if (build != HGJ_BUILD_DIRECT)
	{
		table = make_table(build, HGJ_PROBE_BINNED, segments, HGJ_FILTER_OFF,
						   keys, n, &append, &built);
		printf(", binned by batch:");
		for (i = 0; i < 5; i++)
		{
			uint32_t	batch = batches[i] == 0 ? n : batches[i];

			if (batch > n || i == 0)
				continue;
			for (run = 0; run < runs; run++)
				times[run] = probe_once(table, probe_keys, n, batch);
			printf(" %uk %.2f", batch / 1024, median(times, runs));
		}
		engine->info(table, &info);
		printf("%s", info.probe == HGJ_PROBE_BINNED ? "" : " (not binned)");
		engine->table_destroy(table);
	}
	printf("\n");
	(void) fflush(stdout);
	hgj_mem_free(probe_keys, (size_t) n * 8);
}

/* A filter from the first batch on, when it is found to pay, and none. */
static void
bench_filter(HgjBuild build, KeyKind kind, const uint64_t *keys, uint32_t n,
			 int runs)
{
	static const int percents[] = {0, 10, 33, 50, 67, 100};
	HgjTableInfo info;
	HgjTable   *table;
	double		append;
	double		built;
	int			i;
	int			filter;
	int			run;

	for (i = 0; i < 6; i++)
	{
		uint64_t   *probe_keys = make_probe_keys(kind, keys, n, percents[i]);

		printf("  filter %-8s %-6s %3d%% hits:", kind_names[kind],
			   hgj_build_name(build), percents[i]);
		for (filter = HGJ_FILTER_AUTO; filter <= HGJ_FILTER_OFF; filter++)
		{
			double		times[MAX_RUNS];

			for (run = 0; run < runs; run++)
			{
				table = make_table(build, HGJ_PROBE_STANDARD,
								   HGJ_SEGMENTS_AUTO, (HgjFilter) filter, keys,
								   n, &append, &built);
				times[run] = probe_once(table, probe_keys, n, 4096);
				engine->info(table, &info);
				engine->table_destroy(table);
			}
			printf(" %s %6.2f", hgj_filter_name((HgjFilter) filter),
				   median(times, runs));
			if (info.filter_tested > 0)
				printf(" (rejected %.1f%%, %.1f MB)",
					   100.0 * (double) info.filter_rejected /
					   (double) info.filter_tested,
					   (double) info.filter_bytes / 1e6);
		}
		printf("\n");
		(void) fflush(stdout);
		hgj_mem_free(probe_keys, (size_t) n * 8);
	}
}

static void
bench_size(uint32_t n)
{
	int			runs = n > 20000000 ? 3 : 5;
	uint64_t   *keys;
	uint64_t   *wide;
	uint64_t   *dense;
	double		dependent;
	double		independent;
	double		v1;
	double		v2;
	uint64_t	vertices = 1;

	while (vertices < n)
		vertices *= 2;
	printf("%u rows\n", n);
	floors((size_t) n * 8 + vertices * 4, &dependent, &independent);
	printf("  floor over %.0f MB: dependent %.2f, independent %.2f ns/line\n",
		   ((double) n * 8 + (double) vertices * 4) / 1e6, dependent,
		   independent);
	keys = make_keys(KEYS_SPARSE4, n);
	wide = make_keys(KEYS_SPARSE8, n);
	dense = make_keys(KEYS_DENSE, n);
	v1 = bench_build(HGJ_BUILD_V1, KEYS_SPARSE4, keys, n, n > 20000000 ? 1 : 3);
	v2 = bench_build(HGJ_BUILD_V2, KEYS_SPARSE4, keys, n, runs);
	printf("  V2 is %.1f times as fast as V1\n", v1 / v2);
	v1 = bench_build(HGJ_BUILD_V1, KEYS_SPARSE8, wide, n, n > 20000000 ? 1 : 3);
	v2 = bench_build(HGJ_BUILD_V2, KEYS_SPARSE8, wide, n, runs);
	printf("  V2 is %.1f times as fast as V1\n", v1 / v2);
	(void) bench_build(HGJ_BUILD_DIRECT, KEYS_DENSE, dense, n, runs);
	bench_probe(HGJ_BUILD_AUTO, KEYS_SPARSE4, HGJ_SEGMENTS_CSR, keys, n, 100,
				2 * independent, runs);
	bench_probe(HGJ_BUILD_AUTO, KEYS_SPARSE4, HGJ_SEGMENTS_CSR, keys, n, 10,
				2 * independent, runs);
	bench_probe(HGJ_BUILD_AUTO, KEYS_SPARSE8, HGJ_SEGMENTS_CSR, wide, n, 100,
				2 * independent, runs);
	bench_probe(HGJ_BUILD_AUTO, KEYS_SPARSE8, HGJ_SEGMENTS_CSR, wide, n, 10,
				2 * independent, runs);
	bench_probe(HGJ_BUILD_AUTO, KEYS_SPARSE4, HGJ_SEGMENTS_SLICED, keys, n,
				100, 2 * independent, runs);
	bench_probe(HGJ_BUILD_AUTO, KEYS_SPARSE4, HGJ_SEGMENTS_ELLPACK, keys, n,
				100, 2 * independent, runs);
	bench_probe(HGJ_BUILD_DIRECT, KEYS_DENSE, HGJ_SEGMENTS_AUTO, dense, n, 100,
				independent, runs);
	bench_filter(HGJ_BUILD_AUTO, KEYS_SPARSE4, keys, n, 3);
	bench_filter(HGJ_BUILD_AUTO, KEYS_SPARSE8, wide, n, 3);
	hgj_mem_free(keys, (size_t) n * 8);
	hgj_mem_free(wide, (size_t) n * 8);
	hgj_mem_free(dense, (size_t) n * 8);
}

int
main(int argc, char **argv)
{
	int			i;

	engine = hgj_cpu_engine();
	if (argc < 2)
	{
		bench_size(1000000);
		bench_size(10000000);
	}
	for (i = 1; i < argc; i++)
	{
		unsigned long n = strtoul(argv[i], NULL, 0);

		if (n < 1 || n > 1000000000)
		{
			printf("rows must be between 1 and 1000000000\n");
			return 2;
		}
		bench_size((uint32_t) n);
	}
	/* printed so that no read above can be left out */
	printf("checksum %llu\n", (unsigned long long) sink);
	return 0;
}
