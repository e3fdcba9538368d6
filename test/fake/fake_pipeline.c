/*-------------------------------------------------------------------------
 *
 * fake_pipeline.c
 *	  Pipelines (engine/pipeline.h) on the CPU: their life from create to
 *	  destroy.
 *
 * 1. create looks whether the spec is sound, payload copies columns, start says
 *	  how many groups there may be.  They count memory as a device would need it.
 * 2. A push only notes what there is to do: fake_rows.c does it when the stage's
 *	  turn comes again, or at the end.  So errors come late, as a device's do, and
 *	  who writes into a stage that has been pushed changes the answer.
 *	  A table that is filled gets its rows at the end.
 * 3. Where rows are returned, fetch goes on with them, a portion of any size (and
 *	  sometimes an empty one) at a time, shuffled.
 * 4. Whoever does not keep to the order of calls, or goes on after a failure, is
 *	  told so (HGJ_INVALID).  A pipeline must be gone before its tables, or have filled
 *	  one.
 *
 * Memory: the pipeline's.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "fake.h"
#include "having.h"

/* Groups that are found by position, and what there is room for in a hash table. */
#define MOST_DENSE		(UINT64_C(1) << 22)
#define LEAST_HASHED	(UINT64_C(1) << 12)
#define MOST_EXPECTED	(UINT64_C(1) << 32)

#define GARBAGE			0xA5

/* After a failure there is nothing left to do. */
static HgjStatus
leave(HgjPipeline *p, HgjStatus status)
{
	if (status != HGJ_OK && status != HGJ_CANCELLED)
		p->failed = status;
	return status;
}

/* What calls of a pipeline begin with. */
HgjStatus
fake_enter_pipeline(HgjPipeline *p, FakeCall call, HgjError *err)
{
	if (p->failed != HGJ_OK)
		return fake_fail(err, HGJ_INVALID, "the pipeline has failed before");
	return leave(p, fake_enter(call, &p->waits, err));
}

#define ENTER(call) \
	do { \
		HgjStatus	status_ = fake_enter_pipeline(p, call, err); \
		if (status_ != HGJ_OK) \
			return status_; \
	} while (0)

static HgjStatus
poll(const HgjPipeline *p, HgjError *err)
{
	if (p->waits.poll != NULL && p->waits.poll(p->waits.poll_arg) != 0)
		return fake_fail(err, HGJ_CANCELLED, "cancelled");
	return HGJ_OK;
}

/* Step 1: count memory of the device. */
HgjStatus
fake_take(HgjPipeline *p, uint64_t bytes, HgjError *err)
{
	uint64_t	limit = p->memory_limit;

	if (limit > 0 && bytes > limit - p->memory)
		return leave(p, fake_fail(err, HGJ_LIMIT, "the pipeline does not fit its memory limit"));
	p->memory += bytes;
	p->counted.memory = p->memory;
	return HGJ_OK;
}

static HgjStatus
take_memory(HgjPipeline *p, size_t bytes, void *pointer, HgjError *err)
{
	void	   *memory;
	HgjStatus	status = fake_take(p, bytes, err);

	if (status != HGJ_OK)
		return status;
	memory = malloc(bytes + 1);
	if (memory == NULL)
		return leave(p, fake_fail(err, HGJ_OUT_OF_MEMORY, "out of memory"));
	memset(memory, GARBAGE, bytes);
	memcpy(pointer, &memory, sizeof(memory));
	return HGJ_OK;
}

/* It needs its tables no more. */
static void
leave_tables(HgjPipeline *p)
{
	for (uint32_t j = 0; j < p->spec.njoins; j++)
	{
		FakeJoin   *join = &p->joins[j];

		if (join->table == NULL)
			continue;
		hgj_cpu_engine()->probe_destroy(join->probe);
		(void) __atomic_sub_fetch(&join->table->pipelines, 1, __ATOMIC_RELAXED);
		join->table = NULL;
		for (int c = 0; c < HGJ_PIPE_COLUMNS; c++)
		{
			free(join->columns[c].values);
			free(join->columns[c].validity);
		}
	}
}

