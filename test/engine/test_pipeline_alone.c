/*-------------------------------------------------------------------------
 *
 * test_pipeline_alone.c
 *	  Pipelines without joins (pipeline.h): groups of the rows that are pushed.
 *
 * 1. The inputs of pipeline_case.c; rows whose u is not true are dropped.
 * 2. One group, groups by a, known to lie in a range or not.  Of each: its rows, the
 *	  values of v that are not NULL, and their sum.
 * 3. The same from the inputs, one key after the other.
 *
 *-------------------------------------------------------------------------
 */
#include "test_pipeline.h"

#define NWORDS		3

/* Whether a row stays; *key, or that it is NULL. */
static bool
row_stays(uint32_t row, bool keyed, Cell *key)
{
	const Cell *u = &pipe_inputs[IN_U][row];

	*key = keyed ? pipe_inputs[IN_A][row] : (Cell) {0, false};
	return !u->null && u->value != 0;
}

/* Step 3: the group of a row on the device, among n of them; what is left of it goes down. */
static void
take_row(uint64_t *groups, uint64_t n, bool keyed, const Cell *key, const Cell *v)
{
	uint32_t	width = 1 + keyed + NWORDS;
	uint64_t	g;

	for (g = 0; g < n; g++)
	{
		uint64_t   *row = groups + g * width;
		uint64_t   *words = row + 1 + keyed;

		if (keyed && ((row[0] & 1) != key->null ||
					  (!key->null && (int64_t) row[1] != key->value)))
			continue;
		words[0]--;
		words[1] -= !v->null;
		words[2] -= v->null ? 0 : (uint64_t) v->value;
		return;
	}
	CHECK(false, "the group of %lld is missing", (long long) key->value);
}

static void
compare_groups(HgjPipeline *p, uint64_t n, bool keyed)
{
	uint32_t	width = 1 + keyed + NWORDS;
	uint64_t   *groups = must_alloc((n + 1) * width * sizeof(uint64_t));
	HgjError	err = {HGJ_OK, ""};
	uint64_t	rest = 0;
	Cell		key;
	uint32_t	row;
	uint64_t	g;

	CHECK_STATUS(engine->pipeline->groups(p, 0, n, groups, &err), HGJ_OK);
	for (g = 0; g < n; g++)
		CHECK(groups[g * width + 1 + keyed] > 0 || !keyed, "an empty group");
	for (row = 0; row < NROWS; row++)
		if (row_stays(row, keyed, &key))
			take_row(groups, n, keyed, &key, &pipe_inputs[IN_V][row]);
	for (g = 0; g < n; g++)
		for (row = 0; row < NWORDS; row++)
			rest |= groups[g * width + 1 + keyed + row];
	CHECK(rest == 0, "groups of other rows");
	free(groups);
}

static HgjPipelineSpec
make_spec(const Case *c, bool keyed)
{
	HgjPipelineSpec spec = pipe_spec(c);
	HgjPipeInstruction *code = spec.code;
	uint32_t	n = 0;
	uint8_t		i;

	memset(spec.joins, 0, sizeof(spec.joins));
	memset(code, 0, sizeof(spec.code));
	spec.njoins = 0;
	for (i = 0; i < NINPUTS; i++)
		CODE(.op = HGJ_PIPE_INPUT, .dst = i, .arg = i);
	CODE(.op = HGJ_PIPE_FILTER, .a = IN_U, .arg = HGJ_PIPE_DROP);
	CODE(.op = HGJ_PIPE_END);
	spec.ncode = n;
	spec.nkeys = keyed;
	spec.keys[0] = IN_A;
	spec.nwords = NWORDS;
	spec.words[0] = (HgjPipeWord) {HGJ_PIPE_COUNT, HGJ_PIPE_NONE, HGJ_PIPE_NONE};
	spec.words[1] = (HgjPipeWord) {HGJ_PIPE_COUNT, IN_V, HGJ_PIPE_NONE};
	spec.words[2] = (HgjPipeWord) {HGJ_PIPE_SUM, IN_V, HGJ_PIPE_NONE};
	return spec;
}

/* The least and the largest key, NULLs left out. */
static HgjPipeRange
find_range(void)
{
	HgjPipeRange range = {.bounded = true, .low = INT64_MAX, .high = INT64_MIN};
	uint32_t	row;

	for (row = 0; row < NROWS; row++)
	{
		const Cell *key = &pipe_inputs[IN_A][row];

		if (key->null)
			continue;
		range.low = key->value < range.low ? key->value : range.low;
		range.high = key->value > range.high ? key->value : range.high;
	}
	return range;
}

static void
run_alone(const Case *c, bool keyed, bool bounded)
{
	HgjPipelineSpec spec = make_spec(c, keyed);
	HgjPipelineCaller caller = {.poll = NULL};
	HgjPipelineInfo info;
	HgjPipeRange range = find_range();
	HgjPipeline *p;
	HgjError	err = {HGJ_OK, ""};
	uint64_t	ngroups = 0;
	uint32_t	done = 0;

	context("a pipeline without joins: %s", !keyed ? "one group" : bounded ? "in a range" : "groups");
	range.bounded = bounded;
	if (!CHECK(engine->pipeline->create(&spec, &caller, &p, &err) == HGJ_OK, "%s", err.message))
		return;
	CHECK(engine->pipeline->start(p, &range, NROWS, &err) == HGJ_OK, "%s", err.message);
	while (done < NROWS)
	{
		uint32_t	n = 1 + rnd_below(6000);

		if (!CHECK(pipe_push(p, done, &n, &err) == HGJ_OK, "%s", err.message))
			break;
		done += n;
	}
	CHECK(engine->pipeline->finish(p, &ngroups, &err) == HGJ_OK, "%s", err.message);
	CHECK(keyed ? ngroups > 2 : ngroups == 1, "%llu groups", (unsigned long long) ngroups);
	compare_groups(p, ngroups, keyed);
	engine->pipeline->info(p, &info);
	CHECK(info.rows == NROWS && info.dropped > 0 && info.dropped < NROWS,
		  "%llu rows, %llu dropped", (unsigned long long) info.rows,
		  (unsigned long long) info.dropped);
	engine->pipeline->destroy(p);
}

void
test_pipeline_alone(void)
{
	Case		c = {.nwords = 1, .keys = KEYS_NONE};

	if (engine->pipeline == NULL)
		return;
	pipe_set_join(&c, 0, 0);
	pipe_set_join(&c, 1, 0);
	pipe_make(&c);
	run_alone(&c, false, false);
	run_alone(&c, true, false);
	run_alone(&c, true, true);
	pipe_unmake();
}
