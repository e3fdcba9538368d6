/*-------------------------------------------------------------------------
 *
 * test_filter.c
 *	  The filter that probes switch on and off by themselves, and sifting, where
 *	  the caller asks it first.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>

#include "test.h"

#define BATCH		4000
#define BUILD		40000
/* Keys that lie far apart. */
#define FEW			200
#define STEP		997

/* Build rows, a table of them, and batches that miss or match. */
typedef struct Filtered
{
	Rows		build;
	Reference	ref;
	HgjTable   *table;
	Rows		few;			/* one row in ten matches */
	Rows		many;			/* all do */
	Pairs		few_pairs;
	Pairs		many_pairs;
} Filtered;

static Filtered *
filtered_of_rows(const HgjTableSpec *spec, Shape shape, uint32_t n)
{
	Filtered   *f = must_alloc(sizeof(Filtered));

	memset(f, 0, sizeof(*f));
	f->build = rows_make(shape, spec->nwords, n, 77);
	ref_init(&f->ref, spec->nwords);
	ref_add(&f->ref, &f->build);
	f->table = table_of(spec, &f->build);
	f->few = rows_probe(&f->build, BATCH, 10);
	f->many = rows_probe(&f->build, BATCH, 100);
	ref_pairs(&f->ref, &f->few, &f->few_pairs);
	ref_pairs(&f->ref, &f->many, &f->many_pairs);
	return f;
}

static Filtered *
filtered_make(const HgjTableSpec *spec, Shape shape)
{
	return filtered_of_rows(spec, shape, BUILD);
}

static void
filtered_free(Filtered *f)
{
	engine->table_destroy(f->table);
	ref_free(&f->ref);
	pairs_free(&f->few_pairs);
	pairs_free(&f->many_pairs);
	rows_free(&f->build);
	rows_free(&f->few);
	rows_free(&f->many);
	free(f);
}

/* The rows that have a pair at all. */
static uint64_t
distinct_rows(const Pairs *pairs)
{
	uint64_t	n = 0;
	uint64_t	i;

	for (i = 0; i < pairs->n; i++)
		n += i == 0 || pairs->pairs[i].probe != pairs->pairs[i - 1].probe;
	return n;
}

/* Whether these rows of a batch give what all should, in that mode. */
static bool
keys_are_right(HgjProbe *probe, const Rows *rows, const HgjKeys *keys,
			   const Pairs *want, HgjProbeMode mode, uint32_t flags)
{
	uint32_t	p[1000];
	uint32_t	b[1000];
	uint32_t   *counts = must_alloc(rows->n * sizeof(uint32_t));
	HgjError	err = {HGJ_OK, ""};
	HgjStatus	status = engine->probe_begin(probe, keys, mode, flags, &err);
	HgjMatches	m;
	Pairs		got;
	bool		ok;
	uint64_t	i;

	memset(&got, 0, sizeof(got));
	memset(&m, 0, sizeof(m));
	m.probe_rows = p;
	m.build_rows = b;
	m.counts = counts;
	m.capacity = 1000;
	while (status == HGJ_OK && !m.done)
	{
		status = engine->probe_next(probe, &m, &err);
		for (i = 0; status == HGJ_OK && i < m.n; i++)
			pairs_add(&got, p[i], b[i]);
	}
	ok = status == HGJ_OK;
	pairs_sort(&got);
	if (mode == HGJ_MATCH_ALL)
		ok &= got.n == want->n && memcmp(got.pairs, want->pairs,
										 got.n * sizeof(Pair)) == 0;
	else if (mode == HGJ_MATCH_FIRST)
		ok &= got.n == distinct_rows(want) && distinct_rows(&got) == got.n;
	else
	{
		for (i = 0; i < want->n; i++)
			counts[want->pairs[i].probe]--;
		for (i = 0; i < rows->n; i++)
			ok &= counts[i] == 0;
	}
	pairs_free(&got);
	free(counts);
	return ok;
}

/* Whether one batch of a probe gives what it should, in that mode. */
static bool
batch_is_right(HgjProbe *probe, const Rows *rows, const Pairs *want,
			   HgjProbeMode mode)
{
	HgjKeys		keys = rows_keys(rows);

	return keys_are_right(probe, rows, &keys, want, mode, 0);
}