/* HgjPipelineMethods.destroy */
static void
pipeline_destroy(HgjPipeline *p)
{
	if (p == NULL)
		return;
	fake_kept_read(p);
	leave_tables(p);
	for (int s = 0; s <= FAKE_STAGES; s++)
		for (int i = 0; i < HGJ_PIPE_INPUTS; i++)
		{
			FakeStage  *stage = s < FAKE_STAGES ? &p->stages[s] : &p->kept;

			free(stage->values[i]);
			free(stage->validity[i]);
		}
	free(p->fill.rows);
	free(p->groups.rows);
	free(p->groups.slots);
	fake_tables(-1);
	memset(p, GARBAGE, sizeof(*p));
	free(p);
}

/* Step 1: a join fits its table. */
static HgjStatus
check_table(const HgjPipeJoin *join, const FakeTable *table, HgjError *err)
{
	if (table == NULL || !table->built || join->nkeys != table->spec.nwords)
		return fake_fail(err, HGJ_INVALID, "a join does not fit its table, or it is not built");
	if (table->spec.flags & HGJ_TABLE_DYNAMIC)
		return fake_fail(err, HGJ_UNSUPPORTED, "a join's table is dynamic");
	return HGJ_OK;
}

static HgjStatus
open_joins(HgjPipeline *p, const HgjPipelineCaller *caller, const HgjPipelineFacts *facts,
		   HgjError *err)
{
	for (uint32_t j = 0; j < p->spec.njoins; j++)
	{
		FakeJoin   *join = &p->joins[j];
		FakeTable  *table = (FakeTable *) (void *) caller->tables[j];
		HgjStatus	status = check_table(&p->spec.joins[j], table, err);

		if (status == HGJ_OK)
			status = hgj_cpu_engine()->probe_create(table->cpu, &join->probe, err);
		if (status != HGJ_OK)
			return status;
		join->after_probe = facts->joins[j].after_probe;
		join->after_match = facts->joins[j].after_match;
		join->table = table;
		(void) __atomic_add_fetch(&table->pipelines, 1, __ATOMIC_RELAXED);
		for (int k = 0; k < HGJ_PIPE_KEYS; k++)
			join->word_columns[k] = &join->words[k];
		if (caller->filled[j] != NULL)
			status = fake_fill_read(p, j, caller->filled[j], err);
		if (status != HGJ_OK)
			return status;
	}
	return p->spec.fills ? fake_fill_open(p, caller->fills, err) : HGJ_OK;
}

/* HgjPipelineMethods.create */
static HgjStatus
pipeline_create(const HgjPipelineSpec *spec, const HgjPipelineCaller *caller,
				HgjPipeline **pipeline, HgjError *err)
{
	const HgjPipelineTerms *terms = caller->terms;
	HgjTableSpec waits = {.timeout_ms = terms ? terms->timeout_ms : 0, .poll = caller->poll,
	.poll_arg = caller->poll_arg};
	HgjPipelineFacts facts;
	HgjPipeline *p;
	HgjStatus	status;

	*pipeline = NULL;
	status = fake_enter(CALL_PIPE_CREATE, &waits, err);
	if (status != HGJ_OK)
		return status;
	if (fake_refuses_pipelines())
		return fake_fail(err, HGJ_UNSUPPORTED, "there are no pipelines here");
	status = hgj_check_pipeline(spec, &facts, err);
	if (status != HGJ_OK)
		return status;
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return fake_fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	fake_tables(1);
	p->spec = *spec;
	p->waits = waits;
	if (terms)
	{
		p->memory_limit = terms->memory_limit;
		p->nhaving = terms->nhaving;
		memcpy(p->having, terms->having, sizeof(p->having));
	}
	status = hgj_bind_pipeline(&p->spec, terms, err);
	if (status == HGJ_OK)
		status = open_joins(p, caller, &facts, err);
	if (status == HGJ_OK)
		status = fake_take(p, spec->ncode * sizeof(*spec->code), err);
	if (status != HGJ_OK)
	{
		pipeline_destroy(p);
		return status;
	}
	*pipeline = p;
	return HGJ_OK;
}

