/*-------------------------------------------------------------------------
 *
 * test_pipeline_rows.c
 *	  Pipelines that return rows (spec.rows) against a plain reference.
 *
 * 1. The instructions of pipeline_case.c, joins of all kinds, any number of pushes,
 *	  empty ones among them, and of kept rows: what comes out is sorted, and compared as a
 *	  multiset.
 * 2. poll cancels again and again; specs that are not sound.
 *
 *-------------------------------------------------------------------------
 */
#include "test_pipeline.h"

#define MAX_TUPLES	(1 << 22)

static uint64_t *wanted;
static uint64_t nwanted;
static uint64_t *returned;
static uint64_t nreturned;
static uint32_t same_key[2][NBUILD];	/* the first row of the same key */

static uint64_t
tuple(uint32_t row, uint32_t r0, uint32_t r1)
{
	return (uint64_t) row << 32 | ((r0 + 1) & 0xFFFF) << 16 | ((r1 + 1) & 0xFFFF);
}

/* Step 1: where only one of a key's rows is returned, which one is free. */
static void
find_same_keys(const Case *c)
{
	uint32_t	i;
	uint32_t	k;
	int			j;

	for (j = 0; j < 2; j++)
		for (i = 0; i < NBUILD; i++)
		{
			const Build *b = &pipe_builds[j];

			for (k = 0; c->single[j] && k < i; k++)
				if (b->words[0][k] == b->words[0][i] &&
					(j == 1 || c->nwords == 1 || b->words[1][k] == b->words[1][i]))
					break;
			same_key[j][i] = c->single[j] ? k : i;
		}
}

static uint32_t
canonical(int j, uint32_t row)
{
	return row < NBUILD ? same_key[j][row] : row;
}

static void
want_row(const Case *c, uint32_t row, const uint32_t *rows)
{
	(void) c;
	if (nwanted == MAX_TUPLES)
		exit(2);
	wanted[nwanted++] = tuple(row, canonical(0, rows[0]), canonical(1, rows[1]));
}

