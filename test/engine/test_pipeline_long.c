/*-------------------------------------------------------------------------
 *
 * test_pipeline_long.c
 *	  Pipelines that return rows (spec.rows), with long lists of candidates.
 *
 * 1. Millions of rows out of one push, or none after millions of candidates.  What
 *	  is to come out is known by arithmetic: each row that is returned is looked at
 *	  alone, may come once, and all of an input row are counted.
 * 2. The same with groups: they are counted.
 * 3. Rows are left unfetched; calls come out of turn.
 *
 *-------------------------------------------------------------------------
 */
#include "test_pipeline.h"

typedef enum Groups
{
	GROUPS_NO,					/* rows are returned */
	GROUPS_ONE,
	GROUPS_DENSE,				/* by the second input */
	GROUPS_HASHED
} Groups;

/*
 * Step 1: row i of build j has key i % keys, and is the i / keys'th of it; that is
 * its payload in build 0.  Of an input row's candidates there those pass whose
 * number is above v.  Inputs are two keys and v.
 */
typedef struct Long
{
	Groups		groups;
	uint32_t	keys[2];
	uint32_t	lists[2];		/* rows of each key */
	uint32_t	types[2];		/* inner, left, semi, anti */
	uint32_t	nrows;
	uint32_t	hot;			/* every hot'th row finds something in build 0 */
	uint8_t		top;
	HgjTable   *tables[2];
	int32_t    *input[2];
	int64_t    *v;
	uint64_t   *seen;			/* bits: what has been returned of each row */
	uint32_t   *count;			/* of each row */
	uint32_t   *first;			/* row of build 0 that was returned first */
} Long;

static HgjTable *
long_table(uint32_t keys, uint32_t list)
{
	HgjTableSpec spec = spec_default(1);
	HgjError	err = {HGJ_OK, ""};
	uint32_t	n = keys * list;
	uint64_t   *word = must_alloc(n * sizeof(uint64_t));
	const uint64_t *words[1] = {word};
	HgjKeys		batch = {.nrows = n, .words = words};
	HgjTable   *table;
	uint32_t	i;

	for (i = 0; i < n; i++)
		word[i] = i % keys;
	CHECK_STATUS(engine->table_create(&spec, &table, &err), HGJ_OK);
	CHECK_STATUS(engine->append(table, &batch, 0, NULL, &err), HGJ_OK);
	CHECK_STATUS(engine->build(table, n, &err), HGJ_OK);
	free(word);
	return table;
}

static void
long_make(Long *l)
{
	uint64_t	bits = l->groups != GROUPS_NO ? 0 :
		(uint64_t) l->nrows * (l->lists[0] + 1) * (l->lists[1] + 1);
	uint32_t	i;
	int			j;

	for (j = 0; j < 2; j++)
	{
		l->tables[j] = long_table(l->keys[j], l->lists[j]);
		l->input[j] = must_alloc(l->nrows * sizeof(int32_t));
	}
	l->v = must_alloc(l->nrows * sizeof(int64_t));
	l->count = must_alloc(l->nrows * sizeof(uint32_t));
	l->first = must_alloc(l->nrows * sizeof(uint32_t));
	l->seen = must_alloc((bits / 64 + 1) * 8);
	memset(l->count, 0, l->nrows * sizeof(uint32_t));
	memset(l->seen, 0, (bits / 64 + 1) * 8);
	for (i = 0; i < l->nrows; i++)
	{
		l->input[0][i] = i % l->hot == 0 ? (int32_t) rnd_below(l->keys[0]) : -1;
		l->input[1][i] = (int32_t) rnd_below(l->keys[1] + 1);
		switch (i / l->hot % 3)
		{
			case 0:
				l->v[i] = -1;	/* all pass */
				break;
			case 1:
				l->v[i] = (int64_t) l->lists[0] - 3;	/* two */
				break;
			default:
				l->v[i] = (int64_t) l->lists[0] - 1;	/* none */
				break;
		}
	}
}