/* HgjPipelineMethods.payload */
static HgjStatus
pipeline_payload(HgjPipeline *p, uint32_t join, uint32_t column, uint32_t first,
				 uint32_t n, const void *values, const uint64_t *validity, HgjError *err)
{
	FakeColumn *to;
	HgjStatus	status;
	uint64_t	total;
	size_t		width;

	ENTER(CALL_PIPE_PAYLOAD);
	if (p->started || join >= p->spec.njoins ||
		column >= p->spec.joins[join].ncolumns || p->joins[join].filled || first % 64 != 0)
		return fake_fail(err, HGJ_INVALID, "there is no such payload column");
	total = p->joins[join].table->total_rows;
	if ((uint64_t) first + n > total)
		return fake_fail(err, HGJ_INVALID, "the table has fewer rows");
	status = poll(p, err);
	if (status != HGJ_OK || n == 0)
		return status;

	to = &p->joins[join].columns[column];
	width = fake_width(p->spec.joins[join].kinds[column]);
	if (to->values == NULL)
		status = take_memory(p, total * width, &to->values, err);
	if (status == HGJ_OK && validity != NULL && to->validity == NULL)
	{
		status = take_memory(p, (total + 63) / 64 * 8, &to->validity, err);
		if (status == HGJ_OK)
			memset(to->validity, 0xFF, (total + 63) / 64 * 8);
	}
	if (status != HGJ_OK)
		return status;
	memcpy(to->values + first * width, values, n * width);
	if (validity != NULL)
		memcpy(to->validity + first / 64, validity, ((size_t) n + 63) / 64 * 8);
	to->sent += n;
	p->counted.sent += n * width + (validity != NULL ? ((size_t) n + 63) / 64 * 8 : 0);
	return HGJ_OK;
}

/* Can groups be found by position?  Sets how many places there are. */
static bool
groups_are_dense(const HgjPipeline *p, const HgjPipeRange *ranges, uint64_t *places)
{
	*places = 1;
	for (uint32_t k = 0; k < p->spec.nkeys; k++)
	{
		uint64_t	span = (uint64_t) ranges[k].high - (uint64_t) ranges[k].low;

		if (!ranges[k].bounded || ranges[k].low > ranges[k].high || span >= MOST_DENSE)
			return false;
		*places *= span + 2;	/* one is NULL's */
		if (*places > MOST_DENSE)
			return false;
	}
	return true;
}

/* Room for groups; their rows are got as they come. */
static HgjStatus
start_groups(HgjPipeline *p, const HgjPipeRange *ranges, uint64_t expected, HgjError *err)
{
	FakeGroups *g = &p->groups;
	static const uint64_t no_key[1 + HGJ_PIPE_KEYS] = {0};
	uint64_t	key_bytes = 0;
	uint64_t	places;
	uint64_t   *row;
	HgjStatus	status;

	g->dense = groups_are_dense(p, ranges, &places);
	g->most = places;
	if (g->dense && p->spec.nkeys > 0)
		memcpy(g->ranges, ranges, p->spec.nkeys * sizeof(*ranges));
	if (!g->dense)
	{
		if (expected > MOST_EXPECTED)
			return leave(p, fake_fail(err, HGJ_LIMIT, "there are too many groups"));
		for (places = LEAST_HASHED; places < expected * 2;)
			places *= 2;
		g->most = places / 8 * 5;
		key_bytes = sizeof(uint32_t) + (1 + p->spec.nkeys) * sizeof(uint64_t);
	}
	status = fake_take(p, places * (key_bytes + p->spec.nwords * sizeof(uint64_t)), err);
	if (status == HGJ_OK && p->spec.nkeys == 0)
		status = leave(p, fake_add_group(p, no_key, &row, err));
	return status;
}

