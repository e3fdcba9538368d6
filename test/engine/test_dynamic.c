/*-------------------------------------------------------------------------
 *
 * test_dynamic.c
 *	  Dynamic tables: random inserts, removals and rebuilds, compared with a
 *	  reference after every few.
 *
 *-------------------------------------------------------------------------
 */
#include "test.h"

typedef struct Dynamic
{
	HgjTable   *table;
	Reference	ref;
	uint32_t	next_id;		/* never used before */
	uint32_t	flags;
} Dynamic;

static void
insert(Dynamic *d, Shape shape, uint32_t n, uint64_t salt, uint32_t nwords)
{
	Rows		rows = rows_make(shape, nwords, n, salt);
	HgjKeys		keys;
	HgjError	err = {HGJ_OK, ""};

	rows_number(&rows, d->next_id, rnd_below(2));
	if (n > 0 && rnd_below(3) == 0)
		rows_select(&rows, 80);
	keys = rows_keys(&rows);
	CHECK_STATUS(engine->insert(d->table, &keys, rows.first_row, rows.row_ids,
								&err), HGJ_OK);
	ref_add(&d->ref, &rows);
	d->next_id += n;
	rows_free(&rows);
}

/* Remove entries that are there, or keys, or what was never there. */
static void
remove_some(Dynamic *d, uint32_t n)
{
	bool		by_id = rnd_below(3) > 0;
	uint64_t	removed = 0;
	uint64_t	expected;
	Rows		rows;
	HgjKeys		keys;
	HgjError	err = {HGJ_OK, ""};
	uint32_t	i;
	uint32_t	w;

	if (d->ref.n == 0)
		return;
	n = by_id ? n : n / 20 + 1;
	rows = rows_make(SHAPE_WIDE, d->ref.nwords, n, 0);
	rows_number(&rows, 0, true);
	for (i = 0; i < n; i++)
	{
		uint64_t   *e = d->ref.entries +
			(rnd() % d->ref.n) * (d->ref.nwords + 1);

		for (w = 0; w < d->ref.nwords; w++)
			rows.words[w][i] = e[w];
		rows.row_ids[i] = (uint32_t) e[d->ref.nwords];
		if (rnd_below(10) == 0)
			rows.row_ids[i]++;
		if (rnd_below(10) == 0)
			rows.words[0][i] = rnd();
	}
	keys = rows_keys(&rows);
	expected = ref_remove(&d->ref, &rows, by_id);
	CHECK_STATUS(engine->remove(d->table, &keys, by_id ? rows.row_ids : NULL,
								&removed, &err), HGJ_OK);
	CHECK(removed == expected, "removed %llu, expected %llu",
		  (unsigned long long) removed, (unsigned long long) expected);
	rows_free(&rows);
}

static void
look(Dynamic *d, Shape shape, uint64_t salt)
{
	HgjTableInfo info;
	Rows		some = rows_make(shape, d->ref.nwords, 200, salt);
	Rows		probe;
	uint32_t	i;
	uint32_t	w;

	/* most probe keys are live ones */
	for (i = 0; i < 200 && d->ref.n > 0; i++)
		for (w = 0; w < d->ref.nwords && i % 4 != 0; w++)
			some.words[w][i] = d->ref.entries[(rnd() % d->ref.n) *
											  (d->ref.nwords + 1) + w];
	probe = rows_probe(&some, shape == SHAPE_SAME || shape == SHAPE_EXTREME ||
					   shape == SHAPE_SKEW ? 12 : 150, 80);
	compare_probe(d->table, &d->ref, &probe, rnd_below(2) ? 4096 : 5,
				  d->flags & HGJ_TABLE_TRACK_MATCHES ? HGJ_PROBE_MARK : 0,
				  d->next_id);
	engine->info(d->table, &info);
	CHECK(info.rows == d->ref.n, "info.rows is %llu, expected %llu",
		  (unsigned long long) info.rows, (unsigned long long) d->ref.n);
	rows_free(&some);
	rows_free(&probe);
}