static void
long_unmake(Long *l)
{
	int			j;

	for (j = 0; j < 2; j++)
	{
		engine->table_destroy(l->tables[j]);
		free(l->input[j]);
	}
	free(l->v);
	free(l->count);
	free(l->first);
	free(l->seen);
}

static HgjPipelineSpec
long_spec(const Long *l)
{
	HgjPipelineSpec spec;
	HgjPipeInstruction *code = spec.code;
	uint32_t	n = 0;
	uint8_t		i;

	memset(&spec, 0, sizeof(spec));
	for (i = 0; i < 3; i++)
		CODE(.op = HGJ_PIPE_INPUT, .dst = i, .arg = i);
	if (l->top > 0)
		CODE(.op = HGJ_PIPE_NULL, .dst = l->top);
	CODE(.op = HGJ_PIPE_PROBE, .a = 0);
	CODE(.op = HGJ_PIPE_PAYLOAD, .dst = 3, .a = 0);
	CODE(.op = HGJ_PIPE_COMPARE, .kind = HGJ_KIND_I8, .dst = 3, .a = 3, .b = 2,
		 .c = HGJ_GT);
	CODE(.op = HGJ_PIPE_FILTER, .a = 3, .arg = 1);
	CODE(.op = HGJ_PIPE_MATCH, .a = 0);
	CODE(.op = HGJ_PIPE_PROBE, .a = 1);
	CODE(.op = HGJ_PIPE_MATCH, .a = 1);
	CODE(.op = HGJ_PIPE_END);
	spec.ninputs = 3;
	spec.inputs[0] = spec.inputs[1] = HGJ_KIND_I4;
	spec.inputs[2] = HGJ_KIND_I8;
	spec.njoins = 2;
	for (i = 0; i < 2; i++)
	{
		HgjPipeJoin *join = &spec.joins[i];

		join->pass = l->types[i] != 3;
		join->fill = l->types[i] == 1 || l->types[i] == 3;
		join->single = l->types[i] >= 2;
		join->nkeys = 1;
		join->keys[0] = i;
		join->ncolumns = i == 0;
		join->kinds[0] = HGJ_KIND_I4;
	}
	spec.ncode = n;
	spec.rows = l->groups == GROUPS_NO;
	spec.nkeys = l->groups > GROUPS_ONE;
	spec.keys[0] = 1;
	spec.nwords = l->groups != GROUPS_NO;
	spec.words[0] = (HgjPipeWord) {HGJ_PIPE_COUNT, HGJ_PIPE_NONE, HGJ_PIPE_NONE};
	return spec;
}

/* Candidates of build j that pass for an input row. */
static uint32_t
long_passing(const Long *l, int j, uint32_t i)
{
	if (l->input[j][i] < 0 || (uint32_t) l->input[j][i] >= l->keys[j])
		return 0;
	return j == 1 ? l->lists[1] : (uint32_t) (l->lists[0] - 1 - l->v[i]);
}

/* Rows that join j makes of one. */
static uint32_t
long_rows(const Long *l, int j, uint32_t i)
{
	uint32_t	found = long_passing(l, j, i);

	switch (l->types[j])
	{
		case 0:
			return found;
		case 1:
			return found > 0 ? found : 1;
		case 2:
			return found > 0;
		default:
			return found == 0;
	}
}

/* Can join j return that row for input row i? */
static bool
long_may(const Long *l, int j, uint32_t i, uint32_t row)
{
	if (row == HGJ_PIPE_NO_ROW)
		return l->types[j] % 2 == 1 && long_passing(l, j, i) == 0;
	return l->types[j] != 3 && row < l->keys[j] * l->lists[j] &&
		row % l->keys[j] == (uint32_t) l->input[j][i] &&
		(j == 1 || row / l->keys[0] > l->v[i]);
}