static HgjStatus
open_stage(HgjPipeline *p, FakeStage *stage, HgjError *err)
{
	HgjStatus	status = HGJ_OK;

	for (uint32_t i = 0; i < p->spec.ninputs && status == HGJ_OK; i++)
	{
		status = take_memory(p, FAKE_STAGE_ROWS * fake_width(p->spec.inputs[i]),
							 &stage->values[i], err);
		if (status == HGJ_OK)
			status = take_memory(p, FAKE_STAGE_ROWS / 8, &stage->validity[i], err);
	}
	return status;
}

/* HgjPipelineMethods.start */
static HgjStatus
pipeline_start(HgjPipeline *p, const HgjPipeRange *ranges, uint64_t expected, HgjError *err)
{
	HgjStatus	status = HGJ_OK;

	ENTER(CALL_PIPE_START);
	if (p->started || (p->spec.nkeys > 0 && !p->spec.fills && ranges == NULL))
		return fake_fail(err, HGJ_INVALID, "a pipeline is started once, with ranges");
	for (uint32_t j = 0; j < p->spec.njoins; j++)
		for (uint32_t c = 0; c < p->spec.joins[j].ncolumns; c++)
			if (!p->joins[j].filled &&
				p->joins[j].columns[c].sent < p->joins[j].table->total_rows)
				return fake_fail(err, HGJ_INVALID, "a payload column is missing");
	if (p->spec.fills)
		status = HGJ_OK;
	else if (!p->spec.rows)
		status = start_groups(p, ranges, expected, err);
	else
		status = fake_take(p, sizeof(p->input) * (1 + p->spec.njoins), err);
	for (int s = 0; s < FAKE_STAGES && status == HGJ_OK; s++)
		status = open_stage(p, &p->stages[s], err);
	p->started = status == HGJ_OK;
	return status;
}

/* HgjPipelineMethods.stage */
static HgjStatus
pipeline_stage(HgjPipeline *p, HgjPipeStage *out, HgjError *err)
{
	FakeStage  *stage = &p->stages[p->turn];
	HgjStatus	status;

	ENTER(CALL_PIPE_STAGE);
	if (!p->started || p->finished || p->fetching != NULL)
		return fake_fail(err, HGJ_INVALID, "there are rows to fetch, or the pipeline is not running");
	status = leave(p, fake_run(p, stage, err));
	if (status != HGJ_OK)
		return status;
	out->capacity = FAKE_STAGE_ROWS;
	for (uint32_t i = 0; i < p->spec.ninputs; i++)
	{
		memset(stage->values[i], GARBAGE, FAKE_STAGE_ROWS * fake_width(p->spec.inputs[i]));
		memset(stage->validity[i], GARBAGE, FAKE_STAGE_ROWS / 8);
		out->values[i] = stage->values[i];
		out->validity[i] = stage->validity[i];
	}
	p->staged = true;
	return HGJ_OK;
}

/* HgjPipelineMethods.push */
static HgjStatus
pipeline_push(HgjPipeline *p, uint32_t n, uint64_t nulls, HgjError *err)
{
	FakeStage  *stage = &p->stages[p->turn];

	ENTER(CALL_PIPE_PUSH);
	if (!p->staged || n > FAKE_STAGE_ROWS)
		return fake_fail(err, HGJ_INVALID, "push goes with stage");
	stage->n = n;
	stage->nulls = nulls;
	p->staged = false;
	p->turn = (p->turn + 1) % FAKE_STAGES;
	if (p->spec.rows)
		p->fetching = stage;
	p->counted.rows += n;
	for (uint32_t i = 0; i < p->spec.ninputs; i++)
	{
		p->counted.sent += n * fake_width(p->spec.inputs[i]);
		if (nulls >> i & 1)
			p->counted.sent += ((uint64_t) n + 63) / 64 * 8;
	}
	p->counted.transfer_ms += 0.001;
	p->counted.kernel_ms += 0.001;
	return HGJ_OK;
}

/* Memory that push_from may have rows in. */
static const char *staging = NULL;
static uint64_t staging_bytes = 0;

/* HgjPipelineMethods.keep_staging */
static void
pipeline_keep_staging(const void *memory, uint64_t bytes)
{
	staging = memory;
	staging_bytes = bytes;
}

