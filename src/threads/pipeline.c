/*-------------------------------------------------------------------------
 *
 * pipeline.c
 *	  The life of a pipeline (engine/pipeline.h) of the thread engine.
 *
 * 1. create looks at the plan, payload copies columns of joins, start sees how groups are to be
 *	  found.  Runs are made by the threads that need them (push.c).
 * 2. Rows of a staging buffer are run by the next call; there is one buffer, which is free then.
 * 3. finish merges what the runs have: groups (groups.c), or rows of a table (rows.c).  From
 *	  then on the tables of its joins are needed no more.
 * 4. After a failure there is nothing left to do but destroy.
 *
 * Memory: the pipeline's, from create to destroy, counted against its limit; columns of a table
 * that it has filled stay for those who read them.  Locks: none; one thread makes a pipeline's
 * calls.
 *
 *-------------------------------------------------------------------------
 */
#include <sys/random.h>

#include "threads/threads.h"

/* Step 4: a call that was not in order, or is not for this engine, has changed nothing. */
static HgjStatus
leave(HgjPipeline *p, HgjStatus status)
{
	if (status != HGJ_OK && status != HGJ_CANCELLED && status != HGJ_INVALID &&
		status != HGJ_UNSUPPORTED && p->failed == HGJ_OK)
		p->failed = status;
	return status;
}

static HgjStatus
enter(const HgjPipeline *p, HgjError *err)
{
	if (p->failed == HGJ_LIMIT)
		return hgj_fail(err, HGJ_LIMIT, "the pipeline was given up");
	if (p->failed != HGJ_OK)
		return hgj_fail(err, HGJ_INVALID, "the pipeline has failed before");
	return HGJ_OK;
}

static HgjStatus
not_in_order(HgjError *err)
{
	return hgj_fail(err, HGJ_INVALID, "there are rows to fetch, or the pipeline is not running");
}

/* ---- step 1 ------------------------------------------------------------------ */

/* Step 3: its joins' tables, and the columns that came with them. */
static void
leave_tables(HgjPipeline *p)
{
	for (uint32_t r = 0; p->runs != NULL && r < p->nruns; r++)
	{
		hgj_run_free(p->runs[r]);
		p->runs[r] = NULL;
	}
	for (uint32_t j = 0; j < HGJ_PIPE_JOINS; j++)
	{
		for (uint32_t c = 0; c < HGJ_PIPE_COLUMNS && p->filled[j] == NULL; c++)
		{
			free(p->columns[j][c].values);
			free(p->columns[j][c].validity);
		}
		memset(p->columns[j], 0, sizeof(p->columns[j]));
		hgj_columns_leave(p->filled[j]);
		p->filled[j] = NULL;
	}
}

/* HgjPipelineMethods.destroy */
static void
pipeline_destroy(HgjPipeline *p)
{
	if (p == NULL)
		return;
	leave_tables(p);
	hgj_columns_leave(p->made);
	for (uint32_t i = 0; i < HGJ_PIPE_INPUTS; i++)
	{
		free(p->stage.values[i]);
		free(p->stage.validity[i]);
	}
	free(p->runs);
	free(p->morsels);
	free(p->group_rows);
	free(p);
	hgj_threads_count(-1);
}

/* The columns of a table that another pipeline has filled. */
static HgjStatus
read_filled(HgjPipeline *p, uint32_t j, const HgjPipeline *filled, HgjError *err)
{
	const HgjPipeJoin *join = &p->plan.spec.joins[j];

	if (filled->made == NULL || !filled->finished || filled->fills != p->tables[j] ||
		filled->plan.spec.ncolumns != join->ncolumns ||
		memcmp(filled->plan.spec.kinds, join->kinds, join->ncolumns) != 0)
		return hgj_fail(err, HGJ_INVALID, "a join's columns are not those of its table");
	p->filled[j] = filled->made;
	(void) __atomic_add_fetch(&filled->made->users, 1, __ATOMIC_RELAXED);
	memcpy(p->columns[j], filled->made->columns, join->ncolumns * sizeof(Column));
	return HGJ_OK;
}