/* Look at returned rows; the number that ought not to be there. */
static uint32_t
long_look(Long *l, uint32_t pushed, const HgjPipeRows *rows)
{
	uint32_t	bad = 0;
	uint32_t	k;

	for (k = 0; k < rows->n; k++)
	{
		uint32_t	i = pushed + rows->input[k];
		uint32_t	r[2] = {rows->row[0][k], rows->row[1][k]};
		uint64_t	bit = i;
		int			j;

		if (i >= l->nrows || !long_may(l, 0, i, r[0]) || !long_may(l, 1, i, r[1]))
		{
			bad++;
			continue;
		}
		for (j = 0; j < 2; j++)
			bit = bit * (l->lists[j] + 1) +
				(r[j] == HGJ_PIPE_NO_ROW ? 0 : 1 + r[j] / l->keys[j]);
		bad += l->seen[bit / 64] >> (bit % 64) & 1;
		l->seen[bit / 64] |= UINT64_C(1) << (bit % 64);
		if (l->count[i]++ == 0)
			l->first[i] = r[0];
		bad += l->types[0] == 2 && l->first[i] != r[0];
	}
	return bad;
}

static HgjPipeline *
long_start(const Long *l, PipeCancel *cancel)
{
	HgjPipelineSpec spec = long_spec(l);
	HgjPipelineCaller caller = {.tables = {l->tables[0], l->tables[1]},
	.poll = pipe_cancel, .poll_arg = cancel};
	HgjPipeRange range = {.bounded = l->groups == GROUPS_DENSE, .high = l->keys[1]};
	uint32_t	n = l->keys[0] * l->lists[0];
	int32_t    *payload = must_alloc(n * sizeof(int32_t));
	HgjPipeline *p = NULL;
	HgjError	err = {HGJ_OK, ""};
	uint32_t	i;

	for (i = 0; i < n; i++)
		payload[i] = (int32_t) (i / l->keys[0]);
	if (CHECK(engine->pipeline->create(&spec, &caller, &p, &err) == HGJ_OK, "%s", err.message))
	{
		CHECK_STATUS(engine->pipeline->payload(p, 0, 0, 0, n, payload, NULL, &err), HGJ_OK);
		CHECK(engine->pipeline->start(p, l->groups == GROUPS_NO ? NULL : &range, 100,
									  &err) == HGJ_OK, "%s", err.message);
	}
	free(payload);
	return p;
}

/* Push rows from `first` on; how many, or 0. */
static uint32_t
long_push(const Long *l, HgjPipeline *p, uint32_t first)
{
	HgjPipeStage stage;
	HgjError	err = {HGJ_OK, ""};
	uint32_t	n = l->nrows - first;

	if (!CHECK(engine->pipeline->stage(p, &stage, &err) == HGJ_OK, "%s", err.message))
		return 0;
	n = n > stage.capacity ? stage.capacity : n;
	memcpy(stage.values[0], l->input[0] + first, n * sizeof(int32_t));
	memcpy(stage.values[1], l->input[1] + first, n * sizeof(int32_t));
	memcpy(stage.values[2], l->v + first, n * sizeof(int64_t));
	if (!CHECK(engine->pipeline->push(p, n, 0, &err) == HGJ_OK, "%s", err.message))
		return 0;
	return n;
}

static void
long_compare_info(const Long *l, const HgjPipeline *p)
{
	HgjPipelineInfo info;
	uint64_t	joined[2] = {0, 0};
	uint64_t	removed = 0;
	uint32_t	i;

	for (i = 0; i < l->nrows; i++)
	{
		uint64_t	n = long_rows(l, 0, i);

		joined[0] += n;
		joined[1] += n * long_rows(l, 1, i);
		if (l->input[0][i] >= 0)
			removed += l->lists[0] - long_passing(l, 0, i);
	}
	engine->pipeline->info(p, &info);
	CHECK(info.rows == l->nrows && info.joined[0] == joined[0] &&
		  info.joined[1] == joined[1], "%llu and %llu joined, not %llu and %llu",
		  (unsigned long long) info.joined[0], (unsigned long long) info.joined[1],
		  (unsigned long long) joined[0], (unsigned long long) joined[1]);
	CHECK(info.removed[0] == removed || l->types[0] >= 2, "%llu removed, not %llu",
		  (unsigned long long) info.removed[0], (unsigned long long) removed);
}