static bool
is_there(const void *memory, size_t bytes)
{
	uint64_t	at = (uint64_t) ((const char *) memory - staging);

	return staging != NULL && at <= staging_bytes && bytes <= staging_bytes - at;
}

/* HgjPipelineMethods.push_from */
HgjStatus
fake_push_from(HgjPipeline *p, const HgjPipeStage *from, uint32_t n, uint64_t nulls,
			   HgjError *err)
{
	HgjPipeStage to;
	HgjStatus	status;

	ENTER(CALL_PIPE_FROM);
	for (uint32_t i = 0; i < p->spec.ninputs; i++)
		if (!is_there(from->values[i], n * fake_width(p->spec.inputs[i])) ||
			((nulls >> i & 1) && !is_there(from->validity[i], ((size_t) n + 63) / 64 * 8)))
			return fake_fail(err, HGJ_UNSUPPORTED, "the rows are not in memory that is known");
	status = pipeline_stage(p, &to, err);
	if (status != HGJ_OK)
		return status;
	if (n > to.capacity)
		return fake_fail(err, HGJ_INVALID, "more rows than a staging buffer has");
	for (uint32_t i = 0; i < p->spec.ninputs; i++)
	{
		memcpy(to.values[i], from->values[i], n * fake_width(p->spec.inputs[i]));
		if (nulls >> i & 1)
			memcpy(to.validity[i], from->validity[i], ((size_t) n + 63) / 64 * 8);
	}
	return pipeline_push(p, n, nulls, err);
}

/* What has been counted is known to be final. */
static void
settle(HgjPipeline *p)
{
	memcpy(p->counted.joined, p->counting.joined, sizeof(p->counted.joined));
	memcpy(p->counted.filtered, p->counting.filtered, sizeof(p->counted.filtered));
	memcpy(p->counted.removed, p->counting.removed, sizeof(p->counted.removed));
	p->counted.dropped = p->counting.dropped;
}

static void
swap(uint32_t *array, uint32_t i, uint32_t j)
{
	uint32_t	one = array[i];

	array[i] = array[j];
	array[j] = one;
}

/* Step 3: pairs of a row need not stand next to each other. */
static void
shuffle(HgjPipeline *p)
{
	uint32_t	state = p->fetches;

	for (uint32_t i = p->nout; i > 1; i--)
	{
		uint32_t	other;

		state = state * 1664525 + 1013904223;
		other = (state >> 8) % i;
		swap(p->input, i - 1, other);
		for (uint32_t j = 0; j < p->spec.njoins; j++)
			swap(p->out[j], i - 1, other);
	}
}

/*
 * How many rows a portion is to have: few, none, or as many as there may be.  Some have all
 * of a push, so that whole pages are among them.
 */
static uint32_t
portion_size(const HgjPipeline *p, uint32_t number)
{
	static const uint16_t sizes[] = {FAKE_PORTION, 1, FAKE_PORTION, 0, 63, FAKE_PORTION, 2, 997};

	if (p->fetching == &p->kept && p->spec.ninputs == 1 && number % 2 == 0)
		return FAKE_MOST;
	return sizes[number % (sizeof(sizes) / sizeof(sizes[0]))];
}

/* HgjPipelineMethods.fetch */
HgjStatus
fake_pipeline_fetch(HgjPipeline *p, HgjPipeRows *rows, HgjError *err)
{
	HgjStatus	status;

	ENTER(CALL_PIPE_FETCH);
	if (p->fetching == NULL)
		return fake_fail(err, HGJ_INVALID, "fetch goes with push");
	if (p->nout == 0)
	{
		p->wanted = portion_size(p, p->fetches++);
		memset(p->input, GARBAGE, sizeof(p->input));
		memset(p->out, GARBAGE, sizeof(p->out));
	}
	status = leave(p, fake_run(p, p->fetching, err));
	if (status != HGJ_OK)
		return status;			/* cancelled: what has been found stays */
	shuffle(p);
	rows->n = p->nout;
	rows->last = p->fetching->n == 0;
	rows->input = p->input;
	for (uint32_t j = 0; j < p->spec.njoins; j++)
		rows->row[j] = p->out[j];
	p->nout = 0;
	if (rows->last)
	{
		p->fetching = NULL;
		settle(p);
	}
	return HGJ_OK;
}