static HgjStatus
open_joins(HgjPipeline *p, const HgjPipelineCaller *caller, HgjError *err)
{
	const HgjPipelineSpec *spec = &p->plan.spec;

	for (uint32_t j = 0; j < spec->njoins; j++)
	{
		ThreadTable *table = thread_table(caller->tables[j]);
		HgjStatus	status = HGJ_OK;
		HgjTableInfo info;

		if (table == NULL || !table->built || spec->joins[j].nkeys != table->spec.nwords)
			return hgj_fail(err, HGJ_INVALID, "a join does not fit its table, or it is not built");
		p->tables[j] = table;
		hgj_cpu_engine()->info(table->cpu, &info);
		p->only_bits[j] = info.segments == HGJ_SEGMENTS_BITS;
		p->expands |= info.longest > 1;
		if (caller->filled[j] != NULL)
			status = read_filled(p, j, caller->filled[j], err);
		if (status != HGJ_OK)
			return status;
	}
	if (!spec->fills)
		return HGJ_OK;
	p->fills = thread_table(caller->fills);
	if (p->fills == NULL || p->fills->built || p->fills->appended > 0 ||
		p->fills->spec.nwords != spec->nkeys)
		return hgj_fail(err, HGJ_INVALID, "the table is not one that the pipeline could fill");
	return HGJ_OK;
}

/* A word that nobody can foretell; where the kernel has none, one that is not worth the trouble. */
static uint64_t
random_word(void)
{
	static uint64_t calls = 0;
	uint64_t	word = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) ^ (uint64_t) (uintptr_t) &word;

	if (getrandom(&word, sizeof(word), GRND_NONBLOCK) != (ssize_t) sizeof(word))
		word *= UINT64_C(0x9E3779B97F4A7C15);
	return word;
}