static int
compare_tuples(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

/* All rows of the last push, whose first row is `first`. */
static HgjStatus
fetch_all(HgjPipeline *p, uint32_t first, HgjError *err)
{
	HgjPipeRows rows = {.last = false};

	while (!rows.last)
	{
		HgjStatus	status = pipe_fetch(p, &rows, err);
		uint32_t	i;

		if (status != HGJ_OK)
			return status;
		for (i = 0; i < rows.n && nreturned < MAX_TUPLES; i++)
			returned[nreturned++] = tuple(first + rows.input[i],
										  canonical(0, rows.row[0][i]),
										  canonical(1, rows.row[1][i]));
	}
	return HGJ_OK;
}

/* Of the pushes so many percent are of kept rows, unless the engine wants them staged. */
static HgjStatus
push_and_fetch(HgjPipeline *p, uint32_t most, uint32_t percent, uint64_t *kept, HgjError *err)
{
	uint32_t	done = 0;

	*kept = 0;
	while (done < NROWS)
	{
		uint32_t	n = rnd_below(8) == 0 ? 0 : 1 + rnd_below(most);
		HgjStatus	status = n > 0 && rnd_below(100) < percent ?
			pipe_push_kept(p, done, &n, err) : HGJ_UNSUPPORTED;

		*kept += status == HGJ_OK ? n : 0;
		if (status == HGJ_UNSUPPORTED)
			status = pipe_push(p, done, &n, err);
		if (status == HGJ_OK)
			status = fetch_all(p, done, err);
		if (status != HGJ_OK)
			return status;
		done += n;
	}
	return HGJ_OK;
}

static HgjPipelineSpec
rows_spec(const Case *c)
{
	HgjPipelineSpec spec = pipe_spec(c);

	spec.rows = true;
	return spec;
}

static void
compare_info(const Case *c, const HgjPipeline *p, const Counted *counted, uint64_t kept)
{
	HgjPipelineInfo info;

	engine->pipeline->info(p, &info);
	CHECK(info.kept_rows == kept, "%llu kept rows, not %llu", (unsigned long long) info.kept_rows,
		  (unsigned long long) kept);
	CHECK(info.rows == NROWS && info.sent > 0 && info.memory > 0, "%llu rows",
		  (unsigned long long) info.rows);
	CHECK(info.joined[0] == counted->joined[0] && info.joined[1] == counted->joined[1],
		  "%llu and %llu joined, not %llu and %llu",
		  (unsigned long long) info.joined[0], (unsigned long long) info.joined[1],
		  (unsigned long long) counted->joined[0],
		  (unsigned long long) counted->joined[1]);
	CHECK(info.dropped == counted->dropped, "%llu dropped, not %llu",
		  (unsigned long long) info.dropped, (unsigned long long) counted->dropped);
	CHECK(info.filtered[0] == counted->filtered && info.filtered[1] == 0,
		  "%llu filtered, not %llu", (unsigned long long) info.filtered[0],
		  (unsigned long long) counted->filtered);
	/* before an anti join has found one, any number may be tried */
	CHECK((info.removed[0] == counted->removed || !c->pass[0]) && info.removed[1] == 0,
		  "%llu removed, not %llu", (unsigned long long) info.removed[0],
		  (unsigned long long) counted->removed);
}

static void
run_case(const Case *c, uint32_t most, uint32_t every)
{
	HgjPipelineCaller caller;
	PipeCancel	cancel = {0};
	HgjPipelineSpec spec;
	HgjPipeline *p;
	HgjError	err = {HGJ_OK, ""};
	Counted		counted;
	uint64_t	kept;

	context("rows: words %u, joins %d%d%d %d%d%d, residual %d, behind %d, drop %d, unique %d, no nulls %d, "
			"top %d, up to %u, cancel %u", c->nwords, c->pass[0], c->fill[0], c->single[0], c->pass[1],
			c->fill[1], c->single[1], c->residual, c->behind, c->drop, c->unique, c->no_nulls, c->top,
			most, every);
	pipe_make(c);
	pipe_keep();
	find_same_keys(c);
	nwanted = nreturned = 0;
	counted = pipe_reference(c, want_row);
	spec = rows_spec(c);
	caller = pipe_caller();
	caller.poll = pipe_cancel;
	caller.poll_arg = &cancel;
	if (CHECK(engine->pipeline->create(&spec, &caller, &p, &err) == HGJ_OK, "%s", err.message))
	{
		pipe_send_payload(p, &spec);
		CHECK(engine->pipeline->start(p, NULL, 0, &err) == HGJ_OK, "%s", err.message);
		cancel.every = every;
		CHECK(push_and_fetch(p, most, rnd_below(3) * 50, &kept, &err) == HGJ_OK, "%s", err.message);
		CHECK(every == 0 || cancel.calls > 0, "fetch does not poll");
		qsort(wanted, nwanted, sizeof(uint64_t), compare_tuples);
		qsort(returned, nreturned, sizeof(uint64_t), compare_tuples);
		CHECK(nwanted == nreturned &&
			  memcmp(wanted, returned, nwanted * sizeof(uint64_t)) == 0,
			  "%llu rows, expected %llu", (unsigned long long) nreturned,
			  (unsigned long long) nwanted);
		compare_info(c, p, &counted, kept);
		engine->pipeline->destroy(p);
	}
	pipe_unmake();
}

/* Step 2. */
static void
test_specs(void)
{
	Case		c = {.nwords = 1};
	HgjPipelineCaller caller;
	HgjPipelineSpec spec;
	HgjPipeRows rows;
	HgjPipeline *p;
	HgjError	err = {HGJ_OK, ""};
	int			j;

	context("rows: specs");
	pipe_set_join(&c, 0, 0);
	pipe_set_join(&c, 1, 0);
	pipe_make(&c);
	caller = pipe_caller();
	for (j = 0; j < 2; j++)
	{
		spec = rows_spec(&c);
		if (j == 0)
			spec.nkeys = 1;
		else
		{
			spec.nwords = 1;
			spec.words[0] = (HgjPipeWord) {HGJ_PIPE_COUNT, HGJ_PIPE_NONE, HGJ_PIPE_NONE};
		}
		CHECK_STATUS(engine->pipeline->create(&spec, &caller, &p, &err), HGJ_INVALID);
	}
	spec.rows = false;			/* one that counts */
	if (CHECK(engine->pipeline->create(&spec, &caller, &p, &err) == HGJ_OK, "%s", err.message))
	{
		pipe_send_payload(p, &spec);
		CHECK_STATUS(engine->pipeline->start(p, NULL, 0, &err), HGJ_OK);
		CHECK_STATUS(engine->pipeline->fetch(p, &rows, &err), HGJ_INVALID);
		engine->pipeline->destroy(p);
	}
	pipe_unmake();
}

void
test_pipeline_rows(void)
{
	static const uint8_t tops[] = {0, 20, 50};
	static const uint32_t sizes[] = {200, 6000, NROWS};
	uint32_t	type;

	if (engine->pipeline == NULL || engine->pipeline->fetch == NULL)
	{
		CHECK(is_cpu, "the engine returns no rows of pipelines");
		return;
	}
	wanted = must_alloc(MAX_TUPLES * sizeof(uint64_t));
	returned = must_alloc(MAX_TUPLES * sizeof(uint64_t));
	for (type = 0; type < 48; type++)
	{
		Case		c = {.nwords = 1 + rnd_below(2), .residual = rnd_below(2) == 0,
		.behind = rnd_below(2) == 0, .drop = rnd_below(2) == 0, .unique = type >= 32,
		.no_nulls = rnd_below(2) == 0, .top = tops[rnd_below(3)]};

		pipe_set_join(&c, 0, type % 4);
		pipe_set_join(&c, 1, type / 4 % 4);
		if (in_share())
			run_case(&c, sizes[rnd_below(3)], rnd_below(2) == 0 ? 3 : 0);
	}
	test_specs();
	free(wanted);
	free(returned);
}
