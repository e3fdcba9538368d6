/*-------------------------------------------------------------------------
 *
 * test_join.c
 *	  Joins: every build, probe and segments, over many shapes of keys.
 *
 *-------------------------------------------------------------------------
 */
#include "test.h"

static const uint32_t capacities[] = {1, 7, 4096};

/* A filter that was asked for is there, or a note says why not. */
static void
check_filter(const HgjTableSpec *spec, HgjTable *table, uint32_t probed)
{
	HgjTableInfo info;

	engine->info(table, &info);
	CHECK(info.filter_rejected <= info.filter_tested, "rejected %llu of %llu",
		  (unsigned long long) info.filter_rejected,
		  (unsigned long long) info.filter_tested);
	if (spec->filter == HGJ_FILTER_OFF)
		CHECK(info.filter_bytes == 0 && info.filter_tested == 0 &&
			  (info.notes & (HGJ_NOTE_FILTER_MEMORY |
							 HGJ_NOTE_FILTER_DYNAMIC)) == 0, "a filter");
	else if (spec->filter == HGJ_FILTER_ON && is_cpu && info.rows > 0 &&
			 probed > 0 && info.segments != HGJ_SEGMENTS_BITS)
		CHECK((spec->flags & HGJ_TABLE_DYNAMIC) ?
			  info.filter_bytes == 0 &&
			  (info.notes & HGJ_NOTE_FILTER_DYNAMIC) != 0 :
			  info.filter_bytes > 0 || (info.notes & HGJ_NOTE_FILTER_MEMORY),
			  "no filter, notes %u", info.notes);
}

/* Tables that had a bit per key, and entries of two bytes. */
static int	bits;
static int	quotients;

/* Now and then only the keys are wanted, or only first matches. */
static uint32_t
some_unwanted(void)
{
	static const uint32_t some[] = {0, HGJ_TABLE_KEYS_ONLY,
		HGJ_TABLE_KEYS_ONLY | HGJ_TABLE_FIRST_MATCH};

	return some[rnd_below(COUNT_OF(some))];
}

static void
join(const HgjTableSpec *spec, Shape shape, uint32_t nbuild, uint32_t nprobe,
	 uint32_t hits, uint32_t capacity, bool selections, bool ids)
{
	Rows		build;
	Rows		probe;
	Reference	ref;
	HgjTable   *table;

	if (!in_share())
		return;
	build = rows_make(shape, spec->nwords, nbuild, rnd());
	probe = rows_probe(&build, nprobe, hits);
	context("%s %s %s, filter %s, %u words, %s, %u build, %u probe, capacity %u, flags %u%s%s",
			hgj_build_name(spec->build), hgj_probe_name(spec->probe),
			hgj_segments_name(spec->segments), hgj_filter_name(spec->filter),
			spec->nwords, shape_name(shape), nbuild, nprobe, capacity, spec->flags,
			selections ? ", selections" : "", ids ? ", ids" : "");
	rows_number(&build, ids ? 17 : 0, ids);
	if (selections)
	{
		rows_select(&build, 70);
		rows_select(&probe, 60);
	}
	ref_init_spec(&ref, spec);
	ref_add(&ref, &build);
	table = table_of(spec, &build);
	if (table != NULL)
	{
		HgjTableInfo info;

		engine->info(table, &info);
		bits += info.segments == HGJ_SEGMENTS_BITS;
		quotients += info.segments == HGJ_SEGMENTS_QUOTIENTS;
		CHECK(info.rows == ref.n, "info.rows is %llu",
			  (unsigned long long) info.rows);
		CHECK(info.build != HGJ_BUILD_AUTO && info.probe != HGJ_PROBE_AUTO &&
			  info.segments != HGJ_SEGMENTS_AUTO, "a choice is left open");
		CHECK(engine->probe_batch_rows(table) > 0, "no batch size");
		compare_probe(table, &ref, &probe, capacity,
					  spec->flags & HGJ_TABLE_TRACK_MATCHES ?
					  HGJ_PROBE_MARK : 0, build.first_row + build.n);
		check_filter(spec, table, probe.sel != NULL ? probe.nsel : probe.n);
		engine->table_destroy(table);
	}
	ref_free(&ref);
	rows_free(&build);
	rows_free(&probe);
}

