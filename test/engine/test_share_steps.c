/*-------------------------------------------------------------------------
 *
 * test_share_steps.c
 *	  The steps of a shared build, taken by tables of one process in turn: what is
 *	  refused, and memory that is.
 *
 *-------------------------------------------------------------------------
 */
#include "test.h"

#define PARTS	3

/* Tables that build one image, and the images. */
typedef struct Team
{
	HgjTableSpec spec;
	Rows		rows;
	uint32_t	total_rows;
	HgjTable   *tables[PARTS];
	HgjSharePart parts[PARTS];
	uint64_t	peak;			/* of all of them */
	void	   *image;
	void	   *old;
	PollState  *poll;			/* a step that it cancels is repeated */
	HgjError	err;
} Team;

static void *
image_of(uint64_t bytes)
{
	void	   *p = NULL;

	if (posix_memalign(&p, 64, bytes) != 0)
		exit(2);
	memset(p, 0x5A, bytes);
	return p;
}

static void
team_free(Team *team)
{
	int			i;

	/* images may be gone before the tables */
	free(team->image);
	free(team->old);
	for (i = 0; i < PARTS; i++)
		engine->table_destroy(team->tables[i]);
	memset(team->tables, 0, sizeof(team->tables));
	team->image = team->old = NULL;
}

/* Create the tables, and append a part of the rows to each. */
static HgjStatus
team_append(Team *team)
{
	HgjStatus	status = HGJ_OK;
	uint32_t	p;

	team->peak = 0;
	for (p = 0; p < PARTS && status == HGJ_OK; p++)
	{
		const uint64_t *words[HGJ_MAX_KEY_WORDS];
		uint32_t	from = team->rows.n * p / PARTS;
		HgjKeys		keys = rows_keys(&team->rows);
		uint32_t	w;

		for (w = 0; w < team->rows.nwords; w++)
			words[w] = team->rows.words[w] + from;
		keys.words = words;
		keys.nrows = team->rows.n * (p + 1) / PARTS - from;
		status = engine->table_create(&team->spec, &team->tables[p], &team->err);
		if (status == HGJ_OK)
			status = engine->append(team->tables[p], &keys,
									team->rows.first_row + from,
									team->rows.row_ids != NULL ?
									team->rows.row_ids + from : NULL, &team->err);
		if (status != HGJ_OK)
			break;
		engine->share->part(team->tables[p], &team->parts[p]);
		team->peak += engine->share->peak(team->tables[p]);
	}
	return status;
}

static HgjShareBuild
build_of(const Team *team, uint32_t part)
{
	HgjShareBuild build;

	build.parts = team->parts;
	build.nparts = PARTS;
	build.part = part;
	build.total_rows = team->total_rows;
	build.image = team->image;
	build.old_image = team->old;
	return build;
}

/* One step of all, the last first. */
static HgjStatus
team_step(Team *team, HgjShareNext *next)
{
	uint32_t	p;

	for (p = PARTS; p-- > 0;)
	{
		HgjShareBuild build = build_of(team, p);
		HgjStatus	status = engine->share->step(team->tables[p], &build, next,
												 &team->err);

		if (status == HGJ_CANCELLED && team->poll != NULL)
		{
			team->poll->cancel_at = 0;
			status = engine->share->step(team->tables[p], &build, next, &team->err);
		}
		if (status != HGJ_OK)
			return status;
	}
	free(team->old);
	team->old = NULL;
	if (next->image_bytes > 0)
	{
		team->old = team->image;
		team->image = image_of(next->image_bytes);
	}
	return HGJ_OK;
}

static HgjStatus
team_build(Team *team)
{
	HgjShareNext next = {false, 0};
	HgjStatus	status = HGJ_OK;
	int			p;

	while (status == HGJ_OK && !next.done)
		status = team_step(team, &next);
	for (p = 0; p < PARTS && status == HGJ_OK; p++)
		status = engine->share->attach(team->tables[p], team->image, &team->err);
	return status;
}

static void
team_compare(Team *team)
{
	Rows		probe = rows_probe(&team->rows, team->rows.n / 4 + 10, 60);
	Reference	ref;
	int			p;

	ref_init(&ref, team->spec.nwords);
	ref_add(&ref, &team->rows);
	for (p = 0; p < PARTS; p++)
		compare_probe(team->tables[p], &ref, &probe, 1000, 0, 0);
	ref_free(&ref);
	rows_free(&probe);
}

static void
team_make(Team *team, Shape shape, uint32_t nwords, uint32_t n)
{
	memset(team, 0, sizeof(*team));
	team->spec = spec_default(nwords);
	team->rows = rows_make(shape, nwords, n, 50);
	team->total_rows = n;
}