/* HgjPipelineMethods.create */
static HgjStatus
pipeline_create(const HgjPipelineSpec *spec, const HgjPipelineCaller *caller,
				HgjPipeline **pipeline, HgjError *err)
{
	HgjPipeline *p = calloc(1, sizeof(*p));
	HgjStatus	status;

	*pipeline = NULL;
	if (p == NULL)
		return hgj_fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	hgj_threads_count(1);
	p->poll = caller->poll;
	p->poll_arg = caller->poll_arg;
	hgj_hash_init(&p->hash, random_word());
	p->memory_limit = caller->terms ? caller->terms->memory_limit : 0;
	p->nruns = hgj_pool_runs();
	p->runs = calloc(p->nruns, sizeof(Run *));
	status = p->runs == NULL ? hgj_fail(err, HGJ_OUT_OF_MEMORY, "out of memory") :
		hgj_threads_plan(&p->plan, spec, caller->terms, err);
	if (status == HGJ_OK)
		status = open_joins(p, caller, err);
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
pipeline_payload(HgjPipeline *p, uint32_t join, uint32_t column, uint32_t first, uint32_t n,
				 const void *values, const uint64_t *validity, HgjError *err)
{
	const HgjPipelineSpec *spec = &p->plan.spec;
	HgjStatus	status = enter(p, err);
	uint64_t	total;
	size_t		width;
	Column	   *to;

	if (status != HGJ_OK)
		return status;
	if (p->started || join >= spec->njoins || column >= spec->joins[join].ncolumns ||
		p->filled[join] != NULL || first % 64 != 0)
		return leave(p, hgj_fail(err, HGJ_INVALID, "there is no such payload column"));
	total = p->tables[join]->total_rows;
	if ((uint64_t) first + n > total)
		return leave(p, hgj_fail(err, HGJ_INVALID, "the table has fewer rows"));
	if (p->poll != NULL && p->poll(p->poll_arg) != 0)
		return hgj_fail(err, HGJ_CANCELLED, "cancelled");
	if (n == 0)
		return HGJ_OK;
	to = &p->columns[join][column];
	width = hgj_kind_width(spec->joins[join].kinds[column]);
	status = hgj_column_open(p, to, total, width, validity != NULL, err);
	if (status != HGJ_OK)
		return leave(p, status);
	memcpy((char *) to->values + first * width, values, n * width);
	if (validity != NULL)
		memcpy(to->validity + first / 64, validity, ((size_t) n + 63) / 64 * 8);
	to->sent += n;
	p->info.sent += n * width + (validity != NULL ? ((size_t) n + 63) / 64 * 8 : 0);
	return HGJ_OK;
}

/* HgjPipelineMethods.start */
static HgjStatus
pipeline_start(HgjPipeline *p, const HgjPipeRange *ranges, uint64_t expected, HgjError *err)
{
	const HgjPipelineSpec *spec = &p->plan.spec;
	bool		groups = !spec->rows && !spec->fills;
	HgjStatus	status = enter(p, err);

	(void) expected;			/* groups grow as they come */
	if (status != HGJ_OK)
		return status;
	if (p->started || (groups && spec->nkeys > 0 && ranges == NULL))
		return leave(p, hgj_fail(err, HGJ_INVALID, "a pipeline is started once, with ranges"));
	for (uint32_t j = 0; j < spec->njoins; j++)
		for (uint32_t c = 0; c < spec->joins[j].ncolumns; c++)
			if (p->columns[j][c].sent < p->tables[j]->total_rows)
				return leave(p, hgj_fail(err, HGJ_INVALID, "a payload column is missing"));
	if (groups)
		hgj_run_groups_start(p, ranges);
	p->started = true;
	return HGJ_OK;
}

/* ---- step 2 ------------------------------------------------------------------ */

static bool
is_running(const HgjPipeline *p)
{
	return p->started && !p->finished && !p->fetching;
}

/* HgjPipelineMethods.stage.  Step 2. */
static HgjStatus
pipeline_stage(HgjPipeline *p, HgjPipeStage *stage, HgjError *err)
{
	HgjStatus	status = enter(p, err);

	if (status != HGJ_OK)
		return status;
	if (!is_running(p))
		return leave(p, not_in_order(err));
	status = hgj_push_settle(p, err);
	if (status != HGJ_OK)
		return leave(p, status);
	for (uint32_t i = 0; i < p->plan.spec.ninputs && p->stage.capacity == 0; i++)
	{
		size_t		bytes = STAGE_ROWS * hgj_kind_width(p->plan.spec.inputs[i]);

		free(p->stage.values[i]);
		free(p->stage.validity[i]);
		p->stage.validity[i] = NULL;
		p->stage.values[i] = malloc(bytes);
		if (p->stage.values[i] != NULL)
			p->stage.validity[i] = malloc(STAGE_ROWS / 8);
		if (p->stage.validity[i] == NULL || !hgj_threads_take(p, bytes + STAGE_ROWS / 8))
			return leave(p, hgj_fail(err, HGJ_OUT_OF_MEMORY, "no memory for a staging buffer"));
	}
	p->stage.capacity = STAGE_ROWS;
	*stage = p->stage;
	p->stage_is_out = true;
	return HGJ_OK;
}

/* HgjPipelineMethods.push */
static HgjStatus
pipeline_push(HgjPipeline *p, uint32_t n, uint64_t nulls, HgjError *err)
{
	HgjStatus	status = enter(p, err);

	if (status != HGJ_OK)
		return status;
	if (!p->stage_is_out || n > STAGE_ROWS)
		return leave(p, hgj_fail(err, HGJ_INVALID, "push goes with stage"));
	p->stage_is_out = false;
	return leave(p, hgj_push_staged(p, &p->stage, n, nulls, err));
}

/* HgjPipelineMethods.push_from: memory of any kind will do, as it is read at once. */
static HgjStatus
pipeline_push_from(HgjPipeline *p, const HgjPipeStage *from, uint32_t n, uint64_t nulls,
				   HgjError *err)
{
	HgjStatus	status = enter(p, err);

	if (status != HGJ_OK)
		return status;
	if (!is_running(p) && !p->reads_from)
		return leave(p, not_in_order(err));
	if (n > STAGE_ROWS)
		return leave(p, hgj_fail(err, HGJ_INVALID, "more rows than a staging buffer has"));
	/* the same call again, after it has been cancelled, has nothing new */
	if (p->work == WORK_STAGED && p->reads_from)
		status = HGJ_OK;
	else
	{
		status = hgj_push_settle(p, err);
		if (status == HGJ_OK)
			status = hgj_push_staged(p, from, n, nulls, err);
	}
	if (status == HGJ_OK)
	{
		p->reads_from = true;
		status = hgj_push_settle(p, err);
	}
	p->reads_from = status == HGJ_CANCELLED && p->reads_from;
	return leave(p, status);
}

/* HgjPipelineMethods.push_kept */
static HgjStatus
pipeline_push_kept(HgjPipeline *p, const HgjKeptPush *rows, HgjError *err)
{
	HgjStatus	status = enter(p, err);

	if (status != HGJ_OK)
		return status;
	if (!is_running(p))
		return leave(p, not_in_order(err));
	p->stage_is_out = false;
	return hgj_push_kept(p, rows, err);
}

/* HgjPipelineMethods.fetch */
static HgjStatus
pipeline_fetch(HgjPipeline *p, HgjPipeRows *rows, HgjError *err)
{
	HgjStatus	status = enter(p, err);

	return status != HGJ_OK ? status : leave(p, hgj_push_fetch(p, rows, err));
}

/* ---- step 3 ------------------------------------------------------------------ */

/* HgjPipelineMethods.finish */
static HgjStatus
pipeline_finish(HgjPipeline *p, uint64_t *ngroups, HgjError *err)
{
	HgjStatus	status = enter(p, err);

	if (status != HGJ_OK)
		return status;
	if (!is_running(p) || p->work == WORK_KEPT)
		return leave(p, not_in_order(err));
	status = hgj_push_settle(p, err);
	if (status != HGJ_OK)
		return leave(p, status);
	if (p->plan.spec.fills)
		status = hgj_rows_finish(p, err);
	else if (!p->plan.spec.rows)
		status = hgj_run_groups_finish(p, err);
	if (status != HGJ_OK)
		return leave(p, status);
	leave_tables(p);
	p->finished = true;
	*ngroups = p->ngroups;
	return HGJ_OK;
}

/* HgjPipelineMethods.groups */
static HgjStatus
pipeline_groups(HgjPipeline *p, uint64_t first, uint64_t n, uint64_t *rows, HgjError *err)
{
	size_t		width = p->plan.row_width * sizeof(uint64_t);

	if (!p->finished || p->plan.spec.fills || first > p->ngroups || n > p->ngroups - first)
		return hgj_fail(err, HGJ_INVALID, "there are fewer groups");
	memcpy(rows, (const char *) p->group_rows + first * width, n * width);
	return HGJ_OK;
}

/* HgjPipelineMethods.info */
static void
pipeline_info(const HgjPipeline *p, HgjPipelineInfo *info)
{
	*info = p->info;
	info->stage_rows = STAGE_ROWS;
}

const HgjPipelineMethods hgj_threads_pipelines = {
	.create = pipeline_create,
	.destroy = pipeline_destroy,
	.payload = pipeline_payload,
	.start = pipeline_start,
	.stage = pipeline_stage,
	.push = pipeline_push,
	.keep = hgj_push_keep,
	.push_from = pipeline_push_from,
	.fills = true,
	.grows = true,
	.push_kept = pipeline_push_kept,
	.fetch = pipeline_fetch,
	.finish = pipeline_finish,
	.groups = pipeline_groups,
	.info = pipeline_info,
};