/* Every combination once, on small tables with a small pretended cache. */
void
test_join_matrix(void)
{
	static const uint32_t words[] = {1, 1, 1, 2, 3, 5, 32};
	static const Shape shapes[] = {
		SHAPE_NARROW, SHAPE_WIDE, SHAPE_DENSE, SHAPE_WIDE, SHAPE_NARROW,
		SHAPE_DENSE_DUP, SHAPE_DENSE_DUP
	};
	uint32_t	turn = 0;
	int			b,
				p,
				s,
				k;

	hgj_mem_test_l2_bytes = 8192;
	for (b = HGJ_BUILD_AUTO; b <= HGJ_BUILD_DIRECT; b++)
		for (p = HGJ_PROBE_AUTO; p <= HGJ_PROBE_BINNED; p++)
			for (s = HGJ_SEGMENTS_AUTO; s <= HGJ_SEGMENTS_SLICED; s++)
				for (k = 0; k < COUNT_OF(words); k++)
				{
					HgjTableSpec spec = spec_default(words[k]);

					spec.build = (HgjBuild) b;
					spec.probe = (HgjProbeAlgo) p;
					spec.segments = (HgjSegments) s;
					spec.filter = (HgjFilter) (turn % 5 % 3);
					spec.flags = turn & 1 ? HGJ_TABLE_TRACK_MATCHES : 0;
					if ((turn & 3) == 3 &&
						engine->capabilities & HGJ_CAP_DYNAMIC)
						spec.flags |= HGJ_TABLE_DYNAMIC;
					join(&spec, shapes[k], 900, 700, 50,
						 capacities[turn % 3], (turn & 4) != 0,
						 (turn & 8) != 0);
					turn++;
				}
	hgj_mem_test_l2_bytes = 0;
}

/* Combinations at random, with empty and tiny sides among them. */
void
test_join_random(void)
{
	static const uint32_t words[] = {1, 1, 1, 1, 2, 3, 5, 32, 64};
	static const uint32_t sizes[] = {0, 1, 2, 33, 500, 3000};
	static const uint64_t caches[] = {2048, 16384, 65536, 0};
	static const double loads[] = {0, 0, 0.25, 1, 3, 40};
	int			i;

	for (i = 0; i < 1500; i++)
	{
		HgjTableSpec spec = spec_default(words[rnd_below(COUNT_OF(words))]);
		Shape		shape = (Shape) rnd_below(SHAPE_COUNT);
		uint32_t	nbuild = sizes[rnd_below(COUNT_OF(sizes))];
		uint32_t	nprobe = sizes[rnd_below(COUNT_OF(sizes))];

		if (shape == SHAPE_SAME || shape == SHAPE_EXTREME)
			nprobe = nprobe > 33 ? 33 : nprobe;
		if (shape == SHAPE_SKEW)
			nprobe = nprobe > 500 ? 500 : nprobe;
		spec.build = (HgjBuild) rnd_below(5);
		spec.probe = (HgjProbeAlgo) rnd_below(3);
		spec.segments = (HgjSegments) rnd_below(4);
		spec.filter = (HgjFilter) rnd_below(3);
		spec.load = loads[rnd_below(COUNT_OF(loads))];
		spec.expected_rows = rnd_below(2) ? nbuild : 0;
		spec.flags = rnd_below(2) ? HGJ_TABLE_TRACK_MATCHES : some_unwanted();
		if (spec.flags & HGJ_TABLE_KEYS_ONLY && rnd_below(4) > 0)
		{
			spec.build = HGJ_BUILD_AUTO;
			spec.segments = HGJ_SEGMENTS_AUTO;
			spec.nwords = 1;
			spec.load = 0;
			shape = rnd_below(2) ? SHAPE_SPARSE : shape;
		}
		if (rnd_below(4) == 0 && engine->capabilities & HGJ_CAP_DYNAMIC)
		{
			spec.flags |= HGJ_TABLE_DYNAMIC;
			spec.slack = rnd_below(4);
		}
		hgj_mem_test_l2_bytes = caches[rnd_below(COUNT_OF(caches))];
		join(&spec, shape, nbuild, nprobe, rnd_below(101),
			 capacities[rnd_below(COUNT_OF(capacities))], rnd_below(3) == 0,
			 rnd_below(3) == 0);
	}
	if (is_cpu && !is_part())
		CHECK(bits > 20 && quotients > 4, "%d tables have a bit per key, %d entries of 2 bytes",
			  bits, quotients);
	hgj_mem_test_l2_bytes = 0;
}