/* Rows of one part that have the same key and the same id are two all the same. */
static void
same_ids(void)
{
	uint32_t	last = 6000;
	Team		team;
	uint32_t	i;

	team_make(&team, SHAPE_DENSE, 1, last);
	rows_number(&team.rows, 0, true);
	for (i = last - 1; i > last - 400; i -= 2)
	{
		team.rows.words[0][i] = team.rows.words[0][i - 1];
		team.rows.row_ids[i] = team.rows.row_ids[i - 1];
	}
	/* there are as many keys between them as there are rows: they might be unique */
	team.rows.words[0][0] = 0;
	team.rows.words[0][1] = last;
	CHECK_STATUS(team_append(&team), HGJ_OK);
	CHECK_STATUS(team_build(&team), HGJ_OK);
	team_compare(&team);
	team_free(&team);
	rows_free(&team.rows);
}

/* No memory for the k-th request: an error, and nothing is left. */
static void
no_memory(Shape shape, HgjSegments segments)
{
	Team		team;
	HgjStatus	status = HGJ_OUT_OF_MEMORY;
	uint64_t	live = hgj_mem_test_live();
	uint64_t	k;

	team_make(&team, shape, 1, 4000);
	team.spec.segments = segments;
	team.spec.flags = HGJ_TABLE_TRACK_MATCHES;
	for (k = 1; k < 200 && status != HGJ_OK; k++)
	{
		hgj_mem_test_fail_at(k);
		status = team_append(&team);
		if (status == HGJ_OK)
			status = team_build(&team);
		hgj_mem_test_fail_at(0);
		CHECK(status == HGJ_OK || status == HGJ_OUT_OF_MEMORY, "%s",
			  hgj_status_name(status));
		if (status == HGJ_OK)
			team_compare(&team);
		team_free(&team);
		CHECK(hgj_mem_test_live() == live, "bytes are left");
	}
	CHECK(status == HGJ_OK && k > 6, "%u requests", (unsigned int) k);
	rows_free(&team.rows);
}

/* A limit that `peak` keeps to is kept to; a smaller one refuses, for all. */
static void
limits(Shape shape, HgjSegments segments)
{
	HgjShareNext next;
	Team		team;
	uint32_t	p;

	team_make(&team, shape, 1, 60000);
	team.spec.segments = segments;
	CHECK_STATUS(team_append(&team), HGJ_OK);
	team.spec.memory_limit = team.peak / PARTS + 4096;
	team_free(&team);
	CHECK_STATUS(team_append(&team), HGJ_OK);
	CHECK_STATUS(team_build(&team), HGJ_OK);
	team_compare(&team);
	team_free(&team);

	/* room to append, and none for what a part with many more rows says */
	team.spec.memory_limit = 60000 * 12 / PARTS + 12000;
	CHECK_STATUS(team_append(&team), HGJ_OK);
	team.parts[0].nrows = team.parts[0].nrows + 400000;
	for (p = 1; p < PARTS; p++)
	{
		HgjShareBuild build = build_of(&team, p);

		CHECK_STATUS(engine->share->step(team.tables[p], &build, &next, &team.err),
					 HGJ_LIMIT);
	}
	/* more rows than there can be */
	team.parts[0].nrows = HGJ_MAX_ROWS - 1;
	for (p = 1; p < PARTS; p++)
	{
		HgjShareBuild build = build_of(&team, p);

		CHECK_STATUS(engine->share->step(team.tables[p], &build, &next, &team.err),
					 HGJ_LIMIT);
	}
	team_free(&team);
	rows_free(&team.rows);
}

