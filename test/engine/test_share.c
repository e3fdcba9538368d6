/*-------------------------------------------------------------------------
 *
 * test_share.c
 *	  One graph built by several processes (share.h).
 *
 * The processes are forked.  An image is a file in memory, which each of them maps
 * at an address of its own, and which begins as garbage.  All of them compare what
 * they find in the graph with the reference, and one with a private table of the
 * same rows; what they have taken of memory, step by step, with what `peak` said.
 *
 *-------------------------------------------------------------------------
 */
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define MOST_PARTS	8
#define MOST_IMAGES	3

/* What the processes share, besides images. */
typedef struct Control
{
	uint32_t	waiting;		/* atomic, at the barrier */
	uint32_t	turn;			/* atomic */
	uint32_t	broken;			/* atomic: somebody has failed */
	uint32_t	passed;			/* atomic */
	uint32_t	done;			/* atomic: the last image is complete */
	uint64_t	image_bytes[MOST_IMAGES];
	int			image;			/* that which is complete */
	HgjSharePart parts[MOST_PARTS];
	uint64_t	peaks[MOST_PARTS];	/* as said */
	uint64_t	taken[MOST_PARTS];	/* in the last step */
	HgjShareNext next[MOST_PARTS];
	HgjStatus	status;			/* of a build that was to fail */
	uint64_t	polls;			/* of one participant */
} Control;

/* A build, as everybody knows it before the processes part. */
typedef struct Crew
{
	HgjTableSpec spec;
	uint32_t	nparts;
	uint32_t	first[MOST_PARTS + 1];	/* rows of each */
	uint32_t	total_rows;
	Rows		rows;
	Rows		probe;
	Reference	ref;
	HgjTableInfo alone;			/* of a private table */
	uint32_t	cancelled;		/* which participant is */
	uint64_t	cancel_at;		/* at which of its polls; 0: none */
	bool		late;			/* one process has no part */
	HgjStatus	expect;			/* of the first step */
	int			files[MOST_IMAGES];
	Control    *control;
} Crew;

/* One process of it. */
typedef struct Worker
{
	Crew	   *crew;
	uint32_t	part;			/* nparts: it has none */
	uint32_t	turn;
	HgjTable   *table;
	PollState	poll;
	uint64_t	live;			/* bytes, before there was a table */
	void	   *images[MOST_IMAGES];
	int			last;			/* image */
} Worker;

static void
barrier(Worker *w)
{
	Control    *c = w->crew->control;

	w->turn++;
	if (__atomic_add_fetch(&c->waiting, 1, __ATOMIC_ACQ_REL) ==
		w->crew->nparts)
	{
		__atomic_store_n(&c->waiting, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&c->turn, w->turn, __ATOMIC_RELEASE);
	}
	while (__atomic_load_n(&c->turn, __ATOMIC_ACQUIRE) != w->turn)
	{
		if (__atomic_load_n(&c->broken, __ATOMIC_RELAXED))
			_exit(3);
		(void) sched_yield();
	}
}