static void
sequence(HgjTableSpec *spec, Shape shape, uint32_t nbuild, int steps)
{
	uint64_t	salt = rnd();
	Rows		build = rows_make(shape, spec->nwords, nbuild, salt);
	HgjTableInfo info;
	HgjError	err = {HGJ_OK, ""};
	Dynamic		d;
	int			i;

	context("dynamic: %s %s, %u words, %s, %u rows, slack %u",
			hgj_build_name(spec->build), hgj_segments_name(spec->segments),
			spec->nwords, shape_name(shape), nbuild, spec->slack);
	memset(&d, 0, sizeof(d));
	d.flags = spec->flags;
	d.table = table_of(spec, &build);
	ref_init(&d.ref, spec->nwords);
	ref_add(&d.ref, &build);
	d.next_id = nbuild;
	for (i = 0; d.table != NULL && i < steps; i++)
	{
		switch (rnd_below(6))
		{
			case 0:
			case 1:
				insert(&d, shape, rnd_below(nbuild / 2 + 40), salt,
					   spec->nwords);
				break;
			case 2:
				/* keys of another shape, outside of the present range */
				insert(&d, (Shape) rnd_below(SHAPE_COUNT), rnd_below(30),
					   rnd(), spec->nwords);
				break;
			case 3:
			case 4:
				remove_some(&d, rnd_below(nbuild / 2 + 20) + 1);
				break;
			default:
				CHECK_STATUS(engine->rebuild(d.table, &err), HGJ_OK);
		}
		look(&d, shape, salt);
	}
	if (d.table != NULL)
	{
		engine->info(d.table, &info);
		CHECK(info.memory.current == hgj_mem_test_live() || !is_cpu,
			  "memory is %llu, not %llu",
			  (unsigned long long) info.memory.current,
			  (unsigned long long) hgj_mem_test_live());
	}
	engine->table_destroy(d.table);
	ref_free(&d.ref);
	rows_free(&build);
}

/* One key, inserted again and again: this must not take quadratic time. */
static void
hot_key(HgjSegments segments)
{
	HgjTableSpec spec = spec_default(1);
	Rows		rows = rows_make(SHAPE_SAME, 1, 300, 42);
	Dynamic		d;
	int			i;

	context("hot key, %s", hgj_segments_name(segments));
	spec.flags = HGJ_TABLE_DYNAMIC;
	spec.segments = segments;
	memset(&d, 0, sizeof(d));
	d.table = table_of(&spec, &rows);
	ref_init(&d.ref, 1);
	ref_add(&d.ref, &rows);
	d.next_id = 300;
	for (i = 0; d.table != NULL && i < 400; i++)
	{
		HgjTableInfo info;

		insert(&d, SHAPE_SAME, 20 + rnd_below(60), 42, 1);
		engine->info(d.table, &info);
		CHECK(info.rebuilds < 100, "%u rebuilds after %d inserts",
			  info.rebuilds, i);
	}
	if (d.table != NULL)
	{
		Rows		probe = rows_probe(&rows, 4, 75);

		compare_probe(d.table, &d.ref, &probe, 4096, 0, d.next_id);
		rows_free(&probe);
	}
	engine->table_destroy(d.table);
	ref_free(&d.ref);
	rows_free(&rows);
}

void
test_dynamic(void)
{
	static const uint32_t words[] = {1, 1, 1, 2, 5};
	int			b,
				s,
				k;
	int			i;

	if (!(engine->capabilities & HGJ_CAP_DYNAMIC))
		return;
	for (b = HGJ_BUILD_AUTO; b <= HGJ_BUILD_DIRECT; b++)
		for (s = HGJ_SEGMENTS_AUTO; s <= HGJ_SEGMENTS_SLICED; s++)
			for (k = 0; k < COUNT_OF(words); k++)
			{
				HgjTableSpec spec = spec_default(words[k]);

				spec.build = (HgjBuild) b;
				spec.segments = (HgjSegments) s;
				spec.probe = (HgjProbeAlgo) (k % 3);
				spec.flags = HGJ_TABLE_DYNAMIC;
				if (k & 1)
					spec.flags |= HGJ_TABLE_TRACK_MATCHES;
				spec.slack = (uint32_t) (k % 3);
				hgj_mem_test_l2_bytes = 8192;
				if (in_share())
					sequence(&spec, k == 2 ? SHAPE_DENSE_DUP : SHAPE_NARROW,
							 400, 12);
			}
	for (i = 0; i < 60; i++)
	{
		HgjTableSpec spec = spec_default(words[rnd_below(COUNT_OF(words))]);

		spec.build = (HgjBuild) rnd_below(5);
		spec.segments = (HgjSegments) rnd_below(4);
		spec.probe = (HgjProbeAlgo) rnd_below(3);
		spec.flags = HGJ_TABLE_DYNAMIC;
		spec.slack = rnd_below(4);
		if (in_share())
			sequence(&spec, (Shape) rnd_below(SHAPE_COUNT),
					 rnd_below(3) == 0 ? 0 : rnd_below(800), 10);
	}
	hgj_mem_test_l2_bytes = 0;
	for (s = HGJ_SEGMENTS_AUTO; s <= HGJ_SEGMENTS_SLICED; s++)
		if (in_share())
			hot_key((HgjSegments) s);
}