/* The same for a caller who sifts, if told to; *sifted says whether. */
static bool
sifted_is_right(HgjProbe *probe, const Rows *rows, const Pairs *want,
				HgjProbeMode mode, bool *sifted)
{
	uint32_t   *passed = must_alloc(((size_t) rows->n + 1) * sizeof(uint32_t));
	HgjKeys		keys = rows_keys(rows);
	HgjError	err = {HGJ_OK, ""};
	uint32_t	n = 0;
	uint32_t	i;
	bool		ok;

	ok = engine->sift_begin(probe, sifted, &err) == HGJ_OK;
	if (!*sifted)
		ok &= engine->sift(probe, &keys, passed, &n, &err) == HGJ_INVALID;
	else
	{
		ok &= engine->sift(probe, &keys, passed, &n, &err) == HGJ_OK;
		for (i = 0; i < n; i++)
			ok &= passed[i] < rows->n && (i == 0 || passed[i] > passed[i - 1]);
		keys.sel = passed;
		keys.nsel = n;
	}
	ok &= keys_are_right(probe, rows, &keys, want, mode,
						 *sifted ? HGJ_PROBE_SIFTED : 0);
	free(passed);
	return ok;
}

/* That many batches, sifted; returns how many were. */
static int
run_sifted(Filtered *f, HgjProbe *probe, bool few, int n)
{
	bool		sifted;
	int			count = 0;
	int			i;

	for (i = 0; i < n; i++)
	{
		CHECK(sifted_is_right(probe, few ? &f->few : &f->many,
							  few ? &f->few_pairs : &f->many_pairs,
							  (HgjProbeMode) (i % 3), &sifted),
			  "sifted batch %d is wrong", i);
		count += sifted;
	}
	return count;
}

/* That many batches; returns how many rows the filter was asked about. */
static uint64_t
run_batches(Filtered *f, HgjProbe *probe, bool few, int n)
{
	HgjTableInfo before;
	HgjTableInfo after;
	int			i;

	engine->info(f->table, &before);
	for (i = 0; i < n; i++)
		CHECK(batch_is_right(probe, few ? &f->few : &f->many,
							 few ? &f->few_pairs : &f->many_pairs,
							 (HgjProbeMode) (i % 3)), "batch %d is wrong", i);
	engine->info(f->table, &after);
	return after.filter_tested - before.filter_tested;
}

/* On where few match, off where many do, and on again. */
static void
switching(const HgjTableSpec *spec, Shape shape)
{
	Filtered   *f = filtered_make(spec, shape);
	HgjProbe   *probe = NULL;
	HgjError	err = {HGJ_OK, ""};
	HgjTableInfo info;
	HgjMemory	before;
	HgjMemory	after;

	context("filter %s, %s, %u words, %s, %s probe",
			hgj_filter_name(spec->filter), shape_name(shape), spec->nwords,
			hgj_segments_name(spec->segments), hgj_probe_name(spec->probe));
	engine->memory(f->table, &before);
	CHECK_STATUS(engine->probe_create(f->table, &probe, &err), HGJ_OK);
	if (spec->filter == HGJ_FILTER_AUTO)
	{
		CHECK(run_batches(f, probe, false, 15) == 0, "on without need");
		CHECK(run_batches(f, probe, true, 25) > 0, "never switched on");
		CHECK(run_batches(f, probe, true, 1) > 0, "switched off too early");
		(void) run_batches(f, probe, false, 20);
		CHECK(run_batches(f, probe, false, 10) == 0, "never switched off");
		CHECK(run_batches(f, probe, true, 25) > 0, "not switched on again");
	}
	else
		CHECK((run_batches(f, probe, true, 3) > 0) ==
			  (spec->filter == HGJ_FILTER_ON), "not as told");
	engine->info(f->table, &info);
	engine->memory(f->table, &after);
	if (spec->filter != HGJ_FILTER_OFF)
	{
		CHECK(info.filter_bytes > 0 && info.filter_bytes < 4 * BUILD,
			  "%llu bytes", (unsigned long long) info.filter_bytes);
		CHECK(info.filter_rejected > info.filter_tested / 3,
			  "rejected only %llu of %llu",
			  (unsigned long long) info.filter_rejected,
			  (unsigned long long) info.filter_tested);
		CHECK(after.current >= before.current + info.filter_bytes,
			  "the filter's memory does not count");
	}
	CHECK(after.peak == before.peak, "the filter has raised the peak");
	engine->probe_destroy(probe);
	filtered_free(f);
}