/* Map an image where no other process has it. */
static void *
map_image(const Worker *w, int image)
{
	size_t		bytes = w->crew->control->image_bytes[image];
	size_t		away = (size_t) (w->part + 1) * 3 * 4096;
	void	   *gap = mmap(NULL, away + bytes, PROT_NONE,
						   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void	   *p;

	if (gap == MAP_FAILED)
		return NULL;
	p = mmap((uint8_t *) gap + away, bytes, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, w->crew->files[image], 0);
	return p == MAP_FAILED ? NULL : p;
}

static void
unmap_image(Worker *w, int image)
{
	if (image >= 0 && w->images[image] != NULL)
		(void) munmap(w->images[image], w->crew->control->image_bytes[image]);
	if (image >= 0)
		w->images[image] = NULL;
}

static uint64_t
bytes_of(const Crew *crew, int image)
{
	return image < 0 ? 0 : crew->control->image_bytes[image];
}

/* What all have taken in the last step is not more than what they said. */
static void
check_memory(const Worker *w, bool replaced)
{
	const Crew *crew = w->crew;
	uint64_t	said = 0;
	uint64_t	taken = bytes_of(crew, w->last);
	uint32_t	p;

	if (replaced)
		taken += bytes_of(crew, w->last - 1);
	for (p = 0; p < crew->nparts; p++)
	{
		said += crew->control->peaks[p];
		taken += crew->control->taken[p];
	}
	CHECK(taken <= said, "%llu bytes taken, of %llu that were announced",
		  (unsigned long long) taken, (unsigned long long) said);
}

/* One step, again and again where it is cancelled. */
static HgjStatus
take_step(Worker *w, const HgjShareBuild *build, HgjShareNext *next)
{
	HgjError	err = {HGJ_OK, ""};
	HgjStatus	status;

	hgj_mem_test_reset_peak();
	status = engine->share->step(w->table, build, next, &err);
	if (status == HGJ_CANCELLED && w->poll.cancel_at > 0)
	{
		w->poll.cancel_at = 0;
		status = engine->share->step(w->table, build, next, &err);
	}
	w->crew->control->taken[w->part] = hgj_mem_test_peak() - w->live;
	CHECK(status == HGJ_OK || status == w->crew->expect, "step: %s: %s",
		  hgj_status_name(status), err.message);
	return status;
}

/* Everybody's steps, up to a complete image; false where the build fails. */
static bool
build_image(Worker *w)
{
	Crew	   *crew = w->crew;
	Control    *c = crew->control;
	HgjShareBuild build;
	HgjShareNext next = {false, 0};
	int			steps;

	memset(&build, 0, sizeof(build));
	build.parts = c->parts;
	build.nparts = crew->nparts;
	build.part = w->part;
	build.total_rows = crew->total_rows;
	for (steps = 0; steps < 20 && !next.done; steps++)
	{
		bool		replaced = build.old_image != NULL;
		HgjStatus	status = take_step(w, &build, &next);

		c->next[w->part] = next;
		if (status != HGJ_OK)
		{
			c->status = status;
			return false;
		}
		barrier(w);
		CHECK(memcmp(&c->next[0], &next, sizeof(next.done)) == 0 &&
			  c->next[0].image_bytes == next.image_bytes, "next differs");
		check_memory(w, replaced);
		if (replaced)
			unmap_image(w, w->last - 1);
		build.old_image = NULL;
		if (next.image_bytes > 0)
		{
			w->last++;
			if (w->part == 0)
			{
				c->image_bytes[w->last] = next.image_bytes;
				if (ftruncate(crew->files[w->last], (off_t) next.image_bytes) != 0)
					_exit(4);
			}
			barrier(w);
			build.old_image = build.image;
			build.image = w->images[w->last] = map_image(w, w->last);
			if (build.image == NULL)
				_exit(4);
			if (w->part == 0)
				memset(build.image, 0xA5, next.image_bytes);
		}
		barrier(w);
	}
	c->image = w->last;
	return CHECK(next.done && steps < 20, "%d steps", steps);
}

/* The attached table is what a private one would be. */
static void
check_info(const Worker *w)
{
	const HgjTableInfo *alone = &w->crew->alone;
	HgjTableInfo info;

	engine->info(w->table, &info);
	if (alone->segments == HGJ_SEGMENTS_BITS && info.segments != HGJ_SEGMENTS_BITS)
		CHECK(alone->vertices > 2 * alone->rows, "not even %llu vertices have a bit each",
			  (unsigned long long) alone->vertices);
	else
		CHECK(info.rows == alone->rows && info.vertices == alone->vertices &&
			  info.slots == alone->slots && info.longest == alone->longest &&
			  info.entry_bytes == alone->entry_bytes &&
			  info.build == alone->build && info.probe == alone->probe &&
			  info.segments == alone->segments && info.notes == alone->notes &&
			  (info.bins > 1) == (alone->bins > 1),
			  "%llu rows, %llu vertices, %llu slots, longest %llu, segments %d, notes %u",
			  (unsigned long long) info.rows, (unsigned long long) info.vertices,
			  (unsigned long long) info.slots, (unsigned long long) info.longest,
			  (int) info.segments, info.notes);
	CHECK(hgj_mem_test_live() - w->live == info.memory.current,
		  "%llu bytes are live, %llu in the account",
		  (unsigned long long) (hgj_mem_test_live() - w->live),
		  (unsigned long long) info.memory.current);
}

/* Probe rows part, part + nparts, ... and mark what they find. */
static void
mark_own(const Worker *w)
{
	const Crew *crew = w->crew;
	Rows		own = crew->probe;
	uint32_t   *p = must_alloc(500 * sizeof(uint32_t));
	uint32_t   *b = must_alloc(500 * sizeof(uint32_t));
	uint32_t   *counts = must_alloc(own.n * sizeof(uint32_t));
	HgjProbe   *probe = NULL;
	HgjError	err = {HGJ_OK, ""};
	HgjMatches	m;
	HgjKeys		keys;
	uint32_t	i;

	own.sel = must_alloc(own.n * sizeof(uint32_t));
	own.nsel = 0;
	for (i = w->part; i < own.n; i += crew->nparts)
		own.sel[own.nsel++] = i;
	keys = rows_keys(&own);
	memset(&m, 0, sizeof(m));
	m.probe_rows = p;
	m.build_rows = b;
	m.counts = counts;
	m.capacity = 500;
	CHECK_STATUS(engine->probe_create(w->table, &probe, &err), HGJ_OK);
	CHECK_STATUS(engine->probe_begin(probe, &keys, w->part % 2 == 0 ?
									 HGJ_MATCH_ALL : HGJ_MATCH_COUNT,
									 HGJ_PROBE_MARK, &err), HGJ_OK);
	while (!m.done)
		if (engine->probe_next(probe, &m, &err) != HGJ_OK)
			break;
	CHECK(m.done, "%s", err.message);
	engine->probe_destroy(probe);
	for (i = w->part; i < crew->total_rows; i += 7 * crew->nparts)
		CHECK_STATUS(engine->mark(w->table, &i, 1, &err), HGJ_OK);
	i = crew->total_rows;
	CHECK_STATUS(engine->mark(w->table, &i, 1, &err), HGJ_INVALID);
	CHECK_STATUS(engine->clear_marks(w->table, &err), HGJ_UNSUPPORTED);
	free(own.sel);
	free(counts);
	free(p);
	free(b);
}

/* The marks of all are there. */
static void
check_marks(const Worker *w)
{
	Crew	   *crew = w->crew;
	Pairs		want;
	uint32_t	p;
	uint32_t	i;

	ref_pairs(&crew->ref, &crew->probe, &want);
	for (p = 0; p < crew->nparts; p++)
		for (i = p; i < crew->total_rows; i += 7 * crew->nparts)
			pairs_add(&want, 0, i);
	compare_marks(w->table, &want, crew->total_rows);
	pairs_free(&want);
}

static void
make_table(Worker *w)
{
	Crew	   *crew = w->crew;
	HgjTableSpec spec = crew->spec;
	HgjError	err = {HGJ_OK, ""};

	spec.poll = poll_count;
	spec.poll_arg = &w->poll;
	w->live = hgj_mem_test_live();
	CHECK_STATUS(engine->table_create(&spec, &w->table, &err), HGJ_OK);
}

/* Append this process's rows, in two batches. */
static void
append_own(Worker *w)
{
	const Crew *crew = w->crew;
	uint32_t	at = crew->first[w->part];
	uint32_t	end = crew->first[w->part + 1];
	HgjError	err = {HGJ_OK, ""};

	while (at < end)
	{
		const uint64_t *words[HGJ_MAX_KEY_WORDS];
		HgjKeys		keys = rows_keys(&crew->rows);
		uint32_t	i;

		for (i = 0; i < crew->rows.nwords; i++)
			words[i] = crew->rows.words[i] + at;
		keys.words = words;
		keys.nrows = (end - at + 1) / 2;
		CHECK_STATUS(engine->append(w->table, &keys, 0,
									crew->rows.row_ids + at, &err), HGJ_OK);
		at += keys.nrows;
	}
	engine->share->part(w->table, &crew->control->parts[w->part]);
	crew->control->peaks[w->part] = engine->share->peak(w->table);
}

/* What one process does, from its first row to its end. */
static void
work(Worker *w)
{
	Crew	   *crew = w->crew;
	Control    *c = crew->control;
	bool		has_part = w->part < crew->nparts;
	HgjError	err = {HGJ_OK, ""};

	w->last = -1;
	make_table(w);
	if (has_part)
	{
		append_own(w);
		barrier(w);
		w->poll.calls = 0;
		w->poll.cancel_at = w->part == crew->cancelled ? crew->cancel_at : 0;
		if (!build_image(w))
			goto end;
		if (w->part == crew->cancelled)
			c->polls = w->poll.calls;
		__atomic_store_n(&c->done, 1, __ATOMIC_RELEASE);
	}
	else
	{
		while (!__atomic_load_n(&c->done, __ATOMIC_ACQUIRE))
		{
			if (__atomic_load_n(&c->broken, __ATOMIC_RELAXED))
				_exit(3);
			(void) sched_yield();
		}
		w->last = c->image;
		w->images[w->last] = map_image(w, w->last);
	}
	if (!CHECK(engine->share->attach(w->table, w->images[w->last], &err) == HGJ_OK,
			   "attach: %s", err.message))
		goto end;
	check_info(w);
	compare_probe(w->table, &crew->ref, &crew->probe, 100, 0, 0);
	if (has_part && (crew->spec.flags & HGJ_TABLE_TRACK_MATCHES))
	{
		barrier(w);
		mark_own(w);
		barrier(w);
		check_marks(w);
		barrier(w);
	}
end:
	if (w->last >= 0)
		unmap_image(w, w->last);
	engine->table_destroy(w->table);
	CHECK(hgj_mem_test_live() == w->live, "%lld bytes are left",
		  (long long) (hgj_mem_test_live() - w->live));
}

/* Fork the processes, and wait for them. */
static void
run_crew(Crew *crew)
{
	uint32_t	n = crew->nparts + (crew->late ? 1 : 0);
	pid_t		pids[MOST_PARTS + 1];
	uint32_t	i;

	crew->control = mmap(NULL, sizeof(Control), PROT_READ | PROT_WRITE,
						 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (crew->control == MAP_FAILED)
		exit(2);
	for (i = 0; i < MOST_IMAGES; i++)
		crew->files[i] = memfd_create("image", 0);
	(void) fflush(stdout);
	for (i = 0; i < n; i++)
	{
		Worker		w;

		pids[i] = fork();
		if (pids[i] < 0)
			exit(2);
		if (pids[i] > 0)
			continue;
		(void) alarm(300);
		memset(&w, 0, sizeof(w));
		w.crew = crew;
		w.part = i;
		passed = failed = 0;
		work(&w);
		(void) __atomic_add_fetch(&crew->control->passed, (uint32_t) passed,
								  __ATOMIC_RELAXED);
		if (failed > 0)
			__atomic_store_n(&crew->control->broken, 1, __ATOMIC_RELAXED);
		(void) fflush(stdout);
		_exit(failed > 0);
	}
	for (i = 0; i < n; i++)
	{
		int			status;

		(void) waitpid(pids[i], &status, 0);
		if (!CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0,
				   "process %u of %u: status %x", i, n, (unsigned int) status))
			__atomic_store_n(&crew->control->broken, 1, __ATOMIC_RELAXED);
	}
	passed += (int) crew->control->passed;
	crew->cancel_at = crew->cancel_at > 0 ? crew->cancel_at : 0;
	for (i = 0; i < MOST_IMAGES; i++)
		(void) close(crew->files[i]);
}

static void
control_free(Crew *crew)
{
	(void) munmap(crew->control, sizeof(Control));
	crew->control = NULL;
}

/* Who has how many of the rows: alike, at random, or one has them all. */
static void
divide(Crew *crew, uint32_t how)
{
	uint32_t	p;

	crew->first[0] = 0;
	for (p = 1; p < crew->nparts; p++)
		crew->first[p] = how == 0 ? (uint32_t) ((uint64_t) crew->rows.n * p /
												crew->nparts) :
			how == 1 ? crew->first[p - 1] +
			rnd_below(crew->rows.n - crew->first[p - 1] + 1) :
			p <= crew->nparts / 2 ? 0 : crew->rows.n;
	crew->first[crew->nparts] = crew->rows.n;
}

static void
crew_make(Crew *crew, const HgjTableSpec *spec, Shape shape, uint32_t n,
		  uint32_t nparts)
{
	uint32_t	gaps = 1 + rnd_below(3);
	HgjTable   *alone;
	HgjError	err = {HGJ_OK, ""};
	HgjKeys		keys;
	uint32_t	i;

	memset(crew, 0, sizeof(*crew));
	crew->spec = *spec;
	crew->nparts = nparts;
	crew->cancelled = MOST_PARTS + 1;
	crew->rows = rows_make(shape == SHAPE_COUNT ? SHAPE_NARROW : shape,
						   spec->nwords, n, 500);
	if (shape == SHAPE_COUNT)	/* nine rows in ten have one key */
		for (i = 0; i < n; i++)
			if (i % 10 != 0)
				crew->rows.words[0][i] = 77;
	rows_number(&crew->rows, 0, true);
	for (i = 0; i < n; i++)
		crew->rows.row_ids[i] = crew->rows.row_ids[i] * gaps;
	crew->total_rows = n * gaps + rnd_below(100);
	divide(crew, rnd_below(3));
	crew->probe = rows_probe(&crew->rows, shape == SHAPE_SAME ||
							 shape == SHAPE_COUNT ? 5 : shape == SHAPE_SKEW ||
							 shape == SHAPE_EXTREME ? 50 : 1000, 60);
	ref_init_spec(&crew->ref, spec);
	ref_add(&crew->ref, &crew->rows);

	keys = rows_keys(&crew->rows);
	CHECK_STATUS(engine->table_create(spec, &alone, &err), HGJ_OK);
	CHECK_STATUS(engine->append(alone, &keys, 0, crew->rows.row_ids, &err), HGJ_OK);
	CHECK_STATUS(engine->build(alone, crew->total_rows, &err), HGJ_OK);
	engine->info(alone, &crew->alone);
	engine->table_destroy(alone);
}

static void
crew_free(Crew *crew)
{
	rows_free(&crew->rows);
	rows_free(&crew->probe);
	ref_free(&crew->ref);
}

static void
build_together(const HgjTableSpec *spec, Shape shape, uint32_t n, uint32_t nparts)
{
	Crew		crew;

	context("share, %s, %u rows, %u words, build %d, segments %d, probe %d, "
			"filter %d, flags %u, L2 %zu, %u parts", shape == SHAPE_COUNT ?
			"one key" : shape_name(shape), n, spec->nwords, (int) spec->build,
			(int) spec->segments, (int) spec->probe, (int) spec->filter,
			spec->flags, hgj_mem_test_l2_bytes, nparts);
	crew_make(&crew, spec, shape, n, nparts);
	crew.late = rnd_below(4) == 0;
	run_crew(&crew);
	control_free(&crew);
	crew_free(&crew);
}

/* Every shape, build and kind of segments; the rest at random. */
void
test_share(void)
{
	static const size_t caches[] = {0, 4096, 65536};
	static const uint32_t sizes[] = {0, 1, 100, 3000, 20000};
	int			i;

	if (engine->share == NULL)
		return;
	for (i = 0; i < (SHAPE_COUNT + 1) * 5 * 4; i++)
	{
		Shape		shape = (Shape) (i / 20);
		HgjTableSpec spec = spec_default(rnd_below(4) == 0 ? 1 + rnd_below(4) : 1);

		if (!in_share())
			continue;
		spec.build = (HgjBuild) (i % 20 / 4);
		spec.segments = (HgjSegments) (i % 4);
		spec.probe = (HgjProbeAlgo) rnd_below(3);
		spec.filter = (HgjFilter) rnd_below(3);
		spec.filter_room = rnd_below(3) * UINT64_C(100000);
		spec.flags = rnd_below(2) ? HGJ_TABLE_TRACK_MATCHES : rnd_below(2) ?
			HGJ_TABLE_KEYS_ONLY : HGJ_TABLE_KEYS_ONLY | HGJ_TABLE_FIRST_MATCH;
		spec.load = rnd_below(8) == 0 ? 0.5 + rnd_below(8) : 0;
		hgj_mem_test_l2_bytes = caches[rnd_below(COUNT_OF(caches))];
		build_together(&spec, shape, sizes[rnd_below(COUNT_OF(sizes))],
					   1 + rnd_below(MOST_PARTS));
	}
	for (i = 0; i < 15; i++)	/* large ones, with many bins */
	{
		static const Shape shapes[] = {SHAPE_NARROW, SHAPE_DENSE, SHAPE_DENSE_DUP, SHAPE_SPARSE, SHAPE_SAME};
		HgjTableSpec spec = spec_default(1);

		hgj_mem_test_l2_bytes = i < 5 ? 0 : 65536;
		spec.flags = i < 5 ? 0 : i < 10 ? HGJ_TABLE_KEYS_ONLY :
			HGJ_TABLE_KEYS_ONLY | HGJ_TABLE_FIRST_MATCH;
		if (in_share())
			build_together(&spec, shapes[i % 5], 300000, 4);
	}
	hgj_mem_test_l2_bytes = 0;
}

/* A participant is cancelled at every poll, and goes on. */
void
test_share_cancel(void)
{
	static const Shape shapes[] = {
		SHAPE_NARROW, SHAPE_WIDE, SHAPE_DENSE, SHAPE_DENSE_DUP, SHAPE_COUNT
	};
	int			i;

	if (engine->share == NULL)
		return;
	for (i = 0; i < 2 * COUNT_OF(shapes); i++)
	{
		HgjTableSpec spec = spec_default(i == 9 ? 2 : 1);
		uint64_t	polls = 1;
		uint64_t	at;
		Crew		crew;

		spec.segments = (HgjSegments) (i < COUNT_OF(shapes) ? 0 : 2 + i % 2);
		spec.flags = i % 3 ? HGJ_TABLE_TRACK_MATCHES : HGJ_TABLE_KEYS_ONLY;
		hgj_mem_test_l2_bytes = i % 2 ? 4096 : 0;
		crew_make(&crew, &spec, shapes[i % COUNT_OF(shapes)], 90000, 3);
		divide(&crew, 0);
		crew.cancelled = rnd_below(3);
		for (at = 0; at <= polls; at++)
		{
			context("share, cancel %d at %llu", i, (unsigned long long) at);
			crew.cancel_at = at;
			if (at > 0 && !in_share())
				continue;
			run_crew(&crew);
			if (at == 0)
				polls = crew.control->polls > 30 ? 30 : crew.control->polls;
			control_free(&crew);
		}
		CHECK(polls > 5, "only %llu polls", (unsigned long long) polls);
		crew_free(&crew);
	}
	hgj_mem_test_l2_bytes = 0;
}
