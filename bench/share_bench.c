/*-------------------------------------------------------------------------
 *
 * share_bench.c
 *	  One HashGraph built by several processes (share.h), against one that a
 *	  process builds alone.
 *
 *	  share_bench [rows [most processes [rounds]]]
 *
 * Prints milliseconds: of a private build, of every step of a shared one (from
 * barrier to barrier, the best of the rounds), and nanoseconds per row of probes of
 * both.  Images are mapped with and without advice to use huge pages.
 *
 *-------------------------------------------------------------------------
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"
#include "hgj_memory.h"

#define MOST_PARTS	64
#define MOST_STEPS	16
#define BATCH		4096

static const char *const kind_names[] = {"sparse4", "sparse8", "unique", "dense"};

typedef struct Control
{
	uint32_t	waiting;
	uint32_t	turn;
	uint32_t	steps;
	HgjSharePart parts[MOST_PARTS];
	double		ms[MOST_STEPS];
	double		probe_ns;
} Control;

static const HgjEngine *engine;
static uint32_t nrows = 10000000;
static uint64_t *keys;
static uint64_t *probe_keys;
static uint64_t sink;

static double
now_ms(void)
{
	struct timespec ts;

	(void) clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double) ts.tv_sec * 1e3 + (double) ts.tv_nsec / 1e6;
}

static uint64_t
mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

static void
must(HgjStatus status, const HgjError *err)
{
	if (status == HGJ_OK)
		return;
	fprintf(stderr, "%s: %s\n", hgj_status_name(status), err->message);
	exit(1);
}

static void
make_keys(int kind)
{
	uint32_t	i;

	for (i = 0; i < nrows; i++)
	{
		uint64_t	random = mix(i + UINT64_C(0x9E3779B97F4A7C15));

		keys[i] = kind == 0 ? random & 0x7FFFFFFF : kind == 1 ? random :
			kind == 2 ? i : random % nrows;
	}
	if (kind == 2)
		for (i = nrows; i > 1; i--)
		{
			uint32_t	j = (uint32_t) (mix(i) % i);
			uint64_t	t = keys[i - 1];

			keys[i - 1] = keys[j];
			keys[j] = t;
		}
	for (i = 0; i < nrows; i++)
		probe_keys[i] = keys[mix(i + 7) % nrows];
}

static HgjTable *
table_with(uint32_t from, uint32_t to)
{
	HgjTableSpec spec;
	HgjTable   *table;
	HgjError	err;

	memset(&spec, 0, sizeof(spec));
	spec.nwords = 1;
	spec.seed = 42;
	must(engine->table_create(&spec, &table, &err), &err);
	while (from < to)
	{
		const uint64_t *words = keys + from;
		HgjKeys		batch;

		memset(&batch, 0, sizeof(batch));
		batch.nrows = to - from < 65536 ? to - from : 65536;
		batch.words = &words;
		must(engine->append(table, &batch, from, NULL, &err), &err);
		from += batch.nrows;
	}
	return table;
}

/* Nanoseconds per row of probing with a part of the probe rows. */
static double
probe_ns(HgjTable *table, uint32_t from, uint32_t to)
{
	static uint32_t p[BATCH * 16];
	static uint32_t b[BATCH * 16];
	uint32_t	first = from;
	HgjProbe   *probe;
	HgjError	err;
	double		start = now_ms();

	must(engine->probe_create(table, &probe, &err), &err);
	for (; from < to; from += BATCH)
	{
		const uint64_t *words = probe_keys + from;
		HgjKeys		batch;
		HgjMatches	m;

		memset(&batch, 0, sizeof(batch));
		memset(&m, 0, sizeof(m));
		batch.nrows = to - from < BATCH ? to - from : BATCH;
		batch.words = &words;
		m.probe_rows = p;
		m.build_rows = b;
		m.capacity = BATCH * 16;
		must(engine->probe_begin(probe, &batch, HGJ_MATCH_ALL, 0, &err), &err);
		while (!m.done)
		{
			must(engine->probe_next(probe, &m, &err), &err);
			sink += m.n;
		}
	}
	engine->probe_destroy(probe);
	return (now_ms() - start) * 1e6 / (double) (to - first);
}

static void
barrier(Control *c, uint32_t nparts, uint32_t *turn)
{
	(*turn)++;
	if (__atomic_add_fetch(&c->waiting, 1, __ATOMIC_ACQ_REL) == nparts)
	{
		__atomic_store_n(&c->waiting, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&c->turn, *turn, __ATOMIC_RELEASE);
	}
	while (__atomic_load_n(&c->turn, __ATOMIC_ACQUIRE) != *turn)
		(void) sched_yield();
}