/* A table whose build gave little back, under a limit, and without memory. */
static void
refused(void)
{
	HgjTableSpec spec = spec_default(1);
	Filtered   *f;
	HgjProbe   *probe = NULL;
	HgjError	err = {HGJ_OK, ""};
	HgjTableInfo info;

	context("filter refused");
	spec.filter = HGJ_FILTER_ON;
	f = filtered_make(&spec, SHAPE_NARROW);
	CHECK_STATUS(engine->probe_create(f->table, &probe, &err), HGJ_OK);
	hgj_mem_test_fail_at(1);
	CHECK(run_batches(f, probe, true, 3) == 0, "a filter without memory");
	hgj_mem_test_fail_at(0);
	engine->info(f->table, &info);
	CHECK(info.filter_bytes == 0 && (info.notes & HGJ_NOTE_FILTER_MEMORY),
		  "no note: %u", info.notes);
	engine->probe_destroy(probe);
	filtered_free(f);
}

/*
 * Who sifts has a filter for tables of any size, unless there is to be none; and
 * what was tested once is not tested again.
 */
static void
sifting(const HgjTableSpec *spec, Shape shape)
{
	Filtered   *f = filtered_make(spec, shape);
	HgjProbe   *probe = NULL;
	HgjError	err = {HGJ_OK, ""};
	HgjTableInfo info;

	context("sift, filter %s, %s, %u words, %s", hgj_filter_name(spec->filter),
			shape_name(shape), spec->nwords,
			hgj_segments_name(spec->segments));
	CHECK_STATUS(engine->probe_create(f->table, &probe, &err), HGJ_OK);
	if (spec->filter == HGJ_FILTER_AUTO)
	{
		CHECK(run_sifted(f, probe, false, 15) == 0, "sifted without need");
		CHECK(run_sifted(f, probe, true, 25) > 0, "never began");
		CHECK(run_sifted(f, probe, true, 1) == 1, "ended too early");
		(void) run_sifted(f, probe, false, 20);
		CHECK(run_sifted(f, probe, false, 10) == 0, "never ended");
		CHECK(run_sifted(f, probe, true, 25) > 0, "did not begin again");
	}
	else
	{
		bool		on = spec->filter == HGJ_FILTER_ON;

		CHECK(run_sifted(f, probe, true, 3) == (on ? 3 : 0), "not as told");
		engine->info(f->table, &info);
		CHECK(info.filter_tested == (on ? 3 * BATCH : 0), "tested %llu rows",
			  (unsigned long long) info.filter_tested);
	}
	engine->probe_destroy(probe);
	filtered_free(f);
}

/*
 * Where a row that is sifted away saves much, a small table has its filter at
 * once, and a larger one as soon as a few rows have been looked up.
 */
static void
sifting_early(uint32_t build, bool at_once)
{
	HgjTableSpec spec = spec_default(1);
	Filtered   *f;
	HgjProbe   *probe = NULL;
	HgjError	err = {HGJ_OK, ""};

	context("sift early, %u rows", build);
	spec.flags = HGJ_TABLE_SIFT_EARLY;
	f = filtered_of_rows(&spec, SHAPE_NARROW, build);
	CHECK_STATUS(engine->probe_create(f->table, &probe, &err), HGJ_OK);
	CHECK(run_sifted(f, probe, false, 3) == (at_once ? 3 : 0),
		  "all match, and not what was wanted");
	(void) run_sifted(f, probe, true, 10);
	CHECK(run_sifted(f, probe, true, 1) == 1, "never began");
	(void) run_sifted(f, probe, false, 20);
	CHECK(run_sifted(f, probe, false, 10) == 0, "never ended");
	engine->probe_destroy(probe);
	filtered_free(f);
}