/* What breaks the contract is refused. */
static void
refusals(void)
{
	HgjShareNext next;
	HgjShareBuild build;
	HgjTable   *late = NULL;
	Team		team;

	team_make(&team, SHAPE_WIDE, 1, 1000);
	CHECK_STATUS(team_append(&team), HGJ_OK);
	build = build_of(&team, 0);
	build.nparts = 0;
	CHECK_STATUS(engine->share->step(team.tables[0], &build, &next, &team.err),
				 HGJ_INVALID);
	build.nparts = HGJ_MOST_PARTS + 1;
	CHECK_STATUS(engine->share->step(team.tables[0], &build, &next, &team.err),
				 HGJ_INVALID);
	build = build_of(&team, PARTS);
	CHECK_STATUS(engine->share->step(team.tables[0], &build, &next, &team.err),
				 HGJ_INVALID);
	build = build_of(&team, 0);
	build.total_rows = 10;
	CHECK_STATUS(engine->share->step(team.tables[0], &build, &next, &team.err),
				 HGJ_INVALID);
	CHECK_STATUS(team_step(&team, &next), HGJ_OK);
	build = build_of(&team, 0);
	build.image = NULL;
	CHECK_STATUS(engine->share->step(team.tables[0], &build, &next, &team.err),
				 HGJ_INVALID);
	CHECK_STATUS(team_step(&team, &next), HGJ_OK);

	/* an image that is not complete, one of another spec, none */
	CHECK_STATUS(engine->table_create(&team.spec, &late, &team.err), HGJ_OK);
	CHECK_STATUS(engine->share->attach(late, team.image, &team.err), HGJ_INVALID);
	while (!next.done)
		CHECK_STATUS(team_step(&team, &next), HGJ_OK);
	CHECK_STATUS(engine->share->attach(late, NULL, &team.err), HGJ_INVALID);
	CHECK_STATUS(engine->share->attach(late, team.image, &team.err), HGJ_OK);
	CHECK_STATUS(engine->share->attach(late, team.image, &team.err), HGJ_INVALID);
	CHECK_STATUS(engine->build(late, 1000, &team.err), HGJ_INVALID);
	engine->table_destroy(late);

	/* how a process sifts its own rows is its own affair, and nobody else's */
	team.spec.flags |= HGJ_TABLE_SIFT_EARLY | HGJ_TABLE_SIFT_AT_ONCE | HGJ_TABLE_TIMING;
	CHECK_STATUS(engine->table_create(&team.spec, &late, &team.err), HGJ_OK);
	CHECK_STATUS(engine->share->attach(late, team.image, &team.err), HGJ_OK);
	engine->table_destroy(late);
	team.spec.flags |= HGJ_TABLE_TRACK_MATCHES;
	CHECK_STATUS(engine->table_create(&team.spec, &late, &team.err), HGJ_OK);
	CHECK_STATUS(engine->share->attach(late, team.image, &team.err), HGJ_INVALID);
	engine->table_destroy(late);
	team.spec.flags &= ~HGJ_TABLE_TRACK_MATCHES;
	team.spec.seed++;
	CHECK_STATUS(engine->table_create(&team.spec, &late, &team.err), HGJ_OK);
	CHECK_STATUS(engine->share->attach(late, team.image, &team.err), HGJ_INVALID);
	engine->table_destroy(late);
	team_free(&team);

	team.spec.flags = HGJ_TABLE_DYNAMIC;
	CHECK_STATUS(team_append(&team), HGJ_OK);
	CHECK_STATUS(team_step(&team, &next), HGJ_UNSUPPORTED);
	team_free(&team);
	rows_free(&team.rows);
}

/* A filter that was asked for is made once, for all. */
static void
one_filter(Shape shape, uint32_t nwords)
{
	HgjTableInfo info;
	Team		team;
	uint64_t	bytes = 0;
	int			p;

	team_make(&team, shape, nwords, 30000);
	team.spec.filter = HGJ_FILTER_ON;
	CHECK_STATUS(team_append(&team), HGJ_OK);
	CHECK_STATUS(team_build(&team), HGJ_OK);
	team_compare(&team);
	for (p = 0; p < PARTS; p++)
	{
		engine->info(team.tables[p], &info);
		CHECK(info.filter_bytes > 0 && info.filter_tested > 0 &&
			  info.filter_rejected > 0, "table %d has no filter", p);
		CHECK(p == 0 || info.filter_bytes == bytes, "another filter");
		bytes = info.filter_bytes;
	}
	team_free(&team);
	rows_free(&team.rows);
}

/*
 * Two processes may find the same slot empty at the same time.  So that it happens
 * for sure, a row id is lost from the slots when all have written theirs: whoever
 * looks for it must find out.
 */
static void
lost_row(void)
{
	const uint32_t id = 0x12345678;
	HgjTableInfo info;
	HgjShareNext next;
	Team		team;
	uint32_t	lost = 0;
	uint64_t	bytes = 0;
	uint64_t	i;
	int			step;

	team_make(&team, SHAPE_DENSE, 1, 9000);
	team.total_rows = id + 1;
	team.rows.first_row = id + 1 - team.rows.n;
	for (i = 0; i < team.rows.n; i++)
		team.rows.words[0][i] = 9000 - i;
	CHECK_STATUS(team_append(&team), HGJ_OK);
	for (step = 0; step < 3; step++)
	{
		CHECK_STATUS(team_step(&team, &next), HGJ_OK);
		bytes = step == 0 ? next.image_bytes : bytes;
	}
	for (i = 0; i < bytes / sizeof(uint32_t); i++)
	{
		uint32_t   *word = (uint32_t *) team.image + i;

		/* the last row, of the smallest key: its neighbour is that of the next */
		if (word[0] != id || word[1] != id - 1)
			continue;
		word[0] = id - 1;
		lost++;
	}
	CHECK(lost == 1, "%u rows are lost", lost);
	CHECK_STATUS(team_build(&team), HGJ_OK);
	engine->info(team.tables[0], &info);
	CHECK(info.segments == HGJ_SEGMENTS_CSR, "nobody has found out");
	team_compare(&team);
	team_free(&team);
	rows_free(&team.rows);
}

