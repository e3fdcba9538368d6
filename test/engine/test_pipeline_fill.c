/*-------------------------------------------------------------------------
 *
 * test_pipeline_fill.c
 *	  Pipelines that fill a table (pipeline.h), and those that read what they have kept.
 *
 * 1. What ends in a pipeline of pipeline_case.c are rows of a table of one or two key
 *	  words, with five columns, most of which have NULLs.
 * 2. A second pipeline is pushed each key once: it finds every row once.  Its groups are
 *	  by all columns, and are compared with what has ended in the reference.  The first
 *	  one is destroyed before it, or after it.
 * 3. Calls that are out of order, tables that do not fit, memory.
 *
 *-------------------------------------------------------------------------
 */
#include "test_pipeline.h"

#define NCOLUMNS	5
#define NGROUPED	(1 + NCOLUMNS)
#define MAX_ENDED	(1 << 20)
#define SECOND_WORD	INT64_C(3000000000)

/* A group row of the second pipeline: NULL bits, key and columns, how many. */
typedef struct Tuple
{
	uint64_t	nulls;
	int64_t		values[NGROUPED];
	uint64_t	n;
} Tuple;

static const uint8_t column_registers[NCOLUMNS] = {6, 8, IN_V, 9, IN_U};
static const uint8_t column_kinds[NCOLUMNS] = {
	HGJ_KIND_I4, HGJ_KIND_I2, HGJ_KIND_I8, HGJ_KIND_I8, HGJ_KIND_U1
};

static Tuple *ended;
static uint32_t nended;

static void
end_row(const Case *c, uint32_t row, const uint32_t *rows)
{
	static const Cell none = {0, true};
	Tuple	   *t = &ended[nended++];
	Cell		cells[NGROUPED];
	int			i;

	(void) c;
	if (nended == MAX_ENDED)
		exit(2);
	memset(t, 0, sizeof(*t));
	cells[0] = pipe_inputs[IN_F][row];
	for (i = 0; i < 2; i++)
		cells[1 + i] = rows[i] == HGJ_PIPE_NO_ROW ? none : pipe_builds[i].payload[rows[i]];
	cells[3] = pipe_inputs[IN_V][row];
	cells[4].null = cells[3].null || cells[2].null;
	cells[4].value = cells[3].value * SECOND_WORD + cells[2].value;
	cells[5] = pipe_inputs[IN_U][row];
	t->n = 1;
	for (i = 0; i < NGROUPED; i++)
	{
		t->nulls |= (uint64_t) cells[i].null << i;
		t->values[i] = cells[i].null ? 0 : cells[i].value;
	}
}

static int
compare_tuples(const void *a, const void *b)
{
	return memcmp(a, b, offsetof(Tuple, n));
}

/* Equal ones become one, in order.  Returns how many there are. */
static uint32_t
gather(Tuple *tuples, uint32_t n)
{
	uint32_t	found = 0;

	qsort(tuples, n, sizeof(Tuple), compare_tuples);
	for (uint32_t i = 0; i < n; i++)
		if (found > 0 && compare_tuples(&tuples[found - 1], &tuples[i]) == 0)
			tuples[found - 1].n += tuples[i].n;
		else
			tuples[found++] = tuples[i];
	return found;
}

/* Step 1: the case's joins, into a table of so many key words. */
static HgjPipelineSpec
fill_spec(const Case *c, uint32_t nwords)
{
	HgjPipelineSpec spec = pipe_spec(c);

	spec.fills = true;
	spec.nkeys = nwords;
	spec.keys[0] = IN_F;
	spec.keys[1] = 10;
	spec.ncolumns = NCOLUMNS;
	memcpy(spec.columns, column_registers, sizeof(column_registers));
	memcpy(spec.kinds, column_kinds, sizeof(column_kinds));
	return spec;
}

