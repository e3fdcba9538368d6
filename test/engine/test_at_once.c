/*-------------------------------------------------------------------------
 *
 * test_at_once.c
 *	  Tables of several threads, each thread with its own, as the GPU process makes them for
 *	  sessions: what a library says to its device for one of them must not be the others'.
 *
 * 1. Each thread makes tables of any size, one after the other, most of them by binning,
 *	  whose kernels want more or less of a block's memory as the table is.
 * 2. It looks up keys that are there, and as many that are not: each of the former has its
 *	  row, and no other.
 *
 * Not for the CPU engine, which is not asked for that.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#define THREADS		8
#define ROUNDS		100
#define MOST_ROWS	(1 << 18)
#define PORTION		4096

typedef struct Maker
{
	pthread_t	thread;
	uint64_t	state;			/* of random numbers of its own */
	uint64_t	seed;
	uint64_t   *keys;			/* MOST_ROWS, and as many that are not there */
	uint32_t	right;			/* tables */
	char		wrong[512];		/* the first that was not */
} Maker;

static uint64_t
next(Maker *m)
{
	m->state = m->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return m->state >> 33;
}

/* Step 2: how many of 2 n keys have been found with their row; -1: one with another. */
static int64_t
look_up(HgjTable *table, const Maker *m, uint32_t n, HgjError *err)
{
	uint32_t	rows[2][PORTION];
	HgjMatches	matches = {.probe_rows = rows[0], .build_rows = rows[1], .capacity = PORTION};
	const uint64_t *words[1] = {m->keys};
	HgjKeys		keys = {.nrows = 2 * n, .words = words};
	HgjProbe   *probe = NULL;
	int64_t		found = 0;
	HgjStatus	status = engine->probe_create(table, &probe, err);

	if (status == HGJ_OK)
		status = engine->probe_begin(probe, &keys, HGJ_MATCH_ALL, 0, err);
	while (status == HGJ_OK && !matches.done && found >= 0)
	{
		status = engine->probe_next(probe, &matches, err);
		for (uint32_t i = 0; i < matches.n && status == HGJ_OK && found >= 0; i++)
			found = rows[0][i] == rows[1][i] && rows[0][i] < n ? found + 1 : -1;
	}
	engine->probe_destroy(probe);
	return status == HGJ_OK ? found : -1;
}

/* Step 1, once. */
static void
make_one(Maker *m)
{
	static const HgjBuild builds[] = {HGJ_BUILD_V2, HGJ_BUILD_V2, HGJ_BUILD_V2, HGJ_BUILD_AUTO};
	HgjTableSpec spec = {.nwords = 1, .seed = m->seed, .build = builds[next(m) % 4]};
	uint32_t	n = 1 + (uint32_t) (next(m) % (UINT64_C(1) << (10 + next(m) % 9)));
	const uint64_t *words[1] = {m->keys};
	HgjKeys		keys = {.nrows = n, .words = words};
	HgjTable   *table = NULL;
	HgjError	err = {HGJ_OK, ""};
	uint64_t	salt = next(m) | UINT64_C(1) << 40;
	int64_t		found = -1;
	HgjStatus	status;

	for (uint32_t i = 0; i < 2 * n; i++)
		m->keys[i] = (salt + i) * UINT64_C(0x9E3779B97F4A7C15);
	status = engine->table_create(&spec, &table, &err);
	if (status == HGJ_OK)
		status = engine->append(table, &keys, 0, NULL, &err);
	if (status == HGJ_OK)
		status = engine->build(table, n, &err);
	if (status == HGJ_OK)
		found = look_up(table, m, n, &err);
	engine->table_destroy(table);
	if (found == n)
		m->right++;
	else if (m->wrong[0] == '\0')
		(void) snprintf(m->wrong, sizeof(m->wrong), "%u rows, %lld found: %s", n,
						(long long) found, err.message);
}

static void *
make_all(void *arg)
{
	Maker	   *m = arg;

	for (int i = 0; i < ROUNDS; i++)
		make_one(m);
	return NULL;
}

void
test_at_once(void)
{
	static Maker makers[THREADS];

	if (is_cpu)
		return;
	context("tables of %d threads", THREADS);
	for (int i = 0; i < THREADS; i++)
	{
		memset(&makers[i], 0, sizeof(makers[i]));
		makers[i].state = rnd();
		makers[i].seed = rnd();
		makers[i].keys = must_alloc(2 * (size_t) MOST_ROWS * sizeof(uint64_t));
		if (pthread_create(&makers[i].thread, NULL, make_all, &makers[i]) != 0)
			exit(2);
	}
	for (int i = 0; i < THREADS; i++)
	{
		(void) pthread_join(makers[i].thread, NULL);
		CHECK(makers[i].right == ROUNDS, "%u of %d tables are right; %s", makers[i].right, ROUNDS,
			  makers[i].wrong);
		free(makers[i].keys);
	}
}