/* Has each input row come as often as it should? */
static void
long_compare(const Long *l)
{
	uint32_t	bad = 0;
	uint32_t	i;

	for (i = 0; i < l->nrows; i++)
		bad += l->count[i] != (uint64_t) long_rows(l, 0, i) * long_rows(l, 1, i);
	CHECK(bad == 0, "%u rows have not come as often as they should", bad);
}

static void
run_long(Long l, uint32_t every)
{
	PipeCancel	cancel = {0};
	HgjPipeline *p;
	HgjError	err = {HGJ_OK, ""};
	uint32_t	done = 0;
	uint32_t	bad = 0;

	context("long lists: %u of %u, %u of %u, joins %u %u, top %d, %u rows, cancel %u",
			l.keys[0], l.lists[0], l.keys[1], l.lists[1], l.types[0], l.types[1], l.top,
			l.nrows, every);
	long_make(&l);
	p = long_start(&l, &cancel);
	cancel.every = every;
	while (p != NULL && done < l.nrows)
	{
		HgjPipeRows rows = {.last = false};
		uint32_t	n = long_push(&l, p, done);

		if (n == 0)
			break;
		while (!rows.last)
		{
			if (!CHECK(pipe_fetch(p, &rows, &err) == HGJ_OK, "%s", err.message))
				break;
			bad += long_look(&l, done, &rows);
		}
		done += n;
	}
	CHECK(bad == 0, "%u rows ought not to be there", bad);
	if (p != NULL)
	{
		long_compare(&l);
		long_compare_info(&l, p);
	}
	engine->pipeline->destroy(p);
	long_unmake(&l);
}

/* Step 2: a group row is the key's NULL bit, the key, the number of rows. */
static void
long_compare_groups(const Long *l, HgjPipeline *p, uint64_t ngroups)
{
	uint64_t	expect[64] = {0};
	uint64_t	rows[64 * 3];
	uint32_t	nkeys = l->groups > GROUPS_ONE;
	uint32_t	wanted = 0;
	uint32_t	bad = 0;
	uint32_t	i;
	HgjError	err = {HGJ_OK, ""};

	for (i = 0; i < l->nrows; i++)
		expect[nkeys ? l->input[1][i] : 0] +=
			(uint64_t) long_rows(l, 0, i) * long_rows(l, 1, i);
	for (i = 0; i < 64; i++)
		wanted += expect[i] > 0;
	if (!CHECK(ngroups == wanted, "%llu groups, not %u", (unsigned long long) ngroups,
			   wanted))
		return;
	CHECK_STATUS(engine->pipeline->groups(p, 0, ngroups, rows, &err), HGJ_OK);
	for (i = 0; i < ngroups; i++)
	{
		const uint64_t *row = rows + i * (2 + nkeys);
		uint64_t	key = nkeys ? row[1] : 0;

		bad += row[0] != 0 || key >= 64 || row[1 + nkeys] != expect[key];
	}
	CHECK(bad == 0, "%u groups are not the same", bad);
}

static void
run_groups(Long l, uint32_t every)
{
	PipeCancel	cancel = {0};
	HgjPipeline *p;
	HgjError	err = {HGJ_OK, ""};
	HgjStatus	status;
	uint64_t	ngroups = 0;
	uint32_t	done = 0;

	context("long lists: %u of %u, %u of %u, joins %u %u, top %d, %u rows, groups %d, "
			"cancel %u", l.keys[0], l.lists[0], l.keys[1], l.lists[1], l.types[0],
			l.types[1], l.top, l.nrows, (int) l.groups, every);
	long_make(&l);
	p = long_start(&l, &cancel);
	while (p != NULL && done < l.nrows)
	{
		uint32_t	n = long_push(&l, p, done);

		if (n == 0)
			break;
		done += n;
	}
	cancel.every = every;
	if (p != NULL)
	{
		do
			status = engine->pipeline->finish(p, &ngroups, &err);
		while (status == HGJ_CANCELLED);
		CHECK(status == HGJ_OK, "%s", err.message);
		long_compare_groups(&l, p, ngroups);
		long_compare_info(&l, p);
	}
	engine->pipeline->destroy(p);
	long_unmake(&l);
}