/* Step 2: registers 0 and 1 are the key, 2 to 6 the columns. */
static HgjPipelineSpec
read_spec(uint32_t nwords)
{
	HgjPipelineSpec spec;
	HgjPipeInstruction *code = spec.code;
	uint32_t	n = 0;
	uint8_t		c;

	memset(&spec, 0, sizeof(spec));
	spec.ninputs = 1;
	spec.inputs[0] = HGJ_KIND_I8;
	spec.njoins = 1;
	spec.joins[0].pass = true;
	spec.joins[0].nkeys = nwords;
	spec.joins[0].keys[1] = 1;
	spec.joins[0].ncolumns = NCOLUMNS;
	memcpy(spec.joins[0].kinds, column_kinds, sizeof(column_kinds));
	CODE(.op = HGJ_PIPE_INPUT, .dst = 0);
	CODE(.op = HGJ_PIPE_CONSTANT, .dst = 1, .imm = SECOND_WORD);
	CODE(.op = HGJ_PIPE_PROBE);
	CODE(.op = HGJ_PIPE_MATCH);
	for (c = 0; c < NCOLUMNS; c++)
		CODE(.op = HGJ_PIPE_PAYLOAD, .dst = 2 + c, .arg = c);
	CODE(.op = HGJ_PIPE_END);
	spec.ncode = n;
	spec.nkeys = NGROUPED;
	for (c = 0; c < NCOLUMNS; c++)
		spec.keys[1 + c] = 2 + c;
	spec.nwords = 1;
	spec.words[0] = (HgjPipeWord) {HGJ_PIPE_COUNT, HGJ_PIPE_NONE, HGJ_PIPE_NONE};
	return spec;
}

static int
compare_numbers(const void *a, const void *b)
{
	int64_t		x = *(const int64_t *) a;
	int64_t		y = *(const int64_t *) b;

	return (x > y) - (x < y);
}

/* Step 2: all keys, each once. */
static HgjStatus
push_keys(HgjPipeline *p, HgjError *err)
{
	static int64_t keys[NROWS];
	HgjStatus	status = HGJ_OK;
	uint32_t	n = 0;

	for (uint32_t i = 0; i < NROWS; i++)
		keys[i] = pipe_inputs[IN_F][i].value;
	qsort(keys, NROWS, sizeof(int64_t), compare_numbers);
	for (uint32_t i = 0; i < NROWS; i++)
		if (i == 0 || keys[i] != keys[n - 1])
			keys[n++] = keys[i];
	for (uint32_t done = 0; done < n && status == HGJ_OK;)
	{
		HgjPipeStage stage;
		uint32_t	some = n - done;

		status = engine->pipeline->stage(p, &stage, err);
		if (status != HGJ_OK)
			return status;
		some = some < stage.capacity ? some : stage.capacity;
		memcpy(stage.values[0], keys + done, some * sizeof(int64_t));
		status = engine->pipeline->push(p, some, 0, err);
		done += some;
	}
	return status;
}

/* Step 2: the groups are those that have ended. */
static void
compare(HgjPipeline *p, uint64_t ngroups)
{
	Tuple	   *tuples = must_alloc((ngroups + 1) * sizeof(Tuple));
	HgjError	err = {HGJ_OK, ""};
	uint32_t	found;
	uint32_t	expected = gather(ended, nended);

	CHECK_STATUS(engine->pipeline->groups(p, 0, ngroups, (uint64_t *) tuples, &err), HGJ_OK);
	found = gather(tuples, (uint32_t) ngroups);
	CHECK(found == ngroups && found == expected, "%u groups of %llu, not %u", found,
		  (unsigned long long) ngroups, expected);
	CHECK(found != expected || memcmp(tuples, ended, found * sizeof(Tuple)) == 0,
		  "rows of the table are other ones than have ended");
	free(tuples);
}

static HgjTable *
empty_table(uint32_t nwords)
{
	HgjTableSpec spec = spec_default(nwords);
	HgjError	err = {HGJ_OK, ""};
	HgjTable   *table = NULL;

	CHECK_STATUS(engine->table_create(&spec, &table, &err), HGJ_OK);
	return table;
}

/* Step 1; *nrows: of the table, which is built.  NULL: it has failed. */
static HgjPipeline *
fill(const Case *c, uint32_t nwords, HgjTable *table, uint64_t *nrows)
{
	HgjPipelineSpec spec = fill_spec(c, nwords);
	HgjPipelineCaller caller = pipe_caller();
	HgjError	err = {HGJ_OK, ""};
	HgjPipeline *p;
	uint64_t	kept;

	caller.fills = table;
	if (!CHECK(engine->pipeline->create(&spec, &caller, &p, &err) == HGJ_OK, "%s", err.message))
		return NULL;
	pipe_send_payload(p, &spec);
	CHECK(engine->pipeline->start(p, NULL, 0, &err) == HGJ_OK, "%s", err.message);
	CHECK(pipe_push_all(p, rnd_below(3) * 50, &kept, &err) == HGJ_OK, "%s", err.message);
	CHECK(engine->pipeline->finish(p, nrows, &err) == HGJ_OK, "%s", err.message);
	CHECK(engine->build(table, (uint32_t) *nrows, &err) == HGJ_OK, "%s", err.message);
	return p;
}