/* Tables beyond the real cache: many bins, and one that is too large. */
void
test_join_large(void)
{
	static const Shape shapes[] = {
		SHAPE_NARROW, SHAPE_WIDE, SHAPE_DENSE, SHAPE_DENSE_DUP, SHAPE_SKEW,
		SHAPE_SAME
	};
	int			i;

	for (i = 0; i < 14; i++)
	{
		HgjTableSpec spec = spec_default(i < 10 ? 1 : 2);
		Shape		shape = shapes[i % COUNT_OF(shapes)];

		spec.build = i % 3 == 0 ? HGJ_BUILD_V2 : HGJ_BUILD_AUTO;
		spec.probe = i & 1 ? HGJ_PROBE_BINNED : HGJ_PROBE_AUTO;
		spec.segments = (HgjSegments) (i / 3 % 4);
		spec.filter = (HgjFilter) (i % 3);
		spec.flags = i & 2 ? HGJ_TABLE_TRACK_MATCHES : some_unwanted();
		hgj_mem_test_l2_bytes = i & 4 ? 65536 : 0;
		join(&spec, shape, 200000, shape == SHAPE_SAME ? 3 :
			 shape == SHAPE_SKEW ? 200 : 100000, 60, 4096, i == 5, i == 6);
	}
	hgj_mem_test_l2_bytes = 0;
}

/*
 * HgjMatches.skip: once a row is skipped its pairs may stop, those of the
 * others may not, and there is never a pair that is wrong or twice there.
 */
static void
skipping(const HgjTableSpec *spec, Shape shape, uint32_t nbuild,
		 uint32_t capacity)
{
	Rows		build = rows_make(shape, spec->nwords, nbuild, 9);
	Rows		probe_rows = rows_probe(&build, 60, 80);
	HgjKeys		keys = rows_keys(&probe_rows);
	uint8_t    *skip = must_alloc(probe_rows.n);
	uint32_t   *p = must_alloc(capacity * sizeof(uint32_t));
	uint32_t   *b = must_alloc(capacity * sizeof(uint32_t));
	HgjTable   *table = table_of(spec, &build);
	HgjProbe   *probe = NULL;
	HgjError	err = {HGJ_OK, ""};
	HgjStatus	status;
	HgjMatches	m;
	Reference	ref;
	Pairs		want;
	Pairs		got;
	uint64_t	at = 0;
	bool		right = true;
	uint64_t	i;

	context("skip, %s, %u words, flags %u, capacity %u", shape_name(shape),
			spec->nwords, spec->flags, capacity);
	memset(skip, 0, probe_rows.n);
	memset(&got, 0, sizeof(got));
	memset(&m, 0, sizeof(m));
	m.probe_rows = p;
	m.build_rows = b;
	m.capacity = capacity;
	m.skip = skip;
	ref_init(&ref, spec->nwords);
	ref_add(&ref, &build);
	ref_pairs(&ref, &probe_rows, &want);
	status = engine->probe_create(table, &probe, &err);
	if (status == HGJ_OK)
		status = engine->probe_begin(probe, &keys, HGJ_MATCH_ALL, 0, &err);
	while (status == HGJ_OK && !m.done)
	{
		status = engine->probe_next(probe, &m, &err);
		for (i = 0; status == HGJ_OK && i < m.n; i++)
		{
			pairs_add(&got, p[i], b[i]);
			skip[p[i]] = p[i] % 4 != 0;
		}
	}
	CHECK(status == HGJ_OK, "%s", hgj_status_name(status));
	pairs_sort(&got);
	for (i = 0; i < want.n; i++)
	{
		bool		there = at < got.n &&
			memcmp(&got.pairs[at], &want.pairs[i], sizeof(Pair)) == 0;

		right &= there || skip[want.pairs[i].probe];
		at += there;
	}
	CHECK(right && at == got.n, "a pair is missing, wrong, or twice there");
	if (is_cpu && shape == SHAPE_SAME && capacity <= 7)	/* far below a list */
		CHECK(got.n < want.n / 2, "%llu pairs of %llu in spite of skip",
			  (unsigned long long) got.n, (unsigned long long) want.n);
	engine->probe_destroy(probe);
	engine->table_destroy(table);
	ref_free(&ref);
	pairs_free(&want);
	pairs_free(&got);
	rows_free(&build);
	rows_free(&probe_rows);
	free(skip);
	free(p);
	free(b);
}

void
test_skip(void)
{
	static const uint32_t some[] = {1, 7, 300};
	static const Shape shapes[] = {SHAPE_SAME, SHAPE_EXTREME, SHAPE_SKEW};
	int			i;

	for (i = 0; i < 36; i++)
	{
		HgjTableSpec spec = spec_default(i % 2 + 1);

		spec.segments = (HgjSegments) (i % 4);
		spec.flags = i / 18 && engine->capabilities & HGJ_CAP_DYNAMIC ?
			HGJ_TABLE_DYNAMIC : 0;
		if (in_share())
			skipping(&spec, shapes[i / 3 % 3], 2000, some[i % 3]);
	}
}