static void
test_groups(void)
{
	static const Groups groups[] = {GROUPS_ONE, GROUPS_DENSE, GROUPS_HASHED};
	uint32_t	type;

	for (type = 0; type < 12; type++)
	{
		Long		l = {.groups = groups[type % 3], .keys = {1, 10}, .lists = {300000, 2},
		.types = {type / 3, type % 2}, .nrows = 60, .hot = 10};
		Long		many = {.groups = groups[type % 3], .keys = {50, 50}, .lists = {1000, 30},
		.types = {type / 3, type % 2}, .nrows = 2000, .hot = 1};

		if (in_share())
			run_groups(l, type % 2 == 0 ? 2 : 0);
		if (in_share() && type < 6)
			run_groups(many, type % 2 == 0 ? 2 : 0);
	}
}

static void
test_lists(void)
{
	static const uint8_t tops[] = {0, 20, 50};
	uint32_t	type;

	/* millions of rows out of one push */
	for (type = 0; type < 4; type++)
	{
		Long		l = {.keys = {50, 50}, .lists = {60, 50}, .types = {type % 2, type / 2},
		.nrows = 2000, .hot = 1, .top = tops[rnd_below(3)]};

		if (in_share())
			run_long(l, type == 0 ? 3 : 0);
	}
	/* lists that nobody gets through at once, few rows that have them */
	for (type = 0; type < 8; type++)
	{
		Long		l = {.keys = {1, 10}, .lists = {300000, 2}, .types = {type % 4, type / 4},
		.nrows = 60, .hot = 10, .top = tops[rnd_below(3)]};

		if (in_share())
			run_long(l, type % 4 == 0 ? 5 : 0);
	}
	/* the second join has the long lists, behind many of the first */
	for (type = 0; type < 2; type++)
	{
		Long		l = {.keys = {100, 2}, .lists = {10, 100000}, .types = {0, type},
		.nrows = 20, .hot = 6};

		if (in_share())
			run_long(l, 0);
	}
}

/* Step 3. */
static void
test_turns(void)
{
	Long		l = {.keys = {50, 50}, .lists = {60, 50}, .nrows = 2000, .hot = 1};
	PipeCancel	cancel = {0};
	HgjPipeStage stage;
	HgjPipeRows rows;
	HgjPipeline *p;
	HgjError	err = {HGJ_OK, ""};
	uint64_t	ngroups;
	int			j;

	static const HgjKeptPush no_rows = {0};

	context("rows: calls out of turn");
	long_make(&l);
	for (j = 0; j < 3; j++)
	{
		p = long_start(&l, &cancel);
		if (p == NULL)
			break;
		if (j > 0)
		{
			CHECK(long_push(&l, p, 0) == l.nrows, "not all are pushed");
			CHECK_STATUS(engine->pipeline->stage(p, &stage, &err), HGJ_INVALID);
			CHECK_STATUS(engine->pipeline->push(p, 1, 0, &err), HGJ_INVALID);
			if (engine->pipeline->push_kept)
				CHECK_STATUS(engine->pipeline->push_kept(p, &no_rows, &err), HGJ_INVALID);
			CHECK_STATUS(engine->pipeline->finish(p, &ngroups, &err), HGJ_INVALID);
			CHECK_STATUS(engine->pipeline->groups(p, 0, 0, NULL, &err), HGJ_INVALID);
		}
		if (j > 1)
		{
			CHECK_STATUS(engine->pipeline->fetch(p, &rows, &err), HGJ_OK);
			CHECK(rows.n > 0 && !rows.last, "%u rows are all", rows.n);
			CHECK_STATUS(engine->pipeline->stage(p, &stage, &err), HGJ_INVALID);
		}
		engine->pipeline->destroy(p);
	}
	long_unmake(&l);
}

void
test_pipeline_long(void)
{
	if (engine->pipeline == NULL || engine->pipeline->fetch == NULL)
	{
		CHECK(is_cpu, "the engine returns no rows of pipelines");
		return;
	}
	test_lists();
	test_groups();
	test_turns();
}