/* Groups that the spec wants left out go; states are as fake_state_add() has them till now. */
static void
leave_out(HgjPipeline *p)
{
	uint64_t	width = 1 + p->spec.nkeys + p->spec.nwords;
	uint64_t	n = 0;

	for (uint64_t g = 0; g < p->groups.n; g++)
	{
		uint64_t   *row = p->groups.rows + g * width;
		uint64_t   *words = row + 1 + p->spec.nkeys;

		for (uint32_t w = 0; w < p->spec.nwords; w++)
			words[w] = fake_state_result(p->spec.words[w].state, words[w]);
		if (!hgj_having_leaves_out(p->having, p->nhaving, words))
			memmove(p->groups.rows + n++ * width, row, width * sizeof(uint64_t));
	}
	p->counted.left_out = p->groups.n - n;
	p->groups.n = n;
}

/* HgjPipelineMethods.finish */
static HgjStatus
pipeline_finish(HgjPipeline *p, uint64_t *ngroups, HgjError *err)
{
	uint64_t	width = 1 + p->spec.nkeys + p->spec.nwords;
	HgjStatus	status = HGJ_OK;

	fake_kept_read(p);
	ENTER(CALL_PIPE_FINISH);
	if (!p->started || p->finished || p->fetching != NULL)
		return fake_fail(err, HGJ_INVALID, "there are rows to fetch, or the pipeline is not running");
	for (uint32_t i = 0; i < FAKE_STAGES && status == HGJ_OK; i++)
		status = leave(p, fake_run(p, &p->stages[(p->turn + i) % FAKE_STAGES], err));
	if (status == HGJ_OK && p->spec.fills)
		status = leave(p, fake_fill_finish(p, err));
	else if (status == HGJ_OK)
		status = fake_take(p, p->groups.n * width * sizeof(uint64_t), err);
	if (status != HGJ_OK)
		return status;
	settle(p);
	if (p->spec.fills)
		leave_tables(p);
	else
		leave_out(p);
	p->finished = true;
	*ngroups = p->spec.fills ? p->fill.n : p->groups.n;
	return HGJ_OK;
}

/* HgjPipelineMethods.groups: the last that was found comes first. */
static HgjStatus
pipeline_groups(HgjPipeline *p, uint64_t first, uint64_t n, uint64_t *rows, HgjError *err)
{
	uint64_t	width = 1 + p->spec.nkeys + p->spec.nwords;

	ENTER(CALL_PIPE_GROUPS);
	if (!p->finished || first > p->groups.n || n > p->groups.n - first)
		return fake_fail(err, HGJ_INVALID, "there are fewer groups");
	for (uint64_t i = 0; i < n; i++)
		memcpy(rows + i * width, p->groups.rows + (p->groups.n - 1 - first - i) * width,
			   width * sizeof(uint64_t));
	return HGJ_OK;
}

/* HgjPipelineMethods.info */
static void
pipeline_info(const HgjPipeline *p, HgjPipelineInfo *info)
{
	*info = p->counted;
	info->stage_rows = FAKE_STAGE_ROWS;
}

/* Not a constant: fake_engine.c takes fetch away where it is told to. */
HgjPipelineMethods fake_pipeline = {
	.create = pipeline_create,
	.destroy = pipeline_destroy,
	.payload = pipeline_payload,
	.start = pipeline_start,
	.stage = pipeline_stage,
	.push = pipeline_push,
	.keep_staging = pipeline_keep_staging,
	.push_from = fake_push_from,
	.keep = fake_keep,
	.push_kept = fake_push_kept,
	.kept_read = fake_kept_read,
	.kept_bytes = fake_kept_bytes,
	.prewarm = fake_prewarm,
	.sweep = fake_sweep,
	.fills = true,
	.fetch = fake_pipeline_fetch,
	.finish = pipeline_finish,
	.groups = pipeline_groups,
	.info = pipeline_info,
};