static void
run_case(const Case *c, uint32_t nwords)
{
	HgjPipelineSpec spec = read_spec(nwords);
	HgjPipelineCaller caller;
	HgjPipelineInfo info;
	HgjTable   *table = empty_table(nwords);
	HgjPipeline *filled;
	HgjPipeline *p;
	HgjError	err = {HGJ_OK, ""};
	HgjPipeRange ranges[NGROUPED];
	Counted		counted;
	uint64_t	n = 0;
	bool		early = rnd_below(2) == 0;

	context("a pipeline that fills a table: words %u, joins %d%d%d %d%d%d, drop %d", nwords,
			c->pass[0], c->fill[0], c->single[0], c->pass[1], c->fill[1], c->single[1],
			c->drop);
	memset(ranges, 0, sizeof(ranges));
	memset(&caller, 0, sizeof(caller));
	pipe_make(c);
	pipe_keep();
	nended = 0;
	counted = pipe_reference(c, end_row);
	filled = fill(c, nwords, table, &n);
	CHECK(n == nended, "%llu rows, not %u", (unsigned long long) n, nended);
	if (filled)
	{
		engine->pipeline->info(filled, &info);
		CHECK(info.rows == NROWS && info.joined[1] == nended && info.dropped == counted.dropped,
			  "%llu rows, %llu joined", (unsigned long long) info.rows,
			  (unsigned long long) info.joined[1]);
		caller.tables[0] = table;
		caller.filled[0] = filled;
		CHECK_STATUS(engine->pipeline->create(&spec, &caller, &p, &err), HGJ_OK);
		if (early)
			engine->pipeline->destroy(filled);
		CHECK_STATUS(engine->pipeline->start(p, ranges, nended + 1, &err), HGJ_OK);
		CHECK_STATUS(push_keys(p, &err), HGJ_OK);
		CHECK_STATUS(engine->pipeline->finish(p, &n, &err), HGJ_OK);
		compare(p, n);
		engine->pipeline->destroy(p);
		if (!early)
			engine->pipeline->destroy(filled);
	}
	engine->table_destroy(table);
	pipe_unmake();
}

/* Step 3: what goes on before, and after, a table has been filled. */
static void
test_order(const Case *c)
{
	HgjPipelineSpec spec = fill_spec(c, 1);
	HgjPipelineSpec reads = read_spec(1);
	HgjPipelineCaller caller = pipe_caller();
	HgjPipelineCaller reader;
	HgjTable   *table = empty_table(1);
	HgjPipeStage stage;
	HgjPipeline *p;
	HgjPipeline *other;
	HgjError	err = {HGJ_OK, ""};
	uint64_t	n;

	context("the order of calls of a pipeline that fills a table");
	memset(&reader, 0, sizeof(reader));
	caller.fills = table;
	CHECK_STATUS(engine->pipeline->create(&spec, &caller, &p, &err), HGJ_OK);
	CHECK_STATUS(engine->pipeline->finish(p, &n, &err), HGJ_INVALID);
	pipe_send_payload(p, &spec);
	CHECK_STATUS(engine->pipeline->start(p, NULL, 0, &err), HGJ_OK);
	CHECK_STATUS(engine->pipeline->finish(p, &n, &err), HGJ_OK);
	CHECK(n == 0, "%llu rows of none", (unsigned long long) n);
	CHECK_STATUS(engine->build(table, 0, &err), HGJ_OK);
	CHECK_STATUS(engine->pipeline->finish(p, &n, &err), HGJ_INVALID);
	CHECK_STATUS(engine->pipeline->stage(p, &stage, &err), HGJ_INVALID);

	/* columns that are not its own, or of another table */
	reader.tables[0] = table;
	reader.filled[0] = p;
	reads.joins[0].kinds[1] = HGJ_KIND_I8;
	CHECK_STATUS(engine->pipeline->create(&reads, &reader, &other, &err), HGJ_INVALID);
	reads.joins[0].kinds[1] = HGJ_KIND_I2;
	reads.joins[0].ncolumns--;
	CHECK_STATUS(engine->pipeline->create(&reads, &reader, &other, &err), HGJ_INVALID);
	reads.joins[0].ncolumns++;
	reader.tables[0] = pipe_builds[1].table;
	CHECK_STATUS(engine->pipeline->create(&reads, &reader, &other, &err), HGJ_INVALID);
	reader.tables[0] = table;
	CHECK_STATUS(engine->pipeline->create(&reads, &reader, &other, &err), HGJ_OK);
	CHECK_STATUS(engine->pipeline->payload(other, 0, 0, 0, 0, NULL, NULL, &err), HGJ_INVALID);
	engine->pipeline->destroy(other);
	engine->pipeline->destroy(p);

	/* a table that is built, or of other keys */
	CHECK_STATUS(engine->pipeline->create(&spec, &caller, &p, &err), HGJ_INVALID);
	engine->table_destroy(table);
	caller.fills = table = empty_table(2);
	CHECK_STATUS(engine->pipeline->create(&spec, &caller, &p, &err), HGJ_INVALID);
	caller.fills = NULL;
	CHECK_STATUS(engine->pipeline->create(&spec, &caller, &p, &err), HGJ_INVALID);
	engine->table_destroy(table);
}