/*
 * A few keys far apart: with room a bit per key, which lets nothing else pass, of rows one
 * behind the other and of some, and takes no more than it may; without, a Bloom filter.
 */
static void
sifting_few(uint64_t room)
{
	HgjTableSpec spec = spec_default(1);
	Rows		build = rows_make(SHAPE_NARROW, 1, FEW, 5);
	Rows		probed = rows_make(SHAPE_NARROW, 1, BATCH - 3, 6);
	uint32_t   *sel = must_alloc(probed.n * sizeof(uint32_t));
	uint32_t   *passed = must_alloc(((size_t) probed.n + 1) * sizeof(uint32_t));
	HgjKeys		keys = rows_keys(&probed);
	HgjProbe   *probe = NULL;
	HgjError	err = {HGJ_OK, ""};
	HgjTable   *table;
	HgjTableInfo info;
	HgjMemory	before;
	HgjMemory	after;
	bool		worth = false;

	context("sift %d keys, room %llu", FEW, (unsigned long long) room);
	for (uint32_t i = 0; i < build.n; i++)
		build.words[0][i] = (uint64_t) ((int64_t) i * STEP - 5000);
	for (uint32_t i = 0; i < probed.n; i++)
		probed.words[0][i] = rnd_below(9) == 0 ? build.words[0][rnd_below(FEW)] :
			(uint64_t) ((int64_t) rnd_below(FEW * STEP + 20000) - 15000);
	spec.filter = HGJ_FILTER_ON;
	spec.filter_room = room;
	table = table_of(&spec, &build);
	engine->memory(table, &before);
	CHECK_STATUS(engine->probe_create(table, &probe, &err), HGJ_OK);
	CHECK(engine->sift_begin(probe, &worth, &err) == HGJ_OK && worth, "no filter");
	for (int turn = 0; worth && turn < 8; turn++)
	{
		uint32_t	want = 0;
		uint32_t	has = 0;
		uint32_t	n = 0;
		uint32_t	at = 0;

		keys.nsel = 0;
		keys.sel = turn == 0 ? NULL : sel;
		for (uint32_t i = 0; turn > 0 && i < probed.n; i += 1 + rnd_below((uint32_t) turn))
			sel[keys.nsel++] = i;
		CHECK_STATUS(engine->sift(probe, &keys, passed, &n, &err), HGJ_OK);
		for (uint32_t i = 0; i < (turn == 0 ? probed.n : keys.nsel); i++)
		{
			uint32_t	row = turn == 0 ? i : sel[i];
			uint64_t	number = probed.words[0][row] + 5000;
			bool		is_key = number % STEP == 0 && number / STEP < FEW;
			bool		passes = at < n && passed[at] == row;

			want += is_key;
			has += is_key && passes;
			at += passes;
		}
		CHECK(at == n && has == want && (n == want || room == 0), "%u of %u keys, and %u rows pass", has,
			  want, n);
	}
	engine->info(table, &info);
	engine->memory(table, &after);
	CHECK((info.filter_bytes >= (FEW - 1) * STEP / 8) == (room > 0), "%llu bytes",
		  (unsigned long long) info.filter_bytes);
	CHECK(after.peak <= before.peak + room, "the filter takes more than it may");
	engine->probe_destroy(probe);
	engine->table_destroy(table);
	rows_free(&build);
	rows_free(&probed);
	free(sel);
	free(passed);
}

/* Numbers of so many bytes as they are kept, some of which are keys: key words less base. */
static void
packed_make(HgjPackedKeys *keys, uint64_t origin, uint8_t *numbers, uint8_t *third)
{
	uint64_t	most = keys->width == 4 ? UINT32_MAX : (UINT64_C(1) << 8 * keys->width) - 1;

	for (uint32_t i = 0; i < keys->n; i++)
	{
		uint64_t	number = origin + (uint64_t) rnd_below(FEW) * STEP - keys->base;
		uint32_t	low;

		/* the ends of what there can be, keys, and neither */
		if (i % 16 == 0)
			number = i % 32 == 0 ? 0 : most;
		else if (number > most || i % 3 == 0)
			number = rnd() & most;
		low = (uint32_t) number;
		if (keys->width == 3)
			third[i] = (uint8_t) (low >> 16);
		/* the lowest bytes come first: what is here is for such processors, as the kept columns are */
		memcpy(numbers + (size_t) i * (keys->width == 3 ? 2 : keys->width), &low,
			   keys->width == 3 ? 2 : keys->width);
	}
}