/*
 * Whoever is cancelled in the middle of a bin goes on with that bin: at every poll
 * of the last step but one, of so many.
 */
static void
long_bin(Shape shape, int steps)
{
	PollState	poll = {0, 0};
	Team		team;
	uint64_t	at = 0;
	uint64_t	first = 0;
	uint64_t	last = 0;
	uint32_t	i;

	team_make(&team, shape, 1, 900000);
	for (i = 0; i < team.rows.n; i++)
		if (i % 10 != 0)
			team.rows.words[0][i] = team.rows.words[0][0];
	team.spec.poll = poll_count;
	team.spec.poll_arg = &poll;
	team.poll = &poll;
	for (at = 0; at <= last; at = at == 0 ? first + 1 : at + 1)
	{
		HgjShareNext next = {false, 0};
		HgjTableInfo info;
		Rows		probe = rows_probe(&team.rows, 1, 100);
		HgjKeys		keys = rows_keys(&probe);
		HgjProbe   *prober;
		HgjMatches	m;
		uint32_t	count = 0;
		int			step;

		probe.words[0][0] = team.rows.words[0][0];
		CHECK_STATUS(team_append(&team), HGJ_OK);
		poll.calls = 0;
		poll.cancel_at = at;
		for (step = 0; !next.done; step++)
		{
			if (at == 0 && step == steps - 2)
				first = poll.calls;
			if (!CHECK(team_step(&team, &next) == HGJ_OK, "%s", team.err.message))
				break;
		}
		last = at == 0 ? poll.calls : last;
		for (i = 0; i < PARTS; i++)
			CHECK_STATUS(engine->share->attach(team.tables[i], team.image,
											   &team.err), HGJ_OK);
		engine->info(team.tables[0], &info);
		CHECK(info.longest >= 810000, "the longest list is %llu",
			  (unsigned long long) info.longest);
		CHECK_STATUS(engine->probe_create(team.tables[1], &prober, &team.err), HGJ_OK);
		memset(&m, 0, sizeof(m));
		m.counts = &count;
		CHECK_STATUS(engine->probe_begin(prober, &keys, HGJ_MATCH_COUNT, 0,
										 &team.err), HGJ_OK);
		CHECK_STATUS(engine->probe_next(prober, &m, &team.err), HGJ_OK);
		CHECK(count >= 810000, "%u matches", count);
		engine->probe_destroy(prober);
		team_free(&team);
		rows_free(&probe);
	}
	CHECK(last > first + 5, "%llu polls", (unsigned long long) (last - first));
	rows_free(&team.rows);
}

void
test_share_steps(void)
{
	static const Shape shapes[] = {
		SHAPE_NARROW, SHAPE_WIDE, SHAPE_DENSE, SHAPE_DENSE_DUP
	};
	int			i;

	if (engine->share == NULL)
		return;
	context("share, refusals");
	refusals();
	context("share, the same ids");
	same_ids();
	context("share, a lost row");
	lost_row();
	context("share, long bin, hashed");
	hgj_mem_test_l2_bytes = 65536;
	long_bin(SHAPE_NARROW, 5);
	context("share, long bin, direct");
	long_bin(SHAPE_DENSE, 9);
	for (i = 0; i < COUNT_OF(shapes); i++)
	{
		context("share, %s, no memory", shape_name(shapes[i]));
		hgj_mem_test_l2_bytes = 16384;
		no_memory(shapes[i], (HgjSegments) i);
		context("share, %s, limits", shape_name(shapes[i]));
		hgj_mem_test_l2_bytes = i % 2 ? 16384 : 0;
		limits(shapes[i], HGJ_SEGMENTS_AUTO);
		context("share, %s, filter", shape_name(shapes[i]));
		one_filter(shapes[i], i == 1 ? 2 : 1);
	}
	hgj_mem_test_l2_bytes = 0;
}