/* One participant; `area` is where images go, each behind the last. */
static void
participate(Control *c, uint32_t part, uint32_t nparts, uint8_t *area)
{
	uint32_t	from = (uint32_t) ((uint64_t) nrows * part / nparts);
	uint32_t	to = (uint32_t) ((uint64_t) nrows * (part + 1) / nparts);
	HgjTable   *table = table_with(from, to);
	HgjShareNext next = {false, 0};
	HgjShareBuild build;
	HgjError	err;
	uint32_t	turn = 0;
	uint32_t	step;
	double		ns;

	memset(&build, 0, sizeof(build));
	engine->share->part(table, &c->parts[part]);
	build.parts = c->parts;
	build.nparts = nparts;
	build.part = part;
	build.total_rows = nrows;
	barrier(c, nparts, &turn);
	for (step = 0; !next.done; step++)
	{
		double		start = now_ms();

		must(engine->share->step(table, &build, &next, &err), &err);
		barrier(c, nparts, &turn);
		if (part == 0 && step < MOST_STEPS)
		{
			c->ms[step] = now_ms() - start;
			c->steps = step + 1;
		}
		build.old_image = NULL;
		if (next.image_bytes > 0)
		{
			build.old_image = build.image;
			build.image = area;
			area += (next.image_bytes + 0x1FFFFF) & ~UINT64_C(0x1FFFFF);
		}
	}
	must(engine->share->attach(table, build.image, &err), &err);
	barrier(c, nparts, &turn);
	ns = probe_ns(table, from, to);
	if (part == 0)
		c->probe_ns = ns;
	engine->table_destroy(table);
}

/* Milliseconds of all steps; the best of them so far are kept in `best`. */
static void
share_round(uint32_t nparts, int advice, Control *best)
{
	size_t		bytes = (size_t) nrows * 64 + ((size_t) 64 << 20);
	Control    *c = mmap(NULL, sizeof(Control), PROT_READ | PROT_WRITE,
						 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint8_t    *raw = mmap(NULL, bytes + 0x200000, PROT_READ | PROT_WRITE,
						   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint8_t    *area = raw + (0x200000 - (uintptr_t) raw % 0x200000);
	double		total = 0;
	uint32_t	i;

	if (c == MAP_FAILED || raw == MAP_FAILED)
		exit(1);
	if (advice == 1)
		(void) madvise(area, bytes, MADV_HUGEPAGE);
	if (advice == 2)
		memset(area, 1, (size_t) nrows * 40);	/* pages are there already */
	for (i = 0; i < nparts; i++)
		if (fork() == 0)
		{
			participate(c, i, nparts, area);
			_exit(0);
		}
	for (i = 0; i < nparts; i++)
		(void) wait(NULL);
	for (i = 0; i < c->steps; i++)
		total += c->ms[i];
	if (best->steps == 0 || total < best->ms[MOST_STEPS - 1])
	{
		*best = *c;
		best->ms[MOST_STEPS - 1] = total;
	}
	(void) munmap(raw, bytes + 0x200000);
	(void) munmap(c, sizeof(Control));
}

static void
print_share(uint32_t nparts, int advice, const Control *best)
{
	uint32_t	i;

	printf("  shared by %2u%-12s %8.2f ms, probe %5.1f ns/row;", nparts,
		   advice == 1 ? ", huge pages" : advice == 2 ? ", touched" : "",
		   best->ms[MOST_STEPS - 1], best->probe_ns);
	for (i = 0; i < best->steps; i++)
		printf(" %.2f", best->ms[i]);
	printf("\n");
	(void) fflush(stdout);
}

int
main(int argc, char **argv)
{
	uint32_t	most = argc > 2 ? (uint32_t) atoi(argv[2]) : 2;
	int			rounds = argc > 3 ? atoi(argv[3]) : 5;
	int			kind;

	engine = hgj_cpu_engine();
	if (argc > 1)
		nrows = (uint32_t) strtoul(argv[1], NULL, 0);
	if (most > MOST_PARTS || nrows == 0)
		return 2;
	keys = hgj_mem_alloc((size_t) nrows * sizeof(uint64_t));
	probe_keys = hgj_mem_alloc((size_t) nrows * sizeof(uint64_t));
	if (keys == NULL || probe_keys == NULL)
		return 1;
	for (kind = 0; kind < 4; kind++)
	{
		Control		best[3][7];
		double		alone = 0;
		double		ns = 0;
		uint32_t	nparts;
		int			round;
		int			advice;
		int			n;

		make_keys(kind);
		memset(best, 0, sizeof(best));
		for (round = 0; round < rounds; round++)
		{
			HgjTable   *table = table_with(0, nrows);
			HgjError	err;
			double		start = now_ms();
			double		took;

			must(engine->build(table, nrows, &err), &err);
			took = now_ms() - start;
			alone = round == 0 || took < alone ? took : alone;
			took = probe_ns(table, 0, nrows);
			ns = round == 0 || took < ns ? took : ns;
			engine->table_destroy(table);
			for (n = 0, nparts = 1; nparts <= most; n++, nparts *= 2)
				for (advice = 0; advice < 3; advice++)
					share_round(nparts, advice, &best[advice][n]);
		}
		printf("%s, %u rows\n  alone                    %8.2f ms, probe %5.1f ns/row\n",
			   kind_names[kind], nrows, alone, ns);
		for (n = 0, nparts = 1; nparts <= most; n++, nparts *= 2)
			for (advice = 0; advice < 3; advice++)
				print_share(nparts, advice, &best[advice][n]);
	}
	return sink == 1;
}