/* Is the word one of the keys from `origin` on? */
static bool
is_far_key(uint64_t origin, uint64_t word)
{
	return (word - origin) % STEP == 0 && (word - origin) / STEP < FEW;
}

/* Do the rows pass that are keys, in their order, and no others? */
static void
packed_is_right(HgjProbe *probe, const HgjPackedKeys *keys, uint64_t origin)
{
	uint32_t   *passed = must_alloc(((size_t) keys->n + 1) * sizeof(uint32_t));
	uint32_t	n = 0;
	uint32_t	at = 0;
	bool		right = true;

	CHECK(engine->sift_packed(probe, keys, passed, &n), "packed keys of %u bytes are not read", keys->width);
	for (uint32_t i = 0; i < keys->n; i++)
	{
		uint32_t	number = 0;
		bool		passes = at < n && passed[at] == i;
		uint32_t	bytes = keys->width == 3 ? 2 : keys->width;

		memcpy(&number, (const uint8_t *) keys->numbers + (size_t) i * bytes, bytes);
		if (keys->width == 3)
			number |= (uint32_t) keys->third[i] << 16;
		right &= passes == is_far_key(origin, keys->base + number);
		at += passes;
	}
	CHECK(right && at == n, "%u packed keys of %u bytes from %lld, origin %lld: %u pass", keys->n, keys->width,
		  (long long) keys->base, (long long) origin, n);
	free(passed);
}

/*
 * Keys that nobody has widened: of all widths, below, above, around and in the filter's range,
 * at the ends of what words can be, and of any number of rows.  A Bloom filter does not read them.
 */
static void
sifting_packed(uint64_t origin, uint64_t room)
{
	static const int64_t ends[] = {-(int64_t) FEW * STEP, -STEP, 0, 1, STEP, (FEW - 1) * STEP, FEW * STEP};
	HgjTableSpec spec = spec_default(1);
	Rows		build = rows_make(SHAPE_NARROW, 1, FEW, 5);
	uint8_t    *numbers = must_alloc(BATCH * sizeof(uint32_t));
	uint8_t    *third = must_alloc(BATCH);
	HgjPackedKeys keys = {numbers, third, 0, 0, 0};
	HgjProbe   *probe = NULL;
	HgjError	err = {HGJ_OK, ""};
	HgjTable   *table;
	uint32_t	n;
	bool		worth = false;

	context("sift packed keys from %lld, room %llu", (long long) origin, (unsigned long long) room);
	for (uint32_t i = 0; i < build.n; i++)
		build.words[0][i] = origin + (uint64_t) i * STEP;
	spec.filter = HGJ_FILTER_ON;
	spec.filter_room = room;
	table = table_of(&spec, &build);
	CHECK_STATUS(engine->probe_create(table, &probe, &err), HGJ_OK);
	CHECK(!engine->sift_packed(probe, &keys, &n, &n), "asked before there is a filter");
	CHECK(engine->sift_begin(probe, &worth, &err) == HGJ_OK && worth, "no filter");
	if (room == 0)
		CHECK(!engine->sift_packed(probe, &keys, &n, &n), "a Bloom filter is asked about numbers");
	for (uint32_t turn = 0; room > 0 && turn < 4 * 6 * sizeof(ends) / sizeof(ends[0]); turn++)
	{
		keys.width = turn % 4 + 1;
		keys.n = turn / 4 % 6 == 0 ? BATCH : rnd_below(70);
		keys.base = origin + (uint64_t) ends[turn / 24];
		/* so that the greatest numbers are the filter's */
		if (turn / 4 % 6 == 1)
			keys.base -= keys.width == 4 ? UINT32_MAX : (UINT64_C(1) << 8 * keys.width) - 1;
		packed_make(&keys, origin, numbers, third);
		packed_is_right(probe, &keys, origin);
	}
	engine->probe_destroy(probe);
	engine->table_destroy(table);
	rows_free(&build);
	free(numbers);
	free(third);
}