/* Step 3: specs, and memory. */
static void
test_limits(const Case *c)
{
	HgjPipelineCaller caller = pipe_caller();
	HgjPipelineSpec spec;
	HgjTable   *table = empty_table(1);
	HgjPipeline *p;
	HgjError	err = {HGJ_OK, ""};
	HgjStatus	status;
	uint64_t	kept;
	uint64_t	n;

	context("pipelines that fill a table and are not sound");
	caller.fills = table;
	for (int way = 0; way < 7; way++)
	{
		spec = fill_spec(c, 1);
		if (way == 0)
			spec.keys[0] = 40;	/* which nobody sets */
		else if (way == 1)
			spec.columns[1] = 40;
		else if (way == 2)
			spec.columns[1] = HGJ_PIPE_REGISTERS;
		else if (way == 3)
			spec.kinds[1] = HGJ_KIND_F8 + 1;
		else if (way == 4)
			spec.ncolumns = HGJ_PIPE_COLUMNS + 1;
		else if (way == 5)
			spec.nkeys = 0;
		else
			spec.rows = true;
		CHECK_STATUS(engine->pipeline->create(&spec, &caller, &p, &err), HGJ_INVALID);
	}

	context("a table that does not fit the memory");
	spec = fill_spec(c, 1);
	pipe_terms.memory_limit = 40 << 20;
	CHECK_STATUS(engine->pipeline->create(&spec, &caller, &p, &err), HGJ_OK);
	pipe_send_payload(p, &spec);
	CHECK_STATUS(engine->pipeline->start(p, NULL, 0, &err), HGJ_OK);
	do
		status = pipe_push_all(p, 0, &kept, &err);
	while (status == HGJ_OK);
	CHECK_STATUS(status, HGJ_LIMIT);
	engine->pipeline->destroy(p);
	engine->table_destroy(table);

	/* one that has had enough leaves nothing behind */
	table = empty_table(1);
	p = fill(c, 1, table, &n);
	CHECK(p != NULL && n > 0, "no rows after a pipeline without room for them");
	engine->pipeline->destroy(p);
	engine->table_destroy(table);
}

void
test_pipeline_fill(void)
{
	Case		inner = {.nwords = 1};
	uint32_t	type;

	if (engine->pipeline == NULL || !engine->pipeline->fills)
	{
		CHECK(is_cpu, "the engine's pipelines fill no tables");
		return;
	}
	ended = must_alloc(MAX_ENDED * sizeof(Tuple));
	for (type = 0; type < 16; type++)
	{
		Case		c = {.nwords = 1 + rnd_below(2), .residual = rnd_below(2) == 0,
		.behind = rnd_below(2) == 0, .drop = rnd_below(2) == 0, .top = rnd_below(2) ? 50 : 0};

		pipe_set_join(&c, 0, type % 4);
		pipe_set_join(&c, 1, type / 4);
		pipe_vary(&c);
		if (in_share())
			run_case(&c, 1 + rnd_below(2));
	}
	pipe_set_join(&inner, 0, 0);
	pipe_set_join(&inner, 1, 0);
	pipe_make(&inner);
	pipe_keep();
	test_order(&inner);
	test_limits(&inner);
	pipe_unmake();
	free(ended);
}