void
test_sift(void)
{
	static const Shape shapes[] = {SHAPE_NARROW, SHAPE_WIDE, SHAPE_HIGH,
		SHAPE_DENSE};
	int			i;

	if (engine->sift == NULL)
		return;
	for (i = 0; i < 24; i++)
	{
		HgjTableSpec spec = spec_default(i / 3 % 2 == 0 ? 1 : 3);

		spec.filter = (HgjFilter) (i % 3);
		spec.segments = (HgjSegments) (i / 6 % 4);
		/* neighbours of dense keys are keys, so that too many rows match */
		if (shapes[i / 6] == SHAPE_DENSE && spec.filter == HGJ_FILTER_AUTO)
			spec.filter = HGJ_FILTER_ON;
		sifting(&spec, shapes[i / 6]);
	}
	if (is_cpu)
	{
		sifting_early(1000, true);
		sifting_early(BUILD, false);
		sifting_few(0);
		sifting_few(UINT64_C(1) << 20);
		sifting_packed(0, 0);
		sifting_packed(0, UINT64_C(1) << 20);
		sifting_packed((uint64_t) -5000, UINT64_C(1) << 20);
		sifting_packed((uint64_t) INT64_MIN, UINT64_C(1) << 20);
		sifting_packed((uint64_t) (INT64_MAX - (int64_t) FEW * STEP), UINT64_C(1) << 20);
		sifting_packed(UINT64_C(0xFFFF0000), UINT64_C(1) << 20);
	}
}

void
test_filter(void)
{
	static const Shape shapes[] = {SHAPE_NARROW, SHAPE_WIDE, SHAPE_HIGH};
	int			i;

	if (!is_cpu)
		return;					/* when to have one is the engine's choice */
	hgj_mem_test_l2_bytes = 4096;
	for (i = 0; i < 36; i++)
	{
		HgjTableSpec spec = spec_default(i / 3 % 2 == 0 ? 1 : 3);

		spec.filter = (HgjFilter) (i % 3);
		spec.segments = (HgjSegments) (i / 6 % 4);
		spec.probe = i & 1 ? HGJ_PROBE_BINNED : HGJ_PROBE_AUTO;
		switching(&spec, shapes[i / 12]);
	}
	refused();
	hgj_mem_test_l2_bytes = 0;
}

typedef struct Worker
{
	pthread_t	thread;
	Filtered   *f;
	HgjProbe   *probe;
	bool		right;
} Worker;

static void *
work(void *arg)
{
	Worker	   *w = arg;
	int			i;

	w->right = true;
	for (i = 0; i < 40; i++)
		w->right &= batch_is_right(w->probe, &w->f->few, &w->f->few_pairs,
								   (HgjProbeMode) (i % 3));
	return NULL;
}

/* Several probes of one table at a time, which all want a filter at once. */
void
test_filter_threads(void)
{
	HgjTableSpec spec = spec_default(1);
	HgjError	err = {HGJ_OK, ""};
	HgjTableInfo info;
	Worker		workers[4];
	Filtered   *f;
	int			i;

	context("threads");
	hgj_mem_test_l2_bytes = 4096;
	f = filtered_make(&spec, SHAPE_WIDE);
	for (i = 0; i < 4; i++)
	{
		workers[i].f = f;
		workers[i].probe = NULL;
		CHECK_STATUS(engine->probe_create(f->table, &workers[i].probe, &err),
					 HGJ_OK);
	}
	for (i = 0; i < 4; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
			exit(2);
	for (i = 0; i < 4; i++)
		(void) pthread_join(workers[i].thread, NULL);
	for (i = 0; i < 4; i++)
	{
		CHECK(workers[i].right, "thread %d got wrong rows", i);
		engine->probe_destroy(workers[i].probe);
	}
	engine->info(f->table, &info);
	CHECK(!is_cpu || info.filter_bytes > 0, "no filter");
	filtered_free(f);
	hgj_mem_test_l2_bytes = 0;
}
